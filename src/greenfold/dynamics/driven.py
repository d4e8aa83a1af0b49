"""A network with its input weights, run step by step from a given state.

`Dynamics` computes the states that many separate stimuli leave. Here, a single state
continues: for a stream that is read as it arrives, or a loop closed through the readout.
The last inputs may be part of the state, for a readout that sees them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..networks.echo_state import EchoStateNetwork
from ..networks.reservoir import Reservoir
from .steppers import LeakyStep, TrueStep, make_step

#: Number of steps whose inputs are projected in one product.
_BLOCK = 4096
#: A sparse product pays off for networks of at least this size and at most this density.
_SPARSE_NEURONS, _SPARSE_SHARE = 300, 0.2
#: Relative difference of two states below which the network has forgotten. States are only
#: as precise as a sum over neurons.
_FORGOTTEN = 1e-5


@dataclass(frozen=True, eq=False)
class DrivenNetwork:
    """A network driven through fixed input weights.

    Parameters
    ----------
    network : Reservoir or EchoStateNetwork
    weights : ndarray (n_neurons, n_channels)
        Input weights, at their full size.
    bias : ndarray (n_neurons,)
        A constant input, in addition to the bias of the network.
    dt : float
        Length of a step in continuous time.
    n_sub : int
        Number of sub-steps per step in continuous time.
    n_seen : int
        Number of last inputs in the state, which follow the neurons, the latest first.
    """

    network: Reservoir | EchoStateNetwork
    weights: np.ndarray
    bias: np.ndarray
    dt: float = 1.0
    n_sub: int = 1
    n_seen: int = 0

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.network.n_neurons

    @property
    def n_states(self) -> int:
        """Length of the state: the neurons, and the channels of the inputs seen."""
        return self.n_neurons + self.n_seen * self.weights.shape[1]

    def rest(self) -> np.ndarray:
        """Return the state at rest, after inputs of zero, (n_states,)."""
        return np.zeros(self.n_states)

    @cached_property
    def _step(self) -> TrueStep:
        return make_step(self.network, self.dt / self.n_sub)

    @cached_property
    def _input_map(self) -> np.ndarray:
        """The map from inputs and a constant to pushes, (n_channels + 1, width)."""
        return self._step.input_map(np.column_stack([self.weights, self.bias]))

    @cached_property
    def _sparse_weights(self) -> Any:
        W: Any = self.network.weights
        if sparse.issparse(W):
            return W if isinstance(self.network, EchoStateNetwork) else None
        few = np.count_nonzero(W) <= _SPARSE_SHARE * W.size
        large = self.n_neurons >= _SPARSE_NEURONS
        discrete = isinstance(self.network, EchoStateNetwork)
        return sparse.csr_array(W) if few and large and discrete else None

    def advance(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return states (n_lanes, n_states) one step after x (n_lanes, n_channels)."""
        push = x @ self._input_map[:-1] + self._input_map[-1]
        y, seen = states[:, : self.n_neurons], states[:, self.n_neurons :]
        for _ in range(self.n_sub):
            y = self._step.advance(y, push)
        return self._joined(y, x, seen)

    def _joined(self, y: np.ndarray, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Return the states with x as the latest of the inputs seen."""
        if not self.n_seen:
            return y
        return np.concatenate([y, x, seen[:, : seen.shape[1] - x.shape[1]]], axis=1)

    def advance_tangents(
        self, state: np.ndarray, x: np.ndarray, dstates: np.ndarray, dx: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a state one step after x, and the tangents there.

        Tangents of the state have shape (n_tangents, n_states), and those of the input
        (n_tangents, n_channels).
        """
        n = self.n_neurons
        push = (x @ self._input_map[:-1] + self._input_map[-1])[None]
        y, dy, dpush = state[None, :n], dstates[:, :n], dx @ self._input_map[:-1]
        for _ in range(self.n_sub):
            slopes: list[np.ndarray] = []
            y = self._step.advance(y, push, slopes)
            dy = self._step.push_forward(dy, dpush, slopes)
        ahead = self._joined(y, x[None], state[None, n:])
        return ahead[0], self._joined(dy, dx, dstates[:, n:])

    def run(self, x: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return states (n_steps, n_states) along inputs (n_steps, n_channels)."""
        n, width = self.n_neurons, x.shape[1]
        found = np.empty((len(x), self.n_states))
        y = state[:n]
        for start in range(0, len(x), _BLOCK):
            part = slice(start, start + _BLOCK)
            push = x[part] @ self._input_map[:-1] + self._input_map[-1]
            walk = self._run_dense if self._sparse_weights is None else self._run_sparse
            y = walk(push, y, found[part, :n])
        before = state[n:].reshape(-1, width)[::-1]
        line = np.concatenate([before, x]) if self.n_seen else x
        for lag in range(self.n_seen):
            first = self.n_seen - lag
            seen = slice(n + lag * width, n + (lag + 1) * width)
            found[:, seen] = line[first : first + len(x)]
        return found

    def _run_dense(self, push: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        step, rows = self._step, y[None]
        for index in range(len(push)):
            for _ in range(self.n_sub):
                rows = step.advance(rows, push[index : index + 1])
            out[index] = rows[0]
        return rows[0]

    def _run_sparse(self, push: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        step, W = self._step, self._sparse_weights
        assert isinstance(step, LeakyStep)
        for index in range(len(push)):
            p = W @ y
            p += push[index]
            ahead = step.change.value(p) * step.leak
            ahead += step.keep * y
            out[index] = y = ahead
        return y

    def memory(self, x: np.ndarray, tol: float = _FORGOTTEN, n_lanes: int = 32) -> int:
        """Return the number of steps after which the network has forgotten its state.

        It is measured on inputs x (n_steps, n_channels), because a driven network often
        forgets much faster than the same network near rest. Copies of the network start at
        rest at ``n_lanes`` points of the series. They agree with the network driven all
        along when the root mean squared difference of the states is below ``tol`` times
        their standard deviation. If the network does not forget, the result is half of the
        steps. It is at least the number of inputs in the state.
        """
        if self.n_seen:
            return max(replace(self, n_seen=0).memory(x, tol, n_lanes), self.n_seen)
        states = self.run(x, self.rest())
        longest = max(len(x) // 2, 1)
        begins = np.unique(np.linspace(1, len(x) - longest, n_lanes).astype(int))
        spread = float(states.std()) or 1.0
        lanes = np.zeros((len(begins), self.n_neurons))
        for index in range(longest):
            lanes = self.advance(lanes, x[begins + index])
            error = np.sqrt(np.mean((lanes - states[begins + index]) ** 2))
            if error <= tol * spread:
                return index + 1
        return longest
