"""The integrator against DOP853: exact where it should be, order 4, its tolerance kept."""

from dataclasses import replace

import numpy as np
import pytest

from greenfold.dynamics.integration import plan_substeps
from greenfold.dynamics.steppers import ExponentialStep
from greenfold.unfolding.walk import Walk

from ..conftest import slope
from .problems import problem, relative_error


@pytest.mark.parametrize("tau", [0.25, np.linspace(0.02, 1.0, 12)], ids=["one", "each"])
@pytest.mark.parametrize("dt_over_tau", [0.1, 4.0])
def test_a_linear_network_is_exact_in_one_step(dt_over_tau, tau):
    """Stages cancel where f = 0; what remains is the propagator, exact to rounding."""
    case = problem("quadratic", dt_over_tau=dt_over_tau, tau=tau, n_channels=2)
    linear = replace(case, function=lambda y: y, derivative=np.ones_like)
    found = Walk(linear.make(1), linear.X, linear.u).trajectories()
    assert relative_error(found, linear.truth()) < 1e-10  # 100 times the judge's rtol


@pytest.mark.parametrize("dt_over_tau", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("gain", ["tanh", "biased tanh", "quadratic", "custom", "sigmoid"])
def test_order_four(gain, dt_over_tau):
    """Sub-steps short enough for the asymptotic regime, long enough for the judge."""
    case = problem(gain, dt_over_tau=dt_over_tau, n_cases=3, n_steps=3).scaled(1.0)
    truth = case.truth(rtol=1e-13)
    counts = np.array([1, 2, 4]) * max(2, round(4 * dt_over_tau))
    errors = [
        relative_error(Walk(case.make(int(k)), case.X, case.u).trajectories(), truth)
        for k in counts
    ]
    assert errors[-1] > 1e-12
    assert slope(1 / counts, errors) >= 3.7, errors


@pytest.mark.parametrize(
    ("dt_over_tau", "n_channels"), [(0.1, 1), (0.5, 2), (1.5, 1), (4.0, 2)]
)
@pytest.mark.parametrize("gain", ["tanh", "biased tanh", "quadratic", "custom"])
def test_the_tolerance_is_kept(gain, dt_over_tau, n_channels):
    """On all series, some of which the step control has not seen."""
    case = problem(
        gain, dt_over_tau=dt_over_tau, n_channels=n_channels, n_cases=24, n_steps=4
    ).scaled(1.2)
    truth = case.truth(rtol=1e-11)
    for tol in (1e-4, 1e-6, 1e-8):
        planned = plan_substeps(case.make, case.X, case.u, tol)
        found = Walk(case.make(planned.n_sub), case.X, case.u).trajectories()
        error = relative_error(found, truth)
        assert error <= tol
        # Half of `tol` is left to the series that were not looked at.
        assert planned.error <= 0.5 * tol
        # What it reports is the error, not a bound far above or below it; 1e-10 is what
        # the judge leaves open.
        assert error == pytest.approx(planned.error, rel=0.6, abs=1e-10)


@pytest.mark.parametrize("gain", ["tanh", "sigmoid"])
def test_time_constants_and_biases_of_each_neuron(gain, rng):
    case = problem(
        gain,
        tau=np.repeat([0.1, 0.4], 6),
        bias=rng.normal(0, 0.5, 12),
        dt_over_tau=0.6,
        n_channels=2,
    ).scaled(1.0)
    assert np.abs(case.rest).max() > 0.1
    planned = plan_substeps(case.make, case.X, case.u, 1e-8)
    found = Walk(case.make(planned.n_sub), case.X, case.u).trajectories()
    assert relative_error(found, case.truth()) < 1e-8


@pytest.mark.parametrize("time", [0.03, 0.13, 0.61, 0.74])
def test_read_inside_a_step(time):
    case = problem(dt_over_tau=0.5).scaled(1.0)
    planned = plan_substeps(lambda k: case.make(k, time=time), case.X, case.u, 1e-8)
    found = Walk(case.make(planned.n_sub, time=time), case.X, case.u).states
    truth = case.truth(time=time)
    # The tolerance is relative to the largest state on the way there.
    assert np.abs(found - truth[:, -1]).max() < 1e-8 * np.abs(truth).max()


def test_weighted_readout_is_the_weighted_sum_of_the_trajectory(rng):
    case = problem(n_steps=6)
    weights = np.array([0.5, 0.0, -1.0, 2.0, 0.0, 0.0])
    path = Walk(case.make(2, weights=np.ones(6)), case.X, case.u).trajectories()
    found = Walk(case.make(2, weights=weights), case.X, case.u).states
    expected = np.tensordot(path, weights, axes=(1, 0))
    assert found == pytest.approx(expected, rel=1e-13, abs=1e-14)


def test_a_network_at_rest_stays_there():
    case = problem("sigmoid", bias=0.3)
    found = Walk(case.make(1), np.zeros_like(case.X), case.u).states
    assert np.array_equal(found, np.zeros_like(found))


@pytest.mark.parametrize("silent", [False, True])
def test_series_that_begin_elsewhere(silent):
    """From zero instead of from rest: the judge, begun there, sees the same."""
    case = problem("sigmoid", bias=0.4).scaled(0.5)
    if silent:
        case = replace(case, X=np.zeros_like(case.X))

    def make(n_sub):
        return replace(case.make(n_sub), start=-case.rest)

    planned = plan_substeps(make, case.X, case.u, 1e-8)
    found = Walk(make(planned.n_sub), case.X, case.u).trajectories() + case.rest
    truth = replace(case, rest=np.zeros(12)).truth()
    assert np.abs(found - truth).max() < 1e-8 * np.abs(truth).max()


@pytest.mark.parametrize(
    ("dt_over_tau", "every", "bound"), [(0.29, 1, 8e-8), (1.4, 5, 4e-5), (3.6, 12, 8e-4)]
)
def test_one_step_a_stimulus_step_on_heartbeats(dt_over_tau, every, bound, ecg_like):
    """The accuracy that often lets one step do: N = 100, states of length up to 1, tanh.

    The bounds are those of the theory page, computed with another implementation. White
    stimuli, which jump at every step, err up to ten times more at short steps.
    """
    X = ecg_like[:4, None, ::every]
    case = problem("tanh", n=100, n_steps=X.shape[2], dt_over_tau=dt_over_tau)
    for _ in range(3):
        case = replace(case, X=X)
        X = X / np.linalg.norm(case.truth(rtol=1e-6), axis=2).max()
    found = Walk(case.make(1), case.X, case.u).trajectories()
    assert np.abs(found - case.truth(rtol=1e-11)).max() < bound


def test_a_step_takes_seven_products_and_its_adjoint_seven():
    """What the benchmark counts with; a tableau written out would take ten."""
    made = []

    class Watched(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            plain = [np.asarray(i) if isinstance(i, Watched) else i for i in inputs]
            if ufunc is np.matmul:
                made.append(plain[1].shape)
            return getattr(ufunc, method)(*plain, **options)

    step = problem("tanh").make(1).step
    assert isinstance(step, ExponentialStep)
    names = ("E", "P", "Q2", "Q3", "R", "S")
    step = replace(step, **{name: getattr(step, name).view(Watched) for name in names})
    slopes = []
    step.advance(np.ones((3, 12)), np.ones((3, 12)), slopes)
    assert made == [(12, 12)] * ExponentialStep.n_products
    step.retreat(np.ones((3, 12)), slopes)
    assert made == [(12, 12)] * 2 * ExponentialStep.n_products
