"""A cluster whose workers hold chunks as CUDA arrays, against one array on the device.

``python -m benchmarks.workers_cuda [SHARE]`` writes docs/_benchmarks/workers-cuda.json;
SHARE below one uses that share of the series. Two workers share one GPU, so their extra
time is the cost of the cluster; with a GPU each, they would halve the time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from greenfold import Ascent, Dynamics, Gain, Reservoir, SampleStimuli, optimize, unfold

from ._measure import Report, Row, write_json
from .large_cuda import DT, N_STEPS, TAU, walks

JSON = Path(__file__).parents[1] / "docs" / "_benchmarks" / "workers-cuda.json"
N_SERIES, N_SOLVED, N_CHUNKS, ETA = 100_000, 10_000, 20, 10.0


def both(X: np.ndarray, labels: np.ndarray, client: Any) -> dict[str, SampleStimuli]:
    """The same series in the chunks of a cluster and in one array, all on the device."""
    import dask.array as da
    import torch

    from_array: Any = da.from_array
    chunks = from_array(X, chunks=(len(X) // N_CHUNKS, N_STEPS))
    return {
        "cluster": SampleStimuli.from_dask(chunks, labels, client=client, device="cuda"),
        "here": SampleStimuli(torch.asarray(X, device="cuda"), labels),
    }


def relative(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference, over the largest value."""
    return float(np.abs(one - other).max() / np.abs(other).max())


def evaluation(name: str, system: Any, stimuli: dict[str, SampleStimuli]) -> Row:
    """One M, Σ and gradient: differences and times."""
    rng = np.random.default_rng(1)
    u, v = rng.standard_normal((2, system.n_neurons)) / np.sqrt(system.n_neurons)
    found: dict[str, tuple[np.ndarray, ...]] = {}
    taken: dict[str, list[float]] = {"cluster": [], "here": []}
    maps: dict[str, Callable[..., Any]] = {
        place: one.moment_map(system) for place, one in stimuli.items()
    }
    for turn in range(4):
        for place, moments in maps.items():
            start = time.perf_counter()
            at = moments(u[:, None])
            found[place] = at.M, at.Sigma, at.pull(v, ETA)
            if turn:  # the first one sends the system and the series
                taken[place].append(time.perf_counter() - start)
    apart = max(relative(a, b) for a, b in zip(*found.values(), strict=True))
    cluster, here = (float(np.median(times)) for times in taken.values())
    return Row(
        f"{name}: M, Σ and gradient, largest relative difference",
        1e12 * apart,
        "10⁻¹²",
        "rounding, ≤ 1",
        apart <= 1e-12,
        {"cluster_s": cluster, "one_process_s": here, "ratio": cluster / here},
    )


def solve(name: str, system: Any, stimuli: dict[str, SampleStimuli], *, exact: bool) -> Row:
    """The solved u and its difference; ``exact`` if no part is in single precision."""
    found, taken = {}, {}
    for place, one in stimuli.items():
        start = time.perf_counter()
        found[place] = optimize(system, one, ETA, Ascent(n_starts=1))
        taken[f"{place}_s"] = time.perf_counter() - start
    apart = float(np.abs(found["cluster"].u - found["here"].u).max())
    margin = found["cluster"].soft_margin
    return Row(
        f"{name}: solved u, largest difference",
        1e8 * apart,
        "10⁻⁸",
        "≤ 1" if exact else "",
        apart <= 1e-8 if exact else None,
        {**taken, "n_iter": found["cluster"].n_iter, "kappa": margin},
    )


def run_cuda(share: float = 1.0) -> Report:
    """All rows."""
    import torch
    from distributed import Client, LocalCluster

    X, labels = walks(int(share * N_SERIES))
    some = int(share * N_SOLVED)
    quadratic = Reservoir.random(100, 0.8, TAU, Gain.quadratic(0.02), rng=0)
    saturating = Reservoir.random(100, 0.8, TAU, Gain.tanh(), rng=0)
    systems = {
        "order 1": unfold(quadratic, n_steps=N_STEPS, dt=DT, order=1),
        "Dynamics": Dynamics(saturating, n_steps=N_STEPS, dt=DT, tol=1e-4),
    }
    rows: list[Row] = []
    made: Any = LocalCluster
    with (
        made(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for name, system in systems.items():
            what = f"{name}, N = 100"
            print(what, flush=True)
            stimuli = both(X, labels, client)
            rows.append(evaluation(f"{what}, {len(X):,} series", system, stimuli))
            stimuli = both(X[:some], labels[:some], client)
            exact = name == "order 1"
            rows.append(solve(f"{what}, {some:,} series", system, stimuli, exact=exact))
    notes = [
        f"series of {N_STEPS} steps in {N_CHUNKS} chunks; two workers share one "
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; wall clock, median "
        "of three",
        "an ascent through the true network begins in single precision, where rounding "
        "depends on the batch size; it ends at another u within the tolerance of κ",
    ]
    report = Report("chunks on a GPU: cuda", notes, rows)
    write_json(JSON, [report])
    return report


if __name__ == "__main__":
    run_cuda(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0).show()
