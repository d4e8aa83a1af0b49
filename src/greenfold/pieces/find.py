"""Whether something handed in as series lies in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import is_array
from .base import Pieces
from .sliced import SlicedPieces


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
        from .clustered import DaskPieces

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
        from .clustered import telling_what_was_lost

        with telling_what_was_lost():
            return y.compute()
    return np.asarray(y[:]) if is_sliced(y) else y
