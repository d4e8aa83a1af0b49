"""The soft margin over the readout time, for one or several τ, and over the angle of u."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.printing import Shown
from .._base.progress import tell
from .._base.threads import with_few_threads
from ..math.margins import gaussian_soft_margin
from ..networks.reservoir import Reservoir
from ..optimizers.linear import best_margins
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
    times: ArrayLike | None = None,
    *,
    u: ArrayLike | None = None,
    v: ArrayLike | None = None,
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
    u: ArrayLike,
    angles: ArrayLike,
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


#: Share of its final value that a curve of κ has reached when it "enters the saturating
#: phase", and the share of the duration that has passed then. With shares from 0.93 to
#: 0.97, at 0.6 or two thirds of the duration, at least 18 of the paper's 20 networks get
#: its τ or a neighbour on a grid with ratio 1.5 (docs/reproduction, "Choices").
_REACHED, _PASSED = 0.95, 2 / 3


@dataclass(frozen=True, eq=False, repr=False)
class TauChoice(Shown):
    """A choice of τ, and the curves κ(T) of random input projections that decide it.

    Attributes
    ----------
    taus, times : ndarray (n_taus,) and (n_times,)
    soft_margin : ndarray (n_taus, n_times)
        κ averaged over random projections and over the stimuli.
    saturation : ndarray (n_taus,)
        κ after two thirds of the duration, as a share of κ at the end. It is near one, or
        above, if the curve saturates.
    best : float
        The τ that has just entered the saturating phase: the largest one with a saturation
        of at least 0.95. With a smaller τ, the phase is longer, because the network forgets
        the beginning of the stimuli. If no τ saturates, it is the one with the largest
        saturation.
    """

    taus: np.ndarray
    times: np.ndarray
    soft_margin: np.ndarray
    saturation: np.ndarray
    best: float

    def _facts(self) -> dict[str, Any]:
        compared = f"{len(self.taus)} values from {self.taus[0]:.4g} to {self.taus[-1]:.4g}"
        facts = {"best": self.best, "compared": compared, "times": len(self.times)}
        return {**facts, "note": self.note} if self.note else facts

    @property
    def note(self) -> str:
        """Return advice if the curves do not show when they saturate, else ""."""
        curve = self.soft_margin[np.argmin(np.abs(self.taus - self.best))]
        if not (self.saturation >= _REACHED).any():
            return "κ still grows at the end for every τ: compare smaller values"
        if curve[-1] < _REACHED * curve.max():
            return "κ falls towards the end: average over several random stimuli"
        if len(self.taus) > 1 and self.best == self.taus[-1]:
            return "the largest τ compared has saturated: compare larger values"
        return ""


@with_few_threads(lambda reservoir: reservoir.n_neurons)
def choose_tau(
    reservoir: Reservoir,
    stimuli: Stimuli | Sequence[Stimuli],
    dt: float,
    taus: ArrayLike | None = None,
    *,
    eta: float = 10.0,
    n_projections: int = 10,
    n_times: int = 25,
    rng: np.random.Generator | int | None = None,
) -> TauChoice:
    """Choose the τ whose soft margin has just begun to saturate (paper, "Prerequisites").

    The paper's rule looks at κ over the readout time, averaged over random input
    projections and random stimuli: κ should just have entered a saturating phase at the
    end, and a long phase should be avoided.

    Parameters
    ----------
    reservoir : Reservoir
        The network, whose weights are used with each τ.
    stimuli : GaussianStimuli or SampleStimuli, or a sequence of them
        Stimuli to average over, such as some hundred `GaussianStimuli.random` of the length
        of yours. The curve of a single problem shows at which steps its classes differ
        rather than what the network remembers.
    dt : float
        Length of a step.
    taus : array_like, optional
        Values of τ to compare; by default, 12 values from T/200 to T.
    n_projections, n_times : int
        Numbers of random input projections to average over, and of readout times.
    """
    wanted = "be a network with time constants, such as a Reservoir"
    check.instance(reservoir, Reservoir, "reservoir", wanted)
    problems = [stimuli] if isinstance(stimuli, Stimuli) else list(stimuli)
    several = bool(problems) and all(isinstance(one, Stimuli) for one in problems)
    wanted = "be stimuli or a sequence of them"
    check.must(several, "stimuli", wanted, type(stimuli).__name__, TypeError)
    n_steps, n_channels = problems[0].n_steps, problems[0].n_channels
    for one in problems:
        shape, got = (n_channels, n_steps), (one.n_channels, one.n_steps)
        wanted = "agree in channels and steps"
        check.must(got == shape, "stimuli", wanted, f"{got} and {shape}")
    duration = n_steps * check.positive(dt, "dt")
    grid = np.geomspace(duration / 200, duration, 12)
    if taus is not None:
        grid = np.sort(check.host_array(taus, "taus", ndim=(1,)))
    eta = check.positive(eta, "eta")
    n_times = check.count(n_times, "n_times")
    steps = np.unique(np.linspace(n_steps, 1, n_times).round().astype(int))
    n_drawn = check.count(n_projections, "n_projections")
    shape = (n_drawn, reservoir.n_neurons, n_channels)
    us = check.generator(rng).standard_normal(shape)
    us /= np.linalg.norm(us, axis=(1, 2), keepdims=True)
    mu = np.array([one.mu for one in problems])
    psi = np.array([np.asarray(one.psi) for one in problems])
    curves = np.zeros((len(grid), len(steps)))
    for row, tau in zip(curves, grid, strict=True):
        unfolding = unfold(reservoir.with_tau(tau), n_steps=n_steps, dt=dt)
        for i, step in enumerate(steps):
            maps = unfolding.with_readout(step * dt).maps
            responses = map(maps.input_response, us)
            row[i] = np.mean([best_margins(R, mu, psi, eta) for R in responses])
        tell(f"τ {tau:.4g}")
    times = steps * dt
    before = np.array([np.interp(_PASSED * duration, times, row) for row in curves])
    saturation = before / curves[:, -1]
    ready = saturation >= _REACHED
    chosen = np.flatnonzero(ready)[-1] if ready.any() else int(np.argmax(saturation))
    return TauChoice(grid, times, curves, saturation, float(grid[chosen]))
