"""Series in pieces, of which pooled estimators ask moments of all and some at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import to_host
from ..pieces import Pieces
from ..pieces.base import first_of, rows_of
from .collection import Collection, Sums, in_squares, joined_sums, whole_collection


class PieceCollection:
    """A `Collection` of which some series at a time are brought here.

    Parameters
    ----------
    pieces : Pieces
    """

    def __init__(self, pieces: Pieces) -> None:
        self.pieces, self.n_channels = pieces, pieces.shape[1]
        parts = pieces.each(_checked, (pieces.series, first_of(pieces)))
        # The workers of a cluster keep them: every part of the series asks for them all.
        self._parts = pieces.keep(parts, 8.0 * float(np.prod(pieces.shape)))

    def __len__(self) -> int:
        return self.pieces.shape[0]

    @property
    def lengths(self) -> np.ndarray:
        """Steps of every series, (n_cases,)."""
        return np.concatenate(
            self.pieces.collect(self.pieces.each(_lengths, (self._parts,)))
        )

    def take(self, chosen: np.ndarray) -> Collection:
        """The series at sorted positions ``chosen``, in that order, in memory."""
        return whole_collection(self.pieces.collect([self._promise(chosen)])[0])

    def _promise(self, chosen: np.ndarray) -> Any:
        return self.pieces.join(rows_of(self.pieces, chosen, self._parts), _stacked)

    def each_part(
        self, work: Callable[..., Any], parts: list[np.ndarray], lists: Any, *shared: Any
    ) -> list[Any]:
        """As `Collection.each_part`, where the pieces are."""
        series = [self._promise(part) for part in parts]
        own = list(zip(*lists, strict=True))
        made = self.pieces.each(_on_part, (series, own), work, *shared)
        return self.pieces.collect(made)

    def once(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """As `Collection.once`, where the pieces are."""
        entries = [[argument] for argument in arguments]
        return self.pieces.keep(self.pieces.each(work, entries), 0.0)[0]

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every channel over all series and steps."""
        return in_squares(self._moments, self._largest, self.n_channels)

    def _moments(self, unit: np.ndarray) -> Sums:
        parts = self.pieces.each(_moments, (self._parts,), unit)
        return self.pieces.total(parts, joined_sums)

    def _largest(self) -> np.ndarray:
        return self.pieces.total(self.pieces.each(_largest, (self._parts,)), np.fmax)


def _checked(X: Any, first: int) -> np.ndarray:
    """A piece on the host in floating point, if it is finite or missing."""
    host = to_host(X)
    if host.dtype.kind not in "iuf":
        raise TypeError(
            f"`X` must hold real numbers of fixed width; got dtype {host.dtype}."
        )
    if host.dtype not in (np.float32, np.float64):
        host = host.astype(np.float64)
    if np.isinf(host).any():
        case = first + int(np.argwhere(np.isinf(host))[0][0])
        raise ValueError(f"Input X contains infinity, in the series at index {case}.")
    empty = np.isnan(host).all(axis=(1, 2))
    if empty.any():
        case = first + int(np.argmax(empty))
        raise ValueError(f"X holds no value at all in the series at index {case}.")
    return host


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts)


def _on_part(X: np.ndarray, own: tuple[Any, ...], work: Any, *shared: Any) -> Any:
    return work(whole_collection(X), *own, *shared)


def _lengths(X: np.ndarray) -> np.ndarray:
    return whole_collection(X).lengths


def _moments(X: np.ndarray, unit: np.ndarray) -> Sums:
    return whole_collection(X).sums(unit)


def _largest(X: np.ndarray) -> np.ndarray:
    return whole_collection(X).largest()
