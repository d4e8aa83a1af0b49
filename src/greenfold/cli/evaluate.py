"""`greenfold evaluate` and `demo`: compare random and solved projections."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._base.interrupts import raise_if_interrupted
from . import options, show
from .options import Answer, Classifier, Tested, command, opt

if TYPE_CHECKING:
    from ..apps.report.comparison import Row, Split

_PAGE = Path("greenfold-report.html")
#: A non-linear fit takes about as long as this many linear fits.
_NONLINEAR = 20.0


@command("greenfold evaluate ECG5000 --report page.html")
def evaluate(
    data: str = options.DATA,
    report: Path | None = options.REPORT,
    files: Tested = Tested(),
    holdout: float = options.holdout(0.25, least=0.01),
    network: Classifier = Classifier(order="1", eta="10", noise=0.1),
    pooled: bool = opt(False),
    seed: int = options.SEED,
) -> Answer:
    """Compare random and solved input projections u, linear and non-linear.

    Each row shows the soft margin κ and the accuracy of one network. You can compare κ only
    at the same weight η of the variance, so all rows use the same η. With --eta cv, each
    row chooses its own η by cross-validation, once without and once with the noise. Without
    noise, a linear network then gains little from its input projection.

    order : Order of the non-linear network, or 'exact' to integrate it; 0 leaves it out.
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
    return compare(task, network.order, network.noise, seed, parameters, report, pooled)


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
        options.invocation.refuse(why, "report", "seed")
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
) -> Answer:
    """Compare random with solved u, linear and non-linear, and write the report."""
    from ..apps.report import comparison
    from .fit import fit_pooled

    orders = [0, order] if order else [0]
    # Solving for u takes several times as long as solving for v.
    weights = [weight_of(k) * one for k in orders for one in (1, 4)]
    drawing = 2 * weight_of(order) if report else 0
    measured = partial(comparison.compare, task, noise=noise, seed=seed)
    other = None
    with options.progress(sum(weights) + 3 + drawing + 4 * pooled) as step:
        step("drawing random u", 3)
        own = {k: v for k, v in parameters.items() if k not in ("alpha", "certify")}
        (first,) = measured([("random", 0)], parameters=own, refit=False)
        spread, todo = comparison.random_spread(first, task, seed=seed), iter(weights)
        rows = measured(
            [(u, k) for k in orders for u in (spread.median, "solved")],
            parameters=parameters,
            on_fit=lambda text: step(f"fitting {text}", next(todo)),
        )
        notes = [one for one in (str(spread), comparison.explained(rows[0])) if one]
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
    if any(row.proven for row in rows):
        notes.insert(0, "✓ proven: no other u and v of this network are better at this η.")
    if other:
        shown = f"accuracy {other['accuracy']:.1%}, fit {other['seconds']:.1f} s"
        notes.append(f"Pooled classifier: {shown}.")
    if report:
        notes.append(f"Report: {report}")
    return Answer(record, lambda: _show(record, rows, notes))


def weight_of(order: int | str) -> float:
    """Return the weight of a fit in the progress bar."""
    return _NONLINEAR if order else 1.0


def write_page(path: Path, task: "Split", rows: "Sequence[Row]", remark: str) -> Path:
    """Write the report and return its path; stop at Ctrl-C."""
    from ..apps.report.page import write_report

    line = options.invocation.line()
    made = write_report(
        path,
        task,
        rows,
        remark=remark,
        command=line,
        on_part=lambda _: raise_if_interrupted(),
    )
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
        f"noise {rows[0].noise:g}": lambda row: f"{row.noisy_accuracy:.1%}",
        "fit": lambda row: f"{row.seconds:.1f} s",
    }
    if not rows[0].noise:
        del columns["noise 0"]
    show.table(
        list(columns),
        [[cell(row) for cell in columns.values()] for row in rows],
        title=f"{record['data']}: {record['n_train']} training and {record['n_test']} test "
        f"series, {rows[0].classifier.reservoir_.n_neurons} neurons",
        n_text=2,
        bold=[i for i, row in enumerate(rows) if row.is_solved],
        notes=notes,
    )
