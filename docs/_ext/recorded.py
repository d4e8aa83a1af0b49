"""Tables and figures from the JSON files of `greenfold reproduce` and of the benchmarks.

A page holds a line ``<!-- recorded: reproduction -->`` (or ``benchmarks``, ``sweep``). It
is replaced by what lies in ``_reproduction/`` (``_benchmarks/``, ``_sweep/``), or by a note
that nothing is there, so that no number is ever typed into a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sphinx.util import logging

logger = logging.getLogger(__name__)

#: Longer lists, one row for each network, stay in the JSON files.
_MAX_ROWS = 12
#: The order of the paper; other files follow by name.
_ORDER = ("fig1", "fig2", "fig3", "fig4", "table1", "supplement", "beyond")
_NOTHING = """
:::{note}
No recorded results were found in `docs/%s/` when these pages were built. The commands
above make them.
:::
"""


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(_cell(entry) for entry in value)
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A Markdown table; columns in order of first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    yield "| " + " | ".join(column.replace("_", " ") for column in columns) + " |"
    yield "| " + " | ".join("---" for _ in columns) + " |"
    for row in rows:
        yield "| " + " | ".join(_cell(row.get(column)) for column in columns) + " |"
    yield ""


def _is_table(value: Any) -> bool:
    """Whether a value is a short list of flat records."""
    return (
        isinstance(value, list)
        and 0 < len(value) <= _MAX_ROWS
        and all(isinstance(row, dict) for row in value)
        and all(_small(entry) for row in value for entry in row.values())
    )


def _rows(value: Any) -> list[dict[str, Any]]:
    """Rows of a table of tables, ``{row: {quantity: {column: number}}}``; else none."""
    if not isinstance(value, dict):
        return []
    rows = [
        {"": name, "quantity": quantity, **entry}
        for name, part in value.items()
        if isinstance(part, dict)
        for quantity, entry in part.items()
        if isinstance(entry, dict)
    ]
    return rows if rows and _is_table(rows) else []


def _small(value: Any) -> bool:
    """Whether a value is worth a line on a page; curves are not."""
    if isinstance(value, list):
        return len(value) <= 8 and not any(isinstance(v, list | dict) for v in value)
    return not isinstance(value, dict)


def reproduction(folder: Path) -> Iterator[str]:
    """One section per recorded figure."""
    places = {name: place for place, name in enumerate(_ORDER)}
    names = [path.stem for path in folder.glob("*.json")]
    for name in sorted(names, key=lambda n: (places.get(n, len(_ORDER)), n)):
        record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        title = record.get("title", name)
        yield f"## {title}"
        yield ""
        if record.get("quick"):
            yield "*Reduced version (`--quick`).*"
            yield ""
        for suffix in ("svg", "png"):
            if (folder / f"{name}.{suffix}").exists():
                yield f"![{title}](_reproduction/{name}.{suffix})"
                yield ""
                break
        for line in record.get("summary", ()):
            # Lines that a summary indents belong to the line before.
            yield f"{'  - ' if line.startswith(' ') else '- '}{line.strip()}"
        yield ""
        yield from _tables(record.get("numbers", {}))
        yield from _origin(record)


def _tables(numbers: dict[str, Any]) -> Iterator[str]:
    """The tables among the numbers of a figure; curves stay in the JSON file."""
    for key, value in numbers.items():
        rows = value if _is_table(value) else _rows(value)
        if rows:
            yield f"**{key.replace('_', ' ').capitalize()}**"
            yield ""
            yield from table(rows)
        elif isinstance(value, dict):
            yield from _tables(value)


def _origin(record: dict[str, Any]) -> Iterator[str]:
    """Parameters and versions, in one sentence."""
    rows = [
        f"`{name}` {_cell(value)}"
        for kind in ("parameters", "versions")
        for name, value in record.get(kind, {}).items()
        if _small(value)
    ]
    if rows:
        yield f"Made in {record.get('seconds', '?')} s with " + ", ".join(rows) + "."
        yield ""


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def benchmarks(folder: Path) -> Iterator[str]:
    """One section per recorded benchmark."""
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        machine = ", ".join(f"{k} {_cell(v)}" for k, v in record["machine"].items())
        told: list[str] = []
        for report in record["benchmarks"]:
            yield f"### {report['name']}"
            yield ""
            if report["notes"] != told:  # parts of one benchmark share them
                told = report["notes"]
                yield from (f"{note}  " for note in told)
                yield ""
            yield from table(
                [
                    {
                        "what": row["name"],
                        "measured": f"{_amount(row['value'])} {row['unit']}",
                        "target": row["target"],
                        "met": row["met"],
                    }
                    for row in report["rows"]
                ]
            )
        picture = path.with_suffix(".svg")
        if picture.exists():
            yield f"![{path.stem}](_benchmarks/{picture.name})"
            yield ""
        yield f"*Machine: {machine}.*"
        yield ""


def sweep(folder: Path) -> Iterator[str]:
    """Diagram and table of a recorded sweep; the page lies one folder down."""
    record = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    names = record["estimators"]
    yield f"Accuracy, {record['basis']}, greenfold {record['greenfold']}."
    yield ""
    yield "![critical differences](../_sweep/critical_difference.svg)"
    yield ""
    lines = [
        ("**mean**", record["mean_accuracy"]),
        *zip(record["datasets"], record["accuracy"], strict=True),
    ]
    rows = [
        {"data set": name, **{n: f"{v:.4f}" for n, v in zip(names, line, strict=True)}}
        for name, line in lines
    ]
    ranks = {n: f"{v:.2f}" for n, v in zip(names, record["mean_rank"], strict=True)}
    yield from table([{"data set": "**mean rank**", **ranks}, *rows])
    yield from (f"{note}  " for note in record["notes"])
    yield ""
    for path in sorted(folder.glob("scatter_*.svg")):
        yield f"![{path.stem}](../_sweep/{path.name})"
        yield ""


_KINDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "reproduction": reproduction,
    "benchmarks": benchmarks,
    "sweep": sweep,
}


def _fill(app: Any, docname: str, source: list[str]) -> None:
    for kind, render in _KINDS.items():
        marker = f"<!-- recorded: {kind} -->"
        if marker not in source[0]:
            continue
        folder = Path(app.srcdir) / f"_{kind}"
        for path in folder.glob("*"):
            app.env.note_dependency(str(path.relative_to(app.srcdir)), docname=docname)
        found = "\n".join(render(folder)) if any(folder.glob("*.json")) else None
        source[0] = source[0].replace(marker, found or _NOTHING % folder.name)


def setup(app: Any) -> dict[str, Any]:
    """Fill the pages as they are read."""
    app.connect("source-read", _fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
