"""Arguments of networks that would have no effect are refused."""

import numpy as np
import pytest

from greenfold import EchoStateNetwork, Reservoir

RING = np.roll(np.eye(3), 1, axis=0)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Reservoir.random(6, g=0.9, spectral_radius=0.8), "g"),
        (lambda: Reservoir.excitatory_inhibitory(6, g=0.9, spectral_radius=0.8), "g"),
        (lambda: Reservoir.spatial(6, g=0.9, spectral_radius=0.8), "g"),
        (lambda: Reservoir.from_graph(RING, weight="strength"), "weight"),
        (lambda: EchoStateNetwork.from_graph(RING, weight=None), "weight"),
    ],
)
def test_an_argument_without_effect_is_refused(make, name):
    with pytest.raises(ValueError, match=f"`{name}.*` has no effect .*; leave it out"):
        make()
