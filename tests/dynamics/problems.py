"""Small networks of every kind, and an ODE solver that judges them.

The judge integrates T ẏ = −y + W φ(y) + b + u x(t) as it stands: absolute states, no rest
state taken out, no split into linear and non-linear part, no code of the package.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from greenfold._base.arrays import namespace
from greenfold.dynamics.steppers import NonlinearPart, exponential_step
from greenfold.networks.gains import Gain
from greenfold.networks.resting_state import continuous_resting_state
from greenfold.unfolding.propagators import make_plan

B = 0.5  # bias of the biased tanh


def in_library(array, library):
    """Return a NumPy array as an array of the named library."""
    return array if library == "numpy" else importlib.import_module(library).asarray(array)


def tanh(y):
    return namespace(y).tanh(y)


def tanh_slope(y):
    return 1 - namespace(y).tanh(y) ** 2


def biased(y):
    return (namespace(y).tanh(y + B) - np.tanh(B)) / (1 - np.tanh(B) ** 2)


def biased_slope(y):
    return tanh_slope(y + B) / (1 - np.tanh(B) ** 2)


def sigmoid(y):
    return 1 / (1 + namespace(y).exp(-y))


def sigmoid_slope(y):
    s = sigmoid(y)
    return s * (1 - s)


GAINS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tanh": (tanh, tanh_slope),
    "biased tanh": (biased, biased_slope),
    "quadratic": (lambda y: y + 0.05 * y**2, lambda y: 1 + 0.1 * y),
    # Of one's own, with a slope other than 1.
    "custom": (
        lambda y: namespace(y).atan(1.5 * y),
        lambda y: 1.5 / (1 + (1.5 * y) ** 2),
    ),
    "sigmoid": (sigmoid, sigmoid_slope),
}


def gain_of(function, derivative, both=None) -> Gain:
    """A gain of these functions, without the checks of `Gain.custom`."""
    parts: Any = {"_function": function, "_derivative": derivative, "_both": both}
    return Gain((0.0, 1.0), "of the test", **parts)


@dataclass(frozen=True)
class Problem:
    weights: np.ndarray
    tau: np.ndarray
    bias: np.ndarray
    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    rest: np.ndarray
    X: np.ndarray
    u: np.ndarray
    dt: float

    def make(self, n_sub: int, *, weights=None, time=None):
        """The plan with ``n_sub`` sub-steps, read at the end by default."""
        f = NonlinearPart.around(self.rest, gain_of(self.function, self.derivative))
        if weights is None:
            weights = np.eye(self.X.shape[2])[-1]

        def step(length):
            return exponential_step(self.weights, self.tau, f, length / n_sub), n_sub

        return make_plan(step, self.dt, weights, time)

    def truth(self, *, time: float | None = None, rtol: float = 1e-12) -> np.ndarray:
        """Deviations from rest at the end of every step up to ``time``."""
        n_cases, _, n_steps = self.X.shape
        end = n_steps * self.dt if time is None else time
        y = np.tile(self.rest, (n_cases, 1))
        found = []
        for step in range(int(np.ceil(end / self.dt - 1e-9))):
            drive = self.X[:, :, step] @ self.u.T + self.bias
            length = min(self.dt, end - step * self.dt)
            y = self._integrate(y, drive, length, rtol)
            found.append(y - self.rest)
        return np.stack(found, axis=1)

    def _integrate(self, y, drive, length, rtol):
        shape = y.shape

        def slope(_, flat):
            state = flat.reshape(shape)
            pull = drive - state + self.function(state) @ self.weights.T
            return (pull / self.tau).ravel()

        solution = solve_ivp(
            slope, (0.0, length), y.ravel(), method="DOP853", rtol=rtol, atol=rtol * 1e-2
        )
        assert solution.success
        return solution.y[:, -1].reshape(shape)

    def scaled(self, size: float) -> Problem:
        """The same with stimuli for which the largest state is near ``size``."""
        problem = self
        for _ in range(3):
            largest = np.abs(problem.truth(rtol=1e-6)).max()
            problem = replace(problem, X=problem.X * size / largest)
        return problem


def problem(
    gain: str = "tanh",
    *,
    n: int = 12,
    n_cases: int = 5,
    n_channels: int = 1,
    n_steps: int = 6,
    dt_over_tau: float = 0.5,
    tau: Any = 0.25,
    bias: Any = 0.0,
    seed: int = 5,
) -> Problem:
    rng = np.random.default_rng(seed)
    function, derivative = GAINS[gain]
    weights = rng.standard_normal((n, n))
    weights *= 0.9 / np.abs(np.linalg.eigvals(weights)).max()
    weights /= float(derivative(np.zeros(1))[0])
    tau = np.broadcast_to(np.asarray(tau, dtype=float), (n,)).copy()
    bias = np.broadcast_to(np.asarray(bias, dtype=float), (n,)).copy()
    rest = continuous_resting_state(weights, bias, tau, function, derivative)
    u = rng.standard_normal((n, n_channels))
    return Problem(
        weights,
        tau,
        bias,
        function,
        derivative,
        rest,
        rng.standard_normal((n_cases, n_channels, n_steps)),
        u / np.linalg.norm(u),
        dt_over_tau * float(tau.mean()),
    )


def relative_error(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(found - truth).max() / np.abs(truth).max())
