"""The ascent: its end, comparison with other projections, and its counts."""

import numpy as np
import pytest

from greenfold import (
    Alternating,
    Ascent,
    Gain,
    GaussianStimuli,
    RandomDraws,
    Reservoir,
    SampleStimuli,
    optimize,
    unfold,
)
from greenfold.optimizers.convex import Search
from greenfold.optimizers.linear import LinearProblem
from greenfold.optimizers.nonlinear import NonlinearProblem
from greenfold.validity import check_by_simulation

from ..conftest import small
from .nonlinear_cases import ETA, judged, kappa_of, setting


@pytest.mark.parametrize(("strength", "least", "seed"), [(0.1, 1.0, 0), (1.0, 0.99, 1)])
def test_above_the_linear_optimum_and_above_random(strength, least, seed):
    """Weakly separable classes gain. For others it is no law: order 1 also adds variance,
    of order α², here less than 1 %. From the linear optimum and its negative alone an
    ascent may end below the best of fifty random u, as for the first of these problems.
    """
    unfolding, stimuli = setting(strength=strength, seed=seed)
    linear = optimize(unfolding.linear, stimuli, ETA)
    found = optimize(unfolding, stimuli, ETA, rng=0)
    drawn = optimize(unfolding, stimuli, ETA, RandomDraws(50), rng=1)
    assert found.soft_margin >= least * linear.soft_margin
    assert found.soft_margin > drawn.starts.max()


def test_ascent_ends_where_the_gradient_has_no_tangent_part():
    unfolding, stimuli = setting(strength=0.3)
    found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=2, tol=1e-13))
    problem = NonlinearProblem(unfolding, stimuli, ETA)
    _, margin, gradient = problem.evaluate(found.u[:, None])
    tangent = gradient[:, 0] - (gradient[:, 0] @ found.u) * found.u
    assert margin.value == pytest.approx(found.soft_margin, rel=1e-12)
    # A gain of 1e-13 per step leaves a slope of about its root.
    assert np.linalg.norm(tangent) < 1e-5 * np.linalg.norm(gradient)


@pytest.mark.parametrize(
    ("strength", "least"),
    [(0.2, 1 - 1e-6), pytest.param(1.0, 0.99, marks=pytest.mark.slow)],
)
def test_ascent_is_at_least_as_good_as_alternation(strength, least):
    """With the same number of starts; to 1 % where classes are told apart well."""
    unfolding, stimuli = setting(strength=strength)
    ours, paper = (
        optimize(unfolding, stimuli, ETA, method, rng=seed)
        for method, seed in ((Ascent(n_starts=2), None), (Alternating(2, rounds=12), 5))
    )
    assert ours.soft_margin >= least * paper.soft_margin


def test_both_signs_matter():
    """u → −u leaves the linear problem alone; the two signs of the start end apart."""
    unfolding, stimuli = setting(n=12, alpha=0.05, strength=0.4, seed=1)
    found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=2))
    assert len(found.starts) == 2
    assert found.soft_margin == found.starts.max()
    assert abs(found.starts[0] / found.starts[1] - 1) > 1e-4
    linear = LinearProblem(unfolding.maps, stimuli, ETA)
    start = Search(linear, 1e-4).run()[0].u
    problem = NonlinearProblem(unfolding, stimuli, ETA)
    plus, minus = (problem.best_readout(sign * start)[1].value for sign in (1, -1))
    assert plus != pytest.approx(minus, rel=1e-6)
    assert linear.best_readout(start)[1].value == pytest.approx(
        linear.best_readout(-start)[1].value, rel=1e-12
    )


def test_reflected_stimuli_have_the_reflected_optimum():
    """x → −x, α → −α, y → −y is a symmetry of the network: κ is the same."""
    unfolding, stimuli = setting(strength=0.4)
    reflected, _ = setting(alpha=-0.02, strength=0.4)
    one = optimize(unfolding, stimuli, ETA, Ascent(n_starts=2))
    other = optimize(reflected, stimuli, ETA, Ascent(n_starts=2))
    # The ascent ends at gains of 1e-9 per step.
    assert sorted(one.starts) == pytest.approx(sorted(other.starts), rel=1e-6)


def test_samples_of_gaussian_classes_come_close_to_the_classes():
    unfolding, stimuli = setting(n=8)
    whole = optimize(unfolding, stimuli, ETA, Ascent(n_starts=2))
    samples = SampleStimuli(*stimuli.sample(3000, rng=2), normalize=None)
    found = optimize(unfolding, samples, ETA, Ascent(n_starts=2))
    # 6000 draws leave 1/√6000 = 1.3 % in the moments, here times five.
    assert found.soft_margin == pytest.approx(whole.soft_margin, rel=0.065)
    assert kappa_of(unfolding, stimuli, found) == pytest.approx(whole.soft_margin, rel=0.02)
    assert kappa_of(unfolding, stimuli, found) <= whole.soft_margin * (1 + 1e-6)


def test_two_channels():
    unfolding, stimuli = setting(n_channels=2)
    found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=2))
    assert found.u.shape == (10, 2)
    assert np.linalg.norm(found.u) == pytest.approx(1)
    assert found.soft_margin >= optimize(unfolding.linear, stimuli, ETA).soft_margin
    assert kappa_of(unfolding, stimuli, found) == pytest.approx(found.soft_margin)


def test_gain_of_another_slope_equals_rescaled_weights():
    """W (c y + c α y²) = (c W)(y + α y²): the same network, written in two ways."""
    c, alpha = 0.7, 0.02
    weights = small(n=10, g=0.8).weights
    stimuli = GaussianStimuli.random(5, rng=1)
    gains = (Gain.polynomial([0, c, c * alpha]), Gain.quadratic(alpha))
    found = [
        optimize(
            unfold(Reservoir(scale * weights, gain=gain), n_steps=5, dt=0.5, order=1),
            stimuli,
            ETA,
            Ascent(n_starts=2),
        )
        for scale, gain in zip((1.0, c), gains, strict=True)
    ]
    # Rounding, magnified by at most some dozen steps of the ascent.
    assert found[0].starts == pytest.approx(found[1].starts, rel=1e-8)
    assert judged(found[0]).next_order == pytest.approx(
        judged(found[1]).next_order, rel=1e-4
    )
    assert judged(found[0]).largest_eigenvalue == pytest.approx(
        judged(found[1]).largest_eigenvalue, rel=1e-4
    )


@pytest.mark.parametrize("kind", ["gaussian", "samples"])
def test_tanh_gain_at_order_1(kind):
    """Cubic states: no kernels of the stimulus; a design, or the series, step by step."""
    unfolding, stimuli = setting(gain=Gain.tanh(degree=3), strength=0.3)
    weak = GaussianStimuli(0.2 * stimuli.mu, 0.04 * stimuli.psi, 0.04 * stimuli.chi)
    if kind == "samples":
        weak = SampleStimuli(*weak.sample(40, rng=0), normalize=None)
    linear = optimize(unfolding.linear, weak, ETA)
    found = optimize(unfolding, weak, ETA, Ascent(n_starts=2))
    # An odd gain: u → −u with v → −v changes nothing, so both signs end alike.
    assert found.starts[0] == pytest.approx(found.starts[1], rel=1e-6)
    # States of 0.2: order 1 changes them by some y²/3 = 1 %, and κ by a few times that.
    assert found.soft_margin != pytest.approx(linear.soft_margin, rel=1e-6)
    assert found.soft_margin == pytest.approx(linear.soft_margin, rel=0.2)
    assert judged(found).trustworthy
    if isinstance(weak, SampleStimuli):
        assert weak.signs is not None
        # At these projections the network run for real is closer to order 1 than to the
        # linear one, by more than a factor of two.
        true = check_by_simulation(
            unfolding, weak.series, weak.signs, found.u, found.v, eta=ETA
        ).simulated
        apart = [
            abs(kappa_of(one, weak, found) - true) for one in (unfolding, unfolding.linear)
        ]
        assert 2 * apart[0] < apart[1]


def test_equal_means_up_to_rounding_are_told_apart_by_their_spread(rng):
    """What a linear network cannot do; the ascent starts from the linear optimum."""
    X, labels = rng.standard_normal((200, 5)), np.repeat([0, 1], 100)
    X[100:] *= 1.5
    for label in (0, 1):
        X[labels == label] -= X[labels == label].mean(0)
    unfolding, _ = setting()
    stimuli = SampleStimuli(X, labels, normalize=None)
    found = optimize(unfolding, stimuli, ETA, rng=0)
    drawn = optimize(unfolding, stimuli, ETA, RandomDraws(20), rng=1)
    assert found.soft_margin > drawn.starts.max() > 0


def test_limit_of_evaluations_is_told():
    unfolding, stimuli = setting(strength=0.3)
    found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1, max_evaluations=2))
    assert found.status == "max_iterations"


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_ascent_keeps_to_its_number_of_evaluations(limit):
    unfolding, stimuli = setting(strength=0.3)
    found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1, max_evaluations=limit))
    assert found.status == "max_iterations"
    assert found.n_iter == limit
