"""From matplotlib to SVG that follows the page: its colours, light and dark.

No text of the user's enters a figure: names of classes and data sets stand in HTML
legends beside it, where they are escaped and any script can be shown.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..style import BASE

#: Width and height in inches: 384 CSS pixels, so that 9 pt stay readable on a phone.
WIDTH, HEIGHT = 4.0, 2.7
#: Hues on the page, see the template; each is drawn in a code that `_to_svg` replaces.
HUES = tuple(f"--c{i}" for i in range(1, 8))
_CODES = {"--ink": "#0a0b0c", "--grid": "#0a0b0d"} | {
    hue: f"#0a0c{i:02x}" for i, hue in enumerate(HUES)
}
INK, GRID = _CODES["--ink"], _CODES["--grid"]
COLOURS = tuple(_CODES[hue] for hue in HUES)
#: Lines differ by dash as well as by colour.
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))

RANDOM, SOLVED = 1, 0
#: Hues of the classes; the first two are kept for the projections.
CLASS_HUES = (2, 3, 4, 5, 6)

_PARAMETERS: dict[Any, Any] = BASE | {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": GRID,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True)
class Key:
    """One entry of a legend.

    Attributes
    ----------
    label : str
        Any text; escaped on the page.
    hue : str
        Name of a CSS variable.
    dash : str
        An SVG dash pattern, or "fill" for an area.
    """

    label: str
    hue: str
    dash: str = "none"


@dataclass(frozen=True)
class Picture:
    """A figure on the page.

    Attributes
    ----------
    title, caption : str
    svg : str
    keys : list of Key
    """

    title: str
    svg: str
    caption: str = ""
    keys: list[Key] = field(default_factory=list)


def key(label: str, hue: int, dash: int = 0) -> Key:
    """Legend entry of a line drawn with a colour and a dash of this module."""
    pattern = DASHES[dash % len(DASHES)]
    if isinstance(pattern, str):
        return Key(label, HUES[hue])
    return Key(label, HUES[hue], " ".join(f"{1.6 * part:g}" for part in pattern[1]))


def area(label: str, hue: int) -> Key:
    """Legend entry of a filled area."""
    return Key(label, HUES[hue], "fill")


class Drawing:
    """A figure with its axes, one below the other, and its SVG once it is drawn."""

    def __init__(self, name: str, height: float, n_rows: int = 1) -> None:
        self.figure = Figure(figsize=(WIDTH, height), layout="constrained")
        self.all_axes = [self.figure.add_subplot(n_rows, 1, i + 1) for i in range(n_rows)]
        self.axes = self.all_axes[0]
        self.name = name
        self.svg = ""


@contextmanager
def drawing(name: str, height: float = HEIGHT, n_rows: int = 1) -> Iterator[Drawing]:
    """Axes in the house style; the SVG is ready when the block ends.

    Parameters
    ----------
    name : str
        Letters and digits; makes the ids in the SVG differ from those of other figures.
    height : float
        In inches.
    n_rows : int
        Axes below each other.
    """
    with mpl.rc_context({**_PARAMETERS, "svg.hashsalt": name}):
        made = Drawing(name, height, n_rows)
        for axes in made.all_axes:
            # Seven long numbers would touch each other on a figure this narrow.
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        yield made
        made.svg = _to_svg(made.figure, name)


def _to_svg(figure: Figure, name: str) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Several figures share the page: ids must not meet.
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    # Names of vocabularies, not addresses that are visited; HTML needs neither.
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href")
    for hue, code in _CODES.items():
        svg = svg.replace(code, f"var({hue})")
    # The page sets the width; the view box keeps the proportions.
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg", '<svg aria-hidden="true"', 1)


def limits(values: Any, share: float = 0.06) -> tuple[float, float]:
    """Axis limits around finite values, with a little room."""
    finite = np.asarray(values, dtype=float).ravel()
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = share * (high - low) or abs(high) * share or 1.0
    return low - room, high + room
