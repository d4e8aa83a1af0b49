"""The non-linear problem: its value, its readout and its gradient."""

import numpy as np
import pytest

from greenfold import Ascent, SampleStimuli, optimize
from greenfold.math.margins import gaussian_soft_margin
from greenfold.optimizers.nonlinear import NonlinearProblem

from ..conftest import slope, unit
from ..stimuli.nonlinear_cases import READOUTS
from ..stimuli.nonlinear_cases import setting as strong_setting
from .nonlinear_cases import ETA, setting


def kappa(unfolding, stimuli, u, v, eta=ETA):
    """The independent judge: κ from the tensors of Green's functions, class by class."""
    G1, G2 = unfolding.greens1(), unfolding.greens2()
    a = np.einsum("i,nip,p->n", v, G1, u)
    C = np.einsum("i,ipqnm,p,q->nm", v, G2, u, u)
    means, seconds = [], []
    for sign in (1, -1):
        m, S = sign * stimuli.mu, stimuli.psi + sign * stimuli.chi
        tilted = a + 2 * C @ m
        mean = a @ m + m @ C @ m + np.trace(C @ S)
        means.append(sign * mean)
        seconds.append(tilted @ S @ tilted + 2 * np.trace(C @ S @ C @ S) + mean**2)
    M = np.mean(means)
    return M - eta / 2 * (np.mean(seconds) - M**2)


def test_value_is_that_of_the_green_tensors():
    unfolding, stimuli = setting(n=5, alpha=0.1)
    found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1))
    expected = kappa(unfolding, stimuli, found.u, found.v)
    # Rounding of sums of 5³ · 5² terms.
    assert found.soft_margin == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kind", ["gaussian", "few samples", "many samples"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("readout", "n_channels"),
    [(None, 1), (None, 2), (1.7, 1), (READOUTS["weights"], 2)],
    ids=["end", "two channels", "inside a step", "weights"],
)
def test_gradient_by_its_taylor_remainder(order, n_channels, readout, kind, rng):
    """Slope ≥ 1.9 of what the gradient of F(u) = max_v κ leaves over; 2 is expected."""
    unfolding, stimuli = strong_setting(order, n_channels, readout, alpha=0.3, n=6)
    if kind != "gaussian":
        n = 10 if kind == "few samples" else 60
        stimuli = SampleStimuli(*stimuli.sample(n, rng=3), normalize=None)
    problem = NonlinearProblem(unfolding, stimuli, 3.0)
    u, direction = unit(rng, 6, n_channels), unit(rng, 6, n_channels)
    _, margin, gradient = problem.evaluate(u)
    steps = np.array([4e-3, 2e-3, 1e-3])
    change = [problem.evaluate(u + s * direction)[1].value - margin.value for s in steps]
    remainder = np.abs(np.array(change) - steps * (gradient * direction).sum())
    assert slope(steps, remainder) >= 1.9


def test_readout_and_margin_belong_together(rng):
    """κ of the problem is the soft margin of its moments, and no other v beats it."""
    unfolding, stimuli = strong_setting()
    problem = NonlinearProblem(unfolding, stimuli, 10.0)
    u = unit(rng, 8, 1)
    v, margin = problem.best_readout(u)
    M, Sigma = stimuli.moments(unfolding, u)
    assert gaussian_soft_margin(M, Sigma, v, 10.0).value == pytest.approx(margin.value)
    others = rng.standard_normal((2000, 8))
    others = v + 0.3 * others
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    values = others @ M - 5 * np.einsum("ni,ij,nj->n", others, Sigma, others)
    assert values.max() <= margin.value
    assert problem.evaluate(u)[1] == pytest.approx(margin)


@pytest.mark.filterwarnings("error")
def test_overflow_of_the_moments_is_one_sentence():
    unfolding, stimuli = setting(alpha=1e200)
    with pytest.raises(OverflowError, match="lower the non-linearity"):
        optimize(unfolding, stimuli, ETA, Ascent(n_starts=1))
