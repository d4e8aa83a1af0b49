"""Run many jobs with one result file each, resumable, on one machine or a cluster.

A result file holds a seal, ``greenfold:<configuration>:<content>``: the hash of the
configuration that made it and the hash of its own text (with zeros in place of the latter).
The seal therefore shows what made the file and whether it is complete.

Two runs on one folder share the work. A run locks a file when it begins a job, and the
system releases the lock when the run ends, however it ends. Without file locks, every claim
is granted; at worst, work is done twice, because results are replaced as a whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import platform
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import joblib

from .. import __version__
from .._base.checks import must, needs, require
from .._base.files import plain, replacing, write_json
from .._base.interrupts import noticing_interrupts
from .._base.messages import sentence
from .._base.progress import Bar, display
from .._base.threads import one_thread

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_ZEROS = "0" * 16
#: A result's text contains this once; `Store.write` replaces it with two hashes.
SEAL = f"greenfold:{_ZEROS}:{_ZEROS}"
_SEAL = re.compile(rb"greenfold:([0-9a-f]{16}):([0-9a-f]{16})")
_FAILURES, _CLAIMS = "failures", ".claims"  # folders next to the results
_POLL = 0.5  # seconds between checks for Ctrl-C, new workers and other runs
#: Largest length of a title in the progress display; the time left must fit next to it.
_TITLE = 28
_CONNECT = 10.0  # seconds that a scheduler may take to answer
_PATIENCE = 60.0  # seconds that a cluster may be without workers
#: Number of jobs sent to each thread of a cluster, so that it never waits for the next.
_AHEAD = 2
#: Seconds between checks whether the parent process still lives.
_GLANCE = 0.5
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES}
#: Loggers that print tracebacks of a lost connection.
_LOUD = (
    "distributed.batched",
    "distributed.client",
    "distributed.core",
    "tornado.application",
)


Values: TypeAlias = Mapping[str, Any]
Work: TypeAlias = Callable[[Values, Values], str]


@dataclass(frozen=True)
class Job:
    """A result file, and how to make it."""

    path: str  # below the folder of results, with forward slashes
    #: ``work(configuration, context)`` returns the text of the file, which contains `SEAL`.
    work: Work
    #: Everything that determines the result, as JSON; a change makes a result stale.
    configuration: Values
    #: Values that do not affect the result, such as the folder of the data.
    context: Values = field(default_factory=dict)
    weight: float = 1.0  # share in the work
    title: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """Return the hash of the configuration, 16 hexadecimal digits."""
        return fingerprint(dict(self.configuration))


def fingerprint(values: object) -> str:
    """Return the hash of JSON values, 16 hexadecimal digits."""
    shown = json.dumps(plain(values), sort_keys=True)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


class State(Enum):
    """The state of a result file."""

    ABSENT = "absent"
    FINISHED = "finished"  # made by this configuration, and complete
    STALE = "stale"  # made by another configuration, or cut off or changed since
    FOREIGN = "foreign"  # not written by greenfold, so not replaced


@dataclass(frozen=True)
class Failure:
    """A job that raised; the traceback is empty if its process died."""

    path: str
    error: str
    traceback: str = ""
    configuration: str = ""


class Store:
    """A folder of results."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()

    def target(self, job: Job) -> Path:
        """Return the file of the job's result."""
        return self.folder / job.path

    def state(self, job: Job) -> State:
        """Return the state of the file at the job's target."""
        try:
            content = self.target(job).read_bytes()
        except FileNotFoundError:
            return State.ABSENT
        found = _SEAL.search(content)
        if found is None:
            # The seal is in the first line; a file without a whole line is no loss.
            return State.FOREIGN if b"\n" in content else State.STALE
        fits = found[1].decode() == job.fingerprint and is_whole(content)
        return State.FINISHED if fits else State.STALE

    def write(self, job: Job, text: str) -> None:
        """Seal a result and write it atomically."""
        if text.count(SEAL) != 1 or SEAL not in text.partition("\n")[0]:
            raise ValueError("A result must hold `SEAL` once, in its first line.")
        content = text.replace(SEAL, f"greenfold:{job.fingerprint}:{_ZEROS}").encode()
        found: Any = _SEAL.search(content)
        start, end = found.span(2)
        sealed = content[:start] + _digest(content, found) + content[end:]
        write_bytes(self.target(job), sealed)
        self._failure_file(job).unlink(missing_ok=True)

    def write_failure(self, job: Job, error: str, traceback: str = "") -> Failure:
        """Record that a job raised; the next result of that job removes the record."""
        failure = Failure(job.path, error, traceback, job.fingerprint)
        target = self._failure_file(job)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_json(target, asdict(failure))
        return failure

    def _failure_file(self, job: Job) -> Path:
        return self.folder / _FAILURES / f"{job.path}.json"


def is_whole(content: bytes) -> bool:
    """Return whether a file is unchanged; True for a file without a seal."""
    found = _SEAL.search(content)
    return found is None or _digest(content, found) == found[2]


def _digest(content: bytes, found: re.Match[bytes]) -> bytes:
    zeroed = content[: found.start(2)] + _ZEROS.encode() + content[found.end(2) :]
    return hashlib.sha256(zeroed).hexdigest()[:16].encode()


def source_digest(folder: Path, leave_out: Collection[str] = ()) -> str:
    """Return the hash of the Python sources in a folder, except some sub-folders."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0] not in leave_out:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file atomically, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    return path


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of greenfold, Python and the installed packages among these."""
    found = {"greenfold": __version__, "python": platform.python_version()}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def must_be_planned_with(planned: str, own: str) -> None:
    """Raise if the code of this worker differs from the code that planned the job."""
    how = "install the same version on all machines."
    wrong = f"The worker has {own}, but the work was planned with {planned}: {how}"
    require(own == planned, wrong, RuntimeError)


def _claim(folder: Path, name: str) -> Callable[[], None] | None:
    """Lock a job, and return how to release it; None while another run holds it."""
    if fcntl is None:
        return lambda: None
    stem = hashlib.sha256(name.encode()).hexdigest()[:24]
    path = folder / _CLAIMS / f"{stem}.lock"
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # the folder was removed in between
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            return None if error.errno in (errno.EACCES, errno.EAGAIN) else lambda: None
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return partial(_release, path, descriptor)
        os.close(descriptor)  # its last holder removed it after we opened it


def _release(path: Path, descriptor: int) -> None:
    # Remove the file while it is locked, so that a run that has opened it notices.
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()  # the last claim removes the folder
    os.close(descriptor)


class ClusterLostError(ConnectionError):
    """The cluster cannot be reached."""


class _Here:
    """Run jobs in this process, one after another.

    Every executor takes work with `submit` and returns futures, so that one loop serves all
    executors. `room` returns how many jobs may run at a time, `close` ends running jobs,
    and an exception in ``died`` means that the process of a job died.
    """

    died: tuple[type[BaseException], ...] = ()

    def room(self) -> int:
        return 1

    def submit(self, work: Callable[..., Any], *arguments: object) -> Future:
        future: Future = Future()
        # At Ctrl-C, an optimisation returns its best so far, which is not the result.
        with noticing_interrupts(insist=True):
            future.set_result(work(*arguments))
        return future

    def close(self, *, at_once: bool = False) -> None:
        pass


class _Processes:
    """Run jobs in processes of this machine, with joblib's loky."""

    died = (BrokenProcessPool,)

    def __init__(self, n_jobs: int) -> None:
        self._n_jobs, self._made = n_jobs, None

    def room(self) -> int:
        return self._n_jobs

    def submit(self, work: Callable[..., Any], *arguments: object) -> Future:
        try:
            return self._executor().submit(work, *arguments)
        except BrokenProcessPool:  # it died after the last job came back, and is replaced
            return self._executor().submit(work, *arguments)

    def _executor(self) -> Executor:
        from joblib.externals import loky

        # loky keeps the executor, and replaces a broken one.
        options: Any = {"env": _ONE_THREAD, "initializer": _belong_to_parent}
        self._made = made = loky.get_reusable_executor(self._n_jobs, timeout=300, **options)
        return made

    def close(self, *, at_once: bool = False) -> None:
        if self._made is not None:
            self._made.shutdown(wait=True, kill_workers=at_once)


def _belong_to_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when the parent ends."""
    # Ctrl-C reaches the whole process group. An optimisation would return its best so far,
    # which is not the result; the parent ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        os._exit(1)  # the parent was killed: nobody waits for this result

    threading.Thread(target=watch, daemon=True).start()


class _Cluster:
    """Run jobs on a dask cluster, given the address or file of its scheduler."""

    def __init__(self, address: str) -> None:
        with needs("A dask cluster", "dask"):
            from distributed import Client, KilledWorker
        # `lost` replaces dask's messages and tracebacks about lost connections.
        self._levels = [(log, log.level) for log in map(logging.getLogger, _LOUD)]
        for log, _ in self._levels:
            log.setLevel(logging.CRITICAL)
        self.died: Any = (KilledWorker,)
        self._address = address
        is_file = os.path.isfile(address)
        # Client takes long to reject a text that cannot be an address.
        usable = is_file or re.fullmatch(r"(\w+://)?\S+:\d+/?", address)
        wanted = "be the address of a scheduler, such as tcp://10.0.0.1:8786, or its file"
        must(usable, "dask", wanted, repr(address))
        place: Any = {"scheduler_file": address} if is_file else {"address": address}
        try:
            self._client = Client(**place, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            why = " ".join(str(error).split()).rstrip(".")[:200]
            none = f"No dask scheduler answers at `{address}` ({why})"
            how = "start one with `dask scheduler`, or correct the address."
            raise ClusterLostError(f"{none}: {how}") from None
        self._executor: Any = self._client.get_executor(pure=False)
        self._seen = time.monotonic()

    def room(self) -> int:
        # Workers may come and go.
        try:
            answer: Any = self._client.nthreads()
            threads = sum(answer.values())
        except (OSError, CancelledError, TimeoutError) as error:
            raise self.lost() from error
        now = time.monotonic()
        self._seen = now if threads else self._seen
        none = f"The cluster at `{self._address}` has had no worker for {_PATIENCE:g} s"
        how = f"start one with `dask worker {self._address}`, and run the same command"
        lost = f"{none}: {how} again to resume."
        require(now - self._seen <= _PATIENCE, lost, ClusterLostError)
        return _AHEAD * threads

    def submit(self, work: Callable[..., Any], *arguments: object) -> Future:
        try:
            return self._executor.submit(work, *arguments)
        except (OSError, CancelledError, RuntimeError) as error:
            raise self.lost() from error

    def lost(self) -> ClusterLostError:
        kept = f"The dask scheduler at `{self._address}` was lost; finished results are "
        how = "written. Run the same command again, with a new address, to resume."
        return ClusterLostError(f"{kept}{how}")

    def close(self, *, at_once: bool = False) -> None:
        # The cluster itself keeps running.
        try:
            self._executor.shutdown(wait=False)
            self._client.close(timeout=2)
        except (OSError, CancelledError, TimeoutError):
            if not at_once:
                raise
        finally:
            for log, level in self._levels:
                log.setLevel(level)


@dataclass
class Summary:
    """Counts of written, reused and failed jobs."""

    total: int
    found: int = 0  # existed already
    made: int = 0
    redone: int = 0  # made in place of a stale file
    #: Paths of files that greenfold did not write; they are not changed.
    foreign: list[str] = field(default_factory=list)
    elsewhere: int = 0  # being computed by another run on the same folder
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Workers:
    """Where jobs run: processes of this machine, or a dask cluster.

    Parameters
    ----------
    n_jobs : int, optional
        Number of processes; by default all cores.
    dask : str, optional
        Address or file of a dask scheduler, whose workers replace this machine. They must
        find the data at the same paths, or through ``GREENFOLD_DATA``.
    redo : bool
        Whether to compute finished results again.
    """

    n_jobs: int | None = None
    dask: str | None = None
    redo: bool = False

    def _start(self) -> _Here | _Processes | _Cluster:
        """Return a running pool."""
        wanted = joblib.cpu_count() if self.n_jobs is None else self.n_jobs
        must(wanted >= 1, "n_jobs", "be at least 1", self.n_jobs)
        if self.dask is not None:
            return _Cluster(self.dask)
        return _Here() if wanted == 1 else _Processes(wanted)


def run_jobs(
    jobs: Sequence[Job],
    folder: str | Path,
    workers: Workers | None = None,
    *,
    label: str = "",
    wait_for_others: bool = False,
) -> Summary:
    """Compute the jobs whose results are missing, and return a summary.

    Only this process writes. Finished results are written even if the cluster is lost or
    after Ctrl-C; a note at the KeyboardInterrupt then says how many.
    """
    different = len({job.path for job in jobs}) == len(jobs)
    require(different, "`jobs` must have different paths, but two write the same file.")
    store, workers, summary = Store(folder), workers or Workers(), Summary(len(jobs))
    store.folder.mkdir(parents=True, exist_ok=True)
    waiting = deque[Job]()
    for job in jobs:
        state = store.state(job)
        if state is State.FOREIGN:
            summary.foreign.append(job.path)
        elif state is State.FINISHED and not workers.redo:
            summary.found += 1
        else:
            waiting.append(job)
    if not waiting:
        return summary
    pool = workers._start()
    total = sum(job.weight for job in jobs)
    done = total - sum(job.weight for job in waiting)
    try:
        with warnings.catch_warnings(), display() as shown:
            # loky restarts processes that have grown, and warns about it.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs")
            with shown.bar(label, total, done) as bar:
                loop = _Loop(waiting, store, pool, summary, bar, workers.redo)
                loop.run(wait_for_others)
    except BaseException as error:
        pool.close(at_once=True)
        if isinstance(error, KeyboardInterrupt):
            done = f"{summary.found + summary.made} of {summary.total} results are written"
            error.add_note(f"{done}; run the same command again to continue.")
        raise
    pool.close()
    return summary


@dataclass(eq=False)
class _Loop:
    """A loop that starts jobs and writes their results."""

    waiting: deque[Job]
    store: Store
    pool: _Here | _Processes | _Cluster
    summary: Summary
    bar: Bar
    redo: bool
    #: Running jobs, whether a file is replaced, and how to release the job for others.
    running: dict[Future, tuple[Job, bool, Callable[[], None]]] = field(
        default_factory=dict
    )
    #: Jobs that were running when a process died; one of them may be the cause.
    suspects: deque[Job] = field(default_factory=deque)
    #: Jobs that another run was computing when their turn came.
    claimed: deque[Job] = field(default_factory=deque)

    def run(self, wait_for_others: bool) -> None:
        """Run until no job is left, except the jobs of other runs."""
        try:
            self._empty()
            while self.claimed:
                # The other run may have finished the job by now, or have died.
                self.waiting, self.claimed = self.claimed, deque()
                self._empty()
                if not wait_for_others:
                    break
                time.sleep(_POLL if self.claimed else 0)
            self.summary.elsewhere = len(self.claimed)
        except BaseException:
            for future, (job, replaces, _) in list(self.running.items()):
                kept = future.done() and not future.cancelled() and not future.exception()
                if kept and self.store.state(job) is not State.FINISHED:
                    self._enter(job, future.result(), replaces)
            raise
        finally:
            for *_, release in self.running.values():
                release()

    def _empty(self) -> None:
        while self.waiting or self.suspects or self.running:
            if self.suspects:  # run each alone, to find the one that crashes
                if not self.running:
                    self._start(self.suspects.popleft())
            else:
                room = self.pool.room()
                while self.waiting and len(self.running) < room:
                    self._start(self.waiting.popleft())
            if self.running:
                self._collect()
            elif self.waiting:
                time.sleep(_POLL)  # the cluster has no worker yet

    def _start(self, job: Job) -> None:
        release = _claim(self.store.folder, job.path)
        if release is None:
            self.claimed.append(job)
            return
        try:
            state = self.store.state(job)
            if not self.redo and state is State.FINISHED:
                self.summary.found += 1  # another run made it meanwhile
                self.bar.advance(job.weight)
                release()
                return
            title = job.title or job.path
            short = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
            self.bar.advance(0, short)
            arguments = (job.work, dict(job.configuration), dict(job.context))
            future = self.pool.submit(perform, *arguments)
        except BaseException:
            release()
            raise
        self.running[future] = job, state is not State.ABSENT, release

    def _collect(self) -> None:
        alone = len(self.running) == 1
        finished, _ = wait(self.running, timeout=_POLL, return_when=FIRST_COMPLETED)
        for future in finished:
            job, replaces, release = self.running[future]
            try:
                self._enter(job, future.result(), replaces)
            except self.pool.died as error:
                # A cluster has already tried several workers.
                if alone or isinstance(self.pool, _Cluster):
                    why = "The process that ran the job died, perhaps out of memory or in "
                    why += f"a crash of an extension module ({type(error).__name__})."
                    self._fail(job, why)
                else:
                    self.suspects.append(job)
            except CancelledError:
                if isinstance(self.pool, _Cluster):
                    raise self.pool.lost() from None
                raise
            # Forget the job only now: an interrupt can no longer lose its result.
            del self.running[future]
            release()

    def _enter(self, job: Job, outcome: Mapping[str, Any], replaces: bool) -> None:
        if "error" in outcome:
            self._fail(job, outcome["error"], outcome["traceback"])
            return
        self.store.write(job, outcome["text"])
        self.summary.made += 1
        self.summary.redone += replaces
        self.bar.advance(job.weight)

    def _fail(self, job: Job, error: str, where: str = "") -> None:
        self.summary.failures.append(self.store.write_failure(job, error, where))
        self.bar.advance(job.weight)


def perform(work: Work, configuration: Values, context: Values) -> dict[str, str]:
    """Run one job, and return its text or a record of its exception."""
    try:
        # An estimator's output would mix with that of the command.
        with one_thread(), redirect_stdout(sys.stderr):
            return {"text": work(configuration, context)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # even SystemExit: the other jobs continue
        return {
            "error": f"{type(error).__name__}: {sentence(error) or 'no message.'}",
            "traceback": "".join(traceback.format_exception(error)),
        }


def run_map(
    work: Callable[[Any], Any],
    items: Sequence[Any],
    folder: str | Path,
    configuration: Values,
    *,
    label: str,
    n_jobs: int | None = 1,
) -> list[Any]:
    """Return ``work(item)`` for every item, in order, as plain JSON values.

    Each result is kept in a file in ``folder``, so that a stopped map can continue. If an
    item fails, the others still run; then a RuntimeError is raised, with the traceback as a
    note.
    """
    stem = re.sub(r"\W+", "-", label)
    jobs = []
    for i, item in enumerate(items):
        path, context = f"{stem}-{i:04d}.json", {"work": work, "item": item}
        decides = {**configuration, "map": label, "item": i}
        jobs.append(Job(path, _checkpoint, decides, context, title=label))
    workers, store = Workers(1 if len(jobs) == 1 else n_jobs), Store(folder)
    while True:
        done = run_jobs(jobs, folder, workers, label=label, wait_for_others=True)
        for failure in done.failures:
            error = RuntimeError(f"{label}, {failure.path}: {failure.error}")
            error.add_note(failure.traceback)
            raise error
        if done.foreign:
            path = store.folder / done.foreign[0]
            raise FileExistsError(f"`{path}` was not written by greenfold: remove it.")
        # Another run on the same folder may have finished and cleaned up.
        with suppress(FileNotFoundError):
            return [json.loads(store.target(job).read_bytes())["result"] for job in jobs]


def _checkpoint(_: Values, context: Values) -> str:
    result = plain(context["work"](context["item"]))
    return json.dumps({"seal": SEAL, "result": result}) + "\n"
