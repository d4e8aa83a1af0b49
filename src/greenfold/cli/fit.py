"""`greenfold fit`: solve for the projections on a data set."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
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
from .pooled import Kind


class Projection(StrEnum):
    """Input projections by name."""

    optimal = "optimal"
    shared = "shared"
    random = "random"


def fit(
    ctx: typer.Context,
    data: Data,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="Write the model.", rich_help_panel="Output"),
    ] = None,
    classifier: Annotated[
        Kind,
        typer.Option(
            "--classifier",
            help="margin: both projections solved, read once, for aligned series. pooled: "
            "read at every step, for series that are not aligned.",
        ),
    ] = Kind.margin,
    report: Report = None,
    test: Test = None,
    holdout: Annotated[
        float,
        typer.Option(
            "--holdout",
            min=0,
            max=0.9,
            help="Share of a file's series to hold out for testing.",
            rich_help_panel="Data",
        ),
    ] = 0.0,
    projection: Annotated[
        Projection,
        typer.Option(
            "--projection",
            help="Input projection: solved (for each class, or one shared by all classes) "
            "or random.",
            rich_help_panel="Network",
        ),
    ] = Projection.optimal,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="0…5|exact",
            help="0 is the linear network, 1 the paper's first order in α, 'exact' the "
            "integrated network.",
            rich_help_panel="Network",
        ),
    ] = "0",
    alpha: Alpha = 0.05,
    neurons: Neurons = 100,
    g: Spread = 0.9,
    weights: Weights = None,
    tau: Tau = "0.25",
    duration: Duration = 10.0,
    eta: Eta = "cv",
    noise: Noise = 0.0,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify",
            help="Take the time to prove the optimum as tightly as possible (order 0).",
            rich_help_panel="Network",
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
    """Solve for the projections of a reservoir on a data set.

    For series in which things happen at any time, --classifier pooled reads the network at
    every step instead.

    A data set brings its own test series. All series of a file are used for training,
    unless --test or --holdout says otherwise.
    """
    del debug
    from ..apps.report import comparison
    from . import network, pooled
    from .inputs import load_task, refuse_opened

    if classifier is Kind.pooled:
        pooled.refuse_options_of_margin(ctx)
    options.check_target(model, "--model")
    options.check_target(report, "--report")
    parameters: dict[str, Any] = {
        "alpha": alpha,
        "n_neurons": neurons,
        "g": g,
        "tau": options.number_or("auto", tau, "--tau"),
        "duration": duration,
        "eta": options.number_or("cv", eta, "--eta"),
        "readout_noise": noise,
        "certify": certify,
        "n_jobs": jobs,
    }
    parameters |= network.parameters(ctx, weights)
    level = options.order_of(order)
    reading: dict[str, Any] = {
        "test": test,
        "holdout": holdout,
        "data_dir": data_dir,
        "trim": trim,
        "keep": classifier is Kind.pooled,
        "seed": seed,
        "form": format,
        "labels": y,
    }

    def read() -> Any:
        found = load_task(data, **reading)
        if device != "cpu":
            refuse_opened(found.X, "--device")
        return options.on_device(found, device)

    if classifier is Kind.pooled:
        pooled.fit_and_show(read(), model=model, seed=seed, jobs=jobs, json=json)
        return
    shares = [weight_of(level), 0.2, 2 * weight_of(level) if report else 0]
    with progress(1 + sum(shares)) as bar:
        bar.step("reading the data")
        task = read()
        if report:
            refuse_opened(task.X, "--report")
        bar.step("solving for the projections", shares[0])
        (row,) = comparison.compare(
            task,
            [(projection.value, level)],
            noise=noise,
            seed=seed,
            parameters=parameters,
            refit=False,
        )
        bar.step("writing the model", shares[1])
        if model:
            row.classifier.save(model)
        if report:
            bar.step("comparing for the report", shares[2])
            # The pair that the page shows side by side, at the η of the fit.
            other = "optimal" if projection is Projection.random else "random"
            twin = comparison.compare(
                task,
                [(other, level)],
                noise=noise,
                seed=seed,
                parameters={**parameters, "eta": row.classifier.eta_},
                refit=False,
            )
            write_page(report, task, comparison.share_bounds([*twin, row]))
    record = {
        "data": task.name,
        "n_train": len(task.y),
        "n_test": 0 if task.y_test is None else len(task.y_test),
        "classes": row.classifier.classes_,
        "judged_on": task.judged[2],
        "classifier": "margin",
        **comparison.to_record(row),
        "model": model,
        "report": report,
    }
    if json:
        options.print_json(record)
        return
    _print_fit(task, row, model, report)


def _print_fit(task: Any, row: Any, model: Path | None, report: Path | None) -> None:
    from . import show

    judged = task.judged[2]
    pairs: list[tuple[str, Any]] = [
        (
            "data",
            f"{task.name}: {len(task.y)} training series of up to "
            f"{row.classifier.n_features_in_} steps, "
            f"{len(row.classifier.classes_)} classes",
        ),
        (
            "network",
            f"{row.network_and_order}, {row.classifier.reservoir_.n_neurons} neurons",
        ),
        ("input u", row.projection),
        ("η", _eta(row.classifier)),
        ("soft margin κ", f"{row.soft_margin:.5g}"),
    ]
    if np.isfinite(row.bound):
        pairs.append(("upper bound", f"{row.bound:.5g} ({_proof(row)})"))
    pairs.append((f"{judged} accuracy", f"{row.accuracy:.2%}"))
    if row.noise:
        pairs.append((f"under noise {row.noise:g}", f"{row.noisy_accuracy:.2%}"))
    if row.order == "exact":
        pairs.append(("expansion", "none: the network itself is integrated"))
    elif row.order and not isinstance(row.classifier.validity_, list):
        pairs.append(("expansion", row.classifier.validity_))
    pairs += [("model", model)] if model else []
    pairs += [("report", report.absolute())] if report else []
    show.facts(pairs)


def _eta(classifier: Any) -> str:
    """The chosen η, and a word where it is the last of its grid."""
    scores = classifier.eta_scores_
    note = scores.note if scores is not None else ""
    return f"{classifier.eta_:.4g}" + (f" ({note})" if note else "")


#: Gap above which it is said what to do about it.
_WIDE = 0.05


def _proof(row: Any) -> str:
    """How far the optimum is proven, and how to prove more where that is little."""
    if row.proven:
        return "proven optimal"
    gap = f"gap {row.gap:.1%}"
    if not row.is_solved or row.gap <= _WIDE:
        return gap
    if not row.classifier.certify:
        return f"{gap}: a quick bound; --certify tightens it, and a smaller --eta does"
    return f"{gap}: the bound is not tight at this η; a smaller --eta closes it"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: [bold]greenfold fit ECG5000 --model ecg.gfm --report "
        "page.html[/bold]"
    )(fit)
