"""Masks of a few levels, such as ±1.

The search rounds the free optimum, then improves. If one projection is fixed and the other
is s/‖s‖ with entries of s from a set of levels, then κ(s) = b·s/‖s‖ − (η/2) sᵀQs/‖s‖².
Changing one entry changes each of the three sums by known numbers, so all single changes,
and all pairs of changes, are compared at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._base import checks as check
from ...math.sphere import maximize_on_sphere
from .box import Entries, Squares, into_box
from .mask import Bounded, Mask, Masked, MaskProblem, ascend_within, enough

#: Number of levels up to which an entry may change to any other level (above it, only to
#: its neighbours); number of changes up to which pairs are compared; and relative gain that
#: is more than rounding.
_ALL_LEVELS, _PAIRED, _GAIN = 8, 700, 1e-12
#: Number of single changes up to which each is tried with its own best readout (above it,
#: only to neighbouring levels), and of entries above which none is; and error of κ of many
#: masks, relative to its terms.
_SINGLE, _LARGE, _SLACK = 4000, 1000, 1e-7
#: Limit of rounds that alternate the readout and the entries of a mask, and of rounds of
#: single changes.
_ROUNDS = 50
#: Number of random roundings in addition to that of the free optimum u*, their relative
#: distance from it, and the number of masks up to which all are compared.
_PERTURBED, _SPREAD, _ENUMERATED = 2, 0.3, 2**12
#: Factors c of the ranges ±c/√n that lead an ascent from the free optimum to a sign mask.
_NARROWING = (2.0, 1.6, 1.35, 1.2, 1.1, 1.04)
#: Ratio of two levels beyond which rounding loses the smaller level.
_SPAN = 1e12
#: Number of vectors whose sums are formed together.
_SUMS = 2**18
#: Time of a product of `best_inputs`, relative to a product in a decomposition.
_CHEAP = 0.05
#: Levels by their number, if the number determines their sizes.
_FEW = {2: np.array([-1.0, 1.0]), 3: np.array([-1.0, 0.0, 1.0])}


@dataclass(frozen=True, eq=False)
class Levels(Mask, name="levels", usage="NUMBER|A,B[,…]"):
    """Entries of u with a few levels, up to a common factor.

    Parameters
    ----------
    values : int or array_like
        The levels; or the number of symmetric levels, whose sizes are then optimised too
        (from four on).
    """

    values: int | ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _levels(self.values))

    @property
    def kind(self) -> str:
        """The kind of mask in words."""
        if isinstance(self.values, int):
            return f"{self.values} levels"
        shown = ", ".join(f"{value:g}" for value in np.asarray(self.values)[:6])
        return f"levels {shown}{', …' if np.size(self.values) > 6 else ''}"

    @classmethod
    def from_numbers(cls, *numbers: float) -> Levels:
        """Return the mask with this number of levels, or with these levels."""
        if len(numbers) == 1 and numbers[0].is_integer():
            return cls(int(numbers[0]))
        return cls(numbers)

    @cached_property
    def known(self) -> np.ndarray | None:
        """The ascending levels up to a common factor; None if their sizes are optimised."""
        if isinstance(self.values, int):
            return _FEW.get(self.values)
        values = np.asarray(self.values)
        # Scale by a power of two, which is exact: the square of 1e200 would be infinite.
        return np.ldexp(values, 1 - np.frexp(np.abs(values).max())[1])

    @property
    def _are_signs(self) -> bool:
        return self.known is not None and len(self.known) == 2 and not self.known.sum()

    @property
    def is_symmetric(self) -> bool:
        """Whether −u is a mask of this kind."""
        return self.known is None or not np.abs(self.known + self.known[::-1]).any()

    def n_products(self, shape: tuple[int, int]) -> float:
        """Return how many products `best_inputs` takes per problem."""
        n = shape[0] * shape[1]
        if self.known is None or len(self.known) ** n > _ENUMERATED:
            return np.inf
        return float(len(self.known)) ** n * n**2 * _CHEAP

    def best_inputs(
        self, b: np.ndarray, Q: np.ndarray, eta: float, shape: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best of all masks, per problem."""
        assert self.known is not None
        every = combinations(self.known, shape[0] * shape[1], half=False)
        every = every / np.linalg.norm(every, axis=1, keepdims=True)
        pairs = (every[:, :, None] * every[:, None]).reshape(len(every), -1)
        values = b @ every.T - 0.5 * eta * (Q.reshape(len(Q), -1) @ pairs.T)
        at = values.argmax(1)
        return values[np.arange(len(b)), at], every[at]

    def solve(
        self, problem: MaskProblem, u: np.ndarray, bound: float, rng: np.random.Generator
    ) -> Masked:
        """Return the best of several roundings, or of all masks if they are few."""
        flat, known = u.ravel(), self.known
        if known is not None and len(known) ** flat.size <= _ENUMERATED:
            return self._compare_all(problem, u.shape, known)
        starts = [flat]
        size = _SPREAD * np.sqrt((flat**2).mean())
        if self._are_signs:
            for c in _NARROWING:  # each ascent starts from the end of the one before
                high = c / np.sqrt(u.size)
                project = partial(into_box, low=-high, high=high)
                u = ascend_within(problem, u, project, enough(bound)).u
            starts.append(u.ravel())
        starts += [flat + size * rng.standard_normal(flat.size) for _ in range(_PERTURBED)]
        if known is not None and np.abs(known + known[::-1]).max() > 0:
            starts += [-start for start in starts]
        found = [self.improve(problem, start.reshape(u.shape)) for start in starts]
        return max(found, key=lambda one: one.value)

    def improve(self, problem: MaskProblem, u: np.ndarray) -> Masked:
        """Round u to the levels, and improve the mask until no single change helps."""
        levels = self.known
        if levels is None:
            assert isinstance(self.values, int)
            levels = symmetric_levels(u.ravel(), self.values)
        tried = list(roundings(u.ravel(), levels))
        scores = _values(problem, levels[np.array(tried)], u.shape)
        return self._improved(problem, u.shape, tried[int(np.argmax(scores))], levels)

    def _improved(
        self,
        problem: MaskProblem,
        shape: tuple[int, ...],
        index: np.ndarray,
        levels: np.ndarray,
    ) -> Masked:
        """Improve readout, levels and entries in turn; then try single changes.

        Each single change is tried with its own best readout.
        """
        best = _judged(problem, levels[index], shape)
        for _ in range(_ROUNDS):
            for _ in range(_ROUNDS):
                quadratic = UnitQuadratic(*problem.input_terms(best.v), problem.eta)
                new_levels, new_index = levels, index
                if self.known is None:
                    new_levels, new_index = _refit(quadratic, index, levels)
                new_index = climb(quadratic, new_index, new_levels)
                new = _judged(problem, new_levels[new_index], shape)
                if not new.beats(best):
                    break
                best, index, levels = new, new_index, new_levels
            changed, tried_all = _changed(problem, best, index, levels)
            if changed is None:
                return best if tried_all else best._replace(status="bounded")
            best, index = changed
        return best._replace(status="max_iterations")

    def _compare_all(
        self, problem: MaskProblem, shape: tuple[int, ...], levels: np.ndarray
    ) -> Masked:
        # u and −u are equivalent, so half of the masks suffice.
        masks = combinations(levels, int(np.prod(shape)), half=self.is_symmetric)
        values = _values(problem, masks, shape)
        order = np.argsort(-values, kind="stable")
        best = _judged(problem, masks[order[0]], shape)
        near = best.value - _slack(best, float(values[order[0]]))
        for k in order[1:]:
            if values[k] < near:
                break
            best = max(best, _judged(problem, masks[k], shape), key=lambda one: one.value)
        return best._replace(status="exhaustive")

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw each entry from the levels."""
        levels = self.known
        if levels is None:
            assert isinstance(self.values, int)
            levels = np.linspace(-1, 1, self.values)
        while True:  # a mask needs a non-zero entry
            found = rng.choice(levels, shape)
            if found.any():
                return found

    def in_units(self, u: np.ndarray) -> np.ndarray:
        """Return the mask in the given levels; u itself if their sizes were optimised."""
        levels = self.known if isinstance(self.values, int) else np.asarray(self.values)
        if levels is None:
            return u
        largest = float(np.abs(u).max())
        # The mask may not use the largest level, so take the factor that fits best.
        tried = []
        for size in np.unique(np.abs(levels[levels != 0])):
            away = np.abs((u * (size / largest))[..., None] - levels)
            tried.append((float(away.min(-1).max()) / size, levels[away.argmin(-1)]))
        return min(tried, key=lambda one: one[0])[1]

    def lowest_bound(self, shape: tuple[int, int], bounded: Bounded) -> float:
        """Return the bound that follows from the sizes or the signs of the entries."""
        n = shape[0] * shape[1]
        if self._are_signs:
            return bounded([Squares(n, 1 / n, is_equal=True)]).lowest
        if self.known is not None and self.known[0] >= 0:
            return bounded([Entries(n)]).lowest
        wanted = "be two of equal size, or none of them negative, because no other levels "
        wanted += "have a known bound below that of all projections"
        raise ValueError(f"`levels` must {wanted}; got {self.kind}.")


@dataclass(frozen=True, eq=False)
class Signs(Levels, name="sign"):
    """Entries ±1 of u."""

    values: int | ArrayLike = field(default=2, init=False, repr=False)

    @property
    def kind(self) -> str:
        """The kind of mask in words."""
        return self.name


def _levels(value: int | ArrayLike) -> int | np.ndarray:
    if np.ndim(value) == 0:
        return check.count(value, "levels", minimum=2)
    values = np.unique(check.host_array(value, "levels", ndim=(1,)))
    several = "hold at least two different values"
    check.must(len(values) > 1, "levels", several, len(values))
    size = np.abs(values[values != 0])
    span = f"be within a factor of {_SPAN:.0e} of each other"
    fits = size.max() / _SPAN <= size.min()
    check.must(fits, "levels", span, f"{size.min():g} among others")
    values.flags.writeable = False
    return values


def _judged(problem: MaskProblem, s: np.ndarray, shape: tuple[int, ...]) -> Masked:
    """Return a mask with its best readout."""
    u = (s / np.linalg.norm(s)).reshape(shape)
    return Masked(u, *problem.best_readout(u), "improved")


def _values(problem: MaskProblem, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return κ of masks, given as rows of any norm, to about six digits."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return problem.values(units.reshape(-1, *shape))


def _slack(best: Masked, value: float) -> float:
    """Return how far κ of `_values` may be off, given its value of one mask."""
    size = abs(best.margin.separation) + abs(best.margin.variance)
    return _SLACK * size + 10 * abs(value - best.value)


def _changed(
    problem: MaskProblem, best: Masked, index: np.ndarray, levels: np.ndarray
) -> tuple[tuple[Masked, np.ndarray] | None, bool]:
    """Return the best single change that improves a mask, and whether all were tried."""
    tried_all = index.size * (len(levels) - 1) <= _SINGLE
    if index.size > _LARGE:
        return None, False
    where, target = _moves(index, len(levels), every=tried_all)
    others = np.tile(index, (len(where), 1))
    others[np.arange(len(where)), where] = target
    others = np.vstack([index, others])[np.append(True, levels[others].any(1))]
    values = _values(problem, levels[others], best.u.shape)
    near = best.value - _slack(best, float(values[0]))
    found = None
    for k in 1 + np.argsort(-values[1:], kind="stable"):
        if values[k] < near:
            break
        new = _judged(problem, levels[others[k]], best.u.shape)
        if new.beats(best):
            found = new, others[k]
            break
    return found, tried_all


def combinations(levels: np.ndarray, n: int, *, half: bool) -> np.ndarray:
    """Return all vectors of n levels but zero, as rows.

    With ``half``, for symmetric levels, only one of each vector and its negative.
    """
    total = len(levels) ** n
    rows = _rows(levels, n, -(-total // 2) if half else total)
    return rows[rows.any(1)]


def _rows(levels: np.ndarray, n: int, count: int) -> np.ndarray:
    """Return the first vectors of n levels, as rows."""
    places = len(levels) ** np.arange(n)[::-1]
    return levels[(np.arange(count)[:, None] // places) % len(levels)]


@dataclass(frozen=True, eq=False)
class UnitQuadratic:
    """The function κ(s) = b·s/‖s‖ − (η/2) sᵀQs/‖s‖²."""

    b: np.ndarray
    Q: Any
    eta: float

    def value(self, s: np.ndarray) -> float:
        """Return κ at s; −∞ for s = 0."""
        return float(self.of_sums(self.b @ s, s @ s, s @ self.Q @ s))

    def best(self, levels: np.ndarray) -> np.ndarray:
        """Return the best of all vectors of these levels, from sums over two halves."""
        n = len(self.b)
        h = n // 2
        first, last = (_rows(levels, m, len(levels) ** m) for m in (h, n - h))
        bs, ss = last @ self.b[h:], (last**2).sum(1)
        qs = ((last @ self.Q[h:, h:]) * last).sum(1)
        best, value = last[0], -np.inf
        step = max(1, _SUMS // len(last))
        for k in range(0, len(first), step):
            some = first[k : k + step]
            own = ((some @ self.Q[:h, :h]) * some).sum(1)
            found = self.of_sums(
                (some @ self.b[:h])[:, None] + bs,
                (some**2).sum(1)[:, None] + ss,
                own[:, None] + qs + 2 * (some @ self.Q[:h, h:]) @ last.T,
            )
            i, j = np.unravel_index(int(np.argmax(found)), found.shape)
            if found[i, j] > value:
                best, value = np.append(some[i], last[j]), float(found[i, j])
        return best

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
    g, own = Q @ s, Q.diagonal()
    while True:
        where, target = _moves(index, len(levels))
        delta = levels[target] - s[where]
        # Amounts that each change adds to b·s, s·s and sᵀQs.
        bs = b[where] * delta
        ss = 2 * s[where] * delta + delta**2
        qs = 2 * delta * g[where] + delta**2 * own[where]
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
            g = g + (Q[:, i] if isinstance(Q, np.ndarray) else Q.column(i)) * (
                levels[target[k]] - s[i]
            )
            index[i] = target[k]
            s[i] = levels[target[k]]
        before, value = value, quadratic.value(s)
        if value <= before:  # only rounding
            return index


def _rises(new: float, old: float) -> bool:
    return new > old + _GAIN * max(abs(new), abs(old))


def _moves(
    index: np.ndarray, n_levels: int, *, every: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return single changes, as entries and the levels that they change to.

    With many levels, only to neighbouring levels, or to all levels with ``every``.
    """
    n = len(index)
    if every or n_levels <= _ALL_LEVELS:
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
