"""A fitted classifier as plain arrays or as an ONNX graph, for use without greenfold."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._base.files import replacing
from .classifier import ReservoirClassifier
from .heads import Head

__all__ = ["to_numpy", "to_onnx"]

#: Old enough for most runtimes, new enough for every operator used here.
_OPSET = 18
_IR_VERSION = 9


def to_numpy(
    classifier: ReservoirClassifier, path: str | Path | None = None
) -> dict[str, np.ndarray]:
    """The collapsed kernels as plain arrays.

    Parameters
    ----------
    classifier : ReservoirClassifier
        Fitted, of an order that plain kernels hold (0; 1 with a quadratic gain).
    path : str or Path, optional
        Also write the arrays there, as an ``.npz`` file without pickles.

    Returns
    -------
    dict of ndarray
        ``linear`` (n_readouts, n_channels, n_steps), ``quadratic`` (n_readouts,
        n_channels, n_steps, n_channels, n_steps) for order 1, ``centre`` (n_readouts,
        n_channels, n_steps), ``scale`` (n_readouts,), ``coupling`` (n_scores, n_readouts),
        ``threshold`` (n_scores,), ``slope`` (), ``sureness`` (), ``classes``
        (n_classes,).

    Notes
    -----
    For a series x of shape (n_channels, n_steps) and readout i::

        w = (x − centre[i]) · scale[i]              (zero before a short series begins)
        z[i] = Σ linear[i] · w  +  Σ Σ w · quadratic[i] · w
        decision = coupling @ z − threshold

    Two classes: ``classes[1]`` where ``decision[0] > 0``, else ``classes[0]``. More:
    ``classes[argmax(decision)]``. For probabilities let d be 0 for the class chosen and
    slope times the distance of the decision values for another (two classes: slope ·
    abs(decision[0])): they are in proportion to (1 + d)^(−sureness), or to exp(−d) where
    sureness is NaN because no series could be held out to calibrate it.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold.estimators.margin import ReservoirClassifier
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.margin import to_numpy
    >>> X, y = synthetic_heartbeats(60, rng=0)
    >>> classifier = ReservoirClassifier(eta=10.0, random_state=0).fit(X, y)
    >>> k = to_numpy(classifier)
    >>> z = (k["linear"][0] * (X[:, None] - k["centre"][0]) * k["scale"][0]).sum((1, 2))
    >>> bool(np.allclose(z - k["threshold"][0], classifier.decision_function(X)))
    True
    """
    heads = _heads(classifier)
    kernels: list[Any] = [head.kernel for head in heads]
    classes = classifier.classes_
    sureness = classifier.decision_.sureness
    made = {
        "linear": np.stack([kernel.linear for kernel in kernels]),
        "centre": np.stack([head.centre for head in heads]),
        "scale": np.array([head.scale for head in heads]),
        "coupling": classifier.decision_.coupling.copy(),
        "threshold": classifier.decision_.threshold.copy(),
        "slope": np.array(classifier.decision_.slope),
        "sureness": np.array(np.nan if sureness is None else sureness),
        "classes": classes.astype(str) if classes.dtype.kind == "O" else classes.copy(),
    }
    if kernels[0].quadratic is not None:
        made["quadratic"] = np.stack([kernel.quadratic for kernel in kernels])
    if path is not None:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **made)  # pyright: ignore[reportArgumentType]
        with replacing(Path(path)) as stream:
            stream.write(buffer.getvalue())
    return made


def _heads(classifier: ReservoirClassifier) -> list[Head]:
    check_is_fitted(classifier)
    if classifier.heads_[0].kernel is None:
        if classifier.order == "exact":
            raise ValueError(
                "The classifier of order 'exact' integrates its network and has no "
                "kernels; fit one of order 0 or 1 with a quadratic gain to export it."
            )
        raise ValueError(
            f"The classifier of order {classifier.order} has terms beyond the square of "
            "the series, which plain kernels do not hold; fit one of order 0 or 1 with a "
            "quadratic gain to export it."
        )
    return classifier.heads_


def to_onnx(
    classifier: ReservoirClassifier,
    path: str | Path | None = None,
    *,
    dtype: str = "float64",
) -> Any:
    """The collapsed kernels as an ONNX graph (needs ``greenfold[onnx]``).

    Parameters
    ----------
    classifier : ReservoirClassifier
        Fitted, of an order that plain kernels hold.
    path : str or Path, optional
        Also write the graph there.
    dtype : {"float64", "float32"}
        Of the input and of the arithmetic.

    Returns
    -------
    onnx.ModelProto
        Input ``X``: (n_cases, n_steps), or (n_cases, n_channels, n_steps) for several
        channels. For a classifier of unequal lengths, series end at the last step and
        NaN marks what comes before a short one. Outputs: ``decision`` (n_cases,) or
        (n_cases, n_classes) as `ReservoirClassifier.decision_function` gives it,
        ``label`` (n_cases,) and ``probability`` (n_cases, n_classes).

    Notes
    -----
    onnxruntime agrees with `decision_function` within 1e-9 (float64) or 1e-4 (float32) of
    the largest decision value.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "to_onnx needs the onnx package; install it with: pip install greenfold[onnx]"
        ) from error
    if dtype not in ("float64", "float32"):
        raise ValueError(f"`dtype` must be 'float64' or 'float32'; got {dtype!r}.")
    graph = _Graph(onnx, np.dtype(dtype))
    _write_nodes(graph, classifier, to_numpy(classifier))
    model = graph.model(classifier)
    onnx.checker.check_model(model)
    if path is not None:
        with replacing(Path(path)) as stream:
            stream.write(model.SerializeToString())
    return model


class _Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self, onnx: Any, dtype: np.dtype) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        return self._store(self.onnx.numpy_helper.from_array(array), "c")

    def labels(self, classes: np.ndarray) -> str:
        if classes.dtype.kind == "U":
            tensor = self.onnx.helper.make_tensor(
                "", self.onnx.TensorProto.STRING, classes.shape, classes.tolist()
            )
        else:
            wide = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
            tensor = self.onnx.numpy_helper.from_array(
                classes.astype(wide[classes.dtype.kind])
            )
        self.label_type = tensor.data_type
        return self._store(tensor, "classes")

    def _store(self, tensor: Any, prefix: str) -> str:
        tensor.name = f"{prefix}{len(self.constants)}"
        self.constants.append(tensor)
        return tensor.name

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or f"n{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), [output], **attributes)
        )
        return output

    def model(self, classifier: ReservoirClassifier) -> Any:
        helper, real = self.onnx.helper, self.onnx.helper.np_dtype_to_tensor_dtype
        n_classes = len(classifier.classes_)
        channels = [] if classifier.n_channels_in_ == 1 else [classifier.n_channels_in_]
        shape = ["n_cases", *channels, classifier.n_features_in_]
        scores = ["n_cases"] if n_classes == 2 else ["n_cases", n_classes]
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "greenfold",
            [value("X", real(self.dtype), shape)],
            [
                value("decision", real(self.dtype), scores),
                value("label", self.label_type, ["n_cases"]),
                value("probability", real(self.dtype), ["n_cases", n_classes]),
            ],
            self.constants,
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="greenfold",
        )


def _write_nodes(
    graph: _Graph, classifier: ReservoirClassifier, k: dict[str, np.ndarray]
) -> None:
    n_heads = len(k["linear"])
    size = k["linear"][0].size
    flat = graph.node("Reshape", "X", graph.constant(np.array([-1, size])))
    begun = None
    if classifier._any_length:
        # NaN stands for the time before a series begins.
        missing = graph.node("IsNaN", flat)
        flat = graph.node("Where", missing, graph.constant(0.0), flat)
        present = graph.node("Not", missing)
        begun = graph.node("Cast", present, to=_code(graph))
    linear = (k["linear"] * k["scale"][:, None, None]).reshape(n_heads, size)
    centre = k["centre"].reshape(n_heads, size)
    if "quadratic" not in k:
        weights, origin = k["coupling"] @ linear, k["coupling"] @ (linear * centre)
        score = graph.node("MatMul", flat, graph.constant(weights.T))
        if begun is None:
            shift = graph.constant(origin.sum(1) + k["threshold"])
        else:
            moved = graph.node("MatMul", begun, graph.constant(origin.T))
            shift = graph.node("Add", moved, graph.constant(k["threshold"]))
        score = graph.node("Sub", score, shift)
    else:
        score = _quadratic_score(graph, k, flat, begun)
    odds = graph.node("Mul", score, graph.constant(k["slope"]))
    labels = graph.labels(k["classes"])
    if len(k["classes"]) == 2:
        decision = graph.node("Squeeze", score, graph.constant([1]), name="decision")
        positive = graph.node("Greater", decision, graph.constant(0.0))
        index = graph.node("Cast", positive, to=graph.onnx.TensorProto.INT64)
        even = graph.node("Mul", odds, graph.constant(0.0))
        odds = graph.node("Concat", even, odds, axis=1)
    else:
        decision = graph.node("Identity", score, name="decision")
        index = graph.node("ArgMax", decision, axis=1, keepdims=0)
    if np.isfinite(k["sureness"]):
        highest = graph.node("ReduceMax", odds, graph.constant([1]), keepdims=1)
        below = graph.node("Sub", highest, odds)
        wide = graph.node("Log", graph.node("Add", below, graph.constant(1.0)))
        odds = graph.node("Mul", wide, graph.constant(-k["sureness"]))
    graph.node("Softmax", odds, axis=1, name="probability")
    graph.node("Gather", labels, index, name="label")


def _quadratic_score(
    graph: _Graph, k: dict[str, np.ndarray], flat: str, begun: str | None
) -> str:
    readouts = []
    for linear, quadratic, centre, scale in zip(
        k["linear"], k["quadratic"], k["centre"], k["scale"], strict=True
    ):
        # The scale is in the constants: onnxruntime would fuse a product with it into the
        # next one, in single precision.
        moved = graph.node("Sub", flat, graph.constant(centre.reshape(1, -1)))
        if begun is not None:
            moved = graph.node("Mul", moved, begun)
        C = graph.constant(scale**2 * quadratic.reshape(linear.size, linear.size))
        squares = graph.node("Mul", graph.node("MatMul", moved, C), moved)
        z = graph.node("ReduceSum", squares, graph.constant([1]), keepdims=1)
        first = graph.node("MatMul", moved, graph.constant(scale * linear.reshape(-1, 1)))
        readouts.append(graph.node("Add", first, z))
    stacked = graph.node("Concat", *readouts, axis=1)
    coupled = graph.node("MatMul", stacked, graph.constant(k["coupling"].T))
    return graph.node("Sub", coupled, graph.constant(k["threshold"]))


def _code(graph: _Graph) -> int:
    return graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
