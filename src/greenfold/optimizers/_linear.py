"""The linear problem: κ = a·μ − (η/2) aᵀψa with a linear in v uᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator, svds

from ..greens import GreensSum
from ..margin import SoftMargin
from ..sphere import maximize_on_sphere
from ..stimuli import Stimuli, linear_map
from ..unfolding import Unfolding

#: G(d) is formed as a matrix while the powers that this takes stay below this size;
#: beyond, it is only applied to vectors.
_DENSE_BYTES = 512 * 2**20
#: Up to this size a full singular value decomposition is as fast as an iterative one.
_DENSE_NEURONS = 400


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Soft margin of a linear reservoir as a function of both projections.

    u is a matrix (n_neurons, n_channels) throughout; kernels a are flat, channels one
    after the other, like ``stimuli.mu``.
    """

    unfolding: Unfolding
    stimuli: Stimuli
    eta: float

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.unfolding.n_neurons

    def margin_of_kernel(self, a: np.ndarray) -> SoftMargin:
        """κ of a kernel a."""
        separation = float(a @ self.stimuli.mu)
        variance = float(0.5 * self.eta * (a @ self.stimuli.psi @ a))
        return SoftMargin(separation - variance, separation, variance)

    def kernel(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Kernel a with a_(c,n) = vᵀ G⁽¹⁾_n u_c."""
        return (self.unfolding.readout_response(v) @ u).T.ravel()

    def gradient_at(self, a: np.ndarray) -> np.ndarray:
        """Gradient d = μ − ηψa of κ with respect to a."""
        return self.stimuli.mu - self.eta * (self.stimuli.psi @ a)

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal v for a given u (paper, `soft-margin-gradient-v`)."""
        R = linear_map(self.unfolding, u)
        v = self._maximize(R)
        return v, self.margin_of_kernel(R @ v)

    def best_input(self, v: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal u for a given v (paper, cases A and B of the input projection)."""
        rows = self.unfolding.readout_response(v)
        n_channels = self.stimuli.n_channels
        # Row (c, n) holds l_n in the columns of channel c: a = L vec(uᵀ).
        L = np.zeros((n_channels, self.stimuli.n_steps, n_channels, self.n_neurons))
        for c in range(n_channels):
            L[c, :, c, :] = rows
        L = L.reshape(n_channels * self.stimuli.n_steps, -1)
        flat = self._maximize(L)
        return flat.reshape(n_channels, self.n_neurons).T, self.margin_of_kernel(L @ flat)

    def _maximize(self, L: np.ndarray) -> np.ndarray:
        """Maximise κ(L w) over unit vectors w.

        Only the row space of L matters. Where it is smaller than the space of w, the
        problem is solved there, with one more direction standing for all of the
        orthogonal complement, along which κ does not change.
        """
        mu, psi, eta = self.stimuli.mu, self.stimuli.psi, self.eta
        m, n = L.shape
        if m >= n:
            return maximize_on_sphere(L.T @ mu, eta * _gram(L, psi)).v
        basis, _ = np.linalg.qr(L.T, mode="complete" if n - m < m else "reduced")
        reduced = L @ basis[:, :m]
        b = np.append(reduced.T @ mu, 0.0)
        Q = np.zeros((m + 1, m + 1))
        Q[:m, :m] = eta * _gram(reduced, psi)
        found = maximize_on_sphere(b, Q).v
        w = basis[:, :m] @ found[:m]
        if found[m]:
            w = w + found[m] * _orthogonal_direction(basis[:, :m])
        return w

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v."""
        R = linear_map(self.unfolding, u)
        v = self._maximize(R)
        a = R @ v
        d = self.by_channel(self.gradient_at(a))
        return v, self.margin_of_kernel(a), (d @ self.unfolding.readout_response(v)).T

    def by_channel(self, d: np.ndarray) -> np.ndarray:
        """A flat kernel as (n_channels, n_steps)."""
        return d.reshape(self.stimuli.n_channels, self.stimuli.n_steps)

    @cached_property
    def _greens(self) -> GreensSum:
        return GreensSum(self.unfolding.linear._schedule, self.stimuli.n_steps)

    def best_atom(
        self, d: np.ndarray, guess: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Largest singular value of G(d) = Σ_n d_n G⁽¹⁾_n with its vectors.

        Parameters
        ----------
        d : ndarray (n_channels · n_steps,)
        guess : (u, v), optional
            Pair to start from, where the search is iterative.

        Returns
        -------
        sigma : float
            An upper estimate: for the iterative search, the Ritz value plus its residual.
        u : ndarray (n_neurons, n_channels)
        v : ndarray (n_neurons,)
        """
        n, n_channels = self.n_neurons, self.stimuli.n_channels
        if not d.any():
            axis = np.eye(1, n)[0]
            return 0.0, axis[:, None] * np.eye(1, n_channels), axis
        if self._greens.n_bytes > _DENSE_BYTES:
            return self._largest(self._operator(d), guess)
        matrix = np.concatenate([self._greens(row) for row in self.by_channel(d)], axis=1)
        if n > _DENSE_NEURONS:
            return self._largest(aslinearoperator(matrix), guess)
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        return float(values[0]), right[0].reshape(n_channels, n).T, left[:, 0]

    def _operator(self, d: np.ndarray) -> LinearOperator:
        """G(d) by recursion over the steps: no matrix beyond the propagators."""
        n, n_channels = self.n_neurons, self.stimuli.n_channels
        signal = self.by_channel(d)

        def forward(flat: np.ndarray) -> np.ndarray:
            u = np.reshape(flat, (n_channels, n)).T
            return self.unfolding.drive_block(signal, u[:, :, None])[:, 0]

        def backward(v: np.ndarray) -> np.ndarray:
            return (signal @ self.unfolding.readout_response(np.ravel(v))).ravel()

        made: Any = LinearOperator
        return made((n, n * n_channels), matvec=forward, rmatvec=backward, dtype=float)

    def _largest(
        self, operator: LinearOperator, guess: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Largest singular triplet by Lanczos iteration."""
        search: Any = svds
        start = None
        if guess is not None:  # SciPy wants the vector of the shorter side
            u, v = guess
            start = u.ravel() if self.stimuli.n_channels == 1 else v
        left, values, right = search(operator, k=1, v0=start, tol=1e-8, rng=0)
        sigma, v, u = float(values[0]), left[:, 0], right[0]
        residual = float(np.linalg.norm(operator.rmatvec(v) - sigma * u))
        return sigma + residual, u.reshape(self.stimuli.n_channels, -1).T, v


def _gram(L: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """Lᵀ ψ L, symmetric to the last bit."""
    made = L.T @ psi @ L
    return (made + made.T) / 2


def _orthogonal_direction(basis: np.ndarray) -> np.ndarray:
    """A unit vector orthogonal to the columns of ``basis``, always the same one."""
    n = basis.shape[0]
    # The coordinate axis that the basis covers least is furthest from its span.
    axis = int(np.argmin((basis**2).sum(1)))
    vector = np.eye(1, n, axis)[0]
    for _ in range(2):  # twice is enough for orthogonality to rounding
        vector = vector - basis @ (basis.T @ vector)
    return vector / np.linalg.norm(vector)
