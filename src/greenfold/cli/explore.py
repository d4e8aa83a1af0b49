"""`greenfold explore`: a page on which u is turned by hand."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import (
    DataDir,
    Debug,
    Duration,
    Format,
    Json,
    LabelFile,
    Neurons,
    Seed,
    Spread,
    Test,
    Trim,
    Weights,
)

_HELD_OUT = 0.3


def explore(
    ctx: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA|MODEL",
            help="Name of a data set, path of a file with series, or a file that fit "
            "wrote. Built-in series by default.",
            autocompletion=options.complete_dataset,
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Series for MODEL, in place of those it has kept.",
            autocompletion=options.complete_dataset,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Write the page here, one HTML file, instead of opening it.",
            rich_help_panel="Output",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="A,B[,…]",
            help="Only these classes. With more than two, the page lets choose a pair.",
            rich_help_panel="Data",
        ),
    ] = None,
    neurons: Neurons = 60,
    g: Spread = 0.9,
    weights: Weights = None,
    tau: Annotated[
        float,
        typer.Option(
            "--tau",
            help="Time constant in the unit of the duration.",
            rich_help_panel="Network",
        ),
    ] = 0.25,
    duration: Duration = 10.0,
    seed: Seed = 0,
    test: Test = None,
    data_dir: DataDir = None,
    trim: Trim = False,
    format: Format = None,
    y: LabelFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Open a page where the input projection is dragged, climbed or solved.

    The page is one file and asks nothing of any server: it computes in the browser. The
    bound, and the solved projections for several η and readout times, are computed here
    before. Opened in the browser, or written with --out.
    """
    del debug
    from ..apps.explorer.make import make_explorer

    options.check_target(out, "--out")
    with options.progress(2.1) as bar:
        bar.step("reading the data")
        reading: dict[str, Any] = {
            "test": test,
            "holdout": _HELD_OUT,
            "data_dir": data_dir,
            "trim": trim,
            "seed": seed,
            "form": format,
            "labels": y,
        }
        model = None if source is None else _model(source, format)
        made: dict[str, Any] = {"duration": duration}
        if model is not None:
            _refuse_network(ctx)
            sources, network, made = _of_model(model, str(source), data, reading, duration)
        elif data is not None:
            raise typer.BadParameter(
                f"{source!r} is no saved model; give one argument, or a MODEL and DATA"
            )
        else:
            sources = _of_data(source, reading)
            network = _network(ctx, neurons, g, weights, tau, seed)
        if classes is not None:
            wanted = [one.strip() for one in classes.split(",") if one.strip()]
            if len(set(wanted)) < 2:
                raise typer.BadParameter(
                    f"--classes must name two or more, separated by commas, not {classes!r}"
                )
            sources = [sources[0].only(wanted)]
        target = out or Path(tempfile.mkdtemp(prefix="greenfold-")) / "explorer.html"
        page = make_explorer(
            target,
            sources,
            network,
            seed=seed,
            command=options.command_line(),
            on_step=bar.step,
            **made,
        )
    _tell(page, json)
    if out is None and not webbrowser.open(page.path.as_uri()) and not json:
        print("No browser was found here; open that file in one.")


def _model(source: str, form: str | None) -> Any:
    """The object in a file that is no table of series, else None."""
    from ..datasets.files import FORMATS, suffix_of

    path = Path(source)
    known = suffix_of(path)[1:] in FORMATS
    if form is not None or known or not path.is_file():
        return None
    from ..saving import load

    return load(path)


def _of_model(
    model: Any, name: str, data: str | None, reading: dict[str, Any], duration: float
) -> tuple[list[Any], Any, dict[str, Any]]:
    """Data sets, network and other arguments of the page of a saved object."""
    from ..estimators.margin.classifier import ReservoirClassifier
    from ..networks.echo_state import EchoStateNetwork
    from ..networks.reservoir import Reservoir

    if isinstance(model, Reservoir | EchoStateNetwork):
        return _of_data(data, reading), model, {"duration": duration}
    if not isinstance(model, ReservoirClassifier):
        raise typer.BadParameter(
            f"{name!r} holds a {type(model).__name__}; explore needs a "
            "ReservoirClassifier, a network or series"
        )
    from ..apps.explorer.make import kept_series, remarks, start_of, with_model

    if data is None:
        chosen = kept_series(model, Path(name).name)
    else:
        chosen = with_model(_of_data(data, reading)[0], model)
    given = {
        "duration": model.unfolding_.n_steps * model.unfolding_.dt,
        "start": start_of(model),
        "note": remarks(model),
        "title": f"Turn the u of {Path(name).name}",
    }
    return [chosen], model.reservoir_, given


def _of_data(data: str | None, reading: dict[str, Any]) -> list[Any]:
    """Data sets of the page: the one that is named, or the built-in ones."""
    from ..apps.explorer.make import Source
    from .inputs import SYNTHETIC, load_task

    task = load_task(data or SYNTHETIC, **reading)
    named = Source(task.name, task.X, task.y, task.X_test, task.y_test, task.note)
    if data not in (None, SYNTHETIC):
        return [named]
    from ..apps.explorer.make import built_in_source

    return [named, built_in_source(reading["seed"])]


def _network(
    ctx: typer.Context,
    neurons: int,
    g: float,
    weights: Path | None,
    tau: float,
    seed: int,
) -> Any:
    from ..networks.reservoir import Reservoir
    from . import network

    own = network.parameters(ctx, weights)
    if own:
        return Reservoir(own["reservoir"], tau=tau)
    return Reservoir.random(neurons, g=g, tau=tau, rng=seed)


def _refuse_network(ctx: typer.Context) -> None:
    """A model brings its own network."""
    for name in ("neurons", "g", "weights", "tau"):
        given = ctx.get_parameter_source(name)
        if given is not None and given.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"--{name} does not go with a MODEL, which has its own"
            )


def _tell(page: Any, json: bool) -> None:
    size = page.path.stat().st_size
    if json:
        options.print_json(
            {
                "page": page.path,
                "bytes": size,
                "neurons": page.unfolding.n_neurons,
                "steps": page.unfolding.n_steps,
                "sets": [_record(*one) for one in page.sets],
            }
        )
        return
    print(f"{page.path} ({size / 1000:.0f} kB)")
    for material, solved in page.sets:
        n_pairs = len(material.pairs())
        shown = "; ".join(" or ".join(material.classes[c] for c in s.pair) for s in solved)
        rest = (
            f", without a bound {n_pairs - len(solved)} more"
            if n_pairs > len(solved)
            else ""
        )
        print(f"{material.name}: {shown}{rest}.", *material.thinned)


def _record(material: Any, solved: Any) -> dict[str, Any]:
    return {
        "name": material.name,
        "classes": material.classes,
        "series": len(material.codes),
        "judged": material.judged,
        "thinned": material.thinned,
        "pairs": [
            {
                "classes": [material.classes[c] for c in one.pair],
                "etas": one.grid.etas,
                "steps": one.grid.steps,
                "soft_margin": one.soft_margin,
                "bound": one.bound,
            }
            for one in solved
        ],
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: [bold]greenfold explore beats.csv --out page.html[/bold]")(
        explore
    )
