"""Pooled estimators on series in chunks, against the same in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greenfold import PooledReservoirClassifier, PooledReservoirRegressor, ReservoirFeatures
from greenfold.datasets import open_series, synthetic_heartbeats
from greenfold.estimators.pooled import estimators

from ...chunked import from_array

pytestmark = pytest.mark.needs("dask")

SMALL: dict[str, Any] = {
    "n_scales": 2,
    "n_oscillators": 4,
    "n_readouts": 16,
    "random_state": 0,
    "engine": "array",
}
#: Features and their products are of single precision, 6e-8 each; chunks of another size
#: are multiplied in another order.
SINGLE = 2e-4


@pytest.fixture(scope="module")
def beats():
    return synthetic_heartbeats(80, n_steps=24, rng=0)


@pytest.fixture(params=["at once", "in parts"])
def size(request, monkeypatch):
    """Few series are brought together, many are solved part by part."""
    if request.param == "in parts":
        monkeypatch.setattr(estimators, "DUAL_CASES", 30)
        monkeypatch.setattr(estimators, "PART_CASES", 20)
        monkeypatch.setattr(estimators, "HELD_OUT", 16)
    return request.param


def test_the_classifier_is_that_of_the_series_in_memory(beats, size):
    X, y = beats
    labels = np.array(["ill", "well"])[(y > 0).astype(int)]
    whole = PooledReservoirClassifier(class_weight="balanced", **SMALL).fit(X, labels)
    chunks = from_array(X, chunks=((33, 1, 46), 9))
    found = PooledReservoirClassifier(class_weight="balanced", **SMALL)
    found.fit(chunks, from_array(labels, chunks=11))
    assert len(whole.held_out_cases_) == (16 if size == "in parts" else 80)  # pyright: ignore[reportArgumentType]
    assert found.penalty_ == pytest.approx(whole.penalty_, rel=1e-5)
    assert found.held_out_scores_ == pytest.approx(whole.held_out_scores_, abs=SINGLE)
    lazy: Any = found.predict_proba(chunks)
    assert lazy.shape == (80, 2)
    assert lazy.compute() == pytest.approx(whole.predict_proba(X), abs=SINGLE)
    lazy = found.predict(chunks)
    assert (lazy.compute() == whole.predict(X)).all()


def test_gaps_and_channels(rng, size):
    X = rng.standard_normal((60, 2, 15))
    X[5, 0, 3:6] = np.nan
    X[40:50, :, 11:] = np.nan  # shorter ones
    y = np.arange(60) % 3
    whole = PooledReservoirClassifier(**SMALL).fit(X, y)
    found = PooledReservoirClassifier(**SMALL).fit(from_array(X, chunks=(25, 1, 7)), y)
    assert found.decision_function(X) == pytest.approx(
        whole.decision_function(X), abs=SINGLE
    )


def test_features_regressor_and_a_file(beats, tmp_path, size):
    X, _ = beats
    y = X.sum(axis=1)
    chunks = from_array(X, chunks=(30, -1))
    features = ReservoirFeatures(**SMALL).fit(chunks)
    lazy: Any = features.transform(chunks)
    assert lazy.dtype == np.float32
    expected = ReservoirFeatures(**SMALL).fit(X).transform(X)
    assert np.abs(lazy.compute() - expected).max() < 1e-5  # of order one to ten
    np.save(tmp_path / "X.npy", X)
    series, _ = open_series(tmp_path / "X.npy")
    whole = PooledReservoirRegressor(**SMALL).fit(X, y)
    for given in (chunks, series):
        found = PooledReservoirRegressor(**SMALL).fit(given, y)
        assert found.predict(X) == pytest.approx(whole.predict(X), abs=SINGLE * y.std())
    assert whole.predict(series) == pytest.approx(whole.predict(X), abs=1e-5 * y.std())


def test_what_cannot_be_done_is_said_in_one_sentence(beats, size):
    X, y = beats
    model = PooledReservoirClassifier(**SMALL)
    broken, empty = X.copy(), X.copy()
    broken[41, 3], empty[41] = np.inf, np.nan
    for bad, sentence in (
        (broken, "contains infinity, in the"),
        (empty, "no value at all in"),
    ):
        with pytest.raises(ValueError, match=f"{sentence}.* at index 41"):
            model.fit(from_array(bad, chunks=(30, -1)), y)
    with pytest.raises(ValueError, match="y holds only one class: 1"):
        model.fit(from_array(X, chunks=(30, -1)), np.ones(80, int))
    with pytest.raises(ValueError, match=r"numbers of samples: \[80, 3\]"):
        model.fit(from_array(X, chunks=(30, -1)), y[:3])


@pytest.mark.needs("dask")
def test_a_series_that_is_refused_is_named_by_its_place_among_all():
    import dask.array as da

    from greenfold import ReservoirClassifier

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), np.arange(30) % 2
    fitted = ReservoirClassifier(n_neurons=6, eta=1.0, random_state=0).fit(X, y)
    X[23, 4] = np.nan
    chunks: Any = da.from_array(X, chunks=10)  # pyright: ignore[reportArgumentType]
    told: Any = fitted.predict(chunks)
    with pytest.raises(ValueError, match="NaN, in the series at index 23"):
        told.compute()
