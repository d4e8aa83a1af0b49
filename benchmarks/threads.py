"""The library with default settings, against one BLAS thread and all threads.

Each variant is a separate process, because BLAS reads its variables when it is loaded. All
stay alive and work in turn, so that other load on the machine affects all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from statistics import median
from typing import Any

from ._measure import Report, Row

#: Wall and processor time of a job of some size.
Ask = Callable[[str, int], tuple[float, float]]

SIZES = (60, 100, 500, 1000)
N_SERIES = 200
#: Numbers of series, steps and evaluations through `Dynamics`, which is slow at N = 1000.
N_INTEGRATED, N_STEPS, N_EVALUATIONS = 50, 10, 2
LARGEST = 1.2
#: Load average below which both cores of a machine of two are free.
IDLE = 0.5
#: Largest number of calls of a job, and the time after which to stop.
MOST_CALLS, ENOUGH_SECONDS = 10, 2.0
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Number of threads that the user sets; None for no setting.
VARIANTS = {"as it comes": None, "one thread": 1, "all threads": os.cpu_count()}
#: Longest life of a process that keeps a core busy.
_BUSY_SECONDS = 1800


def run(rounds: int) -> Report:
    """Ratios for every job and size, on the machine as it is and on a busy one."""
    rows = []
    with ExitStack() as stack:
        ask = {name: stack.enter_context(_worker(n)) for name, n in VARIANTS.items()}
        for busy in (False, True):
            with _busy(os.cpu_count() or 1) if busy else ExitStack():
                for job in JOBS:
                    for n in SIZES:
                        rows += _rows(ask, job, n, busy, rounds)
    notes = [
        f"{N_SERIES} series of 140 steps, N neurons; pooled: N series. Through Dynamics: "
        f"{N_INTEGRATED} series of {N_STEPS} steps, {N_EVALUATIONS} evaluations, one start",
        "default: no variable set. One thread, all threads: OMP_NUM_THREADS and similar "
        "variables set. Busy: with one endless loop per core; otherwise the machine as it "
        "was, with its load average",
        f"median over {rounds} rounds of the ratio within a round; a time is the least of "
        f"up to {MOST_CALLS} calls. All threads: up to N = 100, beyond on an idle machine",
    ]
    return Report("threads: default settings over one BLAS thread", notes, rows)


def _rows(ask: dict[str, Ask], job: str, n: int, busy: bool, rounds: int) -> list[Row]:
    load = os.getloadavg()[0]
    # With all threads a large solve takes minutes if another job uses a core.
    everything = not busy and (n <= 100 or load < IDLE)
    names = [name for name in ask if name != "all threads" or everything]
    if n < 500 or job.startswith("Pooled"):
        for name in names:
            ask[name](job, n)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(ask[name](job, n))
    rows = []
    for name in names[1:]:
        pairs = list(zip(found["as it comes"], found[name], strict=True))
        ratios = [own[0] / other[0] for own, other in pairs]
        limit = LARGEST if name == "one thread" else None
        if name == "all threads" and n == 1000:
            limit = 1.1
        detail = {f"{key}, s": median(wall for wall, _ in x) for key, x in found.items()}
        detail |= {
            "processor time": median(own[1] / other[1] for own, other in pairs),
            "low": min(ratios),
            "high": max(ratios),
            "load average": round(load, 1),
        }
        row = Row(
            f"{job}, N = {n}{', busy' if busy else ''}: over {name}",
            median(ratios),
            "×",
            "" if limit is None else f"target ≤ {limit:g}",
            None if limit is None else median(ratios) <= limit,
            detail,
        )
        print(f"  {row.name}: {row.value:.2f}", file=sys.stderr)
        rows.append(row)
    return rows


@contextmanager
def _worker(n_threads: int | None) -> Iterator[Ask]:
    """A process that does jobs on request."""
    env = {key: value for key, value in os.environ.items() if key not in _VARIABLES}
    if n_threads is not None:
        env |= dict.fromkeys(_VARIABLES, str(n_threads))
    command = [sys.executable, "-m", "benchmarks.threads"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        sent, got = process.stdin, process.stdout
        assert sent is not None
        assert got is not None

        def ask(job: str, n: int) -> tuple[float, float]:
            print(json.dumps([job, n]), file=sent, flush=True)
            wall, processor = json.loads(got.readline())
            return wall, processor

        yield ask
        sent.close()


@contextmanager
def _busy(n_cores: int) -> Iterator[None]:
    """Run endless loops on ``n_cores`` cores."""
    loop = f"import time\nend = time.time() + {_BUSY_SECONDS}\n"
    loop += "while time.time() < end: pass"
    loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(n_cores)]
    try:
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


@cache
def _series(n_series: int = N_SERIES) -> tuple[Any, Any]:
    from greenfold.datasets import synthetic_heartbeats

    return synthetic_heartbeats(n_series, rng=0)


def _linear(n: int) -> Callable[[], Any]:
    from greenfold import Reservoir, SampleStimuli, optimize, unfold

    system = unfold(Reservoir.random(n, rng=1), n_steps=140, dt=10 / 140)
    stimuli = SampleStimuli(*_series())
    return lambda: optimize(system, stimuli)


def _dynamics(n: int) -> Callable[[], Any]:
    from greenfold import Ascent, Dynamics, Gain, Reservoir, SampleStimuli, optimize

    X, y = _series(N_INTEGRATED)
    network = Reservoir.random(n, gain=Gain.tanh(), rng=1)
    system = Dynamics(network, n_steps=N_STEPS, dt=10 / 140, tol=1e-3)
    stimuli = SampleStimuli(X[:, :: 140 // N_STEPS], y)
    method = Ascent(n_starts=1, max_evaluations=N_EVALUATIONS)
    return lambda: optimize(system, stimuli, method=method)


def _classifier(n: int) -> Callable[[], Any]:
    from greenfold import ReservoirClassifier

    return lambda: ReservoirClassifier(n_neurons=n, random_state=0).fit(*_series())


def _pooled(n: int) -> Callable[[], Any]:
    from greenfold import PooledReservoirClassifier

    return lambda: PooledReservoirClassifier(random_state=0).fit(*_series(n))


#: Timed jobs by their name in the table: functions from the size to the work.
JOBS = {
    "optimize, linear": _linear,
    "optimize, Dynamics": _dynamics,
    "ReservoirClassifier.fit": _classifier,
    "PooledReservoirClassifier.fit": _pooled,
}


def _serve() -> None:
    made: dict[tuple[str, int], Callable[[], Any]] = {}
    for line in sys.stdin:
        job, n = json.loads(line)
        if (job, n) not in made:
            made.clear()  # the larger networks take memory
            made[job, n] = JOBS[job](n)
        print(json.dumps(_least_seconds(made[job, n])), flush=True)


def _least_seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and processor time, the shortest of a few calls: other load only adds."""
    walls: list[float] = []
    processor: list[float] = []
    while len(walls) < MOST_CALLS and sum(walls) < ENOUGH_SECONDS:
        start, used = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return min(walls), min(processor)


if __name__ == "__main__":
    _serve()
