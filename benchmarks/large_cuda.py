"""Large batches on a CUDA device: order 0, order 1, the integrated network, whole solves.

``python -m benchmarks.large_cuda [SHARE]`` writes docs/_benchmarks/large-cuda.json; SHARE
below one uses that share of the series. PyTorch counts the matrix products; they are
compared with the rate of two large square matrices, measured in the same run. The host
computes a hundred of the series, on all its cores.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from greenfold import Ascent, Dynamics, Gain, Reservoir, SampleStimuli, optimize, unfold

from ._measure import MIB, Report, Row, write_json

JSON = Path(__file__).parents[1] / "docs" / "_benchmarks" / "large-cuda.json"
N_NEURONS, N_STEPS, DT, TAU = 1000, 140, 10 / 140, 0.25
N_SERIES, N_SOME = 100_000, 10_000
#: Number of series for timing the host.
HOST_SERIES = 100
#: Side of the square matrices whose product gives the rate of the device.
SQUARE = 8192


def walks(n_cases: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of random walks that differ in their mean."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_cases, N_STEPS)).cumsum(axis=1) / np.sqrt(N_STEPS)
    labels = np.arange(n_cases) % 2
    X[labels > 0] += 0.5 * np.sin(np.linspace(0, 3, N_STEPS))
    return X, labels


def seconds(work: Callable[[], Any], rounds: int) -> float:
    """Median time on the device, after one round to warm up."""
    import torch

    taken = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken[1:]))


def products(work: Callable[[], Any]) -> float:
    """Floating-point operations in matrix products."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops())


def row(
    name: str, work: Callable[[Any], Any], X: np.ndarray, rate: float, rounds: int
) -> Row:
    """One job on the device as a share of its matrix rate, and on the host."""
    import torch

    there = torch.asarray(X, device="cuda")
    flops = products(lambda: work(there))
    torch.cuda.reset_peak_memory_stats()
    taken = seconds(lambda: work(there), rounds)
    peak = torch.cuda.max_memory_allocated()
    part = X[:HOST_SERIES]
    work(part)
    start = time.perf_counter()
    work(part)
    host = time.perf_counter() - start
    return Row(
        name,
        100 * flops / taken / rate,
        "% of the matrix rate",
        "",
        None,
        {
            "device_s": taken,
            "tflop": flops / 1e12,
            "tflop_per_s": flops / taken / 1e12,
            "peak_mib": peak / MIB,
            "series": len(X),
            "host_s_for_100_series": host,
        },
    )


def solve_row(
    name: str, system: Any, X: np.ndarray, labels: np.ndarray, *, host: bool
) -> Row:
    """A whole solve with the series on the device and, optionally, on the host."""
    import torch

    found, taken = {}, {}
    for place in ("device", "host") if host else ("device",):
        series = torch.asarray(X, device="cuda") if place == "device" else X
        stimuli = SampleStimuli(series, labels)
        for _ in range(2 if place == "device" else 1):  # the first one warms up
            start = time.perf_counter()
            found[place] = optimize(system, stimuli, 10.0, Ascent(n_starts=2))
            taken[place] = time.perf_counter() - start
    one = found["device"]
    detail = {
        "evaluations": len(one.history),
        "series": len(X),
        "soft_margin": one.soft_margin,
    }
    if host:
        apart = abs(1 - one.soft_margin / found["host"].soft_margin)
        detail |= {
            "host_s": taken["host"],
            "host_over_device": taken["host"] / taken["device"],
            "relative_difference_of_soft_margin": apart,
        }
    return Row(name, taken["device"], "s", "", None, detail)


def run_cuda(share: float = 1.0, rounds: int = 2) -> Report:
    """All rows."""
    import torch

    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    square = torch.ones((SQUARE, SQUARE), dtype=torch.float64, device="cuda")
    rate = 2.0 * SQUARE**3 / seconds(lambda: square @ square, 5)
    X, labels = walks(int(share * N_SERIES))
    some = X[: int(share * N_SOME)]
    quadratic = Reservoir.random(
        N_NEURONS, 0.8, TAU, Gain.quadratic(0.02), rng=0, max_draws=20
    )
    saturating = Reservoir.random(N_NEURONS, 0.8, TAU, Gain.tanh(), rng=0, max_draws=20)
    u = np.random.default_rng(1).standard_normal(N_NEURONS)
    u /= np.linalg.norm(u)
    v = np.random.default_rng(2).standard_normal(N_NEURONS)
    v /= np.linalg.norm(v)
    order0 = unfold(quadratic, n_steps=N_STEPS, dt=DT)
    order1 = unfold(quadratic, n_steps=N_STEPS, dt=DT, order=1)
    integrated = Dynamics(saturating, n_steps=N_STEPS, dt=DT, tol=1e-4)

    prepared: dict[int, Any] = {}

    def walked(x: Any) -> Any:
        """One evaluation of the ascent, with planned sub-steps."""
        if id(x) not in prepared:
            prepared.clear()
            prepared[id(x)] = integrated.prepare(x)
        return prepared[id(x)](u).pullback(ones(x), v)

    def ones(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            return np.ones(len(part))
        return torch.ones(len(part), dtype=torch.float64, device=part.device)

    jobs: list[tuple[str, Callable[[Any], Any], np.ndarray]] = [
        ("order 0, trajectories", lambda x: order0.states(x, u, trajectories=True), some),
        ("order 1, states", lambda x: order1.states(x, u), X),
        ("order 1, gradient", lambda x: order1.pullback(x, u, ones(x), v), X),
        ("integrated, states", lambda x: integrated.states(x, u, n_sub=1), X),
        ("integrated, states and gradient", walked, X),
    ]
    notes = [
        f"{len(X)} series × {N_STEPS} steps (trajectories and solves {len(some)}), "
        f"float64, on {torch.cuda.get_device_name()}, PyTorch {torch.__version__}; "
        f"the host has {os.cpu_count()} cores",
        f"matrix rate {rate / 1e12:.1f} TFLOP/s: two square matrices of side {SQUARE}; "
        "products counted by PyTorch",
    ]

    def keep(rows: list[Row]) -> Report:
        """Write the rows so far, so that an interrupted run keeps them."""
        report = Report("large batches: cuda", notes, rows)
        write_json(JSON, [report])
        return report

    rows: list[Row] = []
    for name, work, series in jobs:
        print(name, flush=True)
        rows.append(row(f"{name}, N = {N_NEURONS}", work, series, rate, rounds))
        keep(rows)
    print("solves", flush=True)
    small = Reservoir.random(100, 0.8, TAU, Gain.quadratic(0.02), rng=0)
    system = unfold(small, n_steps=N_STEPS, dt=DT, order=1)
    own = labels[: len(some)]
    rows.append(solve_row("optimize, order 1, N = 100", system, some, own, host=True))
    keep(rows)
    small = Reservoir.random(100, 0.8, TAU, Gain.tanh(), rng=0)
    solved = Dynamics(small, n_steps=N_STEPS, dt=DT, tol=1e-4)
    rows.append(solve_row("optimize, integrated, N = 100", solved, some, own, host=False))
    return keep(rows)


if __name__ == "__main__":
    report = run_cuda(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
    report.show()
