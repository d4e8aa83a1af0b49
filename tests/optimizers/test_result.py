"""What is said of a result."""

import pytest

from greenfold.optimizers.result import relative_gap

from .linear_cases import ETA, certify, setting


def test_gap_is_the_relative_distance():
    unfolding, stimuli = setting(n=6)
    found = certify(unfolding, stimuli, ETA)
    distance = (found.upper_bound - found.soft_margin) / found.upper_bound
    assert found.gap == pytest.approx(max(distance, 0), abs=1e-15)
    assert relative_gap(0.0, 0.0) == 0
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(1.0, 1.0 + 1e-12) == 0
