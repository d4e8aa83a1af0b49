"""Find the state in which an undriven network rests, and check that it is stable.

Newton's method starts from zero, or from the state to which the network itself settles. A
state is refused unless small deviations from it decay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from scipy.integrate import solve_ivp

from .._base.arrays import is_sparse
from .._base.messages import Part, Refusal
from . import spectra
from .gains import Function
from .matrices import Weights, plus_diagonal, scaled_columns, scaled_rows


class UnstableError(Refusal):
    """A network has modes that grow.

    ``abscissa`` is the largest real part of its eigenvalues, at least 1. In discrete time,
    it is the largest absolute value.
    """

    def __init__(self, abscissa: float, *parts: Part) -> None:
        super().__init__(abscissa, *parts)
        self.abscissa = abscissa

    @property
    def _parts(self) -> tuple[Part, ...]:
        return self.args[1:]


#: Largest residual, relative to the terms that cancel in it, and the time that the network
#: may take to settle, in units of its slowest time constant.
_RESIDUAL, _SETTLE = 1e-12, 200.0
#: Numbers of Newton steps, and of halvings of a step that is too long.
_STEPS, _HALVINGS = 50, 20

Map = Callable[[np.ndarray], np.ndarray]
Jacobian = Callable[[np.ndarray], Weights]
Size = Callable[[np.ndarray], float]


def continuous_resting_state(
    W: Weights, bias: np.ndarray, tau: np.ndarray, phi: Function, slope: Function
) -> np.ndarray:
    """Return the stable fixed point (N,) of T ẏ = −y + W φ(y) + b.

    φ and φ' are callables. The time constants (N,) affect stability but do not move the
    fixed point. The function raises an `UnstableError` if small deviations grow, and a
    ValueError if it finds no fixed point.
    """

    def residual(y: np.ndarray) -> np.ndarray:
        return W @ phi(y) + bias - y

    def jacobian(y: np.ndarray) -> Weights:
        return plus_diagonal(scaled_columns(W, slope(y)), -1.0)

    def growth(y: np.ndarray) -> float:
        return spectra.largest(scaled_rows(tau.mean() / tau, jacobian(y)), "real part")

    def settle(y: np.ndarray) -> np.ndarray:
        def slopes(_: float, y: np.ndarray) -> np.ndarray:
            return jacobian(y) / tau[:, None]

        t, integrate = (0.0, _SETTLE * float(tau.max())), cast("Any", solve_ivp)
        method: dict[str, Any] = {"method": "LSODA", "jac": slopes}
        if is_sparse(W):
            method = {"method": "RK45"}  # LSODA would allocate an N×N array

        def rates(_: float, y: np.ndarray) -> np.ndarray:
            return residual(y) / tau

        return integrate(rates, t, y, **method, rtol=1e-8, atol=1e-10).y[:, -1]

    def size(y: np.ndarray) -> float:
        return float((abs(W) @ np.abs(phi(y))).max())

    return _find(residual, jacobian, growth, settle, size, bias)


def discrete_resting_state(
    W: Weights,
    bias: np.ndarray,
    leak: float | np.ndarray,
    phi: Function,
    slope: Function,
) -> np.ndarray:
    """Return the stable fixed point (N,) of y' = (1 − a) y + a φ(W y + b).

    It raises the same errors as `continuous_resting_state`.
    """
    leak = np.broadcast_to(np.asarray(leak, dtype=np.float64), bias.shape)

    def residual(y: np.ndarray) -> np.ndarray:
        return phi(W @ y + bias) - y

    def jacobian(y: np.ndarray) -> Weights:
        return plus_diagonal(scaled_rows(slope(W @ y + bias), W), -1.0)

    def growth(y: np.ndarray) -> float:
        step = plus_diagonal(scaled_rows(leak, jacobian(y)), 1.0)
        return spectra.largest(step, "absolute value") - 1

    def settle(y: np.ndarray) -> np.ndarray:
        for _ in range(int(_SETTLE / leak.min())):
            y = y + leak * residual(y)
        return y

    def size(y: np.ndarray) -> float:
        return float(np.abs(phi(W @ y + bias)).max())

    return _find(residual, jacobian, growth, settle, size, bias)


def _newton(residual: Map, jacobian: Jacobian, y: np.ndarray) -> np.ndarray:
    """Return the end of Newton's method, whose steps lower ‖r‖."""
    r = residual(y)
    for _ in range(_STEPS):
        try:
            step = spectra.solve(jacobian(y), r)
        except np.linalg.LinAlgError:
            break
        size, length = np.linalg.norm(r), 1.0
        for _ in range(_HALVINGS):
            ahead = residual(y - length * step)
            if np.linalg.norm(ahead) < size:
                break
            length /= 2
        else:  # only rounding is left, or there is no way down
            break
        y, r = y - length * step, ahead
    return y


def _find(
    residual: Map,
    jacobian: Jacobian,
    growth: Size,
    settle: Map,
    size: Size,
    bias: np.ndarray,
) -> np.ndarray:
    def fixed_point_near(start: np.ndarray) -> np.ndarray | None:
        if not np.isfinite(start).all():
            return None
        found = _newton(residual, jacobian, start)
        allowed = _RESIDUAL * (size(found) + np.abs(found).max() + np.abs(bias).max())
        close = np.abs(residual(found)).max() <= max(allowed, np.finfo(float).tiny)
        return found if close else None

    zero, tried = np.zeros(len(bias)), None
    at_zero = not residual(zero).any()
    for settled in (False,) if at_zero else (False, True):
        with np.errstate(over="ignore", invalid="ignore"):
            start = settle(zero) if settled else zero
            candidate = zero if at_zero else fixed_point_near(start)
        if candidate is not None:
            tried = growth(candidate)
            if tried < 0:
                return candidate
    if tried is None:
        problem = "leaves the network without a rest state that can be found from zero"
        raise ValueError(f"`bias` {problem}; scale the weights or the bias down.")
    grows = f"grows by {tried:.4g} of its size per time constant or step"
    where = "unstable at its rest state, where a small deviation"
    message = f"`weights` make the network {where} {grows}; scale the weights down."
    raise UnstableError(1 + tried, message)
