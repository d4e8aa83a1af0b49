"""A fitted classifier as plain arrays or as an ONNX graph, for use without greenfold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._base.arrays import like
from ..._base.files import replacing
from ..onnx import Graph, decide, export
from .classifier import ReservoirClassifier


def to_numpy(
    classifier: ReservoirClassifier, path: str | Path | None = None
) -> dict[str, np.ndarray]:
    """Export the collapsed kernels as plain arrays.

    The classifier must be fitted, with order 0 or with order 1 and a quadratic gain. If you
    pass a ``path``, the arrays are also written to it, an ``.npz`` file without pickles.

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

    With two classes, the prediction is ``classes[1]`` if ``decision[0] > 0``, else
    ``classes[0]``. With more, it is ``classes[argmax(decision)]``.

    For probabilities, let d be 0 for the predicted class. For any other class, d is slope
    times the distance between the two decision values (with two classes, slope ·
    abs(decision[0])). The probabilities are proportional to (1 + d)^(−sureness), or to
    exp(−d) if sureness is NaN because no series could be held out to calibrate it.

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
    check_is_fitted(classifier)
    heads = classifier.heads_
    kernels: list[Any] = [head.kernel for head in heads]
    if kernels[0] is None:
        why = f"of order {classifier.order} has terms beyond the square of the series, "
        why += "which plain kernels cannot hold"
        if classifier.order == "exact":
            why = "of order 'exact' integrates its network and has no kernels"
        fix = "to export a classifier, fit it with order 0 or 1 and a quadratic gain"
        raise ValueError(f"The classifier {why}; {fix}.")
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
        with replacing(Path(path)) as stream:
            np.savez(stream, allow_pickle=False, **made)  # pyright: ignore[reportArgumentType]
    return made


def to_onnx(
    classifier: ReservoirClassifier,
    path: str | Path | None = None,
    *,
    dtype: str = "float64",
) -> Any:
    """Export the collapsed kernels as an ONNX graph (needs ``greenfold[onnx]``).

    The classifier must be fitted, with an order that `to_numpy` accepts. If you pass a
    ``path``, the graph is also written to it. ``dtype``, "float64" or "float32", is the
    type of the input and the arithmetic.

    Returns
    -------
    onnx.ModelProto
        Input ``X``: (n_cases, n_steps), or (n_cases, n_channels, n_steps) for several
        channels. If the classifier was fitted on series of unequal length, every series
        ends at the last step, and NaN fills the steps before a shorter series. Outputs:
        ``decision`` (n_cases,) or (n_cases, n_classes) as in
        `ReservoirClassifier.decision_function`, ``label`` (n_cases,) and ``probability``
        (n_cases, n_classes).

    Notes
    -----
    onnxruntime agrees with `decision_function` within 1e-9 (float64) or 1e-4 (float32) of
    the largest decision value.
    """
    return export(classifier, path, dtype, lambda graph, X: _compute(graph, X, classifier))


def _compute(graph: Graph, X: Any, classifier: ReservoirClassifier) -> None:
    k = to_numpy(classifier)
    n_heads, size = len(k["linear"]), k["linear"][0].size
    flat: Any = graph.reshape(X, (-1, size))
    begun = None
    if classifier._any_length:
        # NaN marks the time before a series begins.
        missing = graph.node("IsNaN", flat, result=flat.array.astype(bool))
        begun = graph.cast(~missing, flat.dtype)
        flat = graph.where(missing, graph.full_like(flat, 0), flat)

    def constant(value: Any) -> Any:
        return like(np.asarray(value), flat, flat.dtype)

    linear = (k["linear"] * k["scale"][:, None, None]).reshape(n_heads, size)
    centre = k["centre"].reshape(n_heads, size)
    if "quadratic" not in k:
        weights, origin = k["coupling"] @ linear, k["coupling"] @ (linear * centre)
        shift = constant(origin.sum(1))
        if begun is not None:
            shift = begun @ constant(origin.T)
        score = flat @ constant(weights.T) - (shift + constant(k["threshold"]))
    else:
        values = []
        for one, square, middle, scale in zip(
            linear, k["quadratic"], centre, k["scale"], strict=True
        ):
            moved = flat - constant(middle[None])
            moved = moved if begun is None else moved * begun
            # The constants include the scale, because onnxruntime would fuse a separate
            # product with it into the next product, in single precision.
            C = constant(scale**2 * square.reshape(size, size))
            squares = graph.sum((moved @ C) * moved, axis=1, keepdims=True)
            values.append(moved @ constant(one[:, None]) + squares)
        coupled = graph.concat(values, axis=1) @ constant(k["coupling"].T)
        score = coupled - constant(k["threshold"])
    odds = score * float(k["slope"])
    if len(k["classes"]) == 2:
        odds = graph.concat([odds * 0, odds], axis=1)
    if np.isfinite(k["sureness"]):
        below = graph.max(odds, axis=1, keepdims=True) - odds
        odds = graph.log(below + 1) * -float(k["sureness"])
    decide(graph, score, odds, k["classes"])
