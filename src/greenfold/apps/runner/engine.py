"""The loop: begin jobs, write what comes back, go on where the last run stopped."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._base.progress import Bar, display
from ..._base.threads import one_thread
from . import store as claims
from .job import Job
from .pools import Cluster, Pool, open_pool
from .store import Failure, State, Store

#: Seconds after which the loop looks up, for Ctrl-C and for new workers.
_BREATH = 0.5
#: Characters of a title in the progress display.
_TITLE = 28


@dataclass
class Summary:
    """What became of the jobs.

    Attributes
    ----------
    total : int
        Number of jobs.
    found : int
        Results that were there already.
    made : int
        Results of this run.
    redone : int
        Of those, the ones in whose place a stale or damaged file lay.
    foreign : list of str
        Paths where a file lies that was not written by us; left alone.
    elsewhere : int
        Jobs that another run on the same folder is computing.
    failures : list of Failure
    """

    total: int = 0
    found: int = 0
    made: int = 0
    redone: int = 0
    foreign: list[str] = field(default_factory=list)
    elsewhere: int = 0
    failures: list[Failure] = field(default_factory=list)


def run_jobs(
    jobs: Sequence[Job],
    folder: str | Path,
    *,
    label: str = "",
    n_jobs: int | None = None,
    dask: str | None = None,
    redo: bool = False,
    summary: Summary | None = None,
) -> Summary:
    """Compute the jobs whose results are not there yet.

    Parameters
    ----------
    jobs : sequence of Job
        With different paths.
    folder : str or Path
        Where results are and go; see `Store`. Only this process writes there.
    label : str
        Names the work in the progress display.
    n_jobs : int, optional
        Processes of this machine; by default as many as there are cores.
    dask : str, optional
        Address of a dask scheduler, in place of this machine.
    redo : bool
        Compute finished ones too.
    summary : Summary, optional
        Filled as the run goes on, so that it can be read after an exception.

    Returns
    -------
    Summary

    Raises
    ------
    ClusterLostError
        If the cluster cannot be reached, or no longer. What was finished is written.
    KeyboardInterrupt
        After Ctrl-C; what was finished is written.
    """
    twice = {job.path for job in jobs}
    if len(twice) < len(jobs):
        raise ValueError("`jobs` must have different paths; two write the same file.")
    store = Store(folder)
    store.prepare()
    summary = Summary() if summary is None else summary
    summary.total = len(jobs)
    waiting = deque(_sift(jobs, store, summary, redo))
    if not waiting:
        return summary
    pool = open_pool(n_jobs, dask)
    left = sum(job.weight for job, _ in waiting)
    done = sum(job.weight for job in jobs) - left
    try:
        with (
            warnings.catch_warnings(),
            display() as shown,
            shown.bar(label, left + done, done) as bar,
        ):
            # loky renews processes that have grown, and says so.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs")
            _Loop(store, pool, summary, waiting, bar, redo).run()
    except BaseException:
        pool.close(at_once=True)
        raise
    pool.close()
    return summary


def _sift(
    jobs: Sequence[Job], store: Store, summary: Summary, redo: bool
) -> list[tuple[Job, State]]:
    """Jobs that are to be computed, with what lies in their place."""
    wanted = []
    for job in jobs:
        state = store.state(job)
        if state is State.FOREIGN:
            summary.foreign.append(job.path)
        elif state is State.FINISHED and not redo:
            summary.found += 1
        else:
            wanted.append((job, state))
    return wanted


@dataclass
class _Started:
    job: Job
    before: State
    claim: claims.Claim


class _Loop:
    """Jobs under way."""

    def __init__(
        self,
        store: Store,
        pool: Pool,
        summary: Summary,
        waiting: deque[tuple[Job, State]],
        bar: Bar,
        redo: bool,
    ) -> None:
        self._store, self._pool, self._summary = store, pool, summary
        self._waiting, self._bar, self._redo = waiting, bar, redo
        self._running: dict[Future, _Started] = {}
        #: Jobs that were under way when a process died: one of them may be why.
        self._suspects: deque[tuple[Job, State]] = deque()
        #: Jobs that another run was computing when their turn came.
        self._claimed: deque[tuple[Job, State]] = deque()

    def run(self) -> None:
        """Until nothing is left."""
        try:
            while self._waiting or self._suspects or self._running:
                self._begin()
                self._collect(_BREATH)
            # What another run held may be finished by now, or its owner dead.
            self._waiting, self._claimed = self._claimed, self._waiting
            while self._waiting or self._suspects or self._running:
                self._begin()
                self._collect(_BREATH)
            self._summary.elsewhere = len(self._claimed)
        except BaseException:
            self._keep_finished()
            raise
        finally:
            for started in self._running.values():
                started.claim.release()

    def _begin(self) -> None:
        if self._suspects:
            if not self._running:  # alone, so that it is known whose fault a crash is
                self._start(*self._suspects.popleft())
            return
        room = self._pool.room()
        while self._waiting and len(self._running) < room:
            self._start(*self._waiting.popleft())

    def _start(self, job: Job, before: State) -> None:
        claim = claims.take(self._store.folder, job.path)
        if claim is None:
            self._claimed.append((job, before))
            return
        try:
            if not self._redo and self._store.state(job) is State.FINISHED:
                self._summary.found += 1  # by another run, since we looked
                self._bar.advance(job.weight)
                claim.release()
                return
            self._bar.advance(0, _short(job.title or job.path))
            arguments = (job.work, dict(job.configuration), dict(job.context))
            future = self._pool.submit(perform, *arguments)
        except BaseException:
            claim.release()
            raise
        self._running[future] = _Started(job, before, claim)

    def _collect(self, timeout: float) -> None:
        if not self._running:
            if not timeout:
                return
            wait([Future()], timeout=timeout if self._waiting else 0)
            return
        alone = len(self._running) == 1
        finished, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        for future in finished:
            started = self._running[future]
            try:
                outcome = future.result()
            except self._pool.died as error:
                del self._running[future]
                started.claim.release()
                self._answer_death(started, error, alone)
                continue
            except CancelledError:
                if isinstance(self._pool, Cluster):
                    raise self._pool.lost() from None
                raise
            self._enter(started, outcome)
            # Only now: what is written is no longer lost by an interrupt.
            del self._running[future]
            started.claim.release()

    def _answer_death(self, started: _Started, error: BaseException, alone: bool) -> None:
        if not (alone or isinstance(self._pool, Cluster)):
            self._suspects.append((started.job, started.before))
            return
        # A cluster has tried several workers by itself.
        self._fail(
            started.job,
            "The process that ran it died, as when memory runs out or an extension module "
            f"crashes ({type(error).__name__}).",
        )

    def _enter(self, started: _Started, outcome: Mapping[str, Any]) -> None:
        job = started.job
        if "error" in outcome:
            self._fail(job, outcome["error"], outcome["traceback"])
            return
        self._store.write(job, outcome["text"])
        self._summary.made += 1
        self._summary.redone += started.before is not State.ABSENT
        self._bar.advance(job.weight)

    def _fail(self, job: Job, error: str, where: str = "") -> None:
        self._summary.failures.append(self._store.write_failure(job, error, where))
        self._bar.advance(job.weight)

    def _keep_finished(self) -> None:
        """Write what is done already when the run is stopped."""
        for future, started in list(self._running.items()):
            done = future.done() and not future.cancelled() and future.exception() is None
            if done and self._store.state(started.job) is not State.FINISHED:
                self._enter(started, future.result())


def _short(text: str) -> str:
    """So that the time left finds room on a line of eighty characters."""
    return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"


def perform(work: Any, configuration: Any, context: Any) -> dict[str, str]:
    """Do one job, wherever this runs; an exception becomes a record."""
    try:
        # What an estimator prints would mix with what the command does.
        with one_thread(), redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"text": work(configuration, context)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the rest goes on
        text = " ".join(str(error).split()) or "no message"
        sentence = text if text.endswith((".", "!", "?")) else f"{text}."
        return {
            "error": f"{type(error).__name__}: {sentence}",
            "traceback": "".join(traceback.format_exception(error)),
        }
