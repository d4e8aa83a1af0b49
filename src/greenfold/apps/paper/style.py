"""One look for all figures: readable, colour-blind safe, axes with symbol and unit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ..style import BASE, BOUND, CLASS_A, CLASS_B, RANDOM, SIMULATION, SOLVED

__all__ = [
    "BOUND", "CLASS_A", "CLASS_B", "MARGIN", "NEUTRAL", "PAPER", "RANDOM", "READOUT_TIME",
    "SIMULATION", "SOLVED", "TIME", "letter", "sheet", "style",
]  # fmt: skip

#: The paper's own numbers are as black as a simulation: both are what ours is held against.
PAPER = SIMULATION
#: What is neither random nor solved, nor of a class.
NEUTRAL = "#4d4d4d"
#: What the record calls ``optimised``, the paper's word, is shown by ours.
SHOWN = {"random": "random", "optimised": "solved"}

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
    "hatch.color": "0.45",
    "hatch.linewidth": 0.6,
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
