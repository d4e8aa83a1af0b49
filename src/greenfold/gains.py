"""Gain functions of the neurons: what is evaluated, expanded, saved and simulated.

A gain is one entry of `KINDS`: a constructor that says by which name and numbers it can be
made again. Everything else asks the gain itself, so a new one is written here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Gain:
    """Gain function φ of the neurons, with its Taylor coefficients at rest.

    Make one with `Gain.linear`, `Gain.quadratic`, `Gain.polynomial` or `Gain.tanh`.

    Attributes
    ----------
    coefficients : tuple of float
        Taylor coefficients c_0 = 0, c_1, c_2, … of φ in increasing powers, used by
        the unfolding. `simulate` uses the exact function instead.
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
            kind="tanh",
            parameters={"degree": degree},
            nest_model="tanh_rate_ipn",
        )

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
}
