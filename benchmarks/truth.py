"""Projections judged on the true network: biased tanh, the paper's networks and stimuli.

``python -m benchmarks.truth [n_networks] [n_neurons] [n_draws]`` prints κ and accuracy on
fresh draws run by `simulate`, for the linear optimum with its own readout, its u with a
refitted readout, a random u with a refitted readout, and the optimum through `Dynamics`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from greenfold import Dynamics, Gain, GaussianStimuli, Reservoir, optimize, simulate
from greenfold.margins import gaussian_soft_margin, state_moments
from greenfold.sphere import maximize_on_sphere

ETA, BIAS, STRENGTH = 10.0, 0.5, 0.19
N_STEPS, DT = 10, 1.0
#: Of the optimum; κ is judged by `simulate` anyhow.
TOL = 1e-2


def judged(network, X, labels, u, v=None, fitted=None) -> tuple[float, float]:
    """κ and accuracy of simulated states; v is refitted to other series where not given."""
    if v is None:
        others, signs = fitted
        M, Sigma = state_moments(simulate(network, others, u, DT, rtol=1e-4), signs)
        v = maximize_on_sphere(M, ETA * Sigma).v
    states = simulate(network, X, u, DT, rtol=1e-4)
    M, Sigma = state_moments(states, labels)
    accuracy = float((np.sign(states @ v) == labels).mean())
    return gaussian_soft_margin(M, Sigma, v, ETA).value, accuracy


def table(n_networks: int = 3, n_neurons: int = 100, n_draws: int = 5000) -> None:
    """Print the table, one network after the other."""
    for seed in range(n_networks):
        started = time.perf_counter()
        rng = np.random.default_rng([seed, 7])
        gain = Gain.biased_tanh(BIAS)
        network = Reservoir.random(n_neurons, gain=gain, rng=seed)
        stimuli = GaussianStimuli.random(
            N_STEPS, strength=STRENGTH, n_draws=n_draws, rng=100 + seed
        )
        dynamics = Dynamics(network, n_steps=N_STEPS, dt=DT, tol=TOL)
        linear = optimize(dynamics.linear, stimuli, ETA)
        best = optimize(dynamics, stimuli, ETA, n_starts=2, max_iter=40, rng=rng)
        drawn = rng.standard_normal(n_neurons)
        drawn /= np.linalg.norm(drawn)
        fresh = stimuli.sample(n_draws, rng=rng)
        fitted = stimuli.sample(n_draws, rng=rng)
        found = {
            "linear optimum as it is": judged(network, *fresh, linear.u, linear.v),
            "its u, refitted": judged(network, *fresh, linear.u, fitted=fitted),
            "random u, refitted": judged(network, *fresh, drawn, fitted=fitted),
            "Dynamics": judged(network, *fresh, best.u, best.v),
        }
        print(f"network {seed} ({time.perf_counter() - started:.0f} s)")
        for name, (kappa, accuracy) in found.items():
            print(f"  {name:26} κ {kappa:8.4f}  accuracy {accuracy:6.1%}")
        print(
            f"  claimed by Dynamics        κ {best.soft_margin:8.4f}, on fresh draws "
            f"{best.fresh_margin:.4f} ± {best.fresh_error:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    table(*(int(value) for value in sys.argv[1:]))
