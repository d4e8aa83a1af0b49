"""Gaussian classes through a quadratic network, in closed form; and exact designs.

At order 1 every state is z_i = a_i·x + xᵀC_i x. For a class N(m, S)

    E z_i         = a_i·m + mᵀC_i m + tr(C_i S)
    cov(z_i, z_j) = (a_i + 2C_i m)ᵀ S (a_j + 2C_j m) + 2 tr(C_i S C_j S)

with the stimulus moments up to the fourth inside. Mixing the two classes with weight ½
each gives M and Σ of the labelled states. Σ keeps its O(α²) part and is positive
semi-definite.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb

import numpy as np

from ..margins import SoftMargin
from ..systems import QuadraticSystem
from .design import Design

#: Designs with more points than this are refused.
_MAX_POINTS = 6000


class GaussianMoments:
    """`Moments` of Gaussian classes at order 1, at one u.

    Parameters
    ----------
    mu : ndarray (D,)
    covariances : sequence of two ndarray (D, D)
        ψ + χ and ψ − χ.
    system : QuadraticSystem
        Such as an unfolding of order 1 with a quadratic gain, read at the end of a step.
    u : ndarray (n_inputs, n_channels)
    """

    def __init__(self, mu, covariances, system: QuadraticSystem, u: np.ndarray) -> None:
        self.classes = [(mu, covariances[0]), (-mu, covariances[1])]
        self._shape = (u.shape[1], system.n_steps)
        self._kernels = system.kernels_of_all(u)
        self._a, self._C = self._kernels.full()
        means, second = [], 0.0
        for m, S in self.classes:
            tilted = self._a + 2 * np.einsum("ijk,j->ik", self._C, m)  # (D, N)
            mean = 0.5 * (m @ (self._a + tilted)) + np.einsum("ijk,ij->k", self._C, S)
            root = _root(S)
            core = np.einsum("ia,ijk->ajk", root, self._C, optimize=True)
            core = np.einsum("ajk,jb->abk", core, root, optimize=True)
            flat = core.reshape(-1, core.shape[-1])
            covariance = tilted.T @ S @ tilted + 2 * flat.T @ flat
            means.append(mean)
            second = second + 0.5 * covariance
        plus, minus = means
        self.M = (plus - minus) / 2
        # ½(E₊E₊ᵀ + E₋E₋ᵀ) − MMᵀ is the square of the half sum.
        half = (plus + minus) / 2
        Sigma = np.asarray(second) + np.outer(half, half)
        self.Sigma = (Sigma + Sigma.T) / 2

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """∂κ/∂u at fixed v, through the collapsed kernels a and C."""
        _, a_bar, C_bar = kernel_margin(self.classes, self._a @ v, self._C @ v, eta)
        shape = self._shape
        return self._kernels.pull(v, a_bar.reshape(shape), C_bar.reshape(*shape, *shape))


def kernel_margin(
    classes, a: np.ndarray, C: np.ndarray, eta: float
) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
    """κ of the predictor a·x + xᵀCx on Gaussian classes, and its derivatives.

    Parameters
    ----------
    classes : two pairs of ndarray (D,) and (D, D)
        Mean and covariance of the classes ζ = +1 and −1.
    a, C : ndarray (D,), (D, D)
        C symmetric.
    eta : float

    Returns
    -------
    margin : SoftMargin
    a_bar, C_bar : ndarray
        ∂κ/∂a and ∂κ/∂C.
    """
    values = [m @ a + m @ C @ m + np.vdot(C, S) for m, S in classes]
    half = sum(values) / 2
    a_bar, C_bar, spread = np.zeros_like(a), np.zeros_like(C), half**2
    for sign, (m, S) in zip((1, -1), classes, strict=True):
        # κ = (e₊ − e₋)/2 − (η/2)[half² + (var₊ + var₋)/2]
        mean_bar = 0.5 * sign - 0.5 * eta * half
        slope, SCS = a + 2 * C @ m, S @ C @ S
        tilted = S @ slope
        spread += 0.5 * (slope @ tilted + 2 * np.vdot(C, SCS))
        a_bar += mean_bar * m - 0.5 * eta * tilted
        C_bar += mean_bar * (np.outer(m, m) + S) - eta * SCS
        C_bar -= 0.5 * eta * (np.outer(tilted, m) + np.outer(m, tilted))
    separation = float(values[0] - values[1]) / 2
    variance = 0.5 * eta * float(spread)
    return SoftMargin(separation - variance, separation, variance), a_bar, C_bar


def gaussian_design(
    mu: np.ndarray, covariances, shape: tuple[int, int], degree: int
) -> Design:
    """Points and weights that integrate the moments of Gaussian classes exactly.

    States of order k are polynomials of the stimulus of some ``degree``. Their
    coefficients in normalised Hermite polynomials follow from their values at enough
    points, by least squares; in that basis the mean is the first coefficient and the
    second moment the sum of the squares. No sampling error is left, only rounding.

    Parameters
    ----------
    mu : ndarray (D,)
    covariances : sequence of two ndarray (D, D)
    shape : (n_channels, n_steps)
    degree : int
        Of the states in the stimulus.
    """
    size = len(mu)
    n_basis = comb(size + degree, degree)
    if 3 * n_basis > _MAX_POINTS:
        raise MemoryError(
            f"the closed moments of Gaussian stimuli of {size} values and degree {degree} "
            f"would take {3 * n_basis} points, more than {_MAX_POINTS}; draw series with "
            "`stimuli.sample` and use SampleStimuli, or lower `order`."
        )
    # Any points in general position serve; a fixed draw makes results repeatable.
    points = np.random.default_rng(0).standard_normal((3 * n_basis // 2, size))
    solve = np.linalg.pinv(_hermite(points, degree))
    series, first, n = [], [], len(points)
    second = np.zeros((2 * n, 2 * n))
    for place, (sign, S) in enumerate(zip((1, -1), covariances, strict=True)):
        series.append(sign * mu + points @ _root(S).T)
        first.append(0.5 * sign * solve[0])
        second[place * n : (place + 1) * n, place * n : (place + 1) * n] = (
            0.5 * solve.T @ solve
        )
    return Design(np.concatenate(series).reshape(-1, *shape), np.concatenate(first), second)


def _hermite(points: np.ndarray, degree: int) -> np.ndarray:
    """Orthonormal Hermite polynomials of total degree ≤ ``degree``, (points, basis)."""
    n, size = points.shape
    one = [np.ones_like(points), points]
    for k in range(1, degree):
        # √(k+1) h_{k+1} = x h_k − √k h_{k−1}
        one.append((points * one[k] - np.sqrt(k) * one[k - 1]) / np.sqrt(k + 1))
    columns = []
    for total in range(degree + 1):
        for chosen in combinations_with_replacement(range(size), total):
            column = np.ones(n)
            for variable in set(chosen):
                column = column * one[chosen.count(variable)][:, variable]
            columns.append(column)
    return np.stack(columns, axis=1)


def _root(S: np.ndarray) -> np.ndarray:
    """A matrix L with L Lᵀ = S, for S positive semi-definite."""
    values, vectors = np.linalg.eigh(S)
    return vectors * np.sqrt(np.clip(values, 0, None))
