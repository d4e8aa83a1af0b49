"""The choice of the time constant by saturation, as the paper does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.printing import Shown
from .._base.threads import rows_of, with_few_threads
from ..networks.reservoir import Reservoir
from ..optimizers.linear import LinearProblem
from ..stimuli.base import Stimuli
from ..systems import Network
from ..unfolding.unfolding import unfold


@dataclass(frozen=True, eq=False, repr=False)
class TauChoice(Shown):
    """Soft margin of random input projections against time, for several τ.

    Attributes
    ----------
    taus : ndarray (n_taus,)
    times : ndarray (n_times,)
    soft_margin : ndarray (n_taus, n_times)
        Mean over random projections.
    saturation : ndarray (n_taus,)
        Share of the time that the mean soft margin spends in its last 5 %: large where
        the network has long forgotten the beginning, about 0.05 where it still grows.
    best : float
        The τ of largest final soft margin among those that just entered saturation
        (share of at most 0.2); where none has, the one that saturates least.
    """

    taus: np.ndarray
    times: np.ndarray
    soft_margin: np.ndarray
    saturation: np.ndarray
    best: float

    def _facts(self) -> dict[str, Any]:
        compared = f"{len(self.taus)} values from {self.taus[0]:.4g} to {self.taus[-1]:.4g}"
        return {"best": self.best, "compared": compared, "times": len(self.times)}


@with_few_threads(rows_of)
def choose_tau(
    reservoir: Reservoir,
    stimuli: Stimuli,
    dt: float,
    taus: Any = None,
    *,
    eta: float = 10.0,
    n_projections: int = 10,
    n_times: int = 25,
    rng: np.random.Generator | int | None = None,
) -> TauChoice:
    """Choose the time constant by where the soft margin saturates ("Prerequisites").

    Parameters
    ----------
    reservoir : Reservoir
        Its weights are used with each τ.
    stimuli : GaussianStimuli or SampleStimuli
    dt : float
        Length of a step.
    taus : array_like, optional
        By default 12 values from T/200 to T.
    eta : float
    n_projections : int
        Random input projections to average over.
    n_times : int
        Readout times to look at, spread over the steps.
    rng : numpy Generator, int or None
    """
    fits, given = isinstance(reservoir, Network), type(reservoir).__name__
    wanted = "be a network with time constants, such as a Reservoir"
    check.must(fits, "reservoir", wanted, given, TypeError)
    duration = stimuli.n_steps * check.positive(dt, "dt")
    grid = np.geomspace(duration / 200, duration, 12)
    if taus is not None:
        grid = np.sort(check.host_array(taus, "taus", ndim=(1,)))
    eta = check.positive(eta, "eta")
    n_times = check.count(n_times, "n_times")
    steps = np.unique(np.linspace(stimuli.n_steps, 1, n_times).round().astype(int))
    n_drawn = check.count(n_projections, "n_projections")
    shape = (n_drawn, reservoir.n_neurons, stimuli.n_channels)
    drawn = check.generator(rng).standard_normal(shape)
    curves = np.zeros((len(grid), len(steps)))
    for row, tau in zip(curves, grid, strict=True):
        there = reservoir.with_tau(tau)
        unfolding = unfold(there, n_steps=stimuli.n_steps, dt=dt)
        for i, step in enumerate(steps):
            maps = unfolding.with_readout(step * dt).maps
            problem = LinearProblem(maps, stimuli, eta)
            values = [problem.best_readout(u / np.linalg.norm(u))[1].value for u in drawn]
            row[i] = np.mean(values)
    saturation = (curves >= 0.95 * curves.max(1, keepdims=True)).mean(1)
    ready = saturation <= 0.2
    final = np.where(ready, curves[:, -1], -np.inf) if ready.any() else -saturation
    return TauChoice(grid, steps * dt, curves, saturation, float(grid[np.argmax(final)]))
