"""`greenfold study`: compare many networks on the same stimuli."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from . import options, show
from .options import Answer, Reader, Runs, arg, command, group, opt, pick
from .sweep import resumable, tell

#: Properties by which networks may differ.
_AXES = ("dataset", "architecture", "neurons", "g", "tau", "order", "gain", "inside")
#: Number of networks to print; the table in the folder has all networks.
_BEST = 15
#: Short headers, so that a table of all axes fits into 80 columns.
_SHORT = {"dataset": "data", "architecture": "network", "neurons": "N", "tau": "τ"}
_JUDGED = "Scores"


def _values(kind: type) -> Reader:
    """Return a reader of numbers ``1,2`` or of a logarithmic range ``1..2``."""

    def read(text: str) -> Any:
        low, dots, high = text.partition("..")
        if dots:
            return {"low": kind(low), "high": kind(high), "log": True}
        return [kind(part) for part in text.split(",")]

    wanted = "numbers like 1,2 or, with --random, 1..2"
    return Reader.of(read, "A,B[,…]|A..B", wanted)


def _orders(text: str) -> list[int | str]:
    return [one if one == "exact" else int(one) for one in options.words(text)]


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
    neurons: Any = opt(None, None, "-n", read=_values(int))
    g: Any = opt(None, read=_values(float))
    tau: Any = opt(None, read=_values(float))
    seeds: int | None = opt(None, min=1)
    order: Any = opt(None, read=Reader.of(_orders, "K[,…]", "like 0,1 or exact"))
    gain: list[str] | None = opt(None, metavar="NAME")
    random: int | None = opt(None, metavar="N", min=1)
    eta: float | None = opt(None, _JUDGED)
    noise: Any = opt(
        None,
        _JUDGED,
        read=Reader.of(options.finite_numbers, "S[,…]", "numbers separated by commas"),
    )
    memory: bool = opt(False, _JUDGED)

    def grid(self) -> Any:
        """Return the grid of the library, with defaults for options that were not given."""
        from ..apps.study import ARCHITECTURES, Grid

        axes = pick(self, "neurons", "g", "tau", "order", "gain")
        kinds = set(self.architecture or ["random"])
        if not any(ARCHITECTURES.get(kind, True) for kind in kinds):
            why = "is for networks that are drawn; leave it out with this --architecture"
            options.invocation.refuse(why, "seeds")
        if kinds == {"legendre"}:
            options.invocation.refuse("does not apply to legendre; leave it out", "g")
        if self.order != [0] and set(self.gain or ["linear"]) == {"linear"}:
            options.invocation.refuse("needs a non-linear --gain", "order")
        every = self.architecture == ["all"]
        axes["architecture"] = list(ARCHITECTURES) if every else self.architecture
        axes["seed"] = self.seeds and list(range(self.seeds))
        settings = {"eta": self.eta, "noise": self.noise, "memory": self.memory or None}
        given = (
            {name: one for name, one in each.items() if one is not None}
            for each in (axes, settings)
        )
        return Grid(next(given), self.random, next(given))


@command("greenfold study ECG5000 --classes 1,2 -a random -a cycle -n 50,100 --seeds 5")
def study(
    data: list[str] | None = arg(None, "DATA", autocompletion=options.complete_dataset),
    classes: list[str] | None = opt(None, read=options.WORDS),
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
    from ..apps.runner import Summary, run_jobs
    from ..apps.study import draw, plan, read_study, write_table

    workers = runs.workers()
    planned = _plan(networks, preset, config)
    wanted = data or planned.datasets
    if classes is not None:
        if all(":" in one for one in wanted):
            options.invocation.refuse(
                "is not needed: all data name their classes", "classes"
            )
        two = "--classes must name two classes, as in --classes 1,2"
        options.refuse_if(len(set(classes)) != 2, two)
        wanted = [one if ":" in one else f"{one}:{','.join(classes)}" for one in wanted]
    options.refuse_if(not wanted, "name a data set, or give --preset or --config")
    if runs.figures != "none":
        options.need("matplotlib")
    summary = Summary()
    jobs = plan(wanted, planned.grids, data_dir=runs.data_dir)
    with resumable(summary):
        run_jobs(jobs, out, workers, label="study", summary=summary)
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
            _show(rows)
            print(f"Table and figures: {', '.join(made['files'])}")
        tell(summary, out)

    record = {"out": str(out), **asdict(summary), **made}
    return Answer(record, display, bool(summary.failures))


def _plan(networks: GridOptions, preset: str | None, config: Path | None) -> Any:
    from ..apps.study import PRESETS, StudyPlan, read_config

    if preset is None and config is None:
        return StudyPlan([], [networks.grid()])
    both = networks != GridOptions() or (preset is not None and config is not None)
    why = "define the networks; give one of them, and no other network options"
    options.refuse_if(both, f"--preset and --config {why}")
    if config is not None:
        return read_config(config)
    wanted = f"be one of {', '.join(PRESETS)}, not {preset!r}"
    options.refuse_if(preset not in PRESETS, f"--preset must {wanted}")
    return PRESETS[str(preset)]


def _show(rows: Sequence[dict[str, Any]]) -> None:
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
