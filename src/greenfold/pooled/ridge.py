"""Ridge regression from a Gram matrix, the penalty chosen by leaving one case out.

With more features than cases everything follows from K = F Fᵀ (n × n): one eigenvalue
decomposition serves all penalties, the leave-one-out residuals included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg

__all__ = ["PENALTIES", "RidgeSolution", "mean_square", "ridge_path", "solve_ridge"]

#: Penalties that are compared, relative to the mean squared length of a centred case: from
#: hardly any to one that leaves little but the mean.
PENALTIES = np.logspace(-5, 2, 22)
#: Relative spread of cases below which they differ by rounding only.
_ALIKE = 1e-12


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Ridge regression on centred features, in its dual form.

    Attributes
    ----------
    dual : ndarray (n_cases, n_targets)
        Coefficients are w = Fᵀ · dual for any features F of Gram matrix K, because the
        columns of dual sum to zero.
    offset : ndarray (n_targets,)
        Prediction at the weighted mean of the cases.
    penalty : float
        In units of K.
    held_out : ndarray (n_cases, n_targets)
        Prediction for each case by the solution without that case.
    penalties, errors : ndarray (n_penalties,)
        Mean squared leave-one-out error of each.
    """

    dual: np.ndarray
    offset: np.ndarray
    penalty: float
    held_out: np.ndarray
    penalties: np.ndarray
    errors: np.ndarray


def solve_ridge(
    gram: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    penalties: np.ndarray = PENALTIES,
) -> RidgeSolution:
    """Minimise Σ_i ω_i |y_i − f(x_i)|² + λ|w|² over f = w·x + b, at the best λ.

    Parameters
    ----------
    gram : ndarray (n_cases, n_cases)
        K = F Fᵀ; the features need not be centred.
    targets : ndarray (n_cases, n_targets)
    weights : ndarray (n_cases,), optional
        ω_i > 0; one by default.
    penalties : ndarray (n_penalties,)
        Relative to the mean diagonal of the centred K.
    """
    omega = np.ones(len(gram)) if weights is None else weights
    unit = mean_square(gram, omega)
    found, errors = None, []
    for penalty, (dual, held_out) in zip(
        penalties, ridge_path(gram, targets, omega, penalties * unit), strict=True
    ):
        squares = ((targets - held_out) ** 2).mean(axis=1)
        errors.append(np.average(squares, weights=omega))
        if found is None or errors[-1] < found[0]:
            found = errors[-1], penalty * unit, dual, held_out
    assert found is not None
    _, penalty, dual, held_out = found
    offset = np.average(targets, axis=0, weights=omega)
    return RidgeSolution(
        dual, offset, float(penalty), held_out, penalties * unit, np.array(errors)
    )


def mean_square(gram: np.ndarray, weights: np.ndarray) -> float:
    """Weighted squared length of a centred case, on average; one where all are alike."""
    share = weights / weights.sum()
    centred = weights @ np.diag(gram) - weights.sum() * (share @ gram @ share)
    return float(centred) / len(gram) if centred > _ALIKE * np.trace(gram) else 1.0


def ridge_path(
    gram: np.ndarray, targets: np.ndarray, weights: np.ndarray, penalties: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Dual coefficients and held-out predictions for each penalty, in units of K.

    Notes
    -----
    With S = diag(√ω), A = S K S (centred) = V e Vᵀ and d = 1/(e + λ), the residual without
    case i is [V d Vᵀ S(y − ȳ)]_i / √ω_i (Σ_k V_ik² d_k − ω_i/λΣω): the usual
    (y_i − f_i)/(1 − h_i), in which the small factor λ cancels.
    """
    omega = np.asarray(weights, dtype=np.float64)
    share = omega / omega.sum()
    A = np.array(gram, dtype=np.float64)
    row = A @ share
    A += share @ row
    A -= row[:, None]
    A -= row[None, :]
    root = np.sqrt(omega)
    A *= root[:, None]
    A *= root[None, :]
    e, V = linalg.eigh(A, overwrite_a=True, check_finite=False)
    e = np.maximum(e, 0)
    rotated = V.T @ (root[:, None] * (targets - share @ targets))
    squared = V**2
    for penalty in penalties:
        d = 1 / (e + penalty)
        c = V @ (d[:, None] * rotated)
        # Centring has put √share among the eigenvectors of e = 0; the intercept is its
        # part, and is not penalised.
        left = squared @ d - share / penalty
        yield root[:, None] * c, targets - c / (left * root)[:, None]
