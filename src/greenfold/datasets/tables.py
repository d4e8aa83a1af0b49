"""Tables of one series per line: ``.tsv``, ``.txt`` and ``.csv``.

They do not say what their columns are; a header or the values show which column is labels.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

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

_LABEL = {"label", "labels", "class", "classes", "target", "y", "class_label", "classlabel"}
#: From this number of series on, labels that are all different cannot be class labels.
_ALONE = 6
_INDEX = {"index", "id", "unnamed: 0", "case", "case_id"}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBERED = re.compile(r"(.*\D)(\d+)", re.DOTALL | re.ASCII)


def parse_table(
    content: bytes,
    labels: Labels,
    n_steps: int | None,
    classes: Iterable[object],
    label_column: int | str | None,
) -> Parsed:
    """Parse one univariate series per line; shorter lines count as padded."""
    lines = [line.strip(" ") for line in lines_of(content) if line.strip()]
    unquoted = re.sub('"[^"]*"', "", lines[0]) if lines else ""
    separator = next((s for s in "\t;," if s in unquoted), None)
    rows = [_fields(line, separator) for line in lines]
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
        none = f"has series {case} (counting from 0) without values"
        cure = "separate the label and the values by tabs, commas or blanks."
        refuse_data(not fields, f"{none}: {cure}")
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
    missing = field.casefold() in MISSING_VALUES or DECIMAL_COMMA.fullmatch(field)
    return not missing and number(field) is None


def _counts(fields: Sequence[str]) -> bool:
    """Return whether the fields count up by one, from 0 or 1."""
    return any(list(fields) == [str(i + k) for i in range(len(fields))] for k in (0, 1))


def _label_column(
    rows: Sequence[list[str]],
    header: _Header,
    labels: Labels,
    n_steps: int | None,
    classes: Iterable[object],
) -> int | None:
    """Return the column of the labels, or None."""
    if labels == "none" or not rows:
        return None
    if header.label is not None:
        return header.label
    if header.all_values or header.identifier is not None:
        cure = "name it with `label_column`, or call it label"
        refuse_data(labels == "required", f"names no column as labels: {cure}.")
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
    try:
        return range(width)[int({"first": 0, "last": -1}.get(str(wanted), wanted))]
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
    refuse_data(alone, f"{each}, taken from its {end} column: {cure}.")
