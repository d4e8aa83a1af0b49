"""`greenfold explore`: make a page on which you change u by hand."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import options, show
from .options import Answer, Tested, arg, command, invocation, opt, pick, refuse_if

if TYPE_CHECKING:
    from ..apps.explorer import Explorer, PageSeries, SolvedPair, Source
    from ..estimators.margin import ReservoirClassifier

_HELD_OUT = 0.3
_SHOWN: dict[str, Any] = {"autocompletion": options.complete_dataset, "show_default": False}


@command("greenfold explore beats.csv --out page.html")
def explore(
    source: str | None = arg(None, "DATA|MODEL", **_SHOWN),
    data: str | None = arg(None, "DATA", **_SHOWN),
    out: Path | None = opt(None, options.MAIN, "-o"),
    network: options.NetworkOptions = options.NetworkOptions(neurons=12),
    tau: float = opt(0.25, "Network"),
    duration: float = options.DURATION,
    seed: int = options.SEED,
    files: Tested = Tested(),
) -> Answer:
    """Open a page where you change the input projection u by hand, or solve for it.

    The page shows the soft margin κ of your u, and its proven bound, for several weights η
    of the variance and several readout times. It is one file, computes in the browser and
    works offline. The page opens in your browser, or --out writes it to a file. If there
    are more than two classes, you choose a pair on the page.

    source : Name of a data set, path of a file with series, or a model saved by fit.
        Built-in series by default.
    data : Series for MODEL, instead of those stored in it.
    out : Write the page to this HTML file instead of opening it.
    tau : Time constant τ of the neurons, in the unit of the duration.
    neurons : Number of neurons, at most 128. The default of fit is 100; with fewer neurons,
        each bar matters more.
    """
    options.need("jinja2")
    import tempfile
    import webbrowser

    from ..apps.explorer import Start, make_explorer
    from ..estimators.margin import ReservoirClassifier
    from ..networks.echo_state import EchoStateNetwork
    from ..networks.reservoir import Reservoir

    options.check_targets(out=out)
    with options.progress(2.1) as step:
        step("reading the data")
        model, start = _model(source, files.format), Start()
        if model is not None:
            why = "cannot be combined with a MODEL, which has its own"
            own = "neurons", "g", "weights", "columns", "inhibitory", "cells", "tau"
            invocation.refuse(why, *own)
        if not (model is None or isinstance(model, Reservoir)):
            invocation.refuse("cannot be combined with this MODEL", "duration")
        if isinstance(model, ReservoirClassifier):
            name, reservoir = Path(str(source)).name, cast("Any", model.reservoir_)
            why = "was fitted on a recorded device; explore needs the weights of a network"
            refuse_if(not isinstance(reservoir, Reservoir), f"{source!r} {why}")
            duration = model.unfolding_.n_steps * model.unfolding_.dt
            start = Start.of(model, name)
            sources = [_of_model(model, name, data, files, seed)]
        elif isinstance(model, Reservoir | EchoStateNetwork):
            sources, reservoir = _of_data(data, files, seed), model
        else:
            needs = "explore needs a ReservoirClassifier, a network or series"
            kind = f"{source!r} holds a {type(model).__name__}; {needs}"
            refuse_if(model is not None, kind)
            how = "give one argument, or a MODEL and DATA"
            refuse_if(data is not None, f"{source!r} is not a saved model; {how}")
            sources, reservoir = _of_data(source, files, seed), network.reservoir(tau, seed)
        page = make_explorer(
            out or Path(tempfile.mkdtemp(prefix="greenfold-")) / "explorer.html",
            sources,
            reservoir,
            duration=duration,
            start=start,
            command=invocation.line(),
            seed=seed,
            on_step=step,
        )
    opened = out is not None or webbrowser.open(page.path.as_uri())
    record = {
        "page": page.path,
        "bytes": page.path.stat().st_size,
        "neurons": page.unfolding.n_neurons,
        "steps": page.unfolding.n_steps,
        "sets": [_record(*one) for one in page.sets],
    }
    return Answer(record, lambda: _show(record, page, opened))


def _model(source: str | None, form: str | None) -> Any:
    """Return the saved object in a file, or None if the file holds series."""
    from ..datasets.files import FORMATS, suffix_of
    from ..saving import load

    if source is None or form is not None or suffix_of(source)[1:] in FORMATS:
        return None
    return load(Path(source)) if Path(source).is_file() else None


def _of_model(
    model: "ReservoirClassifier", name: str, data: str | None, files: Tested, seed: int
) -> "Source":
    """Return the named series, or those that the model holds, with its class weights."""
    from ..apps.explorer import Source
    from .inputs import of_classes

    if data is not None:
        return _of_data(data, files, seed)[0].with_model(model)
    why = "is for series; name them after the MODEL"
    invocation.refuse(why, "y", "test", "trim", "data_dir", *options.TABLE)
    kept = Source.kept_in(model, name)
    few = files.classes is not None and len(set(files.classes)) < 2
    refuse_if(few, "--classes must name two or more classes, separated by commas")
    X, y = of_classes(kept.X, kept.y, files.classes, name)
    return replace(kept, X=X, y=y)


def _of_data(data: str | None, files: Tested, seed: int) -> "list[Source]":
    """Return the data sets of the page: the named one, or the built-in ones."""
    from ..apps.explorer import Source, built_in_source
    from .inputs import load_task

    task = load_task(data or options.SYNTHETIC, files, seed=seed, holdout=_HELD_OUT)
    named = Source(task.name, task.X, task.y, task.X_test, task.y_test, task.note)
    own = data not in (None, options.SYNTHETIC) or files.classes is not None
    return [named] if own else [named, built_in_source(seed)]


def _show(record: dict[str, Any], page: "Explorer", opened: bool) -> None:
    print(f"{page.path} ({record['bytes'] / 1000:.0f} kB)")
    for one, (material, _) in zip(record["sets"], page.sets, strict=True):
        shown = "; ".join(" from ".join(pair["classes"]) for pair in one["pairs"])
        more = len(material.pairs()) - len(one["pairs"])
        rest = f"; {more} more pairs have no bound" if more else ""
        told = f"{one['name']}: solved to tell {shown}{rest}."
        print(show.printable(told), *one["thinned"])
    if not opened:
        print("No browser was found; open that file in a browser.")


def _record(material: "PageSeries", solved: "list[SolvedPair]") -> dict[str, Any]:
    return {
        **pick(material, "name", "classes", "judged", "thinned"),
        "series": len(material.codes),
        "pairs": [
            {
                "classes": [material.classes[c] for c in one.pair],
                **pick(one.grid, "etas", "steps"),
                **pick(one, "soft_margin", "bound"),
            }
            for one in solved
        ],
    }
