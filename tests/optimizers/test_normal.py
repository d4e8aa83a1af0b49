"""Normal networks: every one is proven, and nothing rises above what is proven.

Judges share nothing with the solver: κ from the tensor of Green's functions, the general
solver's bound, ascents from random starts, and a cone solver.
"""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from greenfold import (
    Device,
    EchoStateNetwork,
    Gain,
    GaussianStimuli,
    RegressionTask,
    Reservoir,
    optimize,
    unfold,
)
from greenfold.devices.noise import state_covariance
from greenfold.math.class_moments import Factored
from greenfold.optimizers import normal
from greenfold.optimizers.bounds import Relaxation
from greenfold.optimizers.convex import Search
from greenfold.optimizers.linear import LinearProblem, ascend
from greenfold.optimizers.regression import LinearRegression
from greenfold.stimuli.base import Stimuli
from greenfold.unfolding.linear import BlockModes

from ..conftest import interrupt, unit
from .linear_cases import ETA, kappa

KINDS = ("symmetric", "orthogonal", "ring", "oscillators", "echo state ring")


def normal_network(kind: str, n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng([n, seed])
    if kind == "symmetric":
        W = rng.standard_normal((n, n))
        W = W + W.T
        return Reservoir(0.9 * W / np.abs(np.linalg.eigvalsh(W)).max())
    if kind == "orthogonal":
        return Reservoir(0.9 * np.linalg.qr(rng.standard_normal((n, n)))[0])
    if kind == "ring":
        return Reservoir.cycle(n, 0.9)
    if kind == "echo state ring":
        return EchoStateNetwork.cycle(n, 0.9, 0.3)
    T, omega = rng.uniform(0.3, 3, (n + 1) // 2), rng.uniform(0.1, 6, (n + 1) // 2)
    return Reservoir.oscillators(T, omega)


def problem(network: Any, n_steps: int, strength=1.0, n_channels=1, seed=0, **options):
    stimuli = GaussianStimuli.random(
        n_steps, strength=strength, n_channels=n_channels, rng=1000 + seed
    )
    return unfold(network, n_steps=n_steps, dt=1.0, **options), stimuli


def judge(system, stimuli, gap=1e-9, ascents=4, bound=None):
    """The optimum is attained by unit vectors, proven, and not beaten.

    The gap aimed at is 1e-10, and the value of the pair is computed anew; 1e-9 leaves room
    for rounding. The general solver's bound ends at a relative gap of ``bound``.
    """
    best: Any = optimize(system, stimuli, ETA)
    assert best.status == "certified"
    assert best.gap <= gap
    assert np.linalg.norm(best.u) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(best.v) == pytest.approx(1, abs=1e-12)
    attained = kappa(system, stimuli, best.u, best.v)
    assert attained == pytest.approx(best.soft_margin, rel=1e-9, abs=1e-15)
    linear, rng = LinearProblem(system.maps, stimuli, ETA), np.random.default_rng(7)
    for _ in range(ascents):
        start = unit(rng, system.n_inputs, stimuli.n_channels)
        other = ascend(linear, start, max_iter=300, tol=1e-13)
        assert other.margin.value <= best.upper_bound + 1e-12 * abs(best.upper_bound)
    if bound is not None:
        other, _ = Search(linear, bound).run()
        assert other.upper_bound == pytest.approx(best.upper_bound, rel=bound)
    return best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "n_steps", "n_channels", "strength"),
    [(5, 10, 1, 0.19), (5, 3, 2, 1.0), (20, 10, 1, 1.0), (20, 8, 3, 0.19), (60, 6, 1, 5.0)],
)
def test_every_normal_network_is_proven(kind, n, n_steps, n_channels, strength):
    judge(*problem(normal_network(kind, n), n_steps, strength, n_channels, seed=n))


@pytest.mark.parametrize("kind", KINDS)
def test_general_bound_is_the_same(kind):
    judge(*problem(normal_network(kind, 8), 6), bound=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("kind", KINDS[:4])
def test_two_hundred_normal_networks(kind, seed, monkeypatch):
    """N from 5 to 200, strengths of the paper, up to three channels.

    The general bound σ_max(G(d)) + (η/2) aᵀψa, by a decomposition of G(d), is the same
    number wherever the modal one is taken: at the last signal d that was looked at. Up to
    100 neurons (88 of the 200) the general solver lowers its own bound to the same number,
    which ends at a relative gap of 1e-7.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n, n_channels = int(rng.integers(5, 201)), int(rng.integers(1, 4))
    strength = float(rng.choice([0.19, 1.0]))
    system, stimuli = problem(normal_network(kind, n, seed), 10, strength, n_channels, seed)
    scan, seen = normal._Dual.scan, []

    def looked_at(dual, at):
        seen.append((dual.mean - dual.roots @ at.c, at.c @ at.c / 2))
        return scan(dual, at)

    monkeypatch.setattr(normal._Dual, "scan", looked_at)
    best = judge(system, stimuli, gap=1e-6, ascents=3)
    d, curved = seen[-1]
    G = np.asarray(system.maps.response_sum(d).matrix())
    sizes = np.linalg.svd(G, compute_uv=False)
    assert sizes[0] + curved == pytest.approx(best.upper_bound, rel=1e-6)
    if n <= 100:
        general = Relaxation([LinearProblem(system.maps, stimuli, ETA)])
        start = best.u.reshape(system.maps.n_inputs, -1)
        lowered = general.lower([np.zeros_like(stimuli.mu)], start)
        assert lowered == pytest.approx(best.upper_bound, rel=1e-6)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("strength", [0.05, 1.0, 30.0])
def test_few_neurons_reach_every_point_of_the_ball(n, strength):
    """The optimum inside the ball with all blocks in use, where no block is left over."""
    judge(*problem(Reservoir(np.diag(np.linspace(-0.5, 0.8, n))), 2, strength), ascents=20)


@pytest.mark.parametrize(
    "network", [Reservoir([[0.4]]), Reservoir.oscillators([1.0], [2.0])]
)
@pytest.mark.parametrize("strength", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_one_block_is_a_sphere(network, strength, n_channels):
    judge(*problem(network, 4, strength, n_channels), ascents=20)


@pytest.mark.parametrize("sizes", [(0.0, 0.0), (0.3, 0.2), (0.0, 0.4), (0.7, 0.3), (1, 0)])
def test_unit_pair_of_any_weights(sizes):
    """Unit u and v exist for all of the ball: two blocks, and no other."""
    modes = unfold(Reservoir(np.diag([0.3, -0.4])), n_steps=2, dt=1.0).maps.modes()
    assert isinstance(modes, BlockModes)
    w = np.array([[[sizes[0]], [0.0]], [[-sizes[1]], [0.0]]])
    found = normal._Weights(np.arange(2), w, np.abs(w[:, 0, 0]))
    u, v = normal._unit_pair(found, modes, np.zeros(2))
    np.testing.assert_allclose(np.linalg.norm(u), 1, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(v), 1, atol=1e-14)
    x, y = modes.basis.T @ u[:, 0], modes.basis.T @ v
    np.testing.assert_allclose(x * y, w[:, 0, 0], atol=1e-14)


@pytest.mark.parametrize("readout", [4.3, np.array([0.0, 1.0, -0.5, 0.0, 2.0, 1.0])])
def test_any_readout(readout):
    judge(*problem(normal_network("orthogonal", 12), 6, readout=readout))


def test_repeated_modes():
    judge(*problem(Reservoir(0.5 * np.eye(7)), 4))
    judge(*problem(Reservoir(np.zeros((3, 3))), 4))


def test_means_that_coincide():
    stimuli = GaussianStimuli.random(5, rng=0)
    stimuli = Stimuli(np.zeros(5), stimuli.psi, 1, 5)
    found = normal.solve(
        LinearProblem(problem(Reservoir.cycle(6), 5)[0].maps, stimuli, ETA), tol=1e-4
    )
    assert found is not None
    # The kernel is zero up to rounding.
    assert found[0].margin.value == pytest.approx(0, abs=1e-15)
    assert found[0].upper_bound == pytest.approx(0, abs=1e-15)


def test_means_that_noise_drowns():
    """The best size of the kernel is zero up to rounding; it was divided by."""
    network = unfold(Reservoir(np.zeros((2, 2))), n_steps=5, dt=0.5)
    stimuli = GaussianStimuli(1e-8 * np.arange(5.0), np.eye(5))
    device = Device(state_noise=[0.15, 0.05], readout_noise=1.2)
    best = optimize(network, stimuli, ETA, device=device)
    assert best.status == "certified"
    # A readout of the second neuron alone, and an input of the first alone. The means could
    # add 1e-17.
    assert best.soft_margin == pytest.approx(-ETA / 2 * (0.05**2 + 1.2**2), rel=1e-12)


def test_covariance_known_by_its_factor(rng):
    """40 values, six series: the same as with the matrix."""
    factor, system = rng.standard_normal((40, 6)), problem(Reservoir.cycle(30), 40)[0]
    psi, mu = Factored(factor), rng.standard_normal(40)
    found = [
        normal.solve(LinearProblem(system.maps, Stimuli(mu, p, 1, 40), ETA), tol=1e-4)
        for p in (psi, np.asarray(psi))
    ]
    one, other = (each[0].margin.value for each in found if each is not None)
    assert one == pytest.approx(other, rel=1e-9)


def test_others_are_left_to_the_general_solver():
    unequal = Reservoir.cycle(6, tau=np.linspace(0.2, 0.3, 6))
    biased = EchoStateNetwork.cycle(6, 0.9, 0.3, Gain.tanh(), np.linspace(0, 1, 6))
    for network in (Reservoir.random(6, rng=0), unequal, biased):
        system, stimuli = problem(network, 4)
        linear = LinearProblem(system.maps, stimuli, ETA)
        assert normal.solve(linear, tol=1e-4) is None
        optimize(system, stimuli)


def test_ctrl_c_returns_the_best_so_far(monkeypatch):
    system, stimuli = problem(Reservoir.cycle(20), 10)
    interrupt(monkeypatch, normal._Dual, "scan", 2)
    best = optimize(system, stimuli)
    assert best.status == "interrupted"
    assert best.upper_bound is not None
    assert 0 < best.soft_margin <= best.upper_bound
    interrupt(monkeypatch, normal._Dual, "scan", 0)
    with pytest.raises(KeyboardInterrupt):
        optimize(system, stimuli)


def test_twice_the_same():
    system, stimuli = problem(normal_network("orthogonal", 30), 10)
    one, other = optimize(system, stimuli), optimize(system, stimuli)
    np.testing.assert_array_equal(one.u, other.u)
    assert one.soft_margin == other.soft_margin


# -- Noise that keeps the blocks -----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS[:4])
@pytest.mark.parametrize("size", [0.02, 0.2])
@pytest.mark.parametrize("strength", [0.19, 1.0])
def test_white_noise_inside(kind, size, strength):
    network = normal_network(kind, 20)
    system, stimuli = problem(network, 8, strength)
    P = state_covariance(network, size, system.duration)
    best: Any = optimize(system, stimuli, ETA, device=Device(state_noise=P))
    assert best.status == "certified"
    # κ may be near zero, a difference of larger terms: relative to those.
    assert best.upper_bound - best.soft_margin <= 1e-9 * best.variance
    attained = kappa(system, stimuli, best.u, best.v) - ETA / 2 * best.v @ P @ best.v
    assert attained == pytest.approx(best.soft_margin, abs=1e-9 * best.variance)
    linear, rng = LinearProblem(system.maps, stimuli, ETA, P), np.random.default_rng(7)
    for _ in range(4):
        other = ascend(linear, unit(rng, 20, 1), max_iter=300, tol=1e-13)
        assert other.margin.value <= best.upper_bound + 1e-12 * best.variance


def test_equal_noise_costs_the_same_everywhere():
    system, stimuli = problem(Reservoir.cycle(20), 8)
    free, noisy = (
        optimize(system, stimuli, ETA, device=Device(readout_noise=s) if s else None)
        for s in (None, 0.1)
    )
    assert noisy.soft_margin == pytest.approx(free.soft_margin - ETA / 2 * 0.01, abs=1e-9)


def test_noise_of_other_blocks_is_left_to_the_general_solver(rng):
    system, stimuli = problem(Reservoir.cycle(8), 4)
    P = np.diag(rng.uniform(0.01, 0.1, 8))
    assert normal.solve(LinearProblem(system.maps, stimuli, ETA, P), tol=1e-4) is None


# -- Regression ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_channels", "n_targets"), [(1, 1), (1, 3), (2, 1)])
def test_regression(kind, n_channels, n_targets, rng):
    X = rng.standard_normal((200, n_channels, 8))
    y = np.stack([X[:, -1, -2 - j] for j in range(n_targets)], axis=1)
    task = RegressionTask.from_cases(X, y + 0.1 * rng.standard_normal(y.shape), ridge=0.01)
    system = unfold(normal_network(kind, 16), n_steps=8, dt=1.0)
    found = normal.solve_regression(system.maps, task)
    assert found is not None
    u, V, bound = found
    assert np.linalg.norm(u) == pytest.approx(1, abs=1e-12)
    linear = LinearRegression(system.maps, task)
    gain = linear.gain(V, (system.maps.input_response(u) @ V).T).value
    assert gain <= bound * (1 + 1e-12)
    assert gain >= bound * (1 - 1e-9)
    # V is the ridge solution of u, and random starts do not pass it.
    assert linear.evaluate(u)[1].value == pytest.approx(gain, rel=1e-9)
    for _ in range(4):
        start = unit(rng, system.n_inputs, n_channels)
        assert ascend(linear, start, max_iter=300, tol=1e-13).margin.value <= bound * (
            1 + 1e-12
        )


def test_regression_of_both_several_is_left_to_the_general_solver(rng):
    X = rng.standard_normal((50, 2, 5))
    task = RegressionTask.from_cases(X, X[:, :, 0], ridge=0.1)
    system = unfold(Reservoir.cycle(6), n_steps=5, dt=1.0)
    assert normal.solve_regression(system.maps, task) is None


# -- A cone solver as the judge ------------------------------------------------------------


@pytest.mark.needs("cvxpy")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_channels", [1, 2])
def test_lasso_against_a_cone_solver(kind, n_channels):
    """Clarabel ends at 1e-9 of the terms, which are larger than their difference."""
    cvxpy: Any = import_module("cvxpy")
    system, stimuli = problem(normal_network(kind, 30), 10, n_channels=n_channels)
    modes = system.maps.modes()
    assert modes is not None
    gamma, n_blocks = modes.responses, modes.responses.shape[1]
    real, imaginary = (cvxpy.Variable((n_blocks, n_channels)) for _ in range(2))
    a = cvxpy.vec(np.real(gamma) @ real - np.imag(gamma) @ imaginary, order="F")
    values, vectors = np.linalg.eigh(stimuli.psi)
    half = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    aim = stimuli.mu @ a - ETA / 2 * cvxpy.sum_squares(half @ a)
    sizes = cvxpy.norm(cvxpy.hstack([real, imaginary]), axis=1)
    task = cvxpy.Problem(cvxpy.Maximize(aim), [cvxpy.sum(sizes) <= 1])
    ends = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    value = task.solve(solver=cvxpy.CLARABEL, **ends)
    assert optimize(system, stimuli, ETA).soft_margin == pytest.approx(value, rel=1e-7)


# -- Large networks ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ring", "oscillators"])
def test_long_networks_are_never_formed(kind):
    """20,000 neurons: their weights would take 3 GB."""
    n, rng = 20_000, np.random.default_rng(0)
    network = Reservoir.cycle(n) if kind == "ring" else Reservoir.oscillators(
        rng.uniform(0.5, 5, n // 2), rng.uniform(0.1, 6, n // 2)
    )  # fmt: skip
    system = unfold(network, n_steps=20, dt=0.5)
    stimuli = GaussianStimuli.random(20, strength=10.0, rng=1)
    best: Any = optimize(system, stimuli)
    assert best.gap <= 1e-9
    a = system.kernels(best.u, best.v).linear.ravel()
    value = a @ stimuli.mu - ETA / 2 * a @ stimuli.psi @ a
    assert value == pytest.approx(best.soft_margin, rel=1e-9)
    # An optimum at the edge of the ball needs no more modes than values of a stimulus.
    x, y = (
        np.fft.rfft(one) if kind == "ring" else one[::2] + 1j * one[1::2]
        for one in (best.u, best.v)
    )
    used = np.abs(x * y) > 1e-12 * np.abs(x * y).sum()
    assert used.sum() <= 22
