"""Masks of a few levels, judged by exhaustive search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from greenfold import (
    Device,
    GaussianStimuli,
    Levels,
    Reservoir,
    Signs,
    optimize,
    unfold,
)
from greenfold.devices.masks.levels import UnitQuadratic, climb, symmetric_levels
from greenfold.math.sphere import maximize_on_sphere

from .cases import ETA, every, margins, setting

#: Masks, their levels, and numbers of inputs for which all are compared, and are too many.
CASES = {
    "sign": (Signs(), [-1, 1], 8, 13),
    "two levels": (Levels([0, 1]), [0, 1], 8, 13),
    "three levels": (Levels([-1, 0, 1]), [-1, 0, 1], 5, 8),
    "four levels": (Levels([-1, -0.2, 0.4, 3]), [-1, -0.2, 0.4, 3], 4, 8),
}


@pytest.mark.parametrize(
    ("mask", "levels", "n", "status"),
    [
        pytest.param(mask, levels, n, status, id=f"{name}, {n}")
        for name, (mask, levels, few, many) in CASES.items()
        for n, status in ((few, "exhaustive"), (many, "improved"))
    ],
)
def test_equal_to_exhaustive_search(mask, levels, n, status):
    """Where all masks are compared, and where entries are exchanged from roundings.

    The exchange is a heuristic: of seven entries of the four levels it is 2 % short.
    """
    network, stimuli = setting(n)
    best = optimize(network, stimuli, ETA, device=Device(mask=mask), rng=0)
    assert best.status == status
    truth = margins(network, stimuli, every(levels, n)).max()
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)
    assert np.linalg.norm(best.u) == pytest.approx(1)
    assert best.upper_bound is not None
    assert best.soft_margin <= best.upper_bound
    assert best.share == best.soft_margin / best.upper_bound
    scaled = best.u / np.abs(best.u).max()
    allowed = np.array(levels) / np.abs(levels).max()
    off = min(
        np.abs(t * scaled[:, None] - allowed).min(1).max()
        for t in np.abs(allowed[allowed != 0])
    )
    assert off < 1e-9
    # In the units of the device, one factor for all entries.
    units = mask.in_units(best.u)
    assert np.isin(units, levels).all()
    assert abs(units @ best.u) == pytest.approx(np.linalg.norm(units), rel=1e-9)


def test_levels_that_are_found_beat_every_ratio_of_a_grid():
    network, stimuli = setting(5)
    best = optimize(network, stimuli, ETA, device=Device(mask=Levels(4)), rng=0)
    assert len(np.unique(np.abs(best.u).round(9))) <= 2
    truth = max(
        margins(network, stimuli, every([-1, -r, r, 1], 5)).max()
        for r in np.linspace(0.05, 0.95, 19)
    )
    assert best.soft_margin >= truth * (1 - 1e-9)


@pytest.mark.parametrize(("n_levels", "n"), [(3, 6), (4, 5)])
def test_levels_with_their_sizes_equal_exhaustive_search(n_levels, n):
    """Every mask of 0, ±1; every one of ±1, ±r for r on a grid."""
    network, stimuli = setting(n)
    best = optimize(network, stimuli, ETA, device=Device(mask=Levels(n_levels)), rng=0)
    grid = (
        [[-1, 0, 1]] if n_levels == 3 else [[-1, -r, r, 1] for r in np.arange(1, 25) / 25]
    )
    truth = max(margins(network, stimuli, every(one, n)).max() for one in grid)
    assert best.soft_margin >= truth * (1 - 1e-9)
    # Half a step of 0.04 in r, squared, and some curvature.
    assert best.soft_margin <= truth * (1 + (1e-9 if n_levels == 3 else 4e-3))


def test_two_channels():
    """The mask is one for all channels: (n_inputs, n_channels) entries."""
    network, stimuli = setting(5, 4, 2)
    best = optimize(network, stimuli, ETA, device=Device(mask="sign"), rng=0)
    assert best.u.shape == (5, 2)
    G, best_of_all = network.greens1(), -np.inf
    for signs in every([-1, 1], 10) / np.sqrt(10):
        R = np.einsum("noi,ic->cno", G, signs.reshape(5, 2)).reshape(8, 5)
        S = R.T @ stimuli.psi @ R
        value = maximize_on_sphere(R.T @ stimuli.mu, ETA * (S + S.T) / 2).value
        best_of_all = max(best_of_all, float(value))
    assert best.soft_margin == pytest.approx(best_of_all, rel=1e-9)


def test_exchange_keeps_exact_sums(rng):
    """κ from cheap updates is κ from scratch: no move improves what `climb` returns."""
    A = rng.standard_normal((9, 9))
    quadratic = UnitQuadratic(rng.standard_normal(9), A @ A.T, 2.0)
    levels = np.array([-1.0, 0.3, 2.0])
    end = climb(quadratic, rng.integers(0, 3, 9), levels)
    value = quadratic.value(levels[end])
    for i, j in itertools.combinations(range(9), 2):
        for k, l in itertools.product(range(3), repeat=2):
            other = end.copy()
            other[i], other[j] = k, l
            assert quadratic.value(levels[other]) <= value + 1e-10


def test_single_exchanges_keep_exact_sums_too(rng):
    """Of many entries no pairs are compared, which would make up for a wrong sum."""
    n, levels = 360, np.array([-1.0, 0.3, 2.0])
    A = rng.standard_normal((n, n)) / np.sqrt(n)
    for _ in range(3):
        quadratic = UnitQuadratic(rng.standard_normal(n), A @ A.T, 2.0)
        end = climb(quadratic, rng.integers(0, 3, n), levels)
        value = quadratic.value(levels[end])
        for i, k in itertools.product(range(n), range(3)):
            other = end.copy()
            other[i] = k
            assert quadratic.value(levels[other]) <= value + 1e-10


def test_symmetric_levels_are_the_means_of_their_entries(rng):
    values = rng.standard_normal(200)
    levels = symmetric_levels(values, 5)
    np.testing.assert_allclose(levels, -levels[::-1])
    size = np.abs(values)
    near = np.abs(size[:, None] - levels[2:]).argmin(1)
    np.testing.assert_allclose(levels[3:], [size[near == k].mean() for k in (1, 2)])


@pytest.mark.parametrize("seed", range(3))
def test_three_levels_are_compared_exhaustively(seed):
    """Their size is the norm of u, so that −1, 0 and 1 are all there is."""
    stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    network = unfold(Reservoir.random(5, g=0.7, rng=seed), n_steps=6, dt=0.5)
    counted, given = (
        optimize(network, stimuli, device=Device(mask=Levels(levels)), rng=0)
        for levels in (3, [-1, 0, 1])
    )
    assert counted.status == given.status == "exhaustive"
    assert counted.soft_margin == given.soft_margin


@pytest.mark.parametrize("levels", [[-1, 1], [-1, 0, 1], [0, 1, 3]])
def test_levels_of_any_size_are_the_same_mask(levels):
    stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    network = unfold(Reservoir.random(5, g=0.7, rng=0), n_steps=6, dt=0.5)
    scales = (1.0, 2.0**600, 2.0**-600, 1e200, 1e-200)
    masks = [Levels(scale * np.array(levels)) for scale in scales]
    found = [optimize(network, stimuli, device=Device(mask=one), rng=0) for one in masks]
    # A power of two rounds nothing; other factors round each level once.
    for one, tol in zip(found[1:], (0, 0, 1e-12, 1e-12), strict=True):
        np.testing.assert_allclose(one.u, found[0].u, rtol=tol)
    with pytest.raises(ValueError, match="`levels` must be within a factor of 1e\\+12"):
        Levels([1e-9, 1e9])


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (1, ValueError, "`levels` must be at least 2"),
        (2.5, TypeError, "`levels` must be an integer"),
        ([1.0, 1.0], ValueError, "`levels` must hold at least two different values"),
        ([[0, 1]], ValueError, "`levels` must"),
    ],
)
def test_bad_levels(values, error, message):
    with pytest.raises(error, match=message):
        Levels(values)


@pytest.mark.parametrize(
    ("mask", "n", "seed"), [("levels=4", 7, 0), ("levels=4", 9, 4), ("sign", 14, 1)]
)
def test_no_change_of_one_entry_improves_a_mask(mask, n, seed):
    """Of the 3n changes of four levels, only 2n were tried."""
    network, stimuli = setting(n, seed=seed)
    best = optimize(network, stimuli, ETA, device=Device(mask=mask), rng=0)
    assert best.status == "improved"
    assert best.message == "no change of one entry improves this mask"
    levels = np.unique(best.u.round(12))
    levels = np.unique(np.concatenate([levels, -levels]))
    changed = np.array(
        [
            np.where(np.arange(n) == i, level, best.u)
            for i in range(n)
            for level in levels
            if abs(level - best.u[i]) > 1e-9
        ]
    )
    assert margins(network, stimuli, changed).max() <= best.soft_margin * (1 + 1e-9)


def test_many_levels_claim_no_more_than_was_tried():
    network, stimuli = setting(30)
    mask = Levels(np.arange(-70.0, 71.0))
    best = optimize(network, stimuli, ETA, device=Device(mask=mask), rng=0)
    assert best.status == "bounded"
    assert best.message.endswith("% of the best possible")
