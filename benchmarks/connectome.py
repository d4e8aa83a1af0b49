"""Networks up to the size of a fly's brain: time, memory and the proven gap.

The networks are made: as many cells and connections as FlyWire lists for an adult fly, or a
part of them, with log-normal numbers of inputs and outputs per cell and of synapses per
connection, and one sign per cell. ``python -m benchmarks.connectome [cuda] [CONNECTIONS]``
solves ECG5000, classes 1 and 2 (with ``GREENFOLD_DATA``), and two random classes of ten
steps, integrates a saturating network of 20,000 neurons, and writes
docs/_benchmarks/connectome.json, or connectome-cuda.json with the products on a GPU. There,
it also attacks the bounds of ten networks by ascents of another gradient;
``python -m benchmarks.connectome attacked`` does that alone, on a host. Name numbers of
connections to solve these networks alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from itertools import product
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
from greenfold._base.arrays import to_host
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
N_DRAWN = 2
#: The saturating network: neurons, connections of each, steps, and series, of which each
#: takes a host some seconds. Its target is the time over the bare products.
N_NEURONS, CONNECTED, N_STEPS, OVER = 20_000, 100, 70, 2.5
N_SERIES = {"cuda": 200, "host": 8}
#: The attack on bounds: sizes of networks, networks of each, starts, steps of an ascent,
#: and terms of exp(W − 1), the last of which is below 1e-12. A κ above the bound by more
#: than rounding, relative to the bound, refutes it.
ATTACKED, N_NETWORKS, N_STARTS, N_TERMS = (20_000, 2000), 10, 50, 24
N_ASCENDED = {"cuda": 60, "cpu": 25}
ROUNDED = 1e-9
#: Least and largest weight of the solved pair in every other start, beside a random one.
NEAR = 1.0, 300.0
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
    found = dict[str, tuple[np.ndarray, np.ndarray]]()
    if os.environ.get("GREENFOLD_DATA"):
        split = ecg5000_paper()
        found["K = 140, ECG5000"] = split.X_train, split.y_train
    return found | {"K = 10, random": drawn_series(1)}


def drawn_series(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of random series of ten steps."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((200, 10)), np.repeat([0, 1], 100)
    X[100:] += 0.5 * rng.standard_normal(10)
    return X, y


def say(what: str) -> None:
    """Print the time of day and what is done; a run on a GPU may end at a limit."""
    print(time.strftime("%H:%M:%S"), what, flush=True)


@cache
def network_of(n_connections: int) -> tuple[Reservoir, float, int]:
    """The network, the time to construct it from its edges, and the memory before."""
    optimize(  # imports and caches
        unfold(Reservoir.random(20, rng=0), n_steps=10, dt=1.0),
        SampleStimuli(*drawn_series(1)),
    )
    say(f"drawing {n_connections:,} connections")
    edges = made(n_connections)
    before, start = resident_bytes(), time.process_time()
    network = Reservoir.from_graph(edges, spectral_radius=RADIUS, tau=TAU)
    taken = time.process_time() - start
    say(f"made in {taken:.1f} s")
    return network, taken, before


def solved(n_connections: int, name: str, place: str) -> dict[str, Any]:
    """Times, gap, products and memory of one problem on one network."""
    network, construct, before = network_of(n_connections)
    X, y = problems()[name]
    series, n_steps = on(place, X), X.shape[-1]
    start, clock = time.perf_counter(), time.process_time()
    system = unfold(network, n_steps=n_steps, dt=DURATION / n_steps)
    stimuli = SampleStimuli(series, y)
    best = optimize(system, stimuli, ETA, Convex(gap=GAP))
    seconds, used = time.perf_counter() - start, time.process_time() - clock
    detail = {"gap": best.gap, "status": best.status, "soft_margin": best.soft_margin}
    say(f"{name}: {seconds:.1f} s, of processors {used:.1f} s, {detail}")
    rng = np.random.default_rng(2)
    drawn = [
        optimize(system, stimuli, ETA, u=rng.standard_normal(network.n_neurons))
        for _ in range(N_DRAWN)
    ]
    detail |= {
        "cells": network.n_neurons,
        "connections": int(network.weights.nnz),
        "construct_s": construct,
        # On the host, other load changes the time of the processors little.
        "seconds": seconds if place == "cuda" else used,
        "wall_s": seconds,
        "best_random": max(one.soft_margin for one in drawn),
        "rounds": best.n_iter,
        # The file holds eight bytes for each weight, and four for its place.
        "mib": (peak_bytes() - before - 12 * network.weights.nnz) / MIB,
    }
    if place == "cuda":
        import torch

        return detail | {"gpu_mib": torch.cuda.max_memory_allocated() / MIB}
    return detail | {"products": system.maps.n_products}


def on(place: str, X: np.ndarray) -> Any:
    """Series on the host or on the GPU, which is ready for use."""
    if place == "host":
        return X
    import torch

    moved = torch.asarray(X, device=place)
    if place == "cuda":
        torch.cuda.synchronize()
    return moved


@cache
def saturating(n_neurons: int) -> Reservoir:
    """A sparse tanh network."""
    say(f"drawing a saturating network of {n_neurons:,} neurons")
    return Reservoir.random(
        n_neurons,
        gain=Gain.tanh(),
        connectivity=CONNECTED / n_neurons,
        spectral_radius=RADIUS,
        rng=0,
    )


def integrated(n_neurons: int, n_series: int, place: str) -> dict[str, Any]:
    """States and one gradient of a network as it is, beside its bare products.

    The sub-steps are known, as at every step of an ascent but the first; ``planning_s`` is
    the time to find them.
    """
    network = saturating(n_neurons)
    system = Dynamics(network, n_steps=N_STEPS, dt=DURATION / N_STEPS)
    rng = np.random.default_rng(1)
    X = on(place, rng.standard_normal((n_series, N_STEPS)))
    bar = on(place, rng.standard_normal((n_series, n_neurons)))
    u = rng.standard_normal(n_neurons)[:, None] / np.sqrt(n_neurons)
    before, shapes = resident_bytes(), Counter[int]()
    W = Product.of(network.weights).on(bar, bar.dtype)
    plain, back = Product.__call__, Product.back

    def counted(self: Product, y: Any) -> Any:
        shapes[int(y.shape[0])] += 1
        return plain(self, y)

    def counted_back(self: Product, bar: Any) -> Any:
        shapes[-int(bar.shape[0])] += 1
        return back(self, bar)

    made = system.prepare(X)
    found: dict[str, Any] = {"planning_s": _timed(partial(made.settle, u), place)}
    say(f"{n_series} series: planned {system.step_error} in {found['planning_s']:.1f} s")
    Product.__call__, Product.back = counted, counted_back
    gradient, _ = made(u).pullback(bar)
    Product.__call__, Product.back = plain, back
    say("measuring")
    found["seconds"] = _timed(lambda: made(u).pullback(bar), place)
    found["states_s"] = _timed(lambda: made(u), place)
    found["mib"] = (peak_bytes() - before) / MIB
    found["columns"] = sum(abs(rows) * n for rows, n in shapes.items())
    alone = 0.0
    for rows, n in shapes.items():
        work = partial(W if rows > 0 else W.back, bar[: abs(rows), :])
        work()
        alone += n * min(_timed(work, place) for _ in range(5))
    found |= {"products_alone_s": alone, "connections": int(network.weights.nnz)}
    if place == "cuda":
        import torch

        found["gpu_mib"] = torch.cuda.max_memory_allocated() / MIB
        if n_series == N_SERIES["host"]:
            host = system.pullback(to_host(X), u, to_host(bar), n_sub=made.n_sub)
            apart = np.abs(to_host(gradient) - host).max() / np.abs(host).max()
            found["differs_from_host"] = float(apart)
    say(f"{n_series} series: {found}")
    return found


def attacked(n_neurons: int, seed: int, place: str) -> dict[str, Any]:
    """The proven bound of one network, and the best κ of many ascents of another gradient.

    The ascents step through time by Taylor's series of exp((W − 1) Δ/τ) instead of Poisson
    weights, and follow the gradient by both projections with Barzilai–Borwein steps. Every
    other one starts near the proven pair, which random starts do not reach.
    """
    import torch

    network = Reservoir.random(n_neurons, tau=1.0, connectivity=20 / n_neurons, rng=seed)
    X, y = drawn_series(seed)
    stimuli = SampleStimuli(on(place, X), y)
    start = time.perf_counter()
    system = unfold(network, n_steps=X.shape[1], dt=1.0)
    best = optimize(system, stimuli, ETA, Convex(gap=GAP))
    taken = time.perf_counter() - start
    rows, columns = (
        torch.sparse_csr_tensor(
            *(torch.asarray(part, device=place) for part in (m.indptr, m.indices, m.data)),
            size=m.shape,
        )
        for m in (network.weights, network.weights.T.tocsr())
    )
    X = (X - X.mean(0)) * stimuli.scale
    plus, minus = X[y == 1], X[y == 0]
    mu = (plus.mean(0) - minus.mean(0)) / 2  # of ζx, with as many series in both classes
    signed = np.concatenate([plus, -minus]) - mu
    mu, psi = (torch.asarray(one, device=place) for one in (mu, signed.T @ signed / len(X)))

    def series(W: Any, y: Any, first: int) -> Any:
        """Σ_j (W − 1)ʲ y / (j + first)!, which is exp(W − 1) y, or its integral."""
        total = term = y
        for j in range(1, N_TERMS):
            term = (W @ term - term) / (j + first)
            total = total + term
        return total

    def margins(u: Any, v: Any) -> tuple[Any, Any]:
        """κ of each pair of columns, and its gradient along both spheres."""
        states = [series(rows, u, 1)]
        while len(states) < len(mu):
            states.insert(0, series(rows, states[0], 0))
        a = torch.stack([(v * one).sum(0) for one in states])
        curved = ETA * (psi @ a)
        d, back = mu[:, None] - curved, torch.zeros_like(v)
        for one in d:
            back = series(columns, back, 0) + one * v
        by_u = series(columns, back, 1)
        by_v = torch.stack([one * state for one, state in zip(d, states, strict=True)])
        slopes = torch.stack([by_u, by_v.sum(0)])
        pair = torch.stack([u, v])
        along = slopes - pair * (slopes * pair).sum(1, keepdim=True)
        return (a * (mu[:, None] - curved / 2)).sum(0), along

    drawn = np.random.default_rng([seed, 2]).standard_normal((2, n_neurons, N_STARTS))
    solved = np.stack([best.u, best.v])[:, :, None]
    weights = np.geomspace(*NEAR, N_STARTS // 2)
    drawn[:, :, ::2] += weights * np.sqrt(n_neurons) * solved
    pair = torch.asarray(drawn, device=place)
    pair = pair / pair.norm(dim=1, keepdim=True)
    highest, slope = margins(*pair)
    step = 1.0 / slope.norm(dim=(0, 1))
    start = time.perf_counter()
    for _ in range(N_ASCENDED[place]):
        ahead = pair + step * slope
        ahead = ahead / ahead.norm(dim=1, keepdim=True)
        value, after = margins(*ahead)
        highest = torch.maximum(highest, value)
        moved, turned = ahead - pair, after - slope
        step = (moved**2).sum((0, 1)) / (moved * turned).sum((0, 1)).abs()
        pair, slope = ahead, after
    ends = highest.cpu().numpy()
    found = {
        "bound": best.upper_bound,
        "gap": best.gap,
        "seconds": taken,
        "highest_end": float(ends.max()),
        "highest_of_random_starts": float(ends[1::2].max()),
        "ascents_s": time.perf_counter() - start,
    }
    say(f"{n_neurons:,} neurons, {seed}: {found}")
    return found


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
    where, call = f"on {os.cpu_count()} cores", in_fresh_process
    if place == "cuda":
        import torch

        call = _in_this_process
        where = f"products on {torch.cuda.get_device_name()}, the rest {where}"
    notes = [
        f"networks with log-normal degrees, largest |λ| {RADIUS}, T/τ = {DURATION / TAU:g}"
        f", η = {ETA:g}; {where}",
        "time from `unfold` to the proven optimum, of the processors on a host, where "
        "wall_s is the time with other load; construct_s: scaling W by its largest "
        "eigenvalue; memory beyond 12 bytes per connection, of the whole process",
    ]
    report = Report(f"connectome: {place}", notes, rows)
    for n_connections, name in product(sizes, problems()):
        detail = call(solved, n_connections=n_connections, name=name, place=place)
        seconds = detail.pop("seconds")
        detail.pop("peak_bytes", None)
        taken.setdefault(name, []).append(seconds)
        met, target = None, ""
        if n_connections == N_CONNECTIONS:
            met = detail["gap"] <= GAP and seconds <= SECONDS[place]
            met &= detail["mib"] <= MEMORY
            target = f"gap ≤ {GAP:g}, ≤ {SECONDS[place]} s, ≤ {MEMORY} MiB"
        sizes_of = f"{detail.pop('cells'):,} cells, {detail.pop('connections'):,}"
        title = f"{sizes_of} connections, {name}"
        rows.append(Row(title, seconds, "s", target, met, detail))
        write_json(_record(place), [report])
    for name, seconds in taken.items():
        if len(sizes) < 2:
            break
        slope = float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))
        title = f"growth of time in connections, {name}"
        rows.append(Row(title, slope, "", f"≤ {EXPONENT}", slope <= EXPONENT, {}))
    if place == "cuda":
        _attack(report, place)
    saturated(report, place)
    return report


def saturated(report: Report, place: str, n_neurons: int = N_NEURONS) -> None:
    """The saturating network, with a few series first, which a GPU compares with a host."""
    call = _in_this_process if place == "cuda" else in_fresh_process
    for n_series in sorted({N_SERIES["host"], N_SERIES[place]}):
        detail = call(integrated, n_neurons=n_neurons, n_series=n_series, place=place)
        ratio = detail["seconds"] / detail["products_alone_s"]
        detail.pop("peak_bytes", None)
        title = f"{n_neurons:,} tanh neurons, {n_series} series: states and gradient"
        row = ratio, "× products", f"≤ {OVER}", ratio <= OVER
        report.rows.append(Row(title, *row, detail))
        write_json(_record(place), [report])


def attack() -> Report:
    """The bounds of ten networks of each size, attacked on a host: half an hour."""
    note = f"{N_STARTS} starts for each network, {N_ASCENDED['cpu']} steps each"
    report = Report("connectome: bounds attacked", [note], [])
    _attack(report, "cpu")
    return report


def _attack(report: Report, place: str) -> None:
    name = "connectome-attacked.json" if place == "cpu" else _record(place).name
    for n_neurons in ATTACKED:
        ends = list[dict[str, Any]]()
        title = f"{N_STARTS} ascents of another gradient, {n_neurons:,} neurons"
        report.rows.append(Row(title, 0.0, "", "", None, {}))
        for seed in range(N_NETWORKS):
            ends.append(attacked(n_neurons, seed, place))
            below = min(1 - one["highest_end"] / one["bound"] for one in ends)
            detail = {"networks": len(ends), "all": ends}
            row = 1e6 * below, "millionths below the bound", "≥ 0", below >= -ROUNDED
            report.rows[-1] = Row(title, *row, detail)
            write_json(_record(place).with_name(name), [report])


def _in_this_process(function: Callable[..., Any], **arguments: Any) -> Any:
    return function(**arguments)


def _record(place: str) -> Path:
    folder = Path(os.environ.get("OUT", FOLDER))
    return folder / ("connectome.json" if place == "host" else f"connectome-{place}.json")


if __name__ == "__main__":
    given = [int(float(one)) for one in sys.argv[1:] if one not in ("cuda", "attacked")]
    if "attacked" in sys.argv:
        attack().show()
        sys.exit()
    run(1, "cuda" if "cuda" in sys.argv else "host", tuple(given) or SIZES).show()
