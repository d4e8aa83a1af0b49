"""Noise of a device: on its input, inside the network, and on the readout.

White noise ξ inside the network, τẏ = −(1 − W) y + … + ξ(t), gives the state the covariance
P(T) at the readout. At linear order it costs exactly (η/2) vᵀPv of the soft margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from .._base import checks as check
from ..networks.matrices import SPARSE_NEURONS, dense, diagonal
from ..networks.reservoir import Reservoir

#: Largest noise whose square, and results computed from it, are finite.
_LARGEST = 1e70


def covariance(value: ArrayLike, name: str, size: int) -> Any:
    """Return the covariance from one standard deviation, one per entry, or a matrix.

    Standard deviations of many entries give a sparse array.
    """
    array = check.host_array(value, name, ndim=(0, 1, 2))
    one = f"be one standard deviation, {size} of them, or a covariance ({size}, {size})"
    fits = array.shape == (size,) * array.ndim
    check.must(fits, name, one, f"shape {array.shape}")
    largest = float(np.abs(array).max(initial=0.0))
    check.must(largest <= _LARGEST, name, f"be at most {_LARGEST:g}", f"{largest:g}")
    if array.ndim < 2:
        check.must((array >= 0).all(), name, "not be negative", f"{array.min():g}")
        squares = np.broadcast_to(array**2, (size,)).copy()
        return np.diag(squares) if size < SPARSE_NEURONS else diagonal(squares)
    if not np.allclose(array, array.T, rtol=1e-8, atol=1e-12 * np.abs(array).max()):
        raise ValueError(f"`{name}` must be symmetric, because it is a covariance.")
    array = (array + array.T) / 2
    values = np.linalg.eigvalsh(array)
    if values[0] < -1e-10 * max(abs(values[-1]), 1e-300):
        least = f"its smallest eigenvalue is {values[0]:.3g}"
        raise ValueError(f"`{name}` must be positive semi-definite; {least}.")
    return array


def state_covariance(
    reservoir: Reservoir, noise: ArrayLike, duration: float | None = None
) -> np.ndarray:
    """Return the covariance of the states under white noise inside a linear network.

    Parameters
    ----------
    reservoir : Reservoir
        The network, used at linear order: τẏ = −(1 − W) y + ξ with ⟨ξ(t) ξ(t')ᵀ⟩ =
        Q δ(t − t'). W includes the slopes of the gain at rest.
    noise : float, array_like (n_neurons,) or (n_neurons, n_neurons)
        √Q for all neurons or for each neuron, or Q itself.
    duration : float, optional
        Time since the network was at rest; infinite by default, if the network is stable.

    Returns
    -------
    ndarray (n_neurons, n_neurons)
        P(T) = ∫₀ᵀ exp(−As/τ) Q/τ² exp(−Aᵀs/τ) ds with A = 1 − W.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import Reservoir
    >>> from greenfold.devices.noise import state_covariance
    >>> neuron = Reservoir(np.zeros((1, 1)), tau=0.5)  # Q/(2τ) for a single one
    >>> state_covariance(neuron, 0.2).round(6)
    array([[0.04]])
    """
    n = reservoir.n_neurons
    tau = np.broadcast_to(np.asarray(reservoir.tau, dtype=np.float64), (n,))
    what, instead = "the covariance of the states", "use `readout_noise`, which needs none"
    Q = dense(covariance(noise, "noise", n), what, instead) / np.outer(tau, tau)
    linear = dense(reservoir.linear_weights, what, instead)
    A = (linear - np.eye(n)) / tau[:, None]
    if duration is None:
        if np.linalg.eigvals(A).real.max() >= 0:
            modes = "a network with growing modes, whose noise has no limit"
            raise ValueError(f"`duration` must be given for {modes}.")
        P = linalg.solve_continuous_lyapunov(A, -Q)
    else:
        P = _until(A, Q, check.positive(duration, "duration"))
    return (P + P.T) / 2


def _until(A: np.ndarray, Q: np.ndarray, duration: float) -> np.ndarray:
    """Return ∫₀ᵀ exp(As) Q exp(Aᵀs) ds by one augmented exponential (Van Loan 1978).

    The exponential is used for a span so short that exp(−As) stays moderate. Longer spans
    follow by doubling, P(2s) = P(s) + exp(As) P(s) exp(Aᵀs).
    """
    n = len(A)
    halvings = max(0, int(np.ceil(np.log2(max(np.linalg.norm(A, 1) * duration, 1e-300)))))
    span = duration / 2**halvings
    block = np.zeros((2 * n, 2 * n))
    block[:n, :n], block[:n, n:], block[n:, n:] = -A, Q, A.T
    made = linalg.expm(block * span)
    E = made[n:, n:].T
    P = E @ made[:n, n:]
    for _ in range(halvings):
        P = P + E @ P @ E.T
        E = E @ E
    return P
