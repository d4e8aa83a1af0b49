"""Masks refined on simulated devices: κ on new series, for a budget of passes.

A mask is solved on a recording, and driven as strongly as suits it best: with a weaker
drive, noise costs more, and with a stronger one, curvature. `_refinement.refine` then
plays the training series with other masks. Judged are κ on new series, with noise and
a readout of the training series, and beside it what a search without noise and with
gradients by finite differences reaches on the training series.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from greenfold import MeasuredResponse, SampleStimuli, optimize
from greenfold.datasets import synthetic_heartbeats
from greenfold.math.margins import gaussian_soft_margin, state_moments
from greenfold.math.sphere import maximize_on_sphere

from ._measure import Report, Row
from ._refinement import refine
from .devices import KINDS, STRONG, TASK_STEPS, Simulated

#: The kinds of devices, their number of nodes, and the drive of the recording.
CHOSEN = (KINDS[0], KINDS[2], KINDS[1])
NODES, RECORDED = 20, 0.3
#: Noise of the readings, in deviations of the recorded outputs.
NOISE = 0.3
ETA, N_SERIES, N_JUDGED = 10.0, 400, 8
PASSES, SEEDS = (50, 200), 2
#: Strengths of the drive to choose from, relative to a strong drive.
STRENGTHS = np.geomspace(0.1, 2, 10)


class Played:
    """A device with a mask solved on its recording, driven at its best strength."""

    def __init__(self, kind: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.device = device = Simulated.make(kind, "noise", seed, NODES)
        X, y = synthetic_heartbeats(N_SERIES, n_steps=TASK_STEPS, rng=3 + seed)
        new, y_new = synthetic_heartbeats(2000, n_steps=TASK_STEPS, rng=100 + seed)
        self.stimuli = stimuli = SampleStimuli(X, y)
        self.series, self.new = (stimuli.transform(one)[..., None] for one in (X, new))
        self.signs, self.new_signs = (
            np.where(one == stimuli.classes[1], 1, -1) for one in (y, y_new)
        )
        strong = STRONG[kind]
        drive = 3**0.5 * RECORDED * strong * self.rng.uniform(-1, 1, (4000, NODES))
        clean = device.clean(drive)
        self.noise = NOISE * float(clean.std())
        self.response = MeasuredResponse.fit(drive, self.noisy(clean), n_steps=TASK_STEPS)
        self.solved = optimize(self.response, stimuli, ETA)
        unit = strong * NODES**0.5 / float(self.series.std())
        found = [self.judged(self.solved.u, unit * one) for one in STRENGTHS]
        self.strength = unit * float(STRENGTHS[int(np.argmax(found))])

    def noisy(self, states: np.ndarray) -> np.ndarray:
        """States as they are read."""
        return states + self.noise * self.rng.standard_normal(states.shape)

    def measure(self, u: np.ndarray) -> np.ndarray:
        """One pass of the training series."""
        return self.noisy(self.device.ends(self.strength * self.series * u))

    def readout(self, states: np.ndarray) -> tuple[np.ndarray, float]:
        """The best readout of training states, and κ."""
        M, Sigma = moments(states, self.signs)
        v = maximize_on_sphere(M, ETA * Sigma).v
        return v, gaussian_soft_margin(M, Sigma, v, ETA).value

    def judged(self, u: np.ndarray, strength: float | None = None) -> float:
        """κ on new series, averaged over readouts of noisy training series."""
        drive, found = self.strength if strength is None else strength, []
        new = self.device.ends(drive * self.new * u) / drive
        for _ in range(N_JUDGED):
            v, _ = self.readout(
                self.noisy(self.device.ends(drive * self.series * u)) / drive
            )
            margin = gaussian_soft_margin(*moments(new, self.new_signs), v, ETA).value
            found.append(margin - ETA / 2 * (self.noise / drive) ** 2)
        return float(np.mean(found))

    def ceiling(self) -> np.ndarray:
        """The mask of a search that knows the device."""

        def lost(x: np.ndarray) -> float:
            driven = self.strength * self.series * (x / np.linalg.norm(x))
            return -self.readout(self.device.ends(driven) / self.strength)[1]

        x = minimize(lost, self.solved.u, method="L-BFGS-B", options={"maxiter": 60}).x
        return x / np.linalg.norm(x)


def moments(states: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of labelled states about the middle of the classes."""
    middle = (states[signs > 0].mean(0) + states[signs < 0].mean(0)) / 2
    weights = np.where(signs > 0, 1 / (signs > 0).sum(), 1 / (signs < 0).sum())
    return state_moments(states - middle, signs, weights)


def gains(kind: str, seed: int, budgets: tuple[int, ...]) -> dict[Any, float]:
    """Percent gained in κ over the solved mask, by budget, and by the ceiling."""
    one = Played(kind, seed)
    before = one.judged(one.solved.u)
    own = one.response, one.stimuli
    found: dict[Any, np.ndarray] = {
        budget: refine(one.solved, one.measure, *own, budget, seed) for budget in budgets
    }
    found["ceiling"] = one.ceiling()
    return {name: 100 * (one.judged(u) / before - 1) for name, u in found.items()}


def run(rounds: int) -> Report:
    """Two seeds of three devices."""
    del rounds
    rows = []
    for kind in CHOSEN:
        found = [gains(kind, seed, PASSES) for seed in range(SEEDS)]
        for budget in (*PASSES, "ceiling"):
            each = [one[budget] for one in found]
            name = f"{kind}: {budget} passes" if budget != "ceiling" else f"{kind}: ceiling"
            judged = budget == PASSES[1]
            value = float(np.mean(each))
            detail = {f"seed {seed}": gain for seed, gain in enumerate(each)}
            target, met = ("≥ 10 %", value >= 10) if judged else ("", None)
            rows.append(Row(name, value, "% of κ gained", target, met, detail))
    notes = [
        f"{NODES} nodes, {N_SERIES} series, noise of {NOISE:g} deviations of the recording",
        "over the solved mask at its best drive, on new series",
    ]
    return Report("refine: masks refined on the device", notes, rows)
