"""Labels are spelled alike in every format."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import read_series


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
