"""The non-linear problem: κ of a non-linear system as a function of both projections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._base import checks as check
from .._base.progress import tell
from ..math.margins import SoftMargin, gaussian_soft_margin
from ..math.sphere import maximize_on_sphere
from ..stimuli.base import Stimuli
from ..systems import System


@dataclass(frozen=True, eq=False)
class NonlinearProblem:
    """The soft margin of a non-linear system as a function of both projections.

    ``rough`` is the number of series of a rough problem; ``single`` selects single
    precision for it.
    """

    system: System
    stimuli: Stimuli
    eta: float
    rough: int | None = None
    single: bool = False

    @cached_property
    def moments_at(self):
        """The function that returns M(u) and Σ(u); see `Stimuli.moment_map`."""
        if self.rough is not None:
            return self.stimuli.rough_map(self.system, self.rough, single=self.single)
        return self.stimuli.moment_map(self.system)

    def settle(self, u: np.ndarray) -> bool:
        """Return whether the sub-steps, if any, are accurate at u; if not, change them."""
        settle = getattr(self.moments_at, "settle", None)
        return True if settle is None else settle(u)

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Return the best v for u, and κ (paper, equation 18, `soft-margin-gradient-v`)."""
        v, margin, _ = self._solve(u)
        return v, margin

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal v, κ, and ∂κ/∂u at that v."""
        v, margin, moments = self._solve(u)
        tell(f"κ {margin.value:.5g}")
        return v, margin, moments.pull(v, self.eta)

    def _solve(self, u: np.ndarray):
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            moments = self.moments_at(u)
        finite = np.isfinite(moments.M).all() and np.isfinite(moments.Sigma).all()
        problem = "the moments of the states exceed the range of floats"
        advice = "lower the non-linearity of the gain, or scale the stimuli down"
        check.require(finite, f"{problem}; {advice}.", OverflowError)
        v = maximize_on_sphere(moments.M, self.eta * moments.Sigma).v
        return v, gaussian_soft_margin(moments.M, moments.Sigma, v, self.eta), moments
