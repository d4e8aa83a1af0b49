"""`greenfold demo`: random against solved on built-in data."""

from __future__ import annotations

from pathlib import Path

from . import options, show
from .evaluate import compare
from .options import Answer, command, opt

_PAGE = Path("greenfold-report.html")


@command("greenfold demo --report page.html")
def demo(
    report: Path = opt(_PAGE, "Where the report goes.", "Output"),
    orders: bool = opt(
        False, "Instead, hold the unfolding against an ODE solver, order by order."
    ),
    seed: int = options.SEED,
) -> Answer:
    """Show random against solved projections on synthetic heartbeats.

    Takes half a minute, needs no data, and writes a report page.
    """
    from ..apps.demo import NOISE, PARAMETERS, demo_task

    if orders:
        return _orders()
    options.check_targets(report=report)
    return compare(demo_task(seed), 1, NOISE, seed, PARAMETERS, report)


def _orders() -> Answer:
    from ..apps import demo as built_in

    with options.progress(1) as bar:
        bar.step("running the ODE solver")
        errors = built_in.order_errors()
    slopes = built_in.order_slopes(errors)
    record = {
        "orders": built_in.ORDERS,
        "alphas": built_in.ALPHAS,
        "relative_errors": errors,
        "slopes": slopes,
    }
    columns = ["order", *(f"α = {alpha:g}" for alpha in built_in.ALPHAS), "slope", "theory"]
    rows = [
        [str(order), *(f"{error:.1e}" for error in line), f"{slope:.2f}", str(order + 1)]
        for order, line, slope in zip(built_in.ORDERS, errors, slopes, strict=True)
    ]
    title = "Unfolded states against an ODE solver, relative error"
    return Answer(record, lambda: show.table(columns, rows, title=title, n_text=0))
