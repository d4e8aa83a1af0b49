"""The library as it comes beside the same with one BLAS thread, and with all of them.

Each variant is a process of its own, because BLAS reads its variables when it is loaded.
All stay alive and are asked in turn, so that other load on the machine meets all of them.
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

SIZES = (60, 100, 500, 1000)
N_SERIES = 200
#: Series, steps and evaluations through `Dynamics`, which at N = 1000 takes long.
N_INTEGRATED, N_STEPS, N_EVALUATIONS = 50, 10, 2
LARGEST = 1.2
#: Load average below which a machine of two cores has both of them to offer.
IDLE = 0.5
#: A job is called so often at most, or until that much time has passed.
MOST_CALLS, ENOUGH_SECONDS = 10, 2.0
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Threads that the user asks for; None says nothing.
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
        "as it comes: no variable set. One thread, all threads: OMP_NUM_THREADS and its "
        "likes set. Busy: beside as many endless loops as there are cores; else the "
        "machine as it was, with its load average",
        f"median over {rounds} rounds, from N = 500 on half as many, of the ratio within a "
        f"round; a time is the least of up to {MOST_CALLS} calls",
    ]
    return Report("threads: as it comes over one BLAS thread", notes, rows)


def _rows(
    ask: dict[str, Callable[[str, int], float]], job: str, n: int, busy: bool, rounds: int
) -> list[Row]:
    # With all threads a large solve takes minutes on a busy machine.
    names = [name for name in ask if not (busy and name == "all threads")]
    load = os.getloadavg()[0]
    if n < 500 or job.startswith("Pooled"):
        for name in names:
            ask[name](job, n)
    else:
        rounds = -(-rounds // 2)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(ask[name](job, n))
    own = found["as it comes"]
    seconds = {f"{name}, s": median(times) for name, times in found.items()}
    rows = []
    for name in names[1:]:
        ratios = [a / b for a, b in zip(own, found[name], strict=True)]
        value = median(ratios)
        limit = LARGEST if name == "one thread" else None
        if name == "all threads" and n == 1000 and load < IDLE:
            limit = 1.1
        rows.append(
            Row(
                f"{job}, N = {n}{', busy' if busy else ''}: over {name}",
                value,
                "×",
                "" if limit is None else f"target ≤ {limit:g}",
                None if limit is None else value <= limit,
                {
                    **seconds,
                    "load": round(load, 1),
                    "low": min(ratios),
                    "high": max(ratios),
                },
            )
        )
        print(f"  {rows[-1].name}: {value:.2f} {rows[-1].detail}", file=sys.stderr)
    return rows


@contextmanager
def _worker(n_threads: int | None) -> Iterator[Callable[[str, int], float]]:
    """A process that does jobs when asked; gives the seconds of one."""
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

        def ask(job: str, n: int) -> float:
            print(json.dumps([job, n]), file=sent, flush=True)
            return float(got.readline())

        yield ask
        sent.close()


@contextmanager
def _busy(n_cores: int) -> Iterator[None]:
    """Endless loops on so many cores."""
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
    from greenfold import Dynamics, Gain, Reservoir, SampleStimuli, optimize

    X, y = _series(N_INTEGRATED)
    network = Reservoir.random(n, gain=Gain.tanh(), rng=1)
    system = Dynamics(network, n_steps=N_STEPS, dt=10 / 140, tol=1e-3)
    stimuli = SampleStimuli(X[:, :: 140 // N_STEPS], y)
    options: dict[str, Any] = {"n_starts": 1, "max_iter": N_EVALUATIONS, "rng": 0}
    return lambda: optimize(system, stimuli, **options)


def _classifier(n: int) -> Callable[[], Any]:
    from greenfold import ReservoirClassifier

    return lambda: ReservoirClassifier(n_neurons=n, random_state=0).fit(*_series())


def _pooled(n: int) -> Callable[[], Any]:
    from greenfold import PooledReservoirClassifier

    return lambda: PooledReservoirClassifier(random_state=0).fit(*_series(n))


#: What is timed, by its name in the table: from the size to the work.
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
        print(_least_seconds(made[job, n]), flush=True)


def _least_seconds(work: Callable[[], Any]) -> float:
    """The shortest of a few calls: what others do on the machine only adds."""
    taken: list[float] = []
    while len(taken) < MOST_CALLS and sum(taken) < ENOUGH_SECONDS:
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


if __name__ == "__main__":
    _serve()
