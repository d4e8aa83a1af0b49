"""The maximum on the sphere: optimality conditions, brute force, and every hard case."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from greenfold.math.sphere import maximize_on_sphere, solve_in_eigenbasis

from ..conftest import unit


def residuals(b, Q, found):
    """What must vanish at a global maximum, relative to the size of the problem.

    (Q − λ) v = b, ‖v‖ = 1 and λ ≤ q_1 together are sufficient (Moré & Sorensen 1983), so
    these three numbers judge a solution without another solver.
    """
    size = max(np.abs(b).max(), np.abs(Q).max()) or 1.0
    stationary = Q / size @ found.v - found.multiplier / size * found.v - b / size
    below = found.multiplier / size - np.linalg.eigvalsh(Q / size)[0]
    return [np.abs(stationary).max(), abs(np.linalg.norm(found.v) - 1), max(below, 0.0)]


# A symmetric eigensolver resolves eigenvalues to about n·eps of the largest, and clusters
# within 1e-13 of it count as one: nothing better than that can be asked of n ≤ 8.
TOLERANCE = 1e-12


@st.composite
def problems(draw):
    """b and Q with every kind of spectrum: indefinite, singular, clustered, zero."""
    n = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    kind = draw(st.sampled_from(["indefinite", "singular", "clustered", "zero"]))
    q = rng.standard_normal(n)
    if kind == "singular":
        q = np.abs(q)
        q[: draw(st.integers(1, n))] = 0.0
    elif kind == "clustered":
        q = np.sort(q)
        q[: draw(st.integers(1, n))] = q[0]
    elif kind == "zero":
        q[:] = 0.0
    c = rng.standard_normal(n) * 10.0 ** draw(st.floats(-3, 3))
    if draw(st.booleans()):  # no component along the lowest eigenvalue: the hard case
        c[q == q.min()] = 0.0
    Q = (basis * q) @ basis.T
    scale = 10.0 ** draw(st.integers(-150, 150))
    return scale * (basis @ c), scale * (Q + Q.T) / 2


@settings(max_examples=150, deadline=None)
@given(problems())
def test_optimality_conditions(problem):
    b, Q = problem
    found = maximize_on_sphere(b, Q)
    assert max(residuals(b, Q, found)) < TOLERANCE
    size = max(np.abs(b).max(), np.abs(Q).max()) or 1.0
    value = b / size @ found.v - 0.5 * found.v @ (Q / size) @ found.v
    assert found.value / size == pytest.approx(value, abs=1e-13)


@pytest.mark.parametrize("scale_q", [-300, -150, 0, 150, 300])
@pytest.mark.parametrize("scale_b", [-300, -150, 0, 150, 300])
@pytest.mark.parametrize("rank", [3, 5])
def test_any_scale_of_b_and_of_q(rank, scale_b, scale_q, rng):
    L = rng.standard_normal((rank, 5))
    b = 10.0**scale_b * (L.T @ rng.standard_normal(rank))
    Q = 10.0**scale_q * (L.T @ L)
    assert max(residuals(b, Q, maximize_on_sphere(b, Q))) < TOLERANCE


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_start_of_a_general_solver_ends_higher(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    Q = (A + A.T) / 2 if seed % 2 else A[:1].T @ A[:1]
    b = (0.1 if seed % 3 else 1.0) * (Q @ rng.standard_normal(n))

    def negative(w):
        v = w / np.linalg.norm(w)
        return -(b @ v - 0.5 * v @ Q @ v)

    ends = [minimize(negative, unit(rng, n), options={"gtol": 1e-9}).fun for _ in range(10)]
    # Both sides stop at a stationary point, where the value is quadratic in the error of
    # the general solver: its gtol of 1e-9, and finite differences of 1e-8, leave 1e-12.
    assert maximize_on_sphere(b, Q).value == pytest.approx(-min(ends), abs=1e-10)


def test_singular_q_with_b_in_its_range_fills_the_norm_along_the_kernel(rng):
    """K < N: the case that returning w_1 alone, or a root search, gets wrong."""
    L = rng.standard_normal((3, 6))
    Q = L.T @ L
    b = 0.1 * Q @ unit(rng, 6)
    found = maximize_on_sphere(b, Q)
    assert found.hard_case
    assert found.multiplier == pytest.approx(0, abs=1e-13)
    # Unconstrained, b·v − ½vᵀQv is at most ½ bᵀQ⁺b, and here the sphere can reach it.
    free = 0.5 * b @ np.linalg.pinv(Q) @ b
    assert found.value == pytest.approx(free, rel=1e-12)
    lowest = np.linalg.eigh(Q)[1][:, 0]
    assert found.value > 1e3 * abs(b @ lowest - 0.5 * lowest @ Q @ lowest)


@pytest.mark.parametrize("tilt", [1e-14, -1e-14, 1e-12, 1e-8, 1e-3])
def test_near_hard_case_goes_to_the_side_of_the_small_component(tilt):
    """Without the tilt ±v_1 are equal; with it, however small, the sign decides."""
    Q = np.diag([0.0, 1.0, 2.0])
    b = np.array([tilt, 0.3, 0.2])
    found = maximize_on_sphere(b, Q)
    assert not found.hard_case
    assert np.sign(found.v[0]) == np.sign(tilt)
    # First order in the tilt: v_2 = 0.3, v_3 = 0.1, and the rest of the norm on v_1.
    assert found.v == pytest.approx(
        [np.sign(tilt) * np.sqrt(0.9), 0.3, 0.1], abs=2 * abs(tilt) + 1e-13
    )
    assert max(residuals(b, Q, found)) < TOLERANCE


def test_noise_below_rounding_counts_as_the_hard_case():
    found = maximize_on_sphere([1e-17, 0.3, 0.2], np.diag([0.0, 1.0, 2.0]))
    assert found.hard_case


def test_b_zero_is_the_lowest_eigenvector(rng):
    A = rng.standard_normal((5, 5))
    Q = A + A.T
    found = maximize_on_sphere(np.zeros(5), Q)
    values, vectors = np.linalg.eigh(Q)
    assert abs(found.v @ vectors[:, 0]) == pytest.approx(1, abs=1e-12)
    assert found.value == pytest.approx(-values[0] / 2, rel=1e-13)
    assert found.multiplier == pytest.approx(values[0], rel=1e-13)


def test_degenerate_lowest_eigenvalue_keeps_the_direction_of_b():
    Q = np.diag([1.0, 1.0, 4.0])
    found = maximize_on_sphere([3.0, 4.0, 0.0], Q)
    assert found.v == pytest.approx([0.6, 0.8, 0.0], abs=1e-14)
    assert found.value == pytest.approx(4.5, rel=1e-14)


@pytest.mark.parametrize(("b", "sign"), [(2.0, 1), (-2.0, -1), (1e-300, 1), (-1e300, -1)])
@pytest.mark.parametrize("q", [-3.0, 0.0, 5.0])
def test_one_dimension(b, sign, q):
    found = maximize_on_sphere([b], [[q]])
    assert found.v == pytest.approx([sign], abs=0)
    assert found.value == pytest.approx(abs(b) - q / 2, rel=1e-15)


def test_batches_equal_single_problems(rng):
    A = rng.standard_normal((4, 3, 6, 6))
    Q = A + np.swapaxes(A, -1, -2)
    Q[0] = A[0, :, :2].swapaxes(-1, -2) @ A[0, :, :2]
    b = rng.standard_normal((4, 3, 6))
    b[0] = 0.05 * np.einsum("...ij,...j->...i", Q[0], b[0])  # hard cases among the others
    b[1, 0] = 0.0
    found = maximize_on_sphere(b, Q)
    assert found.v.shape == (4, 3, 6)
    assert found.hard_case[0].all()
    assert not found.hard_case[2:].any()
    for index in np.ndindex(4, 3):
        single = maximize_on_sphere(b[index], Q[index])
        # The same operations, in another order of summation.
        assert found.v[index] == pytest.approx(single.v, abs=1e-14)
        assert found.value[index] == pytest.approx(float(single.value), abs=1e-13)
        assert found.multiplier[index] == pytest.approx(float(single.multiplier), abs=1e-13)
        assert found.hard_case[index] == single.hard_case


def test_one_decomposition_serves_many_scalings(rng):
    A = rng.standard_normal((5, 5))
    Q, b = A @ A.T, rng.standard_normal(5)
    etas = np.geomspace(1e-3, 1e3, 7)
    values, vectors = np.linalg.eigh(Q)
    found = solve_in_eigenbasis(b, etas[:, None] * values, vectors)
    for eta, v in zip(etas, found.v, strict=True):
        assert v == pytest.approx(maximize_on_sphere(b, eta * Q).v, abs=1e-12)


@pytest.mark.parametrize(
    ("b", "Q", "error", "message"),
    [
        (1.0, [[1.0]], ValueError, r"`Q`.*\(\.\.\., n, n\)"),
        ([1.0, 2.0], np.eye(3), ValueError, r"`Q`.*\(3, 3\) and \(2,\)"),
        ([1.0, 2.0], [1.0, 2.0], ValueError, r"`Q`.*\(2,\) and \(2,\)"),
        ([1.0, 2.0], [[0.0, 1.0], [2.0, 0.0]], ValueError, "`Q`.*symmetric"),
        ([1.0, np.nan], np.eye(2), ValueError, r"`b`.*finite.*nan"),
        ([1.0, 2.0], np.diag([1.0, np.inf]), ValueError, r"`Q`.*finite.*inf"),
        ([1j, 0], np.eye(2), TypeError, "`b`.*real"),
        ([], np.eye(2), ValueError, "`b` is empty"),
        (["x", "y"], np.eye(2), TypeError, "`b`.*numbers"),
    ],
)
def test_bad_input_is_named(b, Q, error, message):
    with pytest.raises(error, match=message):
        maximize_on_sphere(b, Q)
