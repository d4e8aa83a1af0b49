"""Networks by plan: in space, a delay, a graph. For others see test_networks."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from greenfold import EchoStateNetwork, Gain, Reservoir, simulate
from greenfold.networks.reservoir import UnstableError
from greenfold.networks.weights import legendre_delay, legendre_step


def as_array(weights: Any) -> Any:
    return weights if isinstance(weights, np.ndarray) else weights.toarray()


def pade_of_delay(n: int) -> tuple[list[Fraction], list[Fraction]]:
    """Numerator and denominator [n−1/n] of exp(−z), exact, checked by their definition."""
    p, q = n - 1, n
    whole = factorial(p + q)
    above = [
        Fraction(factorial(p + q - j) * factorial(p) * (-1) ** j)
        / (whole * factorial(j) * factorial(p - j))
        for j in range(p + 1)
    ]
    below = [
        Fraction(factorial(p + q - j) * factorial(q))
        / (whole * factorial(j) * factorial(q - j))
        for j in range(q + 1)
    ]
    for power in range(p + q + 1):  # below · exp(−z) = above up to this power
        product = sum(
            below[j] * Fraction((-1) ** (power - j), factorial(power - j))
            for j in range(min(power, q) + 1)
        )
        assert product == (above[power] if power <= p else 0)
    return above, below


@pytest.mark.parametrize("tau", [None, 0.7])
@pytest.mark.parametrize("n", [1, 6, 12])
def test_the_legendre_network_is_the_pade_approximant_of_its_delay(n, tau):
    theta = 1.7
    delay = legendre_delay(n, theta, tau)
    network = Reservoir.legendre(n, theta, tau)
    np.testing.assert_array_equal(network.weights, delay.weights)
    above, below = pade_of_delay(n)
    for s in (0.1, 1.0 + 2.0j, 4j, 9j / theta, 20j / theta):
        states = np.linalg.solve(
            (1 + network.tau * s) * np.eye(n) - network.weights, delay.u
        )
        z = s * theta
        wanted = sum(float(c) * z**j for j, c in enumerate(above))
        wanted /= sum(float(c) * z**j for j, c in enumerate(below))
        assert abs(delay.v @ states - wanted) < 1e-8


def test_the_legendre_network_runs_as_a_delay():
    delay = legendre_delay(12, 1.0)
    assert abs(np.linalg.norm(delay.u) - 1) < 1e-14
    network = Reservoir.legendre(12, 1.0)
    time = np.arange(300) * 0.01
    X = np.sin(2 * np.pi * time)[None]  # the unit of time ago it was the same
    z = simulate(network, X, delay.u, dt=0.01, trajectories=True)[0] @ delay.v
    # Held input is late by half a step; the approximant of order 12 errs far less.
    wanted = np.sin(2 * np.pi * (time + 0.005))
    assert np.abs(z[150:] - wanted[150:]).max() < 2e-3


def test_its_steps_are_those_of_continuous_time():
    made = legendre_step(6, 20.0)
    network = EchoStateNetwork.legendre(6, 20.0)
    X = np.random.default_rng(0).standard_normal((1, 40))
    y = np.zeros(6)
    for x in X[0]:
        y = network.weights @ y + made.u * x
    slow = Reservoir.legendre(6, 20.0)
    there = simulate(slow, X, legendre_delay(6, 20.0).u, dt=1.0)[0]
    np.testing.assert_allclose(y, there, atol=1e-6 * np.abs(there).max())
    assert network.is_stable
    tanh = EchoStateNetwork.legendre(6, 20.0, Gain.sigmoid())
    np.testing.assert_allclose(tanh.weights * Gain.sigmoid().slope, network.weights)


def test_near_neurons_are_connected_more_often():
    network = Reservoir.spatial(400, 0.9, rng=0, reach=0.1, connectivity=0.05)
    share = (network.weights != 0).mean()
    # 8000 connections of 160,000 are to be expected; their number scatters by 85.
    assert abs(share - 0.05) < 4 * 85 / 160000
    assert not network.weights.diagonal().any()
    line = np.arange(100.0)[:, None]
    weights = Reservoir.spatial(
        100, 0.5, rng=1, positions=line, reach=5, connectivity=0.1
    ).weights
    apart = np.abs(line - line.T)
    near, far = (weights != 0)[(apart > 0) & (apart <= 5)], (weights != 0)[apart > 20]
    assert near.mean() > 10 * far.mean()
    again = Reservoir.spatial(100, 0.5, rng=1, positions=line, reach=5, connectivity=0.1)
    np.testing.assert_array_equal(weights, again.weights)


def test_the_eigenvalues_of_a_network_in_space_fill_the_disc():
    radii = [
        np.abs(
            np.linalg.eigvals(
                Reservoir.spatial(500, 0.8, rng=seed, reach=0.3, connectivity=0.2).weights
            )
        ).max()
        for seed in range(3)
    ]
    # At the edge of the disc they scatter by a few times 1/√N.
    np.testing.assert_allclose(radii, 0.8, rtol=0.1)


@pytest.mark.needs("networkx")
def test_an_edge_drives_its_head():
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from("cab")
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("b", "c")  # without a weight: 1
    network = Reservoir.from_graph(graph, spectral_radius=None, nodes="abc")
    np.testing.assert_array_equal(network.weights, [[0, 0, 0], [2, 0, 0], [0, 1, 0]])
    signed = Reservoir.from_graph(
        graph, spectral_radius=None, nodes="abc", inhibitory=["a"]
    )
    np.testing.assert_array_equal(signed.weights, [[0, 0, 0], [-2, 0, 0], [0, 1, 0]])
    same = sparse.csr_array(networkx.to_scipy_sparse_array(graph, nodelist="abc"))
    for matrix in (same, same.toarray(), same.tolil()):
        there = Reservoir.from_graph(matrix, spectral_radius=None)
        np.testing.assert_array_equal(as_array(there.weights), network.weights)
    part = Reservoir.from_graph(same, spectral_radius=None, nodes=[2, 1])
    np.testing.assert_array_equal(part.weights.toarray(), [[0, 1], [0, 0]])


@pytest.mark.needs("networkx")
@pytest.mark.parametrize(
    "make",
    [
        lambda nx: nx.erdos_renyi_graph(30, 0.2, seed=0, directed=True),
        lambda nx: nx.watts_strogatz_graph(30, 4, 0.1, seed=0),
        lambda nx: nx.MultiDiGraph([(0, 1), (0, 1), (1, 0), (0, 0)]),  # parallel, a loop
        lambda nx: nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(5)),
    ],
    ids=["random", "small world", "multigraph", "disconnected"],
)
def test_any_graph_has_the_radius_that_was_asked_for(make):
    import networkx

    graph = make(networkx)
    network = Reservoir.from_graph(graph, spectral_radius=0.7)
    radius = np.abs(np.linalg.eigvals(network.weights)).max()
    assert abs(radius - 0.7) < 1e-9
    adjacency = networkx.to_numpy_array(graph).T
    np.testing.assert_allclose(
        network.weights * adjacency.max(), adjacency * network.weights.max()
    )
    echo = EchoStateNetwork.from_graph(graph, leak=1.0, spectral_radius=0.7)
    np.testing.assert_array_equal(echo.weights, network.weights)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Reservoir.legendre(0, 1.0), ValueError, "`n_neurons` must be at least 1"),
        (lambda: Reservoir.legendre(3, -1.0), ValueError, "`theta` must be a positive"),
        (lambda: Reservoir.legendre(3, 1, tau=0), ValueError, "`tau` must be a positive"),
        (lambda: Reservoir.legendre(3, 1, gain=Gain.polynomial([0, 0, 1])), ValueError,
         "`gain` must have a slope"),
        (lambda: Reservoir.spatial(9, tau=-1, rng=0), ValueError, "`tau` must be"),
        (lambda: Reservoir.spatial(9, reach=0, rng=0), ValueError, "`reach` must be"),
        (lambda: Reservoir.spatial(9, connectivity=2, rng=0), ValueError, "at most 1"),
        (lambda: Reservoir.spatial(9, positions=np.zeros((8, 2))), ValueError,
         "`positions` must have one row for each of the 9 neurons"),
        (lambda: Reservoir.spatial(50, 5.0, rng=0), UnstableError, "lower `g`"),
        (lambda: Reservoir.from_graph(np.ones((3, 2))), ValueError, "a square matrix"),
        (lambda: Reservoir.from_graph("graph"), ValueError, "`graph` must be a NetworkX"),
        (lambda: Reservoir.from_graph(np.eye(3), nodes=[0, 3]), ValueError, "below 3"),
        (lambda: Reservoir.from_graph(np.eye(3), nodes=[0, 0]), ValueError, "different"),
        (lambda: Reservoir.random(10**7), MemoryError, "GiB"),
        (lambda: Reservoir.random(10**7, connectivity=1e-3), MemoryError, "GiB"),
        (lambda: Reservoir.excitatory_inhibitory(10**7), MemoryError, "GiB"),
        (lambda: Reservoir.spatial(10**7), MemoryError, "GiB"),
        (lambda: Reservoir.legendre(10**7, 1.0), MemoryError, "GiB"),
        (lambda: EchoStateNetwork.random(10**7), MemoryError, "GiB"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.needs("networkx")
@pytest.mark.parametrize(
    ("graph", "options", "error", "message"),
    [
        (lambda nx: nx.path_graph(3, nx.DiGraph), {}, ValueError, "has no loop"),
        (lambda nx: nx.Graph(), {}, ValueError, "`graph` is empty"),
        (lambda nx: nx.complete_graph(4), {"spectral_radius": 1.2}, UnstableError,
         "`weights` make the network unstable"),
        (lambda nx: nx.complete_graph(4), {"weight": "w"}, ValueError,
         "an attribute that no edge"),
        (lambda nx: nx.Graph([(0, 1, {"weight": np.nan})]), {}, ValueError,
         "`graph` must be finite"),
        (lambda nx: nx.Graph([(0, 1, {"weight": "a"})]), {}, TypeError,
         "is not a number"),
        (lambda nx: nx.complete_graph(4), {"nodes": [0, 9]}, ValueError,
         "`nodes` do not fit the graph"),
        (lambda nx: nx.complete_graph(4), {"inhibitory": [9]}, ValueError,
         "`inhibitory` must name nodes.*got 9"),
    ],
)  # fmt: skip
def test_a_bad_graph_is_named(graph, options: dict[str, Any], error, message):
    import networkx

    with pytest.raises(error, match=message):
        Reservoir.from_graph(graph(networkx), **options)


def test_a_part_of_a_graph_that_is_too_large():
    network = Reservoir.from_graph(sparse.eye_array(10**6, format="coo"), nodes=range(5))
    np.testing.assert_allclose(network.weights.toarray(), 0.9 * np.eye(5))


def test_one_neuron():
    assert Reservoir.spatial(1, rng=0).weights.tolist() == [[0.0]]
    assert Reservoir.legendre(1, 2.0).weights.tolist() == [[0.0]]
    assert abs(Reservoir.from_graph([[3.0]]).weights[0, 0] - 0.9) < 1e-15
