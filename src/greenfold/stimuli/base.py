"""What both kinds of stimuli have in common: moments of labelled stimuli and states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validation as check
from .._repr import Shown
from ..margins import SoftMargin
from ..systems import LinearSystem, System
from .design import Design, Moments


@dataclass(frozen=True, eq=False, repr=False)
class Stimuli(Shown):
    """Two classes of stimuli with labels ζ = ±1, seen through their moments.

    Attributes
    ----------
    mu : ndarray (n_channels · n_steps,)
        μ = ⟨ζx⟩; channels one after the other.
    psi : ndarray or Factored (n_channels · n_steps, n_channels · n_steps)
        ψ = cov(ζx); of few long series it is kept by its factor, and never formed.
    n_channels, n_steps : int
    """

    mu: np.ndarray
    psi: Any
    n_channels: int
    n_steps: int

    def _facts(self) -> dict[str, Any]:
        return {
            "channels": self.n_channels,
            "steps": self.n_steps,
            "mu_norm": float(np.linalg.norm(self.mu)),
            "separability": self.separability,
        }

    @property
    def separability(self) -> float:
        """‖μ‖²/√(μᵀψμ): distance over the spread along it; infinite without spread."""
        length = float(self.mu @ self.mu)
        spread = float(np.sqrt(max(self.mu @ self.psi @ self.mu, 0.0)))
        if spread == 0:
            return np.inf if length else 0.0
        return length / spread

    def moments(self, system: System, u: Any) -> tuple[np.ndarray, np.ndarray]:
        """M(u) = ⟨ζy⟩ and Σ(u) = cov(ζy) of the states at the readout.

        Parameters
        ----------
        system : System
            Such as an `Unfolding`.
        u : array_like (n_inputs,) or (n_inputs, n_channels)

        Returns
        -------
        M : ndarray (n_outputs,)
        Sigma : ndarray (n_outputs, n_outputs)
        """
        projection = check.input_projection(u, system.n_inputs, self.n_channels)
        found = self.moment_map(system)(projection)
        return found.M, found.Sigma

    def moment_map(self, system: System) -> Callable[[np.ndarray], Moments]:
        """Prepare M(u) and Σ(u) as functions of u that can be differentiated.

        Parameters
        ----------
        system : System

        Returns
        -------
        callable
            Takes u (n_inputs, n_channels), returns an object with ``M``, ``Sigma`` and
            ``pull(v, eta)``, the gradient of the soft margin at fixed v.
        """
        self.match(system)
        if system.is_linear:
            return lambda u: LinearMoments(self, system.maps, u)
        return self._nonlinear_map(system)

    @property
    def n_series(self) -> int:
        """Series that stand for the classes where nothing is closed; 0 without such."""
        return 0

    def rough_map(
        self, system: System, n_series: int, *, single: bool = True
    ) -> Callable[[np.ndarray], Moments]:
        """A cheaper `moment_map`, for the beginning of an ascent.

        Parameters
        ----------
        system : System
            An integrated one.
        n_series : int
            About so many series stand for all, where there are more.
        single : bool
            Integrate in single precision.
        """
        del n_series, single
        return self.moment_map(system)

    def _nonlinear_map(self, system: System) -> Callable[[np.ndarray], Moments]:
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

    def points(self, degree: int | None, n_series: int) -> Design:
        """Series with the rule that makes moments of their states.

        Parameters
        ----------
        degree : int or None
            Of the states as polynomials of the stimulus; an exact rule is used where
            there is one for it.
        n_series : int
            About how many series to choose where there is none.
        """
        raise TypeError(f"{type(self).__name__} has no series to look at.")

    def fresh_margin(
        self, system: System, u: Any, v: Any, eta: float
    ) -> tuple[float, float] | None:
        """κ on stimuli that no fit has seen, with its standard error; None without such."""
        return None

    def match(self, system: System | LinearSystem) -> None:
        """Refuse a system for stimuli of another length."""
        if system.n_steps != self.n_steps:
            raise ValueError(
                f"`stimuli` have {self.n_steps} steps, but the system was made for "
                f"{system.n_steps}; make it with n_steps={self.n_steps}."
            )


class LinearMoments:
    """`Moments` of the linear order: only μ and ψ of the stimuli enter."""

    def __init__(self, stimuli: Stimuli, system: LinearSystem, u: np.ndarray) -> None:
        self._stimuli, self._system = stimuli, system
        self._R = system.input_response(u)
        self.M = self._R.T @ stimuli.mu
        Sigma = self._R.T @ stimuli.psi @ self._R
        self.Sigma = (Sigma + Sigma.T) / 2

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """∂κ/∂u at fixed v."""
        d = self._stimuli.mu - eta * (self._stimuli.psi @ (self._R @ v))
        by_channel = d.reshape(self._stimuli.n_channels, self._stimuli.n_steps)
        return (by_channel @ self._system.readout_response(v)).T
