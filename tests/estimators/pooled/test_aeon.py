"""The adapters to aeon pass aeon's own checks."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from greenfold.datasets import load_dataset, synthetic_heartbeats
from greenfold.estimators.pooled import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
)

from ...contracts import pass_every_check_of_aeon

pytestmark = pytest.mark.needs("aeon")

ADAPTERS = [
    "AeonPooledReservoirClassifier",
    "AeonPooledReservoirRegressor",
    "AeonReservoirFeatures",
]


def adapter(name: str) -> Any:
    return getattr(importlib.import_module("greenfold.estimators.aeon"), name)


@pytest.mark.contract
@pytest.mark.parametrize("name", ADAPTERS)
def test_passes_every_check_of_aeon(name):
    pass_every_check_of_aeon(adapter(name))


@pytest.mark.parametrize(
    ("ours", "name", "method"),
    [
        (PooledReservoirClassifier, "AeonPooledReservoirClassifier", "predict_proba"),
        (PooledReservoirRegressor, "AeonPooledReservoirRegressor", "predict"),
        (ReservoirFeatures, "AeonReservoirFeatures", "transform"),
    ],
)
def test_is_the_same_estimator(ours: Any, name, method):
    X, y = synthetic_heartbeats(30, n_steps=20, rng=0)
    if ours is PooledReservoirRegressor:
        y = X.mean(axis=1)
    given: dict[str, Any] = {"n_readouts": 16, "random_state": 0}
    a, b = ours(**given).fit(X, y), adapter(name)(**given).fit(X[:, None], y)
    assert a.get_params().keys() == b.get_params().keys()
    np.testing.assert_array_equal(getattr(b, method)(X[:, None]), getattr(a, method)(X))


def test_unequal_lengths_and_channels(data_dir):
    X, y = load_dataset("JapaneseVowels", "train", data_dir=data_dir)
    fitted = adapter("AeonPooledReservoirClassifier")(n_readouts=32, random_state=0).fit(
        X, y
    )
    X_test, y_test = load_dataset("JapaneseVowels", "test", data_dir=data_dir)
    # Some test series are longer than every training series.
    assert fitted.score(X_test, y_test) > 0.9
