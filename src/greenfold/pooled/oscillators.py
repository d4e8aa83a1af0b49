"""Damped oscillators: the weights of a network whose modes are chosen, not drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _validation as check

__all__ = ["decay_and_frequency", "oscillator_weights"]


def oscillator_weights(
    decay_times: Any, frequencies: Any, tau: float | None = None
) -> tuple[np.ndarray, float]:
    """Weights of a network of independent damped oscillators.

    Oscillator j is a pair of neurons with the block W_j = [[a, −b], [b, a]], a = 1 − τ/T_j
    and b = τ ω_j. Its eigenvalues 1 − τ/T_j ± iτω_j make the mode of τ ẏ = −y + W y
    (paper, `eom_network`) decay as exp(−t/T_j) and turn by ω_j per unit of time, exactly
    and for every τ.

    Parameters
    ----------
    decay_times : array_like (n_oscillators,)
        T_j > 0, in the unit of time that the stimuli use.
    frequencies : array_like (n_oscillators,)
        Angular frequencies ω_j ≥ 0, in radians per unit of time.
    tau : float, optional
        Time constant of the neurons; the shortest decay time by default, so that no neuron
        inhibits itself.

    Returns
    -------
    weights : ndarray (2 n_oscillators, 2 n_oscillators)
        Block-diagonal: neurons 2j and 2j + 1 are oscillator j.
    tau : float

    Examples
    --------
    >>> from greenfold import Reservoir
    >>> from greenfold.pooled import oscillator_weights
    >>> weights, tau = oscillator_weights([2.0, 8.0], [1.0, 0.5])
    >>> Reservoir(weights, tau).modes().time_constants.tolist()
    [8.0, 8.0, 2.0, 2.0]
    """
    T = check.host_array(decay_times, "decay_times", ndim=(1,))
    omega = check.host_array(frequencies, "frequencies", ndim=(1,))
    if T.shape != omega.shape:
        raise ValueError(
            "`decay_times` and `frequencies` must have one entry per oscillator each; got "
            f"{len(T)} and {len(omega)}."
        )
    if T.min() <= 0:
        raise ValueError(f"`decay_times` must be positive; got {T.min():g}.")
    if omega.min() < 0:
        raise ValueError(f"`frequencies` must not be negative; got {omega.min():g}.")
    tau = float(T.min()) if tau is None else check.positive(tau, "tau")
    weights = np.zeros((2 * len(T), 2 * len(T)))
    even = 2 * np.arange(len(T))
    weights[even, even] = weights[even + 1, even + 1] = 1 - tau / T
    weights[even + 1, even] = tau * omega
    weights[even, even + 1] = -tau * omega
    return weights, tau


def decay_and_frequency(weights: Any, tau: float) -> tuple[np.ndarray, np.ndarray]:
    """Decay times and angular frequencies of the modes of a network.

    Parameters
    ----------
    weights : array_like (n_neurons, n_neurons)
        W of τ ẏ = −y + W y, all of whose modes decay.
    tau : float

    Returns
    -------
    decay_times, frequencies : ndarray (n_modes,)
        One entry for each real eigenvalue and for each pair of complex ones, slowest first.
    """
    rate = (np.linalg.eigvals(check.square_weights(weights)) - 1) / check.positive(
        tau, "tau"
    )
    rate = rate[np.imag(rate) >= 0]
    if np.real(rate).max() >= 0:
        raise ValueError(
            "`weights` have a mode that does not decay: an eigenvalue of real part "
            f"{1 + tau * np.real(rate).max():.4g}, and it must be below 1."
        )
    rate = rate[np.argsort(-np.real(rate), kind="stable")]
    return -1 / np.real(rate), np.imag(rate)
