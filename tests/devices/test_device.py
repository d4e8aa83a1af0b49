"""Constraints of hardware as one object: what it refuses, and what it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Convex,
    Device,
    Gain,
    GaussianStimuli,
    MeasuredResponse,
    RegressionTask,
    Reservoir,
    SampleStimuli,
    memory_capacity,
    optimize,
    unfold,
)
from greenfold.analysis import margin_interval, mask_bound, study_mask
from greenfold.datasets import synthetic_heartbeats

from ..conftest import small
from .masks.cases import ETA, setting

DRIVEN, READ = np.array([0, 2, 3, 5]), np.array([1, 2, 4])


@pytest.fixture(scope="module")
def network():
    return unfold(small(n=6), n_steps=5, dt=0.5)


@pytest.fixture(scope="module")
def stimuli():
    return GaussianStimuli.random(5, strength=1.0, rng=1)


@pytest.fixture(scope="module")
def recorded():
    rng = np.random.default_rng(0)
    drive, W = rng.standard_normal((400, 6)), 0.4 * small(n=6).weights
    states = np.zeros((400, 6))
    for t in range(1, 400):
        states[t] = W @ states[t - 1] + drive[t]
    states += 0.3 * rng.standard_normal(states.shape)
    return MeasuredResponse.fit(drive, states, n_steps=5, n_lags=3, n_blocks=12)


def test_it_is_checked_when_it_is_made_and_keeps_what_it_was_given():
    P = np.eye(3)
    device = Device(state_noise=P, inputs=[2, 0], bits=8)
    P[0, 0] = 5.0
    np.testing.assert_array_equal(device.noise(4, 3)["state"], np.eye(3))
    assert repr(Device(mask="sign", bits=3)) == "Device(mask=Signs(), bits=3)"
    assert replace(device, bits=None).bits is None
    with pytest.raises(ValueError, match="read-only"):
        device.inputs[0] = 1  # pyright: ignore[reportOptionalSubscript]
    with pytest.raises(ValueError, match="`inputs` names an index twice"):
        Device(inputs=[0, 0])
    with pytest.raises(ValueError, match="`readout_noise` must be positive semi-definite"):
        Device(readout_noise=-np.eye(2))
    with pytest.raises(TypeError, match="`device` must be a Device; got dict"):
        optimize(*setting(3), device={})  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_a_regression_on_a_subset_is_that_of_a_device_without_the_rest(network):
    task = RegressionTask.memory([1, 3], 5)
    device = Device(inputs=DRIVEN, outputs=READ)
    found = optimize(network, task, device=device, rng=0)
    part = MeasuredResponse(network.greens1()[:, READ][:, :, DRIVEN])
    alone = optimize(part, task, rng=0)
    assert found.gain == pytest.approx(alone.gain, rel=1e-9)  # solved to rounding
    np.testing.assert_allclose(np.abs(found.u[DRIVEN]), np.abs(alone.u), atol=1e-5)
    assert found.u.shape == (6,)
    assert not np.delete(found.u, DRIVEN).any()
    assert not np.delete(found.V, READ, axis=0).any()
    noisy = Device(inputs=DRIVEN, outputs=READ, readout_noise=0.2)
    for u in ("solved", "random"):
        memory = memory_capacity(network, u, delays=[1, 3], device=noisy, rng=0)
        same = Device(readout_noise=0.2)
        there = memory_capacity(part, u, delays=[1, 3], device=same, rng=0)
        assert memory.total == pytest.approx(there.total, rel=1e-9)


def test_the_bound_of_a_mask_on_a_subset(network, stimuli):
    device = Device(mask="sign", inputs=DRIVEN)
    best = optimize(network, stimuli, device=device, rng=0)
    part = MeasuredResponse(network.greens1()[:, :, DRIVEN])
    signs = Device(mask="sign")
    alone = optimize(part, stimuli, device=signs, rng=0)
    assert best.soft_margin == pytest.approx(alone.soft_margin, rel=1e-9)
    bound = mask_bound(network, stimuli, best, device)
    assert best.soft_margin <= bound
    # A descent over kinks ends where rounding decides, some 1e-4 apart.
    assert bound == pytest.approx(mask_bound(part, stimuli, alone, signs), rel=1e-3)


def test_a_study_on_a_subset_with_noise(recorded, stimuli):
    device = Device(mask="sign", inputs=DRIVEN, outputs=READ, input_noise=0.1)
    study = study_mask(recorded, stimuli, device=device, n_draws=3, n_replicates=10, rng=0)
    np.testing.assert_array_equal(np.abs(study.values[DRIVEN]), 1)
    assert not np.delete(study.values, DRIVEN).any()
    assert study.random.max() <= study.projections.soft_margin * (1 + 1e-9)
    assert study.interval.low < study.projections.soft_margin
    # Noise of one size on what is read takes (η/2)σ² from every κ, and moves nothing.
    louder = replace(device, readout_noise=0.1)
    quiet, loud = (
        margin_interval(
            recorded,
            stimuli,
            optimize(recorded, stimuli, device=one, rng=0),
            n_replicates=10,
            device=one,
            rng=0,
        )
        for one in (device, louder)
    )
    assert quiet.low - loud.low == pytest.approx(5 * 0.01, rel=1e-9)
    # Their bounds are certified apart, to about 1e-8 of each.
    assert quiet.optimism == pytest.approx(loud.optimism, rel=1e-6)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device(state_noise=0.1), "`device` must have no state noise and no bits"),
        (Device(bits=3), "`device` must have no state noise and no bits"),
        (Device(readout_noise=np.ones(6)), "`readout_noise` must be one standard deviat"),
    ],
)
def test_what_an_interval_does_not_know_is_refused(recorded, stimuli, device, message):
    best = optimize(recorded, stimuli)
    with pytest.raises(ValueError, match=message):
        margin_interval(recorded, stimuli, best, device=device)


def test_a_support_has_its_own_certificate():
    network, stimuli = setting(10)
    inputs, outputs = np.arange(2, 7), np.arange(10) % 2 == 0
    device = Device(inputs=inputs, outputs=outputs)
    best = optimize(network, stimuli, ETA, Convex(1e-11), device=device)
    assert best.u.shape == best.v.shape == (10,)
    assert not np.delete(best.u, inputs).any()
    assert not best.v[~outputs].any()
    # The judge: a network of which only those inputs and outputs exist.
    part = MeasuredResponse(network.greens1()[:, outputs][:, :, inputs], 0.5)
    alone = optimize(part, stimuli, ETA, Convex(1e-11))
    assert best.soft_margin == pytest.approx(alone.soft_margin, rel=1e-10)
    assert best.upper_bound == pytest.approx(alone.upper_bound, rel=1e-8)
    cut = optimize(network, stimuli, ETA).u
    cut = np.where(np.isin(np.arange(10), inputs), cut, 0)
    kept = optimize(network, stimuli, ETA, device=device, u=cut)
    assert kept.soft_margin < best.soft_margin
    signs = Device(inputs=inputs, mask="sign")
    masked = optimize(network, stimuli, ETA, device=signs, rng=0)
    assert np.abs(masked.u[inputs]) == pytest.approx(np.full(5, 5**-0.5))


def test_a_support_of_a_non_linear_network():
    reservoir = Reservoir(small(n=8).weights, gain=Gain.quadratic(0.05))
    network = unfold(reservoir, n_steps=5, dt=0.5, order=1)
    stimuli = GaussianStimuli.random(5, strength=1.0, n_draws=200, rng=1)
    X, y = stimuli.sample(40, rng=0)
    samples = SampleStimuli(X, y, normalize=None)
    few, two = Device(inputs=[0, 1, 2]), Ascent(n_starts=2)
    best = optimize(network, samples, ETA, two, device=few)
    assert best.u[:3].any()
    assert not best.u[3:].any()
    again = optimize(network, samples, ETA, u=best.u)
    assert again.soft_margin == pytest.approx(best.soft_margin, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": [0, 7]}, "`inputs` must lie between 0 and 6; got 7"),
        ({"outputs": [1, 1]}, "`outputs` names an index twice"),
        ({"inputs": []}, "`inputs` must be indices"),
        ({"inputs": np.zeros(7, bool)}, "`inputs` must be indices, .* got no true value"),
        ({"inputs": ["AVAL"]}, "`inputs` must be indices, .* for cells .* pass np.isin"),
        ({"inputs": np.ones(6, bool)}, "`inputs` must have 7 truth values"),
        ({"bits": 0}, "`bits` must be at least 1"),
        ({"bits": 9}, "`bits` must be 1 to 8 .* got 9"),
        ({"mask": "sign", "u": np.ones(7)}, "`device` must have no mask: .* `u` is given"),
        (
            {"mask": "sign", "method": "random"},
            "`method` must be convex or exact with a mask",
        ),
        ({"inputs": [0], "u": np.ones(7)}, "drives inputs that `inputs` leaves out"),
    ],
)
def test_bad_arguments(options, message):
    network, stimuli = setting(7)
    given = {name: options[name] for name in ("u", "method") if name in options}
    own = {name: one for name, one in options.items() if name not in given}
    with pytest.raises(ValueError, match=message):
        optimize(network, stimuli, device=Device(**own), **given)


@pytest.mark.parametrize("drive_range", [(0.0, 1.0), (-1.0, 3.0), (2.0, 2.5)])
def test_series_fit_into_the_range_and_the_constant_costs_nothing(drive_range):
    """The device is kept at the offset, plays all series, and is judged by its outputs."""
    X, y = synthetic_heartbeats(60, n_steps=6, rng=0)
    stimuli = SampleStimuli(X, y)
    G = np.random.default_rng(1).standard_normal((6, 4, 5))
    system = MeasuredResponse(G)
    device = Device(mask="sign", drive_range=drive_range)
    best = optimize(system, stimuli, device=device, rng=0)
    series = stimuli.transform(X)
    encoded = device.encode(best.u, series)
    drive = encoded.drive(series)
    low, high = drive_range
    assert drive.min() >= low
    assert drive.max() <= high
    spans = np.ptp(drive, axis=(0, 1))
    assert spans.max() == pytest.approx(high - low)  # no larger gain fits
    ends = np.einsum("koi,ski->so", G, drive) / encoded.gain
    # A constant drive adds one constant to all outputs, which the class means share.
    first, second = (ends[stimuli.signs == one] @ best.v for one in (-1, 1))
    separation = (second.mean() - first.mean()) / 2
    spread = (first.var() + second.var()) / 2
    assert separation - 5 * spread == pytest.approx(best.soft_margin, rel=1e-9)
    coarse = replace(device, drive_bits=3).encode(best.u, series).drive(series)
    assert len(np.unique(coarse.round(12))) <= 8
    assert np.abs(coarse - drive).max() <= (high - low) / 7 / 2 * (1 + 1e-9)
    assert encoded.drive(3 * series).max() <= high


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"drive_range": (1, 0)}, "`drive_range` must be two rising numbers, such as"),
        ({"drive_range": 1.0}, "`drive_range` must"),
        ({"drive_bits": 40}, "`drive_bits` must be 1 to 24; got 40"),
    ],
)
def test_ranges_that_are_none_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Device(**given)
    with pytest.raises(ValueError, match="`drive_range` must be set"):
        Device().encode([1.0], [[1.0]])
    with pytest.raises(ValueError, match="one column for each of the 1 channels"):
        Device(drive_range=(0, 1)).encode([[1.0, 2.0]], [[1.0]])
