"""One upper bound for every linear problem, and how to lower it.

Several readouts v_j read one network that is driven through one unit u. Each soft margin
κ_j = a_j·μ_j − (η/2) a_jᵀψ_j a_j − (η/2) v_jᵀP_j v_j is concave in its kernel a_j(u, v_j).
Linearise at any kernels a_j, with d_j = μ_j − ηψ_j a_j. Then for all numbers t_j that make
t_j + ηP_j positive, and every R with uᵀRu ≥ −ρ on the allowed input projections,

    Σκ_j ≤ Σ_j (η/2) a_jᵀψ_j a_j + ½ Σ_j t_j + ½ ρ
           + ½ λ_max(R + Σ_j G(d_j)ᵀ (t_j + ηP_j)⁻¹ G(d_j)) .

(Maximise over v_j first: 2 v·x ≤ vᵀ(t + ηP)v + xᵀ(t + ηP)⁻¹x.) It is the largest eigenvalue
of a block matrix in (v, u), after elimination of v, and convex in all of its variables
together. With one readout, P = 0 and R = 0 it is σ_max(G(d)) + (η/2) aᵀψa. Ridge regression
has readouts of any length: t_j = 0 and ηP_j = 2λ. Restrictions of the input projection
enter through R: see `Entries`, `Squares` and `Sectors`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from scipy.linalg import eigh, qr
from scipy.optimize import minimize

from ..math.covariances import root
from .linear import LinearProblem, Responses

#: Amplification (``LinearProblem.growth``) from which a network needs special care.
AMPLIFIED = 1e3
#: Number of random inputs that find steep directions, and the share in a smoothed maximum
#: below which a direction is left out.
_PROBES, _NEGLIGIBLE = 64, 1e-9
#: Relative error of an eigenvalue, and how many to compute for a large network.
_ROUNDING, _LARGE_SPECTRUM = 4 * np.finfo(float).eps, 6
#: Memory of second derivatives, Newton steps per barrier, and the relative gap they end at.
_NEWTON_BYTES, _NEWTON_STEPS, _NEWTON_TOL = 2**28, 300, 1e-7
#: Smallest share and largest number of directions to start from; angles between the leading
#: two in units of theirs, and number of mixtures of all.
_MINOR, _DIRECTIONS, _ANGLES, _MIXTURES = 1e-4, 6, np.array([0.5, 1.0]), 8
#: Evaluations in t alone.
_AT_EVALUATIONS = 150


class _Closed(Exception):
    """The bound has reached its goal."""


@dataclass(frozen=True)
class Metric:
    """Coordinates c = rootᵀa of kernels in which the bound is about equally curved.

    Of root and inverse, both (D, rank), inverseᵀ root = 1.
    """

    root: np.ndarray
    inverse: np.ndarray


def metric_of(problem: LinearProblem) -> Metric:
    """The metric of (η/2) aᵀψa, the quadratic part of the bound.

    Only ψa matters, so kernels are sought in the range of ψ. And only G(d) matters of
    d = μ − ηψa: if all kernels of the system lie in the span of Q, the best a does too
    (of all with the same Qᵀψa, the least aᵀψa). A network that moves smoothly has few
    kernels: 30 dimensions for 140 steps.

    Where the network amplifies much, σ_max(G(d)) is far steeper along some directions, and
    its Frobenius norm tells which.
    """
    curved, n_channels = problem.eta * problem.stimuli.psi, problem.stimuli.n_channels
    basis, sizes = root(curved)
    probed = _probed(problem)
    Q = _span(probed.transpose(1, 0, 2).reshape(problem.stimuli.n_steps, -1))
    if n_channels * Q.shape[1] < len(sizes):
        columns = np.kron(np.eye(n_channels), Q)
        left, sizes, _ = np.linalg.svd(columns.T @ basis * sizes, full_matrices=False)
        keep = sizes > 1e-7 * sizes.max(initial=0.0)
        basis, sizes = columns @ left[:, keep], sizes[keep]
    inverse = basis / sizes
    made = curved @ inverse
    if problem.growth > AMPLIFIED and len(sizes):
        inner = np.eye(len(sizes))
        for R in probed:
            for part in made.reshape(n_channels, problem.stimuli.n_steps, -1):
                seen = part.T @ R
                inner += seen @ seen.T
        values, vectors = np.linalg.eigh(inner)
        scale = np.sqrt(np.maximum(values, 1.0))
        made, inverse = made @ (vectors * scale), inverse @ (vectors / scale)
    return Metric(made, inverse)


def _span(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span these, up to rounding."""
    Q, R, _ = cast("tuple[np.ndarray, ...]", qr(columns, mode="economic", pivoting=True))
    sizes = np.abs(np.diag(R))
    return Q[:, sizes > 1e-12 * sizes.max(initial=0.0)]


def _probed(problem: LinearProblem) -> np.ndarray:
    """Responses to random input projections, (n_probes, n_steps, n_outputs)."""
    system, n_steps = problem.system, problem.stimuli.n_steps
    n_probes = 2 + 2 * n_steps // system.n_outputs  # twice as many columns as steps
    if problem.growth > AMPLIFIED:
        n_probes = max(n_probes, _PROBES)
    shape = (system.n_inputs, min(system.n_inputs, n_probes))
    u = np.random.default_rng(1).standard_normal(shape)
    R = system.input_response(u / np.sqrt(shape[1]))
    return R.reshape(shape[1], n_steps, -1)


def soft_maximum(
    values: np.ndarray, vectors: np.ndarray, width: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """A smooth function just above the largest eigenvalue, with the shares in its gradient.

    Several eigenvalues meet where a relaxation is not tight; the share of each in the
    gradient is a Boltzmann weight. Returns shares, largest first, with their vectors.
    """
    if not width:
        return float(values[-1]), np.ones(1), vectors[:, -1:]
    share = np.exp((values - values[-1]) / width)
    total = float(share.sum())
    share = share / total
    keep = np.flatnonzero(share > _NEGLIGIBLE)[::-1]
    soft = float(values[-1]) + width * float(np.log(total))
    return soft, share[keep], vectors[:, keep]


class Constraint(Protocol):
    """A restriction of input projections, as R(z) and its price ρ(z), both linear in z."""

    n_variables: int
    #: Whether z must be non-negative.
    is_signed: bool

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Add R to a matrix in place, and return ρ."""
        ...

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Gradient of λ_max + ρ by z, from vectors V (n, k) with their shares in λ_max."""
        ...


class Entries:
    """u ≥ 0: R = S with entries ≥ 0 above the diagonal, as uᵀSu ≥ 0."""

    is_signed = True

    def __init__(self, n: int) -> None:
        self._above, self._n = np.triu_indices(n, 1), n
        self.n_variables = len(self._above[0])

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Add S, at no price."""
        S = np.zeros_like(H)
        S[self._above] = z / self._n  # in units where a step in z is about one in λ
        H += S + S.T
        return 0.0

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """2uᵢuⱼ of the vectors, in units of S."""
        return 2 / self._n * ((V * share) @ V.T)[self._above]


class Squares:
    """u_i² = square: R = −diag δ at the price Σδ·square; u_i² ≤ square: the same, δ ≥ 0."""

    def __init__(self, n: int, square: float, *, is_equal: bool) -> None:
        self.n_variables, self._square = n, square
        self.is_signed = not is_equal

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Add −diag δ, and return Σδ·square."""
        H[np.diag_indices_from(H)] -= z
        return self._square * float(z.sum())

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """The square minus uᵢ² of the vectors."""
        return self._square - (V**2) @ share


class Sectors:
    """(x·u)(y·u) ≥ 0 for rows of x and y (n_sectors, n): R = Σγ sym(x yᵀ), γ ≥ 0."""

    is_signed = True

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y, self.n_variables = x, y, len(x)

    def add(self, H: np.ndarray, z: np.ndarray) -> float:
        """Add Σγ sym(x yᵀ), at no price."""
        made = (self.x.T * z) @ self.y
        H += (made + made.T) / 2
        return 0.0

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """(x·u)(y·u) of the vectors."""
        return ((self.x @ V) * (self.y @ V)) @ share


class _Linearised:
    """The bound at fixed kernels, as a function of t and z."""

    def __init__(self, parts: Sequence[LinearProblem], kernels: list[np.ndarray]) -> None:
        self._parts, one = parts, parts[0]
        pairs = list(zip(parts, kernels, strict=True))
        self.spreads = [part.eta * (part.stimuli.psi @ a) for part, a in pairs]
        gradients = [p.stimuli.mu - s for p, s in zip(parts, self.spreads, strict=True)]
        sums = [p.response_sum(d) for p, d in zip(parts, gradients, strict=True)]
        self.responses = Responses(sums, one.stimuli.n_channels, one.system.n_inputs)
        each = zip(kernels, self.spreads, strict=True)
        self.constant = sum(0.5 * float(a @ s) for a, s in each)
        rounded = zip(parts, gradients, strict=True)
        self.rounding = sum(part.rounding(d) for part, d in rounded)

    @cached_property
    def _squares(self) -> np.ndarray:
        """GᵀG of parts without noise."""
        return np.stack([m.T @ m for m in self.responses.formed()])

    def damped(self, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        """(t_j + ηP_j)⁻¹ applied to states (n_parts, n_outputs, k)."""
        each = zip(self._parts, t, states, strict=True)
        return np.stack([part.damped(one, y) for part, one, y in each])

    def spectrum(
        self, t: np.ndarray, z: np.ndarray, constraints: Sequence[Constraint], k: int | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The last k eigenvalues, or all, ascending, with vectors; and ρ."""
        if self.responses.is_large and not constraints:
            k = _LARGE_SPECTRUM if k is None else k
            return *self.responses.largest(lambda y: self.damped(t, y), k), 0.0
        matrices = self.responses.formed()
        if any(part.is_noisy for part in self._parts):
            damped = self.damped(t, matrices)
            H = np.einsum("jon,jom->nm", matrices, damped, optimize=True)
            H = (H + H.T) / 2
        else:
            H = np.tensordot(1 / t, self._squares, axes=1)
        price, start = 0.0, 0
        for one in constraints:
            price += one.add(H, z[start : start + one.n_variables])
            start += one.n_variables
        n = len(H)
        if not np.isfinite(H).all():
            raise OverflowError("the squares of the response exceed floats; scale it down.")
        subset = None if k is None or k >= n else [n - k, n - 1]
        values, vectors = eigh(H, subset_by_index=subset, check_finite=False)
        # Possible error of a symmetric eigensolver.
        size = float(max(abs(values[-1]), np.abs(H).sum(1).max()))
        values[-1] += _ROUNDING * np.sqrt(n) * size
        return values, vectors, price


class _Block:
    """M = [[s − ηP, G(d)], [G(d)ᵀ, R − s]] as its constant part and slopes by coordinates.

    The coordinates are those of the kernel, then s, then z, then −λ, so λ − M is minus the
    whole. ``curvature`` is that of (η/2) aᵀψa.
    """

    def __init__(self, part: LinearProblem, metric: Metric) -> None:
        n, n_inputs = part.system.n_outputs, part.system.n_inputs
        n_channels = part.stimuli.n_channels

        def off_diagonal(d: np.ndarray) -> np.ndarray:
            made = np.zeros((n + n_inputs * n_channels,) * 2)
            response = Responses([part.response_sum(d)], n_channels, n_inputs)
            made[:n, n:] = response.formed()[0]
            return made + made.T

        spreads = part.eta * (part.stimuli.psi @ metric.inverse)
        self.n_outputs, self.curvature = n, metric.inverse.T @ spreads
        self.constant = off_diagonal(part.stimuli.mu)
        if part.covariance is not None:
            self.constant[:n, :n] -= part.eta * (part.covariance + part.covariance.T) / 2
        shift = np.diag(np.repeat([1.0, -1.0], [n, len(self.constant) - n]))
        self.slopes = np.stack([*(-off_diagonal(d) for d in spreads.T), shift])

    def complete(self, constraints: Sequence[Constraint]) -> tuple[np.ndarray, np.ndarray]:
        """All slopes, including those of z and λ, and the prices of z."""
        n, size = self.n_outputs, len(self.constant)
        made, prices = [], []
        for one in constraints:
            for z in np.eye(one.n_variables):
                R = np.zeros((size - n, size - n))
                prices.append(one.add(R, z))
                made.append(np.pad(R, (n, 0)))
        return np.stack([*self.slopes, *made, -np.eye(size)]), np.array(prices)


class _CentralPath:
    """Newton's method on min linear·x + ½ xᵀ quadratic x, −(M0 + Σ x_i M_i) ⪰ 0, x_+ ≥ 0.

    ``is_positive`` marks x_+. The barrier is −log det − Σ log x_+.
    """

    def __init__(
        self,
        x: np.ndarray,
        linear: np.ndarray,
        quadratic: np.ndarray,
        M0: np.ndarray,
        slopes: np.ndarray,
        is_positive: np.ndarray,
    ) -> None:
        self.x, self.linear, self.quadratic = x, linear, quadratic
        self.M0, self.slopes, self.is_positive = M0, slopes, is_positive
        self.n_barrier = len(M0) + int(is_positive.sum())
        self.last = 0.1 / len(M0)
        factor = self._factor(x)
        assert factor is not None
        self.factor = factor

    def _factor(self, x: np.ndarray) -> np.ndarray | None:
        """Cholesky factor of the slack; None outside the feasible set."""
        if (x[self.is_positive] <= 0).any():
            return None
        try:
            return np.linalg.cholesky(-(self.M0 + np.tensordot(x, self.slopes, axes=1)))
        except np.linalg.LinAlgError:
            return None

    def _merit(self, x: np.ndarray, factor: np.ndarray, mu: float) -> float:
        barrier = 2 * np.log(np.diag(factor)).sum() + np.log(x[self.is_positive]).sum()
        return float(self.linear @ x + 0.5 * x @ self.quadratic @ x - mu * barrier)

    @property
    def inverse(self) -> np.ndarray:
        """The inverse of the slack; times the barrier, the relaxed (v, u)(v, u)ᵀ."""
        made = np.linalg.inv(self.factor)
        return made.T @ made

    def centre(self, mu: float) -> int:
        """Newton steps at one barrier, until they gain a tenth of it at most; their number.

        The first one goes along the path, as it runs at the barrier before.
        """
        plus = self.is_positive
        self.merit, taken = self._merit(self.x, self.factor, mu), 0
        while taken < _NEWTON_STEPS:
            taken += 1
            W = self.inverse @ self.slopes
            barrier = np.einsum("ijj->i", W)
            turned = W.transpose(0, 2, 1).reshape(len(W), -1)
            curved = W.reshape(len(W), -1) @ turned.T
            inverse = 1 / np.maximum(self.x[plus], 1e-100)  # its square is a number
            barrier[plus] -= inverse
            curved[plus, plus] += inverse**2
            gradient = self.linear + self.quadratic @ self.x + mu * barrier
            along = self.last if taken == 1 else mu
            hessian = self.quadratic + along * curved
            hessian[np.diag_indices_from(hessian)] *= 1 + 1e-13
            step = -np.linalg.solve(hessian, gradient)
            gain, length, x, merit = float(-gradient @ step), 1.0, self.x, self.merit
            while not self._move(x + length * step, mu, merit - 0.1 * length * gain):
                length *= 0.5
                if length <= 1e-8:
                    break
            if gain <= 0.1 * mu or length <= 1e-8:
                break
            # Far from the path a step is too short: it grows while that pays.
            while self._move(x + 2 * length * step, mu, self.merit - 0.1 * gain):
                length *= 2
        self.last = mu
        return taken

    def _move(self, x: np.ndarray, mu: float, limit: float) -> bool:
        """Move to x if it is feasible and its merit not above the limit."""
        factor = self._factor(x)
        merit = np.inf if factor is None else self._merit(x, factor, mu)
        if factor is None or not merit <= limit:
            return False
        self.x, self.factor, self.merit = x, factor, merit
        return True


class Relaxation:
    """The upper bound on Σκ_j of parts that share u, lowered from any start.

    ``unit_readouts`` is False in a regression, where t is zero. ``lowest`` is the lowest
    value met; ``directions`` (n_inputs, n_channels, k) make up the relaxed u uᵀ there, with
    their ``shares``, largest first.
    """

    def __init__(
        self,
        parts: Sequence[LinearProblem],
        constraints: Sequence[Constraint] = (),
        *,
        unit_readouts: bool = True,
    ) -> None:
        self.parts, self.constraints = parts, constraints
        self._n_variables = sum(one.n_variables for one in constraints)
        self._floors = np.array([part.floor for part in parts])
        self._is_free = unit_readouts
        # Without noise a common factor of t and 1/z is free, and has a best value.
        self._has_multiple = unit_readouts and not any(part.is_noisy for part in parts)
        self.lowest, self.n_evaluations = np.inf, 0
        self.point: tuple[list[np.ndarray], np.ndarray, np.ndarray] | None = None
        self.directions, self.shares = np.zeros((1, 1, 0)), np.zeros(0)

    def _multipliers(self, linearised: _Linearised, u: np.ndarray) -> np.ndarray:
        """The t, plus ηp_min, for which u attains the maximum at these kernels."""
        if not self._is_free:
            return self._floors
        states = linearised.responses.drive(u.T.reshape(-1, 1))[:, :, 0]
        t = np.array([p.multiplier(x) for p, x in zip(self.parts, states, strict=True)])
        largest = float(t.max())
        return np.maximum(t, 1e-6 * largest) if largest else np.ones_like(t)

    def at(self, kernels: list[np.ndarray], u: np.ndarray) -> float:
        """The lowest bound at fixed kernels, starting at the t of u."""
        linearised = _Linearised(self.parts, kernels)
        t = self._multipliers(linearised, u)
        if len(t) == 1 or not self._is_free:
            self._meet(linearised, kernels, t, np.zeros(self._n_variables))
            return self.lowest

        def function(logs: np.ndarray) -> tuple[float, np.ndarray]:
            value, _, by_t, _ = self._value(
                linearised, kernels, np.exp(logs), np.zeros(self._n_variables), 0.0
            )
            return value / unit, by_t / unit

        unit = float(t.sum())
        options = {"maxfun": _AT_EVALUATIONS, "ftol": 1e-13, "gtol": 0.0}
        minimize(function, np.log(t), jac=True, method="L-BFGS-B", options=options)
        return self.lowest

    def lower(
        self,
        kernels: list[np.ndarray],
        u: np.ndarray,
        *,
        goal: float = -np.inf,
        max_evaluations: int = 150,
        smoothing: Sequence[float] = (1e-2, 1e-3, 1e-4, 1e-5),
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> float:
        """Lower the bound in kernels, t and z together; returns ``lowest``.

        It starts from kernels and the multipliers of u, or at ``start`` (t, z), and stops
        at ``goal``. One L-BFGS of ``max_evaluations`` runs per entry of ``smoothing``, the
        width of a smoothed λ_max as a share of it.
        """
        t, z = start or (None, np.zeros(self._n_variables))
        if self.is_small:
            self._follow(kernels[0], z, goal)
            return self.lowest
        if t is None:
            t = self._multipliers(_Linearised(self.parts, kernels), u)
        self._descend(kernels, t, z, goal, max_evaluations, smoothing)
        return self.lowest

    def _descend(
        self,
        kernels: list[np.ndarray],
        t: np.ndarray,
        z: np.ndarray,
        goal: float,
        max_evaluations: int,
        smoothing: Sequence[float],
    ) -> None:
        """L-BFGS in kernels, log t and z."""
        unit = float(t.sum())
        metrics = self._metrics
        own = [m.root.T @ a for m, a in zip(metrics, kernels, strict=True)]
        ends = np.cumsum([*(len(c) for c in own), len(t)], dtype=int)
        limits: list[Any] = [(None, None)] * int(ends[-1])
        for one in self.constraints:
            limits += [(0.0 if one.is_signed else None, None)] * one.n_variables

        def function(x: np.ndarray, width: float) -> tuple[float, np.ndarray]:
            *coordinates, logs, z = np.split(x, ends)
            places = [m.inverse @ c for m, c in zip(metrics, coordinates, strict=True)]
            t = np.exp(logs) if self._is_free else self._floors
            linearised = _Linearised(self.parts, places)
            value, bars, by_t, by_z = self._value(linearised, places, t, unit * z, width)
            if self.lowest <= goal:
                raise _Closed
            back = [m.inverse.T @ bar for m, bar in zip(metrics, bars, strict=True)]
            return value / unit, np.concatenate([*back, by_t, unit * by_z]) / unit

        point = np.concatenate([*own, np.log(t), z / unit])
        options = {"maxfun": max_evaluations, "maxcor": 30, "ftol": 1e-13, "gtol": 0.0}
        try:
            # From the edge of what is allowed, a smoother bound leads further.
            for share in (0.1, *smoothing) if self.constraints else smoothing:
                given: dict[str, Any] = {"args": (share * unit,), "jac": True}
                given |= {"bounds": limits, "options": options}
                point = minimize(function, point, method="L-BFGS-B", **given).x
        except _Closed:
            pass

    @property
    def _sizes(self) -> tuple[int, int]:
        """Number of variables, and of rows of the block matrix."""
        part = self.parts[0]
        n = part.system.n_outputs + part.system.n_inputs * part.stimuli.n_channels
        m = self._metrics[0].root.shape[1] + self._n_variables + 2
        return m, n

    @property
    def cost(self) -> float:
        """Number of products per Newton step."""
        m, n = self._sizes
        return float(m) * n**3

    @property
    def is_small(self) -> bool:
        """Whether second derivatives in all variables fit in memory."""
        if len(self.parts) > 1 or not self._is_free:
            return False
        m, n = self._sizes
        return 8 * m * n**2 <= _NEWTON_BYTES

    def _follow(self, kernel: np.ndarray, z: np.ndarray, goal: float) -> None:
        """Second-order descent in the coordinates of the kernel, s, z and λ."""
        part, metric, block = self.parts[0], self._metrics[0], self._block
        rank = metric.root.shape[1]
        slopes, prices = block.complete(self.constraints)
        c = metric.root.T @ kernel
        start = block.constant + np.tensordot(c, slopes[:rank], axes=1)
        unit = float(np.linalg.eigvalsh(start)[-1] + 0.5 * c @ block.curvature @ c)
        if unit <= 0:
            return
        slopes[:rank] /= np.sqrt(unit)  # kernels in units of √unit, the rest in units
        M0 = block.constant / unit
        quadratic = np.zeros((len(slopes), len(slopes)))
        quadratic[:rank, :rank] = block.curvature
        linear = np.concatenate([np.zeros(rank + 1), 0.5 * prices, [1.0]])
        is_positive = np.zeros(len(slopes), bool)
        counts = [one.n_variables for one in self.constraints]
        signs = [one.is_signed for one in self.constraints]
        is_positive[rank + 1 : -1] = np.repeat(np.array(signs, bool), counts)
        x = np.concatenate([c / np.sqrt(unit), [0.0], z / unit, [0.0]])
        x[is_positive] = np.maximum(x[is_positive], 1e-2)
        top = float(np.linalg.eigvalsh(M0 + np.tensordot(x, slopes, axes=1))[-1])
        x[-1] = top + 0.1 * (1 + abs(top))
        path = _CentralPath(x, linear, quadratic, M0, slopes, is_positive)
        mu = 0.1 / len(M0)
        while True:
            taken = path.centre(mu)
            kernels = [metric.inverse @ path.x[:rank] * np.sqrt(unit)]
            t = np.array([unit * (path.x[-1] - path.x[rank]) + part.floor])
            place = (kernels, t, unit * path.x[rank + 1 : -1])
            before, n = self.lowest, self._block.n_outputs
            linearised = _Linearised(self.parts, kernels)
            self._meet(linearised, *place)
            if self.lowest < before:
                shares, vectors = np.linalg.eigh(path.inverse[n:, n:])
                self.shares = shares[::-1] / shares.sum()
                self.directions = linearised.responses.as_projection(vectors[:, ::-1])
            left = mu * path.n_barrier * unit  # by which it may still fall
            if left <= _NEWTON_TOL * abs(self.lowest) or self.lowest <= goal or mu < 1e-14:
                return
            mu *= 0.3 if taken > 2 else 0.1

    def within(self, constraints: Sequence[Constraint]) -> Relaxation:
        """The same bound for fewer input projections."""
        made = Relaxation(self.parts, constraints)
        made._metrics, made._block = self._metrics, self._block
        return made

    def starts(self) -> Iterator[np.ndarray]:
        """Yield input projections to ascend from: the directions, and mixtures of them."""
        rng = np.random.default_rng(0)
        rank = min(int((self.shares > _MINOR).sum()), _DIRECTIONS)
        directions = self.directions[:, :, :rank]
        mixtures = [np.eye(rank)]
        if rank > 1:
            # The optimum mixes the leading two about like the relaxation, with either sign.
            sizes = np.sqrt(self.shares[:rank])
            angles = np.outer([1, -1], np.arctan2(sizes[1], sizes[0]) * _ANGLES).ravel()
            planar = np.zeros((len(angles), rank))
            planar[:, 0], planar[:, 1] = np.cos(angles), np.sin(angles)
            mixtures += [planar, rng.standard_normal((_MIXTURES, rank)) * sizes]
        rows = np.concatenate(mixtures)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        yield from np.tensordot(rows, directions, axes=(1, 2))

    @cached_property
    def _metrics(self) -> list[Metric]:
        made: dict[int, Metric] = {}
        for part in self.parts:
            if id(part.stimuli.psi) not in made:
                made[id(part.stimuli.psi)] = metric_of(part)
        return [made[id(part.stimuli.psi)] for part in self.parts]

    @cached_property
    def _block(self) -> _Block:
        return _Block(self.parts[0], self._metrics[0])

    def _meet(
        self,
        linearised: _Linearised,
        kernels: list[np.ndarray],
        t: np.ndarray,
        z: np.ndarray,
        width: float = 0.0,
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The smoothed bound, and its shares with vectors; keeps what is proven."""
        self.n_evaluations += 1
        values, vectors, price = linearised.spectrum(
            t, z, self.constraints, None if width else 1
        )
        top, whole = float(values[-1]), float((t - self._floors).sum())
        soft, share, vectors = soft_maximum(values, vectors, width)
        proven = linearised.constant + linearised.rounding
        if self._has_multiple:
            proven += float(np.sqrt(whole * max(top + price, 0.0)))
        else:
            proven += 0.5 * (whole + top + price)
        if proven < self.lowest:
            self.lowest, self.shares = proven, share
            self.point = ([a.copy() for a in kernels], t.copy(), z.copy())
            self.directions = linearised.responses.as_projection(vectors)
        return linearised.constant + 0.5 * (whole + soft + price), share, vectors

    def _value(
        self,
        linearised: _Linearised,
        kernels: list[np.ndarray],
        t: np.ndarray,
        z: np.ndarray,
        width: float,
    ) -> tuple[float, list[np.ndarray], np.ndarray, np.ndarray]:
        """The smoothed bound and its gradients by kernels, log t and z.

        With the share p of an eigenvector x, by kernel it is ηψ(a − the kernel of
        Σ p (t + ηP)⁻¹G(d)x xᵀ).
        """
        value, share, vectors = self._meet(linearised, kernels, t, z, width)
        damped = linearised.damped(t, linearised.responses.drive(vectors))
        root = np.sqrt(share)
        B = linearised.responses.as_projection(vectors) * root
        by_kernel = []
        for part, spread, states in zip(
            self.parts, linearised.spreads, damped, strict=True
        ):
            atom = part.kernel_of(states * root, B)
            by_kernel.append(spread - part.eta * (part.stimuli.psi @ atom))
        by_t = 0.5 * t * (1 - (damped**2).sum(1) @ share) * self._is_free
        parts = [one.gradient(vectors, share) for one in self.constraints]
        by_z = 0.5 * np.concatenate([np.zeros(0), *parts])
        return value, by_kernel, by_t, by_z
