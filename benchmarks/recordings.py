"""Poor recordings of devices: which are refused, and how reliable a mask's interval is.

A hundred recordings of simulated linear devices of 1 to 32 inputs, with noise that leaves a
linearity of 0 to 0.99: complete, clipped, shifted in time or short. Each is processed like
in `greenfold mask`. The true response of the device judges the mask.

The interval was chosen on such devices. A second set has others: non-linear networks and
loops with a slow drive, judged by the response that a long recording without noise shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from greenfold import Device, MeasuredResponse, SampleStimuli
from greenfold.analysis import study_mask
from greenfold.datasets import DataError, synthetic_heartbeats
from greenfold.optimizers.linear import LinearProblem

from ._measure import Report, Row

N_STEPS, ETA = 8, 10.0
INPUTS = (1, 2, 4, 8, 32)
LINEARITIES = (0.0, 0.02, 0.3, 0.9, 0.99)
DEFECTS = ("none", "clipped", "shifted", "short")
#: Of the second set: kinds, inputs, strengths of the drive, samples, and of the judge.
KINDS, FEW_INPUTS, LEVELS = ("network", "loop"), (2, 4, 8), (0.1, 0.4, 1.0)
SAMPLES, N_LONG = (600, 2000, 4000), 30_000


@dataclass(frozen=True)
class Case:
    """One recording: its device, its defect, and the response G of the device."""

    name: str
    n_inputs: int
    linearity: float
    defect: str
    drive: np.ndarray
    states: np.ndarray
    G: np.ndarray


def make(n_inputs: int, linearity: float, defect: str, seed: int) -> Case:
    """A leaky network with white drive, six of its nodes read with noise."""
    rng = np.random.default_rng([n_inputs, round(100 * linearity), len(defect), seed])
    n_nodes, n_outputs = max(n_inputs, 6), 6
    W = 0.75 * np.linalg.qr(rng.standard_normal((n_nodes, n_nodes)))[0]
    into = np.eye(n_nodes)[:, :n_inputs]
    least = 2 * N_STEPS * n_inputs + N_STEPS
    n_samples = round(1.3 * least) if defect == "short" else max(2000, 20 * least)
    drive = rng.standard_normal((n_samples, n_inputs))
    states, state = np.empty((n_samples, n_outputs)), np.zeros(n_nodes)
    for t, pulse in enumerate(drive):
        state = W @ state + into @ pulse
        states[t] = state[:n_outputs]
    G = np.stack([np.linalg.matrix_power(W, k)[:n_outputs, :n_inputs] for k in range(30)])
    noise = states.std() * rng.standard_normal(states.shape)
    if linearity == 0:
        states, G = noise, 0 * G
    else:
        states = states + np.sqrt(1 / linearity - 1) * noise
    if defect == "clipped":
        states = np.clip(states, *np.quantile(states, [0.0, (0.98, 0.9)[seed % 2]], axis=0))
    if defect == "shifted":
        by = (-1, -3, 2, 60)[seed % 4]
        states = np.roll(states, by, axis=0)
        G = np.concatenate([np.zeros((max(by, 0), *G.shape[1:])), G])
    name = f"{n_inputs} inputs, linearity {linearity:g}, {defect}, {seed}"
    return Case(name, n_inputs, linearity, defect, drive, states, G[:N_STEPS][::-1])


def _slow(rng: np.random.Generator, shape: tuple[int, int], memory: float) -> np.ndarray:
    """Noise of unit variance that keeps a share of its last value."""
    made, last = np.empty(shape), np.zeros(shape[1])
    for t, new in enumerate(rng.standard_normal(shape)):
        last = made[t] = memory * last + np.sqrt(1 - memory**2) * new
    return made


def make_other(kind: str, n_inputs: int, level: float, seed: int) -> Case:
    """An echo state network or a loop of its outputs, with tanh and a slow drive."""
    rng = np.random.default_rng([KINDS.index(kind), n_inputs, round(10 * level), seed])
    n_nodes, leak = (30, 0.7) if kind == "network" else (6, 1.0)
    W = rng.normal(0, 0.7 / np.sqrt(n_nodes), (n_nodes, n_nodes))
    before = rng.normal(0, 0.2, (n_nodes, n_nodes)) if kind == "loop" else 0 * W
    into = rng.normal(0, level / np.sqrt(n_inputs), (n_nodes, n_inputs))
    memory, noise = rng.choice([0.0, 0.5, 0.8]), rng.choice([0.02, 0.3, 1.0])

    def answer(drive: np.ndarray) -> np.ndarray:
        path = np.zeros((len(drive) + 2, n_nodes))
        for t, pulse in enumerate(drive, start=2):
            turned = np.tanh(W @ path[t - 1] + before @ path[t - 2] + into @ pulse)
            path[t] = leak * turned + (1 - leak) * path[t - 1]
        return path[2:, :6]

    drive = _slow(rng, (int(rng.choice(SAMPLES)), n_inputs), memory)
    states = answer(drive)
    states += noise * states.std() * _slow(rng, states.shape, rng.choice([0.0, 0.9]))
    long = _slow(np.random.default_rng(99), (N_LONG, n_inputs), memory)
    shown = MeasuredResponse.fit(long, answer(long), n_steps=N_STEPS).fitted
    assert shown is not None
    name = f"{kind}, {n_inputs} inputs, drive {level:g}, {seed}"
    return Case(name, n_inputs, 1.0, kind, drive, states, shown.whole)


def judge(case: Case, stimuli: SampleStimuli, quick: bool = False) -> dict[str, Any]:
    """Output of `greenfold mask` for a recording, and κ of its mask on the device."""
    kind = Device(mask="sign" if case.n_inputs % 4 else None)
    told = {"case": case.name, "linearity": case.linearity, "defect": case.defect}
    try:
        device = MeasuredResponse.fit(case.drive, case.states, n_steps=N_STEPS)
    except DataError as error:
        return {**told, "refused": str(error)}
    few = 10 if quick else 20
    study = study_mask(
        device, stimuli, ETA, device=kind, n_draws=5, n_replicates=few, rng=0
    )
    best, interval = study.projections, study.interval
    truth = LinearProblem(MeasuredResponse(case.G), stimuli, ETA)
    u = best.u.reshape(case.n_inputs, -1)
    assert device.fitted is not None
    return {
        **told,
        "refused": None,
        "found": device.fitted.linearity,
        "delivered": truth.margin(u, best.v).value,
        "expected": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "bound": best.upper_bound,
        "random": study.random_margin,
        "gain": study.gain,
    }


def judged(seeds: int = 1, quick: bool = False, other: bool = False) -> list[Any]:
    """All recordings: every size, linearity and defect; or those of ``other`` devices."""
    X, y = synthetic_heartbeats(200, n_steps=N_STEPS, rng=0)
    stimuli = SampleStimuli(X, y)
    if other:
        kinds = [(k, n, level) for k in KINDS for n in FEW_INPUTS for level in LEVELS]
        made = (make_other(*one, seed) for seed in range(2 * seeds) for one in kinds)
        return [judge(case, stimuli, quick) for case in made]
    cases = (
        make(n, linearity, defect, seed + k)
        for seed in range(seeds)
        for k, n in enumerate(INPUTS)
        for linearity in LINEARITIES
        for defect in DEFECTS
    )
    return [judge(case, stimuli, quick) for case in cases]


def run(rounds: int) -> Report:
    """The hundred recordings, once; nothing is timed."""
    del rounds
    rows = judged()
    kept = [row for row in rows if row["refused"] is None]
    over = [row for row in kept if row["expected"] > row["bound"]]
    inside = [row for row in kept if row["low"] <= row["delivered"] <= row["high"]]
    chance = [row for row in rows if row["linearity"] == 0]
    written = [row["case"] for row in chance if row["refused"] is None]
    gains = [row for row in kept if row["gain"] is not None and row["low"] < row["random"]]
    refused = {
        defect: sum(row["defect"] == defect and row["refused"] is not None for row in rows)
        for defect in DEFECTS
    }
    table = [
        Row(
            "promises above the bound",
            float(len(over)),
            f"of {len(kept)}",
            "none",
            not over,
            {"gains that the interval does not support": len(gains)},
        ),
        Row(
            "delivered κ inside the 95 % interval, where a mask is written",
            100 * len(inside) / len(kept),
            "%",
            "≥ 95 %",
            len(inside) >= 0.95 * len(kept),
            {"inside": len(inside), "written": len(kept)},
        ),
        Row(
            "recordings without an answer that are refused",
            100 * (1 - len(written) / len(chance)),
            "%",
            "all",
            not written,
            {"of": len(chance), "refused of 25 by defect": refused},
        ),
    ]
    told = [row for row in judged(other=True) if row["refused"] is None]
    inside = [row for row in told if row["low"] <= row["delivered"] <= row["high"]]
    below = sum(bool(row["delivered"] < row["low"]) for row in told)
    table.append(
        Row(
            "delivered κ inside it, non-linear devices with a slow drive",
            100 * len(inside) / len(told),
            "%",
            "≥ 95 %",
            len(inside) >= 0.95 * len(told),
            {"inside": len(inside), "written": len(told), "below": below},
        )
    )
    sizes = f"{INPUTS[0]} to {INPUTS[-1]} inputs, linearity 0 to 0.99"
    notes = [f"{len(rows)} recordings of simulated devices: {sizes}; {', '.join(DEFECTS)}"]
    return Report("recordings: poor quality", notes, table)
