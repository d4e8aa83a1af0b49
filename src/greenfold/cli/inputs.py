"""Read the user's files: labelled series, tasks and weights."""

import io
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import typer
from scipy import sparse

from .._base import arrays
from .._base.checks import device_name, require
from .._base.messages import listed
from ..apps.demo import demo_task
from ..apps.report.comparison import Split
from ..datasets import DataError, OpenedSeries
from ..datasets import files as formats
from ..datasets.arrays import load_array, load_arrays
from ..datasets.connectome import SUFFIXES, Connectome, is_edge_list, read_connectome
from ..datasets.downloads import load_dataset
from ..datasets.files import read_bytes, suffix_of
from ..datasets.parsed import Labels, Missing, canonical_labels, lines_of, naming, reason
from ..datasets.tables import TableHints
from ..networks.matrices import by_products
from ..networks.reservoir import Reservoir
from .options import (
    EDGE_COLUMNS,
    SYNTHETIC,
    TABLE,
    NetworkOptions,
    PartName,
    Reading,
    Tested,
    invocation,
    refuse_if,
)
from .show import printable

#: Labelled series in memory, or in a file that is read in slices.
Series: TypeAlias = np.ndarray | list[np.ndarray] | OpenedSeries

_STDIN = "-"
#: Series up to this size, in bytes of float64, are read at once, whatever the format.
_IN_MEMORY = 2**28


def is_file(data: str, form: str | None = None) -> bool:
    """Return whether DATA is a file rather than the name of a data set."""
    path = Path(data)
    known = _has_known_suffix(path) or path.exists() or len(path.parts) > 1
    return bool(data == _STDIN or form or known)


def _has_known_suffix(path: Path) -> bool:
    return suffix_of(path)[1:] in formats.FORMATS or path.suffix.lower() in formats.OPENED


def load_series(
    data: str,
    reading: Reading,
    *,
    y: Path | None = None,
    part: PartName = "train",
    seed: int = 0,
    labels: Labels = "required",
    keep_missing: bool = False,
    hints: TableHints = TableHints(),
) -> tuple[Series, Any]:
    """Return series and labels of a file, or of one part of a data set.

    ``y`` is a file with the labels, ``seed`` is for the built-in series, and ``hints`` are
    what a model knows about its series.
    """
    if is_file(data, reading.format):
        invocation.refuse("is for data sets; leave it out with a file", "data_dir", "part")
        if y is not None or labels == "none":
            why = "names a column with labels; leave out --y and --no-labels"
            invocation.refuse(why, "label_column")
        if reading.format is None and _is_opened(Path(data)):
            why = "is for files that are read at once; leave it out"
            invocation.refuse(why, "trim", "series_column", "decimal", "encoding")
        wanted = labels if y is None else "none"
        X, found = _read(data, reading, wanted, keep_missing, hints)
        found = found if y is None else _read_labels(y, len(X))
        return of_classes(X, found, reading.classes, data)
    own = "needs a file; a data set has its own labels and test series"
    invocation.refuse(own, "y", "test", "holdout", "labels", *TABLE)
    if data == SYNTHETIC:
        invocation.refuse(f"does not apply to {data}; leave it out", "data_dir", "trim")
        drawn = demo_task(seed)
        parts = {"train": (drawn.X, drawn.y), "test": drawn.judged[:2]}
        X, found = map(np.concatenate, zip(*parts.values(), strict=True))
        X, found = parts.get(part, (X, found))
    else:
        wanted, missing = None if part == "all" else part, _missing(reading, keep_missing)
        X, found = load_dataset(data, wanted, data_dir=reading.data_dir, missing=missing)
    return of_classes(X, found, reading.classes, data)


def of_classes(
    X: Series, y: Any, wanted: list[str] | None, data: str
) -> tuple[Series, Any]:
    """Return the series of some classes, or of one class and all others."""
    if wanted is None:
        return X, y
    refuse_opened(X, "--classes")
    refuse_if(not wanted, "--classes must name a class")
    named = np.asarray(y).astype(str)
    known = np.unique(named).tolist()
    absent = next((one for one in wanted if one not in known), None)
    few = f"`{data}` has no class {absent!r}; --classes may name {listed(known)}."
    require(absent is None, few, DataError)
    if len(set(wanted)) == 1:
        return X, np.where(named == wanted[0], wanted[0], f"not {wanted[0]}")
    kept = np.flatnonzero(np.isin(named, wanted))
    return _take(X, kept), np.asarray(y)[kept]


def load_task(
    data: str,
    files: Tested,
    *,
    seed: int,
    holdout: float,
    keep_missing: bool = False,
    device: str = "cpu",
    leave: bool = False,
) -> Split:
    """Return training and test series; test series may be a file or a random share.

    With ``leave``, there are no test series if none can be held out and --holdout was not
    given.
    """
    test, name = files.test, title_of(data, files.classes)
    load = partial(load_series, data, files, y=files.y, seed=seed)
    load = partial(load, keep_missing=keep_missing)
    if not is_file(data, files.format):
        train, judged = load(part="train"), load(part="test")
        told = "Training and test series of the archive."
        task = Split(name, *train, *judged, told)
        plain = data == SYNTHETIC and files.classes is None
        return _on_device(demo_task(seed) if plain else task, device)
    refuse_if(str(test) == data == _STDIN, "only one of DATA and --test can be -")
    X, y = load()
    if test is not None:
        invocation.refuse("is for a file alone; leave it out with --test", "holdout")
        form = None if _has_known_suffix(test) else files.format
        judged = _read(str(test), replace(files, format=form), "required", keep_missing)
        X_test, y_test = of_classes(*judged, files.classes, str(test))
        task = Split(name, X, y, X_test, y_test, f"Test series from {test.name}.")
    else:
        leave = leave and not invocation.given("holdout")
        if holdout and not leave:
            refuse_opened(X, "--holdout")
        train, held = np.arange(len(y)), np.empty(0, dtype=int)
        if holdout and not isinstance(X, OpenedSeries):
            train, held = _hold_out(y, holdout, seed)
        few = "there are too few series to hold any out: give a file with --test, or "
        few += "train on all with `greenfold fit --holdout 0`."
        require(len(held) or leave or not holdout, few, DataError)
        task = Split(name, X, y, note="All series of the file were used for training.")
        if len(held):
            note = (
                f"{len(held)} of {len(y)} series were held out as test series, at random."
            )
            parts = _take(X, train), y[train], _take(X, held), y[held]
            task = Split(name, *parts, note, whole=(X, y))
    return _on_device(task, device)


def title_of(data: str, classes: list[str] | None = None) -> str:
    """Return a name for the data, or for some classes of it."""
    name = "standard input" if data == _STDIN else Path(data).name
    if not classes:
        return name
    if len(classes) == 1:
        return f"{name}, class {classes[0]} and the others"
    return f"{name}, classes {', '.join(classes[:-1])} and {classes[-1]}"


def _read(
    data: str,
    reading: Reading,
    labels: Labels,
    keep_missing: bool,
    hints: TableHints = TableHints(),
) -> tuple[Series, Any]:
    """Return series and labels of a file, or of standard input."""
    form = reading.format
    piped, known_forms = data == _STDIN, ", ".join(formats.FORMATS)
    wrong = form is not None and form.lower().lstrip(".") not in formats.FORMATS
    refuse_if(wrong, f"--format must be one of {known_forms}, not {form!r}")
    why = f"has no suffix; name its format with --format: {known_forms}"
    refuse_if(piped and form is None, f"standard input (-) {why}")
    if form is None and _is_opened(Path(data)):
        y, drop = reading.label_column, reading.drop or ()
        X, y = formats.open_series(data, y=y, drop=drop)
        small = 8 * np.prod(X.shape, dtype=float) <= _IN_MEMORY
        X, y = X[:] if small else X, None if labels == "none" else y
    else:
        read: Any = formats.read_with_origin(
            sys.stdin.buffer if piped else data,
            _missing(reading, keep_missing),
            "none" if suffix_of(data, form) == ".npy" else labels,
            form,
            hints._replace(
                label_column=reading.label_column,
                series_column=reading.series_column,
                drop=reading.drop or (),
                decimal=reading.decimal,
                encoding=reading.encoding,
            ),
        )
        X, y, origin, layout = read.series, read.labels, read.origin, read.layout
        if layout and not hints.classes:
            invocation.notes.append(f"Read {data} as {layout}.")
        if origin and not hints.classes:  # a model knows how long its series are
            found, counts = np.unique(y, return_counts=True)
            each = listed(map("{} ({})".format, map(printable, found), counts), 6)
            wrong = "if these are no labels, give --label-column"
            taken = f"Took {origin} of {data} as labels, {len(found)} classes"
            invocation.notes.append(f"{taken}: {each}; {wrong}.")
    how = "give a file of labels with --y, or write series and labels into one file"
    found = labels != "required" or y is not None
    require(found, f"`{data}` holds no labels `y`: {how}.", DataError)
    return X, y


def _is_opened(path: Path) -> bool:
    """Return whether a file is read in slices; a small ``.npy`` file is not."""
    if path.suffix.lower() == ".npy":
        return path.is_file() and path.stat().st_size > _IN_MEMORY
    return path.suffix.lower() in formats.OPENED


def _missing(reading: Reading, keep: bool) -> Missing:
    return "trim" if reading.trim else "keep" if keep else "error"


def refuse_opened(X: Series, option: str) -> None:
    """Raise if the series are read in slices, because the option needs them in memory."""
    if isinstance(X, OpenedSeries):
        raise typer.BadParameter(
            f"{option} needs the series in memory, but `{X.path}` is read in slices, "
            f"because it holds {len(X)} series of {X.shape[-1]} steps; leave it out"
            + (", or give a file with --test" if option == "--holdout" else "")
        )


def _read_labels(path: Path, n_cases: int) -> np.ndarray:
    """Return the labels in a separate file, ``.npy`` or text with one label per line."""
    name, content = read_bytes(path)
    with naming(name):
        if suffix_of(path) == ".npy":
            written = [str(label) for label in load_array(content).ravel().tolist()]
        else:
            written = [line for line in lines_of(content) if line.strip()]
            if len(written) == n_cases + 1:  # the name of the column
                written = written[1:]
        why = f"holds {len(written)} labels for {n_cases} series: give each series one."
        require(len(written) == n_cases, why, DataError)
        labels = canonical_labels(written)
    assert labels is not None  # required by default
    return labels


def _hold_out(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of training and held-out series; hold out a share per class."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        # At least one series of each class stays in training.
        held[members[: min(round(share * len(members)), len(members) - 1)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _take(X: Series, index: np.ndarray) -> Series:
    return [X[i] for i in index] if isinstance(X, list) else X[index]


def _on_device(task: Split, device: str) -> Split:
    """Return the task with its series on a device."""
    if device_name(device) == "cpu":
        return task
    refuse_opened(task.X, "--device")
    several = isinstance(task.X, list) or isinstance(task.X_test, list)
    stay = "yours differ in length and stay on the host, so leave it out"
    refuse_if(several, f"--device {device} needs series of one length; {stay}")
    X_test = None if task.X_test is None else arrays.on_device(task.X_test, device)
    whole = task.whole and (arrays.on_device(task.whole[0], device), task.whole[1])
    return replace(task, X=arrays.on_device(task.X, device), X_test=X_test, whole=whole)


#: Names under which an .npz file with several arrays may hold the weights.
_NAMES = ("weights", "W", "w")
#: The error about an unstable network suggests scaling it to this spectral abscissa.
_TARGET = 0.9


def read_network(given: NetworkOptions, path: Path) -> tuple[Any, Connectome | None]:
    """Return the weights in a file, and the connectome if it is a list of edges."""
    if not is_edge_list(path):
        why = f"is for lists of edges, and {path} is none; leave it out"
        invocation.refuse(why, "columns", "inhibitory", "cells")
        why = "is for random networks and lists of edges; leave it out with --weights"
        invocation.refuse(why, "g")
        return read_network_weights(path), None
    named: dict[str, Any] = dict(zip(EDGE_COLUMNS, given.columns or (), strict=False))
    if "sign" in named:
        why = "gives signs, and so does the fourth of --columns; leave one out"
        invocation.refuse(why, "inhibitory")
    signs: Any = given.inhibitory
    if signs and len(signs) == 1:
        file = Path(signs[0])
        signs = file if file.is_file() or suffix_of(file) in SUFFIXES else signs
    found = read_connectome(path, **named, inhibitory=signs, cells=given.cells)
    signed = f"{int(found.inhibitory.sum())} of them inhibitory"
    invocation.notes.append(f"Read {len(found.names)} cells from {path}, {signed}.")
    return Reservoir.from_graph(found, given.g).weights, found


def read_network_weights(path: Path) -> "np.ndarray | sparse.csr_array[Any]":
    """Return the square matrix in a file; raise if its network is unstable."""
    readers = {".npy": load_array, ".npz": _weights_of_npz}
    readers |= dict.fromkeys((".csv", ".tsv", ".txt"), _weights_of_table)
    suffix = suffix_of(path)
    kinds = f"{', '.join(readers)}, and lists of edges from .parquet too"
    why = f"has the suffix {suffix!r}; weights are read from {kinds}"
    require(suffix in readers, f"`{path}` {why}.", DataError)
    name, content = read_bytes(path)
    with naming(name):
        network = Reservoir(readers[suffix](content), allow_unstable=True)
        growth = network.spectral_abscissa
        if growth >= 1:
            part = f"the largest real part of the eigenvalues is {growth:.4g}"
            how = f"multiply the weights by {_TARGET / growth:.3g} to reach {_TARGET}"
            unstable = f"makes the network unstable: {part}, and it must be below 1"
            raise DataError(f"{unstable}; {how}.")
    return network.weights


def _weights_of_npz(content: bytes) -> "np.ndarray | sparse.csr_array[Any]":
    arrays = load_arrays(content, "numpy.savez(path, weights=weights)")
    if {"format", "shape", "data"} <= set(arrays):
        found = sparse.csr_array(sparse.load_npz(io.BytesIO(content)))
        return found if by_products(found) else found.toarray()
    named = [key for key in _NAMES if key in arrays]
    how = "call the array of weights `weights`, or store it alone"
    one = len(arrays) == 1 or len(named) == 1
    require(one, f"holds the arrays {sorted(arrays)}; {how}.", DataError)
    return arrays[next(iter(arrays if len(arrays) == 1 else named))]


def _weights_of_table(content: bytes) -> np.ndarray:
    lines = [line.strip(" ") for line in lines_of(content) if line.strip()]
    separator = next((s for s in "\t;," if lines and s in lines[0]), None)
    edges = "if it is a list of edges, name its columns in a first line, such as "
    edges += ",".join(EDGE_COLUMNS[:3])
    try:
        found = np.loadtxt(lines, delimiter=separator, ndmin=2)
    except ValueError as error:
        why = reason(error).partition(";")[0]
        wanted = (
            "cannot be read as a matrix of numbers, one line per neuron, without header"
        )
        raise DataError(f"{wanted} ({why}); {edges}.") from None
    shape = (
        f"has {found.shape[0]} lines of {found.shape[1]} numbers, which is no square matrix"
    )
    require(len(found) == found.shape[1], f"{shape}; {edges}.", DataError)
    return found
