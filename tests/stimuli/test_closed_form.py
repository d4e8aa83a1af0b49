"""M(u) and Σ(u) of Gaussian classes, against sampling and against each other."""

import numpy as np
import pytest

from greenfold import Gain, GaussianStimuli, Reservoir, SampleStimuli, unfold
from greenfold.math.margins import state_moments
from greenfold.stimuli.gaussian import GaussianMoments

from ..conftest import slope, small, unit
from .nonlinear_cases import CHANNELS, EVERY_READOUT, READOUTS, setting, square


def batch_estimates(unfolding, stimuli, u, M, n_batches, n_per_class):
    """Mean of ζy, and of its square around a given M, for batches of drawn stimuli.

    Around the true M both are unbiased, and their scatter over the batches is their error.
    """
    first, second = [], []
    for index in range(n_batches):
        X, labels = stimuli.sample(n_per_class, rng=1000 + index)
        signed = unfolding.states(X, u) * labels[:, None]
        first.append(signed.mean(0))
        second.append((signed - M).T @ (signed - M) / len(signed))
    return np.array(first), np.array(second)


def in_standard_errors(estimates, expected):
    """Deviation of the mean over batches, in units of its standard error."""
    error = estimates.std(0, ddof=1) / np.sqrt(len(estimates))
    return (estimates.mean(0) - expected) / error


def test_closed_form_against_many_samples():
    """N = 20, K = 10, order 1: within 5 standard errors in each of 20 + 210 entries.

    Over 50 batches the errors follow Student's law, in which 5 of them have a probability
    of 8e-6: one in five hundred for the largest of 230. The root mean square is one. The
    last lines show what such an error resolves.
    """
    reservoir = Reservoir.random(20, gain=Gain.quadratic(0.05), rng=1)
    unfolding = unfold(reservoir, n_steps=10, dt=1.0, order=1, tol=1e-6)
    stimuli = GaussianStimuli.random(10, strength=0.52, rng=2)
    u = unit(np.random.default_rng(3), 20)
    M, Sigma = stimuli.moments(unfolding, u)
    first, second = batch_estimates(unfolding, stimuli, u, M, 50, 4_000)
    upper = np.triu_indices(20)
    for estimates, expected in (
        (first, M),
        (second[:, upper[0], upper[1]], Sigma[upper]),
    ):
        deviation = in_standard_errors(estimates, expected)
        assert np.abs(deviation).max() < 5
        # Entries are correlated: this scatters as for a few free ones only.
        assert 0.3 < np.sqrt((deviation**2).mean()) < 1.7
    # The same judge refuses the linear moments, and those of a fifth less in α.
    linear_M, linear_Sigma = stimuli.moments(unfolding.linear, u)
    assert np.abs(in_standard_errors(first, linear_M)).max() > 20
    assert np.abs(in_standard_errors(second, linear_Sigma)).max() > 20
    weak = unfold(
        Reservoir(reservoir.weights, gain=Gain.quadratic(0.04)),
        n_steps=10,
        dt=1.0,
        order=1,
        tol=1e-6,
    )
    weak_M, _ = stimuli.moments(weak, u)
    assert np.abs(in_standard_errors(first, weak_M)).max() > 5


@CHANNELS
@EVERY_READOUT
def test_closed_form_equals_the__exact_design(readout, n_channels, rng):
    """Two independent routes: kernels and traces, and states at points of a design.

    Both are exact. The points leave rounding times their condition number of about 30.
    """
    unfolding, stimuli = setting(n_channels=n_channels, readout=readout)
    u = unit(rng, 8, n_channels)
    closed = GaussianMoments(stimuli, unfolding, u)
    design = stimuli._exact_design(2)
    other = design.moment_map(unfolding)(u)
    assert np.abs(closed.M - other.M).max() < 1e-12 * np.abs(closed.M).max()
    assert np.abs(closed.Sigma - other.Sigma).max() < 1e-12 * np.abs(closed.Sigma).max()
    v = unit(rng, 8)
    expected = other.pull(v, 10.0)
    assert closed.pull(v, 10.0) == pytest.approx(
        expected, abs=1e-11 * np.abs(expected).max()
    )


@pytest.mark.parametrize(
    ("order", "gain", "readout"),
    [
        (1, Gain.quadratic(0.6), 1.7),  # inside a step
        (2, Gain.quadratic(0.6), None),
        (3, Gain.quadratic(0.6), None),
        (2, Gain.quadratic(0.6), READOUTS["weights"]),
        (1, Gain.tanh(degree=3), None),
        (1, Gain.polynomial([0, 0.7, 0.4, -0.1]), 1.7),
    ],
)
def test_design_against_sampling(order, gain, readout):
    """8000 samples: within 5 standard errors in each of 8 + 36 entries (see above).

    The moments are polynomials in α, so that they can be compared where it is large, and
    where the same judge refuses the order below.
    """
    unfolding, stimuli = setting(order, readout=readout, gain=gain)
    u = unit(np.random.default_rng(4), 8)
    M, Sigma = stimuli.moments(unfolding, u)
    first, second = batch_estimates(unfolding, stimuli, u, M, 40, 100)
    assert np.abs(in_standard_errors(first, M)).max() < 5
    assert np.abs(in_standard_errors(second, Sigma)).max() < 5
    below, _ = setting(order - 1, readout=readout, gain=gain)
    lower = stimuli.moments(below, u)
    assert np.abs(in_standard_errors(second, lower[1])).max() > 6


def test_orders_agree_where_the_nonlinearity_is_weak(rng):
    """Order 2 adds α² to M and Σ: the moments of orders 1 and 2 differ as α²."""
    alphas, u = np.array([0.01, 0.02, 0.04]), unit(rng, 8)
    apart = []
    for alpha in alphas:
        one, stimuli = setting(1, alpha=alpha)
        two, _ = setting(2, alpha=alpha)
        apart.append(np.abs(stimuli.moments(one, u)[1] - stimuli.moments(two, u)[1]).max())
    assert slope(alphas, apart) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("alpha", [0.05, 1.0, 30.0])
def test_covariance_stays_positive(order, alpha, rng):
    """Whatever α: Σ without its O(α²) part turns negative, the whole one does not."""
    unfolding, stimuli = setting(order, alpha=alpha)
    u = unit(rng, 8)
    _, Sigma = stimuli.moments(unfolding, u)
    values = np.linalg.eigvalsh(Sigma)
    # Rounding only; a design of order 2 subtracts MMᵀ, which rounds more.
    assert values[0] > -1e-12 * values[-1]
    samples = SampleStimuli(*stimuli.sample(6, rng=0), normalize=None)
    values = np.linalg.eigvalsh(samples.moments(unfolding, u)[1])
    assert values[0] > -1e-14 * values[-1]


def test_classes_that_differ_in_their_covariance_only(rng):
    """μ = 0: a linear network sees nothing, an order 1 sees tr(C χ)."""
    _, drawn = setting()
    stimuli = GaussianStimuli(np.zeros(5), drawn.psi, drawn.chi)
    unfolding, _ = setting()
    u, v = unit(rng, 8), unit(rng, 8)
    C = square(unfolding.kernels(u, v))
    M, _ = stimuli.moments(unfolding, u)
    assert M @ v == pytest.approx(np.trace(C @ drawn.chi), rel=1e-12)
    assert stimuli.moments(unfolding.linear, u)[0] == pytest.approx(0)


def test_singular_covariances_are_accepted(rng):
    psi = np.zeros((5, 5))
    psi[0, 0] = 1.0
    stimuli = GaussianStimuli(np.ones(5), psi)
    unfolding, _ = setting()
    u = unit(rng, 8)
    X, labels = stimuli.sample(20_000, rng=5)
    M, Sigma = state_moments(unfolding.states(X, u), labels)
    found = stimuli.moments(unfolding, u)
    # 40 000 draws leave 1/√40 000 = 0.5 %, here times five.
    assert found[0] == pytest.approx(M, abs=0.025 * np.abs(M).max())
    assert found[1] == pytest.approx(Sigma, abs=0.025 * np.abs(Sigma).max())


def test_too_large_a_design_is_refused_with_a_way_out(rng):
    unfolding = unfold(small(Gain.quadratic(0.1), n=4), n_steps=140, dt=0.1, order=2)
    stimuli = GaussianStimuli.random(140, rng=0)
    with pytest.raises(
        MemoryError, match=r"140 values and degree 3 .* points, more than.*SampleStimuli"
    ):
        stimuli.moments(unfolding, np.ones(4))


@pytest.mark.parametrize(("lowest", "accepted"), [(-1e-5, False), (-5e-7, True)])
def test_a_negative_variance_in_single_precision(lowest, accepted):
    """Along such a direction, pairs lay above the upper bound."""
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    psi = ((basis * [1.0, 0.5, 0.2, lowest]) @ basis.T).astype(np.float32)
    if not accepted:
        with pytest.raises(ValueError, match="`psi . chi`.*semi-definite.*-1e-05"):
            GaussianStimuli(np.ones(4), psi)
        return
    stimuli = GaussianStimuli(np.ones(4), psi)
    assert np.linalg.eigvalsh(stimuli.psi)[0] > -1e-14
    np.testing.assert_allclose(stimuli.psi, psi, atol=1e-6)
