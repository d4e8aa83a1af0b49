"""Simple predictions to compare with: the season of a series, and ridge on delays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np

from ...math.ridge import RidgeSums

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


def season_length(series: np.ndarray) -> int:
    """Return the season of a series in samples, or 1 if it has none.

    The season is the lag of the highest peak of the autocorrelation, averaged over the
    channels, at most a third of the series. A straight line is subtracted first. The peak
    must rise above zero, and above the minimum before it, by more than noise would.
    """
    n = len(series)
    if n < 6:
        return 1
    time = np.arange(n) - (n - 1) / 2
    scaled = series / _peak(series)
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
class DelayRidge:
    """Ridge regression from the last ``n_delays`` samples to the next, run in closed loop.

    Channels are centred, and scaled to unit deviation for the penalty. The number of delays
    and the penalty are chosen by the squared error of one step on held-out blocks of the
    series: from 1, 2, 4, …, 32 delays, a season and a season plus one, as far as there are
    at most 300 features and a third as many as samples.

    Attributes
    ----------
    n_delays : int
    penalty : float
        For features of unit variance; n_rows · penalty is the ``alpha`` of scikit-learn's
        `Ridge` on the scaled features.
    mean, deviation : ndarray (n_channels,)
    weights : ndarray (n_delays · n_channels, n_channels)
        From the channels of each delay, the latest last, to the channels of the next.
    intercept : ndarray (n_channels,)
    """

    n_delays: int
    penalty: float
    mean: np.ndarray
    deviation: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray

    @classmethod
    def fit(cls, series: np.ndarray) -> Self:
        """Choose delays and penalty, and fit to a series (n_samples, n_channels)."""
        peak, n_channels = _peak(series), series.shape[1]
        mean, deviation = (series / peak).mean(0) * peak, (series / peak).std(0)
        deviation = np.where(deviation > 1e-12, deviation, 1.0) * peak
        z = (series - mean) / deviation
        most = min(_MOST_FEATURES, len(z) // 3) // n_channels
        season = season_length(series)
        tried = sorted({p for p in (*DELAYS, season, season + 1) if p <= most} | {1})
        _, p, penalty = min(_judged(z, one, tried[-1]) for one in tried)
        sums = RidgeSums.empty(p * n_channels, n_channels).add(*_rows(z, p, p))
        V, intercepts = sums.solve(np.array([penalty]))
        weights = V[0].reshape(p, n_channels, n_channels)[::-1].reshape(-1, n_channels)
        return cls(p, penalty, mean, deviation, weights, intercepts[0])

    def forecast(self, n_steps: int, before: np.ndarray) -> np.ndarray:
        """Return the closed loop: every prediction is a delay of the next.

        ``before`` (n_samples, n_channels) precedes the forecast.
        """
        p = self.n_delays
        z = np.empty((p + n_steps, len(self.mean)))
        z[:p] = (before[-p:] - self.mean) / self.deviation
        with np.errstate(over="ignore", invalid="ignore"):  # an unstable loop may overflow
            for index in range(p, p + n_steps):
                z[index] = z[index - p : index].ravel() @ self.weights + self.intercept
        return z[p:] * self.deviation + self.mean


def _peak(rows: np.ndarray) -> np.ndarray:
    """Return the largest size per channel, or 1 if all values are zero."""
    peak = np.abs(rows).max(0)
    return np.where(peak > 0, peak, 1.0)


def _rows(z: np.ndarray, n_delays: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Return delays, the latest first, (n_rows, n_delays · n_channels), and next samples.

    Rows predict the samples from index ``first`` on.
    """
    delays = [z[first - lag : len(z) - lag] for lag in range(1, n_delays + 1)]
    return np.hstack(delays), z[first:]


def _judged(z: np.ndarray, n_delays: int, first: int) -> tuple[float, int, float]:
    """Return the error of one step on held-out blocks, the delays, and the best penalty."""
    features, targets = _rows(z, n_delays, first)
    sums = RidgeSums.empty(features.shape[1], targets.shape[1]).add(features, targets)
    errors = np.zeros(len(PENALTIES))
    cuts = np.unique(np.linspace(0, len(targets), _N_BLOCKS + 1).astype(int))
    for start, stop in itertools.pairwise(cuts):
        x, y = features[start:stop], targets[start:stop]
        fitted = sums.without(x, y) if len(cuts) > 2 else sums
        V, intercepts = fitted.solve(PENALTIES)
        made = np.einsum("tf,rfm->rtm", x, V) + intercepts[:, None]
        errors += ((made - y) ** 2).sum((1, 2))
    # Among equal errors, take the largest penalty.
    best = len(errors) - 1 - int(np.argmin(errors[::-1]))
    return float(errors[best]), n_delays, float(PENALTIES[best])
