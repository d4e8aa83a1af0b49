"""`Unfolding`: states of every order against solvers, readouts, gradients, bad input."""

import numpy as np
import pytest

from greenfold import Gain, Reservoir, simulate, unfold

from ..conftest import slope, small, unit


def test_order_0_is_the_ode_solution(ecg_like, rng):
    reservoir = Reservoir.random(100, g=0.9, tau=0.25, rng=1)
    u = unit(rng, 100)
    dt = 10 / 140
    states = unfold(reservoir, n_steps=140, dt=dt).states(ecg_like, u, trajectories=True)
    truth = simulate(reservoir, ecg_like, u, dt, trajectories=True)
    # The solver runs at rtol 1e-10; the bound asked for is 1e-8.
    assert np.abs(states - truth).max() / np.abs(truth).max() < 1e-8


def test_error_of_order_k_falls_as_alpha_to_k_plus_1(ecg_like, rng):
    base = Reservoir.random(40, g=0.9, tau=0.25, rng=1)
    u = unit(rng, 40)
    X = 3 * ecg_like[:3, ::4]
    alphas = np.array([0.01, 0.02, 0.04])
    errors = np.empty((4, len(alphas)))
    for column, alpha in enumerate(alphas):
        reservoir = Reservoir(base.weights, 0.25, Gain.quadratic(alpha))
        truth = simulate(reservoir, X, u, 0.3, rtol=1e-12)
        for order in range(4):
            made = unfold(
                reservoir, n_steps=35, dt=0.3, order=order, tol=1e-12 if order else None
            )
            states = made.states(X, u)
            errors[order, column] = np.abs(states - truth).max() / np.abs(truth).max()
    slopes = [slope(alphas, row) for row in errors]
    assert all(found >= k + 0.8 for k, found in enumerate(slopes)), slopes
    assert (np.diff(errors, axis=0) < 0).all()


@pytest.mark.parametrize("order", [0, 1, 2])
def test_tanh_orders_fall_with_the_amplitude(order, rng):
    """tanh has no y² term: order k leaves an error of order y^(2k+3)."""
    reservoir = small(Gain.tanh(), n=10)
    u, X = unit(rng, 10), rng.standard_normal((3, 6))
    scales, tol = np.array([0.1, 0.2, 0.4]), 1e-13 if order else None
    made = unfold(reservoir, n_steps=6, dt=0.5, order=order, tol=tol)
    errors = [
        np.abs(made.states(s * X, u) - simulate(reservoir, s * X, u, 0.5, rtol=1e-13)).max()
        for s in scales
    ]
    assert slope(scales, errors) == pytest.approx(2 * order + 3, abs=0.3)


def test_polynomial_gain_with_other_slope_against_the_solver(rng):
    gain = Gain.polynomial([0, 0.6, 0.02, -0.01])
    reservoir = Reservoir.random(20, g=1.2, tau=0.5, gain=gain, rng=4)
    u, X = unit(rng, 20), rng.standard_normal((4, 8))
    truth = simulate(reservoir, X, u, 0.4)
    errors = [
        np.abs(unfold(reservoir, n_steps=8, dt=0.4, order=k).states(X, u) - truth).max()
        for k in range(4)
    ]
    assert errors[3] < 1e-6 * np.abs(truth).max()
    assert (np.diff(np.log(errors)) < -1).all()


@pytest.mark.parametrize("dt_over_tau", [1e-4, 0.3, 60.0])
@pytest.mark.parametrize("n_steps", [1, 5])
def test_extreme_steps_single_step_and_singular_a(dt_over_tau, n_steps, rng):
    W = 0.5 * rng.standard_normal((7, 7)) / np.sqrt(7)
    W[:, 0] = 0
    W[0, 0] = 1.0  # I − W is singular: neuron 0 integrates its input
    reservoir = Reservoir(W, tau=0.1, allow_unstable=True)
    dt = 0.1 * dt_over_tau
    X, u = rng.standard_normal((3, n_steps)), unit(rng, 7)
    states = unfold(reservoir, n_steps=n_steps, dt=dt).states(X, u)
    truth = simulate(reservoir, X, u, dt)
    assert np.abs(states - truth).max() < 1e-8 * np.abs(truth).max()


def assert_falls(errors, alpha):
    """Order k leaves (α y)^(k + 1), of which order 0 gives the base.

    Ten times that allows for the constants, and tells an order from the one below as long
    as α y is a few per cent.
    """
    base = errors[0]
    assert 1e-4 < base < 0.03, alpha
    for k, error in enumerate(errors[1:], start=1):
        assert error < 10 * base ** (k + 1), k


@pytest.mark.parametrize(("dt_over_tau", "alpha"), [(1e-4, 50.0), (0.3, 0.01), (60, 0.01)])
def test_extreme_steps_with_nonlinearity(dt_over_tau, alpha, rng):
    """States of order one; in short steps, only a strong non-linearity has an effect."""
    reservoir = small(Gain.quadratic(alpha), n=6)
    dt = 0.25 * dt_over_tau
    X, u = rng.standard_normal((3, 4)), unit(rng, 6)
    orders = [unfold(reservoir, n_steps=4, dt=dt, order=k) for k in range(3)]
    X = X / np.abs(orders[0].states(X, u, trajectories=True)).max()
    truth = simulate(reservoir, X, u, dt, rtol=1e-12)
    size = np.abs(truth).max()
    assert_falls([np.abs(one.states(X, u) - truth).max() / size for one in orders], alpha)


def test_several_channels_against_the_solver(rng):
    reservoir = small(Gain.quadratic(0.02), n=15)
    X, u = rng.standard_normal((4, 3, 9)), unit(rng, 15, 3)
    truth = simulate(reservoir, X, u, 0.4)
    errors = [
        np.abs(unfold(reservoir, n_steps=9, dt=0.4, order=k).states(X, u) - truth).max()
        for k in range(4)
    ]
    assert errors[3] < 1e-6 * np.abs(truth).max()
    assert (np.diff(np.log(errors)) < -1.5).all()


def test_orders_and_trajectories_agree_with_the_plain_call(rng):
    unfolding = unfold(small(Gain.quadratic(0.1)), n_steps=6, dt=0.3, order=2)
    X, u = rng.standard_normal((5, 6)), unit(rng, 12)
    plain = unfolding.states(X, u)
    assert unfolding.states(X, u, orders=True).shape == (3, 5, 12)
    assert unfolding.states(X, u, orders=True).sum(0) == pytest.approx(plain)
    paths = unfolding.states(X, u, trajectories=True)
    assert paths.shape == (5, 6, 12)
    assert paths[:, -1] == pytest.approx(plain)
    both = unfolding.states(X, u, trajectories=True, orders=True)
    assert both.shape == (3, 5, 6, 12)
    assert both.sum(0) == pytest.approx(paths)


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("time", [0.1, 0.3, 0.45, 1.13, 1.8])
def test_readout_at_any_time_is_a_shorter_simulation(time, alpha, rng):
    reservoir = small(Gain.quadratic(alpha), n=10)
    X, u = rng.standard_normal((3, 2, 6)), unit(rng, 10, 2)
    # The judge: the same stimulus on a grid of 0.01 that has the readout on it.
    fine = np.repeat(X, 30, axis=2)[:, :, : round(time / 0.01)]
    truth = simulate(reservoir, fine, u, 0.01, rtol=1e-12)
    errors = [
        np.abs(
            unfold(reservoir, n_steps=6, dt=0.3, order=k, readout=time).states(X, u) - truth
        )
        .max()
        .item()
        / np.abs(truth).max()
        for k in range(3 if alpha else 1)
    ]
    if alpha:
        assert_falls(errors, alpha)
    else:
        assert max(errors) < 1e-10  # a hundred times the solver's tolerance


@pytest.mark.parametrize("order", [0, 1, 2])
def test_time_integrated_readout_is_the_weighted_trajectory(order, rng):
    unfolding = unfold(small(Gain.quadratic(0.1)), n_steps=6, dt=0.3, order=order)
    weights = np.array([0.0, 1.0, -0.5, 0.0, 2.0, 0.0])
    X, u = rng.standard_normal((40, 6)), unit(rng, 12)
    expected = np.einsum("k,nki->ni", weights, unfolding.states(X, u, trajectories=True))
    assert unfolding.with_readout(weights).states(X, u) == pytest.approx(expected)


@pytest.mark.parametrize("n_cases", [3, 400])  # stepping, and kernels of all neurons
@pytest.mark.parametrize("readout", [None, 1.0, "weights"])
@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_pullback_taylor_remainder(order, n_channels, readout, n_cases, rng):
    unfolding = unfold(small(Gain.quadratic(0.3), n=8), n_steps=4, dt=0.6, order=order)
    if readout == "weights":
        readout = rng.standard_normal(4)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    X, u = rng.standard_normal((n_cases, n_channels, 4)), unit(rng, 8, n_channels)

    def function(u):
        """Something non-linear, so that the remainder is of second order at order 0 too."""
        return float(np.sin(unfolding.states(X, u)).sum())

    gradient = unfolding.pullback(X, u, np.cos(unfolding.states(X, u)))
    direction = unit(rng, 8, n_channels)
    steps = np.array([2e-3, 1e-3, 5e-4])
    change = [function(u + s * direction) - function(u) for s in steps]
    remainder = np.abs(np.array(change) - steps * (gradient * direction).sum())
    assert slope(steps, remainder) >= 1.9


def test_pullback_with_readout_vector(rng):
    unfolding = unfold(small(Gain.quadratic(0.3), n=8), n_steps=4, dt=0.6, order=1)
    X, u, v = rng.standard_normal((5, 4)), unit(rng, 8), unit(rng, 8)
    z_bar = rng.standard_normal(5)
    u_bar, v_bar = unfolding.pullback(X, u, z_bar, v)
    assert u_bar.shape == (8,)
    assert u_bar == pytest.approx(unfolding.pullback(X, u, np.outer(z_bar, v)))
    assert v_bar == pytest.approx(z_bar @ unfolding.states(X, u))


def test_greens_functions_reproduce_the_states(rng):
    reservoir = small(Gain.quadratic(0.2), n=5)
    X, u = rng.standard_normal((6, 4)), unit(rng, 5)
    for readout in (None, 0.8):
        unfolding = unfold(reservoir, n_steps=4, dt=0.4, order=1, readout=readout)
        zeroth, first = unfolding.states(X, u, orders=True)
        G1, G2 = unfolding.greens1(), unfolding.greens2()
        assert np.einsum("nip,p,cn->ci", G1, u, X) == pytest.approx(zeroth, abs=1e-14)
        made = np.einsum("ipqnm,p,q,cn,cm->ci", G2, u, u, X, X)
        assert made == pytest.approx(first, abs=1e-14)
        assert pytest.approx(G2.transpose(0, 2, 1, 4, 3)) == G2


def test_integers_do_not_overflow():
    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=2, dt=0.4, order=1)
    X = np.array([[100, 120]], dtype=np.int8)
    u = np.ones(12) / 10
    assert unfolding.states(X, u) == pytest.approx(unfolding.states(X.astype(float), u))


BAD = small(Gain.quadratic(0.1), n=4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"reservoir": np.eye(3)}, TypeError, "`reservoir`.*Reservoir.*ndarray"),
        ({"n_steps": 0}, ValueError, "`n_steps`.*at least 1"),
        ({"n_steps": 3.0}, TypeError, "`n_steps`.*integer"),
        ({"dt": 0}, ValueError, "`dt`.*positive"),
        ({"dt": np.nan}, ValueError, "`dt`.*positive"),
        ({"order": -1}, ValueError, "`order`.*at least 0"),
        ({"tol": 0, "order": 1}, ValueError, "`tol`.*positive"),
        ({"readout": 9.0}, ValueError, r"`readout`.*\(0, 1.5\].*9"),
        ({"readout": [1.0, 2.0]}, ValueError, r"`readout`.*\(3,\).*\(2,\)"),
        ({"readout": [0.0, 0.0, 0.0]}, ValueError, "`readout`.*zero"),
    ],
)
def test_unfold_names_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        unfold(**{"reservoir": BAD, "n_steps": 3, "dt": 0.5, **arguments})


@pytest.mark.parametrize(
    ("X", "u", "error", "message"),
    [
        (np.zeros((2, 5)), np.ones(4), ValueError, r"`X`.*n_steps = 3.*\(2, 5\)"),
        (np.zeros(3), np.ones(4), ValueError, r"`X`.*\(n_cases, n_steps\).*\(3,\)"),
        (np.zeros((0, 3)), np.ones(4), ValueError, r"`X` is empty.*\(0, 3\)"),
        ([[0, 1, 2], [0, 1]], np.ones(4), ValueError, "`X`.*equal length.*2 to 3"),
        ([[0, np.nan, 2]], np.ones(4), ValueError, "`X`.*nan in case 0, channel 0, step 1"),
        (np.zeros((2, 3), complex), np.ones(4), TypeError, "`X`.*complex"),
        ([["a", "b", "c"]], np.ones(4), TypeError, "`X`.*numbers"),
        ([[2**80, 1, 1]], np.ones(4), TypeError, "`X`.*fixed width"),
        (np.zeros((2, 3)), np.ones(5), ValueError, r"`u`.*4 rows.*\(5,\)"),
        (np.zeros((2, 2, 3)), np.ones(4), ValueError, r"`u`.*\(4, 2\).*1 column"),
        (np.zeros((2, 3)), np.full(4, np.inf), ValueError, "`u`.*finite.*inf"),
        (np.zeros((2, 3)), 1j * np.ones(4), TypeError, "`u`.*real"),
    ],
)
def test_states_name_bad_input(X, u, error, message):
    unfolding = unfold(BAD, n_steps=3, dt=0.5, order=1)
    with pytest.raises(error, match=message):
        unfolding.states(X, u)


def test_other_methods_name_bad_input():
    unfolding = unfold(BAD, n_steps=3, dt=0.5, order=1)
    X, u = np.zeros((2, 3)), np.ones(4)
    with pytest.raises(ValueError, match=r"`v`.*\(4,\).*\(3,\)"):
        unfolding.kernels(u, np.ones(3))
    with pytest.raises(ValueError, match=r"`cotangent`.*\(2, 4\).*\(2, 3\)"):
        unfolding.pullback(X, u, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="`order` must be 1.*a linear network"):
        unfold(BAD, n_steps=3, dt=0.5).greens2()
    with pytest.raises(
        ValueError, match="`order` must be 0, or 1.*got 2.*beyond the square"
    ):
        unfold(BAD, n_steps=3, dt=0.5, order=2).kernels(u, u)
    big = Reservoir.random(100, gain=Gain.quadratic(0.1), rng=0)
    unfolding = unfold(big, n_steps=50, dt=0.5, order=1)
    with pytest.raises(MemoryError, match=r"G⁽²⁾ of 100 neurons.*would need 65\.2 GiB"):
        unfolding.greens2()
