"""The gain without its linear part, around the state in which the network rests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._products import place


@dataclass(frozen=True, eq=False)
class Excess:
    """f(d) = φ(y* + d) − φ(y*) − φ'(y*) d for deviations d from a rest state y*.

    Make one with `Excess.around`. What f leaves out is linear and goes into the
    propagators, where it is exact.

    Attributes
    ----------
    function, derivative : callable
        φ and φ', elementwise on arrays of any namespace.
    rest, offset, slope : array (N,) or None
        y*, φ(y*) and φ'(y*); None stands for 0, 0 and 1, which cost nothing.
    joint : callable or None
        Both at once, y ↦ (φ(y), φ'(y)), where they share work.
    """

    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    rest: Any = None
    offset: Any = None
    slope: Any = None
    joint: Callable[[Any], tuple[Any, Any]] | None = None

    @classmethod
    def around(
        cls,
        rest: np.ndarray,
        function: Callable[[Any], Any],
        derivative: Callable[[Any], Any],
        joint: Callable[[Any], tuple[Any, Any]] | None = None,
    ) -> Excess:
        """The excess at a rest state (N,) on the host."""
        rest = np.asarray(rest, dtype=np.float64)
        offset = np.asarray(function(rest), dtype=np.float64)
        slope = np.asarray(derivative(rest), dtype=np.float64)
        return cls(
            function,
            derivative,
            rest if rest.any() else None,
            offset if offset.any() else None,
            slope if (slope != 1).any() else None,
            joint,
        )

    def on(self, reference: Any, dtype: Any) -> Excess:
        """The same with its arrays where ``reference`` lives."""
        moved = {
            name: place(value, reference, dtype)
            for name in ("rest", "offset", "slope")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, **moved)

    def _shifted(self, d: Any) -> Any:
        return d if self.rest is None else d + self.rest

    def _without_line(self, value: Any, d: Any) -> Any:
        # ``value`` comes from the user's function and may be its argument, or kept by
        # it: it is never written to.
        if self.slope is None:
            left = value - d
        else:
            left = d * self.slope
            left *= -1
            left += value
        if self.offset is not None:
            left -= self.offset
        return left

    def value(self, d: Any) -> Any:
        """f(d), a new array shaped like ``d``, (..., N)."""
        return self._without_line(self.function(self._shifted(d)), d)

    def value_and_slope(self, d: Any) -> tuple[Any, Any]:
        """f(d) and f'(d)."""
        y = self._shifted(d)
        if self.joint is not None:
            value, slope = self.joint(y)
        else:
            value, slope = self.function(y), self.derivative(y)
        excess_slope = slope - (1.0 if self.slope is None else self.slope)
        return self._without_line(value, d), excess_slope
