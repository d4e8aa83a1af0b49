"""One reader for every format, chosen by the suffix of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .arff import read_arff
from .errors import DataError
from .npz import read_npy, read_npz
from .parsing import Collection, Labels, Missing, Source, check_label_policy, name_of
from .tables import read_table
from .ts import read_ts

_READERS: dict[str, Callable[..., tuple[Collection, Any]]] = {
    ".ts": read_ts,
    ".tsv": read_table,
    ".txt": read_table,
    ".csv": read_table,
    ".arff": read_arff,
    ".npz": read_npz,
    ".npy": read_npy,
}

SUFFIXES = tuple(suffix for suffix in _READERS if suffix != ".npy")
"""Suffixes of the formats that hold labels, the one that is preferred first."""

FORMATS = tuple(suffix[1:] for suffix in _READERS)
"""What `read_series` takes as `format`."""

TABLES = (".tsv", ".txt", ".csv")
"""Suffixes of the formats that do not say whether there are labels."""


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
    check_label_policy(labels)
    suffix = suffix_of(path) if format is None else f".{format.lower().lstrip('.')}"
    name = name_of(path)
    if suffix not in _READERS:
        what = f"the suffix {suffix!r}" if format is None else f"the format {format!r}"
        raise DataError(
            f"`{name}` has {what}, for which there is no reader: use one of "
            f"{', '.join(_READERS)}, or call the reader you mean, such as read_table."
        )
    if suffix in TABLES:
        return read_table(
            path, missing=missing, labels=labels, n_steps=n_steps, classes=classes
        )
    return _READERS[suffix](path, missing=missing, labels=labels)


def suffix_of(path: Source) -> str:
    """The suffix that names the format, without a ``.gz`` behind it."""
    plain = Path(name_of(path))
    if plain.suffix.lower() == ".gz":
        plain = plain.with_suffix("")
    return plain.suffix.lower()
