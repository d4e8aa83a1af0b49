"""Recordings of a device under random drive: CSV, NPZ or Parquet, a column a channel."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .files import suffix_of
from .npz import load_arrays
from .parsing import Source, read_bytes, read_lines

__all__ = ["Recording", "read_recording"]

_TIME = re.compile(r"(t|time)([ _\[(].*)?", re.IGNORECASE)
_DRIVE = re.compile(r"(drive|input|in|u)([ _.-]?\d+|[ _.-].*)?", re.IGNORECASE)
_STATE = re.compile(r"(states?|output|out|y)([ _.-]?\d+|[ _.-].*)?", re.IGNORECASE)
#: Steps of time may differ by this share of their median, by how they were written.
_JITTER = 0.01


@dataclass(frozen=True, eq=False)
class Recording:
    """What went into a device and what came out, sampled with one clock.

    Attributes
    ----------
    drive : ndarray (n_samples, n_inputs)
    states : ndarray (n_samples, n_outputs)
    dt : float or None
        Time between samples, where the file says it.
    drive_names, state_names : tuple of str
        Columns of the file.
    """

    drive: NDArray[np.float64]
    states: NDArray[np.float64]
    dt: float | None
    drive_names: tuple[str, ...]
    state_names: tuple[str, ...]


def read_recording(
    path: Source,
    *,
    drive: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    format: str | None = None,
) -> Recording:
    r"""Read a recording for :meth:`greenfold.MeasuredResponse.fit`.

    Parameters
    ----------
    path : str, Path or binary stream
        ``.csv`` (also ``.tsv``, ``.txt``; the first line names the columns), ``.npz``
        (arrays ``drive`` and ``states`` of shape (n_samples, n_channels), or one array a
        channel) or ``.parquet`` (``pip install greenfold[parquet]``).
    drive, states : sequence of str, optional
        Columns of inputs and outputs. By default those whose names begin with ``drive``,
        ``input``, ``in`` or ``u``, and with ``state``, ``output``, ``out`` or ``y``,
        followed by a number or a separator.
    format : str, optional
        ``"csv"``, ``"npz"`` or ``"parquet"``, for a stream or in place of the suffix.

    Returns
    -------
    Recording
        A column ``t`` or ``time`` (or the entry ``dt`` of ``.npz``) gives ``dt``.

    Raises
    ------
    DataError
        If the file can not be read, has gaps in time, or its columns are not known.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from greenfold.datasets import read_recording
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "loop.csv")
    ...     _ = path.write_text("t,drive_0,state_0\n0.0,1.0,0.5\n0.1,-1.0,-0.2\n")
    ...     recording = read_recording(path)
    >>> recording.drive.shape, recording.state_names, round(recording.dt, 3)
    ((2, 1), ('state_0',), 0.1)
    """
    suffix = suffix_of(path) if format is None else f".{format.lower().lstrip('.')}"
    if suffix in (".csv", ".tsv", ".txt"):
        name, columns = _read_csv(path)
    elif suffix == ".npz":
        name, columns = _read_npz(path)
    elif suffix in (".parquet", ".pq"):
        name, columns = _read_parquet(path)
    else:
        raise DataError(
            f"`{path}` has the suffix {suffix!r}, which is no recording: use .csv, .npz or "
            ".parquet with a column for each channel."
        )
    spacing = columns.pop("dt", None)
    inputs = _chosen(columns, drive, _DRIVE, name, "drive")
    outputs = _chosen(columns, states, _STATE, name, "states")
    if both := set(inputs) & set(outputs):
        raise DataError(f"`{name}`: the column {min(both)!r} is both drive and state.")
    used = {*inputs, *outputs}
    times = [key for key in columns if key not in used and _TIME.fullmatch(key)]
    dt = _spacing(columns[times[0]], name) if times else None
    if spacing is not None:
        dt = float(np.ravel(spacing)[0])
    return Recording(
        np.column_stack([columns[key] for key in inputs]),
        np.column_stack([columns[key] for key in outputs]),
        dt,
        tuple(inputs),
        tuple(outputs),
    )


def _chosen(
    columns: Mapping[str, Any],
    given: Sequence[str] | None,
    pattern: re.Pattern[str],
    name: str,
    what: str,
) -> list[str]:
    if given is not None:
        listed = [given] if isinstance(given, str) else list(given)
        missing = [key for key in listed if key not in columns]
        if missing or not listed:
            raise DataError(
                f"`{what}` names the column {(missing or ['(none)'])[0]!r}, which `{name}` "
                f"does not have; its columns are {_listed(columns)}."
            )
        return listed
    found = [key for key in columns if pattern.fullmatch(key)]
    if not found:
        raise DataError(
            f"`{name}` has no column for `{what}` among {_listed(columns)}; call them "
            f"{'drive_0' if what == 'drive' else 'state_0'} and so on, or name them with "
            f"`{what}`."
        )
    return found


def _listed(columns: Mapping[str, Any]) -> str:
    names = list(columns)
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _spacing(time: NDArray[np.float64], name: str) -> float | None:
    """Time between samples; refuses gaps."""
    if len(time) < 2:
        return None
    steps = np.diff(time)
    usual = float(np.median(steps))
    if not np.isfinite(steps).all() or usual <= 0:
        raise DataError(
            f"`{name}` has times that do not increase; sort the samples by time, and "
            "record with one clock."
        )
    odd = np.flatnonzero(np.abs(steps - usual) > _JITTER * usual)
    if len(odd):
        at = int(odd[0])
        raise DataError(
            f"`{name}` has a gap in time after sample {at} (t = {time[at]:g}: "
            f"{steps[at]:g} instead of {usual:g}); cut the recording there and give the "
            "parts as a list."
        )
    return usual


def _read_csv(path: Source) -> tuple[str, dict[str, NDArray[np.float64]]]:
    name, lines = read_lines(path)
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if len(lines) < 2:
        raise DataError(
            f"`{name}` is empty: the first line must name the columns, and each other line "
            "hold one sample of every channel."
        )
    delimiter = max(",;\t", key=lines[0].count)
    header = [
        key.strip().strip('"') for key in next(csv.reader([lines[0]], delimiter=delimiter))
    ]
    if _all_numbers(header):
        raise DataError(
            f"`{name}` begins with numbers: its first line must name the columns, such as "
            "drive_0,state_0."
        )
    if len(set(header)) != len(header):
        twice = next(key for key in header if header.count(key) > 1)
        raise DataError(f"`{name}` has two columns named {twice!r}; name them apart.")
    try:
        values = np.loadtxt(lines[1:], delimiter=delimiter, ndmin=2)
    except ValueError:
        values = _slowly(name, lines, delimiter, len(header))
    if values.shape[1] != len(header):
        raise DataError(
            f"`{name}` names {len(header)} columns but its lines hold {values.shape[1]} "
            "values; write one value for each column."
        )
    return name, dict(zip(header, values.T, strict=True))


def _all_numbers(words: list[str]) -> bool:
    try:
        [float(word) for word in words]
    except ValueError:
        return False
    return True


def _slowly(name: str, lines: list[str], delimiter: str, width: int) -> NDArray[np.float64]:
    """Lines with empty fields, which become NaN, or with what is not a number."""
    rows = []
    for number, row in enumerate(csv.reader(lines[1:], delimiter=delimiter), start=2):
        if len(row) != width:
            raise DataError(
                f"`{name}` has {len(row)} values in line {number} where the first line "
                f"names {width} columns; the recording was cut off or lost samples there: "
                "cut it there."
            )
        try:
            rows.append([float(word) if word.strip() else np.nan for word in row])
        except ValueError:
            bad = next(word for word in row if word.strip() and not _all_numbers([word]))
            raise DataError(
                f"`{name}` has {bad!r} in line {number}, which is no number; write plain "
                "numbers with a decimal point."
            ) from None
    return np.array(rows)


def _read_npz(path: Source) -> tuple[str, dict[str, Any]]:
    name, content = read_bytes(path)
    how = "numpy.savez(path, drive=drive, states=states)"
    arrays = load_arrays(name, content, how)
    columns: dict[str, Any] = {}
    for key, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise DataError(
                f"`{name}`: the array {key!r} holds {array.dtype}, not numbers."
            )
        if key == "dt" and array.size == 1:
            columns["dt"] = array
        elif array.ndim == 1:
            columns[key] = array.astype(np.float64)
        elif array.ndim == 2:
            columns |= {f"{key}_{i}": c for i, c in enumerate(array.T.astype(np.float64))}
        else:
            raise DataError(
                f"`{name}`: the array {key!r} has shape {array.shape}; it must be "
                "(n_samples,) or (n_samples, n_channels)."
            )
    _equal_lengths(columns, name)
    return name, columns


def _read_parquet(path: Source) -> tuple[str, dict[str, Any]]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError(
            "Reading .parquet needs pyarrow: install it with `pip install "
            "greenfold[parquet]`."
        ) from None
    name, content = read_bytes(path)
    try:
        table = parquet.read_table(io.BytesIO(content))
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"`{name}` is no readable Parquet file ({reason}).") from error
    columns: dict[str, Any] = {}
    for key in table.column_names:
        array = table.column(key).to_numpy(zero_copy_only=False)
        if array.dtype.kind not in "fiu":
            raise DataError(
                f"`{name}`: the column {key!r} holds {array.dtype}, not numbers."
            )
        columns[key] = array.astype(np.float64)
    return name, columns


def _equal_lengths(columns: Mapping[str, Any], name: str) -> None:
    lengths = {key: len(column) for key, column in columns.items() if key != "dt"}
    if len(set(lengths.values())) > 1:
        short, long = (
            min(lengths, key=lengths.__getitem__),
            max(lengths, key=lengths.__getitem__),
        )
        raise DataError(
            f"`{name}`: {short!r} has {lengths[short]} samples and {long!r} "
            f"{lengths[long]}; sample all channels with one clock."
        )
