"""Data larger than memory: dask against the same series in memory.

Series are made on the workers, chunk by chunk, and never here. Times are processor times of
the workers, the scheduler and this process together, because other load on the machine does
not change them; evaluations on the cluster and here alternate.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from greenfold import Ascent, Dynamics, Gain, Reservoir, SampleStimuli, optimize, unfold
from greenfold.stimuli.state_moments import StateMoments

from ._measure import MIB, Report, Row

N_SERIES, N_STEPS, N_CHUNKS, LIMIT = 2_000_000, 140, 40, 400
#: Number of series for comparing the linear order with the same in memory.
N_COMPARED = 4 * N_SERIES // N_CHUNKS
#: Number of series beyond the linear order.
N_NONLINEAR, N_PIECES = 50_000, 20
ETA = 10.0


def run(rounds: int) -> Report:
    """All parts, on one cluster after another."""
    # First, while this process is small: a new one inherits its memory count.
    rows = [*_long_and_wide(), *_linear(), *_growth_of_solve()]
    with _cluster("4GiB") as client:
        rows += _overhead(_Problem("order 1", 100, N_STEPS), client, rounds)
        rows += _overhead(_Problem("Dynamics", 12, 12), client, rounds)
        for problem in (_Problem("order 1", 50, 40), _Problem("Dynamics", 12, 12)):
            rows += _same_projections(problem, client)
    notes = [
        f"LocalCluster of two workers with one thread each; linear order: {N_SERIES:,} "
        f"series of {N_STEPS} steps in {N_CHUNKS} chunks, workers of {LIMIT} MiB; beyond: "
        f"{N_NONLINEAR:,} series in {N_PIECES} chunks",
        "times are processor times of workers, scheduler and client together, minus those "
        "of an idle cluster, so that other load on the machine does not count; the plain "
        "loop is the same evaluation on arrays in one process, in turn with it",
    ]
    return Report("data: larger than memory", notes, rows)


@contextmanager
def _cluster(memory: str) -> Iterator[Any]:
    import dask.config
    from distributed import Client, LocalCluster

    made: Any = LocalCluster
    with (
        # How long others wait for a killed worker; 30 s by default.
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        made(
            n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _make_chunk(size: int, n_steps: int, block_info: Any = None) -> np.ndarray:
    """Series of two classes in turn, one with a wave on its noise."""
    first = block_info[None]["array-location"][0][0]
    rng = np.random.default_rng([7, first])
    X = rng.standard_normal((size, n_steps))
    odd = (first + np.arange(size)) % 2 == 1
    X[odd] += np.sin(np.arange(n_steps) / 7)
    X[~odd] *= 1.2
    return X


def _series(n: int, n_steps: int, n_chunks: int) -> tuple[Any, np.ndarray]:
    import dask.array as da

    made: Any = da.map_blocks
    size = n // n_chunks
    chunks = ((size,) * n_chunks, (n_steps,))
    X = made(_make_chunk, size, n_steps, chunks=chunks, dtype=float, meta=np.empty((0, 0)))
    return X, np.arange(n) % 2


def _peak() -> tuple[int, float]:
    """Process, and its peak memory in bytes."""
    with open("/proc/self/status", encoding="ascii") as lines:
        found = next(line for line in lines if line.startswith("VmHWM"))
    return os.getpid(), 1024.0 * int(found.split()[1])


def _cpu(client: Any) -> float:
    """Processor time of all; the scheduler is in this process."""
    return sum(client.run(time.process_time).values()) + time.process_time()


def _idle(client: Any, seconds: float = 5.0) -> float:
    """Processor time per second of a cluster without work."""
    start, spent = time.perf_counter(), _cpu(client)
    time.sleep(seconds)
    return (_cpu(client) - spent) / (time.perf_counter() - start)


def _linear() -> list[Row]:
    X, y = _series(N_SERIES, N_STEPS, N_CHUNKS)
    with _cluster(f"{LIMIT}MiB") as client:
        before = {pid for pid, _ in client.run(_peak).values()}
        start, spent = time.perf_counter(), _cpu(client)
        stimuli = SampleStimuli.from_dask(X, y)
        wall, spent = time.perf_counter() - start, _cpu(client) - spent
        peaks = dict(client.run(_peak).values())
        part = SampleStimuli.from_dask(X[:N_COMPARED], y[:N_COMPARED])
    values = X[:N_COMPARED].compute(scheduler="synchronous")
    whole = SampleStimuli(values, y[:N_COMPARED])
    apart = max(
        float(np.abs(a - b).max() / np.abs(b).max())
        for a, b in ((part.mu, whole.mu), (np.asarray(part.psi), np.asarray(whole.psi)))
    )
    largest = max(peaks.values()) / MIB
    same = set(peaks) == before
    detail = {"seconds": wall, "processor_seconds": spent, "mu": float(stimuli.mu[3])}
    return [
        Row(
            f"linear order, {N_COMPARED:,} of the series: largest relative difference of μ "
            "and ψ from those in memory",
            1e15 * apart,
            "10⁻¹⁵",
            "rounding, ≤ 100",
            apart <= 1e-13,
            {"difference": apart},
        ),
        Row(
            f"linear order, {N_SERIES:,} series: largest memory of a worker",
            largest,
            "MiB",
            f"≤ {LIMIT}",
            largest <= LIMIT and same,
            {"workers_kept": same, "series_MiB": 8 * N_SERIES * N_STEPS / MIB, **detail},
        ),
    ]


def _growth_of_solve() -> list[Row]:
    """Time to solve the linear order when the moments are known."""
    unfolding = unfold(Reservoir.random(100, rng=0), n_steps=N_STEPS, dt=10 / N_STEPS)
    found = {}
    for n, n_chunks in ((10_000, 2), (200_000, 8)):
        stimuli = SampleStimuli.from_dask(*_series(n, N_STEPS, n_chunks))
        optimize(unfolding, stimuli, ETA)
        taken = []
        for _ in range(3):
            start = time.process_time()
            optimize(unfolding, stimuli, ETA)
            taken.append(time.process_time() - start)
        found[n] = median(taken)
    (few, a), (many, b) = found.items()
    return [
        Row(
            f"linear order, solve at N = 100: time for {many:,} series over {few:,}",
            b / a,
            "×",
            "about 1",
            0.5 <= b / a <= 2,
            {"few": a, "many": b},
        )
    ]


def _long_and_wide() -> list[Row]:
    """Few series that are long or have many channels, through ``greenfold fit``."""
    rng = np.random.default_rng(0)
    slow = rng.standard_normal((6, 1, 20_000)).cumsum(axis=2) / 100
    slow[1::2] += np.sin(np.arange(20_000) / 500)
    wide = rng.standard_normal((40, 64, 200))
    wide[1::2] += 0.3 * np.sin(np.arange(200) / 9)
    rows = []
    for name, X in {
        "6 series of 20,000 steps": slow,
        "40 series of 64 channels and 200 steps": wide,
    }.items():
        found, usage = _fit(X)
        spent, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MIB
        what = f"greenfold fit, 100 neurons, {name}"
        detail = {key: found[key] for key in ("soft_margin", "soft_margin_bound")}
        rows += [
            Row(f"{what}: processor time", spent, "s", "≤ 30", spent <= 30, detail),
            Row(f"{what}: memory", peak, "MiB", "≤ 1000", peak <= 1000, {}),
        ]
    return rows


def _fit(X: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Output of the command for these series, and the cost of its process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "series.npz")
        np.savez(path, X=X, y=np.arange(len(X)) % 2)
        command = [sys.executable, "-m", "greenfold", "fit", str(path), "-n", "100"]
        process = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        said = process.stdout.read()
        _, process.returncode, usage = os.wait4(process.pid, 0)
    return json.loads(said), usage


class _Problem:
    """A system, its series on the cluster and in memory."""

    def __init__(self, name: str, n_neurons: int, n_steps: int) -> None:
        self.name, self.n_neurons, self.n_steps = name, n_neurons, n_steps

    @cached_property
    def system(self) -> Any:
        dt = 10 / self.n_steps
        if self.name == "order 1":
            network = Reservoir.random(self.n_neurons, gain=Gain.quadratic(0.02), rng=0)
            return unfold(network, n_steps=self.n_steps, dt=dt, order=1)
        network = Reservoir.random(self.n_neurons, gain=Gain.tanh(), rng=0)
        return Dynamics(network, n_steps=self.n_steps, dt=dt, tol=1e-5)

    def stimuli(self, n: int, client: Any) -> tuple[SampleStimuli, SampleStimuli]:
        X, y = _series(n, self.n_steps, N_PIECES)
        X = X.rechunk({0: n // N_PIECES})
        given = SampleStimuli.from_dask(X, y, client=client, class_weight=None)
        return given, SampleStimuli(X.compute(), y, class_weight=None)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(1)
        u, v = rng.standard_normal((2, self.n_neurons))
        return u[:, None] / np.linalg.norm(u), v / np.linalg.norm(v)


def _overhead(problem: _Problem, client: Any, rounds: int) -> list[Row]:
    u, v = problem.start()
    found: dict[int, dict[str, float]] = {}
    for n in (N_NONLINEAR, 2 * N_NONLINEAR):
        scattered, whole = problem.stimuli(n, client)
        maps = {"cluster": scattered, "here": whole}
        at = {name: one.moment_map(problem.system) for name, one in maps.items()}
        idle = _idle(client)
        spent: dict[str, list[float]] = {name: [] for name in at}
        walls: dict[str, list[float]] = {name: [] for name in at}
        for turn in range(rounds + 1):
            for name, moments in at.items():
                start, wall = _cpu(client), time.perf_counter()
                moments(u).pull(v, ETA)
                if turn:  # the first one sends the system, and makes the series
                    walls[name].append(time.perf_counter() - wall)
                    own = _cpu(client) - start
                    spent[name].append(own - idle * walls[name][-1])
        found[n] = {name: median(times) for name, times in spent.items()}
        found[n] |= {"idle": idle, "ratio": _ratio(spent), "wall_ratio": _ratio(walls)}
    few, many = found
    growth = np.log(found[many]["cluster"] / found[few]["cluster"]) / np.log(many / few)
    what = f"{problem.name}, N = {problem.n_neurons}, {problem.n_steps} steps"
    overhead = 100 * (found[few]["ratio"] - 1)
    return [
        Row(
            f"{what}: evaluation of {few:,} series on the cluster, extra time over a loop",
            overhead,
            "%",
            "≤ 20",
            bool(overhead <= 20),
            found[few],
        ),
        Row(
            f"{what}: exponent of the growth of an evaluation with the series, {few:,} to "
            f"{many:,}",
            float(growth),
            "",
            "1 ± 0.15",
            bool(abs(growth - 1) <= 0.15),
            {"few": found[few]["cluster"], "many": found[many]["cluster"]},
        ),
    ]


def _ratio(times: dict[str, list[float]]) -> float:
    """Ratio of times measured in turn."""
    return median(a / b for a, b in zip(times["cluster"], times["here"], strict=True))


def _same_projections(problem: _Problem, client: Any) -> list[Row]:
    scattered, whole = problem.stimuli(N_NONLINEAR, client)
    method = Ascent(n_starts=1)
    found = optimize(problem.system, scattered, ETA, method)
    plain = optimize(problem.system, whole, ETA, method)
    original, calls = StateMoments.pull, []

    def pull(self: StateMoments, v: np.ndarray, eta: float) -> np.ndarray:
        calls.append(None)
        if len(calls) == 3:
            os.kill(next(iter(client.run(os.getpid).values())), 9)
        return original(self, v, eta)

    StateMoments.pull = pull
    try:
        again = optimize(problem.system, scattered, ETA, method)
    finally:
        StateMoments.pull = original
    apart = float(np.abs(found.u - plain.u).max())
    lost = float(np.abs(found.u - again.u).max())
    what = f"{problem.name}, N = {problem.n_neurons}, {problem.n_steps} steps"
    return [
        Row(
            f"{what}: largest difference of u from that in memory",
            1e8 * apart,
            "10⁻⁸",
            "≤ 1",
            apart <= 1e-8,
            {"kappa": found.soft_margin, "here": plain.soft_margin, "n_iter": found.n_iter},
        ),
        Row(
            f"{what}: the same after a worker was killed in the third gradient",
            1e8 * lost,
            "10⁻⁸",
            "0",
            lost == 0 and len(calls) > 3,
            {"gradients": len(calls)},
        ),
    ]
