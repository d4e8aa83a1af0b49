r"""An upper bound for every linear problem, and methods that lower it.

Several readouts v_j read one network that is driven through one unit u. Each soft margin
κ_j = a_j·μ_j − (η/2) a_jᵀψ_j a_j − (η/2) v_jᵀP_j v_j is concave in its kernel a_j(u, v_j).
Linearise it at any kernels a_j, with d_j = μ_j − ηψ_j a_j. Then for all numbers t_j that
make t_j + ηP_j positive, and every R with uᵀRu ≥ −ρ on the allowed input projections,

.. math::

    \begin{aligned}
    \sum_j\kappa_j\le{}&\tfrac{1}{2}\sum_j\eta\,a_j^{\mathsf T}\psi_j a_j
    +\tfrac{1}{2}\sum_j t_j+\tfrac{1}{2}\rho\\
    &+\tfrac{1}{2}\lambda_{\max}\Bigl(R
    +\sum_j G(d_j)^{\mathsf T}(t_j+\eta P_j)^{-1}G(d_j)\Bigr).
    \end{aligned}

(To see this, maximise over v_j first: 2 v·x ≤ vᵀ(t + ηP)v + xᵀ(t + ηP)⁻¹x.) The bound is
the largest eigenvalue of a block matrix in (v, u), after elimination of v, and it is
jointly convex in all of its variables. With one readout, P = 0 and R = 0, it is
σ_max(G(d)) + (η/2) aᵀψa. Ridge regression has readouts of any length, with t_j = 0 and
ηP_j = 2λ. R expresses restrictions of the input projection: those of a mask, and `Sectors`.
"""

# The capital letters are matrices, not constants.
# pyright: reportConstantRedefinition=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import block_diag, eigh
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize

from ..devices.masks.mask import Constraint
from ..math.class_moments import root
from ..math.krylov import largest_eigenpairs
from .linear import AMPLIFIED, LinearProblem, Responses

#: Share in a smoothed maximum below which a direction is left out.
_NEGLIGIBLE = 1e-9
#: Rounding error of a difference, as a share of that of a sum of Green's functions.
_SHARE = 1 / 8
#: Relative error of an eigenvalue, and number of eigenvalues computed for a large network.
_ROUNDING, _LARGE_SPECTRUM = 4 * np.finfo(float).eps, 6
#: Memory limit of second derivatives, limit of Newton steps per barrier, and the relative
#: gap at which they end.
_NEWTON_BYTES, _NEWTON_STEPS, _NEWTON_TOL = 2**28, 100, 1e-7
#: Number of products per Newton step, with several readouts, above which smoothing is
#: faster.
_NEWTON_PRODUCTS = 2e9
#: Start of the central path: t and ℓ in units of the bound, and positive variables as a
#: share of them.
_FAR, _INSIDE = 2.0, 0.9
#: Relative distance below the goal at which the path stops, because its value is rounded;
#: and the negative value, in units of the bound, at which it stops if it has no minimum.
_REACHED, _DEEP = 1e-9, 1e6
#: A node is cut if its distance above the goal is this multiple of its possible decrease.
_CUT = 10
#: Smallest share and largest number of directions to start from; angles of mixtures of the
#: leading two, in units of the angle of the relaxation; and number of mixtures of all.
_MINOR, _DIRECTIONS, _ANGLES, _MIXTURES = 1e-4, 6, np.array([0.5, 1.0]), 8
#: Gap below which pairs count as equal. The search goes on to this gap if the tolerance is
#: at most the second value and a Newton step is `QUICK`.
_EQUAL, _CLOSE = 1e-6, 1e-4
#: Number of products up to which a Newton step counts as quick.
QUICK = 4e7
#: Smallest t, relative to the largest.
_LEAST = 1e-9
#: Limit of evaluations if only t varies.
_AT_EVALUATIONS = 150


class _Closed(Exception):
    """Raised when the bound has reached its goal."""


@dataclass(frozen=True)
class Metric:
    """Coordinates c = rootᵀa of kernels in which the bound is about equally curved.

    ``root`` and ``inverse`` have the shape (D, rank), with inverseᵀ root = 1.
    """

    root: np.ndarray
    inverse: np.ndarray


def metric_of(problem: LinearProblem) -> Metric:
    """Return the metric of (η/2) aᵀψa, the quadratic part of the bound.

    Only ψa matters, so the search for kernels is limited to the range of ψ. And
    d = μ − ηψa matters only through G(d): if all kernels of the system lie in the span of
    Q, the best a does too (it has the smallest aᵀψa of all a with the same Qᵀψa).

    If the network amplifies strongly, σ_max(G(d)) is far steeper along some directions. The
    Frobenius norm of G(d) shows which.
    """
    curved, n_channels = problem.eta * problem.stimuli.psi, problem.stimuli.n_channels
    basis, sizes = root(curved)
    Q = problem.combined_steps
    if n_channels * Q.shape[1] < len(sizes):
        columns = np.kron(np.eye(n_channels), Q)
        left, sizes, _ = np.linalg.svd(columns.T @ basis * sizes, full_matrices=False)
        keep = sizes > 1e-7 * sizes.max(initial=0.0)
        basis, sizes = columns @ left[:, keep], sizes[keep]
    inverse = basis / sizes
    made = curved @ inverse
    if problem.growth > AMPLIFIED and len(sizes):
        inner = np.eye(len(sizes))
        for R in problem.probed:
            for part in made.reshape(n_channels, problem.stimuli.n_steps, -1):
                seen = part.T @ R
                inner += seen @ seen.T
        values, vectors = np.linalg.eigh(inner)
        scale = np.sqrt(np.maximum(values, 1.0))
        made, inverse = made @ (vectors * scale), inverse @ (vectors / scale)
    return Metric(made, inverse)


def soft_maximum(
    values: np.ndarray, vectors: np.ndarray, width: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return a smooth maximum of the eigenvalues, with their shares in its gradient.

    The smooth maximum is slightly above the largest eigenvalue. If a relaxation is not
    tight, several eigenvalues meet; the share of each in the gradient is a Boltzmann
    weight. The shares, largest first, come with their eigenvectors.
    """
    if not width:
        return float(values[-1]), np.ones(1), vectors[:, -1:]
    share = np.exp((values - values[-1]) / width)
    total = float(share.sum())
    share = share / total
    keep = np.flatnonzero(share > _NEGLIGIBLE)[::-1]
    soft = float(values[-1]) + width * float(np.log(total))
    return soft, share[keep], vectors[:, keep]


class Sectors:
    """The restriction (x·w)(y·w) ≥ 0 of w = (v, u), for each row of x and y.

    R = Σγ sym(x yᵀ) with γ ≥ 0. The rows (n_sectors, n_outputs + n) cover both the readout
    and the input projection, of one part.
    """

    is_signed = True

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y, self.n_variables = x, y, len(x)

    def matrix(self, z: np.ndarray) -> np.ndarray:
        """Return R, over v and u."""
        made = (self.x.T * z) @ self.y
        return (made + made.T) / 2

    def gradient(self, V: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return (x·w)(y·w) of the vectors w."""
        return ((self.x @ V) * (self.y @ V)) @ share


class Embedded:
    """The matrix R of sectors within a few directions, over v and u of the whole.

    ``matrix`` is R in coordinates of the directions ``outputs`` (n_outputs, r) and
    ``inputs`` (n_inputs, k), which are orthonormal; u has ``n_channels``.
    """

    def __init__(self, matrix: np.ndarray, outputs: np.ndarray, inputs: np.ndarray) -> None:
        self._matrix, self._outputs, self._inputs = matrix, outputs, inputs
        #: Rounding error of the eigenvalues of R.
        self.rounding = float(_ROUNDING * np.sqrt(len(matrix)) * np.linalg.norm(matrix))

    def times(self, states: np.ndarray, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return R times states over flat directions (n_channels · n_inputs, k)."""
        (n, k), r = self._inputs.shape, self._outputs.shape[1]
        seen = self._inputs.T @ flat.reshape(-1, n, flat.shape[1])
        own = [self._outputs.T @ states, seen.reshape(-1, flat.shape[1])]
        made = self._matrix @ np.vstack(own)
        lifted = self._inputs @ made[r:].reshape(-1, k, flat.shape[1])
        return self._outputs @ made[:r], lifted.reshape(flat.shape)

    def damping(
        self, damped: Callable[[np.ndarray], np.ndarray]
    ) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return the inverse of A − R_vv, given that of A; None if it is not positive."""
        lifted = damped(self._outputs)
        inner = self._outputs.T @ lifted
        vv = self._matrix[: len(inner), : len(inner)]
        factor = np.linalg.cholesky((inner + inner.T) / 2)
        if np.linalg.eigvalsh(factor.T @ vv @ factor)[-1] >= 1 - _REACHED:
            return None
        few = np.linalg.solve(np.eye(len(inner)) - vv @ inner, vv)

        def both(states: np.ndarray) -> np.ndarray:
            return damped(states) + lifted @ (few @ (lifted.T @ states))

        return both


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
        # Rounding errors of G(d), and of the difference d.
        rounded = zip(parts, gradients, self.spreads, strict=True)
        self.rounding = sum(p.rounding(abs(d) + _SHARE * abs(s)) for p, d, s in rounded)
        #: The matrix R of the sectors, over v and u.
        self.joint: np.ndarray | None = None

    @cached_property
    def _squares(self) -> np.ndarray:
        """GᵀG of each part, for parts without noise."""
        return np.stack([m.T @ m for m in self.responses.formed()])

    def drive(self, flat: np.ndarray) -> np.ndarray:
        """Return G(d_j), plus the part of the sectors, times directions in columns."""
        states = self.responses.drive(flat)
        if self.joint is not None:
            states = states + self.joint[: -len(flat), -len(flat) :] @ flat
        return states

    def damped(self, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return (t_j + ηP_j)⁻¹ times states (n_parts, n_outputs, k)."""
        if self.joint is not None:
            part, n = self._parts[0], states.shape[1]
            A = (t[0] - part.floor) * np.eye(n) - self.joint[:n, :n]
            if part.covariance is not None:
                A += part.eta * (part.covariance + part.covariance.T) / 2
            values, vectors = np.linalg.eigh(A)
            values -= _ROUNDING * np.sqrt(n) * np.abs(values).max()
            # If the matrix is not positive, there is no bound.
            values = np.where(values > 0, values, np.nan)
            return (vectors / values) @ (vectors.T @ states)
        each = zip(self._parts, t, states, strict=True)
        return np.stack([part.damped(one, y) for part, one, y in each])

    def spectrum(
        self,
        t: np.ndarray,
        z: np.ndarray,
        constraints: Sequence[Constraint | Sectors],
        k: int | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the k largest eigenvalues, or all, ascending, their vectors, and ρ."""
        if self.responses.is_large and not constraints:
            k = _LARGE_SPECTRUM if k is None else k
            values, vectors, _ = self.responses.largest(lambda y: self.damped(t, y), k)
            return values, vectors, 0.0
        matrices = self.responses.formed()
        if self.joint is not None or any(part.is_noisy for part in self._parts):
            if self.joint is not None:
                matrices = self.drive(np.eye(matrices.shape[2]))
            damped = self.damped(t, matrices)
            H = np.einsum("jon,jom->nm", matrices, damped, optimize=True)
            H = (H + H.T) / 2
        else:
            H = np.tensordot(1 / t, self._squares, axes=1)
        price, start = 0.0, 0
        for one in constraints:
            if isinstance(one, Sectors):
                continue
            price += one.add(H, z[start : start + one.n_variables])
            start += one.n_variables
        n = len(H)
        if self.joint is not None:
            H += self.joint[-n:, -n:]
            if np.isnan(H).any():
                return np.full(1, np.inf), np.eye(n)[:, :1], price
        if not np.isfinite(H).all():
            raise OverflowError(
                "the squares of the response exceed the range of floats; scale the stimuli "
                "or the weights down."
            )
        subset = None if k is None or k >= n else [n - k, n - 1]
        values, vectors = eigh(H, subset_by_index=subset, check_finite=False)
        # Add the possible error of a symmetric eigensolver.
        size = float(max(abs(values[-1]), np.abs(H).sum(1).max()))
        values[-1] += _ROUNDING * np.sqrt(n) * size
        return values, vectors, price


@dataclass(frozen=True)
class _Part:
    """G(d) of one readout, as a constant minus slopes times coordinates of the kernel.

    ``noise`` is ηP, or None if it is zero. ``curvature`` is the matrix of second
    derivatives of (η/2) aᵀψa.
    """

    constant: np.ndarray
    slopes: np.ndarray
    curvature: np.ndarray
    noise: np.ndarray | None

    @classmethod
    def of(cls, part: LinearProblem, metric: Metric) -> _Part:
        """Return the part in the coordinates of its metric."""
        n_channels, n_inputs = part.stimuli.n_channels, part.system.n_inputs

        def response(d: np.ndarray) -> np.ndarray:
            return Responses([part.response_sum(d)], n_channels, n_inputs).formed()[0]

        spreads = part.eta * (part.stimuli.psi @ metric.inverse)
        constant, P = response(part.stimuli.mu), part.covariance
        slopes = np.zeros((0, *constant.shape))
        if spreads.size:
            slopes = np.stack([response(d) for d in spreads.T])
        noise = None if P is None else part.eta * (P + P.T) / 2
        return cls(constant, slopes, metric.inverse.T @ spreads, noise)

    def in_units(self, unit: float) -> _Part:
        """Return the part with kernels in units of √unit, and all else in this unit."""
        noise = None if self.noise is None else self.noise / unit
        slopes = self.slopes / np.sqrt(unit)
        return _Part(self.constant / unit, slopes, self.curvature, noise)


@dataclass(frozen=True)
class _Factors:
    """The factors of S: W_j with A_j⁻¹ = W_jᵀW_j, W_jG_j, L with C⁻¹ = LLᵀ, and log det S.

    W_j is a number if A_j is a number.
    """

    W: list[np.ndarray]
    WG: list[np.ndarray]
    L: np.ndarray
    log_det: float


def _apply(W: np.ndarray, to: np.ndarray) -> np.ndarray:
    return W @ to if W.ndim else W * to


class _CentralPath:
    """Newton's method on the bound, as a problem with a semi-definite constraint.

        min ½Σt_j + ½ρ(z) + ½ℓ + ½Σ c_jᵀc_j   over   S = [[A, −G], [−Gᵀ, ℓ − R]] ⪰ 0

    with A = diag(t_j + ηP_j) and stacked G = (G_1, …), where G_j = G(d_j) is linear in the
    coordinates c_j of a kernel. Ridge regression has A_j = 2λ, without t_j. Sectors add
    −R_vv to A and R_vu to G. The barrier is −log det S − Σ log x_+, with the positive
    variables x_+.

    With C = ℓ − R − GᵀA⁻¹G = (LLᵀ)⁻¹, A⁻¹ = WᵀW and g = WᵀWGL, the inverse of S is KKᵀ,
    with K = (g, L), plus A⁻¹ on the readouts. So tr S⁻¹S_iS⁻¹S_k of two slopes of S is
    ⟨T_i, T_k⟩ + 2⟨e_i, e_k⟩ + ⟨Q_i, Q_k⟩ with T_i = KᵀS_iK, e_i = W(S_iK)_v and
    Q_i = W(S_i)_vvWᵀ, and tr S⁻¹S_i = tr T_i + tr Q_i.
    """

    def __init__(
        self,
        parts: list[_Part],
        constraints: Sequence[Constraint | Sectors],
        *,
        is_free: bool,
    ) -> None:
        self.parts, self._is_free, self.n_free = parts, is_free, is_free * len(parts)
        n_outputs, self._n = parts[0].constant.shape
        self.ends = np.cumsum([len(one.slopes) for one in parts] + [self.n_free])
        self._sectors: Sectors | None = None
        made, prices = [np.zeros((0, self._n, self._n))], list[float]()
        for one in constraints:
            if isinstance(one, Sectors):
                self._sectors = one
                prices += [0.0] * one.n_variables
                continue
            R = np.zeros((one.n_variables, self._n, self._n))
            prices += [one.add(own, z) for own, z in zip(R, np.eye(len(R)), strict=True)]
            made.append(R)
        self._R = np.concatenate(made)
        signs = [np.full(one.n_variables, one.is_signed) for one in constraints]
        self.is_positive = np.concatenate(
            [np.zeros(self.ends[-1], bool), *signs, np.zeros(1, bool)]
        )
        size, rank = len(self.is_positive), self.ends[-2]
        self.linear = np.full(size, 0.5)
        self.linear[:rank] = 0
        self.linear[self.ends[-1] : -1] = 0.5 * np.array(prices)
        self.quadratic = np.zeros((size, size))
        self.quadratic[:rank, :rank] = block_diag(*(one.curvature for one in parts))
        self.n_barrier = self._n + int(self.is_positive.sum())
        self.n_barrier += is_free * n_outputs * len(parts)
        # Arrays of `_barrier`, made once: new ones at every step would cost a fifth of the
        # time, which the system takes to hand out their memory.
        n_slopes = max(len(one.slopes) for one in parts)
        n_rows = n_slopes + is_free + (0 if self._sectors is None else len(self._sectors.x))
        self._T = np.empty((size, self._n, self._n))
        self._half = np.empty((n_slopes, self._n, self._n))
        self._e = np.empty((n_rows, n_outputs, self._n))

    def split(self, x: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Split x into the coordinates of the kernels, t, and z."""
        *coordinates, t, z = np.split(x[:-1], self.ends)
        return coordinates, t, z

    def begin(self, coordinates: list[np.ndarray], z: np.ndarray) -> bool:
        """Set a start at these kernels, far inside the feasible set.

        At this start, t_j and ℓ are nearly central, so that few steps lead to the path.
        Returns False if rounding makes the start infeasible.
        """
        x = np.concatenate([*coordinates, np.full(self.n_free, _FAR), z, [0.0]])
        x[self.is_positive] = _INSIDE * _FAR / max(1, self.is_positive.sum())
        H = self._blocks(x)[2]
        for A, G in zip(*self._blocks(x)[:2], strict=True):
            H = H + G.T @ (np.linalg.solve(A, G) if A.ndim else G / A)
        x[-1] = float(np.linalg.eigvalsh(H)[-1]) + _FAR
        found = self._factor(x)
        if found is None:
            return False
        self.x, self.factors, self.last = x, found, _FAR / self.n_barrier
        return True

    def _blocks(
        self, x: np.ndarray
    ) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        """Return A_j (a number without noise and sectors), G_j, and R."""
        coordinates, t, z = self.split(x)
        if not self._is_free:
            t = np.zeros(len(self.parts))
        pairs = list(zip(self.parts, coordinates, strict=True))
        G = [one.constant - np.tensordot(c, one.slopes, axes=1) for one, c in pairs]
        A = [
            np.asarray(s) if one.noise is None else _shifted(one.noise, s)
            for one, s in zip(self.parts, t, strict=True)
        ]
        R = np.tensordot(z[: len(self._R)], self._R, axes=1)
        if self._sectors is not None:
            joint, n = self._sectors.matrix(z[len(self._R) :]), len(G[0])
            own = (
                A[0] - joint[:n, :n] if A[0].ndim else _shifted(-joint[:n, :n], float(A[0]))
            )
            A, G = [own], [G[0] + joint[:n, n:]]
            R = R + joint[n:, n:]
        return A, G, R

    def _factor(self, x: np.ndarray) -> _Factors | None:
        """Return the factors of S at x, or None outside the feasible set."""
        if (x[self.is_positive] <= 0).any():
            return None
        A, G, R = self._blocks(x)
        C, log_det = np.asarray(_shifted(-R, x[-1])), 0.0
        W: list[np.ndarray] = []
        WG: list[np.ndarray] = []
        try:
            for one, response in zip(A, G, strict=True):
                if one.ndim:
                    factor = np.linalg.cholesky(one)
                    W.append(_inverse(factor))
                    log_det += 2 * float(np.log(np.diag(factor)).sum())
                elif one > 0:
                    W.append(one**-0.5)
                    log_det += len(response) * float(np.log(one))
                else:
                    return None
                WG.append(_apply(W[-1], response))
                C -= WG[-1].T @ WG[-1]
            factor = np.linalg.cholesky(C)
        except np.linalg.LinAlgError:
            return None
        log_det += 2 * float(np.log(np.diag(factor)).sum())
        return _Factors(W, WG, _inverse(factor).T, log_det)

    @property
    def value(self) -> float:
        """The function that is minimised, an upper bound on κ of any pair."""
        return float(self.linear @ self.x + 0.5 * self.x @ self.quadratic @ self.x)

    def _merit(self, x: np.ndarray, found: _Factors, mu: float) -> float:
        barrier = found.log_det + np.log(x[self.is_positive]).sum()
        return float(self.linear @ x + 0.5 * x @ self.quadratic @ x - mu * barrier)

    @property
    def lifted(self) -> np.ndarray:
        """The relaxed w wᵀ of w = (v, u) up to a factor, for one readout."""
        W, L = self.factors.W[0], self.factors.L
        K = np.vstack([_apply(W.T, self.factors.WG[0] @ L), L])
        made = K @ K.T
        n = len(made) - len(L)
        made[:n, :n] += W.T @ W if W.ndim else W**2 * np.eye(n)
        return made

    def _barrier(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the second derivatives of the barrier."""
        found, size = self.factors, len(self.x)
        L, starts = found.L, [0, *self.ends]
        gradient, curved = np.zeros(size), np.zeros((size, size))
        T = self._T
        for j, one in enumerate(self.parts):
            W, k = found.W[j], found.WG[j] @ L
            own, n_slopes = list(range(starts[j], starts[j + 1])), len(one.slopes)
            Q = list[np.ndarray]()
            e, half = self._e[:n_slopes], self._half[:n_slopes]
            np.matmul(one.slopes, L, out=e)
            e[:] = _apply(W, e)
            np.matmul(k.T, e, out=half)
            np.add(half, half.transpose(0, 2, 1), out=T[starts[j] : starts[j + 1]])
            if self._is_free:
                own.append(self.ends[-2] + j)
                g = _apply(W.T, k)
                T[own[-1]] = g.T @ g
                self._e[n_slopes] = _apply(W, g)
                Q.append(W @ W.T if W.ndim else W**2 * np.eye(len(k)))
            if self._sectors is not None:
                x, y = self._sectors.x, self._sectors.y
                n, at = len(k), size - 1 - len(x)
                K = np.vstack([W.T @ k, L])
                of_K, of_W = (x @ K, y @ K), (x[:, :n] @ W.T, y[:, :n] @ W.T)
                T[at:-1] = -_symmetric(*of_K)
                mixed = (of_W[k][:, :, None] * of_K[1 - k][:, None] for k in (0, 1))
                self._e[len(own) : len(own) + len(x)] = -0.5 * sum(mixed)
                Q += list(-_symmetric(*of_W))
                own += range(at, size - 1)
            e = self._e[: len(own)].reshape(len(own), -1)
            curved[np.ix_(own, own)] += 2 * (e @ e.T)
            if Q:
                varied = own[-len(Q) :]
                flat = np.stack(Q).reshape(len(Q), -1)
                gradient[varied] -= np.einsum("ijj->i", np.stack(Q))
                curved[np.ix_(varied, varied)] += flat @ flat.T
        T[self.ends[-1] : self.ends[-1] + len(self._R)] = -(L.T @ self._R @ L)
        T[-1] = L.T @ L
        flat = T.reshape(size, -1)
        curved += flat @ flat.T
        gradient -= np.einsum("ijj->i", T)
        plus = self.is_positive
        inverse = 1 / np.maximum(self.x[plus], 1e-100)  # its square stays finite
        gradient[plus] -= inverse
        curved[plus, plus] += inverse**2
        return gradient, curved

    def centre(self, mu: float, goal: float) -> int:
        """Take Newton steps at the barrier weight ``mu``, and return their number.

        They stop when a step gains at most a tenth of ``mu``. The first step follows the
        path, with the curvature at the previous weight. The steps also stop at the goal,
        because a node without any pair in its sectors has no minimum.
        """
        self.merit, taken = self._merit(self.x, self.factors, mu), 0
        while taken < _NEWTON_STEPS and self.value > goal:
            taken += 1
            barrier, curved = self._barrier()
            gradient = self.linear + self.quadratic @ self.x + mu * barrier
            hessian = self.quadratic + (self.last if taken == 1 else mu) * curved
            hessian[np.diag_indices_from(hessian)] *= 1 + 1e-13
            try:
                step = -np.linalg.solve(hessian, gradient)
            except np.linalg.LinAlgError:  # only rounding is left
                break
            gain, length, x, merit = float(-gradient @ step), 1.0, self.x, self.merit
            while not self._move(x + length * step, mu, merit - 0.1 * length * gain):
                length *= 0.5
                if length <= 1e-8:
                    break
            if gain <= 0.1 * mu or length <= 1e-8:
                break
            # Far from the path, a step is too short: double it while the merit falls.
            while gain > mu and self.value > goal:
                length *= 2
                if not self._move(x + length * step, mu, self.merit - 0.1 * gain):
                    break
        self.last = mu
        return taken

    def _move(self, x: np.ndarray, mu: float, limit: float) -> bool:
        """Move to x if it is feasible and its merit is at most ``limit``."""
        found = self._factor(x)
        merit = np.inf if found is None else self._merit(x, found, mu)
        if found is None or not merit <= limit:
            return False
        self.x, self.factors, self.merit = x, found, merit
        return True


def _shifted(A: np.ndarray, by: float) -> np.ndarray:
    """Return a matrix plus a multiple of the identity, or the sum of two numbers."""
    A = A.copy()
    if A.ndim:
        A[np.diag_indices_from(A)] += by
        return A
    return A + by


def _inverse(factor: np.ndarray) -> np.ndarray:
    """Return the inverse of a lower triangular matrix."""
    return dtrtri(factor, lower=1)[0]


def _symmetric(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return sym(x yᵀ) for each pair of rows, (n_rows, n, n)."""
    made = x[:, :, None] * y[:, None]
    return (made + made.transpose(0, 2, 1)) / 2


class Relaxation:
    """The upper bound on Σκ_j of parts that share u, which can be lowered from any start.

    Sectors must come last among ``constraints``, and need a single part. ``unit_readouts``
    is False in a regression, which has t = 0. ``lowest`` is the lowest bound so far. The
    relaxed u uᵀ at this bound is a mixture of ``directions`` (n_inputs, n_channels, k) with
    their ``shares``, largest first.
    """

    def __init__(
        self,
        parts: Sequence[LinearProblem],
        constraints: Sequence[Constraint | Sectors] = (),
        *,
        unit_readouts: bool = True,
    ) -> None:
        self.parts, self.constraints = parts, constraints
        last = constraints[-1] if constraints else None
        self.sectors = last if isinstance(last, Sectors) else None
        self._n_variables = sum(one.n_variables for one in constraints)
        self.floors = np.array([part.floor for part in parts])
        self._is_free = unit_readouts
        # Without noise, t and 1/z have a free common factor, whose best value is known.
        self._has_multiple = unit_readouts and self.sectors is None
        self._has_multiple &= not any(part.is_noisy for part in parts)
        self.lowest, self.n_evaluations, self.n_steps = np.inf, 0, 0
        self.point: tuple[list[np.ndarray], np.ndarray, np.ndarray] | None = None
        self.directions, self.shares = np.zeros((1, 1, 0)), np.zeros(0)
        #: The relaxed w wᵀ of w = (v, u), up to a factor, if Newton's method found it.
        self.lifted: np.ndarray | None = None

    def _multipliers(self, linearised: _Linearised, u: np.ndarray) -> np.ndarray:
        """Return the t, plus ηp_min, for which u attains the maximum at these kernels."""
        if not self._is_free:
            return self.floors
        states = linearised.responses.drive(u.T.reshape(-1, 1))[:, :, 0]
        t = np.array([p.multiplier(x) for p, x in zip(self.parts, states, strict=True)])
        largest = float(t.max())
        return np.maximum(t, 1e-6 * largest) if largest else np.ones_like(t)

    def at(self, kernels: list[np.ndarray], u: np.ndarray) -> float:
        """Lower the bound in t at fixed kernels, from the t of u; return ``lowest``."""
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
        minimize(
            function,
            np.log(t),
            jac=True,
            method="L-BFGS-B",
            options={"maxfun": _AT_EVALUATIONS, "ftol": 1e-13, "gtol": 0.0},
        )
        return self.lowest

    def prove(
        self,
        kernel: np.ndarray,
        T: np.ndarray,
        start: np.ndarray | None,
        *,
        count: int,
        tol: float = 1e-10,
        rise: float = np.inf,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bound κ at a kernel and T = t − ηp_min from products with the system alone.

        Returns the leading directions (n_inputs, n_channels, count), the largest last, and
        the readouts (n_outputs, count) that they call for. The largest eigenvalue is found
        to the relative ``tol``, from ``start``, which has the form of directions.
        """
        linearised = _Linearised(self.parts, [kernel])
        responses, t = linearised.responses, self._allowed(T)
        flat = None
        if start is not None:
            flat = start.swapaxes(0, 1).reshape(-1, start.shape[2])
        values, vectors, readouts = responses.largest(
            lambda y: linearised.damped(t, y), count, start=flat, tol=tol, rise=rise
        )
        self.n_evaluations += 1
        z, share = np.zeros(0), np.ones(1)
        self._record(linearised, [kernel], t, z, float(values[-1]), share, vectors[:, -1:])
        return responses.as_projection(vectors), readouts[0]

    def prove_within(
        self,
        node: Relaxation,
        outputs: np.ndarray,
        inputs: np.ndarray,
        *,
        count: int,
        goal: float,
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Bound κ within the sectors of a node of a small space, at its lowest point.

        ``outputs`` (n_outputs, r) and ``inputs`` (n_inputs, k) are the directions of that
        space. Returns the bound, and directions and readouts as `prove` does. The search
        for the largest eigenvalue ends when it proves ``goal``.
        """
        assert node.point is not None
        kernels, t, z = node.point
        t = self._allowed(t - node.floors)
        linearised, (part,) = _Linearised(self.parts, kernels), self.parts
        responses, joint = linearised.responses, None
        damping = partial(part.damped, float(t[0]))
        if node.sectors is not None:
            joint = Embedded(node.sectors.matrix(z), outputs, inputs)
            damping = joint.damping(damping)
        n_channels, n = part.stimuli.n_channels, part.system.n_inputs
        if damping is None:
            return np.inf, np.zeros((n, n_channels, 0)), np.zeros((len(outputs), 0))

        def square(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            driven = responses.drive(flat)[0]
            if joint is not None:
                driven = driven + joint.times(np.zeros_like(driven), flat)[0]
            driven = damping(driven)
            pulled = responses.pull(driven[None])
            return pulled if joint is None else pulled + joint.times(driven, flat)[
                1
            ], driven

        constant = linearised.constant + linearised.rounding
        constant += 0.5 * float((t - self.floors).sum())
        constant += 0.0 if joint is None else joint.rounding
        mixed = np.tensordot(inputs, node.directions[:, :, :count], axes=1)
        start = mixed.swapaxes(0, 1).reshape(n_channels * n, -1)
        drawn = np.random.default_rng(0).standard_normal((len(start), 1))
        found = largest_eigenpairs(
            square,
            np.concatenate([start, drawn], axis=1),
            count,
            tol=1e-10,
            enough=2 * (goal - constant),
        )
        self.n_evaluations += 1
        directions = responses.as_projection(found.vectors)
        return constant + 0.5 * found.highest, directions, found.beside

    def _allowed(self, T: np.ndarray) -> np.ndarray:
        """Return t = T + ηp_min, positive; that of a small space may be too small."""
        return np.maximum(T + self.floors, _LEAST * np.abs(T).max(initial=0.0))

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
        """Lower the bound in kernels, t and z together; return ``lowest``.

        It starts from the kernels and the multipliers of u, or from ``start`` (t, z), and
        stops at ``goal``. A small problem uses Newton's method. A larger problem runs
        L-BFGS for at most ``max_evaluations`` once per entry of ``smoothing``, the width of
        a smoothed λ_max as a share of λ_max.
        """
        t, z = start or (None, np.zeros(self._n_variables))
        if t is None:
            t = self._multipliers(_Linearised(self.parts, kernels), u)
        if self.is_small:
            self._follow(kernels, t, z, goal)
            return self.lowest
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
        """Lower the bound by L-BFGS in kernels, log t and z."""
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
            t = np.exp(logs) if self._is_free else self.floors
            linearised = _Linearised(self.parts, places)
            value, bars, by_t, by_z = self._value(linearised, places, t, unit * z, width)
            if self.lowest <= goal:
                raise _Closed
            back = [m.inverse.T @ bar for m, bar in zip(metrics, bars, strict=True)]
            return value / unit, np.concatenate([*back, by_t, unit * by_z]) / unit

        point = np.concatenate([*own, np.log(t), z / unit])
        options = {"maxfun": max_evaluations, "maxcor": 30, "ftol": 1e-13, "gtol": 0.0}
        try:
            # From the edge of the feasible set, a smoother bound leads further.
            for share in (0.1, *smoothing) if self.constraints else smoothing:
                given: dict[str, Any] = {"args": (share * unit,), "jac": True}
                given |= {"bounds": limits, "options": options}
                point = minimize(function, point, method="L-BFGS-B", **given).x
        except _Closed:
            pass

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Number of coordinates of all kernels, and lengths of v and u."""
        part = self.parts[0]
        rank = sum(metric.root.shape[1] for metric in self._metrics)
        n = part.system.n_inputs * part.stimuli.n_channels
        return rank, part.system.n_outputs, n

    @property
    def cost(self) -> float:
        """Number of products per Newton step."""
        rank, n_outputs, n = self._sizes
        size = rank + len(self.parts) + self._n_variables + 1
        return float(rank) * n_outputs * n * (n_outputs + 2 * n) + float(size * n) ** 2

    def closer(self, tol: float) -> float:
        """Return the gap to search to; it is smaller than ``tol`` if that is quick.

        Of two optima within the tolerance, one may be better.
        """
        return min(tol, _EQUAL) if tol <= _CLOSE and self.cost <= QUICK else tol

    @property
    def is_small(self) -> bool:
        """Whether second derivatives in all variables are worth the time and memory."""
        rank, n_outputs, n = self._sizes
        size = rank + len(self.parts) + self._n_variables + 1
        fits = 8 * (2 * rank * n_outputs * n + size * n**2) <= _NEWTON_BYTES
        return fits and (len(self.parts) == 1 or self.cost <= _NEWTON_PRODUCTS)

    def _follow(
        self, kernels: list[np.ndarray], t: np.ndarray, z: np.ndarray, goal: float
    ) -> None:
        """Lower the bound by Newton's method in the kernels' coordinates, t, z and ℓ."""
        metrics = self._metrics
        c = [m.root.T @ a for m, a in zip(metrics, kernels, strict=True)]
        linearised = _Linearised(self.parts, kernels)
        whole = float((t - self.floors).sum())
        rest = self._meet(linearised, kernels, t, z)[0] - linearised.constant
        unit = 0.5 * abs(whole) + abs(rest - 0.5 * whole)
        if not 0 < unit < np.inf:
            return
        parts = [one.in_units(unit) for one in self._responses]
        path = _CentralPath(parts, self.constraints, is_free=self._is_free)
        if not path.begin([own / np.sqrt(unit) for own in c], z / unit):
            return
        mu = path.last
        while True:
            taken = path.centre(mu, max(goal / unit - _REACHED * abs(goal / unit), -_DEEP))
            self.n_steps += taken
            coordinates, t, z = path.split(path.x)
            places = zip(metrics, coordinates, strict=True)
            kernels = [m.inverse @ own * np.sqrt(unit) for m, own in places]
            t = unit * t + self.floors if self._is_free else self.floors
            self._meet(_Linearised(self.parts, kernels), kernels, t, unit * z)
            left = mu * path.n_barrier * unit  # possible further decrease
            if left <= _NEWTON_TOL * abs(self.lowest) or self.lowest <= goal or mu < 1e-14:
                break
            if taken == _NEWTON_STEPS:  # rounding has hidden the path
                break
            # This node will stay above the goal, so it will be cut.
            if self.sectors is not None and _CUT * left < self.lowest - goal < np.inf:
                break
            mu *= 0.3 if taken > 2 else 0.1
        shares, vectors = np.linalg.eigh(path.factors.L @ path.factors.L.T)
        self.shares = shares[::-1] / shares.sum()
        self.directions = linearised.responses.as_projection(vectors[:, ::-1])
        if len(parts) == 1:
            self.lifted = path.lifted

    def within(self, sectors: Sectors) -> Relaxation:
        """Return the same bound for the pairs of projections in these sectors."""
        others = [one for one in self.constraints if one is not self.sectors]
        made = Relaxation(self.parts, [*others, sectors])
        made._metrics, made._responses = self._metrics, self._responses
        return made

    def starts(self) -> Iterator[np.ndarray]:
        """Yield input projections to ascend from: the directions and mixtures of them."""
        rng = np.random.default_rng(0)
        rank = min(int((self.shares > _MINOR).sum()), _DIRECTIONS)
        directions = self.directions[:, :, :rank]
        mixtures = [np.eye(rank)]
        if rank > 1:
            # The optimum mixes the leading two much like the relaxation, with either sign.
            sizes = np.sqrt(self.shares[:rank])
            angle = float(np.arctan2(sizes[1], sizes[0]))
            angles = np.concatenate([angle * _ANGLES, -angle * _ANGLES])
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
    def _responses(self) -> list[_Part]:
        pairs = zip(self.parts, self._metrics, strict=True)
        return [_Part.of(part, metric) for part, metric in pairs]

    def _meet(
        self,
        linearised: _Linearised,
        kernels: list[np.ndarray],
        t: np.ndarray,
        z: np.ndarray,
        width: float = 0.0,
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the smoothed bound, its shares and vectors; record the proven bound."""
        self.n_evaluations += 1
        if self.sectors is not None:
            linearised.joint = self.sectors.matrix(z[-self.sectors.n_variables :])
        values, vectors, price = linearised.spectrum(
            t, z, self.constraints, None if width else 1
        )
        top, whole = float(values[-1]), float((t - self.floors).sum())
        soft, share, vectors = soft_maximum(values, vectors, width)
        self._record(linearised, kernels, t, z, top + price, share, vectors)
        return linearised.constant + 0.5 * (whole + soft + price), share, vectors

    def _record(
        self,
        linearised: _Linearised,
        kernels: list[np.ndarray],
        t: np.ndarray,
        z: np.ndarray,
        top: float,
        share: np.ndarray,
        vectors: np.ndarray,
    ) -> None:
        """Keep the bound from λ_max + ρ at this point if it is the lowest so far."""
        whole = float((t - self.floors).sum())
        proven = linearised.constant + linearised.rounding
        if self._has_multiple:
            proven += float(np.sqrt(whole * max(top, 0.0)))
        else:
            proven += 0.5 * (whole + top)
        if proven < self.lowest:
            self.lowest, self.shares = proven, share
            self.point = ([a.copy() for a in kernels], t.copy(), z.copy())
            self.directions = linearised.responses.as_projection(vectors)

    def _value(
        self,
        linearised: _Linearised,
        kernels: list[np.ndarray],
        t: np.ndarray,
        z: np.ndarray,
        width: float,
    ) -> tuple[float, list[np.ndarray], np.ndarray, np.ndarray]:
        """Return the smoothed bound and its gradients by kernels, log t and z.

        With the share p of each eigenvector x, the gradient by a kernel a is ηψ(a − a'),
        with the kernel a' of Σ p (t + ηP)⁻¹G(d)x xᵀ.
        """
        value, share, vectors = self._meet(linearised, kernels, t, z, width)
        damped = linearised.damped(t, linearised.drive(vectors))
        root = np.sqrt(share)
        B = linearised.responses.as_projection(vectors) * root
        by_kernel: list[np.ndarray] = []
        for part, spread, states in zip(
            self.parts, linearised.spreads, damped, strict=True
        ):
            atom = part.kernel_of(states * root, B)
            by_kernel.append(spread - part.eta * (part.stimuli.psi @ atom))
        by_t = 0.5 * t * (1 - (damped**2).sum(1) @ share) * self._is_free
        parts = [
            one.gradient(
                np.vstack([damped[0], vectors]) if one is self.sectors else vectors, share
            )
            for one in self.constraints
        ]
        by_z = 0.5 * np.concatenate([np.zeros(0), *parts])
        return value, by_kernel, by_t, by_z
