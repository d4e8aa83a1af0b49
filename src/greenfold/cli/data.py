"""`greenfold data`: which data sets there are, where, and how to get more."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .options import DataDir, Debug, Json

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, find and fetch data sets.",
    epilog="Example: [bold]greenfold data list[/bold]",
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name in the UCR or UEA archive, such as ECG5000.",
        autocompletion=options.complete_dataset,
    ),
]
#: Every command takes a seed, so that scripts need not know which ones use it.
Unused = Annotated[int, typer.Option("--seed", hidden=True)]


@app.command("list", epilog="Example: [bold]greenfold data list --json[/bold]")
def list_(
    data_dir: DataDir = None, seed: Unused = 0, json: Json = False, debug: Debug = False
) -> None:
    """List the data sets on this machine."""
    del debug, seed
    from ..datasets.archive import list_datasets
    from .inputs import SYNTHETIC

    found = list_datasets(data_dir)
    if json:
        options.print_json(
            {
                "datasets": [{"name": n, "path": p} for n, p in found.items()],
                "built_in": [SYNTHETIC],
            }
        )
        return
    lines = {name: str(path) for name, path in found.items()}
    lines[SYNTHETIC] = "built in, synthetic"
    width = max(map(len, lines))
    for name, path in lines.items():
        print(f"{name:<{width}}  {path}")


@app.command("path", epilog="Example: [bold]greenfold data path ECG5000[/bold]")
def path(
    name: Name,
    data_dir: DataDir = None,
    seed: Unused = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the folder of a data set on this machine."""
    del debug, seed
    from ..datasets.archive import dataset_path

    found = dataset_path(name, data_dir)
    if json:
        options.print_json({"name": name, "path": found})
    else:
        print(found)


@app.command("fetch", epilog="Example: [bold]greenfold data fetch ECG5000[/bold]")
def fetch(
    name: Name,
    data_dir: DataDir = None,
    seed: Unused = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Download a data set from the public archive into the cache."""
    del debug, seed
    from ..datasets.archive import download_dataset

    found = download_dataset(name, data_dir=data_dir)
    if json:
        options.print_json({"name": name, "path": found})
    else:
        print(found)
