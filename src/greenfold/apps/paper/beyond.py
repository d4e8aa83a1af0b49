"""Beyond the paper: the certificate, where solving for u pays, and the true network.

Readout noise is what a physical reservoir has to live with. Independent Gaussian noise of
standard deviation σ on every neuron is noise of standard deviation σ along any unit
readout, so that the expected accuracy is known in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.model_selection import StratifiedKFold

from ...datasets.archive import BinarySplit
from ...optimizers.linear import LinearProblem
from ...optimizers.run import optimize
from ...stimuli.gaussian import GaussianStimuli
from ...stimuli.samples import SampleStimuli
from ...unfolding.unfolding import Unfolding, unfold
from . import style as look
from .run import Run
from .setting import network, unit_vectors
from .true_network import ROWS, compared

TITLE = "Beyond the paper: certificates, readout noise, and the true network"
NEEDS_ECG = True
#: For the page of the documentation, in Markdown.
CAPTION = """
(a) How far the solved soft margin, and the paper's alternation, end below the proven
upper bound, one mark a network; below the dotted line (0.1 %) an optimum counts as
certified. (b–d) Expected accuracy on ECG5000 where every neuron is read with independent
Gaussian noise of standard deviation σ, for networks of *N* neurons; η is cross-validated
for each projection and σ. (e–h) Soft margin on the network as it is, integrated and not
expanded, one mark a network, on draws that no fit has seen: *u* drawn, solved for the
linear network or to first order, and climbed through the network itself (`Dynamics`). A
biased tanh saturates; the quadratic gain is the paper's. Numbers at the left edge are
means of what lies beyond it.
"""


@dataclass(frozen=True)
class Parameters:
    """What these figures are made with."""

    g: float = 0.9
    tau: float = 0.25
    eta: float = 10.0
    duration: float = 10.0
    n_certified: int = 20
    """(a) Networks that are certified, on ECG5000 and on each artificial ‖μ‖."""
    strengths: tuple[float, ...] = (0.19, 1.0)
    n_rounds: int = 30
    """(a) Rounds of the paper's alternation to compare with, from one random start."""
    sizes: tuple[int, ...] = (5, 20, 100)
    """(b) Neurons N."""
    noises: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3)
    """(b) σ of the readout noise."""
    etas: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    """(b) Grid that η is cross-validated on, for each projection and σ."""
    n_folds: int = 5
    n_networks: int = 10
    n_random: int = 10
    gains: tuple[str, ...] = ("biased tanh", "quadratic")
    """Last panels: gains of networks whose projections are judged as they are."""
    n_true: int = 5
    n_draws: int = 10_000
    """Series of each class that are fitted there, and as many that judge."""
    true_neurons: int = 100
    true_starts: int = 4


FULL = Parameters()
QUICK = replace(
    FULL, n_certified=3, sizes=(5, 100), etas=(3.0, 30.0, 300.0), n_folds=3,
    n_networks=2, n_random=2, gains=("biased tanh",), n_true=1, n_draws=500,
    true_neurons=20, true_starts=2,
)  # fmt: skip


def certificate(p: Parameters, ecg: BinarySplit, item: tuple[int, float]) -> dict:
    """One network: the optimum, its bound, and how far alternation gets.

    The item is the seed and ‖μ‖ of artificial stimuli, zero for ECG5000.
    """
    seed, strength = item
    reservoir = network(seed, 100, p.g, p.tau)
    if strength:
        stimuli = GaussianStimuli.random(
            10, strength=strength, rng=np.random.default_rng([seed, 2])
        )
        unfolding = unfold(reservoir, n_steps=10, dt=p.duration / 10)
    else:
        stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
        unfolding = unfold(
            reservoir, n_steps=stimuli.n_steps, dt=p.duration / stimuli.n_steps
        )
    best: Any = optimize(unfolding, stimuli, p.eta)
    rounds = optimize(
        unfolding, stimuli, p.eta, "alternating", n_starts=1, max_iter=p.n_rounds,
        tol=1e-12, rng=np.random.default_rng([seed, 3]),
    )  # fmt: skip
    return {
        "seed": seed,
        "strength": strength,
        "kappa": best.soft_margin,
        "bound": best.upper_bound,
        "gap": max(best.gap, 0.0),
        "status": best.status,
        "n_decompositions": best.n_iter,
        "alternation_below_bound": 1 - rounds.soft_margin / best.upper_bound,
    }


def _accuracies(p: Parameters, z: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Expected accuracy for every σ; z (..., n_cases) → (..., n_noises)."""
    right = signs * z
    columns = [
        (right > 0).mean(-1) if sigma == 0 else ndtr(right / sigma).mean(-1)
        for sigma in p.noises
    ]
    return np.stack(columns, axis=-1)


def _kernels(
    p: Parameters, unfolding: Unfolding, stimuli: SampleStimuli, u: np.ndarray | None
) -> np.ndarray:
    """Kernel for every η, (n_etas, n_steps); with u None it is optimised too."""
    if u is None:
        found = [optimize(unfolding, stimuli, eta, tol=1e-3) for eta in p.etas]
        return np.array([unfolding.readout_response(one.v) @ one.u for one in found])
    return (
        LinearProblem(unfolding.maps, stimuli, 1.0).kernels(u[:, None], np.array(p.etas)).T
    )


def noisy_accuracy(p: Parameters, ecg: BinarySplit, item: tuple[int, int]) -> dict:
    """One network: test accuracy at every σ, η chosen by cross-validation for each."""
    seed, n_neurons = item
    n_steps = ecg.X_train.shape[1]
    unfolding = unfold(
        network(seed, n_neurons, p.g, p.tau), n_steps=n_steps, dt=p.duration / n_steps
    )
    drawn = unit_vectors(np.random.default_rng([seed, 4]), p.n_random, n_neurons)
    projections: list[np.ndarray | None] = [None, *drawn]
    folds = StratifiedKFold(p.n_folds, shuffle=True, random_state=seed)
    inner = np.zeros((len(projections), len(p.etas), len(p.noises)))
    for train, held_out in folds.split(ecg.X_train, ecg.y_train):
        part = SampleStimuli(ecg.X_train[train], ecg.y_train[train])
        X, signs = part.transform(ecg.X_train[held_out]), ecg.y_train[held_out]
        for row, u in zip(inner, projections, strict=True):
            row += _accuracies(p, _kernels(p, unfolding, part, u) @ X.T, signs)
    stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
    X = stimuli.transform(ecg.X_test)
    accuracy, chosen = [], []
    for row, u in zip(inner, projections, strict=True):
        scores = _accuracies(p, _kernels(p, unfolding, stimuli, u) @ X.T, ecg.y_test)
        best = row.argmax(0)  # of equals, the smallest η
        accuracy.append(100 * scores[best, np.arange(len(p.noises))])
        chosen.append(np.array(p.etas)[best])
    return {
        "seed": seed,
        "n_neurons": n_neurons,
        "optimised": accuracy[0],
        "random": accuracy[1:],
        "eta_optimised": chosen[0],
        "eta_random": chosen[1:],
    }


def on_true_network(p: Parameters, item: tuple[str, float, int]) -> dict:
    """One network, gain and ‖μ‖: κ of several projections on the network itself."""
    gain, strength, seed = item
    return compared(
        seed,
        strength,
        gain,
        n_neurons=p.true_neurons,
        n_draws=p.n_draws,
        n_fresh=p.n_draws,
        n_starts=p.true_starts,
        eta=p.eta,
    )


def compute(run: Run) -> dict:
    """All numbers of the figure."""
    p, ecg = run.parameters, run.ecg
    true = [
        (gain, strength, seed)
        for gain in p.gains
        for strength in p.strengths
        for seed in range(p.n_true)
    ]
    seeds = range(p.n_certified)
    kinds = [(seed, strength) for strength in (0.0, *p.strengths) for seed in seeds]
    # The large networks first: they take longest.
    items = [(s, n) for n in sorted(p.sizes, reverse=True) for s in range(p.n_networks)]
    return {
        "certificates": run.map("certificates", partial(certificate, p, ecg), kinds),
        "noise": run.map("readout noise", partial(noisy_accuracy, p, ecg), items),
        "true": run.map("the true network", partial(on_true_network, p), true),
    }


def _gain(rows: list[dict], size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Accuracy of random and of solved u, (n_networks, n_noises), and the gain."""
    mine = [row for row in rows if row["n_neurons"] == size]
    drawn = np.array([np.mean(row["random"], axis=0) for row in mine])
    best = np.array([row["optimised"] for row in mine])
    return drawn, best, best - drawn


def draw(numbers: dict, p: Parameters) -> Any:
    """The figure, from its numbers."""
    width = 2.6 * (len(p.sizes) + 1.4)
    # A record made before the true networks were looked at has the first row only.
    judged = numbers.get("true")
    figure = look.sheet(width, 7.0 if judged else 3.6)
    halves: Any = figure.subfigures(2, 1) if judged else (figure, None)
    above, below = halves
    ratios = (1.4, *np.ones(len(p.sizes)))
    first, *others = above.subplots(1, len(p.sizes) + 1, width_ratios=ratios)
    _draw_certificates(first, numbers["certificates"], p)
    _draw_noise(others, numbers["noise"], p)
    if below is None:
        return figure
    kinds = [(gain, strength) for gain in p.gains for strength in p.strengths]
    panels = np.atleast_1d(below.subplots(1, len(kinds)))
    letters = "bcdefghijk"[len(p.sizes) :]
    for axes, kind, name in zip(panels, kinds, letters, strict=False):
        _draw_true(axes, name, kind, numbers["true"])
        if axes is not panels[0]:
            axes.set_yticklabels([])
    return figure


def _draw_true(axes: Any, name: str, kind: tuple[str, float], rows: list[dict]) -> None:
    """κ on fresh draws of each projection, one line a network.

    The linear optimum as it is may lie far below zero, where a mark at the edge and the
    mean stand for it.
    """
    gain, strength = kind
    look.letter(axes, name, rf"{gain}, $\|\mu\| = {strength:g}$")
    mine = [row["rows"] for row in rows if (row["gain"], row["strength"]) == kind]
    places = np.arange(len(ROWS))[::-1]
    kappa = np.array([[row[key]["soft_margin"] for key in ROWS] for row in mine])
    error = np.array([[row[key]["error"] for key in ROWS] for row in mine])
    top = float(kappa.max())
    edge = -0.25 * top
    inside = kappa > edge
    for values, errors, seen in zip(kappa, error, inside, strict=True):
        axes.errorbar(values[seen], places[seen], xerr=2 * errors[seen], fmt="o",
                      color=look.NEUTRAL, ms=3, capsize=2, lw=0.8)  # fmt: skip
        axes.plot(values[0], places[0], "s", color=look.RANDOM, ms=4, zorder=3)
        axes.plot(values[-1], places[-1], "o", color=look.SOLVED, ms=5, zorder=3)
    for column, place in enumerate(places):
        if not inside[:, column].all():
            axes.plot(0.92 * edge, place, "<", color=look.NEUTRAL, ms=5)
            mean = kappa[~inside[:, column], column].mean()
            shown = f"{mean:.2g}".replace("-", "−")
            axes.annotate(shown, (0.8 * edge, place), va="center", size="small")
    axes.axvline(0, color="k", lw=0.6, ls=":")
    axes.set_xlim(edge, 1.15 * top)
    axes.locator_params(axis="x", nbins=4)
    axes.set_yticks(places, [key.replace(", readout", ",\n") for key in ROWS])
    axes.ticklabel_format(axis="x", style="plain")  # a factor would lie on the label
    axes.set_xlabel(r"soft margin $\kappa$, fresh draws")


def _draw_certificates(axes: Any, rows: list[dict], p: Parameters) -> None:
    look.letter(axes, "a", "below the proven bound")
    rng = np.random.default_rng(0)
    kinds = (0.0, *p.strengths)
    floor = 1e-6
    for place, strength in enumerate(kinds):
        mine = [row for row in rows if row["strength"] == strength]
        for shift, key, colour, mark in (
            (-0.17, "gap", look.SOLVED, "o"),
            (0.17, "alternation_below_bound", look.NEUTRAL, "s"),
        ):
            values = np.maximum([row[key] for row in mine], floor)
            x = place + shift + 0.06 * rng.uniform(-1, 1, len(values))
            rounds = f"{p.n_rounds} rounds of alternation"
            label = "solved $u$" if key == "gap" else rounds
            axes.plot(x, 100 * values, mark, color=colour, ms=4, mfc="none", mew=0.9,
                      label=None if place else label)  # fmt: skip
    axes.axhline(100 * 1e-3, color=look.BOUND, lw=0.8, ls=":")
    axes.annotate("0.1 %", (0.01, 100 * 1e-3), (0, 2), va="bottom",
                  xycoords=("axes fraction", "data"), textcoords="offset points",
                  fontsize=7, color=look.NEUTRAL)  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(100 * floor / 2, 60)
    ticks = [10.0**k for k in range(-4, 2)]
    shown = [r"$\leq 10^{-4}$", *(f"$10^{{{k}}}$" for k in range(-3, 2))]
    axes.set_yticks(ticks, shown)
    axes.set_xticks(
        range(len(kinds)),
        ["ECG5000", *(rf"$\|\mu\| = {strength:g}$" for strength in p.strengths)],
    )
    axes.set_ylabel("distance to the upper bound (%)")
    # Below the axis: every height of the panel has points somewhere.
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.1), ncols=2,
                columnspacing=0.8, handletextpad=0.1)  # fmt: skip


def _draw_noise(panels: list[Any], rows: list[dict], p: Parameters) -> None:
    x = np.arange(len(p.noises))
    for axes, size, name in zip(panels, p.sizes, "bcdefg", strict=False):
        drawn, best, _ = _gain(rows, size)
        look.letter(axes, name, f"$N = {size}$")
        for values, colour, mark, label in (
            (drawn, look.RANDOM, "s--", "random $u$"),
            (best, look.SOLVED, "o-", "solved $u$"),
        ):
            axes.errorbar(x, values.mean(0), values.std(0), fmt=mark, color=colour, ms=4,
                          capsize=2, label=label)  # fmt: skip
        axes.set_xticks(x, [f"{sigma:g}" for sigma in p.noises])
        axes.set_xlabel(r"readout noise $\sigma$ (a.u.)")
        axes.sharey(panels[0])
    panels[0].set_ylabel("accuracy on 4332 test series (%)")
    panels[0].legend(loc="lower left")


def summary(numbers: dict, p: Parameters) -> list[str]:
    """Where it pays and where it does not, said plainly."""
    lines = []
    for strength in (0.0, *p.strengths):
        mine = [row for row in numbers["certificates"] if row["strength"] == strength]
        below = [row["alternation_below_bound"] for row in mine]
        gaps = [row["gap"] for row in mine]
        name = f"‖μ‖ = {strength:g}" if strength else "ECG5000"
        lines.append(
            f"(a) {name}: {np.mean(np.less_equal(gaps, 1e-3)):.0%} of {len(mine)} networks "
            f"certified to 0.1 %, largest gap {max(gaps):.2%}; {p.n_rounds} rounds of "
            f"alternation end {np.median(below):.2%} (median) to {max(below):.2%} below "
            "the bound"
        )
    for size, panel in zip(p.sizes, "bcdefg", strict=False):
        drawn, best, gain = _gain(numbers["noise"], size)
        lines.append(f"({panel}) N = {size}, random → solved u:")
        for i, sigma in enumerate(p.noises):
            error = gain[:, i].std() / np.sqrt(max(len(gain) - 1, 1))
            lines.append(
                f"    σ = {sigma:g}: {drawn[:, i].mean():.1f} → {best[:, i].mean():.1f} % "
                f"({gain[:, i].mean():+.1f} ± {error:.1f}, {_verdict(gain[:, i], error)})"
            )
    letters = "bcdefghijk"[len(p.sizes) :]
    kinds = [(gain, strength) for gain in p.gains for strength in p.strengths]
    for panel, kind in zip(letters, kinds if "true" in numbers else (), strict=False):
        gain, strength = kind
        lines.append(
            f"({panel}) {gain}, ‖μ‖ = {strength:g}, κ on the true network, one number a "
            "network, and the mean accuracy:"
        )
        lines += _true_lines(kind, numbers["true"])
    return lines


def _true_lines(kind: tuple[str, float], rows: list[dict]) -> list[str]:
    mine = [row for row in rows if (row["gain"], row["strength"]) == kind]
    lines = []
    for name in ROWS:
        found = [row["rows"][name] for row in mine]
        kappas = ", ".join(f"{one['soft_margin']:.4f}" for one in found)
        lost = max(one["diverged"] for one in found)
        lines.append(
            f"    {name}: {kappas.replace('-', '−')}; "
            f"{100 * np.mean([one['accuracy'] for one in found]):.1f} %"
            + (f"; up to {lost:.2%} of the draws diverge" if lost else "")
        )
    return lines


def _verdict(gain: np.ndarray, error: float) -> str:
    """In words: a gain counts from half a per cent and two standard errors on."""
    mean = float(gain.mean())
    if abs(mean) < 0.5:
        return "no difference that matters"
    if abs(mean) < 2 * error:
        return "not resolved"
    return "pays" if mean > 0 else "does harm"
