"""Weights as a dense or a sparse array: what both can do, and when W is only multiplied."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from .._base import checks as check
from .._base.arrays import is_sparse

#: Weights as a network keeps them: an ndarray, or a sparse array of SciPy in CSR format.
Weights: TypeAlias = Any
#: Constructors of sparse arrays.
csr: Any = sparse.csr_array

#: A network counts as large and sparse from this number of neurons on, up to this share of
#: connections. It is then drawn as a sparse array, and unfolded by products with W.
SPARSE_NEURONS, SPARSE_SHARE = 1000, 0.1


def is_large_and_sparse(n_neurons: int, share: float) -> bool:
    """Return whether products with W are cheaper than dense propagators."""
    return n_neurons >= SPARSE_NEURONS and share <= SPARSE_SHARE


def by_products(weights: Weights) -> bool:
    """Return whether to compute with products with W instead of dense propagators."""
    if not is_sparse(weights):
        return False
    n, entries = weights.shape[0], float(weights.nnz)
    too_large = 8 * n**2 > check.DENSE_BYTES
    return too_large or is_large_and_sparse(n, entries / n**2)


def dense(weights: Weights, what: str, instead: str) -> np.ndarray:
    """Return weights as a dense array; refuse a large sparse matrix, with advice."""
    if not is_sparse(weights):
        return weights
    check.formable(weights.shape[0], what, instead)
    return weights.toarray()


def diagonal(values: np.ndarray) -> Weights:
    """Return a sparse diagonal array in CSR format."""
    make: Any = sparse.diags_array
    return make(values, format="csr")


def scaled_rows(factors: float | np.ndarray, weights: Weights) -> Weights:
    """Return the weights with each row times its factor, of the same type."""
    if not is_sparse(weights):
        return (weights.T * factors).T
    return csr(diagonal(_each(factors, weights)) @ weights)


def scaled_columns(weights: Weights, factors: float | np.ndarray) -> Weights:
    """Return the weights with each column times its factor, of the same type."""
    if isinstance(factors, float) and factors == 1.0:
        return weights
    if not is_sparse(weights):
        return weights * factors
    return csr(weights @ diagonal(_each(factors, weights)))


def plus_diagonal(weights: Weights, values: float | np.ndarray) -> Weights:
    """Return the weights with values added to the diagonal, of the same type."""
    added = _each(values, weights)
    if not is_sparse(weights):
        return weights + np.diag(added)
    return csr(weights + diagonal(added))


def _each(values: float | np.ndarray, weights: Weights) -> np.ndarray:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (weights.shape[0],))
