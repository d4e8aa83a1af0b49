"""The functions that gains are made of: values, slopes and Taylor coefficients.

Functions of a module, because a lambda does not pickle. Values and slopes are elementwise
on arrays of any namespace. A series takes points (N,) on the host and a degree, and gives
the coefficients c_0 … c_degree of φ(point + d) in powers of d, an array (N,) each.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from ._arrays import namespace


def horner(coefficients: Any, y: Any) -> Any:
    """Polynomial with coefficients in increasing powers."""
    total = 0 * y + float(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * y + float(c)
    return total


def polynomial_series(
    points: np.ndarray, degree: int, coefficients: tuple[float, ...]
) -> list[np.ndarray]:
    """A polynomial in powers of the distance from each point."""
    shifted = []
    for k in range(degree + 1):
        moved = [comb(j, k) * c for j, c in enumerate(coefficients) if j >= k]
        shifted.append(horner(moved or [0.0], points))
    return shifted


def tanh(y: Any) -> Any:
    """Value of tanh."""
    return namespace(y).tanh(y)


def tanh_slope(y: Any) -> Any:
    """1 − tanh²."""
    return 1 - tanh(y) ** 2


def tanh_both(y: Any) -> tuple[Any, Any]:
    """Value and slope of tanh."""
    bent = tanh(y)
    slope = bent * bent
    slope *= -1
    slope += 1
    return bent, slope


def tanh_series(points: np.ndarray, degree: int) -> list[np.ndarray]:
    """From f' = 1 − f²."""
    return _tanh_series_from(np.tanh(points), degree)


def _tanh_series_from(value: np.ndarray, degree: int) -> list[np.ndarray]:
    f = [value]
    for k in range(degree):
        f.append(((k == 0) - _square(f, k)) / (k + 1))
    return f


# (tanh(y + b) − tanh b)/(1 − tanh² b) = tanh y/(1 + tanh b tanh y): nothing cancels near
# rest, and it is exactly zero there.


def biased(y: Any, t: float) -> Any:
    """Biased tanh, t = tanh b."""
    bent = tanh(y)
    return bent / (1 + t * bent)


def biased_slope(y: Any, t: float) -> Any:
    """Slope of the biased tanh."""
    bent = tanh(y)
    return (1 - bent**2) / (1 + t * bent) ** 2


def biased_both(y: Any, t: float) -> tuple[Any, Any]:
    """The biased tanh and its slope."""
    bent, slope = tanh_both(y)
    below = t * bent
    below += 1
    slope /= below
    slope /= below
    bent /= below
    return bent, slope


def biased_series(points: np.ndarray, degree: int, t: float) -> list[np.ndarray]:
    """Tanh around b + point, in the units of the biased one."""
    bent = np.tanh(points)
    f = _tanh_series_from((t + bent) / (1 + t * bent), degree)
    return [biased(points, t), *(c / (1 - t**2) for c in f[1:])]


def sigmoid(y: Any) -> Any:
    """1/(1 + e^−y), written so that nothing overflows."""
    return (1 + tanh(y / 2)) / 2


def sigmoid_slope(y: Any) -> Any:
    """σ (1 − σ) = (1 − tanh²(y/2))/4."""
    return (1 - tanh(y / 2) ** 2) / 4


def sigmoid_both(y: Any) -> tuple[Any, Any]:
    """The sigmoid and its slope."""
    bent, slope = tanh_both(y / 2)
    bent += 1
    bent /= 2
    slope /= 4
    return bent, slope


def sigmoid_series(points: np.ndarray, degree: int) -> list[np.ndarray]:
    """From σ' = σ − σ²."""
    f = [sigmoid(points)]
    for k in range(degree):
        f.append((f[k] - _square(f, k)) / (k + 1))
    return f


def softplus(y: Any) -> Any:
    """log(1 + e^y), written so that nothing overflows."""
    xp = namespace(y)
    return relu(y) + xp.log1p(xp.exp(-xp.abs(y)))


def softplus_series(points: np.ndarray, degree: int) -> list[np.ndarray]:
    """Its slope is the sigmoid."""
    slopes = sigmoid_series(points, degree - 1)
    return [softplus(points), *(c / (k + 1) for k, c in enumerate(slopes))]


def relu(y: Any) -> Any:
    """max(y, 0)."""
    return (y + namespace(y).abs(y)) / 2


def relu_slope(y: Any) -> Any:
    """0 below zero, 1 above, and at zero the mean of both."""
    return (1 + namespace(y).sign(y)) / 2


def _square(f: list[np.ndarray], k: int) -> np.ndarray:
    """Coefficient k of the square of a series."""
    return sum((f[i] * f[k - i] for i in range(1, k + 1)), f[0] * f[k])
