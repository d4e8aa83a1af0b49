"""`greenfold predict`, `score` and `show`: use, score and describe a saved model."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import options, show
from .options import Answer, Labelled, Reading, arg, command, opt

if TYPE_CHECKING:
    import numpy as np

    from ..estimators.margin import ReservoirClassifier
    from ..estimators.pooled.estimators import PooledReservoirClassifier
    from .inputs import Series

    FittedClassifier = ReservoirClassifier | PooledReservoirClassifier

#: Largest number of classes with a printed confusion table; the JSON always has it.
_MAX_CLASSES = 12
#: Fitted attributes that `show` prints if the estimator has them, and their names.
_FITTED = {
    "classes_": "classes",
    "n_features_in_": "steps",
    "n_channels_in_": "channels",
    "reservoir_": "network",
    "eta_": "η",
    "soft_margin_": "soft margin κ",
    "soft_margin_bound_": "upper bound",
    "ridge_": "ridge",
    "penalty_": "penalty",
    "chosen_": "chosen",
}
_PLAIN = (str, int, float, Path)


@command("greenfold predict ecg.gfm ECG5000")
def predict(
    model: Path = options.MODEL,
    data: str = options.DATA,
    part: options.PartName = options.PART,
    proba: bool = opt(False, "Output"),
    labels: bool | None = opt(
        None,
        "Data",
        "--labels/--no-labels",
        show_default=False,
        sets=("labels='required'", "labels='none'"),
    ),
    reading: Reading = Reading(),
    seed: int = options.DATA_SEED,
) -> Answer:
    """Print the class of each series, one per line.

    If the series have labels, they are only used for the accuracy, which is printed on a
    terminal and with --json. With --proba, each line also has the probabilities of the
    classes, separated by tabs.

    proba : Add the probability of each class.
    labels : Whether the series have labels. By default the command infers this from the
        file, or from the length of the model's series.
    """
    from ..datasets import DataError
    from ..datasets.files import TABLES, suffix_of
    from .inputs import is_file

    _refuse_seed(data)
    classifier, load_series = load_classifier(model)
    asked = "optional" if labels is None else "required" if labels else "none"
    X, y = load_series(data, reading, part=part, seed=seed, labels=asked)
    found = classifier.predict(X)
    chances = classifier.predict_proba(X) if proba else None
    accuracy = None if y is None else _accuracy(found, y, classifier.classes_)
    form = reading.format
    is_table = is_file(data, form) and suffix_of(data, form) in TABLES
    assumed = labels is None and reading.label_column is None and is_table
    if assumed and y is not None and accuracy is None and y.tolist() != [None] * len(y):
        strange = f"no label in `{data}` is a class of the model; the first is"
        other = f"{strange} {show.printable(y.tolist()[0])}"
        cure = "name the column of the labels with --label-column, or give --labels"
        raise DataError(f"{other}; {cure} or --no-labels.")

    def tell() -> None:
        if assumed:
            lengths = {one.shape[-1] for one in X}
            longest = f"{'up to ' if len(lengths) > 1 else ''}{max(lengths)}"
            kind, cure = "with", "--label-column or --no-labels"
            if y is None:
                kind, cure = "without", "--labels"
            told = f"read {data} as series {kind} labels, of {longest} steps"
            print(f"greenfold: {told}; if that is wrong, give {cure}.", file=sys.stderr)
        for i, label in enumerate(found.tolist()):
            numbers = [] if chances is None else [f"{p:.6g}" for p in chances[i]]
            print("\t".join([show.printable(label), *numbers]))
        if accuracy is not None and sys.stderr.isatty():
            print(f"accuracy {accuracy:.2%}, from the labels in the data", file=sys.stderr)

    record = {
        "model": model,
        "data": data,
        "classes": classifier.classes_,
        "predictions": found,
        "probabilities": chances,
        "labelled": y is not None,
        "accuracy": accuracy,
    }
    return Answer(record, tell)


def _refuse_seed(data: str) -> None:
    if data != options.SYNTHETIC:
        options.invocation.refuse(
            "is for the built-in series, and for noise with more than two classes; leave "
            "it out",
            "seed",
        )


def load_classifier(
    model: Path,
) -> "tuple[FittedClassifier, Callable[..., tuple[Any, Any]]]":
    """Return the classifier in a file, and `load_series` for its series."""
    from ..datasets.tables import TableHints
    from ..estimators.margin import ReservoirClassifier
    from ..estimators.pooled.estimators import PooledReservoirClassifier
    from ..saving import ModelFileError, load
    from .inputs import load_series

    found = load(model)
    if not isinstance(found, ReservoirClassifier | PooledReservoirClassifier):
        what = f"{model} holds a {type(found).__name__}, not a classifier"
        raise ModelFileError(f"{what}: open it in Python with greenfold.load.")
    n_steps = None if found._any_length else int(found.n_features_in_)
    hints = TableHints(n_steps, found.classes_.tolist())
    keep_missing = isinstance(found, PooledReservoirClassifier)
    return found, partial(load_series, keep_missing=keep_missing, hints=hints)


def _accuracy(found: "np.ndarray", y: "np.ndarray", classes: "np.ndarray") -> float | None:
    """Return the accuracy on labelled series, or None if no label is a known class."""
    pairs = zip(found.tolist(), y.tolist(), strict=True)
    labelled = [(one, label) for one, label in pairs if label is not None]
    known = set(classes.tolist())
    if not any(label in known for _, label in labelled):
        return None
    return sum(one == label for one, label in labelled) / len(labelled)


@command("greenfold score beats.gfm test.tsv")
def score(
    model: Path = options.MODEL,
    data: str = options.DATA,
    part: options.PartName = options.PART,
    noise: float = opt(0.0, min=0, sets="readout_noise"),
    reading: Labelled = Labelled(),
    seed: int = options.DATA_SEED,
) -> Answer:
    """Score a saved model on labelled series.

    The command prints the accuracy, the share of each class that was recognised, and the
    predicted classes. It leaves out series without a label.

    noise : Also print the accuracy with noise of this standard deviation on every neuron's
        state at the readout.
    """
    import numpy as np

    from ..datasets import DataError
    from ..estimators.margin import ReservoirClassifier, noisy_accuracy

    classifier, load_series = load_classifier(model)
    if not isinstance(classifier, ReservoirClassifier):
        options.invocation.refuse("needs a model with a readout at one time", "noise")
    if not noise or len(classifier.classes_) == 2:
        _refuse_seed(data)
    X, y = load_series(data, reading, y=reading.y, part=part, seed=seed)
    known = np.array([label is not None for label in y.tolist()])
    if not known.any():
        raise DataError(f"`{data}` has no labels to score by: give them with --y.")
    if not known.all():
        lost = f"{int((~known).sum())} series without a label are left out."
        print(f"greenfold: {lost}", file=sys.stderr)
        X = [X[i] for i in np.flatnonzero(known)]
    y = np.array(y.tolist(), dtype=object)[known]
    record = {"model": model, "data": data, **_judge(classifier, X, y)}
    of_margin = isinstance(classifier, ReservoirClassifier)
    if of_margin and (n_fitted := classifier._count_fitted(X)):
        record["n_fitted"] = n_fitted
        seen = f"{n_fitted} of these {len(y)} series"
        options.invocation.notes.append(
            f"The model was fitted to {seen}, so expect a lower accuracy on others."
        )
    options.invocation.notes += show.uncertain(y)
    if noise and of_margin:
        record["readout_noise"] = noise
        record["accuracy_under_noise"] = noisy_accuracy(classifier, X, y, noise, rng=seed)
    return Answer(record, lambda: _show(record))


def _judge(classifier: "FittedClassifier", X: "Series", y: "np.ndarray") -> dict[str, Any]:
    """Return accuracy and confusions; a label unknown to the model counts as an error.

    The rows of the confusion matrix are the true classes (first those of the model, then
    others in the data), and its columns are the classes of the model.
    """
    import numpy as np

    classes, truth = classifier.classes_.tolist(), y.tolist()
    rows = [*classes, *sorted(set(truth) - set(classes), key=str)]
    table = np.zeros((len(rows), len(rows)), dtype=int)
    for label, taken in zip(truth, classifier.predict(X).tolist(), strict=True):
        table[rows.index(label), rows.index(taken)] += 1
    hits, n_series, n_taken = np.diagonal(table), table.sum(1), table.sum(0)
    of_each = [
        {
            "label": label,
            "known": label in classes,
            "n_series": int(n_series[i]),
            "recall": hits[i] / n_series[i] if n_series[i] else None,
            "precision": hits[i] / n_taken[i] if n_taken[i] else None,
        }
        for i, label in enumerate(rows)
    ]
    recalls = [one["recall"] for one in of_each if one["recall"] is not None]
    return {
        "n_series": len(y),
        "accuracy": hits.sum() / len(y),
        "balanced_accuracy": float(np.mean(recalls)),
        "classes": of_each,
        "confusion": table[:, : len(classes)],
    }


def _show(record: dict[str, Any]) -> None:
    classes = record["classes"]
    print(f"accuracy {record['accuracy']:.2%} of {record['n_series']} series")
    if len(classes) > 2:
        print(f"mean over the classes {record['balanced_accuracy']:.2%}")
    if "readout_noise" in record:
        under = f"under readout noise {record['readout_noise']:g}"
        print(f"{under}: {record['accuracy_under_noise']:.2%}")
        if record["accuracy_under_noise"] < record["accuracy"] - 0.1:
            print("For a model that tolerates this noise, fit with --noise of that size.")
    known = [f"as {one['label']}" for one in classes if one["known"]]
    confused = known if len(known) <= _MAX_CLASSES else []
    rows = []
    for one, line in zip(classes, record["confusion"].tolist(), strict=True):
        shares = [show.number(one[k], ".1%") for k in ("recall", "precision")]
        counts = map(str, line if confused else ())
        rows.append([str(one["label"]), str(one["n_series"]), *shares, *counts])
    strange = [str(one["label"]) for one in classes if not one["known"]]
    only = ",".join(name[3:] for name in known)
    note = f"The model was not trained on: {', '.join(strange)}; --classes {only} leaves "
    notes = [f"{note}them out."] if strange else []
    columns = ["class", "series", "found", "precision", *confused]
    show.table(columns, rows, wrap=True, notes=notes)


@command("greenfold show beats.gfm")
def show_(model: Path = arg(..., "MODEL")) -> Answer:
    """Show what a saved model is and how it was fitted.

    model : File written by fit, by forecast, or by `save` in Python.
    """
    from .._base.printing import text_of
    from ..saving import load

    found = load(model)
    record: dict[str, Any] = {"model": model, "kind": type(found).__name__}
    if hasattr(found, "get_params"):
        usual = type(found)().get_params(deep=False)
        asked = found.get_params(deep=False).items()
        record |= {k: getattr(found, k, None) for k in _FITTED}
        record |= {k: v for k, v in asked if isinstance(v, _PLAIN) and v != usual[k]}
    else:
        record |= found._facts() if hasattr(found, "_facts") else {"content": repr(found)}
    told = {
        k.rstrip("_"): v if hasattr(v, "tolist") or isinstance(v, _PLAIN) else text_of(v)
        for k, v in record.items()
        if v is not None
    }
    words = {_FITTED.get(f"{k}_", k): text_of(v) for k, v in told.items()}
    return Answer(told, lambda: show.facts({**words, "model": model}))
