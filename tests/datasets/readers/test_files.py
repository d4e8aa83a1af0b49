"""Every format gives back what was written, and says what is wrong with what is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from greenfold.datasets import (
    DataError,
    read_arff,
    read_npz,
    read_series,
    read_table,
    read_ts,
)

from ..conftest import MULTICHANNEL, SUFFIXES, one_sentence

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


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
    "does not belong": (".arff", "hello\n@data\n"),
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
    "labels of shape (3,)": (".npz", {"X": np.ones((2, 3)), "y": np.ones(3)}),
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
