"""What all formats share: unequal lengths, missing values, labels spelled alike."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from greenfold.datasets import MissingValueError, read_series

from .conftest import MULTICHANNEL, SUFFIXES, one_sentence


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unequal_lengths(suffix, writers, tmp_path, rng):
    n_channels = 2 if suffix in MULTICHANNEL else 1
    series = [rng.normal(size=(n_channels, n)) for n in (3, 5, 4)]
    path = tmp_path / f"small{suffix}"
    path.write_bytes(writers[suffix](series, ["1", "2", "1"]))
    # A table and ARFF cannot tell the end of a series from a missing value.
    padded = suffix not in (".ts", ".npz")
    if padded:
        with pytest.raises(MissingValueError, match="use missing='trim'"):
            read_series(path)
    X, y = read_series(path, missing="trim" if padded else "error")
    assert isinstance(X, list)
    for got, expected in zip(X, series, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert y.tolist() == [1, 2, 1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_values_are_located(suffix, writers, tmp_path, rng):
    n_channels = 2 if suffix in MULTICHANNEL else 1
    series = [rng.normal(size=(n_channels, 4)) for _ in range(3)]
    series[1][n_channels - 1, 2] = np.nan
    series[2][0, 0] = np.nan
    path = tmp_path / f"small{suffix}"
    path.write_bytes(writers[suffix](series, ["1", "2", "1"]))
    with pytest.raises(MissingValueError) as caught:
        read_series(path)
    message = str(caught.value)
    assert f"series 1, channel {n_channels - 1}, position 2" in message
    assert "missing='keep'" in message
    assert str(path) in message
    assert one_sentence(message)
    expected = [[1, n_channels - 1, 2], [2, 0, 0]]
    np.testing.assert_array_equal(caught.value.positions, expected)
    X, _ = read_series(path, missing="keep")
    np.testing.assert_array_equal(X, np.squeeze(np.stack(series)))
    with pytest.raises(MissingValueError):  # these are not at the end
        read_series(path, missing="trim")


def test_missing_value_error_survives_pickling(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\t2\tNaN\n")
    with pytest.raises(MissingValueError) as caught:
        read_series(path)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    np.testing.assert_array_equal(copy.positions, [[0, 0, 1]])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "1.0", "  1.0000000e+00"], [1, 1, 1]),
        (["-1", "+1", "-0"], [-1, 1, 0]),
        (["0.5", "1", ".50"], ["0.5", "1.0", "0.5"]),
        (["walk", "run", "1.0"], ["walk", "run", "1.0"]),
        (["1_0", "2", "3"], ["1_0", "2", "3"]),
        (["1e300", "1", "2"], ["1e+300", "1.0", "2.0"]),
        (["Grün", "'ab'", '"c"'], ["Grün", "ab", "c"]),
    ],
)
@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".npz", ".ts", ".arff"])
def test_labels_are_spelled_alike_in_every_format(
    suffix, written, expected, writers, tmp_path
):
    path = tmp_path / f"small{suffix}"
    path.write_bytes(writers[suffix]([np.ones((1, 3))] * 3, written))
    _, y = read_series(path)
    assert y.tolist() == expected
    assert y.dtype.kind == ("i" if isinstance(expected[0], int) else "U")


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".npz", ".arff"])
def test_labels_with_blanks(suffix, writers, tmp_path):
    # Not in .ts, whose header separates the classes by blanks.
    path = tmp_path / f"small{suffix}"
    path.write_bytes(writers[suffix]([np.ones((1, 3))] * 2, ["'lying down'", "'up'"]))
    assert read_series(path)[1].tolist() == ["lying down", "up"]


@pytest.mark.parametrize("suffix", [".ts", ".arff"])
def test_declared_classes_decide_the_type_of_labels(suffix, writers, tmp_path):
    # This split has only whole numbers, but the data set has a class "other".
    content = writers[suffix]([np.ones((1, 3))] * 2, ["1", "2"])
    content = content.replace(b"true 1 2", b"true 1 2 other").replace(
        b"{1,2}", b"{1,2,other}"
    )
    path = tmp_path / f"small{suffix}"
    path.write_bytes(content)
    assert read_series(path)[1].tolist() == ["1", "2"]
