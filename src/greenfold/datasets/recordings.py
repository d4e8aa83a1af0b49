"""Read recordings of a device from the files of a laboratory, one column per channel."""

from __future__ import annotations

import csv
import fnmatch
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.checks import needs
from .._base.messages import Argument, listed
from .arrays import load_array, load_arrays
from .files import File, name_of, read_bytes, suffix_of
from .parsed import (
    DECIMAL_COMMA,
    DataError,
    lines_of,
    naming,
    number,
    parse_values,
    readable,
    refuse_data,
)

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
#: Largest share of weekdays that may be missing in daily data.
_HOLIDAYS = 0.1
#: Forms of dates beside those of ISO 8601, and parts that its reader does not know.
_DATES = [
    f"{date}{time}"
    for date in (
        *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%y", "%m/%d/%y"),
        *("%d-%b-%Y", "%d %b %Y", "%b %Y", "%b-%y", "%Y%m%d"),
    )
    for time in ("", " %H:%M", " %H:%M:%S")
]
_ZONE = re.compile(r"(?<=:\d\d) ?(Z|[+-]\d\d:?\d\d)$|(?<=\.\d{3}) ?Z$")
_QUARTER = re.compile(r"^(\d{4})[ -]?Q([1-4])$")
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
    dates : ndarray of datetime64 (n_samples,) or None
        Dates of the samples, if the file gives them at regular distances.
    notes : tuple of str
        What was not read as a channel, and why.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    dt: float | None
    end: float
    dates: NDArray[np.datetime64] | None = None
    notes: tuple[str, ...] = ()

    def times(self, steps: ArrayLike) -> NDArray[Any]:
        r"""Return dates or times of steps after the end; the steps if there are neither.

        Examples
        --------
        >>> from io import BytesIO
        >>> from greenfold.datasets import read_sampled
        >>> monthly = b"date,x\n2024-01-31,1\n2024-02-29,2\n2024-03-31,4\n"
        >>> read_sampled(BytesIO(monthly), format="csv").times([1, 2]).astype(str).tolist()
        ['2024-04-30', '2024-05-31']
        """
        steps = np.asarray(steps)
        if self.dates is not None:
            made = _dates_after(self.dates, steps)
            assert made is not None  # or they would not have been kept
            return made
        return steps if self.dt is None else self.end + self.dt * steps


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
        ``column_1`` and so on. Columns with other text than dates are left out.
    columns : sequence of str, optional
        Columns to read, or patterns such as ``"x*"``; by default, all except the time.
    time : str, optional
        Column with the times. By default, a column ``t`` or ``time``; or one with dates
        that follow each other by equal times, by months, or by weekdays with few gaps; or
        one with a name like ``year`` or ``index``, or without a name, whose values rise in
        equal steps, as the first of several without names may do.

    Returns
    -------
    SampledSeries
        The times give its ``dt``, and its method ``times`` continues them.

    Examples
    --------
    >>> from io import BytesIO
    >>> from greenfold.datasets import read_sampled
    >>> series = read_sampled(BytesIO(b"time,x,y\n0,1,0.5\n0.1,-1,-0.2\n"), format="csv")
    >>> series.values.shape, series.names, round(series.dt, 3)
    ((2, 2), ('x', 'y'), 0.1)
    """
    name, every, spacing = _read_columns(path, format, one_series=True)
    with naming(name):
        text = {key: one for key, one in every.items() if _may_be_dates(key, one)}
        found = {key: one for key, one in every.items() if key not in text}
        times = _times(found) if time is None else _choose(every, [time], _TIME, "time")
        known = [key for key in times if key in found and (time or _TIME.fullmatch(key))]
        dates, notes = None, list[str]()
        for key, written in text.items() if time not in text else [(time, text[time])]:
            why = "which is text"
            if dates is None and not known:
                dates, why = _read_dates(written)
            wrong = f"has a column {key!r}, {why}, so it cannot be the "
            refuse_data(time and why, wrong, Argument("time"), " of the samples.")
            notes += [f"Left out column {key!r}, {why}."] if why else []
        times = [key for key in times if key in found]
        # A file with a single column `t` is a series of that name.
        times = times if len(times) < len(found) else []
        chosen = _choose(found, columns, re.compile(".*"), "columns")
        chosen = [key for key in chosen if columns is not None or key not in times[:1]]
        empty = [key for key in chosen if columns is None and np.isnan(found[key]).all()]
        if len(empty) < len(chosen):
            chosen = [key for key in chosen if key not in empty]
            notes += [f"Left out column {key!r}, which is empty." for key in empty]
        for key in chosen:
            gaps = np.flatnonzero(np.isnan(found[key]))
            where = f"at sample {next(iter(gaps), 0)} (counting from 0; {len(gaps)} in all)"
            what = f"has no value in column {key!r} {where}: fill the gaps"
            cure = (" or cut the file there.",)
            if len(chosen) > 1:
                cure = ", cut the file there, or name other ", Argument("columns"), "."
            refuse_data(len(gaps), what, *cure)
        dt, end = spacing, None
        if times and times[0] not in chosen:
            dt = _spacing(found[times[0]], "cut the file there")
            end = float(found[times[0]][-1])
    values = np.column_stack([found[key] for key in chosen])
    end = (len(values) - 1) * (dt or 1.0) if end is None else end
    return SampledSeries(values, tuple(chosen), dt, end, dates, tuple(notes))


def _may_be_dates(name: str, values: NDArray[Any]) -> bool:
    """Return whether values are text, dates, or numbers such as 20241231."""
    if values.dtype.kind != "f" or not _INDEX.fullmatch(name):
        return values.dtype.kind != "f"
    return bool(np.all((values >= 1700_01_01) & (values <= 2200_12_31)))


def _read_dates(written: NDArray[Any]) -> tuple[NDArray[Any] | None, str]:
    """Return dates that follow a rule, or None and why there are none."""
    why = "which is text"
    for dates in _parsed_dates(written):
        if np.isnat(dates).any():
            continue
        gaps = np.diff(dates).astype(float)
        if _dates_after(dates, np.zeros(1)) is not None:
            return dates, ""
        between = ""
        if len(gaps):
            ruled = _dates_after(np.sort(dates), np.zeros(1)) is not None
            mixed = ruled or bool((gaps < 0).all())
            odd = -gaps if mixed else np.abs(gaps - np.median(gaps))
            at = int(np.argmax(odd))
            between = f" ({written[at + 1]} follows {written[at]})"
            cure = "sort the samples, the oldest first."
            refuse_data(mixed, f"has dates out of order{between}: {cure}")
        why = f"whose dates are not at regular distances{between}"
    return None, why


def _parsed_dates(written: NDArray[Any]) -> Iterator[NDArray[np.datetime64]]:
    """Parse dates in every way in which all of them can be read."""
    if written.dtype.kind == "M":
        yield written.astype("M8[us]")
        return
    texts = [f"{one:.0f}" if written.dtype.kind == "f" else one for one in written.tolist()]
    months = [
        _QUARTER.sub(lambda it: f"{it[1]}-{3 * int(it[2]) - 2:02d}", one) for one in texts
    ]
    plain = [_ZONE.sub("", one) for one in months]
    if all("-" in one for one in plain):
        with suppress(ValueError):
            yield np.array(plain, dtype="M8[us]")
    for form in _DATES:
        with suppress(ValueError):
            yield np.array([datetime.strptime(one, form) for one in texts], dtype="M8[us]")


def _dates_after(
    dates: NDArray[np.datetime64], steps: NDArray[Any]
) -> NDArray[np.datetime64] | None:
    """Return the dates at steps after the last; None if the dates follow no rule.

    They are equally far apart, or by months, or are weekdays with few gaps for holidays.
    """
    if len(dates) < 3:
        return None
    steps, gaps = steps.astype(int), np.diff(dates) / np.timedelta64(1, "us")
    days, months = dates.astype("M8[D]"), dates.astype("M8[M]")
    by, offset = np.diff(months).astype(int), days - months.astype("M8[D]")
    whole = bool((days == dates).all())
    if whole and by[0] > 0 and (by == by[0]).all():  # years too, which differ by a day
        ahead = months[-1] + by[0] * steps
        if ((days + 1).astype("M8[M]") > months).all():
            return (ahead + 1).astype("M8[D]") - 1
        if (offset == offset[0]).all():
            return ahead.astype("M8[D]") + offset[0]
    if usual := _usual_step(gaps):
        made = dates[-1] + np.rint(steps * usual).astype("m8[us]")
        units = (unit for unit in ("D", "s") if (made == made.astype(f"M8[{unit}]")).all())
        return made.astype(f"M8[{next(units, 'us')}]")
    if whole and np.is_busday(days).all():
        missing = np.busday_count(days[:-1], days[1:]) - 1
        if missing.min() == 0 and missing.mean() < _HOLIDAYS:
            return np.busday_offset(days[-1], steps)
    return None


def _times(columns: Mapping[str, NDArray[np.float64]]) -> list[str]:
    """Return the columns that hold times, most likely first."""
    first = [key for key in columns if _TIME.fullmatch(key)]
    others = [key for key in columns if _INDEX.fullmatch(key)]
    others += [key for key in list(columns)[:1] if key == "column_1"]
    return first or [key for key in others if _usual_step(np.diff(columns[key]))]


def _usual_step(steps: NDArray[np.float64]) -> float | None:
    """Return the median of steps that rise and are alike; None if they do not."""
    if not len(steps) or not np.isfinite(steps).all():
        return None
    usual = float(np.median(steps))
    alike = usual > 0 and (np.abs(steps - usual) <= _JITTER * usual).all()
    return usual if alike else None


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
        columns = read(content, Path(name).stem, one_series)
        if read is not _read_csv:
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


def _read_csv(content: bytes, stem: str, one_series: bool) -> dict[str, Any]:
    """Return columns by name; of one series, also those of text, such as dates."""
    written = [one for one in lines_of(content) if one[:1] != "#"]
    lines = [one for one in written if one.strip()]
    cure = "name the columns, then give one sample per line."
    refuse_data(len(lines) < 2, f"is empty: {cure}")
    delimiter = _delimiter(lines)
    if delimiter == " ":
        lines = [" ".join(one.split()) for one in lines]
    if one_series and delimiter not in lines[-1]:  # a blank line is a missing sample
        filled = "\n".join(written).strip("\n ").split("\n")
        lines = [one if one.strip() else "nan" for one in filled]
    skipped = 0 if one_series else _preamble(lines, delimiter)
    first, second = csv.reader(lines[:2], delimiter=delimiter)
    numbered = delimiter != " " and first == [str(i) for i in range(len(first))]
    numbered = numbered and len(first) > 1  # as pandas numbers columns without names
    unnamed = one_series and not numbered and _is_unnamed(first, second)
    if unnamed:
        header = [f"column_{i}" for i in range(1, len(first) + 1)]
        header = ["value"] if len(first) == 1 else header
        lines.insert(0, delimiter.join(header))
    else:
        header = [key.strip().strip('"') for key in first]
        numbers = not one_series and all(map(_is_number, header))
        refuse_data(
            numbers, "begins with numbers: name the columns, as in drive_0,state_0."
        )
    if twice := [key for key in header if header.count(key) > 1]:
        raise DataError(f"has two columns named {twice[0]!r}; rename one of them.")
    text: dict[int, list[str]] = {}
    if one_series:
        row = next(csv.reader(lines[1:2], delimiter=delimiter))
        text = {i: [] for i, one in enumerate(row) if _is_text(one)}
        for one in csv.reader(lines[1:], delimiter=delimiter) if text else ():
            for i, column in text.items():
                column.append(one[i].strip() if i < len(one) else "")
        # A column that continues with numbers is not text: its first value is wrong.
        text = {i: one for i, one in text.items() if not any(map(_is_number, one))}
        text = text if len(text) < len(row) == len(header) else {}
    kept = [i for i in range(len(header)) if i not in text]
    columns = kept if text else None
    if delimiter != ",":
        lines[1:] = [one.replace(",", ".") for one in lines[1:]]
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
    numbers = {header[k]: column for k, column in zip(kept, values.T, strict=True)}
    return {header[i]: np.array(one) for i, one in text.items()} | numbers


def _delimiter(lines: list[str]) -> str:
    """Return what separates the columns, where commas may be decimal marks."""
    line = lines[min(len(lines), _PREAMBLE) - 1]
    for mark in "\t;":
        if mark in line:
            return mark
    fields = line.split()
    if len(fields) > 1 and all(map(_is_number, fields)):
        return " "
    alone = DECIMAL_COMMA.fullmatch(line.strip()) and "," not in lines[0]
    return ";" if alone else ","


def _preamble(lines: list[str], delimiter: str) -> int:
    """Remove what stands above the names of the columns, and units below them.

    Returns the number of removed lines. The values begin with two lines of as many numbers.
    """
    rows = list(csv.reader(lines[:_PREAMBLE], delimiter=delimiter))
    numeric = [all(_is_number(one) for one in row if one.strip()) for row in rows]
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
    pairs = zip(first, second, strict=False)
    alike = all(_is_text(a) == _is_text(b) for a, b in pairs if a and b)
    return alike and any(map(_is_number, first))


def _is_text(field: str) -> bool:
    return bool(field.strip()) and not _is_number(field)


def _is_number(field: str) -> bool:
    """Return whether a field is a number, with a decimal point or a decimal comma."""
    return number(field) is not None or bool(DECIMAL_COMMA.fullmatch(field.strip()))


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


def _read_npz(content: bytes, stem: str, one_series: bool) -> dict[str, Any]:
    arrays = load_arrays(content, "numpy.savez(path, drive=drive, states=states)")
    arrays = {key: _numbers(key, array) for key, array in arrays.items()}
    for key, array in arrays.items():
        wanted = "it must be (n_samples,) or (n_samples, n_channels)."
        wrong = array.ndim not in (1, 2) and not (key == "dt" and array.size == 1)
        refuse_data(wrong, f"has the array {key!r} of shape {array.shape}; {wanted}")
    return _columns_of(arrays)


def _read_npy(content: bytes, stem: str, one_series: bool) -> dict[str, Any]:
    array = _numbers(stem, load_array(content))
    wanted = "it must be (n_samples,) or (n_samples, n_channels)."
    refuse_data(array.ndim not in (1, 2), f"has the shape {array.shape}; {wanted}")
    return _columns_of({stem: array})


def _read_mat(content: bytes, stem: str, one_series: bool) -> dict[str, Any]:
    if _HDF5 in (content[:8], content[512:520]):  # from version 7.3 on
        return _read_hdf5(content, stem, one_series, kind=".mat")
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


def _read_hdf5(
    content: bytes, stem: str, one_series: bool, kind: str = ".h5"
) -> dict[str, Any]:
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


def _read_tdms(content: bytes, stem: str, one_series: bool) -> dict[str, Any]:
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


def _read_parquet(content: bytes, stem: str, one_series: bool) -> dict[str, Any]:
    with needs("Parquet", "parquet"), readable(".parquet"):
        table = import_module("pyarrow.parquet").read_table(io.BytesIO(content))
    columns: dict[str, Any] = {}
    for key in table.column_names:
        one = table.column(key).to_numpy(zero_copy_only=False)
        if one_series and one.dtype.kind in "OM":
            columns[key] = one.astype(str) if one.dtype.kind == "O" else one
        else:
            columns[key] = _numbers(key, one)
    return columns


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
