"""Beyond the paper: certificates, readout noise, and the true network."""

from dataclasses import replace

import numpy as np
import pytest

from greenfold import Dynamics, Gain
from greenfold.apps.paper import beyond

from ...conftest import small, unit
from .conftest import compute, full


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
    assert "on the true network" in " ".join(beyond.summary(numbers, p))


def test_diverging_draws_are_left_out(rng):
    """Quadratic networks have no bound: strong series are found one by one."""
    dynamics = Dynamics(small(Gain.quadratic(0.5), n=6), n_steps=3, dt=0.5, tol=1e-3)
    X, u = 0.1 * rng.standard_normal((9, 3)), unit(rng, 6)
    X[[1, 4, 5]] = 1e4
    states, kept = beyond._bounded(dynamics, X, u)
    np.testing.assert_array_equal(kept, [0, 2, 3, 6, 7, 8])
    assert states == pytest.approx(dynamics.states(X[kept], u), rel=1e-2, abs=1e-5)


@pytest.mark.slow
def test_beyond_in_full(tmp_path, data_dir):
    p, numbers = beyond.FULL, full(beyond, tmp_path, data_dir)
    heart = [row for row in numbers["certificates"] if row["strength"] == 0]
    assert max(row["gap"] for row in heart) <= 1e-3
    *_, gain = beyond._gain(numbers["noise"], 100)
    by_noise = dict(zip(p.noises, gain.mean(0), strict=True))
    assert abs(by_noise[0.0]) < 0.5
    assert by_noise[0.1] > 3
