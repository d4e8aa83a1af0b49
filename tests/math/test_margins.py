"""Margins against their definitions, sampling, and other solvers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from greenfold.math.margins import (
    gaussian_soft_margin,
    labelled,
    margin,
    soft_margin,
    state_moments,
    svm_readout,
)

from ..conftest import unit


@pytest.fixture
def data(rng):
    labels = np.array([1, -1] * 10)
    return rng.standard_normal((20, 4)) + labels[:, None], labels, unit(rng, 4)


def test_margin_is_the_smallest_signed_distance(data):
    states, labels, v = data
    loop = min(
        zeta * sum(y * w for y, w in zip(state, v, strict=True))
        for state, zeta in zip(states, labels, strict=True)
    )
    assert margin(states, labels, v) == pytest.approx(loop, rel=1e-14)


@pytest.mark.parametrize("average", [True, False])
def test_soft_margin_is_its_definition(data, average):
    states, labels, v = data
    terms = np.exp(-3.0 * labels * (states @ v))
    total = terms.mean() if average else terms.sum()
    found = soft_margin(states, labels, v, 3.0, average=average)
    assert found == pytest.approx(-np.log(total) / 3.0, rel=1e-13)


@settings(max_examples=100, deadline=None)
@given(st.floats(-3, 12), st.integers(0, 1000))
def test_soft_margin_brackets_the_margin_for_any_eta(exponent, seed):
    """margin ≤ soft margin ≤ margin + ln(n)/η, and the sum is lower by ln(n)/η exactly."""
    rng = np.random.default_rng(seed)
    eta, n = 10.0**exponent, 7
    states, labels = rng.standard_normal((n, 3)), rng.choice([-1, 1], n)
    v = unit(rng, 3)
    hard, soft = margin(states, labels, v), soft_margin(states, labels, v, eta)
    slack = np.log(n) / eta
    rounding = 1e-14 * (np.abs(states).max() + slack)
    assert hard - rounding <= soft <= hard + slack + rounding
    summed = soft_margin(states, labels, v, eta, average=False)
    assert soft - summed == pytest.approx(slack, rel=1e-10, abs=4 * rounding)


def test_eta_to_infinity_recovers_the_margin_at_rate_one_over_eta(data):
    states, labels, v = data
    hard = margin(states, labels, v)
    etas = np.array([1e2, 1e4, 1e8, 1e300])
    excess = np.array([soft_margin(states, labels, v, eta) - hard for eta in etas])
    # One case is closest, so that the excess tends to ln(20)/η.
    assert excess[1:3] == pytest.approx(np.log(20) / etas[1:3], rel=1e-6)
    assert excess[3] == pytest.approx(0, abs=1e-15)


def test_soft_margin_stands_huge_states(data):
    states, labels, v = data
    found = soft_margin(1e200 * states, labels, v, 1e50)
    assert found == pytest.approx(margin(1e200 * states, labels, v), rel=1e-14)


def test_small_eta_tends_to_the_mean(data):
    states, labels, v = data
    mean = float((labels[:, None] * states).mean(0) @ v)
    assert soft_margin(states, labels, v, 1e-8) == pytest.approx(mean, abs=1e-7)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0.1, 100))
def test_concave_in_v(seed, share, eta):
    rng = np.random.default_rng(seed)
    states, labels = rng.standard_normal((6, 3)), rng.choice([-1, 1], 6)
    one, other = rng.standard_normal((2, 3))
    between = soft_margin(states, labels, share * one + (1 - share) * other, eta)
    chord = share * soft_margin(states, labels, one, eta) + (1 - share) * soft_margin(
        states, labels, other, eta
    )
    assert between >= chord - 1e-12  # rounding of numbers of order ten


@pytest.mark.parametrize("eta", [0.3, 1.0, 2.0])
def test_gaussian_form_is_exact_for_gaussian_states(eta):
    """For Gaussian ζy, −(1/η) ln⟨exp(−ηz)⟩ is v·M − (η/2) vᵀΣv: against sampling."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((3, 3)) / 3
    M, Sigma, v = rng.standard_normal(3), A @ A.T, unit(rng, 3)
    n = 400_000
    signed = rng.standard_normal((n, 3)) @ A.T + M
    labels = rng.choice([-1, 1], n)
    found = soft_margin(signed * labels[:, None], labels, v, eta)
    exact = gaussian_soft_margin(M, Sigma, v, eta)
    # Delta method: the standard error of −ln(mean e)/η is sd(e)/(η √n mean(e)), and for a
    # log-normal e of variance s² = η² vᵀΣv, sd/mean = √(exp(s²) − 1). Four of them.
    error = np.sqrt(np.expm1(eta**2 * (v @ Sigma @ v)) / n) / eta
    assert found == pytest.approx(exact.value, abs=4 * error)
    assert error < 1e-2  # sharp enough to see a missing factor ½
    assert exact.variance > 20 * error


def test_terms_of_the_gaussian_form(rng):
    A = rng.standard_normal((4, 4))
    M, Sigma, v = rng.standard_normal(4), A @ A.T, rng.standard_normal(4)
    value, separation, variance = gaussian_soft_margin(M, Sigma, v, 7.0)
    assert separation == pytest.approx(float(np.einsum("i,i", M, v)), rel=1e-14)
    assert variance == pytest.approx(
        3.5 * float(np.einsum("i,ij,j", v, Sigma, v)), rel=1e-13
    )
    assert value == separation - variance


def test_gaussian_form_is_the_second_cumulant(data):
    """For any states it agrees with the soft margin to second order in η."""
    states, labels, v = data
    etas = np.array([0.02, 0.01, 0.005])
    M, Sigma = state_moments(states, labels)
    errors = [
        abs(
            soft_margin(states, labels, v, eta)
            - gaussian_soft_margin(M, Sigma, v, eta).value
        )
        for eta in etas
    ]
    # The third cumulant enters with η².
    assert np.polyfit(np.log(etas), np.log(errors), 1)[0] == pytest.approx(2, abs=0.1)


def test_state_moments_are_the_weighted_moments_of_numpy(data, rng):
    states, labels, _ = data
    weights = rng.uniform(0, 2, 20)
    signed = states * labels[:, None]
    for given_weights in (None, weights):
        M, Sigma = state_moments(states, labels, given_weights)
        assert pytest.approx(np.average(signed, axis=0, weights=given_weights)) == M
        reference = np.cov(signed.T, aweights=given_weights, ddof=0)
        assert pytest.approx(reference, rel=1e-12) == Sigma


def test_state_moments_do_not_lose_digits_to_an_offset(rng):
    """A common offset of ζy of 1e8 must leave the covariance at eps · 1e8 or better."""
    signed = rng.standard_normal((50, 3))
    labels = rng.choice([-1, 1], 50)
    _, plain = state_moments(signed * labels[:, None], labels)
    _, moved = state_moments((signed + 1e8) * labels[:, None], labels)
    assert moved == pytest.approx(plain, abs=1e-6)


@pytest.fixture
def separable():
    rng = np.random.default_rng(3)
    labels = np.repeat([1, -1], 15)
    return rng.standard_normal((30, 3)) + 3 * labels[:, None], labels


def test_svm_readout_maximises_the_margin(separable):
    """Against the definition as a quadratic program: min ‖w‖² with ζ w·y ≥ 1."""
    states, labels = separable
    signed = labelled(states, labels)
    solve: Any = minimize
    best = solve(
        lambda w: w @ w,
        np.ones(3),
        jac=lambda w: 2 * w,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda w: signed @ w - 1,
            "jac": lambda _: signed,
        },
        options={"ftol": 1e-14},
    )
    assert best.success
    truth = 1 / np.linalg.norm(best.x)
    v = svm_readout(states, labels)
    assert np.linalg.norm(v) == pytest.approx(1, rel=1e-14)
    # The penalty C = 1e4 is finite: the closest states give way by about 1/C of 1.
    assert margin(states, labels, v) == pytest.approx(truth, rel=1e-3)
    assert margin(states, labels, v) <= truth * (1 + 1e-9)


def test_svm_readout_does_not_depend_on_the_unit_of_the_states(separable):
    states, labels = separable
    v = svm_readout(states, labels)
    assert svm_readout(1e-6 * states, labels) == pytest.approx(v, abs=1e-6)
    assert svm_readout(1e6 * states, labels) == pytest.approx(v, abs=1e-6)


def test_svm_plane_passes_through_the_origin(separable):
    """States of both classes on one side: separable by a plane, not by one through 0."""
    states, labels = separable
    moved = states + 100 * unit(np.random.default_rng(0), 3)
    signed = labelled(moved, labels)
    through_origin = linprog(np.zeros(3), -signed, -np.ones(30), bounds=[(None, None)] * 3)
    v = svm_readout(moved, labels, C=1.0)
    assert (margin(moved, labels, v) > 0) == (through_origin.status == 0)


OK, LABELS = np.ones((2, 3)), [1, -1]


@pytest.mark.parametrize(
    ("function", "arguments", "error", "message"),
    [
        (margin, (OK, [1], np.ones(3)), ValueError, "`labels`.*one entry per case, 2.*1"),
        (margin, (OK, [1, 2], np.ones(3)), ValueError, r"`labels`.*−1 or \+1.*2\.0"),
        (margin, (OK, [0, 1], np.ones(3)), ValueError, r"`labels`.*−1 or \+1.*0\.0"),
        (margin, (OK, LABELS, np.ones(2)), ValueError, r"`v`.*\(3,\).*\(2,\)"),
        (margin, (np.ones(3), LABELS, np.ones(3)), ValueError, "`states`.*2 dimensions"),
        (margin, (OK * np.nan, LABELS, np.ones(3)), ValueError, "`states`.*finite.*nan"),
        (margin, (OK, ["a", "b"], np.ones(3)), TypeError, "`labels`.*numbers"),
        (margin, (np.empty((0, 3)), [], np.ones(3)), ValueError, "`states` is empty"),
        (soft_margin, (OK, LABELS, np.ones(3), 0), ValueError, "`eta`.*positive.*0"),
        (soft_margin, (OK, LABELS, np.ones(3), -1), ValueError, "`eta`.*positive.*-1"),
        (soft_margin, (OK, LABELS, np.ones(3), np.inf), ValueError, "`eta`.*finite"),
        (soft_margin, (OK, LABELS, np.ones(3), "10"), TypeError, "`eta`.*positive number"),
        (
            gaussian_soft_margin,
            (np.ones(3), np.eye(2), np.ones(3)),
            ValueError,
            r"`Sigma`.*\(3, 3\).*\(2, 2\)",
        ),
        (gaussian_soft_margin, (np.ones(3), np.eye(3), np.ones(2)), ValueError, "`v`.*3"),
        (gaussian_soft_margin, (np.ones(3), np.eye(3), np.ones(3), 0), ValueError, "`eta`"),
        (state_moments, (OK, LABELS, [1.0]), ValueError, r"`weights`.*2 non-neg.*\(1,\)"),
        (state_moments, (OK, LABELS, [1.0, -1]), ValueError, "`weights`.*minimum -1"),
        (state_moments, (OK, LABELS, [0.0, 0]), ValueError, "`weights`.*not all zero"),
        (svm_readout, (np.eye(3), [1, 1, 1]), ValueError, "`labels`.*only one class"),
        (svm_readout, (np.zeros((2, 3)), LABELS), ValueError, "`states` are all equal"),
    ],
)
def test_bad_input_is_named(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(*arguments)


def test_svm_refuses_a_penalty_of_zero():
    with pytest.raises(ValueError, match="`C`.*positive"):
        svm_readout(np.eye(2), [1, -1], C=0)
