"""Which stretch of time moves the score of a classifier."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check


class Scoring(Protocol):
    """A fitted classifier."""

    def decision_function(self, X: Any, /) -> np.ndarray:
        """Return scores (n_cases,) or (n_cases, n_classes)."""
        ...


class StretchScores(NamedTuple):
    """How far the scores move when one stretch of the series is taken away.

    Attributes
    ----------
    edges : ndarray (n_stretches + 1,)
        Steps between the stretches: stretch i runs from ``edges[i]`` to ``edges[i + 1]``.
    changes : ndarray (n_cases, n_stretches) or (n_cases, n_stretches, n_classes)
        Score with a straight line in place of the stretch, minus the score of the series.
    """

    edges: np.ndarray
    changes: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Root mean square of the changes over series and classes, (n_stretches,)."""
        square = self.changes**2
        return np.sqrt(square.reshape(*square.shape[:2], -1).mean(axis=(0, 2)))


def scores_by_stretch(
    classifier: Scoring, X: ArrayLike, n_stretches: int = 20
) -> StretchScores:
    """Return how far a classifier's scores move when a stretch of time is taken away.

    Each stretch of the series is replaced in turn by a straight line between the values
    at its ends, in all channels, and the classifier scores the series again. This works for
    every classifier of series, also for one without a kernel, such as
    `PooledReservoirClassifier`. A stretch that is a straight line anyway counts as
    unimportant, and two stretches that hold the same information hide each other.

    Parameters
    ----------
    classifier : fitted classifier
        With the method ``decision_function``.
    X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        Series of equal length, without missing values.
    n_stretches : int, default 20
        Number of stretches, at most one per step.

    Returns
    -------
    StretchScores

    Examples
    --------
    >>> from greenfold import ReservoirClassifier
    >>> from greenfold.analysis import scores_by_stretch
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> X, y = synthetic_heartbeats(60, n_steps=40, rng=0)
    >>> fitted = ReservoirClassifier(n_neurons=20, random_state=0).fit(X, y)
    >>> scores_by_stretch(fitted, X, 8).sizes.shape
    (8,)
    """
    series = check.host_array(X, "X", ndim=(2, 3))
    n_steps = series.shape[-1]
    n = check.count(n_stretches, "n_stretches")
    check.must(n <= n_steps, "n_stretches", f"be at most the {n_steps} steps of X", n)
    edges = np.linspace(0, n_steps, n + 1).round().astype(int)
    whole = np.asarray(classifier.decision_function(series))
    changes = []
    for start, stop in pairwise(edges.tolist()):
        # The line begins at the last step before the stretch and ends at the first after.
        before, after = max(start - 1, 0), min(stop, n_steps - 1)
        before, after = (before if start else after), (after if stop < n_steps else before)
        share = (np.arange(start, stop) - before) / max(after - before, 1)
        ends = series[..., before, None], series[..., after, None]
        without = series.copy()
        without[..., start:stop] = ends[0] + share * (ends[1] - ends[0])
        changes.append(np.asarray(classifier.decision_function(without)) - whole)
    return StretchScores(edges, np.stack(changes, axis=1))
