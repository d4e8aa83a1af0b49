"""A small linear network with stimuli, Gaussian and as series."""

import numpy as np
import pytest

from greenfold import GaussianStimuli, unfold

from ..conftest import small

DT = 0.4


@pytest.fixture
def setting():
    return unfold(small(n=8), n_steps=6, dt=DT), GaussianStimuli.random(6, rng=5)


@pytest.fixture
def samples(rng):
    labels = np.repeat([0, 1], 30)
    X = rng.standard_normal((60, 6)) + 0.7 * labels[:, None] * np.sin(np.arange(6))
    return X, labels
