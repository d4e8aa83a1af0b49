"""Chaotic series for forecasts, integrated to a stated error; nothing here was measured.

Chaos multiplies every error by e per Lyapunov time, so no integrator follows one true
trajectory for long. What is stated is the error of one sample interval, relative to the
deviation of the series: one-step forecasts cannot be judged below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base import checks as check

Floats = NDArray[np.float64]

#: Time (in the unit of the equations) until the start is forgotten.
_TRANSIENT = 100.0


@dataclass(frozen=True)
class _Flow:
    """An ordinary differential equation with a chaotic attractor."""

    field: Callable[[float, Floats], Floats]
    start: Callable[[np.random.Generator], Floats]
    transient: float = _TRANSIENT

    def sample(self, n_samples: Any, dt: Any, rng: Any) -> Floats:
        """Samples (n_samples, n_channels), from a random point of the attractor on."""
        n_samples, dt = check.count(n_samples, "n_samples"), check.positive(dt, "dt")
        from scipy.integrate import solve_ivp  # a second that others need not spend

        times = self.transient + dt * np.arange(n_samples)
        found = solve_ivp(
            self.field,
            (0.0, times[-1]),
            self.start(check.generator(rng)),
            method="DOP853",
            t_eval=times,
            rtol=1e-12,  # what is read between its steps has an order less
            atol=1e-12,
        )
        if not found.success or found.y.shape[1] != n_samples:
            raise FloatingPointError(f"the series diverges: {found.message}")
        return np.ascontiguousarray(found.y.T)


def lorenz(
    n_samples: int, dt: float = 0.05, rng: np.random.Generator | int | None = None
) -> Floats:
    """Lorenz's convection, σ = 10, ρ = 28, β = 8/3; largest Lyapunov exponent 0.906.

    Parameters
    ----------
    n_samples : int
    dt : float
        Time between samples. 22 samples of 0.05 are one Lyapunov time.
    rng : numpy Generator, int or None
        Chooses where on the attractor the series begins.

    Returns
    -------
    ndarray (n_samples, 3)
        By DOP853 with a relative tolerance of 1e-12: errors of about 1e-9 deviations per
        sample.
    """

    def field(_: float, s: Floats) -> Floats:
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    return _Flow(field, lambda rng: np.array([1, 1, 25]) + rng.normal(size=3)).sample(
        n_samples, dt, rng
    )


def rossler(
    n_samples: int, dt: float = 0.5, rng: np.random.Generator | int | None = None
) -> Floats:
    """Rössler's attractor, a = b = 0.2, c = 5.7; largest Lyapunov exponent 0.071.

    Parameters
    ----------
    n_samples, dt, rng
        See `lorenz`. 28 samples of 0.5 are one Lyapunov time.

    Returns
    -------
    ndarray (n_samples, 3)
    """

    def field(_: float, s: Floats) -> Floats:
        x, y, z = s
        return np.array([-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)])

    return _Flow(field, lambda rng: rng.normal(size=3)).sample(n_samples, dt, rng)


def lorenz96(
    n_samples: int,
    dt: float = 0.05,
    rng: np.random.Generator | int | None = None,
    *,
    n_channels: int = 5,
    forcing: float = 8.0,
) -> Floats:
    """Lorenz's weather on a ring of sites: ẋ_i = (x_{i+1} − x_{i−2}) x_{i−1} − x_i + F.

    Parameters
    ----------
    n_samples, dt, rng
        See `lorenz`.
    n_channels : int
        Sites, at least 4. With five and F = 8 the largest Lyapunov exponent is about 0.5;
        with forty, 1.7.
    forcing : float
        F; chaotic from about 6 on.

    Returns
    -------
    ndarray (n_samples, n_channels)
    """
    n_channels = check.count(n_channels, "n_channels", minimum=4)

    def field(_: float, x: Floats) -> Floats:
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + forcing

    def start(rng: np.random.Generator) -> Floats:
        return forcing + rng.normal(size=n_channels)

    return _Flow(field, start).sample(n_samples, dt, rng)


def mackey_glass(
    n_samples: int,
    delay: float = 17.0,
    dt: float = 1.0,
    rng: np.random.Generator | int | None = None,
) -> Floats:
    """The Mackey–Glass equation ẋ = 0.2 x(t−τ) / (1 + x(t−τ)¹⁰) − 0.1 x.

    Parameters
    ----------
    n_samples, dt, rng
        See `lorenz`.
    delay : float
        τ. With 17 the largest Lyapunov exponent is about 0.006: 167 samples of 1 are one
        Lyapunov time.

    Returns
    -------
    ndarray (n_samples,)
        By the classical Runge–Kutta method with steps of at most 0.1 and cubic Hermite
        interpolation of the history: errors of about 1e-8 deviations per sample of 1.
    """
    n_samples, dt = check.count(n_samples, "n_samples"), check.positive(dt, "dt")
    delay = check.positive(delay, "delay")
    n_sub = int(np.ceil(dt / min(0.1, delay / 2)))
    h = dt / n_sub
    lag = delay / h
    back = int(np.floor(lag))
    part = lag - back  # the delayed time lies this far before a step end
    skipped = int(np.ceil(10 * _TRANSIENT / dt))
    total = (n_samples + skipped) * n_sub
    offset = back + 2
    x, slope = np.empty(total + offset + 1), np.zeros(total + offset + 1)
    x[: offset + 1] = 1.2 + 0.2 * check.generator(rng).uniform(-1, 1)

    def delayed(index: int, ahead: float) -> float:
        # Where time index·h + ahead·h − delay lies between two step ends.
        place = ahead - part
        first = index - back + int(np.floor(place))
        s = place - np.floor(place)
        if s == 0 or first < offset:  # the history is constant
            return x[first]
        a, b = x[first], x[first + 1]
        c, d = h * slope[first], h * slope[first + 1]
        return a + s * (c + s * (3 * (b - a) - 2 * c - d + s * (2 * (a - b) + c + d)))

    def rate(value: float, before: float) -> float:
        return 0.2 * before / (1 + before**10) - 0.1 * value

    for i in range(offset, total + offset):
        now, half, then = delayed(i, 0.0), delayed(i, 0.5), delayed(i, 1.0)
        k1 = rate(x[i], now)
        k2 = rate(x[i] + h / 2 * k1, half)
        k3 = rate(x[i] + h / 2 * k2, half)
        k4 = rate(x[i] + h * k3, then)
        slope[i] = k1
        x[i + 1] = x[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        slope[i + 1] = rate(x[i + 1], then)
    return x[offset + skipped * n_sub : offset + total : n_sub].copy()


def kuramoto_sivashinsky(
    n_samples: int,
    dt: float = 0.25,
    rng: np.random.Generator | int | None = None,
    *,
    length: float = 22.0,
    n_channels: int = 64,
) -> Floats:
    """The Kuramoto–Sivashinsky equation u_t = −u u_x − u_xx − u_xxxx on a ring.

    Parameters
    ----------
    n_samples, dt, rng
        See `lorenz`.
    length : float
        L of the ring. With 22 the largest Lyapunov exponent is about 0.05.
    n_channels : int
        Points at which the profile is sampled, an even number.

    Returns
    -------
    ndarray (n_samples, n_channels)
        By a pseudo-spectral method, dealiased, with exponential Runge–Kutta steps of order
        4 (Cox & Matthews 2002; weights by contour integrals, Kassam & Trefethen 2005) of at
        most 0.05: errors of about 1e-8 deviations per sample of 0.25.
    """
    n_samples, dt = check.count(n_samples, "n_samples"), check.positive(dt, "dt")
    length = check.positive(length, "length")
    n = check.count(n_channels, "n_channels", minimum=8)
    check.must(n % 2 == 0, "n_channels", "be even", n)
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
    kept = np.arange(n // 2 + 1) < n / 3  # a product of two is then not aliased

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
    skipped = int(np.ceil(2 * _TRANSIENT / dt))
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
