"""One input projection for all classes, as an estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import greenfold
from greenfold.apps.report import comparison
from greenfold.estimators.margin import ReservoirClassifier
from greenfold.saving import ModelFileError

from .conftest import make


@pytest.fixture(scope="module")
def shared(three):
    return make(input_projection="shared", eta=10.0).fit(*three)


def test_one_u_for_all_classes(shared, three):
    X, y = three
    assert shared.u_.shape == (20,)
    assert shared.v_.shape == (3, 20)
    for head in shared.heads_:
        np.testing.assert_array_equal(head.u[:, 0], shared.u_)
    assert shared.score(X, y) > 2 / 3  # twice what chance gives


def test_sum_lies_between_random_u_and_own_u(shared, three):
    """Every given u is below the bound, and what is found above them."""
    rng = np.random.default_rng(0)
    total = shared.soft_margin_.sum()
    assert total <= shared.shared_bound_ <= shared.soft_margin_bound_.sum() * (1 + 1e-12)
    for _ in range(15):
        given = make(input_projection=rng.standard_normal(20), eta=10.0).fit(*three)
        assert given.soft_margin_.sum() < total
    own = make(eta=10.0, certify=True).fit(*three)
    assert total < own.soft_margin_.sum()
    assert own.shared_bound_ is None


def test_certify_lowers_the_bound(shared, three):
    proven = make(input_projection="shared", eta=10.0, certify=True).fit(*three)
    total = proven.soft_margin_.sum()
    assert total <= proven.shared_bound_ <= shared.shared_bound_ * (1 + 1e-9)
    # The relaxation of three bumps is tight.
    assert proven.shared_bound_ == pytest.approx(total, rel=2e-3)


def test_two_classes_are_the_ordinary_solution(beats):
    X, y, X_test, _ = beats
    one = make(input_projection="shared").fit(X, y)
    other = make().fit(X, y)
    np.testing.assert_array_equal(one.u_, other.u_)
    np.testing.assert_array_equal(one.v_, other.v_)
    assert one.eta_ == other.eta_
    assert one.shared_bound_ == other.soft_margin_bound_
    np.testing.assert_array_equal(
        one.decision_function(X_test), other.decision_function(X_test)
    )


def test_the_network_is_run_once(shared, three):
    """The readout values are those of one run, moved and scaled for each class."""
    X, _ = three
    system = shared.unfolding_
    states = system.states(X[:, None, :], shared.u_)
    centres = system.states(shared.centre_, shared.u_)
    once = (states @ shared.v_.T - (centres * shared.v_).sum(1)) * shared.scale_
    np.testing.assert_allclose(shared.read_out(X), once, rtol=0, atol=1e-12)


def test_file_keeps_the_bound_and_goes_on(shared, three, tmp_path):
    X, y = three
    path = tmp_path / "model"
    shared.save(path)
    loaded = greenfold.load(path)
    assert isinstance(loaded, ReservoirClassifier)
    assert loaded.shared_bound_ == shared.shared_bound_
    assert loaded.u_.shape == (20,)
    np.testing.assert_array_equal(loaded.predict_proba(X), shared.predict_proba(X))
    loaded.partial_fit(X, y)
    assert loaded.u_.shape == (20,)
    # Every series twice: the same moments, the same answer.
    assert loaded.soft_margin_.sum() == pytest.approx(shared.soft_margin_.sum(), rel=1e-6)


def test_file_with_a_bound_that_is_no_number(shared, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "shared_bound_", float("inf"))
    path = tmp_path / "model"
    shared.save(path)
    with pytest.raises(ModelFileError, match="shared_bound is inf, not a finite number"):
        greenfold.load(path)


def test_two_channels_and_unequal_lengths(three):
    X, y = three
    both = np.stack([X, X[:, ::-1]], axis=1)
    found = make(input_projection="shared", eta=10.0).fit(both, y)
    assert found.u_.shape == (20, 2)
    short = [x[i % 4 :] for i, x in enumerate(X)]
    assert make(input_projection="shared", eta=10.0).fit(short, y).score(short, y) > 2 / 3


@pytest.mark.parametrize("order", [1, "exact"])
def test_linear_order_only(order, three):
    with pytest.raises(ValueError, match="'input_projection' parameter .* beyond order 0"):
        make(input_projection="shared", order=order).fit(*three)


@pytest.mark.contract
def test_checks_of_scikit_learn():
    from sklearn.utils import estimator_checks

    name = "ReservoirClassifier"
    made = ReservoirClassifier(input_projection="shared", n_neurons=10)
    assert repr(made) == "ReservoirClassifier(input_projection='shared', n_neurons=10)"
    for check in (
        "check_classifiers_train",
        "check_classifiers_classes",
        "check_fit_idempotent",
        "check_dict_unchanged",
        "check_estimators_pickle",
        "check_methods_subset_invariance",
    ):
        getattr(estimator_checks, check)(name, clone(made))


def test_rows_of_a_comparison(three):
    """A bound for one u does not become that of rows with a u for each class."""
    from greenfold.apps.report import Split

    X, y = three
    task = Split("bumps", X, y)
    settings = {"n_neurons": 20, "eta": 10.0, "certify": True}
    rows = comparison.compare(
        task, [("random", 0), ("solved", 0), ("shared", 0)], parameters=settings
    )
    drawn, own, one = comparison.share_bounds(rows)
    assert one.projection == "shared"
    assert one.is_solved
    assert one.classifier.shared_bound_ == pytest.approx(3 * one.bound)
    assert own.bound == pytest.approx(np.mean(own.classifier.soft_margin_bound_))
    assert drawn.bound == one.bound < own.bound


@pytest.mark.needs("aeon")
def test_aeon(three):
    from greenfold.estimators import aeon

    X, y = three
    made = aeon.AeonReservoirClassifier(
        input_projection="shared", n_neurons=20, eta=10.0, random_state=0
    )
    made.fit(X[:, None, :], y)
    assert made.classifier_.u_.shape == (20,)
    assert (made.predict(X[:, None, :]) == y).mean() > 2 / 3
