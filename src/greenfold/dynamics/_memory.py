"""How many cases to carry at a time, and how much of their way to keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from .._arrays import on_gpu, working_bytes

#: Cases carried at a time. With 256 rows a product is near its peak, and what lies between
#: two products is still in the cache of the processor: with 100 neurons, 1000 rows or more
#: took 1.4 times as long for each. On a GPU small products leave most of it idle.
_HOST_ROWS, _DEVICE_ROWS = 256, 8192
#: States that one step holds beside its tape.
WORKING = 10


@dataclass(frozen=True)
class Room:
    """What there is room for.

    Attributes
    ----------
    n_cases : int
    n_places : int
        Steps of the course, sub-steps counted.
    n_slopes : int
        States' worth of slopes that a place leaves on the tape.
    state_bytes : float
        Size of the state of one case.
    budget : float
        Bytes to use.
    rows : int
        Cases of an efficient batch.
    """

    n_cases: int
    n_places: int
    n_slopes: int
    state_bytes: float
    budget: float
    rows: int

    @classmethod
    def of(cls, X: Any, n_places: int, n_slopes: int, state_bytes: float) -> Room:
        """Room where ``X`` lives."""
        rows = _DEVICE_ROWS if on_gpu(X) else _HOST_ROWS
        n_cases = X.shape[0]
        size = (n_cases, n_places, n_slopes, state_bytes)
        return cls(*size, working_bytes(X), min(rows, n_cases))

    def rows_holding(self, n_states: float) -> int:
        """Cases of a batch where each holds so many states."""
        return max(1, min(self.rows, int(self.budget / (n_states * self.state_bytes))))

    def _kept(self) -> np.ndarray:
        """States kept of one case with tapes of 1 … n_places places."""
        length = np.arange(1, self.n_places + 1)
        return np.ceil(self.n_places / length) + self.n_slopes * length

    def tape_for_all(self) -> int:
        """Longest tape with which all cases can be kept at once; 0 where none can."""
        held = self.n_cases * self._kept() + self.rows * WORKING
        fitting = np.flatnonzero(held * self.state_bytes <= self.budget)
        return int(fitting[-1]) + 1 if len(fitting) else 0

    def tape_for_batches(self) -> tuple[int, int]:
        """Rows of a batch and the length of its tape, one batch kept at a time."""
        held = self._kept() + WORKING
        rows = self.rows_holding(float(held.min()))
        fitting = np.flatnonzero(rows * held * self.state_bytes <= self.budget)
        return rows, int(fitting[-1] if len(fitting) else np.argmin(held)) + 1


def even_batches(n_cases: int, rows: int) -> Iterator[slice]:
    """Slices of nearly equal size, at most ``rows`` long."""
    count = ceil(n_cases / rows)
    edges = np.linspace(0, n_cases, count + 1).round().astype(int).tolist()
    for start, stop in pairwise(edges):
        yield slice(start, stop)
