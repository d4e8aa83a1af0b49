"""Stimuli with Gaussian classes: moments in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import _validation as check
from ..margins import SoftMargin
from ..systems import QuadraticSystem, System
from .base import Stimuli
from .closed_form import GaussianMoments, gaussian_design, kernel_margin
from .design import Design, Moments


@dataclass(frozen=True, eq=False, init=False, repr=False)
class GaussianStimuli(Stimuli):
    """Classes N(±μ, ψ ± χ) (paper, `Gaussian_distribution_input`).

    Parameters
    ----------
    mu : array_like (n_steps,) or (n_channels, n_steps)
        Mean of the class ζ = +1; the other class has the opposite mean.
    psi : array_like (n_channels · n_steps, n_channels · n_steps)
        Mean of the two class covariances, channels one after the other.
    chi : array_like of the same shape, optional
        Half the difference of the class covariances, zero by default. A linear network
        does not see it.
    """

    chi: np.ndarray

    def __init__(self, mu: Any, psi: Any, chi: Any = None) -> None:
        mean = check.host_array(mu, "mu", ndim=(1, 2))
        n_channels = 1 if mean.ndim == 1 else mean.shape[0]
        size = mean.size
        # A covariance that was computed in single precision is positive to its rounding.
        single = any(
            str(getattr(given, "dtype", "")).endswith("float32") for given in (psi, chi)
        )
        allowed = 1e-5 if single else 1e-10
        psi = _symmetric(psi, "psi", size)
        chi = np.zeros_like(psi) if chi is None else _symmetric(chi, "chi", size)
        for sign, name in ((1, "psi + chi"), (-1, "psi − chi")):
            lowest = float(np.linalg.eigvalsh(psi + sign * chi)[0])
            if lowest < -allowed * max(np.abs(psi).max(), np.abs(chi).max()):
                raise ValueError(
                    f"`{name}` must be positive semi-definite, as the covariance of a "
                    f"class; its lowest eigenvalue is {lowest:.3g}."
                )
        values = {
            "mu": mean.ravel(),
            "psi": psi,
            "n_channels": n_channels,
            "n_steps": mean.shape[-1],
            "chi": chi,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def random(
        cls,
        n_steps: int,
        *,
        strength: float = 1.0,
        eigenvalues: tuple[float, float] = (0.3, 2.2),
        n_channels: int = 1,
        rng: np.random.Generator | int | None = None,
    ) -> GaussianStimuli:
        """Draw the paper's artificial stimuli (Figs. 2 and 3).

        Parameters
        ----------
        n_steps : int
        strength : float
            ‖μ‖; the direction of μ is uniform on the sphere.
        eigenvalues : (float, float)
            Range of the eigenvalues of both class covariances ψ ± χ, drawn uniformly in
            independent random bases.
        n_channels : int
        rng : numpy Generator, int or None
        """
        size = check.count(n_steps, "n_steps") * check.count(n_channels, "n_channels")
        span = check.host_array(eigenvalues, "eigenvalues", ndim=(1,))
        low, high = (float(span[0]), float(span[-1])) if len(span) == 2 else (1.0, 0.0)
        if not 0 <= low <= high:
            raise ValueError(
                f"`eigenvalues` must be a range 0 ≤ low ≤ high; got {eigenvalues!r}."
            )
        length = check.host_array(strength, "strength", ndim=(0,))
        if length < 0:
            raise ValueError(f"`strength` must not be negative; got {strength!r}.")
        rng = check.generator(rng)
        mu = rng.standard_normal(size)
        mu *= length / np.linalg.norm(mu)
        plus, minus = (_random_covariance(rng, size, low, high) for _ in range(2))
        return cls(mu.reshape(n_channels, n_steps), (plus + minus) / 2, (plus - minus) / 2)

    def sample(
        self, n_per_class: int, rng: np.random.Generator | int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw stimuli of both classes.

        Returns
        -------
        X : ndarray (2 n_per_class, n_steps) or (2 n_per_class, n_channels, n_steps)
        labels : ndarray (2 n_per_class,)
            +1 for the first half, −1 for the second.
        """
        n = check.count(n_per_class, "n_per_class")
        rng = check.generator(rng)
        halves = []
        for sign in (1, -1):
            values, vectors = np.linalg.eigh(self.psi + sign * self.chi)
            root = vectors * np.sqrt(np.clip(values, 0, None))
            halves.append(sign * self.mu + rng.standard_normal((n, len(self.mu))) @ root.T)
        X = np.concatenate(halves).reshape(2 * n, self.n_channels, self.n_steps)
        labels = np.repeat([1, -1], n)
        return (X[:, 0] if self.n_channels == 1 else X), labels

    @property
    def labelled_second_moment(self) -> np.ndarray:
        """⟨ζ x xᵀ⟩ = χ."""
        return self.chi

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """κ of a·x + xᵀCx in closed form, and ∂κ/∂a, ∂κ/∂C."""
        classes = list(zip((self.mu, -self.mu), self._covariances, strict=True))
        return kernel_margin(classes, a, C, eta)

    @property
    def _covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the classes ζ = +1 and −1."""
        return self.psi + self.chi, self.psi - self.chi

    def points(self, degree: int | None, n_series: int) -> Design:
        """An exact rule of integration while it is small; otherwise draws."""
        shape = (self.n_channels, self.n_steps)
        if degree is not None:
            try:
                return gaussian_design(self.mu, self._covariances, shape, degree)
            except MemoryError:
                pass
        X, signs = self.sample(n_series // 2, rng=0)
        weights = np.full(len(X), 1 / len(X))
        return Design(X.reshape(-1, *shape), weights * signs, weights)

    def _nonlinear_map(self, system: System) -> Callable[[np.ndarray], Moments]:
        if isinstance(system, QuadraticSystem) and system.has_kernels_of_all(
            self.n_channels
        ):
            return lambda u: GaussianMoments(self.mu, self._covariances, system, u)
        if system.degree is None:
            raise TypeError(
                "Gaussian stimuli have no closed moments through a system that is no "
                "polynomial of them; draw series with `stimuli.sample` and use "
                "SampleStimuli."
            )
        shape = (self.n_channels, self.n_steps)
        design = gaussian_design(self.mu, self._covariances, shape, system.degree)
        return partial(design.at, system)


def _random_covariance(
    rng: np.random.Generator, size: int, low: float, high: float
) -> np.ndarray:
    basis, triangle = np.linalg.qr(rng.standard_normal((size, size)))
    basis = basis * np.sign(np.diag(triangle))  # makes the basis uniform
    made = (basis * rng.uniform(low, high, size)) @ basis.T
    return (made + made.T) / 2


def _symmetric(value: Any, name: str, size: int) -> np.ndarray:
    array = check.host_array(value, name, ndim=(2,))
    if array.shape != (size, size):
        raise ValueError(
            f"`{name}` must have shape ({size}, {size}) to match `mu`; got {array.shape}."
        )
    if not np.allclose(array, array.T, rtol=1e-8, atol=1e-10 * np.abs(array).max()):
        raise ValueError(f"`{name}` must be symmetric.")
    return (array + array.T) / 2
