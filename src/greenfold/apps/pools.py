"""Where jobs are computed: here, in other processes, or on the workers of a cluster.

All three take work by `submit` and hand back futures of `concurrent.futures`, so that one
loop serves them. ``died`` are the exceptions of a future which mean that its process died,
and `room` says how many jobs may be under way at a time.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import joblib

from .._base.checks import must, needs
from .._base.progress import noticing_interrupts

#: Seconds that a scheduler may take to answer.
_CONNECT = 10.0
#: Seconds that a cluster may be without workers.
_PATIENCE = 60.0
#: Jobs sent ahead to each thread of a cluster, so that it need not wait for the next.
_AHEAD = 2
#: Seconds after which a process looks whether its parent still lives.
_GLANCE = 0.5
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES}
#: Who tells of a lost connection in tracebacks.
_LOUD = ("distributed.client", "tornado.application")


class ClusterLostError(ConnectionError):
    """The cluster cannot be reached, or no longer."""


class Here:
    """In this process, one after the other."""

    died: tuple[type[BaseException], ...] = ()

    def room(self) -> int:
        """One."""
        return 1

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future:
        """Do it now."""
        future: Future = Future()
        # An optimisation answers Ctrl-C with its best so far, which is not the result.
        with noticing_interrupts(insist=True):
            result = work(*arguments)
        future.set_result(result)
        return future

    def close(self, *, at_once: bool = False) -> None:
        """Nothing to do."""


class Processes:
    """In processes of this machine, by joblib's loky."""

    died = (BrokenProcessPool,)

    def __init__(self, n_jobs: int) -> None:
        self._n_jobs = n_jobs
        self._made: Any = None

    def room(self) -> int:
        """As many as there are processes."""
        return self._n_jobs

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future:
        """Send it to a free process; after one has died there are new ones."""
        try:
            return self._executor().submit(work, *arguments)
        except BrokenProcessPool:  # it died since the last job came back
            return self._executor().submit(work, *arguments)

    def _executor(self) -> Executor:
        from joblib.externals import loky

        # Kept by loky and made anew where it is broken.
        options: dict[str, Any] = {"env": _ONE_THREAD, "initializer": _belong_to_parent}
        self._made = loky.get_reusable_executor(self._n_jobs, timeout=300, **options)
        return self._made

    def close(self, *, at_once: bool = False) -> None:
        """End the processes; what is under way is lost if it is to be at once."""
        if self._made is not None:
            self._made.shutdown(wait=True, kill_workers=at_once)


def _belong_to_parent() -> None:
    """Leave Ctrl-C to the parent, and end with it, however it ends."""
    # Ctrl-C reaches the whole process group. An optimisation would answer it with the best
    # result so far, which is not the result; the parent ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        os._exit(1)  # killed: nobody waits for what is computed here

    threading.Thread(target=watch, daemon=True).start()


class Cluster:
    """On the workers of a dask cluster, by the address or the file of its scheduler."""

    def __init__(self, address: str) -> None:
        with needs("A cluster of dask", "dask"):
            from distributed import Client, KilledWorker
        # What it says about lost connections, with tracebacks, is said here in a sentence.
        logs = [logging.getLogger(name) for name in _LOUD]
        self._levels = [(log, log.level) for log in logs]
        for log in logs:
            log.setLevel(logging.CRITICAL)
        self.died: Any = (KilledWorker,)
        self._address = address
        is_file = os.path.isfile(address)
        # Client takes its time to refuse what cannot be an address.
        usable = is_file or re.fullmatch(r"(\w+://)?\S+:\d+/?", address)
        wanted = "be the address of a scheduler, such as tcp://10.0.0.1:8786, or its file"
        must(usable, "dask", wanted, repr(address))
        place: Any = {"scheduler_file": address} if is_file else {"address": address}
        try:
            self._client = Client(**place, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            why = " ".join(str(error).split()).rstrip(".")[:200]
            raise ClusterLostError(
                f"No dask scheduler answers at `{address}` ({why}): start one with `dask "
                "scheduler`, or correct the address."
            ) from None
        self._executor: Any = self._client.get_executor(pure=False)
        self._seen = time.monotonic()

    def room(self) -> int:
        """Two jobs a thread; workers may come and go."""
        try:
            answer: Any = self._client.nthreads()
            threads = sum(answer.values())
        except (OSError, CancelledError, TimeoutError) as error:
            raise self.lost() from error
        now = time.monotonic()
        if threads:
            self._seen = now
        elif now - self._seen > _PATIENCE:
            raise ClusterLostError(
                f"The cluster at `{self._address}` has had no worker for "
                f"{_PATIENCE:g} s: start one with `dask worker {self._address}`, and run "
                "the same command again to resume."
            )
        return _AHEAD * threads

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future:
        """Send it to a worker."""
        try:
            return self._executor.submit(work, *arguments)
        except (OSError, CancelledError, RuntimeError) as error:
            raise self.lost() from error

    def lost(self) -> ClusterLostError:
        """What to raise where the scheduler does not answer any more."""
        return ClusterLostError(
            f"The dask scheduler at `{self._address}` was lost: what was finished is "
            "written; run the same command again, with a new address, to resume."
        )

    def close(self, *, at_once: bool = False) -> None:
        """Leave the cluster; it goes on without us."""
        try:
            self._executor.shutdown(wait=False)
            self._client.close(timeout=2)
        except (OSError, CancelledError, TimeoutError):
            if not at_once:
                raise
        finally:
            for log, level in self._levels:
                log.setLevel(level)


Pool = Here | Processes | Cluster


def open_pool(n_jobs: int | None, dask: str | None) -> Pool:
    """The cluster at an address, or so many processes; one of them is this one."""
    if dask is not None:
        return Cluster(dask)
    wanted = joblib.cpu_count() if n_jobs is None else n_jobs
    must(wanted >= 1, "n_jobs", "be at least 1", n_jobs)
    return Here() if wanted == 1 else Processes(wanted)
