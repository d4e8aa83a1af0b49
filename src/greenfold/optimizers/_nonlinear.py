"""The non-linear problem: κ(u, v) through the moments of an unfolding of order ≥ 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..collapsed import CollapsedMap, node_responses
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

    def at_fixed_readout(self, v: np.ndarray) -> FixedReadout:
        """κ and ∂κ/∂u for a readout that is kept, as a function of u."""
        return FixedReadout(self, v)

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


class FixedReadout:
    """κ(u) at one readout, and its gradient.

    Of the network only the kernels of this readout are needed, several times cheaper than
    the states of all neurons.

    Parameters
    ----------
    problem : NonlinearProblem
        Of order 1 with a quadratic gain, read at the ends of steps.
    v : ndarray (n_neurons,)
    """

    def __init__(self, problem: NonlinearProblem, v: np.ndarray) -> None:
        self._stimuli, self._eta = problem.stimuli, problem.eta
        self._schedule = problem.unfolding._schedule
        self._map = CollapsedMap(self._schedule, v, problem.stimuli.n_steps)

    def __call__(self, u: np.ndarray) -> tuple[SoftMargin, np.ndarray]:
        """κ and ∂κ/∂u, the latter (n_neurons, n_channels)."""
        responses = node_responses(self._schedule, u)
        a, C = self._map.kernels(u, responses)
        margin, a_bar, C_bar = self._stimuli.kernel_margin(
            a.ravel(), C.reshape(a.size, a.size), self._eta
        )
        gradient = self._map.pullback(
            responses, a_bar.reshape(a.shape), C_bar.reshape(C.shape)
        )
        return margin, gradient
