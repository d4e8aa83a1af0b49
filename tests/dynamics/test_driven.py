"""A driven network step by step, against `Dynamics` and a plain loop."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse

from greenfold import Dynamics, EchoStateNetwork, Gain, Reservoir
from greenfold.dynamics.integration import DrivenNetwork
from greenfold.unfolding.sparse import Product

RNG = np.random.default_rng(0)


def weights(network, n_channels=2):
    rng = np.random.default_rng(3)
    return rng.normal(size=(network.n_neurons, n_channels)), rng.normal(
        size=network.n_neurons
    )


@pytest.mark.parametrize("n_neurons", [20, 120, 320])
def test_echo_state_is_a_plain_loop(n_neurons):
    network = EchoStateNetwork.random(n_neurons, leak=0.4, connectivity=0.05, rng=0)
    U, b = weights(network)
    driven = DrivenNetwork(network, U, b)
    step: Any = driven._step
    assert isinstance(step.W, Product) == (n_neurons > 100)
    assert issparse(driven._weights) == (n_neurons > 300)
    x = RNG.normal(size=(50, 2))
    y, rows = np.full(n_neurons, 0.1), []
    for now in x:
        y = 0.6 * y + 0.4 * np.tanh(network.weights @ y + U @ now + b)
        rows.append(y)
    found = driven.run(x, np.full(n_neurons, 0.1))
    # Rounding of sums over neurons.
    assert found == pytest.approx(np.array(rows), abs=1e-12)
    lanes = driven.advance(np.full((3, n_neurons), 0.1), np.repeat(x[:1], 3, axis=0))
    assert lanes == pytest.approx(np.repeat(found[:1], 3, axis=0), abs=1e-12)


def test_continuous_time_is_that_of_dynamics():
    network = Reservoir.random(15, g=0.8, tau=0.5, gain=Gain.tanh(), rng=0)
    U, b = weights(network)
    x = RNG.normal(size=(12, 2))
    X = np.column_stack([x, np.ones(12)]).T[None]
    dynamics = Dynamics(network, n_steps=12, dt=0.7)
    wanted = dynamics.states(X, np.column_stack([U, b]), trajectories=True)[0]
    assert dynamics.step_error is not None
    n_sub = dynamics.step_error.n_sub
    found = DrivenNetwork(network, U, b, 0.7, n_sub).run(x, np.zeros(15))
    assert found == pytest.approx(wanted, abs=1e-12)


def test_a_run_can_be_cut():
    network = EchoStateNetwork.random(20, rng=0)
    driven = DrivenNetwork(network, *weights(network))
    x = RNG.normal(size=(9000, 2))
    whole = driven.run(x, np.zeros(20))
    first = driven.run(x[:4500], np.zeros(20))
    second = driven.run(x[4500:], first[-1])
    assert np.array_equal(whole, np.concatenate([first, second]))


@pytest.mark.parametrize("leak", [0.1, 0.5, 1.0])
def test_memory_is_what_a_washout_takes(leak):
    """Networks from rest and from far away agree after the memory, and not before."""
    network = EchoStateNetwork.random(30, leak=leak, rng=1, spectral_radius=0.8)
    driven = DrivenNetwork(network, *weights(network))
    x = RNG.normal(size=(800, 2))
    steps = driven.memory(x)
    true = driven.run(x, np.zeros(30))
    for begin in (300, 350, 390):
        late = driven.run(x[begin : begin + steps], np.zeros(30))
        apart = late[-1] - true[begin + steps - 1]
        # The mean over many places was below 1e-5; a single one scatters.
        assert np.sqrt((apart**2).mean()) < 1e-4 * true.std()
    early = driven.run(x[300 : 300 + steps // 2], np.zeros(30))
    assert np.abs(early[-1] - true[300 + steps // 2 - 1]).max() > 1e-4 * true.std()


def test_memory_that_never_ends_is_half_of_the_series():
    network = EchoStateNetwork(
        np.eye(3), leak=0.01, gain=Gain.linear(), allow_unstable=True
    )
    driven = DrivenNetwork(network, *weights(network))
    assert driven.memory(RNG.normal(size=(100, 2))) == 50


@pytest.mark.parametrize(
    "network",
    [
        EchoStateNetwork.random(12, leak=0.3, bias=0.2, rng=0),
        Reservoir.random(12, g=0.8, tau=2.0, gain=Gain.tanh(), rng=0),
    ],
    ids=["discrete", "continuous"],
)
def test_tangents_are_differences_of_states(network):
    """Central differences of a step: their error is h² times a third derivative."""
    rng = np.random.default_rng(1)
    driven = DrivenNetwork(
        network, rng.standard_normal((12, 2)), rng.standard_normal(12), n_sub=2
    )
    y, x = rng.standard_normal(12), rng.standard_normal(2)
    dy, dx = rng.standard_normal((5, 12)), rng.standard_normal((5, 2))
    ahead, found = driven.advance_tangents(y, x, dy, dx)
    assert np.allclose(ahead, driven.advance(y[None], x[None])[0], rtol=1e-13)
    h = 1e-5
    plus = driven.advance(y + h * dy, x + h * dx)
    wanted = (plus - driven.advance(y - h * dy, x - h * dx)) / (2 * h)
    assert np.abs(found - wanted).max() < 1e-8 * np.abs(wanted).max()


def test_the_last_inputs_are_part_of_the_state():
    network = EchoStateNetwork.random(9, rng=0)
    U, b = weights(network)
    plain, driven = DrivenNetwork(network, U, b), DrivenNetwork(network, U, b, n_seen=3)
    x = RNG.normal(size=(30, 2))
    found = driven.run(x, driven.rest())
    assert found.shape == (30, driven.n_states) == (30, 15)
    assert np.array_equal(found[:, :9], plain.run(x, plain.rest()))
    for lag in range(3):
        seen = found[:, 9 + 2 * lag : 11 + 2 * lag]
        assert np.array_equal(seen[lag:], x[: 30 - lag])
        assert not seen[:lag].any()
    assert np.array_equal(driven.run(x[12:], found[11]), found[12:])
    assert driven.advance(found[10:12], x[11:13]) == pytest.approx(found[11:13], abs=1e-12)
    assert driven.memory(RNG.normal(size=(200, 2))) >= 3
