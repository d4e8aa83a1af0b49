import pickle

import numpy as np
import pytest
from scipy import sparse

from greenfold import Gain, Reservoir

from ..conftest import small


def test_random_weights_have_variance_g2_over_n():
    weights = Reservoir.random(400, g=0.7, rng=0).weights
    # Standard error of a variance from n samples is sqrt(2/n): 160 000 samples, 4 sigma.
    assert weights.var() * 400 == pytest.approx(0.49, rel=4 * np.sqrt(2 / 160_000))
    assert np.array_equal(weights, Reservoir.random(400, g=0.7, rng=0).weights)


def test_reservoir_is_immutable_and_keeps_a_copy(rng):
    own = rng.standard_normal((5, 5)) * 0.1
    reservoir = Reservoir(own)
    own[0, 0] = 99
    assert reservoir.weights[0, 0] != 99
    with pytest.raises(ValueError, match="read-only"):
        reservoir.weights[0, 0] = 1
    with pytest.raises(AttributeError):
        reservoir.tau = 2.0  # type: ignore[misc]


def test_sparse_weights_are_the_same_network(rng):
    dense = rng.standard_normal((6, 6)) * (rng.random((6, 6)) < 0.3) * 0.3
    network, same = Reservoir(sparse.coo_array(dense)), Reservoir(dense)
    assert network.weights.format == "csr"
    assert np.array_equal(network.weights.toarray(), dense)
    assert network.spectral_abscissa == pytest.approx(same.spectral_abscissa)
    assert network.modes().eigenvalues == pytest.approx(same.modes().eigenvalues)


def test_modes_satisfy_their_equation(rng):
    reservoir = small(n=30)
    modes = reservoir.modes()
    left = modes.left_vectors @ reservoir.weights
    # Residual of a backward-stable eigensolver: a few hundred roundings of ‖W‖.
    assert np.abs(left - modes.eigenvalues[:, None] * modes.left_vectors).max() < 1e-12
    assert np.linalg.norm(modes.left_vectors, axis=1) == pytest.approx(1)
    assert (np.diff(modes.eigenvalues.real) <= 0).all()
    assert modes.time_constants == pytest.approx(0.25 / (1 - modes.eigenvalues.real))
    u = rng.standard_normal(30)
    assert modes.loading(u) == pytest.approx(modes.left_vectors @ u)


def test_defective_weights_have_modes_and_stability():
    reservoir = Reservoir([[0.5, 1.0], [0.0, 0.5]])
    assert reservoir.spectral_abscissa == pytest.approx(0.5)
    assert np.isfinite(reservoir.modes().time_constants).all()


def test_unstable_network_says_what_to_do():
    with pytest.raises(
        ValueError, match=r"multiply the weights \(or `g`\) by 0\.45"
    ) as caught:
        Reservoir(np.eye(3) * 2)
    assert "allow_unstable=True" in str(caught.value)
    copied = pickle.loads(pickle.dumps(caught.value))  # as from a process of a pool
    assert (copied.abscissa, str(copied)) == (2.0, str(caught.value))
    assert not Reservoir(np.eye(3) * 2, allow_unstable=True).is_stable
    with pytest.raises(ValueError, match="non-linear"):
        Reservoir(np.eye(3) * 2, gain=Gain.quadratic(0.1), allow_unstable=True)
    # The slope of the gain counts: φ(y) = 3y makes W = 0.5 I unstable.
    with pytest.raises(ValueError, match="unstable"):
        Reservoir(np.eye(3) * 0.5, gain=Gain.polynomial([0, 3]))


def test_unstable_nonlinear_network_is_refused():
    with pytest.raises(
        ValueError, match="unstable.*cannot be unfolded around growing modes"
    ):
        small(Gain.quadratic(0.05), g=3.0)


def test_linearized_abscissa_is_the_papers_matrix(rng):
    reservoir = small(Gain.quadratic(0.3), n=8)
    states = rng.standard_normal((2, 3, 8))
    found = reservoir.linearized_abscissa(states)
    expected = np.linalg.eigvals(reservoir.weights * (1 + 0.6 * states[1, 2])).real.max()
    assert found.shape == (2, 3)
    assert found[1, 2] == pytest.approx(expected)
    assert reservoir.linearized_abscissa(np.zeros(8)) == pytest.approx(
        reservoir.spectral_abscissa
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Reservoir(np.ones((2, 3))), ValueError, r"`weights`.*square.*\(2, 3\)"),
        (lambda: Reservoir(np.full((2, 2), np.nan)), ValueError, r"`weights`.*finite.*nan"),
        (lambda: Reservoir(np.eye(2) * 1j), TypeError, r"`weights`.*real.*complex"),
        (lambda: Reservoir(np.empty((0, 0))), ValueError, "`weights` is empty"),
        (lambda: Reservoir([["a"]]), TypeError, "`weights`.*numbers"),
        (lambda: Reservoir([[2**70]]), TypeError, "`weights`.*fixed width"),
        (lambda: Reservoir(np.zeros((2, 2)), tau=0), ValueError, "`tau`.*positive.*0"),
        (lambda: Reservoir(np.zeros((2, 2)), tau="x"), TypeError, "`tau`.*'x'"),  # type: ignore[arg-type]
        (lambda: Reservoir(np.zeros((2, 2)), gain=np.tanh), TypeError, "`gain`.*Gain"),  # type: ignore[arg-type]
        (lambda: Reservoir.random(0), ValueError, "`n_neurons`.*at least 1"),
        (lambda: Reservoir.random(2.5), TypeError, "`n_neurons`.*integer.*2.5"),  # type: ignore[arg-type]
        (lambda: Reservoir.random(5, g=-1), ValueError, "`g`.*positive"),
        (
            lambda: small().linearized_abscissa(np.zeros(3)),
            ValueError,
            "`states`.*12 neurons",
        ),
        (lambda: small().modes().loading(np.zeros(3)), ValueError, "`u`.*12 rows"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
