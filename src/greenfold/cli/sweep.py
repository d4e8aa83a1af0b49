"""`greenfold sweep`: estimators × data sets × resamples, and their comparison."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import DataDir, Debug, Json, complete_dataset

_COMPARE = "Comparison"


def sweep(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="Names of data sets, folders of them, or .txt files with one name a line; "
            "all sets of the data directory by default.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    estimators: Annotated[
        list[str] | None,
        typer.Option(
            "--estimator",
            "-e",
            metavar="NAME",
            help="ReservoirClassifier, PooledReservoirClassifier, MiniROCKET, ROCKET, "
            "QUANT, … any class of aeon.classification, or module:Class. With parameters: "
            "'small=PooledReservoirClassifier(n_readouts=16)'. Give it once for each.",
        ),
    ] = None,
    resamples: Annotated[
        str,
        typer.Option(
            "--resamples",
            "-r",
            metavar="N",
            help="How many resamples, from 0, the provided split; or which, as in 0-4,7.",
        ),
    ] = "1",
    out: Annotated[
        Path,
        typer.Option("--out", help="Folder of results.", rich_help_panel="Output"),
    ] = Path("results"),
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Draw and tabulate the results; without -e those that are there.",
            rich_help_panel=_COMPARE,
        ),
    ] = False,
    comparison: Annotated[
        Path | None,
        typer.Option(
            "--comparison",
            help="Folder for tables and figures; by default 'comparison' in that of the "
            "results.",
            rich_help_panel=_COMPARE,
        ),
    ] = None,
    published: Annotated[
        str,
        typer.Option(
            "--published",
            metavar="NAMES",
            help="Published results to stand beside, or 'none'.",
            rich_help_panel=_COMPARE,
        ),
    ] = "ROCKET,MiniROCKET,MR-Hydra,HC2",
    figures: Annotated[
        str,
        typer.Option(
            "--figures",
            metavar="KIND",
            help="svg, png, pdf or none.",
            rich_help_panel=_COMPARE,
        ),
    ] = "svg",
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Processes; all cores by default, one with a GPU.",
            rich_help_panel=options.WHERE,
        ),
    ] = None,
    dask: options.Dask = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="Where greenfold's own estimators run: cpu, cuda or cuda:1, … (PyTorch).",
            rich_help_panel=options.WHERE,
        ),
    ] = "cpu",
    redo: options.Redo = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=2**32 - 1,
            help="Random state of the estimators; by default the number of the resample.",
        ),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run estimators on many data sets; results in tsml-eval's layout.

    Finished results are kept, stale ones redone, and a run that was stopped goes on when
    the same command is given again. Exit code 1 if a job failed; the rest is done.
    """
    del debug
    from ..apps.sweep.plan import parse_resamples

    if figures not in ("svg", "png", "pdf", "none"):
        raise typer.BadParameter(
            f"--figures must be svg, png, pdf or none, not {figures!r}"
        )
    if dask is not None and jobs is not None:
        raise typer.BadParameter("--jobs is for this machine; leave it out with --dask")
    if not estimators and not compare:
        raise typer.BadParameter("name an estimator with -e, or give --compare")
    if not estimators and data:
        raise typer.BadParameter("DATA is for a sweep; name an estimator with -e")
    try:
        numbers = parse_resamples(resamples)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    record: dict[str, Any] = {}
    failed = False
    if estimators:
        where = {"data_dir": data_dir, "n_jobs": jobs, "dask": dask, "device": device}
        summary = _sweep(estimators, data or [], numbers, out, redo, seed, where)
        failed = bool(summary.failures)
        record = {"out": str(out), **asdict(summary)}
        if not json:
            tell(summary, out)
    if compare:
        labels = (
            [] if published == "none" else [one.strip() for one in published.split(",")]
        )
        folder = out / "comparison" if comparison is None else comparison
        made = _compare(out, folder, labels, figures, data_dir, quiet=json)
        record["comparison"] = made
    if json:
        options.print_json(record)
    raise typer.Exit(int(failed))


def _sweep(
    names: list[str],
    data: list[str],
    numbers: Any,
    out: Path,
    redo: bool,
    seed: Any,
    where: Any,
) -> Any:
    from ..apps.runner import Summary
    from ..apps.sweep.plan import sweep as run

    summary = Summary()
    try:
        run(names, data, numbers, out, redo=redo, seed=seed, summary=summary, **where)
    except KeyboardInterrupt:
        done = summary.found + summary.made
        if summary.total:
            print(
                f"greenfold: {done} of {summary.total} results are written; the same "
                "command goes on from there.",
                file=sys.stderr,
            )
        raise
    return summary


def tell(summary: Any, out: Path) -> None:
    """Say what became of the jobs."""
    redone = f", {summary.redone} of them stale or damaged before" if summary.redone else ""
    print(
        f"{summary.total} results in {out}: {summary.made} made now{redone}, "
        f"{summary.found} found."
    )
    if summary.elsewhere:
        print(f"{summary.elsewhere} are being computed by another run on this folder.")
    if summary.foreign:
        print(
            f"{len(summary.foreign)} files were not written by greenfold and are left "
            f"alone, the first {summary.foreign[0]}."
        )
    for failure in summary.failures[:20]:
        print(f"failed: {failure.path}: {failure.error}")
    if len(summary.failures) > 20:
        print(f"… and {len(summary.failures) - 20} more.")
    if summary.failures:
        print(
            f"{len(summary.failures)} failed; their tracebacks are in {out / 'failures'}."
        )


def _compare(
    out: Path,
    folder: Path,
    published: list[str],
    figures: str,
    data_dir: Path | None,
    quiet: bool,
) -> dict[str, Any]:
    from ..apps.sweep.comparison import compare, write_tables

    made = compare(out, published=published, data_dir=data_dir)
    written = write_tables(made, folder, out)
    if figures != "none":
        from ..apps.sweep.comparison import draw

        written += draw(made, folder, figures)
    if not quiet:
        from .show import sweep_comparison

        sweep_comparison(made)
        print(f"Tables and figures: {folder}")
    return {**made.record(), "files": written}


def register(app: typer.Typer) -> None:
    """Add the command."""
    example = (
        "Example: [bold]greenfold sweep -e PooledReservoirClassifier -e MiniROCKET Coffee "
        "GunPoint --resamples 5 --compare[/bold]"
    )
    app.command(epilog=example)(sweep)
