"""Fig. 2: the linear network, reduced and as in the paper."""

from dataclasses import replace

import numpy as np
import pytest

from greenfold import optimize
from greenfold.apps.paper import fig2

from .conftest import compute, full


@pytest.mark.parametrize(
    "engine", ["scipy", pytest.param("nest", marks=pytest.mark.needs("nest"))]
)
def test_fig2a_simulated_within_one_per_cent(engine):
    p = replace(fig2.QUICK, n_neurons=30, fine=5)
    unfolding = fig2._unfolding(p)
    best = optimize(unfolding, fig2._stimuli(p, 0), p.eta).u
    # What NEST integrates does not depend on the projection; one is slow enough.
    for u in (best,) if engine == "nest" else (fig2._projections(p)[0], best):
        exact = fig2.analytical_curve(p, unfolding, u)
        simulated = np.array(fig2.simulated_curve(p, engine, u))
        assert np.abs(exact - simulated).max() <= 0.01 * np.ptp(exact)


def _check_fig2(numbers):
    for kind in ("random", "optimised"):
        assert numbers["single"][kind]["deviation_of_range"] <= 0.01
    average = numbers["average"]
    # Within the steps too, where κ is highest: not at whole times only.
    times = np.array(average["solved_times"])
    assert (times % 1 > 0).sum() == (times % 1 == 0).sum() == 10
    assert len(average["optimised"]) == len(times) == len(numbers["single"]["reoptimised"])
    # No random projection beats the optimum beyond what is left of its certificate.
    assert min(average["share_at_or_above_every_random"]) == 1
    assert max(average["gap_largest"]) < 0.12
    # The readout remembers: margins grow from the first to the last step.
    assert average["random"][-1] > 2 * average["random"][0]
    assert average["ratio"][-1] > 1.1
    middle = len(numbers["angle"]["radians"]) // 2
    curves = np.array(numbers["angle"]["readout_optimal"])
    assert (curves.argmax(1) == middle).all()


def test_fig2(tmp_path, monkeypatch):
    monkeypatch.setattr(fig2, "engine", lambda: "scipy")
    small = {"n_neurons": 30, "fine": 3, "n_stimuli": 1, "n_random": 6}
    p = replace(fig2.QUICK, **small, n_angles=7, n_planes=3, chunk=3)
    _check_fig2(compute(fig2, p, tmp_path))


@pytest.mark.slow
def test_fig2_in_full(tmp_path):
    _check_fig2(full(fig2, tmp_path))
