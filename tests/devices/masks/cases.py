"""Small problems with masks, and a judge that never uses the maps of an optimiser."""

import itertools

import numpy as np

from greenfold import SampleStimuli, unfold
from greenfold.datasets import synthetic_heartbeats
from greenfold.math.sphere import maximize_on_sphere

from ...conftest import small

ETA = 10.0


def setting(n, n_steps=8, n_channels=1, seed=3):
    network = unfold(small(n=n, seed=seed), n_steps=n_steps, dt=0.5)
    X, y = synthetic_heartbeats(150, n_steps=n_steps * n_channels, rng=seed)
    return network, SampleStimuli(X.reshape(150, n_channels, n_steps), y)


def margins(network, stimuli, U):
    """The judge: max_v κ of many masks (m, n), from the tensor of Green's functions."""
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    R = np.einsum("noi,mi->mno", network.greens1(), U)
    M = np.einsum("mno,n->mo", R, stimuli.mu)
    S = np.einsum("mno,nk,mkp->mop", R, stimuli.psi, R, optimize=True)
    return maximize_on_sphere(M, ETA * (S + S.transpose(0, 2, 1)) / 2).value


def every(levels, n):
    """All masks of given levels but the zero one."""
    found = np.array(list(itertools.product(levels, repeat=n)))
    return found[found.any(1)]
