"""Covariances kept by their factor: the same numbers as full ones, without the memory."""

from __future__ import annotations

import numpy as np
import pytest

import greenfold
from greenfold import (
    Alternating,
    Convex,
    RandomDraws,
    Reservoir,
    ReservoirClassifier,
    SampleStimuli,
    unfold,
)
from greenfold.math import class_moments as moments
from greenfold.math.class_moments import ClassMoments, Factored, outer, root, trace
from greenfold.optimizers import optimize
from greenfold.optimizers.bounds import Relaxation
from greenfold.optimizers.linear import LinearProblem


@pytest.fixture
def factored(monkeypatch):
    """Every covariance of few series is kept by its factor, however short they are."""
    monkeypatch.setattr(moments, "DENSE_SIZE", 0)


def few_series(n_channels=2, n_steps=30, n_cases=12):
    rng = np.random.default_rng(0)
    y = np.arange(n_cases) % 2
    X = rng.standard_normal((n_cases, n_channels, n_steps))
    return X + 0.6 * y[:, None, None] * np.sin(np.arange(n_steps)), y


def test_arithmetic_is_that_of_the_matrix(rng):
    S, other, x = rng.standard_normal((9, 2)), rng.standard_normal((9, 3)), rng.random(9)
    matrix, kept = S @ S.T, Factored(S)
    np.testing.assert_allclose(kept @ x, matrix @ x, rtol=1e-13)
    np.testing.assert_allclose(x @ kept @ x, x @ matrix @ x, rtol=1e-13)
    np.testing.assert_allclose(np.eye(9) @ kept, matrix, rtol=1e-13)
    total = 3.0 * kept + Factored(other) / 2 + outer(x, 0.1, kept)
    full = 3 * matrix + other @ other.T / 2 + 0.1 * np.outer(x, x)
    np.testing.assert_allclose(np.asarray(total), full, rtol=1e-12)
    np.testing.assert_allclose(np.eye(9) + kept, matrix + np.eye(9), rtol=1e-13)
    assert trace(total) == pytest.approx(np.trace(full), rel=1e-13)
    basis, sizes = root(kept)
    assert basis.shape == (9, 2)
    np.testing.assert_allclose(basis * sizes**2 @ basis.T, matrix, atol=1e-13)


def test_a_sum_of_many_becomes_a_matrix(rng):
    made = Factored(rng.standard_normal((6, 3)))
    assert isinstance(made, Factored)
    assert isinstance(made + made, np.ndarray)
    assert isinstance(Factored.zero(6) + made, Factored)


@pytest.mark.parametrize(("n_channels", "n_steps"), [(1, 26), (3, 14)])
def test_the_optimum_and_its_bound_are_the_same(factored, monkeypatch, n_channels, n_steps):
    """To 1e-9 of κ: both are solved to a relative tolerance far below that."""
    X, y = few_series(n_channels, n_steps)
    unfolding = unfold(Reservoir.random(8, rng=3, max_draws=100), n_steps=n_steps, dt=0.3)
    kept = SampleStimuli(X, y)
    assert isinstance(kept.psi, Factored)
    with monkeypatch.context() as plain:
        plain.setattr(moments, "DENSE_SIZE", 10**6)
        full = SampleStimuli(X, y)
    assert isinstance(full.psi, np.ndarray)
    np.testing.assert_allclose(np.asarray(kept.psi), full.psi, atol=1e-14)
    for method, seed in ((Convex(), None), (Alternating(2), 0), (RandomDraws(2), 0)):
        one, other = (optimize(unfolding, s, 10.0, method, rng=seed) for s in (kept, full))
        assert one.soft_margin == pytest.approx(other.soft_margin, rel=1e-9)
        if isinstance(method, Convex):
            assert one.status == other.status
            # The relaxation is solved to 1e-4 by default.
            assert one.upper_bound == pytest.approx(other.upper_bound, rel=1e-4)


@pytest.mark.parametrize("weight", [0.5, 1.2])
def test_the_bound_is_lowered_as_far(factored, monkeypatch, weight):
    """By descent from zero, on a quiet chain and on one that amplifies.

    The tolerance is the relative gap between two descents of 300 evaluations.
    """
    X, y = few_series(1, 40)
    unfolding = unfold(Reservoir(weight * np.eye(30, k=-1)), n_steps=40, dt=0.25)
    kept = SampleStimuli(X, y)
    with monkeypatch.context() as plain:
        plain.setattr(moments, "DENSE_SIZE", 10**6)
        full = SampleStimuli(X, y)
    low = []
    for stimuli in (kept, full):
        relaxation = Relaxation([LinearProblem(unfolding.maps, stimuli, 10.0)])
        low.append(relaxation.lower([np.zeros(40)], np.eye(30)[:, :1]))
    best = optimize(unfolding, full, 10.0)
    assert min(low) >= best.soft_margin * (1 - 1e-9)
    assert low[0] <= low[1] * (1 + 1e-2)


def test_best_input_without_the_large_matrix(factored):
    X, y = few_series(3)
    unfolding = unfold(Reservoir.random(8, rng=3, max_draws=100), n_steps=30, dt=0.3)
    problem = LinearProblem(unfolding.maps, SampleStimuli(X, y), 10.0)
    v = np.eye(8)[2]
    u, margin = problem.best_input(v)
    assert np.linalg.norm(u) == pytest.approx(1)
    rng = np.random.default_rng(1)
    for size in (1.0, 0.1, 0.01, 1e-4):
        other = u + size * rng.standard_normal(u.shape)
        other /= np.linalg.norm(other)
        value = problem.margin(other, v).value
        assert value <= margin.value * (1 + 1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_classifier_is_the_same(factored, monkeypatch, n_classes):
    X, y = few_series(2, 24, 15)
    y = np.arange(15) % n_classes
    weights = np.linspace(0.5, 2, 15)

    def fitted() -> ReservoirClassifier:
        made = ReservoirClassifier(
            n_neurons=10, random_state=0, eta=10.0, certify=n_classes == 2
        )
        return made.fit(X, y, weights)

    made = fitted()
    with monkeypatch.context() as plain:
        plain.setattr(moments, "DENSE_SIZE", 10**6)
        full = fitted()
    # κ is flat at its maximum, so that rounding hardly moves it.
    np.testing.assert_allclose(made.soft_margin_, full.soft_margin_, rtol=1e-6)
    np.testing.assert_array_equal(made.predict(X), full.predict(X))


def test_a_stream_goes_on_after_a_file(factored, tmp_path):
    X, y = few_series(2, 60, 24)
    straight = ReservoirClassifier(n_neurons=10, random_state=0, eta=10.0)
    halted = ReservoirClassifier(n_neurons=10, random_state=0, eta=10.0)
    for part in (slice(0, 12), slice(12, 24)):
        straight.partial_fit(X[part], y[part], classes=[0, 1])
    halted.partial_fit(X[:12], y[:12], classes=[0, 1])
    # As of a stream whose sample is no longer the whole of it.
    halted._stream.sample.seen[:] += 1
    assert isinstance(halted._stream.moments[0].scatter, Factored)
    halted.save(tmp_path / "model")
    loaded = greenfold.load(tmp_path / "model")
    loaded.partial_fit(X[12:], y[12:])
    np.testing.assert_allclose(
        loaded.decision_function(X), straight.decision_function(X), rtol=1e-9
    )


def test_what_has_no_room_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(moments, "_free_memory", lambda: 2.0**30)
    X = np.zeros((9000, 1, 4000))
    with pytest.raises(MemoryError, match=r"4000 values .* 0.119 GiB.* 1 GiB are free"):
        ClassMoments.of(X, np.arange(9000))
    # Few series of that length fit.
    assert isinstance(ClassMoments.of(X, np.arange(5)).scatter, Factored)
