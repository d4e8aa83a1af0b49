"""The ``.ts`` format of sktime and aeon: header tags, then ``channel:channel:label``."""

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

__all__ = ["read_ts"]

# One "(time stamp,value)" pair; stamps may hold colons and blanks, values hold neither.
_STAMPED = re.compile(r"\(([^()]*),([^(),]*)\)\s*,?")


@dataclass
class _Header:
    """The tags that decide how the data are read; defaults as in aeon.

    The other tags (dimensions, series length, …) repeat what the data say themselves,
    and are wrong in several files of the archive.
    """

    timestamps: bool = False
    univariate: bool = True
    equallength: bool = True
    classlabel: bool = True
    targetlabel: bool = False
    classes: list[str] = field(default_factory=list)


def read_ts(
    path: Source, *, missing: Missing = "error", labels: Labels = "required"
) -> tuple[Collection, Any]:
    """Read a ``.ts`` file.

    Parameters
    ----------
    path : str, Path or binary stream
    missing : {"error", "keep", "trim"}, default "error"
        See :func:`greenfold.datasets.read_series`.
    labels : {"required", "optional", "none"}, default "required"
        Whether ``@classLabel false`` and labels that are missing are allowed.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list of (n_channels, n_steps_i) arrays if the header declares unequal lengths.
    y : ndarray of shape (n_cases,) or None
        Integers if all labels are whole numbers, else strings in the case the file has
        (aeon turns them to lower case); floats if the header declares a regression
        target.

    Raises
    ------
    DataError
        If the file is not a labelled ``.ts`` file, or has missing values that `missing`
        does not allow.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    Time stamps are dropped: the series are taken as evenly sampled.
    """
    check_missing_policy(missing)
    check_label_policy(labels)
    name, lines = read_lines(path)
    header, start = _read_header(name, lines, labels)
    series: list[NDArray[np.float64]] = []
    labelled = header.classlabel or header.targetlabel
    written: list[str] = []
    for line in lines[start:]:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        body, colon, label = line.rpartition(":") if labelled else (line, ":", "")
        if not colon:
            raise DataError(
                f"`{name}` has no label after a colon in series {len(series)} (counting "
                "from 0): is the file complete?"
            )
        split = _stamped_channels if header.timestamps else _plain_channels
        series.append(_series(split(body), header, name, len(series)))
        written.append(label)
    _check_lengths(series, header, name)
    y: NDArray[Any] | None = None
    if header.targetlabel and labels != "none":
        y = np.array(
            [parse_values([one], path=name, case=i)[0] for i, one in enumerate(written)]
        )
    elif labelled:
        y = canonical_labels(written, path=name, declared=header.classes, labels=labels)
    return assemble(series, y, path=name, missing=missing, unequal=not header.equallength)


def _read_header(path: str, lines: list[str], labels: Labels) -> tuple[_Header, int]:
    """Header tags, and the index of the first line of data."""
    header = _Header()
    for number, line in enumerate(lines):
        line = line.strip()
        if not line.startswith("@"):
            continue  # comments; not all files of the archive mark them with a #
        name, *values = line.split()
        tag = name[1:].lower()
        if tag == "data":
            if labels == "required" and not (header.classlabel or header.targetlabel):
                raise DataError(
                    f"`{path}` declares no class labels, which are needed here: add a "
                    "`@classLabel true ...` tag and the labels."
                )
            return header, number + 1
        if tag in ("timestamps", "univariate", "equallength", "classlabel", "targetlabel"):
            answer = values[0].lower() if values else ""
            if answer not in ("true", "false"):
                raise DataError(
                    f"`{path}` has the tag @{tag} in line {number + 1} without `true` or "
                    "`false` after it: add the value."
                )
            setattr(header, tag, answer == "true")
            if tag == "classlabel":
                header.classes = values[1:]
    raise DataError(f"`{path}` has no @data tag: is it a complete .ts file?")


def _plain_channels(body: str) -> list[list[str]]:
    return [channel.split(",") for channel in body.split(":")]


def _stamped_channels(body: str) -> list[list[str]] | None:
    """Values of ``(stamp,value),...:(stamp,value),...``; None if it is anything else."""
    channels = [part + ")" for part in body.split("):")]
    channels[-1] = channels[-1][:-1]
    if any(_STAMPED.sub("", channel).strip() for channel in channels):
        return None
    return [[value for _, value in _STAMPED.findall(channel)] for channel in channels]


def _series(
    channels: list[list[str]] | None, header: _Header, path: str, case: int
) -> NDArray[np.float64]:
    """One series of shape (n_channels, n_steps) from its fields."""
    if channels is None:
        raise DataError(
            f"`{path}` declares time stamps but has none in the form (stamp,value) in "
            f"series {case} (counting from 0): correct the series or the header."
        )
    if header.univariate and len(channels) > 1:
        raise DataError(
            f"`{path}` declares univariate series but has {len(channels)} channels in "
            f"series {case} (counting from 0): correct the series or the header."
        )
    lengths = [len(channel) for channel in channels]
    if len(set(lengths)) > 1:
        raise DataError(
            f"`{path}` has channels of {min(lengths)} to {max(lengths)} steps in series "
            f"{case} (counting from 0): the channels of a series need the same length."
        )
    return np.stack([parse_values(channel, path=path, case=case) for channel in channels])


def _check_lengths(series: list[NDArray[np.float64]], header: _Header, path: str) -> None:
    if not header.equallength:
        return
    for case, one in enumerate(series):
        if one.shape[1] != series[0].shape[1]:
            raise DataError(
                f"`{path}` declares equal lengths but has {one.shape[1]} steps in series "
                f"{case} and {series[0].shape[1]} in series 0: complete the file, or "
                "declare `@equalLength false`."
            )
