"""Data sets by name: from the data directory, the cache or the public archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from greenfold.datasets.download import download_dataset
from greenfold.datasets.errors import DataError
from greenfold.datasets.locate import (
    check_name,
    data_directory,
    dataset_path,
    find_split,
    how_to_supply,
)
from greenfold.datasets.readers import Collection, Missing, read_series

__all__ = ["load_dataset"]


def load_dataset(
    name: str,
    split: Literal["train", "test"] | None = None,
    *,
    data_dir: str | Path | None = None,
    missing: Missing = "error",
    download: bool = True,
) -> tuple[Collection, NDArray[Any]]:
    """Load a data set of the UCR or UEA archive by its name.

    The files are looked for in the data directory, then in the download cache; if they
    are in neither, they are downloaded from https://timeseriesclassification.com into
    the cache (see :func:`download_dataset` for what is checked).

    Parameters
    ----------
    name : str
        Name in the archive, such as ``"ECG5000"``.
    split : {"train", "test"} or None, default None
        The part to load; None joins both, the training series first.
    data_dir : str or Path, optional
        Data directory: holds a folder for each data set, directly or in archive folders
        such as ``ucr/``. Default: the environment variable ``GREENFOLD_DATA``.
    missing : {"error", "keep", "trim"}, default "error"
        What to do about missing values; see :func:`read_series`.
    download : bool, default True
        Whether the archive may be asked for a set that is not on this machine.

    Returns
    -------
    X : ndarray or list of ndarrays, float64
        Shape (n_cases, n_steps) for one channel and (n_cases, n_channels, n_steps) for
        several; for unequal lengths a list of (n_channels, n_steps_i) arrays.
    y : ndarray of shape (n_cases,)
        Class labels: integers if all are whole numbers, else strings.

    Raises
    ------
    FileNotFoundError
        If the data set is not on this machine and cannot be downloaded; the message says
        where to put the files.
    DataError
        If the files or the downloaded archive do not hold what they should.
    ImportError
        If a download is needed and pooch is not installed (``greenfold[data]``).
    """
    check_name(name)
    if split not in ("train", "test", None):
        raise ValueError(f"`split` must be 'train', 'test' or None; got {split!r} instead.")
    data_directory(data_dir)  # a wrong directory is an error, not a reason to download
    try:
        folder = dataset_path(name, data_dir)
    except FileNotFoundError:
        if not download:
            raise
        folder = download_dataset(name, data_dir=data_dir)
    parts = []
    for part in (split,) if split else ("train", "test"):
        path = find_split(folder, name, part)
        if path is None:
            raise FileNotFoundError(
                f"The data set {name!r} in {folder} has no {part} split: "
                f"{how_to_supply(name, data_dir)}."
            )
        parts.append(read_series(path, missing=missing))
    return parts[0] if split else _join(parts[0], parts[1], name)


def _join(
    train: tuple[Collection, NDArray[Any]], test: tuple[Collection, NDArray[Any]], name: str
) -> tuple[Collection, NDArray[Any]]:
    """Series and labels of both splits, as an array if all lengths agree."""
    (X_train, y_train), (X_test, y_test) = train, test
    series = [*_as_list(X_train), *_as_list(X_test)]
    if len({one.shape[0] for one in series}) > 1:
        raise DataError(
            f"The data set {name!r} has {series[0].shape[0]} channels in the training and "
            f"{series[-1].shape[0]} in the test split: load and repair them one by one."
        )
    y = np.concatenate([y_train, y_test])
    if isinstance(X_train, list) or isinstance(X_test, list):
        return series, y
    if X_train.shape[1:] != X_test.shape[1:]:
        return series, y
    return np.concatenate([X_train, X_test]), y


def _as_list(X: Collection) -> list[NDArray[np.float64]]:
    return [np.atleast_2d(one) for one in X]
