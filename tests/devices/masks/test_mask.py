"""What all kinds of masks share: how they are written, refused, drawn and searched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from greenfold import (
    AtMost,
    Box,
    Device,
    Gain,
    Levels,
    NonNegative,
    Reservoir,
    SampleStimuli,
    Signs,
    optimize,
    unfold,
)
from greenfold.analysis import mask_bound
from greenfold.datasets import ecg5000_paper
from greenfold.devices.masks import Mask
from greenfold.devices.masks.box import into_box
from greenfold.devices.masks.mask import Masked, ascend_within
from greenfold.optimizers.linear import LinearProblem

from ...conftest import small
from .cases import ETA, setting

EVERY = [
    Signs(),
    Levels(4),
    Levels([0, 1]),
    NonNegative(),
    Box(-0.5, 0.9),
    AtMost(2),
]


@pytest.mark.parametrize(
    ("text", "mask", "kind"),
    [
        ("sign", Signs(), "sign"),
        ("nonnegative", NonNegative(), "nonnegative"),
        ("levels=4", Levels(4), "4 levels"),
        ("levels=1,0,1", Levels([0, 1]), "levels 0, 1"),
        ("levels=-3,-2,-1,0,1,2,3", Levels(range(-3, 4)), "levels -3, -2, -1, 0, 1, 2, …"),
        ("box=-0.2,1", Box(-0.2, 1), "box -0.2 to 1"),
        ("at-most=1", AtMost(1), "at most 1 input"),
    ],
)
def test_text_stands_for_a_mask(text, mask, kind):
    found = Device(mask=text).mask
    assert found is not None
    assert type(found) is type(mask)
    assert found.kind == mask.kind == kind
    assert Device(mask=mask).mask is mask


@pytest.mark.parametrize(
    "text",
    ["binary", "sign=2", "levels", "levels=", "levels=2.5", "levels=a", "box=1", "box=1,0"],
)
def test_text_that_is_no_mask_is_refused_with_all_that_are(text):
    wanted = r"`mask` must be a mask such as Signs\(\), or one of .*'box=LOW,HIGH'.*'sign'"
    with pytest.raises(ValueError, match=f"{wanted}; got '{text}'"):
        Device(mask=text)
    with pytest.raises(TypeError, match=r"`mask` must be a mask such as Signs\(\)"):
        Device(mask=3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("mask", EVERY, ids=str)
def test_the_same_seed_gives_the_same_mask(mask):
    network, stimuli = setting(13)
    device = Device(mask=mask)
    first, second = (optimize(network, stimuli, device=device, rng=4) for _ in range(2))
    np.testing.assert_array_equal(first.u, second.u)
    assert first.mask == mask.kind


@pytest.mark.parametrize("mask", EVERY, ids=str)
def test_a_drawn_mask_is_improved_within_its_kind(mask, rng):
    """What is drawn and what is improved obeys the kind; improving does not lose κ."""
    network, stimuli = setting(6)
    problem = LinearProblem(network.maps, stimuli, ETA)
    for _ in range(5):
        drawn = mask.draw((6, 1), rng)
        drawn = drawn / np.linalg.norm(drawn)
        made = mask.improve(problem, drawn)
        assert np.linalg.norm(made.u) == pytest.approx(1)
        assert made.value >= problem.best_readout(drawn)[1].value * (1 - 1e-12)
        for u in (drawn, made.u):
            assert obeys(mask, u)


def obeys(mask, u) -> bool:
    if isinstance(mask, AtMost):
        return bool(np.count_nonzero(u) <= mask.k)
    if isinstance(mask, Box):
        return bool(((u >= mask.low - 1e-12) & (u <= mask.high + 1e-12)).all())
    if mask.known is None:
        return len(np.unique(np.abs(u).round(9))) <= mask.values // 2
    return len(np.unique(u.round(9))) <= len(mask.known)


@dataclass(frozen=True)
class Uniform(Mask):
    """A kind of one's own: all entries equal, up to their signs together."""

    def solve(self, problem, u, bound, rng):
        return self.improve(problem, u)

    def improve(self, problem, u):
        equal = np.full(u.shape, np.sign(u.sum()) / np.sqrt(u.size))
        return Masked(equal, *problem.best_readout(equal), "converged")

    def draw(self, shape, rng):
        return np.ones(shape)

    def lowest_bound(self, shape, bounded):
        return bounded([]).lowest

    @property
    def kind(self):
        return "uniform"


def test_a_mask_of_your_own():
    network, stimuli = setting(6)
    found = optimize(network, stimuli, ETA, device=Device(mask=Uniform()), rng=0)
    expected = optimize(network, stimuli, ETA, u=np.ones(6))
    assert found.mask == "uniform"
    assert found.soft_margin == pytest.approx(expected.soft_margin, rel=1e-12)


def test_an_ascent_that_runs_out_of_evaluations_does_not_call_itself_converged():
    network, stimuli = setting(8)
    problem, u = LinearProblem(network.maps, stimuli, ETA), np.ones((8, 1))
    project = partial(into_box, low=-0.4, high=0.4)
    ends = [ascend_within(problem, u, project, max_evaluations=n) for n in (2, 500)]
    assert [end.status for end in ends] == ["max_iterations", "converged"]
    assert ends[0].value < ends[1].value


def test_a_mask_of_a_non_linear_network_is_refused():
    reservoir = Reservoir(small(n=4).weights, gain=Gain.quadratic(0.05))
    network = unfold(reservoir, n_steps=8, dt=0.5, order=1)
    with pytest.raises(ValueError, match="`mask` is solved on linear systems only"):
        optimize(network, setting(4)[1], device=Device(mask="sign"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_shares_of_the_bound_on_heartbeats(data_dir, seed):
    """ECG5000, classes 1 and 2, the paper's network."""
    split = ecg5000_paper(data_dir)
    stimuli = SampleStimuli(split.X_train, split.y_train)
    network = unfold(Reservoir.random(100, rng=seed), n_steps=140, dt=10 / 140)
    # Of network 3 no mask without negative entries passes 86.1 %, as is proven below, and
    # none was found above 85.6 %: the bound is that of all masks.
    nonnegative = 0.855 if seed == 3 else 0.86
    least = {Signs(): 0.88, NonNegative(): nonnegative, Levels(4): 0.965}
    for mask, share in least.items():
        device = Device(mask=mask)
        best = optimize(network, stimuli, device=device, rng=0)
        assert best.share is not None
        assert best.share >= share, mask
        if seed == 3 and isinstance(mask, NonNegative):
            assert best.upper_bound is not None
            bound = mask_bound(network, stimuli, best, device)
            assert best.soft_margin <= bound < 0.861 * best.upper_bound


@pytest.mark.parametrize("value", [-1.0, 0.0, 1.0])
def test_a_mask_beats_another_beyond_rounding(value):
    """Also with κ below zero, where a search for equal masks would go on for long."""

    def masked(value: float) -> Masked:
        margin: Any = SimpleNamespace(value=value)
        return Masked(np.ones((1, 1)), np.ones(1), margin, "converged")

    assert not masked(value).beats(masked(value))
    assert masked(value + 1e-9).beats(masked(value))
    assert not masked(value - 1e-9).beats(masked(value))
