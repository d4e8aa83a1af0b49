"""A sweep end to end: files that tsml-eval reads, failures, resumption."""

from __future__ import annotations

import csv
import importlib
import sys

import numpy as np
import pytest

from greenfold.apps.runner import Workers
from greenfold.apps.sweep import read_accuracy, sweep
from greenfold.datasets import DataError, load_dataset

from .conftest import read_result

ONE = Workers(1)
OWN = "own_estimators:Nearest"
RESULT = "Predictions/{}/testResample{}.csv"


def test_files_hold_what_the_estimator_predicts(tmp_path, archive):
    """Judges: the estimator run by hand, and a reader with no code of ours."""
    from sklearn.metrics import accuracy_score
    from sklearn.naive_bayes import GaussianNB

    done = sweep(["nb=sklearn.naive_bayes:GaussianNB"], data_dir=archive, workers=ONE)
    assert (done.made, done.failures) == (3, [])
    for name in ("One", "Two", "Three"):
        path = tmp_path / "results" / "nb" / RESULT.format(name, 0)
        X, y = load_dataset(name, "train", data_dir=archive)
        X_test, y_test = load_dataset(name, "test", data_dir=archive)
        # The order of classes is that of texts.
        model = GaussianNB().fit(X, y.astype(str))
        classes = np.unique(y.astype(str)).tolist()
        with open(path, newline="") as stream:
            lines = list(csv.reader(stream))
        assert lines[0][:5] == [name, "nb (GaussianNB)", "TEST", "0", "MILLISECONDS"]
        assert len(lines[2]) == 9
        assert int(lines[2][5]) == len(classes)
        assert [classes[int(line[0])] for line in lines[3:]] == list(y_test.astype(str))
        predicted = [classes[int(line[1])] for line in lines[3:]]
        assert predicted == list(model.predict(X_test))
        assert all(line[2] == "" for line in lines[3:])
        shares = np.array([[float(one) for one in line[3:]] for line in lines[3:]])
        np.testing.assert_array_equal(shares, model.predict_proba(X_test))
        assert float(lines[2][0]) == accuracy_score(y_test.astype(str), predicted)


@pytest.mark.needs("tsml_eval")
def test_tsml_eval_reads_them(tmp_path, archive):
    storage = importlib.import_module("tsml_eval.evaluation.storage")
    sweep(
        ["nb=sklearn.naive_bayes:GaussianNB"],
        ["Three"],
        3,
        data_dir=archive,
        workers=ONE,
    )
    for resample in range(3):
        path = tmp_path / "results" / "nb" / RESULT.format("Three", resample)
        theirs = storage.load_classifier_results(str(path), verify_values=True)
        ours = read_result(path)
        assert theirs.accuracy == ours.accuracy
        assert (theirs.dataset_name, theirs.resample_id) == ("Three", resample)
        np.testing.assert_array_equal(theirs.probabilities, ours.probabilities)


@pytest.mark.parametrize("estimator", ["ReservoirClassifier", "PooledReservoirClassifier"])
def test_own_classifiers_predict_their_largest_probability(tmp_path, archive, estimator):
    """The accuracy of a result file is that of `predict`."""
    from greenfold import ReservoirClassifier
    from greenfold.estimators.pooled import PooledReservoirClassifier

    kinds = {k.__name__: k for k in (ReservoirClassifier, PooledReservoirClassifier)}
    small = {
        "ReservoirClassifier": {"n_neurons": 12, "eta": 1.0},
        "PooledReservoirClassifier": {"n_readouts": 16, "n_scales": 2, "engine": "array"},
    }[estimator]
    given = ", ".join(f"{key}={value!r}" for key, value in small.items())
    sweep([f"x={estimator}({given})"], ["Two"], data_dir=archive, workers=ONE)
    X, y = load_dataset("Two", "train", data_dir=archive)
    X_test, y_test = load_dataset("Two", "test", data_dir=archive)
    model = kinds[estimator](**small, random_state=0).fit(X, y)
    found = read_result(tmp_path / "results" / "x" / RESULT.format("Two", 0))
    assert found.accuracy == model.score(X_test, y_test)


def test_an_estimator_without_probabilities_has_certain_ones(tmp_path, archive, own):
    sweep([OWN, "own_estimators:LabelsOnly"], ["Two"], data_dir=archive, workers=ONE)
    found, only = (
        read_result(tmp_path / "results" / kind / RESULT.format("Two", 0))
        for kind in ("Nearest", "LabelsOnly")
    )
    np.testing.assert_array_equal(found.predictions, only.predictions)
    np.testing.assert_array_equal(np.eye(3)[only.predictions], only.probabilities)


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ("raise", "RuntimeError: it does not converge."),
        ("nan", "not finite for 1 of 8 series"),
        ("shape", "probabilities of shape (8, 1) for 2 classes"),
        ("sum", "do not add up to one"),
    ],
)
def test_a_bad_estimator_fails_alone(tmp_path, archive, own, fault, part):
    names = [OWN, f"bad={OWN}(fault={fault!r})"]
    done = sweep(names, ["One"], data_dir=archive, workers=ONE)
    assert done.made == 1
    assert part in done.failures[0].error
    assert not (tmp_path / "results" / "bad").exists()
    assert (tmp_path / "results" / "failures" / "bad").is_dir()


def test_changed_data_parameters_and_code_make_results_stale(tmp_path, archive, own):
    def made(name=OWN, **more):
        return sweep([f"x={name}"], data_dir=archive, workers=ONE, **more).made

    assert made() == 3
    assert made() == 0
    assert made(f"{OWN}(seconds=0.001)") == 3
    assert made() == 3
    assert made(seed=4) == 3
    assert made() == 3
    path = archive / "ucr" / "One" / "One_TRAIN.tsv"
    path.write_text(path.read_text().replace("1\t", "2\t", 1))
    assert made() == 1


def test_a_result_of_tsml_eval_is_left_alone(tmp_path, archive, own):
    path = tmp_path / "results" / "Nearest" / RESULT.format("One", 0)
    path.parent.mkdir(parents=True)
    path.write_text("One,Nearest,TEST,0,MILLISECONDS,by hand\n-\n1.0,1,1,1,1,2\n0,0,,1,0\n")
    done = sweep([OWN], ["One"], data_dir=archive, workers=ONE)
    assert (done.made, done.foreign) == (0, [f"Nearest/{RESULT.format('One', 0)}"])
    assert "by hand" in path.read_text()


def test_what_cannot_work_is_refused_before_any_work(tmp_path, archive, own):
    for names, data, resamples, part in (
        ([], ["One"], 1, "at least one estimator"),
        ([OWN, OWN], ["One"], 1, "Two estimators are called 'Nearest'"),
        ([f"failures={OWN}"], ["One"], 1, "cannot be called 'failures'"),
        ([OWN, "Nonesuch"], ["One"], 1, "Nonesuch"),
        ([OWN], ["One"], 0, "`resamples`"),
        ([OWN], ["One"], [-1], "`resamples`"),
    ):
        with pytest.raises(ValueError, match=part):
            sweep(names, data, resamples, data_dir=archive, download=False)
    assert not (tmp_path / "results").exists()


def test_reading_refuses_what_is_cut_off(tmp_path, archive, own):
    sweep([OWN], ["One"], data_dir=archive, workers=ONE)
    path = tmp_path / "results" / "Nearest" / RESULT.format("One", 0)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_accuracy(path)


def test_resamples_need_aeon_before_anything_is_computed(tmp_path, archive, monkeypatch):
    monkeypatch.setitem(sys.modules, "aeon", None)
    with pytest.raises(ImportError, match="A resample other than 0 needs aeon"):
        sweep([OWN], ["One"], 2, tmp_path / "results", data_dir=archive, download=False)
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
@pytest.mark.needs("aeon", "data")
def test_minirocket_has_its_published_accuracy(tmp_path, data_dir):
    """Judge: the published table, to its four digits."""
    with open(data_dir / "reference" / "ucr_default_split.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    table = {row["dataset"]: row["MiniROCKET"] for row in rows}
    names = ["Coffee", "GunPoint", "ItalyPowerDemand", "Plane"]
    sweep(["MiniROCKET"], names, data_dir=data_dir, workers=ONE)
    for name in names:
        found = read_result(tmp_path / "results" / "MiniROCKET" / RESULT.format(name, 0))
        assert round(found.accuracy, 4) == float(table[name])
