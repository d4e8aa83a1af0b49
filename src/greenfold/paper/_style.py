"""One look for all figures: readable, colour-blind safe, axes with symbol and unit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from .._style import BASE

# Okabe & Ito's palette, which survives the common colour deficiencies. Lines that may
# be confused in print differ by dash or marker as well.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
#: What a colour means in every figure.
RANDOM, OPTIMISED, PAPER = BLUE, VERMILLION, BLACK
PLUS, MINUS = VERMILLION, BLUE

#: Time has no unit of its own in the paper: Δt = 1 and τ = 0.25 in the same unit.
TIME = "time $t$ (a.u.)"
READOUT_TIME = "readout time $T$ (a.u.)"
MARGIN = r"soft margin $\kappa_\eta$ (a.u.)"

_PARAMETERS: dict[Any, Any] = BASE | {
    "axes.titlesize": 9.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.formatter.use_mathtext": True,
    "grid.color": "#E4E4E4",
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "greenfold",
    "pdf.fonttype": 42,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw and save inside this."""
    with mpl.rc_context(_PARAMETERS):
        yield


def sheet(width: float, height: float) -> Figure:
    """An empty figure in inches, tied to no window."""
    return Figure(figsize=(width, height))


def letter(axes: Any, name: str, title: str = "") -> None:
    """Letter a panel as the paper does, with what it shows."""
    axes.set_title(f"$\\bf{{({name})}}$ {title}", loc="left")
