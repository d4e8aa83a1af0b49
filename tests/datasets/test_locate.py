"""Where data sets lie on this machine, and in which order it is looked."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import DataError, dataset_path, list_datasets, load_dataset


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


@pytest.mark.parametrize("name", ["../Small", "a/b", "", ".hidden", "a b", "C:x", 3, None])
def test_names_that_are_no_names(name, tmp_path):
    with pytest.raises(DataError, match="`name` must be"):
        load_dataset(name, data_dir=tmp_path)
