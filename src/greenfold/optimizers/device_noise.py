"""The noise of a device as `optimize` takes it, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..noise import covariance
from ..stimuli import Stimuli
from ..systems import LinearSystem, System
from .linear import LinearProblem
from .noisy import NoisyProblem
from .restricted import Restricted


@dataclass(frozen=True, eq=False)
class DeviceNoise:
    """Covariances of the noise, on what is driven and read.

    Attributes
    ----------
    on_input : ndarray (n_channels · n_steps, n_channels · n_steps) or None
    on_states, on_readout : ndarray (n_outputs, n_outputs) or None
    """

    on_input: np.ndarray | None
    on_states: np.ndarray | None
    on_readout: np.ndarray | None

    def problem(self, system: LinearSystem, stimuli: Stimuli, eta: float) -> LinearProblem:
        """The linear problem under the noise."""
        if self.on_input is not None:
            psi = np.asarray(stimuli.psi) + self.on_input
            stimuli = Stimuli(stimuli.mu, psi, stimuli.n_channels, stimuli.n_steps)
        parts = [P for P in (self.on_states, self.on_readout) if P is not None]
        if not parts:
            return LinearProblem(system, stimuli, eta)
        return NoisyProblem(system, stimuli, eta, np.sum(parts, axis=0))

    def cost(
        self, system: LinearSystem, u: np.ndarray, v: np.ndarray, eta: float
    ) -> dict[str, float]:
        """What each noise takes from κ at a pair of projections."""
        found = {}
        if self.on_input is not None:
            a = (system.readout_response(v) @ u).T.ravel()
            found["input"] = 0.5 * eta * float(a @ self.on_input @ a)
        if self.on_states is not None:
            found["state"] = 0.5 * eta * float(v @ self.on_states @ v)
        if self.on_readout is not None:
            found["readout"] = 0.5 * eta * float(v @ self.on_readout @ v)
        return found


def read_noise(
    on_input: Any,
    on_states: Any,
    on_readout: Any,
    stimuli: Stimuli,
    system: System,
    part: Restricted | None,
) -> DeviceNoise | None:
    """The arguments of `optimize` as covariances; None where there is no noise."""
    if on_input is None and on_states is None and on_readout is None:
        return None
    read = np.arange(system.n_outputs) if part is None else part.outputs

    def of_outputs(value: Any, name: str) -> np.ndarray | None:
        if value is None:
            return None
        return covariance(value, name, system.n_outputs)[np.ix_(read, read)]

    size = stimuli.n_channels * stimuli.n_steps
    return DeviceNoise(
        None if on_input is None else covariance(on_input, "input_noise", size),
        of_outputs(on_states, "state_noise"),
        of_outputs(on_readout, "readout_noise"),
    )
