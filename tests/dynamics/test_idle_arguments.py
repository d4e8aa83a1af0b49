"""Arguments of `Dynamics` that would have no effect are refused."""

import numpy as np
import pytest

from greenfold import Dynamics, EchoStateNetwork

LEAKY = EchoStateNetwork.random(8, connectivity=1.0, rng=0)
X, U = np.ones((1, 3)), np.ones(8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dynamics(LEAKY, n_steps=3, tol=1e-4), "`tol` has no effect in discrete"),
        (lambda: Dynamics(LEAKY, n_steps=3).states(X, U, n_sub=2), "`n_sub` must be 1"),
        (lambda: Dynamics(LEAKY, n_steps=3, readout=True), "`readout` must be a time"),
    ],
)
def test_an_argument_without_effect_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
