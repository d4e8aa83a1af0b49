"""Synthetic series: repeatable, and as announced."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import (
    channel_equalisation,
    memory_task,
    narma,
    synthetic_heartbeats,
)


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
    from sklearn.linear_model import LogisticRegression

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


def test_memory():
    x, y = memory_task(50, 3, rng=0)
    assert y.shape == (50, 3)
    np.testing.assert_array_equal(y[5:, 2], x[2:-3])
    np.testing.assert_array_equal(memory_task(50, [0, 2], rng=0)[1][:, 0], x)


def test_narma_follows_its_recursion():
    x, y = narma(300, rng=0)
    for t in range(12, 300):
        # Entry t holds y_{t+1}; nine further ones before it.
        past = y[t - 10 : t].sum()
        wanted = 0.3 * y[t - 1] + 0.05 * y[t - 1] * past + 1.5 * x[t - 9] * x[t] + 0.1
        assert y[t] == pytest.approx(wanted, rel=1e-12)
    assert 0 < y.min() < y.max() < 2


def test_the_channel_is_a_moving_average_with_a_curve():
    x, y = channel_equalisation(4000, noise=200.0, rng=1)
    # d_{t−2} is y_t: the taps of d_{t+2} … d_{t−7} stand at y_{t+4} … y_{t−5}.
    taps = [0.08, -0.12, 1, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01]
    q = np.sum([tap * y[9 - k : len(y) - k] for k, tap in enumerate(taps)], axis=0)
    np.testing.assert_allclose(
        x[5 : len(q) + 5], q + 0.036 * q**2 - 0.011 * q**3, atol=1e-8
    )
    noisy, _ = channel_equalisation(20_000, noise=20.0, rng=1)
    clean, _ = channel_equalisation(20_000, noise=200.0, rng=1)
    ratio = clean.var() / (noisy - clean).var()
    # The variance of 2·10⁴ draws scatters by 1 %.
    assert ratio == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: memory_task(5, [-1]), "`delays` must be whole numbers of at least 0"),
        (lambda: narma(0), "`n_samples` must be at least 1"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
