"""Every format by its suffix, read whole or slice by slice, and NumPy's own formats."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.checks import must
from .._base.files import replacing
from .parsing import (
    Collection,
    DataError,
    Labels,
    Missing,
    Parsed,
    Source,
    canonical_labels,
    name_of,
    naming,
    read,
    read_bytes,
    readable,
    reason,
    refuse,
    suffix_of,
)
from .text import read_arff, read_table, read_ts


def read_npz(
    path: Source, *, missing: Missing = "error", labels: Labels = "required"
) -> tuple[Collection, Any]:
    """Read series and labels from an ``.npz`` file.

    The file holds ``X`` of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps),
    ``y`` of shape (n_cases,) and, for series of unequal length, ``lengths`` of shape
    (n_cases,): series i is ``X[i, ..., :lengths[i]]``. Nothing is unpickled, so that a
    file from elsewhere cannot run code. Parameters, results and errors are those of
    :func:`greenfold.datasets.read_series`.
    """
    return read(path, _parse_npz, missing, labels)


def _parse_npz(content: bytes, labels: Labels) -> Parsed:
    arrays = load_arrays(content)
    if "X" not in arrays or ("y" not in arrays and labels == "required"):
        needed = "`X` and `y`" if labels == "required" else "`X`"
        raise DataError(
            f"holds the arrays {sorted(arrays)} but needs {needed}: write it with "
            "write_npz or numpy.savez(path, X=X, y=y)."
        )
    X, y, lengths = _cases(arrays["X"]), arrays.get("y"), arrays.get("lengths")
    if y is not None:
        _check_labels(y, len(X))
    if lengths is None:
        return Parsed(X, y)
    valid = lengths.shape == (len(X),) and lengths.dtype.kind in "iu"
    if not valid or np.any(lengths < 1) or np.any(lengths > X.shape[-1]):
        raise DataError(
            "has `lengths` that do not fit its `X`: there must be one whole number from 1 "
            f"to {X.shape[-1]} for each of the {len(X)} series."
        )
    cut = [one[:, :length] for one, length in zip(X, lengths, strict=True)]
    return Parsed(cut, y, unequal=True)


def read_npy(
    path: Source, *, missing: Missing = "error", labels: Labels = "optional"
) -> tuple[Collection, None]:
    """Read series from an ``.npy`` file, which holds no labels.

    The array has the shape (n_cases, n_steps) or (n_cases, n_channels, n_steps).
    Parameters, results and errors are those of :func:`greenfold.datasets.read_series`;
    ``labels="required"`` is always an error.
    """
    return read(path, _parse_npy, missing, labels)


def _parse_npy(content: bytes, labels: Labels) -> Parsed:
    X = _cases(load_array(content))
    cure = "write both into one file with numpy.savez(path, X=X, y=y)."
    refuse(labels == "required", f"holds series without labels, as .npy does: {cure}")
    return Parsed(X)


def _cases(X: NDArray[Any]) -> NDArray[np.float64]:
    """Series as (n_cases, n_channels, n_steps)."""
    _check_numbers(X)
    n_channels = X.shape[1] if X.ndim == 3 else 1
    return X.astype(np.float64).reshape(len(X), n_channels, X.shape[-1])


def _check_numbers(X: Any, *, empty: bool = True) -> None:
    wrong = len(X.shape) not in (2, 3) or X.dtype.kind not in "fiu"
    if wrong or (0 in X.shape and not empty):
        raise DataError(
            f"holds series of shape {X.shape} and type {X.dtype}: they must be numbers of "
            "shape (n_cases, n_steps) or (n_cases, n_channels, n_steps)."
        )


def _check_labels(y: NDArray[Any], n_cases: int) -> None:
    if y.shape != (n_cases,) or y.dtype.kind not in "iufUSb":
        raise DataError(
            f"has labels of shape {y.shape} and type {y.dtype} for {n_cases} series: there "
            "must be one number or string per series."
        )


def load_arrays(
    content: bytes, how: str = "greenfold.datasets.write_npz"
) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` file, or a DataError that says how to write it."""
    with readable(".npz without pickled objects", f"write it again with {how}"):
        archive = zipfile.ZipFile(io.BytesIO(content))
        names = {name.removesuffix(".npy"): name for name in archive.namelist()}
        return {key: _load(archive.read(name), name) for key, name in names.items()}


def load_array(content: bytes) -> NDArray[Any]:
    """The array of an ``.npy`` file, or a DataError that says how to write it."""
    with readable(".npy without pickled objects", "write it again with numpy.save"):
        return _load(content, "the array")


def _load(content: bytes, what: str) -> NDArray[Any]:
    # A damaged header can claim any shape, and NumPy would allocate it before it finds the
    # data missing: the size is compared first.
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    if not 0 <= math.prod(shape) * dtype.itemsize <= len(content):
        raise ValueError(f"{what} is incomplete")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


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
    must(path.suffix == ".npz", "path", "end in .npz", repr(str(path)))
    arrays: dict[str, NDArray[Any]] = {}
    if isinstance(X, list):
        series = [np.atleast_2d(np.asarray(one, dtype=np.float64)) for one in X]
        counts = sorted({len(one) for one in series})
        must(len(counts) == 1, "X", "have the same channels in all series", counts)
        arrays["lengths"] = np.array([one.shape[1] for one in series])
        X = np.full((len(series), len(series[0]), arrays["lengths"].max()), np.nan)
        for row, one in zip(X, series, strict=True):
            row[:, : one.shape[1]] = one
    arrays["X"] = np.asarray(X, dtype=np.float64)
    if y is not None:
        arrays["y"] = np.asarray(y)
        with naming("y"):
            _check_labels(arrays["y"], len(arrays["X"]))
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


class OpenedSeries:
    """Series in a file, read slice by slice, in place of an array too large for memory.

    Attributes
    ----------
    path : str
    shape : tuple of int
        (n_cases, n_steps) or (n_cases, n_channels, n_steps).
    dtype : numpy dtype
    chunks : tuple of int or None
        Shape of the chunks in which the file holds the series.
    """

    def __init__(self, path: str, source: Any) -> None:
        self.path, self._source = path, source
        self.shape = tuple(int(n) for n in source.shape)
        self.dtype = np.dtype(source.dtype)
        chunks = getattr(source, "chunks", None)
        self.chunks = None if not chunks else tuple(int(n) for n in chunks)
        _check_numbers(self, empty=False)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """The series of a slice, as an array in memory."""
        try:
            return np.asarray(self._source[rows])
        except (IndexError, TypeError):
            raise
        except Exception as error:  # of any of the libraries
            what = f"`{self.path}` cannot be read ({reason(error)}): write it again."
            raise DataError(what) from error

    def __repr__(self) -> str:
        return f"OpenedSeries({self.path!r}, shape={self.shape}, dtype={self.dtype})"


def optional_import(module: str, format: str, extra: str) -> Any:
    """Import what reads a format, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{format} needs {module.partition('.')[0]}: pip install 'greenfold[{extra}]'."
        ) from None


# Each of these opens a file: its series, of which slices can be read, and its labels.


def _open_npy(path: Path, X: str, y: str) -> tuple[Any, Any]:
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def _open_group(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Open two arrays of an HDF5 file or a Zarr group."""
    if path.suffix.lower() == ".zarr":
        group = optional_import("zarr", "Zarr", "zarr").open_group(str(path), mode="r")
    else:
        group = optional_import("h5py", "HDF5", "hdf5").File(path, "r")
    names = sorted(group)
    if X not in names or not hasattr(group[X], "shape"):
        raise DataError(f"holds {names} but no array `{X}`: name the series with `X`.")
    return group[X], group[y][:] if y in names else None


def _open_parquet(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Open a table: a column of labels, and a column of lists or one column per step."""
    table = optional_import("pyarrow.parquet", "Parquet", "parquet").ParquetFile(path)
    names = table.schema_arrow.names
    series = _ParquetTable(table, [X] if X in names else [n for n in names if n != y])
    if y not in names:
        return series, None
    column = table.read(columns=[y]).column(0)
    refuse(column.null_count, f"has labels that are missing in its column `{y}`.")
    return series, column.to_numpy()


class _ParquetTable:
    """Columns of a Parquet file as a matrix; slices in a row cost one pass together."""

    def __init__(self, table: Any, columns: list[str]) -> None:
        self._table, self._columns = table, columns
        sizes = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
        self._edges = np.cumsum([0, *sizes])
        head = self._matrix(next(table.iter_batches(batch_size=1, columns=columns)))
        self.shape, self.dtype = (table.metadata.num_rows, head.shape[1]), head.dtype
        self.chunks = (max(sizes), head.shape[1]) if sizes else None
        # Where reading stands: the next row, the part of a block left over, more blocks.
        self._next, self._left, self._blocks = -1, head[:0], iter(())

    def _matrix(self, batch: Any) -> NDArray[Any]:
        columns = batch.columns
        if any(column.null_count for column in columns):
            raise ValueError("values are missing; fill or drop them")
        if len(columns) == 1 and hasattr(columns[0], "flatten"):
            values = columns[0].flatten().to_numpy(zero_copy_only=False)
            if len(columns[0]) and len(values) % len(columns[0]):
                raise ValueError("its series are of unequal length")
            return values.reshape(len(columns[0]), -1)
        return np.stack([one.to_numpy(zero_copy_only=False) for one in columns], axis=1)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, step = rows.indices(self.shape[0])
        if start >= stop:
            return np.empty((0, self.shape[1]), self.dtype)
        if start != self._next:
            group = int(np.searchsorted(self._edges, start, side="right")) - 1
            batches = self._table.iter_batches(
                batch_size=stop - start,
                row_groups=list(range(group, len(self._edges) - 1)),
                columns=self._columns,
            )
            self._left, self._blocks = self._left[:0], map(self._matrix, batches)
            for _ in self._read_on(start - int(self._edges[group])):
                pass
        found = np.concatenate(list(self._read_on(stop - start)))
        self._next = stop
        return found[::step]

    def _read_on(self, n_rows: int) -> Iterator[NDArray[Any]]:
        """The next rows, in blocks."""
        while n_rows:
            block = self._left if len(self._left) else next(self._blocks)
            if block.shape[1] != self.shape[1]:
                raise ValueError("its series are of unequal length")
            yield block[:n_rows]
            self._left, n_rows = block[n_rows:], max(0, n_rows - len(block))


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
    ".npy": _Format(read_npy, _open_npy, labelled=False),
    ".h5": _Format(open=_open_group),
    ".hdf5": _Format(open=_open_group),
    ".zarr": _Format(open=_open_group),
    ".parquet": _Format(open=_open_parquet),
}

#: Suffixes of the formats that are read whole and hold labels, the preferred one first.
SUFFIXES = tuple(s for s, one in _FORMATS.items() if one.read and one.labelled)
#: What `read_series` takes as `format`.
FORMATS = tuple(s[1:] for s, one in _FORMATS.items() if one.read)
#: Suffixes of the formats that do not say whether there are labels.
TABLES = tuple(s for s, one in _FORMATS.items() if one.read is read_table)
#: Suffixes of the formats that are read slice by slice.
OPENED = tuple(s for s, one in _FORMATS.items() if one.open)


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
        Whether every series needs a label, may come without (``.npz`` without ``y``,
        ``@classLabel false``, ARFF without a class, ``?``), or no labels are wanted.
        :func:`read_table` says how it is decided whether a table has labels.
    format : str, optional
        ``"ts"``, ``"csv"`` and so on, for a stream or in place of the suffix.
    n_steps, classes : int, iterable, optional
        Length of the series and their classes, where they are known; for tables.

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
    DataError, FileNotFoundError
        If the file does not hold what its suffix says, or there is none;
        `MissingValueError` if it has missing values that `missing` does not allow.

    Examples
    --------
    >>> import io
    >>> from greenfold.datasets import read_series
    >>> X, y = read_series(io.BytesIO(b"1.0\t0.5\t0.6\n2.0\t0.1\t0.2\n"), format="tsv")
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
            labels = load_array(content)
    opener = _FORMATS.get(path.suffix.lower(), _Format()).open
    with naming(path):
        if opener is None:
            raise DataError(
                f"has the suffix {path.suffix!r}, which is not read slice by slice: use "
                f"one of {', '.join(OPENED)}, or read_series."
            )
        with readable(path.suffix):
            source, found = opener(path, X, y)
        series = OpenedSeries(str(path), source)
        if labels is None and found is None:
            return series, None
        written = np.asarray(found if labels is None else labels)
        if written.dtype.kind == "O":  # text, as HDF5 and Parquet have it
            decoded = (
                s.decode(errors="replace") if isinstance(s, bytes) else s for s in written
            )
            written = np.array(list(decoded))
        _check_labels(written, len(series))
        return series, canonical_labels(written)
