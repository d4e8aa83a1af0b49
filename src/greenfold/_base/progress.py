"""Progress on a terminal, silent in a pipe; Ctrl-C is never lost."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, TypeVar

Work = TypeVar("Work", bound=Callable[..., Any])

_state = {"interrupted": False, "depth": 0, "works": 0}


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
    def bar(self, text: str, total: float | None, done: float = 0) -> Iterator[Bar]:
        """Show a bar while the body runs; without a ``total`` it only shows activity."""
        if self._shown is None:
            yield Bar(None, None)
            return
        task = self._shown.add_task(text, total=total, completed=done, note="")
        try:
            yield Bar(self._shown, task)
        finally:
            self._shown.remove_task(task)

    def tell(self, text: str) -> None:
        """Put ``text`` at the end of the lowest line."""
        if self._shown is not None and self._shown.task_ids:
            self._shown.update(self._shown.task_ids[-1], note=text)


#: The current display, to which nested work adds its bars.
_open: list[Display] = []


def tell(text: str) -> None:
    """Show how far the work is that is shown now, such as its κ and gap."""
    for screen in _open[-1:]:
        screen.tell(text)


def watched(work: Work) -> Work:
    """Decorate what takes ``verbose``, as an argument or as an estimator does.

    With it the work, and all it consists of, is shown on a terminal; without it nothing
    is, unless it is itself a part of what is shown.
    """

    @wraps(work)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        own = bool(args) and hasattr(args[0], "verbose")
        verbose = args[0].verbose if own else kwargs.get("verbose", False)
        owner = f"{type(args[0]).__name__}." if own else ""
        _state["works"] += 1
        try:
            with display(bool(verbose)) as shown, shown.bar(owner + work.__name__, None):
                return work(*args, **kwargs)
        finally:
            _state["works"] -= 1

    return wrapper  # pyright: ignore[reportReturnType]


def is_part() -> bool:
    """Whether the work under way belongs to a larger one, which says how long it takes."""
    return _state["works"] > 1


@contextmanager
def display(asked: bool = True) -> Iterator[Display]:
    """Show progress if stderr is a terminal and rich is installed.

    If you do not ask for it, everything inside is silent too, except what is already open.
    """
    if _open:
        yield _open[-1]
        return
    seen = asked and sys.stderr.isatty()
    if not seen or importlib.util.find_spec("rich") is None:
        _open.append(Display())
        try:
            yield _open[-1]
        finally:
            _open.pop()
        return
    from rich import progress as rich
    from rich.console import Console

    text = rich.TextColumn("{task.description}", justify="left"), rich.BarColumn()
    times = rich.TimeElapsedColumn(), rich.TextColumn("ETA"), rich.TimeRemainingColumn()
    note = rich.TextColumn("{task.fields[note]}")
    columns = rich.SpinnerColumn(), *text, rich.TaskProgressColumn(), *times, note
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        _open.append(Display(shown))
        try:
            yield _open[-1]
        finally:
            _open.pop()
