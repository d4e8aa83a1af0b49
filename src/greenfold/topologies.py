"""Weights of networks by their plan: random, of two populations, a ring, oscillators.

Pure functions that return matrices; `Reservoir` and `EchoStateNetwork` make networks of
them. W_ij is the connection from neuron j to neuron i.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from . import _validation as check
from .rest import UnstableError

Made = TypeVar("Made")


def random_weights(
    n_neurons: int, g: float, rng: np.random.Generator, connectivity: float = 1.0
) -> np.ndarray:
    """W_ij ~ N(0, g²/N), or as many fewer and stronger ones as ``connectivity`` says.

    Parameters
    ----------
    n_neurons : int
    g : float
        The eigenvalues fill a disc of about this radius.
    rng : numpy Generator
    connectivity : float
        Probability of a connection.
    """
    spread = g / np.sqrt(n_neurons * connectivity)
    weights = rng.standard_normal((n_neurons, n_neurons)) * spread
    if connectivity < 1:
        weights *= rng.random(weights.shape) < connectivity
    return weights


def scaled_to_radius(weights: np.ndarray, radius: float) -> np.ndarray:
    """The same weights with the largest |λ| at ``radius``."""
    found = float(np.abs(np.linalg.eigvals(weights)).max())
    # Exactly: LAPACK first permutes the weights of a network without loops to a triangle.
    if found == 0:
        raise ValueError(
            "`spectral_radius` cannot be reached: the network drawn has no loop, so that "
            "all its eigenvalues are zero; raise `connectivity` or the number of neurons."
        )
    return weights * (radius / found)


def cycle_weights(n_neurons: int, weight: float) -> np.ndarray:
    """A ring: neuron i drives neuron i + 1, and the last one the first."""
    return weight * np.roll(np.eye(n_neurons), 1, axis=0)


def delay_line_weights(n_neurons: int, weight: float) -> np.ndarray:
    """A chain: neuron i drives neuron i + 1, and the last one none."""
    return weight * np.eye(n_neurons, k=-1)


def dale_weights(
    n_excitatory: int,
    n_inhibitory: int,
    g: float,
    rng: np.random.Generator,
    connectivity: float = 1.0,
    inhibition: float | None = 1.0,
) -> np.ndarray:
    """Weights that obey Dale's law: a column has one sign.

    Strengths are those of a normal distribution without its sign. Each neuron then has its
    inhibitory inputs scaled to the given ratio, and all weights to the given radius: of a
    matrix whose columns have variances σ_j², the bulk of the eigenvalues fills a disc of
    radius √Σσ_j², and where excitation and inhibition of every row cancel nothing lies
    outside of it (Rajan and Abbott, Phys. Rev. Lett. 97, 2006).

    Parameters
    ----------
    n_excitatory, n_inhibitory : int
        The excitatory ones come first.
    g : float
        Radius of that disc.
    rng : numpy Generator
    connectivity : float
        Probability of a connection.
    inhibition : float, optional
        Sum of the inhibitory over that of the excitatory weights onto each neuron, where
        it has both; None leaves them as they are drawn.
    """
    n_neurons = n_excitatory + n_inhibitory
    weights = np.abs(rng.standard_normal((n_neurons, n_neurons)))
    if connectivity < 1:
        weights *= rng.random(weights.shape) < connectivity
    excited, inhibited = weights[:, :n_excitatory], weights[:, n_excitatory:]
    inhibited *= -1
    if inhibition is not None:
        up, down = excited.sum(1), -inhibited.sum(1)
        both = (up > 0) & (down > 0)
        inhibited[both] *= (inhibition * up[both] / down[both])[:, None]
    radius = float(np.sqrt(weights.var(axis=0).sum()))
    return weights * (g / radius) if radius else weights


def connection_probability(connectivity: float) -> float:
    """Return ``connectivity`` as a number in (0, 1]."""
    value = check.positive(connectivity, "connectivity")
    if value > 1:
        raise ValueError(
            f"`connectivity` is the share of connections that exist and must be at most 1; "
            f"got {value:g}."
        )
    return value


def checked_chain(n_neurons: int, weight: float) -> tuple[int, float]:
    """Size and weight of a ring or chain."""
    value = float(check.host_array(weight, "weight", ndim=(0,)))
    return check.count(n_neurons, "n_neurons"), value


def by_population(value: Any, sizes: tuple[int, int]) -> Any:
    """A value for each neuron from one for each of two populations, or as it is."""
    if value is None or np.ndim(value) != 1 or np.shape(value) != (2,) or sum(sizes) == 2:
        return value
    return np.repeat(np.asarray(value), sizes)


def scaling(
    draw: Callable[[], np.ndarray], spectral_radius: float | None
) -> Callable[[], np.ndarray]:
    """Draws scaled to a spectral radius, where one is asked for."""
    if spectral_radius is None:
        return draw
    radius = check.positive(spectral_radius, "spectral_radius")
    return lambda: scaled_to_radius(draw(), radius)


def first_stable(
    draw: Callable[[], np.ndarray],
    make: Callable[[np.ndarray], Made],
    n_neurons: int,
    g: float,
    max_draws: int,
) -> Made:
    """Draw weights until the network made of them is stable.

    Parameters
    ----------
    draw : callable
        Returns weights.
    make : callable
        Weights to a network, or an `UnstableError`.
    n_neurons : int
    g : float
        Named in the error.
    max_draws : int
    """
    found: list[float] = []
    while True:
        weights = draw()
        try:
            return make(weights)
        except UnstableError as error:
            found.append(error.abscissa)
            if len(found) == max_draws or _is_hopeless(found, n_neurons):
                message = _refused(found, n_neurons, g, error)
                raise UnstableError(message, min(found)) from None


def oscillator_weights(
    decay_times: Any, frequencies: Any, tau: float | None = None
) -> tuple[np.ndarray, float]:
    """Independent damped oscillators, two neurons each.

    Parameters
    ----------
    decay_times, frequencies : array_like (n_oscillators,)
        T_j > 0 and angular frequencies ω_j ≥ 0.
    tau : float, optional
        Time constant of the neurons; the shortest decay time by default.

    Returns
    -------
    weights : ndarray (2 n_oscillators, 2 n_oscillators)
        Blocks [[a, −b], [b, a]] with a = 1 − τ/T_j and b = τω_j.
    tau : float
    """
    T = check.host_array(decay_times, "decay_times", ndim=(1,))
    omega = check.host_array(frequencies, "frequencies", ndim=(1,))
    if T.shape != omega.shape or not len(T):
        raise ValueError(
            "`decay_times` and `frequencies` must have one entry per oscillator each; "
            f"got {len(T)} and {len(omega)}."
        )
    if T.min() <= 0:
        raise ValueError(f"`decay_times` must be positive; got {T.min():g}.")
    if omega.min() < 0:
        raise ValueError(f"`frequencies` must not be negative; got {omega.min():g}.")
    tau = float(T.min()) if tau is None else check.positive(tau, "tau")
    weights = np.zeros((2 * len(T),) * 2)
    even = 2 * np.arange(len(T))
    weights[even, even] = weights[even + 1, even + 1] = 1 - tau / T
    weights[even + 1, even] = tau * omega
    weights[even, even + 1] = -tau * omega
    return weights, tau


def _is_hopeless(found: list[float], n_neurons: int) -> bool:
    """Whether draws lie so far from stability that another would be no better.

    The largest eigenvalue scatters by about 1/√N from draw to draw.
    """
    return min(found) > 1 + 5 / np.sqrt(n_neurons)


def _refused(found: list[float], n_neurons: int, g: float, last: UnstableError) -> str:
    """What to do where no draw of a random network was stable."""
    if len(found) == 1 and not _is_hopeless(found, n_neurons):
        way = "draw again with max_draws=100, or scale it with spectral_radius=0.9"
    else:
        way = f"lower `g`, or scale the network with spectral_radius=0.9 (g={g:g} here)"
    drawn = "the network drawn is" if len(found) == 1 else f"all {len(found)} draws are"
    allow = ", or pass allow_unstable=True" if "allow_unstable" in str(last) else ""
    return (
        f"{drawn} unstable: the largest real part of the eigenvalues of φ'(0) W is "
        f"{min(found):.4g}, and it must be below 1; {way}{allow}."
    )
