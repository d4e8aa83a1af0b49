"""Chaotic series, each against an integrator that shares no code with its own."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from benchmarks import _chaos
from greenfold import datasets


def lorenz_field(_, s):
    x, y, z = s
    return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]


def lorenz96_field(_, s):
    n = len(s)
    return [(s[(i + 1) % n] - s[i - 2]) * s[i - 1] - s[i] + 8 for i in range(n)]


@pytest.mark.parametrize(
    ("make", "field", "dt"),
    [
        (datasets.lorenz, lorenz_field, 0.05),
        (_chaos.lorenz96, lorenz96_field, 0.05),
    ],
    ids=["lorenz", "lorenz96"],
)
def test_each_sample_follows_from_the_one_before(make, field, dt):
    series = make(25, rng=0)
    again = [
        solve_ivp(field, (0, dt), one, method="Radau", rtol=1e-11, atol=1e-11).y[:, -1]
        for one in series[:6]
    ]
    # Radau's own tolerance over one interval, and the dense output of DOP853, whose order
    # is 7 of 8: ten times the 1e-8 that was seen.
    assert np.abs(np.array(again) - series[1:7]).max() < 1e-7 * series.std()


def test_mackey_glass_is_that_of_an_ode_solver():
    """Half a delay further, by DOP853 with the past interpolated by a spline."""
    path = datasets.mackey_glass(400, dt=0.1, rng=0)
    past = CubicSpline(0.1 * np.arange(300), path[:300])

    def slope(t, x):
        delayed = past(t - 17)
        return 0.2 * delayed / (1 + delayed**10) - 0.1 * x

    found = solve_ivp(
        slope, (29.9, 39.9), [path[299]], method="DOP853", rtol=1e-11, atol=1e-12
    )
    # The spline's own error is (0.1)⁴ x'''' / 384 ~ 1e-7.
    assert path[399] == pytest.approx(found.y[0, -1], abs=1e-6)


def test_mackey_glass_does_not_depend_on_its_substeps():
    """The same history with steps of 0.1 and of 0.05, before chaos tells them apart."""
    one = datasets.mackey_glass(5, dt=0.1, rng=3)
    other = datasets.mackey_glass(9, dt=0.05, rng=3)
    # A thousand units of time are six Lyapunov times: errors of 1e-9 grow 400 times.
    assert one == pytest.approx(other[::2], abs=1e-4)
    long = datasets.mackey_glass(2000, rng=0)
    assert long.min() > 0.2
    assert long.max() < 1.5


def test_kuramoto_sivashinsky_follows_its_equation():
    """One sample further, by an implicit solver of the semi-discrete equation."""
    n, length = 64, 22.0
    series = _chaos.kuramoto_sivashinsky(3, rng=0)
    k = 2 * np.pi / length * np.fft.fftfreq(n, 1 / n)

    def field(_, u):
        v = np.fft.fft(u)
        linear = np.real(np.fft.ifft((k**2 - k**4) * v))
        return linear - u * np.real(np.fft.ifft(1j * k * v))

    found = solve_ivp(field, (0, 0.25), series[0], method="BDF", rtol=1e-9, atol=1e-9).y[
        :, -1
    ]
    # BDF's tolerance, accumulated over its steps; what is dealiased here is not there.
    assert np.abs(found - series[1]).max() < 1e-5
    assert series.mean(1) == pytest.approx(0, abs=1e-10)  # the equation keeps the mean


def test_the_seed_decides():
    for make in (datasets.lorenz, datasets.mackey_glass, _chaos.kuramoto_sivashinsky):
        first = make(3, rng=1)
        assert np.array_equal(first, make(3, rng=1))
        assert not np.array_equal(first, make(3, rng=2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.lorenz(0), "`n_samples` must be at least 1"),
        (lambda: datasets.mackey_glass(5, dt=0), "`dt` must be a positive finite number"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
