"""`greenfold predict`: the class of each series."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from . import options
from .options import Data, DataDir, Debug, Json, Seed, Trim


class Part(StrEnum):
    """Parts of a data set."""

    train = "train"
    test = "test"
    all = "all"


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that fit wrote.")],
    data: Data,
    part: Annotated[
        Part,
        typer.Option("--part", help="Part of a data set.", rich_help_panel="Data"),
    ] = Part.test,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba", help="Add the probability of each class.", rich_help_panel="Output"
        ),
    ] = False,
    data_dir: DataDir = None,
    trim: Trim = False,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the class of each series, one a line.

    With --proba the probabilities of the classes follow, separated by tabs.
    """
    del debug, seed
    from ..classifier.model_file import load
    from .inputs import load_series

    classifier = load(model)
    X, y = load_series(data, part=part.value, data_dir=data_dir, trim=trim)
    found = classifier.predict(X)
    chances = classifier.predict_proba(X) if proba else None
    known = bool(np.isin(y, classifier.classes_).any())
    accuracy = float(np.mean(found == y)) if known else None
    if json:
        options.print_json(
            {
                "model": model,
                "data": data,
                "classes": classifier.classes_,
                "predictions": found,
                "probabilities": chances,
                "accuracy": accuracy,
            }
        )
        return
    for i, label in enumerate(found.tolist()):
        numbers = [] if chances is None else [f"{p:.6g}" for p in chances[i]]
        print("\t".join([str(label), *numbers]))
    if accuracy is not None and sys.stderr.isatty():
        print(f"accuracy {accuracy:.2%} by the labels in the data", file=sys.stderr)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: [bold]greenfold predict ecg.gfm ECG5000[/bold]")(predict)
