"""Adapters to aeon: classifier, regressor, transformer (needs ``greenfold[aeon]``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .classifier import PooledReservoirClassifier
from .features import ReservoirFeatures
from .regressor import PooledReservoirRegressor

try:
    from aeon.classification.base import BaseClassifier
    from aeon.regression.base import BaseRegressor
    from aeon.transformations.collection import BaseCollectionTransformer
    from aeon.utils.validation import check_n_jobs
except ImportError as error:
    raise ImportError(
        "greenfold.estimators.pooled.aeon needs aeon; install it with: "
        "pip install greenfold[aeon]"
    ) from error

__all__ = [
    "AeonPooledReservoirClassifier",
    "AeonPooledReservoirRegressor",
    "AeonReservoirFeatures",
]

_TAGS = {
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "capability:missing_values": True,
    "capability:multithreading": True,
    "algorithm_type": "convolution",
    "X_inner_type": ["np-list", "numpy3D"],
}


def _given(estimator: Any) -> dict[str, Any]:
    """Parameters for the estimator inside, with aeon's reading of ``n_jobs``."""
    estimator._n_jobs = check_n_jobs(estimator.n_jobs)
    return {**estimator.get_params(deep=False), "n_jobs": estimator._n_jobs}


class AeonPooledReservoirClassifier(BaseClassifier):
    """`PooledReservoirClassifier` as an aeon classifier.

    Parameters
    ----------
    n_scales, n_oscillators, n_readouts, scaling, class_weight, engine, random_state
        See `PooledReservoirClassifier`.
    n_jobs : int, default 1
        Threads over series.

    Attributes
    ----------
    classifier_ : PooledReservoirClassifier
        What was fitted.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.pooled.aeon import AeonPooledReservoirClassifier
    >>> X, y = synthetic_heartbeats(40, rng=0)
    >>> classifier = AeonPooledReservoirClassifier(random_state=0).fit(X[:, None, :], y)
    >>> classifier.predict(X[:3, None, :]).shape
    (3,)
    """

    _tags = _TAGS

    def __init__(
        self,
        n_scales: int = 8,
        n_oscillators: int = 32,
        n_readouts: int = 88,
        scaling: str = "set",
        class_weight: Any = None,
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.n_scales = n_scales
        self.n_oscillators = n_oscillators
        self.n_readouts = n_readouts
        self.scaling = scaling
        self.class_weight = class_weight
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: np.ndarray) -> Any:
        self.classifier_ = PooledReservoirClassifier(**_given(self)).fit(X, y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.classifier_.predict(X)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.classifier_.predict_proba(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_scales": 3, "n_readouts": 16}


class AeonPooledReservoirRegressor(BaseRegressor):
    """`PooledReservoirRegressor` as an aeon regressor.

    Parameters
    ----------
    n_scales, n_oscillators, n_readouts, scaling, engine, random_state
        See `PooledReservoirRegressor`.
    n_jobs : int, default 1
        Threads over series.

    Attributes
    ----------
    regressor_ : PooledReservoirRegressor
        What was fitted.
    """

    _tags = _TAGS

    def __init__(
        self,
        n_scales: int = 8,
        n_oscillators: int = 32,
        n_readouts: int = 88,
        scaling: str = "set",
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.n_scales = n_scales
        self.n_oscillators = n_oscillators
        self.n_readouts = n_readouts
        self.scaling = scaling
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: np.ndarray) -> Any:
        self.regressor_ = PooledReservoirRegressor(**_given(self)).fit(X, y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.regressor_.predict(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_scales": 3, "n_readouts": 16}


class AeonReservoirFeatures(BaseCollectionTransformer):
    """`ReservoirFeatures` as an aeon collection transformer.

    Parameters
    ----------
    n_scales, n_oscillators, n_readouts, scaling, engine, random_state
        See `ReservoirFeatures`.
    n_jobs : int, default 1
        Threads over series.

    Attributes
    ----------
    features_ : ReservoirFeatures
        What was fitted.
    """

    _tags = {  # noqa: RUF012 - aeon's way of declaring what a transformer can do
        **_TAGS,
        "output_data_type": "Tabular",
        "fit_is_empty": False,
    }

    def __init__(
        self,
        n_scales: int = 8,
        n_oscillators: int = 32,
        n_readouts: int = 88,
        scaling: str = "set",
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.n_scales = n_scales
        self.n_oscillators = n_oscillators
        self.n_readouts = n_readouts
        self.scaling = scaling
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: Any = None) -> Any:
        self.features_ = ReservoirFeatures(**_given(self)).fit(X)
        return self

    def _transform(self, X: Any, y: Any = None) -> Any:
        return self.features_.transform(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_scales": 3, "n_readouts": 16}
