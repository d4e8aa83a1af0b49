"""Running one figure: all cores, progress, checkpoints, and files that appear complete.

A figure's work is cut into units. Each finished unit is written to a file of its own, so
that a run that was interrupted goes on where it stopped, with the very same numbers.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ... import __version__
from ..._base.files import plain, write_json
from ..._base.progress import Display, noticing_interrupts
from ..._base.threads import one_thread
from ...datasets.archive import BinarySplit

#: Formats that every figure is written in.
FORMATS = ("svg", "pdf", "png")
_CHECKPOINTS = ".checkpoints"


@dataclass
class Run:
    """What a figure's `compute` is given.

    Attributes
    ----------
    name : str
        Name of the figure, such as ``"fig2"``.
    parameters : dataclass
        Its parameters, full or quick.
    out_dir : Path
        Where the files go; checkpoints lie in a hidden folder there until the end.
    n_jobs : int
        Processes to use.
    heartbeats : BinarySplit or None
        ECG5000 as the paper uses it, for the figures that need it.
    data_dir : str, Path or None
        Where the archive's own files lie.
    """

    name: str
    parameters: Any
    out_dir: Path
    n_jobs: int = 1
    heartbeats: BinarySplit | None = None
    data_dir: str | Path | None = None
    _progress: Display = field(default_factory=Display, repr=False)

    @property
    def ecg(self) -> BinarySplit:
        """The heartbeats, for a figure that declares that it needs them."""
        if self.heartbeats is None:
            raise RuntimeError(f"{self.name} was started without ECG5000.")
        return self.heartbeats

    @cached_property
    def folder(self) -> Path:
        """Folder of the checkpoints of exactly this run."""
        return self.out_dir / _CHECKPOINTS / f"{self.name}-{_fingerprint(self)}"

    def map(self, label: str, work: Callable[[Any], Any], items: Sequence[Any]) -> list:
        """Results of ``work(item)`` for every item, in order, as plain JSON values.

        Parameters
        ----------
        label : str
            Names the work in the progress display and in the checkpoints.
        work : callable
            Of a module, or a `functools.partial` of one, so that a process can be sent
            it. Its randomness must come from the item alone.
        items : sequence

        Returns
        -------
        list
            Arrays come back as lists: a result is the same whether it was just computed
            or read from a checkpoint.
        """
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"\W+", "-", label)
        paths = [folder / f"{stem}-{i:04d}.json" for i in range(len(items))]
        done = {i: _read(path) for i, path in enumerate(paths)}
        found = {i: value["result"] for i, value in done.items() if value is not None}
        missing = [i for i in range(len(items)) if i not in found]
        text = f"{self.name}: {label}"
        with self._progress.bar(text, len(items), len(found)) as bar:
            for i, result in _execute(work, [(i, items[i]) for i in missing], self.n_jobs):
                value = plain(result)
                # Another run into the same folder may have finished and tidied up.
                folder.mkdir(parents=True, exist_ok=True)
                write_json(paths[i], {"result": value})
                found[i] = value
                bar.advance()
        return [found[i] for i in range(len(items))]

    def forget(self) -> None:
        """Remove the checkpoints of this figure, of this run and of earlier ones."""
        top = self.out_dir / _CHECKPOINTS
        for folder in top.glob(f"{self.name}-*"):
            shutil.rmtree(folder, ignore_errors=True)
        if top.is_dir() and not any(top.iterdir()):
            top.rmdir()


def versions() -> dict[str, str]:
    """What made the numbers."""
    found = {"greenfold": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "matplotlib", "nest-simulator"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def recorded_parameters(default: Any, recorded: dict[str, Any]) -> Any:
    """Parameters as a record has them; those that came later have their default."""
    known = {one.name for one in fields(default)}
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in recorded.items()
        if name in known
    }
    return replace(default, **given)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _fingerprint(run: Run) -> str:
    """Changes with every parameter, with the data, and with the code and its versions."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(source.read_bytes())
    shown = json.dumps(plain([asdict(run.parameters), versions()]), sort_keys=True)
    digest.update(shown.encode())
    for array in run.heartbeats or ():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _execute(
    work: Callable[[Any], Any], items: list[tuple[int, Any]], n_jobs: int
) -> Iterator[tuple[int, Any]]:
    """Results as they come, each with its number."""
    if n_jobs == 1 or len(items) <= 1:
        for i, item in items:
            with one_thread(), noticing_interrupts(insist=True):
                result = work(item)
            yield i, result
        return
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        calls = (joblib.delayed(_in_worker)(work, i, item) for i, item in items)
        yield from pool(calls)  # type: ignore[misc]


def _in_worker(work: Callable[[Any], Any], i: int, item: Any) -> tuple[int, Any]:
    # Ctrl-C reaches the whole process group. An optimisation would answer it with the
    # best result so far, which is not the result; the parent ends the workers instead.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return i, work(item)
