"""What a regression task predicts for new series."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Ascent, Dynamics, Gain, RegressionTask, Reservoir, optimize, unfold


@pytest.mark.parametrize(
    ("kind", "method"), [(unfold, None), (Dynamics, Ascent(n_starts=1, max_evaluations=30))]
)
def test_projections_of_a_regression_predict(kind, method):
    """In the linear order, and through the network."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 2, 8)) + 1.0
    y = X[:, 0, -2] - 0.5 * X[:, 1, -4] + 3.0
    network = Reservoir.random(8, 0.5, gain=Gain.tanh(), rng=0)
    task = RegressionTask.from_cases(X[:150], y[:150], ridge=1e-6)
    system = kind(network, n_steps=8, dt=0.1)
    found = optimize(system, task, method=method, rng=None if method else 0)
    told = task.predict(system, found, X)[:, 0]
    # The loss that is claimed is that of the training series, plus the penalty.
    loss = np.mean((told[:150] - y[:150]) ** 2) + 1e-6 * (found.V**2).sum()
    assert loss == pytest.approx(found.loss, rel=1e-6)
    assert np.mean((told[150:] - y[150:]) ** 2) < 0.7 * y.var()
