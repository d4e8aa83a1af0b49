"""Two classes of heartbeats, three classes of bumps, and a small classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators.margin import ReservoirClassifier


@pytest.fixture(scope="session")
def beats():
    X, y = synthetic_heartbeats(160, n_steps=40, rng=0)
    return X[:100], y[:100], X[100:], y[100:]


@pytest.fixture(scope="session")
def many_beats():
    """A thousand more of them to be judged by, half of each class."""
    return synthetic_heartbeats(1000, n_steps=40, rng=1)


@pytest.fixture(scope="session")
def three():
    """Three classes of noisy bumps at different times, labelled by text."""
    rng = np.random.default_rng(1)
    codes = np.arange(90) % 3
    time = np.linspace(0, 1, 30)
    X = np.exp(-(((time - 0.3 - 0.2 * codes[:, None]) / 0.1) ** 2))
    return X + 0.2 * rng.standard_normal(X.shape), np.array(["a", "b", "c"])[codes]


def make(**parameters) -> Any:
    """A classifier of twenty neurons, always the same ones, unless a network is given."""
    drawn = {} if "reservoir" in parameters else {"n_neurons": 20}
    return ReservoirClassifier(**{**drawn, "random_state": 0, **parameters})
