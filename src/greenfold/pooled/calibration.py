"""Probabilities from scores, calibrated on scores of cases that were held out."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

__all__ = ["expected_calibration_error", "fit_slope"]


def fit_slope(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Slope a of probabilities softmax(a · scores), by maximum likelihood.

    Parameters
    ----------
    scores : ndarray (n_cases, n_classes)
        Of held-out cases.
    codes : ndarray (n_cases,) of int
    weights : ndarray (n_cases,), optional

    Returns
    -------
    float
        Positive, so that the most probable class is the one of the largest score.

    Notes
    -----
    Where all held-out cases are right, the likelihood grows without bound with the slope.
    As Platt did for two classes, the targets are not one and zero but (n + 1)/(n + C) and
    1/(n + C): a uniform prior, under which n cases never prove certainty.
    """
    n, n_classes = scores.shape
    omega = np.ones(n) if weights is None else weights
    target = np.full((n, n_classes), 1 / (n + n_classes))
    target[np.arange(n), codes] = (n + 1) / (n + n_classes)

    def loss(log_slope: float) -> float:
        log_p = log_softmax(np.exp(log_slope) * scores, axis=1)
        return -float(np.average((target * log_p).sum(axis=1), weights=omega))

    spread = np.abs(scores - scores.mean(axis=1, keepdims=True)).max()
    if not spread > 0:
        return 1.0
    centre = -np.log(spread)
    best = minimize_scalar(loss, bounds=(centre - 7, centre + 12), method="bounded")
    return float(np.exp(best.x))


def expected_calibration_error(
    probabilities: np.ndarray, codes: np.ndarray, n_bins: int = 15
) -> float:
    """Mean distance of confidence and accuracy over bins of equal confidence.

    Parameters
    ----------
    probabilities : ndarray (n_cases, n_classes)
    codes : ndarray (n_cases,) of int
        Index of the true class.
    n_bins : int
        Bins of equal width.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == codes
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    gap = np.bincount(bins, confidence - right, minlength=n_bins)
    return float(np.abs(gap).sum() / counts.sum())
