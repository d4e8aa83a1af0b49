"""Two runs on one folder share the work instead of doing it twice.

A run that begins a job locks a file that belongs to it. The system releases the lock when
the run ends, however it ends, so a killed run leaves no claim behind. Where a platform or a
file system has no such locks every claim is granted; the worst that follows is work done
twice, as results are replaced as a whole.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from pathlib import Path

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
