"""What is asked of series in pieces, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .._arrays import like, namespace, to_host


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
