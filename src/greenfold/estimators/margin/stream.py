"""A stream of series: class moments, and a sample to choose η with.

The linear order needs only the number, mean and scatter of each class. Cross-validation
needs series, so a bounded sample is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base import codec
from ..._base.archive import refuse
from ..._base.arrays import content_hashes, exponent
from ...math.covariances import Factored
from ...math.decisions import Clouds
from ...stimuli.base import Series
from ...stimuli.class_moments import ClassMoments
from ...stimuli.frame import Frame, frame_of_classes
from .heads import Head

#: Number of series to keep; each class gets its share, and at least a few.
SIZE = 1000
_FEWEST = 20


@dataclass(frozen=True, eq=False)
class StreamSample:
    """A sample of the series of a stream, drawn evenly from each class as it grows.

    The key of a series is a hash of its values in any unit, and each class keeps the series
    with the smallest keys: at any time a uniform sample of its distinct series, whatever
    their order. Copies count as one series with their total weight. Classes have equal
    places, so that a rare class is not lost. ``seen`` counts the series of each class, kept
    or not; ``seed`` seeds the hash.
    """

    values: np.ndarray  # (n_kept, n_channels, n_steps)
    codes: np.ndarray
    weights: np.ndarray
    keys: np.ndarray
    seen: np.ndarray
    seed: int

    @classmethod
    def empty(cls, n_classes: int, shape: tuple[int, int], seed: int) -> StreamSample:
        """The sample before the first series."""
        none, codes = np.zeros(0), np.zeros(0, dtype=int)
        seen = np.zeros(n_classes, dtype=int)
        return cls(np.zeros((0, *shape)), codes, none, none, seen, seed)

    @property
    def is_whole(self) -> bool:
        """Whether no series had to be dropped."""
        return len(self.codes) == self.seen.sum()

    def add(self, values: Any, codes: np.ndarray, weights: np.ndarray) -> StreamSample:
        """The sample after another batch."""
        own = np.asarray(values, dtype=np.float64)
        unit = exponent(own, (1, 2))[:, None, None]
        keys = content_hashes(np.ldexp(own, -unit), self.seed) / 2.0**64
        seen = np.bincount(codes, minlength=len(self.seen))
        return self.merge(StreamSample(values, codes, weights, keys, seen, self.seed))

    def merge(self, other: StreamSample) -> StreamSample:
        """The sample of both streams, this one first."""
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
        """Weights that make the sample represent classes of these total weights."""
        kept = np.bincount(self.codes, self.weights, minlength=len(self.seen))
        return self.weights * (totals / np.maximum(kept, np.finfo(float).tiny))[self.codes]


@dataclass(eq=False)
class ClassStream:
    """Moments of each class and a sample of the series, batch by batch."""

    moments: list[ClassMoments]
    sample: StreamSample
    #: The number of series at the last choice of η; 0 before.
    chosen_at: int = 0

    @classmethod
    def empty(cls, n_classes: int, shape: tuple[int, int], seed: int) -> ClassStream:
        """The stream before the first series; ``shape`` is (n_channels, n_steps)."""
        size = shape[0] * shape[1]
        moments = [ClassMoments.empty(size) for _ in range(n_classes)]
        return cls(moments, StreamSample.empty(n_classes, shape, seed))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of channels and steps of the series."""
        return self.sample.values.shape[1], self.sample.values.shape[2]

    @property
    def counts(self) -> np.ndarray:
        """Weight of the series of each class so far; their number, if unweighted."""
        return np.array([part.count for part in self.moments])

    @property
    def n_seen(self) -> int:
        """Number of series so far, with positive weights."""
        return int(self.sample.seen.sum())

    def add(self, series: Series, codes: np.ndarray, weights: np.ndarray) -> None:
        """Add series of classes 0, 1, … with their positive weights."""
        plain = bool((weights == 1).all())
        for c in np.unique(codes).tolist():
            rows = np.flatnonzero(codes == c)
            part = ClassMoments.of(series.values, rows, None if plain else weights[rows])
            self.moments[c] = self.moments[c].merge(part)
        self.sample = self.sample.add(series.values, codes, weights)

    def sampled(self) -> tuple[Series, np.ndarray, np.ndarray]:
        """The series of the sample, their classes, and weights to represent all."""
        sample = self.sample
        return Series(sample.values), sample.codes, sample.standing_for(self.counts)

    def frame(self, c: int, class_weights: np.ndarray, scaling: float | None) -> Frame:
        """Frame of class ``c`` against the rest."""
        return frame_of_classes(self.moments, c, class_weights, self.shape, scaling)

    def clouds(self, heads: list[Head], class_weights: np.ndarray) -> Clouds:
        """Clouds of the readout values of linear heads, in the unit of the stream."""
        rows = [head.kernel.linear * head.scale for head in heads if head.kernel]
        A = np.stack(rows).reshape(len(heads), -1)
        origin = (A * np.stack([head.centre.ravel() for head in heads])).sum(1)
        scatter = np.sum([A @ part.scatter @ A.T for part in self.moments], axis=0)
        means = np.stack([A @ part.mean - origin for part in self.moments])
        return Clouds.of_scatter(means, scatter, self.counts, class_weights)


# Files


def _taken_moments(part: ClassMoments) -> dict[str, Any]:
    taken = {"count": part.count, "mean": part.mean, "factor": None, "scatter": None}
    if isinstance(part.scatter, Factored):
        return {**taken, "factor": part.scatter.factor}
    # Symmetric: save one half.
    return {**taken, "scatter": part.scatter[np.triu_indices(len(part.mean))]}


def _made_moments(
    count: float, mean: np.ndarray, factor: np.ndarray | None, scatter: np.ndarray | None
) -> ClassMoments:
    if factor is not None:
        return ClassMoments(count, mean, Factored(factor))
    upper = np.triu_indices(len(mean))
    if scatter is None or len(scatter) != len(upper[0]):
        refuse("its class moments have no scatter, or one of the wrong size.")
    whole = np.zeros((len(mean), len(mean)))
    whole[upper] = whole.T[upper] = scatter
    return ClassMoments(count, mean, whole)


def _taken_stream(stream: ClassStream) -> dict[str, Any]:
    # The moments of a complete sample are computed again from it.
    moments = None if stream.sample.is_whole else stream.moments
    return {"sample": stream.sample, "moments": moments, "chosen_at": stream.chosen_at}


def _made_stream(
    sample: StreamSample, moments: list[ClassMoments] | None, chosen_at: int
) -> ClassStream:
    codes, n_classes = sample.codes, len(sample.seen)
    if codes.dtype.kind not in "iu" or not np.isin(codes, np.arange(n_classes)).all():
        refuse("its sample of series has unknown classes.")
    kept = np.bincount(codes, minlength=n_classes)
    if sample.seed < 0 or (kept > sample.seen).any() or not len(codes):
        refuse("its sample of series is inconsistent.")
    if sample.is_whole:
        stream = ClassStream.empty(n_classes, sample.values.shape[1:], sample.seed)
        stream.add(Series(sample.values), codes, sample.weights)
        return ClassStream(stream.moments, sample, chosen_at)
    counts = [] if moments is None else [part.count for part in moments]
    if moments is None or min(counts) < 0 or not any(counts):
        refuse("its class moments are missing, or have negative counts.")
    return ClassStream(moments, sample, chosen_at)


_VALUES = ("channels", "steps")
_MOMENTS = codec.Object(
    _made_moments,
    _taken_moments,
    count=codec.NUMBER,
    mean=codec.Numbers(_VALUES),
    factor=codec.Maybe(codec.Numbers(_VALUES, None)),
    scatter=codec.Maybe(codec.Numbers(None)),
)
_SAMPLE = codec.Object(
    StreamSample,
    values=codec.Numbers("kept", "channels", "steps"),
    codes=codec.Numbers("kept"),
    weights=codec.Numbers("kept", positive=True),
    keys=codec.Numbers("kept"),
    seen=codec.Numbers("classes"),
)
STREAM = codec.Object(
    _made_stream,
    _taken_stream,
    sample=_SAMPLE,
    moments=codec.Maybe(codec.Several(_MOMENTS, "classes")),
    chosen_at=codec.INTEGER,
)
