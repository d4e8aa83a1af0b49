"""Find the state in which an undriven network rests, and check that it is stable.

Newton's method starts from zero, or from the state to which the network itself settles. A
state is refused unless small deviations from it decay.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import root

from .gains import Function


class UnstableError(ValueError):
    """A network has modes that grow.

    ``abscissa`` is the largest real part of its eigenvalues, at least 1. In discrete time,
    it is the largest absolute value.
    """

    def __init__(self, message: str, abscissa: float) -> None:
        super().__init__(message)
        self.abscissa = abscissa


#: Largest residual, relative to the terms that cancel in it, and the time that the network
#: may take to settle, in units of its slowest time constant.
_RESIDUAL, _SETTLE = 1e-12, 200.0

Map = Callable[[np.ndarray], np.ndarray]
Size = Callable[[np.ndarray], float]


def continuous_resting_state(
    W: np.ndarray, bias: np.ndarray, tau: np.ndarray, phi: Function, slope: Function
) -> np.ndarray:
    """Return the stable fixed point (N,) of T ẏ = −y + W φ(y) + b.

    φ and φ' are callables. The time constants (N,) affect stability but do not move the
    fixed point. The function raises an `UnstableError` if small deviations grow, and a
    ValueError if it finds no fixed point.
    """

    def residual(y: np.ndarray) -> np.ndarray:
        return W @ phi(y) + bias - y

    def jacobian(y: np.ndarray) -> np.ndarray:
        return W * slope(y) - np.eye(len(W))

    def growth(y: np.ndarray) -> float:
        return abscissa(jacobian(y) * (tau.mean() / tau)[:, None])

    def settle(y: np.ndarray) -> np.ndarray:
        def slopes(_: float, y: np.ndarray) -> np.ndarray:
            return jacobian(y) / tau[:, None]

        t = 0.0, _SETTLE * float(tau.max())
        return solve_ivp(
            lambda _, y: residual(y) / tau, t, y, "LSODA", jac=slopes, rtol=1e-8, atol=1e-10
        ).y[:, -1]

    def size(y: np.ndarray) -> float:
        return float((np.abs(W) @ np.abs(phi(y))).max())

    return _find(residual, jacobian, growth, settle, size, bias)


def discrete_resting_state(
    W: np.ndarray,
    bias: np.ndarray,
    leak: float | np.ndarray,
    phi: Function,
    slope: Function,
) -> np.ndarray:
    """Return the stable fixed point (N,) of y' = (1 − a) y + a φ(W y + b).

    It raises the same errors as `continuous_resting_state`.
    """
    leak = np.broadcast_to(np.asarray(leak, dtype=np.float64), (len(W),))

    def residual(y: np.ndarray) -> np.ndarray:
        return phi(W @ y + bias) - y

    def jacobian(y: np.ndarray) -> np.ndarray:
        return slope(W @ y + bias)[:, None] * W - np.eye(len(W))

    def growth(y: np.ndarray) -> float:
        step = np.eye(len(W)) + leak[:, None] * jacobian(y)
        return float(np.abs(np.linalg.eigvals(step)).max()) - 1

    def settle(y: np.ndarray) -> np.ndarray:
        for _ in range(int(_SETTLE / leak.min())):
            y = y + leak * residual(y)
        return y

    def size(y: np.ndarray) -> float:
        return float(np.abs(phi(W @ y + bias)).max())

    return _find(residual, jacobian, growth, settle, size, bias)


def abscissa(matrix: np.ndarray) -> float:
    """Return the largest real part of the eigenvalues."""
    return float(np.real(np.linalg.eigvals(matrix)).max())


def _find(
    residual: Map, jacobian: Map, growth: Size, settle: Map, size: Size, bias: np.ndarray
) -> np.ndarray:
    def fixed_point_near(start: np.ndarray) -> np.ndarray | None:
        if not np.isfinite(start).all():
            return None
        found = root(residual, start, jac=jacobian, method="hybr", tol=1e-13).x
        # Add two Newton steps: the error that `root` leaves is the square of its step.
        for _ in range(2):
            found = found - np.linalg.lstsq(jacobian(found), residual(found), rcond=None)[0]
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
    raise UnstableError(message, 1 + tried)
