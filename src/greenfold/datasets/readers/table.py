"""Tables, one series a line: the UCR archive's ``.tsv`` and ``.txt``, and ``.csv``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenfold.datasets.errors import DataError
from greenfold.datasets.readers.collection import (
    MISSING_TOKENS,
    Collection,
    Missing,
    assemble,
    check_missing_policy,
    parse_values,
)
from greenfold.datasets.readers.content import Source, read_lines
from greenfold.datasets.readers.header import Header, split_header
from greenfold.datasets.readers.labels import (
    Labels,
    bare,
    canonical_labels,
    check_label_policy,
)

__all__ = ["read_table"]


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
