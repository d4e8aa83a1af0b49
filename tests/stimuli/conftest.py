"""Labelled series of two classes, and the moments NumPy gives them."""

import numpy as np
import pytest


@pytest.fixture
def data(rng):
    """Unbalanced classes of different means and spreads, two channels of four steps."""
    labels = np.array(["sick"] * 9 + ["well"] * 21)[rng.permutation(30)]
    well = (labels == "well")[:, None, None]
    X = rng.standard_normal((30, 2, 4)) * np.where(well, 1.0, 2.0) + np.where(well, 3, 1)
    return X, labels


def weighted_moments(X, signs, weights):
    """μ and ψ of ζx by NumPy's own weighted mean and covariance."""
    signed = X.reshape(len(X), -1) * signs[:, None]
    mu = np.average(signed, axis=0, weights=weights)
    return mu, np.cov(signed.T, aweights=weights, ddof=0)


def split(X, labels, sizes):
    """Cut into batches of the given sizes, the rest last."""
    edges = np.cumsum(sizes)
    return zip(np.split(X, edges), np.split(labels, edges), strict=True)
