"""A small comparison of four networks to report on."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.apps.report import Split, compare
from greenfold.datasets import synthetic_heartbeats

SETTINGS = {"n_neurons": 20, "eta": 2.0, "alpha": 0.02, "certify": True}
FOUR = [("random", 0), ("solved", 0), ("random", 1), ("solved", 1)]


@pytest.fixture(scope="session")
def task() -> Split:
    X, y = synthetic_heartbeats(80, n_steps=24, rng=0)
    names = np.where(y > 0, "normal", "ectopic")
    return Split("Beats", X[:40], names[:40], X[40:], names[40:], "Synthetic.")


@pytest.fixture(scope="session")
def rows(task):
    return compare(task, FOUR, parameters=SETTINGS)
