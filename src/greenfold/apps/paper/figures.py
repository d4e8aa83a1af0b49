"""The frame of every figure: `reproduce` computes, records, draws and describes it.

Every figure is a module: its title and caption as docstring, its `Parameters`, ``FULL`` and
``QUICK``, and `compute`, `draw` and `summary`. It is written as SVG, PDF and PNG, with a
JSON file of all its numbers and of the parameters and versions that made them. To try
another value, change it at the top of the figure's file and run again.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.checks import must
from ..._base.files import plain, write_figure, write_json
from ..._base.progress import display
from ...datasets.archive import BinarySplit, ecg5000_paper
from ...datasets.parsing import DataError
from ..runner import run_map, source_digest, versions
from .setting import OnHeartbeats, style

#: What can be reproduced, in the order of the paper.
FIGURES = ("fig1", "fig2", "fig3", "fig4", "table1", "supplement", "beyond")
#: What every figure is written in.
_FORMATS = ("svg", "pdf", "png")
_CHECKPOINTS = ".checkpoints"
#: Whose versions are recorded.
_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib", "nest-simulator")


@dataclass(frozen=True)
class Outcome:
    """What came of one figure: its files and numbers, or why it was skipped."""

    name: str
    title: str
    files: tuple[Path, ...] = ()
    numbers: dict = field(default_factory=dict, repr=False)
    summary: tuple[str, ...] = ()
    seconds: float = 0.0
    skipped: str | None = None  # what is missing, and how to get it

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.title}: skipped. {self.skipped}"
        lines = [f"{self.title} ({self.seconds:.1f} s)"]
        lines += [f"  {line}" for line in self.summary]
        if self.files:
            kinds = ", ".join(path.suffix[1:] for path in self.files)
            lines.append(f"  → {self.files[0].with_suffix('')}.{{{kinds}}}")
        return "\n".join(lines)


@dataclass
class Run:
    """What a figure's `compute` is given; checkpoints lie in ``out_dir`` until the end."""

    name: str
    parameters: Any
    out_dir: Path
    n_jobs: int | None = 1
    heartbeats: BinarySplit | None = None
    data_dir: str | Path | None = None

    @property
    def ecg(self) -> BinarySplit:
        """The heartbeats, for a figure whose parameters are `OnHeartbeats`."""
        if self.heartbeats is None:
            raise RuntimeError(f"{self.name} was started without ECG5000.")
        return self.heartbeats

    @cached_property
    def folder(self) -> Path:
        """Checkpoints of exactly this run: these parameters, data, code and versions."""
        sources = source_digest(Path(__file__).parents[2])
        made_by = plain([asdict(self.parameters), versions(*_PACKAGES), sources])
        digest = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode())
        for array in self.heartbeats or ():
            digest.update(np.ascontiguousarray(array).tobytes())
        return self.out_dir / _CHECKPOINTS / f"{self.name}-{digest.hexdigest()[:16]}"

    def map(self, label: str, work: Callable[[Any], Any], items: Sequence[Any]) -> list:
        """Results of ``work(item)`` for every item; see `greenfold.apps.runner.run_map`."""
        named = {"label": f"{self.name}: {label}", "n_jobs": self.n_jobs}
        return run_map(work, items, self.folder, {"run": self.folder.name}, **named)

    def forget(self) -> None:
        """Remove the checkpoints of this figure, of this run and of earlier ones."""
        top = self.out_dir / _CHECKPOINTS
        for folder in top.glob(f"{self.name}-*"):
            shutil.rmtree(folder, ignore_errors=True)
        if top.is_dir() and not any(top.iterdir()):
            top.rmdir()


def reproduce(
    names: str | Iterable[str] = "all",
    out_dir: str | Path = "reproduction",
    quick: bool = False,
    data_dir: str | Path | None = None,
    n_jobs: int | None = None,
    redraw: bool = False,
) -> list[Outcome]:
    """Reproduce figures of the paper.

    An interrupted run continues where it stopped if you start it again with the same
    arguments. Figures whose data are missing are skipped, and say so.

    Parameters
    ----------
    names : str or iterable of str
        "all", or any of "fig1", "fig2", "fig3", "fig4", "table1", "supplement", "beyond".
    out_dir : str or Path
        Where the files go; made if it does not exist.
    quick : bool
        A reduced version of the same code: a few seconds per figure.
    data_dir : str or Path, optional
        Where ECG5000 lies; see `greenfold.datasets.load_dataset`.
    n_jobs : int, optional
        Processes; all cores by default.
    redraw : bool
        Draw the figures again from the JSON files in ``out_dir``, and compute nothing.

    Returns
    -------
    list of Outcome
        ``name``, ``files``, ``numbers`` and ``summary`` of each figure, or why it was
        ``skipped``.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        known = f"be among {', '.join(FIGURES)}, or 'all'"
        must(name in (*FIGURES, "all"), "names", known, repr(name))
    positive = n_jobs is None or (isinstance(n_jobs, int) and n_jobs >= 1)
    must(positive, "n_jobs", "be a positive integer", repr(n_jobs))
    folder, outcomes = Path(out_dir), []
    with display(), style():
        folder.mkdir(parents=True, exist_ok=True)
        for name in FIGURES:
            if name not in wanted and "all" not in wanted:
                continue
            module = importlib.import_module(f"{__package__}.{name}")
            parameters = module.QUICK if quick else module.FULL
            run = Run(name, parameters, folder, n_jobs, None, data_dir)
            if redraw:
                outcomes.append(_redrawn(module, run))
                continue
            try:
                if isinstance(parameters, OnHeartbeats):
                    run.heartbeats = ecg5000_paper(data_dir)
            except (OSError, ImportError, DataError) as error:
                outcomes.append(Outcome(name, told(module)[0], skipped=str(error)))
                continue
            outcomes.append(_computed(module, run, quick))
    return outcomes


def told(module: Any) -> tuple[str, str]:
    """Title and caption of a figure: the docstring of its module."""
    title, _, caption = module.__doc__.partition("\n")
    return title.rstrip("."), " ".join(caption.split())


def _computed(module: Any, run: Run, quick: bool) -> Outcome:
    """Compute one figure and write its files."""
    started = time.perf_counter()
    numbers = plain(module.compute(run))
    record = {
        "name": run.name,
        "quick": quick,
        "parameters": plain(asdict(run.parameters)),
        "versions": versions(*_PACKAGES),
        "seconds": round(time.perf_counter() - started, 2),
        "numbers": numbers,
    }
    outcome = _write(module, run.parameters, record, run.out_dir)
    run.forget()
    return outcome


def _redrawn(module: Any, run: Run) -> Outcome:
    """Draw and describe one figure from its record."""
    path = run.out_dir / f"{run.name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        parameters = recorded_parameters(module.FULL, record["parameters"])
    except FileNotFoundError:
        sentence = f"There is no record {path}: run it without `redraw` first."
        return Outcome(run.name, told(module)[0], skipped=sentence)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"The record {path} cannot be read ({error}): run it again."
        ) from None
    return _write(module, parameters, record, run.out_dir)


def _write(module: Any, parameters: Any, record: dict, folder: Path) -> Outcome:
    """The files of one figure; what is said about the numbers is always today's."""
    name, numbers, (title, caption) = record["name"], record["numbers"], told(module)
    summary = module.summary(numbers, parameters)
    first = {"name": name, "title": title, "caption": caption, "quick": record["quick"]}
    first["summary"] = summary
    figure = module.draw(numbers, parameters)
    files = [write_figure(folder / f"{name}.{kind}", figure) for kind in _FORMATS]
    files.append(folder / f"{name}.json")
    write_json(files[-1], first | {k: v for k, v in record.items() if k not in first})
    return Outcome(name, title, tuple(files), numbers, tuple(summary), record["seconds"])


def recorded_parameters(default: Any, recorded: dict[str, Any]) -> Any:
    """Parameters as a record has them; those that came later have their default."""
    known = {one.name for one in fields(default)}
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in recorded.items()
        if name in known
    }
    return replace(default, **given)
