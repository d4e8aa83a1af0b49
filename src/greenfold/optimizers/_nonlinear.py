"""The non-linear problem: κ(u, v) through the moments of an unfolding of order ≥ 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..margin import SoftMargin, gaussian_soft_margin
from ..sphere import maximize_on_sphere
from ..stimuli import Stimuli
from ..unfolding import Unfolding


@dataclass(frozen=True, eq=False)
class NonlinearProblem:
    """Soft margin of a non-linear reservoir as a function of both projections."""

    unfolding: Unfolding
    stimuli: Stimuli
    eta: float

    @cached_property
    def moments_at(self):
        """M(u) and Σ(u) as a function of u; see `Stimuli.moment_map`."""
        return self.stimuli.moment_map(self.unfolding)

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal v for a given u (paper, `soft-margin-gradient-v`)."""
        v, margin, _ = self._solve(u)
        return v, margin

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v."""
        v, margin, moments = self._solve(u)
        return v, margin, moments.pull(v, self.eta)

    def at_fixed_readout(
        self, u: np.ndarray, v: np.ndarray
    ) -> tuple[SoftMargin, np.ndarray]:
        """κ and ∂κ/∂u for a readout that is kept."""
        moments = self.moments_at(u)
        margin = gaussian_soft_margin(moments.M, moments.Sigma, v, self.eta)
        return margin, moments.pull(v, self.eta)

    def _solve(self, u: np.ndarray):
        moments = self.moments_at(u)
        v = maximize_on_sphere(moments.M, self.eta * moments.Sigma).v
        return v, gaussian_soft_margin(moments.M, moments.Sigma, v, self.eta), moments
