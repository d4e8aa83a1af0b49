"""The seven figures of the benchmarks page and one of a card, drawn from the records.

Sphinx draws them into ``_build/results`` before it reads the pages, so that they always
show the numbers of the records. ``python docs/_ext/results.py FOLDER`` writes them too.
Each comes twice: ``NAME.svg``, and ``NAME-narrow.svg`` with its panels one below the other.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from greenfold.apps.style import BASE, BOUND, PALETTE, RANDOM, SOLVED

DOCS = Path(__file__).parents[1]
LOOK: dict[Any, Any] = BASE | {
    "grid.color": PALETTE["grid"][0],
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.hashsalt": "greenfold",
}
INK = PALETTE["ink"][0]


def record(path: str) -> dict[str, Any]:
    """Return a recorded JSON file."""
    return json.loads((DOCS / path).read_text("utf-8"))


def rows(name: str) -> list[dict[str, Any]]:
    """Return all rows of a recorded benchmark."""
    found = record(f"_benchmarks/{name}.json")["benchmarks"]
    return [row for one in found for row in one["rows"]]


class Sheet(Figure):
    """A figure as wide as a page or a phone, with its panels side by side or stacked."""

    def __init__(self, *, is_narrow: bool) -> None:
        super().__init__(layout="constrained")
        self.is_narrow = is_narrow

    def panels(self, n: int = 1, height: float = 2.8, **kwargs: Any) -> Any:
        """Return the axes; an array where there are several."""
        stacked = self.is_narrow and n > 1
        self.set_size_inches(3.8 if self.is_narrow else 7.4, height * (n if stacked else 1))
        if stacked:
            self.get_layout_engine().set(h_pad=0.12)  # inches above and below a panel
        return self.subplots(*((n, 1) if stacked else (1, n)), **kwargs)


def margin(sheet: Sheet) -> None:
    """Soft margins of 20 networks: 50 random u each, and the solved one."""
    found = record("_reproduction/table1.json")["numbers"]
    axes = sheet.panels()
    for place, network in enumerate(found["networks"], 1):
        drawn = network["random, linear"]["kappa"]
        best = network["optimised, linear"]["kappa"]
        names = ("50 random u each", "solved u") if place == 1 else (None, None)
        at = np.full(len(drawn), place)
        axes.plot(at, drawn, "_", color=RANDOM, ms=8, alpha=0.6, label=names[0])
        axes.plot(place, np.mean(best), "o", color=SOLVED, label=names[1])
    for kind in ("random", "optimised"):
        mean = found["cells"][f"{kind}, linear"]["kappa"]["paper"]
        name = "mean in the paper" if kind == "random" else None
        axes.axhline(mean, color=INK, ls=":", lw=1, label=name)
    axes.set(xlabel="network", ylabel="soft margin κ", xticks=[1, 5, 10, 15, 20])
    axes.set(ylim=(0, 0.74 if sheet.is_narrow else 0.58))
    axes.legend(ncols=1 if sheet.is_narrow else 3, loc="upper left")
    axes.grid(visible=False, axis="x")


def noise(sheet: Sheet) -> None:
    """Accuracy over readout noise, for three sizes of networks."""
    found = record("_reproduction/beyond.json")
    noises, runs = found["parameters"]["noises"], found["numbers"]["noise"]
    sizes = sorted({run["n_neurons"] for run in runs})
    panels = sheet.panels(len(sizes), sharey=True)
    for axes, size in zip(panels, sizes, strict=True):
        mine = [run for run in runs if run["n_neurons"] == size]
        for key, colour, mark, name in (
            ("optimised", SOLVED, "o-", "solved u"),
            ("random", RANDOM, "s--", "random u"),
        ):
            values = [np.reshape(run[key], (-1, len(noises))).mean(0) for run in mine]
            mean, spread = np.mean(values, 0), np.std(values, 0)
            at = np.arange(len(noises))
            axes.errorbar(
                at, mean, spread, fmt=mark, color=colour, ms=4, capsize=2, label=name
            )
        axes.set_xticks(range(len(noises)), [f"{sigma:g}" for sigma in noises])
        axes.set(xlabel="readout noise σ", title=f"{size} neurons")
    for axes in panels if sheet.is_narrow else panels[:1]:
        axes.set(ylabel="test accuracy (%)")
    panels[0].legend(loc="lower left")


def masks(sheet: Sheet) -> None:
    """Percentages of the bound that masks reach, one mark per network."""
    names = {
        "random ±1": ("random, ±1", RANDOM, "s"),
        "signs of the free optimum": ("signs of the solved u", SOLVED, "^"),
        "two levels, ±1": ("solved, ±1", SOLVED, "o"),
        "four levels": ("solved, four levels", SOLVED, "o"),
        "not negative": ("solved, not negative", SOLVED, "o"),
    }
    axes = sheet.panels(height=2.4)
    for place, row in enumerate(rows("masks")):
        _, colour, mark = names[row["name"]]
        each = row["detail"]["each"]
        at = np.full(len(each), -place)
        axes.plot(each, at, mark, color=colour, ms=5, alpha=0.5, mew=0)
    axes.set_yticks(-np.arange(len(names)), [one[0] for one in names.values()])
    axes.axvline(100, color=BOUND, ls="--", label="proven bound")
    axes.set(xlabel="κ, percentage of the bound", xlim=(0, 104), ylim=(-4.6, 0.6))
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower left")


def forecasts(sheet: Sheet) -> None:
    """Valid times of closed-loop forecasts, with random and with solved input weights."""
    panels = sheet.panels(2, sharey=True)
    found = {row["name"].partition(":")[0]: row["detail"] for row in rows("forecast")}
    noises = (0, 1, 5)
    for axes, system in zip(panels, ("Lorenz", "Mackey–Glass"), strict=True):
        for size, line in ((50, "-"), (100, "--")):
            own = [found[f"{system}, N = {size}, noise {noise} %"] for noise in noises]
            for key, colour, mark, name in (
                ("solved", SOLVED, "o", "solved"),
                ("drawn", RANDOM, "s", "random"),
            ):
                mean = [np.mean(one[key]) for one in own]
                spread = [np.std(one[key]) for one in own]
                axes.errorbar(range(3), mean, spread, fmt=mark + line, color=colour, ms=4,
                              mfc=colour if size == 50 else "white", capsize=2,
                              label=f"{name}, {size} neurons")  # fmt: skip
        axes.set_xticks(range(3), [f"{noise} %" for noise in noises])
        axes.set(title=system, xlabel="noise on the series")
    panels[0].set(ylim=(0, None))
    for axes in panels if sheet.is_narrow else panels[:1]:
        axes.set(ylabel="valid time\n(Lyapunov times)")
    panels[1].legend()


def equal_time(sheet: Sheet) -> None:
    """Valid times and fitting times of solved networks and of larger drawn ones."""
    kinds = (
        ("solved", "solved", 300, SOLVED, "o"),
        ("drawn", "random", 1000, RANDOM, "s"),
    )
    large = [row for row in rows("equal-time") if "solved N = 300" in row["name"]]
    found = {row["name"].partition(":")[0]: row["detail"] for row in large}
    panels = sheet.panels(len(found), height=2.6)
    for axes, (system, own) in zip(panels, found.items(), strict=True):
        for place, (kind, _, _, colour, mark) in enumerate(kinds):
            each = own[kind]
            axes.plot(np.full(len(each), place), each, mark, color=colour, alpha=0.5)
            mean = np.mean(each)
            axes.plot([place - 0.25, place + 0.25], [mean, mean], color=colour, lw=2)
        labels = [
            f"{name}\nN = {size}\n{own[f'{k}_s']:.0f} s" for k, name, size, *_ in kinds
        ]
        axes.set_xticks(range(2), labels)
        top = 1.1 * max(own["solved"] + own["drawn"])
        axes.set(title=system, xlim=(-0.6, 1.6), ylim=(0, top))
        axes.grid(visible=False, axis="x")
    for axes in panels if sheet.is_narrow else panels[:1]:
        axes.set(ylabel="valid time\n(Lyapunov times)")


def ranks(sheet: Sheet) -> None:
    """Mean accuracy and mean rank on the sets of the sweep."""
    found = record("_sweep/comparison.json")
    names, ranks = found["estimators"], found["mean_rank"]
    order = np.argsort(ranks)[::-1]

    def is_ours(name: str) -> bool:
        return name.endswith("ReservoirClassifier")

    panels = sheet.panels(2, sharey=not sheet.is_narrow, height=2.7)
    for axes, key, label in zip(
        panels,
        ("mean_accuracy", "mean_rank"),
        ("mean accuracy", f"mean rank of {len(names)} (1 is best)"),
        strict=True,
    ):
        for place, i in enumerate(order):
            mark, colour = ("o", INK) if is_ours(names[i]) else ("D", BOUND)
            axes.plot(found[key][i], place, mark, color=colour)
        axes.set(xlabel=label)
        axes.margins(x=0.12)
    for axes in panels if sheet.is_narrow else panels[:1]:
        axes.set_yticks(range(len(order)), [names[i] for i in order])
        for label in axes.get_yticklabels():
            label.set_weight("bold" if is_ours(label.get_text()) else "normal")


def saturation(sheet: Sheet) -> None:
    """Soft margins on the simulated network, for four ways to choose u."""
    found = record("_benchmarks/saturation.json")["problems"]
    mine = [one for one in found if (one["gain"], one["strength"]) == ("biased tanh", 0.19)]
    names = {
        "random u, readout refitted": ("random u", RANDOM, "s"),
        "linear u, readout refitted": ("solved, linear network", SOLVED, "^"),
        "order-1 u, readout refitted": ("solved, first order", SOLVED, "v"),
        "Dynamics": ("solved, simulated network", SOLVED, "o"),
    }
    axes = sheet.panels()
    # Side by side within each network, as many marks would coincide.
    for shift, (key, (name, colour, mark)) in zip(
        (-0.21, -0.07, 0.07, 0.21), names.items(), strict=True
    ):
        values = [one["rows"][key]["soft_margin"] for one in mine]
        errors = [one["rows"][key]["error"] for one in mine]
        at = np.arange(1, len(mine) + 1) + shift
        axes.errorbar(at, values, errors, fmt=mark, color=colour,
                      mfc=colour if key in ("Dynamics", "random u, readout refitted")
                      else "white", ms=6, capsize=2, label=name)  # fmt: skip
    axes.set(
        xlabel="network",
        ylabel="κ on the simulated network",
        xticks=range(1, len(mine) + 1),
    )
    axes.set(ylim=(0, 0.021 if sheet.is_narrow else 0.0175), xlim=(0.5, len(mine) + 0.5))
    axes.legend(ncols=1 if sheet.is_narrow else 2, loc="upper left")
    axes.grid(visible=False, axis="x")


def eta(sheet: Sheet) -> None:
    """Accuracy over η; the picture of a card among the how-to pages."""
    found = record("_reproduction/supplement.json")
    axes = sheet.panels()
    for key, colour, mark, name in (
        ("optimised", SOLVED, "o-", "solved u"),
        ("random", RANDOM, "s--", "random u"),
    ):
        each = [[one[key]["accuracy"] for one in row] for row in found["numbers"]["eta"]]
        mean, spread = np.mean(each, 0), np.std(each, 0)
        look: Any = {"fmt": mark, "color": colour, "capsize": 2, "label": name}
        axes.errorbar(found["parameters"]["etas"], mean, spread, **look)
    axes.set(xscale="log", xlabel="η", ylabel="accuracy (%)")
    sheet.set_size_inches(2.4, 1.6)  # so that its text stays readable on a card


FIGURES = (margin, noise, masks, forecasts, equal_time, ranks, saturation, eta)


def write(folder: Path) -> None:
    """Draw all of them into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(LOOK):
        for draw in FIGURES:
            for is_narrow, end in ((False, ""), (True, "-narrow")):
                draw(sheet := Sheet(is_narrow=is_narrow))
                path = folder / f"{draw.__name__}{end}.svg"
                sheet.savefig(path, metadata={"Date": None}, transparent=True)


def setup(app: Any) -> dict[str, Any]:
    """Draw them before the pages are read."""
    app.connect(
        "builder-inited", lambda app: write(Path(app.srcdir) / "_build" / "results")
    )
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
