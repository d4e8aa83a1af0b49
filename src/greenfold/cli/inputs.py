"""From what the user names to a task: training series and series to judge by."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer

from ..apps.report.comparison import Split
from ..datasets.archive import load_dataset
from ..datasets.arrays import OpenedSeries
from ..datasets.errors import DataError
from ..datasets.files import FORMATS, OPENED, TABLES, open_series, read_series, suffix_of
from ..datasets.parsing import Labels, canonical_labels, naming, read_bytes, read_lines

#: Built in, no files needed; clearly synthetic.
SYNTHETIC = "synthetic-heartbeats"
_STDIN = "-"
#: Series up to this size, in bytes of float64, are read at once whatever the format.
_IN_MEMORY = 2**28


def is_file(data: str, form: str | None = None) -> bool:
    """Whether DATA means a file rather than the name of a data set."""
    path = Path(data)
    known = suffix_of(path)[1:] in FORMATS or path.suffix.lower() in OPENED
    return bool(data == _STDIN or form or known or path.exists() or len(path.parts) > 1)


def read_file(
    data: str | Path,
    *,
    trim: bool,
    keep: bool = False,
    form: str | None = None,
    labels: Labels = "required",
    n_steps: int | None = None,
    classes: Any = (),
) -> tuple[Any, Any]:
    """Series and labels of a file, or of the standard input.

    Parameters
    ----------
    data : str or Path
        ``-`` for the standard input.
    trim : bool
        Take missing values at the end for padding.
    keep : bool
        Leave other missing values as they are, instead of an error.
    form : str or None
        The format, in place of the suffix.
    labels, n_steps, classes
        See `greenfold.datasets.read_series`.
    """
    if form is not None and form.lower().lstrip(".") not in FORMATS:
        raise typer.BadParameter(
            f"--format must be one of {', '.join(FORMATS)}, not {form!r}"
        )
    source: Any = data
    if str(data) == _STDIN:
        if form is None:
            raise typer.BadParameter(
                "the standard input (-) has no suffix; name its format with --format: "
                f"{', '.join(FORMATS)}"
            )
        source = sys.stdin.buffer
    elif form is None and Path(data).suffix.lower() in OPENED:
        opened = _open(Path(data), labels)
        if opened is not None:
            return opened
    return read_series(
        source,
        missing=_missing(trim, keep),
        labels=labels,
        format=form,
        n_steps=n_steps,
        classes=classes,
    )


def _open(path: Path, labels: Labels) -> tuple[Any, Any] | None:
    """Series that are read slice by slice, at once where there are few of them.

    None for a ``.npy`` file that is read as all other formats are.
    """
    if path.suffix.lower() == ".npy" and (
        labels == "required" or not path.is_file() or path.stat().st_size <= _IN_MEMORY
    ):
        return None
    series, y = open_series(path)
    small = 8 * np.prod(series.shape, dtype=float) <= _IN_MEMORY
    if labels == "required" and y is None:
        raise DataError(
            f"`{path}` holds no labels `y`: give a file of them with --y, or write both "
            "into one file."
        )
    return series[:] if small else series, None if labels == "none" else y


def refuse_opened(X: Any, option: str) -> None:
    """Refuse an option that needs all series in memory."""
    if isinstance(X, OpenedSeries):
        raise typer.BadParameter(
            f"{option} needs the series in memory, and `{X.path}` is read slice by slice, "
            f"because it holds {len(X)} series of {X.shape[-1]} steps; leave it out"
            + (", or give a file with --test" if option == "--holdout" else "")
        )


def _missing(trim: bool, keep: bool) -> Literal["error", "keep", "trim"]:
    """What happens to missing values."""
    return "trim" if trim else "keep" if keep else "error"


def is_table(data: str, form: str | None) -> bool:
    """Whether the format does not say if there are labels."""
    return (f".{form.lower().lstrip('.')}" if form else suffix_of(data)) in TABLES


def read_labels(path: Path, n_cases: int) -> np.ndarray:
    """Labels of their own file, one a series.

    Parameters
    ----------
    path : Path
        ``.npy``, or text with one label a line.
    n_cases : int
    """
    if suffix_of(path) == ".npy":
        name, content = read_bytes(path)
        try:
            found = np.load(io.BytesIO(content), allow_pickle=False)
            written = [str(label) for label in np.asarray(found).ravel().tolist()]
        except Exception as error:  # damaged bytes surface as almost anything
            reason = " ".join(str(error).split())[:120] or type(error).__name__
            raise DataError(
                f"`{name}` cannot be read as labels ({reason}): write it again with "
                "numpy.save."
            ) from error
    else:
        name, lines = read_lines(path)
        written = [line for line in lines if line.strip()]
        if len(written) == n_cases + 1:  # the name of the column
            written = written[1:]
    if len(written) != n_cases:
        raise DataError(
            f"`{name}` holds {len(written)} labels for {n_cases} series: give one a series."
        )
    with naming(name):
        labels = canonical_labels(written)
    assert labels is not None  # required by default
    return labels


def load_task(
    data: str,
    *,
    test: Path | None,
    holdout: float,
    data_dir: Path | None,
    trim: bool,
    seed: int,
    keep: bool = False,
    form: str | None = None,
    labels: Path | None = None,
) -> Split:
    """Training and test series.

    Parameters
    ----------
    data : str
        Name of a data set, which has both, or path of a file.
    test : Path or None
        File with the test series.
    holdout : float
        Share of a file's series to hold out where there is no test file; 0 for none.
    data_dir : Path or None
    trim : bool
        Take missing values at the end for padding.
    seed : int
        Of the held-out split.
    keep : bool
        Leave missing values as they are, instead of an error.
    form : str or None
        Format of a file, in place of its suffix.
    labels : Path or None
        File with the labels of the training series.
    """
    if labels is not None and not is_file(data, form):
        raise typer.BadParameter("--y goes with a file; a data set brings its own labels")
    missing = _missing(trim, keep)
    if data == SYNTHETIC:
        from ..apps.demo import demo_task

        return demo_task(seed)
    if not is_file(data, form):
        if test is not None:
            raise typer.BadParameter(
                "--test goes with a file; a data set brings its own test series"
            )
        X, y = load_dataset(data, "train", data_dir=data_dir, missing=missing)
        X_test, y_test = load_dataset(data, "test", data_dir=data_dir, missing=missing)
        return Split(data, X, y, X_test, y_test, "Training and test series of the archive.")
    if str(test) == data == _STDIN:
        raise typer.BadParameter("only one of DATA and --test can be -")
    X, y = read_file(
        data,
        trim=trim,
        keep=keep,
        form=form,
        labels="required" if labels is None else "none",
    )
    if labels is not None:
        y = read_labels(labels, len(X))
    name = "standard input" if data == _STDIN else Path(data).name
    if test is not None:
        known = suffix_of(test)[1:] in FORMATS or test.suffix.lower() in OPENED
        X_test, y_test = read_file(test, trim=trim, keep=keep, form=None if known else form)
        return Split(name, X, y, X_test, y_test, f"Test series from {test.name}.")
    if holdout == 0:
        return Split(name, X, y, note="All series of the file were used for training.")
    refuse_opened(X, "--holdout")
    train, held = split(y, holdout, seed)
    note = f"{len(held)} of {len(y)} series were held out as test series, at random."
    return Split(name, _take(X, train), y[train], _take(X, held), y[held], note)


def split(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices to train on and to hold out, class by class."""
    rng = np.random.default_rng(seed)
    held: list[int] = []
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        # At least one series of each class stays in training.
        held += members[: min(round(share * len(members)), len(members) - 1)].tolist()
    if not held:
        raise DataError(
            "there are too few series to hold any out: give a file with --test, or train "
            "on all with `greenfold fit --holdout 0`."
        )
    mask = np.zeros(len(y), dtype=bool)
    mask[held] = True
    return np.flatnonzero(~mask), np.flatnonzero(mask)


def load_series(
    data: str,
    *,
    part: str,
    data_dir: Path | None,
    trim: bool,
    seed: int,
    keep: bool = False,
    **options: Any,
) -> tuple[Any, Any]:
    """Series and labels of a file, or of one part of a data set.

    Parameters
    ----------
    data : str
    part : {"train", "test", "all"}
        Of a data set.
    data_dir : Path or None
    trim : bool
    seed : int
        Of the built-in series.
    keep : bool
        Leave missing values as they are, instead of an error.
    **options
        How a file is read, see `read_file`.
    """
    if data == SYNTHETIC:
        from ..apps.demo import demo_task

        drawn = demo_task(seed)
        parts = {"train": (drawn.X, drawn.y), "test": (drawn.X_test, drawn.y_test)}
        if part in parts:
            return parts[part]
        return np.vstack([drawn.X, drawn.X_test]), np.hstack([drawn.y, drawn.judged[1]])
    if is_file(data, options.get("form")):
        return read_file(data, trim=trim, keep=keep, **options)
    missing = _missing(trim, keep)
    wanted: Any = None if part == "all" else part
    return load_dataset(data, wanted, data_dir=data_dir, missing=missing)


def _take(X: Any, index: np.ndarray) -> Any:
    return [X[i] for i in index] if isinstance(X, list) else X[index]
