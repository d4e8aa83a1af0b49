"""Data sets by name, from folders on this machine."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import DataError, dataset_path, list_datasets, load_dataset


@pytest.fixture
def store(writers, rng):
    """Put a data set into a folder and return its two splits."""

    def put(folder, name, suffix=".tsv", lengths=(4, 4), n_channels=(1, 1)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        splits = []
        for part, n_steps, channels in zip(
            ("TRAIN", "TEST"), lengths, n_channels, strict=True
        ):
            series = list(rng.normal(size=(3, channels, n_steps)))
            path = folder / name / f"{name}_{part}{suffix}"
            path.write_bytes(writers[suffix](series, ["1", "2", "1"]))
            splits.append(np.stack(series))
        return splits

    return put


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


def test_order_of_places(store, tmp_path, monkeypatch):
    cache, env, argument = (tmp_path / name for name in ("cache", "env", "argument"))
    in_cache, _ = store(cache, "Small")
    np.testing.assert_array_equal(load_dataset("Small", "train")[0], in_cache[:, 0])
    in_env, _ = store(env, "Small")
    monkeypatch.setenv("GREENFOLD_DATA", str(env))
    np.testing.assert_array_equal(load_dataset("Small", "train")[0], in_env[:, 0])
    in_argument, _ = store(argument / "uea", "Small")
    got, _ = load_dataset("Small", "train", data_dir=argument)
    np.testing.assert_array_equal(got, in_argument[:, 0])


def test_list_and_path(store, tmp_path):
    store(tmp_path / "data", "Beta")
    store(tmp_path / "data" / "ucr", "Alpha", ".arff")
    store(tmp_path / "cache", "Beta")
    store(tmp_path / "cache", "Gamma", ".ts")
    (tmp_path / "data" / "Empty").mkdir()
    store(tmp_path / "cache" / ".partial-x", "Unfinished")
    found = list_datasets(tmp_path / "data")
    assert list(found.items()) == [
        ("Alpha", tmp_path / "data" / "ucr" / "Alpha"),
        ("Beta", tmp_path / "data" / "Beta"),
        ("Gamma", tmp_path / "cache" / "Gamma"),
    ]
    for name, path in found.items():
        assert dataset_path(name, tmp_path / "data") == path


def test_nothing_anywhere_lists_nothing():
    assert list_datasets() == {}


def test_missing_values_policy_is_passed_on(store, tmp_path):
    store(tmp_path, "Small")
    (tmp_path / "Small" / "Small_TRAIN.tsv").write_text("1\t2\tNaN\n")
    with pytest.raises(DataError, match="missing value"):
        load_dataset("Small", "train", data_dir=tmp_path)
    X, _ = load_dataset("Small", "train", data_dir=tmp_path, missing="keep")
    np.testing.assert_array_equal(X, [[2.0, np.nan]])


def test_unknown_set_says_where_to_put_it_and_what_was_meant(store, tmp_path):
    store(tmp_path, "Small")
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("small", data_dir=tmp_path, download=False)
    message = str(caught.value)
    assert str(tmp_path / "small") in message
    assert "small_TRAIN" in message
    assert "did you mean 'Small'?" in message
    with pytest.raises(FileNotFoundError, match="GREENFOLD_DATA"):
        load_dataset("Other", download=False)


def test_missing_split(store, tmp_path):
    store(tmp_path, "Small")
    (tmp_path / "Small" / "Small_TEST.tsv").unlink()
    load_dataset("Small", "train", data_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match="no test split"):
        load_dataset("Small", data_dir=tmp_path)


@pytest.mark.parametrize("name", ["../Small", "a/b", "", ".hidden", "a b", "C:x", 3, None])
def test_names_that_are_no_names(name, tmp_path):
    with pytest.raises(DataError, match="`name` must be"):
        load_dataset(name, data_dir=tmp_path)


def test_wrong_arguments(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="`split` must be"):
        load_dataset("Small", "TRAINING")  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError, match="`data_dir` names"):
        load_dataset("Small", data_dir=tmp_path / "nowhere")
    monkeypatch.setenv("GREENFOLD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="variable GREENFOLD_DATA names"):
        load_dataset("Small")
