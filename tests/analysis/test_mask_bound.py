"""Bounds of masks of one kind: above every mask, and below the bound of all."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from greenfold import (
    Box,
    Device,
    Gain,
    GaussianStimuli,
    Levels,
    NonNegative,
    Reservoir,
    Signs,
    optimize,
    unfold,
)
from greenfold.analysis import mask_bound
from greenfold.devices.masks.box import into_box
from greenfold.devices.masks.mask import Constraint
from greenfold.optimizers.bounds import Relaxation
from greenfold.optimizers.linear import LinearProblem

from ..conftest import small

N = 6
KINDS = {
    "sign": Device(mask=Signs()),
    "nonnegative": Device(mask=NonNegative()),
    "on or off": Device(mask=Levels([0, 1])),
    "box": Device(mask=Box(-0.5, 0.5)),
    "nonnegative box": Device(mask=Box(0.0, 0.6)),
}


def constraints_of(kind: str, problem: LinearProblem) -> list[Constraint]:
    """The constraints with which a kind lowers the bound."""
    found: list[Constraint] = []

    def bounded(constraints):
        found.extend(constraints)
        return Relaxation([problem], constraints)

    mask = KINDS[kind].mask
    assert mask is not None
    mask.lowest_bound((N, 1), bounded)
    return found


@pytest.fixture(scope="module")
def setting():
    network = unfold(small(n=N, seed=3), n_steps=6, dt=0.5)
    return network, GaussianStimuli.random(6, strength=1.0, rng=2)


@pytest.fixture(scope="module")
def best_of(setting):
    """The best mask of a kind, solved once."""
    return cache(lambda kind: optimize(*setting, device=KINDS[kind], rng=0))


def tried(kind, n, rng):
    """Many masks of a kind: all, or drawn."""
    if kind == "sign":
        return np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    if kind == "on or off":
        return np.array(list(itertools.product([0.0, 1.0], repeat=n)))[1:]
    box = KINDS[kind].mask
    assert isinstance(box, Box)
    drawn = rng.standard_normal((200, n))
    return np.array([into_box(w, box.low, box.high) for w in drawn])


@pytest.mark.parametrize("kind", KINDS)
def test_no_mask_passes_it(setting, best_of, kind, rng):
    network, stimuli = setting
    best = best_of(kind)
    bound = mask_bound(network, stimuli, best, KINDS[kind])
    problem = LinearProblem(network.maps, stimuli, best.eta)
    values = [
        problem.best_readout(u[:, None] / np.linalg.norm(u))[1].value
        for u in tried(kind, N, rng)
    ]
    assert max(values) <= best.soft_margin * (1 + 1e-9)
    assert best.soft_margin <= bound
    assert best.upper_bound is not None
    assert bound < best.upper_bound
    if kind in ("sign", "nonnegative"):  # it is not much above the best of them
        assert bound - best.soft_margin < 0.5 * (best.upper_bound - best.soft_margin)


@pytest.mark.parametrize("kind", KINDS)
def test_what_obeys_a_kind_costs_nothing(setting, kind, rng):
    """uᵀRu ≥ −ρ for masks of a kind, with every z that is allowed: it is a bound."""
    network, stimuli = setting
    for one in constraints_of(kind, LinearProblem(network.maps, stimuli, 10.0)):
        for u in tried(kind, N, rng):
            u = u / np.linalg.norm(u)
            z = rng.random(one.n_variables)
            if not one.is_signed:
                z *= rng.choice([-1, 1], len(z))
            R = np.zeros((N, N))
            price = one.add(R, z)
            # The gradient of λ_max + ρ at one vector is that of uᵀRu + ρ; both are linear.
            assert u @ R @ u + price == pytest.approx(
                one.gradient(u[:, None], np.ones(1)) @ z, abs=1e-14
            )
            assert u @ R @ u + price >= -1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_more_masks_have_no_lower_bound(setting, best_of, kind):
    """Without the constraints it is the bound of all projections; they only lower it."""
    network, stimuli = setting
    best = best_of(kind)
    problem = LinearProblem(network.maps, stimuli, best.eta)
    kernels = [problem.kernel(best.u[:, None], best.v)]
    free, own = (Relaxation([problem], c) for c in ([], constraints_of(kind, problem)))
    # Both descents end at a relative 1e-7.
    assert own.lower(kernels, best.u[:, None]) <= free.lower(kernels, best.u[:, None]) * (
        1 + 1e-6
    )
    assert mask_bound(network, stimuli, best, KINDS[kind]) <= own.lowest * (1 + 1e-12)


def test_two_channels():
    network = unfold(small(n=4), n_steps=5, dt=0.5)
    stimuli = GaussianStimuli.random(5, n_channels=2, strength=1.0, rng=1)
    best = optimize(network, stimuli, device=KINDS["sign"], rng=0)
    assert best.status == "exhaustive"
    bound = mask_bound(network, stimuli, best, KINDS["sign"])
    assert best.upper_bound is not None
    assert best.soft_margin <= bound < best.upper_bound


def test_bad_arguments(setting):
    network, stimuli = setting
    three, sign = Device(mask=Levels(3)), KINDS["sign"]
    best = optimize(network, stimuli, device=three, rng=0)
    with pytest.raises(ValueError, match="`device` must have a mask; without one, use"):
        mask_bound(network, stimuli, best, Device(inputs=[0]))
    with pytest.raises(ValueError, match="`levels` must be two of equal size, or none"):
        mask_bound(network, stimuli, best, three)
    loud = Device(mask="sign", input_noise=0.1)
    noisy = optimize(network, stimuli, device=loud, rng=0)
    with pytest.raises(ValueError, match="`projections` must be solved without noise"):
        mask_bound(network, stimuli, noisy, loud)
    curved = Reservoir(small(n=N).weights, gain=Gain.quadratic(0.1))
    with pytest.raises(ValueError, match="`system` must be linear"):
        mask_bound(unfold(curved, n_steps=6, dt=0.5, order=1), stimuli, best, sign)
