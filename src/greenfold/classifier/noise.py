"""Accuracy under readout noise: what a physical reservoir has to live with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

from .. import _validation as check
from . import ReservoirClassifier


def noisy_accuracy(
    classifier: ReservoirClassifier,
    X: Any,
    y: Any,
    sigma: float,
    *,
    n_draws: int = 100,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Expected accuracy when every neuron's state carries noise as it is read.

    Independent Gaussian noise of standard deviation σ on every state is noise of standard
    deviation σ‖v‖ = σ on the read-out value. For two classes the expectation is taken in
    closed form; for more it is an average over draws.

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
    n_draws : int
        Draws of the noise (more than two classes).
    rng : numpy Generator, int or None

    Returns
    -------
    float

    Examples
    --------
    >>> from greenfold.classifier import ReservoirClassifier
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.classifier import noisy_accuracy
    >>> X, y = synthetic_heartbeats(200, rng=0)
    >>> solved = ReservoirClassifier(readout_noise=0.1, random_state=0).fit(X, y)
    >>> drawn = ReservoirClassifier(
    ...     input_projection="random", readout_noise=0.1, random_state=0
    ... ).fit(X, y)
    >>> noisy_accuracy(solved, X, y, 0.1) > noisy_accuracy(drawn, X, y, 0.1)
    True
    """
    level = float(check.host_array(sigma, "sigma", ndim=(0,)))
    if level < 0:
        raise ValueError(f"`sigma` must not be negative; got {sigma!r}.")
    labels = column_or_1d(y)
    values = classifier.read_out(X)
    check_consistent_length(values, labels)
    classes = classifier.classes_
    if level == 0:
        return float((classifier.predict(X) == labels).mean())
    if len(classes) == 2:
        score = classifier.decision_.scores(values)[:, 0]
        second = ndtr(score / level)
        right = np.where(labels == classes[1], second, 1 - second)
        return float(np.where(np.isin(labels, classes), right, 0.0).mean())
    rng = check.generator(rng)
    hits = 0.0
    for _ in range(check.count(n_draws, "n_draws")):
        noisy = values + level * rng.standard_normal(values.shape)
        hits += (classes[classifier.decision_.scores(noisy).argmax(1)] == labels).mean()
    return float(hits / n_draws)
