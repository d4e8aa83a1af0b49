"""Shared parts of all estimators: their base classes, the network, the file format."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .._base import checks as check
from .._base import model_files
from .._base.arrays import exponent
from .._base.messages import Argument, Part, Refusal
from .._base.model_files import Arrays, Field, Saved, Stored, refuse_file
from .._base.threads import LARGE
from ..devices.response import MeasuredResponse
from ..networks.gains import Gain
from ..networks.reservoir import Reservoir, UnstableError
from ..stimuli.chunks import Sliced, by_chunks
from .parameters import (
    COUNT,
    NONE,
    NOT_NEGATIVE,
    POSITIVE,
    RANDOM_STATE,
    RESERVOIR,
    RESPONSE,
    VERBOSE,
    Checked,
    ClassWeight,
    Idle,
    RandomState,
    Rules,
    array,
    one_of,
)

#: Series in memory or in chunks, as users pass them.
SeriesLike: TypeAlias = ArrayLike | Sliced
#: For at most this many values in a product of series, BLAS uses one thread anyway.
_TINY = 2**13


class SeriesEstimator(Checked):
    """A base class for estimators of time series."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    n_channels_in_: int
    #: Whether this estimator was fitted on series of unequal length, and whether its class
    #: accepts them after any fit.
    _any_length: bool = False
    _takes_any_length: ClassVar[bool] = False
    #: The attribute that a fit sets last; after an interrupted fit, it is missing.
    _last_fitted: ClassVar[str]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._last_fitted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class SeriesClassifier(ClassifierMixin, SeriesEstimator):
    """A classifier with decision values: one for ``classes_[1]``, or one per class."""

    class_weight: ClassWeight
    classes_: np.ndarray
    decision_function: Callable[[Any], np.ndarray]

    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Set the classes, and return the class index of each series."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        why = "needs at least two classes, but y holds only one class:"
        only = f"{type(self).__name__} {why} {self.classes_.tolist()[0]!r}."
        check.require(len(self.classes_) > 1, only)
        return codes

    @by_chunks
    def predict(self, X: SeriesLike) -> np.ndarray:
        """Return the predicted class labels (n_cases,)."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[index]


def class_weights(classifier: SeriesClassifier, counts: np.ndarray) -> np.ndarray:
    """Return the weight of one series of each class.

    ``counts`` holds the number of series of each class, or their total weight.
    """
    wish, known = classifier.class_weight, classifier.classes_.tolist()
    if wish is None:
        return np.ones(len(known))
    if isinstance(wish, str):
        return counts.sum() / (len(known) * np.where(counts > 0, counts, 1.0))
    if not set(wish) <= set(known):
        classifier._refuse("class_weight", f"keyed by labels in y, {sorted(known)}")
    return moderate(np.array([float(wish.get(label, 1.0)) for label in known]))


def moderate(weights: np.ndarray) -> np.ndarray:
    """Return the weights, divided by the largest if it is below 1e-6 or above 1e6."""
    largest = weights.max()
    return weights if 1e-6 <= largest <= 1e6 else weights / largest


class SeriesRegressor(MultiOutputMixin, RegressorMixin, SeriesEstimator):
    """A base class for regressors of one or several targets."""

    #: Whether the targets had shape (n_cases,).
    _flat: bool
    predict: Callable[[Any], np.ndarray]

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return R² of the predictions for ``X`` against ``y``; 1 is best."""
        return r_squared(np.asarray(y), self.predict(X), sample_weight)


def r_squared(
    truth: np.ndarray, predicted: np.ndarray, weights: ArrayLike | None = None
) -> float:
    """Return the mean R² over the targets, in units whose squares do not overflow."""
    truth = check.host_array(truth, "y", ndim=(1, 2))
    unit = exponent(truth, 0)
    scaled = np.ldexp(truth, -unit), np.ldexp(predicted, -unit)
    return float(r2_score(*scaled, sample_weight=weights))


class NetworkEstimator(SeriesEstimator):
    """A base class for estimators with one network and its input projection."""

    input_projection: str | ArrayLike
    n_neurons: int
    g: float
    tau: Any  # a number, and "auto" for some
    duration: float
    reservoir: Reservoir | MeasuredResponse | ArrayLike | None
    readout_noise: float
    random_state: RandomState
    verbose: bool
    #: What keeps a gain that the linear order drops, for a warning.
    _keeps_gain: ClassVar[str]

    _rules: ClassVar[Rules] = {
        "input_projection": (
            one_of("solved", "random"),
            array("an array (n_neurons,) or (n_neurons, n_channels)", 1, 2),
        ),
        "n_neurons": (COUNT,),
        "g": (POSITIVE,),
        "tau": (POSITIVE,),
        "duration": (POSITIVE,),
        "reservoir": (
            NONE,
            RESERVOIR,
            RESPONSE,
            array("a square matrix of finite weights", 2, square=True),
        ),
        "readout_noise": (NOT_NEGATIVE,),
        "random_state": RANDOM_STATE,
        "verbose": VERBOSE,
    }

    def _idle(self) -> list[Idle]:
        own, tau = isinstance(self.reservoir, Reservoir), self.tau != "auto"
        given = self.reservoir is not None
        recorded = isinstance(self.reservoir, MeasuredResponse)
        why = "with a MeasuredResponse, which has its own memory and time step"
        return [
            (recorded, why, ("tau", "duration")),
            (given, "with a `reservoir`, which has its own weights", ("n_neurons", "g")),
            (own and tau, "with a Reservoir, which has its own time constant", ("tau",)),
        ]

    def _make_network(
        self, rng: np.random.Generator, tau: float, gain: Gain, *, linear: bool
    ) -> Reservoir | MeasuredResponse:
        """Return the network given as ``reservoir``, or draw a random network.

        ``linear`` tells whether the estimator uses the linear order of the network. Of a
        measured response, only the steps of the series are returned.
        """
        given, name = self.reservoir, type(self).__name__
        if isinstance(given, MeasuredResponse):
            n = self.n_features_in_
            if n > given.n_steps:
                what = f"a response to at least {n} steps, the length of the series"
                how = f" Fit it with MeasuredResponse.fit(…, n_steps={n})."
                self._refuse("reservoir", what, how)
            return MeasuredResponse(given.G[-n:], given.dt)
        if isinstance(given, Reservoir):
            if linear and not given.gain.is_linear:
                what = f"The gain of the 'reservoir' of {name} is not linear, so it is "
                what += f"linearised at rest; {self._keeps_gain}."
                warnings.warn(what, UserWarning, stacklevel=5)
            return given
        try:
            if given is not None:
                return Reservoir(given, tau, gain)
            return Reservoir.random(int(self.n_neurons), self.g, tau, gain, rng)
        except UnstableError as error:
            # Reworded for the estimator, which has no `allow_unstable`.
            wrong, what = ("g", "lower it") if given is None else ("reservoir", "scale it")
            allow = Argument("allow_unstable", True)
            other: Part = ", or pass reservoir=Reservoir(weights, ", allow, ")"
            raise Refusal(
                Argument(wrong),
                " makes the network unstable: the largest real part of its eigenvalues is "
                f"{error.abscissa:.4g} and must be below 1; {what} by a factor of "
                f"{0.9 / error.abscissa:.2g}",
                other if linear else "",
                ".",
            ) from None

    def _fixed_input(self, rng: np.random.Generator, n_inputs: int) -> np.ndarray | None:
        """Return the input projection (n_inputs, n_channels), or None to solve for it."""
        wish, shape = self.input_projection, (n_inputs, self.n_channels_in_)
        if isinstance(wish, str):
            if wish != "random":
                return None
            u = rng.standard_normal(shape)
        else:
            u = np.asarray(wish, dtype=np.float64)
            u = u[:, None] if u.ndim == 1 else u
            if u.shape != shape or not u.any():
                self._refuse("input_projection", f"non-zero and of shape {shape}")
        return u / np.linalg.norm(u)


def sizes_of(network: Reservoir | MeasuredResponse) -> tuple[int, int]:
    """Return the number of entries of u (of one channel) and of v."""
    if isinstance(network, MeasuredResponse):
        return network.n_inputs, network.n_outputs
    return network.n_neurons, network.n_neurons


def rows_to_fit(self: NetworkEstimator) -> int:
    """Return the number of rows of the network of an estimator, given or drawn."""
    given = self.reservoir
    if isinstance(given, Reservoir | MeasuredResponse):
        return max(sizes_of(given))
    return self.n_neurons if given is None else np.shape(given)[0]


def rows_to_read(self: NetworkEstimator, X: np.ndarray) -> int:
    """Return the number of rows for reading series; limiting BLAS is slower for few."""
    return LARGE if X.size <= _TINY else rows_to_fit(self)


# Files


class Unset(model_files.Maybe):
    """An attribute that some fitted estimators lack."""


FITTED_NETWORK = model_files.AnyKind(Reservoir | MeasuredResponse)


def describe_fitted(
    cls: type[Checked], finish: Callable[[Any], None], /, **attributes: Field
) -> None:
    """Describe the attributes to save of a fitted estimator, besides the common ones.

    ``finish`` checks that the loaded attributes fit together, and sets those that follow
    from them.
    """

    def take(estimator: BaseEstimator) -> dict[str, Any]:
        check_is_fitted(estimator)
        taken = {name: getattr(estimator, name, None) for name in attributes}
        return {**taken, "parameters": estimator.get_params(deep=False)}

    def make(parameters: Any, **read: Any) -> Any:
        for name, value in read.items():
            if name == "feature_names_in_" and value is not None:
                value = np.array(value, dtype=object)
            if value is not None or not isinstance(attributes[name], Unset):
                setattr(parameters, name, value)
        finish(parameters)
        return parameters

    if issubclass(cls, SeriesEstimator):
        attributes = {
            "n_channels_in_": model_files.counted("channels"),
            "n_features_in_": model_files.counted("steps"),
            "feature_names_in_": Unset(model_files.Several(model_files.TEXT, "steps")),
            **attributes,
        }
    model_files.describe(cls._kind, make, take, parameters=_Parameters(cls), **attributes)


class _Parameters(Field):
    """The parameters that create an estimator; integer parameters define lengths."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def pack(self, value: Mapping[str, Any], name: str, arrays: Arrays) -> dict[str, Any]:
        return {k: self._pack(k, v, f"{name}_{k}", arrays) for k, v in value.items()}

    def _pack(self, key: str, value: Any, name: str, arrays: Arrays) -> Any:
        if key == "random_state" and not isinstance(value, int | np.integer):
            return None  # a generator is not saved
        if isinstance(value, Saved):
            return model_files.SAVED.pack(value, name, arrays)
        leaf = super().pack
        if isinstance(value, dict):
            items = [[leaf(part, name, arrays) for part in pair] for pair in value.items()]
            return {"pairs": items}
        if value is None or isinstance(value, str | bool | int | float | np.generic):
            return leaf(value, name, arrays)
        dense = value.toarray() if hasattr(value, "toarray") else value
        return leaf(np.asarray(dense, dtype=np.float64), name, arrays)

    def unpack(self, told: Any, name: str, stored: Stored) -> Any:
        given = {k: self._unpack(v, f"{name}_{k}", stored) for k, v in told.items()}
        estimator = self.cls(**given)
        estimator._check_parameters()
        stored.lengths.update({k: v for k, v in given.items() if type(v) is int})
        return estimator

    def _unpack(self, told: Any, name: str, stored: Stored) -> Any:
        if not isinstance(told, dict):
            return told
        if "pairs" in told:
            return dict(told["pairs"])
        if "array" in told:
            return model_files.Numbers(ndim=(1, 2)).unpack(told, name, stored)
        # A response that was given may have more steps than the series.
        return model_files.SAVED.unpack(told, name, stored._replace(lengths={}))


class ClassLabels(Field):
    """Distinct labels, which define the lengths ``classes`` and ``scores``."""

    def pack(self, value: np.ndarray, name: str, arrays: Arrays) -> dict[str, Any]:
        """Return JSON of the labels, which are numbers, booleans or text."""
        objects = value.dtype.kind == "O"
        kinds = sorted({type(label).__name__ for label in value})
        text = not objects or all(isinstance(label, str) for label in value)
        why = f"labels must be numbers or text to be saved; got {kinds}."
        check.require(text, why, TypeError)
        packed = super().pack(value.astype(str) if objects else value, name, arrays)
        return {**packed, "objects": objects}

    def unpack(self, told: Any, name: str, stored: Stored) -> np.ndarray:
        """Return the labels after checking them."""
        labels = stored.array(told, name)
        n = stored.length("classes", len(labels))
        stored.length("scores", 1 if n == 2 else n)
        if labels.ndim != 1 or n < 2 or len(np.unique(labels)) < n:
            refuse_file("its classes are not distinct labels.")
        objects = model_files.FLAG.unpack(told.get("objects"), "objects", stored)
        return labels.astype(object) if objects else labels
