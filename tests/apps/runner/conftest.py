"""Work that leaves traces, in a module that other processes can import."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenfold.apps.runner import Job

TOYS = """
import os, signal, time
from greenfold.apps.runner import SEAL

def work(configuration, context):
    number = configuration["number"]
    with open(os.path.join(context["log"], "calls"), "a") as log:
        log.write(f"{number}\\n")
    kind = configuration.get("kind")
    if kind == "raise":
        raise ValueError("the number is bad")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "die":
        os._exit(9)
    if kind == "interrupt" and not os.path.exists(os.path.join(context["log"], "once")):
        open(os.path.join(context["log"], "once"), "w").close()
        signal.raise_signal(signal.SIGINT)
    if kind == "print":
        print("noise")
    time.sleep(configuration.get("seconds", 0))
    return f"{number},{SEAL}\\n{number**2}\\n"
"""


class Toys:
    def __init__(self, folder: Path, work) -> None:
        self.log, self._work = folder, work

    def job(self, number: int, **more) -> Job:
        context = {"log": str(self.log)}
        return Job(f"r/{number}.csv", self._work, {"number": number, **more}, context)

    @property
    def calls(self) -> list[int]:
        path = self.log / "calls"
        return sorted(map(int, path.read_text().split())) if path.exists() else []


@pytest.fixture
def toys(tmp_path, monkeypatch) -> Toys:
    folder = tmp_path / "toys"
    folder.mkdir()
    (folder / "toy_work.py").write_text(TOYS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    import importlib
    import sys

    sys.modules.pop("toy_work", None)
    return Toys(folder, importlib.import_module("toy_work").work)
