"""The kernels a and C of one fixed readout as a differentiable function of u.

For a fixed readout v the kernels depend on u through the pulse responses only:
C = Σ_k R_kᵀ diag(s_k) R_k with R_k the responses at the nodes of step k to a pulse in each
step so far, and s_k the readout carried back to that step. Value and adjoint are one matrix
product per step, several times cheaper than the kernels of all neurons.
"""

from __future__ import annotations

import numpy as np

from .kernels import sweep_back
from .stepping import Schedule
from .volterra import Response, pulse_adjoint, pulse_responses


class CollapsedMap:
    """u ↦ (a, C) for one readout.

    Parameters
    ----------
    schedule : Schedule
        On the host, read at the ends of steps; of order 0, or of order 1 with a gain of
        degree 2.
    v : ndarray (n_neurons,)
    n_steps : int
        Steps of the stimuli; those after the readout have zero weight.
    """

    def __init__(self, schedule: Schedule, v: np.ndarray, n_steps: int) -> None:
        self.schedule, self.n_steps = schedule, n_steps
        self.rows = sweep_back(schedule, v, n_steps)
        self.weights = source_weights(schedule, v) if schedule.order else None

    def kernels(
        self, u: np.ndarray, responses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Kernels a (n_channels, n_steps) and C (n_channels, n_steps, n_channels, n_steps).

        ``responses`` are `node_responses` of u.
        """
        n_channels = u.shape[1]
        C = np.zeros((self.n_steps, n_channels, self.n_steps, n_channels))
        assert self.weights is not None
        for step, weights in enumerate(self.weights):
            so_far = _so_far(responses, step)
            block = (so_far * weights) @ so_far.T
            shape = (step + 1, n_channels, step + 1, n_channels)
            C[: step + 1, :, : step + 1] += block.reshape(shape)
        return u.T @ self.rows.T, C.transpose(1, 0, 3, 2)

    def pullback(
        self, responses: np.ndarray | None, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> np.ndarray:
        """Gradient (n_neurons, n_channels) from the cotangents of a and of symmetric C."""
        gradient = (a_bar @ self.rows).T
        if C_bar is None or responses is None or self.weights is None:
            return gradient
        schedule, n_channels = self.schedule, a_bar.shape[0]
        n, p = schedule.n_steps, schedule.n_panels
        by_time = C_bar.transpose(1, 0, 3, 2)[:n, :, :n]  # (step, channel, step, channel)
        bar = np.zeros_like(responses)
        for step, weights in enumerate(self.weights):
            so_far = _so_far(responses, step)
            square = by_time[: step + 1, :, : step + 1].reshape(len(so_far), -1)
            change = (square @ so_far) * (2 * weights)
            bar[: step + 1] += change.reshape(step + 1, n_channels, -1)[::-1]
        nodes_bar = bar.reshape(n, n_channels, p, -1).transpose(0, 2, 1, 3)
        nothing = np.zeros((n_channels, len(gradient)))
        return gradient + pulse_adjoint(
            schedule,
            np.zeros((n, *nothing.shape)),
            nodes_bar.reshape(n * p, n_channels, -1),
            nothing,
        )


def node_responses(schedule: Schedule, u: np.ndarray) -> np.ndarray:
    """Responses at all nodes of a step to a pulse, by steps since the pulse.

    Returns
    -------
    ndarray (n_steps, n_channels, n_panels · q · n_neurons)
    """
    return _by_step(schedule, pulse_responses(schedule, u)[1])


def source_weights(schedule: Schedule, v: np.ndarray) -> np.ndarray:
    """Weight in z of the squared state at every node of every step, (n_steps, width).

    The readout is carried back through the network, and at each panel through the
    quadrature of its source.
    """
    bars = np.empty((schedule.n_steps * schedule.n_panels, len(v)))
    bar = np.zeros_like(v)
    for place, (_, panel, weight) in reversed(list(enumerate(schedule.walk()))):
        bar = bar + weight * v
        bars[place] = bar
        bar = panel.E @ bar
    weights = schedule.coefficients[2] * (bars @ schedule.panel.S.T)
    return weights.reshape(schedule.n_steps, -1)


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
    schedule, nodes = response.schedule, response.nodes
    responses = None if nodes is None else _by_step(schedule, nodes)
    return CollapsedMap(schedule, v, a_bar.shape[1]).pullback(responses, a_bar, C_bar)


def _by_step(schedule: Schedule, nodes: np.ndarray) -> np.ndarray:
    """Responses (n_steps n_panels, C, qN) with the panels of a step side by side."""
    n, p, n_channels = schedule.n_steps, schedule.n_panels, nodes.shape[1]
    by_panel = nodes.reshape(n, p, n_channels, -1).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(by_panel).reshape(n, n_channels, -1)


def _so_far(responses: np.ndarray, step: int) -> np.ndarray:
    """Responses at the nodes of a step to a pulse in each (step so far, channel)."""
    return responses[: step + 1][::-1].reshape((step + 1) * responses.shape[1], -1)
