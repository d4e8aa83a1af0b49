"""Series as text: tables, the ``.ts`` format of sktime and aeon, and ARFF of Weka.

`scipy.io.arff` judges ours in the tests, but is not used: it drops surplus values of a row
without a word, reads ``1_0`` as ten, and cannot say which series is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .parsing import (
    MISSING_VALUES,
    Collection,
    DataError,
    Labels,
    Missing,
    Parsed,
    Source,
    bare,
    lines_of,
    number,
    parse_values,
    read,
    refuse,
)

_LABEL = {"label", "labels", "class", "classes", "target", "y", "class_label", "classlabel"}
_INDEX = {"index", "id", "unnamed: 0", "case", "case_id"}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBERED = re.compile(r"(.*\D)(\d+)", re.DOTALL | re.ASCII)


def read_table(
    path: Source,
    *,
    missing: Missing = "error",
    labels: Labels = "required",
    n_steps: int | None = None,
    classes: Iterable[Any] = (),
) -> tuple[Collection, Any]:
    """Read a table with one univariate series per line, the class label first.

    The separator (tab, comma or blanks) is taken from the first line. A line shorter
    than the longest one counts as padded with missing values, as in the 2018 UCR
    archive: nothing else tells a short series from a file cut off in transfer.

    A first line with names of columns is recognised; a column that it calls ``label``,
    ``class``, ``target`` or ``y`` holds the labels, wherever it stands, and an ``index``
    or ``id`` is left out.

    Parameters
    ----------
    path, missing
        As for :func:`greenfold.datasets.read_series`, and so are results and errors.
    labels : {"required", "optional", "none"}, default "required"
        With ``"none"`` the first value of a line is one of the series. With
        ``"optional"``, a header or labels that are no numbers decide; then `n_steps`;
        then `classes`: values that are all classes are labels, values that are neither
        classes nor whole numbers are not. Where nothing decides, that is an error.
    n_steps, classes : int, iterable, optional
        Length of the series and their labels, where they are known.
    """
    return read(path, _parse_table, missing, labels, n_steps=n_steps, classes=classes)


def _parse_table(
    content: bytes, labels: Labels, n_steps: int | None, classes: Iterable[Any]
) -> Parsed:
    lines = [line.strip(" ") for line in lines_of(content) if line.strip()]
    separator = next((s for s in "\t," if lines and s in lines[0]), None)
    rows = [line.split(separator) for line in lines]
    header = _read_header(rows)
    if header:
        rows = rows[1:]
    column = _label_column(rows, header or _Header(), labels, n_steps, classes)
    left_out = {column, *(header or ())[:2]}
    width = max((len(row) for row in rows), default=0)
    kept = [i for i in range(width) if i not in left_out]
    values = np.full((len(rows), 1, len(kept)), np.nan)
    for case, row in enumerate(rows):
        fields = [row[i] for i in kept if i < len(row)]
        if not fields:
            raise DataError(
                f"has series {case} (counting from 0) without values: separate the label "
                "and the values by tabs, commas or blanks."
            )
        try:
            values[case, :, : len(fields)] = parse_values([fields], f"series {case}")
        except DataError as error:
            if case or header:
                raise
            hint = "a first line with the names of columns must name them all"
            raise DataError(f"{str(error).rstrip('.')} ({hint}).") from None
    if column is None:
        return Parsed(values)
    return Parsed(values, [row[column] if column < len(row) else "" for row in rows])


class _Header(NamedTuple):
    """What the names of the columns say."""

    label: int | None = None
    identifier: int | None = None  # numbers the series: neither a label nor a value
    all_values: bool = False  # the first name carries on the numbering (t0, t1, …)


def _read_header(rows: Sequence[list[str]]) -> _Header | None:
    """What the first line says, if it is a header."""
    # It is one only where no series could be meant: it names every column, or numbers them
    # as pandas does. A mistyped number must not make the first series disappear.
    if not rows or not _is_header(rows[0], rows[1:]):
        return None
    names = [bare(field).casefold() for field in rows[0]]
    width = max((len(row) for row in rows[1:]), default=0)
    refuse(not width, "names columns and has no series below: is the file complete?")
    if width == len(names) + 1:  # R leaves the column of row names without one
        names = ["", *names]
    if width > len(names):
        raise DataError(
            f"names {len(names)} columns in its first line but has {width} values in a "
            "line below: name every column, or remove the first line."
        )
    labels = [i for i, name in enumerate(names) if name in _LABEL]
    if len(labels) > 1:
        named = " and ".join(repr(names[i]) for i in labels)
        raise DataError(f"names {len(labels)} columns as labels, {named}: keep one.")
    if labels:
        return _Header(labels[0], 0 if names[0] in _INDEX | {""} else None)
    return _Header(None, 0 if names[0] in _INDEX else None, _carries_on(*names[:2]))


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
    # Written as whole numbers, while there are others below: numbers of columns.
    fractions = any(
        not _WHOLE.fullmatch(bare(field)) for row in others for field in row[1:]
    )
    if not fractions or len(fields) < 3:
        return False
    if _is_word(fields[0]):
        return _counts(fields[1:]) and fields[0] not in {bare(row[0]) for row in others}
    return _counts(fields)


def _is_word(field: str) -> bool:
    """Whether a field is neither a number nor a missing value."""
    return field.casefold() not in MISSING_VALUES and number(field) is None


def _counts(fields: Sequence[str]) -> bool:
    """Whether the fields count up by one, from 0 or 1."""
    return any(list(fields) == [str(i + k) for i in range(len(fields))] for k in (0, 1))


def _carries_on(first: str, second: str) -> bool:
    """Whether two names are t0 and t1, or the like; bare numbers say nothing."""
    one, two = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(second)
    return bool(one and two and one[1] == two[1] and int(one[2]) + 1 == int(two[2]))


def _label_column(
    rows: Sequence[list[str]],
    header: _Header,
    labels: Labels,
    n_steps: int | None,
    classes: Iterable[Any],
) -> int | None:
    """Which column holds the labels; None if none does."""
    if labels == "none" or not rows:
        return None
    if header.label is not None:
        return header.label
    if header.all_values or header.identifier is not None:
        cure = "names no column as labels: call that column `label`."
        refuse(labels == "required", cure)
        return None
    if labels == "required":
        return 0
    first = [bare(row[0]) for row in rows]
    numbers = [number(one) for one in first if one.lower() not in MISSING_VALUES]
    if None in numbers:
        return 0
    width = max(len(row) for row in rows)
    if n_steps is not None and width in (n_steps, n_steps + 1):
        return 0 if width == n_steps + 1 else None
    known = {number(str(one)) for one in classes} - {None}
    if not numbers or (known and set(numbers) <= known):
        return 0
    if any(value is not None and not value.is_integer() for value in numbers):
        return None
    expected = "" if n_steps is None else f", for series of {n_steps} steps"
    raise DataError(
        f"has {width} values a line{expected}, and it cannot be told whether the first is "
        "a label: pass labels='required' if it is, or labels='none' if not."
    )


def _split_at_data(
    content: bytes, comment: str, kind: str
) -> tuple[list[tuple[int, str]], list[str]]:
    """Numbered lines of the header, and lines of data; neither blank nor comments."""
    numbered = enumerate((line.strip() for line in lines_of(content)), start=1)
    full = [(n, line) for n, line in numbered if line and line[0] != comment]
    for i, (_, line) in enumerate(full):
        if line.split(maxsplit=1)[0].lower() == "@data":
            return full[:i], [line for _, line in full[i + 1 :]]
    raise DataError(f"has no @data tag: is it a complete {kind} file?")


def _parse_rows(
    rows: list[str], divide: Callable[[str, str], tuple[str, list[list[str]]]]
) -> tuple[list[Any], list[str]]:
    """Values and labels of rows; ``divide(row, where)`` gives a label and channels."""
    series, labels = [], []
    for case, row in enumerate(rows):
        label, channels = divide(row, f"series {case} (counting from 0)")
        series.append(parse_values(channels, f"series {case}"))
        labels.append(label)
    return series, labels


# One "(time stamp,value)" pair; stamps may hold colons and blanks, values hold neither.
_STAMPED = re.compile(r"\(([^()]*),([^(),]*)\)\s*,?")


def read_ts(
    path: Source, *, missing: Missing = "error", labels: Labels = "required"
) -> tuple[Collection, Any]:
    """Read a ``.ts`` file.

    Parameters, results and errors are those of :func:`greenfold.datasets.read_series`.
    Time stamps are dropped: the series are taken as evenly sampled. ``X`` is a list if the
    header declares unequal lengths. Labels that are text keep the case of the file (aeon
    turns them to lower case); they are floats if the header declares a regression target.
    """
    return read(path, _parse_ts, missing, labels)


def _parse_ts(content: bytes, labels: Labels) -> Parsed:
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
        if tags["univariate"] and len(channels) > 1:
            raise DataError(
                f"declares univariate series but has {len(channels)} channels in {at}: "
                "correct the series or the header."
            )
        lengths = [len(channel) for channel in channels]
        if min(lengths) != max(lengths):
            raise DataError(
                f"has channels of {min(lengths)} to {max(lengths)} steps in {at}: the "
                "channels of a series need the same length."
            )
        return label, channels

    series, written = _parse_rows(rows, divide)
    for case, one in enumerate(series):
        n_steps, expected = one.shape[1], series[0].shape[1]
        if tags["equallength"] and n_steps != expected:
            raise DataError(
                f"declares equal lengths but has {n_steps} steps in series {case} and "
                f"{expected} in series 0: complete it, or declare `@equalLength false`."
            )
    unequal = not tags["equallength"]
    if tags["targetlabel"]:
        targets = [parse_values([[y]], f"series {i}").item() for i, y in enumerate(written)]
        return Parsed(series, np.array(targets), None, unequal)
    return Parsed(series, written if labelled else None, classes, unequal)


def _read_tags(head: Iterable[tuple[int, str]]) -> tuple[dict[str, bool], list[str]]:
    """The tags that decide how the data are read, and the classes; defaults as in aeon."""
    # The other tags repeat what the data say, and are wrong in files of the archive.
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
        if answer not in ("true", "false"):
            where = f"the tag @{tag} in line {line_number}"
            raise DataError(f"has {where} without `true` or `false`: add the value.")
        tags[tag] = answer == "true"
        if tag == "classlabel":
            classes = values[1:]
    return tags, classes


def _stamped_channels(body: str, at: str) -> list[list[str]]:
    """Values of ``(stamp,value),...:(stamp,value),...``."""
    channels = [part + ")" for part in body.split("):")]
    channels[-1] = channels[-1][:-1]
    if any(_STAMPED.sub("", channel).strip() for channel in channels):
        raise DataError(
            f"declares time stamps but has none in the form (stamp,value) in {at}: correct "
            "the series or the header."
        )
    return [[value for _, value in _STAMPED.findall(channel)] for channel in channels]


_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
_NOMINAL_VALUE = re.compile(r"""'[^']*'|"[^"]*"|[^,]+""")
_RELATIONAL = re.compile(r"""(?:'([^']*)'|"([^"]*)")\s*(?:,(.*))?""")
_NUMERIC = ("numeric", "real", "integer")


def read_arff(
    path: Source, *, missing: Missing = "error", labels: Labels = "required"
) -> tuple[Collection, Any]:
    """Read an ARFF file of the UCR or UEA archive, univariate or relational.

    Parameters, results and errors are those of :func:`greenfold.datasets.read_series`. The
    archive pads series of unequal length with ``?``; ``missing="trim"`` cuts them.
    """
    return read(path, _parse_arff, missing, labels)


def _parse_arff(content: bytes, labels: Labels) -> Parsed:
    r"""Rows are ``value,value,label``, or ``'channel\nchannel',label`` if relational."""
    head, rows = _split_at_data(content, "%", "ARFF")
    n_steps, relational, classes = _read_attributes(head)
    if not n_steps or (classes is None and labels == "required"):
        raise DataError(
            f"declares no {'class' if n_steps else 'values'} before @data: an archive ARFF "
            "file has numeric attributes, then the class."
        )

    def divide(row: str, at: str) -> tuple[str, list[list[str]]]:
        if relational:
            found = _RELATIONAL.fullmatch(row)
            if found is None or (found[3] is None) != (classes is None):
                form = r"'channel\nchannel'" + ("" if classes is None else ",label")
                raise DataError(f"does not have {at} in the form {form}: correct that row.")
            body, label = found[1] or found[2] or "", found[3]
        else:
            body, _, label = (row, "", "") if classes is None else row.rpartition(",")
        bodies = body.split("\\n") if relational else [body]
        channels = [channel.split(",") for channel in bodies]
        for channel in channels:
            if len(channel) != n_steps:
                raise DataError(
                    f"has the wrong number of values in {at}, {len(channel)} instead of "
                    f"the {n_steps} that the header declares: complete or correct that row."
                )
        return label, channels

    series, written = _parse_rows(rows, divide)
    return Parsed(series) if classes is None else Parsed(series, written, classes)


def _read_attributes(
    head: Iterable[tuple[int, str]],
) -> tuple[int, bool, list[str] | None]:
    """Number of steps, whether they are in a relational attribute, classes if declared."""
    n_steps, relational, classes = 0, False, None
    inside = False  # between `@attribute ... relational` and `@end`
    for line_number, line in head:
        tag = line.split(maxsplit=1)[0].lower()
        if tag in ("@relation", "@end"):
            inside = inside and tag != "@end"
            continue
        attribute = _ATTRIBUTE.fullmatch(line)
        # Whatever follows the class would be read as the class.
        if attribute is None or classes is not None:
            raise DataError(
                f"has {line[:40]!r} in line {line_number}, which does not belong in the "
                "header of an archive ARFF file: numeric attributes, then the class."
            )
        kind = attribute[2].strip()
        if kind.lower() == "relational" and not n_steps and not relational:
            relational = inside = True
        elif kind.lower().startswith(_NUMERIC) and (inside or not relational):
            n_steps += 1
        elif kind.startswith("{") and kind.endswith("}") and not inside:
            classes = [value.strip() for value in _NOMINAL_VALUE.findall(kind[1:-1])]
        else:
            raise DataError(
                f"has an attribute of type {kind[:40]!r} in line {line_number}: an archive "
                "ARFF file has numeric attributes, then a class such as {1,2}."
            )
    return n_steps, relational, classes
