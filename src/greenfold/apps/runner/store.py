"""Result files that say themselves what made them, and whether they are whole.

Each file holds a seal, ``greenfold:<configuration>:<content>``: the hash of the
configuration that made it and that of its own text (with zeros in the place of the latter).
Result and seal are one file, so that no crash can part them, and the format is free as long
as it has room for a comment.

Two runs on one folder share the work instead of doing it twice.

A run that begins a job locks a file that belongs to it. The system releases the lock when
the run ends, however it ends, so a killed run leaves no claim behind. Where a platform or a
file system has no such locks every claim is granted; the worst that follows is work done
twice, as results are replaced as a whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from ..._base.files import replacing, write_json
from .job import SEAL, Job

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_FOLDER = ".claims"
_HELD = (errno.EACCES, errno.EAGAIN)


class Claim:
    """A job that is ours until `release`."""

    def __init__(self, path: Path | None = None, descriptor: int | None = None) -> None:
        self._path, self._descriptor = path, descriptor

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor is None:
            return
        if self._path is not None:
            # While it is locked: whoever opened it before sees that it is gone.
            with suppress(OSError):
                self._path.unlink()
            with suppress(OSError):
                self._path.parent.rmdir()  # the last one takes the folder along
        os.close(self._descriptor)
        self._descriptor = None


def take(folder: Path, name: str) -> Claim | None:
    """A claim on the job of that name, or None while another run holds it."""
    if fcntl is None:
        return Claim()
    stem = hashlib.sha256(name.encode()).hexdigest()[:24]
    path = folder / _FOLDER / f"{stem}.lock"
    while True:
        try:
            path.parent.mkdir(exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # the folder was taken away in between
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            return None if error.errno in _HELD else Claim()
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return Claim(path, descriptor)
        os.close(descriptor)  # its last holder has removed it since we opened it


_SEAL = re.compile(rb"greenfold:([0-9a-f]{16}):([0-9a-f]{16})")
_FAILURES = "failures"


class State(Enum):
    """What lies in the place of a result."""

    ABSENT = "absent"
    #: Made by this configuration, and whole.
    FINISHED = "finished"
    #: Made by another configuration.
    STALE = "stale"
    #: Cut off or changed since it was written.
    DAMAGED = "damaged"
    #: Not written by us, and so not ours to replace.
    FOREIGN = "foreign"


@dataclass(frozen=True)
class Failure:
    """A job that raised.

    Attributes
    ----------
    path : str
        Where its result would be.
    error : str
        What went wrong, a sentence.
    traceback : str
        Where; empty if the process died.
    configuration : str
        Hash of the configuration it was run with.
    """

    path: str
    error: str
    traceback: str = ""
    configuration: str = ""


class Store:
    """A folder of results.

    Parameters
    ----------
    folder : str or Path
        Made by `prepare` where it does not exist.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()

    def prepare(self) -> None:
        """Make the folder, and see that it can be written to before any work is done."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            tempfile.TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.folder)) from None

    def target(self, job: Job) -> Path:
        """File of the job's result."""
        return self.folder / job.path

    def state(self, job: Job) -> State:
        """What lies in the place of the job's result."""
        try:
            content = self.target(job).read_bytes()
        except FileNotFoundError:
            return State.ABSENT
        found = _SEAL.search(content)
        if found is None:
            # The seal stands in the first line; without one line there is nothing to keep.
            return State.FOREIGN if b"\n" in content else State.DAMAGED
        if _digest(content, found) != found[2]:
            return State.DAMAGED
        return State.FINISHED if found[1].decode() == job.fingerprint else State.STALE

    def write(self, job: Job, text: str) -> None:
        """Seal and write a result; it appears complete or not at all."""
        content = _sealed(text, job.fingerprint)
        target = self.target(job)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        self._failure_file(job).unlink(missing_ok=True)

    def write_failure(self, job: Job, error: str, traceback: str = "") -> Failure:
        """Record that a job raised; the next result of that job removes the record."""
        failure = Failure(job.path, error, traceback, job.fingerprint)
        target = self._failure_file(job)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_json(target, asdict(failure))
        return failure

    def failures(self) -> list[Failure]:
        """All records of failures in the folder."""
        found = []
        for path in sorted((self.folder / _FAILURES).rglob("*.json")):
            try:
                found.append(Failure(**json.loads(path.read_text(encoding="utf-8"))))
            except (OSError, ValueError, TypeError):
                continue  # not one of ours
        return found

    def _failure_file(self, job: Job) -> Path:
        return self.folder / _FAILURES / f"{job.path}.json"


def _sealed(text: str, fingerprint: str) -> bytes:
    if text.count(SEAL) != 1 or SEAL not in text.partition("\n")[0]:
        raise ValueError("The text of a result must hold `SEAL` once, in its first line.")
    content = text.replace(SEAL, SEAL.replace("0" * 16, fingerprint, 1)).encode()
    found = _SEAL.search(content)
    assert found is not None
    return content[: found.start(2)] + _digest(content, found) + content[found.end(2) :]


def _digest(content: bytes, found: re.Match[bytes]) -> bytes:
    digest = hashlib.sha256(content[: found.start(2)])
    digest.update(b"0" * 16)
    digest.update(content[found.end(2) :])
    return digest.hexdigest()[:16].encode()


def is_whole(content: bytes) -> bool:
    """Whether a file is as it was written; True for a file without a seal."""
    found = _SEAL.search(content)
    return found is None or _digest(content, found) == found[2]
