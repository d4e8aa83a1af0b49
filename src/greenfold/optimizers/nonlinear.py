"""The non-linear problem: maximise κ(u, v) from the moments of a system's states.

For an integrated network, each start first ascends in a rough problem with some of the
series, long sub-steps and single precision. Then κ of its end is computed on all series,
and the best ends continue there. An error ε of the states moves the optimum by about ε and
lowers κ by about ε². So the last ascent may be integrated less accurately than its result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.progress import Bar, display, tell
from ..math.margins import SoftMargin, gaussian_soft_margin
from ..math.sphere import maximize_on_sphere
from ..stimuli.base import Stimuli
from ..systems import IntegratedSystem, System
from .linear import Candidate, ascend


@dataclass(frozen=True, eq=False)
class NonlinearProblem:
    """The soft margin of a non-linear system as a function of both projections.

    ``rough`` is the number of series of a rough problem; ``single`` selects single
    precision for it.
    """

    system: System
    stimuli: Stimuli
    eta: float
    rough: int | None = None
    single: bool = False

    @cached_property
    def moments_at(self):
        """The function that returns M(u) and Σ(u); see `Stimuli.moment_map`."""
        if self.rough is not None:
            return self.stimuli.rough_map(self.system, self.rough, single=self.single)
        return self.stimuli.moment_map(self.system)

    def settle(self, u: np.ndarray) -> bool:
        """Return whether the sub-steps, if any, are accurate at u; if not, change them."""
        settle = getattr(self.moments_at, "settle", None)
        return True if settle is None else settle(u)

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Return the best v for u, and κ (paper, equation 18, `soft-margin-gradient-v`)."""
        v, margin, _ = self._solve(u)
        return v, margin

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal v, κ, and ∂κ/∂u at that v."""
        v, margin, moments = self._solve(u)
        tell(f"κ {margin.value:.5g}")
        return v, margin, moments.pull(v, self.eta)

    def _solve(self, u: np.ndarray):
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            moments = self.moments_at(u)
        finite = np.isfinite(moments.M).all() and np.isfinite(moments.Sigma).all()
        problem = "the moments of the states exceed the range of floats"
        advice = "lower the non-linearity of the gain, or scale the stimuli down"
        check.require(finite, f"{problem}; {advice}.", OverflowError)
        v = maximize_on_sphere(moments.M, self.eta * moments.Sigma).v
        return v, gaussian_soft_margin(moments.M, moments.Sigma, v, self.eta), moments


#: The rough problem: its number of series, the error of a state, the relative gain of κ per
#: step at which to stop, and the length of the first step.
_ROUGH_SERIES, _ROUGH_ERROR, _ROUGH_TOL, _ROUGH_REACH = 2000, 3e-2, 1e-3, 0.3
#: The ascent on all series: the error of a state, the gain down to which it runs in single
#: precision (then in double), the length of the first step, and the number of series above
#: which single precision is used. With few series, single precision would make equal
#: problems differ, such as a series given twice and one of weight two.
_ERROR, _SINGLE_TOL, _REACH, _SINGLE_FROM = 1e-3, 1e-6, 0.03, 150
#: Gain at which the last ascent stops, and that for more than `_ROUGH_SERIES` series: κ
#: itself is then only known to a per cent.
_TOL, _TOL_OF_MANY = 1e-7, 1e-5
_ALL = 2**62
#: Number of ends that continue, the share of the best κ that they need, and the relative
#: difference below which two ends count as one, because rough ascents are no more precise.
_N_BEST, _WORTH, _SAME = 2, 0.95, 5e-3
#: Largest number of ascents with shorter and shorter sub-steps.
_MAX_ROUNDS = 5


class Refinement:
    """An ascent from several starts through an integrated network.

    ``max_iter`` limits the evaluations of one ascent. ``tol`` is the relative gain of κ per
    step at which the last ascent stops. ``n_evaluations`` counts the evaluations of the
    best start.
    """

    def __init__(
        self, problem: NonlinearProblem, system: IntegratedSystem, max_iter: int, tol: Any
    ) -> None:
        self._problem, self._max_iter = problem, max_iter

        def rough(n_series: int | None, error: float) -> NonlinearProblem:
            coarse = system.with_tol(max(system.tol, error))
            single = n_series is not None and problem.stimuli.n_series > _SINGLE_FROM
            return replace(problem, system=coarse, rough=n_series, single=single)

        self._rough = rough(_ROUGH_SERIES, _ROUGH_ERROR)
        self._single, self._double = rough(_ALL, _ERROR), rough(None, _ERROR)
        many = problem.stimuli.n_series > _ROUGH_SERIES
        tol = tol or (_TOL_OF_MANY if many else _TOL)
        #: The problems with all series, and the gains at which their ascents stop.
        self._stages: list[tuple[NonlinearProblem, float]] = []
        if self._single.single:
            self._stages.append((self._single, max(tol, _SINGLE_TOL)))
        if not self._single.single or tol < _SINGLE_TOL:
            self._stages.append((self._double, tol))
        self.n_evaluations = 0

    def run(
        self, starts: Iterator[np.ndarray], n_starts: int
    ) -> tuple[Candidate, list[float]]:
        """Return the best candidate, and κ on all series at the end of each start.

        Ctrl-C returns the best candidate so far; without a candidate, it raises
        KeyboardInterrupt. Starts at which the network diverges are left out; if it diverges
        at all of them, the error is raised.
        """
        with display() as shown, shown.bar("starts", n_starts + 2 * _N_BEST) as bar:
            ends: list[Candidate] = []
            refused = stopped = None
            try:
                for index, u in enumerate(starts):
                    bar.advance(0, f"start {index + 1} of {n_starts}")
                    try:
                        end = self._follow(u)
                    except FloatingPointError as error:
                        refused = error
                        continue
                    if end.status == "interrupted":
                        stopped = end
                        break
                    ends.append(end)
                    bar.advance()
            except KeyboardInterrupt:
                if not ends:
                    raise
                stopped = ends[-1]
            if stopped is not None:
                # The interrupted start has κ of some series only, so prefer finished ends.
                best = max(ends or [stopped], key=lambda end: end.margin.value)
                found = self._settled(best, "interrupted", len(best.history))
                return found, [found.margin.value]
            if not ends:
                assert refused is not None
                raise refused
            return self._finish(ends, bar)

    def _ascent(
        self, problem: NonlinearProblem, u: Any, tol: float, reach: float
    ) -> Candidate:
        return ascend(problem, u, max_iter=self._max_iter, tol=tol, reach=reach)

    def _follow(self, u: np.ndarray) -> Candidate:
        """Ascend in the rough problem from one start; κ of the end is on all series."""
        found = self._ascent(self._rough, u, _ROUGH_TOL, _ROUGH_REACH)
        if found.status == "interrupted":
            return found
        v, margin = self._single.best_readout(found.u)
        return replace(found, v=v, margin=margin)

    def _finish(self, ends: list[Candidate], bar: Bar) -> tuple[Candidate, list[float]]:
        """Ascend from the best ends to convergence; similar ends share their results."""
        counts = [len(end.history) for end in ends]
        chosen: list[int] = []
        top = max(end.margin.value for end in ends)
        for i in sorted(range(len(ends)), key=lambda i: -ends[i].margin.value):
            worth = ends[i].margin.value >= top - (1 - _WORTH) * abs(top)
            known = any(_same(ends[i], ends[j]) for j in chosen)
            if worth and not known and len(chosen) < _N_BEST:
                chosen.append(i)
        finished, interrupted = list(ends), False
        for number, i in enumerate(chosen):
            bar.advance(0, f"best start {number + 1} of {len(chosen)}, {top:.5g} so far")
            try:
                finished[i], counts[i] = self._ascend(ends[i])
                interrupted = finished[i].status == "interrupted"
            except KeyboardInterrupt:
                interrupted = True
            bar.advance(2)
            if interrupted:
                break
        winner = max(chosen, key=lambda i: finished[i].margin.value)
        best = finished[winner]
        status = "interrupted" if interrupted else best.status
        finished[winner] = self._settled(best, status, counts[winner])
        # An end close to a chosen end would have reached the same optimum.
        shares = (next((j for j in chosen if _same(e, ends[j])), None) for e in ends)
        own = [i if j is None else j for i, j in enumerate(shares)]
        return finished[winner], [finished[i].margin.value for i in own]

    def _ascend(self, found: Candidate) -> tuple[Candidate, int]:
        """Ascend to convergence on all series; also return the number of evaluations."""
        count = len(found.history)
        for problem, tol in self._stages:
            for _ in range(_MAX_ROUNDS):
                found = self._ascent(problem, found.u, tol, _REACH)
                count += len(found.history)
                if found.status != "converged" or problem.settle(found.u):
                    break
            if found.status != "converged":
                break
        return found, count

    def _settled(self, found: Candidate, status: str, count: int) -> Candidate:
        """Return the candidate with its readout and κ at the final tolerance."""
        self.n_evaluations = count
        self._problem.settle(found.u)
        v, margin = self._problem.best_readout(found.u)
        return replace(found, v=v, margin=margin, status=status)


def _same(one: Candidate, other: Candidate) -> bool:
    """Return whether two ends are so close that one of them suffices."""
    apart = abs(one.margin.value - other.margin.value)
    return apart <= _SAME * abs(other.margin.value)
