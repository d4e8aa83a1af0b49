"""Progress on a terminal, silent in a pipe; Ctrl-C is never lost."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_state = {"interrupted": False, "depth": 0}


@contextmanager
def noticing_interrupts(*, insist: bool = False) -> Iterator[None]:
    """Record that Ctrl-C was pressed, and raise KeyboardInterrupt as usual.

    `greenfold.optimize` answers Ctrl-C with its best result so far, which suits a notebook;
    a command must end instead, see `raise_if_interrupted`. With ``insist``,
    KeyboardInterrupt is raised at the end even if the body swallowed it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _state["depth"]:
        _state["interrupted"] = False

    def notice(number: int, frame: FrameType | None) -> None:
        del number, frame
        _state["interrupted"] = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, notice)
    _state["depth"] += 1
    try:
        yield
    finally:
        _state["depth"] -= 1
        signal.signal(signal.SIGINT, before)
    if insist:
        raise_if_interrupted()


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed since the outermost `noticing_interrupts` began."""
    return bool(_state["interrupted"])


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed."""
    if was_interrupted():
        raise KeyboardInterrupt


class Bar:
    """One line of the display; does nothing if nothing is displayed."""

    def __init__(self, shown: Any, task: Any) -> None:
        self._shown, self._task = shown, task

    def advance(self, amount: float = 1.0, text: str | None = None) -> None:
        """Advance by an amount, and show ``text`` as the next step."""
        if self._shown is None:
            return
        change = {} if text is None else {"description": text}
        self._shown.update(self._task, advance=amount, refresh=True, **change)


class Display:
    """Progress bars on stderr, one below the other."""

    def __init__(self, shown: Any = None) -> None:
        self._shown = shown

    @contextmanager
    def bar(self, text: str, total: float, done: float = 0) -> Iterator[Bar]:
        """Show a bar while the body runs."""
        if self._shown is None:
            yield Bar(None, None)
            return
        task = self._shown.add_task(text, total=total, completed=done)
        try:
            yield Bar(self._shown, task)
        finally:
            self._shown.remove_task(task)


#: The current display, to which nested work adds its bars.
_open: list[Display] = []


@contextmanager
def display() -> Iterator[Display]:
    """Show progress if stderr is a terminal and rich is installed."""
    if _open:
        yield _open[-1]
        return
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield Display()
        return
    from rich import progress as rich
    from rich.console import Console

    text = rich.TextColumn("{task.description}", justify="left"), rich.BarColumn()
    times = rich.TimeElapsedColumn(), rich.TextColumn("ETA"), rich.TimeRemainingColumn()
    columns = rich.SpinnerColumn(), *text, rich.TaskProgressColumn(), *times
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        _open.append(Display(shown))
        try:
            yield _open[-1]
        finally:
            _open.pop()
