"""What both kinds of stimuli have in common: moments of labelled stimuli and states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validation as check
from ..unfolding import Unfolding


def linear_map(unfolding: Unfolding, u: Any) -> np.ndarray:
    """Linear response as a matrix (n_channels · n_steps, n_neurons).

    Row c·K + n is the read-out state after a unit pulse in channel c, step n, so that the
    state of the linear network is ``x.ravel() @ linear_map``.
    """
    response = unfolding.linear.response(u).linear
    n_inputs, n_channels, n_neurons = response.shape
    padded = np.zeros((n_channels, unfolding.n_steps, n_neurons))
    padded[:, :n_inputs] = response.transpose(1, 0, 2)
    return padded.reshape(-1, n_neurons)


@dataclass(frozen=True, eq=False)
class Stimuli:
    """Two classes of stimuli with labels ζ = ±1, seen through their moments.

    Attributes
    ----------
    mu : ndarray (n_channels · n_steps,)
        μ = ⟨ζx⟩; channels one after the other.
    psi : ndarray (n_channels · n_steps, n_channels · n_steps)
        ψ = cov(ζx).
    n_channels, n_steps : int
    """

    mu: np.ndarray
    psi: np.ndarray
    n_channels: int
    n_steps: int

    @property
    def separability(self) -> float:
        """‖μ‖²/√(μᵀψμ): distance over the spread along it; infinite without spread."""
        length = float(self.mu @ self.mu)
        spread = float(np.sqrt(max(self.mu @ self.psi @ self.mu, 0.0)))
        if spread == 0:
            return np.inf if length else 0.0
        return length / spread

    def moments(self, unfolding: Unfolding, u: Any) -> tuple[np.ndarray, np.ndarray]:
        """M(u) = ⟨ζy⟩ and Σ(u) = cov(ζy) of the states at the readout.

        Parameters
        ----------
        unfolding : Unfolding
        u : array_like (n_neurons,) or (n_neurons, n_channels)

        Returns
        -------
        M : ndarray (n_neurons,)
        Sigma : ndarray (n_neurons, n_neurons)
        """
        self.match(unfolding)
        check.input_projection(u, unfolding.n_neurons, self.n_channels)
        R = linear_map(unfolding, u)
        return R.T @ self.mu, R.T @ self.psi @ R

    def match(self, unfolding: Unfolding) -> None:
        """Refuse an unfolding for stimuli of another length."""
        if unfolding.n_steps != self.n_steps:
            raise ValueError(
                f"`stimuli` have {self.n_steps} steps, but `unfolding` was made for "
                f"{unfolding.n_steps}; unfold with n_steps={self.n_steps}."
            )
