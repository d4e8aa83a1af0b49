"""`greenfold score`: a saved model judged by labels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from greenfold import load
from greenfold.datasets import synthetic_heartbeats, write_npz
from greenfold.estimators.margin import noisy_accuracy

from .conftest import invoke, one_sentence


@pytest.fixture
def others(tmp_path):
    X, y = synthetic_heartbeats(50, n_steps=24, rng=8)
    labels = np.where(y > 0, "normal", "ectopic")
    write_npz(tmp_path / "others.npz", X, labels)
    return X, labels


def test_counts_as_scikit_learn_does(model, others):
    from sklearn.metrics import balanced_accuracy_score, confusion_matrix, precision_score

    X, y = others
    told = json.loads(invoke("score", model, "others.npz", "--json").stdout)
    classifier = load(model)
    found = classifier.predict(X)
    assert told["accuracy"] == np.mean(found == y)
    assert told["confusion"] == confusion_matrix(y, found).tolist()
    # A sum of two fractions in another order: rounding alone.
    wanted = balanced_accuracy_score(y, found)
    assert told["balanced_accuracy"] == pytest.approx(wanted, rel=1e-12)
    each: Any = None  # scikit-learn's types know text only
    precision = precision_score(y, found, average=each)
    assert [one["precision"] for one in told["classes"]] == pytest.approx(precision)
    text = invoke("score", model, "others.npz", "--noise", 0.1).stdout
    assert f"{np.mean(found == y):.2%} of 50 series" in text
    assert f"{noisy_accuracy(classifier, X, y, 0.1, rng=0):.2%}" in text


def test_series_of_the_fit_are_told(model, others):
    X, y = synthetic_heartbeats(60, n_steps=24, rng=3)
    labels = np.where(y > 0, "normal", "ectopic")
    write_npz("own.npz", np.concatenate([X[:7], others[0]]), [*labels[:7], *others[1]])
    told = invoke("score", model, "own.npz")
    assert "was fitted to 7 of these 57 series" in told.stdout
    assert "was fitted to" not in invoke("score", model, "others.npz").stdout


def test_evaluate_takes_no_model(model, others):
    one_sentence(invoke("evaluate", model, code=1).stderr)
    one_sentence(invoke("evaluate", model, "others.npz", code=2).stderr)


def test_labels_of_their_own_and_classes_that_are_new(model, others, tmp_path):
    X, y = others
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.where(np.arange(50) < 5, "unheard-of", y))
    told = json.loads(invoke("score", model, "X.npy", "--y", "y.npy", "--json").stdout)
    known = {one["label"]: one["known"] for one in told["classes"]}
    assert known == {"ectopic": True, "normal": True, "unheard-of": False}
    assert told["accuracy"] <= 0.9
    assert "unheard-of" in invoke("score", model, "X.npy", "--y", "y.npy").stdout
    one_sentence(invoke("score", model, "X.npy", code=1).stderr)


def test_the_built_in_series_need_no_files():
    """Nothing is looked for, nothing downloaded; for `predict` see its own tests."""
    invoke("fit", "synthetic-heartbeats", "--model", "m.gfm", "-n", 10, "--eta", 10)
    made = invoke("score", "m.gfm", "synthetic-heartbeats", "--json")
    assert json.loads(made.stdout)["accuracy"] > 0.7
