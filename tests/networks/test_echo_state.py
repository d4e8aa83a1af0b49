"""The echo state network: its map written out, its certificate, reservoirpy's own run."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import ArrayLike

from greenfold import (
    Ascent,
    Dynamics,
    EchoStateNetwork,
    Gain,
    GaussianStimuli,
    RandomDraws,
    Reservoir,
    SampleStimuli,
    choose_tau,
    load,
    optimize,
    save,
    simulate,
    unfold,
)
from greenfold.networks.reservoir import UnstableError

from ..conftest import slope, unit

LEAKS = [1.0, 0.3, np.linspace(0.2, 0.9, 10)]


def network(gain=None, leak: ArrayLike = 0.3, bias: ArrayLike | None = None):
    weights = EchoStateNetwork.random(10, rng=0, connectivity=0.5).weights
    return EchoStateNetwork(weights, leak, gain, bias)


def loop(net, X, u):
    """Absolute states from rest, one series and one step after the other."""
    found = np.empty((len(X), X.shape[2], 10))
    bias = 0 if net.bias is None else net.bias
    for case, series in enumerate(X):
        y = net.rest.copy()
        for step in range(X.shape[2]):
            active = net.gain(net.weights @ y + u @ series[:, step] + bias)
            y = (1 - net.leak) * y + net.leak * active
            found[case, step] = y
    return found - net.rest


@pytest.mark.parametrize("leak", LEAKS, ids=["1", "0.3", "each"])
@pytest.mark.parametrize("bias", [None, 0.4])
@pytest.mark.parametrize("gain", [Gain.tanh(), Gain.sigmoid()], ids=lambda g: g.name)
def test_the_true_network(gain, bias, leak, rng):
    net = network(gain, leak, bias)
    X, u = rng.standard_normal((3, 2, 7)), unit(rng, 10, 2)
    expected = loop(net, X, u)
    dynamics = Dynamics(net, n_steps=7)
    # Seven steps of a map that contracts: rounding.
    assert dynamics.states(X, u, trajectories=True) == pytest.approx(expected, abs=1e-13)
    assert simulate(net, X, u, trajectories=True) == pytest.approx(expected, abs=1e-13)
    weights = np.arange(7.0)
    summed = dynamics.with_readout(weights).states(X, u)
    assert summed == pytest.approx(np.tensordot(weights, expected, (0, 1)), abs=1e-12)
    assert dynamics.step_error is not None
    assert dynamics.step_error.error == 0


@pytest.mark.parametrize("leak", LEAKS, ids=["1", "0.3", "each"])
@pytest.mark.parametrize("bias", [None, 0.4])
def test_the_linear_order(bias, leak, rng):
    """Exact for a linear gain; else what is left falls with the stimulus."""
    X, u = rng.standard_normal((3, 2, 7)), unit(rng, 10, 2)
    linear = network(Gain.linear(), leak, bias)
    found = unfold(linear, n_steps=7).states(X, u, trajectories=True)
    assert found == pytest.approx(loop(linear, X, u), abs=1e-13)
    bent = network(Gain.biased_tanh(0.3), leak, bias)
    sizes = np.array([1e-2, 3e-3, 1e-3])
    errors = [
        np.abs(unfold(bent, n_steps=7).states(s * X, u) - loop(bent, s * X, u)[:, -1]).max()
        for s in sizes
    ]
    assert slope(sizes, errors) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("bias", [None, 0.4])
def test_certified_optimum(bias, rng):
    net, stimuli = network(bias=bias), GaussianStimuli.random(5, rng=1)
    unfolding = unfold(net, n_steps=5)
    best = optimize(unfolding, stimuli)
    assert best.status == "certified"
    assert best.upper_bound == pytest.approx(best.soft_margin, rel=1e-6)
    drawn = optimize(unfolding, stimuli, method=RandomDraws(100), rng=0)
    assert drawn.soft_margin < best.soft_margin
    # The bound belongs to the map itself: κ by Green's functions made of matrix powers.
    E, push = net.linear_step
    F = np.diag(push)
    G = np.array([np.linalg.matrix_power(E, 4 - n) @ F for n in range(5)])
    a = np.einsum("o,noi,i->n", best.v, G, best.u)
    kappa = a @ stimuli.mu - 5.0 * a @ stimuli.psi @ a
    assert best.soft_margin == pytest.approx(kappa, rel=1e-10)


def test_optimum_of_the_true_network():
    net = network(Gain.biased_tanh(0.5), bias=0.2)
    stimuli = GaussianStimuli.random(4, strength=1.0, rng=1)
    X, labels = stimuli.sample(60, rng=0)
    samples = SampleStimuli(3 * X, labels, normalize=None)
    dynamics = Dynamics(net, n_steps=4)
    best = optimize(dynamics, samples, method=Ascent(2, max_evaluations=30))
    start = optimize(dynamics.linear, samples)
    refitted = optimize(dynamics, samples, u=start.u)
    assert best.soft_margin > refitted.soft_margin
    assert best.step_error == 0


@pytest.mark.needs("reservoirpy")
@pytest.mark.parametrize("bias", [None, "drawn"])
@pytest.mark.parametrize("activation", ["identity", "tanh"])
def test_reservoirpy_runs_the_same_network(activation, bias, rng):
    from reservoirpy import nodes

    gain = Gain.tanh() if activation == "tanh" else Gain.linear()
    constant = None if bias is None else 0.5 * rng.standard_normal(10)
    net = network(gain, bias=constant)
    X, u = rng.standard_normal((3, 2, 9)), unit(rng, 10, 2)
    node = nodes.Reservoir(
        W=net.weights,
        Win=u,
        bias=0.0 if constant is None else constant,
        lr=0.3,
        activation=activation,
    )
    series = [np.ascontiguousarray(x.T) for x in X]
    expected = np.array([_from_zero(node, x) for x in series])
    dynamics = Dynamics(net, n_steps=9, start=np.zeros(10))
    found = dynamics.states(X, u, trajectories=True) + net.rest
    assert found == pytest.approx(expected, abs=1e-12)
    assert dynamics.is_linear == (activation == "identity" and bias is None)
    if bias is None and activation == "identity":
        linear = unfold(net, n_steps=9).states(X, u, trajectories=True)
        assert linear == pytest.approx(expected, abs=1e-12)


def _from_zero(node, series):
    if node.initialized:
        node.reset()
    return np.asarray(node.run(series))


@pytest.mark.parametrize("leak", LEAKS, ids=["1", "0.3", "each"])
def test_it_is_saved_and_printed(tmp_path, leak):
    before = network(Gain.sigmoid(4), leak, 0.4)
    save(before, tmp_path / "it")
    after = load(tmp_path / "it")
    assert isinstance(after, EchoStateNetwork)
    for part in ("weights", "leak", "bias", "rest"):
        np.testing.assert_array_equal(getattr(after, part), getattr(before, part))
    assert after.gain == before.gain
    assert repr(after) == repr(before)
    assert "EchoStateNetwork(10 neurons, leak=" in repr(before)
    assert "spectral radius" in before._repr_html_()
    assert before.with_leak(0.5).leak == 0.5


def test_random():
    drawn = EchoStateNetwork.random(200, rng=3, connectivity=0.1, spectral_radius=0.8)
    assert np.abs(np.linalg.eigvals(drawn.weights)).max() == pytest.approx(0.8)
    assert (drawn.weights != 0).mean() == pytest.approx(0.1, abs=0.006)  # 4 σ of 40,000
    same = EchoStateNetwork.random(200, rng=3, connectivity=0.1, spectral_radius=0.8)
    np.testing.assert_array_equal(drawn.weights, same.weights)
    assert drawn.spectral_radius == pytest.approx(
        np.abs(np.linalg.eigvals(0.7 * np.eye(200) + 0.3 * drawn.weights)).max()
    )


def test_an_unstable_map():
    with pytest.raises(UnstableError, match=r"multiplies.*by 1\.5.*scale the weights down"):
        EchoStateNetwork(1.5 * np.eye(3))
    # A leak tames what oscillates: |1 − a + aλ| < 1.
    assert EchoStateNetwork(-1.5 * np.eye(3), 0.5).is_stable
    grown = EchoStateNetwork(1.5 * np.eye(3), gain=Gain.linear(), allow_unstable=True)
    X = np.ones((1, 4))
    assert unfold(grown, n_steps=4).states(X, np.ones(3))[0, 0] == pytest.approx(8.125)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: network(leak=1.2), ValueError, r"`leak`.*\(0, 1\].*1\.2"),
        (lambda: network(leak=0), ValueError, "`leak`.*positive"),
        (lambda: network(leak=[0.1, 0.2]), ValueError, "`leak`.*10 neurons"),
        (lambda: network(bias=np.ones(3)), ValueError, "`bias`.*10 neurons"),
        (lambda: network(gain=np.tanh), TypeError, "`gain` must be a Gain"),
        (lambda: EchoStateNetwork(np.ones((2, 3))), ValueError, "`weights`.*square"),
        (
            lambda: unfold(network(), n_steps=5, order=1),
            ValueError,
            "`order` = 1.*Dynamics",
        ),
        (
            lambda: unfold(network(), n_steps=5, readout=2.5),
            ValueError,
            "`readout` must be a multiple of the step.*got 2.5",
        ),
        (
            lambda: simulate(network(), np.ones((1, 3)), np.ones(10), engine="nest"),
            ValueError,
            "`engine` must be .*discrete time; got 'nest'",
        ),
        (
            lambda: simulate(network(), [[np.nan]], np.ones(10)),
            ValueError,
            "`X` must be finite",
        ),
        (
            lambda: Dynamics(network(), n_steps=2).states([[0.0, np.nan]], np.ones(10)),
            ValueError,
            "`X` must be finite",
        ),
        (
            lambda: Dynamics(
                EchoStateNetwork([[0.9]], gain=Gain.quadratic(1.0)), n_steps=40
            ).states(np.full((1, 40), 9.0), [1.0]),
            FloatingPointError,
            "diverges in step .* of series 0",
        ),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_time_constant_is_not_chosen_for_a_map():
    stimuli = GaussianStimuli.random(5, rng=1)
    with pytest.raises(TypeError, match="`reservoir`.*time constants.*EchoStateNetwork"):
        choose_tau(network(), stimuli, 1.0)  # pyright: ignore[reportArgumentType]


def test_the_estimator_says_which_networks_it_takes():
    from greenfold import ReservoirClassifier, ReservoirRegressor

    X, y = np.random.default_rng(0).standard_normal((8, 5)), np.arange(8) % 2
    for kind in (ReservoirClassifier, ReservoirRegressor):
        with pytest.raises(ValueError, match="'reservoir' .* EchoStateNetwork.*Sequence"):
            kind(reservoir=cast(Any, network())).fit(X, y)
    biased = Reservoir.random(6, gain=Gain.sigmoid(), bias=0.2, rng=0)
    with pytest.warns(UserWarning, match='linearised at rest; order="exact"') as said:
        fitted = ReservoirClassifier(reservoir=biased, eta=10.0).fit(X, y)
    assert len(said) == 1
    assert fitted.predict(X).shape == (8,)
    with pytest.warns(UserWarning, match="linearised at rest; optimize"):
        ReservoirRegressor(reservoir=biased).fit(X, y)
