"""Moments of two labelled classes, from arrays, pieces, a stream, or from other moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from .. import _validation as check
from ..pieces import Pieces, SlicedPieces, pieces_of
from ..pieces.find import check_source, host_labels
from .class_moments import ClassMoments
from .labels import label_array, two_classes
from .scattered import moments_of_classes


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
