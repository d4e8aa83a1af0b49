"""Helpers around a public call: one BLAS thread, progress on a terminal, and Ctrl-C.

BLAS threads that share a small product mostly wait for each other, so they are limited
while a public function runs. The setting applies to the whole process, so calls are
counted: the first call limits BLAS, and the last call to return restores the old number of
threads. Progress is shown on a terminal, and not in a pipe. Ctrl-C is never lost.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from types import FrameType
from typing import Any, TypeVar

Work = TypeVar("Work", bound=Callable[..., Any])

# Threads

#: BLAS keeps its threads for square matrices with at least this many rows. On two busy
#: cores, two threads took 5.2, 2.0 and 1.1 times as long as one thread for the product of a
#: matrix of 500, 1000 and 1500 rows with 50 columns.
LARGE = 1500
#: For at most this many values in a product of series, BLAS uses one thread anyway.
_TINY = 2**13
#: Variables with which users set the number of BLAS threads, and whether one is set. Like
#: BLAS, greenfold reads them only once.
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_told = any(os.environ.get(name) for name in _VARIABLES)


class _Held:
    """A set of libraries that is limited to one thread while any call needs it."""

    def __init__(self) -> None:
        self._holders = 0
        self._before: list[tuple[Any, int]] = []

    def enter(self, libraries: list[Any], changed: bool) -> None:
        # More libraries may have been loaded since, even inside another call.
        if changed or not self._holders:
            for library in libraries:
                n_threads = library.get_num_threads()
                if n_threads is not None and n_threads != 1:
                    self._before.append((library, n_threads))
                    _tell(library, 1)
        self._holders += 1

    def leave(self) -> None:
        self._holders -= 1
        while not self._holders and self._before:
            _tell(*self._before.pop())


class _HeldByThread(threading.local, _Held):
    """A `_Held` that counts separately for each Python thread."""


def _tell(library: Any, n_threads: int) -> None:
    # threadpoolctl lets only one Python thread at a time limit the process, and ignores
    # the others. Here calls are counted, so the last one may come from any thread.
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(n_threads)
    if release is not None:
        release(force=True)


class _OneBlasThread:
    """A context that limits BLAS to one thread; nested calls are only counted."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may enter it too
        self._n_modules = -1
        self._shared, self._shared_libraries = _Held(), []
        self._own, self._own_libraries = _HeldByThread(), []

    def __enter__(self) -> None:
        with self._lock:
            changed = self._n_modules != len(sys.modules)
            if changed:
                self._look()
            self._shared.enter(self._shared_libraries, changed)
            self._own.enter(self._own_libraries, changed)

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._own.leave()
            self._shared.leave()

    def _look(self) -> None:
        """Find the loaded libraries, which takes a millisecond."""
        from threadpoolctl import ThreadpoolController

        found = ThreadpoolController().lib_controllers
        found = [library for library in found if library.user_api == "blas"]
        # OpenBLAS on OpenMP has separate threads for each Python thread.
        own = [one for one in found if getattr(one, "threading_layer", "") == "openmp"]
        self._own_libraries = own
        self._shared_libraries = [one for one in found if one not in own]
        self._n_modules = len(sys.modules)


_ONE = _OneBlasThread()


def few_threads(size: int = 0) -> AbstractContextManager[None]:
    """Limit BLAS to one thread, unless matrices are large or the user set the number."""
    return nullcontext() if size >= LARGE or _told else _ONE


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread in any case, for one of many parallel jobs."""
    from threadpoolctl import threadpool_limits

    with _ONE, threadpool_limits(1, user_api="openmp"):
        yield


def with_few_threads(
    size: Callable[..., Any] = lambda *_, **__: 0,
) -> Callable[[Work], Work]:
    """Decorate a public function or method with `few_threads`.

    ``size`` gets the arguments and returns the number of rows of the matrices. Its result
    for bad arguments does not matter, because the function refuses them.
    """

    def decorate(function: Work) -> Work:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                n = int(size(*args, **kwargs))
            except (AttributeError, LookupError, TypeError, ValueError):
                n = 0
            with few_threads(n):
                return function(*args, **kwargs)

        return wrapper  # pyright: ignore[reportReturnType]

    return decorate


def rows_of(*args: Any, **kwargs: Any) -> int:
    """Return the number of rows of the matrices of the system passed first."""
    names = ("system", "reservoir", "unfolding", "expansion")
    named = [kwargs[name] for name in names if name in kwargs]
    system: Any = args[0] if args else named[0]
    n_neurons = getattr(system, "n_neurons", None)
    return max(system.n_inputs, system.n_outputs) if n_neurons is None else n_neurons


def rows_of_estimator(estimator: Any, *_: Any, **__: Any) -> int:
    """Return the number of rows for an estimator with a given or drawn network."""
    given = estimator.reservoir
    if given is None:
        return estimator.n_neurons
    return given.n_neurons if hasattr(given, "n_neurons") else len(given)


def rows_to_read(estimator: Any, X: Any) -> int:
    """Return the number of rows for reading series; limiting BLAS is slower for few."""
    return LARGE if X.size <= _TINY else rows_of_estimator(estimator)


# Progress

_state = {"interrupted": False, "depth": 0, "works": 0}


@contextmanager
def noticing_interrupts(*, insist: bool = False) -> Iterator[None]:
    """Record that Ctrl-C was pressed, and raise KeyboardInterrupt as usual.

    On Ctrl-C, `greenfold.optimize` returns its best result so far, which suits a notebook.
    A command must end instead; see `raise_if_interrupted`. With ``insist``,
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
    """Return whether Ctrl-C was pressed since the outermost `noticing_interrupts` began."""
    return bool(_state["interrupted"])


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed."""
    if was_interrupted():
        raise KeyboardInterrupt


class Bar:
    """A line of the display; it does nothing if nothing is displayed."""

    def __init__(self, shown: Any, task: Any) -> None:
        self._shown, self._task = shown, task

    def advance(self, amount: float = 1.0, text: str | None = None) -> None:
        """Advance by an amount, and show ``text`` as the description of the next step."""
        if self._shown is None:
            return
        change = {} if text is None else {"description": text}
        self._shown.update(self._task, advance=amount, refresh=True, **change)


class Display:
    """A stack of progress bars on stderr."""

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
        """Show ``text`` at the end of the lowest line."""
        if self._shown is not None and self._shown.task_ids:
            self._shown.update(self._shown.task_ids[-1], note=text)


#: The current display, to which nested work adds its bars.
_open: list[Display] = []


def tell(text: str) -> None:
    """Show a note on the work in progress, such as its κ and gap."""
    for screen in _open[-1:]:
        screen.tell(text)


def watched(work: Work) -> Work:
    """Decorate a long call, so that `progress` shows it.

    A call of an estimator with ``verbose`` is always shown, with all its parts.
    """

    @wraps(work)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        estimator = args[0] if args and hasattr(args[0], "verbose") else None
        verbose = estimator is not None and estimator.verbose
        owner = "" if estimator is None else f"{type(estimator).__name__}."
        _state["works"] += 1
        try:
            with display(bool(verbose)) as shown, shown.bar(owner + work.__name__, None):
                return work(*args, **kwargs)
        finally:
            _state["works"] -= 1

    return wrapper  # pyright: ignore[reportReturnType]


def is_part() -> bool:
    """Return whether the current work is part of a larger call, which tells the time."""
    return _state["works"] > 1


@contextmanager
def display(asked: bool = True) -> Iterator[Display]:
    """Show progress if stderr is a terminal and rich is installed.

    If it is not ``asked`` for, everything inside is silent too. A display that is already
    open is used in any case.
    """
    if _open:
        yield _open[-1]
        return
    seen = asked and sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    with _bars() if seen else nullcontext() as shown:
        _open.append(Display(shown))
        try:
            yield _open[-1]
        finally:
            _open.pop()


def _bars() -> Any:
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
