"""Resting states against the undriven network, and the refusal of unstable ones."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from greenfold.networks.resting_state import (
    continuous_resting_state,
    discrete_resting_state,
)

from .problems import GAINS, sigmoid, sigmoid_slope, tanh, tanh_slope


def random_weights(n=15, g=0.9, seed=1):
    weights = np.random.default_rng(seed).standard_normal((n, n))
    return weights * g / np.abs(np.linalg.eigvals(weights)).max()


@pytest.mark.parametrize("gain", ["tanh", "sigmoid", "biased tanh"])
def test_where_the_network_settles(gain, rng):
    function, derivative = GAINS[gain]
    W, bias = random_weights(), rng.normal(0, 0.7, 15)
    tau = np.linspace(0.1, 0.5, 15)
    rest = continuous_resting_state(W, bias, tau, function, derivative)
    run = solve_ivp(
        lambda _, y: (-y + W @ function(y) + bias) / tau,
        (0, 200),
        np.zeros(15),
        method="DOP853",
        rtol=1e-11,
        atol=1e-12,
    )
    # After 200 time units the slowest mode has decayed below the solver's tolerance.
    assert rest == pytest.approx(run.y[:, -1], abs=1e-9)
    assert np.abs(-rest + W @ function(rest) + bias).max() < 1e-14 * 15


def test_where_the_map_settles(rng):
    W, bias = random_weights(), rng.normal(0, 0.7, 15)
    rest = discrete_resting_state(W, bias, 0.3, tanh, tanh_slope)
    y = np.zeros(15)
    for _ in range(2000):
        y = 0.7 * y + 0.3 * np.tanh(W @ y + bias)
    assert rest == pytest.approx(y, abs=1e-13)


def test_no_bias_rests_at_zero_exactly():
    rest = continuous_resting_state(
        random_weights(), np.zeros(15), np.ones(15), tanh, tanh_slope
    )
    assert not rest.any()


def test_from_an_unstable_fixed_point_to_the_stable_one():
    """Newton from zero may stop between two wells; the network itself does not."""
    W, bias = np.array([[3.0]]), np.array([1e-3])
    rest = continuous_resting_state(W, bias, np.ones(1), tanh, tanh_slope)
    assert rest[0] > 2
    assert rest == pytest.approx(3 * np.tanh(rest) + 1e-3, rel=1e-13)
    same = discrete_resting_state(W, bias, 0.5, tanh, tanh_slope)
    assert same == pytest.approx(np.tanh(3 * same + 1e-3), rel=1e-13)


def test_time_constants_decide_on_stability():
    """Excitation fast, inhibition slow: the fixed point is the same, but it oscillates."""
    W, bias = np.array([[2.0, -2.5], [2.5, 0.0]]), np.array([0.2, 0.1])
    settled = continuous_resting_state(W, bias, np.array([1.0, 0.3]), tanh, tanh_slope)
    assert settled.any()
    with pytest.raises(ValueError, match="unstable at its rest state"):
        continuous_resting_state(W, bias, np.array([1.0, 3.0]), tanh, tanh_slope)


def test_growing_networks_are_refused():
    W = np.full((15, 15), 1.5 / 15)  # one eigenvalue, 1.5
    with pytest.raises(ValueError, match="`weights` make the network unstable"):
        continuous_resting_state(W, np.zeros(15), np.ones(15), tanh, tanh_slope)
    with pytest.raises(ValueError, match="`weights` make the network unstable"):
        discrete_resting_state(W, np.zeros(15), 0.3, tanh, tanh_slope)


def test_no_rest_state_at_all():
    """exp(y) > y everywhere: with W = 1 the network grows from any state."""
    with pytest.raises(ValueError, match="without a rest state"):
        continuous_resting_state(np.ones((1, 1)), np.ones(1), np.ones(1), np.exp, np.exp)


def test_excitation_and_inhibition():
    """Dale's law, sigmoid gain: a rest state well away from zero."""
    rng = np.random.default_rng(0)
    W = np.abs(rng.normal(0, 0.3, (20, 20)))
    W[:, 16:] *= -4
    rest = continuous_resting_state(
        W, np.full(20, -0.5), np.full(20, 0.1), sigmoid, sigmoid_slope
    )
    assert np.abs(W @ sigmoid(rest) - 0.5 - rest).max() < 1e-13
