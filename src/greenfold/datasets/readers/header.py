"""Whether the first line of a table names its columns, and what the names say.

A line is a header only where no series could be meant: it names every column, or numbers
them as spreadsheet programs and pandas do. A mistyped number in the first series must not
make that series disappear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from greenfold.datasets.errors import DataError
from greenfold.datasets.readers.collection import MISSING_TOKENS
from greenfold.datasets.readers.labels import bare

__all__ = ["Header", "split_header"]

_LABEL = {"label", "labels", "class", "classes", "target", "y", "class_label", "classlabel"}
_INDEX = {"index", "id", "unnamed: 0", "case", "case_id"}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBERED = re.compile(r"(.*?)(\d+)", re.DOTALL | re.ASCII)


@dataclass(frozen=True)
class Header:
    """What the names of the columns say.

    Attributes
    ----------
    label : int or None
        The column that is named as one of labels.
    index : int or None
        The column that numbers the series, which is neither a label nor a value.
    all_values : bool
        The first column carries on the numbering of the others (t0, t1, …), so that it
        holds values and no labels.
    """

    label: int | None = None
    index: int | None = None
    all_values: bool = False


def split_header(
    rows: Sequence[list[str]], name: str
) -> tuple[Header | None, Sequence[list[str]]]:
    """The header, if there is one, and the rows below it.

    Parameters
    ----------
    rows : sequence of lists of str
        The fields of every line.
    name : str
        The file, for the error messages.
    """
    if not rows or not _is_header(rows[0], rows[1:]):
        return None, rows
    names, body = [bare(field).casefold() for field in rows[0]], rows[1:]
    width = max((len(row) for row in body), default=0)
    if not body:
        raise DataError(
            f"`{name}` has a line with the names of columns and no series below it: is the "
            "file complete?"
        )
    if width == len(names) + 1:  # R leaves the column of row names without one
        names = ["", *names]
    if width > len(names):
        raise DataError(
            f"`{name}` names {len(names)} columns in its first line but has {width} values "
            "in a line below: name every column, or remove the first line."
        )
    labels = [i for i, one in enumerate(names) if one in _LABEL]
    if len(labels) > 1:
        raise DataError(
            f"`{name}` names {len(labels)} columns as labels, "
            f"{' and '.join(repr(names[i]) for i in labels)}: keep one of them."
        )
    label = labels[0] if labels else None
    index = 0 if names[0] in _INDEX or (names[0] == "" and label is not None) else None
    return Header(label, index, label is None and _carries_on(names)), body


def _is_header(first: list[str], others: Sequence[list[str]]) -> bool:
    fields = [bare(field) for field in first]
    special = [
        i
        for i, field in enumerate(fields)
        if field.casefold() in _LABEL | _INDEX or (i == 0 and not field)
    ]
    rest = [field for i, field in enumerate(fields) if i not in special]
    if len(fields) < 2 or not rest:
        return False
    if all(_is_word(field) for field in rest):
        return True
    if special:
        return len(rest) > 1 and _counts(rest)
    # Written as whole numbers, while there are others below: numbers of columns.
    fractions = any(
        not _WHOLE.fullmatch(bare(field)) for row in others for field in row[1:]
    )
    if not fractions or len(fields) < 3:
        return False
    if _is_word(fields[0]):
        known = {bare(row[0]) for row in others}
        return _counts(fields[1:]) and fields[0] not in known
    return _counts(fields)


def _is_word(field: str) -> bool:
    """Whether a field is neither a number nor a missing value."""
    if not field or field.casefold() in MISSING_TOKENS:
        return False
    try:
        float(field)
    except ValueError:
        return True
    return False


def _counts(fields: Sequence[str]) -> bool:
    """Whether the fields count up by one, from 0 or 1."""
    return any(list(fields) == [str(i + k) for i in range(len(fields))] for k in (0, 1))


def _carries_on(names: Sequence[str]) -> bool:
    """Whether the first two names are t0 and t1, or the like; bare numbers say nothing."""
    if len(names) < 2:
        return False
    first, second = (_NUMBERED.fullmatch(name) for name in names[:2])
    return bool(
        first
        and second
        and first[1]
        and first[1] == second[1]
        and int(first[2]) + 1 == int(second[2])
    )
