"""One input projection for the ridge regression of several targets, with a bound.

The method maximises the gain

    J(u, V) = Σ_j (2 c_j·a_j − a_jᵀ R a_j) − λ Σ_j ‖v_j‖² ,   ‖u‖ = 1

which is the reduction of the targets' variance minus the penalty. Linear algebra gives the
readouts for a given u; an ascent finds u, as for the soft margin.
`greenfold.optimizers.bounds`, with readouts of any length, gives the bound on J.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._base import checks as check
from .._base.arrays import Array
from .._base.threads import few_threads
from ..devices.masks.mask import Constraint, Mask
from ..dynamics.integration import Dynamics, Prepared
from ..math.class_moments import root
from ..math.margins import SoftMargin
from ..math.ridge import solve_ridge
from ..networks.matrices import SPARSE_NEURONS, diagonal
from ..stimuli.base import Stimuli
from ..stimuli.regression import RegressionTask
from ..systems import LinearSystem, System
from . import normal
from .bounds import Relaxation
from .linear import Candidate, LinearProblem, Responses, ascend
from .method import random_projections
from .result import RegressionProjections, proven, relative_gap

#: Number of starts, number of random starts while a gap is left, and number of further
#: ascents if the end of an ascent needs shorter sub-steps.
_STARTS, _DRAWN, _SETTLED = 4, 24, 3
#: Limit of evaluations of one ascent, relative gain per step at which it stops, and the gap
#: below which a bound that was not lowered proves an optimum.
_EVALUATIONS, _CONVERGED, _GAP = 300, 1e-12, 1e-4
#: Ratio of the penalty to the variance of the series up to which all squares are finite.
_PENALTY = 1e95


@dataclass(frozen=True, eq=False)
class LinearRegression:
    """The gain J of a linear system, an `Objective` for the ascent."""

    system: LinearSystem
    task: RegressionTask

    def readouts(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the optimal V (n_outputs, n_targets), and its kernels (n_targets, D)."""
        task, Ru = self.task, self.system.input_response(u)
        if len(Ru) < self.system.n_outputs >= SPARSE_NEURONS:
            # With covariance SSᵀ and F = SᵀR, it is Fᵀ(FFᵀ + λ)⁻¹S⁺cᵀ.
            basis, sizes = self._root
            F = (basis * sizes).T @ Ru
            few = solve_ridge(F @ F.T, (task.cross @ basis / sizes).T, task.ridge)
            return F.T @ few, (Ru @ F.T @ few).T
        gram = Ru.T @ task.covariance @ Ru
        V = solve_ridge(gram, Ru.T @ task.cross.T, task.ridge)
        return V, (Ru @ V).T

    @cached_property
    def _root(self) -> tuple[np.ndarray, np.ndarray]:
        return root(self.task.covariance)

    def gain(self, V: np.ndarray, kernels: np.ndarray) -> SoftMargin:
        """Return J and its two terms, the explained variance and the penalty."""
        explained = 2 * (self.task.cross * kernels).sum()
        explained -= ((kernels @ self.task.covariance) * kernels).sum()
        price = self.task.ridge * float((V**2).sum())
        return SoftMargin(float(explained) - price, float(explained), price)

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal V, J, and ∂J/∂u at that V."""
        V, kernels = self.readouts(u)
        d = 2 * (self.task.cross - kernels @ self.task.covariance)
        d = d.reshape(len(d), self.task.n_channels, self.task.n_steps)
        rows = self.system.readout_response(V)  # (K, n_inputs, n_targets)
        gradient = np.einsum("jcn,nij->ic", d, rows)
        return V, self.gain(V, kernels), gradient

    def errors(self, u: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the mean squared error of each target."""
        task, a = self.task, (self.system.input_response(u) @ V).T
        error = task.variance - 2 * (task.cross * a).sum(1)
        return error + ((a @ task.covariance) * a).sum(1)

    def leading(self) -> np.ndarray:
        """Return the u of the largest singular value of the stacked G(c_j), a start."""
        task = self.task
        signals = task.cross.reshape(-1, task.n_channels, task.n_steps)
        sums = map(self.system.response_sum, signals)
        return Responses(sums, task.n_channels, self.system.n_inputs).leading()[1]

    @cached_property
    def parts(self) -> list[LinearProblem]:
        """One linear problem per target, for readouts of any length."""
        task = self.task
        n, price = self.system.n_outputs, 2 * task.ridge
        many = n >= SPARSE_NEURONS
        penalty = diagonal(np.full(n, price)) if many else price * np.eye(n)
        curved = 2 * task.covariance
        every = [Stimuli(2 * c, curved, task.n_channels, task.n_steps) for c in task.cross]
        return [LinearProblem(self.system, one, self.eta, penalty) for one in every]

    @cached_property
    def relaxation(self) -> Relaxation:
        """The upper bound on J."""
        return self.bounded(())

    def bounded(self, constraints: Sequence[Constraint]) -> Relaxation:
        """Return the upper bound on J for masks that meet the constraints."""
        return Relaxation(self.parts, constraints, unit_readouts=False)

    # What a `MaskProblem` needs

    #: The η at which J is the soft margin of the parts, up to the penalty.
    eta = 1.0

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Return the optimal V and J."""
        V, kernels = self.readouts(u)
        return V, self.gain(V, kernels)

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return J of several u (n, n_inputs, n_channels)."""
        return np.array([self.best_readout(u)[1].value for u in U])

    def input_terms(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return b and Q of J = b·u − uᵀQu/2 at readouts V, up to the penalty."""
        terms = [part.input_terms(one) for part, one in zip(self.parts, v.T, strict=True)]
        b, Q = zip(*terms, strict=True)
        return np.sum(b, axis=0), np.sum(Q, axis=0)


@dataclass(frozen=True, eq=False)
class NonlinearRegression:
    """The gain J of any system on the windows of a task, an `Objective` for the ascent."""

    system: System
    task: RegressionTask

    def __post_init__(self) -> None:
        has_series = self.task.X is not None and self.task.y is not None
        wanted = "have series for a non-linear system (use `from_series` or `from_cases`)"
        check.must(has_series, "task", wanted, "moments only")

    @cached_property
    def _prepared(self) -> Prepared | None:
        """States and gradients from one integration, if the system supports it."""
        return self.system.prepare(self._X) if isinstance(self.system, Dynamics) else None

    @property
    def _X(self) -> np.ndarray:
        return np.asarray(self.task.X)

    def settle(self, u: np.ndarray) -> bool:
        """Return whether the sub-steps, if any, are accurate at u; if not, change them."""
        return self._prepared is None or self._prepared.settle(u)

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal V, J, and ∂J/∂u at that V."""
        found = None if self._prepared is None else self._prepared(u)
        states = self.system.states(self._X, u) if found is None else found.states
        V, margin, bar = self._solve(states)
        if found is None:
            gradient = self.system.pullback(self._X, u, bar)
        else:
            gradient = found.pullback(bar)[0]
        return V, margin, np.asarray(gradient).reshape(u.shape)

    def errors(self, u: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the mean squared error of each target."""
        task, Y = self.task, np.asarray(self.system.states(self._X, u))
        return task.weigh((task.y - task.offset - (Y - task.weigh(Y)) @ V) ** 2)

    def _solve(self, states: Array) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        reached = np.asarray(states)
        if not np.isfinite(reached).all():
            raise FloatingPointError("the states are not finite")
        task = self.task
        equal = np.full(len(reached), 1 / len(reached))
        share = equal if task.share is None else task.share
        root = np.sqrt(share)[:, None]
        Y = root * (reached - share @ reached)
        T = root * (np.asarray(task.y) - task.offset)
        V = solve_ridge(Y.T @ Y, Y.T @ T, task.ridge)
        rest = T - Y @ V
        price = task.ridge * float((V**2).sum())
        explained = float((T**2).sum() - (rest**2).sum())
        bar = 2 * root * rest @ V.T
        margin = SoftMargin(explained - price, explained, price)
        return V, margin, bar - share[:, None] * bar.sum(0)


def regress_given(
    system: System, task: RegressionTask, u: np.ndarray
) -> RegressionProjections:
    """Keep the given u (n_inputs, n_channels), and solve for the readouts."""
    started = time.perf_counter()
    problem = _problem(system, task, certify=False)
    V, margin, _ = problem.evaluate(u)
    return _described(problem, Candidate(u, V, margin, "solved"), [], started)


def regress_within(
    system: System,
    task: RegressionTask,
    mask: Mask,
    free: RegressionProjections,
    rng: np.random.Generator,
) -> RegressionProjections:
    """Return the best mask of a kind, from the optimum and the bound for any u."""
    started, problem = time.perf_counter(), _problem(system, task, certify=True)
    wanted = "have no mask for a non-linear system, where only linear ones are solved"
    check.must(isinstance(problem, LinearRegression), "device", wanted, mask)
    assert isinstance(problem, LinearRegression)
    shape = system.n_inputs, task.n_channels
    mask.match(shape)
    bound = np.inf if free.upper_bound is None else free.upper_bound
    found = Candidate(*mask.solve(problem, free.u.reshape(shape), bound, rng))
    found = replace(found, upper_bound=free.upper_bound)
    return replace(_described(problem, found, [], started), mask=mask.kind)


def random_losses(
    system: System, task: RegressionTask, n: int, mask: Mask | None = None
) -> np.ndarray:
    """Return the losses of ``n`` random u or masks, each with its best readouts."""
    problem = _problem(system, task, certify=False)
    shape, rng = (system.n_inputs, task.n_channels), check.generator(0, beside=True)
    with few_threads(system.n_outputs):
        drawn = random_projections(shape, rng, n, mask)
        gains = [problem.evaluate(u)[1].value for u in drawn]
    return task.variance.sum() - np.array(gains)


def _problem(
    system: System, task: RegressionTask, *, certify: bool
) -> LinearRegression | NonlinearRegression:
    """Return the problem of a system, if its penalty is in the range of floats."""
    times = task.ridge / max(float(np.trace(task.covariance)), 1e-300)
    why = "beyond the range of floats; change it, or rescale the series"
    far = f"`ridge` is {times:.1g} times the variance of the series, {why}."
    fits = times <= _PENALTY and (times >= 1 / _PENALTY or not certify)
    check.require(fits or not task.covariance.any(), far, OverflowError)
    if system.is_linear:
        return LinearRegression(system.maps, task)
    return NonlinearRegression(system, task)


def _ascended(
    problem: LinearRegression | NonlinearRegression,
    starts: Iterable[np.ndarray],
    max_evaluations: int,
    tol: float,
    values: list[float],
) -> Iterator[Candidate]:
    """Ascend from each start, until Ctrl-C; yield the best end so far."""
    best = None
    for start in starts:
        found = ascend(problem, start, max_iter=max_evaluations, tol=tol)
        values.append(found.margin.value)
        if best is None or found.margin.value > best.margin.value:
            best = found
        yield best
        if found.status == "interrupted":
            return


def certify_regression(
    system: System, task: RegressionTask, *, gap: float, rng: np.random.Generator
) -> RegressionProjections:
    """Return the best u and V of a linear system, with a bound on its gain.

    With an infinite ``gap``, the bound is not lowered.
    """
    started, certify = time.perf_counter(), gap < np.inf
    problem = _problem(system, task, certify=certify)
    assert isinstance(problem, LinearRegression)
    gap = gap if certify else _GAP
    if solved := normal.solve_regression(system.maps, task):
        u, V, bound = solved
        margin = problem.gain(V, (system.maps.input_response(u) @ V).T)
        bound = max(bound, margin.value)
        if relative_gap(bound, margin.value) <= gap:
            found = Candidate(u, V, margin, "certified", upper_bound=bound)
            return _described(problem, found, [], started)
    leading = problem.leading()
    starts = [leading, *random_projections(leading.shape, rng, _STARTS - 1)]
    best, values, bound = None, list[float](), np.inf
    relaxation = problem.relaxation
    wanted = relaxation.closer(gap) if certify else gap

    def every() -> Iterator[np.ndarray]:
        """Yield the starts; while a gap is left, also from the bound and at random."""
        yield from starts
        if certify:
            assert best is not None
            kernels = list(problem.readouts(best.u)[1])
            relaxation.lower(kernels, best.u, goal=best.margin.value * (1 + wanted))
            if relative_gap(relaxation.lowest, best.margin.value) > wanted:
                yield from relaxation.starts()
                yield from random_projections(
                    leading.shape, np.random.default_rng(0), _DRAWN
                )

    before = None
    for best in _ascended(problem, every(), _EVALUATIONS, _CONVERGED, values):
        if best is not before and best.status != "interrupted":
            bound = relaxation.at(list(problem.readouts(best.u)[1]), best.u)
        before = best
        if relative_gap(min(bound, relaxation.lowest), best.margin.value) <= wanted:
            break  # no start can be better
    assert best is not None
    if best.status == "interrupted":
        best = replace(best, upper_bound=bound if np.isfinite(bound) else None)
    else:
        bound = max(relaxation.lowest, best.margin.value)
        closed = relative_gap(bound, best.margin.value) <= gap
        best = replace(best, status="certified" if closed else "bounded", upper_bound=bound)
    return _described(problem, best, values, started)


def ascend_regression(
    system: System,
    task: RegressionTask,
    *,
    n_starts: int | None,
    max_evaluations: int,
    tol: float | None,
    rng: np.random.Generator,
) -> RegressionProjections:
    """Return the best end of several ascents, for a non-linear system."""
    started = time.perf_counter()
    problem = _problem(system, task, certify=True)
    assert isinstance(problem, NonlinearRegression)
    leading = LinearRegression(system.maps, task).leading()
    n_starts = _STARTS if n_starts is None else n_starts
    starts = [leading]
    if n_starts > 1:
        both = [problem.evaluate(one)[1].value for one in (leading, -leading)]
        # The states of an odd network only change sign with u, so −u is not a new start.
        if not np.isclose(*both, rtol=1e-10, atol=0):
            starts.append(-leading)
    starts += random_projections(leading.shape, rng, n_starts - len(starts))
    tol, values = tol or _CONVERGED, list[float]()
    *_, best = _ascended(problem, starts, max_evaluations, tol, values)
    if best.status != "interrupted":
        for _ in range(_SETTLED):  # until the sub-steps are short enough
            if problem.settle(best.u):
                break
            best = ascend(problem, best.u, max_iter=max_evaluations, tol=tol)
    return _described(problem, best, values, started)


def _described(
    problem: LinearRegression | NonlinearRegression,
    best: Candidate,
    values: list[float],
    started: float,
) -> RegressionProjections:
    task, u, V = problem.task, best.u, best.v
    noisy = problem.errors(u, V) + task.ridge * (V**2).sum(0)
    spread = np.where(task.variance > 0, task.variance, np.nan)
    return RegressionProjections(
        u=u[:, 0] if u.shape[1] == 1 else u,
        V=V,
        gain=best.margin.value,
        upper_bound=best.upper_bound,
        loss=float(task.variance.sum() - best.margin.value),
        r2=1 - noisy / spread,
        status=proven(best.status, best.upper_bound, best.margin.value),
        starts=np.array(values or [best.margin.value]),
        wall_time=time.perf_counter() - started,
    )
