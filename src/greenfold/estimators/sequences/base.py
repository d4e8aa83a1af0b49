"""What sequence regression and forecasts share: solved input weights and one readout.

A fit draws a network, solves for its input weights on all sequences, and fits the readout.
What it chooses on held-out blocks is in `choice`; each estimator judges a block in its own
way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ..._base import checks as check
from ..._base import model_files
from ..._base.model_files import refuse_file
from ...dynamics.integration import DrivenNetwork, Dynamics
from ...math.ridge import RidgeSums
from ...networks import spectra
from ...networks.echo_state import AnyNetwork, EchoStateNetwork, thinned
from ...networks.matrices import dense
from ...networks.reservoir import Reservoir
from ...optimizers.run import optimize
from ...optimizers.sequence_loss import Iterate, UnseenProblem
from ...stimuli.sequences import SequenceTask, check_sequences
from ..base import Unset
from ..onnx import new_graph
from ..parameters import (
    COUNT,
    FLAG,
    NETWORK,
    NONE,
    POSITIVE,
    RANDOM_STATE,
    VERBOSE,
    Checked,
    Idle,
    Rules,
    array,
    one_of,
    real,
    whole,
)
from .baselines import DELAYS, season_length
from .choice import (
    CHOICE,
    RIDGES,
    Block,
    Candidate,
    Choice,
    DrivenPairs,
    HeldOut,
    Pairs,
    blocks,
    choose,
    costs,
    joined,
    last_blocks,
    size,
    stand_for_kinds,
)

#: Kinds of candidates, from the simplest on; `Choice` and its errors call them so.
ALONE, DRAWN, GIVEN, SOLVED = (
    "ridge on delays",
    "drawn weights",
    "given weights",
    "solved weights",
)
_WEIGHTS = {ALONE: "none", DRAWN: "drawn", GIVEN: "given", SOLVED: "solved"}
#: Penalties from which paths with a free and with a held spectral radius start. A larger
#: one at the start leads to smaller radii.
_FREE_RIDGE, _HELD_RIDGE = 1e-6, 1e-9
#: Smallest and largest spectral radius of a path, and one to start from besides the given.
_RADII, _SMALL_RADIUS = (0.02, 1.2), 0.1
#: Steps of a path to judge besides its last, and factors of its penalty to judge there. A
#: larger penalty can keep a loop from diverging.
_KEPT, _LARGER = (3, 12, 50, 100), np.array([1.0, 1e2, 1e4])
#: Shares of the evaluations after which paths are compared, and how many of the best go on
#: (successive halving: Jamieson & Talwalkar, AISTATS 2016).
_ROUNDS = ((1 / 16, 2), (1 / 4, 1), (1.0, 1))
#: Draws of input weights to start from with the radius held. Where part of the state of a
#: system is hidden, one start in five ends in a loop that is valid for half as long.
_N_DRAWS = 5
#: Penalties at which a linear network is solved with a certificate.
_CERTIFIED = np.array([1e-9, 1e-6, 1e-3])
#: Number of starts that are compared, and change of predictions that counts, relative to
#: their errors, where a series is shorter than the memory of the network needs.
_N_BEGINS, _DEPENDS = 16, 0.1
#: Fewest steps to solve for input weights with.
_LEAST_KNOWN = 16
#: A number of last inputs that a readout of states may see by default, besides a season and
#: one more. The features of all last inputs are at most so many, in total and per step.
_FEW, _MOST_FEATURES, _PER_STEP = 4, 300, 1 / 3
#: Number of steps of a stream to hold in memory at a time.
_CHUNK = 4096
_FROM_ZERO = whole(0)


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and deviation per channel, computed without overflow."""

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(
        cls, sequences: list[np.ndarray], name: str, weights: list[np.ndarray] | None = None
    ) -> Scale:
        """Return the scale of all sequences; a constant channel keeps its unit.

        Samples count by their ``weights``, one by default.
        """
        rows = np.concatenate(sequences)
        share = np.ones(len(rows)) if weights is None else np.concatenate(weights)
        rows, share = rows[share > 0], share[share > 0]
        peak = np.abs(rows).max(0)
        peak[peak == 0] = 1.0
        mean = np.average(rows / peak, 0, share)
        deviation = np.sqrt(np.average((rows / peak - mean) ** 2, 0, share))
        constant = np.flatnonzero(deviation <= 1e-12)
        what = "varies by less than 1e-12 of its size, so there is nothing to learn from it"
        cure = "pass data that vary, or subtract the mean first"
        check.require(len(constant) < len(peak), f"`{name}` {what}; {cure}.")
        if len(constant):
            kept = f"channel {', '.join(map(str, constant))}; it is not scaled"
            warnings.warn(f"`{name}` does not vary in {kept}.", UserWarning, stacklevel=6)
            deviation[constant] = 1.0
        return cls(mean * peak, deviation * peak)

    def down(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in units of the deviation."""
        return rows / self.deviation - self.mean / self.deviation

    def up(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in the original unit."""
        return rows * self.deviation + self.mean

    def joined(self, other: Scale) -> Scale:
        """Return the scale of the channels of both, one after the other."""
        mean = np.concatenate([self.mean, other.mean])
        return Scale(mean, np.concatenate([self.deviation, other.deviation]))

    def after(self, n: int) -> Scale:
        """Return the scale of the channels from ``n`` on."""
        return Scale(self.mean[n:], self.deviation[n:])


class Way(NamedTuple):
    """Where a path of a solve starts, the limits of its scale if free, and its problem."""

    start: Iterate
    scales: tuple[float, float] | None
    problem: UnseenProblem


class SequenceEstimator(Checked):
    """A base class that draws a network, solves for input weights and fits the readout.

    A subclass sets the class attributes and defines `_judge`. Its ``fit`` sets the scales,
    then calls `_fit`.
    """

    #: Name of the argument of ``fit`` that holds the sequences, for errors.
    _argument: ClassVar[str]
    #: Samples of a series beyond its pairs: 1 if the target is the next sample.
    _ahead: ClassVar[int] = 0
    #: Leak of the network if none is given.
    _default_leak: ClassVar[float]

    def _judge(self, run: DrivenPairs, held_out: list[HeldOut]) -> list[np.ndarray]:
        """Return squared errors (n_readouts, n_starts, n_steps) on each held-out block."""
        raise NotImplementedError

    def _simple(self, pairs: Pairs, block: Block) -> dict[str, np.ndarray]:
        """Return squared errors (1, n_starts, n_steps) of simple predictions, by name."""
        raise NotImplementedError

    def _stays(self, run: DrivenPairs, best: Candidate) -> bool:
        """Return whether predictions stay near the data, after a fit to all of them."""
        return True

    #: Scales of inputs and targets, and whether targets had one axis.
    _x_scale: Scale
    _y_scale: Scale
    _flat: bool
    #: Column names of the fitted table.
    _names: list[str] | None
    #: Index of the first entry of the state that the readout reads.
    _first: int

    _rules: ClassVar[Rules] = {
        "n_neurons": (COUNT,),
        "input_weights": (
            one_of("solved", "random"),
            array("an array (n_neurons, n_channels)", 1, 2),
        ),
        "spectral_radius": (POSITIVE,),
        "leak": (real(0, 1, "(]"), NONE),
        "input_scale": (real(0, 1e6, "(]"),),
        "bias_scale": (real(0, 1e6),),
        "reservoir": (NETWORK, NONE),
        "dt": (POSITIVE,),
        "ridge": (one_of("auto"), real(0, 1e12, "(]")),
        "washout": (one_of("auto"), _FROM_ZERO),
        "see_input": (one_of("auto"), FLAG, _FROM_ZERO),
        "max_iter": (COUNT,),
        "random_state": RANDOM_STATE,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        n_neurons: int = 100,
        *,
        input_weights: str | ArrayLike = "solved",
        spectral_radius: float = 0.9,
        leak: float | None = None,
        input_scale: float = 0.3,
        bias_scale: float = 0.5,
        reservoir: AnyNetwork | None = None,
        dt: float = 1.0,
        ridge: float | str = "auto",
        washout: int | str = "auto",
        see_input: int | str = "auto",
        max_iter: int = 200,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_neurons = n_neurons
        self.input_weights = input_weights
        self.spectral_radius = spectral_radius
        self.leak = leak
        self.input_scale = input_scale
        self.bias_scale = bias_scale
        self.reservoir = reservoir
        self.dt = dt
        self.ridge = ridge
        self.washout = washout
        self.see_input = see_input
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _idle(self) -> list[Idle]:
        network, weights = self.reservoir, self.input_weights
        solved = isinstance(weights, str) and weights == "solved"
        discrete = not isinstance(network, Reservoir)
        continuous = "without a 'reservoir' in continuous time, which alone has steps"
        own, given = "if 'reservoir' is a network", "if 'input_weights' are an array"
        return [
            (network is not None, own, ("n_neurons", "spectral_radius", "leak")),
            (discrete, continuous, ("dt",)),
            (not solved, "unless 'input_weights' are solved", ("max_iter",)),
            (not isinstance(weights, str), given, ("input_scale", "bias_scale")),
        ]

    # Fit

    def _fit(self, pairs: Pairs) -> tuple[DrivenPairs, int]:
        """Choose input weights, penalty and inputs seen, and fit the readout.

        Return the driven sequences, and the index of the last one that was long enough to
        continue from.
        """
        seed = int(check_random_state(self.random_state).randint(2**31))
        if self.washout != "auto":
            self._check_length(pairs, int(self.washout))
        n_channels = pairs.longest.shape[1]
        drawn, kind = self._drawn(n_channels, seed), DRAWN
        if not isinstance(self.input_weights, str):
            drawn, kind = self._given(drawn, n_channels), GIVEN
        memory = drawn.memory(pairs.longest)
        skipped = self._skipped(self._room(memory, pairs))
        self._check_known(pairs, skipped)
        unseen = last_blocks(pairs.weights, skipped)
        simple, own, beside = self._without_solving(kind, drawn, pairs, skipped, unseen)
        found = [simple, own] if self.see_input == "auto" else [own]
        if isinstance(self.input_weights, str) and self.input_weights == "solved":
            seen = own.network.n_seen
            found += self._solved(drawn, seed, memory, seen, pairs, skipped, unseen)
        best, run = self._accepted(found, pairs)
        if best.kind == SOLVED and hasattr(self, "projections_"):
            best = self._certified(best, pairs, skipped)
            run = self._drive(pairs, best)
        self._add_choice(best, [simple, *found], beside, pairs, unseen)
        return run, self._fit_readout(run, best.ridge)

    def _accepted(
        self, found: list[Candidate], pairs: Pairs
    ) -> tuple[Candidate, DrivenPairs]:
        """Return the best candidate whose readout of all data stays near them.

        Its network has become that of the estimator, and has run.
        """
        left = list(found)
        while left:
            best = choose(left)
            run = self._drive(pairs, best)
            if self._stays(run, best):
                return best, run
            left.remove(best)
        best = choose(found)
        return best, self._drive(pairs, best)

    @property
    def _ridges(self) -> np.ndarray:
        """Penalties to compare."""
        return RIDGES if self.ridge == "auto" else np.array([float(self.ridge)])

    def _check_known(self, pairs: Pairs, skipped: int) -> None:
        self._check_length(pairs, skipped)
        n_known = sum(int(np.count_nonzero(one[skipped:])) for one in pairs.weights)
        wanted = f"hold at least three targets after the washout of {skipped} samples"
        check.must(n_known >= 3, "y", wanted, n_known)

    def _check_length(self, pairs: Pairs, skipped: int) -> None:
        n, least = len(pairs.longest) + self._ahead, skipped + self._ahead + 3
        wanted = f"have at least {least} samples, for a washout of {skipped}"
        got = f"{n}; pass a longer sequence or washout=0"
        check.must(n >= least, self._argument, wanted, got)

    def _seen_counts(self, pairs: Pairs) -> tuple[list[int], list[int]]:
        """Return numbers of last inputs to compare: with states, and without."""
        n_channels = pairs.longest.shape[1]
        n_known = sum(int(np.count_nonzero(one)) for one in pairs.weights)
        most = int(min(_MOST_FEATURES, n_known * _PER_STEP)) // n_channels
        season = season_length(pairs.longest)
        seasons = [season, season + 1] if season > 1 else []
        alone = sorted({p for p in (*DELAYS, *seasons) if p <= most} | {1})
        if self.see_input != "auto":
            return [int(self.see_input)], alone
        if self.reservoir is not None and self.reservoir.gain.is_linear:
            return [0], alone  # its solution is certified if the readout sees no inputs
        return [0, *sorted({p for p in (_FEW, *seasons[1:]) if p <= most})], alone

    def _without_solving(
        self,
        kind: str,
        drawn: DrivenNetwork,
        pairs: Pairs,
        skipped: int,
        unseen: list[Block],
    ) -> tuple[Candidate, Candidate, dict[str, float]]:
        """Return a readout of the inputs alone, drawn weights, and errors of simpler ones.

        Penalties and inputs are chosen on blocks that are held out in turn.
        """
        with_states, alone = self._seen_counts(pairs)
        widest = max(*with_states, *alone)
        run = DrivenPairs.of(replace(drawn, n_seen=widest), pairs, skipped)
        turns = [[block] for block in blocks(pairs.weights, skipped)]
        found: list[Candidate] = []
        for first, counts in ((drawn.n_neurons, alone), (0, with_states)):
            tried = [replace(drawn, n_seen=seen) for seen in counts]
            one_step = [self._one_step(run, one, first, turns) for one in tried]
            if first:
                best = int(np.argmin([one.min() for one in one_step]))
                tried, one_step = tried[best : best + 1], one_step[best : best + 1]
            made: list[Candidate] = []
            for network, errors in zip(tried, one_step, strict=True):
                # Among equal errors, the largest penalty; loops may need a larger one.
                best = len(errors) - 1 - int(np.argmin(errors[::-1]))
                ridges = self._ridges[best : best + 5 : 2]
                name = f"{network.n_seen} inputs seen"
                made += self._judged(name, run, network, first, ridges, turns)
            best = choose(made)
            ridge, name = np.array([best.ridge]), ALONE if first else kind
            given = best.network, first, ridge, [unseen], turns
            found += self._judged(name, run, *given)
        simple = [self._simple(pairs, block) for block in unseen]
        beside = {name: size(joined([one[name] for one in simple])) for name in simple[0]}
        return found[0], found[1], beside

    def _one_step(
        self, run: DrivenPairs, network: DrivenNetwork, first: int, turns: list[list[Block]]
    ) -> np.ndarray:
        """Return the squared error of one step for each penalty on held-out blocks."""
        reads, total = slice(first, network.n_states), np.zeros(len(self._ridges))
        for turn in turns:
            readouts = run.readouts(turn, self._ridges, reads)
            for block in turn:
                weights = run.pairs.weights[block.sequence][block.steps]
                total += run.errors(block, *readouts) @ weights
        return total

    def _judged(
        self,
        kind: str,
        run: DrivenPairs,
        network: DrivenNetwork,
        first: int,
        ridges: np.ndarray,
        turns: list[list[Block]],
        more: Sequence[list[Block]] = (),
    ) -> list[Candidate]:
        """Return a candidate per penalty, judged on blocks that are held out in turn.

        ``network`` is that of the run, but may hold fewer inputs. ``more`` blocks count
        among candidates of one kind.
        """
        reads = slice(first, network.n_states)

        held_out: list[HeldOut] = []
        for turn in [*turns, *more]:
            readouts = run.readouts(turn, ridges, reads)
            held_out += [(block, *readouts) for block in turn]
        found = self._judge(run, held_out)
        errors = joined(found[: sum(map(len, turns))]), joined(found)
        return [
            Candidate(kind, network, first, float(ridge), *both)
            for ridge, *both in zip(ridges, *errors, strict=True)
        ]

    def _drawn(self, n_channels: int, seed: int) -> DrivenNetwork:
        """Return a network with random input weights; draw the network if none is given."""
        rng, network = np.random.default_rng(seed), self.reservoir
        if network is None:
            network = EchoStateNetwork.random(
                int(self.n_neurons),
                spectral_radius=self.spectral_radius,
                leak=self._default_leak if self.leak is None else self.leak,
                connectivity=min(1.0, 10 / int(self.n_neurons)),
                allow_unstable=True,
                rng=rng,
            )
        drawn = self._random_weights(network.n_neurons, n_channels, rng)
        return DrivenNetwork(network, *drawn, float(self.dt))

    def _random_weights(
        self, n_neurons: int, n_channels: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return random input weights (n_neurons, n_channels) and a bias (n_neurons,)."""
        scale = self.input_scale / np.sqrt(n_channels)
        weights = scale * rng.uniform(-1, 1, (n_neurons, n_channels))
        return weights, self.bias_scale * rng.uniform(-1, 1, n_neurons)

    def _given(self, drawn: DrivenNetwork, n_channels: int) -> DrivenNetwork:
        """Return the network with the given input weights, and a bias if they hold one."""
        n = drawn.n_neurons
        given = check.host_array(self.input_weights, "input_weights", ndim=(1, 2))
        given = given.reshape(len(given), -1)
        wanted = f"have shape ({n}, {n_channels}), or one more column for a bias"
        shapes = ((n, n_channels), (n, n_channels + 1))
        check.must(given.shape in shapes, "input_weights", wanted, f"shape {given.shape}")
        some = given[:, :n_channels].any()
        check.must(some, "input_weights", "have non-zero weights for inputs", "only zeros")
        bias = given[:, -1] if given.shape[1] > n_channels else np.zeros(n)
        return DrivenNetwork(drawn.network, given[:, :n_channels], bias, drawn.dt)

    def _problem(
        self,
        network: AnyNetwork,
        pairs: Pairs,
        scale: float,
        washout: int,
        ridge: float = _HELD_RIDGE,
        see_input: int = 0,
    ) -> UnseenProblem:
        """Return the problem of solving for u of norm ``scale``, read after a washout."""
        task = SequenceTask.from_sequences(
            [scale * one for one in pairs.inputs],
            pairs.targets,
            washout=washout,
            ridge=ridge,
            n_skipped=self._skipped(washout),
            sample_weight=pairs.weights,
            bias=scale,
            see_input=see_input,
        )
        dt = None if isinstance(network, EchoStateNetwork) else float(self.dt)
        if not network.gain.is_linear:
            network = thinned(network)
        return UnseenProblem(Dynamics(network, n_steps=task.n_steps, dt=dt), task)

    def _skipped(self, washout: int) -> int:
        return washout if self.washout == "auto" else int(self.washout)

    def _solved(
        self,
        drawn: DrivenNetwork,
        seed: int,
        memory: int,
        n_seen: int,
        pairs: Pairs,
        skipped: int,
        unseen: list[Block],
    ) -> list[Candidate]:
        """Solve for input weights at the norm of the drawn ones; return points on the way.

        The solve does not see the last blocks, where the points are judged.
        """
        train = pairs.before(unseen)
        n_known = sum(int(np.count_nonzero(one[skipped:])) for one in train.weights)
        if n_known < _LEAST_KNOWN:
            return []
        u = np.column_stack([drawn.weights, drawn.bias])
        scale = float(np.linalg.norm(u))
        u /= scale
        washout = max(self._room(drawn.memory(train.longest), train), n_seen - 1)
        free, limit = self.ridge == "auto", int(self.max_iter)
        most = max(self._room(len(pairs.longest), pairs), memory)
        turns = [[block] for block in blocks(pairs.weights, skipped)]
        price = u.size / (2 * n_known * train.targets[0].shape[1])

        def judged(points: list[Iterate], problem: UnseenProblem) -> list[Candidate]:
            found: list[Candidate] = []
            for at in points:
                network = drawn.network
                if at.scale != 1:
                    assert isinstance(network, EchoStateNetwork)
                    network = network.scaled(at.scale)
                weights, bias = scale * at.u[:, :-1], scale * at.u[:, -1]
                n_sub = problem.prepared.n_sub or 1
                seen = problem.task.see_input
                driven = DrivenNetwork(network, weights, bias, drawn.dt, n_sub, seen)
                run = DrivenPairs.of(driven, pairs, skipped)
                if run.memory > most:
                    continue  # what it predicts would depend on where a series begins
                ridges = at.ridge * _LARGER if free else self._ridges
                made = self._judged(SOLVED, run, driven, 0, ridges, [unseen], turns)
                found += [replace(candidate, price=price) for candidate in made]
            return found

        problems = {
            seen: self._problem(drawn.network, train, scale, washout, see_input=seen)
            for seen in dict.fromkeys((n_seen, 0 if self.see_input == "auto" else n_seen))
        }
        problem = problems[n_seen]
        if problem.system.is_linear and not n_seen:  # with a certificate
            points: list[Iterate] = []
            for ridge in _CERTIFIED if free else self._ridges:
                task = replace(problem.task, ridge=float(ridge))
                self.projections_ = best = optimize(problem.system, task, rng=0)
                best.raise_if_interrupted()
                points.append(Iterate(best.u.reshape(u.shape), float(ridge)))
            return judged(points, problem)

        draws, size = [u], (drawn.n_neurons, u.shape[1] - 1)
        for k in range(1, _N_DRAWS):
            other = self._random_weights(*size, np.random.default_rng([seed, k]))
            draws.append(np.column_stack(other))
            draws[-1] /= np.linalg.norm(draws[-1])
        ways = self._ways(draws, problem, problems.get(0, problem))

        def walked(way: Way, after: int, n: int) -> tuple[list[Candidate], int]:
            """Return points after some steps on a way, and the number of all its steps."""
            start, scales, one = way
            path = one.follow(start, free_ridge=free, scales=scales, max_iter=n)
            path, last = [start, *path], len(path)
            kept = {k for k in (*_KEPT, last) if after < k <= last}
            return judged([path[k] for k in sorted(kept)], one), last

        found = [list[Candidate]() for _ in ways]
        alive, steps = list(range(len(ways))), [-1] * len(ways)
        for share, n_best in _ROUNDS:
            for index in alive:
                n = max(round(limit * share), 1)
                made, steps[index] = walked(ways[index], steps[index], n)
                found[index] += made
            owners = [index for index in alive for _ in found[index]]
            every = [one.every for index in alive for one in found[index]]
            order = np.argsort(costs(every), kind="stable") if every else []
            alive = list(dict.fromkeys(owners[k] for k in order))[:n_best]
        return [one for some in found for one in some]

    def _ways(
        self, draws: list[np.ndarray], problem: UnseenProblem, of_states: UnseenProblem
    ) -> list[Way]:
        """Return the paths to follow from drawn weights of unit norm.

        With a free radius, a path does not need last inputs beside the states.
        """
        ridge = float(self.ridge) if self.ridge != "auto" else None
        held = [Way(Iterate(u, ridge or _HELD_RIDGE), None, problem) for u in draws]
        if self.reservoir is not None:
            alone = [] if of_states is problem else [held[0]._replace(problem=of_states)]
            return held + alone
        radius = float(self.spectral_radius)
        limits = min(_RADII[0] / radius, 1.0), max(_RADII[1] / radius, 1.0)
        starts = sorted({1.0, min(_SMALL_RADIUS / radius, 1.0)})
        free = [Iterate(draws[0], ridge or _FREE_RIDGE, scale) for scale in starts]
        return [*(Way(start, limits, of_states) for start in free), *held]

    def _certified(self, best: Candidate, pairs: Pairs, skipped: int) -> Candidate:
        """Return the certified weights of all sequences, at the penalty that was chosen."""
        driven = best.network
        scale = float(np.linalg.norm(np.column_stack([driven.weights, driven.bias])))
        problem = self._problem(driven.network, pairs, scale, skipped, best.ridge)
        self.projections_ = found = optimize(problem.system, problem.task, rng=0)
        found.raise_if_interrupted()
        u = scale * found.u.reshape(driven.n_neurons, -1)
        return replace(best, network=replace(driven, weights=u[:, :-1], bias=u[:, -1]))

    def _room(self, memory: int, pairs: Pairs) -> int:
        """Return a washout that leaves enough steps to read."""
        return min(memory, max(len(pairs.longest) // 4, 1))

    def _add_choice(
        self,
        best: Candidate,
        found: list[Candidate],
        beside: dict[str, float],
        pairs: Pairs,
        unseen: list[Block],
    ) -> None:
        """Set ``chosen_``."""
        radius, own = None, best.network.network
        if self.reservoir is None and best.kind != ALONE:
            radius = spectra.largest(own.weights, "absolute value")
        others = {
            one.kind: size(one.errors)
            for one in stand_for_kinds(found)
            if one.kind != best.kind
        }
        known = [pairs.weights[block.sequence][block.steps] for block in unseen]
        self.chosen_ = Choice(
            _WEIGHTS[best.kind],
            best.ridge,
            radius,
            best.network.n_seen,
            size(best.errors),
            others | beside,
            sum(int(np.count_nonzero(one)) for one in known),
            best.errors.shape[1],
        )

    def _read(self, states: np.ndarray) -> np.ndarray:
        """Return the readout of states (…, n_states)."""
        return states[..., self._first :] @ self.readout_ + self.intercept_

    def _drive(self, pairs: Pairs, best: Candidate) -> DrivenPairs:
        """Take the network of a candidate, and run all sequences through it."""
        self._first, self.driven_ = best.first, best.network
        run = DrivenPairs.of(self.driven_, pairs, 0)
        # A readout of inputs alone needs no more steps before its first one than it sees.
        seen = self.driven_.n_seen
        room = seen if self._first else self._room(run.memory, pairs)
        return replace(run, skipped=self._skipped(room))

    def _fit_readout(self, run: DrivenPairs, ridge: float) -> int:
        pairs = run.pairs
        self._sums, self.washout_ = run.sums.only(slice(self._first, None)), run.skipped
        self.ridge_ = ridge
        self._solve_readout()
        latest = self._last_long(pairs)
        self.state_ = run.states[latest][-1].copy()
        after, known = slice(run.skipped, None), (pairs.targets, pairs.weights)
        squares = [
            weights[after] @ (y[after] - self._read(rows[after])) ** 2
            for rows, y, weights in zip(run.states, *known, strict=True)
        ]
        self.residual_ = np.sqrt(np.sum(squares, 0) / self._sums.n)
        unsure = self.washout == "auto" and not self._first and run.memory > run.skipped
        if unsure and self._depends_on_start(run):
            what = f"the network remembers more than {run.skipped} samples, a quarter of "
            what += f"the longest sequence in `{self._argument}`, so results depend on "
            what += "where they begin; use longer sequences, a larger `leak` or a smaller "
            warnings.warn(f"{what}`spectral_radius`.", UserWarning, stacklevel=6)
        return latest

    def _depends_on_start(self, run: DrivenPairs) -> bool:
        """Return whether rest, a washout before, changes predictions by their errors."""
        index = int(np.argmax([len(one) for one in run.pairs.inputs]))
        x, states = run.pairs.inputs[index], run.states[index]
        begins = np.linspace(1, len(x) - run.skipped, _N_BEGINS).astype(int)
        lanes = np.repeat(self.driven_.rest()[None], len(begins), axis=0)
        for step in range(run.skipped):
            lanes = self.driven_.advance(lanes, x[begins + step])
        apart = self._read(lanes) - self._read(states[begins + run.skipped - 1])
        return bool((np.sqrt((apart**2).mean(0)) > _DEPENDS * self.residual_).any())

    def _last_long(self, pairs: Pairs) -> int:
        """Return the index of the last sequence longer than the washout.

        Warn if there are shorter sequences.
        """
        lengths = [len(one) for one in pairs.targets]
        long = [index for index, n in enumerate(lengths) if n > self.washout_]
        wanted = f"hold a sequence of more than {self.washout_} steps (the washout)"
        check.must(long, self._argument, wanted, f"at most {max(lengths)} steps")
        if len(long) < len(lengths):
            what = f"{len(lengths) - len(long)} of {len(lengths)} sequences in "
            what += f"`{self._argument}` are shorter than the washout of "
            what += f"{self.washout_} samples, so they are not used."
            warnings.warn(what, UserWarning, stacklevel=4)
        return long[-1]

    def _solve_readout(self) -> None:
        """Fit the readout to all rows so far."""
        self._sums.n_fitted = self._sums.n
        V, intercepts = self._sums.solve(np.array([self.ridge_]))
        self.readout_, self.intercept_ = V[0], intercepts[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "residual_")

    @property
    def input_weights_(self) -> np.ndarray:
        """Input weights for the scaled series, with the bias as the last column."""
        return np.column_stack([self.driven_.weights, self.driven_.bias])

    # Use

    def _checked(self, value: ArrayLike, name: str, width: int) -> list[np.ndarray]:
        """Check that sequences have the channels and the column names of the fit."""
        found, names = check_channels(value, name, width), column_names(value)
        if self._names and names:
            wanted = f"have the columns {', '.join(self._names)}, in this order, as in fit"
            check.must(names == self._names, name, wanted, ", ".join(names))
        return found

    def _shown(self, made: np.ndarray) -> np.ndarray:
        """Return predictions in the units and shape of the fitted targets."""
        made = self._y_scale.up(made)
        return made[..., 0] if self._flat else made

    def _stream(self, x: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the readout value at each step and the final state, in constant memory."""
        found = np.empty((len(x), len(self.intercept_)))
        for start in range(0, len(x), _CHUNK):
            part = slice(start, start + _CHUNK)
            states = self.driven_.run(x[part], state)
            found[part] = self._read(states)
            state = states[-1]
        return found, state

    def _add(self, pairs: Pairs) -> int:
        """Add sequences to the readout; the input weights do not change.

        Return the index of the last sequence that was long enough to continue from.
        """
        latest = self._last_long(pairs)
        after = slice(self.washout_, None)
        for index, (x, y, weights) in enumerate(zip(*pairs, strict=True)):
            states = self.driven_.run(x, self.driven_.rest())
            self._sums.add(states[after, self._first :], y[after], weights[after])
            if index == latest:
                self.state_ = states[-1].copy()
        self._solve_readout()
        return latest

    def _update(self, pairs: Pairs, forgetting: float) -> np.ndarray:
        """Learn one sequence by recursive least squares.

        Return each prediction made before learning.
        """
        forgetting = check.positive(forgetting, "forgetting")
        check.must(forgetting <= 1, "forgetting", "be at most 1", forgetting)
        (x,), (y,), (weights,) = pairs
        states = self.driven_.run(x, self.state_)
        rows = states[:, self._first :]
        made = self._sums.learn(rows, y, weights, self.ridge_, forgetting)
        self.readout_, self.intercept_ = self._sums.learnt(self.ridge_)
        self.state_ = states[-1].copy()
        return made

    def to_onnx(self, path: str | Path | None = None, *, dtype: str = "float64") -> Any:
        """Export one step as an ONNX graph (needs ``greenfold[onnx]``).

        If you pass a ``path``, the graph is also written to it.

        Returns
        -------
        onnx.ModelProto
            The inputs are ``state`` (n_cases, n_states), zeros at rest, and ``x``
            (n_cases, n_inputs) in the units of ``fit``. The outputs are ``next_state`` and
            ``prediction`` (n_cases, n_targets). All are of ``dtype`` "float64" or
            "float32". Pass ``next_state`` as the next ``state`` and, for a forecast, the
            prediction as the next ``x``.
        """
        graph = new_graph(self, dtype)
        network = self.driven_.network
        if not isinstance(network, EchoStateNetwork):
            why = "so it has no graph of one step; export needs an EchoStateNetwork"
            raise TypeError(f"`reservoir` runs in continuous time, {why}.")
        mean, deviation = self._x_scale.mean, self._x_scale.deviation

        def typed(array: ArrayLike) -> np.ndarray:
            return np.asarray(array, dtype=dtype)

        n, seen = self.driven_.n_neurons, self.driven_.n_seen * len(mean)
        state = graph.input("state", (n + seen,), dtype)
        y = state[:, :n]
        given = graph.input("x", (len(mean),), dtype)
        x = given / typed(deviation) - typed(mean / deviation)
        U, b, W = self.driven_.weights, self.driven_.bias, network.weights
        own = 0.0 if network.bias is None else network.bias
        # States are deviations from rest; see `greenfold.dynamics.steppers`.
        centre = network.weights @ network.rest + own
        # A graph of ONNX holds W as a dense array.
        W = dense(W, "a graph of ONNX", "save the model with `save`")
        pushed = y @ typed(W.T) + x @ typed(U.T) + typed(b + centre)
        fired = network.gain(pushed) - typed(network.gain(centre))
        leak = np.broadcast_to(network.leak, b.shape)
        ahead = y * typed(1 - leak) + fired * typed(leak)
        if seen:
            before = state[:, n : n + seen - len(mean)]
            ahead = graph.concat(
                [ahead, x, *([before] if seen > len(mean) else [])], axis=1
            )
        features = ahead[:, self._first :]
        made = features @ typed(self.readout_) + typed(self.intercept_)
        graph.output("next_state", ahead)
        scale = self._y_scale
        graph.output("prediction", made * typed(scale.deviation) + typed(scale.mean))
        return graph.write(path)


def check_channels(value: ArrayLike, name: str, width: int) -> list[np.ndarray]:
    """Return sequences (n_samples, width), or refuse another number of channels."""
    found = check_sequences(value, name)
    got = found[0].shape[1]
    check.must(got == width, name, f"have {width} channel(s), as in fit", got)
    return found


def is_several(value: ArrayLike) -> TypeGuard[Sequence[ArrayLike]]:
    """Return whether the value is a list of sequences."""
    return isinstance(value, list | tuple) and np.ndim(value[0]) > 0


def has_one_axis(value: ArrayLike) -> bool:
    """Return whether a sequence, or the first of a list, has shape (n_samples,)."""
    return np.ndim(value[0] if is_several(value) else value) == 1


def column_names(value: ArrayLike) -> list[str] | None:
    """Return the column names of a table, or the first of a list; None for an array."""
    columns = getattr(value[0] if is_several(value) else value, "columns", None)
    return None if columns is None else [str(one) for one in columns]


# Files


def check_whole(made: SequenceEstimator) -> None:
    """Refuse inconsistent parts of a file."""
    driven, sums, n = made.driven_, made._sums, made.driven_.n_neurons
    n_inputs, n_targets = len(made._x_scale.mean), len(made.intercept_)
    n_features = driven.n_states - made._first
    fits = (
        driven.weights.shape == (n, n_inputs)
        and driven.bias.shape == (n,)
        and driven.n_seen >= 0
        and made._first in (0, n)
        and made.state_.shape == (driven.n_states,)
        and made.readout_.shape == (n_features, n_targets)
        and len(made.residual_) == n_targets
        and sums.n_features == n_features
        and sums.products.shape == (n_features + n_targets,) * 2
        and sums.sums.shape == (n_features + n_targets,)
        and sums.n > 0
    )
    if not fits:
        refuse_file(f"its parts do not fit a network of {n} neurons.")
    if made._flat and n_targets != 1:
        refuse_file(f"it has {n_targets} targets, but declares one.")


_SCALE = model_files.Object(
    Scale,
    mean=model_files.Numbers(None),
    deviation=model_files.Numbers(None, positive=True),
)
#: The saved attributes of both estimators.
FIELDS: dict[str, model_files.Field] = {
    "driven_": model_files.Object(
        DrivenNetwork,
        network=model_files.SAVED,
        weights=model_files.Numbers(None, None),
        bias=model_files.Numbers(None),
        dt=model_files.POSITIVE,
        n_sub=model_files.COUNT,
        n_seen=model_files.INTEGER,
    ),
    "readout_": model_files.Numbers(None, None),
    "intercept_": model_files.Numbers(None),
    "ridge_": model_files.POSITIVE,
    "washout_": model_files.INTEGER,
    "state_": model_files.Numbers(None),
    "residual_": model_files.Numbers(None),
    "chosen_": CHOICE,
    "projections_": Unset(model_files.SAVED),
    "_flat": model_files.FLAG,
    "_names": model_files.Maybe(model_files.Several(model_files.TEXT)),
    "_first": model_files.INTEGER,
    "_x_scale": _SCALE,
    "_y_scale": _SCALE,
    "_sums": model_files.Object(
        RidgeSums,
        n_features=model_files.COUNT,
        n=model_files.POSITIVE,
        n_fitted=model_files.POSITIVE,
        sums=model_files.Numbers(None),
        products=model_files.Numbers(None, None),
    ),
}
