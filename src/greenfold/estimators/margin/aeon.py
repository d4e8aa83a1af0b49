"""Adapter to aeon's classifiers (needs ``greenfold[aeon]``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .classifier import ReservoirClassifier

try:
    from aeon.classification.base import BaseClassifier
    from aeon.utils.validation import check_n_jobs
except ImportError as error:
    raise ImportError(
        "greenfold.estimators.margin.aeon needs aeon; install it with: "
        "pip install greenfold[aeon]"
    ) from error

__all__ = ["AeonReservoirClassifier"]


class AeonReservoirClassifier(BaseClassifier):
    """`ReservoirClassifier` as an aeon classifier.

    Parameters
    ----------
    input_projection, order, alpha, n_neurons, g, tau, duration, reservoir, eta,
    input_scaling, threshold, readout, readout_noise, class_weight, certify, random_state
        See `ReservoirClassifier`.
    n_jobs : int, default 1
        Threads over folds and classes.

    Attributes
    ----------
    classifier_ : ReservoirClassifier
        What was fitted.

    Notes
    -----
    Series have shape (n_cases, n_channels, n_timepoints), or are a list of (n_channels,
    n_timepoints) arrays of any length, aligned at their ends.

    Examples
    --------
    >>> from greenfold.estimators.margin.aeon import AeonReservoirClassifier
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> X, y = synthetic_heartbeats(80, rng=0)
    >>> classifier = AeonReservoirClassifier(random_state=0).fit(X[:, None, :], y)
    >>> classifier.predict(X[:3, None, :]).shape
    (3,)
    """

    _tags = {  # noqa: RUF012 - aeon's way of declaring what a classifier can do
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:multithreading": True,
        "X_inner_type": ["np-list", "numpy3D"],
    }

    def __init__(
        self,
        input_projection: Any = "optimal",
        order: int | str = 0,
        alpha: float = 0.05,
        n_neurons: int = 100,
        g: float = 0.9,
        tau: float | str = 0.25,
        duration: float = 10.0,
        reservoir: Any = None,
        eta: float | str = "cv",
        input_scaling: float | None = 1.0,
        threshold: str = "trained",
        readout: Any = "end",
        readout_noise: float = 0.0,
        class_weight: Any = None,
        certify: bool = False,
        random_state: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.input_projection = input_projection
        self.order = order
        self.alpha = alpha
        self.n_neurons = n_neurons
        self.g = g
        self.tau = tau
        self.duration = duration
        self.reservoir = reservoir
        self.eta = eta
        self.input_scaling = input_scaling
        self.threshold = threshold
        self.readout = readout
        self.readout_noise = readout_noise
        self.class_weight = class_weight
        self.certify = certify
        self.random_state = random_state
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: np.ndarray) -> Any:
        self._n_jobs = check_n_jobs(self.n_jobs)
        given = {**self.get_params(deep=False), "n_jobs": self._n_jobs}
        self.classifier_ = ReservoirClassifier(**given).fit(X, y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.classifier_.predict(X)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.classifier_.predict_proba(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_neurons": 10}
