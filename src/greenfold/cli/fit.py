"""`greenfold fit`, `evaluate` and `demo`: fit classifiers, and compare projections."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .._base.interrupts import raise_if_interrupted
from .._base.messages import listed
from . import options, show
from .options import Answer, Classifier, Tested, command, invocation, opt

if TYPE_CHECKING:
    from ..apps.report.comparison import Row, Split, Spread
    from ..estimators.margin import ReservoirClassifier
    from ..estimators.pooled.estimators import PooledReservoirClassifier

#: Parameters of the command that the pooled classifier does not have.
_OF_MARGIN = {"projection", "certify"} | {
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
    holdout: float = options.holdout(0.25, least=0),
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

    Accuracies are those of series that the fit has not seen, beside random u. A data set
    has its own test series. Of a file, a quarter is held out, and the model that is then
    written is fitted to all series.

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
    load = partial(load, leave=True)
    if pooled:
        task = load(seed=seed, keep_missing=True)
        return _fit_pooled(task, model, report, seed, network.jobs)
    from ..apps.report import comparison

    weight = weight_of(network.order)
    with options.progress(2.2 + 2 * weight + (2 * weight if report else 0)) as step:
        step("reading the data")
        task = load(seed=seed)
        if report:
            refuse_opened(task.X, "--report")
        step("solving for the projections", weight)
        settings: Any = {"parameters": parameters, "refit": False, "seed": seed}
        compare = partial(comparison.compare, noise=network.noise, **settings)
        (row,) = compare(task, [(projection, network.order)])
        told, spread = [comparison.explained(row)], None
        if task.X_test is None:
            told.append(_UNJUDGED)
        else:
            told.append(comparison.fragility(row, task, seed=seed))
        if task.X_test is not None and projection != "random":
            step("drawing random u", 1)
            own = {k: v for k, v in parameters.items() if k != "certify"}
            # A few draws say enough where each takes long.
            settings |= {"parameters": own, "n_draws": 3 if network.order else 5}
            spread = comparison.random_spread(row, task, **settings)
        notes, final = [one for one in told if one], row
        notes += [] if task.y_test is None else show.uncertain(task.y_test)
        if model:
            step("fitting the model to all series", weight)
            if task.whole:
                whole = comparison.Split(task.name, *task.whole)
                (final,) = compare(whole, [(projection, network.order)])
                n = len(task.whole[1])
                notes.append(
                    f"The model in {model} was then fitted to all {n} series: κ "
                    f"{final.soft_margin:.4g} at η {final.classifier.eta_:.4g}."
                )
            final.classifier.save(model)
        step("writing the model", 0.2)
        if report:
            step("comparing for the report", 2 * weight)
            # The page compares κ of random and solved u, both at the η of the fit.
            other = "solved" if projection == "random" else "random"
            parameters["eta"] = row.classifier.eta_
            parameters["certify"] = certify and other == "solved"
            drawn = spread.median.classifier.input_projection if spread else other
            twin = compare(task, [(drawn, network.order)])
            shown = comparison.share_bounds([*twin, row])
            remarks = list(notes)
            if spread:
                noisy = network.noise > 0
                found = spread.noisy_accuracy if noisy else spread.accuracy
                under = f"accuracy{' under noise' * noisy}"
                drawn = comparison.mean_and_range(found)
                remarks.append(f"Random u, each with an η of its own: {under} {drawn}.")
            write_page(report, task, shown, " ".join(remarks))
    record = _record(task, row.classifier, "margin") | comparison.to_record(row)
    if task.X_test is None:
        record |= dict.fromkeys(("accuracy", "accuracy_under_noise"))
    record["final"] = (final is not row and comparison.to_record(final)) or None
    record["random"] = spread and {
        "n_draws": len(spread.rows),
        "accuracy": spread.accuracy,
        "accuracy_under_noise": spread.noisy_accuracy if network.noise else None,
    }
    record |= {"model": model, "report": report, "notes": notes}
    facts = _facts(task, row, spread) | {"model": model, "report": report}
    cells = strongest_cells(final, network.own)
    record |= {"cells": cells} if cells else {}
    notes += told_cells(cells)
    return Answer(record, lambda: show.facts(facts, notes))


#: Said instead of an accuracy, because that on training series would be too high.
_UNJUDGED = "No series were held out, so there is no accuracy: give some with --test."


def _accuracies(task: "Split", row: "Row", spread: "Spread | None") -> dict[str, Any]:
    """Return accuracies on test series, beside random u and the most frequent class."""
    from ..apps.report.comparison import mean_and_range

    if task.y_test is None:
        return {}
    found = {"test accuracy": f"{row.accuracy:.2%}"}
    if spread:
        found["with random u"] = mean_and_range(spread.accuracy)
    found["of the largest class"] = f"{task.majority:.2%}"
    if row.noise:
        found[f"under noise {row.noise:g}"] = f"{row.noisy_accuracy:.2%}"
    if row.noise and spread:
        found["with random u, noise"] = mean_and_range(spread.noisy_accuracy)
    return found


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
    n_classes = len(fitted.classes_)
    few = f"{n_classes} classes ({listed(fitted.classes_, 6)})"
    sizes = f"{fitted.n_features_in_} steps, {few}"
    test = "" if task.y_test is None else f" and {len(task.y_test)} test"
    return f"{task.name}: {len(task.y)} training{test} series of up to {sizes}"


def _facts(task: "Split", row: "Row", spread: "Spread | None") -> dict[str, Any]:
    from ..apps.report.comparison import NOTHING, parts_of

    fitted, expansion = row.classifier, None
    if row.order == "exact":
        expansion = "none: the network itself is integrated"
    elif row.order and not isinstance(fitted.validity_, list):
        expansion = fitted.validity_
    scores = fitted.eta_scores_
    at_the_end = f" ({scores.note})" if scores is not None and scores.note else ""
    bounded = math.isfinite(row.bound) and row.soft_margin > NOTHING
    parts = parts_of(task, row)
    return {
        "data": _data(task, fitted),
        "network": f"{row.network_and_order}, {row.reservoir.n_neurons} neurons",
        "input u": row.projection,
        **_accuracies(task, row, spread),
        "η": f"{fitted.eta_:.4g}{at_the_end}",
        "soft margin κ": f"{row.soft_margin:.5g}",
        "upper bound": f"{row.bound:.5g} ({_proof(row)})" if bounded else None,
        "separation": parts
        and f"{parts.share_of_covariances:.0%} from the class covariances, the rest from "
        "the class means",
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


def _fit_pooled(
    task: "Split", model: Path | None, report: Path | None, seed: int, jobs: int | None
) -> Answer:
    import numpy as np

    from ..math.decisions import expected_calibration_error

    with options.progress(4.2) as step:
        step("fitting the pooled classifier", 2.0)
        fitted, accuracy, seconds = fit_pooled(task, seed, jobs)
        X, y, _ = task.judged
        known = np.isin(y, fitted.classes_)
        codes = np.searchsorted(fitted.classes_, y[known])
        judged, error = task.X_test is not None, None
        if judged and known.any():
            error = expected_calibration_error(fitted.predict_proba(X)[known], codes)
        measured = {"accuracy": accuracy if judged else None, "calibration_error": error}
        if report:
            from ..apps.report import write_pooled_page

            step("writing the report", 1.0)
            found = "–" if error is None else f"{error:.2%}"
            told = [("data", _data(task, fitted)), ("calibration error", found)]
            write_pooled_page(report, task, fitted, facts=told, command=invocation.line())
        if model:
            step("fitting the model to all series", 2.0)
            fitted = fitted.fit(*task.whole) if task.whole else fitted
            fitted.save(model)
        step("writing the model", 0.2)
    files = {"seconds": round(seconds, 3), "model": model, "report": report}
    facts = {
        "data": _data(task, fitted),
        "classifier": f"pooled: {len(fitted.map_.bank.scales)} reservoirs of "
        f"{fitted.n_oscillators} oscillators, {fitted.n_readouts} readouts each",
        "test accuracy": f"{accuracy:.2%}" if judged else None,
        "of the largest class": f"{task.majority:.2%}" if judged else None,
        "calibration error": show.number(error, ".2%") if judged else None,
        "time": f"{seconds:.1f} s",
        "model": model,
        "report": report,
    }
    record = _record(task, fitted, "pooled") | measured | files
    notes = show.uncertain(y) if judged else [_UNJUDGED]
    return Answer(record, lambda: show.facts(facts, notes))


_PAGE = Path("greenfold-report.html")
#: Neurons above which evaluate solves no non-linear network by default. With 300 neurons
#: and 200 series of 70 steps, it took 18 s on one core, and with 500, minutes.
_LARGE = 300


@command("greenfold evaluate ECG5000 --report page.html")
def evaluate(
    data: str = options.DATA,
    report: Path | None = options.REPORT,
    files: Tested = Tested(),
    holdout: float = options.holdout(0.25, least=0.01),
    network: Classifier = Classifier(order="1", eta="10", noise=0.1),
    at_most: int | None = opt(None, "Network", min=1),
    pooled: bool = opt(False),
    seed: int = options.SEED,
) -> Answer:
    """Compare random and solved input projections u, linear and non-linear.

    Each row shows the soft margin κ and the accuracy of one network under noise. You can
    compare κ only at the same weight η of the variance, so all rows use the same η. With
    --eta cv, each row chooses its own η by cross-validation, once without and once with the
    noise, and shows both accuracies. Without noise, a linear network then gains little from
    its input projection.

    order : Order of the non-linear network, or 'exact' to integrate it; 0 leaves it out,
        and so does the default above 300 neurons.
    at_most : Also solve for a u of the linear network that drives at most so many neurons,
        for two classes.
    pooled : Also fit the pooled classifier, for series that are not aligned.
    eta : Weight η of the variance in the soft margin κ. The default of fit is 'cv'; here it
        is a number, so that you can compare κ.
    noise : Standard deviation of the noise on every neuron's state at the readout. The
        default of fit is 0; here noise shows the benefit of a large margin.
    """
    from .inputs import load_task

    options.check_targets(report=report)
    parameters = network.parameters()
    # At the large η that cross-validation may choose, tight proofs take minutes.
    parameters["certify"] = network.eta != "cv"
    task = load_task(data, files, seed=seed, holdout=holdout, device=network.device)
    order, own = network.order, network.own
    n_neurons = network.neurons if own is None else own.weights.shape[0]
    if n_neurons > _LARGE and order == 1 and not invocation.given("order"):
        order, left = 0, f"The non-linear network is left out: above {_LARGE} neurons,"
        often = "it takes minutes to hours"
        invocation.notes.append(f"{left} {often}. --order 1 asks for it.")
    given = order, network.noise, seed, parameters, report, pooled
    if at_most:
        import numpy as np

        several = len(np.unique(np.asarray(task.y))) > 2
        options.refuse_if(several, "--at-most is for two classes; name them with --classes")
        unequal = "--at-most needs series of one length; cut or pad them"
        options.refuse_if(isinstance(task.X, list), unequal)
    return compare(task, *given, own, at_most)


@command("greenfold demo --report page.html")
def demo(
    report: Path = opt(_PAGE, "Output"), orders: bool = opt(False), seed: int = options.SEED
) -> Answer:
    """Compare random and solved input projections u on synthetic heartbeats.

    The demo takes half a minute, needs no data, and writes a report page.

    report : File for the report.
    orders : Compare the unfolding with an ODE solver instead, order by order.
    """
    from ..apps.demo import NOISE, PARAMETERS, demo_task

    if orders:
        why = "is for the comparison of projections; leave it out with --orders"
        invocation.refuse(why, "report", "seed")
        return _orders()
    options.check_targets(report=report)
    return compare(demo_task(seed), 1, NOISE, seed, PARAMETERS, report)


def _orders() -> Answer:
    from ..apps.demo import ALPHAS, ORDERS, order_errors, order_slopes

    with options.progress(1) as step:
        step("running the ODE solver")
        errors = order_errors()
    slopes = order_slopes(errors)
    record = {"orders": ORDERS, "alphas": ALPHAS}
    record |= {"relative_errors": errors, "slopes": slopes}
    columns = ["order", *(f"α = {alpha:g}" for alpha in ALPHAS), "slope", "theory"]
    rows = [
        [str(order), *(f"{error:.1e}" for error in line), f"{slope:.2f}", str(order + 1)]
        for order, line, slope in zip(ORDERS, errors, slopes, strict=True)
    ]
    title = "Relative error of the unfolded states, compared with an ODE solver"
    return Answer(record, lambda: show.table(columns, rows, title=title, n_text=0))


def compare(
    task: "Split",
    order: int | str,
    noise: float,
    seed: int,
    parameters: dict[str, Any],
    report: Path | None,
    pooled: bool = False,
    own: options.OwnWeights | None = None,
    at_most: int | None = None,
) -> Answer:
    """Compare random with solved u, linear and non-linear, and write the report."""
    from ..apps.report import comparison

    orders = [0, order] if order else [0]
    # Solving for u takes several times as long as solving for v.
    weights = [weight_of(k) * one for k in orders for one in (1, 4)]
    drawing = 2 * weight_of(order) if report else 0
    measured = partial(comparison.compare, task, noise=noise, seed=seed)
    other = None
    with options.progress(sum(weights) + 3 + drawing + 4 * pooled) as step:
        step("drawing random u", 3)
        plain = {k: v for k, v in parameters.items() if k not in ("alpha", "certify")}
        (first,) = measured([("random", 0)], parameters=plain, refit=False)
        # A few draws say enough where each takes long.
        n_draws = 3 if first.reservoir.n_neurons > _LARGE else 11
        drawn: Any = {"n_draws": n_draws, "seed": seed, "parameters": plain}
        spread = comparison.random_spread(first, task, **drawn)
        typical, todo = spread.median, iter(weights[1:])
        u = typical.classifier.input_projection
        rows = measured(
            [(one, k) for k in orders for one in (u, "solved")][1:],
            parameters=parameters,
            on_fit=lambda text: step(f"fitting {text}", next(todo)),
        )
        rows = comparison.share_bounds([typical, *rows])
        named = next(row for row in rows if row.is_solved)
        if at_most:
            few: Any = {"seed": seed, "parameters": plain}
            rows.append(named := comparison.drive_few(named, task, at_most, **few))
        notes = [one for one in (str(spread), comparison.explained(rows[0])) if one]
        notes += show.uncertain(task.judged[1])
        if parameters["eta"] != "cv":
            notes.append(_FIXED)
        if pooled:
            step("fitting the pooled classifier", 4)
            _, accuracy, seconds = fit_pooled(task, seed, parameters.get("n_jobs"))
            other = {"accuracy": accuracy, "seconds": round(seconds, 3)}
        if report:
            step("drawing the figures", drawing)
            report = write_page(report, task, rows, " ".join(notes))
    record = {
        "data": task.name,
        "n_train": len(task.y),
        "n_test": len(task.judged[1]),
        "rows": [comparison.to_record(row) for row in rows],
        "random_draws": {
            "accuracy": spread.accuracy,
            "accuracy_under_noise": spread.noisy_accuracy,
            "soft_margin": spread.soft_margin,
        },
        "pooled": other,
        "report": report,
    }
    cells = strongest_cells(named, own)
    record |= {"cells": cells} if cells else {}
    notes += told_cells(cells)
    if any(row.proven for row in rows):
        most = f"by more than {comparison.PROVEN:.1%} at this η"
        notes.insert(0, f"✓ proven: no other u and v of this network are better {most}.")
    if other:
        shown = f"accuracy {other['accuracy']:.1%}, fit {other['seconds']:.1f} s"
        notes.append(f"Pooled classifier: {shown}.")
    if report:
        notes.append(f"Report: {report}")
    return Answer(record, lambda: _show(record, rows, notes))


#: Said of accuracies at one η for all rows.
_FIXED = (
    "All rows have the same η, so that you can compare κ. --eta cv gives each row the η of "
    "its best accuracy, with and without noise, which changes accuracies and their order."
)


#: Number of cells, and of classes, whose weights are named.
_NAMED, _FEW_CLASSES = 5, 3


def strongest_cells(row: "Row", own: options.OwnWeights | None) -> dict[str, Any]:
    """Return the cells with the largest weights in a row, by class for several."""
    if own is None or own.edges is None:
        return {}
    fitted, strongest = row.classifier, own.edges.strongest
    heads = list(zip(fitted.classes_.tolist(), fitted.heads_, strict=False))
    return {
        "" if len(heads) == 1 else f" for class {label}": {
            "projection": row.projection,
            "driven": strongest(head.u, _NAMED),
            "read": strongest(head.v, _NAMED),
        }
        for label, head in heads[:_FEW_CLASSES]
    }


def told_cells(cells: dict[str, Any]) -> list[str]:
    """Return one line for u and one for v, of each class."""
    return [
        f"Cells {what} most{of} (input u: {each['projection']}): "
        + ", ".join(f"{name} ({weight:+.2g})" for name, weight in each[what] if weight)
        + "."
        for of, each in cells.items()
        for what in ("driven", "read")
    ]


def weight_of(order: int | str) -> float:
    """Return the weight of a fit in the progress bar: non-linear fits take longer."""
    return 20.0 if order else 1.0


def write_page(path: Path, task: "Split", rows: "Sequence[Row]", remark: str) -> Path:
    """Write the report and return its path; stop at Ctrl-C."""
    from ..apps.report.page import write_report

    how: Any = {"remark": remark, "command": invocation.line()}
    made = write_report(path, task, rows, on_part=lambda _: raise_if_interrupted(), **how)
    raise_if_interrupted()
    return made


def _show(record: dict[str, Any], rows: "Sequence[Row]", notes: list[str]) -> None:
    columns: dict[str, Callable[[Row], str]] = {
        "network": lambda row: row.network,
        "input u": lambda row: row.projection,
        "η": lambda row: f"{row.classifier.eta_:.3g}",
        "margin κ": lambda row: show.number(row.soft_margin),
        "bound": lambda row: show.number(row.bound) + (" ✓" if row.proven else ""),
        "accuracy": lambda row: f"{row.accuracy:.1%}",
        "η (noise)": lambda row: f"{row.noisy_eta:.3g}",
        f"noise {rows[0].noise:g}": lambda row: f"{row.noisy_accuracy:.1%}",
        "fit": lambda row: f"{row.seconds:.1f} s",
    }
    if not rows[0].noise:
        del columns["noise 0"]
    if all(row.noisy_eta == row.classifier.eta_ for row in rows):
        del columns["η (noise)"]
    if rows[0].for_noise:
        del columns["accuracy"]
    show.table(
        list(columns),
        [[cell(row) for cell in columns.values()] for row in rows],
        title=f"{record['data']}: {record['n_train']} training and {record['n_test']} test "
        f"series, {rows[0].reservoir.n_neurons} neurons",
        n_text=2,
        bold=[i for i, row in enumerate(rows) if row.is_solved],
        notes=notes,
    )
