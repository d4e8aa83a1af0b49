"""Gradient of a function of the collapsed kernels a and C with respect to u.

For a fixed readout v the kernels depend on u through the pulse responses only:
C = Σ_k R_kᵀ diag(s_k) R_k with R_k the responses at the nodes of panel k to a pulse in each
step so far, and s_k the readout carried back to that panel. The adjoint is one matrix
product per panel, several times cheaper than that of the kernels of all neurons.
"""

from __future__ import annotations

import numpy as np

from .kernels import sweep_back
from .volterra import Response, pulse_adjoint


def pullback_collapsed(
    response: Response, v: np.ndarray, a_bar: np.ndarray, C_bar: np.ndarray | None
) -> np.ndarray:
    """Gradient with respect to u of a function of z = a·x + xᵀCx.

    Parameters
    ----------
    response : Response
        On the host, read at the ends of steps.
    v : ndarray (n_neurons,)
    a_bar : ndarray (n_channels, n_steps)
        Cotangent of the linear kernel; steps after the readout are ignored.
    C_bar : ndarray (n_channels, n_steps, n_channels, n_steps) or None
        Cotangent of the quadratic kernel, symmetric.

    Returns
    -------
    ndarray (n_neurons, n_channels)
    """
    schedule = response.schedule
    n_steps = a_bar.shape[1]
    gradient = (a_bar @ sweep_back(schedule, v, n_steps)).T
    if C_bar is None or response.nodes is None:
        return gradient
    n, p, alpha = schedule.n_steps, schedule.n_panels, schedule.coefficients[2]
    n_channels = a_bar.shape[0]
    by_step = response.nodes.reshape(n, p, n_channels, -1)
    by_time = C_bar.transpose(1, 0, 3, 2)[:n, :, :n]  # (step, channel, step, channel)
    nodes_bar = np.zeros_like(by_step)
    bar = np.zeros_like(v)
    path = schedule.walk()
    for place in range(len(path) - 1, -1, -1):
        step, panel, weight = path[place]
        bar = bar + weight * v
        a = place % p
        so_far = by_step[: step + 1, a][::-1].reshape((step + 1) * n_channels, -1)
        square = by_time[: step + 1, :, : step + 1].reshape((step + 1) * n_channels, -1)
        change = (square @ so_far) * (2 * alpha * (panel.S @ bar))
        nodes_bar[: step + 1, a] += change.reshape(step + 1, n_channels, -1)[::-1]
        bar = panel.E @ bar
    ends_bar = np.zeros((n, n_channels, len(v)))
    flat = nodes_bar.reshape(n * p, n_channels, -1)
    return gradient + pulse_adjoint(
        schedule, ends_bar, flat, np.zeros((n_channels, len(v)))
    )
