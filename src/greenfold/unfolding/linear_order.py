"""The linear order of an unfolded network as three maps.

u ↦ Rᵤ, v ↦ L_v and d ↦ G(d) are all that the linear problem and its certificate ask for
(`greenfold.systems.LinearSystem`). None of them forms the Green's function G⁽¹⁾ itself.
Arguments are not checked here: an optimiser calls these maps thousands of times.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from . import schedule as sweeps
from .greens_sum import GreensPowers, GreensSum
from .schedule import Schedule


class LinearOrder:
    """The three maps of one schedule.

    Parameters
    ----------
    schedule : Schedule
        Of order 0, on the host.
    n_steps : int
        Steps of the stimuli; those after the readout have no weight.
    """

    def __init__(self, schedule: Schedule, n_steps: int) -> None:
        self.schedule, self.n_steps = schedule, n_steps
        self.n_inputs = self.n_outputs = len(schedule.panel.E)

    def input_response(self, u: np.ndarray) -> np.ndarray:
        """Rᵤ, (n_channels · n_steps, n_neurons), for u (n_neurons, n_channels).

        Row c·K + n is the readout state after a unit pulse in channel c, step n.
        """
        response = sweeps.read_pulse(
            self.schedule, u, sweeps.pulse_starts(self.schedule, u)
        )
        padded = np.zeros((u.shape[1], self.n_steps, self.n_outputs))
        padded[:, : len(response)] = response.transpose(1, 0, 2)
        return padded.reshape(-1, self.n_outputs)

    def readout_response(self, v: np.ndarray) -> np.ndarray:
        """L_v: row n is l_n with a_n = l_n · u, for v (n_neurons,) or (n_neurons, r)."""
        bars = sweeps.carry_back(self.schedule, v)
        return sweeps.kernel_rows(self.schedule, bars, self.n_steps)

    def response_sum(self, d: np.ndarray) -> GreensSum:
        """G(d) for weights d (n_channels, n_steps) of the steps."""
        return GreensSum(self._powers, d)

    @cached_property
    def _powers(self) -> GreensPowers:
        return GreensPowers(self.schedule)
