"""The soft margin over the readout time, for one or several τ, and over the angle of u."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.printing import Shown
from .._base.threads import with_few_threads
from ..math.margins import gaussian_soft_margin
from ..networks.reservoir import Reservoir
from ..optimizers.linear import LinearProblem
from ..optimizers.run import optimize
from ..stimuli.base import Stimuli
from ..systems import System, rows_of
from ..unfolding.unfolding import unfold


@dataclass(frozen=True)
class MarginCurve:
    """The soft margin κ and its parts over the readout time, each (n_times,)."""

    times: np.ndarray
    soft_margin: np.ndarray
    separation: np.ndarray
    variance: np.ndarray


@with_few_threads(lambda unfolding: unfolding.n_neurons)
def margin_over_time(
    unfolding: Any,
    stimuli: Stimuli,
    times: Any = None,
    *,
    u: Any = None,
    v: Any = None,
    eta: float = 10.0,
    rng: np.random.Generator | int | None = None,
) -> MarginCurve:
    """Return the soft margin κ over the readout time (paper, figures 2a, 2b, 4d).

    Parameters
    ----------
    unfolding : Unfolding
        An `Unfolding`, or another system with ``with_readout``, ``dt`` and ``n_steps``.
        Each entry of ``times`` replaces its own readout.
    stimuli : GaussianStimuli or SampleStimuli
    times : array_like, optional
        Readout times in (0, T]; by default, the ends of the steps.
    u, v : array_like, optional
        Projections to keep. Projections not given are solved again at each time.
    eta : float
    rng : numpy Generator, int or None
        Source of random starts, used if both projections are solved beyond order 0.
    """
    if times is None:
        times = unfolding.dt * np.arange(1, unfolding.n_steps + 1)
    grid = check.host_array(times, "times", ndim=(1,))
    if v is not None and u is None:
        raise ValueError("`v` was given without `u`; pass both, only `u`, or neither.")
    terms, rng = [], check.generator(rng)
    for time in grid:
        there = unfolding.with_readout(time)
        if u is not None and v is not None:
            terms.append(gaussian_soft_margin(*stimuli.moments(there, u), v, eta))
        else:
            random = u is None and not there.is_linear
            best = optimize(there, stimuli, eta, u=u, rng=rng if random else None)
            best.raise_if_interrupted()
            terms.append((best.soft_margin, best.separation, best.variance))
    return MarginCurve(grid, *np.array(terms).T)


@with_few_threads(rows_of)
def margin_over_angle(
    system: System,
    stimuli: Stimuli,
    u: Any,
    angles: Any,
    *,
    n_planes: int = 20,
    eta: float = 10.0,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Return the soft margin κ as u turns away from a direction (paper, figure 2d).

    Parameters
    ----------
    system : System
        A system such as an `Unfolding`.
    stimuli : GaussianStimuli or SampleStimuli
    u : array_like (n_inputs,) or (n_inputs, n_channels)
        The direction at angle zero, for example the optimum.
    angles : array_like (n_angles,)
        Angles in radians. u turns by each of them in ``n_planes`` random planes through u.

    Returns
    -------
    ndarray (n_planes, n_angles)
        κ with the optimal readout for each turned u.
    """
    angles = check.host_array(angles, "angles", ndim=(1,))
    centre = check.input_projection(u, system.n_inputs, stimuli.n_channels)
    if not centre.any():
        raise ValueError("`u` is zero; pass a direction.")
    check.must(centre.size > 1, "u", "have at least two entries to be turned", "one entry")
    centre = centre / np.linalg.norm(centre)
    rng = check.generator(rng)
    found = np.empty((check.count(n_planes, "n_planes"), len(angles)))
    for row in found:
        other = rng.standard_normal(centre.shape)
        other -= (other * centre).sum() * centre
        other /= np.linalg.norm(other)
        for i, angle in enumerate(angles):
            turned = np.cos(angle) * centre + np.sin(angle) * other
            best = optimize(system, stimuli, eta, u=turned)
            best.raise_if_interrupted()
            row[i] = best.soft_margin
    return found


@dataclass(frozen=True, eq=False, repr=False)
class TauChoice(Shown):
    """A choice of τ, and the soft margin of random input projections over time for each τ.

    Attributes
    ----------
    taus, times : ndarray (n_taus,) and (n_times,)
    soft_margin : ndarray (n_taus, n_times)
        Mean over random projections.
    saturation : ndarray (n_taus,)
        Share of the times at which the mean soft margin is within 5 % of its maximum:
        large if the network forgot the beginning long ago, about 0.05 if the soft margin
        still grows.
    best : float
        The τ with the largest final soft margin among those that have just entered
        saturation (a share of at most 0.2); if there is none, the τ that saturates least.
    """

    taus: np.ndarray
    times: np.ndarray
    soft_margin: np.ndarray
    saturation: np.ndarray
    best: float

    def _facts(self) -> dict[str, Any]:
        compared = f"{len(self.taus)} values from {self.taus[0]:.4g} to {self.taus[-1]:.4g}"
        return {"best": self.best, "compared": compared, "times": len(self.times)}


@with_few_threads(lambda reservoir: reservoir.n_neurons)
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
    """Choose the time constant τ at which the soft margin begins to saturate.

    Parameters
    ----------
    reservoir : Reservoir
        The network, whose weights are used with each τ.
    stimuli : GaussianStimuli or SampleStimuli
    dt : float
        Length of a step.
    taus : array_like, optional
        Values of τ to compare; by default, 12 values from T/200 to T.
    n_projections, n_times : int
        Numbers of random input projections to average over, and of readout times.
    """
    wanted = "be a network with time constants, such as a Reservoir"
    check.instance(reservoir, Reservoir, "reservoir", wanted)
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
