"""One step of the true dynamics, in continuous and in discrete time.

The network T ẏ = −y + W φ(y) + u x with time constants T = diag(τ_i), seen from its resting
state, splits into a linear part and the non-linear part f of the gain, beyond its slope s,

    T ḋ = −A d + W f(d) + u x,    A = I − W diag(s).

The linear part and the input, constant over a step, are integrated exactly; f enters
through four stages. With L = −T⁻¹A, h the length of the step, and f₁ … f₄ at the stages,
this is Krogstad's exponential Runge–Kutta method of order 4 (J. Comput. Phys. 203, 2005).
It is written in differences, which take seven products with N×N matrices instead of ten:

    a  = E d + k,               k = (h/2) φ₁(hL/2) T⁻¹ (W f₁ + u x),   E = exp(hL/2)
    b  = a + h φ₂(hL/2) T⁻¹W (f₂ − f₁)
    m  = E a + k                the whole step if f stayed at f₁
    c  = m + 2h φ₂(hL) T⁻¹W (f₃ − f₁)
    d' = m + h (2φ₂ − 4φ₃)(hL) T⁻¹W (f₂ + f₃ − 2f₁) + h (4φ₃ − φ₂)(hL) T⁻¹W (f₄ − f₁)

For a sparse W, the propagators would be dense. `SparseStep` integrates only the decay and
the input exactly, and takes W f, with the whole gain f(d) = φ(y* + d) − φ(y*), at twelve
stages. With the coefficients a_ij and c_i of the method of Dormand and Prince of order 8
(DOP853 of Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I), they are

    d_i = u x + e^{−c_i hT⁻¹} (d − u x + Σ_j a_ij k_j),   k_j = h T⁻¹ e^{c_j hT⁻¹} W f(d_j).

For an error of 1e-6, random networks need half of the products that Krogstad's method
needs with L = −T⁻¹.

The leaky echo state network is y' = (1 − a) y + a φ(W y + u x + b). It rests at
y* = φ(W y* + b). With p* = W y* + b, deviations d follow exactly

    d' = (1 − a) d + a [φ(W d + u x + p*) − φ(p*)].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.integrate import DOP853

from .._base.arrays import (
    Array,
    add_product,
    empty,
    multiply_into,
    namespace,
    plus_product,
)
from ..networks.echo_state import EchoStateNetwork
from ..networks.gains import Gain
from ..networks.matrices import by_products, dense
from ..networks.reservoir import Reservoir
from ..unfolding.propagators import HasArrays, Step, doubled, norm_bound, phi_functions
from ..unfolding.sparse import Product, cached_rows, in_columns


@dataclass(frozen=True, eq=False)
class NonlinearPart(HasArrays):
    """The part of a gain beyond a line at y*: f(d) = φ(y* + d) − φ(y*) − s d.

    ``centre`` y* and ``offset`` φ(y*) have shape (N,), or are None for 0, which saves time.
    ``slope`` s has shape (N,) or is a number. See `NonlinearPart.around`.
    """

    gain: Gain
    centre: Any
    offset: Any
    slope: Any

    @classmethod
    def around(
        cls, centre: np.ndarray, gain: Gain, *, keep_line: bool = False
    ) -> NonlinearPart:
        """Make the part at y* (N,) on the host; s is φ'(y*), or 0 with ``keep_line``."""
        offset = np.asarray(gain(centre), dtype=np.float64)
        slope: Any = 0.0
        if not keep_line:
            slope = np.asarray(gain.derivative(centre), dtype=np.float64)
            slope = 1.0 if (slope == 1).all() else slope
        at, there = (one if one.any() else None for one in (centre, offset))
        return cls(gain, at, there, slope)

    def _shifted(self, d: Array) -> Any:
        return d if self.centre is None else d + self.centre

    def _without_line(self, value: Array, d: Array) -> Any:
        # Never write to ``value``: it comes from the user's function, which may return its
        # argument or keep the array.
        if isinstance(self.slope, float):
            if not self.slope:
                return value if self.offset is None else value - self.offset
            left = value - d
        else:
            left = d * self.slope
            left *= -1
            left += value
        if self.offset is not None:
            left -= self.offset
        return left

    def value(self, d: Array) -> Any:
        """Return f(d), shaped like ``d``, (..., N); a new array unless the line is kept."""
        return self._without_line(self.gain(self._shifted(d)), d)

    def value_and_slope(self, d: Array) -> tuple[Any, Any]:
        """Return f(d) and f'(d)."""
        value, slope = self.gain.with_derivative(self._shifted(d))
        line = isinstance(self.slope, float) and not self.slope
        return self._without_line(value, d), slope if line else slope - self.slope


@dataclass(frozen=True, eq=False)
class LeakyStep(Step):
    """A `Step` of an echo state network; make one with `leaky_step`.

    ``W`` holds the transposed weights, which act on rows from the right, or is a `Product`
    with sparse weights. ``leak`` and ``keep`` are a and 1 − a for each neuron, or one
    number for all, which saves time. ``change`` is φ(p* + p) − φ(p*).
    """

    n_neurons: int
    W: Any
    leak: Any
    keep: Any
    change: NonlinearPart

    #: A step in discrete time has no length.
    reach = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.W, Product):
            vars(self).update(most_rows=cached_rows(self.n_neurons), by_columns=True)

    def scaled(self, factor: float) -> LeakyStep:
        """Return the step with its weights times a factor, for a network at rest at 0."""
        return replace(self, W=self.W * factor)

    def advance(self, y: Array, push: Array, slopes: list[Any] | None = None) -> Any:
        """Return the state after the step."""
        if isinstance(self.W, Product):
            p = self.W(y)
            p += push
        else:
            p = plus_product(push, y, self.W)
        if slopes is None:
            ahead = self.change.value(p)
        else:
            ahead, slope = self.change.value_and_slope(p)
            slopes.append(slope * self.leak)
        ahead = ahead * self.leak  # not in place: the array may belong to the user
        ahead += y * self.keep
        return ahead

    def push_forward(self, dy: Array, dpush: Array, slopes: list[Any]) -> Any:
        """Return the tangents of the state after the step, from those before it."""
        sparse_weights = isinstance(self.W, Product)
        dp = dpush + self.W(dy) if sparse_weights else plus_product(dpush, dy, self.W)
        return dp * slopes[0] + dy * self.keep

    def retreat(self, bar: Array, slopes: list[Any]) -> tuple[Any, Any]:
        """Return the cotangents of the state before the step and of the push.

        If ``slopes`` ends with the state before, it is replaced by the derivative by the
        logarithm of a factor of the weights.
        """
        p_bar = bar * slopes[0]
        bar *= self.keep
        W, by_scale = self.W, len(slopes) > 1
        if not (by_scale or isinstance(W, Product)):
            return plus_product(bar, p_bar, W.T), p_bar
        pulled: Any = W.back(p_bar) if isinstance(W, Product) else p_bar @ W.T
        if by_scale:
            slopes[1] = namespace(pulled).sum(pulled * slopes[1])
        bar += pulled
        return bar, p_bar


def leaky_step(
    weights: Any,
    leak: float | np.ndarray,
    gain: Gain,
    bias: np.ndarray | None,
    rest: np.ndarray,
) -> LeakyStep:
    """Return the step of an echo state network around its resting state y*."""
    a = np.unique(leak).astype(np.float64)
    if len(a) > 1:
        a = np.broadcast_to(np.asarray(leak, dtype=np.float64), rest.shape).copy()
    activation = weights @ rest + (0.0 if bias is None else bias)
    change = NonlinearPart.around(activation, gain, keep_line=True)
    few = sparse.issparse(weights)
    W = Product.of(weights) if few else np.ascontiguousarray(weights.T)
    return LeakyStep(len(rest), W, a, 1 - a, change)


@dataclass(frozen=True, eq=False)
class ExponentialStep(Step):
    """A `Step` in continuous time; make one with `exponential_step`.

    ``reach`` bounds ‖hL‖. The (N, N) matrices act on rows from the right, so they are
    stored transposed. E is half a step of the linear network, and F is its response to a
    constant input. P, Q2, Q3, R and S are the weights of f₁ in k, of f₂ − f₁ in b, of f₃ −
    f₁ in c, and of f₂ + f₃ − 2f₁ and f₄ − f₁ in the result.
    """

    reach: float
    f: NonlinearPart
    E: Any
    F: Any
    P: Any
    Q2: Any
    Q3: Any
    R: Any
    S: Any

    #: Number of products of N×N matrices with a batch in `advance`, and in `retreat`.
    n_products = 7
    n_slopes = 4.0  # f' at the four stages

    def __post_init__(self) -> None:
        vars(self).update(n_neurons=self.E.shape[0])

    def input_map(self, u: Array) -> Any:
        """Return the input's part of k, (n_channels, N)."""
        return namespace(u).matrix_transpose(u) @ self.F

    def input_map_pullback(self, bar: Array) -> Any:
        """Apply the adjoint of `input_map`: from (n_channels, N) to (N, n_channels)."""
        xp = namespace(bar)
        return xp.astype(self.F, bar.dtype, copy=False) @ xp.matrix_transpose(bar)

    def advance(self, y: Array, push: Array, slopes: list[Any] | None = None) -> Any:
        """Return the state at the end of the step."""

        def f(stage: Array) -> Any:
            if slopes is None:
                return self.f.value(stage)
            value, slope = self.f.value_and_slope(stage)
            slopes.append(slope)
            return value

        f1 = f(y)
        k = plus_product(push, f1, self.P)
        a = plus_product(k, y, self.E)
        f2 = f(a)
        f2 -= f1
        f3 = f(plus_product(a, f2, self.Q2))
        f3 -= f1
        ahead = plus_product(k, a, self.E)
        f4 = f(plus_product(ahead, f3, self.Q3))
        f4 -= f1
        f2 += f3
        ahead = add_product(ahead, f2, self.R)
        return add_product(ahead, f4, self.S)

    def push_forward(self, dy: Array, dpush: Array, slopes: list[Any]) -> Any:
        """Return the tangents of the state after the step, from those before it."""
        at_y, at_a, at_b, at_c = slopes
        f1 = dy * at_y
        k = plus_product(dpush, f1, self.P)
        a = plus_product(k, dy, self.E)
        f2 = a * at_a - f1
        f3 = plus_product(a, f2, self.Q2) * at_b - f1
        ahead = plus_product(k, a, self.E)
        f4 = plus_product(ahead, f3, self.Q3) * at_c - f1
        return ahead + (f2 + f3) @ self.R + f4 @ self.S

    def retreat(self, bar: Array, slopes: list[Any]) -> tuple[Any, Any]:
        """Return the cotangents of the state before the step and of the push."""
        at_y, at_a, at_b, at_c = slopes
        transpose = namespace(bar).matrix_transpose
        both_bar = bar @ transpose(self.R)  # of f₂ − f₁ and of f₃ − f₁
        f4_bar = bar @ transpose(self.S)
        c_bar = at_c * f4_bar
        bar += c_bar  # now the cotangent of m
        f3_bar = plus_product(both_bar, c_bar, transpose(self.Q3))
        b_bar = at_b * f3_bar
        f2_bar = add_product(both_bar, b_bar, transpose(self.Q2))
        a_bar = at_a * f2_bar
        a_bar += b_bar
        a_bar = add_product(a_bar, bar, transpose(self.E))
        bar += a_bar  # now the cotangent of k
        f4_bar += f3_bar
        f4_bar += f2_bar
        f1_bar = bar @ transpose(self.P)
        f1_bar -= f4_bar
        f1_bar *= at_y
        return add_product(f1_bar, a_bar, transpose(self.E)), bar


def exponential_step(
    weights: np.ndarray, tau: np.ndarray, f: NonlinearPart, length: float
) -> ExponentialStep:
    """Return one (sub-)step with its matrices, on the host in float64."""
    rate = (length / np.asarray(tau, dtype=np.float64))[:, None]
    scaled = rate * weights  # h T⁻¹ W
    Z = scaled * f.slope - np.diag(rate[:, 0])
    half = phi_functions(Z / 2, 3)
    whole = doubled(half)
    matrices = (
        half[0],
        half[1] * (rate[:, 0] / 2),
        half[1] @ scaled / 2,
        half[2] @ scaled,
        2 * whole[2] @ scaled,
        (2 * whole[2] - 4 * whole[3]) @ scaled,
        (4 * whole[3] - whole[2]) @ scaled,
    )
    rows = (np.ascontiguousarray(matrix.T) for matrix in matrices)
    return ExponentialStep(norm_bound(Z), f, *rows)


@dataclass(frozen=True, eq=False)
class SparseStep(Step):
    """A `Step` in continuous time from products with W; make one with `sparse_step`.

    ``A`` (n_stages + 1, n_stages) holds a_ij, with the weights of the result in its last
    row. ``decay`` (n_stages + 1, N, 1) is e^{−c_i hT⁻¹}, and ``scale`` (n_stages, N, 1) is
    h T⁻¹ e^{c_i hT⁻¹}.
    """

    reach: float
    f: NonlinearPart
    W: Product
    A: Any
    decay: Any
    scale: Any

    accuracy = 8
    least_bytes = 2.0**31
    by_columns = True

    def __post_init__(self) -> None:
        n, n_stages = self.decay.shape[1], self.scale.shape[0]
        vars(self).update(n_neurons=n, most_rows=cached_rows(n))
        vars(self).update(n_slopes=float(n_stages), n_working=n_stages + 10.0)

    def advance(self, y: Array, push: Array, slopes: list[Any] | None = None) -> Any:
        """Return the state at the end of the step."""

        def f(stage: Array, _: int) -> Any:
            if slopes is None:
                return self.f.value(stage)
            value, slope = self.f.value_and_slope(stage)
            slopes.append(slope)
            return value

        return self._through(y, push, f)

    def push_forward(self, dy: Array, dpush: Array, slopes: list[Any]) -> Any:
        """Return the tangents of the state after the step, from those before it."""
        return self._through(dy, dpush, lambda stage, i: stage * slopes[i])

    def _through(self, y: Array, push: Array, f: Callable[[Array, int], Any]) -> Any:
        """Return y after the step, with f at each stage."""
        transpose, n_stages = namespace(y).matrix_transpose, self.scale.shape[0]
        at, towards = in_columns(y), in_columns(push)
        z = at - towards
        pulls = empty((n_stages, *z.shape), z)
        for i in range(n_stages):
            pull = in_columns(self.W(f(transpose(at), i)))
            multiply_into(pulls[i, ...], pull, self.scale[i, ...])
            at = _mixed(self.A[i + 1, : i + 1], pulls[: i + 1, ...])
            at += z
            at *= self.decay[i + 1, ...]
            at += towards
        return transpose(at)

    def retreat(self, bar: Array, slopes: list[Any]) -> tuple[Any, Any]:
        """Return the cotangents of the state before the step and of the push."""
        transpose, n_stages = namespace(bar).matrix_transpose, self.scale.shape[0]
        at_bar = push_bar = in_columns(bar)
        # Cotangents of d − u x + Σ_j a_ij k_j; d − u x is the same at all stages.
        sums, z_bar = empty((n_stages + 1, *at_bar.shape), at_bar), None
        for i in range(n_stages, -1, -1):
            if i < n_stages:
                k_bar = _mixed(self.A[i + 1 :, i], sums[i + 1 :, ...])
                k_bar *= self.scale[i, ...]
                at_bar = in_columns(self.W.back(transpose(k_bar)))
                at_bar *= transpose(slopes[i])
                if i:
                    push_bar = push_bar + at_bar
            if i:
                multiply_into(sums[i, ...], at_bar, self.decay[i, ...])
                part = sums[i, ...]
                z_bar = part if z_bar is None else z_bar + part
        return transpose(at_bar + z_bar), transpose(push_bar - z_bar)


def _mixed(weights: Array, parts: Array) -> Any:
    """Return the weighted sum of parts (n, …)."""
    xp, shape = namespace(parts), parts.shape
    return xp.reshape(weights @ xp.reshape(parts, (shape[0], -1)), shape[1:])


def sparse_step(
    weights: Any, tau: np.ndarray, f: NonlinearPart, length: float
) -> SparseStep:
    """Return one (sub-)step from products with sparse weights, on the host."""
    rate = length / np.asarray(tau, dtype=np.float64)
    when = np.append(DOP853.C, 1.0)[:, None, None] * rate[:, None]
    centre = np.zeros(len(rate)) if f.centre is None else f.centre
    slope = np.abs(np.asarray(f.gain.derivative(centre), dtype=np.float64))
    rows, columns = rate * (1 + abs(weights) @ slope), rate + slope * (rate @ abs(weights))
    reach = float(np.sqrt(rows.max() * columns.max()))
    # Far longer steps than the fastest time constant overflow; they count as divergent.
    with np.errstate(over="ignore"):
        scale = rate[:, None] * np.exp(when[:-1])
    A = np.vstack([DOP853.A, DOP853.B])
    return SparseStep(reach, f, Product.of(weights), A, np.exp(-when), scale)


TrueStep = LeakyStep | ExponentialStep | SparseStep


def make_step(network: Reservoir | EchoStateNetwork, length: float) -> TrueStep:
    """Return one (sub-)step of a network, in continuous or discrete time."""
    weights: Any = network.weights
    if isinstance(network, EchoStateNetwork):
        parts = weights, network.leak, network.gain
        return leaky_step(*parts, network.bias, network.rest)
    tau = np.broadcast_to(np.asarray(network.tau), (network.n_neurons,))
    if by_products(weights):
        f = NonlinearPart.around(network.rest, network.gain, keep_line=True)
        return sparse_step(weights, tau, f, length)
    f = NonlinearPart.around(network.rest, network.gain)
    propagated = dense(weights, "dense propagators", "draw fewer connections")
    return exponential_step(propagated, tau, f, length)
