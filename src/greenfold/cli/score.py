"""`greenfold score`: how right a saved model is on labelled series."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from . import options
from .options import Data, DataDir, Debug, Format, Json, LabelFile, Trim
from .predict import Part, load_classifier

#: Classes up to which the table of confusions is printed; the JSON always has it.
_MAX_CLASSES = 12


def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that fit wrote.")],
    data: Data,
    part: Annotated[
        Part,
        typer.Option("--part", help="Part of a data set.", rich_help_panel="Data"),
    ] = Part.test,
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            min=0,
            help="Also the accuracy with noise of this standard deviation on every "
            "neuron's state at the readout.",
        ),
    ] = 0.0,
    format: Format = None,
    y: LabelFile = None,
    data_dir: DataDir = None,
    trim: Trim = False,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            min=0,
            max=2**32 - 1,
            help="Seed of the built-in synthetic series and of the noise.",
            rich_help_panel="Data",
        ),
    ] = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Score a saved model on labelled series.

    Prints the accuracy, how many series of each class were found, and which class they
    were taken for. Series without a label are left out.
    """
    del debug
    score_and_show(
        model,
        data,
        noise=noise,
        json=json,
        labels=y,
        part=part.value,
        data_dir=data_dir,
        trim=trim,
        seed=seed,
        form=format,
    )


def score_and_show(
    model: Path,
    data: str,
    *,
    noise: float = 0.0,
    json: bool = False,
    labels: Path | None = None,
    seed: int = 0,
    **where: Any,
) -> None:
    """Judge the model and print what was found; ``where`` says how DATA is read."""
    from ..estimators.margin.classifier import ReservoirClassifier

    classifier = load_classifier(model)
    if noise and not isinstance(classifier, ReservoirClassifier):
        raise typer.BadParameter("--noise needs a model with a readout at one time")
    X, y = _labelled(classifier, data, labels, seed=seed, **where)
    record = judge(classifier, X, y)
    if noise:
        from ..estimators.margin.noise import noisy_accuracy

        record["readout_noise"] = noise
        record["accuracy_under_noise"] = noisy_accuracy(classifier, X, y, noise, rng=seed)
    if json:
        options.print_json({"model": model, "data": data, **record})
        return
    _show(record)


def _labelled(
    classifier: Any, data: str, labels: Path | None, **where: Any
) -> tuple[Any, np.ndarray]:
    """Series with their labels; those without one are left out, which is said."""
    from ..datasets.errors import DataError
    from ..estimators.pooled import PooledReservoirClassifier
    from .inputs import is_file, load_series, read_labels

    if labels is not None and not is_file(data, where.get("form")):
        raise typer.BadParameter("--y goes with a file; a data set brings its own labels")
    X, y = load_series(
        data,
        keep=isinstance(classifier, PooledReservoirClassifier),
        labels="required" if labels is None else "none",
        n_steps=None if classifier._any_length else int(classifier.n_features_in_),
        classes=classifier.classes_.tolist(),
        **where,
    )
    if labels is not None:
        y = read_labels(labels, len(X))
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


def judge(classifier: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Accuracy and confusions; a label that the model does not know counts as missed.

    Parameters
    ----------
    classifier : fitted classifier
    X : series
    y : ndarray (n_cases,)

    Returns
    -------
    dict
        ``confusion`` has true classes along rows (first those of the model, then others
        in the data) and the classes of the model along columns.
    """
    classes = classifier.classes_.tolist()
    others = sorted({label for label in y.tolist() if label not in classes}, key=str)
    rows = [*classes, *others]
    found = classifier.predict(X).tolist()
    confusion = np.zeros((len(rows), len(classes)), dtype=int)
    for label, taken in zip(y.tolist(), found, strict=True):
        confusion[rows.index(label), classes.index(taken)] += 1
    right = np.zeros(len(rows), dtype=int)
    right[: len(classes)] = np.diagonal(confusion)
    counts, taken_for = confusion.sum(1), confusion.sum(0)
    recall = [int(r) / int(n) if n else None for r, n in zip(right, counts, strict=True)]
    return {
        "n_series": len(y),
        "accuracy": right.sum() / len(y),
        "balanced_accuracy": float(np.mean([one for one in recall if one is not None])),
        "classes": [
            {
                "label": label,
                "known": label in classes,
                "n_series": int(counts[i]),
                "recall": recall[i],
                "precision": int(right[i]) / int(taken_for[i])
                if i < len(classes) and taken_for[i]
                else None,
            }
            for i, label in enumerate(rows)
        ],
        "confusion": confusion,
    }


def _show(record: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    lines = [f"accuracy {record['accuracy']:.2%} of {record['n_series']} series"]
    if len(record["classes"]) > 2:
        lines.append(f"mean over the classes {record['balanced_accuracy']:.2%}")
    if "readout_noise" in record:
        lines.append(
            f"under readout noise {record['readout_noise']:g}: "
            f"{record['accuracy_under_noise']:.2%}"
        )
    print("\n".join(lines))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("class", overflow="fold")
    for name in ("series", "found", "precision"):
        table.add_column(name, justify="right", no_wrap=True)
    known = [one for one in record["classes"] if one["known"]]
    confused = len(known) <= _MAX_CLASSES
    for one in known if confused else ():
        table.add_column(Text(f"as {one['label']}"), justify="right")
    for one, line in zip(record["classes"], record["confusion"].tolist(), strict=True):
        cells = [str(one["label"]), str(one["n_series"])]
        cells += [
            "–" if (v := one[k]) is None else f"{v:.1%}" for k in ("recall", "precision")
        ]
        cells += [str(count) for count in line] if confused else []
        table.add_row(*map(Text, cells))
    options.console().print(table)
    strange = [str(one["label"]) for one in record["classes"] if not one["known"]]
    if strange:
        print(f"The model was not trained on: {', '.join(strange)}.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: [bold]greenfold score beats.gfm test.tsv[/bold]")(score)
