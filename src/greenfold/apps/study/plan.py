"""What is studied: grids of networks and data sets, from a TOML file or under a name."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._base import checks as check
from ..runner import Job, Summary, run_jobs
from ..sweep.plan import Source, find_sources, read_source
from .experiment import ARCHITECTURES, FORMAT, experiment, make_gain

#: What varies from network to network, with the values by default.
AXES: dict[str, list[Any]] = {
    "architecture": ["random"],
    "neurons": [50],
    "g": [0.9],
    "tau": [0.25],
    "seed": [0],
    "order": [0],
    "gain": ["linear"],
    "inside": [0.0],
}
#: What does not.
SETTINGS: dict[str, Any] = {
    "eta": 10.0,
    "duration": 10.0,
    "noise": [0.0, 0.1],
    "draws": 10,
    "memory": False,
}


@dataclass(frozen=True)
class Grid:
    """Networks to be compared: all combinations of some values, or draws of them.

    Parameters
    ----------
    axes : mapping
        Values by name, one or a list: ``architecture`` (of
        ``greenfold.apps.study.experiment.ARCHITECTURES``), ``neurons``, ``g``, ``tau``,
        ``seed``, ``order`` (0, 1, … or "exact"), ``gain`` ("linear", "tanh",
        "quadratic:0.05", …) and ``inside`` (intensity of white noise inside the network,
        order 0). For a random search also ``{"low": …, "high": …, "log": true}``.
    n_random : int, optional
        Draw so many networks instead of all combinations.
    settings : mapping
        ``eta``, ``duration`` of the longest series in the unit of τ, ``noise`` (standard
        deviations of the noise on every state at the readout under which the accuracy is
        taken), ``draws`` (random u to compare with), ``memory`` (whether the memory
        capacity is computed too).
    random_state : int
        Of a random search.
    """

    axes: Mapping[str, Any] = field(default_factory=dict)
    n_random: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    random_state: int = 0

    def networks(self) -> list[dict[str, Any]]:
        """The settings of each network and how it is judged, checked; each once."""
        _refuse_unknown(self.axes, AXES, "`axes` know")
        _refuse_unknown(self.settings, SETTINGS, "`settings` know")
        try:
            return self._networks()
        except TypeError as error:  # what a file says, not what code passes
            raise ValueError(str(error)) from None

    def _networks(self) -> list[dict[str, Any]]:
        shared = _checked_settings({**SETTINGS, **self.settings})
        axes = {**AXES, **self.axes}
        if self.n_random is None:
            drawn = itertools.product(*(_values(name, axes[name]) for name in AXES))
        else:
            rng = check.generator(self.random_state, "random_state")
            drawn = (
                [_drawn(name, axes[name], rng) for name in AXES]
                for _ in range(check.count(self.n_random, "n_random"))
            )
        found: dict[str, dict[str, Any]] = {}
        for one in drawn:
            checked = _checked(dict(zip(AXES, one, strict=True))) | shared
            found.setdefault(json.dumps(checked, sort_keys=True), checked)
        return list(found.values())


def _refuse_unknown(given: Iterable[str], known: Iterable[str], text: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"{text} {', '.join(known)}; got {', '.join(unknown)}.")


def study(
    datasets: Iterable[str | Path],
    grids: Grid | Sequence[Grid],
    folder: str | Path = "study",
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
    n_jobs: int | None = None,
    dask: str | None = None,
    redo: bool = False,
    summary: Summary | None = None,
) -> Summary:
    """Solve many networks on the same stimuli, one result file each.

    Results that are there already and were made by the same settings, code and data are
    kept; stale and damaged ones are redone; a run that was stopped goes on.

    Parameters
    ----------
    datasets : iterable of str or Path
        Names or folders; of a set with more than two classes, which two: "ECG5000:1,2".
    grids : Grid or sequence of Grid
    folder : str or Path
        Where results are and go; read them with `read_study`.
    data_dir : str or Path, optional
        Data directory. Default: the environment variable ``GREENFOLD_DATA``.
    download : bool
        Whether the archive may be asked for a set that is not on this machine.
    n_jobs : int, optional
        Processes; by default as many as there are cores.
    dask : str, optional
        Address of a dask scheduler, in place of processes of this machine.
    redo : bool
        Redo finished results too.
    summary : Summary, optional
        Filled as the study goes on, so that it can be read after an exception.

    Returns
    -------
    greenfold.apps.runner.Summary

    Examples
    --------
    >>> from greenfold.apps.study import Grid, read_study, study
    >>> grid = Grid({"architecture": ["random", "cycle"], "neurons": [50, 100]})
    >>> done = study(["ECG5000:1,2"], grid)  # doctest: +SKIP
    >>> table = read_study("study")  # doctest: +SKIP
    """
    jobs = plan(datasets, grids, data_dir=data_dir, download=download)
    return run_jobs(
        jobs, folder, label="study", n_jobs=n_jobs, dask=dask, redo=redo, summary=summary
    )


def plan(
    datasets: Iterable[str | Path],
    grids: Grid | Sequence[Grid],
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
) -> list[Job]:
    """The jobs of a study; what cannot work is refused here, before it is computed."""
    given = [grids] if isinstance(grids, Grid) else list(grids)
    networks: dict[str, dict[str, Any]] = {}
    for grid in given:
        for one in grid.networks():
            # With its memory or without, it is one network.
            key = json.dumps({**one, "memory": None}, sort_keys=True)
            if one["memory"] or key not in networks:
                networks[key] = one
    if not networks:
        raise ValueError("`grids` are empty: there is no network to solve.")
    named = [_named(item, data_dir, download) for item in datasets]
    if not named:
        raise ValueError("`datasets` must name at least one data set.")
    jobs: dict[str, Job] = {}
    for source, classes, label in named:
        for one in networks.values():
            job = _job(source, classes, label, one)
            jobs[job.path] = job
    return list(jobs.values())


def _named(item: Any, data_dir: Any, download: bool) -> tuple[Source, tuple[str, str], str]:
    """A data set, the two of its classes that are told apart, and what both are called."""
    name, colon, chosen = str(item).partition(":")
    source, *others = find_sources([name], data_dir, download)
    if others:
        raise ValueError(f"`datasets`: {name!r} holds {1 + len(others)} sets; name one.")
    (X, labels), _ = read_source(source.name, source.folder, source.digest)
    if not isinstance(X, np.ndarray) or not np.isfinite(X).all():
        raise ValueError(
            f"`datasets`: {source.name} has series of unequal length or with missing "
            "values, which a study does not take."
        )
    classes = sorted(set(labels.tolist()))
    wanted = [one.strip() for one in chosen.split(",")] if colon else classes
    if len(wanted) != 2 or not set(wanted) <= set(classes):
        raise ValueError(
            f"`datasets`: {source.name} has the classes {', '.join(classes[:8])}; name two "
            f"of them, as in {source.name}:{classes[0]},{classes[-1]}."
        )
    label = f"{source.name}:{','.join(wanted)}" if colon else source.name
    return source, (wanted[0], wanted[1]), label


def _job(
    source: Source, classes: tuple[str, str], label: str, setting: dict[str, Any]
) -> Job:
    # The name says what is computed, not by what code: a stale result is replaced.
    shown = json.dumps([setting, classes], sort_keys=True)
    stem = hashlib.sha256(shown.encode()).hexdigest()[:16]
    kind, n = setting["architecture"], setting["neurons"]
    return Job(
        path=f"results/{source.name}/{kind}-{n}-{stem}.json",
        work=experiment,
        configuration={
            "format": FORMAT,
            "code": __version__,
            "setting": setting,
            "data": {
                "name": source.name,
                "label": label,
                "classes": list(classes),
                "digest": source.digest,
            },
        },
        context={"folder": source.folder},
        weight=float(n) ** 2 * (1 if setting["order"] == 0 else 20),
        title=f"{label} {kind} {n}",
    )


def _values(name: str, given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        raise ValueError(  # noqa: TRY004 - what a file says, not what code passes
            f"`axes`: a range of {name!r} is for a random search; set `n_random`, or list "
            "the values."
        )
    listed = isinstance(given, Iterable) and not isinstance(given, str)
    values = list(given) if listed else [given]
    if not values:
        raise ValueError(f"`axes`: {name!r} has no values, so that no network is left.")
    return values


def _drawn(name: str, given: Any, rng: np.random.Generator) -> Any:
    if not isinstance(given, Mapping):
        values = _values(name, given)
        return values[rng.integers(len(values))]
    unknown = sorted(set(given) - {"low", "high", "log"})
    if unknown or not {"low", "high"} <= set(given):
        raise ValueError(
            f"`axes`: a range of {name!r} is written {{low, high}} and, if wanted, log; "
            f"got {dict(given)}."
        )
    low, high = (_number(given[end], name) for end in ("low", "high"))
    log = bool(given.get("log", False))
    if not low < high or (log and low <= 0):
        raise ValueError(f"`axes`: a range of {name!r} must rise; got {dict(given)}.")
    if name not in ("neurons", "g", "tau", "seed", "inside"):
        raise ValueError(f"`axes`: {name!r} has no range; list its values.")
    if log:
        value = float(np.exp(rng.uniform(np.log(low), np.log(high))))
    else:
        value = float(rng.uniform(low, high))
    return round(value) if name in ("neurons", "seed") else value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"`{name}` must be finite; got {value!r}.")
    return number


def _checked(one: dict[str, Any]) -> dict[str, Any]:
    """One network's numbers, each what it must be."""
    kind, order = one["architecture"], one["order"]
    if kind not in ARCHITECTURES:
        raise ValueError(
            f"`architecture` must be one of {', '.join(ARCHITECTURES)}; got {kind!r}."
        )
    if order != "exact":
        order = check.count(order, "order", minimum=0)
    inside = _number(one["inside"], "inside")
    if inside < 0 or (inside and order != 0):
        raise ValueError(
            "`inside` is the size of noise inside a network of order 0 and must not be "
            f"negative; got {inside:g} at order {order}."
        )
    neurons = check.count(one["neurons"], "neurons")
    if kind == "oscillators" and neurons % 2:
        raise ValueError(f"`neurons` of oscillators come in pairs; got {neurons}.")
    make_gain(one["gain"])
    return {
        "architecture": kind,
        "neurons": neurons,
        "g": check.positive(one["g"], "g"),
        "tau": check.positive(one["tau"], "tau"),
        # Where the plan leaves nothing to draw, other seeds are the same network.
        "seed": check.count(one["seed"], "seed", minimum=0) * ARCHITECTURES[kind],
        "order": order,
        "gain": str(one["gain"]),
        "inside": inside,
    }


def _checked_settings(given: dict[str, Any]) -> dict[str, Any]:
    noise = [_number(one, "noise") for one in _values("noise", given["noise"])]
    if min(noise) < 0:
        raise ValueError(f"`noise` must not be negative; got {min(noise):g}.")
    if not isinstance(given["memory"], bool):
        raise TypeError(f"`memory` must be true or false; got {given['memory']!r}.")
    return {
        "eta": check.positive(given["eta"], "eta"),
        "duration": check.positive(given["duration"], "duration"),
        "noise": noise,
        "draws": check.count(given["draws"], "draws"),
        "memory": given["memory"],
    }


@dataclass(frozen=True)
class Plan:
    """Data sets and grids of networks."""

    datasets: list[str]
    grids: list[Grid]


def read_config(path: str | Path) -> Plan:
    """The plan in a TOML file.

    The file names ``datasets`` and one or more tables ``[[grid]]`` whose keys are those of
    `Grid`: its axes, its settings, and ``random`` and ``random_state`` of a random search.
    """
    place = Path(path).expanduser()
    try:
        content = tomllib.loads(place.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"`{path}` is not a TOML file: {error}.") from None
    _refuse_unknown(content, ("datasets", "grid"), f"`{path}` may hold the keys")
    datasets, tables = content.get("datasets", []), content.get("grid", [])
    if not isinstance(datasets, list) or not all(isinstance(d, str) for d in datasets):
        raise ValueError(f"`{path}`: `datasets` must be a list of names.")
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"`{path}` has no table [[grid]], so that no network is named.")
    grids = []
    for table in tables:
        known = (*AXES, *SETTINGS, "random", "random_state")
        _refuse_unknown(table, known, f"`{path}`: a grid knows")
        axes, settings = (
            {k: v for k, v in table.items() if k in kind} for kind in (AXES, SETTINGS)
        )
        state = table.get("random_state", 0)
        grids.append(Grid(axes, table.get("random"), settings, state))
    return Plan(datasets, grids)


#: By name: all architectures with equal N, clean and with noise inside, with their memory;
#: and random networks over N, g and τ.
_ALIKE = {"architecture": list(ARCHITECTURES), "neurons": 50, "seed": [0, 1, 2, 3]}
PRESETS: dict[str, Plan] = {
    "architectures": Plan(
        ["ECG5000:1,2"],
        [
            Grid(_ALIKE, settings={"memory": True}),
            Grid(_ALIKE | {"inside": 0.03}),
            Grid(
                {
                    "neurons": [25, 50, 100],
                    "g": [0.3, 0.6, 0.9, 0.97],
                    "tau": [0.05, 0.125, 0.25, 0.5, 1.0],
                    "seed": [0, 1],
                },
            ),
        ],
    ),
}
