"""Moments of the labelled states of weighted series, as differentiable functions of u.

M, Σ and, at a fixed readout v, the gradient of κ = v·M − (η/2) vᵀΣv are sums over series.
Each sum is a map over the chunks, followed by a reduction. States stay where they are
computed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import Any, Protocol

import numpy as np

from .._base import checks as check
from .._base.arrays import (
    Array,
    Movable,
    arrived,
    like,
    movable,
    namespace,
    on_device,
    on_gpu,
    to_host,
    wide,
    working_bytes,
)
from ..dynamics.integration import Dynamics, Prepared, probe_of_norms
from ..math.class_moments import ClassMoments
from ..math.margins import SoftMargin
from ..systems import Divergence, KernelsOfAll, System
from .chunks import Chunks, checked_chunk

#: Products of the stimuli are kept between evaluations up to this size.
_PRODUCT_BYTES = 2**28


class Moments(Protocol):
    """M(u) and Σ(u) at one u, and the gradient of κ."""

    M: np.ndarray
    Sigma: np.ndarray

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """Return ∂κ/∂u at fixed v, shape (n_neurons, n_channels)."""
        ...


class _Latest:
    """A cache that keeps the result for the last u."""

    def __init__(self) -> None:
        self._kept: tuple[bytes, Any] | None = None

    def get(self, u: np.ndarray, make: Callable[[np.ndarray], Any]) -> Any:
        if self._kept is None or self._kept[0] != u.tobytes():
            self._kept = None  # free the old result first
            self._kept = u.tobytes(), make(u)
        return self._kept[1]


@dataclass(frozen=True, eq=False)
class Design:
    """Series with a quadratic rule for the moments of their labelled states.

    For states Y (n_points, n_neurons) of the series X, M = first·Y and the second moment
    of ζy is Yᵀ·second·Y. For labelled samples, ``first`` holds ζ_ν p_ν and ``second`` is
    diagonal, (n_points,); for Gaussian classes both come from exact integration of
    polynomials. States are computed where X is, on the host or on a device.
    """

    X: Any
    first: np.ndarray
    second: np.ndarray
    _kept: dict[int, Any] = field(default_factory=dict[int, Any], repr=False)

    def __sizeof__(self) -> int:
        """Return the size in bytes, so that a cluster does not move large designs."""
        return int(self.X.nbytes + self.first.nbytes + self.second.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _design, (movable(self.X), self.first, self.second)

    def _times_second(self, Y: Array) -> Any:
        second = like(self.second, Y)
        if second.ndim == 1:
            return second[:, None] * Y if Y.ndim == 2 else second * Y
        return second @ Y

    def summary(self, states: Array | Movable) -> ClassMoments:
        """Return weight, mean and scatter of the labelled states, to merge over chunks."""
        Y = arrived(states)
        xp, first = namespace(Y), like(self.first, Y)
        if self.second.ndim == 1:
            # Σ p (y − ζM)(y − ζM)ᵀ subtracts no large numbers and is never indefinite.
            weight = float(self.second.sum())
            mean = (first @ Y) / weight
            centred = Y - xp.sign(first)[:, None] * mean
            scatter = xp.matrix_transpose(centred) @ self._times_second(centred)
        else:
            weight, mean = 1.0, first @ Y
            scatter = xp.matrix_transpose(Y) @ self._times_second(Y) - mean[:, None] * mean
        return ClassMoments(weight, to_host(mean), to_host(scatter))

    def moments(self, Y: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return M and Σ from states, which may be on a device."""
        found = self.summary(Y)
        Sigma = np.asarray(found.covariance)
        return found.mean, (Sigma + Sigma.T) / 2

    def cotangent(self, z: Array, eta: float, separation: float) -> Any:
        """Return ∂κ/∂z for decision values z = Y v at fixed v; ``separation`` is v·M."""
        return like(self.first, z) * (1 + eta * separation) - eta * self._times_second(z)

    def decision_values(self, kernel: tuple[np.ndarray, np.ndarray]) -> Any:
        """Return z = a·x + xᵀCx of every series, as (n_points, 1)."""
        X = self._flat()
        a, C = (like(one, X) for one in kernel)
        return movable((X @ a + namespace(X).sum((X @ C) * X, axis=1))[:, None])

    def kernel_cotangents(
        self, z: Array | Movable, eta: float, separation: float
    ) -> np.ndarray:
        """Return ∂κ/∂C with ∂κ/∂a as its last row, (D + 1, D), for z = a·x + xᵀCx."""
        X, bar = self._flat(), self.cotangent(arrived(z)[:, 0], eta, separation)
        squares = namespace(X).matrix_transpose(X * bar[:, None]) @ X
        return np.concatenate([to_host(squares), to_host(bar @ X)[None]])

    def _flat(self) -> Any:
        return namespace(self.X).reshape(self.X, (self.X.shape[0], -1))

    def in_precision(self, single: bool) -> Any:
        """Return the series, in single precision if ``single``."""
        xp = namespace(self.X)
        return xp.astype(self.X, xp.float32) if single else self.X

    def norms(self, single: bool) -> np.ndarray:
        """Return the squared norms of the series in the precision that a system sees."""
        X = to_host(self.in_precision(single)).astype(np.float64, copy=False)
        return np.einsum("nck,nck->n", X, X)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return some of the series, on the host."""
        return to_host(namespace(self.X).take(self.X, like(rows, self.X), axis=0))

    def states(self, kernels: KernelsOfAll, *, keep: bool) -> Any:
        """Return the states of the series from the kernels of all outputs.

        With ``keep``, products of the series are kept between evaluations if they are
        small.
        """
        steps = kernels.read_steps
        n_cases, *shape = self.X.shape
        room = working_bytes(self.X) / 4 if on_gpu(self.X) else _PRODUCT_BYTES
        fits = keep and 8.0 * n_cases * math.prod(shape) ** 2 <= room
        if fits and steps not in self._kept:
            self._kept[steps] = kernels.products(self.X)
        return kernels.states_of(self.X, self._kept.get(steps))

    def moment_map(
        self, system: System, *, single: bool = False
    ) -> Callable[[np.ndarray], Moments]:
        """Return M(u) and Σ(u) as functions of u, in single precision if ``single``."""
        alone = WeightedSeries(Chunks.of_array(self.X), [self])
        return alone.moment_map(system, single=single)


def _design(X: Array | Movable, first: np.ndarray, second: np.ndarray) -> Design:
    return Design(arrived(X), first, second)


class WeightedSeries:
    """Weighted series in chunks; the `Design` of each chunk stays where it is made."""

    def __init__(self, chunks: Chunks, designs: list[Any]) -> None:
        self.chunks, self.designs = chunks, designs

    @classmethod
    def of_chunks(
        cls,
        chunks: Chunks,
        first: np.ndarray,
        second: np.ndarray,
        centre: np.ndarray,
        scale: float,
    ) -> WeightedSeries:
        """Make weighted series that enter the network as (x − centre) · scale."""
        lists = chunks.series, chunks.firsts, chunks.split(first), chunks.split(second)
        made = chunks.each(_design_of_chunk, lists, centre, scale, chunks.device)
        return cls(chunks, chunks.keep(made, 8.0 * np.prod(chunks.shape)))

    def moment_map(
        self, system: System, *, single: bool = False
    ) -> Callable[[np.ndarray], Moments]:
        """Return M(u) and Σ(u) as functions of u, in single precision if ``single``."""
        if isinstance(system, Dynamics):
            return IntegratedMap(self, system, single)
        chunks = self.chunks
        way = _ByStates(system.states, system.pullback)
        if system.prefers_kernels(*chunks.shape[:2]):
            # Products of the series are larger than the series: keep them only if the
            # series are in memory.
            way = _ByKernels(system, keep=chunks.in_memory)
        shared = chunks.share(way)
        return lambda u: StateMoments(self, shared, u, system.n_outputs)

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """Return κ of the predictor a·x + xᵀCx, ∂κ/∂a and ∂κ/∂C."""
        chunks = self.chunks
        z = chunks.each(Design.decision_values, (self.designs,), chunks.share((a, C)))
        lists = self.designs, chunks.keep(z, 8.0 * chunks.shape[0])
        found = chunks.total(chunks.each(Design.summary, lists), ClassMoments.merge)
        separation = float(found.mean[0])
        variance = 0.5 * eta * float(found.covariance[0, 0])
        bars = chunks.each(Design.kernel_cotangents, lists, eta, separation)
        total = chunks.total(bars, operator.add)
        margin = SoftMargin(separation - variance, separation, variance)
        return margin, total[-1], total[:-1]


class StateMoments:
    """`Moments` of weighted series at one u.

    ``way``, as returned by `Chunks.share`, maps series to states and carries gradients
    back.
    """

    def __init__(
        self, series: WeightedSeries, way: object, u: np.ndarray, n_outputs: int
    ) -> None:
        chunks = series.chunks
        self._series, self._way, self._u = series, way, u
        states = chunks.each(_states, (series.designs, chunks.firsts), way, u)
        self._states = chunks.keep(states, 8.0 * chunks.shape[0] * n_outputs)
        parts = chunks.each(Design.summary, (series.designs, self._states))
        found: ClassMoments = chunks.total(parts, ClassMoments.merge)
        Sigma = np.asarray(found.covariance)
        self.M, self.Sigma = found.mean, (Sigma + Sigma.T) / 2

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """Return ∂κ/∂u at fixed v."""
        chunks, lists = self._series.chunks, (self._series.designs, self._states)
        fixed = self._way, self._u, v
        parts = chunks.each(_back, lists, *fixed, eta, float(v @ self.M))
        return chunks.total(parts, operator.add, _finish, *fixed)


class IntegratedMap:
    """The moments of the states of an integrated system, as a function of u.

    The map chooses the number of sub-steps and passes it to the chunks. It bases the choice
    on the same series as if all series were in memory.
    """

    def __init__(self, series: WeightedSeries, system: Dynamics, single: bool) -> None:
        self._series, self._system, self._single = series, system, single
        self._shared: tuple[int | None, Any] | None = None

    @cached_property
    def _looked_at(self) -> tuple[np.ndarray, Any]:
        """Positions of the series that decide the number of sub-steps, and these series."""
        chunks, designs = self._series.chunks, self._series.designs
        if chunks.in_memory:
            X = designs[0].in_precision(self._single)
            return np.arange(len(X)), self._system.prepare(X)
        norms = chunks.collect(chunks.each(Design.norms, (designs,), self._single))
        index = probe_of_norms(np.concatenate(norms))
        values = np.concatenate(chunks.collect(chunks.rows(index, designs, Design.take)))
        values = values.astype(np.float32) if self._single else values
        return index, self._system.prepare(values)

    def _way(self) -> Any:
        prepared = self._looked_at[1]
        if self._shared is None or self._shared[0] != prepared.n_sub:
            way, system = _ByWalk(prepared), self._system
            if not self._series.chunks.in_memory:
                states = partial(system.states, n_sub=prepared.n_sub)
                pullback = partial(system.pullback, n_sub=prepared.n_sub)
                way = _ByStates(states, pullback, self._single)
            self._shared = prepared.n_sub, self._series.chunks.share(way)
        return self._shared[1]

    def __call__(self, u: np.ndarray) -> StateMoments:
        """Return the moments at one projection."""
        if self._looked_at[1].n_sub is None:
            self.settle(u)
        n_outputs = self._system.n_outputs
        try:
            return StateMoments(self._series, self._way(), u, n_outputs)
        except Divergence:
            # Long sub-steps may diverge even if the network does not.
            if self.settle(u):
                raise
            return StateMoments(self._series, self._way(), u, n_outputs)

    def settle(self, u: np.ndarray) -> bool:
        """See `PreparedStates.settle`."""
        index, prepared = self._looked_at
        try:
            return prepared.settle(u)
        except Divergence as error:
            raise Divergence(error.step, int(index[error.series])) from None


class _ByStates:
    """States and gradients by the methods that every system has.

    The results of `back` are added up over the chunks; `finish` turns the sum into ∂κ/∂u.
    """

    def __init__(
        self, states: Callable[..., Any], pullback: Callable[..., Any], single: bool = False
    ) -> None:
        self._states, self._pullback, self._single = states, pullback, single

    def states(self, design: Design, u: np.ndarray) -> Any:
        return wide(self._states(design.in_precision(self._single), u))

    def back(
        self, design: Design, Y: Array, u: np.ndarray, v: np.ndarray, *at: float
    ) -> np.ndarray:
        bar, X = design.cotangent(Y @ like(v, Y), *at), design.in_precision(self._single)
        return to_host(wide(self._pullback(X, u, bar, v)[0]))

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        del u, v
        return total


class _ByWalk(_ByStates):
    """States and gradients of series in memory, both from one walk."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared, self._latest = prepared, _Latest()

    def _at(self, u: np.ndarray) -> Any:
        return self._latest.get(u, self._prepared)

    def states(self, design: Design, u: np.ndarray) -> Any:
        del design
        return wide(self._at(u).states)

    def back(
        self, design: Design, Y: Array, u: np.ndarray, v: np.ndarray, *at: float
    ) -> np.ndarray:
        bar = design.cotangent(Y @ like(v, Y), *at)
        return to_host(wide(self._at(u).pullback(bar, v)[0]))


class _ByKernels:
    """States and gradients from kernels of all outputs, made once per u and process."""

    def __init__(self, system: System, keep: bool = False) -> None:
        self._system, self._keep = system, keep
        self._lock, self._latest = Lock(), _Latest()

    def __reduce__(self) -> tuple[Any, ...]:
        return _ByKernels, (self._system,)

    def _at(self, u: np.ndarray, reference: Array | None = None) -> KernelsOfAll:
        with self._lock:  # the threads of a worker share the kernels
            return self._latest.get(u, lambda u: self._system.kernels_of_all(u, reference))

    def states(self, design: Design, u: np.ndarray) -> Any:
        return design.states(self._at(u, design.X), keep=self._keep)

    def back(
        self, design: Design, Y: Array, u: np.ndarray, v: np.ndarray, *at: float
    ) -> np.ndarray:
        del u
        return design.kernel_cotangents((Y @ like(v, Y))[:, None], *at)

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        shape = u.shape[1], total.shape[1] // u.shape[1]
        C_bar, a_bar = total[:-1].reshape(*shape, *shape), total[-1].reshape(shape)
        return self._at(u).pull(v, a_bar, C_bar)


# These functions run in the process that holds the chunk.

Way = _ByStates | _ByKernels


def _design_of_chunk(
    chunk: Array,
    position: int,
    first: np.ndarray,
    second: np.ndarray,
    centre: np.ndarray,
    scale: float,
    device: str,
) -> Design:
    X = on_device(checked_chunk(chunk, position, centre.shape), device)
    moved = (check.finite_batch(X, namespace(X), position) - like(centre, X)) * scale
    return Design(moved, first, second)


def _states(design: Design, position: int, way: Way, u: np.ndarray) -> Any:
    try:
        return movable(way.states(design, u))
    except Divergence as error:  # number the series as the caller does
        raise Divergence(error.step, error.series + position) from None


def _back(
    design: Design, Y: Array | Movable, way: Way, u: np.ndarray, v: np.ndarray, *at: float
) -> np.ndarray:
    return way.back(design, arrived(Y), u, v, *at)


def _finish(total: np.ndarray, way: Way, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return way.finish(total, u, v)
