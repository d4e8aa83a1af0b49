"""The estimator: scikit-learn's contract, its probabilities, odd data."""

from __future__ import annotations

import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn import base
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from greenfold.estimators.margin import ReservoirClassifier

from ...contracts import pass_every_check, pass_quick_checks
from .conftest import make

clone: Any = base.clone


def test_passes_the_quick_checks_of_scikit_learn():
    pass_quick_checks(ReservoirClassifier(n_neurons=4, eta=10.0))


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param("n_neurons=20, eta=10.0", marks=pytest.mark.contract),
        pytest.param("", marks=pytest.mark.slow),
    ],
    ids=["small", "default"],
)
def test_passes_every_check_of_scikit_learn_without_a_skip(parameters):
    pass_every_check(f"ReservoirClassifier({parameters})")


def test_works_with_the_tools_of_scikit_learn(beats, tmp_path):
    X, y, X_test, _ = beats
    search = GridSearchCV(
        make(n_neurons=8), {"eta": [1.0, 100.0], "tau": [0.25, 0.5]}, cv=2
    )
    search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) > 1  # the parameters have arrived
    best = make(n_neurons=8, **search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X_test), best.predict(X_test))
    scaler = StandardScaler()
    piped = make_pipeline(scaler, make(eta=10.0)).fit(X, y)
    alone = make(eta=10.0).fit(scaler.transform(X), y)
    np.testing.assert_array_equal(
        piped.decision_function(X_test), alone.decision_function(scaler.transform(X_test))
    )
    fitted = make(eta=10.0).fit(X, y)
    wanted = fitted.decision_function(X_test)
    for copy in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X, y)):
        np.testing.assert_array_equal(copy.decision_function(X_test), wanted)
    joblib.dump(fitted, tmp_path / "model")
    np.testing.assert_array_equal(
        joblib.load(tmp_path / "model").transform(X_test), fitted.transform(X_test)
    )


def test_probabilities_follow_the_clouds(beats):
    X, y, X_test, _ = beats
    fitted = make().fit(X, y)
    odds = fitted.predict_proba(X_test)
    np.testing.assert_allclose(odds.sum(1), 1)
    assert ((odds[:, 1] > 0.5) == (fitted.decision_function(X_test) > 0)).all()
    noisy = make(readout_noise=0.5, eta=fitted.eta_).fit(X, y).predict_proba(X_test)
    assert np.abs(noisy - 0.5).mean() < np.abs(odds - 0.5).mean()


def test_more_than_two_classes_have_projections_each(three):
    X, y = three
    fitted = make(eta=30.0).fit(X[:60], y[:60])
    assert fitted.u_.shape == fitted.v_.shape == (3, 20)
    assert len(fitted.kernel_) == len(fitted.validity_) == 3
    assert fitted.soft_margin_.shape == fitted.n_iter_.shape == (3,)
    # The quick bounds hold for what a full search finds, here in half of the steps.
    short = make(eta=30.0).fit(X[:60, ::2], y[:60])
    best = make(eta=30.0, certify=True).fit(X[:60, ::2], y[:60])
    assert (best.soft_margin_ <= short.soft_margin_bound_ * (1 + 1e-9)).all()
    assert fitted.transform(X).shape == (90, 60)
    z = np.einsum("ncj,cj->nc", fitted.transform(X).reshape(90, 3, 20), fitted.v_)
    wanted = z @ fitted.coupling_.T - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), wanted, rtol=1e-6, atol=1e-6)
    assert fitted.score(X[60:], y[60:]) > 0.9
    assert (
        make(eta=30.0, threshold="origin").fit(X[:60], y[:60]).score(X[60:], y[60:]) > 0.8
    )


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((6, 5)), [0, 1, 0, 1, 0, 0]),  # constant: the frequent class wins
        (np.zeros((4, 3)), [0, 1, 1, 1]),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), ["x", "y"]),  # two series
        (np.array([[0.0], [0.1], [1.0], [1.1]]), [False, False, True, True]),  # one step
        (np.eye(6, 60), [0, 0, 0, 1, 1, 1]),  # more steps than series
        (np.full((4, 3), 1e308), [0, 1, 0, 1]),
        (np.full((4, 3), 5e-324), [0, 1, 0, 1]),
        (np.repeat([[1e300], [-1e300]], 3, axis=0), [0, 0, 0, 1, 1, 1]),
        (np.vstack([np.eye(5), np.eye(5)]), [0] * 5 + [1] * 5),  # equal means
        (np.arange(12.0).reshape(6, 2) ** 3, [0, 0, 0, 0, 1, 2]),  # classes of one
    ],
)
@pytest.mark.filterwarnings("ignore::greenfold.ExpansionWarning")  # as it should
@pytest.mark.filterwarnings("ignore:.* do not change over time")
@pytest.mark.parametrize("order", [0, 1])
def test_odd_data_give_finite_predictions(X, y, order):
    fitted = make(n_neurons=6, order=order, **({"alpha": 1e-4} if order else {})).fit(X, y)
    assert np.isfinite(fitted.decision_function(X)).all()
    assert np.isfinite(fitted.predict_proba(X)).all()
    assert np.isin(fitted.predict(X), y).all()


@pytest.mark.filterwarnings("ignore:.* do not change over time")
def test_telling_nothing_means_the_frequent_class():
    X, y = np.ones((10, 4)), np.array([1] * 7 + [0] * 3)
    assert (make().fit(X, y).predict(X) == 1).all()
    assert (make().fit(X, 1 - y).predict(X) == 0).all()


def test_overflow_is_an_error_not_a_class(beats):
    X, y, _, _ = beats
    classifier = ReservoirClassifier(
        order=1, alpha=0.001, eta=10.0, n_neurons=15, random_state=0
    ).fit(X, y)
    with pytest.raises(OverflowError, match="scale `X` down"):
        classifier.predict(X * 1e200)
