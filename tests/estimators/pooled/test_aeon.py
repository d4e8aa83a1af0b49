"""The adapters to aeon pass aeon's own checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greenfold.datasets import load_dataset, synthetic_heartbeats
from greenfold.estimators.pooled import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
)

pytest.importorskip("aeon")

from aeon.testing.estimator_checking import parametrize_with_checks

from greenfold.estimators.pooled.aeon import (
    AeonPooledReservoirClassifier,
    AeonPooledReservoirRegressor,
    AeonReservoirFeatures,
)

ADAPTERS = [
    AeonPooledReservoirClassifier,
    AeonPooledReservoirRegressor,
    AeonReservoirFeatures,
]


@parametrize_with_checks(ADAPTERS)
def test_passes_every_check_of_aeon(check):
    check()


@pytest.mark.parametrize(
    ("ours", "theirs", "method"),
    [
        (PooledReservoirClassifier, AeonPooledReservoirClassifier, "predict_proba"),
        (PooledReservoirRegressor, AeonPooledReservoirRegressor, "predict"),
        (ReservoirFeatures, AeonReservoirFeatures, "transform"),
    ],
)
def test_is_the_same_estimator(ours: Any, theirs: Any, method):
    X, y = synthetic_heartbeats(30, n_steps=20, rng=0)
    if theirs is AeonPooledReservoirRegressor:
        y = X.mean(axis=1)
    given: dict[str, Any] = {"n_readouts": 16, "random_state": 0}
    a, b = ours(**given).fit(X, y), theirs(**given).fit(X[:, None], y)
    assert a.get_params().keys() == b.get_params().keys()
    np.testing.assert_array_equal(getattr(b, method)(X[:, None]), getattr(a, method)(X))


def test_unequal_lengths_and_channels(data_dir):
    X, y = load_dataset("JapaneseVowels", "train", data_dir=data_dir)
    fitted: Any = AeonPooledReservoirClassifier(n_readouts=32, random_state=0).fit(X, y)
    X_test, y_test = load_dataset("JapaneseVowels", "test", data_dir=data_dir)
    # Some test series are longer than every training series.
    assert fitted.score(X_test, y_test) > 0.9
