"""Weighted sums of Green's functions, G(d) = Σ_n d_n G⁽¹⁾_n, without the tensor G⁽¹⁾.

The binned Green's functions are powers of one matrix, so the sum is a matrix polynomial.
Paterson and Stockmeyer's scheme evaluates it with about 2√K products of N×N matrices and
√K matrices of memory, instead of K of each. For large networks it is never formed, only
applied to vectors.

The linear order of an unfolded network as three maps.

u ↦ Rᵤ, v ↦ L_v and d ↦ G(d) are all that the linear problem and its certificate ask for
(`greenfold.systems.LinearSystem`). None of them forms the Green's function G⁽¹⁾ itself.
Arguments are not checked here: an optimiser calls these maps thousands of times.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil, sqrt

import numpy as np

from . import schedule as sweeps
from .schedule import Schedule

#: G(d) is formed as a matrix while the powers that this takes stay below this size;
#: beyond, it is only applied to vectors.
DENSE_BYTES = 512 * 2**20


class GreensPowers:
    """Powers of the step propagator, from which G(d) is made for many d.

    Parameters
    ----------
    schedule : Schedule
        Of order 0, on the host.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    @property
    def n_bytes(self) -> float:
        """Memory of the powers that are kept."""
        n = self.schedule.panel.E.shape[0]
        return 8.0 * n**2 * (ceil(sqrt(self.schedule.n_inputs)) + 4)

    @cached_property
    def _step(self) -> tuple[np.ndarray, np.ndarray]:
        """Propagator and response of a whole step, Eᵀ and Fᵀ."""
        return _repeat(self.schedule.panel.E, self.schedule.panel.F, self.schedule.n_panels)

    @cached_property
    def _powers(self) -> list[np.ndarray]:
        """E⁰ … E^s of the step propagator, s about √K (transposed)."""
        E, _ = self._step
        s = ceil(sqrt(max(self.schedule.n_steps, 1)))
        powers = [np.eye(len(E)), E]
        while len(powers) <= s:
            powers.append(powers[-1] @ E)
        return powers

    @cached_property
    def _tail(self) -> tuple[np.ndarray, np.ndarray]:
        tail = self.schedule.tail
        assert tail is not None
        return _repeat(tail.E, tail.F, self.schedule.tail_panels)

    def weighted(self, d: np.ndarray) -> np.ndarray:
        """G(d) of one channel as an (N, N) matrix, so that the state is G(d) @ u.

        Entries of d after the readout are ignored.
        """
        schedule = self.schedule
        n = schedule.n_steps
        # Coefficient of E^l: the pulse of step m read at the end of step m + l.
        weights = schedule.weights
        if schedule.tail is not None:  # read first at the end of the whole steps
            weights = np.eye(1, n, n - 1)[0] if n else np.empty(0)
        coefficients = np.correlate(weights, d[:n], "full")[n - 1 :] if n else np.empty(0)
        _, F = self._step
        total = F @ self._polynomial(coefficients)
        if schedule.tail is not None:
            E_tail, F_tail = self._tail
            total = total @ E_tail + d[n] * F_tail
        return total.T

    def _polynomial(self, coefficients: np.ndarray) -> np.ndarray:
        """Σ_l c_l E^l by Horner's rule in E^s."""
        powers = self._powers
        s = len(powers) - 1
        n = len(powers[0])
        total = np.zeros((n, n))
        for first in range((len(coefficients) - 1) // s * s, -1, -s):
            total = total @ powers[s] if total.any() else total
            for offset, c in enumerate(coefficients[first : first + s]):
                if c:
                    total += c * powers[offset]
        return total


def _repeat(E: np.ndarray, F: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
    """Propagator and response of several panels in a row (transposed matrices)."""
    E_all, F_all = E, F
    for _ in range(times - 1):
        E_all, F_all = E_all @ E, F_all @ E + F
    return E_all, F_all


class GreensSum:
    """G(d) at one d (n_channels, n_steps): a `greenfold.systems.ResponseSum`."""

    def __init__(self, powers: GreensPowers, d: np.ndarray) -> None:
        self._powers, self._d = powers, d

    def matrix(self) -> np.ndarray | None:
        """G(d) as (n_neurons, n_channels · n_neurons), or None where it is too large."""
        if self._powers.n_bytes > DENSE_BYTES:
            return None
        return np.concatenate([self._powers.weighted(row) for row in self._d], axis=1)

    def drive(self, u: np.ndarray) -> np.ndarray:
        """States (n_neurons, n_vectors), by recursion over the steps."""
        return sweeps.drive(self._powers.schedule, self._d, u)

    def pull(self, v: np.ndarray) -> np.ndarray:
        """G(d)ᵀ v as (n_neurons, n_channels), by the recursion backwards."""
        schedule = self._powers.schedule
        bars = sweeps.carry_back(schedule, v)
        return (self._d @ sweeps.kernel_rows(schedule, bars, self._d.shape[1])).T


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
