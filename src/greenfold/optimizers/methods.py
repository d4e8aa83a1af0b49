"""The methods behind `optimize`, by name, and how what they find is described."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from .._base import checks as check
from ..devices.device import Device
from ..stimuli.base import Stimuli
from ..systems import Expansion, IntegratedSystem, System
from ..validity import ExpansionWarning, assess
from . import certified as convex
from .alternating import PaperSystem, QuadraticInput, alternate, alternate_nonlinear
from .ascent import ascend
from .linear import LinearProblem
from .masks import quantise_readout, solve_mask
from .noisy import noise_cost, problem_under_noise
from .nonlinear import NonlinearProblem, Refinement
from .result import Candidate, Projections

#: Below this separability the linear optimum is a poor start for the non-linear problem,
#: and random ones are added.
_WEAKLY_SEPARABLE = 1.5
#: Relative change of κ that ends the ascent to an order-1 optimum that is only a start.
_EXPANDED = 1e-5


@dataclass(frozen=True)
class Run:
    """One call of `optimize`, its arguments checked; a method each, and what follows it."""

    system: System
    stimuli: Stimuli
    eta: float
    started: float
    n_starts: int | None
    max_iter: int
    tol: float | None
    rng: np.random.Generator
    device: Device
    noise: dict[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def linear(self) -> LinearProblem:
        """The linear problem: of weak stimuli, where the system is not linear."""
        return problem_under_noise(self.system.maps, self.stimuli, self.eta, self.noise)

    @cached_property
    def problem(self) -> LinearProblem | NonlinearProblem:
        """The problem of the system as it is."""
        if self.system.is_linear:
            return self.linear
        problem = NonlinearProblem(self.system, self.stimuli, self.eta)
        problem.moments_at  # noqa: B018 - refuses what it cannot do before work is spent
        return problem

    def starts(self, n_starts: int) -> Iterator[np.ndarray]:
        """Random unit input projections."""
        for _ in range(n_starts):
            u = self.rng.standard_normal((self.system.n_inputs, self.stimuli.n_channels))
            yield u / np.linalg.norm(u)

    def given(self, u: Any) -> Projections:
        """An input projection that is kept; its readout is solved."""
        projection = check.input_projection(
            u, self.system.n_inputs, self.stimuli.n_channels
        )
        if not projection.any():
            raise ValueError("`u` is zero; give a direction.")
        projection = projection / np.abs(projection).max()  # its square stays in range
        unit = projection / np.linalg.norm(projection)
        return self.finish([_solve_readout(self.problem, unit)], "given", 1)

    def random(self) -> Projections:
        """Random input projections with the best readout of each."""
        starts = self.starts(self.n_starts or 10)
        return self.finish(
            _collect(_each(starts, lambda u: _solve_readout(self.problem, u))), "random", 1
        )

    def alternating(self) -> Projections:
        """One projection after the other, as the paper does."""
        starts = self.starts(self.n_starts or 10)
        tol = self.tol or 1e-6
        problem, max_iter = self.problem, self.max_iter
        if isinstance(problem, LinearProblem):
            runs = (alternate(problem, u, max_iter=max_iter, tol=tol) for u in starts)
        else:
            system = self.system
            if not (
                isinstance(system, PaperSystem)
                and system.has_kernels_of_all(self.stimuli.n_channels)
            ):
                raise ValueError(
                    "`method` = 'alternating' is the paper's O(α) algorithm: it needs "
                    "order 1, a quadratic gain and a readout at the end of a step; use "
                    "'ascent'."
                )
            quadratic = QuadraticInput(problem)
            runs = (
                alternate_nonlinear(problem, quadratic, u, max_iter=max_iter, tol=tol)
                for u in starts
            )
        return self.finish(_collect(runs), "alternating", None)

    def convex(self) -> Projections:
        """The global optimum of a linear system, with its bound."""
        found, n_svd = convex.solve(
            self.linear, max_iter=self.max_iter, tol=self.tol or 1e-4
        )
        interrupted = found.status == "interrupted"
        if self.device.kind is not None and not interrupted:
            found = solve_mask(self.linear, self.device, found, self.rng)
        made = self.finish([found], "convex", n_svd)
        return replace(made, growth=self.linear.growth)

    def ascent(self) -> Projections:
        """Ascent from the linear optimum, its negative and random projections."""
        if isinstance(self.system, IntegratedSystem):
            return self.refined(self.system)
        return self.finish(self.ascended(), "ascent", None)

    def ascended(self) -> list[Candidate]:
        """Where the ascents end, one a start."""
        n_starts = self.n_starts
        if n_starts is None:
            n_starts = 2 if self.stimuli.separability >= _WEAKLY_SEPARABLE else 6
        problem, tol = self.problem, self.tol or 1e-7
        linear, _ = convex.solve(self.linear, max_iter=self.max_iter, tol=1e-3)
        if linear.status == "interrupted":
            return [replace(_solve_readout(problem, linear.u), status="interrupted")]
        starts = [linear.u, -linear.u, *self.starts(max(0, n_starts - 2))][:n_starts]
        runs = _each(starts, lambda u: ascend(problem, u, max_iter=self.max_iter, tol=tol))
        return _collect(runs)

    def refined(self, system: IntegratedSystem) -> Projections:
        """The ascent through an integrated network."""
        linear, _ = convex.solve(self.linear, max_iter=self.max_iter, tol=1e-3)
        if linear.status == "interrupted":
            found = replace(_solve_readout(self.problem, linear.u), status="interrupted")
            return self.finish([found], "ascent", None)
        expanded = system.quadratic
        n_starts = self.n_starts
        if n_starts is None:
            n_starts = 2 + (expanded is not None)
            n_starts += 0 if self.stimuli.separability >= _WEAKLY_SEPARABLE else 4

        def starts() -> Iterator[np.ndarray]:
            yield linear.u
            yield -linear.u
            if expanded is not None:
                # To its end: what is solved for may then not be below its u, refitted.
                run = replace(self, system=expanded, n_starts=None, tol=_EXPANDED)
                ends = run.ascended()
                for end in ends:
                    end.raise_if_interrupted()
                yield max(ends, key=lambda end: end.margin.value).u
            yield from self.starts(n_starts)

        assert isinstance(self.problem, NonlinearProblem)
        refinement = Refinement(self.problem, system, max_iter=self.max_iter, tol=self.tol)
        found, margins = refinement.run(islice(starts(), n_starts), n_starts)
        return self.finish([found], "ascent", refinement.n_evaluations, margins)

    def finish(
        self,
        candidates: list[Candidate],
        method: str,
        n_iter: int | None,
        starts: list[float] | None = None,
    ) -> Projections:
        """Choose the best candidate and describe it."""
        best = max(candidates, key=lambda candidate: candidate.margin.value)
        interrupted = any(candidate.status == "interrupted" for candidate in candidates)
        device, maps = self.device, self.system.maps
        if device.bits is not None and not interrupted:
            keep = device.kind is not None or method in ("given", "random")
            best = quantise_readout(self.linear, best, device.bits, keep_u=keep)
        found = Projections(
            u=best.u[:, 0] if best.u.shape[1] == 1 else best.u,
            v=best.v,
            soft_margin=best.margin.value,
            separation=best.margin.separation,
            variance=best.margin.variance,
            eta=self.eta,
            upper_bound=best.upper_bound,
            method=method,
            status="interrupted" if interrupted else best.status,
            n_iter=len(best.history) - 1 if n_iter is None else n_iter,
            history=np.array(best.history),
            starts=np.array(starts or [c.margin.value for c in candidates]),
            wall_time=time.perf_counter() - self.started,
            mask=device.kind,
            noise_cost=noise_cost(maps, best.u, best.v, self.eta, self.noise) or None,
        )
        if interrupted or self.system.is_linear:
            return found
        try:
            if isinstance(self.system, Expansion):
                return self.judge(self.system, found)
            return self.measure(found, best.u)
        except KeyboardInterrupt:
            return replace(found, status="interrupted")

    def measure(self, found: Projections, u: np.ndarray) -> Projections:
        """Add κ on fresh stimuli and the error of the integration, where there are such."""
        if isinstance(self.system, IntegratedSystem):
            assert isinstance(self.problem, NonlinearProblem)
            self.problem.settle(u)
            found = replace(found, step_error=self.system.step_error.error)
        fresh = self.stimuli.fresh_margin(self.system, u, found.v, self.eta)
        if fresh is not None:
            found = replace(found, fresh_margin=fresh[0], fresh_error=fresh[1])
        return replace(found, wall_time=time.perf_counter() - self.started)

    def judge(self, expansion: Expansion, found: Projections) -> Projections:
        """Add the validity of the expansion, and warn where it fails."""
        validity = assess(
            expansion,
            self.stimuli,
            found.u,
            found.v,
            eta=self.eta,
            soft_margin=found.soft_margin,
        )
        if not validity.trustworthy:
            advice = (
                expansion.reservoir.gain.advice(validity.scale)
                if validity.scale < 1
                else "lower eta or raise the order"
            )
            verdict = " ".join(str(validity).split())
            warnings.warn(
                f"{verdict}; {advice}, or solve the network itself: `Dynamics`, or "
                'order="exact" of a classifier.',
                ExpansionWarning,
                stacklevel=5,
            )
        return replace(
            found, validity=validity, wall_time=time.perf_counter() - self.started
        )


#: Methods by name, the default first.
LINEAR: dict[str, Callable[[Run], Projections]] = {
    "convex": Run.convex,
    "alternating": Run.alternating,
    "random": Run.random,
}
NONLINEAR: dict[str, Callable[[Run], Projections]] = {
    "ascent": Run.ascent,
    "alternating": Run.alternating,
    "random": Run.random,
}


def _collect(runs: Iterator[Candidate]) -> list[Candidate]:
    """Run one start after the other, until the last or Ctrl-C."""
    found: list[Candidate] = []
    try:
        for candidate in runs:
            found.append(candidate)
            if candidate.status == "interrupted":
                break
    except KeyboardInterrupt:
        if not found:
            raise
        found[-1] = replace(found[-1], status="interrupted")
    return found


def _each(
    starts: Iterable[np.ndarray], solve: Callable[[np.ndarray], Candidate]
) -> Iterator[Candidate]:
    """One candidate a start, without those at which the network diverges."""
    refused, n_solved = None, 0
    for u in starts:
        try:
            candidate = solve(u)
        except FloatingPointError as error:
            refused = error
            continue
        n_solved += 1
        yield candidate
    if refused is not None and not n_solved:
        raise refused


def _solve_readout(problem: LinearProblem | NonlinearProblem, u: np.ndarray) -> Candidate:
    if isinstance(problem, NonlinearProblem):
        problem.settle(u)
    v, margin = problem.best_readout(u)
    return Candidate(u, v, margin, [(margin.separation, margin.variance)], "solved")
