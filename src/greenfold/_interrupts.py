"""Ctrl-C that is never lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_state = {"interrupted": False, "depth": 0}


@contextmanager
def noticing_interrupts(*, insist: bool = False) -> Iterator[None]:
    """Remember that Ctrl-C was pressed, beside raising KeyboardInterrupt.

    `greenfold.optimize` answers Ctrl-C with its best result so far, which is right in a
    notebook; a command must end instead, see `raise_if_interrupted`.

    Parameters
    ----------
    insist : bool
        Raise KeyboardInterrupt at the end even where the body has swallowed it.
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
    """Whether Ctrl-C was pressed since the outermost notice began."""
    return bool(_state["interrupted"])


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed since the outermost notice began."""
    if was_interrupted():
        raise KeyboardInterrupt
