"""Three classes and an equaliser on a recorded device, with masks of ±1 and four levels.

The device is simulated and known by its recording alone. Beside the share of the proven
bound that a mask reaches on the estimated response stand those of twenty random masks of
the same kind, and what ridge readouts of the states reach on new series that the device
plays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greenfold import Device, MeasuredResponse, RegressionTask, optimize
from greenfold.analysis import mask_bound

from ._measure import Report, Row
from .devices import KINDS, TASK_STEPS, WEAK, Simulated

KIND, NODES, NOISE = KINDS[2], 16, 0.05
MASKS = {"±1": "sign", "four levels": "levels=4"}
N_SERIES, N_DRAWS, DELAY = 2000, 20, 4
#: Symbols of the equaliser's channel, its taps from two symbols ahead to seven back, and
#: its curvature (Jaeger and Haas, Science 2004).
SYMBOLS = np.array([-3.0, -1.0, 1.0, 3.0])
TAPS = np.array([0.08, -0.12, 1.0, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01])


@dataclass(frozen=True)
class Case:
    """Series, their targets, and how a prediction is judged."""

    name: str
    X: np.ndarray
    y: np.ndarray

    def right(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        """Percentage of the classes, or symbols, that are predicted right."""
        if truth.shape[1] > 1:
            return 100 * float((predicted.argmax(1) == truth.argmax(1)).mean())
        nearest = SYMBOLS[np.abs(predicted - SYMBOLS).argmin(1)]
        return 100 * float((nearest == truth[:, 0]).mean())


def three_classes(rng: np.random.Generator) -> Case:
    """Bumps at three places, in noise that moves slowly."""
    n, t = 2 * N_SERIES, np.arange(TASK_STEPS)
    labels = rng.integers(3, size=n)
    bumps = np.exp(-((t - np.array([[3.0], [5.0], [7.0]])) ** 2) / 4)
    noise = np.cumsum(rng.standard_normal((n, TASK_STEPS)), axis=1)
    return Case("three classes", bumps[labels] + 0.3 * noise, np.eye(3)[labels])


def equaliser(rng: np.random.Generator) -> Case:
    """The symbol sent to a channel that mixes and bends, from what was received."""
    n = 2 * N_SERIES
    sent = rng.choice(SYMBOLS, n + TASK_STEPS + len(TAPS))
    mixed = np.convolve(sent, TAPS, mode="valid")  # sample i mixes sent[i : i + 10]
    received = mixed + 0.036 * mixed**2 - 0.011 * mixed**3
    received += 0.1 * rng.standard_normal(len(received))
    X = np.lib.stride_tricks.sliding_window_view(received, TASK_STEPS)[:n]
    # The tap of 1 belongs to the symbol two behind the newest one.
    newest = np.arange(n) + TASK_STEPS + len(TAPS) - 2
    return Case("equaliser", X, sent[newest - 2 - DELAY][:, None])


def rows_of(case: Case, response: MeasuredResponse, device: Simulated) -> list[Row]:
    """One row per kind of mask."""
    half = N_SERIES
    unit = case.X[:half].std() * TASK_STEPS**0.5
    X, y = (case.X - case.X[:half].mean(0)) / unit, case.y
    ridge = 0.01 * float((response.G**2).sum(0).mean()) / NODES
    task = RegressionTask.from_cases(X[:half], y[:half], ridge=ridge)
    strength = device.strength / X.std() * NODES**0.5

    def judged(u: np.ndarray) -> float:
        rng = np.random.default_rng(7)
        ends = device.ends(strength * X[..., None] * u.ravel())
        ends = (ends + NOISE * device.size * rng.standard_normal(ends.shape)) / strength
        F = np.column_stack([ends, np.ones(len(ends))])
        gram = F[:half].T @ F[:half]
        gram += 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
        predicted = F[half:] @ np.linalg.solve(gram, F[:half].T @ y[:half])
        return case.right(predicted, y[half:])

    rows = []
    for name, kind in MASKS.items():
        hardware, rng = Device(mask=kind), np.random.default_rng(1)
        best = optimize(response, task, device=hardware, rng=0)
        bound = best.upper_bound  # of all masks: levels with signs have no own bound
        if kind == "sign":
            bound = mask_bound(response, task, best, hardware)
        assert bound is not None
        assert hardware.mask is not None
        masks = [hardware.mask.draw((NODES, 1), rng) for _ in range(N_DRAWS)]
        masks = [u / np.linalg.norm(u) for u in masks]
        gains = np.array([optimize(response, task, u=u).gain for u in masks])
        right = np.array([judged(u) for u in masks])
        broken = max(best.gain, float(gains.max())) > bound * (1 + 1e-9)
        detail = {
            "random masks, mean": 100 * float(gains.mean()) / bound,
            "random masks, best": 100 * float(gains.max()) / bound,
            "right on new series": judged(best.u),
            "right, random mean": float(right.mean()),
            "right, random best": float(right.max()),
            "bound broken": "yes" if broken else "no",
        }
        share = 100 * best.gain / bound
        told = f"{case.name}, {name}"
        rows.append(Row(told, share, "% of the bound", "not broken", not broken, detail))
    return rows


def run(rounds: int) -> Report:
    """Both tasks with both masks; nothing is timed."""
    del rounds
    device = Simulated.make(KIND, "noise", 0, NODES)
    drive, rng = device.first_drive(0, 6000), np.random.default_rng(2)
    clean = device.clean(drive)
    states = clean + NOISE * device.size * rng.standard_normal(clean.shape)
    response = MeasuredResponse.fit(drive, states, n_steps=TASK_STEPS)
    cases = [three_classes(rng), equaliser(rng)]
    rows = [row for case in cases for row in rows_of(case, response, device)]
    notes = [
        f"{KIND} of {NODES} nodes, drive {WEAK[KIND]:g}, noise {NOISE:.0%} of the outputs",
        f"{N_DRAWS} random masks of each kind; percentages of classes or symbols that are "
        "right on new series, with ridge readouts of the noisy states",
    ]
    return Report("devices: several classes and numbers", notes, rows)
