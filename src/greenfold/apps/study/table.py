"""The results of a study: one table, architectures beside each other, maps over N, g, τ."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.checks import must, needs, require
from ..._base.files import write_figure
from ..runner import is_whole, write_bytes, write_csv
from ..style import BOUND, RANDOM, SOLVED, drawing
from .plan import ARCHITECTURES

Row = dict[str, Any]
#: What a network is beside its architecture and seed; networks are compared where these
#: are equal.
_SAME = ("neurons", "g", "tau", "order", "gain")


def read_study(folder: str | Path, paths: Collection[str] | None = None) -> list[Row]:
    """Return all results in a folder, one row each, in the order of their files.

    A row has the setting of a network and what it reached: ``kappa`` with its ``bound``,
    ``kappa_random`` of random u, ``accuracy_<noise>`` and ``accuracy_random_<noise>``, and,
    if asked for, ``memory``. ``paths`` limits it to these files. Damaged ones are left out.
    """
    place = Path(folder).expanduser()
    rows = []
    for path in sorted((place / "results").rglob("*.json")):
        if paths is not None and path.relative_to(place).as_posix() not in paths:
            continue
        content, row = path.read_bytes(), None
        with suppress(ValueError):
            row = json.loads(content)
        if isinstance(row, dict) and row.pop("seal", None) and is_whole(content):
            rows.append(row)
    none = f"There are no results of a study in {str(folder)!r}; run one first."
    require(rows, none, FileNotFoundError)
    return rows


def write_table(rows: Sequence[Row], path: str | Path) -> Path:
    """Write the rows of `read_study` as CSV or, by the suffix, as Parquet (pyarrow)."""
    target = Path(path).expanduser()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_cell(name, row.get(name)) for name in columns] for row in rows]
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
    return write_bytes(target, sink.getvalue().to_pybytes())


def _cell(name: str, value: Any) -> Any:
    """Lists have no place in a cell, and orders may be numbers or a word."""
    listed = value if isinstance(value, list) else [value]
    return " ".join(map(str, listed)) if name == "order" or listed is value else value


def draw(rows: Sequence[Row], folder: str | Path, kind: str = "svg") -> list[Path]:
    """Draw what the rows have: architectures beside each other, and a map over g and τ."""
    place = Path(folder).expanduser()
    written = []
    with drawing({"svg.hashsalt": "greenfold", "figure.constrained_layout.use": True}):
        for name in dict.fromkeys(row["dataset"] for row in rows):
            own = [row for row in rows if row["dataset"] == name]
            for what, make in (("architectures", architectures), ("map", margin_map)):
                figure = make(name, own)
                if figure is not None:
                    place.mkdir(parents=True, exist_ok=True)
                    target = place / f"{name}_{what}.{kind}"
                    written.append(write_figure(target, figure, bbox_inches="tight"))
    return written


def architectures(name: str, rows: Sequence[Row]) -> Any:
    """κ* and memory by architecture at equal numbers; None where there is one only."""
    from matplotlib.figure import Figure

    # The numbers at which most architectures were studied.
    studied: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for row in rows:
        studied[tuple(row[k] for k in _SAME)].add(row["architecture"])
    most = max(studied, key=lambda one: len(studied[one]))
    same = dict(zip(_SAME, most, strict=True))
    own = [row for row in rows if all(row[k] == v for k, v in same.items())]
    kinds = [k for k in ARCHITECTURES if any(row["architecture"] == k for row in own)]
    if len(kinds) < 2:
        return None
    panels: list[tuple[str, str, str, list[Row]]] = []
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


def _points(at: Any, kinds: list[str], column: str, rows: list[Row]) -> None:
    """One dot per seed, a bar at the mean; the bound of each as a tick."""
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
            at.plot([values.mean()] * 2, place + shift + np.array([-0.16, 0.16]), c=colour)
        bounds = [row[bound] for row in own if row.get(bound) is not None]
        label = "upper bound" if place == 0 and bounds else None
        y = np.full(len(bounds), place + 0.17)
        at.plot(bounds, y, "|", color=BOUND, ms=9, zorder=1.5, label=label)


def margin_map(name: str, rows: Sequence[Row]) -> Any:
    """κ* and κ*/κ_random over g and τ, a column each N; None where they do not vary."""
    from matplotlib.figure import Figure

    kinds: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        kind = tuple(row[k] for k in ("architecture", "order", "gain", "inside"))
        kinds[kind].append(row)
    own = max(kinds.values(), key=lambda part: len({(r["g"], r["tau"]) for r in part}))
    # Values of g and τ that were combined with each other; not those of random draws.
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
    for line, (label, values) in enumerate(shown_values):
        # Mean over seeds, (n_sizes, n_g, n_tau); empty cells are NaN.
        cells = defaultdict(list)
        for row, value in zip(own, values, strict=True):
            cells[row["neurons"], row["g"], row["tau"]].append(value)
        means = {place: np.mean(cell) for place, cell in cells.items()}
        table = np.array(
            [[[means.get((n, g, t), np.nan) for t in taus] for g in gs] for n in sizes]
        )
        limits = (float(np.nanmin(table)), float(np.nanmax(table)))
        look: dict[str, Any] = {"origin": "lower", "aspect": "auto", "cmap": "cividis"}
        shown: Any = None
        centred = {"ha": "center", "va": "center", "size": 7.5}
        for column, n in enumerate(sizes):
            at = axes[line, column]
            shown = at.imshow(table[column], vmin=limits[0], vmax=limits[1], **look)
            for (i, j), value in np.ndenumerate(table[column]):
                if np.isfinite(value):
                    colour = "white" if value < sum(limits) / 2 else "black"
                    at.text(j, i, f"{value:.2f}", c=colour, **centred)
            at.grid(False)
            if line == 0:
                at.set_title(f"N = {n}", fontsize=9.5)
        figure.colorbar(shown, ax=axes[line, :].tolist(), label=label)
    for at in axes[-1]:
        at.set_xticks(range(len(taus)), [f"{t:g}" for t in taus], rotation=45)
        at.set_xlabel("time constant τ (a.u.)")
    for at in axes[:, 0]:
        at.set_yticks(range(len(gs)), [f"{g:g}" for g in gs])
        at.set_ylabel("spectral radius g")
    kind = own[0]["architecture"].replace("_", " ")
    figure.suptitle(f"{name}: {kind} networks", x=0.01, ha="left", fontsize=10)
    return figure
