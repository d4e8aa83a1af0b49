"""Readouts and pooling compiled by numba, so that every output stays in the cache.

For one series and one reservoir, a matrix product gives the input's contribution to the
state at each reading. A recurrence adds the contributions up, and a second product reads
the states out. Pooling then runs over the result, sixteen readouts at a time. All of this
needs a few hundred kilobytes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import extending, njit
from numba.core import types
from numba.core.base import BaseContext as Target
from numba.core.datamodel import models
from numba.core.typing import Context, Signature

from .feature_map import GROUP, KINDS, N_ROWS

# Sixteen floats as one value.
#
# A compiler vectorises a loop only if it can prove, or check at run time, that its arrays
# do not overlap; pooling writes to too many arrays for that. Here a value *is* a vector,
# and sums over time stay in registers. LLVM maps these vectors to the processor's own
# (AVX-512, AVX2, NEON, …). Positions are not checked against the bounds of their array.

# numba's type stubs lack the results of its decorators and the arguments of intrinsics.
# pyright: reportCallIssue=false
_extending: Any = extending
intrinsic, overload = _extending.intrinsic, _extending.overload

Kind: TypeAlias = types.Type
Builder: TypeAlias = ir.IRBuilder
Values: TypeAlias = Sequence[ir.Value]

_WIDTH = 16
_VECTOR = ir.VectorType(ir.FloatType(), _WIDTH)
#: Values are finite, and the sign of zero does not matter.
_FLAGS = ("nnan", "ninf", "nsz", "contract")


class Lanes(types.Type):
    """Sixteen float32 lanes."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@_extending.register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: object, fe_type: Lanes) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


_LANES = Lanes()


def _address(
    context: Target, builder: Builder, kind: types.Array, array: ir.Value, at: ir.Value
) -> Any:
    """Return a pointer to the lanes at a flat position of a float32 array."""
    struct = context.make_array(kind)(context, builder, array)
    return builder.bitcast(builder.gep(struct.data, [at]), _VECTOR.as_pointer())


def _is_floats(array: Kind) -> bool:
    if not isinstance(array, types.Array):
        return False
    return array.dtype == types.float32 and array.layout == "C"


@intrinsic
def load(typingctx: Context, array: Kind, at: Kind) -> Any:
    """Load the lanes from a flat position of a C-contiguous float32 array."""

    def generate(context: Target, builder: Builder, made: Signature, values: Values) -> Any:
        lanes: Any = builder.load(_address(context, builder, made.args[0], *values))
        lanes.align = 4  # rows may begin anywhere
        return lanes

    return (_LANES(array, types.intp), generate) if _is_floats(array) else None


@intrinsic
def store(typingctx: Context, array: Kind, at: Kind, value: Kind) -> Any:
    """Write the lanes to a flat position of an array."""

    def generate(context: Target, builder: Builder, made: Signature, values: Values) -> Any:
        place = _address(context, builder, made.args[0], *values[:2])
        builder.store(values[2], place, align=4)
        return context.get_dummy_value()

    fits = _is_floats(array) and value == _LANES
    return (types.void(array, types.intp, value), generate) if fits else None


@intrinsic
def fill(typingctx: Context, number: Kind) -> Any:
    """Repeat a float32 in every lane."""

    def generate(context: Target, builder: Builder, made: Signature, values: Values) -> Any:
        index, none = ir.IntType(32), ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(none, values[0], index(0))
        zeros = ir.Constant(ir.VectorType(index, _WIDTH), [0] * _WIDTH)
        return builder.shuffle_vector(first, none, zeros)

    return (_LANES(number), generate) if number == types.float32 else None


def _selector(comparison: str) -> Any:
    """Return ``pick(a, b, x, y)``: x if the comparison of a with b holds, else y."""

    @intrinsic
    def pick(typingctx: Context, a: Kind, b: Kind, x: Kind, y: Kind) -> Any:
        def generate(
            context: Target, builder: Builder, made: Signature, values: Values
        ) -> Any:
            mask = builder.fcmp_ordered(comparison, values[0], values[1], flags=_FLAGS)
            return builder.select(mask, values[2], values[3])

        return (_LANES(a, b, x, y), generate) if a == b == x == y == _LANES else None

    return pick


def _operator(function: Callable[..., Any], name: str) -> None:
    """Make numba apply an operator lane by lane, with LLVM's instruction ``name``."""

    @intrinsic
    def combine(typingctx: Context, a: Kind, b: Kind) -> Any:
        def generate(
            context: Target, builder: Builder, made: Signature, values: Values
        ) -> Any:
            return getattr(builder, name)(*values, flags=_FLAGS)

        return (_LANES(a, b), generate) if a == b == _LANES else None

    @overload(function)
    def implement(a, b):  # numba compares this signature with the lambda's
        return (lambda a, b: combine(a, b)) if a == b == _LANES else None


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
pick, pick_equal = _selector(">"), _selector("==")
# Pooling

_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy"}
_INLINE = {**_OPTIONS, "forceinline": True}

_ABOVE, _HALVES, _QUARTERS = (KINDS[k].start for k in ("above", "halves", "quarters"))
_LEVEL, _POSITION, _STRETCH = (KINDS[k].start for k in ("level", "position", "stretch"))
_STRETCHES = KINDS["stretches"].start
_MAX, _MIN, _RMS = (KINDS[k].start for k in ("max", "min", "rms"))
_LARGEST, _SMALLEST = (KINDS[k].start for k in ("largest", "smallest"))


@njit(**_INLINE)
def larger(a, b):
    """Return the larger value of each lane."""
    return pick(a, b, a, b)


@njit(**_INLINE)
def smaller(a, b):
    """Return the smaller value of each lane."""
    return pick(b, a, a, b)


@njit(**_OPTIONS)
def _advance(Y, decay):
    """Accumulate the input of each reading, in place; ``decay`` is exp(λ·stride)."""
    K, width = Y.shape
    J = width // 2
    for first in range(0, J, _WIDTH):
        at = max(0, min(first, J - _WIDTH))
        if J < _WIDTH or at < first:
            # These lanes would overlap with earlier lanes, which are already advanced.
            for k in range(1, K):
                for j in range(first, J):
                    a, b = Y[k - 1, j], Y[k - 1, J + j]
                    Y[k, j] += a * decay[0, j] - b * decay[1, j]
                    Y[k, J + j] += a * decay[1, j] + b * decay[0, j]
        else:
            re, im = load(decay, at), load(decay, J + at)
            a, b = load(Y, at), load(Y, J + at)
            for k in range(1, K):
                here = k * width + at
                p = load(Y, here) + a * re - b * im
                b = load(Y, here + J) + a * im + b * re
                a = p
                store(Y, here, a)
                store(Y, here + J, b)


@njit(**_OPTIONS)
def _differences(Z, K, D):
    """Append first and second differences; readouts are zero before the series."""
    size = K * D
    for order in range(2):
        before, after = order * size, (order + 1) * size
        for d in range(D):
            Z[after + d] = Z[before + d]
        for at in range(D, size, _WIDTH):
            # The last lanes run over the end, into later values or the slack.
            change = load(Z, before + at) - load(Z, before + at - D)
            store(Z, after + at, change)


@njit(**_INLINE)
def _track(z, threshold, now, one, zero, state):
    """Update the statistics above a threshold, except the count, by one time step."""
    level, position, run, stretch, number = state
    level = level + pick(z, threshold, z, zero)
    position = position + pick(z, threshold, now, zero)
    run = pick(z, threshold, run + one, zero)
    number = pick_equal(run, one, number + one, number)
    return level, position, run, larger(stretch, run), number


@njit(**_INLINE)
def _store_rows(T, row, column, a, b, c):
    """Store lanes in three successive rows of a table."""
    P = T.shape[1]
    store(T, row * P + column, a)
    store(T, (row + 1) * P + column, b)
    store(T, (row + 2) * P + column, c)


@njit(**_OPTIONS)
def _describe(Z, start, K, D, at, thresholds, column, ends, T):
    """Sum over time for sixteen readouts, into ``column`` and later ones of the table T.

    T has shape (N_ROWS, P). All readouts (K, D) begin at ``start`` of the flat Z, and the
    sixteen to sum begin at their column ``at``.
    """
    P = T.shape[1]
    one, zero = fill(np.float32(1)), fill(np.float32(0))
    t0, t1 = load(thresholds, column), load(thresholds, P + column)
    t2 = load(thresholds, 2 * P + column)
    high = low = load(Z, start + at)
    square = now = zero
    s0 = s1 = s2 = (zero, zero, zero, zero, zero)
    for q in range(4):
        c0 = c1 = c2 = zero
        for k in range(ends[q], ends[q + 1]):
            z = load(Z, start + k * D + at)
            high, low = larger(high, z), smaller(low, z)
            square = square + z * z
            c0 = pick(z, t0, c0 + one, c0)
            c1 = pick(z, t1, c1 + one, c1)
            c2 = pick(z, t2, c2 + one, c2)
            s0 = _track(z, t0, now, one, zero, s0)
            s1 = _track(z, t1, now, one, zero, s1)
            s2 = _track(z, t2, now, one, zero, s2)
            now = now + one
        _store_rows(T, _QUARTERS + 3 * q, column, c0, c1, c2)
    _store_rows(T, _LEVEL, column, s0[0], s1[0], s2[0])
    _store_rows(T, _POSITION, column, s0[1], s1[1], s2[1])
    _store_rows(T, _STRETCH, column, s0[3], s1[3], s2[3])
    _store_rows(T, _STRETCHES, column, s0[4], s1[4], s2[4])
    _store_rows(T, _MAX, column, high, low, square)


@njit(**_INLINE)
def _credit(z, best, zero, won):
    """Add |z| for each of eight readouts that is the best of its group."""
    a, b, c, d, e, f, g, h = z
    w0, w1, w2, w3, w4, w5, w6, w7 = won
    return (
        w0 + pick_equal(a, best, larger(a, zero - a), zero),
        w1 + pick_equal(b, best, larger(b, zero - b), zero),
        w2 + pick_equal(c, best, larger(c, zero - c), zero),
        w3 + pick_equal(d, best, larger(d, zero - d), zero),
        w4 + pick_equal(e, best, larger(e, zero - e), zero),
        w5 + pick_equal(f, best, larger(f, zero - f), zero),
        w6 + pick_equal(g, best, larger(g, zero - g), zero),
        w7 + pick_equal(h, best, larger(h, zero - h), zero),
    )


@njit(**_OPTIONS)
def _compete(Z, start, K, D, first, won, lost):
    """Sum |z| at the steps at which a readout is the largest, or smallest, of its group.

    ``won`` and ``lost`` (8, 16) receive the sums of sixteen groups, from ``first`` on.
    Lanes beyond the last group are undefined.
    """
    step = D // GROUP
    zero = fill(np.float32(0))
    most = least = (zero, zero, zero, zero, zero, zero, zero, zero)
    for k in range(K):
        at = start + k * D + first
        a, b = load(Z, at), load(Z, at + step)
        c, d = load(Z, at + 2 * step), load(Z, at + 3 * step)
        e, f = load(Z, at + 4 * step), load(Z, at + 5 * step)
        g, h = load(Z, at + 6 * step), load(Z, at + 7 * step)
        z = a, b, c, d, e, f, g, h
        best = larger(larger(a, b), larger(c, d))
        most = _credit(z, larger(best, larger(larger(e, f), larger(g, h))), zero, most)
        best = smaller(smaller(a, b), smaller(c, d))
        least = _credit(
            z, smaller(best, smaller(smaller(e, f), smaller(g, h))), zero, least
        )
    for sums, s in ((won, most), (lost, least)):
        _store_rows(sums, 0, 0, s[0], s[1], s[2])
        _store_rows(sums, 3, 0, s[3], s[4], s[5])
        store(sums, 6 * _WIDTH, s[6])
        store(sums, 7 * _WIDTH, s[7])


@njit(**_OPTIONS)
def _finish(T, thresholds, ends):
    """Turn sums into proportions and means, in place."""
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
    """Write the readouts of one series and their differences to the flat ``Z``."""
    K, D = len(x), readouts.shape[1]
    np.dot(x, drive, Y)
    _advance(Y, decay)
    np.dot(Y, readouts, Z[: K * D].reshape(K, D))
    _differences(Z, K, D)


@njit(**_OPTIONS)
def readings(X, drive, decay, readouts, out):
    """Fill ``out`` (n_cases, 3, n_reads, n_readouts) with readouts and differences."""
    n, K, _ = X.shape
    D = readouts.shape[1]
    Y = np.empty((K, readouts.shape[0]), np.float32)
    Z = np.empty(3 * K * D + _WIDTH, np.float32)
    for i in range(n):
        _read(X[i], drive, decay, readouts, Y, Z)
        # Assigning the whole array would take numba four seconds longer to compile.
        flat = out[i].reshape(-1)
        for k in range(flat.size):
            flat[k] = Z[k]


@njit(**_OPTIONS)
def _summarise(x, drive, decay, readouts, thresholds, ends, Y, Z, won, lost, T):
    """Fill the table of one series."""
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
                for k in range(kept):  # faster to compile, as in `readings`
                    T[_LARGEST, column + k] = won[m, k]
                    T[_SMALLEST, column + k] = lost[m, k]
    _finish(T, thresholds, ends)


@njit(**_OPTIONS)
def _workspace(K, width, D):
    """Allocate the buffers of `_summarise` for series of K readings."""
    return (
        np.empty((K, width), np.float32),
        # Lanes beyond the last group reach beyond the last readout.
        np.zeros(3 * K * D + _WIDTH, np.float32),
        np.empty((GROUP, _WIDTH), np.float32),
        np.empty((GROUP, _WIDTH), np.float32),
    )


@njit(**_OPTIONS)
def pool(X, drive, decay, readouts, thresholds, ends, tables):
    """Fill ``tables`` like `feature_map.pool`; all arrays are float32, ``ends`` int."""
    Y, Z, won, lost = _workspace(X.shape[1], *readouts.shape)
    for i in range(len(X)):
        own = tables[i]
        _summarise(X[i], drive, decay, readouts, thresholds, ends, Y, Z, won, lost, own)


@njit(**_OPTIONS)
def _add(T, mean, W, first, sums, score):
    """Add (T − mean) · W to the score for four targets from ``first`` on."""
    size = T.size
    zero = fill(np.float32(0))
    s0 = s1 = s2 = s3 = zero
    at = first * size
    for p in range(0, size - _WIDTH + 1, _WIDTH):
        z = load(T, p) - load(mean, p)
        s0 = s0 + z * load(W, at + p)
        s1 = s1 + z * load(W, at + size + p)
        s2 = s2 + z * load(W, at + 2 * size + p)
        s3 = s3 + z * load(W, at + 3 * size + p)
    _store_rows(sums, 0, 0, s0, s1, s2)
    store(sums, 3 * _WIDTH, s3)
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
    """Add the contribution of one reservoir to linear scores, without keeping features.

    ``mean`` and the rows of W are float32 with the length of a table. Rows of zeros pad W
    to a multiple of four. Scores are float64, and do not depend on how series are batched.
    """
    D = readouts.shape[1]
    Y, Z, won, lost = _workspace(X.shape[1], *readouts.shape)
    T = np.empty((N_ROWS, 3 * D), np.float32)
    sums = np.empty((4, _WIDTH), np.float32)
    for i in range(len(X)):
        _summarise(X[i], drive, decay, readouts, thresholds, ends, Y, Z, won, lost, T)
        for first in range(0, scores.shape[1], 4):
            _add(T, mean, W, first, sums, scores[i])


assert (_MAX + 1, _MIN + 1, N_ROWS) == (_MIN, _RMS, _SMALLEST + 1)
