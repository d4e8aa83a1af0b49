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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import namespace
from ._products import add_product, place, plus_product
from .excess import Excess
from .phi import phi_functions


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
