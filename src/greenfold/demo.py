"""Unfolding against simulation, in the terminal: `python -m greenfold.demo`.

The network is run twice on synthetic heartbeats: by the unfolding, and by an ODE solver
that shares no code with it. Each order k of the expansion in the non-linearity α must
leave an error that falls as α^(k+1).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .reservoir import Gain, Reservoir
from .simulation import simulate
from .unfolding import unfold

N_NEURONS = 50
N_STEPS = 70
DURATION = 10.0  # the paper's T, with its tau = 0.25 and g = 0.9
ALPHAS = (0.0, 0.04, 0.08, 0.16, 0.32)
ORDERS = (0, 1, 2, 3)
#: Length of u; larger than the paper's 1 so that the non-linearity is felt.
DRIVE = 3.0
SOLVER_RTOL = 1e-11
#: Networks and stimuli are the same every time.
SEED = 1


def heartbeats(n_cases: int, n_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Smooth heartbeat-like pulses: small wave, sharp peak with a dip, broad wave.

    Parameters
    ----------
    n_cases, n_steps : int
    rng : numpy Generator
        Jitters the time, width and height of every wave.

    Returns
    -------
    ndarray (n_cases, n_steps)
        Each series has a largest magnitude of 1.
    """
    time_axis = np.linspace(0, 1, n_steps)
    # Height, centre and width of the P, R, S and T waves, in fractions of the series.
    waves = np.array(
        [[0.2, 0.2, 0.04], [1.0, 0.38, 0.02], [-0.4, 0.44, 0.025], [0.35, 0.7, 0.07]]
    )
    jitter = 1 + 0.1 * rng.standard_normal((n_cases, *waves.shape))
    height, centre, width = np.moveaxis((waves * jitter)[..., None], 2, 0)
    series = (height * np.exp(-(((time_axis - centre) / width) ** 2) / 2)).sum(axis=1)
    return series / np.abs(series).max(axis=1, keepdims=True)


def _relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest deviation as a fraction of the largest true value."""
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    """Median time of one call."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def _projection(rng: np.random.Generator) -> np.ndarray:
    vector = rng.standard_normal(N_NEURONS)
    return vector / np.linalg.norm(vector)


def order_errors() -> np.ndarray:
    """Relative error of the states at each order, for each α.

    Returns
    -------
    ndarray (n_orders, n_alphas)
        Against the ODE solver.
    """
    rng = np.random.default_rng(SEED)
    weights = Reservoir.random(N_NEURONS, rng=rng).weights
    X, u = heartbeats(3, N_STEPS, rng), DRIVE * _projection(rng)
    errors = np.empty((len(ORDERS), len(ALPHAS)))
    for column, alpha in enumerate(ALPHAS):
        reservoir = Reservoir(weights, gain=Gain.quadratic(alpha))
        truth = simulate(reservoir, X, u, DURATION / N_STEPS, rtol=SOLVER_RTOL)
        for row, order in enumerate(ORDERS):
            unfolding = unfold(
                reservoir, n_steps=N_STEPS, dt=DURATION / N_STEPS, order=order
            )
            errors[row, column] = _relative_error(unfolding.states(X, u), truth)
    return errors


def _print_orders() -> None:
    errors = order_errors()
    print(
        f"1. Unfolded states against the ODE solver (rtol {SOLVER_RTOL:g}), relative error"
    )
    heads = "".join(f"{f'α = {alpha:g}':>11}" for alpha in ALPHAS)
    print(f"   order{heads}   log-log slope")
    for order, row in zip(ORDERS, errors, strict=True):
        # At α = 0 the network is linear and every order exact; no power law there.
        slope = np.polyfit(np.log(ALPHAS[1:]), np.log(row[1:]), 1)[0]
        cells = "".join(f"{error:11.1e}" for error in row)
        print(f"   {order:5d}{cells}   {slope:.2f} (theory {order + 1})")


def _print_kernels() -> None:
    rng = np.random.default_rng(SEED)
    dt = DURATION / N_STEPS
    X, u, v = heartbeats(100, N_STEPS, rng), _projection(rng), _projection(rng)
    print(f"2. The same network collapsed into kernels, {len(X)} heartbeats, α = 0.05")
    reservoir = Reservoir.random(N_NEURONS, gain=Gain.quadratic(0.05), rng=rng)
    simulated_in = _seconds(lambda: simulate(reservoir, X, u, dt, rtol=1e-6), 1)
    for order in (0, 1):
        unfolding = unfold(reservoir, n_steps=N_STEPS, dt=dt, order=order)
        kernel = unfolding.kernels(u, v)
        agreement = _relative_error(kernel.decision_values(X), unfolding.states(X, u) @ v)
        taken = _seconds(lambda kernel=kernel: kernel.decision_values(X), 21)
        print(
            f"   order {order}: kernels agree with states to {agreement:.0e}; "
            f"predicting takes {1e3 * taken:.2f} ms,\n"
            f"            the simulation {simulated_in:.2f} s at a tolerance of 1e-6 "
            f"({simulated_in / taken:,.0f} times longer)"
        )


def main() -> None:
    """Print the demonstration."""
    print(
        f"greenfold: {N_NEURONS} neurons, tau = 0.25, g = 0.9, "
        f"heartbeats of {N_STEPS} steps over T = {DURATION:g}\n"
    )
    _print_orders()
    print()
    _print_kernels()


if __name__ == "__main__":
    main()
