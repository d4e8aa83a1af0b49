"""`greenfold sweep`, `study` and `reproduce`: run many jobs, and continue if stopped."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import options, show
from .options import Answer, Runs, arg, command, group, invocation, opt, reader, refuse_if

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


_RESAMPLES = reader(
    lambda text: int(text) if text.isdecimal() else options.ranges(text),
    "N|A-B|A,B[,…]",
    "a number of resamples, or a list such as 0-4,7",
)


@command(
    "greenfold sweep -e PooledReservoirClassifier -e MiniROCKET Coffee GunPoint "
    "--resamples 5 --compare"
)
def sweep(
    data: list[str] | None = arg(None, "DATA", autocompletion=options.complete_dataset),
    estimators: list[str] | None = opt(None, None, "--estimator", "-e", metavar="NAME"),
    resamples: Any = opt("1", None, "-r", **_RESAMPLES),
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

    compared.check(estimators or [], data or [])
    workers, compare = runs.workers(), compared.compare
    if compare and runs.figures != "none":
        options.need("matplotlib", "seaborn", "aeon", extra="sweep")
    record: dict[str, Any] = {}
    failed = False
    if estimators:
        how: Any = {"data_dir": runs.data_dir, "seed": seed, "device": device}
        summary = sweeps.sweep(
            estimators, data or [], resamples, out, workers=workers, **how
        )
        failed = bool(summary.failures)
        record = {"out": str(out), **asdict(summary)}
        if not json:  # before the comparison, which may raise
            tell(summary, out)
    if not compare:
        record["accuracy"] = found = _accuracies(estimators or [], out)
        rows = [(a, b, f"{one:.4f}") for a, own in found.items() for b, one in own.items()]
        shown = partial(show.table, ["estimator", "data", "accuracy"], rows, n_text=2)
        return Answer(record, shown if rows else lambda: None, failed)
    names = [] if compared.published == "none" else options.words(compared.published)
    try:
        made = sweeps.compare(out, published=names, data_dir=runs.data_dir)
    except FileNotFoundError:
        if not failed:
            raise
        return Answer(record, lambda: None, failed=True)  # the failures say why
    folder = compared.comparison or out / "comparison"
    files = sweeps.write_tables(made, folder, out)
    files += [] if runs.figures == "none" else sweeps.draw(made, folder, runs.figures)
    record["comparison"] = {**made.record(), "files": files}
    return Answer(record, lambda: _show_comparison(made, folder), failed)


def _accuracies(estimators: list[str], out: Path) -> dict[str, dict[str, float]]:
    """Return mean accuracies over the available resamples, by estimator and data set."""
    from ..apps import sweep as sweeps

    scores = sweeps.read_folder(out)[0] if out.is_dir() else {}
    labels = (sweeps.parse_estimator(one).label for one in estimators)
    found = {label: scores[label] for label in labels if label in scores}
    return {
        label: {name: sum(k.values()) / len(k) for name, k in own.items()}
        for label, own in found.items()
    }


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


def _show_comparison(made: "Comparison", folder: Path) -> None:
    best = (made.accuracy >= made.accuracy.max(axis=1, keepdims=True)).sum(axis=0)
    ranked = (-made.mean_accuracy).argsort(kind="stable").tolist()
    left_out = f"Left out because incomplete: {', '.join(made.left_out)}."
    columns = zip(made.estimators, made.mean_accuracy, made.mean_rank, best, strict=True)
    cells = [
        (name, f"{accuracy:.4f}", f"{rank:.2f}", f"{first} of {len(made.datasets)}")
        for name, accuracy, rank, first in columns
    ]
    show.table(
        ["estimator", "mean accuracy", "mean rank", "best on"],
        [cells[i] for i in ranked],
        title=f"Accuracy, {made.basis}",
        bold=[k for k, i in enumerate(ranked) if made.estimators[i] in made.own],
        notes=[*([left_out] if made.left_out else []), *made.notes],
    )
    print(f"Tables and figures: {folder}")


#: Properties by which networks may differ.
_AXES = ("dataset", "architecture", "neurons", "g", "tau", "order", "gain", "inside")
#: Number of networks to print; the table in the folder has all networks.
_BEST = 15
#: Short headers, so that a table of all axes fits into 80 columns.
_SHORT = {"dataset": "data", "architecture": "network", "neurons": "N", "tau": "τ"}
_JUDGED = "Scores"


def _values(kind: type) -> dict[str, Any]:
    """Return the settings of an option for numbers ``1,2`` or a range ``1..2``."""

    def read(text: str) -> Any:
        low, dots, high = text.partition("..")
        if dots:
            return {"low": kind(low), "high": kind(high), "log": True}
        return options.several(kind)(text)

    return reader(read, "A,B[,…]|A..B", "numbers like 1,2 or, with --random, 1..2")


def _orders(text: str) -> list[int | str]:
    return [one if one == "exact" else int(one) for one in options.words(text)]


_NOISES = reader(
    options.several(float),
    "S[,…]",
    "numbers separated by commas",
    lambda found: all(map(math.isfinite, found)),
)


@group("Networks")
class GridOptions:
    """A grid of networks, or random draws from it.

    architecture : random, sparse, dale, spatial, oscillators, cycle, delay_line, legendre,
        or all. Repeat the option for several.
    neurons : Numbers of neurons; 50 by default, because a study has many networks.
    g : Spreads g of the weights, approximately their spectral radii; 0.9 by default.
    tau : Time constants τ, in the unit of the duration; 0.25 by default.
    seeds : Number of seeds per kind of network.
    order : Orders of the unfolding, or exact.
    gain : linear, tanh, quadratic:0.05 or biased_tanh:0.5. Repeat the option for several.
    random : Number of networks to draw at random from the values or ranges A..B, instead of
        all combinations.
    eta : Weight η of the variance in the soft margin κ, the same for all networks so that
        you can compare them; 10 by default.
    noise : Standard deviations of the noise on every neuron's state at the readout, for the
        accuracy; 0,0.1 by default.
    memory : Also compute the memory capacity.
    """

    architecture: list[str] | None = opt(None, None, "-a", metavar="NAME")
    neurons: Any = opt(None, None, "-n", **_values(int))
    g: Any = opt(None, **_values(float))
    tau: Any = opt(None, **_values(float))
    seeds: int | None = opt(None, min=1)
    order: Any = opt(None, **reader(_orders, "K[,…]", "like 0,1 or exact"))
    gain: list[str] | None = opt(None, metavar="NAME")
    random: int | None = opt(None, metavar="N", min=1)
    eta: float | None = opt(None, _JUDGED)
    noise: Any = opt(None, _JUDGED, **_NOISES)
    memory: bool = opt(False, _JUDGED)

    def grid(self) -> Any:
        """Return the grid of the library, with defaults for options that were not given."""
        from ..apps.study import ARCHITECTURES, Grid

        axes = options.pick(self, "neurons", "g", "tau", "order", "gain")
        kinds = set(self.architecture or ["random"])
        if not any(ARCHITECTURES.get(kind, True) for kind in kinds):
            why = "is for networks that are drawn; leave it out with this --architecture"
            invocation.refuse(why, "seeds")
        if kinds == {"legendre"}:
            invocation.refuse("does not apply to legendre; leave it out", "g")
        if self.order != [0] and set(self.gain or ["linear"]) == {"linear"}:
            invocation.refuse("needs a non-linear --gain", "order")
        every = self.architecture == ["all"]
        axes["architecture"] = list(ARCHITECTURES) if every else self.architecture
        axes["seed"] = self.seeds and list(range(self.seeds))
        settings = {"eta": self.eta, "noise": self.noise, "memory": self.memory or None}
        axes, settings = (
            {name: one for name, one in each.items() if one is not None}
            for each in (axes, settings)
        )
        return Grid(axes, self.random, settings)


@command("greenfold study ECG5000 --classes 1,2 -a random -a cycle -n 50,100 --seeds 5")
def study(
    data: list[str] | None = arg(None, "DATA", autocompletion=options.complete_dataset),
    classes: list[str] | None = opt(None, **options.WORDS),
    preset: str | None = opt(),
    config: Path | None = opt(),
    networks: GridOptions = GridOptions(),
    out: Path = opt(Path("study"), "Output"),
    table: Literal["csv", "parquet"] = opt("csv", "Output"),
    runs: Runs = Runs(),
) -> Answer:
    r"""Compare the certified soft margins κ of many networks, with solved and random u.

    Finished results are reused. To resume a stopped study, run the same command again. If a
    network fails, the others continue and the exit code is 1.

    data : Names of data sets or their folders; if one has more than two classes, name two,
        as in ECG5000:1,2.
    classes : Two classes, for every data set that does not name its own.
    preset : Name of a built-in study: architectures.
    config : TOML file with tables \[\[grid]], which also take duration, draws, random_state
        and inside (the intensity of noise inside the network).
    out : Folder for the results.
    table : Format of the table.
    """
    from ..apps.runner import run_jobs
    from ..apps.study import draw, plan, read_study, write_table

    workers = runs.workers()
    usual, grids = _plan(networks, preset, config)
    wanted = data or usual
    if classes is not None:
        if all(":" in one for one in wanted):
            invocation.refuse("is not needed: all data name their classes", "classes")
        two = "--classes must name two classes, as in --classes 1,2"
        refuse_if(len(set(classes)) != 2, two)
        wanted = [one if ":" in one else f"{one}:{','.join(classes)}" for one in wanted]
    refuse_if(not wanted, "name a data set, or give --preset or --config")
    if runs.figures != "none":
        options.need("matplotlib")
    jobs = plan(wanted, grids, data_dir=runs.data_dir)
    summary = run_jobs(jobs, out, workers, label="study")
    try:
        rows = read_study(out, {job.path for job in jobs})
    except FileNotFoundError:  # all have failed
        rows = []
    files = [write_table(rows, out / f"study.{table}")] if rows else []
    if rows and runs.figures != "none":
        files += draw(rows, out, runs.figures)
    made: dict[str, Any] = {"rows": rows} if rows else {}
    made["files"] = [str(path) for path in files]

    def display() -> None:
        if rows:
            _show_study(rows)
            print(f"Table and figures: {', '.join(made['files'])}")
        tell(summary, out)

    record = {"out": str(out), **asdict(summary), **made}
    return Answer(record, display, bool(summary.failures))


def _plan(networks: GridOptions, preset: str | None, config: Path | None) -> Any:
    from ..apps.study import PRESETS, read_config

    if preset is None and config is None:
        return [], [networks.grid()]
    both = networks != GridOptions() or (preset is not None and config is not None)
    why = "define the networks; give one of them, and no other network options"
    refuse_if(both, f"--preset and --config {why}")
    if config is not None:
        return read_config(config)
    wanted = f"be one of {', '.join(PRESETS)}, not {preset!r}"
    refuse_if(preset not in PRESETS, f"--preset must {wanted}")
    return PRESETS[str(preset)]


def _show_study(rows: Sequence[dict[str, Any]]) -> None:
    """Print the networks with the largest κ, with means over their seeds."""
    varied = [k for k in _AXES if len({str(row[k]) for row in rows}) > 1]
    varied = varied or ["architecture"]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in _AXES), []).append(row)
    accuracies = [k for k in rows[0] if k.startswith("accuracy_") and "random" not in k]
    noise = accuracies[-1].partition("_")[2]
    remembers = any(row.get("memory") is not None for row in rows)

    def mean(own: list[dict[str, Any]], key: str) -> float:
        found = [row[key] for row in own if row.get(key) is not None]
        return sum(found) / len(found) if found else float("nan")

    def cells(own: list[dict[str, Any]]) -> list[str]:
        values = (own[0][k] for k in varied)
        return [
            *(f"{one:.4g}" if isinstance(one, float) else str(one) for one in values),
            str(len(own)),
            f"{mean(own, 'kappa'):.4f}",
            show.number(mean(own, "bound"), ".4f"),
            f"{mean(own, 'kappa_random'):.4f}",
            f"{mean(own, f'accuracy_{noise}'):.1%}",
            f"{mean(own, f'accuracy_random_{noise}'):.1%}",
            *([show.number(mean(own, "memory"), ".3g")] if remembers else []),
        ]

    ranked = sorted(groups.values(), key=lambda own: -mean(own, "kappa"))
    few = f"These {_BEST} of {len(ranked)} networks have the largest κ; the table has all."
    numbers = ["nets", "κ", "bound", "random κ", "solved", "random"]
    told = f"Columns solved and random: accuracy of that u with noise {noise}."
    show.table(
        [*(_SHORT.get(k, k) for k in varied), *numbers, *["memory"] * remembers],
        map(cells, ranked[:_BEST]),
        n_text=len(varied),
        wrap=True,
        notes=[told, few] if len(ranked) > _BEST else [told],
    )


@command("greenfold reproduce fig2 --quick")
def reproduce(
    names: list[str] | None = arg(None, "NAME"),
    out: Path = opt(Path("reproduction"), "Output"),
    quick: bool = opt(False),
    redraw: bool = opt(False),
    data_dir: Path | None = options.DATA_DIR,
    jobs: int | None = opt(None, "Output", "-j"),
    json: bool = options.JSON,
) -> Answer:
    """Reproduce the figures and tables of the paper.

    Seeds and parameters are fixed; they are at the top of the files in
    greenfold/apps/paper.

    names : Any of fig1, fig2, fig3, fig4, table1, choices (Δt, η and τ), supplement and
        beyond (results beyond the paper); all by default.
    out : Folder for the files.
    quick : Run a reduced version, which takes about half a minute per figure.
    jobs : Number of processes; all cores by default.
    redraw : Draw again from the JSON files in the folder, without computing.
    """
    if redraw:
        why = "does not change what is drawn; leave it out with --redraw"
        invocation.refuse(why, "quick", "jobs", "data_dir")
    options.need("matplotlib")
    from ..apps.paper.figures import FIGURES, ON_HEARTBEATS
    from ..apps.paper.figures import reproduce as reproduced

    unknown = next((one for one in names or () if one not in FIGURES), None)
    known = f"choose from {', '.join(FIGURES)}"
    refuse_if(unknown, f"no figure or table is called {unknown!r}; {known}")
    if not ON_HEARTBEATS & set(names or FIGURES):
        invocation.refuse("is for figures on ECG5000; leave it out", "data_dir")
    outcomes = []
    for name in names or FIGURES:
        for outcome in reproduced(name, out, quick, data_dir, jobs, redraw):
            outcomes.append(asdict(outcome))
            if not json:  # print it now, because the next one may take minutes
                print(outcome, flush=True)
    skipped = any(one["skipped"] is not None for one in outcomes)
    return Answer({"outcomes": outcomes}, lambda: None, skipped)
