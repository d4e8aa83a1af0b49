"""Table 1 of the paper, linear network: soft margins on ECG5000, with a certificate.

N = 100, τ = 0.25, g = 0.9, η = 10, T = 10, 354 training heartbeats of 140 steps, 20
networks, 50 random input projections each. The paper: κ random 0.182 ± 0.015, κ optimised
0.383 ± 0.026, ‖μ‖²/√(μᵀψμ) = 2.6; the ± are standard deviations.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from greenfold import Reservoir, SampleStimuli, optimize, unfold
from greenfold.datasets import ecg5000_paper

N_NEURONS, TAU, G, ETA, T = 100, 0.25, 0.9, 10.0, 10.0
RANDOM, RANDOM_SPREAD = 0.182, 0.015
OPTIMISED, OPTIMISED_SPREAD = 0.383, 0.026


@pytest.fixture(scope="module")
def stimuli(data_dir):
    task = ecg5000_paper(data_dir)
    return SampleStimuli(task.X_train, task.y_train)


@cache
def network(seed):
    """One draw of N(0, g²/N), taken as it comes: some are slightly unstable over T."""
    reservoir = Reservoir.random(N_NEURONS, g=G, tau=TAU, rng=seed, allow_unstable=True)
    return unfold(reservoir, n_steps=140, dt=T / 140)


def certified(seed, stimuli) -> Any:
    """The optimum of one network; this method always gives a bound."""
    return optimize(network(seed), stimuli, ETA)


def at_random(seed, stimuli):
    """κ of 50 random u, from a stream of their own: not the one that drew the weights."""
    rng = np.random.default_rng([seed, 1])
    return optimize(network(seed), stimuli, ETA, "random", n_starts=50, rng=rng).starts


def test_separability(stimuli):
    assert stimuli.separability == pytest.approx(2.64, abs=0.01)
    assert np.linalg.norm(stimuli.mu) == pytest.approx(1, rel=1e-12)


def test_four_networks(stimuli):
    found = [certified(seed, stimuli) for seed in range(4)]
    assert [one.status for one in found] == ["certified"] * 4
    assert max(one.gap for one in found) <= 1e-3
    # Three standard errors of the mean over four networks. The paper's spread of random
    # projections is over networks and projections together, so this is the widest reading.
    optimised = np.mean([one.soft_margin for one in found])
    assert optimised == pytest.approx(OPTIMISED, abs=3 * OPTIMISED_SPREAD / np.sqrt(4))
    drawn = [at_random(seed, stimuli) for seed in range(4)]
    assert np.mean(drawn) == pytest.approx(RANDOM, abs=3 * RANDOM_SPREAD / np.sqrt(4))
    assert all(
        values.max() < one.soft_margin for values, one in zip(drawn, found, strict=True)
    )


@pytest.mark.slow
def test_table_1_linear(stimuli):
    found = [certified(seed, stimuli) for seed in range(20)]
    drawn = np.array([at_random(seed, stimuli) for seed in range(20)])
    optimised = np.array([one.soft_margin for one in found])
    # The means are to agree within 0.01; their standard errors are 0.006 (optimised,
    # 0.026/√20) and 0.003 (random).
    assert drawn.mean() == pytest.approx(RANDOM, abs=0.01)
    assert optimised.mean() == pytest.approx(OPTIMISED, abs=0.01)
    # The spreads too, within a third: 1/√(2·19) = 16 % is the standard error of one.
    assert optimised.std(ddof=1) == pytest.approx(OPTIMISED_SPREAD, rel=1 / 3)
    assert drawn.std(ddof=1) == pytest.approx(RANDOM_SPREAD, rel=1 / 3)
    assert max(one.gap for one in found) <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_alternation_never_rises_above_the_bound(stimuli, seed):
    best = certified(seed, stimuli)
    rounds = optimize(
        network(seed),
        stimuli,
        ETA,
        "alternating",
        n_starts=10,
        rng=np.random.default_rng([seed, 2]),
    )
    assert rounds.starts.max() <= best.upper_bound * (1 + 1e-9)
    # Most starts come close: it is the same problem that both solve.
    assert rounds.starts.max() >= 0.999 * best.upper_bound
