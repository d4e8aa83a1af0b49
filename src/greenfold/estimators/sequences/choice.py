"""What is chosen on held-out blocks: the penalty of the readout, and a network's setting.

Blocks of the sequences are held out in turn. Readouts are fitted to all other steps, and
each estimator judges them on the block in its own way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ...dynamics.driven import DrivenNetwork
from ...math.ridge import RidgeSums

#: Penalties to try, in the squared unit of the states.
RIDGES = 10.0 ** np.arange(-12, 0.1, 1.0)
#: Number of blocks of a series that are held out in turn.
_N_BLOCKS = 3


class Setting(NamedTuple):
    """How the network and its input weights are drawn."""

    spectral_radius: float
    input_scale: float
    leak: float
    bias_scale: float


#: Values that a search combines, in the order of a `Setting`.
_GRID = ((0.4, 0.9, 1.2), (0.1, 0.3, 1.0), (0.3, 0.6, 1.0), (0.3, 1.0))


class Pairs(NamedTuple):
    """Input and target sequences, in units of their deviation.

    They have shapes (n_samples, n_channels) and (n_samples, n_targets). Each step has a
    weight, which is zero where the target is not known.
    """

    inputs: list[np.ndarray]
    targets: list[np.ndarray]
    weights: list[np.ndarray]

    @classmethod
    def of(cls, inputs: list[np.ndarray], targets: list[np.ndarray]) -> Pairs:
        """Return pairs whose steps all have the weight one."""
        return cls(inputs, targets, [np.ones(len(one)) for one in inputs])

    @property
    def longest(self) -> np.ndarray:
        """The longest input sequence."""
        return max(self.inputs, key=len)


class Block(NamedTuple):
    """Consecutive steps of one sequence."""

    sequence: int
    steps: slice


@dataclass(frozen=True, eq=False)
class DrivenPairs:
    """Pairs of sequences, and the network's response to the inputs."""

    network: DrivenNetwork
    pairs: Pairs
    #: Features of the readout at every step, and the sums over the steps that count.
    features: list[np.ndarray]
    sums: RidgeSums
    #: Number of steps at the start of each sequence that do not count.
    skipped: int
    #: Number of steps that the network remembers.
    memory: int

    def without(self, block: Block) -> RidgeSums:
        """Return the sums without a held-out block."""
        rows = self.features, self.pairs.targets, self.pairs.weights
        return self.sums.without(*(one[block.sequence][block.steps] for one in rows))


#: Returns a score for each of the readouts V (n_readouts, n_features, n_targets) with
#: intercepts (n_readouts, n_targets) on a held-out block; larger is better.
Judge: TypeAlias = Callable[[DrivenPairs, Block, np.ndarray, np.ndarray], np.ndarray]


def blocks(weights: list[np.ndarray], skipped: int) -> list[Block]:
    """Return blocks to hold out in turn, at least two.

    The blocks of a sequence have equally many steps with a weight above zero.
    """
    steps = [skipped + np.flatnonzero(one[skipped:]) for one in weights]
    n_steps = [len(one) for one in steps]
    counts = [max(1, round(_N_BLOCKS * n / sum(n_steps))) if n else 0 for n in n_steps]
    if sum(counts) < 2:
        counts[int(np.argmax(n_steps))] = 2
    found = []
    for index, (known, count) in enumerate(zip(steps, counts, strict=True)):
        ends = np.append(known, len(weights[index]))
        cuts = ends[np.linspace(0, len(known), count + 1).astype(int)]
        found += [Block(index, slice(a, b)) for a, b in itertools.pairwise(cuts)]
    return found


def choose_ridge(run: DrivenPairs, judge: Judge) -> tuple[float, float]:
    """Return the best score on held-out blocks, and its penalty."""
    scores = np.zeros(len(RIDGES))
    for block in blocks(run.pairs.weights, run.skipped):
        scores += judge(run, block, *run.without(block).solve(RIDGES))
    # Among equal scores, take the largest penalty.
    best = len(scores) - 1 - int(np.argmax(scores[::-1]))
    return float(scores[best]), float(RIDGES[best])


def settings(start: Setting, fixed: tuple[str, ...], n: int, seed: int) -> list[Setting]:
    """Return ``n`` settings to compare: ``start``, then others in random order.

    ``fixed`` names the values that stay as in ``start``.
    """
    every = list(itertools.product(*_GRID))
    order = np.random.default_rng([seed, 1]).permutation(len(every))
    kept = {name: getattr(start, name) for name in fixed}
    return [start, *(Setting(*every[i])._replace(**kept) for i in order)][:n]
