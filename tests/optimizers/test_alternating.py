"""The paper's alternation for a linear network."""

import numpy as np

from greenfold import Alternating, optimize

from .linear_cases import ETA, setting


def test_alternation_rises_and_saturates():
    unfolding, stimuli = setting(n=6, n_steps=8)
    short = optimize(unfolding, stimuli, ETA, Alternating(n_starts=2, rounds=3), rng=0)
    assert short.status == "max_iterations"
    assert short.n_iter == 3
    long = optimize(unfolding, stimuli, ETA, Alternating(n_starts=2, tol=1e-4), rng=0)
    assert long.status == "converged"
    values = long.history[:, 0] - long.history[:, 1]
    # It stops at the first round that gains less than tol, and not before.
    gains = np.diff(values) / values[1:]
    assert gains[-1] <= 1e-4
    assert (gains[:-1] > 1e-4).all()
