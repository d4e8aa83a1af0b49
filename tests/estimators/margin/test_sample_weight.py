"""Weights of series and of classes: what they mean, and that they reach every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import balanced_accuracy_score

from greenfold.datasets import load_dataset
from greenfold.estimators.margin import ReservoirClassifier
from greenfold.math.class_moments import ClassMoments
from greenfold.stimuli import Series
from greenfold.stimuli.frame import frames_of


def make(**parameters) -> Any:
    return ReservoirClassifier(**{"n_neurons": 6, "random_state": 0, **parameters})


def bumps(n_cases: int, seed: int, n_classes: int = 3):
    """Noisy bumps, each class at its own time."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_cases) % n_classes
    time = np.linspace(0, 1, 12)
    X = np.exp(-(((time - 0.3 - 0.2 * codes[:, None]) / 0.1) ** 2))
    return X + 0.4 * rng.standard_normal(X.shape), codes


SETTINGS = {
    "defaults": {},
    "balanced": {"class_weight": "balanced", "eta": 10.0},
    "order 1": {"order": 1, "alpha": 0.01, "eta": 10.0},
    "automatic time constant": {"tau": "auto", "eta": 10.0, "n_neurons": 4},
    "noise": {"readout_noise": 0.2, "eta": 10.0},
}


#: Two classes have one head, three have one each: the settings go with one or the other.
@pytest.mark.parametrize(
    ("name", "n_classes"),
    [
        ("defaults", 2),
        ("defaults", 3),
        ("balanced", 3),
        ("order 1", 2),
        ("automatic time constant", 2),
        ("noise", 2),
    ],
)
def test_a_weight_is_a_number_of_copies(name, n_classes):
    X, y = bumps(24, 0, n_classes)
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    copies = np.repeat(np.arange(len(X)), weights)
    copies = np.random.default_rng(2).permutation(copies)
    one = make(**SETTINGS[name]).fit(X, y, sample_weight=weights)
    two = make(**SETTINGS[name]).fit(X[copies], y[copies])
    assert one.eta_ == two.eta_
    assert one.reservoir_.tau == two.reservoir_.tau
    X_test, _ = bumps(20, 3, n_classes)
    # An ascent of u that ends at a relative change of 1e-6 leaves the square root of it.
    np.testing.assert_allclose(
        one.predict_proba(X_test), two.predict_proba(X_test), atol=5e-3
    )
    np.testing.assert_allclose(one.soft_margin_, two.soft_margin_, rtol=1e-5)


def test_series_of_several_lengths_have_weights_too():
    X, y = bumps(24, 0, n_classes=2)
    lengths = np.random.default_rng(4).integers(8, 13, len(X))
    ragged = [x[-n:] for x, n in zip(X, lengths, strict=True)]
    weights = np.random.default_rng(1).integers(1, 3, len(X))
    copies = np.repeat(np.arange(len(X)), weights)
    one = make().fit(ragged, y, sample_weight=weights)
    two = make().fit([ragged[i] for i in copies], y[copies])
    assert one.eta_ == two.eta_
    np.testing.assert_allclose(one.soft_margin_, two.soft_margin_, rtol=1e-5)


def test_a_weighted_stream_is_a_weighted_fit():
    X, y = bumps(60, 5)
    weights = np.random.default_rng(6).random(60) + 0.1
    whole = make(eta=10.0).fit(X, y, sample_weight=weights)
    stream = make(eta=10.0)
    for part in np.array_split(np.arange(60), 2):
        stream.partial_fit(X[part], y[part], np.unique(y), sample_weight=weights[part])
    np.testing.assert_allclose(
        stream.decision_function(X), whole.decision_function(X), rtol=1e-4, atol=1e-6
    )


def test_weighted_moments_are_those_of_copies(rng):
    X = rng.standard_normal((9, 2, 3))
    weights = rng.integers(1, 4, 9)
    one = ClassMoments.of(X, np.arange(9), weights.astype(float))
    two = ClassMoments.of(np.repeat(X, weights, axis=0), np.arange(weights.sum()))
    assert one.count == two.count
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-13)
    np.testing.assert_allclose(one.covariance, two.covariance, rtol=1e-12)


def test_wrong_weights_are_refused():
    X, y = bumps(12, 0)
    for wrong, message in (
        (-np.ones(12), "[Nn]egative"),
        (np.ones(11), "`sample_weight` must have shape"),
        (np.full(12, np.nan), "NaN"),
        (np.zeros(12), "at least one non-zero"),
        ((y == 1).astype(float), "one class"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(X, y, sample_weight=wrong)


def test_boosting_takes_the_classifier():
    from sklearn.ensemble import AdaBoostClassifier

    X, y = bumps(60, 7)
    boosted: Any = AdaBoostClassifier(
        make(eta=10.0, n_neurons=12), n_estimators=3, random_state=0
    )
    assert boosted.fit(X, y).score(*bumps(60, 8)) > 0.6


# Classes


def test_a_class_weight_says_nothing_about_the_width_of_a_class(rng):
    """A rare class of large weight must not fill the covariance with its few series."""
    D = 12
    X = rng.standard_normal((203, 1, D))
    codes = np.repeat([0, 1, 2], [100, 100, 3])
    counts = np.bincount(codes)
    balanced = counts.sum() / (3 * counts)
    plain, weighted = (
        frames_of(Series(X), codes, np.ones(203), weights, [0], None)[0]
        for weights in (np.ones(3), balanced)
    )
    # White series: the smallest eigenvalue of ψ falls where few series are counted often.
    # 103 series of 12 values leave (1 − √(12/103))² = 0.43, three at half the weight of
    # the rest would leave about half of that.
    floors = [np.linalg.eigvalsh(frame.stimuli.psi)[0] for frame in (plain, weighted)]
    assert floors[1] > 0.8 * floors[0]
    np.testing.assert_allclose(weighted.share, [2 / 3, 1 / 3])


@pytest.mark.slow
def test_balanced_classes_reach_the_balanced_ridge(data_dir):
    """Mean over draws of 500 heartbeats, to two standard errors of the difference.

    The rarest class has two series, so that one draw says little: the difference of two
    methods scatters by 0.02 between draws.
    """
    parts = [
        load_dataset("ECG5000", split, data_dir=data_dir) for split in ("train", "test")
    ]
    X = np.concatenate([np.asarray(part[0]) for part in parts])
    y = np.concatenate([part[1] for part in parts])
    rng = np.random.default_rng(0)
    found = []
    for _ in range(12):
        order = rng.permutation(len(y))
        kept = [order[y[order] == c][: max(2, (y == c).sum() // 10)] for c in np.unique(y)]
        train = np.concatenate(kept)
        test = np.setdiff1d(order, train)
        models: list[Any] = [
            RidgeClassifierCV(alphas=np.logspace(-3, 3, 10), class_weight="balanced"),
            ReservoirClassifier(class_weight="balanced", random_state=0),
            ReservoirClassifier(random_state=0),
        ]
        found.append(
            [
                balanced_accuracy_score(y[test], m.fit(X[train], y[train]).predict(X[test]))
                for m in models
            ]
        )
    ridge, balanced, plain = np.mean(found, axis=0)
    ahead = np.diff(found, axis=1) * [1, -1]  # of the ridge, of the unweighted classes
    error = ahead.std(axis=0, ddof=1) / np.sqrt(len(ahead))
    print(f"balanced ridge {ridge:.3f}, reservoir {balanced:.3f}, unweighted {plain:.3f}")
    print(f"ahead by {ahead.mean(0).round(4)} ± {error.round(4)}")
    assert balanced - ridge > -2 * error[0]
    assert balanced - plain > 0
