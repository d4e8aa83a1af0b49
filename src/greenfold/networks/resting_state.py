"""The state in which an undriven network rests, and whether it stays there.

A bias, or a gain that is not zero at zero, moves the rest state away from zero. It is found
by Newton's method from zero, or from where the network itself settles when that finds a
state that is not stable; both are refused unless small deviations decay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import root


class UnstableError(ValueError):
    """A network has modes that grow.

    Attributes
    ----------
    abscissa : float
        Largest real part of its eigenvalues, at least 1; of a map the largest absolute
        value.
    """

    def __init__(self, message: str, abscissa: float) -> None:
        super().__init__(message)
        self.abscissa = abscissa


#: Residual allowed, relative to the size of the terms that cancel in it.
_RESIDUAL = 1e-12
#: Time over which the network may settle, in its slowest time constants.
_SETTLE = 200.0


def rest_of_rates(
    weights: np.ndarray,
    bias: np.ndarray,
    tau: np.ndarray,
    function: Callable[[Any], Any],
    derivative: Callable[[Any], Any],
) -> np.ndarray:
    """Stable fixed point of T ẏ = −y + W φ(y) + b.

    Parameters
    ----------
    weights : ndarray (N, N)
    bias : ndarray (N,)
    tau : ndarray (N,)
        Time constants; they decide on stability, not on where the fixed point is.
    function, derivative : callable
        φ and φ'.

    Returns
    -------
    ndarray (N,)

    Raises
    ------
    UnstableError
        Where small deviations from the fixed point grow.
    ValueError
        Where no fixed point is found.
    """
    identity = np.eye(len(weights))

    def residual(y: np.ndarray) -> np.ndarray:
        return weights @ function(y) + bias - y

    def jacobian(y: np.ndarray) -> np.ndarray:
        return weights * derivative(y) - identity

    def growth(y: np.ndarray) -> float:
        rates = np.linalg.eigvals(jacobian(y) * (tau.mean() / tau)[:, None])
        return float(rates.real.max())

    def settle(y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            run = solve_ivp(
                lambda _, y: residual(y) / tau,
                (0.0, _SETTLE * float(tau.max())),
                y,
                method="LSODA",
                rtol=1e-8,
                atol=1e-10,
                jac=lambda _, y: jacobian(y) / tau[:, None],
            )
        return run.y[:, -1]

    def size(y: np.ndarray) -> float:
        return float((np.abs(weights) @ np.abs(function(y))).max())

    return _find(residual, jacobian, growth, settle, size, bias)


def rest_of_map(
    weights: np.ndarray,
    bias: np.ndarray,
    leak: float | np.ndarray,
    function: Callable[[Any], Any],
    derivative: Callable[[Any], Any],
) -> np.ndarray:
    """Stable fixed point of y' = (1 − a) y + a φ(W y + b).

    Parameters and errors are those of `rest_of_rates`, with the leak a instead of time
    constants.
    """
    identity = np.eye(len(weights))
    leak = np.broadcast_to(np.asarray(leak, dtype=np.float64), (len(weights),))

    def residual(y: np.ndarray) -> np.ndarray:
        return function(weights @ y + bias) - y

    def jacobian(y: np.ndarray) -> np.ndarray:
        return derivative(weights @ y + bias)[:, None] * weights - identity

    def growth(y: np.ndarray) -> float:
        step = identity + leak[:, None] * jacobian(y)
        return float(np.abs(np.linalg.eigvals(step)).max()) - 1

    def settle(y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(int(_SETTLE / leak.min())):
                y = y + leak * residual(y)
        return y

    def size(y: np.ndarray) -> float:
        return float(np.abs(function(weights @ y + bias)).max())

    return _find(residual, jacobian, growth, settle, size, bias)


def _find(residual, jacobian, growth, settle, size, bias: np.ndarray) -> np.ndarray:
    zero = np.zeros(len(bias))

    def polished(start: np.ndarray) -> np.ndarray | None:
        """A fixed point near ``start``, or None."""
        if not np.isfinite(start).all():
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            found = root(residual, start, jac=jacobian, method="hybr", tol=1e-13).x
            # Two more steps of Newton: what `root` leaves is the square of its step.
            for _ in range(2):
                step = np.linalg.lstsq(jacobian(found), residual(found), rcond=None)[0]
                found = found - step
        allowed = _RESIDUAL * (size(found) + np.abs(found).max() + np.abs(bias).max())
        close = np.abs(residual(found)).max() <= max(allowed, np.finfo(float).tiny)
        return found if close else None

    if not residual(zero).any():
        candidates = iter([zero])
    else:
        candidates = (polished(s) for s in _starts(zero, settle))
    tried = None
    for candidate in candidates:
        if candidate is None:
            continue
        tried = growth(candidate)
        if tried < 0:
            return candidate
    if tried is None:
        raise ValueError(
            "`bias` leaves the network without a rest state that could be found from "
            "zero; scale the weights or the bias down."
        )
    raise UnstableError(
        "`weights` make the network unstable at its rest state, where a small deviation "
        f"grows by {tried:.4g} of itself in a time constant or step; scale the weights "
        "down.",
        1 + tried,
    )


def _starts(zero: np.ndarray, settle):
    yield zero
    yield settle(zero)
