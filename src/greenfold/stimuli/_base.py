"""What both kinds of stimuli have in common: moments of labelled stimuli and states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validation as check
from ..margin import SoftMargin
from ..unfolding import Unfolding
from ._moments import Moments


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
        projection = check.input_projection(u, unfolding.n_neurons, self.n_channels)
        found = self.moment_map(unfolding)(projection)
        return found.M, found.Sigma

    def moment_map(self, unfolding: Unfolding) -> Callable[[np.ndarray], Moments]:
        """Prepare M(u) and Σ(u) as functions of u that can be differentiated.

        Parameters
        ----------
        unfolding : Unfolding

        Returns
        -------
        callable
            Takes u (n_neurons, n_channels), returns an object with ``M``, ``Sigma`` and
            ``pull(v, eta)``, the gradient of the soft margin at fixed v.
        """
        self.match(unfolding)
        if unfolding.order == 0:
            return lambda u: LinearMoments(self, unfolding, u)
        return self._nonlinear_map(unfolding)

    def _nonlinear_map(self, unfolding: Unfolding) -> Callable[[np.ndarray], Moments]:
        raise TypeError(f"{type(self).__name__} has no moments beyond the linear order.")

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """κ of the predictor z = a·x + xᵀCx on these stimuli, and its derivatives.

        Parameters
        ----------
        a : ndarray (n_channels · n_steps,)
        C : ndarray (n_channels · n_steps, n_channels · n_steps)
            Symmetric.
        eta : float

        Returns
        -------
        margin : SoftMargin
        a_bar, C_bar : ndarray
            ∂κ/∂a and ∂κ/∂C.
        """
        raise TypeError(f"{type(self).__name__} has no moments beyond the linear order.")

    @property
    def labelled_second_moment(self) -> np.ndarray:
        """⟨ζ x xᵀ⟩, (D, D): χ of Gaussian classes, what a quadratic network can use."""
        raise TypeError(f"{type(self).__name__} has no moments beyond the linear order.")

    def match(self, unfolding: Unfolding) -> None:
        """Refuse an unfolding for stimuli of another length."""
        if unfolding.n_steps != self.n_steps:
            raise ValueError(
                f"`stimuli` have {self.n_steps} steps, but `unfolding` was made for "
                f"{unfolding.n_steps}; unfold with n_steps={self.n_steps}."
            )


class LinearMoments:
    """`Moments` of the linear order: only μ and ψ of the stimuli enter."""

    def __init__(self, stimuli: Stimuli, unfolding: Unfolding, u: np.ndarray) -> None:
        self._stimuli, self._unfolding = stimuli, unfolding
        self._R = linear_map(unfolding, u)
        self.M = self._R.T @ stimuli.mu
        Sigma = self._R.T @ stimuli.psi @ self._R
        self.Sigma = (Sigma + Sigma.T) / 2

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """∂κ/∂u at fixed v."""
        d = self._stimuli.mu - eta * (self._stimuli.psi @ (self._R @ v))
        by_channel = d.reshape(self._stimuli.n_channels, self._stimuli.n_steps)
        return (by_channel @ self._unfolding.readout_response(v)).T
