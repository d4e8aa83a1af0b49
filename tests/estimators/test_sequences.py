"""Sequence regression and forecasts, with solved and with drawn input weights."""

from typing import Any

import numpy as np
import pytest
from sklearn import base

from greenfold import (
    EchoStateNetwork,
    Gain,
    Reservoir,
    ReservoirForecaster,
    SequenceRegressor,
    load,
)
from greenfold.datasets import lorenz, narma
from greenfold.estimators.sequences import DivergenceWarning, valid_steps
from greenfold.estimators.sequences.choice import Pairs

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
        spectral_radius=0.4,
        bias_scale=1.0,
        see_input=False,
        max_iter=40,
        random_state=0,
    ).fit(series[:TRAIN])


@pytest.fixture(scope="module")
def filtered():
    x, y = narma(1400, rng=1)
    model = SequenceRegressor(30, max_iter=30, random_state=0).fit(x[:1000], y[:1000])
    return model, x, y


def given(model, weights):
    """Give input weights, beside which fewer parameters have an effect."""
    return model.set_params(input_weights=weights, max_iter=200, bias_scale=0.5)


def test_valid_steps():
    truth = np.zeros((5, 2))
    wrong = np.array([0, 0.1, 0.3, 0.5, 0])[:, None] * np.ones(2)
    assert valid_steps(wrong, truth) == 3
    assert valid_steps(truth, truth) == 5
    assert valid_steps(wrong, truth, spread=2.0) == 5
    assert valid_steps(np.full((5, 2), np.nan), truth) == 0


# Forecaster


def test_solved_weights_forecast_further_than_drawn_ones(series):
    """Six small networks, ten starts each, with a horizon that forecasts hardly reach.

    Solved ones are valid for 72 to 94 steps on average and drawn ones for 29 to 42: chaos
    makes another series of every rounding. The ratios are 2.15 to 2.5 with a standard error
    of 0.18, so 1.5 is more than three errors below.
    """
    starts, horizon, spread = range(1250, 1500, 25), 200, series.std(0)

    def steps(model):
        forecasts = (
            model.forecast(horizon, context=series[at - 100 : at]) for at in starts
        )
        truths = (series[at : at + horizon] for at in starts)
        pairs = zip(forecasts, truths, strict=True)
        return [valid_steps(made, truth, spread) for made, truth in pairs]

    found = {"solved": [], "random": []}
    for seed in range(6):
        models = {}
        for weights, lengths in found.items():
            models[weights] = ReservoirForecaster(
                20,
                spectral_radius=0.4,
                bias_scale=1.0,
                max_iter=40 if weights == "solved" else 200,
                input_weights=weights,
                random_state=seed,
            ).fit(series[:TRAIN])
            lengths += steps(models[weights])
        solved, drawn = models["solved"], models["random"]
        assert solved.residual_.mean() < 0.4 * drawn.residual_.mean()
        norms = [np.linalg.norm(model.input_weights_) for model in (solved, drawn)]
        assert norms[0] == pytest.approx(norms[1], rel=1e-12)  # the same size of input
    assert np.mean(found["solved"]) > 1.5 * np.mean(found["random"])


def test_a_forecast_is_the_loop_written_out(forecaster, series):
    """Predictions fed back by hand through tanh, W and the input weights."""
    network, U = forecaster.driven_.network, forecaster.input_weights_
    mean, deviation = series[:TRAIN].mean(0), series[:TRAIN].std(0)
    z = (series[:TRAIN] - mean) / deviation
    y = np.zeros(40)

    def advance(y, x):
        pushed = network.weights @ y + U @ [*x, 1.0]
        return (1 - network.leak) * y + network.leak * np.tanh(pushed)

    for x in z:
        y = advance(y, x)
    made = []
    for _ in range(20):
        made.append(y @ forecaster.readout_ + forecaster.intercept_)
        y = advance(y, made[-1])
    # Rounding, which chaos multiplies by e per 22 steps.
    wanted = np.array(made) * deviation + mean
    assert forecaster.forecast(20) == pytest.approx(wanted, rel=1e-7)


def test_context_goes_on_where_training_ended(forecaster, series):
    after = forecaster.forecast(10)
    again = forecaster.forecast(10, context=series[TRAIN - 300 : TRAIN])
    # The start is forgotten to 1e-5 of a state within the washout; here ten times it.
    assert again == pytest.approx(after, abs=1e-5 * series.std())


def test_same_seed_same_forecast(forecaster, series):
    again = clone(forecaster).fit(series[:TRAIN])
    assert np.array_equal(again.forecast(50), forecaster.forecast(50))


def test_scale_and_unit_do_not_matter(series):
    make = ReservoirForecaster(20, max_iter=5, random_state=0, ridge=1e-8)
    wanted = clone(make).fit(series[:400]).forecast(5)
    for factor, shift in ((1e150, 0.0), (1e-150, 0.0), (3.0, 1e4)):
        found = clone(make).fit(factor * series[:400] + shift).forecast(5)
        # A shift of 1e4 costs four digits of the series.
        assert (found - shift) / factor == pytest.approx(wanted, rel=1e-4)


def test_one_channel_and_several_series(series):
    model = ReservoirForecaster(20, max_iter=5, random_state=0)
    one = model.fit(series[:600, 0]).forecast(7)
    assert one.shape == (7,)
    model.fit([series[:500], series[600:1000]])
    assert model.forecast(7).shape == (7, 3)
    assert model.forecast(7, context=series[1000:1200]).shape == (7, 3)


def test_exogenous_input_is_used():
    """A target that follows from the known input alone, one step of it at a time."""
    rng = np.random.default_rng(0)
    e = rng.uniform(-1, 1, 900)
    z = np.zeros(900)
    for t in range(1, 900):
        z[t] = 0.5 * z[t - 1] + e[t]
    model = ReservoirForecaster(30, max_iter=20, random_state=0).fit(z[:800], e[:800])
    found = model.forecast(50, exog=e[800:850])
    assert np.sqrt(np.mean((found - z[800:850]) ** 2)) < 0.05 * z.std()
    again = model.forecast(50, context=z[600:800], exog=e[600:850])
    assert again == pytest.approx(found, abs=1e-3)
    with pytest.raises(ValueError, match="`exog` must have 50 rows"):
        model.forecast(50)


def test_update_is_ridge_on_everything_so_far(forecaster, series):
    """Recursive least squares end where the sums of all rows end."""
    import copy

    model = copy.deepcopy(forecaster)
    made = model.update(series[TRAIN : TRAIN + 100])
    assert made.shape == (100, 3)
    assert np.abs(made - series[TRAIN : TRAIN + 100]).max() < 0.1 * series.std()
    # Rows that are learnt one by one leave the penalty as it was for the fitted rows.
    sums, k = model._sums, model._sums.n_features
    ridge = model.ridge_ * sums.n_fitted / sums.n
    wanted, _ = sums.solve(np.array([ridge]))
    mean = sums.sums[:k] / sums.n
    penalised = sums.products[:k, :k] / sums.n - np.outer(mean, mean) + ridge * np.eye(k)
    rounding = np.finfo(float).eps * np.linalg.cond(penalised)  # about 4e-6
    learnt = model.readout_
    assert np.abs(learnt - wanted[0]).max() <= rounding * np.abs(learnt).max()
    assert model.forecast(5).shape == (5, 3)


def test_partial_fit_adds_rows(series):
    model = ReservoirForecaster(20, max_iter=5, random_state=0, ridge=1e-6)
    model.partial_fit(series[:600])
    weights, before = model.input_weights_.copy(), model.readout_.copy()
    model.partial_fit(series[600:1200])
    assert np.array_equal(weights, model.input_weights_)
    assert not np.array_equal(before, model.readout_)
    n = model._sums.n
    assert n == 600 - 1 - model.washout_ + 600 - 1 - model.washout_


@pytest.mark.parametrize(
    "network",
    [
        EchoStateNetwork.cycle(15),
        Reservoir.random(15, g=0.8, tau=2.0, gain=Gain.tanh(), rng=0),
    ],
    ids=["ring", "continuous"],
)
def test_your_own_network(network, series):
    model = ReservoirForecaster(reservoir=network, max_iter=10, random_state=0)
    model.fit(series[:500])
    assert model.driven_.network is network
    assert np.isfinite(model.forecast(5)).all()


def test_a_loop_that_diverges_says_so(series):
    growing = EchoStateNetwork(
        0.5 * np.eye(6), gain=Gain.linear(), leak=1.0, allow_unstable=True
    )
    model = ReservoirForecaster(
        reservoir=growing, input_weights="random", ridge=1e-6, random_state=0
    ).fit(series[:300])
    model.readout_ = 1.2 * model.readout_
    with pytest.warns(DivergenceWarning, match="left the range of the training series at"):
        found = model.forecast(200)
    assert np.isnan(found[-1]).all()
    assert np.nanmax(np.abs(found)) < 100 * np.abs(series).max()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, s: m.fit(np.full((50, 3), np.nan)), "`series` must be finite"),
        (lambda m, s: m.fit(s[:1]), "`series` must have at least 3 samples"),
        (
            lambda m, s: m.fit(np.ones(100)),
            "`series` varies by less than 1e-12 of",
        ),
        (lambda m, s: m.fit(s[:50], np.ones((20, 1)) * np.arange(20)[:, None]), "`exog`"),
        (lambda m, s: m.forecast(5, context=s[:300, :2]), "`context` must have 3 channel"),
        (
            lambda m, s: m.forecast(5, context=s[:2]),
            "`context` must have at least",
        ),
        (lambda m, s: m.forecast(0), "`n_steps` must be at least 1"),
        (lambda m, s: m.forecast(5, exog=np.ones(5)), "`exog` must be None, as in fit"),
        (lambda m, s: m.update(s[:5, :1]), "`series` must have 3 channel"),
        (lambda m, s: m.update(s[:5], forgetting=2.0), "`forgetting` must be at most 1"),
        (lambda m, s: m.forecast_band(5, level=1.5), "`level` must be below 1"),
        (
            lambda m, s: m.set_params(n_neurons=0).fit(s),
            "'n_neurons' parameter of ReservoirForecaster must be an int",
        ),
        (
            lambda m, s: given(m, np.ones((4, 3))).fit(s[:300]),
            "`input_weights` must have shape",
        ),
    ],
)
def test_bad_input_is_one_sentence(call, message, series, forecaster):
    import copy

    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call(copy.deepcopy(forecaster), series)
    assert "\n" not in str(caught.value).strip()


def test_a_constant_channel_is_kept(series):
    both = np.column_stack([series[:400], np.full(400, 7.0)])
    model = ReservoirForecaster(20, max_iter=5, random_state=0)
    with pytest.warns(UserWarning, match="does not vary in channel 3"):
        model.fit(both)
    assert model.forecast(5)[:, 3] == pytest.approx(7.0, abs=1e-6)


# Regressor


def test_narma_by_solved_weights(filtered):
    """A network that sees no inputs, so that it must remember them."""
    model, x, y = filtered
    model = clone(model).set_params(see_input=False).fit(x[:1000], y[:1000])
    drawn = clone(model).set_params(input_weights="random", max_iter=200)
    drawn.fit(x[:1000], y[:1000])
    assert model.chosen_.weights == "solved"
    assert 1 - model.score(x[1000:], y[1000:]) < 0.6 * (1 - drawn.score(x[1000:], y[1000:]))


def test_predict_goes_on_from_a_state(filtered):
    model, x, _ = filtered
    whole = model.predict(x)
    first, state = model.predict(x[:700], return_state=True)
    second = model.predict(x[700:], state)
    assert np.concatenate([first, second]) == pytest.approx(whole, abs=1e-12)
    many = model.predict([x[:200], x[300:400]])
    assert [len(one) for one in many] == [200, 100]
    assert many[0] == pytest.approx(whole[:200], abs=1e-12)


def test_linear_networks_bring_their_certificate():
    x, y = narma(1000, rng=0)
    network = EchoStateNetwork.random(20, gain=Gain.linear(), spectral_radius=0.6, rng=0)
    model = SequenceRegressor(
        reservoir=network, ridge=1e-3, see_input=False, random_state=0
    ).fit(x, y)
    found = model.projections_
    assert found.status == "certified"
    size = np.linalg.norm(model.input_weights_)
    assert model.input_weights_ / size == pytest.approx(found.u.reshape(20, 2), abs=1e-12)


def test_the_readout_may_see_the_input():
    """What is the input itself needs no state."""
    x = np.random.default_rng(0).normal(size=(400, 2))
    model = SequenceRegressor(
        5, see_input=True, spectral_radius=0.3, max_iter=3, random_state=0
    ).fit(x, x)
    assert model.readout_.shape == (7, 2)
    assert model.score(x, x) > 1 - 1e-9


def test_washout_is_long_enough(filtered):
    """The loss that was solved for, once more with twice the washout."""
    model, x, y = filtered
    pairs = model._in_units(Pairs.of([x[:1000, None]], [y[:1000, None]]))
    u = model.input_weights_
    scale = np.linalg.norm(u)
    values = []
    for washout in (model.washout_, 2 * model.washout_):
        given = model.driven_.network, pairs, scale
        problem = model._problem(*given, washout)  # the same steps count in both
        values.append(problem.evaluate(u / scale)[1].value)
    # Half of the first washout's steps are other ones: the loss scatters by 1/√(2·900).
    assert values[0] == pytest.approx(values[1], abs=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.predict(np.ones((5, 2))), "`x` must have 1 channel"),
        (lambda m: m.predict([np.ones(5), np.ones(4)], np.zeros(30)), "be one sequence"),
        (lambda m: m.predict(np.ones(5), np.zeros(3)), r"`state` must have shape \(3\d,\)"),
        (lambda m: m.score(np.arange(3.0), np.arange(3.0)), "longer than the washout"),
        (lambda m: m.fit(np.arange(9.0), np.arange(8.0)), "one row for each of the 9"),
    ],
)
def test_regressor_bad_input(call, message, filtered):
    import copy

    with pytest.raises(ValueError, match=message):
        call(copy.deepcopy(filtered[0]))


def test_learning_online_for_long_stays_where_it_is():
    """Half a million halvings of the past: nothing that is forgotten may blow up."""
    x, y = narma(12_000, rng=1)
    model = SequenceRegressor(15, input_weights="random", random_state=0)
    model.fit(x[:400], y[:400])
    made = model.update(x[400:], y[400:], forgetting=0.97)
    late = made[-2000:] - y[-2000:]
    assert np.sqrt((late**2).mean()) < 1.2 * y.std()


def test_updates_in_parts_are_one_update(filtered):
    import copy

    model, x, y = filtered
    once, parts = copy.deepcopy(model), copy.deepcopy(model)
    whole = once.update(x[1000:1300], y[1000:1300])
    both = [parts.update(x[a : a + 100], y[a : a + 100]) for a in (1000, 1100, 1200)]
    # What a recursion of 64 steps and more loses on sums of condition 1e10.
    assert np.concatenate(both) == pytest.approx(whole, abs=1e-4 * y.std())
    scale = np.abs(once.readout_).max()
    assert np.abs(parts.readout_ - once.readout_).max() < 1e-6 * scale


def test_a_fit_that_fails_leaves_the_one_before(forecaster, series):
    import copy

    model = copy.deepcopy(forecaster)
    before = model.forecast(5)
    with pytest.raises(ValueError, match="at least 5004 samples, for a washout of 5000"):
        model.set_params(washout=5000).fit(100 + 50 * series[:300, :1])
    assert np.array_equal(model.forecast(5), before)


def test_series_shorter_than_the_washout_are_said(series):
    model = ReservoirForecaster(15, max_iter=3, random_state=0)
    with pytest.warns(UserWarning, match="1 of 2 sequences in .* shorter than the wash"):
        model.fit([series[:400], series[:4]])
    alone = ReservoirForecaster(15, max_iter=3, random_state=0)
    wanted = alone.fit([series[:400]]).forecast(3)
    close = pytest.approx(wanted, abs=0.1 * series.std())
    assert model.forecast(3) == close  # it goes on from the long one
    with pytest.raises(ValueError, match="`series` must hold a sequence of more than"):
        model.partial_fit(series[:4])


def test_a_network_that_does_not_forget_is_said(series):
    model = ReservoirForecaster(15, leak=0.001, see_input=False, max_iter=3, random_state=0)
    with pytest.warns(UserWarning, match="remembers more than .* a quarter of the longest"):
        model.fit(series[:300])


def test_what_was_fitted_stays_when_parameters_change(forecaster):
    import copy

    model = copy.deepcopy(forecaster)
    before = model.forecast(3)
    model.set_params(see_input=True, n_neurons=3, leak=0.1)
    assert np.array_equal(model.forecast(3), before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, s: m.fit(s[:50].tolist()), "`series` is a list of 50 rows of 3 values"),
        (
            lambda m, s: m.forecast(3, context=[s[:90], s[:90]]),
            "`context` must be one series",
        ),
        (
            lambda m, s: given(m, np.zeros((40, 3))).fit(s[:300]),
            "`input_weights` must have non-zero weights for inputs",
        ),
        (
            lambda m, s: m.fit([s[:100], np.full((50, 3), np.nan)]),
            r"`series\[1\]` must be finite",
        ),
    ],
)
def test_more_bad_input(call, message, series, forecaster):
    import copy

    with pytest.raises(ValueError, match=message):
        call(copy.deepcopy(forecaster), series)


# Files


@pytest.mark.parametrize("exog", [False, True])
def test_a_saved_forecaster_forecasts_the_same(tmp_path, series, exog):
    from greenfold import load

    known = np.sin(np.arange(450.0)) if exog else None
    model = ReservoirForecaster(15, max_iter=3, random_state=0)
    model.fit(series[:400], None if known is None else known[:400])
    model.save(tmp_path / "it.gfm")
    again = load(tmp_path / "it.gfm")
    ahead = None if known is None else known[400:420]
    assert np.array_equal(again.forecast(20, exog=ahead), model.forecast(20, exog=ahead))
    assert again.get_params() == model.get_params()
    more = None if known is None else known[400:450]
    for one in (again, model):
        one.update(series[400:450], more)
    assert np.array_equal(again.readout_, model.readout_)


def test_a_saved_regressor_predicts_the_same(tmp_path, filtered):
    from greenfold import load

    model, x, y = filtered
    model.save(tmp_path / "it.gfm")
    again = load(tmp_path / "it.gfm")
    assert np.array_equal(again.predict(x), model.predict(x))
    assert again.partial_fit(x, y).readout_.shape == model.readout_.shape


def test_parts_that_do_not_fit_are_refused(tmp_path, filtered):
    import copy

    from greenfold import load
    from greenfold.saving import ModelFileError

    for name, value in (
        ("readout_", np.ones((7, 1))),
        ("state_", np.zeros(3)),
        ("residual_", np.ones(4)),
    ):
        model = copy.deepcopy(filtered[0])
        setattr(model, name, value)
        model.save(tmp_path / "it.gfm")
        with pytest.raises(ModelFileError, match="do not fit a network of 30 neurons"):
            load(tmp_path / "it.gfm")


@pytest.mark.needs("onnx", "onnxruntime")
@pytest.mark.parametrize("see_input", [False, True])
@pytest.mark.parametrize("gain", ["tanh", "sigmoid", "relu"])
def test_onnx_steps_as_the_model_does(series, see_input, gain):
    import onnxruntime

    network = EchoStateNetwork.random(
        15, gain=getattr(Gain, gain)(), spectral_radius=0.5, bias=0.1, rng=0
    )
    model = ReservoirForecaster(
        reservoir=network, see_input=see_input, max_iter=3, random_state=0
    ).fit(series[:400])
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    state, x, made = model.state_[None], series[399:400], []
    for _ in range(10):
        state, x = session.run(["next_state", "prediction"], {"state": state, "x": x})
        made.append(np.asarray(x)[0])
    # Rounding, after ten steps of a loop.
    assert np.array(made) == pytest.approx(model.forecast(10), rel=1e-8)


@pytest.mark.needs("onnx")
def test_continuous_time_has_no_graph(series):
    network = Reservoir.random(10, g=0.8, tau=2.0, gain=Gain.tanh(), rng=0)
    model = ReservoirForecaster(reservoir=network, max_iter=2, random_state=0)
    with pytest.raises(TypeError, match="runs in continuous time"):
        model.fit(series[:300]).to_onnx()


@pytest.mark.needs("aeon")
def test_aeon_forecasts_the_same():
    from greenfold.datasets import mackey_glass
    from greenfold.estimators.aeon import AeonReservoirForecaster

    y = mackey_glass(600, rng=0)
    options: dict[str, Any] = {"n_neurons": 15, "max_iter": 3, "random_state": 0}
    ours = ReservoirForecaster(**options).fit(y)
    theirs = AeonReservoirForecaster(horizon=3, **options).fit(y)
    assert theirs.predict(y) == pytest.approx(ours.forecast(3, context=y)[-1], rel=1e-9)
    model = AeonReservoirForecaster(**options)
    assert model.iterative_forecast(y, 5) == pytest.approx(ours.forecast(5), rel=1e-9)


@pytest.mark.contract
@pytest.mark.filterwarnings("ignore:the network remembers")  # aeon's series are short
@pytest.mark.needs("aeon")
def test_aeon_adapter_passes_every_check_of_aeon():
    from greenfold.estimators.aeon import AeonReservoirForecaster

    from ..contracts import pass_every_check_of_aeon

    pass_every_check_of_aeon(AeonReservoirForecaster, 19)  # as many as aeon has


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("kind", [SequenceRegressor, ReservoirForecaster])
def test_columns_in_another_order_are_refused(kind, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((120, 2)).cumsum(0), columns=["a", "b"])
    table -= table.shift(3, fill_value=0.0)
    setting = {"n_neurons": 6, "leak": 1.0, "spectral_radius": 0.3, "max_iter": 2}
    model = kind(**setting, random_state=0)
    swapped = table[["b", "a"]]
    if kind is SequenceRegressor:
        model.fit(table, table["a"])
        use = model.predict
    else:
        model.fit(table)

        def use(given):
            return model.forecast(3, context=given)

    np.testing.assert_array_equal(use(table), use(table.to_numpy()))
    with pytest.raises(ValueError, match=r"have the columns a, b, in this order.*got b, a"):
        use(swapped)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model")._names == ["a", "b"]
