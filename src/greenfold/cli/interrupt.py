"""Ctrl-C that is never lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_state = {"interrupted": False}


@contextmanager
def noticing_interrupts() -> Iterator[None]:
    """Remember that Ctrl-C was pressed, beside raising KeyboardInterrupt.

    `greenfold.optimize` answers Ctrl-C with its best result so far, which is right in a
    notebook; a command must end instead, see `raise_if_interrupted`.
    """
    _state["interrupted"] = False
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def notice(number: int, frame: FrameType | None) -> None:
        del number, frame
        _state["interrupted"] = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, notice)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def raise_if_interrupted() -> None:
    """End the command if Ctrl-C was pressed since it began."""
    if _state["interrupted"]:
        raise KeyboardInterrupt
