"""Stimuli with Gaussian classes: closed forms at order 1, and exact designs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import eval_hermitenorm

from .._base import checks as check
from ..math.margins import SoftMargin
from ..systems import System
from .base import Stimuli
from .state_moments import Design, Moments

#: Largest number of points of a design.
_MAX_POINTS = 6000
#: Relative size of a negative eigenvalue that is only the rounding of its computation.
_ROUNDING = 1e-14
#: Default number of series drawn per class if the moments have no closed form.
_N_DRAWS = 5000
#: Seed of the fresh series that test a result; the fit uses another seed.
_FRESH_SEED = 1


@dataclass(frozen=True, eq=False, init=False, repr=False)
class GaussianStimuli(Stimuli):
    """Two classes N(±μ, ψ ± χ) (paper, equation 7, `Gaussian_distribution_input`).

    Parameters
    ----------
    mu : array_like (n_steps,) or (n_channels, n_steps)
        Mean of the class ζ = +1; the other class has the opposite mean.
    psi : array_like (n_channels · n_steps, n_channels · n_steps)
        Mean of the two class covariances, channel after channel.
    chi : array_like of the same shape, optional
        Half the difference of the class covariances; zero by default. Linear networks
        ignore it.
    n_draws : int
        Number of series drawn per class for a system whose moments have no closed form,
        such as the integrated network (`Dynamics`). The series come in pairs around the
        class mean and have exactly the class covariance, so M is exact up to the cubic part
        of the states. With too few series, the fit overestimates κ; compare with
        `Projections.fresh_margin`.
    """

    psi: np.ndarray
    chi: np.ndarray
    n_draws: int

    def __init__(
        self,
        mu: ArrayLike,
        psi: ArrayLike,
        chi: ArrayLike | None = None,
        *,
        n_draws: int = _N_DRAWS,
    ) -> None:
        mean = check.host_array(mu, "mu", ndim=(1, 2))
        n_channels = 1 if mean.ndim == 1 else mean.shape[0]
        size = mean.size
        # Rounding in single precision can make eigenvalues slightly negative.
        single = any(
            str(getattr(given, "dtype", "")).endswith("float32") for given in (psi, chi)
        )
        allowed = 1e-6 if single else 1e-10
        both = _symmetric(psi, "psi", size)
        apart = np.zeros_like(both) if chi is None else _symmetric(chi, "chi", size)
        largest = float(max(np.abs(both).max(), np.abs(apart).max()))
        given = both + apart, both - apart
        upper = _repaired(given[0], "psi + chi", allowed * largest)
        lower = _repaired(given[1], "psi − chi", allowed * largest)
        if upper is not given[0] or lower is not given[1]:
            both, apart = (upper + lower) / 2, (upper - lower) / 2
        self._set(mu=mean.ravel(), psi=both, chi=apart)
        self._set(n_channels=n_channels, n_steps=mean.shape[-1])
        self._set(n_draws=check.count(n_draws, "n_draws", minimum=2))

    @classmethod
    def random(
        cls,
        n_steps: int,
        *,
        strength: float = 1.0,
        eigenvalues: tuple[float, float] = (0.3, 2.2),
        n_channels: int = 1,
        n_draws: int = _N_DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> GaussianStimuli:
        """Draw the paper's artificial stimuli (figures 2 and 3).

        ``strength`` is ‖μ‖; the direction of μ is uniform on the sphere. The eigenvalues of
        both class covariances ψ ± χ are uniform in the range ``eigenvalues``, in
        independent random bases.
        """
        size = check.count(n_steps, "n_steps") * check.count(n_channels, "n_channels")
        span = check.host_array(eigenvalues, "eigenvalues", ndim=(1,))
        low, high = (float(span[0]), float(span[-1])) if len(span) == 2 else (1.0, 0.0)
        ordered = 0 <= low <= high
        check.must(ordered, "eigenvalues", "be a range 0 ≤ low ≤ high", repr(eigenvalues))
        length = check.host_array(strength, "strength", ndim=(0,))
        check.must(length >= 0, "strength", "not be negative", repr(strength))
        rng = check.generator(rng)
        mu = rng.standard_normal(size)
        mu *= length / np.linalg.norm(mu)
        plus, minus = (_random_covariance(rng, size, low, high) for _ in range(2))
        psi, chi = (plus + minus) / 2, (plus - minus) / 2
        return cls(mu.reshape(n_channels, n_steps), psi, chi, n_draws=n_draws)

    def sample(
        self, n_per_class: int, rng: np.random.Generator | int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw stimuli (2 n_per_class, n_steps) or (2 n_per_class, n_channels, n_steps).

        The labels (2 n_per_class,) are +1 for the first half and −1 for the second.
        """
        n = check.count(n_per_class, "n_per_class")
        rng = check.generator(rng)
        halves: list[np.ndarray] = []
        for *_, mean, covariance in self.class_laws:
            drawn = rng.standard_normal((n, len(mean)))
            halves.append(mean + drawn @ _root(covariance).T)
        X = np.concatenate(halves).reshape(2 * n, self.n_channels, self.n_steps)
        labels = np.repeat([1, -1], n)
        return (X[:, 0] if self.n_channels == 1 else X), labels

    @property
    def class_laws(self) -> list[tuple[int, float, np.ndarray, np.ndarray]]:
        """ζ, weight, mean (D,) and covariance (D, D) of each class."""
        signed = ((sign, sign * self.mu, self.psi + sign * self.chi) for sign in (1, -1))
        return [(sign, 0.5, mean, covariance) for sign, mean, covariance in signed]

    @property
    def labelled_second_moment(self) -> np.ndarray:
        """⟨ζ x xᵀ⟩ = χ."""
        return self.chi

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """Return κ of a·x + xᵀCx in closed form, with ∂κ/∂a and ∂κ/∂C."""
        laws = self.class_laws
        values = [m @ a + m @ C @ m + np.vdot(C, S) for *_, m, S in laws]
        half = sum(values) / 2
        a_bar, C_bar, spread = np.zeros_like(a), np.zeros_like(C), half**2
        for sign, _, m, S in laws:
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

    def points(self, degree: int | None, n_series: int) -> Design:
        """Return an exact integration rule if it is small, and random draws otherwise."""
        if degree is not None:
            with suppress(MemoryError):
                return self._exact_design(degree)
        return self._equal(*self.sample(n_series // 2, rng=0))

    def _exact_design(self, degree: int) -> Design:
        """Return points and weights that integrate the moments of the classes exactly.

        States are polynomials of ``degree`` in the stimulus. Least squares gives their
        coefficients in normalised Hermite polynomials from their values at enough points.
        In that basis, the mean is the first coefficient and the second moment is the sum of
        squares. The result has no sampling error, only rounding errors.
        """
        size = len(self.mu)
        n_points = 3 * comb(size + degree, degree)
        if n_points > _MAX_POINTS:
            closed = f"Gaussian stimuli of {size} values and degree {degree}"
            points = f"would take {n_points} points, more than {_MAX_POINTS}"
            advice = "draw series with `stimuli.sample` and use SampleStimuli, or lower"
            raise MemoryError(f"closed moments of {closed} {points}; {advice} `order`.")
        # Any points in general position work; a fixed draw makes results repeatable.
        points = np.random.default_rng(0).standard_normal((n_points // 2, size))
        solve = np.linalg.pinv(_hermite(points, degree))
        X = np.concatenate([m + points @ _root(S).T for *_, m, S in self.class_laws])
        first = np.concatenate([0.5 * solve[0], -0.5 * solve[0]])
        second = np.kron(np.eye(2), 0.5 * solve.T @ solve)
        return Design(X.reshape(-1, self.n_channels, self.n_steps), first, second)

    def _equal(self, X: np.ndarray, signs: np.ndarray) -> Design:
        """Return a design of labelled series with equal weights."""
        weights = np.full(len(X), 1 / len(X))
        shaped = X.reshape(-1, self.n_channels, self.n_steps)
        return Design(shaped, weights * signs, weights)

    def _nonlinear_map(self, system: System) -> Callable[[np.ndarray], Moments]:
        if system.has_kernels_of_all(self.n_channels):
            return lambda u: GaussianMoments(self, system, u)
        degree = system.degree
        design = self._drawn if degree is None else self._exact_design(degree)
        return design.moment_map(system)

    @property
    def n_series(self) -> int:
        """Number of draws of both classes together."""
        return 2 * self.n_draws

    def rough_map(
        self, system: System, n_series: int, *, single: bool = True
    ) -> Callable[[np.ndarray], Moments]:
        """Return a `moment_map` that uses at most about ``n_series`` draws."""
        if system.degree is not None:
            return self.moment_map(system)
        fewer = n_series < 2 * self.n_draws
        design = self._draw(n_series // 2) if fewer else self._drawn
        return design.moment_map(system, single=single)

    @cached_property
    def _drawn(self) -> Design:
        return self._draw(self.n_draws)

    def _draw(self, n_draws: int) -> Design:
        """Draw series of each class (rounded up to pairs), always the same."""
        rng, half, size = np.random.default_rng(0), -(-n_draws // 2), len(self.mu)
        halves: list[np.ndarray] = []
        for *_, mean, covariance in self.class_laws:
            z = rng.standard_normal((half, size))
            if half > size:
                # Whiten the draws: their second moment becomes the identity.
                z = np.linalg.solve(np.linalg.cholesky(z.T @ z / half), z.T).T
            spread = z @ _root(covariance).T
            halves += [mean + spread, mean - spread]
        return self._equal(np.concatenate(halves), np.repeat([1.0, -1.0], 2 * half))

    def fresh_margin(
        self, system: System, u: ArrayLike, v: ArrayLike, eta: float
    ) -> tuple[float, float] | None:
        """Return κ on ``n_draws`` independent series per class, and its standard error.

        Return None if the moments have a closed form, so nothing was drawn. If the system
        diverges for one of the series, κ is −∞ and its error is NaN.
        """
        if system.is_linear or system.degree is not None:
            return None
        X, signs = self.sample(self.n_draws, rng=_FRESH_SEED)
        projection = check.input_projection(u, system.n_inputs, self.n_channels)
        series = X.reshape(-1, self.n_channels, self.n_steps)
        try:
            Y = system.states(series, projection)
        except FloatingPointError:
            return -np.inf, np.nan
        z = signs * (Y @ check.readout_vector(v, system.n_outputs))
        off = z - z.mean()
        kappa = z.mean() - 0.5 * eta * (off**2).mean()
        # Contribution of each series to κ. The classes are drawn separately, so only the
        # scatter within a class counts.
        parts = (off - 0.5 * eta * off**2).reshape(2, -1)
        error = np.sqrt(parts.var(axis=1, ddof=1).sum() / (4 * self.n_draws))
        return float(kappa), float(error)


class GaussianMoments:
    """`Moments` of Gaussian classes at order 1, at one u.

    Each state is z_i = a_i·x + xᵀC_i x. For a class N(m, S)

        E z_i         = a_i·m + mᵀC_i m + tr(C_i S)
        cov(z_i, z_j) = (a_i + 2C_i m)ᵀ S (a_j + 2C_j m) + 2 tr(C_i S C_j S)

    which include stimulus moments up to the fourth. M and Σ of the labelled states combine
    the two classes with weight ½ each. Σ keeps its O(α²) part and is positive
    semi-definite.
    """

    def __init__(self, stimuli: GaussianStimuli, system: System, u: np.ndarray) -> None:
        self._stimuli, self._shape = stimuli, (u.shape[1], system.n_steps)
        self._kernels = system.kernels_of_all(u)
        self._a, self._C = self._kernels.full()
        means, second = list[np.ndarray](), 0.0
        for *_, m, S in stimuli.class_laws:
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
        """Return ∂κ/∂u at fixed v, through the collapsed kernels a and C."""
        _, a_bar, C_bar = self._stimuli.kernel_margin(self._a @ v, self._C @ v, eta)
        shape = self._shape
        return self._kernels.pull(v, a_bar.reshape(shape), C_bar.reshape(*shape, *shape))


def _hermite(points: np.ndarray, degree: int) -> np.ndarray:
    """Return orthonormal Hermite polynomials up to total ``degree``, (points, basis)."""
    n, size = points.shape
    one = [eval_hermitenorm(k, points) / factorial(k) ** 0.5 for k in range(degree + 1)]
    columns: list[np.ndarray] = []
    for total in range(degree + 1):
        for chosen in combinations_with_replacement(range(size), total):
            column = np.ones(n)
            for variable in set(chosen):
                column = column * one[chosen.count(variable)][:, variable]
            columns.append(column)
    return np.stack(columns, axis=1)


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return R with R Rᵀ = covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.clip(values, 0, None))


def _random_covariance(
    rng: np.random.Generator, size: int, low: float, high: float
) -> np.ndarray:
    basis, triangle = np.linalg.qr(rng.standard_normal((size, size)))
    basis = basis * np.sign(np.diag(triangle))  # makes the basis uniform
    made = (basis * rng.uniform(low, high, size)) @ basis.T
    return (made + made.T) / 2


def _symmetric(value: ArrayLike, name: str, size: int) -> np.ndarray:
    array = check.host_array(value, name, ndim=(2,))
    wanted = f"have shape ({size}, {size}) to match `mu`"
    check.must(array.shape == (size, size), name, wanted, array.shape)
    if not np.allclose(array, array.T, rtol=1e-8, atol=1e-10 * np.abs(array).max()):
        raise ValueError(f"`{name}` must be symmetric.")
    return (array + array.T) / 2


def _repaired(matrix: np.ndarray, name: str, allowed: float) -> np.ndarray:
    """Return the covariance of a class, without negative variances due to rounding.

    Along a direction of negative variance, pairs would lie above every bound.
    """
    values, vectors = np.linalg.eigh(matrix)
    wanted = "be positive semi-definite, as the covariance of a class"
    check.must(
        values[0] >= -allowed, name, wanted, f"the lowest eigenvalue {values[0]:.3g}"
    )
    if values[0] >= -_ROUNDING * np.abs(matrix).max():
        return matrix
    made = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (made + made.T) / 2
