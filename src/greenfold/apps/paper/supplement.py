"""Supplement: ECG5000 against η and α, and what the paper only mentions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...datasets.archive import BinarySplit
from ...math.margins import gaussian_soft_margin
from ...math.sphere import maximize_on_sphere
from ...optimizers.run import optimize
from ...stimuli.base import Stimuli
from ...stimuli.samples import SampleStimuli
from ...unfolding.unfolding import Unfolding, unfold
from . import style as look
from .run import Run
from .setting import expansion_judged_elsewhere, network, unit_vectors

TITLE = "Supplement: dependence on η, α and g on ECG5000"
NEEDS_ECG = True
#: For the page of the documentation, in Markdown.
CAPTION = """
(a) Distance of the clouds and spread along the readout against η, which the paper mentions
but does not show. (b) Accuracy against η, (c) what the non-linearity adds to the soft
margin, with the largest real part of the eigenvalues of the linearised network (triangles,
right), and (d) the soft margin against the spread *g* of the weights, read at the end or
as the mean over time: these three panels are our choice, to show what the paper's text
says in words or leaves open. Means over five networks, bars are standard deviations; the
dotted line marks the paper's η = 10.
"""


@dataclass(frozen=True)
class Parameters:
    """What the supplement is made with."""

    n_networks: int = 5
    n_random: int = 10
    n_neurons: int = 100
    g: float = 0.9
    tau: float = 0.25
    eta: float = 10.0
    alpha: float = 0.05
    duration: float = 10.0
    etas: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    alphas: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
    gs: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
    tol: float = 1e-6


FULL = Parameters()
QUICK = replace(
    FULL, n_networks=2, n_random=3, etas=(1.0, 10.0, 100.0), alphas=(0.05, 0.2),
    gs=(0.3, 0.9), tol=1e-4,
)  # fmt: skip


def _unfolding(p: Parameters, seed: int, n_steps: int, **change: Any) -> Unfolding:
    values = {"g": p.g, "tau": p.tau, "alpha": 0.0} | change
    reservoir = network(seed, p.n_neurons, **values)
    order = 1 if values["alpha"] else 0
    return unfold(reservoir, n_steps=n_steps, dt=p.duration / n_steps, order=order,
                  tol=p.tol)  # fmt: skip


def _random(p: Parameters, unfolding: Unfolding, stimuli: Stimuli, seed: int, eta: float):
    """Random projections with their optimal readout and soft margin."""
    moments_at = stimuli.moment_map(unfolding)
    rng = np.random.default_rng([seed, 1])
    for u in unit_vectors(rng, p.n_random, p.n_neurons):
        moments = moments_at(u[:, None])
        v = maximize_on_sphere(moments.M, eta * moments.Sigma).v
        yield u, v, gaussian_soft_margin(moments.M, moments.Sigma, v, eta)


def _accuracy(unfolding: Unfolding, u: Any, v: Any, X: np.ndarray, signs: Any) -> float:
    return 100 * float((unfolding.kernels(u, v).decision_values(X) * signs > 0).mean())


def over_eta(p: Parameters, ecg: BinarySplit, seed: int) -> list[dict]:
    """Terms of κ and accuracy for every η; the linear network."""
    stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
    X, signs = stimuli.transform(ecg.X_test), ecg.y_test
    unfolding = _unfolding(p, seed, stimuli.n_steps)
    found = []
    for eta in p.etas:
        best = optimize(unfolding, stimuli, eta)
        drawn = list(_random(p, unfolding, stimuli, seed, eta))
        found.append(
            {
                "gap": best.gap,
                "optimised": {
                    "kappa": best.soft_margin,
                    "separation": best.separation,
                    "spread": np.sqrt(2 * best.variance / eta),
                    "accuracy": _accuracy(unfolding, best.u, best.v, X, signs),
                },
                "random": {
                    "kappa": np.mean([m.value for *_, m in drawn]),
                    "separation": np.mean([m.separation for *_, m in drawn]),
                    "spread": np.mean([np.sqrt(2 * m.variance / eta) for *_, m in drawn]),
                    "accuracy": np.mean(
                        [_accuracy(unfolding, u, v, X, signs) for u, v, _ in drawn]
                    ),
                },
            }
        )
    return found


def over_alpha(p: Parameters, ecg: BinarySplit, item: tuple[int, float]) -> dict:
    """Gain of the non-linear over the linear network, and its validity."""
    seed, alpha = item
    stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
    X, signs = stimuli.transform(ecg.X_test), ecg.y_test
    unfolding = _unfolding(p, seed, stimuli.n_steps, alpha=alpha)
    linear = optimize(unfolding.linear, stimuli, p.eta)
    with expansion_judged_elsewhere():
        best = optimize(unfolding, stimuli, p.eta)
    assert best.validity is not None
    kinds = (unfolding, unfolding.linear)
    drawn, before = (
        [m.value for *_, m in _random(p, one, stimuli, seed, p.eta)] for one in kinds
    )
    return {
        "alpha": alpha,
        "optimised": best.soft_margin - linear.soft_margin,
        "random": np.mean(drawn) - np.mean(before),
        "accuracy": _accuracy(unfolding, best.u, best.v, X, signs)
        - _accuracy(unfolding.linear, linear.u, linear.v, X, signs),
        "largest_eigenvalue": best.validity.largest_eigenvalue,
        "next_order": best.validity.next_order,
        "trustworthy": best.validity.trustworthy,
    }


def over_g(p: Parameters, ecg: BinarySplit, item: tuple[int, float]) -> dict:
    """Networks nearer to instability, read at the end or integrated over time.

    The weights of a time-integrated readout are 1/K each: the mean state.
    """
    seed, g = item
    stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
    X, signs = stimuli.transform(ecg.X_test), ecg.y_test
    end = _unfolding(p, seed, stimuli.n_steps, g=g)
    mean = end.with_readout(np.full(stimuli.n_steps, 1 / stimuli.n_steps))
    found: dict[str, Any] = {"g": g}
    for name, unfolding in (("end", end), ("integrated", mean)):
        best = optimize(unfolding, stimuli, p.eta)
        drawn = list(_random(p, unfolding, stimuli, seed, p.eta))
        found[name] = {
            "optimised": best.soft_margin,
            "random": np.mean([m.value for *_, m in drawn]),
            "accuracy_optimised": _accuracy(unfolding, best.u, best.v, X, signs),
            "accuracy_random": np.mean(
                [_accuracy(unfolding, u, v, X, signs) for u, v, _ in drawn]
            ),
        }
    return found


def compute(run: Run) -> dict:
    """All numbers of the figure."""
    p, ecg = run.parameters, run.ecg
    seeds = range(p.n_networks)
    by_alpha = [(seed, alpha) for seed in seeds for alpha in p.alphas]
    by_g = [(seed, g) for seed in seeds for g in p.gs]
    return {
        "eta": run.map("η", partial(over_eta, p, ecg), list(seeds)),
        "alpha": run.map("α", partial(over_alpha, p, ecg), by_alpha),
        "g": run.map("g", partial(over_g, p, ecg), by_g),
    }


def _by_eta(numbers: dict, kind: str, key: str) -> np.ndarray:
    return np.array([[one[kind][key] for one in row] for row in numbers["eta"]])


def _by_value(rows: list[dict], key: str, value: float, *path: str) -> np.ndarray:
    chosen: list[Any] = [row for row in rows if row[key] == value]
    for name in path:
        chosen = [one[name] for one in chosen]
    return np.array(chosen, dtype=float)


def draw(numbers: dict, p: Parameters) -> Any:
    """The figure, from its numbers."""
    figure = look.sheet(9.6, 6.6)
    (a, b), (c, d) = figure.subplots(2, 2)
    _draw_eta(a, b, numbers, p)
    _draw_alpha(c, numbers["alpha"], p)
    _draw_g(d, numbers["g"], p)
    return figure


def _draw_eta(a: Any, b: Any, numbers: dict, p: Parameters) -> None:
    kinds = (("random", look.RANDOM), ("optimised", look.SOLVED))
    for kind, colour in kinds:
        for key, dash, label in (
            ("separation", "o-", r"distance $v^\mathsf{T}M$"),
            ("spread", "s--", r"spread $\sqrt{v^\mathsf{T}\Sigma v}$"),
        ):
            mean = _by_eta(numbers, kind, key).mean(0)
            a.plot(p.etas, mean, dash, color=colour, ms=4,
                   label=f"{label}, {look.SHOWN[kind]} $u$")  # fmt: skip
        values = _by_eta(numbers, kind, "accuracy")
        b.errorbar(p.etas, values.mean(0), values.std(0), fmt="o-", color=colour, ms=4,
                   capsize=2, label=f"{look.SHOWN[kind]} $u$")  # fmt: skip
    for axes in (a, b):
        axes.set(xscale="log", xlabel=r"control parameter $\eta$ (1/a.u.)")
        axes.axvline(p.eta, color="0.6", lw=0.8, ls=":")
    look.letter(a, "a", r"larger $\eta$ narrows the clouds")
    look.letter(b, "b", r"accuracy against $\eta$")
    a.set(yscale="log", ylabel="distance, spread (a.u.)")
    ticks = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    low, high = a.get_ylim()
    a.set_yticks([t for t in ticks if low < t < high])
    a.set_yticklabels([f"{t:g}" for t in ticks if low < t < high])
    a.set_yticks([], minor=True)
    a.legend(loc="lower left")
    b.set_ylabel("accuracy on 4332 test series (%)")
    b.legend(loc="best")


def _draw_alpha(axes: Any, rows: list[dict], p: Parameters) -> None:
    look.letter(axes, "c", "gain of the non-linearity, and its limits")
    for key, colour, mark in (
        ("random", look.RANDOM, "s"),
        ("optimised", look.SOLVED, "o"),
    ):
        values = [1e3 * _by_value(rows, "alpha", alpha, key) for alpha in p.alphas]
        axes.errorbar(p.alphas, np.mean(values, axis=1), np.std(values, axis=1),
                      fmt=f"{mark}-", color=colour, ms=4, capsize=2,
                      label=f"{look.SHOWN[key]} $u$")  # fmt: skip
    eigen = [_by_value(rows, "alpha", a, "largest_eigenvalue").mean() for a in p.alphas]
    right = axes.twinx()
    right.plot(p.alphas, eigen, "^--", color="k", ms=4, lw=1.0)
    right.axhline(1.0, color="0.6", lw=0.8)
    right.text(0.5 * p.alphas[-1], 1.004, "unstable above", color="0.4", ha="center")
    right.set_ylim(min(eigen) - 0.02, max(1.0, *eigen) + 0.06)
    right.set_ylabel(r"largest Re $\tilde\lambda_\alpha$ (1), black triangles")
    right.spines["right"].set_visible(True)
    right.grid(False)
    axes.set(
        xlabel=r"non-linearity $\alpha$ (1/a.u.)",
        ylabel=r"$\kappa_\eta$: non-linear minus linear ($10^{-3}$ a.u.)",
    )
    axes.legend(loc="upper left")


def _draw_g(axes: Any, rows: list[dict], p: Parameters) -> None:
    look.letter(axes, "d", "towards instability")
    for kind, colour in (("random", look.RANDOM), ("optimised", look.SOLVED)):
        for when, dash in (("end", "o-"), ("integrated", "s--")):
            values = [_by_value(rows, "g", g, when, kind) for g in p.gs]
            label = {"end": "read at $T$", "integrated": "mean over time"}[when]
            axes.errorbar(p.gs, np.mean(values, axis=1), np.std(values, axis=1), fmt=dash,
                          color=colour, ms=4, capsize=2,
                          label=f"{look.SHOWN[kind]} $u$, {label}")  # fmt: skip
    axes.set(xlabel="spread of the weights $g$ (1)", ylabel=look.MARGIN)
    axes.legend(loc="upper left")


def summary(numbers: dict, p: Parameters) -> list[str]:
    """What the figure says, in a few lines."""
    best = _by_eta(numbers, "optimised", "accuracy").mean(0)
    drawn = _by_eta(numbers, "random", "accuracy").mean(0)
    spread = _by_eta(numbers, "optimised", "spread").mean(0)
    trusted = {
        alpha: _by_value(numbers["alpha"], "alpha", alpha, "trustworthy").mean()
        for alpha in p.alphas
    }
    gain = [_by_value(numbers["alpha"], "alpha", a, "optimised").mean() for a in p.alphas]
    high = p.gs[-1]
    end, mean = (
        _by_value(numbers["g"], "g", high, when, "optimised").mean()
        for when in ("end", "integrated")
    )
    return [
        f"(a) spread along the readout of the solved u: {spread[0]:.3f} at η = "
        f"{p.etas[0]:g}, {spread[-1]:.3f} at η = {p.etas[-1]:g}",
        f"(b) best accuracy: random u {drawn.max():.1f} % at η = "
        f"{p.etas[int(drawn.argmax())]:g}, solved u {best.max():.1f} % at η = "
        f"{p.etas[int(best.argmax())]:g}",
        f"(c) gain of κ at α = {p.alphas[-1]:g}: {gain[-1]:+.4f}; expansion trustworthy in "
        f"{trusted[p.alphas[-1]]:.0%} of the networks there",
        f"(d) κ of the solved u at g = {high:g}: {end:.3f} read at T, {mean:.3f} for the "
        "mean state",
    ]
