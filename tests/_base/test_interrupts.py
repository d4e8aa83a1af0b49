"""Ctrl-C is noticed even if what it stops goes on."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

import pytest

from greenfold._base.interrupts import (
    noticing_interrupts,
    raise_if_interrupted,
    was_interrupted,
)


def swallowed() -> None:
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_swallowed_interrupt_is_noticed_until_the_outermost_ends():
    before = signal.getsignal(signal.SIGINT)
    with noticing_interrupts():
        assert not was_interrupted()
        with noticing_interrupts():
            swallowed()
        assert was_interrupted()
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
    assert not was_interrupted()
    assert signal.getsignal(signal.SIGINT) is before


def test_who_insists_is_stopped():
    with pytest.raises(KeyboardInterrupt), noticing_interrupts(insist=True):
        swallowed()
    with noticing_interrupts(insist=True):
        pass


def test_a_thread_changes_nothing():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with noticing_interrupts(insist=True):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert seen == [before]
