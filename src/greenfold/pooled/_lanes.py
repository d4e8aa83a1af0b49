"""Several floats side by side as one value in numba functions.

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

from llvmlite import ir
from numba import extending
from numba.core import types
from numba.core.datamodel import models

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
