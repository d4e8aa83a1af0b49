"""The paper's alternating algorithms: for linear systems, and Algorithm 1 at O(α).

They optimise u and v in turn. For a fixed readout
κ = u·m₀ + uᵀ(m₁ − σ₀)u − σ₁[u,u,u] − σ₂[u,u,u,u]. The first rounds leave out σ₁ and σ₂
(cases A and B). When they saturate, a root finder solves the Lagrange conditions of the
whole polynomial (case C). The tensors are never formed: the adjoint of the unfolding gives
their contractions with u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import root

from .._base import checks as check
from ..math.margins import SoftMargin
from ..math.sphere import maximize_on_sphere
from ..unfolding.unfolding import Unfolding
from .linear import Candidate, LinearProblem
from .method import N_DRAWN, Method, NonlinearProblem, Run, collect
from .result import Projections

#: Relative gain of κ per round below which the quadratic problem has saturated.
_NEARLY_SATURATED = 1e-2
#: Number of rounds of case C without a new best after which to stop. One is not enough:
#: the soft margin of the paper's algorithm has plateaus, and falls on restarts.
_PATIENCE = 3
#: Limit of evaluations of the root finder per unknown; after a few Jacobians it stalls.
_EVALUATIONS = 20


@dataclass(frozen=True)
class Alternating(Method, name="alternating"):
    """The paper's algorithm for linear systems, or its Algorithm 1 at order 1.

    It optimises u and v in turn, from random input projections.

    Parameters
    ----------
    n_starts : int
        Number of random starts.
    rounds : int
        Limit of rounds per start.
    tol : float
        Relative gain per round at which a start stops.
    """

    n_starts: int = N_DRAWN
    rounds: int = 300
    tol: float = 1e-6

    def __post_init__(self) -> None:
        check.count(self.n_starts, "n_starts")
        check.count(self.rounds, "rounds")
        check.positive(self.tol, "tol")

    def solve(self, run: Run) -> Projections:
        """Return the best end of all starts."""
        problem, rounds, tol = run.problem, self.rounds, self.tol
        if isinstance(problem, LinearProblem):

            def solve(u: np.ndarray) -> Candidate:
                return alternate(problem, u, max_iter=rounds, tol=tol)
        else:
            quadratic = QuadraticInput(problem)

            def solve(u: np.ndarray) -> Candidate:
                return alternate_nonlinear(quadratic, u, max_iter=rounds, tol=tol)

        return run.finish(collect(run.starts(self.n_starts), solve), self.name)


class FixedReadout:
    """The function κ(u) and its gradient at one readout, from the readout's kernels."""

    def __init__(self, problem: NonlinearProblem, v: np.ndarray) -> None:
        assert isinstance(problem.system, Unfolding)
        self._stimuli, self._eta = problem.stimuli, problem.eta
        self._readout = problem.system.readout_kernels(v)

    def __call__(self, u: np.ndarray) -> tuple[SoftMargin, np.ndarray]:
        """Return κ and ∂κ/∂u (n_inputs, n_channels)."""
        kernels = self._readout.at(u)
        a, C = kernels.a, kernels.C
        assert C is not None
        given = a.ravel(), C.reshape(a.size, a.size), self._eta
        margin, a_bar, C_bar = self._stimuli.kernel_margin(*given)
        return margin, kernels.pullback(a_bar.reshape(a.shape), C_bar.reshape(C.shape))


class QuadraticInput:
    """The best u for a fixed v without the O(α) terms of Σ (cases A and B)."""

    def __init__(self, problem: NonlinearProblem) -> None:
        system, stimuli = problem.system, problem.stimuli
        n = stimuli.n_channels
        if not (isinstance(system, Unfolding) and system.has_kernels_of_all(n)):
            raise ValueError(
                "`method` 'alternating' is the paper's O(α) algorithm. It needs order 1, a "
                "quadratic gain and a readout at the end of a step; use 'ascent' instead."
            )
        self.problem, self.system = problem, system
        self.m1 = system.square_of_input()

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Maximise u·m₀ + uᵀ(m₁ − σ₀)u over unit u (`bisection-problem-lambda-u`)."""
        stimuli = self.problem.stimuli
        rows = self.system.maps.readout_response(v)  # (K, N)
        mu = stimuli.mu.reshape(stimuli.n_channels, -1)
        psi = np.asarray(stimuli.psi).reshape(*mu.shape, *mu.shape)
        m0 = (mu @ rows).ravel()
        half = np.einsum("cndm,np->cpdm", psi, rows)
        sigma0 = 0.5 * self.problem.eta * np.einsum("cpdm,mq->cpdq", half, rows)
        m1 = self.m1(v, stimuli.labelled_second_moment)
        Q = 2 * (sigma0 - m1).reshape(m0.size, -1)
        u = maximize_on_sphere(m0, (Q + Q.T) / 2).v
        return u.reshape(stimuli.n_channels, -1).T


def solve_lagrange(objective: FixedReadout, u: np.ndarray) -> tuple[np.ndarray, bool]:
    """Solve ∂κ/∂u + 2λu = 0, uᵀu = 1 near u (case C); also return whether it succeeded."""
    shape = u.shape

    def conditions(flat: np.ndarray) -> np.ndarray:
        point = flat[:-1].reshape(shape)
        _, gradient = objective(point)
        slope = (gradient + 2 * flat[-1] * point).ravel()
        return np.append(slope, flat[:-1] @ flat[:-1] - 1)

    _, gradient = objective(u)
    start = np.append(u.ravel(), -0.5 * float((gradient * u).sum()))
    limit: Any = {"maxfev": _EVALUATIONS * start.size}
    result = root(conditions, start, method="hybr", options=limit)
    found = result.x[:-1].reshape(shape)
    # The norm of the root differs slightly from one.
    return found / np.linalg.norm(found), bool(result.success)


def alternate_nonlinear(
    quadratic: QuadraticInput, u: np.ndarray, *, max_iter: int, tol: float
) -> Candidate:
    """Alternate from one start until three rounds of case C in a row gain nothing."""
    problem = quadratic.problem
    v, margin = problem.best_readout(u)
    best = (u, v, margin)
    history = [(margin.separation, margin.variance)]
    status, full, idle = "max_iterations", False, 0
    try:
        for _ in range(max_iter):
            u = _case_c(quadratic, u, v) if full else quadratic(v)
            v, new = problem.best_readout(u)
            gain, margin = new.value - margin.value, new
            if full:
                gained = new.value - best[2].value > tol * abs(best[2].value)
                idle = 0 if gained else idle + 1
            best = (u, v, new) if new.value > best[2].value else best
            history.append((best[2].separation, best[2].variance))
            if idle == _PATIENCE:
                status = "converged"
                break
            full = full or gain <= _NEARLY_SATURATED * abs(margin.value)
    except KeyboardInterrupt:
        status = "interrupted"
    return Candidate(*best, status, history)


def _case_c(quadratic: QuadraticInput, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return u of case C, with the paper's restart rule."""
    objective = FixedReadout(quadratic.problem, v)
    found, solved = solve_lagrange(objective, u)
    if solved and objective(found)[0].value >= objective(u)[0].value:
        return found
    # The soft margin fell, or there is no root near u. Restart from the optimum without σ₁
    # and σ₂, and accept the result even if κ falls; the next readout makes up for it.
    return solve_lagrange(objective, quadratic(v))[0]


def alternate(
    problem: LinearProblem, u: np.ndarray, *, max_iter: int, tol: float
) -> Candidate:
    """Alternate between the optimal readout and the optimal input projection.

    Each half-step is a quadratic problem on the sphere (paper, supplement, cases A and B).
    The soft margin never falls. The iteration stops when a round gains less than
    ``tol`` · κ.
    """
    v, margin = problem.best_readout(u)
    history = [(margin.separation, margin.variance)]
    status = "max_iterations"
    try:
        for _ in range(max_iter):
            new_u, _ = problem.best_input(v)
            new_v, new = problem.best_readout(new_u)
            gain = new.value - margin.value
            if gain > 0:
                u, v, margin = new_u, new_v, new
            history.append((margin.separation, margin.variance))
            if gain <= tol * abs(margin.value):
                status = "converged"
                break
    except KeyboardInterrupt:
        status = "interrupted"
    return Candidate(u, v, margin, status, history)
