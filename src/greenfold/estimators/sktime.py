"""Adapters that turn the estimators into sktime's (needs ``greenfold[sktime]``)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

try:
    import pandas as pd
    from sktime.classification.base import BaseClassifier
    from sktime.forecasting.base import BaseForecaster
    from sktime.regression.base import BaseRegressor
except ImportError as error:
    raise ImportError(
        "greenfold's adapters to sktime need sktime; install it with: "
        "pip install greenfold[sktime]"
    ) from error

from .margin import ReservoirClassifier
from .parameters import Adapter
from .pooled import PooledReservoirClassifier, PooledReservoirRegressor
from .sequences import ReservoirForecaster

__all__ = [
    "SktimePooledReservoirClassifier",
    "SktimePooledReservoirRegressor",
    "SktimeReservoirClassifier",
    "SktimeReservoirForecaster",
]
_PANEL = {
    "X_inner_mtype": ["df-list", "numpy3D"],
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "capability:multithreading": True,
    "capability:categorical_in_X": False,
    "capability:random_state": True,
}


class _Tested(Adapter):
    """An adapter with small settings for sktime's tests, which need two."""

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> Any:
        return [{**cls._get_test_params(), "random_state": seed} for seed in (0, 1)]


class _Panel(_Tested):
    """An adapter for estimators of many series."""

    def _fit(self, X: Any, y: ArrayLike) -> Any:
        return self._fit_wrapped(_series(X), y)

    def _predict(self, X: Any) -> np.ndarray:
        return self._wrapped.predict(_series(X))

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self._wrapped.predict_proba(_series(X))


def _series(X: Any) -> Any:
    """Return channels before steps; sktime gives series of unequal length as tables."""
    return [one.to_numpy().T for one in X] if isinstance(X, list) else X


class SktimeReservoirClassifier(
    _Panel, BaseClassifier, wraps=ReservoirClassifier, fitted="classifier_"
):
    """`ReservoirClassifier` as an sktime classifier, with the same parameters.

    ``classifier_`` is the fitted `ReservoirClassifier`.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.sktime import SktimeReservoirClassifier
    >>> X, y = synthetic_heartbeats(40, rng=0)
    >>> model = SktimeReservoirClassifier(random_state=0).fit(X[:, None, :], y)
    >>> model.predict(X[:3, None, :]).shape
    (3,)
    """

    _tags: ClassVar[dict[str, Any]] = {**_PANEL, "capability:predict_proba": True}


class SktimePooledReservoirClassifier(
    _Panel, BaseClassifier, wraps=PooledReservoirClassifier, fitted="classifier_"
):
    """`PooledReservoirClassifier` as an sktime classifier, with the same parameters.

    ``classifier_`` is the fitted `PooledReservoirClassifier`.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.sktime import SktimePooledReservoirClassifier
    >>> X, y = synthetic_heartbeats(40, rng=0)
    >>> model = SktimePooledReservoirClassifier(random_state=0).fit(X[:, None, :], y)
    >>> model.predict(X[:3, None, :]).shape
    (3,)
    """

    _tags: ClassVar[dict[str, Any]] = {
        **_PANEL,
        "capability:missing_values": True,
        "capability:predict_proba": True,
    }


class SktimePooledReservoirRegressor(
    _Panel, BaseRegressor, wraps=PooledReservoirRegressor, fitted="regressor_"
):
    """`PooledReservoirRegressor` as an sktime regressor, with the same parameters.

    ``regressor_`` is the fitted `PooledReservoirRegressor`.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.sktime import SktimePooledReservoirRegressor
    >>> X = synthetic_heartbeats(40, rng=0)[0]
    >>> y = X.max(axis=1)
    >>> model = SktimePooledReservoirRegressor(random_state=0).fit(X[:, None, :], y)
    >>> model.predict(X[:3, None, :]).shape
    (3,)
    """

    _tags: ClassVar[dict[str, Any]] = {**_PANEL, "capability:missing_values": True}


class SktimeReservoirForecaster(
    _Tested, BaseForecaster, wraps=ReservoirForecaster, fitted="forecaster_"
):
    """`ReservoirForecaster` as an sktime forecaster, with the same parameters.

    ``forecaster_`` is the fitted `ReservoirForecaster`. A forecast after ``update`` starts
    from all samples so far.

    Examples
    --------
    >>> import pandas as pd
    >>> from greenfold.datasets import mackey_glass
    >>> from greenfold.estimators.sktime import SktimeReservoirForecaster
    >>> y = pd.Series(mackey_glass(500, rng=0))
    >>> model = SktimeReservoirForecaster(20, max_iter=5, random_state=0).fit(y)
    >>> model.predict(fh=[1, 2, 12]).index.tolist()
    [500, 501, 511]
    """

    _tags: ClassVar[dict[str, Any]] = {
        "y_inner_mtype": "pd.DataFrame",
        "capability:multivariate": True,
        "capability:exogenous": False,
        "capability:insample": False,
        "capability:update": True,
        "capability:missing_values": False,
        "capability:random_state": True,
        "requires-fh-in-fit": False,
    }

    def _fit(self, y: Any, X: object = None, fh: object = None) -> Any:
        self._seen = y
        return self._fit_wrapped(y.to_numpy())

    def _update(self, y: Any, X: object = None, update_params: bool = True) -> Any:
        earlier = self._seen[~self._seen.index.isin(y.index)]
        self._seen = pd.concat([earlier, y])
        return self._fit_wrapped(self._seen.to_numpy()) if update_params else self

    def _predict(self: Any, fh: Any, X: object = None) -> Any:
        steps = fh.to_relative(self.cutoff).to_numpy().astype(int)
        made = self._wrapped.forecast(steps.max(), context=self._seen.to_numpy())
        index = fh.to_absolute_index(self.cutoff)
        return pd.DataFrame(made[steps - 1], index, self._seen.columns)
