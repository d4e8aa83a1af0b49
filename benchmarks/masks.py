"""Masks of a device, as shares of the bound for all masks.

ECG5000, classes 1 and 2, on the paper's networks. The bound is that of all unit vectors, so
it also holds for masks of two levels, of four and without negative entries.
"""

from __future__ import annotations

import numpy as np

from greenfold import Device, Reservoir, SampleStimuli, optimize, unfold
from greenfold.datasets import ecg5000_paper

from ._measure import Report, Row

N_NEURONS = 100
N_NETWORKS = 10
N_RANDOM = 20
#: Kinds of masks by their name in the table, with the smallest share aimed at.
KINDS = {
    "two levels, ±1": (Device(mask="sign"), 88.0),
    "four levels": (Device(mask="levels=4"), 96.5),
    "not negative": (Device(mask="nonnegative"), 86.0),
}


def run(rounds: int) -> Report:
    """Shares of every kind of mask; nothing is timed."""
    del rounds
    split = ecg5000_paper()
    stimuli = SampleStimuli(split.X_train, split.y_train)
    shares: dict[str, list[float]] = {
        name: [] for name in ("random ±1", "signs of the free optimum", *KINDS)
    }
    for seed in range(N_NETWORKS):
        network = unfold(Reservoir.random(N_NEURONS, rng=seed), n_steps=140, dt=10 / 140)
        free = optimize(network, stimuli)
        bound = free.upper_bound
        assert bound is not None
        rng = np.random.default_rng([seed, 1])
        drawn = rng.choice([-1.0, 1.0], (N_RANDOM, N_NEURONS))
        margins = [optimize(network, stimuli, u=u).soft_margin for u in drawn]
        shares["random ±1"].append(100 * float(np.mean(margins)) / bound)
        rounded = optimize(network, stimuli, u=np.where(free.u < 0, -1.0, 1.0))
        shares["signs of the free optimum"].append(100 * rounded.soft_margin / bound)
        for name, (wanted, _) in KINDS.items():
            best = optimize(network, stimuli, device=wanted, rng=0)
            shares[name].append(100 * best.soft_margin / bound)
    notes = [
        f"ECG5000, classes 1 and 2, N = {N_NEURONS}, η = 10; mean over networks 0 to "
        f"{N_NETWORKS - 1}; random masks: mean of {N_RANDOM} per network",
        "100 % is the proven bound of the free problem: no mask of any kind exceeds it",
    ]
    rows = [_row(name, values) for name, values in shares.items()]
    return Report("masks: share of the proven bound", notes, rows)


def _row(name: str, values: list[float]) -> Row:
    least = KINDS[name][1] if name in KINDS else None
    detail = {"low": min(values), "high": max(values), "each": values}
    target = "" if least is None else f"target ≥ {least:g} % each"
    met = None if least is None else min(values) >= least
    return Row(name, float(np.mean(values)), "%", target, met, detail)
