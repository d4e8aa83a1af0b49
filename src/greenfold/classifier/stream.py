"""A stream of series: class moments, and a sample to choose η with.

The linear order needs to know no more of its series than number, mean and scatter of every
class. A cross-validation needs series; of those a bounded sample is kept.
"""

from __future__ import annotations

import numpy as np

from ..decisions import Clouds
from ..stimuli import Frame, Series, frame_of_classes
from ..stimuli.class_moments import ClassMoments
from .heads import Head
from .sample import StreamSample


class ClassStream:
    """Moments of every class and a sample of the series, batch by batch.

    Parameters
    ----------
    moments : list of ClassMoments
        One for each class.
    sample : StreamSample
    chosen_at : int
        Number of series at which η was chosen last; 0 before.
    """

    def __init__(
        self, moments: list[ClassMoments], sample: StreamSample, chosen_at: int = 0
    ) -> None:
        self.moments, self.sample, self.chosen_at = moments, sample, chosen_at

    @classmethod
    def empty(cls, n_classes: int, shape: tuple[int, int], seed: int) -> ClassStream:
        """Before the first series; ``shape`` is (n_channels, n_steps)."""
        size = shape[0] * shape[1]
        moments = [ClassMoments.empty(size) for _ in range(n_classes)]
        return cls(moments, StreamSample.empty(n_classes, shape, seed))

    @property
    def shape(self) -> tuple[int, int]:
        """Channels and steps of the series."""
        return self.sample.values.shape[1], self.sample.values.shape[2]

    @property
    def counts(self) -> np.ndarray:
        """Weight of the series of each class so far: their number, without weights."""
        return np.array([part.count for part in self.moments])

    @property
    def n_seen(self) -> int:
        """Series so far, of any weight above zero."""
        return int(self.sample.seen.sum())

    def add(self, series: Series, codes: np.ndarray, weights: np.ndarray) -> None:
        """Add series of classes 0, 1, … with their weights, all positive."""
        plain = bool((weights == 1).all())
        for c in np.unique(codes).tolist():
            rows = np.flatnonzero(codes == c)
            part = ClassMoments.of(series.values, rows, None if plain else weights[rows])
            self.moments[c] = self.moments[c].merge(part)
        self.sample = self.sample.add(series, codes, weights)

    def sampled(self) -> tuple[Series, np.ndarray, np.ndarray]:
        """The series of the sample, their classes, and weights to stand for all."""
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
