"""Tables and figures from the JSON files of `greenfold reproduce` and of the benchmarks.

A page holds a line ``<!-- recorded: reproduction fig1 -->`` (or ``benchmarks``, ``sweep``,
``vote``, ``study``). It is replaced by tables and figures from the folder
``_reproduction/`` (``_benchmarks/``, …), or by a note that the folder is empty. So no
number is typed into a page by hand.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from numerals import measured, power_of, typeset

#: What a reader may take along, where it is there.
_DOWNLOADS = {
    "svg": "figure (SVG)",
    "pdf": "figure (PDF)",
    "png": "figure (PNG)",
    "json": "all numbers (JSON)",
}
#: Files of benchmarks by topic, in the order of their page.
_BENCHMARKS = {
    "optima": (
        "normal",
        "proofs",
        "nonlinear",
        "alternating",
        "saturation",
        "reservoirs",
        "eta-choice",
    ),
    "devices": (
        "echo-state",
        "echo-state-saturating",
        "masks",
        "shared-input",
        "recordings",
        "devices",
        "device-tasks",
        "refine",
        "nest-recording",
    ),
    "sequences": (
        "regression",
        "ordinary",
        "forecast",
        "forecast-systems",
        "equal-time",
        "bands",
        "long-run",
        "sequences",
        "sequences-cuda",
    ),
    "series": ("pooled", "pooled_study", "pooled-cuda"),
    "speed": (
        "peers",
        "connectome",
        "connectome-cuda",
        "connectome-attacked",
        "dynamics",
        "dynamics-cuda",
        "data",
        "large-cuda",
        "workers-cuda",
    ),
}
#: Classifiers whose published accuracies a row may bring.
_PUBLISHED = ("LDA", "RidgeCV", "TWIESN", "ROCKET", "MiniROCKET", "MR-Hydra", "HC2")
#: Terse words of the benchmarks, and what the page says instead.
_WORDS = (
    (r"(?<![-\w])optimised\b", "solved"),
    (r"κ claimed against κ judged, worst", "reported κ and κ on fresh draws, worst case"),
    (
        r"κ of Dynamics over every other, lowest",
        "κ of Dynamics over the best other κ, lowest",
    ),
    (
        r"their networks and classes drawn with (\d+) seeds",
        r"\1 seeds for networks and classes",
    ),
    (r"one drawn u\b", "one random u"),
    (r"(over|above|the|\(|and) ?drawn (?=\d|one|node|network|input|on\b)", r"\1 random "),
    (r"(?<=\()\s+random", "random"),
    (r"\bagainst\b", "compared with"),
    (r"\bas a share of\b", "as a percentage of"),
    (r"(Win|rate|masks|gradient[^:]*)([,:]) share of", r"\1\2 percentage of"),
    (r"\bUCR sets\b", "UCR data sets"),
    (r"^sets with", "data sets with"),
    (r"\bthrough the true network\b", "on the simulated network"),
    (r"\bthrough the node itself\b", "solved on the simulated node"),
    (r"^integrated, ", "simulated network, "),
    (r"^optimize, integrated\b", "optimize, simulated network"),
    (r"\bone figure per\b", "one number per"),
    (r"\bto judge\b", "to evaluate"),
    (r"\bjudged on\b", "evaluated on"),
    (r"\binside it\b", "inside the interval"),
)
_PICTURES = {
    "nonlinear": "Time of one evaluation of the order-1 objective and its gradient, "
    "against the number of neurons, steps and series. In each panel, the other two numbers "
    "are those of the paper (N = 100, K = 140, 354 series).",
}
#: Captions of the figures of a study, by the end of their names.
_STUDY = {
    "_architectures": "Soft margin and memory capacity of each architecture. Each mark is "
    "one network, and the bar of the same colour is the mean over the networks. A "
    "cross is the upper bound of a network; it lies on the mark if the optimum reaches it.",
    "_map": "Random networks with different spectral radius g, time constant τ and number "
    "of neurons N. The upper row shows the certified κ\\*, the lower row the ratio of κ\\* "
    "to the mean κ of random u. Most cells are means of two networks.",
}
_NOTHING = """
:::{note}
No recorded results were found in `docs/%s/` when these pages were built. Use the commands
above to produce them.
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
    """A Markdown table; columns in order of first appearance, without empty ones."""
    columns = [
        key
        for key in dict.fromkeys(key for row in rows for key in row)
        if any(row.get(key) not in (None, "") for row in rows)
    ]
    yield "| " + " | ".join(column.replace("_", " ") for column in columns) + " |"
    yield "| " + " | ".join("---" for _ in columns) + " |"
    for row in rows:
        yield "| " + " | ".join(_cell(row.get(column)) for column in columns) + " |"
    yield ""


def reproduction(folder: Path, name: str) -> Iterator[str]:
    """One recorded figure: picture, caption, findings, its parameters."""
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    title = record.get("title", name)
    if record.get("quick"):
        yield "*Reduced version (`--quick`).*"
        yield ""
    kinds = [k for k in _DOWNLOADS if (folder / f"{name}.{k}").exists()]
    shown = next((kind for kind in ("svg", "png") if kind in kinds), None)
    if shown:
        yield f"```{{figure}} _reproduction/{name}.{shown}"
        yield f":alt: {title}"
        yield ""
        yield record.get("caption", title)
        links = (f"{{download}}`{_DOWNLOADS[k]} <_reproduction/{name}.{k}>`" for k in kinds)
        yield "Download: " + ", ".join(links) + "."
        yield "```"
        yield ""
    numbers = record.get("numbers", {})
    if "cells" in numbers:
        yield from table(paper_rows(numbers))
    yield "<details><summary>All findings</summary>"
    yield ""
    yield from _findings(record.get("summary", ()), is_table="cells" in numbers)
    yield "</details>"
    yield ""
    yield from _origin(record)


def _findings(summary: Sequence[str], *, is_table: bool) -> Iterator[str]:
    """Yield the summary as a list; with a table, only the remarks on its numbers."""
    if is_table:
        # Indented lines are cells: they and what leads to them stand in the table.
        last = max((i for i, one in enumerate(summary) if one.startswith(" ")), default=-1)
        summary = summary[last + 1 :]
    for line in summary:
        # Lines that a summary indents belong to the line before.
        yield f"{'  - ' if line.startswith(' ') else '- '}{typeset(line.strip())}"
    yield ""


def paper_rows(numbers: dict[str, Any]) -> list[dict[str, str]]:
    """Yield the paper's table and ours: one row per quantity, one column per cell."""
    cells = numbers["cells"]
    heads = {
        cell: cell.replace(", ", " *u*, ").replace("optimised", "solved") for cell in cells
    }

    def row(
        name: str, quantity: str, mean: str, spread: str, digits: int
    ) -> dict[str, str]:
        made = {"": name}
        for cell, head in heads.items():
            one = cells[cell][quantity]
            # Numbers stay with their spread on one line.
            made[head] = f"{one[mean]:.{digits}f}\u00a0±\u00a0{one[spread]:.{digits}f}"
        return made

    first = f"accuracy, {next(iter(numbers['centres']))}"
    rows = [
        row("κ, paper", "kappa", "paper", "paper s.d.", 3),
        row("κ, ours", "kappa", "mean", "s.d.", 4),
        row("accuracy (%), paper", first, "paper", "paper s.d.", 1),
    ]
    for centre, meaning in numbers["centres"].items():
        name = f"accuracy (%), zero point {meaning}"
        rows.append(row(name, f"accuracy, {centre}", "mean", "s.d.", 1))
    return rows


def _small(value: Any) -> bool:
    """Whether a value is worth a line on a page; curves are not."""
    if isinstance(value, list):
        return len(value) <= 8 and not any(isinstance(v, list | dict) for v in value)
    return not isinstance(value, dict)


def _origin(record: dict[str, Any]) -> Iterator[str]:
    """Run time, parameters and versions, folded away."""
    kinds = {
        kind: [f"`{name}` {_cell(value)}" for name, value in found.items() if _small(value)]
        for kind in ("parameters", "versions")
        if (found := record.get(kind))
    }
    if kinds:
        yield "<details><summary>Run time, parameters and versions</summary>"
        yield ""
        if "seconds" in record:
            yield f"Run time: {record['seconds']:,.0f} s."
        for kind, found in kinds.items():
            yield f"{kind.capitalize()}: {', '.join(found)}."
        if "note" in record:
            yield record["note"]
        yield ""
        yield "</details>"
        yield ""


def _compared(detail: dict[str, Any]) -> str:
    """Return published accuracies, or one number per network, to compare a row with."""
    published = [
        f"{name} {float(str(detail[name]).strip('%')):.1f}"
        for name in _PUBLISHED
        if name in detail
    ]
    if "ratios" in detail:
        # A ratio to a margin that is not positive is none.
        each = (
            "(other below 0)" if one == "inf" else one for one in detail["ratios"].split()
        )
        published.append(f"each network: {', '.join(each)}")
    return ", ".join(published)


def _worded(text: str) -> str:
    for terse, clear in _WORDS:
        text = re.sub(terse, clear, text)
    return text


def _named(row: dict[str, Any]) -> str:
    """Return the name of a row without the published values."""
    name = _worded(row["name"].strip())
    if any(peer in (row.get("detail") or {}) for peer in _PUBLISHED):
        peers = "|".join(map(re.escape, _PUBLISHED))
        name = re.sub(rf"(?:, | \()(?:(?:{peers}) [\d.]+%?(?:, )?)+\)?$", "", name)
    return name


def _target(row: dict[str, Any]) -> str:
    target = row["target"].removeprefix("target").lstrip(": ")
    scaled = target not in ("", "0") and power_of(row["unit"])
    return f"{target} · {row['unit']}" if scaled else target


def _notes(notes: Sequence[str], rows: Sequence[dict[str, Any]]) -> tuple[list, list]:
    """What a reader needs before the table, and what explains the JSON file.

    Lines that a benchmark indents are its log; ``word: …`` and ``a_b / _c: …`` explain
    fields of the file, unless the word stands in the table.
    """
    shown = " ".join(row["name"] for row in rows)
    told, folded = [], []
    for note in notes:
        field = re.match(r"(\w+)(?: / \w+)?: ", note)
        log = note.startswith(" ") or (field and field[1] not in shown)
        # A list that follows is folded with the log.
        text = note.strip().removesuffix(", the faster in each round of")
        (folded if log else told).append(text)
    return told, folded


def benchmarks(folder: Path, topic: str) -> Iterator[str]:
    """One section per recorded benchmark of a topic; the page lies one folder down."""
    paths = [folder / f"{name}.json" for name in _BENCHMARKS[topic]]
    for path in filter(Path.exists, paths):
        record = json.loads(path.read_text(encoding="utf-8"))
        reports = record["benchmarks"]
        told: list[str] = []
        folded: list[str] = []
        for report in reports:
            yield f"## {_worded(report['name'])}"
            yield ""
            if report["notes"] != told:  # parts of one benchmark share them
                told = report["notes"]
                alike = [r for one in reports if one["notes"] == told for r in one["rows"]]
                above, below = _notes(told, alike)
                folded += below
                yield from (f"- {_worded(note)}" for note in above)
                yield ""
            rows = [
                {
                    "what": _named(row),
                    "measured": measured(row["value"], row["unit"]),
                    "compared with": _compared(row.get("detail") or {}),
                    "target": _target(row),
                    "met": row["met"] if row["target"] else "",
                }
                for row in report["rows"]
            ]
            if any(row["compared with"] for row in rows):
                yield "{.versus}"
            yield from table(rows)
        picture = path.with_suffix(".svg")
        if picture.exists():
            yield f"```{{figure}} ../_benchmarks/{picture.name}"
            yield f":alt: {path.stem}"
            yield ""
            yield _PICTURES.get(path.stem, path.stem)
            yield "```"
            yield ""
        machine = ", ".join(f"{k} {_cell(v)}" for k, v in record["machine"].items())
        yield "<details><summary>Machine, log, and the fields of the JSON file</summary>"
        yield ""
        yield from (f"- {_worded(note)}" for note in (f"machine: {machine}", *folded))
        yield ""
        yield "</details>"
        yield ""


def sweep(folder: Path) -> Iterator[str]:
    """Diagram and table of a recorded sweep; the page lies one folder down."""
    record = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    # Long names break between their words.
    names = [re.sub(r"(?<=[a-z])(?=[A-Z])", "\u200b", n) for n in record["estimators"]]
    names = [name.replace(" (published)", "\u00a0†") for name in names]
    yield f"Accuracy, {record['basis']}, greenfold {record['greenfold']}."
    yield ""
    yield "```{figure} ../_sweep/critical_difference.svg"
    yield ":alt: critical differences"
    yield "```"
    yield ""
    lines = [
        ("**mean**", record["mean_accuracy"]),
        *zip(record["datasets"], record["accuracy"], strict=True),
    ]
    rows = [
        {"data set": name, **{n: f"{v:.3f}" for n, v in zip(names, line, strict=True)}}
        for name, line in lines
    ]
    ranks = {n: f"{v:.2f}" for n, v in zip(names, record["mean_rank"], strict=True)}
    yield "{.numbers}"
    yield from table([{"data set": "**mean rank**", **ranks}, *rows])
    yield from (f"{note}  " for note in ("† published", *record["notes"]))
    yield ""


def vote(folder: Path) -> Iterator[str]:
    """Means and ranks of the classifiers that vote, the best rank first."""
    record = json.loads((folder / "vote.json").read_text(encoding="utf-8"))
    pooled = "PooledReservoirClassifier"
    names = {
        pooled: "pooled",
        "two": "pooled and QUANT",
        "three": "pooled, QUANT and Hydra",
    }
    columns = (record[k] for k in ("mean_rank", "mean_accuracy", "estimators"))
    yield from table(
        [
            {
                "classifier": f"**{names[name]}**" if name in names else name,
                "mean accuracy": f"{mean:.3f}",
                f"mean rank among {len(record['estimators'])}": f"{rank:.2f}",
            }
            for rank, mean, name in sorted(zip(*columns, strict=True))
        ]
    )


def study(folder: Path) -> Iterator[str]:
    """Figures and means of a recorded study; the page lies one folder down."""
    for path in sorted(folder.glob("*.svg")):
        caption = next((v for k, v in _STUDY.items() if path.stem.endswith(k)), path.stem)
        yield f"```{{figure}} ../_study/{path.name}"
        yield f":alt: {caption.partition('. ')[0].removesuffix('.')}"
        yield ""
        yield caption
        yield "```"
        yield ""
    with open(folder / "study.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    # The comparison of architectures: where memory was computed, and the same with noise.
    at = [row for row in rows if row["memory"]]
    same = ("neurons", "g", "tau", "order", "gain")
    chosen = [r for r in rows if all(r[k] == at[0][k] for k in same)]
    groups: dict[str, dict[str, list[dict[str, str]]]] = {}
    for row in chosen:
        groups.setdefault(row["inside"], {}).setdefault(row["architecture"], []).append(row)

    def mean(own: list[dict[str, str]], key: str) -> float:
        return sum(float(row[key]) for row in own) / len(own)

    for inside, kinds in sorted(groups.items(), key=lambda one: float(one[0])):
        lines = []
        for name, own in sorted(kinds.items(), key=lambda one: -mean(one[1], "kappa")):
            line = {"architecture": name.replace("_", " "), "networks": str(len(own))}
            for head, key in {
                "κ*": "kappa",
                "bound": "bound",
                "κ, random u": "kappa_random",
            }.items():
                line[head] = f"{mean(own, key):.3f}"
            for head, key in {
                "": "accuracy_0.1",
                ", random u": "accuracy_random_0.1",
            }.items():
                line[f"accuracy{head}"] = f"{100 * mean(own, key):.1f}\u00a0%"
            for head, key in {"": "memory", ", random u": "memory_random"}.items():
                if own[0][key]:
                    line[f"memory{head}"] = f"{mean(own, key):.1f}"
            lines.append(line)
        noise = f"White noise of √Q = {inside}" if float(inside) else "No noise"
        yield f"{noise} inside; accuracy with readout noise 0.1:"
        yield ""
        yield "{.numbers}"
        yield from table(lines)
    first = {**rows[0], **{k: f"{float(rows[0][k]):g}" for k in ("eta", "duration")}}
    yield (
        "*{n_train} training and {n_test} test series of {n_steps} steps, η = {eta}, "
        "duration {duration}; means over networks, each with {draws} random u.*"
    ).format(**first)
    yield ""


_KINDS: dict[str, Callable[..., Iterator[str]]] = {
    "reproduction": reproduction,
    "benchmarks": benchmarks,
    "sweep": sweep,
    "vote": vote,
    "study": study,
}
_MARKER = re.compile(r"<!-- recorded: (\w+)(?: (\w+))? -->")


def _fill(app: Any, docname: str, source: list[str]) -> None:
    def render(found: re.Match[str]) -> str:
        kind, names = found[1], [name for name in found.groups()[1:] if name]
        folder = Path(app.srcdir) / f"_{kind}"
        for path in folder.glob("*"):
            app.env.note_dependency(str(path.relative_to(app.srcdir)), docname=docname)
        if not any(folder.glob("*.[jc]s*")):
            return _NOTHING % folder.name
        return "\n".join(_KINDS[kind](folder, *names))

    source[0] = _MARKER.sub(render, source[0])


def setup(app: Any) -> dict[str, Any]:
    """Fill the pages as they are read."""
    app.connect("source-read", _fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
