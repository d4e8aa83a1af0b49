"""Weight matrices: random, in a ring or a chain, for delay systems, or from a graph.

The functions check their arguments and return matrices, or a `WeightPlan` that draws them;
`first_stable` draws until a network is stable.
W_ij is the connection from neuron j to neuron i. Matrices of many neurons with few
connections are sparse (CSR), and no dense array is made for them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import expm
from scipy.optimize import brentq

from .._base import checks as check
from .._base.arrays import Array, is_sparse
from .._base.messages import ALLOW, Argument, Part, Refusal
from ..datasets.connectome import Connectome
from . import spectra
from .matrices import (
    SPARSE_NEURONS,
    Weights,
    csr,
    is_large_and_sparse,
    scaled_columns,
    scaled_rows,
)
from .resting_state import UnstableError

#: Weights of any array library, or a sparse matrix of SciPy.
Matrix: TypeAlias = "ArrayLike | Array | sparse.sparray[Any] | sparse.spmatrix[Any]"
Rng = np.random.Generator | int | None
_NetworkT = TypeVar("_NetworkT")


@dataclass(frozen=True)
class WeightPlan:
    """A plan to draw weights whose eigenvalues fill a disc of radius about g."""

    make: Callable[[], Weights]
    g: float
    #: Number of neurons in each population, in the order of the neurons.
    sizes: tuple[int, ...]

    def draw(self, spectral_radius: float | None = None) -> Weights:
        """Draw weights, and scale them to the largest |λ| if it is given."""
        weights = self.make()
        if spectral_radius is None:
            return weights
        advice = "; raise `connectivity` or the number of neurons"
        return _scaled(weights, spectral_radius, "network drawn", advice)

    def per_neuron(self, value: ArrayLike) -> ArrayLike:
        """Expand one value per population to one per neuron; return other values as is."""
        n = len(self.sizes)
        if np.shape(value) != (n,) or sum(self.sizes) == n:
            return value
        return np.repeat(np.asarray(value), self.sizes)


def first_stable(
    plan: WeightPlan,
    make: Callable[[Weights], _NetworkT],
    spectral_radius: float | None,
    max_draws: int,
) -> _NetworkT:
    """Return the first stable network that ``make`` makes of the weights of a plan."""
    if spectral_radius is not None:
        spectral_radius = check.positive(spectral_radius, "spectral_radius")
    max_draws = check.count(max_draws, "max_draws")
    found: list[float] = []
    while True:
        weights = plan.draw(spectral_radius)
        try:
            made = make(weights)
        except UnstableError as error:
            found.append(error.abscissa)
            # The largest eigenvalue varies by about 1/√N between draws. If it exceeds
            # 1 by far more, drawing again does not help.
            hopeless = min(found) > 1 + 5 / np.sqrt(weights.shape[0])
            if len(found) == max_draws or hopeless:
                allow = ALLOW in error.args
                parts = _say_draws(found, plan.g, hopeless, allow)
                raise UnstableError(min(found), *parts) from None
        else:
            vars(made)["n_draws"] = len(found) + 1
            return made


def _say_draws(
    found: list[float], g: float, hopeless: bool, allow: bool
) -> tuple[Part, ...]:
    """Return a message that says what to do if no draw was stable."""
    again = len(found) == 1 and not hopeless
    drawn = "the network drawn is" if len(found) == 1 else f"all {len(found)} draws are"
    return (
        f"{drawn} unstable: the largest real part of the eigenvalues of φ'(0) W is "
        f"{min(found):.4g}, and it must be below 1; lower ",
        Argument("g"),
        *([(", draw again with a larger ", Argument("max_draws"))] if again else []),
        (", or scale it with ", Argument("spectral_radius", 0.9), f" (g={g:g} here)"),
        *([ALLOW] if allow else []),
        ".",
    )


def random_plan(n_neurons: int, g: float, rng: Rng, connectivity: float) -> WeightPlan:
    """Return a plan for W_ij ~ N(0, g²/N).

    If ``connectivity`` is below 1, there are fewer and stronger weights.
    """
    n_neurons, g = check.count(n_neurons, "n_neurons"), check.positive(g, "g")
    share, source = _share(connectivity), check.generator(rng)
    few, spread = _drawn_sparse(n_neurons, share), g / np.sqrt(n_neurons * share)

    def make() -> Weights:
        if few:
            return spread * _normal_entries(n_neurons, share, source)
        return _thinned(source.standard_normal((n_neurons,) * 2) * spread, share, source)

    return WeightPlan(make, g, (n_neurons,))


def dale_plan(
    n_neurons: int,
    g: float,
    rng: Rng,
    excitatory: float,
    connectivity: float,
    inhibition: float | None,
) -> WeightPlan:
    """Return a plan for weights that obey Dale's law: each column has one sign.

    Excitatory columns come first. Weights are absolute values of normal numbers. The
    inhibitory inputs of each neuron are scaled to the ratio ``inhibition``, and all weights
    to the radius g. The bulk of the eigenvalues fills a disc of radius √Σσ_j², with the
    variances σ_j² of the columns; no eigenvalue lies outside if every row is balanced
    (Rajan and Abbott, Phys. Rev. Lett. 97, 2006).
    """
    n_neurons = check.count(n_neurons, "n_neurons", minimum=2)
    g, share = check.positive(g, "g"), check.positive(excitatory, "excitatory")
    n_excitatory = round(share * n_neurons)
    wanted = "be a share between 0 and 1 that leaves neurons of both kinds"
    both_kinds = 0 < n_excitatory < n_neurons
    check.must(both_kinds, "excitatory", wanted, f"{share:g} of {n_neurons} neurons")
    if inhibition is not None:
        inhibition = check.positive(inhibition, "inhibition")
    p, source = _share(connectivity), check.generator(rng)
    few = _drawn_sparse(n_neurons, p)

    def make() -> Weights:
        if few:
            weights = abs(_normal_entries(n_neurons, p, source))
            weights.data[weights.indices >= n_excitatory] *= -1
        else:
            weights = _thinned(np.abs(source.standard_normal((n_neurons,) * 2)), p, source)
            weights[:, n_excitatory:] *= -1
        if inhibition is not None:
            excited, inhibited = (weights + abs(weights)) / 2, (weights - abs(weights)) / 2
            up, down = excited.sum(axis=1), -inhibited.sum(axis=1)
            both, factors = (up > 0) & (down > 0), np.ones(n_neurons)
            factors[both] = inhibition * up[both] / down[both]
            weights = excited + scaled_rows(factors, inhibited)
        variances = (weights * weights).mean(axis=0) - weights.mean(axis=0) ** 2
        radius = float(np.sqrt(variances.sum()))
        return weights * (g / radius) if radius else weights

    return WeightPlan(make, g, (n_excitatory, n_neurons - n_excitatory))


def spatial_plan(
    n_neurons: int,
    g: float,
    rng: Rng,
    reach: float,
    connectivity: float,
    positions: ArrayLike | None,
) -> WeightPlan:
    """Return a plan for normal weights between neurons at a distance d.

    A connection exists with the probability min(1, c exp(−d / reach)); c is such that the
    mean over all pairs is ``connectivity``. The variances onto each neuron add up to g², so
    the eigenvalues fill a disc of radius about g. Positions are given, or drawn in a unit
    square with periodic boundaries.
    """
    source = check.generator(rng)
    n_neurons = check.count(n_neurons, "n_neurons")
    g, reach = check.positive(g, "g"), check.positive(reach, "reach")
    share = _share(connectivity)
    _refuse_dense(n_neurons)
    given = None
    if positions is not None:
        given = check.host_array(positions, "positions", ndim=(2,))
        wanted = f"have one row for each of the {n_neurons} neurons"
        check.must(len(given) == n_neurons, "positions", wanted, f"shape {given.shape}")

    def make() -> np.ndarray:
        where = source.random((n_neurons, 2)) if given is None else given
        apart = np.abs(where[:, None, :] - where)
        if given is None:
            apart = np.minimum(apart, 1 - apart)
        decay = np.linalg.norm(apart, axis=2) / reach
        shape = (n_neurons, n_neurons)
        drawn, exists = source.standard_normal(shape), source.random(shape)
        if n_neurons == 1:
            return np.zeros((1, 1))
        others = ~np.eye(n_neurons, dtype=bool)

        def surplus(level: float) -> float:
            """Return the mean probability for c = exp(level), minus the target."""
            return float(np.exp(np.minimum(0, level - decay[others])).mean()) - share

        # At the left end no pair is more probable than the target; at the right end all
        # connections exist.
        left, right = np.log(share), float(decay.max()) + 1e-9
        level = brentq(surplus, left, right, xtol=1e-12) if share < 1 else right
        probability = np.where(others, np.exp(np.minimum(0, level - decay)), 0.0)
        spread = g / np.sqrt(probability.sum(1, keepdims=True))
        return np.where(exists < probability, drawn * spread, 0.0)

    return WeightPlan(make, g, (n_neurons,))


def _drawn_sparse(n_neurons: int, share: float) -> bool:
    """Return whether to draw a sparse matrix; refuse weights that are too large."""
    few = is_large_and_sparse(n_neurons, share)
    _refuse_dense(n_neurons, share * n_neurons if few else None)
    return few


def _refuse_dense(n_neurons: int, per_row: float | None = None) -> None:
    """Refuse weights that are too large: dense ones, or sparse ones of some per row."""
    needed = 8.0 * n_neurons**2 if per_row is None else 12.0 * per_row * n_neurons
    advice = f"pass connectivity={100 / n_neurons:.1g} to Reservoir.random"
    wanted = f"not give more than {check.DENSE_BYTES / 2**30:g} GiB of weights ({advice})"
    kind = "dense" if per_row is None else "sparse"
    got = f"{n_neurons}, whose {kind} weights take {needed / 2**30:.3g} GiB"
    check.must(needed <= check.DENSE_BYTES, "n_neurons", wanted, got, MemoryError)


def _normal_entries(n_neurons: int, share: float, rng: np.random.Generator) -> Weights:
    """Return a sparse matrix in which a share of the entries is normal, at random places.

    The gaps between successive entries, row by row, have a geometric distribution.
    """
    size = n_neurons**2
    mean = share * size
    gaps = rng.geometric(share, int(mean + 8 * np.sqrt(mean)) + 16)
    places = np.cumsum(gaps) - 1
    while places[-1] < size:  # almost never
        more = places[-1] + np.cumsum(rng.geometric(share, 16))
        places = np.append(places, more)
    places = places[places < size]
    rows, columns = np.divmod(places, n_neurons)
    ends = np.searchsorted(rows, np.arange(n_neurons + 1))
    parts = rng.standard_normal(len(places)), columns, ends
    return csr(parts, shape=(n_neurons, n_neurons))


def _share(connectivity: float) -> float:
    value = check.positive(connectivity, "connectivity")
    check.must(value <= 1, "connectivity", "be a share, at most 1", f"{value:g}")
    return value


def _thinned(weights: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Keep a share of the weights and set the others to zero."""
    if share < 1:
        weights *= rng.random(weights.shape) < share
    return weights


def _scaled(weights: Weights, radius: float, what: str, advice: Part) -> Weights:
    """Scale the weights so that their largest |λ| is ``radius``."""
    found = spectra.largest(weights, "absolute value")
    # The test for zero is exact: without loops, LAPACK first permutes the weights to a
    # triangle.
    if not found:
        problem = f" cannot be reached: the {what} has no loop, so all its eigenvalues are "
        name = Argument("spectral_radius")
        raise Refusal(name, f" of {radius:g}{problem}zero", advice, ".")
    return weights * (radius / found)


def cycle_weights(n_neurons: int, weight: float) -> Weights:
    """Return a ring: neuron i drives neuron i + 1, and the last drives the first."""
    return _following(n_neurons, weight, closed=True)


def delay_line_weights(n_neurons: int, weight: float) -> Weights:
    """Return a chain: neuron i drives neuron i + 1, and the last drives none."""
    return _following(n_neurons, weight, closed=False)


def _following(n_neurons: int, weight: float, closed: bool) -> Weights:
    """Return weights with which each neuron drives the next."""
    strength, n = check.number(weight, "weight"), check.count(n_neurons, "n_neurons")
    if n < SPARSE_NEURONS:
        ring = np.roll(np.eye(n), 1, axis=0)
        return strength * (ring if closed else np.eye(n, k=-1))
    check.few_neurons(n, "n_neurons")
    target = np.arange(0 if closed else 1, n)
    places = target, (target - 1) % n
    return csr((np.full(len(target), strength), places), shape=(n, n))


def oscillator_weights(
    decay_times: ArrayLike, frequencies: ArrayLike, tau: float | None = None
) -> tuple[Weights, float]:
    """Return weights and τ of independent damped oscillators of two neurons each."""
    T = check.host_array(decay_times, "decay_times", ndim=(1,))
    omega = check.host_array(frequencies, "frequencies", ndim=(1,))
    names, wanted = "decay_times` and `frequencies", "have one entry per oscillator each"
    check.must(T.shape == omega.shape, names, wanted, f"{len(T)} and {len(omega)}")
    check.must(T.min() > 0, "decay_times", "be positive", f"{T.min():g}")
    check.must(omega.min() >= 0, "frequencies", "not be negative", f"{omega.min():g}")
    tau = float(T.min()) if tau is None else check.positive(tau, "tau")
    even = 2 * np.arange(len(T))
    odd, kept, turned = even + 1, 1 - tau / T, tau * omega
    values = np.concatenate([kept, kept, turned, -turned])
    places = np.concatenate([even, odd, odd, even]), np.concatenate([even, odd, even, odd])
    made = csr((values, places), shape=(2 * len(T),) * 2)
    return (made if made.shape[0] >= SPARSE_NEURONS else made.toarray()), tau


class LegendreDelay(NamedTuple):
    """A network whose states are Legendre coefficients of its recent input."""

    weights: np.ndarray
    #: Time constant; 1 for a network in discrete time.
    tau: float
    #: Input projection that makes the network a delay; it has unit norm for the default τ.
    u: np.ndarray
    #: Readout that gives the input from a time θ ago.
    v: np.ndarray


def legendre_delay(n_neurons: int, theta: float, tau: float | None = None) -> LegendreDelay:
    """Return the Legendre delay system (LegT) as a network in continuous time.

    With u, neuron i holds the coefficient of the last θ of the input in the i-th
    orthonormal Legendre polynomial, and vᵀy is the input from a time θ ago. The transfer
    function is the Padé approximant [n−1/n] of exp(−θs) (Voelker, Kajić and Eliasmith,
    NeurIPS 2019; in the basis of Gu et al., NeurIPS 2020).

    The arguments are as in `Reservoir.legendre`. For the default τ = θ/n, u has unit norm
    and the self-connections are zero on average.
    """
    rates, inputs, v = _legendre(n_neurons, theta)
    tau = theta / n_neurons if tau is None else check.positive(tau, "tau")
    return LegendreDelay(np.eye(n_neurons) + tau * rates, tau, tau * inputs, v)


def legendre_step(n_neurons: int, theta: float) -> LegendreDelay:
    """Return the Legendre delay system in discrete time, with θ in steps.

    It is exact for input that is constant over each step; see `legendre_delay`.
    """
    rates, inputs, v = _legendre(n_neurons, theta)
    made = expm(np.pad(np.column_stack([rates, inputs]), ((0, 1), (0, 0))))
    return LegendreDelay(made[:-1, :-1], 1.0, made[:-1, -1], v)


def _legendre(n_neurons: int, theta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A, B, C of ẏ = A y + B x, x(t − θ) ≈ C y, in orthonormal polynomials."""
    n_neurons = check.count(n_neurons, "n_neurons")
    theta = check.positive(theta, "theta")
    _refuse_dense(n_neurons)
    order = np.arange(n_neurons)
    root = np.sqrt(2 * order + 1.0)
    below = order[:, None] >= order
    signs = np.where(below, (-1.0) ** (order[:, None] - order + 1), -1.0)
    return np.outer(root, root) * signs / theta, root * (-1.0) ** order / theta, root


def graph_weights(
    graph: Any,
    weight: str | None = "weight",
    nodes: Iterable[Hashable] | None = None,
    inhibitory: Iterable[Hashable] | None = None,
    spectral_radius: float | None = 0.9,
) -> Weights:
    """Return the weights W of a graph: W_ij is the edge from node j to node i.

    See `from_graph`. Entry [i, j] of a matrix is the edge from i to j, as in SciPy's
    csgraph. Edges of an undirected graph run both ways; parallel edges add up.
    """
    if hasattr(graph, "is_multigraph") and hasattr(graph, "adj"):
        adjacency, names = _of_networkx(graph, weight, nodes)
    elif isinstance(graph, Connectome):
        check.without_effect(weight != "weight", "weight", "for a connectome")
        adjacency, names = _of_connectome(graph, nodes)
    else:
        check.without_effect(weight != "weight", "weight", "for a matrix")
        adjacency, names = _of_matrix(graph, nodes)
    places = {name: i for i, name in enumerate(names)}
    signs = np.ones(len(names))
    for node in () if inhibitory is None else inhibitory:
        check.must(node in places, "inhibitory", "name nodes of the network", repr(node))
        signs[places[node]] *= -1
    if is_sparse(adjacency):
        weights = scaled_columns(csr(adjacency.T), signs)
    else:
        weights = np.ascontiguousarray(adjacency.T) * signs
    if spectral_radius is None:
        return weights
    radius = check.positive(spectral_radius, "spectral_radius")
    as_they_are = "; pass ", Argument("spectral_radius=None"), " to take its weights as is"
    return _scaled(weights, radius, "graph", as_they_are)


def _of_networkx(
    graph: Any, weight: str | None, nodes: Iterable[Hashable] | None
) -> tuple[Weights, Sequence[Hashable]]:
    with check.needs("`graph`", "graph"):
        import networkx
    names = list(graph.nodes if nodes is None else nodes)
    check.require(names, "`graph` is empty: it has no nodes.")
    edges = graph.edges(data=True)
    known = weight in (None, "weight") or any(weight in edge[2] for edge in edges)
    problem = f"`weight` = {weight!r} is an attribute that no edge of the graph has"
    check.require(known, f"{problem}; pass weight=None for edges of weight 1.")
    library: Any = networkx
    try:
        options = {"nodelist": names, "weight": weight, "dtype": float}
        made = library.to_scipy_sparse_array(graph, **options)
    except networkx.NetworkXError as error:
        raise ValueError(f"`nodes` do not fit the graph: {error}") from None
    except (TypeError, ValueError) as error:
        reason = f"whose {weight!r} is not a number: {error}"
        raise TypeError(f"`graph` has an edge {reason}.") from None
    if not is_large_and_sparse(len(names), made.nnz / len(names) ** 2):
        check.formable(len(names), "`graph`", "choose some nodes with `nodes`")
        made = made.toarray()
    return _finite(made), names


def _of_connectome(
    graph: Connectome, nodes: Iterable[Hashable] | None
) -> tuple[Weights, list[str]]:
    names = graph.names.tolist()
    if nodes is None:
        return _of_matrix(graph.weights.T, None)[0], names
    chosen, places = list(map(str, nodes)), {name: i for i, name in enumerate(names)}
    for name in chosen:
        check.must(name in places, "nodes", "name cells of the connectome", repr(name))
    return _of_matrix(graph.weights.T, [places[name] for name in chosen])[0], chosen


def _of_matrix(graph: Any, nodes: Iterable[Hashable] | None) -> tuple[Weights, list[int]]:
    shape = np.shape(graph)
    wanted = "be a NetworkX graph or a square matrix, one row and one column per node"
    square = len(shape) == 2 and shape[0] == shape[1]
    check.must(square, "graph", wanted, f"{type(graph).__name__} of shape {shape}")
    check.few_neurons(shape[0] if nodes is None else 0, "graph")
    index: np.ndarray = np.asarray(list(range(shape[0]) if nodes is None else nodes))
    if index.ndim != 1 or index.dtype.kind not in "iu" or len(set(index)) < len(index):
        raise ValueError("`nodes` must be different row numbers of the matrix.")
    check.require(len(index), "`graph` is empty: it has no nodes.")
    least, most = index.min(), index.max()
    below = f"be row numbers below {shape[0]}"
    check.must(0 <= least <= most < shape[0], "nodes", below, f"{least} to {most}")
    if hasattr(graph, "tocsr"):
        rows = graph.tocsr() if nodes is None else graph.tocsr()[index][:, index]
        return _finite(csr(rows).astype(np.float64)), index.tolist()
    return check.host_array(graph, "graph")[np.ix_(index, index)], index.tolist()


def _finite(adjacency: Weights) -> Weights:
    """Return a matrix whose entries are finite; refuse others."""
    entries = adjacency.data if is_sparse(adjacency) else adjacency
    if entries.size:
        check.host_array(entries, "graph")
    return adjacency
