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
from ..dynamics.dynamics import Dynamics
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
        Centred targets, and 1 for each step that counts. Both are zero at other steps.
    offset, variance : ndarray (n_targets,)
        Means and variances of the targets over the steps that count.
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
    see_input: bool = False

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
        see_input: bool = False,
    ) -> SequenceTask:
        """Cut sequences into segments.

        Parameters
        ----------
        x : array_like (n_samples,) or (n_samples, n_channels), or a list of such
            Inputs.
        y : array_like (n_samples,) or (n_samples, n_targets), or a list of such
            Targets at the end of each step.
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
        see_input : bool
            Let the readout see the inputs as well as the states.
        """
        inputs, targets = check_sequences(x, "x"), check_sequences(y, "y")
        check_pairs(inputs, targets)
        washout = check.count(washout, "washout", minimum=0)
        n_skipped = washout if n_skipped is None else n_skipped
        n_skipped = check.count(n_skipped, "n_skipped", minimum=0)
        n_read = max(washout, _LEAST_READ) if n_read is None else n_read
        longest = max(map(len, inputs))
        n_read = min(check.count(n_read, "n_read"), longest)
        wanted = f"hold a sequence of more than {n_skipped} samples, the steps skipped at "
        got = f"{longest}, pass longer sequences or a shorter washout"
        check.must(longest > n_skipped, "x", f"{wanted}its start", got)
        parts = [
            _segments(a, b, washout, n_read, n_skipped, bias)
            for a, b in zip(inputs, targets, strict=True)
            if len(a) > n_skipped
        ]
        X, raw, used = (np.concatenate(part) for part in zip(*parts, strict=True))
        n = used.sum()
        offset = np.einsum("sr,srm->m", used, raw) / n
        T = (raw - offset) * used[:, :, None]
        varies = bool(T.any())
        check.must(varies, "y", "vary over the steps that count", f"{int(n)} equal values")
        return cls(
            X=X,
            y=np.ascontiguousarray(T.transpose(1, 0, 2)),
            used=np.ascontiguousarray(used.T),
            offset=offset,
            variance=(T**2).sum((0, 1)) / n,
            washout=washout,
            ridge=check.positive(ridge, "ridge"),
            has_constant=bool(bias),
            see_input=bool(see_input),
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
    def n_used(self) -> int:
        """Number of steps that count, over all segments."""
        return int(namespace(self.used).sum(self.used))

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
        return RegressionTask.from_cases(rows, targets, ridge=self.ridge)


def check_sequences(value: ArrayLike, name: str) -> list[np.ndarray]:
    """Return one sequence or a list as sequences (n_samples, n_channels) of one width."""
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
        array = check.host_array(one, f"{name}[{index}]" if many else name, ndim=(1, 2))
        found.append(array.reshape(len(array), -1))
    widths = {one.shape[1] for one in found}
    wanted = "hold sequences with the same channels"
    check.must(len(widths) == 1, name, wanted, f"{min(widths)} to {max(widths)} channels")
    return found


def check_pairs(inputs: list[np.ndarray], targets: list[np.ndarray]) -> None:
    """Raise an error if the targets do not match the inputs."""
    wanted = f"hold one sequence for each of the {len(inputs)} sequences of `x`"
    check.must(len(inputs) == len(targets), "y", wanted, len(targets))
    for index, (a, b) in enumerate(zip(inputs, targets, strict=True)):
        wanted = f"have one row for each of the {len(a)} samples of `x`"
        check.must(len(a) == len(b), "y", wanted, f"{len(b)} in sequence {index}")


def _segments(
    x: np.ndarray, y: np.ndarray, washout: int, n_read: int, n_skipped: int, bias: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs (n, n_channels, n_steps), targets (n, n_read, …) and used steps."""
    constant = np.full((len(x), 1 if bias else 0), bias)
    x = np.hstack([x, constant])
    n_segments = -(-(len(x) - n_skipped) // n_read)
    # The last segment ends with the sequence, so it may overlap the one before.
    ends = np.minimum(n_skipped + n_read * np.arange(1, n_segments + 1), len(x))
    before = washout + n_read  # steps of zero input, at rest
    x = np.vstack([np.zeros((before, x.shape[1])), x])
    y = np.vstack([np.zeros((before, y.shape[1])), y])
    steps = ends[:, None] + before + np.arange(-before, 0)
    read = steps[:, washout:]
    first = before + n_skipped + n_read * np.arange(n_segments)
    used = (read >= first[:, None]).astype(np.float64)
    return np.ascontiguousarray(x[steps].transpose(0, 2, 1)), y[read], used
