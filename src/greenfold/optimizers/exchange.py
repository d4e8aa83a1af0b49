"""Weights from a few levels: exchange entries while the soft margin rises.

With one projection fixed, κ of the other, s/‖s‖ with entries from a set of levels, is

    κ(s) = b·s/‖s‖ − (η/2) sᵀQs/‖s‖² ,

and changing one entry changes each of the three sums by a few known numbers. All single
changes, and all pairs of them, are compared at once, and the best one costs a row of Q. The
same search serves the mask u (b, Q from the readout's response) and a quantised readout v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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
