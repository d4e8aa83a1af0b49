"""Arguments that have no effect beside others are refused, and the walk misses none.

The table names, for each estimator, settings and the parameters without effect beside them.
The walk gives every other parameter beside these settings, and it is refused if and only if
the table says so.
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import base
from sklearn.model_selection import GridSearchCV

from greenfold import (
    EchoStateNetwork,
    Gain,
    Reservoir,
    ReservoirClassifier,
    ReservoirForecaster,
    ReservoirRegressor,
    SequenceRegressor,
)
from greenfold.estimators.parameters import ParameterError
from greenfold.estimators.pooled import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
)

WEIGHTS = 0.1 * np.eye(6, k=1)
LINEAR = Reservoir(WEIGHTS)
BENT = Reservoir(WEIGHTS, gain=Gain.quadratic(0.1))
DISCRETE = EchoStateNetwork(WEIGHTS)
U = np.arange(1.0, 7.0)

#: A valid value of each parameter that differs from its default.
OTHER: dict[str, Any] = {
    "input_projection": "random",
    "order": 1,
    "alpha": 0.01,
    "n_neurons": 7,
    "g": 0.5,
    "tau": 0.3,
    "duration": 5.0,
    "reservoir": WEIGHTS,
    "eta": 3.0,
    "input_scaling": 0.5,
    "threshold": "origin",
    "readout": "integrated",
    "readout_noise": 1.0,
    "class_weight": "balanced",
    "certify": True,
    "random_state": 3,
    "n_jobs": 2,
    "verbose": True,
    "ridge": 0.2,
    "n_scales": 3,
    "n_oscillators": 8,
    "n_readouts": 16,
    "scaling": "series",
    "engine": "array",
    "input_weights": "random",
    "spectral_radius": 0.5,
    "leak": 0.4,
    "input_scale": 0.8,
    "bias_scale": 0.1,
    "dt": 0.4,
    "washout": 20,
    "see_input": 2,
    "max_iter": 7,
}

SEQUENCES = (SequenceRegressor, ReservoirForecaster)
#: The pooled estimators have no parameter that depends on another.
POOLED = (ReservoirFeatures, PooledReservoirClassifier, PooledReservoirRegressor)
#: Parameters of a random network, and those that a Reservoir has too.
DRAWN, OWN = {"n_neurons", "g"}, {"n_neurons", "g", "tau"}
#: Those of the network that sequence estimators draw, and of input weights.
PLANNED = {"n_neurons", "spectral_radius", "leak"}
FIXED = {"max_iter", "input_scale", "bias_scale"}

#: Estimator, settings, and the parameters that may not be given beside them.
TABLE: list[tuple[Any, dict[str, Any], set[str]]] = [
    (ReservoirClassifier, {}, {"alpha"}),
    (ReservoirClassifier, {"order": 1}, {"certify"}),
    (ReservoirClassifier, {"order": "exact"}, {"certify"}),
    (ReservoirClassifier, {"order": 2, "alpha": 0.1}, {"certify", "reservoir"}),
    (ReservoirClassifier, {"input_projection": "shared"}, {"alpha", "order"}),
    (ReservoirClassifier, {"input_projection": "random"}, {"alpha", "certify"}),
    (
        ReservoirClassifier,
        {"input_projection": U, "n_neurons": 6},
        {"alpha", "certify", "reservoir"},
    ),
    (ReservoirClassifier, {"certify": True}, {"alpha", "order", "input_projection"}),
    (ReservoirClassifier, {"n_neurons": 5}, {"alpha", "reservoir"}),
    (ReservoirClassifier, {"tau": 0.3}, {"alpha"}),
    (ReservoirClassifier, {"reservoir": WEIGHTS}, {"alpha", *DRAWN}),
    (ReservoirClassifier, {"reservoir": WEIGHTS, "order": 1}, {"certify", *DRAWN}),
    (ReservoirClassifier, {"reservoir": LINEAR}, {"alpha", "order", *OWN}),
    (ReservoirClassifier, {"reservoir": BENT, "order": 1}, {"alpha", "certify", *OWN}),
    (
        ReservoirClassifier,
        {"reservoir": LINEAR, "tau": "auto"},
        {"alpha", "order", *DRAWN},
    ),
    (ReservoirRegressor, {}, set()),
    (ReservoirRegressor, {"input_projection": U, "n_neurons": 6}, {"reservoir"}),
    (ReservoirRegressor, {"reservoir": WEIGHTS}, DRAWN),
    (ReservoirRegressor, {"reservoir": LINEAR}, OWN),
    (ReservoirRegressor, {"ridge": 0.1}, {"readout_noise"}),
    *((kind, {}, set()) for kind in POOLED),
    *(
        (kind, settings, idle)
        for kind in SEQUENCES
        for settings, idle in (
            ({}, {"dt"}),
            ({"input_weights": "random"}, {"dt", "max_iter"}),
            ({"input_weights": U, "n_neurons": 6}, {"dt", "reservoir", *FIXED}),
            ({"reservoir": BENT}, PLANNED),
            ({"reservoir": DISCRETE}, {"dt", *PLANNED}),
            ({"reservoir": BENT, "input_weights": U}, {*FIXED, *PLANNED}),
        )
    ),
]


def other(kind: Any, name: str, settings: dict[str, Any]) -> Any:
    """Return a value of a parameter that differs from its default."""
    if name == "reservoir" and (settings.get("order") or kind in SEQUENCES):
        return BENT
    return OTHER[name]


WALK: list[tuple[Any, dict[str, Any], str, set[str]]] = [
    (kind, settings, name, idle)
    for kind, settings, idle in TABLE
    for name in inspect.signature(kind).parameters
    if name not in settings
]


@pytest.mark.parametrize(("kind", "settings", "name", "idle"), WALK)
def test_a_parameter_is_refused_if_and_only_if_it_has_no_effect(kind, settings, name, idle):
    made = kind(**settings, **{name: other(kind, name, settings)})
    if name not in idle:
        made._check_parameters()
        return
    with pytest.raises(ParameterError) as refused:
        made._check_parameters()
    # One of the two that do not go together is named.
    assert refused.value.name in {name, *settings}
    named = f"The {refused.value.name!r} parameter of {kind.__name__} must be "
    assert str(refused.value).startswith(named)


#: An engine computes the same features as another, and these hold for any estimator.
WITHOUT_NUMBERS = {"engine", "random_state", "n_jobs", "verbose"}


#: For quick fits.
SMALL = {"n_neurons": 6, "eta": 10.0, "n_scales": 2, "n_oscillators": 4, "n_readouts": 24}


def fitted(made: Any) -> np.ndarray:
    """Return the numbers of a fit to three unbalanced classes, or to their labels."""
    rng = np.random.default_rng(0)
    if isinstance(made, SEQUENCES):
        return followed(made.set_params(random_state=0), rng.standard_normal(200))
    y = np.repeat([0, 1, 2], [6, 8, 10])
    X = rng.standard_normal((24, 8)) + np.cos(np.arange(8) * (1 + y[:, None]))
    fit: Any = made.set_params(random_state=0).fit(X, y)
    found = [fit.predict(X) if hasattr(fit, "predict") else fit.transform(X)]
    if hasattr(fit, "predict_proba"):
        found += [fit.decision_function(X), fit.predict_proba(X)]
    if isinstance(fit, ReservoirClassifier):
        found += [fit.soft_margin_, fit.soft_margin_bound_, fit.u_]
        network: Any = fit.reservoir_
        found.append(network.tau)
    return np.concatenate([np.ravel(one) for one in found])


#: The first settings beside which each parameter is accepted.
ACCEPTED = {
    (kind, name): settings
    for kind, settings, name, idle in reversed(WALK)
    if name not in idle | WITHOUT_NUMBERS and "order" not in (name, *settings)
}


def followed(made: Any, x: np.ndarray) -> np.ndarray:
    """Return the numbers of a fit to products of earlier values."""
    if isinstance(made, SequenceRegressor):
        y = np.tanh(np.roll(x, 1) * np.roll(x, 2) + 0.3 * np.roll(x, 3))
        return made.fit(x, y).predict(x)
    x[:2] = 0.1
    for k in range(2, len(x)):  # the map of Hénon
        x[k] = 1 - 1.4 * x[k - 1] ** 2 + 0.3 * x[k - 2]
    return made.fit(x).forecast(20)


@pytest.mark.contract
@pytest.mark.parametrize(("kind", "name"), ACCEPTED)
def test_a_parameter_that_is_accepted_has_an_effect(kind, name):
    settings = ACCEPTED[kind, name]
    known = inspect.signature(kind).parameters
    quick = {k: v for k, v in SMALL.items() if k in known}
    if "reservoir" in (name, *settings):
        quick.pop("n_neurons", None)
    usual = fitted(kind(**{**quick, **settings}))
    given = fitted(kind(**{**quick, **settings, name: other(kind, name, settings)}))
    assert usual.shape != given.shape or not np.array_equal(usual, given, equal_nan=True)


def test_alpha_of_zero_leaves_nothing_to_expand():
    with pytest.raises(ParameterError, match="'order' .* whose gain is linear. Got 2"):
        ReservoirClassifier(order=2, alpha=0.0)._check_parameters()


clone: Any = base.clone


def test_tools_of_scikit_learn_may_set_and_clone_parameters(rng):
    X, y = rng.standard_normal((12, 9)), np.arange(12) % 2
    made = clone(ReservoirClassifier(n_neurons=6, eta=3.0)).set_params(random_state=1)
    # Values at their defaults count as not given, and copies of a Reservoir as the same.
    made = clone(made.set_params(n_neurons=100, g=0.9, reservoir=LINEAR)).fit(X, y)
    assert made.reservoir_.n_neurons == len(WEIGHTS)
    grids = [{"order": [0]}, {"order": [1], "alpha": [1e-4, 1e-3]}]
    small = ReservoirClassifier(n_neurons=4, eta=3.0, input_projection="random")
    how: Any = {"cv": 2, "error_score": "raise"}
    search = GridSearchCV(small, grids, **how)
    assert search.fit(X, y).best_params_["order"] in (0, 1)


def test_an_error_survives_another_process():
    with pytest.raises(ParameterError) as refused:
        ReservoirClassifier(alpha=0.1)._check_parameters()
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.name, str(again)) == ("alpha", str(refused.value))
    assert isinstance(again, ValueError)
    assert isinstance(again, TypeError)
