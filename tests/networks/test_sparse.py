"""Sparse weights: kept as they are, and the same network as the dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from greenfold import EchoStateNetwork, Gain, Reservoir, load
from greenfold._base import checks
from greenfold._base.model_files import ModelFileError, pack, unpack
from greenfold.networks import spectra
from greenfold.networks.reservoir import UnstableError
from greenfold.networks.weights import dale_plan, random_plan


def random(n, per_row, rng, radius=0.9):
    share = min(1.0, per_row / n)
    made = rng.standard_normal((n, n)) * (rng.random((n, n)) < share)
    return made * radius / np.sqrt(n * share)


def defective(n, rng):
    """A chain that feeds a ring: one eigenvector for many eigenvalues zero."""
    made = np.eye(n, k=-1) * rng.uniform(0.5, 2.0, n)
    made[n // 2, -1] = 0.3
    return made


MEASURED: list[tuple[Any, Any]] = [("real part", np.real), ("absolute value", np.abs)]
KINDS = {
    "random": lambda n, rng: random(n, 4, rng),
    "disconnected": lambda n, rng: random(n, 1, rng),
    "defective": defective,
    "nilpotent": lambda n, rng: np.tril(random(n, 5, rng), -1),
    "ring": lambda n, rng: 0.9 * np.roll(np.eye(n), 1, axis=0),
    "ring of both signs": lambda n, rng: (
        0.5 * np.roll(np.eye(n), 2, axis=0) - 0.3 * np.roll(np.eye(n), -1, axis=0)
    ),
    "almost a ring": lambda n, rng: (
        0.9 * np.roll(np.eye(n), 1, axis=0) - 0.1 * np.eye(1, n).T * np.eye(1, n)
    ),
    "pairs": lambda n, rng: np.kron(np.eye(n // 2), [[0.5, -2], [2, 0.5]]),
    "diagonal": lambda n, rng: np.diag(rng.uniform(-3, 0.9, n)),
    "empty": lambda n, rng: np.zeros((n, n)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [4, 60])
def test_eigenvalues_are_those_of_the_dense_matrix(kind, n, rng):
    dense = KINDS[kind](n, rng)
    values = np.linalg.eigvals(dense)
    # LAPACK gives eigenvalues of a Jordan block of size n with errors of ε^(1/n); the parts
    # of `defective` and `nilpotent` hold no such block, so their own values judge them.
    if kind in ("defective", "nilpotent"):
        ring = dense[n // 2 :, n // 2 :] if kind == "defective" else dense[:1, :1]
        values = np.linalg.eigvals(ring)
    made = sparse.csr_array(dense)
    for which, measured in MEASURED:
        wanted = max(float(measured(values).max()), 0.0 if kind == "defective" else -9)
        assert spectra.largest(made, which) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("power", [-700, 700])
def test_eigenvalues_of_tiny_and_huge_weights(power, rng):
    """Of a matrix times a power of two, exactly; LAPACK alone misses some by 1e80."""
    dense = random(60, 10, rng)
    for which, measured in MEASURED:
        wanted = np.ldexp(measured(np.linalg.eigvals(dense)).max(), power)
        for made in (np.ldexp(dense, power), sparse.csr_array(np.ldexp(dense, power))):
            assert spectra.largest(made, which) == pytest.approx(wanted, rel=1e-12)


def test_a_search_finds_the_largest_eigenvalues(rng):
    # ARPACK's relative residual is below 1e-4, and the error of these eigenvalues, of
    # condition 30 and less, is near its square; a dense decomposition judges.
    dense = random(700, 20, rng)
    values, made = np.linalg.eigvals(dense), sparse.csr_array(dense)
    for which, measured in MEASURED:
        assert spectra.largest(made, which) == pytest.approx(measured(values).max(), 1e-5)
        assert spectra.largest(made, which) == spectra.largest(made, which)


@pytest.mark.parametrize("turn", [0.0, 2.0])
def test_an_eigenvalue_that_stands_out_needs_few_products(turn, rng, monkeypatch):
    # Its relative residual is below 1e-10, and its condition is of order one.
    dense, (a, b) = random(700, 20, rng, radius=0.5), rng.standard_normal((2, 700))
    dense += 2.0 * np.outer(a, a) / (a @ a) + turn * (np.outer(a, b) - np.outer(b, a)) / 700
    values = np.linalg.eigvals(dense)
    monkeypatch.setattr(spectra, "eigs", None)  # ARPACK is not called
    for which, measured in MEASURED:
        found = spectra.largest(sparse.csr_array(dense), which)
        assert found == pytest.approx(measured(values).max(), 1e-8)


@pytest.mark.parametrize("kind", [Reservoir, EchoStateNetwork])
@pytest.mark.parametrize("bias", [None, 0.4])
@pytest.mark.parametrize("gain", [Gain.linear(), Gain.sigmoid()])
def test_a_sparse_network_is_the_dense_network(kind, bias, gain, rng):
    dense, speed = random(40, 5, rng, 0.7), rng.uniform(0.3, 0.9, 40)
    network, same = (
        kind(made, speed, gain, bias=bias) for made in (sparse.coo_array(dense), dense)
    )
    assert network.weights.format == "csr"
    assert not network.weights.data.flags.writeable
    # Both resting states have residuals of rounding.
    np.testing.assert_allclose(network.rest, same.rest, rtol=1e-11, atol=1e-13)
    if kind is Reservoir:
        found = network.linear_weights, network.spectral_abscissa
        wanted = same.linear_weights, same.spectral_abscissa
        states = rng.standard_normal((2, 40))
        one, other = (each.linearized_abscissa(states) for each in (network, same))
        np.testing.assert_allclose(one, other, rtol=1e-9)
    else:
        found = network.linear_step[0], network.spectral_radius
        wanted = same.linear_step[0], same.spectral_radius
    np.testing.assert_allclose(found[0].toarray(), wanted[0], rtol=1e-10, atol=1e-13)
    assert found[1] == pytest.approx(wanted[1], rel=1e-10)
    assert repr(network) == repr(same)


def test_the_resting_state_of_a_strong_bias_needs_newton(rng):
    dense = random(60, 10, rng, 1.4)
    bias = rng.normal(1.5, 0.2, 60)
    made = Reservoir(sparse.csr_array(dense), gain=Gain.tanh(), bias=bias)
    left = dense @ np.tanh(made.rest) + bias - made.rest
    assert np.abs(left).max() < 1e-11


def test_a_network_without_a_resting_state_says_so():
    with pytest.raises(ValueError, match="leaves the network without a rest state"):
        Reservoir(sparse.eye_array(5), allow_unstable=True, bias=1.0)
    with pytest.raises(UnstableError, match="largest real part"):
        Reservoir(sparse.eye_array(5))


@pytest.mark.parametrize(
    "made",
    [
        lambda: Reservoir.random(1000, connectivity=0.01, rng=0),
        lambda: Reservoir.random(1000, connectivity=0.02, spectral_radius=0.8, rng=0),
        lambda: Reservoir.excitatory_inhibitory(1000, connectivity=0.05, rng=0),
        lambda: Reservoir.oscillators(np.arange(1.0, 501), np.ones(500)),
        lambda: Reservoir.cycle(1000),
        lambda: EchoStateNetwork.random(1000, connectivity=0.01, rng=0),
        lambda: EchoStateNetwork.delay_line(1000, 1.2),
        lambda: EchoStateNetwork.from_graph(sparse.eye_array(1000)),
    ],
)
def test_large_networks_are_drawn_sparse(made):
    network = made()
    assert network.weights.format == "csr"
    assert network.is_stable
    again = made()
    assert (network.weights != again.weights).nnz == 0
    told, arrays = pack(network)
    assert (unpack(told, arrays).weights != network.weights).nnz == 0


def test_drawn_weights_have_the_share_and_the_spread(rng):
    weights = random_plan(3000, 0.8, rng, 0.01).draw()
    mean = 0.01 * 3000**2
    # Four standard deviations of a binomial count and of a variance.
    assert weights.nnz == pytest.approx(mean, abs=4 * np.sqrt(mean))
    assert weights.data.var() * 30 == pytest.approx(0.64, rel=4 * np.sqrt(2 / mean))
    # Chi-square of 900 counts: mean 899, and four standard deviations of √(2 · 899).
    rows, columns = (one // 100 for one in weights.tocoo().coords)
    counts = np.bincount(rows * 30 + columns, minlength=900)
    chi = float(((counts - mean / 900) ** 2).sum() / (mean / 900))
    assert chi == pytest.approx(899, abs=4 * np.sqrt(2 * 899))


def test_sparse_excitation_and_inhibition(rng):
    weights = dale_plan(1000, 0.7, rng, 0.8, 0.05, 1.5).draw().toarray()
    assert (weights[:, :800] >= 0).all()
    assert (weights[:, 800:] <= 0).all()
    up, down = weights[:, :800].sum(1), -weights[:, 800:].sum(1)
    both = (up > 0) & (down > 0)
    np.testing.assert_allclose(down[both], 1.5 * up[both], rtol=1e-12)
    assert np.sqrt(weights.var(axis=0).sum()) == pytest.approx(0.7)


def test_what_needs_a_dense_array_refuses_a_large_network(monkeypatch):
    monkeypatch.setattr(checks, "DENSE_BYTES", 8 * 999**2)
    network = Reservoir.cycle(1000)
    with pytest.raises(MemoryError, match="1000 neurons would take arrays of 0.00745 GiB"):
        network.modes()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (sparse.csr_array((2, 3)), "square matrix"),
        (sparse.coo_array(([1.0, np.nan], ([0, 1], [1, 0]))), r"nan at index \(1, 0\)"),
        (sparse.csr_array([[1j]]), "real numbers"),
        (sparse.coo_array(np.ones(3)), "two dimensions"),
        (sparse.csr_array((0, 0)), "empty"),
    ],
)
def test_bad_sparse_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=f"`weights` .*{message}"):
        Reservoir(weights)


def test_a_file_keeps_sparse_weights(tmp_path, rng):
    network = Reservoir(sparse.csr_array(random(30, 3, rng)), tau=rng.uniform(0.1, 1, 30))
    network.save(tmp_path / "network.gfm")
    back = load(tmp_path / "network.gfm")
    assert back.weights.format == "csr"
    assert (back.weights != network.weights).nnz == 0
    np.testing.assert_array_equal(back.tau, network.tau)


@pytest.mark.parametrize(
    ("part", "index", "value"),
    [
        ("weights_columns", 0, 30),
        ("weights_columns", 0, -1),
        ("weights_ends", 3, 10**6),
        ("weights_ends", 0, 1),
        ("weights_ends", -1, 0),
        ("weights", 0, np.inf),
    ],
)
def test_damaged_sparse_weights_are_refused(part, index, value, rng):
    told, arrays = pack(Reservoir(sparse.csr_array(random(30, 3, rng))))
    arrays[part] = arrays[part].copy()
    arrays[part][index] = value
    with pytest.raises(ModelFileError, match="'weights'"):
        unpack(told, arrays)


def test_a_connection_takes_twelve_bytes(rng):
    """Eight for the weight and four for its place, whatever the type of the indices given.

    A linear network of slope one keeps no second copy.
    """
    places = rng.integers(0, 500, (2, 4000))
    given = sparse.coo_array((rng.standard_normal(4000) / 50, tuple(places)), (500, 500))
    assert given.tocsr().indices.dtype == np.int64
    network = Reservoir(given)
    assert network.weights.indices.dtype == network.weights.indptr.dtype == np.int32
    assert network.linear_weights is network.weights
    np.testing.assert_array_equal(network.weights.toarray(), given.toarray())


@pytest.mark.parametrize(
    "make", list[Any]([Reservoir, Reservoir.from_graph, EchoStateNetwork])
)
def test_a_wrong_index_is_refused_before_anything_is_allocated(make):
    entries = sparse.coo_array(([1.0], ([0], [999_999_999])), shape=(10**9, 10**9))
    with pytest.raises(MemoryError, match="fewer than 16,777,216 neurons.*index wrong"):
        make(entries)
    with pytest.raises(MemoryError, match="got 1,000,000,000"):
        Reservoir.cycle(10**9)


@pytest.mark.parametrize("tau", ["equal", "unequal"])
def test_the_slowest_modes_of_a_large_network(tau, rng):
    """ARPACK's residuals are near rounding; the condition of these modes is about 100."""
    dense = random(400, 20, rng)
    times = 0.2 if tau == "equal" else rng.uniform(0.1, 0.4, 400)
    wanted = Reservoir(dense, tau=times, allow_unstable=True).modes()
    network = Reservoir(sparse.csr_array(dense), tau=times, allow_unstable=True)
    found = network.modes(slowest=6)
    np.testing.assert_allclose(found.eigenvalues, wanted.eigenvalues[:6], atol=1e-10)
    np.testing.assert_allclose(found.time_constants, wanted.time_constants[:6], rtol=1e-8)
    u = rng.standard_normal(400)
    ours, theirs = np.abs(found.loading(u)), np.abs(wanted.loading(u))[:6]
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)  # up to a phase
    few = Reservoir(dense, tau=times, allow_unstable=True).modes(slowest=6)
    np.testing.assert_allclose(few.eigenvalues, wanted.eigenvalues[:6], atol=1e-12)
