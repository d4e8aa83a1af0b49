"""The adapters to sktime pass sktime's own checks, and give what the estimators give."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from greenfold.datasets import lorenz, synthetic_heartbeats
from greenfold.estimators.margin import ReservoirClassifier
from greenfold.estimators.pooled import PooledReservoirClassifier, PooledReservoirRegressor
from greenfold.estimators.sequences import ReservoirForecaster

pytestmark = [
    pytest.mark.needs("sktime"),
    # sktime warns of its own next version.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

SERIES = [ReservoirClassifier, PooledReservoirClassifier, PooledReservoirRegressor]


def adapter(ours: type) -> Any:
    module = importlib.import_module("greenfold.estimators.sktime")
    return getattr(module, f"Sktime{ours.__name__}")


@pytest.mark.contract
@pytest.mark.parametrize("ours", [*SERIES, ReservoirForecaster])
def test_passes_every_check_of_sktime(ours):
    from sktime.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks fit tiny, flat and constant series
        results = check_estimator(adapter(ours), verbose=False)
    bad = {name: said for name, said in results.items() if said != "PASSED"}
    assert not bad, bad
    assert len(results) > 100


@pytest.mark.parametrize("ours", SERIES)
def test_is_the_same_estimator(ours: Any):
    X, y = synthetic_heartbeats(40, n_steps=20, rng=0)
    if ours is PooledReservoirRegressor:
        y = X.max(axis=1)
    given: dict[str, Any] = {"random_state": 0} | (
        {} if ours is ReservoirClassifier else {"n_readouts": 16}
    )
    a, b = ours(**given).fit(X, y), adapter(ours)(**given).fit(X[:, None], y)
    assert a.get_params() == b.get_params()
    np.testing.assert_array_equal(b.predict(X[:, None]), a.predict(X))
    for name in {"predict_proba"} & set(dir(a)):
        np.testing.assert_array_equal(getattr(b, name)(X[:, None]), getattr(a, name)(X))


def test_series_of_unequal_length_are_tables():
    pd = pytest.importorskip("pandas")
    X, y = synthetic_heartbeats(40, n_steps=24, rng=0)
    cut = [one[k % 4 :] for k, one in enumerate(X)]
    tables = [pd.DataFrame({"x": one}) for one in cut]
    given: dict[str, Any] = {"n_readouts": 16, "random_state": 0}
    a = PooledReservoirClassifier(**given).fit(cut, y)
    b = adapter(PooledReservoirClassifier)(**given).fit(tables, y)
    np.testing.assert_array_equal(b.predict_proba(tables), a.predict_proba(cut))


def test_forecasts_continue_from_the_last_sample_seen():
    pd = pytest.importorskip("pandas")
    series = lorenz(700, rng=0)
    index = pd.date_range("2024-01-01", periods=700, freq="D")
    table = pd.DataFrame(series, index, ["x", "y", "z"])
    given: dict[str, Any] = {"n_neurons": 20, "max_iter": 3, "random_state": 0}
    ours = ReservoirForecaster(**given).fit(series[:600])
    theirs = adapter(ReservoirForecaster)(**given).fit(table[:600])
    made = theirs.predict(fh=[1, 5])
    assert made.index.tolist() == [index[600], index[604]]
    np.testing.assert_array_equal(made, ours.forecast(5, context=series[:600])[[0, 4]])
    # New samples may overlap those before; the model is the same, its state is not.
    theirs.update(table[590:640], update_params=False)
    made = theirs.predict(fh=[1])
    assert made.index.tolist() == [index[640]]
    np.testing.assert_array_equal(made, ours.forecast(1, context=series[:640]))
    theirs.update(table[640:], update_params=True)
    again = ReservoirForecaster(**given).fit(series)
    np.testing.assert_array_equal(
        theirs.predict(fh=[3]), again.forecast(3, context=series)[2:]
    )
