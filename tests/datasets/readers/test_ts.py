"""The .ts format."""

from __future__ import annotations

import numpy as np

from greenfold.datasets import read_ts


def test_declared_unequal_stays_a_list(tmp_path):
    # Else one split could come as an array and the other as a list.
    path = tmp_path / "a.ts"
    path.write_text("@equalLength false\n@classLabel true 1 2\n@data\n1,2:1\n3,4:2\n")
    X, _ = read_ts(path)
    assert isinstance(X, list)
    assert [one.shape for one in X] == [(1, 2), (1, 2)]


def test_time_stamps_are_dropped(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text(
        "@timeStamps true\n@univariate false\n@classLabel true x y\n@data\n"
        "(2007-01-01 00:00:00,-1),(2007-01-01 00:01:00,2.5e3):(0,3),(1,?):y\n"
    )
    X, y = read_ts(path, missing="keep")
    np.testing.assert_array_equal(X, [[[-1.0, 2500.0], [3.0, np.nan]]])
    assert y.tolist() == ["y"]


def test_regression_targets_stay_numbers(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text("@classLabel false\n@targetLabel true\n@data\n1,2:0.25\n3,4:2\n")
    assert read_ts(path)[1].tolist() == [0.25, 2.0]
