"""Messages and printed form of a result."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from greenfold import (
    Device,
    GaussianStimuli,
    RegressionTask,
    Reservoir,
    load,
    optimize,
    unfold,
)
from greenfold.optimizers.method import n_beside
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


def separate(best):
    """Return the same random u, to solve for one by one."""
    rng = np.random.default_rng([0, 1])
    return [rng.standard_normal(np.size(best.u)) for _ in range(15)]


@pytest.mark.parametrize("mask", [None, "sign"])
def test_a_printed_result_stands_beside_random_projections(mask, tmp_path):
    unfolding, stimuli = setting(n=6)
    device = Device(mask=mask)
    best = optimize(unfolding, stimuli, ETA, device=device)
    shown, drawn = str(best), best.random_margins
    assert drawn is not None
    us = separate(best) if mask is None else []
    for value, u in zip(drawn, us, strict=False):
        alone = optimize(unfolding, stimuli, ETA, u=u).soft_margin
        assert value == pytest.approx(alone, rel=1e-12)  # the same solve, rounded
    assert drawn.max() <= best.upper_bound
    kind = "u" if mask is None else "masks"
    assert (
        f"15 random {kind}: median {np.median(drawn):.6g}, best {drawn.max():.6g}" in shown
    )
    times = best.soft_margin / np.median(drawn)
    assert (f"{times:.2g} times the median" in shown) == (np.median(drawn) > 0)
    again = optimize(unfolding, stimuli, ETA, device=device)
    np.testing.assert_array_equal(again.random_margins, drawn)
    # The numbers travel with a copy; the problem, which may be large, does not.
    copied = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(copied.random_margins, drawn)
    assert copied.drawn is copied.random_margins
    best.save(tmp_path / "best.gfm")
    loaded = load(tmp_path / "best.gfm")
    assert str(loaded) == shown


def test_what_random_projections_are_not_drawn_for():
    unfolding, stimuli = setting(n=6)
    drawn = optimize(unfolding, stimuli, ETA, "random", rng=0)
    assert drawn.random_margins is None  # it is one of them
    assert n_beside(unfolding, size=10_000) == 0


def test_a_large_network_stands_beside_three_random_projections():
    network = unfold(Reservoir.random(501, connectivity=0.01, rng=0), n_steps=3, dt=1.0)
    stimuli = GaussianStimuli.random(3, rng=0)
    best = optimize(network, stimuli, ETA, u=np.ones(501))
    assert best.random_margins is not None
    assert best.random_margins.shape == (3,)
    for value, u in zip(best.random_margins, separate(best)[:3], strict=True):
        alone = optimize(network, stimuli, ETA, u=u).soft_margin
        assert value == pytest.approx(alone, rel=1e-12)  # the same solve, rounded
    assert "3 random u: median" in str(best)


def test_a_regression_stands_beside_random_projections():
    network = unfold(Reservoir.random(8, tau=2.0, rng=1), n_steps=20, dt=0.5)
    task = RegressionTask.memory([1, 3], 20, ridge=0.01)
    best = optimize(network, task)
    assert best.random_losses is not None
    for value, u in zip(best.random_losses, separate(best), strict=True):
        alone = optimize(network, task, u=u).loss
        assert value == pytest.approx(alone, rel=1e-12)
    assert best.random_losses.min() >= best.loss
    assert f"15 random u: median loss {np.median(best.random_losses):.6g}" in str(best)
