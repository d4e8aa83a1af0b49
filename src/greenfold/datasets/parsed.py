"""Series and labels as every reader returns them, and the errors about wrong files.

A reader turns the content of a file into `Parsed`. `assemble` checks and shapes its series,
and `canonical_labels` spells its labels, so that both are the same for every format. Errors
are raised without the name of the file, which `naming` adds.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._base.messages import Argument, Part, Refusal


class DataError(Refusal):
    """A data file, archive or array does not hold what it should."""


class MissingValueError(DataError):
    """A data file has missing values that `missing` does not allow.

    Attributes
    ----------
    positions : ndarray of shape (n_missing, 3) or None
        Series, channel and time step of every missing value, counted from 0.
    """

    # Pickling calls the class with the message alone and restores the attribute later.
    def __init__(self, *parts: Part, positions: NDArray[np.intp] | None = None) -> None:
        super().__init__(*parts)
        self.positions = positions


#: One array for equal lengths; a list of (n_channels, n_steps_i) arrays for unequal ones.
SeriesArrays: TypeAlias = NDArray[np.float64] | list[NDArray[np.float64]]
#: Options for labels and missing values; see `read_series`.
Labels: TypeAlias = Literal["required", "optional", "none"]
Missing: TypeAlias = Literal["error", "keep", "trim"]

MISSING_VALUES = {"", "?", "nan", "na"}
MISSING_LABELS = MISSING_VALUES - {"na"}  # "na" may be a class
#: Names of a column of labels, of times, and of columns that only number the series.
LABEL_NAMES = {"label", "labels", "class", "classes", "target", "y"}
LABEL_NAMES |= {"class_label", "classlabel"}
TIME_NAMES = {"time", "t", "timestamp", "time_stamp", "date", "datetime", "timepoint"}
TIME_NAMES |= {"time_point", "step", "time_step", "timestep", "frame", "time_id"}
ROW_NAMES = {"index", "id", "unnamed: 0", "case", "case_id", "__index_level_0__"}

# float() also takes "1_0", "nan" and "infinity", which are names rather than numbers.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Above 2**53, float64 no longer distinguishes neighbouring whole numbers.
_EXACT = 2.0**53
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)


class Parsed(NamedTuple):
    """The content of one file, as its parser found it."""

    #: Arrays of shape (n_channels, n_steps_i), NaN for a missing value.
    series: SeriesArrays
    #: Labels as in the file; None if the file has no labels.
    labels: Sequence[str] | NDArray[Any] | None = None
    #: Classes declared in the header; None if the labels are regression targets.
    classes: Sequence[str] | None = ()
    #: Whether unequal lengths are declared: X is then a list even if the lengths agree, so
    #: that both splits of a data set have the same form.
    unequal: bool = False
    #: The column that was taken for labels because of its position, or "".
    origin: str = ""
    #: The form of a table, where names of its columns decided about it, or "".
    layout: str = ""


def refuse_data(wrong: object, *parts: Part) -> None:
    """Raise a `DataError` if ``wrong``; its message does not name the file."""
    if wrong:
        raise DataError(*parts)


@contextmanager
def naming(name: str | Path) -> Iterator[None]:
    """Add the name of the file in front of errors."""
    try:
        yield
    except DataError as error:
        error.args = (f"`{name}` ", *error.args)
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
    """Return another library's first sentence, to use in the middle of one of ours."""
    said = " ".join(str(error).split()).partition(". ")[0]
    return said[:120].rstrip(".") or type(error).__name__


def text_of(
    content: bytes, encoding: str | None = None, *, how: Argument | None = None
) -> str:
    """Return text with plain line ends; ``how`` is the argument that names an encoding."""
    # A byte order mark, which spreadsheet programs write, names the encoding.
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode(encoding or ("utf-16" if marked else "utf-8-sig"))
    except LookupError:
        unknown = f"cannot be read as {encoding!r}, which is no known encoding."
        raise DataError(unknown) from None
    except UnicodeError as error:
        name = encoding or ("UTF-16" if marked else "UTF-8")
        known = isinstance(error, UnicodeDecodeError)
        place = f" (byte {error.start} cannot be read)" if known else ""
        other = "" if how is None else (", or name its encoding with ", how)
        cure = "convert it or fetch it again"
        raise DataError(f"is not text in {name}{place}: {cure}", *other, ".") from error
    zero = "has zero bytes, as UTF-16 without a byte order mark has: convert it to UTF-8"
    if "\0" in text:
        other = "" if how is None else (", or give ", Argument(how.name, "utf-16"))
        raise DataError(zero, *other, ".")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def lines_of(content: bytes) -> list[str]:
    """Return the lines of a text, without line ends."""
    # splitlines() would also break at form feeds and other rare characters.
    return text_of(content).split("\n")


def number(text: str) -> float | None:
    """Return the number in a text, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def _advice(channel: int, step: int, field: str) -> tuple[Part, ...]:
    if DECIMAL_COMMA.fullmatch(field):
        return ("write decimal points in place of commas",)
    return ("correct the value, or write `?` if it is missing",)


def parse_values(
    channels: Sequence[list[str]],
    where: str,
    advise: Callable[[int, int, str], tuple[Part, ...]] = _advice,
) -> NDArray[np.float64]:
    """Return values (n_channels, n_steps) of a series, with NaN for missing fields.

    ``advise`` returns what to do about the field of a channel and step.
    """
    # NumPy, like Python, reads "1_0" as ten; in a data file it is a mistake.
    if not any("_" in "".join(fields) for fields in channels):
        with suppress(ValueError):
            return np.array(channels, dtype=np.float64)
    values = np.full((len(channels), len(channels[0])), np.nan)
    for channel, fields in enumerate(channels):
        for step, field in enumerate(one.strip() for one in fields):
            value = None if "_" in field else number(field)
            if value is not None:
                values[channel, step] = value
            elif field.lower() not in MISSING_VALUES:
                place = f"in {where}, position {step} (counting from 0)"
                wrong = f"has {field[:40]!r} instead of a number {place}: "
                raise DataError(wrong, *advise(channel, step, field), ".")
    return values


def assemble(found: Parsed, missing: Missing) -> SeriesArrays:
    """Check the series of one file and return them in their final shape."""
    series = found.series
    refuse_data(not len(series), "holds no series: is it the right, complete file?")
    n_channels = len(series[0])
    for case, one in enumerate(series):
        other = f"has {len(one)} channels in series {case} but {n_channels} in series 0"
        wrong = len(one) != n_channels
        refuse_data(wrong, f"{other}: every series needs the same channels.")
    if len(infinite := _locate(np.isinf, series)):
        where, cure = _place(infinite[0]), "correct it, or write `?` if it is missing"
        raise DataError(f"has an infinite value in {where}: {cure}.")
    if missing == "trim":
        series = [_trim(one) for one in series]
    for case, one in enumerate(series):
        empty = f"has no value at all in series {case} (counting from 0)"
        refuse_data(not one.size, f"{empty}: remove that series.")
    if missing != "keep" and len(positions := _locate(np.isnan, series)):
        n, where = len(positions), _place(positions[0])
        what = "1 missing value," if n == 1 else f"{n} missing values, the first"
        cure: Part = " or leave the series out"
        if not any(np.isnan(_trim(one)).any() for one in series):
            unequal = " if the series have unequal lengths"
            cure = (", or use ", Argument("missing", "trim"), unequal)
        keep = (", or use ", Argument("missing", "keep"), " to keep NaN")
        step = int(positions[0, 2])
        if n >= len(series) > 1 and {*positions[:, 2].tolist()} == {step}:
            cure = (", or leave out this position of every series with ", Argument("drop"))
        problem = f"has {what} in {where}: fill them"
        raise MissingValueError(problem, cure, keep, ".", positions=positions)
    if found.unequal or len({one.shape[1] for one in series}) > 1:
        return list(series)
    X = np.asarray(series)
    return X[:, 0, :] if n_channels == 1 else X


def _place(position: NDArray[np.intp]) -> str:
    case, channel, step = position
    return f"series {case}, channel {channel}, position {step} (counting from 0)"


def _locate(test: np.ufunc, series: SeriesArrays) -> NDArray[np.intp]:
    """Return series, channel and step of every value that passes a test, (n, 3)."""
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
    known = [name.lower() not in MISSING_LABELS for name in names]
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
    if all(map(_NUMBER.fullmatch, [*given, *classes])):
        values = np.array([*given, *classes], dtype=np.float64)
        y = values[: len(given)]
        whole = np.all((values == np.rint(values)) & (np.abs(values) < _EXACT))
        y = y.astype(np.int64) if whole else np.array(list(map(repr, y.tolist())))
    if all(known):
        return y
    filled = np.full(len(names), None, dtype=object)
    filled[known] = y.tolist()
    return filled if given else None


def _key(name: str) -> float | str:
    """Return a key that is equal for all spellings of one class."""
    return float(name) if _NUMBER.fullmatch(name) else name.casefold()
