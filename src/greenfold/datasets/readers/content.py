"""What stands in a file or comes from a stream, unpacked where it is compressed."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from greenfold.datasets.errors import DataError

__all__ = ["Source", "name_of", "read_bytes", "read_lines"]

Source: TypeAlias = str | Path | BinaryIO
"""The path of a file, or a stream of bytes such as ``sys.stdin.buffer``."""

_GZIP = b"\x1f\x8b"


def name_of(source: Source) -> str:
    """What messages call the source."""
    if isinstance(source, str | Path):
        return str(source)
    name: Any = getattr(source, "name", None)
    return name if isinstance(name, str) else "stream"


def read_bytes(source: Source) -> tuple[str, bytes]:
    """Name and content; what gzip has compressed is unpacked, whatever it is called."""
    name = name_of(source)
    if isinstance(source, str | Path):
        _refuse_no_file(source)
        content = Path(source).read_bytes()
    else:
        content = source.read()
    # No text and neither of NumPy's formats begins with these two bytes.
    return name, _unpack(content, name) if content.startswith(_GZIP) else content


def _refuse_no_file(path: str | Path) -> None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"`{path}` does not exist: give the path of a data file."
        ) from None
    if stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise FileNotFoundError(
            f"`{path}` is a directory, not a file: give the path of a data file."
        )
    try:
        given = os.path.samestat(found, os.fstat(0))
    except OSError:
        given = False
    if not given:  # /dev/stdin may be anything, others (/dev/zero) never end
        raise DataError(
            f"`{path}` is neither a file nor a pipe: give the path of a data file."
        )


def _unpack(content: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(content)
    except EOFError:
        raise DataError(
            f"`{name}` is compressed by gzip and ends early: fetch or write it again."
        ) from None
    except (OSError, zlib.error) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(
            f"`{name}` is compressed by gzip and damaged ({reason}): fetch or write it "
            "again."
        ) from error


def read_lines(source: Source) -> tuple[str, list[str]]:
    """Name of the source, and its lines as UTF-8 without their ends."""
    name, content = read_bytes(source)
    try:
        # utf-8-sig: spreadsheet programs put a byte order mark in front.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"`{name}` is not text in UTF-8 (byte {error.start} cannot be read): "
            "convert it or fetch it again."
        ) from error
    # Not splitlines(), which also breaks at form feeds and other rare characters.
    return name, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
