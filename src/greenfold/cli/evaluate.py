"""`greenfold evaluate`: four networks side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import (
    Alpha,
    Data,
    DataDir,
    Debug,
    Device,
    Duration,
    Eta,
    Format,
    Jobs,
    Json,
    LabelFile,
    Neurons,
    Noise,
    Report,
    Seed,
    Spread,
    Tau,
    Test,
    Trim,
    Weights,
    progress,
    weight_of,
    write_page,
)


def evaluate(
    ctx: typer.Context,
    data: Data,
    report: Report = None,
    test: Test = None,
    holdout: Annotated[
        float,
        typer.Option(
            "--holdout",
            min=0.01,
            max=0.9,
            help="Share of a file's series to hold out for testing.",
            rich_help_panel="Data",
        ),
    ] = 0.25,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="0…5|exact",
            help="Order of the non-linear network, or 'exact' to integrate it; 0 leaves it "
            "out.",
            rich_help_panel="Network",
        ),
    ] = "1",
    alpha: Alpha = 0.05,
    neurons: Neurons = 100,
    g: Spread = 0.9,
    weights: Weights = None,
    tau: Tau = "0.25",
    duration: Duration = 10.0,
    eta: Eta = "10",
    noise: Noise = 0.1,
    pooled: Annotated[
        bool,
        typer.Option(
            "--pooled",
            help="Also the pooled classifier, for series that are not aligned.",
        ),
    ] = False,
    seed: Seed = 0,
    data_dir: DataDir = None,
    trim: Trim = False,
    format: Format = None,
    y: LabelFile = None,
    jobs: Jobs = None,
    device: Device = "cpu",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare random and solved projections, linear and non-linear.

    Soft margins compare at the same η only, so all rows share one. With --eta cv each
    row chooses its own by cross-validation, once without and once with the noise; a
    linear network that is read without noise then gains little from its input
    projection.
    """
    del debug
    from . import network
    from .inputs import load_task

    options.check_target(report, "--report")
    parameters: dict[str, Any] = {
        "alpha": alpha,
        "n_neurons": neurons,
        "g": g,
        "tau": options.number_or("auto", tau, "--tau"),
        "duration": duration,
        "eta": options.number_or("cv", eta, "--eta"),
        # At the large η that cross-validation may choose, tight proofs take minutes.
        "certify": eta != "cv",
        "n_jobs": jobs,
    }
    parameters |= network.parameters(ctx, weights)
    task = load_task(
        data,
        test=test,
        holdout=holdout,
        data_dir=data_dir,
        trim=trim,
        seed=seed,
        form=format,
        labels=y,
    )
    compare_and_show(
        options.on_device(task, device),
        order=options.order_of(order),
        noise=noise,
        seed=seed,
        parameters=parameters,
        report=report,
        json=json,
        pooled=pooled,
    )


def compare_and_show(
    task: Any,
    *,
    order: int | str,
    noise: float,
    seed: int,
    parameters: dict[str, Any],
    report: Path | None,
    json: bool,
    pooled: bool = False,
) -> None:
    """Fit the four variants, print the table, write the page."""
    from ..apps.report import comparison
    from . import show
    from .pooled import judge

    orders = [0, order] if order else [0]
    variants = [(p, k) for k in orders for p in ("random", "optimal")]
    # Solving for u takes several times as long as solving for v.
    weights = [weight_of(k) * (1 if p == "random" else 4) for p, k in variants]
    total = sum(weights) + 2 + (2 * weight_of(order) if report else 0)
    total += 4 if pooled else 0
    with progress(total) as bar:
        todo = iter(weights)
        rows = comparison.compare(
            task,
            variants,
            noise=noise,
            seed=seed,
            parameters=parameters,
            on_fit=lambda text: bar.step(f"fitting {text}", next(todo)),
        )
        bar.step("drawing other random u", 2)
        spread = comparison.random_spread(rows[0], task, seed=seed)
        other = None
        if pooled:
            bar.step("fitting the pooled classifier", 4)
            other = judge(task, seed=seed, jobs=parameters.get("n_jobs"))[1:]
        if report:
            bar.step("drawing the figures", 2 * weight_of(order))
            report = write_page(report, task, rows, remark=str(spread))
    if json:
        options.print_json(
            {
                "data": task.name,
                "n_train": len(task.y),
                "n_test": len(task.judged[1]),
                "rows": [comparison.to_record(row) for row in rows],
                "random_draws": {
                    "accuracy": spread.accuracy,
                    "accuracy_under_noise": spread.noisy_accuracy,
                    "soft_margin": spread.soft_margin,
                },
                "pooled": None
                if other is None
                else {"accuracy": other[0], "seconds": round(other[1], 3)},
                "report": report,
            }
        )
        return
    title = (
        f"{task.name}: {len(task.y)} training and {len(task.judged[1])} test series, "
        f"{rows[0].classifier.reservoir_.n_neurons} neurons"
    )
    notes = [str(spread)]
    if other is not None:
        notes.append(f"Pooled classifier: accuracy {other[0]:.1%}, fit {other[1]:.1f} s.")
    show.comparison(rows, title, notes)
    if report:
        print(f"Report: {report}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    example = "Example: [bold]greenfold evaluate ECG5000 --report page.html[/bold]"
    app.command(epilog=example)(evaluate)
