"""Fig. 4: network states on ECG5000, for random and for solved input projections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...datasets.archive import BinarySplit
from ...optimizers.run import optimize
from ...simulation import simulate
from ...unfolding.unfolding import Unfolding
from . import setting as look
from .figures import Run
from .setting import (
    Heartbeats,
    Paper,
    best_readouts,
    chunks,
    expansion_judged_elsewhere,
    unit_vectors,
)

TITLE = "Fig. 4: network states on ECG5000"
NEEDS_ECG = True
CAPTION = """
(a) States of 4332 heartbeats along the readout for random *u* at first order in α: mean
over 50 projections (filled), the best (light outline) and the worst of them (dark). (b)
The same for the solved *u*, simulated. (c) Distance and covariance term of the soft margin
over the first ten rounds of the paper's alternation; their difference (grey) is the soft
margin. (d) Both terms over time for the solved *u* and *v*, grey where the soft margin is
positive. The network is the one that Fig. 3 shows.
"""


@dataclass(frozen=True)
class Parameters(Paper):
    """What Fig. 4 is made with; the paper's values, and ours where it gives none."""

    network_seed: int = 0  # The network that Fig. 3 shows
    alpha: float = 0.05
    duration: float = 10.0
    n_random: int = 50
    n_rounds: int = 10  # (c) Rounds of the paper's alternation from a random start
    #: (c) Order of the expansion there; 0 takes a second, 1 minutes.
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
    """Heartbeats, of the test series as many as are wanted, and the unfolded network."""
    total = len(ecg.X_test)
    chosen = np.linspace(0, total - 1, p.n_test or total).round().astype(int)
    ecg = ecg._replace(X_test=ecg.X_test[chosen], y_test=ecg.y_test[chosen])
    task = Heartbeats(ecg, p.duration)
    return task, p.unfold(p.network_seed, *task.steps, p.alpha, p.tol)


def _histogram(p: Parameters, z: np.ndarray) -> np.ndarray:
    """Density of readout values; what lies beyond the edges counts as at them."""
    edges = np.linspace(*p.bins)
    inside = np.clip(z, edges[0] + 1e-9, edges[-1] - 1e-9)
    return np.histogram(inside, edges, density=True)[0]


def random_part(p: Parameters, ecg: BinarySplit, numbers: range) -> list[dict]:
    """Panel (a): states of the test series at O(α) for some random projections."""
    task, unfolding = _task(p, ecg)
    signs = task.signs
    us = unit_vectors(np.random.default_rng([p.network_seed, 1]), p.n_random, p.n_neurons)
    us = us[numbers.start : numbers.stop]
    found = []
    for u, _, best in best_readouts(unfolding, task.stimuli, us, p.eta):
        z = unfolding.kernels(u, best.v).decision_values(task.X_test)
        found.append(
            {
                "kappa": best.value,
                "accuracy": (z * signs > 0).mean(),
                "plus": _histogram(p, z[signs > 0]),
                "minus": _histogram(p, z[signs < 0]),
            }
        )
    return found


def optimum(p: Parameters, ecg: BinarySplit, _: Any) -> dict:
    """The optimum, its terms over time (d), and the alternation towards one (c)."""
    task, unfolding = _task(p, ecg)
    stimuli = task.stimuli
    with expansion_judged_elsewhere():
        best = optimize(unfolding, stimuli, p.eta)
        rounds = optimize(
            unfolding if p.alternation_order else unfolding.linear, stimuli, p.eta,
            "alternating", n_starts=1, max_iter=p.n_rounds, tol=1e-12,
            rng=np.random.default_rng([p.network_seed, 2]),
        )  # fmt: skip
    # All times at once, with the projections that were optimised for the last one.
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
    """Panel (b): readout values of some test series, simulated and at O(α)."""
    task, unfolding = _task(p, ecg)
    X = task.X_test[numbers.start : numbers.stop]
    u, v = np.array(best["u"]), np.array(best["v"])
    y = simulate(unfolding.reservoir, X, u, unfolding.dt, rtol=p.simulation_rtol)
    return {"z": y @ v, "first_order": unfolding.kernels(u, v).decision_values(X)}


def compute(run: Run) -> dict:
    """All numbers of the figure."""
    p, ecg = run.parameters, run.ecg
    best = run.map("optimum", partial(optimum, p, ecg), [0])[0]
    parts = run.map(
        "random projections", partial(random_part, p, ecg), chunks(p.n_random, p.chunk)
    )
    drawn = [one for part in parts for one in part]
    signs = _task(p, ecg)[0].signs
    simulated = run.map(
        "simulation", partial(simulated_part, p, ecg, best), chunks(len(signs), 256)
    )
    z, close = (
        np.concatenate([part[key] for part in simulated]) for key in ("z", "first_order")
    )
    accuracies = np.array([one["accuracy"] for one in drawn])
    return {
        "edges": np.linspace(*p.bins),
        "random": {
            key: np.mean([one[key] for one in drawn], axis=0) for key in ("plus", "minus")
        },
        "best": drawn[int(accuracies.argmax())],
        "worst": drawn[int(accuracies.argmin())],
        "random_kappa": [one["kappa"] for one in drawn],
        "random_accuracy": accuracies,
        "optimised": {
            "plus": _histogram(p, z[signs > 0]),
            "minus": _histogram(p, z[signs < 0]),
            "accuracy": (z * signs > 0).mean(),
            "accuracy_first_order": (close * signs > 0).mean(),
            "state_error": np.abs(z - close).max() / np.abs(z).max(),
        },
        "optimum": best,
    }


def draw(numbers: dict, p: Parameters) -> Any:
    """The figure, from its numbers."""
    figure = look.sheet(9.6, 6.4)
    (a, b), (c, d) = figure.subplots(2, 2)
    b.sharex(a)
    _draw_histograms(a, b, numbers)
    _draw_terms(c, d, numbers["optimum"])
    return figure


def _draw_histograms(a: Any, b: Any, numbers: dict) -> None:
    edges, optimised = numbers["edges"], numbers["optimised"]
    classes = (("plus", look.CLASS_A, "///", r"$\zeta = +1$"),
               ("minus", look.CLASS_B, "", r"$\zeta = -1$"))  # fmt: skip
    for key, colour, hatch, label in classes:
        for axes, found in ((a, numbers["random"]), (b, optimised)):
            axes.stairs(found[key], edges, fill=True, color=colour, alpha=0.4,
                        hatch=hatch, label=label)  # fmt: skip
        a.stairs(numbers["best"][key], edges, color="0.6", lw=1.3)
        a.stairs(numbers["worst"][key], edges, color="0.1", lw=1.3)
        b.stairs(optimised[key], edges, color=colour, lw=1.2)
    a.plot([], [], color="0.6", label=f"best $u$, {numbers['best']['accuracy']:.1%}")
    a.plot([], [], color="0.1", label=f"worst $u$, {numbers['worst']['accuracy']:.1%}")
    look.letter(a, "a", r"random $u$, $\mathcal{O}(\alpha)$")
    look.letter(b, "b", f"solved $u$, simulated, {optimised['accuracy']:.1%}")
    for axes in (a, b):
        axes.axvline(0, color="k", lw=0.8, ls=":")
        axes.set(xlabel=r"state along the readout, $z = v^\mathsf{T} y(T)$ (a.u.)",
                 ylabel="density (1/a.u.)")  # fmt: skip
        axes.set_ylim(0, 1.32 * axes.dataLim.ymax)
        axes.legend(loc="upper center", ncols=2)
    filled = [np.array(f[k]) for f in (numbers["random"], optimised) for k in f
              if k in ("plus", "minus")]  # fmt: skip
    used = np.flatnonzero(np.sum(filled, axis=0) > 1e-3)
    a.set_xlim(edges[used[0]], edges[used[-1] + 1])


def _draw_terms(c: Any, d: Any, best: dict) -> None:
    history = np.array(best["history"])
    rounds = np.arange(len(history))
    panels = (
        (c, rounds, history[:, 0], history[:, 1], "o"),
        (d, np.array(best["times"]), best["separation"], best["variance"], ""),
    )
    for axes, x, separation, variance, mark in panels:
        separation, variance = np.array(separation), np.array(variance)
        axes.plot(x, separation, f"{mark}-", color=look.SOLVED, ms=4,
                  label=r"distance $v^\mathsf{T} M$")  # fmt: skip
        axes.plot(x, variance, f"{mark}--", color=look.SOLVED, ms=4,
                  label=r"covariance $\frac{\eta}{2} v^\mathsf{T}\Sigma v$")  # fmt: skip
        axes.fill_between(x, variance, separation, where=list(separation >= variance),
                          color="0.85", interpolate=True,
                          label=r"$\kappa_\eta > 0$")  # fmt: skip
    d.fill_between(panels[1][1], best["variance"], best["separation"],
                   where=list(np.less(best["separation"], best["variance"])),
                   facecolor="white", edgecolor="0.6", interpolate=True,
                   hatch="////", lw=0, label=r"$\kappa_\eta < 0$")  # fmt: skip
    look.letter(c, "c", "alternation from a random start")
    look.letter(d, "d", "solved $u$ and $v$ over time")
    c.set(xlabel="round of the alternation (1)", ylabel=r"term of $\kappa_\eta$ (a.u.)")
    c.set_ylim(0, None)
    d.set(xlabel=look.TIME, ylabel=r"term of $\kappa_\eta$ (a.u.)")
    c.legend(loc="lower right")
    d.legend(loc="upper left", ncols=2, columnspacing=1.0)


def summary(numbers: dict, p: Parameters) -> list[str]:
    """What the figure says, in a few lines."""
    drawn, optimised = 100 * np.array(numbers["random_accuracy"]), numbers["optimised"]
    best = numbers["optimum"]
    history = np.array(best["history"])
    positive = np.greater(best["separation"], best["variance"])
    late = best["times"][int(np.flatnonzero(~positive)[-1]) + 1] if not all(positive) else 0
    return [
        f"(a) random u: κ {np.mean(numbers['random_kappa']):.3f}, accuracy "
        f"{drawn.mean():.1f} % ({drawn.min():.1f}–{drawn.max():.1f} %)",
        f"(b) solved u: κ {best['kappa']:.3f}, accuracy {optimised['accuracy']:.1%} "
        f"simulated, {optimised['accuracy_first_order']:.1%} at O(α); readout values "
        f"differ by at most {optimised['state_error']:.1e} of the largest",
        f"(c) {len(history) - 1} rounds of alternation, order {p.alternation_order}, reach "
        f"{(history[-1, 0] - history[-1, 1]) / best['kappa']:.1%} of the solved κ "
        f"(the linear network's is proven to be at most {best['bound']:.3f})",
        f"(d) κ positive for the last time from t = {late:.2f} to T = {p.duration:g}",
    ]
