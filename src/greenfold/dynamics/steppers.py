"""One step of the true dynamics: an exponential Runge–Kutta method of order 4.

The network T ẏ = −y + W φ(y) + u x with time constants T = diag(τ_i), seen from its rest
state, splits into a linear part and the excess f of the gain over its slope s,

    T ḋ = −A d + W f(d) + u x,    A = I − W diag(s).

The linear part and the input, constant over a step, are integrated exactly; f enters
through four stages. With L = −T⁻¹A, h the length of the step, and f₁ … f₄ the excess at
the stages, this is Krogstad's method (J. Comput. Phys. 203, 2005) in differences:

    a  = E d + k,               k = (h/2) φ₁(hL/2) T⁻¹ (W f₁ + u x),   E = exp(hL/2)
    b  = a + h φ₂(hL/2) T⁻¹W (f₂ − f₁)
    m  = E a + k                the whole step, had f stayed at f₁
    c  = m + 2h φ₂(hL) T⁻¹W (f₃ − f₁)
    d' = m + h (2φ₂ − 4φ₃)(hL) T⁻¹W (f₂ + f₃ − 2f₁) + h (4φ₃ − φ₂)(hL) T⁻¹W (f₄ − f₁)

In this form a step takes seven products with N×N matrices, and its adjoint seven; written
out as a tableau it takes ten. Cox and Matthews' method is the same with other factors in b
and c. Its error was between 0.9 and 1.2 times Krogstad's on tanh, biased tanh and quadratic
networks at steps of 0.1 to 3.6 τ, with the same work; Krogstad's has the higher order where
the network is stiff.

One step of a network in discrete time: the leaky echo state network.

    y' = (1 − a) y + a φ(W y + u x + b)

(reservoirpy's convention). It rests where y* = φ(W y* + b); with p* = W y* + b, deviations
d from there follow the same map without a constant,

    d' = (1 − a) d + a [φ(W d + u x + p*) − φ(p*)],

exactly: there are no sub-steps.

The gain without its linear part, around the state in which the network rests.

φ-functions of a matrix, the weights of exponential integrators.

    φ₀(Z) = exp(Z),    φ_k(Z) = Σ_j Z^j / (j + k)!

They are the integrals of exp((1 − s) Z) against s^(k−1)/(k − 1)! over (0, 1). The textbook
recurrence φ_{k+1} = (φ_k − 1/k!)/Z cancels for small Z and divides by a singular one, so
none of it is used here: a short series at a small argument, then doublings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, factorial
from typing import Any

import numpy as np

from .._base.arrays import namespace
from .walk import add_product, place, plus_product


@dataclass(frozen=True, eq=False)
class LeakyStep:
    """A `Stepper` over one step; make one with `leaky_step`.

    Attributes
    ----------
    W : array (N, N)
        Transposed weights, acting on rows of states from the right.
    leak : array (N,)
        a, for each neuron.
    keep : array (N,)
        1 − a.
    function, derivative : callable
        φ and φ', elementwise on arrays of any namespace.
    activation, offset : array (N,)
        p* and φ(p*).
    joint : callable or None
        Both at once, p ↦ (φ(p), φ'(p)), where they share work.
    """

    W: Any
    leak: Any
    keep: Any
    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    activation: Any
    offset: Any
    joint: Callable[[Any], tuple[Any, Any]] | None = None

    #: Products of N×N matrices with a batch in `advance`, and in `retreat`.
    n_products = 1
    #: A map has no length.
    reach = 0.0

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.W.shape[0]

    @property
    def n_slopes(self) -> int:
        """One: a φ' at the activation."""
        return 1

    def on(self, reference: Any, dtype: Any) -> LeakyStep:
        """The same with its arrays where ``reference`` lives."""
        names = ("W", "leak", "keep", "activation", "offset")
        moved = {name: place(getattr(self, name), reference, dtype) for name in names}
        return replace(self, **moved)

    def drive_map(self, u: Any) -> Any:
        """The input itself, (n_channels, N)."""
        return namespace(u).matrix_transpose(u)

    def drive_map_pullback(self, bar: Any) -> Any:
        """(n_channels, N) to (N, n_channels)."""
        return namespace(bar).matrix_transpose(bar)

    def advance(self, y: Any, drive: Any, slopes: list[Any] | None = None) -> Any:
        """State after the step."""
        p = plus_product(drive, y, self.W)
        p += self.activation
        if slopes is None:
            value = self.function(p)
        elif self.joint is not None:
            value, slope = self.joint(p)
            slopes.append(slope * self.leak)
        else:
            value = self.function(p)
            slopes.append(self.derivative(p) * self.leak)
        change = value - self.offset  # never into an array of the user's function
        change *= self.leak
        change += y * self.keep
        return change

    def retreat(self, bar: Any, slopes: list[Any]) -> tuple[Any, Any]:
        """Cotangents of the state before the step and of the drive."""
        p_bar = bar * slopes[0]
        bar *= self.keep
        return plus_product(bar, p_bar, namespace(bar).matrix_transpose(self.W)), p_bar


def leaky_step(
    weights: np.ndarray,
    leak: float | np.ndarray,
    function: Callable[[Any], Any],
    derivative: Callable[[Any], Any],
    *,
    bias: np.ndarray | None = None,
    rest: np.ndarray | None = None,
    joint: Callable[[Any], tuple[Any, Any]] | None = None,
) -> LeakyStep:
    """The step of an echo state network around its rest state.

    Parameters
    ----------
    weights : ndarray (N, N)
    leak : float or ndarray (N,)
        a in (0, 1].
    function, derivative : callable
        φ and φ'.
    bias : ndarray (N,), optional
        The bias b.
    rest : ndarray (N,), optional
        y*, see `discrete_resting_state`; zero by default, which needs φ(b) = 0.
    joint : callable, optional
        See `LeakyStep`.
    """
    n = len(weights)
    leak = np.broadcast_to(np.asarray(leak, dtype=np.float64), (n,)).copy()
    activation = np.zeros(n) if bias is None else np.array(bias, dtype=np.float64)
    if rest is not None:
        activation += weights @ rest
    return LeakyStep(
        W=np.ascontiguousarray(weights.T),
        leak=leak,
        keep=1 - leak,
        function=function,
        derivative=derivative,
        activation=activation,
        offset=np.asarray(function(activation), dtype=np.float64),
        joint=joint,
    )


@dataclass(frozen=True, eq=False)
class Excess:
    """f(d) = φ(y* + d) − φ(y*) − φ'(y*) d for deviations d from a rest state y*.

    Make one with `Excess.around`. What f leaves out is linear and goes into the
    propagators, where it is exact.

    Attributes
    ----------
    function, derivative : callable
        φ and φ', elementwise on arrays of any namespace.
    rest, offset, slope : array (N,) or None
        y*, φ(y*) and φ'(y*); None stands for 0, 0 and 1, which cost nothing.
    joint : callable or None
        Both at once, y ↦ (φ(y), φ'(y)), where they share work.
    """

    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    rest: Any = None
    offset: Any = None
    slope: Any = None
    joint: Callable[[Any], tuple[Any, Any]] | None = None

    @classmethod
    def around(
        cls,
        rest: np.ndarray,
        function: Callable[[Any], Any],
        derivative: Callable[[Any], Any],
        joint: Callable[[Any], tuple[Any, Any]] | None = None,
    ) -> Excess:
        """The excess at a rest state (N,) on the host."""
        rest = np.asarray(rest, dtype=np.float64)
        offset = np.asarray(function(rest), dtype=np.float64)
        slope = np.asarray(derivative(rest), dtype=np.float64)
        return cls(
            function,
            derivative,
            rest if rest.any() else None,
            offset if offset.any() else None,
            slope if (slope != 1).any() else None,
            joint,
        )

    def on(self, reference: Any, dtype: Any) -> Excess:
        """The same with its arrays where ``reference`` lives."""
        moved = {
            name: place(value, reference, dtype)
            for name in ("rest", "offset", "slope")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, **moved)

    def _shifted(self, d: Any) -> Any:
        return d if self.rest is None else d + self.rest

    def _without_line(self, value: Any, d: Any) -> Any:
        # ``value`` comes from the user's function and may be its argument, or kept by
        # it: it is never written to.
        if self.slope is None:
            left = value - d
        else:
            left = d * self.slope
            left *= -1
            left += value
        if self.offset is not None:
            left -= self.offset
        return left

    def value(self, d: Any) -> Any:
        """f(d), a new array shaped like ``d``, (..., N)."""
        return self._without_line(self.function(self._shifted(d)), d)

    def value_and_slope(self, d: Any) -> tuple[Any, Any]:
        """f(d) and f'(d)."""
        y = self._shifted(d)
        if self.joint is not None:
            value, slope = self.joint(y)
        else:
            value, slope = self.function(y), self.derivative(y)
        excess_slope = slope - (1.0 if self.slope is None else self.slope)
        return self._without_line(value, d), excess_slope


#: Below this norm the series of `_SERIES_TERMS` terms is exact to rounding: relative to
#: the leading term of φ₀, the worst of them, the first one left out is 0.5¹⁶/16! ≈ 7e-19.
_SERIES_RADIUS = 0.5
_SERIES_TERMS = 15


def phi_functions(Z: np.ndarray, upto: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """φ₀ … φ_upto of Z/2 and of Z, from one series and its doublings.

    Doubling adds matrices of one kind,

        φ_k(2Z) = 2^−k [φ₀(Z) φ_k(Z) + Σ_{j=1..k} φ_j(Z)/(k − j)!],

    which for a decaying network adds numbers of one sign: nothing cancels, and no matrix
    is inverted.

    Parameters
    ----------
    Z : ndarray (N, N)
    upto : int

    Returns
    -------
    half, whole : list of ndarray (N, N)
        Entry k is φ_k(Z/2) and φ_k(Z).
    """
    identity = np.eye(len(Z))
    # The geometric mean of the 1- and ∞-norm bounds the 2-norm at no cost.
    norm = np.sqrt(np.linalg.norm(Z, 1) * np.linalg.norm(Z, np.inf))
    doublings = 1
    if norm > 2 * _SERIES_RADIUS:
        doublings = ceil(np.log2(norm / _SERIES_RADIUS))
    small = Z / 2.0**doublings
    # Horner: φ_p = (1/p!) (1 + Z/(p+1) (1 + Z/(p+2) (…))).
    top = identity
    for j in range(_SERIES_TERMS, 0, -1):
        top = identity + small @ top / (upto + j)
    found = [top / factorial(upto)]
    for k in range(upto - 1, -1, -1):
        found.insert(0, identity / factorial(k) + small @ found[0])
    half = found
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        for _ in range(doublings):
            half, found = found, _double(found)
    if not all(np.isfinite(matrix).all() for matrix in found):
        raise OverflowError(
            "the states of this unstable network exceed floating point within one step; "
            "shorten `dt` or scale the weights down."
        )
    return half, found


def _double(phi: list[np.ndarray]) -> list[np.ndarray]:
    doubled = [phi[0] @ phi[0]]
    for k in range(1, len(phi)):
        total = phi[0] @ phi[k]
        for j in range(1, k + 1):
            total += phi[j] / factorial(k - j)
        doubled.append(total / 2.0**k)
    return doubled


@dataclass(frozen=True, eq=False)
class ExponentialStep:
    """A `Stepper` over a (sub-)step of length ``length``; make one with `exponential_step`.

    The matrices act on rows of states from the right, so they are stored transposed.

    Attributes
    ----------
    length : float
    reach : float
        Bound on ‖hL‖.
    excess : Excess
    E : array (N, N)
        Half a step of the linear network.
    F : array (N, N)
        Response to a constant input u x over half a step.
    P, Q2, Q3, R, S : array (N, N)
        Weights of f₁ in k, of f₂ − f₁ in b, of f₃ − f₁ in c, of f₂ + f₃ − 2f₁ and of
        f₄ − f₁ in the result.
    """

    length: float
    reach: float
    excess: Excess
    E: Any
    F: Any
    P: Any
    Q2: Any
    Q3: Any
    R: Any
    S: Any

    #: Products of N×N matrices with a batch in `advance`, and in `retreat`.
    n_products = 7

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.E.shape[0]

    @property
    def n_slopes(self) -> int:
        """Four: f' at the stages."""
        return 4

    def on(self, reference: Any, dtype: Any) -> ExponentialStep:
        """The same with its matrices where ``reference`` lives."""
        names = ("E", "F", "P", "Q2", "Q3", "R", "S")
        moved = {name: place(getattr(self, name), reference, dtype) for name in names}
        return replace(self, excess=self.excess.on(reference, dtype), **moved)

    def drive_map(self, u: Any) -> Any:
        """The input's part of k, as (n_channels, N)."""
        return namespace(u).matrix_transpose(u) @ self.F

    def drive_map_pullback(self, bar: Any) -> Any:
        """(n_channels, N) to (N, n_channels), in the precision of ``bar``."""
        xp = namespace(bar)
        return xp.astype(self.F, bar.dtype, copy=False) @ xp.matrix_transpose(bar)

    def advance(self, y: Any, drive: Any, slopes: list[Any] | None = None) -> Any:
        """State at the end of the step."""

        def excess(stage: Any) -> Any:
            if slopes is None:
                return self.excess.value(stage)
            value, slope = self.excess.value_and_slope(stage)
            slopes.append(slope)
            return value

        f1 = excess(y)
        k = plus_product(drive, f1, self.P)
        a = plus_product(k, y, self.E)
        f2 = excess(a)
        f2 -= f1
        f3 = excess(plus_product(a, f2, self.Q2))
        f3 -= f1
        ahead = plus_product(k, a, self.E)
        f4 = excess(plus_product(ahead, f3, self.Q3))
        f4 -= f1
        f2 += f3
        ahead = add_product(ahead, f2, self.R)
        return add_product(ahead, f4, self.S)

    def retreat(self, bar: Any, slopes: list[Any]) -> tuple[Any, Any]:
        """Cotangents of the state before the step and of the drive."""
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
    weights: np.ndarray, tau: np.ndarray, excess: Excess, length: float
) -> ExponentialStep:
    """Compute the matrices of one step, on the host in float64.

    Parameters
    ----------
    weights : ndarray (N, N)
    tau : ndarray (N,)
        Time constants of the neurons.
    excess : Excess
        On the host.
    length : float
        Duration of the (sub-)step.
    """
    slope = 1.0 if excess.slope is None else excess.slope
    rate = (length / np.asarray(tau, dtype=np.float64))[:, None]
    scaled = rate * weights  # h T⁻¹ W
    Z = scaled * slope - np.diag(rate[:, 0])
    half, whole = phi_functions(Z, 3)

    def rows(matrix: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(matrix.T)

    return ExponentialStep(
        length=length,
        # The geometric mean of the 1- and ∞-norm bounds the 2-norm.
        reach=float(np.sqrt(np.linalg.norm(Z, 1) * np.linalg.norm(Z, np.inf))),
        excess=excess,
        E=rows(half[0]),
        F=rows(half[1] * (rate[:, 0] / 2)),
        P=rows(half[1] @ scaled / 2),
        Q2=rows(half[2] @ scaled),
        Q3=rows(2 * whole[2] @ scaled),
        R=rows((2 * whole[2] - 4 * whole[3]) @ scaled),
        S=rows((4 * whole[3] - whole[2]) @ scaled),
    )
