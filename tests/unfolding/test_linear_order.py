"""The three maps of the linear order, against a solver and against each other."""

import numpy as np
import pytest

from greenfold import simulate, unfold

from ..conftest import small, unit


@pytest.mark.parametrize("readout", [None, 0.7, np.array([1.0, 0, -0.5, 2.0])])
def test_responses_are_simulated_pulses(readout, rng):
    """Row c·K + n of Rᵤ is the state after a unit pulse in channel c, step n."""
    reservoir, u = small(n=5), unit(rng, 5, 2)
    unfolding = unfold(reservoir, n_steps=4, dt=0.5)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    R = unfolding.maps.input_response(u)
    pulses = np.repeat(np.eye(8).reshape(8, 2, 4), 5, axis=2)  # a grid of 0.1
    paths = simulate(reservoir, pulses, u, 0.1, trajectories=True)
    if isinstance(readout, np.ndarray):
        truth = np.einsum("k,nki->ni", readout, paths[:, 4::5])
    else:
        truth = paths[:, round((readout or 2.0) / 0.1) - 1]
    # The solver runs at rtol 1e-10.
    assert pytest.approx(truth, abs=1e-8) == R
    # Seen from the readout, and summed with the weights of a signal.
    v, d = rng.standard_normal((5, 3)), rng.standard_normal((2, 4))
    seen = np.einsum("npr,pc->cnr", unfolding.maps.readout_response(v), u)
    assert seen.reshape(8, 3) == pytest.approx(R @ v, abs=1e-14)
    summed = unfolding.maps.response_sum(d).drive(u[:, :, None])[:, 0]
    assert summed == pytest.approx(d.ravel() @ R, abs=1e-14)


def test_the_door_checks_what_the_maps_do_not():
    unfolding = unfold(small(n=5), n_steps=4, dt=0.5)
    with pytest.raises(ValueError, match=r"`u`.*5 rows.*\(4,\)"):
        unfolding.input_response(np.ones(4))
    with pytest.raises(ValueError, match=r"`v`.*\(5,\).*\(4,\)"):
        unfolding.readout_response(np.ones(4))
    with pytest.raises(ValueError, match=r"`v`.*\(5,\).*\(4,\)"):
        unfolding.readout_response(np.ones((4, 2)))
