"""Synthetic series for regression: nothing here was ever measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validation as check

__all__ = ["channel_equalisation", "mackey_glass", "memory_task", "narma"]

Floats = NDArray[np.float64]


def memory_task(
    n_samples: int, delays: Any = 10, rng: np.random.Generator | int | None = None
) -> tuple[Floats, Floats]:
    """**Synthetic** white input, and itself some steps ago.

    Parameters
    ----------
    n_samples : int
    delays : int or array_like of int
        A number k stands for the delays 1 … k.
    rng : numpy Generator, int or None

    Returns
    -------
    x : ndarray (n_samples,)
        Gaussian, of unit variance.
    y : ndarray (n_samples, n_delays)
        Zero before there was input.
    """
    n_samples = check.count(n_samples, "n_samples")
    steps = np.asarray(delays)
    steps = np.arange(1, check.count(delays, "delays") + 1) if steps.ndim == 0 else steps
    if steps.dtype.kind not in "iu" or steps.min() < 0:
        raise ValueError(f"`delays` must be whole numbers of at least 0; got {delays!r}.")
    x = check.generator(rng).standard_normal(n_samples)
    y = np.zeros((n_samples, len(steps)))
    for column, step in zip(y.T, steps, strict=True):
        column[step:] = x[: n_samples - step]
    return x, y


def narma(
    n_samples: int,
    order: int = 10,
    rng: np.random.Generator | int | None = None,
) -> tuple[Floats, Floats]:
    """**Synthetic** non-linear moving average of the given order (NARMA-10).

    y_{t+1} = 0.3 y_t + 0.05 y_t Σ_{i<n} y_{t−i} + 1.5 x_{t−n+1} x_t + 0.1, with x uniform
    in [0, 0.5] (Atiya & Parlos 2000). The rare draws that diverge are drawn again.

    Parameters
    ----------
    n_samples : int
    order : int
        n; 10 is the usual one.
    rng : numpy Generator, int or None

    Returns
    -------
    x, y : ndarray (n_samples,)
        Entry t of y is y_{t+1}, which follows from inputs up to x_t.
    """
    n_samples, order = check.count(n_samples, "n_samples"), check.count(order, "order")
    generator = check.generator(rng)
    skipped = 200  # until the start is forgotten
    while True:
        x = generator.uniform(0, 0.5, n_samples + skipped)
        y = np.zeros(n_samples + skipped + 1)
        for t in range(order, n_samples + skipped):
            recent = y[t - order + 1 : t + 1].sum()
            y[t + 1] = (
                0.3 * y[t] + 0.05 * y[t] * recent + 1.5 * x[t - order + 1] * x[t] + 0.1
            )
            if y[t + 1] > 10:
                break
        else:
            return x[skipped:], y[skipped + 1 :]


def channel_equalisation(
    n_samples: int,
    noise: float = 24.0,
    rng: np.random.Generator | int | None = None,
) -> tuple[Floats, Floats]:
    """**Synthetic** signal through a non-linear channel with echoes, and the signal sent.

    Symbols d from {−3, −1, 1, 3} pass q_t = 0.08 d_{t+2} − 0.12 d_{t+1} + d_t
    + 0.18 d_{t−1} − 0.1 d_{t−2} + 0.091 d_{t−3} − 0.05 d_{t−4} + 0.04 d_{t−5}
    + 0.03 d_{t−6} + 0.01 d_{t−7} and x = q + 0.036 q² − 0.011 q³ + noise
    (Jaeger & Haas 2004).

    Parameters
    ----------
    n_samples : int
    noise : float
        Signal-to-noise ratio in decibels.
    rng : numpy Generator, int or None

    Returns
    -------
    x : ndarray (n_samples,)
        What is received.
    y : ndarray (n_samples,)
        The symbol d_{t−2}, sent two steps before.
    """
    n_samples = check.count(n_samples, "n_samples")
    generator = check.generator(rng)
    d = generator.choice([-3.0, -1.0, 1.0, 3.0], n_samples + 9)
    # Newest first: d_{t+2} … d_{t−7}.
    taps = [0.08, -0.12, 1, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01]
    q = np.convolve(d, taps, mode="valid")
    x = q + 0.036 * q**2 - 0.011 * q**3
    level = float(check.host_array(noise, "noise", ndim=(0,)))
    x = x + np.sqrt(x.var() / 10 ** (level / 10)) * generator.standard_normal(n_samples)
    # Entry t of the convolution has d[t + 9] as its newest symbol, the d_{t+2} above.
    return x, d[5 : n_samples + 5]


def mackey_glass(
    n_samples: int,
    delay: float = 17.0,
    dt: float = 1.0,
    rng: np.random.Generator | int | None = None,
) -> Floats:
    """**Synthetic** chaotic series of Mackey & Glass (1977).

    ẋ = 0.2 x(t−τ)/(1 + x(t−τ)¹⁰) − 0.1 x, by Runge–Kutta steps of 0.1 with the delayed
    value interpolated, after a thousand units of time.

    Parameters
    ----------
    n_samples : int
    delay : float
        τ; 17 is chaotic.
    dt : float
        Time between samples, a multiple of 0.1.
    rng : numpy Generator, int or None
        Draws the start.

    Returns
    -------
    ndarray (n_samples,)
    """
    n_samples = check.count(n_samples, "n_samples")
    h = 0.1
    lag = round(check.positive(delay, "delay") / h)
    every = round(check.positive(dt, "dt") / h)
    if lag < 1 or every < 1 or abs(every * h - dt) > 1e-9 or abs(lag * h - delay) > 1e-9:
        raise ValueError(
            f"`delay` and `dt` must be multiples of {h}; got {delay!r} and {dt!r}."
        )
    first = 1.2 + 0.1 * check.generator(rng).standard_normal()
    n_steps = round(1000 / h) + n_samples * every
    path = np.full(lag + 1 + n_steps, first)

    def slope(x: float, past: float) -> float:
        return 0.2 * past / (1 + past**10) - 0.1 * x

    for t in range(lag, lag + n_steps):
        x, past, later = path[t], path[t - lag], path[t - lag + 1]
        middle = (past + later) / 2
        k1 = slope(x, past)
        k2 = slope(x + h / 2 * k1, middle)
        k3 = slope(x + h / 2 * k2, middle)
        k4 = slope(x + h * k3, later)
        path[t + 1] = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return path[-n_samples * every :: every].copy()
