"""One class against the rest: its coordinates, its moments, its projections.

A two-class problem has one such comparison, a problem of more classes one per class, each
with its own origin, input projection and readout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validation as check
from .. import batch
from ..kernels import Kernel
from ..optimizers import optimize
from ..optimizers._linear import LinearProblem
from ..optimizers._result import Projections
from ..optimizers.ascent import ascend
from ..stimuli import SampleStimuli, Stimuli
from ..unfolding import Unfolding
from ..validity import Validity
from ._series import Series

#: Evaluations of the quick ascent, and the relative change of κ per step that ends it:
#: finer than what changes a prediction.
_EVALUATIONS = 100
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates (x − centre) · scale in which one class is told from the rest.

    Attributes
    ----------
    centre : ndarray (n_channels, n_steps)
        Half-way between the class mean and the mean of the rest.
    scale : float
        Makes ‖μ‖ the chosen input scaling.
    share : ndarray (2,)
        Weight of the rest and of the class.
    stimuli : Stimuli
        Their moments in these coordinates.
    """

    centre: np.ndarray
    scale: float
    share: np.ndarray
    stimuli: Stimuli


def frame_of(
    series: Series, positive: np.ndarray, weights: np.ndarray, scaling: float | None
) -> Frame:
    """Frame from the series themselves.

    Parameters
    ----------
    series : Series
    positive : ndarray (n_cases,) of bool
        The class; the others are the rest. Both occur.
    weights : ndarray (n_cases,)
    scaling : float or None
        ‖μ‖ wanted; None leaves the unit of the series.
    """
    groups = [np.where(positive == side, weights, 0.0) for side in (False, True)]
    centre = _halfway(series, groups)
    values = series.moved(centre, 1.0).reshape(len(series), -1)
    means, covariances = [], []
    for w in groups:
        chosen = w > 0
        w = w[chosen] / w.sum()
        means.append(w @ values[chosen])
        centred = values[chosen] - means[-1]
        covariances.append((centred * w[:, None]).T @ centred)
    share = np.array([w.sum() for w in groups])
    return _frame(centre, share / share.sum(), means, covariances, scaling)


def frame_of_moments(
    means: list[np.ndarray],
    covariances: list[np.ndarray],
    share: np.ndarray,
    shape: tuple[int, int],
    scaling: float | None,
) -> Frame:
    """Frame from mean and covariance of the rest and of the class, in raw coordinates."""
    centre = ((means[0] + means[1]) / 2).reshape(shape)
    moved = [mean - centre.ravel() for mean in means]
    return _frame(centre, share / share.sum(), moved, covariances, scaling)


def _halfway(series: Series, groups: list[np.ndarray]) -> np.ndarray:
    """Middle of the two means, step by step over the series that have begun."""
    if series.present is None:
        means = [np.tensordot(w, series.values, axes=1) / w.sum() for w in groups]
        return (means[0] + means[1]) / 2
    total = [np.tensordot(w, series.values, axes=1) for w in groups]
    begun = [w @ series.present for w in groups]
    middle = np.zeros(series.values.shape[1:])
    # Where only one side has begun, its mean is the centre: nothing can be learned there
    # but that a series is long.
    sides = np.sum([b > 0 for b in begun], axis=0)
    for t, b in zip(total, begun, strict=True):
        middle += np.divide(t, b * sides, out=np.zeros_like(t), where=b > 0)
    return middle


def _frame(
    centre: np.ndarray,
    share: np.ndarray,
    means: list[np.ndarray],
    covariances: list[np.ndarray],
    scaling: float | None,
) -> Frame:
    scale = 1.0
    if scaling is not None:
        distance = float(np.linalg.norm(means[1] - means[0])) / 2
        spread = float(np.sqrt(max(sum(np.trace(c) for c in covariances), 0.0)))
        # Means that coincide up to rounding set no scale; the spread does.
        if distance <= 1e-12 * max(spread, float(np.abs(centre).max())):
            distance = spread
        scale = scaling / distance if distance > 0 else 1.0
    means = [mean * scale for mean in means]
    apart = means[0] + means[1]
    psi = share[0] * covariances[0] + share[1] * covariances[1]
    psi = psi * scale**2 + share[0] * share[1] * np.outer(apart, apart)
    mu = share[1] * means[1] - share[0] * means[0]
    return Frame(centre, scale, share, Stimuli(mu, (psi + psi.T) / 2, *centre.shape))


@dataclass(frozen=True, eq=False)
class Head:
    """A fitted comparison: where it looks from, and what it reads.

    Attributes
    ----------
    centre, scale
        Of its `Frame`, in the units of the series as given.
    u : ndarray (n_neurons, n_channels)
    v : ndarray (n_neurons,)
    kernel : Kernel or None
        None beyond the orders that plain kernels hold.
    soft_margin, bound : float
        κ, and a proven upper bound over all projections (NaN where there is none).
    n_iter : int
    validity : Validity or None
    """

    centre: np.ndarray
    scale: float
    u: np.ndarray
    v: np.ndarray
    kernel: Kernel | None
    soft_margin: float
    bound: float
    n_iter: int
    validity: Validity | None = None


def solve_head(
    unfolding: Unfolding,
    frame: Frame,
    eta: float,
    u: np.ndarray | None,
    *,
    certify: bool,
    series: Series | None,
    positive: np.ndarray | None,
    seed: int,
) -> Head:
    """Projections of one comparison.

    Parameters
    ----------
    unfolding : Unfolding
    frame : Frame
    eta : float
    u : ndarray (n_neurons, n_channels) or None
        Input projection to keep; None to optimise it.
    certify : bool
        Spend the time to close the gap to the upper bound (order 0).
    series, positive
        The series and the class, needed beyond order 0.
    seed : int
        Of the random starts beyond order 0.
    """
    if unfolding.order:
        assert series is not None
        assert positive is not None
        stimuli = SampleStimuli(
            series.moved(frame.centre, frame.scale),
            np.where(positive, 1, -1),
            class_weight={-1: frame.share[0], 1: frame.share[1]},
            normalize=None,
        )
        found = optimize(unfolding, stimuli, eta, u=u, rng=seed)
        bound = np.nan if found.upper_bound is None else found.upper_bound
    elif certify and u is None:
        found = optimize(unfolding, frame.stimuli, eta)
        assert found.upper_bound is not None
        bound = found.upper_bound
    else:
        found, bound = _solve_quickly(LinearProblem(unfolding, frame.stimuli, eta), u)
    if isinstance(found, Projections):
        found.raise_if_interrupted()
    projection = found.u.reshape(unfolding.n_neurons, -1)
    kernel = None
    if batch.has_kernels(unfolding._schedule):
        kernel = unfolding.kernels(projection, found.v)
    return Head(
        frame.centre,
        frame.scale,
        projection,
        found.v,
        kernel,
        found.soft_margin,
        bound,
        max(1, found.n_iter),
        found.validity,
    )


@dataclass(frozen=True)
class _Quick:
    """The part of `Projections` that a head needs."""

    u: np.ndarray
    v: np.ndarray
    soft_margin: float
    n_iter: int
    validity: None = None


def _solve_quickly(
    problem: LinearProblem, u: np.ndarray | None
) -> tuple[Projections | _Quick, float]:
    """Ascent from the best atom, and the upper bound that two more atoms give.

    The bound κ(a) + σ_max(G(d)) − d·a holds at every kernel a; it is taken at the kernel
    found and at the best multiple of it, where a relaxation that is not tight lies closer.
    """
    mu = problem.stimuli.mu
    bound, start, _ = problem.best_atom(mu)
    if u is not None or not mu.any():
        kept = start if u is None else u / np.linalg.norm(u)
        v, margin = problem.best_readout(kept)
        found = _Quick(kept, v, margin.value, 1)
    else:
        best = ascend(problem, start, max_iter=_EVALUATIONS, tol=_TOLERANCE)
        if best.status == "interrupted":
            raise KeyboardInterrupt
        found = _Quick(best.u, best.v, best.margin.value, len(best.history))
    kernel = problem.kernel(found.u, found.v)
    margin = problem.margin_of_kernel(kernel)
    multiples = {1.0}
    if margin.variance > 0:
        multiples.add(min(1.0, max(0.0, margin.separation / (2 * margin.variance))))
    for factor in multiples:
        a = factor * kernel
        d = problem.gradient_at(a)
        sigma, _, _ = problem.best_atom(d)
        bound = min(bound, problem.margin_of_kernel(a).value + sigma - float(d @ a))
    return found, max(bound, found.soft_margin)


def read_out(heads: list[Head], unfolding: Any, series: Series) -> np.ndarray:
    """Read-out values (n_cases, n_heads) of series in the units that were given.

    One product per head for linear kernels; never a simulation.

    Parameters
    ----------
    heads : list of Head
    unfolding : callable
        Returns the Unfolding; called only where a head has no kernel.
    series : Series
    """
    rows = [
        head.kernel.linear * head.scale
        for head in heads
        if head.kernel is not None and head.kernel.quadratic is None
    ]
    if len(rows) == len(heads):
        weights = np.stack(rows)
        origin = weights * np.stack([head.centre for head in heads])
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            Z = series.values.reshape(len(series), -1) @ weights.reshape(len(heads), -1).T
        check.finite_result(Z, np)
        if series.present is None:
            return Z - origin.sum(axis=(1, 2))
        return Z - series.present @ origin.sum(axis=1).T
    Z = np.empty((len(series), len(heads)))
    for column, head in zip(Z.T, heads, strict=True):
        moved = series.moved(head.centre, head.scale)
        if head.kernel is not None:
            column[:] = head.kernel.decision_values(moved)
        else:
            column[:] = unfolding().states(moved, head.u) @ head.v
    return Z
