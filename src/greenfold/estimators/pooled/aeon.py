"""The pooled estimators for aeon (they need ``greenfold[aeon]``)."""

from __future__ import annotations

from typing import Any, ClassVar

from ..aeon import Adapter, BaseClassifier, BaseCollectionTransformer, BaseRegressor
from .estimators import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
)

__all__ = [
    "AeonPooledReservoirClassifier",
    "AeonPooledReservoirRegressor",
    "AeonReservoirFeatures",
]

_TAGS = {"capability:missing_values": True, "algorithm_type": "convolution"}


class AeonPooledReservoirClassifier(
    Adapter, BaseClassifier, wraps=PooledReservoirClassifier, fitted="classifier_"
):
    """`PooledReservoirClassifier` as an aeon classifier, with the same parameters.

    ``classifier_`` is the fitted one.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.pooled.aeon import AeonPooledReservoirClassifier
    >>> X, y = synthetic_heartbeats(40, rng=0)
    >>> classifier = AeonPooledReservoirClassifier(random_state=0).fit(X[:, None, :], y)
    >>> classifier.predict(X[:3, None, :]).shape
    (3,)
    """

    _tags: ClassVar[dict[str, Any]] = _TAGS


class AeonPooledReservoirRegressor(
    Adapter, BaseRegressor, wraps=PooledReservoirRegressor, fitted="regressor_"
):
    """`PooledReservoirRegressor` as an aeon regressor; ``regressor_`` is the fitted one."""

    _tags: ClassVar[dict[str, Any]] = _TAGS


class AeonReservoirFeatures(
    Adapter, BaseCollectionTransformer, wraps=ReservoirFeatures, fitted="features_"
):
    """`ReservoirFeatures` as an aeon transformer; ``features_`` is the fitted one."""

    _tags: ClassVar[dict[str, Any]] = {
        **_TAGS,
        "output_data_type": "Tabular",
        "fit_is_empty": False,
    }
