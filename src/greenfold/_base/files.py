"""Files that appear complete or not at all, and values as JSON holds them."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

#: Dots an inch of figures that are made of dots.
_DPI = 160


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` to write and read, and move it over `path` at the end.

    If the body raises, `path` stays as it was. A symbolic link stays, and what it points to
    is replaced; an existing file keeps its permissions. A pipe or a terminal is sent the
    whole content at the end, other kinds of files are refused. An OSError has the caller's
    name.
    """
    try:
        found = os.stat(str(path))
    except FileNotFoundError:
        found = None  # or a link to a file that is yet to be written
    if found is None or (stat.S_ISREG(found.st_mode) and _descriptor_of(found) is None):
        made = _beside(path, found)
    else:
        made = _sending(path, found)
    with made as stream:
        yield stream


@contextmanager
def _beside(path: Path, found: os.stat_result | None) -> Iterator[BinaryIO]:
    """Write a new file in the folder of the target, then put it in the target's place."""
    target = Path(os.path.realpath(path))
    # Not tempfile, whose files are readable by their owner alone even after the move.
    temporary = target.with_name(f".partial-{secrets.token_hex(8)}")
    mode = 0o666 if found is None else stat.S_IMODE(found.st_mode) & 0o777
    try:
        # From the first byte on, nobody may read who may not read the target.
        opener = partial(os.open, mode=mode)
        with open(temporary, "x+b", opener=opener) as made:
            yield made
        if found is not None:
            _give(temporary, found, mode)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # Without a name: the disk is full, or the like.
        ours = (None, str(temporary), temporary)
        if isinstance(error, OSError) and error.errno and error.filename in ours:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _give(temporary: Path, found: os.stat_result, mode: int) -> None:
    """Owner, as far as we may, and permissions of the file that is replaced."""
    ours = os.stat(temporary)
    if hasattr(os, "chown") and (ours.st_uid, ours.st_gid) != (found.st_uid, found.st_gid):
        with suppress(OSError):
            os.chown(temporary, found.st_uid, found.st_gid)
    os.chmod(temporary, mode)


@contextmanager
def _sending(path: Path, found: os.stat_result) -> Iterator[BinaryIO]:
    """Collect the content, and send it at the end to what is not a regular file."""
    kind = found.st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) or stat.S_ISREG(kind)):
        kinds = "it is neither a regular file nor a pipe or terminal"
        raise OSError(errno.EINVAL, kinds, str(path))
    # Collected, because formats such as zip go back to what they have written.
    with tempfile.TemporaryFile() as made:
        yield made
        made.seek(0)
        ours = _descriptor_of(found)
        try:
            if ours is None:
                # Never creates: should the pipe have gone meanwhile, that is an error.
                target = os.open(path, os.O_WRONLY)
            else:
                # Opened anew, a redirected output would be written from its start again.
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                target = os.dup(ours)
            with open(target, "wb") as stream:
                shutil.copyfileobj(made, stream)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None


def _descriptor_of(found: os.stat_result) -> int | None:
    """The standard output or error of this process, if it is that; else None."""
    for descriptor in (1, 2):
        with suppress(OSError):  # closed
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def is_standard_output(path: Path) -> bool:
    """Whether writing to `path` would mix with what is printed."""
    try:
        found, nowhere = os.stat(path), os.stat(os.devnull)
        return _descriptor_of(found) == 1 and not os.path.samestat(found, nowhere)
    except OSError:
        return False


def plain(value: Any) -> Any:
    """A value as JSON can hold it: arrays as lists, None for what is no finite number."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON has no form for.")


def write_figure(path: Path, figure: Any, **options: Any) -> Path:
    """Write a matplotlib figure in the format of its suffix, complete or not at all."""
    kind = path.suffix[1:]
    # Without a date, the same numbers give the same file.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    made = io.BytesIO()
    figure.savefig(made, format=kind, dpi=_DPI, metadata=undated, **options)
    with replacing(path) as stream:
        stream.write(made.getvalue())
    return path


def write_json(path: Path, value: Any) -> None:
    """Write JSON, complete or not at all."""
    with replacing(path) as stream:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
        stream.write(text.encode())
