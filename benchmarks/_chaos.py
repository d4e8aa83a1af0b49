"""Chaotic series of several channels, integrated to a stated error, for the forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from greenfold._base import checks as check
from greenfold.datasets.synthetic import TRANSIENT, Floats, Seed


def lorenz96(n_samples: int, dt: float = 0.05, rng: Seed = None) -> Floats:
    """Integrate the Lorenz-96 ring of eight sites, ẋᵢ = (xᵢ₊₁ − xᵢ₋₂) xᵢ₋₁ − xᵢ + 8.

    Its largest Lyapunov exponent is 1.6.
    """

    def field(_: float, x: Floats) -> Floats:
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8

    start = 8 + check.generator(rng).normal(size=8)
    times = TRANSIENT + dt * np.arange(n_samples)
    how: Any = {"method": "DOP853", "t_eval": times, "rtol": 1e-12, "atol": 1e-12}
    found = solve_ivp(field, (0.0, times[-1]), start, **how)
    return np.ascontiguousarray(found.y.T)


def kuramoto_sivashinsky(n_samples: int, dt: float = 0.25, rng: Seed = None) -> Floats:
    """Integrate uₜ = −u uₓ − uₓₓ − uₓₓₓₓ on a ring of length 22, sampled at 64 points.

    The method is dealiased and pseudo-spectral, with exponential Runge–Kutta steps of order
    4 and at most 0.05 (Cox & Matthews 2002; weights by contour integrals, Kassam &
    Trefethen 2005). Errors are about 1e-8 standard deviations per sample of 0.25.
    """
    length, n = 22.0, 64
    k = 2 * np.pi / length * np.arange(n // 2 + 1)
    n_sub = int(np.ceil(dt / 0.05))
    h = dt / n_sub
    linear = k**2 - k**4
    E, E2 = np.exp(h * linear), np.exp(h * linear / 2)
    roots = np.exp(1j * np.pi * (np.arange(1, 33) - 0.5) / 32)
    z = h * linear[:, None] + roots
    Q = h * np.real(np.mean((np.exp(z / 2) - 1) / z, 1))
    f1 = h * np.real(np.mean((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3, 1))
    f2 = h * np.real(np.mean((2 + z + np.exp(z) * (z - 2)) / z**3, 1))
    f3 = h * np.real(np.mean((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3, 1))
    kept = np.arange(n // 2 + 1) < n / 3  # avoids aliasing of quadratic products

    def push(v: np.ndarray) -> np.ndarray:
        return -0.5j * k * kept * np.fft.rfft(np.fft.irfft(v, n) ** 2)

    grid = length / n * np.arange(n)
    generator = check.generator(rng)
    phases, sizes = generator.uniform(0, 2 * np.pi, 3), generator.normal(size=3)
    waves = [
        size * np.cos(2 * np.pi * (j + 1) * grid / length + phase)
        for j, (size, phase) in enumerate(zip(sizes, phases, strict=True))
    ]
    v = np.fft.rfft(np.sum(waves, axis=0)) * kept
    found = np.empty((n_samples, n))
    skipped = int(np.ceil(2 * TRANSIENT / dt))
    for sample in range(-skipped, n_samples):
        if sample >= 0:
            found[sample] = np.fft.irfft(v, n)
        for _ in range(n_sub):
            Nv = push(v)
            a = E2 * v + Q * Nv
            Na = push(a)
            b = E2 * v + Q * Na
            Nb = push(b)
            c = E2 * a + Q * (2 * Nb - Nv)
            v = E * v + f1 * Nv + 2 * f2 * (Na + Nb) + f3 * push(c)
    return found
