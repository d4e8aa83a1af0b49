"""Products with a sparse W against dense propagators, which share no code with series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm

from greenfold import (
    Convex,
    Device,
    EchoStateNetwork,
    Gain,
    GaussianStimuli,
    Reservoir,
    optimize,
    simulate,
    unfold,
)
from greenfold._base.arrays import namespace, to_host
from greenfold.networks import matrices
from greenfold.unfolding.sparse import (
    PowerOrder,
    poisson_integrals,
    poisson_weights,
)

from ..conftest import LIBRARIES
from ..dynamics.problems import in_library

#: Largest error relative to the largest value. Both ways round each of up to a few hundred
#: products; terms of up to 50 times the result may cancel (`_CANCELLED`).
CLOSE = 1e-12


@pytest.fixture(autouse=True)
def _small_networks_are_sparse_enough(monkeypatch):
    monkeypatch.setattr(matrices, "SPARSE_NEURONS", 1)
    monkeypatch.setattr(matrices, "SPARSE_SHARE", 1.0)


def both(dense, n_steps=9, dt=0.5, order=0, readout=None, kind: Any = Reservoir, **options):
    """The same network unfolded by propagators and by products."""
    time = {"n_steps": n_steps, "order": order, "readout": readout}
    time |= {"dt": dt} if kind is Reservoir else {}
    found = unfold(kind(dense, **options), **time)
    products = unfold(kind(sparse.csr_array(dense), **options), **time)
    assert isinstance(products.maps, PowerOrder)
    assert not isinstance(found.maps, PowerOrder)
    return found, products


def close(found, wanted, tol=CLOSE):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tol * np.abs(wanted).max()


def random(n, per_row, rng):
    share = min(1.0, per_row / n)
    return rng.standard_normal((n, n)) * (rng.random((n, n)) < share) / np.sqrt(n * share)


def network(kind, n, rng):
    """Weights of one kind, some with modes that grow."""
    if kind == "random":
        return random(n, 5, rng) * rng.uniform(0.3, 2.0)
    if kind == "dale":
        made = np.abs(random(n, 6, rng))
        made[:, 4 * n // 5 :] *= -4
        return made * 0.4
    if kind == "inhibitory":
        return -2 * np.abs(random(n, 5, rng))
    if kind == "small world":
        ring = sum(np.roll(np.eye(n), k, axis=0) for k in (-2, -1, 1, 2)) * 0.2
        moved = rng.random((n, n)) < 0.5 / n
        return ring + 0.3 * moved
    if kind == "defective":
        made = np.eye(n, k=-1) * rng.uniform(0.5, 3.0)
        made[: n // 2, : n // 2] = 0.9 * np.eye(n // 2, k=-1) + 0.5 * np.eye(n // 2)
        return made
    assert kind == "disconnected"
    half = n // 2
    made = np.zeros((n, n))
    made[:half, :half] = random(half, 4, rng)
    return made


KINDS = "random", "dale", "inhibitory", "small world", "defective", "disconnected"
VARIED = ("equal", "unequal", "discrete", "leaks", "inside", "integrated")


def compare(kind, varied, n, rng):
    """Compare all maps of one network, and its states and gradients."""
    dense, n_steps, options = network(kind, n, rng), int(rng.integers(2, 30)), {}
    options["allow_unstable"] = True
    if varied == "unequal":
        options["tau"] = rng.uniform(0.05, 0.6, n)
    elif varied in ("discrete", "leaks"):
        options |= {"kind": EchoStateNetwork, "gain": Gain.linear()}
        options["leak"] = 0.3 if varied == "discrete" else rng.uniform(0.1, 1, n)
    elif varied == "inside":
        options["readout"] = n_steps * 0.5 * rng.uniform(0.1, 1)
    elif varied == "integrated":
        options["readout"] = rng.standard_normal(n_steps)
    one, other = both(dense, n_steps, **options)
    maps, found = one.maps, other.maps
    u, v = rng.standard_normal((n, 2)), rng.standard_normal((n, 3))
    d, many = rng.standard_normal((2, n_steps)), rng.standard_normal((n, 2, 3))
    close(found.input_response(u), maps.input_response(u))
    close(found.readout_response(v), maps.readout_response(v))
    close(found.readout_response(v[:, 0]), maps.readout_response(v[:, 0]))
    close(found.response_sum(d).drive(many), maps.response_sum(d).drive(many))
    close(found.response_sum(d).pull(v), maps.response_sum(d).pull(v))
    close(found.response_sum(d).pull(v[:, 0]), maps.response_sum(d).pull(v[:, 0]))
    close(found.reduced(v, u), maps.reduced(v, u))
    close(found.reduced(u, v), maps.reduced(u, v))
    assert found.response_sum(d).matrix() is None
    X, bar = rng.standard_normal((3, 2, n_steps)), rng.standard_normal((3, n))
    close(other.states(X, u), one.states(X, u))
    close(other.pullback(X, u, bar), one.pullback(X, u, bar))
    close(other.kernels(u, v[:, 0]).linear, one.kernels(u, v[:, 0]).linear)
    wanted = one.states(X, u, trajectories=True)
    close(other.states(X, u, trajectories=True), wanted)


@pytest.mark.parametrize("index", range(30))
def test_every_map_is_that_of_dense_propagators(index):
    rng = np.random.default_rng(index)
    kind, varied = KINDS[index % 6], VARIED[(index // 6 + index) % 6]
    compare(kind, varied, int(rng.integers(4, 61)), rng)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(100))
def test_every_map_of_larger_networks(index):
    rng = np.random.default_rng(1000 + index)
    kind, varied = KINDS[index % 6], VARIED[(index // 6 + index) % 6]
    compare(kind, varied, int(rng.integers(61, 301)), rng)


def solve(kind, n, rng):
    """Compare the optimum, its bound and its kernel with the search on dense matrices.

    κ is flat at its maximum, so a kernel is known to about the root of the tolerated gap of
    1e-9. Where a gap is left, the small space stops growing when more directions would
    lower the bound by less than a fiftieth of the gap, which may happen twice; without a
    tree, the ascents of one path may miss an optimum that is better by as little.
    """
    n_steps, dt = int(rng.integers(4, 11)), float(rng.uniform(0.2, 0.6))
    one, other = both(network(kind, n, rng), n_steps, dt, allow_unstable=True)
    stimuli = GaussianStimuli.random(n_steps, strength=1.0, rng=rng)
    method = Convex(gap=1e-9, max_nodes=0)
    theirs: Any = optimize(one, stimuli, method=method)
    ours: Any = optimize(other, stimuli, method=method)
    assert ours.status == theirs.status or theirs.status == "unresolved"
    left = 1e-9 if theirs.status == "certified" else 1e-7 + 0.04 * ours.gap
    assert ours.soft_margin == pytest.approx(theirs.soft_margin, rel=left)
    assert ours.soft_margin <= ours.upper_bound * (1 + 1e-12)
    assert ours.upper_bound <= theirs.upper_bound * (1 + left)
    if ours.soft_margin == pytest.approx(theirs.soft_margin, rel=1e-9):
        a, b = (
            each.kernels(best.u, best.v).linear.ravel()
            for each, best in zip((other, one), (ours, theirs), strict=True)
        )
        close(a * np.sign(a @ b), b, 3e-5)


@pytest.mark.parametrize("index", [0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 13, 17])
def test_the_optimum_is_that_of_dense_propagators(index):
    rng = np.random.default_rng(index)
    solve(KINDS[index % 6], int(rng.integers(30, 90)), rng)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(100))
def test_the_optimum_of_larger_networks(index):
    rng, kind = np.random.default_rng(1000 + index), KINDS[index % 6]
    # The search takes minutes for larger networks of these kinds: on dense matrices for
    # defective ones, and in a small space, which grows while a gap is left, for inhibitory.
    most = 90 if kind in ("defective", "inhibitory") else 300
    solve(kind, int(rng.integers(60, most + 1)), rng)


@pytest.mark.parametrize(
    ("tau", "dt", "n_steps"), [(0.01, 2.0, 5), (0.1, 1.0, 40), (5.0, 1e-4, 30)]
)
def test_long_and_short_times(tau, dt, n_steps, rng):
    one, other = both(0.9 * random(30, 6, rng), n_steps, dt, tau=tau)
    u, v = rng.standard_normal((2, 30, 3))
    close(other.maps.input_response(u), one.maps.input_response(u))
    close(other.maps.reduced(v, u), one.maps.reduced(v, u))
    X = rng.standard_normal((2, n_steps))
    close(*(each.states(X, u[:, 0], trajectories=True) for each in (other, one)))


@pytest.mark.parametrize(
    ("order", "gain"),
    [
        (1, Gain.quadratic(0.05)),
        (1, Gain.polynomial([0, 0.9, 0.1, -0.05])),
        (2, Gain.quadratic(0.05)),
        (3, Gain.tanh(3)),
    ],
)
@pytest.mark.parametrize("varied", [{}, {"bias": 0.2, "tau": "unequal"}, {"readout": 2.3}])
def test_orders_and_their_gradients(order, gain, varied, rng):
    n, options = 30, {"order": order, "gain": gain, "dt": 0.3} | varied
    if "tau" in options:
        options["tau"] = rng.uniform(0.2, 0.6, n)
    one, other = both(0.7 * random(n, 5, rng), 8, **options)
    u, v = 0.3 * rng.standard_normal((n, 2)), rng.standard_normal(n)
    X, bar = rng.standard_normal((4, 2, 8)), rng.standard_normal((4, n))
    for found, wanted in zip(
        other.states(X, u, orders=True), one.states(X, u, orders=True), strict=True
    ):
        close(found, wanted)
    close(*(each.states(X, u, trajectories=True) for each in (other, one)))
    close(other.pullback(X, u, bar), one.pullback(X, u, bar))
    if order == 1 and gain.name.startswith("quadratic"):
        found, wanted = other.kernels(u, v), one.kernels(u, v)
        close(found.linear, wanted.linear)
        close(found.quadratic, wanted.quadratic)


def test_states_are_those_of_an_ode_solver(rng):
    n, dense = 25, random(25, 5, rng)
    network = Reservoir(sparse.csr_array(dense), tau=rng.uniform(0.1, 0.5, n))
    X, u = rng.standard_normal((2, 6)), rng.standard_normal(n)
    wanted = simulate(network, X, u, 0.4, rtol=1e-12)
    close(unfold(network, n_steps=6, dt=0.4).states(X, u), wanted, 1e-9)


def test_poisson_weights_and_their_integrals():
    # The propagator of the weights below one neuron, a chain, holds all p_j (by `expm`).
    n, times = 40, np.array([1e-3, 0.5, 7.0, 20.0])
    chain = np.eye(n, k=-1) - np.eye(n)
    wanted = np.array([expm(chain * s)[:, 0] for s in times])
    np.testing.assert_allclose(poisson_weights(times, n), wanted, rtol=1e-12, atol=1e-16)
    block = np.zeros((n + 1, n + 1))
    block[:n, :n], block[0, n] = chain, 1.0
    wanted = np.array([expm(block * s)[:n, n] for s in times])
    found = poisson_integrals(np.zeros(4), times, n)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
    # A short interval keeps its digits, which a difference of two sums would lose.
    low, high = np.array([20.0]), np.array([20.0 + 1e-9])
    width = high - low
    ratio = poisson_integrals(low, high, n)[0] / (poisson_weights(low, n)[0] * width)
    np.testing.assert_allclose(ratio, 1, atol=1e-8)


@pytest.mark.parametrize("library", LIBRARIES)
def test_any_library_gives_the_same_answers(library, rng):
    for kind in (Reservoir, EchoStateNetwork):
        found = both(0.9 * random(20, 5, rng), 7, kind=kind)[1]
        X, u = rng.standard_normal((3, 2, 7)), rng.standard_normal((20, 2))
        bar, v = rng.standard_normal((3, 20)), rng.standard_normal((20, 3))
        there, d = in_library(X, library), rng.standard_normal((2, 7))
        for made, wanted in (
            (found.states(there, u), found.states(X, u)),
            (found.pullback(there, u, in_library(bar, library)), found.pullback(X, u, bar)),
            (
                found.states(there, u, trajectories=True),
                found.states(X, u, trajectories=True),
            ),
        ):
            assert namespace(made) is namespace(there)
            close(to_host(made), wanted)
        moved, one = found.maps.on(there), in_library(v, library)
        close(to_host(moved.response_sum(d).pull(one)), found.maps.response_sum(d).pull(v))
        close(to_host(moved.reduced(one, one)), found.maps.reduced(v, v))
        close(to_host(moved.input_response(one)), found.maps.input_response(v))
        pushed = rng.standard_normal((20, 2, 3))
        made = moved.response_sum(d).drive(in_library(pushed, library))
        close(to_host(made), found.maps.response_sum(d).drive(pushed))


@pytest.mark.parametrize("library", LIBRARIES)
def test_maps_beside_series_on_a_device(library, rng):
    """NumPy arrays go to the device of the series and come back."""
    host: Any = both(0.9 * random(20, 5, rng))[1].maps
    moved = host.on(in_library(np.zeros(1), library))
    u, v = rng.standard_normal((20, 2)), rng.standard_normal((20, 3))
    d, many = rng.standard_normal((2, 9)), rng.standard_normal((20, 2, 3))
    pairs = [
        (
            one.input_response(u),
            one.readout_response(v),
            one.reduced(v, u),
            one.response_sum(d).drive(many),
            one.response_sum(d).pull(v),
        )
        for one in (moved, host)
    ]
    for found, wanted in zip(*pairs, strict=True):
        assert isinstance(found, np.ndarray)
        close(found, wanted)
    assert host.beside(np.zeros(1)) is host


def test_a_subset_of_neurons(rng):
    dense = 0.9 * random(20, 5, rng)
    inputs, outputs = np.array([3, 1, 7]), np.array([2, 9])
    device = Device(inputs=inputs, outputs=outputs)
    parts = (device.part_of(each) for each in both(dense))
    one, other = (part.maps for part in parts if part is not None)
    u, v = rng.standard_normal((3, 2)), rng.standard_normal((2, 1))
    close(other.reduced(v, u), one.reduced(v, u))
    close(other.input_response(u), one.input_response(u))
    d = rng.standard_normal((1, 9))
    close(other.response_sum(d).pull(v), one.response_sum(d).pull(v))


def test_products_are_counted(rng):
    maps: Any = both(0.9 * random(20, 5, rng))[1].maps
    v = rng.standard_normal((20, 4))
    maps.reduced(v, v)
    once = maps.n_products
    assert once % 4 == 0 < once
    maps.response_sum(np.ones((1, 9))).pull(v)
    assert maps.n_products == 2 * once


def test_what_needs_a_dense_array_refuses_in_one_sentence(monkeypatch, rng):
    unfolding = unfold(Reservoir(sparse.csr_array(np.zeros((9, 9)))), n_steps=3, dt=1.0)
    monkeypatch.setattr("greenfold.unfolding.unfolding.TABLE_BYTES", 100)
    with pytest.raises(MemoryError, match="use `states`"):
        unfolding.greens1()
    # Series are then walked through the network instead.
    X, u = rng.standard_normal((2, 3)), rng.standard_normal(9)
    assert not unfolding.prefers_kernels(2)
    walked = unfolding.states(X, u)
    monkeypatch.undo()
    close(walked, unfold(Reservoir(np.zeros((9, 9))), n_steps=3, dt=1.0).states(X, u))


def symmetric_parts(n, rng):
    made = np.zeros((n, n))
    for start in range(0, n - 4, 5):
        part = rng.standard_normal((5, 5))
        made[start : start + 5, start : start + 5] = 0.1 * (part + part.T)
    return made


NORMAL = {
    "ring": lambda n, rng: 0.9 * np.roll(np.eye(n), 1, axis=0),
    "ring of both signs": lambda n, rng: (
        0.5 * np.roll(np.eye(n), 2, axis=0) - 0.3 * np.roll(np.eye(n), -1, axis=0)
    ),
    "oscillators": lambda n, rng: (
        np.kron(np.diag(rng.uniform(0.1, 0.9, n // 2)), np.eye(2))
        + np.kron(np.diag(rng.uniform(0, 2, n // 2)), [[0, -1], [1, 0]])
    ),
    "symmetric parts": symmetric_parts,
    "hidden parts": lambda n, rng: (
        (order := rng.permutation(n)),
        symmetric_parts(n, rng)[order][:, order],
    )[1],
}


@pytest.mark.parametrize("kind", NORMAL)
@pytest.mark.parametrize("n", [10, 21])
@pytest.mark.parametrize("varied", [{}, {"readout": 2.3}, {"kind": EchoStateNetwork}])
def test_normal_networks_know_their_modes(kind, n, varied, rng):
    n = n - n % 2 if kind == "oscillators" else n
    options = {"allow_unstable": True} | varied
    maps: Any = both(NORMAL[kind](n, rng), 7, **options)[1].maps
    modes = maps.modes()
    assert modes is not None
    n_blocks = modes.responses.shape[1]
    # v = vectors(y) and u = vectors(x) have the kernel Re Σ_b γ_nb conj(y_b) x_b.
    for _ in range(10):
        b, c = rng.integers(n_blocks, size=2)
        x, y = np.zeros((2, n_blocks), complex)
        x[b], y[c] = 1.0, 1.0
        u, v = modes.vectors(x), modes.vectors(y)
        assert np.linalg.norm(u) == pytest.approx(1)
        wanted = np.real(modes.responses @ (y.conj() * x))
        found = maps.reduced(v[:, None], u[:, None])[:, 0, 0]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    planes = [b for b in range(n_blocks) if modes.vectors(1j * np.eye(n_blocks)[b]).any()]
    for b in planes[:3]:
        x = np.eye(n_blocks)[b].astype(complex)
        u, v = modes.vectors(1j * x), modes.vectors(x)
        found = maps.reduced(v[:, None], u[:, None])[:, 0, 0]
        wanted = np.real(1j * modes.responses[:, b])
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert n_blocks + len(planes) == n


def test_other_networks_have_no_modes(rng):
    assert both(random(20, 5, rng))[1].maps.modes() is None
    assert (
        both(NORMAL["ring"](20, rng), tau=rng.uniform(0.2, 1, 20))[1].maps.modes() is None
    )


def test_a_large_ring_has_fourier_modes():
    """Mode k of τ ẏ = −y + 0.9 (shift) y + u x grows by (0.9 e^(−2πik/N) − 1)/τ."""
    n, tau, dt = 3000, 0.25, 0.5
    modes: Any = unfold(Reservoir.cycle(n), n_steps=10, dt=dt).maps.modes()
    rates = (0.9 * np.exp(-2j * np.pi * np.arange(n // 2 + 1) / n) - 1) / tau
    pushed = (np.exp(rates * dt) - 1) / (rates * tau)
    wanted = pushed * np.exp(rates * dt) ** np.arange(9, -1, -1)[:, None]
    np.testing.assert_allclose(modes.responses, wanted, rtol=0, atol=1e-13)
