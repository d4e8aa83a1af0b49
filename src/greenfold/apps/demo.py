"""Data for `greenfold demo`: synthetic heartbeats, and a test of the unfolding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import Gain, Reservoir, simulate, unfold
from ..datasets.synthetic import synthetic_heartbeats

if TYPE_CHECKING:
    from .report.comparison import Split

#: The demo takes half a minute on two cores. T is the paper's; α is larger, so that the
#: non-linearity matters. All rows are fitted for the noise under which they are compared,
#: each with the η of its best accuracy: at one given η, some rows would look too bad.
NOISE = 0.1
N_TRAIN, N_TEST, N_STEPS = 200, 1000, 70
PARAMETERS: dict[str, Any] = {
    "n_neurons": 60,
    "alpha": 0.2,
    "eta": "cv",
    "readout_noise": NOISE,
    "certify": True,
}

ALPHAS = (0.0, 0.04, 0.08, 0.16, 0.32)
ORDERS = (0, 1, 2, 3)
#: Length of u; larger than the paper's 1, so that the non-linearity matters.
DRIVE = 3.0
SOLVER_RTOL = 1e-11


def demo_task(seed: int = 0) -> Split:
    """Return synthetic heartbeats, 200 for training and 1000 for testing."""
    from .report.comparison import Split

    X, y = synthetic_heartbeats(N_TRAIN + N_TEST, n_steps=N_STEPS, rng=seed)
    # Sorted by name, normal beats come first as in ECG5000 and get the same colour.
    names = np.where(y > 0, "normal", "premature")
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    told = "Normal and premature (ectopic) beats, made by greenfold; not patient data."
    return Split("Synthetic heartbeats", X[train], names[train], X[test], names[test], told)


def order_errors(
    n_neurons: int = 50, n_steps: int = N_STEPS, duration: float = 10.0, seed: int = 1
) -> np.ndarray:
    """Return the relative error of the unfolded states, (n_orders, n_alphas).

    The reference is an ODE solver that shares no code with the unfolding.
    """
    rng = np.random.default_rng(seed)
    weights = Reservoir.random(n_neurons, rng=rng).weights
    X, _ = synthetic_heartbeats(3, n_steps=n_steps, noise=0.0, rng=rng)
    X /= np.abs(X).max(axis=1, keepdims=True)
    u = rng.standard_normal(n_neurons)
    u *= DRIVE / np.linalg.norm(u)
    dt = duration / n_steps
    errors = np.empty((len(ORDERS), len(ALPHAS)))
    for column, alpha in enumerate(ALPHAS):
        reservoir = Reservoir(weights, gain=Gain.quadratic(alpha))
        truth = simulate(reservoir, X, u, dt, rtol=SOLVER_RTOL)
        for row, order in enumerate(ORDERS):
            kind = order if alpha else 0  # a linear network has no other order
            states = unfold(reservoir, n_steps=n_steps, dt=dt, order=kind).states(X, u)
            errors[row, column] = np.abs(states - truth).max() / np.abs(truth).max()
    return errors


def order_slopes(errors: np.ndarray) -> np.ndarray:
    """Return the log-log slope of each row of `order_errors`; theory: k + 1 at order k."""
    logs = np.log(errors[:, 1:])
    return np.polyfit(np.log(ALPHAS[1:]), logs.T, 1)[0]
