"""Cost of the non-linear fit, and its growth."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from greenfold import Gain, Reservoir, SampleStimuli, unfold
from greenfold.optimizers.nonlinear import NonlinearProblem

from ._measure import MIB, Row, alternating_seconds, in_fresh_process
from ._nonlinear_problems import ALPHA, DURATION, ETA, TAU, G, reservoir, solve

#: Sizes of the growth table: (neurons, steps, series).
GROWTH = [
    *((n, 140, 354) for n in (50, 100, 200, 500, 1000)),
    *((100, k, 354) for k in (35, 70, 280)),
    *((100, 140, n) for n in (100, 1000, 4000)),
]


def fit() -> dict[str, Any]:
    """The whole non-linear fit on the heartbeats, in a separate process."""
    from .optimum import load_heartbeats

    X, labels, _ = load_heartbeats()
    unfolding = unfold(reservoir(0), n_steps=X.shape[1], dt=DURATION / 140, order=1)
    found = solve(unfolding, SampleStimuli(X, labels))
    return {"seconds": found.wall_time, "evaluations": found.n_iter + 1}


def cost_rows(rounds: int) -> list[Row]:
    """The whole fit compared with one pass of reservoirpy over the same series."""
    from .optimum import load_heartbeats, random_unit
    from .unfolding import fastest_peers

    X, labels, _ = load_heartbeats()
    network, series = reservoir(0), np.ascontiguousarray(X)
    u = random_unit(np.random.default_rng([0, 1]))[:, 0]
    peers, _ = fastest_peers(series, network.weights, u)

    def whole() -> Any:
        unfolding = unfold(network, n_steps=X.shape[1], dt=DURATION / 140, order=1)
        return solve(unfolding, SampleStimuli(X, labels))

    jobs = {label: (run, 1) for label, run in peers.items()} | {"fit": (whole, 1)}
    times = alternating_seconds(jobs, rounds)
    peer = [min(both) for both in zip(*(times[way] for way in peers), strict=True)]
    ratios = [ours / theirs for theirs, ours in zip(peer, times["fit"], strict=True)]
    fresh = in_fresh_process(fit)
    return [
        Row(
            "whole fit, order 1, over reservoirpy's pass",
            median(ratios),
            "× slower",
            "target ≤ 10×",
            median(ratios) <= 10,
            {
                "fit_s": median(times["fit"]),
                "reservoirpy_s": median(peer),
                "lowest": min(ratios),
                "highest": max(ratios),
                "evaluations_of_the_best_start": fresh["evaluations"],
            },
        ),
        Row(
            "whole fit, order 1, memory",
            fresh["peak_bytes"] / MIB,
            "MiB peak",
            "target < 1 GB",
            fresh["peak_bytes"] < 1e9,
            {"seconds": fresh["seconds"]},
        ),
    ]


def one_evaluation(n_neurons: int, n_steps: int, n_series: int) -> dict[str, Any]:
    """One value and gradient of F, in a separate process."""
    rng = np.random.default_rng(0)
    half = n_series // 2
    walk = np.cumsum(rng.standard_normal((2 * half, n_steps)), axis=1) / np.sqrt(n_steps)
    labels = np.repeat([1, -1], half)
    X = walk + labels[:, None] * np.sin(np.linspace(0, 6, n_steps))
    weights = rng.standard_normal((n_neurons, n_neurons)) * (G / np.sqrt(n_neurons))
    weights *= min(1.0, G / np.linalg.eigvals(weights).real.max())
    network = Reservoir(weights, TAU, Gain.quadratic(ALPHA))
    start = time.perf_counter()
    unfolding = unfold(network, n_steps=n_steps, dt=DURATION / n_steps, order=1)
    built = time.perf_counter() - start
    problem = NonlinearProblem(unfolding, SampleStimuli(X, labels), ETA)
    u = rng.standard_normal((n_neurons, 1))
    u /= np.linalg.norm(u)
    taken = []
    for _ in range(1 if n_neurons * n_steps > 50_000 else 3):
        start = time.perf_counter()
        problem.evaluate(u)
        taken.append(time.perf_counter() - start)
    # The first evaluation also makes the products of the stimuli, once for all.
    return {"build_s": built, "first_s": taken[0], "seconds": taken[-1]}


def growth_rows() -> tuple[list[Row], list[dict[str, float]]]:
    """Time and memory of one evaluation by size; a fit takes 20 to 30 of them."""
    found, rows = [], []
    for n, k, series in GROWTH:
        one = in_fresh_process(one_evaluation, n_neurons=n, n_steps=k, n_series=series)
        found.append({"n_neurons": n, "n_steps": k, "n_series": series, **one})
        rows.append(
            Row(
                f"one evaluation, N = {n}, K = {k}, {series} series",
                1e3 * one["seconds"],
                "ms",
                "",
                None,
                {key: one[key] for key in ("first_s", "build_s")}
                | {"peak_mib": one["peak_bytes"] / MIB},
            )
        )
    return rows, found


def plot(found: list[dict[str, float]], path: Path) -> None:
    """Growth with N, K and the number of series, log–log."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from greenfold.apps.style import BASE, SOLVED

    mpl.rcParams.update(BASE)
    names = {"n_neurons": "neurons N", "n_steps": "steps K", "n_series": "series"}
    base = {"n_neurons": 100, "n_steps": 140, "n_series": 354}
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
    for axis, (key, label) in zip(axes, names.items(), strict=True):
        others = [name for name in base if name != key]
        line = [one for one in found if all(one[name] == base[name] for name in others)]
        line.sort(key=lambda one: one[key])
        sizes = [one[key] for one in line]
        axis.loglog(sizes, [one["seconds"] for one in line], "o-", color=SOLVED)
        axis.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3)
        axis.set_xlabel(label)
    axes[0].set_ylabel("one evaluation of F and ∇F (s)")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
