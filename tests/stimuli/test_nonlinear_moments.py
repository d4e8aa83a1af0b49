"""M(u) and Σ(u) beyond the linear order, against sampling and against each other."""

import numpy as np
import pytest

from greenfold import Gain, GaussianStimuli, Reservoir, SampleStimuli, unfold
from greenfold.margins import gaussian_soft_margin, state_moments
from greenfold.optimizers.alternating_nonlinear import QuadraticInput
from greenfold.optimizers.nonlinear import NonlinearProblem
from greenfold.stimuli.closed_form import GaussianMoments, gaussian_design
from greenfold.unfolding import all_neurons

from ..conftest import slope, small, unit

#: Readouts of five steps of 0.5, at the end of a step.
READOUTS = {
    "end": None,
    "early": 1.5,
    "weights": np.array([0.0, 1.0, -0.5, 0.0, 2.0]),
}
EVERY_READOUT = pytest.mark.parametrize("readout", READOUTS.values(), ids=READOUTS.keys())
CHANNELS = pytest.mark.parametrize("n_channels", [1, 2])


def setting(order=1, n_channels=1, readout=None, alpha=0.2, n=8, gain=None):
    """A small network at a strong non-linearity, with Gaussian stimuli of five steps."""
    reservoir = small(gain or Gain.quadratic(alpha), n=n)
    unfolding = unfold(reservoir, n_steps=5, dt=0.5, order=order)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    return unfolding, GaussianStimuli.random(5, n_channels=n_channels, rng=1)


def covariances(stimuli):
    return stimuli.psi + stimuli.chi, stimuli.psi - stimuli.chi


def square(kernel):
    """C as a matrix over flat (channel, step) indices."""
    assert kernel.quadratic is not None
    return kernel.quadratic.reshape(kernel.linear.size, -1)


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


# --- Gaussian classes ---------------------------------------------------------------


def test_closed_form_against_a_million_samples():
    """N = 50, K = 10, order 1: within 5 standard errors in each of 50 + 1275 entries.

    Over 50 batches the errors follow Student's law, in which 5 of them have a probability
    of 8e-6: one in a hundred for the largest of 1325. The root mean square is one. The
    last lines show what such an error resolves.
    """
    reservoir = Reservoir.random(50, gain=Gain.quadratic(0.05), rng=1)
    unfolding = unfold(reservoir, n_steps=10, dt=1.0, order=1, tol=1e-6)
    stimuli = GaussianStimuli.random(10, strength=0.52, rng=2)
    u = unit(np.random.default_rng(3), 50)
    M, Sigma = stimuli.moments(unfolding, u)
    first, second = batch_estimates(unfolding, stimuli, u, M, 50, 10_000)
    upper = np.triu_indices(50)
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
def test_closed_form_equals_the_exact_design(readout, n_channels, rng):
    """Two independent routes: kernels and traces, and states at points of a design.

    Both are exact. The points leave rounding times their condition number of about 30.
    """
    unfolding, stimuli = setting(n_channels=n_channels, readout=readout)
    u = unit(rng, 8, n_channels)
    closed = GaussianMoments(stimuli.mu, covariances(stimuli), unfolding, u)
    design = gaussian_design(stimuli.mu, covariances(stimuli), (n_channels, 5), 2)
    other = design.at(unfolding, u)
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
    """16 000 samples: within 5 standard errors in each of 8 + 36 entries (see above).

    The moments are polynomials in α, so that they can be compared where it is large, and
    where the same judge refuses the order below.
    """
    unfolding, stimuli = setting(order, readout=readout, gain=gain)
    u = unit(np.random.default_rng(4), 8)
    M, Sigma = stimuli.moments(unfolding, u)
    first, second = batch_estimates(unfolding, stimuli, u, M, 40, 200)
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
    X, labels = stimuli.sample(200_000, rng=5)
    M, Sigma = state_moments(unfolding.states(X, u), labels)
    found = stimuli.moments(unfolding, u)
    # 400 000 draws leave 1/√400 000 = 0.16 %, here times five.
    assert found[0] == pytest.approx(M, abs=0.008 * np.abs(M).max())
    assert found[1] == pytest.approx(Sigma, abs=0.008 * np.abs(Sigma).max())


def test_full_kernels_are_those_of_each_neuron(rng):
    """Row i of the kernels of all neurons is the kernel collapsed with v = e_i."""
    unfolding, _ = setting(n_channels=2, readout=1.5)
    u = unit(rng, 8, 2)
    a, C = unfolding.kernels_of_all(u).full()
    for neuron in (0, 7):
        kernel = unfolding.kernels(u, np.eye(8)[neuron])
        assert a[:, neuron] == pytest.approx(kernel.linear.ravel(), abs=1e-14)
        assert C[:, :, neuron] == pytest.approx(square(kernel), abs=1e-14)


def test_too_large_a_design_is_refused_with_a_way_out(rng):
    unfolding = unfold(small(Gain.quadratic(0.1), n=4), n_steps=140, dt=0.1, order=2)
    stimuli = GaussianStimuli.random(140, rng=0)
    with pytest.raises(
        MemoryError, match=r"140 values and degree 3 .* points, more than.*SampleStimuli"
    ):
        stimuli.moments(unfolding, np.ones(4))


# --- labelled series ----------------------------------------------------------------


@pytest.mark.parametrize("n_cases", [40, 400])  # stepping, and kernels of all neurons
@pytest.mark.parametrize("class_weight", ["balanced", None, {-1: 1.0, 1: 5.0}])
@pytest.mark.parametrize("order", [1, 2])
@CHANNELS
def test_samples_have_the_moments_of_their_states(
    order, n_channels, class_weight, n_cases, rng
):
    unfolding, _ = setting(order, n_channels)
    labels = np.where(rng.random(n_cases) < 0.3, -1, 1)
    X = rng.standard_normal((n_cases, n_channels, 5)) + 0.5 * labels[:, None, None]
    stimuli = SampleStimuli(X, labels, class_weight=class_weight)
    u = unit(rng, 8, n_channels)
    weights = {
        "balanced": np.where(
            labels < 0, 0.5 / (labels < 0).sum(), 0.5 / (labels > 0).sum()
        ),
        "none": np.full(n_cases, 1 / n_cases),
        "dict": np.where(
            labels < 0, 1 / 6 / (labels < 0).sum(), 5 / 6 / (labels > 0).sum()
        ),
    }["dict" if isinstance(class_weight, dict) else str(class_weight).lower()]
    expected = state_moments(unfolding.states(stimuli.transform(X), u), labels, weights)
    found = stimuli.moments(unfolding, u)
    # Rounding: the two routes to the states agree to about 1e-13.
    assert found[0] == pytest.approx(expected[0], abs=1e-12)
    assert found[1] == pytest.approx(expected[1], abs=1e-12)


def test_products_beyond_the_memory_bound_are_not_kept(rng, monkeypatch):
    from greenfold.stimuli import design

    unfolding, stimuli = setting()
    samples = SampleStimuli(*stimuli.sample(200, rng=0))
    u, v = unit(rng, 8, 1), unit(rng, 8)
    kept = samples.moment_map(unfolding)(u)
    monkeypatch.setattr(design, "_PRODUCT_BYTES", 1)
    fresh = samples.moment_map(unfolding)(u)
    assert isinstance(kept, design.DesignMoments)
    assert isinstance(fresh, design.DesignMoments)
    assert kept.design._kept
    assert not fresh.design._kept
    assert fresh.Sigma == pytest.approx(kept.Sigma, abs=1e-12)
    assert fresh.pull(v, 3.0) == pytest.approx(kept.pull(v, 3.0), abs=1e-11)


def test_labelled_second_moment_of_samples(rng):
    """⟨ζxxᵀ⟩ from the class moments is that of the series."""
    X, labels = rng.standard_normal((30, 2, 5)), np.repeat([1, 1, -1], 10)
    stimuli = SampleStimuli(X, labels, class_weight=None)
    flat = stimuli.transform(X).reshape(30, -1)
    expected = (flat * labels[:, None]).T @ flat / 30
    assert stimuli.labelled_second_moment == pytest.approx(expected, abs=1e-13)


# --- gradients ----------------------------------------------------------------------


@CHANNELS
@EVERY_READOUT
def test_collapsed_adjoint_equals_the_general_one(readout, n_channels, rng):
    """The adjoint of one readout's kernels against that of the kernels of all neurons."""
    unfolding, _ = setting(n_channels=n_channels, readout=readout)
    u, v = unit(rng, 8, n_channels), unit(rng, 8)
    response = unfolding.kernels_of_all(u)
    n = len(response.linear)
    a_bar = rng.standard_normal((n_channels, 5))
    C_bar = rng.standard_normal((n_channels, 5, n_channels, 5))
    C_bar = C_bar + C_bar.transpose(2, 3, 0, 1)
    # D pairs are Σ_{n ≤ m}; the symmetric C counts each pair of different steps twice.
    linear_bar = a_bar.T[:n, :, None] * v
    pairs_bar = np.stack(
        [
            C_bar[:, later - distance, :, later]
            for later in range(n)
            for distance in range(later + 1)
        ]
    )[..., None]
    expected = all_neurons.pullback(response, linear_bar, pairs_bar * v)
    found = response.pull(v, a_bar, C_bar)
    # Rounding of sums of some hundred terms.
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    linear_only = response.pull(v, a_bar, None)
    assert linear_only == pytest.approx(
        all_neurons.pullback(response, linear_bar), abs=1e-12
    )


@pytest.mark.parametrize("kind", ["gaussian", "few samples", "many samples"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("readout", [None, 1.7, READOUTS["weights"]])
@CHANNELS
def test_gradient_by_its_taylor_remainder(order, n_channels, readout, kind, rng):
    """Slope ≥ 1.9 of what the gradient of F(u) = max_v κ leaves over; 2 is expected."""
    unfolding, stimuli = setting(order, n_channels, readout, alpha=0.3, n=6)
    if kind != "gaussian":
        n = 10 if kind == "few samples" else 60
        stimuli = SampleStimuli(*stimuli.sample(n, rng=3), normalize=None)
    problem = NonlinearProblem(unfolding, stimuli, 3.0)
    u, direction = unit(rng, 6, n_channels), unit(rng, 6, n_channels)
    _, margin, gradient = problem.evaluate(u)
    steps = np.array([4e-3, 2e-3, 1e-3])
    change = [problem.evaluate(u + s * direction)[1].value - margin.value for s in steps]
    remainder = np.abs(np.array(change) - steps * (gradient * direction).sum())
    assert slope(steps, remainder) >= 1.9


def test_readout_and_margin_belong_together(rng):
    """κ of the problem is the soft margin of its moments, and no other v beats it."""
    unfolding, stimuli = setting()
    problem = NonlinearProblem(unfolding, stimuli, 10.0)
    u = unit(rng, 8, 1)
    v, margin = problem.best_readout(u)
    M, Sigma = stimuli.moments(unfolding, u)
    assert gaussian_soft_margin(M, Sigma, v, 10.0).value == pytest.approx(margin.value)
    others = rng.standard_normal((2000, 8))
    others = v + 0.3 * others
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    values = others @ M - 5 * np.einsum("ni,ij,nj->n", others, Sigma, others)
    assert values.max() <= margin.value
    assert problem.evaluate(u)[1] == pytest.approx(margin)


@pytest.mark.parametrize("kind", ["gaussian", "samples"])
@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("readout", [None, 1.5, "weights"])
def test_fixed_readout_agrees_with_the_moments(readout, n_channels, kind, rng):
    """Two ways to κ and ∂κ/∂u at a given v: its own kernels, and all neurons' moments."""
    unfolding, stimuli = setting(n_channels=n_channels)
    if kind == "samples":
        stimuli = SampleStimuli(*stimuli.sample(30, rng=1), normalize=None)
    if readout == "weights":
        readout = rng.standard_normal(unfolding.n_steps)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    problem = NonlinearProblem(unfolding, stimuli, 10.0)
    u, v = unit(rng, 8, n_channels), unit(rng, 8)
    margin, gradient = QuadraticInput(problem).at_fixed_readout(v)(u)
    moments = problem.moments_at(u)
    expected = gaussian_soft_margin(moments.M, moments.Sigma, v, 10.0)
    # Rounding of sums of some hundred terms.
    assert margin == pytest.approx(expected, rel=1e-11)
    assert gradient == pytest.approx(
        moments.pull(v, 10.0), abs=1e-11 * np.abs(gradient).max()
    )
