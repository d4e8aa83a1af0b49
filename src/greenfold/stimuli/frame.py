"""One class against the rest: coordinates and moments of the comparison.

A two-class problem has one comparison, a problem of more classes one per class, each with
its own origin and scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from .._base.printing import Shown
from ..math.covariances import ClassMoments, labelled_moments, outer, trace
from .base import Series, Stimuli
from .chunks import Chunks
from .samples import SampleStimuli


@dataclass(frozen=True, eq=False, repr=False)
class Frame(Shown):
    """Coordinates (x − centre) · scale for one class against the rest.

    Attributes
    ----------
    centre : ndarray (n_channels, n_steps)
        Midpoint of the class mean and the mean of the rest.
    scale : float
        Factor that makes ‖μ‖ the chosen input scaling.
    share : ndarray (2,)
        Weights of the rest and of the class.
    stimuli : Stimuli
        Moments in these coordinates, and the series if they were kept.
    """

    centre: np.ndarray
    scale: float
    share: np.ndarray
    stimuli: Stimuli

    def _facts(self) -> dict[str, Any]:
        channels, steps = self.centre.shape
        facts = {"channels": channels, "steps": steps, "scale": self.scale}
        return {**facts, "share": f"({self.share[0]:.3g}, {self.share[1]:.3g})"}

    def _with_series(
        self,
        chunks: Chunks,
        positive: np.ndarray,
        weights: np.ndarray,
        parts: Sequence[ClassMoments],
        *coordinates: Any,
    ) -> Frame:
        """The same frame with the series; ``coordinates`` as in `SampleStimuli.settled`."""
        signs, share = np.where(positive, 1, -1), weights / weights.sum()
        given = self.stimuli, chunks, signs, share, parts
        return replace(self, stimuli=SampleStimuli.settled(*given, *coordinates))


def frames_of(
    series: Series,
    codes: np.ndarray,
    weights: np.ndarray,
    class_weights: np.ndarray,
    compared: Iterable[int],
    scaling: float | None,
) -> list[Frame]:
    """Frames of the ``compared`` classes, each against the rest, from the series.

    ``codes`` (n_cases,) are the classes 0, 1, …, ``weights`` the positive weights of the
    series and ``class_weights`` factors for whole classes. ``scaling`` is the ‖μ‖ wanted;
    None keeps the unit of the series.
    """
    members = [np.flatnonzero(codes == c) for c in range(len(class_weights))]
    each = None if (weights == 1).all() else weights

    def moments(values: np.ndarray) -> list[ClassMoments]:
        return [
            ClassMoments.of(values, rows, None if each is None else each[rows])
            for rows in members
        ]

    if series.present is None:
        shape, found = series.values.shape[1:], moments(series.values)
        return [frame_of_classes(found, c, class_weights, shape, scaling) for c in compared]
    frames = []
    for c in compared:
        centre = _halfway(series, _sides(codes == c, weights * class_weights[codes]))
        found = moments(series.moved(centre, 1.0))
        frames.append(_frame(centre, *_two_sides(found, c, class_weights), scaling))
    return frames


def frame_with_series(
    series: Series, positive: np.ndarray, weights: np.ndarray, scaling: float | None
) -> Frame:
    """Frame of one class that keeps the series, for a non-linear system.

    ``weights`` (n_cases,) include the class weights, so states have the moments of the
    weighted series. ``positive`` marks the class; both sides must occur.
    """
    groups = _sides(positive, weights)
    centre = _halfway(series, groups)
    values = series.moved(centre, 1.0)
    parts = [
        ClassMoments.of(values, np.flatnonzero(w > 0), w[w > 0] / w.sum()) for w in groups
    ]
    share = np.array([w.sum() for w in groups])
    frame = _frame_of_parts(centre, share, parts, scaling)
    chunks = Chunks.of_array(series.to_network(centre, frame.scale))
    scaled = [part.scaled(frame.scale) for part in parts]
    return frame._with_series(chunks, positive, weights, scaled)


def frame_in_chunks(
    chunks: Chunks,
    moments: Sequence[ClassMoments],
    codes: np.ndarray,
    c: int,
    class_weights: np.ndarray,
    scaling: float | None,
    exponent: int = 0,
) -> Frame:
    """`frame_with_series` of class ``c`` for series in chunks, all of one length.

    ``moments`` are those of all classes. They and the frame belong to the series divided by
    2 to the power ``exponent``.
    """
    weighted = [
        ClassMoments(part.count * w, part.mean, part.scatter * w)
        for part, w in zip(moments, class_weights, strict=True)
    ]
    sides = [weighted[:c] + weighted[c + 1 :], [weighted[c]]]
    parts = [reduce(ClassMoments.merge, side) for side in sides]
    centre = (parts[0].mean + parts[1].mean) / 2
    moved = [replace(part, mean=part.mean - centre) for part in parts]
    share = np.array([part.count for part in parts])
    frame = _frame_of_parts(centre.reshape(chunks.shape[1:]), share, moved, scaling)
    unit = float(np.ldexp(1.0, exponent))
    scaled = [part.scaled(unit) for part in parts]
    coordinates = frame.centre * unit, frame.scale / unit
    return frame._with_series(
        chunks, codes == c, class_weights[codes], scaled, *coordinates
    )


def frame_of_classes(
    moments: Sequence[ClassMoments],
    c: int,
    class_weights: np.ndarray,
    shape: tuple[int, int],
    scaling: float | None,
) -> Frame:
    """Frame of class ``c`` against the rest, from the moments of all, not centred."""
    share, means, covariances = _two_sides(moments, c, class_weights)
    centre = ((means[0] + means[1]) / 2).reshape(shape)
    moved = [mean - centre.ravel() for mean in means]
    return _frame(centre, share, moved, covariances, scaling)


def _sides(positive: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    return [np.where(positive == side, weights, 0.0) for side in (False, True)]


def _two_sides(
    moments: Sequence[ClassMoments], c: int, class_weights: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], list[Any]]:
    """Share, mean and covariance of the rest and of class ``c``."""
    prior = np.array([part.count for part in moments]) * class_weights
    seen = np.flatnonzero(prior > 0)
    sides = [seen[seen != c], seen[seen == c]]
    # Until a side has been seen, it is taken to equal the other one.
    sides = [side if len(side) else sides[1 - i] for i, side in enumerate(sides)]
    share = np.array([prior[side].sum() for side in sides])
    found = [_mixture([moments[k] for k in side], prior[side]) for side in sides]
    means, covariances = ([pair[i] for pair in found] for i in (0, 1))
    return share / share.sum(), means, covariances


def _mixture(parts: Sequence[ClassMoments], prior: np.ndarray) -> tuple[np.ndarray, Any]:
    """Mean and covariance of several classes together.

    Class weights affect the mean and the distances between class means. Inside a class,
    every series has its own weight only: otherwise a rare class of large weight would fill
    the covariance with the few directions in which its series happen to differ.
    """
    share = prior / prior.sum()
    mean = np.sum([p * part.mean for p, part in zip(share, parts, strict=True)], axis=0)
    covariance: Any = reduce(add, [part.scatter for part in parts])
    covariance = covariance / sum(part.count for part in parts)
    if len(parts) > 1:
        for p, part in zip(share, parts, strict=True):
            covariance = covariance + outer(part.mean - mean, p, covariance)
    return mean, covariance


def _halfway(series: Series, groups: list[np.ndarray]) -> np.ndarray:
    """Midpoint of the two means, per step over the series that have begun."""
    total = [np.tensordot(w, series.values, axes=1) for w in groups]
    if series.present is None:
        means = [t / w.sum() for t, w in zip(total, groups, strict=True)]
        return (means[0] + means[1]) / 2
    begun = [w @ series.present for w in groups]
    middle = np.zeros(series.values.shape[1:])
    # Where only one side has begun, its mean is the centre: the length of a series is all
    # that could be learned there.
    sides = np.sum([b > 0 for b in begun], axis=0)
    for t, b in zip(total, begun, strict=True):
        middle += np.divide(t, b * sides, out=np.zeros_like(t), where=b > 0)
    return middle


def _frame_of_parts(
    centre: np.ndarray,
    share: np.ndarray,
    parts: Sequence[ClassMoments],
    scaling: float | None,
) -> Frame:
    """Frame from the moments of both sides, around the centre."""
    means, covariances = ([getattr(p, n) for p in parts] for n in ("mean", "covariance"))
    return _frame(centre, share / share.sum(), means, covariances, scaling)


def _frame(
    centre: np.ndarray,
    share: np.ndarray,
    means: list[np.ndarray],
    covariances: list[Any],
    scaling: float | None,
) -> Frame:
    scale = 1.0
    if scaling is not None:
        distance = float(np.linalg.norm(means[1] - means[0])) / 2
        spread = float(np.sqrt(max(sum(map(trace, covariances)), 0.0)))
        # Means that coincide up to rounding set no scale; take the spread.
        if distance <= 1e-12 * max(spread, float(np.abs(centre).max())):
            distance = spread
        scale = scaling / distance if distance > 0 else 1.0
    mu, psi = labelled_moments(means, covariances, share, scale)
    return Frame(centre, scale, share, Stimuli(mu, psi, *centre.shape))
