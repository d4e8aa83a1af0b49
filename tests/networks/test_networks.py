"""Networks with a rest state, time constants of their own, and two populations.

The judge is `simulate`, which integrates the equation as it is written, and it is itself
held against a plain call of the solver.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from greenfold import (
    Dynamics,
    EchoStateNetwork,
    Gain,
    GaussianStimuli,
    Reservoir,
    load,
    optimize,
    simulate,
    unfold,
)
from greenfold._base.arrays import to_host
from greenfold.networks.reservoir import UnstableError

from ..conftest import LIBRARIES, slope, unit

TAU = np.linspace(0.1, 0.4, 8)
GAINS = [
    Gain.linear(),
    Gain.quadratic(0.1),
    Gain.polynomial([0, 0.8, 0.1, -0.05]),
    Gain.tanh(),
    Gain.biased_tanh(0.5, degree=5),
    Gain.sigmoid(),
    Gain.softplus(degree=5),
]


def network(gain=None, n=8, seed=3, tau=TAU, bias=0.5):
    """Weights of spectral radius 0.7, and biases of the given size."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n, n))
    weights *= 0.7 / np.abs(np.linalg.eigvals(weights)).max()
    return Reservoir(weights, tau, gain or Gain.tanh(), bias=bias * rng.standard_normal(n))


@pytest.mark.parametrize("gain", [Gain.tanh(), Gain.softplus()], ids=lambda g: g.name)
def test_simulate_is_the_equation_as_it_stands(gain, rng):
    net, X, u = network(gain), rng.standard_normal(3), unit(rng, 8)
    y = net.rest
    assert np.abs(net.weights @ gain(y) + net.bias - y).max() < 1e-14
    assert np.abs(y).max() > 0.3
    for x in X:
        run = solve_ivp(
            lambda _, y, x=x: (-y + net.weights @ gain(y) + net.bias + u * x) / TAU,
            (0, 0.3),
            y,
            method="DOP853",
            rtol=1e-12,
            atol=1e-13,
        )
        y = run.y[:, -1]
    found = simulate(net, X[None], u, 0.3, rtol=1e-11)
    # Both solvers err by their tolerance.
    assert found[0] == pytest.approx(y - net.rest, abs=1e-9)


def test_a_stiff_network_with_a_bias(rng):
    """One neuron 10⁵ times faster than the others; the judge is another implicit method."""
    tau = np.array([1e-6, *TAU[1:]])
    net = network(Gain.tanh(), tau=tau)
    X, u = rng.standard_normal(2), unit(rng, 8)
    y, bias = net.rest, net.bias
    assert bias is not None
    for x in X:
        run = solve_ivp(
            lambda _, y, x=x: (-y + net.weights @ np.tanh(y) + bias + u * x) / tau,
            (0, 0.2),
            y,
            method="Radau",
            rtol=1e-10,
            atol=1e-12,
        )
        y = run.y[:, -1]
    found = simulate(net, X[None], u, 0.2, rtol=1e-9)
    # Implicit methods accumulate more than their tolerance.
    assert found[0] == pytest.approx(y - net.rest, abs=1e-6)


@pytest.mark.parametrize("gain", GAINS, ids=lambda gain: gain.name)
def test_orders_fall_to_the_simulated_network(gain, rng):
    """Order k leaves an error of the power k + 2 of the stimulus, where all powers are."""
    net, u, X = network(gain), unit(rng, 8, 2), rng.standard_normal((3, 2, 5))
    sizes = np.array([0.02, 0.04, 0.08])
    truth = [simulate(net, s * X, u, 0.2, rtol=1e-13) for s in sizes]
    for order in range(1 if gain.is_linear else 3):
        tol = 1e-13 if order else None
        unfolding = unfold(net, n_steps=5, dt=0.2, order=order, tol=tol)
        errors = [
            np.abs(unfolding.states(s * X, u) - true).max()
            for s, true in zip(sizes, truth, strict=True)
        ]
        if gain.is_linear:
            assert max(errors) < 1e-11
        else:
            # The least power left, and a little of the next one.
            assert order + 1.8 < slope(sizes, errors) < order + 2.5


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("library", ["numpy", *LIBRARIES])
def test_the_unfolding_is_the_same_in_every_library(library, order, rng):
    net, u, X = network(Gain.sigmoid(degree=4)), unit(rng, 8), rng.standard_normal((3, 5))
    unfolding = unfold(net, n_steps=5, dt=0.2, order=order)
    there = importlib.import_module(library).asarray(X)
    assert to_host(unfolding.states(there, u)) == pytest.approx(
        unfolding.states(X, u), rel=1e-12, abs=1e-14
    )


@pytest.mark.parametrize("readout", [None, 0.5, np.array([1.0, 0.0, -1.0, 0.5, 2.0])])
def test_kernels_of_a_quadratic_network_with_a_bias(readout, rng):
    """All four routes: stepping, kernels of all, one readout, and their gradients."""
    net = network(Gain.quadratic(0.1))
    unfolding = unfold(net, n_steps=5, dt=0.2, order=1, readout=readout)
    u, v, X = unit(rng, 8, 2), unit(rng, 8), rng.standard_normal((6, 2, 5))
    states = unfolding.states(X, u, trajectories=True)
    weights = unfolding.readout_weights
    if readout is None or np.ndim(readout):
        read = np.tensordot(weights, states, (0, 1))
        many = np.tile(X, (200, 1, 1))  # so many that the kernels of all are cheaper
        assert unfolding.prefers_kernels(len(many), 2)
        assert unfolding.states(many, u)[:6] == pytest.approx(read, abs=1e-11)
    else:
        read = unfolding.states(X, u)
    assert unfolding.kernels(u, v).decision_values(X) == pytest.approx(read @ v, abs=1e-11)

    bar, direction = rng.standard_normal(6), unit(rng, 8, 2)
    gradient, _ = unfolding.pullback(X, u, bar, v)
    sizes = np.array([1e-1, 3e-2, 1e-2])
    first = float((gradient * direction).sum())

    def value(point):
        return bar @ unfolding.states(X, point) @ v

    rest = [abs(value(u + e * direction) - value(u) - e * first) for e in sizes]
    assert slope(sizes, rest) >= 1.9


@pytest.mark.parametrize("gain", [*GAINS, Gain.relu()], ids=lambda gain: gain.name)
def test_dynamics_is_the_simulated_network(gain, rng):
    net, u, X = network(gain), unit(rng, 8, 2), 2 * rng.standard_normal((4, 2, 3))
    truth = simulate(net, X, u, 0.2, trajectories=True, rtol=1e-9)
    # A kink lowers the order of the method: more sub-steps, a wider tolerance.
    tol = 1e-3 if gain.kind == "relu" else 1e-6
    dynamics = Dynamics(net, n_steps=3, dt=0.2, tol=tol)
    found = dynamics.states(X, u, trajectories=True)
    assert np.abs(found - truth).max() <= tol * np.abs(truth).max()


@pytest.mark.parametrize("gain", [Gain.sigmoid(), Gain.relu()], ids=lambda gain: gain.name)
@pytest.mark.parametrize("kind", ["reservoir", "echo state"])
def test_gradient_of_the_true_network(kind, gain, rng):
    net = network(gain, bias=1.0)
    if kind == "echo state":
        net = EchoStateNetwork(net.weights, np.linspace(0.2, 0.9, 8), gain, net.bias)
    dt = 0.2 if kind == "reservoir" else None
    tol = 1e-3 if kind == "reservoir" else None
    dynamics = Dynamics(net, n_steps=3, dt=dt, tol=tol)
    # Small enough for no neuron to come across the kink: beyond it nothing is smooth.
    X, u, v = 0.02 * rng.standard_normal((4, 3)), unit(rng, 8), unit(rng, 8)
    at = dynamics.prepare(X)
    z = at(u).states @ v
    gradient = dynamics.pullback(X, u, np.cos(z), v)[0]
    direction, sizes = unit(rng, 8), np.array([1e-1, 3e-2, 1e-2])

    def value(point):
        return np.sin(at(point).states @ v).sum()

    rest = [
        abs(value(u + e * direction) - value(u) - e * gradient @ direction) for e in sizes
    ]
    assert slope(sizes, rest) >= 1.9


def test_the_certificate_holds_around_the_rest_state():
    net = network(Gain.sigmoid())
    best = optimize(unfold(net, n_steps=5, dt=0.2), GaussianStimuli.random(5, rng=1))
    assert best.status == "certified"
    # κ of what a weak stimulus does to the simulated network, which is not linear.
    stimuli = GaussianStimuli.random(5, rng=1)
    X, labels = stimuli.sample(2000, rng=2)
    size = 1e-3
    z = simulate(net, size * X, best.u, 0.2, rtol=1e-9) @ best.v / size
    expected = unfold(net, n_steps=5, dt=0.2).states(X, best.u) @ best.v
    # The quadratic part is left, of the size of the stimulus beside the linear one.
    assert np.abs(z - expected).max() < 20 * size * np.abs(expected).max()
    assert (labels * expected).mean() > 0


def test_modes_of_unequal_neurons_decay_as_they_say(rng):
    """Along a left eigenvector, a small deviation falls with the mode's time constant."""
    net = network(Gain.tanh())
    modes = net.modes()
    jacobian = (net.weights * net.gain.derivative(net.rest) - np.eye(8)) / TAU[:, None]
    expected = np.sort(-1 / np.linalg.eigvals(jacobian).real)
    assert np.sort(modes.time_constants) == pytest.approx(expected, rel=1e-10)
    rates = (modes.eigenvalues - 1) / net.mean_tau
    left = modes.left_vectors @ jacobian
    assert left == pytest.approx(rates[:, None] * modes.left_vectors, abs=1e-11)
    assert net.spectral_abscissa == pytest.approx(modes.eigenvalues[0].real, abs=1e-12)
    assert net.linearized_abscissa(np.zeros(8)) == pytest.approx(net.spectral_abscissa)
    # What u does to a mode at once: d/dt wᵀd = wᵀ T⁻¹ u x at rest.
    u = unit(rng, 8)
    expected = modes.left_vectors @ (u / TAU) * net.mean_tau
    assert modes.loading(u) == pytest.approx(expected)


def test_time_constants_decide_on_stability():
    weights = [[2.0, -2.5], [2.5, 0.0]]
    assert Reservoir(weights, [1.0, 0.3]).is_stable
    with pytest.raises(UnstableError, match="with these time constants.*inhibition"):
        Reservoir(weights, [1.0, 3.0])
    with pytest.raises(UnstableError, match="unstable at its rest state"):
        Reservoir(weights, [1.0, 3.0], Gain.tanh(), bias=0.1)
    kept = Reservoir(weights, [1.0, 3.0], allow_unstable=True, bias=0.1)
    assert kept.weights @ kept.rest + 0.1 == pytest.approx(kept.rest)
    with pytest.raises(ValueError, match="`bias`.*integrates the bias forever"):
        Reservoir(np.eye(2), allow_unstable=True, bias=0.1)


def test_with_tau_keeps_the_ratios():
    net = network()
    moved = net.with_tau(1.0)
    assert moved.tau == pytest.approx(TAU / TAU.mean())
    assert moved.mean_tau == pytest.approx(1.0)
    assert moved.rest == pytest.approx(net.rest)
    assert moved.bias is not None
    assert net.with_tau(np.full(8, 0.3)).tau == 0.3  # equal ones are one number
    # Twice as slow, with steps twice as long: the same states.
    rng = np.random.default_rng(0)
    X, u = rng.standard_normal((2, 4)), unit(rng, 8)
    slow = Reservoir(net.weights, 2 * TAU, net.gain, bias=net.bias)
    for order in (0, 1):
        fast, slower = (
            unfold(n, n_steps=4, dt=dt, order=order).states(X, u)
            for n, dt in ((net, 0.2), (slow, 0.4))
        )
        assert fast == pytest.approx(slower, rel=1e-11)


@pytest.mark.parametrize("gain", [Gain.sigmoid(3), Gain.softplus(), Gain.relu()])
def test_it_is_saved_and_printed(tmp_path, gain):
    before = network(gain)
    before.save(tmp_path / "it")
    after = load(tmp_path / "it")
    for part in ("weights", "tau", "bias", "rest"):
        np.testing.assert_array_equal(getattr(after, part), getattr(before, part))
    assert after.gain == gain
    assert repr(after) == repr(before)
    assert "tau=0.1 to 0.4" in repr(before)
    assert "bias=" in repr(before)
    assert "bias" in before._repr_html_()
    with pytest.raises(ValueError, match="read-only"):
        before.rest[0] = 1


def test_excitation_and_inhibition():
    net = Reservoir.excitatory_inhibitory(
        60, tau=(0.02, 0.01), gain=Gain.softplus(), bias=(0.2, -0.1), rng=1
    )
    excited, inhibited = net.weights[:, :48], net.weights[:, 48:]
    assert (excited >= 0).all()
    assert (inhibited <= 0).all()
    # Balanced, row by row.
    assert net.weights.sum(1) == pytest.approx(np.zeros(60), abs=1e-13)
    assert np.asarray(net.tau)[:48] == pytest.approx(0.02)
    assert np.asarray(net.tau)[48:] == pytest.approx(0.01)
    assert net.bias is not None
    assert set(net.bias.tolist()) == {0.2, -0.1}
    more = Reservoir.excitatory_inhibitory(60, inhibition=2.0, connectivity=0.5, rng=1)
    up, down = (np.abs(more.weights[:, s].sum(1)) for s in (slice(48), slice(48, None)))
    assert down / up == pytest.approx(np.full(60, 2.0))
    assert (more.weights == 0).mean() == pytest.approx(0.5, abs=0.04)  # 4 σ of 3600 draws
    again = Reservoir.excitatory_inhibitory(60, tau=(0.02, 0.01), rng=1)
    np.testing.assert_array_equal(again.weights, net.weights)


def test_the_bulk_of_a_balanced_network_has_the_radius_asked_for():
    radii = [
        np.abs(
            np.linalg.eigvals(Reservoir.excitatory_inhibitory(300, g=0.6, rng=seed).weights)
        ).max()
        for seed in range(3)
    ]
    # The edge scatters by about 1/√N.
    assert np.mean(radii) == pytest.approx(0.6, abs=0.06)


def test_sparse_random_networks_keep_their_radius():
    drawn = Reservoir.random(300, g=0.6, connectivity=0.1, rng=0)
    assert (drawn.weights != 0).mean() == pytest.approx(0.1, abs=0.004)  # 4 σ of 90,000
    assert np.abs(np.linalg.eigvals(drawn.weights)).max() == pytest.approx(0.6, abs=0.06)
    exact = Reservoir.random(30, connectivity=0.2, spectral_radius=0.9, rng=0)
    assert np.abs(np.linalg.eigvals(exact.weights)).max() == pytest.approx(0.9)


@pytest.mark.parametrize("kind", [Reservoir, EchoStateNetwork])
def test_rings_and_chains(kind):
    ring, chain = kind.cycle(5, 0.8).weights, kind.delay_line(5, 0.8).weights
    y = np.arange(5.0)
    assert (ring @ y).tolist() == pytest.approx((0.8 * np.roll(y, 1)).tolist())
    assert (chain @ y).tolist() == pytest.approx([0, 0, 0.8, 1.6, 2.4000000000000004])


def test_a_delay_line_delays():
    """Without leak, a linear chain is a shift register: neuron k holds the input k ago."""
    chain = EchoStateNetwork.delay_line(4, 1.0, gain=Gain.linear())
    X, u = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), np.array([1.0, 0, 0, 0])
    assert unfold(chain, n_steps=5).states(X, u).tolist() == [[5, 4, 3, 2]]


def test_relu_at_its_kink():
    weights = 0.5 * np.eye(2)
    on_it = Reservoir(weights, gain=Gain.relu())
    assert on_it.spectral_abscissa == pytest.approx(0.25)  # the mean of both slopes
    above = Reservoir(weights, gain=Gain.relu(), bias=[1.0, -1.0])
    assert above.linear_weights.tolist() == [[0.5, 0], [0, 0]]
    X, u = 0.1 * np.ones((1, 3)), np.ones(2)
    # Away from the kink, small states never see it.
    truth = simulate(above, X, u, 0.1)
    assert unfold(above, n_steps=3, dt=0.1).states(X, u) == pytest.approx(truth, abs=1e-9)
    for net in (on_it, above):
        with pytest.raises(ValueError, match=r"`order` = 1 .*relu.*`Dynamics`"):
            unfold(net, n_steps=3, dt=0.1, order=1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Reservoir(np.eye(2) / 2, [1, 2, 3]), ValueError, r"`tau`.*2 neurons"),
        (lambda: Reservoir(np.eye(2) / 2, [1, -2]), ValueError, "`tau`.*-2 for neuron 1"),
        (lambda: Reservoir(np.eye(2) / 2, [1, np.nan]), ValueError, "`tau`.*finite"),
        (
            lambda: Reservoir(np.eye(2) / 2, bias=[1, 2, 3]),
            ValueError,
            "`bias`.*2 neuro",
        ),
        (lambda: Reservoir(np.eye(2) / 2, bias=np.nan), ValueError, "`bias`.*finite"),
        (lambda: Reservoir(np.eye(2) / 2, bias="x"), TypeError, "`bias`"),
        (
            lambda: Reservoir([[1.0]], gain=Gain.softplus(), bias=1.0),
            ValueError,
            "rest state",  # it runs away
        ),
        (lambda: Reservoir.random(9, connectivity=2), ValueError, "`connectivity`.*most 1"),
        (
            lambda: Reservoir.random(2, connectivity=0.01, spectral_radius=0.5, rng=0),
            ValueError,
            "`spectral_radius`.*no loop",
        ),
        (
            lambda: Reservoir.excitatory_inhibitory(9, excitatory=1.0),
            ValueError,
            "`excitatory`.*both kinds",
        ),
        (
            lambda: Reservoir.excitatory_inhibitory(9, inhibition=-1),
            ValueError,
            "`inhibition`.*positive",
        ),
        (lambda: Reservoir.cycle(3, 1.2), UnstableError, "multiply the weights"),
        (lambda: Reservoir.cycle(3, np.inf), ValueError, "`weight`.*finite"),
        (
            lambda: Dynamics(network(), n_steps=3, dt=0.1, start=np.zeros(3)),
            ValueError,
            r"`start`.*\(8,\)",
        ),
        (lambda: unfold(network(), n_steps=3), TypeError, "`dt`"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_nest_says_what_it_does_not_run():
    with pytest.raises(ValueError, match=r"no bias and one time.*engine=\"scipy\""):
        simulate(network(), np.zeros((1, 2)), np.ones(8), 0.1, "nest")
