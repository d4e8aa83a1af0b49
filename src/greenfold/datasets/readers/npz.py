"""NumPy's ``.npz``: arrays ``X`` and ``y``, and ``lengths`` where they differ."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greenfold._files import replacing
from greenfold.datasets.errors import DataError
from greenfold.datasets.readers.collection import (
    Collection,
    Missing,
    assemble,
    check_missing_policy,
    existing_file,
)
from greenfold.datasets.readers.labels import canonical_labels

__all__ = ["read_npz", "write_npz"]


def read_npz(
    path: str | Path, *, missing: Missing = "error"
) -> tuple[Collection, NDArray[Any]]:
    """Read series and labels from an ``.npz`` file.

    The file holds ``X`` of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps),
    ``y`` of shape (n_cases,) and, for series of unequal length, ``lengths`` of shape
    (n_cases,): series i is ``X[i, ..., :lengths[i]]``. Nothing is unpickled, so that a
    file from elsewhere cannot run code.

    Parameters
    ----------
    path : str or Path
    missing : {"error", "keep", "trim"}, default "error"
        See :func:`greenfold.datasets.read_series`.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list of (n_channels, n_steps_i) arrays if the file has ``lengths``.
    y : ndarray of shape (n_cases,)
        Integers if all labels are whole numbers, else strings.

    Raises
    ------
    DataError
        If the file is not such a file, or has missing values that `missing` does not
        allow.
    FileNotFoundError
        If there is no such file.
    """
    check_missing_policy(missing)
    path = existing_file(path)
    arrays = _load(path)
    if "X" not in arrays or "y" not in arrays:
        raise DataError(
            f"`{path}` holds the arrays {sorted(arrays)} but needs `X` and `y`: write it "
            "with greenfold.datasets.write_npz or numpy.savez(path, X=X, y=y)."
        )
    X, y, lengths = arrays["X"], arrays["y"], arrays.get("lengths")
    if X.ndim not in (2, 3) or X.dtype.kind not in "fiu":
        raise DataError(
            f"`{path}` has an `X` of shape {X.shape} and type {X.dtype}: it must be "
            "numbers of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps)."
        )
    if y.shape != (len(X),) or y.dtype.kind not in "iufUSb":
        raise DataError(
            f"`{path}` has a `y` of shape {y.shape} and type {y.dtype} for {len(X)} "
            "series: it must be one number or string a series."
        )
    X = X.astype(np.float64).reshape(len(X), -1 if X.ndim == 3 else 1, X.shape[-1])
    series = list(X) if lengths is None else _cut(X, lengths, path)
    return assemble(
        series, _labels(y, path), path=path, missing=missing, unequal=lengths is not None
    )


def _load(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of the file, or a DataError whatever is wrong with it."""
    content = path.read_bytes()  # what fails from here on is the content, not the disk
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                _check_extent(archive, member)
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    # Damaged bytes surface as almost any exception of zipfile, zlib, ast and NumPy.
    except Exception as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise DataError(
            f"`{path}` cannot be read as .npz without pickled objects ({reason}): write it "
            "again with greenfold.datasets.write_npz."
        ) from error


def _check_extent(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Compare the size that an array's header claims with that of its file.

    A damaged header can claim any shape, and NumPy would allocate it before it finds the
    data missing.
    """
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    claimed = math.prod(shape) * dtype.itemsize
    if not 0 <= claimed <= member.file_size:
        raise ValueError(f"{member.filename} is incomplete")


def _cut(
    X: NDArray[np.float64], lengths: NDArray[Any], path: Path
) -> list[NDArray[np.float64]]:
    valid = lengths.shape == (len(X),) and lengths.dtype.kind in "iu"
    if not valid or np.any(lengths < 1) or np.any(lengths > X.shape[-1]):
        raise DataError(
            f"`{path}` has `lengths` that do not fit its `X`: there must be one whole "
            f"number from 1 to {X.shape[-1]} for each of the {len(X)} series."
        )
    return [one[:, :length] for one, length in zip(X, lengths, strict=True)]


def _labels(y: NDArray[Any], path: Path) -> NDArray[Any]:
    if y.dtype.kind in "iub":  # no detour through text and float64, which rounds
        return y.astype(np.int64)
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8", "replace")
    return canonical_labels([str(label) for label in y], path=path)


def write_npz(
    path: str | Path, X: ArrayLike | Sequence[NDArray[np.float64]], y: ArrayLike
) -> None:
    """Write series and labels so that :func:`read_npz` reads them back.

    Parameters
    ----------
    path : str or Path
        Must end in ``.npz``. An existing file is replaced, in one step.
    X : array of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list of (n_channels, n_steps_i) arrays for series of unequal length.
    y : array of shape (n_cases,)
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"`path` must end in .npz; got {str(path)!r} instead.")
    labels = np.asarray(y)
    arrays: dict[str, NDArray[Any]] = {"y": labels}
    if isinstance(X, list):
        series = [np.atleast_2d(np.asarray(one, dtype=np.float64)) for one in X]
        if len({one.shape[0] for one in series}) != 1:
            raise ValueError("`X` must be a list of series that have the same channels.")
        lengths = np.array([one.shape[1] for one in series])
        padded = np.full((len(series), series[0].shape[0], lengths.max()), np.nan)
        for row, one in zip(padded, series, strict=True):
            row[:, : one.shape[1]] = one
        arrays |= {"X": padded, "lengths": lengths}
    else:
        arrays["X"] = np.asarray(X, dtype=np.float64)
    if labels.shape != (len(arrays["X"]),) or labels.dtype.kind not in "iufUSb":
        raise ValueError(
            f"`y` must hold one number or string for each of the {len(arrays['X'])} "
            f"series; got shape {labels.shape} and type {labels.dtype} instead."
        )
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
