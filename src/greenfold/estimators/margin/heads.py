"""One class against the rest: its projections and readout.

A two-class problem has one comparison, a problem of more classes one per class, each with
its own origin, input projection and readout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..._base import checks as check
from ..._base import codec
from ..._base.arrays import to_host
from ..._base.printing import Shown
from ...dynamics.dynamics import Dynamics
from ...optimizers import certified as convex
from ...optimizers.bounds import AMPLIFIED
from ...optimizers.linear import LinearProblem, ascend
from ...optimizers.result import Projections
from ...optimizers.run import optimize
from ...optimizers.shared import SharedProblem, solve_shared
from ...stimuli.base import Series
from ...stimuli.frame import Frame
from ...unfolding.kernel import KERNEL, Kernel
from ...unfolding.unfolding import Unfolding
from ...validity import Validity

#: Evaluations of the quick ascent, and the relative change of κ per step at which it stops:
#: finer changes do not affect predictions.
_EVALUATIONS = 100
_TOLERANCE = 1e-6
#: Number of starts with an integrated network: the linear optimum with both signs.
_STARTS = 2

#: The systems that a classifier solves and reads.
Solved: TypeAlias = Unfolding | Dynamics


@dataclass(frozen=True, eq=False, repr=False)
class Head(Shown):
    """A fitted comparison: its coordinates, projections and kernel."""

    #: Those of its `Frame`, in the units of the series as given.
    centre: np.ndarray
    scale: float
    #: (n_neurons, n_channels) and (n_neurons,).
    u: np.ndarray
    v: np.ndarray
    #: None beyond the orders that plain kernels can hold.
    kernel: Kernel | None
    #: κ, and a proven upper bound over all projections (NaN if there is none).
    soft_margin: float
    bound: float
    n_iter: int
    validity: Validity | None = None
    #: Sub-steps per step of an integrated network: those that its tolerance required on the
    #: training series. None for an unfolded network.
    n_sub: int | None = None

    def _facts(self) -> dict[str, Any]:
        facts = {"soft_margin": self.soft_margin, "bound": self.bound}
        return {**facts, "scale": self.scale, "u": self.u.shape, "kernel": self.kernel}

    def states(self, series: Series, system: Solved) -> np.ndarray:
        """Network states (n_cases, n_neurons)."""
        X = series.to_network(self.centre, self.scale)
        if isinstance(system, Dynamics):
            return to_host(system.states(X, self.u, n_sub=self.n_sub))
        return to_host(system.states(X, self.u))


_SUB_STEPS = codec.Plain(
    "a number of sub-steps up to 10,000", lambda x: type(x) is int and 1 <= x <= 10_000
)
HEAD = codec.Object(
    Head,
    centre=codec.Numbers("channels", "steps"),
    scale=codec.NUMBER,
    u=codec.Numbers("neurons", "channels"),
    v=codec.Numbers("neurons"),
    kernel=codec.Maybe(KERNEL),
    soft_margin=codec.NUMBER,
    validity=codec.Maybe(codec.Object(Validity)),
    n_sub=codec.Maybe(_SUB_STEPS),
)


def solve_head(
    system: Solved,
    frame: Frame,
    eta: float,
    u: np.ndarray | None,
    *,
    certify: bool,
    seed: int,
) -> Head:
    """Solve one comparison, keeping ``u`` (n_neurons, n_channels) if it is given.

    With ``certify`` the gap to the upper bound is closed (order 0). Beyond order 0 the
    frame must have its series, and ``seed`` draws the random starts.
    """
    n_sub = kernel = None
    if isinstance(system, Dynamics):
        own = system.with_tol(system.tol)  # records its own error; heads run in threads
        found = optimize(own, frame.stimuli, eta, u=u, n_starts=_STARTS, rng=seed)
        assert own.step_error is not None
        n_sub = own.step_error.n_sub
    elif system.order:
        found = optimize(system, frame.stimuli, eta, u=u, rng=seed)
    elif certify and u is None:
        found = optimize(system, frame.stimuli, eta)
    else:
        found = _solve_quickly(LinearProblem(system.maps, frame.stimuli, eta), u)
    if isinstance(found, Projections):
        found.raise_if_interrupted()
    bound = None if isinstance(system, Dynamics) else found.upper_bound
    projection = found.u.reshape(system.n_neurons, -1)
    if isinstance(system, Unfolding) and system.has_kernels:
        kernel = system.kernels(projection, found.v)
    return Head(
        centre=frame.centre,
        scale=frame.scale,
        u=projection,
        v=found.v,
        kernel=kernel,
        soft_margin=found.soft_margin,
        bound=np.nan if bound is None else bound,
        n_iter=max(1, found.n_iter),
        validity=found.validity,
        n_sub=n_sub,
    )


def share_input(
    system: Unfolding, frames: list[Frame], eta: float, alone: list[Head], *, certify: bool
) -> tuple[list[Head], float]:
    """Solve all comparisons with one input projection (order 0); return heads and a bound.

    No u has a larger sum of soft margins than the bound. ``alone`` holds the heads solved
    each with its own u; they are the starts, and their bounds are kept.
    """
    problem = SharedProblem(
        tuple(LinearProblem(system.maps, frame.stimuli, eta) for frame in frames)
    )
    separate = sum(head.bound for head in alone)
    found = solve_shared(problem, [head.u for head in alone], separate, certify=certify)
    heads = [
        replace(
            head,
            u=found.u,
            v=v,
            kernel=system.kernels(found.u, v),
            soft_margin=margin.value,
            bound=max(head.bound, margin.value),
            n_iter=max(1, found.n_iter),
        )
        for head, v, margin in zip(alone, found.V.T, found.margins, strict=True)
    ]
    return heads, found.bound


class _Quick(NamedTuple):
    """The part of `Projections` that a head needs."""

    u: np.ndarray
    v: np.ndarray
    soft_margin: float
    n_iter: int
    upper_bound: float
    validity: None = None


def _solve_quickly(problem: LinearProblem, u: np.ndarray | None) -> _Quick:
    """Ascend from the best atom, and bound κ from two more atoms.

    The bound κ(a) + σ_max(G(d)) − d·a holds at every kernel a. It is taken at the kernel
    found and at its best multiple, which is closer if the relaxation is not tight.
    """
    mu = problem.stimuli.mu
    bound, start, _ = problem.best_atom(mu)
    if u is not None or not mu.any():
        u = start if u is None else u / np.linalg.norm(u)
        v, margin = problem.best_readout(u)
        value, n_iter = margin.value, 1
    else:
        best = ascend(problem, start, max_iter=_EVALUATIONS, tol=_TOLERANCE)
        if problem.growth > AMPLIFIED:
            best = max(best, convex.rescue(problem), key=lambda one: one.margin.value)
        if best.status == "interrupted":
            raise KeyboardInterrupt
        u, v, value, n_iter = best.u, best.v, best.margin.value, len(best.history)
    kernel = problem.kernel(u, v)
    margin = problem.margin_of_kernel(kernel, v)
    multiples = {1.0}
    if margin.variance > 0:
        multiples.add(min(1.0, max(0.0, margin.separation / (2 * margin.variance))))
    for factor in multiples:
        a = factor * kernel
        d = problem.gradient_at(a)
        sigma, _, _ = problem.best_atom(d)
        bound = min(bound, problem.margin_of_kernel(a, v).value + sigma - float(d @ a))
    return _Quick(u, v, value, n_iter, max(bound, value))


def read_out(heads: list[Head], system: Callable[[], Solved], series: Series) -> np.ndarray:
    """Readout values (n_cases, n_heads) of series in their original units.

    One product serves all heads with linear kernels. ``system`` returns the network, which
    runs once per head without a kernel.
    """
    kernels: list[Any] = [head.kernel for head in heads]
    if any(kernel is None or kernel.quadratic is not None for kernel in kernels):
        values = [
            head.states(series, system()) @ head.v
            if head.kernel is None
            else head.kernel.decision_values(series.moved(head.centre, head.scale))
            for head in heads
        ]
        return np.stack(values, axis=1)
    weights = np.stack([k.linear * h.scale for k, h in zip(kernels, heads, strict=True)])
    origin = weights * np.stack([head.centre for head in heads])
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        Z = series.values.reshape(len(series), -1) @ weights.reshape(len(heads), -1).T
    check.finite_result(Z, np)
    if series.present is None:
        return Z - origin.sum(axis=(1, 2))
    return Z - series.present @ origin.sum(axis=1).T
