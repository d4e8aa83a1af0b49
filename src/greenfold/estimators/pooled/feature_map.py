"""Pooled features of series: a bank of reservoirs, thresholds, the scale of the series.

A linear reservoir that is read at every step is a bank of causal filters. Here each
reservoir covers one time scale τ₀: the decay times of its oscillators lie around τ₀, their
frequencies around 1/τ₀, and each random readout mixes all of them. Times are in steps.

`ReservoirFeatures` fits a `FeatureMap`, and the estimators use it. The map processes one
reservoir at a time, in batches of bounded memory. It uses the compiled engine if numba is
installed and the series are on the host, and array operations otherwise. Both fill the same
table of `N_ROWS` rows for each reading (a readout, or its first or second difference in
time).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType
from typing import Any

import array_api_compat as compat
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from ..._base.arrays import Array, batches, like, to_host
from ..._base.printing import Shown
from ..._base.threads import with_few_threads
from ...networks.reservoir import Reservoir
from ..series import SeriesByLength

#: Number of readouts that compete with each other.
GROUP = 8
#: Shortest time scale in steps: below it, a step exceeds the memory.
SHORTEST = 1.5
#: Decay times of a reservoir of time scale τ₀, relative to τ₀.
DECAYS = (0.5, 2.0)
#: Angular frequencies of a reservoir, times τ₀: from a filter that hardly oscillates while
#: it decays to a filter that oscillates twice. They end at half a turn per step, the
#: Nyquist frequency.
FREQUENCIES = (0.3, 12.0)
#: A slow reservoir is read every τ₀/6 steps (its fastest mode turns by two radians in
#: between), but at least 128 times per series.
READS_PER_SCALE = 6
MIN_READS = 128
#: Number of parts of a reservoir that receive different channels.
PARTS = 8
#: Thresholds of a reading: random quantiles of its training values, in ascending order.
N_THRESHOLDS = 3
#: The readout and its first and second difference, interleaved in this order.
N_SIGNALS = 3

#: Rows of each kind of feature. "quarters" and "halves" have one row for each part of the
#: time and, within it, each threshold.
KINDS: dict[str, slice] = {
    "above": slice(0, 3),  # proportion of time above a threshold
    "halves": slice(3, 9),  # the same in each half of the time
    "quarters": slice(9, 21),  # the same in each quarter
    "level": slice(21, 24),  # mean of the values above; the threshold if there are none
    "position": slice(24, 27),  # mean time above, 0 … 1; ½ if there is none
    "stretch": slice(27, 30),  # longest stretch above, as a proportion
    "stretches": slice(30, 33),  # √ of the mean length of all stretches, as a proportion
    "max": slice(33, 34),
    "min": slice(34, 35),
    "rms": slice(35, 36),
    "largest": slice(36, 37),  # √ of mean |z| where it is the largest of its group, else 0
    "smallest": slice(37, 38),
}
N_ROWS = 38

#: Weight of each row after standardisation. Features that tell *when* something happened
#: help with aligned series and hurt with others. Half the weight was the best compromise in
#: leave-one-out tests on training data.
ROW_WEIGHTS = np.ones(N_ROWS)
for _kind in ("halves", "quarters", "position"):
    ROW_WEIGHTS[KINDS[_kind]] = 0.5
#: Bytes of working memory for array operations: small enough for the caches of the host,
#: large enough to keep a GPU busy.
_HOST_BYTES = 2**23
_DEVICE_BYTES = 2**31
#: Number of arrays, as large as the readings, that array operations keep at a time.
_TEMPORARIES = 8
#: Bytes of features that the compiled engine computes before it stores them.
_TABLE_BYTES = 2**24
#: Number of training series, and of values per reading, from which thresholds are drawn.
_SAMPLED_SERIES = 256
_SAMPLED_VALUES = 1024


class SlowEngineWarning(UserWarning):
    """numba is not installed, so slower array operations compute the pooled features."""


def has_numba() -> bool:
    """Return whether the compiled engine is available."""
    return find_spec("numba") is not None


@cache
def auto_engine() -> str:
    """Return the engine that "auto" uses on the host; warn once if it is slow."""
    if has_numba():
        return "numba"
    warnings.warn(
        "numba is not installed, so pooled features take more than ten times as long; "
        'install it with `pip install "greenfold[fast]"`, or pass engine="array" to accept '
        "this.",
        SlowEngineWarning,
        stacklevel=2,
    )
    return "array"


@dataclass(frozen=True, eq=False, repr=False)
class ScaleReservoir(Shown):
    """A linear reservoir of damped oscillators, and its readouts.

    Attributes
    ----------
    scale : float
        Time scale τ₀ in steps.
    decay_times, frequencies : ndarray (n_oscillators,)
        In steps, and in radians per step.
    u : ndarray (2 n_oscillators, n_channels)
        Input projection; neurons 2j and 2j + 1 are oscillator j.
    readouts : ndarray (2 n_oscillators, n_readouts)
        Readout vectors. Readouts i, i + n/8, i + 2n/8, … compete with each other.
    stride : int
        Steps from one reading to the next; the last step of a series is always read.
    """

    scale: float
    decay_times: np.ndarray
    frequencies: np.ndarray
    u: np.ndarray
    readouts: np.ndarray
    stride: int = 1

    def _facts(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "n_oscillators": len(self.decay_times),
            "n_readouts": self.n_readouts,
            "stride": self.stride,
        }

    @property
    def n_readouts(self) -> int:
        """Number of readouts D."""
        return self.readouts.shape[1]

    def reservoir(self) -> Reservoir:
        """Return the same network as a `Reservoir`, for steps of length one.

        Its input projection is τ times `u`, because the neurons here have no time constant.
        """
        return Reservoir.oscillators(self.decay_times, self.frequencies)

    @cached_property
    def rates(self) -> np.ndarray:
        """λ_j = −1/T_j + iω_j of each oscillator, complex."""
        return -1 / self.decay_times + 1j * self.frequencies

    @cached_property
    def drive(self) -> np.ndarray:
        """Effect of the input between two readings, (stride · n_channels, 2 n_oscillators).

        The state at a reading is exp(λ·stride) times the state at the previous reading,
        plus the steps in between (in time order, channels innermost) times this matrix. The
        real parts of all oscillators come first, then the imaginary parts. This is exact
        for input that is constant over a step: each step adds (exp(λ) − 1)/λ · u x.
        """
        complex_u = self.u[0::2] + 1j * self.u[1::2]
        step = (np.expm1(self.rates) / self.rates)[:, None] * complex_u
        left = np.arange(self.stride - 1, -1, -1)
        each = np.exp(left[:, None, None] * self.rates[:, None]) * step
        flat = np.moveaxis(each, 1, 2).reshape(-1, len(self.rates))
        return np.concatenate([flat.real, flat.imag], axis=1)

    @cached_property
    def split_readouts(self) -> np.ndarray:
        """`readouts` in the order of `drive`: real parts, then imaginary parts."""
        return np.concatenate([self.readouts[0::2], self.readouts[1::2]])

    def impulse_response(self, n_steps: int) -> np.ndarray:
        """Return the response to one step of input, (n_steps, n_channels, n_readouts)."""
        one = replace(self, stride=1)
        J = len(self.rates)
        start = one.drive[:, :J] + 1j * one.drive[:, J:]
        state = np.exp(np.arange(n_steps)[:, None, None] * self.rates) * start
        return np.concatenate([state.real, state.imag], axis=2) @ self.split_readouts


@dataclass(frozen=True, eq=False, repr=False)
class FilterBank(Shown):
    """Reservoirs of several time scales that receive the same series."""

    scales: tuple[ScaleReservoir, ...]
    n_channels: int

    def _facts(self) -> dict[str, Any]:
        steps = np.array([round(one.scale, 1) for one in self.scales])
        return {"scales": steps, "n_channels": self.n_channels}


def draw_bank(
    n_steps: float,
    n_channels: int,
    rng: np.random.Generator,
    *,
    n_scales: int = 8,
    n_oscillators: int = 32,
    n_readouts: int = 88,
) -> FilterBank:
    """Draw a filter bank for series of the typical length ``n_steps``.

    Time scales are spaced evenly in their logarithm, from 1.5 steps to half the series.
    Decay times and frequencies are log-uniform around them, and readouts are normal, in a
    multiple of 8. Every oscillator has the same response to white noise.

    With several channels, a reservoir has eight parts. Each part receives its own random
    mixture of some channels, so there are filters for single channels as well as for
    combinations. A readout reads one part.
    """
    longest = max(n_steps / 2, SHORTEST)
    scales = np.geomspace(SHORTEST, longest, n_scales) if n_scales > 1 else [longest]
    most = max(1, int(n_steps // MIN_READS))
    drawn = []
    for scale in scales:
        low, high = np.log(DECAYS)
        decay = scale * np.exp(rng.uniform(low, high, n_oscillators))
        low, high = np.log([FREQUENCIES[0] / scale, min(FREQUENCIES[1] / scale, np.pi)])
        frequency = np.exp(rng.uniform(low, high, n_oscillators))
        u = np.zeros((2 * n_oscillators, n_channels))
        # The power of exp(−t/T) is T/2.
        u[0::2] = np.sqrt(2 / decay)[:, None]
        readouts = rng.standard_normal((2 * n_oscillators, n_readouts))
        if n_channels > 1:
            u[0::2] *= _mixtures(rng, n_oscillators, n_channels)
            parts = min(PARTS, n_oscillators)
            part = np.arange(2 * n_oscillators) // 2 % parts
            group = np.arange(n_readouts) % (n_readouts // GROUP)
            readouts *= part[:, None] == group % parts
        readouts /= np.linalg.norm(readouts, axis=0)
        stride = max(1, min(int(scale // READS_PER_SCALE), most))
        drawn.append(ScaleReservoir(float(scale), decay, frequency, u, readouts, stride))
    return FilterBank(tuple(drawn), n_channels)


def _mixtures(rng: np.random.Generator, n_oscillators: int, n_channels: int) -> np.ndarray:
    """Return the weight of each channel in each input, (n_oscillators, n_channels).

    The number of channels of a part is log-uniform, so single channels are as frequent as
    mixtures of half of the channels.
    """
    weights = np.zeros((n_oscillators, n_channels))
    for part in range(min(PARTS, n_oscillators)):
        size = int(2 ** rng.uniform(0, np.log2(n_channels + 1)))
        heard = rng.choice(n_channels, size, replace=False)
        mixture = rng.standard_normal(size)
        weights[part::PARTS, heard] = mixture / np.linalg.norm(mixture)
    return weights


@dataclass(frozen=True, eq=False, repr=False)
class LinearHead(Shown):
    """A linear head: Σ (features − mean) · coefficients + intercept, over reservoirs."""

    means: list[np.ndarray]  # (n_features,), float32
    coefficients: list[np.ndarray]  # (n_features, n_targets), float32
    intercept: np.ndarray

    def _facts(self) -> dict[str, Any]:
        n_features = sum(map(len, self.means))
        return {"n_features": n_features, "n_targets": len(self.intercept)}

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Return mean and coefficients of each reservoir."""
        return zip(self.means, self.coefficients, strict=True)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureMap(Shown):
    """A map from series to features.

    ``thresholds`` are (3, 3 n_readouts) float32 per reservoir. Their columns are the
    readouts, then the first differences, then the second differences. ``mean`` and
    ``deviation`` (n_channels,) standardise the series; they are None if each series uses
    its own. ``engine`` applies to series on the host.
    """

    bank: FilterBank
    thresholds: list[np.ndarray]
    mean: np.ndarray | None
    deviation: np.ndarray | None
    engine: str

    def _facts(self) -> dict[str, Any]:
        return {
            "n_features": sum(self.widths),
            "bank": self.bank,
            "scaling": "series" if self.mean is None else "set",
            "engine": self.engine,
        }

    @property
    def widths(self) -> list[int]:
        """Number of features per reservoir."""
        return [N_ROWS * N_SIGNALS * one.n_readouts for one in self.bank.scales]

    # The products for one series are small, however many series there are.
    @with_few_threads()
    def blocks(self, series: SeriesByLength, scale: int, n_jobs: int | None = None) -> Any:
        """Return the features of one reservoir, (n_cases, widths[scale]) float32."""
        width, alone = self.widths[scale], len(series.groups) == 1
        if isinstance(series.groups[0][1], np.ndarray):
            whole = np.empty((len(series), width), np.float32)
            for cases, x in self._batches(series, [scale]):
                if alone and self._compiled(x):
                    # Write them in place; a copy would take a fifth longer.
                    self.pool(x, scale, n_jobs, whole[cases[0] : cases[-1] + 1])
                else:
                    whole[cases] = self.pool(x, scale, n_jobs).reshape(-1, width)
            return whole
        xp = compat.array_namespace(series.groups[0][1])
        parts, order = [], []
        for cases, x in self._batches(series, [scale]):
            parts.append(xp.reshape(self.pool(x, scale), (-1, width)))
            order.append(cases)
        found = parts[0] if len(parts) == 1 else xp.concat(parts)
        back = np.argsort(np.concatenate(order))
        return found if alone else xp.take(found, like(back, found), axis=0)

    @with_few_threads()
    def scores(
        self, series: SeriesByLength, head: LinearHead, n_jobs: int | None = None
    ) -> np.ndarray:
        """Return scores (n_cases, n_targets) of a head, without keeping the features."""
        found = np.zeros((len(series), len(head.intercept)))
        for cases, x in self._batches(series, range(len(self.widths))):
            if not self._compiled(x):
                found[cases] = to_host(self.array_scores(x, head))
                continue
            from . import compiled

            part = np.zeros((len(x), found.shape[1]))
            for scale, (mean, W) in enumerate(head.parts()):
                cut, *shared = self._inputs(x, scale)
                rows = np.zeros((-(-W.shape[1] // 4) * 4, len(W)), np.float32)
                rows[: W.shape[1]] = W.T
                _in_threads(compiled.score, n_jobs, cut, [*shared, mean, rows], part)
            found[cases] = part
        return found + head.intercept

    def array_scores(self, x: Array, head: LinearHead) -> Any:
        """Return scores of standardised series by array operations, without intercept."""
        xp = compat.array_namespace(x)
        total: Any = 0.0
        for scale, (mean, W) in enumerate(head.parts()):
            flat = xp.reshape(self.pool(x, scale), (-1, len(mean))) - like(mean, x)
            # In double precision, so that batches change only the last digits.
            wide = like(np.asarray(W, dtype=np.float64), x)
            total = xp.astype(flat, xp.float64) @ wide + total
        return total

    def standardise(self, values: Array) -> Any:
        """Return series (n, n_channels, n_steps) standardised, as float32.

        The result has shape (n, n_steps, n_channels).
        """
        xp = compat.array_namespace(values)
        if self.mean is None or self.deviation is None:
            # Use units of the largest value, so that squares do not overflow.
            largest = xp.max(xp.abs(values), axis=2, keepdims=True)
            values = values / xp.where(largest > 0, largest, xp.ones_like(largest))
            mean = xp.mean(values, axis=2, keepdims=True)
            apart = values - mean
            deviation = xp.sqrt(xp.mean(apart * apart, axis=2, keepdims=True))
            # A series that is constant up to rounding has no shape of its own.
            flat = deviation <= 1e-6
            deviation = xp.where(flat, xp.ones_like(deviation), deviation)
            x = xp.where(flat, xp.zeros_like(apart), apart) / deviation
        else:
            mean = like(self.mean[:, None], values, values.dtype)
            x = (values - mean) / like(self.deviation[:, None], values, values.dtype)
        x = xp.astype(xp.permute_dims(x, (0, 2, 1)), xp.float32)
        missing = xp.isnan(x)
        return xp.where(missing, xp.zeros_like(x), x) if bool(xp.any(missing)) else x

    def pool(
        self, x: Array, scale: int, n_jobs: int | None = None, out: np.ndarray | None = None
    ) -> Any:
        """Return tables (n, N_ROWS, 3 n_readouts) of one reservoir for standardised ``x``.

        The compiled engine writes the tables to ``out`` (n, widths[scale]) if it is given.
        """
        inputs = self._inputs(x, scale)
        if not self._compiled(x):
            return pool(*inputs)
        from . import compiled

        if out is None:
            out = np.empty((x.shape[0], self.widths[scale]), np.float32)
        tables = out.reshape(x.shape[0], N_ROWS, -1)
        _in_threads(compiled.pool, n_jobs, inputs[0], inputs[1:], tables)
        return tables

    def readings(self, x: Array, scale: int) -> Any:
        """Return readouts and differences (n, 3, n_reads, n_readouts) of ``x``."""
        cut, drive, decay, vectors, *_ = self._inputs(x, scale)
        if not self._compiled(x):
            return readings(cut, drive, decay, vectors)
        from . import compiled

        out = np.empty((x.shape[0], N_SIGNALS, cut.shape[1], vectors.shape[1]), np.float32)
        compiled.readings(cut, drive, decay, vectors, out)
        return out

    def _compiled(self, x: Array) -> bool:
        return self.engine == "numba" and isinstance(x, np.ndarray)

    def _batches(
        self, series: SeriesByLength, scales: Iterable[int]
    ) -> Iterator[tuple[np.ndarray, Any]]:
        """Iterate over positions and standardised series, in bounded memory."""
        chosen = [self.bank.scales[scale] for scale in scales]
        for cases, values in series.groups:
            if self._compiled(values):
                size = 4 * N_ROWS * N_SIGNALS * max(one.n_readouts for one in chosen)
                budget = _TABLE_BYTES
            else:
                steps = values.shape[2]
                reads = max(one.n_readouts * -(-steps // one.stride) for one in chosen)
                size = 4 * _TEMPORARIES * N_SIGNALS * reads
                on_host = isinstance(values, np.ndarray)
                on_host = on_host or str(compat.device(values)) == "cpu"
                budget = _HOST_BYTES if on_host else _DEVICE_BYTES
            for rows in batches(len(cases), size, budget):
                yield cases[rows], self.standardise(values[rows, ...])

    def _inputs(self, x: Array, scale: int) -> tuple[Any, ...]:
        """Return the arguments of both engines, on the device of ``x``; see `pool`."""
        xp = compat.array_namespace(x)
        stride = self.bank.scales[scale].stride
        _, n_steps, n_channels = x.shape
        lack = -n_steps % stride
        if lack:
            x = xp.concat([xp.zeros_like(x[:, :1, :])] * lack + [x], axis=1)
        n_reads = (n_steps + lack) // stride
        cut = xp.reshape(x, (-1, n_reads, stride * n_channels))
        if isinstance(cut, np.ndarray):
            cut = np.ascontiguousarray(cut)
        # There are no thresholds yet while `fit_map` draws them from readings.
        own = *self._constants[scale], *self.thresholds[scale : scale + 1]
        constants = (like(one, x) for one in own)
        return cut, *constants, tuple(n_reads * q // 4 for q in range(5))

    @cached_property
    def _constants(self) -> list[list[np.ndarray]]:
        """``drive``, ``decay`` and ``readouts`` of each reservoir in single precision."""
        made = []
        for one in self.bank.scales:
            factor: Any = np.exp(one.rates * one.stride)
            decay = np.stack([factor.real, factor.imag])
            parts = one.drive, decay, one.split_readouts
            made.append([np.ascontiguousarray(part, np.float32) for part in parts])
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_constants"}


def _in_threads(
    work: Callable[..., None],
    n_jobs: int | None,
    cut: Array,
    shared: Sequence[object],
    out: np.ndarray,
) -> None:
    """Run ``work(cut, *shared, out)`` for ranges of the series, one per thread."""
    n, threads = cut.shape[0], 1 if n_jobs is None else int(effective_n_jobs(n_jobs))
    if threads == 1 or n < 2 * threads:
        work(cut, *shared, out)
        return
    edges = np.linspace(0, n, threads + 1).astype(int).tolist()
    Parallel(threads, prefer="threads")(
        delayed(work)(cut[a:b], *shared, out[a:b]) for a, b in pairwise(edges)
    )


@with_few_threads()
def fit_map(
    bank: FilterBank,
    series: SeriesByLength,
    rng: np.random.Generator,
    *,
    scaling: str,
    engine: str,
) -> FeatureMap:
    """Return a feature map, with scale and thresholds computed from training series.

    ``rng`` chooses the quantiles, and the values from which thresholds are drawn.
    """
    mean = deviation = None
    if scaling == "set":
        mean, deviation = series.moments()
        deviation = np.where(deviation <= 1e-12 * np.abs(mean), 1.0, deviation)
        deviation[deviation == 0] = 1.0
    made = FeatureMap(bank, [], mean, deviation, engine)
    n_series = min(len(series), _SAMPLED_SERIES)
    drawn = series.order[np.sort(rng.choice(len(series), n_series, replace=False))]
    starts = rng.uniform(size=n_series)[np.argsort(drawn)]
    sample = series.take(np.sort(drawn))
    for scale in range(len(bank.scales)):
        values = _sample(made, sample, scale, starts)
        quantiles = np.sort(rng.uniform(size=(N_THRESHOLDS, values.shape[1])), axis=0)
        made.thresholds.append(_quantiles(values, quantiles).astype(np.float32))
    return made


def _sample(
    made: FeatureMap, sample: SeriesByLength, scale: int, starts: np.ndarray
) -> np.ndarray:
    """Return values of each reading of a reservoir, (n_values, 3 n_readouts).

    The values are evenly spaced in each series, so none is taken twice. A threshold between
    two of them is then not a training value itself, so rounding does not move it across a
    training value.
    """
    wanted = -(-_SAMPLED_VALUES // len(sample))
    found = []
    for cases, values in sample.groups:
        size = 4 * N_SIGNALS * made.bank.scales[scale].n_readouts * values.shape[2]
        for rows in batches(len(cases), size, _HOST_BYTES):
            out = to_host(made.readings(made.standardise(values[rows, ...]), scale))
            n_reads = out.shape[2]
            each = min(wanted, n_reads)
            place = (np.arange(each) + starts[cases[rows], None]) * n_reads / each
            at = np.minimum(place.astype(int), n_reads - 1)
            picked = out[np.arange(len(out))[:, None], :, at]
            found.append(picked.reshape(-1, picked.shape[2] * picked.shape[3]))
    return np.concatenate(found)


def _quantiles(values: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return quantiles q (m, n) of each column of values (k, n), interpolated linearly."""
    ordered = np.sort(values, axis=0)
    place = q * (len(ordered) - 1)
    below = place.astype(int)
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.minimum(below + 1, len(ordered) - 1), axis=0)
    return low + (place - below) * (high - low)


# The array engine runs on a GPU, or if numba is not installed. `compiled` gives the same
# numbers up to rounding.


def readings(X: Array, drive: Array, decay: Array, readouts: Array) -> Any:
    """Return readouts and their differences (n_cases, 3, n_reads, n_readouts).

    X (n_cases, n_reads, stride · n_channels) holds series of one length, cut into readings.
    ``drive`` and ``readouts`` are `drive` and `split_readouts` of `ScaleReservoir`.
    ``decay`` (2, n_oscillators) holds the real and imaginary parts of exp(λ·stride).
    """
    xp = compat.array_namespace(X)
    J = decay.shape[1]
    Y = X @ drive
    re, im = Y[..., :J], Y[..., J:]
    a, b = decay[0, :], decay[1, :]
    # After m rounds, each state holds the last 2^m readings.
    step = 1
    while step < Y.shape[1]:
        old_re, old_im = re[:, :-step, :], im[:, :-step, :]
        re = xp.concat([re[:, :step, :], re[:, step:, :] + old_re * a - old_im * b], axis=1)
        im = xp.concat([im[:, :step, :], im[:, step:, :] + old_re * b + old_im * a], axis=1)
        a, b = a * a - b * b, 2 * a * b
        step *= 2
    out = [re @ readouts[:J, :] + im @ readouts[J:, :]]
    for _ in range(2):
        last = out[-1]
        out.append(xp.concat([last[:, :1, :], last[:, 1:, :] - last[:, :-1, :]], axis=1))
    return xp.stack(out, axis=1)


def pool(
    X: Array,
    drive: Array,
    decay: Array,
    readouts: Array,
    thresholds: Array,
    ends: tuple[int, ...],
) -> Any:
    """Return pooled features (n_cases, N_ROWS, 3 n_readouts) of one reservoir.

    ``thresholds`` are (3, 3 n_readouts). ``ends`` holds the start of each quarter of the
    time, and the end of the last quarter.
    """
    xp = compat.array_namespace(X)
    Z = readings(X, drive, decay, readouts)
    K, D = Z.shape[2:]
    now = xp.arange(K, dtype=Z.dtype, device=compat.device(Z))
    # One product with these rows gives the sums over each quarter and the mean position.
    quarter = [xp.astype((now >= ends[q]) & (now < ends[q + 1]), Z.dtype) for q in range(4)]
    basis = xp.stack([*quarter, now + 0.5])
    counts, level, position, stretch, stretches = [], [], [], [], []
    for t in range(N_THRESHOLDS):
        own = xp.reshape(thresholds[t, :], (3, 1, D))
        weight = xp.astype(own < Z, Z.dtype)
        sums = basis @ weight
        count = sums[:, :, :4, :]
        total = xp.sum(count, axis=2)
        over = 1 / xp.maximum(total, xp.ones_like(total))
        mean = xp.sum(weight * Z, axis=2) * over
        counts.append(count)
        level.append(xp.where(total > 0, mean, own[:, 0, :]))
        mean = sums[:, :, 4, :] * over / K
        position.append(xp.where(total > 0, mean, xp.full_like(mean, 0.5)))
        stretch.append(_longest(weight, now, xp) / K)
        # A stretch begins at each step above the threshold that does not follow another.
        number = total - xp.sum(weight[:, :, 1:, :] * weight[:, :, :-1, :], axis=2)
        mean = total / xp.maximum(number, xp.ones_like(number))
        stretches.append(xp.sqrt(mean / K))
    lengths = [max(ends[q + 1] - ends[q], 1) for q in range(4)]
    rows = [
        *(xp.sum(c, axis=2) / K for c in counts),
        *(
            xp.sum(c[:, :, h : h + 2, :], axis=2) / max(ends[h + 2] - ends[h], 1)
            for h in (0, 2)
            for c in counts
        ),
        *(c[:, :, q, :] / lengths[q] for q in range(4) for c in counts),
        *level,
        *position,
        *stretch,
        *stretches,
        xp.max(Z, axis=2),
        xp.min(Z, axis=2),
        xp.sqrt(xp.sum(Z * Z, axis=2) / K),
        *_compete(Z, xp),
    ]
    return xp.reshape(xp.stack(rows, axis=1), (-1, len(rows), 3 * D))


def _longest(above: Array, now: Array, xp: ModuleType) -> Any:
    """Return the length of the longest stretch of ones along axis 2."""
    end = (now + 1)[:, None]
    # The last step that was not above: a running maximum.
    last = end - end * above
    if compat.is_torch_namespace(xp):
        return xp.max(end - xp.cummax(last, 2).values, axis=2)
    step = 1
    while step < last.shape[2]:
        moved = xp.maximum(last[:, :, step:, :], last[:, :, :-step, :])
        last = xp.concat([last[:, :, :step, :], moved], axis=2)
        step *= 2
    return xp.max(end - last, axis=2)


def _compete(Z: Array, xp: ModuleType) -> list[Any]:
    """Return √ of mean |z| where a readout is the largest, or smallest, of its group."""
    K, D = Z.shape[2:]
    size = xp.abs(Z)
    found = []
    for better in (xp.maximum, xp.minimum):
        best, width = Z, D
        while width > D // GROUP:
            width //= 2
            best = better(best[..., :width], best[..., width:])
        members = xp.concat([best] * GROUP, axis=3)
        wins = xp.astype(members == Z, Z.dtype)
        found.append(xp.sqrt(xp.sum(wins * size, axis=2) / K))
    return found
