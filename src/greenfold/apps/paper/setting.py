"""The paper's setting, shared by its figures: networks, projections, exact readouts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...math.sphere import maximize_on_sphere
from ...networks.reservoir import Gain, Reservoir
from ...validity import ExpansionWarning


def network(
    seed: int, n_neurons: int = 100, g: float = 0.9, tau: float = 0.25, alpha: float = 0.0
) -> Reservoir:
    """The first stable draw of N(0, g²/N) weights from the stream ``seed``.

    The paper considers no networks that are unstable at rest; of its size, one draw in
    ten is. The weights do not depend on ``alpha``.
    """
    rng = np.random.default_rng(seed)
    while True:
        drawn = Reservoir.random(n_neurons, g=g, tau=tau, rng=rng, allow_unstable=True)
        if drawn.is_stable:
            gain = Gain.quadratic(alpha) if alpha else Gain.linear()
            return Reservoir(drawn.weights, tau, gain)


def unit_vectors(rng: np.random.Generator, n_vectors: int, size: int) -> np.ndarray:
    """Random directions, (n_vectors, size)."""
    drawn = rng.standard_normal((n_vectors, size))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def best_margins(R: np.ndarray, mu: np.ndarray, psi: np.ndarray, eta: float) -> np.ndarray:
    """max_v κ for one response and many stimuli; only the row space of R matters.

    Parameters
    ----------
    R : ndarray (n_steps, n_neurons)
        Response to a unit pulse in each step; steps that the readout has not seen may be
        left out or zero.
    mu : ndarray (n_stimuli, n_steps)
    psi : ndarray (n_stimuli, n_steps, n_steps)
    eta : float

    Returns
    -------
    ndarray (n_stimuli,)
    """
    seen = np.flatnonzero(np.abs(R).max(1) > 0)
    R, mu, psi = R[seen], mu[:, seen], psi[:, seen][:, :, seen]
    if len(R) < R.shape[1]:
        # One more direction stands for all those along which κ does not change.
        basis, _ = np.linalg.qr(R.T)
        R = np.column_stack([R @ basis, np.zeros(len(R))])
    Q = eta * (R.T @ psi @ R)
    return maximize_on_sphere(mu @ R, (Q + Q.transpose(0, 2, 1)) / 2).value


def chunks(total: int, size: int) -> list[range]:
    """The numbers 0 … total − 1 in consecutive pieces."""
    return [range(i, min(i + size, total)) for i in range(0, total, size)]


@contextmanager
def expansion_judged_elsewhere() -> Iterator[None]:
    """Silence `ExpansionWarning` where the validity is among the figure's numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpansionWarning)
        yield
