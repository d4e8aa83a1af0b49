"""What sequence regression and forecasts share: solved input weights and one readout.

A fit draws a network, solves for its input weights on all sequences, and fits the readout.
What it chooses on held-out blocks is in `choice`; each estimator judges a block in its own
way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ..._base import checks as check
from ..._base import codec
from ..._base.codec import refuse_file
from ..._base.progress import tell
from ...dynamics.driven import DrivenNetwork
from ...dynamics.dynamics import Dynamics
from ...math.ridge import RidgeSums
from ...networks.echo_state import AnyNetwork, EchoStateNetwork
from ...networks.matrices import dense
from ...optimizers.run import optimize
from ...optimizers.sequences import SequenceProblem
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
    Rules,
    array,
    one_of,
    real,
    whole,
)
from .choice import Block, DrivenPairs, Pairs, Setting, choose_ridge, settings

#: Penalty used to solve for the input weights, before "auto" chooses one for the readout.
_SOLVING_RIDGE = 1e-11
#: Relative change of the loss that a longer washout may cause; see `_solve`.
_WASHOUT_ERROR = 0.05
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


class SequenceEstimator(Checked):
    """A base class that draws a network, solves for input weights and fits the readout.

    A subclass sets the class attributes and defines `_judge`. Its ``fit`` sets the scales,
    then calls `_fit`.
    """

    #: Name of the argument of ``fit`` that holds the sequences, for errors.
    _argument: ClassVar[str]
    #: Leak of the network if none is given.
    _default_leak: ClassVar[float]

    def _judge(
        self, run: DrivenPairs, block: Block, V: np.ndarray, intercepts: np.ndarray
    ) -> np.ndarray:
        """Return the score of each readout on a held-out block; see `choice.Judge`."""
        raise NotImplementedError

    #: Scales of inputs and targets, and whether targets had one axis.
    _x_scale: Scale
    _y_scale: Scale
    _flat: bool
    #: Column names of the fitted table.
    _names: list[str] | None
    #: Whether the fitted readout sees the input.
    _sees: bool

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
        "see_input": (FLAG,),
        "max_iter": (COUNT,),
        "search": (_FROM_ZERO,),
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
        see_input: bool = False,
        max_iter: int = 100,
        search: int = 0,
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
        self.search = search
        self.random_state = random_state
        self.verbose = verbose

    # Fit

    def _fit(self, pairs: Pairs) -> int:
        """Choose a setting, solve for the input weights, and fit the readout.

        Return the index of the last sequence that was long enough to continue from.
        """
        seed = int(check_random_state(self.random_state).randint(2**31))
        self._sees = bool(self.see_input)
        if self.washout != "auto":
            wanted = f"be at least two samples longer than the washout of {self.washout}"
            n = len(pairs.longest)
            check.must(n >= int(self.washout) + 2, self._argument, wanted, n)
        leak = self._default_leak if self.leak is None else self.leak
        setting = Setting(self.spectral_radius, self.input_scale, leak, self.bias_scale)
        if self.search and isinstance(self.input_weights, str):
            setting = self._searched(pairs, setting, seed)
        n_channels = pairs.longest.shape[1]
        drawn = self._drawn(setting, n_channels, seed)
        if not isinstance(self.input_weights, str):
            drawn = self._given(drawn, n_channels)
        elif self.input_weights == "solved":
            drawn = self._solve(drawn, pairs)
        self.driven_ = drawn
        return self._fit_readout(pairs)

    def _searched(self, pairs: Pairs, start: Setting, seed: int) -> Setting:
        """Return the setting whose *drawn* network does best on held-out blocks."""
        # A given network has its own leak and spectral radius.
        fixed = () if self.reservoir is None else ("spectral_radius", "leak")
        tried, scores = settings(start, fixed, int(self.search), seed), []
        for index, one in enumerate(tried):
            tell(f"setting {index + 1} of {len(tried)}")
            drawn = self._drawn(one, pairs.longest.shape[1], seed)
            scores.append(choose_ridge(self._drive(drawn, pairs), self._judge)[0])
        names = [name for name in Setting._fields if name not in fixed]
        table = {name: [getattr(one, name) for one in tried] for name in names}
        self.search_results_ = {**table, "score": scores}
        return tried[int(np.argmax(scores))]

    def _drawn(self, setting: Setting, n_channels: int, seed: int) -> DrivenNetwork:
        """Return a network with random input weights; draw the network if none is given."""
        rng, network = np.random.default_rng(seed), self.reservoir
        if network is None:
            network = EchoStateNetwork.random(
                int(self.n_neurons),
                spectral_radius=setting.spectral_radius,
                leak=setting.leak,
                connectivity=min(1.0, 10 / int(self.n_neurons)),
                allow_unstable=True,
                rng=rng,
            )
        n = network.n_neurons
        weights = setting.input_scale * rng.uniform(-1, 1, (n, n_channels))
        bias = setting.bias_scale * rng.uniform(-1, 1, n)
        return DrivenNetwork(network, weights, bias, float(self.dt))

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
        self, network: AnyNetwork, pairs: Pairs, scale: float, washout: int
    ) -> SequenceProblem:
        """Return the problem of solving for u of norm ``scale``, read after a washout."""
        task = SequenceTask.from_sequences(
            [scale * one for one in pairs.inputs],
            pairs.targets,
            washout=washout,
            ridge=_SOLVING_RIDGE if self.ridge == "auto" else float(self.ridge),
            n_skipped=self._skipped(washout),
            sample_weight=pairs.weights,
            bias=scale,
            see_input=self.see_input,
        )
        dt = None if isinstance(network, EchoStateNetwork) else float(self.dt)
        return SequenceProblem(Dynamics(network, n_steps=task.n_steps, dt=dt), task)

    def _skipped(self, washout: int) -> int:
        return washout if self.washout == "auto" else int(self.washout)

    def _solve(self, drawn: DrivenNetwork, pairs: Pairs) -> DrivenNetwork:
        """Solve for the input weights with the smallest error, at the norm of the drawn."""
        u = np.column_stack([drawn.weights, drawn.bias])
        scale = float(np.linalg.norm(u))
        u /= scale
        washout = self._room(drawn.memory(pairs.longest), pairs)
        given = drawn.network, pairs, scale

        def driven(u: np.ndarray, n_sub: int = 1) -> DrivenNetwork:
            weights, bias = scale * u[:, :-1], scale * u[:, -1]
            return DrivenNetwork(drawn.network, weights, bias, drawn.dt, n_sub)

        # The memory depends on the solved weights. If the washout is too short for them,
        # the ascent continues with a longer washout.
        left = int(self.max_iter)
        while True:
            problem = self._problem(*given, washout)
            if problem.system.is_linear:  # with a certificate
                self.projections_ = best = optimize(problem.system, problem.task, rng=0)
                best.raise_if_interrupted()
                self.loss_ = best.loss
                return driven(best.u.reshape(u.shape))
            found = problem.ascend(u, max_iter=left, tol=1e-6)
            found.raise_if_interrupted()
            u, left = found.u, left - len(found.history)
            solved = driven(u, problem.prepared.n_sub or 1)
            memory = self._room(solved.memory(pairs.longest), pairs)
            self.loss_ = float(np.exp(-found.margin.value))
            if memory <= washout or left < 10:
                return solved
            longer = self._problem(*given, memory).evaluate(u)[1].value
            if abs(longer - found.margin.value) <= _WASHOUT_ERROR:
                return solved
            washout = memory

    def _room(self, memory: int, pairs: Pairs) -> int:
        """Return a washout that leaves enough steps to read."""
        return min(memory, max(len(pairs.longest) // 4, 1))

    def _read(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the readout of states (…, n_neurons) reached by inputs x."""
        return self._features(states, x) @ self.readout_ + self.intercept_

    def _features(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.concatenate([states, x], axis=-1) if self._sees else states

    def _rows(self, driven: DrivenNetwork, x: np.ndarray) -> np.ndarray:
        """Return features of the readout along one sequence, starting at rest."""
        return self._features(driven.run(x, np.zeros(driven.n_neurons)), x)

    def _drive(self, network: DrivenNetwork, pairs: Pairs) -> DrivenPairs:
        """Run all sequences through a network."""
        memory = network.memory(pairs.longest)
        skipped = self._skipped(self._room(memory, pairs))
        features = [self._rows(network, x) for x in pairs.inputs]
        sums = RidgeSums.empty(features[0].shape[1], pairs.targets[0].shape[1])
        n_rows = 0
        for rows, y, weights in zip(features, pairs.targets, pairs.weights, strict=True):
            sums.add(rows[skipped:], y[skipped:], weights[skipped:])
            n_rows += np.count_nonzero(weights[skipped:])
        wanted = f"be longer than the washout of {skipped} samples"
        got = f"{len(pairs.longest)}; pass a longer sequence or washout=0"
        check.must(len(pairs.longest) >= skipped + 2, self._argument, wanted, got)
        wanted = f"hold at least two targets after the washout of {skipped} samples"
        check.must(n_rows >= 2, "y", wanted, n_rows)
        return DrivenPairs(network, pairs, features, sums, skipped, memory)

    def _fit_readout(self, pairs: Pairs) -> int:
        run = self._drive(self.driven_, pairs)
        self._sums, self.washout_ = run.sums, run.skipped
        if self.ridge == "auto":
            self.score_, self.ridge_ = choose_ridge(run, self._judge)
        else:
            self.ridge_ = float(self.ridge)
        self._solve_readout()
        latest = self._last_long(pairs)
        self.state_ = run.features[latest][-1, : self.driven_.n_neurons].copy()
        if self.washout == "auto" and run.memory > run.skipped:
            what = f"the network remembers more than {run.skipped} samples, a quarter of "
            what += f"the longest sequence in `{self._argument}`, so results depend on "
            what += "where they begin; use longer sequences, a larger `leak` or a smaller "
            warnings.warn(f"{what}`spectral_radius`.", UserWarning, stacklevel=6)
        after = slice(run.skipped, None)
        squares = np.zeros(len(self.intercept_))
        for rows, y, weights in zip(run.features, *pairs[1:], strict=True):
            made = rows[after] @ self.readout_ + self.intercept_
            squares += weights[after] @ (y[after] - made) ** 2
        self.residual_ = np.sqrt(squares / self._sums.n)
        return latest

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
            found[part] = self._read(states, x[part])
            state = states[-1]
        return found, state

    def _add(self, pairs: Pairs) -> int:
        """Add sequences to the readout; the input weights do not change.

        Return the index of the last sequence that was long enough to continue from.
        """
        latest = self._last_long(pairs)
        for index, (x, *known) in enumerate(zip(*pairs, strict=True)):
            rows = self._rows(self.driven_, x)
            self._sums.add(*(one[self.washout_ :] for one in (rows, *known)))
            if index == latest:
                self.state_ = rows[-1, : self.driven_.n_neurons].copy()
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
        rows = self._features(states, x)
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
            The inputs are ``state`` (n_cases, n_neurons), zeros at rest, and ``x``
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

        y = graph.input("state", (self.driven_.n_neurons,), dtype)
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
        features = graph.concat([ahead, x], axis=1) if self._sees else ahead
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
    n_features = n + (n_inputs if made._sees else 0)
    fits = (
        driven.weights.shape == (n, n_inputs)
        and driven.bias.shape == made.state_.shape == (n,)
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


_SCALE = codec.Object(
    Scale, mean=codec.Numbers(None), deviation=codec.Numbers(None, positive=True)
)
#: The saved attributes of both estimators.
FIELDS: dict[str, codec.Field] = {
    "driven_": codec.Object(
        DrivenNetwork,
        network=codec.SAVED,
        weights=codec.Numbers(None, None),
        bias=codec.Numbers(None),
        dt=codec.POSITIVE,
        n_sub=codec.COUNT,
    ),
    "readout_": codec.Numbers(None, None),
    "intercept_": codec.Numbers(None),
    "ridge_": codec.POSITIVE,
    "washout_": codec.INTEGER,
    "state_": codec.Numbers(None),
    "residual_": codec.Numbers(None),
    "loss_": Unset(codec.NUMBER),
    "score_": Unset(codec.NUMBER),
    "projections_": Unset(codec.SAVED),
    "_flat": codec.FLAG,
    "_names": codec.Maybe(codec.Several(codec.TEXT)),
    "_sees": codec.FLAG,
    "_x_scale": _SCALE,
    "_y_scale": _SCALE,
    "_sums": codec.Object(
        RidgeSums,
        n_features=codec.COUNT,
        n=codec.POSITIVE,
        n_fitted=codec.POSITIVE,
        sums=codec.Numbers(None),
        products=codec.Numbers(None, None),
    ),
}
