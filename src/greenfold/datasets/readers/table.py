"""Label-first tables: the UCR archive's ``.tsv`` and ``.txt``, and the same as ``.csv``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenfold.datasets.errors import DataError
from greenfold.datasets.readers.collection import (
    Collection,
    Missing,
    assemble,
    check_missing_policy,
    parse_values,
    read_lines,
)
from greenfold.datasets.readers.labels import canonical_labels

__all__ = ["read_table"]


def read_table(
    path: str | Path, *, missing: Missing = "error"
) -> tuple[Collection, NDArray[Any]]:
    """Read a table with one univariate series a line, the class label first.

    The separator (tab, comma or blanks) is taken from the first line. A line shorter
    than the longest one counts as padded with missing values, as in the 2018 UCR
    archive: nothing else tells a short series from a file cut off in transfer.

    Parameters
    ----------
    path : str or Path
    missing : {"error", "keep", "trim"}, default "error"
        See :func:`greenfold.datasets.read_series`.

    Returns
    -------
    X : ndarray of shape (n_cases, n_steps), or list of (1, n_steps_i) arrays
    y : ndarray of shape (n_cases,)
        Integers if all labels are whole numbers, else strings.

    Raises
    ------
    DataError
        If the file does not hold such a table, or has missing values that `missing`
        does not allow.
    FileNotFoundError
        If there is no such file.
    """
    check_missing_policy(missing)
    path, lines = read_lines(path)
    rows: list[NDArray[np.float64]] = []
    labels: list[str] = []
    separator: str | None = None
    for line in lines:
        line = line.strip(" \r")
        if not line.strip():
            continue
        if not rows:
            separator = next((s for s in "\t," if s in line), None)
        label, *tokens = line.split(separator)
        if not tokens:
            raise DataError(
                f"`{path}` has a line for series {len(rows)} (counting from 0) without "
                "values: each line needs the label and then the values, separated by "
                "tabs, commas or blanks."
            )
        rows.append(parse_values(tokens, path=path, case=len(rows)))
        labels.append(label)
    n_steps = max((len(row) for row in rows), default=0)
    series = [
        np.pad(row, (0, n_steps - len(row)), constant_values=np.nan)[np.newaxis]
        if len(row) < n_steps
        else row[np.newaxis]
        for row in rows
    ]
    return assemble(series, canonical_labels(labels, path=path), path=path, missing=missing)
