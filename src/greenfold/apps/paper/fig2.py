"""Fig. 2: linear reservoir.

(a) Soft margin against readout time for one network and one pair of classes, with the best
readout at each time. Solid lines are theory, dashed lines are simulations. Each diamond
shows κ for the *u* that is best at its readout time, the cross the *u* and *v* after 30
rounds of the paper's alternation. The orange line (right axis) is half the difference
between the class means of the stimuli. (a′) The same, but with *u* and *v* held at their
optimum for *T* = 10. (b) Soft margin averaged over 250 pairs of classes, for 250 random
projections *u* (mean and standard deviation) and for *u* solved for each marked readout
time. (c) How much the *u* solved for *T* = 9 uses each mode of the network. Each mark is
one mode, averaged over the pairs of classes; each bar is the mean over the modes in a bin.
(c′) The same bins, as shares of the sum over all modes; the hatched bins are those of *u*
solved for *T* = 1, which one step of Δt = 1 does not determine. (d) Soft margin as *u* is
rotated away from the solved *u* in random planes (thin lines) and on average (thick lines).
The readout is either re-optimised or held fixed. Colours as in the paper: blue is random,
red is solved.
"""

import importlib.util
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ... import GaussianStimuli, Unfolding, optimize, simulate
from ...analysis.curves import margin_over_angle, margin_over_time
from ...optimizers.linear import best_margins
from ..style import SIMULATION
from . import figures as look
from .figures import RANDOM, SOLVED, FigureRun, OnSteps, chunks


@dataclass(frozen=True)
class Parameters(OnSteps):
    """Parameters of Fig. 2: the paper's values, or ours if the paper gives none."""

    strength: float = 1.0  # ‖μ‖ of the stimuli, which the paper leaves open here
    fine: int = 20  # (a) Readout times within a step
    #: (a) Time step of NEST; its error is of first order in it.
    nest_resolution: float = 0.001
    n_stimuli: int = 250
    n_random: int = 250
    n_rounds: int = 30  # (a) Rounds of the alternation, from one random start
    per_step: int = 4  # (b) Readout times within a step
    mode_times: tuple[float, float] = (1.0, 9.0)
    #: (c) A mode is fast if its time constant is shorter.
    fast: float = 0.5
    angle_time: float = 9.0
    n_angles: int = 73
    n_planes: int = 20
    chunk: int = 5


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


def one_step_spread(p: Parameters, unfolding: Unfolding) -> float:
    """Return how much κ depends on u after one step, relative to κ."""
    after = unfolding.with_readout(p.dt)
    margins = [_first_margin(p, after.input_response(u)) for u in _projections(p)]
    return float(np.ptp(margins) / np.max(margins))


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
    rounds = look.alternation(unfolding, stimuli, p.eta, p.n_rounds, p.network_seed, 4)
    single["alternation"] = rounds.soft_margin
    times = single["times"]
    held = margin_over_time(unfolding, stimuli, times, u=best.u, v=best.v, eta=p.eta)
    single["held"] = held.soft_margin
    single["one_step_spread"] = one_step_spread(p, unfolding)
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
    figure, ((a, held, b), (c, total, d)) = look.sheet(13.2, 6.8, 2, 3)
    _draw_single(a, numbers["single"], numbers["average"], p)
    _draw_held(held, numbers["single"], p)
    _draw_average(b, numbers["average"])
    _draw_modes(c, total, numbers["modes"], p)
    _draw_angle(d, numbers["angle"], p)
    return figure


def _draw_single(axes: "look.Axes", single: dict, average: dict, p: Parameters) -> None:
    times, edges = np.array(single["times"]), p.dt * np.arange(p.n_steps + 1)
    simulator = _SIMULATORS[single["engine"]]
    above = look.right_axis(axes, r"mean separation $\mu$ (a.u.)", color=look.ORANGE)
    above.stairs(single["mu"], edges, baseline=None, color=look.ORANGE, lw=1.0, zorder=0)
    low, high = min(single["mu"]), max(single["mu"])
    above.set_ylim(low - 0.1 * (high - low), high + 0.9 * (high - low))
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
    how = {"color": look.NEUTRAL, "ms": 8.0, "label": f"{p.n_rounds} rounds of alternation"}
    axes.plot(times[-1], single["alternation"], "x", mew=1.8, zorder=5, **how)
    top = max(single["reoptimised"])
    axes.set_ylim(-0.05 * top, 1.7 * top)
    labels = ("best readout at each time", look.READOUT_TIME, look.MARGIN)
    look.panel(axes, "a", *labels, "upper left", ncols=2, columnspacing=1.0)


def _draw_held(axes: "look.Axes", single: dict, p: Parameters) -> None:
    times, held = np.array(single["times"]), np.array(single["held"])
    late = times > times[-1] - 2 * p.dt
    label = "$u$ and $v$ solved for $T = 10$"
    axes.plot(times, held, color=SOLVED, lw=2.0, label=label)
    axes.plot(times[-1], held[-1], "o", color=SOLVED, ms=5)
    axes.axhline(0, color="k", lw=0.6, ls=":")
    low = held.min()
    axes.set_ylim(1.05 * low, -0.95 * low)
    near = axes.inset_axes((0.1, 0.67, 0.5, 0.24))
    near.plot(times[late], held[late], ".-", color=SOLVED, lw=1.2, ms=3)
    near.axhline(0, color="k", lw=0.6, ls=":")
    near.set_ylim(-0.12, 0.06)
    near.tick_params(labelsize=7)
    near.set_title("near the readout", fontsize=8, pad=3)
    title = r"both held at the optimum for $T = 10$"
    look.panel(axes, "a\u2032", title, look.READOUT_TIME, look.MARGIN, "lower left")


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
    axes.set_ylim(None, 1.35 * max(average["optimised"]))
    labels = ("average over stimuli", look.READOUT_TIME, look.MARGIN)
    look.panel(axes, "b", *labels, "upper left")


def fast_share(modes: dict, time: float, p: Parameters) -> float:
    """Return the share of the summed loadings that fast modes carry."""
    loading = np.array(modes["loadings"][str(time)])
    return float(loading[np.array(modes["time_constant"]) < p.fast].sum() / loading.sum())


def _draw_modes(mean: "look.Axes", total: "look.Axes", modes: dict, p: Parameters) -> None:
    real = np.array(modes["real_part"])
    # One edge is where the modes become slow.
    slow = 1 - p.tau / p.fast
    width = (real.max() - slow) / 4.999
    first = slow - width * np.ceil((slow - real.min()) / width)
    edges = np.arange(first, real.max() + width, width)
    early, late = (np.array(modes["loadings"][str(time)]) for time in p.mode_times)
    count = np.histogram(real, edges)[0]
    sums = np.histogram(real, edges, weights=late)[0]
    bars = {"color": SOLVED, "alpha": 0.45, "lw": 0, "width": 0.9 * width}
    centres = (edges[1:] + edges[:-1]) / 2
    name = f"$T = {p.mode_times[1]:g}$"
    mean.bar(centres, sums / np.maximum(count, 1), label=f"{name}, mean", **bars)
    dots = {"mew": 0.5, "ms": 3.5, "label": f"{name}, each mode"}
    mean.plot(real, late, "D", color=SOLVED, mec="k", **dots)
    # Mean of |wᵀu| over random u for a complex unit w; most modes come in pairs.
    level = np.sqrt(np.pi / (4 * len(real)))
    mean.axhline(level, color=RANDOM, ls="--", lw=1.2, label="random $u$, mean")
    mean.set_ylim(0, 1.25 * late.max())
    total.bar(centres, sums / late.sum(), label=name, **bars)
    hatched: dict[str, Any] = {"fill": False, "ec": "0.4", "hatch": "////", "lw": 0.8}
    shares = np.histogram(real, edges, weights=early)[0] / early.sum()
    label = f"$T = {p.mode_times[0]:g}$, not determined"
    total.bar(centres, shares, 0.9 * width, label=label, **hatched)
    total.plot(centres, count / len(real), "_", color=RANDOM, ms=14, mew=2.0,
               label="random $u$")  # fmt: skip
    total.axvline(slow, color="k", lw=0.8, ls=":")
    total.set_ylim(0, 1.45 * max(shares.max(), (sums / late.sum()).max()))
    fast = fast_share(modes, p.mode_times[1], p)
    at = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    told = rf"$\tau_\alpha < {p.fast:g}$: {fast:.0%}"
    total.annotate(told, (slow, 0.66), (-4, 0), ha="right", fontsize=8, **at)
    total.annotate(f"{1 - fast:.0%}", (slow, 0.66), (4, 0), fontsize=8, **at)
    marks = np.array([0.14, 0.17, 0.25, 0.5, 2.0])
    x = r"real part of the eigenvalue, Re $\lambda_\alpha$"
    for axes, letter, title, y in (
        (mean, "c", "use of each mode, mean per bin", r"mean loading $|\omega_\alpha|$"),
        (total, "c\u2032", "the same, summed per bin", r"share of $\sum|\omega_\alpha|$"),
    ):
        upper = axes.secondary_xaxis("top")
        upper.set_xticks(1 - p.tau / marks, [f"{mark:g}" for mark in marks])
        upper.set_xlabel(r"time constant $\tau_\alpha$ (a.u.)", labelpad=3)
        look.panel(axes, letter, title, x, y, "upper left")


def _draw_angle(axes: "look.Axes", angle: dict, p: Parameters) -> None:
    degrees, top = np.degrees(angle["radians"]), np.max(angle["readout_optimal"])
    for key, colour, dash, label in (
        ("readout_optimal", SOLVED, "-", "readout re-optimised"),
        ("readout_kept", look.NEUTRAL, "--", "readout held fixed"),
    ):
        margins = np.array(angle[key])
        axes.plot(degrees, margins.T, color=colour, lw=0.5, alpha=0.3)
        axes.plot(degrees, margins.mean(0), dash, color=colour, lw=2.2, label=label)
    axes.set(xticks=np.arange(-90, 91, 30), ylim=(-0.6 * top, 1.6 * top))
    title = f"rotating $u$ away from the solved $u$, $T = {p.angle_time:g}$"
    x = "angle to the solved $u$ (degrees)"
    look.panel(axes, "d", title, x, look.MARGIN, "upper left")


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
    held, top = np.array(single["held"]), average["optimised"]
    at = [held[np.argmin(np.abs(np.array(single["times"]) - t))] for t in (9.45, 9.85)]
    return [
        f"(a) theory and simulation ({_SIMULATORS[single['engine']]}) differ by at most "
        f"{worst:.2%} of the curve's range; {p.n_rounds} rounds of alternation reach "
        f"{single['alternation'] / single['bound_at_end']:.2%} of the proven bound",
        f"(a′) κ of the u and v solved for T = {p.n_steps * p.dt:g}: {at[0]:.3f} at "
        f"t = 9.45, {at[1]:.3f} at t = 9.85, {held[-1]:.3f} at T",
        f"(b) κ at T = {p.n_steps * p.dt:g}: random u {average['random'][-1]:.4f} ± "
        f"{average['random_spread'][-1]:.4f}, solved u {average['optimised'][-1]:.4f} "
        f"({average['ratio'][-1]:.2f} times as large)",
        f"    {certified:.0%} of the optima are certified to 0.1 %, and the largest gap is "
        f"{max(average['gap_largest']):.1%}; {beaten}",
        f"    over T, κ of the solved u rises from {top[0]:.4f} to {top[-1]:.4f}",
        *(
            f"(c′) T = {time:g}: fast modes (τ_α < {p.fast:g}), "
            f"{np.mean(np.less(numbers['modes']['time_constant'], p.fast)):.0%} of all, "
            f"carry {fast_share(numbers['modes'], time, p):.0%} of the sum of |ω_α|"
            for time in p.mode_times
        ),
        f"    after the first step, κ depends on u by at most "
        f"{single['one_step_spread']:.0e} of its value",
        f"(d) 60° away from the solved u, κ is still {left:.1%} of its maximum if you "
        "re-optimise the readout; if you hold it fixed, κ is already negative at "
        f"{negative:.0f}°",
    ]
