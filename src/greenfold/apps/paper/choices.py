"""Choices that the paper leaves open: Δt, η and τ.

(a) The step length Δt of the artificial stimuli, which the paper does not give: κ of the
solved *u* relative to random *u* at *T* = 10, and gain from the non-linearity at the lowest
‖μ‖ relative to the gain at the highest (Figs. 2b and 3b). (b) Share of the summed mode
loadings that fast modes carry (Fig. 2c), for *u* solved for *T* = 1 and for *T* = 9; one
step does not determine *u*. (c, d) Cosine between the readout of equation 6 and two others
at the same random *u*: that of the full soft margin (equation 5), and that of a linear
support vector machine. (e) Margin (equation 4) of the three readouts on ECG5000, and (f)
their accuracy on the test series. (g) Soft margin of random *u* over the readout time,
averaged over projections and stimuli and divided by its final value, for several τ. The
dotted lines are the rule of `choose_tau`: at least 95 % at two thirds of the time. (h) The
τ that the rule chooses in 20 networks.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from ... import GaussianStimuli, choose_tau, optimize
from ...datasets.downloads import BinarySplit
from ...math.margins import margin, soft_margin, state_moments, svm_readout
from ...math.sphere import maximize_on_sphere
from ...optimizers.linear import best_margins
from . import figures as look
from .figures import BLUE, ORANGE, RED, FigureRun, Heartbeats, OnHeartbeats, column


@dataclass(frozen=True)
class Parameters(OnHeartbeats):
    """Parameters of the choices; Δt = 1, η = 10 and τ = 0.25 elsewhere."""

    strength: float = 1.0
    #: (a, b) Step lengths, and those at which the non-linear network is solved too.
    dts: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 1.0)
    nonlinear_dts: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    alpha: float = 0.05
    strengths: tuple[float, float] = (0.19, 1.0)
    n_scanned: int = 10  # (a, b) Pairs of classes, of network 0
    n_random: int = 50
    n_nonlinear: int = 3  # (a) Networks, each with its own stimuli
    mode_times: tuple[float, float] = (1.0, 9.0)
    fast: float = 0.5
    #: (c–f) Values of η, and networks, each with one random u.
    etas: tuple[float, ...] = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
    n_networks: int = 5
    n_draws: int = 1000  # (c) Series per class
    #: (g, h) Values of τ, with a ratio of 1.5 and the paper's 0.25 in the middle.
    taus: tuple[float, ...] = tuple(round(0.25 * 1.5**k, 4) for k in range(-4, 5))
    n_tau_networks: int = 20
    n_stimuli: int = 250
    n_projections: int = 5


FULL = Parameters()
QUICK = replace(
    FULL, dts=(0.5, 1.0), nonlinear_dts=(1.0,), n_scanned=1, n_random=5, n_nonlinear=1,
    etas=(1, 10, 100), n_networks=1, n_draws=200, n_tau_networks=2,
    n_projections=2,
)  # fmt: skip


def _classes(p: Parameters, n_steps: int, strength: float, *seed: int) -> GaussianStimuli:
    return GaussianStimuli.random(
        n_steps, strength=strength, rng=np.random.default_rng(seed)
    )


def linear_scan(p: Parameters, item: tuple[float, int]) -> dict:
    """Return κ of solved and random u, and the mode loadings, for one Δt and one pair."""
    dt, number = item
    n_steps = round(p.duration / dt)
    unfolding = p.unfold(0, n_steps, dt)
    stimuli = _classes(p, n_steps, p.strength, 0, 11, number)
    best: Any = optimize(unfolding, stimuli, p.eta)
    mu, psi = stimuli.mu[None], np.asarray(stimuli.psi)[None]
    drawn = [
        best_margins(unfolding.input_response(u), mu, psi, p.eta)[0]
        for u in p.projections(p.n_random, 0, 12)
    ]
    modes, shares = unfolding.reservoir.modes(), []
    for time in p.mode_times:
        there = optimize(unfolding.with_readout(time), stimuli, p.eta)
        loading = np.abs(modes.loading(there.u))
        shares.append(loading[modes.time_constants < p.fast].sum() / loading.sum())
    return {
        "dt": dt,
        "optimised": best.soft_margin,
        "random": np.mean(drawn),
        "gap": best.gap,
        "fast": shares,
    }


def nonlinear_scan(p: Parameters, item: tuple[float, int]) -> dict:
    """Return the gain from the non-linearity at the lowest and the highest ‖μ‖."""
    dt, number = item
    n_steps = round(p.duration / dt)
    unfolding = p.unfold(number, n_steps, dt, p.alpha)
    found: dict[str, Any] = {"dt": dt, "network": number}
    for name, strength in zip(("lowest", "highest"), p.strengths, strict=True):
        stimuli = _classes(p, n_steps, strength, 0, number)
        linear = optimize(unfolding.linear, stimuli, p.eta).soft_margin
        with look.expansion_judged_elsewhere():
            best = optimize(
                unfolding, stimuli, p.eta, rng=np.random.default_rng([number, 13])
            )
        assert best.validity is not None
        trusted = best.validity.trustworthy
        found[name] = {
            "linear": linear,
            "nonlinear": best.soft_margin,
            "trustworthy": trusted,
        }
    return found


def full_readout(
    states: np.ndarray, signs: np.ndarray, starts: tuple[np.ndarray, ...], eta: float
) -> np.ndarray:
    """Return the unit readout of the largest full soft margin (equation 5)."""
    signed = states * signs[:, None]

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        size = np.linalg.norm(w)
        unit = w / size
        slope = -(softmax(-eta * (signed @ unit)) @ signed)
        value = -soft_margin(states, signs, unit, eta)
        return value, (slope - (slope @ unit) * unit) / size

    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
    how: Any = {"jac": True, "method": "L-BFGS-B", "options": options}
    # Concave in v, but not on the sphere where classes overlap: start from both neighbours.
    found = min((minimize(loss, v, **how) for v in starts), key=lambda one: one.fun)
    return found.x / np.linalg.norm(found.x)


def readouts(p: Parameters, ecg: BinarySplit, item: tuple[str, int]) -> dict:
    """Return the three readouts' angles, margins and accuracies over η, for one network."""
    kind, seed = item
    if kind == "ECG5000":
        task = Heartbeats(ecg, p.duration)
        n_steps, dt = task.steps
        X, signs = task.stimuli.series, np.asarray(task.stimuli.signs)
        others, others_signs = task.X_test, task.signs
    else:
        n_steps, dt = round(p.duration), 1.0
        classes = _classes(p, n_steps, p.strength, 0, 14, seed)
        X, signs = classes.sample(p.n_draws, np.random.default_rng([seed, 15]))
        others, others_signs = classes.sample(p.n_draws, np.random.default_rng([seed, 16]))
    unfolding = p.unfold(seed, n_steps, dt)
    u = p.projections(1, seed, 17)[0]
    states, judged = (unfolding.states(np.asarray(x), u) for x in (X, others))
    # The directions in which the states vary; a rotation changes no margin.
    basis = np.linalg.svd(states, full_matrices=False)[2]
    seen = np.linalg.norm(states @ basis.T, axis=0) > 1e-9 * np.linalg.norm(states)
    states, judged = states @ basis[seen].T, judged @ basis[seen].T
    machine = svm_readout(states, signs)

    def told(v: np.ndarray) -> dict[str, float]:
        right = float((others_signs * (judged @ v) > 0).mean())
        return {"margin": margin(states, signs, v), "accuracy": 100 * right}

    M, Sigma = state_moments(states, signs)
    rows, before = [], machine
    for eta in sorted(p.etas, reverse=True):
        ours = maximize_on_sphere(M, eta * Sigma).v
        before = full = full_readout(states, signs, (before, ours), eta)
        rows.append(
            {
                "eta": eta,
                "equation 6": told(ours),
                "equation 5": told(full),
                "cosine of 5 and 6": float(full @ ours),
                "cosine of 6 and the machine": float(ours @ machine),
                "cosine of 5 and the machine": float(full @ machine),
            }
        )
    return {"kind": kind, "seed": seed, "machine": told(machine), "over": rows[::-1]}


def taus_of(p: Parameters, seed: int) -> dict:
    """Return the τ of one network by `choose_tau`, with the curves that decide."""
    stimuli = [
        _classes(p, round(p.duration), p.strength, 0, 18, number)
        for number in range(p.n_stimuli)
    ]
    rng = np.random.default_rng([seed, 19])
    chosen = choose_tau(
        p.network(seed), stimuli, 1.0, p.taus, eta=p.eta, n_projections=p.n_projections,
        rng=rng,
    )  # fmt: skip
    return {
        "seed": seed,
        "best": chosen.best,
        "times": chosen.times,
        "curves": chosen.soft_margin,
        "saturation": chosen.saturation,
    }


def compute(run: FigureRun) -> dict:
    p, ecg = run.parameters, run.ecg
    # Start with the short steps, which take longest.
    bent = [(dt, n) for dt in p.nonlinear_dts for n in range(p.n_nonlinear)]
    scan = [(dt, n) for dt in p.dts for n in range(p.n_scanned)]
    kinds = [(kind, n) for kind in ("ECG5000", "artificial") for n in range(p.n_networks)]
    return {
        "nonlinear_scan": run.map("Δt, non-linear", nonlinear_scan, bent, p),
        "linear_scan": run.map("Δt, linear", linear_scan, scan, p),
        "readouts": run.map("readouts over η", readouts, kinds, p, ecg),
        "taus": run.map("τ", taus_of, list(range(p.n_tau_networks)), p),
    }


def draw(numbers: dict, p: Parameters) -> Any:
    figure, ((a, b, c, d), (e, f, g, h)) = look.sheet(14.4, 7.0, 2, 4)
    _draw_scan(a, b, numbers, p)
    for axes, letter, kind in ((c, "c", "artificial"), (d, "d", "ECG5000")):
        for key, mark, colour, label in (
            ("cosine of 5 and 6", "o-", RED, "equations 6 and 5"),
            ("cosine of 6 and the machine", "s--", BLUE, "equation 6 and the machine"),
        ):
            look.draw_means(axes, p.etas, _over(numbers, kind, key), mark, colour, label)
        axes.set_ylim(-0.05, 1.35)
        _over_eta(axes, p)
        title = f"angle between readouts, {kind}"
        look.panel(axes, letter, title, _ETA, "cosine", "upper right")
    for axes, letter, key, y in (
        (e, "e", "margin", r"margin $\kappa$ (a.u.)"),
        (f, "f", "accuracy", look.ACCURACY),
    ):
        for name, mark, colour in (("equation 6", "o-", RED), ("equation 5", "D-", ORANGE)):
            values = _over(numbers, "ECG5000", name, key)
            look.draw_means(axes, p.etas, values, mark, colour, name)
        machine = column(_of(numbers, "ECG5000"), "machine", key).mean()
        axes.axhline(machine, color=BLUE, ls="--", lw=1.2, label="machine")
        _over_eta(axes, p)
        look.panel(axes, letter, f"{key}, ECG5000", _ETA, y, "lower right")
    _draw_taus(g, h, numbers["taus"], p)
    return figure


_ETA = r"control parameter $\eta$ (1/a.u.)"


def _over_eta(axes: "look.Axes", p: Parameters) -> None:
    axes.set(xscale="log")
    axes.axvline(p.eta, color="0.6", lw=0.8, ls=":")


def _of(numbers: dict, kind: str) -> list[dict]:
    return [one for one in numbers["readouts"] if one["kind"] == kind]


def _over(numbers: dict, kind: str, *path: str) -> np.ndarray:
    """Return one row per network and one column per η."""
    return np.array([column(one["over"], *path) for one in _of(numbers, kind)])


def scanned(numbers: dict, p: Parameters) -> dict[str, np.ndarray]:
    """Return what depends on Δt, (n_pairs or n_networks, n_dts)."""

    def at(rows: list[dict], dts: tuple[float, ...], *path: str) -> np.ndarray:
        return np.array([column([r for r in rows if r["dt"] == dt], *path) for dt in dts])

    linear = partial(at, numbers["linear_scan"], p.dts)
    bent = partial(at, numbers["nonlinear_scan"], p.nonlinear_dts)
    lowest, highest = (
        (bent(name, "nonlinear"), bent(name, "linear")) for name in ("lowest", "highest")
    )
    return {
        "solved / random": (linear("optimised") / linear("random")).T,
        "fast": linear("fast"),
        "non-linear / linear": np.divide(*lowest).T,
        "gain, lowest / highest": (np.subtract(*lowest) / np.subtract(*highest)).T,
    }


def _draw_scan(a: "look.Axes", b: "look.Axes", numbers: dict, p: Parameters) -> None:
    found = scanned(numbers, p)
    for key, dts, mark, colour, label in (
        ("solved / random", p.dts, "o-", RED, r"$\kappa$, solved / random $u$ (2b)"),
        ("non-linear / linear", p.nonlinear_dts, "s--", BLUE,
         rf"$\kappa$, non-linear / linear, $\|\mu\| = {p.strengths[0]:g}$ (3b)"),
        ("gain, lowest / highest", p.nonlinear_dts, "D:", ORANGE,
         r"gain at lowest / highest $\|\mu\|$ (3b)"),
    ):  # fmt: skip
        look.draw_means(a, dts, found[key], mark, colour, label)
    top = max(values.mean(0).max() for key, values in found.items() if key != "fast")
    a.set(ylim=(0, 1.9 * top))
    for i, (time, mark) in enumerate(zip(p.mode_times, ("s--", "o-"), strict=True)):
        shares = found["fast"][:, :, i].T
        look.draw_means(b, p.dts, shares, mark, (BLUE, RED)[i], f"$T = {time:g}$")
    everyone = float(np.mean(p.network(0).modes().time_constants < p.fast))
    b.axhline(everyone, color="0.5", lw=1.0, ls=":", label="share of all modes")
    b.set_ylim(0, 1)
    x = r"step length $\Delta t$ (a.u.)"
    for axes in (a, b):
        axes.set(xscale="log")
        look.plain_ticks(axes.xaxis, p.dts)
    look.panel(a, "a", r"ratios over $\Delta t$", x, "ratio", "upper left")
    y = rf"share of modes with $\tau_\alpha < {p.fast:g}$"
    look.panel(b, "b", r"fast modes over $\Delta t$", x, y, "lower left")


def _draw_taus(g: "look.Axes", h: "look.Axes", rows: list[dict], p: Parameters) -> None:
    import matplotlib as mpl

    shown = p.taus[::2]
    hues: Any = mpl.colormaps["viridis"](np.linspace(0.0, 0.9, len(shown)))
    times = np.array(rows[0]["times"])
    for tau, hue in zip(shown, hues, strict=True):
        place = p.taus.index(tau)
        curve = column(rows, "curves", place).mean(0)
        g.plot(
            times, curve / curve[-1], "o-", color=hue, ms=3, label=rf"$\tau = {tau:.2g}$"
        )
    g.axvline(2 / 3 * times[-1], color="0.4", lw=0.9, ls=":")
    g.axhline(0.95, color="0.4", lw=0.9, ls=":")
    y = r"$\kappa_\eta(T)\,/\,\kappa_\eta(10)$, random $u$"
    look.panel(g, "g", r"saturation over $\tau$", look.READOUT_TIME, y, "lower right")
    counts = [sum(one["best"] == tau for one in rows) for tau in p.taus]
    near = [abs(np.log(tau / p.tau)) < np.log(1.6) for tau in p.taus]
    h.bar(range(len(p.taus)), counts, color=[RED if one else "0.7" for one in near])
    h.set_xticks(range(len(p.taus)), [f"{tau:.2g}" for tau in p.taus])
    h.tick_params(axis="x", labelsize=7)
    title = rf"{len(rows)} networks (red: 0.25 and neighbours)"
    look.panel(h, "h", title, r"chosen $\tau$", "networks")


def summary(numbers: dict, p: Parameters) -> list[str]:
    found = scanned(numbers, p)
    means = {key: values.mean(0) for key, values in found.items() if key != "fast"}
    ranges = {
        key: f"{values.min():.2f} to {values.max():.2f}" for key, values in means.items()
    }
    fast = found["fast"].mean(1)
    lines = [
        f"(a) over Δt from {p.dts[0]:g} to {p.dts[-1]:g}: κ of solved over random u "
        f"{ranges['solved / random']}; over Δt from {p.nonlinear_dts[0]:g} to "
        f"{p.nonlinear_dts[-1]:g}: non-linear over linear optimum at ‖μ‖ = "
        f"{p.strengths[0]:g} {ranges['non-linear / linear']}, gain at the lowest over "
        f"gain at the highest ‖μ‖ {ranges['gain, lowest / highest']}",
        *(
            f"(b) T = {time:g}: fast modes carry {fast[:, i].min():.0%} to "
            f"{fast[:, i].max():.0%} of the sum of |ω_α|"
            for i, time in enumerate(p.mode_times)
        ),
    ]
    at = list(p.etas).index(p.eta)
    for letter, kind in (("c", "artificial"), ("d", "ECG5000")):
        both = _over(numbers, kind, "cosine of 5 and 6").mean(0)
        machine = _over(numbers, kind, "cosine of 6 and the machine").mean(0)
        lines.append(
            f"({letter}) {kind} stimuli, η = {p.eta:g}: cosine {both[at]:.3f} between the "
            f"readouts of equations 6 and 5, {machine[at]:.2f} between equation 6 and the "
            f"machine (at most {machine.max():.2f}, at η = {p.etas[machine.argmax()]:g})"
        )
    for letter, key, form in (("e", "margin", ".3f"), ("f", "accuracy", ".1f")):
        machine = column(_of(numbers, "ECG5000"), "machine", key).mean()
        ours, full = (
            _over(numbers, "ECG5000", name, key).mean(0)[at]
            for name in ("equation 6", "equation 5")
        )
        lines.append(
            f"({letter}) ECG5000, η = {p.eta:g}: {key} {ours:{form}} (equation 6), "
            f"{full:{form}} (equation 5), {machine:{form}} (machine)"
        )
    chosen = column(numbers["taus"], "best")
    near = sum(abs(np.log(tau / p.tau)) < np.log(1.6) for tau in chosen)
    values, counts = np.unique(chosen, return_counts=True)
    listed = ", ".join(f"{tau:g} in {n}" for tau, n in zip(values, counts, strict=True))
    return [
        *lines,
        f"(h) τ chosen in {len(chosen)} networks: {listed}; 0.25 or one of its neighbours "
        f"on the grid in {near}",
    ]
