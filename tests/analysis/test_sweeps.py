"""The soft margin over time and angle, each recomputed another way."""

import numpy as np
import pytest

from greenfold import (
    Gain,
    GaussianStimuli,
    Reservoir,
    SampleStimuli,
    optimize,
    simulate,
    unfold,
)
from greenfold.analysis import curves as sweeps
from greenfold.analysis import margin_over_angle, margin_over_time
from greenfold.math.margins import gaussian_soft_margin, state_moments

from ..conftest import interrupt, small, unit
from .conftest import DT


@pytest.mark.parametrize("keep_v", [True, False])
def test_margin_over_time_against_a_simulation_that_stops_there(samples, keep_v, rng):
    X, labels = samples
    reservoir = small(n=8)
    stimuli = SampleStimuli(X, labels)
    unfolding = unfold(reservoir, n_steps=6, dt=DT)
    u, v = unit(rng, 8), unit(rng, 8)
    times = [0.1, DT, 1.0, 1.7, 6 * DT]
    curve = margin_over_time(
        unfolding, stimuli, times, u=u, v=v if keep_v else None, eta=3.0
    )
    assert curve.times.tolist() == times
    assert stimuli.signs is not None
    for i, time in enumerate(times):
        # The judge: the network run on a grid of 0.1 that has the time on it.
        fine = np.repeat(stimuli.series, 4, axis=2)[:, :, : round(time / 0.1)]
        states = simulate(reservoir, fine, u, 0.1)
        M, Sigma = state_moments(states, stimuli.signs, stimuli.case_weights)
        best = v if keep_v else optimize(unfolding.with_readout(time), stimuli, 3.0, u=u).v
        judged = gaussian_soft_margin(M, Sigma, best, 3.0)
        # The solver runs at rtol 1e-10.
        assert curve.soft_margin[i] == pytest.approx(judged.value, abs=1e-7)
        assert curve.separation[i] == pytest.approx(judged.separation, abs=1e-7)
        assert curve.variance[i] == pytest.approx(judged.variance, abs=1e-7)


def test_margin_over_time_at_the_ends_of_the_steps_by_default(setting):
    unfolding, stimuli = setting
    curve = margin_over_time(unfolding, stimuli)
    assert curve.times == pytest.approx(DT * np.arange(1, 7), rel=1e-15)
    assert curve.soft_margin == pytest.approx(curve.separation - curve.variance, abs=1e-15)
    assert curve.soft_margin[-1] == optimize(unfolding, stimuli).soft_margin


def test_more_freedom_never_lowers_the_curve(setting, rng):
    unfolding, stimuli = setting
    best = optimize(unfolding, stimuli)
    fixed = margin_over_time(unfolding, stimuli, u=best.u, v=best.v).soft_margin
    readout = margin_over_time(unfolding, stimuli, u=best.u).soft_margin
    both = margin_over_time(unfolding, stimuli).soft_margin
    assert (fixed <= readout + 1e-14).all()
    assert (readout <= both * (1 + 1e-9)).all()
    assert fixed[-1] == pytest.approx(both[-1], rel=1e-12)
    assert (both[:-1] - fixed[:-1] > 0).all()


@pytest.mark.parametrize("n_channels", [1, 2])
def test_margin_falls_as_u_turns_away_from_the_optimum(n_channels):
    unfolding = unfold(small(n=8), n_steps=6, dt=DT)
    stimuli = GaussianStimuli.random(6, n_channels=n_channels, rng=5)
    best = optimize(unfolding, stimuli)
    angles = np.array([0.0, 0.02, 0.1, 0.5, np.pi])
    found = margin_over_angle(unfolding, stimuli, 3 * best.u, angles, n_planes=6, rng=0)
    assert found.shape == (6, 5)
    # At zero, and at π where u has changed its sign, it is the optimum itself.
    assert found[:, [0, 4]] == pytest.approx(np.full((6, 2), best.soft_margin), rel=1e-12)
    assert (found <= best.soft_margin * (1 + 1e-12)).all()
    assert (np.diff(found[:, :4]) < 0).all()


def test_angle_is_the_angle(setting, rng, monkeypatch):
    """Every u that is solved for a readout has the asked angle to where it was."""
    unfolding, stimuli = setting
    u, angles, turned = unit(rng, 8), [0.3, np.pi / 2, 2.0], []

    def watched(*arguments, u, **options):
        turned.append(u[:, 0])
        return optimize(*arguments, u=u, **options)

    monkeypatch.setattr(sweeps, "optimize", watched)
    found = margin_over_angle(unfolding, stimuli, 5 * u, angles, n_planes=4, rng=7)
    monkeypatch.undo()
    rows = np.array(turned)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(12), rel=1e-12)
    assert rows @ u == pytest.approx(np.tile(np.cos(angles), 4), abs=1e-14)
    # The planes differ: what is orthogonal to u is another direction in each.
    across = rows[1::3]
    assert np.abs(across @ across.T - np.eye(4)).max() < 0.99
    expected = [optimize(unfolding, stimuli, u=one).soft_margin for one in rows]
    assert found.ravel() == pytest.approx(expected, rel=1e-12)
    again = margin_over_angle(unfolding, stimuli, u, angles, n_planes=4, rng=7)
    assert again == pytest.approx(found, rel=1e-12)


def weak():
    """A non-linear setting whose optimum needs random starts."""
    unfolding = unfold(small(Gain.quadratic(0.02), n=6, g=0.6), n_steps=4, dt=DT, order=1)
    return unfolding, GaussianStimuli.random(4, strength=0.3, rng=5)


def test_same_seed_same_curve():
    unfolding, stimuli = weak()
    one, two = (margin_over_time(unfolding, stimuli, [DT, 3 * DT], rng=3) for _ in range(2))
    assert np.array_equal(one.soft_margin, two.soft_margin)


@pytest.mark.parametrize("u", [None, np.ones(6)])
def test_interrupt_is_passed_on(u, monkeypatch):
    """A curve with a point that was cut short would look like any other."""
    from greenfold.optimizers.nonlinear import NonlinearProblem

    unfolding, stimuli = weak()
    interrupt(monkeypatch, NonlinearProblem, "_solve", 1)
    with pytest.raises(KeyboardInterrupt):
        margin_over_time(unfolding, stimuli, u=u)


UNFOLDING = unfold(small(n=4), n_steps=3, dt=0.5)
STIMULI = GaussianStimuli.random(3, rng=0)
ONE = unfold(Reservoir([[0.5]], 0.25), n_steps=3, dt=0.5)


@pytest.mark.parametrize(
    ("function", "arguments", "options", "message"),
    [
        (margin_over_time, (UNFOLDING, STIMULI, [2.0]), {}, r"`readout`.*\(0, 1.5\].*2"),
        (margin_over_time, (UNFOLDING, STIMULI, [0.0]), {}, r"`readout`.*\(0, 1.5\].*0"),
        (margin_over_time, (UNFOLDING, STIMULI, 1.0), {}, "`times`.*1 dimension"),
        (margin_over_time, (UNFOLDING, STIMULI), {"v": np.ones(4)}, "`v`.*without `u`"),
        (margin_over_time, (UNFOLDING, STIMULI), {"u": np.zeros(4)}, "`u` is zero"),
        (margin_over_time, (UNFOLDING, STIMULI), {"eta": 0}, "`eta`.*positive"),
        (
            margin_over_time,
            (UNFOLDING, STIMULI),
            {"u": np.ones(4), "v": np.ones(3)},
            r"`v`.*\(4,\)",
        ),
        (margin_over_angle, (UNFOLDING, STIMULI, np.zeros(4), [0.1]), {}, "`u` is zero"),
        (margin_over_angle, (ONE, STIMULI, [1.0], [0.1]), {}, "`u`.*one entry"),
        (margin_over_angle, (UNFOLDING, STIMULI, np.ones(4), 0.1), {}, "`angles`.*1 dim"),
        (
            margin_over_angle,
            (UNFOLDING, STIMULI, np.ones(4), [0.1]),
            {"n_planes": 0},
            "`n_planes`.*at least 1",
        ),
    ],
)
def test_bad_input_is_named(function, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments, **options)
