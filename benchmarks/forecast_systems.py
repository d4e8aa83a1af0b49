"""All chaotic systems of dysts that can be integrated, with the defaults of every model.

dysts gives the equations, a point on the attractor, the period and the Lyapunov exponent;
``python -m benchmarks.series`` integrates them, 30 samples per period, and says which it
leaves out. Each system has one trajectory. A seed of the network trains on one of three
windows of it, and all are judged on what follows.

The peers: the rule of arXiv 2602.11069, drawn weights with a symmetric W of radius 0.1, and
a quadratic next-generation reservoir of two delays. reservoirpy, with a random search of as
many evaluations as solving takes, runs on Lorenz and Mackey–Glass.
"""

from __future__ import annotations

import importlib.util
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import series
from ._cells import Cell, Found
from ._forecast_peers import (
    NextGeneration,
    invariant_subspace,
    reservoirpy_searched,
    symmetric,
)
from ._measure import Report, Row
from .forecast import (
    BY_NAME,
    EVALUATIONS,
    TASKS,
    TRAIN,
    forecaster,
    valid_steps,
    valid_time,
)

N_NEURONS, N_SEEDS = 100, 3
#: Samples between the windows of two seeds, forecasts to judge, and their longest length.
SHIFT, N_STARTS, HORIZON = 500, 100, 600
FEWEST, LEAST_SHARE = 110, 80.0
#: Turn of each seed among all benchmarks of a run; the last comes after all else.
TURNS = (0, 1, 3)
MODELS = ("solved", "drawn", "rule of 2602.11069", "symmetric W", "quadratic delays")


def windows(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A window to train, and the samples to judge."""
    every = series.load(f"dysts/{name}")
    start = SHIFT * seed
    after = SHIFT * (N_SEEDS - 1) + TRAIN + SHIFT
    return every[start : start + TRAIN], every[after:]


def _model(kind: str, n_channels: int, seed: int) -> Any:
    if kind == "quadratic delays":
        return NextGeneration()
    if kind == "symmetric W":
        return symmetric(N_NEURONS, seed)
    if kind == "rule of 2602.11069":
        return invariant_subspace(N_NEURONS, n_channels, seed)
    weights = "random" if kind == "drawn" else "solved"
    return forecaster(N_NEURONS, seed, input_weights=weights)


def on_system(name: str, seed: int) -> dict[str, Any]:
    """Valid times of all models in Lyapunov times, and seconds of the solved fit."""
    train, fresh = windows(name, seed)
    lyapunov = float(series.load(f"lyapunov/{name}"))
    found: dict[str, Any] = {}
    for kind in MODELS:
        model = _model(kind, train.shape[1], seed)
        started = time.perf_counter()
        model.fit(train)
        if kind == "solved":
            found["solved_s"] = time.perf_counter() - started
        if kind in MODELS[:2]:
            found[f"{kind}_weights"] = model.chosen_.weights
        if isinstance(model, NextGeneration):
            steps = model.valid(fresh, fresh, HORIZON, N_STARTS)
        else:
            steps = valid_steps(model, fresh, fresh, HORIZON, N_STARTS)
        found[kind] = steps / lyapunov
        found[f"{kind}_full"] = steps >= HORIZON
    return found


def beside_reservoirpy(name: str, seed: int) -> dict[str, Any]:
    """Valid times on Lorenz or Mackey–Glass."""
    task = BY_NAME[name]
    train, seen, truth = task.series(seed, 0.0)
    models = {
        "solved": forecaster(N_NEURONS, seed).fit(train),
        "reservoirpy_searched": reservoirpy_searched(N_NEURONS, seed, train, EVALUATIONS),
        "next_generation": NextGeneration().fit(train),
    }
    return {kind: valid_time(task, one, seen, truth) for kind, one in models.items()}


def cells(found: Found) -> Iterator[Cell]:
    """Three seeds of every system; reservoirpy, where it is installed."""
    del found
    for seed in range(N_SEEDS):
        for key in series.names("dysts"):
            name = key.partition("/")[2]
            yield Cell(f"dysts|{name}|{seed}", on_system, (name, seed), TURNS[seed])
    if importlib.util.find_spec("reservoirpy") is None:
        return
    for seed in range(N_SEEDS):
        for task in TASKS:
            given = task.name, seed
            yield Cell(f"reservoirpy|{task.name}|{seed}", beside_reservoirpy, given, 20)


def _ties(found: Found) -> dict[str, int]:
    """Systems on which solved and drawn do the same in all seeds, by the reason."""
    mine: dict[str, list[dict[str, Any]]] = {}
    for key, one in found.items():
        kind, name, _ = key.split("|")
        if kind == "dysts":
            mine.setdefault(name, []).append(one)
    counts: dict[str, int] = Counter()
    for some in mine.values():
        if any(one["solved"] != one["drawn"] for one in some):
            continue
        if all(one["solved_full"] for one in some):
            counts["longest forecast"] += 1
        elif all(one["solved_weights"] == "none" for one in some):
            counts["no network"] += 1
        elif all(one["solved_weights"] in ("none", "drawn") for one in some):
            counts["drawn chosen"] += 1
        else:
            counts["else"] += 1
    return counts


def _means(found: Found, part: str) -> dict[str, dict[str, float]]:
    """Mean over the seeds, by system and model."""
    by_name: dict[str, list[dict[str, float]]] = {}
    for key, one in found.items():
        kind, name, _ = key.split("|")
        if kind == part:
            by_name.setdefault(name, []).append(one)
    return {
        name: {
            key: float(np.mean([one[key] for one in some]))
            for key, value in some[0].items()
            if isinstance(value, float)
        }
        for name, some in sorted(by_name.items())
    }


def report(found: Found) -> Report:
    """Solved beside every other model, and the peers."""
    table = _means(found, "dysts")
    rows = []
    for other in MODELS[1:]:
        pairs = [(one["solved"], one[other]) for one in table.values()]
        if not pairs:
            continue
        above = 100 * float(np.mean([a > b for a, b in pairs]))
        ratio = float(np.median([a / max(b, 1e-3) for a, b in pairs]))
        detail: dict[str, Any] = {"median_ratio": ratio, "systems": len(pairs)}
        first = other == "drawn"
        if first:
            detail["seconds to fit, median"] = float(
                np.median([one["solved_s"] for one in table.values()])
            )
            detail["columns"] = ", ".join(MODELS)
            detail["valid_times"] = {
                name: [round(one[kind], 3) for kind in MODELS]
                for name, one in table.items()
            }
        rows.append(
            Row(
                f"{len(pairs)} systems of dysts, N = {N_NEURONS}, defaults: solved above "
                f"{other}, median ratio {ratio:.2f}",
                above,
                "% of systems",
                f"≥ {LEAST_SHARE:g}, ≥ {FEWEST} systems" if first else "",
                (above >= LEAST_SHARE and len(pairs) >= FEWEST) if first else None,
                detail,
            )
        )
    if table:
        below = sum(one["solved"] < one["drawn"] for one in table.values())
        told = {f"alike: {why}": count for why, count in _ties(found).items() if count}
        what = "systems where solved is below drawn"
        rows.append(Row(what, float(below), f"of {len(table)}", "", None, told))
    best = [max(MODELS, key=lambda kind: one[kind]) for one in table.values()]
    rows += [
        Row(
            f"median valid time of the {len(table)} systems, {kind}",
            float(np.median([one[kind] for one in table.values()])),
            "Lyapunov times",
            "",
            None,
            {"best of all on": best.count(kind)},
        )
        for kind in MODELS
        if table
    ]
    for name, one in _means(found, "reservoirpy").items():
        rows.append(
            Row(
                f"{name}, N = {N_NEURONS}: valid time solved over reservoirpy's with a "
                "search",
                one["solved"] / one["reservoirpy_searched"],
                "times",
                "",
                None,
                {key: round(value, 2) for key, value in one.items()},
            )
        )
    notes = [
        f"up to {N_SEEDS} seeds, {TRAIN} samples to train, {series.PER_PERIOD} per period; "
        f"{N_STARTS} forecasts of at most {HORIZON} samples on what follows",
        "rule of 2602.11069: input weights from an invariant subspace of a symmetric W of "
        "radius 0.1, as far as its abstract and a summary tell; symmetric W: drawn input "
        "weights, radius 0.1; quadratic delays: two samples, all products of two",
        f"reservoirpy: the best of {EVALUATIONS} random settings",
        "valid times are in Lyapunov times; solved and drawn are alike where both stay "
        "valid for the longest forecast, and where the fit of solved weights keeps a ridge "
        "on delays (no network) or drawn weights, because these forecast the unseen fifth "
        "as well over 300 samples",
    ]
    return Report("forecast: all systems of dysts, and peers", notes, rows)
