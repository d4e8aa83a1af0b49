"""Tables, one series a line: the UCR archive's ``.tsv`` and ``.txt``, and ``.csv``.

Whether the first line of a table names its columns, and what the names say.

A line is a header only where no series could be meant: it names every column, or numbers
them as spreadsheet programs and pandas do. A mistyped number in the first series must not
make that series disappear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .parsing import (
    MISSING_TOKENS,
    Collection,
    Labels,
    Missing,
    Source,
    assemble,
    bare,
    canonical_labels,
    check_label_policy,
    check_missing_policy,
    parse_values,
    read_lines,
)

__all__ = ["Header", "read_table", "split_header"]


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


def read_table(
    path: Source,
    *,
    missing: Missing = "error",
    labels: Labels = "required",
    n_steps: int | None = None,
    classes: Iterable[Any] = (),
) -> tuple[Collection, Any]:
    """Read a table with one univariate series a line, the class label first.

    The separator (tab, comma or blanks) is taken from the first line. A line shorter
    than the longest one counts as padded with missing values, as in the 2018 UCR
    archive: nothing else tells a short series from a file cut off in transfer.

    A first line with names of columns is recognised; a column that it calls ``label``,
    ``class``, ``target`` or ``y`` holds the labels, wherever it stands, and an ``index``
    or ``id`` is left out.

    Parameters
    ----------
    path : str, Path or binary stream
    missing : {"error", "keep", "trim"}, default "error"
        See :func:`greenfold.datasets.read_series`.
    labels : {"required", "optional", "none"}, default "required"
        With ``"none"`` the first value of a line is one of the series. With
        ``"optional"``, a header or labels that are no numbers decide; then `n_steps`;
        then `classes`: values that are all classes are labels, values that are neither
        classes nor whole numbers are not. Where nothing decides, that is an error.
    n_steps : int, optional
        Length of the series, where it is known.
    classes : iterable, optional
        The labels, where they are known.

    Returns
    -------
    X : ndarray of shape (n_cases, n_steps), or list of (1, n_steps_i) arrays
    y : ndarray of shape (n_cases,) or None
        Integers if all labels are whole numbers, else strings; see
        :func:`greenfold.datasets.read_series` for labels that are missing.

    Raises
    ------
    DataError
        If the file does not hold such a table, or has missing values that `missing`
        does not allow, or it cannot be told whether it has labels.
    FileNotFoundError
        If there is no such file.
    """
    check_missing_policy(missing)
    check_label_policy(labels)
    name, lines = read_lines(path)
    header, rows = split_header(_fields(lines), name)
    width = max((len(row) for row in rows), default=0)
    column = _label_column(rows, header, labels, (n_steps, classes), name)
    left_out = {column, header.index if header else None}
    if header and header.label is not None:
        left_out.add(header.label)
    keep = [i for i in range(width) if i not in left_out]
    values: list[NDArray[np.float64]] = []
    for case, row in enumerate(rows):
        if not any(i < len(row) for i in keep):
            raise DataError(
                f"`{name}` has a line for series {case} (counting from 0) without "
                "values: each line needs the label and then the values, separated by "
                "tabs, commas or blanks."
            )
        try:
            one = parse_values([row[i] for i in keep if i < len(row)], path=name, case=case)
        except DataError as error:
            if case or header:
                raise
            raise DataError(
                f"{str(error).rstrip('.')} (a first line with the names of columns must "
                "name them all)."
            ) from None
        values.append(np.pad(one, (0, len(keep) - len(one)), constant_values=np.nan))
    y = None
    if column is not None:
        written = [row[column] if column < len(row) else "" for row in rows]
        y = canonical_labels(written, path=name, labels=labels)
    return assemble([one[np.newaxis] for one in values], y, path=name, missing=missing)


def _fields(lines: Iterable[str]) -> list[list[str]]:
    """The fields of every line that is not empty."""
    full = [stripped for line in lines if (stripped := line.strip(" \r")).strip()]
    separator = next((s for s in "\t," if full and s in full[0]), None)
    return [line.split(separator) for line in full]


def _label_column(
    rows: Sequence[list[str]],
    header: Header | None,
    labels: Labels,
    known: tuple[int | None, Iterable[Any]],
    name: str,
) -> int | None:
    """Which column holds the labels; None if none does."""
    if labels == "none" or not rows:
        return None
    if header and header.label is not None:
        return header.label
    if header and (header.all_values or header.index is not None):
        if labels == "required":
            raise DataError(
                f"`{name}` names no column as labels in its first line: call that column "
                "`label`."
            )
        return None
    if labels == "required":
        return 0
    first = [bare(row[0]) for row in rows]
    given = [one for one in first if one.lower() not in MISSING_TOKENS]
    numbers = [_number(one) for one in given]
    if None in numbers:
        return 0
    n_steps, classes = known
    width = max(len(row) for row in rows)
    if n_steps is not None and width in (n_steps, n_steps + 1):
        return 0 if width == n_steps + 1 else None
    names = {_number(str(one)) for one in classes} - {None}
    if not given or (names and set(numbers) <= names):
        return 0
    if any(number is not None and not number.is_integer() for number in numbers):
        return None
    expected = "" if n_steps is None else f", for series of {n_steps} steps"
    raise DataError(
        f"`{name}` has {width} values a line{expected}, and it cannot be told whether the "
        "first is a label: pass labels='required' if it is, or labels='none' if not."
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
