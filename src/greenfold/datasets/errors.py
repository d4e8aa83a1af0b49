"""What is raised when data cannot be used as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["DataError", "MissingValueError"]


class DataError(ValueError):
    """A data file, archive or array does not hold what it should."""


class MissingValueError(DataError):
    """A data file has missing values and the caller did not say what to do with them.

    Attributes
    ----------
    positions : ndarray of shape (n_missing, 3) or None
        Series, channel and time step of every missing value, counted from 0.
    """

    # `positions` has a default so that the error survives pickling, which calls the
    # class with the message alone and restores the attribute afterwards.
    def __init__(self, message: str, positions: NDArray[np.intp] | None = None) -> None:
        super().__init__(message)
        self.positions = positions
