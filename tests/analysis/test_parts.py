"""The parts of a soft margin, against the sums over Green's functions that define them."""

from itertools import product

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Gain,
    GaussianStimuli,
    Reservoir,
    SampleStimuli,
    optimize,
    unfold,
)
from greenfold.analysis import margin_parts, with_equal_covariances
from greenfold.optimizers.alternating import InputPolynomial
from greenfold.optimizers.nonlinear import NonlinearProblem

from ..conftest import unit

N, STEPS, ETA = 4, 3, 10.0
#: Rounding of sums of some thousand terms.
EXACT = 1e-12


def network(alpha=0.2):
    reservoir = Reservoir.random(N, g=0.8, gain=Gain.quadratic(alpha), rng=1)
    return unfold(reservoir, n_steps=STEPS, dt=0.5, order=1)


def gaussian(strength=0.5):
    return GaussianStimuli.random(STEPS, strength=strength, rng=2)


def samples(**options):
    X, labels = gaussian().sample(12, rng=3)
    # Skewed, off-centre and of unequal size, so that no moment vanishes.
    return SampleStimuli((X + 0.3 * X**2)[:-3], labels[:-3], **options)


def weighted_series(stimuli):
    """Series, signs and weights with exactly the moments up to fourth order."""
    if isinstance(stimuli, SampleStimuli):
        return stimuli.series[:, 0], np.asarray(stimuli.signs), stimuli.case_weights
    # Gauss–Hermite quadrature with three nodes per step: exact up to the fifth power.
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    grid = np.array(list(product(nodes, repeat=STEPS)))
    each = np.prod(list(product(weights / weights.sum(), repeat=STEPS)), axis=1)
    X, signs, shares = [], [], []
    for sign in (1, -1):
        root = np.linalg.cholesky(stimuli.psi + sign * stimuli.chi)
        X.append(sign * stimuli.mu + grid @ root.T)
        signs.append(np.full(len(grid), sign))
        shares.append(0.5 * each)
    return np.concatenate(X), np.concatenate(signs), np.concatenate(shares)


def dense(unfolding, stimuli, u, v):
    """The parts, from the paper's sums over G⁽¹⁾ and G⁽²⁾ and averages over stimuli."""
    x, zeta, weight = weighted_series(stimuli)
    G1, G2 = unfolding.greens1(), unfolding.greens2()
    M0 = np.einsum("nip,p,s,sn->i", G1, u, weight * zeta, x)
    M1 = np.einsum("ipqnm,p,q,s,sn,sm->i", G2, u, u, weight * zeta, x, x, optimize=True)
    first = np.einsum("nip,p,sn->si", G1, u, x)
    second = np.einsum("ipqnm,p,q,sn,sm->si", G2, u, u, x, x, optimize=True)

    def covariance(left, right, left_mean, right_mean):
        found = np.einsum("s,si,sj->ij", weight, left, right)
        return 0.5 * ETA * v @ (found - np.outer(left_mean, right_mean)) @ v

    return {
        "mean_linear": v @ M0,
        "mean_bilinear": v @ M1,
        "variance_linear": covariance(first, first, M0, M0),
        "variance_mixed": 2 * covariance(first, second, M0, M1),
        "variance_bilinear": covariance(second, second, M1, M1),
    }


STIMULI = {
    "gaussian": gaussian,
    "samples": samples,
    "samples off centre": lambda: samples(normalize=None, class_weight=None),
}


@pytest.mark.parametrize("kind", STIMULI)
def test_parts_are_the_papers_sums_and_add_to_the_soft_margin(kind, rng):
    unfolding, stimuli = network(), STIMULI[kind]()
    u, v = unit(rng, N), unit(rng, N)
    found = margin_parts(unfolding, stimuli, u, v, ETA)
    expected = dense(unfolding, stimuli, u, v)
    largest = max(map(abs, expected.values()))
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, abs=EXACT * largest), name
    sign = np.array([1, 1, -1, -1, -1])
    kappa = float(sign @ list(expected.values()))
    assert found.soft_margin == pytest.approx(kappa, abs=EXACT * largest)
    readout, margin = NonlinearProblem(unfolding, stimuli, ETA).best_readout(u[:, None])
    own = margin_parts(unfolding, stimuli, u, readout, ETA)
    assert own.soft_margin == pytest.approx(margin.value, abs=EXACT * largest)
    both = found.mean_of_means + found.mean_of_covariances
    assert both == pytest.approx(found.mean_bilinear, abs=EXACT * largest)
    if kind == "gaussian":
        assert found.variance_of_higher == pytest.approx(0, abs=EXACT * largest)
    if kind != "samples off centre":
        assert found.mean_of_means == pytest.approx(0, abs=EXACT * largest)


@pytest.mark.parametrize("kind", ["gaussian", "samples"])
def test_at_equal_covariances_the_same_pair_has_the_margin_of_equal_classes(kind, rng):
    """χ = 0 in the law of the stimuli, and χ = 0 in the parts."""
    unfolding, stimuli = network(), STIMULI[kind]()
    u, v = unit(rng, N), unit(rng, N)
    found = margin_parts(unfolding, stimuli, u, v, ETA)
    equal = margin_parts(unfolding, with_equal_covariances(stimuli), u, v, ETA)
    assert equal.mean_bilinear == 0
    assert equal.variance_mixed == pytest.approx(0, abs=EXACT)
    # Cumulants of samples beyond the second are no matter of χ, and stay.
    kept = found.equal_covariances + found.variance_of_higher
    assert equal.soft_margin == pytest.approx(kept, abs=1e-11)
    linear = margin_parts(unfolding.linear, stimuli, u, v, ETA)
    assert equal.soft_margin < linear.soft_margin
    assert linear.variance_linear == pytest.approx(found.variance_linear, rel=EXACT)
    assert linear.mean_bilinear == linear.variance_bilinear == 0
    assert linear.from_covariances == 0


@pytest.mark.filterwarnings("ignore::greenfold.ExpansionWarning")
def test_without_a_difference_of_covariances_the_gain_is_lost():
    """A small network of the paper's kind; Fig. 3c shows five of its own."""
    reservoir = Reservoir.random(20, gain=Gain.quadratic(0.05), rng=0)
    unfolding = unfold(reservoir, n_steps=6, dt=1.0, order=1)
    stimuli = GaussianStimuli.random(6, strength=0.19, rng=0)
    equal = with_equal_covariances(stimuli)
    linear = optimize(unfolding.linear, stimuli, ETA)
    assert linear.upper_bound is not None
    gained = optimize(unfolding, stimuli, ETA, Ascent(n_starts=2))
    lost = optimize(unfolding, equal, ETA, Ascent(n_starts=2))
    assert gained.soft_margin > 1.5 * linear.soft_margin
    assert lost.validity is not None
    assert lost.validity.trustworthy
    assert 0.99 * linear.soft_margin < lost.soft_margin < linear.upper_bound
    parts = margin_parts(unfolding, stimuli, gained.u, gained.v, ETA)
    assert parts.share_of_covariances > 0.5
    assert "from the class covariances" in str(parts)
    assert "mean_bilinear" in repr(parts)


@pytest.mark.parametrize("kind", STIMULI)
@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_polynomial_in_u_has_the_same_parts_and_gradients(kind, n_channels, rng):
    if n_channels == 2:
        X, labels = gaussian().sample(12, rng=3)
        X = np.stack([X, X**2], axis=1)
        stimuli = SampleStimuli(X, labels, normalize=None)
    else:
        stimuli = STIMULI[kind]()
    problem = NonlinearProblem(network(), stimuli, ETA)
    u, v = unit(rng, N, n_channels), unit(rng, N)
    found = InputPolynomial(problem, v)
    parts = margin_parts(problem.system, stimuli, u, v, ETA)
    quadratic = [np.einsum("pc,pcqd,qd", u, Q, u) for Q in (found.m1, found.sigma0)]
    costs = [found.sigma1(u), found.sigma2(u)]
    values = [(found.m0 * u).sum(), *quadratic, *(value for value, _ in costs)]
    names = ("mean_linear", "mean_bilinear")
    names += ("variance_linear", "variance_mixed", "variance_bilinear")
    expected = [getattr(parts, name) for name in names]
    assert values == pytest.approx(expected, abs=1e-12 * max(map(abs, expected)))
    direction = unit(rng, N, n_channels)
    for degree, (value, gradient), again in (
        (3, costs[0], found.sigma1),
        (4, costs[1], found.sigma2),
    ):
        # Homogeneous polynomials: Euler's theorem, and a difference of fourth order.
        assert (gradient * u).sum() == pytest.approx(degree * value, rel=1e-9, abs=1e-15)
        h = 1e-3
        at = [again(u + k * h * direction)[0] for k in (-2, -1, 1, 2)]
        slope = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
        assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-8, abs=1e-13)


def test_refuses_what_has_no_such_parts(rng):
    u, v = unit(rng, N), unit(rng, N)
    tanh = Reservoir.random(N, gain=Gain.tanh(3), rng=1)
    third = unfold(tanh, n_steps=STEPS, dt=0.5, order=1)
    with pytest.raises(TypeError, match="`system` must be linear, or an Unfolding"):
        margin_parts(third, gaussian(), u, v)
    with pytest.raises(ValueError, match="`eta` must be"):
        margin_parts(network(), gaussian(), u, v, -1.0)
    with pytest.raises(ValueError, match="steps"):
        margin_parts(network(), GaussianStimuli.random(5, rng=0), u, v)
    off = samples(normalize=None)
    with pytest.raises(ValueError, match="`stimuli` must have class means of opposite"):
        with_equal_covariances(off)
