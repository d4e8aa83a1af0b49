"""Normal networks to 10⁵ neurons: the proven joint optimum, and how time grows with N.

ECG5000, classes 1 and 2, K = 140, on rings and on damped oscillators with decay times and
frequencies drawn log-uniformly. Every solve runs in a separate process, which gives its
peak memory.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

from greenfold import Reservoir, SampleStimuli, Unfolding, optimize, unfold
from greenfold.datasets import ecg5000_paper

from ._measure import MIB, Report, Row, in_fresh_process, resident_bytes

SIZES = (1000, 10_000, 100_000)
KINDS = ("ring", "oscillators")
N_STEPS, DT = 140, 10 / 140
#: Target of the gap and of the exponent.
GAP, EXPONENT = 1e-6, 1.1


def made(kind: str, n: int) -> Unfolding:
    """A network of n neurons."""
    if kind == "ring":
        return unfold(Reservoir.cycle(n), n_steps=N_STEPS, dt=DT)
    rng = np.random.default_rng(0)
    T, omega = np.exp(rng.uniform(np.log([0.2, 0.1]), np.log([10, 30]), (n // 2, 2))).T
    return unfold(Reservoir.oscillators(T, omega), n_steps=N_STEPS, dt=DT)


def coordinates(kind: str, vector: np.ndarray) -> np.ndarray:
    """A vector by modes: the waves around a ring, or the pairs of neurons."""
    if kind == "ring":
        return np.fft.rfft(vector, norm="ortho")
    return vector[::2] + 1j * vector[1::2]


def solved(kind: str, n: int, rounds: int) -> dict[str, Any]:
    """Median time of a solve, starting from the network, with its result."""
    split = ecg5000_paper()
    stimuli = SampleStimuli(split.X_train, split.y_train)
    optimize(made(kind, 100), stimuli)  # imports and caches
    before, seconds = resident_bytes(), []
    system = best = None
    for _ in range(rounds):
        system = best = None  # one at a time
        start = time.perf_counter()
        system = made(kind, n)
        best = optimize(system, stimuli)
        seconds.append(time.perf_counter() - start)
    assert best is not None
    used = np.abs(coordinates(kind, best.u) * coordinates(kind, best.v)) > 1e-9
    found = {"seconds": median(seconds), "gap": best.gap, "kappa": best.soft_margin}
    found |= {"status": best.status, "modes_used": int(used.sum()), "passes": best.n_iter}
    return {**found, "before_bytes": before}


def run(rounds: int) -> Report:
    """Time, memory and growth of every kind."""
    rows = []
    for kind in KINDS:
        taken = []
        for n in SIZES:
            detail = in_fresh_process(solved, kind=kind, n=n, rounds=rounds)
            taken.append(detail["seconds"])
            detail["mib"] = (detail.pop("peak_bytes") - detail.pop("before_bytes")) / MIB
            title, proven = f"{kind}, N = {n:,}: solved and proven", detail["gap"] <= GAP
            rows.append(
                Row(title, detail.pop("seconds"), "s", "gap ≤ 1e-6", proven, detail)
            )
        slopes = np.diff(np.log(taken)) / np.diff(np.log(SIZES))
        detail = {"each_decade": [round(float(slope), 2) for slope in slopes]}
        title, met = f"{kind}: exponent of the last decade", bool(slopes[-1] <= EXPONENT)
        rows.append(Row(title, float(slopes[-1]), "", f"≤ {EXPONENT}", met, detail))
    notes = [
        f"ECG5000, classes 1 and 2, K = {N_STEPS}, η = 10; median of {rounds} solves",
        "memory is the peak above the process before it, MiB; dense weights of 100,000 "
        "neurons would take 76,000 MiB",
    ]
    return Report("normal networks: the joint optimum, proven", notes, rows)
