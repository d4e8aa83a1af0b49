"""Readouts and pooling compiled by numba: every output is read while it is in the cache.

For one series and one reservoir: a matrix product gives what each reading's worth of input
adds to the state, a recurrence adds it up, a second product reads the states out, and the
pooling runs over the result, sixteen readouts at a time, all in a few hundred kilobytes.

Several floats side by side as one value in numba functions.

A compiler vectorises a loop only if it can prove, or check at run time, that its arrays do
not overlap; pooling writes to too many for that. Here a value *is* a vector, and what a
loop sums up over time stays in registers. LLVM maps the vectors to what the processor has
(AVX-512, AVX2, NEON, …).

``load8(array, at)`` and ``load16(array, at)`` read floats from flat position ``at`` of a
C-contiguous float32 array, `store` writes them back, ``fill8(x)`` and ``fill16(x)`` repeat
a number, ``pick(a, b, x, y)`` is x where a > b, else y, and ``pick_equal`` the same with
a = b. The operators +, −, * and the functions `larger` and `smaller` act lane by lane.
Nothing checks that ``at`` lies inside the array.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, njit
from numba.core import types
from numba.core.datamodel import models

from .pooling import GROUP, KINDS, N_ROWS

__all__ = [
    "fill8",
    "fill16",
    "larger",
    "load8",
    "load16",
    "pick",
    "pick_equal",
    "smaller",
    "store",
]


# numba's own types do not know what its decorators return.
_extending: Any = extending
intrinsic, overload = _extending.intrinsic, _extending.overload

#: Values are finite, and the sign of zero does not matter.
_FLAGS = ("nnan", "ninf", "nsz", "contract")


class Lanes(types.Type):
    """A number of float32 lanes."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Lanes({width})")


@_extending.register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Lanes) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(ir.FloatType(), fe_type.width))


_LANES = {width: Lanes(width) for width in (8, 16)}


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Address of a flat position, as a pointer to floats."""
    struct = context.make_array(array_type)(context, builder, array)
    return builder.gep(struct.data, [at])


def _vector_at(context: Any, builder: Any, lanes: Lanes, pointer: Any) -> Any:
    return builder.bitcast(pointer, context.get_value_type(lanes).as_pointer())


def _is_floats(array: Any) -> bool:
    return (
        isinstance(array, types.Array)
        and array.dtype == types.float32
        and array.layout == "C"
    )


def _loader(width: int) -> Any:
    lanes = _LANES[width]

    @intrinsic
    def load(typingctx: Any, array: Any, at: Any) -> Any:
        if not (_is_floats(array) and isinstance(at, types.Integer)):
            return None

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], *values)
            made = builder.load(_vector_at(context, builder, lanes, pointer))
            made.align = 4  # rows begin anywhere
            return made

        return lanes(array, types.intp), generate

    return load


def _filler(width: int) -> Any:
    lanes = _LANES[width]

    @intrinsic
    def fill(typingctx: Any, number: Any) -> Any:
        if number != types.float32:
            return None

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            vector = context.get_value_type(lanes)
            index = ir.IntType(32)
            first = builder.insert_element(
                ir.Constant(vector, ir.Undefined), values[0], index(0)
            )
            zeros = ir.Constant(ir.VectorType(index, width), [0] * width)
            return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

        return lanes(number), generate

    return fill


load8, load16 = _loader(8), _loader(16)
fill8, fill16 = _filler(8), _filler(16)


@intrinsic
def store(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """Write the lanes to a flat position of an array."""
    if not (_is_floats(array) and isinstance(value, Lanes)):
        return None

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *values[:2])
        builder.store(values[2], _vector_at(context, builder, value, pointer), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _selector(comparison: str) -> Any:
    @intrinsic
    def select(typingctx: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
        if not (isinstance(a, Lanes) and a == b == x == y):
            return None

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            mask = builder.fcmp_ordered(comparison, *values[:2], flags=_FLAGS)
            return builder.select(mask, *values[2:])

        return a(a, b, x, y), generate

    return select


pick, pick_equal = _selector(">"), _selector("==")


def _binary(name: str) -> Any:
    @intrinsic
    def combine(typingctx: Any, a: Any, b: Any) -> Any:
        if not (isinstance(a, Lanes) and a == b):
            return None

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return getattr(builder, name)(*values, flags=_FLAGS)

        return a(a, b), generate

    return combine


def _operator(function: Any, name: str) -> None:
    combine = _binary(name)

    @overload(function)
    def implement(a, b):  # numba compares this signature with the lambda's
        if isinstance(a, Lanes) and a == b:
            return lambda a, b: combine(a, b)
        return None


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")


@intrinsic
def larger(typingctx: Any, a: Any, b: Any) -> Any:
    """The larger of two values, lane by lane."""
    return _extreme(a, b, ">")


@intrinsic
def smaller(typingctx: Any, a: Any, b: Any) -> Any:
    """The smaller of two values, lane by lane."""
    return _extreme(a, b, "<")


def _extreme(a: Any, b: Any, comparison: str) -> Any:
    if not (isinstance(a, Lanes) and a == b):
        return None

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        mask = builder.fcmp_ordered(comparison, *values, flags=_FLAGS)
        return builder.select(mask, *values)

    return a(a, b), generate


# numba's own types do not say what an intrinsic takes when it is called.
# pyright: reportCallIssue=false


_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy"}
_INLINE = {**_OPTIONS, "forceinline": True}
_WIDTH = 16

_ABOVE, _HALVES, _QUARTERS = (KINDS[k].start for k in ("above", "halves", "quarters"))
_LEVEL, _POSITION, _STRETCH = (KINDS[k].start for k in ("level", "position", "stretch"))
_STRETCHES = KINDS["stretches"].start
_MAX, _MIN, _RMS = (KINDS[k].start for k in ("max", "min", "rms"))
_LARGEST, _SMALLEST = (KINDS[k].start for k in ("largest", "smallest"))


@njit(**_OPTIONS)
def _advance(Y, decay):
    """States from what each reading adds, in place; ``decay`` holds exp(λ·stride)."""
    K, width = Y.shape
    J = width // 2
    for first in range(0, J, _WIDTH):
        at = max(0, min(first, J - _WIDTH))
        if J < _WIDTH or at < first:
            # The lanes would overlap with those before, which have been advanced.
            for k in range(1, K):
                for j in range(first, J):
                    a, b = Y[k - 1, j], Y[k - 1, J + j]
                    Y[k, j] += a * decay[0, j] - b * decay[1, j]
                    Y[k, J + j] += a * decay[1, j] + b * decay[0, j]
        else:
            re, im = load16(decay, at), load16(decay, J + at)
            a, b = load16(Y, at), load16(Y, J + at)
            for k in range(1, K):
                here = k * width + at
                p = load16(Y, here) + a * re - b * im
                b = load16(Y, here + J) + a * im + b * re
                a = p
                store(Y, here, a)
                store(Y, here + J, b)


@njit(**_OPTIONS)
def _differences(Z, K, D):
    """First and second differences behind the readouts; zero before the series."""
    size = K * D
    for order in range(2):
        before, after = order * size, (order + 1) * size
        for d in range(D):
            Z[after + d] = Z[before + d]
        for at in range(D, size, _WIDTH):
            # The last lanes run over the end, into what comes next or the slack behind.
            change = load16(Z, before + at) - load16(Z, before + at - D)
            store(Z, after + at, change)


@njit(**_INLINE)
def _track(z, threshold, now, one, zero, level, position, run, stretch, number):
    """One step of what is above a threshold, but for the count."""
    level = level + pick(z, threshold, z, zero)
    position = position + pick(z, threshold, now, zero)
    run = pick(z, threshold, run + one, zero)
    number = pick_equal(run, one, number + one, number)
    return level, position, run, larger(stretch, run), number


@njit(**_OPTIONS)
def _describe(Z, start, K, D, at, thresholds, column, ends, T):
    """Sums over time of sixteen readouts, into columns of the table.

    Parameters
    ----------
    Z : ndarray, flat
        Readouts (K, D) from position ``start`` on.
    at : int
        The first of the readouts.
    thresholds, T : ndarray (3, P) and (N_ROWS, P)
    column : int
        Where the readouts belong in both.
    ends : ndarray (5,)
    """
    P = T.shape[1]
    one, zero = fill16(np.float32(1)), fill16(np.float32(0))
    t0, t1, t2 = (
        load16(thresholds, column),
        load16(thresholds, P + column),
        load16(thresholds, 2 * P + column),
    )
    high = low = load16(Z, start + at)
    square = now = zero
    v0 = v1 = v2 = x0 = x1 = x2 = zero
    r0 = r1 = r2 = s0 = s1 = s2 = n0 = n1 = n2 = zero
    for q in range(4):
        c0 = c1 = c2 = zero
        for k in range(ends[q], ends[q + 1]):
            z = load16(Z, start + k * D + at)
            high, low = larger(high, z), smaller(low, z)
            square = square + z * z
            c0 = pick(z, t0, c0 + one, c0)
            c1 = pick(z, t1, c1 + one, c1)
            c2 = pick(z, t2, c2 + one, c2)
            v0, x0, r0, s0, n0 = _track(z, t0, now, one, zero, v0, x0, r0, s0, n0)
            v1, x1, r1, s1, n1 = _track(z, t1, now, one, zero, v1, x1, r1, s1, n1)
            v2, x2, r2, s2, n2 = _track(z, t2, now, one, zero, v2, x2, r2, s2, n2)
            now = now + one
        row = _QUARTERS + 3 * q
        store(T, row * P + column, c0)
        store(T, (row + 1) * P + column, c1)
        store(T, (row + 2) * P + column, c2)
    store(T, _LEVEL * P + column, v0)
    store(T, (_LEVEL + 1) * P + column, v1)
    store(T, (_LEVEL + 2) * P + column, v2)
    store(T, _POSITION * P + column, x0)
    store(T, (_POSITION + 1) * P + column, x1)
    store(T, (_POSITION + 2) * P + column, x2)
    store(T, _STRETCH * P + column, s0)
    store(T, (_STRETCH + 1) * P + column, s1)
    store(T, (_STRETCH + 2) * P + column, s2)
    store(T, _STRETCHES * P + column, n0)
    store(T, (_STRETCHES + 1) * P + column, n1)
    store(T, (_STRETCHES + 2) * P + column, n2)
    store(T, _MAX * P + column, high)
    store(T, _MIN * P + column, low)
    store(T, _RMS * P + column, square)


@njit(**_INLINE)
def _credit(z, best, zero, won):
    """Add |z| where a readout is the best of its group."""
    return won + pick_equal(z, best, larger(z, zero - z), zero)


@njit(**_OPTIONS)
def _compete(Z, start, K, D, first, won, lost):
    """Sum |z| where a readout is the largest, or the smallest, of its group of eight.

    Sixteen groups at a time, from group ``first`` on. ``won`` and ``lost`` (8, 16) take the
    sums; lanes of groups that do not exist hold anything.
    """
    step = D // GROUP
    zero = fill16(np.float32(0))
    w0 = w1 = w2 = w3 = w4 = w5 = w6 = w7 = zero
    l0 = l1 = l2 = l3 = l4 = l5 = l6 = l7 = zero
    for k in range(K):
        at = start + k * D + first
        a, b = load16(Z, at), load16(Z, at + step)
        c, d = load16(Z, at + 2 * step), load16(Z, at + 3 * step)
        e, f = load16(Z, at + 4 * step), load16(Z, at + 5 * step)
        g, h = load16(Z, at + 6 * step), load16(Z, at + 7 * step)
        best = larger(
            larger(larger(a, b), larger(c, d)), larger(larger(e, f), larger(g, h))
        )
        w0, w1 = _credit(a, best, zero, w0), _credit(b, best, zero, w1)
        w2, w3 = _credit(c, best, zero, w2), _credit(d, best, zero, w3)
        w4, w5 = _credit(e, best, zero, w4), _credit(f, best, zero, w5)
        w6, w7 = _credit(g, best, zero, w6), _credit(h, best, zero, w7)
        best = smaller(
            smaller(smaller(a, b), smaller(c, d)), smaller(smaller(e, f), smaller(g, h))
        )
        l0, l1 = _credit(a, best, zero, l0), _credit(b, best, zero, l1)
        l2, l3 = _credit(c, best, zero, l2), _credit(d, best, zero, l3)
        l4, l5 = _credit(e, best, zero, l4), _credit(f, best, zero, l5)
        l6, l7 = _credit(g, best, zero, l6), _credit(h, best, zero, l7)
    for sums, s0, s1, s2, s3, s4, s5, s6, s7 in (
        (won, w0, w1, w2, w3, w4, w5, w6, w7),
        (lost, l0, l1, l2, l3, l4, l5, l6, l7),
    ):
        store(sums, 0, s0)
        store(sums, 16, s1)
        store(sums, 32, s2)
        store(sums, 48, s3)
        store(sums, 64, s4)
        store(sums, 80, s5)
        store(sums, 96, s6)
        store(sums, 112, s7)


@njit(**_OPTIONS)
def _finish(T, thresholds, ends):
    """Sums into proportions and means, in place."""
    P = T.shape[1]
    one, half = np.float32(1), np.float32(0.5)
    per_step = one / np.float32(ends[4])
    for t in range(3):
        for p in range(P):
            a, b = T[_QUARTERS + t, p], T[_QUARTERS + 3 + t, p]
            c, d = T[_QUARTERS + 6 + t, p], T[_QUARTERS + 9 + t, p]
            n = a + b + c + d
            over = one / max(n, one)
            T[_ABOVE + t, p] = n * per_step
            T[_HALVES + t, p] = a + b
            T[_HALVES + 3 + t, p] = c + d
            level = T[_LEVEL + t, p] * over
            position = (T[_POSITION + t, p] * over + half) * per_step
            T[_LEVEL + t, p] = level if n > 0 else thresholds[t, p]
            T[_POSITION + t, p] = position if n > 0 else half
            T[_STRETCH + t, p] *= per_step
            number = max(T[_STRETCHES + t, p], one)
            T[_STRETCHES + t, p] = np.sqrt(n / number * per_step)
    for part in range(6):
        if part < 2:
            row, length = _HALVES + 3 * part, ends[2 * part + 2] - ends[2 * part]
        else:
            row, length = _QUARTERS + 3 * part - 6, ends[part - 1] - ends[part - 2]
        share = one / np.float32(max(length, 1))
        for t in range(3):
            for p in range(P):
                T[row + t, p] *= share
    for row in (_RMS, _LARGEST, _SMALLEST):
        for p in range(P):
            T[row, p] = np.sqrt(T[row, p] * per_step)


@njit(**_OPTIONS)
def _read(x, drive, decay, readouts, Y, Z):
    """Readouts of one series and their differences, into the flat ``Z``."""
    K, D = len(x), readouts.shape[1]
    np.dot(x, drive, Y)
    _advance(Y, decay)
    np.dot(Y, readouts, Z[: K * D].reshape(K, D))
    _differences(Z, K, D)


@njit(**_OPTIONS)
def readings(X, drive, decay, readouts, out):
    """Readouts and their differences of a batch of series of one length.

    Parameters
    ----------
    X, drive, decay, readouts
        As in `pool`.
    out : ndarray (n_cases, 3, n_reads, n_readouts)
        Filled.
    """
    n, K, _ = X.shape
    D = readouts.shape[1]
    Y = np.empty((K, readouts.shape[0]), np.float32)
    Z = np.empty(3 * K * D + _WIDTH, np.float32)
    for i in range(n):
        _read(X[i], drive, decay, readouts, Y, Z)
        # Assigning the array instead would take numba four seconds more to compile.
        flat = out[i].reshape(-1)
        for k in range(flat.size):
            flat[k] = Z[k]


@njit(**_OPTIONS)
def _summarise(x, drive, decay, readouts, thresholds, ends, Y, Z, won, lost, T):
    """The table of one series."""
    K, D = len(x), readouts.shape[1]
    step = D // GROUP
    _read(x, drive, decay, readouts, Y, Z)
    for s in range(3):
        start = s * K * D
        for first in range(0, D, _WIDTH):
            at = min(first, D - _WIDTH)
            _describe(Z, start, K, D, at, thresholds, s * D + at, ends, T)
        for first in range(0, step, _WIDTH):
            _compete(Z, start, K, D, first, won, lost)
            kept = min(_WIDTH, step - first)
            for m in range(GROUP):
                column = s * D + m * step + first
                for k in range(kept):  # for the sake of compilation, as in `readings`
                    T[_LARGEST, column + k] = won[m, k]
                    T[_SMALLEST, column + k] = lost[m, k]
    _finish(T, thresholds, ends)


@njit(**_OPTIONS)
def _workspace(K, width, D):
    """Buffers of `_summarise` for series of K readings."""
    return (
        np.empty((K, width), np.float32),
        # Lanes of groups that do not exist reach beyond the last readout.
        np.zeros(3 * K * D + _WIDTH, np.float32),
        np.empty((GROUP, _WIDTH), np.float32),
        np.empty((GROUP, _WIDTH), np.float32),
    )


@njit(**_OPTIONS)
def pool(X, drive, decay, readouts, thresholds, ends, tables):
    """Pooled features of a batch of series of one length, for one reservoir.

    Parameters
    ----------
    X : ndarray (n_cases, n_reads, stride · n_channels), float32
        The series cut into readings.
    drive, readouts : ndarray, float32
        See `ScaleReservoir.drive` and `split_readouts`.
    decay : ndarray (2, n_oscillators), float32
        Real and imaginary part of exp(λ·stride).
    thresholds : ndarray (3, 3 n_readouts), float32
    ends : ndarray (5,) of int
        Where the quarters of the time begin, and the end.
    tables : ndarray (n_cases, N_ROWS, 3 n_readouts), float32
        Filled; see `kinds`.
    """
    Y, Z, won, lost = _workspace(X.shape[1], *readouts.shape)
    for i in range(len(X)):
        own = tables[i]
        _summarise(X[i], drive, decay, readouts, thresholds, ends, Y, Z, won, lost, own)


@njit(**_OPTIONS)
def _add(T, mean, W, first, sums, score):
    """Add (T − mean) · W to the score for four targets from ``first`` on."""
    size = T.size
    zero = fill16(np.float32(0))
    s0 = s1 = s2 = s3 = zero
    at = first * size
    for p in range(0, size - _WIDTH + 1, _WIDTH):
        z = load16(T, p) - load16(mean, p)
        s0 = s0 + z * load16(W, at + p)
        s1 = s1 + z * load16(W, at + size + p)
        s2 = s2 + z * load16(W, at + 2 * size + p)
        s3 = s3 + z * load16(W, at + 3 * size + p)
    store(sums, 0, s0)
    store(sums, 16, s1)
    store(sums, 32, s2)
    store(sums, 48, s3)
    flat = T.reshape(-1)
    for t in range(first, min(first + 4, len(score))):
        total = 0.0
        for lane in range(_WIDTH):
            total += sums[t - first, lane]
        for p in range(size - size % _WIDTH, size):
            total += (flat[p] - mean[p]) * W[t, p]
        score[t] += total


@njit(**_OPTIONS)
def score(X, drive, decay, readouts, thresholds, ends, mean, W, scores):
    """Add the part of one reservoir to linear scores, without keeping the features.

    Parameters
    ----------
    X, drive, decay, readouts, thresholds, ends
        As in `pool`.
    mean : ndarray (n_features,), float32
    W : ndarray (n_targets, n_features), float32
        Coefficients; rows of zeros fill it up to a multiple of four targets.
    scores : ndarray (n_cases, n_targets), float64
        Added to. A series gets the same score whatever batch it is in.
    """
    D = readouts.shape[1]
    Y, Z, won, lost = _workspace(X.shape[1], *readouts.shape)
    T = np.empty((N_ROWS, 3 * D), np.float32)
    sums = np.empty((4, _WIDTH), np.float32)
    for i in range(len(X)):
        _summarise(X[i], drive, decay, readouts, thresholds, ends, Y, Z, won, lost, T)
        for first in range(0, scores.shape[1], 4):
            _add(T, mean, W, first, sums, scores[i])


assert N_ROWS == _SMALLEST + 1
