"""Products with a sparse W, in place of propagators, which are dense.

Rows of states lie side by side in memory, each neuron after another: scipy and cuSPARSE
then multiply them without a copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.arrays import Array, contiguous, is_host, namespace, sparse_like
from .propagators import HasArrays

#: Largest size in bytes of the states that a product carries at a time on the host. With
#: 20,000 neurons and 2 million connections, a column took 5.6 ms among 200 columns, which
#: do not fit into the cache, and 1.3 ms among 16 to 64.
CACHED = 2**23


def in_columns(y: Array) -> Any:
    """Return the transpose of rows (n_cases, N), contiguous in memory."""
    return contiguous(namespace(y).matrix_transpose(y))


@dataclass(frozen=True, eq=False)
class Product(HasArrays):
    """A sparse matrix M that acts on rows of states, as y Mᵀ; make one with `of`."""

    matrix: Any
    transposed: Any
    #: Copies on other devices and of other types, each made once.
    _copies: dict[tuple[str, str], Product] = field(
        default_factory=lambda: dict[tuple[str, str], Product](), repr=False
    )

    @classmethod
    def of(cls, matrix: Any) -> Product:
        """Return the product with a sparse matrix on the host; nothing is copied."""
        return cls(matrix, matrix.T)

    @property
    def n_rows(self) -> int:
        """Number of rows of M."""
        return int(self.matrix.shape[0])

    def __mul__(self, factor: float) -> Product:
        """Return the product with M times a factor."""
        return Product(self.matrix * factor, self.transposed * factor)

    def on(self, reference: Array, dtype: object) -> Product:
        """Return the product on the device of ``reference``, as ``dtype``."""
        if is_host(reference) and dtype == np.float64:
            return self
        place = "host" if is_host(reference) else str(reference.device)
        key = place, str(dtype)
        if key not in self._copies:
            self._copies[key] = self._copied(reference, dtype)
        return self._copies[key]

    def _copied(self, reference: Array, dtype: Any) -> Product:
        if is_host(reference):
            return Product.of(self.matrix.astype(dtype))
        moved = (
            sparse_like(one, reference, dtype) for one in (self.matrix, self.transposed)
        )
        return Product(*moved)

    def __call__(self, y: Array) -> Any:
        """Return y Mᵀ for rows y (n_cases, N)."""
        return namespace(y).matrix_transpose(self.matrix @ in_columns(y))

    def back(self, bar: Array) -> Any:
        """Return bar M, the adjoint."""
        return namespace(bar).matrix_transpose(self.transposed @ in_columns(bar))


def cached_rows(n_neurons: int) -> int:
    """Return the number of cases that a product on the host should carry at a time."""
    return max(8, CACHED // (8 * n_neurons))
