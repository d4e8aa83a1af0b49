"""Every format gives back what was written, and says what is wrong with what is not."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from greenfold.datasets import (
    DataError,
    MissingValueError,
    read_arff,
    read_npz,
    read_series,
    read_table,
    read_ts,
    write_npz,
)

SUFFIXES = [".tsv", ".csv", ".txt", ".ts", ".arff", ".npz"]
MULTICHANNEL = [".ts", ".arff", ".npz"]

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


def one_sentence(message: str) -> bool:
    """True if a full stop comes at the end and nowhere else before a blank."""
    return message.endswith((".", "?")) and ". " not in message


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(
    X=npst.arrays(
        np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=finite
    ),
    data=st.data(),
)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_univariate_round_trip(suffix, writers, tmp_path, X, data):
    labels = data.draw(st.lists(st.integers(-9, 9), min_size=len(X), max_size=len(X)))
    path = tmp_path / f"small{suffix}"
    path.write_bytes(writers[suffix]([row[None] for row in X], [str(v) for v in labels]))
    X_read, y = read_series(path)
    assert isinstance(X_read, np.ndarray)
    assert X_read.dtype == np.float64
    np.testing.assert_array_equal(X_read, X)
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize("suffix", MULTICHANNEL)
def test_multichannel_shape_and_values(suffix, writers, tmp_path, rng):
    X = rng.normal(size=(4, 3, 5))
    path = tmp_path / f"small{suffix}"
    path.write_bytes(writers[suffix](list(X), ["b", "a", "b", "a"]))
    X_read, y = read_series(path)
    np.testing.assert_array_equal(X_read, X)
    assert y.tolist() == ["b", "a", "b", "a"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unequal_lengths(suffix, writers, tmp_path, rng):
    n_channels = 2 if suffix in MULTICHANNEL else 1
    series = [rng.normal(size=(n_channels, n)) for n in (3, 5, 4)]
    path = tmp_path / f"small{suffix}"
    path.write_bytes(writers[suffix](series, ["1", "2", "1"]))
    # A table and ARFF cannot tell the end of a series from a missing value.
    padded = suffix not in (".ts", ".npz")
    if padded:
        with pytest.raises(MissingValueError, match="missing='trim'"):
            read_series(path)
    X, y = read_series(path, missing="trim" if padded else "error")
    assert isinstance(X, list)
    for got, expected in zip(X, series, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert y.tolist() == [1, 2, 1]


def test_declared_unequal_stays_a_list(tmp_path):
    # Else one split could come as an array and the other as a list.
    path = tmp_path / "a.ts"
    path.write_text("@equalLength false\n@classLabel true 1 2\n@data\n1,2:1\n3,4:2\n")
    X, _ = read_ts(path)
    assert isinstance(X, list)
    assert [one.shape for one in X] == [(1, 2), (1, 2)]


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
        read_table(path)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    np.testing.assert_array_equal(copy.positions, [[0, 0, 1]])


@pytest.mark.parametrize("token", ["", "?", "NaN", "nan", "NA"])
def test_spellings_of_missing(token, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"1,0.5,{token},0.25\n")
    X, _ = read_table(path, missing="keep")
    np.testing.assert_array_equal(X, [[0.5, np.nan, 0.25]])


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


def test_numbers_in_npz_labels(tmp_path):
    path = tmp_path / "a.npz"
    X = np.ones((2, 3))
    for labels, expected in [
        (np.array([1.0, 2.0]), [1, 2]),
        (np.array([2**60 + 1, 2**60]), [2**60 + 1, 2**60]),
        (np.array([b"a", b"b"]), ["a", "b"]),
        (np.array([True, False]), [1, 0]),
    ]:
        np.savez(path, X=X, y=labels)
        assert read_npz(path)[1].tolist() == expected


def test_npz_round_trip_of_unequal_lengths(tmp_path, rng):
    path = tmp_path / "a.npz"
    series = [rng.normal(size=(2, n)) for n in (5, 2, 4)]
    write_npz(path, series, ["a", "b", "a"])
    X, y = read_npz(path)
    assert isinstance(X, list)
    for got, expected in zip(X, series, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert y.tolist() == ["a", "b", "a"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    write_npz(path, np.ones((2, 3)), [1, 2])
    before = path.read_bytes()

    def fail(stream, **arrays):
        stream.write(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        write_npz(path, np.zeros((2, 3)), [1, 2])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize(
    ("path", "X", "y"),
    [
        ("a.txt", np.ones((2, 3)), [1, 2]),
        ("a.npz", np.ones((2, 3)), [1, 2, 3]),
        ("a.npz", np.ones((2, 3)), np.array([1, None])),
        ("a.npz", [np.ones((1, 3)), np.ones((2, 3))], [1, 2]),
    ],
)
def test_write_npz_refuses(path, X, y, tmp_path):
    with pytest.raises(ValueError, match=r"^`"):
        write_npz(tmp_path / path, X, y)
    assert not list(tmp_path.iterdir())


def test_npz_never_unpickles(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    path = tmp_path / "a.npz"
    np.savez(path, X=np.ones((1, 3)), y=np.array([Trap()], dtype=object))
    with pytest.raises(DataError, match="pickle"):
        read_npz(path)
    assert not (tmp_path / "sprung").exists()


def test_npz_that_claims_a_huge_array_is_refused_before_it_is_allocated(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**15, 10**6)}
    )
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header.getvalue())
    with pytest.raises(DataError, match="incomplete"):
        read_npz(path)


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


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf1,2.5,3.5\r\n2,4.5,5.5\r\n\r\n")
    X, y = read_table(path)
    np.testing.assert_array_equal(X, [[2.5, 3.5], [4.5, 5.5]])
    assert y.tolist() == [1, 2]


TS = "@univariate true\n@classLabel true 1 2\n@data\n"
ARFF = "@relation r\n@attribute a real\n@attribute b real\n@attribute c {1,2}\n@data\n"
RELATIONAL = ARFF.replace(
    "@attribute a", "@attribute rel relational\n@attribute a"
).replace("@attribute c", "@end rel\n@attribute c")

BROKEN = {
    "no series": (".tsv", ""),
    "without values": (".tsv", "1\n"),
    "'x' instead of a number in series 1, position 0": (".csv", "1,2\n2,x\n"),
    "'1_0' instead of a number": (".csv", "1,1_0\n"),
    "infinite value in series 0, channel 0, position 1": (".csv", "1,2,inf\n"),
    "no class label for series 1": (".csv", "1,2\n?,3\n"),
    "no value at all in series 0": (".npz", {"X": np.ones((1, 0)), "y": np.ones(1)}),
    "no @data": (".ts", "hello\n@univariate true\n"),
    "without `true` or `false`": (".ts", "@univariate\n@data\n"),
    "no class labels": (".ts", "@classLabel false\n@data\n1,2\n"),
    "no label after a colon": (".ts", TS + "1,2\n"),
    "does not declare": (".ts", TS + "1,2:3\n"),
    "2 channels in series 0": (".ts", TS + "1,2:3,4:1\n"),
    "channels of 2 to 3 steps": (
        ".ts",
        TS.replace("@univariate true", "@univariate false") + "1,2:3,4,5:1\n",
    ),
    "2 channels in series 1 but 1 in series 0": (
        ".ts",
        TS.replace("@univariate true", "@univariate false") + "1,2:1\n1,2:3,4:1\n",
    ),
    "declares equal lengths but has 3 steps in series 1": (".ts", TS + "1,2:1\n1,2,3:1\n"),
    "declares time stamps": (".ts", "@timeStamps true\n" + TS + "1,2:1\n"),
    "no @data tag: is it a complete ARFF": (".arff", "@relation r\n"),
    "declares no class": (".arff", "@attribute a real\n@data\n1\n"),
    "declares no values": (".arff", "@attribute c {1,2}\n@data\n1\n"),
    "type 'string'": (".arff", "@attribute a string\n@data\n1\n"),
    "does not belong": (".arff", "hello\n"),
    "values in series 0 (counting from 0), 3 instead of the 2": (
        ".arff",
        ARFF + "1,2,3,1\n",
    ),
    "values in series 1 (counting from 0), 1 instead of the 2": (
        ".arff",
        ARFF + "1,2,1\n1,1\n",
    ),
    "in the form": (".arff", RELATIONAL + "1,2,1\n"),
    "values in series 1 (counting from 0), 3 instead of the 2": (
        ".arff",
        RELATIONAL + "'1,2',1\n'1,2\\n1,2,3',1\n",
    ),
    "needs `X` and `y`": (".npz", {"X": np.ones((2, 3))}),
    "an `X` of shape (3,)": (".npz", {"X": np.ones(3), "y": np.ones(3)}),
    "a `y` of shape (3,)": (".npz", {"X": np.ones((2, 3)), "y": np.ones(3)}),
    "`lengths` that do not fit": (
        ".npz",
        {"X": np.ones((2, 3)), "y": np.ones(2), "lengths": np.array([1, 4])},
    ),
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_broken_files_get_one_clear_sentence(complaint, tmp_path):
    suffix, content = BROKEN[complaint]
    path = tmp_path / f"broken{suffix}"
    if isinstance(content, str):
        path.write_text(content)
    else:
        np.savez(path, **content)
    with pytest.raises(DataError) as caught:
        read_series(path)
    message = str(caught.value)
    assert complaint in message
    assert str(path) in message
    assert one_sentence(message)


def test_text_in_another_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("grün,1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="UTF-8"):
        read_table(path)


@pytest.mark.parametrize("reader", [read_series, read_table, read_ts, read_arff, read_npz])
def test_no_such_file(reader, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        reader(tmp_path / "nothing.ts" if reader is read_series else tmp_path / "nothing")
    (tmp_path / "folder.ts").mkdir()
    with pytest.raises(FileNotFoundError, match="directory"):
        reader(tmp_path / "folder.ts")


def test_unknown_suffix_and_policy(tmp_path):
    with pytest.raises(DataError, match=r"suffix '\.xls'.*\.tsv"):
        read_series(tmp_path / "a.xls")
    with pytest.raises(ValueError, match="`missing` must be"):
        read_table(tmp_path / "a.tsv", missing="drop")  # pyright: ignore[reportArgumentType]
