"""The adapter to aeon passes aeon's own checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greenfold.datasets import load_dataset, synthetic_heartbeats
from greenfold.estimators.margin import ReservoirClassifier

from ...contracts import pass_every_check_of_aeon

pytestmark = pytest.mark.needs("aeon")


@pytest.fixture(scope="module")
def adapter() -> Any:
    from greenfold.estimators.aeon import AeonReservoirClassifier

    return AeonReservoirClassifier


@pytest.mark.contract
def test_passes_every_check_of_aeon(adapter):
    pass_every_check_of_aeon(adapter)


def test_is_the_same_classifier(adapter):
    X, y = synthetic_heartbeats(60, n_steps=20, rng=0)
    ours = ReservoirClassifier(n_neurons=10, random_state=0).fit(X, y)
    theirs = adapter(n_neurons=10, random_state=0).fit(X[:, None], y)
    assert theirs.get_params().keys() == ours.get_params().keys()
    np.testing.assert_array_equal(theirs.predict(X[:, None]), ours.predict(X))
    np.testing.assert_array_equal(theirs.predict_proba(X[:, None]), ours.predict_proba(X))


def test_unequal_lengths_and_channels(data_dir, adapter):
    def speakers(split):
        """Three of nine."""
        X, y = load_dataset("JapaneseVowels", split, data_dir=data_dir)
        y = np.asarray(y).astype(int)
        return [X[i] for i in np.flatnonzero(y <= 3)], y[y <= 3]

    (X, y), (X_test, y_test) = speakers("train"), speakers("test")
    fitted = adapter(n_neurons=20, eta=100.0, random_state=0).fit(X, y)
    # Some test series are longer than every training series.
    assert max(x.shape[1] for x in X_test) > max(x.shape[1] for x in X)
    assert fitted.score(X_test, y_test) > 0.8
