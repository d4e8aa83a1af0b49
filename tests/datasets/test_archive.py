"""Data sets by name: their splits, apart and joined."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import DataError, load_dataset


@pytest.mark.parametrize("archive", [".", "ucr"])
def test_splits_and_both(store, tmp_path, archive):
    train, test = store(tmp_path / archive, "Small")
    X, y = load_dataset("Small", "train", data_dir=tmp_path)
    np.testing.assert_array_equal(X, train[:, 0])
    X, y = load_dataset("Small", "test", data_dir=tmp_path)
    np.testing.assert_array_equal(X, test[:, 0])
    X, y = load_dataset("Small", data_dir=tmp_path)
    np.testing.assert_array_equal(X, np.concatenate([train, test])[:, 0])
    assert y.tolist() == [1, 2, 1, 1, 2, 1]


def test_joined_splits_of_different_length_are_a_list(store, tmp_path):
    _, test = store(tmp_path, "Small", lengths=(4, 5))
    X, _ = load_dataset("Small", data_dir=tmp_path)
    assert isinstance(X, list)
    assert [one.shape for one in X] == [(1, 4)] * 3 + [(1, 5)] * 3
    np.testing.assert_array_equal(X[3], test[0])


def test_joined_splits_with_different_channels_are_refused(store, tmp_path):
    store(tmp_path, "Small", ".ts", n_channels=(2, 3))
    with pytest.raises(DataError, match="2 channels in the training and 3 in the test"):
        load_dataset("Small", data_dir=tmp_path)


def test_missing_values_policy_is_passed_on(store, tmp_path):
    store(tmp_path, "Small")
    (tmp_path / "Small" / "Small_TRAIN.tsv").write_text("1\t2\tNaN\n")
    with pytest.raises(DataError, match="missing value"):
        load_dataset("Small", "train", data_dir=tmp_path)
    X, _ = load_dataset("Small", "train", data_dir=tmp_path, missing="keep")
    np.testing.assert_array_equal(X, [[2.0, np.nan]])


def test_missing_split(store, tmp_path):
    store(tmp_path, "Small")
    (tmp_path / "Small" / "Small_TEST.tsv").unlink()
    load_dataset("Small", "train", data_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match="no test split"):
        load_dataset("Small", data_dir=tmp_path)


def test_wrong_arguments(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="`split` must be"):
        load_dataset("Small", "TRAINING")  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError, match="`data_dir` names"):
        load_dataset("Small", data_dir=tmp_path / "nowhere")
    monkeypatch.setenv("GREENFOLD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="variable GREENFOLD_DATA names"):
        load_dataset("Small")
