"""Shared parts of all estimators: parameter checks, the network, the file format."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted

from .._base import checks as check
from .._base import codec
from .._base.archive import refuse_file
from .._base.arrays import exponent
from .._base.codec import Arrays, Field, Saved, Stored
from .._base.threads import LARGE
from ..networks.echo_state import EchoStateNetwork
from ..networks.gains import Gain
from ..networks.reservoir import Reservoir, UnstableError
from ..stimuli.chunks import by_chunks

# Parameters


class Number(Interval):
    """A constraint for numbers in an interval; booleans do not count as numbers."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether ``val`` is such a number."""
        return not isinstance(val, bool | np.bool_) and super().is_satisfied_by(val)


class FiniteArray(Options):
    """A constraint for arrays of finite numbers with ``ndim`` axes; several are allowed."""

    def __init__(self, wanted: str, *ndim: int, square: bool = False) -> None:
        super().__init__(object, set())
        self.wanted, self.ndim, self.square = wanted, ndim, square

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether ``val`` is such an array."""
        if val is None or isinstance(val, str | np.ma.MaskedArray):
            return False
        try:
            dense = val.toarray() if hasattr(val, "toarray") else val
            array = np.asarray(dense, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        if array.ndim not in self.ndim or (self.square and len(set(array.shape)) > 1):
            return False
        return array.size > 0 and bool(np.isfinite(array).all())

    def __str__(self) -> str:
        return self.wanted


#: For at most this many values in a product of series, BLAS uses one thread anyway.
_TINY = 2**13
#: Sizes whose squares do not overflow.
POSITIVE = Number(Real, 1e-100, 1e100, closed="both")
NOT_NEGATIVE = Number(Real, 0, 1e100, closed="both")
COUNT = Number(Integral, 1, None, closed="left")
N_JOBS = [None, COUNT, Number(Integral, None, -1, closed="right")]
CLASS_WEIGHT = [None, StrOptions({"balanced"}), dict]
#: Constraints on the parameters of a network with an input projection.
NETWORK_CONSTRAINTS: dict[str, list[Any]] = {
    "input_projection": [
        StrOptions({"solved", "random"}),
        FiniteArray("an array (n_neurons,) or (n_neurons, n_channels)", 1, 2),
    ],
    "n_neurons": [COUNT],
    "g": [POSITIVE],
    "tau": [POSITIVE],
    "duration": [POSITIVE],
    "reservoir": [
        None,
        Reservoir,
        FiniteArray("a square matrix of finite weights", 2, square=True),
    ],
    "readout_noise": [NOT_NEGATIVE],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def check_constraints(estimator: Any) -> None:
    """Check the parameters by scikit-learn's constraints; errors show plain numbers."""
    given = estimator.get_params(deep=False)
    wish, continuous = given.get("reservoir"), hasattr(estimator, "duration")
    node = type(wish).__module__.startswith("reservoirpy")
    if node or (continuous and isinstance(wish, EchoStateNetwork)):
        why = f"The 'reservoir' parameter of {type(estimator).__name__} must be a Reservoir"
        other = "greenfold.SequenceRegressor, ReservoirForecaster and optimize accept it"
        if node:
            other = "greenfold.reservoirpy.solve_sequence and solve_input solve its weights"
        got = f"got a {'node' if node else type(wish).__name__} in discrete time"
        raise InvalidParameterError(f"{why}; {got}. {other}.")
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in given.items()}
    validate_parameter_constraints(
        estimator._parameter_constraints, plain, type(estimator).__name__
    )


class SeriesEstimator(Saved, BaseEstimator):
    """A base class for estimators of time series, with tags and parameter checks."""

    #: scikit-learn's constraints on each parameter.
    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    n_features_in_: int
    n_channels_in_: int
    #: Whether this estimator was fitted on series of unequal length, and whether its class
    #: accepts them after any fit.
    _any_length: bool = False
    _takes_any_length: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _check_parameters(self) -> None:
        check_constraints(self)

    def _refuse(self, name: str, wanted: str) -> None:
        """Raise an error for a parameter, in scikit-learn's wording."""
        raise InvalidParameterError(
            f"The {name!r} parameter of {type(self).__name__} must be {wanted}. "
            f"Got {getattr(self, name)!r} instead."
        )


class SeriesClassifier(ClassifierMixin, SeriesEstimator):
    """A classifier with decision values: one for ``classes_[1]``, or one per class."""

    class_weight: Any
    classes_: np.ndarray
    decision_function: Callable[[Any], np.ndarray]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        wish = self.class_weight
        good = POSITIVE.is_satisfied_by
        if isinstance(wish, dict) and not (wish and all(map(good, wish.values()))):
            wanted = "None, 'balanced' or a dict of positive weights from 1e-100 to 1e100"
            self._refuse("class_weight", wanted)

    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Set the classes, and return the class index of each series."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        why = "needs at least two classes, but y holds only one class:"
        only = f"{type(self).__name__} {why} {self.classes_.tolist()[0]!r}."
        check.require(len(self.classes_) > 1, only)
        return codes

    @by_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted class labels (n_cases,)."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[index]


def class_weights(estimator: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weight of one series of each class.

    ``counts`` holds the number of series of each class, or their total weight.
    """
    wish = estimator.class_weight
    if wish is None:
        return np.ones(len(classes))
    if isinstance(wish, str):
        return counts.sum() / (len(classes) * np.where(counts > 0, counts, 1.0))
    known = classes.tolist()
    if not set(wish) <= set(known):
        estimator._refuse("class_weight", f"keyed by labels in y, {sorted(known)}")
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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions for ``X`` against ``y``; 1 is best."""
        return r_squared(np.asarray(y), self.predict(X), sample_weight)


def r_squared(truth: np.ndarray, predicted: np.ndarray, weights: Any = None) -> float:
    """Return the mean R² over the targets, in units whose squares do not overflow."""
    truth = check.host_array(truth, "y", ndim=(1, 2))
    unit = exponent(truth, 0)
    scaled = np.ldexp(truth, -unit), np.ldexp(predicted, -unit)
    return float(r2_score(*scaled, sample_weight=weights))


# The network


def make_network(
    estimator: Any, rng: np.random.Generator, tau: float, gain: Gain | None = None
) -> Any:
    """Return the network given as ``reservoir``, or draw a random network."""
    given = estimator.reservoir
    if isinstance(given, Reservoir):
        name = type(estimator).__name__
        if getattr(estimator, "order", 0) == 0 and not given.gain.is_linear:
            exact = 'order="exact" solves through the non-linear network'
            if not hasattr(estimator, "order"):
                exact = "optimize(Dynamics(…), RegressionTask(…)) keeps it non-linear"
            linear = "is not linear, so it is linearised at rest"
            what = f"The gain of the 'reservoir' of {name} {linear}; {exact}."
            warnings.warn(what, UserWarning, stacklevel=5)
        return given
    try:
        if given is not None:
            return Reservoir(given, tau, gain)
        return Reservoir.random(int(estimator.n_neurons), estimator.g, tau, gain, rng)
    except UnstableError as error:
        # Reworded for the estimator, which has no `allow_unstable`.
        name, what = ("g", "lower it") if given is None else ("reservoir", "scale it")
        other = ", or pass reservoir=Reservoir(weights, allow_unstable=True)"
        raise ValueError(
            f"The {name!r} parameter of {type(estimator).__name__} makes the network "
            f"unstable: the largest real part of its eigenvalues is {error.abscissa:.4g} "
            f"and must be below 1; {what} by a factor of {0.9 / error.abscissa:.2g}"
            f"{'' if getattr(estimator, 'order', 0) else other}."
        ) from None


def fixed_input(
    estimator: Any, rng: np.random.Generator, n_neurons: int, n_channels: int
) -> np.ndarray | None:
    """Return the input projection (n_neurons, n_channels) if drawn or given, else None."""
    wish = estimator.input_projection
    if isinstance(wish, str):
        if wish != "random":
            return None
        u = rng.standard_normal((n_neurons, n_channels))
    else:
        u = np.asarray(wish, dtype=np.float64)
        u = u[:, None] if u.ndim == 1 else u
        if u.shape != (n_neurons, n_channels) or not u.any():
            wanted = f"non-zero and of shape ({n_neurons}, {n_channels})"
            estimator._refuse("input_projection", wanted)
    return u / np.linalg.norm(u)


def rows_to_fit(self: Any) -> int:
    """Return the number of rows of the network of an estimator, given or drawn."""
    given = self.reservoir
    if given is None:
        return self.n_neurons
    return given.n_neurons if hasattr(given, "n_neurons") else len(given)


def rows_to_read(self: Any, X: Any) -> int:
    """Return the number of rows for reading series; limiting BLAS is slower for few."""
    return LARGE if X.size <= _TINY else rows_to_fit(self)


# Files


class Unset(codec.Maybe):
    """An attribute that some fitted estimators lack."""


def describe_fitted(
    cls: Any, finish: Callable[[Any], None], /, **attributes: Field
) -> None:
    """Describe the attributes to save of a fitted estimator, besides the common ones.

    ``finish`` checks that the loaded attributes fit together, and sets those that follow
    from them.
    """

    def take(estimator: Any) -> dict[str, Any]:
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
            "n_channels_in_": codec.counted("channels"),
            "n_features_in_": codec.counted("steps"),
            "feature_names_in_": Unset(codec.Several(codec.TEXT, "steps")),
            **attributes,
        }
    codec.describe(cls._kind, make, take, parameters=_Parameters(cls), **attributes)


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
            return codec.SAVED.pack(value, name, arrays)
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
            return codec.Numbers(ndim=(1, 2)).unpack(told, name, stored)
        return codec.SAVED.unpack(told, name, stored)


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
        objects = codec.FLAG.unpack(told.get("objects"), "objects", stored)
        return labels.astype(object) if objects else labels
