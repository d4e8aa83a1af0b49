"""The data of a sweep: which sets, where they lie, and their resamples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets.archive import (
    check_name,
    dataset_path,
    datasets_below,
    download_dataset,
    find_split,
    list_datasets,
)
from ...datasets.errors import DataError, MissingValueError
from ...datasets.files import read_series

Part = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Source:
    """A data set on this machine.

    Attributes
    ----------
    name : str
    folder : str
        With the files of both splits.
    digest : str
        Of the content of both files.
    size : int
        Bytes of both files, a measure of the work.
    """

    name: str
    folder: str
    digest: str
    size: int


def find_sources(
    items: Iterable[str | Path], data_dir: str | Path | None = None, download: bool = True
) -> list[Source]:
    """Data sets by name, by folder, or by a list in a text file.

    Parameters
    ----------
    items : iterable
        Names of sets; folders that are a set or hold some; ``.txt`` files with one name a
        line. None of them means every set of the data directory.
    data_dir : str or Path, optional
        Data directory. Default: the environment variable ``GREENFOLD_DATA``.
    download : bool
        Whether the archive may be asked for a set that is not on this machine.

    Returns
    -------
    list of Source
        Each set once, in the order given.
    """
    found: dict[str, Path] = {}
    for item in items:
        path = Path(item).expanduser()
        if path.is_dir():
            found |= {k: v for k, v in _sets_of(path).items() if k not in found}
        elif path.suffix == ".txt" and path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                name = line.strip()
                if name and not name.startswith("#") and name not in found:
                    found[name] = _locate(name, data_dir, download)
        elif str(item) not in found:
            found[str(item)] = _locate(str(item), data_dir, download)
    if not items:
        found = list_datasets(data_dir)
        if not found:
            raise FileNotFoundError(
                "There are no data sets to sweep over: name some, or put them into the "
                "directory that GREENFOLD_DATA names."
            )
    return [_describe(name, folder) for name, folder in found.items()]


def _sets_of(folder: Path) -> dict[str, Path]:
    folder = folder.resolve()
    if find_split(folder, folder.name, "train"):
        return {folder.name: folder}
    found = datasets_below(folder)
    if not found:
        raise FileNotFoundError(
            f"The folder {str(folder)!r} holds no data sets: they are folders <Name> with "
            "the files <Name>_TRAIN and <Name>_TEST."
        )
    return found


def _locate(name: str, data_dir: str | Path | None, download: bool) -> Path:
    check_name(name)
    try:
        return dataset_path(name, data_dir)
    except FileNotFoundError:
        if not download:
            raise
        return download_dataset(name, data_dir=data_dir)


def _files(name: str, folder: Path) -> list[Path]:
    files = []
    for split in ("train", "test"):
        path = find_split(folder, name, split)
        if path is None:
            raise FileNotFoundError(
                f"The data set {name!r} in {folder} has no {split} split: put "
                f"{name}_{split.upper()} there, or leave the set out."
            )
        files.append(path)
    return files


def _describe(name: str, folder: Path) -> Source:
    digest, size = hashlib.sha256(), 0
    for path in _files(name, folder):
        content = path.read_bytes()
        digest.update(hashlib.sha256(content).digest())
        size += len(content)
    return Source(name, str(folder), digest.hexdigest()[:16], size)


def read_source(name: str, folder: str, digest: str) -> tuple[Part, Part]:
    """Training and test series, where this runs; labels as text.

    Padding at the end of series is cut off; other missing values stay NaN.

    Raises
    ------
    FileNotFoundError, DataError
        If the set is not on this machine, or not the one that was planned with.
    """
    place = Path(folder)
    if not place.is_dir():  # another machine may have it elsewhere
        place = dataset_path(name)
    if _describe(name, place).digest != digest:
        raise DataError(
            f"The files of {name!r} in {place} are not those that the sweep was planned "
            "with: they differ between the machines or have changed since."
        )
    train, test = (_read(path) for path in _files(name, place))
    return train, test


def _read(path: Path) -> Part:
    try:
        X, y = read_series(path, missing="trim")
    except MissingValueError:
        X, y = read_series(path, missing="keep")
    # As aeon reads them: the order of labels, "10" before "2", decides the resamples.
    return X, np.asarray(y).astype(str)


def resampled(train: Part, test: Part, resample: int) -> tuple[Part, Part]:
    """The split of that number: aeon's stratified resample with it as seed; 0 as provided.

    Parameters
    ----------
    train, test : tuple
        Series and labels.
    resample : int

    Returns
    -------
    train, test : tuple
        Of the same sizes.
    """
    if resample == 0:
        return train, test
    try:
        from aeon.benchmarking.resampling import stratified_resample_data_indices
    except ImportError:
        raise ImportError(
            "Resamples other than 0 are made by aeon: pip install 'greenfold[sweep]'."
        ) from None
    if set(train[1]) != set(test[1]):
        raise DataError(
            "The resamples of aeon need the same classes in the training and the test "
            f"split; got {len(set(train[1]))} and {len(set(test[1]))}."
        )
    chosen = stratified_resample_data_indices(train[1], test[1], random_state=resample)
    joined = _join(train[0], test[0])
    labels = np.concatenate([train[1], test[1]])
    made = []
    for index in chosen:
        if isinstance(joined, list):
            made.append(([joined[i] for i in index], labels[index]))
        else:
            made.append((joined[index], labels[index]))
    return made[0], made[1]


def _join(first: Any, second: Any) -> Any:
    arrays = isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    if arrays and first.shape[1:] == second.shape[1:]:
        return np.concatenate([first, second])
    return [np.atleast_2d(one) for one in (*first, *second)]
