"""The clouds of states along the readouts, random beside solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from . import content
from .canvas import COLOURS, DASHES, INK, Key, Picture, area, drawing, limits
from .comparison import Row, Split
from .figures import MAX_CLASSES, class_hue, name_of

_ALONG = "readout v·y(T) (unit of the states)"


def state_clouds(
    task: Split, rows: Sequence[Row], pair: Sequence[Row] | None = None
) -> list[Picture]:
    """Histograms of the states along v, random beside solved to the same scale.

    Parameters
    ----------
    task : Split
    rows : sequence of Row
        Shown one a picture where there are two classes.
    pair : sequence of Row, optional
        With more classes these alone, one a picture with a strip for each class; all rows
        by default.
    """
    X, y, judged = task.judged
    classifier = rows[0].classifier
    two = len(classifier.classes_) == 2
    chosen = list(rows if two or pair is None else pair)
    heads = classifier.compared_[:MAX_CLASSES]
    values = [content.clouds(row.classifier, X)[:, : len(heads)] for row in chosen]
    span = limits([np.quantile(z, (0.002, 0.998)) for z in values])
    bins = np.linspace(*span, 41)
    # Shares of a class, so that a rare one is seen; (row, head, class or rest, bin).
    shares = np.array(
        [[_shares(one, y == classifier.classes_[own], bins)
          for one, own in zip(z.T, heads, strict=True)] for z in values]
    )  # fmt: skip
    tops = 1.08 * shares.max(axis=(0, 2, 3))
    draw = _two_clouds if two else _strips
    return [
        draw(row, one, bins, tops, judged) for row, one in zip(chosen, shares, strict=True)
    ]


def _shares(z: np.ndarray, own: np.ndarray, bins: np.ndarray) -> list[np.ndarray]:
    """Shares of the others and of a class in each bin; what lies beyond is at the edge."""
    inside = np.clip(z, bins[0], bins[-1])
    return [np.histogram(inside[one], bins)[0] / max(one.sum(), 1) for one in (~own, own)]


def _two_clouds(
    row: Row, shares: np.ndarray, bins: np.ndarray, tops: np.ndarray, judged: str
) -> Picture:
    classes = row.classifier.classes_
    with drawing(f"cloud{row.projection}{row.order}") as made:
        ax = made.axes
        for side, share in enumerate(shares[0]):
            colour = COLOURS[class_hue(side)]
            ax.stairs(100 * share, bins, fill=True, color=colour, alpha=0.45)
            ax.stairs(100 * share, bins, color=colour, linestyle=DASHES[side], lw=1.6)
        ax.axvline(float(row.classifier.threshold_), color=INK, linewidth=1.2)
        ax.set(xlim=(bins[0], bins[-1]), ylim=(0, 100 * tops[0]))
        noisy = _noise_bar(ax, row.noise)
        ax.set(xlabel=_ALONG, ylabel="share of the class (%)")
    caption = f"Accuracy {row.accuracy:.1%}"
    caption += f", {row.noisy_accuracy:.1%} under readout noise" if row.noise else ""
    caption += f" ({judged} series). Vertical line: threshold.{noisy}"
    return Picture(
        f"{row.projection.capitalize()} u, {row.network}",
        made.svg,
        caption,
        [area(name_of(label), class_hue(side)) for side, label in enumerate(classes)],
    )


def _strips(
    row: Row, shares: np.ndarray, bins: np.ndarray, tops: np.ndarray, judged: str
) -> Picture:
    """One strip a class: it along its own readout, and all others as an outline."""
    labels = [row.classifier.classes_[own] for own in row.classifier.compared_]
    n = len(shares)
    with drawing(f"cloud{row.projection}{row.order}", 0.75 + 0.72 * n, n_rows=n) as made:
        noisy = ""
        for i, (ax, (rest, own)) in enumerate(zip(made.all_axes, shares, strict=True)):
            colour = COLOURS[class_hue(i)]
            ax.stairs(100 * own, bins, fill=True, color=colour, alpha=0.5)
            ax.stairs(100 * own, bins, color=colour, lw=1.4)
            ax.stairs(100 * rest, bins, color=INK, linestyle=DASHES[2], lw=1.1)
            ax.axvline(0, color=INK, linewidth=1.0)
            ax.set(xlim=(bins[0], bins[-1]), ylim=(0, 100 * tops[i]))
            ax.yaxis.set_major_locator(MaxNLocator(2))
            if i == 0:
                noisy = _noise_bar(ax, row.noise)
            if i < n - 1:
                ax.tick_params(labelbottom=False)
        made.all_axes[n // 2].set_ylabel("share of the class (%)")
        made.all_axes[-1].set_xlabel(_ALONG)
    caption = f"Accuracy {row.accuracy:.1%}"
    caption += f", {row.noisy_accuracy:.1%} under readout noise" if row.noise else ""
    more = len(labels) - n
    return Picture(
        f"{row.projection.capitalize()} u, {row.network}, each class along its own readout",
        made.svg,
        f"{caption} ({judged} series). One strip a class, in this order"
        + (f"; {more} more classes are not shown" if more else "")
        + ". Vertical line: half-way between the class and the rest, from where κ is "
        f"measured; all readouts decide together.{noisy}",
        [area(name_of(label), class_hue(i)) for i, label in enumerate(labels[:n])]
        + [Key("all other classes", "--ink", "2.4 2.4")],
    )


def _noise_bar(ax: Any, noise: float) -> str:
    """Draw the readout noise where it fits on the axis; a sentence that says so."""
    low, high = ax.get_xlim()
    if not noise or 2 * noise >= high - low:
        return ""
    top = ax.get_ylim()[1]
    ax.set_ylim(0, 1.14 * top)
    centre = low + noise + 0.03 * (high - low)
    ax.errorbar(centre, 1.07 * top, xerr=noise, color=INK, capsize=3, linewidth=1.2)
    return " Bar: ± one standard deviation of the readout noise."
