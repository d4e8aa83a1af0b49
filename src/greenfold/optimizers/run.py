"""The function `optimize`, which runs every method and describes its result."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, overload

import numpy as np

from .._base import checks as check
from .._base.progress import is_part, watched
from .._base.threads import with_few_threads
from ..devices.device import Device
from ..math.covariances import trace
from ..stimuli.base import Stimuli
from ..stimuli.regression import RegressionTask
from ..stimuli.sequences import SequenceTask
from ..systems import (
    Expansion,
    IntegratedSystem,
    ModalLinearSystem,
    System,
    lacking,
    rows_of,
)
from ..validity import ExpansionWarning, assess
from . import certified, normal
from .alternating import QuadraticInput, alternate, alternate_nonlinear
from .linear import Candidate, LinearProblem, ascend, noise_cost, problem_under_noise
from .masks import quantise_readout, solve_mask
from .nonlinear import NonlinearProblem, Refinement
from .regression import solve_regression
from .result import Projections, RegressionProjections
from .sequences import solve_sequences

#: Separability below which the linear optimum is a poor start for the non-linear problem,
#: and the relative change of κ that ends the ascent to an order-1 optimum used as a start.
_WEAKLY_SEPARABLE, _EXPANDED = 1.5, 1e-5
#: Largest η times a variance, so that its square does not overflow.
_LARGEST = 1e100
#: From this tolerance of the gap on, the ascents stop early too, at this share of it.
_COARSE, _SHARE = 1e-3, 0.3
#: Approximate number of passes over all series that an ascent takes: with an integrated
#: network, which mostly uses some of the series; at order 1; and at higher orders.
_WALKS_INTEGRATED, _WALKS_FIRST, _WALKS = 30, 120, 350
#: Number of series in the pass that is timed, and number of seconds above which orders
#: from two on are refused.
_TIMED, _NEVER = 16, 86400.0
#: Number of nodes after which the search for a proof gives up.
_MAX_NODES = 1_000_000


class SlowFitWarning(UserWarning):
    """A warning that a fit will take more than a minute."""


def foretell(
    system: Any, n_series: int, n_channels: int, n_problems: int = 1, *, stacklevel: int
) -> None:
    """Warn before an ascent of more than a minute, and refuse an order that takes a day.

    The estimate times one pass over a few series, at order 2 at most. At higher orders the
    time grows with the square of the order.
    """
    integrated = isinstance(system, IntegratedSystem)
    order = 1 if integrated else getattr(system, "order", 0)
    if not (order and n_series):
        return
    timed = system.at_order(2) if order > 2 else system
    # A copy, because `system` records the integration error that the result reports.
    timed = system.with_tol(system.tol) if integrated else timed
    X = np.random.default_rng(0).standard_normal((min(n_series, _TIMED), n_channels, 1))
    X = np.repeat(X, system.n_steps, axis=2) / 10
    u = np.full((system.n_inputs, n_channels), (system.n_inputs * n_channels) ** -0.5)
    try:
        timed.states(X[:1], u)  # fills caches, which are not timed
        start = time.perf_counter()
        timed.states(X, u)
    except FloatingPointError:  # the network diverges; the ascent reports it
        return
    each = (time.perf_counter() - start) / len(X) * max(1.0, (order / 2) ** 2)
    walks = _WALKS_INTEGRATED if integrated else _WALKS if order > 1 else _WALKS_FIRST
    seconds = each * n_series * n_problems * walks
    kind = "`Dynamics`" if integrated else f"order={order}"
    size = f"{n_series} series of {system.n_steps} steps and {system.n_inputs} neurons"
    cure = "take fewer neurons or series"
    if not integrated and order > 1:
        cure = 'order=1 or order="exact" is quicker'
        never = f"{kind} takes about {seconds / 86400:.3g} days for {size}; {cure}."
        check.require(seconds < _NEVER, never)
    if seconds > 60:
        long = f"{kind} takes about {seconds / 60:.0f} minutes for {size}; {cure}."
        warnings.warn(long, SlowFitWarning, stacklevel=stacklevel)


@overload
def optimize(
    system: System, stimuli: RegressionTask | SequenceTask, **options: Any
) -> RegressionProjections: ...


@overload
def optimize(
    system: System,
    stimuli: Stimuli,
    eta: float = ...,
    method: str | None = ...,
    **options: Any,
) -> Projections: ...


@with_few_threads(rows_of)
@watched
def optimize(  # pyright: ignore[reportInconsistentOverload]
    system: System,
    stimuli: Stimuli | RegressionTask | SequenceTask,
    eta: float = 10.0,
    method: str | None = None,
    *,
    device: Device | None = None,
    u: Any = None,
    n_starts: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> Projections | RegressionProjections:
    """Return the projections u and v that maximise the soft margin.

    Parameters
    ----------
    system : System
        The system to optimise, with its readout: an `Unfolding`, a `Dynamics`, or any other
        object with the maps of :mod:`greenfold.systems`.
    stimuli : GaussianStimuli, SampleStimuli, RegressionTask or SequenceTask
        For a `RegressionTask`, `optimize` solves for u and the readouts of all targets. For
        a `SequenceTask`, which needs `Dynamics`, it solves for u and readouts that apply at
        every step. Tasks use only the arguments ``device``, ``u``, ``n_starts``,
        ``max_iter``, ``tol`` and ``rng``.
    eta : float
        Control parameter η of the soft margin; see `choose_eta`.
    method : {"convex", "exact", "ascent", "alternating", "random"}, optional
        The search method. The default is "convex" for order 0 and "ascent" otherwise.

        - "convex" (order 0) returns the best pair found, with an upper bound on the soft
          margin of any pair. If the two meet, the pair is "certified" as the global
          optimum. To close the gap, it searches a tree of up to 200 bounds. On a normal
          network (symmetric, orthogonal, a ring, oscillators) the two always meet.
        - "exact" (order 0) is "convex" with up to a million bounds. It takes
          seconds for 20 to 100 neurons and 10 steps, and far longer for many steps. Ctrl-C
          returns the best pair and its bound so far. ``joblib.parallel_config`` spreads the
          bounds over processes.
        - "ascent" (order ≥ 1) is a quasi-Newton ascent of max_v κ(u, v) on the sphere. It
          starts from the certified linear optimum with both signs and from random vectors;
          with `Dynamics` also from the order-1 optimum, if the gain has a quadratic part.
        - "alternating" is the paper's algorithm for linear systems (order 0), or its
          Algorithm 1 (order 1), from random input projections.
        - "random" returns the best of random input projections, each with its optimal
          readout.
    device : Device, optional
        Constraints of the hardware: masks, inputs and outputs, bits, and noise. With a
        `RegressionTask`, a device may restrict only inputs and outputs.
    u : array_like (n_neurons,) or (n_neurons, n_channels), optional
        A given input projection. It is scaled to unit norm and kept; `optimize` then
        solves only for v.
    n_starts : int, optional
        Number of starts. The default is 10 for "alternating" and "random". The first two
        starts of "ascent" are the linear optimum with both signs; by default it adds four
        random starts if the stimuli are weakly separable (`separability` < 1.5), and with
        `Dynamics` the optimum of an expansion if the gain is quadratic. A `RegressionTask`
        takes 4 starts, a `SequenceTask` one.
    max_iter : int, optional
        Limit of iterations, 300 by default. For "convex" and "exact" it limits the
        evaluations of the bound of a large network, for each width of its smoothing; for
        "ascent" the evaluations per start, after the first; for "alternating" the rounds
        per start.
    tol : float, optional
        Tolerance. For "convex" and "exact" it is the relative gap at which to stop, 1e-4 by
        default; from 1e-3 on, the ascents stop early too, which halves the time. For
        "ascent" and "alternating" it is the relative gain per step or round at which to
        stop. The default is 1e-7 for "ascent", or 1e-5 with `Dynamics` and more than 2000
        series; it is 1e-6 for "alternating". A `RegressionTask` takes 1e-4, a
        `SequenceTask` 1e-6.
    rng : numpy Generator, int or None
        Source of the random starts and of the random roundings of a mask. "convex" uses it
        only for a mask.

    Returns
    -------
    Projections
        The result; `RegressionProjections` for a task. Ctrl-C returns the best result so
        far, with the status "interrupted"; before the first evaluation it raises
        KeyboardInterrupt. `greenfold.progress` shows κ and the gap to its bound during the
        search.

    Warns
    -----
    ExpansionWarning
        If the perturbation expansion of a non-linear network is not trustworthy at the
        result; see `Projections.validity`.
    SlowFitWarning
        Before an ascent that takes more than a minute on series in memory. If an order of
        two or more would take a day, `optimize` raises a ValueError instead.

    Examples
    --------
    >>> from greenfold import GaussianStimuli, Reservoir, optimize, unfold
    >>> reservoir = Reservoir.random(50, rng=3)
    >>> stimuli = GaussianStimuli.random(10, strength=1.0, rng=4)
    >>> best = optimize(unfold(reservoir, n_steps=10, dt=1.0), stimuli)
    >>> best.status
    'certified'
    """
    started = time.perf_counter()
    if not isinstance(system, System):
        wanted = "have the maps of greenfold.systems.System, like the result of `unfold`"
        lacks = f"{type(system).__name__}, which lacks {', '.join(lacking(system))}"
        check.must(False, "system", wanted, lacks, TypeError)
    given, kind = isinstance(device, Device | None), type(device).__name__
    check.must(given, "device", "be a Device", kind, TypeError)
    tasks = Stimuli | RegressionTask | SequenceTask
    known, kind = isinstance(stimuli, tasks), type(stimuli).__name__
    wanted = "be GaussianStimuli, SampleStimuli or another subclass of Stimuli"
    check.must(known, "stimuli", wanted, kind, TypeError)
    device = Device() if device is None else device
    whole, part = system, device.part_of(system)
    system = whole if part is None else part
    stimuli.match(system)
    if u is not None:
        u = u if part is None else part.own_input(u, stimuli.n_channels)
        u = check.input_projection(u, system.n_inputs, stimuli.n_channels)
        check.require(u.any(), "`u` is zero; pass a non-zero input projection.")
        u = u / np.abs(u).max()  # so that its square does not overflow
        u = u / np.linalg.norm(u)
    n_starts = None if n_starts is None else check.count(n_starts, "n_starts")
    max_iter = check.count(300 if max_iter is None else max_iter, "max_iter")
    tol = None if tol is None else check.positive(tol, "tol")
    search: dict[str, Any] = {"n_starts": n_starts, "max_iter": max_iter, "tol": tol}
    if isinstance(stimuli, RegressionTask | SequenceTask):
        device.refuse_for_task()
        search["rng"] = check.generator(rng)
        if isinstance(stimuli, SequenceTask):
            return solve_sequences(system, stimuli, u=u, **search)
        found = solve_regression(system, stimuli, u=u, **search)
        if part is None:
            return found
        return replace(found, u=part.whole_input(found.u), V=part.whole_readout(found.V))
    eta = check.positive(eta, "eta")
    size = eta * trace(stimuli.psi)
    why = "which is too large for floats; scale the stimuli to about one, or lower `eta`"
    problem = f"η times the variance of `stimuli` is {size:.1g}, {why}."
    check.require(size <= _LARGEST, problem, OverflowError)
    read = None if part is None else part.outputs
    noise = device.noise(len(stimuli.mu), whole.n_outputs, read)
    device.match(system.n_inputs * stimuli.n_channels)
    if not system.is_linear:
        device.refuse_beyond_linear()
    free = device.kind is None or (u is None and method in (None, "convex", "exact"))
    problem = f"`{'method' if u is None else 'u'}` cannot be combined with a mask"
    why = "which is found from the certified optimum; leave one of them out"
    check.require(free, f"{problem}, {why}.")
    methods = LINEAR if system.is_linear else NONLINEAR
    method = next(iter(methods)) if method is None else method
    linear = "linear" if system.is_linear else "non-linear"
    wanted = f"be one of {', '.join(methods)} for a {linear} system"
    check.must(method in methods, "method", wanted, repr(method))
    search["rng"] = check.generator(rng, beside=method == "random")
    run = Run(system, stimuli, eta, device, noise, started, **search)
    made = run.given(u) if u is not None else methods[method](run)
    if part is None:
        return made
    return replace(made, u=part.whole_input(made.u), v=part.whole_readout(made.v))


@dataclass(frozen=True)
class Run:
    """One call of `optimize` with checked arguments; each method is a function."""

    system: System
    stimuli: Stimuli
    eta: float
    device: Device
    noise: dict[str, np.ndarray]
    started: float
    n_starts: int | None
    max_iter: int
    tol: float | None
    rng: np.random.Generator

    @cached_property
    def linear(self) -> LinearProblem:
        """The linear problem; for a non-linear system, the limit of weak stimuli."""
        return problem_under_noise(self.system.maps, self.stimuli, self.eta, self.noise)

    @cached_property
    def problem(self) -> LinearProblem | NonlinearProblem:
        """The problem of the system itself."""
        if self.system.is_linear:
            return self.linear
        problem = NonlinearProblem(self.system, self.stimuli, self.eta)
        problem.moments_at  # noqa: B018 - raises early if it is not supported
        return problem

    def starts(self, n_starts: int | None) -> Iterator[np.ndarray]:
        """Yield random unit input projections, 10 if ``n_starts`` is None."""
        for _ in range(10 if n_starts is None else n_starts):
            u = self.rng.standard_normal((self.system.n_inputs, self.stimuli.n_channels))
            yield u / np.linalg.norm(u)

    def solve_readout(self, u: np.ndarray, status: str = "solved") -> Candidate:
        """Return u with its best readout."""
        if isinstance(self.problem, NonlinearProblem):
            self.problem.settle(u)
        return Candidate(u, *self.problem.best_readout(u), status)

    def given(self, u: np.ndarray) -> Projections:
        """Keep the given input projection, and solve for its readout."""
        return self.finish([self.solve_readout(u)], "given", 1)

    def random(self) -> Projections:
        """Return the best of random input projections, each with its best readout."""
        found = _collect(self.starts(self.n_starts), self.solve_readout)
        return self.finish(found, "random", 1)

    def alternating(self) -> Projections:
        """Optimise u and v in turn, as in the paper."""
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol or 1e-6}
        if isinstance(self.problem, LinearProblem):
            solve = partial(alternate, self.problem, **limits)
        else:
            solve = partial(alternate_nonlinear, QuadraticInput(self.problem), **limits)
        return self.finish(_collect(self.starts(self.n_starts), solve), "alternating")

    def convex(self, method: str = "convex", **limits: Any) -> Projections:
        """Return the best pair of a linear system, with its upper bound."""
        problem, tol, solved = self.linear, self.tol or 1e-4, None
        if isinstance(problem.system, ModalLinearSystem) and problem.system.modes():
            solved = normal.solve(problem, tol=tol)
        if solved is None:
            given: dict[str, Any] = {"max_iter": self.max_iter, "tol": tol, **limits}
            if tol >= _COARSE:
                given["ascent_tol"] = _SHARE * tol
            solved = *certified.solve(problem, **given), problem.growth
        found, n_iter, growth = solved
        if self.device.kind is not None and found.status != "interrupted":
            found = solve_mask(problem, self.device, found, self.rng)
        return replace(self.finish([found], method, n_iter), growth=growth)

    def exact(self) -> Projections:
        """Run `convex` until the gap is closed."""
        return self.convex("exact", max_nodes=_MAX_NODES)

    def ascent(self) -> Projections:
        """Ascend from the linear optimum, its negative, and random projections."""
        chunks: Any = getattr(self.stimuli, "_chunks", None)
        if chunks is not None and chunks.in_memory and not is_part():
            size = self.stimuli.n_series, self.stimuli.n_channels
            if isinstance(chunks.series[0], np.ndarray):
                foretell(self.system, *size, stacklevel=6)
        if not isinstance(self.system, IntegratedSystem):
            return self.finish(self.ascended(), "ascent")
        linear = self.linear_start()
        if linear.status == "interrupted":
            return self.finish([linear], "ascent")
        expanded, n_starts = self.system.quadratic, self.n_starts
        if n_starts is None:
            n_starts = 2 + (expanded is not None) + self.n_random

        def starts() -> Iterator[np.ndarray]:
            yield linear.u
            yield -linear.u
            if expanded is not None:
                # This ascent must converge: the result must not be below κ of its u with a
                # new readout.
                run = replace(self, system=expanded, n_starts=None, tol=_EXPANDED)
                ends = run.ascended()
                for end in ends:
                    end.raise_if_interrupted()
                yield max(ends, key=lambda end: end.margin.value).u
            yield from self.starts(n_starts)

        assert isinstance(self.problem, NonlinearProblem)
        refinement = Refinement(self.problem, self.system, self.max_iter, self.tol)
        found, margins = refinement.run(islice(starts(), n_starts), n_starts)
        return self.finish([found], "ascent", refinement.n_evaluations, margins)

    def linear_start(self) -> Candidate:
        """Return the linear optimum as a start; after Ctrl-C, with κ of the system."""
        linear, _ = certified.solve(self.linear, max_iter=self.max_iter, tol=1e-3)
        if linear.status == "interrupted":
            return self.solve_readout(linear.u, "interrupted")
        return linear

    @property
    def n_random(self) -> int:
        """Default number of random starts, besides the optima of simpler problems."""
        return 0 if self.stimuli.separability >= _WEAKLY_SEPARABLE else 4

    def ascended(self) -> list[Candidate]:
        """Return the ends of the ascents, one per start."""
        n_starts = 2 + self.n_random if self.n_starts is None else self.n_starts
        problem = self.problem
        linear = self.linear_start()
        if linear.status == "interrupted":
            return [linear]
        # The sign of a linear optimum is arbitrary; start with the better sign.
        both = [self.solve_readout(u).margin.value for u in (linear.u, -linear.u)]
        u = linear.u if both[0] >= both[1] else -linear.u
        starts = [u, -u, *self.starts(max(0, n_starts - 2))][:n_starts]
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol or 1e-7}
        return _collect(starts, lambda u: ascend(problem, u, **limits))

    def finish(
        self,
        candidates: list[Candidate],
        method: str,
        n_iter: int | None = None,
        starts: list[float] | None = None,
    ) -> Projections:
        """Choose the best candidate and describe it."""
        best = max(candidates, key=lambda candidate: candidate.margin.value)
        interrupted = any(candidate.status == "interrupted" for candidate in candidates)
        device = self.device
        if device.bits is not None and not interrupted:
            keep = device.kind is not None or method in ("given", "random")
            best = quantise_readout(self.linear, best, device.bits, keep_u=keep)
        value, separation, variance = best.margin
        history = best.history or [(separation, variance)]
        found = Projections(
            u=best.u[:, 0] if best.u.shape[1] == 1 else best.u,
            v=best.v,
            soft_margin=value,
            separation=separation,
            variance=variance,
            eta=self.eta,
            upper_bound=best.upper_bound,
            method=method,
            status="interrupted" if interrupted else best.status,
            n_iter=len(history) - 1 if n_iter is None else n_iter,
            history=np.array(history),
            starts=np.array(starts or [one.margin.value for one in candidates]),
            wall_time=time.perf_counter() - self.started,
            mask=device.kind,
            noise_cost=noise_cost(self.linear, best.u, best.v, self.noise) or None,
        )
        if interrupted or self.system.is_linear:
            return found
        try:
            if isinstance(self.system, Expansion):
                found = self.judge(self.system, found)
            else:
                found = self.measure(found, best.u)
        except KeyboardInterrupt:
            return replace(found, status="interrupted")
        return replace(found, wall_time=time.perf_counter() - self.started)

    def measure(self, found: Projections, u: np.ndarray) -> Projections:
        """Add κ on fresh stimuli and the integration error to the result, if they exist."""
        if isinstance(self.system, IntegratedSystem):
            assert isinstance(self.problem, NonlinearProblem)
            self.problem.settle(u)
            found = replace(found, step_error=self.system.step_error.error)
        fresh = self.stimuli.fresh_margin(self.system, u, found.v, self.eta)
        if fresh is None:
            return found
        return replace(found, fresh_margin=fresh[0], fresh_error=fresh[1])

    def judge(self, expansion: Expansion, found: Projections) -> Projections:
        """Add the validity of the expansion; warn if it is not trustworthy."""
        known: dict[str, Any] = {"eta": self.eta, "soft_margin": found.soft_margin}
        validity = assess(expansion, self.stimuli, found.u, found.v, **known)
        if not validity.trustworthy:
            advice = "lower eta or raise the order"
            if validity.scale < 1:
                advice = expansion.reservoir.gain.advice(validity.scale)
            verdict = " ".join(str(validity).split())
            problem = (
                f"{verdict}; {advice}, or optimise on the simulated network "
                '(`Dynamics`; in a classifier, order="exact").'
            )
            warnings.warn(problem, ExpansionWarning, stacklevel=7)
        return replace(found, validity=validity)


#: The methods by name; the first one is the default.
_BOTH = {"alternating": Run.alternating, "random": Run.random}
LINEAR: dict[str, Callable[[Run], Projections]] = {
    "convex": Run.convex,
    "exact": Run.exact,
    **_BOTH,
}
NONLINEAR: dict[str, Callable[[Run], Projections]] = {"ascent": Run.ascent, **_BOTH}


def _collect(
    starts: Iterable[np.ndarray], solve: Callable[[np.ndarray], Candidate]
) -> list[Candidate]:
    """Return one candidate per start, until Ctrl-C; skip starts that diverge."""
    found: list[Candidate] = []
    refused = None
    try:
        for u in starts:
            try:
                found.append(solve(u))
            except FloatingPointError as error:
                refused = error
                continue
            if found[-1].status == "interrupted":
                break
    except KeyboardInterrupt:
        if not found:
            raise
        found[-1] = replace(found[-1], status="interrupted")
    if refused is not None and not found:
        raise refused
    return found
