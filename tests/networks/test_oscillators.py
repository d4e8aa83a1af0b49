"""Damped oscillators: modes as chosen, and every way through the network agrees."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Dynamics, Gain, Reservoir, load, simulate, unfold


@pytest.mark.parametrize("tau", [None, 0.3, 5.0])
def test_a_simulated_oscillator_decays_and_turns_as_asked(tau):
    T, omega = np.array([3.0, 8.0, 20.0]), np.array([0.9, 0.0, 2.5])
    network = Reservoir.oscillators(T, omega, tau)
    # One step of input, then silence: after it, every pair is a decaying rotation.
    dt, n_steps = 0.2, 40
    x = np.zeros((1, n_steps))
    x[0, 0] = 1.0
    u = np.tile([1.0, 0.0], 3)
    states = simulate(network, x, u, dt, trajectories=True)[0]
    pairs = states[:, 0::2] + 1j * states[:, 1::2]
    factor = pairs[1:] / pairs[:-1]
    # The solver's relative tolerance is 1e-10 a step, on states that shrink 14-fold.
    np.testing.assert_allclose(-dt / np.log(np.abs(factor)), np.tile(T, (39, 1)), rtol=1e-7)
    turned = np.exp(1j * omega * dt)
    np.testing.assert_allclose(factor / np.abs(factor), np.tile(turned, (39, 1)), atol=1e-8)


@pytest.mark.parametrize("slope", [None, 1.0, 0.5])
def test_modes_are_those_that_were_chosen(rng, slope):
    T, omega = rng.uniform(1, 9, 5), rng.uniform(0.1, 3, 5)
    gain = None if slope is None else Gain.polynomial([0, slope, 0.01])
    network = Reservoir.oscillators(T, omega, gain=gain)
    modes = network.modes()
    order = np.argsort(-T)
    # Eigenvalues of a normal matrix, to rounding.
    np.testing.assert_allclose(modes.time_constants[0::2], T[order], rtol=1e-12)
    turns = np.abs(modes.eigenvalues.imag) / network.tau
    np.testing.assert_allclose(turns[1::2], omega[order], rtol=1e-12)
    assert network.is_stable


def test_default_time_constant_leaves_no_self_inhibition():
    network = Reservoir.oscillators([2.0, 5.0], [1.0, 1.0])
    assert network.tau == 2
    assert (np.diag(network.weights) >= 0).all()


def test_unfolding_integration_and_ode_solver_agree(rng):
    network = Reservoir.oscillators(rng.uniform(1, 9, 4), rng.uniform(0.1, 2, 4))
    X, u = rng.standard_normal((3, 2, 25)), rng.standard_normal((8, 2))
    wanted = simulate(network, X, u, 0.4)
    size = np.abs(wanted).max()
    # The solver's tolerance is 1e-10 a step; the other two are exact for linear networks.
    for system in (
        unfold(network, n_steps=25, dt=0.4),
        Dynamics(network, n_steps=25, dt=0.4),
    ):
        np.testing.assert_allclose(system.states(X, u), wanted, atol=1e-8 * size)


def test_they_are_saved_as_any_network(tmp_path):
    network = Reservoir.oscillators([2.0, 5.0], [1.0, 0.0])
    network.save(tmp_path / "it")
    np.testing.assert_array_equal(load(tmp_path / "it").weights, network.weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1.0]), "one entry per oscillator each; got 2 and 1"),
        (([0.0], [1.0]), "`decay_times` must be positive; got 0"),
        (([1.0], [-1.0]), "`frequencies` must not be negative; got -1"),
        (([1.0], [1.0], -2.0), "`tau`.*positive"),
        (([1.0], [1.0], 1.0, Gain.polynomial([0, 0, 1])), "`gain` must have a slope"),
    ],
)
def test_oscillators_that_can_not_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        Reservoir.oscillators(*arguments)
