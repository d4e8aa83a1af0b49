"""One step of a network in discrete time: the leaky echo state network.

    y' = (1 − a) y + a φ(W y + u x + b)

(reservoirpy's convention). It rests where y* = φ(W y* + b); with p* = W y* + b, deviations
d from there follow the same map without a constant,

    d' = (1 − a) d + a [φ(W d + u x + p*) − φ(p*)],

exactly: there are no sub-steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import namespace
from ._products import place, plus_product


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
        y*, see `rest.rest_of_map`; zero by default, which needs φ(b) = 0.
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
