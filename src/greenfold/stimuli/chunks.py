"""Series in chunks: in memory, in a file read slice by slice, or on dask's workers.

`Chunks` maps functions over the chunks and reduces their results where the chunks are.
Series in memory are one chunk. `moments_of_classes` reduces them to class moments.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce, wraps
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import (
    BATCH_BYTES,
    Array,
    Sliced,
    is_dask,
    is_sliced,
    like,
    namespace,
    on_device,
    to_host,
)
from .._base.messages import SeriesError
from ..math.class_moments import ClassMoments

#: Memory for the series of one chunk of a file, in float64.
_CHUNK_BYTES = 2**24
#: Number of parts that one dask task merges.
_FAN = 8
#: Memory, besides the series, for reducing a chunk to its moments.
_WORKING_BYTES = 2**24


class _Promise:
    """A value that is computed on request, and stored if it is `kept`."""

    def __init__(
        self, work: Callable[..., Any], arguments: Sequence[object], kept: bool
    ) -> None:
        self._work, self._arguments, self.kept = work, arguments, kept
        self._found: list[Any] = []

    def value(self) -> Any:
        if self._found:
            return self._found[0]
        found = self._work(*map(_value, self._arguments))
        if self.kept:
            self._found.append(found)
        return found


def _value(part: object) -> Any:
    return part.value() if isinstance(part, _Promise) else part


class Chunks:
    """Series (n_cases, n_channels, n_steps) of this process, cut along their first axis.

    `each` returns a promise of a function's result for each chunk; `total` and `collect`
    compute the results and bring them here. Results for series in memory are kept. A file
    is read one chunk at a time, so memory is bounded. ``series`` holds one array (n,
    n_channels, n_steps), or its promise, per chunk, and ``sizes`` the number of series per
    chunk. ``device`` names the device that processes the chunks, such as "cuda".
    """

    device = "cpu"

    def __init__(
        self,
        series: list[Any],
        sizes: Sequence[int],
        shape: Sequence[int],
        in_memory: bool = False,
    ) -> None:
        self.series, self.sizes, self.in_memory = series, tuple(sizes), in_memory
        n_cases, n_channels, n_steps = (int(n) for n in shape)
        self.shape = n_cases, n_channels, n_steps

    @classmethod
    def of_array(cls, X: Array) -> Chunks:
        """Return series in memory, (n_cases, n_channels, n_steps), as one chunk."""
        return Chunks([X], [X.shape[0]], X.shape, in_memory=True)

    @classmethod
    def of_slices(cls, source: Sliced) -> Chunks:
        """Return chunks of a `numpy.memmap`, `h5py.Dataset`, `zarr.Array` or similar."""
        n_cases, *shape = _check_source(source).shape
        shape = [1, *shape][-2:]
        rows = max(1, _CHUNK_BYTES // (8 * int(np.prod(shape))))
        # Read whole chunks of a chunked file, unless its chunks are much larger.
        own = getattr(source, "chunks", None)
        if own and own[0] and int(own[0]) <= 4 * rows:
            rows = max(1, rows // int(own[0])) * int(own[0])
        edges = [*range(0, int(n_cases), rows), int(n_cases)]

        def read(part: slice) -> np.ndarray:
            values = np.asarray(source[part])
            return values[:, None, :] if values.ndim == 2 else values

        parts = [_Promise(read, (slice(a, b),), kept=False) for a, b in pairwise(edges)]
        return Chunks(parts, np.diff(edges).tolist(), (n_cases, *shape))

    @property
    def firsts(self) -> list[int]:
        """Position of the first series of each chunk."""
        return np.cumsum([0, *self.sizes[:-1]]).tolist()

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Cut values, one per series, like the chunks."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def share(self, value: object) -> Any:
        """Send a value that every chunk needs, once, to the processes with the chunks."""
        return value

    def each(
        self, work: Callable[..., Any], lists: Sequence[Sequence[Any]], *shared: object
    ) -> list[Any]:
        """Promise ``work(*entries, *shared)`` per chunk; it may run in another process."""
        entries = zip(*lists, strict=True)
        return [_Promise(work, (*own, *shared), self.in_memory) for own in entries]

    def keep(self, parts: list[Any], n_bytes: float) -> list[Any]:
        """Return the same promises, computed only once if there is room for ``n_bytes``."""
        for part in parts:
            part.kept = part.kept or n_bytes <= BATCH_BYTES
        return parts

    def join(self, parts: list[Any], work: Callable[[list[Any]], Any]) -> Any:
        """Return a promise of ``work`` applied to the list of all parts."""
        return _Promise(lambda *found: work(list(found)), parts, self.in_memory)

    def total(
        self,
        parts: list[Any],
        merge: Callable[[Any, Any], Any],
        finish: Callable[..., Any] | None = None,
        *shared: object,
    ) -> Any:
        """Merge all parts in a fixed order, and return ``finish(merged, *shared)``."""
        merged = self._merged(parts, merge)
        if finish is not None:
            (merged,) = self.each(finish, ([merged],), *shared)
        return self.collect([merged])[0]

    def _merged(self, parts: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
        return reduce(merge, map(_value, parts))

    def collect(self, parts: list[Any]) -> list[Any]:
        """Compute all parts and bring the results here."""
        return [_value(part) for part in parts]

    def rows(
        self,
        index: np.ndarray,
        series: list[Any] | None = None,
        take: Callable[[Any, np.ndarray], np.ndarray] | None = None,
    ) -> list[Any]:
        """Return the series at sorted positions ``index``, in one part per chunk."""
        edges = np.cumsum([0, *self.sizes])
        within = np.searchsorted(index, edges)
        wanted = [
            index[a:b] - first
            for a, b, first in zip(within[:-1], within[1:], edges[:-1], strict=True)
        ]
        some = [k for k, rows in enumerate(wanted) if len(rows)]
        chosen = [(series or self.series)[k] for k in some]
        return self.each(take or _rows, (chosen, [wanted[k] for k in some]))

    def take(self, index: np.ndarray) -> np.ndarray:
        """Bring the series at sorted positions ``index`` here and return them."""
        return np.concatenate(self.collect(self.rows(index)))


class DaskChunks(Chunks):
    """The chunks of a dask array along its first axis.

    ``client`` is the client in use by default. On its cluster, kept results stay with the
    workers, and the results of a lost worker are computed again. Without a cluster, a
    scheduler in this process does the work, and only small results are kept.
    """

    def __init__(self, source: Any, client: Any = None, device: str = "cpu") -> None:
        got = f"a dask {type(source).__name__}, use X.to_dask_array(lengths=True)"
        check.must(hasattr(source, "chunks"), "X", "be a dask array", got, TypeError)
        _check_source(source)
        self.device = check.device_name(device)
        self._client = client if client is not None else _default_client()
        self._check_client()
        if self._client is None:  # otherwise each worker checks for itself
            on_device(np.empty(0), device)
        three = source[:, None, :] if source.ndim == 2 else source
        # A chunk holds all channels and steps of a series.
        X = three.rechunk({1: -1, 2: -1})
        chunks = zip(X.chunks[0], X.to_delayed().ravel(), strict=True)
        known = [(int(n), part) for n, part in chunks if n]
        super().__init__([part for _, part in known], [n for n, _ in known], X.shape)

    def _check_client(self) -> None:
        client = self._client
        if client is not None and not hasattr(client, "persist"):
            got = f"{type(client).__name__}, use distributed.Client(address)"
            check.must(False, "client", "be a distributed.Client", got, TypeError)
        status = getattr(client, "status", "running")
        if status != "running":
            advice = "connect a new distributed.Client(address) and make the stimuli again"
            raise ConnectionError(f"`client` is {status}: {advice}.")

    def share(self, value: object) -> Any:
        """Return the value as the result of a task, which workers pass to each other."""
        return self._compute([_task(_same)(value)], keep=True)[0]

    def each(
        self, work: Callable[..., Any], lists: Sequence[Sequence[Any]], *shared: object
    ) -> list[Any]:
        """Return one task per chunk."""
        task = _task(work)
        return [task(*own, *shared) for own in zip(*lists, strict=True)]

    def keep(self, parts: list[Any], n_bytes: float) -> list[Any]:
        """Start computing the parts, and leave the results with the workers."""
        if self._client is None and n_bytes > BATCH_BYTES:
            return parts
        return self._compute(parts, keep=True)

    def join(self, parts: list[Any], work: Callable[[list[Any]], Any]) -> Any:
        """Return one task that applies ``work`` to the list of all parts."""
        return _task(work)(parts)

    def _merged(self, parts: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
        """Merge in a fixed tree of tasks."""
        task = _task(reduce)
        while len(parts) > 1:
            groups = [parts[i : i + _FAN] for i in range(0, len(parts), _FAN)]
            parts = [task(merge, group) for group in groups]
        return parts[0]

    def collect(self, parts: list[Any]) -> list[Any]:
        """Compute all parts and bring the results here."""
        return self._compute(parts, keep=False)

    def _compute(self, parts: list[Any], *, keep: bool) -> list[Any]:
        """Compute the parts, and bring the results here or leave them with the workers."""
        local: Any = import_module("dask.base")
        self._check_client()
        with naming_what_was_lost():
            if self._client is None:
                return list((local.persist if keep else local.compute)(*parts))
            if keep:
                return list(self._client.persist(parts))
            return self._client.gather(self._client.compute(parts))


def _task(work: object) -> Callable[..., Any]:
    return import_module("dask").delayed(work, pure=False, traverse=False)


def _default_client() -> Any:
    """Return the client in use, or None."""
    with suppress(ImportError, ValueError):  # not installed, or none is in use
        return import_module("distributed").default_client()


def _same(value: object) -> object:
    return value


def _rows(X: Array, rows: np.ndarray) -> np.ndarray:
    return to_host(namespace(X).take(X, like(rows, X), axis=0))


@contextmanager
def naming_what_was_lost() -> Generator[None]:
    """Explain in one sentence that a cluster or all workers with a chunk were lost."""
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
        ended = "a chunk of `X` killed every worker that took it, perhaps by using more"
        advice = "make smaller chunks with X.rechunk, or give the workers more memory"
        worker = f"memory than a worker has ({error.last_worker})"
        raise MemoryError(f"{ended} {worker}: {advice}.") from None
    except (CancelledError, CommClosedError, TimeoutError) as error:
        lost = f"the dask cluster that holds `X` was lost ({type(error).__name__})"
        advice = "connect to a cluster, and make the array and the stimuli again"
        raise ConnectionError(f"{lost}: {advice}.") from error


def chunks_of(X: object) -> Chunks | None:
    """Return series in chunks, or None for series in memory.

    A NumPy memory map counts as in memory, because joblib passes arrays that way.
    """
    if is_dask(X):
        return DaskChunks(X)
    return Chunks.of_slices(X) if is_sliced(X) else None


def _check_source(X: Sliced, *, sizes_known: bool = True) -> Sliced:
    """Return the source, or raise before reading if it cannot hold series."""
    shape = tuple(X.shape)
    wanted = "have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps)"
    check.must(len(shape) in (2, 3), "X", wanted, f"shape {shape}")
    if np.isnan(np.array(shape if sizes_known else shape[1:], dtype=float)).any():
        unknown = "`X` has chunks of unknown size, so labels cannot be matched to its"
        raise ValueError(f"{unknown} series; call X.compute_chunk_sizes() first.")
    if 0 in shape:
        raise ValueError(f"`X` is empty: it has shape {shape}.")
    wanted = "hold real numbers of fixed width"
    got = f"dtype {X.dtype}, use X.astype(float)"
    check.must(np.dtype(X.dtype).kind in "iufb", "X", wanted, got, TypeError)
    return X


def host_labels(y: object) -> Any:
    """Return the labels in this process, whatever type they have."""
    if is_dask(y):
        with naming_what_was_lost():
            return y.compute()
    return np.asarray(y[:]) if is_sliced(y) else y


# Moments


def moments_of_classes(
    chunks: Chunks, codes: np.ndarray, n_classes: int
) -> list[ClassMoments]:
    """Return moments of the classes 0, 1, … in one pass, added up where the series are."""
    lists = chunks.series, chunks.firsts, chunks.split(small_codes(codes, n_classes))
    budget = BATCH_BYTES if chunks.in_memory else _WORKING_BYTES
    parts = chunks.each(moments_of_chunk, lists, n_classes, chunks.shape[1:], budget)
    return chunks.total(parts, merge_classes)


def small_codes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return class codes in a small integer type, to send to the chunks."""
    return codes.astype(np.int8 if n_classes < 128 else np.int32)


def moments_of_chunk(
    chunk: ArrayLike | Array,
    first: int,
    codes: np.ndarray,
    n_classes: int,
    shape: tuple[int, int],
    budget: int = _WORKING_BYTES,
) -> list[ClassMoments]:
    """Return the moments of each class in one chunk that starts at series ``first``."""
    X = checked_chunk(chunk, first, shape)
    told = f"`X` declares {len(codes)} series for the chunk from series {first} on, which"
    advice = "call X.compute_chunk_sizes()"
    check.require(X.shape[0] == len(codes), f"{told} holds {X.shape[0]}; {advice}.")
    return [
        ClassMoments.of(X, np.flatnonzero(codes == c), first=first, budget=budget)
        for c in range(n_classes)
    ]


def checked_chunk(chunk: ArrayLike | Array, first: int, shape: tuple[int, int]) -> Any:
    """Return a chunk as (n, n_channels, n_steps), or raise an error."""
    X = check.stimuli(chunk, shape[1])
    got = f"shape {tuple(X.shape)} from series {first} on"
    wanted = f"have {shape[0]} channel(s) in every chunk"
    check.must(X.shape[1] == shape[0], "X", wanted, got)
    return X


def merge_classes(one: list[ClassMoments], other: list[ClassMoments]) -> list[ClassMoments]:
    """Merge moments class by class."""
    return [a.merge(b) for a, b in zip(one, other, strict=True)]


# Methods of estimators

Predict = TypeVar("Predict", bound=Callable[..., Any])


def by_chunks(method: Predict) -> Predict:
    """Let a method (self, X) that returns one row per series also take chunks.

    For a dask array it returns a lazy dask array; for a file read in slices, an array.
    """

    @wraps(method)
    def wrapper(self: object, X: ArrayLike | Array | Sliced) -> Any:
        if is_dask(X):
            return _lazily(self, method, X)
        if not is_sliced(X):
            return method(self, X)
        chunks = Chunks.of_slices(X)
        lists = chunks.series, chunks.firsts
        parts = chunks.each(_run, lists, self, method, len(X.shape))
        return np.concatenate(chunks.collect(parts))

    return wrapper  # pyright: ignore[reportReturnType]


def _run(
    X: np.ndarray, first: int, estimator: object, method: Callable[..., Any], ndim: int
) -> np.ndarray:
    with _counted_from(first):
        return method(estimator, X[:, 0, :] if ndim == 2 else X)


@contextmanager
def _counted_from(first: int) -> Generator[None]:
    """Add ``first`` to the index of the series in an error message."""
    try:
        yield
    except SeriesError as error:
        raise error.counted_from(first) from None


def _lazily(estimator: object, method: Callable[..., Any], X: Any) -> Any:
    """Return a dask array with the rows that the method returns for each chunk."""
    da: Any = import_module("dask.array")
    _check_source(X, sizes_known=False)
    # A series of zeros gives the shape of the rows, and an early error if X does not fit.
    row = method(estimator, np.zeros((1, *(int(n) for n in X.shape[1:])), X.dtype))
    none, whole = row[:0], X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    return da.map_blocks(
        _block,
        whole,
        chunks=(whole.chunks[0], *((n,) for n in none.shape[1:])),
        drop_axis=list(range(1, X.ndim)),
        new_axis=list(range(1, none.ndim)) or None,
        dtype=none.dtype,
        meta=none,
        estimator=_task(estimator),  # sent to each worker once
        method=method.__name__,
        none=none,
    )


def _block(
    X: Array,
    estimator: object,
    method: str,
    none: np.ndarray,
    block_info: dict[int, Any] | None = None,
) -> np.ndarray:
    if not X.shape[0]:
        return none
    place = block_info[0]["array-location"][0][0] if block_info else 0
    with _counted_from(0 if np.isnan(place) else int(place)):
        return getattr(estimator, method)(X)
