"""Adapters that turn the estimators into aeon estimators (needs ``greenfold[aeon]``)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

try:
    from aeon.classification.base import BaseClassifier
    from aeon.forecasting.base import BaseForecaster, IterativeForecastingMixin
    from aeon.regression.base import BaseRegressor
    from aeon.transformations.collection import BaseCollectionTransformer
    from aeon.utils.validation import check_n_jobs
except ImportError as error:
    raise ImportError(
        "greenfold's adapters to aeon need aeon; install it with: "
        "pip install greenfold[aeon]"
    ) from error

from .base import SeriesLike
from .margin import ReservoirClassifier
from .parameters import Adapter, RandomState
from .pooled import PooledReservoirClassifier, PooledReservoirRegressor, ReservoirFeatures
from .sequences import ReservoirForecaster

__all__ = [
    "AeonPooledReservoirClassifier",
    "AeonPooledReservoirRegressor",
    "AeonReservoirClassifier",
    "AeonReservoirFeatures",
    "AeonReservoirForecaster",
]
_POOLED = {"capability:missing_values": True, "algorithm_type": "convolution"}


class _Collection(Adapter):
    """An adapter for estimators of many series; ``n_jobs`` is 1 by default, as in aeon."""

    _tags: ClassVar[dict[str, Any]] = {
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:multithreading": True,
        "X_inner_type": ["np-list", "numpy3D"],
    }
    _defaults: ClassVar[dict[str, Any]] = {"n_jobs": 1}

    def _fit(self: Any, X: SeriesLike, y: ArrayLike | None = None) -> Any:
        self._n_jobs = check_n_jobs(self.n_jobs)
        return self._fit_wrapped(X, y, n_jobs=self._n_jobs)

    def _predict(self, X: SeriesLike) -> np.ndarray:
        return self._wrapped.predict(X)

    def _predict_proba(self, X: SeriesLike) -> np.ndarray:
        return self._wrapped.predict_proba(X)

    def _transform(self, X: SeriesLike, y: ArrayLike | None = None) -> Any:
        return self._wrapped.transform(X)


class AeonReservoirClassifier(
    _Collection, BaseClassifier, wraps=ReservoirClassifier, fitted="classifier_"
):
    """`ReservoirClassifier` as an aeon classifier, with the same parameters.

    ``classifier_`` is the fitted `ReservoirClassifier`. Series are an array (n_cases,
    n_channels, n_timepoints), or a list of (n_channels, n_timepoints) arrays of any length,
    which are aligned at their ends.

    Examples
    --------
    >>> from greenfold.estimators.aeon import AeonReservoirClassifier
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> X, y = synthetic_heartbeats(80, rng=0)
    >>> classifier = AeonReservoirClassifier(random_state=0).fit(X[:, None, :], y)
    >>> classifier.predict(X[:3, None, :]).shape
    (3,)
    """

    classifier_: ReservoirClassifier


class AeonPooledReservoirClassifier(
    _Collection, BaseClassifier, wraps=PooledReservoirClassifier, fitted="classifier_"
):
    """`PooledReservoirClassifier` as an aeon classifier, with the same parameters.

    ``classifier_`` is the fitted `PooledReservoirClassifier`. It is used like
    `AeonReservoirClassifier`.
    """

    _tags: ClassVar[dict[str, Any]] = _POOLED


class AeonPooledReservoirRegressor(
    _Collection, BaseRegressor, wraps=PooledReservoirRegressor, fitted="regressor_"
):
    """`PooledReservoirRegressor` as an aeon regressor, with the same parameters.

    ``regressor_`` is the fitted `PooledReservoirRegressor`.
    """

    _tags: ClassVar[dict[str, Any]] = _POOLED


class AeonReservoirFeatures(
    _Collection, BaseCollectionTransformer, wraps=ReservoirFeatures, fitted="features_"
):
    """`ReservoirFeatures` as an aeon transformer, with the same parameters.

    ``features_`` is the fitted `ReservoirFeatures`.
    """

    _tags: ClassVar[dict[str, Any]] = {
        **_POOLED,
        "output_data_type": "Tabular",
        "fit_is_empty": False,
    }


class AeonReservoirForecaster(IterativeForecastingMixin, BaseForecaster):
    """`ReservoirForecaster` as an aeon forecaster of one channel.

    Parameters
    ----------
    horizon : int
        Number of steps ahead that ``predict`` forecasts in closed loop.
    n_neurons, input_weights, max_iter, random_state
        See `ReservoirForecaster`; ``forecaster_`` is the fitted `ReservoirForecaster`.

    Examples
    --------
    >>> from greenfold.datasets import mackey_glass
    >>> from greenfold.estimators.aeon import AeonReservoirForecaster
    >>> y = mackey_glass(500, rng=0)
    >>> model = AeonReservoirForecaster(n_neurons=20, max_iter=5, random_state=0)
    >>> model.iterative_forecast(y, prediction_horizon=12).shape
    (12,)
    """

    _tags: ClassVar[dict[str, Any]] = {"capability:horizon": True}
    forecaster_: ReservoirForecaster

    def __init__(
        self,
        horizon: int = 1,
        n_neurons: int = 100,
        input_weights: str = "solved",
        max_iter: int = 200,
        random_state: RandomState = None,
    ) -> None:
        self.n_neurons = n_neurons
        self.input_weights = input_weights
        self.max_iter = max_iter
        self.random_state = random_state
        super().__init__(horizon=horizon, axis=1)

    def _fit(self, y: np.ndarray, exog: object = None) -> Any:
        given = self.get_params(deep=False)
        del given["horizon"]
        self.forecaster_ = ReservoirForecaster(**given).fit(y[0])
        return self

    def _predict(self, y: np.ndarray, exog: object = None) -> Any:
        return float(self.forecaster_.forecast(self.horizon, context=y[0])[-1])

    def iterative_forecast(
        self,
        y: np.ndarray,
        prediction_horizon: int,
        exog: object = None,
        *,
        future_exog: object = None,
    ) -> np.ndarray:
        """Fit once and return a closed-loop forecast (prediction_horizon,)."""
        if exog is not None or future_exog is not None:
            raise ValueError("`exog` must be None; use ReservoirForecaster to pass it.")
        self.fit(y)
        return self.forecaster_.forecast(prediction_horizon)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_neurons": 10, "max_iter": 3}
