"""Tables, their headers, and the .ts format."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from greenfold.datasets import DataError, read_series


@pytest.mark.parametrize("token", ["", "?", "NaN", "nan", "NA"])
def test_spellings_of_missing(token, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"1,0.5,{token},0.25\n")
    X, _ = read_series(path, missing="keep")
    np.testing.assert_array_equal(X, [[0.5, np.nan, 0.25]])


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf1,2.5,3.5\r\n2,4.5,5.5\r\n\r\n")
    X, y = read_series(path)
    np.testing.assert_array_equal(X, [[2.5, 3.5], [4.5, 5.5]])
    assert y.tolist() == [1, 2]


@pytest.mark.parametrize("options", [{}, {"labels": "optional"}, {"label_column": "last"}])
def test_labels_may_end_lines_of_unequal_length(tmp_path, options):
    path = tmp_path / "a.csv"
    path.write_text("1,2,a\n1,2,3,b\n")
    X, y = read_series(path, missing="trim", **options)
    assert [one.tolist() for one in X] == [[[1, 2]], [[1, 2, 3]]]
    assert y.tolist() == ["a", "b"]


def test_text_in_another_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("grün,1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="UTF-8"):
        read_series(path)


VALUES = [[0.5, 0.25, -1.5], [1.0, 2.0, 3.5]]
BODY = ["a,0.5,0.25,-1.5", "b,1.0,2.0,3.5"]


def read(tmp_path, *lines, **options):
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    return read_series(tmp_path / "table.csv", **options)


@pytest.mark.parametrize(
    "header",
    [
        "label,t0,t1,t2",
        "Class,0,1,2",  # pandas
        '"target","V1","V2","V3"',  # R
        "V1,V2,V3",  # R, without a name for the names of rows
        "species,first,second,third",
        "species,0,1,2",
        ",0,1,2",
        "y,1,2,3",
        "0,1,2,3",
    ],
)
def test_a_header_is_no_series(tmp_path, header):
    X, y = read(tmp_path, header, *BODY)
    np.testing.assert_array_equal(X, VALUES)
    assert y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("t0,t1,t2,class", ["0.5,0.25,-1.5,a", "1.0,2.0,3.5,b"]),
        (",label,0,1,2", ["0,a,0.5,0.25,-1.5", "1,b,1.0,2.0,3.5"]),
        ("id,0,1,2,target", ["7,0.5,0.25,-1.5,a", "8,1.0,2.0,3.5,b"]),
        ("0,label,1,2", ["0.5,a,0.25,-1.5", "1.0,b,2.0,3.5"]),
    ],
)
def test_the_label_is_where_the_header_says(tmp_path, header, rows):
    X, y = read(tmp_path, header, *rows)
    np.testing.assert_array_equal(X, VALUES)
    assert y.tolist() == ["a", "b"]
    X, y = read(tmp_path, header, *rows, labels="none")
    np.testing.assert_array_equal(X, VALUES)
    assert y is None


@pytest.mark.parametrize("header", ["0,1,2", "t0,t1,t2", "t1,t2,t3", "a,b,c", "1,2,3"])
def test_headers_of_series_without_labels(tmp_path, header):
    for options in ({"labels": "none"}, {"labels": "optional", "n_steps": 3}):
        X, y = read(tmp_path, header, "0.5,0.25,-1.5", "1.0,2.0,3.5", **options)
        np.testing.assert_array_equal(X, VALUES)
        assert y is None


@pytest.mark.parametrize("separator", ["\t", ";", ","])
def test_quoted_fields_may_hold_separators(tmp_path, separator):
    # The csv module quotes every field, header and numbers included.
    rows = [["label", "t0", "t1"], ["warm, dry; \tstill", "0.5", "1.5"], ["cold", "2", ""]]
    with open(tmp_path / "table.csv", "w", newline="") as stream:
        write = csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL)
        write.writerows(rows)
    X, y = read_series(tmp_path / "table.csv", missing="keep")
    np.testing.assert_array_equal(X, [[0.5, 1.5], [2.0, np.nan]])
    assert y.tolist() == ["warm, dry; \tstill", "cold"]
    with open(tmp_path / "bare.csv", "w", newline="") as stream:
        csv.writer(stream, delimiter=separator).writerows(rows[1:])
    np.testing.assert_array_equal(read_series(tmp_path / "bare.csv", missing="keep")[0], X)


def test_a_quote_that_does_not_end(tmp_path):
    with pytest.raises(DataError, match="quoted field without an end in line 2"):
        read(tmp_path, "a,0.5,0.25", '"c,3,4')
    with pytest.raises(DataError):  # beyond the csv module's limit, if nobody raised it
        read(tmp_path, "a,0.5,0.25", '"c' + 200_000 * "3")


def test_labels_that_the_header_lacks(tmp_path):
    with pytest.raises(DataError, match="names no column as labels"):
        read(tmp_path, "t0,t1,t2", "0.5,0.25,-1.5")
    with pytest.raises(DataError, match="names 2 columns as labels"):
        read(tmp_path, "y,t0,class", "0.5,0.25,-1.5")


@pytest.mark.parametrize(
    "first",
    [
        "0,1,2,3",  # a ramp, among whole numbers
        "1,2,3,4",
        "up,0,1,2",  # a label that comes again
        "y,0.5,1,2",
        "a,?,?,1",
    ],
)
def test_series_that_look_like_headers(tmp_path, first):
    rows = [first, "1,4,5,6", "up,7,8,9", "y,7,8,9", "a,1,2,3"]
    assert len(read(tmp_path, *rows, missing="keep")[0]) == 5


def test_a_mistyped_number_does_not_make_a_header(tmp_path):
    with pytest.raises(DataError, match=r"'O.5' instead of a number in series 0.*name all"):
        read(tmp_path, "1,0.25,O.5,0.75", "2,0.5,0.5,0.5")
    with pytest.raises(DataError, match=r"'O.5' instead of a number in series 1") as caught:
        read(tmp_path, "1,0.25,0.5,0.75", "2,0.5,O.5,0.5")
    assert "name them" not in str(caught.value)


def test_headers_that_do_not_fit(tmp_path):
    with pytest.raises(DataError, match="no series below"):
        read(tmp_path, "label,t0,t1")
    with pytest.raises(DataError, match="names 2 columns in its first line but has 5"):
        read(tmp_path, "label,t0", "a,1.5,2,3,4")
    # Short lines are padded, as ever.
    X, _ = read(tmp_path, "label,t0,t1", "a,1.5,2", "b,1", missing="trim")
    assert [one.shape for one in X] == [(1, 2), (1, 1)]


def test_declared_unequal_stays_a_list(tmp_path):
    # Else one split could come as an array and the other as a list.
    path = tmp_path / "a.ts"
    path.write_text("@equalLength false\n@classLabel true 1 2\n@data\n1,2:1\n3,4:2\n")
    X, _ = read_series(path)
    assert isinstance(X, list)
    assert [one.shape for one in X] == [(1, 2), (1, 2)]


def test_time_stamps_are_dropped(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text(
        "@timeStamps true\n@univariate false\n@classLabel true x y\n@data\n"
        "(2007-01-01 00:00:00,-1),(2007-01-01 00:01:00,2.5e3):(0,3),(1,?):y\n"
    )
    X, y = read_series(path, missing="keep")
    np.testing.assert_array_equal(X, [[[-1.0, 2500.0], [3.0, np.nan]]])
    assert y.tolist() == ["y"]


def test_regression_targets_stay_numbers(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text("@classLabel false\n@targetLabel true\n@data\n1,2:0.25\n3,4:2\n")
    assert read_series(path)[1].tolist() == [0.25, 2.0]
