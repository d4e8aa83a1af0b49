"""Gain functions of the neurons: what is evaluated, expanded, saved and simulated.

A gain is one entry of `KINDS`: a constructor that says by which name and numbers it can be
made again. Everything else asks the gain itself, so a new one is written here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from . import _validation as check
from ._arrays import namespace

#: Taylor coefficients of tanh, from tan(iy)/i: (-1)^(k-1) 2^2k (2^2k - 1) B_2k / (2k)!.
_TANH = (0, 1, 0, -1 / 3, 0, 2 / 15, 0, -17 / 315, 0, 62 / 2835, 0, -1382 / 155925)


def _tanh(y: Any) -> Any:
    return namespace(y).tanh(y)


def _tanh_derivative(y: Any) -> Any:
    return 1 - _tanh(y) ** 2


def _tanh_and_derivative(y: Any) -> tuple[Any, Any]:
    bent = _tanh(y)
    slope = bent * bent
    slope *= -1
    slope += 1
    return bent, slope


# (tanh(y + b) − tanh b)/(1 − tanh² b) = tanh y/(1 + tanh b tanh y): nothing cancels near
# rest, and it is exactly zero there.


def _biased(y: Any, t: float) -> Any:
    bent = _tanh(y)
    return bent / (1 + t * bent)


def _biased_derivative(y: Any, t: float) -> Any:
    bent = _tanh(y)
    return (1 - bent**2) / (1 + t * bent) ** 2


def _biased_and_derivative(y: Any, t: float) -> tuple[Any, Any]:
    bent = _tanh(y)
    below = t * bent
    below += 1
    slope = bent * bent
    slope *= -1
    slope += 1
    slope /= below
    slope /= below
    bent /= below
    return bent, slope


#: Beyond this bias, 1 − tanh b is lost in rounding to eleven digits and fewer.
_MAX_BIAS = 5.0


def _biased_series(t: float, degree: int) -> list[float]:
    """Taylor coefficients of the biased tanh, from f' = 1 − f² for f = tanh(y + b)."""
    f = [t]
    for k in range(degree):
        square = sum(f[i] * f[k - i] for i in range(k + 1))
        f.append(((k == 0) - square) / (k + 1))
    return [0.0, *(c / f[1] for c in f[1:])]


@dataclass(frozen=True)
class Gain:
    """Gain function φ of the neurons, with its Taylor coefficients at rest.

    Make one with `Gain.linear`, `Gain.quadratic`, `Gain.polynomial`, `Gain.tanh`,
    `Gain.biased_tanh` or `Gain.custom`.

    Attributes
    ----------
    coefficients : tuple of float
        Taylor coefficients c_0 = 0, c_1, c_2, … of φ in increasing powers, used by
        the unfolding. `simulate` and `Dynamics` use the exact function instead.
    name : str
        What is printed.
    kind : str or None
        Name in `KINDS`; None for a gain that is made of code and can not be saved.
    parameters : dict
        What the constructor of that name takes to make the gain again.
    nest_model : str or None
        Rate neuron of NEST that has this gain.
    """

    coefficients: tuple[float, ...]
    name: str
    _function: Callable[[Any], Any] | None = field(default=None, repr=False, compare=False)
    _derivative: Callable[[Any], Any] | None = field(
        default=None, repr=False, compare=False
    )
    _joint: Callable[[Any], tuple[Any, Any]] | None = field(
        default=None, repr=False, compare=False
    )
    kind: str | None = field(default=None, repr=False, compare=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    nest_model: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        coefficients = check.host_array(self.coefficients, "coefficients", ndim=(1,))
        if coefficients[0] != 0:
            raise ValueError(
                "`coefficients` must begin with φ(0) = 0, so that the resting network "
                f"stays at rest; got {coefficients[0]}."
            )
        trimmed = np.trim_zeros(coefficients, "b")
        object.__setattr__(self, "coefficients", tuple(float(c) for c in trimmed) or (0.0,))

    @classmethod
    def linear(cls) -> Gain:
        """φ(y) = y."""
        return cls((0.0, 1.0), "linear", kind="linear", nest_model="lin_rate_ipn")

    @classmethod
    def quadratic(cls, alpha: float) -> Gain:
        """φ(y) = y + α y², the paper's weak non-linearity."""
        value = float(check.host_array(alpha, "alpha", ndim=(0,)))
        return cls(
            (0.0, 1.0, value),
            f"quadratic(alpha={value:g})",
            kind="quadratic",
            parameters={"alpha": value},
        )

    @classmethod
    def polynomial(cls, coefficients: Any) -> Gain:
        """φ(y) = Σ_k c_k y^k, coefficients in increasing powers from c_0 = 0."""
        values = check.host_array(coefficients, "coefficients", ndim=(1,)).tolist()
        return cls(
            tuple(values),
            f"polynomial({values})",
            kind="polynomial",
            parameters={"coefficients": values},
        )

    @classmethod
    def tanh(cls, degree: int = 11) -> Gain:
        """φ(y) = tanh(y); the unfolding sees its Taylor polynomial up to ``degree``.

        The series converges for |y| < π/2 only: read the `order` of an unfolding of
        a tanh network as a statement about small states.
        """
        degree = check.count(degree, "degree")
        if degree >= len(_TANH):
            raise ValueError(f"`degree` must be at most {len(_TANH) - 1}; got {degree}.")
        return cls(
            _TANH[: degree + 1],
            "tanh",
            _tanh,
            _tanh_derivative,
            _tanh_and_derivative,
            kind="tanh",
            parameters={"degree": degree},
            nest_model="tanh_rate_ipn",
        )

    @classmethod
    def biased_tanh(cls, b: float, degree: int = 11) -> Gain:
        """φ(y) = (tanh(y + b) − tanh b)/(1 − tanh² b): it saturates, and is not odd.

        A tanh neuron whose rest lies at b, in units in which its slope there is 1. The
        unfolding sees its Taylor polynomial up to ``degree``, which begins with
        y − tanh(b) y² and converges for |y| < √(b² + π²/4) only.

        Parameters
        ----------
        b : float
            Between −5 and 5.
        degree : int
        """
        value = float(check.host_array(b, "b", ndim=(0,)))
        if abs(value) > _MAX_BIAS:
            raise ValueError(
                f"`b` must lie between −{_MAX_BIAS:g} and {_MAX_BIAS:g}, beyond which tanh "
                f"is flat; got {value:g}."
            )
        degree = check.count(degree, "degree")
        t = float(np.tanh(value))
        return cls(
            tuple(_biased_series(t, degree)),
            f"biased_tanh(b={value:g})",
            partial(_biased, t=t),
            partial(_biased_derivative, t=t),
            partial(_biased_and_derivative, t=t),
            kind="biased_tanh",
            parameters={"b": value, "degree": degree},
        )

    @classmethod
    def custom(
        cls,
        function: Callable[[Any], Any],
        derivative: Callable[[Any], Any],
        name: str = "custom",
    ) -> Gain:
        """A gain of one's own, for `Dynamics` and `simulate`.

        An unfolding knows its slope at rest and nothing more: the linear order exists,
        higher ones do not. A model with it can not be saved.

        Parameters
        ----------
        function : callable
            φ, elementwise, with φ(0) = 0. Write it with the functions of the array
            library whose arrays it is to be called with.
        derivative : callable
            φ'. It is compared once with differences of ``function`` between −3 and 3.
        name : str
            What is printed.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Gain
        >>> Gain.custom(np.arctan, lambda y: 1 / (1 + y**2), "arctan").slope
        1.0
        """
        for given, argument in ((function, "function"), (derivative, "derivative")):
            if not callable(given):
                raise TypeError(f"`{argument}` must be callable; got {given!r}.")
        _check_derivative(function, derivative)
        slope = float(np.asarray(derivative(np.zeros(1)))[0])
        return cls((0.0, slope), str(name), function, derivative)

    @classmethod
    def of_kind(cls, kind: str, parameters: Mapping[str, Any]) -> Gain:
        """The gain that ``kind`` and ``parameters`` of another describe."""
        if kind not in KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(KINDS)}; got {kind!r}.")
        return KINDS[kind](**parameters)

    @property
    def slope(self) -> float:
        """φ'(0)."""
        return self.coefficients[1] if len(self.coefficients) > 1 else 0.0

    @property
    def is_linear(self) -> bool:
        """Whether φ(y) = φ'(0) y exactly."""
        return self._function is None and not self.expands

    @property
    def expands(self) -> bool:
        """Whether an unfolding sees a non-linear part."""
        return len(self.coefficients) > 2

    def __call__(self, y: Any) -> Any:
        """Evaluate φ exactly."""
        return self._function(y) if self._function else _horner(self.coefficients, y)

    def derivative(self, y: Any) -> Any:
        """Evaluate φ' exactly."""
        if self._derivative:
            return self._derivative(y)
        slopes = [k * c for k, c in enumerate(self.coefficients)][1:]
        return _horner(slopes or [0.0], y)

    def with_derivative(self, y: Any) -> tuple[Any, Any]:
        """φ and φ' at once, which often share most of their work."""
        return self._joint(y) if self._joint else (self(y), self.derivative(y))

    def advice(self, scale: float) -> str:
        """How to make the non-linear part smaller by a factor, in words."""
        if "alpha" in self.parameters:
            alpha = self.parameters["alpha"]
            return f"lower alpha from {alpha:g} to {alpha * scale:.2g}"
        if self._function is None:
            return f"scale the non-linear part of the gain by {scale:.2g}"
        # Without a parameter, only smaller states help: a term of degree p falls with the
        # power p − 1 of their size.
        power = next((k for k, c in enumerate(self.coefficients) if k > 1 and c), 2)
        return f"scale the stimuli by {scale ** (1 / (power - 1)):.2g}"


#: Where and how finely a custom gain is compared with its derivative. The differences err
#: by a sixth of φ''' times the step squared and by rounding over the step, about 1e-10
#: each. Round numbers, at which a gain may have a kink, are not on the grid.
_GRID = np.linspace(-3.0, 3.0, 200)
_STEP = 1e-5
_AGREE = 1e-4


def _check_derivative(function: Callable[[Any], Any], derivative: Callable[[Any], Any]):
    """Refuse a gain that is not zero at rest, or whose derivative is another's."""
    found = {}
    for argument, call in (("function", function), ("derivative", derivative)):
        with np.errstate(all="ignore"):
            value = check.host_array(call(_GRID.copy()), argument)
        if value.shape != _GRID.shape:
            raise ValueError(
                f"`{argument}` must work elementwise; for an array of shape {_GRID.shape} "
                f"it returned shape {value.shape}."
            )
        found[argument] = value
    at_rest = float(check.host_array(function(np.zeros(1)), "function").ravel()[0])
    if at_rest != 0:
        raise ValueError(
            "`function` must be zero at zero, so that the resting network stays at rest; "
            f"got φ(0) = {at_rest:g}, subtract it."
        )
    up, down = (np.asarray(function(_GRID + h)) for h in (_STEP, -_STEP))
    difference = (up - down) / (2 * _STEP)
    size = 1 + np.abs(difference)
    wrong = np.abs(found["derivative"] - difference) / size
    worst = int(np.argmax(wrong))
    if wrong[worst] > _AGREE:
        raise ValueError(
            f"`derivative` is not that of `function`: at y = {_GRID[worst]:.3g} it is "
            f"{found['derivative'][worst]:.6g}, and a finite difference gives "
            f"{difference[worst]:.6g}."
        )


def _horner(coefficients: Any, y: Any) -> Any:
    """Polynomial with coefficients in increasing powers, for arrays of any namespace."""
    total = 0 * y + float(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * y + float(c)
    return total


#: Gains by the name under which a file holds them.
KINDS: dict[str, Callable[..., Gain]] = {
    "linear": Gain.linear,
    "quadratic": Gain.quadratic,
    "polynomial": Gain.polynomial,
    "tanh": Gain.tanh,
    "biased_tanh": Gain.biased_tanh,
}
