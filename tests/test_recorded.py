"""What the library computes, pinned: one small fixed problem each, with its numbers.

A refactoring moves code and changes no number. The numbers are in ``recorded.json``; a
problem is a function that computes them again with public names alone. Where a change of
the numbers is wanted, record them anew and look at what the script prints::

    python -m tests.test_recorded             # new problems; says which numbers changed
    python -m tests.test_recorded --accept    # the changed numbers too
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from greenfold import (
    Alternating,
    Ascent,
    Box,
    Device,
    Dynamics,
    EchoStateNetwork,
    ExpansionWarning,
    Gain,
    GaussianStimuli,
    Levels,
    MeasuredResponse,
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    RandomDraws,
    RegressionTask,
    Reservoir,
    ReservoirClassifier,
    ReservoirFeatures,
    ReservoirForecaster,
    ReservoirRegressor,
    SampleStimuli,
    SequenceRegressor,
    SequenceTask,
    choose_eta,
    choose_tau,
    memory_capacity,
    noisy_accuracy,
    optimize_reservoir,
    simulate,
    unfold,
)
from greenfold import optimize as optimize_free
from greenfold.analysis import (
    margin_interval,
    margin_over_angle,
    margin_over_time,
    mask_bound,
    study_mask,
)
from greenfold.datasets import (
    channel_equalisation,
    lorenz,
    mackey_glass,
    memory_task,
    narma,
    synthetic_heartbeats,
)
from greenfold.devices.noise import state_covariance
from greenfold.estimators.margin import to_numpy
from greenfold.math.decisions import (
    expected_calibration_error,
    fit_slope,
    with_heavy_tails,
)
from greenfold.math.margins import gaussian_soft_margin, margin, soft_margin, state_moments
from greenfold.math.sphere import maximize_on_sphere
from greenfold.networks.matrices import dense
from greenfold.validity import assess, check_by_simulation

RECORD = Path(__file__).with_name("recorded.json")
#: Relative to the largest entry of what is compared; of what is near zero, absolute, as if
#: the largest entry were this.
TOLERANCE, SMALL = 1e-9, 1e-3
#: What a `Device` is asked for.
DEVICE = [field.name for field in fields(Device) if field.init]


def optimize(*arguments: Any, **options: Any) -> Any:
    """`greenfold.optimize`, with what is asked of the hardware in one `Device`."""
    asked = {name: options.pop(name) for name in DEVICE if name in options}
    device = Device(**asked) if asked else None
    return optimize_free(*arguments, device=device, **options)


class Problem(NamedTuple):
    """What is computed, entries that are compared less strictly, a package it needs."""

    compute: Callable[[], dict[str, Any]]
    loose: dict[str, float]
    needs: str | None


PROBLEMS: dict[str, Problem] = {}


def problem(
    name: str, loose: dict[str, float] | None = None, needs: str | None = None
) -> Callable[[Any], Any]:
    """Enter a function that returns named numbers, arrays and words."""

    def keep(compute: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        assert name not in PROBLEMS
        PROBLEMS[name] = Problem(compute, loose or {}, needs)
        return compute

    return keep


def enter(
    section: str,
    table: dict[str, Callable[[], Any]],
    describe: Callable[[Any], dict[str, Any]],
    loose: dict[str, float] | None = None,
) -> None:
    """Enter a table of things that are made, each described in the same way."""
    for name, make in table.items():
        problem(f"{section}: {name}", loose)(lambda make=make: describe(make()))


#: An ascent ends where κ gains less than 1e-14 of itself per step (1e-7 beyond the linear
#: order). κ is stationary there, and equal to rounding. u is known to the square root, the
#: less the flatter κ is, and with it what is of first order in u. With one ulp of noise on
#: the data, or the BLAS kernels of other processors, u moves by up to 1e-6. A gap is a
#: difference, and known to 1e-9 of the bound, not of itself.
ASCENDED = {"u": 1e-5, "v": 1e-5, "separation": 1e-6, "variance": 1e-6, "gap": 1e-6}
ASCENDED |= {f"cost of {kind}": 1e-6 for kind in ("input", "state", "readout")}
#: The bound is lowered until it is within 1e-4 of κ, or until a descent over a function
#: with kinks ends. Where rounding decides which step is the last, it moves by up to 1e-5;
#: in a regression, whose descent is one alone, by 1e-4.
KINKED = {"bound": 1e-4, "gap": 0.1}


# What the problems are made of


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def weights(n: int = 5, radius: float = 0.8, seed: int = 3) -> np.ndarray:
    made = draw(seed, n, n)
    return radius / np.abs(np.linalg.eigvals(made)).max() * made


def network(gain: Gain | None = None, n: int = 5, tau: Any = 0.5, **given: Any) -> Any:
    return Reservoir(weights(n), tau, gain, **given)


def unit(seed: int, *shape: int) -> np.ndarray:
    made = draw(seed, *shape)
    return made / np.linalg.norm(made)


def series(n_steps: int = 5, n_channels: int = 1, n_classes: int = 2, n: int = 16) -> Any:
    """Series of classes that overlap, and their labels."""
    y = np.arange(n) % n_classes
    patterns = draw(11, n_classes, n_channels, n_steps)
    X = 0.8 * patterns[y] + draw(12, n, n_channels, n_steps)
    return (X[:, 0] if n_channels == 1 else X), y


def samples(n_steps: int = 5, n_channels: int = 1, **given: Any) -> SampleStimuli:
    return SampleStimuli(*series(n_steps, n_channels), **given)


def gaussian(n_steps: int = 5, n_channels: int = 1, **given: Any) -> GaussianStimuli:
    return GaussianStimuli.random(n_steps, n_channels=n_channels, rng=4, **given)


def linear(**given: Any) -> Any:
    return unfold(network(), n_steps=5, dt=0.5, **given)


def device() -> MeasuredResponse:
    """Four inputs, three outputs, five steps."""
    fading = 0.7 ** np.arange(5)[::-1]
    return MeasuredResponse(fading[:, None, None] * draw(21, 5, 3, 4), dt=0.5)


def recorded_device() -> MeasuredResponse:
    drive, W = draw(22, 400, 3), weights(4, seed=23)
    states, V = np.zeros((400, 4)), draw(24, 4, 3)
    for t in range(1, 400):
        states[t] = W @ states[t - 1] + V @ drive[t]
    return MeasuredResponse.fit(
        drive, states + 0.3 * draw(25, 400, 4), n_steps=5, n_blocks=12
    )


# What is recorded of what was found


def sign_of(u: Any) -> float:
    """The sign that makes the first of the large entries positive."""
    flat = np.ravel(u)
    return float(np.sign(flat[np.flatnonzero(np.abs(flat) >= 0.5 * np.abs(flat).max())[0]]))


def projections(best: Any, *, odd: bool = True) -> dict[str, Any]:
    """A result of `optimize`; u and v up to a common sign where the network is odd."""
    sign = sign_of(best.u) if odd else 1.0
    found = {
        "kappa": best.soft_margin,
        "separation": best.separation,
        "variance": best.variance,
        "bound": best.upper_bound,
        "gap": best.gap,
        "status": best.status,
        "method": best.method,
        # Those from the linear optimum with both signs come in either order.
        "starts": np.sort(best.starts) if best.method == "ascent" else best.starts,
        "u": sign * best.u,
        "v": sign * best.v,
    }
    extra = ("growth", "fresh_margin", "fresh_error", "step_error", "mask")
    found |= {
        name: getattr(best, name) for name in extra if getattr(best, name) is not None
    }
    found |= {f"cost of {name}": cost for name, cost in (best.noise_cost or {}).items()}
    return found | ({} if best.validity is None else validity(best.validity))


def validity(verdict: Any) -> dict[str, Any]:
    names = (
        "order",
        "largest_eigenvalue",
        "next_order",
        "state_error",
        "soft_margin_error",
        "trustworthy",
        "scale",
        "simulated_loss",
        "simulated_points",
        "n_simulated",
    )
    return {name: getattr(verdict, name) for name in names}


def regression(best: Any) -> dict[str, Any]:
    sign = sign_of(best.u)
    return {
        "gain": best.gain,
        "bound": best.upper_bound,
        "loss": best.loss,
        "r2": best.r2,
        "status": best.status,
        # While a gap is left, it ascends from directions that rounding turns.
        "starts": best.starts[:1] if best.status == "bounded" else best.starts,
        "u": sign * best.u,
        "V": sign * best.V,
    }


def classified(classifier: Any, X: Any, *, odd: bool = True) -> dict[str, Any]:
    """A fitted `ReservoirClassifier`, and what it says of series."""
    u, v = np.asarray(classifier.u_), np.asarray(classifier.v_)
    n_heads = len(v) if v.ndim == 2 else 1
    heads_u = u[None] if n_heads == 1 or len(u) != n_heads else u
    signs = np.array([sign_of(one) if odd else 1.0 for one in heads_u])
    states = classifier.transform(X[:2]).reshape(2, n_heads, -1)
    return {
        "kappa": classifier.soft_margin_,
        "bound": classifier.soft_margin_bound_,
        "shared bound": classifier.shared_bound_,
        "eta": classifier.eta_,
        "tau": classifier.reservoir_.tau,
        "calibration": classifier.calibration_,
        "threshold": classifier.threshold_,
        "coupling": classifier.coupling_,
        "scale": classifier.scale_,
        "u": signs[0] * u if len(signs) == 1 else np.einsum("h,h...->h...", signs, u),
        "v": signs[0] * v if len(signs) == 1 else signs[:, None] * v,
        "states": signs[:, None] * states,
        "decisions": classifier.decision_function(X),
        "probabilities": classifier.predict_proba(X)[:, 1:],
        "predictions": classifier.predict(X),
    }


# Networks


U = unit(31, 6)


def behaviour(made: Any) -> dict[str, Any]:
    """Weights, rest, modes, and states of the linear order after a series."""
    modes = 1 / made.modes().time_constants if isinstance(made, Reservoir) else None
    step = None if isinstance(made, Reservoir) else dense(made.linear_step[0], "", "")
    system = unfold(made, n_steps=4, dt=0.5 if modes is not None else None)
    return {
        "weights": dense(made.weights, "", ""),
        "rest": made.rest,
        "decay": modes,
        "linear step": step,
        "states": system.states(draw(32, 2, 4), U),
    }


RING = sparse.csr_array(np.eye(6, k=1) + 2 * np.eye(6, k=-5))
PLACES = np.linspace(0, 1, 12).reshape(6, 2) ** 2
NETWORKS: dict[str, Callable[[], Any]] = {
    "random": lambda: Reservoir.random(6, g=0.7, rng=1),
    "random, of a connectivity and a radius": lambda: Reservoir.random(
        6, rng=2, connectivity=0.5, spectral_radius=0.8
    ),
    "excitatory and inhibitory": lambda: Reservoir.excitatory_inhibitory(
        6, 0.6, tau=(0.4, 0.2), rng=1, excitatory=0.5, connectivity=0.7, bias=(0.1, -0.2)
    ),
    "cycle": lambda: Reservoir.cycle(6, 0.8),
    "delay line": lambda: Reservoir.delay_line(6, 0.8, tau=0.3),
    "oscillators": lambda: Reservoir.oscillators([1.0, 2.0, 4.0], [3.0, 1.0, 0.5]),
    "spatial": lambda: Reservoir.spatial(6, 0.7, rng=3, connectivity=0.4),
    "spatial, at given places": lambda: Reservoir.spatial(
        6, rng=4, reach=0.5, connectivity=0.5, positions=PLACES, spectral_radius=0.7
    ),
    "Legendre": lambda: Reservoir.legendre(6, theta=2.0),
    "graph": lambda: Reservoir.from_graph(RING, inhibitory=[2], spectral_radius=0.7),
    "sparse weights": lambda: Reservoir(sparse.coo_array(np.tril(weights(6)))),
    "bias and unequal time constants": lambda: network(
        Gain.sigmoid(), 6, np.linspace(0.2, 0.6, 6), bias=np.linspace(-1, 1, 6)
    ),
    "softplus at rest": lambda: network(Gain.softplus(), 6),
    "another mean time constant": lambda: network(
        Gain.tanh(), 6, np.linspace(0.2, 0.6, 6), bias=0.3
    ).with_tau(0.3),
    "growing modes": lambda: Reservoir(weights(6, 1.3), allow_unstable=True, bias=0.1),
    "echo state": lambda: EchoStateNetwork.random(6, rng=1, connectivity=0.6),
    "echo state, bias and unequal leak": lambda: EchoStateNetwork(
        weights(6), np.linspace(0.3, 1, 6), Gain.sigmoid(), np.linspace(-1, 1, 6)
    ),
    "echo state cycle": lambda: EchoStateNetwork.cycle(6, 0.8, 0.7),
    "echo state delay line": lambda: EchoStateNetwork.delay_line(6, bias=0.2),
    "echo state in space": lambda: EchoStateNetwork.spatial(6, rng=2, connectivity=0.5),
    "echo state Legendre": lambda: EchoStateNetwork.legendre(6, theta=5.0),
    "echo state of a graph": lambda: EchoStateNetwork.from_graph(RING, leak=0.3, bias=0.1),
}
enter("network", NETWORKS, behaviour)

GAINS = {
    "tanh": Gain.tanh(5),
    "biased tanh": Gain.biased_tanh(0.4, 5),
    "sigmoid": Gain.sigmoid(5),
    "softplus": Gain.softplus(5),
    "relu": Gain.relu(),
    "quadratic": Gain.quadratic(0.05),
    "polynomial": Gain.polynomial([0.0, 1.0, 0.2, -0.3]),
}


@problem("gains")
def gains():
    at = np.array([-1.5, -0.2, 0.3, 2.0])
    found: dict[str, Any] = {f"{name} series": g.coefficients for name, g in GAINS.items()}
    found |= {name: [g(at), g.derivative(at)] for name, g in GAINS.items()}
    return found | {"tanh around": Gain.tanh(3).around(np.array([0.4, -0.7]))}


# Systems


def answers(system: Any, n_channels: int = 1) -> dict[str, Any]:
    """States, a trajectory and the gradient of a system of five steps."""
    X = draw(41, 2, n_channels, 5)
    u, v = unit(42, system.n_inputs, n_channels), unit(43, system.n_outputs)
    by_u, by_v = system.pullback(X, u, draw(45, 2), v)
    found = {
        "states": system.states(X, u),
        "gradient of states": system.pullback(X, u, draw(44, 2, system.n_outputs)),
        "gradient of u": by_u,
        "gradient of v": by_v,
    }
    if isinstance(system, MeasuredResponse):  # which knows the end alone
        return found
    return found | {"path": system.states(X[:1], u, trajectories=True)[0, ::2]}


SIGMOID: dict[str, Any] = {
    "gain": Gain.sigmoid(),
    "tau": np.linspace(0.3, 0.7, 5),
    "bias": 0.2,
}
WEIGHTS = np.array([0.0, 1.0, -0.5, 0.0, 2.0])
QUADRATIC: dict[str, Any] = {"gain": Gain.quadratic(0.2)}


def unfolded(k: int, n_channels: int = 1, readout: Any = None, **given: Any) -> Any:
    system = unfold(network(**given), n_steps=5, dt=0.5, order=k, readout=readout)
    return answers(system, n_channels)


UNFOLDINGS: dict[str, Callable[[], dict[str, Any]]] = {
    "order 0": lambda: unfolded(0, **QUADRATIC),
    "order 1": lambda: unfolded(1, **QUADRATIC),
    "order 2": lambda: unfolded(2, **QUADRATIC),
    "order 3": lambda: unfolded(3, **QUADRATIC),
    "order 0, read inside a step": lambda: unfolded(0, readout=1.7),
    "order 1, read inside a step": lambda: unfolded(1, readout=1.7, **QUADRATIC),
    "order 0, read with weights": lambda: unfolded(0, readout=WEIGHTS),
    "order 1, read with weights": lambda: unfolded(1, readout=WEIGHTS, **QUADRATIC),
    "order 1, two channels": lambda: unfolded(1, 2, **QUADRATIC),
    "order 2 around a rest state": lambda: unfolded(2, **SIGMOID),
}
enter("unfolding", UNFOLDINGS, dict)


@problem("unfolding: orders apart")
def orders_apart():
    made = unfold(network(Gain.tanh()), n_steps=5, dt=0.5, order=3)
    return {"orders": made.states(draw(41, 2, 5), unit(42, 5), orders=True)}


@problem("unfolding: Green's functions")
def greens_functions():
    made = unfold(network(Gain.quadratic(0.2), 3), n_steps=3, dt=0.5, order=1)
    return {"first": made.greens1(), "second": made.greens2()[:, :, 0]}


@problem("unfolding: linear maps")
def linear_maps():
    system = linear(readout=1.7)
    return {
        "input": system.input_response(unit(42, 5)),
        "readout": system.readout_response(unit(43, 5)),
        "sum": system.response_sum(draw(46, 1, 5)).matrix(),
    }


@problem("unfolding: kernels")
def kernels():
    found: dict[str, Any] = {}
    X, u, v = draw(41, 3, 2, 5), unit(42, 5, 2), unit(43, 5)
    for order in (0, 1):
        made = unfold(network(Gain.quadratic(0.2)), n_steps=5, dt=0.5, order=order)
        kernel = made.kernels(u, v)
        found[f"linear {order}"] = kernel.linear
        found[f"decisions {order}"] = kernel.decision_values(X)
        if kernel.quadratic is not None:
            found["quadratic"] = kernel.quadratic[0, :, 1]
    return found


def integrated(made: Any, n_channels: int = 1, **given: Any) -> dict[str, Any]:
    tol = {} if isinstance(made, EchoStateNetwork) else {"tol": 1e-3}
    system = Dynamics(made, n_steps=5, **{**tol, **given})
    found = answers(system, n_channels)
    assert system.step_error is not None
    return found | {"sub-steps": system.step_error.n_sub}


def leaky(**given: Any) -> EchoStateNetwork:
    return EchoStateNetwork(weights(), **{"leak": 0.6, **given})


BIASED: dict[str, Any] = {"gain": Gain.sigmoid(), "bias": np.linspace(-1, 1, 5)}
TANH: dict[str, Any] = {"gain": Gain.tanh()}
DYNAMICS: dict[str, Callable[[], dict[str, Any]]] = {
    "tanh": lambda: integrated(network(**TANH), dt=0.5, tol=1e-6),
    "linear": lambda: integrated(network(), dt=0.5),
    "rectified": lambda: integrated(network(Gain.relu(), bias=0.3), dt=0.5, tol=1e-2),
    "around a rest state": lambda: integrated(network(**SIGMOID), dt=0.5),
    "two channels": lambda: integrated(network(Gain.biased_tanh(0.4)), 2, dt=0.5),
    "read inside a step": lambda: integrated(network(**TANH), dt=0.5, readout=1.7),
    "read with weights": lambda: integrated(network(**TANH), dt=0.5, readout=WEIGHTS),
    "from a given state": lambda: integrated(
        network(Gain.tanh(), bias=0.2), dt=0.5, start=np.zeros(5)
    ),
    "echo state": lambda: integrated(leaky()),
    "echo state around a rest state": lambda: integrated(leaky(**BIASED)),
}
enter("dynamics", DYNAMICS, dict)


# The implicit solver of stiff networks keeps to 1e-10 of a state, step by step.
@problem("simulation", {"stiff": 1e-7})
def simulation():
    X, u = draw(41, 2, 5), unit(42, 5)
    taus = np.r_[1e-4, np.full(4, 0.5)]  # one fast neuron makes it stiff
    return {
        "tanh": simulate(network(Gain.tanh()), X, u, 0.5, trajectories=True)[:, ::2],
        "around a rest state": simulate(network(**SIGMOID), X, u, 0.5),
        "stiff": simulate(network(Gain.tanh(), tau=taus), X[:1, :2], u, 0.5),
        "echo state": simulate(leaky(**BIASED), X, u, trajectories=True)[:, ::2],
    }


@problem("measured response")
def measured_response():
    system = device()
    found = answers(system, 2)
    kernel = system.kernels(unit(42, 4, 2), unit(43, 3))
    early = system.with_readout(1.5).kernels(unit(42, 4), unit(43, 3))
    return found | {"kernel": kernel.linear, "early": early.linear}


@problem("measured response: fitted")
def fitted_response():
    fit = recorded_device()
    assert fit.fitted is not None
    return {
        "G": fit.G,
        "lags": fit.fitted.n_lags,
        "ridge": fit.fitted.ridge,
        "linearity": fit.fitted.linearity,
        "linearity per output": fit.fitted.linearity_per_output,
        "standard error": fit.fitted.standard_error,
        "replicates": fit.replicates(2, rng=1)[:, -1],
    }


# Stimuli


def moments(stimuli: Any) -> dict[str, Any]:
    found = {"mu": stimuli.mu, "psi": np.asarray(stimuli.psi)[:3]}
    found["separability"] = stimuli.separability
    kept = getattr(stimuli, "signs", ()) is not None  # of a stream no series are
    system = unfold(network(Gain.quadratic(0.2)), n_steps=5, dt=0.5, order=int(kept))
    M, Sigma = stimuli.moments(system, unit(42, 5, stimuli.n_channels))
    return found | {"M": M, "Sigma": Sigma[:2]}


STIMULI: dict[str, Callable[[], Any]] = {
    "Gaussian": gaussian,
    "Gaussian, two channels": lambda: gaussian(n_channels=2),
    "samples": samples,
    "samples, two channels": lambda: samples(n_channels=2, length=0.5),
    "samples, weighted": lambda: samples(class_weight={0: 1.0, 1: 3.0}),
    "samples, as they are": lambda: samples(class_weight=None, normalize=None),
    "samples in batches": lambda: SampleStimuli.from_batches(
        [(X, y) for X, y in zip(*(np.split(one, 2) for one in series()), strict=True)]
    ),
}
enter("stimuli", STIMULI, moments)


@problem("stimuli: tasks of regression")
def tasks_of_regression():
    x, y = draw(51, 40, 2), draw(52, 40, 2)
    given = RegressionTask.from_series(x, y, n_steps=3, ridge=0.1)
    recall = RegressionTask.memory([0, 2], 4, ridge=0.1)
    return {
        "cross": given.cross,
        "covariance": given.covariance,
        "variance": given.variance,
        "recall": recall.cross,
    }


@problem("data sets")
def data_sets():
    beats, y = synthetic_heartbeats(3, n_steps=12, rng=1)
    made = {
        "narma": narma(40, 3, rng=1),
        "channel equalisation": channel_equalisation(12, rng=1),
        "Mackey–Glass": mackey_glass(12, rng=1),
        "memory": memory_task(12, 3, rng=1),
    }
    parts = {
        f"{name} {i}": np.asarray(one)[-8:]
        for name, both in made.items()
        for i, one in enumerate(both if isinstance(both, tuple) else (both,))
    }
    return {"beats": beats, "labels": y, **parts}


# Optimisation of linear systems


ONE: dict[str, Any] = {"rng": 7}
FREE: dict[str, Callable[[], Any]] = {
    "Gaussian": lambda: optimize(linear(), gaussian()),
    "samples": lambda: optimize(linear(), samples()),
    "small eta": lambda: optimize(linear(), samples(), 0.1),
    "large eta": lambda: optimize(linear(), samples(), 100.0),
    "two channels": lambda: optimize(linear(), samples(n_channels=2)),
    "read inside a step": lambda: optimize(linear(readout=2.3), samples()),
    "around a rest state": lambda: optimize(
        unfold(network(**SIGMOID), n_steps=5, dt=0.5), samples()
    ),
    "echo state": lambda: optimize(unfold(leaky(**BIASED), n_steps=5), samples()),
    "integrated": lambda: optimize(Dynamics(network(), n_steps=5, dt=0.5), samples()),
    "measured": lambda: optimize(device(), samples()),
    "driven and read": lambda: optimize(
        linear(), samples(), inputs=[0, 2, 3], outputs=np.arange(5) > 1
    ),
    "noise at the readout": lambda: optimize(device(), samples(), readout_noise=0.1),
    "growing modes": lambda: optimize(
        unfold(Reservoir(weights(5, 1.6), 0.5, allow_unstable=True), n_steps=5, dt=0.5),
        samples(),
    ),
    "box to one side": lambda: optimize(device(), samples(), mask=Box(-0.1, 0.7), **ONE),
}
WIDE: dict[str, Callable[[], Any]] = {
    "read with weights": lambda: optimize(linear(readout=WEIGHTS), samples()),
    "measured, two channels": lambda: optimize(device(), samples(n_channels=2)),
    "not negative": lambda: optimize(
        device(), samples(), mask="nonnegative", inputs=[0, 1, 3], **ONE
    ),
    "box": lambda: optimize(
        device(), samples(), mask=Box(-0.7, 0.7), inputs=[0, 1, 3], **ONE
    ),
    "noise on the input": lambda: optimize(device(), samples(), input_noise=0.3),
    "noise of states": lambda: optimize(
        linear(), samples(), state_noise=state_covariance(network(), 0.03)
    ),
    "all noise": lambda: optimize(
        linear(),
        samples(n_channels=2),
        input_noise=np.linspace(0.1, 0.3, 10),
        state_noise=np.linspace(0.01, 0.02, 5),
        readout_noise=0.05,
    ),
    "amplified much": lambda: optimize(
        unfold(Reservoir(6.0 * np.eye(5, k=-1), 0.3), n_steps=5, dt=0.5), samples()
    ),
}
#: Without an ascent at the end: u was given, drawn, or is one of finitely many.
DIRECT: dict[str, Callable[[], Any]] = {
    "given u": lambda: optimize(linear(), samples(), u=draw(61, 5)),
    "random": lambda: optimize(linear(), samples(), method=RandomDraws(4), **ONE),
    "alternating": lambda: optimize(
        linear(), samples(), method=Alternating(2, rounds=5), **ONE
    ),
    "sign": lambda: optimize(linear(), samples(), mask="sign", **ONE),
    "sign, many entries": lambda: optimize(
        unfold(network(n=13), n_steps=5, dt=0.5), samples(), mask="sign", **ONE
    ),
    "sign, two channels": lambda: optimize(
        device(), samples(n_channels=2), 1.0, mask="sign", inputs=[0, 3], **ONE
    ),
    "two levels": lambda: optimize(linear(), samples(), mask=Levels(2), **ONE),
    "three levels": lambda: optimize(linear(), samples(), mask=Levels(3), **ONE),
    "four levels": lambda: optimize(linear(), samples(), 1.0, mask=Levels(4), **ONE),
    "given levels": lambda: optimize(device(), samples(), mask=Levels([0, 0.5, 1]), **ONE),
    "given levels, many entries": lambda: optimize(
        unfold(network(n=8), n_steps=5, dt=0.5), samples(), mask=Levels([-1, 0, 2]), **ONE
    ),
    "driven, sign": lambda: optimize(
        linear(), samples(), inputs=[0, 2, 4], mask="sign", **ONE
    ),
    "one bit": lambda: optimize(linear(), samples(), bits=1),
    "three bits": lambda: optimize(linear(), samples(), bits=3),
    "sign and three bits": lambda: optimize(
        linear(), samples(), mask="sign", bits=3, **ONE
    ),
    "given u and two bits": lambda: optimize(linear(), samples(), u=draw(61, 5), bits=2),
    "noise on what is read, sign": lambda: optimize(
        linear(), samples(), outputs=[1, 2, 4], mask="sign", readout_noise=0.1, **ONE
    ),
}
enter("linear", FREE, projections, ASCENDED)
enter("linear", WIDE, projections, ASCENDED | KINKED)
enter("linear", DIRECT, projections, {"gap": ASCENDED["gap"]})


@problem("linear: coinciding means")
def coinciding_means():
    best = optimize(linear(), gaussian(strength=0.0))
    # Every u and v are as good as these, up to rounding.
    return {"kappa": best.soft_margin, "bound": best.upper_bound, "status": best.status}


# Optimisation of systems that are not linear


def expanded(order: int, alpha: float = 0.05, **given: Any) -> Any:
    made = network(Gain.quadratic(alpha))
    return unfold(made, n_steps=5, dt=0.5, order=order, **given)


def dynamics(gain: Gain | None = None, **given: Any) -> Dynamics:
    made = network(gain or Gain.biased_tanh(0.4), **given)
    return Dynamics(made, n_steps=5, dt=0.5, tol=1e-3)


#: The first start is the linear optimum, whose sign is that of a singular vector: any. Both
#: signs are tried from two starts on.
TWO: dict[str, Any] = {"method": Ascent(n_starts=2)}
SHORT: dict[str, Any] = {"method": Ascent(n_starts=2, max_evaluations=6)}
CONVERGED: dict[str, Callable[[], Any]] = {
    "order 1, samples": lambda: optimize(
        expanded(1), samples(), method=Ascent(n_starts=4), **ONE
    ),
    "driven and read": lambda: optimize(
        expanded(1), samples(), inputs=[0, 2, 4], outputs=[1, 2, 4], **TWO
    ),
    "integrated, odd": lambda: optimize(
        dynamics(Gain.tanh()), samples(), method=Ascent(n_starts=1)
    ),
    "integrated, many series": lambda: optimize(
        dynamics(), SampleStimuli(*series(n=160)), **TWO
    ),
    "echo state, two channels": lambda: optimize(
        Dynamics(leaky(**BIASED), n_steps=5), samples(n_channels=2), **TWO
    ),
    "given u": lambda: optimize(expanded(1), samples(), u=draw(61, 5)),
    "random": lambda: optimize(expanded(1), samples(), method=RandomDraws(2), **ONE),
    "integrated, random": lambda: optimize(
        dynamics(), samples(), method=RandomDraws(2), **ONE
    ),
}
CUT_SHORT: dict[str, Callable[[], Any]] = {
    "order 1, Gaussian": lambda: optimize(expanded(1), gaussian(strength=0.3), **SHORT),
    "order 1, two channels": lambda: optimize(expanded(1), samples(n_channels=2), **SHORT),
    "order 1, read inside a step": lambda: optimize(
        expanded(1, readout=2.3), samples(), **SHORT
    ),
    "order 2, samples": lambda: optimize(expanded(2), samples(), **SHORT),
    "order 1 around a rest state": lambda: optimize(
        unfold(network(**SIGMOID), n_steps=5, dt=0.5, order=1), samples(length=0.3), **SHORT
    ),
    "not trusted": lambda: optimize(expanded(1, 0.8), samples(), **SHORT),
    "integrated": lambda: optimize(dynamics(), samples(), method=Ascent(3, 3), **ONE),
    "integrated, Gaussian": lambda: optimize(dynamics(), gaussian(n_draws=10), **SHORT),
    "alternating, Gaussian": lambda: optimize(
        expanded(1), gaussian(), method=Alternating(1, rounds=5), **ONE
    ),
    "alternating, samples": lambda: optimize(
        expanded(1), samples(), method=Alternating(1, rounds=5), **ONE
    ),
}


def trusted_or_not(solve: Callable[[], Any], *, odd: bool) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpansionWarning)
        return projections(solve(), odd=odd)


#: What is said of trust follows u. Many series are ascended in single precision first, so
#: that the ends differ by more.
FOLLOWING = dict.fromkeys(
    ("largest_eigenvalue", "next_order", "state_error", "soft_margin_error", "scale"), 1e-5
)
FOLLOWING |= {"simulated_loss": 1e-5, "starts": 1e-6, "step_error": 1e-6}
for name, solve in (CONVERGED | CUT_SHORT).items():
    loose = ASCENDED | FOLLOWING
    if name in CUT_SHORT:  # where κ is not stationary
        loose |= {"kappa": 1e-6, "starts": 1e-5}
    problem(f"non-linear: {name}", loose)(
        partial(trusted_or_not, solve, odd=name.endswith("odd"))
    )


# Regression


def task(n_steps: int = 5, n_channels: int = 1) -> RegressionTask:
    X = draw(71, 30, n_channels, n_steps)
    y = np.stack([X[:, 0, -2] - X[:, -1, -3], X[:, 0, -1] ** 2 + X[:, -1, -4]], axis=1)
    return RegressionTask.from_cases(X, y, ridge=0.05)


REGRESSION: dict[str, Callable[[], Any]] = {
    "memory": lambda: optimize(linear(), RegressionTask.memory([1, 2, 4], 5), **ONE),
    "cases": lambda: optimize(linear(), task(), **ONE),
    "given u": lambda: optimize(linear(), task(), u=draw(61, 5)),
    "measured, two channels": lambda: optimize(device(), task(n_channels=2), **ONE),
    "order 1": lambda: optimize(expanded(1), task(), **TWO, **ONE),
    "integrated": lambda: optimize(dynamics(), task(), **SHORT, **ONE),
}
SEARCHED = {"u": 1e-5, "V": 1e-5, "r2": 1e-6}
enter("regression", REGRESSION, regression, {"bound": 1e-3, **SEARCHED})  # see `KINKED`


# Questions around an optimum


@problem("diagnosis: eta")
def eta():
    X, y = series()
    solved = choose_eta(linear(), X, y, noise=0.05, rng=1)
    kept = choose_eta(
        device(),
        X,
        y,
        u=draw(61, 4),
        etas=[1, 10, 100],
        n_folds=3,
        threshold="origin",
        class_weight=None,
        rng=1,
    )
    return {
        "best": solved.best,
        "score": solved.score,
        "accuracy": solved.accuracy.mean(1),
        "calibration": solved.calibration,
        "best of a kept u": kept.best,
        "score of a kept u": kept.score,
        "overlap": kept.overlap,
    }


@problem("diagnosis: tau")
def tau():
    found = choose_tau(network(), samples(), 0.5, [0.1, 0.4, 1.6], n_projections=3, rng=1)
    return {
        "best": found.best,
        "kappa": found.soft_margin,
        "saturation": found.saturation,
        "times": found.times,
    }


@problem("diagnosis: memory capacity")
def memory():
    found: dict[str, Any] = {}
    for name, u in {"solved": "solved", "random": "random", "given": unit(42, 5)}.items():
        one = memory_capacity(linear(), u, delays=[0, 1, 3], n_draws=3, rng=1)
        found[f"{name} capacity"], found[f"{name} total"] = one.capacity, one.total
        found[f"{name} bound"], found[f"{name} draws"] = one.bound, one.random
        found[f"{name} u"] = sign_of(one.u) * one.u
    return found


@problem("diagnosis: margin over time and angle")
def sweeps():
    u, v = unit(42, 5), unit(43, 5)
    solved = margin_over_time(linear(), samples(), [1.0, 2.2])
    kept = margin_over_time(expanded(1), samples(), [1.0, 2.5], u=u)
    both = margin_over_time(linear(), samples(), u=u, v=v)
    turned = margin_over_angle(linear(), samples(), u, [0.0, 0.5, 1.5], n_planes=2, rng=1)
    return {
        "solved": solved.soft_margin,
        "given u": kept.soft_margin,
        "given u and v": [both.soft_margin, both.separation, both.variance],
        "turned": turned,
    }


def path_of(made: Any, stimuli: Any, *given: Any, **options: Any) -> dict[str, Any]:
    with warnings.catch_warnings():  # a dozen series are few
        warnings.filterwarnings("ignore", "the soft margin of the held-out series fell")
        path = optimize_reservoir(made, stimuli, *given, rng=1, **options)
    return {
        **{f"{name} on the way": values for name, values in path.parameters.items()},
        "kappa": path.soft_margin,
        "bound": path.upper_bound,
        "held out": np.nan_to_num(path.held_out),
        "gradient": path.gradient,
        "best": path.best,
        "status": path.status,
    }


RESERVOIRS: dict[str, Callable[[], dict[str, Any]]] = {
    "tau and g": lambda: path_of(network(n=4), samples(), 0.5, eta=1.0, max_evaluations=3),
    "noise inside": lambda: path_of(
        network(n=3), gaussian(), 0.5, noise=0.02, max_evaluations=2
    ),
    "oscillators": lambda: path_of(
        Reservoir.oscillators([1.0, 2.0], [2.0, 0.5]),
        samples(),
        0.5,
        ["decay_times", "frequencies"],
        held_out=None,
        max_evaluations=3,
    ),
    "echo state": lambda: path_of(leaky(), samples(), max_evaluations=3, n_starts=2),
}
#: Where a quasi-Newton step leads follows the gradient, and that u and v.
ON_THE_WAY = dict.fromkeys(
    [f"{p} on the way" for p in ("tau", "g", "leak", "decay_times", "frequencies")], 1e-5
)
enter(
    "diagnosis: network",
    RESERVOIRS,
    dict,
    {"kappa": 1e-6, "held out": 1e-5, "gradient": 1e-5, "bound": 1e-3, **ON_THE_WAY},
)


# A descent over kinks, see `KINKED`.
@problem("diagnosis: bounds of masks", {"sign": 1e-6, "nonnegative": 1e-6})
def bounds_of_masks():
    found: dict[str, Any] = {}
    system, stimuli = MeasuredResponse(device().G[:, :2, :3]), samples()
    for mask in ("sign", "nonnegative"):
        best = optimize(system, stimuli, u=[1, 1, 1])
        found[mask] = mask_bound(system, stimuli, best, Device(mask=mask))
    return found


@problem("diagnosis: interval")
def interval():
    fit, stimuli = recorded_device(), samples(5)
    found: dict[str, Any] = {}
    for name, given in {"free": {}, "drawn": {"u": draw(62, 3)}}.items():
        best = optimize(fit, stimuli, 1.0, **given)
        made = margin_interval(
            fit, stimuli, best, n_replicates=10, solved="u" not in given, rng=1
        )
        found[name] = [made.estimate, made.low, made.high, made.optimism]
    return found


@problem("diagnosis: study of a mask")
def study_of_a_mask():
    study = study_mask(
        recorded_device(),
        samples(5),
        1.0,
        device=Device(mask=Levels([-1, 0, 1]), input_noise=0.1, readout_noise=0.1),
        n_draws=2,
        n_replicates=10,
        rng=1,
    )
    return {
        "values": sign_of(study.values) * study.values,
        "kappa": study.projections.soft_margin,
        "interval": [study.interval.estimate, study.interval.low, study.interval.high],
        "drawn": study.random,
        "gain": study.gain,
    }


@problem("validity")
def trust():
    u, v, (X, y) = unit(42, 5), unit(43, 5), series()
    found = validity(assess(expanded(2, 0.1), samples(), u, v))
    judged = check_by_simulation(expanded(1, 0.1), X, y, u, v)
    return found | {
        "simulated": [
            judged.state_error,
            judged.unfolded,
            judged.simulated,
            judged.simulated_best,
            judged.unfolded_accuracy,
            judged.simulated_accuracy,
        ]
    }


# Pure functions


@problem("margins")
def margins():
    states, labels, v = draw(81, 10, 4), np.repeat([1, -1], 5), unit(82, 4)
    M, Sigma = state_moments(states, labels, np.linspace(1, 2, 10))
    return {
        "M": M,
        "Sigma": Sigma,
        "Gaussian": gaussian_soft_margin(M, Sigma, v, 3.0),
        "soft": soft_margin(states, labels, v, 3.0),
        "hard": margin(states, labels, v),
    }


@problem("sphere")
def sphere():
    A = draw(83, 2, 5, 5)
    best = maximize_on_sphere(draw(84, 2, 5), A @ A.transpose(0, 2, 1))
    hard = maximize_on_sphere([0.0, 0.1, 0.2], np.diag([1.0, 2.0, 3.0]))
    return {
        "v": best.v,
        "value": best.value,
        "multiplier": best.multiplier,
        "hard": [hard.value, hard.multiplier, hard.hard_case],
        "hard v": np.abs(hard.v),
    }


@problem("noise")
def noise():
    slopes = network(**SIGMOID)
    return {
        "for ever": state_covariance(network(), 0.2),
        "for a time": state_covariance(slopes, np.linspace(0.1, 0.3, 5), 1.5),
    }


@problem("calibration")
def calibration():
    scores, codes = draw(85, 20, 3), np.arange(20) % 3
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    possible = np.ones((20, 3), bool)
    possible[:5, 2] = codes[:5] == 2
    right = scores + 2 * np.eye(3)[codes]
    return {
        "slope": fit_slope(right, codes),
        "weighted": fit_slope(right, codes, np.linspace(1, 2, 20), possible),
        "tails": with_heavy_tails(scores[:3]),
        "error": expected_calibration_error(p, codes, 5),
    }


# Estimators


def network_parameters(reservoir: Any = None) -> dict[str, Any]:
    """Return what an estimator is told of its network besides ``reservoir``."""
    if isinstance(reservoir, Reservoir):
        return {"duration": 3.0}
    drawn = {"n_neurons": 5, "g": 0.7} if reservoir is None else {}
    return {**drawn, "tau": 0.5, "duration": 3.0}


def fit_classifier(n_channels: int = 1, n_classes: int = 2, **given: Any) -> dict[str, Any]:
    X, y = series(5, n_channels, n_classes)
    names = np.array(["a", "b", "c"])[y]
    classifier = ReservoirClassifier(
        **{**network_parameters(given.get("reservoir")), "random_state": 1, **given}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        classifier.fit(X[:9], names[:9])
    return classified(classifier, X[12:], odd=not given.get("order"))


def slow(gain: Gain) -> Reservoir:
    """Few sub-steps are enough for it."""
    return network(gain, tau=2.0)


#: What a u that is drawn leaves of a fit: no ascent in the folds, which take the time.
DRAWN: dict[str, Any] = {"input_projection": "random", "eta": 10.0}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "linear": {"eta": 10.0},
    "cross-validated eta": {},
    "two channels, certified": {"n_channels": 2, "eta": 1.0, "certify": True},
    "three classes": {"n_classes": 3, "eta": 1.0},
    "shared, certified": {
        "n_classes": 3,
        "input_projection": "shared",
        "eta": 10.0,
        "certify": True,
    },
    "order 1": {"order": 1, "eta": 1.0},
    "exact": {"order": "exact", "eta": 1.0, "reservoir": slow(Gain.biased_tanh(0.4))},
    "cross-validated eta under noise": {
        "input_projection": draw(91, 5),
        "readout_noise": 0.1,
    },
    "own network": {**DRAWN, "reservoir": network(Gain.tanh(), bias=0.3)},
    "given": {"input_projection": draw(91, 5)},
    "three classes, cross-validated eta": {
        "n_classes": 3,
        "input_projection": draw(91, 5),
    },
    "random": DRAWN,
    "automatic tau": {**DRAWN, "tau": "auto"},
    "balanced": {**DRAWN, "n_classes": 3, "class_weight": "balanced"},
    "weighted": {"input_projection": draw(91, 5), "class_weight": {"a": 1.0, "b": 4.0}},
    "through the origin": {**DRAWN, "threshold": "origin"},
    "three through the origin": {**DRAWN, "n_classes": 3, "threshold": "origin"},
    "not scaled": {**DRAWN, "input_scaling": None},
    "integrated readout": {**DRAWN, "readout": "integrated"},
    "early readout": {**DRAWN, "readout": 2.7},
    "weights of steps": {**DRAWN, "readout": np.linspace(0, 1, 5)},
    "own weights": {**DRAWN, "reservoir": weights()},
    "order 1, three classes, two channels": {
        **DRAWN,
        "order": 1,
        "n_classes": 3,
        "n_channels": 2,
    },
    "order 2": {**DRAWN, "order": 2},
    "exact, random": {**DRAWN, "order": "exact", "reservoir": slow(Gain.softplus())},
}
#: The ascent of a fit ends where κ gains less than 1e-6 of itself per step, always at the
#: same one, but not at an optimum: all that follows u is of first order in its rounding.
#: The bound there is no more than valid.
FITTED: dict[str, float] = dict.fromkeys(("u", "v", "states", "bound"), 1e-5)
FITTED |= dict.fromkeys(
    ("decisions", "probabilities", "threshold", "coupling", "calibration"), 1e-6
)
for name, given in CLASSIFIERS.items():
    kept = "input_projection" in given and not isinstance(given["input_projection"], str)
    loose = {"bound": 1e-5} if kept or given.items() >= DRAWN.items() else FITTED
    problem(f"classifier: {name}", loose)(partial(fit_classifier, **given))


@problem("classifier: series of unequal length")
def unequal_length():
    X, y = series()
    some = [one[: 4 + i % 3] for i, one in enumerate(X)]
    made = ReservoirClassifier(n_neurons=5, g=0.7, random_state=1, **DRAWN).fit(some, y)
    return {"kappa": made.soft_margin_, "decisions": made.decision_function(some[:6])}


@problem("classifier: weights of series")
def weights_of_series():
    X, y = series()
    made = ReservoirClassifier(
        n_neurons=5, g=0.7, input_projection="random", random_state=1
    )
    made.fit(X, y, sample_weight=np.linspace(0.5, 2, len(y)))
    return {
        "kappa": made.soft_margin_,
        "eta": made.eta_,
        "decisions": made.decision_function(X[:6]),
    }


@problem("classifier: a stream")
def stream():
    X, y = series()
    made = ReservoirClassifier(n_neurons=5, g=0.7, random_state=1, **DRAWN)
    for part in (slice(0, 8), slice(8, 16)):
        made.partial_fit(X[part], y[part], classes=[0, 1])
    return {
        "kappa": made.soft_margin_,
        "calibration": made.calibration_,
        "decisions": made.decision_function(X[:6]),
    }


@problem("classifier: as plain arrays")
def as_plain_arrays():
    X, y = series()
    made = ReservoirClassifier(n_neurons=5, g=0.7, order=1, random_state=1, **DRAWN)
    made.fit(X, y)
    return {name: array for name, array in to_numpy(made).items() if name != "classes"}


@problem("classifier: accuracy under noise")
def accuracy_under_noise():
    found: dict[str, Any] = {}
    for n_classes in (2, 3):
        X, y = series(n_classes=n_classes)
        made = ReservoirClassifier(n_neurons=5, g=0.7, random_state=1, **DRAWN).fit(X, y)
        # Of three classes it is a share of 16 · 5 draws.
        found[f"{n_classes} classes"] = noisy_accuracy(made, X, y, 0.05, n_draws=5, rng=1)
        if n_classes == 2:
            found["all noise"] = noisy_accuracy(
                made, X, y, 0.05, input_noise=0.2, state_noise=np.linspace(0.01, 0.1, 5)
            )
    return found


def fit_regressor(n_channels: int = 1, n_targets: int = 2, **given: Any) -> dict[str, Any]:
    X = draw(71, 30, n_channels, 5)
    y = np.stack([X[:, 0, -2] - X[:, -1, -3], X[:, 0, -1] + 0.3 * draw(72, 30)], axis=1)
    regressor = ReservoirRegressor(
        **{**network_parameters(given.get("reservoir")), "random_state": 1, **given}
    ).fit(X[:24], y[:24, 0] if n_targets == 1 else y[:24])
    return {
        **regression(regressor.projections_),
        "ridge": regressor.ridge_,
        "kernel": regressor.kernel_,
        "predictions": regressor.predict(X[24:]),
    }


REGRESSORS: dict[str, dict[str, Any]] = {
    "leaving one out": {},
    "one target": {"n_targets": 1, "ridge": 0.01},
    "two channels, noise": {"n_channels": 2, "readout_noise": 0.1},
    "random": {"input_projection": "random"},
    "own network": {"reservoir": network(), "ridge": 0.01},
}
#: A small penalty makes V large, and what it multiplies nearly singular.
for name, given in REGRESSORS.items():
    loose = {"u": 1e-5, "V": 1e-5, "kernel": 1e-6, "predictions": 1e-6, "bound": 1e-4}
    problem(f"regressor: {name}", loose)(partial(fit_regressor, **given))


POOLED: dict[str, Any] = {
    "n_scales": 2,
    "n_oscillators": 4,
    "n_readouts": 16,
    "random_state": 1,
}


def unaligned(n_classes: int = 2, n_channels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Slow and fast oscillations that begin anywhere."""
    y = np.arange(18) % n_classes
    phase = 6 * np.random.default_rng(1).random((18, n_channels, 1))
    X = np.sin(np.arange(20) * (0.4 + 0.3 * y[:, None, None]) + phase)
    return X + 0.2 * draw(95, *X.shape), y


def features(engine: str, n_channels: int = 1, **given: Any) -> np.ndarray:
    X, _ = unaligned(n_channels=n_channels)
    return ReservoirFeatures(engine=engine, **POOLED, **given).fit(X).transform(X[:3])


def pooled_classifier(n_classes: int = 2, n_channels: int = 1, **given) -> dict[str, Any]:
    X, y = unaligned(n_classes, n_channels)
    made = PooledReservoirClassifier(engine="array", **POOLED, **given)
    made.fit(X[:12], y[:12])
    return {
        "penalty": made.penalty_,
        "slope": made.slope_,
        "held out": made.held_out_scores_,
        "decisions": made.decision_function(X[12:]),
        "probabilities": made.predict_proba(X[12:]),
        "predictions": made.predict(X[12:]),
    }


def missing_and_unequal() -> dict[str, Any]:
    X, y = unaligned()
    some = [one[:, : 20 - i % 4].copy() for i, one in enumerate(X)]
    some[3][:, 7:9] = np.nan
    made = PooledReservoirClassifier(engine="array", **POOLED).fit(some[:12], y[:12])
    return {"decisions": made.decision_function(some[12:])}


def pooled_regressor() -> dict[str, Any]:
    X, y = unaligned(n_channels=2)
    target = y + X[:, 0].max(axis=1)
    made = PooledReservoirRegressor(engine="array", **POOLED).fit(X[:12], target[:12])
    return {"penalty": made.penalty_, "predictions": made.predict(X[12:])}


POOLINGS: dict[str, Callable[[], dict[str, Any]]] = {
    "features": lambda: {"features": features("array")[:, ::47]},
    "features, two channels": lambda: {
        "features": features("array", 2, scaling="series")[:, ::47]
    },
    "classifier": pooled_classifier,
    "classifier, three balanced classes": partial(
        pooled_classifier, 3, 2, class_weight="balanced"
    ),
    "classifier, missing values and unequal length": missing_and_unequal,
    "regressor": pooled_regressor,
}
#: In single precision, 6e-8; what the ridge regression makes of it is some times more.
SINGLE = ("features", "penalty", "slope", "held out", "decisions", "probabilities")
enter("pooled", POOLINGS, dict, dict.fromkeys((*SINGLE, "predictions"), 1e-4))


def sequence_task(n_channels: int = 2) -> SequenceTask:
    x = draw(91, 80, n_channels)
    y = np.column_stack([x[:, 0] * np.roll(x[:, -1], 2), np.roll(x[:, 0], 1)])
    return SequenceTask.from_sequences(x, y, washout=12, n_read=20, ridge=1e-2, bias=1.0)


def solved_sequence(network: Any, dt: float | None = None) -> dict[str, Any]:
    task = sequence_task()
    system = Dynamics(network, n_steps=task.n_steps, dt=dt)
    given = optimize(system, task, u=draw(92, network.n_neurons, 3))
    best = optimize(system, task, method=Ascent(max_evaluations=30), rng=1)
    return {"loss at u": given.loss, "V at u": given.V, "loss": best.loss, "r2": best.r2}


FEW: dict[str, Any] = {"max_iter": 10}


def forecast(**given: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"random_state": 1, "washout": 20, "see_input": False}
    model = ReservoirForecaster(12, **options, **(given or FEW)).fit(lorenz(300, rng=0))
    assert model.chosen_.weights == ("drawn" if given else "solved")
    return {"forecast": model.forecast(4), "residual": model.residual_}


def sequence(**given: Any) -> dict[str, Any]:
    x, _, z = lorenz(300, rng=1).T
    options: dict[str, Any] = {"random_state": 1, "washout": 20, "see_input": False}
    options |= given or FEW
    model = SequenceRegressor(12, **options).fit(x, z)
    assert model.chosen_.weights == ("drawn" if given else "solved")
    return {"predictions": model.predict(x)[-5:], "washout": model.washout_}


SEQUENCES: dict[str, Callable[[], dict[str, Any]]] = {
    "echo state": partial(
        solved_sequence, EchoStateNetwork(weights(5, 0.8), 0.6, Gain.tanh())
    ),
    "continuous time": partial(
        solved_sequence, Reservoir(weights(5, 0.8), 0.7, gain=Gain.tanh()), 0.5
    ),
    "regressor": sequence,
    "regressor, random, sees its input": partial(
        sequence, input_weights="random", see_input=True
    ),
    "forecaster": forecast,
    "forecaster, random": partial(forecast, input_weights="random"),
}
#: Five and thirty steps of an ascent in a valley: rounding moves u along it.
ASCENDED = {"loss": 1e-6, "r2": 1e-5, "forecast": 1e-5, "residual": 1e-6}
enter("sequences", SEQUENCES, dict, {**ASCENDED, "predictions": 1e-5})


@problem("reservoirpy", needs="reservoirpy")
@pytest.mark.needs("reservoirpy")
def node_of_reservoirpy():
    from reservoirpy.nodes import Reservoir as Node

    from greenfold.reservoirpy import solve_input

    X, y = series()
    node = Node(W=weights(6), Win=unit(96, 6, 1), bias=np.full(6, 0.2), lr=0.6, input_dim=1)
    found: dict[str, Any] = {}
    for name, given in {
        "linear": {"norm": 0.7},
        "exact": {"exact": True, **TWO},
    }.items():
        solved = solve_input(node, X[:, :, None], y, **given)
        best = projections(solved.projections, odd=name == "linear")
        found |= {f"{name} {key}": value for key, value in best.items()}
        found[f"{name} Win"] = np.abs(solved.node.Win)
        found[f"{name} rest"] = solved.network.rest
    return found


# Comparison


def plain(value: Any) -> Any:
    """As JSON holds it, in twelve digits."""
    if value is None or isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return array.tolist()
    if not np.isfinite(array).all():  # a word, such as "nan": alone, or nothing else
        assert not np.isfinite(array).any()
        return array.astype(str).tolist()
    return json.loads(json.dumps(array.astype(float).tolist()), parse_float=_rounded)


def _rounded(text: str) -> float:
    return float(f"{float(text):.12g}")


def difference(found: Any, recorded: Any, tolerance: float = TOLERANCE) -> str:
    """What differs by more than the tolerance, in words; empty where nothing does."""
    one, other = np.asarray(found), np.asarray(recorded)
    if one.shape != other.shape:
        return f"shape {one.shape}, recorded {other.shape}"
    numbers = one.dtype.kind == "f" and other.dtype.kind in "fiu"
    if not numbers:
        same = np.array_equal(one, other)
        return "" if same else f"{found!r}, recorded {recorded!r}"
    size = max(float(np.abs(other).max(initial=0.0)), SMALL)
    apart = np.abs(one - other)
    if (apart <= tolerance * size).all():
        return ""
    where = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return (
        f"{one[where]:.12g} at {tuple(map(int, where))}, recorded {other[where]:.12g}: "
        f"{apart[where] / size:.1e} of the largest, allowed {tolerance:g}"
    )


def differences(name: str, found: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    """One line for each entry of a problem that is not what was recorded."""
    loose = PROBLEMS[name].loose
    lines = []
    for key in {**recorded, **found}:
        if key not in found or key not in recorded:
            lines.append(f"{key}: {'is new' if key in found else 'is gone'}")
            continue
        line = difference(found[key], recorded[key], loose.get(key, TOLERANCE))
        lines += [f"{key}: {line}"] if line else []
    return [f"{name} | {line}" for line in lines]


def compute(name: str) -> dict[str, Any]:
    return {key: plain(value) for key, value in PROBLEMS[name].compute().items()}


def read() -> dict[str, dict[str, Any]]:
    return json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}


def record(accept: bool) -> list[str]:
    """Write what is new, and what changed where that is accepted; says all of it."""
    before, after, said, refused = read(), {}, [], 0
    for name, (_, _, needs) in PROBLEMS.items():
        known = before.get(name)
        if needs and importlib.util.find_spec(needs) is None:
            said.append(f"{name} | kept: {needs} is not installed")
            after |= {} if known is None else {name: known}
            continue
        found = compute(name)
        changed = [] if known is None else differences(name, found, known)
        said += [f"{name} | is new"] if known is None else changed
        after[name] = found if known is None or (changed and accept) else known
        refused += len(changed) * (not accept)
    said += [f"{name} | is gone" for name in before if name not in PROBLEMS]
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}: "
        + json.dumps(numbers, ensure_ascii=False, separators=(",", ":"))
        for name, numbers in after.items()
    ]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    if refused:
        said.append(f"{refused} entries changed and were left as they are; see --accept")
    return said


RECORDED = read()


@pytest.mark.parametrize("name", PROBLEMS)
def test_numbers_are_those_recorded(name):
    needs = PROBLEMS[name].needs
    if needs:
        pytest.importorskip(needs)
    found = differences(name, compute(name), RECORDED[name])
    assert not found, "\n".join(found)


def test_nothing_else_is_recorded():
    assert RECORDED.keys() == PROBLEMS.keys()


@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_compiled_engine_has_the_features_recorded(n_channels):
    """A reading within rounding of a threshold, or of its rival, counts or does not."""
    pytest.importorskip("numba")
    compiled, other = (features(engine, n_channels) for engine in ("numba", "array"))
    near = np.abs(compiled - other) <= 1e-4 * (1 + np.abs(other))
    assert near.mean() > 0.998
    assert np.abs(compiled - other).max() <= 0.2 * (1 + np.abs(other).max())


def test_the_last_digits_are_compared():
    """The comparison notices a change a little above the tolerance, wherever it is."""
    recorded = [3.0, 1e-5, -2.0]
    assert not difference([3.0, 1e-5 + 2e-9, -2.0], recorded)
    assert difference([3.0, 1e-5 + 4e-9, -2.0], recorded)
    assert difference([3.0, 1e-5], recorded)
    assert difference(1e-6, 1.01e-6)
    assert difference(None, 0.0)
    assert difference("certified", "bounded")
    assert difference([True, False], [True, True])


if __name__ == "__main__":
    for line in record("--accept" in sys.argv[1:]):
        print(line)
