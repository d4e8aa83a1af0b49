"""The explorer as one HTML file: the network, the series, what was solved, the script.

Modules of JavaScript as one script: read in order, imports and exports taken away.
"""

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

from ..._base.files import plain, replacing
from ...unfolding.unfolding import Unfolding
from .material import Material
from .solved import BAND, N_NOISES, N_RANDOM, Solved

#: Each imports only from those before it.
MODULES = (
    "numbers",
    "eigen",
    "sphere",
    "network",
    "moments",
    "problem",
    "climb",
    "reference",
    "own_file",
    "address",
    "embed",
    "draw",
    "ring",
    "gauge",
    "clouds",
    "curves",
    "view",
    "words",
    "frame",
    "main",
)
_IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"\./(\w+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.M)
_EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|let|class) +(\w+)", re.M)
_NAMES = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) +(\w+)", re.M)


def asset(name: str) -> str:
    """Text of a file that comes with the package."""
    return (
        files("greenfold.apps.explorer")
        .joinpath("assets", name)
        .read_text(encoding="utf-8")
    )


def script() -> str:
    """All modules as one script.

    Raises
    ------
    ValueError
        Where a module imports one that comes later, or two modules use one name: the
        script would mean something else than the modules do.
    """
    seen: dict[str, str] = {}
    exported: dict[str, list[str]] = {}
    parts = []
    for name in MODULES:
        text = asset(f"js/{name}.js")
        for names, module in _IMPORT.findall(text):
            for needed in filter(None, (one.strip() for one in names.split(","))):
                if needed not in exported.get(module, ()):
                    raise ValueError(
                        f"{name}.js imports {needed} of {module}.js, which does not come "
                        "before it or does not export that."
                    )
        for found in _NAMES.findall(text):
            if found in seen:
                raise ValueError(f"{found} is in {seen[found]}.js and in {name}.js.")
            seen[found] = name
        exported[name] = _EXPORTED.findall(text)
        body = _EXPORT.sub("", _IMPORT.sub("", text)).strip()
        parts.append(f"// {name}.js\n{body}\n")
    return "\n".join(parts)


#: Up to this size E and F travel in double precision, and up to the second one at all.
DOUBLE_NEURONS, MAX_NEURONS = 64, 128
#: Connections that are drawn.
_N_EDGES = 90
#: Bytes of a page, and of what is always on it: script, style, text.
PAGE_BYTES, _FIXED_BYTES = 500_000, 80_000
#: Four characters for three bytes.
_BASE64 = 4 / 3


@dataclass(frozen=True, eq=False)
class Start:
    """Where the page begins.

    Attributes
    ----------
    eta : float or None
        A value of the grid; the page's choice where None.
    noise : float or None
        Standard deviation of the readout noise.
    u : ndarray (n_neurons, n_channels) or None
        Input projection; a random one where None.
    label : str
        Whose u that is, as a button says it.
    """

    eta: float | None = None
    noise: float | None = None
    u: np.ndarray | None = None
    label: str = ""


def write_explorer(
    path: str | Path,
    unfolding: Unfolding,
    sets: Sequence[tuple[Material, Sequence[Solved]]],
    *,
    start: Start | None = None,
    title: str = "Turn u yourself",
    note: str = "",
    command: str = "",
) -> Path:
    """Write the page.

    Parameters
    ----------
    path : str or Path
        Replaced if it exists, in one step at the end.
    unfolding : Unfolding
        The network and its steps; the page uses its linear order.
    sets : sequence of (Material, sequence of Solved)
        Data sets of the unfolding's number of steps, with the pairs that were solved.
    start : Start, optional
    title : str
    note : str
        A sentence on the network.
    command : str
        The command that made the page, shown at its end.

    Returns
    -------
    Path
        The absolute path of the page.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from greenfold import Reservoir, unfold
    >>> from greenfold.apps.explorer import Grid, prepare, solve_grid, which_came_first
    >>> from greenfold.apps.explorer import write_explorer
    >>> material = prepare("bumps", *which_came_first(40, n_steps=20, rng=0))
    >>> unfolding = unfold(Reservoir.random(12, rng=0), n_steps=20, dt=0.5)
    >>> solved = solve_grid(unfolding, material, (0, 1), Grid((3.0,), (20,)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder, "page.html")
    ...     made = write_explorer(page, unfolding, [(material, [solved])])
    ...     made.stat().st_size < 500_000
    True
    """
    text = render(unfolding, sets, start=start, title=title, note=note, command=command)
    target = Path(path).expanduser().absolute()
    with replacing(target) as stream:
        stream.write(text.encode("utf-8", errors="replace"))
    return target


def render(
    unfolding: Unfolding,
    sets: Sequence[tuple[Material, Sequence[Solved]]],
    *,
    start: Start | None = None,
    title: str = "Turn u yourself",
    note: str = "",
    command: str = "",
) -> str:
    """The page as text; see `write_explorer`."""
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(
            f"A page needs {error.name}: install it with `pip install greenfold[report]`."
        ) from error
    if unfolding.n_neurons > MAX_NEURONS:
        raise ValueError(
            f"`unfolding` has {unfolding.n_neurons} neurons; the explorer shows networks "
            f"of up to {MAX_NEURONS}."
        )
    for material, _ in sets:
        if material.n_steps != unfolding.n_steps:
            raise ValueError(
                f"`sets` must have the {unfolding.n_steps} steps of `unfolding`; "
                f"{material.name!r} has {material.n_steps}."
            )
    content = {
        "network": _network(unfolding),
        "sets": [_set(material, solved) for material, solved in sets],
        "start": _start(start or Start()),
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(asset("explorer.html"))
    # "</script>" in a name must not end the script.
    written = json.dumps(plain(content), allow_nan=False).replace("<", "\\u003c")
    return template.render(
        title=title,
        note=note,
        command=command,
        style=Markup(asset("explorer.css")),
        script=Markup(script()),
        content=Markup(written),
        version=_version(),
    )


def room_for_series(
    n_neurons: int, n_channels: int, grid_size: int, n_pairs: int = 1
) -> int:
    """Numbers of series, 16 bits each, that a page has room for beside everything else.

    Parameters
    ----------
    n_neurons, n_channels : int
    grid_size : int
        Points of the grid of η and readout times.
    n_pairs : int
        Pairs that are solved.
    """
    matrices = 2 * n_neurons**2 * (8 if n_neurons <= DOUBLE_NEURONS else 4)
    point = n_neurons * (n_channels + 1) + N_RANDOM + len(BAND) * N_NOISES
    # κ and the bound of a point are written as digits.
    solved = n_pairs * grid_size * (4 * point + 30)
    left = PAGE_BYTES - _FIXED_BYTES - _BASE64 * (matrices + solved)
    return int(left / (2 * _BASE64))


def _network(unfolding: Unfolding) -> dict[str, Any]:
    linear = unfolding.linear
    E, F = propagators(linear)
    kind = "<f8" if unfolding.n_neurons <= DOUBLE_NEURONS else "<f4"
    weights = np.array(unfolding.reservoir.weights, dtype=float)
    np.fill_diagonal(weights, 0.0)
    strongest = np.argsort(-np.abs(weights), axis=None)[:_N_EDGES]
    rows, columns = np.unravel_index(strongest, weights.shape)
    kept = weights[rows, columns] != 0
    return {
        "neurons": unfolding.n_neurons,
        "steps": unfolding.n_steps,
        "dt": unfolding.dt,
        "single": kind == "<f4",
        "E": _encode(E, kind),
        "F": _encode(F, kind),
        "edges": np.stack([rows[kept], columns[kept]], axis=1),
    }


def propagators(unfolding: Unfolding) -> tuple[np.ndarray, np.ndarray]:
    """E and F of one step of the linear network: y ↦ E y + F u x."""
    n = unfolding.n_neurons
    pulse = unfolding.linear.with_readout(unfolding.dt).input_response(np.eye(n))
    F = pulse.reshape(n, unfolding.n_steps, n)[:, 0].T
    # No map of a system shows a state that is left alone; the panel it walks does.
    return np.linalg.matrix_power(unfolding._panel.E.T, unfolding._n_panels), F


def _set(material: Material, solved: Sequence[Solved]) -> dict[str, Any]:
    parts = {"train": (material.X, material.codes)}
    if material.judged == "test":
        parts["test"] = (material.X_test, material.codes_test)
    return {
        "name": material.name,
        "note": material.note,
        "thinned": material.thinned,
        "classes": material.classes,
        "weights": material.weights,
        "channels": material.n_channels,
        "scaling": material.scaling,
        "unit": material.unit,
        "pairs": _pairs(material, solved),
        **{
            name: {
                "X": _encode(np.rint(X / material.unit), "<i2"),
                "codes": _encode(codes, "u1"),
            }
            for name, (X, codes) in parts.items()
        },
        "solved": [_solved(one) for one in solved],
    }


def _pairs(material: Material, solved: Sequence[Solved]) -> list[tuple[int, int]]:
    """All pairs, those with a bound first."""
    proven = [one.pair for one in solved]
    return proven + [pair for pair in material.pairs() if pair not in proven]


def _solved(solved: Solved) -> dict[str, Any]:
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


def _start(start: Start) -> dict[str, Any]:
    u = None if start.u is None else _encode(start.u, "<f8")
    return {"eta": start.eta, "noise": start.noise, "u": u, "label": start.label}


def _encode(array: np.ndarray, kind: str) -> str:
    """Numbers as text, row by row."""
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()


def _version() -> str:
    from ... import __version__

    return __version__
