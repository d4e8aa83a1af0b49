"""Means and covariances of classes of series; large covariances are stored as factors.

The covariance ψ of n series of D values has rank n at most. If D is large and n is not,
only S (D, n) with S Sᵀ = ψ is stored, and ψ is never formed. For 40 series of 64 channels
and 200 steps, ψ would take 1.3 GB; S takes 4 MB.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .._base import checks as check
from .._base.arrays import BATCH_BYTES, Array, batches, like, namespace, to_host

#: Number of values per series up to which a full matrix costs little (8 MiB).
DENSE_SIZE = 1024
#: Share of the free memory that one full matrix may take; a fit holds several.
_SHARE = 0.1


class Factored:
    """A symmetric, positive semi-definite matrix S Sᵀ, stored as S (size, rank).

    It supports products, sums with factored or full matrices, and scaling by non-negative
    numbers. ``numpy.asarray`` forms the matrix if memory allows.
    """

    #: Tells NumPy that this class implements the operators between its arrays and itself.
    __array_ufunc__ = None

    def __init__(self, factor: np.ndarray) -> None:
        self.factor = factor

    @classmethod
    def zero(cls, size: int) -> Factored:
        """Return the zero matrix."""
        return cls(np.zeros((size, 0)))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return len(self.factor), len(self.factor)

    @property
    def T(self) -> Factored:
        """The transpose, which is the matrix itself."""
        return self

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        return self.factor @ (self.factor.T @ other)

    def __rmatmul__(self, other: np.ndarray) -> np.ndarray:
        return (other @ self.factor) @ self.factor.T

    def column(self, index: int) -> np.ndarray:
        """Return one column of the matrix."""
        return self.factor @ self.factor[index]

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of the matrix."""
        return (self.factor**2).sum(1)

    def __mul__(self, number: float) -> Factored:
        return Factored(self.factor * np.sqrt(number))

    __rmul__ = __mul__

    def __truediv__(self, number: float) -> Factored:
        return self * (1 / number)

    def __add__(self, other: Symmetric) -> Symmetric:
        if not self.factor.shape[1]:
            return other
        if not isinstance(other, Factored):
            return np.asarray(self) + other
        made = Factored(np.concatenate([self.factor, other.factor], axis=1))
        size, rank = made.factor.shape
        # Above this rank, the full matrix takes less memory than the factor.
        return np.asarray(made) if 2 * rank > size else made

    __radd__ = __add__

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> np.ndarray:
        refuse_if_large(len(self.factor))
        made = self.factor @ self.factor.T
        return made if dtype is None else made.astype(dtype)


Symmetric: TypeAlias = np.ndarray | Factored


def outer(vector: np.ndarray, weight: float, like: Symmetric) -> Symmetric:
    """Return ``weight`` · x xᵀ, factored if ``like`` is; the weight is non-negative."""
    if isinstance(like, Factored):
        return Factored(np.sqrt(weight) * vector[:, None])
    return weight * np.outer(vector, vector)


def trace(matrix: Symmetric) -> float:
    """Return the sum of the diagonal."""
    if isinstance(matrix, Factored):
        return float((matrix.factor**2).sum())
    return float(np.trace(matrix))


@dataclass(frozen=True)
class ClassMoments:
    """The weight, mean and scatter Σ p (x − m)(x − m)ᵀ of one class.

    The moments of two parts of a class merge exactly. If each series has the weight one,
    the weight of the class is its number of series. For few long series, or none, only the
    factor of the scatter is stored.
    """

    count: float
    mean: np.ndarray
    scatter: Symmetric

    @classmethod
    def empty(cls, size: int) -> ClassMoments:
        """Return the moments of no series."""
        return cls(0, np.zeros(size), Factored.zero(size))

    @classmethod
    def of(
        cls,
        X: Array,
        rows: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        first: int = 0,
        budget: int = BATCH_BYTES,
    ) -> ClassMoments:
        """Return the moments of the series ``rows`` of X (n_cases, n_channels, n_steps).

        ``weights`` holds one positive number per row. The computation works in batches of
        about ``budget`` bytes. Error messages count the series from ``first``.
        """
        size = X.shape[1] * X.shape[2]
        if not len(rows):
            return cls.empty(size)
        few = size > DENSE_SIZE and 3 * len(rows) <= size
        if size > DENSE_SIZE and not few:
            refuse_if_large(size)
        xp, total = namespace(X), None
        for part in list(batches(len(rows), 32.0 * size, budget)):
            chosen = xp.take(X, like(rows[part], X), axis=0)
            flat = xp.reshape(xp.astype(chosen, xp.float64), (-1, size))
            if not bool(xp.all(xp.isfinite(flat))):
                for row in rows[part].tolist():  # to name the series in the error
                    check.finite_batch(X[row : row + 1, ...], xp, first + row)
            largest = float(to_host(xp.max(xp.abs(flat))))
            # Tiny values are allowed if other classes have larger ones.
            if (
                not 1e-140 < largest < 1e140
                and largest
                and not (largest < 1 < 1e140 * float(to_host(xp.max(xp.abs(X)))))
            ):
                held = f"`X` holds values of size {largest:.3g}, whose squares leave"
                raise ValueError(f"{held} the range of floats; rescale the series.")
            if weights is None:
                each, count = None, float(flat.shape[0])
                mean = xp.mean(flat, axis=0)
            else:
                each, count = like(weights[part], flat), float(weights[part].sum())
                mean = (each @ flat) / count
            centred = flat - mean
            if few:
                root = centred if each is None else centred * xp.sqrt(each)[:, None]
                scatter = Factored(to_host(root).T)
            else:
                weighted = centred if each is None else centred * each[:, None]
                scatter = to_host(xp.matrix_transpose(weighted) @ centred)
            found = cls(count, to_host(mean), scatter)
            total = found if total is None else total.merge(found)
        assert total is not None
        return total

    def merge(self, other: ClassMoments) -> ClassMoments:
        """Return the moments of both parts together.

        The pairwise update of Chan, Golub & LeVeque (1983) subtracts no large sums.
        """
        if self.count == 0:
            return other
        total = self.count + other.count
        shift = other.mean - self.mean
        mean = self.mean + shift * (other.count / total)
        scatter = self.scatter + other.scatter
        between = outer(shift, self.count * other.count / total, scatter)
        return ClassMoments(total, mean, scatter + between)

    def scaled(self, unit: float) -> ClassMoments:
        """Return the moments of the series multiplied by ``unit``."""
        with np.errstate(over="ignore"):  # the scatter of series beyond 1e154 overflows
            return ClassMoments(self.count, self.mean * unit, self.scatter * unit * unit)

    @property
    def covariance(self) -> Symmetric:
        """Scatter divided by weight; zero if there are no series."""
        return self.scatter / (self.count or 1.0)


def labelled_moments(
    means: Sequence[np.ndarray],
    covariances: Sequence[Symmetric],
    share: np.ndarray,
    scale: float = 1.0,
) -> tuple[np.ndarray, Symmetric]:
    """Return μ = ⟨ζx⟩ and ψ = cov(ζx) for the classes ζ = −1 and ζ = +1.

    ``share`` (2,) holds the weights of the classes, which add up to one. The series are
    multiplied by ``scale``.
    """
    means, covariances = [m * scale for m in means], [c * scale**2 for c in covariances]
    mu = share[1] * means[1] - share[0] * means[0]
    # Adding the parts within and between classes avoids a difference of large numbers.
    apart = means[1] + means[0]
    within = share[0] * covariances[0] + share[1] * covariances[1]
    psi = within + outer(apart, share[0] * share[1], within)
    return mu, psi if isinstance(psi, Factored) else (psi + psi.T) / 2


def root(matrix: Symmetric) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal columns Q and sizes s > 0 with Q diag(s²) Qᵀ = the matrix."""
    if isinstance(matrix, Factored):
        basis, sizes, _ = np.linalg.svd(matrix.factor, full_matrices=False)
        keep = sizes > 1e-14 * sizes.max(initial=0.0)
        return basis[:, keep], sizes[keep]
    values, vectors = np.linalg.eigh(matrix)
    keep = values > 1e-14 * max(float(values[-1]), 0.0)
    return vectors[:, keep], np.sqrt(values[keep])


def refuse_if_large(size: int) -> None:
    """Raise a MemoryError if a full covariance does not fit into memory."""
    free = _free_memory()
    wanted = 8.0 * size**2
    if size > DENSE_SIZE and free is not None and wanted > _SHARE * free:
        raise MemoryError(
            f"the covariance of series of {size} values (channels × steps) takes "
            f"{wanted / 2**30:.3g} GiB; a fit needs several, and only "
            f"{free / 2**30:.3g} GiB are free. Take fewer steps or channels (average "
            f"neighbouring steps), or at most {size // 3} series: at the linear order, "
            "their covariance is never formed."
        )


def _free_memory() -> float | None:
    """Return the free memory in bytes, or None if the system does not report it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES") / 2
    except (AttributeError, OSError, ValueError):
        return None
