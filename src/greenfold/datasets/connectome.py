"""Read a connectome: the weights between named cells, from a list of edges.

The table is read in parts, so that a file of many millions of edges takes little more
memory than its edges as numbers. Nothing is allocated for cells that no row names.
"""

from __future__ import annotations

import csv
import fnmatch
import gzip
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._base.checks import count, host_array, must, needs, require, without_effect
from .._base.messages import Argument, Part, listed
from .._base.printing import Shown
from .._base.progress import tell, watched
from .files import suffix_of
from .parsed import (
    MISSING_LABELS,
    MISSING_VALUES,
    DataError,
    naming,
    number,
    readable,
    refuse_data,
)

#: Known columns, in order of preference and compared without case: of cells (FlyWire's
#: Codex and its releases, Shiu et al. 2024, neuPrint, general), of weights and of signs.
_PAIRS = (
    ("pre_root_id", "post_root_id"),
    ("pre_pt_root_id", "post_pt_root_id"),
    ("presynaptic_id", "postsynaptic_id"),
    ("bodyid_pre", "bodyid_post"),
    ("source", "target"),
    ("pre", "post"),
    ("from", "to"),
)
_WEIGHTS = "syn_count", "connectivity", "weight", "synapses", "n_syn", "count"
_SIGNS = "nt_type", "neurotransmitter", "transmitter", "excitatory", "sign"
#: Signs of neurotransmitters in FlyWire's spelling and in full. Glutamate inhibits in the
#: fly's brain (Liu and Wilson, PNAS 110, 2013); amines count as excitatory, as in Shiu et
#: al. (Nature 634, 2024).
_TRANSMITTERS = {
    **dict.fromkeys(("ach", "acetylcholine", "da", "dopamine"), 1),
    **dict.fromkeys(("oct", "octopamine", "ser", "serotonin"), 1),
    **dict.fromkeys(("gaba", "glut", "glutamate"), -1),
}
_TEXT = ".csv", ".tsv", ".txt"
#: Suffixes of lists of edges.
SUFFIXES = (*_TEXT, ".parquet")
#: Rows that are read at once, of text and of Parquet. The names in a part are looked up
#: once each, so larger parts are faster.
_ROWS, _ARROW_ROWS = 2**16, 2**20
#: Longest line of text, in characters.
_LONGEST = 2**20
#: A 64-bit number that went through float64, such as 7.20575940596e+17.
_ROUNDED = re.compile(r"\d+(\.\d+)?[eE]\+?\d+", re.ASCII)


@dataclass(frozen=True, eq=False, repr=False)
class Connectome(Shown):
    """The weights between named cells.

    Attributes
    ----------
    weights : scipy sparse array (n_cells, n_cells)
        W_ij is the connection from cell j to cell i, the sum of all its rows in the file.
    names : ndarray (n_cells,) of str
        Names of the cells, in the order of the weights.
    inhibitory : ndarray (n_cells,) of bool
        Cells with outgoing weights that are all negative.
    n_rows : int
        Number of rows of the file.
    n_overruled : int
        Number of rows with a sign other than that of their cell.
    """

    weights: sparse.csr_array[Any]
    names: NDArray[np.str_]
    inhibitory: NDArray[np.bool_]
    n_rows: int
    n_overruled: int = 0

    def strongest(self, weights: ArrayLike, k: int = 10) -> list[tuple[str, float]]:
        """Return the names of the k cells with the largest weights, and these weights.

        ``weights`` is an input projection u or a readout v, (n_cells,), or (n_cells,
        n_channels), of which the norm over several channels counts.

        Examples
        --------
        >>> from greenfold.datasets import Connectome
        >>> from scipy.sparse import csr_array
        >>> cells = Connectome(csr_array((3, 3)), ["AVAL", "RIB", "PVC"], [False] * 3, 0)
        >>> cells.strongest([0.1, -0.7, 0.3], 2)
        [('RIB', -0.7), ('PVC', 0.3)]
        """
        values = host_array(weights, "weights", ndim=(1, 2))
        wanted = f"have one row for each of the {len(self.names)} cells"
        must(len(values) == len(self.names), "weights", wanted, f"shape {values.shape}")
        several = values.ndim == 2 and values.shape[1] > 1
        each = np.linalg.norm(values, axis=1) if several else values.reshape(len(values))
        order = np.argsort(-np.abs(each), kind="stable")[: count(k, "k")]
        return [(str(self.names[i]), float(each[i])) for i in order]

    def _facts(self) -> dict[str, Any]:
        W = self.weights
        size = abs(W)
        sources, targets = size.sum(axis=0) > 0, size.sum(axis=1) > 0
        facts = {"cells": len(self.names), "connections": int(W.nnz), "rows": self.n_rows}
        facts |= {"total_weight": float(size.sum())}
        facts |= {"inhibitory": int(self.inhibitory.sum())}
        facts |= {"without_input": int((~targets).sum())}
        facts |= {"without_output": int((~sources).sum())}
        return facts | ({"overruled": self.n_overruled} if self.n_overruled else {})


@watched
def read_connectome(
    path: str | Path,
    *,
    source: str = "auto",
    target: str = "auto",
    weight: str | None = "auto",
    sign: str | None = "auto",
    transmitters: Mapping[str, int] | None = None,
    inhibitory: str | Path | Iterable[object] | None = None,
    cells: str | Path | Iterable[object] | None = None,
) -> Connectome:
    r"""Read a connectome from a list of edges, one row per connection.

    Names of cells are kept as text, so that numbers of 64 bits lose no digits. Parallel
    edges are summed. The columns of FlyWire, neuPrint and of general lists (``source``,
    ``target``, ``weight``) are found by themselves.

    Parameters
    ----------
    path : str or Path
        A table with a header line: ``.csv``, ``.tsv`` or ``.txt``, also with ``.gz``, or
        ``.parquet`` (extra ``greenfold[parquet]``).
    source, target : str, default "auto"
        Columns of the cells that an edge comes from and goes to.
    weight : str or None, default "auto"
        Column of the weights, such as the number of synapses; None counts each row as 1,
        and so does "auto" if there are only two columns.
    sign : str or None, default "auto"
        Column of the signs: numbers, of which negative ones inhibit; true or false; or
        names of neurotransmitters. A cell has one sign (Dale's law), that of most of its
        synapses; of equally many, it excites. None keeps the signs of the weights.
        "auto" uses ``nt_type``, ``neurotransmitter``, ``transmitter``, ``Excitatory`` or
        ``sign`` if the file has one of these columns and no negative weights, unless you
        name the `inhibitory` cells.
    transmitters : mapping of str to ±1, optional
        Signs of the values in a column of text, compared without case; ``""`` stands for
        a missing value. By default GABA and GLUT (glutamate) inhibit, and ACH, DA, OCT and
        SER excite; others are refused.
    inhibitory : path or iterable, optional
        Cells whose weights are negated; all others excite: their names, or patterns such as
        ``"GABA*"``; or a file that lists them in its first column.
    cells : path or iterable, optional
        All cells, in the order of the neurons: their names, or a file that lists them in
        its first column. Cells without edges are kept. By default, the cells are those of
        the edges, sorted by name or number.

    Returns
    -------
    Connectome
        Pass it to `Reservoir.from_graph`.

    Raises
    ------
    DataError, FileNotFoundError
        If there is no file, or it is no such table; the message says what to change.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from greenfold import Reservoir
    >>> from greenfold.datasets import read_connectome
    >>> text = "pre,post,count\nA,B,3\nB,C,1\nC,A,2\nA,B,2\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "edges.csv")
    ...     _ = path.write_text(text)
    ...     connectome = read_connectome(path, inhibitory=["C"])
    >>> connectome.names.tolist(), connectome.weights.toarray().tolist()
    (['A', 'B', 'C'], [[0.0, 0.0, -2.0], [5.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    """
    signed = inhibitory is not None
    both = signed and sign not in ("auto", None)
    without_effect(both, "sign", "beside `inhibitory`, which gives the signs")
    without_effect(
        signed and transmitters is not None, "transmitters", "beside `inhibitory`"
    )
    inhibitors = _listed_cells(inhibitory, "inhibitory")
    known = _Cells(_listed_cells(cells, "cells"))
    wanted = {"source": source, "target": target, "weight": weight, "sign": sign}
    with naming(path), _opened(path) as (columns, parts):
        roles = _choose(columns, wanted, signed)
        edges = _read(parts, roles, known, transmitters)
    order = known.order()
    names = np.array([name for name, _ in order], dtype=np.str_)
    place = np.empty(len(order), dtype=np.int32)
    place[[code for _, code in order]] = np.arange(len(order), dtype=np.int32)
    sources, targets, values = place[edges[0]], place[edges[1]], edges[2]
    signs, overruled = np.ones(len(names)), 0
    negative = bool((values < 0).any())
    if inhibitors is not None:
        _refuse_negative(path, negative, "inhibitory")
        places = {name: i for i, name in enumerate(names.tolist())}
        for at, name in enumerate(inhibitors):
            found = [name] if name in places else fnmatch.filter(places, name)
            heading = at == 0 and isinstance(inhibitory, str | Path)  # a name, or not
            wanted = f"name cells of `{path}`"
            must(found or heading, "inhibitory", wanted, repr(name))
            signs[[places[one] for one in found]] = -1
    elif edges[3:] and not (negative and sign == "auto"):
        _refuse_negative(path, negative, "sign")
        votes = np.bincount(sources, edges[3] * values, minlength=len(names))
        signs[votes < 0] = -1
        overruled = int((signs[sources] != edges[3]).sum())
    shape = (len(names), len(names))
    W = sparse.csr_array((values * signs[sources], (targets, sources)), shape=shape)
    W.eliminate_zeros()
    falls = np.bincount(W.indices, W.data < 0, len(names))
    n_out = np.bincount(W.indices, minlength=len(names))
    for array in (W.data, W.indices, W.indptr, names):
        array.flags.writeable = False
    return Connectome(W, names, (n_out > 0) & (falls == n_out), len(values), overruled)


def is_edge_list(path: str | Path) -> bool:
    """Return whether a file holds a table with names of columns in its first line.

    If any entry of that line is a number, the file holds a matrix.
    """
    suffix = suffix_of(path)
    if suffix not in SUFFIXES or not os.path.isfile(path):
        return False
    if suffix == ".parquet":
        return True
    with naming(path), _lines(path) as rows:
        fields = next(rows, [])
    return all(number(one) is None for field in fields for one in field.split())


def _refuse_negative(path: object, negative: bool, name: str) -> None:
    with naming(str(path)):
        own = "has negative weights, which are signs already"
        refuse_data(negative, f"{own}: leave ", Argument(name), " out.")


def _listed_cells(cells: object, argument: str) -> list[str] | None:
    """Return names, or those in the first column of a file."""
    if cells is None:
        return None
    if isinstance(cells, str | Path):
        path = cells
        wanted = "be a list of names, or a file with the names in its first column"
        must(os.path.exists(path), argument, wanted, repr(str(path)))
        with naming(path):
            names: list[str] = []
            with _opened(path) as (columns, parts):
                names += columns[:1] if argument == "inhibitory" else []
                for (part,) in parts(columns[:1]):
                    names += [part.names[code] for code in part.codes]
            _refuse_rounded(names)
    else:
        fits = isinstance(cells, Iterable) and not isinstance(cells, bytes)
        must(fits, argument, "be a list of names", repr(cells), TypeError)
        names = [str(name).strip() for name in cast(Iterable[object], cells)]
    require(names or argument != "cells", "`cells` is empty: list at least one cell.")
    seen = set[str]()
    for name in names:
        must(name not in seen, argument, "be different", f"{name!r} twice")
        seen.add(name)
    return names


def _refuse_rounded(names: Iterable[str]) -> None:
    found = next((name for name in names if _ROUNDED.fullmatch(name)), None)
    lost = f"names a cell {found}, a number that has lost digits"
    refuse_data(found is not None, f"{lost}: write the names as whole numbers or text.")


class _Cells:
    """The codes of cells, in the order in which they are first seen or listed."""

    def __init__(self, listed: list[str] | None) -> None:
        self.is_fixed = listed is not None
        self.codes = {name: code for code, name in enumerate(listed or ())}

    def read(self, column: _Column) -> NDArray[np.int32]:
        """Return the code of each row; raise if one is empty or not listed."""
        names, codes = column.names, self.codes
        empty = f"has an edge without a name in its column `{column.name}`"
        cure = "name the cell, or remove the row"
        missing = any(one.casefold() in MISSING_LABELS for one in names)
        refuse_data(missing, f"{empty}: {cure}.")
        for name in names:
            if self.is_fixed and name not in codes:
                what = f"has an edge with the cell {name!r}, which "
                cure = " does not list: add it, or remove its edges."
                raise DataError(what, Argument("cells"), cure)
            codes.setdefault(name, len(codes))
        return np.array([codes[name] for name in names], dtype=np.int32)[column.codes]

    def order(self) -> list[tuple[str, int]]:
        """Return names and codes in the order of the neurons."""
        found = list(self.codes.items())
        if self.is_fixed:
            return found
        if all(name.isdecimal() for name in self.codes):
            return sorted(found, key=lambda one: (int(one[0]), one[0]))
        return sorted(found)


class _Roles(NamedTuple):
    source: str
    target: str
    weight: str | None
    sign: str | None


def _choose(
    columns: Sequence[str], wanted: Mapping[str, str | None], signed: bool
) -> _Roles:
    """Return the columns of an edge list, as named or by their known names."""
    known = {name.casefold(): name for name in reversed(columns)}
    has = f"has the columns {listed(columns, 12)}"
    for name, value in wanted.items():
        wrong = value not in (None, "auto") and value not in columns
        refuse_data(wrong, f"{has}, but no {value!r}: correct ", Argument(name), ".")
    ends = next((one for one in _PAIRS if all(end in known for end in one)), ("", ""))
    chosen: list[str] = []
    for name, found in zip(("source", "target"), ends, strict=True):
        value = known.get(found) if wanted[name] == "auto" else wanted[name]
        what = f"{has}, of which none is known as the {name} of the edges"
        refuse_data(value is None, f"{what}: name it with ", Argument(name), ".")
        chosen.append(str(value))
    weight, sign = wanted["weight"], wanted["sign"]
    if weight == "auto":
        weight = next((known[one] for one in _WEIGHTS if one in known), None)
        none = f"{has}, of which none is known as the weight: name it with "
        count = ", or pass ", Argument("weight=None"), " to count each row as 1"
        unknown = weight is None and len(columns) > 2
        refuse_data(unknown, none, Argument("weight"), count, ".")
    if sign == "auto":
        # A column that is in use as weights gives no signs beside them.
        free = [one for one in _SIGNS if known.get(one) not in (None, weight)]
        sign = None if signed or not free else known[free[0]]
    roles = _Roles(chosen[0], chosen[1], weight, sign)
    used = [one for one in roles if one is not None]
    twice = next((one for one in used if used.count(one) > 1), None)
    cure = "name a column for each"
    refuse_data(twice is not None, f"would use its column {twice!r} twice: {cure}.")
    return roles


def _read(
    read_parts: _Parts,
    roles: _Roles,
    cells: _Cells,
    transmitters: Mapping[str, int] | None,
) -> list[NDArray[Any]]:
    """Return codes of sources and targets, weights, and signs if there are any."""
    names = [one for one in roles if one is not None]
    known, saw_text = _signs_by_name(transmitters), False
    parts: list[list[NDArray[Any]]] = []
    n_rows = 0
    for columns in read_parts(names):
        part = dict(zip(names, columns, strict=True))
        found: list[NDArray[Any]] = [cells.read(part[end]) for end in roles[:2]]
        if not n_rows:
            _refuse_rounded(islice(cells.codes, _ROWS))
        weight = None if roles.weight is None else part[roles.weight].numbers(n_rows)
        found.append(np.ones(len(found[0])) if weight is None else weight)
        if roles.sign is not None:
            found.append(_signs(part[roles.sign], n_rows, known))
            saw_text = saw_text or part[roles.sign].is_text
        parts.append(found)
        n_rows += len(found[0])
        tell(f"{n_rows:,} edges, {len(cells.codes):,} cells")
    refuse_data(not n_rows, "holds no edges: is it the right, complete file?")
    given = transmitters is not None
    idle = "without a column of their names"
    without_effect(given and not saw_text, "transmitters", idle)
    return [np.concatenate(one) for one in zip(*parts, strict=True)]


def _signs_by_name(transmitters: Mapping[str, int] | None) -> dict[str, int]:
    """Return the signs of neurotransmitters, without blanks and case."""
    given = _TRANSMITTERS if transmitters is None else transmitters
    must(isinstance(given, Mapping), "transmitters", "map names to 1 or -1", given)
    for name, value in given.items():
        fits = value in (1, -1)
        must(fits, "transmitters", "map names to 1 or -1", f"{value!r} for {name!r}")
    return {str(name).strip().casefold(): sign for name, sign in given.items()}


def _signs(column: _Column, first: int, known: Mapping[str, int]) -> NDArray[np.float64]:
    """Return ±1 for each row, from numbers or from names of neurotransmitters."""
    if not column.is_text:
        values = column.numbers(first)
        values = 2 * values - 1 if column.kind == "bool" else values
        zero = np.flatnonzero(values == 0)
        at = f"in row {first + zero[0] + 1}" if len(zero) else ""
        what = f"has the sign 0 {at} of its column `{column.name}`"
        refuse_data(len(zero), f"{what}: signs must be positive or negative.")
        return np.sign(values)
    signs = list[int]()
    for name in column.values:
        key = name.casefold()
        key = "" if key in MISSING_VALUES and key not in known else key
        if key not in known:
            shown = name[:40] if key else ""
            what = f"has no sign for the value {shown!r} in its column `{column.name}`"
            how: Part = ": give it 1 or -1 in ", Argument("transmitters"), ","
            other = " or choose another column as ", Argument("sign"), "."
            raise DataError(what, how, *other)
        signs.append(known[key])
    return np.array(signs, dtype=np.float64)[column.codes]


# Tables in parts


class _Column(NamedTuple):
    """Some rows of one column: its different values as text, and the index of each row's.

    ``kind`` is the type of the column in Parquet; text, with any of them, has none.
    """

    name: str
    values: list[str]
    codes: NDArray[np.intp]
    kind: str = ""

    @classmethod
    def of_text(cls, name: str, rows: Sequence[str]) -> _Column:
        known: dict[str, int] = {}
        codes = [known.setdefault(one, len(known)) for one in map(str.strip, rows)]
        return cls(name, list(known), np.array(codes, dtype=np.intp))

    @classmethod
    def of_arrow(cls, name: str, rows: Any) -> _Column:
        if str(rows.type).startswith("dictionary"):
            rows = rows.dictionary_decode()
        kind = str(rows.type)
        rows = rows.cast("int8") if kind == "bool" else rows
        coded = rows.dictionary_encode("encode")
        values = coded.dictionary.to_pylist()
        names = ["" if one is None else str(one).strip() for one in values]
        codes = coded.indices.to_numpy(zero_copy_only=False)
        return cls(name, names, codes.astype(np.intp), kind)

    @property
    def names(self) -> list[str]:
        """The different names of cells; raise if they went through floats."""
        lost = f"stores its column `{self.name}` as {self.kind}, which rounds large numbers"
        cure = "write the names of cells as whole numbers or text"
        refuse_data(self.kind in ("halffloat", "float", "double"), f"{lost}: {cure}.")
        return self.values

    @property
    def is_text(self) -> bool:
        """Whether some value is not a number."""
        if self.kind:
            return self.kind in ("string", "large_string", "null")
        return any(number(one) is None for one in self.values)

    def numbers(self, first: int) -> NDArray[np.float64]:
        """Return the rows as finite numbers, where rows before them count ``first``."""
        what = f"stores its column `{self.name}` as {self.kind}, where numbers must be"
        fits = re.match(r"u?int|float|double|halffloat|decimal|bool|$", self.kind)
        refuse_data(fits is None, f"{what}: choose another column or convert it.")
        # Python reads 1_0 as ten. NumPy makes NaN of None.
        found = [None if "_" in one else number(one) for one in self.values]
        made = np.array(found, dtype=np.float64)[self.codes]
        for row in np.flatnonzero(~np.isfinite(made))[:1]:
            value = self.values[self.codes[row]][:40]
            what = f"has {value!r} in row {first + row + 1} (from 1, below the header)"
            where = f"of its column `{self.name}`, where a finite number must be"
            raise DataError(f"{what} {where}: correct the row or remove it.")
        return made


#: A function that yields the named columns of a table, some rows at a time.
_Parts: TypeAlias = Callable[[Sequence[str]], Iterator[list[_Column]]]


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[list[str], _Parts]]:
    """Open a table, and yield the names of its columns and a reader of its rows."""
    none = f"`{path}` does not exist: pass the path of a list of edges."
    require(os.path.exists(path), none, FileNotFoundError)
    suffix = suffix_of(path)
    usable = suffix in SUFFIXES and os.path.isfile(path)
    what = f"has the suffix {suffix!r}, and lists of edges are files with"
    refuse_data(not usable, f"{what} {', '.join(SUFFIXES)}: convert it.")
    if suffix == ".parquet":
        with needs("Parquet", "parquet"):
            library = import_module("pyarrow.parquet")
        with (
            readable(".parquet", "fetch or write it again"),
            library.ParquetFile(path) as it,
        ):
            yield list(it.schema_arrow.names), partial(_arrow_parts, it)
        return
    with _lines(path) as rows:
        header = [name.strip() for name in next(rows, [])]
        refuse_data(not header, "is empty: is it the right, complete file?")
        entry = next((one for one in header if number(one) is not None), None)
        none = f"has {entry!r} in its first line, which must name its columns"
        refuse_data(entry is not None, f"{none}: add that line.")
        yield header, partial(_text_parts, header, rows)


@contextmanager
def _lines(path: str | Path) -> Iterator[Iterator[list[str]]]:
    """Open a table of text, and yield an iterator over its lines as lists of fields."""
    packed = os.fspath(path).lower().endswith(".gz")
    kind = "gzip" if packed else "a table of UTF-8 text"
    opener: Any = gzip.open if packed else open
    # utf-8-sig, because spreadsheet programs write a byte order mark first.
    how = {"mode": "rt", "encoding": "utf-8-sig", "newline": ""}
    with readable(kind, "fetch or write it again"), opener(path, **how) as stream:
        first = stream.readline(_LONGEST)
        separator = next((s for s in "\t;," if s in first), None)
        lines = chain([first], iter(partial(stream.readline, _LONGEST), ""))
        if separator is None:
            yield map(str.split, lines)
        else:
            yield csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _text_parts(
    header: list[str], rows: Iterator[list[str]], names: Sequence[str]
) -> Iterator[list[_Column]]:
    places = [header.index(name) for name in names]
    n_read = 0
    while block := [row for row in islice(rows, _ROWS) if row]:
        lengths = np.array(list(map(len, block)))
        if (wrong := lengths != len(header)).any():
            at = int(np.flatnonzero(wrong)[0])
            what = f"has {lengths[at]} fields in row {n_read + at + 1} (from 1, below the "
            whole = "is the file complete?"
            refuse_data(True, f"{what}header) but names {len(header)} columns: {whole}")
        n_read += len(block)
        columns = [*zip(*block, strict=True)]
        yield [_Column.of_text(header[i], columns[i]) for i in places]


def _arrow_parts(table: Any, names: Sequence[str]) -> Iterator[list[_Column]]:
    for part in table.iter_batches(batch_size=_ARROW_ROWS, columns=list(names)):
        yield [_Column.of_arrow(name, part.column(name)) for name in names]
