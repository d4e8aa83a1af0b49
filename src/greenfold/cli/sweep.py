"""`greenfold sweep`: run estimators on data sets and resamples, and compare them."""

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import options, show
from .options import Answer, Runs, arg, command, group, invocation, opt, refuse_if

if TYPE_CHECKING:
    from ..apps.runner import Summary
    from ..apps.sweep import Comparison


@group("Comparison")
class Compared:
    """Whether and with what to compare the results.

    compare : Compare the results in tables and figures; without -e, compare those already
        in the folder.
    comparison : Folder for the tables and figures; by default 'comparison' in the folder of
        the results.
    published : Published results to compare with, or 'none'.
    """

    compare: bool = opt(False)
    comparison: Path | None = opt(None)
    published: str = opt("ROCKET,MiniROCKET,MR-Hydra,HC2", metavar="NAMES")

    def check(self, estimators: Sequence[str], data: Sequence[str]) -> None:
        """Refuse options that would have no effect."""
        if not self.compare:
            why = "is for a comparison; it needs --compare"
            invocation.refuse(why, "comparison", "published", "figures")
        if not estimators:
            refuse_if(not self.compare, "name an estimator with -e, or give --compare")
            refuse_if(data, "DATA needs an estimator; name one with -e")
            of_runs = ("resamples", "device", "seed", "jobs", "dask", "redo")
            invocation.refuse("needs an estimator; name one with -e", *of_runs)
            if self.published == "none":
                invocation.refuse("has no effect with --published none", "data_dir")


@command(
    "greenfold sweep -e PooledReservoirClassifier -e MiniROCKET Coffee GunPoint "
    "--resamples 5 --compare"
)
def sweep(
    data: list[str] | None = arg(None, "DATA", autocompletion=options.complete_dataset),
    estimators: list[str] | None = opt(None, None, "--estimator", "-e", metavar="NAME"),
    resamples: str = opt("1", None, "-r", metavar="N"),
    out: Path = opt(Path("results"), "Output"),
    compared: Compared = Compared(),
    runs: Runs = Runs(),
    device: str = opt("cpu", "Where it runs", metavar="DEVICE"),
    seed: int | None = options.seed(
        "Random state for the estimators; by default the resample's number.", None, None
    ),
    json: bool = options.JSON,
) -> Answer:
    """Run estimators on many data sets and write results in tsml-eval's layout.

    Finished results are reused; outdated results are computed again. To resume a stopped
    run, run the same command again. If a job fails, the others continue and the exit code
    is 1. To set parameters, name the estimator like this:
    -e 'small=PooledReservoirClassifier(n_readouts=16)'.

    data : Names of data sets, folders of data sets, or .txt files with one name per line;
        by default all data sets in the data directory.
    estimators : ReservoirClassifier, PooledReservoirClassifier, MiniROCKET, ROCKET, QUANT,
        …, any class of aeon.classification, or module:Class. Repeat the option for several.
    resamples : Number of resamples, beginning with 0, the provided split; or a list such as
        0-4,7.
    out : Folder for the results.
    device : Device for greenfold's own estimators: cpu, cuda or cuda:1, … (PyTorch). The
        default on cuda is one process.
    """
    from ..apps import sweep as sweeps
    from ..apps.runner import Summary

    compared.check(estimators or [], data or [])
    workers, compare = runs.workers(), compared.compare
    if compare and runs.figures != "none":
        options.need("matplotlib", "seaborn", "aeon", extra="sweep")
    try:
        numbers = sweeps.parse_resamples(resamples)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    record: dict[str, Any] = {}
    summary = Summary()
    if estimators:
        with resumable(summary):
            sweeps.sweep(
                estimators,
                data or [],
                numbers,
                out,
                data_dir=runs.data_dir,
                seed=seed,
                device=device,
                workers=workers,
                summary=summary,
            )
        record = {"out": str(out), **asdict(summary)}
        if not json:  # before the comparison, which may raise
            tell(summary, out)
    if not compare:
        record["accuracy"] = found = _accuracies(estimators or [], out)
        rows = [(a, b, f"{one:.4f}") for a, own in found.items() for b, one in own.items()]
        shown = ["estimator", "data", "accuracy"]
        show_found = functools.partial(show.table, shown, rows, n_text=2)
        return Answer(record, show_found if rows else lambda: None, bool(summary.failures))
    published = compared.published
    names = [] if published == "none" else options.words(published)
    try:
        made = sweeps.compare(out, published=names, data_dir=runs.data_dir)
    except FileNotFoundError:
        if not summary.failures:
            raise
        return Answer(record, lambda: None, failed=True)  # the failures say why
    folder = compared.comparison or out / "comparison"
    files = sweeps.write_tables(made, folder, out)
    files += [] if runs.figures == "none" else sweeps.draw(made, folder, runs.figures)
    record["comparison"] = {**made.record(), "files": files}
    return Answer(record, lambda: _show(made, folder), bool(summary.failures))


def _accuracies(estimators: list[str], out: Path) -> dict[str, dict[str, float]]:
    """Return mean accuracies over the available resamples, by estimator and data set."""
    from ..apps import sweep as sweeps

    scores = sweeps.read_folder(out)[0] if out.is_dir() else {}
    wanted = [sweeps.parse_estimator(one).label for one in estimators]
    return {
        label: {name: sum(k.values()) / len(k) for name, k in scores[label].items() if k}
        for label in wanted
        if label in scores
    }


@contextmanager
def resumable(summary: "Summary") -> Iterator[None]:
    """At Ctrl-C, print how many results are written."""
    try:
        yield
    except KeyboardInterrupt:
        if summary.total:
            done = f"{summary.found + summary.made} of {summary.total} results are written"
            more = "run the same command again to continue"
            print(f"greenfold: {done}; {more}.", file=sys.stderr)
        raise


def tell(summary: "Summary", out: Path) -> None:
    """Print the outcome of the jobs."""
    redone = f" ({summary.redone} were outdated or damaged)" if summary.redone else ""
    made = f"{summary.made} results written{redone}, {summary.found} reused"
    print(f"{made}, in {out}.")
    if summary.elsewhere:
        print(f"{summary.elsewhere} results are being computed by another run here.")
    if summary.foreign:
        left = "files were not written by greenfold and were left unchanged; the first is"
        print(f"{len(summary.foreign)} {left} {summary.foreign[0]}.")
    for failure in summary.failures[:20]:
        print(f"failed: {failure.path}: {failure.error}")
    if len(summary.failures) > 20:
        print(f"… and {len(summary.failures) - 20} more.")
    if summary.failures:
        where = f"their tracebacks are in {out / 'failures'}"
        print(f"{len(summary.failures)} jobs failed; {where}.")


def _show(made: "Comparison", folder: Path) -> None:
    best = (made.accuracy >= made.accuracy.max(axis=1, keepdims=True)).sum(axis=0)
    ranked = (-made.mean_accuracy).argsort(kind="stable").tolist()
    left_out = f"Left out because incomplete: {', '.join(made.left_out)}."
    accuracy, ranks, n_sets = made.mean_accuracy, made.mean_rank, len(made.datasets)
    show.table(
        ["estimator", "mean accuracy", "mean rank", "best on"],
        [
            (
                made.estimators[i],
                f"{accuracy[i]:.4f}",
                f"{ranks[i]:.2f}",
                f"{best[i]} of {n_sets}",
            )
            for i in ranked
        ],
        title=f"Accuracy, {made.basis}",
        bold=[k for k, i in enumerate(ranked) if made.estimators[i] in made.own],
        notes=[*([left_out] if made.left_out else []), *made.notes],
    )
    print(f"Tables and figures: {folder}")
