"""Arguments of unfoldings and simulations that would have no effect are refused."""

import numpy as np
import pytest

from greenfold import EchoStateNetwork, Gain, Reservoir, simulate, unfold

LINEAR = Reservoir.random(4, rng=0)
BENT = Reservoir(LINEAR.weights, gain=Gain.quadratic(0.1))
LEAKY = EchoStateNetwork.random(8, connectivity=1.0, rng=0)
X = np.ones((1, 3))
GRID = {"n_steps": 3, "dt": 0.5}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: unfold(LINEAR, **GRID, order=3), "`order` has no effect for a linear"),
        (lambda: unfold(BENT, **GRID, tol=1e-8), "`tol` has no effect at order 0"),
        (lambda: unfold(LEAKY, n_steps=3, tol=1e-8), "`tol` has no effect at order 0"),
        (lambda: unfold(LEAKY, n_steps=3, order=1), "`order` = 1 is not available"),
        (lambda: unfold(BENT, **GRID, order=1).at_order(0, tol=1e-8), "`tol` has no"),
        (lambda: unfold(BENT, **GRID, readout=True), "`readout` must be a time"),
        (lambda: simulate(BENT, X, np.ones(4), 0.5, resolution=0.1), "`resolution` has"),
        (lambda: simulate(BENT, X, np.ones(4), 0.5, "nest", rtol=1e-8), "`rtol` has no"),
        (lambda: simulate(LEAKY, X, np.ones(8), rtol=1e-8), "`rtol` has no effect"),
        (lambda: simulate(LEAKY, X, np.ones(8), 0.5), "`dt` has no effect in discrete"),
    ],
)
def test_an_argument_without_effect_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
