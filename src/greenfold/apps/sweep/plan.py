"""From estimators, data sets and resamples to jobs, and the door to a sweep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ..._base.arrays import on_device
from ...datasets.archive import data_directory
from ..runner import Job, Summary, run_jobs
from .estimators import EstimatorSpec, parse_estimator
from .experiment import FORMAT, experiment
from .sources import Source, find_sources

#: Other folders beside those of the estimators.
_RESERVED = {"comparison", "failures"}


def sweep(
    estimators: Iterable[str | EstimatorSpec],
    datasets: Iterable[str | Path] = (),
    resamples: int | Iterable[int] = 1,
    folder: str | Path = "results",
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
    seed: int | None = None,
    n_jobs: int | None = None,
    dask: str | None = None,
    device: str = "cpu",
    redo: bool = False,
    summary: Summary | None = None,
) -> Summary:
    """Run estimators on resamples of data sets, one result file each.

    Results are in the layout and format of tsml-eval,
    ``<estimator>/Predictions/<dataset>/testResample<k>.csv``. Those that are there already
    and were made by the same estimator, parameters, code, data and seed are kept; stale and
    damaged ones are redone; a run that was stopped goes on.

    Parameters
    ----------
    estimators : iterable of str or EstimatorSpec
        See `parse_estimator`.
    datasets : iterable of str or Path
        Names, folders, or text files of names; by default all sets of the data directory.
    resamples : int or iterable of int, default 1
        Their number, counted from 0, or which. Resample 0 is the provided split, k the
        stratified resample of aeon and tsml-eval with seed k.
    folder : str or Path, default "results"
        Where results are and go.
    data_dir : str or Path, optional
        Data directory. Default: the environment variable ``GREENFOLD_DATA``.
    download : bool, default True
        Whether the archive may be asked for a set that is not on this machine.
    seed : int, optional
        ``random_state`` of every estimator; by default the number of the resample, as in
        tsml-eval.
    n_jobs : int, optional
        Processes; by default as many as there are cores, and one with a GPU.
    dask : str, optional
        Address of a dask scheduler, or its scheduler file, in place of processes of this
        machine. Its workers must see the data under the same paths, or name them by
        ``GREENFOLD_DATA``.
    device : str, default "cpu"
        Where greenfold's own estimators run: "cuda" or "cuda:1", … takes PyTorch. Series of
        several lengths and other estimators stay on the host.
    redo : bool, default False
        Redo finished results too.
    summary : Summary, optional
        Filled as the sweep goes on, so that it can be read after an exception.

    Returns
    -------
    greenfold.apps.runner.Summary
        What became of the jobs, failures included: each is also recorded in
        ``<folder>/failures``, and tried again by the next run.

    Examples
    --------
    >>> from greenfold.apps.sweep import compare, sweep
    >>> names = ["PooledReservoirClassifier", "MiniROCKET"]
    >>> done = sweep(names, ["Coffee", "GunPoint"], 5)  # doctest: +SKIP
    >>> print(compare("results"))  # doctest: +SKIP
    """
    if device != "cpu" and dask is None:
        on_device(np.zeros(1), device)  # what is not there is said before the work
        n_jobs = n_jobs or 1
    jobs = plan(
        estimators,
        datasets,
        resamples,
        data_dir=data_dir,
        download=download,
        seed=seed,
        device=device,
    )
    return run_jobs(
        jobs, folder, label="sweep", n_jobs=n_jobs, dask=dask, redo=redo, summary=summary
    )


def plan(
    estimators: Iterable[str | EstimatorSpec],
    datasets: Iterable[str | Path] = (),
    resamples: int | Iterable[int] = 1,
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
    seed: int | None = None,
    device: str = "cpu",
) -> list[Job]:
    """The jobs of a sweep, a data set after the other, each with all estimators.

    What cannot work is refused here, before anything is computed: unknown estimators and
    parameters, missing data sets. Parameters are those of `sweep`.
    """
    specs = [parse_estimator(one) for one in estimators]
    if not specs:
        raise ValueError("`estimators` must name at least one estimator.")
    labels = [spec.label for spec in specs]
    for label in labels:
        if label.casefold() in _RESERVED:
            raise ValueError(
                f"An estimator cannot be called {label!r}, a folder with another purpose."
            )
        if labels.count(label) > 1:
            raise ValueError(
                f"Two estimators are called {label!r}: name one, as in 'other={label}'."
            )
    for spec in specs:
        spec.make(0)
    data_directory(data_dir)  # a wrong directory is an error, not a reason to download
    numbers = _numbers(resamples)
    sources = find_sources(list(datasets), data_dir, download)
    return [
        _job(spec, source, number, number if seed is None else seed, device)
        for source in sources
        for number in numbers
        for spec in specs
    ]


def _job(spec: EstimatorSpec, source: Source, resample: int, seed: int, device: str) -> Job:
    # Results of a GPU differ in their last digits; those of a host keep their hash.
    place = {} if device == "cpu" else {"device": device.partition(":")[0]}
    return Job(
        path=f"{spec.label}/Predictions/{source.name}/testResample{resample}.csv",
        work=experiment,
        configuration={
            "format": FORMAT,
            "label": spec.label,
            "estimator": spec.target,
            "parameters": dict(spec.parameters),
            "code": spec.code(),
            "seed": seed,
            "data": {"name": source.name, "digest": source.digest},
            "resample": resample,
            **place,
        },
        context={"folder": source.folder, "device": device},
        weight=float(source.size),
        title=f"{source.name} {resample} {spec.label}",
    )


def _numbers(resamples: int | Iterable[int]) -> Sequence[int]:
    if isinstance(resamples, int):
        if resamples < 1:
            raise ValueError(f"`resamples` must be at least 1; got {resamples}.")
        return range(resamples)
    found = sorted(set(resamples))
    if not found or found[0] < 0:
        raise ValueError(f"`resamples` must be numbers of at least 0; got {found}.")
    return found


def parse_resamples(text: str) -> int | list[int]:
    """The resamples that a text means: "30", "0-9" or "3,5-7"."""
    if re.fullmatch(r"\d+", text):
        return int(text)
    found: list[int] = []
    for part in text.split(","):
        one = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if one is None:
            raise ValueError(
                "`resamples` must be a number of resamples, or which, as in '0-4,7'; got "
                f"{text!r}."
            )
        first = int(one[1])
        found += range(first, int(one[2] or first) + 1)
    return found
