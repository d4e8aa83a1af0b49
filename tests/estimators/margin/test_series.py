"""Series of several channels and any length, and data that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from .conftest import make


def test_several_channels(beats, rng):
    X, y, _, _ = beats
    both = np.stack([X, rng.standard_normal(X.shape)], axis=1)
    fitted = make(eta=10.0).fit(both, y)
    assert fitted.u_.shape == (20, 2)
    assert np.linalg.norm(fitted.u_[:, 0]) > np.linalg.norm(fitted.u_[:, 1])
    np.testing.assert_array_equal(
        fitted.decision_function(list(both)), fitted.decision_function(both)
    )
    for wrong in (X, both[:, :1], both[..., :-1]):
        with pytest.raises(ValueError, match="channels|features"):
            fitted.predict(wrong)
    flat = make(eta=10.0).fit(X, y)
    np.testing.assert_array_equal(
        flat.decision_function(X[:, None]), flat.decision_function(X)
    )


@pytest.mark.parametrize("order", [0, 1])
def test_short_series_start_later_and_the_network_rests_before(beats, order):
    X, y = beats[0][:60, ::2], beats[1][:60]
    lengths = np.random.default_rng(2).integers(12, 21, len(X))
    lengths[0] = 20
    ragged = [x[-n:] for x, n in zip(X, lengths, strict=True)]
    fitted = make(order=order, eta=10.0, n_neurons=12).fit(ragged, y)
    assert fitted.n_features_in_ == 20
    # Zero input before the start, in the coordinates of the network.
    moved = (X - fitted.centre_) * fitted.scale_
    moved[np.arange(20) < 20 - lengths[:, None]] = 0
    z = fitted.kernel_.decision_values(moved) - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(ragged), z, atol=1e-9)
    longer = [np.append(np.full(9, 1e3), x) for x in X]
    np.testing.assert_allclose(
        fitted.decision_function(longer), fitted.decision_function(X)
    )
    table = fitted.decision_function(X[:, -15:])  # any length, as it was fitted with
    np.testing.assert_allclose(table, fitted.decision_function(list(X[:, -15:])))
    assert fitted.score(ragged, y) > 0.75
    # How u was found does not matter here, and drawing it is quick.
    drawn = {"order": order, "eta": 10.0, "n_neurons": 12, "input_projection": "random"}
    equal, same = make(**drawn).fit(list(X), y), make(**drawn).fit(X, y)
    np.testing.assert_allclose(equal.decision_function(X), same.decision_function(X))


def test_wrong_data_are_refused(beats):
    X, y, _, _ = beats
    broken = X.copy()
    broken[3, 5] = np.nan
    cases = [
        (broken, y, "NaN"),
        (X, np.ones(100), "one class"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X, None, "target y is None"),
        (X, np.linspace(0, 1, 100), "continuous"),
        (X, np.stack([y, y], axis=1), "1d array"),
        (X[:0], y[:0], "0 sample"),
        (X[0], y, "2D array"),
        ([X[0], []], y[:2], "empty series at index 1"),
        ([X[0], broken[3, :9]], y[:2], "series at index 1"),
        ([X[:2], X[:3]], y[:2], "same number of channels"),
        (X.astype(complex), y, "Complex"),
    ]
    for bad, labels, message in cases:
        with pytest.raises(ValueError, match=message):
            make().fit(bad, labels)
    with pytest.raises(TypeError, match="[Ss]parse"):
        make().fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="unstable"):
        make(reservoir=2 * np.eye(10)).fit(X, y)
    with pytest.raises(ValueError, match="unstable"):
        make(g=3.0).fit(X, y)
