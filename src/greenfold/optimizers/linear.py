"""The linear problem: maximise κ = a·μ − (η/2) aᵀψa − (η/2) vᵀPv over u and v.

The kernel a = vᵀ G_n u maps a stimulus to the readout. `ascend` maximises max_v κ over u;
all other problems use it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from scipy.linalg import eigh, qr
from scipy.optimize import minimize

from .._base.arrays import batches, is_sparse
from .._base.checks import formable
from ..math.class_moments import Factored, Symmetric, root
from ..math.krylov import largest_eigenpairs
from ..math.margins import SoftMargin, gaussian_margin
from ..math.sphere import (
    KernelQuadratic,
    gram,
    in_singular_basis,
    maximize_on_sphere,
    solve_in_eigenbasis,
)
from ..networks.matrices import SPARSE_NEURONS, diagonal
from ..stimuli.base import Stimuli
from ..systems import LinearSystem, ResponseSum

#: Number of random projections that estimate `growth`, and relative error of a weighted sum
#: of Green's functions, which takes a few roundings.
_PROBES, _ROUNDING = 4, 16 * np.finfo(float).eps
#: Size up to which a dense decomposition is as fast as Lanczos iteration, and the relative
#: residual at which that iteration stops.
_DENSE_SIZE, _LANCZOS_TOL = 400, 1e-10
#: For κ of many projections: limit of the entries of a table.
_TABLE = 2**24
#: Amplification (`LinearProblem.growth`) above which a network needs special care; number
#: of random inputs that then find steep directions; and relative size below which a
#: direction of kernels is only rounding.
AMPLIFIED, _MANY_PROBES, _SPANNED = 1e3, 64, 1e-12
#: Drop below the best κ that counts as the value at a u where the network diverges, in
#: units of the terms of κ at the start.
_WALL = 10.0


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """The soft margin of a linear system as a function of both projections.

    u is always a matrix (n_inputs, n_channels). Kernels a are flat, channel after channel,
    like ``stimuli.mu``. ``covariance`` P (n_outputs, n_outputs) is the covariance of the
    noise on the states, a sparse array for independent noise on many outputs.
    """

    system: LinearSystem
    stimuli: Stimuli
    eta: float
    covariance: Any = None

    def at(self, eta: float) -> LinearProblem:
        """Return the same problem at another η, which keeps the cache of μ and ψ."""
        made = replace(self, eta=eta)
        vars(made)["_quadratic"] = self._quadratic
        return made

    @property
    def is_noisy(self) -> bool:
        """Whether there is noise on the states."""
        return self.covariance is not None

    @cached_property
    def _noise(self) -> tuple[np.ndarray, Any]:
        """Eigenvalues of P, ascending and non-negative, and its eigenvectors."""
        if self.covariance is None:
            return np.zeros(self.system.n_outputs), np.zeros((self.system.n_outputs, 0))
        if is_sparse(self.covariance):
            variances: np.ndarray = self.covariance.diagonal()
            order = np.argsort(variances, kind="stable")
            return variances[order], diagonal(np.ones(len(order)))[:, order]
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        return np.maximum(values, 0.0), vectors

    @cached_property
    def floor(self) -> float:
        """η p_min, with the smallest eigenvalue p_min of P.

        The noise lowers κ of every pair of unit projections by at least half of it.
        """
        return self.eta * float(self._noise[0][0])

    @cached_property
    def _root(self) -> np.ndarray:
        """S (n_outputs, rank) with P = SSᵀ, or P − p_min = SSᵀ for a sparse P."""
        values, vectors = self._noise
        if is_sparse(self.covariance):
            spread = self.covariance.diagonal() - values[0]
            if not spread.any():
                return np.zeros((len(values), 0))
            what = "noise that differs between outputs, for a given u or a mask,"
            advice = "give one standard deviation for all, or fewer `outputs`"
            formable(len(values), what, advice)
            return np.diag(np.sqrt(spread))
        keep = values > 1e-13 * values[-1]
        return vectors[:, keep[: vectors.shape[1]]] * np.sqrt(values[keep])

    def damped(self, t: float, states: np.ndarray) -> np.ndarray:
        """Return (t − floor + ηP)⁻¹ times states (n_outputs, k), for t > 0."""
        if self.covariance is None:
            return states / t
        values, vectors = self._noise
        # Subtract first: adding t to large η · values would lose its digits.
        above = (t + self.eta * (values - values[0]))[:, None]
        return vectors @ ((vectors.T @ states) / above)

    def multiplier(self, x: np.ndarray) -> float:
        """Return the t for which (t − floor + ηP)⁻¹x is a unit vector; zero for x = 0."""
        if self.covariance is None or not x.any():
            return float(np.linalg.norm(x))
        values, vectors = self._noise
        if is_sparse(vectors):
            x, vectors = vectors.T @ x, None
        found = solve_in_eigenbasis(x, self.eta * values, vectors)
        return self.floor - float(found.multiplier)

    @cached_property
    def _size(self) -> int:
        return len(self.stimuli.mu)

    def margin(self, u: np.ndarray, v: np.ndarray) -> SoftMargin:
        """Return κ of a pair of projections."""
        return self.margin_of_kernel(self.kernel(u, v), v)

    def margin_of_kernel(self, a: np.ndarray, v: np.ndarray) -> SoftMargin:
        """Return κ of a kernel a; the readout v matters only for the noise."""
        noise = 0.0 if self.covariance is None else float(v @ self.covariance @ v)
        return gaussian_margin(a, self.stimuli.mu, self.stimuli.psi, self.eta, noise)

    def gradient_at(self, a: np.ndarray) -> np.ndarray:
        """Return the gradient d = μ − ηψa of κ with respect to a."""
        return self.stimuli.mu - self.eta * (self.stimuli.psi @ a)

    def by_channel(self, d: np.ndarray) -> np.ndarray:
        """Reshape a flat kernel to (n_channels, n_steps)."""
        return d.reshape(self.stimuli.n_channels, self.stimuli.n_steps)

    def kernel(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the kernel a with a_(c,n) = vᵀ G⁽¹⁾_n u_c."""
        return (self.system.readout_response(v) @ u).T.ravel()

    @cached_property
    def _quadratic(self) -> KernelQuadratic:
        return KernelQuadratic(self.stimuli.mu, self.stimuli.psi)

    @cached_property
    def _of_readout(self) -> KernelQuadratic:
        """κ as a function of ``_seen(u) @ v``, the kernel and, with noise, Sᵀv."""
        n, rank = self._size, self._root.shape[1]
        if not rank:
            return self._quadratic
        psi = np.eye(n + rank)
        psi[:n, :n] = np.asarray(self.stimuli.psi)
        return KernelQuadratic(np.append(self.stimuli.mu, np.zeros(rank)), psi)

    def _seen(self, u: np.ndarray) -> np.ndarray:
        """Return the matrix that maps a readout to its kernel and, with noise, to Sᵀv."""
        root, R = self._root, self.system.input_response(u)
        return np.vstack([R, root.T]) if root.size else R

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Return the best v for u, and κ (paper, equation 18, `soft-margin-gradient-v`)."""
        quadratic, R = self._of_readout, self._seen(u)
        v = quadratic.maximize(R, self.eta)
        return v, self.margin_of_kernel(R[: self._size] @ v, v)

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return κ of several u (n, n_inputs, n_channels) with their best readouts.

        They have about six digits: many squares are formed at once. Without noise on the
        states, this is faster than `best_readout` in turn.
        """
        size = self.system.n_inputs * self.stimuli.n_steps * self.system.n_outputs
        if self.is_noisy or size > _TABLE:
            return np.array([self.best_readout(u)[1].value for u in U])
        table, mu, psi = self._table
        shape = len(mu), self.system.n_outputs
        found = list[np.ndarray]()
        for part in batches(len(U), 8.0 * shape[0] * shape[1], 8 * _TABLE):
            R = np.tensordot(U[part], table, axes=(1, 0))  # channel after channel
            found.append(best_margins(R.reshape(-1, *shape), mu, psi, self.eta))
        return np.concatenate(found)

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Responses (n_inputs, r · n_outputs), μ and ψ in r combinations of the steps."""
        n, steps = self.system.n_inputs, self.combined_steps
        every = self.system.input_response(np.eye(n)).reshape(n, len(steps), -1)
        columns = np.kron(np.eye(self.stimuli.n_channels), steps)
        psi = columns.T @ (self.stimuli.psi @ columns)
        return (steps.T @ every).reshape(n, -1), columns.T @ self.stimuli.mu, psi

    @cached_property
    def probed(self) -> np.ndarray:
        """Responses to random input projections, (n_probes, n_steps, n_outputs)."""
        system, n_steps = self.system, self.stimuli.n_steps
        n_probes = 2 + 2 * n_steps // system.n_outputs  # twice as many columns as steps
        if self.growth > AMPLIFIED:
            n_probes = max(n_probes, _MANY_PROBES)
        shape = (system.n_inputs, min(system.n_inputs, n_probes))
        u = np.random.default_rng(1).standard_normal(shape)
        R = system.input_response(u / np.sqrt(shape[1]))
        return R.reshape(shape[1], n_steps, -1)

    @cached_property
    def combined_steps(self) -> np.ndarray:
        """Orthonormal combinations of the steps (n_steps, r) that span all kernels.

        The kernels of a network that moves smoothly span few dimensions, for example 30 for
        140 steps.
        """
        columns = self.probed.transpose(1, 0, 2).reshape(self.stimuli.n_steps, -1)
        made = qr(columns, mode="economic", pivoting=True)
        Q, R, _ = cast("tuple[np.ndarray, ...]", made)
        sizes = np.abs(np.diag(R))
        return Q[:, sizes > _SPANNED * sizes.max(initial=0.0)]

    def readout_terms(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return b and Q of κ = b·v − (η/2) vᵀQv at one u, for unit v."""
        R, P = self.system.input_response(u), self.covariance
        Q = gram(R, self.stimuli.psi)
        return R.T @ self.stimuli.mu, Q if P is None else Q + (P + P.T) / 2

    def input_terms(self, v: np.ndarray) -> tuple[np.ndarray, Symmetric]:
        """Return b and Q of κ = b·u − (η/2) uᵀQu at one v, for unit u, flat by rows.

        κ lacks the cost of noise on the states, which does not depend on u. Many inputs
        give a factor of Q.
        """
        if self.system.n_inputs >= SPARSE_NEURONS:
            rows = self.system.readout_response(v)
            mu = self.by_channel(self.stimuli.mu)
            b = (rows.T @ mu.T).ravel()
            basis, sizes = root(self.stimuli.psi)
            columns = (basis * sizes).reshape(*mu.shape, -1)
            factor = np.einsum("ni,cnr->icr", rows, columns, optimize=True)
            return b, Factored(factor.reshape(b.size, -1))
        (b,), (Q,) = self.terms_of_readouts(v[None])
        return b, Q

    def terms_of_readouts(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return b and Q of `input_terms` for each row of V, (k, n) and (k, n, n)."""
        rows = self.system.readout_response(V.T)  # (n_steps, n_inputs, n_readouts)
        mu = self.by_channel(self.stimuli.mu)
        psi = np.asarray(self.stimuli.psi).reshape(*mu.shape, *mu.shape)
        b = np.einsum("cn,nir->ric", mu, rows, optimize=True).reshape(len(V), -1)
        half = np.einsum("cnem,mjr->rcnje", psi, rows, optimize=True)
        terms = np.einsum("nir,rcnje->ricje", rows, half, optimize=True)
        Q = terms.reshape(len(V), b.shape[1], -1)
        return b, (Q + Q.swapaxes(1, 2)) / 2

    def readouts(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Return the optimal readouts for many η at one u, (n_etas, n_outputs)."""
        return self._of_readout.readouts(self._seen(u), etas)

    def kernels(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Return the kernels of `readouts`, (n_channels · n_steps, n_etas)."""
        quadratic, R = self._of_readout, self._seen(u)
        return (R @ quadratic.readouts(R, etas).T)[: self._size]

    def best_input(self, v: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Return the best u for v, and κ (paper, cases A and B of the input projection)."""
        rows = self.system.readout_response(v)
        n_channels = self.stimuli.n_channels
        if isinstance(self.stimuli.psi, Factored):
            flat = self._best_in_span(rows)
        else:
            # Row (c, n) holds l_n in the columns of channel c: a = L vec(uᵀ).
            flat = self._quadratic.maximize(np.kron(np.eye(n_channels), rows), self.eta)
        u = flat.reshape(n_channels, -1).T
        return u, self.margin_of_kernel((rows @ u).T.ravel(), v)

    def _best_in_span(self, rows: np.ndarray) -> np.ndarray:
        """Return the flat u of `best_input` from the factor of ψ, without forming L."""
        factor, white, rest = self._quadratic.root_of_psi
        shape = (self.stimuli.n_channels, self.stimuli.n_steps)

        def pulled(columns: np.ndarray) -> np.ndarray:
            """Return Lᵀ times columns (D, k), channel by channel."""
            parts = rows.T @ columns.reshape(*shape, -1)
            return parts.reshape(-1, columns.shape[-1])

        size = np.sqrt(shape[0]) * float(np.linalg.norm(rows) * np.linalg.norm(rest))
        seen, beyond = pulled(factor).T, pulled(rest[:, None])[:, 0]
        etas = np.array([self.eta])
        return in_singular_basis(seen, beyond, white, etas, 1e-13 * size)[0][0]

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal v, κ, and ∂κ/∂u at that v, along the sphere."""
        stimuli, quadratic, R = self.stimuli, self._of_readout, self._seen(u)
        v = quadratic.maximize(R, self.eta)
        # Like `margin_of_kernel` and `gradient_at`, but with only one product by ψ.
        a, rest = np.split(R @ v, [self._size])
        curved = stimuli.psi @ a
        separation = float(a @ stimuli.mu)
        variance = 0.5 * self.eta * float(a @ curved + rest @ rest)
        variance += 0.5 * self.floor * is_sparse(self.covariance)
        d = (stimuli.mu - self.eta * curved).reshape(stimuli.n_channels, stimuli.n_steps)
        gradient = self.system.response_sum(d).pull(v)
        return v, SoftMargin(separation - variance, separation, variance), gradient

    def kernel_of(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return the kernel of Σ_r A_r B_rᵀ.

        A has the shape (n_outputs, r) and B the shape (n_inputs, n_channels, r).
        """
        rows = self.system.readout_response(A)  # (n_steps, n_inputs, r)
        return np.einsum("nir,icr->cn", rows, B).ravel()

    @cached_property
    def growth(self) -> float:
        """Amplification by the system, the largest ‖G_n‖ over the steps n.

        It is estimated from random u, for which ‖G_n u‖² is ‖G_n‖²_F / N on average.
        """
        rng = np.random.default_rng(0)
        u = rng.standard_normal((self.system.n_inputs, _PROBES))
        u /= np.linalg.norm(u, axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by `best_atom`
            response = self.system.input_response(u)
            response = response.reshape(_PROBES, -1, self.system.n_outputs)
            square = (response**2).sum(2).mean(0) * self.system.n_inputs
        return float(np.sqrt(square.max()))

    @cached_property
    def is_formed(self) -> bool:
        """Whether the system forms G(d) as a matrix, or only multiplies with it."""
        nothing = np.zeros((self.stimuli.n_channels, self.stimuli.n_steps))
        return self.system.response_sum(nothing).matrix() is not None

    def rounding(self, d: np.ndarray) -> float:
        """Return the possible rounding error of the singular values of G(d)."""
        return float(_ROUNDING * np.abs(d).sum() * self.growth)

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """Return G(d) for a gradient d with respect to the kernel."""
        return self.system.response_sum(self.by_channel(d))

    def best_atom(self, d: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the largest singular value of G(d) = Σ_n d_n G⁽¹⁾_n, with its u and v.

        The value may be slightly too large, but never too small.
        """
        n_inputs, n_channels = self.system.n_inputs, self.stimuli.n_channels
        if not d.any():
            u = np.eye(1, n_inputs).T * np.eye(1, n_channels)
            return 0.0, u, np.eye(1, self.system.n_outputs)[0]
        sums = map(self.system.response_sum, [self.by_channel(d)])
        sigma, u, left = Responses(sums, n_channels, n_inputs).leading()
        return sigma, u, left[0]


def best_margins(R: np.ndarray, mu: np.ndarray, psi: np.ndarray, eta: float) -> np.ndarray:
    """Return max_v κ for many responses or many stimuli, to about six digits.

    R (..., D, n_outputs) holds responses, and μ (..., D) and ψ (..., D, D) the moments of
    the stimuli; leading dimensions are a batch.
    """
    seen = np.flatnonzero(np.abs(R).reshape(-1, *R.shape[-2:]).max((0, 2)) > 0)
    made, mu, psi = R[..., seen, :], mu[..., seen], psi[..., seen, :][..., seen]
    if len(seen) < R.shape[-1]:
        # One more direction represents all directions along which κ does not change.
        triangle = np.linalg.qr(made.swapaxes(-1, -2)).R.swapaxes(-1, -2)
        made = np.concatenate([triangle, np.zeros_like(triangle[..., :1])], axis=-1)
    Q = eta * (made.swapaxes(-1, -2) @ psi @ made)
    b = (mu[..., None, :] @ made)[..., 0, :]
    return maximize_on_sphere(b, (Q + Q.swapaxes(-1, -2)) / 2).value


def problem_under_noise(
    system: LinearSystem, stimuli: Stimuli, eta: float, noise: dict[str, np.ndarray]
) -> LinearProblem:
    """Return the linear problem with noise of these covariances; see `Device.noise`."""
    if "input" in noise:
        psi = np.asarray(stimuli.psi) + noise["input"]
        stimuli = Stimuli(stimuli.mu, psi, stimuli.n_channels, stimuli.n_steps)
    at_states = [noise[name] for name in ("state", "readout") if name in noise]
    covariance = sum(at_states[1:], at_states[0]) if at_states else None
    return LinearProblem(system, stimuli, eta, covariance)


def noise_cost(
    problem: LinearProblem, u: np.ndarray, v: np.ndarray, noise: dict[str, np.ndarray]
) -> dict[str, float]:
    """Return how much each noise lowers κ of a pair of projections."""
    met = {"state": v, "readout": v}
    if "input" in noise:
        met["input"] = (problem.system.readout_response(v) @ u).T.ravel()
    return {k: 0.5 * problem.eta * float(met[k] @ P @ met[k]) for k, P in noise.items()}


class Outcome:
    """The outcome of a search."""

    status: str

    def raise_if_interrupted(self) -> None:
        """Raise KeyboardInterrupt again if Ctrl-C ended this part of a larger task."""
        if self.status == "interrupted":
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Candidate(Outcome):
    """A pair at the end of one run of a method; ``history`` is as in `Projections`."""

    u: np.ndarray
    v: np.ndarray
    margin: SoftMargin
    status: str
    history: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    upper_bound: float | None = None


class Objective(Protocol):
    """The method that an ascent needs from a problem."""

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal v, κ, and ∂κ/∂u at that v, for u (n_neurons, n_channels)."""
        ...


class _Stopped(Exception):
    """Raised to end the minimiser within its line search; carries the status."""


def ascend(
    objective: Objective,
    u: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    reach: float = 1.0,
) -> Candidate:
    """Maximise F(u) = max_v κ(u, v) over unit input projections from one start, by L-BFGS.

    By the envelope theorem the gradient of F is ∂κ/∂u at the optimal readout v, which each
    evaluation solves exactly. F(w/‖w‖) extends F to all vectors w, so a quasi-Newton method
    for unconstrained variables works on the sphere.

    ``max_iter`` limits the evaluations after the first; ``tol`` is the relative change of κ
    per step at which to stop. ``reach`` is the length of the first trial step. Near an
    optimum, choose a small reach: a step of one would leave it and cost evaluations.
    """
    best: tuple[np.ndarray, np.ndarray, SoftMargin] | None = None
    history: list[tuple[float, float]] = []
    # The tolerance of L-BFGS is relative to max(|κ|, 1), and κ is usually far below one.
    # So use the terms of κ at the start as the unit.
    unit = 0.0

    def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, unit
        if len(history) > max_iter:
            raise _Stopped("max_iterations")
        flat = reach * flat
        norm = np.linalg.norm(flat)
        point = (flat / norm).reshape(u.shape)
        try:
            v, margin, gradient = objective.evaluate(point)
        except KeyboardInterrupt:
            raise _Stopped("interrupted") from None
        except FloatingPointError:
            # An integrated network may diverge at a trial projection, which then has no κ.
            # Return a high value, so that the line search turns back.
            if best is None:
                raise
            history.append(history[-1])
            return _WALL - best[2].value / unit, np.zeros_like(flat)
        if best is None or margin.value > best[2].value:
            best = point, v, margin
        history.append((best[2].separation, best[2].variance))
        if not unit:
            unit = abs(margin.separation) + abs(margin.variance) or 1.0
        tangent = gradient - (gradient * point).sum() * point
        return -margin.value / unit, -reach * tangent.ravel() / (norm * unit)

    status = "converged"
    try:
        minimize(
            negative,
            u.ravel() / reach,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxfun": max_iter + 2,
                "maxiter": max_iter + 2,
                "maxcor": 20,
                "ftol": tol,
                "gtol": 0.0,
            },
        )
    except _Stopped as stopped:
        status = str(stopped)
    if best is None:
        raise KeyboardInterrupt
    return Candidate(*best, status, history)


class Responses:
    """The stacked matrices G(d_j) of several signals, and their largest singular values.

    Directions are flat, channel after channel. Lanczos iteration finds the singular values
    of large matrices and of matrices that are never formed; its possible error is added, so
    that a bound remains valid.
    """

    def __init__(self, sums: Iterable[ResponseSum], n_channels: int, n_inputs: int) -> None:
        self._sums: list[ResponseSum] = []
        self._shape, made = (n_channels, n_inputs), list[np.ndarray | None]()
        self._matrices: np.ndarray | None = None
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            for one in sums:
                self._sums.append(one)
                made.append(one.matrix())
        formed = [one for one in made if one is not None]
        if len(formed) == len(made):
            self._matrices = np.array(formed) if len(made) > 1 else formed[0][None]
        if self._matrices is not None and not np.isfinite(self._matrices).all():
            problem = "the response of this network to a pulse exceeds the range of floats"
            advice = "read it earlier, or scale the weights down"
            raise OverflowError(f"{problem} before the readout; {advice}.")

    def as_projection(self, flat: np.ndarray) -> np.ndarray:
        """Reshape flat directions (n, …) to (n_inputs, n_channels, …)."""
        return flat.reshape(*self._shape, *flat.shape[1:]).swapaxes(0, 1)

    def drive(self, flat: np.ndarray) -> np.ndarray:
        """Return the states (n_signals, n_outputs, k) for flat directions in k columns."""
        if self._matrices is not None:
            return self._matrices @ flat
        u = self.as_projection(flat)
        return np.stack([one.drive(u) for one in self._sums])

    def pull(self, states: np.ndarray, factors: np.ndarray | None = None) -> np.ndarray:
        """Return Σ_j factor_j G(d_j)ᵀ y_j of states y (n_signals, n_outputs, …), flat."""
        if self._matrices is not None:
            pairs = zip(self._matrices, states, strict=True)
            pulled = np.stack([m.T @ y for m, y in pairs])
        else:
            pairs = zip(self._sums, states, strict=True)
            each = [one.pull(y).swapaxes(0, 1) for one, y in pairs]
            pulled = np.stack(each).reshape(len(each), -1, *states.shape[2:])
        return pulled.sum(0) if factors is None else np.tensordot(factors, pulled, axes=1)

    @property
    def is_large(self) -> bool:
        """Whether an iterative search is faster than a dense decomposition."""
        if self._matrices is None:
            return True
        n_signals, n_outputs, n = self._matrices.shape
        return min(n_signals * n_outputs, n) > _DENSE_SIZE

    def formed(self) -> np.ndarray:
        """Return the matrices (n_signals, n_outputs, n), formed even if they are large."""
        if self._matrices is None:
            self._matrices = self.drive(np.eye(self._shape[0] * self._shape[1]))
        return self._matrices

    def leading(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Return σ_max of the stack, its u, and its left vectors (n_signals, n_outputs).

        The value may be slightly too large, but never too small.
        """
        if not self.is_large:
            stacked = self.formed().reshape(-1, self._shape[0] * self._shape[1])
            sigma, flat, left = leading_triplet(stacked)
            return sigma, self.as_projection(flat), left.reshape(len(self._sums), -1)
        values, vectors, driven = self.largest(lambda y: y, 1)
        left = driven[:, :, 0]
        size = float(np.linalg.norm(left))
        sigma = float(np.sqrt(max(values[0], 0.0)))
        return sigma, self.as_projection(vectors[:, 0]), left / (size or 1.0)

    def largest(
        self,
        between: Callable[[np.ndarray], np.ndarray],
        k: int,
        *,
        start: np.ndarray | None = None,
        tol: float = _LANCZOS_TOL,
        rise: float = np.inf,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the k largest eigenvalues and vectors of pull · between · drive.

        They ascend. The last value may be slightly too large, but never too small. The last
        result is between · drive of the vectors. ``start`` holds flat directions to start
        from; for ``tol`` and ``rise``, see `largest_eigenpairs`.
        """
        size = self._shape[0] * self._shape[1]
        # A random direction sees every eigenvector, also those that the start excludes.
        columns = np.random.default_rng(0).standard_normal((size, 1))
        if start is not None:
            columns = np.concatenate([start, columns], axis=1)

        def square(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            driven = between(self.drive(flat))
            return self.pull(driven), driven.reshape(-1, flat.shape[1])

        found = largest_eigenpairs(square, columns, k, tol=tol, rise=rise)
        driven = found.beside.reshape(len(self._sums), -1, found.vectors.shape[1])
        return np.append(found.values[:-1], found.highest), found.vectors, driven


def leading_triplet(matrix: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the largest singular value of a dense matrix M, its right and left vector.

    It comes from the largest eigenpair of M Mᵀ or MᵀM, and is as accurate as from a
    decomposition of M.
    """
    # Scale M to order one by a power of two, so that squares do not overflow.
    exponent = int(np.frexp(np.abs(matrix).max())[1])
    scaled = np.ldexp(matrix, -exponent)
    wide = scaled.shape[0] <= scaled.shape[1]
    square = scaled @ scaled.T if wide else scaled.T @ scaled
    last = len(square) - 1
    values, vectors = eigh(square, subset_by_index=[last, last], check_finite=False)
    if not vectors.size:  # LAPACK finds no pair for some multiples of the identity
        values, vectors = np.linalg.eigh(square)
        values, vectors = values[-1:], vectors[:, -1:]
    one = vectors[:, 0]
    other = (scaled.T if wide else scaled) @ one
    size = float(np.linalg.norm(other))
    if size == 0:  # the matrix is zero
        return 0.0, np.eye(1, matrix.shape[1])[0], np.eye(1, matrix.shape[0])[0]
    other = other / size
    sigma = float(np.ldexp(max(size, np.sqrt(values[0])), exponent))
    return (sigma, other, one) if wide else (sigma, one, other)
