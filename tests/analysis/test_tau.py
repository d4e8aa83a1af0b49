"""The choice of τ, against a direct computation."""

import numpy as np
import pytest

from greenfold import GaussianStimuli, Reservoir, choose_tau, optimize, unfold

from ..conftest import small


@pytest.fixture(scope="module")
def tau_setting():
    rng = np.random.default_rng(0)
    mu = np.sin(np.linspace(0, 3, 20))
    A = rng.standard_normal((20, 20)) / 20
    return Reservoir.random(20, g=0.7, rng=2), GaussianStimuli(
        mu, A @ A.T + 0.01 * np.eye(20)
    )


def test_choose_tau_against_a_direct_computation(tau_setting):
    reservoir, stimuli = tau_setting
    taus = [2.0, 0.1]
    found = choose_tau(reservoir, stimuli, 0.5, taus, n_projections=3, n_times=4, rng=1)
    assert found.taus.tolist() == [0.1, 2.0]
    assert found.times[-1] == 10.0
    assert found.soft_margin.shape == (2, len(found.times))
    drawn = np.random.default_rng(1).standard_normal((3, 20, 1))
    for tau, row in zip(found.taus, found.soft_margin, strict=True):
        unfolding = unfold(Reservoir(reservoir.weights, tau), n_steps=20, dt=0.5)
        for time, value in zip(found.times, row, strict=True):
            there = unfolding.with_readout(time)
            each = [optimize(there, stimuli, u=u).soft_margin for u in drawn]
            assert value == pytest.approx(np.mean(each), rel=1e-10)


def test_several_stimuli_are_averaged(tau_setting):
    reservoir, stimuli = tau_setting
    other = GaussianStimuli.random(20, rng=4)
    options = {"taus": [0.1, 1.0], "n_projections": 2, "n_times": 3, "rng": 1}
    one, two, both, same = (
        choose_tau(reservoir, given, 0.5, **options).soft_margin
        for given in (stimuli, other, [stimuli, other], [stimuli])
    )
    assert both == pytest.approx((one + two) / 2, rel=1e-10)
    assert np.array_equal(one, same)


def test_the_largest_tau_that_saturates_is_chosen(tau_setting):
    reservoir, _ = tau_setting
    rng = np.random.default_rng(3)
    # Directions of μ that cover the steps evenly leave little to chance.
    turned = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    stimuli = [GaussianStimuli(mu, np.eye(12)) for mu in turned]
    options = {"n_projections": 3, "n_times": 12, "rng": 1}
    found = choose_tau(reservoir, stimuli, 0.5, **options)
    assert len(found.taus) == 12
    assert found.taus[[0, -1]] == pytest.approx([6 / 200, 6])
    two_thirds = found.times.tolist().index(4.0)
    share = found.soft_margin[:, two_thirds] / found.soft_margin[:, -1]
    assert found.saturation == pytest.approx(share, rel=1e-12)
    chosen = found.taus.tolist().index(found.best)
    assert 0 < chosen < 11
    assert share[chosen] >= 0.95 > share[chosen + 1 :].max()
    # A network that forgets at once has saturated for longer.
    entered = (found.soft_margin >= 0.95 * found.soft_margin[:, -1:]).argmax(1)
    assert entered[0] < entered[chosen]
    assert found.note == ""
    again = choose_tau(reservoir, stimuli, 0.5, **options)
    assert np.array_equal(again.soft_margin, found.soft_margin)
    slow = choose_tau(reservoir, stimuli, 0.5, found.taus[chosen + 1 :], **options)
    assert slow.best == slow.taus[slow.saturation.argmax()]
    assert "κ still grows" in slow.note
    fast = choose_tau(reservoir, stimuli, 0.5, found.taus[:chosen], **options)
    assert fast.best == fast.taus[-1]
    assert "compare larger values" in fast.note


def test_the_curve_of_one_problem_may_fall(tau_setting):
    reservoir, _ = tau_setting
    mu = np.r_[np.ones(10), np.zeros(10)]
    found = choose_tau(reservoir, GaussianStimuli(mu, np.eye(20)), 0.5, [0.1, 0.5], rng=0)
    assert "κ falls towards the end" in found.note
    assert "κ falls" in repr(found)


def test_one_time_is_the_last(tau_setting):
    reservoir, stimuli = tau_setting
    found = choose_tau(reservoir, stimuli, 0.5, [0.5], n_projections=1, n_times=1, rng=0)
    assert found.times.tolist() == [10.0]
    assert found.best == 0.5


UNFOLDING = unfold(small(n=4), n_steps=3, dt=0.5)
STIMULI = GaussianStimuli.random(3, rng=0)


@pytest.mark.parametrize(
    ("function", "arguments", "options", "message"),
    [
        (choose_tau, (UNFOLDING.reservoir, STIMULI, 0), {}, "`dt`.*positive"),
        (
            choose_tau,
            (UNFOLDING.reservoir, [STIMULI, GaussianStimuli.random(4, rng=0)], 0.5),
            {},
            "`stimuli` must agree in channels and steps",
        ),
        (choose_tau, (UNFOLDING.reservoir, STIMULI, 0.5, [0.0]), {}, "`tau`.*positive"),
        (choose_tau, (UNFOLDING.reservoir, STIMULI, 0.5), {"eta": 0}, "`eta`.*positive"),
        (choose_tau, (UNFOLDING.reservoir, STIMULI, 0.5), {"n_times": 0}, "`n_times`"),
        (
            choose_tau,
            (UNFOLDING.reservoir, STIMULI, 0.5),
            {"n_projections": 0},
            "`n_projections`",
        ),
    ],
)
def test_bad_input_is_named(function, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments, **options)


@pytest.mark.parametrize("stimuli", [[], [3]])
def test_what_is_no_stimuli_is_refused(stimuli):
    with pytest.raises(TypeError, match="`stimuli` must be stimuli or a sequence"):
        choose_tau(UNFOLDING.reservoir, stimuli, 0.5)
