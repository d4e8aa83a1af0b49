"""The estimators: scikit-learn's contract, the mathematics under it, hostile input."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import base
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from greenfold._base.model_files import pack, unpack
from greenfold.datasets import load_dataset
from greenfold.estimators.pooled import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
    SlowEngineWarning,
    feature_map,
)
from greenfold.estimators.pooled.estimators import fit_head
from greenfold.estimators.pooled.feature_map import N_ROWS, ROW_WEIGHTS
from greenfold.math.decisions import expected_calibration_error

from ...conftest import LIBRARIES
from ...contracts import pass_every_check, pass_quick_checks

clone: Any = base.clone
SMALL: dict[str, Any] = {
    "n_scales": 2,
    "n_oscillators": 16,
    "n_readouts": 16,
    "random_state": 0,
}


def waves(n_cases: int, n_steps: int = 60, n_classes: int = 3, seed: int = 0):
    """Oscillations of different periods that begin anywhere: nothing is aligned."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_cases) % n_classes
    period = (6.0 + 3 * codes)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (n_cases, 1))
    X = np.sin(2 * np.pi * np.arange(n_steps) / period + phase)
    return X + 0.5 * rng.standard_normal(X.shape), np.array(["a", "b", "c"])[codes]


@pytest.fixture(scope="module")
def three():
    X, y = waves(120)
    return X[:60], y[:60], X[60:], y[60:]


@pytest.fixture(scope="module")
def two():
    X, y = waves(120, n_classes=2)
    return X[:60], y[:60], X[60:], y[60:]


@pytest.fixture(scope="module")
def solved(three):
    """One fit to look at from several sides."""
    return PooledReservoirClassifier(**SMALL).fit(*three[:2])


# scikit-learn's contract

KINDS = {
    kind.__name__: kind
    for kind in (ReservoirFeatures, PooledReservoirClassifier, PooledReservoirRegressor)
}


@pytest.mark.parametrize("kind", KINDS)
def test_pass_the_quick_checks_of_scikit_learn(kind):
    pass_quick_checks(KINDS[kind](n_scales=1, n_readouts=16, n_oscillators=2))


def test_without_numba_the_slow_engine_says_so_once(three, monkeypatch):
    monkeypatch.setattr(feature_map, "has_numba", lambda: False)
    X, y, *_ = three
    feature_map.auto_engine.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PooledReservoirClassifier(**SMALL, engine="array").fit(X, y)
        assert not caught  # the user has asked for it
        for _ in range(2):
            fitted = PooledReservoirClassifier(**SMALL).fit(X, y)
            assert fitted.map_.engine == "array"
    feature_map.auto_engine.cache_clear()
    assert [one.category for one in caught] == [SlowEngineWarning]
    assert "greenfold[fast]" in str(caught[0].message)


@pytest.mark.contract
@pytest.mark.parametrize("kind", KINDS)
def test_pass_every_check_of_scikit_learn_without_a_skip(kind):
    pass_every_check(f"{kind}(n_scales=2, n_readouts=16, n_oscillators=8)")


@pytest.mark.contract
def test_importing_imports_no_optional_package():
    code = (
        "import sys, greenfold.estimators.pooled, greenfold.estimators.pooled.estimators\n"
        "assert not {'aeon', 'numba', 'onnx', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_work_with_the_tools_of_scikit_learn(three, solved):
    X, y, X_test, _ = three
    assert cross_val_score(PooledReservoirClassifier(**SMALL), X, y, cv=3).mean() > 0.8
    piped = make_pipeline(ReservoirFeatures(**SMALL), RidgeCV())
    assert piped.fit(X, y == "a").predict(X_test).shape == (60,)
    fitted = solved
    wanted = fitted.decision_function(X_test)
    for copy in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X, y)):
        np.testing.assert_array_equal(copy.decision_function(X_test), wanted)


def test_names_of_features_are_distinct_and_as_many(three):
    fitted = ReservoirFeatures(**SMALL).fit(three[0])
    names = fitted.get_feature_names_out()
    assert len(set(names)) == len(names) == fitted.transform(three[0][:1]).shape[1]
    assert names[0] == "scale0_above0_difference0_readout0"


# The mathematics


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 2.0, "b": 1.0, "c": 0.5}])
def test_classifier_is_ridge_on_standardised_weighted_features(three, class_weight):
    X, y, X_test, _ = three
    fitted = PooledReservoirClassifier(class_weight=class_weight, **SMALL).fit(X, y)
    features = ReservoirFeatures(**SMALL).fit(X)
    F, F_test = (features.transform(part).astype(np.float64) for part in (X, X_test))
    rows = np.tile(np.repeat(ROW_WEIGHTS, 3 * 16), 2)
    assert len(rows) == F.shape[1] == 2 * N_ROWS * 48
    mean, deviation = F.mean(axis=0), F.std(axis=0)
    kept = deviation > 1e-5 * np.abs(mean)
    rows = rows[kept]
    F, F_test = (((G - mean)[:, kept] / deviation[kept]) * rows for G in (F, F_test))
    Y = np.where(y[:, None] == ["a", "b", "c"], 1.0, -1.0)
    weights = None
    if class_weight is not None:
        counts = {c: (y == c).sum() for c in "abc"}
        balanced = {c: len(y) / 3 / n for c, n in counts.items()}
        used = balanced if class_weight == "balanced" else class_weight
        weights = np.array([used[c] for c in y])
    judge = RidgeCV(alphas=[fitted.penalty_]).fit(F, Y, sample_weight=weights)
    # Features and their products are in single precision; scores are of order one.
    np.testing.assert_allclose(
        fitted.decision_function(X_test), judge.predict(F_test), atol=2e-3
    )


def test_held_out_scores_tell_the_accuracy_on_new_series(three, solved):
    X, y, X_test, y_test = three
    fitted = solved
    held_out = fitted.held_out_scores_
    assert held_out is not None
    found = (fitted.classes_[held_out.argmax(axis=1)] == y).mean()
    # In-sample scores would say 1. Binomial deviation at 60 cases each, three of them.
    assert found == pytest.approx(fitted.score(X_test, y_test), abs=3 * 0.06)
    mse = ((held_out - np.where(y[:, None] == fitted.classes_, 1, -1)) ** 2).mean()
    inside = fitted.decision_function(X)
    assert mse > ((inside - np.where(y[:, None] == fitted.classes_, 1, -1)) ** 2).mean()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_calibrated_and_agree_with_the_labels(n_classes):
    X, y = waves(600, n_steps=24, n_classes=n_classes, seed=5)
    X += 1.2 * np.random.default_rng(6).standard_normal(X.shape)
    fitted = PooledReservoirClassifier(**SMALL).fit(X[:200], y[:200])
    p = fitted.predict_proba(X[200:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(
        fitted.classes_[p.argmax(axis=1)], fitted.predict(X[200:])
    )
    codes = np.searchsorted(fitted.classes_, y[200:])
    accuracy = (p.argmax(axis=1) == codes).mean()
    assert 0.6 < accuracy < 0.95  # there is something to be uncertain about
    # 400 cases in some eight bins: each has a binomial deviation of 0.06.
    assert expected_calibration_error(p, codes) < 0.07


def test_regressor_predicts_the_period_of_waves(rng):
    period = rng.uniform(5, 15, 120)
    X = np.sin(2 * np.pi * np.arange(60) / period[:, None] + rng.uniform(0, 6, (120, 1)))
    both = np.stack([period, 1000 / period], axis=1)
    one = PooledReservoirRegressor(**SMALL).fit(X[:80], period[:80])
    two = PooledReservoirRegressor(**SMALL).fit(X[:80], both[:80])
    assert one.score(X[80:], period[80:]) > 0.97
    assert one.predict(X).shape == (120,)
    assert two.predict(X).shape == (120, 2)
    # Targets in units of very different size are learnt equally well.
    errors = (two.predict(X[80:]) - both[80:]).std(axis=0) / both[80:].std(axis=0)
    assert errors.max() < 0.2
    assert two.held_out_predictions_ is not None
    apart = (two.held_out_predictions_ - both[:80]).std(axis=0) / both[:80].std(axis=0)
    assert apart.max() < 0.25


def test_features_do_not_fit_into_memory_and_are_made_twice(three, solved, monkeypatch):
    X, y, X_test, _ = three
    kept = solved
    monkeypatch.setattr("greenfold.estimators.pooled.estimators.KEPT_BYTES", 0)
    made = []
    original = type(kept.map_).blocks

    def blocks(self, series, scale, n_jobs=None):
        made.append(scale)
        return original(self, series, scale, n_jobs)

    monkeypatch.setattr(type(kept.map_), "blocks", blocks)
    again = PooledReservoirClassifier(**SMALL).fit(X, y)
    assert made == [0, 1] * 2
    np.testing.assert_array_equal(
        again.decision_function(X_test), kept.decision_function(X_test)
    )


def test_amplitude_counts_unless_each_series_is_scaled_by_its_own():
    X, _ = waves(120, n_classes=1, seed=3)
    loud = np.arange(120) % 2
    X *= 1 + loud[:, None]
    scores = {}
    for scaling in ("set", "series"):
        one = PooledReservoirClassifier(scaling=scaling, **SMALL).fit(X[:80], loud[:80])
        scores[scaling] = one.score(X[80:], loud[80:])
    assert scores["set"] > 0.95
    assert scores["series"] < 0.75


@pytest.mark.parametrize("scaling", ["set", "series"])
@pytest.mark.parametrize("unit", [2.0**-900, 2.0**900])
def test_units_do_not_matter(three, scaling, unit):
    """Those whose squares leave floating point neither."""
    X, y, X_test, _ = three
    one = PooledReservoirClassifier(scaling=scaling, **SMALL).fit(X, y)
    other = PooledReservoirClassifier(scaling=scaling, **SMALL).fit(unit * X, y)
    np.testing.assert_allclose(
        other.decision_function(unit * X_test), one.decision_function(X_test), atol=1e-3
    )


# Series of every sort


def test_unequal_lengths_channels_and_gaps(rng):
    X, y = waves(90, n_steps=80)
    series = []
    for i, one in enumerate(X):
        both = np.stack([one, rng.standard_normal(80)])[:, : 50 + i % 31].copy()
        both[1, 5:9] = np.nan
        series.append(both)
    fitted = PooledReservoirClassifier(**SMALL).fit(series[:60], y[:60])
    assert fitted.n_channels_in_ == 2
    assert fitted.n_features_in_ == 80
    # The second channel is noise; chance is 1 in 3, with a deviation of 0.09.
    assert fitted.score(series[60:], y[60:]) >= 0.6
    # Longer than every training series, and much shorter.
    assert fitted.predict([np.ones((2, 200)), np.ones((2, 3))]).shape == (2,)


def test_padding_with_nan_is_the_same_as_a_shorter_series(three):
    X, y, X_test, _ = three
    series = [one[: 40 + i % 20] for i, one in enumerate(X_test)]
    padded = np.full((len(series), 70), np.nan)
    for row, one in zip(padded, series, strict=True):
        row[5 : 5 + len(one)] = one
    fitted = PooledReservoirClassifier(**SMALL).fit([*X, X[0][:30]], [*y, y[0]])
    np.testing.assert_array_equal(
        fitted.decision_function(padded), fitted.decision_function(series)
    )


def test_gaps_are_filled_by_straight_lines(three, solved):
    _, _, X_test, _ = three
    fitted = solved
    holes = X_test.copy()
    holes[:, 10:13] = np.nan
    filled = X_test.copy()
    filled[:, 10:13] = X_test[:, [9]] + (X_test[:, [13]] - X_test[:, [9]]) * [
        0.25,
        0.5,
        0.75,
    ]
    np.testing.assert_allclose(
        fitted.decision_function(holes), fitted.decision_function(filled), atol=1e-4
    )


def test_a_channel_without_values_counts_as_its_mean(rng):
    X, y = waves(60)
    both = np.stack([X, 3 + 0.1 * rng.standard_normal(X.shape)], axis=1)
    fitted = PooledReservoirClassifier(**SMALL).fit(both, y)
    silent, constant = both[:5].copy(), both[:5].copy()
    silent[:, 1] = np.nan
    constant[:, 1] = both[:, 1].mean()
    np.testing.assert_allclose(
        fitted.decision_function(silent), fitted.decision_function(constant), atol=1e-3
    )


@pytest.mark.parametrize("n_steps", [1, 2, 3, 5])
def test_very_short_series(n_steps, rng):
    X = rng.standard_normal((30, n_steps))
    y = X[:, 0] > 0
    fitted = PooledReservoirClassifier(**SMALL).fit(X[:20], y[:20])
    assert fitted.score(X[20:], y[20:]) > 0.6


@pytest.mark.filterwarnings("ignore:.* do not change over time")
def test_constant_series_are_no_trouble(three):
    X, y, X_test, _ = three
    for scaling in ("set", "series"):
        fitted = PooledReservoirClassifier(scaling=scaling, **SMALL)
        fitted.fit(np.r_[X, np.full((2, 60), 7.0)], [*y, "a", "b"])
        assert np.isfinite(fitted.predict_proba(np.zeros((1, 60)))).all()
        assert np.isfinite(fitted.predict_proba(X_test)).all()
    same = PooledReservoirClassifier(**SMALL).fit(np.ones((6, 9)), [0, 1] * 3)
    np.testing.assert_allclose(same.predict_proba(np.ones((1, 9))), 0.5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_of_other_libraries(library, three):
    xp = importlib.import_module(library)
    X, y, X_test, y_test = three
    features = ReservoirFeatures(**SMALL).fit(X)
    found = features.transform(xp.asarray(X_test))
    assert type(found) is type(xp.asarray(X))
    near = np.abs(np.asarray(found) - features.transform(X_test)) < 1e-3
    assert near.mean() > 0.995
    fitted = PooledReservoirClassifier(**SMALL).fit(xp.asarray(X), y)
    assert fitted.score(xp.asarray(X_test), y_test) > 0.8
    assert isinstance(fitted.predict_proba(xp.asarray(X_test)), np.ndarray)
    # What was fitted on one library predicts on another.
    assert (fitted.predict(X_test) == fitted.predict(xp.asarray(X_test))).mean() > 0.97


def test_the_same_seed_gives_the_same_model_and_another_does_not(three, solved):
    X, y, X_test, _ = three
    scores = [
        PooledReservoirClassifier(**{**SMALL, "random_state": seed})
        .fit(X, y)
        .decision_function(X_test)
        for seed in (0, np.random.RandomState(0), 1)
    ]
    wanted = solved.decision_function(X_test)
    np.testing.assert_array_equal(scores[0], wanted)
    np.testing.assert_array_equal(scores[1], wanted)
    assert (scores[2] != wanted).any()


def test_the_order_of_the_training_series_does_not_matter(three, solved, rng):
    X, y, X_test, _ = three
    order = rng.permutation(len(X))
    again = PooledReservoirClassifier(**SMALL).fit(X[order], y[order])
    # Sums in another order, in single precision; a count may differ by a step.
    told = again.predict_proba(X_test)
    assert told == pytest.approx(solved.predict_proba(X_test), abs=1e-3)
    assert (again.held_out_cases_ == np.arange(len(X))).all()


# Hostile input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_scales": 0}, r"'n_scales' parameter of .* an int in the range \[1, "),
        ({"n_oscillators": 2.5}, "'n_oscillators' parameter"),
        ({"n_readouts": 20}, "'n_readouts' .* a multiple of 8, at least 16. Got 20"),
        ({"n_readouts": 8}, "'n_readouts'"),
        ({"scaling": "none"}, "'scaling' .* a str among .*'series'.* Got 'none'"),
        ({"engine": "gpu"}, "'engine'"),
        ({"n_jobs": 0}, "'n_jobs'"),
        ({"class_weight": "even"}, "'class_weight'"),
        ({"class_weight": {"a": 0.0, "b": 1.0, "c": 1.0}}, "'class_weight'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_parameters_out_of_range(three, parameters, message):
    with pytest.raises(ValueError, match=message):
        PooledReservoirClassifier(**{**SMALL, **parameters}).fit(*three[:2])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((6, 9), np.inf), "infinity"),
        (
            [np.arange(5.0), np.full(4, np.nan)] * 3,
            "no value at all in the series at index 1",
        ),
        ([np.ones((2, 5)), np.ones((3, 4))] * 3, "the same number of channels; got 2 to 3"),
        ([np.ones(5), np.ones(0)] * 3, "empty series at index 1"),
        (np.ones((6, 2, 0)), "0"),
    ],
    ids=["infinity", "all missing", "channels", "empty", "no steps"],
)
def test_series_that_can_not_be_read(X, message):
    with pytest.raises(ValueError, match=message):
        PooledReservoirClassifier(**SMALL).fit(X, [0, 1] * 3)


def test_predictions_of_another_shape(three, solved):
    X, fitted = three[0], solved
    with pytest.raises(ValueError, match="X has 1 features, but .* expecting 60"):
        fitted.predict(X[:, :1])
    with pytest.raises(ValueError, match="X has 2 channels, but .* expecting 1"):
        fitted.predict(np.ones((1, 2, 60)))
    with pytest.raises(ValueError, match="X has 3 channels"):
        fitted.predict([np.ones((3, 60)), np.ones((3, 61))])
    with pytest.raises(ValueError, match="1000 features, .* expecting 60 .* 4 to 960"):
        fitted.predict(np.ones((3, 1000)))
    # Features are pooled over time: other lengths will do, however they are given.
    short = fitted.predict_proba(X[:, 10:])
    np.testing.assert_array_equal(short, fitted.predict_proba(X[:, None, 10:]))
    np.testing.assert_array_equal(short, fitted.predict_proba(list(X[:, 10:])))
    assert fitted.predict([X[0][:50], X[0]]).shape == (2,)
    with pytest.raises(NotFittedError):
        PooledReservoirClassifier().predict(X)


def test_labels_that_can_not_be(three):
    X = three[0]
    with pytest.raises(ValueError, match="one class"):
        PooledReservoirClassifier(**SMALL).fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PooledReservoirClassifier(**SMALL).fit(X, np.arange(59) % 2)
    with pytest.raises(ValueError, match="requires y"):
        PooledReservoirClassifier(**SMALL).fit(X, None)  # pyright: ignore[reportArgumentType]


# Description


@pytest.fixture(scope="module")
def described(two):
    return pack(PooledReservoirClassifier(**SMALL).fit(*two[:2]))


@pytest.mark.parametrize("scaling", ["set", "series"])
@pytest.mark.parametrize("labels", [int, str, object])
def test_a_described_classifier_predicts_exactly_as_the_original(two, scaling, labels):
    X, y, X_test, _ = two
    y = (y == "a").astype(int) if labels is int else y.astype(labels)
    weights = {0: 1.5} if labels is int else {"a": 1.5}
    fitted = PooledReservoirClassifier(scaling=scaling, class_weight=weights, **SMALL)
    fitted.fit(X, y)
    metadata, arrays = pack(fitted)
    assert all(array.dtype.kind in "iufU" for array in arrays.values())
    again: Any = unpack(json.loads(json.dumps(metadata)), arrays)
    assert again.classes_.dtype == fitted.classes_.dtype
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.predict_proba(X_test), fitted.predict_proba(X_test))
    np.testing.assert_array_equal(again.predict(X_test), fitted.predict(X_test))
    other = X_test[:, 1:]
    np.testing.assert_array_equal(again.predict(other), fitted.predict(other))


def test_a_described_regressor_and_transformer(rng):
    X = [rng.standard_normal((2, 30 + i % 3)) for i in range(20)]
    y = rng.standard_normal((20, 3))
    for fitted in (
        PooledReservoirRegressor(**SMALL).fit(X, y),
        PooledReservoirRegressor(**SMALL).fit(X, y[:, 0]),
    ):
        again: Any = unpack(*pack(fitted))
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    features = ReservoirFeatures(**SMALL).fit(X)
    again = unpack(*pack(features))
    np.testing.assert_array_equal(again.transform(X), features.transform(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, a: m["map_"].update(layout=99), "layout is 99"),
        (lambda m, a: m.update(kind="os.system"), "holds a 'os.system'"),
        (lambda m, a: m["parameters"].update(n_readouts=17), "n_readouts"),
        (lambda m, a: m["parameters"].update(n_readouts=24), "shape"),
        (lambda m, a: m["map_"]["scales"].pop(), "number is wrong"),
        (lambda m, a: m["map_"]["scales"][0].update(stride=0), "stride"),
        (lambda m, a: m.update(slope_=float("nan")), "slope"),
        (lambda m, a: a.pop("map_scales_1_u"), "missing"),
        (lambda m, a: a.update(head_intercept=np.zeros(7)), "shape"),
        (lambda m, a: a["head_coefficients_0"].__setitem__(0, np.nan), "not finite"),
        (lambda m, a: a.update(classes=np.array(["a", "a"])), "distinct"),
        (lambda m, a: a.update(map_deviation=np.zeros(1)), "not positive"),
        (lambda m, a: a["map_scales_1_decay_times"].__setitem__(0, -1.0), "not positive"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(described, change, message):
    metadata, arrays = described
    metadata = json.loads(json.dumps(metadata))
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(metadata, arrays)
    with pytest.raises(ValueError, match=message):
        unpack(metadata, arrays)


# Real data


def test_real_series_that_are_not_aligned(data_dir):
    # Published: ROCKET 0.941 on OSULeaf, ridge on the raw series 0.4; 200 / 242 series.
    X, y = load_dataset("OSULeaf", "train", data_dir=data_dir)
    X_test, y_test = load_dataset("OSULeaf", "test", data_dir=data_dir)
    fitted = PooledReservoirClassifier(random_state=0).fit(X, y)
    assert fitted.score(X_test, y_test) > 0.92


def test_fit_head_is_what_the_classifier_uses(two):
    X, y, X_test, _ = two
    fitted = PooledReservoirClassifier(**SMALL).fit(X, y)
    series = fitted._read(X, fitting=False)
    targets = np.where(y == "b", 1.0, -1.0)[:, None]
    found = fit_head(fitted.map_, series, targets)
    test = fitted._read(X_test, fitting=False)
    # Sums over the series in single precision, which the classifier orders by content.
    made = fitted.map_.scores(test, found.head)[:, 0]
    np.testing.assert_allclose(made, fitted.decision_function(X_test), atol=1e-5)
    held_out: Any = fitted.held_out_scores_
    np.testing.assert_allclose(found.held_out[:, 0], held_out, atol=1e-5)


def test_a_series_of_weight_two_counts_as_two(two):
    """Up to rounding of features in single precision, in whatever order they come."""
    X, y, X_test, _ = two
    weights = np.arange(len(X)) % 3
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), weights))
    made = PooledReservoirClassifier(**SMALL).fit(X, y, sample_weight=weights)
    again = PooledReservoirClassifier(**SMALL).fit(X[rows], y[rows])
    np.testing.assert_allclose(
        made.predict_proba(X_test), again.predict_proba(X_test), atol=1e-4
    )
    assert again.penalty_ == pytest.approx(made.penalty_, rel=1e-5)
    copies = np.where(X[rows][:, None, :] == X, 1, 0).all(2).argmax(1)
    held_out: Any = made.held_out_cases_
    assert set(copies[again.held_out_cases_]) == set(held_out)


def test_weights_of_series_are_those_of_classes_and_leave_out_the_zeros(two):
    X, y, X_test, _ = two
    weights = np.where(np.arange(len(X)) < 20, 2.0, 1.0)
    weights[-5:] = 0.0
    made = PooledReservoirClassifier(**SMALL).fit(X, y, sample_weight=weights)
    assert (made.held_out_cases_ == np.arange(len(X) - 5)).all()
    np.testing.assert_allclose(
        PooledReservoirClassifier(**SMALL)
        .fit(X[:-5], y[:-5], sample_weight=weights[:-5])
        .predict_proba(X_test),
        made.predict_proba(X_test),
    )
    heavy = np.where(y == y[0], 50.0, 1.0)
    one_sided = PooledReservoirClassifier(**SMALL).fit(X, y, sample_weight=heavy)
    assert (one_sided.predict(X_test) == y[0]).sum() >= (made.predict(X_test) == y[0]).sum()
    balanced = {y[0]: 50.0}
    same = PooledReservoirClassifier(class_weight=balanced, **SMALL).fit(X, y)
    np.testing.assert_allclose(
        same.decision_function(X_test), one_sided.decision_function(X_test)
    )
