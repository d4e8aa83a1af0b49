"""`Dynamics` against `simulate`, its gradient by remainders, its optimum by fresh draws."""

import importlib

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Dynamics,
    Gain,
    GaussianStimuli,
    RandomDraws,
    Reservoir,
    SampleStimuli,
    optimize,
    simulate,
)
from greenfold._base.arrays import namespace, to_host
from greenfold.math.margins import SoftMargin, gaussian_soft_margin, state_moments
from greenfold.math.sphere import maximize_on_sphere
from greenfold.optimizers.linear import ascend

from ..conftest import slope, small, unit

ARCTAN = Gain.custom(lambda y: namespace(y).atan(y), lambda y: 1 / (1 + y**2), "arctan")
GAINS = [Gain.tanh(), Gain.biased_tanh(0.5), Gain.quadratic(0.05), ARCTAN]


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("gain", GAINS, ids=lambda gain: gain.name)
def test_states_are_within_the_tolerance(gain, tol, rng):
    reservoir = small(gain, n=6)
    X, u = 2 * rng.standard_normal((4, 2, 3)), unit(rng, 6, 2)
    truth = simulate(reservoir, X, u, 0.2, trajectories=True, rtol=1e-10)
    dynamics = Dynamics(reservoir, n_steps=3, dt=0.2, tol=tol)
    found = dynamics.states(X, u, trajectories=True)
    assert np.abs(found - truth).max() <= tol * np.abs(truth).max()
    assert dynamics.step_error is not None
    assert dynamics.step_error.error <= tol
    weights = np.array([0.5, 0.0, 1.0])
    summed = dynamics.with_readout(weights).states(X, u)
    assert summed == pytest.approx(
        np.einsum("k,ckn->cn", weights, truth), abs=2 * tol * np.abs(truth).max()
    )


@pytest.mark.parametrize(
    "library", ["numpy", pytest.param("torch", marks=pytest.mark.needs("torch"))]
)
@pytest.mark.parametrize("readout", [None, 0.5, np.array([1.0, 0.0, -1.0])], ids=str)
def test_gradient(readout, library, rng):
    dynamics = Dynamics(small(GAINS[1], n=6), n_steps=3, dt=0.2, readout=readout, tol=1e-4)
    X = importlib.import_module(library).asarray(2 * rng.standard_normal((4, 3)))
    u, v, direction = unit(rng, 6), unit(rng, 6), unit(rng, 6)
    z = to_host(dynamics.states(X, u)) @ v
    u_bar, v_bar = dynamics.pullback(X, u, np.cos(z), v)
    assert type(u_bar) is type(X)
    assert u_bar.shape == v_bar.shape == (6,)
    by_states = dynamics.pullback(X, u, np.outer(np.cos(z), v))
    assert to_host(by_states) == pytest.approx(to_host(u_bar), abs=1e-12)
    sizes = np.array([1e-1, 3e-2, 1e-2])
    # Prepared, for one number of sub-steps at every projection.
    at = dynamics.prepare(X)
    first = float(to_host(u_bar) @ direction)

    def value(point):
        return np.sin(to_host(at(point).states) @ v).sum()

    rest = [abs(value(u + e * direction) - value(u) - e * first) for e in sizes]
    assert slope(sizes, rest) >= 1.9


def refitted(reservoir, stimuli, u, eta, rng_seed):
    """κ on fresh simulated draws, with the readout fitted to other simulated draws."""
    moments = []
    for seed in (rng_seed, rng_seed + 1):
        X, labels = stimuli.sample(1000, rng=seed)
        moments.append(state_moments(simulate(reservoir, X, u, 0.25, rtol=1e-5), labels))
    v = maximize_on_sphere(moments[0][0], eta * moments[0][1]).v
    M, Sigma = moments[1]
    return gaussian_soft_margin(M, Sigma, v, eta).value


def test_optimum_of_the_true_network_beats_the_others():
    reservoir = small(Gain.biased_tanh(0.5), n=8)
    stimuli = GaussianStimuli.random(4, strength=0.1, n_draws=400, rng=1)
    dynamics = Dynamics(reservoir, n_steps=4, dt=0.25, tol=1e-3)
    best = optimize(dynamics, stimuli, method=Ascent(2, max_evaluations=30))
    assert best.validity is None
    assert best.step_error is not None
    assert best.fresh_error is not None
    assert best.step_error <= 1e-3
    assert best.fresh_margin == pytest.approx(best.soft_margin, abs=4 * best.fresh_error)
    assert "on fresh stimuli" in str(best)
    linear = optimize(dynamics.linear, stimuli)
    drawn = unit(np.random.default_rng(0), 8)
    ours, theirs, random = (
        refitted(reservoir, stimuli, u, 10.0, 5) for u in (best.u, linear.u, drawn)
    )
    assert ours > theirs
    assert ours > random


def test_linear_gain_is_certified():
    stimuli = GaussianStimuli.random(4, rng=1)
    best = optimize(Dynamics(small(n=8), n_steps=4, dt=0.25), stimuli)
    assert best.status == "certified"


def test_labelled_series(rng):
    X, labels = GaussianStimuli.random(4, strength=2.0, rng=1).sample(20, rng=0)
    samples = SampleStimuli(X, labels, normalize=None)
    dynamics = Dynamics(small(Gain.tanh(), n=6), n_steps=4, dt=0.25, tol=1e-3)
    best = optimize(dynamics, samples, method=Ascent(2, max_evaluations=20))
    drawn = optimize(dynamics, samples, method=RandomDraws(3), rng=0)
    assert best.soft_margin > drawn.soft_margin
    assert best.fresh_margin is None


def test_a_step_of_a_hundred_time_constants(rng):
    """The network has settled long before its end, and the states are still right."""
    reservoir = small(Gain.tanh(), n=6)
    X, u, dt = rng.standard_normal((3, 2)), unit(rng, 6), 100 * reservoir.mean_tau
    dynamics = Dynamics(reservoir, n_steps=2, dt=dt, tol=1e-6)
    truth = simulate(reservoir, X, u, dt)
    found = dynamics.states(X, u)
    assert np.abs(found - truth).max() <= 1e-6 * np.abs(truth).max()


def test_an_unstable_network_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="`weights` make the network unstable.*1.5"):
        Dynamics(Reservoir(1.5 * np.eye(4), gain=Gain.tanh()), n_steps=2, dt=0.1)


def test_fixed_sub_steps(rng):
    dynamics = Dynamics(small(Gain.tanh(), n=6), n_steps=3, dt=0.5, tol=1e-8)
    X, u = 2 * rng.standard_normal((4, 3)), unit(rng, 6)
    planned = dynamics.states(X, u)
    assert dynamics.step_error is not None
    n_sub = dynamics.step_error.n_sub
    assert n_sub > 1
    np.testing.assert_array_equal(dynamics.states(X, u, n_sub=n_sub), planned)
    paths = dynamics.states(X, u, trajectories=True, n_sub=n_sub)
    assert paths[:, -1] == pytest.approx(planned, rel=1e-12, abs=1e-14)
    assert not np.allclose(dynamics.states(X, u, n_sub=1), planned, rtol=1e-10)
    with pytest.raises(ValueError, match="`n_sub`"):
        dynamics.states(X, u, n_sub=0)


def test_another_tolerance(rng):
    dynamics = Dynamics(small(Gain.tanh(), n=6), n_steps=3, dt=0.5, readout=0.7, tol=1e-8)
    coarse = dynamics.with_tol(1e-2)
    X, u = 2 * rng.standard_normal((4, 3)), unit(rng, 6)
    near, exact = coarse.states(X, u), dynamics.states(X, u)
    assert coarse.step_error is not None
    assert dynamics.step_error is not None
    assert coarse.step_error.n_sub < dynamics.step_error.n_sub
    assert 1e-8 < np.abs(near - exact).max() / np.abs(exact).max() <= 1e-2


def test_ascent_turns_where_a_network_diverges():
    class Walled:
        def evaluate(self, u):
            if u[0, 0] > 0.9:
                raise FloatingPointError("diverges")
            return u[:, 0], SoftMargin(u[0, 0], u[0, 0], 0.0), np.array([[1.0], [0.0]])

    found = ascend(Walled(), np.array([[0.6], [0.8]]), max_iter=40, tol=1e-7)
    assert 0.6 < found.margin.value <= 0.9
    with pytest.raises(FloatingPointError):
        ascend(Walled(), np.array([[1.0], [0.0]]), max_iter=40, tol=1e-7)


def test_bad_input_is_named(rng):
    dynamics = Dynamics(small(Gain.quadratic(0.5), n=6), n_steps=3, dt=0.5)
    X, u = rng.standard_normal((4, 3)), unit(rng, 6)
    with pytest.raises(ValueError, match="`X` must have n_steps = 3"):
        dynamics.states(X[:, :2], u)
    with pytest.raises(ValueError, match="`u` must have one row per neuron"):
        dynamics.states(X, u[:5])
    with pytest.raises(ValueError, match="`cotangent` must have shape"):
        dynamics.pullback(X, u, np.ones(3), unit(rng, 6))
    with pytest.raises(FloatingPointError, match=r"diverges in step \d of series \d"):
        dynamics.states(1e4 * X, u)
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match="`X` must be finite.*case 1"):
        dynamics.states(X, u)
    with pytest.raises(ValueError, match="`tol`"):
        Dynamics(small(n=6), n_steps=3, dt=0.5, tol=0)


@pytest.mark.parametrize("gain", [Gain.tanh(), Gain.sigmoid(), Gain.softplus()])
def test_a_bias_gives_an_odd_gain_its_square(gain, rng):
    """The series at rest decides: cut after its square, that of tanh at zero is a line."""
    reservoir = Reservoir.random(8, 0.6, tau=1.0, gain=gain, rng=0, bias=0.5)
    dynamics = Dynamics(reservoir, n_steps=4, dt=0.7)
    quadratic = dynamics.quadratic
    assert quadratic is not None
    assert (quadratic.order, quadratic.degree) == (1, 2)
    # The error of a state cut after its square is of the third order in the stimulus.
    X, u = rng.standard_normal((5, 4)), unit(rng, 8)
    errors = [
        np.abs(quadratic.states(s * X, u) - dynamics.with_tol(1e-11).states(s * X, u)).max()
        for s in (0.02, 0.01)
    ]
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.1)
    best = optimize(dynamics, SampleStimuli(*separable(rng)), rng=0)
    assert best.status == "converged"


def separable(rng):
    labels = np.repeat([-1, 1], 20)
    return 0.3 * rng.standard_normal((40, 4)) + labels[:, None] * [
        0.2,
        0.8,
        0.1,
        0.5,
    ], labels
