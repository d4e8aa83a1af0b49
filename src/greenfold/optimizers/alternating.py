"""The paper's alternating algorithms: for linear systems, and Algorithm 1 at O(α).

They optimise u and v in turn. For a fixed readout
κ = u·m₀ + uᵀ(m₁ − σ₀)u − σ₁[u,u,u] − σ₂[u,u,u,u]. The first rounds leave out σ₁ and σ₂
(cases A and B). When they saturate, a root finder solves the Lagrange conditions of the
whole polynomial (case C). The tensors are never formed: the adjoint of the unfolding gives
their contractions with u (`InputPolynomial`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import root

from .._base import checks as check
from ..math.margins import SoftMargin
from ..math.sphere import maximize_on_sphere
from ..unfolding.kernels import SquareOfInput
from ..unfolding.unfolding import Unfolding
from .linear import Candidate, LinearProblem
from .method import N_DRAWN, Method, Run, collect
from .nonlinear import NonlinearProblem
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

    It optimises u and v in turn, from random input projections, to a stationary point of
    κ on unit vectors (paper, equation 8, `def_opt_with_Lagrange`).

    Parameters
    ----------
    n_starts : int
        Number of random starts.
    rounds : int
        Limit of rounds per start.
    tol : float
        Relative gain per round at which a start stops.
    screen : int, optional
        Number of rounds after which only the best start continues, as the paper advises; by
        default, every start runs to its end.
    """

    n_starts: int = N_DRAWN
    rounds: int = 300
    tol: float = 1e-6
    screen: int | None = None

    def __post_init__(self) -> None:
        check.count(self.n_starts, "n_starts")
        check.count(self.rounds, "rounds")
        check.positive(self.tol, "tol")
        if self.screen is not None:
            few = check.count(self.screen, "screen") < self.rounds
            check.must(few, "screen", f"be less than `rounds` = {self.rounds}", self.screen)
            check.without_effect(self.n_starts == 1, "screen", "with a single start")

    def solve(self, run: Run) -> Projections:
        """Return the best end of all starts."""
        problem = run.problem
        if isinstance(problem, LinearProblem):
            alternated = partial(alternate, problem)
        else:
            alternated = partial(alternate_nonlinear, QuadraticInput(problem))
        whole = partial(alternated, max_iter=self.rounds, tol=self.tol)
        screen = self.screen
        if screen is None:
            return run.finish(collect(run.starts(self.n_starts), whole), self.name)
        first: list[np.ndarray] = []

        def few(u: np.ndarray) -> Candidate:
            found = alternated(u, max_iter=screen, tol=self.tol)
            first.append(u)
            return found

        ends = collect(run.starts(self.n_starts), few)
        best = max(range(len(ends)), key=lambda i: ends[i].margin.value)
        if ends[best].status == "max_iterations" and ends[-1].status != "interrupted":
            # The first rounds are repeated: they are the same, and few.
            ends += collect([first[best]], whole)
            del ends[best]
        return run.finish(ends, self.name)


def solve_lagrange(objective: FixedReadout, u: np.ndarray) -> tuple[np.ndarray, bool]:
    """Solve ∂κ/∂u + 2λu = 0, uᵀu = 1 near u (case C); also return whether it succeeded.

    These are the conditions of the paper's equation 8, `def_opt_with_Lagrange`, with all
    terms in u.
    """
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


class InputPolynomial:
    """κ at one readout v as a polynomial of degree four in u (paper, supplement).

    κ(u) = u·m₀ + uᵀ(m₁ − σ₀)u − σ₁[u, u, u] − σ₂[u, u, u, u].

    Parameters
    ----------
    problem : NonlinearProblem
        An `Unfolding` at order 1 with a quadratic gain, and its stimuli.
    v : ndarray (n_neurons,)

    Attributes
    ----------
    m0 : ndarray (n_neurons, n_channels)
    m1, sigma0 : ndarray (n_neurons, n_channels, n_neurons, n_channels)
        Matrices on pairs of entries of u.
    """

    def __init__(self, problem: NonlinearProblem, v: np.ndarray) -> None:
        self._eta, self._stimuli = problem.eta, problem.stimuli
        m0, m1, sigma0 = QuadraticInput(problem).matrices(v)
        assert isinstance(problem.system, Unfolding)
        self._readout = problem.system.readout_kernels(v)
        self.m0 = m0.T
        self.m1, self.sigma0 = (one.transpose(1, 0, 3, 2) for one in (m1, sigma0))

    def sigma1(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return σ₁[u, u, u] and its gradient in u, both (η/2) times a third moment.

        The gradient is the contraction of σ₁ with u twice, summed over the three places.
        """
        return self._cost(u, cross=True)

    def sigma2(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return σ₂[u, u, u, u] and its gradient in u; see `sigma1`."""
        return self._cost(u, cross=False)

    def _cost(self, u: np.ndarray, *, cross: bool) -> tuple[float, np.ndarray]:
        kernels = self._readout.at(u.reshape(self.m0.shape))
        assert kernels.C is not None
        a, C = kernels.a.ravel(), kernels.C.reshape(kernels.a.size, -1)
        parts = self._stimuli.kernel_parts(a, C, self._eta)
        part = parts.mixed if cross else parts.bilinear
        back = part.a_bar.reshape(kernels.a.shape), part.C_bar.reshape(kernels.C.shape)
        return part.value, kernels.pullback(*back)


class QuadraticInput:
    """The best u for a fixed v without the O(α) terms of Σ (cases A and B).

    It solves the paper's equations 15 and 16, `soft-margin-gradient-u`,
    `soft-margin-gradient-lambda-u`.
    """

    def __init__(self, problem: NonlinearProblem) -> None:
        system, stimuli = problem.system, problem.stimuli
        n = stimuli.n_channels
        if not (isinstance(system, Unfolding) and system.has_kernels_of_all(n)):
            raise ValueError(
                "`method` 'alternating' is the paper's O(α) algorithm. It needs order 1, a "
                "quadratic gain and a readout at the end of a step; use 'ascent' instead."
            )
        self.problem, self.system = problem, system
        self.m1 = SquareOfInput(system.maps)

    def matrices(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the paper's m₀, m₁ and σ₀ for a readout v, channels before neurons."""
        stimuli = self.problem.stimuli
        rows = self.system.maps.readout_response(v)  # (K, N)
        mu = stimuli.mu.reshape(stimuli.n_channels, -1)
        psi = np.asarray(stimuli.psi).reshape(*mu.shape, *mu.shape)
        half = np.einsum("cndm,np->cpdm", psi, rows)
        sigma0 = 0.5 * self.problem.eta * np.einsum("cpdm,mq->cpdq", half, rows)
        m1 = np.asarray(self.m1(v, stimuli.labelled_second_moment))
        return mu @ rows, m1.reshape(sigma0.shape), sigma0

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Maximise u·m₀ + uᵀ(m₁ − σ₀)u over unit u."""
        m0, m1, sigma0 = self.matrices(v)
        Q = 2 * (sigma0 - m1).reshape(m0.size, -1)
        u = maximize_on_sphere(m0.ravel(), (Q + Q.T) / 2).v
        return u.reshape(m0.shape).T
