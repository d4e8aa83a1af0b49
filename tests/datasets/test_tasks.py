"""Generators of regression tasks, judged by their own recursions and by an ODE solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from greenfold.datasets import channel_equalisation, mackey_glass, memory_task, narma


def test_memory():
    x, y = memory_task(50, 3, rng=0)
    assert y.shape == (50, 3)
    np.testing.assert_array_equal(y[5:, 2], x[2:-3])
    np.testing.assert_array_equal(memory_task(50, [0, 2], rng=0)[1][:, 0], x)


def test_narma_follows_its_recursion():
    x, y = narma(300, rng=0)
    for t in range(12, 300):
        # Entry t holds y_{t+1}; nine further ones before it.
        past = y[t - 10 : t].sum()
        wanted = 0.3 * y[t - 1] + 0.05 * y[t - 1] * past + 1.5 * x[t - 9] * x[t] + 0.1
        assert y[t] == pytest.approx(wanted, rel=1e-12)
    assert 0 < y.min() < y.max() < 2


def test_the_channel_is_a_moving_average_with_a_curve():
    x, y = channel_equalisation(4000, noise=200.0, rng=1)
    # d_{t−2} is y_t: the taps of d_{t+2} … d_{t−7} stand at y_{t+4} … y_{t−5}.
    taps = [0.08, -0.12, 1, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01]
    q = np.sum([tap * y[9 - k : len(y) - k] for k, tap in enumerate(taps)], axis=0)
    np.testing.assert_allclose(
        x[5 : len(q) + 5], q + 0.036 * q**2 - 0.011 * q**3, atol=1e-8
    )
    noisy, _ = channel_equalisation(20_000, noise=20.0, rng=1)
    clean, _ = channel_equalisation(20_000, noise=200.0, rng=1)
    ratio = clean.var() / (noisy - clean).var()
    # The variance of 2·10⁴ draws scatters by 1 %.
    assert ratio == pytest.approx(100, rel=0.05)


def test_mackey_glass_is_that_of_an_ode_solver():
    """One delay further, by DOP853 with the past interpolated by a spline."""
    from scipy.interpolate import CubicSpline

    path = mackey_glass(2000, dt=0.1, rng=0)
    time = 0.1 * np.arange(400)
    past = CubicSpline(time, path[:400])

    def slope(t, x):
        delayed = past(t - 17)
        return 0.2 * delayed / (1 + delayed**10) - 0.1 * x

    start = 399
    found = solve_ivp(
        slope,
        (39.9, 50.0),
        [path[start]],
        method="DOP853",
        rtol=1e-10,
        atol=1e-12,
        t_eval=[50.0],
    )
    # The delayed value is interpolated linearly at the middle of a step: error ~ h²/8 x''.
    assert path[500] == pytest.approx(found.y[0, -1], abs=1e-3)
    assert 0.2 < path.min() < path.max() < 1.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: memory_task(5, [-1]), "`delays` must be whole numbers of at least 0"),
        (lambda: mackey_glass(5, dt=0.15), "must be multiples of 0.1"),
        (lambda: narma(0), "`n_samples` must be at least 1"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
