"""Questions around an optimum: over time, over angle, over η and over τ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _validation as check
from .margin import gaussian_soft_margin
from .optimizers import optimize
from .optimizers._linear import LinearProblem
from .reservoir import Reservoir
from .sphere import solve_in_eigenbasis
from .stimuli import SampleStimuli, Stimuli, linear_map
from .unfolding import Unfolding, unfold


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


def margin_over_time(
    unfolding: Unfolding,
    stimuli: Stimuli,
    times: Any = None,
    *,
    u: Any = None,
    v: Any = None,
    eta: float = 10.0,
    rng: np.random.Generator | int | None = None,
) -> MarginCurve:
    """κ as a function of the readout time (paper, Figs. 2a, 2b, 4d).

    Parameters
    ----------
    unfolding : Unfolding
        Its own readout is replaced by each of ``times``.
    stimuli : GaussianStimuli or SampleStimuli
    times : array_like, optional
        In (0, T]; the ends of the steps by default.
    u : array_like, optional
        Input projection to keep; without it, both projections are re-optimised at every
        time.
    v : array_like, optional
        Readout to keep; without it, the readout is re-optimised at every time.
    eta : float
    rng : numpy Generator, int or None
        Source of the random starts where both projections are optimised beyond order 0.
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


def margin_over_angle(
    unfolding: Unfolding,
    stimuli: Stimuli,
    u: Any,
    angles: Any,
    *,
    n_planes: int = 20,
    eta: float = 10.0,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """κ when u is turned away from a direction in random planes (paper, Fig. 2d).

    Parameters
    ----------
    unfolding : Unfolding
    stimuli : GaussianStimuli or SampleStimuli
    u : array_like (n_neurons,) or (n_neurons, n_channels)
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
    centre = check.input_projection(u, unfolding.n_neurons, stimuli.n_channels)
    if not centre.any():
        raise ValueError("`u` is zero; give a direction.")
    if centre.size == 1:
        raise ValueError("`u` has one entry only; there is no plane to turn it in.")
    centre = centre / np.linalg.norm(centre)
    rng = check.generator(rng)
    found = np.empty((check.count(n_planes, "n_planes"), len(angles)))
    for row in found:
        other = rng.standard_normal(centre.shape)
        other -= (other * centre).sum() * centre
        other /= np.linalg.norm(other)
        for i, angle in enumerate(angles):
            turned = np.cos(angle) * centre + np.sin(angle) * other
            best = optimize(unfolding, stimuli, eta, u=turned)
            best.raise_if_interrupted()
            row[i] = best.soft_margin
    return found


@dataclass(frozen=True)
class EtaChoice:
    """Readouts and cross-validated accuracies over a grid of η.

    Attributes
    ----------
    etas : ndarray (n_etas,)
    accuracy : ndarray (n_etas, n_folds)
        Share of held-out series on the right side of the plane through the origin.
    overlap : ndarray (n_etas, n_etas)
        Cosine between the readouts of any two η; near one where η hardly matters.
    best : float
        The η of highest mean accuracy; among equals, the smallest.
    """

    etas: np.ndarray
    accuracy: np.ndarray
    overlap: np.ndarray
    best: float


def choose_eta(
    unfolding: Unfolding,
    X: Any,
    labels: Any,
    u: Any,
    etas: Any = None,
    *,
    n_folds: int = 5,
    rng: np.random.Generator | int | None = None,
) -> EtaChoice:
    """Compare η by readout and by cross-validated accuracy (paper, "Prerequisites").

    The covariance is decomposed once per fold; every η of the grid then costs one
    scalar equation.

    Parameters
    ----------
    unfolding : Unfolding
        The linear order is used.
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
    labels : array_like (n_cases,)
        Two classes.
    u : array_like
        Input projection, for example a random one: the choice depends little on it.
    etas : array_like, optional
        Grid; 0.1 to 1000 in 17 logarithmic steps by default.
    n_folds : int
    rng : numpy Generator, int or None
        Shuffles the folds.
    """
    from sklearn.model_selection import StratifiedKFold

    grid = (
        np.geomspace(0.1, 1000, 17)
        if etas is None
        else np.sort(check.host_array(etas, "etas", ndim=(1,)))
    )
    if grid[0] <= 0:
        raise ValueError(f"`etas` must be positive; got {grid[0]:g}.")
    stimuli = SampleStimuli(X, labels)
    signs = np.asarray(stimuli.signs)
    smallest = int(min((signs > 0).sum(), (signs < 0).sum()))
    if smallest < check.count(n_folds, "n_folds", minimum=2):
        raise ValueError(
            f"`n_folds` = {n_folds} needs as many series of each class; the smaller class "
            f"has {smallest}."
        )
    stimuli.match(unfolding)
    check.input_projection(u, unfolding.n_neurons, stimuli.n_channels)
    R = linear_map(unfolding, u)
    readouts = _readouts(stimuli, R, grid)
    seed = int(check.generator(rng).integers(2**31))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    raw = check.host_array(X, "X")
    accuracy = np.empty((len(grid), n_folds))
    for fold, (train, test) in enumerate(folds.split(raw, signs)):
        part = SampleStimuli(raw[train], signs[train])
        held_out = part.transform(raw[test]).reshape(len(test), -1)
        z = held_out @ R @ _readouts(part, R, grid).T
        accuracy[:, fold] = ((z >= 0) == (signs[test] > 0)[:, None]).mean(0)
    best = float(grid[np.argmax(accuracy.mean(1))])
    return EtaChoice(grid, accuracy, readouts @ readouts.T, best)


def _readouts(stimuli: Stimuli, R: np.ndarray, etas: np.ndarray) -> np.ndarray:
    """Optimal readout for each η, (n_etas, n_neurons), from one eigendecomposition."""
    Sigma = R.T @ stimuli.psi @ R
    values, vectors = np.linalg.eigh((Sigma + Sigma.T) / 2)
    return solve_in_eigenbasis(R.T @ stimuli.mu, etas[:, None] * values, vectors).v


@dataclass(frozen=True)
class TauChoice:
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
    duration = stimuli.n_steps * check.positive(dt, "dt")
    grid = (
        np.geomspace(duration / 200, duration, 12)
        if taus is None
        else np.sort(check.host_array(taus, "taus", ndim=(1,)))
    )
    eta = check.positive(eta, "eta")
    n_times = check.count(n_times, "n_times")
    steps = np.unique(np.linspace(stimuli.n_steps, 1, n_times).round().astype(int))
    rng = check.generator(rng)
    shape = (
        check.count(n_projections, "n_projections"),
        reservoir.n_neurons,
        stimuli.n_channels,
    )
    drawn = rng.standard_normal(shape)
    curves = np.zeros((len(grid), len(steps)))
    for row, tau in zip(curves, grid, strict=True):
        there = Reservoir(reservoir.weights, tau, allow_unstable=reservoir.allow_unstable)
        unfolding = unfold(there, n_steps=stimuli.n_steps, dt=dt)
        for i, step in enumerate(steps):
            problem = LinearProblem(unfolding.with_readout(step * dt), stimuli, eta)
            values = [problem.best_readout(u / np.linalg.norm(u))[1].value for u in drawn]
            row[i] = np.mean(values)
    saturation = (curves >= 0.95 * curves.max(1, keepdims=True)).mean(1)
    ready = saturation <= 0.2
    final = np.where(ready, curves[:, -1], -np.inf) if ready.any() else -saturation
    return TauChoice(grid, steps * dt, curves, saturation, float(grid[np.argmax(final)]))
