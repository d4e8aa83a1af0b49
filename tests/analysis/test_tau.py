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


def test_choose_tau_is_sensible_and_deterministic(tau_setting):
    reservoir, stimuli = tau_setting
    options = {"n_projections": 3, "n_times": 8}
    found = choose_tau(reservoir, stimuli, 0.5, rng=1, **options)
    assert len(found.taus) == 12
    assert found.taus[[0, -1]] == pytest.approx([10 / 200, 10])
    assert found.best in found.taus
    shares = (found.soft_margin >= 0.95 * found.soft_margin.max(1, keepdims=True)).mean(1)
    assert np.array_equal(found.saturation, shares)
    ready = found.saturation <= 0.2
    chosen = found.taus.tolist().index(found.best)
    assert ready.any()
    assert not ready.all()
    assert ready[chosen]
    assert found.soft_margin[chosen, -1] == found.soft_margin[ready, -1].max()
    # A τ that has long saturated would do better at the end, and is not taken.
    assert found.soft_margin[chosen, -1] < found.soft_margin[:, -1].max()
    # Neither a network that forgets at once nor one that hardly moves classifies best.
    assert found.taus[0] < found.best
    again = choose_tau(reservoir, stimuli, 0.5, rng=1, **options)
    assert np.array_equal(again.soft_margin, found.soft_margin)


def test_where_every_tau_has_saturated_the_least_is_chosen(tau_setting):
    reservoir, stimuli = tau_setting
    options = {"n_projections": 3, "n_times": 20, "rng": 1}
    found = choose_tau(reservoir, stimuli, 0.5, [0.9, 1.5], **options)
    assert found.saturation.min() > 0.2
    assert found.saturation[0] < found.saturation[1]
    assert found.best == 0.9
    # Beside one that is ready, both are left out.
    assert choose_tau(reservoir, stimuli, 0.5, [0.2, 0.9, 1.5], **options).best == 0.2


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
