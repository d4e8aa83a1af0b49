import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from greenfold.dynamics.steppers import phi_functions


def augmented(Z, upto):
    """All φ_k from one matrix exponential of (upto + 1) times the size."""
    n = len(Z)
    big = np.zeros(((upto + 1) * n, (upto + 1) * n))
    big[:n, :n] = Z
    for k in range(upto):
        big[k * n : (k + 1) * n, (k + 1) * n : (k + 2) * n] = np.eye(n)
    whole = expm(big)
    return [whole[:n, k * n : (k + 1) * n] for k in range(upto + 1)]


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 10),
    log_time=st.floats(-8, 2.3),
    singular=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_against_an_augmented_exponential(seed, n, log_time, singular):
    rng = np.random.default_rng(seed)
    W = 0.8 * rng.standard_normal((n, n)) / np.sqrt(n)
    if singular:
        W[:, 0] = 0
        W[0, 0] = 1  # the first column of I − W vanishes
    time = 10**log_time
    Z = (W - np.eye(n)) * time
    for found, at in zip(phi_functions(Z, 3), (Z / 2, Z), strict=True):
        # Squaring, here and in `expm`, multiplies rounding by the norm.
        tolerance = 1e-13 * max(1, time)
        for ours, reference in zip(found, augmented(at, 3), strict=True):
            size = max(1.0, np.abs(reference).max())
            assert np.abs(ours - reference).max() < tolerance * size


@pytest.mark.parametrize("z", [-1e-9, -1e-3, -0.7, -30.0, -4e4, 0.0, 1.5])
def test_a_number_against_closed_forms_and_the_series(z):
    _, (zeroth, first, second, third) = phi_functions(np.array([[z]]), 3)
    assert zeroth[0, 0] == pytest.approx(np.exp(z), rel=1e-13, abs=1e-300)
    if abs(z) < 1e-2:
        expected = [1 + z / 2 + z**2 / 6, 0.5 + z / 6 + z**2 / 24, 1 / 6 + z / 24]
        # The next terms of the series are at most z²/120 and z³/24.
        tolerance = max(1e-14, z**2)
    else:
        one = np.expm1(z) / z
        two = (one - 1) / z
        expected = [one, two, (two - 0.5) / z]
        tolerance = 1e-12  # two of the closed forms cancel three digits at z = −0.7
    found = [first[0, 0], second[0, 0], third[0, 0]]
    assert found == pytest.approx(expected, rel=tolerance)


def test_overflow_is_said():
    with pytest.raises(OverflowError, match="shorten `dt` or scale the weights down"):
        phi_functions(np.array([[800.0]]), 3)
