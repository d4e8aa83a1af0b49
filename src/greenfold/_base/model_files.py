"""Saved objects: their descriptions, and files of arrays and JSON without code.

Each kind of object is described once, next to its class::

    class Kernel(Saved, kind="kernel"): ...

    KERNEL = describe("kernel", Kernel, linear=Numbers("channels", "steps"))

Writing takes the named attributes. Reading checks each attribute by its field and calls the
class. Fields can be nested; lengths of the same name must agree within a file.

A file is an uncompressed zip archive of ``metadata.json`` and one ``.npy`` file per array
(``numpy.load`` opens it too). Its last 64 bytes, the end of the archive's comment, are the
SHA-256 digest of every byte before them. A new file replaces an old file only when it is
complete. The reader accepts no pickles, no compression and no more data than the file is
long. Any damage raises a `ModelFileError`, and nothing is executed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, ClassVar, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from .arrays import is_sparse
from .files import Json, replacing

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
Arrays: TypeAlias = dict[str, np.ndarray]


class ModelFileError(ValueError):
    """A file that this version of greenfold cannot read."""


def refuse_file(reason: str) -> NoReturn:
    """Raise an error with the reason for refusing a file; `reading` adds the file name."""
    raise ModelFileError(reason)


#: The kinds of the modules that were imported.
_KINDS: dict[str, Object] = {}

#: A number, a name, a product of these, or None for any length.
Length: TypeAlias = "int | str | tuple[int | str, ...] | None"


class Saved:
    """An object that can be saved; its class sets the kind."""

    _kind: ClassVar[str]

    def __init_subclass__(cls, kind: str | None = None, **rest: object) -> None:
        super().__init_subclass__(**rest)
        if kind is not None:
            cls._kind = kind

    def save(self, path: str | Path) -> None:
        """Save to a file that holds no code; load it with `greenfold.load`.

        An existing file is replaced in one step at the end. An estimator must be fitted;
        its held-out predictions and a ``random_state`` that is a generator are not saved.
        """
        write(path, *pack(self))


def describe(
    kind: str, make: Callable[..., Any], take: Take | None = None, /, **fields: Field
) -> Object:
    """Describe the fields of a kind; a description can be a field of other kinds."""
    _KINDS[kind] = Object(make, take, **fields)
    return _KINDS[kind]


def pack(obj: Saved) -> tuple[dict[str, Any], Arrays]:
    """Turn an object into JSON and arrays."""
    arrays: Arrays = {}
    return SAVED.pack(obj, "", arrays), arrays


def unpack(told: Json, arrays: Arrays) -> Any:
    """Return the object that `pack` turned into JSON and arrays, or refuse it."""
    return SAVED.unpack(told, "", Stored(arrays, {}))


class Stored(NamedTuple):
    """The arrays of a file, and the lengths known by name."""

    arrays: Arrays
    lengths: dict[str, int]

    def array(self, told: Json, name: str) -> np.ndarray:
        """Return the array to which the JSON of a field points."""
        key = told.get("array") if isinstance(told, dict) else None
        if key not in self.arrays:
            refuse_file(f"its array {name!r} is missing.")
        return self.arrays[key]

    def length(self, wanted: Length, got: int) -> int:
        """Return the expected length; the first length of a name defines it."""
        if isinstance(wanted, str):
            return self.lengths.setdefault(wanted, got)
        if isinstance(wanted, tuple):
            return math.prod(self.length(part, 0) for part in wanted)
        return got if wanted is None else wanted


class Field:
    """One part of an object: its form in JSON and arrays, and its checks."""

    def pack(self, value: Any, name: str, arrays: Arrays) -> Any:
        """Return JSON for the value; its arrays go into ``arrays`` under ``name``."""
        if isinstance(value, np.ndarray):
            arrays[name] = value
            return {"array": name}
        return value.item() if isinstance(value, np.generic) else value

    def unpack(self, told: Json, name: str, stored: Stored) -> Any:
        """Return the checked value; ``told`` is None if the file does not contain it."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Plain(Field):
    """A value in JSON, with its check and the length that it defines."""

    wanted: str
    fits: Callable[[Any], bool]
    length: str | None = None

    def unpack(self, told: Json, name: str, stored: Stored) -> Any:
        if not self.fits(told):
            refuse_file(f"its {name} is {told!r:.80}, not {self.wanted}.")
        if isinstance(told, int) and stored.length(self.length, told) != told:
            refuse_file(f"its {name} is {told}, which does not fit its arrays.")
        return told


def _number(x: object) -> bool:
    return type(x) in (int, float)


FLAG = Plain("true or false", lambda x: isinstance(x, bool))
TEXT = Plain("text", lambda x: isinstance(x, str))
INTEGER = Plain("an integer", lambda x: type(x) is int)
COUNT = Plain("a positive integer", lambda x: type(x) is int and x > 0)
ANY_NUMBER = Plain("a number", _number)
NUMBER = Plain("a finite number", lambda x: _number(x) and math.isfinite(x))
POSITIVE = Plain("a positive number", lambda x: _number(x) and 0 < x < math.inf)
BY_NAME = Plain(
    "numbers by name", lambda x: isinstance(x, dict) and all(map(_number, x.values()))
)
#: Plain fields by the annotation of a dataclass.
_ANNOTATED = {"bool": FLAG, "str": TEXT, "int": INTEGER, "float": ANY_NUMBER}


def one_of(choices: Collection[Any]) -> Plain:
    """Return a field for one of several values."""
    return Plain(f"one of {', '.join(map(str, choices))}", lambda x: x in choices)


def counted(length: str) -> Plain:
    """Return a field for a positive integer that defines a length."""
    return Plain(COUNT.wanted, COUNT.fits, length)


class Numbers(Field):
    """An array of numbers, with axes of the given lengths, or with ``ndim`` axes.

    With ``or_one``, a single number may replace it.
    """

    def __init__(
        self,
        *shape: Length,
        ndim: tuple[int, ...] = (),
        finite: bool = True,
        positive: bool = False,
        or_one: bool = False,
        dtype: type[np.int64 | np.float64 | np.float32] | None = None,
    ) -> None:
        self.shape, self.ndim, self.dtype = shape, ndim or (len(shape),), dtype
        self.finite, self.positive, self.or_one = finite, positive, or_one

    def unpack(self, told: Json, name: str, stored: Stored) -> Any:
        if self.or_one and not isinstance(told, dict):
            return NUMBER.unpack(told, name, stored)
        array = stored.array(told, name)
        if array.ndim not in self.ndim or array.dtype.kind not in "iuf":
            has = f"shape {array.shape} and type {array.dtype}"
            refuse_file(f"its array {name!r} has {has}.")
        axes = zip(self.shape or array.shape, array.shape, strict=True)
        wanted = tuple(stored.length(length, got) for length, got in axes)
        if array.shape != wanted:
            refuse_file(f"its array {name!r} has shape {array.shape} instead of {wanted}.")
        if self.dtype is not None:
            with np.errstate(over="ignore"):  # infinite values are refused below
                array = array.astype(self.dtype, copy=False)
        if self.finite and not np.isfinite(array).all():
            refuse_file(f"its array {name!r} is not finite.")
        if self.positive and not (array > 0).all():
            refuse_file(f"its array {name!r} is not positive.")
        return array


class Square(Numbers):
    """A square matrix with rows and columns of the given length, dense or sparse (CSR)."""

    def __init__(self, length: str) -> None:
        super().__init__(length, length)
        self.length = length

    def pack(self, value: Any, name: str, arrays: Arrays) -> Any:
        if not is_sparse(value):
            return super().pack(value, name, arrays)
        parts = {"array": value.data, "columns": value.indices, "ends": value.indptr}
        told: dict[str, str] = {}
        for part, array in parts.items():
            told[part] = name if part == "array" else f"{name}_{part}"
            arrays[told[part]] = array
        return told

    def unpack(self, told: Json, name: str, stored: Stored) -> Any:
        if not isinstance(told, dict) or "ends" not in told:
            return super().unpack(told, name, stored)
        parts: list[np.ndarray] = []
        for part, kinds in (("array", "iuf"), ("columns", "iu"), ("ends", "iu")):
            array = stored.array({"array": told.get(part)}, f"{name} ({part})")
            if array.ndim != 1 or array.dtype.kind not in kinds:
                refuse_file(f"its array {name!r} is no sparse matrix.")
            parts.append(array)
        values, columns, ends = parts
        n = stored.length(self.length, len(ends) - 1)
        fits = len(ends) == n + 1 and n > 0 and len(columns) == len(values) == ends[-1]
        fits = fits and ends[0] == 0 and (ends[1:] >= ends[:-1]).all()
        if not fits or (len(columns) and not 0 <= columns.min() <= columns.max() < n):
            refuse_file(f"its array {name!r} is no sparse matrix of {n} rows.")
        if not np.isfinite(values).all():
            refuse_file(f"its array {name!r} is not finite.")
        return sparse.csr_array((values, columns, ends), shape=(n, n))


@dataclasses.dataclass(frozen=True)
class Maybe(Field):
    """A field that may be None."""

    field: Field

    def pack(self, value: Any, name: str, arrays: Arrays) -> Any:
        return None if value is None else self.field.pack(value, name, arrays)

    def unpack(self, told: Json, name: str, stored: Stored) -> Any:
        return None if told is None else self.field.unpack(told, name, stored)


@dataclasses.dataclass(frozen=True)
class Several(Field):
    """A list whose entries share one field."""

    field: Field
    length: Length = None

    def pack(self, value: Any, name: str, arrays: Arrays) -> list[Any]:
        return [self.field.pack(x, f"{name}_{i}", arrays) for i, x in enumerate(value)]

    def unpack(self, told: Json, name: str, stored: Stored) -> list[Any]:
        if not isinstance(told, list) or len(told) != stored.length(self.length, len(told)):
            refuse_file(f"its {name} are missing, or their number is wrong.")
        return [self.field.unpack(x, f"{name}_{i}", stored) for i, x in enumerate(told)]


Take: TypeAlias = Callable[[Any], Mapping[str, Any]]


class Object(Field):
    """An object with fields, read in order.

    ``make``, usually a class, takes them by name. ``take`` gets them from an object; by
    default, they are its attributes. Numbers, truth values and text of a dataclass need no
    description.
    """

    def __init__(
        self, make: Callable[..., Any], take: Take | None = None, /, **fields: Field
    ) -> None:
        self.make, self.fields = make, fields
        self.take = take or (lambda value: {key: getattr(value, key) for key in fields})
        for one in dataclasses.fields(make) if dataclasses.is_dataclass(make) else ():
            kind, *rest = str(one.type).split(" | ")
            if one.init and kind in _ANNOTATED and rest in ([], ["None"]):
                plain = _ANNOTATED[kind]
                fields.setdefault(one.name, Maybe(plain) if rest else plain)
            # A field with a default would come back as the default, whatever was saved.
            lost = one.init and one.name not in fields and take is None
            why = f"{make!r} has a field {one.name!r} that its description does not save"
            if lost:
                raise TypeError(f"{why}.")

    def pack(self, value: Any, name: str, arrays: Arrays) -> dict[str, Any]:
        if isinstance(self.make, type) and not isinstance(value, self.make):
            got, wanted = type(value).__name__, self.make.__name__
            raise TypeError(f"a {got} cannot be saved in place of a {wanted}.")
        taken = self.take(value)
        return {
            key: field.pack(taken[key], f"{name}_{key}".strip("_"), arrays)
            for key, field in self.fields.items()
        }

    def unpack(self, told: Json, name: str, stored: Stored) -> Any:
        if not isinstance(told, dict):
            refuse_file(f"its {name} is missing.")
        given = {
            key: field.unpack(told.get(key), f"{name}_{key}".strip("_"), stored)
            for key, field in self.fields.items()
        }
        return self.make(**given)


@dataclasses.dataclass(frozen=True)
class AnyKind(Field):
    """An object of the kind that its file names, one of some classes."""

    classes: type | UnionType = Saved

    def pack(self, value: Saved, name: str, arrays: Arrays) -> dict[str, Any]:
        packed = self._described(value._kind).pack(value, name, arrays)
        return {"kind": value._kind, **packed}

    def unpack(self, told: Json, name: str, stored: Stored) -> Any:
        kind = told.get("kind") if isinstance(told, dict) else None
        made = self._described(kind).unpack(told, name, stored)
        if not isinstance(made, self.classes):
            refuse_file(f"its {name} is a {type(made).__name__}.")
        return made

    def _described(self, kind: object) -> Object:
        if not isinstance(kind, str) or kind not in _KINDS:
            refuse_file(f"it holds a {kind!r:.80}, which this greenfold does not know.")
        return _KINDS[kind]


SAVED = AnyKind()


# Files


def write(path: str | Path, described: dict[str, Any], arrays: Arrays) -> None:
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


def reading(path: str | Path, make: Callable[[dict[str, Any], Arrays], Made]) -> Made:
    """Apply ``make`` to the JSON and arrays of a file; failures raise `ModelFileError`."""
    with open(path, "rb") as stream:
        try:
            return make(*_read(stream))
        except Exception as error:  # a damaged file can fail in countless ways
            reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
            problem = f"it is damaged, or not a greenfold model ({reason})."
            problem = error if isinstance(error, ModelFileError) else problem
            raise ModelFileError(f"{path} cannot be read: {problem}") from None


def _read(stream: BinaryIO) -> tuple[dict[str, Any], Arrays]:
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
