"""Ridge regression on pooled features, in parts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from greenfold.estimators.pooled import PooledReservoirClassifier, draw_bank, estimators
from greenfold.estimators.pooled.estimators import standard
from greenfold.estimators.pooled.feature_map import fit_map
from greenfold.estimators.series import SeriesByLength


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_are_averaged_ridge_regressions(weighted, monkeypatch, rng):
    X = rng.standard_normal((150, 1, 20)).cumsum(axis=2)
    series = SeriesByLength([(np.arange(150), X)], 150, 1)
    targets = np.stack([X.max(axis=(1, 2)), X.min(axis=(1, 2))], axis=1)
    omega = rng.uniform(0.5, 2, 150) if weighted else None
    bank = draw_bank(20, 1, rng, n_scales=2, n_readouts=16)
    made = fit_map(bank, series, rng, scaling="set", engine="array")
    monkeypatch.setattr(estimators, "PART_CASES", 40)
    monkeypatch.setattr(estimators, "HELD_OUT", 30)
    monkeypatch.setattr(estimators, "DUAL_CASES", 100)
    found = estimators.fit_head(made, series, targets, omega, seed=1)
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
    monkeypatch.setattr(estimators, "DUAL_CASES", 100)
    monkeypatch.setattr(estimators, "PART_CASES", 60)
    monkeypatch.setattr(estimators, "HELD_OUT", 50)
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
