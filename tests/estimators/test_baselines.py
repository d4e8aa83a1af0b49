"""Simple forecasts, against scikit-learn and against the series they were made from."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from greenfold.estimators.sequences.baselines import (
    DelayRidge,
    LastSeason,
    Mean,
    season_length,
)


def ar1(n, rng, a=0.8):
    noise = np.random.default_rng(rng).standard_normal(n)
    found = np.zeros(n)
    for index in range(1, n):
        found[index] = a * found[index - 1] + noise[index]
    return found


@pytest.mark.parametrize("season", [7, 24])
def test_the_season_of_a_noisy_wave(season):
    time = np.arange(20 * season)
    noise = np.random.default_rng(0).standard_normal(len(time))
    # A mean, a trend and noise of the size of the wave.
    assert season_length(np.sin(2 * np.pi * time / season) + 100 + 0.05 * time) == season
    sharp = (time % season == 0) * 3.0
    assert season_length(sharp + 0.3 * noise) == season


def test_noise_has_no_season():
    found = [
        season_length(np.random.default_rng(i).standard_normal(300)) for i in range(20)
    ]
    assert found == [1] * 20
    assert season_length(np.ones(50)) == season_length([1.0, 2.0]) == 1


def test_last_season_last_value_and_mean():
    series = np.arange(10.0)[:, None] * [1, -1]
    assert (LastSeason.fit(series, 3).forecast(4)[:, 0] == [7, 8, 9, 7]).all()
    assert (LastSeason.fit(series, 1).forecast(2) == [[9, -9], [9, -9]]).all()
    assert (LastSeason.fit(series, 2).forecast(2, series[:4])[:, 1] == [-2, -3]).all()
    assert (Mean.fit(series).forecast(2) == [[4.5, -4.5]] * 2).all()
    assert LastSeason.fit(np.sin(np.arange(90) * np.pi / 6)).season == 12


def test_delay_ridge_is_ridge_of_scikit_learn():
    """Its own loop; alpha = rows × penalty. Equal up to rounding of normal equations."""
    series = np.column_stack([ar1(300, 0), ar1(300, 1)]) * [3, 0.1] + [5, 0]
    p, penalty = 4, 0.01
    made = DelayRidge.fit(series, p, penalty).forecast(6)
    mean, deviation = series.mean(0), series.std(0)
    z = list((series - mean) / deviation)
    X = [np.concatenate(z[t - p : t]) for t in range(p, len(z))]
    judge = Ridge(alpha=penalty * len(X)).fit(X, z[p:])
    for _ in range(6):
        z.append(judge.predict(np.concatenate(z[-p:])[None])[0])
    assert np.allclose(made, np.array(z[-6:]) * deviation + mean, rtol=1e-9, atol=1e-9)


def test_several_series_and_a_context():
    parts = [ar1(150, 0), ar1(200, 1)]
    model = DelayRidge.fit(parts, 2, 1e-6)
    assert np.allclose(model.forecast(3), model.forecast(3, parts[1]))
    assert not np.allclose(model.forecast(3), model.forecast(3, parts[0]))
    # No row spans the seam between two series.
    rows = [np.array([one[1:-1], one[:-2]]).T for one in parts]
    alpha = model.penalty * sum(map(len, rows)) * model.deviation[0] ** 2
    judge = Ridge(alpha=alpha).fit(
        np.concatenate(rows), np.concatenate([a[2:] for a in parts])
    )
    assert np.allclose(model.weights.ravel(), judge.coef_, rtol=1e-9)


def test_delay_ridge_chooses_what_generalises():
    """AR(1): no error is below its noise. A wave of two tones needs four delays."""
    series = ar1(2000, 3)
    model = DelayRidge.fit(series[:1500])
    made = [model.forecast(1, series[:at])[0, 0] for at in range(1500, 2000)]
    # Noise of variance 1 in units of the series; 500 samples give it to 6 % (two sigma).
    assert np.sqrt(np.mean((series[1500:] - made) ** 2)) == pytest.approx(1, rel=0.08)
    assert model.error == pytest.approx(1 / series.std(), rel=0.06)
    time = np.arange(400)
    wave = np.sin(time) + np.sin(0.3 * time)
    model = DelayRidge.fit(wave[:300])
    assert model.n_delays >= 4
    assert np.allclose(model.forecast(100)[:, 0], wave[300:], atol=1e-3)


def test_a_season_is_among_the_delays():
    """Only the value a season ago predicts the next one."""
    rng = np.random.default_rng(0)
    series = np.tile(rng.standard_normal(50), 10) + 0.1 * rng.standard_normal(500)
    model = DelayRidge.fit(series[:450])
    assert model.n_delays in (50, 51)
    assert np.sqrt(np.mean((model.forecast(50)[:, 0] - series[450:]) ** 2)) < 0.2


@pytest.mark.parametrize("n", [3, 4, 5, 8, 20])
def test_short_constant_and_large_series(n):
    assert np.isfinite(DelayRidge.fit(np.arange(n) * 1e250).forecast(3)).all()
    assert np.isfinite(DelayRidge.fit(np.arange(n) * 1e-250).forecast(3)).all()
    assert (DelayRidge.fit(np.full(n, 7.0)).forecast(3) == 7).all()


def test_bad_input_is_one_sentence():
    model = DelayRidge.fit(np.arange(30.0), 4)
    with pytest.raises(ValueError, match="`context` must have at least 4 samples of 1 cha"):
        model.forecast(3, np.arange(3.0))
    with pytest.raises(ValueError, match="`series` must have at least 10 samples for 8 de"):
        DelayRidge.fit(np.arange(9.0), 8)
    with pytest.raises(
        ValueError, match="`series` must have at least one season of 10 sam"
    ):
        LastSeason.fit(np.arange(9.0), 10)
