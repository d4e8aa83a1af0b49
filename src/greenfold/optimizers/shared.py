"""One input projection for several comparisons, each with its own readout, and its bound.

    F(u) = Σ_j max_{v_j} κ_j(u, v_j) ,   ‖u‖ = ‖v_j‖ = 1

is ascended over u: by the envelope theorem its gradient is the sum of those of the
comparisons at their optimal readouts. Each κ_j is concave in its kernel. Linearised at any
kernels a_j, with d_j = μ_j − ηψ_j a_j,

    F ≤ Σ_j (η/2) a_jᵀψ_j a_j + max_u Σ_j ‖G(d_j) u‖ ,

and as 2‖x‖ ≤ w + ‖x‖²/w, the maximum is at most

    ½ Σ_j w_j + ½ λ_max(Σ_j G(d_j)ᵀG(d_j)/w_j)        for all weights w > 0,

which is √(Σ w_j) σ_max([G(d_j)/√w_j]) at the best multiple of w. The sum is convex in the
kernels and the weights together, so that a descent ends at the value of the relaxation. The
comparisons' own optima, each with its own u, add up to a second bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, eigsh

from ..math.margins import SoftMargin
from .ascent import ascend
from .certified import Metric, metric_root
from .linear import LinearProblem
from .result import Candidate, relative_gap

#: Evaluations of one ascent, and how many of the starts, the best, are ascended from.
_EVALUATIONS, _ASCENDED = 200, 4
_TOL = 1e-9
#: Steps towards the largest Σ‖G(μ_j)u‖; it is a start.
_STEPS = 20
#: Random projections among the starts.
_DRAWN = 4
#: Evaluations of one descent of the bound, and by which share of λ_max each is smoothed:
#: where the relaxation is not tight, several eigenvalues meet at its optimum.
_DESCENT = 150
_SMOOTHING = (1e-2, 1e-3, 1e-4)
#: Share of a direction in the smoothed maximum below which it is left out.
_NEGLIGIBLE = 1e-9
#: Gap at which nothing is left to do, and directions of the relaxation that are tried.
_CLOSED, _DIRECTIONS = 1e-4, 4


@dataclass(frozen=True, eq=False)
class SharedProblem:
    """Soft margins of several comparisons under one input projection, added.

    An `Objective` for the ascent; its readouts are (n_outputs, n_comparisons).

    Parameters
    ----------
    parts : tuple of LinearProblem
        Of one system, with stimuli of one shape.
    """

    parts: tuple[LinearProblem, ...]

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal readouts, Σκ_j, and its gradient by u at those readouts."""
        found = [part.evaluate(u) for part in self.parts]
        V = np.stack([v for v, _, _ in found], axis=1)
        return V, _added([m for _, m, _ in found]), np.sum([g for _, _, g in found], axis=0)

    def best_readouts(self, u: np.ndarray) -> tuple[np.ndarray, list[SoftMargin]]:
        """Optimal readouts (n_outputs, n_comparisons), and κ_j of each."""
        found = [part.best_readout(u) for part in self.parts]
        return np.stack([v for v, _ in found], axis=1), [m for _, m in found]

    def kernels(self, u: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
        """Kernels of all comparisons."""
        return [part.kernel(u, v) for part, v in zip(self.parts, V.T, strict=True)]

    def stacked_atom(self) -> np.ndarray:
        """A u of large Σ_j ‖G(μ_j)u‖, (n_inputs, n_channels): the problem of small η.

        From the leading vector of the stacked G(μ_j); each step maximises a lower bound
        on the sum that touches it, so that no step falls.
        """
        sums = _Sums(self, [part.mean for part in self.parts])
        flat = sums.leading(np.ones(len(self.parts)))[1]
        for _ in range(_STEPS):
            states = sums.driven(flat[:, None])[:, :, 0]
            norms = np.linalg.norm(states, axis=1)
            if not norms.any():
                break
            flat = sums.pulled(states, 1 / np.where(norms > 0, norms, np.inf))
            flat = flat / np.linalg.norm(flat)
        return self.as_projection(flat)

    def as_projection(self, flat: np.ndarray) -> np.ndarray:
        """A vector over channels and inputs as u."""
        return flat.reshape(self.parts[0].stimuli.n_channels, -1).T


class _Sums:
    """G(d_j) of all comparisons at one set of d_j."""

    def __init__(self, problem: SharedProblem, gradients: list[np.ndarray]) -> None:
        parts = problem.parts
        self._shape = (parts[0].stimuli.n_channels, parts[0].system.n_inputs)
        self._sums = [
            part.system.response_sum(part.by_channel(d))
            for part, d in zip(parts, gradients, strict=True)
        ]
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            made = [one.matrix() for one in self._sums]
        self.matrices = [m for m in made if m is not None]
        if not all(np.isfinite(m).all() for m in self.matrices):
            raise OverflowError(
                "the response of this network to a pulse exceeds floating point before the "
                "readout; read it earlier, or scale the weights down."
            )
        self.rounding = sum(
            part.rounding(d) for part, d in zip(parts, gradients, strict=True)
        )

    @cached_property
    def _squares(self) -> np.ndarray:
        return np.stack([m.T @ m for m in self.matrices])

    def driven(self, flat: np.ndarray) -> np.ndarray:
        """G(d_j) times flat directions in columns: (n_comparisons, n_outputs, k)."""
        if len(self.matrices) == len(self._sums):
            return np.stack([m @ flat for m in self.matrices])
        u = flat.reshape(*self._shape, -1).transpose(1, 0, 2)
        return np.stack([one.drive(u) for one in self._sums])

    def pulled(self, states: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Σ_j factor_j G(d_j)ᵀ y_j of states (n_comparisons, n_outputs), flat."""
        if len(self.matrices) == len(self._sums):
            pairs = zip(self.matrices, states, strict=True)
            return factors @ np.stack([y @ m for m, y in pairs])
        pairs = zip(self._sums, states, strict=True)
        return factors @ np.stack([one.pull(y).T.ravel() for one, y in pairs])

    def leading(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """λ_max of Σ_j GᵀG/w_j, not below it, and its vector."""
        values, vectors = self.spectrum(weights)
        return float(values[-1]), vectors[:, -1]

    def spectrum(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, ascending, with vectors; of a large network the last one alone."""
        if len(self.matrices) == len(self._sums):
            return np.linalg.eigh(np.tensordot(1 / weights, self._squares, axes=1))
        size = self._shape[0] * self._shape[1]

        def square(flat: np.ndarray) -> np.ndarray:
            states = self.driven(np.reshape(flat, (-1, 1)))[:, :, 0]
            return self.pulled(states, 1 / weights)

        made: Any = LinearOperator
        search: Any = eigsh
        operator = made((size, size), matvec=square, dtype=float)
        values, vectors = search(operator, k=1, v0=np.ones(size), tol=1e-8)
        # An eigenvalue lies within the residual; the search found the largest.
        rest = np.linalg.norm(square(vectors[:, 0]) - values[0] * vectors[:, 0])
        return values + rest, vectors


class SharedBound:
    """The upper bound on Σκ_j as a function of kernels and weights."""

    def __init__(self, problem: SharedProblem) -> None:
        self.problem = problem
        self.lowest = np.inf
        #: Directions that the relaxation mixes at the lowest bound met, flat, the first
        #: counting most.
        self.directions = np.zeros((0, 0))

    def at(self, kernels: list[np.ndarray], u: np.ndarray) -> float:
        """The bound linearised at kernels, with the best weights; starts at those of u."""
        sums, curved = self._linearised(kernels)
        # Where one u attains the maximum, ‖G(d_j)u‖ are the best weights.
        start = np.linalg.norm(sums.driven(u.T.reshape(-1, 1))[:, :, 0], axis=1)
        start = _positive(start)
        best = np.inf

        def function(logs: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            w = np.exp(logs)
            top, flat = sums.leading(w)
            norms = np.linalg.norm(sums.driven(flat[:, None])[:, :, 0], axis=1)
            best = min(best, self._keep(curved, sums, w, top, flat[:, None]))
            return 0.5 * (w.sum() + top) / unit, 0.5 * (w - norms**2 / w) / unit

        unit = _unit(start.sum())
        _descend(function, np.log(start))
        return best

    def tighten(self, kernels: list[np.ndarray], u: np.ndarray, goal: float) -> float:
        """Lower the bound by descent in kernels and weights, down to ``goal`` at most."""
        parts = self.problem.parts
        metrics = []
        for part in parts:
            root = metric_root(part)
            metrics.append(None if root is None else Metric(root, float(np.sqrt(part.eta))))
        pieces = [
            np.zeros(0) if m is None else m.coordinates(a)
            for m, a in zip(metrics, kernels, strict=True)
        ]
        ends = np.cumsum([len(piece) for piece in pieces])
        sums, _ = self._linearised(kernels)
        w = np.linalg.norm(sums.driven(u.T.reshape(-1, 1))[:, :, 0], axis=1)
        w = _positive(w)
        point = np.concatenate([*pieces, np.log(w)])
        unit = _unit(w.sum())

        def function(x: np.ndarray, width: float) -> tuple[float, np.ndarray]:
            *own, logs = np.split(x, ends)
            places = [
                np.zeros_like(a) if m is None else m.kernel(c)
                for m, a, c in zip(metrics, kernels, own, strict=True)
            ]
            value, by_kernel, by_log = self._smoothed(places, np.exp(logs), width)
            bars = [
                np.zeros(0) if m is None else m.gradient(bar)
                for m, bar in zip(metrics, by_kernel, strict=True)
            ]
            if self.lowest <= goal:
                raise _Closed
            return value / unit, np.concatenate([*bars, by_log]) / unit

        try:
            for share in _SMOOTHING:  # λ_max is about Σw, at its best multiple
                point = _descend(lambda x, t=share * unit: function(x, t), point)
        except _Closed:
            pass
        return self.lowest

    def _linearised(self, kernels: list[np.ndarray]) -> tuple[_Sums, float]:
        """G(d_j) at kernels, and Σ (η/2) aᵀψa less what every pair pays."""
        parts = self.problem.parts
        gradients = [p.gradient_at(a) for p, a in zip(parts, kernels, strict=True)]
        curved = sum(
            0.5 * p.eta * float(a @ p.spread(a)) - p.offset
            for p, a in zip(parts, kernels, strict=True)
        )
        return _Sums(self.problem, gradients), curved

    def _keep(
        self, curved: float, sums: _Sums, w: np.ndarray, top: float, flat: np.ndarray
    ) -> float:
        """The bound itself, at the best multiple of the weights."""
        value = curved + float(np.sqrt(w.sum() * max(top, 0.0))) + sums.rounding
        if value < self.lowest:
            self.lowest, self.directions = value, flat
        return value

    def _smoothed(
        self, kernels: list[np.ndarray], w: np.ndarray, width: float
    ) -> tuple[float, list[np.ndarray], np.ndarray]:
        """The bound with a soft maximum of the eigenvalues, and its gradients.

        Of kernels and of log w. The share p of an eigenvector in the soft maximum is a
        Boltzmann weight; d½λ = Σ_k p_k ⟨G(d_j)u_k u_kᵀ/w_j, G(δd_j)⟩, and ⟨·, G(δd)⟩ is
        the kernel of the matrix on its left.
        """
        parts = self.problem.parts
        sums, curved = self._linearised(kernels)
        values, vectors = sums.spectrum(w)
        top = float(values[-1])
        share = np.exp((values - top) / width)
        total = share.sum()
        share = share / total
        keep = np.flatnonzero(share > _NEGLIGIBLE)[::-1]
        share, vectors = share[keep], vectors[:, keep]
        self._keep(curved, sums, w, top, vectors)
        soft = top + width * float(np.log(total))
        driven = sums.driven(vectors)
        root = np.sqrt(share)
        B = vectors.reshape(*sums._shape, -1).transpose(1, 0, 2) * root
        by_kernel = []
        for part, a, states, weight in zip(parts, kernels, driven, w, strict=True):
            atom, _ = part.kernel_of(states * root / weight, B)
            by_kernel.append(part.eta * part.spread(a - atom))
        squares = (driven**2).sum(1) @ share
        return curved + 0.5 * (w.sum() + soft), by_kernel, 0.5 * (w - squares / w)


@dataclass(frozen=True, eq=False)
class Shared:
    """What was found.

    Attributes
    ----------
    u : ndarray (n_inputs, n_channels)
    V : ndarray (n_outputs, n_comparisons)
    margins : list of SoftMargin
    bound : float
        No u reaches a larger sum of soft margins.
    n_iter : int
        Evaluations of the ascent that found u.
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
    problem: SharedProblem,
    own: list[np.ndarray],
    separate: float,
    *,
    certify: bool,
) -> Shared:
    """The best u for all comparisons, with a proven bound on the sum of soft margins.

    Parameters
    ----------
    problem : SharedProblem
    own : list of ndarray (n_inputs, n_channels)
        Input projections to start from, besides the leading vector of the stacked G(μ_j)
        and random ones: those that the comparisons would have alone.
    separate : float
        Sum of the comparisons' own bounds.
    certify : bool
        Solve the relaxation to its end, and ascend from its directions too.
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
        for flat in bound.directions.T[:_DIRECTIONS]:
            other = _ascend(problem, problem.as_projection(flat))
            best = other if other.margin.value > best.margin.value else best
    V, margins = problem.best_readouts(best.u)
    total = sum(margin.value for margin in margins)
    # What is attained is below the bound; by rounding it may seem not to be.
    return Shared(best.u, V, margins, max(ceiling, total), len(best.history))


def _ascend(problem: SharedProblem, start: np.ndarray) -> Candidate:
    found = ascend(problem, start, max_iter=_EVALUATIONS, tol=_TOL)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return found


class _Closed(Exception):
    """The bound has come down to what is attained."""


def _descend(function: Any, start: np.ndarray) -> np.ndarray:
    options = {"maxfun": _DESCENT, "maxiter": _DESCENT, "maxcor": 30}
    options |= {"ftol": 1e-13, "gtol": 0.0}
    return minimize(function, start, jac=True, method="L-BFGS-B", options=options).x


def _positive(weights: np.ndarray) -> np.ndarray:
    """Weights with none at zero, where the bound has no value."""
    largest = float(weights.max())
    return np.maximum(weights, 1e-6 * largest) if largest > 0 else np.ones_like(weights)


def _unit(size: float) -> float:
    return float(size) if size > 0 else 1.0


def _added(margins: list[SoftMargin]) -> SoftMargin:
    return SoftMargin(*(float(sum(column)) for column in zip(*margins, strict=True)))
