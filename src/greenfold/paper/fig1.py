"""Fig. 1: the setting, from a real run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..margins import margin
from ..optimizers import optimize
from ..simulation import simulate
from ..stimuli import GaussianStimuli
from ..unfolding.unfolding import unfold
from . import _style as look
from ._run import Run
from ._setting import network

TITLE = "Fig. 1: the setting"
NEEDS_ECG = False


@dataclass(frozen=True)
class Parameters:
    """What Fig. 1 is made with; the paper's is a sketch and gives no values."""

    network_seed: int = 0
    n_neurons: int = 100
    g: float = 0.9
    tau: float = 0.25
    eta: float = 10.0
    n_steps: int = 10
    dt: float = 1.0
    strength: float = 4.0
    """‖μ‖, large enough for the two clouds to be apart."""
    stimulus_seed: int = 0
    n_per_class: int = 25
    fine: int = 10
    """Times within a step at which the trajectories are drawn."""
    n_drawn: int = 14
    """(a) Neurons that the sketch shows: those that u and v use most."""


FULL = QUICK = Parameters()


def compute(run: Run) -> dict:
    """All numbers of the figure."""
    return run.map("run", _compute, [run.parameters])[0]


def _compute(p: Parameters) -> dict:
    reservoir = network(p.network_seed, p.n_neurons, p.g, p.tau)
    stimuli = GaussianStimuli.random(
        p.n_steps, strength=p.strength, rng=np.random.default_rng([p.stimulus_seed, 0])
    )
    best = optimize(unfold(reservoir, n_steps=p.n_steps, dt=p.dt), stimuli, p.eta)
    X, signs = stimuli.sample(p.n_per_class, np.random.default_rng([p.stimulus_seed, 1]))
    fine = np.repeat(X, p.fine, axis=1)
    paths = simulate(reservoir, fine, best.u, p.dt / p.fine, trajectories=True, rtol=1e-6)
    # Beside the readout direction, the one along which the clouds extend furthest.
    aside = paths[:, -1] - np.outer(paths[:, -1] @ best.v, best.v)
    second = np.linalg.svd(aside - aside.mean(0), full_matrices=False)[2][0]
    shown = np.argsort(-(np.abs(best.u) + np.abs(best.v)))[: p.n_drawn]
    return {
        "stimuli": X,
        "signs": signs,
        "mu": stimuli.mu,
        "along_readout": paths @ best.v,
        "across": paths @ second,
        "margin": margin(paths[:, -1], signs, best.v),
        "soft_margin": best.soft_margin,
        "accuracy": (signs * (paths[:, -1] @ best.v) > 0).mean(),
        "drawn_weights": reservoir.weights[np.ix_(shown, shown)],
        "drawn_u": best.u[shown],
        "drawn_v": best.v[shown],
    }


def draw(numbers: dict, p: Parameters) -> Any:
    """The figure, from its numbers."""
    figure = look.sheet(11.4, 3.9)
    a, b, c = figure.subplots(1, 3, width_ratios=(1.15, 1, 1.15))
    _draw_network(a, numbers)
    _draw_stimuli(b, numbers, p)
    _draw_states(c, numbers, p)
    return figure


def _draw_network(axes: Any, numbers: dict) -> None:
    look.letter(axes, "a", "reservoir")
    W = np.array(numbers["drawn_weights"])
    u, v = np.array(numbers["drawn_u"]), np.array(numbers["drawn_v"])
    n = len(u)
    # Neurons that the input drives stand left, those that are read out right.
    order = np.argsort(np.abs(v) - np.abs(u))
    angle = np.empty(n)
    angle[order] = np.pi - np.pi * np.arange(n) / (n - 1)
    place = np.column_stack([np.cos(angle), np.sin(angle) * (-1.0) ** np.argsort(order)])
    strong = np.quantile(np.abs(W), 0.75)
    for i in range(n):
        for j in range(n):
            if i == j or abs(W[i, j]) < strong:
                continue
            axes.annotate("", place[i], place[j], arrowprops={
                "arrowstyle": "-|>", "color": "0.65", "lw": 0.6, "mutation_scale": 6,
                "shrinkA": 6, "shrinkB": 6,
                "connectionstyle": "arc3,rad=0.12"})  # fmt: skip
    source, sink = np.array([-2.1, 0.0]), np.array([2.1, 0.0])
    for end, weights, colour, style in (
        (source, u, look.ORANGE, "-"),
        (sink, v, look.GREEN, "--"),
    ):
        size = np.abs(weights) / np.abs(weights).max()
        for spot, one in zip(place, size, strict=True):
            axes.plot(*zip(end, spot, strict=True), style, color=colour, alpha=0.75,
                      lw=0.2 + 2.0 * one, zorder=1)  # fmt: skip
    axes.plot(*place.T, "o", ms=9, color="white", mec="k", zorder=3)
    box = {"boxstyle": "round", "fc": "white", "ec": "k"}
    axes.text(*source, "$x(t)$", ha="center", va="center", bbox=box, zorder=4)
    axes.text(*sink, "$z(t)$", ha="center", va="center", bbox=box, zorder=4)
    axes.text(-1.65, -0.8, "input\nprojection $u$", ha="center", color="#A66F00")
    axes.text(1.65, -0.8, "readout $v$", ha="center", color=look.GREEN)
    axes.text(0, 1.2, "recurrent weights $W$", ha="center", color="0.35")
    axes.set(xlim=(-2.5, 2.5), ylim=(-1.5, 1.5))
    axes.axis("off")


def _draw_stimuli(axes: Any, numbers: dict, p: Parameters) -> None:
    look.letter(axes, "b", "stimuli of two classes")
    X, signs = np.array(numbers["stimuli"]), np.array(numbers["signs"])
    edges = p.dt * np.arange(p.n_steps + 1)
    for sign, colour, dash in ((1, look.PLUS, "-"), (-1, look.MINUS, "--")):
        for x in X[signs == sign][:6]:
            axes.stairs(x, edges, baseline=None, color=colour, alpha=0.35, lw=0.8)
        axes.stairs(sign * np.array(numbers["mu"]), edges, baseline=None, color=colour,
                    lw=2.6, ls=dash, label=rf"$\zeta = {sign:+d}$, mean")  # fmt: skip
    axes.set(xlabel=look.TIME, ylabel="stimulus $x(t)$ (a.u.)")
    axes.set_ylim(None, 1.3 * np.abs(X).max())
    axes.legend(loc="upper left", ncols=2)


def _draw_states(axes: Any, numbers: dict, p: Parameters) -> None:
    look.letter(axes, "c", "states and the plane of decision")
    z, across = np.array(numbers["along_readout"]), np.array(numbers["across"])
    signs, gap = np.array(numbers["signs"]), numbers["margin"]
    since = -2 * p.fine  # the last two steps; earlier ones only tangle
    for sign, colour, mark in ((1, look.PLUS, "o"), (-1, look.MINUS, "s")):
        mine = signs == sign
        for path, side in zip(z[mine][:12], across[mine][:12], strict=True):
            axes.plot(path[since:], side[since:], color=colour, lw=0.6, alpha=0.4)
        axes.plot(z[mine, -1], across[mine, -1], mark, color=colour, ms=4.5, mec="k",
                  mew=0.4, label=rf"$y(T)$, $\zeta = {sign:+d}$", zorder=3)  # fmt: skip
    axes.axvline(0, color="k", lw=1.4)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.3 * (high - low))
    if gap > 0:
        closest = int(np.argmin(signs * z[:, -1]))
        edge, level = signs[closest] * gap, across[closest, -1]
        axes.axvspan(-gap, gap, color="0.85", zorder=0)
        axes.annotate("", (0, level), (edge, level), arrowprops={
            "arrowstyle": "<|-|>", "color": "k", "shrinkA": 0, "shrinkB": 0,
            "mutation_scale": 8}, zorder=4)  # fmt: skip
        axes.annotate(rf"margin $\kappa = {gap:.2f}$", (edge / 2, level),
                      (edge / 2, low + 0.06 * (high - low)), ha="center", fontsize=8.5,
                      bbox={"fc": "white", "ec": "none", "pad": 1.5},
                      arrowprops={"arrowstyle": "-", "lw": 0.6}, zorder=4)  # fmt: skip
    axes.set(
        xlabel=r"along the readout, $z = v^\mathsf{T} y$ (a.u.)",
        ylabel="across it, first principal axis (a.u.)",
    )
    axes.legend(loc="upper right", frameon=True, framealpha=1.0, edgecolor="none")


def summary(numbers: dict, p: Parameters) -> list[str]:
    """What the figure says, in a few lines."""
    return [
        f"margin {numbers['margin']:.3f} over {len(numbers['signs'])} simulated responses, "
        f"soft margin {numbers['soft_margin']:.3f}, accuracy {numbers['accuracy']:.0%}"
    ]
