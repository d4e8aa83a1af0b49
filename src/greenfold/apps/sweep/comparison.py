"""Accuracies of a folder of results beside each other and published ones; figures."""

from __future__ import annotations

import csv
import itertools
import re
import socket
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._base.checks import needs, require
from ..._base.files import plain, write_figure, write_json
from ...datasets.archive import data_directory
from ...datasets.parsing import DataError
from ..runner import write_csv
from .plan import read_predictions

_PATTERN = "*/Predictions/*/testResample*.csv"
#: Follows the names of estimators whose results are published ones.
PUBLISHED = " (published)"
#: Shown beside one's own results unless others are asked for.
_DEFAULT = ("ROCKET", "MiniROCKET", "MR-Hydra", "HC2")
#: Digits after the point in the tables of published results.
_DIGITS = 4
#: Those tables, in the folder ``reference`` of the data directory, by their resamples.
_TABLES = {(0,): "ucr_default_split.csv", tuple(range(30)): "ucr_mean_30_resamples.csv"}
#: Seconds that the archive may take to answer.
_PATIENCE = 15.0
#: Fewer estimators have no ranking to test, and fewer sets no test of it.
_MIN_ESTIMATORS, _MIN_SETS = 3, 3

Scores = dict[str, dict[str, float]]
Results = dict[str, dict[str, dict[int, float]]]


@dataclass(frozen=True)
class Comparison:
    """Accuracies of several estimators on the same splits of the same sets."""

    estimators: list[str]  # the own ones first; published ones end in " (published)"
    datasets: list[str]
    accuracy: np.ndarray  # mean over the resamples, (n_datasets, n_estimators)
    resamples: list[int]
    left_out: list[str] = field(default_factory=list)  # sets that some estimator lacks
    notes: list[str] = field(default_factory=list)

    @property
    def own(self) -> list[str]:
        """Estimators whose results lie in the folder."""
        return [one for one in self.estimators if not one.endswith(PUBLISHED)]

    @property
    def mean_accuracy(self) -> np.ndarray:
        """Mean over the data sets, shape (n_estimators,)."""
        return self.accuracy.mean(axis=0)

    @property
    def mean_rank(self) -> np.ndarray:
        """Mean over the data sets of the rank, 1 the best, shape (n_estimators,)."""
        from scipy.stats import rankdata  # takes as long as all the rest of a worker

        return rankdata(-self.accuracy, axis=1).mean(axis=0)

    @property
    def basis(self) -> str:
        """On what the numbers stand, in half a sentence."""
        total = len(self.datasets) + len(self.left_out)
        sets = f"{len(self.datasets)} of {total}" if self.left_out else f"{total}"
        if self.resamples == [0]:
            return f"{sets} data sets, the provided split"
        first, last, n = self.resamples[0], self.resamples[-1], len(self.resamples)
        in_a_row = n > 1 and last - first == n - 1
        shown = f"{first}–{last}" if in_a_row else ", ".join(map(str, self.resamples))
        return f"{sets} data sets, mean of {n} resamples ({shown})"

    def record(self) -> dict[str, Any]:
        """All of it as JSON holds it, with the version of greenfold."""
        about = {"greenfold": __version__, "basis": self.basis}
        means = {"mean_accuracy": self.mean_accuracy, "mean_rank": self.mean_rank}
        return {**about, "n_datasets": len(self.datasets), **asdict(self), **means}

    def __str__(self) -> str:
        width, ranks = max(map(len, self.estimators)), self.mean_rank
        lines = [f"Mean accuracy and mean rank, {self.basis}:"]
        for i in np.argsort(-self.mean_accuracy, kind="stable"):
            name, mean = f"{self.estimators[i]:{width}}", self.mean_accuracy[i]
            lines.append(f"{name}  {mean:.4f}  {ranks[i]:.2f}")
        return "\n".join(lines)


def compare(
    folder: str | Path,
    *,
    published: Iterable[str] | None = None,
    estimators: Iterable[str] | None = None,
    data_dir: str | Path | None = None,
) -> Comparison:
    """Collect the accuracies of a folder of results.

    A data set counts where every estimator has every resample; the others are named in
    ``left_out``. Raises FileNotFoundError if no set has results of every estimator.

    Parameters
    ----------
    folder : str or Path
        Results in the layout of tsml-eval, by `greenfold.apps.sweep.sweep` or tsml-eval.
    published : iterable of str, optional
        Estimators whose published results stand beside; by default ROCKET, MiniROCKET,
        MR-Hydra and HC2. Empty for none.
    estimators : iterable of str, optional
        Folders to compare; by default all there are.
    data_dir : str or Path, optional
        Data directory whose folder ``reference`` holds tables of published results.
        Default: the environment variable ``GREENFOLD_DATA``.

    Returns
    -------
    Comparison
        ``accuracy`` of shape (n_datasets, n_estimators), ``mean_rank``, ``notes``; printed,
        it is a table.
    """
    scores, notes = read_folder(folder)
    here, there = f"The folder {str(folder)!r}", ", ".join(scores) or "nobody"
    wanted = list(scores if estimators is None else estimators)
    missing = ", ".join(one for one in wanted if one not in scores)
    lacks = f"{here} has no results of {missing}; it has those of {there}."
    require(not missing, lacks, FileNotFoundError)
    place = "<estimator>/Predictions/<dataset>/testResample<k>.csv"
    none = f"{here} holds no results ({place}): run a sweep first."
    require(scores, none, FileNotFoundError)
    scores = {one: scores[one] for one in wanted}
    sets = sorted({name for own in scores.values() for name in own})
    datasets, resamples = _complete(scores, sets)
    means = {
        label: {one: float(np.mean([own[one][k] for k in resamples])) for one in datasets}
        for label, own in scores.items()
    }
    wanted = _DEFAULT if published is None else published
    found, more = _published_accuracies(wanted, datasets, resamples, data_dir)
    notes += more
    for name, known in found.items():
        if known:
            means[f"{name}{PUBLISHED}"] = known
        else:
            notes.append(f"Nothing is published of {name} on these sets.")
    common = [one for one in datasets if all(one in known for known in means.values())]
    none = "There is no data set that all the published estimators have results of"
    require(common, f"{none}: compare with fewer.", FileNotFoundError)
    accuracy = np.array([[known[one] for known in means.values()] for one in common])
    if found:
        # Published tables have so many digits; more of our own would make ties wins.
        accuracy = accuracy.round(_DIGITS)
    left_out = [one for one in sets if one not in common]
    return Comparison(list(means), common, accuracy, resamples, left_out, notes)


def read_folder(folder: str | Path) -> tuple[Results, list[str]]:
    """Accuracy by estimator, data set and resample, and a note for each damaged file."""
    found: Results = {}
    notes = []
    for path in sorted(Path(folder).expanduser().glob(_PATTERN)):
        number = re.fullmatch(r"testResample(\d+)", path.stem)
        if number is None or not path.is_file():
            continue
        try:
            accuracy = read_predictions(path).accuracy
        except DataError as error:
            notes.append(str(error))
        else:
            own = found.setdefault(path.parents[2].name, {})
            own.setdefault(path.parent.name, {})[int(number[1])] = accuracy
    return found, notes


def _complete(scores: Results, sets: Sequence[str]) -> tuple[list[str], list[int]]:
    """Sets for which every estimator has all resamples, and which these are."""
    asked = sorted({k for own in scores.values() for one in own.values() for k in one})
    for numbers in (asked, [0]):
        found = set(sets)
        for own in scores.values():
            found &= {one for one, k in own.items() if set(numbers) <= k.keys()}
        if found:
            return sorted(found), numbers
    none = f"no data set that all the estimators have results of ({', '.join(scores)})"
    raise FileNotFoundError(f"There is {none}: finish the sweep, or compare fewer.")


def write_tables(comparison: Comparison, folder: Path, results: str | Path) -> list[Path]:
    """Write the record, the table, and one file per estimator as aeon's loader reads it."""
    rows = [["dataset", *comparison.estimators]]
    for name, line in zip(comparison.datasets, comparison.accuracy, strict=True):
        rows.append([name, *(f"{one:.6f}" for one in line)])
    written = [write_csv(folder / "accuracy.csv", rows), folder / "comparison.json"]
    write_json(written[1], plain(comparison.record()))
    scores, _ = read_folder(results)
    for label in comparison.own:
        rows = [["Resamples:", *map(str, comparison.resamples)]]
        for name in comparison.datasets:
            own = scores[label][name]
            rows.append([name, *(repr(own[k]) for k in comparison.resamples)])
        place = folder / "classification" / "accuracy" / f"{label}_accuracy.csv"
        written.append(write_csv(place, rows))
    return written


def _published_accuracies(
    names: Iterable[str], datasets: Sequence[str], resamples: Sequence[int], data_dir: Any
) -> tuple[Scores, list[str]]:
    """Accuracies of published estimators on the same resamples, and what was not found.

    Tables of the data directory are read first; what they lack is asked of the archive.
    """
    table = _table(resamples, data_dir)
    found: Scores = {}
    notes, missing, reason = [], [], ""
    for name in names:
        known = table.get(name.casefold(), {})
        if not any(one in known for one in datasets):
            try:
                # Whoever did not answer once is not asked again.
                known = {} if reason else _from_archive(name, datasets, resamples)
            except (OSError, ImportError, EOFError) as error:
                reason = " ".join(str(error).split())[:120] or type(error).__name__
            except ValueError as error:  # a name that aeon does not know, a broken table
                notes.append(f"No published results of {name}: {error}")
                continue
            if reason:
                missing.append(name)
                continue
        found[name] = {one: known[one] for one in datasets if one in known}
    if missing:
        none = (
            f"No published results of {', '.join(missing)} on these resamples are at hand"
        )
        why = f"and the archive could not be asked ({reason.rstrip('.')})."
        notes.append(f"{none}, {why}")
    return found, notes


def _table(resamples: Sequence[int], data_dir: str | Path | None) -> Scores:
    """The table of these resamples, by estimator in lower case; empty if there is none."""
    name, root = _TABLES.get(tuple(resamples)), data_directory(data_dir)
    found: Scores = {}
    if name is None or root is None or not (path := root / "reference" / name).is_file():
        return found
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            for name, value in row.items():
                if name != "dataset" and value:
                    found.setdefault(name.casefold(), {})[row["dataset"]] = float(value)
    return found


def _from_archive(name: str, datasets: Sequence[str], resamples: Sequence[int]) -> dict:
    from aeon.benchmarking.results_loaders import get_estimator_results

    # aeon reads its tables by pandas, which offers no limit of its own.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_PATIENCE)
    try:
        scores = get_estimator_results([name], list(datasets), num_resamples=None)[name]
    finally:
        socket.setdefaulttimeout(before)
    return {
        one: float(sum(values[k] for k in resamples) / len(resamples))
        for one, values in scores.items()
        if len(values) > max(resamples)
    }


def draw(comparison: Comparison, folder: Path, kind: str = "svg") -> list[Path]:
    """Write the critical-difference diagram and the pairwise scatters, drawn by aeon."""
    written = []
    with _drawing() as (difference, scatter):
        folder.mkdir(parents=True, exist_ok=True)
        names, n_sets = comparison.estimators, len(comparison.datasets)

        def write(figure: Any, *name: str) -> None:
            words = (re.sub(r"[^\w.+=-]+", "-", word).strip("-") for word in name)
            target = folder / f"{'_'.join(words)}.{kind}"
            written.append(write_figure(target, figure, bbox_inches="tight"))

        if n_sets >= _MIN_SETS and len(names) >= _MIN_ESTIMATORS:
            figure, _ = difference(comparison.accuracy, names)
            # Above the diagram: its own axes fill the figure.
            figure.suptitle(f"Mean rank of the accuracy, {comparison.basis}", y=1.06)
            write(figure, "critical_difference")
        titled: Any = {"title": f"Accuracy, {comparison.basis}"}
        titled["statistic_tests"] = n_sets >= _MIN_SETS
        columns = zip(names, comparison.accuracy.T, strict=True)
        for (a, first), (b, second) in itertools.combinations(columns, 2):
            if a in comparison.own:
                figure, axes = scatter(first, second, a, b, **titled)
                for axis in (axes.xaxis, axes.yaxis):
                    axis.label.set_size("medium")  # a long name would run into the legend
                write(figure, "scatter", a, b)
    return written


@contextmanager
def _drawing() -> Iterator[tuple[Any, Any]]:
    """The two functions of aeon, with our type and without their warnings."""
    with needs("A figure of a comparison", "sweep"):
        import matplotlib
        import seaborn  # noqa: F401 - aeon asks for it when it draws
        from aeon.visualisation import plot_critical_difference, plot_pairwise_scatter
        from matplotlib import pyplot
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
