"""`ReservoirClassifier` for aeon (needs ``greenfold[aeon]``)."""

from __future__ import annotations

from ..aeon import Adapter, BaseClassifier
from .classifier import ReservoirClassifier

__all__ = ["AeonReservoirClassifier"]


class AeonReservoirClassifier(
    Adapter, BaseClassifier, wraps=ReservoirClassifier, fitted="classifier_"
):
    """`ReservoirClassifier` as an aeon classifier, with the same parameters.

    ``classifier_`` is the fitted one. Series have shape (n_cases, n_channels,
    n_timepoints), or are a list of (n_channels, n_timepoints) arrays of any length, aligned
    at their ends.

    Examples
    --------
    >>> from greenfold.estimators.margin.aeon import AeonReservoirClassifier
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> X, y = synthetic_heartbeats(80, rng=0)
    >>> classifier = AeonReservoirClassifier(random_state=0).fit(X[:, None, :], y)
    >>> classifier.predict(X[:3, None, :]).shape
    (3,)
    """

    classifier_: ReservoirClassifier
