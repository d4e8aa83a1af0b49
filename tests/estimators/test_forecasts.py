"""What a forecaster says about its forecasts: bands, backtests, and the long run."""

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn import base
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from greenfold import EchoStateNetwork, Gain, ReservoirForecaster, load
from greenfold.datasets import lorenz
from greenfold.estimators.sequences import DivergenceWarning
from greenfold.estimators.sequences.bands import half_widths
from greenfold.estimators.sequences.baselines import DelayRidge
from greenfold.saving import ModelFileError

TRAIN = 1200


def clone(model: Any) -> Any:
    return base.clone(model)


@pytest.fixture(scope="module")
def series():
    return lorenz(1700, rng=0)


@pytest.fixture(scope="module")
def forecaster(series):
    return ReservoirForecaster(
        40,
        input_weights="random",
        spectral_radius=0.4,
        bias_scale=1.0,
        see_input=False,
        random_state=0,
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
    found, n_held = half_widths(errors, 0.9, np.full(2000, m))
    chance = np.ceil((m + 1) * 0.9) / (m + 1)
    assert chance >= 0.9
    assert n_held == 2000
    # 2000 trials scatter by at most 0.0067; four of that.
    assert np.mean(fresh <= found) == pytest.approx(chance, abs=0.027)


def test_half_widths_beyond_the_loops_stay_at_their_largest():
    errors = np.tile(np.array([1.0, 3.0, 2.0, 9.0])[None, :, None], (20, 1, 2))
    errors[9:, 2] = np.inf  # diverged
    errors[8:, 3] = np.nan  # the blocks ended
    found, n_held = half_widths(errors, 0.9, np.array([20, 20, 20, 8]))
    assert n_held == 3
    assert found[:, 0].tolist() == [1, 3, np.inf, np.inf]
    found, n_held = half_widths(errors[:, [0, 1, 3]], 0.9, np.full(3, 20))
    assert (n_held, found[:, 1].tolist()) == (2, [1, 3, 3])
    with pytest.raises(ValueError, match=r"`level` must be at most 0.952, because .* 20 h"):
        half_widths(errors, 0.96, np.full(4, 20))


def test_few_loops_that_do_not_overlap_widen_the_band():
    errors = np.arange(1.0, 51.0)[:, None, None]
    for apart, wanted in ((50, 46), (20, 48), (9, 50), (3, 50)):  # 46/50, 19/20, 9/9
        found, _ = half_widths(errors, 0.9, np.array([apart]))
        assert found.item() == wanted


def test_loops_that_do_not_overlap_are_counted(forecaster):
    held = forecaster._held_out
    found = held.apart(60)
    assert found[0] == len(held.begins)
    for n_steps in (7, 60):
        count = 0
        for fold in set(held.folds):
            free = 0  # where the last loop that was counted has ended
            for begin, end in zip(held.begins, held.ends, strict=True):
                inside = held.begins[held.folds == fold][0] <= begin <= end - n_steps
                if inside and end == held.ends[held.folds == fold][0] and begin >= free:
                    count, free = count + 1, begin + n_steps
        assert found[n_steps - 1] == count


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


# Scores and backtests


@pytest.fixture(scope="module")
def table(series):
    model = ReservoirForecaster(30, input_weights="random", random_state=0)
    return model.backtest(series[:600], 30, n_origins=5)


def test_a_backtest_does_not_train_on_what_it_scores(table, series):
    """The same forecasts by hand, and other held-out samples change no fit."""
    first = int(table.origins[0])
    assert first == 450
    assert (table.origins + table.horizon <= 600).all()
    model = ReservoirForecaster(30, input_weights="random", random_state=0)
    model.fit(series[:first])
    for at, made, truth in zip(
        table.origins, table.forecasts["forecaster"], table.truth, strict=True
    ):
        assert np.allclose(made, model.forecast(30, context=series[:at]), rtol=1e-6)
        assert np.array_equal(truth, series[at : at + 30])
    other = np.concatenate([series[:first], series[900 : 900 + 600 - first]])
    again = clone(model).backtest(other, 30, n_origins=5)
    for name, made in again.forecasts.items():
        assert np.allclose(made[0], table.forecasts[name][0], rtol=1e-9), name


def test_errors_are_in_deviations_of_the_training_part(table, series):
    first = int(table.origins[0])
    z = series[:first]
    delays = DelayRidge.fit(z).forecast(30, z)
    wanted = np.sqrt((((delays - series[first : first + 30]) / z.std(0)) ** 2).mean(1))
    assert table.errors["ridge on delays"][0] == pytest.approx(wanted, rel=1e-9)
    total = np.sqrt((wanted**2).mean())
    assert table.totals["ridge on delays"][0] == pytest.approx(total, rel=1e-9)
    assert set(table.errors) >= {"forecaster", "last value", "ridge on delays"}
    assert 0 <= table.coverage <= 1
    assert table.valid_steps["forecaster"].shape == table.origins.shape


def test_a_backtest_prints_who_wins(table):
    assert str(table).splitlines()[0].split()[0] == "forecast"
    assert table.summary in str(table)
    assert "<td>ridge on delays</td>" in table._repr_html_()
    better = {**table.forecasts, "forecaster": table.truth + 1e-3}
    best = replace(table, forecasts=better).summary
    assert "The forecaster has the smallest error, 0.000" in best
    assert "the next is ridge on delays with 0.9" in best
    better["ridge on delays"] = table.truth + 1e-6
    assert "Ridge on delays does better here: " in replace(table, forecasts=better).summary
    better["drawn weights"] = table.truth
    assert "Drawn weights do better here: " in replace(table, forecasts=better).summary
    better["last value"] = better.pop("forecaster")
    better["forecaster"] = np.full_like(table.truth, np.nan)
    lost = replace(table, forecasts=better)
    assert "The forecaster diverges from most origins; drawn weights have" in lost.summary
    assert "diverges" in str(lost)
    better["forecaster"] = table.truth + 1e-12
    exact = replace(table, forecasts=better).summary
    assert "The forecaster is about as good as drawn weights" in exact
    for kept, told in (("solved weights", False), ("drawn weights", True)):
        used = {"forecaster": kept, "drawn weights": "drawn weights"}
        shown = replace(table, forecasts=better, used=used)
        assert ("because solved weights were no better" in shown.summary) == told
    used = dict.fromkeys(used, "ridge on delays")
    shown = replace(table, forecasts=better, used=used)
    assert "drawn" not in shown.summary.replace("drawn weights were", "")
    assert "\nforecaster: ridge on delays" in str(shown)
    assert "\ndrawn weights: ridge on delays" in str(shown)


def test_a_channel_that_does_not_vary_changes_no_error(table):
    def wider(one):
        return np.concatenate([one, np.full_like(one[:, :, :1], 5.0)], axis=2)

    same = replace(
        table,
        truth=wider(table.truth),
        forecasts={name: wider(one) for name, one in table.forecasts.items()},
        spread=np.append(table.spread, np.nan),
        widths=np.pad(table.widths, ((0, 0), (0, 1))),
    )
    assert same.medians == pytest.approx(table.medians, rel=1e-12)
    assert same.coverage == pytest.approx(table.coverage)
    for name, steps in table.valid_steps.items():
        assert np.array_equal(same.valid_steps[name], steps)


def test_a_backtest_beside_drawn_weights_and_with_known_inputs():
    rng = np.random.default_rng(0)
    known = rng.standard_normal(600)
    z = np.zeros(600)
    for t in range(1, 600):
        z[t] = 0.5 * z[t - 1] + known[t] + 0.1 * rng.standard_normal()
    model = ReservoirForecaster(20, max_iter=5, leak=1.0, random_state=0)
    table = model.backtest(z, 10, n_origins=4, exog=known)
    assert "drawn weights" in table.forecasts
    assert table.medians["forecaster"] < 0.5 * table.medians["ridge on delays"]
    assert not model.__sklearn_is_fitted__()


def test_the_score_is_the_skill_of_forecasts(forecaster, series):
    """By hand: forecasts of 50 steps from two origins."""
    held = series[TRAIN:]
    score = forecaster.score(held, horizon=50, n_origins=2)
    first, last = forecaster.washout_, len(held) - 50
    errors = [
        (forecaster.forecast(50, context=held[:at]) - held[at : at + 50])
        / series[:TRAIN].std(0)
        for at in (first, last)
    ]
    squares = np.minimum((np.array(errors) ** 2).mean(2), 2).mean(0)
    wanted = np.maximum(1 - squares, 0).mean()
    assert score == pytest.approx(wanted, abs=1e-6)  # the memory is cut at 1e-5
    assert forecaster.score(held) <= 1
    worse = copy.deepcopy(forecaster)
    worse.readout_ = 3 * worse.readout_
    assert 0 <= worse.score(held) < forecaster.score(held)


@pytest.mark.parametrize("flat", [False, True])
def test_grid_search_chooses_by_the_score(series, flat):
    z = series[:, 0] if flat else series
    model = ReservoirForecaster(
        30, input_weights="random", spectral_radius=0.4, random_state=0
    )
    grid = {"ridge": [1e-8, 1e2]}
    search = GridSearchCV(model, grid, cv=TimeSeriesSplit(2)).fit(z)
    assert search.best_params_ == {"ridge": 1e-8}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, s: m.backtest(s[:100], 60), "`horizon` must be at most 50, half of the"),
        (lambda m, s: m.backtest(s[:10], 2), "`series` must have at least 20 samples"),
        (lambda m, s: m.backtest([s, s], 2), "`series` must be one series; got 2"),
        (lambda m, s: m.backtest(s[:90], 9, exog=s[:80]), "`exog` must have 90 rows"),
        (lambda m, s: m.score(s[:5]), "`series` must have at least .* the memory of the n"),
        (lambda m, s: m.score(s[:200], horizon=300), "`horizon` must be at most"),
        (lambda m, s: m.score(s[:200, :2]), "`series` must have 3 channel"),
    ],
)
def test_bad_input_is_one_sentence(call, message, forecaster, series):
    with pytest.raises(ValueError, match=message):
        call(forecaster, series)


# The long run


def damped(n):
    """A noisy linear recursion of two samples."""
    noise = 0.1 * np.random.default_rng(0).standard_normal(n)
    z = np.zeros(n)
    for t in range(2, n):
        z[t] = 1.2 * z[t - 1] - 0.5 * z[t - 2] + noise[t]
    return z


@pytest.mark.parametrize("see_input", [0, 1, 3])
def test_lyapunov_exponents_of_a_linear_loop_are_its_eigenvalues(see_input):
    """The matrix of the loop, row by row from its steps; real eigenvalues or pairs."""
    network = EchoStateNetwork.random(
        6, connectivity=1.0, leak=0.7, gain=Gain.linear(), rng=1
    )
    model = ReservoirForecaster(
        reservoir=network, input_weights="random", see_input=see_input, random_state=0
    ).fit(damped(800))
    n = model.driven_.n_states
    assert n == network.n_neurons + see_input

    def step(rows):
        states, made = model._step(rows[:, :n], rows[:, n:], model._readout)
        return np.hstack([states, made])

    matrix = step(np.eye(n + 1)) - step(np.zeros((1, n + 1)))
    with np.errstate(divide="ignore"):  # the oldest input leaves no trace
        wanted = np.sort(np.log(np.abs(np.linalg.eigvals(matrix))))[::-1]
    found = model.lyapunov_exponents(3, n_steps=3000)
    # The tangents turn with a pair of eigenvalues, which adds at most a few / n_steps.
    assert found == pytest.approx(wanted[:3], abs=3e-3)
    per_time = model.lyapunov_exponents(3, n_steps=3000, dt=0.5)
    assert per_time == pytest.approx(found / 0.5, rel=1e-12)


def test_lyapunov_exponents_of_lorenz(series):
    """0.906, 0 and −14.57 (Sprott, Chaos and Time-Series Analysis, 2003).

    The network itself forgets at a rate of −ln(1 − leak) / dt at least, so with a leak of 1
    and little memory the third exponent is that of the system.
    """
    model = ReservoirForecaster(
        60, input_weights="random", spectral_radius=0.1, leak=1.0, bias_scale=1.0,
        input_scale=0.5, see_input=False, random_state=0,
    ).fit(series)  # fmt: skip
    found = model.lyapunov_exponents(3, n_steps=4000, dt=0.05)
    # 200 time units: the first scatters by about 0.05 between orbits.
    assert found[0] == pytest.approx(0.906, abs=0.15)
    assert found[1] == pytest.approx(0, abs=0.05)
    assert found[2] == pytest.approx(-14.57, rel=0.05)


def test_a_loop_that_leaves_the_attractor_says_so(forecaster, series):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = forecaster.forecast(3000)
    assert found.std(0) == pytest.approx(series.std(0), rel=0.2)
    model = ReservoirForecaster(15, input_weights="random", random_state=0)
    model.fit(damped(600))
    told = r"left the attractor: in .* of 2000 steps, .* and the loop ends at a constant"
    with pytest.warns(DivergenceWarning, match=told):
        model.forecast(2000)


def test_exponents_need_a_loop(forecaster, series):
    with pytest.raises(ValueError, match="`n` must be at most 40, one per state; got 41"):
        forecaster.lyapunov_exponents(41)
    known = np.sin(np.arange(600.0))
    model = ReservoirForecaster(8, input_weights="random", random_state=0)
    model.fit(series[:600, 0], known)
    with pytest.raises(ValueError, match="needs a closed loop without known inputs"):
        model.lyapunov_exponents()
    model = copy.deepcopy(forecaster)
    model.readout_ = 2 * model.readout_
    with pytest.warns(DivergenceWarning, match="diverged at step"):
        assert np.isnan(model.lyapunov_exponents(2, n_steps=500)).all()
