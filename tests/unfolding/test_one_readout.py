"""The kernels of one readout, and the contraction m₁."""

import numpy as np
import pytest

from greenfold import SampleStimuli

from ..conftest import unit
from ..optimizers.nonlinear_cases import setting


@pytest.mark.parametrize("kind", ["gaussian", "samples"])
@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("readout", [None, 1.5, "weights"])
def test_m1_is_the_contraction_of_the_second_green_function(readout, n_channels, kind, rng):
    """m₁ = Σ v_i G⁽²⁾_ipqnm ⟨ζ x_cn x_dm⟩, from the tensor that it never forms."""
    unfolding, stimuli = setting(n=4, n_channels=n_channels)
    if readout == "weights":
        readout = rng.standard_normal(5)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    if kind == "samples":
        stimuli = SampleStimuli(*stimuli.sample(10, rng=1), normalize=None)
    v = unit(rng, 4)
    third = stimuli.labelled_second_moment.reshape(n_channels, 5, n_channels, 5)
    expected = np.einsum("i,ipqnm,cndm->cpdq", v, unfolding.greens2(), third)
    found = unfolding.square_of_input()(v, stimuli.labelled_second_moment)
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
