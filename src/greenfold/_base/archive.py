"""Sealed files of arrays and a JSON description, without code.

A file is an uncompressed zip archive of ``metadata.json`` and one ``.npy`` file per array
(``numpy.load`` opens it too). Its last 64 bytes, the end of the archive's comment, are the
SHA-256 digest of every byte before them. A new file replaces an old file only when it is
complete. The reader accepts no pickles, no compression and no more data than the file is
long. Any damage raises a `ModelFileError`, and nothing is executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import numpy as np
from numpy.lib import format as npy

from .files import replacing

_FORMAT = "greenfold-model"
#: The version increases when a reader of the older version would misunderstand the file.
_VERSION = 3
_METADATA = "metadata.json"
_METADATA_BYTES = 2**24
_HEADER_BYTES = 4096
#: Real numbers, truth values and text of fixed width, which need no pickle.
_DTYPE = re.compile(r"[<>|](?:[fiu][1248]|b1|U[1-9][0-9]{0,5})")
#: The archive's comment is this text, followed by the digest.
_SEAL = b"greenfold sha256 "
_DIGEST = 64
_CHUNK = 2**20

Made = TypeVar("Made")


class ModelFileError(ValueError):
    """A file that this version of greenfold cannot read."""


def refuse_file(reason: str) -> NoReturn:
    """Raise an error with the reason for refusing a file; `reading` adds the file name."""
    raise ModelFileError(reason)


def write(
    path: str | Path, described: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write JSON and arrays of numbers, truth values or text, completely or not at all."""
    from .. import __version__

    metadata = {"format": _FORMAT, "version": _VERSION, "greenfold": __version__}
    metadata |= described
    text = json.dumps(metadata, indent=1).encode()
    with replacing(Path(path)) as stream:
        with zipfile.ZipFile(stream, "w") as archive:
            # ZipInfo has a fixed date, so that the same object gives the same bytes.
            archive.writestr(zipfile.ZipInfo(_METADATA), text)
            for name, array in arrays.items():
                member = zipfile.ZipInfo(f"{name}.npy")
                member.file_size = array.nbytes + _HEADER_BYTES  # zip64 beyond 2 GiB
                with archive.open(member, "w") as part:
                    plain = np.ascontiguousarray(array)
                    npy.write_array(part, plain, (1, 0), allow_pickle=False)
            archive.comment = _SEAL + bytes(_DIGEST)
        length = stream.seek(0, io.SEEK_END)
        found = _digest(stream, length)
        stream.seek(length - _DIGEST)
        stream.write(found)


def reading(
    path: str | Path, make: Callable[[dict[str, Any], dict[str, np.ndarray]], Made]
) -> Made:
    """Apply ``make`` to the JSON and arrays of a file; failures raise `ModelFileError`."""
    with open(path, "rb") as stream:
        try:
            return make(*_read(stream))
        except Exception as error:  # a damaged file can fail in countless ways
            reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
            problem = f"it is damaged, or not a greenfold model ({reason})."
            problem = error if isinstance(error, ModelFileError) else problem
            raise ModelFileError(f"{path} cannot be read: {problem}") from None


def _read(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the JSON and arrays of a sealed file, in no more memory than its length."""
    length = stream.seek(0, io.SEEK_END)
    _check_seal(stream, length)
    stream.seek(0)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) != len(members):
            refuse_file("one of its parts occurs twice.")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            refuse_file("it is compressed, but greenfold models are not.")
        # Uncompressed parts cannot be longer than the file, unless they overlap.
        if sum(member.file_size for member in members) > length:
            refuse_file("its parts are longer than the file.")
        metadata = _read_metadata(archive, members)
        arrays = {}
        for member in members:
            name = member.filename
            if name == _METADATA:
                continue
            if not name.endswith(".npy"):
                refuse_file(f"it has an unknown part {name!r}.")
            arrays[name.removesuffix(".npy")] = _read_array(archive, member)
    return metadata, arrays


def _digest(stream: BinaryIO, length: int) -> bytes:
    """Return the digest of a file without its last bytes, which hold the digest."""
    digest, counted = hashlib.sha256(), length - _DIGEST
    stream.seek(0)
    for start in range(0, counted, _CHUNK):
        digest.update(stream.read(min(_CHUNK, counted - start)))
    return digest.hexdigest().encode()


def _check_seal(stream: BinaryIO, length: int) -> None:
    """Compare the digest at the end of a file with the digest of the bytes before it."""
    stream.seek(max(0, length - _DIGEST - len(_SEAL)))
    marked, found = stream.read(len(_SEAL)), stream.read(_DIGEST)
    if marked != _SEAL:
        older = "it was cut off or written by an older version; save it again"
        refuse_file(f"it is not a greenfold model, or {older}.")
    if _digest(stream, length) != found:
        refuse_file("it is damaged: its checksum does not match its content.")


def _read_metadata(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]
) -> dict[str, Any]:
    sizes = {member.filename: member.file_size for member in members}
    if sizes.get(_METADATA, _METADATA_BYTES + 1) > _METADATA_BYTES:
        refuse_file("it is not a greenfold model, because it has no metadata.")
    metadata = json.loads(archive.read(_METADATA))
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        refuse_file("it is not a greenfold model.")
    version = metadata.get("version")
    if version != _VERSION:
        other = f"version {version!r} and this greenfold reads version {_VERSION}"
        refuse_file(f"it has the format {other}; update greenfold or save it again.")
    return metadata


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Read one .npy file, after checking that its header fits its length."""
    name = member.filename
    with archive.open(member) as part:
        if npy.read_magic(part) != (1, 0):
            refuse_file(f"its part {name!r} is not an array.")
        shape, fortran, dtype = npy.read_array_header_1_0(part)
        if not _DTYPE.fullmatch(dtype.str):
            refuse_file(f"its part {name!r} holds something other than numbers or text.")
        if fortran or any(n < 0 for n in shape):
            refuse_file(f"its part {name!r} has a wrong shape.")
        if math.prod(shape) * dtype.itemsize != member.file_size - part.tell():
            refuse_file(f"its part {name!r} is not as long as it should be.")
        array = np.empty(shape, dtype)
        data = array.reshape(-1).view(np.uint8).data
        for start in range(0, len(data), _CHUNK):  # a chunk that is too short raises
            data[start : start + _CHUNK] = part.read(min(_CHUNK, len(data) - start))
        if part.read(1):  # reading to the end lets zipfile check its own checksum
            refuse_file(f"its part {name!r} is too long.")
    return array
