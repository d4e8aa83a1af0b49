"""The kernels of all neurons, against those of one readout."""

import numpy as np
import pytest

from greenfold.unfolding import all_neurons

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
