"""Regression tasks: targets to predict from series, described by covariances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import Array, to_host
from .._base.printing import Shown
from ..systems import LinearSystem, System
from .base import match_steps


class Readouts(Protocol):
    """A result of `greenfold.optimize`: input weights u and readouts V of the targets."""

    @property
    def u(self) -> np.ndarray:
        """Input weights."""
        ...

    @property
    def V(self) -> np.ndarray:
        """Readouts (n_outputs, n_targets)."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class RegressionTask(Shown):
    """A task to read targets from a system by ridge regression.

    Make a task with `from_series` (an input series and target series, sample by sample),
    `from_cases` (one value per series) or `memory` (recall the input some steps ago, in
    closed form). The readout of target j sees the window x of the last n_steps samples
    through the kernel a_j; the linear problem needs only covariances.

    Attributes
    ----------
    cross : ndarray (n_targets, n_channels · n_steps)
        c_j = cov(x, t_j), channel after channel, in order of time.
    covariance : ndarray (n_channels · n_steps, n_channels · n_steps)
        R = cov(x).
    variance : ndarray (n_targets,)
        Variance of each target.
    ridge : float
        Penalty λ on ‖v_j‖²; it equals the variance of independent readout noise on each
        state.
    n_channels, n_steps : int
    mean, offset : ndarray
        Means of x (n_channels · n_steps,) and of the targets (n_targets,).
    X, y : ndarray or None
        Windows (n_cases, n_channels, n_steps) and targets (n_cases, n_targets); only
        non-linear systems need them.
    share : ndarray (n_cases,) or None
        Weights of the windows, with sum 1.
    """

    cross: np.ndarray
    covariance: np.ndarray
    variance: np.ndarray
    ridge: float
    n_channels: int
    n_steps: int
    mean: np.ndarray
    offset: np.ndarray
    X: np.ndarray | None = field(default=None, repr=False)
    y: np.ndarray | None = field(default=None, repr=False)
    share: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def from_cases(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        ridge: float = 1e-3,
        sample_weight: ArrayLike | None = None,
    ) -> RegressionTask:
        """Make a task from series with one or more target values each.

        ``X`` is (n_cases, n_steps) or (n_cases, n_channels, n_steps); ``y`` is (n_cases,)
        or (n_cases, n_targets). ``ridge`` is λ > 0, in the squared unit of the states.
        ``sample_weight`` (n_cases,) holds weights ≥ 0 of the squared errors.
        """
        series = check.host_array(X, "X", ndim=(2, 3))
        series = series[:, None] if series.ndim == 2 else series
        targets = _columns(y, "y")
        wanted = f"have one entry for each of the {len(series)} series"
        check.must(len(targets) == len(series), "y", wanted, len(targets))
        check.must(len(series) > 1, "X", "hold at least two series", len(series))
        # One of the bounds uses fourth powers of the series.
        for name, values, most in (("X", series, 1e70), ("y", targets, 1e140)):
            largest = float(np.abs(values).max())
            square = f"`{name}` holds values of size {largest:.3g}, whose squares leave"
            fits = largest == 0 or 1e-140 < largest < most
            check.require(fits, f"{square} the range of floats; rescale them.")
        share = _share(sample_weight, len(series))
        flat = series.reshape(len(series), -1)
        mean, offset = share @ flat, share @ targets
        x, t = flat - mean, targets - offset
        root = np.sqrt(share)[:, None]
        x *= root
        t *= root
        return cls(
            cross=t.T @ x,
            covariance=x.T @ x,
            variance=(t**2).sum(0),
            ridge=check.positive(ridge, "ridge"),
            n_channels=series.shape[1],
            n_steps=series.shape[2],
            mean=mean,
            offset=offset,
            X=series,
            y=targets,
            share=share,
        )

    @classmethod
    def from_series(
        cls, x: ArrayLike, y: ArrayLike, *, n_steps: int, ridge: float = 1e-3
    ) -> RegressionTask:
        """Make a task from an input series and target series, sample by sample.

        ``x`` is (n_samples,) or (n_samples, n_channels). ``y``, at the end of each step, is
        (n_samples,) or (n_samples, n_targets). ``n_steps`` is the length of the window that
        the system sees before each readout; it should be as long as the system's memory.
        """
        series = _columns(x, "x")
        targets = _columns(y, "y")
        n_steps = check.count(n_steps, "n_steps")
        wanted = f"have one entry for each of the {len(series)} samples of `x`"
        check.must(len(series) == len(targets), "y", wanted, len(targets))
        wanted = f"have more than n_steps = {n_steps} samples"
        check.must(len(series) > n_steps, "x", wanted, len(series))
        windows = np.lib.stride_tricks.sliding_window_view(series, n_steps, axis=0)
        return cls.from_cases(windows, targets[n_steps - 1 :], ridge=ridge)

    @classmethod
    def memory(
        cls, delays: ArrayLike, n_steps: int, *, ridge: float = 1e-3
    ) -> RegressionTask:
        """Make the task to recall white input of some steps ago, in closed form.

        The input has unit variance. ``delays`` are whole numbers below n_steps; 0 is the
        step before the readout.
        """
        steps = np.atleast_1d(np.asarray(delays))
        n_steps = check.count(n_steps, "n_steps")
        whole = steps.dtype.kind in "iu" and steps.ndim == 1 and steps.size
        check.must(whole, "delays", "be whole numbers", repr(delays), TypeError)
        wanted = f"lie between 0 and n_steps − 1 = {n_steps - 1}"
        inside = steps.min() >= 0 and steps.max() < n_steps
        check.must(inside, "delays", wanted, f"{steps.min()} to {steps.max()}")
        return cls(
            cross=np.eye(n_steps)[n_steps - 1 - steps],
            covariance=np.eye(n_steps),
            variance=np.ones(len(steps)),
            ridge=check.positive(ridge, "ridge"),
            n_channels=1,
            n_steps=n_steps,
            mean=np.zeros(n_steps),
            offset=np.zeros(len(steps)),
        )

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return len(self.variance)

    def weigh(self, rows: np.ndarray) -> np.ndarray:
        """Return the weighted mean of rows (n_cases, …), one per window."""
        return rows.mean(0) if self.share is None else self.share @ rows

    def predict(self, system: System, found: Readouts, X: ArrayLike | Array) -> np.ndarray:
        """Predict the targets (n_cases, n_targets) of new series.

        ``found`` is the result of ``optimize(system, task)`` for this task and system;
        ``X`` is (n_cases, n_steps) or (n_cases, n_channels, n_steps).
        """
        series = check.stimuli(X, self.n_steps)
        u = check.input_projection(found.u, system.n_inputs, self.n_channels)
        shape = 1, self.n_channels, self.n_steps
        # Linear systems are fitted to centred windows, others to the windows as given.
        mean = self.mean.reshape(shape)
        if system.is_linear:
            return to_host(system.states(to_host(series) - mean, u)) @ found.V + self.offset
        assert self.X is not None
        own = self.weigh(to_host(system.states(self.X, u)))
        return (to_host(system.states(series, u)) - own) @ found.V + self.offset

    def _facts(self) -> dict[str, Any]:
        return {
            "targets": self.n_targets,
            "channels": self.n_channels,
            "steps": self.n_steps,
            "ridge": self.ridge,
        }

    def match(self, system: System | LinearSystem) -> None:
        """Raise an error if the system was made for another number of steps."""
        match_steps("task", self.n_steps, system)


def _share(sample_weight: ArrayLike | None, n_cases: int) -> np.ndarray:
    """Return weights (n_cases,) with sum 1."""
    if sample_weight is None:
        return np.full(n_cases, 1 / n_cases)
    weights = check.host_array(sample_weight, "sample_weight", ndim=(1,))
    wanted, shape = f"have shape ({n_cases},)", f"shape {weights.shape}"
    check.must(weights.shape == (n_cases,), "sample_weight", wanted, shape)
    fits = weights.min() >= 0 and weights.max() > 0
    wanted = "hold weights of at least 0, and some above 0"
    check.must(fits, "sample_weight", wanted, f"{weights.min():g} to {weights.max():g}")
    return weights / weights.sum()


def _columns(values: ArrayLike, name: str) -> np.ndarray:
    """Return one value or several per row as (n_rows, n_columns)."""
    array = check.host_array(values, name, ndim=(1, 2))
    return array.reshape(len(array), -1)
