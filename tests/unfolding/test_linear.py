"""The linear network: sweeps and maps against a solver, a tensor, and each other."""

import numpy as np
import pytest

from greenfold import Gain, Reservoir, simulate, unfold
from greenfold.unfolding.linear import iterates

from ..conftest import small, unit

#: Readouts of six steps, in all their forms; times are in steps.
READOUTS = {
    "end": 6.0,
    "early": 4.0,
    "inside the first step": 0.25,
    "inside a later step": 4.25,
    "weights": np.array([0.0, 1.0, -0.5, 0.0, 2.0, 0.0]),
}
EVERY = pytest.mark.parametrize("readout", READOUTS.values(), ids=READOUTS.keys())
PANELS = pytest.mark.parametrize("dt", [0.02, 0.4])  # one panel a step, and several


def plan(readout, dt=0.4):
    """The linear network of order 1, so that there are nodes; of a high degree: panels."""
    unfolding = unfold(small(Gain.tanh(), n=6), n_steps=6, dt=dt, order=1)
    readout = readout if np.ndim(readout) else readout * dt
    linear = unfolding.with_readout(readout).maps
    assert (linear.plan.n_sub > 1) == (dt > 0.1)
    return linear


@EVERY
def test_driven_state_is_that_of_the_solver(readout, rng):
    signal, u = rng.standard_normal((2, 6)), rng.standard_normal((6, 2, 3))
    found = plan(readout).response_sum(signal).drive(u)
    assert found.shape == (6, 3)
    # The judge runs the linear network on a grid of 0.1 that has every readout on it.
    fine = np.repeat(signal, 4, axis=1)[None]
    for vector in range(3):
        paths = simulate(small(n=6), fine, u[:, :, vector], 0.1, trajectories=True)[0]
        truth = readout @ paths[3::4] if np.ndim(readout) else paths[round(readout * 4) - 1]
        # The solver runs at rtol 1e-10.
        assert found[:, vector] == pytest.approx(truth, abs=1e-8)


@EVERY
@PANELS
def test_a_readout_carried_back_is_the_adjoint_of_a_pulse(readout, dt, rng):
    """v · (state after a pulse in step n) = l_n · u: two sweeps in opposite directions."""
    linear = plan(readout, dt=dt)
    u, v = unit(rng, 6, 2), rng.standard_normal((6, 3))
    forward = linear.read_pulse(u, linear.pulse_starts(u))
    rows = linear.kernel_rows(linear.carry_back(v))
    reached = linear.plan.read_steps
    assert forward.shape == (reached, 2, 6)
    # The same products of propagators in another order.
    expected = np.einsum("nci,ir->ncr", forward, v)
    assert np.einsum("npr,pc->ncr", rows[:reached], u) == pytest.approx(expected, abs=1e-14)
    assert not rows[reached:].any()


@EVERY
@PANELS
@pytest.mark.parametrize("n_vectors", [(), (3,)])
def test_pull_is_the_adjoint_of_drive(readout, dt, n_vectors, rng):
    summed = plan(readout, dt=dt).response_sum(rng.standard_normal((2, 6)))
    u, v = rng.standard_normal((6, 2, 4)), rng.standard_normal((6, *n_vectors))
    # Both sides are the same sums in another order.
    expected = np.tensordot(u, summed.pull(v), axes=([0, 1], [0, 1]))
    assert summed.drive(u).T @ v == pytest.approx(expected, rel=1e-12, abs=1e-12)


@EVERY
@PANELS
def test_pulse_adjoints_by_dot_products(readout, dt, rng):
    linear = plan(readout, dt=dt)
    u = rng.standard_normal((6, 2))
    starts = linear.pulse_starts(u)
    ends = starts[linear.plan.n_sub :: linear.plan.n_sub]
    nodes = linear.pulse_nodes(u, starts)
    read = linear.read_pulse(u, starts)
    read_bar, nodes_bar = rng.standard_normal(read.shape), rng.standard_normal(nodes.shape)
    ends_bar, inputs_bar = linear.read_pulse_adjoint(read_bar)
    direct = (inputs_bar * u.T).sum()
    assert (ends_bar * ends).sum() + direct == pytest.approx((read_bar * read).sum())
    gradient = linear.pulse_adjoint(ends_bar, nodes_bar, inputs_bar)
    # Both sides are linear in u: rounding of sums of some hundred terms.
    expected = (read_bar * read).sum() + (nodes_bar * nodes).sum()
    assert (gradient * u).sum() == pytest.approx(expected, rel=1e-12)
    without = linear.pulse_adjoint(ends_bar, None, inputs_bar)
    assert (without * u).sum() == pytest.approx((read_bar * read).sum(), rel=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 31, 100])
@pytest.mark.parametrize("n_powers", [1, 2, 4])
def test_iterates_are_powers_one_after_the_other(count, n_powers, rng):
    E = rng.standard_normal((5, 5)) / 3
    powers = [np.linalg.matrix_power(E, 2**level) for level in range(n_powers)]
    found = iterates(rng.standard_normal((2, 5)), powers, count)
    assert found.shape == (count, 2, 5)
    # Each from the one before; rounding of sums of five terms.
    size = np.abs(found).max()
    assert found[1:] == pytest.approx(found[:-1] @ E, abs=1e-13 * size)


@pytest.mark.parametrize("readout", [None, 0.7, np.array([1.0, 0, -0.5, 2.0])])
def test_responses_are_simulated_pulses(readout, rng):
    """Row c·K + n of Rᵤ is the state after a unit pulse in channel c, step n."""
    reservoir, u = small(n=5), unit(rng, 5, 2)
    unfolding = unfold(reservoir, n_steps=4, dt=0.5)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    R = unfolding.maps.input_response(u)
    pulses = np.repeat(np.eye(8).reshape(8, 2, 4), 5, axis=2)  # a grid of 0.1
    paths = simulate(reservoir, pulses, u, 0.1, trajectories=True)
    if isinstance(readout, np.ndarray):
        truth = np.einsum("k,nki->ni", readout, paths[:, 4::5])
    else:
        truth = paths[:, round((readout or 2.0) / 0.1) - 1]
    # The solver runs at rtol 1e-10.
    assert pytest.approx(truth, abs=1e-8) == R
    # Seen from the readout, and summed with the weights of a signal.
    v, d = rng.standard_normal((5, 3)), rng.standard_normal((2, 4))
    seen = np.einsum("npr,pc->cnr", unfolding.maps.readout_response(v), u)
    assert seen.reshape(8, 3) == pytest.approx(R @ v, abs=1e-14)
    summed = unfolding.maps.response_sum(d).drive(u[:, :, None])[:, 0]
    assert summed == pytest.approx(d.ravel() @ R, abs=1e-14)


def test_the_door_checks_what_the_maps_do_not():
    unfolding = unfold(small(n=5), n_steps=4, dt=0.5)
    with pytest.raises(ValueError, match=r"`u`.*5 rows.*\(4,\)"):
        unfolding.input_response(np.ones(4))
    with pytest.raises(ValueError, match=r"`v`.*\(5,\).*\(4,\)"):
        unfolding.readout_response(np.ones(4))
    with pytest.raises(ValueError, match=r"`v`.*\(5,\).*\(4,\)"):
        unfolding.readout_response(np.ones((4, 2)))


def summed(unfolding, d):
    return unfolding.response_sum(d[None]).matrix()


SUMMED = {
    "end": None,
    "first step": 0.4,
    "middle": 2.0,
    "inside the first step": 0.15,
    "inside a later step": 1.5,
    "inside the last step": 3.5,
    "one late weight": np.eye(1, 9, 6)[0],
    "weights": np.linspace(-1, 2, 9),
    "weights with gaps": np.array([0, 1.0, 0, 0, -2.0, 0, 0.5, 0, 0]),
}


@pytest.mark.parametrize("readout", SUMMED.values(), ids=SUMMED.keys())
def test_sum_equals_the_tensor(readout, rng):
    unfolding = unfold(small(n=7), n_steps=9, dt=0.4)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    tensor = unfolding.greens1()
    for d in (rng.standard_normal(9), np.eye(1, 9)[0], np.eye(1, 9, 8)[0], np.zeros(9)):
        expected = np.einsum("n,nip->ip", d, tensor)
        # The same powers of one propagator, multiplied in another order.
        assert summed(unfolding, d) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert np.abs(tensor).max() > 1e-3


@pytest.mark.parametrize("n_steps", [1, 2, 3, 4, 5, 8, 16, 17, 25, 26])
def test_sum_at_every_length_around_a_square(n_steps, rng):
    """The scheme cuts K into blocks of about √K; no remainder may be lost."""
    unfolding = unfold(small(n=4), n_steps=n_steps, dt=0.3)
    d = rng.standard_normal(n_steps)
    expected = np.einsum("n,nip->ip", d, unfolding.greens1())
    assert summed(unfolding, d) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("readout", [None, 30.0, 35.0])
def test_sum_over_several_panels_in_a_step(readout, rng):
    """At order 1 long steps are cut into panels, which the linear part shares."""
    unfolding = unfold(small(Gain.quadratic(0.1), n=5), n_steps=4, dt=10.0, order=1)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    assert unfolding.maps.plan.n_sub > 1
    d = rng.standard_normal(4)
    expected = np.einsum("n,nip->ip", d, unfolding.greens1())
    assert summed(unfolding, d) == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_a_sum_applied_to_u_is_the_state(rng):
    """The independent judge: G(x) u is the state of the network driven by x."""
    unfolding = unfold(small(), n_steps=6, dt=0.5)
    x, u = rng.standard_normal(6), rng.standard_normal(12)
    state = unfolding.states(x[None], u)[0]
    assert summed(unfolding, x) @ u == pytest.approx(state, rel=1e-12, abs=1e-14)


def test_memory_of_a_sum_is_counted_before_it_is_taken():
    unfolding = unfold(Reservoir.random(50, rng=0), n_steps=140, dt=0.1)
    unfolding.maps.greens_matrix(np.ones(140))
    powers = unfolding.maps._step_powers
    held = sum(power.nbytes for power in powers)
    assert held <= unfolding.maps.greens_bytes <= 1.5 * held
    assert len(powers) < 2 * np.sqrt(140)
