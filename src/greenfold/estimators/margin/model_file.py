"""What a file keeps of a fitted classifier; see `greenfold._base.codec`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base import codec
from ..._base.archive import ModelFileError, refuse
from ...analysis.eta import EtaChoice
from ...math.covariances import Factored
from ...math.decisions import Decision
from ...networks.reservoir import RESERVOIR
from ...stimuli.base import Series
from ...stimuli.class_moments import ClassMoments
from ...unfolding.kernel import KERNEL
from ...validity import Validity
from ..saved import Labels, Unset, describe_fitted
from .classifier import ReservoirClassifier, check_parameters
from .heads import Head
from .stream import ClassStream, StreamSample

__all__ = ["ModelFileError"]

_SUB_STEPS = codec.Plain(
    "a number of sub-steps up to 10,000", lambda x: type(x) is int and 1 <= x <= 10_000
)
_HEAD = codec.Object(
    Head,
    centre=codec.Numbers("channels", "steps"),
    scale=codec.NUMBER,
    u=codec.Numbers("neurons", "channels"),
    v=codec.Numbers("neurons"),
    kernel=codec.Maybe(KERNEL),
    soft_margin=codec.NUMBER,
    validity=codec.Maybe(codec.Object(Validity)),
    n_sub=codec.Maybe(_SUB_STEPS),
)
_DECISION = codec.Object(
    Decision,
    coupling=codec.Numbers("scores", "scores"),
    threshold=codec.Numbers("scores"),
    slope=codec.NUMBER,
    sureness=codec.Maybe(codec.POSITIVE),
)
_ETA_CHOICE = codec.Object(
    EtaChoice,
    etas=codec.Numbers("etas"),
    accuracy=codec.Numbers("etas", None, finite=False),
    score=codec.Numbers("etas", finite=False),
)


# The stream from which `partial_fit` goes on


def _taken_moments(part: ClassMoments) -> dict[str, Any]:
    factor = scatter = None
    if isinstance(part.scatter, Factored):
        factor = part.scatter.factor
    else:  # symmetric: one half is enough
        scatter = part.scatter[np.triu_indices(len(part.mean))]
    return {"count": part.count, "mean": part.mean, "factor": factor, "scatter": scatter}


def _made_moments(
    count: float, mean: np.ndarray, factor: np.ndarray | None, scatter: np.ndarray | None
) -> ClassMoments:
    if factor is not None:
        return ClassMoments(count, mean, Factored(factor))
    upper = np.triu_indices(len(mean))
    if scatter is None or len(scatter) != len(upper[0]):
        refuse("its class moments have no scatter, or one of another size.")
    whole = np.zeros((len(mean), len(mean)))
    whole[upper] = whole.T[upper] = scatter
    return ClassMoments(count, mean, whole)


def _taken_stream(stream: ClassStream) -> dict[str, Any]:
    # The moments of a whole sample are made from it again, and need no room.
    moments = None if stream.sample.is_whole else stream.moments
    return {"sample": stream.sample, "moments": moments, "chosen_at": stream.chosen_at}


def _made_stream(
    sample: StreamSample, moments: list[ClassMoments] | None, chosen_at: int
) -> ClassStream:
    codes, n_classes = sample.codes, len(sample.seen)
    if codes.dtype.kind not in "iu" or not np.isin(codes, np.arange(n_classes)).all():
        refuse("its sample of series has classes that it does not know.")
    kept = np.bincount(codes, minlength=n_classes)
    if sample.seed < 0 or (kept > sample.seen).any() or not len(codes):
        refuse("its sample of series does not fit together.")
    if sample.is_whole:
        stream = ClassStream.empty(n_classes, sample.values.shape[1:], sample.seed)
        stream.add(Series(sample.values), codes, sample.weights)
        return ClassStream(stream.moments, sample, chosen_at)
    counts = [] if moments is None else [part.count for part in moments]
    if moments is None or min(counts) < 0 or not any(counts):
        refuse("its class moments are missing, or have negative counts.")
    return ClassStream(moments, sample, chosen_at)


_VALUES = ("channels", "steps")
_MOMENTS = codec.Object(
    _made_moments,
    _taken_moments,
    count=codec.NUMBER,
    mean=codec.Numbers(_VALUES),
    factor=codec.Maybe(codec.Numbers(_VALUES, None)),
    scatter=codec.Maybe(codec.Numbers(None)),
)
_SAMPLE = codec.Object(
    StreamSample,
    values=codec.Numbers("kept", "channels", "steps"),
    codes=codec.Numbers("kept"),
    weights=codec.Numbers("kept", positive=True),
    keys=codec.Numbers("kept"),
    seen=codec.Numbers("classes"),
)
_STREAM = codec.Object(
    _made_stream,
    _taken_stream,
    sample=_SAMPLE,
    moments=codec.Maybe(codec.Several(_MOMENTS, "classes")),
    chosen_at=codec.INTEGER,
)


def _finish(made: ReservoirClassifier) -> None:
    integrated = made.order == "exact" and not made.reservoir_.gain.is_linear
    if integrated and any(head.n_sub is None for head in made.heads_):
        refuse("it lacks the numbers of sub-steps of an integrated network.")
    made.calibration_ = made.decision_.sureness
    made._publish(made.heads_, made.decision_)
    if hasattr(made, "_stream"):
        made._fold_seed = made._stream.sample.seed
        given = made.input_projection
        solved = isinstance(given, str) and given != "random"
        made._kept = None if solved else made.heads_[0].u


describe_fitted(
    "classifier",
    ReservoirClassifier,
    check_parameters,
    _finish,
    classes_=Labels(),
    _any_length=codec.FLAG,
    reservoir_=RESERVOIR,
    eta_=codec.NUMBER,
    eta_scores_=codec.Maybe(_ETA_CHOICE),
    heads_=codec.Several(_HEAD, "scores"),
    decision_=_DECISION,
    shared_bound_=codec.Maybe(codec.NUMBER),
    _stream=Unset(_STREAM),
    _exponent=codec.INTEGER,
)
