"""One input projection for several comparisons, each with its own readout, and a bound.

The method maximises

    F(u) = Σ_j max_{v_j} κ_j(u, v_j) ,   ‖u‖ = ‖v_j‖ = 1

by ascent over u. `greenfold.optimizers.bounds` bounds F from above. The separate optima of
the comparisons, each with its own u, add up to a second bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..math.margins import SoftMargin
from .bounds import Relaxation
from .linear import Candidate, LinearProblem, Responses, ascend
from .result import relative_gap

#: Largest number of evaluations of an ascent, relative change of κ that ends it, number of
#: best starts to ascend from, and number of random projections among the starts.
_EVALUATIONS, _TOL, _ASCENDED, _DRAWN = 200, 1e-9, 4, 4
#: Number of steps towards the u of largest Σ‖G(μ_j)u‖, which is one of the starts.
_STEPS = 20
#: Widths of the smoothing while the bound is lowered, as shares of λ_max.
_SMOOTHING = (1e-2, 1e-3, 1e-4)
#: Relative gap at which to stop.
_CLOSED = 1e-4


@dataclass(frozen=True, eq=False)
class SharedProblem:
    """The sum of the soft margins of several comparisons of one system under one u.

    It is an `Objective` for the ascent, with readouts (n_outputs, n_comparisons).
    """

    parts: tuple[LinearProblem, ...]

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal readouts, Σκ_j, and its gradient by u at these readouts."""
        V, margins, gradients = zip(*(part.evaluate(u) for part in self.parts), strict=True)
        total = SoftMargin(*(float(sum(column)) for column in zip(*margins, strict=True)))
        return np.stack(V, axis=1), total, np.sum(gradients, axis=0)

    def best_readouts(self, u: np.ndarray) -> tuple[np.ndarray, list[SoftMargin]]:
        """Return the optimal readouts (n_outputs, n_comparisons), and κ_j of each."""
        V, margins = zip(*(part.best_readout(u) for part in self.parts), strict=True)
        return np.stack(V, axis=1), list(margins)

    def kernels(self, u: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
        """Return the kernels of all comparisons."""
        return [part.kernel(u, v) for part, v in zip(self.parts, V.T, strict=True)]

    def stacked_atom(self) -> np.ndarray:
        """Return a u (n_inputs, n_channels) of large Σ_j ‖G(μ_j)u‖, a start for small η.

        For small η, F(u) is this sum. Each step maximises a lower bound that touches the
        sum, so the sum never falls.
        """
        sums = [part.response_sum(part.stimuli.mu) for part in self.parts]
        one = self.parts[0]
        responses = Responses(sums, one.stimuli.n_channels, one.system.n_inputs)
        flat = responses.leading()[1].T.ravel()
        for _ in range(_STEPS):
            states = responses.drive(flat[:, None])[:, :, 0]
            norms = np.linalg.norm(states, axis=1)
            if not norms.any():
                break
            flat = responses.pull(states, 1 / np.where(norms > 0, norms, np.inf))
            flat = flat / np.linalg.norm(flat)
        return responses.as_projection(flat)


@dataclass(frozen=True, eq=False)
class Shared:
    """The projections u and V (n_outputs, n_comparisons), with their κ_j and a bound.

    ``bound`` is an upper bound on the sum ``total`` of all κ_j. ``n_iter`` counts the
    evaluations of the ascent that found u.
    """

    u: np.ndarray
    V: np.ndarray
    margins: list[SoftMargin]
    bound: float
    n_iter: int

    @property
    def total(self) -> float:
        """The sum Σκ_j."""
        return float(sum(margin.value for margin in self.margins))


def solve_shared(
    problem: SharedProblem, own: list[np.ndarray], separate: float, *, certify: bool
) -> Shared:
    """Return the best u for all comparisons, with a proven bound on the summed margins.

    ``own`` holds the optimal u of each separate comparison, which are starts; their bounds
    add up to ``separate``. With ``certify``, the relaxation is solved to its end and gives
    further starts.
    """
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((_DRAWN, *own[0].shape))
    starts = [problem.stacked_atom(), *own, *(u / np.linalg.norm(u) for u in drawn)]
    values = [sum(m.value for m in problem.best_readouts(u)[1]) for u in starts]
    bound = Relaxation(problem.parts)
    best: Candidate | None = None
    ceiling = separate
    for place in np.argsort(values, kind="stable")[::-1][:_ASCENDED]:
        found = _ascend(problem, starts[place])
        if best is None or found.margin.value > best.margin.value:
            best = found
            ceiling = min(ceiling, bound.at(problem.kernels(best.u, best.v), best.u))
        if relative_gap(ceiling, best.margin.value) <= _CLOSED:
            break  # no start can be better
    assert best is not None
    if certify and relative_gap(ceiling, best.margin.value) > _CLOSED:
        kernels = problem.kernels(best.u, best.v)
        goal = best.margin.value
        lowered = bound.lower(kernels, best.u, goal=goal, smoothing=_SMOOTHING)
        ceiling = min(ceiling, lowered)
        for start in bound.starts():
            other = _ascend(problem, start)
            best = other if other.margin.value > best.margin.value else best
    found = Shared(best.u, *problem.best_readouts(best.u), ceiling, len(best.history))
    # The value cannot exceed the bound, except by rounding.
    return replace(found, bound=max(ceiling, found.total))


def _ascend(problem: SharedProblem, start: np.ndarray) -> Candidate:
    found = ascend(problem, start, max_iter=_EVALUATIONS, tol=_TOL)
    found.raise_if_interrupted()
    return found
