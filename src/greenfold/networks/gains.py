"""Gain functions of the neurons.

Each kind of gain is one entry of `KINDS`; the rest of greenfold uses only the `Gain`
object. The functions that define gains are at module level, because a lambda cannot be
pickled. They work elementwise on arrays of any namespace; functions named `…_both` return
value and slope. A series function takes points (N,) on the host and a degree, and returns
the coefficients c_0 … c_degree of φ(point + d) in powers of d, each (N,).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import comb
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad_vec

from .._base import checks as check
from .._base.arrays import Array, namespace

#: An elementwise function on arrays of the library that its user works with.
Function = Callable[[Any], Any]
PowerSeries = Callable[[np.ndarray, int], list[np.ndarray]]


def horner(coefficients: Sequence[float], y: Array | float) -> Any:
    """Evaluate a polynomial with coefficients in increasing powers."""
    total = 0 * y + float(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * y + float(c)
    return total


def polynomial_series(
    points: np.ndarray, degree: int, coefficients: tuple[float, ...]
) -> list[np.ndarray]:
    """Expand a polynomial in powers of the distance from each point."""
    shifted: list[np.ndarray] = []
    for k in range(degree + 1):
        moved = [comb(j, k) * c for j, c in enumerate(coefficients) if j >= k]
        shifted.append(horner(moved or [0.0], points))
    return shifted


def tanh(y: Array) -> Any:
    """Return tanh(y)."""
    return namespace(y).tanh(y)


def tanh_both(y: Array) -> tuple[Any, Any]:
    """Return tanh(y) and its slope 1 − tanh²(y)."""
    bent = tanh(y)
    return bent, 1 - bent * bent


def biased(y: Array, t: float) -> Any:
    """Return the biased tanh for t = tanh b, in a form without cancellation near rest.

    (tanh(y + b) − tanh b)/(1 − tanh² b) = tanh y/(1 + tanh b tanh y).
    """
    bent = tanh(y)
    return bent / (1 + t * bent)


def biased_both(y: Array, t: float) -> tuple[Any, Any]:
    """Return the biased tanh and its slope."""
    bent, slope = tanh_both(y)
    below = t * bent
    below += 1
    slope /= below
    slope /= below
    bent /= below
    return bent, slope


def biased_series(points: np.ndarray, degree: int, t: float) -> list[np.ndarray]:
    """Return the series of the biased tanh, from f' = 1 − f² for tanh at b + point."""
    bent = np.tanh(points)
    f = [(t + bent) / (1 + t * bent)]
    for k in range(degree):
        f.append(((k == 0) - _square(f, k)) / (k + 1))
    return [biased(points, t), *(c / (1 - t**2) for c in f[1:])]


def sigmoid(y: Array) -> Any:
    """Return the sigmoid 1/(1 + e⁻ʸ), in a form that cannot overflow."""
    return (1 + tanh(y / 2)) / 2


def sigmoid_both(y: Array) -> tuple[Any, Any]:
    """Return the sigmoid and its slope σ (1 − σ) = (1 − tanh²(y/2))/4."""
    bent, slope = tanh_both(y / 2)
    bent += 1
    bent /= 2
    slope /= 4
    return bent, slope


def sigmoid_series(points: np.ndarray, degree: int) -> list[np.ndarray]:
    """Return the series of the sigmoid, from σ' = σ − σ²."""
    f = [sigmoid(points)]
    for k in range(degree):
        f.append((f[k] - _square(f, k)) / (k + 1))
    return f


def softplus(y: Array) -> Any:
    """Return the softplus log(1 + eʸ), in a form that cannot overflow."""
    xp = namespace(y)
    return relu(y) + xp.log1p(xp.exp(-xp.abs(y)))


def softplus_series(points: np.ndarray, degree: int) -> list[np.ndarray]:
    """Return the series of the softplus, whose slope is the sigmoid."""
    slopes = sigmoid_series(points, degree - 1)
    return [softplus(points), *(c / (k + 1) for k, c in enumerate(slopes))]


def relu(y: Array) -> Any:
    """Return max(y, 0)."""
    return (y + namespace(y).abs(y)) / 2


def relu_slope(y: Array) -> Any:
    """Return the slope of relu: 0 below zero, 1 above zero, ½ at zero."""
    return (1 + namespace(y).sign(y)) / 2


def _square(f: list[np.ndarray], k: int) -> np.ndarray:
    """Return coefficient k of the square of a series."""
    return sum((f[i] * f[k - i] for i in range(1, k + 1)), f[0] * f[k])


#: Taylor coefficients of tanh, from tan(iy)/i: (-1)^(k-1) 2^2k (2^2k - 1) B_2k / (2k)!.
_TANH = (0, 1, 0, -1 / 3, 0, 2 / 15, 0, -17 / 315, 0, 62 / 2835, 0, -1382 / 155925)

#: Relative tolerance of the averages over background noise.
_QUADRATURE = 1e-10
#: Deviations at which they end: the weight of the noise is below 1e-31 there.
_FAR = 12.0
#: Beyond this bias, rounding leaves eleven digits or fewer of 1 − tanh b.
_MAX_BIAS = 5.0


@dataclass(frozen=True)
class Gain:
    """A gain function φ of the neurons, with its Taylor coefficients at rest.

    Make one with a class method such as `Gain.quadratic` or `Gain.tanh`.

    Attributes
    ----------
    coefficients : tuple of float
        Taylor coefficients φ(0), c_1, c_2, … in increasing powers, for the unfolding of a
        network that rests at zero; `simulate` and `Dynamics` use the exact function.
    name : str
        The printed name.
    kind, parameters
        The constructor in `KINDS` and its arguments; None for a gain made from your own
        functions, which cannot be saved.
    nest_model : str or None
        The rate neuron of NEST that has this gain.
    """

    coefficients: tuple[float, ...]
    name: str
    kind: str | None = field(default=None, repr=False, compare=False)
    parameters: Mapping[str, Any] = field(
        default_factory=dict[str, Any], repr=False, compare=False
    )
    nest_model: str | None = field(default=None, repr=False, compare=False)
    _function: Function | None = field(default=None, repr=False, compare=False)
    #: φ and φ' together, or φ' alone.
    _both: Function | None = field(default=None, repr=False, compare=False)
    _derivative: Function | None = field(default=None, repr=False, compare=False)
    _series: PowerSeries | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        coefficients = check.host_array(self.coefficients, "coefficients", ndim=(1,))
        at_rest = coefficients[0] == 0 or self._function is not None
        wanted = "begin with φ(0) = 0, so that the resting network stays at rest"
        check.must(at_rest, "coefficients", wanted, coefficients[0])
        trimmed = np.trim_zeros(coefficients, "b")
        object.__setattr__(self, "coefficients", tuple(float(c) for c in trimmed) or (0.0,))

    @classmethod
    def linear(cls) -> Gain:
        """Make the linear gain φ(y) = y."""
        return cls((0.0, 1.0), "linear", "linear", nest_model="lin_rate_ipn")

    @classmethod
    def quadratic(cls, alpha: float) -> Gain:
        """Make the quadratic gain φ(y) = y + α y², the paper's weak non-linearity."""
        value = check.number(alpha, "alpha")
        name = f"quadratic(alpha={value:g})"
        return cls((0.0, 1.0, value), name, "quadratic", {"alpha": value})

    @classmethod
    def polynomial(cls, coefficients: ArrayLike) -> Gain:
        """Make the polynomial gain φ(y) = Σ_k c_k yᵏ from c_0 = 0, c_1, c_2, …."""
        values = check.host_array(coefficients, "coefficients", ndim=(1,)).tolist()
        made = {"coefficients": values}
        return cls(tuple(values), f"polynomial({values})", "polynomial", made)

    @classmethod
    def tanh(cls, degree: int = 11) -> Gain:
        """Make the gain φ(y) = tanh(y).

        The unfolding uses its Taylor polynomial up to ``degree``. The series converges only
        for |y| < π/2, so an unfolding is valid for small states.
        """
        degree = check.count(degree, "degree")
        most = len(_TANH) - 1
        check.must(degree <= most, "degree", f"be at most {most}", degree)
        made = cls._smooth("tanh", degree, partial(biased_series, t=0.0), tanh, tanh_both)
        exact = _TANH[: degree + 1]
        return replace(made, coefficients=exact, nest_model="tanh_rate_ipn")

    @classmethod
    def biased_tanh(cls, b: float, degree: int = 11) -> Gain:
        """Make the gain φ(y) = (tanh(y + b) − tanh b)/(1 − tanh² b).

        It saturates and is not odd. It describes a tanh neuron that rests at b, in units in
        which its slope there is 1. The unfolding uses its Taylor polynomial up to
        ``degree``, which begins with y − tanh(b) y² and converges only for |y| <
        √(b² + π²/4). b lies between −5 and 5.
        """
        value, most = check.number(b, "b"), f"{_MAX_BIAS:g}"
        wanted = f"lie between −{most} and {most}, beyond which tanh is flat"
        check.must(abs(value) <= _MAX_BIAS, "b", wanted, f"{value:g}")
        t = float(np.tanh(value))
        series, both = partial(biased_series, t=t), partial(biased_both, t=t)
        made = cls._smooth("biased_tanh", degree, series, partial(biased, t=t), both)
        parameters = {"b": value, **made.parameters}
        return replace(made, name=f"biased_tanh(b={value:g})", parameters=parameters)

    @classmethod
    def sigmoid(cls, degree: int = 11) -> Gain:
        """Make the gain φ(y) = 1/(1 + e⁻ʸ), a rate between 0 and 1.

        It is ½ at zero, so a network with this gain does not rest at zero
        (`Reservoir.rest`). The unfolding uses its Taylor polynomial around the resting
        state up to ``degree``; at zero the series converges for |y| < π.
        """
        return cls._smooth("sigmoid", degree, sigmoid_series, sigmoid, sigmoid_both)

    @classmethod
    def softplus(cls, degree: int = 11) -> Gain:
        """Make the gain φ(y) = log(1 + eʸ), a rectified gain without a kink.

        It is log 2 at zero; everything else is as in `sigmoid`.
        """
        made = cls._smooth("softplus", degree, softplus_series, softplus)
        return replace(made, _derivative=sigmoid)

    @classmethod
    def _smooth(
        cls,
        kind: str,
        degree: int,
        series: PowerSeries,
        function: Function,
        both: Function | None = None,
    ) -> Gain:
        """Make a gain from its Taylor series at zero up to ``degree``."""
        degree = check.count(degree, "degree")
        coefficients = tuple(float(c[0]) for c in series(np.zeros(1), degree))
        made = cls(coefficients, kind, kind, {"degree": degree}, _function=function)
        return replace(made, _both=both, _series=series)

    @classmethod
    def relu(cls) -> Gain:
        """Make the gain φ(y) = max(y, 0), for `Dynamics` and `simulate`.

        It has no Taylor series. An unfolding can only have order 0 and takes the slope of
        each neuron at rest. Without a bias, all neurons rest on the kink, where the slope
        is ½.
        """
        return cls((0.0, 0.5), "relu", "relu", _function=relu, _derivative=relu_slope)

    @classmethod
    def custom(cls, function: Function, derivative: Function, name: str = "custom") -> Gain:
        """Make a gain from your own functions, for `Dynamics` and `simulate`.

        An unfolding knows only its slope at rest, so it has linear order. A model with a
        custom gain cannot be saved.

        Parameters
        ----------
        function : callable
            φ with φ(0) = 0, elementwise on arrays of the library you use.
        derivative : callable
            φ'. It is checked once against differences of ``function`` between −3 and 3.
        name : str

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Gain
        >>> Gain.custom(np.arctan, lambda y: 1 / (1 + y**2), "arctan").slope
        1.0
        """
        _check_derivative(function, derivative)
        slope = float(np.asarray(derivative(np.zeros(1)))[0])
        return cls((0.0, slope), str(name), _function=function, _derivative=derivative)

    @classmethod
    def under_noise(cls, function: Function, mean: float, deviation: float) -> Gain:
        """Make the quadratic gain that a weak signal sees on top of background noise.

        The input of a neuron is m + σξ + d with Gaussian noise ξ, and d is the signal. The
        mean response ⟨φ(m + σξ + d)⟩ minus its value without a signal is c₁d + c₂d² + …
        with c_k = ⟨He_k(ξ) φ(m + σξ)⟩/(k! σᵏ), the Hermite coefficients of φ. (The paper
        refers to this as a Gram–Charlier expansion.) The paper's α is c₂/c₁ for weights
        c₁W, because the network with weights W and the gain c₁d + c₂d² obeys the same
        equation.

        Parameters
        ----------
        function : callable
            φ, elementwise on NumPy arrays. It may have steps and kinks, such as a
            threshold. A `Gain` is a function too.
        mean, deviation : float
            m and σ > 0 of the input without the signal.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Gain
        >>> gain = Gain.under_noise(Gain.relu(), mean=0.0, deviation=1.0)
        >>> np.round(gain.coefficients, 6).tolist()
        [0.0, 0.5, 0.199471]
        """
        check.must(callable(function), "function", "be callable", repr(function), TypeError)
        m, sigma = check.number(mean, "mean"), check.positive(deviation, "deviation")

        def weighted(xi: float) -> np.ndarray:
            y = np.array([m + sigma * xi])
            with np.errstate(all="ignore"):
                value = check.host_array(function(y), "function", ndim=(1,))
            hermite = np.array([xi, (xi**2 - 1) / 2])
            return hermite * value[0] * np.exp(-0.5 * xi**2) / np.sqrt(2 * np.pi)

        limits: Any = {"epsabs": 0.0, "epsrel": _QUADRATURE, "norm": "max", "limit": 1000}
        found, error, info = cast(
            Any, quad_vec(weighted, -_FAR, _FAR, full_output=True, **limits)
        )
        # The coefficients may vanish: then the size of φ is what rounding is relative to.
        size = float(np.abs(np.asarray(function(m + sigma * np.linspace(-1, 1, 5)))).max())
        allowed = _QUADRATURE * max(size, float(np.abs(found).max()))
        ends = max(np.abs(weighted(end)).max() for end in (-_FAR, _FAR))
        wanted, got = "have a mean under the noise", f"an error of {max(error, ends):.1g}"
        fits = (info.success or error <= allowed) and ends <= allowed
        check.must(fits, "function", wanted, got)
        found = np.where(np.abs(found) > allowed, found, 0.0)
        first, second = found[0] / sigma, found[1] / sigma**2
        return cls.polynomial([0.0, float(first), float(second)])

    @classmethod
    def of_kind(cls, kind: str, parameters: Mapping[str, Any]) -> Gain:
        """Make the gain of a ``kind`` with the given ``parameters``."""
        check.must(kind in KINDS, "kind", f"be one of {', '.join(KINDS)}", repr(kind))
        return KINDS[kind](**parameters)

    @property
    def offset(self) -> float:
        """The value φ(0) at zero."""
        return self.coefficients[0]

    @property
    def slope(self) -> float:
        """The slope φ'(0) at zero."""
        return self.coefficients[1] if len(self.coefficients) > 1 else 0.0

    @property
    def is_linear(self) -> bool:
        """Whether φ(y) = φ'(0) y exactly."""
        return self._function is None and not self.expands

    @property
    def expands(self) -> bool:
        """Whether an unfolding sees a non-linear part."""
        return len(self.coefficients) > 2

    def around(self, points: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return Taylor coefficients of φ(point + d) − φ(point) in d, at points (N,).

        They run from c_0 = 0 to the degree of the gain; without a series, to the slope.
        """
        degree = int(self.parameters.get("degree", len(self.coefficients) - 1))
        if self._series is not None:
            found = self._series(points, degree)
        elif self._function is None:
            found = polynomial_series(points, degree, self.coefficients)
        else:
            found = [points, np.asarray(self.derivative(points), dtype=np.float64)]
        return (np.zeros(len(points)), *found[1:])

    def __call__(self, y: Array | float) -> Any:
        """Evaluate φ exactly."""
        return self._function(y) if self._function else horner(self.coefficients, y)

    def derivative(self, y: Array | float) -> Any:
        """Evaluate φ' exactly."""
        if self._derivative:
            return self._derivative(y)
        if self._both:
            return self._both(y)[1]
        slopes = [k * c for k, c in enumerate(self.coefficients)][1:]
        return horner(slopes or [0.0], y)

    def with_derivative(self, y: Array) -> tuple[Any, Any]:
        """Evaluate φ and φ' together, which often share most of the work."""
        return self._both(y) if self._both else (self(y), self.derivative(y))

    def advice(self, scale: float) -> str:
        """Return advice in words on how to make the non-linear part smaller by a factor."""
        if "alpha" in self.parameters:
            alpha = self.parameters["alpha"]
            return f"lower alpha from {alpha:g} to {alpha * scale:.2g}"
        if self._function is None:
            return f"scale the non-linear part of the gain by {scale:.2g}"
        # Without a parameter, only smaller states help: relative to the linear term, a term
        # of degree p shrinks with power p − 1 of their size.
        power = next((k for k, c in enumerate(self.coefficients) if k > 1 and c), 2)
        return f"scale the stimuli by {scale ** (1 / (power - 1)):.2g}"


#: Points and step at which a custom gain is compared with its derivative. The differences
#: err by about 1e-10. The grid avoids round numbers, where a gain may have a kink.
_GRID, _STEP, _AGREE = np.linspace(-3.0, 3.0, 200), 1e-5, 1e-4


def _check_derivative(function: Function, derivative: Function) -> None:
    """Refuse a gain that is not zero at zero, or whose derivative does not fit."""
    found: dict[str, np.ndarray] = {}
    for argument, call in (("function", function), ("derivative", derivative)):
        check.must(callable(call), argument, "be callable", repr(call), TypeError)
        with np.errstate(all="ignore"):
            value = check.host_array(call(_GRID.copy()), argument)
        shape, got = _GRID.shape, f"shape {value.shape}"
        check.must(value.shape == shape, argument, f"return shape {shape} for y", got)
        found[argument] = value
    at_rest = float(check.host_array(function(np.zeros(1)), "function").ravel()[0])
    wanted = "be zero at zero, so that the resting network stays at rest"
    check.must(at_rest == 0, "function", wanted, f"φ(0) = {at_rest:g}, subtract it")
    up, down = (np.asarray(function(_GRID + h)) for h in (_STEP, -_STEP))
    difference = (up - down) / (2 * _STEP)
    given = found["derivative"]
    wrong = np.abs(given - difference) / (1 + np.abs(difference))
    worst = int(np.argmax(wrong))
    here = f"at y = {_GRID[worst]:.3g} it is {given[worst]:.6g}"
    gives = f"a finite difference gives {difference[worst]:.6g}"
    problem = f"`derivative` is not the derivative of `function`: {here}, and {gives}."
    check.require(wrong[worst] <= _AGREE, problem)


#: Gains by their name in a file.
_NAMES = ("linear", "quadratic", "polynomial", "tanh", "biased_tanh", "sigmoid", "softplus")
KINDS: dict[str, Callable[..., Gain]] = {k: getattr(Gain, k) for k in (*_NAMES, "relu")}
