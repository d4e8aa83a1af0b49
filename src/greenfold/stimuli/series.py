"""Series of one or several lengths, aligned at their ends.

All end at the readout. A series that is shorter than the longest one starts later, and
what comes before its start is marked as absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import like


@dataclass(frozen=True, eq=False)
class Series:
    """A collection of series, aligned at their ends.

    Attributes
    ----------
    values : ndarray (n_cases, n_channels, n_steps)
        Zero where a series has not begun.
    present : ndarray (n_cases, n_steps) of bool, or None
        Where a series has begun; None where all have the full length.
    place : array or None
        An array of the GPU on which networks are to be run; None runs them on the host.
    """

    values: np.ndarray
    present: np.ndarray | None = None
    place: Any = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_channels(self) -> int:
        """Number of channels C."""
        return self.values.shape[1]

    @property
    def n_steps(self) -> int:
        """Number of steps K of the longest series."""
        return self.values.shape[2]

    def __getitem__(self, cases: Any) -> Series:
        present = None if self.present is None else self.present[cases]
        return Series(self.values[cases], present, self.place)

    def moved(self, centre: np.ndarray, scale: float) -> np.ndarray:
        """(x − centre) · scale, and zero where a series has not begun.

        The network rests before a series begins, which is what zero input means.
        """
        values = (self.values - centre) * scale
        return values if self.present is None else values * self.present[:, None, :]

    def to_network(self, centre: np.ndarray, scale: float) -> Any:
        """`moved`, where a network is to be run with it."""
        values = self.moved(centre, scale)
        return values if self.place is None else like(values, self.place)
