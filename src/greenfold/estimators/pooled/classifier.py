"""The classifier: pooled features and ridge, with calibrated probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import validation
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..._base.arrays import is_array, to_host
from ..._base.threads import with_few_threads
from ...math.calibration import fit_slope
from ...stimuli.chunks import by_chunks, host_labels
from .features import PooledBase
from .ridge import LinearHead, fit_head

__all__ = ["PooledReservoirClassifier"]


class PooledReservoirClassifier(ClassifierMixin, PooledBase, kind="pooled_classifier"):
    """Classify time series that are not aligned, by pooled features of a reservoir bank.

    Ridge regression on the features of `ReservoirFeatures`, one target a class; penalty
    and probabilities come from leaving one series out.

    Parameters
    ----------
    n_scales, n_oscillators, n_readouts, scaling, engine, n_jobs
        See `ReservoirFeatures`.
    class_weight : {None, "balanced"} or dict, default None
        Weight of a series of each class.
    random_state : int, RandomState or None, default None
        Draws oscillators, readouts and thresholds.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    map_ : FeatureMap
        The bank (``map_.bank``), thresholds and scale.
    head_ : LinearHead
        Coefficients and intercept.
    slope_ : float
        Slope of the probabilities over the scores.
    penalty_ : float
        Ridge penalty, in units of the squared (standardised, weighted) features.
    held_out_scores_ : ndarray (n,) or (n, n_classes)
        Decision values of the training series ``held_out_cases_``, each without that
        series; None in a classifier that was read from a file.
    held_out_cases_ : ndarray (n,) of int
        All training series up to 4096 of them, else 512 drawn at random.
    n_features_in_ : int
        Steps of the longest training series.
    n_channels_in_ : int

    See Also
    --------
    greenfold.ReservoirClassifier : For aligned series; one vector as its predictor.

    Notes
    -----
    Series are arrays (n_cases, n_steps) or (n_cases, n_channels, n_steps), or lists of
    (n_steps,) or (n_channels, n_steps) arrays of any length, missing values allowed.

    Memory is about 320 kB a training series at the defaults, up to 1 GiB; beyond that the
    features are made twice instead of kept. Beyond 4096 series the ridge regression is an
    average over parts of some 2500 (``pooled.parts``), and time grows linearly with
    their number. Predictions keep no features.

    Series that do not fit into memory are handed in as a dask array, or as what
    `greenfold.datasets.open_series` returns. The parts are then solved where the series
    are, each brought together from all chunks; the result is that in memory, up to
    rounding. Up to 4096 series are simply brought here. Of a dask array predictions are
    dask arrays, computed when they are asked for.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.pooled import PooledReservoirClassifier
    >>> X, y = synthetic_heartbeats(120, rng=0)
    >>> classifier = PooledReservoirClassifier(random_state=0).fit(X[:60], y[:60])
    >>> bool(classifier.score(X[60:], y[60:]) > 0.8)
    True
    """

    classes_: np.ndarray
    head_: LinearHead
    slope_: float
    penalty_: float
    held_out_scores_: np.ndarray | None
    held_out_cases_: np.ndarray | None

    def __init__(
        self,
        *,
        n_scales: int = 8,
        n_oscillators: int = 32,
        n_readouts: int = 88,
        scaling: str = "set",
        class_weight: Any = None,
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_scales = n_scales
        self.n_oscillators = n_oscillators
        self.n_readouts = n_readouts
        self.scaling = scaling
        self.class_weight = class_weight
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_few_threads(lambda _, X, *__, **___: len(X))  # of the Gram matrix
    def fit(self, X: Any, y: Any) -> PooledReservoirClassifier:
        """Draw the bank and fit the ridge regression.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        y : array_like (n_cases,)
            Class labels.

        Returns
        -------
        self
        """
        self._check_parameters()
        series = self._read(X, fitting=True)
        labels = self._read_labels(y, len(series))
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} can not tell classes apart in data with one class: "
                f"y holds {classes.tolist()[0]!r} only."
            )
        weights = self._weights(classes, labels, codes)
        self.classes_ = classes
        self._fit_map(series)
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        if len(classes) == 2:
            targets = targets[:, 1:]
        found = fit_head(
            self.map_, series, targets, weights, seed=self._head_seed, n_jobs=self.n_jobs
        )
        cases, held_out = found.cases, found.held_out
        own = None if weights is None else weights[cases]
        self.slope_ = fit_slope(_all_scores(held_out), codes[cases], own)
        self.penalty_ = found.penalty
        self.held_out_cases_ = cases
        self.held_out_scores_ = held_out[:, 0] if len(classes) == 2 else held_out
        self.head_ = found.head
        return self

    def _read_labels(self, y: Any, n_cases: int) -> np.ndarray:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        check: Any = validation.check_array
        y = host_labels(y)
        labels = validation.column_or_1d(to_host(y) if is_array(y) else y, warn=True)
        check(labels, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(labels)
        if len(labels) != n_cases:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"[{n_cases}, {len(labels)}]"
            )
        return labels

    def _weights(
        self, classes: np.ndarray, labels: np.ndarray, codes: np.ndarray
    ) -> np.ndarray | None:
        if self.class_weight is None:
            return None
        known = isinstance(self.class_weight, dict) or self.class_weight == "balanced"
        if not known:
            self._refuse("class_weight", "None, 'balanced' or a dict of positive weights")
        weights = compute_class_weight(self.class_weight, classes=classes, y=labels)
        if not (weights > 0).all():
            self._refuse("class_weight", "None, 'balanced' or a dict of positive weights")
        return weights[codes]

    def __sklearn_is_fitted__(self) -> bool:
        # The last that a fit sets.
        return hasattr(self, "head_")

    @by_chunks
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: what the ridge regression predicts for ±1.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases,) or (n_cases, n_classes)
            Two classes: positive for ``classes_[1]``. More: the largest wins.
        """
        check_is_fitted(self)
        series = self._read(X, fitting=False)
        scores = self.head_.scores(self.map_, series, self.n_jobs)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @by_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Class labels.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases,)
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[index]

    @by_chunks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, calibrated on training series that were held out.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            odds = 2 * self.slope_ * scores
            return np.stack([expit(-odds), expit(odds)], axis=1)
        return softmax(self.slope_ * scores, axis=1)


def _all_scores(scores: np.ndarray) -> np.ndarray:
    """One score a class: for two classes, those of ±1."""
    return np.concatenate([-scores, scores], axis=1) if scores.shape[1] == 1 else scores
