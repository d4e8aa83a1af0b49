"""The published files, if GREENFOLD_DATA is set."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from greenfold.datasets import ecg5000_paper, list_datasets, load_dataset

# Name: cases for training, for testing, channels, steps (None: unequal), classes.
PUBLISHED = {
    "ArrowHead": (36, 175, 1, 251, 3),
    "BasicMotions": (40, 40, 6, 100, 4),
    "CBF": (30, 900, 1, 128, 3),
    "Coffee": (28, 28, 1, 286, 2),
    "ECG200": (100, 100, 1, 96, 2),
    "ECG5000": (500, 4500, 1, 140, 5),
    "ECGFiveDays": (23, 861, 1, 136, 2),
    "GunPoint": (50, 150, 1, 150, 2),
    "ItalyPowerDemand": (67, 1029, 1, 24, 2),
    "JapaneseVowels": (270, 370, 12, None, 9),
    "OSULeaf": (200, 242, 1, 427, 6),
    "Plane": (105, 105, 1, 144, 7),
    "PowerCons": (180, 180, 1, 144, 2),
    "SyntheticControl": (300, 300, 1, 60, 6),
    "Trace": (100, 100, 1, 275, 4),
    "TwoLeadECG": (23, 1139, 1, 82, 2),
}


def test_all_are_found(real_data):
    assert set(PUBLISHED) <= set(list_datasets(real_data))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name, real_data):
    n_train, n_test, n_channels, n_steps, n_classes = PUBLISHED[name]
    splits: list[tuple[Literal["train", "test"], int]] = [
        ("train", n_train),
        ("test", n_test),
    ]
    for split, n_cases in splits:
        X, y = load_dataset(name, split, data_dir=real_data)
        assert len(X) == len(y) == n_cases
        assert len(np.unique(y)) == n_classes
        assert y.dtype.kind == ("U" if name == "BasicMotions" else "i")
        if n_steps is None:
            assert isinstance(X, list)
            lengths = {one.shape[1] for one in X}
            assert (min(lengths), max(lengths)) == (7, 26 if split == "train" else 29)
            assert {one.shape[0] for one in X} == {n_channels}
        else:
            assert isinstance(X, np.ndarray)
            assert X.shape[1:] == ((n_steps,) if n_channels == 1 else (n_channels, n_steps))


def test_first_numbers_of_known_files(real_data):
    X, y = load_dataset("ECG5000", "train", data_dir=real_data)
    np.testing.assert_array_equal(X[0][:3], [-0.11252183, -2.8272038, -3.7738969])
    assert y[0] == 1
    X, y = load_dataset("BasicMotions", "train", data_dir=real_data)
    np.testing.assert_array_equal(X[0][0, :3], [0.079106, 0.079106, -0.903497])
    assert y[0] == "Standing"


def test_paper_task(real_data):
    task = ecg5000_paper(real_data)
    assert task.X_train.shape == (354, 140)
    assert task.X_test.shape == (4332, 140)
    assert task.y_train.sum() == 0
    # UCR series are z-normalised, so the classes differ in shape alone: the normal
    # beats of ECG5000 end high, the premature ones low.
    ends = task.X_train[:, -20:].mean(axis=1) @ task.y_train
    assert ends > 0
