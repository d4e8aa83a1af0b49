"""Data sets by name, folder and list; resamples as aeon makes them."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.apps.sweep import find_datasets, read_dataset, resampled
from greenfold.datasets import DataError

from .conftest import write_set


def names(items, data_dir=None, download=False):
    return [source.name for source in find_datasets(items, data_dir, download)]


def test_sets_are_found_by_name_folder_and_list(archive, tmp_path):
    (tmp_path / "some.txt").write_text("# mine\nTwo\n\nOne\n")
    assert names([], archive) == ["One", "Three", "Two"]
    assert names(["Two", "Two", "One"], archive) == ["Two", "One"]
    assert names([archive / "ucr"]) == ["One", "Three", "Two"]
    assert names([archive / "ucr" / "Three"]) == ["Three"]
    assert names([str(tmp_path / "some.txt")], archive) == ["Two", "One"]


def test_a_missing_set_is_one_sentence_with_a_hint(archive):
    with pytest.raises(FileNotFoundError, match="did you mean 'Three'"):
        names(["Thre"], archive)
    with pytest.raises(FileNotFoundError, match="no data sets to sweep over"):
        names([])
    (archive / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no data sets"):
        names([archive / "empty"])
    (archive / "ucr" / "Two" / "Two_TEST.tsv").unlink()
    with pytest.raises(FileNotFoundError, match="no test split"):
        names(["Two"], archive)


def test_other_files_than_planned_are_refused(archive):
    (source,) = find_datasets(["One"], archive)
    write_set(archive / "other", "One", seed=9)
    with pytest.raises(DataError, match="not those that the sweep was planned with"):
        read_dataset("One", str(archive / "other" / "One"), source.digest)


@pytest.mark.needs("aeon")
@pytest.mark.parametrize("resample", [1, 2, 29])
@pytest.mark.parametrize("unequal", [False, True])
def test_resamples_are_those_of_aeon(archive, resample, unequal):
    """Judge: aeon's own function on the labels as aeon reads them, which are texts."""
    from aeon.benchmarking import resampling

    (source,) = find_datasets(["Three"], archive)
    train, test = read_dataset(source.name, source.folder, source.digest)
    if unequal:
        train = ([one[None, : 4 + i % 4] for i, one in enumerate(train[0])], train[1])
        test = ([one[None] for one in test[0]], test[1])
    (X, y), (X_test, y_test) = resampled(train, test, resample)
    expected = resampling.stratified_resample_data(*train, *test, random_state=resample)
    for found, wanted in zip((X, y, X_test, y_test), expected, strict=True):
        assert len(found) == len(wanted)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    # Labels as numbers, 2 before 10, would give other splits: the test can tell.
    numbers = resampling.stratified_resample_data(
        train[0], train[1].astype(int), test[0], test[1].astype(int), random_state=resample
    )
    assert sorted(map(bytes, numbers[0])) != sorted(map(bytes, X))


def test_resample_zero_is_the_provided_split(archive):
    (source,) = find_datasets(["Two"], archive)
    parts = read_dataset(source.name, source.folder, source.digest)
    assert resampled(*parts, 0) == parts


@pytest.mark.needs("aeon")
def test_classes_that_one_split_lacks_cannot_be_resampled():
    part = (np.zeros((4, 3)), np.array(["a", "a", "b", "b"]))
    other = (np.zeros((2, 3)), np.array(["a", "a"]))
    with pytest.raises(DataError, match="same classes"):
        resampled(part, other, 1)
