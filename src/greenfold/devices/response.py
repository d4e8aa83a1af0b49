"""A system known by its measured response, and its fit to recordings.

The weights of an optical, memristive or biological device are unknown, but you can record
its response to a pulse at each input. The linear problem needs only this response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.stats import chi2
from scipy.stats import t as student_t

from .._base import checks as check
from .._base import model_files
from .._base.arrays import to_host
from .._base.messages import Argument, Part
from .._base.printing import Shown
from .._base.threads import with_few_threads
from ..datasets import DataError
from ..math.ridge import ridge_path, solve_ridge
from ..systems import MatrixSum
from ..unfolding.kernels import KnownByMaps
from .drive import NextRecording, next_recording
from .shares import (
    Filtered,
    Surrogate,
    VarianceShares,
    drift_of,
    is_sure,
    lag_groups,
    surrogate,
    variance_shares,
)

#: An output counts as clipped if this share of its samples has its largest or smallest
#: value. A Gaussian signal of 12 bits has far fewer.
_CLIPPED = 0.05
#: The same share if samples pile up at that value; it lowers the response by 0.4 %.
_PILED = 0.002
#: Probability below which a result is not due to chance, largest number of samples to
#: correlate, and the held-out share of the outputs that the lags may leave unexplained.
_CHANCE, _CORRELATED, _FORGOTTEN = 1e-3, 2**15, 0.02
#: Ratio of sizes between recordings from which on their units must differ.
_UNITS = 100.0
#: The same between channels of one recording, which may differ a lot.
_UNITS_OF_CHANNELS = 1e4
#: A signal is constant if its spread, relative to its size, is below this.
_CONSTANT = 1e-9
#: If the reciprocal condition of XᵀX is below this, the drive does not distinguish all
#: lags.
_EXCITED = 1e-11
_RIDGES = np.geomspace(1e-8, 10, 10)
#: How often the drift is fitted again after the response, whose errors it shares.
_PASSES = 2
#: Penalty for the first choice of the number of lags.
_FIRST = 1e-4
_N_FOLDS = 4
#: Share of the samples in the training part of a fold.
_TRAINED = (_N_FOLDS - 1) / _N_FOLDS
#: Largest size in bytes of the normal equations, and of the stored influences.
_NORMAL_BYTES = 4 * 2**30
_INFLUENCE_BYTES = 256 * 2**20
#: Largest response whose squares, and results computed from it, are finite.
_LARGEST = 1e70
#: Number of past values that predict a drive.
_PAST = 16
#: Least number of samples that tell the causes of errors apart.
_LEAST = 100
_OWN_SIGNAL = "drive every input with a random signal of its own"
_N_LAGS = Argument("n_lags")


def _rows_to_fit(drive: ArrayLike, n_steps: int) -> int:
    """Return the number of rows of the covariance of the lagged drive."""
    one = drive[0] if isinstance(drive, list | tuple) else drive
    return np.shape(one)[1] * n_steps


@dataclass(frozen=True, eq=False, repr=False)
class FitReport(Shown):
    """A report on the quality of a response fitted to recordings.

    Attributes
    ----------
    n_lags : int
        Number of lags of the fitted filter, chosen by cross-validation; G is zero at later
        lags.
    ridge : float
        Ridge penalty, relative to the mean power of the drive, chosen by cross-validation.
    linearity : float
        Share of the held-out variance of the outputs that the filter explains, weighted by
        their variance. Drift is removed before. ``shares`` says what the rest is.
    linearity_per_output : ndarray (n_outputs,)
    n_samples : int
        Number of fitted samples in all recordings.
    whole : ndarray (n_steps, n_outputs, n_inputs)
        Response fitted with all lags of the stimuli and almost no penalty: noisier than G,
        but without the errors from dropping lags and from shrinkage.
    drive_size : ndarray (n_inputs,)
        Standard deviation of the drive.
    influence : ndarray (n_blocks, n_steps, n_outputs, n_inputs)
        Change of ``whole`` due to each block of the recordings, to draw replicates from.
    shares : VarianceShares
        The causes of the variance that the filter does not explain.
    surrogate : Surrogate
        Curvature, noise and drift of the outputs.
    """

    n_lags: int
    ridge: float
    linearity: float
    linearity_per_output: np.ndarray
    n_samples: int
    drive_size: np.ndarray
    whole: np.ndarray
    influence: np.ndarray
    shares: VarianceShares
    surrogate: Surrogate

    def _facts(self) -> dict[str, Any]:
        facts = {"linearity": self.linearity, "lags": self.n_lags, "ridge": self.ridge}
        return {**facts, "samples": self.n_samples, "shares": self.shares}

    def replicates(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw ``whole`` for n other possible recordings, by the multiplier bootstrap."""
        draws = rng.standard_normal((n, len(self.influence)))
        return self.whole + np.tensordot(draws, self.influence, axes=1)

    def estimated(self, whole: np.ndarray) -> np.ndarray:
        """Return G for another ``whole``, shrunk and with the chosen lags only."""
        made = np.array(whole)
        made[..., : max(0, made.shape[-3] - self.n_lags), :, :] = 0.0
        return made / (1 + self.ridge)

    def likely(self) -> np.ndarray:
        """Return ``whole`` without the power of its errors.

        The response is a matrix Y of the lags, with the second moment S = Y Yᵀ. Its errors
        add C to S. Along each combination of lags, Y is shrunk to the power that is left,
        like the estimator of Efron and Morris: with errors, a device whose outputs all
        forget alike would seem to have many time constants to tell series apart by.
        """
        Y = self.whole.reshape(len(self.whole), -1)
        errors = self.influence.reshape(*self.influence.shape[:2], -1)
        C = np.einsum("bno,bmo->nm", errors, errors)
        S = Y @ Y.T
        # Lags that were not fitted have no errors.
        C[np.diag_indices_from(C)] += 1e-12 * np.trace(C) + 1e-20 * np.trace(S)
        powers, along = linalg.eigh(S, C)  # alongᵀ C along = 1
        kept = np.sqrt(1 - 1 / np.maximum(powers, 1.0))
        return (((C @ along) * kept) @ (along.T @ Y)).reshape(self.whole.shape)

    def other_responses(self) -> list[np.ndarray]:
        """Return ``whole`` of the device under a weak drive, and as it drifts."""
        found, gains = self.surrogate, self.surrogate.gains[..., None]
        return [found.weak(self.whole), *(self.whole * (1 + gain) for gain in gains)]

    def next_recording(self) -> NextRecording:
        """Return which recording to make next, with its drive and the reason."""
        return next_recording(self.shares, self.n_samples, self.n_lags, self.drive_size)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of each entry of ``whole``, (n_steps, n_outputs, n_inputs)."""
        return np.sqrt(np.einsum("bnoi,bnoi->noi", self.influence, self.influence))


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredResponse(KnownByMaps, Shown, model_files.Saved, kind="response"):
    """A linear system given by its pulse responses G.

    Use it in place of an `Unfolding` in `optimize`, `choose_eta`, `margin_over_angle` and
    wherever a linear system is accepted. The numbers of inputs, outputs and steps are
    independent of each other.

    Parameters
    ----------
    G : array_like (n_steps, n_outputs, n_inputs)
        Entry [n, o, i] is output o at the readout after a unit pulse at input i during
        step n. The readout follows the last step.
    dt : float
        Length of a step, in your unit of time.
    fitted : FitReport or None
        Errors of the response, if it was fitted to recordings.

    Examples
    --------
    >>> from greenfold import GaussianStimuli, MeasuredResponse, Reservoir, optimize, unfold
    >>> network = unfold(Reservoir.random(20, rng=3), n_steps=10, dt=1.0)
    >>> device = MeasuredResponse(network.greens1()[:, :5], dt=1.0)  # five outputs are read
    >>> best = optimize(device, GaussianStimuli.random(10, strength=1.0, rng=4))
    >>> best.u.shape, best.v.shape, best.status
    ((20,), (5,), 'certified')
    """

    G: np.ndarray
    dt: float = 1.0
    fitted: FitReport | None = field(default=None, kw_only=True)
    n_steps: int = field(init=False)
    n_outputs: int = field(init=False)
    n_inputs: int = field(init=False)

    def __post_init__(self) -> None:
        G = check.host_array(self.G, "G", ndim=(3,))
        largest = float(np.abs(G).max(initial=0.0))
        why = f"be at most {_LARGEST:g} in size, so change the unit of the outputs"
        check.must(largest <= _LARGEST, "G", why, f"{largest:.3g}")
        G.flags.writeable = False
        object.__setattr__(self, "G", G)
        object.__setattr__(self, "dt", check.positive(self.dt, "dt"))
        for name, size in zip(("n_steps", "n_outputs", "n_inputs"), G.shape, strict=True):
            object.__setattr__(self, name, size)

    @classmethod
    @with_few_threads(_rows_to_fit)
    def fit(
        cls,
        drive: ArrayLike,
        states: ArrayLike,
        *,
        n_steps: int,
        dt: float = 1.0,
        n_lags: int | Sequence[int] | None = None,
        ridge: float | Sequence[float] | None = None,
        n_blocks: int = 40,
    ) -> MeasuredResponse:
        """Estimate the response from recordings of a device under random drive.

        Ridge regression fits each output to the last samples of all inputs (a finite
        impulse response). Cross-validation over blocks of time chooses the number of lags
        and the penalty, and measures the linearity.

        Parameters
        ----------
        drive : array_like (n_samples, n_inputs), or a list of them
            Inputs, one sample per step. Use independent random signals at the inputs; their
            means are removed.
        states : array_like (n_samples, n_outputs), or a list of them
            Outputs at the end of each step.
        n_steps : int
            Number of steps of the stimuli to classify.
        dt : float
            Length of a step.
        n_lags : int or list of int, optional
            Number of lags of the filter, or numbers to choose from; by default 1/4, 1/2,
            1 and 2 times ``n_steps``. If the recordings determine fewer lags, 1/4, 1/2
            and 1 times as many as they determine. Fewer lags than the memory of the device
            are refused.
        ridge : float or list of float, optional
            Penalty, or penalties to choose from, relative to the mean power of the drive;
            by default, ten values from 10⁻⁸ to 10.
        n_blocks : int
            Number of blocks of time for the error estimates. Blocks should be longer than
            the memory of the noise.

        Raises
        ------
        DataError
            If the recordings do not determine the response, or if the outputs follow the
            drive no better than by chance. The message says what to record.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import MeasuredResponse
        >>> rng = np.random.default_rng(0)
        >>> drive = rng.standard_normal((4000, 2))
        >>> states = np.zeros((4000, 1))
        >>> for t in range(1, 4000):
        ...     states[t] = 0.5 * states[t - 1] + drive[t] @ [1.0, -1.0]
        >>> device = MeasuredResponse.fit(drive, states, n_steps=3)
        >>> device.G[:, 0].round(2)  # 0.5², 0.5, 1
        array([[ 0.25, -0.25],
               [ 0.5 , -0.5 ],
               [ 1.  , -1.  ]])
        """
        n_steps = check.count(n_steps, "n_steps")
        n_blocks = check.count(n_blocks, "n_blocks", minimum=2 * _N_FOLDS)
        given = _RIDGES if ridge is None else check.host_array(ridge, "ridge", ndim=(0, 1))
        penalties = np.sort(np.atleast_1d(given))
        check.must(penalties[0] >= 0, "ridge", "not be negative", f"{penalties[0]:g}")
        drives, outputs = _check_recordings(drive, states)
        scale_in, scale_out = _deviation(drives), _deviation(outputs)
        drives = [d / scale_in for d in drives]
        _check_independent(np.concatenate(drives))
        lags, fittable = _lags(n_lags, n_steps, drives)
        outputs = [y / scale_out for y in outputs]
        data = _Regression(drives, outputs, max(lags[-1], fittable), n_blocks)
        L, penalty = data.choose(lags, penalties)
        drifts = [drift_of(one, L * data.n_inputs) for one in data.filtered(L)]
        drifts = drifts if is_sure(drifts) else []
        for _ in range(_PASSES if drifts else 0):
            data.subtract([one.change for one in drifts])
            drifts = [
                drift_of(one, L * data.n_inputs) for one in data.filtered(L, whole=True)
            ]
        if drifts:
            data.subtract([one.change for one in drifts])
            L, penalty = data.choose(lags, penalties)
        explained, variance = data.explained(L, penalty), scale_out**2
        linearity = float(explained @ variance / variance.sum())
        reached = float(data.explained(fittable, penalty) @ variance / variance.sum())
        W = data.solve(L, penalty)
        d, y = max(zip(drives, data.outputs, strict=True), key=lambda pair: len(pair[0]))
        found = _LagCorrelations(d, y)
        found.check_order(y[L - 1 :] - _filtered(d, W, L), d[L - 1 :])
        found.check_chance(linearity, data.is_above_chance(L, penalty), L)
        if reached > linearity + _FORGOTTEN:
            raise DataError(
                _N_LAGS,
                f" = {L} is shorter than the memory of the device: it explains "
                f"{linearity:.0%} of the outputs, {fittable} lags explain {reached:.0%}; "
                f"pass up to {n_steps}, the steps of the stimuli.",
            )
        whole = data.solve(max(fittable, min(n_steps, L)), _RIDGES[0])

        def arranged(filters: np.ndarray) -> np.ndarray:
            """Reorder filters (n, L · n_inputs, n_outputs) to put the oldest first."""
            n, _, n_outputs = filters.shape
            by_lag = filters.reshape(n, -1, data.n_inputs, n_outputs)[:, :n_steps]
            G = np.zeros((n, n_steps, n_outputs, data.n_inputs))
            G[:, n_steps - by_lag.shape[1] :] = by_lag[:, ::-1].transpose(0, 1, 3, 2)
            return G * (scale_out[:, None] / scale_in)

        unit = scale_out / scale_out.max()  # squares of squares are finite
        wandered = sum(len(one.change) * (one.power @ unit**2) for one in drifts)
        white = [_innovations(one) for one in drives]
        drift = float(wandered) / data.n_samples
        shares = variance_shares(data.filtered(L, unit), white, L, drift)
        report = FitReport(
            n_lags=L,
            ridge=penalty,
            linearity=linearity,
            linearity_per_output=explained,
            n_samples=data.n_samples,
            drive_size=scale_in,
            whole=arranged(whole[None])[0],
            influence=arranged(data.influence(whole, _RIDGES[0], n_steps)),
            shares=shares,
            surrogate=surrogate(
                data.filtered(L, scale_out), drifts, shares, L, n_steps, scale_out
            ),
        )
        return cls(arranged(W[None])[0], dt, fitted=report)

    def _facts(self) -> dict[str, Any]:
        sizes = dict(zip(("steps", "outputs", "inputs"), self.G.shape, strict=True))
        known = {} if self.fitted is None else {"linearity": self.fitted.linearity}
        return {**sizes, "dt": self.dt, **known}

    # The maps of a linear system have no checks, because optimisers call them often.

    @property
    def duration(self) -> float:
        """Duration T = KΔ of the stimuli."""
        return self.n_steps * self.dt

    def input_response(self, u: ArrayLike) -> np.ndarray:
        """Return Rᵤ (n_channels · n_steps, n_outputs) for u (n_inputs[, n_channels])."""
        u = np.asarray(u, dtype=np.float64).reshape(self.n_inputs, -1)
        n, o, i = self.G.shape
        response = (self.G.reshape(n * o, i) @ u).reshape(n, o, -1)
        return np.ascontiguousarray(response.transpose(2, 0, 1)).reshape(-1, o)

    def readout_response(self, v: ArrayLike) -> np.ndarray:
        """Return L_v (n_steps, n_inputs) for a readout v; several v add an axis."""
        v = np.asarray(v, dtype=np.float64)
        return np.ascontiguousarray(np.tensordot(self.G, v, axes=((1,), (0,))))

    def response_sum(self, d: np.ndarray) -> MatrixSum:
        """Return G(d) = Σ_n d_n G_n for weights d (n_channels, n_steps)."""
        return MatrixSum(np.tensordot(d, self.G, axes=1).transpose(1, 0, 2))

    def _carry_back(self, R_bar: np.ndarray) -> np.ndarray:
        """Turn ∂L/∂Rᵤ (n_channels, n_steps, n_outputs) to ∂L/∂u (n_inputs, n_channels)."""
        return np.einsum("cno,noi->ic", R_bar, self.G)

    def with_readout(self, readout: float) -> MeasuredResponse:
        """Return the device read earlier, at a multiple of dt; later steps are zero."""
        steps = check.positive(readout, "readout") / self.dt
        n_read = round(steps)
        fits = 1 <= n_read <= self.n_steps and abs(steps - n_read) <= 1e-6 * max(steps, 1)
        wanted = f"be a multiple of dt = {self.dt:g} up to {self.duration:g}"
        check.must(fits, "readout", f"{wanted}, a time of the recording", repr(readout))
        G = np.zeros_like(self.G)
        G[:n_read] = self.G[self.n_steps - n_read :]
        return MeasuredResponse(G, self.dt)

    def replicates(
        self, n: int, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw responses (n, n_steps, n_outputs, n_inputs) of other possible recordings.

        Their errors are drawn by the block multiplier bootstrap.
        """
        if self.fitted is None:
            given = "but this one was given as an array, without errors"
            needs = "`replicates` needs a fitted response"
            raise ValueError(f"{needs}, {given}; use MeasuredResponse.fit.")
        made = self.fitted.replicates(check.count(n, "n"), check.generator(rng))
        return self.fitted.estimated(made)


_SHAPE = ("steps", "outputs", "inputs")
_REPORT = model_files.Object(
    FitReport,
    linearity_per_output=model_files.Numbers("outputs"),
    drive_size=model_files.Numbers("inputs"),
    whole=model_files.Numbers(*_SHAPE),
    influence=model_files.Numbers(None, *_SHAPE),
    shares=model_files.Object(VarianceShares),
    surrogate=model_files.Object(
        Surrogate,
        size=model_files.Numbers("outputs"),
        **dict.fromkeys(("even", "odd"), model_files.Numbers(None, "outputs", "outputs")),
        noise=model_files.Numbers("outputs", "outputs"),
        gains=model_files.Numbers(None, "steps", "outputs"),
        offsets=model_files.Numbers(None, "outputs"),
    ),
)
model_files.describe(
    "response",
    MeasuredResponse,
    G=model_files.Numbers(*_SHAPE),
    fitted=model_files.Maybe(_REPORT),
)


def _recordings(value: ArrayLike, name: str) -> list[np.ndarray]:
    """Return one recording or several, each as (n_samples, n_channels) of floats."""
    listed: list[Any] = list(value) if isinstance(value, list | tuple) else []
    several = any(np.ndim(one) > 1 for one in listed)
    found = []
    for number, one in enumerate(listed if several else [value]):
        label = f"`{name}`" + (f", recording {number}," if several else "")
        try:
            one = check.unmasked(one, label, fill=np.nan)
            array = np.asarray(to_host(one), dtype=np.float64)
        except (TypeError, ValueError) as error:
            wanted = "pass an array (n_samples, n_channels)"
            reason = f"could not be read as numbers ({error})"
            raise TypeError(f"{label} {reason}; {wanted}.") from None
        array = array[:, None] if array.ndim == 1 else array
        wrong, wanted = array.ndim != 2 or not array.size, "(n_samples, n_channels)"
        _refuse_if(wrong, f"{label} must have shape {wanted}", f"got {array.shape}")
        found.append(array)
    return found


def _refuse_if(wrong: object, problem: str, *advice: Part) -> None:
    """Refuse recordings with a message: the problem, and what to record instead."""
    if wrong:
        raise DataError(f"{problem}; ", *advice, ".")


def _check_recordings(drive: ArrayLike, states: ArrayLike) -> list[list[np.ndarray]]:
    """Check the recordings, and return all drives and outputs without their means."""
    both = {"drive": _recordings(drive, "drive"), "states": _recordings(states, "states")}
    drives, outputs = both.values()
    n, m = len(drives), len(outputs)
    unequal = f"`drive` holds {n} recordings and `states` {m}"
    _refuse_if(n != m, unequal, "pass one of each per recording")
    for number, (d, y) in enumerate(zip(drives, outputs, strict=True)):
        where = f" in recording {number}" if n > 1 else ""
        unequal = f"`drive` has {len(d)} samples and `states` {len(y)}{where}"
        clock = "sample both with one clock, one sample per step"
        _refuse_if(len(d) != len(y), unequal, clock)
        for name, array in (("drive", d), ("states", y)):
            channels, first = array.shape[1], both[name][0].shape[1]
            unequal = f"`{name}` has {channels} channels{where} and {first} in the first"
            _refuse_if(channels != first, unequal, "record the same channels each time")
            bad = np.argwhere(~np.isfinite(array))
            for sample, channel in bad[:1]:
                missing = f"`{name}` has {len(bad)} missing or infinite values{where}"
                place = f"the first at sample {sample}, channel {channel}"
                gaps = "cut it at such gaps and use the parts as several recordings"
                raise DataError(f"{missing}, {place}; {gaps}.")
    _check_channels(drives, "drive", "input", _OWN_SIGNAL)
    sensor = "check its sensor and record again, or leave that column out"
    _check_channels(outputs, "states", "output", sensor)
    _check_clipping(outputs)
    return [[one - one.mean(0) for one in arrays] for arrays in both.values()]


def _check_channels(arrays: list[np.ndarray], name: str, place: str, advice: str) -> None:
    """Refuse channels that never change, or whose unit differs from the others."""
    largest = np.max([np.abs(array).max(0) for array in arrays], axis=0)
    huge = f"`{name}` reaches {largest.max():.1e}, too large to be squared"
    unit = "convert it to a unit in which it is about one"
    _refuse_if(largest.max() > 1e100, huge, unit)
    spread = np.array([array.std(0) for array in arrays])
    size = spread.max(0)
    for channel in np.flatnonzero(size <= _CONSTANT * largest)[:1]:
        raise DataError(f"`{name}` never changes at {place} {channel}; {advice}.")
    known = np.where(spread > 0, spread, np.nan)
    ratio = np.nanmax(known, axis=0) / np.nanmin(known, axis=0)
    worst = int(ratio.argmax())
    most, least = int(np.nanargmax(known[:, worst])), int(np.nanargmin(known[:, worst]))
    larger = f"`{name}`, channel {worst}, is {ratio[worst]:.0f} times larger in recording"
    unequal = f"{larger} {most} than in recording {least}: they are not in one unit"
    setting = "convert them, or record with one setting"
    _refuse_if(ratio[worst] > _UNITS, unequal, setting)
    if len(size) > 1:
        # Projections have unit norm, so a huge channel would hide all others.
        top = int(size.argmax())
        typical = float(np.median(np.delete(size, top)))
        times = f"{size[top] / typical:.1e} times as large as the others"
        unequal = f"`{name}`, channel {top}, is {times}: it is not in their unit"
        large = size[top] > _UNITS_OF_CHANNELS * typical
        _refuse_if(large, unequal, "convert it, or leave it out")


def _check_clipping(outputs: list[np.ndarray]) -> None:
    for channel, values in enumerate(np.concatenate(outputs).T):
        levels, counts = np.unique(values, return_counts=True)
        if len(levels) <= 16:
            continue
        for word, here, inside in (("largest", -1, -2), ("smallest", 0, 1)):
            # An unclipped signal has its extreme value less often than the value next to
            # it.
            share, piled = counts[here] / len(values), counts[here] > 3 * counts[inside]
            most = f"{100 * share:.2g} % of its samples have its {word} value"
            problem = f"`states` is clipped at output {channel}: {most}"
            clipped = share > _CLIPPED or (piled and share > _PILED)
            _refuse_if(clipped, problem, "record with a weaker drive or a wider range")


def _innovations(drive: np.ndarray) -> np.ndarray:
    """Return the part of each channel that its past does not predict, at unit variance.

    A slow drive itself is correlated with the outputs at many lags, by its own memory and
    by chance.
    """
    n_past = min(_PAST, len(drive) // 10)
    found = np.zeros_like(drive)
    for k, one in enumerate(drive.T):
        past = np.lib.stride_tricks.sliding_window_view(one, n_past + 1)
        known, new = past[:, :-1], past[:, -1]
        rest = new - known @ np.linalg.lstsq(known, new, rcond=1e-8)[0]
        found[n_past:, k] = rest / max(float(rest.std()), 1e-300)
    return found


class _LagCorrelations:
    """The squared correlations of outputs and drive by lag, over all pairs of channels.

    They come from the longest recording. No lag exceeds ``surprising`` by chance.
    """

    def __init__(self, drive: np.ndarray, outputs: np.ndarray) -> None:
        d, y = _innovations(drive[:_CORRELATED]), outputs[:_CORRELATED]
        n, size, df = len(d), 2 * len(d), drive.shape[1] * y.shape[1]
        whole, Y = np.zeros(size), np.fft.rfft(y - y.mean(0), size, axis=0)
        for one in d.T:
            both = np.conj(np.fft.rfft(one, size))[:, None] * Y
            whole += (np.fft.irfft(both, size, axis=0) ** 2).sum(1) / n
        self.lags = np.arange(-(n // 2), n // 2)
        self.power = whole[self.lags] * (n / (n - np.abs(self.lags)))
        # If outputs resemble each other, the power varies more, like the power of fewer
        # channels. The quartiles tell of how many.
        middle, upper = np.quantile(self.power, [0.5, 0.75])
        few = np.arange(1, df + 1)
        alike = few[chi2.ppf(0.75, few) * middle >= upper * chi2.median(few)]
        df = int(alike.max(initial=1))
        excess = max(float(middle) / chi2.median(df), 1.0)
        self.surprising = excess * float(chi2.isf(_CHANCE / n, df))

    @property
    def lag(self) -> int | None:
        """Lag of the largest correlation; None if it is due to chance."""
        top = int(self.power.argmax())
        return int(self.lags[top]) if self.power[top] > self.surprising else None

    def check_chance(self, linearity: float, above: bool, n_lags: int) -> None:
        """Refuse outputs that do not follow the drive."""
        share = f"a linear filter of {n_lags} lags explains {linearity:.1%} of the held-out"
        chance = f"`states` do not follow `drive`: {share} variance, no more than chance"
        how: tuple[Part, ...] = (
            "check that these columns were recorded together, or record longer",
        )
        if self.lag is not None and self.lag >= n_lags:
            late = f"they follow most at lag {self.lag}: remove that delay, or pass more "
            how = late, _N_LAGS
        _refuse_if(not above or linearity <= 0, chance, *how)

    def check_order(self, left: np.ndarray, drive: np.ndarray) -> None:
        """Refuse outputs that precede the drive.

        ``left`` is the part of the outputs that the past of the drive does not explain.
        """
        rest = _LagCorrelations(drive, left)
        early = rest.lags[(rest.lags < 0) & (rest.power > rest.surprising)]
        _refuse_if(
            early.size,
            "`states` respond before `drive` comes: their largest correlation is at lag "
            f"{self.lag}, and the first at {early.min(initial=0)}",
            f"shift the outputs by {-early.min(initial=0)} samples, or record both with "
            "one clock",
        )


def _check_independent(drive: np.ndarray) -> None:
    """Refuse inputs that carry the same signal, by their correlations."""
    n_inputs = drive.shape[1]
    size = np.abs(np.corrcoef(drive.T).reshape(n_inputs, -1)) * (1 - np.eye(n_inputs))
    i, j = sorted(int(k) for k in np.unravel_index(size.argmax(), size.shape))
    same = f"`drive` carries the same signal at inputs {i} and {j}, so their responses"
    alike = size.size > 1 and size.max() > 0.999
    _refuse_if(alike, f"{same} cannot be told apart", _OWN_SIGNAL)


def _check_excited(gram: np.ndarray) -> None:
    """Refuse a drive whose XᵀX shows that it does not excite all directions of the past."""
    factor, info = linalg.lapack.dpotrf(gram)
    size = np.abs(gram).sum(0).max()
    _refuse_if(
        info != 0 or linalg.lapack.dpocon(factor, size)[0] <= _EXCITED,
        "`drive` is too regular to determine the response at every lag (it repeats itself, "
        "changes too slowly, or its inputs depend on each other)",
        "drive with white noise that is new in every step",
    )


def _deviation(arrays: list[np.ndarray]) -> np.ndarray:
    total = sum((array**2).sum(0) for array in arrays)
    return np.sqrt(total / sum(len(array) for array in arrays))


def _lags(
    given: int | Sequence[int] | None, n_steps: int, drives: list[np.ndarray]
) -> tuple[list[int], int]:
    """Return the numbers of lags to compare, and how many stimulus lags can be fitted.

    The function refuses more lags than the recordings allow.
    """
    n_inputs = drives[0].shape[1]

    def usable(lags: int) -> int:
        return sum(max(0, len(d) - lags + 1) for d in drives)

    def is_long(lags: int) -> bool:
        return usable(lags) >= least(lags)

    def least(lags: int) -> int:
        return max(2 * lags * n_inputs, _LEAST)

    def memory(lags: int) -> float:
        return 8.0 * (lags * n_inputs) ** 2 * (_N_FOLDS + 3)

    def check_length(lags: int) -> None:
        unknowns = lags * n_inputs
        samples = f"{usable(lags)} samples can be used for {unknowns} unknowns per output"
        short = f"`drive` is too short: {samples} ({n_inputs} inputs × {lags} lags)"
        total = least(lags) + len(drives) * (lags - 1)
        advice = f"record at least {total} samples, better ten times as many, or pass"
        _refuse_if(not is_long(lags), short, f"{advice} fewer ", _N_LAGS)

    if given is None:
        check_length(1)
        longest = next(n for n in range(n_steps, 0, -1) if is_long(n))
        wanted = {max(1, longest // 4), max(1, longest // 2), longest, 2 * n_steps}
        fits = sorted(filter(is_long, wanted))
        if memory(fits[-1]) > _NORMAL_BYTES:
            fits = [lags for lags in fits if lags <= n_steps]
    else:
        listed = [given] if isinstance(given, int | np.integer) else list(given)
        fits = sorted({check.count(one, "n_lags") for one in listed})
        check.must(fits, "n_lags", "hold at least one number", "none")
        check_length(fits[-1])
    needed = memory(fits[-1])
    if needed > _NORMAL_BYTES:
        many = f"`n_lags` = {fits[-1]} with {n_inputs} inputs"
        advice = "use fewer lags, or record groups of inputs separately"
        raise MemoryError(f"{many} needs {needed / 2**30:.0f} GiB; {advice}.")
    small = (n for n in range(n_steps, 1, -1) if is_long(n) and memory(n) <= _NORMAL_BYTES)
    return fits, next(small, 1)


class _Regression:
    """The normal equations of y_t = Σ_{l < L} H_l d_{t−l} + noise, summed by fold.

    They are accumulated once over all recordings, for the largest number of lags; fewer
    lags are leading blocks. The errors come from a multiplier bootstrap over blocks of
    time: the response moves by (XᵀX + λ)⁻¹ Σ_b ε_b s_b with the scores s_b = Σ_{t ∈ b} x_t
    r_tᵀ of the residuals and random ε_b of unit variance. The noise need not be white or
    equal, but blocks must be longer than its memory.
    """

    def __init__(
        self,
        drives: list[np.ndarray],
        outputs: list[np.ndarray],
        n_lags: int,
        n_blocks: int,
    ) -> None:
        self.drives, self.outputs, self.n_lags = drives, outputs, n_lags
        self.recorded = outputs
        self.n_inputs = drives[0].shape[1]
        self.n_samples = sum(max(0, len(d) - n_lags + 1) for d in drives)
        p, m = n_lags * self.n_inputs, outputs[0].shape[1]
        fits = int(_INFLUENCE_BYTES // (8.0 * p * m))
        n_blocks = max(2 * _N_FOLDS, min(n_blocks, fits, self.n_samples))
        self.n_blocks = n_blocks - n_blocks % _N_FOLDS
        self.A = np.zeros((_N_FOLDS, p, p))
        self.B = np.zeros((_N_FOLDS, p, m))
        self.yy = np.zeros((_N_FOLDS, m))
        for fold, past, _ in self.stretches(_N_FOLDS):
            self.A[fold] += _gram(past, n_lags)
        self._relate()
        total = self.A.sum(0)
        _check_excited(total)
        self.unit = float(np.trace(total)) / p

    def stretches(self, n: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield (group, drive, outputs) for blocks of time in n equally long groups.

        The drive begins n_lags − 1 samples before the outputs.
        """
        L, done = self.n_lags, 0
        for d, y in zip(self.drives, self.outputs, strict=True):
            usable = len(d) - L + 1
            if usable <= 0:
                continue
            groups = (np.arange(done, done + usable) * n) // self.n_samples
            cuts = np.flatnonzero(np.diff(groups)) + 1
            for start, stop in zip([0, *cuts], [*cuts, usable], strict=True):
                yield int(groups[start]), d[start : stop + L - 1], y[L - 1 :][start:stop]
            done += usable

    def filtered(
        self, L: int, unit: float | np.ndarray = 1.0, *, whole: bool = False
    ) -> list[Filtered]:
        """Return the recordings, predicted by L lags without a penalty.

        If ``whole``, what was subtracted is part of them.
        """
        W, found = self.solve(L, _RIDGES[0]).reshape(L, self.n_inputs, -1), []
        outputs = self.recorded if whole else self.outputs
        for d, y in zip(self.drives, outputs, strict=True):
            if len(d) < self.n_lags:
                continue
            made = []
            for group in lag_groups(L):
                own = np.zeros_like(W)
                own[group] = W[group]
                made.append(_filtered(d, own.reshape(L * self.n_inputs, -1), self.n_lags))
            found.append(Filtered(d, y[self.n_lags - 1 :] * unit, np.stack(made) * unit))
        return found

    def subtract(self, changes: list[np.ndarray]) -> None:
        """Remove a part of the outputs of each recording that is long enough."""
        left = iter(changes)
        self.outputs = [y.copy() for y in self.recorded]
        for y in self.outputs:
            if len(y) >= self.n_lags:
                y[self.n_lags - 1 :] -= next(left)
        self._relate()

    def _relate(self) -> None:
        """Sum the products of the drive with the outputs by fold."""
        self.B[:], self.yy[:] = 0.0, 0.0
        for fold, past, y in self.stretches(_N_FOLDS):
            self.B[fold] += _cross(past, y, self.n_lags)
            self.yy[fold] += (y**2).sum(0)

    def _sums(self, L: int, left_out: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return XᵀX and XᵀY of L lags, summed over all folds but one."""
        p, folds = L * self.n_inputs, [k for k in range(_N_FOLDS) if k != left_out]
        return self.A[folds, :p, :p].sum(0), self.B[folds, :p].sum(0)

    def choose(self, lags: list[int], penalties: np.ndarray) -> tuple[int, float]:
        """Return the number of lags and the penalty with the smallest held-out error."""
        penalty = float(penalties[np.argmin(np.abs(np.log((penalties + 1e-300) / _FIRST)))])
        L = lags[-1]
        for _ in range(2):
            before = L
            if len(lags) > 1:
                L = lags[int(np.argmin([self._held_out(k, penalty).sum() for k in lags]))]
            if len(penalties) > 1:
                penalty = float(penalties[self._held_out(L, *penalties).sum(1).argmin()])
            if before == L:
                break
        return L, penalty

    def _held_out(self, L: int, *penalties: float) -> np.ndarray:
        """Return the held-out squared errors over all folds, per penalty and output."""
        ridges = _TRAINED * self.unit * np.array(penalties)
        total = np.zeros((len(ridges), self.yy.shape[1]))
        for fold in range(_N_FOLDS):
            sums, p = self._sums(L, fold), L * self.n_inputs
            A, B = self.A[fold, :p, :p], self.B[fold, :p]
            one = len(ridges) == 1
            filters = [solve_ridge(*sums, ridges[0])] if one else ridge_path(*sums, ridges)
            for k, W in enumerate(filters):
                total[k] += self.yy[fold] - 2 * (W * B).sum(0) + (W * (A @ W)).sum(0)
        return total

    def explained(self, L: int, penalty: float) -> np.ndarray:
        """Return the share of the held-out variance that is explained, per output."""
        return 1 - self._held_out(L, penalty)[0] / self.yy.sum(0)

    def is_above_chance(self, L: int, penalty: float) -> bool:
        """Return whether held-out blocks are explained better than by chance."""
        ridge, found = _TRAINED * self.unit * penalty, np.zeros(self.n_blocks)
        filters = [solve_ridge(*self._sums(L, fold), ridge) for fold in range(_N_FOLDS)]
        for block, past, y in self.stretches(self.n_blocks):
            made = _filtered(past, filters[block * _N_FOLDS // self.n_blocks], self.n_lags)
            found[block] += float((2 * y * made - made**2).sum())
        least = float(student_t.isf(_CHANCE, self.n_blocks - 1))
        return float(found.mean()) > least * float(found.std(ddof=1)) / self.n_blocks**0.5

    def solve(self, L: int, penalty: float) -> np.ndarray:
        """Return the filters of L lags, (L · n_inputs, n_outputs)."""
        return solve_ridge(*self._sums(L), self.unit * penalty)

    def influence(self, W: np.ndarray, penalty: float, n_steps: int) -> np.ndarray:
        """Return how each block changes the filters, (n_blocks, unknowns, n_outputs)."""
        p = len(W)
        scores = np.zeros((self.n_blocks, *W.shape))
        for block, past, y in self.stretches(self.n_blocks):
            residual = y - _filtered(past, W, self.n_lags)
            scores[block] += _cross(past, residual, self.n_lags)[:p]
        scores -= scores.mean(0)
        # A fit makes residuals smaller than the noise; correct for the number of unknowns.
        n, b = self.n_samples, self.n_blocks
        scores *= np.sqrt(n / max(n - p, 1) * b / (b - 1))
        flat = scores.transpose(1, 0, 2).reshape(p, -1)
        moved = solve_ridge(self._sums(p // self.n_inputs)[0], flat, self.unit * penalty)
        moved = moved.reshape(p, b, -1).transpose(1, 0, 2)
        return moved[:, : n_steps * self.n_inputs]


def _lagged(past: np.ndarray, lag: int, n_lags: int) -> np.ndarray:
    """Return the samples d_{t−lag} for the times t of a block."""
    return past[n_lags - 1 - lag : len(past) - lag]


def _gram(past: np.ndarray, n_lags: int) -> np.ndarray:
    """Return XᵀX of a block; along diagonals, add samples that enter or leave."""
    n = past.shape[1]
    A = np.empty((n_lags, n, n_lags, n))
    newest = _lagged(past, 0, n_lags)
    for lag in range(n_lags):
        A[0, :, lag] = newest.T @ _lagged(past, lag, n_lags)
    first, last = past[: n_lags - 1][::-1], past[-n_lags:][::-1]
    for l in range(n_lags - 1):
        entering = np.einsum("i,mj->imj", first[l], first[l:])
        leaving = np.einsum("i,mj->imj", last[l], last[l : n_lags - 1])
        A[l + 1, :, l + 1 :] = A[l, :, l : n_lags - 1] + entering - leaving
    for l in range(1, n_lags):
        A[l, :, :l] = A[:l, :, l].transpose(2, 0, 1)
    return A.reshape(n_lags * n, n_lags * n)


def _cross(past: np.ndarray, y: np.ndarray, n_lags: int) -> np.ndarray:
    """Return XᵀY of a block."""
    return np.concatenate([_lagged(past, lag, n_lags).T @ y for lag in range(n_lags)])


def _filtered(past: np.ndarray, W: np.ndarray, n_lags: int) -> np.ndarray:
    """Return X W of a block; W may have fewer lags."""
    made = np.zeros((len(past) - n_lags + 1, W.shape[1]))
    for lag, one in enumerate(W.reshape(-1, past.shape[1], W.shape[1])):
        made += _lagged(past, lag, n_lags) @ one
    return made
