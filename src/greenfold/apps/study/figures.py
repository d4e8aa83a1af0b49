"""The figures of a study: architectures beside each other, and maps over N, g and τ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.files import write_figure
from ..style import BASE, BOUND, RANDOM, SOLVED
from .experiment import ARCHITECTURES

Row = dict[str, Any]
#: What a network is beside its architecture and seed; networks are compared where these
#: are equal.
_SAME = ("neurons", "g", "tau", "order", "gain")


def draw(rows: Sequence[Row], folder: str | Path, kind: str = "svg") -> list[Path]:
    """Draw what the rows have: architectures, a map, or both.

    Parameters
    ----------
    rows : sequence of dict
        From `read_study`.
    folder : str or Path
    kind : {"svg", "png", "pdf"}

    Returns
    -------
    list of Path
        For each data set ``<name>_architectures.<kind>`` where there are several at equal
        numbers, and ``<name>_map.<kind>`` where g and τ vary.
    """
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            "Figures need matplotlib: pip install 'greenfold[report]'."
        ) from None
    place = Path(folder).expanduser()
    style: Any = BASE | {"svg.hashsalt": "greenfold", "figure.constrained_layout.use": True}
    written = []
    with matplotlib.rc_context(style):
        for name in dict.fromkeys(row["dataset"] for row in rows):
            own = [row for row in rows if row["dataset"] == name]
            makers: dict[str, Callable[[str, list[Row]], Any]] = {
                "architectures": architectures,
                "map": margin_map,
            }
            for what, make in makers.items():
                figure = make(name, own)
                if figure is not None:
                    place.mkdir(parents=True, exist_ok=True)
                    written.append(
                        write_figure(
                            place / f"{name}_{what}.{kind}", figure, bbox_inches="tight"
                        )
                    )
    return written


def architectures(name: str, rows: Sequence[Row]) -> Any:
    """κ* and memory by architecture at equal numbers; None where there is one only."""
    from matplotlib.figure import Figure

    same = _most_compared(rows)
    own = [row for row in rows if all(row[k] == v for k, v in same.items())]
    kinds = [k for k in ARCHITECTURES if any(row["architecture"] == k for row in own)]
    if len(kinds) < 2:
        return None
    panels: list[tuple[str, str, list[Row], str]] = []
    for inside in sorted({row["inside"] for row in own}):
        part = [row for row in own if row["inside"] == inside]
        title = f"noise inside, √Q = {inside:g}" if inside else "no noise inside"
        panels.append((title, "kappa", part, "soft margin κ (a.u.)"))
    remembering = [row for row in own if row.get("memory") is not None]
    if remembering:
        label = "memory capacity (steps of input)"
        panels.append(("memory, 40 steps of white input", "memory", remembering, label))
    figure = Figure(figsize=(3.1 * len(panels) + 0.6, 3.6))
    axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
    for at, (title, column, part, label) in zip(axes, panels, strict=True):
        _points(at, kinds, column, part)
        at.set_title(title, loc="left", fontsize=9.5)
        at.set_xlabel(label)
        at.set_xlim(left=min(0.0, at.get_xlim()[0]))
    axes[0].set_yticks(range(len(kinds)), [k.replace("_", " ") for k in kinds])
    axes[0].set_ylim(len(kinds) - 0.5, -0.5)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside upper left",
        ncols=3,
        frameon=False,
        fontsize=8.5,
        title=f"{name}: {same['neurons']} neurons, g = {same['g']:g}, τ = {same['tau']:g}",
        title_fontsize=9.5,
        alignment="left",
    )
    return figure


def _points(at: Any, kinds: list[str], column: str, rows: list[Row]) -> None:
    """A dot a seed, a bar at the mean; the bound of each as a tick."""
    bound = "bound" if column == "kappa" else f"{column}_bound"
    for place, kind in enumerate(kinds):
        own = [row for row in rows if row["architecture"] == kind]
        looks = (
            (f"{column}_random", RANDOM, "s", -0.17, "random u"),
            (column, SOLVED, "o", 0.17, "solved u"),
        )
        for key, colour, marker, shift, label in looks:
            values = np.array([row[key] for row in own], dtype=float)
            if not len(values):
                continue
            y = np.full(len(values), place + shift)
            mark = {"color": colour, "marker": marker, "ls": "none", "ms": 4, "alpha": 0.6}
            at.plot(values, y, label=label if place == 0 else None, **mark)
            at.plot([values.mean()] * 2, place + shift + np.array([-0.16, 0.16]), c=colour)
        bounds = [row[bound] for row in own if row.get(bound) is not None]
        at.plot(
            bounds,
            np.full(len(bounds), place + 0.17),
            color=BOUND,
            marker="|",
            ls="none",
            ms=9,
            zorder=1.5,
            label="upper bound" if place == 0 and bounds else None,
        )


def margin_map(name: str, rows: Sequence[Row]) -> Any:
    """κ* and κ*/κ_random over g and τ, a column each N; None where they do not vary."""
    from matplotlib.figure import Figure

    kinds = {}
    for row in rows:
        kinds.setdefault(_map_key(row), []).append(row)
    own = max(kinds.values(), key=lambda part: len({(r["g"], r["tau"]) for r in part}))
    gs, taus, own = _lattice(own)
    if len(gs) < 2 or len(taus) < 2:
        return None
    sizes = sorted({row["neurons"] for row in own})
    figure = Figure(figsize=(2.5 * len(sizes) + 1.3, 5.2))
    axes = figure.subplots(2, len(sizes), squeeze=False, sharex=True, sharey=True)
    tables = {
        "kappa": np.array(
            [[[_mean(own, n, g, t, False) for t in taus] for g in gs] for n in sizes]
        ),
        "ratio": np.array(
            [[[_mean(own, n, g, t, True) for t in taus] for g in gs] for n in sizes]
        ),
    }
    labels = {"kappa": "certified κ* (a.u.)", "ratio": "κ* / κ of random u"}
    for line, (key, table) in enumerate(tables.items()):
        limits = (float(np.nanmin(table)), float(np.nanmax(table)))
        shown: Any = None
        for column, n in enumerate(sizes):
            at = axes[line, column]
            shown = at.imshow(
                table[column],
                origin="lower",
                aspect="auto",
                cmap="cividis",
                vmin=limits[0],
                vmax=limits[1],
            )
            _numbers(at, table[column], limits)
            at.grid(False)
            if line == 0:
                at.set_title(f"N = {n}", fontsize=9.5)
        figure.colorbar(shown, ax=axes[line, :].tolist(), label=labels[key])
    for at in axes[-1]:
        at.set_xticks(range(len(taus)), [f"{t:g}" for t in taus], rotation=45)
        at.set_xlabel("time constant τ (a.u.)")
    for at in axes[:, 0]:
        at.set_yticks(range(len(gs)), [f"{g:g}" for g in gs])
        at.set_ylabel("spectral radius g")
    kind = own[0]["architecture"].replace("_", " ")
    figure.suptitle(f"{name}: {kind} networks", x=0.01, ha="left", fontsize=10)
    return figure


def _lattice(rows: list[Row]) -> tuple[list[float], list[float], list[Row]]:
    """Values of g and τ that were combined with each other; not those of random draws."""
    partners: dict[str, dict[float, set[float]]] = {"g": {}, "tau": {}}
    for row in rows:
        partners["g"].setdefault(row["g"], set()).add(row["tau"])
        partners["tau"].setdefault(row["tau"], set()).add(row["g"])
    gs, taus = (
        sorted(value for value, others in partners[k].items() if len(others) > 1)
        for k in ("g", "tau")
    )
    return gs, taus, [row for row in rows if row["g"] in gs and row["tau"] in taus]


def _numbers(at: Any, table: np.ndarray, limits: tuple[float, float]) -> None:
    middle = sum(limits) / 2
    for (i, j), value in np.ndenumerate(table):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            at.text(j, i, f"{value:.2f}", ha="center", va="center", size=7.5, c=colour)


def _mean(rows: list[Row], n: int, g: float, tau: float, ratio: bool) -> float:
    """Mean over seeds."""
    own = [r for r in rows if (r["neurons"], r["g"], r["tau"]) == (n, g, tau)]
    if not own:
        return float("nan")
    if not ratio:
        return float(np.mean([r["kappa"] for r in own]))
    return float(np.mean([r["kappa"] / r["kappa_random"] for r in own]))


def _map_key(row: Row) -> tuple[Any, ...]:
    return tuple(row[k] for k in ("architecture", "order", "gain", "inside"))


def _most_compared(rows: Sequence[Row]) -> Row:
    """The numbers at which most architectures were studied."""
    found: dict[tuple[Any, ...], set[str]] = {}
    for row in rows:
        found.setdefault(tuple(row[k] for k in _SAME), set()).add(row["architecture"])
    best = max(found, key=lambda one: len(found[one]))
    return dict(zip(_SAME, best, strict=True))
