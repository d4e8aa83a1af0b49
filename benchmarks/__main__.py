"""``python -m benchmarks [NAME …] [--json PATH]`` runs all benchmarks, or those named."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from ._measure import machine, peers_needed, write_json

#: Modules of this package with a function ``run(rounds)`` that returns a Report.
NAMES = (
    "unfolding",
    "optimum",
    "normal",
    "nonlinear",
    "dynamics",
    "echo_state",
    "saturation",
    "classification",
    "proofs",
    "masks",
    "shared_input",
    "regression",
    "forecast",
    "forecast_systems",
    "sequences",
    "pooled",
    "pooled_study",
    "reservoirs",
    "nest_recording",
    "recordings",
    "eta_choice",
    "data",
    "threads",
)


def main() -> None:
    """Parse the arguments, run the benchmarks, print and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers")
    parser.add_argument("--rounds", type=int, default=5, help="repeats of every timing")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there is {', '.join(NAMES)}")
    print("machine: " + ", ".join(f"{key} {value}" for key, value in machine().items()))
    reports = []
    for name in options.names or NAMES:
        with peers_needed():
            report = importlib.import_module(f"benchmarks.{name}").run(options.rounds)
        report.show()
        reports.append(report)
    print(f"\nload average {machine()['load_average']} at the end")
    if options.json:
        write_json(options.json, reports)


if __name__ == "__main__":
    main()
