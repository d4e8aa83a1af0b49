"""How many cases to carry at a time, and how much of their way to keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import array_api_compat as compat
import numpy as np

from .._arrays import BATCH_BYTES

#: Share of the free memory of a GPU that one batch may take.
_DEVICE_SHARE = 0.25
#: Rows from which on a matrix product runs near its peak: a batch is not cut smaller for
#: the sake of a longer tape. Far more on a GPU, most of which a small product leaves idle.
_HOST_ROWS, _DEVICE_ROWS = 128, 4096
#: States that one step holds beside its tape.
WORKING = 10


def _on_gpu(X: Any) -> bool:
    if compat.is_torch_array(X):
        return X.device.type == "cuda"
    return compat.is_cupy_array(X)


def working_bytes(X: Any) -> float:
    """Memory that the work on one batch may take where ``X`` lives."""
    if not _on_gpu(X):
        return float(BATCH_BYTES)
    if compat.is_torch_array(X):
        import torch

        free = torch.cuda.mem_get_info(X.device)[0]
        held = torch.cuda.memory_reserved(X.device) - torch.cuda.memory_allocated(X.device)
        return _DEVICE_SHARE * (free + held)
    import cupy  # pyright: ignore[reportMissingImports]

    with X.device:
        free = cupy.cuda.runtime.memGetInfo()[0]
        held = cupy.get_default_memory_pool().free_bytes()
    return _DEVICE_SHARE * (free + held)


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
    enough_rows : int
        Size from which on a batch is efficient.
    """

    n_cases: int
    n_places: int
    n_slopes: int
    state_bytes: float
    budget: float
    enough_rows: int

    @classmethod
    def of(cls, X: Any, n_places: int, n_slopes: int, state_bytes: float) -> Room:
        """Room where ``X`` lives."""
        rows = _DEVICE_ROWS if _on_gpu(X) else _HOST_ROWS
        return cls(X.shape[0], n_places, n_slopes, state_bytes, working_bytes(X), rows)

    def _kept(self) -> np.ndarray:
        """States kept of one case with tapes of 1 … n_places places."""
        length = np.arange(1, self.n_places + 1)
        return np.ceil(self.n_places / length) + self.n_slopes * length

    def rows_holding(self, n_states: float) -> int:
        """Cases that fit where each holds so many states."""
        return max(1, int(self.budget / (n_states * self.state_bytes)))

    def tape_for_all(self) -> int:
        """Longest tape with which all cases can be kept at once; 0 where none can."""
        per_case = self.budget / (self.n_cases * self.state_bytes)
        working = WORKING * min(1.0, self.enough_rows / self.n_cases)
        return int(
            np.max(np.flatnonzero(self._kept() + working <= per_case) + 1, initial=0)
        )

    def tape_for_batches(self) -> tuple[int, int]:
        """Rows of a batch and the length of its tape, one batch kept at a time."""
        held = (self._kept() + WORKING) * self.state_bytes
        rows = int(self.budget / held[-1])
        if rows >= min(self.enough_rows, self.n_cases):
            return min(rows, self.n_cases), self.n_places
        rows = max(1, min(self.enough_rows, self.n_cases, int(self.budget / held.min())))
        fitting = np.flatnonzero(rows * held <= self.budget)
        return rows, int(fitting[-1] if len(fitting) else np.argmin(held)) + 1


def even_batches(n_cases: int, rows: float) -> Iterator[slice]:
    """Slices of nearly equal size, at most ``rows`` long."""
    count = ceil(n_cases / max(1, int(rows)))
    edges = np.linspace(0, n_cases, count + 1).round().astype(int).tolist()
    for start, stop in pairwise(edges):
        yield slice(start, stop)
