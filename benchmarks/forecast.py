"""Valid time of small reservoirs with drawn, best of many, and solved input weights.

Spectral radius, input scale, leak and bias scale are searched *for the drawn network*, on
other seeds. The solved one uses the same values, the same recurrent weights and the same
norm of its input weights. Each model chooses its own ridge penalty by closed loops on
held-out blocks. Valid times are means over 200 starts on a fresh trajectory: the first step
whose root mean squared error over the channels exceeds 0.4 deviations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np

from ._measure import Report, Row

N_SEEDS, SEARCHED = 10, (100, 101)
TRAIN, FRESH, N_STARTS = 3000, 12_000, 200
SIZES = (50, 100)
NOISES = (0.0, 0.01, 0.05)
EVALUATIONS = 100
GRID = {
    "spectral_radius": (0.4, 0.9, 1.2),
    "input_scale": (0.1, 0.3),
    "leak": (0.3, 0.6, 1.0),
    "bias_scale": (0.3, 1.0),
}


@dataclass(frozen=True)
class Task:
    """A system, its samples per Lyapunov time, and the longest forecast to judge."""

    name: str
    make: Callable[[int, int], np.ndarray]
    lyapunov: float
    horizon: int

    @cache  # noqa: B019 - a handful of tasks, for the length of a run
    def clean(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Training series and a fresh one."""
        return self.make(TRAIN, seed), self.make(FRESH, 10_000 + seed)

    def series(self, seed: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Training series, the observed fresh series, and the fresh series itself."""
        train, fresh = self.clean(seed)
        rng = np.random.default_rng([seed, 2])
        size = noise * train.std(0)
        return (
            train + size * rng.standard_normal(train.shape),
            fresh + size * rng.standard_normal(fresh.shape),
            fresh,
        )


def _lorenz(n: int, seed: int) -> np.ndarray:
    from greenfold.datasets import lorenz

    return lorenz(n, rng=seed)


def _mackey_glass(n: int, seed: int) -> np.ndarray:
    from greenfold.datasets import mackey_glass

    return mackey_glass(n, rng=seed)[:, None]


TASKS = (
    Task("Lorenz", _lorenz, 1 / (0.906 * 0.05), 400),
    Task("Mackey–Glass", _mackey_glass, 167.0, 1800),
)


def valid_time(
    task: Task, model: Any, seen: np.ndarray, truth: np.ndarray, n_starts: int = N_STARTS
) -> float:
    """Mean over starts, in Lyapunov times; a loop ends when no lane is valid any more."""
    from greenfold.estimators.sequences.backtest import VALID

    washout = max(model.washout_, 1)
    at = np.linspace(0, len(truth) - washout - task.horizon - 1, n_starts).astype(int)
    z, wanted = model._y_scale.down(seen), model._y_scale.down(truth)
    driven = model.driven_
    states = np.zeros((n_starts, driven.n_neurons))
    for step in range(washout - 1):
        states = driven.advance(states, z[at + step])
    x, steps = z[at + washout - 1], np.zeros(n_starts)
    lanes = np.arange(n_starts)
    for step in range(task.horizon):
        states = driven.advance(states, x)
        x = model._read(states, x)
        error = np.sqrt(((x - wanted[at[lanes] + washout + step]) ** 2).mean(1))
        valid = error <= VALID
        lanes, states, x = lanes[valid], states[valid], x[valid]
        steps[lanes] += 1
        if not len(lanes):
            break
    return float(steps.mean() / task.lyapunov)


def forecaster(n_neurons: int, seed: int, **more: Any) -> Any:
    """A model of one seed; its recurrent weights depend on the seed alone."""
    from greenfold import ReservoirForecaster

    options: dict[str, Any] = {"max_iter": EVALUATIONS, "random_state": seed, **more}
    return ReservoirForecaster(n_neurons, **options)


@cache
def searched(task: Task, n_neurons: int, noise: float) -> dict[str, float]:
    """The setting with the longest valid time of drawn networks, on other seeds."""
    best: tuple[float, dict] = (-1.0, {})
    for values in itertools.product(*GRID.values()):
        setting = dict(zip(GRID, values, strict=True))
        found = []
        for seed in SEARCHED:
            train, seen, truth = task.series(seed, noise)
            model = forecaster(n_neurons, seed, input_weights="random", **setting)
            found.append(valid_time(task, model.fit(train), seen, truth, N_STARTS // 4))
        best = max(best, (float(np.mean(found)), setting), key=lambda pair: pair[0])
    return best[1]


def best_of_draws(
    task: Task, n_neurons: int, seed: int, noise: float, setting: dict
) -> Any:
    """The draw with the smallest training loss; solving evaluates the same number."""
    from greenfold import Dynamics, SequenceTask
    from greenfold.optimizers.sequences import SequenceProblem

    train, _, _ = task.series(seed, noise)
    drawn = forecaster(n_neurons, seed, input_weights="random", **setting).fit(train)
    U = drawn.input_weights_
    size, z = float(np.linalg.norm(U)), drawn._y_scale.down(train)
    cut = SequenceTask.from_sequences(
        size * z[:-1], z[1:], washout=drawn.washout_, ridge=1e-11, bias=size
    )
    problem = SequenceProblem(Dynamics(drawn.driven_.network, n_steps=cut.n_steps), cut)
    rng = np.random.default_rng([seed, 3])
    scales = np.append(
        np.full(U.shape[1] - 1, setting["input_scale"]), setting["bias_scale"]
    )

    def draw() -> np.ndarray:
        one = scales * rng.uniform(-1, 1, U.shape)
        return one / np.linalg.norm(one)

    draws = [U / size, *(draw() for _ in range(EVALUATIONS - 1))]
    losses = [problem.readout(problem.prepared(one).states)[1] for one in draws]
    best = size * draws[int(np.argmin(losses))]
    return forecaster(n_neurons, seed, input_weights=best, **setting).fit(train)


def compared(task: Task, n_neurons: int, noise: float, target: float | None) -> Row:
    """Valid times of ten seeds: drawn, best of many draws, and solved."""
    setting = searched(task, n_neurons, noise)
    rows = []
    for seed in range(N_SEEDS):
        train, seen, truth = task.series(seed, noise)
        judge = partial(valid_time, task, seen=seen, truth=truth)
        drawn = forecaster(n_neurons, seed, input_weights="random", **setting).fit(train)
        best = best_of_draws(task, n_neurons, seed, noise, setting)
        solved = forecaster(n_neurons, seed, **setting).fit(train)
        rows.append([judge(one) for one in (drawn, best, solved)])
        print(f"{task.name}, N = {n_neurons}, noise {noise:g}, seed {seed}:", end=" ")
        print(", ".join(f"{one:.2f}" for one in rows[-1]), flush=True)
    drawn, best, solved = np.array(rows).T
    ratio = float(solved.mean() / drawn.mean())
    above = int((solved > best).sum())
    met = None if target is None else bool(ratio >= target and (noise or above == N_SEEDS))
    return Row(
        f"{task.name}, N = {n_neurons}, noise {100 * noise:g} %: valid time solved "
        f"{solved.mean():.2f} over drawn {drawn.mean():.2f}, in Lyapunov times",
        ratio,
        "times",
        "" if target is None else f"≥ {target:g}",
        met,
        {
            "drawn": drawn.round(3).tolist(),
            "best_of_draws": best.round(3).tolist(),
            "solved": solved.round(3).tolist(),
            "standard_error": float((solved - drawn).std(ddof=1) / np.sqrt(N_SEEDS)),
            "above_best_of_draws": above,
            "setting": str(setting),
        },
    )


#: Targets by system, size and noise.
TARGETS = {
    ("Lorenz", 50, 0.0): 1.4,
    ("Lorenz", 100, 0.0): 1.1,
    ("Mackey–Glass", 50, 0.0): 1.9,
    ("Mackey–Glass", 100, 0.0): 1.8,
    ("Lorenz", 50, 0.01): 1.0,
    ("Lorenz", 100, 0.01): 1.0,
    ("Lorenz", 50, 0.05): 1.0,
    ("Lorenz", 100, 0.05): 1.0,
    ("Mackey–Glass", 50, 0.01): 1.3,
    ("Mackey–Glass", 100, 0.01): 1.3,
    ("Mackey–Glass", 50, 0.05): 1.3,
    ("Mackey–Glass", 100, 0.05): 1.3,
}


def run(rounds: int) -> Report:
    """Both systems, both sizes, all noises; nothing is timed."""
    del rounds
    rows = [
        compared(task, size, noise, TARGETS.get((task.name, size, noise)))
        for noise in NOISES
        for task in TASKS
        for size in SIZES
    ]
    n_settings = len(list(itertools.product(*GRID.values())))
    notes = [
        f"tanh networks, ten connections per neuron; {TRAIN} samples to train, {N_SEEDS} "
        f"seeds of network and series, {N_STARTS} starts each on a fresh trajectory",
        f"setting: the best of {n_settings} for the drawn network by valid time on seeds "
        f"{SEARCHED[0]} and {SEARCHED[1]}, for each size and noise",
        f"best of draws: of {EVALUATIONS} draws of input weights and bias on the same "
        "recurrent weights, by training loss; solving evaluates the same number",
        "noise is on the observed series, in training and before forecasts, not the truth",
        f"greenfold {version('greenfold')}",
    ]
    return Report("forecast: solved and drawn input weights", notes, rows)
