"""What a forecaster says about its forecasts: bands, backtests, and the long run."""

import copy
import warnings

import numpy as np
import pytest

from greenfold import ReservoirForecaster, load
from greenfold.datasets import lorenz
from greenfold.estimators.sequences.bands import half_widths
from greenfold.saving import ModelFileError

TRAIN = 1200


@pytest.fixture(scope="module")
def series():
    return lorenz(1700, rng=0)


@pytest.fixture(scope="module")
def forecaster(series):
    return ReservoirForecaster(
        40, input_weights="random", spectral_radius=0.4, bias_scale=1.0, random_state=0
    ).fit(series[:TRAIN])


def noisy_wave(n, rng=0):
    noise = 0.1 * np.random.default_rng(rng).standard_normal(n)
    return np.sin(np.arange(n) / 5) + noise


# Bands


@pytest.mark.parametrize("m", [9, 20, 99])
def test_half_widths_cover_as_order_statistics_do(m):
    """A new error is below the k-th of m with probability k / (m + 1), exactly."""
    rng = np.random.default_rng(m)
    errors, fresh = rng.exponential(size=(m, 2000, 1)), rng.exponential(size=(2000, 1))
    found, n_held = half_widths(errors, 0.9)
    chance = np.ceil((m + 1) * 0.9) / (m + 1)
    assert chance >= 0.9
    assert n_held == 2000
    # 2000 trials scatter by at most 0.0067; four of that.
    assert np.mean(fresh <= found) == pytest.approx(chance, abs=0.027)


def test_half_widths_beyond_the_loops_stay_at_their_largest():
    errors = np.tile(np.array([1.0, 3.0, 2.0, 9.0])[None, :, None], (20, 1, 2))
    errors[9:, 2] = np.inf  # diverged
    errors[8:, 3] = np.nan  # the blocks ended
    found, n_held = half_widths(errors, 0.9)
    assert n_held == 3
    assert found[:, 0].tolist() == [1, 3, np.inf, np.inf]
    found, n_held = half_widths(errors[:, [0, 1, 3]], 0.9)
    assert (n_held, found[:, 1].tolist()) == (2, [1, 3, 3])
    with pytest.raises(ValueError, match=r"`level` must be at most 0.952, because .* 20 h"):
        half_widths(errors, 0.96)


def test_the_band_is_symmetric_and_widens(forecaster):
    lower, upper = forecaster.forecast_band(60)
    middle = forecaster.forecast(60)
    assert lower + upper == pytest.approx(2 * middle, rel=1e-12, abs=1e-12)
    width = (upper - lower).mean(1)
    assert width[-1] > 3 * width[0] > 0
    wider = forecaster.forecast_band(60, level=0.95)
    assert (wider[1] >= upper).all()


def test_the_band_of_one_step_is_as_wide_as_the_noise():
    wave = noisy_wave(3000)
    model = ReservoirForecaster(20, input_weights="random", random_state=0)
    model.fit(wave[:1500])
    lower, upper = model.forecast_band(1)
    errors = [
        model.forecast(1, context=wave[at - 300 : at])[0] - wave[at]
        for at in range(1600, 3000, 5)
    ]
    # 280 tries, and 200 held-out loops, of 0.9: they scatter by 0.018 and 0.021.
    inside = np.abs(errors) <= (upper - lower)[0] / 2
    assert np.mean(inside) == pytest.approx(0.9, abs=0.06)


def test_a_band_longer_than_the_held_out_loops_says_so():
    model = ReservoirForecaster(10, max_iter=3, random_state=0).fit(noisy_wave(300))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower, upper = model.forecast_band(20)
    with pytest.warns(UserWarning, match=r"reach \d+ of 200 steps; beyond, the width"):
        lower, upper = model.forecast_band(200)
    assert (upper - lower)[-1] == pytest.approx((upper - lower).max(), rel=1e-9)
    with pytest.raises(ValueError, match="`level` must be below 1; got 1"):
        model.forecast_band(3, level=1.0)
    with pytest.raises(ValueError, match="`level` must be at most"):
        model.forecast_band(3, level=0.999)


def test_a_band_with_known_inputs_and_several_series():
    rng = np.random.default_rng(0)
    known = rng.standard_normal(900)
    z = np.zeros(900)
    for t in range(1, 900):
        z[t] = 0.5 * z[t - 1] + known[t] + 0.1 * rng.standard_normal()
    model = ReservoirForecaster(20, input_weights="random", leak=1.0, random_state=0)
    model.fit([z[:400], z[400:800]], [known[:400], known[400:800]])
    lower, upper = model.forecast_band(20, exog=known[800:820])
    # Without the known inputs, the band would be at least ±1.645 wide.
    assert (upper - lower).mean() < 1.6
    assert np.mean((lower <= z[800:820]) & (z[800:820] <= upper)) > 0.5


def test_a_saved_band_is_the_same(tmp_path, forecaster):
    forecaster.save(tmp_path / "it.gfm")
    again = load(tmp_path / "it.gfm")
    assert np.array_equal(again.forecast_band(30), forecaster.forecast_band(30))
    broken = copy.deepcopy(forecaster)
    broken._held_out.ends[-1] += 1
    broken.save(tmp_path / "it.gfm")
    with pytest.raises(ModelFileError, match="do not fit its held-out loops"):
        load(tmp_path / "it.gfm")
