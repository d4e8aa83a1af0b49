"""The linear problem with noise in the states: κ − (η/2) vᵀPv.

On unit u, vᵀPv = tr(XᵀPX) with X = v uᵀ, which is convex in X, so that the relaxation over
the nuclear-norm ball and its bound go through. With P = SSᵀ it is the square of SᵀX:
kernels are carried on by those entries, and to the convex solver the problem is the one it
knows, of longer kernels. A multiple of the identity in P costs every unit readout the same;
it is taken out, which tightens the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..stimuli.base import Stimuli
from ..systems import LinearSystem, ResponseSum
from .linear import FactorPullback, KernelQuadratic, LinearProblem


@dataclass(frozen=True, eq=False)
class NoisyProblem(LinearProblem):
    """Soft margin under noise of covariance P (n_outputs, n_outputs) on the states."""

    covariance: np.ndarray

    @cached_property
    def _split(self) -> tuple[float, np.ndarray]:
        """P = λ I + S Sᵀ with the largest λ: λ and S (n_outputs, rank)."""
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        lowest = max(float(values[0]), 0.0)
        above = values - lowest
        keep = above > 1e-13 * max(float(values[-1]), 0.0)
        return lowest, vectors[:, keep] * np.sqrt(above[keep])

    @property
    def offset(self) -> float:
        """What the noise costs every pair alike."""
        return 0.5 * self.eta * self._split[0]

    @property
    def _root(self) -> np.ndarray:
        return self._split[1]

    @property
    def mean(self) -> np.ndarray:
        """μ, carried on by zeros."""
        return self._mean

    @cached_property
    def _mean(self) -> np.ndarray:
        n_rest = self._root.shape[1] * self.system.n_inputs * self.stimuli.n_channels
        return np.concatenate([self.stimuli.mu, np.zeros(n_rest)])

    def spread(self, a: np.ndarray) -> np.ndarray:
        """ψa, and what follows as it is."""
        n = self._size
        return np.concatenate([self.stimuli.psi @ a[:n], a[n:]])

    def _kernel(self, rows: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The plain kernel, and SᵀX by row."""
        rest = np.outer(v @ self._root, u.T.ravel()).ravel()
        return np.concatenate([super()._kernel(rows, u, v), rest])

    @cached_property
    def _with_noise(self) -> KernelQuadratic:
        n, r = self._size, self._root.shape[1]
        psi = np.eye(n + r)
        psi[:n, :n] = np.asarray(self.stimuli.psi)
        return KernelQuadratic(np.concatenate([self.stimuli.mu, np.zeros(r)]), psi)

    @property
    def _of_readout(self) -> KernelQuadratic:
        return self._with_noise

    def _seen(self, u: np.ndarray) -> np.ndarray:
        """For one unit u the further entries are Sᵀv."""
        return np.vstack([super()._seen(u), self._root.T])

    def readout_terms(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The terms b and Q of κ at one u, on unit v."""
        b, Q = super().readout_terms(u)
        return b, Q + (self.covariance + self.covariance.T) / 2

    def kernel_of(self, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, FactorPullback]:
        """Kernel of X = Σ_r A_r B_rᵀ, and the way back."""
        plain, pull = super().kernel_of(A, B)
        left = self._root.T @ A
        right = B.transpose(1, 0, 2).reshape(-1, A.shape[1])

        def pull_all(bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            A_bar, B_bar = pull(bar)
            D = self._rest(bar)
            back = (D.T @ left).reshape(B.shape[1], B.shape[0], -1).transpose(1, 0, 2)
            return A_bar + self._root @ (D @ right), B_bar + back

        return np.concatenate([plain, (left @ right.T).ravel()]), pull_all

    def _rest(self, d: np.ndarray) -> np.ndarray:
        """The entries of SᵀX as (rank, n_channels · n_inputs)."""
        # Not −1: noise of one size on all outputs leaves no row.
        n_columns = self.stimuli.n_channels * self.system.n_inputs
        return d[self._size :].reshape(self._root.shape[1], n_columns)

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """G(d) + S D."""
        plain, D = super().response_sum(d), self._rest(d)
        return _Shifted(plain, self._root, D) if D.any() else plain


class _Shifted:
    """G(d) + S D as a `ResponseSum`."""

    def __init__(self, response: ResponseSum, S: np.ndarray, D: np.ndarray) -> None:
        self._response, self._S, self._D = response, S, D

    def matrix(self) -> np.ndarray | None:
        made = self._response.matrix()
        return None if made is None else made + self._S @ self._D

    def drive(self, u: np.ndarray) -> np.ndarray:
        flat = u.transpose(1, 0, 2).reshape(-1, u.shape[2])
        return self._response.drive(u) + self._S @ (self._D @ flat)

    def pull(self, v: np.ndarray) -> np.ndarray:
        back = (v @ self._S) @ self._D
        plain = self._response.pull(v)
        return plain + back.reshape(plain.shape[1], -1).T


def problem_under_noise(
    system: LinearSystem, stimuli: Stimuli, eta: float, noise: dict[str, np.ndarray]
) -> LinearProblem:
    """The linear problem under noise of these covariances; see `Device.noise`."""
    if "input" in noise:
        psi = np.asarray(stimuli.psi) + noise["input"]
        stimuli = Stimuli(stimuli.mu, psi, stimuli.n_channels, stimuli.n_steps)
    at_states = [noise[name] for name in ("state", "readout") if name in noise]
    if not at_states:
        return LinearProblem(system, stimuli, eta)
    return NoisyProblem(system, stimuli, eta, np.sum(at_states, axis=0))


def noise_cost(
    system: LinearSystem,
    u: np.ndarray,
    v: np.ndarray,
    eta: float,
    noise: dict[str, np.ndarray],
) -> dict[str, float]:
    """What each noise takes from κ at a pair of projections."""
    met = {"state": v, "readout": v}
    if "input" in noise:
        met["input"] = (system.readout_response(v) @ u).T.ravel()
    return {k: 0.5 * eta * float(met[k] @ P @ met[k]) for k, P in noise.items()}
