"""Files of series that are opened and not read: slices are, when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .npz import label_values

__all__ = ["OPENED", "OpenedSeries", "open_series"]


class OpenedSeries:
    """Series in a file, read slice by slice.

    Where an array of series is expected, it stands for one that is too large for memory:
    `SampleStimuli`, `ReservoirClassifier` and `PooledReservoirClassifier` read it piece by
    piece.

    Attributes
    ----------
    path : str
    shape : tuple of int
        (n_cases, n_steps) or (n_cases, n_channels, n_steps).
    dtype : numpy dtype
    chunks : tuple of int or None
        Shape of the pieces in which the file holds the series.
    """

    def __init__(self, path: str, source: Any) -> None:
        self.path, self._source = path, source
        self.shape = tuple(int(n) for n in source.shape)
        self.dtype = np.dtype(source.dtype)
        chunks = getattr(source, "chunks", None)
        self.chunks = None if not chunks else tuple(int(n) for n in chunks)
        if len(self.shape) not in (2, 3) or 0 in self.shape or self.dtype.kind not in "fiu":
            raise DataError(
                f"`{path}` holds series of shape {self.shape} and type {self.dtype}: it "
                "must be numbers of shape (n_cases, n_steps) or (n_cases, n_channels, "
                "n_steps)."
            )

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
            raise _unreadable(Path(self.path), error) from error

    def __repr__(self) -> str:
        return f"OpenedSeries({self.path!r}, shape={self.shape}, dtype={self.dtype})"


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
        as one column of lists or as all other columns, one a step.
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
    DataError
        If the file does not hold what its suffix says.
    FileNotFoundError
        If there is no such file.

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
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        raise DataError(
            f"`{path}` has the suffix {path.suffix!r}, which is not read slice by slice: "
            f"use one of {', '.join(_OPENERS)}, or read_series."
        )
    try:
        source, found = opener(path, X, y)
    except (DataError, ImportError):
        raise
    except Exception as error:  # of any of the libraries
        raise _unreadable(path, error) from error
    series = OpenedSeries(str(path), source)
    if labels is not None:
        found = _labels_from(labels)
    if found is None:
        return series, None
    found = np.asarray(found)
    if found.dtype.kind == "O":  # text, as HDF5 and Parquet have it
        found = np.array([_text(label) for label in found.tolist()])
    if found.shape != (len(series),) or found.dtype.kind not in "iufUSb":
        raise DataError(
            f"`{path}` has labels of shape {found.shape} and type {found.dtype} for "
            f"{len(series)} series: there must be one number or string a series."
        )
    return series, label_values(found, str(path), "required")


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__
    return DataError(
        f"`{path}` cannot be read as {path.suffix} ({reason}): write it again."
    )


def _text(label: Any) -> Any:
    return label.decode("utf-8", "replace") if isinstance(label, bytes) else label


def _labels_from(labels: Any) -> Any:
    if not isinstance(labels, str | Path):
        return labels
    if not Path(labels).is_file():
        raise FileNotFoundError(f"`{labels}` does not exist: give a file of labels.")
    try:
        return np.load(labels, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(
            f"`{labels}` cannot be read as .npy without pickled objects: write the labels "
            "with numpy.save, as numbers or text."
        ) from error


def _open_npy(path: Path, X: str, y: str) -> tuple[Any, Any]:
    del X, y
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def _open_hdf5(path: Path, X: str, y: str) -> tuple[Any, Any]:
    try:
        import h5py
    except ImportError:
        raise ImportError("HDF5 needs h5py: pip install 'greenfold[hdf5]'.") from None
    return _members(h5py.File(path, "r"), path, X, y)


def _open_zarr(path: Path, X: str, y: str) -> tuple[Any, Any]:
    try:
        import zarr
    except ImportError:
        raise ImportError("Zarr needs zarr: pip install 'greenfold[zarr]'.") from None
    return _members(zarr.open_group(str(path), mode="r"), path, X, y)


def _members(group: Any, path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Series and labels of a file that holds arrays by name."""
    names = sorted(group)
    if X not in names or not hasattr(group[X], "shape"):
        raise DataError(
            f"`{path}` holds {names} but no array `{X}`: name the series with `X`."
        )
    return group[X], group[y][:] if y in names else None


def _open_parquet(path: Path, X: str, y: str) -> tuple[Any, Any]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError(
            "Parquet needs pyarrow: pip install 'greenfold[parquet]'."
        ) from None
    table = parquet.ParquetFile(path)
    names = table.schema_arrow.names
    own = [X] if X in names else [name for name in names if name != y]
    found = None
    if y in names:
        column = table.read(columns=[y]).column(0)
        if column.null_count:
            raise DataError(f"`{path}` has labels that are missing in its column `{y}`.")
        found = column.to_numpy()
    return _ParquetTable(table, own), found


class _ParquetTable:
    """Columns of a Parquet file as a matrix, of which slices can be read.

    Rows are read on from where the last slice ended, so that one after the other costs one
    pass, in the memory of a slice.
    """

    def __init__(self, table: Any, columns: list[str]) -> None:
        self._table, self._columns = table, columns
        sizes = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
        self._edges = np.cumsum([0, *sizes])
        self._next, self._rest = -1, iter(())
        self._left: NDArray[Any] | None = None
        head = self._matrix(next(table.iter_batches(batch_size=1, columns=columns)))
        self.shape, self.dtype = (table.metadata.num_rows, head.shape[1]), head.dtype
        self.chunks = (max(sizes), head.shape[1]) if sizes else None

    def _matrix(self, batch: Any) -> NDArray[Any]:
        columns = batch.columns
        if any(column.null_count for column in columns):
            raise DataError("values are missing; fill or drop them")
        if len(columns) == 1 and hasattr(columns[0], "flatten"):
            values = columns[0].flatten().to_numpy(zero_copy_only=False)
            if len(columns[0]) and len(values) % len(columns[0]):
                raise DataError("its series are of unequal length")
            return values.reshape(len(columns[0]), -1)
        return np.stack([one.to_numpy(zero_copy_only=False) for one in columns], axis=1)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, step = rows.indices(self.shape[0])
        if start >= stop:
            return np.empty((0, self.shape[1]), self.dtype)
        if start != self._next:
            self._seek(start, stop - start)
        found = []
        while start < stop:
            block = self._left if self._left is not None else next(self._rest)
            if block.shape[1] != self.shape[1]:
                raise DataError("its series are of unequal length")
            found.append(block[: stop - start])
            self._left = block[stop - start :] if len(block) > stop - start else None
            start += len(found[-1])
        self._next = stop
        return np.concatenate(found)[::step]

    def _seek(self, start: int, size: int) -> None:
        group = int(np.searchsorted(self._edges, start, side="right")) - 1
        batches = self._table.iter_batches(
            batch_size=size,
            row_groups=list(range(group, len(self._edges) - 1)),
            columns=self._columns,
        )
        self._rest: Iterator[NDArray[Any]] = (self._matrix(batch) for batch in batches)
        self._left, skip = None, start - int(self._edges[group])
        while skip:
            block = next(self._rest)
            self._left = block[skip:] if len(block) > skip else None
            skip = max(0, skip - len(block))


_OPENERS: dict[str, Callable[[Path, str, str], tuple[Any, Any]]] = {
    ".npy": _open_npy,
    ".h5": _open_hdf5,
    ".hdf5": _open_hdf5,
    ".zarr": _open_zarr,
    ".parquet": _open_parquet,
}

OPENED = tuple(_OPENERS)
"""Suffixes of the formats that are read slice by slice."""
