"""The soft margin around an optimum: over the readout time, and over the angle of u."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.threads import rows_of, with_few_threads
from ..math.margins import gaussian_soft_margin
from ..optimizers.run import optimize
from ..stimuli.base import Stimuli
from ..systems import System


@dataclass(frozen=True)
class MarginCurve:
    """Soft margin and its terms against the readout time.

    Attributes
    ----------
    times : ndarray (n_times,)
    soft_margin, separation, variance : ndarray (n_times,)
        κ = separation − variance.
    """

    times: np.ndarray
    soft_margin: np.ndarray
    separation: np.ndarray
    variance: np.ndarray


@with_few_threads(rows_of)
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
    """κ as a function of the readout time (paper, figures 2a, 2b, 4d).

    Parameters
    ----------
    unfolding : Unfolding
        Or another system with ``with_readout``, ``dt`` and ``n_steps``. Its own readout
        is replaced by each of ``times``.
    stimuli : GaussianStimuli or SampleStimuli
    times : array_like, optional
        In (0, T]; the ends of the steps by default.
    u : array_like, optional
        Input projection to keep; without it, both projections are solved again at every
        time.
    v : array_like, optional
        Readout to keep; without it, the readout is solved again at every time.
    eta : float
    rng : numpy Generator, int or None
        Source of the random starts where both projections are solved for beyond order 0.
    """
    if times is None:
        times = unfolding.dt * np.arange(1, unfolding.n_steps + 1)
    grid = check.host_array(times, "times", ndim=(1,))
    if v is not None and u is None:
        raise ValueError("`v` was given without `u`; give both, only `u`, or neither.")
    terms, rng = [], check.generator(rng)
    for time in grid:
        there = unfolding.with_readout(time)
        if v is not None:
            terms.append(gaussian_soft_margin(*stimuli.moments(there, u), v, eta))
        else:
            best = optimize(there, stimuli, eta, u=u, rng=rng)
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
    """κ when u is turned away from a direction in random planes (paper, figure 2d).

    Parameters
    ----------
    system : System
        Such as an `Unfolding`.
    stimuli : GaussianStimuli or SampleStimuli
    u : array_like (n_inputs,) or (n_inputs, n_channels)
        The direction at angle zero, for example the optimum.
    angles : array_like (n_angles,)
        Radians.
    n_planes : int
        Random planes through u.
    eta : float
    rng : numpy Generator, int or None

    Returns
    -------
    ndarray (n_planes, n_angles)
        The readout is optimal for each turned u.
    """
    angles = check.host_array(angles, "angles", ndim=(1,))
    centre = check.input_projection(u, system.n_inputs, stimuli.n_channels)
    if not centre.any():
        raise ValueError("`u` is zero; give a direction.")
    check.must(centre.size > 1, "u", "have a plane to be turned in", "one entry")
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
