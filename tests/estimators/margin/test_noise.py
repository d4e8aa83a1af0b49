"""Readout noise, against noisy states."""

from __future__ import annotations

import pytest

from greenfold.estimators.margin import noisy_accuracy

from .conftest import make


def test_noisy_accuracy_is_that_of_noisy_states(beats, rng):
    X, y, X_test, y_test = beats
    fitted = make(readout_noise=0.1).fit(X, y)
    states = fitted.transform(X_test)
    noise = 0.1 * rng.standard_normal((2000, *states.shape))
    z = (states + noise) @ fitted.v_ - fitted.threshold_
    sampled = (fitted.classes_[(z > 0).astype(int)] == y_test).mean()
    assert noisy_accuracy(fitted, X_test, y_test, 0.1) == pytest.approx(sampled, abs=0.003)
    assert noisy_accuracy(fitted, X_test, y_test, 0) == fitted.score(X_test, y_test)


def test_noisy_accuracy_of_three_classes(three):
    X, y = three
    fitted = make(readout_noise=0.2).fit(X, y)
    levels = [noisy_accuracy(fitted, X, y, sigma, rng=0) for sigma in (0.0, 0.2, 50.0)]
    assert levels[0] > levels[1] > levels[2]
    assert levels[2] == pytest.approx(1 / 3, abs=0.05)
    with pytest.raises(ValueError, match="sigma"):
        noisy_accuracy(fitted, X, y, -1.0)


def test_noise_asks_for_a_smaller_eta(beats):
    X, y, _, _ = beats
    quiet, noisy = (make(readout_noise=s).fit(X, y).eta_ for s in (0.0, 0.5))
    assert noisy < quiet
