"""Thinning and rounding of the series, and the sentences about it."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.apps.explorer import MAX_VALUES, which_came_first

from .conftest import prepare


def series(n_cases=40, n_steps=20, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_cases, n_steps)), np.arange(n_cases) % n_classes


def test_series_that_fit_stay_as_they_are():
    X, y = series()
    made = prepare("small", X, y)
    assert made.thinned == []
    assert made.judged == "training"
    assert made.X[:, 0] == pytest.approx(X, abs=made.unit / 2)
    assert np.rint(made.X / made.unit) == pytest.approx(made.X / made.unit, abs=1e-9)
    assert (made.codes == y).all()


def test_long_series_are_averaged_and_it_is_said():
    X, y = series(n_steps=1000)
    made = prepare("long", X, y)
    assert made.X.shape[2] <= MAX_VALUES
    assert "1000 steps" in made.thinned[0]
    assert str(made.X.shape[2]) in made.thinned[0]
    # Areas are kept: the mean over time is that of the series.
    assert made.X[:, 0].mean(1) == pytest.approx(X.mean(1), abs=made.unit)
    # 1000 over 143 or so steps: each is the mean of a stretch, by a fine grid.
    fine = (
        np.repeat(X, made.X.shape[2], axis=1).reshape(len(X), made.X.shape[2], -1).mean(2)
    )
    assert made.X[:, 0] == pytest.approx(fine, abs=made.unit)


def test_many_series_are_thinned_class_by_class():
    X, y = series(n_cases=4000, n_steps=30, n_classes=4)
    made = prepare("many", X, y, X[:10], y[:10])
    assert len(made.codes) <= 300
    assert np.ptp(np.bincount(made.codes)) <= 1
    assert made.thinned == [f"The page holds {len(made.codes)} of 4000 training series."]
    assert len(made.codes_test) == 10


def test_unequal_lengths_end_together():
    X = [np.arange(1.0, 6.0), np.arange(3.0, 6.0), np.ones(5), np.zeros(5)]
    made = prepare("ragged", X, [0, 0, 1, 1])
    assert made.X[1, 0] == pytest.approx([3, 3, 3, 4, 5], abs=made.unit)
    assert "3 to 5 steps" in made.thinned[0]


@pytest.mark.parametrize(
    ("X", "y", "part"),
    [
        (np.ones((3, 4)), [0, 0, 0], "two classes"),
        (np.ones((3, 4)), [0, 0, 1], "two classes"),
        (np.zeros((4, 4)), [0, 0, 1, 1], "only zeros"),
        (np.full((4, 4), np.nan), [0, 0, 1, 1], "finite"),
        (
            np.random.default_rng(0).standard_normal((60, 4)),
            np.arange(60) // 2,
            "--classes",
        ),
        ([], [], "no series"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(X, y, part):
    with pytest.raises(ValueError, match=part) as caught:
        prepare("bad", X, y)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_pairs_of_frequent_classes_come_first():
    y = [0] * 2 + [1] * 20 + [2] * 30 + [3]
    X, _ = series(n_cases=len(y))
    assert prepare("some", X, y).pairs() == [(1, 2), (0, 1), (0, 2)]


def test_bumps_differ_in_their_order():
    X, y = which_came_first(400, 0)
    early, late = X[:, 20:30].mean(1), X[:, 43:53].mean(1)
    assert ((early - late) * y).mean() > 1
    assert (which_came_first(4, 1)[0] == which_came_first(4, 1)[0]).all()
