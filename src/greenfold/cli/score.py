"""`greenfold score`: how right a saved model is on labelled series."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from . import options, show
from .options import Answer, Labelled, command, opt
from .predict import load_classifier

#: Classes up to which the table of confusions is printed; the JSON always has it.
_MAX_CLASSES = 12


@command("greenfold score beats.gfm test.tsv")
def score(
    model: Path = options.MODEL,
    data: str = options.DATA,
    part: options.Part = options.PART,
    noise: float = opt(
        0.0,
        "Also the accuracy with noise of this standard deviation on every neuron's state "
        "at the readout.",
        min=0,
    ),
    reading: Labelled = Labelled(),
    seed: int = options.DATA_SEED,
) -> Answer:
    """Score a saved model on labelled series.

    Prints the accuracy, how many series of each class were found, and which class they
    were taken for. Series without a label are left out.
    """
    from ..estimators.margin.classifier import ReservoirClassifier
    from ..estimators.margin.noise import noisy_accuracy
    from .inputs import load_series

    classifier, known = load_classifier(model)
    if noise and not isinstance(classifier, ReservoirClassifier):
        raise typer.BadParameter("--noise needs a model with a readout at one time")
    X, y = load_series(data, reading, y=reading.y, part=part, seed=seed, **known)
    X, y = _labelled(data, X, y)
    record = {"model": model, "data": data, **_judge(classifier, X, y)}
    if noise:
        record["readout_noise"] = noise
        record["accuracy_under_noise"] = noisy_accuracy(classifier, X, y, noise, rng=seed)
    return Answer(record, lambda: _show(record))


def _labelled(data: str, X: Any, y: Any) -> tuple[Any, Any]:
    """The series that have a label; it is said how many do not."""
    import numpy as np

    from ..datasets.errors import DataError

    known = np.array([label is not None for label in y.tolist()])
    if not known.any():
        raise DataError(f"`{data}` has no labels to score by: give them with --y.")
    if not known.all():
        print(
            f"greenfold: {int((~known).sum())} series without a label are left out.",
            file=sys.stderr,
        )
        X = [one for one, kept in zip(X, known, strict=True) if kept]
    return X, np.array(y.tolist(), dtype=object)[known]


def _judge(classifier: Any, X: Any, y: Any) -> dict[str, Any]:
    """Accuracy and confusions; a label that the model does not know counts as missed.

    The confusion has true classes along rows (first those of the model, then others in the
    data) and the classes of the model along columns.
    """
    import numpy as np

    classes = classifier.classes_.tolist()
    others = sorted({label for label in y.tolist() if label not in classes}, key=str)
    rows = [*classes, *others]
    confusion = np.zeros((len(rows), len(classes)), dtype=int)
    for label, taken in zip(y.tolist(), classifier.predict(X).tolist(), strict=True):
        confusion[rows.index(label), classes.index(taken)] += 1
    right = [int(n) for n in np.diagonal(confusion)] + [0] * len(others)
    counts, taken_for = confusion.sum(1).tolist(), confusion.sum(0).tolist()
    taken_for += [0] * len(others)
    of_each = [
        {
            "label": label,
            "known": label in classes,
            "n_series": n,
            "recall": hits / n if n else None,
            "precision": hits / taken if taken else None,
        }
        for label, n, hits, taken in zip(rows, counts, right, taken_for, strict=True)
    ]
    recalls = [one["recall"] for one in of_each if one["recall"] is not None]
    return {
        "n_series": len(y),
        "accuracy": sum(right) / len(y),
        "balanced_accuracy": float(np.mean(recalls)),
        "classes": of_each,
        "confusion": confusion,
    }


def _show(record: dict[str, Any]) -> None:
    classes = record["classes"]
    print(f"accuracy {record['accuracy']:.2%} of {record['n_series']} series")
    if len(classes) > 2:
        print(f"mean over the classes {record['balanced_accuracy']:.2%}")
    if "readout_noise" in record:
        under = f"under readout noise {record['readout_noise']:g}"
        print(f"{under}: {record['accuracy_under_noise']:.2%}")
    known = [f"as {one['label']}" for one in classes if one["known"]]
    confused = known if len(known) <= _MAX_CLASSES else []
    rows = []
    for one, line in zip(classes, record["confusion"].tolist(), strict=True):
        shares = [show.number(one[k], ".1%") for k in ("recall", "precision")]
        counts = map(str, line if confused else ())
        rows.append([str(one["label"]), str(one["n_series"]), *shares, *counts])
    strange = [str(one["label"]) for one in classes if not one["known"]]
    show.table(
        ["class", "series", "found", "precision", *confused],
        rows,
        wrap=True,
        notes=[f"The model was not trained on: {', '.join(strange)}."] if strange else (),
    )
