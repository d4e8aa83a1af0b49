"""Modules that a fit enters, and switches between them, as a reader of the code would.

`python -m benchmarks.switches` fits a classifier with η cross-validated on 200 synthetic
heartbeats and follows every call of a function of greenfold. A switch is a call in another
module than the call before it. To compare two checkouts, put the other one first on the
PYTHONPATH.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any


def count(**parameters: Any) -> tuple[set[str], Counter[tuple[str, str]]]:
    """Modules entered by a fit, and the number of switches for each pair of them."""
    from greenfold import ReservoirClassifier
    from greenfold.datasets import synthetic_heartbeats

    X, y = synthetic_heartbeats(200, rng=0)
    classifier = ReservoirClassifier(random_state=0, **parameters)
    classifier.fit(X, y)  # do late imports now
    modules: set[str] = set()
    switches: Counter[tuple[str, str]] = Counter()
    last = ""

    def follow(frame: FrameType, event: str, _: Any) -> None:
        nonlocal last
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith("greenfold"):
            return
        modules.add(module)
        if last and module != last:
            switches[last, module] += 1
        last = module

    sys.setprofile(follow)
    try:
        classifier.fit(X, y)
    finally:
        sys.setprofile(None)
    return modules, switches


def main() -> None:
    """Print the counts, and the pairs that cost most."""
    for name, parameters in (("fit", {}), ("fit, certified", {"certify": True})):
        modules, switches = count(**parameters)
        print(f"{name}: {len(modules)} modules, {switches.total()} switches")
        for (one, other), number in switches.most_common(8):
            print(f"  {number:5d}  {one} → {other}")


if __name__ == "__main__":
    main()
