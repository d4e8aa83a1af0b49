"""A display and the depth of a call belong to its context, also in other threads."""

from __future__ import annotations

import io
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from greenfold._base.progress import AsPart, display, is_part, progress, tell, watched


class Terminal(io.StringIO):
    def isatty(self):
        return True


@watched
def inner() -> bool:
    return is_part()


@watched
def outer(pool: ThreadPoolExecutor | None = None, part: bool = True) -> list[bool]:
    if pool is None:
        return [inner()]
    work = AsPart(inner) if part else inner
    return [one.result() for one in [pool.submit(work) for _ in range(3)]]


def test_a_call_in_another_thread_is_part_of_the_one_that_made_it():
    assert not inner()
    assert outer() == [True]
    with ThreadPoolExecutor(2) as pool:
        assert outer(pool) == [True] * 3
        assert outer(pool, part=False) == [False] * 3


def test_calls_in_two_threads_are_not_part_of_each_other():
    met, found = threading.Barrier(2, timeout=30), []

    @watched
    def alone() -> None:
        met.wait()
        found.append(is_part())
        met.wait()

    threads = [threading.Thread(target=alone) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert found == [False, False]


@pytest.mark.needs("rich")
def test_a_thread_of_a_silent_call_is_silent(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    def shows() -> None:
        with display() as shown, shown.bar("part", 1) as bar:
            bar.advance(1)

    with ThreadPoolExecutor(1) as pool:
        with progress(visible=False):
            pool.submit(AsPart(shows)).result()
        assert terminal.getvalue() == ""
        with progress():
            pool.submit(AsPart(shows)).result()
    assert "part" in terminal.getvalue()


@pytest.mark.needs("rich")
def test_a_terminal_shows_one_display_at_a_time(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    def other() -> None:
        with display() as shown, shown.bar("the other", 1) as bar:
            tell("told by the other")
            bar.advance(1)

    with display() as shown, shown.bar("the first", 1) as bar:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(30)
        tell("told by the first")
        bar.advance(1)
    assert "told by the first" in terminal.getvalue()
    assert "other" not in terminal.getvalue()


def test_another_process_gets_the_work_alone():
    again = pickle.loads(pickle.dumps(AsPart(tell)))
    assert again.func is tell
