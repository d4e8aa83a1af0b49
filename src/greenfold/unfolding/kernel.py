"""A reservoir with both projections fixed is a plain kernel of the stimulus.

    z = a · x                      (order 0)
    z = a · x + xᵀ C x             (order 1, quadratic gain)

These kernels are how predictions are made; the network is only run to check them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _validation as check
from .._arrays import batches, like, namespace


@dataclass(frozen=True, eq=False)
class Kernel:
    """The collapsed predictor of one pair of projections.

    Attributes
    ----------
    linear : ndarray (n_channels, n_steps)
        a, in order of time.
    quadratic : ndarray (n_channels, n_steps, n_channels, n_steps) or None
        C, symmetric under the exchange of its two (channel, step) pairs.
    error_bound : float
        |z − z'| ≤ error_bound · ‖x‖² for the decision values z' of the kernel that this one
        was truncated from; zero for a kernel as it came from the network.

    Notes
    -----
    Steps after the readout have zero weight.
    """

    linear: np.ndarray
    quadratic: np.ndarray | None = None
    error_bound: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        linear = check.host_array(self.linear, "linear", ndim=(2,))
        object.__setattr__(self, "linear", linear)
        if self.quadratic is None:
            return
        quadratic = check.host_array(self.quadratic, "quadratic", ndim=(4,))
        if quadratic.shape != (*linear.shape, *linear.shape):
            raise ValueError(
                f"`quadratic` must have shape {(*linear.shape, *linear.shape)} to match "
                f"`linear`; got {quadratic.shape}."
            )
        object.__setattr__(self, "quadratic", quadratic)

    @property
    def n_steps(self) -> int:
        """Number of steps of the stimuli."""
        return self.linear.shape[1]

    def decision_values(self, X: Any) -> Any:
        """Read-out z of each stimulus.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            Any array namespace; the result lives where ``X`` does.

        Returns
        -------
        array (n_cases,), float64
        """
        X = check.stimuli(X, self.n_steps)
        n_channels = self.linear.shape[0]
        if X.shape[1] != n_channels:
            raise ValueError(
                f"`X` must have {n_channels} channel(s), as the kernel has; "
                f"got shape {tuple(X.shape)}."
            )
        xp = namespace(X)
        size = self.linear.size
        a = like(self.linear.reshape(size), X)
        square = self._square(X)
        found = []
        for part in batches(X.shape[0], 8.0 * size * (3 if square is not None else 2)):
            batch = check.finite_batch(X[part, ...], xp, part.start)
            flat = xp.reshape(batch, (batch.shape[0], size))
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                z = flat @ a
                if square is not None:
                    z = z + square(flat)
            found.append(check.finite_result(z, xp))
        return xp.concat(found) if len(found) > 1 else found[0]

    def _square(self, reference: Any) -> Callable[[Any], Any] | None:
        """xᵀCx of flat stimuli as a function, prepared where ``reference`` lives."""
        if self.quadratic is None:
            return None
        xp, size = namespace(reference), self.linear.size
        C = like(self.quadratic.reshape(size, size), reference)
        return lambda flat: xp.sum((flat @ C) * flat, axis=1)

    def predict(self, X: Any) -> Any:
        """Class ±1 of each stimulus: the sign of its decision value, +1 at zero."""
        z = self.decision_values(X)
        xp = namespace(z)
        return xp.where(z >= 0, xp.ones_like(z), -xp.ones_like(z))

    def low_rank(self, tol: float = 1e-3) -> Kernel:
        """The same kernel with few eigenvectors of C, where that is cheaper.

            z = a · x + Σ_r λ_r (e_r · x)²

        takes r (D + 2) multiplications for stimuli of D values instead of D (D + 1). The
        network tells few modes of a long stimulus apart, so that the eigenvalues decay.

        Parameters
        ----------
        tol : float
            Eigenvalues of C up to this share of the largest one are dropped, largest and
            share in absolute value; 0 keeps all that are not zero.

        Returns
        -------
        Kernel
            A `LowRankKernel`, its error bounded by its ``error_bound`` ≤ tol · max|λ|; or
            this kernel itself where it has no quadratic part or where nothing is saved.

        Examples
        --------
        >>> import numpy as np
        >>> C = np.zeros((1, 3, 1, 3))
        >>> C[0, 0, 0, 0], C[0, 1, 0, 1] = 2.0, 1e-3
        >>> kernel = Kernel(np.ones((1, 3)), C).low_rank(1e-2)
        >>> len(kernel.eigenvalues), kernel.error_bound
        (1, 0.001)
        """
        share = float(check.host_array(tol, "tol", ndim=(0,)))
        if not 0 <= share < 1:
            raise ValueError(f"`tol` must be a share in [0, 1); got {tol!r}.")
        if self.quadratic is None:
            return self
        size = self.linear.size
        C = self.quadratic.reshape(size, size)
        values, vectors = np.linalg.eigh((C + C.T) / 2)
        order = np.argsort(-np.abs(values), kind="stable")
        values, vectors = values[order], vectors[:, order]
        rank = int((np.abs(values) > share * np.abs(values[0])).sum())
        if rank * (size + 2) >= size * (size + 1):
            return self
        kept, bound = vectors[:, :rank], float(np.abs(values[rank]))
        truncated = ((kept * values[:rank]) @ kept.T).reshape(self.quadratic.shape)
        return LowRankKernel(
            self.linear,
            truncated,
            eigenvalues=values[:rank],
            eigenvectors=kept,
            error_bound=bound,
        )


@dataclass(frozen=True, eq=False)
class LowRankKernel(Kernel):
    """A kernel with C truncated to its largest eigenvalues; made by `Kernel.low_rank`.

    Attributes
    ----------
    quadratic : ndarray
        The truncated C.
    eigenvalues : ndarray (rank,)
        λ_r, by decreasing absolute value.
    eigenvectors : ndarray (n_channels · n_steps, rank)
        e_r in columns; channels one after the other.
    error_bound : float
        |xᵀ(C − C_r)x| ≤ error_bound · ‖x‖², up to rounding: the largest |λ| dropped.
    """

    eigenvalues: np.ndarray = field(kw_only=True)
    eigenvectors: np.ndarray = field(kw_only=True)

    def _square(self, reference: Any) -> Callable[[Any], Any]:
        values = like(self.eigenvalues, reference)
        vectors = like(self.eigenvectors, reference)
        return lambda flat: (flat @ vectors) ** 2 @ values
