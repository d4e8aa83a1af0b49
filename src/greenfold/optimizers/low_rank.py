"""Local improvement of the relaxed solution X, kept in factors.

Frank–Wolfe alone crawls where the optimal X has rank two or more. Between its steps the
factors of X = A Bᵀ are improved by a quasi-Newton method: ½(‖A‖² + ‖B‖²) is an upper bound
on the nuclear norm that is attained, so that X/½(‖A‖² + ‖B‖²) sweeps the unit ball
(hybrid algorithm of Laue 2012). Only the bound proves anything; this step just gets there
sooner.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .linear import LinearProblem


def improve(
    problem: LinearProblem, A: np.ndarray, B: np.ndarray, *, max_iter: int
) -> tuple[np.ndarray, np.ndarray]:
    """Raise κ over X = A Bᵀ with ‖X‖_* ≤ 1.

    Parameters
    ----------
    problem : LinearProblem
    A : ndarray (n_outputs, rank)
    B : ndarray (n_inputs, n_channels, rank)
    max_iter : int
        Largest number of evaluations.

    Returns
    -------
    A, B : ndarray
        Improved factors, scaled so that ½(‖A‖² + ‖B‖²) ≤ 1.
    """
    split = A.size

    def unpack(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return flat[:split].reshape(A.shape), flat[split:].reshape(B.shape)

    def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
        left, right = unpack(flat)
        size = 0.5 * float(flat @ flat)
        a, pull = problem.kernel_of(left, right)
        a = a / size
        shrink = _best_scale(problem, a)
        margin = problem.margin_of_kernel(shrink * a)
        d = problem.gradient_at(shrink * a) * (shrink / size)
        left_bar, right_bar = pull(d)
        # The scale ½‖·‖² is differentiated too: a depends on it as 1/size.
        radial = float(d @ a)
        gradient = np.concatenate([left_bar.ravel(), right_bar.ravel()]) - radial * flat
        return -margin.value, -gradient

    start = np.concatenate([A.ravel(), B.ravel()])
    start = start / np.sqrt(0.5 * start @ start)
    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxfun": max_iter,
            "maxiter": max_iter,
            "maxcor": 20,
            "ftol": 1e-15,
            "gtol": 0.0,
        },
    )
    flat = result.x / np.sqrt(0.5 * result.x @ result.x)
    left, right = unpack(flat)
    shrink = np.sqrt(_best_scale(problem, problem.kernel_of(left, right)[0]))
    return left * shrink, right * shrink


def _best_scale(problem: LinearProblem, a: np.ndarray) -> float:
    """The t in [0, 1] that maximises κ(t a)."""
    linear = float(a @ problem.mean)
    curvature = float(problem.eta * (a @ problem.spread(a)))
    if curvature <= 0:
        return 1.0 if linear > 0 else 0.0
    return float(np.clip(linear / curvature, 0.0, 1.0))
