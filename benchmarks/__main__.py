"""``python -m benchmarks [NAME …] [--json PATH]`` runs all benchmarks, or those named.

Some consist of many cells. These are kept in a folder (``--kept``), so that a second call
continues a stopped one; ``--jobs`` runs several at once, ``--budget`` bounds the time (0:
report what is kept).
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from greenfold.datasets import DataError

from ._measure import Report, machine, peers_needed, write_json

#: Modules of this package with a function ``run(rounds)`` that returns a Report, or with
#: ``cells`` (see `_cells`).
NAMES = (
    "unfolding",
    "optimum",
    "normal",
    "connectome",
    "nonlinear",
    "dynamics",
    "echo_state",
    "saturation",
    "classification",
    "proofs",
    "masks",
    "shared_input",
    "regression",
    "ordinary",
    "forecast",
    "forecast_systems",
    "equal_time",
    "bands",
    "long_run",
    "sequences",
    "pooled",
    "pooled_study",
    "reservoirs",
    "nest_recording",
    "recordings",
    "devices",
    "device_tasks",
    "refine",
    "eta_choice",
    "data",
    "threads",
)


def _kept(modules: list[Any], options: argparse.Namespace) -> Any:
    """Run cells of several modules together, and return what is kept of them."""
    from . import _cells

    kept = _cells.Kept(options.kept or _cells.default_folder())
    _cells.fill(modules, kept, options.jobs, options.budget)
    return kept


def _reported(module: Any, kept: Any) -> Report:
    name = module.__name__.rpartition(".")[2]
    made = module.report(kept.of(name))
    return replace(made, notes=[*made.notes, *kept.notes(name)])


def main() -> None:
    """Parse the arguments, run the benchmarks, print and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers")
    parser.add_argument("--rounds", type=int, default=5, help="repeats of every timing")
    parser.add_argument("--jobs", type=int, default=1, help="processes, for cells")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="results of cells")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there is {', '.join(NAMES)}")
    print("machine: " + ", ".join(f"{key} {value}" for key, value in machine().items()))
    names = options.names or NAMES
    with peers_needed():
        modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
        celled: list[Any] = [one for one in modules.values() if hasattr(one, "cells")]
        kept = _kept(celled, options) if celled else None
        reports = []
        for module in modules.values():
            if kept is not None and module in celled:
                reports.append(_reported(module, kept))
            else:
                try:
                    reports.append(module.run(options.rounds))
                except (FileNotFoundError, DataError) as error:
                    name = module.__name__.rpartition(".")[2]
                    raise SystemExit(f"benchmark {name}: {error}") from None
            reports[-1].show()
    if kept is not None:
        print()
        kept.costs()
    print(f"\nload average {machine()['load_average']} at the end")
    if options.json:
        # Cells may have run elsewhere.
        where = list(kept.machines.values()) if kept else []
        more = {"machine": where[-1]} if where and len(celled) == len(modules) else {}
        write_json(options.json, reports, **more)


if __name__ == "__main__":
    main()
