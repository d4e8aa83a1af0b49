"""Progress on a terminal, with an estimate of the time left; silent in a pipe."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """One line of the display; does nothing where there is none."""

    def __init__(self, shown: Any, task: Any) -> None:
        self._shown, self._task = shown, task

    def advance(self, amount: float = 1.0, text: str | None = None) -> None:
        """So much more is done; what follows is ``text``."""
        if self._shown is None:
            return
        change = {} if text is None else {"description": text}
        self._shown.update(self._task, advance=amount, refresh=True, **change)


class Display:
    """Bars below each other, on stderr."""

    def __init__(self, shown: Any = None) -> None:
        self._shown = shown

    @contextmanager
    def bar(self, text: str, total: float, done: float = 0) -> Iterator[Bar]:
        """A bar while the body runs."""
        if self._shown is None:
            yield Bar(None, None)
            return
        task = self._shown.add_task(text, total=total, completed=done)
        try:
            yield Bar(self._shown, task)
        finally:
            self._shown.remove_task(task)


#: What is shown now; a part of a larger work adds its bars there.
_open: list[Display] = []


@contextmanager
def display() -> Iterator[Display]:
    """Show progress where stderr is a terminal and rich is installed."""
    if _open:
        yield _open[-1]
        return
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield Display()
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}", justify="left"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("ETA"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        _open.append(Display(shown))
        try:
            yield _open[-1]
        finally:
            _open.pop()
