"""One input projection for several comparisons, each with its own readout, and its bound.

    F(u) = Σ_j max_{v_j} κ_j(u, v_j) ,   ‖u‖ = ‖v_j‖ = 1

is ascended over u. Each κ_j is concave in its kernel. Linearised at any kernels a_j, with
d_j = μ_j − ηψ_j a_j,

    F ≤ Σ_j (η/2) a_jᵀψ_j a_j + max_u Σ_j ‖G(d_j) u‖ ,

and as 2‖x‖ ≤ w + ‖x‖²/w, the maximum is at most

    ½ Σ_j w_j + ½ λ_max(Σ_j G(d_j)ᵀG(d_j)/w_j)        for all weights w > 0,

which is √(Σ w_j) σ_max([G(d_j)/√w_j]) at the best multiple of w. The sum is convex in the
kernels and the weights together: a descent ends at the value of the relaxation. The
comparisons' own optima, each with its own u, add up to a second bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..math.margins import SoftMargin
from .ascent import ascend
from .bounds import descend, metric_of, soft_maximum
from .linear import LinearProblem, Responses
from .result import Candidate, relative_gap

#: Evaluations and relative change of κ of one ascent, how many of the starts, the best, are
#: ascended from, and random projections among them.
_EVALUATIONS, _TOL, _ASCENDED, _DRAWN = 200, 1e-9, 4, 4
#: Steps towards the largest Σ‖G(μ_j)u‖; it is a start.
_STEPS = 20
#: Evaluations of one descent of the bound, and by which share of λ_max each is smoothed.
_DESCENT, _SMOOTHING = 150, (1e-2, 1e-3, 1e-4)
#: Gap at which nothing is left to do, and directions of the relaxation that are tried.
_CLOSED, _DIRECTIONS = 1e-4, 4


@dataclass(frozen=True, eq=False)
class SharedProblem:
    """Soft margins of several comparisons of one system under one u, added.

    An `Objective` for the ascent; its readouts are (n_outputs, n_comparisons).
    """

    parts: tuple[LinearProblem, ...]

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal readouts, Σκ_j, and its gradient by u at those readouts."""
        V, margins, gradients = zip(*(part.evaluate(u) for part in self.parts), strict=True)
        total = SoftMargin(*(float(sum(column)) for column in zip(*margins, strict=True)))
        return np.stack(V, axis=1), total, np.sum(gradients, axis=0)

    def best_readouts(self, u: np.ndarray) -> tuple[np.ndarray, list[SoftMargin]]:
        """Optimal readouts (n_outputs, n_comparisons), and κ_j of each."""
        V, margins = zip(*(part.best_readout(u) for part in self.parts), strict=True)
        return np.stack(V, axis=1), list(margins)

    def kernels(self, u: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
        """Kernels of all comparisons."""
        return [part.kernel(u, v) for part, v in zip(self.parts, V.T, strict=True)]

    def responses(self, gradients: list[np.ndarray]) -> Responses:
        """G(d_j) of all comparisons."""
        one, pairs = self.parts[0], zip(self.parts, gradients, strict=True)
        sums = [part.response_sum(d) for part, d in pairs]
        return Responses(sums, one.stimuli.n_channels, one.system.n_inputs)

    def stacked_atom(self) -> np.ndarray:
        """A u of large Σ_j ‖G(μ_j)u‖, (n_inputs, n_channels): the problem of small η.

        Each step maximises a lower bound on the sum that touches it, so that no step falls.
        """
        responses = self.responses([part.mean for part in self.parts])
        flat = responses.leading()[1].T.ravel()
        for _ in range(_STEPS):
            states = responses.drive(flat[:, None])[:, :, 0]
            norms = np.linalg.norm(states, axis=1)
            if not norms.any():
                break
            flat = responses.pull(states, 1 / np.where(norms > 0, norms, np.inf))
            flat = flat / np.linalg.norm(flat)
        return responses.as_projection(flat)


class SharedBound:
    """The upper bound on Σκ_j as a function of kernels and weights."""

    def __init__(self, problem: SharedProblem) -> None:
        self.problem = problem
        self._lowest = np.inf
        #: Directions (n_inputs, n_channels, k) that the relaxation mixes at the lowest
        #: bound met, the first counting most.
        self.directions = np.zeros((1, 1, 0))

    def at(self, kernels: list[np.ndarray], u: np.ndarray) -> float:
        """The bound linearised at kernels, with the best weights; starts at those of u."""
        linearised = _Linearised(self.problem, kernels)
        start = linearised.weights_of(u)

        def bound(_: list[np.ndarray], logs: np.ndarray, __: float) -> tuple:
            w = np.exp(logs)
            values, flat = linearised.responses.spectrum(w, last=True)
            top = float(values[-1])
            squares = (linearised.responses.drive(flat)[:, :, 0] ** 2).sum(1)
            proven = self._keep(linearised, w, top, flat)
            return proven, 0.5 * (w.sum() + top), [], 0.5 * (w - squares / w)

        unit = float(start.sum())
        return descend(bound, extra=np.log(start), unit=unit, max_evaluations=_DESCENT)

    def tighten(self, kernels: list[np.ndarray], u: np.ndarray, goal: float) -> float:
        """Lower the bound by descent in kernels and weights, down to ``goal`` at most."""
        start = _Linearised(self.problem, kernels).weights_of(u)
        metrics, unit = [metric_of(part) for part in self.problem.parts], float(start.sum())
        # λ_max is about Σw, at its best multiple.
        limits: dict[str, Any] = {"smoothing": [share * unit for share in _SMOOTHING]}
        limits |= {"unit": unit, "max_evaluations": _DESCENT, "goal": goal}
        return descend(self.smoothed, kernels, metrics, np.log(start), **limits)

    def _keep(
        self, linearised: _Linearised, w: np.ndarray, top: float, flat: np.ndarray
    ) -> float:
        """The bound itself, at the best multiple of the weights."""
        value = linearised.rest + float(np.sqrt(w.sum() * max(top, 0.0)))
        if value < self._lowest:
            self._lowest = value
            self.directions = linearised.responses.as_projection(flat)
        return value

    def smoothed(
        self, kernels: list[np.ndarray], logs: np.ndarray, width: float
    ) -> tuple[float, float, list[np.ndarray], np.ndarray]:
        """The bound; it with a soft maximum of the eigenvalues, and its gradients.

        By kernels and by log w: d½λ = Σ_k p_k ⟨G(d_j)u_k u_kᵀ/w_j, G(δd_j)⟩ with the share
        p of an eigenvector, and ⟨·, G(δd)⟩ is the kernel of the matrix on its left.
        """
        w, linearised = np.exp(logs), _Linearised(self.problem, kernels)
        values, vectors = linearised.responses.spectrum(w)
        soft, share, vectors = soft_maximum(values, vectors, width)
        proven = self._keep(linearised, w, float(values[-1]), vectors)
        driven = linearised.responses.drive(vectors)
        root = np.sqrt(share)
        B = linearised.responses.as_projection(vectors) * root
        by_kernel = []
        parts = self.problem.parts
        for part, a, states, weight in zip(parts, kernels, driven, w, strict=True):
            atom, _ = part.kernel_of(states * root / weight, B)
            by_kernel.append(part.eta * part.spread(a - atom))
        squares = (driven**2).sum(1) @ share
        value = linearised.curved + 0.5 * (w.sum() + soft)
        return proven, value, by_kernel, 0.5 * (w - squares / w)


class _Linearised:
    """G(d_j) at kernels, and what else is in the bound."""

    def __init__(self, problem: SharedProblem, kernels: list[np.ndarray]) -> None:
        pairs = list(zip(problem.parts, kernels, strict=True))
        gradients = [part.gradient_at(a) for part, a in pairs]
        self.responses = problem.responses(gradients)
        curved = [0.5 * p.eta * float(a @ p.spread(a)) - p.offset for p, a in pairs]
        rounded = [p.rounding(d) for p, d in zip(problem.parts, gradients, strict=True)]
        self.curved, self.rest = sum(curved), sum(curved) + sum(rounded)

    def weights_of(self, u: np.ndarray) -> np.ndarray:
        """‖G(d_j)u‖, the best weights where u attains the maximum; none at zero."""
        weights = np.linalg.norm(self.responses.drive(u.T.reshape(-1, 1))[:, :, 0], axis=1)
        largest = float(weights.max())
        return np.maximum(weights, 1e-6 * largest) if largest else np.ones_like(weights)


@dataclass(frozen=True, eq=False)
class Shared:
    """u, V (n_outputs, n_comparisons), κ_j of each, and a bound on their sum, ``total``.

    ``n_iter`` counts the evaluations of the ascent that found u.
    """

    u: np.ndarray
    V: np.ndarray
    margins: list[SoftMargin]
    bound: float
    n_iter: int

    @property
    def total(self) -> float:
        """Σκ_j."""
        return float(sum(margin.value for margin in self.margins))


def solve_shared(
    problem: SharedProblem, own: list[np.ndarray], separate: float, *, certify: bool
) -> Shared:
    """The best u for all comparisons, with a proven bound on the sum of soft margins.

    It starts from the projections ``own`` that the comparisons would have alone, whose
    bounds add up to ``separate``. With ``certify`` the relaxation is solved to its end, and
    ascended from too.
    """
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((_DRAWN, *own[0].shape))
    starts = [problem.stacked_atom(), *own, *(u / np.linalg.norm(u) for u in drawn)]
    values = [sum(m.value for m in problem.best_readouts(u)[1]) for u in starts]
    bound = SharedBound(problem)
    best: Candidate | None = None
    ceiling = separate
    for place in np.argsort(values, kind="stable")[::-1][:_ASCENDED]:
        found = _ascend(problem, starts[place])
        if best is None or found.margin.value > best.margin.value:
            best = found
            ceiling = min(ceiling, bound.at(problem.kernels(best.u, best.v), best.u))
        if relative_gap(ceiling, best.margin.value) <= _CLOSED:
            break  # no start can do better
    assert best is not None
    if certify and relative_gap(ceiling, best.margin.value) > _CLOSED:
        kernels = problem.kernels(best.u, best.v)
        ceiling = min(ceiling, bound.tighten(kernels, best.u, best.margin.value))
        for start in np.moveaxis(bound.directions, 2, 0)[:_DIRECTIONS]:
            other = _ascend(problem, start)
            best = other if other.margin.value > best.margin.value else best
    found = Shared(best.u, *problem.best_readouts(best.u), ceiling, len(best.history))
    # What is attained is below the bound; by rounding it may seem not to be.
    return replace(found, bound=max(ceiling, found.total))


def _ascend(problem: SharedProblem, start: np.ndarray) -> Candidate:
    found = ascend(problem, start, max_iter=_EVALUATIONS, tol=_TOL)
    found.raise_if_interrupted()
    return found
