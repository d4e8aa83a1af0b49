"""Small linear problems, and a judge of κ that never uses the optimiser's own maps."""

from typing import Any

import numpy as np
import pytest

from greenfold import GaussianStimuli, optimize, unfold

from ..conftest import small

ETA = 10.0
#: Name to (readout, n_channels); the readout is for five steps of 0.5.
SETTINGS = {
    "end": (None, 1),
    "inside a step": (1.7, 1),
    "weights": (np.array([0.0, 1.0, -0.5, 0.0, 2.0]), 1),
    "two channels": (None, 2),
    "two channels inside a step": (1.7, 2),
}
EVERY = pytest.mark.parametrize(
    ("readout", "n_channels"), SETTINGS.values(), ids=SETTINGS.keys()
)


def setting(readout=None, n_channels=1, n=4, n_steps=5, strength=1.0, seed=0):
    """A small network with Gaussian stimuli."""
    unfolding = unfold(small(n=n, seed=seed), n_steps=n_steps, dt=0.5)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    stimuli = GaussianStimuli.random(
        n_steps, strength=strength, n_channels=n_channels, rng=seed + 100
    )
    return unfolding, stimuli


def certify(*arguments, **options) -> Any:
    """`optimize`, for reading fields that only the convex method fills."""
    return optimize(*arguments, **options)


def kappa(unfolding, stimuli, u, v, eta=ETA):
    """The independent judge: κ from the tensor of Green's functions."""
    u = np.reshape(u, (unfolding.n_neurons, -1))
    a = np.einsum("i,nip,pc->cn", v, unfolding.greens1(), u).ravel()
    return a @ stimuli.mu - eta / 2 * a @ stimuli.psi @ a
