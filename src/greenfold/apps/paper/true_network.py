"""What projections are worth on the true network: random, linear, order 1, `Dynamics`.

The readout of each input projection is fitted to the states of the integrated network, and
all are judged on draws that no fit has seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...dynamics.dynamics import Dynamics
from ...math.margins import gaussian_soft_margin, state_moments
from ...math.sphere import maximize_on_sphere
from ...networks.gains import Gain
from ...networks.reservoir import Reservoir
from ...optimizers.run import optimize
from ...simulation import simulate
from ...stimuli.gaussian import GaussianStimuli
from ...stimuli.samples import SampleStimuli
from ...unfolding.unfolding import unfold
from .setting import expansion_judged_elsewhere, network, unit_vectors

GAINS = {
    "biased tanh": Gain.biased_tanh(0.5),
    "quadratic": Gain.quadratic(0.05),
}
#: Rows of the table: the name, and what is kept of the solution it names.
ROWS = (
    "random u, readout refitted",
    "linear optimum as it is",
    "linear u, readout refitted",
    "order-1 u, readout refitted",
    "Dynamics",
)
#: Draws of each class that are simulated to check the states that judge.
_N_SIMULATED = 25


def compared(
    seed: int,
    strength: float,
    gain: str,
    *,
    n_neurons: int = 100,
    n_steps: int = 10,
    n_draws: int = 10_000,
    n_fresh: int = 10_000,
    n_starts: int | None = None,
    tol: float = 1e-4,
    eta: float = 10.0,
) -> dict[str, Any]:
    """One network of the paper's kind and its Gaussian stimuli.

    Parameters
    ----------
    seed : int
        Of the network; the stimuli have another.
    strength : float
        ‖μ‖.
    gain : str
        A name in `GAINS`.
    n_neurons, n_steps : int
    n_draws, n_fresh : int
        Series of each class to fit, and to judge.
    n_starts : int, optional
        Of the ascent through the true network.
    tol : float
        Error allowed to the states, of fit and judge.
    eta : float

    Returns
    -------
    dict
        For each of `ROWS` κ with its standard error, the accuracy, and the share of the
        draws after which the network diverges; those are left out of the others.
    """
    reservoir = replace(network(seed, n_neurons), gain=GAINS[gain])
    stimuli = GaussianStimuli.random(
        n_steps, strength=strength, n_draws=n_draws, rng=100 + seed
    )
    dynamics = Dynamics(reservoir, n_steps=n_steps, dt=1.0, tol=tol)
    linear = optimize(dynamics.linear, stimuli, eta)
    cut = replace(reservoir, gain=Gain.polynomial(reservoir.gain.coefficients[:3]))
    expanded = unfold(cut, n_steps=n_steps, dt=1.0, order=1)
    with expansion_judged_elsewhere():
        order1 = optimize(expanded, stimuli, eta, rng=seed)
    drawn = unit_vectors(np.random.default_rng([seed, 2]), 1, n_neurons)[0]
    fit = stimuli.sample(n_draws, rng=np.random.default_rng([seed, 3]))
    fresh = stimuli.sample(n_fresh, rng=np.random.default_rng([seed, 4]))
    options: dict[str, Any] = {"n_starts": n_starts, "rng": seed}
    try:
        best = optimize(dynamics, stimuli, eta, **options)
    except FloatingPointError:
        # After some draw the network diverges at every start: fit the others.
        X, labels = fit
        for u in (linear.u, -linear.u, order1.u):
            kept = _bounded(dynamics, X, u)[1]
            X, labels = X[kept], labels[kept]
        bounded = SampleStimuli(X, labels, normalize=None)
        best = optimize(dynamics, bounded, eta, **options)
    found: dict[str, Any] = {}
    worst = 0.0
    for name, u, v in zip(
        ROWS,
        (drawn, linear.u, linear.u, order1.u, best.u),
        (None, linear.v, None, None, best.v),
        strict=True,
    ):
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
        worst = max(worst, _error(reservoir, dynamics, fresh, u))
    return {
        "seed": seed,
        "strength": strength,
        "gain": gain,
        "rows": found,
        "claimed": best.soft_margin,
        "claimed_fresh": _number(best.fresh_margin),
        "claimed_error": _number(best.fresh_error),
        "seconds": best.wall_time,
        "against_simulate": worst,
    }


def _number(value: float | None) -> float | None:
    """What JSON can hold."""
    return None if value is None or not np.isfinite(value) else float(value)


def _margin(states: np.ndarray, signs: np.ndarray, v: np.ndarray, eta: float) -> dict:
    kappa = gaussian_soft_margin(*state_moments(states, signs), v, eta).value
    z = signs * (states @ v)
    off = z - z.mean()
    parts = off - 0.5 * eta * off**2
    scatter = sum(parts[signs == s].var() * (signs == s).sum() for s in (-1, 1))
    return {"soft_margin": float(kappa), "error": float(np.sqrt(scatter)) / len(signs)}


def _bounded(
    dynamics: Dynamics, X: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """States of the series after which the network stays bounded, and which these are."""
    try:
        return dynamics.states(X, u), np.arange(len(X))
    except FloatingPointError:
        if len(X) == 1:
            return np.empty((0, dynamics.n_neurons)), np.arange(0)
    half = len(X) // 2
    before, kept_before = _bounded(dynamics, X[:half], u)
    after, kept_after = _bounded(dynamics, X[half:], u)
    return np.concatenate([before, after]), np.append(kept_before, half + kept_after)


def _error(reservoir: Reservoir, dynamics: Dynamics, fresh: tuple, u: np.ndarray) -> float:
    """Largest difference to simulated states, relative to the largest, on some draws."""
    step = max(1, len(fresh[1]) // (2 * _N_SIMULATED))
    X = fresh[0][::step]
    try:
        truth = np.asarray(simulate(reservoir, X, u, dynamics.dt, rtol=1e-8))
        states = dynamics.states(X, u)
    except FloatingPointError:  # one of them diverges
        return 0.0
    return float(np.abs(states - truth).max() / np.abs(truth).max())
