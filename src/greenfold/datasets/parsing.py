"""What all readers share: numbers checked, one pair ``(X, y)`` out.

What stands in a file or comes from a stream, unpacked where it is compressed.

One spelling for class labels, whatever the file format wrote.

The archives write the class "1" as ``1``, ``1.0`` or ``  1.0000000e+00`` depending on
the format, so that labels kept as text would not compare equal between two files of the
same data set. The rule here is the same for every format:

* all labels are whole numbers: an ``int64`` array;
* all labels are numbers, some not whole: strings, each in Python's shortest spelling
  (strings, because scikit-learn takes fractional numbers for a regression target);
* anything else: strings as written, stripped of surrounding blanks and quotes.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import DataError, MissingValueError

__all__ = [
    "MISSING_TOKENS",
    "Collection",
    "Labels",
    "Missing",
    "Source",
    "assemble",
    "bare",
    "canonical_labels",
    "check_label_policy",
    "check_missing_policy",
    "name_of",
    "parse_values",
    "read_bytes",
    "read_lines",
]


Labels: TypeAlias = Literal["required", "optional", "none"]
"""What is asked of the labels; see :func:`greenfold.datasets.read_series`."""

# float() also takes "1_0", "nan" and "infinity", which are names rather than numbers.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MISSING = {"", "?", "nan"}
# Above 2**53 a float64 no longer tells neighbouring whole numbers apart.
_EXACT = 2.0**53


def check_label_policy(labels: str) -> None:
    """Reject a `labels` argument that is none of the three policies."""
    if labels not in ("required", "optional", "none"):
        raise ValueError(
            f"`labels` must be 'required', 'optional' or 'none'; got {labels!r} instead."
        )


def canonical_labels(
    written: Sequence[str],
    *,
    path: str,
    declared: Sequence[str] = (),
    labels: Labels = "required",
) -> NDArray[Any] | None:
    """Class labels as one array, spelled alike for every file format.

    Parameters
    ----------
    written : sequence of str, length n_cases
        The labels as the file has them.
    path : str
        The file, for the error messages.
    declared : sequence of str, optional
        The classes that the file's header announces. A label outside them is an error;
        they also take part in the choice between integers and strings, so that both
        splits of a data set come out in the same type.
    labels : {"required", "optional", "none"}, default "required"
        Whether a label may be missing (``?``, ``NaN`` or nothing).

    Returns
    -------
    ndarray of shape (n_cases,) or None
        ``int64`` if all labels are whole numbers, else strings. If only some are missing,
        an array of objects with None in their place; None alone if all are, or if
        `labels` is ``"none"``.
    """
    if labels == "none":
        return None
    names = [bare(label) for label in written]
    known = [case for case, name in enumerate(names) if name.lower() not in _MISSING]
    if len(known) < len(names) and labels == "optional":
        if not known:
            return None
        y = np.full(len(names), None, dtype=object)
        given = canonical_labels([names[i] for i in known], path=path, declared=declared)
        y[known] = [] if given is None else given.tolist()
        return y
    for case, name in enumerate(names):
        if name.lower() in _MISSING:
            raise DataError(
                f"`{path}` has no class label for series {case} (counting from 0): "
                "add the label or remove the series."
            )
    classes = [bare(label) for label in declared]
    if classes:
        allowed = {_key(name) for name in classes}
        for case, name in enumerate(names):
            if _key(name) not in allowed:
                raise DataError(
                    f"`{path}` gives series {case} (counting from 0) the label "
                    f"{name[:40]!r}, which its header does not declare: correct the "
                    "label or the list of classes in the header."
                )
    if not all(_NUMBER.fullmatch(name) for name in [*names, *classes]):
        return np.array(names, dtype=np.str_)
    numbers = [float(name) for name in [*names, *classes]]
    if all(number.is_integer() and abs(number) < _EXACT for number in numbers):
        return np.array(numbers[: len(names)]).astype(np.int64)
    return np.array([repr(number) for number in numbers[: len(names)]], dtype=np.str_)


def bare(label: str) -> str:
    """Label without surrounding blanks and without one pair of quotes."""
    label = label.strip()
    if len(label) >= 2 and label[0] == label[-1] and label[0] in "'\"":
        label = label[1:-1].strip()
    return label


def _key(name: str) -> float | str:
    """What two spellings of one class have in common."""
    return float(name) if _NUMBER.fullmatch(name) else name.casefold()


Source: TypeAlias = str | Path | BinaryIO
"""The path of a file, or a stream of bytes such as ``sys.stdin.buffer``."""

_GZIP = b"\x1f\x8b"


def name_of(source: Source) -> str:
    """What messages call the source."""
    if isinstance(source, str | Path):
        return str(source)
    name: Any = getattr(source, "name", None)
    return name if isinstance(name, str) else "stream"


def read_bytes(source: Source) -> tuple[str, bytes]:
    """Name and content; what gzip has compressed is unpacked, whatever it is called."""
    name = name_of(source)
    if isinstance(source, str | Path):
        _refuse_no_file(source)
        content = Path(source).read_bytes()
    else:
        content = source.read()
    # No text and neither of NumPy's formats begins with these two bytes.
    return name, _unpack(content, name) if content.startswith(_GZIP) else content


def _refuse_no_file(path: str | Path) -> None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"`{path}` does not exist: give the path of a data file."
        ) from None
    if stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise FileNotFoundError(
            f"`{path}` is a directory, not a file: give the path of a data file."
        )
    try:
        given = os.path.samestat(found, os.fstat(0))
    except OSError:
        given = False
    if not given:  # /dev/stdin may be anything, others (/dev/zero) never end
        raise DataError(
            f"`{path}` is neither a file nor a pipe: give the path of a data file."
        )


def _unpack(content: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(content)
    except EOFError:
        raise DataError(
            f"`{name}` is compressed by gzip and ends early: fetch or write it again."
        ) from None
    except (OSError, zlib.error) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(
            f"`{name}` is compressed by gzip and damaged ({reason}): fetch or write it "
            "again."
        ) from error


def read_lines(source: Source) -> tuple[str, list[str]]:
    """Name of the source, and its lines as UTF-8 without their ends."""
    name, content = read_bytes(source)
    try:
        # utf-8-sig: spreadsheet programs put a byte order mark in front.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"`{name}` is not text in UTF-8 (byte {error.start} cannot be read): "
            "convert it or fetch it again."
        ) from error
    # Not splitlines(), which also breaks at form feeds and other rare characters.
    return name, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


Collection: TypeAlias = NDArray[np.float64] | list[NDArray[np.float64]]
"""Equal lengths: one array; unequal lengths: a list of (n_channels, n_steps_i) arrays."""

Missing: TypeAlias = Literal["error", "keep", "trim"]

MISSING_TOKENS = {"", "?", "nan", "na"}


def check_missing_policy(missing: str) -> None:
    """Reject a `missing` argument that is none of the three policies."""
    if missing not in ("error", "keep", "trim"):
        raise ValueError(
            f"`missing` must be 'error', 'keep' or 'trim'; got {missing!r} instead."
        )


def parse_values(tokens: list[str], *, path: str, case: int) -> NDArray[np.float64]:
    """Numbers of one channel, NaN where the file has a missing value.

    Parameters
    ----------
    tokens : list of str, length n_steps
        One field each; ``?``, ``NaN``, ``NA`` and an empty field are missing values.
    path, case : str, int
        File and series (counted from 0), for the error messages.

    Returns
    -------
    ndarray of shape (n_steps,)
    """
    try:
        values = np.array(tokens, dtype=np.float64)
    except ValueError:
        values = np.array(
            [_parse_value(t, path, case, step) for step, t in enumerate(tokens)],
            dtype=np.float64,
        )
    # NumPy, like Python, reads "1_0" as ten; in a data file it is a mistake.
    if any("_" in token for token in tokens):
        step = next(i for i, token in enumerate(tokens) if "_" in token)
        raise _not_a_number(tokens[step], path, case, step)
    return values


def _parse_value(token: str, path: str, case: int, step: int) -> float:
    token = token.strip()
    if token.lower() in MISSING_TOKENS:
        return np.nan
    try:
        return float(token)
    except ValueError:
        raise _not_a_number(token, path, case, step) from None


def _not_a_number(token: str, path: str, case: int, step: int) -> DataError:
    return DataError(
        f"`{path}` has {token[:40]!r} instead of a number in series {case}, position "
        f"{step} (counting from 0): correct the value, or write `?` if it is missing."
    )


def assemble(
    series: Sequence[NDArray[np.float64]],
    y: NDArray[Any] | None,
    *,
    path: str,
    missing: Missing,
    unequal: bool = False,
) -> tuple[Collection, Any]:
    """Check the series of one file and bring them into their final shape.

    Parameters
    ----------
    series : sequence of n_cases ndarrays of shape (n_channels, n_steps_i)
        NaN marks a missing value.
    y : ndarray of shape (n_cases,), or None
    path : str
        The file, for the error messages.
    missing : {"error", "keep", "trim"}
        See :func:`greenfold.datasets.read_series`.
    unequal : bool, default False
        The file declares unequal lengths: return a list even if the lengths happen to
        agree, so that both splits of a data set come out in the same form.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
    y : as given
    """
    if not series:
        raise DataError(f"`{path}` holds no series: is it the right file, and complete?")
    n_channels = series[0].shape[0]
    for case, one in enumerate(series):
        if one.shape[0] != n_channels:
            raise DataError(
                f"`{path}` has {one.shape[0]} channels in series {case} but "
                f"{n_channels} in series 0: every series needs the same channels."
            )
        if np.isinf(one).any():
            channel, step = np.argwhere(np.isinf(one))[0]
            raise DataError(
                f"`{path}` has an infinite value in series {case}, channel {channel}, "
                f"position {step} (counting from 0): correct it, or write `?` if it is "
                "missing."
            )
    if missing == "trim":
        series = [one[:, : _observed_length(one)] for one in series]
    for case, one in enumerate(series):
        if one.size == 0:
            raise DataError(
                f"`{path}` has no value at all in series {case} (counting from 0): "
                "remove that series."
            )
    if missing != "keep":
        _refuse_missing(series, path)
    if unequal or len({one.shape[1] for one in series}) > 1:
        return list(series), y
    stacked = np.stack(series)
    return (stacked[:, 0, :] if n_channels == 1 else stacked), y


def _observed_length(one: NDArray[np.float64]) -> int:
    """Steps up to the last one at which any channel has a value."""
    observed = np.flatnonzero(~np.isnan(one).all(axis=0))
    return int(observed[-1]) + 1 if observed.size else 0


def _refuse_missing(series: Sequence[NDArray[np.float64]], path: str) -> None:
    """Raise if any value is missing, saying where and what can be done."""
    found = [
        np.column_stack([np.full(len(where), case), where])
        for case, one in enumerate(series)
        if len(where := np.argwhere(np.isnan(one)))
    ]
    if not found:
        return
    positions = np.concatenate(found)
    case, channel, step = positions[0]
    padded = all(not np.isnan(one[:, : _observed_length(one)]).any() for one in series)
    cure = (
        "pass missing='trim' if the series have unequal lengths, or missing='keep' to "
        "keep NaN"
        if padded
        else "pass missing='keep' to keep them as NaN"
    )
    what = (
        "1 missing value,"
        if len(positions) == 1
        else (f"{len(positions)} missing values, the first")
    )
    raise MissingValueError(
        f"`{path}` has {what} in series {case}, channel {channel}, position {step} "
        f"(counting from 0): {cure}.",
        positions,
    )
