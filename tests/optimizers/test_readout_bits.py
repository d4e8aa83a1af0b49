"""Readouts of a few bits per weight, judged by exhaustive search."""

import itertools

import numpy as np
import pytest

from greenfold import AtMost, Device, GaussianStimuli, Reservoir, optimize, unfold
from greenfold.math.sphere import maximize_on_sphere

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


def tensor(n, seed, n_steps=4):
    network = unfold(Reservoir.random(n, rng=seed), n_steps=n_steps, dt=0.5)
    return network, GaussianStimuli.random(n_steps, rng=seed), network.greens1()


WEIGHTS = {1: [-1, 1], 2: [-1, 0, 1], 3: range(-3, 4)}


@pytest.mark.parametrize(
    ("n", "bits", "seed"), [(4, 1, 3), (4, 2, 5), (3, 3, 1), (6, 1, 2)]
)
def test_masks_and_readouts_of_few_bits_are_solved_together(n, bits, seed):
    """A mask with a free readout that is rounded afterwards lost nearly all of κ."""
    network, stimuli, G = tensor(n, seed)
    best = optimize(network, stimuli, ETA, device=Device(mask="sign", bits=bits), rng=0)
    U, V = _units(every([-1, 1], n)), _units(every(WEIGHTS[bits], n))
    a = np.einsum("koi,ui,vo->uvk", G, U, V, optimize=True).reshape(-1, len(stimuli.mu))
    truth = (a @ stimuli.mu - ETA / 2 * ((a @ stimuli.psi) * a).sum(1)).max()
    assert best.status == "exhaustive"
    assert best.message == "the best of all that the device allows"
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "bits", "k"), [(4, 1, None), (3, 3, None), (4, 2, 2), (5, 1, 3)]
)
def test_all_readouts_are_compared_each_with_its_best_input(n, bits, k):
    network, stimuli, G = tensor(n, 4)
    mask = None if k is None else AtMost(k)
    rng = None if k is None else 0
    best = optimize(network, stimuli, ETA, device=Device(mask=mask, bits=bits), rng=rng)
    truth = -np.inf
    for v in _units(every(WEIGHTS[bits], n)):
        L = np.einsum("koi,o->ki", G, v)
        for rows in itertools.combinations(range(n), k or n):
            own = L[:, rows]
            Q = own.T @ stimuli.psi @ own
            found = maximize_on_sphere(own.T @ stimuli.mu, ETA * (Q + Q.T) / 2)
            truth = max(truth, float(found.value))
    assert best.status == "exhaustive"
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)


def test_a_given_input_projection_does_not_claim_a_readout_that_was_rounded():
    network, stimuli, _ = tensor(4, 3)
    few = optimize(network, stimuli, ETA, device=Device(bits=2), u=np.ones(4))
    assert few.status == "exhaustive"
    assert "best readout that the device allows" in few.message
    many = optimize(network, stimuli, ETA, device=Device(bits=8), u=np.ones(4))
    assert many.status == "rounded"
    assert "best readout found with so few bits" in many.message


def test_a_million_readouts_are_compared_for_a_given_input_projection():
    """With a climb instead, better readouts of a few neurons were missed."""
    network, stimuli, G = tensor(4, 3)
    u = np.ones(4) / 2
    best = optimize(network, stimuli, ETA, device=Device(bits=5), u=u)
    a = _units(every(range(-15, 16), 4)) @ np.einsum("koi,i->ok", G, u)
    truth = (a @ stimuli.mu - ETA / 2 * ((a @ stimuli.psi) * a).sum(1)).max()
    assert best.status == "exhaustive"
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("mask", ["nonnegative", "levels=4", "box=-0.6,0.6"])
def test_masks_that_are_not_compared_promise_no_more_than_the_best_found(mask):
    network, stimuli, _ = tensor(5, 6)
    best = optimize(network, stimuli, ETA, device=Device(mask=mask, bits=2), rng=0)
    assert best.status == "rounded"
    assert best.message == "this is the best pair found with so few bits"
    assert np.isin(np.round(best.v / np.abs(best.v).max(), 9), [-1, 0, 1]).all()


def test_noise_counts_for_readouts_of_few_bits():
    network, stimuli, G = tensor(4, 2)
    P = np.diag([0.3, 0.0, 0.1, 0.5])
    best = optimize(network, stimuli, ETA, device=Device(bits=1, state_noise=P))
    truth = -np.inf
    for v in _units(every([-1, 1], 4)):
        L = np.einsum("koi,o->ki", G, v)
        Q = L.T @ stimuli.psi @ L
        found = maximize_on_sphere(L.T @ stimuli.mu, ETA * (Q + Q.T) / 2)
        truth = max(truth, float(found.value) - ETA / 2 * v @ P @ v)
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)


def _units(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
