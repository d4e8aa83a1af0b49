"""Readers of all file formats by suffix: text, NumPy, and files read slice by slice.

Each format has a function that turns content into `Parsed`; `read_series` does the rest.
Errors are raised without the name of the file, which `naming` adds.

The tests check our ARFF reader against `scipy.io.arff`. The library does not use SciPy's
reader, which silently drops surplus values of a row, reads ``1_0`` as ten, and cannot say
which series is wrong.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.checks import must, needs
from .._base.files import replacing


class DataError(ValueError):
    """A data file, archive or array does not hold what it should."""


class MissingValueError(DataError):
    """A data file has missing values that `missing` does not allow.

    Attributes
    ----------
    positions : ndarray of shape (n_missing, 3) or None
        Series, channel and time step of every missing value, counted from 0.
    """

    # Pickling calls the class with the message alone and restores the attribute later.
    def __init__(self, message: str, positions: NDArray[np.intp] | None = None) -> None:
        super().__init__(message)
        self.positions = positions


#: The path of a file, or a stream of bytes such as ``sys.stdin.buffer``.
Source: TypeAlias = str | Path | BinaryIO
#: One array for equal lengths; a list of (n_channels, n_steps_i) arrays for unequal ones.
Collection: TypeAlias = NDArray[np.float64] | list[NDArray[np.float64]]
#: Options for labels and missing values; see `read_series`.
Labels: TypeAlias = Literal["required", "optional", "none"]
Missing: TypeAlias = Literal["error", "keep", "trim"]

MISSING_VALUES = {"", "?", "nan", "na"}
_MISSING_LABELS = MISSING_VALUES - {"na"}  # "na" may be a class

# float() also takes "1_0", "nan" and "infinity", which are names rather than numbers.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Above 2**53, float64 no longer distinguishes neighbouring whole numbers.
_EXACT = 2.0**53
_GZIP = b"\x1f\x8b"
# gzip shrinks numbers as text to a third or a tenth; far higher ratios are not data.
_UNPACKED, _RATIO = 2**26, 100
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)


class Parsed(NamedTuple):
    """The content of one file, as its parser found it."""

    #: Arrays of shape (n_channels, n_steps_i), NaN for a missing value.
    series: Collection
    #: Labels as in the file; None if the file has no labels.
    labels: Sequence[str] | NDArray[Any] | None = None
    #: Classes declared in the header; None if the labels are regression targets.
    classes: Sequence[str] | None = ()
    #: Whether unequal lengths are declared: X is then a list even if the lengths agree, so
    #: that both splits of a data set have the same form.
    unequal: bool = False
    #: Whether labels are numbers that only their position distinguishes from values.
    assumed: bool = False


def refuse(wrong: Any, text: str) -> None:
    """Raise a `DataError` if ``wrong``; the text does not name the file."""
    if wrong:
        raise DataError(text)


@contextmanager
def naming(name: str | Path) -> Iterator[None]:
    """Add the name of the file in front of errors."""
    try:
        yield
    except DataError as error:
        error.args = (f"`{name}` {error}",)
        raise


@contextmanager
def readable(kind: str, cure: str = "write it again") -> Iterator[None]:
    """Turn any library error about damaged bytes into a one-sentence `DataError`."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as error:  # damaged bytes can raise almost any error
        why = reason(error)
        raise DataError(f"cannot be read as {kind} ({why}): {cure}.") from error


def reason(error: Exception) -> str:
    """Return another library's error message, to use in the middle of a sentence."""
    return " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__


# Content


def name_of(source: Source) -> str:
    """Return the name of the source to use in messages."""
    if isinstance(source, str | Path):
        return str(source)
    name: Any = getattr(source, "name", None)
    return name if isinstance(name, str) else "stream"


def suffix_of(path: Source, format: str | None = None) -> str:
    """Return the suffix that names the format, without ``.gz``."""
    if format is not None:
        return f".{format.lower().lstrip('.')}"
    plain = Path(name_of(path))
    if plain.suffix.lower() == ".gz":
        plain = plain.with_suffix("")
    return plain.suffix.lower()


def read_bytes(source: Source) -> tuple[str, bytes]:
    """Return the name and the content of a source; gzip content is unpacked."""
    name = name_of(source)
    if isinstance(source, str | Path):
        _check_file(source)
        content = Path(source).read_bytes()
    else:
        content = source.read()
    # Text and NumPy's formats never begin with these two bytes.
    if not content.startswith(_GZIP):
        return name, content
    with naming(name), readable("gzip", "fetch or write it again"):
        most = max(_UNPACKED, _RATIO * len(content))
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            found = packed.read(most + 1)
        big = f"unpacks to more than {most / 2**20:.0f} MiB, {_RATIO} times its size"
        refuse(len(found) > most, f"{big}, too much for data: unpack and check it first.")
        return name, found


def _check_file(path: str | Path) -> None:
    """Raise if the source does not exist or may be endless."""
    advice = "pass the path of a data file."
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"`{path}` does not exist: {advice}") from None
    if stat.S_ISDIR(found.st_mode):
        raise FileNotFoundError(f"`{path}` is a directory, not a file: {advice}")
    usable = stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)
    with suppress(OSError):  # accept /dev/stdin; other devices (/dev/zero) never end
        usable = usable or os.path.samestat(found, os.fstat(0))
    refuse(not usable, f"`{path}` is neither a file nor a pipe: {advice}")


def lines_of(content: bytes) -> list[str]:
    """Return the lines of UTF-8 text, without line ends."""
    try:
        # utf-8-sig, because spreadsheet programs write a byte order mark first.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"is not text in UTF-8 (byte {error.start} cannot be read)"
        raise DataError(f"{what}: convert it or fetch it again.") from error
    # splitlines() would also break at form feeds and other rare characters.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


# Values


def number(text: str) -> float | None:
    """Return the number in a text, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def parse_values(channels: Sequence[list[str]], where: str) -> NDArray[np.float64]:
    """Return values (n_channels, n_steps) of a series, with NaN for missing fields."""
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
                if _DECIMAL_COMMA.fullmatch(field):
                    cure = "write decimal points in place of commas."
                raise DataError(f"has {field[:40]!r} instead of a number {place}: {cure}")
    return values


def _assemble(found: Parsed, missing: Missing) -> Collection:
    """Check the series of one file and return them in their final shape."""
    series = found.series
    refuse(not len(series), "holds no series: is it the right, complete file?")
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
    """Return series, channel and step of every value that passes a test, (n, 3)."""
    if isinstance(series, np.ndarray):
        return np.argwhere(test(series))
    found = [
        np.insert(where, 0, case, axis=1)
        for case, one in enumerate(series)
        if len(where := np.argwhere(test(one)))
    ]
    return np.concatenate(found) if found else np.empty((0, 3), np.intp)


def _trim(one: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the series up to the last step that has a value in any channel."""
    observed = np.flatnonzero(~np.isnan(one).all(axis=0))
    return one[:, : observed[-1] + 1 if observed.size else 0]


# Labels


def bare(label: str) -> str:
    """Return a label without surrounding blanks and without one pair of quotes."""
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
    """Return class labels (n_cases,) in the same spelling for every file format.

    Whole numbers become int64, and all other labels become strings. Numbers among them get
    Python's shortest spelling; as floats, scikit-learn would take them for a regression
    target. The `declared` classes also decide, so that both splits of a data set have the
    same type. Optional labels that are missing are None in an array of objects.
    """
    if isinstance(written, np.ndarray):
        if written.dtype.kind in "iub":  # the way through float64 below would round
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
            cure = "which its header does not declare: correct the label or the header."
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
    """Return a key that is equal for all spellings of one class."""
    return float(name) if _NUMBER.fullmatch(name) else name.casefold()


# Tables

_LABEL = {"label", "labels", "class", "classes", "target", "y", "class_label", "classlabel"}
#: From this number of series on, labels that are all different cannot be class labels.
_ALONE = 6
_INDEX = {"index", "id", "unnamed: 0", "case", "case_id"}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBERED = re.compile(r"(.*\D)(\d+)", re.DOTALL | re.ASCII)


def _parse_table(
    content: bytes,
    labels: Labels,
    n_steps: int | None,
    classes: Iterable[Any],
    label_column: int | str | None,
) -> Parsed:
    """Parse one univariate series per line; shorter lines count as padded."""
    lines = [line.strip(" ") for line in lines_of(content) if line.strip()]
    separator = next((s for s in "\t;," if lines and s in lines[0]), None)
    rows = [line.split(separator) for line in lines]
    header, assumed = _read_header(rows), False
    names, rows = (rows[0], rows[1:]) if header else ([], rows)
    if label_column is not None and labels != "none":
        column = _column_of(label_column, names, max(map(len, rows), default=0))
    else:
        column = _label_column(rows, header or _Header(), labels, n_steps, classes)
        if labels == "required" and (header is None or header.label is None):
            _check_repeat(rows, column)
            assumed = column == 0 and not any(_is_word(bare(row[0])) for row in rows)
    width = max((len(row) for row in rows), default=0)
    if column and column == width - 1 and not header:
        # The label ends every line, including the lines of shorter series.
        rows, column = [[row[-1], *row[:-1]] for row in rows], 0
    left_out = {column, *(header or ())[:2]}
    kept = [i for i in range(width) if i not in left_out]
    values = np.full((len(rows), 1, len(kept)), np.nan)
    for case, row in enumerate(rows):
        fields = [row[i] for i in kept if i < len(row)]
        cure = "separate the label and the values by tabs, commas or blanks."
        refuse(not fields, f"has series {case} (counting from 0) without values: {cure}")
        try:
            values[case, :, : len(fields)] = parse_values([fields], f"series {case}")
        except DataError as error:
            if case or header:
                raise
            hint = "a first line with column names must name all columns"
            raise DataError(f"{str(error).rstrip('.')} ({hint}).") from None
    if column is None:
        return Parsed(values)
    found = [row[column] if column < len(row) else "" for row in rows]
    return Parsed(values, found, assumed=assumed)


class _Header(NamedTuple):
    """Information about a table from its column names."""

    label: int | None = None
    identifier: int | None = None  # numbers the series: neither a label nor a value
    all_values: bool = False  # the first name continues the numbering (t0, t1, …)


def _read_header(rows: Sequence[list[str]]) -> _Header | None:
    """Return the information in the first line, or None if it is not a header."""
    # A header cannot be a series: it names every column, or numbers them like pandas. A
    # mistyped number must not make the first series disappear.
    if not rows or not _is_header(rows[0], rows[1:]):
        return None
    names = [bare(field).casefold() for field in rows[0]]
    width = max((len(row) for row in rows[1:]), default=0)
    refuse(not width, "names columns but has no series below: is the file complete?")
    if width == len(names) + 1:  # R leaves the column of row names unnamed
        names = ["", *names]
    more = f"names {len(names)} columns in its first line but has {width} values in a line"
    cure = "name every column, or remove the first line."
    refuse(width > len(names), f"{more} below: {cure}")
    labels = [i for i, name in enumerate(names) if name in _LABEL]
    named = " and ".join(repr(names[i]) for i in labels)
    refuse(len(labels) > 1, f"names {len(labels)} columns as labels, {named}: keep one.")
    if labels:
        return _Header(labels[0], 0 if names[0] in _INDEX | {""} else None)
    # Check for names such as t0 and t1; bare numbers say nothing.
    one, two = (_NUMBERED.fullmatch(name) for name in names[:2])
    carries_on = one and two and one[1] == two[1] and int(one[2]) + 1 == int(two[2])
    return _Header(None, 0 if names[0] in _INDEX else None, bool(carries_on))


def _is_header(first: list[str], others: Sequence[list[str]]) -> bool:
    fields = [bare(field) for field in first]
    plain = [
        field
        for i, field in enumerate(fields)
        if field.casefold() not in _LABEL | _INDEX and (i or field)
    ]
    if len(fields) < 2 or not plain:
        return False
    if all(_is_word(field) for field in plain):
        return True
    if len(plain) < len(fields):
        return len(plain) > 1 and _counts(plain)
    # Whole numbers above other numbers are column numbers.
    below = (bare(field) for row in others for field in row[1:])
    if all(map(_WHOLE.fullmatch, below)) or len(fields) < 3:
        return False
    if _is_word(fields[0]):
        return _counts(fields[1:]) and fields[0] not in {bare(row[0]) for row in others}
    return _counts(fields)


def _is_word(field: str) -> bool:
    """Return whether a field is neither a number nor a missing value."""
    missing = field.casefold() in MISSING_VALUES or _DECIMAL_COMMA.fullmatch(field)
    return not missing and number(field) is None


def _counts(fields: Sequence[str]) -> bool:
    """Return whether the fields count up by one, from 0 or 1."""
    return any(list(fields) == [str(i + k) for i in range(len(fields))] for k in (0, 1))


def _label_column(
    rows: Sequence[list[str]],
    header: _Header,
    labels: Labels,
    n_steps: int | None,
    classes: Iterable[Any],
) -> int | None:
    """Return the column of the labels, or None."""
    if labels == "none" or not rows:
        return None
    if header.label is not None:
        return header.label
    if header.all_values or header.identifier is not None:
        cure = "name it with `label_column`, or call it label"
        refuse(labels == "required", f"names no column as labels: {cure}.")
        return None
    width = max(len(row) for row in rows)
    ends = {_is_word(bare(row[-1])) for row in rows} if width > 1 else set()
    if ends == {True} and not any(_is_word(bare(row[0])) for row in rows):
        return width - 1
    if labels == "required":
        return 0
    first = [bare(row[0]) for row in rows]
    numbers = [number(one) for one in first if one.lower() not in MISSING_VALUES]
    if None in numbers:
        return 0
    if n_steps is not None and width in (n_steps, n_steps + 1):
        return 0 if width == n_steps + 1 else None
    known = {number(str(one)) for one in classes} - {None}
    if not numbers or (known and set(numbers) <= known):
        return 0
    if any(value is not None and not value.is_integer() for value in numbers):
        return None
    expected = "" if n_steps is None else f", for series of {n_steps} steps"
    raise DataError(
        f"has {width} values per line{expected}, and it is not clear whether the first is "
        "a label: pass labels='required' if it is, or labels='none' if not."
    )


def _column_of(wanted: int | str, names: Sequence[str], width: int) -> int:
    """Return the index of a column given by number or name."""
    known = [bare(name) for name in names]
    if wanted in known:
        return known.index(str(wanted))
    place: Any = {"first": 0, "last": -1}.get(str(wanted), wanted)
    try:
        return range(width)[int(place)]
    except (ValueError, IndexError):
        cure = f"give a number from 0 to {width - 1}, first, last or a name"
        none = f"has no column {wanted!r} for the labels: {cure} from its first line."
        raise DataError(none) from None


def _check_repeat(rows: Sequence[list[str]], column: int | None) -> None:
    """Raise if a column of labels has a different value in every row."""
    end, at = ("last", -1) if column else ("first", 0)
    found = {bare(row[at]) for row in rows}
    alone = column is not None and len(rows) >= _ALONE and len(found) == len(rows)
    each = f"has {len(rows)} series with {len(rows)} different labels"
    cure = "name the column of the labels with `label_column`, such as last"
    refuse(alone, f"{each}, taken from its {end} column: {cure}.")


def _split_at_data(
    content: bytes, comment: str, kind: str
) -> tuple[list[tuple[int, str]], list[str]]:
    """Return the numbered header lines and the data lines, without comments."""
    numbered = enumerate((line.strip() for line in lines_of(content)), start=1)
    full = [(n, line) for n, line in numbered if line and line[0] != comment]
    for i, (_, line) in enumerate(full):
        if line.split(maxsplit=1)[0].lower() == "@data":
            return full[:i], [line for _, line in full[i + 1 :]]
    raise DataError(f"has no @data tag: is it a complete {kind} file?")


def _parse_rows(
    rows: list[str], divide: Callable[[str, str], tuple[str, list[list[str]]]]
) -> tuple[list[Any], list[str]]:
    """Return values and labels; ``divide(row, where)`` returns a label and channels."""
    series, labels = [], []
    for case, row in enumerate(rows):
        label, channels = divide(row, f"series {case} (counting from 0)")
        series.append(parse_values(channels, f"series {case}"))
        labels.append(label)
    return series, labels


# A "(time stamp,value)" pair; only time stamps may contain colons and blanks.
_STAMPED = re.compile(r"\(([^()]*),([^(),]*)\)\s*,?")


def _parse_ts(content: bytes, labels: Labels) -> Parsed:
    """Parse a ``.ts`` file; drop time stamps, and keep the case of labels, unlike aeon."""
    head, rows = _split_at_data(content, "#", ".ts")
    tags, classes = _read_tags(head)
    labelled = tags["classlabel"] or tags["targetlabel"]
    undeclared = "declares no class labels: add a `@classLabel true ...` tag."
    refuse(labels == "required" and not labelled, undeclared)

    def divide(row: str, at: str) -> tuple[str, list[list[str]]]:
        body, colon, label = row.rpartition(":") if labelled else (row, ":", "")
        refuse(not colon, f"has no label after a colon in {at}: is the file complete?")
        if tags["timestamps"]:
            channels = _stamped_channels(body, at)
        else:
            channels = [channel.split(",") for channel in body.split(":")]
        cure = "correct the series or the header."
        many = f"declares univariate series but has {len(channels)} channels in {at}"
        refuse(tags["univariate"] and len(channels) > 1, f"{many}: {cure}")
        short, long = min(map(len, channels)), max(map(len, channels))
        cure = "the channels of a series need the same length."
        refuse(short != long, f"has channels of {short} to {long} steps in {at}: {cure}")
        return label, channels

    series, written = _parse_rows(rows, divide)
    for case, one in enumerate(series):
        n_steps, expected = one.shape[1], series[0].shape[1]
        differ = f"has {n_steps} steps in series {case} and {expected} in series 0"
        cure = "complete it, or declare `@equalLength false`."
        wrong = tags["equallength"] and n_steps != expected
        refuse(wrong, f"declares equal lengths but {differ}: {cure}")
    unequal = not tags["equallength"]
    if tags["targetlabel"]:
        targets = [parse_values([[y]], f"series {i}").item() for i, y in enumerate(written)]
        return Parsed(series, np.array(targets), None, unequal)
    return Parsed(series, written if labelled else None, classes, unequal)


def _read_tags(head: Iterable[tuple[int, str]]) -> tuple[dict[str, bool], list[str]]:
    """Return the tags that control reading, with aeon's defaults, and the classes."""
    # Ignore the other tags: they repeat the data, and some archive files get them wrong.
    tags = {"timestamps": False, "univariate": True, "equallength": True}
    tags |= {"classlabel": True, "targetlabel": False}
    classes: list[str] = []
    for line_number, line in head:
        word, *values = line.split()
        tag = word[1:].lower()
        # Lines without @ are comments; not all files of the archive mark them with a #.
        if word[0] != "@" or tag not in tags:
            continue
        answer = values[0].lower() if values else ""
        bad = f"has the tag @{tag} in line {line_number} without `true` or `false`"
        refuse(answer not in ("true", "false"), f"{bad}: add the value.")
        tags[tag] = answer == "true"
        if tag == "classlabel":
            classes = values[1:]
    return tags, classes


def _stamped_channels(body: str, at: str) -> list[list[str]]:
    """Return the values of ``(stamp,value),...:(stamp,value),...``."""
    channels = [part + ")" for part in body.split("):")]
    channels[-1] = channels[-1][:-1]
    wrong = any(_STAMPED.sub("", channel).strip() for channel in channels)
    none = f"declares time stamps but has none in the form (stamp,value) in {at}"
    refuse(wrong, f"{none}: correct the series or the header.")
    return [[value for _, value in _STAMPED.findall(channel)] for channel in channels]


_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
_NOMINAL_VALUE = re.compile(r"""'[^']*'|"[^"]*"|[^,]+""")
_RELATIONAL = re.compile(r"""(?:'([^']*)'|"([^"]*)")\s*(?:,(.*))?""")
_NUMERIC = ("numeric", "real", "integer")
_ARFF = "an archive ARFF file has numeric attributes"


def _parse_arff(content: bytes, labels: Labels) -> Parsed:
    r"""Parse rows ``value,value,label`` or, if relational, ``'channel\nchannel',label``."""
    head, rows = _split_at_data(content, "%", "ARFF")
    n_steps, relational, classes = _read_attributes(head)
    lacks = "class" if n_steps else "values"
    wrong = not n_steps or (classes is None and labels == "required")
    refuse(wrong, f"declares no {lacks} before @data: {_ARFF}, then the class.")

    def divide(row: str, at: str) -> tuple[str, list[list[str]]]:
        if relational:
            found = _RELATIONAL.fullmatch(row)
            if found is None or (found[3] is None) != (classes is None):
                form = r"'channel\nchannel'" + ("" if classes is None else ",label")
                raise DataError(f"does not give {at} in the form {form}: correct that row.")
            body, label = found[1] or found[2] or "", found[3]
        else:
            body, _, label = (row, "", "") if classes is None else row.rpartition(",")
        bodies = body.split("\\n") if relational else [body]
        channels = [channel.split(",") for channel in bodies]
        for n in map(len, channels):
            wrong = f"has the wrong number of values in {at}, {n} instead of the {n_steps}"
            cure = "complete or correct that row."
            refuse(n != n_steps, f"{wrong} that the header declares: {cure}")
        return label, channels

    series, written = _parse_rows(rows, divide)
    return Parsed(series) if classes is None else Parsed(series, written, classes)


def _read_attributes(
    head: Iterable[tuple[int, str]],
) -> tuple[int, bool, list[str] | None]:
    """Return the number of steps, whether they are relational, and the classes."""
    n_steps, relational, classes = 0, False, None
    inside = False  # between `@attribute ... relational` and `@end`
    for line_number, line in head:
        tag = line.split(maxsplit=1)[0].lower()
        if tag in ("@relation", "@end"):
            inside = inside and tag != "@end"
            continue
        attribute = _ATTRIBUTE.fullmatch(line)
        # Anything after the class would be read as the class.
        if attribute is None or classes is not None:
            wrong = f"has {line[:40]!r} in line {line_number}, which does not belong in its"
            raise DataError(f"{wrong} header: {_ARFF}, then the class.")
        kind = attribute[2].strip()
        if kind.lower() == "relational" and not n_steps and not relational:
            relational = inside = True
        elif kind.lower().startswith(_NUMERIC) and (inside or not relational):
            n_steps += 1
        elif kind.startswith("{") and kind.endswith("}") and not inside:
            classes = [value.strip() for value in _NOMINAL_VALUE.findall(kind[1:-1])]
        else:
            wrong = f"has an attribute of type {kind[:40]!r} in line {line_number}"
            raise DataError(f"{wrong}: {_ARFF}, then a class such as {{1,2}}.")
    return n_steps, relational, classes


def _parse_npz(content: bytes, labels: Labels) -> Parsed:
    arrays = load_arrays(content)
    needed = {"X", "y"} if labels == "required" else {"X"}
    has = f"holds the arrays {sorted(arrays)} but needs `{'` and `'.join(sorted(needed))}`"
    cure = "write it with write_npz or numpy.savez(path, X=X, y=y)."
    refuse(not needed <= set(arrays), f"{has}: {cure}")
    X, y, lengths = _cases(arrays["X"]), arrays.get("y"), arrays.get("lengths")
    if y is not None:
        _check_labels(y, len(X))
    if lengths is None:
        return Parsed(X, y)
    valid = lengths.shape == (len(X),) and lengths.dtype.kind in "iu"
    wanted = f"one whole number from 1 to {X.shape[-1]} for each of the {len(X)} series"
    wrong = not valid or np.any(lengths < 1) or np.any(lengths > X.shape[-1])
    refuse(wrong, f"has `lengths` that do not fit its `X`: there must be {wanted}.")
    cut = [one[:, :length] for one, length in zip(X, lengths, strict=True)]
    return Parsed(cut, y, unequal=True)


def _parse_npy(content: bytes, labels: Labels) -> Parsed:
    X = _cases(load_array(content))
    cure = "write both into one file with numpy.savez(path, X=X, y=y)."
    refuse(labels == "required", f"holds series without labels, like any .npy file: {cure}")
    return Parsed(X)


def _cases(X: NDArray[Any]) -> NDArray[np.float64]:
    """Return series as (n_cases, n_channels, n_steps)."""
    _check_numbers(X)
    n_channels = X.shape[1] if X.ndim == 3 else 1
    return X.astype(np.float64).reshape(len(X), n_channels, X.shape[-1])


def _check_numbers(X: Any, *, empty: bool = True) -> None:
    wrong = len(X.shape) not in (2, 3) or X.dtype.kind not in "fiu"
    wanted = "numbers of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps)."
    has = f"holds series of shape {X.shape} and type {X.dtype}: they must be {wanted}"
    refuse(wrong or (0 in X.shape and not empty), has)


def _check_labels(y: NDArray[Any], n_cases: int) -> None:
    has = f"has labels of shape {y.shape} and type {y.dtype} for {n_cases} series"
    wrong = y.shape != (n_cases,) or y.dtype.kind not in "iufUSb"
    refuse(wrong, f"{has}: there must be one number or string per series.")


def load_arrays(
    content: bytes, how: str = "greenfold.datasets.write_npz"
) -> dict[str, NDArray[Any]]:
    """Return all arrays of an ``.npz`` file; errors advise to write it with ``how``."""
    with readable(".npz without pickled objects", f"write it again with {how}"):
        archive = zipfile.ZipFile(io.BytesIO(content))
        names = {name.removesuffix(".npy"): name for name in archive.namelist()}
        return {key: _load(archive.read(name), name) for key, name in names.items()}


def load_array(content: bytes) -> NDArray[Any]:
    """Return the array of an ``.npy`` file."""
    with readable(".npy without pickled objects", "write it again with numpy.save"):
        return _load(content, "the array")


def _load(content: bytes, what: str) -> NDArray[Any]:
    # A damaged header can declare any shape, and NumPy would allocate it before noticing
    # that data are missing. Compare the size first.
    npy, stream = np.lib.format, io.BytesIO(content)
    first = npy.read_magic(stream) == (1, 0)
    read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if not 0 <= math.prod(shape) * dtype.itemsize <= len(content):
        raise ValueError(f"{what} is incomplete")
    stream.seek(0)
    return npy.read_array(stream, allow_pickle=False)


def write_npz(
    path: str | Path,
    X: ArrayLike | Sequence[NDArray[np.float64]],
    y: ArrayLike | None = None,
) -> None:
    """Write series and labels so that :func:`read_series` reads them back.

    The file holds the arrays ``X``, ``y`` and, for series of unequal length, ``lengths``:
    series i is ``X[i, ..., :lengths[i]]``. Nothing in it is pickled.

    Parameters
    ----------
    path : str or Path
        Path that ends in ``.npz``. An existing file is replaced in one step.
    X : array of shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        Series; for unequal lengths, a list of (n_channels, n_steps_i) arrays.
    y : array of shape (n_cases,), optional
        Labels; if omitted, the file holds no labels.
    """
    path = Path(path)
    must(path.suffix == ".npz", "path", "end in .npz", repr(str(path)))
    arrays: dict[str, NDArray[Any]] = {}
    if isinstance(X, list):
        series = [np.atleast_2d(np.asarray(one, dtype=np.float64)) for one in X]
        counts = sorted({len(one) for one in series})
        must(len(counts) == 1, "X", "have the same channels in all series", counts)
        arrays["lengths"] = np.array([one.shape[1] for one in series])
        X = np.full((len(series), len(series[0]), arrays["lengths"].max()), np.nan)
        for row, one in zip(X, series, strict=True):
            row[:, : one.shape[1]] = one
    arrays["X"] = np.asarray(X, dtype=np.float64)
    if y is not None:
        arrays["y"] = np.asarray(y)
        with naming("y"):
            _check_labels(arrays["y"], len(arrays["X"]))
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


class OpenedSeries:
    """Series in a file too large for memory, read slice by slice.

    Attributes
    ----------
    path : str
    shape : tuple of int
        (n_cases, n_steps) or (n_cases, n_channels, n_steps).
    dtype : numpy dtype
    chunks : tuple of int or None
        Shape of the chunks in which the file stores the series.
    """

    def __init__(self, path: str, source: Any) -> None:
        self.path, self._source = path, source
        self.shape = tuple(int(n) for n in source.shape)
        self.dtype = np.dtype(source.dtype)
        chunks = getattr(source, "chunks", None)
        self.chunks = None if not chunks else tuple(int(n) for n in chunks)
        _check_numbers(self, empty=False)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Return the series of a slice, as an array in memory."""
        try:
            return np.asarray(self._source[rows])
        except (IndexError, TypeError):
            raise
        except Exception as error:  # from any of the libraries
            what = f"`{self.path}` cannot be read ({reason(error)}): write it again."
            raise DataError(what) from error

    def __repr__(self) -> str:
        return f"OpenedSeries({self.path!r}, shape={self.shape}, dtype={self.dtype})"


# Each function opens a file and returns its series, to be read in slices, and its labels.


def _open_npy(path: Path, X: str, y: str) -> tuple[Any, Any]:
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def _open_group(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Open two arrays of an HDF5 file or a Zarr group."""
    if path.suffix.lower() == ".zarr":
        with needs("Zarr", "zarr"):
            group = import_module("zarr").open_group(str(path), mode="r")
    else:
        with needs("HDF5", "hdf5"):
            group = import_module("h5py").File(path, "r")
    names = sorted(group)
    if X not in names or not hasattr(group[X], "shape"):
        raise DataError(f"holds {names} but no array `{X}`: name the series with `X`.")
    return group[X], group[y][:] if y in names else None


def _open_parquet(path: Path, X: str, y: str) -> tuple[Any, Any]:
    """Open a table: a column of labels, and a column of lists or one column per step."""
    with needs("Parquet", "parquet"):
        table = import_module("pyarrow.parquet").ParquetFile(path)
    names = table.schema_arrow.names
    series = _ParquetTable(table, [X] if X in names else [n for n in names if n != y])
    if y not in names:
        return series, None
    column = table.read(columns=[y]).column(0)
    refuse(column.null_count, f"has missing labels in its column `{y}`: fill them.")
    return series, column.to_numpy()


class _ParquetTable:
    """Columns of a Parquet file as a matrix; consecutive slices take one pass in total."""

    def __init__(self, table: Any, columns: list[str]) -> None:
        self._table, self._columns = table, columns
        sizes = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
        self._edges = np.cumsum([0, *sizes])
        head = self._matrix(next(table.iter_batches(batch_size=1, columns=columns)))
        self.shape, self.dtype = (table.metadata.num_rows, head.shape[1]), head.dtype
        self.chunks = (max(sizes), head.shape[1]) if sizes else None
        # Position of the reader: the next row, the rest of a block, and further blocks.
        self._next, self._left, self._blocks = -1, head[:0], iter(())

    def _matrix(self, batch: Any) -> NDArray[Any]:
        columns = batch.columns
        if any(column.null_count for column in columns):
            raise ValueError("values are missing; fill or drop them")
        if len(columns) == 1 and hasattr(columns[0], "flatten"):
            values = columns[0].flatten().to_numpy(zero_copy_only=False)
            if len(columns[0]) and len(values) % len(columns[0]):
                raise ValueError("its series are of unequal length")
            return values.reshape(len(columns[0]), -1)
        return np.stack([one.to_numpy(zero_copy_only=False) for one in columns], axis=1)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, step = rows.indices(self.shape[0])
        if start >= stop:
            return np.empty((0, self.shape[1]), self.dtype)
        if start != self._next:
            group = int(np.searchsorted(self._edges, start, side="right")) - 1
            batches = self._table.iter_batches(
                batch_size=stop - start,
                row_groups=list(range(group, len(self._edges) - 1)),
                columns=self._columns,
            )
            self._left, self._blocks = self._left[:0], map(self._matrix, batches)
            for _ in self._read_on(start - int(self._edges[group])):
                pass
        found = np.concatenate(list(self._read_on(stop - start)))
        self._next = stop
        return found[::step]

    def _read_on(self, n_rows: int) -> Iterator[NDArray[Any]]:
        """Yield the next rows, in blocks."""
        while n_rows:
            block = self._left if len(self._left) else next(self._blocks)
            if block.shape[1] != self.shape[1]:
                raise ValueError("its series are of unequal length")
            yield block[:n_rows]
            self._left, n_rows = block[n_rows:], max(0, n_rows - len(block))


class _Format(NamedTuple):
    parse: Callable[..., Parsed] | None = None
    open: Callable[[Path, str, str], tuple[Any, Any]] | None = None
    labelled: bool = True


_FORMATS = {
    ".ts": _Format(_parse_ts),
    ".tsv": _Format(_parse_table),
    ".txt": _Format(_parse_table),
    ".csv": _Format(_parse_table),
    ".arff": _Format(_parse_arff),
    ".npz": _Format(_parse_npz),
    ".npy": _Format(_parse_npy, _open_npy, labelled=False),
    ".h5": _Format(open=_open_group),
    ".hdf5": _Format(open=_open_group),
    ".zarr": _Format(open=_open_group),
    ".parquet": _Format(open=_open_parquet),
}

#: Suffixes of formats that are read whole and hold labels, the preferred one first.
SUFFIXES = tuple(s for s, one in _FORMATS.items() if one.parse and one.labelled)
#: Values of `format` in `read_series`.
FORMATS = tuple(s[1:] for s, one in _FORMATS.items() if one.parse)
#: Suffixes of formats that do not say whether there are labels.
TABLES = tuple(s for s, one in _FORMATS.items() if one.parse is _parse_table)
#: Suffixes of formats that are read in slices.
OPENED = tuple(s for s, one in _FORMATS.items() if one.open)


def read_series(
    path: Source,
    *,
    missing: Missing = "error",
    labels: Labels = "required",
    format: str | None = None,
    n_steps: int | None = None,
    classes: Iterable[Any] = (),
    label_column: int | str | None = None,
) -> tuple[Collection, Any]:
    r"""Read time series from one file; its suffix names the format.

    Parameters
    ----------
    path : str, Path or binary stream
        ``.tsv``, ``.txt`` and ``.csv`` are tables with one series per line. The label comes
        first (UCR archive) or in the column that the first line names ``label``, ``class``,
        ``target`` or ``y``. ``.ts`` is the format of sktime and aeon, evenly sampled;
        ``.arff`` is that of Weka in the two forms of the archives; ``.npz`` is that of
        :func:`write_npz`; ``.npy`` holds series without labels. Each file may be gzipped
        (``.ts.gz``).
    missing : {"error", "keep", "trim"}, default "error"
        How to treat missing values. ``"error"`` raises an error that says where they are,
        and ``"keep"`` leaves NaN in their place. ``"trim"`` cuts off missing values at the
        end of a series as padding (as in ``.tsv`` and ``.arff`` of the archives); other
        missing values remain an error.
    labels : {"required", "optional", "none"}, default "required"
        Whether every series needs a label, a series may lack one (``.npz`` without ``y``,
        ``@classLabel false``, ARFF without a class, ``?``), or labels are ignored. With
        ``"optional"``, a header or labels that are not numbers show whether a table has
        labels. Otherwise, `n_steps` decides, and then `classes`: values that are all
        classes are labels, and values that are neither classes nor whole numbers are not.
    format : str, optional
        ``"ts"``, ``"csv"`` and so on; for a stream, or to override the suffix.
    n_steps, classes : int, iterable, optional
        Length and classes of the series, if known; used for tables.
    label_column : int or str, optional
        Column of the labels in a table: a number from 0, a negative number from the end, a
        name in the first line, ``"first"`` or ``"last"``.

    Returns
    -------
    X : ndarray or list of ndarrays, float64
        Shape (n_cases, n_steps) for one channel and (n_cases, n_channels, n_steps) for
        several; for unequal lengths, a list of (n_channels, n_steps_i) arrays.
    y : ndarray of shape (n_cases,) or None
        Class labels: integers if all are whole numbers (``1``, ``1.0`` and ``1e0`` are the
        same class), and strings otherwise. They do not depend on the file format. With
        ``labels="optional"``, y is None if there are no labels, and an array of objects
        with None for missing labels if some are missing.

    Raises
    ------
    DataError, FileNotFoundError
        If there is no file, or its content does not match its suffix; `MissingValueError`
        if it has missing values that `missing` does not allow.

    Examples
    --------
    >>> import io
    >>> from greenfold.datasets import read_series
    >>> X, y = read_series(io.BytesIO(b"1.0\t0.5\t0.6\n2.0\t0.1\t0.2\n"), format="tsv")
    >>> X.shape, y.tolist()
    ((2, 2), [1, 2])
    """
    known = {"n_steps": n_steps, "classes": classes, "label_column": label_column}
    return read_with_origin(path, missing, labels, format, **known)[:2]


def read_with_origin(
    path: Source,
    missing: Missing = "error",
    labels: Labels = "required",
    format: str | None = None,
    **known: Any,
) -> tuple[Collection, Any, bool]:
    """Return what `read_series` does, and whether a column of numbers was taken as labels.

    A header, labels of another type or ``label_column`` would distinguish labels from
    values.
    """
    suffix = suffix_of(path, format)
    what = f"the suffix {suffix!r}" if format is None else f"the format {format!r}"
    cure = f"use one of .{', .'.join(FORMATS)}, or name the format with `format`."
    none = f"`{name_of(path)}` has {what}, which has no reader: {cure}"
    refuse(suffix[1:] not in FORMATS, none)
    for argument, value, kinds in ("missing", missing, Missing), ("labels", labels, Labels):
        wanted = "be {!r}, {!r} or {!r}".format(*get_args(kinds))
        must(value in get_args(kinds), argument, wanted, repr(value))
    if suffix in TABLES:
        known = {"n_steps": None, "classes": (), "label_column": None, **known}
    else:
        only = f"is for tables ({', '.join(TABLES)}), not for {suffix}"
        given = known.get("label_column") is not None
        refuse(given, f"`label_column` {only}; leave it out.")
        known = {}
    parse: Any = _FORMATS[suffix].parse
    name, content = read_bytes(path)
    with naming(name):
        found = parse(content, labels, **known)
        y = None if labels == "none" else found.labels
        if y is not None and found.classes is not None:
            y = canonical_labels(y, declared=found.classes, labels=labels)
        return _assemble(found, missing), y, found.assumed


def open_series(
    path: str | Path, labels: Any = None, *, X: str = "X", y: str = "y"
) -> tuple[OpenedSeries, NDArray[Any] | None]:
    """Open a file of series of equal length that may not fit into memory.

    Parameters
    ----------
    path : str or Path
        ``.npy`` is mapped into memory. ``.h5``, ``.hdf5`` (extra ``greenfold[hdf5]``) and
        ``.zarr`` (extra ``greenfold[zarr]``) hold two arrays. ``.parquet`` (extra
        ``greenfold[parquet]``) holds a table with a column of labels and the series, either
        as one column of lists or as all other columns, with one column per step.
    labels : array_like or path, optional
        Labels, or the path of an ``.npy`` file of labels, if they are not in the file
        itself.
    X, y : str
        Names of the series and of the labels in the file.

    Returns
    -------
    X : OpenedSeries
        The series; slices are read from the file on access.
    y : ndarray (n_cases,) or None
        Labels, read at once; None if there are none.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from greenfold.datasets import open_series
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "X.npy")
    ...     np.save(path, np.zeros((5, 3)))
    ...     X, y = open_series(path, labels=[0, 1, 0, 1, 1])
    ...     X[1:3].shape, y.tolist()
    ((2, 3), [0, 1, 0, 1, 1])
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"`{path}` does not exist: pass the path of a data file.")
    if isinstance(labels, str | Path):
        name, content = read_bytes(labels)
        with naming(name):
            labels = load_array(content)
    opener = _FORMATS.get(path.suffix.lower(), _Format()).open
    with naming(path):
        if opener is None:
            has = f"has the suffix {path.suffix!r}, which cannot be read in slices"
            raise DataError(f"{has}: use one of {', '.join(OPENED)}, or read_series.")
        with readable(path.suffix):
            source, found = opener(path, X, y)
        series = OpenedSeries(str(path), source)
        if labels is None and found is None:
            return series, None
        written = np.asarray(found if labels is None else labels)
        if written.dtype.kind == "O":  # text from HDF5 and Parquet
            text = (
                s.decode(errors="replace") if hasattr(s, "decode") else s for s in written
            )
            written = np.array(list(text))
        _check_labels(written, len(series))
        return series, canonical_labels(written)
