"""Input weights for sequences, with one ridge readout for all steps.

The loss of u and its gradient at the optimal V are

    L(u) = min_V Σ_t |y_t − V x_t − c|² / T + λ ‖V‖²,    ∂L/∂x_t = 2 Vᵀ(V x_t + c − y_t) / T

so one backward pass through the network gives ∂L/∂u. With weights w_t of the steps, the
sum is Σ_t w_t |…|² and T = Σ_t w_t. The ascent maximises −log L, because L itself is flat
where errors fall by orders of magnitude.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property

import numpy as np

from .._base import checks as check
from .._base.arrays import Array, like, namespace, to_host
from .._base.progress import tell
from ..dynamics.dynamics import Dynamics, Prepared
from ..math.margins import SoftMargin
from ..math.ridge import solve_ridge
from ..stimuli.sequences import SequenceTask
from ..systems import System
from ..unfolding.unfolding import unfold
from .ascent import Ascent
from .linear import Candidate, ascend
from .method import Method
from .regression import regress_given
from .result import RegressionProjections

#: Number of further ascents if the end of an ascent needs shorter sub-steps.
_SETTLED = 3


class SequenceProblem:
    """The objective −log L of a network on a task, for the ascent.

    Parameters
    ----------
    system : Dynamics
        The network, made for the segments of the task.
    task : SequenceTask
        The task. The computation runs on the device that holds its arrays.
    """

    def __init__(self, system: Dynamics, task: SequenceTask) -> None:
        task.match(system)
        self.system, self.task = system, task

    @cached_property
    def prepared(self) -> Prepared:
        """The segments, prepared to compute the states for many projections."""
        return self.system.prepare(self.task.X, washout=self.task.washout)

    @cached_property
    def _roots(self) -> Array | None:
        """Roots of the weights of the steps, (n_rows, 1); None if all weights are one."""
        xp = namespace(self.task.used)
        used = xp.reshape(self.task.used, (-1, 1))
        return None if bool(xp.all(used == 1)) else xp.sqrt(used)

    def _weighted(self, rows: Array) -> Array:
        """Multiply rows (n_rows, …) by the roots of their weights, in place."""
        if self._roots is not None:
            rows *= self._roots
        return rows

    @cached_property
    def _targets(self) -> Array:
        """The targets, times the roots of their weights, (n_rows, n_targets)."""
        xp, n_targets = namespace(self.task.y), self.task.n_targets
        y = xp.reshape(self.task.y, (-1, n_targets))
        return y if self._roots is None else y * self._roots

    def _features(self, states: Array) -> Array:
        """Return the features of the readout (n_rows, n_features), times the roots."""
        task, xp = self.task, namespace(states)
        if task.see_input:
            n_channels = task.n_channels - task.has_constant
            x = xp.permute_dims(task.X[:, :n_channels, task.washout :], (2, 0, 1))
            states = xp.concat([states, x], axis=2)
        return self._weighted(xp.reshape(states, (-1, states.shape[2])))

    def _mean(self, Z: Array) -> Array:
        """Return the mean of the features Z, (n_features,)."""
        xp = namespace(Z)
        if self._roots is None:
            return xp.mean(Z, axis=0)
        return (xp.permute_dims(self._roots, (1, 0)) @ Z)[0, :] / self.task.n_used

    def _residual(self, Z: Array, V: np.ndarray) -> Array:
        """Return the residuals of the targets (n_rows, n_targets), times the roots."""
        readout = like(V, Z)
        at_mean = self._mean(Z) @ readout
        if self._roots is not None:
            at_mean = self._roots * at_mean
        return self._targets - Z @ readout + at_mean

    def readout(self, states: Array) -> tuple[np.ndarray, float, Array]:
        """Return the optimal V (n_features, n_targets), L, and ∂L/∂states.

        It overwrites ``states``.
        """
        task, xp, n = self.task, namespace(states), self.task.n_used
        Z = self._features(states)
        mean = to_host(self._mean(Z))
        Zt = xp.permute_dims(Z, (1, 0))
        gram = to_host(Zt @ Z) / n - np.outer(mean, mean)
        cross = to_host(Zt @ self._targets) / n
        V = solve_ridge(gram, cross, task.ridge)
        residual = self._residual(Z, V)
        loss = float(xp.sum(residual * residual)) / n + task.ridge * float((V**2).sum())
        slopes = like(-2 / n * V[: states.shape[2]].T, states)
        return V, loss, xp.reshape(self._weighted(residual) @ slopes, states.shape)

    def errors(self, u: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the mean squared error of each target."""
        residual = to_host(self._residual(self._features(self.prepared(u).states), V))
        return (residual**2).sum(0) / self.task.n_used

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal V, −log L, and its gradient with respect to u."""
        walk = self.prepared(u)
        V, loss, bar = self.readout(walk.states)
        gradient = to_host(walk.pullback(bar)[0]) / -loss
        value = -float(np.log(loss))
        tell(f"error {loss:.5g}")
        # The tolerance of the ascent is relative to these terms; with a term of one, it is
        # absolute in log L.
        return V, SoftMargin(value, 1.0, 0.0), gradient.reshape(u.shape)

    def described(self, found: list[Candidate]) -> RegressionProjections:
        """Return the best of the ends of several ascents, as a result."""
        task, best = self.task, max(found, key=lambda one: one.margin.value)
        loss, total = float(np.exp(-best.margin.value)), float(task.variance.sum())
        noisy = self.errors(best.u, best.v) + task.ridge * (best.v**2).sum(0)
        return RegressionProjections(
            u=best.u[:, 0] if best.u.shape[1] == 1 else best.u,
            V=best.v,
            gain=total - loss,
            upper_bound=None,
            loss=loss,
            r2=1 - noisy / np.where(task.variance > 0, task.variance, np.nan),
            status=best.status,
            starts=total - np.exp([-one.margin.value for one in found]),
            wall_time=0.0,
        )

    def ascend(self, u: np.ndarray, *, max_iter: int, tol: float) -> Candidate:
        """Ascend from one start, until the sub-steps are short enough at the end."""
        found = ascend(self, u, max_iter=max_iter, tol=tol)
        for _ in range(_SETTLED):
            if found.status == "interrupted" or self.prepared.settle(found.u):
                break
            found = ascend(self, found.u, max_iter=max_iter, tol=tol)
        return found


def solve_sequences(
    system: System,
    task: SequenceTask,
    method: Method,
    *,
    u: np.ndarray | None,
    rng: np.random.Generator,
) -> RegressionProjections:
    """Return the best u and V for a sequence task; see `optimize`.

    For a linear network, it solves a regression with one window per step, which also gives
    a bound.
    """
    started = time.perf_counter()
    wanted = "be a Dynamics without restricted inputs or outputs for a SequenceTask"
    check.instance(system, Dynamics, "system", wanted)
    assert isinstance(system, Dynamics)
    if system.is_linear and not task.see_input:
        windows = task.windows()
        linear = unfold(system.reservoir, n_steps=windows.n_steps, dt=system.dt)
        if u is not None:
            return regress_given(linear, windows, u)
        return method.regress(linear, windows, rng)
    problem = SequenceProblem(system, task)
    if u is not None:
        V, margin, _ = problem.evaluate(u)
        found = [Candidate(u, V, margin, "solved")]
    else:
        wanted = "be Ascent for a SequenceTask whose readout is not linear in the input"
        check.instance(method, Ascent, "method", wanted)
        assert isinstance(method, Ascent)
        found: list[Candidate] = []
        for _ in range(method.n_starts or 1):
            drawn = rng.standard_normal((system.n_inputs, task.n_channels))
            start = drawn / np.linalg.norm(drawn)
            limit, tol = method.max_evaluations, method.tol or 1e-6
            found.append(problem.ascend(start, max_iter=limit, tol=tol))
            if found[-1].status == "interrupted":
                break
    return replace(problem.described(found), wall_time=time.perf_counter() - started)
