"""Gain functions against their series and derivatives."""

import pickle

import numpy as np
import pytest

from greenfold import Gain


@pytest.mark.parametrize(
    "gain",
    [Gain.linear(), Gain.quadratic(0.2), Gain.polynomial([0, 0.5, 0.1, -0.3]), Gain.tanh()],
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
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
