"""What every reader shares: content of a source, values, labels, and one pair ``(X, y)``.

A format's own part is a function that turns content into `Parsed`; `read` does everything
else. What is wrong with a file is raised without its name, which `naming` puts in front.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from .._base.checks import must


class DataError(ValueError):
    """A data file, archive or array does not hold what it should."""


class MissingValueError(DataError):
    """A data file has missing values and the caller did not say what to do with them.

    Attributes
    ----------
    positions : ndarray of shape (n_missing, 3) or None
        Series, channel and time step of every missing value, counted from 0.
    """

    # Pickling calls the class with the message alone and restores the attribute after.
    def __init__(self, message: str, positions: NDArray[np.intp] | None = None) -> None:
        super().__init__(message)
        self.positions = positions


#: The path of a file, or a stream of bytes such as ``sys.stdin.buffer``.
Source: TypeAlias = str | Path | BinaryIO
#: Equal lengths: one array; unequal lengths: a list of (n_channels, n_steps_i) arrays.
Collection: TypeAlias = NDArray[np.float64] | list[NDArray[np.float64]]
#: What is asked of the labels, and what happens to missing values; see `read_series`.
Labels: TypeAlias = Literal["required", "optional", "none"]
Missing: TypeAlias = Literal["error", "keep", "trim"]

MISSING_VALUES = {"", "?", "nan", "na"}
_MISSING_LABELS = MISSING_VALUES - {"na"}  # which may be a class

# float() also takes "1_0", "nan" and "infinity", which are names rather than numbers.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Above 2**53 a float64 no longer tells neighbouring whole numbers apart.
_EXACT = 2.0**53
_GZIP = b"\x1f\x8b"
# Numbers as text are packed to a third or a tenth; what unpacks to far more is no data.
_UNPACKED, _RATIO = 2**26, 100
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)


class Parsed(NamedTuple):
    """What a format's parser found in one file."""

    #: Arrays of shape (n_channels, n_steps_i), NaN for a missing value.
    series: Collection
    #: As the file has them; None if it has none.
    labels: Sequence[str] | NDArray[Any] | None = None
    #: Those that the header declares; None if the labels are targets of a regression.
    classes: Sequence[str] | None = ()
    #: Unequal lengths are declared: X is a list even if the lengths happen to agree, so
    #: that both splits of a data set come out in the same form.
    unequal: bool = False


def read(
    source: Source,
    parse: Callable[..., Parsed],
    missing: Missing,
    labels: Labels,
    **known: Any,
) -> tuple[Collection, Any]:
    """Read a source with a format's parser ``parse(content, labels, **known)``."""
    for argument, value, kinds in ("missing", missing, Missing), ("labels", labels, Labels):
        wanted = "be {!r}, {!r} or {!r}".format(*get_args(kinds))
        must(value in get_args(kinds), argument, wanted, repr(value))
    name, content = read_bytes(source)
    with naming(name):
        found = parse(content, labels, **known)
        y = None if labels == "none" else found.labels
        if y is not None and found.classes is not None:
            y = canonical_labels(y, declared=found.classes, labels=labels)
        return _assemble(found, missing), y


def refuse(wrong: Any, text: str) -> None:
    """Raise a `DataError` that does not name the file."""
    if wrong:
        raise DataError(text)


@contextmanager
def naming(name: str | Path) -> Iterator[None]:
    """Put the name of a file in front of what is wrong with it."""
    try:
        yield
    except DataError as error:
        error.args = (f"`{name}` {error}",)
        raise


@contextmanager
def readable(kind: str, cure: str = "write it again") -> Iterator[None]:
    """Make one sentence of whatever a library says about damaged bytes."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as error:  # damage surfaces as almost anything
        why = reason(error)
        raise DataError(f"cannot be read as {kind} ({why}): {cure}.") from error


def reason(error: Exception) -> str:
    """What another library said, for the middle of a sentence."""
    return " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__


# Content


def name_of(source: Source) -> str:
    """What messages call the source."""
    if isinstance(source, str | Path):
        return str(source)
    name: Any = getattr(source, "name", None)
    return name if isinstance(name, str) else "stream"


def suffix_of(path: Source, format: str | None = None) -> str:
    """The suffix that names the format, without a ``.gz`` behind it."""
    if format is not None:
        return f".{format.lower().lstrip('.')}"
    plain = Path(name_of(path))
    if plain.suffix.lower() == ".gz":
        plain = plain.with_suffix("")
    return plain.suffix.lower()


def read_bytes(source: Source) -> tuple[str, bytes]:
    """Name and content; what gzip has compressed is unpacked, whatever it is called."""
    name = name_of(source)
    if isinstance(source, str | Path):
        _check_file(source)
        content = Path(source).read_bytes()
    else:
        content = source.read()
    # No text and neither of NumPy's formats begins with these two bytes.
    if not content.startswith(_GZIP):
        return name, content
    with naming(name), readable("gzip", "fetch or write it again"):
        most = max(_UNPACKED, _RATIO * len(content))
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            found = packed.read(most + 1)
        big = (
            f"unpacks to more than {most / 2**20:.0f} MiB, {_RATIO} times its size or more"
        )
        refuse(len(found) > most, f"{big}, as no data does: unpack and look at it first.")
        return name, found


def _check_file(path: str | Path) -> None:
    """Refuse what does not exist, or need not end."""
    advice = "give the path of a data file."
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"`{path}` does not exist: {advice}") from None
    if stat.S_ISDIR(found.st_mode):
        raise FileNotFoundError(f"`{path}` is a directory, not a file: {advice}")
    usable = stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)
    with suppress(OSError):  # /dev/stdin may be anything, others (/dev/zero) never end
        usable = usable or os.path.samestat(found, os.fstat(0))
    refuse(not usable, f"`{path}` is neither a file nor a pipe: {advice}")


def lines_of(content: bytes) -> list[str]:
    """Lines of text in UTF-8, without their ends."""
    try:
        # utf-8-sig: spreadsheet programs put a byte order mark in front.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"is not text in UTF-8 (byte {error.start} cannot be read)"
        raise DataError(f"{what}: convert it or fetch it again.") from error
    # Not splitlines(), which also breaks at form feeds and other rare characters.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


# Values


def number(text: str) -> float | None:
    """The number that is written; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def parse_values(channels: Sequence[list[str]], where: str) -> NDArray[np.float64]:
    """Values (n_channels, n_steps) of a series, NaN where a field is missing."""
    # NumPy, like Python, reads "1_0" as ten; in a data file it is a mistake.
    if not any("_" in "".join(fields) for fields in channels):
        with suppress(ValueError):
            return np.array(channels, dtype=np.float64)
    values = np.full((len(channels), len(channels[0])), np.nan)
    for row, fields in zip(values, channels, strict=True):
        for step, field in enumerate(one.strip() for one in fields):
            value = None if "_" in field else number(field)
            if value is not None:
                row[step] = value
            elif field.lower() not in MISSING_VALUES:
                place = f"in {where}, position {step} (counting from 0)"
                cure = "correct the value, or write `?` if it is missing."
                if DECIMAL_COMMA.fullmatch(field):
                    cure = "write decimal points in place of commas."
                raise DataError(f"has {field[:40]!r} instead of a number {place}: {cure}")
    return values


def _assemble(found: Parsed, missing: Missing) -> Collection:
    """Check the series of one file and bring them into their final shape."""
    series = found.series
    refuse(not len(series), "holds no series: is it the right file, and complete?")
    n_channels = len(series[0])
    for case, one in enumerate(series):
        other = f"has {len(one)} channels in series {case} but {n_channels} in series 0"
        refuse(len(one) != n_channels, f"{other}: every series needs the same channels.")
    if len(infinite := _locate(np.isinf, series)):
        where, cure = _place(infinite[0]), "correct it, or write `?` if it is missing"
        raise DataError(f"has an infinite value in {where}: {cure}.")
    if missing == "trim":
        series = [_trim(one) for one in series]
    for case, one in enumerate(series):
        empty = f"has no value at all in series {case} (counting from 0)"
        refuse(not one.size, f"{empty}: remove that series.")
    if missing != "keep" and len(positions := _locate(np.isnan, series)):
        n = len(positions)
        what = "1 missing value," if n == 1 else f"{n} missing values, the first"
        cure = "fill them or leave the series out"
        if not any(np.isnan(_trim(one)).any() for one in series):
            cure = "fill them, or pass missing='trim' if the series have unequal lengths"
        cure = f"{cure}, or pass missing='keep' to keep NaN"
        where = _place(positions[0])
        raise MissingValueError(f"has {what} in {where}: {cure}.", positions)
    if found.unequal or len({one.shape[1] for one in series}) > 1:
        return list(series)
    X = np.asarray(series)
    return X[:, 0, :] if n_channels == 1 else X


def _place(position: NDArray[np.intp]) -> str:
    case, channel, step = position
    return f"series {case}, channel {channel}, position {step} (counting from 0)"


def _locate(test: Any, series: Collection) -> NDArray[np.intp]:
    """Series, channel and step of every value that passes a test, shape (n, 3)."""
    if isinstance(series, np.ndarray):
        return np.argwhere(test(series))
    found = [
        np.insert(where, 0, case, axis=1)
        for case, one in enumerate(series)
        if len(where := np.argwhere(test(one)))
    ]
    return np.concatenate(found) if found else np.empty((0, 3), np.intp)


def _trim(one: NDArray[np.float64]) -> NDArray[np.float64]:
    """The series up to the last step at which any channel has a value."""
    observed = np.flatnonzero(~np.isnan(one).all(axis=0))
    return one[:, : observed[-1] + 1 if observed.size else 0]


# Labels


def bare(label: str) -> str:
    """Label without surrounding blanks and without one pair of quotes."""
    label = label.strip()
    if len(label) >= 2 and label[0] == label[-1] and label[0] in "'\"":
        label = label[1:-1].strip()
    return label


def canonical_labels(
    written: Sequence[str] | NDArray[Any],
    *,
    declared: Sequence[str] = (),
    labels: Labels = "required",
) -> NDArray[Any] | None:
    """Class labels (n_cases,) as one array, spelled alike for every file format.

    Whole numbers become int64; other numbers strings in Python's shortest spelling, because
    scikit-learn takes fractions for a regression target; all else strings. The classes that
    are `declared` decide too, so that both splits of a data set have the same type.
    Missing labels that are optional are None in an array of objects.
    """
    if isinstance(written, np.ndarray):
        if written.dtype.kind in "iub":  # no detour through text and float64, which rounds
            return written.astype(np.int64)
        if written.dtype.kind == "S":
            written = np.char.decode(written, "utf-8", "replace")
    names = [bare(str(label)) for label in written]
    known = [name.lower() not in _MISSING_LABELS for name in names]
    if labels == "required" and not all(known):
        none = f"has no class label for series {known.index(False)} (counting from 0)"
        raise DataError(f"{none}: add the label or remove the series.")
    classes = [bare(name) for name in declared]
    allowed = {_key(name) for name in classes}
    given = [name for name, is_known in zip(names, known, strict=True) if is_known]
    for name in given if classes else ():
        if _key(name) not in allowed:
            case = f"series {names.index(name)} (counting from 0)"
            cure = "which its header does not declare: correct either of them."
            raise DataError(f"gives {case} the label {name[:40]!r}, {cure}")
    y = np.array(given, dtype=np.str_)
    if all(_NUMBER.fullmatch(name) for name in [*given, *classes]):
        values = [float(name) for name in [*given, *classes]]
        if all(one.is_integer() and abs(one) < _EXACT for one in values):
            y = np.array(values[: len(given)]).astype(np.int64)
        else:
            y = np.array([repr(one) for one in values[: len(given)]], dtype=np.str_)
    if all(known):
        return y
    filled = np.full(len(names), None, dtype=object)
    filled[known] = y.tolist()
    return filled if given else None


def _key(name: str) -> float | str:
    """What two spellings of one class have in common."""
    return float(name) if _NUMBER.fullmatch(name) else name.casefold()
