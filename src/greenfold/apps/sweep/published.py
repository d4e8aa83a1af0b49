"""Published accuracies to put beside one's own: files at hand, or aeon's archive."""

from __future__ import annotations

import csv
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...datasets.archive import data_directory

#: Shown beside one's own results unless others are asked for.
DEFAULT = ("ROCKET", "MiniROCKET", "MR-Hydra", "HC2")
#: After the point, in the tables.
DIGITS = 4
_FOLDER = "reference"
_PROVIDED = "ucr_default_split.csv"
_MEAN_OF_30 = "ucr_mean_30_resamples.csv"
#: Seconds that the archive may take to answer.
_PATIENCE = 15.0

Scores = dict[str, dict[str, float]]


def published_accuracies(
    names: Iterable[str],
    datasets: Sequence[str],
    resamples: Sequence[int],
    data_dir: str | Path | None = None,
) -> tuple[Scores, list[str]]:
    """Accuracies of published estimators on the same resamples.

    The provided split and the mean of resamples 0 to 29 are read from the tables in the
    folder ``reference`` of the data directory; whatever is not there is asked of
    https://timeseriesclassification.com by aeon.

    Parameters
    ----------
    names : iterable of str
        As the tables and aeon name them, such as ``"MR-Hydra"``.
    datasets : sequence of str
    resamples : sequence of int
    data_dir : str or Path, optional
        Data directory. Default: the environment variable ``GREENFOLD_DATA``.

    Returns
    -------
    scores : dict of dicts
        Accuracy by estimator and data set, as far as it is known.
    notes : list of str
        A sentence for each estimator that could not be found, and why.
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
        notes.append(
            f"No published results of {', '.join(missing)} on these resamples are at hand, "
            f"and the archive could not be asked ({reason.rstrip('.')})."
        )
    return found, notes


def _table(resamples: Sequence[int], data_dir: str | Path | None) -> Scores:
    """The table of these resamples, by estimator in lower case; empty if there is none."""
    file = {(0,): _PROVIDED, tuple(range(30)): _MEAN_OF_30}.get(tuple(resamples))
    root = data_directory(data_dir)
    if file is None or root is None or not (root / _FOLDER / file).is_file():
        return {}
    found: Scores = {}
    with open(root / _FOLDER / file, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            for name, value in row.items():
                if name != "dataset" and value:
                    found.setdefault(name.casefold(), {})[row["dataset"]] = float(value)
    return found


def _from_archive(name: str, datasets: Sequence[str], resamples: Sequence[int]) -> dict:
    from aeon.benchmarking.results_loaders import get_estimator_results

    with _limited_patience():
        scores = get_estimator_results([name], list(datasets), num_resamples=None)[name]
    return {
        one: float(sum(values[k] for k in resamples) / len(resamples))
        for one, values in scores.items()
        if len(values) > max(resamples)
    }


@contextmanager
def _limited_patience() -> Iterator[None]:
    # aeon reads its tables by pandas, which offers no limit of its own.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
