"""Masks: input projections that a device can have, solved from the free optimum.

Masks are unit vectors, so that the upper bound of the free problem bounds them too: what a
mask reaches is said as a share of what any mask could. From the free optimum u* they are
rounded, then improved: few levels by exchange (`exchange`), ranges by projected ascent.

Weights from a few levels: exchange entries while the soft margin rises.

With one projection fixed, κ of the other, s/‖s‖ with entries from a set of levels, is

    κ(s) = b·s/‖s‖ − (η/2) sᵀQs/‖s‖² ,

and changing one entry changes each of the three sums by a few known numbers. All single
changes, and all pairs of them, are compared at once, and the best one costs a row of Q. The
same search serves the mask u (b, Q from the readout's response) and a quantised readout v.

A readout whose weights have few bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..devices.device import Device
from ..math.margins import SoftMargin
from ..math.sphere import maximize_on_sphere
from .ascent import ascend_in_box, into_box
from .linear import LinearProblem
from .result import Candidate

#: Up to so many levels every entry may change to any other; beyond, to its neighbours.
_ALL_LEVELS = 8
#: Changes whose pairs are compared; beyond, single ones only.
_PAIRED = 700
#: Relative gain below which a change is rounding.
_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class UnitQuadratic:
    """κ(s) = b·s/‖s‖ − (η/2) sᵀQs/‖s‖².

    Attributes
    ----------
    b : ndarray (n,)
    Q : ndarray (n, n)
    eta : float
    """

    b: np.ndarray
    Q: np.ndarray
    eta: float

    def value(self, s: np.ndarray) -> float:
        """κ at s."""
        square = float(s @ s)
        if square == 0:
            return -np.inf
        separation = float(self.b @ s) / np.sqrt(square)
        return separation - 0.5 * self.eta * float(s @ self.Q @ s) / square

    def _of_sums(self, bs, ss, qs):
        """κ from b·s, s·s and sᵀQs; −∞ for s = 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = bs / np.sqrt(ss) - 0.5 * self.eta * qs / ss
        return np.where(ss > 0, value, -np.inf)


def climb(quadratic: UnitQuadratic, index: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Exchange entries, one or two at a time, until none helps.

    Parameters
    ----------
    quadratic : UnitQuadratic
    index : ndarray (n,) of int
        Where to start: entries are ``levels[index]``.
    levels : ndarray (n_levels,)
        Ascending.

    Returns
    -------
    ndarray (n,) of int
    """
    index = index.copy()
    s = levels[index]
    value = quadratic.value(s)
    b, Q = quadratic.b, quadratic.Q
    g = Q @ s
    while True:
        where, target = _moves(index, len(levels))
        delta = levels[target] - s[where]
        bs = b @ s + b[where] * delta
        ss = s @ s + 2 * s[where] * delta + delta**2
        qs = s @ g + 2 * delta * g[where] + delta**2 * Q[where, where]
        found = quadratic._of_sums(bs, np.maximum(ss, 0.0), qs)
        chosen = [int(np.argmax(found))]
        best = float(found[chosen[0]])
        if not _rises(best, value) and len(where) <= _PAIRED:
            chosen, best = _best_pair(quadratic, s, g, where, delta)
        if not _rises(best, value):
            return index
        for k in chosen:
            i = where[k]
            g = g + Q[:, i] * (levels[target[k]] - s[i])
            index[i] = target[k]
            s[i] = levels[target[k]]
        before, value = value, quadratic.value(s)
        if value <= before:  # a gain of rounding
            return index


def _rises(new: float, old: float) -> bool:
    return new > old + _GAIN * max(abs(new), abs(old))


def _moves(index: np.ndarray, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Entries and the levels that they may change to."""
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


def _best_pair(
    quadratic: UnitQuadratic,
    s: np.ndarray,
    g: np.ndarray,
    where: np.ndarray,
    delta: np.ndarray,
) -> tuple[list[int], float]:
    """The two changes of different entries that together reach most."""
    b, Q = quadratic.b, quadratic.Q
    linear = b[where] * delta
    square = 2 * s[where] * delta + delta**2
    curved = 2 * delta * g[where] + delta**2 * Q[where, where]
    cross = 2 * np.outer(delta, delta) * Q[np.ix_(where, where)]
    found = quadratic._of_sums(
        b @ s + linear[:, None] + linear,
        np.maximum(s @ s + square[:, None] + square, 0.0),
        s @ g + curved[:, None] + curved + cross,
    )
    found[where[:, None] == where] = -np.inf
    i, j = np.unravel_index(int(np.argmax(found)), found.shape)
    return [int(i), int(j)], float(found[i, j])


def nearest(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Index of the level nearest to each value."""
    cuts = (levels[1:] + levels[:-1]) / 2
    return np.searchsorted(cuts, values)


def rounded(values: np.ndarray, levels: np.ndarray) -> Iterator[np.ndarray]:
    """Roundings of a vector to levels that are known up to a common factor.

    One for each of several factors, from one at which the largest entry has the outermost
    level to one at which a typical entry has it.
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
    """Levels ±m₁, ±m₂, … (and 0 for an odd number) nearest to a vector, in mean square.

    Lloyd's iteration on the sizes of the entries.
    """
    size = np.sort(np.abs(values))
    half = n_levels // 2
    zero = [0.0] if n_levels % 2 else []
    sizes = np.quantile(size, (np.arange(half) + 0.5) / half)
    for _ in range(100):
        all_sizes = np.array([*zero, *sizes])
        group = nearest(size, all_sizes) - len(zero)
        new = np.array(
            [
                size[group == k].mean() if (group == k).any() else sizes[k]
                for k in range(half)
            ]
        )
        if np.allclose(new, sizes, rtol=1e-10, atol=0):
            break
        sizes = new
    # Equal sizes would be one level; spread them.
    sizes = np.maximum.accumulate(np.maximum(sizes, 1e-9 * max(size[-1], 1e-300)))
    sizes = sizes * (1 + 1e-9 * np.arange(half))
    return np.array([*-sizes[::-1], *zero, *sizes])


#: Rounds of a free u for a quantised readout and back.
_QUANTISED_ROUNDS = 5


def levels_of(bits: int) -> np.ndarray:
    """Whole numbers of so many bits with a sign, symmetric; ±1 for one bit."""
    reach = 2 ** (bits - 1) - 1
    return np.arange(-reach, reach + 1.0) if bits > 1 else np.array([-1.0, 1.0])


def quantise_readout(
    problem: LinearProblem, found: Candidate, bits: int, *, keep_u: bool
) -> Candidate:
    """The best readout of whole numbers of ``bits`` bits, scaled to unit norm.

    Parameters
    ----------
    problem : LinearProblem
    found : Candidate
        Where to start; its bound stays one.
    bits : int
    keep_u : bool
        Whether u is a mask or was given; otherwise it is solved for the new readout.
    """
    u, best = found.u, None
    for _ in range(1 if keep_u else _QUANTISED_ROUNDS):
        v, margin = _nearby(problem, u, levels_of(bits))
        if best is not None and margin.value <= best.margin.value * (1 + 1e-12):
            break
        history = [(margin.separation, margin.variance)]
        best = Candidate(u, v, margin, history, found.status, found.upper_bound)
        if not keep_u:
            u, _ = problem.best_input(v)
            margin = problem.margin_of_kernel(problem.kernel(u, v))
            history = [(margin.separation, margin.variance)]
            best = Candidate(u, v, margin, history, "exchanged", found.upper_bound)
    assert best is not None
    return best


def _nearby(
    problem: LinearProblem, u: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, SoftMargin]:
    """Roundings of the optimal readout, improved by exchange."""
    v, _ = problem.best_readout(u)
    b, Q = problem.readout_terms(u)
    quadratic = UnitQuadratic(b, Q, problem.eta)
    starts = sorted(rounded(v, levels), key=lambda k: -quadratic.value(levels[k]))[:4]
    ends = [climb(quadratic, index, levels) for index in starts]
    s = levels[max(ends, key=lambda k: quadratic.value(levels[k]))]
    v = s / np.linalg.norm(s)
    return v, problem.margin_of_kernel(problem.kernel(u, v))


#: Rounds of readout and exchange, and random roundings beside that of u*.
_ROUNDS = 50
_PERTURBED = 2
_SPREAD = 0.3
#: Masks that are simply all compared.
_ENUMERATED = 2**12
#: Ranges ±c/√n through which an ascent is led from the free optimum to a mask of signs.
_NARROWING = (2.0, 1.6, 1.35, 1.2, 1.1, 1.04)
#: Evaluations that every start in a range is given, and how many are then taken further.
_GLANCE = 30
_AHEAD = 2
#: Starts in a range drawn around u*, and anywhere.
_DRAWN = 4
#: Relative distance to the bound at which there is nothing left to gain.
_REACHED = 1e-7


def solve_mask(
    problem: LinearProblem, device: Device, free: Candidate, rng: np.random.Generator
) -> Candidate:
    """The best mask found, from the free optimum.

    Parameters
    ----------
    problem : LinearProblem
    device : Device
        Its ``kind`` of mask.
    free : Candidate
        The free optimum; its bound is the mask's.
    rng : numpy Generator
        Further roundings.
    """
    bound = np.inf if free.upper_bound is None else free.upper_bound
    enough = bound - _REACHED * abs(bound)
    if device.is_discrete:
        found = _Discrete(problem, device, free.u.shape, enough).solve(free.u, rng)
    else:
        found = _in_range(problem, device, free.u, enough, rng)
    return Candidate(*found[:3], _history(found[2]), found[3], free.upper_bound)


def solve_mask_near(
    problem: LinearProblem, device: Device, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A mask and its readout, improved from a mask of the same kind alone."""
    if device.is_discrete:
        found = _Discrete(problem, device, u.shape, np.inf).from_start(u.ravel())
    else:
        low, high = device.limits
        found = ascend_in_box(problem, into_box(u, low, high), low, high)
    return found[0], found[1]


def _history(margin: Any) -> list[tuple[float, float]]:
    return [(margin.separation, margin.variance)]


def _in_range(
    problem: LinearProblem, device: Device, u: np.ndarray, enough: float, rng: Any
) -> tuple[np.ndarray, np.ndarray, SoftMargin, str]:
    """Ascent in a box, from the free optimum with both signs and from its sizes.

    All starts are taken some way, those that are ahead then to the end.
    """
    low, high = device.limits
    starts = [u, -u, np.abs(u)]
    if low == -high:  # −u is the same mask
        del starts[1]
    size = np.sqrt((u**2).mean())
    starts += [u + size * w for w in rng.standard_normal((_DRAWN, *u.shape))]
    starts += list(rng.standard_normal((_DRAWN, *u.shape)))
    ends: list[tuple[np.ndarray, np.ndarray, SoftMargin]] = []
    for start in starts:
        inside = into_box(start, low, high)
        ends.append(
            ascend_in_box(
                problem, inside, low, high, max_evaluations=_GLANCE, enough=enough
            )
        )
        if ends[-1][2].value >= enough:
            return *ends[-1], "converged"
    ends.sort(key=lambda end: end[2].value, reverse=True)
    ends[:_AHEAD] = [
        ascend_in_box(problem, end[0], low, high, enough=enough) for end in ends[:_AHEAD]
    ]
    best = max(ends, key=lambda end: end[2].value)
    if low < 0 and np.isfinite(high - low):
        best = _swapped(problem, best, low, high, enough)
    return *best, "converged"


def _swapped(
    problem: LinearProblem,
    best: tuple[np.ndarray, np.ndarray, SoftMargin],
    low: float,
    high: float,
    enough: float,
) -> tuple[np.ndarray, np.ndarray, SoftMargin]:
    """Entries moved from one end of the range to the other, while that helps.

    An ascent does not get there: on the way the norm would not be one.
    """
    for _ in range(_ROUNDS):
        u, _, margin = best
        flat = u.ravel()
        tried = []
        for i in np.flatnonzero((flat <= low + 1e-9) | (flat >= high - 1e-9)):
            other = flat.copy()
            other[i] = high if flat[i] < 0 else low
            inside = into_box(other.reshape(u.shape), low, high)
            tried.append((problem.best_readout(inside)[1].value, i, inside))
        tried.sort(key=lambda one: one[:2], reverse=True)
        for _, _, start in tried[:_AHEAD]:
            found = ascend_in_box(problem, start, low, high, enough=enough)
            if found[2].value > margin.value * (1 + 1e-9):
                best = found
                break
        else:
            return best
    return best


class _Discrete:
    """Masks of a few levels."""

    def __init__(
        self, problem: LinearProblem, device: Device, shape: tuple[int, ...], enough: float
    ) -> None:
        self.problem, self.device, self.shape, self.enough = problem, device, shape, enough

    def solve(self, u: np.ndarray, rng: np.random.Generator):
        flat = u.ravel()
        fixed = self.device.values
        if fixed is not None and len(fixed) ** flat.size <= _ENUMERATED:
            return *self._all(fixed), "exhaustive"
        starts = [flat]
        size = _SPREAD * np.sqrt((flat**2).mean())
        if fixed is not None and len(fixed) == 2 and fixed[0] == -fixed[1]:
            starts.append(self._narrowed(u))
        starts += [flat + size * rng.standard_normal(flat.size) for _ in range(_PERTURBED)]
        found = [self.from_start(start) for start in starts]
        if fixed is not None and np.abs(fixed + fixed[::-1]).max() > 0:
            found += [self.from_start(-start) for start in starts]
        return *max(found, key=lambda one: one[2].value), "exchanged"

    def from_start(self, start: np.ndarray):
        """A start rounded to the levels, and improved."""
        levels = self.device.values
        if levels is None:
            assert self.device.n_levels is not None
            levels = symmetric_levels(start, self.device.n_levels)
        return self._improve(self._rounded(start, levels), levels)

    def _narrowed(self, u: np.ndarray) -> np.ndarray:
        """Ascent in ranges that close in on ±1/√n, each from the last one's end."""
        for c in _NARROWING:
            high = c / np.sqrt(u.size)
            inside = into_box(u, -high, high)
            u, _, _ = ascend_in_box(self.problem, inside, -high, high, enough=self.enough)
        return u.ravel()

    def _unit(self, s: np.ndarray) -> np.ndarray:
        return (s / np.linalg.norm(s)).reshape(self.shape)

    def _rounded(self, values: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """The rounding of the highest κ."""
        tried = list(rounded(values, levels))
        scores = [self.problem.best_readout(self._unit(levels[k]))[1].value for k in tried]
        return tried[int(np.argmax(scores))]

    def _quadratic(self, v: np.ndarray) -> UnitQuadratic:
        """κ of a mask for one readout, up to what the readout alone decides."""
        rows = self.problem.system.readout_response(v)
        n_channels = self.shape[1]
        stimuli = self.problem.stimuli
        mu = stimuli.mu.reshape(n_channels, -1)
        psi = np.asarray(stimuli.psi).reshape(
            n_channels, mu.shape[1], n_channels, mu.shape[1]
        )
        b = (rows.T @ mu.T).ravel()
        half = np.einsum("cnem,mj->cnje", psi, rows)
        Q = np.einsum("ni,cnje->icje", rows, half).reshape(b.size, b.size)
        return UnitQuadratic(b, (Q + Q.T) / 2, self.problem.eta)

    def _improve(self, index: np.ndarray, levels: np.ndarray):
        """Readout, levels and entries in turn; then single changes judged exactly."""
        u = self._unit(levels[index])
        v, margin = self.problem.best_readout(u)
        for _ in range(_ROUNDS):
            quadratic = self._quadratic(v)
            new_levels, new_index = levels, index
            if self.device.values is None:
                new_levels, new_index = _refit(quadratic, index, levels)
            new_index = climb(quadratic, new_index, new_levels)
            new_u = self._unit(new_levels[new_index])
            new_v, new = self.problem.best_readout(new_u)
            if new.value > margin.value * (1 + 1e-12):
                index, levels, u, v, margin = new_index, new_levels, new_u, new_v, new
                continue
            found = self._single(index, levels, quadratic, margin.value)
            if found is None:
                break
            index, u, v, margin = found
        return u, v, margin

    def _single(
        self, index: np.ndarray, levels: np.ndarray, quadratic: UnitQuadratic, value: float
    ):
        """The first single change that helps when the readout follows, likeliest first."""
        s = levels[index]
        moves = [
            (quadratic.value(np.where(np.arange(s.size) == i, level, s)), i, k)
            for i in range(s.size)
            for k, level in enumerate(levels)
            if k != index[i]
        ]
        for _, i, k in sorted(moves, reverse=True)[: 2 * s.size]:
            new = index.copy()
            new[i] = k
            if not levels[new].any():
                continue
            u = self._unit(levels[new])
            v, margin = self.problem.best_readout(u)
            if margin.value > value * (1 + 1e-12):
                return new, u, v, margin
        return None

    def _all(self, levels: np.ndarray):
        """Every mask compared."""
        n = int(np.prod(self.shape))
        best = None
        symmetric = np.abs(levels + levels[::-1]).max() == 0
        # u and −u are the same mask: half of them is enough.
        total = len(levels) ** n
        for number in range(-(-total // 2) if symmetric else total):
            digits = (number // len(levels) ** np.arange(n)[::-1]) % len(levels)
            s = levels[digits]
            if not s.any():
                continue
            u = self._unit(s)
            v, margin = self.problem.best_readout(u)
            if best is None or margin.value > best[2].value:
                best = u, v, margin
        assert best is not None
        return best


def _refit(
    quadratic: UnitQuadratic, index: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The best sizes ±m of levels for entries that keep their places.

    With s = Z m and ZᵀZ diagonal, κ is a quadratic function on a sphere of as many
    dimensions as there are sizes.
    """
    n_levels = len(levels)
    half = n_levels // 2
    sign = np.where(index < half, -1.0, 1.0)
    place = np.where(index < half, half - 1 - index, index - (n_levels - half))
    if n_levels % 2:
        place = np.where(index == half, -1, place)
    used = [k for k in range(half) if (place == k).any()]
    if not used:
        return levels, index
    Z = np.stack([np.where(place == k, sign, 0.0) for k in used], axis=1)
    Z /= np.sqrt((Z**2).sum(0))
    b, Q = Z.T @ quadratic.b, Z.T @ quadratic.Q @ Z
    found = maximize_on_sphere(b, quadratic.eta * (Q + Q.T) / 2).v
    s = Z @ found
    sizes = np.abs(levels[n_levels - half :]).copy()
    for k in used:
        sizes[k] = np.abs(s[place == k][0])
    sizes[[k for k in range(half) if k not in used]] *= np.linalg.norm(s) / max(
        np.linalg.norm(levels[index]), 1e-300
    )
    sizes = np.sort(sizes) * (1 + 1e-12 * np.arange(half))
    new = np.array([*-sizes[::-1], *([0.0] if n_levels % 2 else []), *sizes])
    cuts = (new[1:] + new[:-1]) / 2
    return new, np.searchsorted(cuts, s)
