"""Read recordings of a device from the files of a laboratory, one column per channel."""

from __future__ import annotations

import csv
import fnmatch
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.checks import needs
from .._base.messages import Argument, listed
from .arrays import load_array, load_arrays
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
#: First bytes of HDF5, which MATLAB writes after a header of 512 bytes.
_HDF5 = b"\x89HDF\r\n\x1a\n"
#: Number of lines in which the values of a file must begin.
_PREAMBLE = 100


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
    path: File | Sequence[File],
    *,
    drive: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    trigger: str | None = None,
    format: str | None = None,
) -> Recording:
    r"""Read a recording for :meth:`greenfold.MeasuredResponse.fit`.

    Parameters
    ----------
    path : str, Path or binary stream, or a list of them
        A file, or several that hold the channels of one recording. In the order of the
        table:

        =================================  ================================================
        ``.csv``, ``.tsv``, ``.txt``       A line names the columns. Lines before it, such
                                           as the settings of an oscilloscope, and a line
                                           of units below it are skipped.
        ``.npz``, ``.npy``                 Arrays (n_samples, n_channels), or one per
                                           channel; an array of ``.npy`` has the name of
                                           the file.
        ``.mat``                           The same as variables of MATLAB, of versions up
                                           to 7; 7.3 needs ``greenfold[hdf5]``.
        ``.h5``, ``.hdf5``                 The same as data sets, in any groups
                                           (``greenfold[hdf5]``).
        ``.tdms``                          Channels of LabVIEW (``greenfold[tdms]``).
        ``.parquet``                       One column per channel (``greenfold[parquet]``).
        =================================  ================================================
    drive, states : sequence of str, optional
        Columns of inputs and outputs, or patterns such as ``"x*"``. By default, inputs are
        the columns whose names begin with ``drive``, ``input``, ``in`` or ``u``, and
        outputs those with ``state``, ``output``, ``out`` or ``y``, followed by a number or
        a separator.
    trigger : str, optional
        Column of a trigger. Only the samples at which it rises are kept, one per step.
    format : str, optional
        A suffix without its point, such as ``"csv"``, for a stream or instead of the
        suffix.

    Returns
    -------
    Recording
        A column ``t`` or ``time`` gives ``dt``, and so does an entry ``dt`` or the
        increment of a channel in ``.tdms``. A gap in time raises a `DataError`.

    Examples
    --------
    >>> import io
    >>> from greenfold.datasets import read_recording
    >>> content = b"t,drive_0,state_0\n0.0,1.0,0.5\n0.1,-1.0,-0.2\n"
    >>> recording = read_recording(io.BytesIO(content), format="csv")
    >>> recording.drive.shape, recording.state_names, round(recording.dt, 3)
    ((2, 1), ('state_0',), 0.1)
    """
    several = [path] if isinstance(path, str) or not isinstance(path, Sequence) else path
    parts = [_read_columns(one, format) for one in several]
    names, spacing = [name for name, *_ in parts], None
    columns: dict[str, Any] = {}
    for name, own, dt in parts:
        spacing = dt if spacing is None else spacing
        for key in sorted(own.keys() & columns.keys()):
            twice = f"has a column {key!r}, and so has one of the other files"
            refuse_data(not _TIME.fullmatch(key), f"`{name}` {twice}; rename one of them.")
        columns |= own
    with naming(", ".join(names)):
        inputs = _choose(columns, drive, _DRIVE, "drive")
        outputs = _choose(columns, states, _STATE, "states")
        if both := set(inputs) & set(outputs):
            twice = f"has the column {min(both)!r} as both drive and state"
            raise DataError(f"{twice}: name it in only one of `drive` and `states`.")
        edges = [] if trigger is None else _choose(columns, [trigger], _STATE, "trigger")
        used = {*inputs, *outputs, *edges}
        times = [key for key in columns if key not in used and _TIME.fullmatch(key)][:1]
        chosen = {key: columns[key] for key in (*inputs, *outputs, *edges, *times)}
        _check_lengths(chosen)
        if edges:
            rises, spacing = _rises(chosen[edges[0]], edges[0]), None
            chosen = {key: one[rises] for key, one in chosen.items()}
        dt = _spacing(chosen[times[0]]) if times else None
    return Recording(
        np.column_stack([chosen[key] for key in inputs]),
        np.column_stack([chosen[key] for key in outputs]),
        dt if spacing is None else spacing,
        tuple(inputs),
        tuple(outputs),
    )


def _check_lengths(columns: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse columns of different lengths."""
    lengths = sorted((len(one), key) for key, one in columns.items())
    (short, first), (long, last) = lengths[0], lengths[-1]
    has = f"holds {first!r} of {short} samples and {last!r} of {long}"
    refuse_data(short != long, f"{has}; sample all channels with one clock.")


def _rises(values: NDArray[np.float64], name: str) -> NDArray[np.intp]:
    """Return the samples at which a trigger rises through the middle of its range."""
    high = values > (values.min() + values.max()) / 2
    found = np.flatnonzero(high[1:] & ~high[:-1]) + 1
    never = f"has a trigger {name!r} that rises only {len(found)} times"
    refuse_data(len(found) < 2, f"{never}; name another column.")
    return found


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
    cure = f"use {', '.join(_COLUMNS)} with a column for each channel."
    refuse_data(suffix not in _COLUMNS, f"{what}: {cure}")
    name, content = read_bytes(path)
    with naming(name):
        read: Any = _COLUMNS[suffix]
        if read is _read_csv:
            columns = read(content, one_series)
        else:
            columns = read(content, Path(name).stem)
            refuse_data(not columns, "holds no numbers: write one array for each channel.")
            if one_series:
                _check_lengths({key: one for key, one in columns.items() if key != "dt"})
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
    delimiter = max(",;\t", key=lines[min(len(lines), _PREAMBLE) - 1].count)
    skipped = 0 if one_series else _preamble(lines, delimiter)
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
            line = i + skipped * (i > 1)
            lost = f"has {len(row)} values in line {line}, {named}; samples were lost there"
            refuse_data(len(row) != len(header), f"{lost}: cut the file there.")
            if i > 1 - unnamed:
                found.append(parse_values([[row[k] for k in kept]], f"line {line}"))
        values = np.concatenate(found)
    what = f"names {len(kept)} columns but its lines hold {values.shape[1]} values"
    refuse_data(values.shape[1] != len(kept), f"{what}; write one value for each column.")
    return {header[k]: column for k, column in zip(kept, values.T, strict=True)}


def _preamble(lines: list[str], delimiter: str) -> int:
    """Remove what stands above the names of the columns, and units below them.

    Returns the number of removed lines. The values begin with two lines of as many numbers.
    """
    rows = list(csv.reader(lines[:_PREAMBLE], delimiter=delimiter))
    numeric = [None not in [number(one) for one in row if one.strip()] for row in rows]
    at = next(
        (
            i
            for i in range(len(rows) - 1)
            if numeric[i] and numeric[i + 1] and len(rows[i]) == len(rows[i + 1])
        ),
        0,
    )
    top = at
    while top and len(rows[top - 1]) == len(rows[at]) and all(map(_is_text, rows[top - 1])):
        top -= 1
    if at < 2 or top == at:
        return 0
    lines[:at] = lines[top : top + 1]
    return at - 1


def _is_unnamed(first: list[str], second: list[str]) -> bool:
    """Return whether the first line holds a sample, like the second, instead of names."""
    if len(first) > 1 and first == [str(i) for i in range(len(first))]:
        return False  # pandas numbers columns without names
    pairs = zip(first, second, strict=False)
    alike = all(_is_text(a) == _is_text(b) for a, b in pairs if a and b)
    return alike and any(number(one) is not None for one in first)


def _is_text(field: str) -> bool:
    return bool(field.strip()) and number(field) is None


def _columns_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the columns of arrays (n_samples, …) by name; more axes become columns."""
    columns: dict[str, Any] = {}
    for key, array in arrays.items():
        if array.ndim == 1 or (key == "dt" and array.size == 1):
            columns[key] = array
        elif array.ndim > 1:
            flat = array.reshape(len(array), -1)
            columns |= {f"{key}_{i}": column for i, column in enumerate(flat.T)}
    return columns


def _read_npz(content: bytes, stem: str) -> dict[str, Any]:
    arrays = load_arrays(content, "numpy.savez(path, drive=drive, states=states)")
    arrays = {key: _numbers(key, array) for key, array in arrays.items()}
    for key, array in arrays.items():
        wanted = "it must be (n_samples,) or (n_samples, n_channels)."
        wrong = array.ndim not in (1, 2) and not (key == "dt" and array.size == 1)
        refuse_data(wrong, f"has the array {key!r} of shape {array.shape}; {wanted}")
    return _columns_of(arrays)


def _read_npy(content: bytes, stem: str) -> dict[str, Any]:
    array = _numbers(stem, load_array(content))
    wanted = "it must be (n_samples,) or (n_samples, n_channels)."
    refuse_data(array.ndim not in (1, 2), f"has the shape {array.shape}; {wanted}")
    return _columns_of({stem: array})


def _read_mat(content: bytes, stem: str) -> dict[str, Any]:
    if _HDF5 in (content[:8], content[512:520]):  # from version 7.3 on
        return _read_hdf5(content, stem, kind=".mat")
    with readable(".mat", "save it again"):
        arrays: dict[str, Any] = import_module("scipy.io").loadmat(io.BytesIO(content))
    found = {key: one for key, one in arrays.items() if not key.startswith("__")}
    return _columns_of(_vectors(found))


def _vectors(arrays: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Return the numeric arrays of MATLAB, whose vectors are matrices."""
    found = {}
    for key, one in arrays.items():
        if isinstance(one, np.ndarray) and one.dtype.kind in "fiu" and one.size:
            values = one.astype(np.float64)
            found[key] = values.ravel() if values.ndim == 2 and 1 in one.shape else values
    return found


def _read_hdf5(content: bytes, stem: str, kind: str = ".h5") -> dict[str, Any]:
    with needs("MATLAB 7.3" if kind == ".mat" else "HDF5", "hdf5"):
        library = import_module("h5py")
    arrays: dict[str, NDArray[Any]] = {}

    def keep(path: str, found: Any) -> None:
        if isinstance(found, library.Dataset) and found.dtype.kind in "fiu" and found.size:
            arrays[path] = np.asarray(found)[...]

    with readable(kind, "write it again"), library.File(io.BytesIO(content), "r") as file:
        file.visititems(keep)
    short = [path.rsplit("/", 1)[-1] for path in arrays]
    clear = {
        name if short.count(name) == 1 else path: array
        for (path, array), name in zip(arrays.items(), short, strict=True)
    }
    if kind == ".mat":  # MATLAB stores columns first
        return _columns_of(_vectors({key: one.T for key, one in clear.items()}))
    return _columns_of({key: one.astype(np.float64) for key, one in clear.items()})


def _read_tdms(content: bytes, stem: str) -> dict[str, Any]:
    with needs("TDMS", "tdms"):
        library = import_module("nptdms")
    with readable(".tdms", "save it again"):
        groups = library.TdmsFile.read(io.BytesIO(content)).groups()
        channels = [one for group in groups for one in group.channels() if len(one)]
        values = [(one, np.asarray(one[:])) for one in channels]
    names = [one.name for one in channels]
    columns: dict[str, Any] = {}
    for one, array in values:
        if array.dtype.kind in "fiu":
            unique = names.count(one.name) == 1
            key = one.name if unique else f"{one.group_name}/{one.name}"
            columns[key] = array.astype(np.float64)
            if (step := one.properties.get("wf_increment", 0)) > 0:
                columns["dt"] = np.array([float(step)])
    return columns


def _read_parquet(content: bytes, stem: str) -> dict[str, Any]:
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
    ".npy": _read_npy,
    ".mat": _read_mat,
    **dict.fromkeys((".h5", ".hdf5"), _read_hdf5),
    ".tdms": _read_tdms,
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
}
