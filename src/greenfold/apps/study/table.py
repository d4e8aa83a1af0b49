"""The results of a study as one table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ..._base.files import replacing
from ..runner import is_whole


def read_study(
    folder: str | Path, paths: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """All results in a folder, one row each, in the order of their files.

    Parameters
    ----------
    folder : str or Path
        As given to `study`. Damaged files are left out.
    paths : collection of str, optional
        Only these, below the folder: those of the jobs of one plan.

    Returns
    -------
    list of dict
        The setting of each network and what it reached: ``kappa`` with its ``bound``,
        ``kappa_random`` of random u, ``accuracy_<noise>`` and ``accuracy_random_<noise>``,
        and, if asked for, ``memory``. ``pandas.DataFrame`` takes it.
    """
    place = Path(folder).expanduser()
    rows = []
    for path in sorted((place / "results").rglob("*.json")):
        if paths is not None and path.relative_to(place).as_posix() not in paths:
            continue
        content = path.read_bytes()
        try:
            row = json.loads(content)
        except ValueError:
            continue
        if not isinstance(row, dict) or "seal" not in row or not is_whole(content):
            continue
        del row["seal"]
        rows.append(row)
    if not rows:
        raise FileNotFoundError(
            f"There are no results of a study in {str(folder)!r}; run one first."
        )
    return rows


def write_table(rows: Sequence[dict[str, Any]], path: str | Path) -> Path:
    """Write the rows as CSV or, by the suffix, as Parquet.

    Parameters
    ----------
    rows : sequence of dict
        From `read_study`.
    path : str or Path
        ``.csv`` or ``.parquet`` (needs pyarrow: ``greenfold[parquet]``).
    """
    target = Path(path).expanduser()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    # Lists have no place in a cell, and orders may be numbers or a word.
    flat = [{name: _cell(name, row.get(name)) for name in columns} for row in rows]
    if target.suffix == ".csv":
        made = io.StringIO(newline="")
        writer = csv.DictWriter(made, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        content = made.getvalue().encode()
    elif target.suffix == ".parquet":
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ImportError(
                "Parquet needs pyarrow: pip install 'greenfold[parquet]'."
            ) from None
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.Table.from_pylist(flat), sink)
        content = sink.getvalue().to_pybytes()
    else:
        raise ValueError(f"`path` must end in .csv or .parquet; got {str(path)!r}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as stream:
        stream.write(content)
    return target


def _cell(name: str, value: Any) -> Any:
    if name == "order":
        return str(value)
    return " ".join(map(str, value)) if isinstance(value, list) else value
