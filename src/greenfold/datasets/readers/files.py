"""One reader for every format, chosen by the suffix of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from greenfold.datasets.errors import DataError
from greenfold.datasets.readers.arff import read_arff
from greenfold.datasets.readers.collection import Collection, Missing
from greenfold.datasets.readers.npz import read_npz
from greenfold.datasets.readers.table import read_table
from greenfold.datasets.readers.ts import read_ts

_READERS = {
    ".ts": read_ts,
    ".tsv": read_table,
    ".txt": read_table,
    ".csv": read_table,
    ".arff": read_arff,
    ".npz": read_npz,
}

SUFFIXES = tuple(_READERS)
"""Suffixes that `read_series` knows, the one it prefers first."""


def read_series(
    path: str | Path, *, missing: Missing = "error"
) -> tuple[Collection, NDArray[Any]]:
    r"""Read labelled time series from one file, in the format that its suffix names.

    Parameters
    ----------
    path : str or Path
        ``.tsv``, ``.txt`` and ``.csv`` are tables with the label first (UCR archive),
        ``.ts`` is the format of sktime and aeon, ``.arff`` that of Weka in the two forms
        the archives use, ``.npz`` is described at :func:`read_npz`.
    missing : {"error", "keep", "trim"}, default "error"
        What to do about missing values. ``"error"`` says where they are, ``"keep"``
        leaves NaN in their place, ``"trim"`` takes those at the end of a series for
        padding and cuts it there (the archives pad series of unequal length in
        ``.tsv`` and ``.arff``); others stay an error.

    Returns
    -------
    X : ndarray or list of ndarrays, float64
        Shape (n_cases, n_steps) for one channel and (n_cases, n_channels, n_steps) for
        several; for unequal lengths a list of (n_channels, n_steps_i) arrays.
    y : ndarray of shape (n_cases,)
        Class labels: integers if all are whole numbers (``1``, ``1.0`` and ``1e0`` are
        the same class), else strings. The same data set has the same labels whichever
        format it is read from.

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
    suffix = Path(path).suffix.lower()
    if suffix not in _READERS:
        raise DataError(
            f"`{path}` has the suffix {suffix!r}, for which there is no reader: use one of "
            f"{', '.join(SUFFIXES)}, or call the reader you mean, such as read_table."
        )
    return _READERS[suffix](path, missing=missing)
