import numpy as np
import pytest

from greenfold import Gain, Kernel, SampleStimuli, unfold
from greenfold.unfolding.kernels import SquareOfInput

from ..conftest import small, unit
from ..optimizers.nonlinear_cases import setting


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
def test_overflow_is_an_error_not_a_class(rng):
    C = np.zeros((1, 4, 1, 4))
    C[0, 0, 0, 0] = 1.0
    kernel = Kernel(np.ones((1, 4)), C)
    X = rng.standard_normal((3, 4))
    assert np.isfinite(kernel.decision_values(X * 1e100)).all()
    with pytest.raises(OverflowError, match="scale `X` down"):
        kernel.predict(X * 1e200)


@pytest.mark.parametrize("kind", ["gaussian", "samples"])
@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("readout", [None, 1.5, "weights"])
def test_m1_is_the_contraction_of_the_second_green_function(readout, n_channels, kind, rng):
    """m₁ = Σ v_i G⁽²⁾_ipqnm ⟨ζ x_cn x_dm⟩, from the tensor that it never forms."""
    unfolding, stimuli = setting(n=4, n_channels=n_channels)
    if readout == "weights":
        readout = rng.standard_normal(5)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    if kind == "samples":
        stimuli = SampleStimuli(*stimuli.sample(10, rng=1), normalize=None)
    v = unit(rng, 4)
    third = stimuli.labelled_second_moment.reshape(n_channels, 5, n_channels, 5)
    expected = np.einsum("i,ipqnm,cndm->cpdq", v, unfolding.greens2(), third)
    found = SquareOfInput(unfolding.maps)(v, stimuli.labelled_second_moment)
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
