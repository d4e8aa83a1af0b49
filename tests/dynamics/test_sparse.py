"""Steps from products with a sparse W, against an ODE solver and against dense steps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import solve_ivp

from greenfold._base.arrays import namespace, to_host
from greenfold.dynamics.integration import plan_substeps
from greenfold.dynamics.steppers import NonlinearPart, TrueStep, leaky_step, sparse_step
from greenfold.networks.gains import Gain
from greenfold.unfolding.propagators import StepPlan
from greenfold.unfolding.sparse import Product
from greenfold.unfolding.walk import Walk

from ..conftest import LIBRARIES, slope
from .problems import in_library

N = 30
GAINS = {"tanh": Gain.tanh(), "sigmoid": Gain.sigmoid(), "quadratic": Gain.quadratic(0.1)}


@pytest.fixture
def W(rng):
    full = rng.standard_normal((N, N)) * (rng.random((N, N)) < 0.2)
    return sparse.csr_array(0.4 * full)


def make(W, gain, tau, length, at_rest=True):
    centre = np.zeros(N) if at_rest else np.random.default_rng(1).normal(0, 0.3, N)
    f = NonlinearPart.around(centre, gain, keep_line=True)
    return sparse_step(W, np.broadcast_to(tau, (N,)), f, length), centre


@pytest.mark.parametrize("name", GAINS)
@pytest.mark.parametrize("at_rest", [True, False])
def test_a_step_is_of_order_eight(W, rng, name, at_rest):
    gain, tau, T, x = GAINS[name], rng.uniform(0.2, 0.5, N), 0.2, 0.7
    u, start = rng.standard_normal((2, N))
    start *= 0.3
    _, centre = make(W, gain, tau, T, at_rest)

    def rate(_, d):
        return (-d + W @ (gain(centre + d) - gain(centre)) + u * x) / tau

    # The judge has the same coefficients, but its own steps, without the exact decay.
    judge = solve_ivp(rate, (0, T), start, "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    errors = []
    for n_sub in (2, 4, 8):
        step, _ = make(W, gain, tau, T / n_sub, at_rest)
        y, push = start[None], np.array([[x]]) @ step.input_map(u[:, None])
        for _ in range(n_sub):
            y = step.advance(y, push)
        errors.append(np.abs(y[0] - judge).max())
    # Order 8 gains a factor of 256 per halving, up to the judge's error of about 1e-13.
    for one, other in pairwise(errors):
        assert other < max(1e-12, one / 2**7)
    assert errors[-1] < 1e-10


def test_decay_and_input_alone_are_exact(rng):
    tau, x, length = rng.uniform(0.02, 2.0, N), 0.7, 1.5
    step, _ = make(sparse.csr_array((N, N)), Gain.tanh(), tau, length)
    y, u = rng.standard_normal((2, N))
    found = step.advance(y[None], x * u[None])[0]
    decay = np.exp(-length / tau)
    np.testing.assert_allclose(found, decay * y + (1 - decay) * x * u, rtol=1e-12)


def plans(W, rng, kind):
    """A plan of two sub-steps, in continuous or discrete time."""
    if kind == "leaky":
        leak = rng.uniform(0.3, 1.0, N)
        step = leaky_step(W, leak, Gain.tanh(), None, np.zeros(N))
    else:
        step, _ = make(W, Gain.tanh(), rng.uniform(0.2, 0.5, N), 0.1)
    return StepPlan(step, 1 if kind == "leaky" else 2, np.eye(1, 6, 5)[0])


@pytest.mark.parametrize("kind", ["sparse", "leaky"])
def test_the_gradient_leaves_a_remainder_of_second_order(W, rng, kind):
    plan = plans(W, rng, kind)
    X, bar = rng.standard_normal((7, 2, 6)), rng.standard_normal((7, N))
    u, direction = rng.standard_normal((2, N, 2))

    def loss(u):
        return float((bar * Walk(plan, X, u).states).sum())

    gradient, _ = Walk(plan, X, u).pullback(bar)
    steps = np.array([1e-1, 3e-2, 1e-2, 3e-3])
    left = [
        abs(loss(u + e * direction) - loss(u) - e * float((gradient * direction).sum()))
        for e in steps
    ]
    assert slope(steps, left) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("kind", ["sparse", "leaky"])
def test_tangents_and_cotangents_are_adjoint(W, rng, kind):
    step, slopes = plans(W, rng, kind).step, []
    y, push = rng.standard_normal((2, 1, N))
    step.advance(y, push, slopes)
    dy, dpush, bar = rng.standard_normal((3, 5, N))
    tangents = step.push_forward(dy, dpush, slopes)
    y_bar, push_bar = step.retreat(bar.copy(), slopes)
    both = float((dy * y_bar + dpush * push_bar).sum())
    # Sums of a few hundred terms of order one.
    assert float((bar * tangents).sum()) == pytest.approx(both, rel=1e-11)


@pytest.mark.parametrize("kind", ["sparse", "leaky"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_any_library_gives_the_same_answers(W, rng, kind, library):
    plan = plans(W, rng, kind)
    X, bar = rng.standard_normal((7, 2, 6)), rng.standard_normal((7, N))
    u = rng.standard_normal((N, 2))
    host = Walk(plan, X, u)
    X, bar_there = in_library(X, library), in_library(bar, library)
    found = Walk(plan, X, u)
    assert namespace(found.states) is namespace(X)
    # Sums run in another order.
    np.testing.assert_allclose(to_host(found.states), host.states, rtol=1e-11, atol=1e-13)
    wanted, made = host.pullback(bar)[0], found.pullback(bar_there)[0]
    np.testing.assert_allclose(to_host(made), wanted, rtol=1e-11, atol=1e-12)


def test_single_precision_stays_single(W, rng):
    plan, u = plans(W, rng, "sparse"), rng.standard_normal((N, 1))
    X = rng.standard_normal((5, 1, 6))
    found = Walk(plan, X.astype(np.float32), u).states
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, Walk(plan, X, u).states, rtol=0, atol=1e-5)


def test_a_sparse_map_is_the_dense_map(W, rng):
    parts = rng.uniform(0.3, 1.0, N), Gain.tanh(), rng.standard_normal(N)
    rest = rng.standard_normal(N)
    one, other = (leaky_step(made, *parts, rest) for made in (W, W.toarray()))
    y, push = rng.standard_normal((2, 4, N))
    np.testing.assert_allclose(one.advance(y, push), other.advance(y, push), rtol=1e-13)
    slopes: list = []
    other.advance(y, push, slopes)
    for made, wanted in zip(
        one.retreat(y.copy(), slopes), other.retreat(y.copy(), slopes), strict=True
    ):
        np.testing.assert_allclose(made, wanted, rtol=1e-12, atol=1e-14)


def test_far_shorter_time_constants_need_more_sub_steps(W, rng):
    X, u = rng.standard_normal((3, 1, 4)), rng.standard_normal((N, 1))

    def settled(shortest):
        tau = np.full(N, 0.5)
        tau[3] = shortest

        def make_plan(n_sub: int) -> StepPlan[TrueStep]:
            step: TrueStep = make(W, Gain.tanh(), tau, 0.2 / n_sub)[0]
            return StepPlan(step, n_sub, np.eye(1, 4, 3)[0])

        return plan_substeps(make_plan, X, u, 1e-6)

    assert settled(0.5).n_sub == 1
    assert settled(0.02).n_sub > 1
    assert settled(0.02).error < 1e-6
    with pytest.raises(ValueError, match="needs more than 256 sub-steps"):
        settled(2e-4)  # e^(dt/τ) overflows in one step


def test_a_product_is_copied_once_per_device_and_type(W, rng):
    product, X = Product.of(W), rng.standard_normal((4, N)).astype(np.float32)
    moved = product.on(X, np.float32)
    assert moved is product.on(X, np.float32)
    assert product.on(X.astype(float), np.float64) is product
    np.testing.assert_allclose(product(X.astype(float)), X @ W.toarray().T, rtol=1e-12)
    np.testing.assert_allclose(product.back(X.astype(float)), X @ W.toarray(), rtol=1e-12)
