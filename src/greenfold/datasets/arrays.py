"""Files of arrays, read whole (``.npz``, ``.npy``) or in slices (HDF5, Zarr, Parquet)."""

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

from .._base.checks import must, needs
from .._base.files import replacing
from .._base.messages import Argument, listed
from .parsed import (
    LABEL_NAMES,
    ROW_NAMES,
    TIME_NAMES,
    DataError,
    Labels,
    Parsed,
    naming,
    readable,
    reason,
    refuse_data,
)


def parse_npz(content: bytes, labels: Labels) -> Parsed:
    """Parse an ``.npz`` file as `write_npz` makes it."""
    arrays = load_arrays(content)
    needed = {"X", "y"} if labels == "required" else {"X"}
    has = f"holds the arrays {sorted(arrays)} but needs `{'` and `'.join(sorted(needed))}`"
    cure = "write it with write_npz or numpy.savez(path, X=X, y=y)."
    refuse_data(not needed <= set(arrays), f"{has}: {cure}")
    X, y, lengths = _cases(arrays["X"]), arrays.get("y"), arrays.get("lengths")
    if y is not None:
        check_labels(y, len(X))
    if lengths is None:
        return Parsed(X, y)
    valid = lengths.shape == (len(X),) and lengths.dtype.kind in "iu"
    wanted = f"one whole number from 1 to {X.shape[-1]} for each of the {len(X)} series"
    wrong = not valid or np.any(lengths < 1) or np.any(lengths > X.shape[-1])
    refuse_data(wrong, f"has `lengths` that do not fit its `X`: there must be {wanted}.")
    cut = [one[:, :length] for one, length in zip(X, lengths, strict=True)]
    return Parsed(cut, y, unequal=True)


def parse_npy(content: bytes, labels: Labels) -> Parsed:
    """Parse an ``.npy`` file of series without labels."""
    X = _cases(load_array(content))
    none = "holds series without labels, like any .npy file"
    cure = "write both into one file with numpy.savez(path, X=X, y=y)."
    refuse_data(labels == "required", f"{none}: {cure}")
    return Parsed(X)


def _cases(X: NDArray[Any]) -> NDArray[np.float64]:
    """Return series as (n_cases, n_channels, n_steps)."""
    _check_numbers(X)
    n_channels = X.shape[1] if X.ndim == 3 else 1
    return X.astype(np.float64).reshape(len(X), n_channels, X.shape[-1])


def _check_numbers(X: NDArray[Any] | OpenedSeries, *, empty: bool = True) -> None:
    wrong = len(X.shape) not in (2, 3) or X.dtype.kind not in "fiu"
    wanted = "numbers of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps)."
    has = f"holds series of shape {X.shape} and type {X.dtype}: they must be {wanted}"
    refuse_data(wrong or (0 in X.shape and not empty), has)


def check_labels(y: NDArray[Any], n_cases: int) -> None:
    """Raise unless there is one number or string per series."""
    has = f"has labels of shape {y.shape} and type {y.dtype} for {n_cases} series"
    wrong = y.shape != (n_cases,) or y.dtype.kind not in "iufUSb"
    refuse_data(wrong, f"{has}: there must be one number or string per series.")


def load_arrays(
    content: bytes, how: str = "greenfold.datasets.write_npz"
) -> dict[str, NDArray[Any]]:
    """Return all arrays of an ``.npz`` file; errors advise to write it with ``how``."""
    with readable(".npz without pickled objects", f"write it again with {how}"):
        archive = zipfile.ZipFile(io.BytesIO(content))
        names = {name.removesuffix(".npy"): name for name in archive.namelist()}
        return {key: _load(archive.read(name), name) for key, name in names.items()}


def load_array(content: bytes) -> NDArray[Any]:
    """Return the array of an ``.npy`` file."""
    with readable(".npy without pickled objects", "write it again with numpy.save"):
        return _load(content, "the array")


def _load(content: bytes, what: str) -> NDArray[Any]:
    # A damaged header can declare any shape, and NumPy would allocate it before noticing
    # that data are missing. Compare the size first.
    npy, stream = np.lib.format, io.BytesIO(content)
    first = npy.read_magic(stream) == (1, 0)
    read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if not 0 <= math.prod(shape) * dtype.itemsize <= len(content):
        raise ValueError(f"{what} is incomplete")
    stream.seek(0)
    return npy.read_array(stream, allow_pickle=False)


def write_npz(
    path: str | Path,
    X: ArrayLike | Sequence[NDArray[np.float64]],
    y: ArrayLike | None = None,
) -> None:
    """Write series and labels so that :func:`read_series` reads them back.

    The file holds the arrays ``X``, ``y`` and, for series of unequal length, ``lengths``:
    series i is ``X[i, ..., :lengths[i]]``. Nothing in it is pickled.

    Parameters
    ----------
    path : str or Path
        Path that ends in ``.npz``. An existing file is replaced in one step.
    X : array of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        Series; for unequal lengths, a list of (n_channels, n_steps_i) arrays.
    y : array of shape (n_cases,), optional
        Labels; if omitted, the file holds no labels.
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
            check_labels(arrays["y"], len(arrays["X"]))
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


class OpenedSeries:
    """Series in a file too large for memory, read slice by slice.

    Attributes
    ----------
    path : str
    shape : tuple of int
        (n_cases, n_steps) or (n_cases, n_channels, n_steps).
    dtype : numpy dtype
    chunks : tuple of int or None
        Shape of the chunks in which the file stores the series.
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

    def __getitem__(self, rows: slice | NDArray[Any]) -> NDArray[Any]:
        """Return the series of a slice, as an array in memory."""
        try:
            return np.asarray(self._source[rows])
        except (IndexError, TypeError):
            raise
        except Exception as error:  # from any of the libraries
            what = f"`{self.path}` cannot be read ({reason(error)}): write it again."
            raise DataError(what) from error

    def __repr__(self) -> str:
        return f"OpenedSeries({self.path!r}, shape={self.shape}, dtype={self.dtype})"


def open_npy(path: Path, X: str, y: str | None) -> tuple[Any, Any]:
    """Return series, to be read in slices, and labels; the other openers do the same."""
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def open_group(path: Path, X: str, y: str | None) -> tuple[Any, Any]:
    """Open two arrays of an HDF5 file or a Zarr group."""
    is_zarr = path.suffix.lower() == ".zarr"
    with needs("Zarr", "zarr") if is_zarr else needs("HDF5", "hdf5"):
        library = import_module("zarr" if is_zarr else "h5py")
    group = library.open_group(str(path), mode="r") if is_zarr else library.File(path, "r")
    names = sorted(group)
    if X not in names or not hasattr(group[X], "shape"):
        raise DataError(f"holds {names} but no array `{X}`: name the series with `X`.")
    labels = _label_name([name for name in names if name != X], y)
    return group[X], None if labels is None else group[labels][:]


def _label_name(names: Sequence[str], given: str | None) -> str | None:
    """Return the name of the labels in a file, or None if it has none."""
    if given is not None:
        has = f"holds {listed(sorted(names))} but no `{given}`: name the labels with "
        refuse_data(given not in names, has, Argument("y"), ".")
        return given
    known = LABEL_NAMES - {"y"} if "x" in names else LABEL_NAMES  # x and y are two channels
    found = [name for name in names if name.casefold() in known]
    several = f"names {len(found)} columns as labels, {listed(found)}: choose one with "
    refuse_data(len(found) > 1, several, Argument("y"), ".")
    return found[0] if found else None


def open_parquet(
    path: Path, X: str, y: str | None, drop: Sequence[str] = ()
) -> tuple[Any, Any]:
    """Open a table: a column of labels, and a column of lists or one column per step."""
    with needs("Parquet", "parquet"):
        table = import_module("pyarrow.parquet").ParquetFile(path)
    kinds = {one.name: str(one.type) for one in table.schema_arrow}
    absent = [name for name in drop if name not in kinds]
    none = f"has no column {absent[0]!r}" if absent else ""
    refuse_data(absent, f"{none} to leave out: its columns are {listed(kinds)}.")
    names = [name for name in kinds if name not in drop]
    labels = _label_name([name for name in names if name != X], y)
    columns = [X] if X in names else [name for name in names if name != labels]
    columns = [name for name in columns if name.casefold() not in ROW_NAMES]
    refuse_data(not columns, f"has no column of values among {listed(names)}.")
    lists = [name for name in columns if "list" in kinds[name]]
    if lists and len(columns) > 1:
        one = f"holds lists in its column {lists[0]!r} among other columns of values: "
        how = Argument("X", lists[0]), " if they are the series, or leave others out with "
        refuse_data(True, one, "use ", *how, Argument("drop"), ".")
    numeric = ("int", "float", "double", "decimal")
    wrong = [name for name in columns if not any(one in kinds[name] for one in numeric)]
    text = f"has a column {wrong[0]!r} of type {kinds[wrong[0]]}" if wrong else ""
    cure = f"{text}: if it holds the labels, use ", Argument("y", (wrong or [""])[0])
    refuse_data(wrong, *cure, "; if not, use ", Argument("drop", wrong), ".")
    times = [name for name in columns if name.casefold() in TIME_NAMES]
    long = f"has the columns of times {times}: if each line is one sample, write it as .csv"
    refuse_data(times, f"{long}; if not, use ", Argument("drop", times), ".")
    series = _ParquetTable(table, columns)
    if labels is None:
        return series, None
    column = table.read(columns=[labels]).column(0)
    some = f"has missing labels in its column `{labels}`: fill them."
    refuse_data(column.null_count, some)
    return series, column.to_numpy()


class _ParquetTable:
    """Columns of a Parquet file as a matrix; consecutive slices take one pass in total."""

    def __init__(self, table: Any, columns: list[str]) -> None:
        self._table, self._columns = table, columns
        sizes = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
        self._edges = np.cumsum([0, *sizes])
        head = self._matrix(next(table.iter_batches(batch_size=1, columns=columns)))
        self.shape, self.dtype = (table.metadata.num_rows, head.shape[1]), head.dtype
        self.chunks = (max(sizes), head.shape[1]) if sizes else None
        # Position of the reader: the next row, the rest of a block, and further blocks.
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
        """Yield the next rows, in blocks."""
        while n_rows:
            block = self._left if len(self._left) else next(self._blocks)
            if block.shape[1] != self.shape[1]:
                raise ValueError("its series are of unequal length")
            yield block[:n_rows]
            self._left, n_rows = block[n_rows:], max(0, n_rows - len(block))
