import numpy as np
import pytest

from greenfold import Gain, Kernel, unfold
from greenfold.unfolding.kernel import LowRankKernel

from ..conftest import small, unit


@pytest.mark.parametrize("readout", [None, 0.7, 1.2, "weights"])
@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("order", [0, 1])
def test_kernels_equal_states(order, n_channels, readout, rng):
    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=6, dt=0.4, order=order)
    if readout == "weights":
        readout = rng.standard_normal(6)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    X = rng.standard_normal((30, n_channels, 6))
    u, v = unit(rng, 12, n_channels), unit(rng, 12)
    expected = unfolding.states(X, u) @ v
    kernel = unfolding.kernels(u, v)
    z = kernel.decision_values(X)
    assert np.abs(z - expected).max() <= 1e-10 * np.abs(expected).max()
    assert np.array_equal(kernel.predict(X), np.where(expected >= 0, 1, -1))
    if order:
        assert kernel.quadratic is not None
        assert kernel.quadratic == pytest.approx(kernel.quadratic.transpose(2, 3, 0, 1))


def test_kernel_at_the_papers_size(ecg_like, rng):
    from greenfold import Reservoir

    reservoir = Reservoir.random(100, gain=Gain.quadratic(0.05), rng=5)
    unfolding = unfold(reservoir, n_steps=140, dt=10 / 140, order=1)
    u, v = unit(rng, 100), unit(rng, 100)
    expected = unfolding.states(ecg_like, u) @ v
    z = unfolding.kernels(u, v).decision_values(ecg_like)
    assert np.abs(z - expected).max() <= 1e-10 * np.abs(expected).max()


def test_kernel_refuses_other_shapes():
    kernel = Kernel(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"`X`.*n_steps = 4"):
        kernel.decision_values(np.ones((3, 2, 5)))
    with pytest.raises(ValueError, match=r"`X`.*2 channel"):
        kernel.decision_values(np.ones((3, 4)))
    X = np.ones((3, 2, 4))
    X[2, 1, 3] = np.nan
    with pytest.raises(ValueError, match="`X`.*nan in case 2, channel 1, step 3"):
        kernel.decision_values(X)


def quadratic_kernel(rng, n_channels=1):
    """A kernel of 40 steps, whose eigenvalues decay."""
    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=40, dt=0.1, order=1)
    return unfolding.kernels(unit(rng, 12, n_channels), unit(rng, 12))


@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_low_rank_stays_within_its_bound(tol, n_channels, rng):
    kernel = quadratic_kernel(rng, n_channels)
    few = kernel.low_rank(tol)
    assert isinstance(few, LowRankKernel)
    assert kernel.error_bound == 0
    assert kernel.quadratic is not None
    assert few.quadratic is not None
    size = 40 * n_channels
    C = kernel.quadratic.reshape(size, size)
    largest = np.abs(np.linalg.eigvalsh(C)).max()
    assert 0 < few.error_bound <= tol * largest
    assert len(few.eigenvalues) * (size + 2) < size * (size + 1)
    X = rng.standard_normal((500, n_channels, 40))
    apart = np.abs(few.decision_values(X) - kernel.decision_values(X))
    square = (X**2).sum((1, 2))
    # Rounding of sums of `size` terms beside the bound.
    assert (apart <= (few.error_bound + 1e-14 * largest) * square).all()
    # The bound is the best there is: the first eigenvector left out reaches it.
    dropped = C - few.quadratic.reshape(size, size)
    values, vectors = np.linalg.eigh(dropped)
    worst = vectors[:, np.argmax(np.abs(values))].reshape(1, n_channels, 40)
    reached = few.decision_values(worst) - kernel.decision_values(worst)
    assert abs(reached[0]) == pytest.approx(few.error_bound, rel=1e-6)
    # Its own truncated C gives the same values.
    plain = Kernel(few.linear, few.quadratic)
    assert few.decision_values(X) == pytest.approx(plain.decision_values(X), abs=1e-13)


def test_low_rank_is_exact_where_only_zeros_are_dropped(rng):
    vectors, _ = np.linalg.qr(rng.standard_normal((8, 3)))
    C = (vectors * [2.0, -1.0, 0.5]) @ vectors.T
    kernel = Kernel(rng.standard_normal((2, 4)), C.reshape(2, 4, 2, 4))
    few = kernel.low_rank(1e-12)
    assert isinstance(few, LowRankKernel)
    assert few.eigenvalues == pytest.approx([2.0, -1.0, 0.5])
    X = rng.standard_normal((20, 2, 4))
    # Rounding only.
    assert few.error_bound < 1e-14
    assert few.decision_values(X) == pytest.approx(kernel.decision_values(X), abs=1e-13)
    assert np.array_equal(few.predict(X), kernel.predict(X))


def test_low_rank_is_the_kernel_itself_where_it_saves_nothing(rng):
    full = Kernel(np.ones((1, 3)), np.eye(3).reshape(1, 3, 1, 3))
    assert full.low_rank() is full
    linear = Kernel(np.ones((1, 3)))
    assert linear.low_rank() is linear
    none = Kernel(np.ones((1, 3)), np.zeros((1, 3, 1, 3))).low_rank()
    assert none.error_bound == 0
    X = rng.standard_normal((4, 3))
    assert none.decision_values(X) == pytest.approx(X.sum(1))


@pytest.mark.parametrize("name", ["array_api_strict", "torch"])
def test_low_rank_in_other_namespaces(name, rng):
    xp = pytest.importorskip(name)
    few = quadratic_kernel(rng).low_rank()
    X = rng.standard_normal((7, 40))
    z = few.decision_values(xp.asarray(X))
    assert type(z) is type(xp.asarray(X))
    assert np.asarray(z) == pytest.approx(few.decision_values(X), abs=1e-13)


@pytest.mark.parametrize("tol", [-0.1, 1.0, 7])
def test_low_rank_refuses_other_tolerances(tol):
    with pytest.raises(ValueError, match=r"`tol` must be a share in \[0, 1\)"):
        Kernel(np.ones((1, 3))).low_rank(tol)


@pytest.mark.parametrize(
    ("linear", "quadratic", "message"),
    [
        (np.ones(3), None, "`linear` must have 2 dimensions"),
        (np.full((1, 3), np.nan), None, "`linear` must be finite"),
        (np.ones((1, 3)), np.full((1, 3, 1, 3), np.inf), "`quadratic` must be finite"),
        (np.ones((1, 3)), np.ones((1, 4, 1, 4)), r"`quadratic` must have shape \(1, 3, 1"),
    ],
)
def test_kernels_are_checked_where_they_are_made(linear, quadratic, message):
    with pytest.raises(ValueError, match=message):
        Kernel(linear, quadratic)


def test_lists_make_a_kernel():
    kernel: Kernel = Kernel([[1.0, 2.0, 3.0]])  # pyright: ignore[reportArgumentType]
    assert kernel.decision_values(np.ones((2, 3))).tolist() == [6.0, 6.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("low_rank", [False, True])
def test_overflow_is_an_error_not_a_class(low_rank, rng):
    C = np.zeros((1, 4, 1, 4))
    C[0, 0, 0, 0] = 1.0
    kernel = Kernel(np.ones((1, 4)), C)
    kernel = kernel.low_rank(0.1) if low_rank else kernel
    X = rng.standard_normal((3, 4))
    assert np.isfinite(kernel.decision_values(X * 1e100)).all()
    with pytest.raises(OverflowError, match="scale `X` down"):
        kernel.predict(X * 1e200)
