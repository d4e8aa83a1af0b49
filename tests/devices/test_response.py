"""A measured response in place of an unfolding: judged by the network it was taken from."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import (
    Convex,
    GaussianStimuli,
    MeasuredResponse,
    RandomDraws,
    SampleStimuli,
    choose_eta,
    load,
    optimize,
    save,
    unfold,
)
from greenfold.analysis import margin_over_angle, margin_over_time
from greenfold.datasets import synthetic_heartbeats
from greenfold.systems import LinearSystem, System

from ..conftest import small, unit


@pytest.fixture(scope="module")
def network():
    return unfold(small(n=12), n_steps=10, dt=0.5)


@pytest.fixture(scope="module")
def device(network):
    return MeasuredResponse(network.greens1(), dt=0.5)


@pytest.fixture(scope="module")
def stimuli():
    return SampleStimuli(*synthetic_heartbeats(200, n_steps=10, rng=0))


def test_it_is_a_linear_system(device):
    assert isinstance(device, System)
    assert isinstance(device, LinearSystem)
    assert (device.n_steps, device.n_outputs, device.n_inputs) == (10, 12, 12)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_exact_response_has_the_optimum_and_bound_of_its_network(
    network, device, stimuli, n_channels
):
    if n_channels == 2:
        X, y = synthetic_heartbeats(200, n_steps=20, rng=0)
        stimuli = SampleStimuli(X.reshape(200, 2, 10), y)
    # The bound solved to its end, not to the default tolerance.
    ours, theirs = (optimize(s, stimuli, method=Convex(1e-11)) for s in (network, device))
    assert ours.upper_bound is not None
    assert theirs.soft_margin == pytest.approx(ours.soft_margin, rel=1e-10)
    assert theirs.upper_bound == pytest.approx(ours.upper_bound, rel=1e-10)


def test_states_kernels_and_gradient_are_those_of_the_network(network, device, rng):
    X, u, v = rng.standard_normal((7, 2, 10)), unit(rng, 12, 2), unit(rng, 12)
    states = network.states(X, u)
    np.testing.assert_allclose(device.states(X, u), states, atol=1e-12)
    np.testing.assert_allclose(
        device.kernels(u, v).decision_values(X), states @ v, atol=1e-12
    )
    bar = rng.standard_normal((7, 12))
    np.testing.assert_allclose(
        device.pullback(X, u, bar), network.pullback(X, u, bar), atol=1e-11
    )
    for ours, theirs in zip(
        device.pullback(X, u, bar[:, 0], v),
        network.pullback(X, u, bar[:, 0], v),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-11)


def test_choices_and_curves_are_those_of_the_network(network, device, stimuli):
    X, y = synthetic_heartbeats(60, n_steps=10, rng=1)
    ours = choose_eta(network, X, y, rng=0)
    theirs = choose_eta(device, X, y, rng=0)
    np.testing.assert_allclose(theirs.accuracy, ours.accuracy)
    best = optimize(device, stimuli)
    turned = [
        margin_over_angle(system, stimuli, best.u, [0.0, 0.3], n_planes=2, rng=0)
        for system in (network, device)
    ]
    np.testing.assert_allclose(*turned, rtol=1e-9)
    early = [
        margin_over_time(system, stimuli, [1.0, 5.0], u=best.u).soft_margin
        for system in (network, device)
    ]
    np.testing.assert_allclose(*early, rtol=1e-9)
    with pytest.raises(ValueError, match="`readout` must be a multiple of dt = 0.5"):
        device.with_readout(0.7)


def test_rectangular(network, stimuli, rng):
    """Three inputs and five outputs, the certificate above 200 random pairs."""
    device = MeasuredResponse(network.greens1()[:, :5, 3:6], dt=0.5)
    best = optimize(device, stimuli)
    assert (best.u.shape, best.v.shape) == ((3,), (5,))
    drawn = optimize(device, stimuli, method=RandomDraws(200), rng=0)
    assert best.upper_bound is not None
    assert drawn.soft_margin <= best.soft_margin <= best.upper_bound
    assert best.gap is not None
    assert best.gap < 1e-2


def test_it_is_saved_and_read(tmp_path, device, stimuli, rng):
    drive = rng.standard_normal((800, 2))
    fitted = MeasuredResponse.fit(drive, drive @ [[1.0], [2.0]], n_steps=3, dt=0.1)
    after = None
    for before in (device, fitted):
        save(before, tmp_path / "it")
        after = load(tmp_path / "it")
        assert isinstance(after, MeasuredResponse)
        np.testing.assert_array_equal(after.G, before.G)
        assert after.dt == before.dt
    assert isinstance(after, MeasuredResponse)
    assert after.fitted is not None
    assert fitted.fitted is not None
    assert after.fitted.linearity == fitted.fitted.linearity
    np.testing.assert_array_equal(after.replicates(2, 0), fitted.replicates(2, 0))
    best = optimize(MeasuredResponse(device.G[:, :4], 0.5), stimuli)
    save(best, tmp_path / "best")
    np.testing.assert_array_equal(load(tmp_path / "best").v, best.v)


@pytest.mark.parametrize(
    ("G", "dt", "message"),
    [
        (np.ones((3, 2)), 1.0, "`G` must have 3 dimensions"),
        (np.full((3, 2, 2), np.nan), 1.0, "`G` must be finite"),
        (np.ones((3, 2, 2)), 0.0, "`dt` must be a positive finite number"),
    ],
)
def test_bad_arguments(G, dt, message):
    with pytest.raises(ValueError, match=message):
        MeasuredResponse(G, dt)


def test_replicates_need_a_fit(device):
    with pytest.raises(ValueError, match="use MeasuredResponse.fit"):
        device.replicates(3)


def test_gaussian_stimuli_too(network, device):
    stimuli = GaussianStimuli.random(10, strength=1.0, rng=4)
    ours, theirs = optimize(network, stimuli), optimize(device, stimuli)
    assert theirs.soft_margin == pytest.approx(ours.soft_margin, rel=1e-8)
