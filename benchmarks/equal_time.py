"""Solved N = 300 beside drawn N = 1000: both with settings of their own, and their times.

Spectral radius, input scale, leak and bias scale are searched for each kind: the defaults
and seven random settings, the same for both, on another seed of network and series. All
fits of a seed are timed one after the other in one process with one BLAS thread. Smaller
solved networks, in the setting of the large one, show what takes the time of the drawn one.
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
#: Input weights and size by kind; the setting of the first two is searched.
KINDS = {
    "solved": ("solved", 300),
    "drawn": ("random", 1000),
    "solved N = 200": ("solved", 200),
    "solved N = 150": ("solved", 150),
}
BOTH = ("solved", "drawn")
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
    weights, size = KINDS[kind]
    model = forecaster(size, seed, input_weights=weights, **setting)
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    return {"valid": valid_time(task, model, seen, truth, N_STARTS), "seconds": seconds}


def paired(name: str, seed: int, chosen: dict[str, dict[str, float]]) -> dict[str, Any]:
    """All kinds, each with its own setting, or that of the large solved network."""
    return {
        kind: measured(kind, name, seed, chosen.get(kind, chosen["solved"]))
        for kind in KINDS
    }


def best_settings(found: Found, name: str) -> dict[str, dict[str, float]] | None:
    """The best setting of each kind, once all are there."""
    tried, chosen = settings(), {}
    for kind in BOTH:
        keys = [f"search {kind}|{name}|{place}" for place in range(N_SETTINGS)]
        if not all(key in found for key in keys):
            return None
        valid = [found[key]["valid"] for key in keys]
        chosen[kind] = tried[int(np.argmax(valid))]
    return chosen


def cells(found: Found) -> Iterator[Cell]:
    """The search, then five seeds with what it found."""
    for task in TASKS:
        for kind in BOTH:
            for place, setting in enumerate(settings()):
                given = kind, task.name, SEARCHED, setting
                yield Cell(f"search {kind}|{task.name}|{place}", measured, given)
        chosen = best_settings(found, task.name)
        if chosen is not None:
            for seed in range(N_SEEDS):
                given = task.name, seed, chosen
                yield Cell(f"equal|{task.name}|{seed}", paired, given, seed)


def report(found: Found) -> Report:
    """One row per system."""
    rows = []
    for task in TASKS:
        mine = [one for k, one in found.items() if k.startswith(f"equal|{task.name}|")]
        chosen = best_settings(found, task.name)
        if not mine or chosen is None:
            continue
        valid = {kind: np.array([one[kind]["valid"] for one in mine]) for kind in KINDS}
        seconds = {
            kind: float(np.median([one[kind]["seconds"] for one in mine])) for kind in KINDS
        }
        drawn = float(valid["drawn"].mean())
        for kind in KINDS:
            if kind == "drawn":
                continue
            solved, apart = float(valid[kind].mean()), kind != "solved"
            beside: dict[str, Any] = {
                one: valid[one].round(3).tolist() for one in (kind, "drawn")
            }
            beside |= {f"{k}_s": round(seconds[k], 2) for k in (kind, "drawn")}
            beside["time over drawn's"] = round(seconds[kind] / seconds["drawn"], 2)
            if not apart:
                told = {k: str(chosen[k] or "defaults") for k in BOTH}
                beside |= {f"setting of {k}": one for k, one in told.items()}
            rows.append(
                Row(
                    f"{task.name}: valid time solved N = {KINDS[kind][1]} {solved:.2f} "
                    f"over drawn N = 1000 {drawn:.2f}, in Lyapunov times",
                    solved / drawn,
                    "times",
                    "" if apart else "> 1",
                    None if apart else solved > drawn,
                    beside,
                )
            )
    notes = [
        f"3000 samples to train, up to {N_SEEDS} seeds of network and series, {N_STARTS} "
        f"forecasts each; settings: the best of {N_SETTINGS} for each kind by valid time "
        f"on seed {SEARCHED}",
        "seconds: medians of a fit on one core, solving included, the search not",
        "N = 200 and 150: in the setting of N = 300",
    ]
    return Report("equal time: solved N = 300, drawn N = 1000", notes, rows)
