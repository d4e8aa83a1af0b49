"""`optimize`: one entry point to every method."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, overload

import numpy as np

from .. import _validation as check
from ..stimuli import RegressionTask, Stimuli
from ..systems import Expansion, IntegratedSystem, System, lacking
from ..validity import ExpansionWarning, assess
from . import convex
from .alternating import alternate
from .alternating_nonlinear import PaperSystem, QuadraticInput, alternate_nonlinear
from .ascent import ascend
from .device_noise import DeviceNoise, read_noise
from .linear import LinearProblem
from .masks import Mask, read_mask, solve_mask
from .nonlinear import NonlinearProblem
from .quantised import quantise_readout
from .refinement import Refinement
from .regression import RegressionProjections, optimize_task
from .restricted import on_subset, restrict
from .result import Candidate, Projections

#: Below this separability the linear optimum is a poor start for the non-linear problem,
#: and random ones are added.
_WEAKLY_SEPARABLE = 1.5
#: Evaluations of the order-1 optimum that is only a start.
_EXPANDED = 30


@overload
def optimize(
    system: System, stimuli: RegressionTask, **options: Any
) -> RegressionProjections: ...


@overload
def optimize(
    system: System,
    stimuli: Stimuli,
    eta: float = ...,
    method: str | None = ...,
    **options: Any,
) -> Projections: ...


def optimize(  # pyright: ignore[reportInconsistentOverload]
    system: System,
    stimuli: Stimuli | RegressionTask,
    eta: float = 10.0,
    method: str | None = None,
    *,
    u: Any = None,
    n_starts: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    mask: str | None = None,
    levels: Any = None,
    box: Any = None,
    inputs: Any = None,
    outputs: Any = None,
    bits: int | None = None,
    input_noise: Any = None,
    state_noise: Any = None,
    readout_noise: Any = None,
    rng: np.random.Generator | int | None = None,
) -> Projections | RegressionProjections:
    """Find the projections u and v that maximise the soft margin.

    Parameters
    ----------
    system : System
        What is to be optimised, with its readout: an `Unfolding`, or anything else with
        the maps of :mod:`greenfold.systems`.
    stimuli : GaussianStimuli, SampleStimuli or RegressionTask
        Of a `RegressionTask` u and the readouts of all targets are solved; of the other
        arguments it takes ``u``, ``n_starts``, ``max_iter``, ``tol`` and ``rng``.
    eta : float
        Control parameter η of the soft margin; see `choose_eta`.
    method : {"convex", "ascent", "alternating", "random"}, optional
        "convex" (order 0, its default): the best pair found, with an upper bound on what
        any pair could reach; "certified" as the global optimum where the two meet.
        "ascent" (order ≥ 1, its default): quasi-Newton ascent of max_v κ(u, v) on the
        sphere, from the certified linear optimum with both signs and from random vectors.
        Through `Dynamics`, from the order-1 optimum too where the gain has a square, and
        roughly first: with some series, long sub-steps and single precision.
        "alternating": the paper's algorithm, linear (order 0) or as its Algorithm 1
        (order 1), from random input projections.
        "random": random input projections with the optimal readout each, the state of
        the art to compare with; the best is returned, all are in `starts`.
    u : array_like (n_neurons,) or (n_neurons, n_channels), optional
        Keep this input projection, scaled to unit norm, and solve for v only.
    n_starts : int, optional
        Number of starts; 10 for "alternating" and "random" by default. For "ascent" the
        first two are the linear optimum with both signs, and by default there are no
        others for separable stimuli (`separability` ≥ 1.5), four more otherwise (and
        the order-1 optimum before these, through `Dynamics`).
    max_iter : int, optional
        Largest number of iterations, 300 by default: singular value decompositions
        ("convex"), evaluations per start, after its first ("ascent"), rounds per start
        ("alternating").
    tol : float, optional
        Relative gap to stop at ("convex", default 1e-4), or relative gain per step or
        round that counts as saturation ("ascent" 1e-7, or 1e-5 for more than 2000 series
        through `Dynamics`; "alternating" 1e-6).
    mask : {"sign", "nonnegative"}, optional
        What a device can have as u: entries ±1, or none below zero (linear systems). The
        upper bound stays that of all unit vectors, and `Projections.share` says how much
        of it the mask reaches.
    levels : int or array_like, optional
        A mask of so many levels, symmetric, whose sizes are solved too; or of given
        values, up to a common factor.
    box : (float, float), optional
        A mask with entries of the unit vector u in this range.
    inputs, outputs : array_like of int or bool, optional
        Inputs that can be driven and outputs that can be read. The problem is solved on
        them, with its own bound; u and v are zero elsewhere.
    bits : int, optional
        Bits of the readout's weights, sign included (linear systems).
    input_noise, state_noise, readout_noise : float or array_like, optional
        Noise of the device, each as one standard deviation, one for each entry, or a
        covariance (linear systems): on the stimuli (n_channels · n_steps values), on the
        states at the readout (of noise inside a network, `noise.state_covariance`), and
        on the outputs as they are read. κ and its bound are those under the noise;
        `Projections.noise_cost` says what each costs.
    rng : numpy Generator, int or None
        Source of the random starts, and of roundings of a mask. "convex" uses none.

    Returns
    -------
    Projections
        Or `RegressionProjections` of a task.

    Warns
    -----
    ExpansionWarning
        Where the perturbation expansion of a non-linear network is not trustworthy at
        the result; see `Projections.validity`.

    Notes
    -----
    Ctrl-C returns the best projections found so far with the status "interrupted"; before
    the first evaluation there are none, and KeyboardInterrupt is raised.

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
        raise TypeError(
            "`system` must have the maps of greenfold.systems.System, as what `unfold` "
            f"returns has; {type(system).__name__} lacks {', '.join(lacking(system))}."
        )
    if isinstance(stimuli, RegressionTask):
        return optimize_task(system, stimuli, u, n_starts, max_iter, tol, rng)
    if not isinstance(stimuli, Stimuli):
        raise TypeError(
            "`stimuli` must be GaussianStimuli or SampleStimuli, or of another subclass of "
            f"greenfold.stimuli.Stimuli; got {type(stimuli).__name__}."
        )
    stimuli.match(system)
    whole, part = system, restrict(system, inputs, outputs)
    if part is not None:
        system = part
        if u is not None:
            u = on_subset(u, part, whole.n_inputs, stimuli.n_channels)
    eta = check.positive(eta, "eta")
    noise = read_noise(input_noise, state_noise, readout_noise, stimuli, whole, part)
    if noise is not None and not system.is_linear:
        raise ValueError(
            "`state_noise`, `input_noise` and `readout_noise` are solved on linear systems "
            "only; solve the linear order, or draw noisy series."
        )
    wanted = read_mask(mask, levels, box, system.n_inputs * stimuli.n_channels)
    bits = None if bits is None else check.count(bits, "bits")
    if (wanted is not None or bits is not None) and not system.is_linear:
        raise ValueError(
            f"`{'bits' if wanted is None else 'mask'}` is solved on linear systems only; "
            "solve the linear order, and give its `u` to this one."
        )
    if wanted is not None and (u is not None or method not in (None, "convex")):
        raise ValueError(
            f"`{'method' if u is None else 'u'}` does not go with a mask, which is solved "
            "from the certified optimum; leave one of them out."
        )
    methods = _LINEAR if system.is_linear else _NONLINEAR
    method = next(iter(methods)) if method is None else method
    if method not in methods:
        raise ValueError(
            f"`method` must be one of {', '.join(methods)} for a "
            f"{'linear' if system.is_linear else 'non-linear'} system; got {method!r}."
        )
    if n_starts is not None:
        check.count(n_starts, "n_starts")
    max_iter = check.count(300 if max_iter is None else max_iter, "max_iter")
    tol = None if tol is None else check.positive(tol, "tol")
    run = _Run(
        system,
        stimuli,
        eta,
        started,
        n_starts,
        max_iter,
        tol,
        check.generator(rng),
        wanted,
        bits,
        noise,
    )
    made = run.given(u) if u is not None else methods[method](run)
    if part is None:
        return made
    return replace(made, u=part.whole_input(made.u), v=part.whole_readout(made.v))


@dataclass(frozen=True)
class _Run:
    """One call of `optimize`, its arguments checked."""

    system: System
    stimuli: Stimuli
    eta: float
    started: float
    n_starts: int | None
    max_iter: int
    tol: float | None
    rng: np.random.Generator
    mask: Mask | None = None
    bits: int | None = None
    noise: DeviceNoise | None = None

    @cached_property
    def linear(self) -> LinearProblem:
        if self.noise is not None:
            return self.noise.problem(self.system.maps, self.stimuli, self.eta)
        return LinearProblem(self.system.maps, self.stimuli, self.eta)

    @cached_property
    def problem(self) -> LinearProblem | NonlinearProblem:
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
        projection = check.input_projection(
            u, self.system.n_inputs, self.stimuli.n_channels
        )
        if not projection.any():
            raise ValueError("`u` is zero; give a direction.")
        projection = projection / np.abs(projection).max()  # its square stays in range
        unit = projection / np.linalg.norm(projection)
        return self.finish([_solve_readout(self.problem, unit)], "given", 1)

    def random(self) -> Projections:
        starts = self.starts(self.n_starts or 10)
        return self.finish(
            _collect(_each(starts, lambda u: _solve_readout(self.problem, u))), "random", 1
        )

    def alternating(self) -> Projections:
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
        found, n_svd = convex.solve(
            self.linear, max_iter=self.max_iter, tol=self.tol or 1e-4
        )
        interrupted = found.status == "interrupted"
        if self.mask is not None and not interrupted:
            found = solve_mask(self.linear, self.mask, found, self.rng)
        made = self.finish([found], "convex", n_svd)
        return replace(made, growth=self.linear.growth)

    def ascent(self) -> Projections:
        if isinstance(self.system, IntegratedSystem):
            return self.refined(self.system)
        n_starts = self.n_starts
        if n_starts is None:
            n_starts = 2 if self.stimuli.separability >= _WEAKLY_SEPARABLE else 6
        problem, tol = self.problem, self.tol or 1e-7
        linear, _ = convex.solve(self.linear, max_iter=self.max_iter, tol=1e-3)
        if linear.status == "interrupted":
            found = replace(_solve_readout(problem, linear.u), status="interrupted")
            return self.finish([found], "ascent", None)
        starts = [linear.u, -linear.u, *self.starts(max(0, n_starts - 2))][:n_starts]
        runs = _each(starts, lambda u: ascend(problem, u, max_iter=self.max_iter, tol=tol))
        return self.finish(_collect(runs), "ascent", None)

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
                problem = NonlinearProblem(expanded, self.stimuli, self.eta)
                sides = (linear.u, -linear.u)
                found = max(
                    (ascend(problem, u, max_iter=_EXPANDED, tol=1e-3) for u in sides),
                    key=lambda candidate: candidate.margin.value,
                )
                found.raise_if_interrupted()
                yield found.u
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
        if self.bits is not None and not interrupted:
            keep = self.mask is not None or method in ("given", "random")
            best = quantise_readout(self.linear, best, self.bits, keep_u=keep)
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
            mask=None if self.mask is None else self.mask.name,
            noise_cost=None
            if self.noise is None
            else self.noise.cost(self.system.maps, best.u, best.v, self.eta),
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
            warnings.warn(
                f"{validity}; {advice}, or solve the network itself: `Dynamics`, or "
                'order="exact" of a classifier.',
                ExpansionWarning,
                stacklevel=5,
            )
        return replace(
            found, validity=validity, wall_time=time.perf_counter() - self.started
        )


#: Methods by name, the default first.
_LINEAR: dict[str, Callable[[_Run], Projections]] = {
    "convex": _Run.convex,
    "alternating": _Run.alternating,
    "random": _Run.random,
}
_NONLINEAR: dict[str, Callable[[_Run], Projections]] = {
    "ascent": _Run.ascent,
    "alternating": _Run.alternating,
    "random": _Run.random,
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
