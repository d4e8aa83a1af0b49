"""The global optimum of the linear problem, with its certificate.

Maximising κ, concave in X = v uᵀ, over the nuclear-norm ball ‖X‖_* ≤ 1 bounds every pair of
unit projections. Frank–Wolfe solves that relaxation: with d = μ − ηψa the best atom is the
leading singular pair of G(d) = Σ_n d_n G⁽¹⁾_n, and κ(a) + σ_max(G(d)) − d·a is an upper
bound at every iterate. Atoms are re-weighted in every step and the factors of X = A Bᵀ
improved in between (hybrid algorithm of Laue 2012). The answer is found first, by an ascent
from the leading pair of G(μ); where the relaxation is tight, which is the rule, the bound
closes on it. Where it is not, the ascent starts again from the singular pairs of X.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._base import checks as check
from .alternating import alternate
from .ascent import ascend
from .bounds import AMPLIFIED, descend, metric_of
from .linear import LinearProblem
from .result import Candidate, relative_gap

#: Atoms whose weight falls below this share of the largest one are dropped.
_NEGLIGIBLE, _NOTHING = 1e-12, 1e-30
#: The relaxation counts as solved when it can gain less than this share of the tolerance,
#: and as stalled after so many singular value decompositions without progress.
_RELAXED, _PATIENCE = 0.1, 10
#: Evaluations of one local improvement of the relaxed solution, and of lowering the bound.
_IMPROVE_EVALUATIONS, _TIGHTEN_EVALUATIONS = 200, 300
#: Singular pairs of X below this share of the leading one are not started from; random
#: mixtures of the others that are.
_MINOR, _MIXTURES = 1e-6, 8
#: Evaluations of one ascent, and the relative change of κ that ends it.
_EVALUATIONS, _ASCENT_TOL = 500, 1e-14
#: Amplification of which no digit is left of what is not amplified.
_BEYOND = 1e15
#: Where a network amplifies much: single inputs and random ones that are tried, how many of
#: the best are ascended from, rounds of alternation at the end.
_MAX_SINGLE, _RANDOM_STARTS, _ASCENDED, _POLISH_ROUNDS = 200, 20, 3, 100


def tighten(problem: LinearProblem, kernel: np.ndarray) -> float:
    """The lowest bound met by descent from a kernel.

    σ_max(G(μ − ηψa)) + (η/2) aᵀψa bounds κ from above for *any* kernel a. Frank–Wolfe
    stalls where minute weights of large atoms decide; this convex descent does not need
    them.
    """
    metric = metric_of(problem)
    if metric.is_empty:
        return np.inf

    def bound(kernels: list[np.ndarray], *_) -> tuple:
        (a,) = kernels
        d, curved = problem.gradient_at(a), problem.eta * problem.spread(a)
        sigma, u, v = problem.best_atom(d)
        value = sigma + 0.5 * float(a @ curved) - problem.offset
        atom = problem.eta * problem.spread(problem.kernel(u, v))
        return value + problem.rounding(d), value, [curved - atom], np.zeros(0)

    # The bound at the start sets the scale; it is zero only where nothing is left to do.
    scale = bound([kernel])[1] + problem.offset
    if scale == 0:
        return 0.0
    limit = _TIGHTEN_EVALUATIONS
    return descend(bound, [kernel], [metric], unit=scale, max_evaluations=limit)


class _Atoms:
    """The rank-one matrices v uᵀ that the iterate X is made of, with their kernels."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        self._shape = (problem.stimuli.n_channels, problem.system.n_inputs)
        #: v and u, flat by channel, in columns; a row for each kernel.
        self.left = np.empty((problem.system.n_outputs, 0))
        self.right = np.empty((self._shape[0] * self._shape[1], 0))
        self.kernels = np.empty((0, len(problem.mean)))
        self.weights = np.empty(0)

    def add(self, u: np.ndarray, v: np.ndarray) -> None:
        self.left = np.column_stack([self.left, v])
        self.right = np.column_stack([self.right, u.T.ravel()])
        self.kernels = np.vstack([self.kernels, self.problem.kernel(u, v)])
        self.weights = np.append(self.weights, 0.0)

    def reweight(self) -> np.ndarray:
        """Solve for the weights on the simplex, drop the unused atoms, return a."""
        b = self.kernels @ self.problem.mean
        H = self.problem.eta * self.kernels @ self.problem.spread(self.kernels.T)
        weights = simplex_qp(b, (H + H.T) / 2, self.weights)
        # Far below the rounding of their sum with the unused weight, which is one.
        self.weights = np.where(weights < _NOTHING, 0.0, weights)
        keep = self.weights > _NEGLIGIBLE * self.weights.max()
        if keep.any():
            self.left, self.right = self.left[:, keep], self.right[:, keep]
            self.kernels, self.weights = self.kernels[keep], self.weights[keep]
        return self.weights @ self.kernels

    def starts(self) -> list[np.ndarray]:
        """Input projections to ascend from: singular pairs of X, and mixtures of them."""
        _, values, right = _thin_svd(self.left * self.weights, self.right, _MINOR)
        rank = len(values)
        rng = np.random.default_rng(0)
        draws = rng.standard_normal((_MIXTURES if rank > 1 else 0, rank))
        rows = np.concatenate([np.eye(rank), draws * np.sqrt(values)]) @ right.T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return [row.reshape(self._shape).T for row in rows]

    def improve(self) -> None:
        """Replace the atoms by the singular pairs of a locally improved X."""
        left, values, right = _thin_svd(self.left * self.weights, self.right, _NEGLIGIBLE)
        root = np.sqrt(values)
        B = (right * root).reshape(*self._shape, -1).swapaxes(0, 1)
        A, B = self.problem.improve(left * root, B, max_iter=_IMPROVE_EVALUATIONS)
        B = B.swapaxes(0, 1).reshape(len(right), -1)
        self.left, self.weights, self.right = _thin_svd(A, B, _NEGLIGIBLE)
        self.weights = self.weights / max(1.0, self.weights.sum())
        pairs = zip(self.left.T, self.right.T, strict=True)
        made = [self.problem.kernel(u.reshape(self._shape).T, v) for v, u in pairs]
        self.kernels = np.array(made).reshape(len(made), -1)


def _thin_svd(
    left: np.ndarray, right: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular pairs of left @ right.T above a share of the largest value."""
    q_left, r_left = np.linalg.qr(left)
    q_right, r_right = np.linalg.qr(right)
    small_left, values, small_right = np.linalg.svd(r_left @ r_right.T, full_matrices=False)
    keep = values > share * values[0]
    return q_left @ small_left[:, keep], values[keep], q_right @ small_right[keep].T


def simplex_qp(b: np.ndarray, H: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Maximise b·w − ½ wᵀHw over w ≥ 0, Σw ≤ 1, by an active-set method.

    The certificate is only as tight as this: the weight of a new atom may be many orders
    below the others, where general solvers stop early. Each round solves the optimality
    conditions on the support exactly, leaves it at the first weight that would turn
    negative, and takes in the atom that violates optimality most (Lawson & Hanson 1974, ch.
    23). H is positive semi-definite, ``start`` feasible.
    """
    # An atom of zero effect takes up the weight that is not used.
    m = len(b) + 1
    b = np.append(b, 0.0)
    H = np.pad(H, (0, 1))
    if np.abs(H).max() + np.abs(b).max() == 0:
        return start
    # Atoms of a network that amplifies much differ by many orders. In units in which each
    # has the effect of the smallest one, their weights are comparable.
    size = np.sqrt(np.diag(H)) + np.abs(b)
    real = size > 1e-12 * size.max()
    unit = np.where(real, size[real].min() / np.where(real, size, 1.0), 1.0)
    b, H = unit * b, unit[:, None] * H * unit
    scale = np.abs(H).max() + np.abs(b).max()
    w = np.append(start, max(0.0, 1 - start.sum()))
    w = w / w.sum() / unit
    support = w > 0
    for _ in range(10 * m + 10):
        while True:
            inside = np.flatnonzero(support)
            system = np.zeros((len(inside) + 1, len(inside) + 1))
            system[:-1, :-1] = H[np.ix_(inside, inside)]
            system[:-1, -1] = system[-1, :-1] = scale * unit[inside]
            target = np.append(b[inside], scale)
            # Least squares: two equal atoms make the system singular, not unsolvable.
            found = np.linalg.lstsq(system, target, rcond=1e-15)[0]
            wanted, multiplier = found[:-1], found[-1] * scale
            # What is left over lies in the kernel of the system and rises with b: neither
            # H nor the sum of the weights limits it, only the first weight to vanish.
            rest = (target - system @ found)[:-1]
            unlimited = np.abs(rest).max() > 1e-12 * scale * (1 + np.abs(found).max())
            if not unlimited and (wanted >= 0).all():
                break
            step = rest if unlimited else wanted - w[inside]
            falling = step < 0 if unlimited else wanted < 0
            reach = np.where(falling, w[inside] / np.where(step < 0, -step, 1.0), np.inf)
            first = int(np.argmin(reach))
            w[inside] += reach[first] * step
            w[inside[first]] = 0.0
            support[inside[first]] = False
        w[:] = 0.0
        w[inside] = wanted
        violation = b - H @ w - multiplier * unit
        violation[support] = -np.inf
        best = int(np.argmax(violation))
        if violation[best] <= 1e-14 * scale:
            break
        support[best] = True
    w = w[:-1] * unit[:-1]
    return w / max(1.0, w.sum())


def solve(problem: LinearProblem, *, max_iter: int, tol: float) -> tuple[Candidate, int]:
    """Maximise κ over both projections and bound it from above.

    It stops at the relative gap ``tol``, or after ``max_iter`` singular value
    decompositions, whose number is returned too.
    """
    atoms = _Atoms(problem)
    kernel = np.zeros_like(problem.mean)
    bound, slack, rounding, pair = np.inf, np.inf, 0.0, None
    slacks: list[float] = []
    best: Candidate | None = None
    status, n_svd = "max_iterations", 0
    try:
        while n_svd < max_iter:
            d = problem.gradient_at(kernel)
            sigma, u, v = problem.best_atom(d, pair)
            pair = (u, v)
            n_svd += 1
            value = problem.margin_of_kernel(kernel).value
            bound = min(bound, value + sigma - float(d @ kernel) + problem.rounding(d))
            if best is None:
                # Class means are known to the rounding of the series, whose size along the
                # kernel is √(aᵀψa): a soft margin below is zero.
                _, mean, spread = problem.margin_of_kernel(problem.kernel(u, v))
                rounding = 1e-14 * (abs(mean) + np.sqrt(2 * spread / problem.eta))
                best = _ascend(problem, u)
                if problem.growth > AMPLIFIED and best.status != "interrupted":
                    best = _better(best, rescue(problem))
                    own = problem.kernel(best.u, best.v)
                    bound = min(bound, tighten(problem, own))
                atoms.add(best.u, best.v)
                if best.status == "interrupted":
                    status = "interrupted"
                    break
            # What the relaxation itself can still gain.
            slack = relative_gap(bound, value)
            if relative_gap(bound, best.margin.value) <= tol:
                status = "certified"
                break
            slacks.append(slack)
            earlier = slacks[:-_PATIENCE]
            stalled = earlier and min(slacks) > 0.8 * min(earlier)
            if slack <= _RELAXED * tol or stalled:
                status = "relaxed"
                break
            atoms.add(u, v)
            kernel = atoms.reweight()
            # Without any weight X is zero: the classes coincide up to rounding.
            if n_svd > 1 and atoms.weights.any():
                atoms.improve()
                kernel = atoms.weights @ atoms.kernels
        if status not in ("certified", "interrupted"):
            assert best is not None
            for start in atoms.starts() if atoms.weights.any() else []:
                other = _ascend(problem, start)
                best = _better(best, other)
                if other.status == "interrupted":
                    raise KeyboardInterrupt  # noqa: TRY301 - as if it came from here
                if relative_gap(bound, best.margin.value) <= tol:
                    break
            gap = relative_gap(bound, best.margin.value)
            if slack > _RELAXED * tol and gap > tol and bound > rounding:
                bound = min(bound, tighten(problem, kernel))
            # Class means that coincide (case A): both are zero, up to rounding.
            if max(abs(bound), abs(best.margin.value)) <= rounding:
                bound = best.margin.value
            if relative_gap(bound, best.margin.value) <= tol:
                status = "certified"
            elif problem.growth > AMPLIFIED and (
                problem.rounding(problem.mean) > tol * abs(best.margin.value)
            ):
                status = "unresolved"
    except KeyboardInterrupt:
        status = "interrupted"
        if best is None:
            raise
    assert best is not None
    # What is attained is below the bound; by rounding it may seem not to be.
    bound = max(bound, best.margin.value)
    return replace(best, status=status, upper_bound=bound), n_svd


def _ascend(problem: LinearProblem, start: np.ndarray, scale: Any = None) -> Candidate:
    return ascend(problem, start, max_iter=_EVALUATIONS, tol=_ASCENT_TOL, scale=scale)


def rescue(problem: LinearProblem) -> Candidate:
    """The best answer from many starts, for a network that amplifies some inputs much.

    There the leading pair of G(μ) drives what is amplified most, the worst place to begin.
    The best of all single inputs and some random ones are ascended from, in coordinates in
    which the inputs are alike.
    """
    times = f"{problem.growth:.1e} times before it is read, beyond what floats resolve"
    advice = "read it earlier, or scale the weights down"
    refusal = f"this network amplifies its input {times}; {advice}."
    check.require(problem.growth <= _BEYOND, refusal, OverflowError)
    n, n_channels = problem.system.n_inputs, problem.stimuli.n_channels
    rng = np.random.default_rng(0)
    singles = np.eye(n * n_channels)
    singles = singles[:: -(-len(singles) // _MAX_SINGLE)]
    drawn = rng.standard_normal((_RANDOM_STARTS, n * n_channels))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    starts = [flat.reshape(n_channels, n).T for flat in np.concatenate([singles, drawn])]
    probes = rng.standard_normal((problem.system.n_outputs, 8))
    rows = problem.system.readout_response(probes)
    sensitivity = np.maximum(np.sqrt((rows**2).sum((0, 2))), np.finfo(float).tiny)
    scale = np.clip(sensitivity.max() / sensitivity, 1, 1e8)
    values = [problem.best_readout(u)[1].value for u in starts]
    ends: list[Candidate] = []
    for place in np.argsort(values)[::-1][:_ASCENDED]:
        for own in (None, scale[:, None]):
            ends.append(_ascend(problem, starts[place], own))
            if ends[-1].status == "interrupted":
                return _better(*ends)
    best = _better(*ends)
    return _better(best, alternate(problem, best.u, max_iter=_POLISH_ROUNDS, tol=1e-9))


def _better(*candidates: Candidate) -> Candidate:
    return max(candidates, key=lambda one: one.margin.value)
