"""Fig. 2: linear reservoir.

(a) Soft margin against readout time for one network and one pair of classes, with the best
readout at each time. Solid lines are theory, dashed lines are simulations. Each diamond
shows κ for the *u* that is best at its readout time. The thin grey line is half the
difference between the class means of the stimuli. (b) Soft margin averaged over 250 pairs
of classes, for 250 random projections *u* (mean and standard deviation) and for *u* solved
for each marked readout time. (c) How much the solved *u* of (b) uses each mode of the
network, at two readout times. Each mark is one mode, averaged over the pairs of classes;
each bar is the mean over the modes in a bin. (d) Soft margin as *u* is rotated away from
the solved *u* in random planes (thin lines) and on average (thick lines). The readout is
either re-optimised or held fixed.
"""

import importlib.util
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ... import GaussianStimuli, Unfolding, optimize, simulate
from ...analysis.curves import best_margins, margin_over_angle
from ..style import RANDOM, SIMULATION, SOLVED
from . import figures as look
from .figures import FigureRun, OnSteps, chunks


@dataclass(frozen=True)
class Parameters(OnSteps):
    """Parameters of Fig. 2: the paper's values, or ours if the paper gives none."""

    strength: float = 1.0  # ‖μ‖ of the stimuli, which the paper leaves open here
    fine: int = 20  # (a) Readout times within a step
    #: (a) Time step of NEST; its error is of first order in it.
    nest_resolution: float = 0.001
    n_stimuli: int = 250
    n_random: int = 250
    per_step: int = 4  # (b) Readout times within a step
    mode_times: tuple[float, float] = (1.0, 9.0)
    angle_time: float = 9.0
    n_angles: int = 73
    n_planes: int = 20
    chunk: int = 10


FULL = Parameters()
QUICK = replace(
    FULL, fine=10, nest_resolution=0.002, n_stimuli=6, n_random=20, per_step=2, n_angles=25,
    n_planes=6, chunk=3,
)  # fmt: skip


_SIMULATORS = {"nest": "NEST", "scipy": "ODE solver"}


def _unfolding(p: Parameters) -> Unfolding:
    return p.unfold(p.network_seed, p.n_steps, p.dt)


def _stimuli(p: Parameters, number: int) -> GaussianStimuli:
    rng = np.random.default_rng([p.network_seed, 1, number])
    return GaussianStimuli.random(p.n_steps, strength=p.strength, rng=rng)


def _projections(p: Parameters) -> np.ndarray:
    return p.projections(p.n_random, p.network_seed, 2)


def _times(p: Parameters, per_step: int) -> np.ndarray:
    return p.dt * np.arange(1, p.n_steps * per_step + 1) / per_step


def _solved_at(p: Parameters) -> np.ndarray:
    """Return indices of the readout times of (b) for which u is solved, two per step."""
    first = p.per_step * np.arange(p.n_steps)
    return np.unique(np.concatenate([first, first + p.per_step - 1]))


def engine() -> str:
    """Return the simulator: NEST, as in the paper, if it is installed, else ODE solver."""
    return "nest" if importlib.util.find_spec("nest") else "scipy"


def simulated_curve(p: Parameters, kind: str, u: np.ndarray) -> list[float]:
    """Return κ over time from simulated Green's functions, without sampling noise.

    One simulation is enough, because the response to a later pulse is the same, but later.
    """
    pulse = np.zeros((1, p.n_steps * p.fine))
    pulse[0, : p.fine] = 1.0
    run = partial(simulate, p.network(p.network_seed), pulse, u, p.dt / p.fine, kind)
    run = partial(run, trajectories=True)
    path = run(resolution=p.nest_resolution)[0] if kind == "nest" else run(rtol=1e-8)[0]
    return [_first_margin(p, path[j :: -p.fine]) for j in range(len(path))]


def _first_margin(p: Parameters, R: np.ndarray) -> float:
    """Return max_v κ of the first stimuli for a response, which may have fewer steps."""
    stimuli, n = _stimuli(p, 0), len(R)
    return best_margins(R, stimuli.mu[None, :n], stimuli.psi[None, :n, :n], p.eta)[0]


def analytical_curve(p: Parameters, unfolding: Unfolding, u: np.ndarray) -> np.ndarray:
    """Return κ over time from the unfolding, with the best readout at every time."""
    responses = (unfolding.with_readout(t).input_response(u) for t in _times(p, p.fine))
    return np.array([_first_margin(p, R) for R in responses])


def optimal_part(p: Parameters, numbers: range) -> dict:
    """Return certified optima of some stimuli at the times `_solved_at`, and loadings."""
    unfolding = _unfolding(p)
    modes = unfolding.reservoir.modes()
    times = _times(p, p.per_step)[_solved_at(p)].tolist()
    margins, gaps = np.empty((2, len(numbers), len(times)))
    loadings = {str(time): [] for time in p.mode_times}
    for i, number in enumerate(numbers):
        stimuli = _stimuli(p, number)
        for j, time in enumerate(times):
            best = optimize(unfolding.with_readout(time), stimuli, p.eta)
            margins[i, j], gaps[i, j] = best.soft_margin, best.gap
            if time in p.mode_times:
                loadings[str(time)].append(np.abs(modes.loading(best.u)))
    means = {time: np.mean(found, axis=0) for time, found in loadings.items()}
    return {"margins": margins, "gaps": gaps, "loadings": means, "n": len(numbers)}


def random_part(p: Parameters, numbers: range) -> dict:
    """Return sums of κ and κ² over random projections, per stimulus and time."""
    unfolding, us = _unfolding(p), _projections(p)[numbers.start : numbers.stop]
    drawn = [_stimuli(p, number) for number in range(p.n_stimuli)]
    mu, psi = np.array([s.mu for s in drawn]), np.array([s.psi for s in drawn])
    times = _times(p, p.per_step)
    total, square = np.zeros((2, p.n_stimuli, len(times)))
    largest = np.full((p.n_stimuli, len(times)), -np.inf)
    for i, time in enumerate(times):
        # Compute several projections at once, as if they were channels.
        responses = unfolding.with_readout(time).input_response(us.T)
        for R in responses.reshape(len(us), unfolding.n_steps, -1):
            values = best_margins(R, mu, psi, p.eta)
            total[:, i] += values
            square[:, i] += values**2
            largest[:, i] = np.maximum(largest[:, i], values)
    return {"total": total, "square": square, "largest": largest}


def compute(run: FigureRun) -> dict:
    p = run.parameters
    unfolding, stimuli = _unfolding(p), _stimuli(p, 0)
    best = optimize(unfolding, stimuli, p.eta)
    kind = engine()
    pair = {"random": _projections(p)[0], "optimised": best.u}
    simulated = run.map("simulation", simulated_curve, [*pair.values()], p, kind)
    single: dict[str, Any] = {"times": _times(p, p.fine), "mu": stimuli.mu}
    single |= {"engine": kind, "bound_at_end": best.upper_bound}
    for (name, u), curve in zip(pair.items(), simulated, strict=True):
        exact = analytical_curve(p, unfolding, u)
        deviation = np.abs(exact - curve).max() / np.ptp(exact)
        single[name] = {"analytical": exact, "simulated": curve}
        single[name]["deviation_of_range"] = deviation
    at_angle = unfolding.with_readout(p.angle_time)
    there = optimize(at_angle, stimuli, p.eta)
    angles = np.linspace(-np.pi / 2, np.pi / 2, p.n_angles)
    planes = {"n_planes": p.n_planes, "rng": np.random.default_rng([p.network_seed, 3])}
    turned = margin_over_angle(at_angle, stimuli, there.u, angles, eta=p.eta, **planes)
    rng, kept = np.random.default_rng([p.network_seed, 3]), []
    rows = at_angle.readout_response(there.v)
    for other in rng.standard_normal((p.n_planes, p.n_neurons)):
        aside = other - (other @ there.u) * there.u
        aside = rows @ aside / np.linalg.norm(aside)
        a = np.outer(np.cos(angles), rows @ there.u) + np.outer(np.sin(angles), aside)
        variance = np.einsum("ij,jk,ik->i", a, stimuli.psi, a)
        kept.append(a @ stimuli.mu - p.eta / 2 * variance)
    angle = {"radians": angles, "readout_optimal": turned, "readout_kept": kept}
    average, modes = _average(p, run)
    single["reoptimised"] = average.pop("first")
    return {"single": single, "average": average, "modes": modes, "angle": angle}


def _average(p: Parameters, run: FigureRun) -> tuple[dict, dict]:
    """Return the numbers of (b) and (c), over many stimuli and projections."""
    parts = run.map("optima", optimal_part, chunks(p.n_stimuli, p.chunk), p)
    some = chunks(p.n_random, p.chunk)
    drawn = run.map("random projections", random_part, some, p)
    optimal = np.concatenate([part["margins"] for part in parts])
    gaps = np.concatenate([part["gaps"] for part in parts])
    mean, square = (
        np.sum([part[key] for part in drawn], axis=0) / p.n_random
        for key in ("total", "square")
    )
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    at = _solved_at(p)
    largest = np.max([part["largest"] for part in drawn], axis=0)[:, at]
    average = {
        "times": _times(p, p.per_step),
        "random": mean.mean(0),
        "random_spread": spread.mean(0),
        "solved_times": _times(p, p.per_step)[at],
        "optimised": optimal.mean(0),
        "optimised_standard_error": optimal.std(0) / np.sqrt(len(optimal)),
        "ratio": optimal.mean(0) / mean.mean(0)[at],
        # Early on, every u reaches the optimum up to rounding.
        "share_at_or_above_every_random": (optimal >= largest * (1 - 1e-6)).mean(0),
        "gap_median": np.median(gaps, axis=0),
        "gap_largest": gaps.max(0),
        "share_certified_to_1e-3": (gaps <= 1e-3).mean(0),
        "first": optimal[0],
    }
    found = p.network(p.network_seed).modes()
    modes = {"real_part": found.eigenvalues.real, "time_constant": found.time_constants}
    weights, loadings = [part["n"] for part in parts], {}
    for time in map(str, p.mode_times):
        means = [part["loadings"][time] for part in parts]
        loadings[time] = np.average(means, axis=0, weights=weights)
    return average, modes | {"loadings": loadings}


def draw(numbers: dict, p: Parameters) -> Any:
    figure, ((a, b), (c, d)) = look.sheet(9.6, 6.6, 2, 2)
    _draw_single(a, numbers["single"], numbers["average"], p)
    _draw_average(b, numbers["average"])
    _draw_modes(c, numbers["modes"], p)
    _draw_angle(d, numbers["angle"], p)
    return figure


def _draw_single(axes: "look.Axes", single: dict, average: dict, p: Parameters) -> None:
    times, edges = np.array(single["times"]), p.dt * np.arange(p.n_steps + 1)
    simulator = _SIMULATORS[single["engine"]]
    label = r"mean separation $\mu$ (a.u.), thin grey"
    above = look.right_axis(axes, label, color=look.NEUTRAL)
    above.stairs(single["mu"], edges, baseline=None, color="0.65", lw=1.2, zorder=0)
    low, high = min(single["mu"]), max(single["mu"])
    above.set_ylim(low - 0.1 * (high - low), high + 0.5 * (high - low))
    axes.set_zorder(above.get_zorder() + 1)
    axes.patch.set_visible(False)
    names = {"random": "random $u$", "optimised": "$u$ solved for $T = 10$"}
    for key, colour in look.KINDS:
        axes.plot(times, single[key]["analytical"], color=colour, label=names[key], lw=2.2)
        label = f"simulated ({simulator})" if key == "optimised" else None
        simulated = single[key]["simulated"]
        axes.plot(times, simulated, "--", color=SIMULATION, lw=1.0, label=label)
    how = {"color": SOLVED, "mfc": "white", "ms": 4.0, "label": "$u$ solved for each $T$"}
    axes.plot(average["solved_times"], single["reoptimised"], "D", **how)
    top = max(single["reoptimised"])
    axes.set_ylim(-0.05 * top, 1.5 * top)
    labels = ("one network, one stimulus set", look.READOUT_TIME, look.MARGIN)
    look.panel(axes, "a", *labels, "upper left", ncols=2, columnspacing=1.0)


def _draw_average(axes: "look.Axes", average: dict) -> None:
    solved = "$u$ solved for each $T$ (± s.e. of the stimuli)"
    for key, at, dash, spread, colour, label in (
        ("random", "times", "s--", "spread", RANDOM, "random $u$ (± s.d.)"),
        ("optimised", "solved_times", "o-", "standard_error", SOLVED, solved),
    ):
        names = (at, key, f"{key}_{spread}")
        times, mean, around = (np.array(average[one]) for one in names)
        band = (mean - around, mean + around)
        axes.fill_between(times, *band, color=colour, alpha=0.25, lw=0)
        axes.errorbar(times, mean, fmt=dash, color=colour, ms=2.5, label=label)
    axes.set_ylim(None, 1.18 * max(average["optimised"]))
    labels = ("average over stimuli", look.READOUT_TIME, look.MARGIN)
    look.panel(axes, "b", *labels, "upper left")


def _draw_modes(axes: "look.Axes", modes: dict, p: Parameters) -> None:
    real = np.array(modes["real_part"])
    edges = np.linspace(real.min() - 1e-9, real.max() + 1e-9, 13)
    place = np.digitize(real, edges) - 1
    centres, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    # Both projections are solved, so they have one hue: light and open, dark and full.
    looks = zip(p.mode_times, (0.35, 0.9), "sD", strict=True)
    for i, (time, alpha, mark) in enumerate(looks):
        loading = np.array(modes["loadings"][str(time)])
        total = np.bincount(place, loading, minlength=len(centres))
        bars = total / np.maximum(np.bincount(place, minlength=len(centres)), 1)
        how = {"color": SOLVED, "lw": 0, "alpha": alpha, "label": f"$T = {time:g}$, mean"}
        axes.bar(centres + (i - 0.5) * 0.42 * width, bars, 0.42 * width, **how)
        fill, edge = (SOLVED, "k") if i else ("white", SOLVED)
        dots = {"mew": 0.5, "ms": 3.5, "label": f"$T = {time:g}$, each mode"}
        axes.plot(real, loading, mark, color=fill, mec=edge, **dots)
    marks = np.array([0.14, 0.17, 0.25, 0.5, 2.0])
    upper = axes.secondary_xaxis("top")
    upper.set_xticks(1 - p.tau / marks, [f"{mark:g}" for mark in marks])
    upper.set_xlabel(r"time constant $\tau_\alpha$ (a.u.)", labelpad=3)
    # Mean of |wᵀu| over random u for a complex unit w; most modes come in pairs.
    level = np.sqrt(np.pi / (4 * len(real)))
    axes.axhline(level, color=RANDOM, ls="--", lw=1.2, label="random $u$, mean")
    x = r"real part of the eigenvalue, Re $\lambda_\alpha$"
    y = r"mean loading $|\omega_\alpha|$"
    look.panel(axes, "c", "modes used by the solved $u$", x, y, "upper left")


def _draw_angle(axes: "look.Axes", angle: dict, p: Parameters) -> None:
    degrees, top = np.degrees(angle["radians"]), np.max(angle["readout_optimal"])
    for key, colour, dash, label in (
        ("readout_optimal", SOLVED, "-", "readout re-optimised"),
        ("readout_kept", look.NEUTRAL, "--", "readout held fixed"),
    ):
        margins = np.array(angle[key])
        axes.plot(degrees, margins.T, color=colour, lw=0.5, alpha=0.3)
        axes.plot(degrees, margins.mean(0), dash, color=colour, lw=2.2, label=label)
    axes.set(xticks=np.arange(-90, 91, 30), ylim=(-0.6 * top, 1.2 * top))
    title = f"rotating $u$ away from the solved $u$, $T = {p.angle_time:g}$"
    x = "angle to the solved $u$ (degrees)"
    look.panel(axes, "d", title, x, look.MARGIN, "center left")


def summary(numbers: dict, p: Parameters) -> list[str]:
    single, average = numbers["single"], numbers["average"]
    worst = max(single[key]["deviation_of_range"] for key, _ in look.KINDS)
    certified = np.mean(average["share_certified_to_1e-3"])
    above = np.mean(average["share_at_or_above_every_random"])
    beaten = f"none of the {p.n_random} random projections is better at any time"
    if above < 1:
        beaten = f"some random projection is better in {1 - above:.1%} of the cases"
    angle = numbers["angle"]
    kinds = ("readout_optimal", "readout_kept")
    optimal, kept = (np.mean(angle[key], axis=0) for key in kinds)
    degrees = np.degrees(angle["radians"])
    left = optimal[int(np.argmin(np.abs(degrees - 60)))] / optimal.max()
    negative = np.abs(degrees[kept < 0]).min(initial=180.0)
    return [
        f"(a) theory and simulation ({_SIMULATORS[single['engine']]}) differ by at most "
        f"{worst:.2%} of the curve's range",
        f"(b) κ at T = {p.n_steps * p.dt:g}: random u {average['random'][-1]:.4f} ± "
        f"{average['random_spread'][-1]:.4f}, solved u {average['optimised'][-1]:.4f} "
        f"({average['ratio'][-1]:.2f} times as large)",
        f"    {certified:.0%} of the optima are certified to 0.1 %, and the largest gap is "
        f"{max(average['gap_largest']):.1%}; {beaten}",
        f"(d) 60° away from the solved u, κ is still {left:.1%} of its maximum if you "
        "re-optimise the readout; if you hold it fixed, κ is already negative at "
        f"{negative:.0f}°",
    ]
