"""What a fitted classifier is made of, for a file that holds numbers, not code.

How the file is made and checked is said in `greenfold._base.archive`. The state from which
`partial_fit` goes on is in `stream_file`.

What a file keeps of a stream, so that `partial_fit` goes on from it.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..._base import archive as _archive
from ..._base.archive import Content, ModelFileError, refuse
from ...analysis.eta import EtaChoice
from ...math.covariances import Factored
from ...math.decisions import Decision
from ...networks.reservoir import pack_reservoir, unpack_reservoir
from ...stimuli.base import Series
from ...stimuli.class_moments import ClassMoments
from ...systems import Network
from ...unfolding.kernel import Kernel
from ...validity import Validity
from .classifier import ReservoirClassifier, check_parameters
from .heads import Head
from .stream import ClassStream, StreamSample

__all__ = ["ModelFileError", "load", "save"]


def pack(
    classifier: ReservoirClassifier, arrays: dict[str, np.ndarray]
) -> dict[str, Any] | None:
    """The stream in JSON and ``arrays``; None where the classifier has none."""
    stream: ClassStream | None = getattr(classifier, "_stream", None)
    if stream is None:
        return None
    sample = stream.sample
    for name in ("values", "codes", "weights", "keys", "seen"):
        arrays[f"sample_{name}"] = getattr(sample, name)
    if not sample.is_whole:
        # Else the moments are those of the sample, and need no room.
        arrays["stream_counts"] = stream.counts
        arrays["stream_means"] = np.stack([part.mean for part in stream.moments])
        for c, part in enumerate(stream.moments):
            if isinstance(part.scatter, Factored):
                arrays[f"stream_factor_{c}"] = part.scatter.factor
            else:
                upper = np.triu_indices(len(part.mean))
                arrays[f"stream_scatter_{c}"] = part.scatter[upper]
    return {
        "factored": [isinstance(part.scatter, Factored) for part in stream.moments],
        "seed": sample.seed,
        "chosen_at": stream.chosen_at,
        "exponent": classifier._exponent,
    }


def unpack(content: Content, classifier: ReservoirClassifier) -> None:
    """Give a classifier the stream of its file."""
    described = content.described["stream"]
    n_classes = len(classifier.classes_)
    shape = classifier.n_channels_in_, classifier.n_features_in_
    seed = int(described["seed"])
    values = content.numbers("sample_values", (None, *shape))
    size = (len(values),)
    codes, seen = (
        content.numbers(name, wanted)
        for name, wanted in (("sample_codes", size), ("sample_seen", (n_classes,)))
    )
    if codes.dtype.kind not in "iu" or not np.isin(codes, np.arange(n_classes)).all():
        refuse("its sample of series has classes that it does not know.")
    weights = content.numbers("sample_weights", size)
    keys = content.numbers("sample_keys", size)
    kept = np.bincount(codes, minlength=n_classes)
    if seed < 0 or (weights <= 0).any() or (kept > seen).any() or not len(values):
        refuse("its sample of series does not fit together.")
    sample = StreamSample(values, codes, weights, keys, seen, seed)
    if sample.is_whole:
        stream = ClassStream.empty(n_classes, shape, seed)
        stream.add(Series(values), codes, weights)
        stream.sample = sample
    else:
        stream = ClassStream(_unpack_moments(content, n_classes, shape), sample)
    stream.chosen_at = int(described["chosen_at"])
    classifier._stream, classifier._fold_seed = stream, seed
    classifier._exponent = int(described["exponent"])
    solved = isinstance(classifier.input_projection, str)
    solved = solved and classifier.input_projection != "random"
    classifier._kept = None if solved else classifier.heads_[0].u


def _unpack_moments(
    content: Content, n_classes: int, shape: tuple[int, int]
) -> list[ClassMoments]:
    size = shape[0] * shape[1]
    counts = content.numbers("stream_counts", (n_classes,))
    if (counts < 0).any() or not counts.any():
        refuse("its class moments have negative counts.")
    means = content.numbers("stream_means", (n_classes, size))
    factored = content.described["stream"]["factored"]
    found = []
    for c, (count, mean) in enumerate(zip(counts.tolist(), means, strict=True)):
        if factored[c]:
            scatter = Factored(content.numbers(f"stream_factor_{c}", (size, None)))
        else:
            half = content.numbers(f"stream_scatter_{c}", (size * (size + 1) // 2,))
            upper = np.triu_indices(size)
            scatter = np.zeros((size, size))
            scatter[upper] = half
            scatter.T[upper] = half
        found.append(ClassMoments(count, mean, scatter))
    return found


def save(
    classifier: ReservoirClassifier, path: str | Path, *, resumable: bool = True
) -> None:
    """Write a fitted classifier.

    Parameters
    ----------
    classifier : ReservoirClassifier
    path : str or Path
        Replaced if it exists, in one step at the end.
    resumable : bool
        Keep what `partial_fit` needs to go on: class covariances and a sample of the
        training series.

    Notes
    -----
    A ``random_state`` that is a generator is not kept.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(classifier)
    arrays: dict[str, np.ndarray] = {}
    described = _describe(classifier, arrays)
    if resumable:
        described["stream"] = pack(classifier, arrays)
    _archive.write(path, "classifier", described, arrays)


def load(path: str | Path) -> ReservoirClassifier:
    """Read a classifier; a file of another kind is refused.

    `greenfold.load` reads every kind.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ReservoirClassifier
        Fitted: predicts exactly as the saved one did.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another kind or of a newer version.
    FileNotFoundError
        If there is no such file.
    """
    return _archive.reading(path, unpack_classifier)


# Writing


def _describe(
    classifier: ReservoirClassifier, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Everything but the arrays, which are put into ``arrays``."""
    heads: list[Head] = classifier.heads_
    decision: Decision = classifier.decision_
    scores = classifier.eta_scores_
    classes = classifier.classes_
    if classes.dtype.kind == "O":
        if not all(isinstance(label, str) for label in classes):
            raise TypeError(
                "labels must be numbers or text to be saved; got "
                f"{sorted({type(label).__name__ for label in classes})}."
            )
        arrays["classes"] = classes.astype(str)
    else:
        arrays["classes"] = classes
    for name in ("centre", "u", "v"):
        arrays[name] = np.stack([getattr(head, name) for head in heads])
    for name in ("scale", "soft_margin", "bound", "n_iter"):
        arrays[name] = np.array([getattr(head, name) for head in heads])
    if heads[0].n_sub is not None:
        arrays["n_sub"] = np.array([head.n_sub for head in heads])
    kernels = [head.kernel for head in heads if head.kernel is not None]
    if kernels:
        arrays["kernel_linear"] = np.stack([kernel.linear for kernel in kernels])
        quadratic = [k.quadratic for k in kernels if k.quadratic is not None]
        if quadratic:
            arrays["kernel_quadratic"] = np.stack(quadratic)
    arrays["coupling"], arrays["threshold"] = decision.coupling, decision.threshold
    if scores is not None:
        arrays["etas"], arrays["eta_score"] = scores.etas, scores.score
        arrays["eta_accuracy"] = scores.accuracy
    names = getattr(classifier, "feature_names_in_", None)
    return {
        "parameters": {
            name: _pack(name, value, arrays)
            for name, value in classifier.get_params(deep=False).items()
        },
        "reservoir": pack_reservoir(classifier.reservoir_, arrays, "network"),
        "eta": classifier.eta_,
        "slope": decision.slope,
        "sureness": classifier.calibration_,
        "shared_bound": classifier.shared_bound_,
        "n_channels": classifier.n_channels_in_,
        "n_steps": classifier.n_features_in_,
        "any_length": classifier._any_length,
        "feature_names": None if names is None else list(names),
        "classes_are_objects": classes.dtype.kind == "O",
        "validity": [None if h.validity is None else asdict(h.validity) for h in heads],
    }


def _pack(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A parameter in JSON; arrays go elsewhere under its name."""
    if isinstance(value, Network):
        return {"reservoir": pack_reservoir(value, arrays, f"parameter_{name}")}
    if isinstance(value, dict):
        pairs = [[_plain(k), _plain(v)] for k, v in value.items()]
        return {"pairs": pairs}
    if name == "random_state" and not isinstance(value, int | np.integer):
        return None
    if value is None or isinstance(value, str | bool | int | float | np.generic):
        return _plain(value)
    dense = value.toarray() if hasattr(value, "toarray") else value
    arrays[f"parameter_{name}"] = np.asarray(dense, dtype=np.float64)
    return {"array": f"parameter_{name}"}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# Reading


def unpack_classifier(content: Content) -> ReservoirClassifier:
    """The classifier in a file."""
    if content.kind != "classifier":
        refuse(f"it holds a {content.kind}, not a classifier.")
    described, arrays = content.described, content.arrays
    given = {
        name: _unpack(name, value, arrays)
        for name, value in described["parameters"].items()
    }
    classifier = ReservoirClassifier(**given)
    check_parameters(classifier)
    classes = arrays["classes"]
    if classes.ndim != 1 or len(np.unique(classes)) != len(classes) or len(classes) < 2:
        refuse("its classes are not distinct labels.")
    classifier.classes_ = (
        classes.astype(object) if described["classes_are_objects"] else classes
    )
    shape = int(described["n_channels"]), int(described["n_steps"])
    classifier.n_channels_in_, classifier.n_features_in_ = shape
    classifier._any_length = bool(described["any_length"])
    if described["feature_names"] is not None:
        names = np.array([str(n) for n in described["feature_names"]], dtype=object)
        classifier.feature_names_in_ = names  # pyright: ignore[reportAttributeAccessIssue]
    classifier.reservoir_ = unpack_reservoir(described["reservoir"], arrays)
    classifier.eta_ = float(described["eta"])
    classifier.eta_scores_ = _unpack_scores(content, classifier.eta_)
    heads = _unpack_heads(content, classifier)
    coupling = content.numbers("coupling", (len(heads), len(heads)))
    threshold = content.numbers("threshold", (len(heads),))
    # Files of older versions have the calibration, if any, in their slope.
    sureness = described.get("sureness")
    if sureness is not None and not 0 < float(sureness) < np.inf:
        refuse("its calibration is not a positive number.")
    classifier.calibration_ = None if sureness is None else float(sureness)
    decision = Decision(
        coupling, threshold, float(described["slope"]), classifier.calibration_
    )
    classifier.shared_bound_ = None
    if described.get("shared_bound") is not None:  # of one u for all classes only
        bound = float(described["shared_bound"])
        if not np.isfinite(bound):
            refuse("its bound on the sum of soft margins is not a finite number.")
        classifier.shared_bound_ = bound
    classifier._publish(heads, decision)
    if described.get("stream") is not None:
        unpack(content, classifier)
    return classifier


def _unpack_heads(content: Content, classifier: ReservoirClassifier) -> list[Head]:
    n_heads = len(classifier.compared_)
    n_neurons = classifier.reservoir_.n_neurons
    shape = classifier.n_channels_in_, classifier.n_features_in_
    centre = content.numbers("centre", (n_heads, *shape))
    u = content.numbers("u", (n_heads, n_neurons, shape[0]))
    v = content.numbers("v", (n_heads, n_neurons))
    scale, margin, n_iter = (
        content.numbers(name, (n_heads,)) for name in ("scale", "soft_margin", "n_iter")
    )
    bound = content.numbers("bound", (n_heads,), finite=False)
    n_sub = None
    if "n_sub" in content.arrays:
        n_sub = content.numbers("n_sub", (n_heads,))
        if not ((n_sub >= 1) & (n_sub <= 10_000)).all():
            refuse("its numbers of sub-steps are out of range.")
    elif classifier.order == "exact" and not classifier.reservoir_.gain.is_linear:
        refuse("it lacks the numbers of sub-steps of an integrated network.")
    linear = quadratic = None
    if "kernel_linear" in content.arrays:
        linear = content.numbers("kernel_linear", (n_heads, *shape))
    if "kernel_quadratic" in content.arrays:
        quadratic = content.numbers("kernel_quadratic", (n_heads, *shape, *shape))
    validity = content.described["validity"]
    if len(validity) != n_heads:
        refuse("its diagnosis of the expansion does not fit its classes.")
    return [
        Head(
            centre[i],
            float(scale[i]),
            u[i],
            v[i],
            None
            if linear is None
            else Kernel(linear[i], None if quadratic is None else quadratic[i]),
            float(margin[i]),
            float(bound[i]),
            int(n_iter[i]),
            None if validity[i] is None else Validity(**validity[i]),
            None if n_sub is None else int(n_sub[i]),
        )
        for i in range(n_heads)
    ]


def _unpack_scores(content: Content, best: float) -> EtaChoice | None:
    if "etas" not in content.arrays:
        return None
    etas = content.numbers("etas", (None,))
    score = content.numbers("eta_score", etas.shape, finite=False)
    accuracy = content.numbers("eta_accuracy", (len(etas), None), finite=False)
    return EtaChoice(etas, accuracy, score, best)


def _unpack(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return arrays[value["array"]]
    if set(value) == {"pairs"}:
        return {key: float(weight) for key, weight in value["pairs"]}
    if set(value) == {"reservoir"}:
        return unpack_reservoir(value["reservoir"], arrays)
    return refuse(f"its parameter {name!r} is of no known kind.")
