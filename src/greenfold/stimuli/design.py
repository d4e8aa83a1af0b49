"""Moments of the labelled states as differentiable functions of u.

A *moment map* is prepared once for a system and a set of stimuli. At a projection u it
gives M(u) and Σ(u), and pulls the soft margin at a fixed v back to u:

    κ = v·M − (η/2) vᵀΣv,     ∂κ/∂u by the adjoint of the system.

The maps here serve stimuli that are a finite set of weighted series, or Gaussian classes
written as such; `closed_form` holds the closed form.

How the states of one piece of the series are made, and how a gradient comes back.

A *passage* goes to where the pieces are, once, and stays there: u and v follow at every
evaluation. What its `back` returns for the pieces is added up; `finish` makes the gradient
of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Protocol

import numpy as np

from .._base.arrays import arrived, like, movable, namespace, on_gpu, to_host, working_bytes
from ..math.margins import SoftMargin
from ..systems import (
    IntegratedSystem,
    KernelsOfAll,
    PreparedStates,
    QuadraticSystem,
    StatesAt,
    System,
)

#: Products of the stimuli are kept between evaluations up to this size.
_PRODUCT_BYTES = 2**28


class Moments(Protocol):
    """M(u), Σ(u) at one u, and the way back."""

    M: np.ndarray
    Sigma: np.ndarray

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """∂κ/∂u at fixed v, shape (n_neurons, n_channels)."""
        ...


class WeightedSeries(Protocol):
    """Series with their labels and weights, from which moments of states are formed.

    `Design` forms them here, from series in memory; `scattered.ScatteredDesign` where the
    series are.
    """

    def moment_map(
        self, system: System, *, single: bool = False
    ) -> Callable[[np.ndarray], Moments]:
        """M(u) and Σ(u) as functions of u; see `Stimuli.moment_map`."""
        ...

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """κ of the predictor a·x + xᵀCx, and ∂κ/∂a, ∂κ/∂C."""
        ...


@dataclass(frozen=True, eq=False)
class Design:
    """Series with a quadratic rule for the moments of their labelled states.

    For states Y (n_points, n_neurons) of the series X, M = first·Y and the second moment
    of ζy is Yᵀ·second·Y. For labelled samples, ``first`` holds ζ_ν p_ν and ``second`` is
    diagonal; for Gaussian classes both come from exact integration of polynomials.

    Attributes
    ----------
    X : array (n_points, n_channels, n_steps)
        On the host, or on a device, where the states and their moments are then formed.
    first : ndarray (n_points,)
    second : ndarray (n_points,) or (n_points, n_points)
    """

    X: Any
    first: np.ndarray
    second: np.ndarray
    _kept: dict[int, Any] = field(default_factory=dict, repr=False)

    def __sizeof__(self) -> int:
        """Bytes of the series: a cluster leaves large things where they are."""
        return int(self.X.nbytes + self.first.nbytes + self.second.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _design, (movable(self.X), self.first, self.second)

    def _times_second(self, Y: Any) -> Any:
        second = like(self.second, Y)
        if second.ndim == 1:
            return second[:, None] * Y if Y.ndim == 2 else second * Y
        return second @ Y

    def moments(self, Y: Any) -> tuple[np.ndarray, np.ndarray]:
        """M and Σ from states, which may live on a device."""
        xp, first = namespace(Y), like(self.first, Y)
        M = first @ Y
        if self.second.ndim == 1:
            # Σ p (y − ζM)(y − ζM)ᵀ: no difference of large numbers, never indefinite.
            centred = Y - xp.sign(first)[:, None] * M
            Sigma = xp.matrix_transpose(centred) @ self._times_second(centred)
        else:
            Sigma = xp.matrix_transpose(Y) @ self._times_second(Y) - M[:, None] * M
        Sigma = to_host(Sigma)
        return to_host(M), (Sigma + Sigma.T) / 2

    def cotangent(self, z: Any, eta: float, separation: float | None = None) -> Any:
        """∂κ/∂z for decision values z = Y v at fixed v, where z lives.

        ``separation`` is v·M, where these series are a part of all.
        """
        first = like(self.first, z)
        mean = float(first @ z) if separation is None else separation
        return first * (1 + eta * mean) - eta * self._times_second(z)

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """κ of the predictor a·x + xᵀCx, and ∂κ/∂a, ∂κ/∂C."""
        X = self._flat()
        z = X @ like(a, X) + namespace(X).sum((X @ like(C, X)) * X, axis=1)
        M, Sigma = self.moments(z[:, None])
        separation, variance = float(M[0]), 0.5 * eta * float(Sigma[0, 0])
        margin = SoftMargin(separation - variance, separation, variance)
        return margin, *self.kernel_cotangents(z, eta)

    def kernel_cotangents(self, z: Any, eta: float) -> tuple[np.ndarray, np.ndarray]:
        """∂κ/∂a (D,) and ∂κ/∂C (D, D) for decision values z = a·x + xᵀCx."""
        return self.cotangents_of_kernels(self.cotangent(z, eta))

    def cotangents_of_kernels(self, bar: Any) -> tuple[np.ndarray, np.ndarray]:
        """∂κ/∂a and ∂κ/∂C from ∂κ/∂z."""
        X = self._flat()
        squares = namespace(X).matrix_transpose(X * bar[:, None]) @ X
        return to_host(bar @ X), to_host(squares)

    def _flat(self) -> Any:
        return namespace(self.X).reshape(self.X, (self.X.shape[0], -1))

    def moment_map(
        self, system: System, *, single: bool = False
    ) -> Callable[[np.ndarray], Moments]:
        """M(u) and Σ(u) as functions of u; integrated in single precision if asked to."""
        if isinstance(system, IntegratedSystem):
            xp = namespace(self.X)
            X = xp.astype(self.X, xp.float32) if single else self.X
            return WalkedMap(self, system.prepare(X))
        return partial(self.at, system)

    def at(self, system: System, u: np.ndarray) -> DesignMoments:
        """States, moments and what `pull` needs, at one projection."""
        return DesignMoments(self, system, u)

    def states(self, kernels: KernelsOfAll) -> Any:
        """States of the series from the kernels of all outputs.

        The products of the series with themselves are kept between evaluations while they
        are small.
        """
        steps = kernels.read_steps
        n_cases, *shape = self.X.shape
        room = working_bytes(self.X) / 4 if on_gpu(self.X) else _PRODUCT_BYTES
        if 8.0 * n_cases * math.prod(shape) ** 2 > room and steps not in self._kept:
            return kernels.states_of(self.X, None)
        if steps not in self._kept:
            self._kept[steps] = kernels.products(self.X)
        return kernels.states_of(self.X, self._kept[steps])


def _design(X: Any, first: np.ndarray, second: np.ndarray) -> Design:
    return Design(arrived(X), first, second)


class DesignMoments:
    """`Moments` of a design at one u."""

    def __init__(self, design: Design, system: System, u: np.ndarray) -> None:
        self.design, self.system, self.u = design, system, u
        self._kernels = None
        n_cases, n_channels = design.X.shape[:2]
        if isinstance(system, QuadraticSystem) and system.prefers_kernels(
            n_cases, n_channels
        ):
            self._kernels = system.kernels_of_all(u, design.X)
            Y = design.states(self._kernels)
        else:
            Y = system.states(design.X, u)
        self._states = Y
        self.M, self.Sigma = design.moments(Y)

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """∂κ/∂u at fixed v."""
        design, z = self.design, self._states @ like(v, self._states)
        if self._kernels is None:
            bar = design.cotangent(z, eta)
            return to_host(self.system.pullback(design.X, self.u, bar, v)[0])
        shape = design.X.shape[1:]
        a_bar, C_bar = design.kernel_cotangents(z, eta)
        return self._kernels.pull(v, a_bar.reshape(shape), C_bar.reshape(*shape, *shape))


class WalkedMap:
    """Moments of a design through an integrated system, as a function of u."""

    def __init__(self, design: Design, prepared: PreparedStates) -> None:
        self._design, self._prepared = design, prepared

    def __call__(self, u: np.ndarray) -> WalkedMoments:
        """Moments at one projection."""
        return WalkedMoments(self._design, self._prepared(u))

    def settle(self, u: np.ndarray) -> bool:
        """See `PreparedStates.settle`."""
        return self._prepared.settle(u)


class WalkedMoments:
    """`Moments` of a design whose series were walked through a system once."""

    def __init__(self, design: Design, found: StatesAt) -> None:
        self._design, self._found = design, found
        xp = namespace(found.states)
        self._states = xp.astype(found.states, xp.float64, copy=False)
        self.M, self.Sigma = design.moments(self._states)

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """∂κ/∂u at fixed v."""
        bar = self._design.cotangent(self._states @ like(v, self._states), eta)
        return to_host(self._found.pullback(bar, v)[0]).astype(np.float64, copy=False)


class Passage(Protocol):
    """From series to states, and back."""

    def states(self, design: Design, u: np.ndarray) -> Any:
        """Y, (n_cases, n_outputs), in float64 where the series live."""
        ...

    def back(self, design: Design, u: np.ndarray, bar: Any, v: np.ndarray) -> np.ndarray:
        """The share of one piece in ∂κ/∂u, from ∂κ/∂z; to be added to the others."""
        ...

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """∂κ/∂u, (n_inputs, n_channels), from the shares of all pieces."""
        ...


class SteppedPassage:
    """By the states and the pullback that every system has.

    Parameters
    ----------
    system : System
    options : dict
        Further arguments of both.
    single : bool
        Hand the series over in single precision.
    """

    def __init__(self, system: System, *, single: bool = False, **options: Any) -> None:
        self._system, self._single, self._options = system, single, options

    def _series(self, design: Design) -> Any:
        xp = namespace(design.X)
        return xp.astype(design.X, xp.float32) if self._single else design.X

    def states(self, design: Design, u: np.ndarray) -> Any:
        """States."""
        found = self._system.states(self._series(design), u, **self._options)
        xp = namespace(found)
        return xp.astype(found, xp.float64, copy=False)

    def back(self, design: Design, u: np.ndarray, bar: Any, v: np.ndarray) -> np.ndarray:
        """The gradient of the piece."""
        X = self._series(design)
        found = self._system.pullback(X, u, bar, v, **self._options)[0]
        return to_host(found).astype(np.float64, copy=False)

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The sum itself."""
        del u, v
        return total


class KernelPassage:
    """By the kernels of all outputs, made once for each u wherever there are pieces."""

    def __init__(self, system: QuadraticSystem) -> None:
        self._system = system
        self._lock = Lock()
        self._latest: tuple[bytes, KernelsOfAll] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_system": self._system}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_system"])

    def _at(self, u: np.ndarray, reference: Any = None) -> KernelsOfAll:
        key = u.tobytes()
        with self._lock:  # the threads of a worker need the same ones
            if self._latest is None or self._latest[0] != key:
                self._latest = key, self._system.kernels_of_all(u, reference)
            return self._latest[1]

    def states(self, design: Design, u: np.ndarray) -> Any:
        """States."""
        # The products of the series are not kept: they are larger than the series.
        return self._at(u, design.X).states_of(design.X, None)

    def back(self, design: Design, u: np.ndarray, bar: Any, v: np.ndarray) -> np.ndarray:
        """∂κ/∂C of the piece and below it ∂κ/∂a, (D + 1, D)."""
        del u, v
        a_bar, C_bar = design.cotangents_of_kernels(bar)
        return np.concatenate([C_bar, a_bar[None]])

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Through the kernels back to u."""
        kernels = self._at(u)
        shape = u.shape[1], total.shape[1] // u.shape[1]
        C_bar, a_bar = total[:-1].reshape(*shape, *shape), total[-1].reshape(shape)
        return kernels.pull(v, a_bar, C_bar)
