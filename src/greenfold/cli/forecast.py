"""`greenfold forecast`: forecast the continuation of a series."""

from pathlib import Path
from typing import TYPE_CHECKING

from . import options, show
from .options import REPORT, WORDS, Answer, arg, command, group, opt

if TYPE_CHECKING:
    from ..apps.report.forecast import ForecastStudy
    from ..datasets import SampledSeries

#: Series that need no file.
_BUILT_IN = ("lorenz", "mackey-glass")


@group("Data")
class Columns:
    """How DATA is read.

    columns : Columns to use, or patterns ('x*'); all except the time by default.
    format : Format of DATA, if it has no known suffix: csv, npz or parquet.
    """

    columns: list[str] | None = opt(None, options.MAIN, read=WORDS)
    format: str | None = opt(None, metavar="FORMAT")

    def read(self, data: str) -> "SampledSeries":
        """Return the series in a file, or a built-in series."""
        from ..datasets import SampledSeries, lorenz, mackey_glass, read_sampled

        if data in _BUILT_IN:
            why = f"is for files; {data} is built in"
            options.invocation.refuse(why, "columns", "format")
        if data == "lorenz":
            return SampledSeries(lorenz(3000, rng=0), ("x", "y", "z"), 0.05, 149.95)
        if data == "mackey-glass":
            return SampledSeries(mackey_glass(3000, rng=0)[:, None], ("x",), 1.0, 2999.0)
        return read_sampled(data, columns=self.columns, format=self.format)


@command("greenfold forecast sensor.csv --steps 500 --report page.html")
def forecast(
    data: str = arg(..., "DATA"),
    steps: int = opt(100, options.MAIN, min=1),
    table: Columns = Columns(),
    holdout: float = opt(0.2, "Data", min=0.01, max=0.9),
    neurons: int = opt(100, options.MAIN, "-n", min=1, sets="n_neurons"),
    search: int = opt(0, options.MAIN, min=0),
    seed: int = options.seed("Seed for the network and the random input weights."),
    out: Path | None = opt(None, options.MAIN, "-o"),
    model: Path | None = opt(None, options.MAIN, "-m"),
    report: Path | None = REPORT,
) -> Answer:
    """Forecast a series in closed loop, with solved input weights.

    The command first holds out the end of the series and compares forecasts with random and
    with solved input weights on it. Then it fits the network to the whole series and
    forecasts what follows.

    data : A file with one column per channel and one row per sample: .csv, .tsv, .txt, .npz
        or .parquet; a column named time gives the step, and columns with text are left out.
        Or a built-in series: lorenz or mackey-glass.
    steps : Number of steps to forecast.
    holdout : Share of the samples to hold out at the end, for comparing forecasts.
    neurons : Number of neurons.
    search : Number of network settings to try first; 24 is a good choice.
    out : Write the forecast to this CSV file, with a 90 % band in the columns NAME_lower
        and NAME_upper.
    model : Write the fitted forecaster to this file; greenfold.load reads it.
    """
    options.check_targets(out=out, model=model, report=report)
    from ..apps.report.forecast import study_forecast, write_forecast_page

    read = table.read(data)
    with options.progress(3.0 + (report is not None)) as step:
        study = study_forecast(
            data if data in _BUILT_IN else Path(data).name,
            read,
            steps,
            holdout,
            step,
            n_neurons=neurons,
            search=search,
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
        n_left = len(read.values) - study.n_train
        valid, errors = study.mean_valid_times(), study.mean_errors()
        rows = [(kind, f"{valid[kind]:.4g}", f"{errors[kind]:.3g}") for kind in valid]
        show.table(
            ["input weights", f"valid for ({study.unit})", "error of one step"],
            rows,
            title=f"Forecasts of {study.name}: {study.final.driven_.n_neurons} neurons, "
            f"{len(study.valid['solved'])} starts in the last {n_left} samples",
            bold=[1],
            notes=[
                "A forecast is valid until its error exceeds 0.4 standard deviations, and "
                f"is at most {study.horizon} steps long. Errors are in standard deviations."
            ],
        )
        for index, row in enumerate(study.ahead[:3].round(6), start=1):
            pairs = zip(read.names, row, strict=True)
            print(f"step {index}: {', '.join(f'{name} {one:g}' for name, one in pairs)}")
        if written:
            show.facts(written)

    return Answer(study.record() | written, say)


def _write(path: Path, study: "ForecastStudy") -> None:
    """Write the forecast with its band as CSV."""
    from .._base.files import write_csv

    data = study.data
    bounds = [f"{name}_{side}" for side in ("lower", "upper") for name in data.names]
    rows: list[list[object]] = [["step" if data.dt is None else "time"]]
    rows[0] += [*data.names, *bounds]
    for n, parts in enumerate(zip(study.ahead, *study.band, strict=True), start=1):
        rows.append([data.end + study.time(n), *(value for one in parts for value in one)])
    write_csv(path.expanduser(), rows)
