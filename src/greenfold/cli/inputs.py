"""From what the user names to a task: training series and series to judge by."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer

from ..datasets import DataError, load_dataset, read_series
from ..datasets.readers import SUFFIXES
from ..report.comparison import Split

#: Built in, no files needed; clearly synthetic.
SYNTHETIC = "synthetic-heartbeats"


def is_file(data: str) -> bool:
    """Whether DATA means a file rather than the name of a data set."""
    path = Path(data)
    return path.suffix.lower() in SUFFIXES or path.exists() or len(path.parts) > 1


def load_task(
    data: str,
    *,
    test: Path | None,
    holdout: float,
    data_dir: Path | None,
    trim: bool,
    seed: int,
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
    """
    missing: Literal["error", "trim"] = "trim" if trim else "error"
    if data == SYNTHETIC:
        from ..demo import demo_task

        return demo_task(seed)
    if not is_file(data):
        if test is not None:
            raise typer.BadParameter(
                "--test goes with a file; a data set brings its own test series"
            )
        X, y = load_dataset(data, "train", data_dir=data_dir, missing=missing)
        X_test, y_test = load_dataset(data, "test", data_dir=data_dir, missing=missing)
        return Split(data, X, y, X_test, y_test, "Training and test series of the archive.")
    X, y = read_series(data, missing=missing)
    name = Path(data).name
    if test is not None:
        X_test, y_test = read_series(test, missing=missing)
        return Split(name, X, y, X_test, y_test, f"Test series from {test.name}.")
    if holdout == 0:
        return Split(name, X, y, note="All series of the file were used for training.")
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
) -> tuple[Any, np.ndarray]:
    """Series and labels of a file, or of one part of a data set."""
    missing: Literal["error", "trim"] = "trim" if trim else "error"
    if is_file(data):
        return read_series(data, missing=missing)
    wanted: Any = None if part == "all" else part
    return load_dataset(data, wanted, data_dir=data_dir, missing=missing)


def _take(X: Any, index: np.ndarray) -> Any:
    return [X[i] for i in index] if isinstance(X, list) else X[index]
