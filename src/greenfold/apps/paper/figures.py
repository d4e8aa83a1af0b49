"""The paper, reproduced: one file a figure, parameters at the top of each.

`reproduce` writes every figure as SVG, PDF and PNG, with a JSON file of all its numbers
and of the parameters and versions that made them. To try another value, change it at the
top of the figure's file and run again.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...datasets.archive import BinarySplit, ecg5000_paper
from ...datasets.errors import DataError

#: What can be reproduced, in the order of the paper.
FIGURES = ("fig1", "fig2", "fig3", "fig4", "table1", "supplement", "beyond")


@dataclass(frozen=True)
class Outcome:
    """What came of one figure.

    Attributes
    ----------
    name, title : str
    files : tuple of Path
        SVG, PDF, PNG and JSON; empty where the figure was skipped.
    numbers : dict
        As in the JSON file.
    summary : tuple of str
        What the figure says, in a few lines.
    seconds : float
    skipped : str or None
        One sentence that says what is missing and how to get it.
    """

    name: str
    title: str
    files: tuple[Path, ...] = ()
    numbers: dict = field(default_factory=dict, repr=False)
    summary: tuple[str, ...] = ()
    seconds: float = 0.0
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.title}: skipped. {self.skipped}"
        lines = [f"{self.title} ({self.seconds:.1f} s)"]
        lines += [f"  {line}" for line in self.summary]
        if self.files:
            kinds = ", ".join(path.suffix[1:] for path in self.files)
            lines.append(f"  → {self.files[0].with_suffix('')}.{{{kinds}}}")
        return "\n".join(lines)


def reproduce(
    names: str | Iterable[str] = "all",
    out_dir: str | Path = "reproduction",
    quick: bool = False,
    data_dir: str | Path | None = None,
    n_jobs: int | None = None,
    redraw: bool = False,
) -> list[Outcome]:
    """Reproduce figures of the paper.

    Parameters
    ----------
    names : str or iterable of str
        Of `FIGURES`, or "all".
    out_dir : str or Path
        Where the files go; made if it does not exist.
    quick : bool
        A reduced version, seconds a figure, of the same code.
    data_dir : str or Path, optional
        Where ECG5000 lies; see `greenfold.datasets.load_dataset`.
    n_jobs : int, optional
        Processes; all cores by default.
    redraw : bool
        Draw the figures again from the JSON files in ``out_dir``, and compute nothing;
        numbers, parameters and versions there stay as they are.

    Returns
    -------
    list of Outcome
        One a name. Figures whose data are missing are skipped, and say so.

    Notes
    -----
    A run that was interrupted goes on where it stopped when it is started again with the
    same arguments: finished units of work lie in ``out_dir/.checkpoints`` until their
    figure is written.
    """
    try:
        from .style import style
    except ImportError:
        raise ImportError(
            "the figures need matplotlib; install it with `pip install greenfold[report]`."
        ) from None
    from ..._base.progress import display
    from ..runner.pools import default_jobs
    from .run import Run

    chosen = _chosen(names)
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs < 1):
        raise ValueError(f"`n_jobs` must be a positive integer; got {n_jobs!r}.")
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with display() as shown, style():
        for name in chosen:
            module = importlib.import_module(f"{__package__}.{name}")
            if redraw:
                outcomes.append(_redraw(module, name, folder))
                continue
            heartbeats, sentence = None, None
            if module.NEEDS_ECG:
                heartbeats, sentence = _heartbeats(data_dir)
            if sentence:
                outcomes.append(Outcome(name, module.TITLE, skipped=sentence))
                continue
            parameters = module.QUICK if quick else module.FULL
            jobs = n_jobs or default_jobs()
            run = Run(name, parameters, folder, jobs, heartbeats, data_dir, shown)
            outcomes.append(_finish(module, run, quick))
    return outcomes


def _chosen(names: str | Iterable[str]) -> list[str]:
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in (*FIGURES, "all"):
            raise ValueError(
                f"`names` must be among {', '.join(FIGURES)}, or 'all'; got {name!r}."
            )
    return [name for name in FIGURES if name in wanted or "all" in wanted]


def _heartbeats(data_dir: str | Path | None) -> tuple[BinarySplit | None, str | None]:
    """ECG5000, or one sentence that says how to get it."""
    try:
        return ecg5000_paper(data_dir), None
    except (OSError, ImportError, DataError) as error:
        return None, str(error)


def _finish(module: Any, run: Any, quick: bool) -> Outcome:
    """Compute one figure and write its files."""
    from ..._base.files import plain
    from .run import versions

    started = time.perf_counter()
    numbers = plain(module.compute(run))
    record = {
        "name": run.name,
        "quick": quick,
        "parameters": plain(asdict(run.parameters)),
        "versions": versions(),
        "seconds": round(time.perf_counter() - started, 2),
        "numbers": numbers,
    }
    outcome = _write(module, run.parameters, record, run.out_dir)
    run.forget()
    return outcome


def _redraw(module: Any, name: str, folder: Path) -> Outcome:
    """Draw and describe one figure from its record."""
    from .run import recorded_parameters

    path = folder / f"{name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        parameters = recorded_parameters(module.FULL, record["parameters"])
    except FileNotFoundError:
        sentence = f"There is no record {path}: run it without `redraw` first."
        return Outcome(name, module.TITLE, skipped=sentence)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"The record {path} cannot be read ({error}): run it again."
        ) from None
    return _write(module, parameters, record, folder)


def _write(module: Any, parameters: Any, record: dict, folder: Path) -> Outcome:
    """The files of one figure; what is said about the numbers is always today's."""
    from ..._base.files import write_figure, write_json
    from .run import FORMATS

    numbers = record["numbers"]
    summary = module.summary(numbers, parameters)
    figure = module.draw(numbers, parameters)
    files = [folder / f"{record['name']}.{kind}" for kind in FORMATS]
    for path in files:
        write_figure(path, figure)
    files.append(folder / f"{record['name']}.json")
    told = {
        "title": module.TITLE,
        "caption": " ".join(module.CAPTION.split()),
        "summary": summary,
    }
    order = ("name", "title", "caption", "quick", "summary")
    record = record | told
    first = {key: record[key] for key in order}
    write_json(files[-1], first | {k: v for k, v in record.items() if k not in first})
    return Outcome(
        record["name"], module.TITLE, tuple(files), numbers, tuple(summary),
        record["seconds"],
    )  # fmt: skip
