"""ECG5000 as the paper uses it: two of its five classes, 354 and 4332 heartbeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenfold.datasets.archive import load_dataset
from greenfold.datasets.errors import DataError

__all__ = ["BinarySplit", "ecg5000_paper"]

# Class 1 (normal) and class 2 (R-on-T premature ventricular contraction) as the archive
# ships them; they give the paper's 354 = 2 · 177 and 4332 = 2627 + 1590 + (292 - 177).
_TRAIN_COUNTS = (292, 177)
_TEST_COUNTS = (2627, 1590)


class BinarySplit(NamedTuple):
    """A two-class problem with labels ±1, ready to unpack."""

    X_train: NDArray[np.float64]
    """Training series, shape (n_train, n_steps)."""
    y_train: NDArray[np.int64]
    """Their labels, +1 or -1, shape (n_train,)."""
    X_test: NDArray[np.float64]
    """Test series, shape (n_test, n_steps)."""
    y_test: NDArray[np.int64]
    """Their labels, +1 or -1, shape (n_test,)."""


def ecg5000_paper(
    data_dir: str | Path | None = None,
    selection: Literal["first"] | int | np.random.Generator = "first",
) -> BinarySplit:
    """Load the heartbeat task of the paper: ECG5000, classes 1 and 2.

    The archive has 292 + 177 series of these classes for training. The paper's sizes
    come out exactly if the training set is balanced to 177 + 177 and the 115 series of
    class 1 left over join the test set.

    Parameters
    ----------
    data_dir : str or Path, optional
        Data directory; see :func:`load_dataset`.
    selection : "first", int or numpy Generator, default "first"
        Which 177 series of class 1 stay in the training set, on which the paper is
        silent: the first ones of the file, or a draw without replacement with this seed
        or generator.

    Returns
    -------
    BinarySplit
        ``X_train`` (354, 140), ``y_train`` (354,), ``X_test`` (4332, 140) and ``y_test``
        (4332,). Class 1, the normal beats, is +1; class 2, the premature ventricular
        contractions, is -1. Training series are in the order of the archive; the 115
        series left over are the last of the test set.

    Raises
    ------
    FileNotFoundError, DataError, ImportError
        As :func:`load_dataset`; also a DataError if the files are not the archive's.

    Notes
    -----
    Not to be compared with published accuracies on ECG5000, which are for all five
    classes and the archive's own split of 500 and 4500.
    """
    keep_first = isinstance(selection, str) and selection == "first"
    is_seed = isinstance(selection, int | np.integer) and not isinstance(selection, bool)
    if not (keep_first or is_seed or isinstance(selection, np.random.Generator)):
        raise ValueError(
            f"`selection` must be 'first', a seed or a NumPy Generator; got {selection!r} "
            "instead."
        )
    X_train, y_train = _two_classes("train", data_dir, _TRAIN_COUNTS)
    X_test, y_test = _two_classes("test", data_dir, _TEST_COUNTS)
    normal = np.flatnonzero(y_train == 1)
    n_keep = _TRAIN_COUNTS[1]
    if isinstance(selection, str):
        chosen = normal[:n_keep]
    else:
        rng = np.random.default_rng(selection)
        chosen = rng.choice(normal, size=n_keep, replace=False)
    kept = y_train == -1
    kept[chosen] = True
    return BinarySplit(
        X_train[kept],
        y_train[kept],
        np.concatenate([X_test, X_train[~kept]]),
        np.concatenate([y_test, y_train[~kept]]),
    )


def _two_classes(
    split: Literal["train", "test"], data_dir: str | Path | None, expected: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Series of classes 1 and 2 of one split, with labels +1 and -1."""
    X: Any
    X, y = load_dataset("ECG5000", split, data_dir=data_dir)
    counts = (int(np.sum(y == 1)), int(np.sum(y == 2)))
    if counts != expected or isinstance(X, list) or X.ndim != 2:
        raise DataError(
            f"The {split} split of 'ECG5000' found here has {counts[0]} + {counts[1]} "
            f"series of classes 1 and 2 where the archive has {expected[0]} + "
            f"{expected[1]}: replace the files by the archive's own."
        )
    both = (y == 1) | (y == 2)
    return X[both], np.where(y[both] == 1, 1, -1).astype(np.int64)
