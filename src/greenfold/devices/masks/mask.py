"""What a kind of mask is: a restriction of u, and all that follows from it.

Masks are unit vectors, so the upper bound of the free problem holds for them too. To add a
kind, derive a frozen dataclass from `Mask` in a file of its own. Constraints tighten the
bound: they are restrictions of uuᵀ that every such mask meets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..._base import checks as check
from ..._base.messages import ArgumentError
from ...math.class_moments import Symmetric
from ...math.margins import SoftMargin

#: Relative distance to the bound at which to stop.
_REACHED = 1e-7
#: Limit of evaluations of one ascent, share of the slope that a step must gain over the
#: smallest of the last few κ (spectral steps need not rise every time), number of these κ,
#: and relative gain at which to stop.
_EVALUATIONS, _SUFFICIENT, _REMEMBERED, _TOL = 400, 1e-4, 8, 1e-9


class MaskProblem(Protocol):
    """A function F(u) = max_v κ(u, v) that can be maximised over masks."""

    @property
    def eta(self) -> float:
        """The weight η of the variance."""
        ...

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Return the best v for u (n_inputs, n_channels), and κ."""
        ...

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return κ of several u (n, n_inputs, n_channels), to about six digits."""
        ...

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the best v, κ, and ∂κ/∂u at that v."""
        ...

    def input_terms(self, v: np.ndarray) -> tuple[np.ndarray, Symmetric]:
        """Return b and Q of κ = b·u − (η/2) uᵀQu at one v, for flat u."""
        ...


class Masked(NamedTuple):
    """A mask u (n_inputs, n_channels) with its best readout, and how the search ended."""

    u: np.ndarray
    v: np.ndarray
    margin: SoftMargin
    status: str

    @property
    def value(self) -> float:
        """κ of the mask."""
        return self.margin.value

    def beats(self, other: Masked, gain: float = 1e-12) -> bool:
        """Return whether κ is larger by more than rounding."""
        return self.value - other.value > gain * abs(other.value)


class Constraint(Protocol):
    """A restriction of input projections, as R(z) and its price ρ(z), both linear in z.

    For every allowed z and every u of the kind, uᵀR(z)u ≥ −ρ(z).
    """

    n_variables: int
    #: Whether z must be non-negative.
    is_signed: bool

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Add R to a matrix in place, and return its price ρ."""
        ...

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the gradient of λ_max + ρ by z, from vectors V (n, k) and their shares."""
        ...


class Bound(Protocol):
    """An upper bound on κ under constraints.

    The relaxed uuᵀ of the bound is a mixture of ``directions`` (n_inputs, n_channels, k)
    with their ``shares``, largest first.
    """

    lowest: float
    directions: np.ndarray
    shares: np.ndarray


#: A function that lowers the bound under constraints.
Bounded: TypeAlias = Callable[[Sequence[Constraint]], Bound]


class Mask(ABC):
    """A restriction of u that hardware imposes; the fields are its parameters."""

    #: Name of the kind in text, and how to write its parameters behind it, if it has any.
    name: ClassVar[str] = ""
    usage: ClassVar[str] = ""
    _named: ClassVar[dict[str, type[Mask]]] = {}

    def __init_subclass__(cls, name: str = "", usage: str = "") -> None:
        super().__init_subclass__()
        if name:
            check.free_name(Mask._named, name, cls)
            cls.name, cls.usage = name, usage and f"'{name}={usage}'"
            Mask._named[name] = cls

    @staticmethod
    def of(mask: Mask | str) -> Mask:
        """Return a mask, given as an object or as text: its name, or "name=numbers"."""
        names = ", ".join(one.usage or repr(name) for name, one in Mask._named.items())
        wanted = f"be a mask such as Signs(), or one of {names}"
        if not isinstance(mask, str):
            check.instance(mask, Mask, "mask", wanted)
            return mask
        name, given, numbers = mask.partition("=")
        kind = Mask._named.get(name)
        if kind is None or bool(given) != bool(kind.usage):
            raise ArgumentError("mask", wanted, repr(mask))
        try:
            if not given:
                return kind()
            return kind.from_numbers(*(float(one) for one in numbers.split(",")))
        except (TypeError, ValueError):
            raise ArgumentError("mask", wanted, repr(mask)) from None

    @classmethod
    def from_numbers(cls, *numbers: float) -> Mask:
        """Return the mask with these parameters."""
        return cls(*numbers)

    @property
    def kind(self) -> str:
        """The kind of mask in words."""
        return self.name

    def match(self, shape: tuple[int, int]) -> None:
        """Refuse a restriction that leaves no u (n_inputs, n_channels), or every u."""
        del shape

    @abstractmethod
    def solve(
        self, problem: MaskProblem, u: np.ndarray, bound: float, rng: np.random.Generator
    ) -> Masked:
        """Return the best mask found, from the free optimum u and its upper bound."""

    @abstractmethod
    def improve(self, problem: MaskProblem, u: np.ndarray) -> Masked:
        """Return a mask and its readout, improved from a mask u of the same kind."""

    @property
    def is_symmetric(self) -> bool:
        """Whether −u is a mask of this kind for every u of this kind."""
        return False

    def n_products(self, shape: tuple[int, int]) -> float:
        """Return how many products `best_inputs` takes per problem.

        Infinite if it is not available.
        """
        del shape
        return np.inf

    def best_inputs(
        self, b: np.ndarray, Q: np.ndarray, eta: float, shape: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return max b·u − (η/2) uᵀQu over all masks u, and that u, flat, per problem.

        b has the shape (n_problems, n) and Q (n_problems, n, n).
        """
        raise NotImplementedError

    @abstractmethod
    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw a random mask (n_inputs, n_channels), up to its norm."""

    def in_units(self, u: np.ndarray) -> np.ndarray:
        """Return a unit mask in the units of the device."""
        return u

    @abstractmethod
    def lowest_bound(self, shape: tuple[int, int], bounded: Bounded) -> float:
        """Return the lowest upper bound found for masks u (n_inputs, n_channels)."""


def enough(bound: float) -> float:
    """Return the κ at which a search may stop."""
    return bound - _REACHED * abs(bound)


def ascend_within(
    objective: MaskProblem,
    u: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    limit: float = np.inf,
    max_evaluations: int = _EVALUATIONS,
) -> Masked:
    """Maximise κ in a set, by projected gradients (Birgin, Martínez & Raydan 2000).

    ``project`` returns the nearest unit vector of the set. The ascent takes spectral steps,
    stops when κ reaches ``limit``, and returns the best pair.
    """
    u = project(u)
    v, margin, gradient = objective.evaluate(u)
    best = u, v, margin
    slope = _tangent(gradient, u)
    step = 1.0 / max(float(np.linalg.norm(slope)), 1e-300)
    values, tops = [margin.value], [margin.value]
    evaluations = 1
    while best[2].value < limit:
        length = step
        while True:
            new = project(u + length * slope)
            moved = new - u
            promised = float((slope * moved).sum())
            stuck = float(np.linalg.norm(moved)) < 1e-12 or promised <= 0
            if stuck or evaluations >= max_evaluations:
                return Masked(*best, "converged" if stuck else "max_iterations")
            v, margin, gradient = objective.evaluate(new)
            evaluations += 1
            if margin.value >= min(values[-_REMEMBERED:]) + _SUFFICIENT * promised:
                break
            length *= 0.25
        new_slope = _tangent(gradient, new)
        curvature = float((moved * (slope - new_slope)).sum())
        step = float((moved**2).sum()) / curvature if curvature > 0 else 4 * length
        step = float(np.clip(step, 1e-6 * length, 1e6 * length))
        u, slope = new, new_slope
        values.append(margin.value)
        if margin.value > best[2].value:
            best = u, v, margin
        tops.append(best[2].value)
        gain = tops[-1] - tops[-1 - _REMEMBERED] if len(tops) > _REMEMBERED else np.inf
        if gain <= _TOL * abs(tops[-1]):
            break
    return Masked(*best, "converged")


def _tangent(gradient: np.ndarray, u: np.ndarray) -> np.ndarray:
    return gradient - (gradient * u).sum() * u


#: Evaluations of the first, short ascent of each start; number of best starts that
#: continue; and number of random starts, around the free optimum and anywhere.
_GLANCE, AHEAD, _DRAWN = 30, 2, 4


def best_within(
    objective: MaskProblem,
    starts: list[np.ndarray],
    project: Callable[[np.ndarray], np.ndarray],
    limit: float,
    rng: np.random.Generator,
) -> Masked:
    """Return the best end of several ascents in a set, the first from the free optimum.

    Random starts join the given ones. All get a few evaluations, and the best continue.
    """
    u = starts[0]
    size = np.sqrt((u**2).mean())
    starts = starts + [u + size * w for w in rng.standard_normal((_DRAWN, *u.shape))]
    starts += list(rng.standard_normal((_DRAWN, *u.shape)))
    ends: list[Masked] = []
    for start in starts:
        ends.append(ascend_within(objective, start, project, limit, _GLANCE))
        if ends[-1].value >= limit:
            return ends[-1]
    ends.sort(key=lambda end: end.value, reverse=True)
    for i, end in enumerate(ends[:AHEAD]):
        ends[i] = ascend_within(objective, end.u, project, limit)
    return max(ends, key=lambda end: end.value)
