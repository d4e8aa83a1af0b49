"""Attributes and kinds of gains."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Gain, Reservoir


@pytest.mark.parametrize(
    ("gain", "linear"),
    [
        (Gain.linear(), True),
        (Gain.quadratic(0.0), True),
        (Gain.polynomial([0.0, 2.0]), True),
        (Gain.quadratic(0.1), False),
        (Gain.tanh(), False),
        (Gain.tanh(1), False),  # its expansion is linear, its φ is not
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_gain_is_linear_where_its_function_is(gain, linear):
    y = np.linspace(-2, 2, 41)
    assert np.allclose(gain(y), gain.slope * y, atol=1e-12) == linear
    assert gain.is_linear == linear
    growing = 1.1 * np.eye(3) / gain.slope
    if linear:
        assert not Reservoir(growing, gain=gain, allow_unstable=True).is_stable
    else:
        with pytest.raises(ValueError, match="unstable"):
            Reservoir(growing, gain=gain, allow_unstable=True)
