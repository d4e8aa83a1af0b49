"""Masks on a recorded device: gains over random masks, expected accuracy, and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any, overload

import numpy as np

from .._base import checks as check
from .._base.arrays import to_host
from .._base.printing import Shown
from .._base.threads import with_few_threads
from ..devices.device import Device, Restricted
from ..devices.masks.mask import Constraint
from ..devices.response import MeasuredResponse
from ..math.ridge import predicted_without
from ..optimizers.bounds import Relaxation
from ..optimizers.linear import LinearProblem
from ..optimizers.method import random_projections
from ..optimizers.regression import LinearRegression
from ..optimizers.result import Projections, RegressionProjections
from ..optimizers.run import optimize
from ..stimuli.base import Stimuli
from ..stimuli.regression import RegressionTask
from ..stimuli.samples import SampleStimuli
from ..systems import System, rows_of
from .intervals import BENT, MarginInterval, margin_interval, solved_again

#: Largest number of series that are played on the surrogate of a device, draws of its noise
#: for each, and number of other possible recordings to solve on.
_SERIES, _ROUNDS, _OTHERS = 4000, 2, 4
#: Least gain in accuracy that is promised: the error of the estimate on simulated devices
#: is about two points.
_WORTH = 0.025


@with_few_threads(rows_of)
def mask_bound(
    system: System,
    stimuli: Stimuli | RegressionTask,
    projections: Projections | RegressionProjections,
    device: Device,
) -> float:
    """Return a proven upper bound on κ, or on the gain of a task, for a constrained mask.

    ``projections.upper_bound`` holds for every u. This bound holds for masks only and is
    lower. Its distance to κ of ``projections`` limits what a longer search could gain.

    Parameters
    ----------
    system : System
        A linear system.
    stimuli : GaussianStimuli, SampleStimuli or RegressionTask
    projections : Projections or RegressionProjections
        The result of ``optimize(system, stimuli, device=device)``, whose η is used. The
        search for a lower bound starts from it.
    device : Device
        A device whose mask has a bound of its own: all but `Levels` with negative values
        other than ±1. The bound does not include noise.

    Notes
    -----
    The bound takes seconds for masks of a hundred entries and minutes for a thousand.

    Examples
    --------
    >>> from greenfold import Device, GaussianStimuli, Reservoir, optimize, unfold
    >>> from greenfold.analysis import mask_bound
    >>> network = unfold(Reservoir.random(12, rng=0), n_steps=6, dt=0.5)
    >>> stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    >>> modulator = Device(mask="sign")
    >>> best = optimize(network, stimuli, device=modulator, rng=0)
    >>> bound = mask_bound(network, stimuli, best, modulator)
    >>> best.soft_margin <= bound <= best.upper_bound
    True
    """
    check.must(system.is_linear, "system", "be linear", "a non-linear one, without a bound")
    stimuli.match(system)
    mask = device.mask
    if mask is None:
        raise ValueError("`device` must have a mask; without one, use `upper_bound`.")
    part = device.part_of(system)
    u = check.input_projection(projections.u, system.n_inputs, stimuli.n_channels)
    u = u if part is None else part.own_input(u, stimuli.n_channels)
    system = system if part is None else part
    mask.match(u.shape)
    if isinstance(stimuli, RegressionTask):
        regression = LinearRegression(system.maps, stimuli)
        kernels, limited = list(regression.readouts(u)[1]), regression.bounded
    else:
        assert isinstance(projections, Projections)
        quiet = projections.noise_cost is None
        wanted = "be solved without noise of the device, which the bound does not include"
        check.must(quiet, "projections", wanted, "projections with noise")
        problem = LinearProblem(system.maps, stimuli, projections.eta)
        kernels = [problem.kernel(u, problem.best_readout(u)[0])]
        limited = partial(Relaxation, [problem])

    def bounded(constraints: Sequence[Constraint]) -> Relaxation:
        relaxation = limited(constraints)
        relaxation.lower(kernels, u)
        return relaxation

    found = mask.lowest_bound(u.shape, bounded)
    free = projections.upper_bound
    return found if free is None else min(found, free)


@dataclass(frozen=True, eq=False, repr=False)
class MaskAccuracy(Shown):
    """Accuracies to expect of ridge readouts that are trained on the states of the device.

    They come from the recording alone. Series pass through the estimated response, with
    the curvature, the drift and the noise of the recording and the input and readout noise
    of the `Device`; each series is classified by a readout that was trained on the others.

    Attributes
    ----------
    solved : float
        Accuracy of masks solved on recordings like this one.
    random : ndarray (n_draws,)
        Accuracy of random masks.
    best : float
        Accuracy of the best of these, chosen on one half of the series and judged on the
        other.
    chance : float
        Share of the largest class: the accuracy of always naming it.
    error : float
        Standard error of the difference between ``solved`` and ``best``.
    amplitude : float
        Factor of the transformed series. The drive is then as strong as in the recording,
        unless that moves the outputs more than the recording did, or leaves the range of
        the drive.
    nonlinearity : float
        Share of the non-linearity in the recording.
    """

    solved: float
    random: np.ndarray
    best: float
    chance: float
    error: float
    amplitude: float
    nonlinearity: float

    @property
    def pays(self) -> bool:
        """Whether the solved mask surpasses the best random mask beyond all errors.

        The errors are those of chance and of the estimate. Nothing is promised if the
        device bends its outputs too much (`is_known`).
        """
        return self.is_known and self.solved - self.best > max(_WORTH, 2 * self.error)

    @property
    def is_known(self) -> bool:
        """Whether the device is linear enough for a promise."""
        return self.nonlinearity <= BENT

    def _facts(self) -> dict[str, Any]:
        facts = {"solved": self.solved, "random": float(self.random.mean())}
        more = {"best": self.best, "chance": self.chance, "error": self.error}
        more["pays"] = self.pays
        return {**facts, **more, "amplitude": self.amplitude}


class _Rehearsal:
    """Series played on what a recording knows of a device."""

    def __init__(
        self,
        system: MeasuredResponse,
        X: np.ndarray,
        codes: np.ndarray,
        u: np.ndarray,
        read: np.ndarray,
        most: float,
        device: Device,
        rng: np.random.Generator,
    ) -> None:
        fitted = system.fitted
        assert fitted is not None
        self.read = read
        self.surrogate, self.G = fitted.surrogate, fitted.likely()
        self.nonlinearity = fitted.shares.nonlinearity
        #: What recordings of a device with the response ``G`` would show.
        self.estimates = self.G + fitted.replicates(_OTHERS, rng) - fitted.whole
        chosen = rng.permutation(len(X))[:_SERIES]
        self.X, self.codes = X[chosen], codes[chosen]
        self.targets = 2.0 * np.eye(int(codes.max()) + 1)[self.codes] - 1
        drive = np.einsum("sck,ic->ski", self.X, u.reshape(system.n_inputs, -1))
        allowed = np.sqrt((fitted.drive_size**2).mean())
        made = self._path(u, self.X)[0] / self.surrogate.size
        largest = [np.sqrt((one**2).mean()) for one in (drive / allowed, made)]
        self.amplitude = min(1 / max(*largest, 1e-300), most)
        sizes, vectors = np.linalg.eigh(self.surrogate.noise)
        draws = rng.standard_normal((_ROUNDS, *made.shape))
        self.noise = draws @ (vectors * np.sqrt(np.maximum(sizes, 0.0))).T
        n_moments = max(len(self.surrogate.gains), 1)
        self.moments = rng.integers(n_moments, size=(_ROUNDS, len(made)))
        # What is read is noisy beyond the recording.
        added = rng.standard_normal((_ROUNDS, len(made), len(read)))
        if device.readout_noise is not None:
            self.noise[..., read] += device.readout_noise * added
        self.played = [self.amplitude * self.X]
        if device.input_noise is not None:
            own = replace(device, state_noise=None, readout_noise=None)
            covariance = own.noise(self.X[0].size, system.n_outputs)["input"]
            sizes, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(np.maximum(sizes, 0.0))
            moved = rng.standard_normal((_ROUNDS, len(made), len(root))) @ root.T
            self.played = [
                self.amplitude * (self.X + one.reshape(self.X.shape)) for one in moved
            ]

    def _path(self, u: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the linear predictions at the readout and at the steps before it."""
        R, K = MeasuredResponse(self.G).input_response(u), X.shape[2]
        path = []
        for lag in range(len(self.surrogate.even)):
            earlier = np.zeros_like(X)
            earlier[..., lag:] = X[..., : K - lag]
            path.append(earlier.reshape(len(X), -1) @ R)
        return np.array(path)

    def _states(self, u: np.ndarray, X: np.ndarray) -> list[np.ndarray]:
        """Return the states without noise, at each moment of the drift."""
        path, found = self._path(u, X), self.surrogate
        states = path[0] + found.bent(path)
        R = MeasuredResponse(self.G).input_response(u).reshape(*X.shape[1:], -1)
        return [
            states + np.einsum("sck,cko,ko->so", X, R, gain) + offset
            for gain, offset in zip(found.gains, found.offsets, strict=True)
        ] or [states]

    def hits(self, u: np.ndarray) -> np.ndarray:
        """Return how often each series is classified correctly, (n_series,)."""
        states = [np.array(self._states(u, X)) for X in self.played]
        total, every = np.zeros(len(self.X)), np.arange(len(self.X))
        rounds = zip(cycle(states), self.noise, self.moments, strict=False)
        for own, noise, moments in rounds:
            noisy = own[moments, every] + noise
            total += (
                predicted_without(noisy[:, self.read], self.targets).argmax(1) == self.codes
            )
        return total / _ROUNDS

    def compare(
        self, solved: Sequence[np.ndarray], random: Sequence[np.ndarray]
    ) -> MaskAccuracy:
        """Return the accuracies of masks solved on each estimate, and of random masks."""
        ours = np.mean([self.hits(u) for u in solved], axis=0)
        theirs = np.array([self.hits(u) for u in random])
        half = np.arange(len(ours)) % 2 == 0
        best = np.empty(len(ours))
        for one in (half, ~half):
            best[~one] = theirs[theirs[:, one].mean(1).argmax(), ~one]
        error = float((ours - best).std() / np.sqrt(len(ours)))
        found = float(ours.mean()), theirs.mean(1), float(best.mean())
        chance = float(np.bincount(self.codes).max() / len(ours))
        return MaskAccuracy(*found, chance, error, self.amplitude, self.nonlinearity)


@dataclass(frozen=True, eq=False, repr=False)
class MaskStudy(Shown):
    """A solved mask with its expected κ, and the κ of random masks.

    Attributes
    ----------
    projections : Projections
        The mask u (unit norm) and its readout v, on the estimated response.
    values : ndarray, shape of ``projections.u``
        The mask in the units of the device: ±1 for signs, the given levels, or u itself.
    interval : MarginInterval
        Interval of the κ to expect on the device.
    random : ndarray (n_draws,)
        κ of random masks of the same kind, each with its optimal readout.
    accuracy : MaskAccuracy or None
        Accuracies to expect, if the stimuli hold their series.
    """

    projections: Projections
    values: np.ndarray
    interval: MarginInterval
    random: np.ndarray
    accuracy: MaskAccuracy | None = None

    @property
    def random_margin(self) -> float:
        """Return the mean κ of the random masks."""
        return float(self.random.mean())

    @property
    def gain(self) -> float | None:
        """Return expected κ over mean random κ; None if the interval includes the latter.

        κ of the solved mask is free of optimism, but κ of the random masks includes the
        optimism of their readouts, so the gain is a conservative estimate. It is also None
        if the mean κ of random masks is not positive.
        """
        if not 0 < self.random_margin < self.interval.low:
            return None
        return self.interval.estimate / self.random_margin

    def _facts(self) -> dict[str, Any]:
        found = self.interval
        facts = {"soft_margin": found.estimate, "low": found.low, "high": found.high}
        more = {"share": self.projections.share, "random": self.random_margin}
        return {**facts, **more, "gain": self.gain, "accuracy": self.accuracy}


@dataclass(frozen=True, eq=False, repr=False)
class TaskStudy(Shown):
    """A solved mask of a regression, and the gain of random masks.

    Attributes
    ----------
    projections : RegressionProjections
    values : ndarray, shape of ``projections.u``
        As in `MaskStudy`.
    random : ndarray (n_draws,)
        Gain of random masks of the same kind, each with its optimal readouts.
    accuracy : MaskAccuracy or None
        Accuracies to expect, if the task has one target per class: 1 for its series, and
        0 for all others.
    """

    projections: RegressionProjections
    values: np.ndarray
    random: np.ndarray
    accuracy: MaskAccuracy | None = None

    def _facts(self) -> dict[str, Any]:
        facts = {"gain": self.projections.gain, "share": self.projections.share}
        return {**facts, "random": float(self.random.mean()), "accuracy": self.accuracy}


@overload
def study_mask(
    system: MeasuredResponse,
    stimuli: RegressionTask,
    eta: None = None,
    *,
    device: Device | None = None,
    n_draws: int = 20,
    n_replicates: int = 40,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> TaskStudy: ...


@overload
def study_mask(
    system: MeasuredResponse,
    stimuli: Stimuli,
    eta: float | None = None,
    *,
    device: Device | None = None,
    n_draws: int = 20,
    n_replicates: int = 40,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> MaskStudy: ...


@with_few_threads(rows_of)
def study_mask(
    system: MeasuredResponse,
    stimuli: Stimuli | RegressionTask,
    eta: float | None = None,
    *,
    device: Device | None = None,
    n_draws: int = 20,
    n_replicates: int = 40,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> MaskStudy | TaskStudy:
    """Solve for a mask on a recorded device and compare it with random masks.

    Parameters
    ----------
    system, n_replicates, level, rng
        See `margin_interval`.
    stimuli : GaussianStimuli, SampleStimuli or RegressionTask
        For several classes, a task with one target per class, 1 for its series.
    eta : float, optional
        10 by default; a task has its own penalty.
    device : Device, optional
        The device, with a mask as in `optimize` and noise as in `margin_interval`. A task
        is solved with the noise that its ``ridge`` stands for; ``readout_noise`` then
        lowers the accuracies alone.
    n_draws : int
        Number of random masks for the comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import Device, GaussianStimuli, MeasuredResponse
    >>> from greenfold.analysis import study_mask
    >>> rng = np.random.default_rng(0)
    >>> drive = rng.standard_normal((2000, 4))
    >>> states = np.zeros((2000, 4))
    >>> for t in range(1, 2000):
    ...     states[t] = 0.5 * np.roll(states[t - 1], 1) + drive[t]
    >>> response = MeasuredResponse.fit(drive, states, n_steps=5)
    >>> stimuli = GaussianStimuli.random(5, strength=1.0, rng=1)
    >>> modulator = Device(mask="sign")
    >>> study = study_mask(response, stimuli, device=modulator, n_replicates=10, rng=0)
    >>> study.values.shape, sorted(set(np.abs(study.values).tolist()))
    ((4,), [1.0])
    """
    generator = check.generator(rng)
    device = Device() if device is None else device
    drawing = None if device.mask is None else generator

    solve: Any = optimize
    solved, known = partial(solve, system, stimuli, eta), device
    if isinstance(stimuli, RegressionTask):
        known = replace(device, readout_noise=None)
    best = solved(device=known, rng=drawing)
    best.raise_if_interrupted()
    part = device.part_of(system) or Restricted(system)
    free, mask = replace(known, mask=None), device.mask
    shape, n = (part.n_inputs, stimuli.n_channels), check.count(n_draws, "n_draws")
    masks = [part.whole_input(u) for u in random_projections(shape, generator, n, mask)]
    others = [solved(device=free, u=u) for u in masks]
    interval = None
    if not isinstance(stimuli, RegressionTask):
        how: dict[str, Any] = {"level": level, "n_replicates": n_replicates}
        how |= {"device": device, "rng": generator}
        interval = margin_interval(system, stimuli, best, **how)
    values = best.u[part.inputs]
    values = part.whole_input(values if mask is None else mask.in_units(values))
    accuracy, labelled = None, _series_of(stimuli)
    if labelled is not None and system.fitted is not None:
        limited = device.drive_range is not None
        most = device.encode(best.u, labelled[0]).gain if limited else np.inf
        given = system, *labelled, best.u, part.outputs, most, device, generator
        played = _Rehearsal(*given)
        u, again = part.own_input(best.u, stimuli.n_channels), list[np.ndarray]()
        for one in played.estimates:
            response = MeasuredResponse(system.fitted.estimated(one))
            maps = (device.part_of(response) or response).maps
            if isinstance(stimuli, RegressionTask):
                problem = LinearRegression(maps, stimuli)
            else:
                problem = LinearProblem(maps, stimuli, 10.0 if eta is None else eta)
            again.append(part.whole_input(solved_again(problem, u, device)[0]))
        accuracy = played.compare(again, masks)
    if isinstance(stimuli, RegressionTask):
        gains = np.array([one.gain for one in others])
        return TaskStudy(best, values, gains, accuracy)
    assert interval is not None
    drawn = np.array([one.soft_margin for one in others])
    return MaskStudy(best, values, interval, drawn, accuracy)


def _series_of(stimuli: Stimuli | RegressionTask) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the series as they are played, and their classes, if both are known."""
    if isinstance(stimuli, RegressionTask):
        X, y = stimuli.X, stimuli.y
        if X is None or y is None or not np.isin(y, (0, 1)).all() or (y.sum(1) != 1).any():
            return None
        return X - stimuli.mean.reshape(X.shape[1:]), y.argmax(1)
    if not isinstance(stimuli, SampleStimuli) or stimuli.signs is None:
        return None
    try:
        return np.asarray(to_host(stimuli.series)), (stimuli.signs > 0).astype(int)
    except ValueError:  # they came in chunks
        return None
