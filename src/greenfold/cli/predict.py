"""`greenfold predict`: the class of each series."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from . import options
from .options import Answer, Reading, command, opt


@command("greenfold predict ecg.gfm ECG5000")
def predict(
    model: Path = options.MODEL,
    data: str = options.DATA,
    part: options.Part = options.PART,
    proba: bool = opt(False, "Add the probability of each class.", "Output"),
    labels: bool | None = opt(
        None,
        "Whether the series have labels. By default the file says so, or the length of the "
        "series that the model knows.",
        "Data",
        "--labels/--no-labels",
        show_default=False,
    ),
    reading: Reading = Reading(),
    seed: int = options.DATA_SEED,
) -> Answer:
    """Print the class of each series, one per line.

    The series may come with labels, which only serve to print the accuracy, or without.
    With --proba the probabilities of the classes follow, separated by tabs.
    """
    from ..datasets.files import TABLES, suffix_of
    from .inputs import is_file, load_series

    classifier, known = load_classifier(model)
    asked: Any = {None: "optional", True: "required", False: "none"}[labels]
    X, y = load_series(data, reading, part=part, seed=seed, labels=asked, **known)
    found = classifier.predict(X)
    chances = classifier.predict_proba(X) if proba else None
    accuracy = None if y is None else _accuracy(found, y, classifier.classes_)
    form = reading.format
    is_table = is_file(data, form) and suffix_of(data, form) in TABLES

    def show() -> None:
        if labels is None and is_table:
            _say_assumption(data, X, y)
        for i, label in enumerate(found.tolist()):
            numbers = [] if chances is None else [f"{p:.6g}" for p in chances[i]]
            print("\t".join([str(label), *numbers]))
        if accuracy is not None and sys.stderr.isatty():
            print(f"accuracy {accuracy:.2%} by the labels in the data", file=sys.stderr)

    record = {
        "model": model,
        "data": data,
        "classes": classifier.classes_,
        "predictions": found,
        "probabilities": chances,
        "labelled": y is not None,
        "accuracy": accuracy,
    }
    return Answer(record, show)


def load_classifier(model: Path) -> tuple[Any, dict[str, Any]]:
    """The classifier of a file, and what it knows about the series it is given."""
    from ..estimators.margin.classifier import ReservoirClassifier
    from ..estimators.pooled.classifier import PooledReservoirClassifier
    from ..saving import ModelFileError, load

    found = load(model)
    if not isinstance(found, ReservoirClassifier | PooledReservoirClassifier):
        raise ModelFileError(f"{model} holds a {type(found).__name__}, not a classifier.")
    return found, {
        "keep": isinstance(found, PooledReservoirClassifier),
        "n_steps": None if found._any_length else int(found.n_features_in_),
        "classes": found.classes_.tolist(),
    }


def _say_assumption(data: str, X: Any, y: Any) -> None:
    """Tell how a table was read that does not say it itself."""
    lengths = {one.shape[-1] for one in X}
    longest = f"{'up to ' if len(lengths) > 1 else ''}{max(lengths)}"
    kind, cure = ("without", "--labels") if y is None else ("with", "--no-labels")
    print(
        f"greenfold: read {data} as series {kind} labels, of {longest} steps; if that is "
        f"wrong, give {cure}.",
        file=sys.stderr,
    )


def _accuracy(found: Any, y: Any, classes: Any) -> float | None:
    """Share of the labelled series that were found; None if the labels are others."""
    pairs = zip(found.tolist(), y.tolist(), strict=True)
    labelled = [(one, label) for one, label in pairs if label is not None]
    known = set(classes.tolist())
    if not any(label in known for _, label in labelled):
        return None
    return sum(one == label for one, label in labelled) / len(labelled)
