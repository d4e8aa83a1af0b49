"""Final states, decision values and memory of the unfolding, against reservoirpy.

reservoirpy gets the same network: dense W, its input weights u, a leak of dt/tau and the
identity as activation, which makes it the Euler step of our linear network and is its
cheapest activation. Its ways of running many series (its default sparse network, one worker
or one per core, BLAS threads or not) are tried on some of the series; the two fastest run
in every round, and the faster of them counts. Both sides compute in float64, without the
time for building. reservoirpy returns whole trajectories, because it cannot return the last
state only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from greenfold import Gain, Reservoir, Unfolding, unfold

from ._measure import (
    MIB,
    Report,
    Row,
    alternating_seconds,
    in_fresh_process,
    median_seconds,
    resident_bytes,
)

N_NEURONS, N_STEPS, N_CASES = 100, 140, 4217
TAU, DT = 0.25, 10 / N_STEPS
#: Side of the square matrices whose product gives the peak; three of them exceed caches.
GEMM_SIDE = 1500
#: Number of series for comparing reservoirpy's ways of running.
N_PROBE = 400
#: Numbers of series for a kernel: the target's, then two beyond several full batches.
SCALE_CASES = (100_000, 200_000, 400_000)


def load_series() -> tuple[np.ndarray, str]:
    """ECG5000 classes 1 and 2 of the test set, or smooth noise of the same size."""
    folder = os.environ.get("GREENFOLD_DATA")
    path = Path(folder or ".") / "ucr" / "ECG5000" / "ECG5000_TEST.tsv"
    if folder and path.exists():
        table = np.loadtxt(path, delimiter="\t")
        return np.ascontiguousarray(table[table[:, 0] <= 2, 1:]), "ECG5000, classes 1 and 2"
    noise = np.random.default_rng(0).standard_normal((N_CASES, N_STEPS))
    return np.cumsum(noise, axis=1) / np.sqrt(N_STEPS), "synthetic (no GREENFOLD_DATA)"


def _unit(rng: np.random.Generator) -> np.ndarray:
    vector = rng.standard_normal(N_NEURONS)
    return vector / np.linalg.norm(vector)


def fastest_peers(
    series: np.ndarray, weights: np.ndarray, u: np.ndarray
) -> tuple[dict[str, Callable[[], np.ndarray]], dict[str, float]]:
    """Final states from reservoirpy, in its two fastest ways of running.

    Returns
    -------
    ways : dict
        Label to a function that computes the final states of all series.
    probes : dict
        Seconds of every way on the first `N_PROBE` series.
    """
    from reservoirpy.nodes import Reservoir as Node  # pyright: ignore[reportMissingImports]

    stimuli = np.ascontiguousarray(series[:, :, None])
    cores = os.cpu_count() or 1

    def runner(dense: bool, workers: int, blas: int) -> Callable[..., np.ndarray]:
        shared: dict[str, Any] = {"units": N_NEURONS, "lr": DT / TAU, "seed": 0}
        if dense:
            shared |= {"W": np.array(weights), "Win": u[:, None], "activation": "identity"}
        node = Node(**shared)
        node.run(stimuli[:1])

        def run(part: np.ndarray = stimuli) -> np.ndarray:
            with threadpool_limits(blas):
                node.reset()
                return np.asarray(node.run(part, workers=workers))[:, -1]

        return run

    ways = {
        f"{'dense' if dense else 'sparse'} W, {workers} worker(s), {blas} BLAS thread(s)": (
            runner(dense, workers, blas)
        )
        for dense in (True, False)
        for workers, blas in sorted({(1, 1), (1, cores), (cores, 1)})
    }
    probes = {
        label: median_seconds(lambda run=run: run(stimuli[:N_PROBE]), 3)
        for label, run in ways.items()
    }
    best = sorted(probes, key=lambda label: probes[label])[:2]
    return {label: ways[label] for label in best}, probes


def state_flops(unfolding: Unfolding, n_cases: int, u: np.ndarray) -> float:
    """Floating-point operations of the matrix products in `Unfolding.states`.

    Counted from the library's own plan, on the route it chooses.
    """
    plan = unfolding._plan
    n, k, q = unfolding.n_neurons, plan.n_whole, len(plan.step.nodes)
    panels = k * plan.n_sub
    lag_vectors = 2.0 * panels * n**2
    if unfolding.order == 0:
        return lag_vectors + 2.0 * n_cases * k * n
    if not unfolding.prefers_kernels(n_cases, 1):
        return 2.0 * n_cases * panels * n**2 * (2 + 2 * q)
    pairs = k * (k + 1) / 2
    table = 2.0 * pairs * plan.n_sub * (1 + q) * n**2
    apply = n_cases * (2.0 * k * n + 2.0 * pairs * n + pairs)
    return lag_vectors * (1 + q) + table + apply


def speed_rows(rounds: int) -> tuple[list[Row], list[str]]:
    """Time final states and decision values against reservoirpy."""
    series, source = load_series()
    rng = np.random.default_rng(1)
    u, v = _unit(rng), _unit(rng)
    reservoir = Reservoir.random(N_NEURONS, tau=TAU, gain=Gain.quadratic(0.05), rng=rng)
    unfoldings = [unfold(reservoir, n_steps=N_STEPS, dt=DT, order=k) for k in (0, 1)]
    kernels = [unfolding.kernels(u, v) for unfolding in unfoldings]
    peers, probes = fastest_peers(series, reservoir.weights, u)
    square = rng.standard_normal((GEMM_SIDE, GEMM_SIDE))
    times = alternating_seconds(
        {
            **{label: (run, 1) for label, run in peers.items()},
            "gemm": (lambda: square @ square, 3),
            "states 0": (lambda: unfoldings[0].states(series, u), 15),
            "states 1": (lambda: unfoldings[1].states(series, u), 3),
            "kernel 0": (lambda: kernels[0].decision_values(series), 31),
            "kernel 1": (lambda: kernels[1].decision_values(series), 15),
        },
        rounds,
    )
    times["peer"] = [min(both) for both in zip(*(times[way] for way in peers), strict=True)]
    n, k = series.shape
    flops = {
        "states 0": state_flops(unfoldings[0], n, u),
        "states 1": state_flops(unfoldings[1], n, u),
        "kernel 0": 2.0 * n * k,
        "kernel 1": 2.0 * n * k * (k + 2),
    }
    rate = median(2 * GEMM_SIDE**3 / t for t in times["gemm"]) / 1e9
    rows = [
        _speed_row("order-0 final states", "states 0", 200.0, times, flops, rate),
        _speed_row("order-1 final states", "states 1", 1.0, times, flops, rate),
        _speed_row("kernel decisions, order 0", "kernel 0", 1000.0, times, flops, rate),
        _speed_row("kernel decisions, order 1", "kernel 1", None, times, flops, rate),
    ]
    built = [
        1e3
        * median_seconds(lambda k=k: unfold(reservoir, n_steps=N_STEPS, dt=DT, order=k), 5)
        for k in (0, 1)
    ]
    notes = [
        f"{n} series × {k} steps ({source}), N = {N_NEURONS}; medians of {rounds} rounds",
        f"reservoirpy {version('reservoirpy')}: {median(times['peer']):.2f} s for all "
        "series, the faster in each round of",
        *(f"    {way}: {median(times[way]):.2f} s" for way in peers),
        *(
            f"    tried {way}: {1e3 * t / N_PROBE:.2f} ms per series"
            for way, t in probes.items()
        ),
        f"peak of this machine, float64 product of side {GEMM_SIDE}: {rate:.0f} GFLOP/s",
        f"not in the times below: unfolding built in {built[0]:.1f} ms (order 0), "
        f"{built[1]:.1f} ms (order 1)",
    ]
    return rows, notes


def _speed_row(
    name: str,
    key: str,
    target: float | None,
    times: dict[str, list[float]],
    flops: dict[str, float],
    peak: float,
) -> Row:
    ratios = [peer / own for peer, own in zip(times["peer"], times[key], strict=True)]
    own = median(times[key])
    achieved = flops[key] / own / 1e9
    detail = {
        "ours_ms": 1e3 * own,
        "reservoirpy_ms": 1e3 * median(times["peer"]),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "gflop": flops[key] / 1e9,
        "gflop_per_s": achieved,
        "of_gemm_peak": f"{100 * achieved / peak:.0f}%",
    }
    ratio = median(ratios)
    wanted = "" if target is None else f"target ≥ {target:g}×"
    return Row(
        name, ratio, "× faster", wanted, None if target is None else ratio >= target, detail
    )


def build_large(n_neurons: int, n_steps: int) -> dict[str, Any]:
    """Build a large linear unfolding and its kernel, in a separate process."""
    reservoir = Reservoir.random(n_neurons, rng=0)
    before = resident_bytes()
    start = time.perf_counter()
    unfolding = unfold(reservoir, n_steps=n_steps, dt=DT, order=0)
    built = time.perf_counter() - start
    u = np.full(n_neurons, n_neurons**-0.5)
    start = time.perf_counter()
    kernel = unfolding.kernels(u, u)
    collapsed = time.perf_counter() - start
    assert np.isfinite(kernel.linear).all()
    return {"before_bytes": before, "build_s": built, "kernel_s": collapsed}


def many_series(n_cases: int, order: int) -> dict[str, Any]:
    """Send many series through one kernel, in a separate process."""
    rng = np.random.default_rng(0)
    reservoir = Reservoir.random(N_NEURONS, gain=Gain.quadratic(0.05), rng=rng)
    u, v = _unit(rng), _unit(rng)
    kernel = unfold(reservoir, n_steps=N_STEPS, dt=DT, order=order).kernels(u, v)
    series = rng.standard_normal((n_cases, N_STEPS))
    before = resident_bytes()
    start = time.perf_counter()
    values = kernel.decision_values(series)
    taken = time.perf_counter() - start
    return {
        "before_bytes": before,
        "input_bytes": series.nbytes,
        "result_bytes": values.nbytes,
        "seconds": taken,
    }


def scale_rows() -> list[Row]:
    """Peak memory of a large network and of many series, in fresh processes."""
    found = in_fresh_process(build_large, n_neurons=2000, n_steps=1000)
    peak = found["peak_bytes"]
    rows = [
        Row(
            "N = 2000, 1000 steps, order 0 built",
            peak / MIB,
            "MiB peak",
            "target < 2 GB",
            peak < 2e9,
            {key: found[key] for key in ("build_s", "kernel_s")}
            | {"before_unfolding_mib": found["before_bytes"] / MIB},
        )
    ]
    for order in (0, 1):
        found = [in_fresh_process(many_series, n_cases=n, order=order) for n in SCALE_CASES]
        extra = [(one["peak_bytes"] - one["before_bytes"]) / MIB for one in found]
        results = [one["result_bytes"] / MIB for one in found]
        # Up to two batches are held at once, so memory grows until two are full. Beyond
        # that, between the two larger sizes, only the results may grow: they exist twice
        # while the batches are joined. 8 MiB is the allocator's noise.
        growth, allowed = extra[2] - extra[1], 2 * (results[2] - results[1]) + 8
        rows.append(
            Row(
                f"{SCALE_CASES[0]} series × {N_STEPS}, kernel order {order}",
                extra[0],
                "MiB extra",
                "target: bounded",
                growth <= allowed,
                {f"{n}_mib": mib for n, mib in zip(SCALE_CASES, extra, strict=True)}
                | {
                    "input_mib": found[0]["input_bytes"] / MIB,
                    "seconds": found[0]["seconds"],
                },
            )
        )
    return rows


def run(rounds: int) -> Report:
    """All rows of this benchmark."""
    speed, notes = speed_rows(rounds)
    notes.append(
        "memory: peak of a fresh process; extra = peak − memory with the input loaded"
    )
    return Report("unfolding", notes, speed + scale_rows())
