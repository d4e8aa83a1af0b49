"""Fig. 4: network states on ECG5000.

(a) Histograms of the states along the readout for 4332 heartbeats and random *u*, to first
order in α: averaged over 50 random projections (filled), and for the projections with the
highest accuracy (grey outline) and the lowest accuracy (black outline, white on dark
pages). (b) The same for the solved *u*, simulated. (c) The two terms of the soft margin,
separation (blue) and variance term (red), over the first ten rounds of the paper's
alternation. Their difference (grey) is the soft margin. (d) Both terms over time for the
solved *u* and *v*: grey where the soft margin is positive, hatched where it is negative.
The network is the one in Fig. 3.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import Unfolding, optimize, simulate
from ...datasets.downloads import BinarySplit
from . import figures as look
from .figures import (
    BLUE,
    CLASS_MINUS,
    CLASS_PLUS,
    RED,
    FigureRun,
    Heartbeats,
    OnHeartbeats,
    best_readouts,
    chunks,
    column,
)


@dataclass(frozen=True)
class Parameters(OnHeartbeats):
    """Parameters of Fig. 4: the paper's values, or ours if the paper gives none."""

    network_seed: int = 0  # The network that Fig. 3 shows
    alpha: float = 0.05
    n_random: int = 50
    n_rounds: int = 10  # (c) Rounds of the paper's alternation from a random start
    #: (c) Order of the expansion in the alternation; 0 takes a second, 1 takes minutes.
    alternation_order: int = 1
    n_test: int | None = None  # Test series to use, evenly spaced; all 4332 by default
    simulation_rtol: float = 1e-6
    #: First and last edge of the histograms, and number of edges.
    bins: tuple[float, float, int] = (-1.5, 1.5, 76)
    tol: float = 1e-8
    chunk: int = 5


FULL = Parameters()
QUICK = replace(
    FULL, n_random=6, n_test=360, alternation_order=0, simulation_rtol=1e-4, tol=1e-5,
    chunk=3,
)  # fmt: skip


def _task(p: Parameters, ecg: BinarySplit) -> tuple[Heartbeats, Unfolding]:
    """Return heartbeats with some of the test series, and the unfolded network."""
    total = len(ecg.X_test)
    chosen = np.linspace(0, total - 1, p.n_test or total).round().astype(int)
    ecg = ecg._replace(X_test=ecg.X_test[chosen], y_test=ecg.y_test[chosen])
    task = Heartbeats(ecg, p.duration)
    return task, p.unfold(p.network_seed, *task.steps, p.alpha, p.tol)


def _states(p: Parameters, z: np.ndarray, signs: np.ndarray) -> dict:
    """Return accuracy and density of readout values; the outer bins hold all beyond."""
    edges = np.linspace(*p.bins)
    inside = np.clip(z, edges[0] + 1e-9, edges[-1] - 1e-9)
    found = {"accuracy": (z * signs > 0).mean()}
    for name, sign in (("plus", 1), ("minus", -1)):
        found[name] = np.histogram(inside[signs == sign], edges, density=True)[0]
    return found


def random_part(p: Parameters, ecg: BinarySplit, numbers: range) -> list[dict]:
    """Return panel (a): states of the test series at O(α) for some random projections."""
    task, unfolding = _task(p, ecg)
    us = p.projections(p.n_random, p.network_seed, 1)[numbers.start : numbers.stop]
    found = []
    for u, _, best in best_readouts(unfolding, task.stimuli, us, p.eta):
        z = unfolding.kernels(u, best.v).decision_values(task.X_test)
        found.append({"kappa": best.value, **_states(p, z, task.signs)})
    return found


def optimum(p: Parameters, ecg: BinarySplit, _: object) -> dict:
    """Return the optimum, its terms over time (d), and the alternation (c)."""
    task, unfolding = _task(p, ecg)
    stimuli = task.stimuli
    with look.expansion_judged_elsewhere():
        best = optimize(unfolding, stimuli, p.eta)
        system = unfolding if p.alternation_order else unfolding.linear
        rounds = look.alternation(system, stimuli, p.eta, p.n_rounds, p.network_seed, 2)
    # All times at once, with the projections optimised for the last time.
    paths = unfolding.states(stimuli.series, best.u, trajectories=True) @ best.v
    signed = paths * np.asarray(stimuli.signs)[:, None]
    mean = stimuli.case_weights @ signed
    variance = p.eta / 2 * (stimuli.case_weights @ (signed - mean) ** 2)
    return {
        "u": best.u,
        "v": best.v,
        "kappa": best.soft_margin,
        "history": rounds.history,
        "bound": optimize(unfolding.linear, stimuli, p.eta).upper_bound,
        "times": unfolding.dt * np.arange(1, stimuli.n_steps + 1),
        "separation": mean,
        "variance": variance,
    }


def simulated_part(p: Parameters, ecg: BinarySplit, best: dict, numbers: range) -> dict:
    """Return panel (b): readout values of some test series, simulated and at O(α)."""
    task, unfolding = _task(p, ecg)
    X = task.X_test[numbers.start : numbers.stop]
    u, v = np.array(best["u"]), np.array(best["v"])
    y = simulate(unfolding.reservoir, X, u, unfolding.dt, rtol=p.simulation_rtol)
    return {"z": y @ v, "first_order": unfolding.kernels(u, v).decision_values(X)}


def compute(run: FigureRun) -> dict:
    p, ecg = run.parameters, run.ecg
    best = run.map("optimum", optimum, [0], p, ecg)[0]
    some = chunks(p.n_random, p.chunk)
    parts = run.map("random projections", random_part, some, p, ecg)
    drawn = [one for part in parts for one in part]
    signs = _task(p, ecg)[0].signs
    some = chunks(len(signs), 256)
    simulated = run.map("simulation", simulated_part, some, p, ecg, best)
    parts = ([part[key] for part in simulated] for key in ("z", "first_order"))
    z, close = map(np.concatenate, parts)
    accuracies = column(drawn, "accuracy")
    return {
        "edges": np.linspace(*p.bins),
        "random": {key: column(drawn, key).mean(0) for key in ("plus", "minus")},
        "best": drawn[int(accuracies.argmax())],
        "worst": drawn[int(accuracies.argmin())],
        "random_kappa": [one["kappa"] for one in drawn],
        "random_accuracy": accuracies,
        "optimised": {
            **_states(p, z, signs),
            "accuracy_first_order": (close * signs > 0).mean(),
            "state_error": np.abs(z - close).max() / np.abs(z).max(),
        },
        "optimum": best,
    }


def draw(numbers: dict, p: Parameters) -> Any:
    figure, ((a, b), (c, d)) = look.sheet(9.6, 6.4, 2, 2)
    b.sharex(a)
    edges, optimised = numbers["edges"], numbers["optimised"]
    for key, colour, hatch, label in (
        ("plus", CLASS_PLUS, "///", r"$\zeta = +1$"),
        ("minus", CLASS_MINUS, "", r"$\zeta = -1$"),
    ):
        how = {"color": colour, "alpha": 0.4, "hatch": hatch, "label": label}
        for axes, found in ((a, numbers["random"]), (b, optimised)):
            axes.stairs(found[key], edges, fill=True, **how)
        a.stairs(numbers["best"][key], edges, color="0.6", lw=1.3)
        a.stairs(numbers["worst"][key], edges, color="0.1", lw=1.3)
        b.stairs(optimised[key], edges, color=colour, lw=1.2)
    a.plot([], [], color="0.6", label=f"best $u$, {numbers['best']['accuracy']:.1%}")
    a.plot([], [], color="0.1", label=f"worst $u$, {numbers['worst']['accuracy']:.1%}")
    x = r"state along the readout, $z = v^\mathsf{T} y(T)$ (a.u.)"
    for axes, name, title in (
        (a, "a", r"random $u$, $\mathcal{O}(\alpha)$"),
        (b, "b", f"solved $u$, simulated, {optimised['accuracy']:.1%}"),
    ):
        axes.axvline(0, color="k", lw=0.8, ls=":")
        axes.set_ylim(0, 1.32 * axes.dataLim.ymax)
        place = "upper center" if axes is a else "upper left"  # clear of the line at zero
        look.panel(axes, name, title, x, "density (1/a.u.)", place, ncols=2)
    both = (numbers["random"], optimised)
    filled = [found[key] for found in both for key in ("plus", "minus")]
    used = np.flatnonzero(np.sum(filled, axis=0) > 1e-3)
    a.set_xlim(edges[used[0]], edges[used[-1] + 1])
    best = numbers["optimum"]
    history = np.array(best["history"])
    rounds = np.arange(len(history))
    over_time = (np.array(best[key]) for key in ("times", "separation", "variance"))
    for axes, mark, x, separation, variance in (
        (c, "o", rounds, *history[:, :2].T),
        (d, "", *over_time),
    ):
        covariance = r"variance term $\frac{\eta}{2} v^\mathsf{T}\Sigma v$"
        distance = r"separation $v^\mathsf{T} M$"
        axes.plot(x, separation, f"{mark}-", color=BLUE, ms=4, label=distance)
        axes.plot(x, variance, f"{mark}--", color=RED, ms=4, label=covariance)
        how: Any = {"color": "0.85", "label": r"$\kappa_\eta > 0$", "interpolate": True}
        axes.fill_between(x, variance, separation, where=separation >= variance, **how)
        if axes is d:
            how = {"facecolor": "white", "edgecolor": "0.6", "hatch": "////", "lw": 0}
            how |= {"label": r"$\kappa_\eta < 0$", "interpolate": True}
            axes.fill_between(x, variance, separation, where=separation < variance, **how)
    c.set_ylim(0, None)
    term = r"term of $\kappa_\eta$ (a.u.)"
    labels = ("round of the alternation", term, "lower right")
    look.panel(c, "c", "alternation from a random start", *labels)
    labels = (look.TIME, term, "upper left")
    look.panel(d, "d", "solved $u$ and $v$ over time", *labels, ncols=2, columnspacing=1.0)
    return figure


def summary(numbers: dict, p: Parameters) -> list[str]:
    drawn, optimised = 100 * np.array(numbers["random_accuracy"]), numbers["optimised"]
    best = numbers["optimum"]
    history = np.array(best["history"])
    positive = np.greater(best["separation"], best["variance"])
    late = best["times"][int(np.flatnonzero(~positive)[-1]) + 1] if not all(positive) else 0
    return [
        f"(a) random u: mean κ {np.mean(numbers['random_kappa']):.3f}, mean accuracy "
        f"{drawn.mean():.1f} % ({drawn.min():.1f}–{drawn.max():.1f} %)",
        f"(b) solved u: κ {best['kappa']:.3f}, accuracy {optimised['accuracy']:.1%} in "
        f"simulation and {optimised['accuracy_first_order']:.1%} to O(α); the readout "
        f"values differ by at most {optimised['state_error']:.1e} of the largest value",
        f"(c) after {len(history) - 1} rounds, the alternation (order "
        f"{p.alternation_order}) reaches "
        f"{(history[-1, 0] - history[-1, 1]) / best['kappa']:.1%} of the κ in (b); for the "
        f"linear network, κ is proven to be at most {best['bound']:.3f}",
        f"(d) κ stays positive from t = {late:.2f} to the readout at T = {p.duration:g}",
    ]
