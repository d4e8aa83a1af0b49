"""φ-functions of a matrix, the weights of exponential integrators.

    φ₀(Z) = exp(Z),    φ_k(Z) = Σ_j Z^j / (j + k)!

They are the integrals of exp((1 − s) Z) against s^(k−1)/(k − 1)! over (0, 1). The textbook
recurrence φ_{k+1} = (φ_k − 1/k!)/Z cancels for small Z and divides by a singular one, so
none of it is used here: a short series at a small argument, then doublings.
"""

from __future__ import annotations

from math import ceil, factorial

import numpy as np

#: Below this norm the series of `_SERIES_TERMS` terms is exact to rounding: relative to
#: the leading term of φ₀, the worst of them, the first one left out is 0.5¹⁶/16! ≈ 7e-19.
_SERIES_RADIUS = 0.5
_SERIES_TERMS = 15


def phi_functions(Z: np.ndarray, upto: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """φ₀ … φ_upto of Z/2 and of Z, from one series and its doublings.

    Doubling adds matrices of one kind,

        φ_k(2Z) = 2^−k [φ₀(Z) φ_k(Z) + Σ_{j=1..k} φ_j(Z)/(k − j)!],

    which for a decaying network adds numbers of one sign: nothing cancels, and no matrix
    is inverted.

    Parameters
    ----------
    Z : ndarray (N, N)
    upto : int

    Returns
    -------
    half, whole : list of ndarray (N, N)
        Entry k is φ_k(Z/2) and φ_k(Z).
    """
    identity = np.eye(len(Z))
    # The geometric mean of the 1- and ∞-norm bounds the 2-norm at no cost.
    norm = np.sqrt(np.linalg.norm(Z, 1) * np.linalg.norm(Z, np.inf))
    doublings = 1
    if norm > 2 * _SERIES_RADIUS:
        doublings = ceil(np.log2(norm / _SERIES_RADIUS))
    small = Z / 2.0**doublings
    # Horner: φ_p = (1/p!) (1 + Z/(p+1) (1 + Z/(p+2) (…))).
    top = identity
    for j in range(_SERIES_TERMS, 0, -1):
        top = identity + small @ top / (upto + j)
    found = [top / factorial(upto)]
    for k in range(upto - 1, -1, -1):
        found.insert(0, identity / factorial(k) + small @ found[0])
    half = found
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        for _ in range(doublings):
            half, found = found, _double(found)
    if not all(np.isfinite(matrix).all() for matrix in found):
        raise OverflowError(
            "the states of this unstable network exceed floating point within one step; "
            "shorten `dt` or scale the weights down."
        )
    return half, found


def _double(phi: list[np.ndarray]) -> list[np.ndarray]:
    doubled = [phi[0] @ phi[0]]
    for k in range(1, len(phi)):
        total = phi[0] @ phi[k]
        for j in range(1, k + 1):
            total += phi[j] / factorial(k - j)
        doubled.append(total / 2.0**k)
    return doubled
