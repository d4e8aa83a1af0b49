"""One input projection for the ridge regression of several targets, with its bound.

    J(u, V) = Σ_j (2 c_j·a_j − a_jᵀ R a_j) − λ Σ_j ‖v_j‖² ,   ‖u‖ = 1

is what the targets' variance falls by. The readouts of a given u are linear algebra; u is
ascended, by the envelope theorem, as for the soft margin. With D_j = 2 (c_j − R a_j) and σ
the largest singular value of the stacked [G(D_1); …; G(D_C)],

    J ≤ Σ_j a_jᵀ R a_j + σ²/(4λ)

for every u and V, whatever the kernels a_j: the first sum of J is concave, and
σ‖V‖ − λ‖V‖² is at most σ²/(4λ). The bound is convex in the kernels and lowered by descent.

What the optimisation of a regression returns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.optimize import minimize

from .._base import checks as check
from .._base import codec
from .._base.printing import Shown
from ..math.margins import SoftMargin
from ..stimuli.regression import RegressionTask
from ..systems import IntegratedSystem, LinearSystem, PreparedStates, System
from .ascent import ascend
from .linear import leading_triplet
from .result import MESSAGES, Candidate, relative_gap


@dataclass(frozen=True, eq=False, repr=False)
class RegressionProjections(Shown, codec.Saved, kind="regression"):
    """Input projection and readouts of a regression, with the loss they reach.

    Attributes
    ----------
    u : ndarray (n_inputs,) or (n_inputs, n_channels)
        Of unit norm.
    V : ndarray (n_outputs, n_targets)
        Readouts.
    gain : float
        J: what the variance of the targets falls by, less λ‖V‖².
    upper_bound : float or None
        No u and V reach a larger gain; None for a system that is not linear.
    loss : float
        Sum over targets of the mean squared error, plus λ‖V‖².
    loss_bound : float or None
        No u and V reach a smaller loss.
    r2 : ndarray (n_targets,)
        Share of each target's variance that is explained, readout noise of variance λ
        included.
    gap : float or None
        (upper_bound − gain), relative to the larger.
    status : str
        "certified", "relaxed", "converged", "solved" or "interrupted".
    starts : ndarray
        Gain that each start ended with.
    wall_time : float
    """

    u: np.ndarray
    V: np.ndarray
    gain: float
    upper_bound: float | None
    loss: float
    r2: np.ndarray
    status: str
    starts: np.ndarray = field(repr=False)
    wall_time: float = field(repr=False)

    @property
    def loss_bound(self) -> float | None:
        """The smallest loss that any u and V could have."""
        if self.upper_bound is None:
            return None
        return self.loss + self.gain - self.upper_bound

    @property
    def gap(self) -> float | None:
        """Relative distance to the upper bound."""
        if self.upper_bound is None:
            return None
        return relative_gap(self.upper_bound, self.gain)

    def _facts(self) -> dict[str, Any]:
        return {
            "gain": self.gain,
            "upper_bound": self.upper_bound,
            "loss": self.loss,
            "u": self.u.shape,
            "V": self.V.shape,
            "status": self.status,
        }


REGRESSION = codec.describe(
    "regression",
    RegressionProjections,
    u=codec.Numbers(ndim=(1, 2)),
    V=codec.Numbers("outputs", "targets"),
    gain=codec.NUMBER,
    upper_bound=codec.Maybe(codec.NUMBER),
    loss=codec.NUMBER,
    # Of a target that does not vary, no share of the variance is known.
    r2=codec.Numbers("targets", finite=False),
    status=codec.one_of(MESSAGES),
    starts=codec.Numbers(None),
    wall_time=codec.NUMBER,
)


_TIGHTEN = 200
#: Ascents that may follow one that came to need shorter sub-steps.
_SETTLED = 3


@dataclass(frozen=True, eq=False)
class LinearRegression:
    """J of a linear system; an `Objective` for the ascent."""

    system: LinearSystem
    task: RegressionTask

    def readouts(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Optimal V (n_outputs, n_targets), and the kernels (n_targets, D)."""
        Ru = self.system.input_response(u)
        A = Ru.T @ self.task.covariance @ Ru
        A = (A + A.T) / 2
        A[np.diag_indices_from(A)] += self.task.ridge
        V = linalg.solve(A, Ru.T @ self.task.cross.T, assume_a="pos")
        return V, (Ru @ V).T

    def gain(self, V: np.ndarray, kernels: np.ndarray) -> SoftMargin:
        """J, with the terms that it balances."""
        explained = 2 * (self.task.cross * kernels).sum()
        explained -= ((kernels @ self.task.covariance) * kernels).sum()
        price = self.task.ridge * float((V**2).sum())
        return SoftMargin(float(explained) - price, float(explained), price)

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal V, J, and ∂J/∂u at that V."""
        V, kernels = self.readouts(u)
        D = self._by_channel(2 * (self.task.cross - kernels @ self.task.covariance))
        rows = self.system.readout_response(V)  # (K, n_inputs, n_targets)
        gradient = np.einsum("jcn,nij->ic", D, rows)
        return V, self.gain(V, kernels), gradient

    def _by_channel(self, D: np.ndarray) -> np.ndarray:
        return D.reshape(len(D), self.task.n_channels, self.task.n_steps)

    def leading(self, kernels: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """σ of the stacked G(D_j) at kernels, with its u and the stacked left vector."""
        D = self._by_channel(2 * (self.task.cross - kernels @ self.task.covariance))
        sums = [self.system.response_sum(d) for d in D]
        blocks = [one.matrix() for one in sums]
        if all(block is not None for block in blocks):
            stacked = np.concatenate([np.asarray(block) for block in blocks])
            sigma, flat, _ = leading_triplet(stacked)
        else:
            sigma, flat = self._power(sums)
        u = flat.reshape(self.task.n_channels, -1).T
        left = np.stack([one.drive(u[:, :, None])[:, 0] for one in sums])
        return sigma, u, left / sigma if sigma > 0 else left

    def _power(self, sums: list[Any]) -> tuple[float, np.ndarray]:
        from scipy.sparse.linalg import LinearOperator, eigsh

        shape = self.task.n_channels, self.system.n_inputs

        def square(flat: np.ndarray) -> np.ndarray:
            u = flat.reshape(shape).T[:, :, None]
            return sum(one.pull(one.drive(u)[:, 0]).T.ravel() for one in sums)  # pyright: ignore[reportReturnType]

        made: Any = LinearOperator
        search: Any = eigsh
        n = shape[0] * shape[1]
        operator = made((n, n), matvec=square, dtype=float)
        values, vectors = search(operator, k=1, v0=np.ones(n), tol=1e-10)
        rest = np.linalg.norm(square(vectors[:, 0]) - values[0] * vectors[:, 0])
        return float(np.sqrt(values[0] + rest)), vectors[:, 0]

    def bound(self, kernels: np.ndarray) -> tuple[float, np.ndarray]:
        """The upper bound at any kernels, and its gradient there."""
        sigma, u, left = self.leading(kernels)
        curved = kernels @ self.task.covariance
        value = float((kernels * curved).sum()) + sigma**2 / (4 * self.task.ridge)
        rows = self.system.readout_response(left.T)
        atoms = np.einsum("nij,ic->jcn", rows, u).reshape(kernels.shape)
        # dσ = −2 Σ_j (R δa_j) · atom_j
        slope = sigma / self.task.ridge * (atoms @ self.task.covariance)
        return value, 2 * curved - slope


def tighten(problem: LinearRegression, kernels: np.ndarray, start: float) -> float:
    """The lowest bound met by descent from kernels."""
    covariance = problem.task.covariance
    values, vectors = np.linalg.eigh(covariance)
    root = np.sqrt(np.clip(values, 1e-9 * values[-1], None))
    lowest = start
    scale = max(abs(start), 1e-300)

    def function(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal lowest
        a = (flat.reshape(kernels.shape) / root) @ vectors.T
        value, gradient = problem.bound(a)
        lowest = min(lowest, value)
        return value / scale, ((gradient @ vectors) / root).ravel() / scale

    begin = ((kernels @ vectors) * root).ravel()
    options = {"maxfun": _TIGHTEN, "maxcor": 30, "ftol": 1e-13, "gtol": 0.0}
    minimize(function, begin, jac=True, method="L-BFGS-B", options=options)
    return lowest


@dataclass(frozen=True, eq=False)
class NonlinearRegression:
    """J of any system on the windows of a task; an `Objective` for the ascent."""

    system: System
    task: RegressionTask

    def __post_init__(self) -> None:
        if self.task.X is None or self.task.y is None:
            raise ValueError(
                "`task` has no series, which a system that is not linear needs; make it "
                "with RegressionTask.from_series or from_cases."
            )

    @cached_property
    def _prepared(self) -> PreparedStates | None:
        """States and the way back in one walk, where the system has it."""
        if isinstance(self.system, IntegratedSystem):
            return self.system.prepare(self.task.X)
        return None

    def settle(self, u: np.ndarray) -> bool:
        """Whether the states at u are accurate enough; where not, they are from now on."""
        return self._prepared is None or self._prepared.settle(u)

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal V, J, and ∂J/∂u at that V."""
        if self._prepared is None:
            V, margin, bar = self._solve(self.system.states(self.task.X, u))
            gradient = self.system.pullback(self.task.X, u, bar)
        else:
            found = self._prepared(u)
            V, margin, bar = self._solve(found.states)
            gradient = found.pullback(bar)[0]
        return V, margin, np.asarray(gradient).reshape(u.shape)

    def _solve(self, states: Any) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        Y = np.asarray(states)
        if not np.isfinite(Y).all():
            raise FloatingPointError("the states are not finite")
        Y = Y - Y.mean(0)
        T = np.asarray(self.task.y) - self.task.offset
        n = len(Y)
        A = Y.T @ Y / n
        A[np.diag_indices_from(A)] += self.task.ridge
        V = linalg.solve(A, Y.T @ T / n, assume_a="pos")
        rest = T - Y @ V
        price = self.task.ridge * float((V**2).sum())
        explained = float((T**2).sum() - (rest**2).sum()) / n
        bar = 2 / n * rest @ V.T
        margin = SoftMargin(explained - price, explained, price)
        return V, margin, bar - bar.mean(0)


def solve_regression(
    system: System,
    task: RegressionTask,
    *,
    u: np.ndarray | None,
    n_starts: int | None,
    max_iter: int,
    tol: float | None,
    rng: np.random.Generator,
    certify: bool = True,
) -> RegressionProjections:
    """Solve for u and V; see `optimize`. Without ``certify`` the bound is left wide."""
    started = time.perf_counter()
    linear = LinearRegression(system.maps, task)
    problem: LinearRegression | NonlinearRegression = (
        linear if system.is_linear else NonlinearRegression(system, task)
    )
    if u is not None:
        V, margin, _ = problem.evaluate(u)
        return _described(problem, u, V, margin, None, "solved", [margin.value], started)
    zero = np.zeros_like(task.cross)
    _, leading, _ = linear.leading(zero)
    wanted = 4 if n_starts is None else n_starts
    firsts = [leading]
    if not system.is_linear and wanted > 1:
        both = [problem.evaluate(one)[1].value for one in (leading, -leading)]
        # An odd network answers −u with the same states of the other sign.
        if not np.isclose(*both, rtol=1e-10, atol=0):
            firsts.append(-leading)
    for _ in range(wanted - len(firsts)):
        drawn = rng.standard_normal((system.n_inputs, task.n_channels))
        firsts.append(drawn / np.linalg.norm(drawn))
    best, values, bound = None, [], np.inf
    gap = tol or 1e-4
    for first in firsts:
        found = ascend(problem, first, max_iter=max_iter, tol=1e-12)
        values.append(found.margin.value)
        if best is None or found.margin.value > best.margin.value:
            best = found
        if found.status == "interrupted":
            break
        if system.is_linear and best is found:
            kernels = linear.readouts(best.u)[1]
            bound = min(bound, linear.bound(kernels)[0])
        if relative_gap(bound, best.margin.value) <= gap:
            break  # no start can do better
    assert best is not None
    if isinstance(problem, NonlinearRegression) and best.status != "interrupted":
        best = _settled(problem, best, max_iter)
    status = best.status
    if system.is_linear and status != "interrupted":
        if certify and relative_gap(bound, best.margin.value) > gap:
            kernels = linear.readouts(best.u)[1]
            bound = min(bound, tighten(linear, kernels, bound))
        bound = max(bound, best.margin.value)
        certified = relative_gap(bound, best.margin.value) <= gap
        status = "certified" if certified else "relaxed"
    known = bound if np.isfinite(bound) else None
    return _described(problem, best.u, best.v, best.margin, known, status, values, started)


def _settled(problem: NonlinearRegression, best: Candidate, max_iter: int) -> Candidate:
    """The ascent taken on where it has left what its sub-steps are accurate for."""
    for _ in range(_SETTLED):
        if problem.settle(best.u):
            break
        best = ascend(problem, best.u, max_iter=max_iter, tol=1e-12)
    return best


def _described(
    problem: Any,
    u: np.ndarray,
    V: np.ndarray,
    margin: SoftMargin,
    bound: float | None,
    status: str,
    values: list[float],
    started: float,
) -> RegressionProjections:
    task: RegressionTask = problem.task
    if isinstance(problem, LinearRegression):
        a = (problem.system.input_response(u) @ V).T
        error = task.variance - 2 * (task.cross * a).sum(1)
        error += ((a @ task.covariance) * a).sum(1)
    else:
        Y = np.asarray(problem.system.states(task.X, u))
        rest = task.y - task.offset - (Y - Y.mean(0)) @ V
        error = (rest**2).mean(0)
    noisy = error + task.ridge * (V**2).sum(0)
    spread = np.where(task.variance > 0, task.variance, np.nan)
    return RegressionProjections(
        u=u[:, 0] if u.shape[1] == 1 else u,
        V=V,
        gain=margin.value,
        upper_bound=bound,
        loss=float(task.variance.sum() - margin.value),
        r2=1 - noisy / spread,
        status=status,
        starts=np.array(values),
        wall_time=time.perf_counter() - started,
    )


def optimize_task(
    system: System, task: RegressionTask, u: Any, n_starts, max_iter, tol, rng
) -> RegressionProjections:
    """A task instead of stimuli, its arguments checked."""
    task.match(system)
    if u is not None:
        u = check.input_projection(u, system.n_inputs, task.n_channels)
        if not u.any():
            raise ValueError("`u` is zero; give a direction.")
        u = u / np.linalg.norm(u)
    return solve_regression(
        system,
        task,
        u=u,
        n_starts=None if n_starts is None else check.count(n_starts, "n_starts"),
        max_iter=check.count(300 if max_iter is None else max_iter, "max_iter"),
        tol=None if tol is None else check.positive(tol, "tol"),
        rng=check.generator(rng),
    )
