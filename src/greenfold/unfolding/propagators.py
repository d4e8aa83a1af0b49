"""Exact propagation of the linear network over one step, and quadrature inside it.

With A = I − W diag(φ'), φ' the slopes at rest, the linear network moves over a time s by

    E(s) = exp(−A s/τ),    F(s) = A⁻¹ (I − E(s)),    y → E(s) y + F(s) u x,

and a source W f entering over the step is weighted with E(step − s) W / τ. Neurons with
time constants τ_i of their own are the same with A, W and u multiplied by τ/τ_i from the
left, τ their mean. A network in discrete time has no inside of a step: E and F are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, lgamma, log

import numpy as np

from ..networks.reservoir import Reservoir

#: Exponent β (see `plan_quadrature`) that one quadrature panel may span. Larger steps
#: are cut into panels; the cost per unit time is flat around this value.
_PANEL_EXPONENT = 4.0
#: The same for order 1, where no node feeds another and twice as many nodes cost twice as
#: much, not four times: few long panels need fewer nodes in all.
_SINGLE_EXPONENT = 24.0
_MAX_PANELS = 2000
#: ‖A s/τ‖ below which 13 terms of the series φ₁(z) = Σ z^k/(k+1)! are exact to
#: rounding: the first one left out is 0.5¹³/14! ≈ 1.4e-15 of the leading one.
_SERIES_RADIUS = 0.5
_SERIES_TERMS = 13


@dataclass(frozen=True, eq=False)
class Propagators:
    """Matrices that move a batch of states over one panel of length ``length``.

    All matrices act on row vectors of states from the right, ``y @ E``, so they are
    stored transposed; in that form one matrix product serves a whole batch.

    Attributes
    ----------
    length : float
        Duration of the panel.
    E : ndarray (N, N)
        Transposed propagator E(length)ᵀ.
    F : ndarray (N, N)
        Transposed response to a constant input, F(length)ᵀ.
    nodes : ndarray (q,)
        Gauss–Legendre nodes in (0, length).
    E_nodes : ndarray (N, q N)
        E(s_j)ᵀ side by side.
    F_nodes : ndarray (N, q N)
        F(s_j)ᵀ side by side.
    S : ndarray (q N, N)
        Weight of the source at each node in the state at the end of the panel.
    B : ndarray (q N, q N) or None
        Weight of the source at each node in the state at each node; orders ≥ 2 only.
    """

    length: float
    E: np.ndarray
    F: np.ndarray
    nodes: np.ndarray
    E_nodes: np.ndarray
    F_nodes: np.ndarray
    S: np.ndarray
    B: np.ndarray | None


def phi_functions(A: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E(s) = exp(−A s) and F(s) = ∫₀ˢ exp(−A r) dr for several times s.

    Modified scaling and squaring for φ-functions (Skaflestad & Wright 2009): the
    series of φ₁ at a small time, then E(2s) = E(s)² and F(2s) = F(s) + E(s) F(s).
    Never divides by A, which may be singular.

    Parameters
    ----------
    A : ndarray (N, N)
    times : ndarray (m,)
        Non-negative times in units of τ.

    Returns
    -------
    E, F : ndarray (m, N, N)
    """
    identity = np.eye(A.shape[0])
    # The geometric mean of the 1- and ∞-norm bounds the 2-norm at no cost.
    norm = np.sqrt(np.linalg.norm(A, 1) * np.linalg.norm(A, np.inf))
    E_all = np.empty((len(times), *A.shape))
    F_all = np.empty_like(E_all)
    # One time after the other: a stack of temporaries would multiply the memory.
    for index, time in enumerate(times):
        reach = norm * time
        doublings = max(0, ceil(np.log2(reach / _SERIES_RADIUS))) if reach > 0 else 0
        Z = A * (-time / 2**doublings)
        F = identity + Z / _SERIES_TERMS
        for k in range(_SERIES_TERMS - 1, 1, -1):
            F = identity + Z @ F / k
        F *= time / 2**doublings
        E = identity - A @ F
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            for _ in range(doublings):
                F += E @ F
                E = E @ E
        E_all[index], F_all[index] = E, F
    if not (np.isfinite(E_all).all() and np.isfinite(F_all).all()):
        raise OverflowError(
            "the states of this unstable network exceed floating point within one step "
            f"of {times[-1]:.4g} time constants; shorten `dt` or scale the weights down."
        )
    return E_all, F_all


def plan_quadrature(
    reservoir: Reservoir, length: float, order: int, tol: float
) -> tuple[int, int]:
    """Number of panels per step and of Gauss–Legendre nodes per panel.

    The source of order k of a gain of degree p is a sum of products of up to
    k(p−1)+1 states, carried on by one more propagator, so over a panel of length h it
    behaves like exp(β s/h) with β = (k(p−1)+2) ‖A‖ h/τ. The Gauss rule errs on that by
    β^2q (q!)⁴ / ((2q+1) ((2q)!)³), relative to the panel; from order 2 on the source is
    also interpolated between the nodes, with an error that, averaged over the panel, is
    below 2 (β/4)^q / q!. From rest, the source
    of order k grows as the power kp of time, so over a short first panel it is itself of
    size β^kp, and the error is held against that. The smallest q that brings the error
    below ``tol`` is taken.

    Parameters
    ----------
    reservoir : Reservoir
    length : float
        Duration of a step.
    order : int
    tol : float
        Error allowed per panel, relative to the source of the highest order.

    Returns
    -------
    n_panels, n_nodes : int
    """
    degree = len(reservoir.coefficients) - 1
    if order == 0 or degree < 2:
        return 1, 0
    A, _ = _in_mean_time(reservoir)
    factors = order * (degree - 1) + 2
    exponent = factors * float(np.linalg.norm(A, 2)) * length / reservoir.mean_tau
    longest = _PANEL_EXPONENT if order > 1 else _SINGLE_EXPONENT
    n_panels = max(1, ceil(min(exponent / longest, 1e9)))
    if n_panels > _MAX_PANELS:
        raise ValueError(
            f"`dt` = {length:g} is {length / reservoir.mean_tau:.3g} time constants, and "
            f"order {order} would take {n_panels} quadrature panels in every step; the "
            "network has settled long before, shorten `dt` below "
            f"{length * _MAX_PANELS / n_panels:.3g}."
        )
    if order > 1:
        return n_panels, _nodes_needed(exponent / n_panels, order, degree, tol)
    # Of few long panels and many short ones, those with the fewest nodes.
    shortest = max(n_panels, ceil(exponent / _PANEL_EXPONENT))
    plans = (
        (count, _nodes_needed(exponent / count, order, degree, tol))
        for count in {n_panels, *np.linspace(n_panels, shortest, 8).round().astype(int)}
    )
    return min(plans, key=lambda plan: (plan[0] * (plan[1] + 1), plan[0]))


def _nodes_needed(beta: float, order: int, degree: int, tol: float) -> int:
    goal = log(tol) + order * degree * min(0.0, log(beta))
    if order == 1:
        # Over a long panel the source decays, and its integral with it.
        goal -= max(0.0, log(beta))

    def log_error(q: int) -> float:
        gauss = (
            2 * q * log(beta) + 4 * lgamma(q + 1) - log(2 * q + 1) - 3 * lgamma(2 * q + 1)
        )
        if order == 1:
            return gauss
        return max(gauss, log(2) + q * log(beta / 4) - lgamma(q + 1))

    n_nodes = 1
    while log_error(n_nodes) > goal:
        n_nodes += 1
    return n_nodes


def build(reservoir: Reservoir, length: float, n_nodes: int, order: int) -> Propagators:
    """Compute the propagators of one panel.

    Parameters
    ----------
    reservoir : Reservoir
    length : float
        Duration of the panel.
    n_nodes : int
        From `plan_quadrature`; 0 for the linear order.
    order : int
        The node-to-node weights `B` are only built for order ≥ 2.
    """
    n, tau = reservoir.n_neurons, reservoir.mean_tau
    A, W = _in_mean_time(reservoir)
    unit_nodes, unit_weights = _gauss_unit(n_nodes)
    times = np.append(unit_nodes, 1.0) * (length / tau)
    E, F = phi_functions(A, times)
    if isinstance(reservoir.pace, np.ndarray):
        F *= reservoir.pace
    # E(length − s_j) is E at the mirrored node.
    S = (unit_weights * length / tau)[:, None, None] * (E[-2::-1] @ W)[:n_nodes]
    B = _node_weights(A, W, unit_nodes, unit_weights, length / tau) if order >= 2 else None
    return Propagators(
        length=length,
        E=np.ascontiguousarray(E[-1].T),
        F=np.ascontiguousarray(F[-1].T),
        nodes=unit_nodes * length,
        E_nodes=_side_by_side(E[:-1], n),
        F_nodes=_side_by_side(F[:-1], n),
        S=np.ascontiguousarray(S.transpose(0, 2, 1)).reshape(n_nodes * n, n),
        B=B,
    )


def build_map(E: np.ndarray, F: np.ndarray, length: float) -> Propagators:
    """One step of a network in discrete time, y → E y + F u x, as a panel without nodes."""
    n = len(E)
    return Propagators(
        length=length,
        E=np.ascontiguousarray(E.T),
        F=np.ascontiguousarray(F.T),
        nodes=np.empty(0),
        E_nodes=np.empty((n, 0)),
        F_nodes=np.empty((n, 0)),
        S=np.empty((0, n)),
        B=None,
    )


def _in_mean_time(reservoir: Reservoir) -> tuple[np.ndarray, np.ndarray]:
    """A and W with time counted in mean time constants."""
    A = np.eye(reservoir.n_neurons) - reservoir.linear_weights
    if not isinstance(reservoir.pace, np.ndarray):
        return A, reservoir.weights
    pace = reservoir.pace[:, None]
    return pace * A, pace * reservoir.weights


def _gauss_unit(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes and weights on (0, 1)."""
    if n_nodes == 0:
        return np.empty(0), np.empty(0)
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (nodes + 1) / 2, weights / 2


def _side_by_side(stack: np.ndarray, n: int) -> np.ndarray:
    """(q, N, N) matrices M_j to the (N, q N) block row of their transposes."""
    return np.ascontiguousarray(stack.transpose(2, 0, 1)).reshape(n, len(stack) * n)


def _node_weights(
    A: np.ndarray, W: np.ndarray, nodes: np.ndarray, weights: np.ndarray, span: float
) -> np.ndarray:
    """Weight of the source at node i in the state at node j, as (q N, q N).

    (1/τ) ∫₀^{s_j} E(s_j − s) ℓ_i(s) ds W with the Lagrange polynomials ℓ_i of the
    nodes, by the same Gauss rule mapped to (0, s_j).
    """
    q, n = len(nodes), len(A)
    B = np.empty((q, n, q, n))  # [source node, source neuron, target node, target neuron]
    for j, node in enumerate(nodes):
        # E(s_j (1 − c_l)) is E at the mirrored node of the shortened panel.
        E, _ = phi_functions(A, nodes[::-1] * node * span)
        lagrange = _lagrange(nodes, nodes * node)  # (l, i)
        mix = (weights * node * span)[:, None] * lagrange
        B[:, :, j, :] = (np.tensordot(mix.T, E, axes=1) @ W).transpose(0, 2, 1)
    return B.reshape(q * n, q * n)


def _lagrange(nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Lagrange polynomials of ``nodes`` at ``points``, shape (points, nodes)."""
    values = np.ones((len(points), len(nodes)))
    for i, node in enumerate(nodes):
        others = np.delete(nodes, i)
        values[:, i] = np.prod((points[:, None] - others) / (node - others), axis=1)
    return values
