"""Simple forecasts to compare with: last value, last season, mean, ridge on delays.

Each is a small object, made by ``fit(series)`` and asked by ``forecast(n_steps)``. A series
has shape (n_samples, n_channels), or (n_samples,) for one channel; a list of series is
fitted as several, and forecasts follow the last of them. ``context`` holds the samples
before a forecast that begins elsewhere.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..._base import checks as check
from ...math.ridge import RidgeSums
from ...stimuli.sequences import check_sequences

#: Penalties and numbers of delays that `DelayRidge` compares; features have unit variance.
PENALTIES = 10.0 ** np.arange(-10, 2.1, 1.0)
DELAYS = (1, 2, 4, 8, 16, 32)
#: Number of blocks that are held out in turn.
_N_BLOCKS = 4
#: Largest number of features of `DelayRidge`, for the cost of its choice.
_MOST_FEATURES = 300
#: A peak of the autocorrelation below this many standard errors of white noise, or below
#: this value, is no season.
_ERRORS, _LEAST_CORRELATION = 4.0, 0.1

Series: TypeAlias = ArrayLike | list[np.ndarray]


class Baseline(Protocol):
    """A fitted forecaster."""

    def forecast(self, n_steps: int, context: ArrayLike | None = None) -> np.ndarray:
        """Return the next samples (n_steps, n_channels)."""
        ...


def season_length(series: Series) -> int:
    """Return the season of a series in samples, or 1 if it has none.

    The season is the lag of the highest peak of the autocorrelation, averaged over the
    channels, at most a third of the series. A straight line is subtracted first. The peak
    must rise above zero, and above the minimum before it, by more than noise would.
    """
    longest = max(check_sequences(series, "series"), key=len)
    n = len(longest)
    if n < 6:
        return 1
    time = np.arange(n) - (n - 1) / 2
    scaled = longest / _peak(longest)
    rows = scaled - scaled.mean(0)
    rows = rows - np.outer(time, time @ rows / (time @ time))
    power = np.abs(np.fft.rfft(rows, 2 * n, axis=0)) ** 2
    found = np.fft.irfft(power, axis=0)[: n // 3 + 2]
    varies = found[0] > 1e-24 * n
    if not varies.any():
        return 1
    curve = (found[:, varies] / found[0, varies]).mean(1)
    least = max(_ERRORS / np.sqrt(n), _LEAST_CORRELATION)
    inner, lowest = curve[1:-1], np.minimum.accumulate(curve)[1:-1]
    peak = (inner >= curve[:-2]) & (inner > curve[2:]) & (inner > least)
    peak &= inner - lowest > least
    return 1 + int(np.argmax(np.where(peak, inner, -1.0))) if peak.any() else 1


@dataclass(frozen=True, eq=False)
class LastSeason:
    """The last ``season`` samples again and again; a season of 1 keeps the last value."""

    season: int
    tail: np.ndarray

    @classmethod
    def fit(cls, series: Series, season: int | None = None) -> Self:
        """Take the season from the autocorrelation (`season_length`) if it is None."""
        found = check_sequences(series, "series")
        length = season_length(found) if season is None else check.count(season, "season")
        n, wanted = len(found[-1]), f"have at least one season of {length} samples"
        check.must(n >= length, "series", wanted, n)
        return cls(length, found[-1][-length:].copy())

    def forecast(self, n_steps: int, context: ArrayLike | None = None) -> np.ndarray:
        """Return the samples one season, or several seasons, before."""
        n_steps = check.count(n_steps, "n_steps")
        tail = _tail(self.tail, context, self.season)
        return tail[np.arange(n_steps) % self.season]


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean of the series that was fitted."""

    mean: np.ndarray

    @classmethod
    def fit(cls, series: Series) -> Self:
        """Keep the mean of all samples."""
        return cls(np.concatenate(check_sequences(series, "series")).mean(0))

    def forecast(self, n_steps: int, context: ArrayLike | None = None) -> np.ndarray:
        """Return the mean at every step, whatever the context."""
        return np.repeat(self.mean[None], check.count(n_steps, "n_steps"), axis=0)


@dataclass(frozen=True, eq=False)
class DelayRidge:
    """Ridge regression from the last ``n_delays`` samples to the next, run in closed loop.

    Channels are centred, and scaled to unit deviation for the penalty. A number of delays
    and a penalty that are not given are chosen by the squared error of one step on held-out
    blocks of the series.

    Attributes
    ----------
    n_delays : int
    penalty : float
        For features of unit variance; n_rows · penalty is the ``alpha`` of scikit-learn's
        `Ridge` on the scaled features.
    error : float
        Root mean squared error of one step on the held-out blocks, in deviations; NaN if
        nothing was chosen.
    mean, deviation : ndarray (n_channels,)
    weights : ndarray (n_delays, n_channels, n_channels)
        From the channels of each delay, the latest first, to the channels of the next.
    intercept : ndarray (n_channels,)
    tail : ndarray (n_delays, n_channels)
        The last samples.
    """

    n_delays: int
    penalty: float
    error: float
    mean: np.ndarray
    deviation: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    tail: np.ndarray

    @classmethod
    def fit(
        cls, series: Series, n_delays: int | None = None, penalty: float | None = None
    ) -> Self:
        """Choose what is not given, and fit.

        By default, 1, 2, 4, …, 32 delays, a season and a season plus one are compared, as
        far as there are at most 300 features and a third as many as samples.
        """
        found = check_sequences(series, "series")
        every = np.concatenate(found)
        peak = _peak(every)
        mean, deviation = (every / peak).mean(0) * peak, (every / peak).std(0)
        deviation = np.where(deviation > 1e-12, deviation, 1.0) * peak
        z = [(one - mean) / deviation for one in found]
        n_channels, longest = every.shape[1], max(map(len, z))
        if n_delays is None:
            most = min(_MOST_FEATURES, longest // 3) // n_channels
            season = season_length(found)
            tried = sorted({p for p in (*DELAYS, season, season + 1) if p <= most} | {1})
        else:
            tried = [check.count(n_delays, "n_delays")]
        wanted = f"have at least {tried[-1] + 2} samples for {tried[-1]} delays"
        check.must(longest >= tried[-1] + 2, "series", wanted, longest)
        given = (
            PENALTIES if penalty is None else np.array([check.positive(penalty, "penalty")])
        )
        best = (np.nan, tried[0], float(given[0]))
        if len(tried) * len(given) > 1:
            best = min(_judged(z, p, tried[-1], given) for p in tried)
        error, n_delays, chosen = best
        sums = RidgeSums.empty(n_delays * n_channels, n_channels)
        for one in z:
            sums.add(*_rows(one, n_delays, n_delays))
        V, intercepts = sums.solve(np.array([chosen]))
        weights = V[0].reshape(n_delays, n_channels, n_channels)
        check.must(
            len(z[-1]) >= n_delays, "series", f"end with {n_delays} samples", len(z[-1])
        )
        tail = found[-1][-n_delays:].copy()
        return cls(n_delays, chosen, error, mean, deviation, weights, intercepts[0], tail)

    def forecast(self, n_steps: int, context: ArrayLike | None = None) -> np.ndarray:
        """Return the closed loop: every prediction is a delay of the next."""
        n_steps = check.count(n_steps, "n_steps")
        p, tail = self.n_delays, _tail(self.tail, context, self.n_delays)
        z = np.empty((p + n_steps, len(self.mean)))
        z[:p] = (tail - self.mean) / self.deviation
        weights = self.weights[::-1].reshape(-1, len(self.mean))
        with np.errstate(over="ignore", invalid="ignore"):  # an unstable loop may overflow
            for index in range(p, p + n_steps):
                z[index] = z[index - p : index].ravel() @ weights + self.intercept
        return z[p:] * self.deviation + self.mean


def _peak(rows: np.ndarray) -> np.ndarray:
    """Return the largest size per channel, or 1 if all values are zero."""
    peak = np.abs(rows).max(0)
    return np.where(peak > 0, peak, 1.0)


def _tail(own: np.ndarray, context: ArrayLike | None, n: int) -> np.ndarray:
    """Return the last ``n`` samples before a forecast."""
    if context is None:
        return own
    found = check.host_array(context, "context", ndim=(1, 2))
    found = found.reshape(len(found), -1)
    fits = len(found) >= n and found.shape[1] == own.shape[1]
    wanted = f"have at least {n} samples of {own.shape[1]} channel(s)"
    check.must(fits, "context", wanted, f"shape {found.shape}")
    return found[-n:]


def _rows(z: np.ndarray, n_delays: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Return delays, the latest first, (n_rows, n_delays · n_channels), and next samples.

    Rows predict the samples from index ``first`` on.
    """
    if len(z) <= first:
        return np.empty((0, n_delays * z.shape[1])), np.empty((0, z.shape[1]))
    delays = [z[first - lag : len(z) - lag] for lag in range(1, n_delays + 1)]
    return np.hstack(delays), z[first:]


def _judged(
    z: list[np.ndarray], n_delays: int, first: int, penalties: np.ndarray
) -> tuple[float, int, float]:
    """Return the error of one step on held-out blocks, the delays, and the best penalty."""
    both = [_rows(one, n_delays, first) for one in z]
    features, targets = (np.concatenate(part) for part in zip(*both, strict=True))
    sums = RidgeSums.empty(features.shape[1], targets.shape[1]).add(features, targets)
    errors = np.zeros(len(penalties))
    cuts = np.unique(np.linspace(0, len(targets), _N_BLOCKS + 1).astype(int))
    for start, stop in itertools.pairwise(cuts):
        x, y = features[start:stop], targets[start:stop]
        if len(cuts) > 2:
            V, intercepts = sums.without(x, y).solve(penalties)
        else:
            V, intercepts = sums.solve(penalties)
        made = np.einsum("tf,rfm->rtm", x, V) + intercepts[:, None]
        errors += ((made - y) ** 2).sum((1, 2))
    # Among equal errors, take the largest penalty.
    best = len(errors) - 1 - int(np.argmin(errors[::-1]))
    return float(np.sqrt(errors[best] / targets.size)), n_delays, float(penalties[best])
