"""Ridge regression: the solve for one penalty or many, and leave-one-out errors.

With few features, everything follows from their Gram matrix FᵀF (`solve_ridge`,
`ridge_path`). With more features than cases, it follows from the Gram matrix of the cases,
K = F Fᵀ (`solve_dual`, `dual_path`). `RidgeSums` adds, removes and learns rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import linalg

eigh: Callable[..., tuple[np.ndarray, np.ndarray]] = linalg.eigh
#: Penalties to compare, relative to the mean squared length of a centred case. They range
#: from almost none to a penalty that leaves little but the mean.
PENALTIES = np.logspace(-5, 2, 22)
#: Smallest penalty, relative to the largest eigenvalue of a Gram matrix: directions below
#: its rounding error are not determined, at any penalty.
_LEAST = 1e-15
#: Smallest number of rows after which recursive least squares restarts.
_LEAST_BLOCK = 64
#: Relative spread of cases below which they differ only by rounding.
_ALIKE = 1e-12


def solve_ridge(gram: np.ndarray, cross: np.ndarray, penalty: float) -> np.ndarray:
    """Return (G + λ)⁻¹ C for a Gram matrix G (p, p) and cross products C (p, n_targets).

    G may be singular.
    """
    return ridge_solver(gram, penalty)(cross)


def ridge_solver(gram: np.ndarray, penalty: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that maps C (p, k) to (G + λ)⁻¹ C; G may be singular."""
    A = (gram + gram.T) / 2
    A[np.diag_indices_from(A)] += penalty
    size = linalg.norm(A, 1)
    with suppress(linalg.LinAlgError):
        factor = linalg.cho_factor(A)
        if linalg.lapack.dpocon(factor[0], size)[0] > np.finfo(float).eps:
            return lambda cross: linalg.cho_solve(factor, cross)
    # Rounding of G hides the penalty.
    sizes, vectors = linalg.eigh(gram)
    damped = np.maximum(sizes, 0.0) + _hidden(penalty, sizes)
    return lambda cross: vectors @ (vectors.T @ cross / damped[:, None])


def ridge_path(
    gram: np.ndarray, cross: np.ndarray, penalties: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield (G + λ)⁻¹ C for each penalty λ, from one eigenvalue decomposition."""
    sizes, vectors = linalg.eigh(gram)
    along = vectors.T @ cross
    for penalty in penalties:
        damped = np.maximum(sizes, 0.0) + _hidden(float(penalty), sizes)
        yield vectors @ (along / damped[:, None])


def _hidden(penalty: float, sizes: np.ndarray) -> float:
    """Return a penalty above the rounding error of a Gram matrix with these eigenvalues."""
    return max(penalty, _LEAST * float(sizes[-1]), np.finfo(float).tiny)


@dataclass(eq=False)
class RidgeSums:
    """Sums over rows, which give ridge readouts for one or many penalties.

    Features and targets are centred at their means, so the intercept is not penalised.
    """

    n_features: int
    n: float
    sums: np.ndarray
    products: np.ndarray
    #: Number of fitted rows, which scales the penalty of rows learnt one by one.
    n_fitted: float = 0.0

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> RidgeSums:
        """Return sums over no rows."""
        size = n_features + n_targets
        return cls(n_features, 0.0, np.zeros(size), np.zeros((size, size)))

    def add(
        self,
        features: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
        sign: int = 1,
    ) -> Self:
        """Add rows with weights (n_rows,), or remove them with ``sign`` −1."""
        weights = np.ones(len(features)) if weights is None else weights
        root = np.sqrt(weights)
        both = np.hstack([features, targets])
        both *= root[:, None]
        self.n += sign * float(weights.sum())
        self.sums += sign * (root @ both)
        self.products += sign * (both.T @ both)
        return self

    def without(
        self, features: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None
    ) -> RidgeSums:
        """Return the sums without some rows, added with these weights."""
        other = RidgeSums(self.n_features, self.n, self.sums.copy(), self.products.copy())
        return other.add(features, targets, weights, -1)

    def only(self, features: slice) -> RidgeSums:
        """Return the sums for some of the features."""
        kept = np.arange(self.n_features)[features]
        both = np.append(kept, np.arange(self.n_features, len(self.sums)))
        parts = self.sums[both], self.products[np.ix_(both, both)]
        return RidgeSums(len(kept), self.n, *parts, self.n_fitted)

    def solve(
        self, ridges: np.ndarray, features: slice | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return V (n_ridges, n_features, n_targets) and the intercepts.

        The intercepts have shape (n_ridges, n_targets). V is zero for other than the given
        features.
        """
        if features is not None:
            part, intercepts = self.only(features).solve(ridges)
            whole = np.zeros((len(part), self.n_features, part.shape[2]))
            whole[:, features] = part
            return whole, intercepts
        mean, k = self.sums / self.n, self.n_features
        covariance = self.products / self.n - np.outer(mean, mean)
        V = np.stack(list(ridge_path(covariance[:k, :k], covariance[:k, k:], ridges)))
        return V, mean[k:] - mean[:k] @ V

    def learn(
        self,
        features: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        ridge: float,
        forgetting: float,
    ) -> np.ndarray:
        """Add rows one by one; return the prediction for each, made before it was added.

        This is recursive least squares. Each row reduces the weight of all earlier rows.
        """
        made, block = np.empty_like(targets), max(features.shape[1], _LEAST_BLOCK)
        for start in range(0, len(features), block):
            # Restart from the sums. Otherwise rounding errors and the forgotten part of the
            # penalty would grow without bound along directions that are not excited.
            spread, theta = self._recursion(ridge)
            part = slice(start, start + block)
            for index, row in enumerate(features[part], start):
                row = np.append(row, 1.0)
                made[index] = row @ theta
                pulled, weight = spread @ row, weights[index]
                gain = weight * pulled / (forgetting + weight * (row @ pulled))
                theta += gain[:, None] * (targets[index] - made[index])
                spread -= np.outer(gain, pulled)
                spread /= forgetting
            self._discount(features[part], targets[part], weights[part], forgetting)
        return made

    def learnt(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """Return V (n_features, n_targets) and the intercepts, after `learn`."""
        _, theta = self._recursion(ridge)
        return theta[:-1], theta[-1]

    def _discount(
        self,
        features: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        forgetting: float,
    ) -> None:
        both = np.hstack([features, targets])
        weights = weights * forgetting ** np.arange(len(both))[::-1]
        kept = forgetting ** len(both)
        self.n = kept * self.n + weights.sum()
        self.sums = kept * self.sums + weights @ both
        self.products = kept * self.products + (weights[:, None] * both).T @ both

    def _recursion(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (Σ f fᵀ + Λ)⁻¹ with the constant feature last, and its readout.

        Λ is the penalty of the fitted rows. Rows added one by one do not change it, and
        forgotten rows do not reduce it.
        """
        k = self.n_features
        A = np.empty((k + 1, k + 1))
        A[:k, :k] = self.products[:k, :k]
        A[:k, k] = A[k, :k] = self.sums[:k]
        A[k, k] = self.n
        least = 1e-15 * float(np.trace(A))
        A[np.diag_indices(k)] += max(self.n_fitted * ridge, least)
        cross = np.vstack([self.products[:k, k:], self.sums[k:]])
        P = linalg.inv(A)
        return (P + P.T) / 2, linalg.solve(A, cross, assume_a="sym")


def leave_one_out(
    features: np.ndarray, targets: np.ndarray, penalties: np.ndarray
) -> np.ndarray:
    """Return the mean squared error of each case, predicted without it, (n_penalties,).

    Features are (n_cases, p), targets (n_cases, n_targets), and penalties in units of FᵀF.
    The intercept is not penalised.
    """
    residuals = _residuals_left_out(features, targets, penalties)
    return np.array([(one**2).mean() for one in residuals])


def predicted_without(features: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the prediction of each case without it, at the best of the `PENALTIES`.

    Arguments are those of `leave_one_out`.
    """
    unit = float(((features - features.mean(0)) ** 2).sum()) / len(features) or 1.0
    residuals = _residuals_left_out(features, targets, PENALTIES * unit)
    return targets - min(residuals, key=lambda one: float((one**2).mean()))


def _residuals_left_out(
    features: np.ndarray, targets: np.ndarray, penalties: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield the residuals of each case, predicted without it, per penalty."""
    n = len(features)
    centred, t = features - features.mean(0), targets - targets.mean(0)
    # A large constant column makes the direction of the means the first left vector.
    constant = np.full((n, 1), 2 * np.linalg.norm(centred) or 1.0)
    left, sizes, _ = linalg.svd(np.hstack([constant, centred]), full_matrices=False)
    V, sizes = left[:, 1:], sizes[1:]
    rotated = V.T @ t
    rest, outside = np.zeros_like(t), np.zeros(n)
    if len(sizes) < n - 1:  # else the vectors are a basis, up to rounding
        rest = t - V @ rotated
        outside = np.maximum(1 - 1 / n - (V**2).sum(1), 0)
    for _, one in _left_out(sizes**2, V, rotated, penalties, rest, outside):
        yield one


def _left_out(
    e: np.ndarray,
    V: np.ndarray,
    rotated: np.ndarray,
    penalties: np.ndarray,
    rest: np.ndarray | float = 0.0,
    outside: np.ndarray | float = 0.0,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the residuals of the fit, and those of fits without each case.

    V are eigenvectors of A (n_cases, n_cases), e their eigenvalues, and ``rotated`` = Vᵀt.
    Along all other directions, but that of the means, A is zero; ``rest`` is t there, and
    ``outside`` (n_cases,) their part of each case. With d = λ/(e + λ), the residual without
    case i is [V d Vᵀ t]_i / Σ_k V_ik² d_k. This is the usual (t_i − f_i)/(1 − h_i), but
    small penalties do not cancel its digits.
    """
    squared = V**2
    for penalty in penalties:
        d = penalty / (e + penalty)
        residual = V @ (d[:, None] * rotated) + rest
        yield residual, residual / (squared @ d + outside)[:, None]


class DualSolution(NamedTuple):
    """Ridge regression on centred features, in its dual form."""

    #: (n_cases, n_targets); coefficients are Fᵀ · dual, because its columns sum to zero.
    dual: np.ndarray
    #: λ, in units of K.
    penalty: float
    #: Prediction for each case by the solution without that case.
    held_out: np.ndarray


def solve_dual(gram: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> DualSolution:
    """Minimise Σ_i ω_i |y_i − f(x_i)|² + λ|w|² over f = w·x + b, at the best λ.

    ``gram`` is K = F Fᵀ (n_cases, n_cases), whose features need not be centred. ``weights``
    are ω_i > 0.
    """
    best, least = None, np.inf
    penalties = PENALTIES * mean_square(gram, weights)
    path = dual_path(gram, targets, weights, penalties)
    for penalty, (dual, held_out) in zip(penalties, path, strict=True):
        error = float((weights * ((targets - held_out) ** 2).mean(axis=1)).sum())
        if best is None or error < least:
            best, least = DualSolution(dual, float(penalty), held_out), error
    assert best is not None
    return best


def mean_square(gram: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted mean square of a centred case; one if all cases are alike."""
    share = weights / weights.sum()
    centred = weights @ np.diag(gram) - weights.sum() * (share @ gram @ share)
    return float(centred) / len(gram) if centred > _ALIKE * np.trace(gram) else 1.0


def dual_path(
    gram: np.ndarray, targets: np.ndarray, weights: np.ndarray, penalties: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield dual coefficients and held-out predictions per penalty, in units of K.

    With S = diag(√ω), the problem is that of S K S (centred) = V e Vᵀ. The intercept is
    not penalised, so V leaves out its direction √ω, an eigenvector with e = 0.
    """
    omega = np.asarray(weights, dtype=np.float64)
    share = omega / omega.sum()
    centred = np.array(gram, dtype=np.float64)
    row = centred @ share
    # Twice the mean square, added, makes √ω the last eigenvector, up to rounding. Without
    # it, its part would have to be subtracted from a sum over all eigenvectors, which would
    # lose half of the digits at small penalties.
    centred += share @ row + 2 * (share @ np.diag(centred) or 1.0)
    centred -= row[:, None]
    centred -= row[None, :]
    root = np.sqrt(omega)[:, None]
    centred *= root
    centred *= root.T
    values, vectors = eigh(centred, overwrite_a=True, check_finite=False)
    e, V = np.maximum(values[:-1], 0), vectors[:, :-1]
    rotated = V.T @ (root * (targets - share @ targets))
    left_out = _left_out(e, V, rotated, penalties)
    for penalty, (residual, without) in zip(penalties, left_out, strict=True):
        yield root * residual / penalty, targets - without / root
