"""One class against the rest: the coordinates of the comparison, and its moments there.

A two-class problem has one such comparison, a problem of more classes one per class, each
with its own origin and scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Stimuli
from .class_moments import ClassMoments, labelled_moments
from .samples import SampleStimuli
from .series import Series


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
        Their moments in these coordinates; with the series, where they were kept.
    """

    centre: np.ndarray
    scale: float
    share: np.ndarray
    stimuli: Stimuli


def frame_of(
    series: Series,
    positive: np.ndarray,
    weights: np.ndarray,
    scaling: float | None,
    *,
    keep: bool = False,
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
    keep : bool
        Keep the series with their moments, as a non-linear system needs them.
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
    frame = _frame(centre, share / share.sum(), means, covariances, scaling)
    if not keep:
        return frame
    counts = [int((w > 0).sum()) for w in groups]
    minus, plus = (
        ClassMoments(n, mean * frame.scale, n * frame.scale**2 * covariance)
        for n, mean, covariance in zip(counts, means, covariances, strict=True)
    )
    stimuli = SampleStimuli.settled(
        frame.stimuli,
        series.moved(centre, frame.scale),
        np.where(positive, 1, -1),
        weights / weights.sum(),
        (minus, plus),
    )
    return Frame(centre, frame.scale, frame.share, stimuli)


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
    mu, psi = labelled_moments(
        [mean * scale for mean in means], [c * scale**2 for c in covariances], share
    )
    return Frame(centre, scale, share, Stimuli(mu, psi, *centre.shape))
