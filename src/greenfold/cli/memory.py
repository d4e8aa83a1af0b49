"""`greenfold memory`: measure how much of its past input a network remembers."""

import math
from typing import Any

from . import options, show
from .options import Answer, NetworkOptions, command, opt, ranges, reader, refuse_if


@command("greenfold memory --neurons 100 --delays 1-20")
def memory(
    delays: list[int] = opt(
        "1-10", "Memory", **reader(ranges, "A-B|A,B[,…]", "like 1-10 or 0,2,5", len)
    ),
    noise: float = opt(0.1, "Memory", sets="readout_noise"),
    draws: int = opt(10, "Memory", min=1),
    network: NetworkOptions = NetworkOptions(),
    tau: float = opt(2.0, "Network"),
    dt: float = opt(0.5, "Network"),
    steps: int | None = opt(None, "Network", min=1, show_default=False),
    seed: int = options.seed("Seed for the network and the random projections u."),
) -> Answer:
    """Compare the memory of a network for random and for solved input projections u.

    The input is white noise. For each delay, the readout recovers a share of the input that
    many steps ago, in spite of noise on the states. The memory capacity is the sum of these
    shares. The upper bound is proven for every u.

    delays : Delays in steps; 0 is the last step.
    noise : Standard deviation of the noise on every neuron's state at the readout, for
        input of unit variance. The default of fit is 0; here it must be positive, because
        without noise every u has the same memory.
    draws : Number of random u.
    tau : Time constant τ of the neurons, in the unit of dt.
    dt : Length of a step.
    steps : Number of input steps before the readout; by default 60, or more if the delays
        need it.
    """
    import numpy as np

    from ..analysis.memory import memory_capacity
    from ..devices.device import Device
    from ..unfolding.unfolding import unfold

    alike = "every u of a generic network remembers as many steps as it has neurons"
    why = f"--noise must be positive, not {noise:g}: without noise {alike}"
    refuse_if(not (math.isfinite(noise) and noise > 0), why)
    n_steps = steps or max(60, 2 * (delays[-1] + 1))
    few = f"--steps {n_steps} is too few; give at least {delays[-1] + 1}"
    refuse_if(n_steps <= delays[-1], f"--delays go back {delays[-1]} steps, so {few}")
    task: dict[str, Any] = {"delays": delays, "device": Device(readout_noise=noise)}
    # Network and u share one stream; with equal seeds, the first u would be a row of W.
    rng = np.random.default_rng(seed)
    with options.progress(2.0) as step:
        step("drawing random projections")
        reservoir = network.reservoir(tau, rng)
        system = unfold(reservoir, n_steps=n_steps, dt=dt)
        drawn = memory_capacity(system, "random", n_draws=draws, rng=rng, **task)
        step("solving for the projection")
        solved = memory_capacity(system, rng=rng, **task)
    totals: Any = drawn.random
    best = {"best": drawn.total, "totals": totals, "capacity_of_best": drawn.capacity}
    record = {
        "neurons": reservoir.n_neurons,
        "n_steps": n_steps,
        "dt": dt,
        "noise": noise,
        "ridge": noise**2,
        "delays": solved.delays,
        "random": {"mean": float(totals.mean()), **best},
        "solved": options.pick(solved, "total", "capacity", "u"),
        "bound": solved.bound,
    }
    return Answer(record, lambda: _show(record))


def _show(record: dict[str, Any]) -> None:
    drawn, solved, bound = record["random"], record["solved"]["total"], record["bound"]
    rows = {
        f"random, mean of {len(drawn['totals'])}": drawn["mean"],
        f"random, best of {len(drawn['totals'])}": drawn["best"],
        "solved": solved,
        **({} if bound is None else {"upper bound": bound}),
    }
    share = {name: bound and value / bound for name, value in rows.items()}
    show.table(
        ["input u", "capacity", "of the bound"],
        [(k, f"{one:.4f}", show.number(share[k], ".1%")) for k, one in rows.items()],
        title=f"Memory capacity, {record['neurons']} neurons, {len(record['delays'])} "
        f"delays, noise {record['noise']:g}",
        bold=[2],
        notes=[f"Solved over random: {solved / drawn['mean'] - 1:+.1%}."],
    )
