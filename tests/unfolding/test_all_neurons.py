"""The kernels of all neurons, against those of one readout."""

import numpy as np
import pytest

from greenfold import Gain, Reservoir, unfold
from greenfold.unfolding import state_kernels as all_neurons
from greenfold.unfolding import state_kernels as pair_scan

from ..conftest import unit
from ..stimuli.nonlinear_cases import CHANNELS, EVERY_READOUT, setting, square


def test_full_kernels_are_those_of_each_neuron(rng):
    """Row i of the kernels of all neurons is the kernel collapsed with v = e_i."""
    unfolding, _ = setting(n_channels=2, readout=1.5)
    u = unit(rng, 8, 2)
    a, C = unfolding.kernels_of_all(u).full()
    for neuron in (0, 7):
        kernel = unfolding.kernels(u, np.eye(8)[neuron])
        assert a[:, neuron] == pytest.approx(kernel.linear.ravel(), abs=1e-14)
        assert C[:, :, neuron] == pytest.approx(square(kernel), abs=1e-14)


@CHANNELS
@EVERY_READOUT
def test_collapsed_adjoint_equals_the_general_one(readout, n_channels, rng):
    """The adjoint of one readout's kernels against that of the kernels of all neurons."""
    unfolding, _ = setting(n_channels=n_channels, readout=readout)
    u, v = unit(rng, 8, n_channels), unit(rng, 8)
    response = unfolding.kernels_of_all(u)
    n = len(response.linear)
    a_bar = rng.standard_normal((n_channels, 5))
    C_bar = rng.standard_normal((n_channels, 5, n_channels, 5))
    C_bar = C_bar + C_bar.transpose(2, 3, 0, 1)
    # D pairs are Σ_{n ≤ m}; the symmetric C counts each pair of different steps twice.
    linear_bar = a_bar.T[:n, :, None] * v
    pairs_bar = np.stack(
        [
            C_bar[:, later - distance, :, later]
            for later in range(n)
            for distance in range(later + 1)
        ]
    )[..., None]
    expected = all_neurons.pullback(response, linear_bar, pairs_bar * v)
    found = response.pull(v, a_bar, C_bar)
    # Rounding of sums of some hundred terms.
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    linear_only = response.pull(v, a_bar, None)
    assert linear_only == pytest.approx(
        all_neurons.pullback(response, linear_bar), abs=1e-12
    )


@CHANNELS
@EVERY_READOUT
def test_doubling_equals_step_by_step(readout, n_channels, rng, monkeypatch):
    """What a GPU does, on the host: pairs and their way back against the recursion."""
    unfolding, _ = setting(n_channels=n_channels, readout=readout)
    u = unit(rng, 8, n_channels)
    steps = unfolding.kernels_of_all(u)
    monkeypatch.setattr(all_neurons, "on_gpu", lambda array: True)
    monkeypatch.setattr(pair_scan, "_PRODUCT_BYTES", 2**14)  # in several parts
    doubled = unfolding.kernels_of_all(u)
    if steps.pairs is None:
        pytest.skip("no pairs at this readout")
    # Rounding of sums of some ten terms.
    assert doubled.pairs == pytest.approx(steps.pairs, abs=1e-13 * steps.pairs.max())
    bars = [rng.standard_normal(one.shape) for one in (steps.linear, steps.pairs)]
    found = all_neurons.pullback(doubled, *bars)
    monkeypatch.undo()
    expected = all_neurons.pullback(steps, *bars)
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())


@CHANNELS
def test_several_panels_of_a_step_are_doubled_too(n_channels, rng, monkeypatch):
    stiff = Reservoir.random(6, 0.9, tau=0.02, gain=Gain.quadratic(0.1), rng=0)
    unfolding = unfold(stiff, n_steps=7, dt=0.2, order=1)
    assert unfolding._schedule.n_panels > 1
    u = unit(rng, 6, n_channels)
    steps = unfolding.kernels_of_all(u)
    bars = [rng.standard_normal(one.shape) for one in (steps.linear, steps.pairs)]
    expected = all_neurons.pullback(steps, *bars)
    monkeypatch.setattr(all_neurons, "on_gpu", lambda array: True)
    doubled = unfolding.kernels_of_all(u)
    size = np.abs(steps.pairs).max()
    assert doubled.pairs == pytest.approx(steps.pairs, abs=1e-12 * size)
    found = all_neurons.pullback(doubled, *bars)
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())


@pytest.mark.needs("torch")
@CHANNELS
@EVERY_READOUT
def test_another_library_pulls_back_the_same(readout, n_channels, rng):
    import torch

    unfolding, _ = setting(n_channels=n_channels, readout=readout)
    u, v = unit(rng, 8, n_channels), unit(rng, 8)
    X = rng.standard_normal((4, n_channels, 5))
    here = unfolding.kernels_of_all(u)
    there = unfolding.kernels_of_all(u, torch.asarray(X))
    a_bar = rng.standard_normal((n_channels, 5))
    C_bar = rng.standard_normal((n_channels, 5, n_channels, 5))
    C_bar = C_bar + C_bar.transpose(2, 3, 0, 1)
    for square_bar in (C_bar, None):
        expected = here.pull(v, a_bar, square_bar)
        found = there.pull(v, a_bar, square_bar)
        assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    found = there.states_of(torch.asarray(X), None).numpy()
    assert found == pytest.approx(here.states_of(X, None), abs=1e-13)
