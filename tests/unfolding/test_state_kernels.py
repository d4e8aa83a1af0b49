"""The kernels of all neurons, against those of one readout and against stepping."""

import numpy as np
import pytest

from greenfold import Gain, Reservoir, unfold
from greenfold._base.arrays import batches
from greenfold.unfolding import kernels as kernels_module
from greenfold.unfolding import walk
from greenfold.unfolding.unfolding import Unfolding

from ..conftest import small, unit
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
    expected = response.pullback(linear_bar, pairs_bar * v)
    found = response.pull(v, a_bar, C_bar)
    # Rounding of sums of some hundred terms.
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    linear_only = response.pull(v, a_bar, None)
    assert linear_only == pytest.approx(response.pullback(linear_bar), abs=1e-12)


@CHANNELS
@EVERY_READOUT
def test_doubling_equals_step_by_step(readout, n_channels, rng, monkeypatch):
    """What a GPU does, on the host: pairs and their way back against the recursion."""
    unfolding, _ = setting(n_channels=n_channels, readout=readout)
    u = unit(rng, 8, n_channels)
    steps = unfolding.kernels_of_all(u)
    monkeypatch.setattr(kernels_module, "on_gpu", lambda array: True)
    monkeypatch.setattr(kernels_module, "_PRODUCT_BYTES", 2**14)  # in several parts
    doubled = unfolding.kernels_of_all(u)
    if steps.pairs is None:
        pytest.skip("no pairs at this readout")
    # Rounding of sums of some ten terms.
    assert doubled.pairs == pytest.approx(steps.pairs, abs=1e-13 * steps.pairs.max())
    bars = [rng.standard_normal(one.shape) for one in (steps.linear, steps.pairs)]
    found = doubled.pullback(*bars)
    monkeypatch.undo()
    expected = steps.pullback(*bars)
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())


@CHANNELS
def test_several_panels_of_a_step_are_doubled_too(n_channels, rng, monkeypatch):
    stiff = Reservoir.random(6, 0.9, tau=0.02, gain=Gain.quadratic(0.1), rng=0)
    unfolding = unfold(stiff, n_steps=7, dt=0.2, order=1)
    assert unfolding._plan.n_sub > 1
    u = unit(rng, 6, n_channels)
    steps = unfolding.kernels_of_all(u)
    bars = [rng.standard_normal(one.shape) for one in (steps.linear, steps.pairs)]
    expected = steps.pullback(*bars)
    monkeypatch.setattr(kernels_module, "on_gpu", lambda array: True)
    doubled = unfolding.kernels_of_all(u)
    size = np.abs(steps.pairs).max()
    assert doubled.pairs == pytest.approx(steps.pairs, abs=1e-12 * size)
    found = doubled.pullback(*bars)
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


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("readout", [None, "weights"])
def test_kernels_of_all_neurons_equal_stepping(n_channels, readout, rng, monkeypatch):
    """Two independent ways to the same states and gradients at order 1."""
    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=7, dt=1.3, order=1)
    if readout:
        unfolding = unfolding.with_readout(rng.standard_normal(7))
    X, u = rng.standard_normal((9, n_channels, 7)), unit(rng, 12, n_channels)
    cotangent = rng.standard_normal((9, 12))
    assert unfolding._plan.n_sub > 1
    found = []
    for kernels in (True, False):
        monkeypatch.setattr(Unfolding, "prefers_kernels", lambda *_, way=kernels: way)
        found.append((unfolding.states(X, u), unfolding.pullback(X, u, cotangent)))
    (states, gradient), (stepped, stepped_gradient) = found
    assert states == pytest.approx(stepped, rel=1e-12, abs=1e-13)
    assert gradient == pytest.approx(stepped_gradient, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("kernels", [True, False])
def test_batches_do_not_change_the_result(kernels, rng, monkeypatch):
    monkeypatch.setattr(Unfolding, "prefers_kernels", lambda *_: kernels)
    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=5, dt=0.4, order=1)
    X, u = rng.standard_normal((50, 5)), unit(rng, 12)
    cotangent = rng.standard_normal((50, 12))
    whole = unfolding.states(X, u), unfolding.pullback(X, u, cotangent)
    module = kernels_module if kernels else walk
    monkeypatch.setattr(module, "batches", lambda n, *_: batches(n, 1, 7))
    assert unfolding.states(X, u) == pytest.approx(whole[0])
    assert unfolding.states(X, u, orders=True).sum(0) == pytest.approx(whole[0])
    assert unfolding.pullback(X, u, cotangent) == pytest.approx(whole[1])
