"""Write files completely or not at all, and convert values to JSON."""

from __future__ import annotations

import csv
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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"
#: Dots per inch of raster figures.
_DPI = 160


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file to write and read, and move it over `path` at the end.

    If the body raises, `path` does not change. A symbolic link is kept and its target is
    replaced; an existing file keeps its permissions. A pipe or terminal gets the whole
    content at the end. Other kinds of files are refused. An OSError names `path`.
    """
    try:
        found = os.stat(str(path))
    except FileNotFoundError:
        found = None  # or a link to a file that does not exist yet
    if found is None or (stat.S_ISREG(found.st_mode) and _descriptor_of(found) is None):
        made = _beside(path, found)
    else:
        made = _sending(path, found)
    with made as stream:
        yield stream


@contextmanager
def _beside(path: Path, found: os.stat_result | None) -> Iterator[BinaryIO]:
    """Write a new file in the target's folder, then move it over the target."""
    target = Path(os.path.realpath(path))
    # Do not use tempfile: only the owner can read its files, even after the move.
    temporary = target.with_name(f".partial-{secrets.token_hex(8)}")
    mode = 0o666 if found is None else stat.S_IMODE(found.st_mode) & 0o777
    try:
        # From the first byte on, only those who may read the target may read this file.
        opener = partial(os.open, mode=mode)
        with open(temporary, "x+b", opener=opener) as made:
            yield made
        if found is not None:
            _give(temporary, found, mode)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # None: some errors have no file name, such as that of a full disk.
        ours = (None, str(temporary), temporary)
        if isinstance(error, OSError) and error.errno and error.filename in ours:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _give(temporary: Path, found: os.stat_result, mode: int) -> None:
    """Copy the permissions and, if allowed, the owner of the replaced file."""
    ours = os.stat(temporary)
    if hasattr(os, "chown") and (ours.st_uid, ours.st_gid) != (found.st_uid, found.st_gid):
        with suppress(OSError):
            os.chown(temporary, found.st_uid, found.st_gid)
    os.chmod(temporary, mode)


@contextmanager
def _sending(path: Path, found: os.stat_result) -> Iterator[BinaryIO]:
    """Collect the content, and send it to a pipe or terminal at the end."""
    kind = found.st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) or stat.S_ISREG(kind)):
        kinds = "it is neither a regular file nor a pipe or terminal"
        raise OSError(errno.EINVAL, kinds, str(path))
    # Collect it first, because formats such as zip seek back.
    with tempfile.TemporaryFile() as made:
        yield made
        made.seek(0)
        ours = _descriptor_of(found)
        try:
            if ours is None:
                # This never creates a file; if the pipe is gone, it raises.
                target = os.open(path, os.O_WRONLY)
            else:
                # Opening redirected output again would write from its start.
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                target = os.dup(ours)
            with open(target, "wb") as stream:
                shutil.copyfileobj(made, stream)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None


def _descriptor_of(found: os.stat_result) -> int | None:
    """Return the descriptor if it is this process's standard output or error, else None."""
    for descriptor in (1, 2):
        with suppress(OSError):  # closed
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def is_standard_output(path: Path) -> bool:
    """Return whether writing to `path` would mix with printed text."""
    try:
        found, nowhere = os.stat(path), os.stat(os.devnull)
        return _descriptor_of(found) == 1 and not os.path.samestat(found, nowhere)
    except OSError:
        return False


def plain(value: object) -> Json:
    """Return a value for JSON: arrays become lists, non-finite numbers become None."""
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
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON cannot hold.")


def write_figure(path: Path, figure: Figure, bbox_inches: str | None = None) -> Path:
    """Write a matplotlib figure in the format of its suffix, completely or not at all."""
    kind = path.suffix[1:]
    # Without a date, the same numbers give the same file.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    made = io.BytesIO()
    figure.savefig(made, format=kind, dpi=_DPI, metadata=undated, bbox_inches=bbox_inches)
    with replacing(path) as stream:
        stream.write(made.getvalue())
    return path


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> Path:
    """Write rows as CSV, completely or not at all, and create the folder."""
    made = io.StringIO(newline="")
    csv.writer(made, lineterminator="\n").writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        # Names may hold lone surrogates, which cannot be encoded.
        stream.write(made.getvalue().encode(errors="replace"))
    return path


def write_json(path: Path, value: object) -> None:
    """Write JSON, completely or not at all."""
    with replacing(path) as stream:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
        stream.write(text.encode())
