"""Twenty chaotic systems of dysts, and two peers, with the defaults of every model.

The systems are the first twenty of dysts' list, in its alphabetical order, that are
autonomous flows of three to six variables without angles, and can be integrated; none was
chosen by its result. dysts gives the equations, a point on the attractor, the period and
the Lyapunov exponent; SciPy integrates, 30 samples per period.

The peers run on Lorenz and Mackey–Glass: reservoirpy with a random search of as many
evaluations as solving takes, judged like greenfold's penalty by closed loops on held-out
blocks; and a quadratic next-generation reservoir (Gauthier et al. 2021) of two delays, with
its penalty chosen in the same way.
"""

from __future__ import annotations

import itertools
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from . import forecast
from ._measure import Report, Row
from .forecast import Task, forecaster, valid_time

N_NEURONS, N_SYSTEMS, PER_PERIOD, N_SEEDS = 100, 20, 30, 3
HORIZON = 600
#: Length of the fresh trajectory.
FRESH = 4000
PENALTIES = 10.0 ** np.arange(-12, 0.1, 1.0)


def flow(name: str) -> Any:
    """A system of dysts by name."""
    import dysts.flows  # pyright: ignore[reportMissingImports]

    return getattr(dysts.flows, name)()


def trajectory(name: str, n: int, seed: int) -> np.ndarray:
    """Samples of a system, from a point near its attractor."""
    system = flow(name)
    start = np.asarray(system.ic, dtype=float)
    start = start * (1 + 1e-3 * np.random.default_rng(seed).standard_normal(start.shape))
    dt = system.period / PER_PERIOD
    skipped = 20 * system.period
    times = skipped + dt * np.arange(n)
    found = solve_ivp(
        lambda t, x: np.asarray(system.rhs(x, t), dtype=float),
        (0, times[-1]),
        start,
        method="LSODA",
        t_eval=times,
        rtol=1e-9,
        atol=1e-9 * np.abs(start).max(),
    )
    if not found.success or found.y.shape[1] < n or not np.isfinite(found.y).all():
        raise FloatingPointError(f"{name} could not be integrated")
    return found.y.T


def eligible(name: str) -> bool:
    """Whether a system is an autonomous flow of three to six variables without angles."""
    system = flow(name)
    start = np.asarray(system.ic, dtype=float)
    if start.ndim != 1 or not 3 <= len(start) <= 6 or hasattr(system, "_postprocessing"):
        return False
    here, later = (np.asarray(system.rhs(start, t), float) for t in (0.0, 0.37))
    return bool(np.allclose(here, later, rtol=1e-9))


def systems() -> list[Task]:
    """The twenty systems, each with its Lyapunov time in samples."""
    from dysts.systems import (  # pyright: ignore[reportMissingImports]
        get_attractor_list,
    )

    found = []
    for name in sorted(get_attractor_list()):
        if len(found) == N_SYSTEMS:
            break
        try:
            if not eligible(name):
                continue
            task = Task(name, partial(trajectory, name), lyapunov_samples(name), HORIZON)
            train, fresh = task.clean(0)
        except Exception as error:  # a system may raise anything
            print(f"{name} is left out: {error}", flush=True)
            continue
        if min(train.std(0).min(), fresh.std(0).min()) > 1e-6:
            found.append(task)
    return found


def lyapunov_samples(name: str) -> float:
    """Number of samples per Lyapunov time."""
    system = flow(name)
    return 1 / (system.maximum_lyapunov_estimated * system.period / PER_PERIOD)


def over_systems() -> Row:
    """Valid times of drawn and solved input weights, with defaults, three seeds each."""
    table, above = {}, 0
    for task in systems():
        rows = []
        for seed in range(N_SEEDS):
            train, seen, truth = task.series(seed, 0.0)
            judge = partial(valid_time, task, seen=seen, truth=truth, n_starts=100)
            models = [
                forecaster(N_NEURONS, seed, input_weights=kind).fit(train)
                for kind in ("random", "solved")
            ]
            rows.append([judge(model) for model in models])
        drawn, solved = np.mean(rows, axis=0)
        above += bool(solved > drawn)
        table[task.name] = [round(float(drawn), 3), round(float(solved), 3)]
        print(f"{task.name}: drawn {drawn:.2f}, solved {solved:.2f}", flush=True)
    ratios = [b / max(a, 1e-3) for a, b in table.values()]
    return Row(
        f"{len(table)} systems of dysts, N = {N_NEURONS}, defaults: solved above drawn on",
        float(above),
        "systems",
        "≥ 14",
        above >= 14,
        {"median_ratio": float(np.median(ratios)), "drawn_and_solved": table},
    )


class NextGeneration:
    """A quadratic next-generation reservoir of two delays, predicting the increment."""

    washout_ = 2

    def fit(self, series: np.ndarray) -> NextGeneration:
        """Ridge on a constant, the last two samples and their products."""
        self.mean, self.size = series.mean(0), series.std(0)
        z = (series - self.mean) / self.size
        rows, targets = self.features(z[1:-1], z[:-2]), z[2:] - z[1:-1]
        cut = 3 * len(rows) // 4
        scores = []
        for penalty in PENALTIES:
            self.solve(rows[:cut], targets[:cut], penalty)
            scores.append(self.held_out(z[cut:]))
        self.solve(rows, targets, PENALTIES[int(np.argmax(scores))])
        return self

    @staticmethod
    def features(now: np.ndarray, before: np.ndarray) -> np.ndarray:
        """A constant, the samples and their products."""
        both = np.hstack([now, before])
        pairs = itertools.combinations_with_replacement(range(both.shape[1]), 2)
        products = [both[:, i] * both[:, j] for i, j in pairs]
        return np.column_stack([np.ones(len(both)), both, *products])

    def solve(self, rows: np.ndarray, targets: np.ndarray, penalty: float) -> None:
        """Solve the readout for one penalty."""
        A = rows.T @ rows / len(rows) + penalty * np.eye(rows.shape[1])
        self.W = np.linalg.lstsq(A, rows.T @ targets / len(rows), rcond=None)[0]

    def held_out(self, z: np.ndarray) -> float:
        """Valid steps of loops on a held-out block."""
        at = np.linspace(1, len(z) // 2, 16).astype(int)
        return float(self.steps(z, z, at, len(z) // 2 - 2).sum())

    def steps(
        self, z: np.ndarray, wanted: np.ndarray, at: np.ndarray, n: int
    ) -> np.ndarray:
        """Valid steps of closed loops that begin after the samples ``at``."""
        before, now, counted = z[at - 1], z[at], np.zeros(len(at))
        lanes = np.arange(len(at))
        for step in range(1, n + 1):
            before, now = now, now + self.features(now, before) @ self.W
            error = np.sqrt(((now - wanted[at[lanes] + step]) ** 2).mean(1))
            valid = error <= 0.4
            lanes, before, now = lanes[valid], before[valid], now[valid]
            counted[lanes] += 1
            if not len(lanes):
                break
        return counted

    def valid(self, task: Task, seen: np.ndarray, truth: np.ndarray) -> float:
        """Mean valid time in Lyapunov times."""
        z, wanted = ((one - self.mean) / self.size for one in (seen, truth))
        at = np.linspace(1, len(z) - task.horizon - 2, forecast.N_STARTS).astype(int)
        return float(self.steps(z, wanted, at, task.horizon).mean() / task.lyapunov)


def reservoirpy_searched(n_neurons: int, seed: int, train: np.ndarray) -> Any:
    """The best random setting of a reservoirpy node; solving evaluates the same number.

    reservoirpy draws the node; greenfold runs its states, the ridge and the loop, which is
    faster and gives the same numbers.
    """
    from reservoirpy.nodes import Reservoir

    from greenfold import EchoStateNetwork

    rng = np.random.default_rng([seed, 7])
    best: tuple[float, Any] = (-np.inf, None)
    for trial in range(forecast.EVALUATIONS):
        node: Any = Reservoir(
            n_neurons,
            sr=float(rng.uniform(0.2, 1.4)),
            lr=float(10 ** rng.uniform(-1, 0)),
            input_scaling=float(10 ** rng.uniform(-1.5, 0.3)),
            input_connectivity=float(rng.choice([0.1, 1.0])),
            bias=float(rng.choice([0.0, 0.3, 1.0])) * rng.uniform(-1, 1, n_neurons),
            seed=1000 * seed + trial,
        )
        node.initialize(np.zeros((1, train.shape[1])))
        dense = [
            np.asarray(one.toarray() if hasattr(one, "toarray") else one)
            for one in (node.W, node.Win, node.bias)
        ]
        network = EchoStateNetwork(dense[0], float(node.lr), allow_unstable=True)
        weights = np.column_stack([dense[1], np.broadcast_to(dense[2].ravel(), n_neurons)])
        model = forecaster(n_neurons, seed, reservoir=network, input_weights=weights)
        model.fit(train)
        if model.score_ > best[0]:
            best = model.score_, model
    return best[1]


def beside_peers(task: Task) -> Row:
    """Solved with defaults and with a search, and the peers, three seeds."""
    rows = []
    for seed in range(N_SEEDS):
        train, seen, truth = task.series(seed, 0.0)
        judge = partial(valid_time, task, seen=seen, truth=truth)
        models = [
            forecaster(N_NEURONS, seed),
            forecaster(N_NEURONS, seed, search=24),
        ]
        found = [judge(model.fit(train)) for model in models]
        found.append(judge(reservoirpy_searched(N_NEURONS, seed, train)))
        found.append(NextGeneration().fit(train).valid(task, seen, truth))
        rows.append(found)
        print(f"{task.name}, seed {seed}: {np.round(found, 2).tolist()}", flush=True)
    names = ("solved", "solved_searched", "reservoirpy_searched", "next_generation")
    means = np.mean(rows, axis=0)
    return Row(
        f"{task.name}, N = {N_NEURONS}: valid time solved with a search over reservoirpy's "
        "with one",
        float(means[1] / means[2]),
        "times",
        "",
        None,
        {name: round(float(value), 2) for name, value in zip(names, means, strict=True)},
    )


def run(rounds: int) -> Report:
    """Peers, then the twenty systems; nothing is timed."""
    del rounds
    rows = [beside_peers(task) for task in forecast.TASKS]
    forecast.FRESH, kept = FRESH, forecast.FRESH
    try:
        rows.append(over_systems())
    finally:
        forecast.FRESH = kept
    notes = [
        f"greenfold {version('greenfold')}, reservoirpy {version('reservoirpy')}, dysts "
        f"{version('dysts')}; {N_SEEDS} seeds, {forecast.TRAIN} samples to train, "
        f"{PER_PERIOD} samples per period of dysts' systems",
        f"reservoirpy: the best of {forecast.EVALUATIONS} random settings",
        "next generation: two delays of one step, all products of two",
        "valid times are in Lyapunov times",
    ]
    return Report("forecast: twenty systems, and peers", notes, rows)
