"""Ascent of F(u) = max_v κ(u, v) over unit input projections.

By the envelope theorem the gradient of F is ∂κ/∂u at the optimal readout v, which each
evaluation solves exactly. F is extended to all of space as F(w/‖w‖), so a quasi-Newton
method for free variables works on the sphere.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from ..math.margins import SoftMargin
from .result import Candidate

#: Value where a network diverges, in units of the terms of κ at the start.
_WALL = 10.0


class Objective(Protocol):
    """What an ascent needs from a problem."""

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v, for u of shape (n_neurons, n_channels)."""
        ...


class _Stopped(Exception):
    """Carries a status through the minimiser, which would finish its line search."""


def ascend(
    objective: Objective,
    u: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    scale: Any = None,
    reach: float = 1.0,
) -> Candidate:
    """Maximise F from one start by L-BFGS.

    ``max_iter`` counts the evaluations after the first; ``tol`` is the relative change of κ
    per step at which to stop. Steps are taken in units of ``scale`` (n_inputs, 1) for the
    rows of u, and ``reach`` is the length of the first trial step in these units: near an
    optimum, a step of one would leave it and cost evaluations.
    """
    units = np.broadcast_to(1.0 if scale is None else scale, u.shape).ravel() * reach
    best: tuple[np.ndarray, np.ndarray, SoftMargin] | None = None
    history: list[tuple[float, float]] = []
    # L-BFGS takes its tolerance relative to max(|κ|, 1), and κ is usually far below one:
    # use the terms of κ at the start as the unit.
    unit = 0.0

    def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, unit
        if len(history) > max_iter:
            raise _Stopped("max_iterations")
        flat = units * flat
        norm = np.linalg.norm(flat)
        point = (flat / norm).reshape(u.shape)
        try:
            v, margin, gradient = objective.evaluate(point)
        except KeyboardInterrupt:
            raise _Stopped("interrupted") from None
        except FloatingPointError:
            # An integrated network may diverge at a projection on the way, where there is
            # no κ. Return a high value, so that the line search turns back.
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
        options = {"maxfun": max_iter + 2, "maxiter": max_iter + 2, "maxcor": 20}
        options |= {"ftol": tol, "gtol": 0.0}
        start = u.ravel() / units
        minimize(negative, start, jac=True, method="L-BFGS-B", options=options)
    except _Stopped as stopped:
        status = str(stopped)
    if best is None:
        raise KeyboardInterrupt
    return Candidate(*best, status, history)
