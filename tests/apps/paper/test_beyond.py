"""Beyond the paper: certificates, readout noise, and the true network."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from greenfold import Dynamics, Gain
from greenfold._base.files import plain
from greenfold.apps.paper import beyond

from ...conftest import small, unit
from .conftest import GAP, OF_A_BOUND, assert_as_recorded, compute, record, some_of


def test_beyond(tmp_path, heartbeats):
    p = replace(
        beyond.QUICK,
        n_certified=1,
        strengths=(1.0,),
        sizes=(40,),
        noises=(0.0, 0.1),
        etas=(10.0, 100.0),
        n_folds=2,
        n_networks=1,
        n_draws=60,
        true_neurons=8,
        true_starts=1,
    )
    numbers = compute(beyond, p, tmp_path, heartbeats)
    assert numbers["certificates"][0]["gap"] <= 1e-3
    assert all(row["alternation_below_bound"] >= -1e-9 for row in numbers["certificates"])
    (row,) = numbers["noise"]
    gain = np.array(row["optimised"]) - np.mean(row["random"], axis=0)
    # Without noise η makes up for a random u; with noise nothing does.
    assert abs(gain[0]) < 1
    assert gain[1] > 2
    (row,) = numbers["true"]
    assert row["against_simulate"] < 1e-3
    assert set(row["rows"]) == set(beyond.ROWS)
    # Whatever a fit of so few draws is worth, what it claims on others is what they give.
    judged = row["rows"]["Dynamics"]
    apart = abs(row["claimed_fresh"] - judged["soft_margin"])
    assert apart <= 5 * np.hypot(row["claimed_error"], judged["error"])
    assert "on the simulated network" in " ".join(beyond.summary(numbers, p))


def test_diverging_draws_are_left_out(rng):
    """Quadratic networks have no bound: strong series are found one by one."""
    dynamics = Dynamics(small(Gain.quadratic(0.5), n=6), n_steps=3, dt=0.5, tol=1e-3)
    X, u = 0.1 * rng.standard_normal((9, 3)), unit(rng, 6)
    X[[1, 4, 5]] = 1e4
    states, kept = beyond._bounded(dynamics, X, u)
    np.testing.assert_array_equal(kept, [0, 2, 3, 6, 7, 8])
    assert states == pytest.approx(dynamics.states(X[kept], u), rel=1e-2, abs=1e-5)


def test_beyond_as_recorded():
    p, numbers = beyond.FULL, record("beyond")
    heart = [row for row in numbers["certificates"] if row["strength"] == 0]
    assert len(heart) == p.n_certified
    assert max(row["gap"] for row in heart) <= 1e-3
    *_, gain = beyond._gain(numbers["noise"], 100)
    by_noise = dict(zip(p.noises, gain.mean(0), strict=True))
    assert abs(by_noise[0.0]) < 0.5
    assert by_noise[0.1] > 3
    assert len(numbers["true"]) == len(TRUE)
    for row in numbers["true"]:
        assert row["against_simulate"] < 1e-3
        # κ on other draws than it was fitted to is what fresh ones give.
        judged = row["rows"]["Dynamics"]
        apart = abs(row["claimed_fresh"] - judged["soft_margin"])
        assert apart <= 5 * np.hypot(row["claimed_error"], judged["error"])


CERTIFIED = [
    (seed, strength)
    for strength in (0.0, *beyond.FULL.strengths)
    for seed in range(beyond.FULL.n_certified)
]
NOISY = [
    (seed, size)
    for size in sorted(beyond.FULL.sizes, reverse=True)
    for seed in range(beyond.FULL.n_networks)
]
TRUE = [
    (gain, strength, seed)
    for gain in beyond.FULL.gains
    for strength in beyond.FULL.strengths
    for seed in range(beyond.FULL.n_true)
]


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.0, *beyond.FULL.strengths])
def test_certificates_at_full_size(strength, heartbeats):
    """All networks of one kind of stimuli: they take a second each."""
    # The share that alternation leaves is measured from the bound.
    apart = OF_A_BOUND | {
        "alternation_below_bound": {"abs": GAP},
        "n_decompositions": None,
    }
    for item, recorded in zip(CERTIFIED, record("beyond")["certificates"], strict=True):
        if item[1] == strength:
            found = beyond.certificate(beyond.FULL, heartbeats, item)
            assert_as_recorded(found, recorded, apart)


@pytest.mark.slow
@pytest.mark.parametrize("item", some_of(NOISY, (0, 100), (5, 20), (9, 5)))
def test_readout_noise_at_full_size(item, heartbeats):
    found = beyond.noisy_accuracy(beyond.FULL, heartbeats, item)
    assert_as_recorded(found, record("beyond")["noise"][NOISY.index(item)])


def _with_either_sign(item, monkeypatch) -> Iterator[Any]:
    """One true network, then the same with the other sign of the linear optimum.

    A linear network does not tell (u, v) from (−u, −v), so that rounding decides which of
    them is found. The true network does tell, and two rows of the record are about it.
    """
    solve, solved = beyond.gf.optimize, []

    def optimize(*arguments, **options):
        solved.append(solve(*arguments, **options))
        return solved[-1]

    monkeypatch.setattr(beyond.gf, "optimize", optimize)
    yield plain(beyond.compared(beyond.FULL, item))
    linear, *others = solved
    again = iter([replace(linear, u=-linear.u, v=-linear.v), *others])
    monkeypatch.setattr(beyond.gf, "optimize", lambda *_, **__: next(again))
    yield plain(beyond.compared(beyond.FULL, item))


@pytest.mark.slow
@pytest.mark.parametrize("item", some_of(TRUE, ("quadratic", 1.0, 4)))
def test_one_true_network_at_full_size(item, monkeypatch):
    recorded = record("beyond")["true"][TRUE.index(item)]
    # With so many draws an ascent ends at a gain of 1e-5 per step: ten such steps. The
    # standard errors are of first order in u, of which that leaves √1e-5 / 10.
    apart = {
        "soft_margin": {"rel": 1e-4},
        "claimed": {"rel": 1e-4},
        "claimed_fresh": {"rel": 1e-4},
        "error": {"rel": 1e-3},
        "claimed_error": {"rel": 1e-3},
        "accuracy": {"abs": 4 / (2 * beyond.FULL.n_draws)},  # four draws change sides
        "against_simulate": {"rel": 1e-2},
        "seconds": None,
    }
    linear = recorded["rows"]["linear optimum as it is"]["soft_margin"]
    both = _with_either_sign(item, monkeypatch)
    found = next(both)
    here = found["rows"]["linear optimum as it is"]["soft_margin"]
    if here != pytest.approx(linear, rel=1e-4):
        found = next(both)
    assert_as_recorded(found, recorded, apart)
