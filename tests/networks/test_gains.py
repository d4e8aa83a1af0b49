"""Gain functions against their series and derivatives."""

import importlib
import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfcx, ndtr

from greenfold import Gain, Reservoir, unfold
from greenfold._base.arrays import namespace, to_host

from ..conftest import LIBRARIES, slope


@pytest.mark.parametrize(
    "gain",
    [
        Gain.linear(),
        Gain.quadratic(0.2),
        Gain.polynomial([0, 0.5, 0.1, -0.3]),
        Gain.tanh(),
        Gain.sigmoid(),
        Gain.softplus(),
    ],
    ids=lambda gain: gain.name,
)
def test_gain_matches_its_taylor_series_and_derivative(gain):
    y = np.linspace(-0.1, 0.1, 11)
    series = sum(c * y**k for k, c in enumerate(gain.coefficients))
    # tanh is cut after y¹¹; the next term is 0.0035 y¹³.
    assert gain(y) == pytest.approx(series, abs=0.004 * 0.1**13 + 1e-16)
    step = 1e-6
    numeric = (gain(y + step) - gain(y - step)) / (2 * step)
    assert gain.derivative(y) == pytest.approx(numeric, abs=1e-9)
    assert pickle.loads(pickle.dumps(gain)) == gain


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Gain.polynomial([1, 1]), ValueError, r"`coefficients`.*φ\(0\) = 0"),
        (lambda: Gain.quadratic(np.inf), ValueError, "`alpha`.*finite"),
        (lambda: Gain.tanh(99), ValueError, "`degree`.*at most"),
        (lambda: Gain.biased_tanh(7), ValueError, "`b` must lie between.*got 7"),
        (lambda: Gain.biased_tanh(0.5, degree=0), ValueError, "`degree`"),
        (
            lambda: Gain.custom(np.sin, np.sin),
            ValueError,
            "`derivative` is not the derivative of `function`: at y = .* difference gives",
        ),
        (
            lambda: Gain.custom(np.cos, lambda y: -np.sin(y)),
            ValueError,
            r"`function` must be zero at zero.*φ\(0\) = 1",
        ),
        (
            lambda: Gain.custom(np.sin, 1),  # pyright: ignore[reportArgumentType]
            TypeError,
            "`derivative` must be callable",
        ),
        (
            lambda: Gain.custom(np.sum, np.cos),
            ValueError,
            "`function` must return shape",
        ),
        (
            lambda: Gain.custom(np.log, lambda y: 1 / y),
            ValueError,
            "`function` must be finite",
        ),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


BIASES = [-1.3, 0.0, 0.5, 3.0]


@pytest.mark.parametrize("b", BIASES)
def test_biased_tanh_is_what_it_says(b):
    gain = Gain.biased_tanh(b)
    y = np.linspace(-4, 4, 81)
    printed = (np.tanh(y + b) - np.tanh(b)) / (1 - np.tanh(b) ** 2)
    # The printed form cancels: rounding of tanh over 1 − tanh² b, here at most 100.
    assert gain(y) == pytest.approx(printed, abs=1e-13, rel=1e-12)
    step = 1e-6
    numeric = (gain(y + step) - gain(y - step)) / (2 * step)
    # Rounding of φ, up to 400 where b = 3, over the step; φ''' step²/6 is far below.
    assert gain.derivative(y) == pytest.approx(numeric, abs=1e-7, rel=1e-7)
    assert gain(np.zeros(1))[0] == 0
    assert gain.slope == 1
    assert gain.coefficients[2:3] == pytest.approx(
        [-np.tanh(b)][: len(gain.coefficients) - 2]
    )
    assert pickle.loads(pickle.dumps(gain))(y) == pytest.approx(gain(y), abs=0)


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
@pytest.mark.parametrize("b", [-1.3, 0.5])
def test_biased_tanh_leaves_its_series_with_the_next_power(b, degree):
    gain = Gain.biased_tanh(b, degree=degree)
    # As small as rounding allows, for the powers beyond the next to vanish beside it.
    y = np.array([4.0, 2.0, 1.0]) * (0.01 if degree <= 3 else 0.05)
    rest = np.abs(gain(y) - sum(c * y**k for k, c in enumerate(gain.coefficients)))
    assert slope(y, rest) == pytest.approx(degree + 1, abs=0.2)


def test_without_bias_it_is_tanh():
    assert Gain.biased_tanh(0.0).coefficients == pytest.approx(Gain.tanh().coefficients)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "gain",
    [
        Gain.tanh(),
        Gain.biased_tanh(0.5),
        Gain.quadratic(0.1),
        Gain.sigmoid(),
        Gain.softplus(),
        Gain.relu(),
    ],
    ids=lambda gain: gain.name,
)
def test_any_array_library(gain, library):
    y = np.linspace(-2, 2, 9)
    there = importlib.import_module(library).asarray(y)
    for call in (gain, gain.derivative):
        assert type(call(there)) is type(there)
        # Each library has its own tanh, good to some roundings.
        assert to_host(call(there)) == pytest.approx(call(y), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("library", ["numpy", *LIBRARIES])
@pytest.mark.parametrize(
    "gain", [Gain.tanh(), Gain.biased_tanh(0.5), Gain.quadratic(0.1)], ids=lambda g: g.name
)
def test_value_and_derivative_at_once(gain, library):
    xp = importlib.import_module(library)
    y = xp.asarray(np.linspace(-3, 3, 61).reshape(1, -1).tolist(), dtype=xp.float64)
    before = to_host(y).copy()
    value, derivative = gain.with_derivative(y)
    assert to_host(value) == pytest.approx(to_host(gain(y)), rel=1e-14, abs=1e-16)
    assert to_host(derivative) == pytest.approx(to_host(gain.derivative(y)), rel=1e-12)
    np.testing.assert_array_equal(to_host(y), before)


def test_custom():
    def function(y):
        return namespace(y).atan(1.5 * y)

    gain = Gain.custom(function, lambda y: 1.5 / (1 + (1.5 * y) ** 2), "arctan")
    assert gain.slope == 1.5
    assert gain.name == "arctan"
    assert gain.kind is None
    assert not gain.is_linear
    assert not gain.expands
    reservoir = Reservoir.random(5, g=0.4, gain=gain, rng=0)
    assert unfold(reservoir, n_steps=3, dt=0.1).is_linear
    with pytest.raises(ValueError, match=r"`order` = 1 .*arctan.*use `Dynamics`"):
        unfold(reservoir, n_steps=3, dt=0.1, order=1)


def test_a_custom_gain_may_have_a_kink_at_rest():
    gain = Gain.custom(lambda y: np.maximum(y, 0.1 * y), lambda y: np.where(y > 0, 1, 0.1))
    assert gain.slope == 0.1


def test_rectified_and_sigmoid_gains_are_what_they_say():
    y = np.array([-800.0, -3.0, -1e-3, 0.0, 0.7, 20.0, 800.0])
    assert Gain.relu()(y) == pytest.approx(np.maximum(y, 0), abs=0)
    assert Gain.relu().derivative(y).tolist() == [0, 0, 0, 0.5, 1, 1, 1]
    assert Gain.softplus()(y) == pytest.approx(np.logaddexp(y, 0), rel=1e-15)
    # Written with tanh, it loses what lies below rounding of 1.
    expected = np.exp(-np.logaddexp(-y, 0))
    assert Gain.sigmoid()(y) == pytest.approx(expected, rel=1e-13, abs=1e-16)
    # Their slopes: relu' from the differences, the others from the formulas.
    assert Gain.softplus().derivative(y) == pytest.approx(expected, rel=1e-13, abs=1e-16)
    slopes = np.exp(-np.logaddexp(-y, 0) - np.logaddexp(y, 0))
    assert Gain.sigmoid().derivative(y) == pytest.approx(slopes, rel=1e-9, abs=1e-16)


@pytest.mark.parametrize(
    "gain",
    [
        Gain.tanh(5),
        Gain.biased_tanh(-0.8, 5),
        Gain.sigmoid(5),
        Gain.softplus(5),
        Gain.polynomial([0, 0.5, 0.1, -0.3, 0.2, 0.1]),
    ],
    ids=lambda gain: gain.name,
)
def test_series_at_any_point_leaves_the_next_power(gain):
    points = np.array([-1.1, 0.3, 0.9, 2.0])
    found = gain.around(points)
    assert len(found) == 6
    assert found[0] == pytest.approx(0, abs=0)
    assert found[1] == pytest.approx(gain.derivative(points), rel=1e-13)
    steps = np.array([0.08, 0.04, 0.02])
    for i, point in enumerate(points):
        moved = gain(point + steps) - gain(np.array(point))
        rest = np.abs(moved - sum(c[i] * steps**k for k, c in enumerate(found)))
        if gain.kind == "polynomial":
            assert rest.max() < 1e-14  # rounding of numbers near 5
        else:
            assert slope(steps, rest) == pytest.approx(6, abs=0.4)


def test_a_gain_without_a_series_has_its_slope():
    assert [c.tolist() for c in Gain.relu().around(np.array([-1.0, 2.0]))] == [
        [0, 0],
        [0, 1],
    ]
    assert not Gain.relu().expands
    assert not Gain.relu().is_linear


def siegert(current, noise=5.0, tau_m=0.02, tau_ref=0.002, reset=0.0, threshold=15.0):
    """Return the rate (Hz) of leaky integrate-and-fire neurons (Siegert's function)."""
    rates = []
    for mean in np.atleast_1d(current):
        low, high = ((edge - mean) / noise for edge in (reset, threshold))
        passage, _ = quad(lambda s: erfcx(-s), low, high)
        rates.append(1 / (tau_ref + tau_m * np.sqrt(np.pi) * passage))
    return np.array(rates)


@pytest.mark.parametrize(
    ("function", "mean", "deviation"),
    [
        (np.tanh, 0.4, 0.8),
        (Gain.relu(), -0.3, 0.5),
        (lambda y: (y > 0.2).astype(float), 0.0, 0.7),
        (siegert, 12.0, 3.0),
    ],
    ids=["tanh", "threshold-linear", "step", "siegert"],
)
def test_a_gain_under_noise_is_the_mean_response_of_samples(function, mean, deviation):
    """Coefficients as averages over draws, within five of their standard errors."""
    gain = Gain.under_noise(function, mean, deviation)
    rng = np.random.default_rng(0)
    grid = mean + deviation * np.linspace(-7, 7, 1501)  # between which φ is looked up
    xi = rng.standard_normal(300_000)
    phi = np.interp(mean + deviation * xi, grid, function(grid))
    # The mean of φ is subtracted, which changes no average but lowers the errors.
    phi -= phi.mean()
    for k, hermite in ((1, xi), (2, (xi**2 - 1) / 2)):
        each = hermite * phi / deviation**k
        error = each.std() / np.sqrt(len(xi))
        assert gain.coefficients[k] == pytest.approx(each.mean(), abs=5 * error)
    # They are what a small signal d sees, up to its third power; common draws cancel.
    d = 0.1 * deviation
    up, down = (np.interp(mean + deviation * xi + s, grid, function(grid)) for s in (d, -d))
    odd = (up - down) / 2
    error = odd.std() / np.sqrt(len(xi))
    third = abs(gain.slope) * d * (d / deviation) ** 2
    assert gain.slope * d == pytest.approx(odd.mean(), abs=5 * error + third)


def test_a_gain_under_noise_in_closed_form():
    """A threshold-linear neuron: the normal distribution and half its density."""
    gain = Gain.under_noise(Gain.relu(), 0.7, 0.5)
    at = 0.7 / 0.5
    density = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
    expected = [0.0, ndtr(at), density / (2 * 0.5)]
    assert gain.coefficients == pytest.approx(expected, rel=1e-9)
    assert Gain.of_kind("polynomial", gain.parameters) == gain
    # A parabola stays what it is around any point, and an odd gain has no curvature.
    assert Gain.under_noise(np.square, 1.5, 2.0).coefficients == pytest.approx((0, 3, 1))
    assert Gain.under_noise(np.tanh, 0.0, 1.0).is_linear


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, 0, 1), TypeError, "`function` must be callable"),
        ((np.tanh, np.nan, 1), ValueError, "`mean`.*finite"),
        ((np.tanh, 0, 0), ValueError, "`deviation`.*positive"),
        ((lambda y: np.exp(y**2), 0, 1), ValueError, "`function` must have a mean under"),
        ((np.log, 0, 1), ValueError, "`function` must be finite"),
        ((np.sum, 0, 1), ValueError, "`function` must have 1 dim"),
    ],
)
def test_a_gain_that_noise_cannot_average_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Gain.under_noise(*arguments)
