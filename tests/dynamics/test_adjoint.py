"""Gradients of the discrete scheme: Taylor remainders, and PyTorch's autograd."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from greenfold._base.arrays import namespace, to_host
from greenfold.dynamics.steppers import NonlinearPart, exponential_step
from greenfold.unfolding.propagators import Step, make_plan
from greenfold.unfolding.walk import Walk

from ..conftest import LIBRARIES, slope, unit
from .problems import gain_of, in_library, problem

READOUTS = {
    "end": {},
    "earlier": {"weights": np.eye(6)[3]},
    "weights": {"weights": np.array([0.5, 0.0, -1.0, 2.0, 0.0, 1.0])},
    "time": {"time": 0.55},
    "first step": {"time": 0.07},
}


def taylor_slope(value, u, gradient, direction):
    """Slope of the remainder of the first-order expansion."""
    sizes = np.array([1e-1, 3e-2, 1e-2, 3e-3])
    first = float((gradient * direction).sum())
    remainders = [abs(value(u + e * direction) - value(u) - e * first) for e in sizes]
    return slope(sizes, remainders)


@pytest.mark.parametrize(
    "library", ["numpy", pytest.param("torch", marks=pytest.mark.needs("torch"))]
)
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("gain", ["tanh", "biased tanh", "quadratic", "sigmoid"])
def test_taylor_slope(gain, readout, library, rng):
    case = problem(gain, n_channels=2, tau=np.linspace(0.15, 0.35, 12), bias=0.1)
    plan = case.make(2, **READOUTS[readout])
    X, u, v = in_library(4 * case.X, library), case.u, unit(rng, 12)
    cotangent = rng.standard_normal((5, 12))
    given = in_library(cotangent, library)
    gradient, nothing = Walk(plan, X, u).pullback(given)
    assert nothing is None
    assert type(gradient) is type(X)
    direction = unit(rng, 12, 2)

    def value(u):
        return float((to_host(Walk(plan, X, u).states) * cotangent).sum())

    assert taylor_slope(value, u, to_host(gradient), direction) >= 1.9

    # Through z = Y v: a function of both projections.
    def of_both(u, v):
        return float(np.sum(np.sin(to_host(Walk(plan, X, u).states) @ v)))

    bar = np.cos(to_host(Walk(plan, X, u).states) @ v)
    u_bar, v_bar = (
        to_host(g) for g in Walk(plan, X, u).pullback(in_library(bar, library), v)
    )
    assert taylor_slope(lambda u: of_both(u, v), u, u_bar, direction) >= 1.9
    assert taylor_slope(lambda v: of_both(u, v), v, v_bar, unit(rng, 12)) >= 1.9


def krogstad(case, X, u, n_sub, torch):
    """The method as its tableau is printed, in PyTorch, with φ from an augmented expm."""
    n, h = len(case.weights), case.dt / n_sub
    slopes = case.derivative(case.rest)
    L = (case.weights * slopes - np.eye(n)) / case.tau[:, None]

    def phis(Z):
        big = np.zeros((4 * n, 4 * n))
        big[:n, :n] = Z
        for k in range(3):
            big[k * n : (k + 1) * n, (k + 1) * n : (k + 2) * n] = np.eye(n)
        whole = expm(big)
        return [torch.asarray(whole[:n, k * n : (k + 1) * n].copy()) for k in range(4)]

    half, full = phis(h * L / 2), phis(h * L)
    rest, W = torch.asarray(case.rest), torch.asarray(case.weights)
    tau, s = torch.asarray(case.tau), torch.asarray(slopes)

    def N(d, drive):
        lifted = case.function(d + rest) - case.function(rest) - s * d
        return (lifted @ W.T + drive) / tau

    d = torch.zeros((len(X), n), dtype=torch.float64)
    ends = []
    for step in range(X.shape[2]):
        drive = X[:, :, step] @ u.T
        for _ in range(n_sub):
            n1 = N(d, drive)
            a = d @ half[0].T + h / 2 * n1 @ half[1].T
            n2 = N(a, drive)
            b = d @ half[0].T + h * n1 @ (half[1] / 2 - half[2]).T + h * n2 @ half[2].T
            n3 = N(b, drive)
            c = d @ full[0].T + h * n1 @ (full[1] - 2 * full[2]).T + 2 * h * n3 @ full[2].T
            n4 = N(c, drive)
            d = (
                d @ full[0].T
                + h * n1 @ (full[1] - 3 * full[2] + 4 * full[3]).T
                + h * (n2 + n3) @ (2 * full[2] - 4 * full[3]).T
                + h * n4 @ (4 * full[3] - full[2]).T
            )
        ends.append(d)
    return torch.stack(ends, dim=1)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("n_sub", [1, 2])
@pytest.mark.parametrize("gain", ["tanh", "biased tanh", "quadratic", "custom", "sigmoid"])
def test_equal_to_autograd_through_the_printed_method(gain, n_sub, rng):
    import torch

    case = problem(gain, n_channels=2, tau=np.linspace(0.15, 0.35, 12), bias=0.1)
    weights = rng.standard_normal(6)
    cotangent = rng.standard_normal((5, 12))
    X, u = torch.asarray(case.X), torch.asarray(case.u).requires_grad_()
    ends = krogstad(case, X, u, n_sub, torch)
    read = torch.einsum("ckn,k->cn", ends, torch.asarray(weights))
    (read * torch.asarray(cotangent)).sum().backward()

    plan = case.make(n_sub, weights=weights)
    found = Walk(plan, case.X, case.u).states
    gradient, _ = Walk(plan, case.X, case.u).pullback(cotangent)
    # Both are float64; the two ways of writing the method differ by rounding.
    assert found == pytest.approx(read.detach().numpy(), rel=1e-10, abs=1e-12)
    assert u.grad is not None
    expected = u.grad.numpy()
    assert np.abs(gradient - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("length", [1, 2, 5, 7, 17, 18])
@pytest.mark.parametrize("readout", READOUTS)
def test_segments_give_the_same_gradient(readout, length, rng):
    """Whatever part of the way is kept: the same steps, so the same numbers to the bit."""
    case = problem(n_steps=6)
    plan = case.make(3, **READOUTS[readout])
    cotangent = rng.standard_normal((5, 12))
    whole, n_places = Walk(plan, case.X, case.u), len(plan.places)
    expected = whole.record(slice(0, 5), n_places).pullback(cotangent)
    recording = whole.record(slice(0, 5), min(length, n_places))
    assert np.array_equal(recording.read, Walk(plan, case.X, case.u).states)
    assert np.array_equal(recording.pullback(cotangent), expected)
    assert np.array_equal(recording.pullback(cotangent), expected)  # walked again


@pytest.mark.parametrize("budget", [1, 1e4, 1e6])
@pytest.mark.parametrize("library", ["numpy", *LIBRARIES])
def test_any_memory_gives_the_same_answers(budget, library, rng, monkeypatch):
    from greenfold._base import arrays as _arrays

    case = problem(n_cases=9, n_channels=2)
    plan = case.make(2, time=0.55)
    cotangent, v = rng.standard_normal(9), unit(rng, 12)
    expected = Walk(plan, case.X, case.u).pullback(cotangent, v)
    expected_states = Walk(plan, case.X, case.u).states
    monkeypatch.setattr(_arrays, "BATCH_BYTES", budget)
    monkeypatch.setattr(Step, "most_rows", 4)
    X, bar = in_library(case.X, library), in_library(cotangent, library)
    at = Walk(plan, X, case.u, keep=True)
    answers = [
        (at.states, expected_states),
        (Walk(plan, X, case.u).states, expected_states),
        *zip(Walk(plan, X, case.u).pullback(bar, v), expected, strict=True),
        *zip(at.pullback(bar, v), expected, strict=True),
        *zip(at.pullback(bar, v), expected, strict=True),
    ]
    for found, wanted in answers:
        assert namespace(found) is namespace(X)
        # Sums over cases are taken in another order.
        assert to_host(found) == pytest.approx(wanted, rel=1e-11, abs=1e-13)


@pytest.mark.needs("torch")
def test_autograd_of_the_caller_is_left_alone(rng):
    import torch

    case = problem()
    X = torch.asarray(case.X).requires_grad_()
    found = Walk(case.make(1), X, case.u).states
    assert not found.requires_grad
    assert torch.is_grad_enabled()


def test_single_precision(rng):
    """float32 stimuli are computed in float32, with its rounding and no more."""
    case = problem(n_channels=2)
    plan = case.make(2)
    cotangent = rng.standard_normal((5, 12))
    exact = Walk(plan, case.X, case.u).states
    exact_gradient, _ = Walk(plan, case.X, case.u).pullback(cotangent)
    X = case.X.astype(np.float32)
    found = Walk(plan, X, case.u).states
    gradient, _ = Walk(plan, X, case.u).pullback(cotangent)
    assert found.dtype == np.float32
    assert gradient.dtype == np.float64  # a sum over the series
    # Twelve sub-steps of a dozen roundings of 6e-8 each.
    assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()
    assert np.abs(gradient - exact_gradient).max() < 1e-5 * np.abs(exact_gradient).max()
    assert Walk(plan, X.astype(np.float16), case.u).states.dtype == np.float64


def test_a_gain_may_give_value_and_slope_at_once(rng):
    case = problem("sigmoid", bias=0.2)
    seen = []

    def joint(y):
        seen.append(y.shape)
        return case.function(y), case.derivative(y)

    f = NonlinearPart.around(case.rest, gain_of(case.function, case.derivative, joint))
    plan = make_plan(
        lambda dt: (exponential_step(case.weights, case.tau, f, dt / 2), 2),
        case.dt,
        np.eye(6)[-1],
    )
    cotangent = rng.standard_normal((5, 12))
    found, _ = Walk(plan, case.X, case.u).pullback(cotangent)
    expected, _ = Walk(case.make(2), case.X, case.u).pullback(cotangent)
    assert np.array_equal(found, expected)
    assert len(seen) == 6 * 2 * 4


def test_a_gain_that_returns_its_argument_is_not_written_to():
    case = replace(problem("quadratic"), function=lambda y: y, derivative=np.ones_like)
    kept = []

    def function(y):
        kept.append((y, y.copy()))
        return y

    Walk(replace(case, function=function).make(2), case.X, case.u).states
    assert all(np.array_equal(now, then) for now, then in kept)
