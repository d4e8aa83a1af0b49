"""Parameters of estimators: what they may be, and which of them have no effect."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Number, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from .._base import checks as check
from .._base.messages import ArgumentTypeError
from .._base.model_files import Saved
from ..devices.response import MeasuredResponse
from ..networks.echo_state import EchoStateNetwork
from ..networks.reservoir import Network, Reservoir

#: Weights of the classes, by their labels.
ClassWeight: TypeAlias = dict[Any, float] | str | None
RandomState: TypeAlias = np.random.RandomState | int | None


class ParameterError(ArgumentTypeError):
    """A parameter out of range or without effect, in scikit-learn's wording.

    It is a ValueError and a TypeError, as scikit-learn's checks of estimators expect.
    """

    def __init__(
        self, name: str, wanted: str, got: str, estimator: str, advice: str = ""
    ) -> None:
        super().__init__(name, f"be {wanted}", got)
        self.args = name, wanted, got, estimator, advice  # from which it is unpickled

    def __str__(self) -> str:
        name, wanted, got, estimator, advice = self.args
        what = f"The {name!r} parameter of {estimator} must be {wanted}."
        return f"{what} Got {got} instead.{advice}"


class Rule(NamedTuple):
    """One kind of value that a parameter may have: words for errors, and the test."""

    wanted: str
    fits: Callable[[Any], bool]
    #: Returns a sentence for the error about a value, or nothing.
    advice: Callable[[Any], str] = lambda value: ""


Rules: TypeAlias = Mapping[str, tuple[Rule, ...]]
#: A condition under which parameters have no effect, the reason, and their names.
Idle: TypeAlias = tuple[bool, str, tuple[str, ...]]


def real(low: float, high: float, ends: str = "[]") -> Rule:
    """Return the rule for real numbers in an interval; booleans are not numbers."""

    def fits(x: Any) -> bool:
        above = low < x or (ends[0] == "[" and x == low)
        return above and (x < high or (ends[1] == "]" and x == high))

    wanted = f"a float in the range {ends[0]}{float(low)}, {float(high)}{ends[1]}"
    return Rule(wanted, lambda x: _is_number(x, Real) and fits(x))


def whole(low: int | None, high: int | None = None) -> Rule:
    """Return the rule for integers from ``low`` to ``high``, or without a limit."""
    least, most = (-np.inf if low is None else low), (np.inf if high is None else high)
    left = "(-inf" if low is None else f"[{low}"
    right = "inf)" if high is None else f"{high}]"
    return Rule(
        f"an int in the range {left}, {right}",
        lambda x: _is_number(x, Integral) and least <= x <= most,
    )


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def one_of(first: str, *others: str) -> Rule:
    """Return the rule for one of several words."""
    options = (first, *others)
    several = f"a str among {{{', '.join(map(repr, options))}}}"
    wanted = several if others else repr(first)
    return Rule(wanted, lambda x: isinstance(x, str) and x in options)


def array(wanted: str, *ndim: int, square: bool = False) -> Rule:
    """Return the rule for arrays of finite numbers with one of the numbers of axes."""

    def fits(value: Any) -> bool:
        if value is None or isinstance(value, str | np.ma.MaskedArray):
            return False
        try:
            held = value.tocsr().data if hasattr(value, "tocsr") else value
            numbers = np.asarray(held, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        shape = numbers.shape if held is value else value.shape
        if len(shape) not in ndim or (square and len(set(shape)) > 1) or 0 in shape:
            return False
        return bool(np.isfinite(numbers).all())

    return Rule(wanted, fits)


NONE = Rule("None", lambda x: x is None)
FLAG = Rule("a bool", lambda x: isinstance(x, bool | np.bool_))
#: Sizes whose squares do not overflow.
POSITIVE = real(1e-100, 1e100)
NOT_NEGATIVE = real(0, 1e100)
COUNT = whole(1)
N_JOBS = (NONE, COUNT, whole(None, -1))
CLASS_WEIGHT = (
    NONE,
    one_of("balanced"),
    Rule(
        "a dict of positive weights from 1e-100 to 1e100",
        lambda x: isinstance(x, dict) and bool(x) and all(map(POSITIVE.fits, x.values())),
    ),
)
RANDOM_STATE = (
    NONE,
    whole(0, 2**32 - 1),
    Rule("a RandomState", lambda x: isinstance(x, np.random.RandomState)),
)
VERBOSE = (FLAG, whole(0))


def _other_networks(value: object) -> str:
    """Return where a network goes that an estimator does not take."""
    if isinstance(value, EchoStateNetwork):
        return " greenfold.SequenceRegressor, ReservoirForecaster and optimize accept it."
    if type(value).__module__.startswith("reservoirpy"):
        return " greenfold.reservoirpy.solve_sequence and solve_input solve its weights."
    if isinstance(value, MeasuredResponse):
        accept = "ReservoirClassifier and greenfold.ReservoirRegressor accept it, with the"
        return f" greenfold.{accept} steps before each readout as a series."
    return ""


NETWORK = Rule(
    "a Reservoir or an EchoStateNetwork", lambda x: isinstance(x, Network), _other_networks
)
RESERVOIR = Rule("a Reservoir", lambda x: isinstance(x, Reservoir), _other_networks)
RESPONSE = Rule("a MeasuredResponse", lambda x: isinstance(x, MeasuredResponse))


class Checked(Saved, BaseEstimator):
    """A base class for estimators that check their parameters when they are fitted."""

    _rules: ClassVar[Rules]

    def _idle(self) -> Iterable[Idle]:
        """Return when parameters have no effect beside the values of others.

        ``random_state``, ``n_jobs`` and ``verbose`` are never among them, because tools
        such as scikit-learn's ensembles set these on any estimator.
        """
        return ()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the earlier fit if a fit fails or is interrupted."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_parameters(self) -> None:
        """Refuse parameters that break their rules, or are given but have no effect."""
        for name, rules in self._rules.items():
            value = getattr(self, name)
            if not any(rule.fits(value) for rule in rules):
                *first, last = (rule.wanted for rule in rules)
                wanted = f"{', '.join(first)} or {last}" if first else last
                self._refuse(name, wanted, "".join(rule.advice(value) for rule in rules))
        signature = inspect.signature(type(self)).parameters
        for idle, why, names in self._idle():
            for name in names if idle else ():
                value, default = getattr(self, name), signature[name].default
                plain = isinstance(value, str | Number | np.bool_)
                if value is not default and not (plain and value == default):
                    self._refuse(name, f"left out {why}")

    def _refuse(self, name: str, wanted: str, advice: str = "") -> NoReturn:
        """Raise an error about a parameter."""
        got = check.shown(getattr(self, name))
        raise ParameterError(name, wanted, got, type(self).__name__, advice)


class Adapter:
    """A mixin for estimators of another library.

    A class with ``wraps`` has the parameters of that estimator, some with other defaults.
    It fits the estimator and keeps it as the attribute ``fitted``.
    """

    _wraps: ClassVar[Any]
    _fitted: ClassVar[str]
    _defaults: ClassVar[dict[str, Any]] = {}

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(
        cls, wraps: type[Checked] | None = None, fitted: str = "", **rest: Any
    ) -> None:
        super().__init_subclass__(**rest)
        if wraps is None:  # a base class of adapters
            return
        cls._wraps, cls._fitted = wraps, fitted
        both = inspect.Parameter.POSITIONAL_OR_KEYWORD
        given = {
            name: one.replace(kind=both, default=cls._defaults.get(name, one.default))
            for name, one in inspect.signature(wraps).parameters.items()
        }
        signature = inspect.Signature([inspect.Parameter("self", both), *given.values()])

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            for name in given:
                setattr(self, name, bound.arguments[name])
            super(cls, self).__init__()

        __init__.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
        cls.__init__ = __init__

    def _fit_wrapped(self: Any, *data: Any, **changed: Any) -> Any:
        given = {**self.get_params(deep=False), **changed}
        setattr(self, self._fitted, self._wraps(**given).fit(*data))
        return self

    @property
    def _wrapped(self) -> Any:
        return getattr(self, self._fitted)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        small = {"n_neurons": 5, "eta": 1.0, "n_scales": 2, "n_readouts": 16, "max_iter": 3}
        known = inspect.signature(cls._wraps).parameters
        return {name: value for name, value in small.items() if name in known}
