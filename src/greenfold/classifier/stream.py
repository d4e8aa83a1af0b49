"""Class moments of a stream: all that the linear order needs to know of its series."""

from __future__ import annotations

import numpy as np

from ..decisions import Clouds
from ..stimuli import Frame, Series, frame_of_moments
from ..stimuli.class_moments import ClassMoments
from .heads import Head


class ClassStream:
    """Number, mean and scatter of every class, accumulated batch by batch.

    Parameters
    ----------
    n_classes : int
    shape : (int, int)
        Channels and steps of the series.
    """

    def __init__(self, n_classes: int, shape: tuple[int, int]) -> None:
        size = shape[0] * shape[1]
        self.shape = shape
        self.moments = [
            ClassMoments(0, np.zeros(size), np.zeros((size, size)))
            for _ in range(n_classes)
        ]

    @property
    def counts(self) -> np.ndarray:
        """Series of each class so far."""
        return np.array([part.count for part in self.moments])

    def add(self, series: Series, codes: np.ndarray) -> None:
        """Add series of classes 0, 1, …."""
        for c in np.unique(codes).tolist():
            part = ClassMoments.of(series.values, np.flatnonzero(codes == c))
            self.moments[c] = self.moments[c].merge(part)

    def frame(self, c: int, weights: np.ndarray, scaling: float | None) -> Frame:
        """Frame of class ``c`` against the rest; ``weights`` of one series of each."""
        prior = self.counts * weights
        seen = np.flatnonzero(prior > 0)
        sides = [seen[seen != c], seen[seen == c]]
        # A side that has not been seen yet looks like the other one: nothing to tell.
        sides = [side if len(side) else sides[1 - i] for i, side in enumerate(sides)]
        means, covariances = zip(
            *(self._mixture(side, prior) for side in sides), strict=True
        )
        share = np.array([prior[side].sum() for side in sides])
        return frame_of_moments(list(means), list(covariances), share, self.shape, scaling)

    def _mixture(
        self, classes: np.ndarray, prior: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of several classes taken together."""
        share = prior[classes] / prior[classes].sum()
        parts = [self.moments[c] for c in classes]
        mean = np.sum([p * part.mean for p, part in zip(share, parts, strict=True)], axis=0)
        covariance = np.zeros_like(parts[0].scatter)
        for p, part in zip(share, parts, strict=True):
            covariance += p * part.covariance
            if len(parts) > 1:
                covariance += p * np.outer(part.mean - mean, part.mean - mean)
        return mean, covariance

    def clouds(self, heads: list[Head], weights: np.ndarray) -> Clouds:
        """Clouds of the read-out values of linear heads, in the unit of the stream."""
        rows = [head.kernel.linear * head.scale for head in heads if head.kernel]
        A = np.stack(rows).reshape(len(heads), -1)
        origin = (A * np.stack([head.centre.ravel() for head in heads])).sum(1)
        prior = self.counts * weights
        prior = prior / prior.sum()
        covariance = np.zeros((len(heads),) * 2)
        for p, part in zip(prior, self.moments, strict=True):
            if p:
                covariance += p * (A @ part.covariance @ A.T)
        means = np.stack([A @ part.mean - origin for part in self.moments])
        return Clouds(means, covariance, prior)
