"""The global optimum of the linear problem, with its certificate.

The kernel a is linear in X = v uᵀ and κ is concave in a, so maximising κ over the convex
hull of the unit rank-one matrices, the nuclear-norm ball ‖X‖_* ≤ 1, bounds every pair of
unit projections from above. Frank–Wolfe solves that relaxation: with d = μ − ηψa the best
atom is the leading singular pair of G(d) = Σ_n d_n G⁽¹⁾_n, and

    κ(a) + σ_max(G(d)) − d·a

is an upper bound on the global maximum at every iterate. The fully corrective form keeps
the atoms and re-solves for their weights.

The answer is found first: an ascent from the leading pair of G(μ), the best atom at X = 0.
It joins the atoms, and where the relaxation is tight, which is the rule, the bound closes
on it at the next singular value decomposition. Where the optimal X has a higher rank, the
relaxation is solved to the end, the ascent starts again from the singular pairs of X and
mixtures of them, and the gap that remains is reported.

Local improvement of the relaxed solution X, kept in factors.

Frank–Wolfe alone crawls where the optimal X has rank two or more. Between its steps the
factors of X = A Bᵀ are improved by a quasi-Newton method: ½(‖A‖² + ‖B‖²) is an upper bound
on the nuclear norm that is attained, so that X/½(‖A‖² + ‖B‖²) sweeps the unit ball
(hybrid algorithm of Laue 2012). Only the bound proves anything; this step just gets there
sooner.

The upper bound of the linear problem, lowered by descent in its own variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from ..math.covariances import Factored, root
from .alternating import alternate
from .ascent import ascend
from .linear import LinearProblem
from .result import Candidate, relative_gap


def improve(
    problem: LinearProblem, A: np.ndarray, B: np.ndarray, *, max_iter: int
) -> tuple[np.ndarray, np.ndarray]:
    """Raise κ over X = A Bᵀ with ‖X‖_* ≤ 1.

    Parameters
    ----------
    problem : LinearProblem
    A : ndarray (n_outputs, rank)
    B : ndarray (n_inputs, n_channels, rank)
    max_iter : int
        Largest number of evaluations.

    Returns
    -------
    A, B : ndarray
        Improved factors, scaled so that ½(‖A‖² + ‖B‖²) ≤ 1.
    """
    split = A.size

    def unpack(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return flat[:split].reshape(A.shape), flat[split:].reshape(B.shape)

    def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
        left, right = unpack(flat)
        size = 0.5 * float(flat @ flat)
        a, pull = problem.kernel_of(left, right)
        a = a / size
        shrink = _best_scale(problem, a)
        margin = problem.margin_of_kernel(shrink * a)
        d = problem.gradient_at(shrink * a) * (shrink / size)
        left_bar, right_bar = pull(d)
        # The scale ½‖·‖² is differentiated too: a depends on it as 1/size.
        radial = float(d @ a)
        gradient = np.concatenate([left_bar.ravel(), right_bar.ravel()]) - radial * flat
        return -margin.value, -gradient

    start = np.concatenate([A.ravel(), B.ravel()])
    start = start / np.sqrt(0.5 * start @ start)
    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxfun": max_iter,
            "maxiter": max_iter,
            "maxcor": 20,
            "ftol": 1e-15,
            "gtol": 0.0,
        },
    )
    flat = result.x / np.sqrt(0.5 * result.x @ result.x)
    left, right = unpack(flat)
    shrink = np.sqrt(_best_scale(problem, problem.kernel_of(left, right)[0]))
    return left * shrink, right * shrink


def _best_scale(problem: LinearProblem, a: np.ndarray) -> float:
    """The t in [0, 1] that maximises κ(t a)."""
    linear = float(a @ problem.mean)
    curvature = float(problem.eta * (a @ problem.spread(a)))
    if curvature <= 0:
        return 1.0 if linear > 0 else 0.0
    return float(np.clip(linear / curvature, 0.0, 1.0))


#: Singular value decompositions that may be spent on the bound.
_TIGHTEN_EVALUATIONS = 300
#: Amplification (``LinearProblem.growth``) from which a network is treated with care.
AMPLIFIED = 1e3
_METRIC_PROBES = 64


def tighten(problem: LinearProblem, kernel: np.ndarray) -> float:
    """Lower the upper bound by descent in its own variable.

    σ_max(G(μ − ηψa)) + (η/2) aᵀψa bounds κ from above for *any* kernel a, not only for
    those of the relaxed problem. Frank–Wolfe stalls where minute weights of large atoms
    decide; this D-dimensional convex descent does not need them.

    Parameters
    ----------
    problem : LinearProblem
    kernel : ndarray (n_channels · n_steps,)
        Where to start.

    Returns
    -------
    float
        The lowest bound met.
    """
    root_of_metric = metric_root(problem)
    if root_of_metric is None:
        return np.inf
    metric = Metric(root_of_metric, float(np.sqrt(problem.eta)))
    # The bound at the start sets the scale; it is zero only where nothing is left to do.
    sigma, _, _ = problem.best_atom(problem.gradient_at(kernel))
    scale = sigma + 0.5 * problem.eta * float(kernel @ problem.spread(kernel))
    if scale == 0:
        return 0.0
    lowest = np.inf

    def bound(c: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal lowest
        a = metric.kernel(c)
        sigma, u, v = problem.best_atom(problem.gradient_at(a))
        curved = problem.eta * problem.spread(a)
        value = sigma + 0.5 * float(a @ curved) - problem.offset
        lowest = min(lowest, value + problem.rounding(problem.gradient_at(a)))
        atom = problem.eta * problem.spread(problem.kernel(u, v))
        return value / scale, metric.gradient(curved - atom) / scale

    options = {"maxfun": _TIGHTEN_EVALUATIONS, "maxcor": 30, "ftol": 1e-13, "gtol": 0.0}
    minimize(
        bound, metric.coordinates(kernel), jac=True, method="L-BFGS-B", options=options
    )
    return lowest


@dataclass(frozen=True)
class Metric:
    """Coordinates of kernels: by a root on the stimuli, by one unit on what follows.

    Only ψa matters: a kernel is sought in the range of ψ where that is not everything.
    """

    root: np.ndarray
    unit: float

    @cached_property
    def _inverse(self) -> np.ndarray | None:
        return np.linalg.pinv(self.root) if len(self.root) > self.root.shape[1] else None

    def coordinates(self, kernel: np.ndarray) -> np.ndarray:
        """Coordinates of a kernel."""
        n = len(self.root)
        return np.concatenate([self.root.T @ kernel[:n], self.unit * kernel[n:]])

    def kernel(self, c: np.ndarray) -> np.ndarray:
        """The kernel of coordinates."""
        n, inverse = self.root.shape[1], self._inverse
        plain = (
            np.linalg.solve(self.root.T, c[:n]) if inverse is None else inverse.T @ c[:n]
        )
        return np.concatenate([plain, c[n:] / self.unit])

    def gradient(self, bar: np.ndarray) -> np.ndarray:
        """A gradient by the kernel as one by the coordinates."""
        n, inverse = len(self.root), self._inverse
        plain = (
            np.linalg.solve(self.root, bar[:n]) if inverse is None else inverse @ bar[:n]
        )
        return np.concatenate([plain, bar[n:] / self.unit])


def metric_root(problem: LinearProblem) -> np.ndarray | None:
    """Root of a metric for kernels in which the bound is about equally curved.

    Its quadratic part is (η/2) aᵀψa; where the network amplifies much, σ_max(G(μ − ηψa))
    is far steeper along some directions, and its Frobenius norm tells which.
    """
    curved = problem.eta * problem.stimuli.psi
    if isinstance(curved, Factored):
        return _metric_in_range(problem, curved)
    values = np.linalg.eigvalsh(curved)
    if values[-1] <= 0:
        return None
    if problem.growth > AMPLIFIED:
        R = _probed(problem)
        steep = np.einsum("pno,pmo->nm", R, R)
        steep = np.kron(np.eye(problem.stimuli.n_channels), steep)
        curved = curved + curved @ steep @ curved
    values, vectors = np.linalg.eigh((curved + curved.T) / 2)
    return vectors * np.sqrt(np.clip(values, 1e-12 * values[-1], None))


def _metric_in_range(problem: LinearProblem, curved: Factored) -> np.ndarray | None:
    """The same on the range of ψ, (D, rank), from its factor."""
    basis, sizes = root(curved)
    if not len(sizes):
        return None
    metric = basis * sizes
    if problem.growth <= AMPLIFIED:
        return metric
    by_channel = metric.reshape(problem.stimuli.n_channels, problem.stimuli.n_steps, -1)
    inner = np.eye(len(sizes))
    for R in _probed(problem):
        for part in by_channel:
            seen = part.T @ R
            inner += seen @ seen.T
    return metric @ np.linalg.cholesky(inner)


def _probed(problem: LinearProblem) -> np.ndarray:
    """Responses to random input projections, (n_probes, n_steps, n_outputs)."""
    n = problem.system.n_inputs
    u = np.random.default_rng(1).standard_normal((n, min(n, _METRIC_PROBES)))
    R = problem.system.input_response(u / np.sqrt(u.shape[1]))
    return R.reshape(u.shape[1], problem.stimuli.n_steps, -1)


#: Atoms whose weight falls below this share of the largest one are dropped.
_NEGLIGIBLE = 1e-12
_NOTHING = 1e-30
#: The relaxation counts as solved when it can gain less than this share of the tolerance.
_RELAXED = 0.1
#: Evaluations of one local improvement of the relaxed solution.
_IMPROVE_EVALUATIONS = 200
#: Singular value decompositions without progress that count as a stall.
_PATIENCE = 10
#: Singular pairs of X below this share of the leading one are not started from, and the
#: random mixtures of the others that are.
_MINOR = 1e-6
_MIXTURES = 8
#: Evaluations of one ascent, and the relative change of κ that ends it.
_ASCENT_EVALUATIONS = 500
_ASCENT_TOL = 1e-14
#: Amplification of which no digit is left of what is not amplified.
_BEYOND = 1e15
#: Where a network amplifies much: single inputs and random ones that are tried, how many of
#: the best are ascended from, rounds of alternation at the end.
_MAX_SINGLE, _RANDOM_STARTS, _ASCENDED, _POLISH_ROUNDS = 200, 20, 3, 100


class _Atoms:
    """The rank-one matrices v uᵀ that the iterate is made of, with their kernels."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        self.u: list[np.ndarray] = []
        self.v: list[np.ndarray] = []
        self.kernels = np.empty((0, len(problem.mean)))
        self.weights = np.empty(0)

    def add(self, u: np.ndarray, v: np.ndarray) -> None:
        kernel = self.problem.kernel(u, v)
        self.u.append(u)
        self.v.append(v)
        self.kernels = np.vstack([self.kernels, kernel])
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
            self.u = [u for u, k in zip(self.u, keep, strict=True) if k]
            self.v = [v for v, k in zip(self.v, keep, strict=True) if k]
            self.kernels, self.weights = self.kernels[keep], self.weights[keep]
        return self.weights @ self.kernels

    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Singular value decomposition of X = Σ w v uᵀ: left, values, right."""
        left = np.stack(self.v, axis=1) * self.weights
        right = np.stack([u.T.ravel() for u in self.u], axis=1)
        return _thin_svd(left, right)

    def starts(self) -> list[np.ndarray]:
        """Input projections to ascend from: the singular pairs of X, and mixtures of them.

        Where X has a higher rank, the best unit pair need not be near its leading one.
        """
        _, values, right = self.factors()
        keep = values > _MINOR * values[0]
        rng = np.random.default_rng(0)
        draws = rng.standard_normal((_MIXTURES if keep.sum() > 1 else 0, keep.sum()))
        mixed = np.concatenate([np.eye(keep.sum()), draws * np.sqrt(values[keep])])
        rows = mixed @ right[:, keep].T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return [row.reshape(self.u[0].shape[::-1]).T for row in rows]

    def improve(self) -> None:
        """Replace the atoms by the singular pairs of a locally improved X."""
        n, n_channels = self.u[0].shape
        left, values, right = self.factors()
        keep = values > _NEGLIGIBLE * values[0]
        root = np.sqrt(values[keep])
        B = (right[:, keep] * root).reshape(n_channels, n, -1).transpose(1, 0, 2)
        A, B = improve(self.problem, left[:, keep] * root, B, max_iter=_IMPROVE_EVALUATIONS)
        left, values, right = _thin_svd(A, B.transpose(1, 0, 2).reshape(n * n_channels, -1))
        keep = values > _NEGLIGIBLE * values[0]
        self.v = list(left[:, keep].T)
        self.u = [pair.reshape(n_channels, n).T for pair in right[:, keep].T]
        self.weights = values[keep] / max(1.0, values.sum())
        made = [self.problem.kernel(u, v) for u, v in zip(self.u, self.v, strict=True)]
        self.kernels = np.array(made).reshape(len(made), -1)


def _thin_svd(
    left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular value decomposition of left @ right.T from its thin factors."""
    q_left, r_left = np.linalg.qr(left)
    q_right, r_right = np.linalg.qr(right)
    small_left, values, small_right = np.linalg.svd(r_left @ r_right.T, full_matrices=False)
    return q_left @ small_left, values, q_right @ small_right.T


def simplex_qp(b: np.ndarray, H: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Maximise b·w − ½ wᵀHw over w ≥ 0, Σw ≤ 1, by an active-set method.

    A small convex problem, as many unknowns as there are atoms, but the certificate is
    only as tight as its solution: the weight of a new atom may be many orders below the
    others, where general solvers stop early. Each round solves the optimality conditions
    on the support exactly, leaves it at the first weight that would turn negative, and
    takes in the atom that violates optimality most (Lawson & Hanson 1974, ch. 23).

    Parameters
    ----------
    b : ndarray (m,)
    H : ndarray (m, m)
        Positive semi-definite.
    start : ndarray (m,)
        A feasible point.
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
        excess = b - H @ w - multiplier * unit
        excess[support] = -np.inf
        best = int(np.argmax(excess))
        if excess[best] <= 1e-14 * scale:
            break
        support[best] = True
    w = w[:-1] * unit[:-1]
    return w / max(1.0, w.sum())


def solve(problem: LinearProblem, *, max_iter: int, tol: float) -> tuple[Candidate, int]:
    """Maximise κ over both projections and bound it from above.

    Parameters
    ----------
    problem : LinearProblem
    max_iter : int
        Largest number of singular value decompositions.
    tol : float
        Relative gap to stop at.

    Returns
    -------
    Candidate
        With its upper bound.
    n_svd : int
    """
    atoms = _Atoms(problem)
    kernel = np.zeros_like(problem.mean)
    bound, slack, rounding, pair = np.inf, np.inf, 0.0, None
    slacks: list[float] = []
    best: Candidate | None = None
    status = "max_iterations"
    n_svd = 0
    try:
        while n_svd < max_iter:
            d = problem.gradient_at(kernel)
            sigma, u, v = problem.best_atom(d, pair)
            pair = (u, v)
            n_svd += 1
            value = problem.margin_of_kernel(kernel).value
            slack_of_bound = problem.rounding(d)
            bound = min(bound, value + sigma - float(d @ kernel) + slack_of_bound)
            if best is None:
                rounding = _rounding(problem, u, v)
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
            stalled = len(slacks) > _PATIENCE and min(slacks) > 0.8 * min(
                slacks[:-_PATIENCE]
            )
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
            elif problem.growth > AMPLIFIED and problem.rounding(problem.mean) > tol * abs(
                best.margin.value
            ):
                status = "unresolved"
    except KeyboardInterrupt:
        status = "interrupted"
        if best is None:
            raise
    assert best is not None
    # What is attained is below the bound; by rounding it may seem not to be.
    bound = max(bound, best.margin.value)
    found = Candidate(best.u, best.v, best.margin, best.history, status, bound)
    return found, n_svd


def _ascend(
    problem: LinearProblem, start: np.ndarray, scale: np.ndarray | None = None
) -> Candidate:
    return ascend(
        problem, start, max_iter=_ASCENT_EVALUATIONS, tol=_ASCENT_TOL, scale=scale
    )


def rescue(problem: LinearProblem) -> Candidate:
    """The best answer from many starts, for a network that amplifies some inputs much.

    There the leading pair of G(μ) drives what is amplified most and is the worst place to
    begin. All single inputs and some random projections are tried, and the best of them
    ascended from, in coordinates in which the inputs are alike.
    """
    if problem.growth > _BEYOND:
        raise OverflowError(
            f"this network amplifies its input {problem.growth:.1e} times before it is "
            "read, more than floating point resolves; read it earlier, or scale the "
            "weights down."
        )
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
    best: Candidate | None = None
    for place in np.argsort(values)[::-1][:_ASCENDED]:
        for own in (None, scale[:, None]):
            found = _ascend(problem, starts[place], own)
            if found.status == "interrupted":
                return found if best is None else _better(best, found)
            best = found if best is None else _better(best, found)
    assert best is not None
    polished = alternate(problem, best.u, max_iter=_POLISH_ROUNDS, tol=1e-9)
    return _better(best, polished)


def _rounding(problem: LinearProblem, u: np.ndarray, v: np.ndarray) -> float:
    """Size of a soft margin that is zero up to rounding, judged by a typical pair.

    The class means are known to the rounding of the series, whose size along the kernel
    is the deviation √(aᵀψa).
    """
    _, separation, variance = problem.margin_of_kernel(problem.kernel(u, v))
    return 1e-14 * (abs(separation) + np.sqrt(2 * variance / problem.eta))


def _better(one: Candidate, other: Candidate) -> Candidate:
    return other if other.margin.value > one.margin.value else one
