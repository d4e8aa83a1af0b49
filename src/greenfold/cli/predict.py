"""`greenfold predict`: the class of each series."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from . import options
from .options import Data, DataDir, Debug, Format, Json, Trim


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
    labels: Annotated[
        bool | None,
        typer.Option(
            "--labels/--no-labels",
            help="Whether the series have labels. By default the file says so, or the "
            "length of the series that the model knows.",
            show_default=False,
            rich_help_panel="Data",
        ),
    ] = None,
    format: Format = None,
    data_dir: DataDir = None,
    trim: Trim = False,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            min=0,
            max=2**32 - 1,
            help="Seed of the built-in synthetic series.",
            rich_help_panel="Data",
        ),
    ] = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the class of each series, one a line.

    The series may come with labels, which only serve to print the accuracy, or without.
    With --proba the probabilities of the classes follow, separated by tabs.
    """
    del debug
    from ..estimators.pooled import PooledReservoirClassifier
    from .inputs import is_file, is_table, load_series

    classifier = load_classifier(model)
    pooled = isinstance(classifier, PooledReservoirClassifier)
    X, y = load_series(
        data,
        part=part.value,
        data_dir=data_dir,
        trim=trim,
        seed=seed,
        keep=pooled,
        form=format,
        labels={None: "optional", True: "required", False: "none"}[labels],
        n_steps=None if classifier._any_length else int(classifier.n_features_in_),
        classes=classifier.classes_.tolist(),
    )
    if labels is None and is_file(data, format) and is_table(data, format) and not json:
        _say_assumption(data, X, y)
    found = classifier.predict(X)
    chances = classifier.predict_proba(X) if proba else None
    accuracy = None if y is None else _accuracy(found, y, classifier.classes_)
    if json:
        options.print_json(
            {
                "model": model,
                "data": data,
                "classes": classifier.classes_,
                "predictions": found,
                "probabilities": chances,
                "labelled": y is not None,
                "accuracy": accuracy,
            }
        )
        return
    for i, label in enumerate(found.tolist()):
        numbers = [] if chances is None else [f"{p:.6g}" for p in chances[i]]
        print("\t".join([str(label), *numbers]))
    if accuracy is not None and sys.stderr.isatty():
        print(f"accuracy {accuracy:.2%} by the labels in the data", file=sys.stderr)


def load_classifier(model: Path) -> Any:
    """The classifier of a file; one sentence if it holds something else."""
    from ..estimators.margin.classifier import ReservoirClassifier
    from ..estimators.pooled import PooledReservoirClassifier
    from ..saving import ModelFileError, load

    found = load(model)
    if not isinstance(found, ReservoirClassifier | PooledReservoirClassifier):
        raise ModelFileError(f"{model} holds a {type(found).__name__}, not a classifier.")
    return found


def _say_assumption(data: str, X: Any, y: Any) -> None:
    """Tell how a table was read that does not say it itself."""
    lengths = {np.shape(one)[-1] for one in X}
    longest = f"{'up to ' if len(lengths) > 1 else ''}{max(lengths)}"
    kind, cure = ("without", "--labels") if y is None else ("with", "--no-labels")
    print(
        f"greenfold: read {data} as series {kind} labels, of {longest} steps; if that is "
        f"wrong, give {cure}.",
        file=sys.stderr,
    )


def _accuracy(found: np.ndarray, y: np.ndarray, classes: np.ndarray) -> float | None:
    """Share of the labelled series that were found; None if the labels are others."""
    pairs = [
        (one, label)
        for one, label in zip(found.tolist(), y.tolist(), strict=True)
        if label is not None
    ]
    known = set(classes.tolist())
    if not any(label in known for _, label in pairs):
        return None
    return float(np.mean([one == label for one, label in pairs]))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: [bold]greenfold predict ecg.gfm ECG5000[/bold]")(predict)
