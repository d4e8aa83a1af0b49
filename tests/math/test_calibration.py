"""Calibrated probabilities: the slope on draws of known odds and on held-out series."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from greenfold import PooledReservoirClassifier, ReservoirClassifier, load
from greenfold.datasets import load_dataset
from greenfold.math.decisions import expected_calibration_error, fit_slope

pytestmark = pytest.mark.usefixtures("compiled")


def drawn(rng, n, slope=3.0):
    scores = rng.standard_normal((n, 4))
    p = softmax(slope * scores, axis=1)
    return scores, p, (p.cumsum(axis=1) > rng.uniform(size=(n, 1))).argmax(axis=1)


def test_slope_makes_probabilities_of_the_right_size(rng):
    # Labels drawn with probabilities softmax(3 · scores): that slope is the answer.
    scores, p, codes = drawn(rng, 20000)
    # Accuracy is known to 0.0028 (0.8 of 20000), confidence grows by 0.07 a unit of slope.
    assert fit_slope(scores, codes) == pytest.approx(3, abs=4 * 0.0028 / 0.07)
    assert expected_calibration_error(p, codes) < 0.015
    # One overconfident by a factor of four in its slope is told.
    assert expected_calibration_error(softmax(12 * scores, axis=1), codes) > 0.1


def test_confidence_is_the_accuracy(rng):
    scores, _, codes = drawn(rng, 300, slope=1.0)
    scores[:20] *= 1e3  # tails that maximum likelihood would shrink everything for
    slope = fit_slope(scores, codes)
    confidence = softmax(slope * scores, axis=1).max(axis=1).mean()
    right = (scores.argmax(axis=1) == codes).sum()
    assert confidence == pytest.approx((right + 0.5) / 301, abs=1e-6)


def test_certainty_is_never_proved_by_few_cases():
    scores = np.eye(3)[[0, 1, 2, 0, 1]] * 2 - 1
    slope = fit_slope(scores, np.array([0, 1, 2, 0, 1]))
    # Jeffreys' rule for five right ones of five: (5 + ½) / (5 + 1).
    assert softmax(slope * scores, axis=1).max() == pytest.approx(5.5 / 6, abs=1e-6)


@pytest.mark.parametrize(
    ("codes", "least", "most"), [([1, 0, 1], 0.33, 0.34), ([0, 1, 2], 0.87, 0.88)]
)
def test_slope_stays_finite_where_all_are_wrong_or_right(codes, least, most):
    scores = np.eye(3)
    slope = fit_slope(scores, np.array(codes))
    assert np.isfinite(slope)
    assert slope > 0
    assert least < softmax(slope * scores, axis=1).max() < most


def test_scores_that_say_nothing_have_some_slope():
    assert fit_slope(np.zeros((4, 2)), np.array([0, 1, 0, 1])) == 1


def test_weights_count_as_repetitions(rng):
    scores, _, codes = drawn(rng, 300)
    twice = np.r_[np.arange(300), np.arange(100)]
    weights = np.where(np.arange(300) < 100, 2.0, 1.0)
    assert fit_slope(scores, codes, weights) == pytest.approx(
        fit_slope(scores[twice], codes[twice]), rel=1e-6
    )


def test_classes_that_were_not_known_do_not_count(rng):
    scores, _, codes = drawn(rng, 200)
    wider = np.column_stack([scores, np.full(200, 1e6)])
    possible = np.column_stack([np.ones((200, 4), bool), np.zeros(200, bool)])
    assert fit_slope(wider, codes, None, possible) == fit_slope(scores, codes)


def overconfident(n_cases=60, n_steps=40, seed=0):
    """Two classes that hardly differ, with about as many steps as series."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_cases) % 2
    X = rng.standard_normal((n_cases, n_steps)) + 0.25 * (2 * y[:, None] - 1)
    return X, y


def test_few_series_of_many_steps_are_not_told_with_certainty():
    X, y = overconfident()
    X_test, y_test = overconfident(2000, seed=1)
    fitted = ReservoirClassifier(n_neurons=20, random_state=0, eta=1e4).fit(X, y)
    held = fitted.predict_proba(X_test)
    before = softmax(fitted.decision_.log_odds(fitted.read_out(X_test)), axis=1)
    assert expected_calibration_error(held, y_test) < 0.7 * expected_calibration_error(
        before, y_test
    )


def test_calibration_is_kept_by_files_and_missing_in_older_ones(tmp_path):
    from ..estimators.pooled.test_model_file import described

    X, y = overconfident()
    before = ReservoirClassifier(n_neurons=6, random_state=0, eta=10.0).fit(X, y)
    before.save(tmp_path / "it")
    whole = (tmp_path / "it").read_bytes()
    same = load(tmp_path / "it")
    assert same.calibration_ == before.calibration_ is not None
    np.testing.assert_array_equal(same.predict_proba(X), before.predict_proba(X))
    (tmp_path / "it").write_bytes(
        described(whole, lambda m: m["decision_"].pop("sureness"))
    )
    older = load(tmp_path / "it")
    assert older.calibration_ is None
    odds = older.decision_.log_odds(older.read_out(X))
    np.testing.assert_array_equal(older.predict_proba(X), softmax(odds, axis=1))
    (tmp_path / "it").write_bytes(
        described(whole, lambda m: m["decision_"].update(sureness=-1))
    )
    with pytest.raises(ValueError, match="sureness is -1, not a positive"):
        load(tmp_path / "it")


def test_heartbeats_are_told_with_the_right_confidence(data_dir):
    """From clouds of training series: confidence 0.985, accuracy 0.927, error 0.058."""
    X, y = load_dataset("ECG5000", "train", data_dir=data_dir)
    X_test, y_test = load_dataset("ECG5000", "test", data_dir=data_dir)
    for fitted in (
        ReservoirClassifier(random_state=0).fit(X, y),
        PooledReservoirClassifier(random_state=0).fit(X, y),
    ):
        codes = np.searchsorted(fitted.classes_, y_test)
        found = expected_calibration_error(fitted.predict_proba(X_test), codes)
        # 4500 series in 15 bins: the error of a perfect one is about 0.008 by chance.
        assert found < 0.058 / 2 + 0.008
