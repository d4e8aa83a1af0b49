"""Progress of long calls on a terminal, and not in a pipe.

The display, and whether a call is part of a larger one, belong to the context of the call
(`contextvars`). A thread has a context of its own; `AsPart` gives it that of the call.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

P = ParamSpec("P")
R = TypeVar("R")


class Bar:
    """A line of the display; it does nothing if nothing is displayed."""

    def __init__(self, shown: Progress | None = None, task: TaskID | None = None) -> None:
        self._shown, self._task = shown, task

    def advance(self, amount: float = 1.0, text: str | None = None) -> None:
        """Advance by an amount, and show ``text`` as the description of the next step."""
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, advance=amount, description=text, refresh=True)


class Display:
    """A stack of progress bars on stderr."""

    def __init__(self, shown: Progress | None = None) -> None:
        self._shown = shown

    @contextmanager
    def bar(self, text: str, total: float | None, done: float = 0) -> Iterator[Bar]:
        """Show a bar while the body runs; without a ``total`` it only shows activity."""
        if self._shown is None:
            yield Bar()
            return
        task = self._shown.add_task(text, total=total, note="")
        self._shown.update(task, completed=done)
        try:
            yield Bar(self._shown, task)
        finally:
            self._shown.remove_task(task)

    def tell(self, text: str) -> None:
        """Show ``text`` at the end of the lowest line."""
        if self._shown is not None and self._shown.task_ids:
            self._shown.update(self._shown.task_ids[-1], note=text)


#: The current display, to which nested work adds its bars, and the number of `watched`
#: calls around this line.
_current: ContextVar[Display | None] = ContextVar("display", default=None)
_depth: ContextVar[int] = ContextVar("depth", default=0)
#: A terminal has room for one display; calls in other threads are silent meanwhile.
_terminal = threading.Lock()


@contextmanager
def display(asked: bool = True) -> Iterator[Display]:
    """Show progress if stderr is a terminal and rich is installed.

    If it is not ``asked`` for, everything inside is silent too. A display that is already
    open is used in any case.
    """
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    seen = asked and sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    with ExitStack() as stack:
        shown = None
        if seen and _terminal.acquire(blocking=False):
            stack.callback(_terminal.release)
            shown = stack.enter_context(_bars())
        opened = Display(shown)
        stack.callback(_current.reset, _current.set(opened))
        yield opened


def tell(text: str) -> None:
    """Show a note on the work in progress, such as its κ and gap."""
    shown = _current.get()
    if shown is not None:
        shown.tell(text)


def watched(work: Callable[P, R]) -> Callable[P, R]:
    """Decorate a long call, so that `progress` shows it.

    A call of an estimator with ``verbose`` is always shown, with all its parts.
    """

    @wraps(work)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        verbose = getattr(args[0], "verbose", None) if args else None
        owner = "" if verbose is None else f"{type(args[0]).__name__}."
        token = _depth.set(_depth.get() + 1)
        try:
            with display(bool(verbose)) as shown, shown.bar(owner + work.__name__, None):
                return work(*args, **kwargs)
        finally:
            _depth.reset(token)

    return wrapper


def is_part() -> bool:
    """Return whether the current work is part of a larger call, which tells the time."""
    return _depth.get() > 1


class AsPart(Generic[P, R]):
    """Work that stays part of the current call in other threads, but not in processes."""

    def __init__(self, work: Callable[P, R]) -> None:
        self._work, self._context = work, copy_context()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Do the work."""
        # Threads run at the same time, and a context has room for one.
        return self._context.copy().run(self._work, *args, **kwargs)

    def __reduce__(self) -> tuple[type[partial[R]], tuple[Callable[P, R]]]:
        return partial, (self._work,)


def _bars() -> Progress:
    from rich import progress as rich
    from rich.console import Console

    text = rich.TextColumn("{task.description}", justify="left"), rich.BarColumn()
    times = rich.TimeElapsedColumn(), rich.TextColumn("ETA"), rich.TimeRemainingColumn()
    note = rich.TextColumn("{task.fields[note]}")
    columns = rich.SpinnerColumn(), *text, rich.TaskProgressColumn(), *times, note
    return rich.Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def progress(visible: bool = True) -> Iterator[None]:
    """Show the progress of the long calls inside, if stderr is a terminal.

    `optimize` shows κ so far and the gap to its bound; a fit shows its folds and classes.
    With ``visible=False``, estimators with ``verbose=True`` are silent too. The bars need
    rich (``greenfold[cli]``).

    Examples
    --------
    >>> from greenfold import GaussianStimuli, Reservoir, optimize, progress, unfold
    >>> unfolding = unfold(Reservoir.random(50, rng=3), n_steps=10, dt=1.0)
    >>> with progress():
    ...     best = optimize(unfolding, GaussianStimuli.random(10, rng=4))
    """
    with display(visible):
        yield
