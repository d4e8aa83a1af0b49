"""`greenfold study`: many networks on the same stimuli, a table and figures."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import DataDir, Debug, Json, complete_dataset
from .sweep import tell

_NETWORKS = "Networks"
_JUDGED = "How they are judged"
_OUTPUT = "Output"


def study(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="Names of data sets or their folders; of more than two classes, which "
            "two, as in ECG5000:1,2.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", help="A study with a name: architectures."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="A study in a TOML file, with tables \\[\\[grid]]."),
    ] = None,
    architecture: Annotated[
        list[str] | None,
        typer.Option(
            "--architecture",
            "-a",
            metavar="NAME",
            help="random, sparse, dale, spatial, oscillators, cycle, delay_line, legendre, "
            "or all. Give it once for each.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    neurons: Annotated[
        str | None,
        typer.Option(
            "--neurons",
            "-n",
            metavar="N[,…]",
            help="Sizes; 50 by default.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    g: Annotated[
        str | None,
        typer.Option(
            "--g",
            metavar="G[,…]",
            help="Spectral radii, or a range low..high for --random; 0.9 by default.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    tau: Annotated[
        str | None,
        typer.Option(
            "--tau",
            metavar="TAU[,…]",
            help="Time constants in the unit of the duration, or a range; 0.25 by default.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", min=1, help="Networks of each kind.", rich_help_panel=_NETWORKS
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            "--order",
            metavar="K[,…]",
            help="Orders of the unfolding, or exact.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    gain: Annotated[
        list[str] | None,
        typer.Option(
            "--gain",
            metavar="NAME",
            help="linear, tanh, quadratic:0.05 or biased_tanh:0.5; once for each.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    inside: Annotated[
        str | None,
        typer.Option(
            "--inside",
            metavar="Q[,…]",
            help="Sizes of white noise inside the network (order 0).",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            "--random",
            min=1,
            metavar="N",
            help="Draw so many networks instead of all combinations.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    random_state: Annotated[
        int,
        typer.Option(
            "--random-state", min=0, help="Of --random.", rich_help_panel=_NETWORKS
        ),
    ] = 0,
    eta: Annotated[
        float | None,
        typer.Option("--eta", help="η; 10 by default.", rich_help_panel=_JUDGED),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            help="Time a series takes; 10 by default.",
            rich_help_panel=_JUDGED,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise",
            metavar="S[,…]",
            help="Noise on every state at the readout, for the accuracy; 0,0.1 by default.",
            rich_help_panel=_JUDGED,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option("--draws", min=1, help="Random u drawn.", rich_help_panel=_JUDGED),
    ] = None,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="Memory capacity too.", rich_help_panel=_JUDGED),
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of results.", rich_help_panel=_OUTPUT)
    ] = Path("study"),
    table: Annotated[
        str,
        typer.Option("--table", help="csv or parquet.", rich_help_panel=_OUTPUT),
    ] = "csv",
    figures: Annotated[
        str,
        typer.Option("--figures", help="svg, png, pdf or none.", rich_help_panel=_OUTPUT),
    ] = "svg",
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Processes; all cores by default.",
            rich_help_panel=options.WHERE,
        ),
    ] = None,
    dask: options.Dask = None,
    redo: options.Redo = False,
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Certified margins of many networks, beside random projections.

    Finished results are kept, and a study that was stopped goes on when the same command is
    given again. Exit code 1 if a network failed; the rest is done.
    """
    del debug
    if figures not in ("svg", "png", "pdf", "none"):
        raise typer.BadParameter(
            f"--figures must be svg, png, pdf or none, not {figures!r}"
        )
    if table not in ("csv", "parquet"):
        raise typer.BadParameter(f"--table must be csv or parquet, not {table!r}")
    if dask is not None and jobs is not None:
        raise typer.BadParameter("--jobs is for this machine; leave it out with --dask")
    axes = {
        "architecture": architecture,
        "neurons": _numbers(neurons, "--neurons", int),
        "g": _numbers(g, "--g"),
        "tau": _numbers(tau, "--tau"),
        "seed": None if seeds is None else list(range(seeds)),
        "order": _orders(order),
        "gain": gain,
        "inside": _numbers(inside, "--inside"),
    }
    settings = {
        "eta": eta,
        "duration": duration,
        "noise": _numbers(noise, "--noise"),
        "draws": draws,
        "memory": memory or None,
    }
    planned = _plan(axes, settings, random, random_state, preset, config)
    wanted = data or planned.datasets
    if not wanted:
        raise typer.BadParameter("name a data set, or give --preset or --config")
    where = {"data_dir": data_dir, "n_jobs": jobs, "dask": dask, "redo": redo}
    summary, paths = _run(wanted, planned.grids, out, where)
    made = _show(out, paths, table, figures, quiet=json)
    if json:
        options.print_json({"out": str(out), **asdict(summary), **made})
    else:
        tell(summary, out)
    raise typer.Exit(int(bool(summary.failures)))


def _plan(
    axes: dict[str, Any],
    settings: dict[str, Any],
    random: int | None,
    random_state: int,
    preset: str | None,
    config: Path | None,
) -> Any:
    from ..apps.study.plan import ARCHITECTURES, PRESETS, Grid, Plan, read_config

    given = {k: v for k, v in axes.items() if v is not None}
    judged = {k: v for k, v in settings.items() if v is not None}
    if preset is not None or config is not None:
        if given or judged or random or (preset is not None and config is not None):
            raise typer.BadParameter(
                "--preset and --config say which networks; give one, without other options "
                "of networks"
            )
        if config is not None:
            return read_config(config)
        if preset not in PRESETS:
            raise typer.BadParameter(
                f"--preset must be one of {', '.join(PRESETS)}, not {preset!r}"
            )
        return PRESETS[preset]
    if given.get("architecture") == ["all"]:
        given["architecture"] = list(ARCHITECTURES)
    return Plan([], [Grid(given, random, judged, random_state)])


def _run(data: list[str], grids: Any, out: Path, where: dict[str, Any]) -> Any:
    from ..apps.runner import Summary, run_jobs
    from ..apps.study.plan import plan

    jobs = plan(data, grids, data_dir=where.pop("data_dir"))
    summary = Summary()
    try:
        run_jobs(jobs, out, label="study", summary=summary, **where)
    except KeyboardInterrupt:
        done = summary.found + summary.made
        print(
            f"greenfold: {done} of {summary.total} results are written; the same command "
            "goes on from there.",
            file=sys.stderr,
        )
        raise
    return summary, {job.path for job in jobs}


def _show(
    out: Path, paths: set[str], table: str, figures: str, quiet: bool
) -> dict[str, Any]:
    """Write the table and the figures of this study, and print its best networks."""
    from ..apps.study.table import read_study, write_table

    try:
        rows = read_study(out, paths)
    except FileNotFoundError:  # all have failed
        return {"files": []}
    files = [write_table(rows, out / f"study.{table}")]
    if figures != "none":
        from ..apps.study.table import draw

        files += draw(rows, out, figures)
    if not quiet:
        from .show import study_table

        study_table(rows)
        print(f"Table and figures: {', '.join(str(path) for path in files)}")
    return {"rows": rows, "files": [str(path) for path in files]}


def _numbers(text: str | None, option: str, kind: type = float) -> Any:
    """Numbers from ``1,2`` or a range, logarithmic, from ``1..2``."""
    if text is None:
        return None
    try:
        low, dots, high = text.partition("..")
        if dots:
            return {"low": kind(low), "high": kind(high), "log": True}
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{option} must be like 0.5,0.9 or, with --random, 0.5..0.9, not {text!r}"
        ) from None


def _orders(text: str | None) -> list[Any] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    return [part if part == "exact" else _order(part) for part in parts]


def _order(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(
            f"--order must be like 0,1 or exact, not {text!r}"
        ) from None


def register(app: typer.Typer) -> None:
    """Add the command."""
    example = (
        "Example: [bold]greenfold study ECG5000:1,2 -a random -a cycle -n 50,100 --seeds 5"
        "[/bold]"
    )
    app.command(epilog=example)(study)
