"""Fitted pooled estimators as ONNX graphs, for use without greenfold (``greenfold[onnx]``).

The array route is run once on the arrays of `_traced`, which write down what is done to
them, so that the graph is the same computation. It holds for complete series of the
training length; filling gaps and series of other lengths would need a graph each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import array_api_compat as compat
import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arrays import like
from .._files import replacing
from ._traced import Graph
from .classifier import PooledReservoirClassifier
from .regressor import PooledReservoirRegressor

__all__ = ["to_onnx"]


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
