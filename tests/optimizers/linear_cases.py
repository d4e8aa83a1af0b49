"""Small linear problems, and judges that never use the optimiser's own maps."""

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


def relaxed_optimum(unfolding, stimuli, n_iter=4000, eta=ETA):
    """max κ over the nuclear-norm ball, by accelerated projected gradients.

    What it returns is attained there, so that no valid bound lies below it. It shares
    nothing with the search it judges: no atoms, no duality, the tensor of Green's
    functions instead of sweeps. It ends where a step moves no entry by 1e-8, which leaves
    far less than the 1e-4 to which bounds are held.
    """
    tensor, channels = unfolding.greens1(), np.eye(stimuli.n_channels)
    kernels = np.einsum("nip,cd->cnidp", tensor, channels)
    kernels = kernels.reshape(len(stimuli.mu), -1)
    shape = (unfolding.n_neurons, unfolding.n_neurons * stimuli.n_channels)
    curvature = eta * np.linalg.norm(kernels.T @ stimuli.psi @ kernels, 2)
    X = ahead = np.zeros(shape)
    momentum = 1.0
    for _ in range(n_iter):
        d = stimuli.mu - eta * stimuli.psi @ (kernels @ ahead.ravel())
        new = project(ahead + (d @ kernels).reshape(shape) / curvature)
        if np.vdot(ahead - new, new - X) > 0:  # the momentum points down: start it anew
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, change = new + (momentum - 1) / faster * (new - X), np.abs(new - X).max()
        X, momentum = new, faster
        if change < 1e-8:
            break
    a = kernels @ X.ravel()
    return a @ stimuli.mu - eta / 2 * a @ stimuli.psi @ a


def project(X):
    """The nearest matrix whose singular values add to at most one."""
    left, values, right = np.linalg.svd(X, full_matrices=False)
    if values.sum() > 1:
        excess = (np.cumsum(values) - 1) / np.arange(1, len(values) + 1)
        values = np.maximum(values - excess[values > excess][-1], 0)
    return (left * values) @ right
