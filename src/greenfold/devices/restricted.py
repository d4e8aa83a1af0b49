"""A system of which only some inputs are driven and some outputs read."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import checks as check
from ..systems import LinearSystem, ResponseSum


class Restricted:
    """The maps of a system on a subset, with projections as long as the subset.

    Parameters
    ----------
    system : System or LinearSystem
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

    def own_input(self, u: Any, n_channels: int) -> np.ndarray:
        """A given u of the whole system on the inputs that are driven."""
        projection = check.input_projection(u, self.system.n_inputs, n_channels)
        if np.delete(projection, self.inputs, axis=0).any():
            raise ValueError(
                "`u` drives inputs that `inputs` leaves out; set them to zero."
            )
        return projection[self.inputs]

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
