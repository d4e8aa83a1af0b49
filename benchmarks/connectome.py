"""Networks up to the size of a fly's brain: time, memory and the proven gap.

The networks are made: as many cells and connections as FlyWire lists for an adult fly, or a
part of them, with log-normal numbers of inputs and outputs per cell and of synapses per
connection, and one sign per cell. ``python -m benchmarks.connectome [cuda] [CONNECTIONS]``
solves ECG5000, classes 1 and 2 (with ``GREENFOLD_DATA``), and two random classes of ten
steps, integrates a saturating network of 20,000 neurons, and writes
docs/_benchmarks/connectome.json, or connectome-cuda.json with the products on a GPU. Name
numbers of connections to solve these networks alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from greenfold import (
    Convex,
    Dynamics,
    Gain,
    Reservoir,
    SampleStimuli,
    optimize,
    unfold,
)
from greenfold.datasets import ecg5000_paper
from greenfold.unfolding.sparse import Product

from ._measure import (
    MIB,
    Report,
    Row,
    in_fresh_process,
    peak_bytes,
    resident_bytes,
    write_json,
)

FOLDER = Path(__file__).parents[1] / "docs" / "_benchmarks"
#: Cells and connections of an adult fly (Dorkenwald et al., Nature 634, 2024).
N_CELLS, N_CONNECTIONS = 138_639, 15_000_000
SIZES: tuple[int, ...] = (N_CONNECTIONS, 1_000_000, 100_000)
#: Share of cells that excite, spread of the logarithms, and the largest |λ|.
EXCITATORY, SPREAD, RADIUS = 0.7, 1.0, 0.9
DURATION, TAU, ETA = 10.0, 0.25, 10.0
#: Number of random u that a result is compared with.
N_DRAWN = 5
#: The saturating network: neurons, share of connections, steps, and series, of which each
#: takes a host some seconds. Its target is the time over the bare products.
N_NEURONS, SHARE, N_STEPS, OVER = 20_000, 0.005, 70, 2.5
N_SERIES = {"cuda": 200, "host": 8}
#: Targets: gap, seconds on a GPU and on two cores, memory in MiB, exponent of the growth.
GAP, SECONDS, MEMORY, EXPONENT = 1e-5, {"cuda": 15, "host": 600}, 3072, 1.2


def made(n_connections: int) -> sparse.csr_array[Any]:
    """Edges from row to column; cells grow with the power ⅔ of their connections."""
    rng = np.random.default_rng(0)
    n = round(N_CELLS * (n_connections / N_CONNECTIONS) ** (2 / 3))
    ends = []
    for _ in range(2):
        share = np.cumsum(rng.lognormal(sigma=SPREAD, size=n))
        drawn = np.searchsorted(share, rng.uniform(0, share[-1], n_connections))
        ends.append(drawn.astype(np.int32))
    signs = np.where(rng.random(n) < EXCITATORY, 1.0, -1.0)
    synapses = np.ceil(rng.lognormal(sigma=SPREAD, size=n_connections))
    edges = sparse.csr_array((synapses * signs[ends[0]], tuple(ends)), shape=(n, n))
    edges.sum_duplicates()
    return edges


def problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Series and labels by name."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((200, 10)), np.repeat([0, 1], 100)
    X[100:] += 0.5 * rng.standard_normal(10)
    found = {"K = 10, random": (X, y)}
    if os.environ.get("GREENFOLD_DATA"):
        split = ecg5000_paper()
        found["K = 140, ECG5000"] = split.X_train, split.y_train
    return found


def solved(n_connections: int, place: str) -> dict[str, Any]:
    """Times, gaps, products and memory of all problems on one network."""
    optimize(  # imports and caches
        unfold(Reservoir.random(20, rng=0), n_steps=10, dt=1.0),
        SampleStimuli(*problems()["K = 10, random"]),
    )
    edges = made(n_connections)
    before, start = resident_bytes(), time.perf_counter()
    network = Reservoir.from_graph(edges, spectral_radius=RADIUS, tau=TAU)
    taken = {"construct": time.perf_counter() - start}
    found: dict[str, Any] = {
        "cells": network.n_neurons,
        "connections": int(network.weights.nnz),
        "construct_s": taken["construct"],
        "problems": {},
    }
    for name, (X, y) in problems().items():
        n_steps = X.shape[-1]
        series: Any = X
        if place == "cuda":
            import torch

            series = torch.asarray(X, device="cuda")
            torch.zeros(1, device="cuda")
        start = time.perf_counter()
        system = unfold(network, n_steps=n_steps, dt=DURATION / n_steps)
        stimuli = SampleStimuli(series, y)
        best = optimize(system, stimuli, ETA, Convex(gap=GAP))
        seconds = time.perf_counter() - start
        rng = np.random.default_rng(2)
        drawn = [
            optimize(system, stimuli, ETA, u=rng.standard_normal(network.n_neurons))
            for _ in range(N_DRAWN)
        ]
        found["problems"][name] = {
            "seconds": seconds,
            "gap": best.gap,
            "status": best.status,
            "soft_margin": best.soft_margin,
            "best_of_5_random": max(one.soft_margin for one in drawn),
            "rounds": best.n_iter,
        }
        if place == "host":
            found["problems"][name]["products"] = system.maps.n_products
    # The file holds eight bytes for each weight, and four for its place.
    found["mib"] = (peak_bytes() - before - 12 * network.weights.nnz) / MIB
    return found


def integrated(place: str) -> dict[str, Any]:
    """States and one gradient of a network as it is, beside its bare products."""
    network = Reservoir.random(
        N_NEURONS, gain=Gain.tanh(), connectivity=SHARE, spectral_radius=RADIUS, rng=0
    )
    system = Dynamics(network, n_steps=N_STEPS, dt=DURATION / N_STEPS)
    rng = np.random.default_rng(1)
    X: Any = rng.standard_normal((N_SERIES[place], N_STEPS))
    bar: Any = rng.standard_normal((N_SERIES[place], N_NEURONS))
    u = rng.standard_normal(N_NEURONS)[:, None] / np.sqrt(N_NEURONS)
    if place == "cuda":
        import torch

        X, bar = torch.asarray(X, device="cuda"), torch.asarray(bar, device="cuda")
    before, shapes = resident_bytes(), Counter[int]()
    plain, back = Product.__call__, Product.back

    def counted(self: Product, y: Any) -> Any:
        shapes[int(y.shape[0])] += 1
        return plain(self, y)

    def counted_back(self: Product, bar: Any) -> Any:
        shapes[-int(bar.shape[0])] += 1
        return back(self, bar)

    def gradient() -> Any:
        return system.prepare(X)(u).pullback(bar)

    Product.__call__, Product.back = counted, counted_back
    gradient()  # plans the sub-steps, too
    shapes.clear()
    found = {"seconds": _timed(gradient, place), "mib": (peak_bytes() - before) / MIB}
    Product.__call__, Product.back = plain, back
    found["columns"] = sum(abs(rows) * n for rows, n in shapes.items())
    product = Product.of(network.weights).on(bar, bar.dtype)
    alone = 0.0
    for rows, n in shapes.items():
        work = partial(product if rows > 0 else product.back, bar[: abs(rows), :])
        alone += n * min(_timed(work, place) for _ in range(5))
    return found | {"products_alone_s": alone, "connections": int(network.weights.nnz)}


def _timed(work: Callable[[], Any], place: str) -> float:
    """Processor time on the host, which other load changes little; wall time on a GPU."""
    clock = time.perf_counter if place == "cuda" else time.process_time
    start = clock()
    work()
    if place == "cuda":
        import torch

        torch.cuda.synchronize()
    return clock() - start


def run(rounds: int, place: str = "host", sizes: tuple[int, ...] = SIZES) -> Report:
    """All sizes; the largest takes some minutes on a host. Every row is measured once."""
    del rounds
    rows, taken = list[Row](), dict[str, list[float]]()
    where = f"on {os.cpu_count()} cores"
    if place == "cuda":
        import torch

        where = f"products on {torch.cuda.get_device_name()}, the rest {where}"
    notes = [
        f"networks with log-normal degrees, largest |λ| {RADIUS}, T/τ = {DURATION / TAU:g}"
        f", η = {ETA:g}; {where}",
        "time from `unfold` to the proven optimum; construct_s: scaling W by its "
        "largest eigenvalue; memory beyond 12 bytes per connection, of the whole process",
    ]
    report = Report(f"connectome: {place}", notes, rows)
    for n_connections in sizes:
        print(f"{n_connections:,} connections", flush=True)
        found = in_fresh_process(solved, n_connections=n_connections, place=place)
        for name, detail in found.pop("problems").items():
            seconds = detail.pop("seconds")
            taken.setdefault(name, []).append(seconds)
            shown = {k: v for k, v in found.items() if k != "peak_bytes"} | detail
            met = detail["gap"] <= GAP
            target = f"gap ≤ {GAP:g}"
            if n_connections == N_CONNECTIONS:
                met &= seconds <= SECONDS[place] and found["mib"] <= MEMORY
                target += f", ≤ {SECONDS[place]} s, ≤ {MEMORY} MiB"
            title = (
                f"{found['cells']:,} cells, {found['connections']:,} connections, {name}"
            )
            rows.append(Row(title, seconds, "s", target, met, shown))
        write_json(_record(place), [report])
    print("saturating network", flush=True)
    detail = in_fresh_process(integrated, place=place)
    ratio = detail["seconds"] / detail["products_alone_s"]
    del detail["peak_bytes"]
    title = f"{N_NEURONS:,} tanh neurons, {N_SERIES[place]} series: states and gradient"
    rows.append(Row(title, ratio, "× products", f"≤ {OVER}", ratio <= OVER, detail))
    for name, seconds in taken.items():
        if len(sizes) < 2:
            break
        slope = float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))
        title = f"growth of time in connections, {name}"
        rows.append(Row(title, slope, "", f"≤ {EXPONENT}", slope <= EXPONENT, {}))
    write_json(_record(place), [report])
    return report


def _record(place: str) -> Path:
    folder = Path(os.environ.get("OUT", FOLDER))
    return folder / ("connectome.json" if place == "host" else f"connectome-{place}.json")


if __name__ == "__main__":
    given = [int(float(one)) for one in sys.argv[1:] if one != "cuda"]
    run(1, "cuda" if "cuda" in sys.argv else "host", tuple(given) or SIZES).show()
