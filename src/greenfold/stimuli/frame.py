"""One class against the rest: coordinates and moments of the comparison.

A problem with two classes has one comparison. A problem with more classes has one per
class, each with its own origin and scale. The classes are given as series in memory, in
chunks or as a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from .._base import model_files
from .._base.arrays import content_hashes
from .._base.arrays import exponent as exponents
from .._base.model_files import refuse_file
from .._base.printing import Shown
from ..math.class_moments import (
    ClassMoments,
    Factored,
    Symmetric,
    labelled_moments,
    outer,
    trace,
)
from ..math.decisions import Clouds
from .base import Series, Stimuli
from .chunks import Chunks
from .samples import SampleStimuli

#: Number of series that a stream keeps, in equal shares per class, and smallest share.
SIZE = 1000
_FEWEST = 20


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


def frames_of(
    series: Series,
    codes: np.ndarray,
    weights: np.ndarray,
    class_weights: np.ndarray,
    compared: Iterable[int],
    scaling: float | None,
) -> list[Frame]:
    """Return frames of the ``compared`` classes, each against the rest, from series.

    ``codes`` (n_cases,) are the classes 0, 1, …; ``weights`` are the positive weights of
    the series, and ``class_weights`` are factors for whole classes. ``scaling`` is the
    wanted ‖μ‖; None keeps the unit of the series.
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
    frames: list[Frame] = []
    for c in compared:
        centre = _halfway(series, _sides(codes == c, weights * class_weights[codes]))
        found = moments(series.moved(centre, 1.0))
        frames.append(_frame(centre, *_two_sides(found, c, class_weights), scaling))
    return frames


def frame_with_series(
    series: Series, positive: np.ndarray, weights: np.ndarray, scaling: float | None
) -> Frame:
    """Return the frame of one class with its series, for a non-linear system.

    ``weights`` (n_cases,) include the class weights, so states have the moments of the
    weighted series. ``positive`` marks the class; the class and the rest must both occur.
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
    signs, each = np.where(positive, 1, -1), weights / weights.sum()
    own = SampleStimuli.settled(frame.stimuli, chunks, signs, each, scaled)
    return replace(frame, stimuli=own)


def frame_in_chunks(
    chunks: Chunks,
    moments: Sequence[ClassMoments],
    codes: np.ndarray,
    c: int,
    class_weights: np.ndarray,
    scaling: float | None,
    exponent: int = 0,
) -> Frame:
    """Return the `frame_with_series` of class ``c`` for series of one length in chunks.

    ``moments`` are those of all classes. The moments and the frame belong to the series
    divided by 2 to the power ``exponent``.
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
    signs, each = np.where(codes == c, 1, -1), class_weights[codes]
    rule = signs, each / each.sum(), scaled
    place = frame.centre * unit, frame.scale / unit
    own = SampleStimuli.settled(frame.stimuli, chunks, *rule, *place)
    return replace(frame, stimuli=own)


def frame_of_classes(
    moments: Sequence[ClassMoments],
    c: int,
    class_weights: np.ndarray,
    shape: tuple[int, int],
    scaling: float | None,
) -> Frame:
    """Return the frame of class ``c`` against the rest, from uncentred class moments."""
    share, means, covariances = _two_sides(moments, c, class_weights)
    centre = ((means[0] + means[1]) / 2).reshape(shape)
    moved = [mean - centre.ravel() for mean in means]
    return _frame(centre, share, moved, covariances, scaling)


def _sides(positive: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    return [np.where(positive == side, weights, 0.0) for side in (False, True)]


def _two_sides(
    moments: Sequence[ClassMoments], c: int, class_weights: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], list[Symmetric]]:
    """Return share, mean and covariance of the rest and of class ``c``."""
    prior = np.array([part.count for part in moments]) * class_weights
    seen = np.flatnonzero(prior > 0)
    sides = [seen[seen != c], seen[seen == c]]
    # A side that has not been seen yet is taken to equal the other side.
    sides = [side if len(side) else sides[1 - i] for i, side in enumerate(sides)]
    share = np.array([prior[side].sum() for side in sides])
    found = [_mixture([moments[int(k)] for k in side], prior[side]) for side in sides]
    return share / share.sum(), [mean for mean, _ in found], [psi for _, psi in found]


def _mixture(
    parts: Sequence[ClassMoments], prior: np.ndarray
) -> tuple[np.ndarray, Symmetric]:
    """Return mean and covariance of several classes together.

    Class weights affect the mean and the distances between class means, but not the
    covariance inside a class. Otherwise, a rare class of large weight would fill the
    covariance with the few directions in which its series happen to differ.
    """
    share = prior / prior.sum()
    mean = np.sum([p * part.mean for p, part in zip(share, parts, strict=True)], axis=0)
    scatter = reduce(add, [part.scatter for part in parts])
    covariance: Symmetric = scatter / sum(part.count for part in parts)
    if len(parts) > 1:
        for p, part in zip(share, parts, strict=True):
            covariance = covariance + outer(part.mean - mean, p, covariance)
    return mean, covariance


def _halfway(series: Series, groups: list[np.ndarray]) -> np.ndarray:
    """Return the midpoint of the two means, per step over the series that have begun."""
    total = [np.tensordot(w, series.values, axes=1) for w in groups]
    if series.present is None:
        means = [t / w.sum() for t, w in zip(total, groups, strict=True)]
        return (means[0] + means[1]) / 2
    begun = [w @ series.present for w in groups]
    middle = np.zeros(series.values.shape[1:])
    # At a step at which only one side has begun, its mean is the centre: such a step could
    # teach nothing but the length of the series.
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
    """Return the frame from the moments of both sides around the centre."""
    means, covariances = [p.mean for p in parts], [p.covariance for p in parts]
    return _frame(centre, share / share.sum(), means, covariances, scaling)


def _frame(
    centre: np.ndarray,
    share: np.ndarray,
    means: list[np.ndarray],
    covariances: list[Symmetric],
    scaling: float | None,
) -> Frame:
    scale = 1.0
    if scaling is not None:
        distance = float(np.linalg.norm(means[1] - means[0])) / 2
        spread = float(np.sqrt(max(sum(map(trace, covariances)), 0.0)))
        # Means that coincide up to rounding set no scale; use the spread instead.
        if distance <= 1e-12 * max(spread, float(np.abs(centre).max())):
            distance = spread
        scale = scaling / distance if distance > 0 else 1.0
    mu, psi = labelled_moments(means, covariances, share, scale)
    return Frame(centre, scale, share, Stimuli(mu, psi, *centre.shape))


# Streams


@dataclass(frozen=True, eq=False)
class StreamSample:
    """A sample of the series of a growing stream, uniform within each class.

    The key of a series is a hash of its values; a factor of two does not change it. Each
    class keeps the series with the smallest keys, so at any time it holds a uniform sample
    of its distinct series, whatever their order. Copies count as one series with their
    total weight. All classes have the same number of places, so a rare class is not lost.
    ``seen`` counts the series of each class, kept or not; ``seed`` seeds the hash.
    """

    values: np.ndarray  # (n_kept, n_channels, n_steps)
    codes: np.ndarray
    weights: np.ndarray
    keys: np.ndarray
    seen: np.ndarray
    seed: int

    @classmethod
    def empty(cls, n_classes: int, shape: tuple[int, int], seed: int) -> StreamSample:
        """Return the sample before the first series."""
        none, codes = np.zeros(0), np.zeros(0, dtype=int)
        seen = np.zeros(n_classes, dtype=int)
        return cls(np.zeros((0, *shape)), codes, none, none, seen, seed)

    @property
    def is_whole(self) -> bool:
        """Whether no series had to be dropped."""
        return len(self.codes) == self.seen.sum()

    def add(
        self, values: np.ndarray, codes: np.ndarray, weights: np.ndarray
    ) -> StreamSample:
        """Return the sample after another batch."""
        own = np.asarray(values, dtype=np.float64)
        unit = exponents(own, (1, 2))[:, None, None]
        keys = content_hashes(np.ldexp(own, -unit), self.seed) / 2.0**64
        seen = np.bincount(codes, minlength=len(self.seen))
        return self.merge(StreamSample(values, codes, weights, keys, seen, self.seed))

    def merge(self, other: StreamSample) -> StreamSample:
        """Return the sample of both streams, with this stream first."""
        values, codes, weights, keys = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("values", "codes", "weights", "keys")
        )
        places = max(_FEWEST, SIZE // len(self.seen))
        kept = np.zeros(len(keys), dtype=bool)
        for c in range(len(self.seen)):
            own = np.flatnonzero(codes == c)
            own = own[np.argsort(keys[own], kind="stable")]
            same = np.append(False, keys[own[1:]] == keys[own[:-1]])[: len(own)]
            for at in np.flatnonzero(same):
                same[at] = np.array_equal(values[own[at]], values[own[at - 1]])
            first = own[~same]
            weights[first] = np.bincount(np.cumsum(~same) - 1, weights[own])
            kept[first[:places]] = True
        rows = values[kept], codes[kept], weights[kept], keys[kept]
        return StreamSample(*rows, self.seen + other.seen, self.seed)

    def standing_for(self, totals: np.ndarray) -> np.ndarray:
        """Return weights with which the sample represents classes of weights ``totals``."""
        kept = np.bincount(self.codes, self.weights, minlength=len(self.seen))
        return self.weights * (totals / np.maximum(kept, np.finfo(float).tiny))[self.codes]


@dataclass(eq=False)
class ClassStream:
    """Class moments and a sample of the series, updated batch by batch."""

    moments: list[ClassMoments]
    sample: StreamSample
    #: Number of series at the last choice of η; 0 before the first choice.
    chosen_at: int = 0

    @classmethod
    def empty(cls, n_classes: int, shape: tuple[int, int], seed: int) -> ClassStream:
        """Return the stream before the first series; ``shape`` is (n_channels, n_steps)."""
        size = shape[0] * shape[1]
        moments = [ClassMoments.empty(size) for _ in range(n_classes)]
        return cls(moments, StreamSample.empty(n_classes, shape, seed))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of channels and steps of the series."""
        return self.sample.values.shape[1], self.sample.values.shape[2]

    @property
    def counts(self) -> np.ndarray:
        """Total weight of the series of each class so far; their number if unweighted."""
        return np.array([part.count for part in self.moments])

    @property
    def n_seen(self) -> int:
        """Number of series so far, with positive weights."""
        return int(self.sample.seen.sum())

    def add(self, series: Series, codes: np.ndarray, weights: np.ndarray) -> None:
        """Add series of classes 0, 1, … with their positive weights."""
        plain = bool((weights == 1).all())
        for c in map(int, np.unique(codes)):
            rows = np.flatnonzero(codes == c)
            part = ClassMoments.of(series.values, rows, None if plain else weights[rows])
            self.moments[c] = self.moments[c].merge(part)
        self.sample = self.sample.add(series.values, codes, weights)

    def sampled(self) -> tuple[Series, np.ndarray, np.ndarray]:
        """Return the sampled series, their classes, and weights that represent all."""
        sample = self.sample
        return Series(sample.values), sample.codes, sample.standing_for(self.counts)

    def frame(self, c: int, class_weights: np.ndarray, scaling: float | None) -> Frame:
        """Return the frame of class ``c`` against the rest."""
        return frame_of_classes(self.moments, c, class_weights, self.shape, scaling)

    def clouds(
        self, rows: np.ndarray, origin: np.ndarray, class_weights: np.ndarray
    ) -> Clouds:
        """Return clouds of readout values ``rows @ x − origin``, rows (n_readouts, D)."""
        scatter = np.sum([rows @ part.scatter @ rows.T for part in self.moments], axis=0)
        means = np.stack([rows @ part.mean - origin for part in self.moments])
        return Clouds.of_scatter(means, scatter, self.counts, class_weights)


def _taken_moments(part: ClassMoments) -> dict[str, Any]:
    taken = {"count": part.count, "mean": part.mean, "factor": None, "scatter": None}
    if isinstance(part.scatter, Factored):
        return {**taken, "factor": part.scatter.factor}
    # The scatter is symmetric: one triangle is enough.
    return {**taken, "scatter": part.scatter[np.triu_indices(len(part.mean))]}


def _made_moments(
    count: float, mean: np.ndarray, factor: np.ndarray | None, scatter: np.ndarray | None
) -> ClassMoments:
    if factor is not None:
        return ClassMoments(count, mean, Factored(factor))
    upper = np.triu_indices(len(mean))
    if scatter is None or len(scatter) != len(upper[0]):
        refuse_file("its class moments have no scatter, or one of the wrong size.")
    whole = np.zeros((len(mean), len(mean)))
    whole[upper] = whole.T[upper] = scatter
    return ClassMoments(count, mean, whole)


def _taken_stream(stream: ClassStream) -> dict[str, Any]:
    # A complete sample is enough to compute its moments again.
    moments = None if stream.sample.is_whole else stream.moments
    return {"sample": stream.sample, "moments": moments, "chosen_at": stream.chosen_at}


def _made_stream(
    sample: StreamSample, moments: list[ClassMoments] | None, chosen_at: int
) -> ClassStream:
    codes, n_classes = sample.codes, len(sample.seen)
    if codes.dtype.kind not in "iu" or not np.isin(codes, np.arange(n_classes)).all():
        refuse_file("its sample of series has unknown classes.")
    kept = np.bincount(codes, minlength=n_classes)
    if sample.seed < 0 or (kept > sample.seen).any() or not len(codes):
        refuse_file("its sample of series is inconsistent.")
    if sample.is_whole:
        stream = ClassStream.empty(n_classes, sample.values.shape[1:], sample.seed)
        stream.add(Series(sample.values), codes, sample.weights)
        return ClassStream(stream.moments, sample, chosen_at)
    counts = [] if moments is None else [part.count for part in moments]
    if moments is None or min(counts) < 0 or not any(counts):
        refuse_file("its class moments are missing, or have negative counts.")
    return ClassStream(moments, sample, chosen_at)


_VALUES = ("channels", "steps")
_MOMENTS = model_files.Object(
    _made_moments,
    _taken_moments,
    count=model_files.NUMBER,
    mean=model_files.Numbers(_VALUES),
    factor=model_files.Maybe(model_files.Numbers(_VALUES, None)),
    scatter=model_files.Maybe(model_files.Numbers(None)),
)
_SAMPLE = model_files.Object(
    StreamSample,
    values=model_files.Numbers("kept", "channels", "steps"),
    codes=model_files.Numbers("kept"),
    weights=model_files.Numbers("kept", positive=True),
    keys=model_files.Numbers("kept"),
    seen=model_files.Numbers("classes"),
)
STREAM = model_files.Object(
    _made_stream,
    _taken_stream,
    sample=_SAMPLE,
    moments=model_files.Maybe(model_files.Several(_MOMENTS, "classes")),
    chosen_at=model_files.INTEGER,
)
