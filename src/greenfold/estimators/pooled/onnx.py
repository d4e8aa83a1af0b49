"""Fitted pooled estimators as ONNX graphs, for use without greenfold (``greenfold[onnx]``).

The array route is run once on the arrays of `_traced`, which write down what is done to
them, so that the graph is the same computation. It holds for complete series of the
training length; filling gaps and series of other lengths would need a graph each.

Arrays that write down as an ONNX graph what is done to them.

They have the operators and functions that the array route of the pooled estimators uses,
and no others.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import array_api_compat as compat
import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._base.arrays import like
from ..._base.files import replacing
from .classifier import PooledReservoirClassifier
from .regressor import PooledReservoirRegressor

__all__ = ["to_onnx"]


#: Old enough for most runtimes, new enough for every operator used here.
_OPSET = 18
_IR_VERSION = 9


class Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.names: dict[Any, str] = {}

    def _type(self, dtype: np.dtype) -> int:
        return self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    def input(self, name: str, shape: list[Any], dtype: np.dtype) -> Traced:
        value = self.onnx.helper.make_tensor_value_info(name, self._type(dtype), shape)
        self.inputs.append(value)
        sizes = tuple(n if isinstance(n, int) else None for n in shape)
        return Traced(self, name, sizes, dtype)

    def output(self, name: str, value: Traced) -> None:
        self.nodes.append(
            self.onnx.helper.make_node("Identity", [self.named(value)], [name])
        )
        shape = ["n_cases" if n is None else n for n in value.shape]
        self.outputs.append(
            self.onnx.helper.make_tensor_value_info(name, self._type(value.dtype), shape)
        )

    def labels(self, name: str, classes: np.ndarray, index: Traced) -> None:
        """Output that looks up the classes."""
        if classes.dtype.kind in "UO":
            tensor = self.onnx.helper.make_tensor(
                "classes", self.onnx.TensorProto.STRING, classes.shape, classes.tolist()
            )
        else:
            wide = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
            tensor = self.onnx.numpy_helper.from_array(
                classes.astype(wide[classes.dtype.kind]), "classes"
            )
        self.constants.append(tensor)
        node = self.onnx.helper.make_node("Gather", ["classes", index.name], [name])
        self.nodes.append(node)
        self.outputs.append(
            self.onnx.helper.make_tensor_value_info(name, tensor.data_type, ["n_cases"])
        )

    def constant(self, value: Any) -> Traced:
        return Traced(self, "", np.shape(value), np.asarray(value).dtype, np.asarray(value))

    def named(self, value: Traced) -> str:
        """Name of a value; a constant that is used gets one, equal ones the same."""
        if value.value is None:
            return value.name
        array = np.ascontiguousarray(value.value).reshape(value.shape)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.names:
            self.names[key] = f"c{len(self.names)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array, self.names[key]))
        return self.names[key]

    def node(
        self,
        operator: str,
        *inputs: Any,
        shape: tuple[int | None, ...] | None = None,
        dtype: np.dtype | None = None,
        **attributes: Any,
    ) -> Traced:
        """Add an operation; shape and type are those of the first input unless given."""
        name = f"n{len(self.nodes)}"
        names = [self.named(one) for one in inputs]
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **attributes))
        sizes = inputs[0].shape if shape is None else shape
        return Traced(self, name, sizes, inputs[0].dtype if dtype is None else dtype)

    def cast(self, value: Traced, dtype: np.dtype) -> Traced:
        return self.node("Cast", value, dtype=dtype, to=self._type(dtype))

    def model(self) -> Any:
        helper = self.onnx.helper
        graph = helper.make_graph(
            self.nodes, "greenfold", self.inputs, self.outputs, self.constants
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="greenfold",
        )


#: What is computed at once where both sides are known.
_KNOWN: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Equal": np.equal,
    "And": np.logical_and,
    "Max": np.maximum,
    "Min": np.minimum,
}


def _broadcast(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Shape of an elementwise result; None is the number of cases."""
    width = max(len(a), len(b))
    a, b = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))


class Traced:
    """An array that is a name in a graph. Its first axis may be of unknown length.

    What is known while the graph is built has a ``value``, and is computed there and then.
    """

    device = "cpu"

    def __init__(
        self,
        graph: Graph,
        name: str,
        shape: tuple[Any, ...],
        dtype: np.dtype,
        value: np.ndarray | None = None,
    ) -> None:
        self.graph, self.name, self.shape = graph, name, shape
        self.dtype, self.value = np.dtype(dtype), value

    def __array_namespace__(self, api_version: str | None = None) -> _Namespace:
        return _Namespace(self.graph)

    def _wrap(self, other: Any) -> Traced:
        if isinstance(other, Traced):
            return other
        return self.graph.constant(np.asarray(other, dtype=self.dtype))

    def _combine(self, operator: str, a: Any, b: Any, dtype: Any = None) -> Traced:
        a, b = self._wrap(a), self._wrap(b)
        if a.value is not None and b.value is not None:
            return self.graph.constant(_KNOWN[operator](a.value, b.value))
        return self.graph.node(
            operator, a, b, shape=_broadcast(a.shape, b.shape), dtype=dtype or a.dtype
        )

    def __add__(self, other: Any) -> Traced:
        return self._combine("Add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Traced:
        return self._combine("Sub", self, other)

    def __rsub__(self, other: Any) -> Traced:
        return self._combine("Sub", other, self)

    def __mul__(self, other: Any) -> Traced:
        return self._combine("Mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Traced:
        return self._combine("Div", self, other)

    def __rtruediv__(self, other: Any) -> Traced:
        return self._combine("Div", other, self)

    def __neg__(self) -> Traced:
        return self.graph.node("Neg", self)

    def __gt__(self, other: Any) -> Traced:
        return self._combine("Greater", self, other, np.dtype(bool))

    def __ge__(self, other: Any) -> Traced:
        return self._combine("GreaterOrEqual", self, other, np.dtype(bool))

    def __lt__(self, other: Any) -> Traced:
        return self._combine("Less", self, other, np.dtype(bool))

    def __le__(self, other: Any) -> Traced:
        return self._combine("LessOrEqual", self, other, np.dtype(bool))

    def __eq__(self, other: Any) -> Any:
        return self._combine("Equal", self, other, np.dtype(bool))

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Traced:
        return self._combine("And", self, other)

    def __matmul__(self, other: Any) -> Traced:
        other = self._wrap(other)
        width = max(len(self.shape), len(other.shape))
        lead = _broadcast(self.shape[:-2], other.shape[:-2])
        shape = (*lead, self.shape[-2], other.shape[-1])
        assert len(shape) == width
        return self.graph.node("MatMul", self, other, shape=shape)

    def __getitem__(self, key: Any) -> Traced:
        """Slices of step one, integers, None and one ellipsis."""
        if self.value is not None:
            return self.graph.constant(self.value[key])
        key = key if isinstance(key, tuple) else (key,)
        used = sum(k is not None and k is not Ellipsis for k in key)
        if Ellipsis not in key:
            key = (*key, Ellipsis)
        at = key.index(Ellipsis)
        fill = (slice(None),) * (len(self.shape) - used)
        key = (*key[:at], *fill, *key[at + 1 :])
        found, axis = self, 0
        dropped, added = [], []
        for place, k in enumerate(key):
            if k is None:
                added.append(place - len(dropped))
                continue
            if isinstance(k, int):
                found = found._cut(axis, k, k + 1 if k != -1 else None)
                dropped.append(axis)
            elif k != slice(None):
                found = found._cut(axis, k.start or 0, k.stop)
            axis += 1
        if dropped:
            shape = tuple(n for i, n in enumerate(found.shape) if i not in dropped)
            axes = self.graph.constant(np.array(dropped))
            found = self.graph.node("Squeeze", found, axes, shape=shape)
        if added:
            shape = list(found.shape)
            for i in added:
                shape.insert(i, 1)
            axes = self.graph.constant(np.array(added))
            found = self.graph.node("Unsqueeze", found, axes, shape=tuple(shape))
        return found

    def _cut(self, axis: int, start: int, stop: int | None) -> Traced:
        length = self.shape[axis]
        first, last, _ = slice(start, stop).indices(length)
        shape = (*self.shape[:axis], last - first, *self.shape[axis + 1 :])
        bounds = (self.graph.constant(np.array([n])) for n in (first, last, axis))
        return self.graph.node("Slice", self, *bounds, shape=shape)


class _Namespace:
    """The functions that the array route calls, on `Traced`."""

    __name__ = "greenfold.estimators.pooled.onnx"
    float32, float64, bool = np.dtype("float32"), np.dtype("float64"), np.dtype("bool")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def asarray(self, value: Any, device: Any = None) -> Traced:
        return self.graph.constant(value)

    def arange(self, n: int, *, dtype: Any, device: Any = None) -> Traced:
        return self.graph.constant(np.arange(n, dtype=dtype))

    def astype(self, x: Traced, dtype: Any) -> Traced:
        if x.value is not None:
            return self.graph.constant(x.value.astype(dtype))
        return x if x.dtype == dtype else self.graph.cast(x, np.dtype(dtype))

    def reshape(self, x: Traced, shape: tuple[int, ...]) -> Traced:
        if x.value is not None:
            return self.graph.constant(x.value.reshape(shape))
        target = self.graph.constant(np.array(shape))
        known = None not in x.shape
        if -1 in shape:
            rest = math.prod(n for n in shape if n != -1)
            whole = math.prod(x.shape) // rest if known else None
            shape = tuple(whole if n == -1 else n for n in shape)  # type: ignore[misc]
        return self.graph.node("Reshape", x, target, shape=shape)

    def permute_dims(self, x: Traced, axes: tuple[int, ...]) -> Traced:
        shape = tuple(x.shape[i] for i in axes)
        return self.graph.node("Transpose", x, shape=shape, perm=list(axes))

    def concat(self, arrays: list[Traced], axis: int = 0) -> Traced:
        first = arrays[0]
        length = sum(one.shape[axis] for one in arrays)
        shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
        return self.graph.node("Concat", *arrays, shape=shape, axis=axis)

    def stack(self, arrays: list[Traced], axis: int = 0) -> Traced:
        if all(one.value is not None for one in arrays):
            return self.graph.constant(np.stack([one.value for one in arrays], axis))  # type: ignore[misc]
        axes = self.graph.constant(np.array([axis]))
        wide = []
        for one in arrays:
            shape = (*one.shape[:axis], 1, *one.shape[axis:])
            wide.append(self.graph.node("Unsqueeze", one, axes, shape=shape))
        return self.concat(wide, axis)

    def _reduce(self, operator: str, x: Traced, axis: int, keepdims: Any) -> Traced:
        kept = (1,) if keepdims else ()
        shape = (*x.shape[:axis], *kept, *x.shape[axis + 1 :])
        axes = self.graph.constant(np.array([axis]))
        return self.graph.node(operator, x, axes, shape=shape, keepdims=int(keepdims))

    def sum(self, x: Traced, *, axis: int, keepdims: Any = False) -> Traced:
        return self._reduce("ReduceSum", x, axis, keepdims)

    def mean(self, x: Traced, *, axis: int, keepdims: Any = False) -> Traced:
        return self._reduce("ReduceMean", x, axis, keepdims)

    def max(self, x: Traced, *, axis: int, keepdims: Any = False) -> Traced:
        return self._reduce("ReduceMax", x, axis, keepdims)

    def min(self, x: Traced, *, axis: int, keepdims: Any = False) -> Traced:
        return self._reduce("ReduceMin", x, axis, keepdims)

    def maximum(self, a: Traced, b: Traced) -> Traced:
        return a._combine("Max", a, b)

    def minimum(self, a: Traced, b: Traced) -> Traced:
        return a._combine("Min", a, b)

    def where(self, condition: Traced, a: Traced, b: Traced) -> Traced:
        shape = _broadcast(condition.shape, _broadcast(a.shape, b.shape))
        return self.graph.node("Where", condition, a, b, shape=shape, dtype=a.dtype)

    def sqrt(self, x: Traced) -> Traced:
        return self.graph.node("Sqrt", x)

    def abs(self, x: Traced) -> Traced:
        return self.graph.node("Abs", x)

    def full_like(self, x: Traced, value: float) -> Traced:
        """One number, which is repeated where it is used."""
        return self.graph.constant(np.full((1,) * len(x.shape), value, x.dtype))

    def ones_like(self, x: Traced) -> Traced:
        return self.full_like(x, 1)

    def zeros_like(self, x: Traced) -> Traced:
        # Concatenated, hence of the full shape.
        return x * 0

    def isnan(self, x: Traced) -> None:
        """Missing values are not looked for."""

    def any(self, x: None) -> Any:
        return False


def to_onnx(
    estimator: PooledReservoirClassifier | PooledReservoirRegressor,
    path: str | Path | None = None,
    *,
    dtype: str = "float64",
) -> Any:
    """A fitted classifier or regressor as an ONNX graph.

    Parameters
    ----------
    estimator : PooledReservoirClassifier or PooledReservoirRegressor
        Fitted on series of equal length.
    path : str or Path, optional
        Also write the graph there.
    dtype : {"float64", "float32"}
        Of the input. Features are computed in single precision in any case.

    Returns
    -------
    onnx.ModelProto
        Input ``X``: (n_cases, n_steps), or (n_cases, n_channels, n_steps) for several
        channels, without missing values. Outputs of a classifier: ``decision`` (n_cases,)
        or (n_cases, n_classes), ``label`` (n_cases,) and ``probability`` (n_cases,
        n_classes); of a regressor: ``prediction`` (n_cases,) or (n_cases, n_targets).

    Notes
    -----
    onnxruntime agrees with the estimator but for readings within rounding of a threshold,
    which count or do not: some 1e-3 of the largest score.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "to_onnx needs the onnx package; install it with: pip install greenfold[onnx]"
        ) from error
    check_is_fitted(estimator)
    if dtype not in ("float64", "float32"):
        raise ValueError(f"`dtype` must be 'float64' or 'float32'; got {dtype!r}.")
    if estimator._any_length:
        raise ValueError(
            f"The {type(estimator).__name__} was fitted on series of unequal length, and a "
            "graph has one; fit it on series of equal length to export it."
        )
    graph = Graph(onnx)
    n_channels, n_steps = estimator.n_channels_in_, estimator.n_features_in_
    given = ["n_cases", n_steps] if n_channels == 1 else ["n_cases", n_channels, n_steps]
    X = graph.input("X", given, np.dtype(dtype))
    xp = compat.array_namespace(X)
    made, head = estimator.map_, estimator.head_
    x = made.standardise(xp.reshape(X, (-1, n_channels, n_steps)))
    scores: Any = like(head.intercept, x)
    for scale, (mean, W) in enumerate(zip(head.means, head.coefficients, strict=True)):
        flat = xp.reshape(made.pool(x, scale), (-1, len(mean))) - like(mean, x)
        wide = like(W.astype(np.float64), x)
        scores = scores + xp.astype(flat, xp.float64) @ wide
    if isinstance(estimator, PooledReservoirClassifier):
        _decide(graph, scores, estimator)
    else:
        graph.output("prediction", scores[:, 0] if estimator._flat else scores)
    model = graph.model()
    onnx.checker.check_model(model)
    if path is not None:
        with replacing(Path(path)) as stream:
            stream.write(model.SerializeToString())
    return model


def _decide(graph: Graph, scores: Any, classifier: PooledReservoirClassifier) -> None:
    """Decision, label and probability from scores."""
    xp = compat.array_namespace(scores)
    two = len(classifier.classes_) == 2
    graph.output("decision", scores[:, 0] if two else scores)
    if two:
        # A tie is the first class, as everywhere.
        index = graph.cast(scores[:, 0] > 0, np.dtype(np.int64))
    else:
        index = graph.node("ArgMax", scores, axis=1, keepdims=0, dtype=np.dtype(np.int64))
    graph.labels("label", classifier.classes_, index)
    each = xp.concat([-scores, scores], axis=1) if two else scores
    graph.output("probability", graph.node("Softmax", each * classifier.slope_, axis=1))
