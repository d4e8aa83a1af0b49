"""The rows of a comparison, against the classifier and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.classifier import ReservoirClassifier
from greenfold.report import random_spread, share_bounds, to_record

from .conftest import SETTINGS


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
        again = ReservoirClassifier(
            **SETTINGS,
            input_projection="optimal" if row.is_optimised else "random",
            order=row.order,
            random_state=0,
        ).fit(task.X, task.y)
        record = to_record(row)
        assert record["accuracy"] == pytest.approx(again.score(task.X_test, task.y_test))
        assert record["soft_margin"] == pytest.approx(float(again.soft_margin_))


def test_other_draws_stay_below_the_bound(task, rows):
    spread = random_spread(rows[0], task, n_draws=4)
    assert len(np.unique(spread.soft_margin)) == 4
    assert (spread.soft_margin <= rows[0].bound * (1 + 1e-12)).all()
    assert "4 other random u" in str(spread)
