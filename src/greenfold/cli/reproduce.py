"""`greenfold reproduce`: the paper's figures and table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import DataDir, Debug, Jobs, Json


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Any of fig1, fig2, fig3, fig4, table1, supplement and beyond (what goes "
            "beyond the paper); all by default.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", help="Folder for the files.", rich_help_panel="Output"),
    ] = Path("reproduction"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A reduced version, seconds a figure."),
    ] = False,
    redraw: Annotated[
        bool,
        typer.Option(
            "--redraw",
            help="Draw again from the JSON files in the folder; compute nothing.",
        ),
    ] = False,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Reproduce the figures and tables of the paper.

    Their seeds and parameters are fixed, at the top of the files in greenfold/paper.
    """
    del debug
    from ..apps import paper

    records, skipped = [], False
    for name in names or paper.FIGURES:
        for outcome in paper.reproduce(name, out, quick, data_dir, jobs, redraw):
            skipped |= outcome.skipped is not None
            if json:
                records.append(asdict(outcome))
            else:
                print(outcome, flush=True)
    if json:
        options.print_json({"outcomes": records})
    raise typer.Exit(int(skipped))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: [bold]greenfold reproduce fig2 --quick[/bold]")(reproduce)
