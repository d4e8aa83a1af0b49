"""What every estimator does with series that are masked, ragged, huge or tiny."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from greenfold import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    RegressionTask,
    Reservoir,
    ReservoirClassifier,
    ReservoirForecaster,
    ReservoirRegressor,
    SampleStimuli,
    SequenceRegressor,
    noisy_accuracy,
    optimize,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats

pytestmark = pytest.mark.usefixtures("compiled")

X, Y = synthetic_heartbeats(40, n_steps=20, rng=0)
#: A target that the series hold.
T = X[:, -3] - 0.5 * X[:, -5] + 0.1 * np.random.default_rng(0).standard_normal(40)
SMALL: dict[str, Any] = {"n_neurons": 12, "random_state": 0}
FEW: dict[str, Any] = {
    "n_scales": 2,
    "n_oscillators": 4,
    "n_readouts": 16,
    "random_state": 0,
}
MAKE: dict[str, Any] = {
    "classifier": lambda: ReservoirClassifier(**SMALL),
    # A network with one optimum: rounding chooses between two within the tolerance.
    "regressor": lambda: ReservoirRegressor(**{**SMALL, "random_state": 1}),
    "pooled classifier": lambda: PooledReservoirClassifier(**FEW),
    "pooled regressor": lambda: PooledReservoirRegressor(**FEW),
}


def target(name: str) -> np.ndarray:
    return T if "regressor" in name else Y


def masked() -> Any:
    """The first series without two values, under which garbage lies."""
    garbage = X.copy()
    garbage[0, 4:6] = 1e6
    mask = np.zeros(X.shape, dtype=bool)
    mask[0, 4:6] = True
    return np.ma.MaskedArray(garbage, mask)


@pytest.mark.parametrize("name", MAKE)
def test_masked_entries_are_missing_or_refused(name):
    given, y = masked(), target(name)
    lists = [given[i] for i in range(len(given))]
    if name.startswith("pooled"):
        wanted = MAKE[name]().fit(given.filled(np.nan), y)
        told = wanted.predict(given.filled(np.nan))
        for series in (given, lists):
            fitted = MAKE[name]().fit(series, y)
            np.testing.assert_array_equal(fitted.predict(series), told)
    else:
        for series in (given, lists):
            with pytest.raises(TypeError, match="`X` has 2 masked entries; fill"):
                MAKE[name]().fit(series, y)
        fitted = MAKE[name]().fit(X, y)
        with pytest.raises(TypeError, match="2 masked entries"):
            fitted.predict(given)
    hidden = np.ma.MaskedArray(y, np.arange(len(y)) < 3)
    with pytest.raises(TypeError, match="`y` has 3 masked entries"):
        MAKE[name]().fit(X, hidden)
    nothing = np.ma.MaskedArray(X)  # with no entry masked, it is an array
    assert MAKE[name]().fit(nothing, y).predict(nothing).shape == (40,)


def test_masked_entries_are_refused_where_arrays_enter():
    weight = np.ma.MaskedArray(np.ones(40), np.arange(40) < 1)
    with pytest.raises(TypeError, match="`sample_weight` has 1 masked"):
        ReservoirClassifier(**SMALL).fit(X, Y, sample_weight=weight)
    with pytest.raises(TypeError, match="`X` has 2 masked"):
        SampleStimuli(masked(), Y)
    with pytest.raises(TypeError, match="`labels` has 1 masked"):
        SampleStimuli(X, np.ma.MaskedArray(Y, np.arange(40) < 1))
    with pytest.raises(TypeError, match="`X` has 2 masked"):
        RegressionTask.from_cases(masked(), T)
    with pytest.raises(TypeError, match="masked"):
        ReservoirForecaster(n_neurons=5).fit(masked().ravel())
    with pytest.raises(TypeError, match=r"`x\[0\]` has 2 masked"):
        SequenceRegressor(n_neurons=5).fit([masked().ravel()] * 2, [X.ravel()] * 2)
    weights = np.ma.MaskedArray(np.eye(4) / 2, np.eye(4) > 0)
    with pytest.raises(ValueError, match="'reservoir' parameter.*finite weights"):
        ReservoirClassifier(reservoir=weights).fit(X, Y)


#: The largest relative difference: sums of other roundings, the ascent stops at a
#: relative change of 1e-6; the pooled features are in single precision.
SCALES = [1e-300, 1e-150, 1e150, 1e300]
#: Squares leave floating point at these; at the others, what squares are multiplied with.
ENDS = SCALES[::3]


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        *((name, s) for name in MAKE for s in ENDS),
        *(("classifier", s) for s in SCALES[1:3]),
    ],
)
def test_the_unit_of_series_does_not_matter(name, scale):
    assert _answer(name, scale) == pytest.approx(_answer(name, 1.0), rel=1e-3, abs=1e-4)


@cache
def _answer(name: str, scale: float) -> np.ndarray:
    series = X / 40 * scale  # of order 0.1: no value leaves floating point itself
    fitted = MAKE[name]().fit(series, target(name))
    if hasattr(fitted, "predict_proba"):
        return fitted.predict_proba(series)
    return fitted.predict(series)


@cache
def _fitted(name: str) -> Any:
    return MAKE[name]().fit(X, T)


@pytest.mark.parametrize(
    ("name", "scale"),
    [*(("pooled regressor", s) for s in ENDS), *(("regressor", s) for s in SCALES[::2])],
)
def test_the_unit_of_targets_does_not_matter(name, scale):
    fitted = _fitted(name)
    again = MAKE[name]().fit(X, T * scale)
    # Pooled features are in single precision.
    told = fitted.predict(X)
    assert again.predict(X) / scale == pytest.approx(told, rel=1e-6, abs=1e-7)
    assert again.score(X, T * scale) == pytest.approx(fitted.score(X, T), abs=1e-6)
    if name == "regressor" and scale == 1e150:
        with pytest.raises(ValueError, match="X and y differ in size .* rescale one"):
            MAKE[name]().fit(X * 1e-200, T * scale)


@pytest.mark.needs("dask")
@pytest.mark.parametrize("order", [0, 1])
def test_the_unit_of_series_in_chunks_does_not_matter(order):
    import dask.array as da

    def told(unit: float) -> np.ndarray:
        make: Any = da.from_array
        chunks = make(X / 40 * unit, chunks=(15, -1))
        fitted = ReservoirClassifier(order=order, eta=10.0, n_neurons=8, random_state=0)
        return fitted.fit(chunks, Y).predict_proba(X / 40 * unit)

    one = told(1.0)
    for scale in ENDS:
        assert told(scale) == pytest.approx(one, abs=1e-4)


def test_weights_count_by_their_ratios_or_are_refused():
    weights = np.where(Y[0] == Y, 2.0, 1.0)
    told, *others = (
        ReservoirClassifier(**SMALL).fit(X, Y, sample_weight=unit * weights / 2)
        for unit in (1.0, *ENDS)
    )
    for again in others:
        assert again.predict_proba(X) == pytest.approx(told.predict_proba(X), abs=1e-4)


@pytest.mark.parametrize("scale", SCALES)
def test_weights_of_classes_far_from_one_are_refused(scale):
    for kind in (ReservoirClassifier, PooledReservoirClassifier):
        with pytest.raises(ValueError, match="class_weight.* from 1e-100 to 1e100"):
            kind(class_weight={-1: scale, 1: scale}).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: ReservoirClassifier(readout_noise=s).fit(X, Y), "'readout_noise'"),
        (lambda s: ReservoirRegressor(readout_noise=s).fit(X, T), "'readout_noise'"),
        (lambda s: ReservoirClassifier(input_scaling=s).fit(X, Y), "'input_scaling'"),
        (lambda s: ReservoirClassifier(eta=s).fit(X, Y), "'eta'"),
        (lambda s: noisy_accuracy(_FITTED, X, Y, s), "`sigma`"),
        (lambda s: noisy_accuracy(_FITTED, X, Y, 0.1, input_noise=s), "`input_noise`"),
        (lambda s: SampleStimuli(X, Y, length=s), "`length`"),
        (lambda s: SampleStimuli(X * s, Y), "`X` .* squares leave"),
        (lambda s: RegressionTask.from_cases(X * s, T), "`X` .* squares leave"),
        (lambda s: RegressionTask.from_cases(X, T * s), "`y` .* squares leave"),
    ],
)
def test_what_leaves_floating_point_is_said_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make(1e200)


_FITTED = ReservoirClassifier(eta=10.0, **SMALL).fit(X, Y)
_SYSTEM = unfold(Reservoir.random(12, rng=0), n_steps=20, dt=0.5)


@pytest.mark.parametrize("scale", [1e-130, 1e130])
def test_the_unit_of_stimuli_does_not_matter_to_optimize(scale):
    found = optimize(_SYSTEM, SampleStimuli(X * scale, Y), 10.0)
    assert found.soft_margin == pytest.approx(
        optimize(_SYSTEM, SampleStimuli(X, Y), 10.0).soft_margin, rel=1e-9
    )


# Errors that help


def test_series_that_can_not_be_read_are_named():
    gone = X.copy()
    gone[3, 2] = np.nan
    for kind, name in (
        (ReservoirClassifier, "Classifier"),
        (ReservoirRegressor, "Regressor"),
    ):
        with pytest.raises(ValueError, match="NaN, in the series at index 3.*pooled"):
            kind(**SMALL).fit(gone, target(name.lower()))
    with pytest.raises(ValueError, match=r"shape \(n_cases.*got shape \(40, 1, 1, 20\)"):
        ReservoirClassifier(**SMALL).fit(X[:, None, None], Y)
    large = X.copy()
    large[5, 1] = 1e300
    with pytest.raises(ValueError, match="size 1e.300 in the series at index 5, next to"):
        ReservoirClassifier(**SMALL).fit(large, Y)
    with pytest.raises(ValueError, match="'reservoir'.*square matrix of finite weights"):
        ReservoirClassifier(reservoir=np.full((3, 3), np.nan)).fit(X, Y)
    ragged = [[x.tolist(), x[1:].tolist()] for x in X]
    with pytest.raises(ValueError, match="unequal length in the series at index 0"):
        ReservoirClassifier(**SMALL).fit(ragged, Y)
    for make in (SampleStimuli, RegressionTask.from_cases):
        with pytest.raises(ValueError, match="`X` must .* (unequal|equal) length"):
            make([x[i % 2 :] for i, x in enumerate(X)], Y)


def test_an_array_of_series_of_unequal_length_is_a_list_of_them():
    series = [x[i % 2 :] for i, x in enumerate(X)]
    array = np.empty(len(series), dtype=object)
    array[:] = series
    wanted = ReservoirClassifier(**SMALL).fit(series, Y).predict_proba(series)
    found = ReservoirClassifier(**SMALL).fit(array, Y).predict_proba(array)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.needs("reservoirpy")
def test_a_node_of_reservoirpy_is_told_where_to_go():
    from reservoirpy.nodes import Reservoir as Node

    node: Any = Node(10)
    for kind in (ReservoirClassifier, ReservoirRegressor):
        with pytest.raises(ValueError, match="reservoirpy.solve_sequence and solve_input"):
            kind(reservoir=node).fit(X, Y)
    with pytest.raises(ValueError, match="reservoirpy.solve_sequence and solve_input"):
        ReservoirForecaster(reservoir=node).fit(X.ravel())


@pytest.mark.parametrize("name", MAKE)
def test_odd_series_are_pointed_out(name):
    """Axes that were exchanged, and series that do not change, are warned about once."""
    both = np.stack([X, X**2], axis=2)
    with pytest.warns(UserWarning, match="20 channels and 2 steps.*exchange") as caught:
        MAKE[name]().fit(both, target(name))
    assert len([one for one in caught if "exchange" in str(one.message)]) == 1
    dead = X.copy()
    dead[[3, 7]] = 2.0
    for found in dead, list(dead[:, None]):
        with pytest.warns(UserWarning, match="2 of 40 .* do not change .* index 3"):
            model = MAKE[name]().fit(found, target(name))
    model.predict(dead)  # warnings are errors: only `fit` warns


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("name", MAKE)
def test_tables_of_other_libraries(name):
    import pandas

    nested = pandas.DataFrame({"dim_0": [pandas.Series(one) for one in X]})
    with pytest.raises(ValueError, match=r"nested table.*n_cases, n_channels, n_steps"):
        MAKE[name]().fit(nested, target(name))
    named = pandas.DataFrame(X, columns=[f"t{i}" for i in range(X.shape[1])])
    model = MAKE[name]().fit(named, target(name))
    with pytest.warns(UserWarning, match="was fitted with feature names"):
        model.predict(X)


def test_what_a_pooled_model_holds_is_printed_in_a_line():
    made = MAKE["pooled classifier"]().fit(X, Y)
    for one in made.map_, made.map_.bank, made.map_.bank.scales[0], made.head_:
        assert len(repr(one)) < 120
        assert "array" not in repr(one)
