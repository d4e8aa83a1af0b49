"""What takes ``verbose`` shows how far it is, on a terminal and if it is asked to."""

from __future__ import annotations

import io
from typing import Any, cast

import numpy as np
import pytest
from sklearn.base import clone

from greenfold import (
    GaussianStimuli,
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirClassifier,
    ReservoirForecaster,
    ReservoirRegressor,
    SampleStimuli,
    SequenceRegressor,
    choose_eta,
    optimize,
    optimize_reservoir,
    progress,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats

from ..conftest import small

X, Y = synthetic_heartbeats(30, n_steps=12, rng=0)
GAUSSIAN = GaussianStimuli.random(12, rng=0)
WAVE = np.sin(np.arange(120) / 3)
POOLED: dict[str, Any] = {
    "n_scales": 2,
    "n_oscillators": 4,
    "n_readouts": 16,
    "engine": "array",
}
SEQUENCE: dict[str, Any] = {"n_neurons": 8, "max_iter": 3, "washout": 10}
WORKS = {
    "κ": lambda v: ReservoirClassifier(n_neurons=6, verbose=v).fit(X, Y),
    "choosing η": lambda v: ReservoirClassifier(n_neurons=6, verbose=v).fit(X, Y),
    "ReservoirRegressor.fit": lambda v: ReservoirRegressor(n_neurons=6, verbose=v).fit(
        X, X[:, 3]
    ),
    "PooledReservoirClassifier.fit": lambda v: PooledReservoirClassifier(
        **POOLED, verbose=v
    ).fit(X, Y),
    "PooledReservoirRegressor.fit": lambda v: PooledReservoirRegressor(
        **POOLED, verbose=v
    ).fit(X, X[:, 3]),
    "SequenceRegressor.fit": lambda v: SequenceRegressor(**SEQUENCE, verbose=v).fit(
        WAVE[1:], WAVE[:-1]
    ),
    "ReservoirForecaster.fit": lambda v: ReservoirForecaster(**SEQUENCE, verbose=v).fit(
        WAVE
    ),
    "optimize ": lambda v: _in_progress(
        v, lambda: optimize(unfold(small(), n_steps=12, dt=0.2), SampleStimuli(X, Y))
    ),
    "optimize_reservoir": lambda v: _in_progress(
        v, lambda: optimize_reservoir(small(), GAUSSIAN, 0.2, max_evaluations=2)
    ),
    "choose_eta": lambda v: _in_progress(
        v, lambda: choose_eta(unfold(small(), n_steps=12, dt=0.2), X, Y, rng=0)
    ),
}


def _in_progress(visible, work):
    if not visible:
        return work()
    with progress():
        return work()


class Terminal(io.StringIO):
    """A stderr that is a terminal, if it says so."""

    def __init__(self, is_one: bool) -> None:
        super().__init__()
        self.is_one = is_one

    def isatty(self) -> bool:
        return self.is_one


@pytest.mark.needs("rich")
@pytest.mark.parametrize("shown", WORKS)
def test_progress_is_shown_on_a_terminal_if_asked_for(shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for is_one, asked in ((True, True), (True, False), (False, True)):
        terminal = Terminal(is_one)
        monkeypatch.setattr("sys.stderr", terminal)
        WORKS[shown](asked)
        assert (shown in terminal.getvalue()) == (is_one and asked)
        if not (is_one and asked):
            assert terminal.getvalue() == ""


@pytest.mark.needs("rich")
def test_progress_can_silence_verbose(monkeypatch):
    terminal = Terminal(True)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress(visible=False):
        ReservoirClassifier(n_neurons=6, verbose=True).fit(X, Y)
    assert terminal.getvalue() == ""


def test_verbose_is_a_parameter_like_others():
    model: Any = clone(ReservoirClassifier(verbose=True))
    assert model.get_params()["verbose"] is True
    with pytest.raises(ValueError, match="'verbose' parameter of ReservoirClassifier"):
        ReservoirClassifier(verbose=cast("bool", "loud")).fit(X, Y)
