"""The bridge: reservoirpy runs what was solved, and its states are ours."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Dynamics,
    EchoStateNetwork,
    Gain,
    SampleStimuli,
    optimize,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats
from greenfold.dynamics.integration import DrivenNetwork
from greenfold.math.margins import state_moments
from greenfold.math.sphere import maximize_on_sphere

pytestmark = pytest.mark.needs("reservoirpy")


@pytest.fixture
def bridge() -> Any:
    """The module under test, which imports reservoirpy."""
    return importlib.import_module("greenfold.reservoirpy")


def reservoir(n: int, **settings) -> Any:
    from reservoirpy import nodes

    return nodes.Reservoir(n, **settings)


@pytest.fixture(scope="module")
def beats():
    X, y = synthetic_heartbeats(60, n_steps=30, rng=0)
    return X[:, :, None], y


def small(**settings):
    every = {"rc_connectivity": 1.0, "input_connectivity": 1.0}
    return reservoir(5, **{"lr": 0.3, "sr": 0.5, "seed": 0, **every, **settings})


def run(node, X):
    """reservoirpy's own states, every series from zero."""
    found = []
    for series in X:
        node.reset()
        found.append(np.asarray(node.run(series)))
    return np.array(found)


def ours(network, X, Win):
    dynamics = Dynamics(network, n_steps=X.shape[1], start=np.zeros(network.n_neurons))
    states = dynamics.states(X.transpose(0, 2, 1), Win, trajectories=True)
    return states + network.rest


@pytest.mark.parametrize(
    "settings",
    [
        {"activation": "identity"},
        {},
        {"activation": "sigmoid", "lr": 0.5},
        {"activation": "softplus", "sr": 0.5},
        {"activation": "relu", "bias": 0.3},
        {"bias": 0.4},
        {"bias": np.linspace(-1, 1, 20), "lr": np.linspace(0.2, 1.0, 20)},
        {"Win": np.linspace(-1, 1, 20)[:, None]},
    ],
    ids=str,
)
def test_its_states_are_ours(bridge, settings, beats):
    X, y = beats
    node = reservoir(20, **{"lr": 0.3, "sr": 0.9, "seed": 1, **settings})
    solved = bridge.solve_input(node, X, y)
    found = run(solved.node, X[:4])
    # Rounding over thirty steps of a map that contracts.
    assert found == pytest.approx(ours(solved.network, X[:4], solved.node.Win), abs=1e-12)
    # At once, as several series.
    solved.node.reset()
    together = np.asarray(solved.node.run(list(X[:4])))
    assert together == pytest.approx(found, abs=1e-12)


def test_everything_but_win_is_kept(bridge, beats):
    X, y = beats
    node = reservoir(20, lr=0.3, sr=0.9, seed=1, input_scaling=0.7)
    solved = bridge.solve_input(node, X, y)
    assert not node.initialized  # left alone
    node.run(X[0])
    np.testing.assert_array_equal(node.W.toarray(), solved.node.W.toarray())
    own, found = np.linalg.norm(node.Win.toarray()), np.linalg.norm(solved.node.Win)
    assert found == pytest.approx(own)
    assert solved.node.Win.shape == (20, 1)
    scaled = bridge.solve_input(node, X, y, norm=2.0)
    assert np.linalg.norm(scaled.node.Win) == pytest.approx(2.0)
    # Whether the weights were drawn before or not makes no difference.
    assert bridge.solve_input(node, X, y).node.Win == pytest.approx(
        solved.node.Win, abs=1e-12
    )
    # It is the certified optimum of the network that the node runs.
    network = bridge.network_of(node)
    assert isinstance(network, EchoStateNetwork)
    stimuli = SampleStimuli(X[:, :, 0], y)
    best = optimize(unfold(network, n_steps=30), stimuli)
    assert solved.projections.status == "certified"
    assert solved.projections.soft_margin == pytest.approx(best.soft_margin, rel=1e-9)


def test_several_channels_and_another_readout(bridge, beats):
    X, y = beats
    two = np.concatenate([X, X**2], axis=2)
    node = reservoir(12, lr=0.4, sr=0.8, seed=2)
    solved = bridge.solve_input(node, two, y, readout=np.ones(30))
    assert solved.node.Win.shape == (12, 2)
    assert run(solved.node, two[:2]) == pytest.approx(
        ours(solved.network, two[:2], solved.node.Win), abs=1e-12
    )


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_through_the_true_network(bridge, bias, beats):
    """Strong series saturate the node; there the ascent has the larger κ on its states."""
    X, y = beats
    X = 4 * X
    node = reservoir(12, lr=0.4, sr=0.9, seed=2, bias=bias)
    linear = bridge.solve_input(node, X, y)
    exact = bridge.solve_input(node, X, y, exact=True, method=Ascent(2, 25))
    assert exact.projections.eta == linear.projections.eta == 10
    # η belongs to series with ‖μ‖ = 1: states are counted in the size of those that run.
    size = np.linalg.norm(exact.node.Win)
    given = SampleStimuli(size * X.transpose(0, 2, 1), y, normalize=None)
    unit = np.linalg.norm(given.mu)
    kappa = []
    for solved in (linear, exact):
        states = run(solved.node, X)[:, -1]
        means = [states[y == label].mean(0) for label in np.unique(y)]
        signs = np.where(y == np.unique(y)[1], 1, -1)
        M, Sigma = state_moments(states - (means[0] + means[1]) / 2, signs)
        kappa.append(maximize_on_sphere(M / unit, 10 * Sigma / unit**2).value)
    assert kappa[1] > kappa[0]
    # The κ that is claimed is the one of reservoirpy's own states.
    assert kappa[1] == pytest.approx(exact.projections.soft_margin, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"node": "x"}, TypeError, "`node` must be a reservoirpy.nodes.Reservoir; got str"),
        ({"X": np.ones((6, 5))}, ValueError, r"`X`.*pass X\[:, :, None\]"),
        (
            {"X": [np.ones((5, 1)), np.ones((4, 1))]},
            ValueError,
            "`X`.*equal length.*4 to 5",
        ),
        ({"X": np.full((6, 5, 1), np.nan)}, ValueError, "`X` must be finite"),
        ({"labels": np.arange(6)}, ValueError, "`labels`.*two classes"),
        ({"norm": 0.0}, ValueError, "`norm`.*positive"),
        (
            {"node": {"activation": np.arctan}},
            ValueError,
            r"`node`.*arctan.*Gain\.custom",
        ),
        (
            {"node": {"input_dim": 2}},
            ValueError,
            r"`node` must take 1 channel.*got 2",
        ),
        ({"node": {"sr": 3.0}}, ValueError, "`weights`.*unstable"),
        ({"node": {"Win": np.zeros((5, 1))}}, ValueError, "`node`.*only zeros.*norm"),
    ],
)
def test_bad_input_is_named(bridge, change, error, message):
    rng = np.random.default_rng(0)
    if isinstance(settings := change.get("node"), dict):
        change = {**change, "node": small(**settings)}
    given = {
        "node": small(),
        "X": rng.standard_normal((6, 5, 1)),
        "labels": np.arange(6) % 2,
    }
    with pytest.raises(error, match=message):
        bridge.solve_input(**{**given, **change})


def test_an_activation_of_ones_own(bridge, beats):
    X, y = beats
    node = reservoir(8, sr=0.5, activation=np.arctan, seed=0)
    gain = Gain.custom(np.arctan, lambda y: 1 / (1 + y**2), "arctan")
    solved = bridge.solve_input(node, X, y, gain=gain)
    assert run(solved.node, X[:2]) == pytest.approx(
        ours(solved.network, X[:2], solved.node.Win), abs=1e-12
    )


def test_a_node_solved_for_a_sequence_errs_less():
    """Run and read by reservoirpy alone, on samples that were not solved on."""
    from reservoirpy.nodes import Reservoir, Ridge

    from greenfold.datasets import lorenz
    from greenfold.reservoirpy import solve_sequence

    series = lorenz(1500, rng=0)
    series = (series - series.mean(0)) / series.std(0)
    node = Reservoir(
        40, lr=0.6, sr=1.1, input_scaling=0.3, bias=0.2, seed=1
    )  # beyond the edge, which only its input tames
    solved = solve_sequence(node, series[:1000], max_iter=40)
    errors = []
    for one in (node, solved.node):
        model = one >> Ridge(ridge=1e-8)
        model.fit(series[:999], series[1:1000], warmup=100)
        made = model.run(series[999:-1])
        errors.append(float(np.sqrt(np.mean((made - series[1000:]) ** 2))))
    assert errors[1] < 0.3 * errors[0]
    parts = [
        np.column_stack([dense(one.Win), np.broadcast_to(dense(one.bias).ravel(), 40)])
        for one in (node, solved.node)
    ]
    sizes = [np.linalg.norm(one) for one in parts]
    assert sizes[1] == pytest.approx(sizes[0], rel=1e-9)


@pytest.mark.parametrize("n_neurons", [30, 400])  # dense and sparse recurrent weights
def test_each_neuron_may_have_its_own_leak_rate(n_neurons):
    from greenfold.datasets import lorenz
    from greenfold.reservoirpy import solve_sequence

    series = lorenz(300, rng=0) / 10
    node = reservoir(n_neurons, lr=np.linspace(0.2, 1.0, n_neurons), sr=0.9, seed=1)
    solved = solve_sequence(node, series, max_iter=3)
    assert isinstance(solved.node.Win, np.ndarray)  # as its description says
    # The node that reservoirpy runs has the states of our network.
    driven = DrivenNetwork(solved.network, solved.node.Win, solved.node.bias)
    states = driven.run(series, np.zeros(n_neurons))
    np.testing.assert_allclose(solved.node.run(series), states, rtol=0, atol=1e-12)


def dense(value):
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)
