r"""ARFF as the UCR and UEA archives use it.

Univariate: one numeric attribute a time step, the class last. Multivariate: one
relational attribute that holds the channels, separated by the two characters ``\n`` in a
quoted field, then the class.

`scipy.io.arff` reads both forms and is the judge in the tests, but is not used: it drops
surplus values of a row without a word, refuses the label ``1.0`` for a class declared as
``1`` and every label outside ASCII, and cannot say which series is at fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .parsing import (
    Collection,
    Labels,
    Missing,
    Source,
    assemble,
    canonical_labels,
    check_label_policy,
    check_missing_policy,
    parse_values,
    read_lines,
)

__all__ = ["read_arff"]

_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
_NOMINAL_VALUE = re.compile(r"""'[^']*'|"[^"]*"|[^,]+""")
_NUMERIC = ("numeric", "real", "integer")


@dataclass
class _Header:
    """How many steps a row holds, and which classes there are."""

    n_steps: int = 0
    relational: bool = False
    has_class: bool = False
    classes: list[str] = field(default_factory=list)


def read_arff(
    path: Source, *, missing: Missing = "error", labels: Labels = "required"
) -> tuple[Collection, Any]:
    """Read an ARFF file of the UCR or UEA archive, univariate or relational.

    Parameters
    ----------
    path : str, Path or binary stream
    missing : {"error", "keep", "trim"}, default "error"
        See :func:`greenfold.datasets.read_series`. The archive pads series of unequal
        length with ``?``; ``"trim"`` cuts them.
    labels : {"required", "optional", "none"}, default "required"
        Whether the class may be missing, from the header or from series (``?``).

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
    y : ndarray of shape (n_cases,) or None
        Integers if all labels are whole numbers, else strings.

    Raises
    ------
    DataError
        If the file is not such an ARFF file, or has missing values that `missing` does
        not allow.
    FileNotFoundError
        If there is no such file.
    """
    check_missing_policy(missing)
    check_label_policy(labels)
    name, lines = read_lines(path)
    header, start = _read_header(name, lines, labels)
    split = _split_relational if header.relational else _split_flat
    series: list[NDArray[np.float64]] = []
    written: list[str] = []
    for line in lines[start:]:
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        case = len(series)
        channels, label = split(line, header.has_class, name, case)
        for tokens in channels:
            if len(tokens) != header.n_steps:
                raise DataError(
                    f"`{name}` has the wrong number of values in series {case} (counting "
                    f"from 0), {len(tokens)} instead of the {header.n_steps} that the "
                    "header declares: complete or correct that row."
                )
        series.append(np.stack([parse_values(t, path=name, case=case) for t in channels]))
        written.append(label)
    y: NDArray[Any] | None = None
    if header.has_class:
        y = canonical_labels(written, path=name, declared=header.classes, labels=labels)
    return assemble(series, y, path=name, missing=missing)


def _read_header(path: str, lines: list[str], labels: Labels) -> tuple[_Header, int]:
    """Declared shape and classes, and the index of the first line of data."""
    header = _Header()
    inside = False  # between `@attribute ... relational` and `@end`
    for number, line in enumerate(lines):
        line = line.strip()
        tag = line.split(maxsplit=1)[0].lower() if line else ""
        if not line or tag.startswith("%") or tag == "@relation":
            continue
        if tag == "@data":
            wanting = labels == "required" and not header.has_class
            if wanting or not header.n_steps:
                raise DataError(
                    f"`{path}` declares no {'class' if header.n_steps else 'values'} "
                    "before @data: an archive ARFF file has numeric attributes, then the "
                    "class."
                )
            return header, number + 1
        if tag == "@end":
            inside = False
            continue
        attribute = _ATTRIBUTE.fullmatch(line)
        # Whatever follows the class would be read as the class.
        if attribute is None or header.has_class:
            raise DataError(
                f"`{path}` has {line[:40]!r} in line {number + 1}, which does not belong "
                "in the header of an archive ARFF file: numeric attributes, then the class."
            )
        kind = attribute[2].strip()
        if kind.lower() == "relational" and not header.n_steps and not header.relational:
            header.relational = inside = True
        elif kind.lower().startswith(_NUMERIC) and (inside or not header.relational):
            header.n_steps += 1
        elif (kind.startswith("{") and kind.endswith("}")) and not inside:
            header.classes = [value.strip() for value in _NOMINAL_VALUE.findall(kind[1:-1])]
            header.has_class = True
        else:
            raise DataError(
                f"`{path}` has an attribute of type {kind[:40]!r} in line {number + 1}: an "
                "archive ARFF file has numeric attributes, then a class such as {1,2}."
            )
    raise DataError(f"`{path}` has no @data tag: is it a complete ARFF file?")


def _split_flat(
    line: str, has_class: bool, path: str, case: int
) -> tuple[list[list[str]], str]:
    """Fields of ``value,value,...,label``, or without the label."""
    del path, case
    if not has_class:
        return [line.split(",")], ""
    body, _, label = line.rpartition(",")
    return [body.split(",")], label


def _split_relational(
    line: str, has_class: bool, path: str, case: int
) -> tuple[list[list[str]], str]:
    r"""Fields of ``'value,value\nvalue,value',label``, one list a channel."""
    quote = line[0]
    body, closing, rest = line[1:].partition(quote)
    rest = rest.lstrip()
    follows = rest.startswith(",") if has_class else not rest
    if quote not in "'\"" or not closing or not follows:
        form = r"'channel\nchannel'" + (",label" if has_class else "")
        raise DataError(
            f"`{path}` does not have series {case} (counting from 0) in the form {form}: "
            "complete or correct that row."
        )
    return [channel.split(",") for channel in body.split("\\n")], rest[1:]
