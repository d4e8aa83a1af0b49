"""Shared parts of the paper's figures, and `reproduce`, which makes them.

Every figure is a module. Its docstring is the title and caption of the figure; it defines
`Parameters`, ``FULL`` and ``QUICK``, and the functions `compute`, `draw` and `summary`. The
figure is written as SVG, PDF and PNG, with a JSON file of all its numbers and of the
parameters and versions that made them.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import getitem
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ... import Alternating, Gain, Reservoir, SampleStimuli, Unfolding, optimize, unfold
from ..._base.checks import must
from ..._base.files import plain, write_figure, write_json
from ..._base.progress import display
from ...datasets import DataError
from ...datasets.downloads import BinarySplit, ecg5000_paper
from ...math.sphere import SphereMaximum, maximize_on_sphere
from ...stimuli.base import Stimuli
from ...validity import ExpansionWarning
from ..runner import run_map, source_digest, versions
from ..style import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

#: Figures and tables, in the order of the paper.
FIGURES = ("fig1", "fig2", "fig3", "fig4", "table1", "choices", "supplement", "beyond")
#: Those that need the data set ECG5000.
ON_HEARTBEATS = {"fig4", "table1", "choices", "supplement", "beyond"}
#: File formats of each figure.
_FORMATS = ("svg", "pdf", "png")
_CHECKPOINTS = ".checkpoints"
#: Packages whose versions are recorded.
_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib", "nest-simulator")


@dataclass(frozen=True)
class Paper:
    """The paper's network and its control parameter η."""

    n_neurons: int = 100
    g: float = 0.9
    tau: float = 0.25
    eta: float = 10.0

    def network(self, seed: int, alpha: float = 0.0) -> Reservoir:
        """Return the first stable network with N(0, g²/N) weights, which ignore α."""
        rng = np.random.default_rng(seed)
        kind: Any = {"g": self.g, "tau": self.tau, "allow_unstable": True}
        while not (drawn := Reservoir.random(self.n_neurons, rng=rng, **kind)).is_stable:
            pass  # the paper has no network that is unstable at rest
        gain = Gain.quadratic(alpha) if alpha else Gain.linear()
        return Reservoir(drawn.weights, self.tau, gain)

    def unfold(
        self,
        seed: int,
        n_steps: int,
        dt: float,
        alpha: float = 0.0,
        tol: float | None = None,
    ) -> Unfolding:
        """Return the unfolded network of a seed, to first order if α is not zero."""
        how: Any = {"order": 1, "tol": tol} if alpha else {}
        return unfold(self.network(seed, alpha), n_steps=n_steps, dt=dt, **how)

    def projections(self, n_vectors: int, *seed: int) -> np.ndarray:
        """Return random projections from the stream ``seed``, (n_vectors, n_neurons)."""
        return unit_vectors(np.random.default_rng(seed), n_vectors, self.n_neurons)


@dataclass(frozen=True)
class OnSteps(Paper):
    """The paper's network, the first of its seed, with stimuli of ``n_steps`` steps."""

    network_seed: int = 0
    n_steps: int = 10
    #: The paper gives T = 10, but no Δt for its artificial stimuli; `choices` scans it.
    dt: float = 1.0


@dataclass(frozen=True)
class OnHeartbeats(Paper):
    """The paper's network on ECG5000, with the duration of its series."""

    duration: float = 10.0


class Heartbeats:
    """The training stimuli of ECG5000, and its test series with their signs."""

    def __init__(self, ecg: BinarySplit, duration: float) -> None:
        self.stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
        self.X_test, self.signs = self.stimuli.transform(ecg.X_test), ecg.y_test
        self.steps = (self.stimuli.n_steps, duration / self.stimuli.n_steps)

    def accuracy(
        self, system: Unfolding, u: np.ndarray, v: np.ndarray, X: np.ndarray | None = None
    ) -> float:
        """Return the accuracy in per cent on X, or by default on the test series."""
        z = system.kernels(u, v).decision_values(self.X_test if X is None else X)
        return 100 * float((z * self.signs > 0).mean())


def unit_vectors(rng: np.random.Generator, n_vectors: int, size: int) -> np.ndarray:
    """Return random directions, (n_vectors, size)."""
    drawn = rng.standard_normal((n_vectors, size))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def best_readouts(
    system: Unfolding, stimuli: Stimuli, us: np.ndarray, eta: float
) -> Iterator[tuple[np.ndarray, Any, SphereMaximum]]:
    """Yield every u with the moments of its states and its best readout."""
    moments_at = stimuli.moment_map(system)
    for u in us:
        moments = moments_at(u[:, None])
        yield u, moments, maximize_on_sphere(moments.M, eta * moments.Sigma)


def alternation(
    system: Unfolding, stimuli: Stimuli, eta: float, n_rounds: int, *seed: int
) -> Any:
    """Return the result of ``n_rounds`` of the paper's alternation from a random start."""
    rng = np.random.default_rng(seed)
    method = Alternating(n_starts=1, rounds=n_rounds, tol=1e-12)
    return optimize(system, stimuli, eta, method, rng=rng)


def chunks(total: int, size: int) -> list[range]:
    """Return the numbers 0 … total − 1 as consecutive ranges."""
    return [range(total)[i : i + size] for i in range(0, total, size)]


def column(rows: Iterable[Any], *path: Any) -> np.ndarray:
    """Return the value at the end of a path of keys, for every row."""
    return np.array([reduce(getitem, path, row) for row in rows])


@contextmanager
def expansion_judged_elsewhere() -> Iterator[None]:
    """Silence `ExpansionWarning`, since the figure's numbers include the validity."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpansionWarning)
        yield


#: The paper's colours, so that a figure can be laid beside the paper's: blue is random, a
#: simulation or the distance between the classes; red is solved, the expansion or the
#: covariance. Other pages of the documentation have the colours of `apps.style`.
BLUE, RED, ORANGE = "#0072b2", "#d62728", "#d55e00"
RANDOM, SOLVED = BLUE, RED
CLASS_PLUS, CLASS_MINUS = RED, BLUE
#: Colour of everything else.
NEUTRAL = "#4d4d4d"
#: The record has ``optimised``, the paper's word; figures show ours.
SHOWN = {"random": "random", "optimised": "solved"}
KINDS = (("random", RANDOM), ("optimised", SOLVED))

#: Time has no unit in the paper: Δt = 1 and τ = 0.25 in the same unit.
TIME = "time $t$ (a.u.)"
READOUT_TIME = "readout time $T$ (a.u.)"
MARGIN = r"soft margin $\kappa_\eta$ (a.u.)"
ACCURACY = "accuracy on 4332 test series (%)"

_LOOK: dict[Any, Any] = {
    "axes.titlesize": 9.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.formatter.use_mathtext": True,
    "grid.color": "#E4E4E4",
    "figure.constrained_layout.use": True,
    "hatch.color": "0.45",
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "greenfold",
    "pdf.fonttype": 42,
}


def style() -> Any:
    """Return a context with a readable, colour-blind safe style for drawing and saving."""
    return drawing(_LOOK)


def sheet(
    width: float, height: float, *grid: int, width_ratios: Sequence[float] | None = None
) -> tuple[Any, Any]:
    """Return a figure of a size in inches, without a window, and its axes if any."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(*grid, width_ratios=width_ratios) if grid else None


def panel(
    axes: Axes, name: str, title: str, x: str = "", y: str = "", loc: str = "", **more: Any
) -> None:
    """Add the letter, title and labels of a panel, and a legend if it has a place."""
    axes.set_title(f"$\\bf{{({name})}}$ {title}", loc="left")
    axes.set(xlabel=x, ylabel=y)
    if loc:
        axes.legend(**{"loc": loc, **more})


def right_axis(axes: Axes, label: str, color: str = "black") -> Axes:
    """Add a second vertical axis on the right."""
    right = axes.twinx()
    right.set_ylabel(label, color=color)
    right.spines["right"].set_visible(True)
    right.grid(False)
    return right


def plain_ticks(axis: Axis, ticks: Sequence[float]) -> None:
    """Set plain tick labels on a logarithmic axis."""
    low, high = axis.get_view_interval()
    kept = [tick for tick in ticks if low < tick < high]
    axis.set_ticks(kept, [f"{tick:g}" for tick in kept])
    axis.set_ticks([], minor=True)


def draw_means(
    axes: Axes, x: ArrayLike, values: ArrayLike, dash: str, colour: str, label: str
) -> None:
    """Draw means and standard deviations over networks of values (n_networks, n_x)."""
    values = np.asarray(values, dtype=float)
    mean, spread = values.mean(0), values.std(0)
    axes.errorbar(x, mean, spread, fmt=dash, color=colour, ms=4, capsize=2, label=label)


@dataclass(frozen=True)
class Reproduced:
    """The result of one figure: its files and numbers, or the reason for skipping it."""

    name: str
    title: str
    files: tuple[Path, ...] = ()
    numbers: dict = field(default_factory=dict, repr=False)
    summary: tuple[str, ...] = ()
    seconds: float = 0.0
    skipped: str | None = None  # a sentence about missing data, and how to get them

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
class FigureRun:
    """The argument of a figure's `compute`; ``out_dir`` holds checkpoints until the end."""

    name: str
    parameters: Any
    out_dir: Path
    n_jobs: int | None = 1
    ecg: Any = ()  # ECG5000, for a figure whose parameters are `OnHeartbeats`
    data_dir: str | Path | None = None

    @cached_property
    def folder(self) -> Path:
        """Return the folder of checkpoints, by parameters, data, code and versions."""
        sources = source_digest(Path(__file__).parents[2])
        made_by = plain([asdict(self.parameters), versions(*_PACKAGES), sources])
        digest = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode())
        for array in self.ecg or ():
            digest.update(np.ascontiguousarray(array).tobytes())
        return self.out_dir / _CHECKPOINTS / f"{self.name}-{digest.hexdigest()[:16]}"

    def map(
        self, label: str, work: Callable[..., Any], items: Sequence[Any], *first: object
    ) -> list:
        """Return ``work(*first, item)`` for all items; see `apps.runner.run_map`."""
        made_by = {"run": self.folder.name}
        how: Any = {"label": f"{self.name}: {label}", "n_jobs": self.n_jobs}
        return run_map(partial(work, *first), items, self.folder, made_by, **how)

    def forget(self) -> None:
        """Remove the checkpoints of this figure, of this and earlier runs."""
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
) -> list[Reproduced]:
    """Reproduce figures and tables of the paper, and write them to files.

    An interrupted run continues where it stopped if you start it again with the same
    arguments. Figures whose data are missing are skipped, with a note.

    Parameters
    ----------
    names : str or iterable of str
        "all", or any of "fig1", "fig2", "fig3", "fig4", "table1", "choices", "supplement",
        "beyond".
    out_dir : str or Path
        Folder for the files; created if it does not exist.
    quick : bool
        Whether to run a reduced version, which takes about half a minute per figure.
    data_dir : str or Path, optional
        Folder of ECG5000; see `greenfold.datasets.load_dataset`.
    n_jobs : int, optional
        Number of processes; all cores by default.
    redraw : bool
        Whether to draw the figures again from the JSON files in ``out_dir``, without
        computing.

    Returns
    -------
    list of Reproduced
        ``name``, ``files``, ``numbers`` and ``summary`` of each figure, or the reason why
        it was ``skipped``.
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
            run = FigureRun(name, parameters, folder, n_jobs, data_dir=data_dir)
            outcomes.append(_redrawn(module, run) if redraw else _made(module, run, quick))
    return outcomes


def told(module: ModuleType) -> tuple[str, str]:
    """Return title and caption of a figure, from the docstring of its module."""
    title, _, caption = (module.__doc__ or "").partition("\n")
    return title.rstrip("."), " ".join(caption.split())


def _made(module: ModuleType, run: FigureRun, quick: bool) -> Reproduced:
    """Compute one figure and write its files; skip it if its data are missing."""
    try:
        if isinstance(run.parameters, OnHeartbeats):
            run.ecg = ecg5000_paper(run.data_dir)
    except (OSError, ImportError, DataError) as error:
        return Reproduced(run.name, told(module)[0], skipped=str(error))
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


def _redrawn(module: ModuleType, run: FigureRun) -> Reproduced:
    """Draw and describe one figure from its record."""
    path = run.out_dir / f"{run.name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        parameters = recorded_parameters(module.FULL, record["parameters"])
    except FileNotFoundError:
        sentence = f"There is no record {path}: run this figure without `redraw` first."
        return Reproduced(run.name, told(module)[0], skipped=sentence)
    except (ValueError, KeyError, TypeError) as error:
        wrong = f"The record {path} cannot be read ({error})"
        raise DataError(f"{wrong}: run this figure again.") from None
    return _write(module, parameters, record, run.out_dir)


def _write(module: ModuleType, parameters: Paper, record: dict, folder: Path) -> Reproduced:
    """Write the files of one figure, with today's caption and summary."""
    name, numbers, (title, caption) = record["name"], record["numbers"], told(module)
    summary = module.summary(numbers, parameters)
    first = {"name": name, "title": title, "caption": caption, "quick": record["quick"]}
    first["summary"] = summary
    figure = module.draw(numbers, parameters)
    files = [write_figure(folder / f"{name}.{kind}", figure) for kind in _FORMATS]
    files.append(folder / f"{name}.json")
    write_json(files[-1], first | {k: v for k, v in record.items() if k not in first})
    return Reproduced(name, title, tuple(files), numbers, tuple(summary), record["seconds"])


def recorded_parameters(default: Paper, recorded: dict[str, Any]) -> Any:
    """Return the recorded parameters, with defaults for newer parameters."""
    known = {name: recorded[name] for name in asdict(default) if name in recorded}
    lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
    return replace(default, **known | lists)
