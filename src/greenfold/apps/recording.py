"""The picture of a recording: response by lag, rest over time, curvature."""

from pathlib import Path

import numpy as np

from ..devices.response import MeasuredResponse
from .style import BOUND, RANDOM, SOLVED, drawing

#: Number of moments of the rest, number of bins and of drawn outputs of the curvature.
_MOMENTS, _BINS, _CURVES = 40, 25, 6


def draw_recording(
    path: str | Path, response: MeasuredResponse, drive: np.ndarray, states: np.ndarray
) -> None:
    """Draw the response by lag, the rest over time and the curvature of the outputs.

    Parameters
    ----------
    path : str or Path
        File to write: .svg, .png or .pdf.
    response : MeasuredResponse
        Fitted to the recording.
    drive, states : ndarray (n_samples, n_inputs), (n_samples, n_outputs)
        The recording.
    """
    size = states.std(0)
    made = _predicted(response.G, drive - drive.mean(0)) / size
    n_lags = response.n_steps
    made, outputs = made[n_lags:], ((states - states.mean(0)) / size)[n_lags:]
    rest = outputs - made
    with drawing({"svg.hashsalt": "greenfold"}):
        from matplotlib.figure import Figure

        figure = Figure((10, 2.9), layout="constrained")
        by_lag, over_time, curved = figure.subplots(1, 3)
        fitted = response.fitted
        n_shown = n_lags if fitted is None else min(n_lags, fitted.n_lags)
        power = np.sqrt((response.G[::-1] ** 2).mean(axis=2))
        by_lag.plot(power, color=SOLVED, alpha=0.35, lw=0.9)
        by_lag.plot(power.mean(1), color=SOLVED, marker="o", ms=3, label="mean")
        by_lag.set(xlabel="lag (steps)", ylabel="response (unit of the outputs)")
        by_lag.set(xlim=(-0.5, n_shown + 0.5))
        by_lag.legend()
        parts = np.array_split(np.arange(len(rest)), _MOMENTS)
        at = [n_lags + one.mean() for one in parts]
        spread = [np.sqrt((rest[one] ** 2).mean()) for one in parts]
        offset = np.array([rest[one].mean(0) for one in parts])
        over_time.plot(at, offset, color=RANDOM, alpha=0.35, lw=0.9)
        over_time.plot(at, spread, color=BOUND, label="size of the rest")
        over_time.plot([], color=RANDOM, label="offset of each output")
        over_time.set(xlabel="sample", ylabel="rest (deviations of the output)")
        over_time.legend()
        most = np.argsort(-(rest**2).mean(0))[:_CURVES]
        for k in most:
            z = made[:, k] / max(float(made[:, k].std()), 1e-300)
            edges = np.quantile(z, np.linspace(0, 1, _BINS + 1))
            bins = np.clip(np.searchsorted(edges, z) - 1, 0, _BINS - 1)
            count = np.maximum(np.bincount(bins, minlength=_BINS), 1)
            middle = np.bincount(bins, z, _BINS) / count
            mean = np.bincount(bins, rest[:, k], _BINS) / count
            curved.plot(middle, mean, color=SOLVED, alpha=0.6, marker=".", lw=0.9)
        curved.axhline(0, color=BOUND, lw=0.9)
        curved.set(xlabel="linear prediction (deviations)", ylabel="mean rest (deviations)")
        figure.savefig(Path(path).expanduser())


def _predicted(G: np.ndarray, drive: np.ndarray) -> np.ndarray:
    """Return the outputs (n_samples, n_outputs) that the response predicts."""
    made = np.zeros((len(drive), G.shape[1]))
    for lag, H in enumerate(G[::-1][: len(drive)]):
        made[lag:] += drive[: len(drive) - lag] @ H.T
    return made
