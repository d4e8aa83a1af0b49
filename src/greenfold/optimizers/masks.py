"""Masks for hardware, and readouts of a few bits.

Masks are unit vectors, so the upper bound of the free problem holds for them too. The
search starts from the free optimum. An ascent finds masks with entries in a range; masks of
a few levels are rounded, then improved. If one projection is fixed and the other is s/‖s‖
with entries of s from a set of levels, then κ(s) = b·s/‖s‖ − (η/2) sᵀQs/‖s‖². Changing one
entry changes each of the three sums by known numbers, so all single changes, and all pairs
of changes, are compared at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..devices.device import Device
from ..math.sphere import maximize_on_sphere
from .linear import Candidate, LinearProblem, Objective

#: Number of levels up to which an entry may change to any other level (above it, only to
#: its neighbours); number of changes up to which pairs are compared; and relative gain that
#: is more than rounding.
_ALL_LEVELS, _PAIRED, _GAIN = 8, 700, 1e-12
#: Limit of rounds that alternate a free u and a quantised readout, and of rounds that
#: alternate the readout and the entries of a mask.
_QUANTISED_ROUNDS, _ROUNDS = 5, 50
#: Number of random roundings in addition to that of the free optimum u*, their relative
#: distance from it, and the number of masks up to which all are compared.
_PERTURBED, _SPREAD, _ENUMERATED = 2, 0.3, 2**12
#: Factors c of the ranges ±c/√n that lead an ascent from the free optimum to a sign mask.
_NARROWING = (2.0, 1.6, 1.35, 1.2, 1.1, 1.04)
#: Relative distance to the bound at which to stop.
_REACHED = 1e-7
#: Limit of evaluations of one ascent in a range; evaluations of the first, short ascent of
#: each start; and number of best starts that continue.
_EVALUATIONS, _GLANCE, _AHEAD = 400, 30, 2
#: Share of the slope that a step must gain over the smallest of the last few κ (spectral
#: steps need not rise every time); number of these κ; and relative gain at which to stop.
_SUFFICIENT, _REMEMBERED, _TOL = 1e-4, 8, 1e-9
#: Number of random starts around the free optimum, and of random starts anywhere.
_DRAWN = 4


def solve_mask(
    problem: LinearProblem, device: Device, free: Candidate, rng: np.random.Generator
) -> Candidate:
    """Return the best mask found for a device, starting from the free optimum.

    It keeps the upper bound of the free optimum.
    """
    bound = np.inf if free.upper_bound is None else free.upper_bound
    enough = bound - _REACHED * abs(bound)
    if device.is_discrete:
        found = _Discrete(problem, device, free.u.shape, enough).solve(free.u, rng)
    else:
        found = _solve_in_box(problem, device.limits, free.u, enough, rng)
    return replace(found, upper_bound=free.upper_bound)


def solve_mask_near(problem: LinearProblem, device: Device, u: np.ndarray) -> Candidate:
    """Return a mask and its readout, improved from another mask u of the same kind."""
    if device.is_discrete:
        return _Discrete(problem, device, u.shape, np.inf).from_start(u.ravel())
    return ascend_in_box(problem, u, device.limits)


def quantise_readout(
    problem: LinearProblem, found: Candidate, bits: int, *, keep_u: bool
) -> Candidate:
    """Return the best readout of integers of ``bits`` bits, scaled to unit norm.

    Unless ``keep_u`` is set, for a mask or a given u, it also solves for the u of the new
    readout.
    """
    reach = 2 ** (bits - 1) - 1
    levels = np.arange(-reach, reach + 1.0) if bits > 1 else np.array([-1.0, 1.0])
    u, best = found.u, None
    for _ in range(1 if keep_u else _QUANTISED_ROUNDS):
        b, Q = problem.readout_terms(u)
        quadratic = UnitQuadratic(b, Q, problem.eta)
        starts = list(roundings(problem.best_readout(u)[0], levels))
        order = np.argsort([-quadratic.value(levels[k]) for k in starts], kind="stable")
        ends = [climb(quadratic, starts[i], levels) for i in order[:4]]
        s = levels[max(ends, key=lambda k: quadratic.value(levels[k]))]
        v = s / np.linalg.norm(s)
        margin = problem.margin(u, v)
        if best is not None and margin.value <= best.margin.value * (1 + 1e-12):
            break
        status = found.status
        if not keep_u:
            (u, margin), status = problem.best_input(v), "improved"
        best = Candidate(u, v, margin, status, upper_bound=found.upper_bound)
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class UnitQuadratic:
    """The function κ(s) = b·s/‖s‖ − (η/2) sᵀQs/‖s‖²."""

    b: np.ndarray
    Q: np.ndarray
    eta: float

    def value(self, s: np.ndarray) -> float:
        """Return κ at s; −∞ for s = 0."""
        return float(self.of_sums(self.b @ s, s @ s, s @ self.Q @ s))

    def of_sums(self, bs, ss, qs):
        """Return κ from b·s, s·s and sᵀQs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = bs / np.sqrt(ss) - 0.5 * self.eta * qs / ss
        return np.where(ss > 0, value, -np.inf)


def climb(quadratic: UnitQuadratic, index: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Change the entries ``levels[index]``, one or two at a time, until no change helps.

    The levels ascend. Returns the final index.
    """
    index = index.copy()
    s = levels[index]
    value = quadratic.value(s)
    b, Q = quadratic.b, quadratic.Q
    g = Q @ s
    while True:
        where, target = _moves(index, len(levels))
        delta = levels[target] - s[where]
        # Amounts that each change adds to b·s, s·s and sᵀQs.
        bs = b[where] * delta
        ss = 2 * s[where] * delta + delta**2
        qs = 2 * delta * g[where] + delta**2 * Q[where, where]
        found = quadratic.of_sums(b @ s + bs, np.maximum(s @ s + ss, 0.0), s @ g + qs)
        chosen = [int(np.argmax(found))]
        best = float(found[chosen[0]])
        if not _rises(best, value) and len(where) <= _PAIRED:
            cross = 2 * np.outer(delta, delta) * Q[np.ix_(where, where)]
            found = quadratic.of_sums(
                b @ s + bs[:, None] + bs,
                np.maximum(s @ s + ss[:, None] + ss, 0.0),
                s @ g + qs[:, None] + qs + cross,
            )
            found[where[:, None] == where] = -np.inf
            chosen = [int(k) for k in np.unravel_index(int(np.argmax(found)), found.shape)]
            best = float(found[tuple(chosen)])
        if not _rises(best, value):
            return index
        for k in chosen:
            i = where[k]
            g = g + Q[:, i] * (levels[target[k]] - s[i])
            index[i] = target[k]
            s[i] = levels[target[k]]
        before, value = value, quadratic.value(s)
        if value <= before:  # only rounding
            return index


def _rises(new: float, old: float) -> bool:
    return new > old + _GAIN * max(abs(new), abs(old))


def _moves(index: np.ndarray, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all single changes, as entries and the levels that they change to."""
    n = len(index)
    if n_levels <= _ALL_LEVELS:
        where = np.repeat(np.arange(n), n_levels)
        target = np.tile(np.arange(n_levels), n)
        keep = target != index[where]
    else:
        where = np.repeat(np.arange(n), 2)
        target = index[where] + np.tile([-1, 1], n)
        keep = (target >= 0) & (target < n_levels)
    return where[keep], target[keep]


def nearest(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the index of the level nearest to each value."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, values)


def roundings(values: np.ndarray, levels: np.ndarray) -> Iterator[np.ndarray]:
    """Yield roundings of a vector to levels that are known up to a common factor.

    The smallest factor gives the largest entry the outermost level; the largest factor
    gives this level to a typical entry.
    """
    size = np.abs(values)
    reach = float(np.abs(levels).max())
    largest, typical = float(size.max()), float(np.sqrt((size**2).mean()))
    if largest == 0:
        yield nearest(values, levels)
        return
    seen = set()
    for factor in np.geomspace(reach / largest, 1.5 * reach / typical, 24):
        index = nearest(values * factor, levels)
        if levels[index].any() and index.tobytes() not in seen:
            seen.add(index.tobytes())
            yield index


def symmetric_levels(values: np.ndarray, n_levels: int) -> np.ndarray:
    """Return the levels ±m₁, … that fit a vector best, by Lloyd's iteration.

    An odd number of levels includes 0.
    """
    size = np.sort(np.abs(values))
    half = n_levels // 2
    zero = [0.0] * (n_levels % 2)
    sizes = np.quantile(size, (np.arange(half) + 0.5) / half)
    for _ in range(100):
        group = nearest(size, np.array([*zero, *sizes])) - len(zero)
        members = [size[group == k] for k in range(half)]
        pairs = zip(members, sizes, strict=True)
        new = np.array([own.mean() if own.size else old for own, old in pairs])
        if np.allclose(new, sizes, rtol=1e-10, atol=0):
            break
        sizes = new
    # Equal sizes would be one level, so move them slightly apart.
    sizes = np.maximum.accumulate(np.maximum(sizes, 1e-9 * max(size[-1], 1e-300)))
    return _mirrored(sizes * (1 + 1e-9 * np.arange(half)), n_levels)


def _mirrored(sizes: np.ndarray, n_levels: int) -> np.ndarray:
    return np.array([*-sizes[::-1], *[0.0] * (n_levels % 2), *sizes])


@dataclass(frozen=True)
class _Discrete:
    """A search for masks of a few levels."""

    problem: LinearProblem
    device: Device
    shape: tuple[int, ...]
    enough: float

    def solve(self, u: np.ndarray, rng: np.random.Generator) -> Candidate:
        flat = u.ravel()
        fixed = self.device.values
        if fixed is not None and len(fixed) ** flat.size <= _ENUMERATED:
            return self._compare_all(fixed)
        starts = [flat]
        size = _SPREAD * np.sqrt((flat**2).mean())
        if fixed is not None and len(fixed) == 2 and fixed[0] == -fixed[1]:
            starts.append(self._narrowed(u))
        starts += [flat + size * rng.standard_normal(flat.size) for _ in range(_PERTURBED)]
        if fixed is not None and np.abs(fixed + fixed[::-1]).max() > 0:
            starts += [-start for start in starts]
        found = [self.from_start(start) for start in starts]
        return max(found, key=lambda one: one.margin.value)

    def from_start(self, start: np.ndarray) -> Candidate:
        """Round a start to the levels, and return the improved mask."""
        levels = self.device.values
        if levels is None:
            assert self.device.n_levels is not None
            levels = symmetric_levels(start, self.device.n_levels)
        tried = list(roundings(start, levels))
        scores = [self._judged(levels[k]).margin.value for k in tried]
        return self._improved(tried[int(np.argmax(scores))], levels)

    def _narrowed(self, u: np.ndarray) -> np.ndarray:
        """Ascend in ranges that narrow to ±1/√n, each from the end of the one before."""
        for c in _NARROWING:
            high = c / np.sqrt(u.size)
            u = ascend_in_box(self.problem, u, (-high, high), self.enough).u
        return u.ravel()

    def _judged(self, s: np.ndarray) -> Candidate:
        """Return a mask with its best readout."""
        u = (s / np.linalg.norm(s)).reshape(self.shape)
        return Candidate(u, *self.problem.best_readout(u), "improved")

    def _quadratic(self, v: np.ndarray) -> UnitQuadratic:
        """Return κ of a mask for one readout, up to a constant."""
        rows = self.problem.system.readout_response(v)
        stimuli, n_channels = self.problem.stimuli, self.shape[1]
        mu = stimuli.mu.reshape(n_channels, -1)
        psi = np.asarray(stimuli.psi).reshape(*mu.shape, *mu.shape)
        b = (rows.T @ mu.T).ravel()
        half = np.einsum("cnem,mj->cnje", psi, rows)
        Q = np.einsum("ni,cnje->icje", rows, half).reshape(b.size, b.size)
        return UnitQuadratic(b, (Q + Q.T) / 2, self.problem.eta)

    def _improved(self, index: np.ndarray, levels: np.ndarray) -> Candidate:
        """Improve readout, levels and entries in turn; then try single changes.

        Each single change is tried with its own best readout.
        """
        best = self._judged(levels[index])
        for _ in range(_ROUNDS):
            quadratic = self._quadratic(best.v)
            new_levels, new_index = levels, index
            if self.device.values is None:
                new_levels, new_index = _refit(quadratic, index, levels)
            new_index = climb(quadratic, new_index, new_levels)
            new = self._judged(new_levels[new_index])
            if _better(new, best):
                best, index, levels = new, new_index, new_levels
                continue
            for other in self._likeliest(index, levels, quadratic):
                new = self._judged(levels[other])
                if _better(new, best):
                    best, index = new, other
                    break
            else:
                break
        return best

    def _likeliest(
        self, index: np.ndarray, levels: np.ndarray, quadratic: UnitQuadratic
    ) -> Iterator[np.ndarray]:
        """Yield the best single changes, ordered by their gain at a fixed readout."""
        s = levels[index]
        moves = [
            (quadratic.value(np.where(np.arange(s.size) == i, level, s)), i, k)
            for i in range(s.size)
            for k, level in enumerate(levels)
            if k != index[i]
        ]
        for _, i, k in sorted(moves, reverse=True)[: 2 * s.size]:
            new = np.where(np.arange(s.size) == i, k, index)
            if levels[new].any():
                yield new

    def _compare_all(self, levels: np.ndarray) -> Candidate:
        n = int(np.prod(self.shape))
        total = len(levels) ** n
        if np.abs(levels + levels[::-1]).max() == 0:
            total = -(-total // 2)  # u and −u are equivalent, so half of the masks suffice
        places = len(levels) ** np.arange(n)[::-1]
        masks = (levels[(number // places) % len(levels)] for number in range(total))
        found = (self._judged(s) for s in masks if s.any())
        return replace(max(found, key=lambda one: one.margin.value), status="exhaustive")


def _better(new: Candidate, old: Candidate) -> bool:
    return new.margin.value > old.margin.value * (1 + 1e-12)


def _refit(
    quadratic: UnitQuadratic, index: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best sizes ±m of the levels, for entries that keep their places.

    With s = Z m and ZᵀZ diagonal, κ is a quadratic function on a sphere.
    """
    n_levels, half = len(levels), len(levels) // 2
    # Count the sizes from the middle, without a level of zero.
    place = np.where(index < half, half - 1 - index, index - (n_levels - half))
    sign = np.sign(index - (n_levels - 1) / 2)
    used = [k for k in range(half) if ((place == k) & (sign != 0)).any()]
    if not used:
        return levels, index
    Z = np.stack([np.where(place == k, sign, 0.0) for k in used], axis=1)
    Z /= np.sqrt((Z**2).sum(0))
    b, Q = Z.T @ quadratic.b, Z.T @ quadratic.Q @ Z
    s = Z @ maximize_on_sphere(b, quadratic.eta * (Q + Q.T) / 2).v
    sizes = np.abs(levels[n_levels - half :]).copy()
    sizes *= np.linalg.norm(s) / max(np.linalg.norm(levels[index]), 1e-300)
    for k in used:
        sizes[k] = np.abs(s[(place == k) & (sign != 0)][0])
    new = _mirrored(np.sort(sizes) * (1 + 1e-12 * np.arange(half)), n_levels)
    return new, nearest(s, new)


# Entries in a range


def into_box(w: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the unit vector with entries in [low, high] that is nearest to w.

    It is w times a positive factor, clipped to the range. As the factor grows, entries
    reach the ends of the range one by one. In between, the squared norm is that of the
    clipped entries plus the factor squared times that of the others.
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
    # No factor gives unit norm, because w points out of the range. Fill up the norm,
    # beginning with the largest entries.
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
    limits: tuple[float, float],
    enough: float = np.inf,
    max_evaluations: int = _EVALUATIONS,
) -> Candidate:
    """Maximise κ in a range, by projected gradients (Birgin, Martínez & Raydan 2000).

    The ascent takes spectral steps. It starts from ``into_box(u)``, stops when κ reaches
    ``enough``, and returns the best pair.
    """
    u = into_box(u, *limits)
    v, margin, gradient = objective.evaluate(u)
    best = u, v, margin
    slope = _tangent(gradient, u)
    step = 1.0 / max(float(np.linalg.norm(slope)), 1e-300)
    values, tops = [margin.value], [margin.value]
    evaluations = 1
    while best[2].value < enough:
        length = step
        while True:
            new = into_box(u + length * slope, *limits)
            moved = new - u
            promised = float((slope * moved).sum())
            stuck = float(np.linalg.norm(moved)) < 1e-12 or promised <= 0
            if stuck or evaluations >= max_evaluations:
                return Candidate(*best, "converged" if stuck else "max_iterations")
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
        gain = tops[-1] - tops[-1 - _REMEMBERED] if len(tops) > _REMEMBERED else np.inf
        if gain <= _TOL * abs(tops[-1]):
            break
    return Candidate(*best, "converged")


def _tangent(gradient: np.ndarray, u: np.ndarray) -> np.ndarray:
    return gradient - (gradient * u).sum() * u


def _solve_in_box(
    problem: LinearProblem,
    limits: tuple[float, float],
    u: np.ndarray,
    enough: float,
    rng: np.random.Generator,
) -> Candidate:
    """Return the best mask in a range, from the free optimum u.

    The starts are u, −u, |u| and random vectors. All of them get a few evaluations; then
    the best ones continue.
    """
    low, high = limits
    starts = [u, np.abs(u)] if low == -high else [u, -u, np.abs(u)]  # −u is equivalent
    size = np.sqrt((u**2).mean())
    starts += [u + size * w for w in rng.standard_normal((_DRAWN, *u.shape))]
    starts += list(rng.standard_normal((_DRAWN, *u.shape)))
    ends: list[Candidate] = []
    for start in starts:
        ends.append(ascend_in_box(problem, start, limits, enough, _GLANCE))
        if ends[-1].margin.value >= enough:
            return ends[-1]
    ends.sort(key=lambda end: end.margin.value, reverse=True)
    for i, end in enumerate(ends[:_AHEAD]):
        ends[i] = ascend_in_box(problem, end.u, limits, enough)
    best = max(ends, key=lambda end: end.margin.value)
    if low < 0 and np.isfinite(high - low):
        best = _swapped(problem, best, limits, enough)
    return best


def _swapped(
    problem: LinearProblem, best: Candidate, limits: tuple[float, float], enough: float
) -> Candidate:
    """Move entries from one end of the range to the other as long as κ rises.

    An ascent cannot make such a move, because the norm would differ from one on the way.
    """
    low, high = limits
    for _ in range(_ROUNDS):
        flat, tried = best.u.ravel(), []
        for i in np.flatnonzero((flat <= low + 1e-9) | (flat >= high - 1e-9)):
            other = flat.copy()
            other[i] = high if flat[i] < 0 else low
            inside = into_box(other.reshape(best.u.shape), low, high)
            tried.append((problem.best_readout(inside)[1].value, i, inside))
        tried.sort(key=lambda one: one[:2], reverse=True)
        for _, _, start in tried[:_AHEAD]:
            found = ascend_in_box(problem, start, limits, enough)
            if found.margin.value > best.margin.value * (1 + 1e-9):
                best = found
                break
        else:
            return best
    return best
