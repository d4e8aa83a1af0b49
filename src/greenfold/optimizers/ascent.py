"""Ascent of F(u) = max_v κ(u, v) over unit input projections.

By the envelope theorem the gradient of F is ∂κ/∂u at the optimal v, so the readout never
has to be followed: each evaluation solves it exactly. The sphere is taken by extending F
to all of space as F(w/‖w‖); its gradient is then the Riemannian one, and a quasi-Newton
method for free variables needs no change.

Ascent of max_v κ(u, v) over unit input projections whose entries lie in a range.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.optimize import brentq, minimize

from ..math.margins import SoftMargin
from .result import Candidate

#: Height of the wall where a network diverges, in units of the terms of κ at the start.
_WALL = 10.0


class Objective(Protocol):
    """What an ascent needs to know of a problem."""

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v, for u of shape (n_neurons, n_channels)."""
        ...


class _Interrupted(Exception):
    """Ctrl-C, carried through the minimiser."""


class _Exhausted(Exception):
    """The evaluations are used up; the minimiser itself would finish its line search."""


def ascend(
    objective: Objective,
    u: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    scale: np.ndarray | None = None,
    reach: float = 1.0,
) -> Candidate:
    """Maximise F from one start by L-BFGS.

    Parameters
    ----------
    objective : Objective
    u : ndarray (n_inputs, n_channels)
        Where to start.
    max_iter : int
        Largest number of evaluations after the first.
    tol : float
        Relative change of κ per step that ends the ascent.
    scale : ndarray (n_inputs, 1), optional
        Units of the rows of u in which to step; one by default.
    reach : float
        Length of the first trial step, in these units. L-BFGS knows nothing of the
        curvature yet; near an optimum a step of one would leave it, and cost evaluations
        on the way back.
    """
    units = np.broadcast_to(1.0 if scale is None else scale, u.shape).ravel() * reach
    best: tuple[np.ndarray, np.ndarray, SoftMargin] | None = None
    history: list[tuple[float, float]] = []
    # L-BFGS takes its tolerance relative to max(|κ|, 1), and κ is usually far below one:
    # the terms of κ at the start set the unit.
    unit = 0.0

    def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, unit
        if len(history) > max_iter:
            raise _Exhausted
        flat = units * flat
        norm = np.linalg.norm(flat)
        point = (flat / norm).reshape(u.shape)
        try:
            v, margin, gradient = objective.evaluate(point)
        except KeyboardInterrupt:
            raise _Interrupted from None
        except FloatingPointError:
            # An integrated network may diverge at a projection on the way, and there is
            # no κ there: a wall, before which the line search turns.
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
        return -margin.value / unit, -units * tangent.ravel() / (norm * unit)

    status = "converged"
    try:
        minimize(
            negative,
            u.ravel() / units,
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
    except _Exhausted:
        status = "max_iterations"
    except _Interrupted:
        status = "interrupted"
        if best is None:
            raise KeyboardInterrupt from None
    assert best is not None
    return Candidate(*best, history, status)


_EVALUATIONS = 400
#: A step is taken if it gains this share of its slope over the least of the last few κ:
#: spectral steps are long because they need not rise every time.
_SUFFICIENT = 1e-4
_REMEMBERED = 8
#: Relative gain in so many steps that ends the ascent.
_TOL = 1e-9


def into_box(w: np.ndarray, low: float, high: float) -> np.ndarray:
    """The unit vector with entries in [low, high] that is nearest to w.

    It is w times a positive factor, clipped: as the factor grows from zero to infinity the
    norm of that grows to the largest one along these signs.
    """
    if not np.abs(w).max() > 0:
        w = np.ones_like(w)
    if low <= 0 <= high:
        made = _stretched(w, low, high)
        if made is not None:
            return made

    def clipped(t: float) -> np.ndarray:
        return np.clip(t * w, low, high)

    def excess(log_t: float) -> float:
        return float(np.linalg.norm(clipped(np.exp(log_t)))) - 1.0

    unit = np.log(1 / np.linalg.norm(w))
    near, far = unit - 60.0, unit + 60.0
    if excess(near) >= 0:  # the range itself is away from zero
        near = far = near
    if excess(far) > 0 > excess(near):
        root: Any = brentq
        return clipped(np.exp(root(excess, near, far, xtol=1e-14, rtol=1e-14)))
    # All of w points out of the range: fill it up along its largest entries.
    made = clipped(np.exp(far)).ravel()
    for i in np.argsort(w, axis=None)[::-1]:
        room = 1 - float(made @ made) + made[i] ** 2
        made[i] = np.clip(np.sqrt(max(room, 0.0)), low, high)
        if abs(made @ made - 1) < 1e-12:
            break
    return made.reshape(w.shape)


def _stretched(w: np.ndarray, low: float, high: float) -> np.ndarray | None:
    """`into_box` for a range around zero; None where no factor makes w long enough.

    Entries reach their ends one after the other as the factor t grows; between two of
    these, the squared norm is what has arrived plus t² times what has not.
    """
    flat = w.ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        end = np.where(flat > 0, high, low)
        arrival = np.where(flat == 0, np.inf, end / flat)
    order = np.argsort(arrival, kind="stable")
    arrival = arrival[order]
    at_end = np.where(np.isfinite(arrival), end[order], 0.0) ** 2
    arrived = np.concatenate([[0.0], np.cumsum(at_end)])
    left = np.concatenate([np.cumsum(flat[order][::-1] ** 2)[::-1], [0.0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.sqrt((1 - arrived) / left)
    fits = (t <= np.append(arrival, np.inf)) & (t >= np.append(0.0, arrival))
    fits &= np.isfinite(t)
    if not fits.any():
        return None
    return np.clip(t[np.argmax(fits)] * w, low, high)


def ascend_in_box(
    objective: Objective,
    u: np.ndarray,
    low: float,
    high: float,
    *,
    max_evaluations: int = _EVALUATIONS,
    enough: float = np.inf,
) -> tuple[np.ndarray, np.ndarray, SoftMargin]:
    """Projected gradient ascent with spectral steps (Birgin, Martínez & Raydan 2000).

    Parameters
    ----------
    objective : Objective
    u : ndarray (n_inputs, n_channels)
        A unit vector in the range.
    low, high : float
    max_evaluations : int
    enough : float
        κ at which to stop.

    Returns
    -------
    u, v : ndarray
    margin : SoftMargin
        Of the best pair met.
    """
    v, margin, gradient = objective.evaluate(u)
    best = u, v, margin
    slope = _tangent(gradient, u)
    step = 1.0 / max(float(np.linalg.norm(slope)), 1e-300)
    values, tops = [margin.value], [margin.value]
    evaluations = 1
    while best[2].value < enough:
        length = step
        while True:
            new = into_box(u + length * slope, low, high)
            moved = new - u
            promised = float((slope * moved).sum())
            if float(np.linalg.norm(moved)) < 1e-12 or promised <= 0:
                return best
            if evaluations >= max_evaluations:
                return best
            v, margin, gradient = objective.evaluate(new)
            evaluations += 1
            least = min(values[-_REMEMBERED:])
            if margin.value >= least + _SUFFICIENT * promised:
                break
            length *= 0.25
        new_slope = _tangent(gradient, new)
        curvature = float((moved * (slope - new_slope)).sum())
        step = float((moved**2).sum()) / curvature if curvature > 0 else 4 * length
        step = float(np.clip(step, 1e-6 * length, 1e6 * length))
        u, slope = new, new_slope
        values.append(margin.value)
        if margin.value > best[2].value:
            best = u, v, margin
        tops.append(best[2].value)
        if len(tops) > _REMEMBERED:
            gain = tops[-1] - tops[-1 - _REMEMBERED]
            if gain <= _TOL * abs(tops[-1]):
                break
    return best


def _tangent(gradient: np.ndarray, u: np.ndarray) -> np.ndarray:
    return gradient - (gradient * u).sum() * u
