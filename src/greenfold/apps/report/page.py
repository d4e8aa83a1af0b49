"""The pages about a fit and about a mask; each is one HTML file that works offline."""

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ... import ReservoirClassifier
from ..._base.checks import needs
from ..._base.files import replacing
from ...analysis.masks import MaskStudy
from ...analysis.stretches import scores_by_stretch
from ...devices.response import MeasuredResponse
from ...estimators.pooled.estimators import PooledReservoirClassifier
from ..runner import versions
from ..style import css
from .comparison import Row, Split, headline, parts_of


def fill_template(template: str, **values: object) -> str:
    """Return a filled template; values are escaped, except those filtered with ``ours``."""
    with needs("A page", "report"):
        import jinja2
        from markupsafe import Markup

    def read(name: str) -> str:
        return files("greenfold.apps").joinpath(name).read_text(encoding="utf-8")

    strict: Any = {"autoescape": True, "undefined": jinja2.StrictUndefined}
    made = jinja2.Environment(loader=jinja2.FunctionLoader(read), **strict)
    made.filters["ours"] = Markup
    return made.get_template(template).render(palette=css(), **values)


def write_page(path: str | Path, text: str) -> Path:
    """Write a page in one step, replacing an older one, and return its absolute path."""
    target = Path(path).expanduser().absolute()
    with replacing(target) as stream:
        # Labels may hold lone surrogates, which cannot be encoded.
        stream.write(text.encode("utf-8", errors="replace"))
    return target


def _number(value: float | None) -> str:
    """Return a number with four digits, or a dash if it is missing."""
    if value is None or not np.isfinite(value):
        return "–"
    return f"{float(value):.4g}".replace("-", "−")


def fill_page(path: str | Path, template: str, **values: object) -> Path:
    """Write a page of this folder, with the date and the versions of packages."""
    text = fill_template(
        f"report/{template}.html",
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        versions=versions("numpy", "scipy", "scikit-learn", "matplotlib", "jinja2").items(),
        number=_number,
        # Adding zero turns −0.0 into 0.0.
        percent=lambda share: f"{round(100 * share, 1) + 0.0:.1f} %".replace("-", "−"),
        **values,
    )
    return write_page(path, text)


def write_report(
    path: str | Path,
    task: Split,
    rows: Sequence[Row],
    *,
    remark: str = "",
    command: str = "",
    on_part: Callable[[str], None] | None = None,
) -> Path:
    """Write a report page that compares fitted classifiers, and return its absolute path.

    Parameters
    ----------
    path : str or Path
        File to write.
    task : Split
        Training and test series.
    rows : sequence of Row
        Rows to compare, from `compare`. The page describes the best row in detail.
    remark, command : str
        A sentence below the comparison, and the command that made the page.
    on_part : callable, optional
        Called with a description before each part.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.apps.report import Split, compare, write_report
    >>> X, y = synthetic_heartbeats(80, n_steps=30, rng=0)
    >>> task = Split("synthetic heartbeats", X[:40], y[:40], X[40:], y[40:])
    >>> settings = {"n_neurons": 20, "eta": 10.0}
    >>> rows = compare(task, [("random", 0), ("solved", 0)], parameters=settings)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(pathlib.Path(folder, "page.html"), task, rows)
    ...     page.stat().st_size > 10_000
    True
    """
    with needs("A page", "report"):
        from . import figures
    main = headline(rows, len(task.judged[1]))
    pair = [row for row in rows if row.order == main.order]
    margins = (figures.margin_over_optimisation, figures.margin_over_time)
    parts: dict[str, Callable[[], list[Any]]] = {
        "data": lambda: figures.class_means(task, main),
        "clouds": lambda: figures.state_clouds(task, rows, pair),
        "margin": lambda: [draw(task, rows) for draw in margins],
        "kernels": lambda: figures.linear_kernels(rows) + figures.quadratic_kernels(rows),
        "modes": lambda: [figures.mode_loadings(rows)],
    }
    pictures = {}
    for name, draw in parts.items():
        if on_part:
            on_part(name)
        pictures[name] = [picture for picture in draw() if picture is not None]
    (X, y, judged), fitted = task.judged, main.classifier
    labels = fitted.classes_.tolist()
    known = np.isin(y, labels)

    def confusion(one: ReservoirClassifier) -> np.ndarray:
        return confusion_matrix(y[known], one.predict(X)[known], labels=labels)

    compared = (labels, fitted.soft_margin_, fitted.soft_margin_bound_)
    return fill_page(
        path,
        "report",
        task=task,
        rows=rows,
        main=main,
        judged=judged,
        counts=[(str(one), (task.y == one).sum(), (y == one).sum()) for one in labels],
        certificates=list(zip(*compared, strict=True)) if len(labels) > 2 else [],
        pictures=pictures,
        confusions=[(row, confusion(row.classifier)) for row in pair],
        # The least trustworthy comparison of each non-linear row.
        validities=[
            (row, min(row.validities, key=lambda one: (one.trustworthy, -one.next_order)))
            for row in rows
            if row.validities
        ],
        margins=[(row, found) for row in rows if (found := parts_of(task, row))],
        chosen={"eta": fitted.eta_, "tau": main.reservoir.mean_tau},
        remark=remark,
        command=command,
    )


#: Number of series whose scores are computed without each stretch of time.
_SCORED = 200


def write_pooled_page(
    path: str | Path,
    task: Split,
    fitted: PooledReservoirClassifier,
    *,
    facts: Sequence[tuple[str, object]] = (),
    command: str = "",
) -> Path:
    """Write a page about a fitted pooled classifier, and return its absolute path.

    The page shows the class means and, for series of equal length without missing values,
    which stretch of time moves the score.

    Parameters
    ----------
    path, task
        As in `write_report`.
    fitted : PooledReservoirClassifier
    facts : sequence of (str, object)
        Names and values of the table.
    command : str
        The command that made the page.
    """
    with needs("A page", "report"):
        from . import figures
    (X, y, judged), labels = task.judged, fitted.classes_
    pictures = []
    whole = isinstance(task.X, np.ndarray) and isinstance(X, np.ndarray)
    if whole and np.isfinite(X).all():
        values = task.X if task.X.ndim == 3 else task.X[:, None, :]
        steps = np.arange(values.shape[2]) + 0.5
        pictures = figures.means_over_time(values, task.y, labels, steps, "step")
        n_stretches = min(20, values.shape[2])
        scored = scores_by_stretch(fitted, X[:_SCORED], n_stretches)
        pictures.append(figures.moving_stretches(scored))
    found = fitted.predict(X)
    known = np.isin(y, labels)
    return fill_page(
        path,
        "pooled",
        task=task,
        judged=judged,
        accuracy=float((found == y).mean()),
        majority=task.majority,
        facts=facts,
        pictures=pictures,
        labels=list(map(str, labels.tolist())),
        table=confusion_matrix(y[known], found[known], labels=labels.tolist()),
        command=command,
    )


def write_mask_page(
    path: str | Path,
    study: MaskStudy,
    device: MeasuredResponse,
    *,
    name: str,
    rows: Sequence[tuple[str, str]],
    inputs: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write a page about a mask: its values, its gain and the quality of the recording.

    Parameters
    ----------
    path : str or Path
        File to write.
    study, device : MaskStudy, MeasuredResponse
        See `greenfold.analysis.study_mask`.
    name, command : str
        The heading, and the command that made the page.
    rows, notes : sequences of (str, str) and of str
        Names and values of the table, and sentences below it.
    inputs : sequence of str, optional
        Names of the device's inputs.
    """
    with needs("A page", "report"):
        from . import figures
    values = study.values.reshape(device.n_inputs, -1)
    names = list(inputs or (f"input {i}" for i in range(device.n_inputs)))
    shown: Any = {"study": study, "fitted": device.fitted, "rows": rows, "notes": notes}
    shown["entries"] = list(zip(names, values.tolist(), strict=True))
    shown["pictures"] = [figures.mask_margins(study), figures.mask_values(values)]
    return fill_page(path, "mask", name=name, command=command, **shown)
