"""The global optimum of the linear problem, with its certificate.

An ascent from the leading singular pair of G(μ) finds a pair of projections. If the
relaxation is tight, the bound of `greenfold.optimizers.bounds` at the kernel of this pair
equals its κ. This is the usual case: one ascent and one decomposition suffice. If a gap is
left, the search lowers the bound, and ascends again from the directions that the relaxation
mixes.

Branch and bound (`greenfold.optimizers.branch_and_bound`) closes the remaining gap. All
starts and cuts are the same in every call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.progress import display
from ..math.class_moments import root
from ..stimuli.regression import RegressionTask
from ..systems import System
from . import normal
from .bounds import QUICK, Relaxation
from .branch_and_bound import Directions, Tree
from .linear import AMPLIFIED, Candidate, LinearProblem, ascend
from .method import Method, Run
from .regression import certify_regression
from .result import Projections, RegressionProjections, proven, relative_gap
from .subspace import SpaceSearch

#: Default limit of the number of nodes of the tree; limit of nodes times products per
#: Newton step; and mean number of Newton steps per node after which the search stops.
_NODES, _TREE_PRODUCTS, _STEPS = 200, 1e9, 30
#: Limits of the number of cells of `Directions` and of their products, and the number up to
#: which the gap is narrowed further than the tolerance.
_CELLS, _CELL_PRODUCTS, _QUICK_CELLS = 100_000, 2e9, 1000
#: Number of starts per node to ascend from, because a better pair may lie in a node that is
#: closed.
_STARTS = 6
#: Number of ascents from leading pairs of G(d) before the bound is lowered.
_ATOMS = 4
#: Relative size by which rounding may lift a pair above its bound, and class means above
#: zero.
_ROUNDED, _ZERO = 1e-9, 1e-13
#: First step of an ascent from a start of the bound; a step of 1 would lead elsewhere.
_REACH = 0.1
#: Limit of evaluations of one ascent, and the relative change of κ that ends it.
_EVALUATIONS, _ASCENT_TOL = 500, 1e-14
#: Tolerance of a rough ascent; distance of its cosine with the best u from one below which
#: both are the same; and relative distance of κ below the best that a full ascent may gain.
_ROUGH_TOL, _SAME, _BEHIND = 1e-7, 1e-4, 3e-4
#: Amplification above which rounding hides all signals that are not amplified.
_BEYOND = 1e13
#: For strong amplification: numbers of single and random inputs to try, and of the best
#: inputs to ascend from.
_MAX_SINGLE, _RANDOM_STARTS, _ASCENDED = 200, 20, 3
#: From this gap on, the ascents stop early too, at this share of it.
_COARSE, _SHARE = 1e-3, 0.3
#: Limit of evaluations of the bound of a large network, per width of its smoothing.
_SMOOTHED = 300
#: Without a gap to close: limit of evaluations of the only ascent, and the relative change
#: of κ that ends it. Smaller changes do not affect predictions.
_QUICK_EVALUATIONS, _QUICK_TOL = 100, 1e-6
#: Number of nodes after which `Exact` gives up.
_MAX_NODES = 1_000_000


@dataclass(frozen=True)
class Convex(Method, name="convex"):
    """The best pair found, with an upper bound on the soft margin of any pair.

    If the two meet, the pair is "certified" as the global optimum. If one ascent does not
    suffice, the method lowers the bound, and searches a tree of bounds. On a normal network
    (symmetric, orthogonal, a ring, oscillators) the two always meet.

    Parameters
    ----------
    gap : float
        Relative gap between pair and bound at which to stop. From 1e-3 on, the ascents stop
        early too, which halves the time. With ``math.inf``, one ascent gives the pair, and
        the bound may be loose.
    max_nodes : int, optional
        Limit of the number of bounds in the tree; by default 200, or fewer for a large
        network.
    """

    gap: float = 1e-4
    max_nodes: int | None = None

    takes_nonlinear = False
    takes_masks = True

    def __post_init__(self) -> None:
        if self.gap != np.inf:
            check.positive(self.gap, "gap")
        if self.max_nodes is not None:
            check.count(self.max_nodes, "max_nodes", minimum=0)
            text = "be left out for an infinite `gap`, which needs no tree"
            check.must(self.gap < np.inf, "max_nodes", text, self.max_nodes)

    def draws(self, run: Run) -> bool:
        """Return whether a mask is rounded at random."""
        return run.device.mask is not None

    def solve(self, run: Run) -> Projections:
        """Return the best pair of a linear system, with its upper bound."""
        problem, solved = run.linear, None
        if self.gap == np.inf:
            found = glance(problem)
            solved = found, len(found.history), problem.growth
        elif problem.system.modes() is not None:
            solved = normal.solve(problem, tol=self.gap)
        if solved is None:
            ascent_tol = _SHARE * self.gap if self.gap >= _COARSE else _ASCENT_TOL
            search = Search(problem, self.gap, self.max_nodes, ascent_tol)
            solved = *search.run(), problem.growth
        found, n_iter, growth = solved
        mask = run.device.mask
        if mask is not None and found.status != "interrupted":
            bound = np.inf if found.upper_bound is None else found.upper_bound
            masked = mask.solve(problem, found.u, bound, run.rng)
            found = Candidate(*masked, upper_bound=found.upper_bound)
        return replace(run.finish([found], self.name, n_iter=n_iter), growth=growth)

    def regress(
        self, system: System, task: RegressionTask, rng: np.random.Generator
    ) -> RegressionProjections:
        """Return the best u and V of a linear system, with the bound on its gain."""
        text = "be left out for a RegressionTask, whose bound needs no tree"
        check.must(self.max_nodes is None, "max_nodes", text, self.max_nodes)
        return certify_regression(system, task, gap=self.gap, rng=rng)


@dataclass(frozen=True)
class Exact(Convex, name="exact"):
    """The method `Convex` with up to a million bounds, to close the gap.

    It takes seconds for 20 to 100 neurons and 10 steps, and far longer for many steps.
    Ctrl-C returns the best pair and its bound so far. ``joblib.parallel_config`` spreads
    the bounds over processes.

    Parameters
    ----------
    gap, max_nodes
        See `Convex`.
    """

    max_nodes: int | None = field(default=_MAX_NODES)


class Search:
    """A search for the best pair and the lowest bound, until the two meet."""

    def __init__(
        self,
        problem: LinearProblem,
        gap: float,
        max_nodes: int | None = None,
        ascent_tol: float = _ASCENT_TOL,
    ) -> None:
        self.problem, self.tol, self.ascent_tol = problem, gap, ascent_tol
        self.max_nodes, self.n_nodes, self.n_cells = max_nodes, 0, 0
        self.relaxation = Relaxation([problem])
        #: Largest bound over the leaves of the tree.
        self.branched = np.inf
        #: The leaves of the tree, or its root.
        self.leaves = [self.relaxation]
        self.best: Candidate | None = None
        self.is_interrupted = False
        #: Soft margins up to this size count as zero, if class means coincide (case A).
        self.rounding = 0.0

    @property
    def value(self) -> float:
        """κ of the best pair."""
        assert self.best is not None
        return self.best.margin.value

    @property
    def is_closed(self) -> bool:
        """Whether the bound is within the tolerance of the best value."""
        return relative_gap(self.bound, self.value) <= self.tol

    @property
    def is_rounded(self) -> bool:
        """Whether rounding hides a gap of the size of the tolerance."""
        rounding = self.problem.rounding(self.problem.stimuli.mu)
        return rounding > self.tol * abs(self.value)

    @property
    def bound(self) -> float:
        """Upper bound on κ of any pair."""
        return min(self.relaxation.lowest, self.branched)

    def ascend(self, start: np.ndarray, reach: float = 1.0) -> None:
        """Ascend from an input projection, and keep the end if it is the best so far."""
        limits: dict[str, Any] = {"max_iter": _EVALUATIONS, "tol": self.ascent_tol}
        self.keep(ascend(self.problem, start, reach=reach, **limits))

    def explore(self, start: np.ndarray, reach: float = _REACH) -> None:
        """Ascend roughly; continue to convergence if that may give a better pair."""
        assert self.best is not None
        tol = max(_ROUGH_TOL, self.ascent_tol)
        found = ascend(self.problem, start, reach=reach, max_iter=_EVALUATIONS, tol=tol)
        self.keep(found)
        again = abs(float(np.vdot(found.u, self.best.u))) > 1 - _SAME
        behind = relative_gap(self.value, found.margin.value)
        if self.best is found or (not again and behind < _BEHIND):
            self.ascend(found.u, _REACH)

    def keep(self, found: Candidate) -> None:
        """Keep a pair if it is the best so far; raise KeyboardInterrupt after Ctrl-C."""
        if self.best is None or found.margin.value > self.value:
            self.best = found
        found.raise_if_interrupted()

    def certify(self, kernel: np.ndarray | None = None) -> bool:
        """Bound κ at a kernel, that of the best pair; return whether the gap is closed."""
        assert self.best is not None
        if kernel is None:
            kernel = self.problem.kernel(self.best.u, self.best.v)
        self.relaxation.at([kernel], self.best.u)
        return self.is_closed

    def run(self, start: np.ndarray | None = None) -> tuple[Candidate, int]:
        """Search until the gap is closed; return the best pair and the number of steps.

        A ``start`` for one more ascent may be given.
        """
        status = "bounded"
        try:
            if not self.problem.is_formed and self.problem.stimuli.mu.any():
                if self._solve_in_space():
                    status = "certified"
                return self.described(status), self.relaxation.n_evaluations
            self._begin()
            if start is not None:
                self.ascend(start)
            closed = self.certify() or self._follow_atoms()
            closed = closed or self.certify(self._unlimited())
            if self.relaxation.cost > QUICK:
                closed = closed or self._solve_in_space()
            else:
                closed = closed or self._lower() or self._start_again()
            closed = closed or self._enumerate(2) or self._branch()
            if closed or self._enumerate(3):
                status = "certified"
                self._polish()
            elif self.is_rounded:
                status = "unresolved"
        except KeyboardInterrupt:
            if self.best is None:
                raise
            status, self.is_interrupted = "interrupted", True
        return self.described(status), self.relaxation.n_evaluations + self.n_nodes

    def described(self, status: str) -> Candidate:
        """Return the best pair with the bound."""
        assert self.best is not None
        if not np.isfinite(self.bound):  # interrupted before there was a bound
            self.certify(np.zeros_like(self.problem.stimuli.mu))
        bound = self.bound
        if max(abs(bound), abs(self.value)) <= self.rounding:
            bound, status = self.value, "certified"
        # A value clearly above the bound shows that rounding spoils the proof.
        if (
            status in ("certified", "unresolved")
            and relative_gap(self.value, bound) > _ROUNDED
        ):
            return replace(self.best, status="unresolved", upper_bound=None)
        bound = max(bound, self.value)
        status = proven(status, bound, self.value)
        return replace(self.best, status=status, upper_bound=bound)

    def _unlimited(self) -> np.ndarray:
        """Return the best kernel for projections of any norm; it is tight for large η."""
        basis, sizes = root(self.problem.stimuli.psi)
        sizes = self.problem.eta * sizes**2
        return basis @ (basis.T @ self.problem.stimuli.mu / sizes)

    def _begin(self) -> None:
        """Ascend from the pair that is best for small η."""
        problem = self.problem
        _, u, v = problem.best_atom(problem.stimuli.mu)
        # Class means are known up to the rounding of the series, whose size along the
        # kernel is √(aᵀψa).
        _, mean, spread = problem.margin(u, v)
        size = float(np.sqrt(2 * spread / problem.eta))
        if abs(mean) <= _ZERO * size:
            self.rounding = 0.1 * _ZERO * size
        self.ascend(u)
        if problem.growth > AMPLIFIED:
            self.keep(rescue(problem))

    def _follow_atoms(self) -> bool:
        """Ascend from the leading pair of G(d) at the best pair's kernel, while it helps.

        This is a Frank–Wolfe step, which costs far less than lowering the bound to its end.
        Returns whether the gap is closed.
        """
        for _ in range(_ATOMS):
            before = self.best
            assert before is not None
            d = self.problem.gradient_at(self.problem.kernel(before.u, before.v))
            self.explore(self.problem.best_atom(d)[1], 1.0)
            if self.best is before:
                return False
            if self.certify():
                return True
        return False

    def _lower(self, tol: float | None = None) -> bool:
        """Lower the bound to the best κ at most; return whether the gap is closed."""
        assert self.best is not None
        if max(abs(self.relaxation.lowest), abs(self.value)) <= self.rounding:
            return True
        kernel = self.problem.kernel(self.best.u, self.best.v)
        goal = self._goal if tol is None else self.value + tol * abs(self.value)
        self.relaxation.lower([kernel], self.best.u, goal=goal, max_evaluations=_SMOOTHED)
        return self.is_closed

    @property
    def _goal(self) -> float:
        """The bound at which the gap is closed."""
        return self.value + self.tol * abs(self.value)

    def _solve_in_space(self) -> bool:
        """Solve on few directions of a large system; return whether the gap is closed."""

        def small(
            problem: LinearProblem,
            start: np.ndarray | None,
            tol: float,
            max_nodes: int | None,
        ) -> Search:
            search = Search(problem, tol, max_nodes)
            if start is not None and tol == np.inf:
                search.ascend(start, _REACH)
            else:
                self.n_nodes += search.run(start)[1]
            return search

        search = SpaceSearch(self.relaxation, small, self.tol, self.best)
        interrupted = search.run(self.max_nodes)
        self.branched = search.branched
        if (found := search.best) is not None and found is not self.best:
            self.keep(replace(found, margin=self.problem.margin(found.u, found.v)))
        if interrupted:
            raise KeyboardInterrupt
        return self.is_closed

    def _start_again(self) -> bool:
        """Ascend from the directions that the relaxation mixes, until the gap is closed."""
        for start in self.relaxation.starts():
            before = self.best
            self.explore(start)
            if self.best is not before and self.certify():
                return True
        return False

    def _polish(self) -> None:
        """Look for a better optimum within the tolerance, if the problem is small."""
        wanted = self.relaxation.closer(self.tol)
        if relative_gap(self.bound, self.value) > wanted:
            self._lower(wanted)
        if relative_gap(self.bound, self.value) > wanted:
            for start in self.relaxation.starts():
                self.explore(start)

    def _enumerate(self, most: int) -> bool:
        """Compare all directions of a projection of at most so many values.

        The sphere of three values takes many cells, so the tree comes before it.
        """
        if self.n_cells or self.max_nodes == 0:
            return False
        if self._solve_for_one():
            return True
        directions = Directions.of(self.problem, most)
        if directions is None:
            return False
        limit = self.max_nodes or int(min(_CELLS, _CELL_PRODUCTS / directions.cost))
        shape = self.problem.system.n_inputs, self.problem.stimuli.n_channels
        wanted = self.relaxation.closer(self.tol)
        for found in directions.search(self.value, wanted, limit):
            if found.value > self.value:
                u = found.y if directions.of_readout else found.x
                self.explore(u.reshape(shape))
            self.branched, self.n_cells = min(self.branched, found.bound), found.n_cells
            if self.is_closed and found.n_cells > _QUICK_CELLS:
                break
        return self.is_closed

    def _solve_for_one(self) -> bool:
        """Solve for one projection if the other has a single value, which is ±1."""
        problem, one = self.problem, np.ones((1, 1))
        if problem.system.n_inputs * problem.stimuli.n_channels == 1:
            found = Candidate(one, *problem.best_readout(one), "solved")
        elif problem.system.n_outputs == 1:
            u, margin = problem.best_input(one[0])
            found = Candidate(u, one[0], margin, "solved")
        else:
            return False
        self.keep(found)
        self.branched, self.n_cells = self.value, 1
        return True

    def _branch(self) -> bool:
        """Cut the node with the largest bound into sectors until all bounds are closed."""
        cost = self.relaxation.cost
        nodes = self.max_nodes
        if nodes is None:
            nodes = int(min(_NODES, _TREE_PRODUCTS / cost)) * (cost <= QUICK)
        if self.relaxation.lifted is None or self.is_rounded or not nodes:
            return False
        # The bar shows the share of decades from this gap to the tolerance.
        first, shown = relative_gap(self.bound, self.value), 0.0
        with display() as screen, screen.bar("searching for a proof", 1.0) as bar:
            for gap in self._tree(nodes):
                done = np.log(first / gap) / np.log(first / self.tol) if gap else 1.0
                text = f"κ {self.value:.6g}, gap {gap:.2g}, {self.n_nodes} bounds"
                bar.advance(float(done) - shown, text)
                shown = float(done)
        return self.is_closed

    def _tree(self, max_nodes: int) -> Iterator[float]:
        """Run branch and bound; yield the gap after each round."""
        tree = Tree(self.relaxation, self.bound)
        # If rounding disturbs Newton's method, it takes many steps per node.
        left = _STEPS * max_nodes
        while tree.bound > self._goal and self.n_nodes < max_nodes and left > 0:
            made = tree.grow(self._goal)
            if not made:  # only rounding is left
                return
            self.n_nodes += len(made)
            left -= sum(node.n_steps for node in made)
            for node in made:
                if relative_gap(node.lowest, self.value) > self.relaxation.closer(self.tol):
                    for start in islice(node.starts(), _STARTS):
                        self.explore(start)
            self.branched, self.leaves = tree.bound, tree.leaves
            yield relative_gap(self.bound, self.value)


def glance(problem: LinearProblem) -> Candidate:
    """Return the end of one ascent from the best atom, with a bound that may be loose."""
    start = problem.best_atom(problem.stimuli.mu)[1]
    if problem.stimuli.mu.any():
        best = ascend(problem, start, max_iter=_QUICK_EVALUATIONS, tol=_QUICK_TOL)
        if problem.growth > AMPLIFIED:
            best = _better(best, rescue(problem))
    else:
        best = Candidate(start, *problem.best_readout(start), "solved")
    bound = max(bound_near(problem, best.u, best.v), best.margin.value)
    status = proven("certified", bound, best.margin.value)
    status = best.status if best.status == "interrupted" else status
    return replace(best, status=status, upper_bound=bound)


def bound_near(problem: LinearProblem, u: np.ndarray, v: np.ndarray) -> float:
    """Return an upper bound on κ of any pair, from the kernels of one pair.

    The bound (η/2) aᵀψa + σ_max(G(d)) holds at every kernel a. It is evaluated at zero, at
    the kernel of the pair and at its best multiple, which gives a closer bound if the
    relaxation is not tight.
    """
    kernel = problem.kernel(u, v)
    margin = problem.margin_of_kernel(kernel, v)
    multiples = {0.0, 1.0}
    if margin.variance > 0:
        multiples.add(min(1.0, max(0.0, margin.separation / (2 * margin.variance))))
    bounds: list[float] = []
    for factor in multiples:
        a = factor * kernel
        curved = 0.5 * problem.eta * float(a @ (problem.stimuli.psi @ a))
        bounds.append(curved + problem.best_atom(problem.gradient_at(a))[0])
    return min(bounds) - 0.5 * problem.floor


def rescue(problem: LinearProblem) -> Candidate:
    """Return the best pair from many starts, for a network with strong amplification.

    If a network amplifies some inputs strongly, the leading pair of G(μ) drives the most
    amplified directions, which is the worst start. Instead, ascents start from the best of
    all single inputs and some random inputs.
    """
    times = f"{problem.growth:.1e} times before it is read, more than floats can resolve"
    advice = "read it earlier, or scale the weights down"
    refusal = f"the network amplifies its input {times}; {advice}."
    check.require(problem.growth <= _BEYOND, refusal, OverflowError)
    n, n_channels = problem.system.n_inputs, problem.stimuli.n_channels
    rng = np.random.default_rng(0)
    singles = np.eye(n * n_channels)
    singles = singles[:: -(-len(singles) // _MAX_SINGLE)]
    drawn = rng.standard_normal((_RANDOM_STARTS, n * n_channels))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    starts = [flat.reshape(n_channels, n).T for flat in np.concatenate([singles, drawn])]
    values = [problem.best_readout(u)[1].value for u in starts]
    ends: list[Candidate] = []
    for place in np.argsort(values)[::-1][:_ASCENDED]:
        limits: dict[str, Any] = {"max_iter": _EVALUATIONS, "tol": _ASCENT_TOL}
        ends.append(ascend(problem, starts[place], **limits))
        if ends[-1].status == "interrupted":
            break
    return _better(*ends)


def _better(*candidates: Candidate) -> Candidate:
    return max(candidates, key=lambda one: one.margin.value)
