import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from greenfold import Gain, Reservoir
from greenfold.unfolding.propagators import build, doubled, phi_functions, plan_quadrature

from ..conftest import small


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
def test_phi_functions_against_an_augmented_exponential(seed, n, log_time, singular):
    rng = np.random.default_rng(seed)
    W = 0.8 * rng.standard_normal((n, n)) / np.sqrt(n)
    if singular:
        W[:, 0] = 0
        W[0, 0] = 1  # the first column of I − W vanishes
    time = 10**log_time
    Z = (W - np.eye(n)) * time
    half = phi_functions(Z / 2, 3)
    for found, at in ((half, Z / 2), (doubled(half), Z), (phi_functions(Z, 1), Z)):
        # Squaring, here and in `expm`, multiplies rounding by the norm.
        tolerance = 1e-13 * max(1, time)
        for ours, reference in zip(found, augmented(at, 3), strict=len(found) == 4):
            size = max(1.0, np.abs(reference).max())
            assert np.abs(ours - reference).max() < tolerance * size


@pytest.mark.parametrize("z", [-1e-9, -1e-3, -0.7, -30.0, -4e4, 0.0, 1.5])
def test_phi_functions_of_a_number_against_closed_forms_and_the_series(z):
    zeroth, first, second, third = phi_functions(np.array([[z]]), 3)
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


def test_overflow_of_a_step_is_said():
    with pytest.raises(OverflowError, match="shorten `dt` or scale the weights down"):
        phi_functions(np.array([[800.0]]), 3)


@pytest.mark.parametrize("dt", [1e-6, 0.07, 1.0, 50.0])
@pytest.mark.parametrize("order", [1, 2])
def test_planned_quadrature_meets_its_tolerance(dt, order):
    """The states with the planned nodes agree with far more nodes to the tolerance."""
    from greenfold import unfold

    reservoir = small(Gain.quadratic(0.1), n=6)
    X = np.random.default_rng(0).standard_normal((4, 3))
    u = np.ones(6) / np.sqrt(6)
    coarse = unfold(reservoir, n_steps=3, dt=dt, order=order, tol=1e-6).states(
        X, u, orders=True
    )
    fine = unfold(reservoir, n_steps=3, dt=dt, order=order, tol=1e-13).states(
        X, u, orders=True
    )
    error = np.abs(coarse - fine).max(axis=(1, 2)) / np.abs(fine).max(axis=(1, 2))
    assert error.max() < 1e-6
    assert (error[1:] > 0).all()  # the two really used different rules


def test_quadrature_grows_with_the_step_and_needs_none_when_linear():
    reservoir = small(Gain.quadratic(0.1))
    assert plan_quadrature(small(), 1.0, 3, 1e-10) == (1, 0)
    cost = [np.prod(plan_quadrature(reservoir, dt, 1, 1e-10)) for dt in (0.01, 0.1, 1, 10)]
    assert (np.diff(cost) > 0).all()


def test_node_weights_integrate_a_polynomial_source_exactly():
    """B against the solution of τẏ = −Ay + W s(t) for s(t) of the nodes' degree."""
    reservoir = Reservoir.random(5, g=0.7, tau=0.3, gain=Gain.quadratic(0.1), rng=2)
    q, length = 8, 0.6
    panel = build(reservoir, length, q, order=2)
    powers = np.arange(q)
    direction = np.arange(1.0, 6.0)
    source = (panel.nodes[:, None] ** powers).sum(1)[:, None] * direction
    at_nodes = (source.reshape(1, -1) @ panel.B).reshape(q, 5)
    from scipy.integrate import solve_ivp

    A = np.eye(5) - reservoir.weights
    solution = solve_ivp(
        lambda t, y: (-A @ y + reservoir.weights @ direction * (t**powers).sum()) / 0.3,
        (0, length),
        np.zeros(5),
        t_eval=panel.nodes,
        rtol=1e-11,
        atol=1e-13,
        method="DOP853",
    )
    # The Gauss rule errs on degree 7 times exp(β s), β ≲ 4, by less than 1e-9.
    assert at_nodes == pytest.approx(solution.y.T, rel=1e-8)
