"""How far an expansion is trusted, against direct computation and the simulated network."""

import warnings
from dataclasses import astuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from greenfold import (
    Ascent,
    ExpansionWarning,
    Gain,
    GaussianStimuli,
    Reservoir,
    SampleStimuli,
    optimize,
    simulate,
    unfold,
)
from greenfold.math.margins import gaussian_soft_margin, state_moments
from greenfold.validity import assess, check_by_simulation

from .conftest import slope, small, unit

ETA = 10.0


def setting(alpha=0.05, order=1, gain=None, g=0.8):
    unfolding = unfold(
        small(gain or Gain.quadratic(alpha), n=10, g=g), n_steps=5, dt=0.5, order=order
    )
    return unfolding, GaussianStimuli.random(5, rng=1)


def projections(n=10):
    rng = np.random.default_rng(2)
    return unit(rng, n), unit(rng, n)


# --- the two criteria ---------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_next_order_is_proportional_to_alpha(order):
    """Order k is α^k times a fixed array, so the ratio of two is α times a number."""
    alphas, u_v = np.array([0.01, 0.03, 0.3]), projections()
    found = [assess(*setting(alpha, order), *u_v).next_order for alpha in alphas]
    # Rounding: the quadrature is the same for every α.
    assert found / alphas == pytest.approx([found[0] / alphas[0]] * 3, rel=1e-9)


def next_order_by_hand(unfolding, X, labels, u, v, weights=None):
    """Next order over last, over the state, and relative change of κ; from the states."""
    higher = unfold(unfolding.reservoir, n_steps=5, dt=0.5, order=2, tol=1e-6)
    zeroth, first, second = higher.states(X, u, orders=True)
    size = [np.sqrt((part**2).mean()) for part in (first, second)]
    whole = np.sqrt(((zeroth + first + second) ** 2).mean())
    before, after = (
        gaussian_soft_margin(*state_moments(states, labels, weights), v, ETA).value
        for states in (zeroth + first, zeroth + first + second)
    )
    return size[1] / size[0], size[1] / whole, abs(after / before - 1)


def test_errors_are_ratios_of_orders_at_the_readout():
    """Against the states of the next order, from an unfolding of its own."""
    unfolding, stimuli = setting(0.2)
    u, v = projections()
    X, labels = stimuli.sample(100, rng=0)
    expected = next_order_by_hand(unfolding, X, labels, u, v)
    samples = SampleStimuli(X, labels, normalize=None)
    found = assess(unfolding, samples, u, v, eta=ETA)
    # `assess` integrates to 1e-3.
    assert found.next_order == pytest.approx(expected[0], rel=1e-3)
    assert found.state_error == pytest.approx(expected[1], rel=1e-3)
    assert found.soft_margin_error == pytest.approx(expected[2], rel=1e-3)
    assert found.order == 1


def test_errors_of_gaussian_classes_are_exact_for_the_soft_margin():
    """Against many draws, forty times the number of points in the rule."""
    unfolding, stimuli = setting(0.2)
    u, v = projections()
    parts = [
        next_order_by_hand(unfolding, *stimuli.sample(400, rng=seed), u, v)
        for seed in range(20)
    ]
    found = assess(unfolding, stimuli, u, v, eta=ETA)
    # Four standard errors of the mean over 20 draws, and the quadrature's 1e-3.
    spread = 4 * np.std(parts, axis=0, ddof=1) / np.sqrt(20)
    change = np.mean(parts, axis=0)[2]
    assert spread[2] < 0.1 * change  # the draws tell something
    assert abs(found.soft_margin_error - change) < spread[2] + 1e-3 * change
    # Its points are 168 draws, which know the size of an order to some per cent.
    assert found.next_order == pytest.approx(np.mean(parts, axis=0)[0], rel=0.1)
    assert found.state_error == pytest.approx(np.mean(parts, axis=0)[1], rel=0.1)


def test_many_samples_keep_the_shares_of_their_classes():
    """Of 2500 and 500 series, 500 of each are used, with the weights of all."""
    unfolding, stimuli = setting(0.2)
    u, v = projections()
    X, labels = stimuli.sample(2500, rng=3)
    X, labels = X[:3000], labels[:3000]
    samples = SampleStimuli(X, labels, normalize=None, class_weight=None)
    value = gaussian_soft_margin(*samples.moments(unfolding, u), v, ETA).value
    some = np.r_[0:2500:5, 2500:3000]
    weights = np.repeat([2500.0, 500.0], 500)
    by_hand = next_order_by_hand(unfolding, X[some], labels[some], u, v, weights)
    looked_at = SampleStimuli(
        X[some], labels[some], normalize=None, class_weight={-1: 500.0, 1: 2500.0}
    )
    here = gaussian_soft_margin(*looked_at.moments(unfolding, u), v, ETA).value
    found = assess(unfolding, samples, u, v, eta=ETA)
    # `assess` integrates to 1e-3; the change is taken relative to κ of all series.
    assert found.soft_margin_error == pytest.approx(by_hand[2] * here / value, rel=1e-3)
    balanced = SampleStimuli(X, labels, normalize=None)
    other = assess(unfolding, balanced, u, v, eta=ETA).soft_margin_error
    assert other != pytest.approx(found.soft_margin_error, rel=0.02)


def test_large_gaussian_classes_are_sampled():
    """Where the exact rule would have too many points."""
    unfolding = unfold(small(Gain.quadratic(0.2), n=6), n_steps=40, dt=0.1, order=1)
    stimuli = GaussianStimuli.random(40, rng=1)
    u, v = projections(6)
    X, labels = stimuli.sample(500, rng=0)
    samples = SampleStimuli(X, labels, normalize=None)
    exactly, drawn = (
        assess(unfolding, one, u, v, soft_margin=1.0) for one in (samples, stimuli)
    )
    # These are the series that are drawn; threads may add them up in another order, which
    # moves the last digit of a mean of 1000 numbers.
    assert astuple(drawn) == pytest.approx(astuple(exactly), rel=1e-12)


def test_soft_margin_is_found_where_it_is_not_given():
    unfolding, stimuli = setting(0.2)
    u, v = projections()
    value = gaussian_soft_margin(*stimuli.moments(unfolding, u), v, ETA).value
    given = assess(unfolding, stimuli, u, v, eta=ETA, soft_margin=value)
    assert assess(unfolding, stimuli, u, v, eta=ETA) == given


def test_largest_eigenvalue_is_that_of_the_linearised_connectivity():
    """By its definition, at every state of every trajectory looked at.

    `assess` looks at the forty states furthest from rest only; here the largest is there.
    """
    unfolding, stimuli = setting(0.2)
    u, v = projections()
    X, labels = stimuli.sample(25, rng=0)
    stimuli = SampleStimuli(X, labels, normalize=None)  # fifty, all looked at
    paths = unfolding.states(X, u, trajectories=True).reshape(-1, 10)
    W = unfolding.reservoir.weights
    every = [np.linalg.eigvals(W * (1 + 0.4 * y)).real.max() for y in paths]
    found = assess(unfolding, stimuli, u, v).largest_eigenvalue
    furthest = np.argsort((paths**2).sum(1))[-40:]
    # `assess` integrates to 1e-3.
    assert found == pytest.approx(np.array(every)[furthest].max(), rel=1e-4)
    assert found <= max(every) * (1 + 1e-4)
    # A handful of rare states is missed by at most some per cent of the excess over rest.
    rest = unfolding.reservoir.spectral_abscissa
    assert found - rest > 0.5 * (max(every) - rest)


def test_the_state_error_foretells_the_simulated_one():
    """What order k leaves out is order k + 1 and beyond: the same size at small α."""
    unfolding, stimuli = setting(0.02)
    u, v = projections()
    X, _ = stimuli.sample(100, rng=0)
    truth = simulate(unfolding.reservoir, X, u, 0.5)
    error = np.sqrt(((unfolding.states(X, u) - truth) ** 2).mean() / (truth**2).mean())
    found = assess(unfolding, stimuli, u, v).state_error
    # Relative to what order 3 adds, a few times α.
    assert found == pytest.approx(error, rel=0.1)


@pytest.mark.parametrize(("alpha", "order"), [(1.0, 1), (200.0, 1), (1.0, 2)])
def test_the_suggested_scale_makes_it_trustworthy(alpha, order):
    u, v = projections()
    bad = assess(*setting(alpha, order), u, v)
    assert not bad.trustworthy
    assert "NOT trustworthy" in str(bad)
    assert 0 < bad.scale < 1
    good = assess(*setting(alpha * bad.scale, order), u, v)
    assert good.trustworthy
    assert good.scale == 1
    # Not by giving it away: 1.4 times as much fails a criterion (steps of 0.8 in the
    # search, a margin of 0.9).
    assert not assess(*setting(1.4 * alpha * bad.scale, order), u, v).trustworthy


def test_the_suggested_alpha_leads_to_an_optimum_that_can_be_trusted():
    """Each α has an optimum of its own; followed three times, the advice is enough."""
    alpha, verdicts = 2.0, []
    for _ in range(4):
        unfolding, stimuli = setting(alpha)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExpansionWarning)
            found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1)).validity
        assert found is not None
        verdicts.append(found.trustworthy)
        if found.trustworthy:
            break
        assert found.scale < 1
        alpha *= found.scale
    assert verdicts[0] is False
    assert verdicts[-1] is True


def test_what_the_simulated_network_loses_is_part_of_the_verdict():
    """A margin that rests on a small difference: the orders fall, and little survives."""
    rng = np.random.default_rng(12)
    weights = 0.8 / np.sqrt(30) * rng.standard_normal((30, 30))
    reservoir = Reservoir(weights, 1.0, Gain.quadratic(0.8))
    X, labels = rng.standard_normal((100, 20)), np.repeat([0, 1], 50)
    X[labels == 1] *= 1.3
    stimuli = SampleStimuli(X, labels, normalize=None)
    unfolding = unfold(reservoir, n_steps=20, dt=0.5, order=1)
    with pytest.warns(ExpansionWarning, match="NOT trustworthy.*simulation of 100 series"):
        found = optimize(unfolding, stimuli, method=Ascent(n_starts=1))
    assert found.validity is not None
    assert found.soft_margin > 0
    assert found.validity.largest_eigenvalue < 1
    assert found.validity.next_order < 0.5
    assert found.validity.simulated_loss is not None
    assert found.validity.simulated_loss > 0.2
    assert not found.validity.trustworthy


@pytest.mark.parametrize("alpha", [0.02, 0.3])
def test_the_simulated_loss_is_that_of_the_simulated_states(alpha):
    unfolding, stimuli = setting(alpha)
    X, labels = stimuli.sample(100, rng=0)
    samples = SampleStimuli(X, labels, normalize=None)
    u, v = projections()
    found = assess(unfolding, samples, u, v, eta=ETA)
    unfolded, simulated = (
        gaussian_soft_margin(*state_moments(states, labels), v, ETA).value
        for states in (
            unfolding.states(X, u),
            simulate(unfolding.reservoir, X, u, unfolding.dt),
        )
    )
    expected = (unfolded - simulated) / abs(unfolded)
    # The diagnosis simulates to 1e-5.
    assert found.simulated_loss == pytest.approx(expected, abs=1e-3)
    assert found.n_simulated == 200


def test_trust_is_both_criteria():
    """An eigenvalue beyond one is not excused by small orders, nor the reverse."""
    u, v = projections()
    weak = assess(*setting(0.02), u, v)
    assert weak.trustworthy
    assert weak.largest_eigenvalue < 1
    assert weak.next_order < 0.5
    unstable = assess(*setting(8.0, g=0.1), u, v)
    assert unstable.next_order < 0.5
    assert unstable.largest_eigenvalue > 1
    assert not unstable.trustworthy
    # Driven to where the gain falls, a neuron is stable however slowly the orders do.
    alone = unfold(Reservoir([[0.5]], gain=Gain.quadratic(0.2)), n_steps=4, dt=1.0, order=1)
    down = SampleStimuli(np.outer([-3.0, -2.0], np.ones(4)), [0, 1], normalize=None)
    slow = assess(alone, down, [1.0], [1.0])
    assert slow.largest_eigenvalue < 1
    assert slow.next_order > 0.5
    assert not slow.trustworthy


def test_many_series_are_thinned_evenly_over_both_classes():
    """All 300 of one class and 500 of 2000 of the other, whose states are smaller."""
    unfolding, stimuli = setting(0.05)
    u, v = projections()
    X, labels = stimuli.sample(2000, rng=3)
    X[labels == 1] *= 3
    rare, common = np.flatnonzero(labels == 1)[:300], np.flatnonzero(labels == -1)
    every, some = (np.append(rare, common[::step]) for step in (1, 4))
    samples = SampleStimuli(X[every], labels[every], normalize=None)
    found = assess(unfolding, samples, u, v)
    expected = next_order_by_hand(unfolding, X[some], labels[some], u, v)
    # `assess` integrates to 1e-3.
    assert found.next_order == pytest.approx(expected[0], rel=1e-3)
    assert found.state_error == pytest.approx(expected[1], rel=1e-3)
    # Thinned without regard to the classes, it would be that of all series.
    without = next_order_by_hand(unfolding, X[every], labels[every], u, v)
    assert found.state_error > 1.2 * without[1]


def test_silent_input_has_nothing_to_distrust():
    unfolding, _ = setting(0.1)
    silent = GaussianStimuli(np.zeros(5), np.zeros((5, 5)))
    found = assess(unfolding, silent, *projections())
    assert found.trustworthy
    assert found.next_order == found.state_error == found.soft_margin_error == 0
    assert found.largest_eigenvalue == pytest.approx(unfolding.reservoir.spectral_abscissa)


def test_a_readout_inside_a_step_is_judged_there():
    unfolding, stimuli = setting(0.1)
    u, v = projections()
    late, early = (assess(one, stimuli, u, v) for one in (unfolding, inside(unfolding)))
    assert early.order == 1
    assert early.next_order != pytest.approx(late.next_order, rel=1e-3)


def inside(unfolding):
    return unfolding.with_readout(0.7)


def at_time(network, X, u, dt, time, rtol=1e-9):
    """States of series at a time, by an ODE solver with one segment per step."""
    W, gain, found = network.weights, network.gain, []
    for x in X.reshape(len(X), -1):
        y = np.zeros(len(W))
        for k in range(int(np.ceil(time / dt))):
            drive, length = u * x[k], min(dt, time - k * dt)

            def slope(_, state, drive=drive):
                return (-state + W @ gain(state) + drive) / network.tau

            def escaped(_, state):
                return abs(state).max() - 1e6

            vars(escaped)["terminal"] = True
            run = solve_ivp(
                slope, (0, length), y, "DOP853", rtol=rtol, atol=1e-12, events=escaped
            )
            if run.status:
                raise FloatingPointError("the network diverges")
            y = run.y[:, -1]
        found.append(y)
    return np.array(found)


@pytest.mark.parametrize("time", [0.7, 2.2])
def test_check_by_simulation_inside_a_step(time, rng):
    unfolding, stimuli = setting(0.1)
    unfolding = unfolding.with_readout(time)
    X, labels = stimuli.sample(3, rng=rng)
    u, v = projections()
    found = check_by_simulation(unfolding, X, labels, u, v, eta=ETA)
    truth = at_time(unfolding.reservoir, X, u, unfolding.dt, time)
    value = gaussian_soft_margin(*state_moments(truth, labels), v, ETA).value
    # The judge keeps 1e-9 of the states.
    assert found.simulated == pytest.approx(value, rel=1e-6)


def test_a_readout_inside_a_step_is_simulated():
    """The verdict was "trustworthy" without a look at the network."""
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((24, 3)), np.repeat([-1, 1], 12)
    samples = SampleStimuli(X + 0.4 * labels[:, None], labels, normalize=None)
    unfolding = unfold(small(Gain.quadratic(0.3), n=6), n_steps=3, dt=0.5, order=1)
    unfolding, (u, v) = unfolding.with_readout(1.2), projections(6)
    found = assess(unfolding, samples, u, v, eta=ETA)
    assert found.n_simulated == 24
    series = samples.transform(X + 0.4 * labels[:, None])
    states = unfolding.states(series, u), at_time(unfolding.reservoir, series, u, 0.5, 1.2)
    before, after = (
        gaussian_soft_margin(*state_moments(one, labels), v, ETA).value for one in states
    )
    # `assess` simulates to 1e-5 of the states; the loss is a small difference of two κ.
    assert found.simulated_loss == pytest.approx((before - after) / abs(before), rel=1e-2)


def test_a_network_that_diverges_before_a_readout_inside_a_step_is_not_trusted():
    alone = unfold(Reservoir([[0.5]], gain=Gain.quadratic(0.5)), n_steps=2, dt=2.0, order=1)
    X = np.tile([[1.0, 1.5], [-1.0, -1.5]], (15, 1))
    samples = SampleStimuli(X, np.tile([1, -1], 15), normalize=None)
    found = assess(alone.with_readout(3.9), samples, [1.0], [1.0])
    with pytest.raises(FloatingPointError):
        at_time(alone.reservoir, samples.transform(X[:1, None]), np.ones(1), 2.0, 3.9)
    assert found.simulated_loss == np.inf
    assert not found.trustworthy
    assert "the network diverges" in str(found)


def test_a_linear_network_has_no_expansion():
    unfolding, stimuli = setting(order=0)
    with pytest.raises(ValueError, match="`expansion` must have order 1 or more.*linear"):
        assess(unfolding, stimuli, *projections())


# --- the simulated network ----------------------------------------------------------


@pytest.mark.parametrize("readout", [None, [0.0, 1.0, 0.0, -0.5, 2.0]])
def test_check_by_simulation_against_own_computation(readout, rng):
    unfolding, stimuli = setting(0.1)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    u, v = projections()
    X, labels = stimuli.sample(15, rng=5)
    found = check_by_simulation(unfolding, X, labels, u, v, eta=ETA)
    paths = simulate(unfolding.reservoir, X, u, 0.5, trajectories=True)
    truth = np.einsum("k,nki->ni", unfolding.readout_weights, paths)
    states = unfolding.states(X, u)
    signed = truth * labels[:, None]
    M, Sigma = signed.mean(0), np.cov(signed.T, bias=True)
    assert found.simulated == pytest.approx(M @ v - ETA / 2 * v @ Sigma @ v, rel=1e-9)
    signed = states * labels[:, None]
    expected = signed.mean(0) @ v - ETA / 2 * np.var(signed @ v)
    assert found.unfolded == pytest.approx(expected, rel=1e-9)
    assert found.state_error == pytest.approx(
        np.abs(states - truth).max() / np.abs(truth).max(), rel=1e-9
    )
    assert found.simulated_accuracy == np.mean(np.sign(truth @ v) == labels)
    assert found.unfolded_accuracy == np.mean(np.sign(states @ v) == labels)
    assert found.simulated_best >= found.simulated
    for _ in range(300):
        w = unit(rng, 10)
        assert M @ w - ETA / 2 * w @ Sigma @ w <= found.simulated_best + 1e-15


def test_check_by_simulation_converges_with_alpha():
    """The states of order 1 differ from the simulated ones as α²."""
    u, v = projections()
    X, labels = setting()[1].sample(5, rng=5)
    alphas = np.array([0.01, 0.02, 0.04])
    errors = [
        check_by_simulation(setting(alpha)[0], X, labels, u, v).state_error
        for alpha in alphas
    ]
    assert slope(alphas, errors) == pytest.approx(2, abs=0.2)


def test_check_by_simulation_names_bad_input():
    unfolding, stimuli = setting()
    u, v = projections()
    X, labels = stimuli.sample(3, rng=0)
    with pytest.raises(ValueError, match="end of a step.*inside a step"):
        check_by_simulation(inside(unfolding), X, labels, u, v, engine="nest")
    with pytest.raises(ValueError, match=r"`v`.*\(10,\).*\(3,\)"):
        check_by_simulation(unfolding, X, labels, u, v[:3])
    with pytest.raises(ValueError, match="`labels` must hold exactly two classes; got 6"):
        check_by_simulation(unfolding, X, np.arange(6), u, v)
    with pytest.raises(ValueError, match="`engine`.*scipy.*'euler'"):
        check_by_simulation(unfolding, X, labels, u, v, engine="euler")


def test_a_network_that_truly_diverges_says_so():
    """y + αy² is unbounded: beyond some input the true network has no states to compare."""
    reservoir = Reservoir([[0.5]], gain=Gain.quadratic(1.0))
    unfolding = unfold(reservoir, n_steps=4, dt=2.0, order=1)
    with pytest.raises(FloatingPointError, match="diverges in step"):
        check_by_simulation(unfolding, np.full((2, 4), 5.0), [1, -1], [1.0], [1.0])


def test_assess_checks_its_arguments():
    unfolding, stimuli = setting()
    u, v = projections()
    with pytest.raises(TypeError, match="`stimuli` must be GaussianStimuli"):
        assess(unfolding, np.ones((3, 5)), u, v)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`soft_margin` must be finite"):
        assess(unfolding, stimuli, u, v, soft_margin=np.nan)
    with pytest.raises(ValueError, match="steps, but the system was made for"):
        assess(unfolding, GaussianStimuli.random(6, rng=1), u, v)
    assert assess(unfolding, stimuli, u, v, soft_margin=0.0).soft_margin_error == np.inf


@pytest.mark.filterwarnings("error")
def test_simulated_check_of_a_network_at_rest():
    unfolding, _ = setting()
    u, v = projections()
    found = check_by_simulation(unfolding, np.zeros((4, 5)), [1, 1, -1, -1], u, v)
    assert found.state_error == 0
    assert found.simulated == found.unfolded == 0


GAINS = {
    "quadratic, weak": Gain.quadratic(0.05),
    "quadratic": Gain.quadratic(0.2),
    "tanh": Gain.tanh(degree=3),
    "cubic": Gain.polynomial([0, 1, 0.1, 0.05]),
}
#: ‖μ‖ of the paper's stimuli, and a factor on the whole of them.
STRENGTHS = [(0.19, 1.0), (1.0, 0.3)]


@pytest.mark.slow
def test_what_is_called_trustworthy_survives_simulation(capsys):
    """40 problems: κ kept to 10 % and accuracy to a point on 4000 fresh simulated draws."""
    called, worst_margin, worst_points = 0, 1.0, 0.0
    for seed, n in enumerate((12, 20, 30, 16, 25)):
        drawn = np.random.default_rng(seed).standard_normal((n, n))
        weights = drawn * 0.8 / max(np.abs(np.linalg.eigvals(drawn)))
        for gain in GAINS.values():
            for strength, factor in STRENGTHS:
                reservoir = Reservoir(weights, 0.25, gain)
                paper = GaussianStimuli.random(6, strength=strength, rng=seed)
                stimuli = GaussianStimuli(
                    factor * paper.mu, factor**2 * paper.psi, factor**2 * paper.chi
                )
                samples = SampleStimuli(*stimuli.sample(400, rng=seed), normalize=None)
                unfolding = unfold(reservoir, n_steps=6, dt=1.0, order=1, tol=1e-6)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ExpansionWarning)
                    best = optimize(unfolding, samples, ETA, Ascent(2, 40))
                assert best.validity is not None
                if not best.validity.trustworthy:
                    continue
                called += 1
                X, labels = stimuli.sample(2000, rng=1000 + seed)
                kappa, right = [], []
                for Y in (
                    unfolding.states(X, best.u),
                    simulate(reservoir, X, best.u, 1.0, rtol=1e-6),
                ):
                    M, Sigma = state_moments(Y, labels)
                    kappa.append(gaussian_soft_margin(M, Sigma, best.v, ETA).value)
                    z = Y @ best.v
                    middle = (z[labels > 0].mean() + z[labels < 0].mean()) / 2
                    right.append((labels * (z - middle) > 0).mean())
                kept = 1 - (kappa[0] - kappa[1]) / best.soft_margin
                worst_margin = min(worst_margin, kept)
                worst_points = max(worst_points, right[0] - right[1])
    with capsys.disabled():
        print(
            f"\n40 problems, {called} called trustworthy: they keep at least "
            f"{worst_margin:.1%} of κ and lose at most {worst_points:.2%} of accuracy"
        )
    assert called >= 5
    assert worst_margin >= 0.9
    assert worst_points <= 0.01
