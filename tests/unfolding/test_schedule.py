"""Linear sweeps: forward against a solver, backward as the adjoint of forward."""

import numpy as np
import pytest

from greenfold import Gain, simulate, unfold
from greenfold.unfolding import schedule as sweeps

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
    """A schedule of order 1, so that there are nodes, and of a high degree: panels."""
    unfolding = unfold(small(Gain.tanh(), n=6), n_steps=6, dt=dt, order=1)
    readout = readout if np.ndim(readout) else readout * dt
    schedule = unfolding.with_readout(readout)._schedule
    assert (schedule.n_panels > 1) == (dt > 0.1)
    return schedule


@EVERY
def test_driven_state_is_that_of_the_solver(readout, rng):
    signal, u = rng.standard_normal((2, 6)), rng.standard_normal((6, 2, 3))
    found = sweeps.drive(plan(readout), signal, u)
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
    schedule = plan(readout, dt=dt)
    u, v = unit(rng, 6, 2), rng.standard_normal((6, 3))
    forward = sweeps.read_pulse(schedule, u, sweeps.pulse_starts(schedule, u))
    rows = sweeps.kernel_rows(schedule, sweeps.carry_back(schedule, v), 6)
    reached = schedule.n_inputs
    assert forward.shape == (reached, 2, 6)
    # The same products of propagators in another order.
    expected = np.einsum("nci,ir->ncr", forward, v)
    assert np.einsum("npr,pc->ncr", rows[:reached], u) == pytest.approx(expected, abs=1e-14)
    assert not rows[reached:].any()


@EVERY
@PANELS
def test_pulse_adjoints_by_dot_products(readout, dt, rng):
    schedule = plan(readout, dt=dt)
    u = rng.standard_normal((6, 2))
    starts = sweeps.pulse_starts(schedule, u)
    ends = starts[schedule.n_panels :: schedule.n_panels]
    nodes = sweeps.pulse_nodes(schedule, u, starts)
    read = sweeps.read_pulse(schedule, u, starts)
    read_bar, nodes_bar = rng.standard_normal(read.shape), rng.standard_normal(nodes.shape)
    ends_bar, drive_bar = sweeps.read_pulse_adjoint(schedule, read_bar)
    direct = (drive_bar * u.T).sum()
    assert (ends_bar * ends).sum() + direct == pytest.approx((read_bar * read).sum())
    gradient = sweeps.pulse_adjoint(schedule, ends_bar, nodes_bar, drive_bar)
    # Both sides are linear in u: rounding of sums of some hundred terms.
    expected = (read_bar * read).sum() + (nodes_bar * nodes).sum()
    assert (gradient * u).sum() == pytest.approx(expected, rel=1e-12)
    without = sweeps.pulse_adjoint(schedule, ends_bar, None, drive_bar)
    assert (without * u).sum() == pytest.approx((read_bar * read).sum(), rel=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 31, 100])
@pytest.mark.parametrize("n_powers", [1, 2, 4])
def test_iterates_are_powers_one_after_the_other(count, n_powers, rng):
    E = rng.standard_normal((5, 5)) / 3
    powers = [np.linalg.matrix_power(E, 2**level) for level in range(n_powers)]
    found = sweeps.iterates(rng.standard_normal((2, 5)), powers, count)
    assert found.shape == (count, 2, 5)
    # Each from the one before; rounding of sums of five terms.
    size = np.abs(found).max()
    assert found[1:] == pytest.approx(found[:-1] @ E, abs=1e-13 * size)
