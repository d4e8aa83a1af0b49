"""`greenfold forecast`: forecast the continuation of a series."""

from pathlib import Path
from typing import TYPE_CHECKING

from . import options, show
from .options import REPORT, WORDS, Answer, arg, command, group, opt

if TYPE_CHECKING:
    import numpy as np

    from ..apps.report.forecast import ForecastStudy
    from ..datasets import SampledSeries

#: Series that need no file.
_BUILT_IN = ("lorenz", "mackey-glass")
#: Largest default number of steps, and numbers of steps and of channels to print.
_MOST_STEPS, _PRINTED, _SHOWN = 100, 5, 4


@group("Data")
class Columns:
    """How DATA is read.

    columns : Columns to use, or patterns ('x*'); all except the time by default.
    time : Column with times or dates; dates, and columns like time, year or index, are
        found.
    format : Format of DATA, if it has no known suffix: csv, npz or parquet.
    """

    columns: list[str] | None = opt(None, options.MAIN, **WORDS)
    time: str | None = opt(None, metavar="NAME")
    format: str | None = opt(None, metavar="FORMAT")

    def read(self, data: str) -> "SampledSeries":
        """Return the series in a file, or a built-in series."""
        from ..datasets import SampledSeries, lorenz, mackey_glass, read_sampled

        if data in _BUILT_IN:
            why = f"is for files; {data} is built in"
            options.invocation.refuse(why, "columns", "time", "format")
        if data == "lorenz":
            return SampledSeries(lorenz(3000, rng=0), ("x", "y", "z"), 0.05, 149.95)
        if data == "mackey-glass":
            return SampledSeries(mackey_glass(3000, rng=0)[:, None], ("x",), 1.0, 2999.0)
        return read_sampled(data, columns=self.columns, time=self.time, format=self.format)


@command("greenfold forecast sunspots.csv --report page.html --out forecast.csv")
def forecast(
    data: str = arg(..., "DATA"),
    steps: int | None = opt(None, options.MAIN, min=1),
    table: Columns = Columns(),
    origins: int = opt(10, "Data", min=1),
    neurons: int = opt(100, options.MAIN, "-n", min=1, sets="n_neurons"),
    seed: int = options.seed("Seed for the network and the random input weights."),
    out: Path | None = opt(None, options.MAIN, "-o"),
    model: Path | None = opt(None, options.MAIN, "-m"),
    report: Path | None = REPORT,
) -> Answer:
    """Forecast a series in closed loop, with a 90 % band and an honest error.

    The command first holds out the end of the series, at least a quarter, and forecasts it
    from several origins: with solved and with random input weights, by ridge regression on
    delays, by the last value, by the last season and by the mean. It prints the errors and
    says which forecast is best. Then it fits the network to the whole series, says what it
    chose, and forecasts what follows.

    data : A file with one column per channel and one row per sample: .csv, .tsv, .txt, .npz
        or .parquet. Its dates or times are continued; columns with other text are left
        out. Text needs no line with names. Or a built-in series: lorenz or mackey-glass.
    steps : Number of steps to forecast; by default a tenth of the series, at most 100.
    origins : Number of forecasts of held-out samples.
    neurons : Number of neurons.
    out : Write the forecast to this CSV file, with a 90 % band in the columns NAME_lower
        and NAME_upper.
    model : Write the fitted forecaster to this file; greenfold.load reads it.
    """
    options.check_targets(out=out, model=model, report=report)
    from ..apps.report.forecast import study_forecast, write_forecast_page

    read = table.read(data)
    if steps is None:
        steps = max(min(len(read.values) // 10, _MOST_STEPS), 1)
    with options.progress(2.0 + (report is not None)) as step:
        study = study_forecast(
            data if data in _BUILT_IN else Path(data).name,
            read,
            steps,
            origins,
            step,
            n_neurons=neurons,
            random_state=seed,
        )
        if model is not None:
            study.final.save(model)
        if out is not None:
            _write(out, study)
        if report is not None:
            step("writing the page")
            write_forecast_page(report, study, options.invocation.line())
    files = {"out": out, "model": model, "report": report}
    written = {k: str(one.expanduser().absolute()) for k, one in files.items() if one}

    def say() -> None:
        header, rows = study.table.rows()
        show.table(
            header,
            rows,
            title=f"Forecasts of held-out samples of {study.name}: "
            f"{study.final.driven_.n_neurons} neurons",
            bold=[0],
            notes=[*study.table.notes(), *study.notes],
        )
        chosen = study.final.chosen_
        show.text(study.fitted)
        show.text(f"Why: {chosen.comparison}.")
        print(f"What follows the {len(read.values)} samples, with a 90 % band:")
        digits = _digits(study.data.values)
        rows = zip(study.times, study.ahead, *study.band, strict=True)
        for index, (time, row, *ends) in enumerate(rows, start=1):
            cells = zip(study.data.names, row, *ends, strict=True)
            told = [
                f"{name} {one:.{n}g} ({a:.{n}g} to {b:.{n}g})"
                for (name, one, a, b), n in zip(cells, digits, strict=True)
            ]
            if len(told) > _SHOWN:
                told[_SHOWN:] = [f"and {len(told) - _SHOWN} more channels"]
            at = f"{time:.10g}" if isinstance(time, float) else time
            print(f"  {'step ' * (study.axis == 'step')}{at}: {', '.join(told)}")
            if index == _PRINTED and index < len(study.ahead):
                print(f"  … and {len(study.ahead) - index} more steps; --out writes all.")
                break
        if written:
            show.facts(written)

    return Answer(study.record() | written, say)


def _digits(values: "np.ndarray") -> list[int]:
    """Return how many digits of each channel show a thousandth of its deviation."""
    import numpy as np

    peak = np.abs(values).max(0)
    peak[peak == 0] = 1.0
    ratio = np.maximum((values / peak).std(0), 1e-12)  # squares of large values overflow
    return np.maximum(np.ceil(3 - np.log10(ratio)), 4).astype(int).tolist()


def _write(path: Path, study: "ForecastStudy") -> None:
    """Write the forecast with its band as CSV."""
    from .._base.files import write_csv

    data = study.data
    bounds = [f"{name}_{side}" for side in ("lower", "upper") for name in data.names]
    rows: list[list[object]] = [[study.axis, *data.names, *bounds]]
    for time, *parts in zip(study.times, study.ahead, *study.band, strict=True):
        rows.append([time, *(value for one in parts for value in one)])
    write_csv(path.expanduser(), rows)
