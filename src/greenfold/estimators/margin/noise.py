"""Accuracy under readout noise: what a physical reservoir has to live with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

from ..._base import checks as check
from ...devices.noise import covariance
from .classifier import ReservoirClassifier


def noisy_accuracy(
    classifier: ReservoirClassifier,
    X: Any,
    y: Any,
    sigma: float,
    *,
    input_noise: Any = None,
    state_noise: Any = None,
    n_draws: int = 100,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Expected accuracy when every neuron's state carries noise as it is read.

    Independent Gaussian noise of standard deviation σ on every state has the standard
    deviation σ‖v‖ = σ on the readout value. For two classes the expectation has a closed
    form; for more it is an average over draws.

    Parameters
    ----------
    classifier : ReservoirClassifier
        Fitted; make it with ``readout_noise=sigma`` so that η and the threshold allow for
        the noise.
    X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
    y : array_like (n_cases,)
    sigma : float
        In the unit of the network states, where the inputs are scaled to ‖μ‖ =
        ``input_scaling``.
    input_noise : float or array_like, optional
        Noise on the series, in their own unit, as one standard deviation, one for each
        value, or a covariance (linear order).
    state_noise : float or array_like, optional
        Noise that the states carry at the readout, likewise; of noise inside a network,
        `greenfold.devices.noise.state_covariance`.
    n_draws : int
        Draws of the noise (more than two classes).
    rng : numpy Generator, int or None

    Returns
    -------
    float

    Examples
    --------
    >>> from greenfold.estimators.margin import ReservoirClassifier
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.margin import noisy_accuracy
    >>> X, y = synthetic_heartbeats(200, rng=0)
    >>> solved = ReservoirClassifier(readout_noise=0.1, random_state=0).fit(X, y)
    >>> drawn = ReservoirClassifier(
    ...     input_projection="random", readout_noise=0.1, random_state=0
    ... ).fit(X, y)
    >>> noisy_accuracy(solved, X, y, 0.1) > noisy_accuracy(drawn, X, y, 0.1)
    True
    """
    level = check.number(sigma, "sigma")
    check.must(level >= 0, "sigma", "not be negative", sigma)
    labels = column_or_1d(y)
    values = classifier.read_out(X)
    check_consistent_length(values, labels)
    classes = classifier.classes_
    levels = _levels(classifier, level, input_noise, state_noise)
    if not levels.any():
        return float((classifier.predict(X) == labels).mean())
    if len(classes) == 2:
        score = classifier.decision_.scores(values)[:, 0]
        second = ndtr(score / levels[0])
        right = np.where(labels == classes[1], second, 1 - second)
        return float(np.where(np.isin(labels, classes), right, 0.0).mean())
    rng = check.generator(rng)
    hits = 0.0
    for _ in range(check.count(n_draws, "n_draws")):
        noisy = values + levels * rng.standard_normal(values.shape)
        hits += (classes[classifier.decision_.scores(noisy).argmax(1)] == labels).mean()
    return float(hits / n_draws)


def _levels(
    classifier: ReservoirClassifier, sigma: float, input_noise: Any, state_noise: Any
) -> np.ndarray:
    """Standard deviation of the noise on the readout value of each comparison."""
    square = np.full(len(classifier.heads_), sigma**2)
    if input_noise is not None and classifier.order:
        raise ValueError("`input_noise` is known in closed form at order 0 only.")
    for k, head in enumerate(classifier.heads_):
        if state_noise is not None:
            P = covariance(state_noise, "state_noise", len(head.v))
            square[k] += head.v @ P @ head.v
        if input_noise is not None:
            # In the unit of the series: the kernel of the readout value.
            assert head.kernel is not None  # of the linear order there always is one
            a = head.kernel.linear.ravel()
            N = covariance(input_noise, "input_noise", len(a))
            square[k] += (a @ N @ a) * head.scale**2
    return np.sqrt(square)
