"""How close the optimum of order 1 is to that of the simulated network."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenfold import Reservoir, simulate, unfold
from greenfold.math.margins import gaussian_soft_margin, state_moments
from greenfold.math.sphere import maximize_on_sphere

from ._measure import Row
from ._nonlinear_problems import ETA, SEEDS, STRENGTHS, artificial, listed, solved

#: Number of series per class for comparing unfolded with simulated states.
N_SIMULATED = 1000


def simulated(network: Reservoir, X: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
    """Simulated states; NaN for series after which the true network diverges."""
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

    Each order has its own optimal readout, from its closed moments. The errors of κ are
    relative to the κ of the unfolding on the same series. Series after which the true
    network diverges are counted and left out.
    """
    unfolding, stimuli = artificial(seed, strength)
    optimum = solved(seed, strength)[1]
    u = optimum.u
    X, labels = stimuli.sample(N_SIMULATED, rng=np.random.default_rng([seed, 8]))
    truth = simulated(unfolding.reservoir, X, u, unfolding.dt)
    bounded = np.isfinite(truth).all(1)
    X, labels, truth = X[bounded], labels[bounded], truth[bounded]
    truth_moments = state_moments(truth, labels)
    truth_best = float(maximize_on_sphere(truth_moments[0], ETA * truth_moments[1]).value)
    assert optimum.validity is not None
    found: dict[str, Any] = {
        "diverged": 1 - float(bounded.mean()),
        "foretold": optimum.validity.soft_margin_error,
    }
    for order in (1, 2):
        at = unfold(
            unfolding.reservoir,
            n_steps=10,
            dt=1.0,
            order=order,
            tol=1e-6 if order else None,
        )
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
                        "errors": listed(errors, ".2%"),
                        "soft_margin_same_v": listed(
                            [one[f"same_v_{order}"] for one in found], "+.0%"
                        ),
                        "foretold": listed([one["foretold"] for one in found], ".0%"),
                        "soft_margin_best_v": listed(
                            [one[f"best_v_{order}"] for one in found], "+.0%"
                        ),
                        "diverged": listed([one["diverged"] for one in found], ".1%"),
                        "order_1_random_u": listed(
                            [one["error_random_u"] for one in found], ".2%"
                        ),
                    },
                )
            )
    return rows
