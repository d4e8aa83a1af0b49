"""The joint optimum of a normal network, a convex problem with an exact solution.

All Green's functions of a normal network share the same invariant directions and planes
(blocks b) and multiply them by numbers γ_nb. With complex coordinates x of u and y of v,
the kernel is a_n = Re Σ_b γ_nb w_b with w_b = conj(y_b) x_b. If there are two blocks or
more, unit u and v reach *every* w of the ball Σ_b |w_b| ≤ 1. So the joint problem is

    max a(w)·μ − (η/2) a(w)ᵀψ a(w)   over   Σ_b |w_b| ≤ 1 ,

a lasso with one group of columns per block. With ψ = SSᵀ its dual has rank(ψ) variables:

    min t + ½|c|²   over   |z_b| ≤ t ,   z_b = Σ_n γ_nb d_n ,   d = μ − √η S c .

Every c gives an upper bound, with the largest |z_b| in place of t. A barrier method solves
the dual on some blocks; the multipliers of their constraints are w. One pass over all
blocks, with N · K multiplications, then proves the optimum or finds missing blocks. The
same form covers noise whose covariance has the same blocks, and the ridge regression of
several targets with one u. For the proofs, see "The optimum and its certificate" in the
documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from .._base.arrays import is_sparse
from ..math.class_moments import root
from ..math.sphere import KernelQuadratic
from ..stimuli.regression import RegressionTask
from ..systems import LinearSystem, NormalModes
from .linear import Candidate, LinearProblem
from .result import relative_gap

#: Relative gap to aim at, far below the tolerance because the last digits cost little.
_GAP = 1e-10
#: Number of blocks at the start, and number of blocks added per round. A quarter of them
#: need the largest t; the others are spread over all missing blocks, because neighbours on
#: a long ring are almost equal.
_FIRST, _JOINED = 256, 128
#: Largest number of passes over all blocks, and of successive passes without progress.
_PASSES, _IDLE = 60, 3
#: Before the next pass, the gap on the chosen blocks is reduced to this share of the gap on
#: all blocks, by this factor at a time. The other two numbers are the limit of Newton steps
#: per factor and the squared step at which they end.
_SHARE, _SHARPER, _NEWTON, _CENTRED = 0.03, 10.0, 60, 1e-3
#: Number added to the diagonal of Newton's matrix, which is scaled to one.
_RIDGE, _TINY = 1e-14, np.finfo(float).tiny
#: A block may have a weight if |z_b| is within this relative distance of its limit.
_NEAR = 1e-2
#: Relative error of a sum of products; relative error up to which a covariance has the same
#: blocks; and size, relative to the states, of a soft margin that counts as zero.
_ROUNDING, _SHARED, _NOTHING = 16 * np.finfo(float).eps, 1e-10, 1e-15


def solve(problem: LinearProblem, *, tol: float) -> tuple[Candidate, int, float] | None:
    """Return the proven optimum of a normal network, the number of passes and the growth.

    Returns None if the network is not normal, or if the method does not reach ``tol``.
    """
    modes = _modes(problem.system)
    prices = None if modes is None else _prices(problem, modes)
    if modes is None or prices is None:
        return None
    if len(prices) == 1:
        return _of_one_block(problem, modes)
    stimuli = problem.stimuli
    basis, sizes = root(stimuli.psi)
    shape = stimuli.n_channels, stimuli.n_steps
    roots = (np.sqrt(problem.eta) * sizes * basis).reshape(*shape, -1)
    least = float(prices.min())
    dual = _Dual(_as_pairs(modes), stimuli.mu.reshape(shape), roots, prices - least)
    found, status = _Weights.none(dual), "certified"
    passes, bound = 0, np.inf
    try:
        for passes, (found, bound) in enumerate(_improved(dual), 1):  # noqa: B007
            pass
    except KeyboardInterrupt:
        if not passes:
            raise
        status = "interrupted"
    u, v = _unit_pair(found, modes, dual.prices)
    margin = problem.margin(u, v)
    bound = max(bound - 0.5 * least, margin.value)
    # If the class means coincide, up to the rounding of the series, both are zero.
    mean, series = np.abs(stimuli.mu).sum(), np.abs(roots).sum() / problem.eta**0.5
    nothing = _NOTHING * dual.largest * float(series)
    if mean <= _NOTHING * series and max(abs(bound), abs(margin.value)) <= nothing:
        bound = margin.value
    if status == "certified" and relative_gap(bound, margin.value) > tol:
        return None
    return Candidate(u, v, margin, status, upper_bound=bound), passes, dual.largest


def _of_one_block(
    problem: LinearProblem, modes: NormalModes
) -> tuple[Candidate, int, float]:
    """Return the optimum of one neuron or one plane: a quadratic on the sphere |w| = 1."""
    stimuli, gamma = problem.stimuli, modes.responses[:, 0]
    sides = [np.real(gamma), -np.imag(gamma)][: problem.system.n_outputs]
    rows = np.kron(np.eye(stimuli.n_channels), np.stack(sides, axis=1))
    w = KernelQuadratic(stimuli.mu, stimuli.psi).maximize(rows, problem.eta)
    parts = w.reshape(stimuli.n_channels, -1)
    u = modes.vectors((parts[:, 0] + 1j * parts[:, 1:].sum(1))[None])
    v = modes.vectors(np.ones(1, dtype=complex))
    margin = problem.margin(u, v)
    found = Candidate(u, v, margin, "certified", upper_bound=margin.value)
    return found, 1, float(np.abs(gamma).max())


def solve_regression(
    system: LinearSystem, task: RegressionTask
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return the optimal u and V of a ridge regression, and the bound that they reach.

    The task may have several targets or several channels. Returns None for a task with
    several of both, and for a network that is not normal.
    """
    modes, n_targets = _modes(system), len(task.cross)
    if modes is None or min(task.n_channels, n_targets) > 1:
        return None
    basis, sizes = root(task.covariance)
    mean = 2 * task.cross.reshape(-1, task.n_steps)
    # Each target has its own variables in the dual.
    roots: np.ndarray = np.sqrt(2) * sizes * basis
    each = np.kron(np.eye(n_targets), roots).reshape(*mean.shape, -1)
    free, curvature = np.zeros(modes.responses.shape[1]), 1 / (2 * task.ridge)
    dual = _Dual(_as_pairs(modes), mean, each, free, slope=0.0, curvature=curvature)
    *_, (found, bound) = _improved(dual)
    # V has the norm Σ_b |w_b|, and u is a unit vector.
    some, total = found.sizes > 0, float(found.sizes.sum())
    own, w = np.sqrt(found.sizes[some])[:, None], found.complex_w[some]
    x = np.zeros((len(free), task.n_channels), dtype=complex)
    y = np.zeros((len(free), n_targets), dtype=complex)
    if task.n_channels == 1:
        x[found.blocks[some]], y[found.blocks[some]] = own, w.conj() / own
    else:
        x[found.blocks[some]], y[found.blocks[some]] = w / own, own
    if not total:
        x[0, 0] = total = 1.0
    return modes.vectors(x / total**0.5), modes.vectors(y * total**0.5), bound


def _modes(system: LinearSystem) -> NormalModes | None:
    """Return the modes of a normal system with finite responses, or None."""
    modes = system.modes()
    return modes if modes is not None and np.isfinite(modes.responses).all() else None


def _as_pairs(modes: NormalModes) -> np.ndarray:
    """Return γ as pairs of real numbers, (n_steps, n_blocks, 2)."""
    viewed: np.ndarray = modes.responses.view(np.float64)
    return viewed.reshape(len(viewed), -1, 2)


def _prices(problem: LinearProblem, modes: NormalModes) -> np.ndarray | None:
    """Return η times the noise variance per block, or None if the noise mixes blocks."""
    P = problem.covariance
    if P is None:
        return np.zeros(len(modes.responses.T))
    n_blocks = len(modes.responses.T)
    if is_sparse(P):
        spread = P.diagonal()
        same = not (spread - spread[0]).any()
        return np.full(n_blocks, problem.eta * spread[0]) if same else None
    own = np.eye(n_blocks)
    directions = modes.vectors(own)
    variances = ((P @ directions) * directions).sum(0)
    error = 0.0
    for each in (directions, modes.vectors(1j * own)):
        error = max(error, float(np.abs(P @ each - each * variances).max()))
    return problem.eta * variances if error <= _SHARED * np.abs(P).max() else None


def _unit_pair(
    found: _Weights, modes: NormalModes, prices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return unit u and v with conj(y_b) x_b = w_b for every block."""
    n_blocks = modes.responses.shape[1]
    sizes, in_u, in_v = np.zeros((3, n_blocks))
    sizes[found.blocks] = found.sizes
    w = np.zeros((n_blocks, found.w.shape[2]), dtype=complex)
    w[found.blocks] = found.complex_w
    # One block, preferably without a weight, takes the remainder of both norms.
    if prices.any():
        in_v[found.blocks] = found.v
        last = int(np.argmin(in_v))
        in_v[last] = sizes[last] = 0.0
        some = sizes > 0
        in_v /= in_v.sum()
        in_u[some] = sizes[some] ** 2 / in_v[some]
        in_u[last] = max(0.0, 1 - in_u.sum())
    else:
        last = int(np.argmin(sizes))
        p, others = sizes[last], np.delete(np.arange(len(sizes)), [last])
        r = float(sizes[others].sum())
        share = sizes[others] / r if r > 0 else np.eye(1, n_blocks - 1)[0]
        # x = |u_last|² solves p²/x + r²/(1 − x) = 1; a root exists because p + r ≤ 1.
        sum_of_roots = 1 + p**2 - r**2
        apart = np.sqrt(max(0.0, sum_of_roots**2 - 4 * p**2))
        x = 2 * p**2 / (sum_of_roots + apart) if p > 0 else 0.0
        in_u[others], in_u[last] = (1 - x) * share, x
        in_v[others], in_v[last] = r**2 / (1 - x) * share, max(0.0, 1 - r**2 / (1 - x))
    y = np.sqrt(in_v)
    x = np.zeros_like(w)
    some = (sizes > 0) & (y > 0)
    x[some] = w[some] / y[some, None]
    x[~some, 0] = np.sqrt(in_u[~some])
    u, v = modes.vectors(x), modes.vectors(y.astype(complex))
    return u / np.linalg.norm(u), v / np.linalg.norm(v)


@dataclass(frozen=True, eq=False)
class _Weights:
    """The weights of some blocks in w and in |v|²."""

    blocks: np.ndarray
    #: conj(w) as pairs of real numbers, (n_blocks, 2, n_signals).
    w: np.ndarray
    v: np.ndarray

    @classmethod
    def none(cls, dual: _Dual) -> _Weights:
        """Return no weights in w, and a readout of the block whose noise costs least."""
        free = np.array([np.argmin(dual.prices)])
        return cls(free, np.zeros((1, 2, len(dual.mean))), np.ones(1))

    @cached_property
    def sizes(self) -> np.ndarray:
        """The sizes |w_b|."""
        return np.sqrt((self.w**2).sum((1, 2)))

    @property
    def complex_w(self) -> np.ndarray:
        """The complex w, (n_blocks, n_signals)."""
        return self.w[:, 0] - 1j * self.w[:, 1]


@dataclass(frozen=True, eq=False)
class _Point:
    """The variables of the dual: c, and the multipliers e of |u|² = 1 and f of |v|² = 1."""

    c: np.ndarray
    e: float
    f: float

    @property
    def t(self) -> float:
        """Bound on |z_b| for a block of price zero."""
        return (self.e + self.f) / 2

    def raised(self, t: float) -> _Point:
        """Return this point with another t and the same e − f."""
        return _Point(self.c, self.e + t - self.t, self.f + t - self.t)


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual problem min h(t) + ½|c|² over |z_b|² ≤ e (f + price_b), t = (e + f)/2.

    Here h(t) = slope · t + ½ curvature · t², and z_b = Σ_n γ_nb d_n for the signals
    d = mean − roots · c, one per channel or target. Without prices e = f, and the
    constraint is |z_b| ≤ t.
    """

    #: Shapes: gamma (n_steps, n_blocks, 2), mean (n_signals, n_steps),
    #: roots (n_signals, n_steps, rank), prices (n_blocks,).
    gamma: np.ndarray
    mean: np.ndarray
    roots: np.ndarray
    prices: np.ndarray
    slope: float = 1.0
    curvature: float = 0.0

    @cached_property
    def largest(self) -> float:
        """The largest ‖G_n‖ over the steps n."""
        return max(float((row**2).sum(1).max()) for row in self.gamma) ** 0.5

    def value(self, at: _Point) -> float:
        """Return the objective h(t) + ½|c|² at a point."""
        height = self.slope * at.t + 0.5 * self.curvature * at.t**2
        return height + 0.5 * float(at.c @ at.c)

    def scan(self, at: _Point) -> tuple[np.ndarray, float]:
        """Return the t that each block needs at c and e − f, and the bound that follows."""
        d = self.mean - self.roots @ at.c
        n_steps, n_blocks, _ = self.gamma.shape
        z = (d @ self.gamma.reshape(n_steps, -1)).reshape(-1, n_blocks, 2)
        # This form of the root of (t + s)(t − s + price) = |z|² avoids a difference of
        # large numbers.
        s, half, square = (at.e - at.f) / 2, self.prices / 2, (z**2).sum((0, 2))
        whole = np.sqrt((s - half) ** 2 + square)
        rest = square + s * (s - self.prices)
        needed = np.where(half > 0, rest / np.maximum(whole + half, _TINY), whole)
        rounding = _ROUNDING * float(np.abs(d).sum()) * self.largest
        highest = max(float(needed.max()), 0.0) + rounding
        return needed, self.value(at.raised(highest))


def _improved(dual: _Dual) -> Iterator[tuple[_Weights, float]]:
    """Yield weights and a bound after each pass over all blocks, until they meet."""
    at = _Point(np.zeros_like(dual.roots[0, 0]), 0.0, 0.0)
    best, value = _Weights.none(dual), 0.0
    needed, bound = dual.scan(at)
    yield best, bound
    blocks, gap, idle = _spread(needed, np.arange(len(needed)), _FIRST), bound, 0
    for _ in range(_PASSES):
        if gap <= _GAP * abs(value) or idle > _IDLE:
            return
        barrier = _Barrier.of(dual, blocks)
        at = at.raised(max(float(needed[blocks].max()), 0.0) + gap)
        at, tau = barrier.follow(at, gap, max(_SHARE * gap, 0.1 * _GAP * abs(value)))
        # Prefer few blocks if they reach the same value.
        for weights, less in (barrier.multipliers(at, tau), 0.0), (barrier.sparse(at), 0.1):
            if weights is not None:
                found, reached = barrier.attained(weights)
                if reached > value - less * _GAP * abs(value):
                    best, value = found, reached
        needed, proven = dual.scan(at)
        bound = min(bound, proven)
        idle = 0 if bound - value < 0.5 * gap else idle + 1
        gap = bound - value
        yield best, bound
        missing = np.flatnonzero(needed > needed[blocks].max())
        blocks = np.union1d(blocks, _spread(needed, missing, _JOINED))


def _spread(needed: np.ndarray, blocks: np.ndarray, count: int) -> np.ndarray:
    """Return about ``count`` blocks: those of largest need, and others at a stride."""
    if len(blocks) <= count:
        return blocks
    order = blocks[np.argsort(-needed[blocks], kind="stable")]
    first, rest = order[: count // 4], np.sort(order[count // 4 :])
    return np.union1d(first, rest[:: -(-len(rest) // (count - len(first)))])


@dataclass(frozen=True, eq=False)
class _Barrier:
    """The dual on some blocks, with z_b = p_b − A_b c, as a logarithmic barrier problem.

    It minimises φ = τ (h(t) + ½|c|²) − Σ_b log g_b with g_b = e (f + price_b) − |z_b|².
    """

    dual: _Dual
    blocks: np.ndarray
    prices: np.ndarray
    #: Shapes: p (n_blocks, width), A (n_blocks · width, rank).
    p: np.ndarray
    A: np.ndarray

    @classmethod
    def of(cls, dual: _Dual, blocks: np.ndarray) -> _Barrier:
        """Return the barrier problem of these blocks."""
        own = dual.gamma[:, blocks]
        p = np.tensordot(own, dual.mean, axes=(0, 1))
        A = np.tensordot(own, dual.roots, axes=(0, 1)).reshape(p.size, -1)
        return cls(dual, blocks, dual.prices[blocks], p.reshape(len(blocks), -1), A)

    def _terms(self, at: _Point) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return z, f + price, and g, which is negative outside the feasible set."""
        z = self.p - (self.A @ at.c).reshape(self.p.shape)
        right = at.f + self.prices
        # The product of sum and difference keeps the digits of a small g.
        mean = np.sqrt(np.maximum(at.e * right, 0.0))
        size = np.sqrt((z**2).sum(1))
        inside = (right > 0) & (at.e > 0)
        return z, right, np.where(inside, (mean - size) * (mean + size), -1.0)

    def _pulled(self, z: np.ndarray) -> np.ndarray:
        """Return A_bᵀ z_b for each block, (n_blocks, rank)."""
        return (self.A * z.reshape(-1, 1)).reshape(*self.p.shape, -1).sum(1)

    def _height(self, at: _Point, tau: float) -> float:
        g = self._terms(at)[2]
        if not (g > 0).all():
            return np.inf
        return tau * self.dual.value(at) - float(np.log(g).sum())

    def follow(self, at: _Point, gap: float, goal: float) -> tuple[_Point, float]:
        """Follow the central path from one gap to a goal; return the point and its τ."""
        tau = 2 * len(self.blocks) / gap
        while True:
            at = self._centred(at, tau)
            if 2 * len(self.blocks) <= goal * tau:
                return at, tau
            tau *= _SHARPER

    def _centred(self, at: _Point, tau: float) -> _Point:
        """Return the minimiser of φ, by Newton's method."""
        rank = len(at.c)
        size = rank + 2
        for _ in range(_NEWTON):
            z, right, g = self._terms(at)
            if not (g > 0).all():  # only rounding is left
                return at
            slopes = np.empty((len(g), size))  # ∇g / g
            slopes[:, :rank] = 2 * self._pulled(z)
            slopes[:, -2], slopes[:, -1] = right, at.e
            slopes /= g[:, None]
            gradient: np.ndarray = -slopes.sum(0)
            gradient[:rank] += tau * at.c
            gradient[-2:] += tau * (self.dual.slope + self.dual.curvature * at.t) / 2
            # The Hessian is the sum of the slopes of log g squared and the curvature of g.
            H = slopes.T @ slopes
            weighted = self.A * np.repeat(np.sqrt(2 / g), self.p.shape[1])[:, None]
            H[:rank, :rank] += weighted.T @ weighted
            H[:rank, :rank][np.diag_indices(rank)] += tau
            H[-2:, -2:] += tau * self.dual.curvature / 4
            H[-2, -1] -= float((1 / g).sum())
            H[-1, -2] = H[-2, -1]
            unit = 1 / np.sqrt(np.diag(H))
            scaled: np.ndarray = H * unit[:, None] * unit
            scaled[np.diag_indices(size)] += _RIDGE
            step: np.ndarray = -unit * cho_solve(cho_factor(scaled), unit * gradient)
            decrement = -float(gradient @ step)
            start, length = np.append(at.c, [at.e, at.f]), 2.0
            ahead, height = at, self._height(at, tau)
            # Take the best of the halved steps, not the first one that lowers φ: the first
            # may lie so near the boundary that many small steps would follow.
            while length > 1e-10:
                length /= 2
                moved = start + length * step
                there = _Point(moved[:-2], float(moved[-2]), float(moved[-1]))
                if (lower := self._height(there, tau)) < height:
                    ahead, height = there, lower
                elif ahead is not at:
                    break
            if ahead is at:  # only rounding is left
                return at
            at = ahead
            if decrement < _CENTRED:
                break
        return at

    def multipliers(self, at: _Point, tau: float) -> _Weights:
        """Return the weights (multipliers) of the constraints at the centre for τ."""
        z, _, g = self._terms(at)
        w = z * (2 / (tau * g))[:, None]
        return _Weights(self.blocks, w.reshape(len(z), 2, -1), 2 * at.e / (tau * g))

    def sparse(self, at: _Point) -> _Weights | None:
        """Return weights of few blocks that are optimal at c.

        They have w_b along z_b and c = Σ A_bᵀw_b. The norms of u and v are two further
        equations. Non-negative least squares finds a solution with no more blocks than
        equations. Returns None if no block is at its limit.
        """
        z, right, _ = self._terms(at)
        size = np.sqrt((z**2).sum(1))
        near = size > (1 - _NEAR) * np.sqrt(at.e * right)
        if not near.any():
            return None
        w = np.zeros_like(z)
        w[near] = z[near] / size[near, None]
        turned = np.sqrt(at.e / right[near])
        total = self.dual.slope + self.dual.curvature * at.t
        unit = float(np.linalg.norm(at.c)) or 1.0
        rows = [
            self._pulled(w)[near].T / unit,
            turned[None] / total,
            1 / turned[None] / total,
        ]
        try:
            sizes, _ = nnls(np.vstack(rows), np.append(at.c / unit, [1.0, 1.0]))
        except RuntimeError:  # too many steps
            return None
        w[near] *= sizes[:, None]
        in_v = np.zeros(len(w))
        in_v[near] = sizes * turned
        return (
            _Weights(self.blocks, w.reshape(len(z), 2, -1), in_v) if sizes.any() else None
        )

    def attained(self, found: _Weights) -> tuple[_Weights, float]:
        """Return the weights, scaled to the best size within the ball, and their value."""
        flat, sizes, v = found.w.ravel(), found.sizes, found.v / found.v.sum()
        pulled, total, cost = flat @ self.A, float(sizes.sum()), 0.0
        rising, curved = float(flat @ self.p.ravel()), float(pulled @ pulled)
        if self.prices.any() and not self.dual.curvature:
            cost = 0.5 * float(self.prices @ v)
        if not total:
            longest = 0.0
        elif self.dual.curvature:
            curved, longest = curved + total**2 / self.dual.curvature, np.inf
        elif self.prices.any():
            some = sizes > 0
            longest = float((sizes[some] ** 2 / v[some]).sum()) ** -0.5
        else:
            longest = 1 / total
        scale = min(rising / curved, longest) if curved > 0 else longest
        value = scale * rising - 0.5 * scale**2 * curved - cost
        return _Weights(found.blocks, scale * found.w, v), value
