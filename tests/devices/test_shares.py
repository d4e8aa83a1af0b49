"""What a recording is made of: judged by devices whose causes are known."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations_with_replacement
from math import factorial

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from greenfold import MeasuredResponse
from greenfold.devices.drive import next_recording
from greenfold.devices.shares import VarianceShares, products, repeated_noise


def test_the_similarity_of_products_is_that_of_all_hermite_products(rng):
    X = rng.standard_normal((5, 3))
    for degree, found in zip((2, 3), products(X), strict=True):
        expected = np.zeros((5, 5))
        for one in combinations_with_replacement(range(3), degree):
            powers = [one.count(k) for k in range(3)]
            h = np.prod([hermeval(X[:, k], np.eye(4)[p]) for k, p in enumerate(powers)], 0)
            expected += np.outer(h, h) / np.prod([factorial(p) for p in powers])
        np.testing.assert_allclose(found, expected, atol=1e-12)


def device(rng, n=5000, noise=0.0, even=0.0, odd=0.0, drift=0.0, late=0.0):
    """Four outputs with a memory of three steps, and causes of these powers."""
    drive = rng.standard_normal((n + 40, 4))
    H = rng.standard_normal((3, 4, 4))
    H /= np.sqrt((H**2).sum((0, 1)))
    p = np.sum([drive[40 - l : n + 40 - l] @ H[l] for l in range(3)], axis=0)
    wave = np.sqrt(2) * np.sin(2 * np.pi * 1.3 * np.arange(n) / n)[:, None]
    y = p + np.sqrt(even / 2) * (p**2 - 1) + np.sqrt(odd / 6) * (p**3 - 3 * p)
    y = y + np.sqrt(drift) * wave * (0.6 * p + 0.8)
    y = (
        y
        + np.sqrt(late) * drive[20 : n + 20]
        + np.sqrt(noise) * rng.standard_normal(p.shape)
    )
    return drive[40:], y


CAUSES = {"noise": 0.3, "even": 0.2, "odd": 0.15, "drift": 0.25, "late": 0.12}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_largest_cause_is_named_and_measured(rng, cause):
    """The others are a tenth of it; 5000 samples and four outputs."""
    powers = {name: one if name == cause else 0.02 for name, one in CAUSES.items()}
    drive, states = device(rng, 5000, **powers)
    fitted = MeasuredResponse.fit(drive, states, n_steps=12, n_lags=12).fitted
    assert fitted is not None
    found, total = fitted.shares, 1 + sum(powers.values())
    names = {"late": "memory", "even": "non-linearity", "odd": "non-linearity"}
    assert found.largest == names.get(cause, cause)
    name = "memory" if cause == "late" else cause
    # 1500 samples are compared: the power of squares and cubes of Gaussian variables
    # scatters by up to 10 % (six seeds: 0.88 to 1.16), and the slow wave has a mean.
    assert getattr(found, name) == pytest.approx(powers[cause] / total, rel=0.25)
    shares = (found.linear, found.nonlinearity, found.noise, found.drift, found.memory)
    assert sum(shares) == pytest.approx(1, abs=1e-12)


def test_a_linear_device_without_noise_has_no_other_cause(rng):
    drive, states = device(rng)
    fitted = MeasuredResponse.fit(drive, states, n_steps=6).fitted
    assert fitted is not None
    assert fitted.shares.largest is None
    assert fitted.shares.linear > 0.9999
    assert "keep this drive" in fitted.next_recording().advice


def test_saturation_is_measured_under_a_drive_that_is_not_gaussian(rng):
    """Squares and cubes of uniform variables are not those of Gaussian ones.

    Without noise, all that the filter misses is non-linearity. Products with states before
    the last step are not compared; they hold less than a fifth of it (gain 0.5 per step).
    """
    W = 0.5 * np.linalg.qr(rng.standard_normal((6, 6)))[0]
    drive, states = rng.uniform(-1.7, 1.7, (4000, 6)), np.zeros((4000, 6))
    for t in range(1, 4000):
        states[t] = np.tanh(W @ states[t - 1] + 1.2 * drive[t] + 0.2)
    fitted = MeasuredResponse.fit(drive, states, n_steps=8, n_lags=8).fitted
    assert fitted is not None
    found = fitted.shares
    assert found.largest == "non-linearity"
    assert found.nonlinearity == pytest.approx(1 - found.linear, rel=0.2)


def test_repeats_measure_noise_that_no_polynomial_explains(rng):
    """A device of very high order: without repeats, its rest counts as noise."""
    base = rng.standard_normal((300, 2))
    drive = np.concatenate([base, rng.standard_normal((1400, 2)), base, base])
    past = drive + 0.8 * np.roll(drive, 1, axis=0)
    states = past + np.sin(6 * past) + 0.3 * rng.standard_normal(past.shape)
    fitted = MeasuredResponse.fit(drive, states, n_steps=4, n_lags=4).fitted
    assert fitted is not None
    found, total = fitted.shares, states.var(0).sum()
    assert found.repeated > 800
    # A power of 2 × 580 differences is known to √(2/1160) = 4 %.
    assert found.noise == pytest.approx(2 * 0.09 / total, rel=0.15)
    rest = (
        np.sin(6 * past) - past * (np.sin(6 * past) * past).sum() / (past**2).sum()
    ).var(0)
    assert found.nonlinearity == pytest.approx(rest.sum() / total, rel=0.1)


def test_samples_with_the_same_past_are_found_across_recordings(rng):
    drive, left = rng.standard_normal((100, 1)), rng.standard_normal((98, 3))
    power, n = repeated_noise([drive, drive], [left, left + 1.0], 3)
    assert n == 196
    assert power == pytest.approx(98 * 6 * 0.25 / 98)  # ±1/2 around each mean of two
    assert repeated_noise([drive], [left], 3) == (0.0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_the_error_of_the_non_linearity_is_known_where_none_is_found(seed):
    """Estimates of a linear device are negative half of the time."""
    drive, states = device(np.random.default_rng(seed), 2000, noise=0.2)
    fitted = MeasuredResponse.fit(drive, states, n_steps=3, n_lags=3).fitted
    assert fitted is not None
    found = fitted.shares
    assert 0 < found.error < 0.05
    assert found.nonlinearity < 4 * found.error


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_the_noise_of_the_surrogate_is_that_of_the_recording(rng, drift):
    """Of 2000 samples, the response takes 240 degrees of freedom, and the drift more."""
    drive, outputs = device(rng, 2000, drift=drift)
    states = np.tile(outputs, 4)
    states = states + 0.5 * rng.standard_normal(states.shape)
    fitted = MeasuredResponse.fit(drive, states, n_steps=60, n_lags=60).fitted
    assert fitted is not None
    # 16 outputs and 1700 degrees of freedom: the power scatters by √(2/27000) = 0.9 %. What
    # chance takes for non-linearity, up to 4 % of the noise, is missing.
    assert np.trace(fitted.surrogate.noise) == pytest.approx(16 * 0.25, rel=0.06)


def test_drift_is_removed_from_the_response(rng):
    steady = device(np.random.default_rng(1), n=3000, noise=0.01)
    moving = device(np.random.default_rng(1), n=3000, noise=0.01, drift=0.3)
    found = [MeasuredResponse.fit(*one, n_steps=3, n_lags=3) for one in (steady, moving)]
    assert found[1].fitted is not None
    assert found[1].fitted.linearity > 0.97
    # The mean of the slow wave over the recording changes the gain by (0.6 · 0.55 ·) 9 %.
    np.testing.assert_allclose(found[1].G, found[0].G, atol=0.1 * np.abs(found[0].G).max())
    still = MeasuredResponse.fit(*steady, n_steps=3, n_lags=3).fitted
    assert still is not None
    assert still.shares.drift == 0


def shares(**given):
    error = given.pop("error", 1e-4)
    none = dict.fromkeys(("noise", "drift", "even", "odd", "memory"), 0.0) | given
    return VarianceShares(linear=1 - sum(none.values()), error=error, repeated=0, **none)


@pytest.mark.parametrize(
    ("given", "factor", "text"),
    [
        ({"noise": 0.5}, (1.15, 5), "drive [0-9.]+ times as strongly"),
        ({"noise": 0.2, "odd": 0.001, "error": 0.002}, (1.15, 5), "as strongly"),
        ({"noise": 0.2, "odd": 0.1}, (0.1, 0.9), "a stronger drive would bend"),
        ({"odd": 0.3}, (0.1, 0.5), "drive 0.[0-9]+ times as strongly"),
        ({"even": 0.3}, (0.1, 0.5), "drive 0.[0-9]+ times as strongly"),
        ({"drift": 0.3}, (0.1, 5), "reference segments"),
        ({"memory": 0.3}, (0.1, 5), "fit more lags"),
    ],
)
def test_advice_follows_the_largest_cause(given, factor, text):
    planned = next_recording(shares(**given), 2000, 6, np.ones(4))
    assert factor[0] <= planned.factor <= factor[1]
    assert re.search(text, planned.advice)
    assert planned.n_samples >= 2000
    assert planned.n_lags == (12 if "memory" in given else 6)


def test_a_poor_response_without_a_sure_cause_is_not_called_clean():
    unsure = replace(shares(odd=0.6), error=10.0)
    planned = next_recording(unsure, 4000, 6, np.ones(1))
    assert planned.factor == 1
    assert "Only 40% of the outputs is a linear response" in planned.advice
    assert "every input of the device" in planned.advice


def test_noise_below_what_the_recording_can_show_limits_a_weaker_drive():
    found = [
        next_recording(replace(shares(odd=0.011), error=error), 6000, 16, np.ones(2)).factor
        for error in (0.0, 0.004, 0.02)
    ]
    assert found[0] < 0.15 < 0.2 < found[1] < found[2] <= 1


def test_the_next_drive_has_its_size_levels_and_segments():
    planned = next_recording(shares(noise=0.5), 4000, 6, np.array([1.0, 2.0]))
    drive = planned.drive(bits=6, positive=True, rng=0)
    n = planned.n_reference
    assert drive.shape == (planned.n_samples, 2)
    assert drive.min() == 0
    assert all(len(np.unique(column)) == 64 for column in drive.T)
    # Uniform noise of 4000 samples: its deviation is known to √(0.2/4000) = 0.7 %.
    np.testing.assert_allclose(drive.std(0), planned.amplitude, rtol=0.03)
    same = (drive[:, None] == drive[0]).all(-1).ravel()
    starts = [t for t in np.flatnonzero(same) if (drive[t : t + n] == drive[:n]).all()]
    assert len(starts) == 10
    assert starts[-1] == len(drive) - n
    plain = planned.drive(rng=0)
    assert abs(plain.mean()) < 0.1 < drive.mean()
