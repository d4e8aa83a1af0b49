"""Methods of estimators on series in pieces: lazily of dask arrays, else piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .find import check_source, is_dask, is_sliced
from .sliced import SlicedPieces

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
    from .clustered import check_chunks, map_rows

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
