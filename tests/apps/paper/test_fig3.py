"""Fig. 3 of the paper: artificial stimuli that differ in their second moments.

N = 100, τ = 0.25, g = 0.9, η = 10, α = 0.05, ten steps of 1; class covariances ψ ± χ with
eigenvalues in [0.3, 2.2]; ‖μ‖ between 0.19 and 1.0. Linear optima are bounded from above
and the non-linear ones compared with that bound.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from greenfold import Ascent, Convex, Gain, GaussianStimuli, Reservoir, optimize, unfold
from greenfold.apps.paper import fig3
from greenfold.optimizers.linear import LinearProblem
from greenfold.optimizers.nonlinear import NonlinearProblem

from ...conftest import unit
from .conftest import OF_A_BOUND, assert_as_recorded, compute, record, some_of

ETA = 10.0
STRENGTHS = (0.19, 0.30, 0.52, 0.76, 1.0)


#: Some optima drive slow modes so strongly that the expansion is not trusted there. That
#: is a finding of its own, reported by the benchmark.
pytestmark = pytest.mark.filterwarnings("ignore::greenfold.ExpansionWarning")


@cache
def network(seed):
    reservoir = Reservoir.random(100, g=0.9, tau=0.25, gain=Gain.quadratic(0.05), rng=seed)
    return unfold(reservoir, n_steps=10, dt=1.0, order=1)


def stimuli(seed, strength):
    return GaussianStimuli.random(10, strength=strength, rng=100 + seed)


def check_optimum(seed, strength, n_starts=None):
    classes = stimuli(seed, strength)
    # The bound, not the value: what no linear projections can reach.
    linear = optimize(network(seed).at_order(0), classes, ETA, Convex(gap=1e-3))
    assert linear.upper_bound is not None
    found = optimize(network(seed), classes, ETA, Ascent(n_starts, tol=1e-6))
    assert found.soft_margin > linear.upper_bound
    if strength == STRENGTHS[0]:
        assert found.soft_margin >= 3 * linear.upper_bound
    assert found.validity is not None


def test_random_projections_lie_along_the_diagonal():
    """Linear and non-linear κ at the same random u, over all strengths."""
    unfolding, pairs = network(0), []
    rng = np.random.default_rng(9)
    for strength in STRENGTHS:
        classes = stimuli(0, strength)
        problems = [
            LinearProblem(unfolding.linear.maps, classes, ETA),
            NonlinearProblem(unfolding, classes, ETA),
        ]
        for _ in range(4):
            u = unit(rng, 100, 1)
            pairs.append([problem.best_readout(u)[1].value for problem in problems])
    linear, nonlinear = np.log(np.transpose(pairs))
    # κ spans a factor of 27 in ‖μ‖²; the diagonal holds to some tens of per cent, as in
    # the paper's figure, and less well where κ rests on the second moments alone.
    assert np.corrcoef(linear, nonlinear)[0, 1] > 0.95
    assert abs(np.median(nonlinear - linear)) < np.log(1.3)


@pytest.mark.slow
@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("seed", range(5))
def test_five_networks(seed, strength):
    check_optimum(seed, strength, n_starts=2)


def _check_fig3(numbers):
    found = numbers["responses"]
    assert found["error_first_order"] < found["error_linear"] / 4
    assert max(found["eigenvalue_simulated"]) < 1
    for one in numbers["soft_margins"]:
        # The ordering at every ‖μ‖: non-linear above linear, optimised above random.
        assert one["nonlinear"] > one["linear_bound"]
        # Both may be the optimum, to rounding.
        assert one["linear_bound"] >= max(one["random_linear"]) * (1 - 1e-9)
        assert one["nonlinear"] > max(one["random_nonlinear"])
        assert one["nonlinear"] >= one["nonlinear_at_linear_u"]
        # Without a difference of the covariances, nothing is gained.
        equal = one["equal"]["nonlinear"]
        assert equal <= one["linear_bound"] * (1 + 1e-9)
        if one["equal"]["validity"]["trustworthy"]:
            assert equal > 0.99 * one["linear"]
        parts = one["parts"]
        gained = parts["mean_linear"] + parts["mean_bilinear"]
        kinds = ("linear", "mixed", "bilinear")
        lost = sum(parts[f"variance_{kind}"] for kind in kinds)
        assert gained - lost == pytest.approx(one["nonlinear"], abs=1e-12)
    by_network = {}
    for one in numbers["soft_margins"]:
        by_network.setdefault(one["network"], []).append(one["ratio"])
    for ratios in by_network.values():
        # The relative gain shrinks with the linear separability.
        assert ratios[0] > 2
        assert ratios[0] > ratios[-1]
        assert ratios[-1] < 1.5


def test_fig3(tmp_path):
    p = replace(fig3.QUICK, n_neurons=25, n_steps=5, n_random=3, n_simulated=20, fine=3)
    _check_fig3(compute(fig3, p, tmp_path))


def test_fig3_as_recorded():
    numbers = record("fig3")
    assert len(numbers["soft_margins"]) == 25
    _check_fig3(numbers)


ITEMS = [(n, s) for n in range(fig3.FULL.n_networks) for s in fig3.FULL.strengths]


#: An ascent ends where κ rises too slowly, which may be anywhere on a ridge. All that
#: follows from u is left out.
OF_AN_ASCENT: dict = {name: {"rel": 1e-3} for name in ("nonlinear", "ratio")}
OF_AN_ASCENT |= dict.fromkeys(("nonlinear_simulated", "parts", "validity"))


@pytest.mark.slow
def test_responses_of_fig3_at_full_size():
    assert_as_recorded(fig3.responses(fig3.FULL), record("fig3")["responses"])


@pytest.mark.slow
@pytest.mark.parametrize("item", some_of(ITEMS, (0, 0.19), (2, 0.52), (4, 1.0)))
def test_one_soft_margin_of_fig3_at_full_size(item):
    p, recorded = fig3.FULL, record("fig3")["soft_margins"][ITEMS.index(item)]
    found = fig3.soft_margins(p, item)
    # A linear network does not tell (u, v) from (−u, −v), and which is found is rounding;
    # the non-linear one does tell.
    unfolding, classes = fig3._unfolding(p, item[0]), fig3._stimuli(p, *item)
    u = optimize(unfolding.linear, classes, p.eta).u
    either = [optimize(unfolding, classes, p.eta, u=s * u).soft_margin for s in (1, -1)]
    assert found["nonlinear_at_linear_u"] == pytest.approx(either[0], rel=1e-9)
    wanted = recorded["nonlinear_at_linear_u"]
    found["nonlinear_at_linear_u"] = min(either, key=lambda value: abs(value - wanted))
    assert_as_recorded(found, recorded, OF_A_BOUND | OF_AN_ASCENT)
