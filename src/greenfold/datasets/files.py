"""Every format by its suffix: what reads it whole, and what opens it slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import arrays
from .arrays import OpenedSeries, read_npy, read_npz
from .errors import DataError
from .parsing import (
    Collection,
    Labels,
    Missing,
    Source,
    canonical_labels,
    name_of,
    naming,
    read_bytes,
    reason,
    suffix_of,
)
from .text import read_arff, read_table, read_ts


class _Format(NamedTuple):
    read: Callable[..., tuple[Collection, Any]] | None = None
    open: Callable[[Path, str, str], tuple[Any, Any]] | None = None
    labelled: bool = True


_FORMATS = {
    ".ts": _Format(read_ts),
    ".tsv": _Format(read_table),
    ".txt": _Format(read_table),
    ".csv": _Format(read_table),
    ".arff": _Format(read_arff),
    ".npz": _Format(read_npz),
    ".npy": _Format(read_npy, arrays.open_npy, labelled=False),
    ".h5": _Format(open=arrays.open_hdf5),
    ".hdf5": _Format(open=arrays.open_hdf5),
    ".zarr": _Format(open=arrays.open_zarr),
    ".parquet": _Format(open=arrays.open_parquet),
}

SUFFIXES = tuple(s for s, one in _FORMATS.items() if one.read and one.labelled)
"""Suffixes of the formats that are read whole and hold labels, the preferred one first."""

FORMATS = tuple(s[1:] for s, one in _FORMATS.items() if one.read)
"""What `read_series` takes as `format`."""

TABLES = tuple(s for s, one in _FORMATS.items() if one.read is read_table)
"""Suffixes of the formats that do not say whether there are labels."""

OPENED = tuple(s for s, one in _FORMATS.items() if one.open)
"""Suffixes of the formats that are read slice by slice."""


def read_series(
    path: Source,
    *,
    missing: Missing = "error",
    labels: Labels = "required",
    format: str | None = None,
    n_steps: int | None = None,
    classes: Iterable[Any] = (),
) -> tuple[Collection, Any]:
    r"""Read time series from one file, in the format that its suffix names.

    Parameters
    ----------
    path : str, Path or binary stream
        ``.tsv``, ``.txt`` and ``.csv`` are tables with the label first (UCR archive),
        ``.ts`` is the format of sktime and aeon, ``.arff`` that of Weka in the two forms
        the archives use, ``.npz`` is described at :func:`read_npz`;
        ``.npy`` holds series without labels. Each may be compressed by gzip (``.ts.gz``).
    missing : {"error", "keep", "trim"}, default "error"
        What to do about missing values. ``"error"`` says where they are, ``"keep"``
        leaves NaN in their place, ``"trim"`` takes those at the end of a series for
        padding and cuts it there (the archives pad series of unequal length in
        ``.tsv`` and ``.arff``); others stay an error.
    labels : {"required", "optional", "none"}, default "required"
        ``"required"``: every series needs a label. ``"optional"``: series may come without
        (``.npz`` without ``y``, ``@classLabel false``, ARFF without a class, ``?``). Tables
        do not say whether their first value is a label; how that is decided is described
        at :func:`read_table`. ``"none"``: there are no labels, or none are wanted.
    format : str, optional
        ``"ts"``, ``"csv"`` and so on, for a stream or in place of the suffix.
    n_steps : int, optional
        Length of the series where it is known, which decides whether a table has labels.
    classes : iterable, optional
        The classes where they are known, for the same purpose.

    Returns
    -------
    X : ndarray or list of ndarrays, float64
        Shape (n_cases, n_steps) for one channel and (n_cases, n_channels, n_steps) for
        several; for unequal lengths a list of (n_channels, n_steps_i) arrays.
    y : ndarray of shape (n_cases,) or None
        Class labels: integers if all are whole numbers (``1``, ``1.0`` and ``1e0`` are
        the same class), else strings. The same data set has the same labels whichever
        format it is read from. With ``labels="optional"``: None if there are none, and an
        array of objects with None for the missing ones if there are some.

    Raises
    ------
    DataError
        If the file does not hold what its suffix says; its subclass
        `MissingValueError` if it has missing values that `missing` does not allow.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from greenfold.datasets import read_series
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two.tsv")
    ...     _ = path.write_text("1.0\t0.5\t0.6\n2.0\t0.1\t0.2\n")
    ...     X, y = read_series(path)
    >>> X.shape, y.tolist()
    ((2, 2), [1, 2])
    """
    suffix = suffix_of(path, format)
    if suffix[1:] not in FORMATS:
        what = f"the suffix {suffix!r}" if format is None else f"the format {format!r}"
        raise DataError(
            f"`{name_of(path)}` has {what}, for which there is no reader: use one of "
            f".{', .'.join(FORMATS)}, or name the format with `format`."
        )
    known = {"n_steps": n_steps, "classes": classes} if suffix in TABLES else {}
    read: Any = _FORMATS[suffix].read
    return read(path, missing=missing, labels=labels, **known)


def open_series(
    path: str | Path, labels: Any = None, *, X: str = "X", y: str = "y"
) -> tuple[OpenedSeries, NDArray[Any] | None]:
    """Open a file of series of equal length that need not fit into memory.

    Parameters
    ----------
    path : str or Path
        ``.npy`` is mapped into memory. ``.h5``, ``.hdf5`` (extra ``greenfold[hdf5]``) and
        ``.zarr`` (extra ``greenfold[zarr]``) hold two arrays. ``.parquet`` (extra
        ``greenfold[parquet]``) holds a table with a column of labels and the series either
        as one column of lists or as all other columns, one per step.
    labels : array_like or path, optional
        Labels, or an ``.npy`` file of them, where they are not in the file itself.
    X, y : str
        Names of the series and of the labels in the file.

    Returns
    -------
    X : OpenedSeries
        Slices of it are read when they are asked for.
    y : ndarray (n_cases,) or None
        Labels, read at once; None where there are none.

    Raises
    ------
    DataError, FileNotFoundError
        If the file does not hold what its suffix says, or there is none.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from greenfold.datasets import open_series
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "X.npy")
    ...     np.save(path, np.zeros((5, 3)))
    ...     X, y = open_series(path, labels=[0, 1, 0, 1, 1])
    ...     X[1:3].shape, y.tolist()
    ((2, 3), [0, 1, 0, 1, 1])
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"`{path}` does not exist: give the path of a data file.")
    if isinstance(labels, str | Path):
        name, content = read_bytes(labels)
        with naming(name):
            labels = arrays.load_array(content)
    opener = _FORMATS.get(path.suffix.lower(), _Format()).open
    with naming(path):
        if opener is None:
            raise DataError(
                f"has the suffix {path.suffix!r}, which is not read slice by slice: use "
                f"one of {', '.join(OPENED)}, or read_series."
            )
        try:
            source, found = opener(path, X, y)
        except (DataError, ImportError):
            raise
        except Exception as error:  # of any of the libraries
            raise DataError(
                f"cannot be read as {path.suffix} ({reason(error)}): write it again."
            ) from error
        series = OpenedSeries(str(path), source)
        if labels is None and found is None:
            return series, None
        written = np.asarray(found if labels is None else labels)
        if written.dtype.kind == "O":  # text, as HDF5 and Parquet have it
            text = (
                s.decode("utf-8", "replace") if isinstance(s, bytes) else s for s in written
            )
            written = np.array(list(text))
        arrays.check_labels(written, len(series))
        return series, canonical_labels(written)
