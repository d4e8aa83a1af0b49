"""Readouts of a few bits per weight, judged by exhaustive search."""

import numpy as np
import pytest

from greenfold import Device, optimize

from ..devices.masks.cases import ETA, every, setting


def test_quantised_readouts_equal_exhaustive_search():
    network, stimuli = setting(6)
    u = np.random.default_rng(0).standard_normal(6)
    best = optimize(network, stimuli, ETA, device=Device(bits=3), u=u)
    G = network.greens1()
    a = np.einsum("noi,i,mo->mn", G, u / np.linalg.norm(u), _units(every(range(-3, 4), 6)))
    truth = (a @ stimuli.mu - ETA / 2 * ((a @ stimuli.psi) * a).sum(1)).max()
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)
    free = optimize(network, stimuli, ETA, device=Device(bits=3))
    assert free.soft_margin > best.soft_margin
    shares = [
        optimize(network, stimuli, ETA, device=Device(bits=b)).share or 0
        for b in (1, 2, 4, 8)
    ]
    assert sorted(shares) == shares
    assert shares[-1] > 0.9999


def _units(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
