"""What a method of `optimize` is, and the problem that it gets.

A method is a small frozen dataclass: its fields are its settings, and `Method.solve` turns
a `Run`, one checked call of `optimize`, into `Projections`. `RandomDraws` is
the shortest. To add a method, derive a class from `Method` in a file of its own.
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from .._base import checks as check
from .._base.messages import ArgumentError
from .._base.threads import few_threads
from ..devices.device import Device
from ..devices.masks import Mask
from ..dynamics.integration import Dynamics
from ..stimuli.base import Stimuli
from ..stimuli.regression import RegressionTask
from ..systems import System
from ..unfolding.unfolding import Unfolding
from ..validity import ExpansionWarning, assess
from .linear import Candidate, LinearProblem, noise_cost, problem_under_noise
from .nonlinear import NonlinearProblem
from .readout_bits import with_few_bits
from .result import Projections, RegressionProjections, proven

#: Rounding of a norm of 1.
_UNIT = 1e-6

#: Number of random input projections, if a method does not say otherwise.
N_DRAWN = 10
#: Numbers of random input projections that a printed result is compared with, with few
#: outputs and with more; few outputs, and the largest number of numbers per series.
_BESIDE, _BESIDE_MANY, _FEW_OUTPUTS, _SHORT = 15, 3, 500, 5000

#: Methods by name.
METHODS: dict[str, type[Method]] = {}


class Method(ABC):
    """How `optimize` searches for u and v; the fields are the settings of the method."""

    #: Name by which `optimize` finds the method with default settings.
    name: ClassVar[str] = ""
    #: Systems that the method solves.
    takes_linear: ClassVar[bool] = True
    takes_nonlinear: ClassVar[bool] = True
    #: Whether the method can start the search for a mask; see `Device`.
    takes_masks: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "") -> None:
        super().__init_subclass__()
        if name:
            check.free_name(METHODS, name, cls)
            cls.name = name
            METHODS[name] = cls

    @abstractmethod
    def solve(self, run: Run) -> Projections:
        """Return the best pair for two classes; end with `Run.finish`."""

    def draws(self, run: Run) -> bool:
        """Return whether the method uses the random numbers of a run."""
        del run
        return True

    def regress(
        self, system: System, task: RegressionTask, rng: np.random.Generator
    ) -> RegressionProjections:
        """Return the best u and V of a regression."""
        del task, rng
        names = names_of_methods(
            system.is_linear, lambda one: one.regress is not Method.regress
        )
        wanted = f"be {' or '.join(names)} for a RegressionTask on this system"
        raise ArgumentError("method", wanted, repr(self))

    @classmethod
    def of(cls, method: Method | str, *, linear: bool) -> Method:
        """Return a method, given as an object or by name, for (non-)linear systems."""
        kind, names = "linear" if linear else "non-linear", names_of_methods(linear)
        wanted = f"be one of {', '.join(names)}, or such an object, for a {kind} system"
        if isinstance(method, str):
            check.must(method in names, "method", wanted, repr(method))
            return METHODS[method]()
        check.instance(method, Method, "method", wanted)
        fits = method.takes_linear if linear else method.takes_nonlinear
        check.must(fits, "method", wanted, repr(method))
        return method


def names_of_methods(
    linear: bool, fits: Callable[[type[Method]], bool] = lambda _: True
) -> list[str]:
    """Return the names of the methods for (non-)linear systems that fit."""
    return [
        name
        for name, one in sorted(METHODS.items())
        if (one.takes_linear if linear else one.takes_nonlinear) and fits(one)
    ]


def random_projections(
    shape: tuple[int, int], rng: np.random.Generator, count: int, mask: Mask | None = None
) -> Iterator[np.ndarray]:
    """Yield random unit u (n_inputs, n_channels), or masks."""
    for _ in range(count):
        drawn = rng.standard_normal(shape) if mask is None else mask.draw(shape, rng)
        yield drawn / np.linalg.norm(drawn)


@dataclass(frozen=True)
class Run:
    """One call of `optimize` for two classes, with checked arguments."""

    system: System
    stimuli: Stimuli
    eta: float
    device: Device
    noise: dict[str, np.ndarray]
    rng: np.random.Generator
    started: float

    @cached_property
    def linear(self) -> LinearProblem:
        """The linear problem; for a non-linear system, the limit of weak stimuli."""
        maps, series = self.system.maps, self.stimuli.gpu_series
        maps = maps if series is None else maps.beside(series)
        return problem_under_noise(maps, self.stimuli, self.eta, self.noise)

    @cached_property
    def problem(self) -> LinearProblem | NonlinearProblem:
        """The problem of the system itself."""
        if self.system.is_linear:
            return self.linear
        problem = NonlinearProblem(self.system, self.stimuli, self.eta)
        problem.moments_at  # noqa: B018 - raises early if it is not supported
        return problem

    def starts(self, n_starts: int) -> Iterator[np.ndarray]:
        """Yield random unit input projections (n_inputs, n_channels)."""
        shape = self.system.n_inputs, self.stimuli.n_channels
        return random_projections(shape, self.rng, n_starts)

    def solve_readout(self, u: np.ndarray, status: str = "solved") -> Candidate:
        """Return u with its best readout."""
        if isinstance(self.problem, NonlinearProblem):
            self.problem.settle(u)
        return Candidate(u, *self.problem.best_readout(u), status)

    def given(self, u: np.ndarray) -> Projections:
        """Keep the given input projection, and solve for its readout."""
        return self.finish([self.solve_readout(u)], "given", n_iter=1, keep_u=True)

    def finish(
        self,
        candidates: list[Candidate],
        method: str,
        *,
        n_iter: int | None = None,
        starts: list[float] | None = None,
        keep_u: bool = False,
    ) -> Projections:
        """Choose the best candidate and describe it.

        With few bits per weight of the readout, u is solved again for the readout that the
        device can hold, unless ``keep_u`` is set. ``starts`` holds κ at the end of each
        start, if that is not κ of the candidates.
        """
        wanted = "hold the projections that were found"
        check.must(candidates, "candidates", wanted, "none")
        best = max(candidates, key=lambda candidate: candidate.margin.value)
        size = max(float(np.linalg.norm(one)) for one in (best.u, best.v))
        wanted = "hold u and v of norm 1 at most"
        check.must(size <= 1 + _UNIT, "candidates", wanted, f"a norm of {size:.6g}")
        interrupted = any(candidate.status == "interrupted" for candidate in candidates)
        device = self.device
        if device.bits is not None:
            given = self.linear, best, device.bits, device.mask
            try:
                best = with_few_bits(*given, keep_u=keep_u or interrupted)
            except KeyboardInterrupt:
                best, interrupted = with_few_bits(*given, keep_u=True), True
        value, separation, variance = best.margin
        history = best.history or [(separation, variance)]
        bound = best.upper_bound
        found = Projections(
            u=best.u[:, 0] if best.u.shape[1] == 1 else best.u,
            v=best.v,
            soft_margin=value,
            separation=separation,
            variance=variance,
            eta=self.eta,
            upper_bound=bound,
            method=method,
            status="interrupted" if interrupted else proven(best.status, bound, value),
            n_iter=len(history) - 1 if n_iter is None else n_iter,
            history=np.array(history),
            starts=np.array(starts or [one.margin.value for one in candidates]),
            wall_time=time.perf_counter() - self.started,
            mask=None if device.mask is None else device.mask.kind,
            noise_cost=noise_cost(self.linear, best.u, best.v, self.noise) or None,
        )
        if interrupted or self.system.is_linear:
            return found
        try:
            if isinstance(self.system, Unfolding):
                found = self._judge(self.system, found)
            else:
                found = self._measure(found, best.u)
        except KeyboardInterrupt:
            return replace(found, status="interrupted")
        return replace(found, wall_time=time.perf_counter() - self.started)

    def _measure(self, found: Projections, u: np.ndarray) -> Projections:
        """Add κ on fresh stimuli and the integration error to the result, if they exist."""
        if isinstance(self.system, Dynamics):
            assert isinstance(self.problem, NonlinearProblem)
            self.problem.settle(u)
            assert self.system.step_error is not None
            found = replace(found, step_error=self.system.step_error.error)
        fresh = self.stimuli.fresh_margin(self.system, u, found.v, self.eta)
        if fresh is None:
            return found
        return replace(found, fresh_margin=fresh[0], fresh_error=fresh[1])

    def _judge(self, expansion: Unfolding, found: Projections) -> Projections:
        """Add the validity of the expansion; warn if it is not trustworthy."""
        validity = assess(
            expansion,
            self.stimuli,
            found.u,
            found.v,
            eta=self.eta,
            soft_margin=found.soft_margin,
        )
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


@dataclass(frozen=True)
class RandomDraws(Method, name="random"):
    """The best of random input projections, each with its optimal readout.

    Parameters
    ----------
    n : int
        Number of random projections.
    """

    n: int = N_DRAWN

    def __post_init__(self) -> None:
        check.count(self.n, "n")

    def solve(self, run: Run) -> Projections:
        """Return the best pair."""
        found = collect(run.starts(self.n), run.solve_readout)
        return run.finish(found, self.name, n_iter=1, keep_u=True)


def random_margins(run: Run, n: int) -> np.ndarray:
    """Return κ of ``n`` random u or masks, each with its best readout."""
    device, shape = run.device, (run.system.n_inputs, run.stimuli.n_channels)
    rng, found = check.generator(0, beside=True), list[float]()
    with few_threads(run.system.n_outputs):
        for _ in range(n):
            u = rng.standard_normal(shape)
            u = u if device.mask is None else device.mask.draw(shape, rng)
            one = run.solve_readout(u / np.linalg.norm(u))
            if device.bits is not None:
                given = run.linear, one, device.bits, device.mask
                one = with_few_bits(*given, keep_u=True)
            found.append(one.margin.value)
    return np.array(found)


def n_beside(system: System, size: int) -> int:
    """Return how many random u to print beside a result; they take far less than a solve.

    One took 0.2 s for 20,000 neurons with 400,000 connections.
    """
    if not system.is_linear or size > _SHORT:
        return 0
    return _BESIDE if system.n_outputs <= _FEW_OUTPUTS else _BESIDE_MANY


def collect(
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
