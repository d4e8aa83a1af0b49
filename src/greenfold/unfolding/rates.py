"""The linear network as a function of itself: gradients with respect to its rates.

Between steps the linear network is ẏ = R y + D u x with rates R = −A/τ and D = 1/τ, or, in
discrete time, y' = E y + F u x. What κ asks of it is Σ_n d_n a_n, the readout of the
network driven by the signal d = μ − ηψa. One sweep forward with d and one back with v give
the cotangents of E and Fu; those of R and Du follow by the adjoint of the derivative of the
matrix exponential, which is that of the transposed matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import expm_frechet

from . import schedule as sweeps
from .propagators import Propagators
from .schedule import Schedule


class Rates(NamedTuple):
    """A linear network, or the gradient with respect to it.

    Attributes
    ----------
    own : ndarray (n_neurons, n_neurons)
        R; in discrete time E.
    drive : ndarray (n_neurons, n_channels)
        D u; in discrete time F u.
    """

    own: np.ndarray
    drive: np.ndarray


def step_pullback(
    schedule: Schedule, u: np.ndarray, v: np.ndarray, d: np.ndarray
) -> list[tuple[Propagators, Rates]]:
    """Gradient of Σ_n d_n a_n with respect to E and Fu of every kind of panel.

    Parameters
    ----------
    schedule : Schedule
        Of order 0, on the host.
    u : ndarray (n_neurons, n_channels)
    v : ndarray (n_neurons,)
    d : ndarray (n_channels, n_steps)

    Returns
    -------
    list of (Propagators, Rates)
        The regular panel, and that of a shortened last step where there is one.
    """
    path = schedule.walk()
    bars = sweeps.carry_back(schedule, v)
    pushed = {id(panel): panel.F.T @ u for _, panel, _ in path}
    before = np.zeros((len(path), len(v)))
    y = np.zeros(len(v))
    for place, (step, panel, _) in enumerate(path):
        before[place] = y
        y = y @ panel.E + pushed[id(panel)] @ d[:, step]
    signal = d[:, [step for step, _, _ in path]]
    found = []
    panels = [schedule.panel] if schedule.tail is None else [schedule.panel, schedule.tail]
    for kind in panels:
        at = [place for place, (_, panel, _) in enumerate(path) if panel is kind]
        bar = bars[at].T
        found.append((kind, Rates(bar @ before[at], bar @ signal[:, at].T)))
    return found


def rates_pullback(
    schedule: Schedule, rates: Rates, u: np.ndarray, v: np.ndarray, d: np.ndarray
) -> Rates:
    """Gradient of Σ_n d_n a_n with respect to the rates of a network in continuous time.

    Parameters
    ----------
    schedule : Schedule
        Of order 0, on the host.
    rates : Rates
        R and D u of the network.
    u, v, d
        As for `step_pullback`.
    """
    n, n_channels = rates.drive.shape
    own, drive = np.zeros((n, n)), np.zeros((n, n_channels))
    for panel, bar in step_pullback(schedule, u, v, d):
        # exp of this block is [[E, F u], [0, 1]].
        block, block_bar = np.zeros((2, n + n_channels, n + n_channels))
        block[:n, :n], block[:n, n:] = rates.own, rates.drive
        block_bar[:n, :n], block_bar[:n, n:] = bar.own, bar.drive
        pulled = np.asarray(
            expm_frechet(panel.length * block.T, block_bar, compute_expm=False)
        )
        own += panel.length * pulled[:n, :n]
        drive += panel.length * pulled[:n, n:]
    return Rates(own, drive)
