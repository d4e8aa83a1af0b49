"""Fig. 1: the setting.

(a) A reservoir with an input projection *u*, random recurrent weights *W* and a readout
*v*. Thicker lines of *u* and *v* mean larger weights. (b) Series of two classes (thin) and
the class means (thick). The classes differ mainly in the size of their fluctuations. (c)
Responses of the simulated network over time, in two of its 100 dimensions: along the
readout, and along the perpendicular direction in which the states vary most. The grey plane
marks the readout time *T*. The straight line in it is the decision boundary, and the darker
band is the margin. The paper's Fig. 1 is a sketch without values; the values here are ours.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import GaussianStimuli, optimize, simulate
from ...math.margins import margin
from . import figures as look
from .figures import CLASS_MINUS, CLASS_PLUS, NEUTRAL, FigureRun, OnSteps


@dataclass(frozen=True)
class Parameters(OnSteps):
    """Parameters of Fig. 1; the paper's figure is a sketch without values."""

    #: As in Fig. 3; classes that differ in fluctuations need a non-linear network.
    alpha: float = 0.05
    strength: float = 0.5  # ‖μ‖: the class means are close to each other
    #: Variances of the steps of the two classes, their main difference.
    variances: tuple[float, float] = (1.0, 0.02)
    stimulus_seed: int = 0
    draw_seed: int = 8
    #: Number of series per class in the figure; the plane separates so few completely.
    n_per_class: int = 12
    #: Number of other series per class, for the accuracy of the plane.
    n_judged: int = 500
    fine: int = 10  # Times within a step at which the trajectories are drawn
    n_drawn: int = 14  # (a) Neurons in the sketch, those that u and v use most


FULL = Parameters()
QUICK = replace(FULL, n_neurons=30, alpha=0.02, strength=0.3, n_judged=100)


def stimuli(p: Parameters) -> GaussianStimuli:
    """Return two classes of white noise of different size around ±μ."""
    mu = np.random.default_rng([p.stimulus_seed, 0]).standard_normal(p.n_steps)
    large, small = p.variances
    return GaussianStimuli(
        p.strength * mu / np.linalg.norm(mu),
        (large + small) / 2 * np.eye(p.n_steps),
        (large - small) / 2 * np.eye(p.n_steps),
    )


def compute(run: FigureRun) -> dict:
    return run.map("run", one_run, [run.parameters])[0]


def one_run(p: Parameters) -> dict:
    """Return one optimum, some simulated responses to draw, and the accuracy on others."""
    expanded = p.unfold(p.network_seed, p.n_steps, p.dt, p.alpha)
    reservoir, classes = expanded.reservoir, stimuli(p)
    best = optimize(expanded, classes, p.eta, rng=p.network_seed)
    X, signs = classes.sample(p.n_per_class, np.random.default_rng([0, p.draw_seed]))
    fine = np.repeat(X, p.fine, axis=1)
    paths = simulate(reservoir, fine, best.u, p.dt / p.fine, trajectories=True, rtol=1e-6)
    # The direction across the readout in which the clouds extend furthest.
    aside = paths[:, -1] - np.outer(paths[:, -1] @ best.v, best.v)
    second = np.linalg.svd(aside - aside.mean(0), full_matrices=False)[2][0]
    shown = np.argsort(-(np.abs(best.u) + np.abs(best.v)))[: p.n_drawn]
    others, others_signs = classes.sample(p.n_judged, np.random.default_rng([0, 99]))
    judged = simulate(reservoir, others, best.u, p.dt, rtol=1e-6) @ best.v
    return {
        "stimuli": X,
        "signs": signs,
        "mu": classes.mu,
        "along_readout": paths @ best.v,
        "across": paths @ second,
        "margin": margin(paths[:, -1], signs, best.v),
        "soft_margin": best.soft_margin,
        "soft_margin_linear": optimize(expanded.linear, classes, p.eta).soft_margin,
        "accuracy": (signs * (paths[:, -1] @ best.v) > 0).mean(),
        "accuracy_judged": (others_signs * judged > 0).mean(),
        "drawn_weights": reservoir.weights[np.ix_(shown, shown)],
        "drawn_u": best.u[shown],
        "drawn_v": best.v[shown],
    }


def draw(numbers: dict, p: Parameters) -> Any:
    figure, _ = look.sheet(11.4, 4.1)
    grid = figure.add_gridspec(1, 3, width_ratios=(1.1, 0.95, 1.3))
    found = {name: np.array(value) for name, value in numbers.items()}
    _draw_network(figure.add_subplot(grid[0]), found)
    _draw_stimuli(figure.add_subplot(grid[1]), found, p)
    _draw_states(figure.add_subplot(grid[2], projection="3d"), found, p)
    return figure


def _draw_network(axes: "look.Axes", found: dict) -> None:
    look.panel(axes, "a", "reservoir")
    W, u, v = (found[f"drawn_{name}"] for name in ("weights", "u", "v"))
    n = len(u)
    # Neurons that u drives most are on the left, neurons that v reads most on the right.
    order = np.argsort(np.abs(v) - np.abs(u))
    angle = np.empty(n)
    angle[order] = np.pi - np.pi * np.arange(n) / (n - 1)
    place = np.column_stack([np.cos(angle), np.sin(angle) * (-1.0) ** np.argsort(order)])
    arrow = {"arrowstyle": "-|>", "color": "0.65", "lw": 0.6, "mutation_scale": 6}
    arrow |= {"shrinkA": 6, "shrinkB": 6, "connectionstyle": "arc3,rad=0.12"}
    for i, j in np.argwhere(np.abs(W) >= np.quantile(np.abs(W), 0.75)):
        if i != j:
            axes.annotate("", tuple(place[i]), tuple(place[j]), arrowprops=arrow)
    source, sink = np.array([-2.1, 0.0]), np.array([2.1, 0.0])
    for end, weights, dash in ((source, u, "-"), (sink, v, "--")):
        how = {"color": NEUTRAL, "alpha": 0.75, "zorder": 1}
        for spot, one in zip(place, np.abs(weights) / np.abs(weights).max(), strict=True):
            axes.plot(*zip(end, spot, strict=True), dash, lw=0.2 + 2.0 * one, **how)
    axes.plot(*place.T, "o", ms=9, color="white", mec="k", zorder=3)
    box = {"boxstyle": "round", "fc": "white", "ec": "k"}
    for end, name in ((source, "$x(t)$"), (sink, "$z(t)$")):
        axes.text(end[0], end[1], name, ha="center", va="center", bbox=box, zorder=4)
    axes.text(-1.65, -0.8, "input\nprojection $u$", ha="center", color=NEUTRAL)
    axes.text(1.65, -0.8, "readout $v$", ha="center", color=NEUTRAL)
    axes.text(0, 1.2, "recurrent weights $W$", ha="center", color="0.35")
    axes.set(xlim=(-2.5, 2.5), ylim=(-1.5, 1.5))
    axes.axis("off")


def _draw_stimuli(axes: "look.Axes", found: dict, p: Parameters) -> None:
    X, edges = found["stimuli"], p.dt * np.arange(p.n_steps + 1)
    for sign, colour, dash in ((1, CLASS_PLUS, "-"), (-1, CLASS_MINUS, "--")):
        for x in X[found["signs"] == sign][:6]:
            axes.stairs(x, edges, baseline=None, color=colour, alpha=0.35, lw=0.8)
        how: Any = {"color": colour, "ls": dash, "label": rf"$\zeta = {sign:+d}$, mean"}
        axes.stairs(sign * found["mu"], edges, baseline=None, lw=2.6, **how)
    axes.set_ylim(None, 1.35 * np.abs(X).max())
    labels = (look.TIME, "stimulus $x(t)$ (a.u.)", "upper left")
    look.panel(axes, "b", "stimuli of two classes", *labels, ncols=2, columnspacing=1.0)


def _draw_states(axes: Any, found: dict, p: Parameters) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    z, across, signs = (found[name] for name in ("along_readout", "across", "signs"))
    end, gap = p.n_steps * p.dt, max(found["margin"], 0)
    times = p.dt * np.arange(p.n_steps * p.fine + 1) / p.fine
    for sign, colour, mark in ((1, CLASS_PLUS, "o"), (-1, CLASS_MINUS, "s")):
        mine = signs == sign
        for path, side in zip(z[mine][:8], across[mine][:8], strict=True):
            axes.plot(times, [0.0, *side], [0.0, *path], color=colour, lw=0.6, alpha=0.55)
        how = {"color": colour, "marker": mark, "label": rf"$y(T)$, $\zeta = {sign:+d}$"}
        how |= {"s": 20, "edgecolors": "k", "linewidths": 0.4, "depthshade": False}
        place = (np.full(mine.sum(), end), across[mine, -1], z[mine, -1])
        axes.scatter(*place, zorder=5, **how)
    (left, right), (low, high) = (
        (values.min() - 0.15 * np.ptp(values), values.max() + 0.15 * np.ptp(values))
        for values in (across[:, -1], z[:, -1])
    )
    for bottom, top, colour, alpha in ((low, high, "0.75", 0.25), (-gap, gap, "0.4", 0.35)):
        corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
        plane = [[(end, *one) for one in corners]]
        axes.add_collection3d(Poly3DCollection(plane, color=colour, alpha=alpha, lw=0))
    black = {"color": "k", "lw": 1.6, "zorder": 6, "label": "decision boundary"}
    axes.plot([end, end], [left, right], [0, 0], **black)
    axes.set(zlabel=r"readout, $z = v^\mathsf{T} y$ (a.u.)", xlim=(0, end))
    axes.view_init(elev=14, azim=-36)
    axes.set_box_aspect((1.5, 1.25, 1.1), zoom=0.92)
    axes.locator_params(nbins=4)
    labels = (look.TIME, "perpendicular to $v$ (a.u.)", "upper left")
    title = "responses over time, read out at $T$"
    look.panel(axes, "c", title, *labels, bbox_to_anchor=(-0.05, 0.98))


def summary(numbers: dict, p: Parameters) -> list[str]:
    return [
        f"‖μ‖ = {p.strength:g}, class variances {p.variances[0]:g} and "
        f"{p.variances[1]:g}: the soft margin is {numbers['soft_margin']:.3f}; the linear "
        f"network reaches {numbers['soft_margin_linear']:.3f}",
        f"The margin (darker band) of the {len(numbers['signs'])} simulated responses in "
        f"(c) is {numbers['margin']:.3f}; {numbers['accuracy_judged']:.1%} of "
        f"{2 * p.n_judged} other responses are classified correctly",
    ]
