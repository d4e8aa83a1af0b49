"""Ridge regression from a Gram matrix, the penalty chosen by leaving one case out.

With more features than cases everything follows from K = F Fᵀ (n × n): one eigenvalue
decomposition serves all penalties, the leave-one-out residuals included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

__all__ = ["PENALTIES", "RidgeSolution", "solve_ridge"]

#: Penalties that are compared, relative to the mean squared length of a centred case: from
#: hardly any to one that leaves little but the mean.
PENALTIES = np.logspace(-5, 2, 22)
#: Weight of the constant direction, which is not penalised but taken out beforehand.
_APART = 1e8


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

    Notes
    -----
    With S = diag(√ω), A = S K S (centred) = V e Vᵀ and d = 1/(e + λ), the residual without
    case i is [V d Vᵀ S(y − ȳ)]_i / (√ω_i Σ_k V_ik² d_k): the usual (y_i − f_i)/(1 − h_i),
    in which the small factor λ cancels.
    """
    n = len(gram)
    omega = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    share = omega / omega.sum()
    K = np.asarray(gram, dtype=np.float64)
    row = K @ share
    K = K - row[:, None] - row[None, :] + share @ row
    offset = share @ targets
    root = np.sqrt(omega)
    A = K * root[:, None] * root[None, :]
    size = float(np.trace(A)) / n
    if not size > 0:
        # All cases look alike: nothing but the mean can be learnt.
        flat = np.zeros_like(targets, dtype=np.float64)
        held_out = (omega.sum() * offset - omega[:, None] * targets) / np.maximum(
            omega.sum() - omega, np.finfo(float).tiny
        )[:, None]
        errors = np.full(
            len(penalties), np.average(_squares(targets - held_out), weights=omega)
        )
        return RidgeSolution(flat, offset, 1.0, held_out, penalties, errors)
    unit = np.sqrt(share)
    A += (_APART * size) * np.outer(unit, unit)
    e, V = linalg.eigh(A, overwrite_a=True, check_finite=False)
    e = np.maximum(e, 0)
    rotated = V.T @ (root[:, None] * (targets - offset))
    squared = V**2
    found = None
    errors = np.empty(len(penalties))
    for i, penalty in enumerate(penalties * size):
        d = 1 / (e + penalty)
        c = V @ (d[:, None] * rotated)
        residual = c / ((squared @ d) * root)[:, None]
        errors[i] = np.average(_squares(residual), weights=omega)
        if found is None or errors[i] < found[0]:
            found = errors[i], penalty, root[:, None] * c, targets - residual
    assert found is not None
    _, penalty, dual, held_out = found
    return RidgeSolution(dual, offset, float(penalty), held_out, penalties * size, errors)


def _squares(residual: np.ndarray) -> np.ndarray:
    return (residual**2).mean(axis=1)
