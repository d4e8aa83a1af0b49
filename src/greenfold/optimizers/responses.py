"""Largest singular values of G(d) = Σ_n d_n G_n, of one signal d or of several stacked.

Large matrices, and those that are never formed, are searched by Lanczos iteration, and what
it may be wrong by is added: a bound stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from ..systems import ResponseSum

#: Up to this size a dense decomposition is as fast as an iterative one.
_DENSE_SIZE = 400
#: Relative residual at which the iteration ends.
_LANCZOS_TOL = 1e-10


class Responses:
    """G(d_j) of several signals, stacked; directions are flat, by channel, then input."""

    def __init__(self, sums: Sequence[ResponseSum], n_channels: int, n_inputs: int) -> None:
        self._sums, self._shape = sums, (n_channels, n_inputs)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            made = [one.matrix() for one in sums]
        self._matrices = None
        if not any(one is None for one in made):
            self._matrices = np.array(made) if len(made) > 1 else np.asarray(made[0])[None]
        if self._matrices is not None and not np.isfinite(self._matrices).all():
            raise OverflowError(
                "the response of this network to a pulse exceeds floating point before the "
                "readout; read it earlier, or scale the weights down."
            )

    def as_projection(self, flat: np.ndarray) -> np.ndarray:
        """Flat directions (n, …) as (n_inputs, n_channels, …)."""
        return flat.reshape(*self._shape, *flat.shape[1:]).swapaxes(0, 1)

    def drive(self, flat: np.ndarray) -> np.ndarray:
        """States (n_signals, n_outputs, k) for flat directions in k columns."""
        if self._matrices is not None:
            return self._matrices @ flat
        u = self.as_projection(flat)
        return np.stack([one.drive(u) for one in self._sums])

    def pull(self, states: np.ndarray, factors: np.ndarray | None = None) -> np.ndarray:
        """Σ_j factor_j G(d_j)ᵀ y_j of states (n_signals, n_outputs), flat."""
        if self._matrices is not None:
            pulled = np.stack([y @ m for m, y in zip(self._matrices, states, strict=True)])
        else:
            pairs = zip(self._sums, states, strict=True)
            pulled = np.stack([one.pull(y).T.ravel() for one, y in pairs])
        return pulled.sum(0) if factors is None else factors @ pulled

    def leading(
        self, guess: np.ndarray | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """σ_max of the stack, not below it; u, and left vectors (n_signals, n_outputs).

        A guess of u (n_inputs, n_channels) is where an iterative search begins.
        """
        stacked = None
        if self._matrices is not None:
            stacked = self._matrices.reshape(-1, self._matrices.shape[2])
        if stacked is not None and min(stacked.shape) <= _DENSE_SIZE:
            sigma, flat, left = leading_triplet(stacked)
            return sigma, self.as_projection(flat), left.reshape(len(self._sums), -1)
        start = None if guess is None else guess.T.ravel()
        square, flat = self._search(lambda y: self.pull(y), start)
        left = self.drive(flat[:, None])[:, :, 0]
        size = float(np.linalg.norm(left))
        return float(np.sqrt(square)), self.as_projection(flat), left / (size or 1.0)

    def spectrum(
        self, weights: np.ndarray, *, last: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of Σ_j GᵀG/w_j, ascending, with vectors.

        With ``last``, and of a large network, the largest alone, not below it.
        """
        if self._matrices is None:
            value, flat = self._search(lambda y: self.pull(y, 1 / weights))
            return np.array([value]), flat[:, None]
        square = np.tensordot(1 / weights, self._squares, axes=1)
        end = len(square) - 1
        return eigh(square, subset_by_index=[end, end] if last else None)

    @cached_property
    def _squares(self) -> np.ndarray:
        assert self._matrices is not None
        return np.stack([m.T @ m for m in self._matrices])

    def _search(
        self, pull: Callable[[np.ndarray], np.ndarray], start: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The largest eigenvalue of u ↦ pull(drive(u)), not below it, and its vector."""
        size = self._shape[0] * self._shape[1]

        def square(flat: np.ndarray) -> np.ndarray:
            return pull(self.drive(np.reshape(flat, (-1, 1)))[:, :, 0])

        made: Any = LinearOperator
        search: Any = eigsh
        operator = made((size, size), matvec=square, dtype=float)
        start = np.ones(size) if start is None else start
        values, vectors = search(operator, k=1, v0=start, tol=_LANCZOS_TOL)
        # An eigenvalue lies within the residual; the search found the largest.
        residual = np.linalg.norm(square(vectors[:, 0]) - values[0] * vectors[:, 0])
        return float(values[0] + residual), vectors[:, 0]


def leading_triplet(matrix: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Largest singular value of a dense matrix M with its right and left vector.

    It is the largest eigenpair of M Mᵀ, as accurate as by a decomposition of M.
    """
    # A power of two brings M to order one, so that no square leaves floating point.
    exponent = int(np.frexp(np.abs(matrix).max())[1])
    scaled = np.ldexp(matrix, -exponent)
    wide = scaled.shape[0] <= scaled.shape[1]
    square = scaled @ scaled.T if wide else scaled.T @ scaled
    last = len(square) - 1
    values, vectors = eigh(square, subset_by_index=[last, last], check_finite=False)
    one = vectors[:, 0]
    other = (scaled.T if wide else scaled) @ one
    size = float(np.linalg.norm(other))
    if size == 0:  # the matrix is zero
        return 0.0, np.eye(1, matrix.shape[1])[0], np.eye(1, matrix.shape[0])[0]
    other = other / size
    sigma = float(np.ldexp(max(size, np.sqrt(values[0])), exponent))
    return (sigma, other, one) if wide else (sigma, one, other)
