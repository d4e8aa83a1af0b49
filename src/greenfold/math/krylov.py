"""The largest eigenvalues of a symmetric matrix that can only be multiplied with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

#: Number of columns of the basis, in blocks, from which on it is cut to two blocks.
_BLOCKS = 24
#: Number of products before the iteration may stop, so that it sees more than its start.
_LEAST = 2
#: Size below which a direction counts as spanned by the others.
_SPANNED = 1e-10


class Largest(NamedTuple):
    """The largest eigenvalues, ascending, with their vectors in columns.

    ``highest`` is the largest value plus its residual, so that it is not too small.
    ``beside`` are the second results of the product for the vectors.
    """

    values: np.ndarray
    vectors: np.ndarray
    beside: np.ndarray
    highest: float


def orthonormal(columns: np.ndarray, beyond: np.ndarray | None = None) -> np.ndarray:
    """Return an orthonormal basis of what the columns span beyond an orthonormal basis."""
    sizes = np.linalg.norm(columns, axis=0)
    found = columns[:, sizes > 0] / sizes[sizes > 0]
    for _ in range(2):  # the second pass removes the rounding errors of the first
        if beyond is not None:
            found = found - beyond @ (beyond.T @ found)
        found, triangle = np.linalg.qr(found)
        found = found[:, np.abs(np.diag(triangle)) > _SPANNED]
    return found


def largest_eigenpairs(
    product: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    k: int,
    *,
    tol: float,
    rise: float = np.inf,
    enough: float = -np.inf,
    max_products: int = 500,
) -> Largest:
    """Return the k largest eigenpairs of a positive semi-definite matrix.

    This is block Lanczos iteration with full orthogonalisation, from a ``start`` (n, …). It
    stops when ``highest`` is within the relative ``tol`` of the largest value found, or
    when this value has risen by the relative ``rise`` above that of the start, or when
    ``highest`` is at most ``enough`` or the largest value is above it. ``product`` returns
    the matrix times a block of columns, and whatever else is linear in the block.
    """
    block = orthonormal(start)
    width = block.shape[1]
    made = product(block)
    # Columns are added in place: for 10⁵ neurons, copies would cost as much as products.
    most = (_BLOCKS + 2) * width
    basis, image, beside = (
        np.empty((most, len(one))).T for one in (block, made[0], made[1])
    )
    small, size = np.zeros((most, most)), 0
    first = highest = 0.0
    values, turn = np.zeros(width), np.eye(width)
    for step in range(max_products):
        added = slice(size, size + block.shape[1])
        basis[:, added], image[:, added], beside[:, added] = block, *made
        size = added.stop
        cross = basis[:, :size].T @ image[:, added]
        small[:size, added], small[added, :size] = cross, cross.T
        if not np.isfinite(cross).all():
            return Largest(np.full(1, np.inf), basis[:, :1], beside[:, :1], np.inf)
        values, turn = np.linalg.eigh((small[:size, :size] + small[:size, :size].T) / 2)
        values, turn = values[::-1], turn[:, ::-1]
        first = float(values[0]) if not step else first
        seen = turn[:, :width]
        rest = image[:, :size] @ seen - (basis[:, :size] @ seen) * values[:width]
        error = float(np.linalg.norm(rest[:, 0]))
        highest = float(values[0]) + error
        block = orthonormal(rest, basis[:, :size])
        done = error <= tol * values[0] or values[0] - first > rise * first
        done = done or highest <= enough or values[0] > enough > -np.inf
        if (done and step >= _LEAST) or not block.shape[1] or step == max_products - 1:
            break
        if size > _BLOCKS * width:
            kept = turn[:, : 2 * width]
            for one in (basis, image, beside):
                one[:, : 2 * width] = one[:, :size] @ kept
            size = 2 * width
            small[:size, :size] = np.diag(values[:size])
        made = product(block)
    leading = turn[:, :k][:, ::-1]
    vectors, found = basis[:, :size] @ leading, beside[:, :size] @ leading
    return Largest(values[:k][::-1], vectors, found, highest)
