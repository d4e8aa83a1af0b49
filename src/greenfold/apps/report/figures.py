"""The figures of a report, each from a task and its fitted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from . import content
from .canvas import (
    CLASS_HUES,
    COLOURS,
    DASHES,
    GRID,
    INK,
    RANDOM,
    SOLVED,
    Key,
    Picture,
    area,
    drawing,
    key,
    limits,
)
from .comparison import Row, Split

#: Classes and channels that a page shows; the first ones.
MAX_CLASSES = 5
MAX_CHANNELS = 4


def name_of(label: Any) -> str:
    """A class label as text."""
    return str(label)


def _hue(row: Row) -> int:
    return SOLVED if row.is_solved else RANDOM


def _style(row: Row) -> dict[str, Any]:
    """Colour for the projection, dash for the order."""
    return {"color": COLOURS[_hue(row)], "linestyle": DASHES[row.dash]}


def _keys(rows: Sequence[Row]) -> list[Key]:
    return [key(f"{row.projection} u, {row.network}", _hue(row), row.dash) for row in rows]


def class_hue(index: int) -> int:
    """Hue of a class by its number."""
    return CLASS_HUES[index % len(CLASS_HUES)]


def _in_tau(row: Row, times: Any) -> np.ndarray:
    return np.asarray(times) / row.classifier.reservoir_.mean_tau


def _steps(row: Row) -> np.ndarray:
    """Middle of every step of a series, in units of τ."""
    n_steps = row.classifier.n_features_in_
    dt = row.classifier.duration / n_steps
    return _in_tau(row, dt * (np.arange(n_steps) + 0.5))


def class_means(task: Split, row: Row) -> list[Picture]:
    """Mean and spread of every class, one picture a channel."""
    shapes = content.class_shapes(row.classifier, task.X, task.y)[:MAX_CLASSES]
    time = _steps(row)
    found = []
    n_channels = row.classifier.n_channels_in_
    faint = 0.22 if len(shapes) == 2 else 0.12
    for channel in range(min(n_channels, MAX_CHANNELS)):
        with drawing(f"means{channel}") as made:
            ax = made.axes
            for i, shape in enumerate(shapes):
                mean, spread = shape.mean[channel], shape.spread[channel]
                colour = COLOURS[class_hue(i)]
                ax.fill_between(
                    time, mean - spread, mean + spread, color=colour, alpha=faint, lw=0
                )
                ax.plot(time, mean, color=colour, linestyle=DASHES[i % len(DASHES)])
            ax.set(xlabel="time t (units of τ)", ylabel="x(t) (unit of the data)")
            ax.margins(x=0)
        which = f", channel {channel + 1} of {n_channels}" if n_channels > 1 else ""
        found.append(
            Picture(
                f"Class means and spread{which}",
                made.svg,
                "Lines: mean of the training series. Bands: one standard deviation.",
                [
                    key(f"{name_of(shape.label)} ({shape.count} series)", class_hue(i), i)
                    for i, shape in enumerate(shapes)
                ],
            )
        )
    return found


def margin_over_optimisation(task: Split, rows: Sequence[Row]) -> Picture | None:
    """κ of the best pair so far, evaluation by evaluation."""
    curves = []
    for row in rows:
        if row.is_solved:
            curve = content.margin_over_optimisation(row.classifier, task.X, task.y)
            if curve is not None and len(curve):
                curves.append((row, curve))
    if not curves:
        return None
    with drawing("history") as made:
        ax = made.axes
        for row, curve in curves:
            ax.plot(np.arange(len(curve)), curve, **_style(row))
            if len(curve) == 1:
                ax.plot([0], curve, "o", color=COLOURS[SOLVED])
        bounds = [bound for row, _ in curves if np.isfinite(bound := _bound_of_first(row))]
        for bound in bounds:
            ax.axhline(bound, color=INK, linestyle=DASHES[2], linewidth=1.2)
        shown = np.concatenate([curve for _, curve in curves])
        # A start far below would flatten everything of interest.
        low = max(float(shown.min()), float(-0.5 * abs(shown.max())))
        ax.set_ylim(*limits([low, shown.max(), *bounds]))
        ax.set(xlabel="evaluation", ylabel="soft margin κ (unit of the states)")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    keys = _keys([row for row, _ in curves])
    if bounds:
        keys.append(Key("upper bound (certificate)", "--ink", "2.4 2.4"))
    return Picture(
        "Soft margin over the optimisation",
        made.svg,
        "Best pair of projections so far." + _first_class(rows[0]),
        keys,
    )


def _bound_of_first(row: Row) -> float:
    """Bound of the first comparison; a row has their mean."""
    bounds = np.atleast_1d(row.classifier.soft_margin_bound_)
    return row.bound if len(bounds) == 1 else float(bounds[0])


def margin_over_time(task: Split, rows: Sequence[Row]) -> Picture:
    """κ at the fitted u against the readout time."""
    with drawing("readout") as made:
        ax = made.axes
        for row in rows:
            times, values = content.margin_over_readout_time(row.classifier, task.X, task.y)
            ax.plot(_in_tau(row, times), values, **_style(row))
        ax.axhline(0, color=GRID, linewidth=1, zorder=1)
        ax.set(
            xlabel="readout time t (units of τ)",
            ylabel="soft margin κ (unit of the states)",
        )
        ax.margins(x=0)
    return Picture(
        "Soft margin over the readout time",
        made.svg,
        "The fitted input projection, read at t by the readout that is best there."
        + _first_class(rows[0]),
        _keys(rows),
    )


def _first_class(row: Row) -> str:
    classes = row.classifier.classes_
    return (
        "" if len(classes) == 2 else f" Shown for {name_of(classes[0])} against the rest."
    )


def linear_kernels(rows: Sequence[Row]) -> list[Picture]:
    """Linear kernel a(t), one picture a row, all to the same scale."""
    found = []
    shown = [(row, kernels) for row in rows if (kernels := _kernels(row))]
    scale = limits(
        np.concatenate(
            [kernel.linear[:MAX_CHANNELS].ravel() for _, k in shown for _, kernel in k]
        )
        if shown
        else []
    )
    for row, kernels in shown:
        with drawing(f"kernel{row.projection}{row.order}") as made:
            ax = made.axes
            keys = []
            for i, (label, kernel) in enumerate(kernels):
                for channel, values in enumerate(kernel.linear[:MAX_CHANNELS]):
                    hue, dash = (
                        (_hue(row), channel) if len(kernels) == 1 else (class_hue(i), i)
                    )
                    ax.plot(
                        _steps(row), values, color=COLOURS[hue], linestyle=DASHES[dash % 4]
                    )
                    if len(kernels) > 1 and channel == 0:
                        keys.append(key(label, hue, dash))
                    elif len(kernels) == 1 and len(kernel.linear) > 1:
                        keys.append(key(f"channel {channel + 1}", hue, channel))
            ax.axhline(0, color=GRID, linewidth=1, zorder=1)
            ax.set(xlabel="time t (units of τ)", ylabel="a(t) (states per input)")
            ax.set_ylim(*scale)
            ax.margins(x=0)
        found.append(
            Picture(
                f"Linear kernel, {row.projection} u, {row.network}",
                made.svg,
                "What the readout adds for a unit of input at each time.",
                keys,
            )
        )
    return found


def _kernels(row: Row) -> list[tuple[str, Any]]:
    kernel, classes = row.classifier.kernel_, row.classifier.classes_
    if kernel is None:
        return []
    if not isinstance(kernel, list):
        return [(name_of(classes[1]), kernel)]
    pairs = zip(classes.tolist(), kernel, strict=True)
    return [(name_of(label), one) for label, one in pairs if one is not None][:MAX_CLASSES]


def quadratic_kernels(rows: Sequence[Row]) -> list[Picture]:
    """Quadratic kernel C(t, t') of the first comparison and channel, to one scale."""
    found = []
    shown = [
        (row, kernels[0][1].quadratic[0, :, 0, :])
        for row in rows
        if (kernels := _kernels(row)) and kernels[0][1].quadratic is not None
    ]
    largest = max((float(np.abs(C).max()) for _, C in shown), default=1.0) or 1.0
    for row, C in shown:
        end = row.classifier.duration / row.classifier.reservoir_.mean_tau
        with drawing(f"quadratic{row.projection}", height=3.3) as made:
            ax = made.axes
            ax.grid(False)
            # PuOr is safe for the colour-blind and white where the kernel vanishes.
            image = ax.imshow(
                C,
                origin="lower",
                extent=(0, end, 0, end),
                cmap="PuOr",
                vmin=-largest,
                vmax=largest,
                interpolation="nearest",
            )
            bar = made.figure.colorbar(image, ax=ax, shrink=0.85)
            bar.set_label("C(t, t′) (states per input²)")
            bar.outline.set_edgecolor(INK)  # pyright: ignore[reportCallIssue]
            ax.set(xlabel="time t′ (units of τ)", ylabel="time t (units of τ)")
        found.append(
            Picture(
                f"Quadratic kernel, {row.projection} u, {row.network}",
                made.svg,
                "What the readout adds for two unit inputs at t and t′."
                + _first_class(row),
            )
        )
    return found


def mode_loadings(rows: Sequence[Row]) -> Picture:
    """Size of u along the modes of the network, against their time constants."""
    markers = ("o", "^")
    with drawing("modes") as made:
        ax = made.axes
        for row in sorted(rows, key=lambda row: row.is_solved):
            constants, sizes = content.mode_loadings(row.classifier)
            ax.plot(
                _in_tau(row, constants),
                sizes,
                markers[row.dash],
                color=COLOURS[_hue(row)],
                markersize=4.5,
                markerfacecolor=COLOURS[_hue(row)] if row.is_solved else "none",
            )
        ax.set_xscale("log")
        _plain_decades(
            ax,
            content.mode_loadings(rows[0].classifier)[0]
            / rows[0].classifier.reservoir_.mean_tau,
        )
        ax.set(
            xlabel=r"time constant $\tau_\alpha$ of the mode (units of $\tau$)",
            ylabel=r"loading $|w_\alpha \cdot u|$",
        )
        ax.set_ylim(bottom=0)
    return Picture(
        "Mode loadings of the input projection",
        made.svg,
        "How strongly u drives each mode of the network."
        + (" Circles: linear; triangles: non-linear." if rows[-1].order else "")
        + _first_class(rows[0]),
        [
            area(f"{name} u ({'filled' if hue == SOLVED else 'open'})", hue)
            for name, hue in dict.fromkeys((row.projection, _hue(row)) for row in rows)
        ],
    )


def _plain_decades(ax: Any, values: np.ndarray) -> None:
    """Readable numbers on a logarithmic axis that spans little more than a decade."""
    finite = values[np.isfinite(values)]
    low, high = finite.min() / 1.1, finite.max() * 1.1
    ticks = [
        m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5) if low <= m * 10.0**e <= high
    ]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(low, high)
