"""Read-out values are those of the network's states."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from greenfold import Gain, Reservoir
from greenfold.estimators.parameters import array

from .conftest import make


def test_sparse_weights_are_checked_without_their_zeros(beats):
    """A million neurons: the zeros would take 8 TB. A NaN is still found."""
    X, y = beats[:2]
    weights = sparse.eye_array(10**6, format="csr") * 0.5
    weights.data[7] = np.nan
    with pytest.raises(ValueError, match="square matrix of finite weights"):
        make(reservoir=weights).fit(X, y)
    assert array("square", 2, square=True).fits(sparse.eye_array(10**6))
    assert not array("square", 2, square=True).fits(sparse.eye_array(10**6, 10**5))


@pytest.mark.parametrize(
    ("parameters", "least"),
    [
        ({"eta": "cv"}, 0.7),
        ({"input_projection": "random"}, 0.7),
        ({"input_projection": np.arange(1.0, 21.0)}, 0.7),
        ({"order": 1}, 0.7),
        ({"readout": "integrated", "eta": "cv"}, 0.7),
        ({"readout": 6.1}, 0.7),
        ({"readout": np.linspace(-1, 1, 40)}, 0.7),
        ({"order": 1, "readout": 6.1, "n_neurons": 5}, 0.7),
        ({"reservoir": Reservoir.random(15, tau=0.5, rng=1)}, 0.7),
        # Neurons that are all alike are one filter, and a small η ignores the spread.
        ({"reservoir": sparse.eye_array(12) * 0.5, "tau": 1.0, "eta": "cv"}, 0.55),
        ({"tau": "auto"}, 0.7),
        ({"certify": True}, 0.7),
        ({"input_scaling": None, "eta": 0.1}, 0.55),
        ({"threshold": "origin"}, 0.7),
    ],
    ids=lambda p: ",".join(p) if isinstance(p, dict) else None,
)
def test_decision_is_the_readout_of_the_network_states(
    beats, many_beats, parameters, least
):
    X, y, X_test, _ = beats
    fitted = make(**{"eta": 10.0, **parameters}).fit(X, y)
    states = fitted.transform(X_test)
    z = states @ fitted.v_ - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X_test), z, rtol=1e-8, atol=1e-10)
    assert np.linalg.norm(fitted.u_) == pytest.approx(1)
    assert np.linalg.norm(fitted.v_) == pytest.approx(1)
    assert (fitted.threshold_ == 0) == (fitted.threshold == "origin")
    if fitted.order == 0:
        moved = (X_test[:, None] - fitted.centre_) * fitted.scale_
        z = fitted.kernel_.decision_values(moved) - fitted.threshold_
        np.testing.assert_allclose(fitted.decision_function(X_test), z, atol=1e-10)
        assert fitted.validity_ is None
        assert np.isfinite(fitted.soft_margin_bound_)
    else:
        assert fitted.validity_.order == fitted.order
        assert np.isnan(fitted.soft_margin_bound_)
    # Guessing scores 0.5 with a standard error of 0.016: three of them, and twelve.
    assert fitted.score(*many_beats) > least


@pytest.mark.parametrize(
    "parameters",
    [
        {"order": 2, "n_neurons": 6},
        {
            "order": 1,
            "reservoir": Reservoir.random(6, gain=Gain.tanh(), rng=1),
        },
    ],
    ids=["order 2", "tanh"],
)
def test_orders_beyond_plain_kernels_are_read_from_the_unfolded_states(beats, parameters):
    X, y = beats[0][:24, ::8], beats[1][:24]
    # How u was found does not matter here, and drawing it is quick.
    settled = {"eta": 10.0, "input_scaling": 0.2, **parameters}
    fitted = make(input_projection="random", **settled).fit(X, y)
    assert fitted.kernel_ is None
    z = fitted.transform(X) @ fitted.v_ - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), z, rtol=1e-8, atol=1e-10)
