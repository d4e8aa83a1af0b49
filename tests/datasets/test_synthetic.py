"""Synthetic heartbeats: repeatable, of the announced composition and difficulty."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from greenfold.datasets import synthetic_heartbeats


def test_shape_labels_and_share():
    X, y = synthetic_heartbeats(50, n_steps=90, ectopic_fraction=0.3, rng=0)
    assert X.shape == (50, 90)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert y.dtype == np.int64
    assert (y == -1).sum() == 15
    assert (y == 1).sum() == 35
    assert np.any(np.diff(np.flatnonzero(y == -1)) > 1)  # shuffled, not one block


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_one_class_only(fraction):
    _, y = synthetic_heartbeats(5, ectopic_fraction=fraction, rng=0)
    assert (y == (1 if fraction == 0.0 else -1)).all()


def test_seed_repeats_and_generator_moves_on():
    a, b, c = (synthetic_heartbeats(5, rng=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)
    rng = np.random.default_rng(1)
    np.testing.assert_array_equal(synthetic_heartbeats(5, rng=rng)[0], a)
    assert not np.allclose(synthetic_heartbeats(5, rng=rng)[0], a)


def test_normal_beats_have_the_waves_of_an_ecg():
    X, _ = synthetic_heartbeats(400, n_steps=201, ectopic_fraction=0.0, noise=0.0, rng=0)
    mean = X.mean(axis=0)
    time = np.linspace(0, 1, 201)
    assert abs(time[mean.argmax()] - 0.40) < 0.02  # R
    for where, sign in [(0.20, 1), (0.66, 1)]:  # P and T stand above the line between
        assert sign * (mean[int(where * 200)] - mean[int(0.52 * 200)]) > 0.05
    # No two beats are alike, also without noise.
    assert X.std(axis=0)[int(0.40 * 200)] > 0.1


def test_ectopic_beats_lack_p_and_invert_t():
    X, y = synthetic_heartbeats(2000, n_steps=201, noise=0.0, rng=0)
    difference = X[y == 1].mean(axis=0) - X[y == -1].mean(axis=0)
    assert difference[int(0.20 * 200)] > 0.05
    assert difference[int(0.66 * 200)] > 0.2


def test_noise_is_what_it_says():
    quiet, _ = synthetic_heartbeats(100, noise=0.0, rng=5)
    loud, _ = synthetic_heartbeats(100, noise=0.7, rng=5)
    assert (loud - quiet).std() == pytest.approx(0.7, rel=0.03)


def test_a_linear_classifier_is_good_but_not_perfect():
    X, y = synthetic_heartbeats(300, rng=0)
    X_test, y_test = synthetic_heartbeats(2000, rng=1)
    accuracy = LogisticRegression(max_iter=2000).fit(X, y).score(X_test, y_test)
    assert 0.88 < accuracy < 0.985


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"n_cases": 0}, "n_cases"),
        ({"n_cases": 2.0}, "n_cases"),
        ({"n_cases": 2, "n_steps": 0}, "n_steps"),
        ({"n_cases": 2, "ectopic_fraction": 1.5}, "ectopic_fraction"),
        ({"n_cases": 2, "ectopic_fraction": np.nan}, "ectopic_fraction"),
        ({"n_cases": 2, "noise": -1.0}, "noise"),
        ({"n_cases": 2, "noise": np.inf}, "noise"),
    ],
)
def test_wrong_arguments_are_named(arguments, name):
    with pytest.raises((TypeError, ValueError), match=f"^`{name}` must"):
        synthetic_heartbeats(**arguments)
