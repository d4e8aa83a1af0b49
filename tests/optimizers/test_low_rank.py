"""The improvement of relaxed solutions, against the optimum of the relaxation."""

import numpy as np
import pytest

from greenfold.optimizers.linear import LinearProblem

from .linear_cases import ETA, relaxed_optimum, setting


def kappa_of_factors(unfolding, stimuli, A, B):
    """κ of X = Σ_r A_r B_rᵀ from the tensor of Green's functions, and its nuclear norm."""
    X = np.einsum("ir,pcr->icp", A, B)
    a = np.einsum("nip,icp->cn", unfolding.greens1(), X).ravel()
    value = a @ stimuli.mu - ETA / 2 * a @ stimuli.psi @ a
    return value, np.linalg.norm(X.reshape(len(A), -1), "nuc")


@pytest.mark.parametrize(("seed", "n_channels"), [(0, 1), (1, 2), (2, 2)])
def test_reaches_the_optimum_of_the_relaxation(seed, n_channels, rng):
    """From any factors of sufficient rank that tell the classes apart the right way."""
    unfolding, stimuli = setting(None, n_channels, n=6, n_steps=6, strength=2.0, seed=seed)
    A, B = rng.standard_normal((6, 4)), rng.standard_normal((6, n_channels, 4))
    a = np.einsum("nip,ir,pcr->cn", unfolding.greens1(), A, B).ravel()
    A = A * np.sign(a @ stimuli.mu)
    A, B = LinearProblem(unfolding, stimuli, ETA).improve(A, B, max_iter=3000)
    value, norm = kappa_of_factors(unfolding, stimuli, A, B)
    assert norm <= 1 + 1e-12
    relaxed = relaxed_optimum(unfolding, stimuli)
    # Both stop where κ is flat; the judge's steps have shrunk to 1e-5 of κ at worst.
    assert value == pytest.approx(relaxed, rel=1e-4)
    few = LinearProblem(unfolding, stimuli, ETA).improve(A, B, max_iter=1)
    assert kappa_of_factors(unfolding, stimuli, *few)[0] >= value * (1 - 1e-9)


def test_shrinks_where_the_ball_is_too_large():
    """One neuron: the best X lies inside, as max over t of t a·μ − t² (η/2) aᵀψa."""
    unfolding, stimuli = setting(n=1, n_steps=3, strength=0.1)
    one = np.ones((1, 1))
    full, _ = kappa_of_factors(unfolding, stimuli, one, one[:, None])
    A, B = LinearProblem(unfolding, stimuli, ETA).improve(one, one[:, None], max_iter=50)
    value, norm = kappa_of_factors(unfolding, stimuli, A, B)
    assert norm < 0.9
    assert value > max(full, 0)
    assert value == pytest.approx(relaxed_optimum(unfolding, stimuli), rel=1e-8)
