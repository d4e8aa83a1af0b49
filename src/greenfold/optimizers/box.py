"""Masks whose entries lie in a range: ascent over the unit vectors in it."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from .ascent import Objective
from .linear import LinearProblem
from .result import Candidate

#: Evaluations of one ascent; those that every start is given, and how many of them, the
#: best, are then taken further.
_EVALUATIONS, _GLANCE, _AHEAD = 400, 30, 2
#: A step is taken if it gains this share of its slope over the least of the last few κ:
#: spectral steps are long because they need not rise every time.
_SUFFICIENT, _REMEMBERED = 1e-4, 8
#: Relative gain in so many steps that ends the ascent.
_TOL = 1e-9
#: Starts drawn around the free optimum, and anywhere.
_DRAWN = 4
#: Rounds in which entries change from one end of the range to the other.
_ROUNDS = 50


def into_box(w: np.ndarray, low: float, high: float) -> np.ndarray:
    """The unit vector with entries in [low, high] that is nearest to w.

    It is w times a positive factor, clipped: as the factor grows from zero to infinity the
    norm of that grows to the largest one along these signs. Entries reach and leave the
    ends of the range one after the other; between two of these, the squared norm is that
    of the entries at their ends plus the factor squared times that of the others.
    """
    if not np.abs(w).max() > 0:
        w = np.ones_like(w)
    flat = w.ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.concatenate([low / flat, high / flat])
    turns = np.sort(turns[np.isfinite(turns) & (turns > 0)])

    def clipped(factor: float) -> np.ndarray:
        return np.minimum(np.maximum(factor * flat, low), high)

    def square(factor: float) -> float:
        made = clipped(factor)
        return float(made @ made)

    place = bisect_left(turns, 1.0, key=square)
    before = turns[place - 1] if place else 0.0
    inside = (before + turns[place]) / 2 if place < len(turns) else 2 * before + 1.0
    made = clipped(inside)
    free = (made > low) & (made < high)
    room, length = 1 - float((made[~free] ** 2).sum()), float((flat[free] ** 2).sum())
    if room > 0 and length > 0:
        return clipped(np.sqrt(room / length)).reshape(w.shape)
    # All of w points out of the range: fill it up along its largest entries.
    made = clipped(2 * turns[-1] if len(turns) else 1.0)
    for i in np.argsort(flat)[::-1]:
        room = 1 - float(made @ made) + made[i] ** 2
        made[i] = np.clip(np.sqrt(max(room, 0.0)), low, high)
        if abs(made @ made - 1) < 1e-12:
            break
    return made.reshape(w.shape)


def ascend_in_box(
    objective: Objective,
    u: np.ndarray,
    low: float,
    high: float,
    *,
    max_evaluations: int = _EVALUATIONS,
    enough: float = np.inf,
) -> Candidate:
    """Projected gradient ascent with spectral steps (Birgin, Martínez & Raydan 2000).

    From what `into_box` makes of u, until κ is ``enough``; the best pair met.
    """
    u = into_box(u, low, high)
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
            stuck = float(np.linalg.norm(moved)) < 1e-12 or promised <= 0
            if stuck or evaluations >= max_evaluations:
                return Candidate(*best, "converged")
            v, margin, gradient = objective.evaluate(new)
            evaluations += 1
            if margin.value >= min(values[-_REMEMBERED:]) + _SUFFICIENT * promised:
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
    return Candidate(*best, "converged")


def _tangent(gradient: np.ndarray, u: np.ndarray) -> np.ndarray:
    return gradient - (gradient * u).sum() * u


def solve_in_box(
    problem: LinearProblem,
    limits: tuple[float, float],
    u: np.ndarray,
    enough: float,
    rng: np.random.Generator,
) -> Candidate:
    """The best mask in a range, from the free optimum u with both signs and its sizes.

    All starts are taken some way, those that are ahead then to the end.
    """
    low, high = limits
    starts = [u, np.abs(u)] if low == -high else [u, -u, np.abs(u)]  # −u is the same mask
    size = np.sqrt((u**2).mean())
    starts += [u + size * w for w in rng.standard_normal((_DRAWN, *u.shape))]
    starts += list(rng.standard_normal((_DRAWN, *u.shape)))
    ends: list[Candidate] = []
    for start in starts:
        end = ascend_in_box(
            problem, start, low, high, max_evaluations=_GLANCE, enough=enough
        )
        if end.margin.value >= enough:
            return end
        ends.append(end)
    ends.sort(key=lambda end: end.margin.value, reverse=True)
    ends[:_AHEAD] = [
        ascend_in_box(problem, end.u, low, high, enough=enough) for end in ends[:_AHEAD]
    ]
    best = max(ends, key=lambda end: end.margin.value)
    if low < 0 and np.isfinite(high - low):
        best = _swapped(problem, best, low, high, enough)
    return best


def _swapped(
    problem: LinearProblem, best: Candidate, low: float, high: float, enough: float
) -> Candidate:
    """Entries moved from one end of the range to the other, while that helps.

    An ascent does not get there: on the way the norm would not be one.
    """
    for _ in range(_ROUNDS):
        flat = best.u.ravel()
        tried = []
        for i in np.flatnonzero((flat <= low + 1e-9) | (flat >= high - 1e-9)):
            other = flat.copy()
            other[i] = high if flat[i] < 0 else low
            inside = into_box(other.reshape(best.u.shape), low, high)
            tried.append((problem.best_readout(inside)[1].value, i, inside))
        tried.sort(key=lambda one: one[:2], reverse=True)
        for _, _, start in tried[:_AHEAD]:
            found = ascend_in_box(problem, start, low, high, enough=enough)
            if found.margin.value > best.margin.value * (1 + 1e-9):
                best = found
                break
        else:
            return best
    return best
