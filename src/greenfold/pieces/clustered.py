"""Series as a dask array, on the workers of a cluster or by a scheduler of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._arrays import BATCH_BYTES, check_device_name

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
