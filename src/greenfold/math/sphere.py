"""Quadratic functions on the unit sphere, solved exactly.

    maximise  b·v − ½ vᵀ Q v   over ‖v‖ = 1

This is the readout of a reservoir, and each half-step of the paper's alternation (cases A
and B, `soft-margin-gradient-u`, `bisection-problem-lambda-u`). With Q = Σ_i q_i w_i w_iᵀ
and c_i = w_i·b the maximum is v = Σ_i c_i/(q_i − λ) w_i at the root λ < q_1 of the secular
equation Σ_i (c_i/(q_i − λ))² = 1. In the hard case b has no component in the eigenspace of
q_1 and there is no root: then λ = q_1, and the rest of the norm is filled along w_1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check

#: Eigenvalues closer to the smallest one than this, relative to the largest, are one
#: cluster: a symmetric eigensolver resolves no better.
_CLUSTER = 1e-13
_MAX_NEWTON = 100
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class SphereMaximum:
    """Maximiser of b·v − ½ vᵀQv on the unit sphere, for one problem or a batch.

    Attributes
    ----------
    v : ndarray (..., n)
        A global maximiser.
    value : ndarray (...)
        The maximum.
    multiplier : ndarray (...)
        λ of the secular equation; (Q − λ) v = b.
    hard_case : ndarray (...) of bool
        Whether v was completed along the lowest eigenvector: one of several maximisers.
    """

    v: np.ndarray
    value: np.ndarray
    multiplier: np.ndarray
    hard_case: np.ndarray


def maximize_on_sphere(b: Any, Q: Any) -> SphereMaximum:
    """Maximise b·v − ½ vᵀQv over unit vectors v.

    Parameters
    ----------
    b : array_like (..., n)
        The linear part; zero leaves an eigenvalue problem (case A).
    Q : array_like (..., n, n)
        Symmetric, not necessarily positive.

    Returns
    -------
    SphereMaximum
        Batched over the leading dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> maximize_on_sphere([3.0, 0.0], np.diag([1.0, 2.0])).v
    array([1., 0.])
    """
    b = check.host_array(b, "b")
    Q = check.host_array(Q, "Q")
    fits = b.ndim > 0 and Q.ndim > 1 and Q.shape[-2:] == (b.shape[-1],) * 2
    wanted = "have shape (..., n, n) for `b` of shape (..., n)"
    check.must(fits, "Q", wanted, f"{Q.shape} and {b.shape}")
    back, tiny = np.swapaxes(Q, -1, -2), 1e-12 * np.abs(Q).max()
    symmetric = np.allclose(Q, back, rtol=1e-8, atol=tiny)
    check.must(symmetric, "Q", "be symmetric", "another, use (Q + Qᵀ)/2")
    return solve_in_eigenbasis(b, *np.linalg.eigh(Q))


def solve_in_eigenbasis(
    b: np.ndarray, q: np.ndarray, w: np.ndarray, *, resolution: Any = None
) -> SphereMaximum:
    """Solve the problem from an eigendecomposition, for example for many η at once.

    Parameters
    ----------
    b : ndarray (..., n)
    q : ndarray (..., n)
        Eigenvalues, ascending. Scaling Q by η scales them and leaves ``w``.
    w : ndarray (..., n, n)
        Eigenvectors in columns.
    resolution : float or ndarray (..., 1), optional
        Difference of eigenvalues below which they are one; by default what a symmetric
        eigensolver resolves, 1e-13 of the largest.
    """
    c = np.einsum("...ij,...i->...j", w, b)
    c, q = np.broadcast_arrays(c, q)
    above = q - q[..., :1]
    if resolution is None:
        resolution = _CLUSTER * np.abs(q).max(-1, keepdims=True)
    lowest = above <= resolution
    above = np.where(lowest, 0.0, above)
    size = _norm(c)
    # Below rounding, a component along the lowest cluster is noise, not signal.
    low = _norm(np.where(lowest, c, 0.0))
    without_low = low <= 4 * _EPS * size
    safe = np.where(lowest, np.inf, above)
    # Where b and Q differ by hundreds of orders, a ratio may leave the range of floats;
    # infinity and zero are then the right limits.
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
    v = np.einsum("...ij,...j->...i", w, components)
    return SphereMaximum(v, value, q[..., 0] - shift, hard)


def _norm(vectors: np.ndarray) -> np.ndarray:
    """Norm along the last axis, without squares that overflow or vanish."""
    peak = np.abs(vectors).max(-1, keepdims=True)
    peak = np.where(peak > 0, peak, 1.0)
    return peak[..., 0] * np.linalg.norm(vectors / peak, axis=-1)


def _secular_root(
    c: np.ndarray, low: np.ndarray, above: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Distance δ = q_1 − λ > 0 of the root from the lowest eigenvalue.

    Newton's method on 1/‖v(δ)‖ − 1, nearly linear in δ and convex, from the lower end of
    the bracket [|c_1|, ‖b‖]: it approaches the root from below (Moré & Sorensen 1983).
    """
    tiny = np.finfo(float).tiny ** 0.25
    scale = np.where(size > 0, size, 1.0)
    c, low, above = c / scale[..., None], low / scale, above / scale[..., None]
    lower = np.maximum(low, tiny)
    # ‖v‖ ≥ ‖b‖/(q_max − λ) gives a second lower bound, close for small Q.
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
        # Near a vanishing c_1 the root spans many decades: bisect in the logarithm.
        moved = np.where(inside, moved, np.sqrt(lower * upper))
        if np.all(np.abs(moved - delta) <= 4 * _EPS * moved):
            break
        delta = moved
    return delta * scale


def _one_root(c: np.ndarray, low: float, above: np.ndarray, lower: float) -> float:
    """The same iteration for one problem, where arrays of one number are the cost."""
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
