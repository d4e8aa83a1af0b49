"""Synthetic series for demonstrations and tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base import checks as check

Floats = NDArray[np.float64]
Seed = np.random.Generator | int | None


def memory_task(
    n_samples: int, delays: ArrayLike = 10, rng: Seed = None
) -> tuple[Floats, Floats]:
    """Draw **synthetic** white input, and as targets the same input some steps ago.

    Parameters
    ----------
    n_samples : int
    delays : int or array_like of int
        A number k means the delays 1 … k.
    rng : numpy Generator, int or None

    Returns
    -------
    x : ndarray (n_samples,)
        Gaussian input of unit variance.
    y : ndarray (n_samples, n_delays)
        Delayed input; zero before the input begins.
    """
    n_samples = check.count(n_samples, "n_samples")
    steps = np.asarray(delays)
    steps = np.arange(1, check.count(delays, "delays") + 1) if steps.ndim == 0 else steps
    whole = steps.dtype.kind in "iu" and steps.min() >= 0
    check.must(whole, "delays", "be whole numbers of at least 0", repr(delays))
    x = check.generator(rng).standard_normal(n_samples)
    y = np.zeros((n_samples, len(steps)))
    for column, step in zip(y.T, steps, strict=True):
        column[step:] = x[: n_samples - step]
    return x, y


def narma(n_samples: int, order: int = 10, rng: Seed = None) -> tuple[Floats, Floats]:
    """Draw a **synthetic** non-linear moving average of the given order (NARMA-10).

    y(t+1) = 0.3 y(t) + 0.05 y(t) [y(t) + … + y(t−n+1)] + 1.5 x(t−n+1) x(t) + 0.1, with x
    uniform in [0, 0.5] (Atiya & Parlos 2000). The rare draws that diverge are drawn again.

    Parameters
    ----------
    n_samples : int
    order : int
        Order n; usually 10.
    rng : numpy Generator, int or None

    Returns
    -------
    x, y : ndarray (n_samples,)
        Entry t of y is y(t+1), which follows from inputs up to x(t).
    """
    n_samples, order = check.count(n_samples, "n_samples"), check.count(order, "order")
    generator = check.generator(rng)
    skipped = 200  # until the initial state is forgotten
    while True:
        x = generator.uniform(0, 0.5, n_samples + skipped)
        y = np.zeros(n_samples + skipped + 1)
        for t in range(order, n_samples + skipped):
            decay = 0.3 * y[t] + 0.05 * y[t] * y[t - order + 1 : t + 1].sum()
            y[t + 1] = decay + 1.5 * x[t - order + 1] * x[t] + 0.1
            if y[t + 1] > 10:
                break
        else:
            return x[skipped:], y[skipped + 1 :]


def channel_equalisation(
    n_samples: int, noise: float = 24.0, rng: Seed = None
) -> tuple[Floats, Floats]:
    """Draw a **synthetic** signal after a non-linear channel with echoes, and its source.

    Symbols d from {−3, −1, 1, 3} pass through q(t) = 0.08 d(t+2) − 0.12 d(t+1) + d(t) +
    0.18 d(t−1) − 0.1 d(t−2) + 0.091 d(t−3) − 0.05 d(t−4) + 0.04 d(t−5) + 0.03 d(t−6) +
    0.01 d(t−7) and x = q + 0.036 q² − 0.011 q³ + noise (Jaeger & Haas 2004).

    Parameters
    ----------
    n_samples : int
    noise : float
        Signal-to-noise ratio in decibels.
    rng : numpy Generator, int or None

    Returns
    -------
    x, y : ndarray (n_samples,)
        The received signal, and the symbol d(t−2) sent two steps before.
    """
    n_samples = check.count(n_samples, "n_samples")
    generator = check.generator(rng)
    d = generator.choice([-3.0, -1.0, 1.0, 3.0], n_samples + 9)
    # Newest first: d(t+2) … d(t−7).
    taps = [0.08, -0.12, 1, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01]
    q = np.convolve(d, taps, mode="valid")
    x = q + 0.036 * q**2 - 0.011 * q**3
    level = check.number(noise, "noise")
    x = x + np.sqrt(x.var() / 10 ** (level / 10)) * generator.standard_normal(n_samples)
    # The newest symbol in entry t of the convolution is d[t + 9], the d(t+2) above.
    return x, d[5 : n_samples + 5]


# Waves P, Q, R, S and T, each a Gaussian bump: height in mV, centre and standard deviation,
# with times in fractions of the beat. The normal values follow the textbook lead II; sums
# of Gaussians are the usual model of the surface ECG (McSharry et al. 2003, IEEE Trans.
# Biomed. Eng. 50, 289, doi:10.1109/TBME.2003.808805).
_NORMAL = (
    (0.15, 0.20, 0.025),
    (-0.12, 0.37, 0.012),
    (1.10, 0.40, 0.014),
    (-0.25, 0.43, 0.014),
    (0.32, 0.66, 0.050),
)
# A premature ventricular contraction: no P, an early, broad QRS and an inverted T.
_ECTOPIC = (
    (0.00, 0.20, 0.025),
    (-0.10, 0.31, 0.025),
    (1.00, 0.38, 0.040),
    (-0.45, 0.47, 0.035),
    (-0.30, 0.68, 0.060),
)
# Beat-to-beat variability, as relative or absolute standard deviations.
_HEIGHT_SPREAD, _WIDTH_SPREAD, _CENTRE_SPREAD = 0.20, 0.12, 0.010
_BEAT_SHIFT, _WANDER = 0.015, 0.15
# Many ectopic beats meet a normal one on its way ("fusion beats") and look like a mixture
# of both; the weight of the ectopic part is uniform from here to 1. These beats keep a
# linear classifier from being perfect.
_LEAST_ECTOPIC = 0.15


def synthetic_heartbeats(
    n_cases: int,
    n_steps: int = 140,
    ectopic_fraction: float = 0.5,
    noise: float = 0.1,
    rng: Seed = None,
) -> tuple[Floats, NDArray[np.int64]]:
    """Draw **synthetic** heartbeats, normal and ectopic, similar to ECG5000.

    The beats contain no patient's data. Each beat is a sum of five Gaussian bumps (P, Q, R,
    S, T) whose heights, times and widths vary, on a slowly wandering baseline with white
    noise. Ectopic beats lack the P wave and have a broad, early QRS complex and an inverted
    T wave, to a degree that varies from a faint fusion beat to a full premature
    contraction.

    Parameters
    ----------
    n_cases, n_steps : int
        Number of beats, and samples per beat.
    ectopic_fraction : float, default 0.5
        Share of ectopic beats; their number is ``round(ectopic_fraction * n_cases)``.
    noise : float, default 0.1
        Standard deviation of the white noise; an R peak is about 1.1 high. With the
        default a linear classifier is good but not perfect.
    rng : numpy Generator, int or None, default None

    Returns
    -------
    X : ndarray of shape (n_cases, n_steps)
        The beats in random order, not normalised.
    y : ndarray of shape (n_cases,)
        +1 for a normal and -1 for an ectopic beat, as in :func:`ecg5000_paper`.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> X, y = synthetic_heartbeats(10, ectopic_fraction=0.3, rng=0)
    >>> X.shape, int((y == -1).sum())
    ((10, 140), 3)
    """
    n_cases, n_steps = check.count(n_cases, "n_cases"), check.count(n_steps, "n_steps")
    ok, share = 0.0 <= ectopic_fraction <= 1.0, repr(ectopic_fraction)
    check.must(ok, "ectopic_fraction", "lie between 0 and 1", share)
    check.must(0.0 <= noise < np.inf, "noise", "be finite and not negative", repr(noise))
    rng = check.generator(rng)
    ectopic = np.zeros(n_cases, dtype=bool)
    ectopic[: round(ectopic_fraction * n_cases)] = True
    rng.shuffle(ectopic)
    weight = np.where(ectopic, rng.uniform(_LEAST_ECTOPIC, 1.0, n_cases), 0.0)[:, None]
    time = np.linspace(0.0, 1.0, n_steps)
    normal, premature = (_beats(one, n_cases, time, rng) for one in (_NORMAL, _ECTOPIC))
    # The baseline drifts slowly, as from breathing: a third of a period per beat.
    phase = rng.uniform(0.0, 2.0 * np.pi, (n_cases, 1))
    drift = _WANDER * rng.standard_normal((n_cases, 1))
    drift = drift * np.sin(2.0 * np.pi * time / 3.0 + phase)
    X = (1.0 - weight) * normal + weight * premature + drift
    X = X + noise * rng.standard_normal((n_cases, n_steps))
    return X, np.where(ectopic, -1, 1).astype(np.int64)


def _beats(waves: ArrayLike, n: int, time: Floats, rng: np.random.Generator) -> Floats:
    """Return sums of bumps that vary from beat to beat, shape (n, n_steps)."""
    heights, centres, widths = np.array(waves).T
    shape = (n, len(heights))
    heights = heights * (1.0 + _HEIGHT_SPREAD * rng.standard_normal(shape))
    centres = centres + _CENTRE_SPREAD * rng.standard_normal(shape)
    centres = centres + _BEAT_SHIFT * rng.standard_normal((n, 1))
    # Log-normal, so that no width is ever zero or negative.
    widths = widths * np.exp(_WIDTH_SPREAD * rng.standard_normal(shape))
    X = np.zeros((n, len(time)))
    for wave in zip(heights.T, centres.T, widths.T, strict=True):
        height, centre, width = (one[:, np.newaxis] for one in wave)
        X += height * np.exp(-0.5 * ((time - centre) / width) ** 2)
    return X


# Chaotic series for forecasts, integrated to a stated error. Chaos multiplies each error by
# e per Lyapunov time, so no integrator follows one true trajectory for long. The stated
# error is the error of one sample interval, relative to the standard deviation of the
# series. One-step forecasts cannot be judged below this error.

#: Time until the initial state is forgotten, in the unit of the equations.
TRANSIENT = 100.0


def lorenz(n_samples: int, dt: float = 0.05, rng: Seed = None) -> Floats:
    """Integrate Lorenz's convection model, σ = 10, ρ = 28, β = 8/3.

    Parameters
    ----------
    n_samples : int
    dt : float
        Time between samples. The Lyapunov exponent is 0.906: one Lyapunov time is 22
        samples of 0.05.
    rng : numpy Generator, int or None
        Random generator or seed that sets the starting point on the attractor.

    Returns
    -------
    ndarray (n_samples, 3)
        Samples by DOP853 with a relative tolerance of 1e-12. Errors are about 1e-9 standard
        deviations per sample.
    """

    def field(_: float, s: Floats) -> Floats:
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    n_samples, dt = check.count(n_samples, "n_samples"), check.positive(dt, "dt")
    from scipy.integrate import solve_ivp  # takes a second to import

    start = np.array([1, 1, 25]) + check.generator(rng).normal(size=3)
    times = TRANSIENT + dt * np.arange(n_samples)
    # Tight tolerances, because the interpolation between steps is one order lower.
    how: Any = {"method": "DOP853", "t_eval": times, "rtol": 1e-12, "atol": 1e-12}
    found = solve_ivp(field, (0.0, times[-1]), start, **how)
    if not found.success or found.y.shape[1] != n_samples:
        raise FloatingPointError(f"the series diverges: {found.message}")
    return np.ascontiguousarray(found.y.T)


def mackey_glass(
    n_samples: int, delay: float = 17.0, dt: float = 1.0, rng: Seed = None
) -> Floats:
    """Integrate the Mackey–Glass equation ẋ = 0.2 x(t−τ) / (1 + x(t−τ)¹⁰) − 0.1 x.

    Parameters
    ----------
    n_samples, dt, rng
        See `lorenz`.
    delay : float
        Delay τ. With 17, the largest Lyapunov exponent is about 0.006: one Lyapunov time is
        167 samples of 1.

    Returns
    -------
    ndarray (n_samples,)
        Samples by the classical Runge–Kutta method with steps of at most 0.1 and cubic
        Hermite interpolation of the history. Errors are about 1e-8 standard deviations per
        sample of 1.
    """
    n_samples, dt = check.count(n_samples, "n_samples"), check.positive(dt, "dt")
    delay = check.positive(delay, "delay")
    n_sub = int(np.ceil(dt / min(0.1, delay / 2)))
    h = dt / n_sub
    lag = delay / h
    back = int(np.floor(lag))
    part = lag - back  # the delayed time is this far before the end of a step
    skipped = int(np.ceil(10 * TRANSIENT / dt))
    total = (n_samples + skipped) * n_sub
    offset = back + 2
    x, slope = np.empty(total + offset + 1), np.zeros(total + offset + 1)
    x[: offset + 1] = 1.2 + 0.2 * check.generator(rng).uniform(-1, 1)

    def delayed(index: int, ahead: float) -> float:
        # Interpolate at the time index·h + ahead·h − delay, between the ends of two steps.
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
