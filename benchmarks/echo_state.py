"""A reservoirpy node with solved input weights, judged by reservoirpy's own ridge.

ECG5000, classes 1 and 2 in the archive's split; sparse tanh nodes read at the last step.
The random `Win` is dense and normal, and both have unit norm. Noise is added to every
neuron at the readout. Cross-validation *with* that noise chooses the penalty of the ridge
for each node, so that both readouts know it. An accuracy with noise is its mean over all
noise, Φ(margin / (σ ‖w‖)) of each series, not a draw.

``python -m benchmarks.echo_state saturating`` uses the unscaled series, which drive the
nodes into saturation, and also solves through the network itself; it writes
docs/_benchmarks/echo-state-saturating.json.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from ._measure import Report, Row, write_json

SIZES = (50, 100)
N_SEEDS = 10
LEAK, RADIUS, CONNECTIVITY = 0.3, 0.9, 0.1
ETA = 10.0
PENALTIES = 10.0 ** np.arange(-8, 5)
N_FOLDS = 5
#: Loss of accuracy by noise of a random `Win`, which sets the noise.
LOSS = 0.05
#: Number of test series that reservoirpy computes too; it takes 5 ms for each.
N_JUDGED = 200
SATURATING_JSON = (
    Path(__file__).parents[1] / "docs" / "_benchmarks" / "echo-state-saturating.json"
)


@dataclass(frozen=True)
class Task:
    """Series (n, n_steps) and targets ±1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    source: str


def task(*, scaled: bool = True) -> Task:
    from greenfold import SampleStimuli
    from greenfold.datasets import load_dataset, synthetic_heartbeats

    if os.environ.get("GREENFOLD_DATA"):
        both = ("train", "test")
        train, test = (load_dataset("ECG5000", part, download=False) for part in both)
        parts = [
            (np.asarray(X)[y <= 2], np.where(y[y <= 2] == 1, 1.0, -1.0))
            for X, y in (train, test)
        ]
        source = "ECG5000, classes 1 and 2 as the archive splits them"
    else:
        made = [synthetic_heartbeats(n, n_steps=140, rng=n) for n in (469, 4217)]
        parts = [(X, np.where(y == y.max(), 1.0, -1.0)) for X, y in made]
        source = "synthetic heartbeats (GREENFOLD_DATA is not set)"
    (X, y), (X_test, y_test) = parts
    stimuli = SampleStimuli(X, y)
    if scaled:
        X, X_test = stimuli.transform(X), stimuli.transform(X_test)
    return Task(X, y, X_test, y_test, source)


def ridge(states: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Weights and intercept of reservoirpy's ridge."""
    from reservoirpy.nodes import Ridge

    node: Any = Ridge(ridge=penalty)
    node.fit(states, y[:, None])
    return np.ravel(node.Wout), float(np.ravel(node.bias)[0])


def accuracy(readout: tuple, states: np.ndarray, y: np.ndarray, noise: float) -> float:
    """Share of series on the right side, averaged over the noise."""
    w, b = readout
    margin = y * (states @ w + b)
    if noise == 0:
        return float((margin > 0).mean())
    return float(ndtr(margin / (noise * np.linalg.norm(w))).mean())


class Judged:
    """Readouts of one node for all penalties, and their accuracy at any noise."""

    def __init__(self, train: np.ndarray, test: np.ndarray, given: Task) -> None:
        self.train, self.test, self.given = train, test, given
        self.folds = np.arange(len(train)) % N_FOLDS
        self.readouts = [ridge(train, given.y, penalty) for penalty in PENALTIES]
        self.held_out = [
            [ridge(train[self.folds != f], given.y[self.folds != f], p) for p in PENALTIES]
            for f in range(N_FOLDS)
        ]

    def at(self, noise: float) -> float:
        """Accuracy on the test series; the penalty is chosen on the training series."""
        score = np.zeros(len(PENALTIES))
        for f, readouts in enumerate(self.held_out):
            there = self.folds == f
            states, y = self.train[there], self.given.y[there]
            score += [accuracy(readout, states, y, noise) for readout in readouts]
        chosen = self.readouts[int(np.argmax(score))]
        return accuracy(chosen, self.test, self.given.y_test, noise)


def random_node(n_neurons: int, seed: int) -> Any:
    """A node of reservoirpy with its own W, and a dense normal Win of unit norm."""
    from reservoirpy.nodes import Reservoir

    u = np.random.default_rng([seed, n_neurons]).standard_normal((n_neurons, 1))
    return Reservoir(
        n_neurons,
        lr=LEAK,
        sr=RADIUS,
        rc_connectivity=CONNECTIVITY,
        Win=u / np.linalg.norm(u),
        seed=seed,
    )


def last_states(
    node: Any, network: Any, given: Task
) -> tuple[np.ndarray, np.ndarray, float]:
    """States at the last step, by reservoirpy for training and some test series.

    greenfold runs the other test series; the third result is the difference of the two
    where both ran.
    """
    from greenfold import Dynamics

    def by_reservoirpy(X: np.ndarray) -> np.ndarray:
        found = []
        for series in X:
            if node.initialized:
                node.reset()
            found.append(np.asarray(node.run(series[:, None]))[-1])
        return np.array(found)

    dynamics = Dynamics(network, n_steps=given.X.shape[1])
    ours = [dynamics.states(X, node.Win) for X in (given.X, given.X_test)]
    theirs = by_reservoirpy(given.X), by_reservoirpy(given.X_test[:N_JUDGED])
    differ = [np.abs(ours[0] - theirs[0]), np.abs(ours[1][:N_JUDGED] - theirs[1])]
    test = np.concatenate([theirs[1], ours[1][N_JUDGED:]])
    return theirs[0], test, float(max(d.max() for d in differ))


@dataclass(frozen=True)
class Trial:
    """Nodes of one seed by the method for their Win."""

    nodes: dict[str, Judged]
    differ: float


def try_seed(n_neurons: int, seed: int, given: Task, *, exact: bool = False) -> Trial:
    """A node as drawn and as solved."""
    from greenfold import Ascent
    from greenfold.reservoirpy import network_of, solve_input

    node = random_node(n_neurons, seed)
    solve = partial(solve_input, node, given.X[:, :, None], given.y, eta=ETA)
    made = {"random": node, "solved": solve().node}
    if exact:
        made["exact"] = solve(exact=True, method=Ascent(2, 60)).node
    judged, differ = {}, 0.0
    for name, one in made.items():
        train, test, apart = last_states(one, network_of(one), given)
        judged[name] = Judged(train, test, given)
        differ = max(differ, apart)
    return Trial(judged, differ)


class Trials:
    """Several seeds, and the noise that costs their random Win `LOSS` on average."""

    def __init__(self, trials: list[Trial]) -> None:
        self.trials = trials
        self.noise = self._find_noise(1e-3, 2.0)

    def _find_noise(self, low: float, high: float) -> float:
        while high - low > 1e-3:
            middle = (low + high) / 2
            too_much = self.lost("random", middle) > LOSS
            low, high = (low, middle) if too_much else (middle, high)
        return high

    def percent(self, way: str, noise: float) -> np.ndarray:
        """Accuracy of each seed."""
        return np.array([100 * trial.nodes[way].at(noise) for trial in self.trials])

    def lost(self, way: str, noise: float) -> float:
        """Mean loss of accuracy by the noise."""
        return float((self.percent(way, 0.0) - self.percent(way, noise)).mean()) / 100

    def loss_row(self, name: str, way: str, *, target: bool = True) -> Row:
        """The loss of one method as a share of the random one's."""
        random, ours = self.lost("random", self.noise), self.lost(way, self.noise)
        share = ours / random
        return Row(
            f"{name}: accuracy that noise costs the {way} Win, share of the random Win's",
            100 * share,
            "%",
            "target ≤ 50 %" if target else "",
            share <= 0.5 if target else None,
            {
                "noise": round(self.noise, 3),
                "random_loses_points": 100 * random,
                f"{way}_loses_points": 100 * ours,
                "random_percent": self.percent("random", self.noise).round(2).tolist(),
                f"{way}_percent": self.percent(way, self.noise).round(2).tolist(),
            },
        )

    def clean_row(self, name: str, way: str) -> Row:
        """Change of accuracy by the solved Win without noise."""
        random, ours = self.percent("random", 0.0), self.percent(way, 0.0)
        change = ours - random
        return Row(
            f"{name}: without noise, {way} minus random",
            float(change.mean()),
            "points",
            "target ≥ 0",
            bool(change.mean() >= 0),
            {
                "standard_error": float(change.std(ddof=1) / np.sqrt(len(change))),
                "random_percent": random.round(2).tolist(),
                f"{way}_percent": ours.round(2).tolist(),
            },
        )


def run(rounds: int) -> Report:
    """All rows of this benchmark; nothing is timed."""
    del rounds
    given = task()
    rows, apart = [], []
    for n_neurons in SIZES:
        found = Trials([try_seed(n_neurons, seed, given) for seed in range(N_SEEDS)])
        name = f"N = {n_neurons}"
        rows += [found.loss_row(name, "solved"), found.clean_row(name, "solved")]
        apart += [trial.differ for trial in found.trials]
    rows.append(
        Row(
            "states, reservoirpy against greenfold (×10⁻¹²)",
            1e12 * max(apart),
            "",
            "target ≤ 1",
            max(apart) <= 1e-12,
            {"series": len(given.X) + N_JUDGED, "nodes": 2 * N_SEEDS * len(SIZES)},
        )
    )
    scaled = f"{len(given.X)} and {len(given.X_test)} series scaled to ‖μ‖ = 1"
    notes = [f"{given.source}, {scaled}", *_notes(N_SEEDS)]
    return Report("echo state: reservoirpy", notes, rows)


def run_saturating() -> Report:
    """The unscaled series of the archive, which drive the nodes into saturation."""
    given = task(scaled=False)
    n_neurons, n_seeds = 50, 5
    found = Trials(
        [try_seed(n_neurons, seed, given, exact=True) for seed in range(n_seeds)]
    )
    ways = ("solved", "exact")
    rows = [found.loss_row(f"N = {n_neurons}", way, target=False) for way in ways]
    rows += [found.clean_row(f"N = {n_neurons}", way) for way in ways]
    half = (given.X[given.y > 0].mean(0) - given.X[given.y < 0].mean(0)) / 2
    as_is = f"series not scaled, ‖μ‖ = {np.linalg.norm(half):.1f}"
    notes = [f"{given.source}, {as_is}", *_notes(n_seeds), "exact: through the node itself"]
    return Report("echo state: saturating", notes, rows)


def _notes(n_seeds: int) -> list[str]:
    return [
        f"reservoirpy {version('reservoirpy')}: sparse tanh nodes (connectivity "
        f"{CONNECTIVITY:g}, sr {RADIUS:g}, lr {LEAK:g}), {n_seeds} seeds, Win of unit "
        f"norm; solved: linearised and certified, η = {ETA:g}",
        "noise on every neuron at the readout, of a size that costs the random Win 5 "
        "points on average; the ridge's penalty is chosen by cross-validation with it",
        f"reservoirpy runs the training series and {N_JUDGED} test series, greenfold the "
        "other test series",
    ]


if __name__ == "__main__":
    if sys.argv[1:] != ["saturating"]:
        sys.exit(
            "say `python -m benchmarks.echo_state saturating` or "
            "`python -m benchmarks echo_state`"
        )
    report = run_saturating()
    report.show()
    write_json(SATURATING_JSON, [report])
