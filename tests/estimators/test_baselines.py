"""Simple forecasts, against scikit-learn and against the series they were made from."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from greenfold.estimators.sequences.backtest import simple_forecasts
from greenfold.estimators.sequences.baselines import DelayRidge, season_length


def ar1(n, rng, a=0.8):
    noise = np.random.default_rng(rng).standard_normal(n)
    found = np.zeros(n)
    for index in range(1, n):
        found[index] = a * found[index - 1] + noise[index]
    return found[:, None]


@pytest.mark.parametrize("season", [7, 24])
def test_the_season_of_a_noisy_wave(season):
    time = np.arange(20 * season)
    noise = np.random.default_rng(0).standard_normal(len(time))
    # A mean, a trend and noise of the size of the wave.
    wave = np.sin(2 * np.pi * time / season) + 100 + 0.05 * time
    assert season_length(wave[:, None]) == season
    sharp = (time % season == 0) * 3.0
    assert season_length((sharp + 0.3 * noise)[:, None]) == season


def test_noise_has_no_season():
    for seed in range(20):
        assert season_length(np.random.default_rng(seed).standard_normal((300, 1))) == 1
    assert season_length(np.ones((50, 1))) == season_length(np.array([[1.0], [2]])) == 1


def test_last_value_mean_and_last_season():
    wave = np.sin(np.arange(120) * np.pi / 6)[:, None] * [1, -3]
    made, season = simple_forecasts(wave, np.array([90, 95]), 15)
    assert season == 12
    assert np.allclose(made["last season"], [wave[90:105], wave[95:110]])
    assert (made["last value"] == wave[[89, 94]][:, None]).all()
    assert (made["mean"] == wave[:90].mean(0)).all()


def test_delay_ridge_is_ridge_of_scikit_learn():
    """Its own loop; alpha = rows × penalty. Equal up to rounding of normal equations."""
    series = np.hstack([ar1(300, 0), ar1(300, 1)]) * [3, 0.1] + [5, 0]
    model = DelayRidge.fit(series)
    p, penalty, made = model.n_delays, model.penalty, model.forecast(6, series)
    mean, deviation = series.mean(0), series.std(0)
    z = list((series - mean) / deviation)
    X = [np.concatenate(z[t - p : t]) for t in range(p, len(z))]
    judge = Ridge(alpha=penalty * len(X)).fit(X, z[p:])
    for _ in range(6):
        z.append(judge.predict(np.concatenate(z[-p:])[None])[0])
    assert np.allclose(made, np.array(z[-6:]) * deviation + mean, rtol=1e-9, atol=1e-9)


def test_delay_ridge_chooses_what_generalises():
    """AR(1): no error is below its noise. A wave of two tones needs four delays."""
    series = ar1(2000, 3)
    model = DelayRidge.fit(series[:1500])
    made = [model.forecast(1, series[:at])[0] for at in range(1500, 2000)]
    # Noise of variance 1 in units of the series; 500 samples give it to 6 % (two sigma).
    assert np.sqrt(np.mean((series[1500:] - made) ** 2)) == pytest.approx(1, rel=0.08)
    time = np.arange(400)
    wave = (np.sin(time) + np.sin(0.3 * time))[:, None]
    model = DelayRidge.fit(wave[:300])
    assert model.n_delays >= 4
    assert np.allclose(model.forecast(100, wave[:300]), wave[300:], atol=1e-3)


def test_a_season_is_among_the_delays():
    """Only the value a season ago predicts the next one."""
    rng = np.random.default_rng(0)
    series = np.tile(rng.standard_normal(50), 10) + 0.1 * rng.standard_normal(500)
    series = series[:, None]
    model = DelayRidge.fit(series[:450])
    assert model.n_delays in (50, 51)
    made = model.forecast(50, series[:450])
    assert np.sqrt(np.mean((made - series[450:]) ** 2)) < 0.2


@pytest.mark.parametrize("n", [3, 4, 5, 8, 20])
def test_short_constant_and_large_series(n):
    for series in (np.arange(n) * 1e250, np.arange(n) * 1e-250, np.full(n, 7.0)):
        rows = series[:, None]
        assert np.isfinite(DelayRidge.fit(rows).forecast(3, rows)).all()
    assert (DelayRidge.fit(rows).forecast(3, rows) == 7).all()
