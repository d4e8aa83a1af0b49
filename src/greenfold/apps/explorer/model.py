"""A saved model as material of a page: its network, its u, and the series it has kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...estimators.margin.classifier import ReservoirClassifier, class_weights
from .make import Source
from .page import Start


def kept_series(classifier: ReservoirClassifier, name: str) -> Source:
    """The training series that a saved classifier has kept.

    Raises
    ------
    ValueError
        Where it has kept none.
    """
    stream = getattr(classifier, "_stream", None)
    if stream is None or not len(stream.sample.codes):
        raise ValueError(
            f"`{name}` holds no series to show; name some after it: greenfold explore "
            f"{name} DATA."
        )
    sample = stream.sample
    values = np.ldexp(sample.values, classifier._exponent)
    kept = np.bincount(sample.codes, minlength=len(classifier.classes_))
    # A sample stands for all series of its class.
    factors = stream.counts / np.maximum(kept, 1)
    named = _weights(classifier, stream.counts, factors / factors.max())
    note = f"Series that {name} has kept from its training."
    y = classifier.classes_[sample.codes]
    return Source(
        name, values, y, note=note, class_weights=named, scaling=_scaling(classifier)
    )


def with_model(source: Source, classifier: ReservoirClassifier) -> Source:
    """Series for a model, weighted and scaled as it was told to.

    Raises
    ------
    ValueError
        Where they are not the model's: channels or classes differ.
    """
    channels = np.atleast_2d(np.asarray(source.X[0])).shape[0]
    if channels != classifier.n_channels_in_:
        raise ValueError(
            f"`{source.name}` has {channels} channel(s), but the model was fitted on "
            f"{classifier.n_channels_in_}."
        )
    known = {str(label) for label in classifier.classes_.tolist()}
    labels = [str(label) for label in np.asarray(source.y).tolist()]
    if not set(labels) <= known:
        raise ValueError(
            f"`{source.name}` holds the class {min(set(labels) - known)!r}, which the "
            f"model does not know; it knows {', '.join(sorted(known)[:8])}."
        )
    names = [str(label) for label in classifier.classes_.tolist()]
    counts = np.array([labels.count(one) for one in names], dtype=float)
    named = _weights(classifier, counts, np.ones(len(counts)))
    given = {**vars(source), "class_weights": named, "scaling": _scaling(classifier)}
    return Source(**given)


def start_of(classifier: ReservoirClassifier) -> Start:
    """Where a page of a model begins: at its u, η and noise."""
    noise = classifier.readout_noise or None
    u = classifier.heads_[0].u
    return Start(float(classifier.eta_), noise, u, "The model's u")


def remarks(classifier: ReservoirClassifier) -> str:
    """What the page leaves out of a model, in sentences."""
    said = []
    if classifier.order:
        said.append("The model is non-linear; this page shows its linear part.")
    if not (isinstance(classifier.readout, str) and classifier.readout == "end"):
        said.append("The model has a readout of its own; here it is read at one time.")
    if len(classifier.classes_) > 2:
        first = classifier.classes_[classifier.compared_[0]]
        said.append(f"The model's u is the one for {first} against the rest.")
    return " ".join(said)


def _weights(classifier: Any, counts: np.ndarray, factors: np.ndarray) -> dict[str, float]:
    each = class_weights(classifier, classifier.classes_, counts) * factors
    names = [str(label) for label in classifier.classes_.tolist()]
    return dict(zip(names, each.tolist(), strict=True))


def _scaling(classifier: ReservoirClassifier) -> float:
    # Without a scaling of its own a model takes the series in their unit, which the page,
    # where ‖μ‖ is given, cannot know for each pair.
    return 1.0 if classifier.input_scaling is None else float(classifier.input_scaling)
