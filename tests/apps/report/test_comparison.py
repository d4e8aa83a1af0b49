"""The rows of a comparison, against the classifier and its bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from greenfold.apps.report.comparison import (
    fragility,
    headline,
    random_spread,
    share_bounds,
    to_record,
)
from greenfold.estimators.margin import ReservoirClassifier, noisy_accuracy

from .conftest import SETTINGS

LINEAR = {name: SETTINGS[name] for name in ("n_neurons", "eta")}


def test_bounds_hold_and_are_shared(rows):
    linear = rows[:2]
    assert linear[0].bound == linear[1].bound
    assert all(row.soft_margin <= row.bound * (1 + 1e-12) for row in linear)
    assert linear[1].proven
    assert not linear[0].proven
    assert all(np.isnan(row.bound) for row in rows[2:])
    assert [row.bound for row in share_bounds(linear)] == [row.bound for row in linear]


def test_numbers_match_the_classifier(task, rows):
    for row in rows:
        idle = {"certify"} if row.order or not row.is_solved else set()
        idle |= set() if row.order else {"alpha"}
        again = ReservoirClassifier(
            **{name: value for name, value in SETTINGS.items() if name not in idle},
            input_projection="solved" if row.is_solved else "random",
            order=row.order,
            random_state=0,
        ).fit(task.X, task.y)
        record = to_record(row)
        assert record["accuracy"] == pytest.approx(again.score(task.X_test, task.y_test))
        assert record["soft_margin"] == pytest.approx(float(again.soft_margin_))


def test_other_draws_stay_below_the_bound(task, rows):
    spread = random_spread(rows[0], task, n_draws=4, parameters=LINEAR)
    assert len(np.unique(spread.soft_margin)) == 4
    assert (spread.soft_margin <= rows[0].bound * (1 + 1e-12)).all()
    assert "4 random u" in str(spread)


def test_each_draw_has_its_own_eta_with_and_without_noise(task, rows):
    """The noise column of the table and the range below it come from the same fits."""
    own = {"n_neurons": 20}
    spread = random_spread(rows[0], task, n_draws=3, parameters=own)
    for row in spread.rows:
        noisy = ReservoirClassifier(
            input_projection=row.classifier.input_projection,
            n_neurons=20,
            readout_noise=row.noise,
            random_state=0,
        ).fit(task.X, task.y)
        assert row.noisy_eta == noisy.eta_
        wanted = noisy_accuracy(noisy, task.X_test, task.y_test, row.noise, rng=0)
        assert row.noisy_accuracy == wanted
    assert spread.noisy_accuracy.min() <= spread.median.noisy_accuracy
    for_noise = random_spread(
        rows[0], task, n_draws=3, parameters={**own, "readout_noise": 0.1}
    )
    assert all(row.main_accuracy == row.noisy_accuracy for row in for_noise.rows)
    assert "accuracy under noise" in str(for_noise)
    assert "accuracy 0" not in str(for_noise)


def _row(order, projection, accuracy, noisy, proven=False) -> Any:
    return SimpleNamespace(
        order=order, is_solved=projection == "solved", main_accuracy=accuracy,
        noisy_accuracy=noisy, proven=proven,
    )  # fmt: skip


def test_the_headline_is_the_best_and_proven_where_that_is_equal():
    random = _row(0, "random", 0.952, 0.9)
    linear = _row(0, "solved", 0.980, 0.97, proven=True)
    bent = _row(1, "solved", 0.975, 0.98)
    # 0.975 is more than a standard error (0.2 %) below: the linear network is better.
    assert headline([random, linear, bent], 4332) is linear
    # Over 100 series it is within one (1.4 %): of equals, the proven one.
    assert headline([random, bent, linear], 100) is linear
    # What is better goes first even without a proof.
    assert headline([random, linear, _row(1, "solved", 0.999, 0.98)], 4332).order == 1
    assert headline([random], 10) is random


def test_the_median_of_random_projections_is_one_of_them(task, rows):
    spread = random_spread(rows[0], task, n_draws=5, parameters=LINEAR)
    assert spread.median in spread.rows
    assert spread.median.noisy_accuracy == np.median(spread.noisy_accuracy)


def test_a_model_that_bears_no_noise_says_so(task, rows):
    quiet = SimpleNamespace(**vars(rows[1]) | {"noise": 0.0, "accuracy": 1.5})
    assert "fit with --noise 0.1" in fragility(quiet, task)  # pyright: ignore[reportArgumentType]
    robust = SimpleNamespace(**vars(rows[1]) | {"noise": 0.0, "accuracy": 0.2})
    assert fragility(robust, task) == ""  # pyright: ignore[reportArgumentType]
