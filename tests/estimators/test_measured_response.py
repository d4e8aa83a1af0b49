"""Estimators on the measured response of a device, in place of a network."""

from typing import Any

import numpy as np
import pytest

from greenfold import (
    MeasuredResponse,
    Reservoir,
    ReservoirClassifier,
    ReservoirForecaster,
    ReservoirRegressor,
    SequenceRegressor,
    load,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats

N_STEPS, N_NEURONS = 16, 8


@pytest.fixture(scope="module")
def network() -> Reservoir:
    return Reservoir.random(N_NEURONS, tau=2.0, rng=1)


@pytest.fixture(scope="module")
def series():
    return synthetic_heartbeats(120, n_steps=N_STEPS, rng=2)


def response_of(network: Reservoir, n_steps: int) -> MeasuredResponse:
    return MeasuredResponse(unfold(network, n_steps=n_steps, dt=0.5).greens1(), dt=0.5)


def test_a_response_replaces_the_network_that_it_describes(network, series):
    # Twice the steps of the series: only the last ones count.
    response = response_of(network, 2 * N_STEPS)
    own: dict[str, Any] = {"eta": 5.0, "random_state": 0}
    u = np.random.default_rng(3).standard_normal(N_NEURONS)
    cases: list[dict[str, Any]] = [{"input_projection": u}, {}]
    for how in cases:
        known = ReservoirClassifier(
            reservoir=network, duration=0.5 * N_STEPS, **own, **how
        ).fit(*series)
        found = ReservoirClassifier(reservoir=response, **own, **how).fit(*series)
        # With a given u the same arithmetic, else the gap at which a solver may stop.
        rtol = 1e-3 if not how else 1e-9
        assert found.soft_margin_ == pytest.approx(known.soft_margin_, rel=rtol)
        if how:
            decided = [one.decision_function(series[0]) for one in (found, known)]
            np.testing.assert_allclose(*decided, rtol=1e-8, atol=1e-9)


def device(n_steps: int) -> MeasuredResponse:
    """Five inputs, three outputs."""
    rng = np.random.default_rng(4)
    fading = np.exp(-np.arange(n_steps)[::-1] / 5)
    return MeasuredResponse(rng.standard_normal((n_steps, 3, 5)) * fading[:, None, None])


def test_inputs_and_outputs_of_a_device_differ_in_number(series, tmp_path):
    X, y = series[0], np.arange(120) % 3  # three classes share one mask
    response = device(N_STEPS)
    fitted = ReservoirClassifier(
        reservoir=response, input_projection="shared", random_state=0
    ).fit(X, y)
    assert fitted.u_.shape == (5,)
    assert fitted.v_.shape == (3, 3)
    assert fitted.transform(X).shape == (120, 9)
    assert len(fitted.get_feature_names_out()) == 9
    played = (X - fitted.centre_[0]) * fitted.scale_[0]  # the states, pulse by pulse
    states = sum(np.outer(played[:, n], response.G[n] @ fitted.u_) for n in range(N_STEPS))
    np.testing.assert_allclose(fitted.transform(X)[:, :3], states, rtol=1e-10, atol=1e-12)
    fitted.save(tmp_path / "device.gfm")
    loaded = load(tmp_path / "device.gfm")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.partial_fit(X, y).u_.shape == (5,)


def test_a_file_may_hold_a_response_longer_than_the_series(series, tmp_path):
    X, y = series
    fitted = ReservoirClassifier(reservoir=device(30), eta=5.0, random_state=0).fit(X, y)
    fitted.save(tmp_path / "device.gfm")
    loaded = load(tmp_path / "device.gfm")
    assert loaded.reservoir.n_steps == 30
    assert loaded.reservoir_.n_steps == N_STEPS
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_a_regressor_reads_the_device(series, tmp_path):
    X, target = series[0], series[0][:, -3]
    fitted = ReservoirRegressor(reservoir=device(N_STEPS), random_state=0).fit(X, target)
    found = fitted.projections_
    states = np.einsum("cn,noi,i->co", X - X.mean(0), device(N_STEPS).G, found.u)
    best = np.linalg.lstsq(states, target - target.mean(), rcond=None)[0]
    # Ridge can explain no more than least squares, and loses little with 120 series.
    explained = 1 - (target - target.mean() - states @ best).var() / target.var()
    assert explained - 0.02 < fitted.score(X, target) <= explained + 1e-12
    fitted.save(tmp_path / "device.gfm")
    loaded = load(tmp_path / "device.gfm")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"order": 1}, "'order' .* must be left out with a MeasuredResponse"),
        ({"tau": "auto"}, "'tau' .* its own memory and time step"),
        ({"duration": 3.0}, "'duration' .* its own memory and time step"),
        ({"readout": "integrated"}, "'readout' .* after the last step only"),
        ({"n_neurons": 3}, "'n_neurons' .* must be left out"),
        ({"input_projection": np.ones(3)}, r"'input_projection' .* shape \(5, 1\)"),
        ({"reservoir": device(9)}, r"at least 16 steps.*n_steps=16"),
    ],
)
def test_parameters_that_a_device_cannot_have_are_refused(series, how, message):
    with pytest.raises(ValueError, match=message):
        ReservoirClassifier(**{"reservoir": device(N_STEPS), **how}).fit(*series)


@pytest.mark.parametrize("estimator", [SequenceRegressor, ReservoirForecaster])
def test_estimators_of_states_at_every_step_say_where_a_response_goes(estimator: Any):
    x = np.sin(np.arange(400) / 5)
    with pytest.raises(ValueError, match=r"ReservoirRegressor accept it, with the steps"):
        estimator(reservoir=device(N_STEPS)).fit(x[:, None], x)
