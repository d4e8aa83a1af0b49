"""The leaky echo state network: its map as it is written, and reservoirpy's own run."""

import numpy as np
import pytest

from greenfold._base.arrays import to_host
from greenfold.dynamics.steppers import leaky_step
from greenfold.networks.resting_state import discrete_resting_state
from greenfold.unfolding.propagators import make_plan
from greenfold.unfolding.walk import Walk

from ..conftest import slope, unit
from .problems import GAINS, gain_of, tanh, tanh_slope


def network(gain="tanh", n=14, seed=2):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, n))
    W *= 0.9 / np.abs(np.linalg.eigvals(W)).max()
    return W / float(GAINS[gain][1](np.zeros(1))[0]), rng


def loop(W, leak, function, bias, X, u, y):
    """Absolute states, one series and one step after the other."""
    found = np.empty((len(X), X.shape[2], len(W)))
    for case, series in enumerate(X):
        state = y.copy()
        for step in range(X.shape[2]):
            active = function(W @ state + u @ series[:, step] + bias)
            state = (1 - leak) * state + leak * active
            found[case, step] = state
    return found


def plan_of(step, weights):
    return make_plan(lambda _: (step, 1), 1.0, weights)


@pytest.mark.parametrize("leak", [0.3, 1.0, np.linspace(0.2, 0.9, 14)])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("gain", ["tanh", "sigmoid", "quadratic"])
def test_states_are_those_of_the_map(gain, biased, leak):
    W, rng = network(gain)
    function, derivative = GAINS[gain]
    bias = rng.normal(0, 0.2, 14) if biased else np.zeros(14)
    rest = discrete_resting_state(W, bias, leak, function, derivative)
    step = leaky_step(W, leak, gain_of(function, derivative), bias, rest)
    X, u = rng.standard_normal((4, 2, 9)), unit(rng, 14, 2)
    expected = loop(W, leak, function, bias, X, u, rest) - rest
    found = Walk(plan_of(step, np.ones(9)), X, u).trajectories()
    # Nine steps of a map that contracts: rounding.
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)
    weights = np.arange(9.0)
    read = Walk(plan_of(step, weights), X, u).states
    assert read == pytest.approx(np.tensordot(expected, weights, (1, 0)), abs=1e-11)


@pytest.mark.parametrize(
    "library", ["numpy", pytest.param("torch", marks=pytest.mark.needs("torch"))]
)
@pytest.mark.parametrize("weights", [np.eye(9)[-1], np.eye(9)[4], np.arange(9.0)])
@pytest.mark.parametrize("leak", [0.3, 1.0])
def test_gradient(leak, weights, library):
    W, rng = network()
    bias = rng.normal(0, 0.3, 14)
    rest = discrete_resting_state(W, bias, leak, tanh, tanh_slope)
    step = leaky_step(W, leak, gain_of(tanh, tanh_slope), bias, rest)
    plan = plan_of(step, weights)
    X, u, v = 2 * rng.standard_normal((4, 2, 9)), unit(rng, 14, 2), unit(rng, 14)
    bar = rng.standard_normal(4)
    given = X, bar
    if library == "torch":
        import torch

        given = torch.asarray(X), torch.asarray(bar)
    u_bar, v_bar = (to_host(g) for g in Walk(plan, given[0], u).pullback(given[1], v))
    assert v_bar == pytest.approx(bar @ Walk(plan, X, u).states, rel=1e-10)
    direction = unit(rng, 14, 2)
    sizes = np.array([1e-2, 3e-3, 1e-3, 3e-4])
    start, first = bar @ Walk(plan, X, u).states @ v, float((u_bar * direction).sum())
    remainders = [
        abs(bar @ Walk(plan, X, u + e * direction).states @ v - start - e * first)
        for e in sizes
    ]
    assert slope(sizes, remainders) >= 1.9


@pytest.mark.needs("torch")
def test_equal_to_autograd(rng):
    import torch

    W, rng = network()
    bias, leak = rng.normal(0, 0.3, 14), np.linspace(0.2, 0.9, 14)
    rest = discrete_resting_state(W, bias, leak, tanh, tanh_slope)
    X, u = rng.standard_normal((4, 2, 9)), unit(rng, 14, 2)
    cotangent = rng.standard_normal((4, 14))
    tensors = [torch.asarray(a) for a in (X, W, bias, leak)]
    Xt, Wt, bt, at = tensors
    ut = torch.asarray(u).requires_grad_()
    y = torch.asarray(np.tile(rest, (4, 1)))
    for step in range(9):
        y = (1 - at) * y + at * torch.tanh(y @ Wt.T + Xt[:, :, step] @ ut.T + bt)
    (y * torch.asarray(cotangent)).sum().backward()
    step = leaky_step(W, leak, gain_of(tanh, tanh_slope), bias, rest)
    gradient, _ = Walk(plan_of(step, np.eye(9)[-1]), X, u).pullback(cotangent)
    assert ut.grad is not None
    expected = ut.grad.numpy()
    assert np.abs(gradient - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.needs("reservoirpy")
@pytest.mark.parametrize("size", [0.0, 0.5])
def test_reservoirpy_runs_the_same_network(size):
    """With a bias too, although its networks begin at zero and not at rest."""
    from reservoirpy import nodes

    W, rng = network()
    bias = rng.normal(0, size, 14)
    X, u = rng.standard_normal((3, 2, 9)), unit(rng, 14, 2)
    node = nodes.Reservoir(W=W, Win=u, bias=bias, lr=0.3, activation="tanh")
    rest = discrete_resting_state(W, bias, 0.3, tanh, tanh_slope)
    step = leaky_step(W, 0.3, gain_of(tanh, tanh_slope), bias, rest)
    plan = make_plan(lambda _: (step, 1), 1.0, np.ones(9), start=-rest)
    found = Walk(plan, X, u).trajectories() + rest
    for case, series in enumerate(X):
        if case:
            node.reset()  # a node that has not run yet has no state to reset
        expected = np.asarray(node.run(np.ascontiguousarray(series.T)))
        assert found[case] == pytest.approx(expected, abs=1e-12)
