"""Compare forecasts with random and solved input weights, and write a page about them."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._base.checks import must, needs
from ...datasets import SampledSeries
from ...estimators.sequences import DivergenceWarning, ReservoirForecaster, valid_steps
from .page import fill_page, write_page

#: Number of starts in the held-out part; valid times are averages over them.
_N_STARTS = 20
#: Number of channels to draw, beginning with the first.
_SHOWN = 4


@dataclass(frozen=True, eq=False)
class ForecastStudy:
    """Forecasts of the held-out end of a series, and of its continuation."""

    name: str
    data: SampledSeries
    #: Number of training samples, before the held-out part.
    n_train: int
    #: Forecasters by the kind of input weights, "random" and "solved".
    models: dict[str, ReservoirForecaster]
    #: Valid steps from each start, at most ``horizon``, by kind.
    valid: dict[str, np.ndarray]
    horizon: int
    #: Forecasts from the start of the held-out part, (horizon, n_channels), by kind.
    made: dict[str, np.ndarray]
    #: Forecaster fitted to the whole series, and its forecast of what follows, with a band.
    final: ReservoirForecaster
    ahead: np.ndarray
    band: tuple[np.ndarray, np.ndarray]

    @property
    def unit(self) -> str:
        """Return the unit of the times."""
        return "steps" if self.data.dt is None else "time units"

    def time(self, steps: ArrayLike) -> np.ndarray:
        """Return steps as time, or unchanged if ``dt`` is unknown."""
        return np.asarray(steps) * (1 if self.data.dt is None else self.data.dt)

    def mean_valid_times(self) -> dict[str, float]:
        """Return the mean valid time by kind."""
        return {kind: float(self.time(one.mean())) for kind, one in self.valid.items()}

    def mean_errors(self) -> dict[str, float]:
        """Return the one-step error by kind, as a mean over the channels."""
        return {kind: float(one.residual_.mean()) for kind, one in self.models.items()}

    def record(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "name": self.name,
            "channels": self.data.names,
            "samples": len(self.data.values),
            "train": self.n_train,
            "dt": self.data.dt,
            "horizon": self.horizon,
            "valid_steps": self.valid,
            "one_step_error": {kind: one.residual_ for kind, one in self.models.items()},
            "neurons": self.final.driven_.n_neurons,
            "ridge": self.final.ridge_,
            "washout": self.final.washout_,
            "forecast": self.ahead,
            "lower": self.band[0],
            "upper": self.band[1],
        }


def study_forecast(
    name: str,
    data: SampledSeries,
    n_steps: int,
    holdout: float,
    on_part: Callable[[str], None],
    **options: Any,
) -> ForecastStudy:
    """Compare forecasts of the held-out end of a series, then forecast what follows.

    ``holdout`` is the share of the samples to hold out. ``on_part`` is called with a
    description before each part, and ``options`` are those of `ReservoirForecaster`.
    """
    values = data.values
    n_train = round((1 - holdout) * len(values))
    left = len(values) - n_train
    wanted = "leave at least 2 samples for the comparison and 10 for training"
    must(left >= 2 and n_train >= 10, "holdout", wanted, f"{left} and {n_train}")
    models, valid, made = {}, {}, {}
    spread = _spread(values[:n_train])
    horizon = max(1, min(n_steps, left // 2))
    starts = np.unique(np.linspace(n_train, len(values) - horizon, _N_STARTS).astype(int))
    for kind in ("random", "solved"):
        on_part(f"{kind} input weights")
        model = ReservoirForecaster(**options, input_weights=kind).fit(values[:n_train])
        with warnings.catch_warnings():  # the valid times show where a loop diverged
            warnings.simplefilter("ignore", DivergenceWarning)
            forecasts = [model.forecast(horizon, context=values[:at]) for at in starts]
            made[kind] = model.forecast(min(n_steps, left))
        truths = [values[at : at + horizon] for at in starts]
        both = zip(forecasts, truths, strict=True)
        valid[kind] = np.array([valid_steps(*pair, spread) for pair in both])
        models[kind] = model
    on_part("the forecast")
    weights = models["solved"].input_weights_
    network = models["solved"].driven_.network
    own = {**options, "reservoir": network, "search": 0}
    final = ReservoirForecaster(**own, input_weights=weights).fit(values)
    ahead, band = final.forecast(n_steps), final.forecast_band(n_steps)
    held_out = (n_train, models, valid, horizon, made)
    return ForecastStudy(name, data, *held_out, final, ahead, band)


def _spread(values: np.ndarray) -> np.ndarray:
    found = values.std(0)
    return np.where(found == 0, 1.0, found)


def write_forecast_page(path: str | Path, study: ForecastStudy, command: str) -> Path:
    """Write a page about a forecast and return its absolute path."""
    with needs("A page", "report"):
        text = fill_page(
            "forecast",
            study=study,
            valid=study.mean_valid_times(),
            errors=study.mean_errors(),
            pictures=list(_pictures(study)),
            command=command,
        )
    return write_page(path, text)


def _pictures(study: ForecastStudy) -> Iterator[Any]:
    """Draw the forecasts of the held-out part, then of what follows, by channel."""
    from . import figures as look

    values, names = study.data.values, study.data.names[:_SHOWN]
    truth = values[study.n_train :][: len(study.made["solved"])]
    times = study.time(np.arange(1, len(truth) + 1))
    spread = _spread(values[: study.n_train])
    for channel, name in enumerate(names):
        x = f"{study.unit} after the start"
        with look.drawing(f"held{channel}", f"Held out: {name}", x) as made:
            own = truth[:, channel]
            made.line(times, own, look.TEXT, label="truth", lw=2.4, alpha=0.35)
            for kind, dash in (("random", look.DASHED), ("solved", 0)):
                label, forecast = f"{kind} input weights", study.made[kind]
                made.line(times, forecast[:, channel], kind, dash, label, lw=1.2)
                left = float(study.time(valid_steps(forecast, truth, spread)))
                made.axes.axvline(left, lw=1, alpha=0.7, **look.line_style(kind, dash))
            made.axes.set_ylim(*look.limits(own, 0.3))
        made.caption = "Vertical lines: the end of each forecast's valid time."
        yield made
    before = values[-len(study.ahead) :]
    times = study.time(np.arange(1 - len(before), len(study.ahead) + 1))
    past, ahead = np.split(times, [len(before)])
    banded = "90 % band, from the errors of held-out forecasts"
    for channel, name in enumerate(names):
        x = f"{study.unit} after the end of the series"
        with look.drawing(f"ahead{channel}", f"Forecast: {name}", x) as made:
            made.line(past, before[:, channel], look.TEXT, label="series", lw=1.2)
            own = study.ahead[:, channel]
            made.line(ahead, own, look.SOLVED, label="forecast", lw=1.2)
            low, high = (one[:, channel] for one in study.band)
            made.band(ahead, low, high, look.SOLVED, banded)
        yield made
