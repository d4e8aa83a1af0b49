"""The regressor: scikit-learn's own checks, and least squares as the judge."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from greenfold import ReservoirRegressor

from ...contracts import pass_every_check, pass_quick_checks


def test_passes_the_quick_checks_of_scikit_learn():
    pass_quick_checks(ReservoirRegressor(n_neurons=4))


@pytest.mark.contract
def test_passes_every_check_of_scikit_learn():
    pass_every_check("ReservoirRegressor(n_neurons=20)")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((260, 2, 12))
    y = np.stack([X[:, 0, -1] - X[:, 1, -3], 10 + 5 * X[:, 1, -2]], axis=1)
    return X, y + 0.2 * rng.standard_normal(y.shape)


def test_predictions_are_those_of_the_network(data):
    X, y = data
    regressor = ReservoirRegressor(n_neurons=12, random_state=0).fit(X[:200], y[:200])
    assert regressor.score(X[200:], y[200:]) > 0.9
    states = regressor.unfolding_.states(X, regressor.projections_.u.reshape(12, 2))
    fit = np.linalg.lstsq(np.column_stack([states, np.ones(260)]), regressor.predict(X))
    again = np.column_stack([states, np.ones(260)]) @ fit[0]
    np.testing.assert_allclose(again, regressor.predict(X), atol=1e-8)
    copy = pickle.loads(pickle.dumps(regressor))
    np.testing.assert_array_equal(copy.predict(X), regressor.predict(X))
    same = ReservoirRegressor(n_neurons=12, random_state=0).fit(X[:200], y[:200])
    np.testing.assert_array_equal(same.kernel_, regressor.kernel_)


@pytest.mark.parametrize("size", [1.0, 3.0])  # inside the grid, and its end
def test_the_penalty_is_the_one_that_scikit_learn_chooses(data, size):
    # Noisy enough for a penalty inside the grid.
    X, noise = data[0][:24], np.random.default_rng(1).standard_normal((24, 1))
    y = data[1][:24, :1] + size * noise
    regressor = ReservoirRegressor(n_neurons=8, input_projection="random", random_state=0)
    regressor.fit(X, y[:, 0])
    x, t = (X - X.mean(0)) / np.sqrt(((X - X.mean(0)) ** 2).mean()), y - y.mean(0)
    unfolding, u = regressor.unfolding_, regressor.projections_.u
    states, spread = x.reshape(24, -1) @ unfolding.input_response(u), t.std()
    penalties = np.geomspace(1e-8, 1e1, 19)
    errors = []
    for ridge in penalties:
        # The penalty of all cases, as ours is one of their mean.
        model = Ridge(alpha=24 * ridge)
        held = cross_val_predict(model, states, t[:, 0] / spread, cv=LeaveOneOut())
        errors.append(((held - t[:, 0] / spread) ** 2).sum())
    assert regressor.ridge_ == pytest.approx(penalties[int(np.argmin(errors))])


def test_a_solved_projection_bears_noise_better(data):
    X, y = data
    error = {}
    for projection in ("solved", "random"):
        regressor = ReservoirRegressor(
            input_projection=projection, n_neurons=8, readout_noise=0.3, random_state=0
        ).fit(X, y)
        assert regressor.ridge_ >= 0.09
        error[projection] = regressor.projections_.loss
        assert (regressor.projections_.upper_bound is None) == (projection == "random")
    assert error["solved"] < error["random"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"ridge": -1.0}, "ridge"),
        ({"input_projection": "best"}, "input_projection"),
        ({"n_neurons": 0}, "n_neurons"),
        ({"tau": "auto"}, "tau"),
        ({"readout_noise": -0.1}, "readout_noise"),
    ],
)
def test_bad_parameters(data, options, name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of ReservoirRegressor"):
        ReservoirRegressor(**options).fit(*data)
