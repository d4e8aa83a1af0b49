"""What a sequence regressor does with weights, unknown targets and its washout."""

import copy

import numpy as np
import pytest
from sklearn.metrics import r2_score

from greenfold import SequenceRegressor
from greenfold.datasets import narma
from greenfold.estimators.sequences.choice import blocks

N = 600


@pytest.fixture(scope="module")
def data():
    return narma(N, rng=1)


def model(**options):
    fixed = {"random_state": 0, "ridge": 1e-6, "washout": 30, "see_input": False}
    if "input_weights" not in options:
        fixed["max_iter"] = 6
    return SequenceRegressor(12, **{**fixed, **options})


def test_a_weight_of_three_is_the_sequence_three_times(data):
    x, y = data
    a, b, c, d = x[:250], y[:250], x[250:450], y[250:450]
    made = model(input_weights="random")
    wanted = copy.deepcopy(made).fit([a, a, a, c], [b, b, b, d])
    found = made.fit([a, c], [b, d], [np.full(250, 3.0), np.ones(200)])
    assert found._x_scale.deviation == pytest.approx(wanted._x_scale.deviation, rel=1e-12)
    assert found._sums.n == wanted._sums.n
    # Rounding, which a penalty of 1e-6 multiplies.
    assert found.predict(x) == pytest.approx(wanted.predict(x), abs=1e-9)
    assert found.residual_ == pytest.approx(wanted.residual_, rel=1e-9)
    assert found.chosen_.error == pytest.approx(wanted.chosen_.error, rel=1e-9)


@pytest.mark.parametrize("ridge", [1e-6, "auto"])
def test_nan_is_a_weight_of_zero_everywhere(data, ridge):
    x, y = data
    unknown = np.zeros(N, dtype=bool)
    unknown[np.random.default_rng(0).choice(N, 200, replace=False)] = True
    weights = np.where(unknown, 0.0, 1.0)
    gaps, other = np.where(unknown, np.nan, y), np.where(unknown, 1e9, y)
    first = model(ridge=ridge).fit(x, gaps)
    second = model(ridge=ridge).fit(x, other, weights)
    assert np.array_equal(first.predict(x), second.predict(x))
    assert first.score(x, gaps) == second.score(x, other, weights)
    known = ~unknown[30:]
    wanted = r2_score(y[30:][known], first.predict(x)[30:][known])
    assert first.score(x, gaps) == pytest.approx(wanted, rel=1e-12)
    assert np.isfinite(first.predict(x)).all()
    first, second = first.partial_fit(x, gaps), second.partial_fit(x, other, weights)
    assert np.array_equal(first.readout_, second.readout_)
    assert np.array_equal(first.update(x, gaps), second.update(x, other, weights))
    assert np.array_equal(first.readout_, second.readout_)


def test_an_update_with_weights_is_ridge_with_weights(data):
    x, y = data
    made = model(input_weights="random").fit(x[:300], y[:300])
    weights = np.random.default_rng(0).uniform(0, 3, 300)
    rows = made.driven_.run(made._x_scale.down(x[300:, None]), made.state_)
    wanted = copy.deepcopy(made._sums)
    wanted.add(rows, made._y_scale.down(y[300:, None]), weights)
    made.update(x[300:], y[300:], weights)
    assert made._sums.products == pytest.approx(wanted.products, rel=1e-12)
    # The penalty stays that of the rows of the fit.
    V = wanted.solve(np.array([made.ridge_ * wanted.n_fitted / wanted.n]))[0][0]
    # Rounding times the condition number of the Gram matrix, which is 1e5 with the penalty.
    assert made.readout_ == pytest.approx(V, rel=1e-6)


def test_a_sequence_without_targets_changes_nothing(data):
    x, y = data
    wanted = model().fit([x[:400]], [y[:400]])
    both = model().fit([x[:400], 100 * x[:300]], [y[:400], np.full(300, np.nan)])
    assert np.array_equal(both.predict(x), wanted.predict(x))


def test_few_labels_at_the_end_still_choose_a_penalty(data):
    """The blocks are cut where the targets are."""
    x, y = data
    late = np.where(np.arange(N) < 500, np.nan, y)
    found = model(ridge="auto").fit(x, late)
    assert np.isfinite(found.predict(x)).all()
    weights = [(~np.isnan(late)).astype(float)]
    counts = [weights[0][block.steps].sum() for block in blocks(weights, 30)]
    assert sum(counts) == 100
    assert min(counts) >= 33


def test_the_washout_can_be_marked(data):
    x, y = data
    made = model(washout="auto").fit(x, y)
    plain, marked = made.predict(x), made.predict(x, mark_washout=True)
    assert made.washout_ > 0
    assert np.isnan(marked[: made.washout_]).all()
    assert np.array_equal(marked[made.washout_ :], plain[made.washout_ :])
    assert [np.isnan(one).sum() for one in made.predict([x, x[:5]], mark_washout=True)] == [
        made.washout_,
        5,
    ]
    with pytest.raises(ValueError, match="`mark_washout` has no effect after a `state`"):
        made.predict(x, made.state_, mark_washout=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x, y: m.fit(np.where(x > 0.4, np.nan, x), y), "`x` must be finite; got"),
        (lambda m, x, y: m.fit(x, y * np.nan), "`y` must hold targets with a"),
        (lambda m, x, y: m.fit(x, np.where(np.arange(N) < 30, y, np.nan)), "`y`"),
        (lambda m, x, y: m.fit(x, np.where(np.arange(N) < 31, y, np.nan)), "`y`"),
        (lambda m, x, y: m.fit(x, np.array(["a", "b"] * (N // 2))), "class labels"),
        (lambda m, x, y: m.fit(x, y, np.ones(5)), "`sample_weight`"),
        (lambda m, x, y: m.fit(x, y).score(x, y * np.nan), "`y` must hold at least two"),
        (lambda m, x, y: m.fit(x.reshape(6, 100, 1), y), r"pass list\(x\) for 6"),
    ],
)
def test_bad_targets_are_one_sentence(data, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(model(), *data)
