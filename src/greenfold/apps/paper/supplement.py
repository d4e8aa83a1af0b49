"""Supplement: dependence on η, α and g on ECG5000.

(a) Distance between the class means and spread along the readout, against η. (b) Accuracy
against η. (c) Gain in soft margin from the non-linearity, and the largest real part of the
eigenvalues of the linearised network (triangles, right axis). (d) Soft margin against the
spread *g* of the weights, for a readout at the end and for a readout of the mean over time.
The paper has no such figure; we chose all panels. All values are means over five networks;
bars are standard deviations. The dotted line marks the paper's η = 10.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import Unfolding, optimize
from ...datasets.downloads import BinarySplit
from ...math.margins import gaussian_soft_margin
from . import figures as look
from .figures import FigureRun, Heartbeats, OnHeartbeats, best_readouts, column


@dataclass(frozen=True)
class Parameters(OnHeartbeats):
    """Parameters of the supplement."""

    n_networks: int = 5
    n_random: int = 10
    alpha: float = 0.05
    etas: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    alphas: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
    gs: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
    tol: float = 1e-6


FULL = Parameters()
QUICK = replace(
    FULL, n_networks=2, n_random=3, etas=(1.0, 10.0, 100.0), alphas=(0.05, 0.2),
    gs=(0.3, 0.9), tol=1e-4,
)  # fmt: skip


def _random(
    p: Parameters,
    task: Heartbeats,
    unfolding: Unfolding,
    seed: int,
    eta: float,
    judged: bool = True,
) -> dict[str, float]:
    """Return means over random projections with their optimal readouts."""
    us = p.projections(p.n_random, seed, 1)
    rows = []
    for u, moments, best in best_readouts(unfolding, task.stimuli, us, eta):
        terms = gaussian_soft_margin(moments.M, moments.Sigma, best.v, eta)
        spread = np.sqrt(2 * terms.variance / eta)
        accuracy = task.accuracy(unfolding, u, best.v) if judged else np.nan
        rows.append((terms.value, terms.separation, spread, accuracy))
    names = ("kappa", "separation", "spread", "accuracy")
    return dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))


def over_eta(p: Parameters, ecg: BinarySplit, seed: int) -> list[dict]:
    """Return the terms of κ and the accuracy for every η, for the linear network."""
    task = Heartbeats(ecg, p.duration)
    unfolding = p.unfold(seed, *task.steps)
    found = []
    for eta in p.etas:
        best = optimize(unfolding, task.stimuli, eta)
        optimised = {
            "kappa": best.soft_margin,
            "separation": best.separation,
            "spread": np.sqrt(2 * best.variance / eta),
            "accuracy": task.accuracy(unfolding, best.u, best.v),
        }
        drawn = _random(p, task, unfolding, seed, eta)
        found.append({"gap": best.gap, "optimised": optimised, "random": drawn})
    return found


def over_alpha(p: Parameters, ecg: BinarySplit, item: tuple[int, float]) -> dict:
    """Return the gain of the non-linear over the linear network, and its validity."""
    seed, alpha = item
    task = Heartbeats(ecg, p.duration)
    unfolding = p.unfold(seed, *task.steps, alpha, p.tol)
    linear = optimize(unfolding.linear, task.stimuli, p.eta)
    with look.expansion_judged_elsewhere():
        best = optimize(unfolding, task.stimuli, p.eta)
    assert best.validity is not None
    drawn, before = (
        _random(p, task, one, seed, p.eta, judged=False)["kappa"]
        for one in (unfolding, unfolding.linear)
    )
    return {
        "alpha": alpha,
        "optimised": best.soft_margin - linear.soft_margin,
        "random": drawn - before,
        "accuracy": task.accuracy(unfolding, best.u, best.v)
        - task.accuracy(unfolding.linear, linear.u, linear.v),
        "largest_eigenvalue": best.validity.largest_eigenvalue,
        "next_order": best.validity.next_order,
        "trustworthy": best.validity.trustworthy,
    }


def over_g(p: Parameters, ecg: BinarySplit, item: tuple[int, float]) -> dict:
    """Return κ of a network with spread g, read at the end or averaged over time."""
    seed, g = item
    task = Heartbeats(ecg, p.duration)
    n_steps, dt = task.steps
    end = replace(p, g=g).unfold(seed, n_steps, dt)
    mean = end.with_readout(np.full(n_steps, 1 / n_steps))
    found: dict[str, Any] = {"g": g}
    for name, unfolding in (("end", end), ("integrated", mean)):
        best = optimize(unfolding, task.stimuli, p.eta)
        drawn = _random(p, task, unfolding, seed, p.eta)
        found[name] = {
            "optimised": best.soft_margin,
            "random": drawn["kappa"],
            "accuracy_optimised": task.accuracy(unfolding, best.u, best.v),
            "accuracy_random": drawn["accuracy"],
        }
    return found


def compute(run: FigureRun) -> dict:
    p, ecg = run.parameters, run.ecg
    seeds = range(p.n_networks)
    by_alpha = [(seed, alpha) for seed in seeds for alpha in p.alphas]
    by_g = [(seed, g) for seed in seeds for g in p.gs]
    return {
        "eta": run.map("η", over_eta, list(seeds), p, ecg),
        "alpha": run.map("α", over_alpha, by_alpha, p, ecg),
        "g": run.map("g", over_g, by_g, p, ecg),
    }


def _by_eta(numbers: dict, kind: str, key: str) -> np.ndarray:
    return np.array([column(row, kind, key) for row in numbers["eta"]])


def _by_value(
    rows: list[dict], key: str, values: Sequence[float], *path: str
) -> np.ndarray:
    """Return one column per value and one row per network."""
    chosen = [[row for row in rows if row[key] == value] for value in values]
    return np.array([column(some, *path) for some in chosen], dtype=float).T


def draw(numbers: dict, p: Parameters) -> Any:
    figure, ((a, b), (c, d)) = look.sheet(9.6, 6.6, 2, 2)
    for kind, colour in look.KINDS:
        for key, dash, label in (
            ("separation", "o-", r"distance $v^\mathsf{T}M$"),
            ("spread", "s--", r"spread $\sqrt{v^\mathsf{T}\Sigma v}$"),
        ):
            mean, which = _by_eta(numbers, kind, key).mean(0), f"{look.SHOWN[kind]} $u$"
            a.plot(p.etas, mean, dash, color=colour, ms=4, label=f"{label}, {which}")
        accuracy = _by_eta(numbers, kind, "accuracy")
        look.draw_means(b, p.etas, accuracy, "o-", colour, f"{look.SHOWN[kind]} $u$")
    for axes in (a, b):
        axes.set(xscale="log")
        axes.axvline(p.eta, color="0.6", lw=0.8, ls=":")
    a.set(yscale="log")
    look.plain_ticks(a.yaxis, (0.003, 0.01, 0.03, 0.1, 0.3, 1.0))
    x, y = r"control parameter $\eta$ (1/a.u.)", "distance, spread (a.u.)"
    look.panel(a, "a", r"larger $\eta$ narrows the clouds", x, y, "lower left")
    look.panel(b, "b", r"accuracy against $\eta$", x, look.ACCURACY, "best")
    for (kind, colour), dash in zip(look.KINDS, ("s-", "o-"), strict=True):
        gain = 1e3 * _by_value(numbers["alpha"], "alpha", p.alphas, kind)
        look.draw_means(c, p.alphas, gain, dash, colour, f"{look.SHOWN[kind]} $u$")
    eigen = _by_value(numbers["alpha"], "alpha", p.alphas, "largest_eigenvalue").mean(0)
    label = r"largest Re $\tilde\lambda_\alpha$, triangles"
    right = look.right_axis(c, label)
    right.plot(p.alphas, eigen, "^--", color="k", ms=4, lw=1.0)
    right.axhline(1.0, color="0.6", lw=0.8)
    right.text(0.5 * p.alphas[-1], 1.004, "unstable above", color="0.4", ha="center")
    right.set_ylim(min(eigen) - 0.02, max(1.0, *eigen) + 0.06)
    y = r"$\kappa_\eta$: non-linear minus linear ($10^{-3}$ a.u.)"
    labels = (r"non-linearity $\alpha$ (1/a.u.)", y, "upper left")
    look.panel(c, "c", "gain from the non-linearity, and its limit", *labels)
    ways = (("end", "o-", "read at $T$"), ("integrated", "s--", "mean over time"))
    for (kind, colour), (when, dash, label) in itertools.product(look.KINDS, ways):
        margins = _by_value(numbers["g"], "g", p.gs, when, kind)
        label = f"{look.SHOWN[kind]} $u$, {label}"
        look.draw_means(d, p.gs, margins, dash, colour, label)
    x = "spread of the weights $g$"
    look.panel(d, "d", "towards instability", x, look.MARGIN, "upper left")
    return figure


def summary(numbers: dict, p: Parameters) -> list[str]:
    best = _by_eta(numbers, "optimised", "accuracy").mean(0)
    drawn = _by_eta(numbers, "random", "accuracy").mean(0)
    spread = _by_eta(numbers, "optimised", "spread").mean(0)
    gain, trusted = (
        _by_value(numbers["alpha"], "alpha", p.alphas[-1:], key).mean()
        for key in ("optimised", "trustworthy")
    )
    end, mean = (
        _by_value(numbers["g"], "g", p.gs[-1:], when, "optimised").mean()
        for when in ("end", "integrated")
    )
    return [
        f"(a) spread along the readout for solved u: {spread[0]:.3f} at η = "
        f"{p.etas[0]:g}, {spread[-1]:.3f} at η = {p.etas[-1]:g}",
        f"(b) highest accuracy: random u {drawn.max():.1f} % at η = "
        f"{p.etas[int(drawn.argmax())]:g}, solved u {best.max():.1f} % at η = "
        f"{p.etas[int(best.argmax())]:g}",
        f"(c) at α = {p.alphas[-1]:g}, the non-linearity changes κ by {gain:+.4f}, and the "
        f"expansion is trustworthy in {trusted:.0%} of the networks",
        f"(d) κ for solved u at g = {p.gs[-1]:g}: {end:.3f} with a readout at T, "
        f"{mean:.3f} with a readout of the mean over time",
    ]
