"""`greenfold demo`: random against solved on built-in data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import Debug, Json, Seed


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
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show random against solved projections on synthetic heartbeats.

    Takes half a minute, needs no data, and writes a report page.
    """
    del debug
    from ..apps import demo as built_in

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
    from ..apps import demo as built_in
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: [bold]greenfold demo --report page.html[/bold]")(demo)
