"""The paper's heartbeat task, on files with the archive's class counts."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import DataError, ecg5000_paper, load_dataset, write_npz

COUNTS = {"TRAIN": (292, 177, 10, 19, 2), "TEST": (2627, 1590, 86, 175, 22)}


@pytest.fixture(scope="module")
def look_alike(tmp_path_factory):
    """ECG5000 in name and numbers: series i of a split is constant and equal to i."""
    root = tmp_path_factory.mktemp("data")
    (root / "ECG5000").mkdir()
    rng = np.random.default_rng(0)
    for split, counts in COUNTS.items():
        y = rng.permutation(np.repeat(np.arange(1, 6), counts))
        X = np.repeat(np.arange(len(y), dtype=float)[:, None], 3, axis=1)
        write_npz(root / "ECG5000" / f"ECG5000_{split}.npz", X, y)
    return root


@pytest.mark.parametrize("selection", ["first", 0, np.random.default_rng(1)])
def test_sizes_and_labels(look_alike, selection):
    X_train, y_train, X_test, y_test = ecg5000_paper(look_alike, selection)
    assert X_train.shape == (354, 3)
    assert X_test.shape == (4332, 3)
    assert [(y_train == label).sum() for label in (1, -1)] == [177, 177]
    assert [(y_test == label).sum() for label in (1, -1)] == [2627 + 115, 1590]
    # Class 1 is +1, and each training series of the archive is used exactly once.
    X, y = load_dataset("ECG5000", "train", data_dir=look_alike)
    assert isinstance(X, np.ndarray)
    for part, label in [(X_train, y_train), (X_test[-115:], y_test[-115:])]:
        np.testing.assert_array_equal(y[part[:, 0].astype(int)], np.where(label == 1, 1, 2))
    used = np.concatenate([X_train[:, 0], X_test[-115:, 0]])
    np.testing.assert_array_equal(np.sort(used), X[(y == 1) | (y == 2), 0])


def test_first_takes_the_first(look_alike):
    task = ecg5000_paper(look_alike)
    _, y = load_dataset("ECG5000", "train", data_dir=look_alike)
    kept = task.X_train[task.y_train == 1, 0]
    np.testing.assert_array_equal(kept, np.flatnonzero(y == 1)[:177])
    assert np.all(np.diff(task.X_train[:, 0]) > 0)  # in the archive's order


def test_seeded_draw_repeats_and_differs(look_alike):
    a, b, c = (ecg5000_paper(look_alike, seed).X_train for seed in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    assert not np.array_equal(a, ecg5000_paper(look_alike).X_train)


@pytest.mark.parametrize("selection", ["last", 1.5, None, True])
def test_wrong_selection(look_alike, selection):
    with pytest.raises(ValueError, match="`selection` must be"):
        ecg5000_paper(look_alike, selection)


def test_other_files_under_the_name_are_refused(tmp_path):
    (tmp_path / "ECG5000").mkdir()
    for split in COUNTS:
        write_npz(tmp_path / "ECG5000" / f"ECG5000_{split}.npz", np.ones((2, 3)), [1, 2])
    with pytest.raises(DataError, match=r"1 \+ 1 series .* 292 \+ 177"):
        ecg5000_paper(tmp_path)
