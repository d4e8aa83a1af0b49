"""Read a file of series in any format; `_PARSERS` and `_OPENERS` list the formats."""

from __future__ import annotations

import gzip
import io
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.checks import must
from .._base.messages import Argument
from . import arrays, tables, text
from .arrays import OpenedSeries
from .parsed import (
    DataError,
    Labels,
    Missing,
    Parsed,
    SeriesArrays,
    assemble,
    canonical_labels,
    naming,
    readable,
    refuse_data,
)
from .tables import TableHints

#: The path of a file, or a stream of bytes such as ``sys.stdin.buffer``.
File: TypeAlias = str | Path | BinaryIO
_GZIP = b"\x1f\x8b"
# gzip shrinks numbers as text to a third or a tenth; far higher ratios are not data.
_UNPACKED, _RATIO = 2**26, 100


def name_of(source: File) -> str:
    """Return the name of the source to use in messages."""
    name = source if isinstance(source, str | Path) else getattr(source, "name", None)
    return str(name) if isinstance(name, str | Path) else "stream"


def suffix_of(path: File, format: str | None = None) -> str:
    """Return the suffix that names the format, without ``.gz``."""
    if format is not None:
        return f".{format.lower().lstrip('.')}"
    return Path(name_of(path).lower().removesuffix(".gz")).suffix


def read_bytes(source: File) -> tuple[str, bytes]:
    """Return the name and the content of a source; gzip content is unpacked."""
    name = name_of(source)
    is_path = isinstance(source, str | Path)
    content = _checked(source).read_bytes() if is_path else source.read()
    # Text and NumPy's formats never begin with these two bytes.
    if not content.startswith(_GZIP):
        return name, content
    with naming(name), readable("gzip", "fetch or write it again"):
        most = max(_UNPACKED, _RATIO * len(content))
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            found = packed.read(most + 1)
        big = f"unpacks to more than {most / 2**20:.0f} MiB, {_RATIO} times its size"
        refuse_data(
            len(found) > most, f"{big}, too much for data: unpack and check it first."
        )
        return name, found


def _checked(path: str | Path) -> Path:
    """Return a path; raise if it does not exist or may be endless."""
    advice = "pass the path of a data file."
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"`{path}` does not exist: {advice}") from None
    if stat.S_ISDIR(found.st_mode):
        raise FileNotFoundError(f"`{path}` is a directory, not a file: {advice}")
    usable = stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)
    with suppress(OSError):  # accept /dev/stdin; other devices (/dev/zero) never end
        usable = usable or os.path.samestat(found, os.fstat(0))
    refuse_data(not usable, f"`{path}` is neither a file nor a pipe: {advice}")
    return Path(path)


#: Formats that are read whole, the preferred one of a data set first.
_PARSERS: dict[str, Callable[..., Parsed]] = {
    ".ts": text.parse_ts,
    ".tsv": tables.parse_table,
    ".txt": tables.parse_table,
    ".csv": tables.parse_table,
    ".arff": text.parse_arff,
    ".npz": arrays.parse_npz,
    ".npy": arrays.parse_npy,
}
#: Formats that are read in slices, by functions that return series and labels.
_OPENERS: dict[str, Callable[..., tuple[Any, Any]]] = {
    ".npy": arrays.open_npy,
    ".h5": arrays.open_group,
    ".hdf5": arrays.open_group,
    ".zarr": arrays.open_group,
    ".parquet": arrays.open_parquet,
}

#: Suffixes of formats that are read whole and hold labels.
SUFFIXES = tuple(suffix for suffix in _PARSERS if suffix != ".npy")
#: Values of `format` in `read_series`.
FORMATS = tuple(suffix[1:] for suffix in _PARSERS)
#: Suffixes of formats that do not say whether there are labels.
TABLES = tuple(s for s, parse in _PARSERS.items() if parse is tables.parse_table)
#: Suffixes of formats that are read in slices.
OPENED = tuple(_OPENERS)


def read_series(
    path: File,
    *,
    missing: Missing = "error",
    labels: Labels = "required",
    format: str | None = None,
    n_steps: int | None = None,
    classes: Iterable[object] = (),
    label_column: int | str | None = None,
    series_column: int | str | None = None,
    drop: Sequence[int | str] | int | str = (),
    decimal: str | None = None,
    encoding: str | None = None,
) -> tuple[SeriesArrays, Any]:
    r"""Read time series from one file; its suffix names the format.

    Parameters
    ----------
    path : str, Path or binary stream
        ``.tsv``, ``.txt`` and ``.csv`` are tables with one series per line. The label comes
        first (UCR archive) or in the column that the first line names ``label``, ``class``,
        ``target`` or ``y``. Names such as ``x0, x1, …, y0, y1, …`` number the steps of each
        channel. A table with one sample per line has a column that tells the series apart
        (``id``, ``series``, ``case``, … or `series_column`), one of times (``time``, ``t``,
        ``date``, …; samples are put in order, and a missing one is refused), one of labels,
        and one per channel. ``.ts`` is the format of sktime and aeon, evenly sampled;
        ``.arff`` is that of Weka in the two forms of the archives; ``.npz`` is that of
        :func:`write_npz`; ``.npy`` holds series without labels. Each file may be gzipped
        (``.ts.gz``).
    missing : {"error", "keep", "trim"}, default "error"
        How to treat missing values. ``"error"`` raises an error that says where they are,
        and ``"keep"`` leaves NaN in their place. ``"trim"`` cuts off missing values at the
        end of a series as padding (as in ``.tsv`` and ``.arff`` of the archives); other
        missing values remain an error.
    labels : {"required", "optional", "none"}, default "required"
        Whether every series needs a label, a series may lack one (``.npz`` without ``y``,
        ``@classLabel false``, ARFF without a class, ``?``), or labels are ignored. With
        ``"optional"``, a header or labels that are not numbers show whether a table has
        labels. Otherwise, `n_steps` decides, and then `classes`: values that are all
        classes are labels, and values that are neither classes nor whole numbers are not.
    format : str, optional
        ``"ts"``, ``"csv"`` and so on; for a stream, or to override the suffix.
    n_steps, classes : int, iterable, optional
        Length and classes of the series, if known; used for tables.
    label_column : int or str, optional
        Column of the labels in a table: a number from 0, a negative number from the end, a
        name in the first line, ``"first"`` or ``"last"``.
    series_column : int or str, optional
        Column that tells the series apart, if a table has one sample per line. Without a
        name that says so, a column that counts evenly within every series holds the times.
    drop : sequence of int or str, default ()
        Columns of a table to leave out, such as dates, given like `label_column`.
    decimal : {".", ","}, optional
        Decimal mark of the numbers in a table.
    encoding : str, optional
        Encoding of a table that is not in UTF-8, such as ``"latin-1"``; UTF-16 with a byte
        order mark needs none.

    Returns
    -------
    X : ndarray or list of ndarrays, float64
        Shape (n_cases, n_steps) for one channel and (n_cases, n_channels, n_steps) for
        several; for unequal lengths, a list of (n_channels, n_steps_i) arrays.
    y : ndarray of shape (n_cases,) or None
        Class labels: integers if all are whole numbers (``1``, ``1.0`` and ``1e0`` are the
        same class), and strings otherwise. They do not depend on the file format. With
        ``labels="optional"``, y is None if there are no labels, and an array of objects
        with None for missing labels if some are missing.

    Raises
    ------
    DataError, FileNotFoundError
        If there is no file, or its content does not match its suffix; `MissingValueError`
        if it has missing values that `missing` does not allow.

    Examples
    --------
    >>> import io
    >>> from greenfold.datasets import read_series
    >>> X, y = read_series(io.BytesIO(b"1.0\t0.5\t0.6\n2.0\t0.1\t0.2\n"), format="tsv")
    >>> X.shape, y.tolist()
    ((2, 2), [1, 2])
    """
    must(decimal in (None, ".", ","), "decimal", "be '.' or ','", repr(decimal))
    left_out = [drop] if isinstance(drop, int | str) else [*drop]
    named = label_column, series_column, left_out, decimal, encoding
    found = read_with_origin(
        path, missing, labels, format, TableHints(n_steps, classes, *named)
    )
    return found.series, found.labels


def read_with_origin(
    path: File, missing: Missing, labels: Labels, format: str | None, known: TableHints
) -> Parsed:
    """Return the series and labels of `read_series`, and its conclusions about a table."""
    suffix = suffix_of(path, format)
    what = f"the suffix {suffix!r}" if format is None else f"the format {format!r}"
    cure = f"use one of .{', .'.join(FORMATS)}, or name the format with "
    none = f"`{name_of(path)}` has {what}, which has no reader: {cure}"
    refuse_data(suffix not in _PARSERS, none, Argument("format"), ".")
    for argument, value, kinds in ("missing", missing, Missing), ("labels", labels, Labels):
        wanted = "be {!r}, {!r} or {!r}".format(*get_args(kinds))
        must(value in get_args(kinds), argument, wanted, repr(value))
    hints = [known] if suffix in TABLES else []
    only = f"is for tables ({', '.join(TABLES)}), not for {suffix}"
    for name in ("label_column", "series_column", "drop", "decimal", "encoding"):
        wrong = getattr(known, name) not in (None, (), []) and not hints
        refuse_data(wrong, Argument(name), f" {only}; leave it out.")
    name, content = read_bytes(path)
    with naming(name), readable(suffix):
        found = _PARSERS[suffix](content, labels, *hints)
        y = None if labels == "none" else found.labels
        if y is not None and found.classes is not None:
            y = canonical_labels(y, declared=found.classes, labels=labels)
        return found._replace(series=assemble(found, missing), labels=y)


def open_series(
    path: str | Path,
    labels: ArrayLike | Path | None = None,
    *,
    X: str = "X",
    y: str | None = None,
    drop: Sequence[str] | str = (),
) -> tuple[OpenedSeries, NDArray[Any] | None]:
    """Open a file of series of equal length that may not fit into memory.

    Parameters
    ----------
    path : str or Path
        ``.npy`` is mapped into memory. ``.h5``, ``.hdf5`` (extra ``greenfold[hdf5]``) and
        ``.zarr`` (extra ``greenfold[zarr]``) hold two arrays. ``.parquet`` (extra
        ``greenfold[parquet]``) holds a table with a column of labels and the series, either
        as one column of lists or as all other columns, with one column per step.
    labels : array_like or path, optional
        Labels, or the path of an ``.npy`` file of labels, if they are not in the file
        itself.
    X : str
        Name of the series in the file.
    y : str, optional
        Name of the labels in the file; otherwise the one of ``y``, ``label``, ``class`` and
        ``target`` that it has, as in `read_series`.
    drop : str or sequence of str, default ()
        Columns of a Parquet table to leave out, such as dates.

    Returns
    -------
    X : OpenedSeries
        The series; slices are read from the file on access.
    y : ndarray (n_cases,) or None
        Labels, read at once; None if there are none.

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
        raise FileNotFoundError(f"`{path}` does not exist: pass the path of a data file.")
    if isinstance(labels, str | Path):
        name, content = read_bytes(labels)
        with naming(name):
            labels = arrays.load_array(content)
    opener = _OPENERS.get(path.suffix.lower())
    with naming(path):
        if opener is None:
            has = f"has the suffix {path.suffix!r}, which cannot be read in slices"
            raise DataError(f"{has}: use one of {', '.join(OPENED)}, or read_series.")
        left_out = [drop] if isinstance(drop, str) else [*drop]
        is_table = path.suffix.lower() == ".parquet"
        only = " is for .parquet, whose columns have names; leave it out."
        refuse_data(left_out and not is_table, Argument("drop"), only)
        with readable(path.suffix):
            more = (left_out,) if is_table else ()
            source, found = opener(path, X, y, *more)
        series = OpenedSeries(str(path), source)
        if labels is None and found is None:
            return series, None
        written = np.asarray(found if labels is None else labels)
        if written.dtype.kind == "O":  # text from HDF5 and Parquet
            written = np.array(written.tolist())
        arrays.check_labels(written, len(series))
        return series, canonical_labels(written)
