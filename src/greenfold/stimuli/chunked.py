"""Moments of labelled states whose series lie in pieces, in a file or on a cluster.

M and Σ are sums over series, and at a fixed v so is the gradient of κ. Each is one map over
the pieces and one reduction, where the pieces are: u goes out and M, Σ come back, then v
goes out and ∂κ/∂u comes back. The states stay where they were made in between.

Moments of two labelled classes, from arrays, pieces, a stream, or from other moments.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np

from .._base import checks as check
from .._base.arrays import arrived, like, movable, namespace, on_device, to_host
from ..math.margins import SoftMargin
from ..systems import Divergence, IntegratedSystem, QuadraticSystem, System
from .base import label_array, two_classes
from .chunks import (
    Pieces,
    SlicedPieces,
    check_source,
    first_of,
    host_labels,
    pieces_of,
    split,
    take,
)
from .class_moments import ClassMoments
from .design import Design, KernelPassage, Moments, Passage, SteppedPassage

#: Memory beside the series themselves in which a piece is reduced to its moments.
_WORKING_BYTES = 2**24


def moments_of_classes(
    pieces: Pieces, codes: np.ndarray, n_classes: int
) -> list[ClassMoments]:
    """Moments of every class in one pass, added up where the series are.

    Parameters
    ----------
    pieces : Pieces
    codes : ndarray (n_cases,)
        Classes 0, 1, ….
    n_classes : int
    """
    small = codes.astype(np.int8 if n_classes < 128 else np.int32)
    lists = pieces.series, first_of(pieces), split(small, pieces)
    parts = pieces.each(moments_of_piece, lists, n_classes, pieces.shape[1:])
    return pieces.total(parts, merge_classes)


def checked(X: Any, first: int, shape: tuple[int, int]) -> Any:
    """A piece as (n, n_channels, n_steps), if that is what it is."""
    X = check.stimuli(X, shape[1])
    if X.shape[1] != shape[0]:
        raise ValueError(
            f"`X` must have {shape[0]} channel(s) in every chunk; got shape "
            f"{tuple(X.shape)} from series {first} on."
        )
    return X


def moments_of_piece(
    X: Any, first: int, codes: np.ndarray, n_classes: int, shape: tuple[int, int]
) -> list[ClassMoments]:
    """Moments of every class in one piece, whose first series is ``first`` of all."""
    X = checked(X, first, shape)
    if X.shape[0] != len(codes):
        raise ValueError(
            f"`X` promises {len(codes)} series in the chunk from series {first} on, which "
            f"holds {X.shape[0]}; call X.compute_chunk_sizes()."
        )
    return [
        ClassMoments.of(X, np.flatnonzero(codes == c), first=first, budget=_WORKING_BYTES)
        for c in range(n_classes)
    ]


def merge_classes(one: list[ClassMoments], other: list[ClassMoments]) -> list[ClassMoments]:
    """Moments of both, class by class."""
    return [a.merge(b) for a, b in zip(one, other, strict=True)]


class ScatteredDesign:
    """Weighted series in pieces: what `Design` is for series in memory.

    Parameters
    ----------
    pieces : Pieces
        Of the series as they are given.
    first, second : ndarray (n_cases,)
        As of `Design`.
    centre : ndarray (n_channels, n_steps)
    scale : float
        Series enter the network as (x − centre) · scale.
    """

    def __init__(
        self,
        pieces: Pieces,
        first: np.ndarray,
        second: np.ndarray,
        centre: np.ndarray,
        scale: float,
    ) -> None:
        self.pieces, self._second = pieces, second
        self._rule = split(first, pieces), split(second, pieces)
        self._frame = centre, scale
        self.firsts = first_of(pieces)

    @cached_property
    def designs(self) -> list[Any]:
        """One `Design` a piece; they stay where they are made."""
        pieces = self.pieces
        made = pieces.each(
            _design_of_piece,
            (pieces.series, self.firsts, *self._rule),
            *self._frame,
            pieces.device,
        )
        return pieces.keep(made, 8.0 * np.prod(pieces.shape))

    def moment_map(
        self, system: System, *, single: bool = False
    ) -> Callable[[np.ndarray], Moments]:
        """M(u) and Σ(u) as functions of u; integrated in single precision if asked to."""
        if isinstance(system, IntegratedSystem):
            return ScatteredWalk(self, system, single)
        n_cases, n_channels, _ = self.pieces.shape
        passage: Passage = SteppedPassage(system)
        if isinstance(system, QuadraticSystem) and system.prefers_kernels(
            n_cases, n_channels
        ):
            passage = KernelPassage(system)
        shared = self.pieces.share(passage)
        return lambda u: ScatteredMoments(self, shared, u, system.n_outputs)

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """κ of the predictor a·x + xᵀCx, and ∂κ/∂a, ∂κ/∂C."""
        pieces, size = self.pieces, len(a)
        z = pieces.each(_decision_values, (self.designs,), pieces.share((a, C)))
        z = pieces.keep(z, 8.0 * len(self._second))
        found = pieces.total(pieces.each(_moments, (self.designs, z)), ClassMoments.merge)
        separation = float(found.mean[0])
        variance = 0.5 * eta * float(found.covariance[0, 0])
        margin = SoftMargin(separation - variance, separation, variance)
        bars = pieces.each(_kernel_bars, (self.designs, z), eta, separation)
        total = pieces.total(bars, operator.add)
        return margin, total[size], total[:size]

    def probe(
        self, system: IntegratedSystem, *, single: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Series on which the error of an integration is looked at: positions, values.

        They are those that would be looked at if all were in memory.
        """
        pieces = self.pieces
        norms = pieces.collect(pieces.each(_norms, (self.designs,), single))
        index = system.probe(np.concatenate(norms))
        centre, scale = self._frame
        values = (take(pieces, index).astype(np.float64) - centre) * scale
        return index, values.astype(np.float32) if single else values


class ScatteredMoments:
    """`Moments` of series in pieces at one u.

    Parameters
    ----------
    design : ScatteredDesign
    passage : what `Pieces.share` returned for a Passage
    u : ndarray (n_inputs, n_channels)
    n_outputs : int
    """

    def __init__(
        self, design: ScatteredDesign, passage: Any, u: np.ndarray, n_outputs: int
    ) -> None:
        pieces = design.pieces
        self._design, self._passage, self._u = design, passage, u
        lists = design.designs, design.firsts
        states = pieces.each(_states, lists, passage, u)
        self._states = pieces.keep(states, 8.0 * pieces.shape[0] * n_outputs)
        parts = pieces.each(_moments, (design.designs, self._states))
        found: ClassMoments = pieces.total(parts, ClassMoments.merge)
        Sigma: Any = found.covariance
        self.M, self.Sigma = found.mean, (Sigma + Sigma.T) / 2

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """∂κ/∂u at fixed v."""
        design, pieces = self._design, self._design.pieces
        lists = design.designs, self._states
        separation = float(v @ self.M)
        parts = pieces.each(_back, lists, self._passage, self._u, v, eta, separation)
        return pieces.total(parts, operator.add, _finish, self._passage, self._u, v)


class ScatteredWalk:
    """Moments through an integrated system, as a function of u.

    The number of sub-steps is found here, on the series that are looked at; the pieces are
    told.
    """

    def __init__(
        self, design: ScatteredDesign, system: IntegratedSystem, single: bool
    ) -> None:
        self._design, self._system, self._single = design, system, single
        self._shared: tuple[int, Any] | None = None

    @cached_property
    def _looked_at(self) -> tuple[np.ndarray, Any]:
        index, values = self._design.probe(self._system, single=self._single)
        return index, self._system.prepare(values)

    def _passage(self) -> Any:
        n_sub = self._looked_at[1].n_sub
        if self._shared is None or self._shared[0] != n_sub:
            passage: Passage = SteppedPassage(
                self._system, single=self._single, n_sub=n_sub
            )
            self._shared = n_sub, self._design.pieces.share(passage)
        return self._shared[1]

    def __call__(self, u: np.ndarray) -> ScatteredMoments:
        """Moments at one projection."""
        if self._looked_at[1].n_sub is None:
            self.settle(u)
        n_outputs = self._system.n_outputs
        try:
            return ScatteredMoments(self._design, self._passage(), u, n_outputs)
        except Divergence:
            # Long sub-steps may diverge where the network does not.
            if self.settle(u):
                raise
            return ScatteredMoments(self._design, self._passage(), u, n_outputs)

    def settle(self, u: np.ndarray) -> bool:
        """See `PreparedStates.settle`."""
        index, prepared = self._looked_at
        try:
            return prepared.settle(u)
        except Divergence as error:
            raise Divergence(error.step, int(index[error.series])) from None


def _design_of_piece(
    X: Any,
    position: int,
    first: np.ndarray,
    second: np.ndarray,
    centre: np.ndarray,
    scale: float,
    device: str,
) -> Design:
    X = on_device(checked(X, position, centre.shape), device)
    xp = namespace(X)
    moved = (check.finite_batch(X, xp, position) - like(centre, X)) * scale
    return Design(moved, first, second)


def _states(design: Design, position: int, passage: Passage, u: np.ndarray) -> Any:
    try:
        return movable(passage.states(design, u))
    except Divergence as error:  # counted as the caller counts
        raise Divergence(error.step, error.series + position) from None


def _moments(design: Design, Y: Any) -> ClassMoments:
    """Weight, mean and scatter of the labelled states of a piece, formed where they are."""
    Y = arrived(Y)
    xp, weight = namespace(Y), float(design.second.sum())
    share, sign = like(design.second, Y), like(np.sign(design.first), Y)
    signed = sign[:, None] * (Y if Y.ndim == 2 else Y[:, None])
    mean = (share @ signed) / weight
    centred = signed - mean
    scatter = xp.matrix_transpose(centred) @ (share[:, None] * centred)
    return ClassMoments(weight, to_host(mean), to_host(scatter))


def _back(
    design: Design,
    Y: Any,
    passage: Passage,
    u: np.ndarray,
    v: np.ndarray,
    eta: float,
    separation: float,
) -> np.ndarray:
    Y = arrived(Y)
    return passage.back(design, u, design.cotangent(Y @ like(v, Y), eta, separation), v)


def _finish(
    total: np.ndarray, passage: Passage, u: np.ndarray, v: np.ndarray
) -> np.ndarray:
    return passage.finish(total, u, v)


def _decision_values(design: Design, kernel: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    a, C = kernel
    X = to_host(design.X).reshape(len(design.first), -1)
    return X @ a + ((X @ C) * X).sum(1)


def _kernel_bars(
    design: Design, z: np.ndarray, eta: float, separation: float
) -> np.ndarray:
    bar = design.cotangent(z, eta, separation)
    X = to_host(design.X).reshape(len(bar), -1)
    return np.concatenate([(X * bar[:, None]).T @ X, (bar @ X)[None]])


def _norms(design: Design, single: bool) -> np.ndarray:
    X = to_host(design.X)
    if single:
        X = X.astype(np.float32).astype(np.float64)
    return np.einsum("nck,nck->n", X, X)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Moments of the classes ζ = −1 and ζ = +1, and the series where they are kept.

    Attributes
    ----------
    parts : two ClassMoments
    classes : ndarray (2,)
    shape : (n_channels, n_steps)
    signs : ndarray (n_cases,) or None
        ζ of each series.
    raw : array (n_cases, n_channels, n_steps) or None
        Series in memory, as given.
    pieces : Pieces or None
        Series that are elsewhere.
    """

    parts: Sequence[ClassMoments]
    classes: np.ndarray
    shape: tuple[int, ...]
    signs: np.ndarray | None = None
    raw: Any = None
    pieces: Pieces | None = None


class HasMoments(Protocol):
    """Stimuli that know the moments of their classes."""

    @property
    def classes(self) -> np.ndarray:
        """The two labels."""
        ...

    @property
    def centre(self) -> np.ndarray:
        """In the shape of a series."""
        ...

    @property
    def class_moments(self) -> tuple[ClassMoments, ClassMoments]:
        """Of the series as given."""
        ...


def gather(X: Any, labels: Any, client: Any = None, device: str = "cpu") -> Gathered:
    """Of series that are all there, in memory or in pieces."""
    pieces = pieces_of(X, client, device)
    if pieces is None and isinstance(X, np.memmap):
        pieces = SlicedPieces(check_source(X))
    if pieces is None:
        X = check.stimuli(X, _last_length(X))
    n_cases, *shape = X.shape if pieces is None else pieces.shape
    labels = label_array(host_labels(labels), n_cases)
    classes = two_classes(np.unique(labels))
    positive = labels == classes[1]
    signs = np.where(positive, 1, -1)
    if pieces is not None:
        parts = moments_of_classes(pieces, positive, 2)
        return Gathered(parts, classes, tuple(shape), signs, None, pieces)
    parts = [ClassMoments.of(X, np.flatnonzero(positive == c)) for c in (False, True)]
    return Gathered(parts, classes, tuple(shape), signs, X)


def gather_batches(batches: Iterable[tuple[Any, Any]]) -> Gathered:
    """Of a stream, in one pass."""
    found: dict[Any, ClassMoments] = {}
    shape: tuple[int, ...] | None = None
    for X, labels in _pairs(batches):
        X = check.stimuli(X, shape[1] if shape else _last_length(X))
        shape = shape or tuple(X.shape[1:])
        if tuple(X.shape[1:]) != shape:
            raise ValueError(
                f"`batches` must agree in shape: one holds series of shape "
                f"{tuple(X.shape[1:])}, the first one of {shape}."
            )
        labels = label_array(labels, X.shape[0])
        for label in np.unique(labels).tolist():
            part = ClassMoments.of(X, np.flatnonzero(labels == label))
            found[label] = found[label].merge(part) if label in found else part
    if shape is None:
        raise ValueError("`batches` is empty: no series were given.")
    if len({isinstance(label, str) for label in found}) > 1:
        raise TypeError("`labels` must be of one kind; got text and numbers.")
    classes = two_classes(np.array(sorted(found)))
    return Gathered([found[label] for label in classes.tolist()], classes, shape)


def joined(parts: Iterable[HasMoments]) -> Gathered:
    """Of stimuli whose moments were accumulated apart."""
    every = list(parts)
    if not every or not all(hasattr(one, "class_moments") for one in every):
        raise TypeError("`parts` must be SampleStimuli, one at least.")
    first = every[0]
    for one in every[1:]:
        if one.centre.shape != first.centre.shape:
            raise ValueError(
                f"`parts` must agree in shape: one has series of shape "
                f"{one.centre.shape}, the first one of {first.centre.shape}."
            )
        if not np.array_equal(one.classes, first.classes):
            raise ValueError(
                f"`parts` must have the same labels: one has {one.classes.tolist()}, "
                f"the first one {first.classes.tolist()}."
            )
    sides = zip(*(one.class_moments for one in every), strict=True)
    moments = [reduce(ClassMoments.merge, side) for side in sides]
    return Gathered(moments, first.classes, first.centre.shape)


def _last_length(X: Any) -> int:
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.shape(X)
        except ValueError:  # ragged; `check.stimuli` says so
            shape = (0,)
    return int(shape[-1]) if len(shape) else 0


def _pairs(batches: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"`batches` must be an iterable of (X, labels); got {type(batches).__name__}."
        )
    for entry in batches:
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise TypeError(
                "`batches` must be an iterable of pairs (X, labels); got an entry of type "
                f"{type(entry).__name__}."
            )
        yield entry[0], entry[1]
