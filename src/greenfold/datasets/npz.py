"""NumPy's ``.npz``: ``X``, ``y`` and ``lengths``; and ``.npy``, which is ``X`` alone."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.files import replacing
from .errors import DataError
from .parsing import (
    Collection,
    Labels,
    Missing,
    Source,
    assemble,
    canonical_labels,
    check_label_policy,
    check_missing_policy,
    read_bytes,
)

__all__ = ["read_npy", "read_npz", "write_npz"]


def read_npz(
    path: Source, *, missing: Missing = "error", labels: Labels = "required"
) -> tuple[Collection, Any]:
    """Read series and labels from an ``.npz`` file.

    The file holds ``X`` of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps),
    ``y`` of shape (n_cases,) and, for series of unequal length, ``lengths`` of shape
    (n_cases,): series i is ``X[i, ..., :lengths[i]]``. Nothing is unpickled, so that a
    file from elsewhere cannot run code.

    Parameters
    ----------
    path : str, Path or binary stream
    missing : {"error", "keep", "trim"}, default "error"
        See :func:`greenfold.datasets.read_series`.
    labels : {"required", "optional", "none"}, default "required"
        Whether ``y`` may be missing, or labels in it.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list of (n_channels, n_steps_i) arrays if the file has ``lengths``.
    y : ndarray of shape (n_cases,) or None
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
    check_label_policy(labels)
    name, content = read_bytes(path)
    arrays = load_arrays(name, content)
    if "X" not in arrays or ("y" not in arrays and labels == "required"):
        needed = "`X` and `y`" if labels == "required" else "`X`"
        raise DataError(
            f"`{name}` holds the arrays {sorted(arrays)} but needs {needed}: write it "
            "with greenfold.datasets.write_npz or numpy.savez(path, X=X, y=y)."
        )
    X, y, lengths = arrays["X"], arrays.get("y"), arrays.get("lengths")
    X = _checked(X, f"`{name}` has an `X`")
    if y is not None and (y.shape != (len(X),) or y.dtype.kind not in "iufUSb"):
        raise DataError(
            f"`{name}` has a `y` of shape {y.shape} and type {y.dtype} for {len(X)} "
            "series: it must be one number or string a series."
        )
    series = list(X) if lengths is None else _cut(X, lengths, name)
    return assemble(
        series,
        None if y is None else label_values(y, name, labels),
        path=name,
        missing=missing,
        unequal=lengths is not None,
    )


def read_npy(
    path: Source, *, missing: Missing = "error", labels: Labels = "optional"
) -> tuple[Collection, None]:
    """Read series from an ``.npy`` file, which holds no labels.

    Parameters
    ----------
    path : str, Path or binary stream
        An array of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps).
    missing : {"error", "keep", "trim"}, default "error"
        See :func:`greenfold.datasets.read_series`.
    labels : {"required", "optional", "none"}, default "optional"
        ``"required"`` is always an error.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
    y : None

    Raises
    ------
    DataError
        If the file is not such a file, or has missing values that `missing` does not
        allow.
    FileNotFoundError
        If there is no such file.
    """
    check_missing_policy(missing)
    check_label_policy(labels)
    name, content = read_bytes(path)
    try:
        _check_array(io.BytesIO(content), len(content), "the array")
        X = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # as for .npz
        raise _unreadable(name, ".npy", error, "numpy.save") from error
    X = _checked(X, f"`{name}` holds an array")
    if labels == "required":
        raise DataError(
            f"`{name}` holds series without labels, as .npy does: write both into one file "
            "with numpy.savez(path, X=X, y=y)."
        )
    return assemble(list(X), None, path=name, missing=missing)[0], None


def _checked(X: NDArray[Any], what: str) -> NDArray[np.float64]:
    """Series as (n_cases, n_channels, n_steps)."""
    if X.ndim not in (2, 3) or X.dtype.kind not in "fiu":
        raise DataError(
            f"{what} of shape {X.shape} and type {X.dtype}: it must be "
            "numbers of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps)."
        )
    n_channels = X.shape[1] if X.ndim == 3 else 1
    return X.astype(np.float64).reshape(len(X), n_channels, X.shape[-1])


def load_arrays(
    name: str, content: bytes, how: str = "greenfold.datasets.write_npz"
) -> dict[str, NDArray[Any]]:
    """All arrays of the file, or a DataError that says how to write it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                with archive.open(member) as stream:
                    _check_array(stream, member.file_size, member.filename)
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    # Damaged bytes surface as almost any exception of zipfile, zlib, ast and NumPy.
    except Exception as error:
        raise _unreadable(name, ".npz", error, how) from error


def _unreadable(name: str, suffix: str, error: Exception, how: str) -> DataError:
    reason = " ".join(str(error).split())[:120] or type(error).__name__
    return DataError(
        f"`{name}` cannot be read as {suffix} without pickled objects ({reason}): write it "
        f"again with {how}."
    )


def _check_array(stream: Any, size: int, what: str) -> None:
    """Compare the size that an array's header claims with that of its file.

    A damaged header can claim any shape, and NumPy would allocate it before it finds the
    data missing.
    """
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    claimed = math.prod(shape) * dtype.itemsize
    if not 0 <= claimed <= size:
        raise ValueError(f"{what} is incomplete")


def _cut(
    X: NDArray[np.float64], lengths: NDArray[Any], path: str
) -> list[NDArray[np.float64]]:
    valid = lengths.shape == (len(X),) and lengths.dtype.kind in "iu"
    if not valid or np.any(lengths < 1) or np.any(lengths > X.shape[-1]):
        raise DataError(
            f"`{path}` has `lengths` that do not fit its `X`: there must be one whole "
            f"number from 1 to {X.shape[-1]} for each of the {len(X)} series."
        )
    return [one[:, :length] for one, length in zip(X, lengths, strict=True)]


def label_values(y: NDArray[Any], path: str, labels: Labels) -> NDArray[Any] | None:
    """Labels as every format gives them: integers where all are whole, else text."""
    if labels == "none":
        return None
    if y.dtype.kind in "iub":  # no detour through text and float64, which rounds
        return y.astype(np.int64)
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8", "replace")
    return canonical_labels([str(label) for label in y], path=path, labels=labels)


def write_npz(
    path: str | Path,
    X: ArrayLike | Sequence[NDArray[np.float64]],
    y: ArrayLike | None = None,
) -> None:
    """Write series and labels so that :func:`read_npz` reads them back.

    Parameters
    ----------
    path : str or Path
        Must end in ``.npz``. An existing file is replaced, in one step.
    X : array of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list of (n_channels, n_steps_i) arrays for series of unequal length.
    y : array of shape (n_cases,), optional
        Without it the file holds no labels.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"`path` must end in .npz; got {str(path)!r} instead.")
    arrays: dict[str, NDArray[Any]] = {} if y is None else {"y": np.asarray(y)}
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
    labels = arrays.get("y")
    if labels is not None and (
        labels.shape != (len(arrays["X"]),) or labels.dtype.kind not in "iufUSb"
    ):
        raise ValueError(
            f"`y` must hold one number or string for each of the {len(arrays['X'])} "
            f"series; got shape {labels.shape} and type {labels.dtype} instead."
        )
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
