"""Forecasts of held-out samples, beside simple forecasts of the same samples."""

from __future__ import annotations

import html
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .baselines import DelayRidge, season_length

#: A forecast is valid until its error passes this many deviations of the series.
VALID = 0.4
#: Errors that differ by a smaller share, or are both smaller than this, count as equal.
_EQUAL, _UNSEEN = 0.02, 1e-6
#: Names of the rows of a backtest.
OWN, DRAWN, DELAYS = "forecaster", "drawn weights", "ridge on delays"
LAST, SEASON, MEAN = "last value", "last season", "mean"


def valid_steps(
    predicted: ArrayLike, truth: ArrayLike, spread: ArrayLike = 1.0
) -> np.ndarray:
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


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """Forecasts from several origins in held-out samples, beside simple forecasts.

    Everything was fitted once, to the samples before the first origin. Each forecast then
    sees all samples before its own origin.

    Attributes
    ----------
    origins : ndarray of int (n_origins,)
        Index of the first forecast sample; nothing was fitted to samples from
        ``origins[0]`` on.
    truth : ndarray (n_origins, horizon, n_channels)
    forecasts : dict of ndarray (n_origins, horizon, n_channels)
        By name: "forecaster", "drawn weights" (the same network with random input weights),
        "ridge on delays", "last value", "mean" and, if the series has one, "last season".
        NaN after a divergence.
    spread : ndarray (n_channels,)
        Standard deviation of the training samples, the unit of errors; NaN for a channel
        that does not vary there, which errors and coverage leave out.
    widths : ndarray (horizon, n_channels) or None
        Half width of the forecaster's 90 % band; None if the series is too short for one.
    season : int
        Length of the season, or 1.
    used : dict of str
        What the fits of "forecaster" and "drawn weights" kept: "solved weights", "drawn
        weights", "given weights", or "ridge on delays" without the network.
    index, columns : pandas.Index or None
        Rows and columns of the series, if it came from pandas.
    """

    origins: np.ndarray
    truth: np.ndarray
    forecasts: dict[str, np.ndarray]
    spread: np.ndarray
    widths: np.ndarray | None
    season: int
    used: dict[str, str]
    index: Any = None
    columns: Any = None

    @property
    def horizon(self) -> int:
        """Number of steps of each forecast."""
        return self.truth.shape[1]

    @property
    def errors(self) -> dict[str, np.ndarray]:
        """Errors (n_origins, horizon) by name, in deviations; NaN after a divergence.

        Each is the root mean square over the channels.
        """
        varies = ~np.isnan(self.spread)
        return {
            name: np.sqrt((((made - self.truth) / self.spread)[:, :, varies] ** 2).mean(2))
            for name, made in self.forecasts.items()
        }

    @property
    def totals(self) -> dict[str, np.ndarray]:
        """Root mean squared errors (n_origins,) over all steps; infinite if diverged."""
        found = {k: np.sqrt((one**2).mean(1)) for k, one in self.errors.items()}
        return {k: np.where(np.isnan(one), np.inf, one) for k, one in found.items()}

    @property
    def medians(self) -> dict[str, float]:
        """Median of the `totals` over the origins, by name."""
        return {name: float(np.median(one)) for name, one in self.totals.items()}

    @property
    def valid_steps(self) -> dict[str, np.ndarray]:
        """Steps (n_origins,) before the error first exceeds 0.4 deviations, by name."""
        return {
            name: valid_steps(one.T[:, :, None], 0.0) for name, one in self.errors.items()
        }

    @property
    def coverage(self) -> float | None:
        """Share of the held-out samples inside the forecaster's 90 % band."""
        if self.widths is None:
            return None
        inside = np.abs(self.forecasts[OWN] - self.truth) <= self.widths
        return float(inside[:, :, ~np.isnan(self.spread)].mean())

    @property
    def summary(self) -> str:
        """Sentences that say whose median error is the smallest, and if solving paid."""
        kept = self.used[OWN]
        if DRAWN not in self.used or kept not in (DRAWN, DELAYS):
            return self._compared
        why = "because solved weights were no better on unseen samples"
        return f"{self._compared} It used {kept}, {why}."

    @property
    def _compared(self) -> str:
        own, others = self.medians[OWN], dict(self.medians)
        del others[OWN]
        if self.used.get(DRAWN) == self.used[OWN]:  # the same forecast
            del others[DRAWN]
        name, least = min(others.items(), key=lambda one: one[1])
        other = "drawn weights" if name == DRAWN else f"the {name}"
        other = "ridge on delays" if name == DELAYS else other
        if not np.isfinite(own):
            verb = "have" if name == DRAWN else "has"
            told = f"The forecaster diverges from most origins; {other} {verb} the smallest"
            return f"{told} error, {least:.3g} deviations."
        if own < (1 - _EQUAL) * least and least > _UNSEEN:
            told = (
                f"The forecaster has the smallest error, {own:.3g} deviations; the next is"
            )
            return f"{told} {other} with {least:.3g}."
        if own <= (1 + _EQUAL) * max(least, _UNSEEN):
            told = f"The forecaster is about as good as {other}"
            return f"{told}: errors of {own:.3g} and {least:.3g} deviations."
        verb = "do" if name == DRAWN else "does"
        told = f"{other[0].upper()}{other[1:]} {verb} better here"
        return f"{told}: {least:.3g} deviations, against {own:.3g} of the forecaster."

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the printed table."""
        steps = sorted({1, (self.horizon + 1) // 2, self.horizon})
        header = ["forecast", *(f"step {one}" for one in steps), "all steps", "worst"]
        valid, rows = self.valid_steps, []
        for name, error in self.errors.items():
            at = np.sqrt((error[:, np.array(steps) - 1] ** 2).mean(0))
            total = self.totals[name]
            shown = [*at, np.median(total), total.max()]
            cells = ["diverges" if not np.isfinite(one) else f"{one:.3g}" for one in shown]
            label = f"{name} ({self.season} steps)" if name == SEASON else name
            kept = self.used.get(name, name)
            label = label if kept == name else f"{name}: {kept}"
            rows.append([label, *cells, f"{valid[name].mean():.3g}"])
        return [*header, "valid steps"], rows

    def __str__(self) -> str:
        header, rows = self.rows()
        cells = [header, *rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
        lines = [
            "  ".join(
                one.rjust(width) if i else one.ljust(width)
                for i, (one, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, "", *self.notes()])

    __repr__ = __str__

    def notes(self) -> list[str]:
        """Return the sentences below the printed table."""
        n, first = len(self.origins), int(self.origins[0])
        told = [
            self.summary,
            f"Errors: root mean squares in deviations (standard deviations of the first "
            f"{first} samples, to which all were fitted), of {n} "
            f"forecast{'s' * (n != 1)} of {self.horizon} step{'s' * (self.horizon != 1)}.",
            "All steps: median over the forecasts; worst: the largest; valid steps: until "
            f"an error of {VALID:g}.",
        ]
        if DELAYS in self.used.values():
            told.append(
                f'"{OWN}: {DELAYS}": the fit kept no network, but a regression on the last '
                f'inputs, chosen by closed loops; "{DELAYS}" by errors of one step.'
            )
        if self.coverage is not None:
            told.append(
                f"The 90 % band contains {100 * self.coverage:.0f} % of these samples."
            )
        return told

    def _repr_html_(self) -> str:
        header, rows = self.rows()
        head = "".join(f"<th>{html.escape(one)}</th>" for one in header)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(one)}</td>' for one in row)}</tr>"
            for row in rows
        )
        notes = "".join(f"<p>{html.escape(one)}</p>" for one in self.notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def to_frame(self) -> Any:
        """Return truth and forecasts as a DataFrame of pandas, one row per origin and step.

        The rows are labelled by the first sample of the forecast and by the sample itself,
        and the columns by the name of the forecast and the channel.
        """
        pandas = import_module("pandas")
        n_origins, horizon, n_channels = self.truth.shape
        at = (self.origins[:, None] + np.arange(horizon)).ravel()
        starts = np.repeat(self.origins, horizon)
        if self.index is not None:
            at, starts = self.index[at], self.index[starts]
        rows = pandas.MultiIndex.from_arrays([starts, at], names=["origin", "sample"])
        channels = range(n_channels) if self.columns is None else self.columns
        blocks = {"truth": self.truth, **self.forecasts}
        columns = pandas.MultiIndex.from_product([blocks, channels])
        values = [one.reshape(n_origins * horizon, -1) for one in blocks.values()]
        return pandas.DataFrame(np.hstack(values), rows, columns)

    def record(self) -> dict[str, Any]:
        """Return the results for JSON; errors after a divergence are NaN."""
        return {
            "origins": self.origins,
            "horizon": self.horizon,
            "errors": self.errors,
            "median_errors": self.medians,
            "valid_steps": self.valid_steps,
            "coverage": self.coverage,
            "summary": self.summary,
        }


def simple_forecasts(
    series: np.ndarray, origins: np.ndarray, horizon: int
) -> tuple[dict[str, np.ndarray], int]:
    """Return simple forecasts by name, and the season; fitted before the first origin."""
    train = series[: origins[0]]
    ridge, season = DelayRidge.fit(train), season_length(train)
    made = {DELAYS: np.array([ridge.forecast(horizon, series[:at]) for at in origins])}
    made[LAST] = np.repeat(series[origins - 1][:, None], horizon, axis=1)
    made[MEAN] = np.tile(train.mean(0), (len(origins), horizon, 1))
    if season > 1:
        made[SEASON] = series[origins[:, None] - season + np.arange(horizon) % season]
    return made, season
