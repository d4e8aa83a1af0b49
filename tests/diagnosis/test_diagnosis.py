"""Curves and choices around an optimum, each recomputed another way."""

import numpy as np
import pytest

from greenfold import (
    Gain,
    GaussianStimuli,
    Reservoir,
    ReservoirClassifier,
    SampleStimuli,
    choose_eta,
    choose_tau,
    optimize,
    simulate,
    unfold,
)
from greenfold.diagnosis import margin_over_angle, margin_over_time
from greenfold.margins import gaussian_soft_margin, state_moments

from ..conftest import interrupt, small, unit

DT = 0.4


@pytest.fixture
def setting():
    return unfold(small(n=8), n_steps=6, dt=DT), GaussianStimuli.random(6, rng=5)


@pytest.fixture
def samples(rng):
    labels = np.repeat([0, 1], 30)
    X = rng.standard_normal((60, 6)) + 0.7 * labels[:, None] * np.sin(np.arange(6))
    return X, labels


# --- over time ----------------------------------------------------------------------


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


# --- over the angle -----------------------------------------------------------------


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


def test_angle_is_the_angle(setting, rng):
    """At 90 degrees u is orthogonal to where it was: checked through its best readout."""
    unfolding, stimuli = setting
    u = unit(rng, 8)
    found = margin_over_angle(unfolding, stimuli, u, [0.3], n_planes=1, rng=7)
    other = np.random.default_rng(7).standard_normal(8)
    other -= (other @ u) * u
    other /= np.linalg.norm(other)
    turned = np.cos(0.3) * u + np.sin(0.3) * other
    assert turned @ u == pytest.approx(np.cos(0.3), rel=1e-12)
    expected = optimize(unfolding, stimuli, u=turned).soft_margin
    assert found[0, 0] == pytest.approx(expected, rel=1e-12)
    again = margin_over_angle(unfolding, stimuli, u, [0.3], n_planes=1, rng=7)
    assert np.array_equal(found, again)


# --- η ------------------------------------------------------------------------------


def test_choose_eta_against_a_naive_loop(samples, rng):
    X, labels = samples
    unfolding, u = unfold(small(n=8), n_steps=6, dt=DT), unit(rng, 8)
    etas = np.array([0.3, 3.0, 100.0])
    found = choose_eta(
        unfolding, X, labels, u, etas[::-1], n_folds=3, threshold="origin", rng=1
    )
    assert np.array_equal(found.etas, etas)
    # The folds deal out the shuffled series of one class after the other.
    shuffle = np.random.default_rng(np.random.default_rng(1).integers(2**31))
    order = shuffle.permutation(len(X))
    order = order[np.argsort(labels[order], kind="stable")]
    for fold in range(3):
        test = np.sort(order[fold::3])
        train = np.setdiff1d(np.arange(len(X)), test)
        part = SampleStimuli(X[train], labels[train])
        for i, eta in enumerate(etas):
            v = optimize(unfolding, part, eta, u=u).v
            z = unfolding.states(part.transform(X[test]), u) @ v
            right = np.mean((z >= 0) == (labels[test] == 1))
            assert found.accuracy[i, fold] == pytest.approx(right, abs=1e-12)
    readouts = [optimize(unfolding, SampleStimuli(X, labels), eta, u=u).v for eta in etas]
    assert found.overlap == pytest.approx(
        np.array(readouts) @ np.array(readouts).T, abs=1e-9
    )
    assert found.best == etas[np.argmax(found.score)]


def test_choose_eta_is_what_the_classifier_does(samples):
    """One grid and one engine: the same series give the same η."""
    X, labels = samples
    classifier = ReservoirClassifier(n_neurons=8, duration=6 * DT, random_state=0)
    classifier.fit(X, labels)
    found = choose_eta(
        classifier.unfolding_,
        X,
        labels,
        class_weight=None,
        rng=_SeedOf(classifier._fold_seed),
    )
    assert classifier.eta_scores_ is not None
    assert found.best == classifier.eta_
    assert found.score == pytest.approx(classifier.eta_scores_.score, abs=1e-12)


class _SeedOf(np.random.Generator):
    """A generator that answers with one number, the seed of the folds."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(0))
        self._seed = seed

    def integers(self, *_, **__):
        return self._seed


def test_choose_eta_takes_several_channels_and_any_labels(rng):
    X = rng.standard_normal((20, 2, 6))
    labels = np.array(["yes", "no"] * 10)
    X[labels == "yes"] += 2
    unfolding, u = unfold(small(n=8), n_steps=6, dt=DT), unit(rng, 8, 2)
    found = choose_eta(unfolding, X, labels, u, rng=0)
    assert found.etas[[0, -1]] == pytest.approx([0.1, 1e6])
    assert found.accuracy[found.etas <= 1000].mean() > 0.9
    assert found.overlap is not None
    assert np.diag(found.overlap) == pytest.approx(np.ones(15), rel=1e-12)
    again = choose_eta(unfolding, X, labels, u, rng=0)
    assert np.array_equal(found.accuracy, again.accuracy)


def test_the_smallest_of_equally_good_etas_is_chosen():
    """Without spread within the classes no η changes the readout."""
    X = np.repeat([[-5.0] * 6, [5.0] * 6], 10, axis=0)
    unfolding = unfold(small(n=8), n_steps=6, dt=DT)
    u = np.ones(8) / np.sqrt(8)
    found = choose_eta(unfolding, X, np.repeat([0, 1], 10), u, [1.0, 0.5, 2.0], rng=0)
    assert (found.accuracy == 1).all()
    assert np.ptp(found.score) == 0
    assert found.best == 0.5


# --- τ ------------------------------------------------------------------------------


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
    if ready.any():
        assert ready[chosen]
        assert found.soft_margin[chosen, -1] == found.soft_margin[ready, -1].max()
    # Neither a network that forgets at once nor one that hardly moves classifies best.
    assert found.taus[0] < found.best
    again = choose_tau(reservoir, stimuli, 0.5, rng=1, **options)
    assert np.array_equal(again.soft_margin, found.soft_margin)


def test_one_time_is_the_last(tau_setting):
    reservoir, stimuli = tau_setting
    found = choose_tau(reservoir, stimuli, 0.5, [0.5], n_projections=1, n_times=1, rng=0)
    assert found.times.tolist() == [10.0]
    assert found.best == 0.5


# --- bad input ----------------------------------------------------------------------

UNFOLDING = unfold(small(n=4), n_steps=3, dt=0.5)
STIMULI = GaussianStimuli.random(3, rng=0)
X, LABELS = np.random.default_rng(0).standard_normal((12, 3)), [0, 1] * 6
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
        (choose_eta, (UNFOLDING, X, LABELS, np.ones((4, 2))), {}, r"`u`.*\(4, 1\)"),
        (choose_eta, (UNFOLDING, X[:, :2], LABELS, np.ones(4)), {}, "2 steps.*made for 3"),
        (choose_eta, (UNFOLDING, X, LABELS, np.ones(4), [-1, 1]), {}, "`etas`.*positive"),
        (choose_eta, (UNFOLDING, X, LABELS, np.ones(4)), {"n_folds": 1}, "`n_folds`.*2"),
        (choose_eta, (UNFOLDING, X, LABELS, np.ones(4)), {"n_folds": 7}, "`n_folds`.*6"),
        (choose_eta, (UNFOLDING, X, [1] * 12, np.ones(4)), {}, "`labels`.*two classes"),
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
