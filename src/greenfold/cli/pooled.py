"""The pooled classifier on the command line."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import typer

from . import options
from .options import progress


class Kind(StrEnum):
    """Classifiers by name."""

    margin = "margin"
    pooled = "pooled"


#: Options of `greenfold fit` that only a network with solved projections has.
_OF_MARGIN = {
    "report": "--report",
    "projection": "--projection",
    "order": "--order",
    "alpha": "--alpha",
    "neurons": "--neurons",
    "g": "--g",
    "weights": "--weights",
    "tau": "--tau",
    "duration": "--duration",
    "eta": "--eta",
    "noise": "--noise",
    "certify": "--certify",
}


def refuse_options_of_margin(ctx: typer.Context) -> None:
    """Say which option does not go with the classifier, before the work begins."""
    for name, option in _OF_MARGIN.items():
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"{option} is for the classifier with solved projections; it goes with "
                "--classifier margin"
            )


def judge(task: Any, *, seed: int, jobs: int | None) -> tuple[Any, float, float]:
    """Fit the pooled classifier; its accuracy where the task is judged, and its time."""
    from ..estimators.pooled import PooledReservoirClassifier

    begun = time.perf_counter()
    fitted = PooledReservoirClassifier(random_state=seed, n_jobs=jobs).fit(task.X, task.y)
    seconds = time.perf_counter() - begun
    X, y, _ = task.judged
    return fitted, float(np.mean(fitted.predict(X) == y)), seconds


def fit_and_show(
    task: Any, *, model: Path | None, seed: int, jobs: int | None, json: bool
) -> None:
    """Fit the pooled classifier, write it, say how good it is."""
    from ..math.calibration import expected_calibration_error
    from . import show

    with progress(2.2) as bar:
        bar.step("fitting the pooled classifier", 2.0)
        fitted, accuracy, seconds = judge(task, seed=seed, jobs=jobs)
        X, y, judged = task.judged
        known = np.isin(y, fitted.classes_)
        codes = np.searchsorted(fitted.classes_, y[known])
        chances = fitted.predict_proba(X)[known]
        error = expected_calibration_error(chances, codes) if known.any() else None
        bar.step("writing the model", 0.2)
        if model:
            fitted.save(model)
    record = {
        "data": task.name,
        "n_train": len(task.y),
        "n_test": 0 if task.y_test is None else len(task.y_test),
        "classes": fitted.classes_,
        "judged_on": judged,
        "classifier": "pooled",
        "accuracy": accuracy,
        "calibration_error": error,
        "seconds": round(seconds, 3),
        "model": model,
        "report": None,
    }
    if json:
        options.print_json(record)
        return
    bank = fitted.map_.bank.scales
    pairs: list[tuple[str, Any]] = [
        (
            "data",
            f"{task.name}: {len(task.y)} training series of up to "
            f"{fitted.n_features_in_} steps, {len(fitted.classes_)} classes",
        ),
        (
            "classifier",
            f"pooled: {len(bank)} reservoirs of {fitted.n_oscillators} oscillators, "
            f"{fitted.n_readouts} readouts each",
        ),
        (f"{judged} accuracy", f"{accuracy:.2%}"),
        ("calibration error", "–" if error is None else f"{error:.2%}"),
        ("time", f"{seconds:.1f} s"),
        *([("model", model)] if model else []),
    ]
    show.facts(pairs)
