"""The linear optimum of a large system, solved in a small space that proves itself.

Keep a few orthonormal input directions Q_u and output directions Q_v. The responses between
them, Q_vᵀ G_n Q_u, are a system of a few inputs and outputs, whose joint optimum the search
of `greenfold.optimizers.convex` certifies. Two facts make this an optimum of the whole
system:

- a pair of the small system is a pair of the whole one, u = Q_u x and v = Q_v y, with the
  same kernel and the same κ;
- the bound of `greenfold.optimizers.bounds` holds at *every* kernel a. So it holds for the
  whole system at the a that minimises the bound of the small one. It takes the largest
  singular value of the whole G(d), from products alone.

If κ meets this bound, the pair is optimal among all pairs. If not, the leading singular
vectors of the whole G(d) join the small space. A few pairs of vectors meet at the optimum,
so about twenty directions are enough for any number of neurons. (Use the minimiser of the
small *bound*: at the kernel of the best pair, the loop stalls where the relaxation is not
tight.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.progress import Bar, display
from ..devices.response import MeasuredResponse
from ..math.krylov import orthonormal
from ..systems import LinearSystem
from .bounds import Relaxation
from .linear import Candidate, LinearProblem
from .result import relative_gap

if TYPE_CHECKING:
    from .convex import Search

#: Number of directions that join the space per round, and largest number of rounds.
_JOINED, _BLOCK, _ROUNDS = 8, 4, 60
#: Gap to aim at if the tolerance is at most the last value: for systems of at most so many
#: inputs, where the last digits cost little, and for larger ones.
_FINE, _MANY, _CLOSED, _CLOSE = 1e-9, 10_000, 1e-5, 1e-4
#: Least share of the gap that a round leaves at which more digits cost too many rounds, as
#: in a chain of cells that are all alike.
_SLOW = 0.5
#: Error of the largest singular value, as a share of the gap that is left or aimed at.
_SHARE = 0.3
#: Gap of the small problem, as a share of that of the whole.
_INNER = 0.1
#: Distance of the bounds of the whole and of the small problem, as a share of the gap,
#: below which more directions do not help.
_SETTLED = 0.02
#: Gap of the tree of the small problem, as a share of that of the whole, and number of
#: leaves that the whole exceeds after which the space grows; and limit of such rounds.
_LEAF, _FAILED, _GROWN = 0.5, 4, 10
#: Default limit of the nodes of that tree for a system of many inputs.
_FEW_NODES = 30
#: Relative rise of κ at which more directions are no longer worth their products.
_RISE = 1e-9


class Space:
    """Orthonormal directions of inputs and outputs, and the system between them."""

    def __init__(self, system: LinearSystem) -> None:
        self.whole = system
        self.inputs = np.zeros((system.n_inputs, 0))
        self.outputs = np.zeros((system.n_outputs, 0))
        self._tensor = np.zeros((system.n_steps, 0, 0))

    def extend(self, inputs: np.ndarray, outputs: np.ndarray) -> None:
        """Add what these columns span beyond the directions so far."""
        more_in = orthonormal(inputs, self.inputs)
        more_out = orthonormal(outputs, self.outputs)
        right = self.whole.reduced(self.outputs, more_in)
        self.inputs = np.concatenate([self.inputs, more_in], axis=1)
        below = self.whole.reduced(more_out, self.inputs)
        self.outputs = np.concatenate([self.outputs, more_out], axis=1)
        self._tensor = np.concatenate(
            [np.concatenate([self._tensor, right], axis=2), below], axis=1
        )

    @property
    def system(self) -> MeasuredResponse:
        """The system between the directions."""
        return MeasuredResponse(self._tensor)

    def problem(self, whole: LinearProblem) -> LinearProblem:
        """Return the problem on these directions."""
        P = whole.covariance
        own = None if P is None else self.outputs.T @ (P @ self.outputs)
        return replace(whole, system=self.system, covariance=own)


class SpaceSearch:
    """The search for the best pair of a large system.

    ``whole`` keeps the lowest bound, and ``best`` the best pair so far, with κ of the small
    system. ``small`` searches on the directions of a space, from a start, to a relative
    gap; with an infinite gap, it only ascends from there. Its last argument limits the tree
    of bounds; see `greenfold.optimizers.Convex`.
    """

    def __init__(
        self,
        whole: Relaxation,
        small: Callable[[LinearProblem, np.ndarray | None, float, int | None], Search],
        tol: float,
        best: Candidate | None = None,
    ) -> None:
        self.whole, self.best, self._small = whole, best, small
        (self.problem,) = whole.parts
        system, n_channels = self.problem.system, self.problem.stimuli.n_channels
        #: Largest bound over the leaves of a tree, and the gap that it must close.
        self.branched, self._asked = np.inf, tol
        if tol <= _CLOSE:
            tol = min(tol, _CLOSED if system.n_inputs > _MANY else _FINE)
        self._tol, self.space = tol, Space(system)
        rng = np.random.default_rng(0)
        self._start = rng.standard_normal((system.n_inputs, n_channels, _BLOCK))

    def run(self, max_nodes: int | None = 0) -> bool:
        """Search until the gap is closed or settled; return whether Ctrl-C ended it.

        ``max_nodes`` limits the tree that closes the gap, if there is a single part.
        """
        try:
            with display() as screen, screen.bar("solving in a small space", None) as bar:
                if not self._relax(bar):
                    if self.gap > self._asked and max_nodes != 0:
                        self._branch(bar, max_nodes)
                    self._climb(bar)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            return True
        return False

    def _relax(self, bar: Bar) -> bool:
        """Lower the bound of the whole problem; return whether the gap is closed."""
        prove = partial(self.whole.prove, count=_JOINED, tol=_SHARE * self._tol)
        kernel = np.zeros_like(self.problem.stimuli.mu)
        found = prove(kernel, np.ones(1), self._start, rise=0.0)
        if self.best is not None:
            self.space.extend(self.best.u, self.best.v[:, None])
        gap = np.inf
        for _ in range(_ROUNDS):
            relaxation = self._extend(*found, bar, _INNER * self._tol).relaxation
            found = prove(*_point(relaxation, self.space), rise=self._tol)
            left = self.whole.lowest - relaxation.lowest
            gap, before = self.gap, gap
            if gap <= self._tol or left <= _SETTLED * gap * abs(self.whole.lowest):
                return gap <= self._tol
            if gap <= self._asked and gap > _SLOW * before:
                return True
        return False

    def _branch(self, bar: Bar, max_nodes: int | None) -> None:
        """Close the gap by a tree of bounds of the small space, proven in the whole.

        A sector of directions of the small space is one of the whole, and the bound of a
        leaf holds there at the same kernel and multipliers. Where the whole exceeds it, the
        leading singular vectors join the space.
        """
        if max_nodes is None and self.problem.system.n_inputs > _MANY:
            max_nodes = _FEW_NODES
        for _ in range(_GROWN):
            found = self._search(bar, _LEAF * self._asked, max_nodes)
            if not found.is_closed:
                return
            goal = self.value + self._asked * abs(self.value)
            worst, more = -np.inf, list[tuple[np.ndarray, np.ndarray]]()
            for leaf in found.leaves:
                place = self.space.outputs, self.space.inputs
                bound, directions, readouts = self.whole.prove_within(
                    leaf, *place, count=_BLOCK, goal=goal
                )
                worst = max(worst, bound)
                if bound > goal:
                    more.append((directions.reshape(len(directions), -1), readouts))
                    if len(more) == _FAILED:
                        break
            else:
                self.branched = min(self.branched, worst)
            if not more:
                return
            self.space.extend(*(np.hstack(each) for each in zip(*more, strict=True)))

    def _climb(self, bar: Bar) -> None:
        """Add the gradients at the best pair, which may be no optimum of the whole."""
        for _ in range(_ROUNDS):
            assert self.best is not None
            u, v, before = self.best.u, self.best.v, self.value
            d = self.problem.gradient_at(self.problem.kernel(u, v))
            by_state = self.problem.response_sum(d)
            by_v = by_state.drive(u[:, :, None])
            if (P := self.problem.covariance) is not None:
                by_v = by_v - self.problem.eta * (P @ v)[:, None]
            self._extend(by_state.pull(v), by_v, bar, np.inf)
            if self.value - before <= _RISE * abs(before):
                break

    @property
    def value(self) -> float:
        """κ of the best pair."""
        assert self.best is not None
        return self.best.margin.value

    @property
    def gap(self) -> float:
        """Relative gap between the best pair and the lowest bound."""
        return relative_gap(min(self.whole.lowest, self.branched), self.value)

    def _extend(
        self, directions: np.ndarray, readouts: np.ndarray, bar: Bar, tol: float
    ) -> Search:
        """Return the search on more directions."""
        self.space.extend(directions.reshape(len(directions), -1), readouts)
        return self._search(bar, tol, 0)

    def _search(self, bar: Bar, tol: float, max_nodes: int | None) -> Search:
        """Search on the directions, and keep the pair if it is the best so far."""
        space, best = self.space, self.best
        start = None if best is None else space.inputs.T @ best.u
        found = self._small(space.problem(self.problem), start, tol, max_nodes)
        assert found.best is not None
        if best is None or found.value > self.value:
            u, v = space.inputs @ found.best.u, space.outputs @ found.best.v
            self.best = Candidate(u, v, found.best.margin, "converged")
        if found.is_interrupted:
            raise KeyboardInterrupt
        n, r = space.inputs.shape
        sizes, products = f"{n:,} neurons, {r} directions", space.whole.n_products
        sizes += "" if products is None else f", {products:,} products"
        bar.advance(0, f"{sizes}: κ {self.value:.6g}, gap {self.gap:.2g}")
        return found


def _point(
    relaxation: Relaxation, space: Space
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the kernel and T at the lowest bound, and the directions that it mixes."""
    assert relaxation.point is not None
    (kernel,), t, _ = relaxation.point
    T = t - relaxation.floors
    directions, _ = relaxation.prove(kernel, T, None, count=_BLOCK)
    return kernel, T, np.tensordot(space.inputs, directions, axes=1)
