"""`greenfold demo` and `greenfold reproduce`."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import DataDir, Debug, Jobs, Json, Seed


def demo(
    report: Annotated[
        Path,
        typer.Option("--report", help="Where the report goes.", rich_help_panel="Output"),
    ] = Path("greenfold-report.html"),
    orders: Annotated[
        bool,
        typer.Option(
            "--orders",
            help="Instead, hold the unfolding against an ODE solver, order by order.",
        ),
    ] = False,
    seed: Seed = 0,
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show random against optimised projections on synthetic heartbeats.

    Takes half a minute, needs no data, and writes a report page.
    """
    del debug, data_dir
    from .. import demo as built_in

    if orders:
        _show_orders(json)
        return
    from .evaluate import compare_and_show

    options.check_target(report, "--report")
    compare_and_show(
        built_in.demo_task(seed),
        order=1,
        noise=built_in.NOISE,
        seed=seed,
        parameters=built_in.PARAMETERS,
        report=report,
        json=json,
    )


def _show_orders(json: bool) -> None:
    from .. import demo as built_in
    from . import show

    with options.progress(1) as bar:
        bar.step("running the ODE solver")
        errors = built_in.order_errors()
    slopes = built_in.order_slopes(errors)
    if json:
        options.print_json(
            {
                "orders": built_in.ORDERS,
                "alphas": built_in.ALPHAS,
                "relative_errors": errors,
                "slopes": slopes,
            }
        )
    else:
        show.orders(errors, slopes)


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Figures and tables; all by default."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", help="Folder for the files.", rich_help_panel="Output"),
    ] = Path("reproduction"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A reduced version, seconds a figure."),
    ] = False,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Reproduce the figures and tables of the paper.

    Their seeds and parameters are fixed, at the top of the files in greenfold/paper.
    """
    del debug, seed
    paper: Any = find_spec("greenfold.paper") and import_module("greenfold.paper")
    if not hasattr(paper, "reproduce"):
        raise ImportError(
            "the reproduction of the paper is not part of this version of greenfold; it "
            "comes with a later one."
        )
    records, skipped = [], False
    for name in names or paper.FIGURES:
        for outcome in paper.reproduce(name, out, quick, data_dir, jobs):
            skipped |= outcome.skipped is not None
            if json:
                records.append(asdict(outcome))
            else:
                print(outcome, flush=True)
    if json:
        options.print_json({"outcomes": records})
    raise typer.Exit(int(skipped))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: [bold]greenfold demo --report page.html[/bold]")(demo)
    app.command(epilog="Example: [bold]greenfold reproduce fig2 --quick[/bold]")(reproduce)
