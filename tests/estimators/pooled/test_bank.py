"""The filter bank, judged by the ODE solver and the unfolding."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import simulate, unfold
from greenfold.estimators.pooled import draw_bank
from greenfold.estimators.pooled.feature_map import GROUP, PARTS, fit_map
from greenfold.estimators.series import SeriesByLength


def bank_for(n_steps, n_channels, **options):
    return draw_bank(n_steps, n_channels, np.random.default_rng(3), **options)


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("n_oscillators", [3, 12])
def test_impulse_response_is_that_of_the_unfolded_reservoir(n_channels, n_oscillators):
    n_steps = 30
    bank = bank_for(
        n_steps, n_channels, n_scales=3, n_oscillators=n_oscillators, n_readouts=16
    )
    impulses = np.zeros((n_channels, n_channels, n_steps))
    impulses[np.arange(n_channels), np.arange(n_channels), 0] = 1
    for one in bank.scales:
        network = one.reservoir()
        unfolding = unfold(network, n_steps=n_steps, dt=1.0)
        states = unfolding.states(impulses, network.tau * one.u, trajectories=True)
        wanted = np.moveaxis(states @ one.readouts, 0, 1)
        # Both are exact; the propagator's matrix exponential rounds.
        np.testing.assert_allclose(one.impulse_response(n_steps), wanted, atol=1e-12)


@pytest.mark.parametrize(
    "engine", [pytest.param("numba", marks=pytest.mark.needs("numba")), "array"]
)
@pytest.mark.parametrize(("n_steps", "n_channels"), [(60, 1), (60, 2), (1500, 1), (1, 1)])
def test_readings_are_those_of_the_unfolded_reservoir(engine, n_steps, n_channels, rng):
    X = rng.standard_normal((3, n_channels, n_steps)) * 2 + 1
    series = SeriesByLength([(np.arange(3), X)], 3, n_channels)
    bank = bank_for(n_steps, n_channels, n_scales=4, n_oscillators=20, n_readouts=24)
    made = fit_map(bank, series, rng, scaling="set", engine=engine)
    x = made.standardise(X)
    scaled = (X - X.mean(axis=(0, 2), keepdims=True)) / X.std(axis=(0, 2), keepdims=True)
    assert max(one.stride for one in bank.scales) == (11 if n_steps == 1500 else 1)
    for scale, one in enumerate(bank.scales):
        network = one.reservoir()
        unfolding = unfold(network, n_steps=n_steps, dt=1.0)
        states = unfolding.states(scaled, network.tau * one.u, trajectories=True)
        reads = (states @ one.readouts)[:, ::-1][:, :: one.stride][:, ::-1]
        wanted = [reads]
        for _ in range(2):
            # The network is at rest before a series.
            wanted.append(np.diff(wanted[-1], axis=1, prepend=0))
        found = made.readings(x, scale)
        size = np.abs(reads).max()
        # Single precision over a few decay times; differences keep the error of values.
        np.testing.assert_allclose(found, np.stack(wanted, 1), atol=1e-5 * size)


def test_scales_decays_and_frequencies_lie_where_they_should():
    bank = bank_for(400, 1)
    scales = [one.scale for one in bank.scales]
    np.testing.assert_allclose(scales, np.geomspace(1.5, 200, 8))
    for one in bank.scales:
        assert one.readouts.shape == (64, 88)
        assert (one.decay_times >= one.scale / 2).all()
        assert (one.decay_times <= 2 * one.scale).all()
        assert (one.frequencies >= 0.3 / one.scale).all()
        assert (one.frequencies <= min(12 / one.scale, np.pi)).all()
        np.testing.assert_allclose(np.linalg.norm(one.readouts, axis=0), 1)
    assert [one.stride for one in bank.scales] == [1, 1, 1, 2, 3, 3, 3, 3]


def test_with_several_channels_a_readout_hears_one_mixture():
    bank = bank_for(100, 5)
    heard = set()
    for one in bank.scales:
        groups = np.arange(88) % (88 // GROUP)
        for d in range(88):
            modes = np.flatnonzero(one.readouts[:, d])
            assert set(modes // 2 % PARTS) == {groups[d] % PARTS}
            u = one.u[modes[modes % 2 == 0]]
            directions = u / np.linalg.norm(u, axis=1, keepdims=True)
            np.testing.assert_allclose(directions, directions[:1].repeat(len(u), 0))
            heard.add(int((directions[0] != 0).sum()))
    assert {1, 2}.issubset(heard)


def test_all_readouts_are_heard_with_fewer_oscillators_than_parts():
    bank = bank_for(50, 4, n_scales=2, n_oscillators=3, n_readouts=16)
    for one in bank.scales:
        np.testing.assert_allclose(np.linalg.norm(one.readouts, axis=0), 1)
        assert np.abs(one.impulse_response(3)).max(axis=(0, 1)).all()


def test_states_of_the_bank_are_those_of_the_ode_solver(rng):
    n_steps = 40
    bank = bank_for(n_steps, 2, n_scales=3, n_oscillators=8, n_readouts=16)
    X = rng.standard_normal((2, 2, n_steps))
    for one in bank.scales:
        network = one.reservoir()
        assert network.n_neurons == 16
        wanted = simulate(network, X, network.tau * one.u, 1.0, trajectories=True)
        response = one.impulse_response(n_steps)
        found = np.stack(
            [
                np.einsum("ict,tcd->id", X[:, :, t::-1], response[: t + 1])
                for t in range(n_steps)
            ],
            axis=1,
        )
        # The solver's relative tolerance is 1e-10 a step.
        size = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted @ one.readouts, atol=1e-7 * size)
