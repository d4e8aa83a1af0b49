"""The paper's alternation for a linear network."""

import numpy as np
import pytest

from greenfold import Alternating, optimize

from .linear_cases import ETA, setting
from .nonlinear_cases import setting as nonlinear_setting


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


@pytest.mark.parametrize("order", [0, 1])
def test_screening_continues_with_the_best_start_alone(order):
    unfolding, stimuli = setting(n=6, n_steps=8) if order == 0 else nonlinear_setting(n=5)
    rounds = {"n_starts": 3, "rounds": 8, "tol": 1e-12}
    few, all_, screened = (
        optimize(unfolding, stimuli, ETA, Alternating(**one), rng=0)
        for one in (rounds | {"rounds": 2}, rounds, rounds | {"screen": 2})
    )
    best = int(np.argmax(few.starts))
    assert screened.starts[-1] == screened.soft_margin >= few.starts[best]
    assert screened.starts[-1] == pytest.approx(all_.starts[best], rel=1e-14)
    # The other starts ended after two rounds.
    np.testing.assert_array_equal(screened.starts[:-1], np.delete(few.starts, best))


def test_screening_is_refused_where_it_has_no_effect():
    with pytest.raises(ValueError, match="`screen` has no effect with a single start"):
        Alternating(n_starts=1, screen=3)
    with pytest.raises(ValueError, match="`screen` must be less than `rounds` = 5; got 5"):
        Alternating(rounds=5, screen=5)
    with pytest.raises(TypeError, match="`screen`.*integer"):
        Alternating(screen=2.0)  # pyright: ignore
