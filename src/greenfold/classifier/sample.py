"""A bounded sample of a stream: the series that a cross-validation can be done with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..stimuli import Series

#: Series that are kept in all; each class may have its share of them, and at least a few.
SIZE = 1000
_FEWEST = 20


@dataclass(frozen=True, eq=False)
class StreamSample:
    """Series of a stream, drawn evenly from each class as it grows.

    Every series draws a random key when it arrives, and each class keeps those of the
    smallest keys: at any time a uniform sample of all its series. Classes have equal
    places, so that a rare one is not lost in the sample.

    Attributes
    ----------
    values : ndarray (n_kept, n_channels, n_steps)
    codes : ndarray (n_kept,)
        Class of each series.
    weights : ndarray (n_kept,)
        Weight that each was given with.
    keys : ndarray (n_kept,)
    seen : ndarray (n_classes,)
        Series of each class so far, kept or not.
    seed : int
        Of the keys; the number of series seen is the other half of the seed.
    """

    values: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    keys: np.ndarray
    seen: np.ndarray
    seed: int

    @classmethod
    def empty(cls, n_classes: int, shape: tuple[int, int], seed: int) -> StreamSample:
        """Before the first series."""
        return cls(
            np.zeros((0, *shape)),
            np.zeros(0, dtype=int),
            np.zeros(0),
            np.zeros(0),
            np.zeros(n_classes, dtype=int),
            seed,
        )

    @property
    def is_whole(self) -> bool:
        """Whether no series had to be dropped."""
        return len(self.codes) == self.seen.sum()

    def add(
        self,
        series: Series,
        codes: np.ndarray,
        weights: np.ndarray,
        first: int | None = None,
    ) -> StreamSample:
        """The sample after a further batch.

        ``first`` is the position of its first series in the stream, where those before it
        are not in this sample.
        """
        place = int(self.seen.sum()) if first is None else first
        rng = np.random.default_rng([self.seed, place])
        seen = np.bincount(codes, minlength=len(self.seen))
        keys = rng.random(len(codes))
        return self.merge(
            StreamSample(series.values, codes, weights, keys, seen, self.seed)
        )

    def merge(self, other: StreamSample) -> StreamSample:
        """The sample of both streams, this one first."""
        values = np.concatenate([self.values, other.values])
        labels = np.concatenate([self.codes, other.codes])
        keys = np.concatenate([self.keys, other.keys])
        places = max(_FEWEST, SIZE // len(self.seen))
        kept = np.zeros(len(keys), dtype=bool)
        for c in range(len(self.seen)):
            own = np.flatnonzero(labels == c)
            kept[own[np.argsort(keys[own], kind="stable")[:places]]] = True
        return StreamSample(
            values[kept],
            labels[kept],
            np.concatenate([self.weights, other.weights])[kept],
            keys[kept],
            self.seen + other.seen,
            self.seed,
        )

    def standing_for(self, totals: np.ndarray) -> np.ndarray:
        """Weights with which the sample stands for classes of these total weights."""
        kept = np.bincount(self.codes, self.weights, minlength=len(self.seen))
        return self.weights * (totals / np.maximum(kept, np.finfo(float).tiny))[self.codes]
