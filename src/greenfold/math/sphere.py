"""Exact maxima of quadratic functions on the unit sphere.

    maximise  b·v − ½ vᵀ Q v   over ‖v‖ = 1

This problem gives the readout of a reservoir, and each half-step of the paper's alternation
(cases A and B, `soft-margin-gradient-u`, `bisection-problem-lambda-u`). With
Q = Σ_i q_i w_i w_iᵀ and c_i = w_i·b the maximum is v = Σ_i c_i/(q_i − λ) w_i at the root
λ < q_1 of the secular equation Σ_i (c_i/(q_i − λ))² = 1. In the hard case, b has no
component in the eigenspace of q_1, and there is no root. Then λ = q_1, and a component
along w_1 completes v to unit norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dtrtrs

from .._base import checks as check
from .class_moments import Factored, Symmetric, root

#: Eigenvalues that differ from the smallest one by less than this share of the largest one
#: count as equal to it, because a symmetric eigensolver cannot tell them apart.
_CLUSTER = 1e-13
_MAX_NEWTON = 100
_EPS = float(np.finfo(float).eps)
#: The eigenvalues of Σ are precise enough if the distance of the multiplier from them
#: exceeds this share of the largest. Rounding then changes κ in the tenth digit at most.
_RESOLVED = 1e-10
#: With fewer input values than neurons, the multiplier is usually closer than that. Up to
#: this number of values, use the singular values without trying the eigenvalues.
_FEW = 64
#: Number of factorisations after which eigenvalues are cheaper, and the relative error of
#: ‖v‖ at which to stop: each Newton step squares it.
_MAX_FACTORS, _ON_SPHERE = 6, 1e-9


@dataclass(frozen=True)
class SphereMaximum:
    """The maximiser of b·v − ½ vᵀQv on the unit sphere, for one problem or a batch."""

    #: A global maximiser (..., n).
    v: np.ndarray
    #: The maximum (...).
    value: np.ndarray
    #: The root λ (...) of the secular equation, with (Q − λ) v = b.
    multiplier: np.ndarray
    #: Whether v was completed along the lowest eigenvector, as one of several maximisers.
    hard_case: np.ndarray


def maximize_on_sphere(b: ArrayLike, Q: ArrayLike) -> SphereMaximum:
    """Maximise b·v − ½ vᵀQv over unit vectors v.

    With b = M and Q = ηΣ it solves for the readout (paper, equations 18 and 19,
    `soft-margin-gradient-v`, `soft-margin-gradient-lambda-v`). With b = m₀ and
    Q = 2(σ₀ − m₁) it solves for u (equations 15 and 16, `soft-margin-gradient-u`,
    `soft-margin-gradient-lambda-u`).

    Parameters
    ----------
    b : array_like (..., n)
        The linear part. If it is zero, the problem is an eigenvalue problem (case A).
    Q : array_like (..., n, n)
        Symmetric matrix, not necessarily positive. Leading dimensions are a batch.

    Examples
    --------
    >>> import numpy as np
    >>> maximize_on_sphere([3.0, 0.0], np.diag([1.0, 2.0])).v
    array([1., 0.])
    """
    linear, matrix = check.host_array(b, "b"), check.host_array(Q, "Q")
    n = linear.shape[-1:]
    wanted = "have shape (..., n, n) for `b` of shape (..., n)"
    fits = n and matrix.shape[-2:] == n * 2
    check.must(fits, "Q", wanted, f"{matrix.shape} and {linear.shape}")
    back, tiny = np.swapaxes(matrix, -1, -2), 1e-12 * np.abs(matrix).max()
    symmetric = np.allclose(matrix, back, rtol=1e-8, atol=tiny)
    check.must(symmetric, "Q", "be symmetric", "a non-symmetric matrix; use (Q + Qᵀ)/2")
    return solve_in_eigenbasis(linear, *np.linalg.eigh(matrix))


def solve_in_eigenbasis(
    b: np.ndarray,
    q: np.ndarray,
    w: np.ndarray | None,
    *,
    resolution: np.ndarray | None = None,
) -> SphereMaximum:
    """Solve the problem from an eigendecomposition of Q.

    Newton's method finds the root of the secular equation Σ_i (c_i/(q_i − λ))² = 1 (paper,
    equation 17, `bisection-problem-lambda-u`), with c = wᵀb.

    One decomposition serves many η, because the eigenvalues scale with Q. The eigenvalues
    q (..., n) ascend; the eigenvectors w (..., n, n) are columns, or None for a diagonal Q.
    Eigenvalues that differ by less than ``resolution`` count as equal. The default is 1e-13
    of the largest eigenvalue, the resolution of a symmetric eigensolver.
    """
    c = b if w is None else np.einsum("...ij,...i->...j", w, b)
    c, q = np.broadcast_arrays(c, q)
    above = q - q[..., :1]
    if resolution is None:
        resolution = _CLUSTER * np.abs(q).max(-1, keepdims=True)
    lowest = above <= resolution
    above = np.where(lowest, 0.0, above)
    size = _norm(c)
    # A component along the lowest eigenvalues that is below rounding is noise.
    low = _norm(np.where(lowest, c, 0.0))
    without_low = low <= 4 * _EPS * size
    safe = np.where(lowest, np.inf, above)
    # If b and Q differ by hundreds of orders of magnitude, a ratio may leave the range of
    # floats; infinity and zero are then the right limits.
    with np.errstate(over="ignore"):
        at_lowest = c / safe
        rest = (at_lowest**2).sum(-1)
        hard = without_low & (rest < 1)
        root = _secular_root(np.where(lowest, 0.0, c), low, above, size)
    shift = np.where(hard, 0.0, root)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        components = c / (above + shift[..., None])
    fill = np.zeros_like(components)
    fill[..., 0] = np.sqrt(np.clip(1 - rest, 0, None))
    components = np.where(hard[..., None], np.where(lowest, fill, at_lowest), components)
    components /= np.linalg.norm(components, axis=-1, keepdims=True)
    value = (c * components).sum(-1) - 0.5 * (q * components**2).sum(-1)
    v = components if w is None else np.einsum("...ij,...j->...i", w, components)
    return SphereMaximum(v, value, q[..., 0] - shift, hard)


def _norm(vectors: np.ndarray) -> np.ndarray:
    """Return norms along the last axis, without squares that overflow or underflow."""
    peak = np.abs(vectors).max(-1, keepdims=True)
    peak = np.where(peak > 0, peak, 1.0)
    return peak[..., 0] * np.linalg.norm(vectors / peak, axis=-1)


def _secular_root(
    c: np.ndarray, low: np.ndarray, above: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Return the distance δ = q_1 − λ > 0 of the root from the lowest eigenvalue.

    It applies Newton's method to 1/‖v(δ)‖ − 1, which is nearly linear in δ and convex. The
    iteration starts at the lower end of the bracket [|c_1|, ‖b‖] and approaches the root
    from below (Moré & Sorensen 1983).
    """
    tiny = np.finfo(float).tiny ** 0.25
    scale = np.where(size > 0, size, 1.0)
    c, low, above = c / scale[..., None], low / scale, above / scale[..., None]
    lower = np.maximum(low, tiny)
    # ‖v‖ ≥ ‖b‖/(q_max − λ) gives a second lower bound, which is tight for small Q.
    lower = np.maximum(lower, 1.0 - above.max(-1))
    if lower.size == 1:
        found = _one_root(c.ravel(), float(low.item()), above.ravel(), float(lower.item()))
        return found * scale
    delta, upper = lower.copy(), np.ones_like(lower)
    for _ in range(_MAX_NEWTON):
        shifted = above + delta[..., None]
        each, lowest = (c / shifted) ** 2, (low / delta) ** 2
        square = each.sum(-1) + lowest
        cube = (each / shifted).sum(-1) + lowest / delta
        # d/dδ S^{-1/2} = S^{-3/2} Σ c²/(·)³
        step = (np.sqrt(square) - 1) * square / np.where(cube > 0, cube, 1.0)
        lower = np.where(square > 1, delta, lower)
        upper = np.where(square <= 1, delta, upper)
        moved = delta + step
        inside = (moved >= lower) & (moved <= upper)
        # If c_1 nearly vanishes, the bracket spans many decades: bisect the logarithm.
        moved = np.where(inside, moved, np.sqrt(lower * upper))
        if np.all(np.abs(moved - delta) <= 4 * _EPS * moved):
            break
        delta = moved
    return delta * scale


def _one_root(c: np.ndarray, low: float, above: np.ndarray, lower: float) -> float:
    """Run the iteration of `_secular_root` for one problem, with numbers for speed."""
    delta, upper = lower, 1.0
    for _ in range(_MAX_NEWTON):
        shifted = above + delta
        each = c / shifted
        each *= each
        lowest = low / delta
        lowest *= lowest
        square = float(each.sum()) + lowest
        each /= shifted
        cube = float(each.sum()) + lowest / delta
        step = (math.sqrt(square) - 1) * square / (cube if cube > 0 else 1.0)
        if square > 1:
            lower = delta
        else:
            upper = delta
        moved = delta + step
        if not lower <= moved <= upper:
            moved = math.sqrt(lower * upper)
        if abs(moved - delta) <= 4 * _EPS * moved:
            break
        delta = moved
    return delta


@dataclass
class _Last:
    """The multiplier of the last call, and whether eigenvalues were precise enough."""

    multiplier: float | None = None
    resolved: bool = True


@dataclass(frozen=True, eq=False)
class KernelQuadratic:
    """The soft margin κ(a) = μ·a − (η/2) aᵀψa of kernels a = L w with unit vectors w."""

    mu: np.ndarray
    psi: Symmetric

    def maximize(self, L: np.ndarray, eta: float) -> np.ndarray:
        """Return the unit vector w that maximises κ(L w)."""
        return self.readouts(L, np.array([eta]))[0]

    def readouts(self, L: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Return the maximisers for many η, (n_etas, n), from one decomposition of Lᵀψ L.

        Only the row space of L matters. If it is smaller than the space of w, one more
        direction represents its orthogonal complement, along which κ is constant.
        """
        m, n = L.shape
        if m >= n:
            return self._on_sphere(L, etas)
        basis, _ = np.linalg.qr(L.T)
        reduced = np.zeros((m, m + 1))
        reduced[:, :m] = L @ basis
        by_singular_values = m <= _FEW and self.root_of_psi[1].size
        solve = self._by_singular_values if by_singular_values else self._on_sphere
        found = solve(reduced, etas)
        w = found[:, :m] @ basis.T
        if found[:, m].any():
            w = w + found[:, m:] * _orthogonal_direction(basis)
        return w

    def _on_sphere(self, L: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Return the maximisers from the eigenvalues of Lᵀψ L.

        These are precise to the rounding of the largest eigenvalue. If a network amplifies
        strongly, the relevant eigenvalues are smaller than this rounding. Then the method
        uses the singular values of ψ^½ L, whose squares are the eigenvalues. If the last
        call needed the singular values, this call does not try the eigenvalues first.
        """
        alone, last = len(etas) == 1, self._last
        if alone and not last.resolved:
            return self._by_singular_values(L, etas)
        Q, b = gram(L, self.psi), L.T @ self.mu
        if alone:
            v = self._by_factors(b, etas[0] * Q)
            if v is not None:
                return v[None]
        values, vectors = np.linalg.eigh(Q)
        found = solve_in_eigenbasis(b, etas[:, None] * values, vectors)
        last.multiplier = float(found.multiplier[0])
        shift = etas * values[0] - found.multiplier
        if (shift > _RESOLVED * etas * values[-1]).all():
            return found.v
        return self._by_singular_values(L, etas)

    def _by_factors(self, b: np.ndarray, Q: np.ndarray) -> np.ndarray | None:
        """Return the maximiser by Newton's method on Cholesky factors; None if it fails.

        It starts at the multiplier of the last call, or in the first call at the multiplier
        of a small Q. In an ascent, two or three factorisations suffice; each takes a
        twentieth of the time of an eigendecomposition.
        """
        multiplier = self._last.multiplier
        if multiplier is None:
            multiplier = -float(np.linalg.norm(b))
        limit = np.sqrt(_RESOLVED * float(np.diag(Q).max(initial=0.0)))
        for _ in range(_MAX_FACTORS):
            shifted = Q.copy(order="F")
            shifted.ravel(order="K")[:: len(Q) + 1] -= multiplier
            factor, failed = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
            if failed or np.diag(factor).min() <= limit:
                return None
            half, _ = dtrtrs(factor, b, lower=1)
            v, _ = dtrtrs(factor, half, lower=1, trans=1)
            size = float(np.linalg.norm(v))
            if not size:
                return None
            if abs(size - 1) <= _ON_SPHERE:
                self._last.multiplier = multiplier
                return v / size
            slope, _ = dtrtrs(factor, v, lower=1)
            multiplier += (1 - size) * size**2 / float(slope @ slope)
        return None

    @cached_property
    def _last(self) -> _Last:
        return _Last()

    def _by_singular_values(self, L: np.ndarray, etas: np.ndarray) -> np.ndarray:
        factor, white, rest = self.root_of_psi
        rounding = 1e-13 * float(np.linalg.norm(L) * np.linalg.norm(rest))
        seen, beyond = factor.T @ L, L.T @ rest
        w, resolved = in_singular_basis(seen, beyond, white, etas, rounding)
        if len(etas) == 1:
            self._last.resolved = resolved
        return w

    @cached_property
    def root_of_psi(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """S (D, rank), m (rank,) and rest (D,) with ψ = S Sᵀ and μ = S m + rest."""
        basis, scale = root(self.psi)
        along = basis.T @ self.mu
        rest = self.mu - basis @ along
        # If the means coincide, or ψ has full rank, the rest is only rounding.
        if np.linalg.norm(rest) <= 1e-12 * np.linalg.norm(self.mu):
            rest = np.zeros_like(rest)
        return basis * scale, along / scale, rest


def in_singular_basis(
    seen: np.ndarray,
    beyond: np.ndarray,
    white: np.ndarray,
    etas: np.ndarray,
    rounding: float,
) -> tuple[np.ndarray, bool]:
    """Return the unit w that maximise κ(L w), one row per η, by singular values of Sᵀ L.

    Also returns whether eigenvalues of Lᵀψ L would have been precise enough. ``seen`` is
    Sᵀ L (rank, n) with ψ = S Sᵀ. ``white`` is m in μ = S m + r, with r outside the span of
    S. ``beyond`` is Lᵀr; a norm up to ``rounding`` counts as zero.
    """
    left, sizes, right = np.linalg.svd(seen, full_matrices=False)
    # Sort them in ascending order, like eigenvalues; a complement adds one direction.
    sizes, w = sizes[::-1], right[::-1].T
    c = sizes * (left[:, ::-1].T @ white) + w.T @ beyond
    if w.shape[1] < len(w):
        flat = beyond - w @ (w.T @ beyond)
        size = float(np.linalg.norm(flat))
        if size <= rounding:
            size, flat = 0.0, _orthogonal_direction(w)
        w = np.column_stack([flat / np.linalg.norm(flat), w])
        sizes, c = np.append(0.0, sizes), np.append(size, c)
    # Singular values are precise to the rounding of the largest one.
    known = etas[:, None] * (1e-14 * sizes[-1]) ** 2
    squares = etas[:, None] * sizes**2
    found = solve_in_eigenbasis(c, squares, None, resolution=known)
    shift, made = squares[:, 0] - found.multiplier, found.v @ w.T
    resolved = bool((shift > _RESOLVED * squares[:, -1]).all())
    return made / np.linalg.norm(made, axis=1, keepdims=True), resolved


def gram(L: np.ndarray, psi: Symmetric) -> np.ndarray:
    """Return Lᵀ ψ L, symmetric to the last bit."""
    if isinstance(psi, Factored):
        seen = psi.factor.T @ L
        return seen.T @ seen
    made = L.T @ psi @ L
    return (made + made.T) / 2


def _orthogonal_direction(basis: np.ndarray) -> np.ndarray:
    """Return a unit vector orthogonal to the columns of ``basis``, without randomness."""
    # The coordinate axis that the basis covers least is furthest from its span.
    vector = np.eye(1, len(basis), int(np.argmin((basis**2).sum(1))))[0]
    for _ in range(2):  # two passes reach orthogonality to rounding
        vector = vector - basis @ (basis.T @ vector)
    return vector / np.linalg.norm(vector)
