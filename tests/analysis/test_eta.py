"""The choice of η, against a naive loop and the classifier's own."""

from typing import Any

import numpy as np
import pytest

from greenfold import ReservoirClassifier, SampleStimuli, choose_eta, optimize, unfold
from greenfold.analysis.eta import Folds, _Fold
from greenfold.stimuli import Series

from ..conftest import small, unit
from .conftest import DT

#: For questions about folds alone.
NO_SYSTEM: Any = None


def test_choose_eta_against_a_naive_loop(samples, rng):
    X, labels = samples
    unfolding, u = unfold(small(n=8), n_steps=6, dt=DT), unit(rng, 8)
    etas = np.array([0.3, 3.0, 100.0])
    found = choose_eta(
        unfolding, X, labels, u, etas[::-1], n_folds=3, threshold="origin", rng=1
    )
    assert np.array_equal(found.etas, etas)
    # The folds are the engine's; what is judged here is what it does with them.
    seed = np.random.default_rng(1).integers(2**31)
    codes = (labels > 0).astype(int)
    folds = Folds(
        NO_SYSTEM,
        Series(X[:, None]),
        codes,
        np.ones(len(codes)),
        np.ones(codes.max() + 1),
        seed,
    ).assign(3)
    for fold in range(3):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        part = SampleStimuli(X[train], labels[train])
        for i, eta in enumerate(etas):
            v = optimize(unfolding, part, eta, u=u).v
            z = unfolding.states(part.transform(X[test]), u) @ v
            right = np.mean((z >= 0) == (labels[test] == 1))
            assert found.accuracy[i, fold] == pytest.approx(right, abs=1e-12)
    readouts = [optimize(unfolding, SampleStimuli(X, labels), eta, u=u).v for eta in etas]
    assert found.overlap == pytest.approx(
        np.array(readouts) @ np.array(readouts).T, abs=1e-9
    )
    assert found.best in etas


@pytest.mark.parametrize("n_classes", [2, 3])
def test_neither_names_nor_order_nor_unit_choose_eta(n_classes):
    """Sixty noisy series; a fold holds out a dozen of them, so the folds matter."""
    rng = np.random.default_rng(4)
    codes = np.arange(60) % n_classes
    X = rng.standard_normal((60, 12)) + 0.3 * codes[:, None] * np.arange(12) / 12
    X[7] = X[10]  # a copy
    setting: dict[str, Any] = {"n_neurons": 10, "random_state": 0}
    first = ReservoirClassifier(**setting).fit(X, codes)
    told = first.predict_proba(X)
    for k in range(2):
        names, order = rng.permutation(n_classes), rng.permutation(60)
        unit = 10.0 ** rng.integers(-100, 100)
        again = ReservoirClassifier(**setting).fit(unit * X[order], names[codes][order])
        assert again.eta_ == first.eta_, k
        # The ascent stops at a relative change of 1e-6; sums in another order differ by
        # rounding only.
        found = again.predict_proba(unit * X)[:, names]
        assert found == pytest.approx(told, abs=1e-4)


def test_a_peak_at_a_single_eta_is_taken_for_chance(samples):
    """Its neighbours do worse than those of a lower and broader one; equals: the first."""
    X, labels = samples
    codes = (labels > 0).astype(int)
    each = np.ones(len(codes))
    folds = Folds(NO_SYSTEM, Series(X[:, None]), codes, each, np.ones(2), 0)

    def choose(*alone):
        judged = np.tile(np.array(alone)[:, None], len(codes))
        fold = _Fold(np.ones(len(alone)), np.arange(len(codes)), judged, *[each] * 4)
        return folds.choose([fold])

    score, best = choose(0.5, 0.9, 0.5, 0.8, 0.85, 0.8)
    assert score[1:3] == pytest.approx([0.7, 0.675], abs=1e-12)
    assert score[[0, -1]] == pytest.approx([0.6, 0.8125], abs=1e-12)
    assert best == 4
    assert choose(0.7, 0.7, 0.7)[1] == 0
    assert choose(0.7)[1] == 0


class _SeedOf(np.random.Generator):
    """A generator that answers with one number, the seed of the folds."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(0))
        self._seed = seed

    def integers(self, *_, **__):
        return self._seed


def test_choose_eta_is_what_the_classifier_does(samples):
    """One grid and one engine: the same series give the same η."""
    X, labels = samples
    classifier = ReservoirClassifier(n_neurons=8, duration=6 * DT, random_state=0)
    classifier.fit(X, labels)
    found = choose_eta(
        classifier.unfolding_,
        X,
        labels,
        class_weight=None,
        rng=_SeedOf(classifier._fold_seed),
    )
    assert classifier.eta_scores_ is not None
    assert found.best == classifier.eta_
    assert found.score == pytest.approx(classifier.eta_scores_.score, abs=1e-12)


def test_choose_eta_takes_several_channels_and_any_labels(rng):
    X = rng.standard_normal((20, 2, 6))
    labels = np.array(["yes", "no"] * 10)
    X[labels == "yes"] += 2
    unfolding, u = unfold(small(n=8), n_steps=6, dt=DT), unit(rng, 8, 2)
    found = choose_eta(unfolding, X, labels, u, rng=0)
    assert found.etas[[0, -1]] == pytest.approx([0.1, 1e6])
    assert found.accuracy[found.etas <= 1000].mean() > 0.9
    assert found.overlap is not None
    assert np.diag(found.overlap) == pytest.approx(np.ones(15), rel=1e-12)
    again = choose_eta(unfolding, X, labels, u, rng=0)
    assert np.array_equal(found.accuracy, again.accuracy)


def test_the_smallest_of_equally_good_etas_is_chosen():
    """Without spread within the classes no η changes the readout."""
    X = np.repeat([[-5.0] * 6, [5.0] * 6], 10, axis=0)
    X += 1e-9 * np.arange(20)[:, None]  # copies would stay in one fold
    unfolding = unfold(small(n=8), n_steps=6, dt=DT)
    u = np.ones(8) / np.sqrt(8)
    found = choose_eta(unfolding, X, np.repeat([0, 1], 10), u, [1.0, 0.5, 2.0], rng=0)
    assert (found.accuracy == 1).all()
    assert np.ptp(found.score) < 1e-12
    assert found.best == 0.5


UNFOLDING = unfold(small(n=4), n_steps=3, dt=0.5)
X, LABELS = np.random.default_rng(0).standard_normal((12, 3)), [0, 1] * 6


@pytest.mark.parametrize(
    ("function", "arguments", "options", "message"),
    [
        (choose_eta, (UNFOLDING, X, LABELS, np.ones((4, 2))), {}, r"`u`.*\(4, 1\)"),
        (choose_eta, (UNFOLDING, X[:, :2], LABELS, np.ones(4)), {}, "2 steps.*made for 3"),
        (choose_eta, (UNFOLDING, X, LABELS, np.ones(4), [-1, 1]), {}, "`etas`.*positive"),
        (choose_eta, (UNFOLDING, X, LABELS, np.ones(4)), {"n_folds": 1}, "`n_folds`.*2"),
        (choose_eta, (UNFOLDING, X, LABELS, np.ones(4)), {"n_folds": 7}, "`n_folds`.*6"),
        (choose_eta, (UNFOLDING, X, [1] * 12, np.ones(4)), {}, "`labels`.*two classes"),
    ],
)
def test_bad_input_is_named(function, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments, **options)
