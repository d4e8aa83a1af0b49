"""Masks that drive few inputs: which neurons or nodes to drive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb

import numpy as np

from ..._base import checks as check
from ...math.sphere import maximize_on_sphere
from .mask import (
    Bound,
    Bounded,
    Constraint,
    Mask,
    Masked,
    MaskProblem,
    ascend_within,
    best_within,
    enough,
)

#: Number of sets of inputs up to which an ascent is made in each.
_ENUMERATED = 100
#: Limit of rounds that exchange a driven input for another one, number of driven inputs
#: (those of least weight) and of others (those of steepest κ) that are exchanged, number of
#: best exchanges to ascend from, and relative gain that counts as a rise.
_ROUNDS, _LEAST, _STEEPEST, _TRIED, _GAIN = 50, 10, 20, 8, 1e-9
#: Limit of evaluations of the last ascent, in the set of the best mask.
_LAST = 10_000
#: Limit of rounds of cuts, share of a direction from which on it is cut, number of cuts per
#: round, and relative decrease of the bound at which to stop.
_CUTS, _MINOR, _PER_ROUND, _DECREASE = 12, 1e-3, 4, 1e-4


class Cuts:
    """The restriction (c·u)² ≤ price for several vectors c (n_cuts, n), flat.

    R = −Σγ ccᵀ with γ ≥ 0 has the price Σγ·price.
    """

    is_signed = True

    def __init__(self, rows: np.ndarray, prices: np.ndarray) -> None:
        self._rows, self._prices, self.n_variables = rows, prices, len(rows)

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Subtract Σγ ccᵀ, and return its price."""
        H -= (self._rows.T * z) @ self._rows
        return float(z @ self._prices)

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return each price minus (c·u)² of the vectors."""
        return self._prices - (self._rows @ V) ** 2 @ share


@dataclass(frozen=True)
class AtMost(Mask, name="at-most", usage="K"):
    """At most k driven inputs: u has at most k rows that are not zero.

    With one channel, u has at most k non-zero entries. The search ascends in the set of
    these masks, and exchanges driven inputs for others. The bound of a k-sparse unit u
    follows from (c·u)² ≤ the sum of the k largest c_i², for every vector c.

    Parameters
    ----------
    k : int
        Number of inputs.

    Examples
    --------
    >>> from greenfold import AtMost, Device, GaussianStimuli, Reservoir, optimize, unfold
    >>> network = unfold(Reservoir.random(30, rng=0), n_steps=6, dt=0.5)
    >>> stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    >>> best = optimize(network, stimuli, device=Device(mask=AtMost(5)), rng=0)
    >>> int((best.u != 0).sum())
    5
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check.count(self.k, "k"))

    @classmethod
    def from_numbers(cls, *numbers: float) -> AtMost:
        """Return the mask for this number of inputs."""
        (k,) = numbers
        check.must(k.is_integer(), "k", "be an integer", k)
        return cls(int(k))

    @property
    def kind(self) -> str:
        """The kind of mask in words."""
        return f"at most {self.k} input{'s' * (self.k > 1)}"

    def match(self, shape: tuple[int, int]) -> None:
        """Refuse a number of inputs that a system does not exceed."""
        wanted = f"be below the {shape[0]} inputs of the system, to restrict anything"
        check.must(self.k < shape[0], "k", wanted, self.k)

    def nearest(self, w: np.ndarray) -> np.ndarray:
        """Return the unit vector with at most k rows that is nearest to w."""
        sizes = (w**2).sum(1)
        return _within(w, np.argsort(-sizes, kind="stable")[: self.k])

    def solve(
        self, problem: MaskProblem, u: np.ndarray, bound: float, rng: np.random.Generator
    ) -> Masked:
        """Return the best end of ascents and of exchanges of single inputs.

        The last ascent, in the set found, takes as many steps as it needs.
        """
        limit, ends = enough(bound), [best_within(problem, [u], self.nearest, bound, rng)]
        if comb(len(u), self.k) <= _ENUMERATED:
            for chosen in combinations(range(len(u)), self.k):
                project = partial(_within, rows=np.array(chosen))
                ends.append(ascend_within(problem, u, project, limit))
        best = self._exchanged(problem, max(ends, key=lambda end: end.value), limit)
        project = partial(_within, rows=np.flatnonzero(best.u.any(axis=1)))
        return ascend_within(problem, best.u, project, limit, _LAST)

    @property
    def is_symmetric(self) -> bool:
        """Whether −u is a mask of this kind."""
        return True

    def n_products(self, shape: tuple[int, int]) -> float:
        """Return how many products `best_inputs` takes per problem."""
        return float(min(comb(shape[0], self.k), 2**62) * (self.k * shape[1]) ** 3)

    def best_inputs(
        self, b: np.ndarray, Q: np.ndarray, eta: float, shape: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best of all sets of inputs, and its u, per problem."""
        best, inputs = np.full(len(b), -np.inf), np.zeros_like(b)
        places = np.arange(b.shape[1]).reshape(shape)
        for chosen in combinations(range(shape[0]), self.k):
            own = places[list(chosen)].ravel()
            found = maximize_on_sphere(b[:, own], eta * Q[:, own[:, None], own])
            better = found.value > best
            best = np.where(better, found.value, best)
            made = np.zeros_like(b)
            made[:, own] = found.v
            inputs = np.where(better[:, None], made, inputs)
        return best, inputs

    def improve(self, problem: MaskProblem, u: np.ndarray) -> Masked:
        """Return the end of an ascent from a mask of this kind."""
        return ascend_within(problem, u, self.nearest)

    def _exchanged(self, problem: MaskProblem, best: Masked, limit: float) -> Masked:
        """Exchange a driven input for another one as long as κ rises."""
        for _ in range(_ROUNDS):
            if best.value >= limit:
                break
            _, _, gradient = problem.evaluate(best.u)
            sizes, slopes = np.linalg.norm(best.u, axis=1), np.linalg.norm(gradient, axis=1)
            driven = np.flatnonzero(sizes)
            weakest = driven[np.argsort(sizes[driven], kind="stable")[:_LEAST]]
            others = np.flatnonzero(sizes == 0)
            steepest = others[np.argsort(-slopes[others], kind="stable")[:_STEEPEST]]
            tried: list[tuple[float, int, np.ndarray]] = []
            for i in weakest:
                for j in steepest:
                    new = best.u.copy()
                    new[i] = 0.0
                    new[j] = gradient[j] * (sizes[i] / max(slopes[j], 1e-300))
                    new = self.nearest(new)
                    tried.append((-problem.best_readout(new)[1].value, len(tried), new))
            for _, _, start in sorted(tried, key=lambda one: one[:2])[:_TRIED]:
                found = ascend_within(problem, start, self.nearest, limit)
                if found.beats(best, _GAIN):
                    best = found
                    break
            else:
                break
        return best

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw normal weights of k random inputs."""
        found = np.zeros(shape)
        rows = rng.choice(shape[0], min(self.k, shape[0]), replace=False)
        found[rows] = rng.standard_normal((len(rows), shape[1]))
        return found

    def lowest_bound(self, shape: tuple[int, int], bounded: Bounded) -> float:
        """Return the lowest bound of several rounds of cuts.

        Each round cuts the directions that the relaxation of the round before mixes.
        """
        rows, lowest = np.zeros((0, shape[0] * shape[1])), np.inf
        for _ in range(_CUTS):
            found = bounded(self._cuts(rows, shape))
            if found.lowest > lowest * (1 - np.sign(lowest) * _DECREASE):
                return min(lowest, found.lowest)
            lowest = found.lowest
            more = self._violated(found, shape)
            if not len(more):
                return lowest
            rows = np.vstack([rows, more])
        return lowest

    def _cuts(self, rows: np.ndarray, shape: tuple[int, int]) -> Sequence[Constraint]:
        return [Cuts(rows, self._prices(rows, shape))] if len(rows) else []

    def _prices(self, rows: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """Return the sum of the k largest squares of each vector, by inputs."""
        squares = (rows**2).reshape(len(rows), shape[1], shape[0]).sum(1)
        return np.sort(squares, axis=1)[:, -self.k :].sum(1)

    def _violated(self, found: Bound, shape: tuple[int, int]) -> np.ndarray:
        """Return unit vectors c whose (c·u)² in the relaxation exceeds their price."""
        mixed = found.shares > _MINOR
        flat = found.directions[:, :, mixed].transpose(2, 1, 0).reshape(mixed.sum(), -1)
        rows = np.concatenate([flat, np.sign(flat)])
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        shares = found.shares[mixed] / found.shares[mixed].sum()
        excess = (rows @ flat.T) ** 2 @ shares - self._prices(rows, shape)
        order = np.argsort(-excess, kind="stable")[:_PER_ROUND]
        return rows[order[excess[order] > 0]]


def _within(w: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the unit vector with these rows alone that is nearest to w."""
    made = np.zeros_like(w)
    made[rows] = w[rows]
    size = np.linalg.norm(made)
    if size == 0:
        made[rows] = 1.0
        size = np.linalg.norm(made)
    return made / size
