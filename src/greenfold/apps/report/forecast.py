"""Compare forecasts of held-out samples, forecast what follows, and write a page."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.checks import needs
from ...datasets import SampledSeries
from ...estimators.sequences import Backtest, ReservoirForecaster
from ...estimators.sequences.backtest import DELAYS, DRAWN, LAST, MEAN, OWN, SEASON
from .page import fill_page

#: Number of channels to draw, beginning with the first.
_SHOWN = 4
#: Hue of each forecast, and largest error that its figure shows, in deviations.
_HUES = {OWN: "solved", DRAWN: "random", DELAYS: "a", LAST: "b", SEASON: "c", MEAN: "d"}
_MOST, _VALUE = 2.5, "value (unit of the data)"


@dataclass(frozen=True, eq=False)
class ForecastStudy:
    """Forecasts of held-out samples of a series, and of its continuation."""

    name: str
    data: SampledSeries
    #: Forecasts of held-out samples, beside simple ones.
    table: Backtest
    #: Forecaster fitted to the whole series, and its forecast of what follows, with a band.
    final: ReservoirForecaster
    ahead: np.ndarray
    band: tuple[np.ndarray, np.ndarray]
    #: What was left out, and warnings of the last fit and forecast.
    notes: list[str]

    @property
    def axis(self) -> str:
        """What the times of its samples are."""
        if self.data.dates is not None:
            return "date"
        return "step" if self.data.dt is None else "time"

    @property
    def times(self) -> list[Any]:
        """Times of the forecast: dates as text, numbers, or steps."""
        found = self.data.times(np.arange(1, len(self.ahead) + 1))
        return (found.astype(str) if self.axis == "date" else found).tolist()

    @property
    def fitted(self) -> str:
        """What the last fit chose, where that may differ from what the table judges."""
        chosen, judged = self.final.chosen_, self.table.used[OWN]
        told = f"Fitted to the whole series: {chosen.setting}."
        other = f" The forecaster of the table used {judged}, on fewer samples."
        return told + (other if judged != chosen.kept else "")

    def record(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "name": self.name,
            "channels": self.data.names,
            "samples": len(self.data.values),
            "dt": self.data.dt,
            "times": self.times,
            "backtest": self.table.record(),
            "neurons": self.final.driven_.n_neurons,
            "chosen": asdict(self.final.chosen_),
            "washout": self.final.washout_,
            "forecast": self.ahead,
            "lower": self.band[0],
            "upper": self.band[1],
            "notes": self.notes,
        }


def study_forecast(
    name: str,
    data: SampledSeries,
    n_steps: int,
    n_origins: int,
    on_part: Callable[[str, float], None],
    **options: Any,
) -> ForecastStudy:
    """Compare forecasts of held-out samples of a series, then forecast what follows.

    ``on_part`` is called with a description and a weight before each part, and ``options``
    are those of `ReservoirForecaster`.
    """
    varies = np.ptp(data.values, axis=0) > 0
    notes = list(data.notes)
    if varies.any() and not varies.all():
        lost = [name for name, one in zip(data.names, varies, strict=True) if not one]
        notes += [f"Left out column {one!r}, which does not vary." for one in lost]
        kept = tuple(one for one in data.names if one not in lost)
        data = replace(data, values=data.values[:, varies], names=kept)
    values = data.values
    model = ReservoirForecaster(**options)
    on_part("forecasting held-out samples", 1.0)
    with warnings.catch_warnings():  # the table shows what it is worth
        warnings.simplefilter("ignore", UserWarning)
        table = model.backtest(values, max(min(n_steps, len(values) // 2), 1), n_origins)
    on_part("the forecast", 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        final = model.fit(values)
        ahead, band = final.forecast(n_steps), final.forecast_band(n_steps)
    told = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
    notes += [f"{one[0].upper()}{one[1:]}" for one in dict.fromkeys(told)]
    return ForecastStudy(name, data, table, final, ahead, band, notes)


def write_forecast_page(path: str | Path, study: ForecastStudy, command: str) -> Path:
    """Write a page about a forecast and return its absolute path."""
    medians = dict(study.table.medians)
    del medians[OWN]
    with needs("A page", "report"):
        return fill_page(
            path,
            "forecast",
            study=study,
            others=sorted(medians, key=medians.__getitem__)[:2],
            table=study.table,
            rows=study.table.rows(),
            pictures=list(_pictures(study)),
            command=command,
        )


def _pictures(study: ForecastStudy) -> Iterator[Any]:
    """Draw what follows by channel, the errors by step, and a held-out forecast."""
    from . import figures as look

    table, names = study.table, study.data.names[:_SHOWN]
    before = study.data.values[-2 * len(study.ahead) :]
    times = study.data.times(np.arange(1 - len(before), len(study.ahead) + 1))
    past, ahead = np.split(times, [len(before)])
    x = "steps after the end of the series" if study.axis == "step" else study.axis
    for channel, name in enumerate(names):
        with look.drawing(f"ahead{channel}", f"Forecast: {name}", x, _VALUE) as made:
            made.line(past, before[:, channel], look.TEXT, label="series", lw=1.2)
            own = study.ahead[:, channel]
            made.line(ahead, own, look.SOLVED, label="forecast", lw=1.2)
            low, high = (one[:, channel] for one in study.band)
            made.band(ahead, low, high, look.SOLVED, "90 % band")
            shown = np.concatenate([before[:, channel], low, high])
            made.axes.set_ylim(*look.limits(shown[np.isfinite(shown)], 0.1))
        yield made
    steps = np.arange(1, table.horizon + 1)
    with look.drawing("errors", "Error by step", "steps", "error (deviations)") as made:
        for dash, (name, error) in enumerate(table.errors.items()):
            mean = np.sqrt((error**2).mean(0))
            made.line(steps, mean, _HUES[name], dash, name, lw=1.2)
        made.axes.set_ylim(0, None)
        made.axes.set_ylim(0, min(_MOST, made.axes.get_ylim()[1]))
    n = len(table.origins)
    made.caption = f"Root mean square over {n} forecasts of held-out samples."
    yield made
    times = study.data.times(steps + table.origins[0] - len(study.data.values))
    for channel, name in enumerate(names):
        with look.drawing(f"held{channel}", f"Held out: {name}", x, _VALUE) as made:
            own = table.truth[0, :, channel]
            shown = own
            made.line(times, own, look.TEXT, label="truth", lw=2.4, alpha=0.35)
            for dash, kind in enumerate((OWN, DRAWN, DELAYS)):
                if kind in table.forecasts:
                    one = table.forecasts[kind][0, :, channel]
                    made.line(times, one, _HUES[kind], dash, kind, lw=1.2)
            if table.widths is not None:
                middle, half = table.forecasts[OWN][0, :, channel], table.widths[:, channel]
                low, high = middle - half, middle + half
                made.band(times, low, high, look.SOLVED, "90 % band")
                # A band that is far wider would flatten the lines.
                most = np.ptp(own)
                ends = np.clip([low, high], own.min() - most, own.max() + most)
                shown = np.append(own, ends[np.isfinite(ends)])
            made.axes.set_ylim(*look.limits(shown))
        yield made
