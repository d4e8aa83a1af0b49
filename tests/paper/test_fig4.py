"""Fig. 4: states on ECG5000, reduced and as in the paper."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from greenfold.paper import fig4

from .conftest import compute, full


def test_fig4(tmp_path, heartbeats):
    p = replace(fig4.QUICK, n_random=3, n_test=120)
    numbers = compute(fig4, p, tmp_path, heartbeats)
    best, optimised = numbers["optimum"], numbers["optimised"]
    assert best["kappa"] == pytest.approx(0.384, abs=3 * 0.026)
    assert optimised["state_error"] < 2e-3
    assert optimised["accuracy"] >= max(numbers["random_accuracy"]) - 1e-9
    history = np.array(best["history"])
    kappa = history[:, 0] - history[:, 1]
    assert len(kappa) == 11
    assert (np.diff(kappa) >= -1e-12).all()
    assert 0.9 * best["bound"] < kappa[-1] <= best["bound"] * (1 + 1e-9)
    # Distinguishable only shortly before the readout.
    over_time = np.array(best["separation"]) - np.array(best["variance"])
    assert over_time[-1] == over_time.max() == pytest.approx(best["kappa"], rel=1e-6)


@pytest.mark.slow
def test_fig4_in_full(tmp_path, data_dir):
    assert full(fig4, tmp_path, data_dir)
