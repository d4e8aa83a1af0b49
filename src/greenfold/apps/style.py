"""Common style of all figures: fonts, lines, axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._base.checks import needs

#: One meaning per colour, in figures, reports, pages and the explorer (Okabe and Ito's
#: palette, with two colours darkened for white paper). Lines also differ in dash or marker,
#: so that they differ in grey.
RANDOM, SOLVED = "#d55e00", "#0072b2"
CLASS_A, CLASS_B = "#00805c", "#b0568a"
SIMULATION, BOUND = "#000000", "#7f7f7f"

#: matplotlib's parameters.
BASE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
}


@contextmanager
def drawing(more: dict[Any, Any]) -> Iterator[None]:
    """Set `BASE` and more of matplotlib's parameters while you draw and save."""
    with needs("A figure", "report"):
        import matplotlib
    with matplotlib.rc_context(BASE | more):
        yield
