"""The non-linear problem: κ(u, v) through the moments of a system's states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..margins import SoftMargin, gaussian_soft_margin
from ..sphere import maximize_on_sphere
from ..stimuli import Stimuli
from ..systems import System


@dataclass(frozen=True, eq=False)
class NonlinearProblem:
    """Soft margin of a non-linear system as a function of both projections."""

    system: System
    stimuli: Stimuli
    eta: float
    #: Series that stand for all; None for the problem itself.
    rough: int | None = None
    #: Whether the rough problem is integrated in single precision.
    single: bool = False

    @cached_property
    def moments_at(self):
        """M(u) and Σ(u) as a function of u; see `Stimuli.moment_map`."""
        if self.rough is not None:
            return self.stimuli.rough_map(self.system, self.rough, single=self.single)
        return self.stimuli.moment_map(self.system)

    def settle(self, u: np.ndarray) -> bool:
        """Whether an integrated system is accurate enough at u; now it is."""
        settle = getattr(self.moments_at, "settle", None)
        return True if settle is None else settle(u)

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal v for a given u (paper, equation 18, `soft-margin-gradient-v`)."""
        v, margin, _ = self._solve(u)
        return v, margin

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v."""
        v, margin, moments = self._solve(u)
        return v, margin, moments.pull(v, self.eta)

    def _solve(self, u: np.ndarray):
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            moments = self.moments_at(u)
        if not (np.isfinite(moments.M).all() and np.isfinite(moments.Sigma).all()):
            raise OverflowError(
                "the moments of the states exceed floating point; lower the non-linearity "
                "of the gain, or scale the stimuli down."
            )
        v = maximize_on_sphere(moments.M, self.eta * moments.Sigma).v
        return v, gaussian_soft_margin(moments.M, moments.Sigma, v, self.eta), moments
