"""Export of estimators as ONNX graphs, for use without greenfold (``greenfold[onnx]``).

A prediction runs once on arrays that record every operation in a graph. These arrays
support only the operators and functions that predictions use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partialmethod
from pathlib import Path
from types import EllipsisType, ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._base import checks as check
from .._base.files import replacing
from .base import SeriesEstimator

__all__ = ["export", "new_graph"]

#: Old enough for most runtimes, new enough for every operator used here.
_OPSET = 18
_IR_VERSION = 9
#: ONNX names of NumPy operators and elementwise functions.
_OPERATORS: dict[Any, str] = {
    np.add: "Add",
    np.subtract: "Sub",
    np.multiply: "Mul",
    np.true_divide: "Div",
    np.matmul: "MatMul",
    np.negative: "Neg",
    np.greater: "Greater",
    np.greater_equal: "GreaterOrEqual",
    np.less: "Less",
    np.less_equal: "LessOrEqual",
    np.equal: "Equal",
    np.bitwise_and: "And",
    np.invert: "Not",
    np.maximum: "Max",
    np.minimum: "Min",
    np.sqrt: "Sqrt",
    np.exp: "Exp",
    np.tanh: "Tanh",
    np.log: "Log",
    np.abs: "Abs",
}
#: Label types that runtimes support.
_LABELS = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}


#: A part of an index.
Key: TypeAlias = slice | int | EllipsisType | None


class Traced(NDArrayOperatorsMixin):
    """An array in a graph; values known at build time stay NumPy arrays.

    ``array`` holds no cases; NumPy derives the shape and type of each result from it.
    """

    device = "cpu"

    def __init__(self, graph: Graph, array: np.ndarray, name: str) -> None:
        self.graph, self.array, self.name = graph, array, name
        self.shape, self.dtype = self.array.shape, self.array.dtype

    def __array_namespace__(self, api_version: str | None = None) -> Graph:
        return self.graph

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Operand) -> Traced:
        return self.graph.apply(ufunc, _OPERATORS[ufunc], inputs)

    def __getitem__(self, key: Key | tuple[Key, ...]) -> Traced:
        """Index by slices of step one, integers, None and one ellipsis."""
        # An integer is a slice of one, whose axis is dropped at the end.
        axes: list[Any] = [
            slice(k, k + 1 or None) if isinstance(k, int) else k
            for k in (key if isinstance(key, tuple) else (key,))
            if k is not None
        ]
        if Ellipsis in axes:
            at = axes.index(Ellipsis)
            axes[at : at + 1] = [slice(None)] * (len(self.shape) - len(axes) + 1)
        cuts = [
            (*k.indices(n)[:2], axis)
            for axis, (k, n) in enumerate(zip(axes, self.shape, strict=False))
            if k != slice(None)
        ]
        found = self
        if cuts:
            bounds = (np.array(bound) for bound in zip(*cuts, strict=True))
            cut = self.array[tuple(axes)]
            found = self.graph.node("Slice", self, *bounds, result=cut)
        shape = self.array[key].shape
        if found.shape == shape:
            return found
        return self.graph.reshape(found, [n or -1 for n in shape])


#: An input of an operation: an array in the graph, or values known at build time.
Operand: TypeAlias = Traced | np.ndarray | float


class Graph:
    """A graph under construction, which is also the array namespace of its arrays."""

    __name__ = "greenfold.estimators.onnx"
    float32, float64, bool = np.dtype("float32"), np.dtype("float64"), np.dtype("bool")

    def __init__(self, onnx: ModuleType) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.names: dict[Any, str] = {}

    # Building

    def _value(self, name: str, array: np.ndarray) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        shape = ["n_cases", *array.shape[1:]]
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def input(self, name: str, shape: tuple[int, ...], dtype: str) -> Traced:
        """Add an input (n_cases, *shape) to the graph."""
        none = np.zeros((0, *shape), dtype)
        self.inputs.append(self._value(name, none))
        return Traced(self, none, name)

    def output(self, name: str, value: Traced) -> None:
        """Make an array an output of the graph."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value.name], [name]))
        self.outputs.append(self._value(name, value.array))

    def _name(self, value: Operand) -> str:
        """Return the name of a value; equal constants share a name."""
        if isinstance(value, Traced):
            return value.name
        array = np.ascontiguousarray(value).reshape(np.shape(value))  # a scalar stays one
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.names:
            self.names[key] = f"c{len(self.names)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array, self.names[key]))
        return self.names[key]

    def node(
        self, operator: str, *inputs: Operand, result: np.ndarray, **attributes: object
    ) -> Traced:
        """Add an operation; ``result`` gives the shape and type of its output."""
        name, names = f"n{len(self.nodes)}", [self._name(one) for one in inputs]
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **attributes))
        return Traced(self, result, name)

    def apply(
        self,
        function: Callable[..., Any],
        operator: str,
        inputs: Sequence[Operand],
        *more: Operand,
        **attributes: object,
    ) -> Any:
        """Apply a function to arrays and numbers; record the operator that computes it.

        ``more`` are further inputs of the operator.
        """
        kind = next((one.dtype for one in inputs if isinstance(one, Traced)), None)
        if kind is None:
            return function(*inputs)
        known = Traced, np.ndarray
        given = [one if isinstance(one, known) else np.asarray(one, kind) for one in inputs]
        result = function(*(getattr(one, "array", one) for one in given))
        return self.node(operator, *given, *more, result=result, **attributes)

    def cast(self, x: Traced, dtype: DTypeLike) -> Traced:
        """Cast ``x`` to another type."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.apply(lambda a: a.astype(dtype), "Cast", [x], to=kind)

    def write(self, path: str | Path | None) -> Any:
        """Return the checked ONNX model, and write it to ``path`` if given."""
        helper = self.onnx.helper
        parts = self.nodes, "greenfold", self.inputs, self.outputs, self.constants
        model = helper.make_model(
            helper.make_graph(*parts),
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="greenfold",
        )
        self.onnx.checker.check_model(model)
        if path is not None:
            with replacing(Path(path)) as stream:
                stream.write(model.SerializeToString())
        return model

    def decide(self, scores: Traced, odds: Traced, classes: np.ndarray) -> None:
        """Add the outputs of a classifier; ``odds`` are the log-odds of its classes."""
        two = len(classes) == 2
        decision = scores[:, 0] if two else scores
        self.output("decision", decision)
        if two:
            # In a tie the first class wins, as in `predict`.
            index = self.cast(decision > 0, np.int64)
        else:
            best = scores.array.argmax(1)
            index = self.node("ArgMax", scores, result=best, axis=1, keepdims=0)
        labels = classes.astype(_LABELS.get(classes.dtype.kind, object))
        self.output("label", self.node("Gather", labels, index, result=labels[:0]))
        self.output("probability", self.node("Softmax", odds, result=odds.array, axis=1))

    # The functions of an array namespace that predictions call

    maximum, minimum, sqrt, abs, log = np.maximum, np.minimum, np.sqrt, np.abs, np.log
    exp, tanh = np.exp, np.tanh

    def asarray(self, value: ArrayLike, device: object = None) -> np.ndarray:
        return np.asarray(value)

    def arange(self, n: int, *, dtype: DTypeLike, device: object = None) -> np.ndarray:
        return np.arange(n, dtype=dtype)

    def astype(self, x: Traced, dtype: DTypeLike, copy: bool = True) -> Traced:
        return x if x.dtype == dtype else self.cast(x, dtype)

    def reshape(self, x: Traced, shape: Sequence[int]) -> Any:
        target = np.array(shape)
        return self.apply(lambda a: a.reshape(shape), "Reshape", [x], target)

    def permute_dims(self, x: Traced, axes: tuple[int, ...]) -> Traced:
        return self.apply(lambda a: a.transpose(axes), "Transpose", [x], perm=list(axes))

    def concat(self, arrays: list[Traced], axis: int = 0) -> Traced:
        return self.apply(lambda *a: np.concatenate(a, axis), "Concat", arrays, axis=axis)

    def stack(self, arrays: list[Traced], axis: int = 0) -> Traced:
        def widen(one: Traced) -> Traced:
            where = np.array([axis])
            return self.apply(lambda a: np.expand_dims(a, axis), "Unsqueeze", [one], where)

        return self.concat([widen(one) for one in arrays], axis)

    def _reduce(
        self, operator: str, x: Traced, *, axis: int, keepdims: bool = False
    ) -> Traced:
        return self.apply(
            lambda a: a.sum(axis, a.dtype, keepdims=keepdims),
            operator,
            [x],
            np.array([axis]),
            keepdims=int(keepdims),
        )

    sum = partialmethod(_reduce, "ReduceSum")
    mean = partialmethod(_reduce, "ReduceMean")
    max = partialmethod(_reduce, "ReduceMax")
    min = partialmethod(_reduce, "ReduceMin")

    def where(self, condition: Operand, a: Operand, b: Operand) -> Traced:
        return self.apply(np.where, "Where", [condition, a, b])

    def full_like(self, x: Traced, value: float) -> np.ndarray:
        """Return one number, which broadcasting repeats."""
        return np.full((1,) * len(x.shape), value, x.dtype)

    def ones_like(self, x: Traced) -> np.ndarray:
        return self.full_like(x, 1)

    def zeros_like(self, x: Traced) -> Traced:
        # The result is concatenated, so it needs the full shape.
        return x * 0

    def isnan(self, x: Traced) -> None:
        """Exported graphs do not look for missing values."""

    def any(self, x: None) -> Any:
        return False


def export(
    estimator: SeriesEstimator,
    path: str | Path | None,
    dtype: str,
    compute: Callable[[Graph, Traced], None],
) -> Any:
    """Return a graph with the outputs that ``compute(graph, X)`` sets.

    ``compute`` receives ``X`` as (n_cases, n_channels, n_steps). If ``path`` is given, the
    graph is also written to it.
    """
    graph = new_graph(estimator, dtype)
    shape = estimator.n_channels_in_, estimator.n_features_in_
    X = graph.input("X", shape[1:] if shape[0] == 1 else shape, dtype)
    compute(graph, graph.reshape(X, (-1, *shape)))
    return graph.write(path)


def new_graph(estimator: BaseEstimator, dtype: str) -> Graph:
    """Return an empty graph for a fitted estimator."""
    with check.needs("to_onnx", "onnx"):
        import onnx
    check_is_fitted(estimator)
    known = dtype in ("float64", "float32")
    check.must(known, "dtype", "be 'float64' or 'float32'", repr(dtype))
    return Graph(onnx)
