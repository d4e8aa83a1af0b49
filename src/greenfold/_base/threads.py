"""One BLAS thread for small matrices.

BLAS threads that share a small product mostly wait for each other, so they are limited
while a public function runs. The setting applies to the whole process, so calls are
counted: the first call limits BLAS, and the last call to return restores the old number of
threads.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import LibController

P = ParamSpec("P")
R = TypeVar("R")
Rows: TypeAlias = Callable[[], int] | Callable[[Any], int] | Callable[[Any, Any], int]

#: BLAS keeps its threads for square matrices with at least this many rows. On two busy
#: cores, two threads took 5.2, 2.0 and 1.1 times as long as one thread for the product of a
#: matrix of 500, 1000 and 1500 rows with 50 columns.
LARGE = 1500
#: Variables with which users set the number of BLAS threads, and whether one is set. Like
#: BLAS, greenfold reads them only once.
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_told = any(os.environ.get(name) for name in _VARIABLES)


class _Held:
    """A set of libraries that is limited to one thread while any call needs it."""

    def __init__(self) -> None:
        self._holders = 0
        self._before: list[tuple[LibController, int]] = []

    def enter(self, libraries: list[LibController], changed: bool) -> None:
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


def _tell(library: LibController, n_threads: int) -> None:
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

    def __exit__(self, *_: object) -> None:
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


def few_threads(rows: int = 0) -> AbstractContextManager[None]:
    """Limit BLAS to one thread, unless matrices are large or the user set the number."""
    return nullcontext() if rows >= LARGE or _told else _ONE


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread in any case, for one of many parallel jobs."""
    from threadpoolctl import threadpool_limits

    with _ONE, threadpool_limits(1, user_api="openmp"):
        yield


def with_few_threads(rows: Rows = lambda: 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a public function or method with `few_threads`.

    ``rows`` returns the number of rows of the matrices. It gets the arguments of the
    function that its own parameters name, as in ``lambda X: len(X)``. Its result for bad
    arguments does not matter, because the function refuses them.
    """
    wanted = tuple(inspect.signature(rows).parameters)
    count: Callable[..., int] = rows

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        names = list(inspect.signature(function).parameters)
        places = [(name, names.index(name)) for name in wanted]

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                n = int(
                    count(*(args[i] if i < len(args) else kwargs[k] for k, i in places))
                )
            except (AttributeError, LookupError, TypeError, ValueError):
                n = 0
            with few_threads(n):
                return function(*args, **kwargs)

        return wrapper

    return decorate
