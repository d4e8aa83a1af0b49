"""The classifier on the published data sets, if GREENFOLD_DATA is set."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import ecg5000_paper, load_dataset
from greenfold.estimators.margin import ReservoirClassifier, noisy_accuracy


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
        for kind in ("solved", "random")
    }
    assert accuracy["solved"] >= 0.973
    assert accuracy["solved"] - accuracy["random"] >= 0.02


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
        for kind in ("solved", "random")
    }
    assert accuracy["solved"] - accuracy["random"] >= 0.04


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("CBF", 0.85),
        ("ECGFiveDays", 0.85),
        ("ItalyPowerDemand", 0.93),
        pytest.param("Plane", 0.95, marks=pytest.mark.slow),
        pytest.param("SyntheticControl", 0.88, marks=pytest.mark.slow),
        ("BasicMotions", 0.85),  # six channels
        pytest.param("JapaneseVowels", 0.85, marks=pytest.mark.slow),
    ],
)
def test_default_settings_on_the_archives(data_dir, name, least):
    X, y = load_dataset(name, "train", data_dir=data_dir)
    X_test, y_test = load_dataset(name, "test", data_dir=data_dir)
    assert ReservoirClassifier(random_state=0).fit(X, y).score(X_test, y_test) >= least


def test_twelve_channels_of_unequal_length(data_dir):
    """A small network; the default one is behind the slow marker."""
    X, y = load_dataset("JapaneseVowels", "train", data_dir=data_dir)
    X_test, y_test = load_dataset("JapaneseVowels", "test", data_dir=data_dir)
    fitted = ReservoirClassifier(n_neurons=20, eta=100.0, random_state=0).fit(X, y)
    assert fitted.score(X_test, y_test) > 0.8


#: Of the archive, those that are there and quick.
SETS = ["ArrowHead", "CBF", "Coffee", "ECG200", "ECGFiveDays", "GunPoint"]
SETS += [
    "ItalyPowerDemand",
    "Plane",
    "PowerCons",
    "SyntheticControl",
    "Trace",
    "TwoLeadECG",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_eta_depends_on_neither_names_nor_order(name, data_dir):
    X, y = load_dataset(name, "train", data_dir=data_dir)
    codes, found = np.unique(y, return_inverse=True)[1], set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order, names = rng.permutation(len(X)), rng.permutation(codes.max() + 1)
        classifier = ReservoirClassifier(random_state=0)
        found.add(classifier.fit(X[order], names[codes][order]).eta_)
    assert len(found) == 1
