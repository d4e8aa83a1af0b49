"""Sequence regression and closed-loop forecasts with solved input weights."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._base import checks as check
from .._base import codec
from .._base.archive import refuse_file
from .._base.progress import tell, watched
from .._base.threads import with_few_threads
from ..dynamics.driven import DrivenNetwork
from ..dynamics.dynamics import Dynamics
from ..math.ridge import ridge_path
from ..networks.echo_state import EchoStateNetwork
from ..networks.reservoir import Network
from ..optimizers.run import optimize
from ..optimizers.sequences import SequenceProblem
from ..stimuli.sequences import SequenceTask, check_pairs, check_sequences
from .base import (
    COUNT,
    POSITIVE,
    Number,
    Unset,
    check_constraints,
    describe_fitted,
    r_squared,
)
from .onnx import new_graph

#: Penalties to try, in the squared unit of the states.
RIDGES = 10.0 ** np.arange(-12, 0.1, 1.0)
#: Penalty used to solve for the input weights, before "auto" chooses one for the readout.
_SOLVING_RIDGE = 1e-11
#: Relative change of the loss that a longer washout may cause; see `_solve`.
_WASHOUT_ERROR = 0.05
#: Number of steps of a stream to hold in memory at a time.
_CHUNK = 4096
#: Smallest number of steps after which recursive least squares restarts.
_LEAST_BLOCK = 64
#: Number of blocks of a series that are held out in turn.
_N_BLOCKS = 3
#: Number of closed loops to start on a held-out block.
_N_STARTS = 16
#: A forecast is valid until its error passes this many deviations of the series.
VALID = 0.4
#: A closed loop has diverged beyond this many times the largest deviation in training.
_DIVERGED = 10.0
_FROM_ZERO = Number(Integral, 0, None, closed="left")
#: Settings that a search chooses from.
GRID = {
    "spectral_radius": (0.4, 0.9, 1.2),
    "input_scale": (0.1, 0.3, 1.0),
    "leak": (0.3, 0.6, 1.0),
    "bias_scale": (0.3, 1.0),
}


class DivergenceWarning(UserWarning):
    """A closed loop left the range of the training series."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and deviation per channel, computed without overflow."""

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, sequences: list[np.ndarray], name: str) -> Scale:
        """Return the scale of all sequences; a constant channel keeps its unit."""
        rows = np.concatenate(sequences)
        peak = np.abs(rows).max(0)
        peak[peak == 0] = 1.0
        mean = (rows / peak).mean(0)
        deviation = (rows / peak - mean).std(0)
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


@dataclass(eq=False)
class Readout:
    """Sums over rows, which give ridge readouts for one or many penalties.

    Features and targets are centred at their means, so the intercept is not penalised.
    """

    n_features: int
    n: float
    sums: np.ndarray
    products: np.ndarray
    #: Number of fitted rows, which scales the penalty of `recursion`.
    n_fitted: float = 0.0

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> Readout:
        """Return sums over no rows."""
        size = n_features + n_targets
        return cls(n_features, 0.0, np.zeros(size), np.zeros((size, size)))

    def add(self, features: np.ndarray, targets: np.ndarray, sign: int = 1) -> Self:
        """Add rows, or remove them with ``sign`` −1."""
        both = np.hstack([features, targets])
        self.n += sign * len(both)
        self.sums += sign * both.sum(0)
        self.products += sign * (both.T @ both)
        return self

    def without(self, features: np.ndarray, targets: np.ndarray) -> Readout:
        """Return the sums without some rows."""
        other = Readout(self.n_features, self.n, self.sums.copy(), self.products.copy())
        return other.add(features, targets, -1)

    def discount(self, features: Any, targets: Any, forgetting: float) -> None:
        """Add rows one by one; each row reduces the weight of all earlier rows."""
        both = np.hstack([features, targets])
        weights = forgetting ** np.arange(len(both))[::-1]
        kept = forgetting ** len(both)
        self.n = kept * self.n + weights.sum()
        self.sums = kept * self.sums + weights @ both
        self.products = kept * self.products + (weights[:, None] * both).T @ both

    def recursion(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (Σ f fᵀ + Λ)⁻¹ with the constant feature last, and its readout.

        Λ is the penalty of the fitted rows. Rows added one by one do not change it, and
        forgotten rows do not reduce it.
        """
        k = self.n_features
        A = np.empty((k + 1, k + 1))
        A[:k, :k] = self.products[:k, :k]
        A[:k, k] = A[k, :k] = self.sums[:k]
        A[k, k] = self.n
        least = 1e-15 * float(np.trace(A))
        A[np.diag_indices(k)] += max(self.n_fitted * ridge, least)
        cross = np.vstack([self.products[:k, k:], self.sums[k:]])
        P = linalg.inv(A)
        return (P + P.T) / 2, linalg.solve(A, cross, assume_a="sym")

    def solve(self, ridges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return V (n_ridges, n_features, n_targets) and the intercepts.

        The intercepts have shape (n_ridges, n_targets).
        """
        mean, k = self.sums / self.n, self.n_features
        covariance = self.products / self.n - np.outer(mean, mean)
        path = ridge_path(covariance[:k, :k], covariance[:k, k:], ridges)
        V = np.stack(list(path))
        return V, mean[k:] - mean[:k] @ V


@dataclass(frozen=True, eq=False)
class _Driven:
    """Sequences in units of their deviation, and the network's response to them."""

    network: DrivenNetwork
    inputs: list[np.ndarray]
    targets: list[np.ndarray]
    #: Features of the readout at every step, and the sums over the steps that count.
    features: list[np.ndarray]
    sums: Readout
    #: Number of steps at the start of each sequence that do not count.
    skipped: int
    #: Number of steps that the network remembers.
    memory: int


def valid_steps(predicted: np.ndarray, truth: np.ndarray, spread: Any = 1.0) -> np.ndarray:
    """Return the number of steps for which forecasts stay close to the true series.

    This is the index of the first step whose root mean squared error over the channels, the
    last axis, exceeds 0.4 deviations, or n_steps if there is no such step. ``spread`` is
    the deviation, one number or one per channel. The first axis is time; a second axis, of
    many forecasts, is kept.
    """
    error = (np.asarray(predicted) - np.asarray(truth)) / spread
    wrong = ~(np.sqrt(np.mean(error**2, axis=-1)) <= VALID)  # NaN counts as wrong
    wrong = np.concatenate([wrong, np.ones((1, *wrong.shape[1:]), dtype=bool)])
    return np.argmax(wrong, axis=0)


class _SequenceEstimator(codec.Saved, BaseEstimator):
    """A base class that draws a network, solves for input weights and fits the readout."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neurons": [COUNT],
        "input_weights": [StrOptions({"solved", "random"}), "array-like"],
        "spectral_radius": [POSITIVE],
        "leak": [Number(Real, 0, 1, closed="right"), None],
        "input_scale": [Number(Real, 0, 1e6, closed="right")],
        "bias_scale": [Number(Real, 0, 1e6, closed="both")],
        "reservoir": [Network, None],
        "dt": [POSITIVE],
        "ridge": [StrOptions({"auto"}), Number(Real, 0, 1e12, closed="right")],
        "washout": [StrOptions({"auto"}), _FROM_ZERO],
        "see_input": ["boolean"],
        "max_iter": [COUNT],
        "search": [_FROM_ZERO],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_neurons: int = 100,
        *,
        input_weights: Any = "solved",
        spectral_radius: float = 0.9,
        leak: float | None = None,
        input_scale: float = 0.3,
        bias_scale: float = 0.5,
        reservoir: Any = None,
        dt: float = 1.0,
        ridge: float | str = "auto",
        washout: int | str = "auto",
        see_input: bool = False,
        max_iter: int = 100,
        search: int = 0,
        random_state: Any = None,
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

    def _check_parameters(self) -> None:
        check_constraints(self)

    #: Column names of the fitted table.
    _names: list[str] | None

    # Fit

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the earlier fit if a fit fails or is interrupted."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, inputs: list[np.ndarray], targets: list[np.ndarray]) -> None:
        """Fit a driven network and a readout to sequences in units of their deviation."""
        seed = int(check_random_state(self.random_state).randint(2**31))
        self._sees = bool(self.see_input)
        if self.washout != "auto":
            longest = max(map(len, targets))
            wanted = f"be at least two samples longer than the washout of {self.washout}"
            enough = longest >= int(self.washout) + 2
            check.must(enough, self._given_name, wanted, longest)
        setting = {name: getattr(self, name) for name in GRID}
        setting["leak"] = self._leak if self.leak is None else self.leak
        if self.search and isinstance(self.input_weights, str):
            setting = self._searched(inputs, targets, setting, seed)
        drawn = self._drawn(setting, inputs[0].shape[1], seed)
        if not isinstance(self.input_weights, str):
            drawn = self._given(drawn, inputs[0].shape[1])
        elif self.input_weights == "solved":
            drawn = self._solve(drawn, inputs, targets)
        self.driven_ = drawn
        self._fit_readout(inputs, targets)

    def _drawn(self, setting: dict[str, Any], n_channels: int, seed: int) -> DrivenNetwork:
        """Return a network with random input weights; draw the network if none is given."""
        rng, network = np.random.default_rng(seed), self.reservoir
        if network is None:
            own = {name: setting[name] for name in ("leak", "spectral_radius")}
            own["connectivity"] = min(1.0, 10 / int(self.n_neurons))
            n = int(self.n_neurons)
            network = EchoStateNetwork.random(n, rng=rng, allow_unstable=True, **own)
        n = network.n_neurons
        weights = setting["input_scale"] * rng.uniform(-1, 1, (n, n_channels))
        bias = setting["bias_scale"] * rng.uniform(-1, 1, n)
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
        self, network: Any, inputs: list, targets: list, scale: float, washout: int
    ) -> SequenceProblem:
        """Return the problem of solving for u of norm ``scale``, read after a washout."""
        task = SequenceTask.from_sequences(
            [scale * one for one in inputs],
            targets,
            washout=washout,
            ridge=_SOLVING_RIDGE if self.ridge == "auto" else float(self.ridge),
            n_skipped=self._skipped(washout),
            bias=scale,
            see_input=self.see_input,
        )
        dt = None if isinstance(network, EchoStateNetwork) else float(self.dt)
        return SequenceProblem(Dynamics(network, n_steps=task.n_steps, dt=dt), task)

    def _skipped(self, washout: int) -> int:
        return washout if self.washout == "auto" else int(self.washout)

    def _solve(self, drawn: DrivenNetwork, inputs: list, targets: list) -> DrivenNetwork:
        """Solve for the input weights with the smallest error, at the norm of the drawn."""
        u = np.column_stack([drawn.weights, drawn.bias])
        scale = float(np.linalg.norm(u))
        u /= scale
        longest = max(inputs, key=len)
        washout = self._room(drawn.memory(longest), longest)
        given = drawn.network, inputs, targets, scale

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
            memory = self._room(solved.memory(longest), longest)
            self.loss_ = float(np.exp(-found.margin.value))
            if memory <= washout or left < 10:
                return solved
            longer = self._problem(*given, memory).evaluate(u)[1].value
            if abs(longer - found.margin.value) <= _WASHOUT_ERROR:
                return solved
            washout = memory

    def _room(self, memory: int, longest: np.ndarray) -> int:
        """Return a washout that leaves enough steps to read."""
        return min(memory, max(len(longest) // 4, 1))

    def _features(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.concatenate([states, x], axis=-1) if self._sees else states

    def _rows(self, driven: DrivenNetwork, x: np.ndarray) -> np.ndarray:
        """Return features of the readout along one sequence, starting at rest."""
        return self._features(driven.run(x, np.zeros(driven.n_neurons)), x)

    def _drive(self, network: DrivenNetwork, inputs: list, targets: list) -> _Driven:
        """Run all sequences through a network."""
        longest = max(inputs, key=len)
        memory = network.memory(longest)
        skipped = self._skipped(self._room(memory, longest))
        features = [self._rows(network, x) for x in inputs]
        sums = Readout.empty(features[0].shape[1], targets[0].shape[1])
        for rows, y in zip(features, targets, strict=True):
            sums.add(rows[skipped:], y[skipped:])
        wanted = f"be longer than the washout of {skipped} samples"
        got = f"{len(longest)}; pass a longer sequence or washout=0"
        check.must(sums.n >= 2, self._given_name, wanted, got)
        return _Driven(network, inputs, targets, features, sums, skipped, memory)

    def _fit_readout(self, inputs: list, targets: list) -> None:
        run = self._drive(self.driven_, inputs, targets)
        self._sums, self.washout_ = run.sums, run.skipped
        if self.ridge == "auto":
            self.score_, self.ridge_ = self._choose_ridge(run)
        else:
            self.ridge_ = float(self.ridge)
        self._sums.n_fitted = self._sums.n
        self._solve_readout()
        self._latest = self._last_long([len(one) for one in targets])
        self.state_ = run.features[self._latest][-1, : self.driven_.n_neurons].copy()
        if self.washout == "auto" and run.memory > run.skipped:
            what = f"the network remembers more than {run.skipped} samples, a quarter of "
            what += f"the longest sequence in `{self._given_name}`, so results depend on "
            what += "where they begin; use longer sequences, a larger `leak` or a smaller "
            warnings.warn(f"{what}`spectral_radius`.", UserWarning, stacklevel=6)
        errors = [
            y[run.skipped :] - self._read_features(rows[run.skipped :])
            for rows, y in zip(run.features, targets, strict=True)
        ]
        self.residual_ = np.sqrt((np.concatenate(errors) ** 2).mean(0))

    def _last_long(self, lengths: list[int]) -> int:
        """Return the index of the last sequence longer than the washout.

        Warn if there are shorter sequences.
        """
        long = [index for index, n in enumerate(lengths) if n > self.washout_]
        wanted = f"hold a sequence of more than {self.washout_} steps (the washout)"
        check.must(long, self._given_name, wanted, f"at most {max(lengths)} steps")
        if len(long) < len(lengths):
            what = f"{len(lengths) - len(long)} of {len(lengths)} sequences in "
            what += f"`{self._given_name}` are shorter than the washout of "
            what += f"{self.washout_} samples, so they are not used."
            warnings.warn(what, UserWarning, stacklevel=4)
        return long[-1]

    def _solve_readout(self) -> None:
        V, intercept = self._sums.solve(np.array([self.ridge_]))
        self.readout_, self.intercept_ = V[0], intercept[0]

    def _read_features(self, features: np.ndarray) -> np.ndarray:
        return features @ self.readout_ + self.intercept_

    def _searched(
        self, inputs: list, targets: list, setting: dict[str, float], seed: int
    ) -> dict[str, float]:
        """Return the setting whose *drawn* network does best on held-out blocks."""
        every = list(itertools.product(*GRID.values()))
        order = np.random.default_rng([seed, 1]).permutation(len(every))
        # A given network has its own leak and spectral radius.
        own = () if self.reservoir is None else ("spectral_radius", "leak")
        fixed = {name: setting[name] for name in own}
        tried = (dict(zip(GRID, every[i], strict=True)) | fixed for i in order)
        candidates = [setting, *tried][: int(self.search)]
        scores = []
        for index, one in enumerate(candidates):
            tell(f"setting {index + 1} of {len(candidates)}")
            drawn = self._drawn(one, inputs[0].shape[1], seed)
            scores.append(self._choose_ridge(self._drive(drawn, inputs, targets))[0])
        names = {k: [one[k] for one in candidates] for k in GRID if k not in own}
        self.search_results_ = {**names, "score": scores}
        return candidates[int(np.argmax(scores))]

    def _choose_ridge(self, run: _Driven) -> tuple[float, float]:
        """Return the best score on held-out blocks, and its penalty."""
        scores = np.zeros(len(RIDGES))
        for index, part in _blocks([len(one) for one in run.targets], run.skipped):
            held = run.features[index][part], run.targets[index][part]
            V, c = run.sums.without(*held).solve(RIDGES)
            scores += self._judge(run, index, part, V, c)
        # Among equal scores, take the largest penalty.
        best = len(scores) - 1 - int(np.argmax(scores[::-1]))
        return float(scores[best]), float(RIDGES[best])

    def _judge(
        self, run: _Driven, index: int, part: slice, V: np.ndarray, c: np.ndarray
    ) -> np.ndarray:
        """Return the negative squared error of each readout on a block."""
        made = np.einsum("tf,rfm->rtm", run.features[index][part], V) + c[:, None]
        return -((made - run.targets[index][part]) ** 2).sum((1, 2))

    #: Scales of inputs and targets, and whether targets had one axis.
    _x_scale: Scale
    _y_scale: Scale
    _flat: bool
    #: Whether the fitted readout sees the input.
    _sees: bool
    #: Index of the last learnt sequence that was long enough to continue from.
    _latest: int
    _given_name: ClassVar[str] = "x"
    #: Default leak. The input of a filter often varies fast; series to forecast are smooth.
    _leak: ClassVar[float] = 1.0

    def _checked(self, value: Any, name: str, width: int) -> list[np.ndarray]:
        """Check that sequences have the channels of the fit."""
        found = check_sequences(value, name)
        got = found[0].shape[1]
        check.must(got == width, name, f"have {width} channel(s), as in fit", got)
        names = _names(value)
        if name != "exog" and name != "y" and self._names and names:
            wanted = f"have the columns {', '.join(self._names)}, in this order, as in fit"
            check.must(names == self._names, name, wanted, ", ".join(names))
        return found

    def _shown(self, made: np.ndarray) -> np.ndarray:
        """Return predictions in the units and shape of the fitted targets."""
        made = self._y_scale.up(made)
        return made[..., 0] if self._flat else made

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
        why = "so it has no graph of one step; export needs an EchoStateNetwork"
        discrete, here = isinstance(network, EchoStateNetwork), "runs in continuous time"
        check.require(discrete, f"`reservoir` {here}, {why}.", TypeError)
        mean, deviation = self._x_scale.mean, self._x_scale.deviation

        def typed(array: Any) -> np.ndarray:
            return np.asarray(array, dtype=dtype)

        y = graph.input("state", (self.driven_.n_neurons,), dtype)
        given = graph.input("x", (len(mean),), dtype)
        x = given / typed(deviation) - typed(mean / deviation)
        U, b, W = self.driven_.weights, self.driven_.bias, network.weights
        own = 0.0 if network.bias is None else network.bias
        # States are deviations from rest; see `greenfold.dynamics.steppers`.
        centre = network.weights @ network.rest + own
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

    @property
    def input_weights_(self) -> np.ndarray:
        """Input weights for the scaled series, with the bias as the last column."""
        return np.column_stack([self.driven_.weights, self.driven_.bias])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "residual_")

    # Updates

    def _stream(self, x: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the readout value at each step and the final state, in constant memory."""
        found = np.empty((len(x), len(self.intercept_)))
        for start in range(0, len(x), _CHUNK):
            part = slice(start, start + _CHUNK)
            states = self.driven_.run(x[part], state)
            found[part] = self._read_features(self._features(states, x[part]))
            state = states[-1]
        return found, state

    def _add(self, inputs: list[np.ndarray], targets: list[np.ndarray]) -> None:
        """Add sequences to the readout; the input weights do not change."""
        self._latest = self._last_long([len(one) for one in targets])
        for index, (x, y) in enumerate(zip(inputs, targets, strict=True)):
            rows = self._rows(self.driven_, x)
            self._sums.add(rows[self.washout_ :], y[self.washout_ :])
            if index == self._latest:
                self.state_ = rows[-1, : self.driven_.n_neurons].copy()
        self._sums.n_fitted = self._sums.n
        self._solve_readout()

    def _update(self, x: np.ndarray, y: np.ndarray, forgetting: float) -> np.ndarray:
        """Learn by recursive least squares; return each prediction made before learning."""
        forgetting = check.positive(forgetting, "forgetting")
        check.must(forgetting <= 1, "forgetting", "be at most 1", forgetting)
        states = self.driven_.run(x, self.state_)
        features = self._features(states, x)
        made, block = np.empty_like(y), max(features.shape[1], _LEAST_BLOCK)
        for start in range(0, len(x), block):
            # Restart from the sums. Otherwise rounding errors and the forgotten part of the
            # penalty would grow without bound along directions that are not excited.
            P, theta = self._sums.recursion(self.ridge_)
            part = slice(start, start + block)
            for index, row in enumerate(features[part], start):
                row = np.append(row, 1.0)
                made[index] = row @ theta
                pulled = P @ row
                gain = pulled / (forgetting + row @ pulled)
                theta += np.outer(gain, y[index] - made[index])
                P -= np.outer(gain, pulled)
                P /= forgetting
            self._sums.discount(features[part], y[part], forgetting)
        _, theta = self._sums.recursion(self.ridge_)
        self.readout_, self.intercept_ = theta[:-1], theta[-1]
        self.state_ = states[-1].copy()
        return made


class SequenceRegressor(RegressorMixin, _SequenceEstimator, kind="sequence_regressor"):
    """A regressor that maps one sequence to another, with solved input weights.

    The input sequence drives a network, and ridge regression reads its states at every
    step. Input weights are usually drawn at random. Here, quasi-Newton steps through the
    network itself find the input weights and bias with the smallest error for the best
    readout. For a linear network, the optimum comes with a certificate (``projections_``).

    Sequences have shape (n_samples, n_channels), or (n_samples,) for one channel. A list is
    fitted as several sequences, each starting at rest. The estimator centres and scales
    sequences internally.

    Parameters
    ----------
    n_neurons : int
    input_weights : {"solved", "random"} or array_like (n_neurons, n_channels)
        "solved" finds the weights with the smallest error. "random" draws them, as is usual
        practice, for comparison. An array may have one more column, the bias.
    spectral_radius, leak : float
        Parameters of the drawn echo state network, which has ten connections per neuron.
        The leak is 1 by default.
    input_scale, bias_scale : float
        Input weights and bias are drawn from −scale to scale. Solved weights have the norm
        of the drawn weights.
    reservoir : Reservoir or EchoStateNetwork, optional
        Your own network; ``n_neurons``, ``spectral_radius`` and ``leak`` are then ignored.
    dt : float
        Time between samples in the unit of ``reservoir.tau``, for networks in continuous
        time.
    ridge : float or "auto"
        Penalty on the readout, in the squared unit of the states; "auto" chooses it on
        held-out blocks of the sequence.
    washout : int or "auto"
        Number of samples at the start of each sequence that are not fitted. "auto" measures
        how long the network remembers its start.
    see_input : bool
        Let the readout see the input as well as the states.
    max_iter : int
        Maximum number of evaluations to solve for the input weights.
    search : int
        Number of settings of spectral radius, input scale, leak and bias scale to try
        first, on held-out blocks with drawn input weights. 0 uses the given settings.
    random_state : int, RandomState or None
    verbose : bool, default False
        Show the progress of a fit, with its current error, if stderr is a terminal.

    Attributes
    ----------
    driven_ : DrivenNetwork
        The network with its input weights.
    input_weights_ : ndarray (n_neurons, n_channels + 1)
        For inputs in units of their deviation; the last column is the bias.
    readout_, intercept_ : ndarray (n_features, n_targets) and (n_targets,)
        Both for targets in units of their deviation.
    ridge_, score_, washout_
        The penalty, its score on held-out blocks if "auto" chose it, and the washout.
    state_ : ndarray (n_neurons,)
        The state at the end of the last sequence learnt.
    loss_ : float
        Squared error plus penalty after solving the input weights.
    residual_ : ndarray (n_targets,)
        Root mean squared error in training, in units of the deviation.
    search_results_ : dict
        Settings that the search tried, and their scores.
    projections_ : RegressionProjections
        The solution with its bound, for a linear network.

    Examples
    --------
    >>> from greenfold import SequenceRegressor
    >>> from greenfold.datasets import narma
    >>> x, y = narma(1500, rng=1)
    >>> model = SequenceRegressor(n_neurons=50, random_state=0).fit(x[:1000], y[:1000])
    >>> bool(model.score(x[1000:], y[1000:]) > 0.8)
    True
    """

    @with_few_threads(lambda self: self.n_neurons)
    @watched
    def fit(self, x: Any, y: Any) -> Self:
        """Solve for the input weights, and fit the readout to ``y`` at each step's end.

        ``x`` and ``y`` are sequences, or lists of them.
        """
        self._check_parameters()
        inputs, targets = _pairs(x, y)
        with self._all_or_nothing():
            self._x_scale, self._y_scale = Scale.of(inputs, "x"), Scale.of(targets, "y")
            self.n_features_in_ = inputs[0].shape[1]
            self._flat = np.ndim(_first(y)) == 1
            self._names = _names(x)
            self._fit(*self._scaled(inputs, targets))
        return self

    def _scaled(self, inputs: list, targets: list) -> tuple[list, list]:
        x = [self._x_scale.down(one) for one in inputs]
        return x, [self._y_scale.down(one) for one in targets]

    def _checked_pairs(self, x: Any, y: Any) -> tuple[list, list]:
        inputs = self._checked(x, "x", self.n_features_in_)
        targets = self._checked(y, "y", len(self.intercept_))
        check_pairs(inputs, targets)
        return self._scaled(inputs, targets)

    def partial_fit(self, x: Any, y: Any) -> Self:
        """Fit the readout to additional sequences; the input weights do not change.

        If the model is not fitted yet, this is the same as ``fit``.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(x, y)
        self._add(*self._checked_pairs(x, y))
        return self

    def update(self, x: Any, y: Any, *, forgetting: float = 1.0) -> np.ndarray:
        """Learn one sequence step by step, continuing from ``state_``.

        This is recursive least squares: after each step, the readout is the ridge solution
        of all steps so far, with the fitted penalty. Each step multiplies the weight of
        earlier steps by ``forgetting``, in (0, 1].

        Returns
        -------
        ndarray, shaped like ``y``
            The prediction for each step, made before the step was learnt.
        """
        check_is_fitted(self)
        inputs, targets = self._checked_pairs(x, y)
        check.must(len(inputs) == 1, "x", "be one sequence", f"{len(inputs)} of them")
        return self._shown(self._update(inputs[0], targets[0], forgetting))

    def predict(self, x: Any, state: Any = None, *, return_state: bool = False) -> Any:
        """Predict the targets at every step.

        Parameters
        ----------
        x : array_like or list of array_like
        state : array_like (n_neurons,), optional
            Start from this state, if ``x`` is one sequence. The default is rest.
        return_state : bool
            Also return the final state (n_neurons,), to continue from it.
        """
        check_is_fitted(self)
        inputs = self._checked(x, "x", self.n_features_in_)
        several = _is_several(x)
        if several:
            alone = state is None and not return_state
            check.must(alone, "x", "be one sequence to start from a state", "a list")
        start = np.zeros(self.driven_.n_neurons)
        if state is not None:
            shape, start = start.shape, check.host_array(state, "state", ndim=(1,))
            fits, wanted = start.shape == shape, f"have shape {shape}"
            check.must(fits, "state", wanted, f"shape {start.shape}")
        found = [self._stream(self._x_scale.down(one), start) for one in inputs]
        made = [self._shown(values) for values, _ in found]
        if several:
            return made
        return (made[0], found[0][1]) if return_state else made[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions after the washout of each sequence; 1 is best.

        ``X`` and ``y`` are as in ``fit``; ``sample_weight`` is ignored.
        """
        check_is_fitted(self)
        inputs, targets = _pairs(X, y)
        skipped = self.washout_
        truth = np.concatenate([one[skipped:] for one in targets])
        wanted = f"longer than the washout of {skipped} samples to be scored"
        check.require(len(truth) > 1, f"`X` must be {wanted}; pass a longer sequence.")
        made = [one.reshape(len(one), -1)[skipped:] for one in self.predict(inputs)]
        return r_squared(truth, np.concatenate(made))


class ReservoirForecaster(_SequenceEstimator, kind="forecaster"):
    """A closed-loop forecaster of series, with solved input weights.

    A network learns to predict the next sample, then runs on its own predictions.

    Series have shape (n_samples, n_channels), or (n_samples,) for one channel. The
    estimator centres and scales them internally.

    Parameters
    ----------
    n_neurons, input_weights, spectral_radius, leak, input_scale, bias_scale, reservoir, dt
        As in `SequenceRegressor`, but the leak is 0.5 by default.
    ridge : float or "auto"
        "auto" chooses the penalty whose closed loops on held-out blocks stay valid longest.
    washout, see_input, max_iter, search, random_state, verbose
        As in `SequenceRegressor`; the search compares closed loops.

    Attributes
    ----------
    driven_, input_weights_, readout_, intercept_, ridge_, score_, washout_, state_, loss_
        As in `SequenceRegressor`. So are ``residual_``, ``search_results_`` and
        ``projections_``.

    Examples
    --------
    >>> from greenfold import ReservoirForecaster
    >>> from greenfold.datasets import lorenz
    >>> series = lorenz(2000, rng=0)
    >>> model = ReservoirForecaster(n_neurons=50, random_state=0).fit(series[:1500])
    >>> model.forecast(100).shape
    (100, 3)
    """

    _given_name: ClassVar[str] = "series"
    _leak: ClassVar[float] = 0.5

    @with_few_threads(lambda self: self.n_neurons)
    @watched
    def fit(self, series: Any, exog: Any = None) -> Self:
        """Solve for the input weights, and fit the readout to the next sample.

        Parameters
        ----------
        series : array_like or list of array_like
        exog : array_like (n_samples,) or (n_samples, n_extra), or list of these, optional
            Known inputs; row t belongs to sample t, and helps to predict it.
        """
        self._check_parameters()
        found = check_sequences(series, "series")
        shortest = min(map(len, found))
        check.must(shortest >= 3, "series", "have at least 3 samples per series", shortest)
        with self._all_or_nothing():
            self._flat, self._names = np.ndim(_first(series)) == 1, _names(series)
            self._x_scale = self._y_scale = Scale.of(found, "series")
            self.n_channels_in_ = found[0].shape[1]
            if exog is not None:
                known = Scale.of(check_sequences(exog, "exog"), "exog")
                self._x_scale = self._y_scale.joined(known)
            inputs, targets = self._scaled(found, exog)
            self._largest = max(float(np.abs(one).max()) for one in targets)
            self._fit(inputs, targets)
            self._last = targets[self._latest][-1].copy()
        return self

    def _scaled(self, series: list[np.ndarray], exog: Any) -> tuple[list, list]:
        """Return inputs and targets.

        An input is a sample with the exog of the next sample; a target is the next sample.
        """
        z = [self._y_scale.down(one) for one in series]
        extra = self._checked_exog(exog, [len(one) for one in series])
        inputs = [np.hstack([a[:-1], b[1:]]) for a, b in zip(z, extra, strict=True)]
        return inputs, [one[1:] for one in z]

    def _checked_exog(self, exog: Any, lengths: list[int]) -> list[np.ndarray]:
        """Return known inputs (n_samples, n_extra) in units of their deviation."""
        scale = self._x_scale.after(self.n_channels_in_)
        if not len(scale.mean):
            check.must(exog is None, "exog", "be None, as in fit", "an array")
            return [np.empty((n, 0)) for n in lengths]
        rows = " and ".join(map(str, lengths))
        check.must(exog is not None, "exog", f"have {rows} rows, because fit had it", None)
        found = self._checked(exog, "exog", len(scale.mean))
        got = [len(one) for one in found]
        check.must(got == lengths, "exog", f"have {rows} rows", " and ".join(map(str, got)))
        return [scale.down(one) for one in found]

    def partial_fit(self, series: Any, exog: Any = None) -> Self:
        """Fit the readout to additional series; the input weights do not change.

        If the model is not fitted yet, this is the same as ``fit``.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(series, exog)
        found = self._checked(series, "series", self.n_channels_in_)
        inputs, targets = self._scaled(found, exog)
        self._add(inputs, targets)
        self._last = targets[self._latest][-1].copy()
        return self

    def update(self, series: Any, exog: Any = None, *, forgetting: float = 1.0) -> Any:
        """Learn the next samples step by step, like `SequenceRegressor.update`.

        ``forecast`` then starts after the last of these samples. ``exog`` holds their known
        inputs. The result is the prediction for each sample, made before it was learnt.
        """
        check_is_fitted(self)
        z = self._one(series, "series")
        x = np.hstack(
            [np.vstack([self._last, z[:-1]]), *self._checked_exog(exog, [len(z)])]
        )
        made = self._update(x, z, forgetting)
        self._last = z[-1].copy()
        return self._shown(made)

    def _one(self, value: Any, name: str) -> np.ndarray:
        """Return one series (n_samples, n_channels) in units of its deviation."""
        found = self._checked(value, name, self.n_channels_in_)
        check.must(len(found) == 1, name, "be one series", f"{len(found)} of them")
        return self._y_scale.down(found[0])

    def forecast(self, n_steps: int, context: Any = None, exog: Any = None) -> np.ndarray:
        """Return a forecast: run the network on its own predictions.

        Parameters
        ----------
        n_steps : int
        context : array_like, optional
            At least ``washout_`` samples that precede the forecast. By default, the
            forecast starts after the last learnt sample.
        exog : array_like (n_steps, …), optional
            Known inputs of the forecast steps, if ``fit`` had ``exog``. With a context, the
            inputs of its samples come first: (n_samples + n_steps, …).

        Returns
        -------
        ndarray (n_steps,) or (n_steps, n_channels)
            If the loop leaves ten times the range of the training series, the forecast is
            NaN from there on, and a `DivergenceWarning` is issued.
        """
        return self._shown(self._closed(n_steps, context, exog)[:, 0])

    def forecast_band(
        self,
        n_steps: int,
        context: Any = None,
        exog: Any = None,
        *,
        n_paths: int = 100,
        level: float = 0.9,
        rng: np.random.Generator | int | None = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of noisy forecasts, shaped like a ``forecast``.

        Each of ``n_paths`` forecasts gets noise at every step, as large as the one-step
        error in training. A fraction ``level`` of the forecasts lies between
        the bounds. The bounds do not include errors of the model itself.
        """
        level = check.positive(level, "level")
        check.must(level < 1, "level", "be below 1", level)
        n_paths = check.count(n_paths, "n_paths", minimum=2)
        generator = check.generator(rng)
        made = self._closed(n_steps, context, exog, n_paths, generator)
        with warnings.catch_warnings():  # the divergence of all paths is already reported
            warnings.simplefilter("ignore", RuntimeWarning)
            ends = np.nanquantile(made, [(1 - level) / 2, (1 + level) / 2], axis=1)
        return self._shown(ends[0]), self._shown(ends[1])

    def _begin(self, n_steps: int, context: Any, exog: Any) -> tuple[np.ndarray, ...]:
        """Return the initial state and sample, and known inputs (n_steps, n_extra)."""
        if context is None:
            return self.state_, self._last, *self._checked_exog(exog, [n_steps])
        seen, least = self._one(context, "context"), max(self.washout_, 1)
        wanted = f"have at least {least} samples, the memory of the network"
        check.must(len(seen) >= least, "context", wanted, len(seen))
        (extra,) = self._checked_exog(exog, [len(seen) + n_steps])
        before = np.hstack([seen[:-1], extra[1 : len(seen)]])
        rest = np.zeros(self.driven_.n_neurons)
        state = self.driven_.run(before, rest)[-1] if len(before) else rest
        return state, seen[-1], extra[len(seen) :]

    def _closed(
        self, n_steps: Any, context: Any, exog: Any, n_lanes: int = 1, noise: Any = None
    ) -> np.ndarray:
        """Return predictions (n_steps, n_lanes, n_channels), NaN after divergence."""
        check_is_fitted(self)
        n_steps = check.count(n_steps, "n_steps")
        state, sample, extra = self._begin(n_steps, context, exog)
        states = np.repeat(state[None], n_lanes, axis=0)
        x = np.repeat(np.concatenate([sample, extra[0]])[None], n_lanes, axis=0)
        limit = _DIVERGED * self._largest
        found = np.full((n_steps, n_lanes, len(self.residual_)), np.nan)
        alive = np.arange(n_lanes)
        for index in range(n_steps):
            states = self.driven_.advance(states, x)
            made = self._read_features(self._features(states, x))
            if noise is not None:
                made += self.residual_ * noise.standard_normal(made.shape)
            good = (np.abs(made) <= limit).all(1)
            if not good.all():
                alive, states, made = alive[good], states[good], made[good]
                if noise is None or not len(alive):
                    what = "the closed loop left the range of the training series at step "
                    what += f"{index + 1} of {n_steps}; it is NaN from there on. Check the "
                    what += "units of `context`, or use more neurons, a larger `ridge` or "
                    what += "another `random_state`."
                    warnings.warn(what, DivergenceWarning, stacklevel=3)
                    break
            found[index, alive] = made
            x = made
            if extra.size and index + 1 < n_steps:
                row = np.broadcast_to(extra[index + 1], (len(x), extra.shape[1]))
                x = np.hstack([x, row])
        return found

    def _judge(
        self, run: _Driven, index: int, part: slice, V: np.ndarray, c: np.ndarray
    ) -> np.ndarray:
        """Return a score per readout: how long its closed loops follow a held-out block."""
        driven, x, y = run.network, run.inputs[index], run.targets[index]
        last = part.stop - max((part.stop - part.start) // 2, 1)
        begins = np.unique(np.linspace(part.start, last, _N_STARTS).astype(int))
        n_steps, n_ridges, n_channels = part.stop - last, len(V), y.shape[1]
        states = run.features[index][None, begins, : driven.n_neurons]
        states = np.repeat(states, n_ridges, axis=0)
        now = np.repeat(x[None, begins], n_ridges, axis=0)
        score, valid = np.zeros(n_ridges), np.ones((n_ridges, len(begins)), dtype=bool)
        for step in range(n_steps):
            # A diverged loop no longer adds to the score, but must not overflow.
            made = np.clip(self._features(states, now) @ V + c[:, None], -1e6, 1e6)
            error = np.sqrt(((made - y[begins + step]) ** 2).mean(2)) / VALID
            valid &= error <= 1
            score += (valid * (1 - error**2)).sum(1)
            if not valid.any() or step + 1 == n_steps:
                break
            extra = x[begins + step + 1, n_channels:]
            extra = np.broadcast_to(extra, (n_ridges, *extra.shape))
            now = np.concatenate([made, extra], axis=2)
            lanes = n_ridges * len(begins)
            flat = driven.advance(states.reshape(lanes, -1), now.reshape(lanes, -1))
            states = flat.reshape(states.shape)
        return score


def _pairs(x: Any, y: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    inputs, targets = check_sequences(x, "x"), check_sequences(y, "y")
    check_pairs(inputs, targets)
    return inputs, targets


def _blocks(lengths: list[int], skipped: int) -> list[tuple[int, slice]]:
    """Return blocks to hold out in turn, at least two, as (sequence, steps)."""
    steps = [max(length - skipped, 0) for length in lengths]
    counts = [max(1, round(_N_BLOCKS * n / sum(steps))) if n else 0 for n in steps]
    if sum(counts) < 2:
        counts[int(np.argmax(steps))] = 2
    found = []
    for index, count in enumerate(counts):
        cuts = np.linspace(skipped, lengths[index], count + 1).astype(int)
        found += [(index, slice(a, b)) for a, b in itertools.pairwise(cuts)]
    return found


def _is_several(value: Any) -> bool:
    return isinstance(value, list | tuple) and np.ndim(value[0]) > 0


def _first(value: Any) -> Any:
    return value[0] if _is_several(value) else value


def _names(value: Any) -> list[str] | None:
    """Return the column names of a table; None for an array."""
    columns = getattr(_first(value), "columns", None)
    return None if columns is None else [str(one) for one in columns]


def _check_whole(made: Any) -> None:
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
_COMMON: dict[str, codec.Field] = {
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
        Readout,
        n_features=codec.COUNT,
        n=codec.POSITIVE,
        n_fitted=codec.POSITIVE,
        sums=codec.Numbers(None),
        products=codec.Numbers(None, None),
    ),
}
describe_fitted(SequenceRegressor, _check_whole, **_COMMON, n_features_in_=codec.COUNT)
describe_fitted(
    ReservoirForecaster,
    _check_whole,
    **_COMMON,
    n_channels_in_=codec.COUNT,
    _largest=codec.POSITIVE,
    _last=codec.Numbers(None),
)
