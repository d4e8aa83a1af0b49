"""Masks in a range, judged by grids, by a general solver, and by geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from greenfold import Box, Device, NonNegative, optimize
from greenfold.devices.masks.box import into_box
from greenfold.devices.masks.mask import enough

from .cases import ETA, margins, setting


@pytest.mark.parametrize(
    ("mask", "low", "high"),
    [
        (NonNegative(), 0.0, 1.0),
        (Box(-0.2, 0.7), -0.2, 0.7),
        (Box(0.3, 1.0), 0.3, 1.0),
    ],
)
@pytest.mark.parametrize("seed", [3, 4])
def test_ranges_equal_a_search_of_the_whole_sphere(mask, low, high, seed):
    """Three inputs: every direction, 1.2 degrees apart."""
    network, stimuli = setting(3, seed=seed)
    best = optimize(network, stimuli, ETA, device=Device(mask=mask), rng=0)
    height, turn = np.linspace(0, np.pi, 150), np.linspace(0, 2 * np.pi, 300)
    height, turn = (one.ravel() for one in np.meshgrid(height, turn))
    sphere = np.stack(
        [np.sin(height) * np.cos(turn), np.sin(height) * np.sin(turn), np.cos(height)], 1
    )
    inside = sphere[((sphere >= low) & (sphere <= high)).all(1)]
    truth = margins(network, stimuli, inside).max()
    # An ascent ends where it comes as near as this to the bound on all masks.
    assert best.soft_margin >= enough(truth)
    # At an edge of the range the grid is a step of 0.02 away, and κ is not flat there.
    assert best.soft_margin <= truth * (1 + 0.04)


@pytest.mark.parametrize(
    ("mask", "low", "high"),
    [(NonNegative(), 0.0, 1.0), (Box(-0.3, 0.6), -0.3, 0.6)],
)
def test_ranges_are_solved_as_by_a_general_solver(mask, low, high, rng):
    n = 6
    network, stimuli = setting(n)
    best = optimize(network, stimuli, ETA, device=Device(mask=mask), rng=0)
    assert np.linalg.norm(best.u) == pytest.approx(1)
    assert best.u.min() >= low - 1e-12
    assert best.u.max() <= high + 1e-12

    def negative(u):
        return -float(margins(network, stimuli, u[None])[0])

    of_unit_norm: Any = {"type": "eq", "fun": lambda u: u @ u - 1}
    truth = -np.inf
    for _ in range(2):
        start = into_box(rng.standard_normal(n), low, high)
        found = minimize(
            negative,
            start,
            method="SLSQP",
            bounds=[(low, high)] * n,
            constraints=of_unit_norm,
            options={"ftol": 1e-12, "maxiter": 60},
        )
        if abs(found.x @ found.x - 1) < 1e-6:
            truth = max(truth, -found.fun)
    # SLSQP ends at 1e-6 of the norm.
    assert best.soft_margin >= truth * (1 - 1e-5)


@pytest.mark.parametrize("low", [0.0, -0.2, 0.05])
def test_the_nearest_vector_in_a_box(rng, low):
    """No unit vector of a box is nearer than the projection."""
    for _ in range(20):
        w = rng.standard_normal(5)
        made = into_box(w, low, 0.6)
        assert np.linalg.norm(made) == pytest.approx(1, abs=1e-9)
        assert made.min() >= low - 1e-12
        assert made.max() <= 0.6 + 1e-12
        others = np.clip(made + 0.1 * rng.standard_normal((2000, 5)), low, 0.6)
        length = np.linalg.norm(others, axis=1)
        others = others[length > 0.9] / length[length > 0.9, None]
        inside = (others >= low).all(1) & (others <= 0.6).all(1)
        if (w > 0).any():
            assert (others[inside] @ w <= made @ w + 1e-9).all()


def test_bad_ranges():
    with pytest.raises(ValueError, match=r"`box` must be \(low, high\) with low < high"):
        Box(1, 0)
    with pytest.raises(TypeError, match="`low` must hold real numbers"):
        Box("a", 1)  # pyright: ignore[reportArgumentType]
    network, stimuli = setting(7)
    with pytest.raises(ValueError, match="leaves no vector of unit norm .* at least 0.378"):
        optimize(network, stimuli, device=Device(mask=Box(0.1, 0.2)))
    with pytest.raises(ValueError, match="makes every vector of 7 entries longer"):
        optimize(network, stimuli, device=Device(mask=Box(0.5, 1.0)))
