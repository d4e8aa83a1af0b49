"""Fig. 3: weakly non-linear reservoir.

(a) Response of one neuron to a stimulus that enters through a random *u*: simulation (blue
dots), expansion to first order in α (red) and linear network (dashed). The neuron is the
one that the non-linearity changes most. The left inset magnifies the box. The right inset
shows the largest real part of the eigenvalues of the network, linearised along its
trajectory. (b) Soft margin of the non-linear network (y axis) against that of the linear
network (x axis). Stars are random projections *u*. Filled dots with guide lines are optima:
x is the best κ of the linear network, y that of the non-linear network, each with its own
*u*. Open circles show the same non-linear optimum on the simulated network. Each colour
stands for one ‖μ‖ of the stimuli, from violet to yellow as in the paper. The panels below
are not in the paper and show five networks, each with its own stimuli; a mark is filled
where the expansion passes its checks. (c) Ablation: optimum of the non-linear network
relative to the linear optimum, for the stimuli of (b) and for the same stimuli with equal
class covariances (χ = 0, crosses). (d) Share of the separation *v·M* at the non-linear
optimum that comes from the difference of the class covariances. (e) Gain from the
non-linearity: κ of the non-linear minus κ of the linear optimum.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ... import GaussianStimuli, Unfolding, optimize, simulate, unfold
from ...analysis.parts import margin_parts, with_equal_covariances
from ...math.margins import gaussian_soft_margin, state_moments
from . import figures as look
from .figures import BLUE, RED, FigureRun, OnSteps, best_readouts, column, unit_vectors


@dataclass(frozen=True)
class Parameters(OnSteps):
    """Parameters of Fig. 3: the paper's values, or ours if the paper gives none."""

    alpha: float = 0.05
    #: ‖μ‖ of the stimuli, from violet to yellow in the paper.
    strengths: tuple[float, ...] = (0.19, 0.30, 0.52, 0.76, 1.0)
    eigenvalues: tuple[float, float] = (0.3, 2.2)
    stimulus_seed: int = 0
    fine: int = 20  # (a) Times within a step
    n_random: int = 50  # (b) Random input projections
    #: Number of networks, each with its own stimuli, to optimise.
    n_networks: int = 5
    #: The network in the panels. Its expansion is trustworthy at every ‖μ‖, unlike that of
    #: most networks; the numbers include all networks.
    shown: int = 0
    n_simulated: int = 200  # (b) Stimuli per class on which the optimum is simulated


FULL = Parameters()
QUICK = replace(
    FULL, fine=8, n_random=12, n_networks=1, n_simulated=40, strengths=(0.19, 1.0)
)


def _unfolding(p: Parameters, number: int) -> Unfolding:
    return p.unfold(p.network_seed + number, p.n_steps, p.dt, p.alpha)


def _stimuli(p: Parameters, number: int, strength: float) -> GaussianStimuli:
    """Return stimuli whose ψ, χ and direction of μ do not depend on the strength."""
    rng = np.random.default_rng([p.stimulus_seed, number])
    kind = {"strength": strength, "eigenvalues": p.eigenvalues}
    return GaussianStimuli.random(p.n_steps, rng=rng, **kind)


def responses(p: Parameters) -> dict:
    """Return the numbers of (a): responses to one stimulus, simulated, at O(α), linear."""
    unfolding, stimuli = _unfolding(p, p.shown), _stimuli(p, p.shown, p.strengths[-1])
    reservoir = unfolding.reservoir
    rng = np.random.default_rng([p.stimulus_seed, 10])
    u = unit_vectors(rng, 1, p.n_neurons)[0]
    x = stimuli.sample(1, rng)[0][:1]
    finer = np.repeat(x, p.fine, axis=1)
    dt = p.dt / p.fine
    simulated = simulate(reservoir, finer, u, dt, trajectories=True, rtol=1e-8)[0]
    fine = unfold(reservoir, n_steps=finer.shape[1], dt=dt, order=1)
    linear, correction = fine.states(finer, u, trajectories=True, orders=True)[:, 0]
    first = linear + correction
    # Show the neuron whose response the non-linearity changes most.
    neuron = int(np.argmax(np.abs(simulated - linear).max(0)))
    size = np.abs(simulated).max()
    return {
        "times": dt * np.arange(1, finer.shape[1] + 1),
        "stimulus": x[0],
        "neuron": neuron,
        "simulated": simulated[:, neuron],
        "first_order": first[:, neuron],
        "linear": linear[:, neuron],
        "eigenvalue_simulated": reservoir.linearized_abscissa(simulated),
        "eigenvalue_first_order": reservoir.linearized_abscissa(first),
        "eigenvalue_linear": reservoir.spectral_abscissa,
        "error_first_order": np.abs(first - simulated).max() / size,
        "error_linear": np.abs(linear - simulated).max() / size,
    }


def soft_margins(p: Parameters, item: tuple[int, float]) -> dict:
    """Return the numbers of (b) for one network at one ‖μ‖, linear and non-linear."""
    number, strength = item
    unfolding, stimuli = _unfolding(p, number), _stimuli(p, number, strength)
    us = p.projections(p.n_random, p.network_seed, number, 4)
    found: dict[str, Any] = {"network": number, "strength": strength}
    found["separability"] = stimuli.separability
    for kind, system in (("linear", unfolding.linear), ("nonlinear", unfolding)):
        drawn = best_readouts(system, stimuli, us, p.eta)
        found[f"random_{kind}"] = [best.value for *_, best in drawn]
    linear = optimize(unfolding.linear, stimuli, p.eta)
    rng = np.random.default_rng([number, 5])
    with look.expansion_judged_elsewhere():
        nonlinear = optimize(unfolding, stimuli, p.eta, rng=rng)
        moved = optimize(unfolding, stimuli, p.eta, u=linear.u)
        alike, rng = with_equal_covariances(stimuli), np.random.default_rng([number, 7])
        equal = optimize(unfolding, alike, p.eta, rng=rng)
    kappa, u, v = nonlinear.soft_margin, nonlinear.u, nonlinear.v
    # Both κ are computed on the same stimuli, so that their sampling error cancels.
    X, signs = stimuli.sample(p.n_simulated, np.random.default_rng([p.stimulus_seed, 6]))
    real = None
    with suppress(FloatingPointError):  # the simulated network may diverge
        simulated = simulate(unfolding.reservoir, X, u, p.dt, rtol=1e-6)
        after, before = (
            gaussian_soft_margin(*state_moments(y, signs), v, p.eta).value
            for y in (simulated, unfolding.states(X, u))
        )
        real = kappa + (after - before)
    return found | {
        "linear": linear.soft_margin,
        "linear_bound": linear.upper_bound,
        "nonlinear": kappa,
        "ratio": kappa / linear.soft_margin,
        "nonlinear_at_linear_u": moved.soft_margin,
        "validity": asdict(nonlinear.validity) if nonlinear.validity else None,
        "nonlinear_simulated": real,
        "parts": asdict(margin_parts(unfolding, stimuli, u, v, p.eta)),
        "equal": {
            "nonlinear": equal.soft_margin,
            "validity": asdict(equal.validity) if equal.validity else None,
        },
    }


def compute(run: FigureRun) -> dict:
    p = run.parameters
    items = [(n, strength) for n in range(p.n_networks) for strength in p.strengths]
    return {
        "responses": run.map("responses", responses, [p])[0],
        "soft_margins": run.map("soft margins", soft_margins, items, p),
    }


def draw(numbers: dict, p: Parameters) -> Any:
    figure, _ = look.sheet(11.4, 8.4)
    above, below = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    a, b = above.subplots(1, 2, width_ratios=(1.15, 1))
    _draw_responses(a, numbers["responses"], p)
    _draw_margins(b, [one for one in numbers["soft_margins"] if one["network"] == p.shown])
    _draw_networks(below.subplots(1, 3), numbers["soft_margins"], p)
    return figure


def _draw_networks(panels: Any, found: list[dict], p: Parameters) -> None:
    """Draw ablation, share of the covariances and gain, for every network."""
    import matplotlib as mpl

    hues: Any = mpl.colormaps["cividis"](np.linspace(0.0, 0.85, p.n_networks))
    ablation, share, gain = panels
    for number, mark in zip(range(p.n_networks), "osD^v", strict=False):
        mine = [one for one in found if one["network"] == number]
        keys = ("strength", "linear", "nonlinear")
        x, linear, full = (column(mine, key) for key in keys)
        equal, trusted = (
            column(mine, *path)
            for path in (("equal", "nonlinear"), ("validity", "trustworthy"))
        )
        shares = share_of_covariances(mine)
        for axes, y in ((ablation, full / linear), (share, shares), (gain, full - linear)):
            axes.plot(x, y, "-", color=hues[number], lw=1.2)
            for filled in (True, False):
                fill = hues[number] if filled else "white"
                how = {"mfc": fill, "mec": hues[number], "ms": 6}
                axes.plot(x[trusted == filled], y[trusted == filled], mark, **how)
        ablation.plot(x, equal / linear, "x", color=RED, ms=7, mew=1.4)
        how = {"color": hues[number], "ms": 6, "lw": 1.2, "label": f"network {number}"}
        gain.plot([], [], f"{mark}-", **how)
    ablation.plot([], [], "o-", color=look.NEUTRAL, label="stimuli of (b)")
    ablation.plot([], [], "x", color=RED, ls="", label=r"equal covariances, $\chi = 0$")
    ablation.axhline(1, color="0.5", lw=0.8)
    ablation.set(yscale="log", ylim=(0.8, None))
    look.plain_ticks(ablation.yaxis, (1, 2, 5, 10))
    share.set_ylim(0, 1)
    gain.set_ylim(0, 1.5 * max(one["nonlinear"] - one["linear"] for one in found))
    x = r"separation of the class means $\|\mu\|$ (a.u.)"
    y = "non-linear / linear optimum"
    look.panel(ablation, "c", r"no gain if $\chi = 0$", x, y, "upper right")
    y = r"share of $v^\mathsf{T}M$ from the covariances"
    look.panel(share, "d", "where the separation comes from", x, y)
    y = r"$\kappa_\eta$: non-linear minus linear (a.u.)"
    look.panel(gain, "e", "gain in five networks", x, y, "upper right", ncols=2)


def share_of_covariances(rows: list[dict]) -> np.ndarray:
    """Return the share of v·M that comes from the difference of the class covariances."""
    names = ("mean_of_covariances", "mean_linear", "mean_bilinear")
    found, linear, bilinear = (column(rows, "parts", name) for name in names)
    return found / (linear + bilinear)


def _draw_responses(axes: "look.Axes", found: dict, p: Parameters) -> None:
    times = np.array(found["times"])
    curves = (
        ("first_order", RED, "-", 1.6, r"$\mathcal{O}(\alpha)$"),
        ("linear", "k", "--", 1.1, "linear"),
        ("simulated", BLUE, "o", 0.0, "simulation"),
    )
    shown = np.array([found[key] for key, *_ in curves])

    def draw_curves(on: "look.Axes", part: slice) -> None:
        # Open dots leave the line visible on which they lie.
        dots = {"mfc": "none", "ms": 4.0, "mew": 0.8, "markevery": max(1, p.fine // 5)}
        for row, (_, colour, dash, width, label) in zip(shown, curves, strict=True):
            line = {"color": colour, "lw": width, "label": label}
            on.plot(times[part], row[part], dash, **line, **(dots if dash == "o" else {}))

    draw_curves(axes, slice(None))
    low, high = shown.min(), shown.max()
    axes.set_ylim(low - 0.12 * (high - low), high + 1.05 * (high - low))
    labels = (look.TIME, f"state $y_{{{found['neuron'] + 1}}}(t)$ (a.u.)", "lower left")
    title = rf"one neuron, random $u$, $\alpha = {p.alpha:g}$"
    look.panel(axes, "a", title, *labels, ncols=3, bbox_to_anchor=(0, -0.01))
    zoom = axes.inset_axes((0.1, 0.6, 0.36, 0.36))
    where = int(np.argmax(np.abs(shown[2] - shown[1])))
    reach = p.fine // 2
    draw_curves(zoom, slice(max(0, where - reach), where + reach + 1))
    zoom.tick_params(labelsize=7)
    box = axes.indicate_inset_zoom(zoom, edgecolor="0.4")
    for line in box.connectors or ():
        line.set_visible(False)  # they would cross the curves and the other inset
    zoom.set_title("zoom into the box", fontsize=8, pad=3)
    growth = axes.inset_axes((0.62, 0.6, 0.36, 0.36))
    growth.plot(times, found["eigenvalue_first_order"], color=RED, lw=1.4)
    few = {"markevery": max(1, len(times) // 20), "mfc": "none", "ms": 3, "mew": 0.7}
    growth.plot(times, found["eigenvalue_simulated"], "o", color=BLUE, **few)
    growth.axhline(found["eigenvalue_linear"], color="k", ls="--", lw=1.0)
    growth.axhline(1.0, color="0.5", lw=0.8)
    at = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    growth.annotate("unstable", (0.02, 1.0), (0, 1.5), fontsize=6.5, color="0.35", **at)
    bottom = min(*found["eigenvalue_simulated"], found["eigenvalue_linear"])
    growth.set_ylim(bottom - 0.03, 1.04)
    growth.set_title(r"largest Re $\tilde\lambda_\alpha$", fontsize=8, pad=3)
    growth.set_xlabel("$t$ (a.u.)", fontsize=7, labelpad=1)
    growth.tick_params(labelsize=7)


def _draw_margins(axes: "look.Axes", found: list[dict]) -> None:
    import matplotlib as mpl

    hues = mpl.colormaps["viridis"](np.linspace(0.0, 0.95, len(found)))
    for one, hue in zip(found, hues, strict=True):
        drawn = (one["random_linear"], one["random_nonlinear"])
        axes.plot(*drawn, "*", color=hue, ms=5, alpha=0.55)
        axes.axvline(one["linear"], color=hue, lw=0.7, alpha=0.8)
        axes.axhline(one["nonlinear"], color=hue, lw=0.7, alpha=0.8)
        how = {"ms": 8, "mec": "k", "label": rf"$\|\mu\| = {one['strength']:.2f}$"}
        axes.plot(one["linear"], one["nonlinear"], "o", color=hue, mew=0.6, **how)
        real = one["nonlinear_simulated"]
        if real is not None and real > 0:
            axes.plot(one["linear"], real, "o", mfc="none", mec=hue, ms=12)
    values = [v for one in found for v in (*one["random_linear"], *one["random_nonlinear"])]
    low, high = min(values) / 1.3, 1.5 * max(one["nonlinear"] for one in found)
    axes.plot([low, high], [low, high], color="0.6", lw=1.0, zorder=0)
    # Soft margins here are never negative: K < N leaves directions without spread.
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for axis in (axes.xaxis, axes.yaxis):
        look.plain_ticks(axis, (1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1))
    axes.plot([], [], "*", color="0.4", ls="", label="random $u$")
    axes.plot([], [], "o", color="0.4", mec="k", ms=8, label="solved $u$")
    axes.plot([], [], "o", mfc="none", mec="0.4", ls="", ms=11, label="solved, simulated")
    x, y = (rf"$\kappa_\eta$, {kind} network (a.u.)" for kind in ("linear", "non-linear"))
    # The legend is outside, because the guide lines cross the whole panel.
    outside = {"bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    look.panel(axes, "b", "non-linear against linear", x, y, "upper left", **outside)


def summary(numbers: dict, p: Parameters) -> list[str]:
    found = numbers["responses"]
    margins, simulated, random, every = [], [], [], numbers["soft_margins"]
    by_strength = [[one for one in every if one["strength"] == s] for s in p.strengths]
    for strength, rows in zip(p.strengths, by_strength, strict=True):
        linear, first, at = (
            column(rows, "linear"),
            rows[p.shown],
            f"    ‖μ‖ = {strength:.2f}:",
        )
        ratios, trusted = column(rows, "ratio"), column(rows, "validity", "trustworthy")
        # A simulated network that diverged has no κ.
        kept = column(rows, "nonlinear_simulated").astype(float) > linear
        drawn = column(rows, "random_nonlinear").mean(1)
        drawn -= column(rows, "random_linear").mean(1)
        margins.append(
            f"{at} {first['linear']:.5f} and {first['nonlinear']:.5f} "
            f"({min(ratios):.2f}–{max(ratios):.2f} times as large)"
        )
        simulated.append(
            f"{at} {kept.sum()} of {len(rows)} networks (of the networks whose expansion "
            f"passes its checks, {kept[trusted].sum()} of {trusted.sum()})"
        )
        random.append(f"{at} {', '.join(f'{one:+.1e}' for one in drawn)}")
    equal = column(every, "equal", "nonlinear") / column(every, "linear")
    passes = column(every, "equal", "validity", "trustworthy")
    good, other = equal[passes], equal[~passes]
    elsewhere = f"; elsewhere {min(other):.4f} to {max(other):.4f}" if len(other) else ""
    ends, outer = (p.strengths[0], p.strengths[-1]), (by_strength[0], by_strength[-1])
    shares = ", ".join(
        f"{min(some):.0%} to {max(some):.0%} at ‖μ‖ = {strength:.2f}"
        for some, strength in zip(map(share_of_covariances, outer), ends, strict=True)
    )
    low, high = (column(rows, "nonlinear") - column(rows, "linear") for rows in outer)
    ratios = ", ".join(f"{one:.2f}" for one in low / high)
    return [
        f"(a) largest error of the states: linear network {found['error_linear']:.2%}, "
        f"O(α) {found['error_first_order']:.2%}; largest Re λ along the trajectory: "
        f"{max(found['eigenvalue_simulated']):.3f}",
        "(b) κ of the linear and of the non-linear optimum in the network shown, and the "
        f"range of their ratio over {p.n_networks} networks:",
        *margins,
        "(b) networks in which the non-linear optimum, when simulated, has a larger κ than "
        "the linear optimum:",
        *simulated,
        f"(b) κ of random projections, non-linear minus linear network, mean over "
        f"{p.n_random} projections, for each network:",
        *random,
        "(c) with equal class covariances, the non-linear optimum is "
        f"{min(good):.4f} to {max(good):.4f} times the linear one where the expansion "
        f"passes its checks ({len(good)} of {len(every)}){elsewhere}",
        f"(d) share of the separation from the class covariances: {shares}",
        f"(e) gain at ‖μ‖ = {ends[0]:.2f} over gain at ‖μ‖ = {ends[1]:.2f}, for each "
        f"network: {ratios}",
    ]
