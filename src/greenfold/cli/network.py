"""A network of the user's own: the matrix of its weights from a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse

from ..datasets.errors import DataError
from ..datasets.files import suffix_of
from ..datasets.parsing import read_bytes, read_lines
from ..networks.reservoir import Reservoir

#: Names under which an .npz file with several arrays may hold the weights.
_NAMES = ("weights", "W", "w")
_TARGET = 0.9


def parameters(ctx: typer.Context, weights: Path | None) -> dict[str, Any]:
    """What `--weights` means to `ReservoirClassifier`; nothing where it is not given.

    Parameters
    ----------
    ctx : typer.Context
        Tells whether options were given that would draw a network.
    weights : Path or None
    """
    if weights is None:
        return {}
    for name, option in (("neurons", "--neurons"), ("g", "--g")):
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"{option} is for random networks; it does not go with --weights"
            )
    return {"reservoir": read_weights(weights)}


def read_weights(path: Path) -> np.ndarray:
    """A square matrix of finite numbers that makes a stable network.

    Parameters
    ----------
    path : Path
        ``.npy``, ``.npz`` (one array, or one called ``weights`` or ``W``, or a sparse
        matrix that scipy wrote), or a table ``.csv``, ``.tsv`` or ``.txt`` of numbers.
        Row i holds the connections to neuron i.
    """
    readers = {".npy": _read_npy, ".npz": _read_npz}
    readers |= dict.fromkeys((".csv", ".tsv", ".txt"), _read_table)
    suffix = suffix_of(path)
    if suffix not in readers:
        raise DataError(
            f"`{path}` has the suffix {suffix!r}; weights are read from "
            f"{', '.join(readers)}."
        )
    matrix = readers[suffix](path)
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"`{path}` must hold real numbers; got the type {matrix.dtype}.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise DataError(
            f"`{path}` must hold a square matrix, one row and one column a neuron; got "
            f"shape {matrix.shape}."
        )
    matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise DataError(
            f"`{path}` has the weight {matrix[row, column]} in row {row}, column {column} "
            "(counting from 0): every weight must be a finite number."
        )
    growth = Reservoir(matrix, allow_unstable=True).spectral_abscissa
    if growth >= 1:
        raise DataError(
            f"`{path}` makes the network unstable: the largest real part of the "
            f"eigenvalues is {growth:.4g}, and it must be below 1; multiply the weights by "
            f"{_TARGET / growth:.3g} to reach {_TARGET}."
        )
    return matrix


def _read_npy(path: Path) -> np.ndarray:
    name, content = read_bytes(path)
    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
        if not isinstance(found, np.ndarray):
            raise TypeError("it holds several arrays")  # noqa: TRY301 - one message
    except Exception as error:  # damaged bytes surface as almost anything
        raise _unreadable(name, error) from error
    return found


def _read_npz(path: Path) -> np.ndarray:
    name, content = read_bytes(path)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        if {"format", "shape", "data"} <= set(arrays):
            return sparse.load_npz(io.BytesIO(content)).toarray()
    except Exception as error:
        raise _unreadable(name, error) from error
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    named = [key for key in _NAMES if key in arrays]
    if len(named) != 1:
        raise DataError(
            f"`{name}` holds the arrays {sorted(arrays)}; call the one with the weights "
            "`weights`, or keep it alone."
        )
    return arrays[named[0]]


def _unreadable(name: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:120] or type(error).__name__
    return DataError(
        f"`{name}` cannot be read as numbers without pickled objects ({reason}): write it "
        "again with numpy.save."
    )


def _read_table(path: Path) -> np.ndarray:
    name, lines = read_lines(path)
    full = [line.strip(" ") for line in lines if line.strip()]
    separator = next((s for s in "\t," if full and s in full[0]), None)
    rows = [
        [_number(text, name, row, column) for column, text in enumerate(fields)]
        for row, fields in enumerate(line.split(separator) for line in full)
    ]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise DataError(
            f"`{name}` has {min(lengths)} to {max(lengths)} numbers a line: weights are a "
            "square matrix, one row and one column a neuron."
        )
    return np.array(rows)


def _number(text: str, name: str, row: int, column: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(
            f"`{name}` has {text[:40]!r} in row {row}, column {column} (counting from 0): "
            "weights are a table of numbers, without a header."
        ) from None
