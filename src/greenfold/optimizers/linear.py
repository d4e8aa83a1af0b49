"""The linear problem: κ = a·μ − (η/2) aᵀψa with a linear in v uᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator, svds

from ..covariances import Factored, Symmetric, root
from ..margins import SoftMargin
from ..sphere import solve_in_eigenbasis
from ..stimuli import Stimuli
from ..systems import LinearSystem, ResponseSum

#: Up to this size a full singular value decomposition is as fast as an iterative one.
_DENSE_SIZE = 400
#: The eigenvalues of Σ decide as they are while the distance of the multiplier from them is
#: above this share of the largest one; rounding then changes κ in its tenth digit at most.
_RESOLVED = 1e-10
#: Random projections that `growth` is estimated from, and the error of a weighted sum of
#: Green's functions in units of their size: a few roundings each.
_PROBES = 4
_ROUNDING = 16 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Soft margin of a linear system as a function of both projections.

    u is a matrix (n_inputs, n_channels) throughout; kernels a are flat, channels one
    after the other, like ``stimuli.mu``.
    """

    system: LinearSystem
    stimuli: Stimuli
    eta: float

    def margin_of_kernel(self, a: np.ndarray) -> SoftMargin:
        """κ of a kernel a."""
        separation = float(a @ self.stimuli.mu)
        variance = float(0.5 * self.eta * (a @ self.stimuli.psi @ a))
        return SoftMargin(separation - variance, separation, variance)

    def kernel(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Kernel a with a_(c,n) = vᵀ G⁽¹⁾_n u_c."""
        return (self.system.readout_response(v) @ u).T.ravel()

    def gradient_at(self, a: np.ndarray) -> np.ndarray:
        """Gradient d = μ − ηψa of κ with respect to a."""
        return self.stimuli.mu - self.eta * (self.stimuli.psi @ a)

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal v for a given u (paper, `soft-margin-gradient-v`)."""
        R = self.system.input_response(u)
        v = self._maximize(R)
        return v, self.margin_of_kernel(R @ v)

    def best_input(self, v: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal u for a given v (paper, cases A and B of the input projection)."""
        rows = self.system.readout_response(v)
        n_channels = self.stimuli.n_channels
        if isinstance(self.stimuli.psi, Factored):
            return self._best_input_in_span(rows, v)
        # Row (c, n) holds l_n in the columns of channel c: a = L vec(uᵀ).
        L = np.zeros((n_channels, self.stimuli.n_steps, n_channels, self.system.n_inputs))
        for c in range(n_channels):
            L[c, :, c, :] = rows
        L = L.reshape(n_channels * self.stimuli.n_steps, -1)
        flat = self._maximize(L)
        return flat.reshape(n_channels, -1).T, self.margin_of_kernel(L @ flat)

    def _best_input_in_span(
        self, rows: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, SoftMargin]:
        """`best_input` where ψ is known by its factor: L itself is never formed."""
        factor, white, rest = self._root_of_psi
        shape = (self.stimuli.n_channels, self.stimuli.n_steps)

        def pulled(columns: np.ndarray) -> np.ndarray:
            """Lᵀ times columns (D, k), channel by channel."""
            parts = rows.T @ columns.reshape(*shape, -1)
            return parts.reshape(-1, columns.shape[-1])

        size = np.sqrt(shape[0]) * float(np.linalg.norm(rows) * np.linalg.norm(rest))
        flat = _in_singular_basis(
            pulled(factor).T,
            pulled(rest[:, None])[:, 0],
            white,
            np.array([self.eta]),
            1e-13 * size,
        )[0]
        u = flat.reshape(shape[0], -1).T
        return u, self.margin_of_kernel(self.kernel(u, v))

    def _maximize(self, L: np.ndarray) -> np.ndarray:
        """Maximise κ(L w) over unit vectors w.

        Only the row space of L matters. Where it is smaller than the space of w, the
        problem is solved there, with one more direction standing for all of the
        orthogonal complement, along which κ does not change.
        """
        mu, psi, eta = self.stimuli.mu, self.stimuli.psi, np.array([self.eta])
        m, n = L.shape
        if m >= n:
            return self._on_sphere(L, L.T @ mu, _gram(L, psi), eta)[0]
        basis, _ = np.linalg.qr(L.T, mode="complete" if n - m < m else "reduced")
        reduced = np.zeros((m, m + 1))
        reduced[:, :m] = L @ basis[:, :m]
        found = self._on_sphere(reduced, reduced.T @ mu, _gram(reduced, psi), eta)[0]
        w = basis[:, :m] @ found[:m]
        if found[m]:
            w = w + found[m] * _orthogonal_direction(basis[:, :m])
        return w

    def _on_sphere(
        self, L: np.ndarray, b: np.ndarray, gram: np.ndarray, etas: np.ndarray
    ) -> np.ndarray:
        """Unit w that maximise b·w − (η/2) wᵀ gram w, one row for each η.

        The eigenvalues of Lᵀψ L are known to rounding of the largest one. Where a network
        amplifies much, what decides lies below that, and the singular values of ψ^½ L,
        whose squares they are, tell it.
        """
        values, vectors = np.linalg.eigh(gram)
        found = solve_in_eigenbasis(b, etas[:, None] * values, vectors)
        shift = etas * values[0] - found.multiplier
        if (shift > _RESOLVED * etas * values[-1]).all():
            return found.v
        factor, white, rest = self._root_of_psi
        rounding = 1e-13 * float(np.linalg.norm(L) * np.linalg.norm(rest))
        return _in_singular_basis(factor.T @ L, L.T @ rest, white, etas, rounding)

    @cached_property
    def _root_of_psi(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ψ = S Sᵀ as S (D, rank), and μ = S m + rest."""
        basis, scale = root(self.stimuli.psi)
        along = basis.T @ self.stimuli.mu
        rest = self.stimuli.mu - basis @ along
        # Of coinciding means or full rank nothing is left but rounding.
        if np.linalg.norm(rest) <= 1e-12 * np.linalg.norm(self.stimuli.mu):
            rest = np.zeros_like(rest)
        return basis * scale, along / scale, rest

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v."""
        R = self.system.input_response(u)
        v = self._maximize(R)
        a = R @ v
        d = self.by_channel(self.gradient_at(a))
        return v, self.margin_of_kernel(a), (d @ self.system.readout_response(v)).T

    def by_channel(self, d: np.ndarray) -> np.ndarray:
        """A flat kernel as (n_channels, n_steps)."""
        return d.reshape(self.stimuli.n_channels, self.stimuli.n_steps)

    def readouts(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Optimal readouts for many η at one u, (n_etas, n_outputs).

        Σ is decomposed once; every η then costs one scalar equation.
        """
        return self._readouts(self.system.input_response(u), etas)

    def kernels(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Kernels of those readouts, (n_channels · n_steps, n_etas)."""
        R = self.system.input_response(u)
        return R @ self._readouts(R, etas).T

    def _readouts(self, R: np.ndarray, etas: np.ndarray) -> np.ndarray:
        b, gram = R.T @ self.stimuli.mu, _gram(R, self.stimuli.psi)
        return self._on_sphere(R, b, gram, etas)

    @cached_property
    def growth(self) -> float:
        """How much the system amplifies: the largest ‖G_n‖, over the steps n.

        Estimated from random input projections u, for which ‖G_n u‖² is ‖G_n‖²_F / N on
        average.
        """
        rng = np.random.default_rng(0)
        u = rng.standard_normal((self.system.n_inputs, _PROBES))
        u /= np.linalg.norm(u, axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by `best_atom`
            response = self.system.input_response(u)
            response = response.reshape(_PROBES, -1, self.system.n_outputs)
            square = (response**2).sum(2).mean(0) * self.system.n_inputs
        return float(np.sqrt(square.max()))

    def rounding(self, d: np.ndarray) -> float:
        """Error that rounding may leave in the singular values of G(d)."""
        return float(_ROUNDING * np.abs(d).sum() * self.growth)

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
        u : ndarray (n_inputs, n_channels)
        v : ndarray (n_outputs,)
        """
        n_inputs, n_outputs = self.system.n_inputs, self.system.n_outputs
        n_channels = self.stimuli.n_channels
        if not d.any():
            u = np.eye(1, n_inputs).T * np.eye(1, n_channels)
            return 0.0, u, np.eye(1, n_outputs)[0]
        response = self.system.response_sum(self.by_channel(d))
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            matrix = response.matrix()
        if matrix is not None and not np.isfinite(matrix).all():
            raise OverflowError(
                "the response of this network to a pulse exceeds floating point before the "
                "readout; read it earlier, or scale the weights down."
            )
        if matrix is None:
            return self._largest(self._operator(response), guess)
        if min(matrix.shape) > _DENSE_SIZE:
            return self._largest(aslinearoperator(matrix), guess)
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        return float(values[0]), right[0].reshape(n_channels, n_inputs).T, left[:, 0]

    def _operator(self, response: ResponseSum) -> LinearOperator:
        """G(d) applied to vectors, never formed."""
        n_inputs, n_channels = self.system.n_inputs, self.stimuli.n_channels

        def forward(flat: np.ndarray) -> np.ndarray:
            u = np.reshape(flat, (n_channels, n_inputs)).T
            return response.drive(u[:, :, None])[:, 0]

        def backward(v: np.ndarray) -> np.ndarray:
            return response.pull(np.ravel(v)).T.ravel()

        made: Any = LinearOperator
        shape = (self.system.n_outputs, n_inputs * n_channels)
        return made(shape, matvec=forward, rmatvec=backward, dtype=float)

    def _largest(
        self, operator: LinearOperator, guess: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Largest singular triplet by Lanczos iteration."""
        search: Any = svds
        start = None
        if guess is not None:  # SciPy wants the vector of the shorter side
            u, v = guess
            start = u.T.ravel() if u.size <= v.size else v
        left, values, right = search(operator, k=1, v0=start, tol=1e-8, rng=0)
        sigma, v, u = float(values[0]), left[:, 0], right[0]
        residual = float(np.linalg.norm(operator.rmatvec(v) - sigma * u))
        return sigma + residual, u.reshape(self.stimuli.n_channels, -1).T, v


def _in_singular_basis(
    seen: np.ndarray,
    beyond: np.ndarray,
    white: np.ndarray,
    etas: np.ndarray,
    rounding: float,
) -> np.ndarray:
    """Unit w that maximise κ(L w), one row for each η, by the singular values of Sᵀ L.

    Parameters
    ----------
    seen : ndarray (rank, n)
        Sᵀ L, with ψ = S Sᵀ.
    beyond : ndarray (n,)
        Lᵀ times the part of μ that S does not reach.
    white : ndarray (rank,)
        m with μ = S m + that part.
    etas : ndarray (n_etas,)
    rounding : float
        Size up to which ``beyond`` is none.
    """
    left, sizes, right = np.linalg.svd(seen, full_matrices=False)
    # Ascending, as eigenvalues are; and one direction more where none is left out.
    sizes, w = sizes[::-1], right[::-1].T
    c = sizes * (left[:, ::-1].T @ white) + w.T @ beyond
    if w.shape[1] < len(w):
        flat = beyond - w @ (w.T @ beyond)
        size = float(np.linalg.norm(flat))
        if size <= rounding:
            size, flat = 0.0, _orthogonal_direction(w)
        w = np.column_stack([flat / np.linalg.norm(flat), w])
        sizes, c = np.append(0.0, sizes), np.append(size, c)
    # Singular values are known to rounding of the largest one.
    resolution = etas[:, None] * (1e-14 * sizes[-1]) ** 2
    inner = solve_in_eigenbasis(
        c, etas[:, None] * sizes**2, np.eye(len(c)), resolution=resolution
    )
    made = inner.v @ w.T
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def _gram(L: np.ndarray, psi: Symmetric) -> np.ndarray:
    """Lᵀ ψ L, symmetric to the last bit."""
    if isinstance(psi, Factored):
        seen = psi.factor.T @ L
        return seen.T @ seen
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
