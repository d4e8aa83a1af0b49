"""A fit on series in pieces: what is known of all of them is summed up where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..decisions import Clouds
from ..pieces import Pieces
from ..pieces.base import first_of, split
from ..stimuli import Series, frame_in_pieces
from ..stimuli.class_moments import ClassMoments
from ..stimuli.scattered import checked, merge_classes, moments_of_piece
from . import parameters
from .fitting import ReservoirFitting
from .heads import Head, Solved, read_out
from .sample import StreamSample
from .stream import ClassStream

#: Moments of every class, a sample of the series, and the largest value.
_Summary = tuple[list[ClassMoments], StreamSample, float]


def fit_pieces(estimator: ReservoirFitting, pieces: Pieces, codes: np.ndarray) -> None:
    """Fit a classifier whose classes and shape are set.

    Parameters
    ----------
    estimator : ReservoirFitting
    pieces : Pieces
    codes : ndarray (n_cases,)
        Class of each series.
    """
    n_classes, shape = len(estimator.classes_), pieces.shape[1:]
    estimator._build()
    small = codes.astype(np.int8 if n_classes < 128 else np.int32)
    moments, sample, largest = pieces.total(
        pieces.each(
            _summarise,
            (pieces.series, first_of(pieces), split(small, pieces)),
            n_classes,
            shape,
            estimator._fold_seed,
        ),
        _merge,
    )
    exponent = estimator._exponent = estimator._unit_exponent(np.array([largest]))
    # Exact, because the unit is a power of two.
    values = np.ldexp(sample.values.astype(np.float64), -exponent)
    unit = float(np.ldexp(1.0, -exponent))
    estimator._stream = stream = ClassStream(
        [ClassMoments(m.count, m.mean * unit, m.scatter * unit**2) for m in moments],
        replace(sample, values=values),
    )
    if estimator.order == 0:
        estimator._solve_stream()
        return
    per_class = parameters.class_weights(estimator, estimator.classes_, stream.counts)
    estimator._choose(*stream.sampled(), per_class)
    frames = [
        frame_in_pieces(
            pieces, stream.moments, codes, c, per_class, estimator.input_scaling, exponent
        )
        for c in estimator.compared_
    ]
    del estimator._stream  # beyond order 0 a stream does not go on
    heads = estimator._solve(frames)
    system = None if all(head.kernel for head in heads) else estimator.unfolding_
    shared = pieces.share((heads, system))
    parts = pieces.each(_read, (pieces.series, first_of(pieces)), shape, shared, exponent)
    Z = np.concatenate(pieces.collect(parts))
    estimator._settle(heads, Clouds.of(Z, codes, np.ones(len(codes)), per_class))


def _summarise(
    X: Any, first: int, codes: np.ndarray, n_classes: int, shape: tuple[int, int], seed: int
) -> _Summary:
    moments = moments_of_piece(X, first, codes, n_classes, shape)
    host = np.asarray(checked(X, first, shape))
    empty = StreamSample.empty(n_classes, shape, seed)
    sample = empty.add(Series(host), codes.astype(int), np.ones(len(codes)), first)
    return moments, sample, float(max(host.max(), -host.min()))


def _merge(one: _Summary, other: _Summary) -> _Summary:
    moments = merge_classes(one[0], other[0])
    return moments, one[1].merge(other[1]), max(one[2], other[2])


def _read(
    X: Any,
    first: int,
    shape: tuple[int, int],
    fitted: tuple[list[Head], Solved | None],
    exponent: int,
) -> np.ndarray:
    heads, system = fitted
    values = np.ldexp(np.asarray(checked(X, first, shape), dtype=np.float64), -exponent)

    def made() -> Solved:
        assert system is not None
        return system

    return read_out(heads, made, Series(values))
