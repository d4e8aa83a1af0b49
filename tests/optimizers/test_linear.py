"""The linear problem: its gradient, its half-steps, and the largest singular pair."""

import numpy as np
import pytest

from greenfold import optimize
from greenfold.math.sphere import KernelQuadratic, maximize_on_sphere
from greenfold.optimizers import linear
from greenfold.optimizers.linear import LinearProblem, Responses, leading_triplet
from greenfold.unfolding import linear as unfolding_linear

from ..conftest import slope, unit
from .linear_cases import ETA, EVERY, certify, kappa, setting


@EVERY
@pytest.mark.parametrize("n", [3, 9])  # more steps than neurons, and fewer
def test_gradient_by_its_taylor_remainder(readout, n_channels, n, rng):
    unfolding, stimuli = setting(readout, n_channels, n=n)
    problem = LinearProblem(unfolding.maps, stimuli, 3.0)
    u, direction = unit(rng, n, n_channels), unit(rng, n, n_channels)
    _, margin, gradient = problem.evaluate(u)
    steps = np.array([4e-3, 2e-3, 1e-3])
    change = [problem.evaluate(u + s * direction)[1].value - margin.value for s in steps]
    remainder = np.abs(np.array(change) - steps * (gradient * direction).sum())
    assert slope(steps, remainder) >= 1.9


@EVERY
@pytest.mark.parametrize("n", [3, 9])
def test_half_steps_are_optimal(readout, n_channels, n, rng):
    """No random unit vector beats the readout for u, or the input projection for v."""
    unfolding, stimuli = setting(readout, n_channels, n=n)
    problem = LinearProblem(unfolding.maps, stimuli, ETA)
    u = unit(rng, n, n_channels)
    v, margin = problem.best_readout(u)
    assert margin.value == pytest.approx(kappa(unfolding, stimuli, u, v), abs=1e-14)
    new_u, new = problem.best_input(v)
    assert new.value == pytest.approx(kappa(unfolding, stimuli, new_u, v), abs=1e-14)
    assert new.value >= margin.value - 1e-14
    assert np.linalg.norm(v) == pytest.approx(1, rel=1e-14)
    assert np.linalg.norm(new_u) == pytest.approx(1, rel=1e-14)
    for _ in range(200):
        near_v = v + 0.1 * rng.standard_normal(n)
        near_u = new_u + 0.1 * rng.standard_normal(new_u.shape)
        near_v, near_u = near_v / np.linalg.norm(near_v), near_u / np.linalg.norm(near_u)
        assert kappa(unfolding, stimuli, u, near_v) <= margin.value + 1e-14
        assert kappa(unfolding, stimuli, near_u, v) <= new.value + 1e-14


@EVERY
@pytest.mark.parametrize("dense_bytes", [0, 2**30], ids=["recursion", "matrix"])
def test_iterative_search_equals_the_full_decomposition(
    readout, n_channels, dense_bytes, monkeypatch
):
    unfolding, stimuli = setting(readout, n_channels, n=12)
    plain = optimize(unfolding, stimuli, ETA)
    problem = LinearProblem(unfolding.maps, stimuli, ETA)
    sigma, u, v = problem.best_atom(stimuli.mu)
    monkeypatch.setattr(unfolding_linear, "DENSE_BYTES", dense_bytes)
    monkeypatch.setattr(linear, "_DENSE_SIZE", 0)
    other_sigma, other_u, other_v = problem.best_atom(stimuli.mu)
    # Lanczos runs to a relative 1e-10, and its residual is added to stay an upper bound.
    assert other_sigma == pytest.approx(sigma, rel=1e-9)
    assert other_sigma >= sigma * (1 - 1e-12)
    assert abs((u * other_u).sum()) == pytest.approx(1, abs=1e-6)
    assert abs(v @ other_v) == pytest.approx(1, abs=1e-6)
    found = certify(unfolding, stimuli, ETA)
    assert found.soft_margin == pytest.approx(plain.soft_margin, rel=1e-8)
    assert found.upper_bound == pytest.approx(plain.upper_bound, rel=1e-4)  # `tol`
    assert found.status == "certified"


@EVERY
@pytest.mark.parametrize("dense_bytes", [0, 2**30], ids=["recursion", "matrix"])
def test_stacked_responses_are_sums_of_greens_functions(
    readout, n_channels, dense_bytes, monkeypatch, rng
):
    unfolding, stimuli = setting(readout, n_channels, n=6)
    problem = LinearProblem(unfolding.maps, stimuli, ETA)
    monkeypatch.setattr(unfolding_linear, "DENSE_BYTES", dense_bytes)
    signals = rng.standard_normal((2, len(stimuli.mu)))
    blocks = np.einsum(
        "jcn,nip->jicp", signals.reshape(2, n_channels, 5), unfolding.greens1()
    )
    expected = blocks.reshape(2, 6, -1)
    stack = Responses([problem.response_sum(d) for d in signals], n_channels, 6)
    assert stack.drive(np.eye(6 * n_channels)) == pytest.approx(expected, abs=1e-13)
    states, factors = rng.standard_normal((2, 6)), np.array([0.5, 2.0])
    pulled = np.einsum("j,jo,jon->n", factors, states, expected)
    assert stack.pull(states, factors) == pytest.approx(pulled, abs=1e-13)
    # Lanczos runs to a relative 1e-10.
    sigma, u, left = stack.leading()
    assert sigma == pytest.approx(np.linalg.norm(expected.reshape(12, -1), 2), rel=1e-9)
    assert stack.drive(u.T.reshape(-1, 1))[:, :, 0] == pytest.approx(sigma * left, abs=1e-5)
    weighted = (expected / np.sqrt(factors)[:, None, None]).reshape(12, -1)
    damped = lambda y: y / factors[:, None, None]  # noqa: E731
    top = stack.largest(damped, 1)[0][-1]
    assert top == pytest.approx(np.linalg.norm(weighted, 2) ** 2, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("shape", [(7, 7), (5, 20), (20, 5), (1, 3)])
def test_leading_pair_is_that_of_the_whole_decomposition(shape, scale, rng):
    """Its squares stay in the range of floats, and lose no digit of the largest one."""
    M = scale * rng.standard_normal(shape)
    left, values, right = np.linalg.svd(M, full_matrices=False)
    sigma, u, v = leading_triplet(M)
    # Rounding of a sum of twenty squares.
    assert sigma == pytest.approx(values[0], rel=1e-14)
    sign = np.sign(u @ right[0])
    np.testing.assert_allclose(sign * u, right[0], atol=1e-13)
    np.testing.assert_allclose(sign * v, left[:, 0], atol=1e-13)


def test_leading_pair_of_nothing():
    sigma, u, v = leading_triplet(np.zeros((3, 4)))
    assert sigma == 0
    assert np.linalg.norm(u) == np.linalg.norm(v) == 1


@pytest.mark.parametrize("rank", [4, 2, 0])
def test_readouts_in_the_row_space_are_the_best_of_all(rank, rng):
    """Fewer input values than neurons, for a small and for large η."""
    L, S = rng.standard_normal((4, 9)), rng.standard_normal((4, rank))
    mu = S @ rng.standard_normal(rank)
    psi, etas = S @ S.T, np.array([0.01, 1e3, 1e6])

    def value(v, eta):
        a = L @ v
        return a @ mu - eta / 2 * a @ psi @ a

    found = KernelQuadratic(mu, psi).readouts(L, etas)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-12)
    judge = maximize_on_sphere(L.T @ mu, 0.01 * (L.T @ psi @ L)).v
    assert value(found[0], 0.01) == pytest.approx(value(judge, 0.01), rel=1e-9)
    for eta, v in zip(etas[1:], found[1:], strict=True):
        # The kernel ψ⁻¹μ/η, best of all kernels, needs less than a unit vector, whose
        # rest is orthogonal to the rows.
        shortest = np.linalg.pinv(L) @ np.linalg.pinv(psi, rcond=1e-10) @ mu / eta
        assert np.linalg.norm(shortest) < 1
        best = mu @ np.linalg.pinv(psi, rcond=1e-10) @ mu / (2 * eta)
        assert value(v, eta) == pytest.approx(best, rel=1e-9)
