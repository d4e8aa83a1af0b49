"""Formats of text: tables, ``.ts`` of sktime and aeon, and ARFF of Weka.

Tables do not say what their columns are; a header or the values show which one is labels.
The tests check our ARFF reader against `scipy.io.arff`. The library does not use SciPy's
reader, which silently drops surplus values of a row, reads ``1_0`` as ten, and cannot say
which series is wrong.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.messages import Argument
from .parsed import (
    DECIMAL_COMMA,
    MISSING_VALUES,
    DataError,
    Labels,
    Parsed,
    bare,
    lines_of,
    number,
    parse_values,
    refuse_data,
)

# Tables

_LABEL = {"label", "labels", "class", "classes", "target", "y", "class_label", "classlabel"}
#: From this number of series on, labels that are all different cannot be class labels.
_ALONE = 6
_COLUMN = Argument("label_column")
_INDEX = {"index", "id", "unnamed: 0", "case", "case_id"}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBERED = re.compile(r"(.*\D)(\d+)", re.DOTALL | re.ASCII)


class TableHints(NamedTuple):
    """What is known about a table in advance; see `read_series`."""

    n_steps: int | None = None
    classes: Iterable[object] = ()
    label_column: int | str | None = None


def parse_table(content: bytes, labels: Labels, known: TableHints) -> Parsed:
    """Parse one univariate series per line; shorter lines count as padded."""
    lines = [line.strip(" ") for line in lines_of(content) if line.strip()]
    unquoted = re.sub('"[^"]*"', "", lines[0]) if lines else ""
    separator = next((s for s in "\t;," if s in unquoted), None)
    rows = [_fields(line, separator) for line in lines]
    header, assumed = _read_header(rows), False
    names, rows = (rows[0], rows[1:]) if header else ([], rows)
    width = max((len(row) for row in rows), default=0)
    if known.label_column is not None and labels != "none":
        column = _column_of(known.label_column, names, width)
    else:
        column = _label_column(rows, header or _Header(), labels, known)
        if labels == "required" and (header is None or header.label is None):
            found = [bare(row[-1 if column else 0]) for row in rows]
            alone = column is not None and len(found) >= _ALONE
            each = f"has {len(rows)} series with {len(rows)} different labels"
            taken = f"taken from its {'last' if column else 'first'} column"
            cure = f"{each}, {taken}: name the column of the labels with "
            wrong = alone and len({*found}) == len(found)
            refuse_data(wrong, cure, _COLUMN, ", such as last.")
            assumed = column == 0 and not any(map(_is_word, found))
    if column and column == width - 1 and not header:
        # The label ends every line, including the lines of shorter series.
        rows, column = [[row[-1], *row[:-1]] for row in rows], 0
    left_out = {column, *(header or ())[:2]}
    kept = [i for i in range(width) if i not in left_out]
    values = np.full((len(rows), 1, len(kept)), np.nan)
    for case, row in enumerate(rows):
        fields = [row[i] for i in kept if i < len(row)]
        cure = "separate the label and the values by tabs, commas or blanks."
        none = f"has series {case} (counting from 0) without values: {cure}"
        refuse_data(not fields, none)
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


def _fields(line: str, separator: str | None) -> list[str]:
    if separator is None or '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True))


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
    refuse_data(not width, "names columns but has no series below: is the file complete?")
    if width == len(names) + 1:  # R leaves the column of row names unnamed
        names = ["", *names]
    more = f"names {len(names)} columns in its first line but has {width} values in a line"
    cure = "name every column, or remove the first line."
    refuse_data(width > len(names), f"{more} below: {cure}")
    labels = [i for i, name in enumerate(names) if name in _LABEL]
    named = " and ".join(repr(names[i]) for i in labels)
    many = f"names {len(labels)} columns as labels, {named}: keep one."
    refuse_data(len(labels) > 1, many)
    if labels:
        return _Header(labels[0], 0 if names[0] in _INDEX | {""} else None)
    # Check for names such as t0 and t1; bare numbers say nothing.
    one, two = (_NUMBERED.fullmatch(name) for name in names[:2])
    carries_on = one and two and one[1] == two[1] and int(one[2]) + 1 == int(two[2])
    return _Header(None, 0 if names[0] in _INDEX else None, bool(carries_on))


def _is_header(first: list[str], others: Sequence[list[str]]) -> bool:
    fields = [bare(field) for field in first]
    given = fields if fields[0] else fields[1:]
    plain = [field for field in given if field.casefold() not in _LABEL | _INDEX]
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
    missing = field.casefold() in MISSING_VALUES or DECIMAL_COMMA.fullmatch(field)
    return not missing and number(field) is None


def _counts(fields: Sequence[str]) -> bool:
    """Return whether the fields count up by one, from 0 or 1."""
    return any(list(fields) == [str(i + k) for i in range(len(fields))] for k in (0, 1))


def _label_column(
    rows: Sequence[list[str]], header: _Header, labels: Labels, known: TableHints
) -> int | None:
    """Return the column of the labels, or None."""
    if labels == "none" or not rows:
        return None
    if header.label is not None:
        return header.label
    if header.all_values or header.identifier is not None:
        cure = "names no column as labels: name it with ", _COLUMN, ", or call it label."
        refuse_data(labels == "required", *cure)
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
    n_steps = known.n_steps
    if n_steps is not None and width in (n_steps, n_steps + 1):
        return 0 if width == n_steps + 1 else None
    classes = {number(str(one)) for one in known.classes} - {None}
    if not numbers or (classes and set(numbers) <= classes):
        return 0
    if any(value is not None and not value.is_integer() for value in numbers):
        return None
    expected = "" if n_steps is None else f", for series of {n_steps} steps"
    raise DataError(
        f"has {width} values per line{expected}, and it is not clear whether the first is "
        "a label: use ",
        Argument("labels", "required"),
        " if it is, or ",
        Argument("labels", "none"),
        " if not.",
    )


def _column_of(wanted: int | str, names: Sequence[str], width: int) -> int:
    """Return the index of a column given by number or name."""
    known = [bare(name) for name in names]
    if wanted in known:
        return known.index(str(wanted))
    try:
        return range(width)[int({"first": 0, "last": -1}.get(str(wanted), wanted))]
    except (ValueError, IndexError):
        cure = f"give a number from 0 to {width - 1}, first, last or a name"
        none = f"has no column {wanted!r} for the labels: {cure} from its first line."
        raise DataError(none) from None


# Files whose header describes the data


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


# A "(time stamp,value)" pair; only time stamps may contain colons and blanks.
_STAMPED = re.compile(r"\(([^()]*),([^(),]*)\)\s*,?")


def parse_ts(content: bytes, labels: Labels) -> Parsed:
    """Parse a ``.ts`` file; drop time stamps, and keep the case of labels, unlike aeon."""
    head, rows = _split_at_data(content, "#", ".ts")
    tags, classes = _read_tags(head)
    labelled = tags["classlabel"] or tags["targetlabel"]
    undeclared = "declares no class labels: add a `@classLabel true ...` tag."
    refuse_data(labels == "required" and not labelled, undeclared)

    series, written = list[NDArray[np.float64]](), list[str]()
    for case, row in enumerate(rows):
        at = f"series {case} (counting from 0)"
        body, colon, label = row.rpartition(":") if labelled else (row, ":", "")
        refuse_data(not colon, f"has no label after a colon in {at}: is the file complete?")
        plain = (channel.split(",") for channel in body.split(":"))
        channels = _stamped_channels(body, at) if tags["timestamps"] else list(plain)
        many = f"declares univariate series but has {len(channels)} channels in {at}"
        cure = "correct the series or the header."
        refuse_data(tags["univariate"] and len(channels) > 1, f"{many}: {cure}")
        short, long = min(map(len, channels)), max(map(len, channels))
        differ = f"has channels of {short} to {long} steps in {at}"
        cure = "the channels of a series need the same length."
        refuse_data(short != long, f"{differ}: {cure}")
        series.append(parse_values(channels, f"series {case}"))
        written.append(label)
        n_steps = series[0].shape[1]
        differ = f"has {long} steps in series {case} and {n_steps} in series 0"
        cure = "complete it, or declare `@equalLength false`."
        wrong = tags["equallength"] and long != n_steps
        refuse_data(wrong, f"declares equal lengths but {differ}: {cure}")
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
        refuse_data(answer not in ("true", "false"), f"{bad}: add the value.")
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
    refuse_data(wrong, f"{none}: correct the series or the header.")
    return [[value for _, value in _STAMPED.findall(channel)] for channel in channels]


_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
_NOMINAL_VALUE = re.compile(r"""'[^']*'|"[^"]*"|[^,]+""")
_RELATIONAL = re.compile(r"""(?:'([^']*)'|"([^"]*)")\s*(?:,(.*))?""")
_NUMERIC = ("numeric", "real", "integer")
_ARFF = "an archive ARFF file has numeric attributes"


def parse_arff(content: bytes, labels: Labels) -> Parsed:
    r"""Parse rows ``value,value,label`` or, if relational, ``'channel\nchannel',label``."""
    head, rows = _split_at_data(content, "%", "ARFF")
    n_steps, relational, classes = _read_attributes(head)
    lacks = "class" if n_steps else "values"
    wrong = not n_steps or (classes is None and labels == "required")
    refuse_data(wrong, f"declares no {lacks} before @data: {_ARFF}, then the class.")

    series, written = [], []
    for case, row in enumerate(rows):
        at = f"series {case} (counting from 0)"
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
            refuse_data(n != n_steps, f"{wrong} that the header declares: {cure}")
        series.append(parse_values(channels, f"series {case}"))
        written.append(label)
    return Parsed(series) if classes is None else Parsed(series, written, classes)


def _read_attributes(head: Iterable[tuple[int, str]]) -> tuple[int, bool, list[str] | None]:
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
