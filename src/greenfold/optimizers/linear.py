"""The linear problem: κ = a·μ − (η/2) aᵀψa with a kernel a that is linear in X = v uᵀ.

Noise of covariance P in the states costs (η/2) vᵀPv = (η/2) tr(XᵀPX), convex in X. With
P = λI + SSᵀ it is the square of SᵀX: kernels are carried on by those entries, and the
problem is the same with longer kernels. λ costs every unit readout the same; taking it out
tightens the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, eigsh

from ..math.covariances import Factored
from ..math.margins import SoftMargin
from ..math.sphere import KernelQuadratic, gram, in_singular_basis
from ..stimuli.base import Stimuli
from ..systems import LinearSystem, ResponseSum

#: Random projections that `growth` is estimated from, and the error of a weighted sum of
#: Green's functions in units of their size: a few roundings each.
_PROBES, _ROUNDING = 4, 16 * np.finfo(float).eps
#: Up to this size a dense decomposition is as fast as an iterative one, which ends at this
#: relative residual.
_DENSE_SIZE, _LANCZOS_TOL = 400, 1e-10

#: Cotangents of both factors of X from that of its kernel.
FactorPullback = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Soft margin of a linear system as a function of both projections.

    u is a matrix (n_inputs, n_channels) throughout; kernels a are flat, channels one after
    the other, like ``stimuli.mu``, and followed by SᵀX where there is noise of
    ``covariance`` (n_outputs, n_outputs) on the states.
    """

    system: LinearSystem
    stimuli: Stimuli
    eta: float
    covariance: np.ndarray | None = None

    @cached_property
    def _noise(self) -> tuple[float, np.ndarray]:
        """P = λI + SSᵀ with the largest λ: λ and S (n_outputs, rank)."""
        if self.covariance is None:
            return 0.0, np.zeros((self.system.n_outputs, 0))
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        lowest = max(float(values[0]), 0.0)
        above = values - lowest
        keep = above > 1e-13 * max(float(values[-1]), 0.0)
        return lowest, vectors[:, keep] * np.sqrt(above[keep])

    @cached_property
    def offset(self) -> float:
        """What every pair of unit projections pays alike; none without noise."""
        return 0.5 * self.eta * self._noise[0]

    @cached_property
    def _root(self) -> np.ndarray:
        return self._noise[1]

    @cached_property
    def _size(self) -> int:
        return len(self.stimuli.mu)

    @cached_property
    def mean(self) -> np.ndarray:
        """μ, the gradient of κ at the kernel zero."""
        n_rest = self._root.shape[1] * self.system.n_inputs * self.stimuli.n_channels
        return np.append(self.stimuli.mu, np.zeros(n_rest)) if n_rest else self.stimuli.mu

    def spread(self, a: np.ndarray) -> np.ndarray:
        """ψa, of one kernel or of several in columns."""
        n = self._size
        plain = self.stimuli.psi @ a[:n]
        return plain if len(a) == n else np.concatenate([plain, a[n:]])

    def margin_of_kernel(self, a: np.ndarray) -> SoftMargin:
        """κ of a kernel a."""
        separation = float(a[: self._size] @ self.stimuli.mu)
        variance = float(0.5 * self.eta * (a @ self.spread(a))) + self.offset
        return SoftMargin(separation - variance, separation, variance)

    def gradient_at(self, a: np.ndarray) -> np.ndarray:
        """Gradient d = μ − ηψa of κ with respect to a."""
        return self.mean - self.eta * self.spread(a)

    def by_channel(self, d: np.ndarray) -> np.ndarray:
        """A flat kernel as (n_channels, n_steps)."""
        return d[: self._size].reshape(self.stimuli.n_channels, self.stimuli.n_steps)

    def kernel(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Kernel a with a_(c,n) = vᵀ G⁽¹⁾_n u_c."""
        return self._kernel(self.system.readout_response(v), u, v)

    def _kernel(self, rows: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = (rows @ u).T.ravel()
        if not self._root.size:
            return a
        return np.append(a, np.outer(v @ self._root, u.T.ravel()).ravel())

    @cached_property
    def _quadratic(self) -> KernelQuadratic:
        return KernelQuadratic(self.stimuli.mu, self.stimuli.psi)

    @cached_property
    def _of_readout(self) -> KernelQuadratic:
        """What judges the kernels ``_seen(u) @ v``; for one unit u, SᵀX is Sᵀv."""
        n, rank = self._size, self._root.shape[1]
        if not rank:
            return self._quadratic
        psi = np.eye(n + rank)
        psi[:n, :n] = np.asarray(self.stimuli.psi)
        return KernelQuadratic(np.append(self.stimuli.mu, np.zeros(rank)), psi)

    def _seen(self, u: np.ndarray) -> np.ndarray:
        """Kernels as a linear map of the readout."""
        R = self.system.input_response(u)
        return np.vstack([R, self._root.T]) if self._root.size else R

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal v for a given u (paper, equation 18, `soft-margin-gradient-v`)."""
        R = self._seen(u)
        v = self._of_readout.maximize(R, self.eta)
        return v, self.margin_of_kernel(R @ v)

    def readout_terms(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The terms b and Q of κ = b·v − (η/2) vᵀQv at one u, on unit v."""
        R, P = self.system.input_response(u), self.covariance
        Q = gram(R, self.stimuli.psi)
        return R.T @ self.stimuli.mu, Q if P is None else Q + (P + P.T) / 2

    def readouts(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Optimal readouts for many η at one u, (n_etas, n_outputs)."""
        return self._of_readout.readouts(self._seen(u), etas)

    def kernels(self, u: np.ndarray, etas: np.ndarray) -> np.ndarray:
        """Kernels of those readouts, (n_channels · n_steps, n_etas)."""
        R = self._seen(u)
        return (R @ self._of_readout.readouts(R, etas).T)[: self._size]

    def best_input(self, v: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Optimal u for a given v (paper, cases A and B of the input projection)."""
        rows = self.system.readout_response(v)
        n_channels = self.stimuli.n_channels
        if isinstance(self.stimuli.psi, Factored):
            flat = self._best_in_span(rows)
        else:
            # Row (c, n) holds l_n in the columns of channel c: a = L vec(uᵀ).
            flat = self._quadratic.maximize(np.kron(np.eye(n_channels), rows), self.eta)
        u = flat.reshape(n_channels, -1).T
        return u, self.margin_of_kernel(self._kernel(rows, u, v))

    def _best_in_span(self, rows: np.ndarray) -> np.ndarray:
        """`best_input` where ψ is known by its factor: L itself is never formed."""
        factor, white, rest = self._quadratic.root_of_psi
        shape = (self.stimuli.n_channels, self.stimuli.n_steps)

        def pulled(columns: np.ndarray) -> np.ndarray:
            """Lᵀ times columns (D, k), channel by channel."""
            parts = rows.T @ columns.reshape(*shape, -1)
            return parts.reshape(-1, columns.shape[-1])

        size = np.sqrt(shape[0]) * float(np.linalg.norm(rows) * np.linalg.norm(rest))
        seen, beyond = pulled(factor).T, pulled(rest[:, None])[:, 0]
        return in_singular_basis(seen, beyond, white, np.array([self.eta]), 1e-13 * size)[0]

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Optimal v, κ, and ∂κ/∂u at that v, along the sphere."""
        stimuli, R = self.stimuli, self._seen(u)
        v = self._of_readout.maximize(R, self.eta)
        # `margin_of_kernel` and `gradient_at`, with one product by ψ for both.
        a, rest = np.split(R @ v, [self._size])
        curved = stimuli.psi @ a
        separation = float(a @ stimuli.mu)
        variance = 0.5 * self.eta * float(a @ curved + rest @ rest) + self.offset
        d = (stimuli.mu - self.eta * curved).reshape(stimuli.n_channels, stimuli.n_steps)
        gradient = (d @ self.system.readout_response(v)).T
        return v, SoftMargin(separation - variance, separation, variance), gradient

    def kernel_of(self, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, FactorPullback]:
        """Kernel of X = Σ_r A_r B_rᵀ, and cotangents of A and B from that of the kernel.

        A is (n_outputs, rank), B (n_inputs, n_channels, rank).
        """
        rows, S = self.system.readout_response(A), self._root  # (K, N, r)
        right = B.transpose(1, 0, 2).reshape(-1, A.shape[1])

        def pull(bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            d = self.by_channel(bar)
            A_bar = self.system.response_sum(d).drive(B)
            B_bar = np.einsum("cn,nir->icr", d, rows)
            if S.size:
                D = self._of_noise(bar)
                A_bar = A_bar + S @ (D @ right)
                back = (D.T @ (S.T @ A)).reshape(B.shape[1], B.shape[0], -1)
                B_bar = B_bar + back.transpose(1, 0, 2)
            return A_bar, B_bar

        a = np.einsum("nir,icr->cn", rows, B).ravel()
        return np.append(a, (S.T @ A @ right.T).ravel()) if S.size else a, pull

    def _of_noise(self, d: np.ndarray) -> np.ndarray:
        """The entries of SᵀX as (rank, n_channels · n_inputs)."""
        return d[self._size :].reshape(self._root.shape[1], -1)

    @cached_property
    def growth(self) -> float:
        """How much the system amplifies: the largest ‖G_n‖, over the steps n.

        Estimated from random u, for which ‖G_n u‖² is ‖G_n‖²_F / N on average.
        """
        rng = np.random.default_rng(0)
        u = rng.standard_normal((self.system.n_inputs, _PROBES))
        u /= np.linalg.norm(u, axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by `best_atom`
            response = self.system.input_response(u)
            response = response.reshape(_PROBES, -1, self.system.n_outputs)
            square = (response**2).sum(2).mean(0) * self.system.n_inputs
        return float(np.sqrt(square.max()))

    def rounding(self, d: np.ndarray) -> float:
        """Error that rounding may leave in the singular values of G(d)."""
        return float(_ROUNDING * np.abs(d[: self._size]).sum() * self.growth)

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """G(d) of a gradient by the kernel; G(d) + S D under noise."""
        noisy = self._root.size and d[self._size :].any()
        plain = self.system.response_sum(self.by_channel(d))
        return _Shifted(plain, self._root, self._of_noise(d)) if noisy else plain

    def best_atom(
        self, d: np.ndarray, guess: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Largest singular value of G(d) = Σ_n d_n G⁽¹⁾_n, not below it, with u and v.

        A guess of u and v is where an iterative search begins.
        """
        n_inputs, n_channels = self.system.n_inputs, self.stimuli.n_channels
        if not d.any():
            u = np.eye(1, n_inputs).T * np.eye(1, n_channels)
            return 0.0, u, np.eye(1, self.system.n_outputs)[0]
        responses = Responses([self.response_sum(d)], n_channels, n_inputs)
        sigma, u, left = responses.leading(None if guess is None else guess[0])
        return sigma, u, left[0]

    def best_scale(self, a: np.ndarray) -> float:
        """The t in [0, 1] that maximises κ(t a)."""
        linear = float(a @ self.mean)
        curvature = float(self.eta * (a @ self.spread(a)))
        if curvature <= 0:
            return 1.0 if linear > 0 else 0.0
        return float(np.clip(linear / curvature, 0.0, 1.0))

    def improve(
        self, A: np.ndarray, B: np.ndarray, *, max_iter: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Raise κ over X = A Bᵀ with ‖X‖_* ≤ 1, in so many evaluations.

        A and B are as in `kernel_of`; those returned are scaled so that
        ½(‖A‖² + ‖B‖²) ≤ 1, an upper bound on the nuclear norm that is attained.
        """
        split = A.size

        def unpack(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return flat[:split].reshape(A.shape), flat[split:].reshape(B.shape)

        def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
            size = 0.5 * float(flat @ flat)
            a, pull = self.kernel_of(*unpack(flat))
            a = a / size
            shrink = self.best_scale(a)
            margin = self.margin_of_kernel(shrink * a)
            d = self.gradient_at(shrink * a) * (shrink / size)
            bars = [bar.ravel() for bar in pull(d)]
            # The scale ½‖·‖² is differentiated too: a depends on it as 1/size.
            return -margin.value, float(d @ a) * flat - np.concatenate(bars)

        start = np.concatenate([A.ravel(), B.ravel()])
        start = start / np.sqrt(0.5 * start @ start)
        options = {"maxfun": max_iter, "maxiter": max_iter, "maxcor": 20}
        options |= {"ftol": 1e-15, "gtol": 0.0}
        end = minimize(negative, start, jac=True, method="L-BFGS-B", options=options).x
        left, right = unpack(end / np.sqrt(0.5 * end @ end))
        shrink = np.sqrt(self.best_scale(self.kernel_of(left, right)[0]))
        return left * shrink, right * shrink


@dataclass(frozen=True, eq=False)
class _Shifted:
    """G(d) + S D as a `ResponseSum`."""

    response: ResponseSum
    S: np.ndarray
    D: np.ndarray

    def matrix(self) -> np.ndarray | None:
        made = self.response.matrix()
        return None if made is None else made + self.S @ self.D

    def drive(self, u: np.ndarray) -> np.ndarray:
        flat = u.transpose(1, 0, 2).reshape(-1, u.shape[2])
        return self.response.drive(u) + self.S @ (self.D @ flat)

    def pull(self, v: np.ndarray) -> np.ndarray:
        plain = self.response.pull(v)
        return plain + ((v @ self.S) @ self.D).reshape(plain.shape[1], -1).T


def problem_under_noise(
    system: LinearSystem, stimuli: Stimuli, eta: float, noise: dict[str, np.ndarray]
) -> LinearProblem:
    """The linear problem under noise of these covariances; see `Device.noise`."""
    if "input" in noise:
        psi = np.asarray(stimuli.psi) + noise["input"]
        stimuli = Stimuli(stimuli.mu, psi, stimuli.n_channels, stimuli.n_steps)
    at_states = [noise[name] for name in ("state", "readout") if name in noise]
    covariance = np.sum(at_states, axis=0) if at_states else None
    return LinearProblem(system, stimuli, eta, covariance)


def noise_cost(
    problem: LinearProblem, u: np.ndarray, v: np.ndarray, noise: dict[str, np.ndarray]
) -> dict[str, float]:
    """What each noise takes from κ at a pair of projections."""
    met = {"state": v, "readout": v}
    if "input" in noise:
        met["input"] = (problem.system.readout_response(v) @ u).T.ravel()
    return {k: 0.5 * problem.eta * float(met[k] @ P @ met[k]) for k, P in noise.items()}


class Responses:
    """Largest singular values of G(d_j) of several signals, stacked.

    Directions are flat, by channel, then input. Large matrices, and those that are never
    formed, are searched by Lanczos iteration, and what it may be wrong by is added: a bound
    stays one.
    """

    def __init__(self, sums: Sequence[ResponseSum], n_channels: int, n_inputs: int) -> None:
        self._sums, self._shape = sums, (n_channels, n_inputs)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            made = [one.matrix() for one in sums]
        self._matrices = None
        if not any(one is None for one in made):
            self._matrices = np.array(made) if len(made) > 1 else np.asarray(made[0])[None]
        if self._matrices is not None and not np.isfinite(self._matrices).all():
            problem = "the response of this network to a pulse exceeds floating point"
            advice = "read it earlier, or scale the weights down"
            raise OverflowError(f"{problem} before the readout; {advice}.")

    def as_projection(self, flat: np.ndarray) -> np.ndarray:
        """Flat directions (n, …) as (n_inputs, n_channels, …)."""
        return flat.reshape(*self._shape, *flat.shape[1:]).swapaxes(0, 1)

    def drive(self, flat: np.ndarray) -> np.ndarray:
        """States (n_signals, n_outputs, k) for flat directions in k columns."""
        if self._matrices is not None:
            return self._matrices @ flat
        u = self.as_projection(flat)
        return np.stack([one.drive(u) for one in self._sums])

    def pull(self, states: np.ndarray, factors: np.ndarray | None = None) -> np.ndarray:
        """Σ_j factor_j G(d_j)ᵀ y_j of states (n_signals, n_outputs), flat."""
        if self._matrices is not None:
            pulled = np.stack([y @ m for m, y in zip(self._matrices, states, strict=True)])
        else:
            pairs = zip(self._sums, states, strict=True)
            pulled = np.stack([one.pull(y).T.ravel() for one, y in pairs])
        return pulled.sum(0) if factors is None else factors @ pulled

    def leading(
        self, guess: np.ndarray | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """σ_max of the stack, not below it; u, and left vectors (n_signals, n_outputs).

        A guess of u (n_inputs, n_channels) is where an iterative search begins.
        """
        stacked = None
        if self._matrices is not None:
            stacked = self._matrices.reshape(-1, self._matrices.shape[2])
        if stacked is not None and min(stacked.shape) <= _DENSE_SIZE:
            sigma, flat, left = leading_triplet(stacked)
            return sigma, self.as_projection(flat), left.reshape(len(self._sums), -1)
        start = None if guess is None else guess.T.ravel()
        square, flat = self._search(lambda y: self.pull(y), start)
        left = self.drive(flat[:, None])[:, :, 0]
        size = float(np.linalg.norm(left))
        return float(np.sqrt(square)), self.as_projection(flat), left / (size or 1.0)

    def spectrum(
        self, weights: np.ndarray, *, last: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of Σ_j GᵀG/w_j, ascending, with vectors.

        With ``last``, and of a large network, the largest alone, not below it.
        """
        if self._matrices is None:
            value, flat = self._search(lambda y: self.pull(y, 1 / weights))
            return np.array([value]), flat[:, None]
        square = np.tensordot(1 / weights, self._squares, axes=1)
        end = len(square) - 1
        return eigh(square, subset_by_index=[end, end] if last else None)

    @cached_property
    def _squares(self) -> np.ndarray:
        assert self._matrices is not None
        return np.stack([m.T @ m for m in self._matrices])

    def _search(
        self, pull: Callable[[np.ndarray], np.ndarray], start: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The largest eigenvalue of u ↦ pull(drive(u)), not below it, and its vector."""
        size = self._shape[0] * self._shape[1]

        def square(flat: np.ndarray) -> np.ndarray:
            return pull(self.drive(np.reshape(flat, (-1, 1)))[:, :, 0])

        made, search = cast("Any", LinearOperator), cast("Any", eigsh)
        operator = made((size, size), matvec=square, dtype=float)
        start = np.ones(size) if start is None else start
        values, vectors = search(operator, k=1, v0=start, tol=_LANCZOS_TOL)
        # An eigenvalue lies within the residual; the search found the largest.
        residual = np.linalg.norm(square(vectors[:, 0]) - values[0] * vectors[:, 0])
        return float(values[0] + residual), vectors[:, 0]


def leading_triplet(matrix: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Largest singular value of a dense matrix M with its right and left vector.

    It is the largest eigenpair of M Mᵀ, as accurate as by a decomposition of M.
    """
    # A power of two brings M to order one, so that no square leaves floating point.
    exponent = int(np.frexp(np.abs(matrix).max())[1])
    scaled = np.ldexp(matrix, -exponent)
    wide = scaled.shape[0] <= scaled.shape[1]
    square = scaled @ scaled.T if wide else scaled.T @ scaled
    last = len(square) - 1
    values, vectors = eigh(square, subset_by_index=[last, last], check_finite=False)
    one = vectors[:, 0]
    other = (scaled.T if wide else scaled) @ one
    size = float(np.linalg.norm(other))
    if size == 0:  # the matrix is zero
        return 0.0, np.eye(1, matrix.shape[1])[0], np.eye(1, matrix.shape[0])[0]
    other = other / size
    sigma = float(np.ldexp(max(size, np.sqrt(values[0])), exponent))
    return (sigma, other, one) if wide else (sigma, one, other)
