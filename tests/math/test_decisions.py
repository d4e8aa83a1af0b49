"""Decisions between clouds, against scikit-learn's discriminant analysis and sampling."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from greenfold.math import decisions
from greenfold.math.decisions import Clouds, decide, held_out_score


def drawn(rng, n_classes, n_readouts, n=200):
    """Read-out values of unequal classes with correlated readouts."""
    codes = rng.choice(
        n_classes, n, p=np.arange(1, n_classes + 1) / np.arange(n_classes + 1).sum()
    )
    mix = rng.standard_normal((n_readouts, n_readouts)) + np.eye(n_readouts)
    centres = 2 * rng.standard_normal((n_classes, n_readouts))
    if n_classes == 2:
        centres[:, 0] = [-1.0, 1.0]  # the readout of two classes points to the second
    return centres[codes] + rng.standard_normal((n, n_readouts)) @ mix, codes


def clouds_of(Z, codes):
    return Clouds.of(Z, codes, np.ones(len(Z)), np.ones(codes.max() + 1))


@pytest.mark.parametrize(("n_classes", "n_readouts"), [(2, 1), (3, 3), (5, 5)])
def test_log_odds_are_those_of_linear_discriminant_analysis(
    n_classes, n_readouts, rng, monkeypatch
):
    Z, codes = drawn(rng, n_classes, n_readouts)
    clouds = clouds_of(Z, codes)
    judge = LinearDiscriminantAnalysis(solver="lsqr").fit(Z, codes)
    theirs = np.log(judge.predict_proba(Z))
    theirs -= theirs[:, :1]
    shrunk = decide(clouds, noise=0.0, threshold="trained").log_odds(Z)
    assert (shrunk.argmax(1) == judge.predict(Z)).mean() > 0.98
    monkeypatch.setattr(decisions, "_SHRINK", 0.0)
    ours = decide(clouds, noise=0.0, threshold="trained").log_odds(Z)
    # The same model; rounding of probabilities near one, times odds of a hundred.
    assert ours - ours[:, :1] == pytest.approx(theirs, rel=1e-6, abs=1e-8)


def test_noise_widens_the_clouds(rng):
    """The decision for noisy values is the one made from noisy values."""
    Z, codes = drawn(rng, 3, 3, n=100_000)
    noisy = Z + 0.7 * rng.standard_normal(Z.shape)
    ours = decide(clouds_of(Z, codes), noise=0.7, threshold="trained")
    judge = decide(clouds_of(noisy, codes), noise=0.0, threshold="trained")
    # Moments of 10⁵ draws: a per cent, five standard errors of 1/√n_class with room.
    assert ours.coupling == pytest.approx(
        judge.coupling, abs=0.02 * np.abs(judge.coupling).max()
    )
    assert ours.threshold == pytest.approx(judge.threshold, abs=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_score_is_the_share_of_noisy_values_decided_right(n_classes, rng):
    Z, codes = drawn(rng, n_classes, 1 if n_classes == 2 else 3, n=40)
    decision = decide(clouds_of(Z, codes), noise=0.5, threshold="trained")
    correct, margin = held_out_score(decision, Z, codes, 0.5)
    n = 4000
    noisy = Z + 0.5 * rng.standard_normal((n, *Z.shape))
    answers = np.stack([decision.log_odds(one).argmax(1) for one in noisy])
    share = (answers == codes).mean(0)
    error = np.sqrt(share * (1 - share) / n) + 1e-3
    if n_classes == 2:
        assert (np.abs(correct - share) < 5 * error).all()
    else:  # only the best rival is counted: never too low
        assert (correct > share - 5 * error).all()
    without, same = held_out_score(decision, Z, codes, 0.0)
    assert same == pytest.approx(margin)
    assert without.tolist() == (decision.log_odds(Z).argmax(1) == codes).tolist()


def test_a_class_that_was_never_seen_is_never_chosen(rng):
    Z, codes = drawn(rng, 3, 4)
    clouds = Clouds.of(Z, codes, np.ones(len(Z)), np.ones(4))
    odds = decide(clouds, noise=0.0, threshold="trained").log_odds(Z)
    assert np.isfinite(odds).all()
    assert set(odds.argmax(1)) == {0, 1, 2}


def test_origin_leaves_the_plane_at_zero(rng):
    Z, codes = drawn(rng, 2, 1)
    moved = decide(clouds_of(Z + 3, codes), noise=0.0, threshold="trained")
    assert moved.threshold[0] == pytest.approx(
        decide(clouds_of(Z, codes), noise=0.0, threshold="trained").threshold[0] + 3
    )
    assert decide(clouds_of(Z + 3, codes), noise=0.0, threshold="origin").threshold == 0


def test_scatter_below_zero_by_rounding_is_none():
    """As of a stream whose first batch holds one class: its readouts say nothing yet."""
    clouds = Clouds.of_scatter(
        np.full((3, 3), 5e-20), np.full((3, 3), -1e-24), np.array([10.0, 0, 0]), np.ones(3)
    )
    decision = decide(clouds, noise=0.0, threshold="trained")
    assert np.isfinite(decision.coupling).all()
    assert (decision.log_odds(np.zeros((4, 3))).argmax(1) == 0).all()
