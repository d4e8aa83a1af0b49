"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..apps.report.comparison import Row
from .options import console


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "–"


def comparison(rows: Sequence[Row], title: str, notes: Sequence[str]) -> None:
    """Print the comparison, and notes below it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    noisy = any(row.noise for row in rows)
    # Eighty columns hold it without frames.
    table = Table(
        title=Text(title),
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("network", no_wrap=True)
    table.add_column("input u", no_wrap=True)
    names = ["η", "margin κ", "bound", "accuracy"]
    for name in names + ([f"noise {rows[0].noise:g}"] if noisy else []) + ["fit"]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = [
            row.network,
            row.projection,
            f"{row.classifier.eta_:.3g}",
            _number(row.soft_margin),
            _number(row.bound) + (" ✓" if row.proven else ""),
            f"{row.accuracy:.1%}",
        ]
        cells += [f"{row.noisy_accuracy:.1%}"] if noisy else []
        style = "bold" if row.is_solved else None
        table.add_row(*map(Text, [*cells, f"{row.seconds:.1f} s"]), style=style)
    screen = console()
    screen.print(table)
    if any(row.proven for row in rows):
        notes = ["✓ proven: no projections of this network do better at this η.", *notes]
    for note in notes:
        screen.print(Text(note))


def sweep_comparison(made: Any) -> None:
    """Print the accuracies of a sweep, a row a data set where there are few."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text(f"Accuracy, {made.basis}")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", no_wrap=True)
    for name in ("mean accuracy", "mean rank", "best on"):
        table.add_column(name, justify="right", no_wrap=True)
    best = (made.accuracy >= made.accuracy.max(axis=1, keepdims=True)).sum(axis=0)
    for i in np.argsort(-made.mean_accuracy, kind="stable"):
        cells = [
            made.estimators[i],
            f"{made.mean_accuracy[i]:.4f}",
            f"{made.mean_rank[i]:.2f}",
            f"{best[i]} of {len(made.datasets)}",
        ]
        style = "bold" if made.estimators[i] in made.own else None
        table.add_row(*map(Text, cells), style=style)
    screen = console()
    screen.print(table)
    if made.left_out:
        screen.print(Text(f"Left out, not complete: {', '.join(made.left_out)}."))
    for note in made.notes:
        screen.print(Text(note))


def facts(pairs: Sequence[tuple[str, Any]]) -> None:
    """Print names and values, one a line."""
    from rich.table import Table
    from rich.text import Text

    screen = console()
    if not screen.is_terminal:
        # A file or another program: a value is a line, however long.
        width = max(len(name) for name, _ in pairs)
        print("\n".join(f"{name:<{width}}  {value}" for name, value in pairs))
        return
    table = Table.grid(padding=(0, 2))
    for name, value in pairs:
        table.add_row(Text(name, style="bold"), Text(str(value)))
    screen.print(table)


def orders(errors: np.ndarray, slopes: np.ndarray) -> None:
    """Print the error of every order of the unfolding."""
    from rich.table import Table

    from ..apps.demo import ALPHAS, ORDERS

    table = Table(
        title="Unfolded states against an ODE solver, relative error", title_justify="left"
    )
    for name in ("order", *(f"α = {alpha:g}" for alpha in ALPHAS), "slope", "theory"):
        table.add_column(name, justify="right", no_wrap=True)
    for order, line, slope in zip(ORDERS, errors, slopes, strict=True):
        cells = [f"{error:.1e}" for error in line]
        table.add_row(str(order), *cells, f"{slope:.2f}", str(order + 1))
    console().print(table)


#: Rows of a study that are printed; its table has all.
_BEST = 15


def study_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the networks of a study with the largest κ*, means over their seeds."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    axes = ("dataset", "architecture", "neurons", "g", "tau", "order", "gain", "inside")
    varied: list[Any] = [k for k in axes if len({str(row[k]) for row in rows}) > 1]
    varied = varied or ["architecture"]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in axes), []).append(row)
    noises = [k for k in rows[0] if k.startswith("accuracy_") and "random" not in k]
    accuracy = noises[-1]

    def mean(own: list[dict[str, Any]], key: str) -> float:
        return float(np.mean([np.nan if row[key] is None else row[key] for row in own]))

    ranked = sorted(groups.items(), key=lambda item: -mean(item[1], "kappa"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k in varied:
        table.add_column(k, no_wrap=True)
    noise = accuracy.partition("_")[2]
    headers = ("nets", "κ", "bound", "κ random", f"accuracy, noise {noise}", "random")
    for k in headers:
        table.add_column(k, justify="right")
    for key, own in ranked[:_BEST]:
        named = dict(zip(axes, key, strict=True))
        bound = mean(own, "bound")
        cells = [_setting(named[k]) for k in varied]
        cells += [str(len(own)), f"{mean(own, 'kappa'):.4f}"]
        cells += ["–" if np.isnan(bound) else f"{bound:.4f}"]
        cells += [f"{mean(own, 'kappa_random'):.4f}", f"{mean(own, accuracy):.1%}"]
        cells += [f"{mean(own, f'accuracy_random_{noise}'):.1%}"]
        table.add_row(*map(Text, cells))
    screen = console()
    screen.print(table)
    if len(ranked) > _BEST:
        screen.print(Text(f"The {_BEST} of largest κ of {len(ranked)}; the table has all."))


def _setting(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
