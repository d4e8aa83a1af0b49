"""The noise of a device as `optimize` takes it, and what it costs.

A system of which only some inputs are driven and some outputs read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check
from ..devices.noise import covariance
from ..stimuli.base import Stimuli
from ..systems import LinearSystem, ResponseSum, System
from .linear import LinearProblem
from .noisy import NoisyProblem


def chosen(value: Any, name: str, size: int) -> np.ndarray | None:
    """Indices from indices or from a mask of truth values; None for all."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype == bool:
        if array.shape != (size,):
            raise ValueError(
                f"`{name}` must have {size} truth values; got shape {array.shape}."
            )
        array = np.flatnonzero(array)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise ValueError(
            f"`{name}` must be indices, or truth values, of at least one of {size}; got "
            f"{check.shown(value) if np.ndim(value) == 0 else f'shape {array.shape}'}."
        )
    if array.min() < 0 or array.max() >= size:
        raise ValueError(
            f"`{name}` must lie between 0 and {size - 1}; got "
            f"{array.min() if array.min() < 0 else array.max()}."
        )
    if len(np.unique(array)) < len(array):
        raise ValueError(f"`{name}` names an index twice.")
    return array


class Restricted:
    """The maps of a system on a subset, with projections as long as the subset.

    Parameters
    ----------
    system : System
    inputs, outputs : ndarray of int or None
        Which rows of u and entries of v there are; None for all.
    """

    def __init__(
        self, system: Any, inputs: np.ndarray | None, outputs: np.ndarray | None
    ) -> None:
        self.system: Any = system
        self.inputs = np.arange(system.n_inputs) if inputs is None else inputs
        self.outputs = np.arange(system.n_outputs) if outputs is None else outputs
        self.n_steps: int = system.n_steps
        self.n_inputs, self.n_outputs = len(self.inputs), len(self.outputs)

    @property
    def is_linear(self) -> bool:
        """As the whole system."""
        return self.system.is_linear

    @property
    def degree(self) -> int | None:
        """As the whole system."""
        return self.system.degree

    @property
    def maps(self) -> LinearSystem:
        """The linear system on the subset."""
        return Restricted(self.system.maps, self.inputs, self.outputs)

    def whole_input(self, u: np.ndarray) -> np.ndarray:
        """An input projection with zeros for the inputs that are not driven."""
        made = np.zeros((self.system.n_inputs, *np.shape(u)[1:]))
        made[self.inputs] = u
        return made

    def whole_readout(self, v: np.ndarray) -> np.ndarray:
        """A readout with zeros for the outputs that are not read."""
        made = np.zeros((self.system.n_outputs, *np.shape(v)[1:]))
        made[self.outputs] = v
        return made

    def input_response(self, u: Any) -> np.ndarray:
        """Rᵤ of the subset."""
        return self.system.input_response(self.whole_input(u))[:, self.outputs]

    def readout_response(self, v: Any) -> np.ndarray:
        """L_v of the subset."""
        return self.system.readout_response(self.whole_readout(v))[:, self.inputs]

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """G(d) of the subset."""
        return _RestrictedSum(self, self.system.response_sum(d), len(d))

    def states(self, X: Any, u: Any) -> Any:
        """States of the outputs that are read."""
        return self.system.states(X, self.whole_input(u))[:, self.outputs]

    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None) -> Any:
        """Gradient with respect to the projections of the subset."""
        whole = self.whole_input(u)
        if v is not None:
            u_bar, v_bar = self.system.pullback(X, whole, cotangent, self.whole_readout(v))
            return u_bar[self.inputs], v_bar[self.outputs]
        bar = np.zeros((len(cotangent), self.system.n_outputs))
        bar[:, self.outputs] = cotangent
        return self.system.pullback(X, whole, bar)[self.inputs]


class _RestrictedSum:
    """G(d) of a subset as a `ResponseSum`."""

    def __init__(self, part: Restricted, whole: ResponseSum, n_channels: int) -> None:
        self._part, self._whole, self._n_channels = part, whole, n_channels

    def matrix(self) -> np.ndarray | None:
        made = self._whole.matrix()
        if made is None:
            return None
        part = self._part
        by_channel = made.reshape(len(made), self._n_channels, -1)
        picked = by_channel[np.ix_(part.outputs, np.arange(self._n_channels), part.inputs)]
        return np.ascontiguousarray(picked).reshape(part.n_outputs, -1)

    def drive(self, u: np.ndarray) -> np.ndarray:
        return self._whole.drive(self._part.whole_input(u))[self._part.outputs]

    def pull(self, v: np.ndarray) -> np.ndarray:
        return self._whole.pull(self._part.whole_readout(v))[self._part.inputs]


def restrict(system: System, inputs: Any, outputs: Any) -> Restricted | None:
    """The system on a subset; None where all of it is used."""
    rows = chosen(inputs, "inputs", system.n_inputs)
    entries = chosen(outputs, "outputs", system.n_outputs)
    if rows is None and entries is None:
        return None
    return Restricted(system, rows, entries)


def on_subset(u: Any, part: Restricted, n_inputs: int, n_channels: int) -> np.ndarray:
    """A given u of the whole system on the inputs that are driven."""
    projection = check.input_projection(u, n_inputs, n_channels)
    if np.delete(projection, part.inputs, axis=0).any():
        raise ValueError("`u` drives inputs that `inputs` leaves out; set them to zero.")
    return projection[part.inputs]


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
