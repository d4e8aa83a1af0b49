"""Common style of all figures and pages: palette, fonts, lines, axes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._base.checks import needs

#: Each colour has one meaning in figures, reports, pages and the explorer. Its two values
#: are for light and for dark paper (Okabe and Ito's palette, darkened if it would be faint
#: on white). Lines also differ in dash or marker, so that they differ in grey.
PALETTE = {
    "paper": ("#ffffff", "#14171b"),
    "panel": ("#f6f7f9", "#1d2127"),
    "ink": ("#16191d", "#e9ecef"),
    "soft": ("#545c66", "#a6afb9"),
    "line": ("#d5dae0", "#363d46"),
    "grid": ("#dfe3e8", "#2f353d"),
    "solved": ("#0072b2", "#56b4e9"),
    "random": ("#d55e00", "#ff8a3d"),
    "bound": ("#6b6f76", "#b6bec8"),
    "a": ("#00805c", "#2cc89a"),
    "b": ("#b0568a", "#e59ac6"),
    "c": ("#c98500", "#f2bd4b"),
    "d": ("#7357b8", "#b9a4f0"),
    "e": ("#8a5a44", "#d3a48f"),
    "good": ("#00704f", "#3fcfa0"),
    "bad": ("#b03a00", "#ff9d5c"),
}
_NAMES = ("solved", "random", "a", "b", "bound")
SOLVED, RANDOM, CLASS_A, CLASS_B, BOUND = (PALETTE[name][0] for name in _NAMES)
SIMULATION = "#000000"
#: The order of the pages' colour cycle: C0 solved, C1 random, C2 and C3 classes, and so on.
CYCLE = (SOLVED, RANDOM, CLASS_A, CLASS_B, SIMULATION, BOUND)


def css() -> str:
    """Return the palette as CSS variables, which follow the system or ``data-theme``."""
    light, dark = (
        " ".join(f"--{name}: {both[i]};" for name, both in PALETTE.items()) for i in (0, 1)
    )
    dark += " color-scheme: dark;"
    return (
        f":root {{ {light} color-scheme: light; }}\n"
        "@media screen and (prefers-color-scheme: dark) "
        f"{{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
    )


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
    """Set `BASE` and ``more`` as matplotlib's parameters inside a ``with`` block."""
    with needs("A figure", "report"):
        import matplotlib
    with matplotlib.rc_context(BASE | more):
        yield
