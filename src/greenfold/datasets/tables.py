"""Tables: one series per line, or one sample per line.

Tables do not say what their columns are. The names in the first line show it, or the values
do; where neither does, you name the column, and the error says with which argument.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.messages import Argument, Part, listed
from .parsed import (
    DECIMAL_COMMA,
    LABEL_NAMES,
    MISSING_VALUES,
    ROW_NAMES,
    TIME_NAMES,
    DataError,
    Labels,
    Parsed,
    bare,
    number,
    parse_values,
    refuse_data,
    text_of,
)

#: From this number of series on, labels that are all different cannot be class labels.
_ALONE = 6
_COLUMN = Argument("label_column")
_SERIES = Argument("series_column")
_DROP = Argument("drop")
_OF_SERIES = {*ROW_NAMES, "series", "series_id", "sample_id", "sid", "subject", "unit"}
_OF_SERIES |= {"instance", "trial", "record", "case_id", "caseid", "seriesid", "sequence"}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*)", re.ASCII)
_TWICE_NUMBERED = re.compile(r"\D+\d+[^\d.]+\d+\D*", re.ASCII)
_ANY_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
#: A gap of this many usual steps is a missing sample rather than jitter of the clock.
_GAP = 1.5


class TableHints(NamedTuple):
    """What is known about a table in advance; see `read_series`."""

    n_steps: int | None = None
    classes: Iterable[object] = ()
    label_column: int | str | None = None
    series_column: int | str | None = None
    drop: Sequence[int | str] = ()
    decimal: str | None = None
    encoding: str | None = None


def parse_table(content: bytes, labels: Labels, known: TableHints) -> Parsed:
    """Parse one series per line, or one sample per line if a column names the series."""
    table = _Table(_rows(content, known.encoding), labels, known)
    return table.parse_series() if table.series is None else table.parse_samples()


def _rows(content: bytes, encoding: str | None) -> list[list[str]]:
    """Return the fields of every line that is neither blank nor a comment."""
    lines = text_of(content, encoding, how=Argument("encoding", "latin-1")).split("\n")
    lines = [line for line in (one.strip(" ") for one in lines) if line.strip()]
    lines = [line for line in lines if not _is_comment(line)]
    given = re.fullmatch("sep=(.)", lines[0], re.IGNORECASE) if lines else None
    lines = lines[1:] if given else lines  # Excel's first line
    plain = _ANY_QUOTED.sub("", lines[0]) if lines else ""
    separator = given[1] if given else next((s for s in "\t;|," if s in plain), None)
    if separator is None and '"' not in "".join(lines[:2]):
        return [line.split() for line in lines]
    delimiter = separator or " "
    at_start = rf"(?m)(^|{re.escape(delimiter)}) *'"
    single = '"' not in content.decode("latin-1") and re.search(at_start, "\n".join(lines))
    # The csv module reads the lines together, because a quoted field may hold a line end.
    reader = csv.reader(
        (f"{line}\n" for line in lines),
        delimiter=delimiter,
        quotechar="'" if single else '"',
        skipinitialspace=True,
        strict=True,
    )
    found: list[list[str]] = []
    try:
        found.extend(row for row in reader if row)
    except csv.Error as error:
        where = f"has a quoted field without an end in line {len(found) + 1} or below"
        raise DataError(f"{where} ({error}): close the quote.") from None
    if separator is None:  # several blanks separate two fields
        found = [[field for field in row if field] for row in found]
    return found


def _is_comment(line: str) -> bool:
    """Return whether a line begins with # and is not a series whose label does."""
    values = re.split(r"[\s;|,]+", line)[1:] if line[0] == "#" else ()
    return line[0] == "#" and (not values or any(map(_is_word, values)))


class _Table:
    """The rows of a table without dropped columns, and what its columns are.

    ``places`` are those of the columns among all of the file, ``width`` is the number of
    columns, and ``label`` and ``series`` are the columns that hold the labels and tell the
    series apart, as the caller names them.
    """

    def __init__(self, rows: list[list[str]], labels: Labels, known: TableHints) -> None:
        self.rows, self.labels, self.known = rows, labels, known
        self.places, self.label, self.series = list[int](), None, None
        if rows:
            self._drop()
        header = _read_header(self.rows)
        self.header = _Header() if header is None else header
        self.rows = self.rows if header is None else self.rows[1:]
        self.width = max((len(row) for row in self.rows), default=0)
        if self.series is None:
            self._find_series()

    def _drop(self) -> None:
        """Leave out dropped columns, and find those that the caller names."""
        rows, known = self.rows, self.known
        width = max(map(len, rows))
        names = [bare(field) for field in rows[0]]
        # R leaves the column of row names unnamed.
        unnamed = width == len(names) + 1 and _is_header(rows[0], rows[1:])
        names = ["", *names] if unnamed else names

        def place(column: int | str, use: str) -> int:
            if column in names:
                return names.index(str(column))
            try:
                return range(width)[int({"first": 0, "last": -1}.get(str(column), column))]
            except (ValueError, IndexError):
                cure = f"give a number from 0 to {width - 1}, first, last or a name"
                none = f"has no column {column!r} {use}: {cure} from its first line."
                raise DataError(none) from None

        dropped = {place(one, "to leave out") for one in known.drop}
        self.places = [i for i in range(width) if i not in dropped]

        def left(column: int | str | None, use: str) -> int | None:
            if column is None:
                return None
            found = place(column, use)
            wrong = f"has its column {column!r} {use} among those of "
            refuse_data(found in dropped, wrong, _DROP, ": keep that column.")
            return self.places.index(found)

        self.label = left(known.label_column, "for the labels")
        self.series = left(known.series_column, "for the series")
        if dropped:
            rows = [["", *rows[0]] if unnamed else rows[0], *rows[1:]]
            self.rows = [[row[i] for i in self.places if i < len(row)] for row in rows]

    def _call(self, column: int) -> int | str:
        """Return how a caller names a column."""
        return self.header.names[column] if self.header.names else self.places[column]

    def _also_drop(self, *columns: int | str) -> Argument:
        """Return the advice to leave out columns besides those that are left out."""
        more = [*self.known.drop, *columns]
        return Argument("drop", more if len(more) > 1 else more[0])

    def _values(
        self, channels: Sequence[list[str]], where: str, columns: Sequence[int], hint: str
    ) -> NDArray[np.float64]:
        """Return the values of one series; errors say which column to leave out."""
        decimal = self.known.decimal

        def advise(channel: int, step: int, field: str) -> tuple[Part, ...]:
            if decimal is None and DECIMAL_COMMA.fullmatch(field):
                points = "write decimal points in place of commas, or give "
                return points, Argument("decimal", ",")
            each = len(columns) == len(channels)  # one sample per line
            column = columns[channel if each else channel * len(channels[0]) + step]
            leave = "correct the value, write `?` if it is missing, or leave out its column"
            return f"{leave} with ", self._also_drop(self._call(column)), hint

        if decimal == ",":
            channels = [[field.replace(",", ".") for field in one] for one in channels]
        return parse_values(channels, where, advise)

    # One series per line

    def parse_series(self) -> Parsed:
        """Parse one series per line."""
        names, column, origin = self.header.names, self.label, ""
        if column is None:
            column = self._label_column()
            if column is not None and self.header.label is None:
                at = "last" if column else "first"
                origin = f"the {at} column"
                found = [bare(row[-1 if column else 0]) for row in self.rows]
                n, alone = len(found), self.labels == "required" and len(found) >= _ALONE
                each = f"has {n} series with {n} different labels, taken from {origin}"
                cure = f"{each}: name the column of the labels with "
                other = ", such as last, or leave out a column of dates or names with "
                long = "; if this is one long series, forecast it" * (self.width < _ALONE)
                wrong = alone and len({*found}) == n
                refuse_data(wrong, cure, _COLUMN, other, _DROP, f"{long}.")
        if column and column == self.width - 1 and not names:
            # The label ends every line, including the lines of shorter series.
            self.rows, column = [[row[-1], *row[:-1]] for row in self.rows], 0
            self.places = [self.places[-1], *self.places[:-1]]
        left_out = {column, self.header.label, *self.header.row_names}
        kept = [i for i in range(self.width) if i not in left_out]
        if kept:
            self._refuse_other_columns(kept, column is not None)
        kept, n_channels = _channels(names, kept)
        values = np.full((len(self.rows), n_channels, len(kept) // n_channels), np.nan)
        for case, row in enumerate(self.rows):
            fields = [row[i] for i in kept if i < len(row)]
            cure = "separate the label and the values by tabs, commas or blanks."
            none = f"has series {case} (counting from 0) without values: {cure}"
            refuse_data(not fields, none)
            short = f"has {len(fields)} values in series {case} (counting from 0) but names"
            wrong = n_channels > 1 and len(fields) < len(kept)
            refuse_data(wrong, f"{short} {len(kept)} columns of values: complete the line.")
            each = len(fields) // n_channels
            channels = [fields[i : i + each] for i in range(0, len(fields), each)]
            hint = " (a first line with column names must name all columns)"
            hint = "" if case or names else hint
            one = self._values(channels, f"series {case}", kept, hint)
            values[case, :, : one.shape[1]] = one
        layout = f"{n_channels} channels of {values.shape[2]} steps"
        layout = layout if n_channels > 1 else ""
        if column is None:
            return Parsed(values, layout=layout)
        found = [row[column] if column < len(row) else "" for row in self.rows]
        return Parsed(values, found, origin=origin, layout=layout)

    def _refuse_other_columns(self, kept: Sequence[int], labelled: bool) -> None:
        """Raise if a column that is no label does not look like a step of the series."""
        names = self.header.names
        others = [names[i] for i in kept if names and not _NUMBERED.fullmatch(names[i])]
        steps = len(kept) - len(others) if names else 0
        also = f"names steps by numbers, but also {listed(map(repr, others), 4)}"
        cure = f"{also}: leave out what is no value of the series with "
        drop = Argument("drop", [*self.known.drop, *others])
        refuse_data(others and steps > 2, cure, drop, ".")
        numbers = [row[kept[0]] if kept[0] < len(row) else "" for row in self.rows]
        first = self.places[kept[0]] == 0 and labelled and not steps
        numbered = "numbers its lines in the first column: leave it out with "
        wrong = first and len(numbers) >= _ALONE and _counts(numbers)
        refuse_data(wrong, numbered, self._also_drop(0), ".")

    def _label_column(self) -> int | None:
        """Return the column of the labels, or None."""
        rows, labels, header, known = self.rows, self.labels, self.header, self.known
        if labels == "none" or not rows:
            return None
        if header.label is not None:
            return header.label
        if header.all_values or header.row_names:
            cure = (
                "names no column as labels: name it with ",
                _COLUMN,
                ", or call it label.",
            )
            refuse_data(labels == "required", *cure)
            return None
        ends = {_is_word(bare(row[-1])) for row in rows} if self.width > 1 else set()
        if ends == {True} and not any(_is_word(bare(row[0])) for row in rows):
            return self.width - 1
        if labels == "required":
            return 0
        first = [bare(row[0]) for row in rows]
        numbers = [number(one) for one in first if one.lower() not in MISSING_VALUES]
        if None in numbers:
            return 0
        n_steps = known.n_steps
        if n_steps is not None and self.width in (n_steps, n_steps + 1):
            return 0 if self.width == n_steps + 1 else None
        classes = {number(str(one)) for one in known.classes} - {None}
        if not numbers or (classes and set(numbers) <= classes):
            return 0
        if any(value is not None and not value.is_integer() for value in numbers):
            return None
        expected = "" if n_steps is None else f", for series of {n_steps} steps"
        raise DataError(
            f"has {self.width} values per line{expected}, and it is not clear whether the "
            "first is a label: use ",
            Argument("labels", "required"),
            " if it is, or ",
            Argument("labels", "none"),
            " if not.",
        )

    # One sample per line

    def _find_series(self) -> None:
        """Find the column that says which series a sample belongs to, if there are times.

        Raise if it looks as if each line were one sample, but nothing says so.
        """
        rows, header = self.rows, self.header
        column, repeats = next(iter(header.series), None), False
        if column is not None:
            found = [row[column] for row in rows if column < len(row)]
            repeats = len({*found}) < len(found)
        if header.time is not None:
            if repeats:
                self.series = column
                return
            name = header.names[header.time]
            which = f"has a column of times, {name!r}: if each line is one sample, name the"
            other = "; if each line is one series, use ", Argument("drop", name), "."
            refuse_data(
                True, f"{which} column that tells the series apart with ", _SERIES, *other
            )
        if repeats and column is not None and header.numbered < 3:
            name = header.names[column]
            again = f"has lines that share their {name!r}: if each line is one sample, use "
            how = (
                again,
                Argument("series_column", name),
                "; if each line is one series, use ",
            )
            refuse_data(True, *how, Argument("drop", name), ".")
        pair = None if self.label is not None or header.numbered > 2 else _runs(rows)
        if pair is not None:
            what = f"column {pair[0]} repeats while column {pair[1]} rises, counting from 0"
            long = f"seems to hold one sample per line ({what}): name the column that tells"
            other = "; if each line is one series, name its label with "
            refuse_data(
                True, f"{long} the series apart with ", _SERIES, other, _COLUMN, "."
            )

    def parse_samples(self) -> Parsed:
        """Parse one sample per line: its series, its label, its time, and the channels."""
        rows, header, series, width = self.rows, self.header, self.series, self.width
        assert series is not None
        short = next((i for i, row in enumerate(rows) if len(row) != width), None)
        few = (
            f"has {len(rows[short or 0])} values in line {(short or 0) + 1} below its names"
        )
        refuse_data(short is not None, f"{few} but {width} in others: complete that line.")
        column = header.label if self.label is None else self.label
        none = "names no column as labels: name it with "
        wrong = self.labels == "required" and column is None
        refuse_data(wrong, none, _COLUMN, ", or call it label.")
        time = header.time if header.time not in (series, column) else None
        if time is None:
            time = next((i for i in range(width) if _is_clock(rows, series, i)), None)
        left_out = {series, column, header.label, time, *header.row_names, *header.series}
        kept = [i for i in range(width) if i not in left_out]
        refuse_data(
            not kept, "has no column of values beside series, time and label: add one."
        )
        cure = "leave out the times with ", Argument("drop", self._call(time or 0)), " and "
        cure = *cure, Argument("series_column", self._call(series))
        members: dict[str, list[list[str]]] = {}
        for row in rows:
            members.setdefault(bare(row[series]), []).append(row)
        values, found = [], []
        for name, samples in members.items():
            where = f"series {len(values)} ({name[:40]!r})"
            if time is not None:
                written = [bare(row[time]) for row in samples]
                points = [one.replace(",", ".") for one in written]
                written = points if self.known.decimal == "," else written
                samples = _in_order(samples, written, where, cure)
            fields = [[row[i] for row in samples] for i in kept]
            values.append(self._values(fields, where, kept, ""))
            if column is not None:
                own = sorted({bare(row[column]) for row in samples})
                several = (
                    f"gives {where} several labels, {listed(own)}: give each series one."
                )
                refuse_data(len(own) > 1, several)
                found += own
        sizes = sorted({one.shape[1] for one in values})
        steps = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
        one = "1 channel" if len(kept) == 1 else f"{len(kept)} channels"
        layout = f"one sample per line, {len(values)} series of {one} and {steps} steps"
        return Parsed(values, found if column is not None else None, layout=layout)


def _channels(names: Sequence[str], kept: list[int]) -> tuple[list[int], int]:
    """Return the columns of values, channel by channel, and the number of channels.

    Names such as x0, x1, …, y0, y1, … number the steps of each channel.
    """
    named = [names[i] for i in kept] if names else []
    many = len(named) > 3 and all(map(_TWICE_NUMBERED.fullmatch, named))
    twice = f"names its columns with two numbers each, such as {named[0]!r}" if many else ""
    cure = "write one sample per line, with columns of the series, time and channels."
    refuse_data(many, f"{twice}, so channels and steps are not clear: {cure}")
    parts = [_NUMBERED.fullmatch(name) for name in named]
    stems: dict[tuple[str, str], dict[int, int]] = {}
    for column, part in zip(kept, parts, strict=True) if named else ():
        if part is None or not (part[1] or part[3]):
            return kept, 1
        stems.setdefault((part[1], part[3]), {})[int(part[2])] = column
    steps = [sorted(columns) for columns in stems.values()]
    if len(stems) < 2 or len(steps[0]) < 2 or any(one != steps[0] for one in steps):
        return kept, 1
    if sum(map(len, steps)) != len(kept) or steps[0][-1] - steps[0][0] >= len(steps[0]):
        return kept, 1
    return [columns[i] for columns in stems.values() for i in steps[0]], len(stems)


def _runs(rows: Sequence[list[str]]) -> tuple[int, int] | None:
    """Return a column that repeats in runs, and one that rises in each and starts again."""
    width = len(rows[0]) if rows else 0
    if not 3 <= width <= 8 or len(rows) < 8 or any(len(row) != width for row in rows):
        return None
    columns = [[bare(row[i]) for row in rows] for i in range(width)]
    for i, names in enumerate(columns):
        ends = np.array([a != b for a, b in pairwise(names)])
        if not 1 <= ends.sum() <= len(rows) // 4 or len({*names}) != ends.sum() + 1:
            continue
        for j, counts in enumerate(columns):
            numbers = [number(one) for one in counts]
            if i != j and None not in numbers:
                rises = np.diff(np.array(numbers, dtype=float)) > 0
                if np.all(rises == ~ends):
                    return i, j
    return None


def _is_clock(rows: Sequence[list[str]], series: int, column: int) -> bool:
    """Return whether a column rises by the same step at every line of a series."""
    numbers = [number(row[column]) for row in rows]
    if column == series or len(rows) < _ALONE or None in numbers:
        return False
    same = np.array([a[series] == b[series] for a, b in pairwise(rows)])
    steps = np.diff(np.array(numbers, dtype=float))[same]
    return len(steps) > 2 and steps[0] > 0 and bool(np.all(steps == steps[0]))


def _in_order(
    samples: list[list[str]], written: list[str], where: str, cure: Sequence[Part]
) -> list[list[str]]:
    """Return the samples of one series in order of time; raise if one is missing."""
    times = _times(written)
    if times is None:
        return samples
    order = np.argsort(times, kind="stable")
    gaps = np.diff(times[order])
    twice = f"has two samples of {where} at one time: keep one, or "
    refuse_data(np.any(gaps <= 0), twice, *cure, ".")
    wide = np.flatnonzero(gaps > _GAP * np.median(gaps)) if len(gaps) else []
    if len(wide):
        first, second = (written[order[wide[0] + i]] for i in (0, 1))
        lacks = f"lacks samples of {where} between the times {first} and {second}"
        refuse_data(True, f"{lacks}: fill them in, or ", *cure, ".")
    return [samples[i] for i in order]


def _times(written: Sequence[str]) -> NDArray[np.float64] | None:
    """Return numbers or dates in ISO format as numbers; None if they are neither."""
    numbers = [number(one) for one in written]
    if None not in numbers:
        found = np.array(numbers, dtype=float)
        return found if np.all(np.isfinite(found)) else None
    with suppress(ValueError, TypeError, OverflowError):
        dates = [datetime.fromisoformat(one) for one in written]
        return np.array([(one - dates[0]).total_seconds() for one in dates])
    return None


# The first line


class _Header(NamedTuple):
    """Information about a table from its column names."""

    names: Sequence[str] = ()
    label: int | None = None
    row_names: Sequence[int] = ()  # columns that number series: neither labels nor values
    series: Sequence[int] = ()  # columns that tell series apart, the likeliest first
    time: int | None = None
    all_values: bool = False  # the first name continues the numbering (t0, t1, …)
    numbered: int = 0  # names that number steps


def _read_header(rows: Sequence[list[str]]) -> _Header | None:
    """Return the information in the first line, or None if it is not a header."""
    # A header cannot be a series: it names every column, or numbers them like pandas. A
    # mistyped number must not make the first series disappear.
    if not rows or not _is_header(rows[0], rows[1:]):
        return None
    names = [bare(field).casefold() for field in rows[0]]
    width = max((len(row) for row in rows[1:]), default=0)
    refuse_data(not width, "names columns but has no series below: is the file complete?")
    if width == len(names) + 1:  # R leaves the column of row names unnamed
        names = ["", *names]
    more = f"names {len(names)} columns in its first line but has {width} values in a line"
    cure = "name every column, or remove the first line."
    refuse_data(width > len(names), f"{more} below: {cure}")
    known = LABEL_NAMES - {"y"} if "x" in names else LABEL_NAMES  # x and y are two channels
    labels = [i for i, name in enumerate(names) if name in known]
    named = " and ".join(repr(names[i]) for i in labels)
    many = f"names {len(labels)} columns as labels, {named}: leave out one of them with "
    refuse_data(len(labels) > 1, many, _DROP, ".")
    label = labels[0] if labels else None
    unnamed = [0] if label is not None and names[0] == "" else []
    row_names = [i for i, name in enumerate(names) if name in ROW_NAMES]
    numbered = sum(bool(_NUMBERED.fullmatch(name)) for name in names)
    times = [i for i, name in enumerate(names) if name in TIME_NAMES and i != label]
    series = [i for i, name in enumerate(names) if name in _OF_SERIES]
    series.sort(key=lambda i: names[i] in ("index", "unnamed: 0"))
    written = ["", *map(bare, rows[0])][len(rows[0]) - len(names) + 1 :]
    # Check for names such as t0 and t1; bare numbers say nothing.
    one, two = (re.fullmatch(r"(.*\D)(\d+)", name, re.ASCII) for name in (names * 2)[:2])
    carries_on = one and two and one[1] == two[1] and int(one[2]) + 1 == int(two[2])
    return _Header(
        written,
        label,
        [*unnamed, *row_names],
        series,
        times[0] if times else None,
        label is None and bool(carries_on),
        numbered,
    )


def _is_header(first: list[str], others: Sequence[list[str]]) -> bool:
    fields = [bare(field) for field in first]
    given = fields if fields[0] else fields[1:]
    plain = [field for field in given if field.casefold() not in LABEL_NAMES | ROW_NAMES]
    if len(fields) < 2 or not plain:
        return False
    if all(_is_word(field) for field in plain):
        return True
    if len(plain) < len(fields):
        return len(plain) > 1 and _counts(plain)
    # Whole numbers above other numbers are column numbers.
    below = (bare(field) for row in others for field in row[1:])
    if all(map(_WHOLE.fullmatch, below)) or len(fields) < 3:
        return False
    if _is_word(fields[0]):
        return _counts(fields[1:]) and fields[0] not in {bare(row[0]) for row in others}
    return _counts(fields)


def _is_word(field: str) -> bool:
    """Return whether a field is neither a number nor a missing value."""
    missing = field.casefold() in MISSING_VALUES or DECIMAL_COMMA.fullmatch(field)
    return not missing and number(field) is None


def _counts(fields: Sequence[str]) -> bool:
    """Return whether the fields count up by one, from 0 or 1."""
    return any(list(fields) == [str(i + k) for i in range(len(fields))] for k in (0, 1))
