"""`greenfold memory`: how much of its past input a network remembers."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from . import options
from .options import Debug, Json, Neurons, Seed, Spread, Weights

_TASK = "Memory"


def memory(
    ctx: typer.Context,
    delays: Annotated[
        str,
        typer.Option(
            "--delays",
            metavar="A-B|A,B[,…]",
            help="Which past steps are to be remembered; 0 is the last one.",
            rich_help_panel=_TASK,
        ),
    ] = "1-10",
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            help="Standard deviation of the noise on every neuron's state at the readout, "
            "for input of unit variance.",
            rich_help_panel=_TASK,
        ),
    ] = 0.1,
    ridge: Annotated[
        float | None,
        typer.Option(
            "--ridge",
            help="Instead: the ridge penalty, which is the variance of that noise.",
            rich_help_panel=_TASK,
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option("--draws", min=1, help="Random u drawn.", rich_help_panel=_TASK),
    ] = 10,
    neurons: Neurons = 50,
    g: Spread = 0.9,
    weights: Weights = None,
    tau: Annotated[
        float,
        typer.Option(
            "--tau", help="Time constant, in the unit of dt.", rich_help_panel="Network"
        ),
    ] = 2.0,
    dt: Annotated[
        float,
        typer.Option("--dt", help="Length of a step.", rich_help_panel="Network"),
    ] = 0.5,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            min=1,
            help="Steps of input the network has seen at the readout; by default 60, or "
            "as many as the delays need.",
            rich_help_panel="Network",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the memory of a network for random and for solved input projections.

    Memory capacity is the sum, over the delays, of the share of white input so many steps
    ago that the readout recovers under noise. The bound is proven: no u exceeds it.
    """
    del debug
    from ..analysis.memory import memory_capacity
    from ..devices.device import Device
    from ..networks.reservoir import Reservoir
    from ..unfolding.unfolding import unfold
    from . import network

    wanted = _delays(delays)
    if ridge is not None:
        given = ctx.get_parameter_source("noise")
        if given is not None and given.name == "COMMANDLINE":
            raise typer.BadParameter("--noise and --ridge say the same; give one")
        if not ridge > 0:
            raise typer.BadParameter(f"--ridge must be positive, not {ridge:g}")
        noise = float(np.sqrt(ridge))
    if not (np.isfinite(noise) and noise > 0):
        raise typer.BadParameter(
            f"--noise must be positive, not {noise:g}: without noise every u of a generic "
            "network remembers as many steps as there are neurons"
        )
    n_steps = steps or max(60, 2 * (int(wanted.max()) + 1))
    if n_steps <= wanted.max():
        raise typer.BadParameter(
            f"--delays go back {wanted.max()} steps, of which --steps {n_steps} has seen "
            f"too few; give at least {wanted.max() + 1}"
        )
    own = network.parameters(ctx, weights)
    device = Device(readout_noise=noise)
    # One stream for both: from the same seed the first u would be the first row of W.
    rng = np.random.default_rng(seed)
    with options.progress(2.0) as bar:
        bar.step("drawing random projections")
        reservoir = (
            Reservoir(own["reservoir"], tau=tau)
            if own
            else Reservoir.random(neurons, g=g, tau=tau, rng=rng)
        )
        system = unfold(reservoir, n_steps=n_steps, dt=dt)
        drawn = memory_capacity(
            system, "random", delays=wanted, device=device, n_draws=draws, rng=rng
        )
        bar.step("solving for the projection")
        solved = memory_capacity(system, delays=wanted, device=device, rng=rng)
    if json:
        options.print_json(_record(reservoir, drawn, solved, noise, n_steps, dt))
        return
    _print(reservoir, drawn, solved, noise)


def _delays(text: str) -> np.ndarray:
    """Delays from ``1-10`` or ``1,2,5``, also mixed, each once."""
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, _, last = part.strip().partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    except ValueError:
        found = set()
    if not found:
        raise typer.BadParameter(f"--delays must be like 1-10 or 0,2,5, not {text!r}")
    return np.array(sorted(found))


def _print(reservoir: Any, drawn: Any, solved: Any, noise: float) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    mean = float(drawn.drawn.mean())
    title = (
        f"Memory capacity, {reservoir.n_neurons} neurons, {len(solved.delays)} delays, "
        f"noise {noise:g}"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("input u", no_wrap=True)
    for name in ("capacity", "of the bound"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [
        (f"random, mean of {len(drawn.drawn)}", mean),
        ("random, the best", drawn.total),
        ("solved", solved.total),
    ]
    if solved.bound is not None:
        rows.append(("no u above", solved.bound))
    for name, value in rows:
        share = "–" if solved.bound is None else f"{value / solved.bound:.1%}"
        style = "bold" if name == "solved" else None
        table.add_row(*map(Text, (name, f"{value:.4f}", share)), style=style)
    screen = options.console()
    screen.print(Text(title))
    screen.print(table)
    screen.print(Text(f"Solved over random: {solved.total / mean - 1:+.1%}."))


def _record(
    reservoir: Any, drawn: Any, solved: Any, noise: float, n_steps: int, dt: float
) -> dict[str, Any]:
    return {
        "neurons": reservoir.n_neurons,
        "n_steps": n_steps,
        "dt": dt,
        "noise": noise,
        "ridge": noise**2,
        "delays": solved.delays,
        "random": {
            "mean": float(drawn.drawn.mean()),
            "best": drawn.total,
            "totals": drawn.drawn,
            "capacity_of_best": drawn.capacity,
        },
        "solved": {"total": solved.total, "capacity": solved.capacity, "u": solved.u},
        "bound": solved.bound,
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: [bold]greenfold memory --neurons 100 --delays 1-20[/bold]"
    )(memory)
