"""Noise inside the network: closed forms judged by a stochastic integrator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greenfold import (
    Device,
    GaussianStimuli,
    MeasuredResponse,
    RandomDraws,
    Reservoir,
    ReservoirClassifier,
    SampleStimuli,
    noisy_accuracy,
    optimize,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats
from greenfold.devices.noise import state_covariance

from ..conftest import small, unit

N_RUNS = 5_000


def integrate(reservoir, Q, duration, n_steps, rng, x=None, u=None):
    """States of the noisy linear network by the stochastic trapezoidal rule.

    Shares no code with the closed form: no exponential, no Lyapunov equation. Its error is
    of the second order in the step.
    """
    n = reservoir.n_neurons
    h = duration / n_steps
    A = (np.eye(n) - reservoir.weights) / reservoir.tau
    forth, back = np.eye(n) - h / 2 * A, np.eye(n) + h / 2 * A
    step = np.linalg.solve(back, forth)
    push = np.linalg.solve(back, np.linalg.cholesky(Q) * np.sqrt(h) / reservoir.tau)
    drive = np.linalg.solve(back, np.eye(n)) * h / reservoir.tau
    y = np.zeros((N_RUNS, n))
    for k in range(n_steps):
        y = y @ step.T + rng.standard_normal((N_RUNS, n)) @ push.T
        if x is not None:
            y += x[:, k * x.shape[1] // n_steps, None] * (drive @ u)
    return y


@pytest.mark.parametrize("duration", [0.3, 2.0])
def test_the_covariance_of_many_runs(rng, duration):
    reservoir = small(n=4)
    root = np.tril(rng.standard_normal((4, 4)))
    Q = root @ root.T + 0.1 * np.eye(4)
    y = integrate(reservoir, Q, duration, 100, rng)
    P = state_covariance(reservoir, Q, duration)
    v = unit(rng, 4)
    for w in (*np.eye(4), v):
        # A variance of n Gaussian draws has the relative standard error √(2/n).
        error = np.sqrt(2 / N_RUNS) * (w @ P @ w)
        assert (y @ w).var() == pytest.approx(w @ P @ w, abs=4 * error)


def test_a_long_time_is_the_lyapunov_equation():
    reservoir = small(n=6)
    P = state_covariance(reservoir, 0.3)
    np.testing.assert_allclose(state_covariance(reservoir, 0.3, 100.0), P, rtol=1e-10)
    A = (reservoir.weights - np.eye(6)) / 0.25
    np.testing.assert_allclose(A @ P + P @ A.T, -0.09 / 0.0625 * np.eye(6), atol=1e-10)
    each = Reservoir(np.zeros((2, 2)), tau=[0.5, 0.1])
    np.testing.assert_allclose(np.diag(state_covariance(each, 0.2)), [0.04, 0.2])
    growing = Reservoir(2 * np.eye(2), allow_unstable=True)
    with pytest.raises(ValueError, match="`duration` must be given"):
        state_covariance(growing, 0.1)
    assert state_covariance(growing, 0.1, 1.0)[0, 0] > 0


@pytest.fixture(scope="module")
def setting():
    network = unfold(small(n=6), n_steps=8, dt=0.4)
    return network, SampleStimuli(*synthetic_heartbeats(200, n_steps=8, rng=0))


@pytest.fixture(scope="module")
def P():
    """Noise in two neurons, strong enough to change what is best."""
    return state_covariance(small(n=6), [0.3, 0.25, 0, 0, 0, 0.1], 3.2)


@pytest.fixture(scope="module")
def free(setting, P):
    """The optimum under that noise, looked at from several sides."""
    return optimize(*setting, device=Device(state_noise=P))


def test_the_bound_holds_and_is_met(setting, P, free, rng):
    network, stimuli = setting
    best = free
    assert best.upper_bound is not None
    assert best.gap is not None
    assert best.gap < 0.1  # the relaxation need not be tight
    G = network.greens1()
    for _ in range(200):
        u, v = unit(rng, 6), unit(rng, 6)
        a = np.einsum("noi,o,i->n", G, v, u)
        value = a @ stimuli.mu - 5 * (a @ stimuli.psi @ a + v @ P @ v)
        assert value <= best.upper_bound
    a = np.einsum("noi,o,i->n", G, best.v, best.u)
    value = a @ stimuli.mu - 5 * (a @ stimuli.psi @ a + best.v @ P @ best.v)
    assert best.soft_margin == pytest.approx(value, rel=1e-9)
    assert best.noise_cost == {"state": pytest.approx(5 * best.v @ P @ best.v)}
    assert "noise: state" in str(best)
    noisy = Device(state_noise=P)
    random = optimize(network, stimuli, device=noisy, method=RandomDraws(50), rng=0)
    assert random.soft_margin < best.soft_margin


def test_noise_that_is_the_same_everywhere_changes_no_projection(setting):
    network, stimuli = setting
    plain = optimize(network, stimuli)
    noisy = optimize(network, stimuli, device=Device(readout_noise=0.2))
    assert noisy.soft_margin == pytest.approx(plain.soft_margin - 5 * 0.04, rel=1e-9)
    assert noisy.upper_bound == pytest.approx((plain.upper_bound or 0) - 0.2, rel=1e-8)
    assert abs(noisy.u @ plain.u) == pytest.approx(1, abs=1e-6)
    assert noisy.noise_cost == {"readout": pytest.approx(0.2)}


def test_input_noise_is_part_of_the_covariance(setting):
    network, stimuli = setting
    best = optimize(network, stimuli, device=Device(input_noise=0.1))
    a = network.kernels(best.u, best.v).linear[0]
    value = a @ stimuli.mu - 5 * (a @ stimuli.psi @ a + 0.01 * a @ a)
    assert best.soft_margin == pytest.approx(value, rel=1e-9)
    assert best.noise_cost == {"input": pytest.approx(0.05 * a @ a)}


def test_the_solved_projections_beat_the_blind_ones_in_simulation(setting, P, free, rng):
    """κ of labelled states of the noisy network, run for real."""
    network, stimuli = setting
    noise = np.diag([0.3, 0.25, 1e-9, 1e-9, 1e-9, 0.1]) ** 2
    X, y = synthetic_heartbeats(N_RUNS, n_steps=8, rng=1)
    X = stimuli.transform(X)
    X = X.reshape(N_RUNS, 8)
    reached = {}
    for name, best in {"blind": optimize(network, stimuli), "solved": free}.items():
        z = y * (integrate(small(n=6), noise, 3.2, 80, rng, X, best.u) @ best.v)
        reached[name] = z.mean() - 5 * z.var()
        # The closed form on these very stimuli, whose own moments are theirs.
        a = network.kernels(best.u, best.v).linear[0]
        clean = y * (X @ a)
        told = clean.mean() - 5 * (clean.var() + best.v @ P @ best.v)
        error = np.sqrt(z.var() / N_RUNS) + 5 * z.var() * np.sqrt(2 / N_RUNS)
        assert reached[name] == pytest.approx(told, abs=4 * error)
    assert reached["solved"] > reached["blind"]


def test_noise_goes_with_masks_supports_and_measured_devices(setting, P, free):
    network, stimuli = setting
    signs = Device(state_noise=P, mask="sign")
    mask = optimize(network, stimuli, device=signs, rng=0)
    assert mask.soft_margin < free.soft_margin
    assert mask.share is not None
    device = MeasuredResponse(network.greens1(), 0.4)
    same = optimize(device, stimuli, device=Device(state_noise=P))
    assert same.soft_margin == pytest.approx(free.soft_margin, rel=1e-8)
    part = optimize(network, stimuli, device=Device(state_noise=P, outputs=range(1, 5)))
    small_device = MeasuredResponse(network.greens1()[:, 1:5], 0.4)
    alone = optimize(small_device, stimuli, device=Device(state_noise=P[1:5, 1:5]))
    assert part.soft_margin == pytest.approx(alone.soft_margin, rel=1e-8)


def test_accuracy_under_state_and_input_noise(rng):
    X, y = synthetic_heartbeats(300, n_steps=20, rng=0)
    fitted: Any = ReservoirClassifier(n_neurons=20, eta=10.0, random_state=0).fit(X, y)
    P = state_covariance(fitted.reservoir_, 0.05, 10.0)
    root = np.linalg.cholesky(P + 1e-15 * np.eye(20))
    head = fitted.heads_[0]
    hits = []
    for _ in range(200):
        noisy = X + 0.3 * rng.standard_normal(X.shape)
        z = (
            fitted.read_out(noisy)[:, 0]
            + (rng.standard_normal((300, 20)) @ root.T) @ head.v
        )
        second = fitted.decision_.scores(z[:, None])[:, 0] > 0
        hits.append((fitted.classes_[second.astype(int)] == y).mean())
    told = noisy_accuracy(fitted, X, y, 0.0, input_noise=0.3, state_noise=P)
    error = np.std(hits) / np.sqrt(200)
    assert told == pytest.approx(np.mean(hits), abs=4 * error)
    assert told < fitted.score(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state_noise": -0.1}, "`state_noise` must not be negative"),
        ({"state_noise": np.ones(3)}, r"6 of them, or a covariance \(6, 6\); got shape"),
        ({"readout_noise": -np.eye(6)}, "`readout_noise` must be positive semi-definite"),
        ({"input_noise": np.triu(np.ones((8, 8)))}, "`input_noise` must be symmetric"),
    ],
)
def test_bad_arguments(setting, options, message):
    with pytest.raises(ValueError, match=message):
        optimize(*setting, device=Device(**options))


def test_noise_beyond_floats_is_named():
    network, stimuli = (
        unfold(small(n=3), n_steps=4, dt=0.5),
        GaussianStimuli.random(4, rng=0),
    )
    with pytest.raises(ValueError, match="`input_noise` must be at most 1e\\+70"):
        optimize(network, stimuli, device=Device(input_noise=1e200))
