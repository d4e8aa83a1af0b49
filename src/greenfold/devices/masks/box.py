"""Masks with entries in a range."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from ..._base import checks as check
from .mask import (
    AHEAD,
    Bounded,
    Constraint,
    Mask,
    Masked,
    MaskProblem,
    ascend_within,
    best_within,
    enough,
)

#: Limit of rounds that move entries from one end of the range to the other, and relative
#: gain that counts as a rise.
_ROUNDS, _GAIN = 50, 1e-9


class Entries:
    """The restriction u ≥ 0: R = S with entries ≥ 0 off the diagonal, so that uᵀSu ≥ 0."""

    is_signed = True

    def __init__(self, n: int) -> None:
        self._above, self._n = np.triu_indices(n, 1), n
        self.n_variables = len(self._above[0])

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Add S, whose price is zero."""
        S = np.zeros_like(H)
        S[self._above] = z / self._n  # a step of one in z changes λ by about one
        H += S + S.T
        return 0.0

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return 2uᵢuⱼ of the vectors, in units of S."""
        return 2 / self._n * ((V * share) @ V.T)[self._above]


class Squares:
    """The restriction u_i² = square, or u_i² ≤ square.

    R = −diag δ has the price Σδ·square. The inequality has δ ≥ 0.
    """

    def __init__(self, n: int, square: float, *, is_equal: bool) -> None:
        self.n_variables, self._square = n, square
        self.is_signed = not is_equal

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Add −diag δ, and return Σδ·square."""
        H[np.diag_indices_from(H)] -= z
        return self._square * float(z.sum())

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return ``square`` minus uᵢ² of the vectors."""
        return self._square - (V**2) @ share


@dataclass(frozen=True)
class Box(Mask, name="box", usage="LOW,HIGH"):
    """Entries of the unit vector u in a range.

    Parameters
    ----------
    low, high : float
        Ends of the range.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if not (isinstance(value, float) and np.isinf(value)):
                value = check.number(value, name)
            object.__setattr__(self, name, float(value))
        both = f"({self.low:g}, {self.high:g})"
        check.must(self.low < self.high, "box", "be (low, high) with low < high", both)
        idle = "leave out some unit vector: an entry of one, or of minus one"
        check.must(self.low > -1 or self.high < 1, "box", idle, both)

    @property
    def kind(self) -> str:
        """The kind of mask in words."""
        return f"box {self.low:g} to {self.high:g}"

    def match(self, shape: tuple[int, int]) -> None:
        """Refuse a range that holds no unit vector with so many entries."""
        low, high, n = self.low, self.high, shape[0] * shape[1]
        reach = max(abs(low), abs(high))
        box, size = f"`box` = ({low:g}, {high:g})", f"{n**-0.5:.3g}"
        none = f"leaves no vector of unit norm with {n} entries"
        what = f"{box} {none}; one end must be at least {size} in size."
        check.require(reach * n**0.5 >= 1, what)
        every = f"makes every vector of {n} entries longer than one"
        least = max(low, 0.0, -high)
        check.require(least**2 * n <= 1, f"{box} {every}; move it closer to zero.")

    def nearest(self, w: np.ndarray) -> np.ndarray:
        """Return the unit vector in the range that is nearest to w."""
        return into_box(w, self.low, self.high)

    def solve(
        self, problem: MaskProblem, u: np.ndarray, bound: float, rng: np.random.Generator
    ) -> Masked:
        """Return the best end of ascents from u, −u, |u| and random vectors."""
        both = [u] if self.low == -self.high else [u, -u]  # −u may be equivalent
        limit = enough(bound)
        best = best_within(problem, [*both, np.abs(u)], self.nearest, limit, rng)
        if self.low < 0 and np.isfinite(self.high - self.low):
            best = self._swapped(problem, best, limit)
        return best

    def improve(self, problem: MaskProblem, u: np.ndarray) -> Masked:
        """Return the end of an ascent from a mask in the range."""
        return ascend_within(problem, u, self.nearest)

    def _swapped(self, problem: MaskProblem, best: Masked, limit: float) -> Masked:
        """Move entries from one end of the range to the other as long as κ rises.

        An ascent cannot make such a move, because the norm would differ from one on the
        way.
        """
        low, high = self.low, self.high
        for _ in range(_ROUNDS):
            flat, tried = best.u.ravel(), []
            for i in np.flatnonzero((flat <= low + 1e-9) | (flat >= high - 1e-9)):
                other = flat.copy()
                other[i] = high if flat[i] < 0 else low
                inside = self.nearest(other.reshape(best.u.shape))
                tried.append((problem.best_readout(inside)[1].value, i, inside))
            tried.sort(key=lambda one: one[:2], reverse=True)
            for _, _, start in tried[:AHEAD]:
                found = ascend_within(problem, start, self.nearest, limit)
                if found.beats(best, _GAIN):
                    best = found
                    break
            else:
                return best
        return best

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw a normal vector, and move it into the range."""
        found = rng.standard_normal(shape)
        return self.nearest(np.abs(found) if self.low >= 0 else found)

    def lowest_bound(self, shape: tuple[int, int], bounded: Bounded) -> float:
        """Return the bound that follows from the signs and the sizes of the entries."""
        n, reach = shape[0] * shape[1], max(abs(self.low), abs(self.high))
        found: list[Constraint] = [Entries(n)] if self.low >= 0 else []
        if reach < 1:  # a unit vector has no entry above one anyway
            found.append(Squares(n, reach**2, is_equal=False))
        return bounded(found).lowest


@dataclass(frozen=True)
class NonNegative(Box, name="nonnegative"):
    """Entries of u that are not negative, such as intensities of light."""

    low: float = field(default=0.0, init=False, repr=False)
    high: float = field(default=np.inf, init=False, repr=False)

    @property
    def kind(self) -> str:
        """The kind of mask in words."""
        return self.name


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
