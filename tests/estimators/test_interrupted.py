"""Ctrl-C during a fit leaves the earlier model, or none: for every estimator."""

import signal
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from greenfold import (
    PooledReservoirClassifier,
    ReservoirClassifier,
    ReservoirForecaster,
    SequenceRegressor,
)
from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators.pooled import PooledReservoirRegressor, ReservoirFeatures
from greenfold.estimators.regressor import ReservoirRegressor

MOMENTS = 10
BEATS, NAMES = synthetic_heartbeats(24, n_steps=20, rng=0)
WAVE = np.sin(0.4 * np.arange(150)) + np.sin(1.1 * np.arange(150))
POOLED: Any = {"n_scales": 2, "n_oscillators": 4, "n_readouts": 16, "engine": "array"}
SMALL: Any = {"n_neurons": 6, "random_state": 0}
SEQUENCE: Any = {**SMALL, "leak": 1.0, "spectral_radius": 0.3, "max_iter": 4}


def halves(*arrays):
    """Return the data of an earlier fit, and of the fit to interrupt."""
    return tuple(one[::2] for one in arrays), tuple(one[1::2] for one in arrays)


#: An estimator, data of two fits, and what shows the state of the model.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "margin": (
        ReservoirClassifier(**SMALL),
        halves(BEATS, NAMES),
        lambda model: model.decision_function(BEATS),
    ),
    "margin, order 1": (
        ReservoirClassifier(**SMALL, order=1, alpha=0.05, eta=10.0),
        halves(BEATS, NAMES),
        lambda model: model.decision_function(BEATS),
    ),
    "regressor": (
        ReservoirRegressor(**SMALL),
        halves(BEATS, BEATS[:, 3] + BEATS[:, 9]),
        lambda model: model.predict(BEATS),
    ),
    "pooled classifier": (
        PooledReservoirClassifier(**POOLED, random_state=0),
        halves(BEATS, NAMES),
        lambda model: model.predict_proba(BEATS),
    ),
    "pooled regressor": (
        PooledReservoirRegressor(**POOLED, random_state=0),
        halves(BEATS, BEATS[:, 3] + BEATS[:, 9]),
        lambda model: model.predict(BEATS),
    ),
    "pooled features": (
        ReservoirFeatures(**POOLED, random_state=0),
        halves(BEATS),
        lambda model: model.transform(BEATS),
    ),
    "sequence regressor": (
        SequenceRegressor(**SEQUENCE),
        ((WAVE[:100], WAVE[1:101]), (WAVE[:100], WAVE[:100] ** 2)),
        lambda model: model.predict(WAVE),
    ),
    "forecaster": (
        ReservoirForecaster(**SEQUENCE),
        ((WAVE[:100],), (WAVE[:100] ** 2,)),
        lambda model: model.forecast(5),
    ),
}
#: Base classes, which nobody fits.
BASES = {"SeriesEstimator", "Checked", "SeriesClassifier", "SeriesRegressor"}
BASES |= {"NetworkEstimator", "PooledEstimator", "SequenceEstimator"}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
each_case = pytest.mark.parametrize("case", CASES)


class Moment:
    """Press Ctrl-C when a function is called for the n-th time; count the calls."""

    def __init__(self, n=None):
        self.n, self.count = n, 0

    def __call__(self, frame, event, argument):
        self.count += 1
        if self.count == self.n:
            signal.raise_signal(signal.SIGINT)

    def __enter__(self):
        self.before = signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        signal.signal(signal.SIGINT, self.before)


def unfitted(model) -> Any:
    return clone(model)


def moments(model, data):
    """Return moments spread at random over the calls of a fit, when caches are warm."""
    unfitted(model).fit(*data)
    fresh = unfitted(model)
    with Moment() as whole:
        fresh.fit(*data)
    return np.sort(np.random.default_rng(0).integers(1, whole.count, MOMENTS))


def stopped(model, data, moment):
    """Return whether a fit ended with KeyboardInterrupt at a moment."""
    try:
        with Moment(moment):
            model.fit(*data)
    except KeyboardInterrupt:
        return True
    return False


@each_case
def test_a_refit_leaves_the_earlier_model(case):
    blank, (first, second), shown = CASES[case]
    earlier = shown(unfitted(blank).fit(*first))
    later = shown(unfitted(blank).fit(*second))
    assert not np.array_equal(earlier, later)
    n_stopped = 0
    for moment in moments(blank, second):
        model = unfitted(blank).fit(*first)
        attributes = set(vars(model))
        ended = stopped(model, second, moment)
        n_stopped += ended
        np.testing.assert_array_equal(shown(model), earlier if ended else later)
        assert not ended or set(vars(model)) >= attributes
    assert n_stopped >= MOMENTS - 1  # the last may come too late


@each_case
def test_a_first_fit_leaves_none(case):
    blank, (_, second), shown = CASES[case]
    for moment in moments(blank, second):
        model = unfitted(blank)
        if stopped(model, second, moment):
            with pytest.raises(NotFittedError):
                shown(model)
            assert set(vars(model)) == set(vars(unfitted(blank)))


def test_every_estimator_is_among_the_cases():
    def descendants(kind):
        return {kind}.union(*map(descendants, kind.__subclasses__()))

    ours = {
        kind
        for kind in descendants(BaseEstimator)
        if "greenfold.estimators" in kind.__module__
    }
    others = (".aeon", ".sktime")  # adapters, which other tests interrupt or check
    names = {kind.__name__ for kind in ours if not kind.__module__.endswith(others)}
    assert names - BASES == {type(blank).__name__ for blank, _, _ in CASES.values()}


@pytest.mark.needs("aeon")
@pytest.mark.parametrize(
    "name", ["ReservoirClassifier", "PooledReservoirClassifier", "ReservoirFeatures"]
)
def test_a_refit_by_aeon_leaves_the_earlier_model_or_none(name):
    """aeon resets an estimator before it fits, and marks it as fitted at the end."""
    from greenfold.estimators import aeon

    first, second = halves(BEATS[:, None, :], NAMES)
    options = SMALL if name == "ReservoirClassifier" else {**POOLED, "random_state": 0}
    blank: Any = getattr(aeon, f"Aeon{name}")(**options)
    shown = "transform" if name == "ReservoirFeatures" else "predict_proba"
    earlier = getattr(unfitted(blank).fit(*first), shown)(BEATS[:, None, :])
    for moment in moments(blank, second):
        model: Any = unfitted(blank).fit(*first)
        if not stopped(model, second, moment):
            continue
        if getattr(model, "is_fitted", False):
            found = getattr(model, shown)(BEATS[:, None, :])
            np.testing.assert_array_equal(found, earlier)
        else:  # AttributeError if the reset itself was interrupted
            with pytest.raises((ValueError, AttributeError)):
                getattr(model, shown)(BEATS[:, None, :])
