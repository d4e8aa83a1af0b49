"""Weighted sums of Green's functions, Σ_n d_n G⁽¹⁾_n, without the tensor G⁽¹⁾.

The binned Green's functions are powers of one matrix, so the sum is a matrix polynomial.
Paterson and Stockmeyer's scheme evaluates it with about 2√K products of N×N matrices and
√K matrices of memory, instead of K of each.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil, sqrt

import numpy as np

from .stepping import Schedule


class GreensSum:
    """Evaluates G(d) = Σ_n d_n G⁽¹⁾_n for many d, at one readout.

    Parameters
    ----------
    schedule : Schedule
        Of order 0, on the host.
    n_steps : int
        Length of d; entries after the readout are ignored.
    """

    def __init__(self, schedule: Schedule, n_steps: int) -> None:
        self.schedule = schedule
        self.n_steps = n_steps

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

    def __call__(self, d: np.ndarray) -> np.ndarray:
        """G(d) as an (N, N) matrix, so that the state is G(d) @ u."""
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
