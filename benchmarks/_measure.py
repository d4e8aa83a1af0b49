"""How a benchmark measures: medians of repeated calls, peak memory of a fresh process.

Run as a module this is that fresh process: ``python -m benchmarks._measure MODULE FUNCTION
JSON_ARGUMENTS`` calls the function and prints its result with the peak memory.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

MIB = 2**20
#: The peers that `make peers` installs, by the names of their modules.
PEERS = (
    "aeon",
    "dysts",
    "reservoirpy",
    "reservoir_computing",
    "statsmodels",
    "torchdiffeq",
)


@dataclass(frozen=True)
class Row:
    """One line of a benchmark's table.

    Attributes
    ----------
    name : str
        What was measured.
    value : float
        The measured figure: a ratio, or an amount of ``unit``.
    unit : str
    target : str
        The target; empty if there is none.
    met : bool or None
        Whether the target was met; None without a target.
    detail : dict
        The numbers behind the figure, printed after it and kept in the JSON.
    """

    name: str
    value: float
    unit: str
    target: str
    met: bool | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """Rows of one benchmark, and notes on how they were measured."""

    name: str
    notes: list[str]
    rows: list[Row]

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return asdict(self)

    def show(self) -> None:
        """Print the table."""
        print(f"\n{self.name}")
        for note in self.notes:
            print(f"  {note}")
        width = max((len(row.name) for row in self.rows), default=0)
        for row in self.rows:
            verdict = {True: "met", False: "NOT MET", None: ""}[row.met]
            figure = f"{row.value:,.1f} {row.unit}"
            print(f"  {row.name:<{width}}  {figure:>16}  {row.target:<22}{verdict}")
            detail = ", ".join(f"{key} {_short(v)}" for key, v in row.detail.items())
            print(f"      {detail}")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def median_seconds(work: Callable[[], Any], repeats: int, warm_up: int = 1) -> float:
    """Median wall time of one call after ``warm_up`` calls that do not count."""
    for _ in range(warm_up):
        work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def alternating_seconds(
    jobs: dict[str, tuple[Callable[[], Any], int]], rounds: int
) -> dict[str, list[float]]:
    """Time several jobs in turn, so that other load on the machine affects all of them.

    Parameters
    ----------
    jobs : dict
        Name to (work, calls per round); a round keeps the median of its calls.
    rounds : int

    Returns
    -------
    dict
        Name to one time per round. Ratios are taken within a round.
    """
    for work, _ in jobs.values():
        work()
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, (work, calls) in jobs.items():
            found[name].append(median_seconds(work, calls, warm_up=0))
    return found


def _status_kib(field: str) -> int | None:
    """One line of the kernel's status of this process, or None if there is none."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    lines = [line for line in text.splitlines() if line.startswith(f"{field}:")]
    return int(lines[0].split()[1]) if lines else None


def peak_bytes() -> int:
    """Largest resident memory of this process so far."""
    # On Linux ru_maxrss includes the process that started this one; the kernel's high-water
    # mark starts afresh with the program, so ask for it first.
    mark = _status_kib("VmHWM")
    if mark is not None:
        return mark * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Resident memory now; the peak if the system does not report it."""
    now = _status_kib("VmRSS")
    return peak_bytes() if now is None else now * 1024


def in_fresh_process(function: Callable[..., dict[str, Any]], **arguments: Any) -> dict:
    """Call a module-level function in a separate process.

    Parameters
    ----------
    function : callable
        It must return a dict that JSON can hold.
    **arguments
        Values that JSON can hold.

    Returns
    -------
    dict
        The result of the function, with ``peak_bytes`` of its process added.
    """
    command = [sys.executable, "-m", "benchmarks._measure"]
    module = function.__module__
    if module == "__main__":  # the program is `python -m benchmarks.…`
        module = str(getattr(sys.modules["__main__"].__spec__, "name", ""))
    command += [module, function.__name__, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{function.__name__} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def peers_needed() -> Iterator[None]:
    """Say what to install if a peer is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in PEERS:
            raise
        sys.exit(f"{error.name} is not installed; run `make peers`.")


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    import numpy as np
    from threadpoolctl import threadpool_info

    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "blas": blas[0]["internal_api"] if blas else "unknown",
        "blas_threads": blas[0]["num_threads"] if blas else None,
        "load_average": round(os.getloadavg()[0], 2),
    }


def write_json(path: Path, reports: list[Report], **more: Any) -> None:
    """Write reports and the machine, its load now, for the documentation.

    ``more`` is written with them.
    """
    found = {"machine": machine(), "benchmarks": [report.as_dict() for report in reports]}
    found |= more
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _child(module: str, function: str, arguments: str) -> None:
    result = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps({**result, "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    _child(*sys.argv[1:])
