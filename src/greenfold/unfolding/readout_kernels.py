"""The kernels of one fixed readout, as a differentiable function of u.

    z = a · x                      (order 0)
    z = a · x + xᵀ C x             (order 1, quadratic gain)

For a fixed readout v the kernels depend on u through the pulse responses only:
C = Σ_k R_kᵀ diag(s_k) R_k with R_k the responses at the nodes of step k to a pulse in each
step so far, and s_k the readout carried back to that step. Value and adjoint are one matrix
product per step, K³/3 · q N multiplications and K² numbers of memory, several times cheaper
than the kernels of all neurons.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import schedule as sweeps
from .schedule import Schedule


class OneReadout:
    """u ↦ (a, C) for one readout.

    Parameters
    ----------
    schedule : Schedule
        On the host; of order 0, or of order 1 with a gain of degree 2.
    v : ndarray (n_neurons,)
    n_steps : int
        Steps of the stimuli; those after the readout have zero weight.
    """

    def __init__(self, schedule: Schedule, v: np.ndarray, n_steps: int) -> None:
        self.schedule, self.n_steps = schedule, n_steps
        bars = sweeps.carry_back(schedule, v)
        self.rows = sweeps.kernel_rows(schedule, bars, n_steps)
        self.weights = source_weights(schedule, bars) if schedule.order else None
        self._tail_bars = bars[schedule.n_steps * schedule.n_panels :]

    def at(self, u: np.ndarray, responses: np.ndarray | None = None) -> ReadoutKernels:
        """Kernels at one u.

        Parameters
        ----------
        u : ndarray (n_neurons, n_channels)
        responses : ndarray, optional
            `node_responses` of u, where they are known.
        """
        a = u.T @ self.rows.T
        if self.weights is None:
            return ReadoutKernels(self, a, None, None)
        starts = None
        if responses is None:
            starts = sweeps.pulse_starts(self.schedule, u)
            responses = node_responses(self.schedule, u, starts)
        n_channels = u.shape[1]
        C = np.zeros((self.n_steps, n_channels, self.n_steps, n_channels))
        for step, weights in enumerate(self.weights):
            if weights.any():
                _add_square(C, _so_far(responses, step), weights)
        if self.schedule.tail is not None:
            starts = sweeps.pulse_starts(self.schedule, u) if starts is None else starts
            self._add_tail(C, u, starts)
        return ReadoutKernels(self, a, C.transpose(1, 0, 3, 2), responses)

    def _add_tail(self, C: np.ndarray, u: np.ndarray, starts: np.ndarray) -> None:
        """Add what the panels of a shortened last step contribute."""
        schedule, tail = self.schedule, self.schedule.tail
        assert tail is not None
        current = starts[:: schedule.n_panels][::-1].copy()  # earliest pulse first
        for bar in self._tail_bars:
            at_nodes = current @ tail.E_nodes
            at_nodes[-1] += u.T @ tail.F_nodes
            weights = schedule.at_nodes(tail)[2] * (tail.S @ bar)
            _add_square(C, at_nodes.reshape(-1, len(weights)), weights)
            current = current @ tail.E
            current[-1] += u.T @ tail.F


@dataclass(frozen=True, eq=False)
class ReadoutKernels:
    """Kernels of one readout at one u, and the way back.

    Attributes
    ----------
    a : ndarray (n_channels, n_steps)
    C : ndarray (n_channels, n_steps, n_channels, n_steps) or None
        Symmetric under the exchange of its two (channel, step) pairs.
    """

    _readout: OneReadout = field(repr=False)
    a: np.ndarray
    C: np.ndarray | None
    _responses: np.ndarray | None = field(repr=False)

    def pullback(self, a_bar: np.ndarray, C_bar: np.ndarray | None) -> np.ndarray:
        """Gradient (n_neurons, n_channels) from the cotangents of a and of symmetric C."""
        return pull(self._readout, self._responses, a_bar, C_bar)


def pull(
    readout: OneReadout,
    responses: np.ndarray | None,
    a_bar: np.ndarray,
    C_bar: np.ndarray | None,
) -> np.ndarray:
    """Gradient with respect to u of a function of z = a·x + xᵀCx.

    Parameters
    ----------
    readout : OneReadout
        Read at the ends of steps.
    responses : ndarray or None
        `node_responses` of u.
    a_bar : ndarray (n_channels, n_steps)
        Cotangent of the linear kernel; steps after the readout are ignored.
    C_bar : ndarray (n_channels, n_steps, n_channels, n_steps) or None
        Cotangent of the quadratic kernel, symmetric.

    Returns
    -------
    ndarray (n_neurons, n_channels)
    """
    gradient = (a_bar @ readout.rows).T
    if C_bar is None or responses is None or readout.weights is None:
        return gradient
    schedule, n_channels = readout.schedule, a_bar.shape[0]
    n, p = schedule.n_steps, schedule.n_panels
    by_time = C_bar.transpose(1, 0, 3, 2)[:n, :, :n]  # (step, channel, step, channel)
    bar = np.zeros_like(responses)
    for step, weights in enumerate(readout.weights):
        so_far = _so_far(responses, step)
        square = by_time[: step + 1, :, : step + 1].reshape(len(so_far), -1)
        change = (square @ so_far) * (2 * weights)
        bar[: step + 1] += change.reshape(step + 1, n_channels, -1)[::-1]
    nodes_bar = bar.reshape(n, n_channels, p, -1).transpose(0, 2, 1, 3)
    nothing = np.zeros((n_channels, len(gradient)))
    return gradient + sweeps.pulse_adjoint(
        schedule,
        np.zeros((n, *nothing.shape)),
        nodes_bar.reshape(n * p, n_channels, -1),
        nothing,
    )


def node_responses(
    schedule: Schedule, u: np.ndarray, starts: np.ndarray | None = None
) -> np.ndarray:
    """Responses at all nodes of a step to a pulse, by steps since the pulse.

    Returns
    -------
    ndarray (n_steps, n_channels, n_panels · q · n_neurons)
    """
    starts = sweeps.pulse_starts(schedule, u) if starts is None else starts
    return by_step(schedule, sweeps.pulse_nodes(schedule, u, starts))


def by_step(schedule: Schedule, nodes: np.ndarray) -> np.ndarray:
    """Responses (n_steps n_panels, C, qN) with the panels of a step side by side."""
    n, p, n_channels = schedule.n_steps, schedule.n_panels, nodes.shape[1]
    width = nodes.shape[2]
    by_panel = nodes.reshape(n, p, n_channels, width).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(by_panel).reshape(n, n_channels, p * width)


def source_weights(schedule: Schedule, bars: np.ndarray) -> np.ndarray:
    """Weight in z of the squared state at every node of every whole step.

    The readout, carried back to each panel (`schedule.carry_back`), goes through the
    quadrature of its source: (n_steps, n_panels · q · n_neurons).
    """
    whole = bars[: schedule.n_steps * schedule.n_panels]
    weights = schedule.at_nodes(schedule.panel)[2] * (whole @ schedule.panel.S.T)
    return weights.reshape(schedule.n_steps, schedule.n_panels * weights.shape[1])


class SquareOfInput:
    """Contraction m₁ of G⁽²⁾ with a readout and a second moment of the stimuli.

    (paper, equation 12, `G2-general`): the quadratic form of u in ⟨ζ z⟩, without the tensor
    G⁽²⁾.

    Parameters
    ----------
    schedule : Schedule
        Of order 1 with a quadratic gain, read at the ends of steps.
    n_steps : int
        Steps of the stimuli.
    """

    def __init__(self, schedule: Schedule, n_steps: int) -> None:
        self._schedule, self._n_steps = schedule, n_steps
        # Responses at the nodes to a pulse into each single neuron.
        self._responses = node_responses(schedule, np.eye(schedule.panel.E.shape[0]))

    def __call__(self, v: np.ndarray, second_moment: np.ndarray) -> np.ndarray:
        """m₁ as (n_channels, N, n_channels, N) for a second moment (D, D)."""
        n_channels = len(second_moment) // self._n_steps
        moment = second_moment.reshape(n_channels, self._n_steps, n_channels, self._n_steps)
        total = np.zeros((n_channels, len(v), n_channels, len(v)))
        bars = sweeps.carry_back(self._schedule, v)
        for step, weights in enumerate(source_weights(self._schedule, bars)):
            so_far = self._responses[: step + 1][::-1]  # (step + 1, N, width)
            weighted = so_far * weights
            for c in range(n_channels):
                for d in range(n_channels):
                    mixed = np.tensordot(
                        moment[c, : step + 1, d, : step + 1], so_far, axes=(1, 0)
                    )
                    total[c, :, d, :] += np.tensordot(
                        weighted, mixed, axes=((0, 2), (0, 2))
                    )
        return total


def _so_far(responses: np.ndarray, step: int) -> np.ndarray:
    """Responses at the nodes of a step to a pulse in each (step so far, channel)."""
    return responses[: step + 1][::-1].reshape((step + 1) * responses.shape[1], -1)


def _add_square(C: np.ndarray, responses: np.ndarray, weights: np.ndarray) -> None:
    """Add Rᵀ diag(s) R to the block of C of the steps so far, (step, channel) pairs."""
    block = (responses * weights) @ responses.T
    n_channels = C.shape[1]
    n = len(block) // n_channels
    C[:n, :, :n] += block.reshape(n, n_channels, n, n_channels)
