"""What a file keeps of a stream, so that `partial_fit` goes on from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._archive import Content, refuse
from ..covariances import Factored
from ..stimuli import Series
from ..stimuli.class_moments import ClassMoments
from .estimator import ReservoirClassifier
from .sample import StreamSample
from .stream import ClassStream


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
