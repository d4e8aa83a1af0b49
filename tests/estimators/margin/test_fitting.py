"""Fitting solves the problem that `optimize` solves, whatever the unit of the series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import base
from sklearn.exceptions import NotFittedError

from greenfold import SampleStimuli, optimize, unfold
from greenfold.estimators.margin import ReservoirClassifier

from ...conftest import interrupt
from .conftest import make


@pytest.mark.parametrize("certify", [False, True])
def test_solves_the_problem_that_optimize_solves(beats, certify):
    X, y, _, _ = beats
    fitted = make(eta=10.0, class_weight="balanced", certify=certify).fit(X, y)
    dt = fitted.duration / X.shape[1]
    unfolding = unfold(fitted.reservoir_, n_steps=X.shape[1], dt=dt)
    best = optimize(unfolding, SampleStimuli(X, y), 10.0)
    assert fitted.soft_margin_ == pytest.approx(best.soft_margin, rel=1e-6)
    assert fitted.soft_margin_bound_ >= best.soft_margin * (1 - 1e-9)
    assert abs(fitted.u_ @ best.u) == pytest.approx(1, abs=1e-3)


clone: Any = base.clone


def test_optimal_projection_beats_random_ones(beats):
    X, y, _, _ = beats
    best = make(eta=10.0).fit(X, y)
    for seed in range(5):
        drawn = make(input_projection="random", random_state=seed, eta=10.0)
        own = drawn.set_params(n_neurons=100, reservoir=best.reservoir_).fit(X, y)
        assert own.soft_margin_ < best.soft_margin_
        assert own.soft_margin_bound_ >= best.soft_margin_ * (1 - 1e-9)


def test_threads_change_nothing(three):
    X, y = three
    one, two = (make(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_unit_of_the_series_does_not_matter(beats):
    X, y, X_test, _ = beats
    wanted = make(eta=10.0).fit(X, y).decision_function(X_test)
    for factor in (2.0**-900, 2.0**900):
        found = make(eta=10.0).fit(factor * X, y).decision_function(factor * X_test)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    for factor, shift in ((1e-3, 0), (1e300, 0), (1, 1e4)):
        one = make(eta=10.0).fit(factor * X + shift, y)
        found = one.decision_function(factor * X_test + shift)
        np.testing.assert_allclose(found, wanted, atol=1e-3 * np.abs(wanted).max())


@pytest.mark.parametrize(("order", "certify"), [(0, False), (0, True), (1, False)])
def test_interrupt_leaves_no_half_fitted_classifier(order, certify, beats, monkeypatch):
    """Ctrl-C ends `fit`, and with it the cross-validation that called it."""
    from greenfold.optimizers.linear import LinearProblem
    from greenfold.optimizers.nonlinear import NonlinearProblem

    owner = NonlinearProblem if order else LinearProblem
    calls = interrupt(monkeypatch, owner, "evaluate", 2)
    X, y, _, _ = beats
    classifier = ReservoirClassifier(
        order=order, eta=10.0, n_neurons=15, certify=certify, random_state=0
    )
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(X, y)
    with pytest.raises(NotFittedError):
        classifier.predict(X)
    assert len(calls) == 3
