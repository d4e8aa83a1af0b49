"""Gaussian classes: their moments against sampling, and how they are drawn."""

import numpy as np
import pytest

from greenfold import GaussianStimuli

from .conftest import weighted_moments


@pytest.mark.parametrize("n_channels", [1, 2])
def test_gaussian_moments_against_sampling(n_channels):
    stimuli = GaussianStimuli.random(3, strength=1.5, n_channels=n_channels, rng=0)
    n = 100_000
    X, labels = stimuli.sample(n, rng=1)
    assert X.shape == ((2 * n, 3) if n_channels == 1 else (2 * n, 2, 3))
    assert labels.sum() == 0
    flat = X.reshape(2 * n, -1)
    psi, chi = stimuli.psi, stimuli.chi
    for sign in (1, -1):
        part, covariance = flat[labels == sign], psi + sign * chi
        spread = np.sqrt(np.diag(covariance))
        # Five standard errors: √(C_ii/n) of a mean, and √((C_ii C_jj + C_ij²)/n) of a
        # covariance.
        assert (np.abs(part.mean(0) - sign * stimuli.mu) < 5 * spread / np.sqrt(n)).all()
        allowed = 5 * np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / n)
        assert (np.abs(np.cov(part.T) - covariance) < allowed).all()
    assert np.abs(chi).max() > 10 * allowed.max()  # the classes do differ


def test_gaussian_moments_are_those_of_the_mixture():
    """μ and ψ of ζx: the class means are opposite, so that nothing is between them."""
    stimuli = GaussianStimuli.random(4, rng=0)
    n = 200_000
    X, labels = stimuli.sample(n, rng=2)
    mu, psi = weighted_moments(X, labels, None)
    error = 5 * 2.2 / np.sqrt(2 * n)  # eigenvalues are at most 2.2
    assert np.abs(mu - stimuli.mu).max() < error
    assert np.abs(psi - stimuli.psi).max() < np.sqrt(2) * error


@pytest.mark.parametrize("strength", [0.0, 0.19, 1.0, 30.0])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_random_stimuli_have_the_asked_length_and_eigenvalues(strength, n_channels):
    stimuli = GaussianStimuli.random(10, strength=strength, n_channels=n_channels, rng=4)
    assert np.linalg.norm(stimuli.mu) == pytest.approx(strength, rel=1e-14, abs=0)
    assert (stimuli.n_steps, stimuli.n_channels) == (10, n_channels)
    for sign in (1, -1):
        values = np.linalg.eigvalsh(stimuli.psi + sign * stimuli.chi)
        assert 0.3 - 1e-13 < values[0] < values[-1] < 2.2 + 1e-13


def test_random_stimuli_fill_the_range_and_the_sphere():
    drawn = [GaussianStimuli.random(3, rng=seed) for seed in range(300)]
    values = np.ravel([np.linalg.eigvalsh(s.psi + s.chi) for s in drawn])
    # 900 uniform numbers: mean 1.25 with standard error 0.55/30, five of them.
    assert values.mean() == pytest.approx(1.25, abs=0.1)
    assert values.min() < 0.33
    assert values.max() > 2.17
    # Isotropy: ⟨μμᵀ⟩ = 1/3, entries of standard deviation ≤ 0.3 over √300.
    second = np.mean([np.outer(s.mu, s.mu) for s in drawn], axis=0)
    assert second == pytest.approx(np.eye(3) / 3, abs=0.09)
    same = GaussianStimuli.random(3, rng=7)
    assert np.array_equal(same.psi, drawn[7].psi)
    assert not np.array_equal(same.psi, drawn[8].psi)


def test_singular_covariance_can_be_sampled():
    X, labels = GaussianStimuli([1.0, 0.0], np.diag([0.0, 1.0])).sample(5, rng=0)
    assert np.array_equal(X[:, 0], labels.astype(float))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2], -np.eye(2)), ValueError, "`psi.*semi-definite.*-1"),
        (([1, 2], np.eye(2), 2 * np.eye(2)), ValueError, "`psi − chi`.*semi-definite"),
        (([1, 2], np.eye(2), -2 * np.eye(2)), ValueError, r"`psi \+ chi`.*semi-definite"),
        (([1, 2], [[1, 1], [0, 1]]), ValueError, "`psi`.*symmetric"),
        (([1, 2], np.eye(2), [[0, 0.1], [0, 0]]), ValueError, "`chi`.*symmetric"),
        (([1, 2], np.eye(3)), ValueError, r"`psi`.*\(2, 2\).*\(3, 3\)"),
        (([1, np.nan], np.eye(2)), ValueError, "`mu`.*finite"),
        (([1, 2], np.diag([1.0, np.inf])), ValueError, "`psi`.*finite"),
        ((np.ones((1, 1, 2)), np.eye(2)), ValueError, r"`mu`.*dimensions.*\(1, 1, 2\)"),
        (([1j, 2], np.eye(2)), TypeError, "`mu`.*real"),
    ],
)
def test_gaussian_stimuli_name_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        GaussianStimuli(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_steps": 0}, ValueError, "`n_steps`.*at least 1"),
        ({"n_channels": 0}, ValueError, "`n_channels`.*at least 1"),
        ({"strength": -1}, ValueError, "`strength`.*negative"),
        ({"strength": np.nan}, ValueError, "`strength`.*finite"),
        ({"eigenvalues": (2, 1)}, ValueError, r"`eigenvalues`.*low ≤ high.*\(2, 1\)"),
        ({"eigenvalues": (-1, 1)}, ValueError, "`eigenvalues`.*0 ≤ low"),
        ({"eigenvalues": (1,)}, ValueError, r"`eigenvalues`.*low ≤ high.*\(1,\)"),
        ({"eigenvalues": 3.0}, ValueError, "`eigenvalues`.*1 dimensions"),
        ({"eigenvalues": "ab"}, TypeError, "`eigenvalues`.*numbers"),
    ],
)
def test_random_stimuli_name_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        GaussianStimuli.random(**{"n_steps": 3, **options})
