"""A graph as the connections of a network: NetworkX's, SciPy's, or a plain matrix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from . import _validation as check

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
