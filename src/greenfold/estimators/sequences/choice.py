"""What a fit chooses on samples that it has not seen.

Candidates are drawn and solved input weights, with penalties of the readout and numbers of
last inputs that it sees, and a readout of the inputs alone. Each is fitted without the last
fifth of the steps, and judged there. Each estimator judges in its own way: one step, or
closed loops.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from ..._base import model_files
from ...dynamics.integration import DrivenNetwork
from ...math.ridge import RidgeSums

#: Penalties to try for drawn weights, in the squared unit of the states.
RIDGES = 10.0 ** np.arange(-12, 2.1, 1.0)
#: Number of blocks of a series that are held out in turn to choose the penalty and the
#: inputs of drawn weights, and share of the steps at the end that nothing is fitted to.
_N_BLOCKS, SHARE = 3, 0.2
#: Largest squared error, in squared deviations; a diverged loop has it. The choice does not
#: count errors beyond those of an unrelated sample.
WORST, _UNRELATED = 9.0, 2.0
#: Weight of a step at which no candidate has skill.
_NO_SKILL = 0.05
#: Share of the smallest error of all, over all steps, below which errors are alike, and an
#: error that nobody sees.
_ALIKE, _UNSEEN = 0.01, 1e-6
#: Number of standard errors by which another candidate must be better than a readout of the
#: inputs alone, and within which few starts agree with many, as loops that start close
#: together are alike; and share.
_ERRORS, _BETTER = 2.0, 0.05
#: Difference of the logs beyond which a few starts that fail do not count.
_MUCH = 0.5


class Block(NamedTuple):
    """Consecutive steps of one sequence."""

    sequence: int
    steps: slice


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

    def before(self, blocks: list[Block]) -> Pairs:
        """Return what comes before blocks at the end of all sequences."""
        first = blocks[0]
        cut = [slice(None)] * first.sequence + [slice(first.steps.start)]
        return Pairs(
            *([one[p] for one, p in zip(part, cut, strict=False)] for part in self)
        )


@dataclass(frozen=True, eq=False)
class DrivenPairs:
    """Pairs of sequences, and the network's response to the inputs."""

    network: DrivenNetwork
    pairs: Pairs
    #: States after every step.
    states: list[np.ndarray]
    #: Number of steps at the start of each sequence that do not count.
    skipped: int

    @classmethod
    def of(cls, network: DrivenNetwork, pairs: Pairs, skipped: int) -> DrivenPairs:
        """Run all sequences through a network, from rest."""
        states = [network.run(x, network.rest()) for x in pairs.inputs]
        return cls(network, pairs, states, skipped)

    @cached_property
    def memory(self) -> int:
        """Number of steps after which the network has forgotten its state."""
        longest = int(np.argmax([len(one) for one in self.pairs.inputs]))
        known = self.states[longest]
        return self.network.memory(self.pairs.inputs[longest], states=known)

    @cached_property
    def sums(self) -> RidgeSums:
        """The sums over the steps that count."""
        sums = RidgeSums.empty(self.network.n_states, self.pairs.targets[0].shape[1])
        known, after = (self.pairs.targets, self.pairs.weights), slice(self.skipped, None)
        for rows, y, weights in zip(self.states, *known, strict=True):
            sums.add(rows[after], y[after], weights[after])
        return sums

    def weights_without(self, blocks: list[Block]) -> list[np.ndarray]:
        """Return the weights of all steps, zero where a readout is not fitted."""
        found = [one.copy() for one in self.pairs.weights]
        for one in found:
            one[: self.skipped] = 0.0
        for index, steps in blocks:
            found[index][steps] = 0.0
        return found

    def readouts(
        self, blocks: list[Block], ridges: np.ndarray, reads: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return readouts V of some states, and intercepts, fitted without some blocks.

        The results are those of `RidgeSums.solve`. A readout is in the span of the rows
        that it is fitted to, so fewer rows than states are expressed in a basis of them.
        """
        fitted = self.weights_without(blocks)
        n_read = len(range(*reads.indices(self.network.n_states)))
        if sum(map(np.count_nonzero, fitted)) >= n_read:
            rows, sums = (self.states, self.pairs.targets, self.pairs.weights), self.sums
            for index, steps in blocks:
                sums = sums.without(*(one[index][steps] for one in rows))
            return sums.solve(ridges, reads)
        rows, y, weights = (
            np.concatenate([one[w > 0] for one, w in zip(part, fitted, strict=True)])
            for part in (self.states, self.pairs.targets, fitted)
        )
        basis = np.linalg.qr(rows[:, reads].T)[0]
        sums = RidgeSums.empty(basis.shape[1], y.shape[1])
        few, intercepts = sums.add(rows[:, reads] @ basis, y, weights).solve(ridges)
        V = np.zeros((len(ridges), self.network.n_states, y.shape[1]))
        V[:, reads] = basis @ few
        return V, intercepts

    def errors(self, block: Block, V: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Return squared errors of one step on a block, (n_readouts, n_steps)."""
        index, steps = block
        made = self.states[index][steps] @ V + intercepts[:, None]
        return ((made - self.pairs.targets[index][steps]) ** 2).mean(2)


#: A block, and readouts V (n_readouts, n_states, n_targets) with intercepts (n_readouts,
#: n_targets) that were fitted without it.
HeldOut: TypeAlias = tuple[Block, np.ndarray, np.ndarray]


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


def last_blocks(weights: list[np.ndarray], skipped: int) -> list[Block]:
    """Return the last fifth of the steps that count, by weight, in their order."""
    known = [np.concatenate([np.zeros(min(skipped, len(w))), w[skipped:]]) for w in weights]
    left, found = SHARE * sum(one.sum() for one in known), list[Block]()
    for index in range(len(known) - 1, -1, -1):
        later = known[index][::-1].cumsum()  # weight from each step on
        n = int(np.searchsorted(later, left * (1 - 1e-9))) + 1
        if left > 0 and later[-1] > 0:
            start = max(len(later) - n, int(np.argmax(known[index] > 0)))
            found.append(Block(index, slice(start, len(later))))
            left -= later[-1]
    return found[::-1]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network with a penalty, and its errors on the unseen steps.

    Attributes
    ----------
    kind : str
    network : DrivenNetwork
        Its state holds the inputs that the readout sees.
    first : int
        Index of the first entry of the state that the readout reads.
    ridge : float
    errors : ndarray (n_starts, n_steps)
        Squared errors on the unseen steps.
    every : ndarray (n_more_starts, n_steps)
        Squared errors on these and on blocks of all steps, which the readout has not seen.
        With many more starts, they choose among candidates of one kind.
    price : float
        Half the number of solved weights per target value, as in Akaike's criterion. The
        log of the error must be lower by it, because with few samples the best of many
        points may owe that to luck.
    """

    kind: str
    network: DrivenNetwork
    first: int
    ridge: float
    errors: np.ndarray
    every: np.ndarray
    price: float = 0.0


def joined(errors: list[np.ndarray]) -> np.ndarray:
    """Join errors (…, n_starts, n_steps) of several blocks, as far as all of them reach."""
    length = min(one.shape[-1] for one in errors)
    return np.concatenate([one[..., :length] for one in errors], axis=-2)


def size(errors: np.ndarray) -> float:
    """Return the root mean of squared errors."""
    return float(np.sqrt(errors.mean()))


class Scales(NamedTuple):
    """What the errors of candidates are weighed with.

    Attributes
    ----------
    weights : ndarray (n_steps,)
        The skill of the best candidate, and a little more. Where none has skill, as late
        in a loop of a chaotic system, a difference of errors says little; but a loop must
        not diverge there. Their sum is one.
    floor : float
        A squared error below which differences do not count.
    """

    weights: np.ndarray
    floor: float

    @classmethod
    def of(cls, errors: list[np.ndarray]) -> Scales:
        """Return the scales of the errors (n_starts, n_steps) of candidates."""
        best = np.min([one.mean(0) for one in errors], axis=0)
        weights = np.maximum(1 - best, _NO_SKILL)
        least = min(map(size, errors))
        return cls(weights / weights.sum(), max(_ALIKE * least, _UNSEEN) ** 2)

    def logs(self, errors: np.ndarray) -> np.ndarray:
        """Return the mean over the steps of the log of errors (…, n_steps).

        The logarithm weighs all steps ahead alike, although errors of chaos grow by orders
        of magnitude, and all starts, although a few may fail.
        """
        return 0.5 * np.log(np.minimum(errors, _UNRELATED) + self.floor) @ self.weights


def costs(errors: list[np.ndarray]) -> np.ndarray:
    """Return the mean log of the errors (n_starts, n_steps) of each candidate."""
    scales = Scales.of(errors)
    return np.array([scales.logs(one).mean() for one in errors])


def stand_for_kinds(found: list[Candidate]) -> list[Candidate]:
    """Return the candidate with the smallest cost of each kind, in their order."""
    kinds = {one.kind: [two for two in found if two.kind == one.kind] for one in found}
    return [
        same[int(np.argmin(costs([one.every for one in same])))] for same in kinds.values()
    ]


def is_better(one: Candidate, other: Candidate) -> bool:
    """Return whether one is clearly better than another.

    It is on the unseen steps, by more than its price, and on all blocks, by more than the
    scatter of the many starts there. The starts on the unseen steps are few. So it is
    better than drawn weights, too, if it is so on all blocks, less the price for having
    seen most of them, and if the few agree within their scatter.

    If the difference is not large, the mean square may not be larger: where noise limits
    all forecasts, the logs of single errors say little.
    """
    unseen = _gains(one.errors, other.errors)
    gains = _gains(one.every, other.every)
    if len(gains) < 2:
        return False
    mean, scatter = gains.mean(), _scatter(gains)
    alone, least = bool(other.first), max(_BETTER, one.price)
    clear = unseen.mean() > least and mean > scatter * (_ERRORS if alone else 1)
    if not alone and not clear:
        worth = mean - one.price
        agree = unseen.mean() > worth - _ERRORS * _scatter(unseen)
        clear = agree and worth > max(_BETTER, scatter)
    scales = Scales.of([one.every, other.every])
    squares = (np.minimum(two.every, _UNRELATED).mean(0) for two in (other, one))
    before, after = map(scales.logs, squares)
    return bool(clear and (before > after or mean > _MUCH))


def _gains(errors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return by how much the mean log of errors is below that of others, at each start."""
    scales = Scales.of([errors, others])
    return scales.logs(others) - scales.logs(errors)


def _scatter(gains: np.ndarray) -> float:
    """Return the standard error of the mean, for independent starts."""
    return float(gains.std() / np.sqrt(max(len(gains) - 1, 1)))


def choose(found: list[Candidate]) -> Candidate:
    """Return the best candidate, if it is clearly better than simpler ones.

    Of each kind, the one with the smallest cost stands for all. The kinds of the first
    candidates are the simplest.
    """
    best, *others = stand_for_kinds(found)
    for one in others:
        if is_better(one, best):
            best = one
    return best


@dataclass(frozen=True)
class Choice:
    """What a fit chose, and the errors on the last fifth of the steps, unseen until then.

    Errors are root mean squares in deviations: of one step for a regressor, and over all
    steps of closed loops for a forecaster.

    Attributes
    ----------
    weights : str
        "solved", "drawn" or "given" input weights, or "none" if the readout sees the last
        inputs alone: ridge regression on delays.
    ridge : float
        Penalty of the readout.
    spectral_radius : float or None
        Spectral radius of the recurrent weights; None for a network of your own.
    see_input : int
        Number of last inputs that the readout sees.
    error : float
    others : dict of float
        Errors of what else was tried, and of simple predictions.
    n_unseen, n_steps : int
        Number of unseen samples, and of steps per forecast; 1 for a regressor.
    """

    weights: str
    ridge: float
    spectral_radius: float | None
    see_input: int
    error: float
    others: dict[str, float]
    n_unseen: int
    n_steps: int

    @property
    def kept(self) -> str:
        """What the predictions come from: some weights, or ridge on delays."""
        return "ridge on delays" if self.weights == "none" else f"{self.weights} weights"

    @property
    def setting(self) -> str:
        """What was chosen, in words."""
        parts = [f"{self.weights} input weights"]
        if self.weights == "none":
            parts = ["ridge on delays, without the network"]
        elif self.spectral_radius is not None:
            parts.append(f"spectral radius {self.spectral_radius:.3g}")
        parts.append(f"penalty {self.ridge:.1g}")
        if self.see_input:
            few = self.see_input == 1
            parts.append("last input seen" if few else f"last {self.see_input} inputs seen")
        return ", ".join(parts)

    @property
    def comparison(self) -> str:
        """Its error beside those of what else was tried, in words."""
        beside = ", ".join(f"{name} {one:.3g}" for name, one in self.others.items())
        far = "" if self.n_steps == 1 else f", {self.n_steps} steps ahead"
        return f"error {self.error:.3g} on {self.n_unseen} unseen samples{far} ({beside})"

    def __str__(self) -> str:
        return f"{self.setting}: {self.comparison}"

    __repr__ = __str__


CHOICE = model_files.Object(Choice, others=model_files.BY_NAME)
