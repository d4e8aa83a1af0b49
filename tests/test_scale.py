"""Units from 1e-300 to 1e300 in everything that has one: the same answer, or one sentence.

Nothing may become NaN, no projection may vanish, and no raw error or warning of a library
may come through (a warning is an error in the tests).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Box,
    Device,
    Dynamics,
    Gain,
    Levels,
    MeasuredResponse,
    PooledReservoirClassifier,
    RegressionTask,
    Reservoir,
    ReservoirClassifier,
    ReservoirForecaster,
    ReservoirRegressor,
    SampleStimuli,
    SequenceRegressor,
    optimize,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators.pooled import PooledReservoirRegressor
from greenfold.validity import ExpansionWarning

EXPONENTS = (-300, -20, 50, 100)
#: The others are for the slow suite.
MORE = (-200, -150, -100, -50, -8, 8, 20, 150, 200, 300)
EXPONENTS += tuple(pytest.param(k, marks=pytest.mark.slow) for k in MORE)
#: Sums of other roundings, and the ascent stops at a relative change of 1e-6; pooled
#: features are in single precision.
TOLERANCE = 1e-3

X, Y = synthetic_heartbeats(24, n_steps=12, rng=0)
T = X @ np.linspace(-1, 1, 12)
SHARES = np.where(Y[0] == Y, 1.0, 0.5)
SMALL: dict[str, Any] = {"n_neurons": 6, "random_state": 0}
POOLED: dict[str, Any] = {
    "random_state": 0,
    "n_scales": 2,
    "n_oscillators": 8,
    "n_readouts": 16,
}
GIVEN: dict[str, Any] = {"eta": 10.0, **SMALL}
WEIGHTS = Reservoir.random(6, rng=0).weights
NETWORK = unfold(Reservoir(WEIGHTS), n_steps=12, dt=0.5)
BENT = unfold(Reservoir(WEIGHTS, gain=Gain.quadratic(0.01)), n_steps=12, dt=0.5, order=1)
STIMULI = SampleStimuli(X, Y)
WAVE = (
    np.sin(np.arange(200) / 3)[:, None] * [1.0, 0.5] + np.cos(np.arange(200) / 5)[:, None]
)
DRIVE = np.random.default_rng(0).standard_normal((400, 1))
RESPONSE = np.random.default_rng(1).standard_normal((12, 2, 2))


def classified(estimator: Any, series: Any = X, weights: Any = None) -> np.ndarray:
    return estimator.fit(series, Y, sample_weight=weights).predict_proba(series)


def predicted(estimator: Any, series: Any, targets: Any) -> np.ndarray:
    return estimator.fit(series, targets).predict(series)


def solved(system: Any, stimuli: Any, *rest: Any, **options: Any) -> np.ndarray:
    """κ or the gain of the solution, whose vectors must be there."""
    found = optimize(system, stimuli, *rest, **options)
    for vector in (found.u, found.V if isinstance(stimuli, RegressionTask) else found.v):
        assert np.isfinite(vector).all()
        assert np.any(vector)
    value = found.gain if isinstance(stimuli, RegressionTask) else found.soft_margin
    return np.array([value])


def recorded(unit: float) -> np.ndarray:
    """Linearity of a recording of a leaky line, in some unit of both columns."""
    states = np.zeros((400, 2))
    for k in range(1, 400):
        states[k] = 0.5 * states[k - 1] + [DRIVE[k, 0], -DRIVE[k - 1, 0]]
    noisy = states + 0.1 * np.random.default_rng(2).standard_normal(states.shape)
    response = MeasuredResponse.fit(DRIVE * unit, noisy * unit, n_steps=12)
    return solved(response, STIMULI, 10.0)


def walked(series: np.ndarray) -> np.ndarray:
    model = ReservoirForecaster(n_neurons=6, leak=0.9, max_iter=2, random_state=0)
    return model.fit(series).forecast(2)


def followed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    model = SequenceRegressor(n_neurons=6, leak=0.9, max_iter=2, random_state=0)
    return model.fit(x, y).predict(x)[-3:]


#: The unit does not matter, or a sentence says that it is too far from one.
UNITS: dict[str, Callable[[float], np.ndarray]] = {
    "series": lambda s: classified(ReservoirClassifier(**GIVEN), X * s),
    "series, η chosen": lambda s: classified(ReservoirClassifier(**SMALL), X * s),
    "series, shared u": lambda s: classified(
        ReservoirClassifier(input_projection="shared", **GIVEN), X * s
    ),
    "series, noise": lambda s: classified(
        ReservoirClassifier(readout_noise=0.1, **GIVEN), X * s
    ),
    "series, order 1": lambda s: classified(
        ReservoirClassifier(order=1, alpha=0.01, **GIVEN), X * s
    ),
    "series of a stream": lambda s: (
        ReservoirClassifier(**GIVEN)
        .partial_fit(X[:12] * s, Y[:12], classes=np.unique(Y))
        .partial_fit(X[12:] * s, Y[12:])
        .predict_proba(X * s)
    ),
    "weights of series": lambda s: classified(
        ReservoirClassifier(**GIVEN), weights=SHARES * s
    ),
    "weights of series, pooled": lambda s: classified(
        PooledReservoirClassifier(**POOLED), weights=SHARES * s
    ),
    "series, pooled": lambda s: classified(PooledReservoirClassifier(**POOLED), X * s),
    "series to regress": lambda s: predicted(ReservoirRegressor(**SMALL), X * s, T),
    "targets": lambda s: predicted(ReservoirRegressor(**SMALL), X, T * s) / s,
    "targets, pooled": lambda s: (
        predicted(PooledReservoirRegressor(**POOLED), X, T * s) / s
    ),
    "sequence to forecast": lambda s: walked(WAVE * s) / s,
    "one channel of it": lambda s: walked(WAVE * [s, 1.0]) / [s, 1.0],
    "sequence": lambda s: followed(WAVE[:, 0] * s, WAVE[:, 1]),
    "target sequence": lambda s: followed(WAVE[:, 0], WAVE[:, 1] * s) / s,
    "stimuli": lambda s: solved(NETWORK, SampleStimuli(X * s, Y), 10.0),
    "stimuli, order 1": lambda s: solved(BENT, SampleStimuli(X * s, Y), 10.0),
    "weights of classes": lambda s: solved(
        NETWORK, SampleStimuli(X, Y, class_weight=dict.fromkeys(np.unique(Y), s)), 10.0
    ),
    "windows, with the penalty": lambda s: solved(
        NETWORK, RegressionTask.from_cases(X * s, T, ridge=min(1e-3 * s * s, 1e300))
    ),
    "targets of windows": lambda s: (
        solved(NETWORK, RegressionTask.from_cases(X, T * s)) / s / s
    ),
    "levels": lambda s: solved(
        NETWORK, STIMULI, 10.0, device=Device(mask=Levels([-s, 0, s]))
    ),
    "recording": recorded,
}
#: The size matters: whatever it is, the answer is finite, or a sentence refuses it.
SIZES: dict[str, Callable[[float], np.ndarray]] = {
    "η of the classifier": lambda s: classified(
        ReservoirClassifier(eta=s, n_neurons=6, random_state=0)
    ),
    "noise at the readout": lambda s: classified(
        ReservoirClassifier(readout_noise=s, **SMALL)
    ),
    "time constant": lambda s: classified(ReservoirClassifier(tau=s, **GIVEN)),
    "duration": lambda s: classified(ReservoirClassifier(duration=s, **GIVEN)),
    "scale of the input": lambda s: classified(
        ReservoirClassifier(input_scaling=s, **GIVEN)
    ),
    "unit kept": lambda s: classified(
        ReservoirClassifier(input_scaling=None, **GIVEN), X * s
    ),
    "network of the classifier": lambda s: classified(
        ReservoirClassifier(reservoir=WEIGHTS * s, eta=10.0, random_state=0)
    ),
    "non-linearity": lambda s: classified(ReservoirClassifier(order=1, alpha=s, **GIVEN)),
    "penalty of the regressor": lambda s: predicted(
        ReservoirRegressor(ridge=s, **SMALL), X, T
    ),
    "noise of the regressor": lambda s: predicted(
        ReservoirRegressor(readout_noise=s, **SMALL), X, T
    ),
    "η": lambda s: solved(NETWORK, STIMULI, s, method="alternating"),
    "input noise": lambda s: solved(NETWORK, STIMULI, device=Device(input_noise=s)),
    "state noise": lambda s: solved(NETWORK, STIMULI, device=Device(state_noise=s)),
    "readout noise": lambda s: solved(NETWORK, STIMULI, device=Device(readout_noise=s)),
    "readout noise, signs": lambda s: solved(
        NETWORK, STIMULI, device=Device(readout_noise=s, mask="sign")
    ),
    "box": lambda s: solved(NETWORK, STIMULI, device=Device(mask=Box(-0.8 * s, s))),
    "one of two levels": lambda s: solved(
        NETWORK, STIMULI, device=Device(mask=Levels([-s, 1]))
    ),
    "weights": lambda s: solved(
        unfold(Reservoir(WEIGHTS * s), n_steps=12, dt=0.5), STIMULI
    ),
    "weights that may grow": lambda s: solved(
        unfold(Reservoir(WEIGHTS * s, allow_unstable=True), n_steps=12, dt=0.5), STIMULI
    ),
    "weights, integrated": lambda s: solved(
        Dynamics(Reservoir(WEIGHTS * s, gain=Gain.tanh()), n_steps=12, dt=0.5),
        STIMULI,
        method=Ascent(max_evaluations=2),
    ),
    "τ": lambda s: solved(unfold(Reservoir(WEIGHTS, tau=s), n_steps=12, dt=0.5), STIMULI),
    "step": lambda s: solved(unfold(Reservoir(WEIGHTS), n_steps=12, dt=s), STIMULI),
    "penalty": lambda s: solved(NETWORK, RegressionTask.from_cases(X, T, ridge=s)),
    "windows": lambda s: solved(NETWORK, RegressionTask.from_cases(X * s, T)),
    "measured response": lambda s: solved(MeasuredResponse(RESPONSE * s), STIMULI),
}


@cache
def _at_one(name: str) -> np.ndarray:
    """The answer at one, which no sentence may refuse."""
    found = (UNITS | SIZES)[name](1.0)
    assert np.isfinite(found).all()
    return found


def _answer(make: Callable[[float], np.ndarray], scale: float) -> np.ndarray | None:
    """The answer, which is finite, or None after one sentence that refuses the scale."""
    try:
        found = make(scale)
    except (ValueError, OverflowError, TypeError) as error:
        told = str(error)
        assert told.endswith(".")
        assert "\n" not in told
        assert len(told) > 40
        return None
    assert np.isfinite(found).all()
    return found


@pytest.mark.filterwarnings(f"ignore::{ExpansionWarning.__module__}.ExpansionWarning")
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("name", UNITS)
def test_units_do_not_matter(name, exponent):
    wanted = _at_one(name)
    found = _answer(UNITS[name], 10.0**exponent)
    if found is not None:
        size = float(np.abs(wanted).max())
        assert found == pytest.approx(wanted, abs=TOLERANCE * size)


@pytest.mark.filterwarnings(f"ignore::{ExpansionWarning.__module__}.ExpansionWarning")
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("name", SIZES)
def test_sizes_give_a_finite_answer_or_a_sentence(name, exponent):
    _at_one(name)
    _answer(SIZES[name], 10.0**exponent)
