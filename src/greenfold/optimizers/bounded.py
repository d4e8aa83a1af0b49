"""Ascent of max_v κ(u, v) over unit input projections whose entries lie in a range."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from ..margins import SoftMargin
from .ascent import Objective

_EVALUATIONS = 400
#: Share of the slope that a step must gain, and the relative gain that ends the ascent.
_SUFFICIENT = 1e-4
_TOL = 1e-10


def into_box(w: np.ndarray, low: float, high: float) -> np.ndarray:
    """The unit vector with entries in [low, high] that is nearest to w.

    It is w times a positive factor, clipped: as the factor grows from zero to infinity the
    norm of that grows to the largest one along these signs.
    """
    if not np.abs(w).max() > 0:
        w = np.ones_like(w)

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
        made = clipped(np.exp(root(excess, near, far, xtol=1e-14, rtol=1e-14)))
    else:
        # All of w points out of the range: fill it up along its largest entries.
        made = clipped(np.exp(far)).ravel()
        for i in np.argsort(w, axis=None)[::-1]:
            room = 1 - float(made @ made) + made[i] ** 2
            made[i] = np.clip(np.sqrt(max(room, 0.0)), low, high)
            if abs(made @ made - 1) < 1e-12:
                break
        made = made.reshape(w.shape)
    return made


def ascend_in_box(
    objective: Objective, u: np.ndarray, low: float, high: float
) -> tuple[np.ndarray, np.ndarray, SoftMargin]:
    """Projected gradient ascent with spectral steps (Birgin, Martínez & Raydan 2000).

    Parameters
    ----------
    objective : Objective
    u : ndarray (n_inputs, n_channels)
        A unit vector in the range.
    low, high : float

    Returns
    -------
    u, v : ndarray
    margin : SoftMargin
    """
    v, margin, gradient = objective.evaluate(u)
    slope = _tangent(gradient, u)
    step = 1.0 / max(float(np.linalg.norm(slope)), 1e-300)
    evaluations = 1
    while evaluations < _EVALUATIONS:
        length = step
        while True:
            new = into_box(u + length * slope, low, high)
            moved = new - u
            promised = float((slope * moved).sum())
            if float(np.linalg.norm(moved)) < 1e-12 or promised <= 0:
                return u, v, margin
            new_v, new_margin, new_gradient = objective.evaluate(new)
            evaluations += 1
            if new_margin.value >= margin.value + _SUFFICIENT * promised:
                break
            length *= 0.25
            if evaluations >= _EVALUATIONS:
                return u, v, margin
        new_slope = _tangent(new_gradient, new)
        curvature = float((moved * (slope - new_slope)).sum())
        step = float((moved**2).sum()) / curvature if curvature > 0 else 4 * length
        step = float(np.clip(step, 1e-6 * length, 1e6 * length))
        gain = new_margin.value - margin.value
        u, v, margin, slope = new, new_v, new_margin, new_slope
        if gain <= _TOL * abs(margin.value):
            break
    return u, v, margin


def _tangent(gradient: np.ndarray, u: np.ndarray) -> np.ndarray:
    return gradient - (gradient * u).sum() * u
