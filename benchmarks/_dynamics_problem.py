"""The network, the series and the count of matrix products for the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from greenfold.dynamics.steppers import ExponentialStep, NonlinearPart, exponential_step
from greenfold.networks.gains import Gain
from greenfold.unfolding.propagators import StepPlan, make_plan
from greenfold.unfolding.walk import Walk

TAU, G, DURATION = 0.25, 0.9, 10.0


@dataclass
class Count:
    """Rows that went through `advance` and `retreat`, summed over the calls."""

    advanced: int = 0
    retreated: int = 0
    calls: int = 0


@dataclass(frozen=True, eq=False)
class Counted:
    """A stepper that counts its calls."""

    inner: ExponentialStep
    count: Count = field(default_factory=Count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def on(self, reference: Any, dtype: Any) -> Counted:
        return Counted(self.inner.on(reference, dtype), self.count)

    def advance(self, y: Any, push: Any, slopes: Any = None) -> Any:
        self.count.advanced += y.shape[0]
        self.count.calls += 1
        return self.inner.advance(y, push, slopes)

    def retreat(self, bar: Any, slopes: Any) -> Any:
        self.count.retreated += bar.shape[0]
        self.count.calls += 1
        return self.inner.retreat(bar, slopes)


@dataclass(frozen=True, eq=False)
class Setting:
    """A tanh network of the paper's kind, read at the end, one step per stimulus step."""

    weights: np.ndarray
    X: np.ndarray
    u: np.ndarray
    cotangent: np.ndarray
    plan: StepPlan

    @property
    def dt(self) -> float:
        return DURATION / self.X.shape[2]

    def products(self, X: Any, cotangent: Any) -> tuple[float, float]:
        """N×N products of one row in a gradient of these series, and rows per product."""
        step = self.plan.step
        assert isinstance(step, ExponentialStep)
        counted = Counted(step)
        plan = StepPlan[Any](counted, self.plan.n_sub, self.plan.weights)
        gradient(plan, X, self.u, cotangent)
        rows = counted.count.advanced + counted.count.retreated
        return step.n_products * rows, rows / counted.count.calls


def setting(n_neurons: int, n_cases: int, n_steps: int, n_sub: int = 1) -> Setting:
    """Random walks of size 1, as smooth as heartbeats and larger: tanh saturates."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((n_neurons, n_neurons)) * (G / np.sqrt(n_neurons))
    walk = rng.standard_normal((n_cases, 1, n_steps)).cumsum(axis=2) / np.sqrt(n_steps)
    u = rng.standard_normal((n_neurons, 1))
    u /= np.linalg.norm(u)
    f = NonlinearPart.around(np.zeros(n_neurons), Gain.tanh())
    tau = np.full(n_neurons, TAU)
    plan = make_plan(
        lambda length: (exponential_step(weights, tau, f, length / n_sub), n_sub),
        DURATION / n_steps,
        np.eye(n_steps)[-1],
    )
    return Setting(weights, walk, u, rng.standard_normal((n_cases, n_neurons)), plan)


def gradient(plan: StepPlan, X: Any, u: np.ndarray, cotangent: Any) -> Any:
    """States and the pullback of a cotangent: the cost of one step of an ascent."""
    walk = Walk(plan, X, u, keep=True)
    _ = walk.states
    return walk.pullback(cotangent)[0]
