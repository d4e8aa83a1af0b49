"""κ = a·μ − (η/2) aᵀψa maximised over unit vectors w that make the kernel, a = L w."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..covariances import Factored, Symmetric, root
from ..sphere import solve_in_eigenbasis

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
