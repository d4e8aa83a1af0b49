import numpy as np
import pytest

from greenfold import Gain, Reservoir, simulate, unfold
from greenfold.simulation import _is_stiff

from .conftest import slope, small, unit


def test_a_single_neuron_has_a_textbook_solution():
    """τẏ = −(1−w)y + x: a judge for the judge."""
    reservoir = Reservoir([[0.6]], tau=0.5)
    states = simulate(reservoir, [[2.0, -1.0]], [1.0], 0.7, trajectories=True)
    decay = np.exp(-0.4 / 0.5 * 0.7)
    first = 2.0 / 0.4 * (1 - decay)
    second = first * decay - 1.0 / 0.4 * (1 - decay)
    assert states[0, :, 0] == pytest.approx([first, second], rel=1e-9)


def test_quadratic_neuron_has_a_riccati_solution():
    """τẏ = −y + w(y + αy²) + x with one neuron, roots y₁, y₂ of the right-hand side."""
    w, alpha, x, tau, time = 0.5, 0.3, 0.4, 0.25, 1.1
    a, b = w * alpha, w - 1  # τẏ = a y² + b y + x
    root = np.sqrt(b**2 - 4 * a * x + 0j)
    y1, y2 = (-b - root) / (2 * a), (-b + root) / (2 * a)
    growth = np.exp(a * (y1 - y2) * time / tau)
    # From y(0) = 0: (y − y1)/(y − y2) = (y1/y2) growth.
    ratio = (y1 / y2) * growth
    expected = ((y1 - ratio * y2) / (1 - ratio)).real
    reservoir = Reservoir([[w]], tau=tau, gain=Gain.quadratic(alpha))
    assert simulate(reservoir, [[x]], [1.0], time)[0, 0] == pytest.approx(
        expected, rel=1e-9
    )


@pytest.mark.parametrize("gain", [Gain.linear(), Gain.tanh()], ids=["linear", "tanh"])
def test_stiff_network(gain, rng):
    """Fast neurons follow their input at once, y = x/(1 − w), among ordinary ones."""
    slow = small(n=4).weights
    weights = np.block(
        [[slow, np.zeros((4, 3))], [0.1 * rng.standard_normal((3, 4)), -1e5 * np.eye(3)]]
    )
    stiff = Reservoir(weights, 0.25, gain)
    X, u = rng.standard_normal((3, 4)), unit(rng, 7)
    # Explicitly it would be 30,000 steps of twelve stages in each step of the stimulus.
    assert _is_stiff(stiff, 0.5)
    assert not _is_stiff(small(), 5.0)
    found = simulate(stiff, X, u, 0.5, trajectories=True)
    alone = simulate(Reservoir(slow, 0.25, gain), X, u[:4], 0.5, trajectories=True)
    assert found[..., :4] == pytest.approx(alone, rel=1e-7, abs=1e-9)
    # At the end of a step, to the order of the ratio of the rates, 1e-5.
    at_rest = (X[..., None] * u[4:] + gain(alone) @ weights[4:, :4].T) / (1 + 1e5)
    assert found[..., 4:] == pytest.approx(at_rest, rel=1e-3, abs=1e-3 * at_rest.std())


def test_a_stiff_network_alone():
    """W = −1e5 I with a linear gain: y = x (1 − e^(−rt))/(1 + 1e5)."""
    reservoir = Reservoir(-1e5 * np.eye(5), 1.0)
    u = np.arange(1.0, 6.0)
    found = simulate(reservoir, [[2.0, -1.0]], u, 1.0, trajectories=True)
    expected = np.array([2.0, -1.0])[:, None] * u / (1 + 1e5)
    assert found[0] == pytest.approx(expected, rel=1e-8)


def test_divergence_is_reported_with_its_place():
    reservoir = Reservoir([[0.9]], gain=Gain.quadratic(1.0))
    with pytest.raises(FloatingPointError, match=r"diverges in step 1 of .*case 0"):
        simulate(reservoir, [[0.0, 50.0]], [1.0], 5.0)


def test_bad_input_is_named():
    reservoir = small()
    with pytest.raises(ValueError, match="`engine`.*'euler'"):
        simulate(reservoir, np.zeros((1, 2)), np.ones(12), 0.1, "euler")
    with pytest.raises(ValueError, match="`dt`.*positive"):
        simulate(reservoir, np.zeros((1, 2)), np.ones(12), -0.1)
    with pytest.raises(ValueError, match="`X` must be finite"):
        simulate(reservoir, [[0.0, np.inf]], np.ones(12), 0.1)
    with pytest.raises(ValueError, match="`u`.*12 rows"):
        simulate(reservoir, np.zeros((1, 2)), np.ones(5), 0.1)
    with pytest.raises(ValueError, match=r"`X`.*\(n_cases, n_steps\)"):
        simulate(reservoir, 3.0, np.ones(12), 0.1)
    with pytest.raises(TypeError, match="`reservoir`"):
        simulate(np.eye(3), np.zeros((1, 2)), np.ones(3), 0.1)  # type: ignore[arg-type]


def test_rest_stays_at_rest():
    assert not simulate(small(Gain.tanh()), np.zeros((2, 3)), np.ones(12), 0.4).any()


@pytest.mark.needs("nest")
def test_nest_runs_the_linear_network(ecg_like, rng):
    """The paper's size; the error of NEST's exponential Euler is linear in its step."""
    reservoir = Reservoir.random(100, g=0.9, tau=0.25, rng=1)
    u, X, dt = unit(rng, 100), ecg_like[:1, ::7], 0.5
    exact = unfold(reservoir, n_steps=20, dt=dt).states(X, u, trajectories=True)
    resolutions = np.array([0.01, 0.005, 0.0025])
    errors = []
    for resolution in resolutions:
        found = simulate(
            reservoir, X, u, dt, "nest", resolution=resolution, trajectories=True
        )
        errors.append(np.abs(found - exact).max() / np.abs(exact).max())
    assert errors[-1] <= 0.01
    assert slope(resolutions, errors) == pytest.approx(1, abs=0.1)


@pytest.mark.needs("nest")
@pytest.mark.parametrize("gain", [Gain.linear(), Gain.tanh()], ids=lambda gain: gain.name)
def test_nest_agrees_with_scipy_on_strong_two_channel_input(gain, rng):
    reservoir = small(gain, n=10)
    X, u = rng.standard_normal((2, 2, 6)), 3 * unit(rng, 10, 2)
    truth = simulate(reservoir, X, u, 0.5, trajectories=True)
    errors = [
        np.abs(
            simulate(reservoir, X, u, 0.5, "nest", resolution=h, trajectories=True) - truth
        )
        .max()
        .item()
        / np.abs(truth).max()
        for h in (0.005, 0.0025)
    ]
    assert errors[1] < 0.01
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)


@pytest.mark.needs("nest")
def test_nest_refuses_other_gains():
    with pytest.raises(ValueError, match=r"engine=\"scipy\".*quadratic\(alpha=0.1\)"):
        simulate(small(Gain.quadratic(0.1)), np.zeros((1, 2)), np.ones(12), 0.1, "nest")
