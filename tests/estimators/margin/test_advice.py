"""Messages for failures, and that their advice works."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from greenfold import Reservoir
from greenfold.analysis import EtaChoice
from greenfold.cli import fit
from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators.margin import ReservoirClassifier
from greenfold.networks.reservoir import UnstableError
from greenfold.optimizers import ascent


@pytest.fixture(scope="module")
def beats():
    return synthetic_heartbeats(40, n_steps=12, rng=0)


def make(**parameters) -> Any:
    drawn = {} if "reservoir" in parameters else {"n_neurons": 10}
    return ReservoirClassifier(**{**drawn, "random_state": 0, **parameters})


@pytest.mark.parametrize("given", [{"g": 2.5}, {"reservoir": 2 * np.eye(4)}])
def test_the_advice_about_growth_is_one_that_the_estimator_can_take(beats, given):
    (name,) = given
    with pytest.raises(ValueError, match=f"^`{name}` makes the network") as caught:
        make(**given).fit(*beats)
    message = str(caught.value)
    assert "reservoir=Reservoir(weights, allow_unstable=True)" in message
    assert message.count("\n") == 0
    # What it says works, over a time in which nothing grows beyond floating point.
    weights = 2 * np.eye(4)
    growing = Reservoir(weights, allow_unstable=True)
    make(reservoir=growing, eta=10.0, duration=2.0).fit(*beats)
    factor = float(message.split("by a factor of ")[1].split(",")[0])
    settled = {"g": 2.5 * factor} if name == "g" else {"reservoir": weights * factor}
    make(**settled, eta=10.0).fit(*beats)
    with pytest.raises(ValueError, match="unstable") as caught:
        make(**given, order=1).fit(*beats)  # beyond the linear order there is no such way
    assert "allow_unstable" not in str(caught.value)


def unstable_seeds(n_seeds: int) -> list[int]:
    found = []
    for seed in range(n_seeds):
        try:
            Reservoir.random(30, rng=seed, max_draws=1)
        except UnstableError:
            found.append(seed)
    return found


def test_random_networks_can_be_drawn_again_or_scaled():
    bad = unstable_seeds(200)
    assert 0 < len(bad) < 40
    with pytest.raises(ValueError, match="larger `max_draws`, or .* spectral_radius=0.9"):
        Reservoir.random(30, rng=bad[0], max_draws=1)
    for seed in bad:
        again = Reservoir.random(30, rng=seed)
        assert again.is_stable
        assert again.n_draws > 1
        scaled = Reservoir.random(30, rng=seed, spectral_radius=0.8)
        largest = np.abs(np.linalg.eigvals(scaled.weights)).max()
        assert largest == pytest.approx(0.8, rel=1e-9)
    good = next(seed for seed in range(200) if seed not in bad)
    np.testing.assert_array_equal(
        Reservoir.random(30, rng=good, max_draws=1).weights,
        Reservoir.random(30, rng=good).weights,
    )
    assert Reservoir.random(30, rng=good).n_draws == 1
    with pytest.raises(ValueError, match="all 100 draws are unstable.*lower `g`"):
        Reservoir.random(60, g=1.4, rng=0, max_draws=100)
    with pytest.raises(ValueError, match="lower `g`.*allow_unstable=True"):
        Reservoir.random(30, g=4.0, rng=0, max_draws=100)
    both: list[dict[str, Any]] = [{"max_draws": 0}, {"spectral_radius": -1.0}]
    for wrong in both:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Reservoir.random(30, **wrong)


def choice(score: list[float]) -> EtaChoice:
    etas = np.geomspace(1, 100, len(score))
    best = float(etas[np.argmax(score)])
    return EtaChoice(etas, np.array(score)[:, None], np.array(score), best)


def test_an_eta_at_the_edge_of_its_grid_is_said():
    assert "largest" in choice([0.1, 0.2, 0.3]).note
    assert "largest" in repr(choice([0.1, 0.2, 0.3]))
    assert "smallest" in choice([0.3, 0.2, 0.1]).note
    assert not choice([0.1, 0.3, 0.2]).note
    assert not choice([0.3, 0.3, 0.1]).note  # η does not matter there
    assert not choice([np.nan] * 3).note
    assert printed(100.0, choice([0.1, 0.2, 0.3])).startswith("100 (the largest η compared")
    assert printed(3.0, None) == "3"


def printed(eta: float, scores: EtaChoice | None) -> str:
    """η as the command prints it."""
    network = SimpleNamespace(n_neurons=5)
    fitted = SimpleNamespace(classes_=[0, 1], n_features_in_=4, reservoir_=network)
    vars(fitted).update(eta_=eta, eta_scores_=scores, unfolding_=None)
    task: Any = SimpleNamespace(
        name="beats", y=[0, 1], y_test=None, whole=None, judged=("", "", "test")
    )
    row: Any = SimpleNamespace(classifier=fitted, order=0, noise=0.0, bound=np.nan)
    vars(row).update(
        reservoir=SimpleNamespace(n_neurons=1),
        network_and_order="",
        projection="",
        soft_margin=1.0,
        accuracy=1.0,
    )
    return fit._facts(task, row, None)["η"]


def test_a_wide_gap_is_printed_with_what_to_do():
    def row(gap: float, certify: bool, solved: bool = True, proven: bool = False) -> Any:
        return SimpleNamespace(
            gap=gap,
            proven=proven,
            is_solved=solved,
            classifier=SimpleNamespace(certify=certify),
        )

    assert fit._proof(row(0.0, False, proven=True)) == "proven optimal"
    assert "--certify" in fit._proof(row(0.995, False))
    assert "--eta" in fit._proof(row(0.995, True))
    assert "--certify" not in fit._proof(row(0.995, True))
    assert fit._proof(row(0.02, False)) == "gap 2.0%"
    assert fit._proof(row(0.7, False, solved=False)) == "gap 70.0%"


def test_a_fit_that_takes_minutes_says_so_before_it_starts(beats, monkeypatch):
    """The clock goes by six seconds each time that it is looked at."""
    X, y = beats
    minutes = iter(6.0 * np.arange(100))
    clock = SimpleNamespace(perf_counter=lambda: next(minutes))
    monkeypatch.setattr(ascent, "time", clock)
    monkeypatch.setattr(ReservoirClassifier, "_choose", stop)
    slow = ReservoirClassifier(n_neurons=4, random_state=0)
    cases = {1: "order=1", 2: 'order=2 .* order="exact" is quicker', "exact": "`Dynamics`"}
    for order, match in cases.items():
        message = match.replace(" ", " takes about ", 1)
        with (
            pytest.warns(ascent.SlowFitWarning, match=message),
            pytest.raises(ZeroDivisionError),
        ):
            slow.set_params(order=order).fit(X[:20], y[:20])
    with pytest.raises(ZeroDivisionError):  # and is not said of the linear order
        slow.set_params(order=0).fit(X, y)
    with pytest.raises(ValueError, match=r"^order=90 takes about [\d.]+ days for 20"):
        slow.set_params(order=90).fit(X[:20], y[:20])


def test_many_series_that_take_no_longer_than_a_few_raise_no_warning(beats, monkeypatch):
    """Every pass takes ten milliseconds: 250 of them are no minute."""
    X, y = beats
    seconds = iter(0.01 * np.arange(100))
    clock = SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr(ascent, "time", clock)
    monkeypatch.setattr(ReservoirClassifier, "_choose", stop)
    many = np.resize(np.arange(len(y)), 1000)
    with pytest.raises(ZeroDivisionError):
        ReservoirClassifier(n_neurons=4, order=1).fit(X[many], y[many])


def stop(*_):
    """In the place of what takes long."""
    raise ZeroDivisionError


def test_series_of_another_length_name_the_estimator_that_takes_them(beats):
    X, y = beats
    fitted = ReservoirClassifier(n_neurons=5, eta=1.0, random_state=0).fit(X, y)
    for short in (X[:, :-1], X[:, None, :-1]):
        with pytest.raises(ValueError, match="features as input; a pooled estimator takes"):
            fitted.predict(short)
