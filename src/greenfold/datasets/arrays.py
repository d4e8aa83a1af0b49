"""Series as arrays: NumPy's ``.npz`` and ``.npy``, and files read slice by slice."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.files import replacing
from .errors import DataError
from .parsing import Collection, Labels, Missing, Parsed, Source, naming, read, reason


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
    missing, labels : str
        As for :func:`greenfold.datasets.read_series`, and so are results and errors.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list of (n_channels, n_steps_i) arrays if the file has ``lengths``.
    y : ndarray of shape (n_cases,) or None
    """
    return read(path, _parse_npz, missing, labels)


def read_npy(
    path: Source, *, missing: Missing = "error", labels: Labels = "optional"
) -> tuple[Collection, None]:
    """Read series from an ``.npy`` file, which holds no labels.

    Parameters
    ----------
    path : str, Path or binary stream
        An array of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps).
    missing, labels : str
        As for :func:`greenfold.datasets.read_series`, and so are results and errors;
        ``labels="required"`` is always an error.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
    y : None
    """
    return read(path, _parse_npy, missing, labels)


def _parse_npz(content: bytes, labels: Labels) -> Parsed:
    arrays = load_arrays(content)
    if "X" not in arrays or ("y" not in arrays and labels == "required"):
        needed = "`X` and `y`" if labels == "required" else "`X`"
        raise DataError(
            f"holds the arrays {sorted(arrays)} but needs {needed}: write it with "
            "write_npz or numpy.savez(path, X=X, y=y)."
        )
    X, y, lengths = (
        _cases(arrays["X"], "has an `X`"),
        arrays.get("y"),
        arrays.get("lengths"),
    )
    if y is not None:
        check_labels(y, len(X))
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


def _parse_npy(content: bytes, labels: Labels) -> Parsed:
    X = _cases(load_array(content), "holds an array")
    if labels == "required":
        raise DataError(
            "holds series without labels, as .npy does: write both into one file with "
            "numpy.savez(path, X=X, y=y)."
        )
    return Parsed(X)


def _cases(X: NDArray[Any], what: str) -> NDArray[np.float64]:
    """Series as (n_cases, n_channels, n_steps)."""
    _check_numbers(X, what)
    n_channels = X.shape[1] if X.ndim == 3 else 1
    return X.astype(np.float64).reshape(len(X), n_channels, X.shape[-1])


def _check_numbers(X: Any, what: str, *, empty: bool = True) -> None:
    wrong = len(X.shape) not in (2, 3) or X.dtype.kind not in "fiu"
    if wrong or (0 in X.shape and not empty):
        raise DataError(
            f"{what} of shape {X.shape} and type {X.dtype}: it must be numbers of shape "
            "(n_cases, n_steps) or (n_cases, n_channels, n_steps)."
        )


def check_labels(y: NDArray[Any], n_cases: int) -> None:
    """Refuse what is not one number or string per series."""
    if y.shape != (n_cases,) or y.dtype.kind not in "iufUSb":
        raise DataError(
            f"has labels of shape {y.shape} and type {y.dtype} for {n_cases} series: there "
            "must be one number or string per series."
        )


def load_arrays(
    content: bytes, how: str = "greenfold.datasets.write_npz"
) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` file, or a DataError that says how to write it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {
                name.removesuffix(".npy"): _load_array(archive.read(name), name)
                for name in archive.namelist()
            }
    # Damaged bytes surface as almost any exception of zipfile, zlib, ast and NumPy.
    except Exception as error:
        raise _unreadable(".npz", error, how) from error


def load_array(content: bytes) -> NDArray[Any]:
    """The array of an ``.npy`` file, or a DataError that says how to write it."""
    try:
        return _load_array(content, "the array")
    except Exception as error:  # as for .npz
        raise _unreadable(".npy", error, "numpy.save") from error


def _load_array(content: bytes, what: str) -> NDArray[Any]:
    """One array of NumPy's format.

    A damaged header can claim any shape, and NumPy would allocate it before it finds the
    data missing: the size is compared first.
    """
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    if not 0 <= math.prod(shape) * dtype.itemsize <= len(content):
        raise ValueError(f"{what} is incomplete")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _unreadable(suffix: str, error: Exception, how: str) -> DataError:
    return DataError(
        f"cannot be read as {suffix} without pickled objects ({reason(error)}): write it "
        f"again with {how}."
    )


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
    arrays: dict[str, NDArray[Any]] = {}
    if isinstance(X, list):
        series = [np.atleast_2d(np.asarray(one, dtype=np.float64)) for one in X]
        if len({len(one) for one in series}) != 1:
            raise ValueError("`X` must be a list of series that have the same channels.")
        arrays["lengths"] = np.array([one.shape[1] for one in series])
        X = np.full((len(series), len(series[0]), arrays["lengths"].max()), np.nan)
        for row, one in zip(X, series, strict=True):
            row[:, : one.shape[1]] = one
    arrays["X"] = np.asarray(X, dtype=np.float64)
    if y is not None:
        arrays["y"] = np.asarray(y)
        with naming("y"):
            check_labels(arrays["y"], len(arrays["X"]))
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


class OpenedSeries:
    """Series in a file, read slice by slice.

    Where an array of series is expected, it stands for one that is too large for memory:
    `SampleStimuli`, `ReservoirClassifier` and `PooledReservoirClassifier` read it in
    slices.

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
        _check_numbers(self, "holds series", empty=False)

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
            raise DataError(
                f"`{self.path}` cannot be read ({reason(error)}): write it again."
            ) from error

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


def open_npy(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Map the file into memory."""
    del X, y
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def open_hdf5(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Open two arrays of an HDF5 file."""
    return _members(optional_import("h5py", "HDF5", "hdf5").File(path, "r"), X, y)


def open_zarr(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Open two arrays of a Zarr group."""
    zarr = optional_import("zarr", "Zarr", "zarr")
    return _members(zarr.open_group(str(path), mode="r"), X, y)


def _members(group: Any, X: str, y: str) -> tuple[Any, Any]:
    names = sorted(group)
    if X not in names or not hasattr(group[X], "shape"):
        raise DataError(f"holds {names} but no array `{X}`: name the series with `X`.")
    return group[X], group[y][:] if y in names else None


def open_parquet(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Open a table: a column of labels, and a column of lists or one column per step."""
    table = optional_import("pyarrow.parquet", "Parquet", "parquet").ParquetFile(path)
    names = table.schema_arrow.names
    series = _ParquetTable(table, [X] if X in names else [n for n in names if n != y])
    if y not in names:
        return series, None
    column = table.read(columns=[y]).column(0)
    if column.null_count:
        raise DataError(f"has labels that are missing in its column `{y}`.")
    return series, column.to_numpy()


class _ParquetTable:
    """Columns of a Parquet file as a matrix, of which slices can be read.

    Rows are read on from where the last slice ended, so that one after the other costs one
    pass, in the memory of a slice.
    """

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
