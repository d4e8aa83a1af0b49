"""Solved N = 300 beside drawn N = 1000: both with settings of their own, and their times.

Spectral radius, input scale, leak and bias scale are searched for each kind: the defaults
and seven random settings, the same for both, on another seed of network and series. Both
fits of a seed are timed one after the other in one process with one BLAS thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._cells import Cell, Found
from ._measure import Report, Row
from .forecast import BY_NAME, LORENZ, LORENZ_96, MACKEY_GLASS, forecaster, valid_time

TASKS = (LORENZ, MACKEY_GLASS, LORENZ_96)
SIZES = {"solved": 300, "drawn": 1000}
N_SEEDS, SEARCHED, N_SETTINGS, N_STARTS = 5, 100, 8, 100


def settings() -> list[dict[str, float]]:
    """The defaults, and random settings."""
    rng = np.random.default_rng(37)

    def between(low: float, high: float) -> float:
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))), 3)

    return [
        {},
        *(
            {
                "spectral_radius": between(0.1, 1.3),
                "input_scale": between(0.05, 0.6),
                "leak": between(0.25, 1.0),
                "bias_scale": between(0.3, 1.5),
            }
            for _ in range(N_SETTINGS - 1)
        ),
    ]


def measured(kind: str, name: str, seed: int, setting: dict[str, float]) -> dict[str, Any]:
    """Valid time in Lyapunov times, and seconds to fit."""
    task = BY_NAME[name]
    train, seen, truth = task.series(seed, 0.0)
    weights = {"solved": "solved", "drawn": "random"}[kind]
    model = forecaster(SIZES[kind], seed, input_weights=weights, **setting)
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    return {"valid": valid_time(task, model, seen, truth, N_STARTS), "seconds": seconds}


def paired(name: str, seed: int, chosen: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Both kinds, each with its own setting."""
    return {kind: measured(kind, name, seed, chosen[kind]) for kind in SIZES}


def best_settings(found: Found, name: str) -> dict[str, dict[str, float]] | None:
    """The best setting of each kind, once all are there."""
    tried, chosen = settings(), {}
    for kind in SIZES:
        keys = [f"search {kind}|{name}|{place}" for place in range(N_SETTINGS)]
        if not all(key in found for key in keys):
            return None
        valid = [found[key]["valid"] for key in keys]
        chosen[kind] = tried[int(np.argmax(valid))]
    return chosen


def cells(found: Found) -> Iterator[Cell]:
    """The search, then five seeds with what it found."""
    for task in TASKS:
        for kind in SIZES:
            for place, setting in enumerate(settings()):
                given = kind, task.name, SEARCHED, setting
                yield Cell(f"search {kind}|{task.name}|{place}", measured, given)
        chosen = best_settings(found, task.name)
        if chosen is not None:
            for seed in range(N_SEEDS):
                given = task.name, seed, chosen
                yield Cell(f"equal|{task.name}|{seed}", paired, given, 2 * seed)


def report(found: Found) -> Report:
    """One row per system."""
    rows = []
    for task in TASKS:
        mine = [one for k, one in found.items() if k.startswith(f"equal|{task.name}|")]
        chosen = best_settings(found, task.name)
        if not mine or chosen is None:
            continue
        valid = {kind: np.array([one[kind]["valid"] for one in mine]) for kind in SIZES}
        seconds = {
            kind: np.median([one[kind]["seconds"] for one in mine]) for kind in SIZES
        }
        solved, drawn = (float(valid[kind].mean()) for kind in SIZES)
        rows.append(
            Row(
                f"{task.name}: valid time solved N = 300 {solved:.2f} over drawn N = 1000 "
                f"{drawn:.2f}, in Lyapunov times",
                solved / drawn,
                "times",
                "> 1",
                solved > drawn,
                {
                    **{kind: one.round(3).tolist() for kind, one in valid.items()},
                    **{f"{kind}_s": round(float(one), 2) for kind, one in seconds.items()},
                    **{f"setting of {k}": str(chosen[k] or "defaults") for k in SIZES},
                },
            )
        )
    notes = [
        f"3000 samples to train, up to {N_SEEDS} seeds of network and series, {N_STARTS} "
        f"forecasts each; settings: the best of {N_SETTINGS} for each kind by valid time "
        f"on seed {SEARCHED}",
        "seconds: medians of a fit on one core, solving included, the search not",
    ]
    return Report("equal time: solved N = 300, drawn N = 1000", notes, rows)
