"""The ascent of a non-linear problem, from the linear optimum and from random projections.

For an integrated network, each start first ascends in a rough problem with some of the
series, long sub-steps and single precision. Then κ of its end is computed on all series,
and the best ends continue there. An error ε of the states moves the optimum by about ε and
lowers κ by about ε². So the last ascent may be integrated less accurately than its result.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from .._base import checks as check
from .._base.progress import Bar, display, is_part
from ..dynamics.integration import Dynamics
from ..stimuli.chunks import Chunks
from ..stimuli.regression import RegressionTask
from ..systems import System
from ..unfolding.unfolding import Unfolding
from .convex import Search
from .linear import Candidate, ascend
from .method import Method, Run, collect
from .nonlinear import NonlinearProblem
from .regression import ascend_regression
from .result import Projections, RegressionProjections

#: Separability below which the linear optimum is a poor start for the non-linear problem,
#: number of random starts then, and the relative change of κ that ends the ascent to an
#: order-1 optimum used as a start.
_WEAKLY_SEPARABLE, _N_RANDOM, _EXPANDED = 1.5, 4, 1e-5
#: Approximate number of passes over all series that an ascent takes: with an integrated
#: network, which mostly uses some of the series; at order 1; and at higher orders.
_WALKS_INTEGRATED, _WALKS_FIRST, _WALKS = 30, 250, 350
#: Number of series in the first pass that is timed, seconds of a pass from which on the
#: time of more series is extrapolated, seconds of an ascent above which it is announced,
#: and above which orders from two on are refused.
_TIMED, _SURE, _LONG, _NEVER = 4, 1.0, 60.0, 86400.0
#: Relative gain of κ per step at which an ascent on an expansion stops by default, and the
#: gap of the linear optimum at its start.
_CONVERGED, _LINEAR_GAP = 1e-7, 1e-3


@dataclass(frozen=True)
class Ascent(Method, name="ascent"):
    """A quasi-Newton ascent of max_v κ(u, v) on the sphere, for non-linear systems.

    Parameters
    ----------
    n_starts : int, optional
        Number of starts. The first two are the linear optimum with both signs. By default,
        `Dynamics` adds the optimum of an expansion if the gain has a quadratic part, and
        four random starts follow if the stimuli are weakly separable (`separability` <
        1.5). A `RegressionTask` takes 4 starts, a `SequenceTask` one.
    max_evaluations : int
        Limit of evaluations per start, after the first.
    tol : float, optional
        Relative gain per step at which an ascent stops: by default 1e-7, or 1e-5 for
        `Dynamics` and more than 2000 series; 1e-12 for a `RegressionTask`, 1e-6 for a
        `SequenceTask`.
    """

    n_starts: int | None = None
    max_evaluations: int = 300
    tol: float | None = None

    takes_linear = False

    def __post_init__(self) -> None:
        if self.n_starts is not None:
            check.count(self.n_starts, "n_starts")
        check.count(self.max_evaluations, "max_evaluations")
        if self.tol is not None:
            check.positive(self.tol, "tol")

    def draws(self, run: Run) -> bool:
        """Return whether there may be random starts."""
        del run
        return self.n_starts is None or self.n_starts > 2

    def _count(self, run: Run) -> int:
        if self.n_starts is not None:
            return self.n_starts
        weakly = run.stimuli.separability < _WEAKLY_SEPARABLE
        expands = isinstance(run.system, Dynamics) and run.system.quadratic is not None
        return 2 + expands + weakly * _N_RANDOM

    def solve(self, run: Run) -> Projections:
        """Ascend from the linear optimum, its negative, and random projections."""
        chunks = getattr(run.stimuli, "_chunks", None)
        if isinstance(chunks, Chunks) and chunks.in_memory and not is_part():
            size = run.stimuli.n_series, run.stimuli.n_channels
            if isinstance(chunks.series[0], np.ndarray):
                foretell(run.system, *size, stacklevel=6)
        if not isinstance(run.system, Dynamics):
            return run.finish(self._ascended(run), self.name)
        linear = _linear_start(run)
        if linear.status == "interrupted":
            return run.finish([linear], self.name)
        expanded, n_starts = run.system.quadratic, self._count(run)

        def starts() -> Iterator[np.ndarray]:
            yield linear.u
            yield -linear.u
            if expanded is not None:
                # This ascent must converge: the result must not be below κ of its u with a
                # new readout.
                order1 = Ascent(max_evaluations=self.max_evaluations, tol=_EXPANDED)
                ends = order1._ascended(replace(run, system=expanded), linear)
                for end in ends:
                    end.raise_if_interrupted()
                yield max(ends, key=lambda end: end.margin.value).u
            yield from run.starts(n_starts)

        assert isinstance(run.problem, NonlinearProblem)
        refinement = Refinement(run.problem, run.system, self.max_evaluations, self.tol)
        found, margins = refinement.run(islice(starts(), n_starts), n_starts)
        n_iter = refinement.n_evaluations
        return run.finish([found], self.name, n_iter=n_iter, starts=margins)

    def _ascended(self, run: Run, linear: Candidate | None = None) -> list[Candidate]:
        """Return the ends of the ascents on an expansion, one per start."""
        n_starts, problem = self._count(run), run.problem
        linear = _linear_start(run) if linear is None else linear
        if linear.status == "interrupted":
            return [linear]
        # The sign of a linear optimum is arbitrary; start with the better sign.
        both = [run.solve_readout(u).margin.value for u in (linear.u, -linear.u)]
        u = linear.u if both[0] >= both[1] else -linear.u
        starts = [u, -u, *run.starts(max(0, n_starts - 2))][:n_starts]
        limit, tol = self.max_evaluations, self.tol or _CONVERGED
        return collect(starts, lambda u: ascend(problem, u, max_iter=limit, tol=tol))

    def regress(
        self, system: System, task: RegressionTask, rng: np.random.Generator
    ) -> RegressionProjections:
        """Ascend from the best u of the linear system, its negative, and random ones."""
        return ascend_regression(
            system,
            task,
            n_starts=self.n_starts,
            max_evaluations=self.max_evaluations,
            tol=self.tol,
            rng=rng,
        )


def _linear_start(run: Run) -> Candidate:
    """Return the linear optimum as a start; after Ctrl-C, with κ of the system."""
    linear = Search(run.linear, _LINEAR_GAP).run()[0]
    if linear.status == "interrupted":
        return run.solve_readout(linear.u, "interrupted")
    return linear


class SlowFitWarning(UserWarning):
    """A warning that a fit will take more than a minute."""


def foretell(
    system: System, n_series: int, n_channels: int, n_problems: int = 1, *, stacklevel: int
) -> None:
    """Warn before an ascent of more than a minute, and refuse an order that takes a day.

    The estimate times one pass, over more and more series until it takes a while, and
    extrapolates the last two: at order 1, many series take little longer than a few. It
    stops early if all of them take less than a minute even in proportion. It is at order 2
    at most; at higher orders the time grows with the square of the order.
    """
    integrated = isinstance(system, Dynamics)
    order = 1 if integrated else system.order if isinstance(system, Unfolding) else 0
    if not (order and n_series):
        return
    timed: System = system
    if integrated:
        # A copy, because `system` records the integration error that the result reports.
        timed = system.with_tol(system.tol)
    elif isinstance(system, Unfolding) and order > 2:
        timed = system.at_order(2)
    rng, shape = np.random.default_rng(0), (n_channels, system.n_steps)
    u = np.full((system.n_inputs, n_channels), (system.n_inputs * n_channels) ** -0.5)
    walks = _WALKS_INTEGRATED if integrated else _WALKS if order > 1 else _WALKS_FIRST
    times = n_problems * walks * max(1.0, (order / 2) ** 2)

    def seconds_for(n: int) -> float:
        some = rng.standard_normal((n, *shape)) / 10
        start = time.perf_counter()
        timed.states(some, u)
        return times * (time.perf_counter() - start)

    try:
        seconds_for(1)  # fills caches, which are not timed
        n_timed, each = min(n_series, _TIMED), 0.0
        seconds = seconds_for(n_timed)
        while (
            n_timed < n_series
            and seconds * n_series / n_timed > _LONG
            and (seconds < times * _SURE or n_timed <= _TIMED)
        ):
            before, n_before, n_timed = seconds, n_timed, min(n_series, 4 * n_timed)
            seconds = seconds_for(n_timed)
            each = max(0.0, seconds - before) / (n_timed - n_before)
    except FloatingPointError:  # the network diverges; the ascent reports it
        return
    seconds += each * (n_series - n_timed)
    kind = "`Dynamics`" if integrated else f"order={order}"
    size = f"{n_series} series of {system.n_steps} steps and {system.n_inputs} neurons"
    cure = "take fewer neurons or series"
    if not integrated and order > 1:
        cure = 'order=1 or order="exact" is quicker'
        never = f"{kind} takes about {seconds / 86400:.3g} days for {size}; {cure}."
        check.require(seconds < _NEVER, never)
    if seconds > _LONG:
        long = f"{kind} takes about {seconds / 60:.0f} minutes for {size}; {cure}."
        warnings.warn(long, SlowFitWarning, stacklevel=stacklevel)


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
        self, problem: NonlinearProblem, system: Dynamics, max_iter: int, tol: float | None
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

            def counted() -> Iterator[np.ndarray]:
                for index, u in enumerate(starts):
                    bar.advance(index > 0, f"start {index + 1} of {n_starts}")
                    yield u

            ends = collect(counted(), self._follow)
            if ends[-1].status == "interrupted":
                best = max(ends, key=lambda end: end.margin.value)
                found = self._settled(best, "interrupted", len(best.history))
                return found, [found.margin.value]
            bar.advance()
            return self._finish(ends, bar)

    def _ascent(
        self, problem: NonlinearProblem, u: np.ndarray, tol: float, reach: float
    ) -> Candidate:
        return ascend(problem, u, max_iter=self._max_iter, tol=tol, reach=reach)

    def _follow(self, u: np.ndarray) -> Candidate:
        """Ascend in the rough problem from one start; κ of the end is on all series."""
        found = self._ascent(self._rough, u, _ROUGH_TOL, _ROUGH_REACH)
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
