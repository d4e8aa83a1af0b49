"""The linear problem: κ = a·μ − (η/2) aᵀψa with a linear in v uᵀ.

κ = a·μ − (η/2) aᵀψa maximised over unit vectors w that make the kernel, a = L w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, aslinearoperator, svds

from ..math.covariances import Factored, Symmetric, root
from ..math.margins import SoftMargin
from ..math.sphere import solve_in_eigenbasis
from ..stimuli.base import Stimuli
from ..systems import LinearSystem, ResponseSum

#: The eigenvalues of Σ decide as they are while the distance of the multiplier from them is
#: above this share of the largest one; rounding then changes κ in its tenth digit at most.
_RESOLVED = 1e-10
#: Fewer input values than neurons usually leave the multiplier closer than that. Up to
#: this many of them the singular values cost less than the eigenvalues in vain.
_FEW = 64


@dataclass(frozen=True, eq=False)
class KernelQuadratic:
    """μ and ψ, by which kernels are judged.

    Attributes
    ----------
    mu : ndarray (D,)
    psi : ndarray or Factored (D, D)
    """

    mu: np.ndarray
    psi: Symmetric

    def maximize(self, L: np.ndarray, eta: float) -> np.ndarray:
        """Maximise κ(L w) over unit vectors w."""
        return self.readouts(L, np.array([eta]))[0]

    def readouts(self, L: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """The maximisers for many η, (n_etas, n): Lᵀψ L is decomposed once.

        Only the row space of L matters. Where it is smaller than the space of w, the
        problem is solved there, with one more direction standing for all of the
        orthogonal complement, along which κ does not change.
        """
        mu, psi = self.mu, self.psi
        m, n = L.shape
        if m >= n:
            return self._on_sphere(L, L.T @ mu, gram(L, psi), etas)
        basis, _ = np.linalg.qr(L.T)
        reduced = np.zeros((m, m + 1))
        reduced[:, :m] = L @ basis
        if m <= _FEW and self.root_of_psi[1].size:
            found = self._by_singular_values(reduced, etas)
        else:
            found = self._on_sphere(reduced, reduced.T @ mu, gram(reduced, psi), etas)
        w = found[:, :m] @ basis.T
        if found[:, m].any():
            w = w + found[:, m:] * _orthogonal_direction(basis)
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
        return self._by_singular_values(L, etas)

    def _by_singular_values(self, L: np.ndarray, etas: np.ndarray) -> np.ndarray:
        factor, white, rest = self.root_of_psi
        rounding = 1e-13 * float(np.linalg.norm(L) * np.linalg.norm(rest))
        return in_singular_basis(factor.T @ L, L.T @ rest, white, etas, rounding)

    @cached_property
    def root_of_psi(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ψ = S Sᵀ as S (D, rank), and μ = S m + rest."""
        basis, scale = root(self.psi)
        along = basis.T @ self.mu
        rest = self.mu - basis @ along
        # Of coinciding means or full rank nothing is left but rounding.
        if np.linalg.norm(rest) <= 1e-12 * np.linalg.norm(self.mu):
            rest = np.zeros_like(rest)
        return basis * scale, along / scale, rest


def in_singular_basis(
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


def gram(L: np.ndarray, psi: Symmetric) -> np.ndarray:
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


#: Up to this size a dense decomposition is as fast as an iterative one.
_DENSE_SIZE = 400
#: Random projections that `growth` is estimated from, and the error of a weighted sum of
#: Green's functions in units of their size: a few roundings each.
_PROBES = 4
_ROUNDING = 16 * np.finfo(float).eps


#: Cotangents of both factors of X from that of its kernel.
FactorPullback = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


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
        separation = float(a @ self.mean)
        variance = float(0.5 * self.eta * (a @ self.spread(a)))
        return SoftMargin(separation - variance, separation, variance)

    @property
    def offset(self) -> float:
        """What every pair of unit projections pays alike; none without noise."""
        return 0.0

    @property
    def mean(self) -> np.ndarray:
        """μ, the gradient of κ at the kernel zero."""
        return self.stimuli.mu

    def spread(self, a: np.ndarray) -> np.ndarray:
        """ψa, of one kernel or of several in columns."""
        return self.stimuli.psi @ a

    @cached_property
    def _quadratic(self) -> KernelQuadratic:
        return KernelQuadratic(self.stimuli.mu, self.stimuli.psi)

    def kernel(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Kernel a with a_(c,n) = vᵀ G⁽¹⁾_n u_c."""
        return (self.system.readout_response(v) @ u).T.ravel()

    def gradient_at(self, a: np.ndarray) -> np.ndarray:
        """Gradient d = μ − ηψa of κ with respect to a."""
        return self.mean - self.eta * self.spread(a)

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal v for a given u (paper, equation 18, `soft-margin-gradient-v`)."""
        R = self.system.input_response(u)
        v = self._quadratic.maximize(R, self.eta)
        return v, self.margin_of_kernel(R @ v)

    def readout_terms(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The terms b and Q of κ = b·v − (η/2) vᵀQv at one u, on unit v."""
        R = self.system.input_response(u)
        return R.T @ self.stimuli.mu, gram(R, self.stimuli.psi)

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
        flat = self._quadratic.maximize(L, self.eta)
        return flat.reshape(n_channels, -1).T, self.margin_of_kernel(L @ flat)

    def _best_input_in_span(
        self, rows: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, SoftMargin]:
        """`best_input` where ψ is known by its factor: L itself is never formed."""
        factor, white, rest = self._quadratic.root_of_psi
        shape = (self.stimuli.n_channels, self.stimuli.n_steps)

        def pulled(columns: np.ndarray) -> np.ndarray:
            """Lᵀ times columns (D, k), channel by channel."""
            parts = rows.T @ columns.reshape(*shape, -1)
            return parts.reshape(-1, columns.shape[-1])

        size = np.sqrt(shape[0]) * float(np.linalg.norm(rows) * np.linalg.norm(rest))
        flat = in_singular_basis(
            pulled(factor).T,
            pulled(rest[:, None])[:, 0],
            white,
            np.array([self.eta]),
            1e-13 * size,
        )[0]
        u = flat.reshape(shape[0], -1).T
        return u, self.margin_of_kernel(self.kernel(u, v))

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v."""
        R = self.system.input_response(u)
        v = self._quadratic.maximize(R, self.eta)
        a = R @ v
        d = self.by_channel(self.gradient_at(a))
        return v, self.margin_of_kernel(a), (d @ self.system.readout_response(v)).T

    def kernel_of(self, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, FactorPullback]:
        """Kernel of X = Σ_r A_r B_rᵀ, and the way back.

        Parameters
        ----------
        A : ndarray (n_outputs, rank)
        B : ndarray (n_inputs, n_channels, rank)

        Returns
        -------
        a : ndarray
        pull : callable
            Cotangents of A and B from that of a.
        """
        rows = self.system.readout_response(A)  # (K, N, r)

        def pull(bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            d = self.by_channel(bar)
            return self.system.response_sum(d).drive(B), np.einsum("cn,nir->icr", d, rows)

        return np.einsum("nir,icr->cn", rows, B).ravel(), pull

    def by_channel(self, d: np.ndarray) -> np.ndarray:
        """A flat kernel as (n_channels, n_steps)."""
        return d.reshape(self.stimuli.n_channels, self.stimuli.n_steps)

    def readouts(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Optimal readouts for many η at one u, (n_etas, n_outputs).

        Σ is decomposed once; every η then costs one scalar equation.
        """
        return self._quadratic.readouts(self.system.input_response(u), etas)

    def kernels(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Kernels of those readouts, (n_channels · n_steps, n_etas)."""
        R = self.system.input_response(u)
        return R @ self._quadratic.readouts(R, etas).T

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
        return self._leading(self.system.response_sum(self.by_channel(d)), guess)

    def _leading(
        self, response: ResponseSum, guess: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Largest singular value with its vectors, by the way that fits the size."""
        n_channels, n_inputs = self.stimuli.n_channels, self.system.n_inputs
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
        sigma, u, v = leading_triplet(matrix)
        return sigma, u.reshape(n_channels, n_inputs).T, v

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


def leading_triplet(matrix: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Largest singular value of a dense matrix M with its right and left vector.

    The largest eigenpair of M Mᵀ, which costs a small part of all singular values. Squares
    lose the small ones to rounding; the largest is as accurate as by a decomposition of M.
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
