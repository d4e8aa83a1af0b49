"""Masks: input projections that a device can have, solved from the free optimum.

Masks are unit vectors, so that the upper bound of the free problem bounds them too: what a
mask reaches is said as a share of what any mask could. From the free optimum u* they are
rounded, then improved: few levels by exchange (`exchange`), ranges by projected ascent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validation as check
from ..margins import SoftMargin
from ..sphere import maximize_on_sphere
from .bounded import ascend_in_box, into_box
from .exchange import UnitQuadratic, climb, rounded, symmetric_levels
from .linear import LinearProblem
from .result import Candidate

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


@dataclass(frozen=True)
class Mask:
    """Which input projections a device can have.

    Attributes
    ----------
    name : str
        As `Projections.mask` says it.
    levels : ndarray or None
        Values of the entries, up to a common factor.
    n_levels : int or None
        Number of levels that are to be found.
    low, high : float
        Range of the entries of the unit vector.
    """

    name: str
    levels: np.ndarray | None = None
    n_levels: int | None = None
    low: float = -np.inf
    high: float = np.inf

    @property
    def is_discrete(self) -> bool:
        """Whether entries have levels, not a range."""
        return self.levels is not None or self.n_levels is not None


def read_mask(mask: Any, levels: Any, box: Any, n_entries: int) -> Mask | None:
    """The mask that the arguments of `optimize` ask for; None for a free u."""
    given = [
        name
        for name, one in (("mask", mask), ("levels", levels), ("box", box))
        if one is not None
    ]
    if len(given) > 1:
        raise ValueError(
            f"`{given[0]}` and `{given[1]}` each say what the mask may be; give one."
        )
    if mask is not None:
        if mask == "sign":
            return Mask("sign", levels=np.array([-1.0, 1.0]))
        if mask == "nonnegative":
            return Mask("nonnegative", low=0.0)
        raise ValueError(
            f"`mask` must be 'sign' or 'nonnegative'; got {mask!r}. For others give "
            "`levels`, `box`, `inputs` or `outputs`."
        )
    if levels is not None:
        return _read_levels(levels)
    if box is not None:
        return _read_box(box, n_entries)
    return None


def _read_levels(levels: Any) -> Mask:
    if np.ndim(levels) == 0:
        n_levels = check.count(levels, "levels", minimum=2)
        if n_levels == 2:
            return Mask("2 levels", levels=np.array([-1.0, 1.0]))
        return Mask(f"{n_levels} levels", n_levels=n_levels)
    values = np.unique(check.host_array(levels, "levels", ndim=(1,)))
    if len(values) < 2:
        raise ValueError("`levels` must hold at least two different values.")
    shown = ", ".join(f"{value:g}" for value in values[:6])
    return Mask(f"levels {shown}{', …' if len(values) > 6 else ''}", levels=values)


def _read_box(box: Any, n_entries: int) -> Mask:
    low, high = (float(one) for one in _pair(box))
    if not low < high:
        raise ValueError(f"`box` must be (low, high) with low < high; got {box!r}.")
    reach = max(abs(low), abs(high))
    if reach**2 * n_entries < 1:
        raise ValueError(
            f"`box` = ({low:g}, {high:g}) leaves no vector of unit norm with {n_entries} "
            f"entries; one end must be at least {n_entries**-0.5:.3g} in size."
        )
    if max(low, 0.0, -high) ** 2 * n_entries > 1:
        raise ValueError(
            f"`box` = ({low:g}, {high:g}) makes every vector of {n_entries} entries longer "
            "than one; bring it nearer to zero."
        )
    return Mask(f"box {low:g} to {high:g}", low=low, high=high)


def _pair(box: Any) -> tuple[Any, Any]:
    try:
        low, high = box
        return float(low), float(high)
    except (TypeError, ValueError):
        raise ValueError(f"`box` must be (low, high); got {box!r}.") from None


def solve_mask(
    problem: LinearProblem, mask: Mask, free: Candidate, rng: np.random.Generator
) -> Candidate:
    """The best mask found, from the free optimum.

    Parameters
    ----------
    problem : LinearProblem
    mask : Mask
    free : Candidate
        The free optimum; its bound is the mask's.
    rng : numpy Generator
        Further roundings.
    """
    bound = np.inf if free.upper_bound is None else free.upper_bound
    enough = bound - _REACHED * abs(bound)
    if mask.is_discrete:
        found = _Discrete(problem, mask, free.u.shape, enough).solve(free.u, rng)
    else:
        found = _in_range(problem, mask, free.u, enough, rng)
    return Candidate(*found[:3], _history(found[2]), found[3], free.upper_bound)


def solve_mask_near(
    problem: LinearProblem, mask: Mask, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A mask and its readout, improved from a mask of the same kind alone."""
    if mask.is_discrete:
        found = _Discrete(problem, mask, u.shape, np.inf).from_start(u.ravel())
    else:
        found = ascend_in_box(
            problem, into_box(u, mask.low, mask.high), mask.low, mask.high
        )
    return found[0], found[1]


def _history(margin: Any) -> list[tuple[float, float]]:
    return [(margin.separation, margin.variance)]


def _in_range(
    problem: LinearProblem, mask: Mask, u: np.ndarray, enough: float, rng: Any
) -> tuple[np.ndarray, np.ndarray, SoftMargin, str]:
    """Ascent in a box, from the free optimum with both signs and from its sizes.

    All starts are taken some way, those that are ahead then to the end.
    """
    low, high = mask.low, mask.high
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
        self, problem: LinearProblem, mask: Mask, shape: tuple[int, ...], enough: float
    ) -> None:
        self.problem, self.mask, self.shape, self.enough = problem, mask, shape, enough

    def solve(self, u: np.ndarray, rng: np.random.Generator):
        flat = u.ravel()
        fixed = self.mask.levels
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
        levels = self.mask.levels
        if levels is None:
            assert self.mask.n_levels is not None
            levels = symmetric_levels(start, self.mask.n_levels)
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
            if self.mask.levels is None:
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
