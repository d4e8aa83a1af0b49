"""Every argument of the margins and of the sphere changes the result."""

import numpy as np
import pytest

from greenfold.math import margins
from greenfold.math.decisions import expected_calibration_error, fit_slope
from greenfold.math.sphere import maximize_on_sphere

RNG = np.random.default_rng(0)
STATES, LABELS = RNG.standard_normal((8, 3)), np.tile([-1, 1], 4)
V, Q = np.array([0.6, 0.8, 0.0]), np.diag([1.0, 2.0, 3.0])
SCORES = RNG.standard_normal((8, 2))
CODES = (LABELS > 0).astype(int)


@pytest.mark.parametrize(
    ("function", "given", "changed"),
    [
        (margins.margin, (STATES, LABELS, V), {"v": -V}),
        (margins.soft_margin, (STATES, LABELS, V), {"eta": 1.0}),
        (margins.soft_margin, (STATES, LABELS, V), {"average": False}),
        (margins.state_moments, (STATES, LABELS), {"weights": np.arange(8)}),
        (margins.gaussian_soft_margin, (V, Q, V), {"eta": 1.0}),
        (margins.svm_readout, (STATES, LABELS), {"C": 0.01}),
        (maximize_on_sphere, (V, Q), {"b": 0 * V}),
        (fit_slope, (SCORES, CODES), {"weights": np.arange(8.0)}),
        (fit_slope, (SCORES, CODES), {"possible": np.tile([True, False], (8, 1))}),
        (expected_calibration_error, (np.abs(SCORES), CODES), {"n_bins": 2}),
    ],
)
def test_every_argument_has_an_effect(function, given, changed):
    names = function.__code__.co_varnames
    before = dict(zip(names, given, strict=False))
    one, other = function(**before), function(**{**before, **changed})
    assert str(one) != str(other)
