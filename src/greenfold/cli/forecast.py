"""`greenfold forecast`: predict what follows a series."""

from pathlib import Path
from typing import Any

import typer

from . import options, show
from .options import REPORT, WORDS, Answer, arg, command, opt

#: Series that need no file.
_BUILT_IN = ("lorenz", "mackey-glass")


@command("greenfold forecast sensor.csv --steps 500 --report page.html")
def forecast(
    data: str = arg(..., "DATA"),
    steps: int = opt(100, options.MAIN, min=1),
    columns: Any = opt(None, options.MAIN, read=WORDS),
    holdout: float = opt(0.2, "Data", min=0.01, max=0.9),
    format: str | None = opt(None, "Data", metavar="FORMAT"),
    neurons: int = opt(100, options.MAIN, "-n", min=1),
    search: int = opt(0, options.MAIN, min=0),
    seed: int = options.SEED,
    out: Path | None = opt(None, options.MAIN, "-o"),
    model: Path | None = opt(None, options.MAIN, "-m"),
    report: Path | None = REPORT,
) -> Answer:
    """Forecast a series in closed loop, with solved input weights.

    First the end of the series is held out, and forecasts with random and with solved input
    weights are compared on it. Then the network is fitted to the whole series and forecasts
    what follows.

    data : A file with one column per channel and one row per sample: .csv, .tsv, .txt, .npz
        or .parquet; a column named time gives the step. Or lorenz or mackey-glass, which
        are built in.
    steps : Number of steps to forecast.
    columns : Columns to use, or patterns ('x*'); all except the time by default.
    holdout : Share of the samples, at the end, on which forecasts are compared.
    format : Format of DATA, if its suffix does not tell: csv, npz or parquet.
    neurons : Number of neurons.
    search : Number of network settings to try first; 24 is a good choice.
    out : Write the forecast to this CSV file.
    model : Write the fitted forecaster to this file; greenfold.load reads it.
    """
    options.check_targets(out=out, model=model, report=report)
    _check_apart(DATA=Path(data), out=out, model=model, report=report)
    import numpy as np

    from ..apps.report.forecast import study_forecast, write_forecast_page

    read = _read(data, columns, format)
    with options.progress(3.0 + (report is not None)) as step:
        study = study_forecast(
            read.values,
            steps,
            holdout=holdout,
            name=Path(data).name if data not in _BUILT_IN else data,
            names=read.names,
            dt=read.dt,
            on_part=step,
            n_neurons=neurons,
            search=search,
            random_state=seed,
        )
        if model is not None:
            study.final.save(model)
        if out is not None:
            _write(out, study, read.end)
        if report is not None:
            step("page")
            write_forecast_page(report, study, command=options.invocation.line())
    record = study.record()
    for name, path in (("out", out), ("model", model), ("report", report)):
        if path is not None:
            record[name] = str(path.expanduser().absolute())

    def say() -> None:
        rows = [
            (
                kind,
                f"{study.time(study.valid[kind].mean()):.4g}",
                f"{study.models[kind].residual_.mean():.3g}",
            )
            for kind in ("random", "solved")
        ]
        n_left = len(study.series) - study.n_train
        show.table(
            ["input weights", f"valid for ({study.unit})", "error of one step"],
            rows,
            title=f"Forecasts of {study.name}: {study.final.driven_.n_neurons} neurons, "
            f"{len(study.valid['solved'])} starts in the last {n_left} samples",
            bold=[1],
            notes=[
                "Valid until the error exceeds 0.4 standard deviations; at most "
                f"{study.horizon} steps. Errors are in standard deviations."
            ],
        )
        first = study.ahead[: min(3, steps)]
        for index, row in enumerate(np.round(first, 6), start=1):
            values = ", ".join(
                f"{name} {value:g}" for name, value in zip(study.names, row, strict=True)
            )
            print(f"step {index}: {values}")
        written = {name: record.get(name) for name in ("out", "model", "report")}
        if any(written.values()):
            show.facts(written)

    return Answer(record, say)


def _check_apart(**paths: Path | None) -> None:
    """Raise if two of the files are the same."""
    seen: dict[Path, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        real, option = path.expanduser().resolve(), name if name == "DATA" else f"--{name}"
        if real in seen:
            raise typer.BadParameter(f"{option} and {seen[real]} are the same file")
        seen[real] = option


def _read(data: str, columns: Any, format: str | None) -> Any:
    from ..datasets import SampledSeries, lorenz, mackey_glass, read_sampled

    if data == "lorenz":
        return SampledSeries(lorenz(3000, rng=0), ("x", "y", "z"), 0.05, 149.95)
    if data == "mackey-glass":
        return SampledSeries(mackey_glass(3000, rng=0)[:, None], ("x",), 1.0, 2999.0)
    return read_sampled(data, columns=columns, format=format)


def _write(path: Path, study: Any, end: float) -> None:
    """Write the forecast with its band as CSV."""
    import csv
    import io

    from .._base.files import replacing

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    bounds = [f"{name}_{end}" for end in ("lower", "upper") for name in study.names]
    writer.writerow(["step" if study.dt is None else "time", *study.names, *bounds])
    for index in range(len(study.ahead)):
        row = [*study.ahead[index], *study.band[0][index], *study.band[1][index]]
        writer.writerow([end + study.time(index + 1), *row])
    with replacing(path.expanduser()) as file:
        file.write(stream.getvalue().encode())
