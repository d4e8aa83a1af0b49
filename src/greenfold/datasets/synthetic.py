"""Synthetic series for demonstrations and tests; nothing here was ever measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base import checks as check

Floats = NDArray[np.float64]
Seed = np.random.Generator | int | None


def memory_task(
    n_samples: int, delays: Any = 10, rng: Seed = None
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
    whole = steps.dtype.kind in "iu" and steps.min() >= 0
    check.must(whole, "delays", "be whole numbers of at least 0", repr(delays))
    x = check.generator(rng).standard_normal(n_samples)
    y = np.zeros((n_samples, len(steps)))
    for column, step in zip(y.T, steps, strict=True):
        column[step:] = x[: n_samples - step]
    return x, y


def narma(n_samples: int, order: int = 10, rng: Seed = None) -> tuple[Floats, Floats]:
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
            decay = 0.3 * y[t] + 0.05 * y[t] * y[t - order + 1 : t + 1].sum()
            y[t + 1] = decay + 1.5 * x[t - order + 1] * x[t] + 0.1
            if y[t + 1] > 10:
                break
        else:
            return x[skipped:], y[skipped + 1 :]


def channel_equalisation(
    n_samples: int, noise: float = 24.0, rng: Seed = None
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
    x, y : ndarray (n_samples,)
        What is received, and the symbol d_{t−2}, sent two steps before.
    """
    n_samples = check.count(n_samples, "n_samples")
    generator = check.generator(rng)
    d = generator.choice([-3.0, -1.0, 1.0, 3.0], n_samples + 9)
    # Newest first: d_{t+2} … d_{t−7}.
    taps = [0.08, -0.12, 1, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01]
    q = np.convolve(d, taps, mode="valid")
    x = q + 0.036 * q**2 - 0.011 * q**3
    level = check.number(noise, "noise")
    x = x + np.sqrt(x.var() / 10 ** (level / 10)) * generator.standard_normal(n_samples)
    # Entry t of the convolution has d[t + 9] as its newest symbol, the d_{t+2} above.
    return x, d[5 : n_samples + 5]


# Waves P, Q, R, S and T, each a Gaussian bump: height in mV, centre, standard deviation,
# times in fractions of the beat. The normal values follow the textbook lead II; sums of
# Gaussians are the usual model of the surface ECG (McSharry et al. 2003, IEEE Trans.
# Biomed. Eng. 50, 289, doi:10.1109/TBME.2003.808805).
_NORMAL = (
    (0.15, 0.20, 0.025),
    (-0.12, 0.37, 0.012),
    (1.10, 0.40, 0.014),
    (-0.25, 0.43, 0.014),
    (0.32, 0.66, 0.050),
)
# A premature ventricular contraction: no P, an early, broad QRS, T opposite to it.
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
# of both; the weight of the ectopic part is uniform from here to 1. It is what keeps the
# problem from being solved perfectly by a linear classifier.
_LEAST_ECTOPIC = 0.15


def synthetic_heartbeats(
    n_cases: int,
    n_steps: int = 140,
    ectopic_fraction: float = 0.5,
    noise: float = 0.1,
    rng: Seed = None,
) -> tuple[Floats, NDArray[np.int64]]:
    """Draw **synthetic** heartbeats, normal and ectopic, of about the look of ECG5000.

    No patient's data: each beat is a sum of five Gaussian bumps (P, Q, R, S, T) whose
    heights, times and widths vary, on a slowly wandering baseline with white noise. Ectopic
    beats lack the P wave, have a broad and early QRS complex and an inverted T wave, to a
    degree that varies from a faint fusion beat to a full premature contraction.

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
        The beats in random order. Not normalised.
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


def _beats(waves: Any, n_cases: int, time: Floats, rng: np.random.Generator) -> Floats:
    """Sums of bumps that vary from beat to beat, shape (n_cases, n_steps)."""
    heights, centres, widths = np.array(waves).T
    shape = (n_cases, len(heights))
    heights = heights * (1.0 + _HEIGHT_SPREAD * rng.standard_normal(shape))
    centres = centres + _CENTRE_SPREAD * rng.standard_normal(shape)
    centres = centres + _BEAT_SHIFT * rng.standard_normal((n_cases, 1))
    # Log-normal, so that no width is ever zero or negative.
    widths = widths * np.exp(_WIDTH_SPREAD * rng.standard_normal(shape))
    X = np.zeros((n_cases, len(time)))
    for wave in zip(heights.T, centres.T, widths.T, strict=True):
        height, centre, width = (one[:, np.newaxis] for one in wave)
        X += height * np.exp(-0.5 * ((time - centre) / width) ** 2)
    return X
