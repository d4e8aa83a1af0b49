"""Moments of the states of a linear network, against its states and against sampling."""

import numpy as np
import pytest

from greenfold import GaussianStimuli, Reservoir, SampleStimuli, unfold
from greenfold.math.margins import state_moments

from ..conftest import small, unit


@pytest.mark.parametrize(
    ("mu", "psi", "expected"),
    [
        ([3.0, 0.0], np.diag([4.0, 9.0]), 1.5),
        ([0.0, 2.0], np.diag([4.0, 9.0]), 4 / 6),
        ([1.0, 0.0], np.diag([0.0, 1.0]), np.inf),
        ([0.0, 0.0], np.eye(2), 0.0),
    ],
)
def test_separability(mu, psi, expected):
    assert GaussianStimuli(mu, psi).separability == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("readout", [None, 0.7, "weights"])
def test_state_moments_are_those_of_the_states(data, readout, class_weight, rng):
    X, labels = data
    unfolding = unfold(small(), n_steps=4, dt=0.5)
    if readout is not None:
        value = np.array([1.0, -0.5, 0, 2.0]) if readout == "weights" else readout
        unfolding = unfolding.with_readout(value)
    u = unit(rng, 12, 2)
    stimuli = SampleStimuli(X, labels, class_weight=class_weight)
    M, Sigma = stimuli.moments(unfolding, u)
    states = unfolding.states(stimuli.series, u)
    assert stimuli.signs is not None
    expected = state_moments(states, stimuli.signs, stimuli.case_weights)
    assert pytest.approx(expected[0], rel=1e-11, abs=1e-13) == M
    assert pytest.approx(expected[1], rel=1e-11, abs=1e-13) == Sigma


def test_gaussian_state_moments_against_sampling(rng):
    unfolding = unfold(small(n=4), n_steps=3, dt=0.5)
    stimuli, u = GaussianStimuli.random(3, rng=0), unit(rng, 4)
    n = 50_000
    X, labels = stimuli.sample(n, rng=1)
    M, Sigma = stimuli.moments(unfolding, u)
    found = state_moments(unfolding.states(X, u), labels)
    spread = np.sqrt(np.diag(Sigma))
    # Five standard errors, as for the stimuli; the fourth moment of a mixture of two
    # Gaussians is at most three times (2.2/0.3)² … a factor 3 covers it.
    assert (np.abs(found[0] - M) < 5 * spread / np.sqrt(2 * n)).all()
    assert (np.abs(found[1] - Sigma) < 15 * np.outer(spread, spread) / np.sqrt(2 * n)).all()


X4, Y4 = np.arange(12.0).reshape(4, 3) ** 2, [0, 0, 1, 1]


def test_moments_name_bad_input():
    stimuli = SampleStimuli(X4, Y4)
    unfolding = unfold(Reservoir.random(5, g=0.5, rng=0), n_steps=3, dt=0.5)
    with pytest.raises(ValueError, match="4 steps.*made for 3.*n_steps=4"):
        GaussianStimuli.random(4, rng=0).moments(unfolding, np.ones(5))
    with pytest.raises(ValueError, match=r"`u`.*5 rows.*\(4,\)"):
        stimuli.moments(unfolding, np.ones(4))
    with pytest.raises(ValueError, match=r"`u`.*\(5, 1\).*2 column"):
        stimuli.moments(unfolding, np.ones((5, 2)))
    with pytest.raises(ValueError, match="`n_per_class`.*at least 1"):
        GaussianStimuli.random(4, rng=0).sample(0)
