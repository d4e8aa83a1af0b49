"""Compare certified margins of many networks on the same stimuli.

Every architecture is made from the same few numbers, as far as they apply: g is the largest
|λ| of W, and τ is the time constant of the neurons. A delay line has the weight g and no
loop; the window of a Legendre delay system is N τ, whatever g is.
"""

from __future__ import annotations

import itertools
import json
import re
import time
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import greenfold as gf

from .._base import checks as check
from .._base.checks import must, needs, require
from .._base.files import plain, write_csv, write_figure
from ..devices.noise import state_covariance
from ..math.decisions import Clouds, decide, held_out_score
from . import runner
from .runner import SEAL, Job, Summary, Workers, fingerprint
from .style import BOUND, RANDOM, SOLVED, drawing
from .sweep import Dataset, find_datasets, read_dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Grid", "read_study", "study", "write_table"]

#: Architectures, and whether they depend on the seed.
ARCHITECTURES: dict[str, bool] = dict.fromkeys(
    ("random", "sparse", "dale", "spatial", "oscillators"), True
)
ARCHITECTURES |= dict.fromkeys(("cycle", "delay_line", "legendre"), False)
#: Gains by name; a number after a colon is their parameter.
_NAMES = ("linear", "quadratic", "tanh", "biased_tanh")
GAINS: dict[str, Callable[..., gf.Gain]] = {name: getattr(gf.Gain, name) for name in _NAMES}
FORMAT = 1  # increase it if this module makes other results from the same configuration
#: Relative gap to the bound at which a margin counts as certified, and a memory as solved.
_GAP, _MEMORY_GAP = 5e-4, 1e-2
#: Number of steps of white input for the memory, over the duration of the stimuli, and
#: noise on each state when it is read.
_MEMORY_STEPS, _MEMORY_NOISE = 40, 0.1


@dataclass(frozen=True)
class Setting:
    """One network, and how it is scored."""

    architecture: str = "random"
    neurons: int = 50
    g: float = 0.9
    tau: float = 0.25
    seed: int = 0
    order: int | str = 0
    gain: str = "linear"
    inside: float = 0.0
    eta: float = 10.0
    duration: float = 10.0
    noise: tuple[float, ...] = (0.0, 0.1)
    draws: int = 10
    memory: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Setting:
        """Return a checked setting, with defaults for what is not given."""
        one: dict[str, Any] = asdict(cls()) | dict(given)
        kind, order, memory = one["architecture"], one["order"], one["memory"]
        kinds = f"be one of {', '.join(ARCHITECTURES)}"
        must(kind in ARCHITECTURES, "architecture", kinds, repr(kind))
        for name in ("g", "tau", "eta", "duration"):
            one[name] = check.positive(one[name], name)
        for name, least in ("neurons", 1), ("seed", 0), ("draws", 1):
            one[name] = check.count(one[name], name, minimum=least)
        paired = kind != "oscillators" or one["neurons"] % 2 == 0
        pairs = "`neurons` must be even: oscillators come in pairs"
        require(paired, f"{pairs}; got {one['neurons']}.")
        one["seed"] *= ARCHITECTURES[kind]  # without random numbers, they are one network
        if order != "exact":
            one["order"] = order = check.count(order, "order", minimum=0)
        one["inside"] = inside = _number(one["inside"], "inside")
        what = "is the size of noise inside a network of order 0 and must not be negative"
        allowed = inside >= 0 and (order == 0 or not inside)
        require(allowed, f"`inside` {what}; got {inside:g} at order {order}.")
        one["gain"] = str(one["gain"])
        one["order"] = 0 if make_gain(one["gain"]).is_linear else order
        noise = [_number(value, "noise") for value in _values("noise", one["noise"])]
        must(min(noise) >= 0, "noise", "not be negative", f"{min(noise):g}")
        one["noise"] = tuple(noise)
        wanted = "be true or false"
        must(isinstance(memory, bool), "memory", wanted, repr(memory), TypeError)
        return cls(**one)

    def network(self) -> gf.Reservoir:
        """Return the network."""
        n, tau, gain = self.neurons, self.tau, make_gain(self.gain)
        if self.architecture in ("cycle", "delay_line"):
            return getattr(gf.Reservoir, self.architecture)(n, self.g, tau, gain)
        if self.architecture == "legendre":
            return gf.Reservoir.legendre(n, n * tau, tau, gain)
        if self.architecture == "oscillators":
            # The eigenvalues fill the disc as in a random network; modes are orthogonal.
            rng = np.random.default_rng(self.seed)
            size, angle = np.sqrt(rng.random(n // 2)), np.pi * rng.random(n // 2)
            size *= self.g / size.max()
            a, b = size * np.cos(angle), size * np.sin(angle)
            return gf.Reservoir.oscillators(tau / (1 - a), b / tau, tau, gain)
        drawn: dict[str, Any] = {"rng": self.seed, "spectral_radius": self.g}
        if self.architecture == "dale":
            return gf.Reservoir.excitatory_inhibitory(n, tau=tau, gain=gain, **drawn)
        if self.architecture != "random":
            # Ten connections per neuron, as usual in echo state networks of 100 neurons.
            drawn["connectivity"] = min(1.0, 10 / n)
        is_spatial = self.architecture == "spatial"
        make = gf.Reservoir.spatial if is_spatial else gf.Reservoir.random
        return make(n, tau=tau, gain=gain, **drawn)


#: Fields of `Setting` that vary between networks, and those that are the same for all.
_FIELDS = [one.name for one in fields(Setting)]
AXES, SETTINGS = _FIELDS[:8], _FIELDS[8:]


@dataclass(frozen=True)
class Grid:
    """Networks to compare: all combinations of some values, or random draws.

    Parameters
    ----------
    axes : mapping
        One value or a list for each name: ``architecture`` (see ``greenfold study
        --help``), ``neurons``, ``g``, ``tau``, ``seed``, ``order`` (0, 1, … or "exact"),
        ``gain`` ("linear", "quadratic:0.05", …) and ``inside`` (intensity of white noise
        inside the network, order 0). For a random search, a value may also be a range
        ``{"low": …, "high": …, "log": true}``.
    n_random : int, optional
        Number of networks to draw instead of all combinations.
    settings : mapping
        ``eta``, ``duration`` of the longest series in the unit of τ, ``noise`` of the
        readout for the accuracy, ``draws`` of random u, and ``memory`` (whether to compute
        the memory capacity).
    random_state : int
        Seed for a random search.
    """

    axes: Mapping[str, Any] = field(default_factory=dict)
    n_random: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    random_state: int = 0

    def networks(self) -> list[Setting]:
        """Return the checked settings, each once."""
        _refuse_unknown(self.axes, AXES, "`axes` may hold")
        _refuse_unknown(self.settings, SETTINGS, "`settings` may hold")
        usual = asdict(Setting())
        axes = {name: self.axes.get(name, usual[name]) for name in AXES}
        try:
            if self.n_random is None:
                drawn = itertools.product(*(_values(*axis) for axis in axes.items()))
            else:
                rng = check.generator(self.random_state, "random_state")
                n = check.count(self.n_random, "n_random")
                drawn = ([_drawn(*axis, rng) for axis in axes.items()] for _ in range(n))
            found = (
                {**dict(zip(AXES, one, strict=True)), **self.settings} for one in drawn
            )
            return list(dict.fromkeys(map(Setting.of, found)))
        except TypeError as error:  # the file is wrong, not the code
            raise ValueError(str(error)) from None


def _refuse_unknown(given: Iterable[str], known: Iterable[str], text: str) -> None:
    unknown = ", ".join(sorted(set(given) - set(known)))
    require(not unknown, f"{text} {', '.join(known)}; got {unknown}.")


def _values(name: str, given: Any) -> list[Any]:
    use = "is for a random search; set `n_random`, or list the values."
    require(not isinstance(given, Mapping), f"`axes`: a range of {name!r} {use}")
    listed = isinstance(given, Iterable) and not isinstance(given, str)
    values = list(given) if listed else [given]
    require(values, f"`axes`: {name!r} has no values, so no network is left.")
    return values


def _drawn(name: str, given: object, rng: np.random.Generator) -> Any:
    if not isinstance(given, Mapping):
        values = _values(name, given)
        return values[rng.integers(len(values))]
    of, got = f"`axes`: a range of {name!r}", f"got {dict(given)}."
    known = {"low", "high"} <= set(given) <= {"low", "high", "log"}
    require(known, f"{of} is written {{low, high}} with an optional log; {got}")
    low, high = (_number(given[end], name) for end in ("low", "high"))
    log = bool(given.get("log", False))
    require(
        low < high and (low > 0 or not log),
        f"{of} must have low < high, and low > 0 with log; {got}",
    )
    has_range = name in ("neurons", "g", "tau", "seed", "inside")
    require(has_range, f"`axes`: {name!r} has no range; list its values.")
    value = rng.uniform(*np.log((low, high))) if log else rng.uniform(low, high)
    value = float(np.exp(value) if log else value)
    return round(value) if name in ("neurons", "seed") else value


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    must(np.isfinite(value), name, "be finite", repr(value))
    return float(value)


def read_config(path: str | Path) -> tuple[list[str], list[Grid]]:
    """Return the ``datasets`` of a TOML file, and its ``[[grid]]`` with `Grid` keys."""
    try:
        content = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"`{path}` is not a TOML file: {error}.") from None
    _refuse_unknown(content, ("datasets", "grid"), f"`{path}` may hold the keys")
    datasets, tables = content.get("datasets", []), content.get("grid", [])
    listed = isinstance(datasets, list) and all(isinstance(d, str) for d in datasets)
    require(listed, f"`{path}`: `datasets` must be a list of names.")
    some = isinstance(tables, list) and tables
    require(some, f"`{path}` has no table [[grid]], so no network is named.")
    grids = []
    for table in tables:
        known = (*AXES, *SETTINGS, "random", "random_state")
        _refuse_unknown(table, known, f"`{path}`: a grid may hold")
        axes = {k: v for k, v in table.items() if k in AXES}
        settings = {k: v for k, v in table.items() if k in SETTINGS}
        state = table.get("random_state", 0)
        grids.append(Grid(axes, table.get("random"), settings, state))
    return datasets, grids


#: Data sets and grids of each preset. The grids are all architectures with equal N, without
#: noise inside (with their memory) and with noise inside, and random networks over N, g and
#: τ.
_ALIKE = {"architecture": list(ARCHITECTURES), "neurons": 50, "seed": [0, 1, 2, 3]}
_RANDOM = {"neurons": [25, 50, 100], "g": [0.3, 0.6, 0.9, 0.97], "seed": [0, 1]}
_RANDOM["tau"] = [0.05, 0.125, 0.25, 0.5, 1.0]
_GRIDS = [Grid(_ALIKE, settings={"memory": True}), Grid(_ALIKE | {"inside": 0.03})]
PRESETS = {"architectures": (["ECG5000:1,2"], [*_GRIDS, Grid(_RANDOM)])}


def study(
    datasets: Iterable[str | Path],
    grids: Grid | Sequence[Grid],
    folder: str | Path = "study",
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
    workers: Workers | None = None,
) -> Summary:
    """Solve many networks on the same stimuli, with one result file each.

    Results made with the same settings, code and data are kept; stale and damaged results
    are computed again. Read them with `read_study`.

    Parameters
    ----------
    datasets : iterable of str or Path
        Names or folders; for a data set with more than two classes, name two, as in
        "ECG5000:1,2".
    grids : Grid or sequence of Grid
        Networks to solve.
    folder, data_dir, download, workers
        As in `greenfold.apps.sweep.sweep`.

    Returns
    -------
    Summary
        As from `greenfold.apps.sweep.sweep`.

    Examples
    --------
    >>> from greenfold.apps.study import Grid, read_study, study
    >>> grid = Grid({"architecture": ["random", "cycle"], "neurons": [50, 100]})
    >>> done = study(["ECG5000:1,2"], grid)  # doctest: +SKIP
    >>> table = read_study("study")  # doctest: +SKIP
    """
    jobs = plan(datasets, grids, data_dir=data_dir, download=download)
    return runner.run_jobs(jobs, folder, workers, label="study")


def plan(
    datasets: Iterable[str | Path],
    grids: Grid | Sequence[Grid],
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
) -> list[Job]:
    """Return the jobs of a study; raise for settings that cannot work."""
    networks: dict[Setting, Setting] = {}
    for grid in [grids] if isinstance(grids, Grid) else grids:
        for one in grid.networks():
            # The same network may be in one grid with its memory and in another without.
            key = replace(one, memory=False)
            networks[key] = one if one.memory or key not in networks else networks[key]
    require(networks, "`grids` are empty: there is no network to solve.")
    tasks = [_task(item, data_dir, download) for item in datasets]
    require(tasks, "`datasets` must name at least one data set.")
    jobs = [_job(*task, one) for task in tasks for one in networks.values()]
    return list({job.path: job for job in jobs}.values())


def _task(
    item: str | Path, data_dir: str | Path | None, download: bool
) -> tuple[Dataset, list[str], str]:
    """Return a data set, its two classes, and a name for both."""
    name, colon, chosen = str(item).partition(":")
    source, *others = find_datasets([name], data_dir, download)
    require(not others, f"`datasets`: {name!r} holds {1 + len(others)} sets; name one.")
    (X, labels), _ = read_dataset(source.name, source.folder, source.digest)
    lacks = "series of unequal length or with missing values, which a study cannot use."
    usable = isinstance(X, np.ndarray) and np.isfinite(X).all()
    require(usable, f"`datasets`: {source.name} has {lacks}")
    classes = sorted(set(labels.tolist()))
    wanted = [one.strip() for one in chosen.split(",")] if colon else classes
    has = f"has the classes {', '.join(classes[:8])}; name two of them, as in"
    pair = f"{source.name}:{classes[0]},{classes[-1]}"
    two = len(wanted) == 2 and set(wanted) <= set(classes)
    require(two, f"`datasets`: {source.name} {has} {pair}.")
    return source, wanted, f"{source.name}:{','.join(wanted)}" if colon else source.name


def _job(source: Dataset, classes: list[str], label: str, setting: Setting) -> Job:
    data = {"name": source.name, "label": label, "classes": classes}
    data["digest"] = source.digest
    asked: Any = plain(asdict(setting))
    made_by = {"format": FORMAT, "code": gf.__version__, "setting": asked, "data": data}
    kind, n = setting.architecture, setting.neurons
    # The path depends on the setting but not on the code, so a stale result is replaced.
    path = f"results/{source.name}/{kind}-{n}-{fingerprint([asked, classes])}.json"
    weight = float(n) ** 2 * (1 if setting.order == 0 else 20)
    where = {"folder": source.folder}
    return Job(path, experiment, made_by, where, weight, title=f"{label} {kind} {n}")


def make_gain(text: str) -> gf.Gain:
    """Return the gain for a text such as ``"quadratic:0.05"``."""
    name, colon, number = str(text).partition(":")
    names = f"be one of {', '.join(GAINS)}, as in 'quadratic:0.05'"
    must(name in GAINS, "gain", names, repr(text))
    try:
        return GAINS[name](float(number)) if colon else GAINS[name]()
    except TypeError:
        wanted = "takes no number" if colon else "needs a number, as in 'quadratic:0.05'"
        raise ValueError(f"`gain` = {text!r}: {name} {wanted}.") from None
    except ValueError as error:
        raise ValueError(f"`gain` = {text!r}: {error}") from None


def experiment(configuration: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    """Solve a network, compare it with random u, and return the text of the result file."""
    runner.must_be_planned_with(configuration["code"], gf.__version__)
    data, asked = configuration["data"], dict(configuration["setting"])
    place = (data["name"], context["folder"], data["digest"])
    stimuli, X, signs = _read_task(*place, tuple(data["classes"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = judge(Setting.of(asked), stimuli, X, signs)
    del asked["memory"]  # its result is a column
    record = {"seal": SEAL, "dataset": data["label"], **asked, **found}
    # The seal is in the first line; the rest is readable.
    return json.dumps(plain(record), indent=1).replace("\n", "", 1) + "\n"


@lru_cache(maxsize=4)
def _read_task(
    name: str, folder: str, digest: str, classes: tuple[str, ...]
) -> tuple[gf.SampleStimuli, np.ndarray, np.ndarray]:
    """Return training stimuli, and test series with their signs."""
    (X, y), (X_test, y_test) = read_dataset(name, folder, digest)
    kept, there = np.isin(y, classes), np.isin(y_test, classes)
    stimuli = gf.SampleStimuli(X[kept], y[kept])
    signs = np.where(y_test[there] == stimuli.classes[1], 1, -1)
    return stimuli, np.asarray(stimuli.transform(X_test[there])), signs


def judge(
    setting: Setting, stimuli: gf.SampleStimuli, X: np.ndarray, signs: np.ndarray
) -> dict[str, Any]:
    """Return the scores of a network on test series X, with solved and random u."""
    started = time.perf_counter()
    network, n_steps = setting.network(), stimuli.n_steps
    exact = setting.order == "exact"
    make: Any = gf.Dynamics if exact else partial(gf.unfold, order=int(setting.order))
    system = make(network, n_steps=n_steps, dt=setting.duration / n_steps)
    P = state_covariance(network, setting.inside) if setting.inside else None
    optimize = partial(gf.optimize, system, stimuli, setting.eta)
    optimize = partial(optimize, device=gf.Device(state_noise=P))
    rng = np.random.default_rng([setting.seed, 1])
    us = rng.standard_normal((setting.draws, network.n_neurons, stimuli.n_channels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gf.ExpansionWarning)  # the row includes it
        if system.is_linear:
            solved = optimize(method=gf.Convex(gap=_GAP))
        else:
            solved = optimize(rng=setting.seed)
        solved.raise_if_interrupted()
        drawn = [optimize(u=u) for u in us]
    margins = np.array([one.soft_margin for one in drawn])
    found: dict[str, Any] = {
        "n_steps": n_steps,
        "n_train": stimuli.n_series,
        "n_test": len(signs),
        "kappa": solved.soft_margin,
        "bound": solved.upper_bound,
        "status": solved.status,
        "kappa_random": float(margins.mean()),
        "kappa_random_sd": float(margins.std(ddof=1)) if len(margins) > 1 else 0.0,
        "kappa_random_best": float(margins.max()),
        "largest_real_part": network.spectral_abscissa,
    }
    if solved.validity is not None:
        found["trustworthy"] = solved.validity.trustworthy
    codes, test_codes = ((np.asarray(s) > 0).astype(int) for s in (stimuli.signs, signs))

    def accuracies(one: gf.Projections) -> list[float]:
        """Return the test accuracy for each noise; the plane comes from the training."""
        inside = 0.0 if P is None else float(one.v @ P @ one.v)
        Z, Z_test = (
            np.asarray(system.states(series, one.u) @ one.v)[:, None]
            for series in (stimuli.series, X)
        )
        clouds = Clouds.of(Z, codes, np.ones(len(codes)), np.array([1.0, 1.0]))
        scores = []
        for noise in (float(np.sqrt(outside**2 + inside)) for outside in setting.noise):
            plane = decide(clouds, noise=noise, threshold="trained")
            scores.append(held_out_score(plane, Z_test, test_codes, noise)[0].mean())
        return scores

    random = np.mean([accuracies(one) for one in drawn], axis=0)
    for noise, *own in zip(setting.noise, accuracies(solved), random, strict=True):
        found[f"accuracy_{noise:g}"], found[f"accuracy_random_{noise:g}"] = map(float, own)
    if setting.memory:
        n = _MEMORY_STEPS
        system = gf.unfold(network, n_steps=n, dt=setting.duration / n)
        task = gf.RegressionTask.memory(np.arange(n), n, ridge=_MEMORY_NOISE**2)
        gap = gf.Convex(gap=_MEMORY_GAP)
        solved = gf.optimize(system, task, method=gap, rng=setting.seed)
        solved.raise_if_interrupted()
        # From the stream of the network, the first u would be a row of its weights.
        rng = np.random.default_rng([setting.seed, 2])
        noisy = gf.Device(readout_noise=_MEMORY_NOISE)
        capacity: Any = gf.memory_capacity(
            system, "random", rng=rng, device=noisy, n_draws=setting.draws
        )
        bound = solved.upper_bound
        found["memory"] = solved.gain
        found["memory_bound"] = float(np.nan if bound is None else bound)
        found["memory_random"] = float(capacity.random.mean())
    return {**found, "seconds": time.perf_counter() - started}


TableRow = dict[str, Any]
#: Properties other than architecture and seed; networks are compared at equal values.
_SAME = ("neurons", "g", "tau", "order", "gain")


def read_study(folder: str | Path, paths: Collection[str] | None = None) -> list[TableRow]:
    """Return all results in a folder, one row each, in the order of their files.

    A row has the setting of a network and its results: ``kappa`` with its ``bound``,
    ``kappa_random`` of random u, ``accuracy_<noise>`` and ``accuracy_random_<noise>``, and
    ``memory`` if it was computed. ``paths`` limits the files. Damaged files are skipped.
    """
    place = Path(folder).expanduser()
    rows = []
    for path in sorted((place / "results").rglob("*.json")):
        if paths is not None and path.relative_to(place).as_posix() not in paths:
            continue
        content, row = path.read_bytes(), None
        with suppress(ValueError):
            row = json.loads(content)
        if isinstance(row, dict) and row.pop("seal", None) and runner.is_whole(content):
            rows.append(row)
    none = f"There are no results of a study in {str(folder)!r}; run a study first."
    require(rows, none, FileNotFoundError)
    return rows


def write_table(rows: Sequence[TableRow], path: str | Path) -> Path:
    """Write the rows of `read_study` as .csv or, with pyarrow, as .parquet."""
    target = Path(path).expanduser()
    columns = list(dict.fromkeys(name for row in rows for name in row))

    def cell(name: str, value: Any) -> Any:
        """Return a value for a table, with lists and orders as text."""
        if isinstance(value, list):
            return " ".join(map(str, value))
        return str(value) if name == "order" else value

    cells = [[cell(name, row.get(name)) for name in columns] for row in rows]
    known = target.suffix in (".csv", ".parquet")
    must(known, "path", "end in .csv or .parquet", repr(str(path)))
    if target.suffix == ".csv":
        return write_csv(target, [columns, *cells])
    with needs("Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet
    sink = pyarrow.BufferOutputStream()
    full = [dict(zip(columns, row, strict=True)) for row in cells]
    parquet.write_table(pyarrow.Table.from_pylist(full), sink)
    return runner.write_bytes(target, sink.getvalue().to_pybytes())


def draw(rows: Sequence[TableRow], folder: str | Path, kind: str = "svg") -> list[Path]:
    """Write figures of the rows: architectures at each N, and a map over g and τ."""
    place = Path(folder).expanduser()
    figures: dict[str, Figure | None] = {}
    with drawing({"svg.hashsalt": "greenfold", "figure.constrained_layout.use": True}):
        for name in dict.fromkeys(row["dataset"] for row in rows):
            legal = re.sub(r"[^\w.+=-]+", "-", name)  # Windows allows no colons
            own = [row for row in rows if row["dataset"] == name]
            sizes = sorted({row["neurons"] for row in own})
            for n in sizes:
                part = [row for row in own if row["neurons"] == n]
                what = f"architectures_{n}" if len(sizes) > 1 else "architectures"
                figures[f"{legal}_{what}"] = architectures(name, part)
            figures[f"{legal}_map"] = margin_map(name, own)
        place.mkdir(parents=True, exist_ok=True)
        return [
            write_figure(place / f"{name}.{kind}", figure, bbox_inches="tight")
            for name, figure in figures.items()
            if figure is not None
        ]


def architectures(name: str, rows: Sequence[TableRow]) -> Figure | None:
    """Return a figure of κ* and memory by architecture, or None if there is only one."""
    from matplotlib.figure import Figure

    # Use the values for which most architectures were studied.
    studied: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for row in rows:
        studied[tuple(row[k] for k in _SAME)].add(row["architecture"])
    most = max(studied, key=lambda one: len(studied[one]))
    same = dict(zip(_SAME, most, strict=True))
    own = [row for row in rows if all(row[k] == v for k, v in same.items())]
    kinds = [k for k in ARCHITECTURES if any(row["architecture"] == k for row in own)]
    if len(kinds) < 2:
        return None
    panels: list[tuple[str, str, str, list[TableRow]]] = []
    for inside in sorted({row["inside"] for row in own}):
        part = [row for row in own if row["inside"] == inside]
        title = f"noise inside, √Q = {inside:g}" if inside else "no noise inside"
        panels.append((title, "kappa", "soft margin κ (a.u.)", part))
    remembering = [row for row in own if row.get("memory") is not None]
    if remembering:
        title, label = "memory, 40 steps of white input", "memory capacity (steps of input)"
        panels.append((title, "memory", label, remembering))
    figure = Figure(figsize=(3.1 * len(panels) + 0.6, 3.6))
    axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
    for at, (title, column, label, part) in zip(axes, panels, strict=True):
        _points(at, kinds, column, part)
        at.set_title(title, loc="left", fontsize=9.5)
        at.set_xlabel(label)
        at.set_xlim(left=min(0.0, at.get_xlim()[0]))
    axes[0].set_yticks(range(len(kinds)), [k.replace("_", " ") for k in kinds])
    axes[0].set_ylim(len(kinds) - 0.5, -0.5)
    title = f"{name}: {same['neurons']} neurons, g = {same['g']:g}, τ = {same['tau']:g}"
    look: dict[str, Any] = {"ncols": 3, "frameon": False, "fontsize": 8.5, "title": title}
    look |= {"title_fontsize": 9.5, "alignment": "left", "loc": "outside upper left"}
    figure.legend(*axes[0].get_legend_handles_labels(), **look)
    return figure


def _points(at: Axes, kinds: list[str], column: str, rows: list[TableRow]) -> None:
    """Draw one mark per seed, a bar at the mean, and a cross at each bound."""
    bound = "bound" if column == "kappa" else f"{column}_bound"
    for place, kind in enumerate(kinds):
        own = [row for row in rows if row["architecture"] == kind]
        for key, colour, mark, shift, label in (
            (f"{column}_random", RANDOM, "s", -0.17, "random u"),
            (column, SOLVED, "o", 0.17, "solved u"),
        ):
            values = np.array([row[key] for row in own], dtype=float)
            if not len(values):
                continue
            y, label = np.full(len(values), place + shift), None if place else label
            at.plot(values, y, mark, color=colour, ms=4, alpha=0.6, label=label)
            mean = label and f"{label}, mean"
            how = {"color": colour, "ms": 14, "mew": 1.6, "label": mean}
            at.plot(values.mean(), place + shift, "|", **how)
        bounds = [row[bound] for row in own if row.get(bound) is not None]
        label = "upper bound" if place == 0 and bounds else None
        y = np.full(len(bounds), place + 0.17)
        at.plot(bounds, y, "x", color=BOUND, ms=4, mew=0.9, zorder=3, label=label)


def margin_map(name: str, rows: Sequence[TableRow]) -> Figure | None:
    """Return a figure of κ* and κ*/κ_random over g and τ, or None if these are fixed."""
    from matplotlib.figure import Figure

    kinds: dict[tuple[Any, ...], list[TableRow]] = defaultdict(list)
    for row in rows:
        kind = tuple(row[k] for k in ("architecture", "order", "gain", "inside"))
        kinds[kind].append(row)
    own = max(kinds.values(), key=lambda part: len({(r["g"], r["tau"]) for r in part}))
    # Use values of g and τ that were combined in a grid, not those of random draws.
    pairs = {(row["g"], row["tau"]) for row in own}
    gs, taus = (
        sorted({p[k] for p in pairs if sum(p[k] == q[k] for q in pairs) > 1})
        for k in (0, 1)
    )
    own = [row for row in own if row["g"] in gs and row["tau"] in taus]
    if len(gs) < 2 or len(taus) < 2:
        return None
    sizes = sorted({row["neurons"] for row in own})
    figure = Figure(figsize=(2.5 * len(sizes) + 1.3, 5.2))
    axes = figure.subplots(2, len(sizes), squeeze=False, sharex=True, sharey=True)
    shown_values = (
        ("certified κ* (a.u.)", [row["kappa"] for row in own]),
        ("κ* / κ of random u", [row["kappa"] / row["kappa_random"] for row in own]),
    )
    for line, (label, values) in zip(axes, shown_values, strict=True):
        # Mean over seeds, (n_sizes, n_g, n_tau); empty cells are NaN.
        cells = defaultdict(list)
        for row, value in zip(own, values, strict=True):
            cells[row["neurons"], row["g"], row["tau"]].append(value)
        table = np.full((len(sizes), len(gs), len(taus)), np.nan)
        for (n, g, tau), cell in cells.items():
            table[sizes.index(n), gs.index(g), taus.index(tau)] = np.mean(cell)
        low, high = float(np.nanmin(table)), float(np.nanmax(table))
        look: dict[str, Any] = {"origin": "lower", "aspect": "auto", "cmap": "cividis"}
        centred = {"ha": "center", "va": "center", "size": 7.5}
        for at, part in zip(line, table, strict=True):
            at.imshow(part, vmin=low, vmax=high, **look)
            for i, j in np.argwhere(np.isfinite(part)):
                colour = "white" if part[i, j] < (low + high) / 2 else "black"
                at.text(j, i, f"{part[i, j]:.2f}", c=colour, **centred)
            at.grid(False)
        figure.colorbar(line[0].images[0], ax=line.tolist(), label=label)
    for at, n in zip(axes[0], sizes, strict=True):
        at.set_title(f"N = {n}", fontsize=9.5)
    for at in axes[-1]:
        at.set_xticks(range(len(taus)), [f"{t:g}" for t in taus], rotation=45)
        at.set_xlabel("time constant τ (a.u.)")
    for at in axes[:, 0]:
        at.set_yticks(range(len(gs)), [f"{g:g}" for g in gs])
        at.set_ylabel("spectral radius g")
    kind = own[0]["architecture"].replace("_", " ")
    figure.suptitle(f"{name}: {kind} networks", x=0.01, ha="left", fontsize=10)
    return figure
