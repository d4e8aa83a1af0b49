"""Small networks at a strong non-linearity, for moments beyond the linear order."""

import numpy as np
import pytest

from greenfold import Gain, GaussianStimuli, unfold

from ..conftest import small

#: Readouts of five steps of 0.5, at the end of a step.
READOUTS = {
    "end": None,
    "early": 1.5,
    "weights": np.array([0.0, 1.0, -0.5, 0.0, 2.0]),
}
EVERY_READOUT = pytest.mark.parametrize("readout", READOUTS.values(), ids=READOUTS.keys())
CHANNELS = pytest.mark.parametrize("n_channels", [1, 2])


def setting(order=1, n_channels=1, readout=None, alpha=0.2, n=8, gain=None):
    """A small network at a strong non-linearity, with Gaussian stimuli of five steps."""
    reservoir = small(gain or Gain.quadratic(alpha), n=n)
    unfolding = unfold(reservoir, n_steps=5, dt=0.5, order=order)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    return unfolding, GaussianStimuli.random(5, n_channels=n_channels, rng=1)


def square(kernel):
    """C as a matrix over flat (channel, step) indices."""
    assert kernel.quadratic is not None
    return kernel.quadratic.reshape(kernel.linear.size, -1)
