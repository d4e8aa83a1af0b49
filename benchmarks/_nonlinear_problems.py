"""The problems that the non-linear benchmarks share.

Networks are the draws of N(0, g²/N) with the seeds 0, 1, 2, …; a non-linear network must be
stable, so unstable seeds (14 and 19 of the first 20) are replaced by the next ones. Random
input projections come from separate streams.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from greenfold import (
    ExpansionWarning,
    Gain,
    GaussianStimuli,
    Projections,
    Reservoir,
    Unfolding,
    optimize,
    unfold,
)

N_NEURONS, TAU, G, ETA, DURATION, ALPHA = 100, 0.25, 0.9, 10.0, 10.0, 0.05
STRENGTHS, SEEDS = (0.19, 0.30, 0.52, 0.76, 1.0), range(5)


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
    """`optimize`, with its verdict on the expansion in the result instead of printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpansionWarning)
        return optimize(unfolding, stimuli, ETA, *arguments, **options)


@cache
def solved(seed: int, strength: float) -> tuple[Projections, Projections]:
    """Linear optimum with its bound, and the non-linear one, of an artificial problem."""
    unfolding, stimuli = artificial(seed, strength)
    return solve(unfolding.linear, stimuli), solve(unfolding, stimuli, rng=[seed, 6])


def listed(values: Any, form: str = ".3g") -> str:
    """Figures one after another, one per network."""
    return " ".join(f"{value:{form}}" for value in values)
