"""The paper's Algorithm 1: its three cases, and the rounds it reports."""

import numpy as np
import pytest

from greenfold import Alternating, Ascent, SampleStimuli, optimize
from greenfold.math.margins import gaussian_soft_margin
from greenfold.optimizers.alternating import FixedReadout, QuadraticInput, solve_lagrange
from greenfold.optimizers.nonlinear import NonlinearProblem

from ..conftest import unit
from ..stimuli.nonlinear_cases import setting as strong_setting
from .nonlinear_cases import ETA, setting


@pytest.mark.parametrize("kind", ["gaussian", "samples"])
@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("readout", [None, 1.5, "weights"])
def test_fixed_readout_agrees_with_the_moments(readout, n_channels, kind, rng):
    """Two ways to κ and ∂κ/∂u at a given v: its own kernels, and all neurons' moments."""
    unfolding, stimuli = strong_setting(n_channels=n_channels)
    if kind == "samples":
        stimuli = SampleStimuli(*stimuli.sample(30, rng=1), normalize=None)
    if readout == "weights":
        readout = rng.standard_normal(unfolding.n_steps)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    problem = NonlinearProblem(unfolding, stimuli, 10.0)
    u, v = unit(rng, 8, n_channels), unit(rng, 8)
    margin, gradient = FixedReadout(problem, v)(u)
    moments = problem.moments_at(u)
    expected = gaussian_soft_margin(moments.M, moments.Sigma, v, 10.0)
    # Rounding of sums of some hundred terms.
    assert margin == pytest.approx(expected, rel=1e-11)
    assert gradient == pytest.approx(
        moments.pull(v, 10.0), abs=1e-11 * np.abs(gradient).max()
    )


def test_cases_a_and_b_maximise_the_quadratic_part(rng):
    """No unit u near the solution has a larger u·m₀ + uᵀ(m₁ − σ₀)u."""
    unfolding, stimuli = setting(n=6)
    problem, v = NonlinearProblem(unfolding, stimuli, ETA), unit(rng, 6)
    quadratic = QuadraticInput(problem)
    u = quadratic(v)[:, 0]
    rows = np.einsum("i,nip->np", v, unfolding.greens1())
    m1 = quadratic.m1(v, stimuli.labelled_second_moment)[0, :, 0, :]
    sigma0 = ETA / 2 * rows.T @ stimuli.psi @ rows

    def value(u):
        return u @ rows.T @ stimuli.mu + u @ (m1 - sigma0) @ u

    assert np.linalg.norm(u) == pytest.approx(1)
    for size in (0.01, 0.1, 1.0):
        for _ in range(200):
            other = u + size * rng.standard_normal(6)
            assert value(other / np.linalg.norm(other)) <= value(u) + 1e-15


@pytest.mark.parametrize("n_channels", [1, 2])
def test_case_c_solves_the_lagrange_conditions(n_channels, rng):
    """∂κ/∂u is parallel to u, to the 1e-8 of the root finder, from a guess that is near.

    From far it may stall; the restart rule of the alternation is for that.
    """
    unfolding, stimuli = setting(n=4, alpha=0.1, n_channels=n_channels)
    problem = NonlinearProblem(unfolding, stimuli, ETA)
    best = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1))
    start = best.u.reshape(4, n_channels) + 0.01 * unit(rng, 4, n_channels)
    start /= np.linalg.norm(start)
    u, solved = solve_lagrange(FixedReadout(problem, best.v), start)
    assert solved
    assert np.linalg.norm(u) == pytest.approx(1, rel=1e-12)

    def tangent(u):
        _, gradient = FixedReadout(problem, best.v)(u)
        return np.linalg.norm(gradient - (gradient * u).sum() * u)

    assert tangent(u) < 1e-7
    assert tangent(start) > 1e-5


def test_alternation_reports_its_rounds():
    unfolding, stimuli = setting(n=5)
    found = optimize(unfolding, stimuli, ETA, Alternating(n_starts=2, tol=1e-2), rng=0)
    assert found.method == "alternating"
    assert found.status == "converged"
    assert found.starts.shape == (2,)
    assert found.soft_margin == found.starts.max()
    values = found.history[:, 0] - found.history[:, 1]
    assert (np.diff(values) >= 0).all()
    assert values[-1] == pytest.approx(found.soft_margin)
    assert found.n_iter == len(found.history) - 1
    short = optimize(unfolding, stimuli, ETA, Alternating(n_starts=1, rounds=1), rng=0)
    assert short.status == "max_iterations"
