"""Regression: judged by least squares on simulated states, random pairs and the bound."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Convex,
    Device,
    Dynamics,
    EchoStateNetwork,
    Gain,
    MeasuredResponse,
    RegressionTask,
    Reservoir,
    memory_capacity,
    optimize,
    simulate,
    unfold,
)
from greenfold.analysis import mask_bound
from greenfold.datasets import memory_task, narma
from greenfold.optimizers.linear import ascend
from greenfold.optimizers.regression import LinearRegression, NonlinearRegression

from ..conftest import slope, small, unit


@pytest.mark.parametrize("n_neurons", [50, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("delays", [[5], range(1, 11)], ids=["one delay", "ten delays"])
def test_the_bound_is_tight_on_memory(n_neurons, delays):
    network = unfold(Reservoir.random(n_neurons, tau=2.0, rng=1), n_steps=60, dt=0.5)
    task = RegressionTask.memory(list(delays), 60, ridge=0.01)
    best = optimize(network, task, method=Convex(1e-3), rng=0)
    assert best.gap is not None
    assert best.gap <= 1e-3
    assert best.status == "certified"
    drawn = [
        optimize(
            network, task, u=np.random.default_rng(100 + k).standard_normal(n_neurons)
        ).gain
        for k in range(10)
    ]
    assert best.gain >= 1.2 * np.mean(drawn)
    assert best.gain > max(drawn)
    assert best.loss == pytest.approx(len(task.variance) - best.gain)


@pytest.mark.parametrize(
    "kind",
    ["sign", "levels=4", "levels=-1,0,1", "nonnegative", "at-most=3", "box=-0.5,0.5"],
)
def test_masks_of_a_regression_stay_below_their_bounds(kind):
    network = unfold(small(n=8), n_steps=12, dt=0.5)
    task, device = RegressionTask.memory([1, 3], 12, ridge=0.01), Device(mask=kind)
    best = optimize(network, task, device=device, rng=0)
    assert best.upper_bound is not None
    assert best.mask == device.mask.kind  # pyright: ignore[reportOptionalMemberAccess]
    drawn = [device.mask.draw((8, 1), np.random.default_rng(k)) for k in range(60)]  # pyright: ignore[reportOptionalMemberAccess]
    if kind == "sign":  # all of them
        drawn = [2 * ((k >> np.arange(8)) & 1)[:, None] - 1.0 for k in range(256)]
    gains = [optimize(network, task, u=u).gain for u in drawn]
    if kind == "sign":
        assert best.gain == pytest.approx(max(gains), rel=1e-12)
    assert max(gains) <= best.gain * (1 + 1e-12)
    assert best.gain <= best.upper_bound
    if kind in ("levels=4", "levels=-1,0,1"):
        with pytest.raises(ValueError, match="known bound below that of all projections"):
            mask_bound(network, task, best, device)
    else:
        own = mask_bound(network, task, best, device)
        assert best.gain <= own * (1 + 1e-9)
        assert own <= best.upper_bound * (1 + 1e-9)
    assert best.random_losses is not None
    assert best.loss <= best.random_losses.min() + 1e-12
    assert f"mask ({best.mask})" in str(best)


def test_an_equaliser_on_a_recorded_device_with_a_mask(rng):
    """A channel with an echo is undone by a ring with a ±1 mask, on new symbols."""
    drive = rng.standard_normal((4000, 8))
    states, W = np.zeros((4000, 8)), 0.8 * np.roll(np.eye(8), 1, axis=0)
    for t in range(1, 4000):
        states[t] = W @ states[t - 1] + drive[t]
    states += 0.05 * rng.standard_normal(states.shape)
    device = MeasuredResponse.fit(drive, states, n_steps=10)
    sent = rng.choice([-3.0, -1.0, 1.0, 3.0], 2000)
    heard = np.convolve(sent, [0.2, 1.0, 0.4])[:2000] / 2.5
    heard += 0.02 * rng.standard_normal(2000)
    task = RegressionTask.from_series(
        heard[:1000], sent[:1000, None], n_steps=10, ridge=0.01
    )
    best = optimize(device, task, device=Device(mask="sign"), rng=0)
    assert best.random_losses is not None
    assert best.loss < np.median(best.random_losses)
    # The device itself plays the new symbols; the readouts are those that were solved.
    state, made = np.zeros(8), np.zeros(1000)
    moved = heard[1000:] - heard[:1000].mean()
    for t, pulse in enumerate(moved):
        state = W @ state + best.u * pulse
        made[t] = (state @ best.V)[0]
    found = 1 - ((made - sent[1000:])[20:] ** 2).mean() / sent[1000:].var()
    # 1000 correlated samples: the mean of the square is known to about 5 %.
    assert found == pytest.approx(best.r2[0], abs=0.05)


def test_no_pair_is_above_the_bound(rng):
    network = unfold(small(n=9), n_steps=12, dt=0.5)
    x, y = memory_task(400, 3, rng=0)
    task = RegressionTask.from_series(x, y + 0.5 * y[:, :1] ** 2, n_steps=12, ridge=0.02)
    best = optimize(network, task, rng=0)
    problem = LinearRegression(network.maps, task)
    assert best.upper_bound is not None
    for _ in range(50):
        u, V = unit(rng, 9, 1), rng.standard_normal((9, 3)) * rng.exponential()
        kernels = (network.input_response(u) @ V).T
        assert problem.gain(V, kernels).value <= best.gain <= best.upper_bound
        # At any kernels, however far from those of a pair.
        anywhere = list(rng.standard_normal(kernels.shape))
        assert LinearRegression(network.maps, task).relaxation.at(anywhere, u) >= best.gain


@pytest.mark.parametrize(
    ("delays", "ridge"),
    [([1], 0.1), ([2], 0.01), ([0, 1], 0.1), ([1, 2], 0.01), ([0, 1, 2], 0.1)],
)
def test_tiny_problems_are_not_beaten_by_random_inputs(delays, ridge):
    """Three neurons, where an ascent may end in an optimum that is not the best."""
    network = unfold(Reservoir.random(3, rng=266, max_draws=100), n_steps=3, dt=1.0)
    task = RegressionTask.memory(delays, 3, ridge=ridge)
    best, other = (optimize(network, task, rng=seed) for seed in (0, 1))
    problem, rng = LinearRegression(network.maps, task), np.random.default_rng(0)
    drawn = [problem.evaluate(unit(rng, 3, 1))[1].value for _ in range(200)]
    assert best.gain >= max(drawn)
    # The luck of other random starts changes nothing: an ascent ends at 1e-12 of J.
    assert best.gain == pytest.approx(other.gain, rel=1e-9)
    assert best.gap is not None
    assert best.gap < 0.01


def test_of_two_optima_within_the_tolerance_the_better_one_is_found():
    """The first pair was certified, and another was better by 2.6e-5: rounding chose."""
    rng = np.random.default_rng([54, 11])
    n, n_steps, n_targets = (int(rng.integers(*ends)) for ends in ((3, 7), (3, 7), (1, 4)))
    network = Reservoir.random(n, g=0.9, rng=54, max_draws=100, allow_unstable=True)
    X = rng.standard_normal((40, n_steps)) * rng.exponential(size=n_steps)
    Y = X @ rng.standard_normal((n_steps, n_targets)) + 0.3 * rng.standard_normal(
        (40, n_targets)
    )
    task = RegressionTask.from_cases(X, Y, ridge=float(10 ** rng.uniform(-4, 0)))
    unfolding = unfold(network, n_steps=n_steps, dt=1.0)
    best, problem = optimize(unfolding, task, rng=0), LinearRegression(unfolding.maps, task)
    ends = [ascend(problem, unit(rng, n, 1), max_iter=500, tol=1e-12) for _ in range(50)]
    assert best.gain >= max(end.margin.value for end in ends) * (1 - 1e-9)


def test_the_loss_is_that_of_simulated_states(rng):
    """Ridge on states of the ODE solver, whatever the window: the judge of J and R²."""
    reservoir = small(n=6)
    network = unfold(reservoir, n_steps=8, dt=0.5)
    X = rng.standard_normal((300, 8))
    y = np.stack([X[:, 5], X[:, 6] + 0.3 * rng.standard_normal(300)], axis=1)
    task = RegressionTask.from_cases(X, y, ridge=0.05)
    best = optimize(network, task, rng=0)
    Y = simulate(reservoir, X, best.u, 0.5)
    Y = Y - Y.mean(0)
    T = y - y.mean(0)
    V = np.linalg.solve(Y.T @ Y / 300 + 0.05 * np.eye(6), Y.T @ T / 300)
    np.testing.assert_allclose(best.V, V, atol=1e-6)
    error = ((T - Y @ V) ** 2).mean(0) + 0.05 * (V**2).sum(0)
    assert best.loss == pytest.approx(error.sum(), rel=1e-6)
    np.testing.assert_allclose(best.r2, 1 - error / T.var(0), atol=1e-6)
    assert best.loss_bound is not None
    assert best.loss_bound <= best.loss


@pytest.mark.parametrize("kind", ["linear", "unfolded", "integrated"])
def test_gradients_by_their_taylor_remainder(rng, kind):
    gain = Gain.linear() if kind == "linear" else Gain.quadratic(0.2)
    if kind == "integrated":
        gain = Gain.tanh()
    reservoir = Reservoir(small(n=5).weights, gain=gain)
    X = rng.standard_normal((40, 2, 6))
    task = RegressionTask.from_cases(X, X[:, 0, -2] * X[:, 1, -1] + X[:, 0, -1], ridge=0.1)
    if kind == "integrated":
        problem = NonlinearRegression(Dynamics(reservoir, n_steps=6, dt=0.5), task)
    elif kind == "unfolded":
        problem = NonlinearRegression(unfold(reservoir, n_steps=6, dt=0.5, order=1), task)
    else:
        problem = LinearRegression(unfold(reservoir, n_steps=6, dt=0.5).maps, task)
    u, direction = unit(rng, 5, 2), unit(rng, 5, 2)
    _, margin, gradient = problem.evaluate(u)
    steps = np.array([1e-1, 3e-2, 1e-2, 3e-3])
    rest = [
        abs(
            problem.evaluate(u + h * direction)[1].value
            - margin.value
            - h * (gradient * direction).sum()
        )
        for h in steps
    ]
    assert slope(steps, rest) > 1.9


def test_a_non_linear_network_learns_what_a_linear_one_cannot(rng):
    """Products of inputs: nothing for the linear order."""
    X = rng.standard_normal((300, 5))
    y = X[:, -1] * X[:, -2]
    task = RegressionTask.from_cases(X, y, ridge=1e-4)
    reservoir = Reservoir(small(n=8).weights, gain=Gain.quadratic(0.2))
    plain = optimize(unfold(reservoir, n_steps=5, dt=0.5), task, rng=0)
    expanded = unfold(reservoir, n_steps=5, dt=0.5, order=1)
    curved = optimize(expanded, task, method=Ascent(n_starts=2), rng=0)
    assert plain.r2[0] < 0.1
    assert curved.r2[0] > 0.3
    assert curved.upper_bound is None
    assert curved.starts[0] <= curved.gain


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_an_echo_state_network_run_for_real(rng, bias):
    """The states of the solved u are those of the network run step by step."""
    network = EchoStateNetwork.random(8, leak=0.8, connectivity=1.0, bias=bias, rng=0)
    X = rng.standard_normal((200, 6))
    y = X[:, -1] + 0.5 * X[:, -2] ** 2
    task = RegressionTask.from_cases(X, y, ridge=1e-3)
    system = Dynamics(network, n_steps=6)
    best = optimize(system, task, method=Ascent(2, max_evaluations=40), rng=0)
    assert len(best.starts) == 2
    short = Ascent(1, max_evaluations=5)
    assert len(optimize(system, task, method=short).starts) == 1
    Y = np.tile(network.rest, (200, 1))
    for step in X.T:
        inner = Y @ network.weights.T + np.outer(step, best.u) + bias
        Y = 0.2 * Y + 0.8 * np.tanh(inner)
    Y, T = Y - Y.mean(0), y - y.mean()
    v = np.linalg.solve(Y.T @ Y / 200 + 1e-3 * np.eye(8), Y.T @ T / 200)
    loss = ((T - Y @ v) ** 2).mean() + 1e-3 * v @ v
    assert best.loss == pytest.approx(loss, rel=1e-9)
    drawn = [optimize(system, task, u=rng.standard_normal(8)).loss for _ in range(10)]
    assert best.loss < min(drawn)


def test_a_measured_device_and_a_long_series():
    network = unfold(small(n=7), n_steps=15, dt=0.5)
    x, y = narma(600, rng=0)
    task = RegressionTask.from_series(x, y, n_steps=15, ridge=1e-4)
    best = optimize(MeasuredResponse(network.greens1()), task, rng=0)
    assert best.gain == pytest.approx(optimize(network, task, rng=0).gain, rel=1e-8)
    again = optimize(network, task, rng=0)
    np.testing.assert_array_equal(optimize(network, task, rng=0).u, again.u)


def test_memory_capacity(rng):
    network = unfold(small(n=10), n_steps=20, dt=0.5)
    solved = memory_capacity(network, delays=range(1, 6))
    drawn = memory_capacity(network, "random", delays=range(1, 6), rng=0)
    assert drawn.random is not None
    assert solved.total == pytest.approx(solved.capacity.sum())
    assert drawn.random.max() < solved.total
    assert solved.bound is not None
    assert solved.bound >= solved.total
    given = memory_capacity(network, drawn.u, delays=range(1, 6))
    assert given.total == pytest.approx(drawn.random.max())
    # The judge: regression on states of one long run, in which noise is drawn.
    x = rng.standard_normal(60_000)
    states = np.zeros((60_000, 10))
    G = network.greens1()
    for lag in range(20):
        states[20:] += np.outer(x[20 - lag : 60_000 - lag], G[19 - lag] @ given.u)
    states[20:] += 0.1 * rng.standard_normal((59_980, 10))
    for place, delay in enumerate(range(1, 6)):
        target = x[20 - delay : 60_000 - delay]
        fit = np.linalg.lstsq(states[20:], target)[0]
        explained = 1 - ((target - states[20:] @ fit) ** 2).mean() / (target**2).mean()
        # Of 6·10⁴ samples a share of variance is known to about 1/√(6·10⁴) = 0.4 %.
        assert given.capacity[place] == pytest.approx(explained, abs=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RegressionTask.memory(5, 5), "`delays` must lie between 0 and"),
        (lambda: RegressionTask.from_cases(np.ones((3, 2)), [1, 2]), "`y` must have one"),
        (lambda: RegressionTask.from_series([1.0, 2], [1, 2], n_steps=4), "more than n_st"),
        (lambda: RegressionTask.memory(1, 5, ridge=0), "`ridge` must be a positive"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_does_not_fit():
    network = unfold(small(n=4), n_steps=6, dt=0.5)
    with pytest.raises(ValueError, match="`task` has 5 steps, but the system"):
        optimize(network, RegressionTask.memory(1, 5))
    curved = unfold(
        Reservoir(small(n=4).weights, gain=Gain.quadratic(0.1)), n_steps=6, dt=0.5, order=1
    )
    with pytest.raises(ValueError, match="`task` must have series"):
        optimize(curved, RegressionTask.memory(1, 6))
    with pytest.raises(ValueError, match="`system` must be linear"):
        memory_capacity(curved)
    with pytest.raises(ValueError, match="`u` must be 'solved', 'random' or an array"):
        memory_capacity(network, "best")
    with pytest.raises(ValueError, match="have one positive standard deviation"):
        memory_capacity(network, device=Device(inputs=[0]))
    task = RegressionTask.memory(1, 6)
    with pytest.raises(ValueError, match="must have no bits or noise for a Regression"):
        optimize(network, task, device=Device(mask="sign", bits=2))
