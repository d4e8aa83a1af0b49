"""The report page: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import content, rendering
from .comparison import Row, Split, headline


def write_report(
    path: str | Path,
    task: Split,
    rows: Sequence[Row],
    *,
    remark: str = "",
    command: str = "",
    on_part: Callable[[str], None] | None = None,
) -> Path:
    """Write the report page.

    Parameters
    ----------
    path : str or Path
        Replaced if it exists, in one step at the end.
    task : Split
    rows : sequence of Row
        What is compared; the best one (``comparison.headline``) is described in detail.
    remark : str
        A sentence below the comparison.
    command : str
        The command that made the page, shown at its end.
    on_part : callable, optional
        Called with a description before each part.

    Returns
    -------
    Path
        The absolute path of the page.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.apps.report import Split, compare, write_report
    >>> X, y = synthetic_heartbeats(80, n_steps=30, rng=0)
    >>> task = Split("synthetic heartbeats", X[:40], y[:40], X[40:], y[40:])
    >>> settings = {"n_neurons": 20, "eta": 10.0}
    >>> rows = compare(task, [("random", 0), ("optimal", 0)], parameters=settings)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(pathlib.Path(folder, "page.html"), task, rows)
    ...     page.stat().st_size > 10_000
    True
    """
    text = render(task, rows, remark=remark, command=command, on_part=on_part)
    return rendering.write(path, text)


def render(
    task: Split,
    rows: Sequence[Row],
    *,
    remark: str = "",
    command: str = "",
    on_part: Callable[[str], None] | None = None,
) -> str:
    """The page as text; see `write_report`."""
    with rendering.extra():
        from . import figures
        from .clouds import state_clouds
    tell = on_part or (lambda _: None)
    main = headline(rows, len(task.judged[1]))
    pair = [row for row in rows if row.order == main.order]
    sections = []

    def add(title: str, pictures: Sequence[Any], text: str = "") -> None:
        shown = [picture for picture in pictures if picture is not None]
        if shown:
            sections.append({"title": title, "pictures": shown, "text": text})

    tell("class means")
    add("The data", figures.class_means(task, main))
    tell("state clouds")
    add(
        "State clouds along the readout",
        state_clouds(task, rows, pair),
        "Each series ends as one state of the network; its place along v decides. "
        "Random and solved u are drawn to the same scales: clouds that lie wider apart "
        "bear more noise.",
    )
    tell("soft margin")
    add(
        "Soft margin",
        [
            figures.margin_over_optimisation(task, rows),
            figures.margin_over_time(task, rows),
        ],
        "κ is the distance of the states from the decision plane, less η/2 times their "
        "variance.",
    )
    tell("kernels")
    add(
        "Kernels",
        [*figures.linear_kernels(rows), *figures.quadratic_kernels(rows)],
        "With both projections fixed the network is a plain kernel of the input.",
    )
    tell("modes")
    add("Modes", [figures.mode_loadings(rows)])
    tell("page")
    template = rendering.environment().get_template("template.html")
    return template.render(
        task=task,
        rows=rows,
        main=main,
        verdict=_verdict(rows, main),
        data=_data(task, main),
        sections=sections,
        confusions=[_confusion(task, row) for row in pair],
        certificates=_certificates(main),
        validities=_validities(rows),
        parameters=_parameters(main),
        versions=rendering.versions(),
        remark=remark,
        command=command,
        made=rendering.now(),
        judged=task.judged[2],
        number=rendering.number,
        percent=rendering.percent,
    )


def _verdict(rows: Sequence[Row], main: Row) -> str:
    """Why this row is described, and what is proven of it or of another."""
    said = ""
    if len(rows) > 1:
        said = f"Best of the {len(rows)} compared here, or as good within the error of the "
        said += "accuracy. "
    proven = [row for row in rows if row.proven]
    if main.proven:
        said += "Its soft margin is proven: no other projections of this network reach a "
        said += "larger one at this η."
    elif np.isfinite(main.bound) and main.is_solved:
        said += f"Its soft margin is at most {100 * main.gap:.2g} % below the proven bound."
    else:
        said += "Nothing is proven of its soft margin"
        said += "".join(
            f"; that of the {row.network} network with {row.projection} u is proven, with "
            f"an accuracy of {100 * row.accuracy:.1f} %"
            for row in proven
        )
        said += "."
    return said


def _data(task: Split, row: Row) -> dict[str, Any]:
    _, y, judged = task.judged
    classes = row.classifier.classes_
    return {
        "n_steps": row.classifier.n_features_in_,
        "n_channels": row.classifier.n_channels_in_,
        "n_train": len(task.y),
        "n_test": len(y) if judged == "test" else 0,
        "classes": [
            (
                str(label),
                int((task.y == label).sum()),
                int((y == label).sum()) if judged == "test" else None,
            )
            for label in classes.tolist()
        ],
    }


def _confusion(task: Split, row: Row) -> dict[str, Any]:
    X, y, judged = task.judged
    counts = content.confusion(row.classifier, X, y)
    total = np.maximum(counts.sum(1, keepdims=True), 1)
    return {
        "title": f"{row.projection.capitalize()} u, {row.network}",
        "labels": [str(label) for label in row.classifier.classes_.tolist()],
        "rows": [
            list(zip(line.tolist(), share.tolist(), strict=True))
            for line, share in zip(counts, counts / total, strict=True)
        ],
        "judged": judged,
    }


def _certificates(row: Row) -> list[dict[str, Any]]:
    """Soft margin and bound of every comparison."""
    classifier = row.classifier
    margins = np.atleast_1d(classifier.soft_margin_)
    bounds = np.atleast_1d(classifier.soft_margin_bound_)
    labels = classifier.classes_.tolist()
    names = (
        [f"{labels[1]} against {labels[0]}"]
        if len(labels) == 2
        else [f"{label} against the rest" for label in labels]
    )
    return [
        {"name": name, "margin": float(margin), "bound": float(bound)}
        for name, margin, bound in zip(names, margins, bounds, strict=True)
    ]


def _validities(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Validity of every non-linear row, the least trustworthy comparison of each."""
    found = []
    for row in rows:
        validity = row.classifier.validity_
        known = [
            one
            for one in (validity if isinstance(validity, list) else [validity])
            if one is not None
        ]
        if known:
            worst = min(known, key=lambda one: (one.trustworthy, -one.next_order))
            title = f"{row.projection.capitalize()} u, {row.network}"
            found.append({"title": title, "validity": worst})
    return found


def _parameters(row: Row) -> list[tuple[str, str]]:
    given = row.classifier.get_params()
    shown = {
        name: f"array of shape {np.shape(value)}" if np.ndim(value) else str(value)
        for name, value in given.items()
    }
    chosen = {
        "eta": f"{row.classifier.eta_:g}",
        "tau": f"{row.classifier.reservoir_.mean_tau:g}",
    }
    for name, value in chosen.items():
        if isinstance(given[name], str):
            shown[name] += f" (chosen: {value})"
    return sorted(shown.items())
