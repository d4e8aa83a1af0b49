"""Ridge regression against least squares, scikit-learn, and fits without each case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import linalg
from sklearn.linear_model import Ridge, RidgeCV

from greenfold.math.ridge import (
    PENALTIES,
    RidgeSums,
    dual_path,
    leave_one_out,
    mean_square,
    ridge_path,
    solve_dual,
    solve_ridge,
)

EPS = np.finfo(float).eps


def augmented(F: np.ndarray, T: np.ndarray, penalty: float) -> np.ndarray:
    """Return the coefficients by least squares on F with √λ·1 below it."""
    p = F.shape[1]
    rows = np.vstack([F, np.sqrt(penalty) * np.eye(p)])
    return linalg.lstsq(rows, np.vstack([T, np.zeros((p, T.shape[1]))]))[0]


@pytest.mark.parametrize("n", [8, 60])
@pytest.mark.parametrize("penalty", [1e-9, 1e-3, 1.0, 1e3])
def test_solve_and_path_are_least_squares_with_the_penalty_as_rows(rng, n, penalty):
    F = rng.standard_normal((n, 12)) * np.geomspace(1, 1e-2, 12)
    T = rng.standard_normal((n, 3))
    G, C = F.T @ F, F.T @ T
    wanted = augmented(F, T, penalty)
    # Rounding of the Gram matrix, times the condition number of G + λ.
    rounding = 100 * EPS * np.linalg.cond(G + penalty * np.eye(12))
    for found in (solve_ridge(G, C, penalty), *ridge_path(G, C, np.array([penalty]))):
        assert np.abs(found - wanted).max() <= rounding * np.abs(wanted).max()


def test_a_penalty_below_rounding_gives_the_predictions_of_least_squares(rng):
    F = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 9))  # of rank 5
    T = F @ rng.standard_normal((9, 2)) + rng.standard_normal((40, 2))
    found = F @ solve_ridge(F.T @ F, F.T @ T, 1e-30)
    wanted = F @ linalg.lstsq(F, T)[0]
    # Rounding of G, times the condition number within the five directions.
    sizes = np.linalg.svd(F, compute_uv=False)[:5]
    rounding = 100 * EPS * (sizes[0] / sizes[-1]) ** 2
    # The smallest penalty that is not lost, 1e-15 of the largest eigenvalue, costs as much.
    assert np.abs(found - wanted).max() <= rounding * np.abs(wanted).max()
    assert np.isfinite(solve_ridge(np.zeros((3, 3)), np.zeros((3, 1)), 1e-30)).all()


def test_sums_give_the_readouts_of_scikit_learn(rng):
    Z, T = rng.normal(size=(50, 4)) + 3, rng.normal(size=(50, 2))
    V, c = RidgeSums.empty(4, 2).add(Z, T).solve(np.array([1e-3, 0.1]))
    for ridge, v, offset in zip((1e-3, 0.1), V, c, strict=True):
        judge = Ridge(alpha=50 * ridge).fit(Z, T)
        assert pytest.approx(judge.coef_, rel=1e-9) == v.T
        assert offset == pytest.approx(judge.intercept_, rel=1e-9)
    without = (
        RidgeSums.empty(4, 2).add(Z, T).without(Z[:10], T[:10]).solve(np.array([0.1]))[0]
    )
    again = RidgeSums.empty(4, 2).add(Z[10:], T[10:]).solve(np.array([0.1]))[0]
    assert without == pytest.approx(again, abs=1e-10)


@pytest.mark.parametrize("p", [5, 23, 24, 60])
def test_leave_one_out_is_the_error_of_fits_without_each_case(rng, p):
    """Fewer features than cases, one less, as many, and more."""
    F, T = rng.standard_normal((24, p)) + 2, rng.standard_normal((24, 2))
    penalties = np.array([1e-6, 1e-2, 1.0])
    found = leave_one_out(F, T, penalties)
    for penalty, error in zip(penalties, found, strict=True):
        squares = []
        for i in range(24):
            kept = np.arange(24) != i
            mean, offset = F[kept].mean(0), T[kept].mean(0)
            w = augmented(F[kept] - mean, T[kept] - offset, penalty)
            squares.append((T[i] - offset - (F[i] - mean) @ w) ** 2)
        # The judge solves rows whose condition number is largest size / √λ: 2e4.
        assert error == pytest.approx(np.mean(squares), rel=1e-9)


def test_leave_one_out_keeps_its_digits_at_small_penalties(rng):
    """The smallest penalties give the limit; (t − f)/(1 − h) would have no digit left."""
    F, T = rng.standard_normal((20, 40)), rng.standard_normal((20, 1))
    sizes = np.linalg.svd(F - F.mean(0), compute_uv=False)[:-1]
    found = leave_one_out(F, T, 1e-13 * sizes[-1] ** 2 * np.array([1.0, 1e-3]))
    assert found[1] == pytest.approx(found[0], rel=1e-11)


@pytest.fixture
def cases(rng):
    F = rng.standard_normal((25, 40)) + 3
    targets = F[:, :2] @ rng.standard_normal((2, 2)) + rng.standard_normal((25, 2)) + 1
    return F, targets, rng.uniform(0.5, 2, 25)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [1e-4, 0.1, 10.0])
def test_held_out_predictions_are_those_of_fits_without_the_case(cases, weighted, penalty):
    F, targets, omega = cases
    weights = omega if weighted else np.ones(25)
    penalty *= mean_square(F @ F.T, weights)
    ((dual, held_out),) = dual_path(F @ F.T, targets, weights, np.array([penalty]))
    for i in range(len(F)):
        kept = np.arange(len(F)) != i
        one = Ridge(alpha=penalty, solver="svd").fit(
            F[kept], targets[kept], sample_weight=weights[kept]
        )
        np.testing.assert_allclose(
            one.predict(F[i : i + 1])[0], held_out[i], rtol=1e-5, atol=1e-6
        )
    whole = Ridge(alpha=penalty, solver="svd").fit(F, targets, sample_weight=weights)
    np.testing.assert_allclose(F.T @ dual, whole.coef_.T, rtol=1e-5, atol=1e-7)


def test_penalty_is_the_one_that_scikit_learn_chooses(cases):
    F, targets, _ = cases
    equal = np.ones(25)
    found = solve_dual(F @ F.T, targets, equal)
    penalties = PENALTIES * mean_square(F @ F.T, equal)
    ours = [
        ((targets - held_out) ** 2).mean()
        for _, held_out in dual_path(F @ F.T, targets, equal, penalties)
    ]
    theirs = RidgeCV(alphas=penalties, scoring=None, store_cv_results=True)
    theirs.fit(F, targets)
    errors = theirs.cv_results_.mean(axis=(0, 1))
    # Rounding of sums over n cases, times the condition number of the centred kernel plus
    # penalty (its smallest eigenvalue is the penalty): 4e-9 for the smallest.
    n = len(F)
    largest = np.linalg.norm(F - F.mean(axis=0), 2) ** 2
    rounding = n * np.finfo(float).eps * (largest + penalties) / penalties
    assert (np.abs(ours / errors - 1) <= rounding).all()
    assert found.penalty == theirs.alpha_


def test_cases_that_look_alike_leave_the_mean(rng):
    targets = rng.standard_normal((6, 1))
    found = solve_dual(np.ones((6, 6)), targets, np.ones(6))
    # Coefficients Fᵀ · dual vanish, whatever the features that all cases share.
    np.testing.assert_allclose(found.dual.sum(), 0, atol=1e-9 * np.abs(found.dual).max())
    others: Any = [np.delete(targets, i).mean() for i in range(6)]
    np.testing.assert_allclose(found.held_out[:, 0], others)


def test_single_precision_of_the_gram_matrix_is_enough(cases):
    F, targets, _ = cases
    equal, few = np.ones(25), F.astype(np.float32)
    exact = solve_dual(F @ F.T, targets, equal)
    single = solve_dual(few @ few.T, targets, equal)
    np.testing.assert_allclose(single.held_out, exact.held_out, atol=1e-3)
