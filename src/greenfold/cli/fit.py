"""`greenfold fit`: fit a classifier to a data set."""

import math
import time
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import options, show
from .options import Answer, Classifier, Tested, command, invocation, opt

if TYPE_CHECKING:
    from ..apps.report.comparison import Row, Split
    from ..estimators.margin.classifier import ReservoirClassifier
    from ..estimators.pooled.estimators import PooledReservoirClassifier

#: Parameters of the command that the pooled classifier does not have.
_OF_MARGIN = {"report", "projection", "certify"} | {
    one.name for one in fields(Classifier) if one.name not in ("jobs", "device")
}
#: For a larger gap to the bound, the output says how to close it.
_WIDE = 0.05


@command("greenfold fit ECG5000 --classes 1,2 --model ecg.gfm --report page.html")
def fit(
    data: str = options.DATA,
    model: Path | None = opt(None, options.MAIN, "-m"),
    classifier: Literal["margin", "pooled"] = opt("margin"),
    report: Path | None = options.REPORT,
    files: Tested = Tested(),
    holdout: float = options.holdout(0.0, least=0),
    projection: Literal["solved", "shared", "random"] = opt(
        "solved", "Network", sets="input_projection"
    ),
    network: Classifier = Classifier(),
    certify: bool = opt(False, "Network"),
    seed: int = options.SEED,
) -> Answer:
    """Fit a reservoir classifier: solve for its input projection u and readout v.

    u sets how strongly the input drives each neuron; v is the direction along which the
    states are read. Both maximise the soft margin κ: the distance of the classes along v,
    minus η/2 times their variance. If events happen at different times in your series, use
    --classifier pooled, which reads the network at every step.

    A data set has its own test series. All series of a file are used for training, unless
    you give --test or --holdout.

    model : Write the model to this file.
    classifier : margin solves for u and v and reads the network once, for aligned series;
        pooled reads the network at every step, for series that are not aligned.
    projection : Input projection u: solved (for each class), shared (one u solved
        for all classes) or random.
    certify : Prove the optimum as tightly as possible, which takes longer (order 0).
    """
    from .inputs import load_task, refuse_opened

    pooled = classifier == "pooled"
    if pooled:
        why = "is for the classifier with solved projections; it needs --classifier margin"
        invocation.refuse(why, *_OF_MARGIN)
    elif network.order != 0 or projection == "random":
        invocation.refuse("is for solved projections of a network of order 0", "certify")
    options.check_targets(model=model, report=report)
    parameters = network.parameters()
    parameters |= {"readout_noise": network.noise, "certify": certify}
    load = partial(load_task, data, files, holdout=holdout, device=network.device)
    if pooled:
        return _fit_pooled(load(seed=seed, keep_missing=True), model, seed, network.jobs)
    from ..apps.report import comparison
    from .evaluate import weight_of, write_page

    weight = weight_of(network.order)
    with options.progress(1.2 + weight + (2 * weight if report else 0)) as step:
        step("reading the data")
        task = load(seed=seed)
        if report:
            refuse_opened(task.X, "--report")
        step("solving for the projections", weight)
        compare = partial(comparison.compare, task, noise=network.noise, seed=seed)
        compare = partial(compare, parameters=parameters, refit=False)
        (row,) = compare([(projection, network.order)])
        told = [comparison.explained(row), comparison.fragility(row, task, seed=seed)]
        notes = [one for one in told if one]
        step("writing the model", 0.2)
        if model:
            row.classifier.save(model)
        if report:
            step("comparing for the report", 2 * weight)
            # The page compares random and solved u, both at the η of the fit.
            other = "solved" if projection == "random" else "random"
            parameters["eta"] = row.classifier.eta_
            parameters["certify"] = certify and other == "solved"
            twin = compare([(other, network.order)])
            shown = comparison.share_bounds([*twin, row])
            write_page(report, task, shown, " ".join(notes))
    record = _record(task, row.classifier, "margin") | comparison.to_record(row)
    record |= {"model": model, "report": report, "notes": notes}
    facts = _facts(task, row) | {"model": model, "report": report}
    return Answer(record, lambda: show.facts(facts, notes))


def _record(
    task: "Split", fitted: "ReservoirClassifier | PooledReservoirClassifier", kind: str
) -> dict[str, Any]:
    return {
        "data": task.name,
        "n_train": len(task.y),
        "n_test": 0 if task.y_test is None else len(task.y_test),
        "classes": fitted.classes_,
        "judged_on": task.judged[2],
        "classifier": kind,
    }


def _data(task: "Split", fitted: "ReservoirClassifier | PooledReservoirClassifier") -> str:
    names = [str(one) for one in fitted.classes_[:6]] + ["…"] * (len(fitted.classes_) > 6)
    few = f"{len(fitted.classes_)} classes ({', '.join(names)})"
    sizes = f"{fitted.n_features_in_} steps, {few}"
    return f"{task.name}: {len(task.y)} training series of up to {sizes}"


def _facts(task: "Split", row: "Row") -> dict[str, Any]:
    fitted, expansion = row.classifier, None
    if row.order == "exact":
        expansion = "none: the network itself is integrated"
    elif row.order and not isinstance(fitted.validity_, list):
        expansion = fitted.validity_
    scores = fitted.eta_scores_
    at_the_end = f" ({scores.note})" if scores is not None and scores.note else ""
    bounded = math.isfinite(row.bound)
    return {
        "data": _data(task, fitted),
        "network": f"{row.network_and_order}, {fitted.reservoir_.n_neurons} neurons",
        "input u": row.projection,
        "η": f"{fitted.eta_:.4g}{at_the_end}",
        "soft margin κ": f"{row.soft_margin:.5g}",
        "upper bound": f"{row.bound:.5g} ({_proof(row)})" if bounded else None,
        f"{task.judged[2]} accuracy": f"{row.accuracy:.2%}",
        f"under noise {row.noise:g}": f"{row.noisy_accuracy:.2%}" if row.noise else None,
        "expansion": expansion,
    }


def _proof(row: "Row") -> str:
    """Return how tightly the optimum is proven, and how to close a wide gap."""
    if row.proven:
        return "proven optimal"
    gap = f"gap {row.gap:.1%}"
    if not row.is_solved or row.gap <= _WIDE:
        return gap
    if not row.classifier.certify:
        return f"{gap}: a quick bound; --certify or a smaller --eta tightens it"
    return f"{gap}: the bound is not tight at this η; a smaller --eta closes it"


def fit_pooled(
    task: "Split", seed: int, jobs: int | None
) -> tuple["PooledReservoirClassifier", float, float]:
    """Return the fitted pooled classifier, its accuracy and the time of the fit."""
    from ..estimators.pooled.estimators import PooledReservoirClassifier

    begun = time.perf_counter()
    fitted = PooledReservoirClassifier(random_state=seed, n_jobs=jobs).fit(task.X, task.y)
    seconds = time.perf_counter() - begun
    X, y, _ = task.judged
    return fitted, float((fitted.predict(X) == y).mean()), seconds


def _fit_pooled(task: "Split", model: Path | None, seed: int, jobs: int | None) -> Answer:
    import numpy as np

    from ..math.decisions import expected_calibration_error

    with options.progress(2.2) as step:
        step("fitting the pooled classifier", 2.0)
        fitted, accuracy, seconds = fit_pooled(task, seed, jobs)
        X, y, judged = task.judged
        known = np.isin(y, fitted.classes_)
        codes = np.searchsorted(fitted.classes_, y[known])
        chances = fitted.predict_proba(X)[known]
        error = expected_calibration_error(chances, codes) if known.any() else None
        step("writing the model", 0.2)
        if model:
            fitted.save(model)
    measured = {"accuracy": accuracy, "calibration_error": error}
    files = {"seconds": round(seconds, 3), "model": model, "report": None}
    facts = {
        "data": _data(task, fitted),
        "classifier": f"pooled: {len(fitted.map_.bank.scales)} reservoirs of "
        f"{fitted.n_oscillators} oscillators, {fitted.n_readouts} readouts each",
        f"{judged} accuracy": f"{accuracy:.2%}",
        "calibration error": show.number(error, ".2%"),
        "time": f"{seconds:.1f} s",
        "model": model,
    }
    record = _record(task, fitted, "pooled") | measured | files
    return Answer(record, lambda: show.facts(facts))
