"""Messages and printed form of a result."""

from dataclasses import replace

import pytest

from greenfold.optimizers.result import MESSAGES, relative_gap

from .linear_cases import ETA, certify, setting


def test_gap_is_the_relative_distance():
    unfolding, stimuli = setting(n=6)
    found = certify(unfolding, stimuli, ETA)
    distance = (found.upper_bound - found.soft_margin) / found.upper_bound
    assert found.gap == pytest.approx(max(distance, 0), abs=1e-15)
    assert relative_gap(0.0, 0.0) == 0
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(1.0, 1.0 + 1e-12) == 0


def test_the_status_is_said_in_words():
    """How near it is to the best, and what closes the gap."""
    unfolding, stimuli = setting(n=6)
    found = certify(unfolding, stimuli, ETA)
    assert found.message == "proven optimal"
    wide = replace(found, status="bounded", upper_bound=found.soft_margin / 0.996)
    assert wide.message == (
        'within 0.4 % of the best possible; method="exact" can close the gap, but takes '
        "longer"
    )
    assert replace(wide, method="exact").message == "within 0.4 % of the best possible"
    assert "proven optimal" in str(found)
    for status in MESSAGES:
        assert replace(found, status=status).message
