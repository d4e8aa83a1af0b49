"""What is asked of series in pieces, wherever they are.

Series read slice by slice, here: a memory map, a data set of HDF5 or Zarr, Parquet.

Series as a dask array, on the workers of a cluster or by a scheduler of this process.

Whether something handed in as series lies in pieces.

Methods of estimators on series in pieces: lazily of dask arrays, else piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce, wraps
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from .._base.arrays import (
    BATCH_BYTES,
    check_device_name,
    is_array,
    like,
    namespace,
    to_host,
)

#: Parts that are merged in one task.
_FAN = 8


class DaskPieces:
    """The chunks of a dask array along its first axis.

    Where a cluster works, what is to be kept stays with its workers, and what a lost worker
    held is computed again, because dask knows how. Otherwise a scheduler of this process
    works, and only what is small is kept.

    Parameters
    ----------
    X : dask array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
    client : distributed.Client, optional
        Whose cluster works; by default the one that is in use, if there is one.
    device : str
        To which a worker moves the chunks it keeps.
    """

    def __init__(self, X: Any, client: Any = None, device: str = "cpu") -> None:
        check_chunks(X)
        self.device = check_device_name(device)
        self._client = client if client is not None else _default_client()
        self._check_client()
        if X.ndim == 2:
            X = X[:, None, :]
        # Channels and steps of a series belong together.
        X = X.rechunk({1: -1, 2: -1})
        self.shape = (int(X.shape[0]), int(X.shape[1]), int(X.shape[2]))
        chunks = zip(X.chunks[0], X.to_delayed().ravel(), strict=True)
        known = [(int(n), part) for n, part in chunks if n]
        self.sizes = tuple(n for n, _ in known)
        self.series: list[Any] = [part for _, part in known]

    def _check_client(self) -> None:
        if self._client is not None and not hasattr(self._client, "persist"):
            raise TypeError(
                "`client` must be a distributed.Client; got "
                f"{type(self._client).__name__}, use distributed.Client(address)."
            )
        status = getattr(self._client, "status", "running")
        if status != "running":
            raise ConnectionError(
                f"`client` is {status}: make one that is connected, "
                "distributed.Client(address), and the stimuli again."
            )

    def share(self, value: Any) -> Any:
        """The value as the result of a task, which travels from worker to worker."""
        from dask.delayed import delayed

        promise = delayed(_same, pure=False, traverse=False)(value)
        return self._persist([promise])[0]

    def each(
        self, work: Callable[..., Any], lists: Sequence[Sequence[Any]], *shared: Any
    ) -> list[Any]:
        """One task a piece."""
        from dask.delayed import delayed

        task = delayed(work, pure=False, traverse=False)
        return [task(*own, *shared) for own in zip(*lists, strict=True)]

    def keep(self, parts: list[Any], n_bytes: float) -> list[Any]:
        """Begin to compute them, and leave the results with the workers."""
        if self._client is None and n_bytes > BATCH_BYTES:
            return parts
        return self._persist(parts)

    def join(self, parts: list[Any], work: Callable[[list[Any]], Any]) -> Any:
        """One task."""
        from dask.delayed import delayed

        return delayed(work, pure=False)(parts)

    def total(
        self,
        parts: list[Any],
        merge: Callable[[Any, Any], Any],
        finish: Callable[..., Any] | None = None,
        *shared: Any,
    ) -> Any:
        """A tree of tasks, always the same one."""
        from dask.delayed import delayed

        task = delayed(_merge_all, pure=False)
        while len(parts) > 1:
            groups = [parts[i : i + _FAN] for i in range(0, len(parts), _FAN)]
            parts = [task(merge, group) for group in groups]
        if finish is not None:
            parts = [delayed(finish, pure=False, traverse=False)(parts[0], *shared)]
        return self.collect(parts)[0]

    def collect(self, parts: list[Any]) -> list[Any]:
        """All of them."""
        self._check_client()
        with telling_what_was_lost():
            if self._client is None:
                from dask import base

                return list(base.compute(*parts))
            futures = self._client.compute(parts)
            return self._client.gather(futures)

    def _persist(self, parts: list[Any]) -> list[Any]:
        self._check_client()
        with telling_what_was_lost():
            if self._client is None:
                from dask import base

                return list(base.persist(*parts))
            return list(self._client.persist(parts))


def map_rows(
    work: Callable[..., Any], X: Any, none: np.ndarray, estimator: Any, method: str
) -> Any:
    """A dask array of ``work(chunk, estimator, method, none)``, a row for each series.

    Parameters
    ----------
    work : callable
    X : dask array
    none : ndarray (0, …)
        The result of no series.
    estimator : object
        Sent to each worker once.
    method : str
        Its name.
    """
    import dask.array as da
    from dask.delayed import delayed

    whole = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    map_blocks: Any = da.map_blocks
    return map_blocks(
        work,
        whole,
        chunks=(whole.chunks[0], *((n,) for n in none.shape[1:])),
        drop_axis=list(range(1, X.ndim)),
        new_axis=list(range(1, none.ndim)) or None,
        dtype=none.dtype,
        meta=none,
        estimator=delayed(estimator, pure=False, traverse=False),
        method=method,
        none=none,
    )


def check_chunks(X: Any, *, known: bool = True) -> None:
    """Refuse what cannot be cut into pieces, before anything is computed.

    ``known`` says that the sizes of the chunks must be, not only those of a series.
    """
    if X.ndim not in (2, 3):
        raise ValueError(
            "`X` must have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps); "
            f"got shape {tuple(X.shape)}."
        )
    if np.isnan(np.array(X.shape if known else X.shape[1:], dtype=float)).any():
        raise ValueError(
            "`X` has chunks of unknown size, so that labels cannot be told to belong to "
            "its series; call X.compute_chunk_sizes() first."
        )
    if 0 in X.shape:
        raise ValueError(f"`X` is empty: it has shape {tuple(X.shape)}.")
    if np.dtype(X.dtype).kind not in "iufb":
        raise TypeError(
            f"`X` must hold real numbers of fixed width; got dtype {X.dtype}, use "
            "X.astype(float)."
        )


def _default_client() -> Any:
    """The client in use; None where there is none."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _same(value: Any) -> Any:
    return value


def _merge_all(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = merge(found, part)
    return found


@contextmanager
def telling_what_was_lost() -> Iterator[None]:
    """One sentence where a cluster, or every worker with a piece, is gone."""
    try:
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError
    except ImportError:
        yield
        return
    try:
        yield
    except KilledWorker as error:
        raise MemoryError(
            "a chunk of `X` ended every worker that took it up, as one that needs more "
            f"memory than a worker has does ({error.last_worker}): make smaller chunks, "
            "X.rechunk, or give the workers more memory."
        ) from None
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise ConnectionError(
            "the dask cluster that holds `X` was lost "
            f"({type(error).__name__}): connect to one, and make the array and the stimuli "
            "again."
        ) from error


#: Memory that the series of one piece take, in float64.
_PIECE_BYTES = 2**24


class Later:
    """Something to be computed when it is asked for, and kept if it is wanted again."""

    def __init__(self, work: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self._work, self._arguments = work, arguments
        self._kept: list[Any] | None = None

    def keep(self) -> None:
        """Compute it once only."""
        self._kept = []

    def value(self) -> Any:
        """What it is."""
        if self._kept:
            return self._kept[0]
        found = self._work(*(_value(argument) for argument in self._arguments))
        if self._kept is not None:
            self._kept.append(found)
        return found


def _value(argument: Any) -> Any:
    return argument.value() if isinstance(argument, Later) else argument


class SlicedPieces:
    """Pieces of anything that has a shape, a dtype and can be sliced along its first axis.

    One piece after the other is read, so that memory is bounded however many there are.

    Parameters
    ----------
    source : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        Such as `numpy.memmap`, `h5py.Dataset`, `zarr.Array`.
    """

    def __init__(self, source: Any) -> None:
        shape = tuple(int(n) for n in source.shape)
        self._source = source
        self.device = "cpu"
        n_channels = 1 if len(shape) == 2 else shape[1]
        self.shape = (shape[0], n_channels, shape[-1])
        size = int(np.prod(self.shape[1:]))
        rows = max(1, _PIECE_BYTES // (8 * size))
        # A file in chunks is read in whole ones, where these are not far apart in size.
        chunks = getattr(source, "chunks", None)
        if chunks and chunks[0] and int(chunks[0]) <= 4 * rows:
            rows = max(1, rows // int(chunks[0])) * int(chunks[0])
        edges = [*range(0, shape[0], rows), shape[0]]
        self._slices = [slice(a, b) for a, b in pairwise(edges)]
        self.sizes = tuple(part.stop - part.start for part in self._slices)
        self.series: list[Any] = [Later(self._read, (part,)) for part in self._slices]

    def _read(self, part: slice) -> np.ndarray:
        values = np.asarray(self._source[part])
        return values[:, None, :] if values.ndim == 2 else values

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def each(
        self, work: Callable[..., Any], lists: Sequence[Sequence[Any]], *shared: Any
    ) -> list[Any]:
        """One `Later` a piece."""
        entries = zip(*lists, strict=True)
        return [Later(work, (*own, *shared)) for own in entries]

    def keep(self, parts: list[Any], n_bytes: float) -> list[Any]:
        """Keep them where they are small; else each is computed whenever it is needed."""
        if n_bytes <= BATCH_BYTES:
            for part in parts:
                part.keep()
        return parts

    def join(self, parts: list[Any], work: Callable[[list[Any]], Any]) -> Any:
        """One `Later`."""
        return Later(lambda *found: work(list(found)), parts)

    def total(
        self,
        parts: list[Any],
        merge: Callable[[Any, Any], Any],
        finish: Callable[..., Any] | None = None,
        *shared: Any,
    ) -> Any:
        """One part after the other."""
        found = reduce(merge, (part.value() for part in parts))
        return found if finish is None else finish(found, *shared)

    def collect(self, parts: list[Any]) -> list[Any]:
        """All of them."""
        return [part.value() for part in parts]


class Pieces(Protocol):
    """Series (n_cases, n_channels, n_steps), cut along their first axis.

    `each` says what is to be computed of every piece and computes nothing; what it returns
    are promises. `total` and `collect` compute, where the pieces are, and bring the result
    here. The order in which a total is added up is always the same, whoever is first.
    """

    @property
    def shape(self) -> tuple[int, int, int]:
        """Series, channels and steps."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of series of every piece."""
        ...

    @property
    def series(self) -> list[Any]:
        """Promises of the pieces, (n, n_channels, n_steps) each."""
        ...

    @property
    def device(self) -> str:
        """Where the work on a piece is done: "cpu", or such as "cuda"."""
        ...

    def share(self, value: Any) -> Any:
        """A value that every piece needs, brought to where they are once."""
        ...

    def each(
        self, work: Callable[..., Any], lists: Sequence[Sequence[Any]], *shared: Any
    ) -> list[Any]:
        """Promises of ``work(*entries, *shared)``, with one entry of each list a piece.

        Parameters
        ----------
        work : callable
            A function of a module: it may run in another process.
        lists : sequence of lists
            Promises, or plain values, one for each piece.
        *shared
            Plain values, or what `share` returned.
        """
        ...

    def keep(self, parts: list[Any], n_bytes: float) -> list[Any]:
        """The same promises, computed once where there is room for so many bytes."""
        ...

    def join(self, parts: list[Any], work: Callable[[list[Any]], Any]) -> Any:
        """A promise of ``work`` of all these parts together."""
        ...

    def total(
        self,
        parts: list[Any],
        merge: Callable[[Any, Any], Any],
        finish: Callable[..., Any] | None = None,
        *shared: Any,
    ) -> Any:
        """All parts merged two by two, and ``finish(merged, *shared)`` of it."""
        ...

    def collect(self, parts: list[Any]) -> list[Any]:
        """All parts, brought here."""
        ...


def split(values: np.ndarray, pieces: Pieces) -> list[np.ndarray]:
    """One entry a series, cut as the pieces are."""
    return np.split(values, np.cumsum(pieces.sizes)[:-1])


def first_of(pieces: Pieces) -> list[int]:
    """Position of the first series of every piece."""
    return np.cumsum([0, *pieces.sizes[:-1]]).tolist()


def rows_of(
    pieces: Pieces, index: np.ndarray, series: list[Any] | None = None
) -> list[Any]:
    """Promises of the series at sorted positions ``index``, one of each piece with some.

    ``series`` are promises of the pieces, where they are not those that were given.
    """
    edges = np.cumsum([0, *pieces.sizes])
    within = np.searchsorted(index, edges)
    wanted = [
        index[a:b] - first
        for a, b, first in zip(within[:-1], within[1:], edges[:-1], strict=True)
    ]
    some = [k for k, rows in enumerate(wanted) if len(rows)]
    chosen = [(series or pieces.series)[k] for k in some]
    return pieces.each(_rows, (chosen, [wanted[k] for k in some]))


def take(pieces: Pieces, index: np.ndarray) -> np.ndarray:
    """The series at sorted positions ``index``, brought here."""
    return np.concatenate(pieces.collect(rows_of(pieces, index)))


def _rows(X: Any, rows: np.ndarray) -> np.ndarray:
    return to_host(namespace(X).take(X, like(rows, X), axis=0))


def is_dask(value: Any) -> bool:
    """Whether ``value`` is a dask array, by what it has; dask itself need not be there."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


def is_sliced(value: Any) -> bool:
    """Whether ``value`` is to be read slice by slice, as a data set of HDF5 is."""
    # Tables of pandas and sparse arrays are in memory; the estimators know what to say.
    if isinstance(value, list | tuple) or hasattr(value, "iloc") or hasattr(value, "tocsr"):
        return False
    sliced = all(hasattr(value, name) for name in ("shape", "dtype", "__getitem__"))
    return sliced and not isinstance(value, np.ndarray) and not is_array(value)


def pieces_of(X: Any, client: Any = None, device: str = "cpu") -> Pieces | None:
    """Series in pieces, or None for those that are in memory.

    A dask array is, and whatever can be sliced but is no array of a library: a data set of
    HDF5 or Zarr, and what `greenfold.datasets.open_series` returns. A memory map of NumPy
    counts as an array, because joblib hands arrays of any kind around as such.
    """
    if is_dask(X):
        if not hasattr(X, "chunks"):
            raise TypeError(
                f"`X` must be a dask array; got a dask {type(X).__name__}, use "
                "X.to_dask_array(lengths=True)."
            )

        return DaskPieces(X, client, device)
    return SlicedPieces(check_source(X)) if is_sliced(X) else None


def check_source(X: Any) -> Any:
    """Refuse what cannot hold series, before anything is read."""
    shape = tuple(X.shape)
    if len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(
            "`X` must have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), "
            f"none of them zero; got shape {shape}."
        )
    if np.dtype(X.dtype).kind not in "iufb":
        raise TypeError(f"`X` must hold real numbers of fixed width; got dtype {X.dtype}.")
    return X


def host_labels(y: Any) -> Any:
    """Labels brought here, however they were given; only these are."""
    if is_dask(y):
        with telling_what_was_lost():
            return y.compute()
    return np.asarray(y[:]) if is_sliced(y) else y


Method = TypeVar("Method", bound=Callable[..., Any])


def by_pieces(method: Method) -> Method:
    """A method (self, X) whose result has a row for each series, for series in pieces too.

    Of a dask array it returns one, of which nothing is computed yet; of a file that is read
    slice by slice, an array.
    """

    @wraps(method)
    def wrapper(self: Any, X: Any) -> Any:
        if is_dask(X):
            return _lazily(self, method, X)
        if is_sliced(X):
            pieces = SlicedPieces(check_source(X))
            parts = pieces.each(_run, (pieces.series,), self, method, X.ndim)
            return np.concatenate(pieces.collect(parts))
        return method(self, X)

    return wrapper  # pyright: ignore[reportReturnType]


def _lazily(estimator: Any, method: Callable[..., Any], X: Any) -> Any:

    check_chunks(X, known=False)
    # One series of zeros says what the rows will be, and refuses what does not fit.
    row = method(estimator, np.zeros((1, *(int(n) for n in X.shape[1:])), X.dtype))
    return map_rows(_block, X, row[:0], estimator, method.__name__)


def _run(
    X: np.ndarray, estimator: Any, method: Callable[..., Any], ndim: int
) -> np.ndarray:
    return method(estimator, X[:, 0, :] if ndim == 2 else X)


def _block(X: Any, estimator: Any, method: str, none: np.ndarray) -> np.ndarray:
    return getattr(estimator, method)(X) if X.shape[0] else none
