"""The certified κ* as a function of the network: its gradient, its ascent, its guard."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import (
    Device,
    EchoStateNetwork,
    Gain,
    GaussianStimuli,
    Reservoir,
    SampleStimuli,
    optimize,
    optimize_reservoir,
    unfold,
)
from greenfold.analysis import networks
from greenfold.analysis import networks as network_task
from greenfold.analysis.networks import Task, make_family, split_stimuli
from greenfold.datasets import synthetic_heartbeats
from greenfold.devices.noise import state_covariance

from ..conftest import interrupt, slope, small

STEPS, DT = 12, 0.4


def stimuli(n_channels=1):
    """Smooth classes that are told apart well: certified after two decompositions."""
    size = STEPS * n_channels
    time = np.arange(size) / STEPS
    mu = np.sin(2 * np.pi * time) + 0.3
    psi = 0.05 * np.exp(-np.abs(time[:, None] - time) / 0.2)
    return GaussianStimuli(mu.reshape(n_channels, STEPS), psi)


def weights(n, radius, seed=3):
    drawn = np.random.default_rng(seed).standard_normal((n, n))
    return drawn * (radius / np.abs(np.linalg.eigvals(drawn)).max())


SLOPED = Gain.polynomial([0, 0.8, 0.1])
BIAS = np.linspace(-0.5, 0.8, 10)
NETWORKS = {
    "tau": (small(n=10), ("tau",), {}),
    "g": (small(n=10), ("g",), {}),
    "slope of the gain": (small(SLOPED, n=10), ("tau", "g"), {}),
    "offset of the gain": (small(Gain.sigmoid(), n=10, g=2.0), ("tau", "g"), {}),
    "unequal": (Reservoir(weights(10, 0.7), np.linspace(0.1, 0.6, 10)), ("tau", "g"), {}),
    "bias": (Reservoir(weights(10, 0.7), 0.3, Gain.tanh(), bias=BIAS), ("tau", "g"), {}),
    "noise": (small(n=5), ("tau", "g"), {"noise": 0.1}),
    "inside a step": (small(n=10), ("tau", "g"), {"readout": 4.5}),
    "weighted": (small(n=10), ("tau", "g"), {"readout": np.linspace(0, 1, STEPS)}),
    "leak": (EchoStateNetwork(weights(10, 0.8), 0.4), ("leak",), {}),
    "unequal leak": (
        EchoStateNetwork(weights(10, 0.8), np.linspace(0.2, 0.9, 10)),
        ("leak", "g"),
        {},
    ),
    "leak and bias": (
        EchoStateNetwork(weights(10, 0.8), 0.4, bias=BIAS),
        ("leak", "g"),
        {},
    ),
    "decay times": (
        Reservoir.oscillators([0.5, 1.0, 2.0], [3.0, 0.7, 0.1]),
        ("decay_times",),
        {},
    ),
    "frequencies": (
        Reservoir.oscillators([0.5, 1.0, 2.0], [3.0, 0.7, 0.1], gain=SLOPED),
        ("frequencies",),
        {},
    ),
    "oscillators": (
        Reservoir.oscillators([0.5, 1.0, 2.0], [3.0, 0.7, 0.1]),
        ("frequencies", "decay_times", "tau"),
        {"noise": 0.1},
    ),
}


@pytest.mark.parametrize(
    ("name", "n_channels"),
    [
        *((name, 1) for name in NETWORKS),
        *((name, 2) for name in ("tau", "bias", "unequal leak", "decay times")),
    ],
)
def test_the_gradient_of_the_certified_margin(name, n_channels):
    network, parameters, options = NETWORKS[name]
    dt = 1.0 if isinstance(network, EchoStateNetwork) else DT
    task = Task(stimuli(n_channels), dt, 10.0, **options)
    family = make_family(network, parameters, None, STEPS * dt, dt)
    direction = np.random.default_rng(0).standard_normal(len(family.start))
    direction /= np.linalg.norm(direction)

    # Off the start, so that nothing holds at a special place only.
    x = family.start - 0.1 * np.abs(direction)
    here = task.solve(family.network(x))
    gradient = task.gradient(family, x, here)
    # Steps over which the remainder is far above what the solver leaves, 1e-12 of κ.
    steps = np.geomspace(3e-4, 3e-3, 3)
    remainders = [
        abs(
            task.solve(family.network(x + step * direction)).soft_margin
            - here.soft_margin
            - step * gradient @ direction
        )
        for step in steps
    ]
    assert abs(gradient @ direction) > 1e-4 * here.soft_margin
    assert slope(steps, remainders) > 1.9


def test_a_step_is_what_optimize_finds():
    network, given = small(n=10), stimuli()
    path = optimize_reservoir(network, given, DT, noise=0.1, max_evaluations=4)
    for i in (0, path.best):
        there = Reservoir(
            path.parameters["g"][i] * network.weights, path.parameters["tau"][i]
        )
        found = optimize(
            unfold(there, n_steps=STEPS, dt=DT),
            given,
            device=Device(state_noise=state_covariance(there, 0.1)),
        )
        assert found.soft_margin == pytest.approx(path.soft_margin[i], rel=1e-9)
    assert (path.soft_margin <= path.upper_bound * (1 + 1e-12)).all()
    assert np.isnan(path.held_out).all()
    np.testing.assert_array_equal(path.reservoir.weights, there.weights)


def test_the_ascent_ends_where_a_fine_grid_has_its_maximum():
    network, given = small(n=10), stimuli()
    path = optimize_reservoir(
        network, given, DT, ["tau"], tol=1e-9, max_evaluations=40, bounds={"tau": (0.1, 2)}
    )
    assert path.status == "converged"
    taus = np.geomspace(0.1, 2, 30)
    task = Task(given, DT, 10.0)
    grid = [task.solve(network.with_tau(tau)).soft_margin for tau in taus]
    near = np.searchsorted(taus, path.parameters["tau"][path.best])
    low, high = max(near - 3, 0), near + 3
    # A maximum of the grid within its spacing, to the square of it.
    assert path.soft_margin[path.best] >= max(grid[low:high]) * (1 - 1e-6)
    assert path.soft_margin[path.best] > path.soft_margin[0]


def test_oscillators_gain_from_their_own_modes():
    network = Reservoir.oscillators(np.geomspace(0.3, 3, 5), np.geomspace(0.3, 6, 5))
    path = optimize_reservoir(
        network, stimuli(), DT, ("decay_times", "frequencies"), max_evaluations=15
    )
    assert path.parameters["frequencies"].shape == (len(path.soft_margin), 5)
    assert path.soft_margin[path.best] > 1.2 * path.soft_margin[0]
    decay = path.parameters["decay_times"][path.best]
    np.testing.assert_allclose(
        np.sort(path.reservoir.modes().time_constants), np.repeat(np.sort(decay), 2)
    )


def test_the_halves_are_stratified_and_apart():
    X, y = synthetic_heartbeats(61, rng=0)
    X, y = X[:57], y[:57]
    given = SampleStimuli(X, y, class_weight=None, length=2.0)
    chosen, reported = split_stimuli(given, 0.5, np.random.default_rng(0))
    assert isinstance(chosen, SampleStimuli)
    assert isinstance(reported, SampleStimuli)
    assert np.linalg.norm(chosen.mu) == pytest.approx(2.0)
    for sign in (-1, 1):
        counts = [(one.signs == sign).sum() for one in (chosen, reported)]
        assert sum(counts) == (given.signs == sign).sum()
        assert abs(counts[0] - counts[1]) <= 1
    back = reported.series / chosen.scale + chosen.centre
    everything = np.concatenate([chosen.series / chosen.scale + chosen.centre, back])
    wanted = np.sort(X.reshape(57, -1)[:, 0])
    np.testing.assert_allclose(np.sort(everything[:, 0, 0]), wanted, atol=1e-12)


def test_what_is_reported_is_the_margin_of_the_held_out_series():
    X, y = synthetic_heartbeats(60, rng=1)
    given = SampleStimuli(X, y)
    path = optimize_reservoir(
        small(n=10), given, 10 / X.shape[-1], max_evaluations=3, rng=5
    )
    _, reported = split_stimuli(given, 0.5, np.random.default_rng(5))
    assert isinstance(reported, SampleStimuli)
    system = unfold(path.reservoir, n_steps=X.shape[-1], dt=10 / X.shape[-1])
    z = system.states(reported.series, path.projections.u) @ path.projections.v
    signed = z * reported.signs
    weights = reported.case_weights
    mean = weights @ signed
    kappa = mean - 5.0 * (weights @ (signed - mean) ** 2)
    assert kappa == pytest.approx(path.held_out[path.best], rel=1e-9)
    again = optimize_reservoir(
        small(n=10), given, 10 / X.shape[-1], max_evaluations=3, rng=5
    )
    np.testing.assert_array_equal(again.held_out, path.held_out)


def test_further_starts_count():
    path = optimize_reservoir(
        small(n=10), stimuli(), DT, n_starts=4, max_evaluations=6, rng=0
    )
    assert len(path.soft_margin) == 6
    assert path.status == "max_evaluations"
    assert len(set(path.parameters["tau"][:4])) == 4


def test_an_unstable_network_on_the_way_is_avoided():
    slow = np.array([0.1, 5.0, 0.1, 5.0, 0.1, 5.0])
    network = Reservoir(weights(6, 0.95, seed=1), slow)  # g may go to 10 here
    path = optimize_reservoir(network, stimuli(), DT, ["g"], max_evaluations=12)
    assert path.reservoir.is_stable
    assert path.soft_margin[path.best] >= path.soft_margin[0]


@pytest.mark.parametrize("after", [1, 5, 12])
def test_ctrl_c_returns_the_best_so_far(monkeypatch, after):
    interrupt(monkeypatch, network_task, "unfold", after)
    if after < 5:  # solved, and two numbers moved either way, before it counts
        with pytest.raises(KeyboardInterrupt):
            optimize_reservoir(small(n=10), stimuli(), DT)
        return
    path = optimize_reservoir(small(n=10), stimuli(), DT)
    assert path.status == "interrupted"
    assert len(path.soft_margin) == after // 5
    assert path.message in str(networks.MESSAGES)
    assert "interrupted" in repr(path)


OSCILLATORS = Reservoir.oscillators([1.0, 2.0], [1.0, 0.5])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((None, stimuli(), DT), {}, TypeError, "`reservoir` must be a"),
        ((small(), None, DT), {}, TypeError, "`stimuli` must be SampleStimuli"),
        ((small(), stimuli()), {}, TypeError, "`dt` must be a positive number"),
        ((small(), stimuli(), -1), {}, ValueError, "`dt` must be a positive"),
        ((small(), stimuli(), DT, ["leak"]), {}, ValueError, "among tau, g, decay_times"),
        ((small(), stimuli(), DT, []), {}, ValueError, "name each parameter once"),
        ((small(), stimuli(), DT, ["g", "g"]), {}, ValueError, "name each parameter once"),
        ((small(), stimuli(), DT, "decay_times"), {}, ValueError, "Reservoir.oscillators"),
        ((OSCILLATORS, stimuli(), DT, ["g", "frequencies"]), {}, ValueError, "leave out"),
        ((small(), stimuli(), DT), {"bounds": {"leak": (0, 1)}}, ValueError, "name only"),
        ((small(), stimuli(), DT), {"bounds": {"tau": (0, 1)}}, ValueError, "0 < low"),
        ((small(), stimuli(), DT), {"bounds": {"tau": 3}}, ValueError, "two finite"),
        ((small(), stimuli(), DT), {"bounds": {"tau": (1, 2)}}, ValueError, ", 0.25"),
        ((small(), stimuli(), DT), {"held_out": 1.5}, ValueError, "a share below 1"),
        ((small(), stimuli(), DT), {"held_out": stimuli(2)}, ValueError, "have series"),
        ((small(), stimuli(), DT), {"max_evaluations": 0}, ValueError, "`max_evaluations`"),
        ((EchoStateNetwork.random(9, rng=0), stimuli()), {"noise": 0.1}, ValueError,
         "`noise` inside the network needs"),
    ],
)  # fmt: skip
def test_bad_input_is_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        optimize_reservoir(*arguments, **options)


def test_series_that_cannot_be_split():
    X, y = synthetic_heartbeats(20, rng=0)
    few = np.concatenate([np.flatnonzero(y == y.max())[:1], np.flatnonzero(y == y.min())])
    given = SampleStimuli(X[few], y[few])
    with pytest.raises(ValueError, match="be None if a class has only one series"):
        optimize_reservoir(small(), given, 0.1)
    stream = SampleStimuli.from_batches([(X, y)])
    with pytest.raises(ValueError, match="needs the series in memory"):
        optimize_reservoir(small(), stream, 0.1)
    found = optimize_reservoir(small(), stream, 0.1, held_out=None, max_evaluations=1)
    assert len(found.soft_margin) == 1


def test_a_network_fitted_to_few_series_is_told():
    """Noise: the half that is fitted gains what the other half loses."""
    rng = np.random.default_rng(0)
    few = SampleStimuli(rng.standard_normal((8, 6)), np.arange(8) % 2)
    with pytest.warns(
        UserWarning, match="held-out series fell from .* to -.*use more series"
    ):
        optimize_reservoir(Reservoir.random(6, rng=0), few, DT, eta=0.5, rng=0)
