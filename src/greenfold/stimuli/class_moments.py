"""Moments of classes of series, in memory or in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.arrays import BATCH_BYTES, batches, like, namespace, to_host
from ..math.covariances import DENSE_SIZE, Factored, Symmetric, outer, refuse_if_large
from .chunks import Chunks

#: Memory, besides the series, for reducing a chunk to its moments.
_WORKING_BYTES = 2**24


@dataclass(frozen=True)
class ClassMoments:
    """Weight, mean and scatter Σ p (x − m)(x − m)ᵀ of one class; they merge exactly.

    With weights of one, the weight of the class is its number of series. For few long
    series, or none, only the factor of the scatter is kept.
    """

    count: float
    mean: np.ndarray
    scatter: Symmetric

    @classmethod
    def empty(cls, size: int) -> ClassMoments:
        """The moments of no series."""
        return cls(0, np.zeros(size), Factored.zero(size))

    @classmethod
    def of(
        cls,
        X: Any,
        rows: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        first: int = 0,
        budget: int = BATCH_BYTES,
    ) -> ClassMoments:
        """Moments of some series of (n_cases, n_channels, n_steps), in ``budget`` bytes.

        ``weights`` holds one positive number per row. ``first`` is the caller's number of
        the first series.
        """
        size = X.shape[1] * X.shape[2]
        if not len(rows):
            return cls.empty(size)
        few = size > DENSE_SIZE and 3 * len(rows) <= size
        if size > DENSE_SIZE and not few:
            refuse_if_large(size)
        xp, total = namespace(X), None
        for part in list(batches(len(rows), 32.0 * size, budget)):
            chosen = xp.take(X, like(rows[part], X), axis=0)
            flat = xp.reshape(xp.astype(chosen, xp.float64), (-1, size))
            if not bool(xp.all(xp.isfinite(flat))):
                for row in rows[part].tolist():  # numbered as by the caller
                    check.finite_batch(X[row : row + 1, ...], xp, first + row)
            largest = float(to_host(xp.max(xp.abs(flat))))
            square = f"`X` holds values of size {largest:.3g}, whose squares leave floating"
            fits = 1e-140 < largest < 1e140 or largest == 0
            # One class may have much smaller values than the others.
            fits = fits or largest < 1 < 1e140 * float(to_host(xp.max(xp.abs(X))))
            check.require(fits, f"{square} point; rescale the series.")
            if weights is None:
                each, count = None, float(flat.shape[0])
                mean = xp.mean(flat, axis=0)
            else:
                each, count = like(weights[part], flat), float(weights[part].sum())
                mean = (each @ flat) / count
            centred = flat - mean
            if few:
                root = centred if each is None else centred * xp.sqrt(each)[:, None]
                scatter = Factored(to_host(root).T)
            else:
                weighted = centred if each is None else centred * each[:, None]
                scatter = to_host(xp.matrix_transpose(weighted) @ centred)
            found = cls(count, to_host(mean), scatter)
            total = found if total is None else total.merge(found)
        assert total is not None
        return total

    def merge(self, other: ClassMoments) -> ClassMoments:
        """Pairwise update of Chan, Golub & LeVeque (1983): no difference of large sums."""
        if self.count == 0:
            return other
        total = self.count + other.count
        shift = other.mean - self.mean
        mean = self.mean + shift * (other.count / total)
        scatter = self.scatter + other.scatter
        between = outer(shift, self.count * other.count / total, scatter)
        return ClassMoments(total, mean, scatter + between)

    def scaled(self, unit: float) -> ClassMoments:
        """Moments of the series times ``unit``."""
        with np.errstate(over="ignore"):  # the scatter of series beyond 1e154 overflows
            return ClassMoments(self.count, self.mean * unit, self.scatter * unit * unit)

    @property
    def covariance(self) -> Symmetric:
        """Covariance: scatter over weight; zero without series."""
        return self.scatter / (self.count or 1.0)


def moments_of_classes(
    chunks: Chunks, codes: np.ndarray, n_classes: int
) -> list[ClassMoments]:
    """Moments of the classes 0, 1, … in one pass, added up where the series are."""
    lists = chunks.series, chunks.firsts, chunks.split(small_codes(codes, n_classes))
    budget = BATCH_BYTES if chunks.in_memory else _WORKING_BYTES
    parts = chunks.each(moments_of_chunk, lists, n_classes, chunks.shape[1:], budget)
    return chunks.total(parts, merge_classes)


def small_codes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Class codes in a small integer type, to send to the chunks."""
    return codes.astype(np.int8 if n_classes < 128 else np.int32)


def moments_of_chunk(
    X: Any,
    first: int,
    codes: np.ndarray,
    n_classes: int,
    shape: tuple[int, int],
    budget: int = _WORKING_BYTES,
) -> list[ClassMoments]:
    """Moments of each class in one chunk that starts at series ``first``."""
    X = checked_chunk(X, first, shape)
    told = f"`X` announces {len(codes)} series for the chunk from series {first} on, which"
    advice = "call X.compute_chunk_sizes()"
    check.require(X.shape[0] == len(codes), f"{told} holds {X.shape[0]}; {advice}.")
    return [
        ClassMoments.of(X, np.flatnonzero(codes == c), first=first, budget=budget)
        for c in range(n_classes)
    ]


def checked_chunk(X: Any, first: int, shape: tuple[int, int]) -> Any:
    """Return a chunk as (n, n_channels, n_steps), or refuse it."""
    X = check.stimuli(X, shape[1])
    got = f"shape {tuple(X.shape)} from series {first} on"
    wanted = f"have {shape[0]} channel(s) in every chunk"
    check.must(X.shape[1] == shape[0], "X", wanted, got)
    return X


def merge_classes(one: list[ClassMoments], other: list[ClassMoments]) -> list[ClassMoments]:
    """Merge moments class by class."""
    return [a.merge(b) for a, b in zip(one, other, strict=True)]
