"""The figures of a comparison, drawn by aeon."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..._base.files import write_figure
from .comparison import PUBLISHED, Comparison

#: Fewer estimators have no ranking to test, and fewer sets no test of it.
_MIN_ESTIMATORS, _MIN_SETS = 3, 3


def draw(comparison: Comparison, folder: Path, kind: str = "svg") -> list[Path]:
    """Write the critical-difference diagram and the pairwise scatters.

    Parameters
    ----------
    comparison : Comparison
    folder : Path
    kind : {"svg", "png", "pdf"}

    Returns
    -------
    list of Path
        ``critical_difference.<kind>`` if there are at least three estimators and sets, and
        ``scatter_<a>_<b>.<kind>`` for every pair with an own estimator in it.

    Raises
    ------
    ImportError
        If aeon, matplotlib or seaborn is not installed.
    """
    written = []
    with _drawing() as (difference, scatter):
        folder.mkdir(parents=True, exist_ok=True)
        n_sets, n_estimators = comparison.accuracy.shape
        if n_sets >= _MIN_SETS and n_estimators >= _MIN_ESTIMATORS:
            figure, _ = difference(comparison.accuracy, comparison.estimators)
            # Above the diagram: its own axes fill the figure.
            figure.suptitle(f"Mean rank of the accuracy, {comparison.basis}", y=1.06)
            written.append(
                write_figure(
                    folder / f"critical_difference.{kind}", figure, bbox_inches="tight"
                )
            )
        names = comparison.estimators
        for i, j in _pairs(names):
            figure, axes = scatter(
                comparison.accuracy[:, i],
                comparison.accuracy[:, j],
                names[i],
                names[j],
                statistic_tests=n_sets >= _MIN_SETS,
                title=f"Accuracy, {comparison.basis}",
            )
            for axis in (axes.xaxis, axes.yaxis):
                axis.label.set_size("medium")  # a long name would run into the legend
            stem = f"scatter_{_file(names[i])}_{_file(names[j])}"
            written.append(
                write_figure(folder / f"{stem}.{kind}", figure, bbox_inches="tight")
            )
    return written


def _pairs(names: list[str]) -> list[tuple[int, int]]:
    own = [i for i, name in enumerate(names) if not name.endswith(PUBLISHED)]
    return [(i, j) for i in own for j in range(i + 1, len(names))]


def _file(name: str) -> str:
    return re.sub(r"[^\w.+=-]+", "-", name).strip("-")


@contextmanager
def _drawing() -> Iterator[tuple[Any, Any]]:
    """The two functions of aeon, with our type and without their warnings."""
    try:
        import matplotlib
        import seaborn  # noqa: F401 - aeon asks for it when it draws
        from aeon.visualisation import plot_critical_difference, plot_pairwise_scatter
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"The figures need aeon, matplotlib and seaborn (no {error.name}): pip install "
            "'greenfold[sweep]'."
        ) from None
    before = set(pyplot.get_fignums())
    style: Any = {"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "g"}
    try:
        with matplotlib.rc_context(style), warnings.catch_warnings():
            # Ties, few sets: scipy warns of p-values it approximates.
            warnings.simplefilter("ignore")
            yield plot_critical_difference, plot_pairwise_scatter
    finally:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
