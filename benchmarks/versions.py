"""CPU seconds of the main calls, beside those of another version of greenfold.

``python -m benchmarks.versions OTHER/src`` runs both versions in one go: one process each,
which take turns call by call. A ratio above one means that this version is faster. Make the
other version with ``git worktree add ../before COMMIT``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

#: A call is repeated until it has taken this many CPU seconds, in this many turns.
_SECONDS, _TURNS = 0.2, 9
#: The smallest ratio that counts as equally fast.
_EQUAL = 0.95


def calls() -> dict[str, Callable[[], object]]:
    """Return what is compared, by name."""
    import greenfold as gf
    from greenfold.datasets import synthetic_heartbeats

    X, y = synthetic_heartbeats(200, rng=0)
    network = gf.Reservoir.random(50, rng=3)
    square = gf.Reservoir.random(20, gain=gf.Gain.quadratic(0.05), rng=3)
    tanh = gf.Reservoir.random(30, gain=gf.Gain.tanh(), rng=3)
    gaussian = gf.GaussianStimuli.random(10, strength=1.0, rng=4)
    series = gf.SampleStimuli(X[:100, ::7], y[:100])
    # Every version proves this optimum; newer ones do more where older ones gave up.
    linear = gf.unfold(network, n_steps=10, dt=1.0)
    first = gf.unfold(square, n_steps=10, dt=1.0, order=1)
    integrated = gf.Dynamics(tanh, n_steps=20, dt=0.5)
    margin = gf.ReservoirClassifier(eta=10.0, random_state=0)
    chosen = gf.ReservoirClassifier(random_state=0)
    pooled = gf.PooledReservoirClassifier(random_state=0)
    read = gf.ReservoirClassifier(eta=10.0, random_state=0).fit(X, y)
    pool = gf.PooledReservoirClassifier(random_state=0).fit(X, y)
    return {
        "optimize, linear": lambda: gf.optimize(linear, gaussian),
        "optimize, order 1": lambda: gf.optimize(first, gaussian, rng=0),
        "optimize, Dynamics": lambda: gf.optimize(integrated, series, rng=0),
        "margin: fit, given η": lambda: margin.fit(X, y),
        "margin: fit, η chosen": lambda: chosen.fit(X, y),
        "margin: predict 5 series": lambda: read.predict(X[:5]),
        "margin: predict 200 series": lambda: read.predict(X),
        "pooled: fit": lambda: pooled.fit(X, y),
        "pooled: predict 5 series": lambda: pool.predict(X[:5]),
        "pooled: predict 200 series": lambda: pool.predict(X),
    }


def serve() -> None:
    """Answer the name of a call, line by line, with its CPU seconds."""
    warnings.simplefilter("ignore")
    known = calls()
    print(*known, sep="\t", flush=True)
    for name in map(str.strip, sys.stdin):
        count, start = 0, time.process_time()
        while time.process_time() - start < _SECONDS:
            known[name]()
            count += 1
        print((time.process_time() - start) / count, flush=True)


def open_version(source: str) -> subprocess.Popen[str]:
    """Start a process that imports greenfold from ``source``."""
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes)  # pyright: ignore[reportArgumentType, reportCallIssue]


def main(other: str) -> int:
    """Print seconds before and now with their ratio; return 1 if a call is slower."""
    own = str(Path(__file__).resolve().parents[1] / "src")
    versions = [open_version(source) for source in (other, own)]
    names = [one.stdout.readline().strip().split("\t") for one in versions]  # pyright: ignore[reportOptionalMemberAccess]
    slower = False
    for name in names[1]:
        taken: list[list[float]] = [[], []]
        for turn in range(_TURNS + 1):  # the first one warms up
            for one, seconds in zip(versions, taken, strict=True):
                assert one.stdin is not None
                assert one.stdout is not None
                print(name, file=one.stdin, flush=True)
                found = float(one.stdout.readline())
                seconds.extend([found] if turn else [])
        before, now = map(median, taken)
        slower |= before / now < _EQUAL
        verdict = "slower" if before / now < _EQUAL else "ok"
        print(f"{name:28s} {before:10.6f} {now:10.6f}  {before / now:5.2f}  {verdict}")
    return int(slower)


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        sys.exit(main(*sys.argv[1:]))
