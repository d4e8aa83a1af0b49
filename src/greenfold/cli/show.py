"""Tables and lines for the terminal."""

import math
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

#: Number of series of a class below which an uncertainty is told.
_FEW = 20


def console() -> "Console":
    """Return the console; in a pipe it has no colour, and 110 columns by default."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console()
    return Console(width=None if "COLUMNS" in os.environ else 110, no_color=True)


def printable(text: object) -> str:
    """Return text with control characters escaped, because they may alter the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    n_text: int = 1,
    bold: Collection[int] = (),
    wrap: bool = False,
    notes: Iterable[str] = (),
) -> None:
    """Print a table; all but the first ``n_text`` columns are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def cell(one: object) -> Text:
        return Text(printable(one))

    # Without frames, the tables fit into 80 columns.
    made = Table(
        header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for i, name in enumerate(columns):
        side = "left" if i < n_text else "right"
        made.add_column(cell(name), justify=side, no_wrap=not wrap, overflow="fold")
    for i, row in enumerate(rows):
        made.add_row(*map(cell, row), style="bold" if i in bold else None)
    screen = console()
    if title:
        screen.print(cell(title))
    screen.print(made)
    for note in notes:
        text(note)


def text(one: object) -> None:
    """Print a text with lines that break between words, never inside a path."""
    screen = console()
    filled = textwrap.TextWrapper(
        screen.width, break_long_words=False, break_on_hyphens=False
    )
    print(filled.fill(printable(one)), file=screen.file)


def counted(n: int, what: str) -> str:
    """Return a number of things: "1 step", "2 steps"."""
    return f"{n} {what}{'s' * (n != 1)}"


def uncertain(labels: Iterable[object]) -> list[str]:
    """Return a sentence on accuracies of series with these labels, if they are few."""
    counts = Counter(map(str, labels))
    n, least = counts.total(), min(counts.values(), default=0)
    if least >= _FEW or not n:
        return []
    error = 50 / math.sqrt(n)  # of a share of one half
    few = f"there are {n} series, {least} of them in the smallest class"
    return [f"Accuracies are uncertain by about {error:.0f} points: {few}."]


def number(value: float | None, form: str = ".4g") -> str:
    """Return a formatted number, or a dash if it is missing or not finite."""
    return "–" if value is None or not math.isfinite(value) else format(value, form)


def facts(values: dict[str, Any], notes: Iterable[str] = ()) -> None:
    """Print names and values, one per line, then notes; skip values that are None."""
    from rich.table import Table
    from rich.text import Text

    known = {printable(k): printable(one) for k, one in values.items() if one is not None}
    screen, grid = console(), Table.grid(padding=(0, 2))
    width = max(map(len, known))
    for name, value in known.items():
        grid.add_row(Text(name, style="bold"), Text(value))
        if not screen.is_terminal:  # for another program, each value stays on one line
            print(f"{name:<{width}}  {value}")
    if screen.is_terminal:
        screen.print(grid)
    for note in notes:
        print(note)
