"""Read recordings of a device from CSV, NPZ or Parquet, with one column per channel."""

from __future__ import annotations

import csv
import fnmatch
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.checks import needs
from .._base.messages import Argument, listed
from .arrays import load_arrays
from .files import File, name_of, read_bytes, suffix_of
from .parsed import DataError, lines_of, naming, number, parse_values, readable, refuse_data

_TIME = re.compile(r"(t|time)([ _\[(].*)?", re.IGNORECASE)
_DRIVE = re.compile(r"(drive|input|in|u)([ _.-]?\d+|[ _.-].*)?", re.IGNORECASE)
_STATE = re.compile(r"(states?|output|out|y)([ _.-]?\d+|[ _.-].*)?", re.IGNORECASE)
#: Names of columns that hold the times of one long series, if they rise in equal steps.
_INDEX = re.compile(
    r"(|t|time|index|year|month|week|day|date|hour|step|timestamp|unnamed: 0)([ _\[(].*)?",
    re.IGNORECASE,
)
#: Largest change of time steps by rounding in the file, as a share of their median.
_JITTER = 0.01


@dataclass(frozen=True, eq=False)
class Recording:
    """The inputs and outputs of a device, sampled together.

    Attributes
    ----------
    drive : ndarray (n_samples, n_inputs)
    states : ndarray (n_samples, n_outputs)
    dt : float or None
        Time between samples, if the file gives it.
    drive_names, state_names : tuple of str
        Columns of the file.
    """

    drive: NDArray[np.float64]
    states: NDArray[np.float64]
    dt: float | None
    drive_names: tuple[str, ...]
    state_names: tuple[str, ...]


def read_recording(
    path: File,
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
        (arrays ``drive`` and ``states`` of shape (n_samples, n_channels), or one array per
        channel) or ``.parquet`` (``pip install greenfold[parquet]``).
    drive, states : sequence of str, optional
        Columns of inputs and outputs, or patterns such as ``"x*"``. By default, inputs are
        the columns whose names begin with ``drive``, ``input``, ``in`` or ``u``, and
        outputs those with ``state``, ``output``, ``out`` or ``y``, followed by a number or
        a separator.
    format : str, optional
        ``"csv"``, ``"npz"`` or ``"parquet"``, for a stream or instead of the suffix.

    Returns
    -------
    Recording
        A column ``t`` or ``time`` (or the entry ``dt`` of ``.npz``) gives ``dt``. A gap in
        time raises a `DataError`.

    Examples
    --------
    >>> import io
    >>> from greenfold.datasets import read_recording
    >>> content = b"t,drive_0,state_0\n0.0,1.0,0.5\n0.1,-1.0,-0.2\n"
    >>> recording = read_recording(io.BytesIO(content), format="csv")
    >>> recording.drive.shape, recording.state_names, round(recording.dt, 3)
    ((2, 1), ('state_0',), 0.1)
    """
    name, columns, spacing = _read_columns(path, format)
    with naming(name):
        inputs = _choose(columns, drive, _DRIVE, "drive")
        outputs = _choose(columns, states, _STATE, "states")
        if both := set(inputs) & set(outputs):
            twice = f"has the column {min(both)!r} as both drive and state"
            raise DataError(f"{twice}: name it in only one of `drive` and `states`.")
        used = {*inputs, *outputs}
        times = [key for key in columns if key not in used and _TIME.fullmatch(key)]
        dt = _spacing(columns[times[0]]) if times else None
    return Recording(
        np.column_stack([columns[key] for key in inputs]),
        np.column_stack([columns[key] for key in outputs]),
        dt if spacing is None else spacing,
        tuple(inputs),
        tuple(outputs),
    )


@dataclass(frozen=True, eq=False)
class SampledSeries:
    """A series of one or more channels, sampled together.

    Attributes
    ----------
    values : ndarray (n_samples, n_channels)
    names : tuple of str
        Columns of the file.
    dt : float or None
        Time between samples, if the file gives it.
    end : float
        Time of the last sample, or its index if the file gives no times.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    dt: float | None
    end: float


def read_sampled(
    path: File,
    *,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    format: str | None = None,
) -> SampledSeries:
    r"""Read one long series, for example to forecast it.

    Parameters
    ----------
    path, format
        As for :func:`read_recording`, with one column per channel and one row per sample.
        Text needs no line with names: one column is then called ``value``, and several
        ``column_1`` and so on. Columns with text, such as dates, are left out.
    columns : sequence of str, optional
        Columns to read, or patterns such as ``"x*"``; by default, all except the time.
    time : str, optional
        Column with the times. By default, a column ``t`` or ``time``; or a column with a
        name like ``year`` or ``index``, or without a name, whose values rise in equal
        steps, as the first of several without names may do.

    Returns
    -------
    SampledSeries
        The times give its ``dt``.

    Examples
    --------
    >>> from io import BytesIO
    >>> from greenfold.datasets import read_sampled
    >>> series = read_sampled(BytesIO(b"time,x,y\n0,1,0.5\n0.1,-1,-0.2\n"), format="csv")
    >>> series.values.shape, series.names, round(series.dt, 3)
    ((2, 2), ('x', 'y'), 0.1)
    """
    name, found, spacing = _read_columns(path, format, one_series=True)
    with naming(name):
        times = _times(found) if time is None else _choose(found, [time], _TIME, "time")
        # A file with a single column `t` is a series of that name.
        times = times if len(times) < len(found) else []
        chosen = _choose(found, columns, re.compile(".*"), "columns")
        chosen = [key for key in chosen if columns is not None or key not in times[:1]]
        for key in chosen:
            gaps = np.flatnonzero(np.isnan(found[key]))
            if len(gaps):
                raise DataError(
                    f"has no value in column {key!r} at sample {gaps[0]} (the first of "
                    f"{len(gaps)}): fill the gaps, or cut the file there."
                )
        dt, end = spacing, None
        if times and times[0] not in chosen:
            dt = _spacing(found[times[0]], "cut the file there")
            end = float(found[times[0]][-1])
    values = np.column_stack([found[key] for key in chosen])
    end = (len(values) - 1) * (dt or 1.0) if end is None else end
    return SampledSeries(values, tuple(chosen), dt, end)


def _times(columns: Mapping[str, NDArray[np.float64]]) -> list[str]:
    """Return the columns that hold times, most likely first."""
    first = [key for key in columns if _TIME.fullmatch(key)]
    others = [key for key in columns if _INDEX.fullmatch(key)]
    unnamed = [key for key in list(columns)[:1] if re.fullmatch(r"column_1", key)]

    def rises(values: NDArray[np.float64]) -> bool:
        steps = np.diff(values)
        if not len(steps) or not np.isfinite(steps).all():
            return False
        usual = float(np.median(steps))
        return usual > 0 and bool((np.abs(steps - usual) <= _JITTER * usual).all())

    return first or [key for key in [*others, *unnamed] if rises(columns[key])]


def _read_columns(
    path: File, format: str | None, one_series: bool = False
) -> tuple[str, dict[str, Any], float | None]:
    """Return the name of the file, its columns by name, and the sampling interval."""
    suffix = suffix_of(path, format)
    what = f"`{name_of(path)}` has the suffix {suffix!r}, not that of a recording"
    cure = "use .csv, .npz or .parquet with a column for each channel."
    refuse_data(suffix not in _COLUMNS, f"{what}: {cure}")
    name, content = read_bytes(path)
    with naming(name):
        read: Any = _COLUMNS[suffix]
        columns = read(content, one_series) if read is _read_csv else read(content)
    spacing = columns.pop("dt", None)
    return name, columns, None if spacing is None else float(np.ravel(spacing)[0])


def _choose(
    columns: Mapping[str, Any],
    given: Sequence[str] | None,
    pattern: re.Pattern[str],
    what: str,
) -> list[str]:
    """Return the given columns, or those with matching names."""
    if given is None:
        found = [key for key in columns if pattern.fullmatch(key)]
        none = f"has no column for `{what}` among {listed(columns)}"
        cure = f"{none}; call them {what.removesuffix('s')}_0 and so on, or name them with "
        refuse_data(not found, cure, Argument(what), ".")
        return found
    found: list[str] = []
    for one in [given] if isinstance(given, str) else list(given) or ["(none)"]:
        fits = [one] if one in columns else fnmatch.filter(columns, one)
        none = f"has no column {one!r}, asked for with "
        refuse_data(not fits, none, Argument(what), f"; its columns are {listed(columns)}.")
        found += [key for key in fits if key not in found]
    return found


def _spacing(
    time: NDArray[np.float64],
    advice: str = "cut the recording there and use the parts as several recordings",
) -> float | None:
    """Return the sampling interval; raise if there are gaps."""
    if len(time) < 2:
        return None
    steps = np.diff(time)
    usual = float(np.median(steps))
    rises = np.isfinite(steps).all() and usual > 0
    refuse_data(not rises, "has times that do not increase; sort the samples by time.")
    for at in np.flatnonzero(np.abs(steps - usual) > _JITTER * usual):
        where = f"sample {at} (t = {time[at]:g}: {steps[at]:g} instead of {usual:g})"
        raise DataError(f"has a gap in time after {where}; {advice}.")
    return usual


def _read_csv(content: bytes, one_series: bool = False) -> dict[str, Any]:
    """Return columns by name; of one series, leave out text such as dates."""
    lines = [one for one in lines_of(content) if one.strip() and one[0] != "#"]
    cure = "name the columns, then give one sample per line."
    refuse_data(len(lines) < 2, f"is empty: {cure}")
    delimiter = max(",;\t", key=lines[0].count)
    first, second = csv.reader(lines[:2], delimiter=delimiter)
    unnamed = one_series and _is_unnamed(first, second)
    if unnamed:
        header = [f"column_{i}" for i in range(1, len(first) + 1)]
        header = ["value"] if len(first) == 1 else header
        lines.insert(0, delimiter.join(header))
    else:
        header = [key.strip().strip('"') for key in first]
        numbers = not one_series and None not in map(number, header)
        refuse_data(
            numbers, "begins with numbers: name the columns, as in drive_0,state_0."
        )
    if twice := [key for key in header if header.count(key) > 1]:
        raise DataError(f"has two columns named {twice[0]!r}; rename one of them.")
    text: set[int] = set()
    if one_series:
        row = next(csv.reader(lines[1:2], delimiter=delimiter))
        text = {i for i, one in enumerate(row) if _is_text(one)}
        others = list(csv.reader(lines[2:], delimiter=delimiter)) if text else []
        # A column that continues with numbers is not text: its first value is wrong.
        text = {i for i in text if all(_is_text(one[i]) for one in others if i < len(one))}
        text = text if len(text) < len(row) == len(header) else set()
    kept = [i for i in range(len(header)) if i not in text]
    columns = kept if text else None
    try:
        values = np.loadtxt(lines[1:], delimiter=delimiter, ndmin=2, usecols=columns)
    except ValueError:  # a field is empty, and becomes NaN, or is not a number
        found = []
        for i, row in enumerate(csv.reader(lines, delimiter=delimiter), start=1 - unnamed):
            named = f"but the first line has {len(header)} columns"
            lost = f"has {len(row)} values in line {i}, {named}; samples were lost there"
            refuse_data(len(row) != len(header), f"{lost}: cut the file there.")
            if i > 1 - unnamed:
                found.append(parse_values([[row[k] for k in kept]], f"line {i}"))
        values = np.concatenate(found)
    what = f"names {len(kept)} columns but its lines hold {values.shape[1]} values"
    refuse_data(values.shape[1] != len(kept), f"{what}; write one value for each column.")
    return {header[k]: column for k, column in zip(kept, values.T, strict=True)}


def _is_unnamed(first: list[str], second: list[str]) -> bool:
    """Return whether the first line holds a sample, like the second, instead of names."""
    if len(first) > 1 and first == [str(i) for i in range(len(first))]:
        return False  # pandas numbers columns without names
    pairs = zip(first, second, strict=False)
    alike = all(_is_text(a) == _is_text(b) for a, b in pairs if a and b)
    return alike and any(number(one) is not None for one in first)


def _is_text(field: str) -> bool:
    return bool(field.strip()) and number(field) is None


def _read_npz(content: bytes) -> dict[str, Any]:
    arrays = load_arrays(content, "numpy.savez(path, drive=drive, states=states)")
    columns: dict[str, Any] = {}
    for key, array in arrays.items():
        array = _numbers(key, array)
        if array.ndim == 1 or (key == "dt" and array.size == 1):
            columns[key] = array
        elif array.ndim == 2:
            columns |= {f"{key}_{i}": column for i, column in enumerate(array.T)}
        else:
            wanted = "it must be (n_samples,) or (n_samples, n_channels)."
            raise DataError(f"has the array {key!r} of shape {array.shape}; {wanted}")
    lengths = sorted((len(one), key) for key, one in columns.items() if key != "dt")
    if lengths and lengths[0][0] != lengths[-1][0]:
        (short, first), (long, last) = lengths[0], lengths[-1]
        has = f"holds {first!r} of {short} samples and {last!r} of {long}"
        raise DataError(f"{has}; sample all channels with one clock.")
    return columns


def _read_parquet(content: bytes) -> dict[str, Any]:
    with needs("Parquet", "parquet"), readable(".parquet"):
        table = import_module("pyarrow.parquet").read_table(io.BytesIO(content))
    columns = ((key, table.column(key)) for key in table.column_names)
    return {key: _numbers(key, one.to_numpy(zero_copy_only=False)) for key, one in columns}


def _numbers(key: str, array: NDArray[Any]) -> NDArray[np.float64]:
    wrong = f"holds {array.dtype} in {key!r}, not numbers: convert or remove it."
    refuse_data(array.dtype.kind not in "fiu", wrong)
    return array.astype(np.float64)


_COLUMNS = dict.fromkeys((".csv", ".tsv", ".txt"), _read_csv) | {
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
}
