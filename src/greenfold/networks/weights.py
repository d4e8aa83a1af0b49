"""Weights of networks by their plan: random, in space, a ring, oscillators, a delay.

Pure functions that return matrices; `Reservoir` and `EchoStateNetwork` make networks of
them. W_ij is the connection from neuron j to neuron i.

A graph as the connections of a network: NetworkX's, SciPy's, or a plain matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse
from scipy.linalg import expm
from scipy.optimize import brentq

from .._base import checks as check
from .resting_state import UnstableError

#: Weights are stored dense; more than this is refused before it is allocated.
_MOST_BYTES = 8 * 2**30


def graph_weights(
    graph: Any,
    weight: str | None = "weight",
    nodes: Iterable[Hashable] | None = None,
    inhibitory: Iterable[Hashable] | None = None,
    spectral_radius: float | None = 0.9,
) -> np.ndarray:
    """Weights W of a graph, W_ij of the edge from node j to node i.

    Parameters
    ----------
    graph : networkx graph, scipy sparse array or array_like (n_nodes, n_nodes)
        Of a matrix, as in `scipy.sparse.csgraph`, entry [i, j] is the edge from i to j; it
        is transposed. An edge of an undirected graph runs both ways; parallel ones add up.
    weight : str or None
        Attribute of an edge of a NetworkX graph that is its weight; edges without it, or
        all if None, weigh 1.
    nodes : iterable, optional
        Which nodes become neurons, and in which order: nodes of a NetworkX graph, or row
        numbers of a matrix. All, in their own order, by default.
    inhibitory : iterable, optional
        Nodes whose outgoing weights are negated.
    spectral_radius : float, optional
        The largest |λ| of W; None leaves the weights as they are.

    Returns
    -------
    ndarray (n_neurons, n_neurons)
    """
    if hasattr(graph, "is_multigraph") and hasattr(graph, "adj"):
        adjacency, names = _of_networkx(graph, weight, nodes)
    else:
        adjacency, names = _of_matrix(graph, nodes)
    weights = np.ascontiguousarray(adjacency.T)
    if inhibitory is not None:
        places = {name: i for i, name in enumerate(names)}
        for node in inhibitory:
            if node not in places:
                raise ValueError(
                    f"`inhibitory` names the node {node!r}, which is not in the network."
                )
            weights[:, places[node]] *= -1
    if spectral_radius is None:
        return weights
    radius = check.positive(spectral_radius, "spectral_radius")
    found = float(np.abs(np.linalg.eigvals(weights)).max())
    # Exactly: LAPACK first permutes the weights of a network without loops to a triangle.
    if found == 0:
        raise ValueError(
            f"`spectral_radius` = {radius:g} cannot be reached: the graph has no loop, so "
            "that all its eigenvalues are zero; pass spectral_radius=None to take its "
            "weights as they are."
        )
    return weights * (radius / found)


def _of_networkx(
    graph: Any, weight: str | None, nodes: Iterable[Hashable] | None
) -> tuple[np.ndarray, Sequence[Any]]:
    try:
        import networkx
    except ImportError:
        raise ImportError(
            "`graph` is read by NetworkX: pip install 'greenfold[graph]'."
        ) from None
    names = list(graph.nodes if nodes is None else nodes)
    _refuse_size(len(names))
    edges = graph.edges(data=True)
    if weight is not None and weight != "weight" and not any(weight in e[2] for e in edges):
        raise ValueError(
            f"`weight` = {weight!r} is an attribute that no edge of the graph has; pass "
            "weight=None for edges of weight 1."
        )
    to_array: Any = networkx.to_numpy_array
    try:
        made = to_array(graph, nodelist=names, weight=weight, dtype=float)
    except networkx.NetworkXError as error:
        raise ValueError(f"`nodes` do not fit the graph: {error}") from None
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`graph` has an edge whose {weight!r} is not a number: {error}."
        ) from None
    return check.host_array(made, "graph"), names


def _of_matrix(
    graph: Any, nodes: Iterable[Hashable] | None
) -> tuple[np.ndarray, Sequence[Any]]:
    shape = np.shape(graph)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            "`graph` must be a graph of NetworkX or a square matrix, one row and one "
            f"column a node; got {type(graph).__name__} of shape {shape}."
        )
    index = np.arange(shape[0]) if nodes is None else np.asarray(list(nodes))
    if index.ndim != 1 or index.dtype.kind not in "iu" or len(set(index)) < len(index):
        raise ValueError("`nodes` must be different row numbers of the matrix.")
    if len(index) and not 0 <= index.min() <= index.max() < shape[0]:
        raise ValueError(
            f"`nodes` must be row numbers below {shape[0]}; got {index.min()} to "
            f"{index.max()}."
        )
    _refuse_size(len(index))
    if sparse.issparse(graph):
        # Cut out before it is made dense: the whole may not fit.
        graph = graph.tocsr()[index][:, index]
        return check.host_array(graph, "graph"), index.tolist()
    return check.host_array(graph, "graph")[np.ix_(index, index)], index.tolist()


def _refuse_size(n_nodes: int) -> None:
    if not n_nodes:
        raise ValueError("`graph` is empty: it has no nodes.")
    if 8 * n_nodes**2 > _MOST_BYTES:
        raise MemoryError(
            f"`graph` has {n_nodes} nodes, and a network stores its weights dense: "
            f"{8 * n_nodes**2 / 2**30:.1f} GiB; choose some with `nodes`."
        )


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


def spatial_weights(
    positions: np.ndarray,
    g: float,
    rng: np.random.Generator,
    reach: float,
    connectivity: float,
    *,
    periodic: bool,
) -> np.ndarray:
    """Normal weights between neurons that find each other by their distance d.

    A connection exists with the probability min(1, c exp(−d / reach)), with c so that the
    mean over all pairs is ``connectivity``. The variance of the weights onto neuron i is g²
    over the number of its connections to be expected: rows of the variances add up to g²,
    hence the eigenvalues fill a disc of about radius g, as those of `random_weights` do.

    Parameters
    ----------
    positions : ndarray (n_neurons, n_dimensions)
    g : float
    rng : numpy Generator
    reach : float
        In the unit of the positions.
    connectivity : float
        Mean probability of a connection, in (0, 1].
    periodic : bool
        Whether space closes on itself after a length of 1 in every direction.
    """
    apart = np.abs(positions[:, None, :] - positions)
    if periodic:
        apart = np.minimum(apart, 1 - apart)
    decay = np.linalg.norm(apart, axis=2) / reach
    n_neurons = len(positions)
    drawn = rng.standard_normal(decay.shape)
    exists = rng.random(decay.shape)
    if n_neurons == 1:
        return np.zeros((1, 1))
    others = ~np.eye(n_neurons, dtype=bool)

    def excess(level: float) -> float:
        """Of the mean probability, for c = exp(level)."""
        return float(np.exp(np.minimum(0, level - decay[others])).mean()) - connectivity

    # At the left end no pair is more probable than wanted, at the right all are certain.
    left, right = np.log(connectivity), float(decay.max()) + 1e-9
    solve: Any = brentq
    level = solve(excess, left, right, xtol=1e-12) if connectivity < 1 else right
    probability = np.where(others, np.exp(np.minimum(0, level - decay)), 0.0)
    spread = g / np.sqrt(probability.sum(1, keepdims=True))
    return np.where(exists < probability, drawn * spread, 0.0)


def spatial_draws(
    n_neurons: int,
    g: float,
    rng: np.random.Generator,
    reach: float,
    connectivity: float,
    positions: Any,
    n_dimensions: int,
) -> tuple[Callable[[], np.ndarray], float]:
    """Checked arguments of `spatial_weights` as a function that draws, and g."""
    n_neurons = check.count(n_neurons, "n_neurons")
    g, reach = check.positive(g, "g"), check.positive(reach, "reach")
    share = connection_probability(connectivity)
    shape = (n_neurons, check.count(n_dimensions, "n_dimensions"))
    given = None
    if positions is not None:
        given = check.host_array(positions, "positions", ndim=(2,))
        if len(given) != n_neurons:
            raise ValueError(
                f"`positions` must have one row for each of the {n_neurons} neurons; got "
                f"shape {given.shape}."
            )

    def draw() -> np.ndarray:
        where = rng.random(shape) if given is None else given
        return spatial_weights(where, g, rng, reach, share, periodic=given is None)

    return draw, g


class LegendreDelay(NamedTuple):
    """A network whose states are Legendre coefficients of its recent input.

    Attributes
    ----------
    weights : ndarray (n_neurons, n_neurons)
    tau : float
        Time constant; 1 of a network in discrete time.
    u : ndarray (n_neurons,)
        The input projection with which it is a delay; of unit norm for the default ``tau``.
    v : ndarray (n_neurons,)
        The readout of the input θ ago.
    """

    weights: np.ndarray
    tau: float
    u: np.ndarray
    v: np.ndarray


def legendre_delay(n_neurons: int, theta: float, tau: float | None = None) -> LegendreDelay:
    """The Legendre delay system (LegT) as a network in continuous time.

    With u, neuron i holds the coefficient of the last θ of the input along the i-th
    orthonormal Legendre polynomial, and vᵀy is the input θ ago: the transfer function from
    input to vᵀy is the Padé approximant [n−1/n] of exp(−θs) (Voelker, Kajić and Eliasmith,
    NeurIPS 2019; in the basis of Gu et al., NeurIPS 2020).

    Parameters
    ----------
    n_neurons : int
        Order n of the approximant.
    theta : float
        Length θ of the window, in the unit of time that the stimuli use.
    tau : float, optional
        Time constant of the neurons, θ/n by default: then u has unit norm, and self-
        connections are zero on average. It scales the input, not the modes.
    """
    n_neurons = check.count(n_neurons, "n_neurons")
    theta = check.positive(theta, "theta")
    tau = theta / n_neurons if tau is None else check.positive(tau, "tau")
    rates, inputs, v = _legendre(n_neurons)
    ratio = tau / theta
    return LegendreDelay(np.eye(n_neurons) + ratio * rates, tau, ratio * inputs, v)


def legendre_step(n_neurons: int, theta: float) -> LegendreDelay:
    """The same in discrete time: exact for input that is constant over each step.

    Parameters
    ----------
    n_neurons : int
    theta : float
        Length of the window in steps.
    """
    n_neurons = check.count(n_neurons, "n_neurons")
    theta = check.positive(theta, "theta")
    rates, inputs, v = _legendre(n_neurons)
    block = np.zeros((n_neurons + 1,) * 2)
    block[:-1, :-1], block[:-1, -1] = rates / theta, inputs / theta
    made = expm(block)
    return LegendreDelay(made[:-1, :-1], 1.0, made[:-1, -1], v)


def _legendre(n_neurons: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ ẏ = A y + B x with x(t − θ) ≈ C y, in orthonormal polynomials: A, B and C."""
    order = np.arange(n_neurons)
    root = np.sqrt(2 * order + 1.0)
    below = order[:, None] >= order
    signs = np.where(below, (-1.0) ** (order[:, None] - order + 1), -1.0)
    return np.outer(root, root) * signs, root * (-1.0) ** order, root


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
