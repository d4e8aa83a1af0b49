"""NARMA-10 and a non-linear channel, with a drawn and a solved `Win` of a reservoirpy node.

reservoirpy runs both nodes over the whole series and reads them with its own ridge at every
step, so they differ only in the direction of `Win`. Leak, spectral radius, scale and
connectivity of `Win` and the bias are chosen *for the drawn node*, by its validation error
on other seeds, once per task and noise; the solved node uses the same values, with the same
norm of `Win`. The penalty of the ridge is chosen on the validation part, for each node
separately. Noise is on every state when it is read; an error with noise is its mean over
all noise, not a draw, and the penalty is chosen with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy.special import ndtr

from ._measure import Report, Row

N_NEURONS = 50
N_SEEDS = 10
SEARCHED = (100, 101)
WASHOUT, TRAIN, VALIDATION, TEST = 200, 2000, 1000, 10_000
NOISES = (0.0, 0.03)
PENALTIES = 10.0 ** np.arange(-12, 4.1, 0.5)
#: Washout of a window of the ascent, its smallest penalty, and its length.
WINDOW, LEAST, EVALUATIONS = 40, 1e-10, 60
SNR = 16.0


@dataclass(frozen=True)
class Setting:
    """Settings chosen for the drawn node, in reservoirpy's terms."""

    lr: float
    sr: float
    input_scaling: float
    input_connectivity: float
    bias: float

    def node(self, seed: int) -> Any:
        """A node with its weights drawn."""
        from reservoirpy.nodes import Reservoir

        bias = np.random.default_rng([seed, 1]).uniform(-1, 1, N_NEURONS)
        node: Any = Reservoir(
            N_NEURONS,
            lr=self.lr,
            sr=self.sr,
            input_scaling=self.input_scaling,
            input_connectivity=self.input_connectivity,
            bias=self.bias * bias,
            seed=seed,
        )
        node.initialize(np.zeros((1, 1)))
        return node


def settings(scales: tuple[float, ...]) -> list[Setting]:
    """All settings to compare."""
    values = (1.0, 0.5), (0.8, 0.95), scales, (0.1, 1.0), (0.0, 0.3, 1.0)
    return [Setting(*one) for one in itertools.product(*values)]


#: Weights and intercept of reservoirpy, states, targets and noise to an error.
Judge = Callable[[np.ndarray, float, np.ndarray, np.ndarray, float], float]


def root_error(w: np.ndarray, b: float, S: np.ndarray, y: np.ndarray, noise: float):
    """Root mean squared error over the deviation of the target (NRMSE)."""
    square = ((y - S @ w - b) ** 2).mean() + noise**2 * float(w @ w)
    return float(np.sqrt(square / y.var()))


def symbol_errors(w: np.ndarray, b: float, S: np.ndarray, y: np.ndarray, noise: float):
    """Share of symbols that are mistaken for another of −3, −1, 1, 3."""
    z = S @ w + b
    spread = max(noise * float(np.linalg.norm(w)), 1e-300)
    below = np.where(y < 3, ndtr((y + 1 - z) / spread), 1.0)
    above = np.where(y > -3, ndtr((y - 1 - z) / spread), 0.0)
    return float(1 - (below - above).mean())


@dataclass(frozen=True)
class Task:
    """Series, the targets to read from them, and the error measure."""

    name: str
    error: str
    make: Callable[[int, int], tuple[np.ndarray, np.ndarray]]
    judge: Judge
    scales: tuple[float, ...]

    def series(self, seed: int, n_test: int = TEST) -> tuple[np.ndarray, np.ndarray]:
        """Input and target from the washout to the test."""
        return self.make(WASHOUT + TRAIN + VALIDATION + n_test, seed)


def _narma(n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from greenfold.datasets import narma

    return narma(n_samples, rng=seed)


def _channel(n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from greenfold.datasets import channel_equalisation

    return channel_equalisation(n_samples, noise=SNR, rng=seed)


TASKS = (
    Task("NARMA-10", "NRMSE", _narma, root_error, (0.1, 0.3, 1.0)),
    Task(
        f"channel, {SNR:g} dB", "symbol errors", _channel, symbol_errors, (0.03, 0.1, 0.3)
    ),
)


def ridge(S: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Weights and intercept of reservoirpy's ridge."""
    from reservoirpy.nodes import Ridge

    node: Any = Ridge(ridge=penalty)
    node.fit(S, y[:, None])
    return np.ravel(node.Wout), float(np.ravel(node.bias)[0])


@dataclass(frozen=True)
class Errors:
    """Errors of one node, with the penalty of the smallest validation error."""

    validation: float
    test: float
    penalty: float


def judged(task: Task, S: np.ndarray, y: np.ndarray, noise: float) -> Errors:
    """Errors of a node with these states."""
    cuts = np.cumsum([WASHOUT, TRAIN, VALIDATION])
    train, held, test = (slice(*pair) for pair in itertools.pairwise([*cuts, len(S)]))
    found = [(*ridge(S[train], y[train], p), p) for p in PENALTIES]
    scores = [task.judge(w, b, S[held], y[held], noise) for w, b, _ in found]
    w, b, penalty = found[int(np.argmin(scores))]
    tested = task.judge(w, b, S[test], y[test], noise) if len(S) > cuts[-1] else np.nan
    return Errors(min(scores), tested, float(penalty))


def states(node: Any, x: np.ndarray) -> np.ndarray:
    """States of a node at every step, run by reservoirpy."""
    node.reset()
    return np.asarray(node.run(x[:, None]))


@cache
def chosen(task: Task) -> dict[float, Setting]:
    """The setting with the smallest validation error of drawn nodes, per noise."""
    scores: dict[float, list[tuple[float, Setting]]] = {noise: [] for noise in NOISES}
    for one in settings(task.scales):
        found: dict[float, list[float]] = {noise: [] for noise in NOISES}
        for seed in SEARCHED:
            x, y = task.series(seed, 0)
            S = states(one.node(seed), x)
            for noise in NOISES:
                found[noise].append(judged(task, S, y, noise).validation)
        for noise in NOISES:
            scores[noise].append((float(np.mean(found[noise])), one))
    return {noise: min(pairs, key=lambda p: p[0])[1] for noise, pairs in scores.items()}


def solved(node: Any, x: np.ndarray, y: np.ndarray, noise: float, seed: int) -> Any:
    """The node with `Win` solved on the training part, at the same norm."""
    from copy import deepcopy

    from greenfold import Ascent, Dynamics, RegressionTask, optimize
    from greenfold.reservoirpy import network_of

    drawn = np.asarray(node.Win.toarray() if hasattr(node.Win, "toarray") else node.Win)
    norm = float(np.linalg.norm(drawn))
    part = slice(WASHOUT - WINDOW + 1, WASHOUT + TRAIN)
    task = RegressionTask.from_series(
        norm * x[part], y[part], n_steps=WINDOW, ridge=max(noise**2, LEAST)
    )
    system = Dynamics(network_of(node), n_steps=WINDOW)
    best = optimize(system, task, method=Ascent(2, EVALUATIONS), rng=seed)
    made = deepcopy(node)
    made.Win = norm * best.u[:, None]
    return made


def compared(task: Task, noise: float) -> Row:
    """Errors of ten nodes, drawn and solved."""
    setting = chosen(task)[noise]
    drawn, ours = [], []
    for seed in range(N_SEEDS):
        x, y = task.series(seed)
        node = setting.node(seed)
        drawn.append(judged(task, states(node, x), y, noise))
        better = solved(node, x, y, noise, seed)
        ours.append(judged(task, states(better, x), y, noise))
        print(f"{task.name}, noise {noise:g}, seed {seed}:", flush=True, end=" ")
        print(f"{drawn[-1].test:.4g} drawn, {ours[-1].test:.4g} solved", flush=True)
    a, b = (np.array([one.test for one in errors]) for errors in (drawn, ours))
    apart = a - b
    error = float(apart.std(ddof=1) / np.sqrt(N_SEEDS))
    below = apart.mean() > 2 * error
    title = f"{task.name}, noise {noise:g}: {task.error} of the solved Win, {b.mean():.4g} "
    title += f"(drawn {a.mean():.4g}), as a share of the drawn one's"
    return Row(
        title,
        100 * float(b.mean() / a.mean()),
        "%",
        "< 100 % by 2 standard errors" if noise else "≤ 100 %",
        bool(below if noise else b.mean() <= a.mean()),
        {
            "difference": float(apart.mean()),
            "standard_error": error,
            "seeds_below": int((apart > 0).sum()),
            "drawn": a.round(5).tolist(),
            "solved": b.round(5).tolist(),
            "penalties_drawn": [one.penalty for one in drawn],
            "penalties_solved": [one.penalty for one in ours],
            "setting": str(setting),
        },
    )


def run(rounds: int) -> Report:
    """Both tasks, without and with noise; nothing is timed."""
    del rounds
    rows = [compared(task, noise) for task in TASKS for noise in NOISES]
    notes = [
        f"reservoirpy {version('reservoirpy')}, tanh, N = {N_NEURONS}, {N_SEEDS} seeds of "
        f"network and series; washout {WASHOUT}, {TRAIN} steps to fit, {VALIDATION} to "
        f"choose the ridge's penalty, {TEST:,} to judge; all series are synthetic",
        f"lr, sr, input_scaling, input_connectivity and bias are the best of "
        f"{len(settings(TASKS[0].scales))} for the drawn node, by validation on seeds "
        f"{SEARCHED[0]} and {SEARCHED[1]}, with the noise in question; the solved Win has "
        "the same norm, and knows nothing of the drawn one",
        "the channel's symbols come with noise of its own; `noise` is on every state at "
        "the readout",
    ]
    return Report("regression: reservoirpy", notes, rows)
