"""The upper bound: its gradients, its two descents, and values it must not fall below."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from greenfold import (
    Device,
    GaussianStimuli,
    RegressionTask,
    Reservoir,
    optimize,
    unfold,
)
from greenfold.devices.masks.box import Entries, Squares, into_box
from greenfold.optimizers import bounds
from greenfold.optimizers.bounds import Relaxation, Sectors, _Linearised
from greenfold.optimizers.convex import Search
from greenfold.optimizers.linear import LinearProblem, ascend
from greenfold.optimizers.regression import LinearRegression

from ..conftest import slope, small, unit
from .linear_cases import ETA, EVERY, relaxed_optimum, setting

N = 8
CONSTRAINTS = {
    "free": lambda n, rng: [],
    "entries": lambda n, rng: [Entries(n)],
    "squares": lambda n, rng: [Squares(n, 1 / n, is_equal=True)],
    "box": lambda n, rng: [Entries(n), Squares(n, 0.25, is_equal=False)],
    "sectors": lambda n, rng: [Sectors(*rng.standard_normal((2, 3, 2 * n)) / n)],
}


class Large(Relaxation):
    """A bound that is lowered as that of a large network, by a smoothed descent."""

    @property
    def is_small(self):
        return False


def noise(n: int, rng: np.random.Generator, size: float = 0.1) -> np.ndarray:
    """A covariance of noise on the states."""
    root = rng.standard_normal((n, n))
    return size**2 / n * (root @ root.T)


def problem_of(n=N, n_channels=1, covariance=None, seed=0, strength=1.0) -> LinearProblem:
    unfolding, stimuli = setting(None, n_channels, n, strength=strength, seed=seed)
    return LinearProblem(unfolding.maps, stimuli, ETA, covariance)


def several(rng) -> list[LinearProblem]:
    """Parts that share a network and an input projection, each with noise of its own."""
    maps = unfold(small(n=6), n_steps=5, dt=0.5).maps
    stimuli = [GaussianStimuli.random(5, n_channels=2, strength=1.0, rng=k) for k in (1, 2)]
    return [LinearProblem(maps, s, ETA, noise(6, rng)) for s in stimuli]


def regression(rng) -> Relaxation:
    X = rng.standard_normal((60, 6))
    task = RegressionTask.from_cases(X, X[:, 3:5], ridge=0.1)
    return LinearRegression(unfold(small(n=5), n_steps=6, dt=0.5).maps, task).relaxation


KINDS = {
    **{
        f"{name}, {loud}": lambda rng, make=make, loud=loud: Relaxation(
            [problem_of(covariance=noise(N, rng) if loud == "noisy" else None)],
            make(N, rng),
        )
        for name, make in CONSTRAINTS.items()
        for loud in ("quiet", "noisy")
    },
    "several parts": lambda rng: Relaxation(several(rng)),
    "several parts, squares": lambda rng: Relaxation(
        several(rng), [Squares(12, 1 / 12, is_equal=True)]
    ),
    "regression": regression,
}


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_their_taylor_remainder(kind, rng):
    """By kernels, log t and z; t is not a variable of a regression."""
    relaxation = KINDS[kind](rng)
    sizes = [len(part.stimuli.mu) for part in relaxation.parts]
    n_z = sum(one.n_variables for one in relaxation.constraints)
    is_free = relaxation._is_free

    def at(kernels, logs, z):
        t = np.exp(logs) if is_free else relaxation.floors
        return relaxation._value(_Linearised(relaxation.parts, kernels), kernels, t, z, 0.1)

    kernels = [0.2 * rng.standard_normal(size) for size in sizes]
    logs, z = 0.2 * rng.standard_normal(len(sizes)) - 1, 0.1 * rng.random(n_z)
    for moved in ("kernels", "t", "z"):
        turn = [(moved == "kernels") * rng.standard_normal(size) for size in sizes]
        turn_t = (moved == "t") * rng.standard_normal(len(sizes)) * is_free
        turn_z = (moved == "z") * rng.standard_normal(n_z)
        value, by_kernel, by_t, by_z = at(kernels, logs, z)
        known = sum(g @ t for g, t in zip(by_kernel, turn, strict=True))
        known += by_t @ turn_t + by_z @ turn_z
        if not (any(one.any() for one in turn) or turn_t.any() or turn_z.any()):
            assert known == 0
            continue
        steps = np.array([1e-2, 3e-3, 1e-3])
        rest = []
        for h in steps:
            there = [a + h * t for a, t in zip(kernels, turn, strict=True)]
            rest.append(
                abs(at(there, logs + h * turn_t, z + h * turn_z)[0] - value - h * known)
            )
        assert slope(steps, rest) == pytest.approx(2, abs=0.1), moved


@EVERY
def test_the_bound_is_the_optimum_of_the_relaxation(readout, n_channels):
    """An independent maximum over the nuclear-norm ball; it ends within 1e-6 of it."""
    unfolding, stimuli = setting(readout, n_channels, n=4)
    relaxation = Relaxation([LinearProblem(unfolding.maps, stimuli, ETA)])
    zero, u = [np.zeros_like(stimuli.mu)], unit(np.random.default_rng(0), 4, n_channels)
    relaxed = relaxed_optimum(unfolding, stimuli)
    assert relaxed * (1 - 1e-12) <= relaxation.lower(zero, u) <= relaxed * (1 + 1e-5)


def test_the_central_path_ends_where_it_does_from_anywhere():
    """From an optimum and from nothing: to 1e-7, the gap at which it ends.

    Newton's steps, too short far from the path, had left it up to 7 % above.
    """
    for seed in (2, 5):
        unfolding, stimuli = setting(n=20, n_steps=10, seed=seed)
        P = np.diag(0.02 * np.random.default_rng(seed).random(20))
        for covariance, constraints in (
            (P, []),
            (None, [Squares(20, 1 / 20, is_equal=True)]),
        ):
            problem = LinearProblem(unfolding.maps, stimuli, ETA, covariance)
            _, u, _ = problem.best_atom(stimuli.mu)
            best = ascend(problem, u, max_iter=200, tol=1e-12)
            low = []
            for kernel in (problem.kernel(best.u, best.v), np.zeros(10)):
                relaxation = Relaxation([problem], constraints)
                low.append(relaxation.lower([kernel], u))
            assert low[0] == pytest.approx(low[1], rel=1e-7)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_kernels_are_sought_where_the_system_has_them(n_channels, monkeypatch):
    """A few directions suffice for 60 steps: the same bound to 1e-7, its own gap."""
    unfolding, stimuli = setting(n=6, n_channels=n_channels, n_steps=60)
    problem = LinearProblem(unfolding.maps, stimuli, ETA)
    zero, u = [np.zeros_like(stimuli.mu)], unit(np.random.default_rng(0), 6, n_channels)
    few = Relaxation([problem])
    few.lower(zero, u)
    assert bounds.metric_of(problem).root.shape[1] <= 6 * n_channels
    monkeypatch.setattr(LinearProblem, "combined_steps", property(lambda _: np.eye(60)))
    every = Relaxation([problem])
    assert every.lower(zero, u) == pytest.approx(few.lowest, rel=2e-7)
    assert bounds.metric_of(problem).root.shape[1] == 60 * n_channels


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("loud", [False, True], ids=["quiet", "noisy"])
def test_both_descents_agree(name, loud, rng):
    """The central path ends at a relative 1e-7, L-BFGS within its smoothing of 1e-5 ln N.

    Its descent over many variables that are bounded stops earlier.
    """
    problem = problem_of(covariance=noise(N, rng) if loud else None, strength=0.3)
    constraints, u = CONSTRAINTS[name](N, rng), unit(rng, N, 1)
    kernels = [problem.kernel(u, problem.best_readout(u)[0])]
    newton = Relaxation([problem], constraints)
    assert newton.is_small
    newton.lower(kernels, u)
    smoothed = Large([problem], constraints)
    smoothed.lower(kernels, u, max_evaluations=300)
    assert smoothed.lowest == pytest.approx(newton.lowest, rel=2e-3)
    assert smoothed.lowest >= newton.lowest * (1 - 1e-6)


@pytest.mark.parametrize("kind", ["several parts", "regression"])
def test_both_descents_agree_on_several_readouts(kind, rng):
    """As above, for one u with several readouts, of unit and of any length."""
    newton = KINDS[kind](np.random.default_rng(3))
    smoothed = Large(newton.parts, unit_readouts=newton._is_free)
    kernels = [np.zeros_like(part.stimuli.mu) for part in newton.parts]
    u = unit(rng, newton.parts[0].system.n_inputs, newton.parts[0].stimuli.n_channels)
    assert newton.is_small
    newton.lower(kernels, u)
    smoothed.lower(kernels, u, max_evaluations=300)
    assert smoothed.lowest == pytest.approx(newton.lowest, rel=1e-4)
    assert smoothed.lowest >= newton.lowest * (1 - 1e-6)


LIFTED = {
    name: KINDS[name]
    for name in ("free, noisy", "sectors, quiet", "sectors, noisy", "squares, noisy")
} | {name: KINDS[name] for name in ("several parts", "regression")}


@pytest.mark.needs("cvxpy")
@pytest.mark.parametrize("kind", LIFTED)
def test_the_central_path_ends_at_the_optimum_of_the_lifted_problem(kind, rng):
    """The largest κ over all positive w wᵀ of w = (v_1, …, u), by a cone solver.

    That is the dual of what the path solves.
    """
    cvxpy: Any = import_module("cvxpy")
    relaxation = LIFTED[kind](np.random.default_rng(3))
    parts, one = relaxation.parts, relaxation.parts[0]
    n, n_channels = one.system.n_outputs, one.stimuli.n_channels
    n_inputs = one.system.n_inputs
    size = n_inputs * n_channels
    lifted = cvxpy.Variable((n * len(parts) + size,) * 2, PSD=True)
    aim, limits = 0.0, [cvxpy.trace(lifted[-size:, -size:]) == 1]
    # G_n, as the response to each single input.
    pulses = one.system.input_response(np.eye(n_inputs)).reshape(n_inputs, -1, n)
    for j, part in enumerate(parts):
        own = slice(j * n, (j + 1) * n)
        X = lifted[own, -size:]
        a = cvxpy.hstack(
            [
                cvxpy.trace(pulses[:, step] @ X[:, c * n_inputs : (c + 1) * n_inputs])
                for c in range(n_channels)
                for step in range(pulses.shape[1])
            ]
        )
        half = np.linalg.cholesky(part.stimuli.psi + 1e-14 * np.eye(len(part.stimuli.mu))).T
        aim += part.stimuli.mu @ a - part.eta / 2 * cvxpy.sum_squares(half @ a)
        if part.covariance is not None:
            aim -= part.eta / 2 * cvxpy.trace(part.covariance @ lifted[own, own])
        if relaxation._is_free:
            limits.append(cvxpy.trace(lifted[own, own]) == 1)
    for constraint in relaxation.constraints:
        if isinstance(constraint, Squares):
            limits.append(cvxpy.diag(lifted[-size:, -size:]) == 1 / size)
        if isinstance(constraint, Sectors):
            pairs = zip(constraint.x, constraint.y, strict=True)
            limits += [x @ lifted @ y >= 0 for x, y in pairs]
    value = cvxpy.Problem(cvxpy.Maximize(aim), limits).solve(solver=cvxpy.CLARABEL)
    kernels = [np.zeros_like(part.stimuli.mu) for part in parts]
    found = relaxation.lower(kernels, unit(rng, n_inputs, n_channels))
    assert found == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("max_evaluations", [1, 3, 30])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_bound_holds_where_the_descent_is_cut_short(n_channels, max_evaluations):
    """Nothing is above, even of mixtures, which reach more than any pair here."""
    unfolding, stimuli = setting(None, n_channels, 6, 6, 2.0, 0)
    relaxed = relaxed_optimum(unfolding, stimuli)
    relaxation = Large([LinearProblem(unfolding.maps, stimuli, ETA)])
    u = unit(np.random.default_rng(0), 6, n_channels)
    relaxation.lower(
        [np.zeros_like(stimuli.mu)], u, max_evaluations=max_evaluations, smoothing=(1e-2,)
    )
    assert relaxation.lowest >= relaxed * (1 - 1e-12)


def test_the_bound_stops_at_its_goal():
    """What is closed is not lowered any further."""
    problem = problem_of(strength=0.3)
    u = unit(np.random.default_rng(0), N, 1)
    far, near = Relaxation([problem]), Relaxation([problem])
    lowest = far.lower([np.zeros(5)], u)
    reached = near.lower([np.zeros(5)], u, goal=1.1 * lowest)
    assert lowest < reached <= 1.1 * lowest
    assert near.n_evaluations < far.n_evaluations


def allowed(name: str, constraints, problem, rng) -> np.ndarray:
    """Input projections that obey a kind of constraint: all of them, or drawn.

    Sectors are obeyed together with the best readout.
    """
    if name == "squares":
        return np.array(list(itertools.product([-1.0, 1.0], repeat=N))) / np.sqrt(N)
    drawn = rng.standard_normal((50, N))
    if name == "entries":
        drawn = np.abs(drawn)
    if name == "box":
        drawn = np.array([into_box(one, 0.0, 0.5) for one in drawn])
    if name == "sectors":
        (one,) = constraints
        drawn = np.stack([unit(rng, N, 1)[:, 0] for _ in range(400)])
        readouts = [problem.best_readout(u[:, None])[0] for u in drawn]
        w = np.hstack([readouts, drawn])
        drawn = drawn[((w @ one.x.T) * (w @ one.y.T) >= 0).all(1)]
        assert len(drawn) > 20
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("loud", [False, True], ids=["quiet", "noisy"])
def test_nothing_that_is_allowed_is_above(name, loud, rng):
    problem = problem_of(covariance=noise(N, rng) if loud else None)
    constraints = CONSTRAINTS[name](N, rng)
    tried = [u[:, None] for u in allowed(name, constraints, problem, rng)]
    found = [problem.best_readout(u) for u in tried]
    values = [margin.value for _, margin in found]
    best = int(np.argmax(values))
    kernels = [problem.kernel(tried[best], found[best][0])]
    relaxation = Relaxation([problem], constraints)
    assert relaxation.lower(kernels, tried[best]) >= max(values)
    assert relaxation.lowest <= Relaxation([problem]).lower(kernels, tried[best]) * (
        1 + 1e-6
    )
    # Wherever it is taken.
    for _ in range(20):
        z = rng.random(sum(one.n_variables for one in constraints))
        kernel = [rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(5)]
        somewhere = Relaxation([problem], constraints)
        t = np.array([rng.exponential()])
        somewhere._value(_Linearised([problem], kernel), kernel, t, z, 0.0)
        assert somewhere.lowest >= max(values)
    if name == "free":
        ends = [ascend(problem, u, max_iter=200, tol=1e-12) for u in tried[:10]]
        assert max(end.margin.value for end in ends) <= relaxation.lowest * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["diagonal", "full", "of one size"])
@pytest.mark.parametrize("seed", range(2))
def test_noise_on_the_states_leaves_no_gap(kind, seed, rng):
    """Where the square of a mixture was taken for that of a pair, it was up to 100 %."""
    P = {
        "diagonal": lambda: np.diag(0.002 * rng.random(20)),
        "full": lambda: noise(20, rng, 0.05),
        "of one size": lambda: 0.002 * np.eye(20),
    }[kind]()
    unfolding, stimuli = setting(n=20, seed=seed)
    best = optimize(unfolding, stimuli, ETA, device=Device(state_noise=P))
    assert best.status == "certified"
    assert best.gap is not None
    assert best.gap <= 1e-4
    assert best.noise_cost is not None
    problem = LinearProblem(unfolding.maps, stimuli, ETA, P)
    ends = [ascend(problem, unit(rng, 20, 1), max_iter=200, tol=1e-12) for _ in range(5)]
    assert max(end.margin.value for end in ends) <= best.soft_margin * (1 + 1e-6)


def test_the_tree_closes_the_gap_that_larger_noise_leaves(rng):
    unfolding, stimuli = setting(n=12, seed=1)
    problem = LinearProblem(unfolding.maps, stimuli, ETA, np.diag(0.02 * rng.random(12)))
    alone, closed = (Search(problem, 1e-4, max_nodes=n).run()[0] for n in (0, 1000))
    assert (alone.status, closed.status) == ("bounded", "certified")
    assert alone.upper_bound is not None
    assert closed.upper_bound is not None
    assert alone.upper_bound > alone.margin.value * (1 + 1e-3)
    assert closed.upper_bound <= closed.margin.value * (1 + 1.1e-4)  # `tol`, of the bound
    ends = [ascend(problem, unit(rng, 12, 1), max_iter=200, tol=1e-12) for _ in range(5)]
    assert max(end.margin.value for end in ends) <= closed.margin.value * (1 + 1e-9)


def test_noise_that_mixes_readouts_is_proven_by_default():
    """Each leaves a gap of 0.2 to 6 % that sectors of u alone do not close."""
    for seed, kind in ((3, "full"), (99, "diagonal")):
        rng = np.random.default_rng([seed, 7])
        W = rng.standard_normal((10, 10))
        if kind == "diagonal":
            W *= rng.random((10, 10)) < 0.2
        reservoir = Reservoir(0.9 / np.abs(np.linalg.eigvals(W)).max() * W, 0.25)
        P = np.diag(0.15**2 * rng.uniform(0, 2, 10))
        if kind == "full":
            root = rng.standard_normal((10, 10))
            P = 0.15**2 / 10 * (root @ root.T)
        stimuli = GaussianStimuli.random(10, strength=1.0, rng=1000 + seed)
        problem = LinearProblem(unfold(reservoir, n_steps=10, dt=1.0).maps, stimuli, ETA, P)
        alone, _ = Search(problem, 1e-4, max_nodes=0).run()
        found, _ = Search(problem, 1e-4).run()
        assert (alone.status, found.status) == ("bounded", "certified")
        ends = [
            ascend(problem, unit(rng, 10, 1), max_iter=200, tol=1e-12) for _ in range(20)
        ]
        assert max(end.margin.value for end in ends) <= found.margin.value + 1e-9


def test_directions_and_shares_are_those_of_a_matrix_of_unit_trace():
    problem = problem_of(n=12, strength=0.3)
    relaxation = Relaxation([problem])
    relaxation.lower([np.zeros(5)], unit(np.random.default_rng(0), 12, 1))
    assert relaxation.shares.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(relaxation.shares) <= 0).all()
    flat = relaxation.directions[:, 0]
    np.testing.assert_allclose(flat.T @ flat, np.eye(12), atol=1e-12)
    for start in relaxation.starts():
        assert np.linalg.norm(start) == pytest.approx(1, abs=1e-12)
    once, again = ([*relaxation.starts()] for _ in range(2))
    np.testing.assert_array_equal(once, again)
