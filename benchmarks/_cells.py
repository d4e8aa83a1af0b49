"""Benchmarks of many independent cells, in processes: kept, resumed, bounded in time.

A module with a function ``cells(found)`` names its cells; ``report(found)`` makes a table
of those that are found. Every result is a line of ``cells.jsonl``, added when it is there,
so that an interrupted run loses no more than what was in work. Later cells may depend on
what is found.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import greenfold
from greenfold._base.files import plain

from ._measure import Report, machine

Found = dict[str, Any]
#: Seconds that cells in work may overrun the budget.
GRACE = 2.0


@dataclass(frozen=True)
class Cell:
    """One piece of work; its result must be plain numbers, texts, lists and dicts.

    Attributes
    ----------
    key : str
        Unique within its benchmark; what it holds before the first "|" is its part.
    work : callable
        A function of a module.
    arguments : tuple
    turn : int
        Cells of a lower turn come first, those of all benchmarks of a run.
    """

    key: str
    work: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    turn: int = 0


class Benchmark(Protocol):
    """A module that has cells."""

    __name__: str

    def cells(self, found: Found) -> Iterable[Cell]:
        """All cells that can be run, given those that are found."""
        ...

    def report(self, found: Found) -> Report:
        """The table of what is found."""
        ...


@cache
def source() -> str:
    """A hash of the library's source, to tell results of two states apart."""
    folder, seen = Path(greenfold.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        seen.update(path.read_bytes())
    return seen.hexdigest()[:10]


@dataclass
class Kept:
    """The file of results.

    Attributes
    ----------
    folder : Path
    lines : dict
        The last line of every cell, by benchmark and key.
    machines : dict
        What ran each state of the source.
    """

    folder: Path
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self._path.exists():
            return
        for text in self._path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:  # a line that a killed run left half written
                continue
            if "machine" in line:
                self.machines[line["source"]] = line["machine"]
            else:
                self.lines[line["cell"]] = line

    @property
    def _path(self) -> Path:
        return self.folder / "cells.jsonl"

    def add(self, line: dict[str, Any]) -> None:
        """Append a line."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if "cell" in line:
            self.lines[line["cell"]] = line
        else:
            self.machines[line["source"]] = line["machine"]
        with self._path.open("a+b") as file:
            half = file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n"
            text = json.dumps(line, ensure_ascii=False)
            file.write((b"\n" if half else b"") + text.encode() + b"\n")

    def of(self, name: str) -> Found:
        """Results of a benchmark by key, without those that failed."""
        start = f"{name}/"
        return {
            cell.removeprefix(start): line["result"]
            for cell, line in self.lines.items()
            if cell.startswith(start) and "result" in line
        }

    def costs(self) -> None:
        """Print how many core-seconds each part took."""
        found: dict[str, list[float]] = {}
        for cell, line in self.lines.items():
            found.setdefault(_part(cell), []).append(line["core_seconds"])
        for part, seconds in found.items():
            total, most = sum(seconds), max(seconds)
            told = f"{total:.0f} core-seconds, at most {most:.1f}"
            print(f"{part}: {len(seconds)} cells, {told}")
        print(f"{sum(map(sum, found.values())):.0f} core-seconds in all")

    def notes(self, name: str) -> list[str]:
        """What to say of the cells of a benchmark: machine, source, cost."""
        mine = [line for cell, line in self.lines.items() if cell.startswith(f"{name}/")]
        seconds = sum(line["core_seconds"] for line in mine)
        notes = [f"{len(mine)} cells, {seconds:,.0f} core-seconds"]
        for state in sorted({line["source"] for line in mine}):
            share = sum(line["source"] == state for line in mine)
            told = ", ".join(f"{k} {v}" for k, v in self.machines.get(state, {}).items())
            version = f"greenfold {greenfold.__version__}, source {state}"
            notes.append(f"{version}: {share} cells on {told}")
        failed = [line for line in mine if "error" in line]
        if failed:
            notes.append(f"{len(failed)} cells failed, the first: {failed[0]['error']}")
        return notes


def default_folder() -> Path:
    """Where results are kept if no folder is named."""
    return Path(tempfile.gettempdir()) / "greenfold-benchmarks"


def short(module: Benchmark) -> str:
    """Name of a benchmark."""
    return module.__name__.rpartition(".")[2]


def _quiet() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _worked(cell: str, work: Callable[..., Any], arguments: tuple[Any, ...]) -> dict:
    """One line of the file."""
    started, busy = time.perf_counter(), time.process_time()
    line: dict[str, Any] = {"cell": cell, "source": source()}
    try:
        line["result"] = plain(work(*arguments))
    except Exception as error:  # the other cells go on
        where = traceback.extract_tb(error.__traceback__)[-1]
        line["error"] = f"{type(error).__name__}: {error} ({where.name}:{where.lineno})"
    line["seconds"] = round(time.perf_counter() - started, 3)
    return {**line, "core_seconds": round(time.process_time() - busy, 3)}


def fill(
    modules: list[Benchmark], kept: Kept, jobs: int, budget: float = float("inf")
) -> None:
    """Run the missing cells of several benchmarks, until all are there or time is up.

    Parameters
    ----------
    modules : list of modules
        In the order of importance.
    kept : Kept
    jobs : int
        Number of processes.
    budget : float
        Seconds. A cell that would take longer than what is left does not begin, as far as
        the cells of its part tell.
    """
    started = time.monotonic()
    failed: set[str] = set()
    running: set[str] = set()
    began = 0
    done: queue.Queue[Any] = queue.Queue()

    def left() -> float:
        return budget - (time.monotonic() - started)

    def missing() -> list[tuple[str, Cell]]:
        found = []
        for module in modules:
            name = short(module)
            have = kept.of(name)
            every = [c for c in module.cells(have) if c.key not in have]
            found += [(f"{name}/{cell.key}", cell) for cell in every]
        busy = running | failed
        return sorted((c for c in found if c[0] not in busy), key=lambda c: c[1].turn)

    if budget <= 0 or not missing():
        return
    kept.add({"machine": machine(), "source": source()})
    if jobs == 1:
        while left() > 0 and (todo := missing()):
            name, cell = todo[0]
            _take(_worked(name, cell.work, cell.arguments), kept, failed, left)
        _tell_missing(missing())
        return
    with get_context("spawn").Pool(jobs, initializer=_quiet) as pool:
        try:
            while left() > -GRACE:
                todo = missing() if len(running) < jobs and left() > 0 else []
                for name, cell in todo:
                    if len(running) >= jobs:
                        break
                    if _cost(kept, name) > left():
                        continue
                    running.add(name)
                    began += 1
                    pool.apply_async(
                        _worked,
                        (name, cell.work, cell.arguments),
                        callback=done.put,
                        error_callback=done.put,
                    )
                if not running:
                    break
                try:
                    line = done.get(timeout=min(1.0, max(left() + GRACE, 0.01)))
                except queue.Empty:
                    continue
                if isinstance(line, BaseException):
                    raise line
                running.discard(line["cell"])
                _take(line, kept, failed, left)
        finally:
            pool.terminate()
    if running:
        print(f"stopped in work: {len(running)} cells, such as {min(running)}")
        running.clear()
    _tell_missing(missing())


def _cost(kept: Kept, name: str) -> float:
    """Seconds that the cells of the same part took, nothing if there is none."""
    part = name.partition("|")[0]
    known = [one["seconds"] for cell, one in kept.lines.items() if _part(cell) == part]
    return median(known) if known else 0.0


def _part(cell: str) -> str:
    return cell.partition("|")[0]


def _take(line: dict, kept: Kept, failed: set[str], left: Callable[[], float]) -> None:
    kept.add(line)
    what = line.get("error", "")
    if what:
        failed.add(line["cell"])
    remaining = f", {left():.0f} s left" if left() < float("inf") else ""
    print(f"{line['cell']}: {line['seconds']:.1f} s{remaining} {what}", flush=True)


def _tell_missing(todo: list[tuple[str, Cell]]) -> None:
    counts: dict[str, int] = {}
    for name, _ in todo:
        counts[_part(name)] = counts.get(_part(name), 0) + 1
    for part, count in counts.items():
        print(f"missing: {count} cells of {part}")
