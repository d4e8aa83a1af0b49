"""Ridge regression with leave-one-out, judged by leaving one out; calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from greenfold.estimators.pooled import (
    PooledReservoirClassifier,
    draw_bank,
)
from greenfold.estimators.pooled import (
    ridge as head,
)
from greenfold.estimators.pooled import (
    ridge as parts,
)
from greenfold.estimators.pooled.feature_map import fit_map
from greenfold.estimators.pooled.ridge import solve_ridge, standard
from greenfold.estimators.series import SeriesByLength


@pytest.fixture
def problem(rng):
    F = rng.standard_normal((25, 40)) + 3
    targets = F[:, :2] @ rng.standard_normal((2, 2)) + rng.standard_normal((25, 2)) + 1
    return F, targets, rng.uniform(0.5, 2, 25)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [1e-4, 0.1, 10.0])
def test_held_out_predictions_are_those_of_fits_without_the_case(
    problem, weighted, penalty
):
    F, targets, omega = problem
    weights = omega if weighted else None
    found = solve_ridge(F @ F.T, targets, weights, np.array([penalty]))
    for i in range(len(F)):
        kept = np.arange(len(F)) != i
        one = Ridge(alpha=found.penalty, solver="svd").fit(
            F[kept], targets[kept], sample_weight=omega[kept] if weighted else None
        )
        np.testing.assert_allclose(
            one.predict(F[i : i + 1])[0], found.held_out[i], rtol=1e-5, atol=1e-6
        )
    whole = Ridge(alpha=found.penalty, solver="svd").fit(F, targets, sample_weight=weights)
    np.testing.assert_allclose(F.T @ found.dual, whole.coef_.T, rtol=1e-5, atol=1e-7)
    share = omega / omega.sum() if weighted else np.full(25, 1 / 25)
    np.testing.assert_allclose(
        found.offset - (share @ F) @ F.T @ found.dual, whole.intercept_, rtol=1e-5
    )


def test_penalty_is_the_one_that_scikit_learn_chooses(problem):
    F, targets, _ = problem
    found = solve_ridge(F @ F.T, targets)
    theirs = RidgeCV(alphas=found.penalties, scoring=None, store_cv_results=True)
    theirs.fit(F, targets)
    errors = theirs.cv_results_.mean(axis=(0, 1))
    # Rounding of sums over n cases, times the condition number of the centred kernel plus
    # penalty (its smallest eigenvalue is the penalty): 4e-9 for the smallest.
    n = len(F)
    largest = np.linalg.norm(F - F.mean(axis=0), 2) ** 2
    rounding = n * np.finfo(float).eps * (largest + found.penalties) / found.penalties
    assert (np.abs(found.errors / errors - 1) <= rounding).all()
    assert found.penalty == theirs.alpha_


def test_cases_that_look_alike_leave_the_mean(rng):
    targets = rng.standard_normal((6, 1))
    found = solve_ridge(np.ones((6, 6)), targets)
    # Coefficients Fᵀ · dual vanish, whatever the features that all cases share.
    np.testing.assert_allclose(found.dual.sum(), 0, atol=1e-9 * np.abs(found.dual).max())
    np.testing.assert_allclose(found.offset, targets.mean(axis=0))
    others: Any = [np.delete(targets, i).mean() for i in range(6)]
    np.testing.assert_allclose(found.held_out[:, 0], others)


def test_single_precision_of_the_gram_matrix_is_enough(problem):
    F, targets, _ = problem
    exact = solve_ridge(F @ F.T, targets)
    single = solve_ridge((F.astype(np.float32) @ F.T.astype(np.float32)), targets)
    np.testing.assert_allclose(single.held_out, exact.held_out, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_are_averaged_ridge_regressions(weighted, monkeypatch, rng):
    X = rng.standard_normal((150, 1, 20)).cumsum(axis=2)
    series = SeriesByLength([(np.arange(150), X)], 150, 1)
    targets = np.stack([X.max(axis=(1, 2)), X.min(axis=(1, 2))], axis=1)
    omega = rng.uniform(0.5, 2, 150) if weighted else None
    bank = draw_bank(20, 1, rng, n_scales=2, n_readouts=16)
    made = fit_map(bank, series, rng, scaling="set", engine="array")
    monkeypatch.setattr(parts, "PART_CASES", 40)
    monkeypatch.setattr(parts, "HELD_OUT", 30)
    monkeypatch.setattr(parts, "DUAL_CASES", 100)
    found = parts.fit_head(made, series, targets, omega, seed=1)
    # The same division, every part by scikit-learn on the same standardised features.
    order = series.order[np.random.default_rng(1).permutation(150)]
    blocks = [made.blocks(series, scale) for scale in range(2)]
    own = [np.sort(part) for part in np.array_split(order[30:], 3)]
    scaled = []
    for block in blocks:
        mean, factor = standard(block[own[0]].copy())
        scaled.append((block - mean) * factor)
    F = np.concatenate(scaled, axis=1)
    wanted = np.zeros_like(targets)
    for part in own:
        weights = None if omega is None else omega[part]
        one = Ridge(alpha=found.penalty, solver="svd")
        wanted += one.fit(F[part], targets[part], sample_weight=weights).predict(F) / 3
    np.testing.assert_array_equal(found.cases, np.sort(order[:30]))
    # Features and coefficients are in single precision.
    size = np.abs(targets).max()
    np.testing.assert_allclose(made.scores(series, found.head), wanted, atol=1e-3 * size)
    np.testing.assert_allclose(found.held_out, wanted[found.cases], atol=1e-3 * size)


def test_many_series_are_solved_in_parts(monkeypatch, rng):
    monkeypatch.setattr(head, "DUAL_CASES", 100)
    monkeypatch.setattr(parts, "PART_CASES", 60)
    monkeypatch.setattr(parts, "HELD_OUT", 50)
    X = rng.standard_normal((300, 30))
    y = np.arange(300) % 2
    X[y == 1] = X[y == 1].cumsum(axis=1) / 3
    fitted = PooledReservoirClassifier(n_scales=3, n_readouts=16, random_state=0)
    fitted.fit(X[:200], y[:200])
    assert fitted.held_out_scores_ is not None
    assert fitted.held_out_scores_.shape == (50,)
    assert fitted.held_out_cases_ is not None
    right = (fitted.held_out_scores_ > 0) == y[fitted.held_out_cases_]
    assert right.mean() > 0.9
    assert fitted.score(X[200:], y[200:]) > 0.9
