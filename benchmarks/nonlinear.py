"""Non-linear reservoirs: what order 1 gains, what it costs, and how far it is the truth.

``python -m benchmarks.nonlinear [PART …] [--full] [--plot PATH]`` runs parts of it;
``--full`` adds the paper's alternation, about a minute a problem, and ``--problems`` limits
how many.

Networks are the draws of N(0, g²/N) with the seeds 0, 1, 2, …; a non-linear network must be
stable, so the seeds whose draw is not (14 and 19 of the first 20) are left out and the next
ones taken. Random input projections come from streams of their own.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from greenfold import (
    ExpansionWarning,
    Gain,
    GaussianStimuli,
    Projections,
    Reservoir,
    SampleStimuli,
    Unfolding,
    maximize_on_sphere,
    optimize,
    simulate,
    state_moments,
    unfold,
)
from greenfold.margin import gaussian_soft_margin
from greenfold.optimizers._nonlinear import NonlinearProblem

from ._measure import MIB, Report, Row, alternating_seconds, in_fresh_process

N_NEURONS, TAU, G, ETA, DURATION, ALPHA = 100, 0.25, 0.9, 10.0, 10.0, 0.05
STRENGTHS, SEEDS = (0.19, 0.30, 0.52, 0.76, 1.0), range(5)
#: Starts of both methods where they are compared.
N_STARTS = 2
#: Random input projections for each network, artificial stimuli and heartbeats.
N_RANDOM, N_RANDOM_ECG = 20, 5
N_NETWORKS = 20
#: Series of each class on which the unfolded states are compared with simulated ones.
N_SIMULATED = 250
#: Sizes of the growth table: (neurons, steps, series).
GROWTH = [
    *((n, 140, 354) for n in (50, 100, 200, 500, 1000)),
    *((100, k, 354) for k in (35, 70, 280)),
    *((100, 140, n) for n in (100, 1000, 4000)),
]


def reservoir(seed: int, n_neurons: int = N_NEURONS, alpha: float = ALPHA) -> Reservoir:
    return Reservoir.random(n_neurons, G, TAU, Gain.quadratic(alpha), rng=seed)


@cache
def stable_seeds(count: int) -> list[int]:
    """The first seeds whose network is stable."""
    found, seed = [], 0
    while len(found) < count:
        drawn = Reservoir.random(N_NEURONS, G, TAU, rng=seed, allow_unstable=True)
        found += [seed] if drawn.is_stable else []
        seed += 1
    return found


def artificial(seed: int, strength: float) -> tuple[Unfolding, GaussianStimuli]:
    """One of the 25 problems: a network and its stimuli of 10 steps."""
    stimuli = GaussianStimuli.random(10, strength=strength, rng=100 + seed)
    return unfold(reservoir(seed), n_steps=10, dt=1.0, order=1), stimuli


def solve(unfolding: Unfolding, stimuli: Any, *arguments: Any, **options: Any):
    """`optimize`, its verdict on the expansion kept in the result instead of printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpansionWarning)
        return optimize(unfolding, stimuli, ETA, *arguments, **options)


@cache
def solved(seed: int, strength: float) -> tuple[Projections, Projections]:
    """Linear optimum with its bound, and the non-linear one, of an artificial problem."""
    unfolding, stimuli = artificial(seed, strength)
    return solve(unfolding.linear, stimuli), solve(unfolding, stimuli, rng=[seed, 6])


def _listed(values: Any, form: str = ".3g") -> str:
    return " ".join(f"{value:{form}}" for value in values)


# --- what the non-linearity gains ---------------------------------------------------------


def table_rows() -> list[Row]:
    """Optimised and random projections, linear beside non-linear, on the 25 problems."""
    rows, pairs = [], []
    for strength in STRENGTHS:
        found = [solved(seed, strength) for seed in SEEDS]
        linear = np.array([one.soft_margin for one, _ in found])
        bounds = np.array([one.upper_bound for one, _ in found])
        nonlinear = np.array([one.soft_margin for _, one in found])
        two = np.array([one.starts[:N_STARTS].max() for _, one in found])
        judged = [one.validity for _, one in found if one.validity is not None]
        ratios, wanted = nonlinear / linear, 3.0 if strength == STRENGTHS[0] else 1.0
        for seed in SEEDS:
            unfolding, stimuli = artificial(seed, strength)
            drawn = [
                solve(one, stimuli, "random", n_starts=N_RANDOM, rng=[seed, 1]).starts
                for one in (unfolding.linear, unfolding)
            ]
            pairs.append(np.array(drawn))
        rows.append(
            Row(
                f"‖μ‖ = {strength:g}: non-linear over linear, lowest of 5",
                ratios.min(),
                "×",
                f"target {'≥ 3×' if wanted > 1 else '> 1×'}",
                bool(ratios.min() >= wanted and ratios.min() > 1),
                {
                    "ratios": _listed(ratios),
                    "linear": _listed(linear),
                    "nonlinear": _listed(nonlinear),
                    "over_linear_bound": _listed(nonlinear / bounds),
                    "with_2_starts": _listed(two / linear),
                    "soft_margin_error": _listed(
                        [one.soft_margin_error for one in judged], ".0%"
                    ),
                    "state_error": _listed([one.state_error for one in judged], ".1%"),
                    "untrusted": sum(not one.trustworthy for one in judged),
                    "median_s": median(one.wall_time for _, one in found),
                },
            )
        )
    linear, nonlinear = np.concatenate(pairs, axis=1)
    rows.append(
        Row(
            f"random u: non-linear over linear, {linear.size} pairs",
            float(np.median(nonlinear / linear)),
            "× median",
            "target: the diagonal",
            bool(0.8 < np.median(nonlinear / linear) < 1.25),
            {
                "correlation": float(np.corrcoef(np.log(linear), np.log(nonlinear))[0, 1]),
                "from": float((nonlinear / linear).min()),
                "to": float((nonlinear / linear).max()),
            },
        )
    )
    return rows


def alternating_row(n_problems: int) -> Row:
    """Ascent beside the paper's alternation, the same number of starts."""
    gains, times, wins, worst = [], [], 0, np.inf
    problems = [(seed, strength) for strength in STRENGTHS for seed in SEEDS]
    for seed, strength in problems[:n_problems]:
        unfolding, stimuli = artificial(seed, strength)
        ours, paper = (
            solve(unfolding, stimuli, method, n_starts=N_STARTS, rng=[seed, 7])
            for method in ("ascent", "alternating")
        )
        gains.append(ours.soft_margin / paper.soft_margin)
        times.append(paper.wall_time / ours.wall_time)
        wins += gains[-1] >= 1
        worst = min(worst, gains[-1])
        print(
            f"    seed {seed}, ‖μ‖ {strength:g}: ascent {ours.soft_margin:.6f} in "
            f"{ours.wall_time:.1f} s, alternating {paper.soft_margin:.6f} in "
            f"{paper.wall_time:.1f} s",
            flush=True,
        )
    n = len(gains)
    return Row(
        f"ascent beside alternating, {N_STARTS} starts, {n} of 25 problems",
        median(times),
        "× faster",
        "≥ 23 of 25, none −1 %",
        bool(wins >= 0.92 * n and worst >= 0.99 and median(times) > 1),
        {
            "higher_or_equal": wins,
            "of": n,
            "lowest_gain": float(worst),
            "median_gain": median(gains),
            "gains": _listed(gains, ".4f"),
        },
    )


# --- how far it is the truth --------------------------------------------------------------


def simulated(network: Reservoir, X: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
    """Simulated states; NaN for the series after which the true network diverges."""
    try:
        return simulate(network, X, u, dt, rtol=1e-7)
    except FloatingPointError:
        if len(X) == 1:
            return np.full((1, network.n_neurons), np.nan)
    half = len(X) // 2
    parts = [simulated(network, part, u, dt) for part in (X[:half], X[half:])]
    return np.concatenate(parts)


def compared_with_simulation(seed: int, strength: float) -> dict[str, Any]:
    """Errors of orders 1 and 2 at the optimum of order 1, on drawn series.

    Each order has the readout that its own closed moments make optimal. The errors of κ
    are relative to the κ of the unfolding on the same series. Series after which the true
    network diverges are counted and left out.
    """
    unfolding, stimuli = artificial(seed, strength)
    u = solved(seed, strength)[1].u
    X, labels = stimuli.sample(N_SIMULATED, rng=np.random.default_rng([seed, 8]))
    truth = simulated(unfolding.reservoir, X, u, unfolding.dt)
    bounded = np.isfinite(truth).all(1)
    X, labels, truth = X[bounded], labels[bounded], truth[bounded]
    truth_moments = state_moments(truth, labels)
    truth_best = float(maximize_on_sphere(truth_moments[0], ETA * truth_moments[1]).value)
    found: dict[str, Any] = {"diverged": 1 - float(bounded.mean())}
    for order in (1, 2):
        at = unfold(unfolding.reservoir, n_steps=10, dt=1.0, order=order, tol=1e-6)
        M, Sigma = stimuli.moments(at, u)
        v = maximize_on_sphere(M, ETA * Sigma).v
        states = at.states(X, u)
        moments = state_moments(states, labels)
        here = gaussian_soft_margin(*moments, v, ETA).value
        there = gaussian_soft_margin(*truth_moments, v, ETA).value
        best = float(maximize_on_sphere(moments[0], ETA * moments[1]).value)
        found[f"error_{order}"] = float(
            np.sqrt(((states - truth) ** 2).mean() / (truth**2).mean())
        )
        found[f"same_v_{order}"] = there / here - 1
        found[f"best_v_{order}"] = truth_best / best - 1
    rng = np.random.default_rng([seed, 9])
    u = rng.standard_normal(unfolding.n_neurons)
    u /= np.linalg.norm(u)
    truth = simulate(unfolding.reservoir, X[::5], u, unfolding.dt, rtol=1e-7)
    states = unfolding.states(X[::5], u)
    found["error_random_u"] = float(
        np.sqrt(((states - truth) ** 2).mean() / (truth**2).mean())
    )
    return found


def truth_rows() -> list[Row]:
    """States and soft margins of the simulated network at the optimum."""
    rows = []
    for strength in (STRENGTHS[0], STRENGTHS[-1]):
        found = [compared_with_simulation(seed, strength) for seed in SEEDS]
        for order, target in ((1, 0.02), (2, 0.005)):
            errors = [one[f"error_{order}"] for one in found]
            rows.append(
                Row(
                    f"‖μ‖ = {strength:g}: states of order {order}, worst of 5 networks",
                    100 * max(errors),
                    "% error",
                    f"target ≤ {target:.1%}",
                    max(errors) <= target,
                    {
                        "errors": _listed(errors, ".2%"),
                        "soft_margin_same_v": _listed(
                            [one[f"same_v_{order}"] for one in found], "+.0%"
                        ),
                        "soft_margin_best_v": _listed(
                            [one[f"best_v_{order}"] for one in found], "+.0%"
                        ),
                        "diverged": _listed([one["diverged"] for one in found], ".1%"),
                        "order_1_random_u": _listed(
                            [one["error_random_u"] for one in found], ".2%"
                        ),
                    },
                )
            )
    return rows


# --- heartbeats ---------------------------------------------------------------------------


def heartbeat_rows() -> list[Row]:
    """The non-linear half of the paper's Table 1."""
    from .optimum import load_heartbeats

    X, labels, source = load_heartbeats()
    stimuli = SampleStimuli(X, labels)
    linear, nonlinear, drawn, drawn_linear, times = [], [], [], [], []
    for seed in stable_seeds(N_NETWORKS):
        unfolding = unfold(reservoir(seed), n_steps=140, dt=DURATION / 140, order=1)
        linear.append(solve(unfolding.linear, stimuli).soft_margin)
        found = solve(unfolding, stimuli)
        nonlinear.append(found.soft_margin)
        times.append(found.wall_time)
        options = {"n_starts": N_RANDOM_ECG, "rng": [seed, 1]}
        drawn.append(solve(unfolding, stimuli, "random", **options).starts)
        drawn_linear.append(solve(unfolding.linear, stimuli, "random", **options).starts)
    gains, real = np.array(nonlinear) - linear, source.startswith("ECG5000")
    return [
        Row(
            f"ECG5000, optimised, mean of {N_NETWORKS} networks",
            1e3 * float(np.mean(nonlinear)),
            "× 1e-3 κ",
            "target 0.384 ± 0.01",
            abs(float(np.mean(nonlinear)) - 0.384) <= 0.01 if real else None,
            {
                "kappa": float(np.mean(nonlinear)),
                "spread": float(np.std(nonlinear, ddof=1)),
                "linear": float(np.mean(linear)),
                "lowest_gain": float(gains.min()),
                "mean_gain": float(gains.mean()),
                "median_s": median(times),
            },
        ),
        Row(
            f"ECG5000, random u, {N_NETWORKS} × {N_RANDOM_ECG}",
            1e3 * float(np.mean(drawn)),
            "× 1e-3 κ",
            "target 0.183 ± 0.01",
            abs(float(np.mean(drawn)) - 0.183) <= 0.01 if real else None,
            {
                "kappa": float(np.mean(drawn)),
                "spread": float(np.std(drawn, ddof=1)),
                "linear": float(np.mean(drawn_linear)),
            },
        ),
        Row(
            "ECG5000, networks where non-linear ≥ linear",
            float((gains >= 0).sum()),
            f"of {N_NETWORKS}",
            "target: all",
            bool((gains >= 0).all()),
            {"gains": _listed(gains, ".1e"), "source": source},
        ),
    ]


# --- what it costs ------------------------------------------------------------------------


def fit() -> dict[str, Any]:
    """The whole non-linear fit on the heartbeats; runs in a process of its own."""
    from .optimum import load_heartbeats

    X, labels, _ = load_heartbeats()
    unfolding = unfold(reservoir(0), n_steps=X.shape[1], dt=DURATION / 140, order=1)
    found = solve(unfolding, SampleStimuli(X, labels))
    return {"seconds": found.wall_time, "evaluations": found.n_iter + 1}


def cost_rows(rounds: int) -> list[Row]:
    """The whole fit beside one pass of reservoirpy over the same series."""
    from .optimum import load_heartbeats, random_unit
    from .unfolding import fastest_peers

    X, labels, _ = load_heartbeats()
    network, series = reservoir(0), np.ascontiguousarray(X)
    u = random_unit(np.random.default_rng([0, 1]))[:, 0]
    peers, _ = fastest_peers(series, network.weights, u)

    def whole() -> Any:
        unfolding = unfold(network, n_steps=X.shape[1], dt=DURATION / 140, order=1)
        return solve(unfolding, SampleStimuli(X, labels))

    jobs = {label: (run, 1) for label, run in peers.items()} | {"fit": (whole, 1)}
    times = alternating_seconds(jobs, rounds)
    peer = [min(both) for both in zip(*(times[way] for way in peers), strict=True)]
    ratios = [ours / theirs for theirs, ours in zip(peer, times["fit"], strict=True)]
    fresh = in_fresh_process(fit)
    return [
        Row(
            "whole fit, order 1, over reservoirpy's pass",
            median(ratios),
            "× slower",
            "target ≤ 10×",
            median(ratios) <= 10,
            {
                "fit_s": median(times["fit"]),
                "reservoirpy_s": median(peer),
                "lowest": min(ratios),
                "highest": max(ratios),
                "evaluations_of_the_best_start": fresh["evaluations"],
            },
        ),
        Row(
            "whole fit, order 1, memory",
            fresh["peak_bytes"] / MIB,
            "MiB peak",
            "target < 1 GB",
            fresh["peak_bytes"] < 1e9,
            {"seconds": fresh["seconds"]},
        ),
    ]


def one_evaluation(n_neurons: int, n_steps: int, n_series: int) -> dict[str, Any]:
    """One value and gradient of F, in a process of its own."""
    rng = np.random.default_rng(0)
    half = n_series // 2
    walk = np.cumsum(rng.standard_normal((2 * half, n_steps)), axis=1) / np.sqrt(n_steps)
    labels = np.repeat([1, -1], half)
    X = walk + labels[:, None] * np.sin(np.linspace(0, 6, n_steps))
    weights = rng.standard_normal((n_neurons, n_neurons)) * (G / np.sqrt(n_neurons))
    weights *= min(1.0, G / np.linalg.eigvals(weights).real.max())
    network = Reservoir(weights, TAU, Gain.quadratic(ALPHA))
    start = time.perf_counter()
    unfolding = unfold(network, n_steps=n_steps, dt=DURATION / n_steps, order=1)
    built = time.perf_counter() - start
    problem = NonlinearProblem(unfolding, SampleStimuli(X, labels), ETA)
    u = rng.standard_normal((n_neurons, 1))
    u /= np.linalg.norm(u)
    taken = []
    for _ in range(1 if n_neurons * n_steps > 50_000 else 3):
        start = time.perf_counter()
        problem.evaluate(u)
        taken.append(time.perf_counter() - start)
    # The first one also makes the products of the stimuli, once for all evaluations.
    return {"build_s": built, "first_s": taken[0], "seconds": taken[-1]}


def growth_rows() -> tuple[list[Row], list[dict[str, float]]]:
    """Time and memory of one evaluation by size; a fit takes 20 to 30 of them."""
    found, rows = [], []
    for n, k, series in GROWTH:
        one = in_fresh_process(one_evaluation, n_neurons=n, n_steps=k, n_series=series)
        found.append({"n_neurons": n, "n_steps": k, "n_series": series, **one})
        rows.append(
            Row(
                f"one evaluation, N = {n}, K = {k}, {series} series",
                1e3 * one["seconds"],
                "ms",
                "",
                None,
                {key: one[key] for key in ("first_s", "build_s")}
                | {"peak_mib": one["peak_bytes"] / MIB},
            )
        )
    return rows, found


def plot(found: list[dict[str, float]], path: Path) -> None:
    """Growth with N, K and the number of series, log–log."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = {"n_neurons": "neurons N", "n_steps": "steps K", "n_series": "series"}
    base = {"n_neurons": 100, "n_steps": 140, "n_series": 354}
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
    for axis, (key, label) in zip(axes, names.items(), strict=True):
        others = [name for name in base if name != key]
        line = [one for one in found if all(one[name] == base[name] for name in others)]
        line.sort(key=lambda one: one[key])
        axis.loglog([one[key] for one in line], [one["seconds"] for one in line], "o-")
        axis.set_xlabel(label)
    axes[0].set_ylabel("one evaluation of F and ∇F (s)")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


PARTS = ("cost", "table", "truth", "heartbeats", "growth")


def rows_of(part: str, rounds: int, picture: Path | None) -> Iterator[Row]:
    """Rows of one part."""
    if part == "cost":
        yield from cost_rows(rounds)
    elif part == "table":
        yield from table_rows()
    elif part == "truth":
        yield from truth_rows()
    elif part == "heartbeats":
        yield from heartbeat_rows()
    else:
        rows, found = growth_rows()
        yield from rows
        if picture:
            plot(found, picture)


NOTES = [
    f"N = {N_NEURONS}, τ = {TAU}, g = {G}, η = {ETA:g}, α = {ALPHA}; artificial stimuli of "
    "10 steps of 1, their networks and classes drawn with 5 seeds",
    "listed figures are one for each network, in the order of the seeds",
    "over_linear_bound: beside the proven upper bound of the linear soft margin",
    "soft_margin_same_v / _best_v: κ of the simulated network over κ of the unfolded one, "
    "minus 1, with the unfolding's v and with v re-optimised on both",
    "diverged: share of drawn series after which the simulated network, of unbounded gain, "
    "grows without limit; they are left out of the errors",
]


def run(rounds: int) -> Report:
    """All rows of this benchmark but the alternation."""
    rows = [row for part in PARTS for row in rows_of(part, rounds, None)]
    return Report("nonlinear", NOTES, rows)


def main() -> None:
    """Run some parts only."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonlinear")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--full", action="store_true", help="also the paper's alternation")
    parser.add_argument("--problems", type=int, default=25, help="problems for --full")
    parser.add_argument("--rounds", type=int, default=5, help="repeats of every timing")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="picture of the growth")
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; there is {', '.join(PARTS)}")
    parts = options.parts or (() if options.full else PARTS)
    for part in parts:
        rows = list(rows_of(part, options.rounds, options.plot))
        Report(f"nonlinear: {part}", NOTES, rows).show()
    if options.full:
        row = alternating_row(options.problems)
        Report("nonlinear: alternating", NOTES, [row]).show()


if __name__ == "__main__":
    # Under its own name, by which `in_fresh_process` finds its functions.
    from benchmarks import nonlinear

    nonlinear.main()
