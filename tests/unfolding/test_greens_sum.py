"""The weighted sum of Green's functions against the tensor that it never forms."""

import numpy as np
import pytest

from greenfold import Gain, Reservoir, unfold
from greenfold.unfolding.greens_sum import GreensPowers

from ..conftest import small


def summed(unfolding, d):
    return unfolding.response_sum(d[None]).matrix()


READOUTS = {
    "end": None,
    "first step": 0.4,
    "middle": 2.0,
    "inside the first step": 0.15,
    "inside a later step": 1.5,
    "inside the last step": 3.5,
    "one late weight": np.eye(1, 9, 6)[0],
    "weights": np.linspace(-1, 2, 9),
    "weights with gaps": np.array([0, 1.0, 0, 0, -2.0, 0, 0.5, 0, 0]),
}


@pytest.mark.parametrize("readout", READOUTS.values(), ids=READOUTS.keys())
def test_equals_the_tensor(readout, rng):
    unfolding = unfold(small(n=7), n_steps=9, dt=0.4)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    tensor = unfolding.greens1()
    for d in (rng.standard_normal(9), np.eye(1, 9)[0], np.eye(1, 9, 8)[0], np.zeros(9)):
        expected = np.einsum("n,nip->ip", d, tensor)
        # The same powers of one propagator, multiplied in another order.
        assert summed(unfolding, d) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert np.abs(tensor).max() > 1e-3


@pytest.mark.parametrize("n_steps", [1, 2, 3, 4, 5, 8, 16, 17, 25, 26])
def test_every_length_around_a_square(n_steps, rng):
    """The scheme cuts K into blocks of about √K; no remainder may be lost."""
    unfolding = unfold(small(n=4), n_steps=n_steps, dt=0.3)
    d = rng.standard_normal(n_steps)
    expected = np.einsum("n,nip->ip", d, unfolding.greens1())
    assert summed(unfolding, d) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("readout", [None, 30.0, 35.0])
def test_several_panels_in_a_step(readout, rng):
    """At order 1 long steps are cut into panels, which the linear part shares."""
    unfolding = unfold(small(Gain.quadratic(0.1), n=5), n_steps=4, dt=10.0, order=1)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    assert unfolding._n_panels > 1
    d = rng.standard_normal(4)
    expected = np.einsum("n,nip->ip", d, unfolding.greens1())
    assert summed(unfolding, d) == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_applied_to_u_it_is_the_state(rng):
    """The independent judge: G(x) u is the state of the network driven by x."""
    unfolding = unfold(small(), n_steps=6, dt=0.5)
    x, u = rng.standard_normal(6), rng.standard_normal(12)
    state = unfolding.states(x[None], u)[0]
    assert summed(unfolding, x) @ u == pytest.approx(state, rel=1e-12, abs=1e-14)


def test_memory_is_counted_before_it_is_taken():
    unfolding = unfold(Reservoir.random(50, rng=0), n_steps=140, dt=0.1)
    greens = GreensPowers(unfolding._schedule)
    greens.weighted(np.ones(140))
    held = sum(power.nbytes for power in greens._powers)
    assert held <= greens.n_bytes <= 1.5 * held
    assert len(greens._powers) < 2 * np.sqrt(140)
