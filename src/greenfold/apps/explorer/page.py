"""The explorer as one HTML file: the network, the series, what was solved, the script."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ... import Unfolding, __version__
from ..._base.checks import must, require
from ..._base.files import plain
from ..report.page import fill_template, write_page
from .series import BAND, N_NOISES, N_RANDOM, PageSeries, SolvedPair

#: Modules of JavaScript; each imports only from those before it.
MODULES = (
    "numbers", "eigen", "sphere", "network", "moments", "problem", "climb", "reference",
    "own_file", "address", "embed", "draw", "ring", "gauge", "clouds", "curves", "view",
    "words", "frame", "main",
)  # fmt: skip
_IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"\./(\w+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.M)
_NAMES = re.compile(r"^(export )?(?:async )?(?:function\*?|const|let|class) +(\w+)", re.M)

#: Up to this size E and F travel in double precision, and up to the second one at all.
DOUBLE_NEURONS, MAX_NEURONS = 64, 128
#: Connections that are drawn.
_N_EDGES = 90
#: Bytes of a page, and of what is always on it: script, style, text.
PAGE_BYTES, _FIXED_BYTES = 500_000, 80_000
#: Four characters for three bytes.
_BASE64 = 4 / 3


def asset(name: str) -> str:
    """Text of a file that comes with the package."""
    folder = files("greenfold.apps.explorer").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")


def script() -> str:
    """All modules as one script: in order, imports and exports taken away."""
    seen: dict[str, str] = {}
    exported: dict[str, list[str]] = {}
    parts = []
    for name in MODULES:
        text = asset(f"js/{name}.js")
        for names, module in _IMPORT.findall(text):
            for needed in filter(None, (one.strip() for one in names.split(","))):
                why = "which does not come before it or does not export that."
                wrong = f"{name}.js imports {needed} of {module}.js, {why}"
                require(needed in exported.get(module, ()), wrong)
        exported[name] = []
        for public, found in _NAMES.findall(text):
            both = f"{found} is in {seen.get(found)}.js and in {name}.js."
            require(found not in seen, both)
            seen[found] = name
            if public:
                exported[name].append(found)
        parts.append(f"// {name}.js\n{_EXPORT.sub('', _IMPORT.sub('', text)).strip()}\n")
    return "\n".join(parts)


@dataclass(frozen=True, eq=False)
class Start:
    """Where the page begins; the page's choice, and a random u, where a value is None."""

    eta: float | None = None
    noise: float | None = None
    u: np.ndarray | None = None
    label: str = ""  # whose u that is, as a button says it


Sets = Sequence[tuple[PageSeries, Sequence[SolvedPair]]]


def write_explorer(
    path: str | Path,
    unfolding: Unfolding,
    sets: Sets,
    *,
    start: Start | None = None,
    title: str = "Turn u yourself",
    note: str = "",
    command: str = "",
) -> Path:
    """Write the page of data sets with what was solved on them; its absolute path."""
    shown = {"title": title, "note": note, "command": command}
    return write_page(path, render(unfolding, sets, start, **shown))


def render(
    unfolding: Unfolding, sets: Sets, start: Start | None = None, title: str = "",
    note: str = "", command: str = "",
) -> str:  # fmt: skip
    """The page as text; see `write_explorer`."""
    neurons, steps = unfolding.n_neurons, unfolding.n_steps
    must(
        neurons <= MAX_NEURONS, "unfolding", f"have at most {MAX_NEURONS} neurons", neurons
    )
    for one, _ in sets:
        got = f"{one.name!r} with {one.n_steps}"
        must(one.n_steps == steps, "sets", f"have the {steps} steps of `unfolding`", got)
    begin = vars(start or Start())
    content = {
        "network": _network(unfolding),
        "sets": [_set(series, solved) for series, solved in sets],
        "start": begin | {"u": None if begin["u"] is None else _encode(begin["u"], "<f8")},
    }
    # "</script>" in a name must not end the script.
    written = json.dumps(plain(content), allow_nan=False).replace("<", "\\u003c")
    return fill_template(
        "explorer/assets/explorer.html",
        title=title,
        note=note,
        command=command,
        style=asset("explorer.css"),
        script=script(),
        content=written,
        version=__version__,
    )


def room_for_series(
    n_neurons: int, n_channels: int, grid_size: int, n_pairs: int = 1
) -> int:
    """Numbers of series, 16 bits each, that a page has room for beside everything else."""
    matrices = 2 * n_neurons**2 * (8 if n_neurons <= DOUBLE_NEURONS else 4)
    point = n_neurons * (n_channels + 1) + N_RANDOM + len(BAND) * N_NOISES
    # κ and the bound of a point are written as digits.
    solved = n_pairs * grid_size * (4 * point + 30)
    left = PAGE_BYTES - _FIXED_BYTES - _BASE64 * (matrices + solved)
    return int(left / (2 * _BASE64))


def _network(unfolding: Unfolding) -> dict[str, Any]:
    E, F = propagators(unfolding)
    kind = "<f8" if unfolding.n_neurons <= DOUBLE_NEURONS else "<f4"
    weights = np.array(unfolding.reservoir.weights, dtype=float)
    np.fill_diagonal(weights, 0.0)
    strongest = np.argsort(-np.abs(weights), axis=None)[:_N_EDGES]
    edges = np.stack(np.unravel_index(strongest, weights.shape), axis=1)
    return {
        "neurons": unfolding.n_neurons,
        "steps": unfolding.n_steps,
        "dt": unfolding.dt,
        "single": kind == "<f4",
        "E": _encode(E, kind),
        "F": _encode(F, kind),
        "edges": edges[weights[tuple(edges.T)] != 0],
    }


def propagators(unfolding: Unfolding) -> tuple[np.ndarray, np.ndarray]:
    """E and F of one step of the linear network: y ↦ E y + F u x."""
    n, linear = unfolding.n_neurons, unfolding.linear
    pulse = linear.with_readout(unfolding.dt).input_response(np.eye(n))
    F = pulse.reshape(n, unfolding.n_steps, n)[:, 0].T
    # No map of a system shows a state that is left alone; the panel it walks does.
    return np.linalg.matrix_power(linear._panel.E.T, linear._n_panels), F


def _set(series: PageSeries, solved: Sequence[SolvedPair]) -> dict[str, Any]:
    parts = {"train": (series.X, series.codes)}
    if series.judged == "test":
        parts["test"] = (series.X_test, series.codes_test)
    proven = [one.pair for one in solved]
    return {
        "name": series.name,
        "note": series.note,
        "thinned": series.thinned,
        "classes": series.classes,
        "weights": series.weights,
        "channels": series.n_channels,
        "scaling": series.scaling,
        "unit": series.unit,
        # Those with a bound first.
        "pairs": proven + [pair for pair in series.pairs() if pair not in proven],
        **{
            name: {"X": _encode(np.rint(X / series.unit), "<i2"), "codes": _encode(c, "u1")}
            for name, (X, c) in parts.items()
        },
        "solved": [_solved(one) for one in solved],
    }


def _solved(solved: SolvedPair) -> dict[str, Any]:
    return {
        "pair": solved.pair,
        "etas": solved.grid.etas,
        "steps": solved.grid.steps,
        "kappa": solved.soft_margin.ravel(),
        "bound": solved.bound.ravel(),
        "u": _encode(solved.u, "<f4"),
        "v": _encode(solved.v, "<f4"),
        "random": _encode(solved.random, "<f4"),
        "noises": solved.noises,
        "accuracy": _encode(solved.random_accuracy, "<f4"),
    }


def _encode(array: np.ndarray, kind: str) -> str:
    """Numbers as text, row by row."""
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()
