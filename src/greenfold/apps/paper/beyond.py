"""Beyond the paper: certificates, readout noise and simulated networks.

(a) How far the solved *u* and the paper's alternation stay below the proven upper bound.
Each mark is one network; below the dotted line (0.1 %), an optimum counts as certified.
(b–d) Expected accuracy on ECG5000 for networks of *N* neurons, with independent Gaussian
readout noise of standard deviation σ on every neuron; η is cross-validated for each
projection and each σ. (e–h) Soft margin on the simulated network, which is integrated
rather than approximated by an expansion. Each mark is one network, judged on new draws that
were not used for fitting. The rows are: a random *u* with its readout *v* refitted to the
simulated network; the *u* and *v* solved for the linear network; the same *u* with *v*
refitted; the *u* solved to first order with *v* refitted; and *u* and *v* optimised
directly on the simulated network (`Dynamics`). The networks have either a biased tanh gain,
which saturates, or the paper's quadratic gain. A number at the left edge is the mean of the
values that are too low to show.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.model_selection import StratifiedKFold

import greenfold as gf

from ...datasets.downloads import BinarySplit
from ...math.margins import gaussian_soft_margin, state_moments
from ...math.sphere import maximize_on_sphere
from ...optimizers.linear import LinearProblem
from ..style import BOUND
from . import figures as look
from .figures import RANDOM, SOLVED, FigureRun, Heartbeats, OnHeartbeats, column


@dataclass(frozen=True)
class Parameters(OnHeartbeats):
    """Parameters of the figures beyond the paper."""

    #: (a) Number of networks to certify, on ECG5000 and for each artificial ‖μ‖.
    n_certified: int = 20
    strengths: tuple[float, ...] = (0.19, 1.0)
    #: (a) Rounds of the paper's alternation to compare with, from one random start.
    n_rounds: int = 30
    sizes: tuple[int, ...] = (5, 20, 100)  # (b) Neurons N
    noises: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3)  # (b) σ of the readout noise
    #: (b) Grid for the cross-validation of η, for each projection and σ.
    etas: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    n_folds: int = 5
    n_networks: int = 10
    n_random: int = 10
    #: Last panels: gains of the true networks on which projections are compared.
    gains: tuple[str, ...] = ("biased tanh", "quadratic")
    n_true: int = 5
    #: Number of series per class for fitting, and again for judging.
    n_draws: int = 10_000
    true_neurons: int = 100
    true_starts: int | None = 4


FULL = Parameters()
QUICK = replace(
    FULL, n_certified=3, sizes=(5, 100), etas=(3.0, 30.0, 300.0), n_folds=3,
    n_networks=2, n_random=2, gains=("biased tanh",), n_true=1, n_draws=500,
    true_neurons=20, true_starts=3,
)  # fmt: skip

GAINS = {"biased tanh": gf.Gain.biased_tanh(0.5), "quadratic": gf.Gain.quadratic(0.05)}
#: Projections on the true network, and whether their readout is refitted there.
ROWS = (
    "random u, readout refitted",
    "linear optimum as it is",
    "linear u, readout refitted",
    "order-1 u, readout refitted",
    "Dynamics",
)
_LETTERS = "bcdefghijk"  # of the panels after the first
#: Tolerated error of the states of the true network, and number of draws per class that are
#: simulated to check it.
_TOL, _N_SIMULATED = 1e-4, 25


def _shown(row: str) -> str:
    return row.replace(" as it is", ", readout unchanged")


def certificate(p: Parameters, ecg: BinarySplit, item: tuple[int, float]) -> dict:
    """Return optimum, bound and alternation for one network; ‖μ‖ = 0 means ECG5000."""
    seed, strength = item
    if strength:
        rng = np.random.default_rng([seed, 2])
        stimuli = gf.GaussianStimuli.random(10, strength=strength, rng=rng)
    else:
        stimuli = gf.SampleStimuli(ecg.X_train, ecg.y_train)
    unfolding = p.unfold(seed, stimuli.n_steps, p.duration / stimuli.n_steps)
    best: Any = gf.optimize(unfolding, stimuli, p.eta)
    rounds = look.alternation(unfolding, stimuli, p.eta, p.n_rounds, seed, 3)
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
    """Return the expected accuracy for every σ along a unit readout; z (..., n_cases)."""
    right = signs * z
    chances = (ndtr(right / sigma) if sigma else right > 0 for sigma in p.noises)
    return np.stack([one.mean(-1) for one in chances], axis=-1)


def _kernels(
    p: Parameters, unfolding: gf.Unfolding, stimuli: gf.SampleStimuli, u: np.ndarray | None
) -> np.ndarray:
    """Return the kernel for every η, (n_etas, n_steps); if u is None, also solve for u."""
    if u is None:
        quick = gf.Convex(gap=1e-3)
        found = [gf.optimize(unfolding, stimuli, eta, quick) for eta in p.etas]
        return np.array([unfolding.readout_response(one.v) @ one.u for one in found])
    problem = LinearProblem(unfolding.maps, stimuli, 1.0)
    return problem.kernels(u[:, None], np.array(p.etas)).T


def noisy_accuracy(p: Parameters, ecg: BinarySplit, item: tuple[int, int]) -> dict:
    """Return the test accuracy of one network at every σ, with η cross-validated."""
    seed, n_neurons = item
    task = Heartbeats(ecg, p.duration)
    sized = replace(p, n_neurons=n_neurons)
    unfolding = sized.unfold(seed, *task.steps)
    projections: list[np.ndarray | None] = [None, *sized.projections(p.n_random, seed, 4)]
    folds = StratifiedKFold(p.n_folds, shuffle=True, random_state=seed)
    inner = np.zeros((len(projections), len(p.etas), len(p.noises)))
    for train, held_out in folds.split(ecg.X_train, ecg.y_train):
        part = gf.SampleStimuli(ecg.X_train[train], ecg.y_train[train])
        X, signs = part.transform(ecg.X_train[held_out]), ecg.y_train[held_out]
        for row, u in zip(inner, projections, strict=True):
            row += _accuracies(p, _kernels(p, unfolding, part, u) @ X.T, signs)
    accuracy, chosen = [], []
    for row, u in zip(inner, projections, strict=True):
        z = _kernels(p, unfolding, task.stimuli, u) @ task.X_test.T
        scores = _accuracies(p, z, task.signs)
        best = row.argmax(0)  # the smallest η among equals
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


def compared(p: Parameters, item: tuple[str, float, int]) -> dict[str, Any]:
    """Return κ of every projection of `ROWS` on one true network of the paper's kind.

    The item is a name in `GAINS`, ‖μ‖ of Gaussian stimuli and the seed of the network. Each
    row has κ with its standard error, the accuracy, and the share of draws for which the
    network diverges; κ and the accuracy leave these draws out.
    """
    gain, strength, seed = item
    eta, sized = p.eta, replace(p, n_neurons=p.true_neurons)
    reservoir = replace(sized.network(seed), gain=GAINS[gain])
    made = {"strength": strength, "n_draws": p.n_draws, "rng": 100 + seed}
    stimuli = gf.GaussianStimuli.random(10, **made)
    dynamics = gf.Dynamics(reservoir, n_steps=10, dt=1.0, tol=_TOL)
    linear = gf.optimize(dynamics.linear, stimuli, eta)
    cut = replace(reservoir, gain=gf.Gain.polynomial(reservoir.gain.coefficients[:3]))
    expanded = gf.unfold(cut, n_steps=10, dt=1.0, order=1)
    with look.expansion_judged_elsewhere():
        order1 = gf.optimize(expanded, stimuli, eta, rng=seed)
    drawn, ascent = sized.projections(1, seed, 2)[0], gf.Ascent(n_starts=p.true_starts)
    random = None if p.true_starts in (1, 2) else seed  # they are not random
    streams = (np.random.default_rng([seed, k]) for k in (3, 4))
    fit, fresh = (stimuli.sample(p.n_draws, rng=rng) for rng in streams)
    try:
        best = gf.optimize(dynamics, stimuli, eta, ascent, rng=random)
    except FloatingPointError:
        # For some draw, the network diverges at every start; fit the other draws.
        X, labels = fit
        for u in (linear.u, -linear.u, order1.u):
            kept = _bounded(dynamics, X, u)[1]
            X, labels = X[kept], labels[kept]
        bounded = gf.SampleStimuli(X, labels, normalize=None)
        best = gf.optimize(dynamics, bounded, eta, ascent, rng=random)
    found, worst = {}, 0.0
    us = (drawn, linear.u, linear.u, order1.u, best.u)
    vs = (None, linear.v, None, None, best.v)
    for name, u, v in zip(ROWS, us, vs, strict=True):
        states, kept = _bounded(dynamics, fit[0], u)
        labels = fit[1][kept]
        if v is None:
            M, Sigma = state_moments(states, labels)
            v = maximize_on_sphere(M, eta * Sigma).v
        middle = 0.0
        if name != "linear optimum as it is":
            middle = sum(float((states[labels == s] @ v).mean()) for s in (-1, 1)) / 2
        judged, kept = _bounded(dynamics, fresh[0], u)
        signs = fresh[1][kept]
        found[name] = {
            **_margin(judged, signs, v, eta),
            "accuracy": float((signs * (judged @ v - middle) > 0).mean()),
            "diverged": 1 - len(signs) / len(fresh[1]),
        }
        worst = max(worst, _error(dynamics, fresh, u))
    return {
        "seed": seed,
        "strength": strength,
        "gain": gain,
        "rows": found,
        "claimed": best.soft_margin,
        "claimed_fresh": best.fresh_margin,
        "claimed_error": best.fresh_error,
        "seconds": best.wall_time,
        "against_simulate": worst,
    }


def _margin(states: np.ndarray, signs: np.ndarray, v: np.ndarray, eta: float) -> dict:
    kappa = gaussian_soft_margin(*state_moments(states, signs), v, eta).value
    z = signs * (states @ v)
    off = z - z.mean()
    parts = off - 0.5 * eta * off**2
    scatter = sum(parts[signs == s].var() * (signs == s).sum() for s in (-1, 1))
    return {"soft_margin": float(kappa), "error": float(np.sqrt(scatter)) / len(signs)}


def _bounded(
    dynamics: gf.Dynamics, X: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the states of series on which the network stays bounded, and their indices."""
    try:
        return dynamics.states(X, u), np.arange(len(X))
    except FloatingPointError:
        if len(X) == 1:
            return np.empty((0, dynamics.n_neurons)), np.arange(0)
    half = len(X) // 2
    before, kept_before = _bounded(dynamics, X[:half], u)
    after, kept_after = _bounded(dynamics, X[half:], u)
    return np.concatenate([before, after]), np.append(kept_before, half + kept_after)


def _error(dynamics: gf.Dynamics, fresh: tuple, u: np.ndarray) -> float:
    """Return the largest relative difference from simulated states on some draws."""
    step = max(1, len(fresh[1]) // (2 * _N_SIMULATED))
    X = fresh[0][::step]
    try:
        truth = np.asarray(gf.simulate(dynamics.reservoir, X, u, dynamics.dt, rtol=1e-8))
        states = dynamics.states(X, u)
    except FloatingPointError:  # one of them diverges
        return 0.0
    return float(np.abs(states - truth).max() / np.abs(truth).max())


def compute(run: FigureRun) -> dict:
    p, ecg = run.parameters, run.ecg
    true = [(*kind, n) for kind in product(p.gains, p.strengths) for n in range(p.n_true)]
    seeds = range(p.n_certified)
    kinds = [(seed, strength) for strength in (0.0, *p.strengths) for seed in seeds]
    # Start with the large networks, which take longest.
    items = [(s, n) for n in sorted(p.sizes, reverse=True) for s in range(p.n_networks)]
    slowest = run.map("the true network", compared, true, p)
    return {
        "certificates": run.map("certificates", certificate, kinds, p, ecg),
        "noise": run.map("readout noise", noisy_accuracy, items, p, ecg),
        "true": slowest,
    }


def _of_kind(rows: list[dict], kind: tuple[str, float]) -> list[dict]:
    return [row["rows"] for row in rows if (row["gain"], row["strength"]) == kind]


def _gain(rows: list[dict], size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return accuracies of random and solved u, (n_networks, n_noises), and the gain."""
    mine = [row for row in rows if row["n_neurons"] == size]
    drawn, best = column(mine, "random").mean(1), column(mine, "optimised")
    return drawn, best, best - drawn


def draw(numbers: dict, p: Parameters) -> Any:
    figure, _ = look.sheet(2.6 * (len(p.sizes) + 1.4), 7.0)
    above, below = figure.subfigures(2, 1)
    ratios = (1.4, *np.ones(len(p.sizes)))
    first, *others = above.subplots(1, len(p.sizes) + 1, width_ratios=ratios)
    _draw_certificates(first, numbers["certificates"], p)
    _draw_noise(others, numbers["noise"], p)
    kinds = list(product(p.gains, p.strengths))
    panels = np.atleast_1d(below.subplots(1, len(kinds)))
    for axes, kind, name in zip(panels, kinds, _LETTERS[len(p.sizes) :], strict=False):
        _draw_true(axes, name, kind, numbers["true"])
        if axes is not panels[0]:
            axes.set_yticklabels([])
    return figure


def _draw_true(
    axes: "look.Axes", name: str, kind: tuple[str, float], rows: list[dict]
) -> None:
    """Draw κ of each projection on fresh draws; a mark at the edge is for values beyond."""
    mine = _of_kind(rows, kind)
    places = np.arange(len(ROWS))[::-1]
    kappa, error = (
        np.array([column(mine, name, key) for name in ROWS]).T
        for key in ("soft_margin", "error")
    )
    top = float(kappa.max())
    edge = -0.25 * top
    inside = kappa > edge
    how = {"fmt": "o", "color": look.NEUTRAL, "ms": 3, "capsize": 2, "lw": 0.8}
    for values, errors, seen in zip(kappa, error, inside, strict=True):
        axes.errorbar(values[seen], places[seen], xerr=2 * errors[seen], **how)
        axes.plot(values[0], places[0], "s", color=RANDOM, ms=4, zorder=3)
        axes.plot(values[-1], places[-1], "o", color=SOLVED, ms=5, zorder=3)
    for i, place in enumerate(places):
        if not inside[:, i].all():
            axes.plot(0.92 * edge, place, "<", color=look.NEUTRAL, ms=5)
            mean = kappa[~inside[:, i], i].mean()
            shown = f"{mean:.2g}".replace("-", "−")
            axes.annotate(shown, (0.8 * edge, place), va="center", size="small")
    axes.axvline(0, color="k", lw=0.6, ls=":")
    axes.set_xlim(edge, 1.15 * top)
    axes.locator_params(axis="x", nbins=4)
    names = [_shown(key).replace(", readout ", ",\n") for key in ROWS]
    axes.set_yticks(places, names)
    axes.ticklabel_format(axis="x", style="plain")  # a factor would overlap the label
    title = rf"{kind[0]}, $\|\mu\| = {kind[1]:g}$"
    look.panel(axes, name, title, r"soft margin $\kappa$, fresh draws")


def _draw_certificates(axes: "look.Axes", rows: list[dict], p: Parameters) -> None:
    rng = np.random.default_rng(0)
    kinds = (0.0, *p.strengths)
    floor = 1e-6
    for place, strength in enumerate(kinds):
        mine = [row for row in rows if row["strength"] == strength]
        rounds = f"{p.n_rounds} rounds of alternation"
        for shift, key, colour, mark, label in (
            (-0.17, "gap", SOLVED, "o", "solved $u$"),
            (0.17, "alternation_below_bound", look.NEUTRAL, "s", rounds),
        ):
            values = np.maximum(column(mine, key), floor)
            x = place + shift + 0.06 * rng.uniform(-1, 1, len(values))
            how = {"mfc": "none", "ms": 4, "mew": 0.9, "label": None if place else label}
            axes.plot(x, 100 * values, mark, color=colour, **how)
    axes.axhline(100 * 1e-3, color=BOUND, lw=0.8, ls=":")
    at: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    at |= {"va": "bottom", "fontsize": 7, "color": look.NEUTRAL}
    axes.annotate("0.1 %", (0.01, 100 * 1e-3), (0, 2), **at)
    axes.set(yscale="log", ylim=(100 * floor / 2, 60))
    shown = [r"$\leq 10^{-4}$", *(f"$10^{{{k}}}$" for k in range(-3, 2))]
    axes.set_yticks([10.0**k for k in range(-4, 2)], shown)
    names = ["ECG5000", *(rf"$\|\mu\| = {strength:g}$" for strength in p.strengths)]
    axes.set_xticks(range(len(kinds)), names)
    # The legend is below the axis, because the panel has points at every height.
    below = {"bbox_to_anchor": (0.45, -0.1), "columnspacing": 0.8, "handletextpad": 0.1}
    labels = ("distance to the proven bound", "", "below the bound (%)", "upper center")
    look.panel(axes, "a", *labels, ncols=2, **below)


def _draw_noise(panels: list[Any], rows: list[dict], p: Parameters) -> None:
    x = np.arange(len(p.noises))
    for axes, size, name in zip(panels, p.sizes, _LETTERS, strict=False):
        drawn, best, _ = _gain(rows, size)
        look.draw_means(axes, x, drawn, "s--", RANDOM, "random $u$")
        look.draw_means(axes, x, best, "o-", SOLVED, "solved $u$")
        axes.set_xticks(x, [f"{sigma:g}" for sigma in p.noises])
        axes.sharey(panels[0])
        first = (look.ACCURACY, "lower left") if axes is panels[0] else ()
        look.panel(axes, name, f"$N = {size}$", r"readout noise $\sigma$ (a.u.)", *first)


def summary(numbers: dict, p: Parameters) -> list[str]:
    """Return the main numbers, and the cases in which solving pays off."""
    lines = []
    for strength in (0.0, *p.strengths):
        mine = [row for row in numbers["certificates"] if row["strength"] == strength]
        below, gaps = column(mine, "alternation_below_bound"), column(mine, "gap")
        name = f"‖μ‖ = {strength:g}" if strength else "ECG5000"
        lines.append(
            f"(a) {name}: {np.mean(np.less_equal(gaps, 1e-3)):.0%} of {len(mine)} networks "
            f"are certified to 0.1 %, and the largest gap is {max(gaps):.2%}; after "
            f"{p.n_rounds} rounds, the alternation is below the bound by "
            f"{np.median(below):.2%} (median) and by at most {max(below):.2%}"
        )
    for size, panel in zip(p.sizes, _LETTERS, strict=False):
        drawn, best, gain = _gain(numbers["noise"], size)
        lines.append(
            f"({panel}) N = {size}, accuracy with random u → solved u (differences below "
            "half a percentage point do not count):"
        )
        for i, sigma in enumerate(p.noises):
            mean = gain[:, i].mean()
            error = gain[:, i].std() / np.sqrt(max(len(gain) - 1, 1))
            # A gain counts if it exceeds half a point and two standard errors.
            verdict = "solving helps" if mean > 0 else "solving hurts"
            if abs(mean) < max(0.5, 2 * error):
                small = abs(mean) < 0.5
                verdict = "no gain" if small else "within two errors"
            lines.append(
                f"    σ = {sigma:g}: {drawn[:, i].mean():.1f} → {best[:, i].mean():.1f} % "
                f"({mean:+.1f} ± {error:.1f}, {verdict})"
            )
    kinds = product(p.gains, p.strengths)
    for panel, kind in zip(_LETTERS[len(p.sizes) :], kinds, strict=False):
        lines.append(
            f"({panel}) {kind[0]}, ‖μ‖ = {kind[1]:g}: κ on the simulated network, one "
            "value per network, and the mean accuracy:"
        )
        mine = _of_kind(numbers["true"], kind)
        for name in ROWS:
            kappas = ", ".join(f"{one:.4f}" for one in column(mine, name, "soft_margin"))
            lost = column(mine, name, "diverged").max()
            lines.append(
                f"    {_shown(name)}: {kappas.replace('-', '−')}; accuracy "
                f"{100 * column(mine, name, 'accuracy').mean():.1f} %"
                + (f"; diverges on up to {lost:.2%} of the draws" if lost else "")
            )
    return lines
