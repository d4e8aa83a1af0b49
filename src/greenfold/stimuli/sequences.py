"""Tasks that map sequences to sequences: every step is read.

With one window per target, the network would run through a whole window for each target.
Instead, the series is cut into segments. Each segment begins with a washout as long as the
memory of the network, and all later steps are read. One evaluation then takes a few passes
over the series, in batches of many segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import Array, like, namespace
from .._base.printing import Shown
from ..dynamics.integration import Dynamics
from ..systems import System
from .base import match_steps
from .regression import RegressionTask

#: Fewest steps read per segment by default: a shorter segment is mostly washout.
_LEAST_READ = 50


@dataclass(frozen=True, eq=False, repr=False)
class SequenceTask(Shown):
    """A task to read target sequences from a network at every step, by ridge regression.

    Make a task with `from_sequences`, and solve it with ``optimize(system, task)`` and
    ``system = Dynamics(network, n_steps=task.n_steps)``.

    Attributes
    ----------
    X : array (n_segments, n_channels, n_steps)
        Inputs. They are zero before a sequence starts, so the network is at rest.
    y, used : array (n_steps − washout, n_segments, n_targets) and (…, n_segments)
        Centred targets, and the weight of each step that counts, 1 by default. Both are
        zero at other steps.
    offset, variance : ndarray (n_targets,)
        Weighted means and variances of the targets over the steps that count.
    washout, ridge, see_input
        As given to `from_sequences`.
    has_constant : bool
        Whether the last channel is constant, for a bias.
    """

    X: Array
    y: Array
    used: Array
    offset: np.ndarray
    variance: np.ndarray
    washout: int
    ridge: float
    has_constant: bool = False
    see_input: int = 0

    @classmethod
    def from_sequences(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        *,
        washout: int,
        ridge: float = 1e-6,
        n_read: int | None = None,
        n_skipped: int | None = None,
        bias: float = 0.0,
        see_input: int = 0,
        sample_weight: ArrayLike | None = None,
    ) -> SequenceTask:
        """Cut sequences into segments.

        Parameters
        ----------
        x : array_like (n_samples,) or (n_samples, n_channels), or a list of such
            Inputs.
        y : array_like (n_samples,) or (n_samples, n_targets), or a list of such
            Targets at the end of each step. A step with NaN in a target does not count.
        washout : int
            Number of steps at the start of each segment that are not read. It should be as
            long as the memory of the network.
        ridge : float
            Penalty λ on ‖V‖²; it equals the variance of independent readout noise on each
            state.
        n_read : int, optional
            Number of steps to read per segment. By default, the same as the washout, but at
            least 50.
        n_skipped : int, optional
            Number of steps at the start of each *sequence* that do not count; by default,
            the washout. With 0, the network starts at rest and is read from the first step
            on.
        bias : float
            Value of a constant channel that is added after the others; its input weights
            are the bias of the network. With 0, no channel is added.
        see_input : int
            Number of last inputs that the readout sees as well as the states, at most one
            more than the washout; True for one.
        sample_weight : array_like (n_samples,), or a list of such, optional
            Weight ≥ 0 of the squared error at each step, 1 by default. A step of weight 0
            still drives the network.
        """
        inputs = check_sequences(x, "x")
        targets, weights = check_targets(y, inputs, sample_weight)
        washout = check.count(washout, "washout", minimum=0)
        see_input = check.count(see_input + 0, "see_input", minimum=0)
        wanted = f"be at most {washout + 1}, one more than the washout"
        check.must(see_input <= washout + 1, "see_input", wanted, see_input)
        n_skipped = washout if n_skipped is None else n_skipped
        n_skipped = check.count(n_skipped, "n_skipped", minimum=0)
        n_read = max(washout, _LEAST_READ) if n_read is None else n_read
        longest = max(map(len, inputs))
        n_read = min(check.count(n_read, "n_read"), longest)
        wanted = f"hold a sequence of more than {n_skipped} samples, the steps skipped at "
        got = f"{longest}, pass longer sequences or a shorter washout"
        check.must(longest > n_skipped, "x", f"{wanted}its start", got)
        parts = [
            _segments(a, b, w, washout, n_read, n_skipped, bias)
            for a, b, w in zip(inputs, targets, weights, strict=True)
            if len(a) > n_skipped
        ]
        X, raw, used = (np.concatenate(part) for part in zip(*parts, strict=True))
        n = used.sum()
        where = f"with a weight above 0, after the first {n_skipped} steps of a sequence"
        check.must(n, "y", f"hold targets {where}", "none")
        offset = np.einsum("sr,srm->m", used, raw) / n
        T = (raw - offset) * (used > 0)[:, :, None]
        varies, count = bool(T.any()), int((used > 0).sum())
        check.must(varies, "y", "vary over the steps that count", f"{count} equal values")
        return cls(
            X=X,
            y=np.ascontiguousarray(T.transpose(1, 0, 2)),
            used=np.ascontiguousarray(used.T),
            offset=offset,
            variance=np.einsum("sr,srm->m", used, T**2) / n,
            washout=washout,
            ridge=check.positive(ridge, "ridge"),
            has_constant=bool(bias),
            see_input=see_input,
        )

    @property
    def n_steps(self) -> int:
        """Number of steps per segment."""
        return self.X.shape[2]

    @property
    def n_channels(self) -> int:
        """Number of channels, including the constant channel."""
        return self.X.shape[1]

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return len(self.offset)

    @property
    def n_used(self) -> float:
        """Sum of the weights of all steps, which is their number if all weights are 1."""
        return float(namespace(self.used).sum(self.used))

    def _facts(self) -> dict[str, Any]:
        return {
            "segments": self.X.shape[0],
            "steps": self.n_steps,
            "washout": self.washout,
            "channels": self.n_channels,
            "targets": self.n_targets,
            "ridge": self.ridge,
        }

    def on(self, reference: Array) -> SequenceTask:
        """Return the same task with its arrays on the device of ``reference``."""
        arrays = {name: like(getattr(self, name), reference) for name in ("X", "y", "used")}
        return SequenceTask(**{**self.__dict__, **arrays})

    def match(self, system: System) -> None:
        """Raise an error if the system has another length, or a readout of its own."""
        match_steps("task", self.n_steps, system, "segments of ")
        if isinstance(system, Dynamics):
            own = not np.array_equal(
                system.readout, np.eye(1, self.n_steps, self.n_steps - 1)[0]
            )
            check.without_effect(
                own, "readout", "for a SequenceTask, which reads every step"
            )

    def windows(self) -> RegressionTask:
        """Return the same data as a `RegressionTask`, to solve a linear network.

        Each step that counts becomes one window of washout + 1 steps.
        """
        X, used = np.asarray(self.X), np.asarray(self.used)
        views = np.lib.stride_tricks.sliding_window_view(X, self.washout + 1, axis=2)
        rows = views.transpose(2, 0, 1, 3)[used > 0]
        targets = np.asarray(self.y)[used > 0] + self.offset
        weights = used[used > 0]
        return RegressionTask.from_cases(
            rows, targets, ridge=self.ridge, sample_weight=weights
        )


def check_sequences(value: ArrayLike, name: str, *, nan: bool = False) -> list[np.ndarray]:
    """Return one sequence or a list as sequences (n_samples, n_channels) of one width.

    With ``nan``, they may hold NaN.
    """
    shape = getattr(value, "shape", ())
    if len(shape) == 3:
        each = f"{shape[0]} sequences of {shape[1]} samples and {shape[2]} channels"
        advice = f"pass list({name}) for {each}"
        raise ValueError(f"`{name}` is one array of shape {tuple(shape)}: {advice}.")
    whole = isinstance(value, list | tuple)
    listed: list[Any] = list(cast(list[Any], value)) if whole else []
    many = any(np.ndim(one) for one in listed)
    lengths = {len(one) if np.ndim(one) == 1 else 0 for one in listed if many}
    n, rows = max(lengths, default=0), len(listed)
    if len(lengths) == 1 and 0 < n < rows:
        raise ValueError(
            f"`{name}` is a list of {rows} rows of {n} values: pass np.asarray({name}) for "
            f"one sequence of {rows} samples, or arrays of shape ({n}, 1) for {rows} "
            "sequences."
        )
    found: list[np.ndarray] = []
    for index, one in enumerate(listed if many else [value]):
        label = f"{name}[{index}]" if many else name
        array = check.host_array(one, label, ndim=(1, 2), nan=nan)
        found.append(array.reshape(len(array), -1))
    widths = {one.shape[1] for one in found}
    wanted = "hold sequences with the same channels"
    check.must(len(widths) == 1, name, wanted, f"{min(widths)} to {max(widths)} channels")
    return found


def check_targets(
    y: ArrayLike, inputs: list[np.ndarray], sample_weight: ArrayLike | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return targets (n_samples, n_targets) and the weight (n_samples,) of each step.

    Where a target is NaN, the targets and the weight are zero.
    """
    _refuse_labels(y)
    targets = check_sequences(y, "y", nan=True)
    _match(targets, inputs, "y")
    weights = [np.ones(len(one)) for one in inputs]
    if sample_weight is not None:
        given = check_sequences(sample_weight, "sample_weight")
        _match(given, inputs, "sample_weight")
        width, least = given[0].shape[1], min(float(one.min()) for one in given)
        check.must(width == 1, "sample_weight", "have one weight per sample", width)
        check.must(least >= 0, "sample_weight", "hold no negative weights", least)
        weights = [one[:, 0] for one in given]
    for index, one in enumerate(targets):
        lost: np.ndarray = np.asarray(np.isnan(one).any(axis=1))
        targets[index] = np.where(lost[:, None], 0.0, one)
        weights[index] = np.where(lost, 0.0, weights[index])
    return targets, weights


def _refuse_labels(y: ArrayLike) -> None:
    """Refuse class labels as targets, and say how to write them in columns."""
    many: Any = y
    first: np.ndarray = np.asarray(many[:1] if isinstance(y, list | tuple) else y)
    first = first.ravel()[:1]
    if len(first) and first.dtype.kind in "USO" and isinstance(first[0], str):
        raise TypeError(
            f"`y` must hold numbers; got class labels such as {str(first[0])!r}. Pass one "
            "column per class: classes, codes = np.unique(y, return_inverse=True), then "
            "np.eye(len(classes))[codes]; predict(x).argmax(1) is the code of a label."
        )


def _match(given: list[np.ndarray], inputs: list[np.ndarray], name: str) -> None:
    """Raise an error if an argument has other samples than the inputs."""
    wanted = f"hold one sequence for each of the {len(inputs)} sequences of `x`"
    check.must(len(inputs) == len(given), name, wanted, len(given))
    for index, (a, b) in enumerate(zip(inputs, given, strict=True)):
        wanted = f"have one row for each of the {len(a)} samples of `x`"
        check.must(len(a) == len(b), name, wanted, f"{len(b)} in sequence {index}")


def _segments(
    x: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    washout: int,
    n_read: int,
    n_skipped: int,
    bias: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs (n, n_channels, n_steps), targets (n, n_read, …) and weights.

    Segments without a weight are left out.
    """
    constant = np.full((len(x), 1 if bias else 0), bias)
    x = np.hstack([x, constant])
    n_segments = -(-(len(x) - n_skipped) // n_read)
    # The last segment ends with the sequence, so it may overlap the one before.
    ends = np.minimum(n_skipped + n_read * np.arange(1, n_segments + 1), len(x))
    before = washout + n_read  # steps of zero input, at rest
    x = np.vstack([np.zeros((before, x.shape[1])), x])
    y = np.vstack([np.zeros((before, y.shape[1])), y])
    weights = np.concatenate([np.zeros(before), weights])
    steps = ends[:, None] + before + np.arange(-before, 0)
    read = steps[:, washout:]
    first = before + n_skipped + n_read * np.arange(n_segments)
    used = (read >= first[:, None]) * weights[read]
    kept = used.any(1)
    X = np.ascontiguousarray(x[steps[kept]].transpose(0, 2, 1))
    return X, y[read[kept]], used[kept]
