"""The loss of a sequence task, judged by windows, Taylor remainders and plain loops."""

from functools import cache

import numpy as np
import pytest

from greenfold import (
    Dynamics,
    EchoStateNetwork,
    Gain,
    Reservoir,
    SequenceTask,
    optimize,
)
from greenfold.datasets import lorenz, narma
from greenfold.optimizers.sequence_loss import Iterate, SequenceProblem, UnseenProblem

NETWORKS = {
    "echo state": EchoStateNetwork.random(12, leak=0.6, rng=0, connectivity=0.5),
    "continuous": Reservoir.random(10, g=0.7, tau=0.6, gain=Gain.tanh(), rng=1),
    "grown": EchoStateNetwork.random(
        12, rng=2, connectivity=0.5, spectral_radius=1.2, allow_unstable=True
    ),
}


@cache
def series(n_samples):
    return lorenz(n_samples, rng=0) / 10


def problem_of(network, *, washout=15, see_input=False, n=160, ridge=1e-4, **options):
    z = series(n + 1)
    task = SequenceTask.from_sequences(
        z[:-1],
        z[1:],
        washout=washout,
        ridge=ridge,
        bias=1.0,
        see_input=see_input,
        **options,
    )
    dt = None if isinstance(network, EchoStateNetwork) else 0.5
    return SequenceProblem(Dynamics(network, n_steps=task.n_steps, dt=dt), task)


def unit(problem, seed=0):
    shape = problem.system.n_inputs, problem.task.n_channels
    u = np.random.default_rng(seed).standard_normal(shape)
    return u / np.linalg.norm(u)


@pytest.mark.parametrize("see_input", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_gradient_by_the_slope_of_its_taylor_remainder(name, see_input):
    problem = problem_of(NETWORKS[name], see_input=see_input)
    u, along = unit(problem), unit(problem, 1)
    _, margin, gradient = problem.evaluate(u)
    steps = 10.0 ** np.array([-2, -2.5, -3])
    left = [
        abs(
            problem.evaluate(u + h * along)[1].value
            - margin.value
            - h * (gradient * along).sum()
        )
        for h in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(left), 1)[0]
    assert slope > 1.9


def test_loss_is_that_of_a_plain_loop():
    """States by a loop from the start of the series, ridge by its normal equations."""
    network = NETWORKS["echo state"]
    problem = problem_of(network, washout=60, n_read=30)
    u, task = unit(problem), problem.task
    z = series(161)
    y, rows = np.zeros(12), []
    for x in z[:-1]:
        pushed = network.weights @ y + u @ [*x, 1.0]
        y = 0.4 * y + 0.6 * np.tanh(pushed)
        rows.append(y)
    S, T = np.array(rows)[60:], z[1:][60:]
    S, T = S - S.mean(0), T - T.mean(0)
    V = np.linalg.solve(S.T @ S / len(S) + task.ridge * np.eye(12), S.T @ T / len(S))
    loss = ((T - S @ V) ** 2).sum() / len(S) + task.ridge * (V**2).sum()
    assert task.n_used == 100
    # What a washout of 60 steps leaves: the network forgets by 0.5 per step or faster.
    assert problem.evaluate(u)[1].value == pytest.approx(-np.log(loss), abs=1e-9)


def test_gradient_is_the_one_of_windows():
    """The same rows as windows that are read once each, as long as the washout."""
    problem = problem_of(NETWORKS["echo state"], washout=40)
    u = unit(problem)
    windows = problem.task.windows()
    system = Dynamics(problem.system.reservoir, n_steps=windows.n_steps)
    found = optimize(system, windows, u=u)
    assert found.loss == pytest.approx(
        np.exp(-problem.evaluate(u)[1].value), rel=1e-7
    )  # what a washout of 40 leaves
    along, h = unit(problem, 1), 1e-5
    ends = [optimize(system, windows, u=u + s * h * along).loss for s in (-1, 1)]
    # optimize scales u to unit norm; so is the direction made tangent here.
    tangent = along - (along * u).sum() * u
    _, margin, gradient = problem.evaluate(u)
    slope = -np.exp(-margin.value) * (gradient * tangent).sum()
    assert (ends[1] - ends[0]) / (2 * h) == pytest.approx(slope, rel=1e-5)


def test_segments_cover_every_step_once():
    x = np.arange(137.0)
    task = SequenceTask.from_sequences([x, x[:40]], [x, x[:40]], washout=10, n_read=25)
    read = task.X[:, 0, task.washout :].T
    found = np.sort(read[task.used > 0])
    assert np.array_equal(found, np.sort(np.concatenate([x[10:], x[10:40]])))
    assert (task.y + task.offset)[task.used > 0].ravel() == pytest.approx(
        read[task.used > 0], abs=1e-12
    )
    # Before the first sample the network rests: no input, and no constant either.
    whole = SequenceTask.from_sequences(x, x, washout=10, n_read=25, n_skipped=0, bias=2.0)
    assert not whole.X[0, :, :10].any()
    assert whole.X[0, 1, 10:] == pytest.approx(2.0)


def test_linear_networks_come_with_a_certificate():
    x, y = narma(300, rng=0)
    network = EchoStateNetwork.random(15, gain=Gain.linear(), spectral_radius=0.7, rng=0)
    task = SequenceTask.from_sequences(x, y, washout=30, ridge=1e-3)
    found = optimize(Dynamics(network, n_steps=task.n_steps), task, rng=0)
    assert found.status == "certified"
    drawn = [
        optimize(
            Dynamics(network, n_steps=task.n_steps), task, u=unit_vector(15, seed)
        ).loss
        for seed in range(20)
    ]
    assert found.loss_bound is not None
    assert found.loss_bound <= found.loss * (1 + 1e-12)
    assert found.loss < min(drawn)


def unit_vector(n, seed):
    u = np.random.default_rng(seed).standard_normal(n)
    return u / np.linalg.norm(u)


def test_solved_weights_beat_as_many_draws():
    problem = problem_of(NETWORKS["echo state"], ridge=1e-8, n=400)
    found = problem.ascend(unit(problem), max_iter=40, tol=1e-9)
    drawn = [problem.evaluate(unit(problem, seed))[1].value for seed in range(40)]
    assert found.margin.value > max(drawn) + 0.5
    again = problem.ascend(unit(problem), max_iter=40, tol=1e-9)
    assert np.array_equal(again.u, found.u)


# The loss on blocks that the readout has not seen


def unseen_problem(name, *, see_input=0, many=False, weights=None, n=200):
    network, z = NETWORKS[name], series(n + 1)
    x, y = (z[:-1], z[1:]) if not many else ([z[:60], z[60:n]], [z[1:61], z[61 : n + 1]])
    task = SequenceTask.from_sequences(
        x, y, washout=15, bias=1.0, see_input=see_input, sample_weight=weights
    )
    dt = None if isinstance(network, EchoStateNetwork) else 0.5
    return UnseenProblem(Dynamics(network, n_steps=task.n_steps, dt=dt), task)


CASES = {
    "all": ("echo state", {}),
    "inputs seen": ("echo state", {"see_input": 3}),
    "several sequences": ("echo state", {"many": True}),
    "weights": ("grown", {"weights": np.arange(200) % 3.0}),
    "continuous": ("continuous", {"see_input": 1}),
    "fewer steps than neurons": ("echo state", {"n": 26}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("direction", ["u", "ridge", "scale"])
def test_unseen_gradient_by_the_slope_of_its_taylor_remainder(case, direction):
    name, options = CASES[case]
    by_scale = name != "continuous"
    if direction == "scale" and not by_scale:
        pytest.skip("the radius of a network of your own is held")
    problem = unseen_problem(name, **options)
    u, along = unit(problem), unit(problem, 1)
    start, *slopes = problem.evaluate_at(Iterate(u, 1e-4, 1.1), by_scale=by_scale)
    slope = {"u": (slopes[0] * along).sum(), "ridge": slopes[1], "scale": slopes[2]}

    def value(h):
        at = Iterate(
            u + h * along * (direction == "u"),
            1e-4 * np.exp(h * (direction == "ridge")),
            1.1 * np.exp(h * (direction == "scale")),
        )
        return problem.evaluate_at(at, by_scale=by_scale)[0]

    steps = 10.0 ** np.array([-2, -2.5, -3])
    left = [abs(value(h) - start - h * slope[direction]) for h in steps]
    assert np.polyfit(np.log(steps), np.log(left), 1)[0] > 1.9


@pytest.mark.parametrize(("see_input", "washout"), [(0, 60), (2, 60), (2, 192)])
def test_unseen_loss_is_that_of_plain_readouts(see_input, washout):
    """States by a loop over the whole series, and normal equations block by block."""
    network, z = NETWORKS["echo state"], series(201)
    task = SequenceTask.from_sequences(
        z[:-1], z[1:], washout=washout, bias=1.0, see_input=see_input
    )
    problem = UnseenProblem(Dynamics(network, n_steps=task.n_steps), task)
    u, ridge = unit(problem), 1e-5
    y, rows = np.zeros(12), []
    for index, x in enumerate(z[:-1]):
        y = 0.4 * y + 0.6 * np.tanh(1.2 * network.weights @ y + u @ [*x, 1.0])
        seen = [z[max(index - lag, 0)] for lag in range(see_input)]
        rows.append(np.concatenate([y, *seen]))
    S, T, n, loss = np.array(rows)[washout:], z[1:][washout:], 200 - washout, 0.0
    for block in np.array_split(np.arange(n), 4):
        rest = np.setdiff1d(np.arange(n), block)
        centred, y = S[rest] - S[rest].mean(0), T[rest] - T[rest].mean(0)
        gram = centred.T @ centred / len(rest) + ridge * np.eye(S.shape[1])
        V = np.linalg.solve(gram, centred.T @ y / len(rest))
        made = (S[block] - S[rest].mean(0)) @ V + T[rest].mean(0)
        loss += ((made - T[block]) ** 2).sum()
    found = problem.evaluate_at(Iterate(u, ridge, 1.2), by_scale=True)[0]
    # What a washout of 60 steps leaves.
    assert found == pytest.approx(np.log(loss / n), abs=1e-7)


def test_a_path_lowers_the_unseen_error_within_its_limits():
    problem = unseen_problem("echo state")
    start = Iterate(unit(problem), 1e-4)
    path = problem.follow(start, free_ridge=True, scales=(0.5, 1.1), max_iter=30)
    losses = [one.loss for one in path]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.2 * losses[0]
    assert all(0.5 <= one.scale <= 1.1 * (1 + 1e-12) for one in path)
    assert all(np.linalg.norm(one.u) == pytest.approx(1, rel=1e-12) for one in path)
    held = problem.follow(start, free_ridge=False, scales=None, max_iter=5)
    assert held[-1].ridge == pytest.approx(1e-4, rel=1e-12)
    assert held[-1].scale == 1.0


def test_a_path_goes_on_from_where_it_stopped(monkeypatch):
    """Its points are those of a path in one go, and no place is evaluated again."""
    start = Iterate(unit(unseen_problem("echo state")), 1e-4)
    evaluate_at, places = UnseenProblem.evaluate_at, list[Iterate]()

    def counted(self, at, *, by_scale):
        places.append(at)
        return evaluate_at(self, at, by_scale=by_scale)

    monkeypatch.setattr(UnseenProblem, "evaluate_at", counted)

    def points(problem, max_iter):
        path = problem.follow(start, free_ridge=True, scales=(0.5, 1.1), max_iter=max_iter)
        return [(one.u.tolist(), one.ridge, one.scale, one.loss) for one in path]

    whole, n_whole = points(unseen_problem("echo state"), 20), len(places)
    problem = unseen_problem("echo state")
    begun = points(problem, 8)
    assert 0 < len(begun) < len(whole)
    assert points(problem, 20) == whole
    assert whole[: len(begun)] == begun
    assert len(places) == 2 * n_whole


@pytest.mark.needs("torch")
def test_torch_has_the_same_unseen_error():
    import torch

    problem = unseen_problem("echo state", see_input=2)
    there = UnseenProblem(problem.system, problem.task.on(torch.zeros(1)))
    at = Iterate(unit(problem), 1e-4, 1.1)
    wanted = problem.evaluate_at(at, by_scale=True)
    for found, one in zip(there.evaluate_at(at, by_scale=True), wanted, strict=True):
        assert found == pytest.approx(one, rel=1e-8, abs=1e-12)


@pytest.mark.needs("torch")
def test_torch_runs_runs_the_same_code():
    import torch

    problem = problem_of(NETWORKS["echo state"])
    there = SequenceProblem(problem.system, problem.task.on(torch.zeros(1)))
    u = unit(problem)
    V, margin, gradient = problem.evaluate(u)
    other = there.evaluate(u)
    assert isinstance(there.task.X, torch.Tensor)
    assert other[1].value == pytest.approx(margin.value, rel=1e-12)
    assert other[2] == pytest.approx(gradient, rel=1e-8, abs=1e-12)
    assert other[0] == pytest.approx(V, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones(10)}, "`y` must have one row for each of the 10 samples"),
        (
            {"y": [np.ones(200), np.ones(200)]},
            "`y` must hold one sequence for each of the 1",
        ),
        ({"x": np.full(200, np.nan)}, "`x` must be finite; got nan at index"),
        ({"washout": 300}, "`x` must hold a sequence of more than 300 samples"),
        ({"washout": -1}, "`washout` must be at least 0"),
        ({"ridge": 0.0}, "`ridge` must be a positive finite number"),
        (
            {"x": [np.ones((9, 1)), np.ones((9, 2))]},
            "`x` must hold sequences with the same",
        ),
    ],
)
def test_bad_arguments(change, message):
    given = {"x": np.ones(200), "y": np.arange(200.0), "washout": 5} | change
    with pytest.raises(ValueError, match=message):
        SequenceTask.from_sequences(given.pop("x"), given.pop("y"), **given)


def test_a_system_for_other_segments_is_refused():
    task = problem_of(NETWORKS["echo state"]).task
    with pytest.raises(ValueError, match="segments of 65 steps, .* n_steps=65"):
        optimize(Dynamics(NETWORKS["echo state"], n_steps=20), task)
