"""pandas in, pandas out: pandas itself continues the index in each expected value."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from greenfold import ReservoirForecaster, SequenceRegressor

pytestmark = pytest.mark.needs("pandas")
N, STEPS = 120, 4
SETTINGS = {
    "n_neurons": 8,
    "input_weights": "random",
    "spectral_radius": 0.3,
    "leak": 1.0,
    "random_state": 0,
}


def wave(n=N, n_channels=2):
    rng = np.random.default_rng(0)
    angles = 0.4 * np.arange(n)[:, None] + np.arange(n_channels)
    return np.sin(angles) + 0.1 * rng.standard_normal((n, n_channels))


def index_of(kind, n):
    """Return an index of n rows; its first rows do not depend on n."""
    import pandas as pd

    return {
        "range": lambda: pd.RangeIndex(3, 3 + 2 * n, 2),
        "years": lambda: pd.Index(np.arange(1700, 1700 + n), name="YEAR"),
        "seconds": lambda: pd.Index(np.arange(n) * 0.1, name="t"),
        "days": lambda: pd.date_range("2020-01-30", periods=n, name="day"),
        "no freq": lambda: pd.DatetimeIndex(
            pd.date_range("2020-01-30", periods=n, freq="h").to_numpy()
        ),
        "month ends": lambda: pd.date_range("2020-01-31", periods=n, freq="ME"),
        "business days": lambda: pd.date_range("2020-01-31", periods=n, freq="B"),
        "summer time": lambda: pd.date_range(
            "2020-03-25", periods=n, freq="h", tz="Europe/Berlin"
        ),
        "periods": lambda: pd.period_range("2020Q1", periods=n, freq="Q"),
        "durations": lambda: pd.timedelta_range("1s", periods=n, freq="10ms"),
    }[kind]()


KINDS = "range,years,seconds,days,no freq,month ends,business days,summer time,periods"
KINDS = [*KINDS.split(","), "durations"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_forecast_continues_the_index(kind):
    import pandas as pd

    values, whole = wave(), index_of(kind, N + STEPS)
    table = pd.DataFrame(values, index_of(kind, N), columns=["a", "b"])
    model = ReservoirForecaster(**SETTINGS).fit(table)
    plain = ReservoirForecaster(**SETTINGS).fit(values)
    wanted = pd.DataFrame(plain.forecast(STEPS), whole[N:], columns=["a", "b"])
    pd.testing.assert_frame_equal(model.forecast(STEPS), wanted, check_freq=False)
    bands = model.forecast_band(STEPS), plain.forecast_band(STEPS)
    for made, one in zip(*bands, strict=True):
        wanted = pd.DataFrame(one, whole[N:], columns=["a", "b"])
        pd.testing.assert_frame_equal(made, wanted, check_freq=False)
    # A context has an index of its own.
    again = model.forecast(STEPS, context=table[:100])
    steps = whole[100:][:STEPS]  # rounded, if they are sums of 0.1
    close = {"exact": "equiv", "check_exact": False, "rtol": 1e-12}
    pd.testing.assert_index_equal(again.index, steps, **close)
    assert isinstance(model.forecast(STEPS, context=values), np.ndarray)
    copy = pickle.loads(pickle.dumps(model)).forecast(STEPS)
    pd.testing.assert_index_equal(copy.index, whole[N:], **close)


def test_a_series_stays_a_series_through_updates():
    import pandas as pd

    values = wave(N + 10, 1)[:, 0]
    series = pd.Series(values, index_of("days", N + 10), name="load")
    model = ReservoirForecaster(**SETTINGS).fit(series[:N])
    made = model.update(series[N : N + 5])
    assert made.name == "load"
    assert made.index.equals(series.index[N : N + 5])
    model.update(values[N + 5 :])  # the rows go on, without labels of their own
    ahead = model.forecast(2)
    assert isinstance(ahead, pd.Series)
    assert ahead.name == "load"
    assert ahead.index.equals(index_of("days", N + 12)[-2:])
    model.partial_fit(values)  # another series, of which no row is known
    assert isinstance(model.forecast(2), np.ndarray)


def test_of_several_series_the_last_is_continued():
    import pandas as pd

    first = pd.DataFrame(wave(), index_of("days", N))
    second = pd.DataFrame(wave(), index_of("month ends", N))
    model = ReservoirForecaster(**SETTINGS).fit([first, second])
    assert model.forecast(2).index.equals(index_of("month ends", N + 2)[N:])


def test_rows_without_a_regular_step_are_numbered():
    import pandas as pd

    series = pd.Series(
        wave(n_channels=1)[:, 0], index_of("days", N).delete(50).insert(9, 0)
    )
    irregular = index_of("days", N + 1).delete(50)
    for index in (irregular, [f"row {i}" for i in range(N)]):
        model = ReservoirForecaster(**SETTINGS).fit(pd.Series(series.to_numpy(), index))
        with pytest.warns(UserWarning, match="not at regular distances") as caught:
            ahead = model.forecast(3)
        assert caught[0].filename == __file__
        assert ahead.index.equals(pd.RangeIndex(N, N + 3))


def test_what_cannot_be_continued_is_refused():
    import pandas as pd

    table = pd.DataFrame(wave(), index_of("days", N))
    model = ReservoirForecaster(**SETTINGS)
    levels = pd.MultiIndex.from_product([["a", "b"], range(N // 2)])
    with pytest.raises(ValueError, match=r"`series` must have one level.*got 2 levels"):
        model.fit(table.set_index(levels))
    with pytest.raises(ValueError, match=r"`series` must hold numbers.*got column 'date'"):
        model.fit(table.assign(date="2024-01-01"))
    with pytest.raises(ValueError, match=r"`series` runs backwards, .*sort it"):
        model.fit(table[::-1])
    assert not hasattr(model, "readout_")


def test_a_backtest_names_its_samples():
    import pandas as pd

    table = pd.DataFrame(wave(), index_of("days", N), columns=["a", "b"])
    found = ReservoirForecaster(**SETTINGS).backtest(table, horizon=5, n_origins=3)
    frame = found.to_frame()
    truth = frame["truth"].droplevel("origin")
    pd.testing.assert_frame_equal(
        truth, table.loc[truth.index], check_freq=False, check_names=False
    )
    assert frame.index.get_level_values("origin").unique().tolist() == [
        table.index[i] for i in found.origins
    ]
    made = frame["forecaster"].to_numpy().reshape(found.truth.shape)
    np.testing.assert_array_equal(made, found.forecasts["forecaster"])
    plain = ReservoirForecaster(**SETTINGS).backtest(wave(), horizon=5, n_origins=3)
    assert plain.to_frame().index[0] == (plain.origins[0],) * 2


@pytest.mark.parametrize("flat", [True, False])
def test_predictions_keep_the_index(flat):
    import pandas as pd

    x = pd.DataFrame(wave(), index_of("no freq", N))
    y = pd.DataFrame(wave().cumsum(0), columns=["p", "q"])
    y = y["q"] if flat else y
    model = SequenceRegressor(**SETTINGS).fit(x, y)
    made, state = model.predict(x, return_state=True)
    assert made.index.equals(x.index)
    assert isinstance(state, np.ndarray)
    assert made.name == "q" if flat else list(made.columns) == ["p", "q"]
    np.testing.assert_array_equal(made.to_numpy(), model.predict(x.to_numpy()))
    several = model.predict([x, x[:50]])
    assert several[1].index.equals(x.index[:50])
    without = SequenceRegressor(**SETTINGS).fit(x, y.to_numpy()).predict(x)
    assert without.index.equals(x.index)
    assert without.ndim == (1 if flat else 2)


def test_pandas_is_not_imported_for_arrays():
    code = """
import sys
sys.modules["pandas"] = None  # an import raises
import numpy as np
from greenfold import ReservoirForecaster
series = np.sin(0.4 * np.arange(120)) + 0.1 * np.cos(np.arange(120.0) ** 2)
model = ReservoirForecaster(8, input_weights="random", random_state=0, leak=1.0,
                            spectral_radius=0.3)
assert model.fit(series).forecast(3).shape == (3,)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
