"""The estimator: scikit-learn's contract, the mathematics under it, hostile input."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn import base
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from greenfold import Gain, Reservoir, SampleStimuli, optimize, unfold
from greenfold.classifier import ReservoirClassifier
from greenfold.classifier.noise import noisy_accuracy
from greenfold.datasets import ecg5000_paper, load_dataset, synthetic_heartbeats

from ..conftest import interrupt

clone: Any = base.clone


@pytest.fixture(scope="module")
def beats():
    X, y = synthetic_heartbeats(160, n_steps=40, rng=0)
    return X[:100], y[:100], X[100:], y[100:]


@pytest.fixture(scope="module")
def three():
    """Three classes of noisy bumps at different times, labelled by text."""
    rng = np.random.default_rng(1)
    codes = np.arange(90) % 3
    time = np.linspace(0, 1, 30)
    X = np.exp(-(((time - 0.3 - 0.2 * codes[:, None]) / 0.1) ** 2))
    return X + 0.2 * rng.standard_normal(X.shape), np.array(["a", "b", "c"])[codes]


def make(**parameters) -> Any:
    return ReservoirClassifier(**{"n_neurons": 20, "random_state": 0, **parameters})


# scikit-learn's contract

CHECKS = """
import warnings
warnings.simplefilter("error")
from sklearn.utils.estimator_checks import check_estimator
from greenfold.classifier import ReservoirClassifier
results = check_estimator(ReservoirClassifier(), on_skip=None, on_fail=None)
bad = [(r["check_name"], r["status"], r["exception"]) for r in results
       if r["status"] != "passed"]
assert not bad, bad
assert len(results) > 50
"""


def test_passes_every_check_of_scikit_learn_without_a_skip():
    # In a process of its own: one check is skipped unless SciPy was imported with this.
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHECKS], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_importing_greenfold_imports_no_optional_package():
    code = (
        "import sys, greenfold.classifier.estimator, greenfold.classifier.export\n"
        "assert not {'aeon', 'onnx', 'onnxruntime', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_works_with_the_tools_of_scikit_learn(beats, tmp_path):
    X, y, X_test, _ = beats
    search = GridSearchCV(make(), {"eta": [1.0, 100.0], "tau": [0.25, 0.5]}, cv=3)
    search.fit(X, y)
    assert set(search.best_params_) == {"eta", "tau"}
    piped = make_pipeline(StandardScaler(), make()).fit(X, y)
    assert piped.predict(X_test).shape == (60,)
    fitted = make().fit(X, y)
    wanted = fitted.decision_function(X_test)
    for copy in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X, y)):
        np.testing.assert_array_equal(copy.decision_function(X_test), wanted)
    joblib.dump(fitted, tmp_path / "model")
    np.testing.assert_array_equal(
        joblib.load(tmp_path / "model").transform(X_test), fitted.transform(X_test)
    )


def test_threads_change_nothing(three):
    X, y = three
    one, two = (make(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


# The mathematics


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"input_projection": "random"},
        {"input_projection": np.arange(1.0, 21.0)},
        {"order": 1, "eta": 10.0},
        {"readout": "integrated"},
        {"readout": 6.1},
        {"readout": np.linspace(-1, 1, 40)},
        {"order": 1, "eta": 10.0, "readout": 6.1, "n_neurons": 5},
        {"reservoir": Reservoir.random(15, tau=0.5, rng=1)},
        {"reservoir": sparse.eye_array(12) * 0.5, "tau": 1.0},
        {"tau": "auto"},
        {"certify": True, "eta": 10.0},
        {"input_scaling": None, "eta": 0.1},
        {"threshold": "origin"},
    ],
    ids=lambda p: ",".join(p) or "defaults",
)
def test_decision_is_the_readout_of_the_network_states(beats, parameters):
    X, y, X_test, y_test = beats
    fitted = make(**parameters).fit(X, y)
    states = fitted.transform(X_test)
    z = states @ fitted.v_ - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X_test), z, rtol=1e-8, atol=1e-10)
    assert np.linalg.norm(fitted.u_) == pytest.approx(1)
    assert np.linalg.norm(fitted.v_) == pytest.approx(1)
    assert not fitted.soft_margin_ > fitted.soft_margin_bound_
    assert (fitted.threshold_ == 0) == (fitted.threshold == "origin")
    if fitted.order == 0:
        moved = (X_test[:, None] - fitted.centre_) * fitted.scale_
        z = fitted.kernel_.decision_values(moved) - fitted.threshold_
        np.testing.assert_allclose(fitted.decision_function(X_test), z, atol=1e-10)
        assert fitted.validity_ is None
    else:
        assert fitted.validity_.order == fitted.order
    assert fitted.score(X_test, y_test) > 0.45


@pytest.mark.parametrize(
    "parameters",
    [
        {"order": 2},
        {
            "order": 1,
            "reservoir": Reservoir.random(6, gain=Gain.tanh(), rng=1),
        },
    ],
    ids=["order 2", "tanh"],
)
def test_orders_beyond_plain_kernels_are_read_from_the_unfolded_states(beats, parameters):
    X, y = beats[0][:24, ::8], beats[1][:24]
    # How u was found does not matter here, and drawing it is quick.
    settled = {"eta": 10.0, "n_neurons": 6, "input_scaling": 0.2, **parameters}
    fitted = make(input_projection="random", **settled).fit(X, y)
    assert fitted.kernel_ is None
    z = fitted.transform(X) @ fitted.v_ - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), z, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("certify", [False, True])
def test_solves_the_problem_that_optimize_solves(beats, certify):
    X, y, _, _ = beats
    fitted = make(eta=10.0, class_weight="balanced", certify=certify).fit(X, y)
    dt = fitted.duration / X.shape[1]
    unfolding = unfold(fitted.reservoir_, n_steps=X.shape[1], dt=dt)
    best = optimize(unfolding, SampleStimuli(X, y), 10.0)
    assert fitted.soft_margin_ == pytest.approx(best.soft_margin, rel=1e-6)
    assert fitted.soft_margin_bound_ >= best.soft_margin * (1 - 1e-9)
    assert abs(fitted.u_ @ best.u) == pytest.approx(1, abs=1e-3)


def test_optimal_projection_beats_random_ones(beats):
    X, y, _, _ = beats
    best = make(eta=10.0).fit(X, y)
    for seed in range(5):
        drawn = clone(best).set_params(input_projection="random", random_state=seed)
        own = drawn.set_params(reservoir=best.reservoir_).fit(X, y)
        assert own.soft_margin_ < best.soft_margin_
        assert own.soft_margin_bound_ >= best.soft_margin_ * (1 - 1e-9)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_gives_what_one_fit_gives(beats, three, classes, class_weight):
    X, y = beats[:2] if classes == 2 else three
    whole = make(eta=30.0, class_weight=class_weight).fit(X, y)
    stream = make(eta=30.0, class_weight=class_weight)
    order = np.argsort(y, kind="stable")  # the first batch holds one class only
    for part in np.array_split(order, 4):
        stream.partial_fit(X[part], y[part], classes=np.unique(y))
    np.testing.assert_allclose(
        stream.decision_function(X), whole.decision_function(X), rtol=1e-5, atol=1e-7
    )
    more = whole.partial_fit(X[:10], y[:10])  # goes on from the fit
    assert more._stream.counts.sum() == len(X) + 10


def test_a_stream_checks_its_labels(beats):
    X, y, _, _ = beats
    stream = make().partial_fit(X[:50], y[:50], classes=[-1, 1])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        make().partial_fit(X, y)
    with pytest.raises(ValueError, match="not the same as on last call"):
        stream.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"not in classes: \[7\]"):
        stream.partial_fit(X[:1], [7])
    assert not hasattr(make(order=1), "partial_fit")


def test_probabilities_follow_the_clouds(beats):
    X, y, X_test, _ = beats
    fitted = make().fit(X, y)
    odds = fitted.predict_proba(X_test)
    np.testing.assert_allclose(odds.sum(1), 1)
    assert ((odds[:, 1] > 0.5) == (fitted.decision_function(X_test) > 0)).all()
    noisy = make(readout_noise=0.5, eta=fitted.eta_).fit(X, y).predict_proba(X_test)
    assert np.abs(noisy - 0.5).mean() < np.abs(odds - 0.5).mean()


def test_more_than_two_classes_have_projections_each(three):
    X, y = three
    fitted = make().fit(X[:60], y[:60])
    assert fitted.u_.shape == fitted.v_.shape == (3, 20)
    assert len(fitted.kernel_) == len(fitted.validity_) == 3
    assert fitted.soft_margin_.shape == fitted.n_iter_.shape == (3,)
    assert (fitted.soft_margin_ <= fitted.soft_margin_bound_).all()
    assert fitted.transform(X).shape == (90, 60)
    z = np.einsum("ncj,cj->nc", fitted.transform(X).reshape(90, 3, 20), fitted.v_)
    wanted = z @ fitted.coupling_.T - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), wanted, rtol=1e-6, atol=1e-6)
    assert fitted.score(X[60:], y[60:]) > 0.9
    assert make(threshold="origin").fit(X[:60], y[:60]).score(X[60:], y[60:]) > 0.8


def test_class_weight_moves_the_decision(three):
    X, y = three
    towards = make(class_weight={"a": 1e6}).fit(X, y)
    assert (towards.predict(X) == "a").mean() > (y == "a").mean() - 0.01
    with pytest.raises(ValueError, match="'class_weight' parameter .* keyed by labels"):
        make(class_weight={"z": 1.0}).fit(X, y)


def test_several_channels(beats, rng):
    X, y, _, _ = beats
    both = np.stack([X, rng.standard_normal(X.shape)], axis=1)
    fitted = make(eta=10.0).fit(both, y)
    assert fitted.u_.shape == (20, 2)
    assert np.linalg.norm(fitted.u_[:, 0]) > np.linalg.norm(fitted.u_[:, 1])
    np.testing.assert_array_equal(
        fitted.decision_function(list(both)), fitted.decision_function(both)
    )
    for wrong in (X, both[:, :1], both[..., :-1]):
        with pytest.raises(ValueError, match="channels|features"):
            fitted.predict(wrong)
    flat = make(eta=10.0).fit(X, y)
    np.testing.assert_array_equal(
        flat.decision_function(X[:, None]), flat.decision_function(X)
    )


@pytest.mark.parametrize("order", [0, 1])
def test_short_series_start_later_and_the_network_rests_before(beats, order):
    X, y, _, _ = beats
    lengths = np.random.default_rng(2).integers(25, 41, len(X))
    lengths[0] = 40
    ragged = [x[-n:] for x, n in zip(X, lengths, strict=True)]
    fitted = make(order=order, eta=10.0).fit(ragged, y)
    assert fitted.n_features_in_ == 40
    # Zero input before the start, in the coordinates of the network.
    moved = (X - fitted.centre_) * fitted.scale_
    moved[np.arange(40) < 40 - lengths[:, None]] = 0
    z = fitted.kernel_.decision_values(moved) - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(ragged), z, atol=1e-9)
    longer = [np.append(np.full(9, 1e3), x) for x in X]
    np.testing.assert_allclose(
        fitted.decision_function(longer), fitted.decision_function(X)
    )
    table = fitted.decision_function(X[:, -30:])  # any length, as it was fitted with
    np.testing.assert_allclose(table, fitted.decision_function(list(X[:, -30:])))
    assert fitted.score(ragged, y) > 0.75
    equal = make(order=order, eta=10.0).fit(list(X), y)
    same = make(order=order, eta=10.0).fit(X, y)
    np.testing.assert_allclose(equal.decision_function(X), same.decision_function(X))


def test_unit_of_the_series_does_not_matter(beats):
    X, y, X_test, _ = beats
    wanted = make(eta=10.0).fit(X, y).decision_function(X_test)
    for factor in (2.0**-900, 2.0**900):
        found = make(eta=10.0).fit(factor * X, y).decision_function(factor * X_test)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    for factor, shift in ((1e-3, 0), (1e300, 0), (1, 1e4)):
        one = make(eta=10.0).fit(factor * X + shift, y)
        found = one.decision_function(factor * X_test + shift)
        np.testing.assert_allclose(found, wanted, atol=1e-3 * np.abs(wanted).max())


# Readout noise


def test_noisy_accuracy_is_that_of_noisy_states(beats, rng):
    X, y, X_test, y_test = beats
    fitted = make(readout_noise=0.1).fit(X, y)
    states = fitted.transform(X_test)
    noise = 0.1 * rng.standard_normal((2000, *states.shape))
    z = (states + noise) @ fitted.v_ - fitted.threshold_
    sampled = (fitted.classes_[(z > 0).astype(int)] == y_test).mean()
    assert noisy_accuracy(fitted, X_test, y_test, 0.1) == pytest.approx(sampled, abs=0.003)
    assert noisy_accuracy(fitted, X_test, y_test, 0) == fitted.score(X_test, y_test)


def test_noisy_accuracy_of_three_classes(three):
    X, y = three
    fitted = make(readout_noise=0.2).fit(X, y)
    levels = [noisy_accuracy(fitted, X, y, sigma, rng=0) for sigma in (0.0, 0.2, 50.0)]
    assert levels[0] > levels[1] > levels[2]
    assert levels[2] == pytest.approx(1 / 3, abs=0.05)
    with pytest.raises(ValueError, match="sigma"):
        noisy_accuracy(fitted, X, y, -1.0)


def test_noise_asks_for_a_smaller_eta(beats):
    X, y, _, _ = beats
    quiet, noisy = (make(readout_noise=s).fit(X, y).eta_ for s in (0.0, 0.5))
    assert noisy < quiet


# What must be refused, and what must not


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eta", -1),
        ("eta", "best"),
        ("eta", np.nan),
        ("eta", True),
        ("tau", 0),
        ("order", 0.5),
        ("order", -1),
        ("alpha", np.inf),
        ("n_neurons", 0),
        ("g", "large"),
        ("duration", None),
        ("reservoir", np.ones((2, 3))),
        ("reservoir", "mine"),
        ("input_projection", "zero"),
        ("input_projection", np.zeros(20)),
        ("input_projection", np.ones(7)),
        ("input_scaling", 0),
        ("threshold", 0.3),
        ("readout", 11.0),
        ("readout", [1.0, 2.0]),
        ("readout", "start"),
        ("readout_noise", -0.1),
        ("class_weight", "fair"),
        ("class_weight", {1: 0.0}),
        ("certify", "yes"),
        ("n_jobs", 0),
    ],
)
def test_wrong_parameters_are_named(beats, name, value):
    X, y, _, _ = beats
    message = f"The '{name}' parameter of ReservoirClassifier must be .* Got .* instead."
    with pytest.raises(ValueError, match=f"(?s){message}"):
        make(**{name: value}).fit(X, y)


def test_wrong_data_are_refused(beats):
    X, y, _, _ = beats
    broken = X.copy()
    broken[3, 5] = np.nan
    cases = [
        (broken, y, "NaN"),
        (X, np.ones(100), "one class"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X, None, "target y is None"),
        (X, np.linspace(0, 1, 100), "continuous"),
        (X, np.stack([y, y], axis=1), "1d array"),
        (X[:0], y[:0], "0 sample"),
        (X[0], y, "2D array"),
        ([X[0], []], y[:2], "empty series at index 1"),
        ([X[0], broken[3, :9]], y[:2], "series at index 1"),
        ([X[:2], X[:3]], y[:2], "same number of channels"),
        (X.astype(complex), y, "Complex"),
    ]
    for bad, labels, message in cases:
        with pytest.raises(ValueError, match=message):
            make().fit(bad, labels)
    with pytest.raises(TypeError, match="[Ss]parse"):
        make().fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="unstable"):
        make(reservoir=2 * np.eye(10)).fit(X, y)
    with pytest.raises(ValueError, match="unstable"):
        make(g=3.0).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((6, 5)), [0, 1, 0, 1, 0, 0]),  # constant: the frequent class wins
        (np.zeros((4, 3)), [0, 1, 1, 1]),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), ["x", "y"]),  # two series
        (np.array([[0.0], [0.1], [1.0], [1.1]]), [False, False, True, True]),  # one step
        (np.eye(6, 300), [0, 0, 0, 1, 1, 1]),  # more steps than series
        (np.full((4, 3), 1e308), [0, 1, 0, 1]),
        (np.full((4, 3), 5e-324), [0, 1, 0, 1]),
        (np.repeat([[1e300], [-1e300]], 3, axis=0), [0, 0, 0, 1, 1, 1]),
        (np.vstack([np.eye(5), np.eye(5)]), [0] * 5 + [1] * 5),  # equal means
        (np.arange(12.0).reshape(6, 2) ** 3, [0, 0, 0, 0, 1, 2]),  # classes of one
    ],
)
@pytest.mark.parametrize("order", [0, 1])
def test_odd_data_give_finite_predictions(X, y, order):
    fitted = make(n_neurons=6, order=order, alpha=1e-4).fit(X, y)
    assert np.isfinite(fitted.decision_function(X)).all()
    assert np.isfinite(fitted.predict_proba(X)).all()
    assert np.isin(fitted.predict(X), y).all()


def test_telling_nothing_means_the_frequent_class():
    X, y = np.ones((10, 4)), np.array([1] * 7 + [0] * 3)
    assert (make().fit(X, y).predict(X) == 1).all()
    assert (make().fit(X, 1 - y).predict(X) == 0).all()


def test_no_seed_fails_by_chance(beats):
    X, y, _, _ = beats
    for seed in range(20):
        assert make(n_neurons=5, g=0.95, eta=1.0, random_state=seed).fit(X, y).eta_ == 1


# Real data


def ecg5000(split, data_dir):
    X, y = load_dataset("ECG5000", split, data_dir=data_dir)
    return np.asarray(X)[y <= 2], y[y <= 2]


def test_paper_task(data_dir):
    task = ecg5000_paper(data_dir)
    accuracy = {
        kind: np.mean(
            [
                ReservoirClassifier(
                    input_projection=kind, eta=10, threshold="origin", random_state=seed
                )
                .fit(task.X_train, task.y_train)
                .score(task.X_test, task.y_test)
                for seed in range(5)
            ]
        )
        for kind in ("optimal", "random")
    }
    assert accuracy["optimal"] >= 0.973
    assert accuracy["optimal"] - accuracy["random"] >= 0.02


def test_default_settings_on_heartbeats(data_dir):
    train, test = ecg5000("train", data_dir), ecg5000("test", data_dir)
    assert ReservoirClassifier(random_state=0).fit(*train).score(*test) >= 0.98


def test_optimal_projection_pays_under_readout_noise(data_dir):
    train, test = ecg5000("train", data_dir), ecg5000("test", data_dir)
    accuracy = {
        kind: np.mean(
            [
                noisy_accuracy(
                    ReservoirClassifier(
                        input_projection=kind, readout_noise=0.1, random_state=seed
                    ).fit(*train),
                    *test,
                    0.1,
                )
                for seed in range(4)
            ]
        )
        for kind in ("optimal", "random")
    }
    assert accuracy["optimal"] - accuracy["random"] >= 0.04


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("CBF", 0.85),
        ("ECGFiveDays", 0.85),
        ("ItalyPowerDemand", 0.93),
        ("Plane", 0.95),
        ("SyntheticControl", 0.88),
        ("BasicMotions", 0.85),  # six channels
        ("JapaneseVowels", 0.85),  # twelve channels of unequal length
    ],
)
def test_default_settings_on_the_archives(data_dir, name, least):
    X, y = load_dataset(name, "train", data_dir=data_dir)
    X_test, y_test = load_dataset(name, "test", data_dir=data_dir)
    assert ReservoirClassifier(random_state=0).fit(X, y).score(X_test, y_test) >= least


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("certify", [False, True])
def test_interrupt_leaves_no_half_fitted_classifier(order, certify, beats, monkeypatch):
    """Ctrl-C ends `fit`, and with it the cross-validation that called it."""
    from greenfold.optimizers.linear import LinearProblem
    from greenfold.optimizers.nonlinear import NonlinearProblem

    owner = NonlinearProblem if order else LinearProblem
    calls = interrupt(monkeypatch, owner, "evaluate", 2)
    X, y, _, _ = beats
    classifier = ReservoirClassifier(
        order=order, eta=10.0, n_neurons=15, certify=certify, random_state=0
    )
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(X, y)
    with pytest.raises(NotFittedError):
        classifier.predict(X)
    assert len(calls) == 3


def test_overflow_is_an_error_not_a_class(beats):
    X, y, _, _ = beats
    classifier = ReservoirClassifier(
        order=1, alpha=0.001, eta=10.0, n_neurons=15, random_state=0
    ).fit(X, y)
    with pytest.raises(OverflowError, match="scale `X` down"):
        classifier.predict(X * 1e200)
