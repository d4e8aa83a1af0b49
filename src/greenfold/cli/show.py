"""Tables and lines for the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any


def console() -> Any:
    """Return the console for tables; in a pipe it is plain and wide."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=110, no_color=True)


def printable(text: Any) -> str:
    """Escape control characters, which could change the terminal."""
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

    # Eighty columns hold it without frames.
    made = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold"
    )
    for i, name in enumerate(columns):
        side = "left" if i < n_text else "right"
        made.add_column(
            Text(printable(name)), justify=side, no_wrap=not wrap, overflow="fold"
        )
    for i, row in enumerate(rows):
        made.add_row(
            *(Text(printable(one)) for one in row), style="bold" if i in bold else None
        )
    screen = console()
    said = [Text(printable(one)) for one in notes]
    for part in ([Text(printable(title))] if title else []) + [made, *said]:
        screen.print(part)


def number(value: float | None, form: str = ".4g") -> str:
    """Format a number; a missing one is a dash."""
    return "–" if value is None or not math.isfinite(value) else format(value, form)


def facts(values: dict[str, Any]) -> None:
    """Print names and values, one per line; skip those without a value."""
    from rich.table import Table
    from rich.text import Text

    known = {
        printable(name): printable(value)
        for name, value in values.items()
        if value is not None
    }
    screen = console()
    if not screen.is_terminal:
        # For a file or another program, each value stays on one line.
        width = max(map(len, known))
        print("\n".join(f"{name:<{width}}  {value}" for name, value in known.items()))
        return
    grid = Table.grid(padding=(0, 2))
    for name, value in known.items():
        grid.add_row(Text(name, style="bold"), Text(value))
    screen.print(grid)
