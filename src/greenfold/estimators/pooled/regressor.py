"""The regressor: pooled features and ridge."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from ..._base.arrays import is_array, to_host
from ..._base.threads import with_few_threads
from ...stimuli.chunks import by_chunks, host_labels
from .features import PooledBase
from .ridge import LinearHead, fit_head

__all__ = ["PooledReservoirRegressor"]


class PooledReservoirRegressor(
    MultiOutputMixin, RegressorMixin, PooledBase, kind="pooled_regressor"
):
    """Predict numbers from time series, by pooled features of a reservoir bank.

    Ridge regression on the features of `ReservoirFeatures`; the penalty comes from leaving
    one series out.

    Parameters
    ----------
    n_scales, n_oscillators, n_readouts, scaling, engine, n_jobs
        See `ReservoirFeatures`.
    random_state : int, RandomState or None, default None
        Draws oscillators, readouts and thresholds.

    Attributes
    ----------
    map_ : FeatureMap
        The bank (``map_.bank``), thresholds and scale.
    head_ : LinearHead
        Coefficients and intercept.
    penalty_ : float
        Ridge penalty, in units of the squared (standardised, weighted) features.
    held_out_predictions_ : ndarray (n,) or (n, n_targets)
        Predictions for the training series ``held_out_cases_``, each without that series;
        None in a regressor that was read from a file.
    held_out_cases_ : ndarray (n,) of int
        All training series up to 4096 of them, else 512 drawn at random.
    n_features_in_ : int
        Steps of the longest training series.
    n_channels_in_ : int

    Notes
    -----
    Series as in `PooledReservoirClassifier`. Several targets share one penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold.estimators.pooled import PooledReservoirRegressor
    >>> rng = np.random.default_rng(0)
    >>> period = rng.uniform(5, 15, 80)
    >>> phase = rng.uniform(0, 6, (80, 1))
    >>> X = np.sin(2 * np.pi * np.arange(60) / period[:, None] + phase)
    >>> regressor = PooledReservoirRegressor(random_state=0).fit(X[:60], period[:60])
    >>> bool(regressor.score(X[60:], period[60:]) > 0.9)
    True
    """

    head_: LinearHead
    penalty_: float
    held_out_predictions_: np.ndarray | None
    held_out_cases_: np.ndarray | None

    def __init__(
        self,
        *,
        n_scales: int = 8,
        n_oscillators: int = 32,
        n_readouts: int = 88,
        scaling: str = "set",
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_scales = n_scales
        self.n_oscillators = n_oscillators
        self.n_readouts = n_readouts
        self.scaling = scaling
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_few_threads(lambda _, X, *__, **___: len(X))  # of the Gram matrix
    def fit(self, X: Any, y: Any) -> PooledReservoirRegressor:
        """Draw the bank and fit the ridge regression.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        y : array_like (n_cases,) or (n_cases, n_targets)

        Returns
        -------
        self
        """
        self._check_parameters()
        series = self._read(X, fitting=True)
        targets = self._read_targets(y, len(series))
        if len(series) < 2:
            raise ValueError(
                f"Found array with n_samples=1 while a minimum of 2 is required by "
                f"{type(self).__name__}, which holds one out."
            )
        self._flat = targets.ndim == 1
        table = targets.reshape(len(targets), -1)
        # One penalty for targets of different units: each in its own deviation.
        unit = table.std(axis=0)
        unit[unit == 0] = 1
        self._fit_map(series)
        found = fit_head(
            self.map_, series, table / unit, seed=self._head_seed, n_jobs=self.n_jobs
        )
        head = found.head
        self.penalty_ = found.penalty
        self.held_out_cases_ = found.cases
        held_out = found.held_out * unit
        self.held_out_predictions_ = held_out[:, 0] if self._flat else held_out
        self.head_ = LinearHead(
            head.means,
            [(part * unit).astype(np.float32) for part in head.coefficients],
            head.intercept * unit,
        )
        return self

    def _read_targets(self, y: Any, n_cases: int) -> np.ndarray:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        check: Any = validation.check_array
        y = host_labels(y)
        targets = check(
            to_host(y) if is_array(y) else y,
            ensure_2d=False,
            dtype=np.float64,
            input_name="y",
            estimator=self,
        )
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = validation.column_or_1d(targets, warn=True)
        if targets.ndim not in (1, 2):
            raise ValueError(
                "y must have shape (n_cases,) or (n_cases, n_targets); got shape "
                f"{targets.shape}."
            )
        if len(targets) != n_cases:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"[{n_cases}, {len(targets)}]"
            )
        return targets

    def __sklearn_is_fitted__(self) -> bool:
        # The last that a fit sets.
        return hasattr(self, "head_")

    @by_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases,) or (n_cases, n_targets)
        """
        check_is_fitted(self)
        series = self._read(X, fitting=False)
        found = self.head_.scores(self.map_, series, self.n_jobs)
        return found[:, 0] if self._flat else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, as scikit-learn defines it.

        Parameters
        ----------
        X : array
            As for ``predict``.
        y : array
            The true targets.
        sample_weight : array_like (n_cases,), optional

        Returns
        -------
        float
            One minus the squared error over the variance; 1 is best.
        """
        return super().score(X, y, sample_weight)
