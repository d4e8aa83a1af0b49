"""Eigenmodes of a network, for looking at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base import checks as check


def abscissa(matrix: np.ndarray) -> float:
    """Largest real part of the eigenvalues."""
    return float(np.real(np.linalg.eigvals(matrix)).max())


@dataclass(frozen=True)
class Modes:
    """Eigenmodes of the connectivity: w_αᵀ W = λ_α w_αᵀ, slowest mode first.

    Attributes
    ----------
    eigenvalues : ndarray (n_neurons,), complex
        λ_α of W diag(φ') at rest, by decreasing real part. Where the neurons differ in
        their time constants, of 1 + (τ/τ_i)(W diag(φ') − 1) with their mean τ, so that
        here too a mode decays where Re λ_α < 1.
    left_vectors : ndarray (n_neurons, n_neurons), complex
        Row α is w_α, of unit length.
    time_constants : ndarray (n_neurons,)
        τ_α = τ / (1 − Re λ_α); infinite where Re λ_α ≥ 1.

    Notes
    -----
    Modes are for looking at a network. W is not normal, so its eigenvectors may be
    badly conditioned; no result of greenfold is computed from them.
    """

    eigenvalues: NDArray[np.complex128]
    left_vectors: NDArray[np.complex128]
    time_constants: NDArray[np.float64]
    _pace: Any = field(default=1.0, repr=False)

    def loading(self, u: Any) -> np.ndarray:
        """Loading ω_α = w_αᵀ u of an input projection (paper, figure 2c).

        Where the neurons differ in their time constants, u_i counts τ/τ_i times.

        Parameters
        ----------
        u : array_like (n_neurons,) or (n_neurons, n_channels)

        Returns
        -------
        ndarray (n_neurons,) or (n_neurons, n_channels), complex
        """
        vector = check.host_array(u, "u", ndim=(1, 2))
        check.input_projection(vector, len(self.eigenvalues))
        if isinstance(self._pace, np.ndarray):
            vector = (vector.T * self._pace).T
        return self.left_vectors @ vector
