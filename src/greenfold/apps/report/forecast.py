"""Compare forecasts with random and solved input weights, and write a page about them."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._base.checks import must, needs
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
    names: tuple[str, ...]
    #: Time between samples; None if unknown.
    dt: float | None
    series: np.ndarray
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
        return "steps" if self.dt is None else "time units"

    def time(self, steps: ArrayLike) -> np.ndarray:
        """Return steps as time, or unchanged if ``dt`` is unknown."""
        return np.asarray(steps) * (1 if self.dt is None else self.dt)

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
            "channels": self.names,
            "samples": len(self.series),
            "train": self.n_train,
            "dt": self.dt,
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
    series: ArrayLike,
    n_steps: int,
    *,
    holdout: float = 0.2,
    name: str = "series",
    names: Sequence[str] | None = None,
    dt: float | None = None,
    on_part: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> ForecastStudy:
    """Compare forecasts of the held-out end of a series, then forecast what follows.

    Parameters
    ----------
    series : array_like (n_samples, n_channels)
    n_steps : int
        Number of steps to forecast.
    holdout : float
        Share of the samples to hold out at the end, for comparing forecasts.
    name, names, dt
        The name of the series, the names of its channels, and the time between samples.
    on_part : callable
        Called with a description before each part.
    **options
        Passed to `ReservoirForecaster`.

    Returns
    -------
    ForecastStudy
    """
    values = np.asarray(series, dtype=np.float64)
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
            found = [
                valid_steps(
                    model.forecast(horizon, context=values[:at]),
                    values[at : at + horizon],
                    spread,
                )
                for at in starts
            ]
            made[kind] = model.forecast(min(n_steps, left))
        models[kind], valid[kind] = model, np.array(found)
    on_part("the forecast")
    weights = models["solved"].input_weights_
    network = models["solved"].driven_.network
    own = {**options, "reservoir": network, "search": 0}
    final = ReservoirForecaster(**own, input_weights=weights).fit(values)
    return ForecastStudy(
        name,
        tuple(names or (f"channel {i}" for i in range(values.shape[1]))),
        dt,
        values,
        n_train,
        models,
        valid,
        horizon,
        made,
        final,
        final.forecast(n_steps),
        final.forecast_band(n_steps),
    )


def _spread(values: np.ndarray) -> np.ndarray:
    found = values.std(0)
    return np.where(found == 0, 1.0, found)


def write_forecast_page(
    path: str | Path, study: ForecastStudy, *, notes: Sequence[str] = (), command: str = ""
) -> Path:
    """Write a page about a forecast and return its absolute path."""
    with needs("A page", "report"):
        text = fill_page(
            "forecast",
            study=study,
            valid=study.mean_valid_times(),
            errors=study.mean_errors(),
            notes=notes,
            pictures=[*_held_out(study), *_ahead(study)],
            command=command,
        )
    return write_page(path, text)


def _held_out(study: ForecastStudy) -> list[Any]:
    """Draw both forecasts of the held-out part and the truth, one picture per channel."""
    from . import figures as look

    truth = study.series[study.n_train :][: len(study.made["solved"])]
    times = study.time(np.arange(1, len(truth) + 1))
    spread = _spread(study.series[: study.n_train])
    found = []
    for channel, name in enumerate(study.names[:_SHOWN]):
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
        found.append(made)
    return found


def _ahead(study: ForecastStudy) -> list[Any]:
    """Draw the end of the series and the forecast of what follows, with its band."""
    from . import figures as look

    n_before = min(len(study.series), len(study.ahead))
    before = study.time(np.arange(-n_before + 1, 1))
    after = study.time(np.arange(1, len(study.ahead) + 1))
    noisy = "90 % of forecasts with noise as large as the one-step error"
    found = []
    for channel, name in enumerate(study.names[:_SHOWN]):
        x = f"{study.unit} after the end of the series"
        with look.drawing(f"ahead{channel}", f"Forecast: {name}", x) as made:
            own = study.series[-n_before:, channel]
            made.line(before, own, look.TEXT, label="series", lw=1.2)
            made.line(after, study.ahead[:, channel], look.SOLVED, label="forecast", lw=1.2)
            low, high = (one[:, channel] for one in study.band)
            made.band(after, low, high, look.SOLVED, noisy)
        found.append(made)
    return found
