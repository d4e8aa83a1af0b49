"""The grid stored in the page, against the library's own results."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Gain, Reservoir, optimize, unfold
from greenfold.apps.explorer import BAND, N_RANDOM, SliderGrid, accuracies, propagators
from greenfold.math.decisions import Clouds, decide, held_out_score
from greenfold.networks.echo_state import EchoStateNetwork
from greenfold.simulation import simulate

from .conftest import N_NEURONS, N_STEPS


def test_random_projections_stay_below_the_bound(sets):
    for _, (solved,) in sets:
        assert (solved.soft_margin <= solved.bound * (1 + 1e-9)).all()
        assert (solved.random <= solved.bound[..., None] * (1 + 1e-9)).all()
        assert solved.random.shape[-1] == N_RANDOM
        assert np.linalg.norm(solved.u, axis=(2, 3)) == pytest.approx(1)


def test_random_margins_are_those_of_optimize(unfolding, sets):
    material, (solved,) = sets[1]
    drawn = np.random.default_rng([0, 1]).standard_normal((N_RANDOM, N_NEURONS, 2))
    for i, j in ((0, 1), (2, 0)):
        system = unfolding.with_readout(solved.grid.steps[j] * unfolding.dt)
        stimuli = material.stimuli(solved.pair)
        found = optimize(system, stimuli, solved.grid.etas[i], u=drawn[7])
        assert solved.random[i, j, 7] == pytest.approx(found.soft_margin, rel=1e-9)


def test_random_projections_know_nothing_of_the_network(unfolding, sets):
    """From the seed of the network itself they would be rows of its weights."""
    material, (solved,) = sets[0]
    system = unfolding.with_readout(solved.grid.steps[0] * unfolding.dt)
    for row in unfolding.reservoir.weights[:2]:
        found = optimize(system, material.stimuli(solved.pair), solved.grid.etas[0], u=row)
        assert abs(solved.random[0, 0] - found.soft_margin).min() > 1e-9


def test_accuracies_are_those_of_the_decision(sets, beats):
    rng = np.random.default_rng(3)
    kernels = rng.standard_normal((4, N_STEPS))
    # A kernel that reads the classes the wrong way round is none that is solved for.
    kernels *= np.sign(kernels @ beats.stimuli((0, 1)).mu)[:, None]
    noises = [0.0, 0.1, 1.0]
    found = accuracies(beats, (0, 1), kernels, noises)
    stimuli = beats.stimuli((0, 1))
    Z = stimuli.transform(beats.X)[:, 0] @ kernels.T
    Z_test = stimuli.transform(beats.X_test)[:, 0] @ kernels.T
    for k in range(len(kernels)):
        ones = np.ones(len(beats.codes))
        clouds = Clouds.of(Z[:, [k]], beats.codes, ones, beats.weights)
        for i, noise in enumerate(noises):
            decision = decide(clouds, noise=noise, threshold="trained")
            right, _ = held_out_score(decision, Z_test[:, [k]], beats.codes_test, noise)
            assert found[k, i] == pytest.approx(right.mean(), abs=1e-12)


def test_the_band_is_ordered_and_falls_with_noise(sets):
    for _, (solved,) in sets:
        assert solved.random_accuracy.shape[2] == len(BAND)
        assert (np.diff(solved.random_accuracy, axis=2) >= 0).all()
        assert (
            solved.random_accuracy[..., -1].mean() < solved.random_accuracy[..., 0].mean()
        )


def test_the_grid_takes_in_the_eta_of_a_model():
    grid = SliderGrid.of(100, 7.5)
    assert 7.5 in grid.etas
    assert list(grid.etas) == sorted(grid.etas)
    assert grid.steps[-1] == 100
    assert SliderGrid.of(1).steps == (1,)


def test_the_matrices_of_a_step_are_those_of_the_simulated_network(unfolding):
    E, F = propagators(unfolding)
    rng = np.random.default_rng(0)
    u, x = rng.standard_normal(N_NEURONS), rng.standard_normal((1, 3))
    y = np.zeros(N_NEURONS)
    for value in x[0]:
        y = E @ y + F @ u * value
    # The ODE solver shares no code with the propagators; 1e-9 is its tolerance's scale.
    truth = simulate(unfolding.reservoir, x, u, unfolding.dt, rtol=1e-11)[0]
    assert y == pytest.approx(truth, abs=1e-8 * np.abs(truth).max())


def test_networks_in_discrete_time_have_such_matrices_too():
    network = EchoStateNetwork.random(6, connectivity=0.5, rng=0)
    E, F = propagators(unfold(network, n_steps=4))
    step, push = network.linear_step
    assert pytest.approx(step) == E
    assert pytest.approx(np.diag(push)) == F
    varied = Reservoir(0.1 * np.ones((3, 3)), tau=[0.2, 0.3, 0.5])
    unfolding = unfold(varied, n_steps=3, dt=0.4)
    E, F = propagators(unfolding)
    u = np.array([1.0, -2.0, 0.5])
    # A pulse in the first of three steps has been carried on twice.
    assert unfolding.input_response(u)[0] == pytest.approx(E @ E @ F @ u)
    higher = unfold(
        Reservoir.random(4, gain=Gain.quadratic(0.1), rng=1), n_steps=3, dt=3.0, order=1
    )
    E, F = propagators(higher)
    assert higher.linear.input_response(u[[0, 1, 2, 0]])[0] == pytest.approx(
        E @ E @ F @ u[[0, 1, 2, 0]]
    )
