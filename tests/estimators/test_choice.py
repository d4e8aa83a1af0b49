"""What sequence estimators choose on steps that their solve has not seen."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import issparse

from greenfold import EchoStateNetwork, ReservoirForecaster, SequenceRegressor, load
from greenfold.datasets import lorenz, narma
from greenfold.dynamics.integration import DrivenNetwork
from greenfold.estimators.sequences.baselines import DelayRidge
from greenfold.estimators.sequences.choice import (
    WORST,
    Block,
    Candidate,
    DrivenPairs,
    Pairs,
    Scales,
    choose,
    last_blocks,
)
from greenfold.math.ridge import RidgeSums
from greenfold.networks import matrices

NETWORK = DrivenNetwork(EchoStateNetwork.cycle(3), np.ones((3, 1)), np.zeros(3))


def candidate(kind, errors, ridge=1.0, every=None):
    return Candidate(kind, NETWORK, 0, ridge, errors, errors if every is None else every)


def autoregressive(n, rng):
    found = rng.standard_normal(n)
    for t in range(1, n):
        found[t] += 0.8 * found[t - 1]
    return found


# The choice


def test_the_last_fifth_is_held_out_by_weight():
    ones = [np.ones(50), np.ones(60)]
    (only,) = last_blocks(ones, 10)
    assert only == (1, slice(42, 60))  # a fifth of 40 + 50 steps
    first, second = last_blocks([np.ones(100), np.ones(15)], 10)
    assert (first, second) == ((0, slice(86, 100)), (1, slice(10, 15)))
    weights = np.ones(100)
    weights[90:] = 9.0  # as much as the others
    (only,) = last_blocks([weights], 0)
    assert only.steps == slice(96, 100)
    pairs = Pairs.of([np.ones((50, 1)), np.ones((60, 1))], [np.ones((50, 1))] * 2)
    before = pairs.before(last_blocks(ones, 10))
    assert [len(one) for one in before.inputs] == [50, 42]


def test_a_difference_within_the_scatter_leaves_the_simpler():
    rng = np.random.default_rng(0)
    noise = rng.chisquare(2, (16, 5))
    simple = candidate("simple", 0.1 * noise)
    other = 0.1 * rng.chisquare(2, (16, 5))
    assert choose([simple, candidate("solved", 0.95 * other)]) is simple
    better = candidate("solved", 0.5 * 0.1 * noise)
    assert choose([simple, better]) is better
    worse = candidate("solved", 2 * simple.errors)
    assert choose([simple, worse, better]) is better


def test_steps_without_skill_count_little_but_failure_shows():
    """A chaotic loop: good for ten steps, then as bad as any; beside the mean."""
    rng = np.random.default_rng(0)
    loop = np.tile(np.append(np.geomspace(1e-6, 0.1, 10), np.full(90, 2.0)), (16, 1))
    loop *= rng.uniform(0.9, 1.1, loop.shape)
    mean = rng.uniform(0.9, 1.1, (16, 100))
    good = candidate("solved", loop)
    assert choose([candidate("mean", mean), good]) is good
    late, early = loop.copy(), loop.copy()
    late[3, 30:] = WORST  # as bad as an unrelated sample, which it is in any case
    assert choose([candidate("simpler", late), good]).kind == "simpler"
    early[3, 3:] = WORST
    assert choose([candidate("solved", early), good]) is good
    often = loop.copy()
    often[:14] = WORST
    assert choose([candidate("mean", mean), candidate("solved", often)]).kind == "mean"


def test_the_cost_weighs_orders_of_magnitude_alike():
    errors = np.full((4, 3), 1e-4)
    errors[:, 2] = 1.0
    scales = Scales(np.full(3, 1 / 3), 1e-20)
    assert scales.logs(errors) == pytest.approx(np.log(1e-4) / 3, rel=1e-12)


def test_of_one_kind_more_starts_choose():
    """Luck on the unseen steps is no merit; they alone compare with another kind."""
    rng = np.random.default_rng(0)
    few, many = rng.uniform(0.1, 0.2, (16, 5)), rng.uniform(0.1, 0.2, (64, 5))
    lucky = candidate("solved", 0.5 * few, every=4 * many)
    better = candidate("solved", few, every=many)
    assert choose([lucky, better]) is better
    simple = candidate("simple", few, every=100 * many)
    assert choose([simple, lucky, better]) is simple


def test_few_samples_and_larger_squares_leave_the_simpler():
    rng = np.random.default_rng(0)
    few, many = rng.uniform(0.1, 0.2, (16, 5)), rng.uniform(0.1, 0.2, (64, 5))
    simple = candidate("simple", few, every=many)
    better = candidate("solved", 0.5 * few, every=0.5 * many)  # by 0.35 in the log
    assert choose([simple, better]) is better
    assert choose([simple, replace(better, price=0.3)]).kind == "solved"
    assert choose([simple, replace(better, price=0.4)]) is simple
    fails = 0.5 * many
    fails[:3] = WORST  # the mean square is larger, the logs of most starts are smaller
    assert choose([simple, replace(better, every=fails)]) is simple
    fails = 0.01 * many
    fails[:3] = WORST
    assert choose([simple, replace(better, every=fails)]) is not simple


def test_many_starts_decide_where_few_scatter_but_do_not_contradict():
    """A tenth better with many starts; the few scatter by as much, or say otherwise."""
    rng = np.random.default_rng(0)
    few, many = rng.uniform(0.1, 0.2, (16, 5)), rng.uniform(0.1, 0.2, (64, 5))
    drawn = candidate("drawn weights", few, every=many)
    scatter = np.exp(0.6 * rng.standard_normal((16, 1)))
    scatter /= np.exp(np.log(scatter).mean())  # no difference on average
    solved = candidate("solved weights", few * scatter, every=0.8 * many)
    assert choose([drawn, solved]) is solved
    # 0.11 in the log, less the price, is not more than 5 %.
    assert choose([drawn, replace(solved, price=0.08)]) is drawn
    assert choose([drawn, replace(solved, errors=1.5 * few)]) is drawn
    delays = replace(drawn, kind="ridge on delays", first=3)
    assert choose([delays, solved]) is delays


def test_errors_that_nobody_sees_are_alike():
    """Of two exact forecasts, none is better; tiny errors are no merit if others fail."""
    rng = np.random.default_rng(0)
    exact, more = (candidate(kind, np.full((16, 20), 1e-30)) for kind in ("one", "two"))
    exact.errors[:] = 1e-22 * rng.uniform(0.9, 1.1, (16, 20))
    assert choose([exact, more]) is exact
    fails = candidate("fails", exact.errors.copy())
    fails.errors[:, 8:] = 0.5
    good = candidate("good", 1e-4 * rng.uniform(0.9, 1.1, (16, 20)))
    assert choose([fails, good]) is good


def test_a_few_starts_that_fail_do_not_hide_that_the_others_are_better():
    rng = np.random.default_rng(0)
    poor = candidate("poor", rng.uniform(0.8, 1.0, (16, 30)))
    good = candidate("good", 1e-3 * rng.uniform(0.5, 2.0, (16, 30)))
    good.errors[:2] = 3.0
    assert choose([poor, good]) is good


def test_sums_of_some_features_are_those_of_a_smaller_problem():
    rng = np.random.default_rng(0)
    F, y = rng.standard_normal((40, 5)), rng.standard_normal((40, 2))
    whole = RidgeSums.empty(5, 2).add(F, y)
    wanted, intercepts = RidgeSums.empty(2, 2).add(F[:, 2:4], y).solve(np.array([0.1]))
    found, own = whole.solve(np.array([0.1]), slice(2, 4))
    assert found[:, 2:4] == pytest.approx(wanted, rel=1e-12)
    assert own == pytest.approx(intercepts, rel=1e-9, abs=1e-12)
    assert not found[:, :2].any()
    assert not found[:, 4:].any()


# What estimators choose


@pytest.mark.parametrize("n_neurons", [5, 60])
@pytest.mark.parametrize("first", [0, 2])
def test_readouts_are_those_of_plain_equations(n_neurons, first):
    rng = np.random.default_rng(0)
    network = EchoStateNetwork.random(n_neurons, connectivity=1.0, rng=rng)
    driven = DrivenNetwork(
        network, rng.standard_normal((n_neurons, 1)), np.zeros(n_neurons)
    )
    x = [rng.standard_normal((n, 1)) for n in (30, 15)]
    run = DrivenPairs.of(driven, Pairs.of(x, [one**2 for one in x]), 4)
    run.pairs.weights[0][:] = rng.uniform(0, 2, 30)
    ridge, block, reads = 1e-3, Block(0, slice(10, 20)), slice(first, None)
    V, intercepts = run.readouts([block], np.array([ridge]), reads)
    S, y, w = (
        np.concatenate([a[4:10], a[20:], b[4:]])
        for a, b in (run.states, run.pairs.targets, run.pairs.weights)
    )
    S, share = S[:, reads], (w / w.sum())[:, None]
    mean, middle = (share * S).sum(0), (share * y).sum(0)
    A = (share * (S - mean)).T @ (S - mean) + ridge * np.eye(S.shape[1])
    plain = np.linalg.solve(A, (share * (S - mean)).T @ (y - middle))
    # Rounding times a condition of at most 1e4.
    np.testing.assert_allclose(V[0, reads], plain, atol=1e-11)
    assert not V[0, :first].any()
    assert intercepts[0] == pytest.approx(middle - mean @ plain, abs=1e-11)


def test_noise_is_predicted_by_its_mean():
    """R² of a readout of k free parameters on n samples would be about −k / n."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 4500))
    model = SequenceRegressor(30, max_iter=20, random_state=0).fit(x[:500], y[:500])
    assert model.score(x[500:], y[500:]) > -0.03
    assert model.chosen_.others["mean"] == pytest.approx(model.chosen_.error, rel=0.1)


def test_forecasts_of_short_noise_are_no_worse_than_ridge_on_delays():
    """Before, solved weights had an error of hundreds of deviations here."""
    z, errors = autoregressive(420, np.random.default_rng(0)), []
    for seed, end in enumerate(range(200, 400, 25)):
        model = ReservoirForecaster(20, max_iter=15, random_state=seed).fit(z[:end])
        before = z[:end, None]
        both = model.forecast(10), DelayRidge.fit(before).forecast(10, before)[:, 0]
        errors.append([np.sqrt(np.mean((one - z[end : end + 10]) ** 2)) for one in both])
    own, simple = np.median(errors, axis=0)
    assert own < 1.15 * simple
    assert np.max(errors) < 5 * z.std()


def test_loops_that_diverge_with_all_samples_are_seen():
    """A ridge on delays is exact for growth: by a factor of 380 in a fifth of the first."""

    class Alone(ReservoirForecaster):
        def _accepted(self, found, pairs):
            return found[0], self._drive(pairs, found[0])

    for growth, stays in ((1.16, False), (1.02, True)):
        z = growth ** np.arange(200.0)
        model = Alone(10, max_iter=2, random_state=0).fit(z)
        assert model.chosen_.weights == "none"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ahead = model.forecast(39)
        assert np.isfinite(ahead).all() == stays
        pairs = model._next_samples([z[:, None]], None)
        skilled = candidate("alone", np.full((16, 5), 0.1), model.ridge_)
        run = DrivenPairs.of(model.driven_, pairs, model.washout_)
        assert model._stays(run, skilled) == stays


def test_what_diverges_is_not_kept_if_anything_else_stays():
    class Bounded(ReservoirForecaster):
        def _stays(self, run, best):
            return self._first == 0  # as if all ridges on delays diverged

    z = np.sin(np.arange(200) / 7)
    options = {"n_neurons": 10, "leak": 1.0, "max_iter": 2, "random_state": 0}
    options["spectral_radius"] = 0.5
    assert ReservoirForecaster(**options).fit(z).chosen_.weights == "none"
    chosen = Bounded(**options).fit(z).chosen_
    assert chosen.weights in ("drawn", "solved")
    assert chosen.others["ridge on delays"] < chosen.error


def test_the_radius_follows_the_data():
    """All coordinates of Lorenz are seen: memory is a burden, and the solve sheds it."""
    model = ReservoirForecaster(20, see_input=False, random_state=0).fit(lorenz(600, rng=0))
    chosen = model.chosen_
    assert chosen.weights == "solved"
    radius = np.abs(np.linalg.eigvals(model.driven_.network.weights)).max()
    assert chosen.spectral_radius == pytest.approx(radius, rel=1e-12)
    assert chosen.error < min(chosen.others.values())
    assert chosen.n_unseen == pytest.approx(600 / 5, abs=30)


@pytest.mark.contract
def test_a_start_that_fails_does_not_decide():
    """With one draw, loops of x alone are valid for 4.1 Lyapunov times (of 22 steps).

    With five they are for 6.8; a limit of five leaves room for other BLAS libraries.
    """
    x = lorenz(6000, rng=7)[:, :1]
    model = ReservoirForecaster(100, random_state=7).fit(x[:2000])
    starts = np.linspace(2200, 5500, 30).astype(int)
    made = np.stack([model.forecast(200, context=x[s - 200 : s])[:, 0] for s in starts])
    wrong = np.abs(made - np.stack([x[s : s + 200, 0] for s in starts])) > 0.4 * x.std()
    wrong[:, -1] = True
    assert wrong.argmax(1).mean() > 5 * 22


def test_a_network_with_sparse_weights_has_a_radius(monkeypatch):
    monkeypatch.setattr(matrices, "SPARSE_NEURONS", 50)  # 1000, where a fit takes long
    monkeypatch.setattr(matrices, "SPARSE_SHARE", 0.5)
    z = np.sin(np.arange(120) / 3) + 0.1 * np.random.default_rng(0).standard_normal(120)
    model = ReservoirForecaster(60, see_input=1, leak=1.0, random_state=0)
    model.set_params(spectral_radius=0.5, input_weights="random").fit(z)
    assert issparse(model.driven_.network.weights)
    assert model.chosen_.spectral_radius == pytest.approx(0.5, rel=1e-6)
    assert np.isfinite(
        model.set_params(input_weights="solved", max_iter=4).fit(z).forecast(5)
    ).all()


def test_the_choice_is_printed_in_one_line_and_saved(tmp_path):
    z = lorenz(400, rng=0)
    model = ReservoirForecaster(12, max_iter=5, random_state=0).fit(z)
    shown = repr(model.chosen_)
    assert "\n" not in shown
    for part in ("penalty", "unseen samples", "steps ahead", "last value"):
        assert part in shown
    model.save(tmp_path / "it.gfm")
    again = load(tmp_path / "it.gfm")
    assert again.chosen_ == model.chosen_
    assert np.array_equal(again.forecast(20), model.forecast(20))


def test_a_given_penalty_and_given_inputs_are_kept():
    z = lorenz(400, rng=0)
    model = ReservoirForecaster(12, ridge=1e-5, see_input=2, max_iter=5, random_state=0)
    model.fit(z)
    assert model.ridge_ == model.chosen_.ridge == 1e-5
    assert model.chosen_.see_input == 2
    assert model.readout_.shape == (12 + 2 * 3, 3)
    assert "ridge on delays" in model.chosen_.others


def test_a_readout_of_the_inputs_alone_is_ridge_on_delays():
    rng = np.random.default_rng(1)
    z = autoregressive(400, rng) + 0.5 * rng.standard_normal(400)
    model = ReservoirForecaster(2, input_weights="random", random_state=0).fit(z)
    assert model.chosen_.weights == "none"
    n, zs = model.chosen_.see_input, (z - z.mean()) / z.std()
    assert model.readout_.shape == (n, 1)
    # By the normal equations; the washout leaves out the first n steps.
    rows = np.array([zs[t - n + 1 : t + 1][::-1] for t in range(n, 399)])
    centred, y = rows - rows.mean(0), zs[n + 1 :]
    gram = centred.T @ centred / len(rows) + model.ridge_ * np.eye(n)
    V = np.linalg.solve(gram, centred.T @ y / len(rows))
    assert model.readout_[:, 0] == pytest.approx(V, rel=1e-9, abs=1e-12)
    wanted = (zs[-n:][::-1] - rows.mean(0)) @ V + y.mean()
    assert model.forecast(1)[0] == pytest.approx(wanted * z.std() + z.mean(), rel=1e-9)


def test_the_network_drives_alike_whatever_the_number_of_channels():
    made = ReservoirForecaster(300, random_state=0)
    sizes = [(made._drawn(n, 0).weights ** 2).sum(1).mean() for n in (1, 4, 64)]
    # Uniform entries of variance 0.3² / 3 / n, whose squares scatter by 0.9 of their mean.
    assert sizes == pytest.approx([0.03] * 3, rel=3 * 0.9 / 300**0.5)


@pytest.mark.parametrize("see_input", [0, 1, 4])
def test_seen_inputs_in_every_use(see_input):
    x, y = narma(700, rng=0)
    model = SequenceRegressor(
        8, see_input=see_input, input_weights="random", washout=20, random_state=0
    ).fit(x[:400], y[:400])
    driven, z = model.driven_, (x - x[:400].mean()) / x[:400].std()
    state, rows = np.zeros(8), []
    for index, now in enumerate(z):
        pushed = driven.network.weights @ state + driven.weights[:, 0] * now + driven.bias
        state = np.tanh(pushed)
        seen = [z[index - lag] if index >= lag else 0.0 for lag in range(see_input)]
        rows.append(np.append(state, seen))
    made = np.array(rows) @ model.readout_[:, 0] + model.intercept_[0]
    wanted = made * y[:400].std() + y[:400].mean()
    assert model.predict(x) == pytest.approx(wanted, abs=1e-10)
    first, state = model.predict(x[:300], return_state=True)
    second = model.predict(x[300:], state)
    assert np.concatenate([first, second]) == pytest.approx(wanted, abs=1e-10)
    before = model.predict(x[400:410], model.state_)
    assert before == pytest.approx(wanted[400:410], abs=1e-10)
    updated = model.update(x[400:500], y[400:500], forgetting=1.0)
    assert updated[0] == pytest.approx(before[0], abs=1e-9)
    assert model.predict(x[500:503], model.state_).shape == (3,)


def test_a_season_is_seen_without_being_told():
    rng = np.random.default_rng(0)
    season = rng.standard_normal(17)
    z = np.tile(season, 20) + 0.1 * rng.standard_normal(340)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ReservoirForecaster(10, max_iter=10, random_state=0).fit(z)
    wanted = np.tile(season, 3)[:34]
    assert np.sqrt(np.mean((model.forecast(34) - wanted) ** 2)) < 0.15
    assert model.chosen_.see_input >= 17


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"see_input": -1}, "'see_input' parameter of ReservoirForecaster must be"),
        ({"see_input": "some"}, "'see_input' parameter of ReservoirForecaster must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        ReservoirForecaster(5, **options).fit(lorenz(100, rng=0))
