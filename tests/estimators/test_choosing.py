"""The choice between the classifiers: what it counts, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import choose_classifier
from greenfold.estimators.choosing import ClassifierChoice, _folds

pytestmark = pytest.mark.usefixtures("compiled")

SMALL = {
    "margin": {"n_neurons": 10, "eta": 10.0},
    "pooled": {"n_scales": 3, "n_oscillators": 4, "n_readouts": 16},
}


def outcome(margin: list[int], pooled: list[int]) -> ClassifierChoice:
    correct = np.array([margin, pooled], dtype=bool)
    return ClassifierChoice(("margin", "pooled"), correct, (1.0, 1.0))


def test_errors_are_those_of_the_series():
    choice = outcome([1, 1, 0, 0, 1, 0, 1, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(choice.accuracy, [0.5, 0.8])
    assert choice.difference == pytest.approx(0.3)
    # Four series that only pooled told, one that only margin did: (5 − 3²/10) / 10 / 10.
    assert choice.difference_error == pytest.approx(np.sqrt(0.5 - 0.09) / np.sqrt(10))
    np.testing.assert_allclose(
        choice.standard_error, np.sqrt([0.5 * 0.5 / 10, 0.75 * 0.25 / 10])
    )
    assert choice.best == "pooled"
    assert "difference +30.0% ± 20.2%: pooled" in str(choice)
    assert "best=pooled" in repr(choice)


def test_between_equals_the_simpler_one_stays():
    assert outcome([1, 1, 0, 1], [1, 1, 1, 0]).best == "margin"
    perfect = outcome([1] * 5, [1] * 5)
    assert perfect.best == "margin"
    assert (perfect.standard_error > 0).all()


def test_folds_hold_every_class_and_a_bounded_sample():
    labels = np.repeat(["a", "b", "c"], [600, 300, 3])
    cases, fold = _folds(labels, 5, 100, np.random.default_rng(0))
    counts = {c: int((labels[cases] == c).sum()) for c in "abc"}
    assert counts == {"a": 66, "b": 33, "c": 3}
    assert len(np.unique(cases)) == len(cases)
    for c in "abc":
        dealt = np.bincount(fold[labels[cases] == c], minlength=5)
        assert dealt.max() - dealt.min() <= 1


def test_series_that_begin_anywhere_and_the_same_seed():
    rng = np.random.default_rng(0)
    y = np.array(["slow", "fast"])[np.arange(50) % 2]
    X = np.sin(
        np.arange(40) * np.where(y == "slow", 0.4, 0.8)[:, None]
        + rng.uniform(0, 6, (50, 1))
    )
    seen: list[str] = []
    choice = choose_classifier(X, y, **SMALL, n_folds=3, on_fit=seen.append)
    assert choice.best == "pooled"
    assert choice.correct.shape == (2, 50)
    assert len(seen) == 6
    again = choose_classifier(list(X), y, **SMALL, n_folds=3)
    np.testing.assert_array_equal(again.correct, choice.correct)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0, 1, 0], {}, "`y` must have one label a series"),
        ([0, 0, 0, 1], {}, "two series of two classes"),
        ([0, 1, 0, 1], {"n_folds": 1}, "`n_folds`"),
        ([0, 1, 0, 1], {"max_cases": 3}, "`max_cases`"),
    ],
)
def test_what_can_not_be_compared(y, options, message):
    with pytest.raises(ValueError, match=message):
        choose_classifier(np.ones((4, 9)), y, **options)
