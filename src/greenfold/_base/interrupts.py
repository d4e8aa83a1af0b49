"""Ctrl-C is never lost, even if the code that it stops swallows it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType


class _Noticed:
    """Whether Ctrl-C was pressed; nested contexts share one."""

    pressed = False


_noticed: ContextVar[_Noticed | None] = ContextVar("noticed", default=None)


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
    noticed = _noticed.get() or _Noticed()

    def notice(number: int, frame: FrameType | None) -> None:
        del number, frame
        noticed.pressed = True
        raise KeyboardInterrupt

    before, token = signal.signal(signal.SIGINT, notice), _noticed.set(noticed)
    try:
        yield
        if insist:
            raise_if_interrupted()
    finally:
        _noticed.reset(token)
        signal.signal(signal.SIGINT, before)


def was_interrupted() -> bool:
    """Return whether Ctrl-C was pressed since the outermost `noticing_interrupts` began."""
    noticed = _noticed.get()
    return noticed is not None and noticed.pressed


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed."""
    if was_interrupted():
        raise KeyboardInterrupt
