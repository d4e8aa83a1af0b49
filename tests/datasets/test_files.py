"""Every format returns what was written, and explains what is wrong with a bad file."""

from __future__ import annotations

import gzip
import io
import os
import re
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from greenfold.datasets import (
    DataError,
    read_series,
    write_npz,
)

from .conftest import MULTICHANNEL, SUFFIXES, one_sentence

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
    r"'2\\n3' instead of a number": (".arff", ARFF + "1,2\\n3,1\n"),
    "values in series 1 (counting from 0), 3 instead of the 2": (
        ".arff",
        RELATIONAL + "'1,2',1\n'1,2\\n1,2,3',1\n",
    ),
    "needs `X` and `y`": (".npz", {"X": np.ones((2, 3))}),
    "series of shape (3,)": (".npz", {"X": np.ones(3), "y": np.ones(3)}),
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


@pytest.mark.parametrize("suffix", [".tsv", ".ts", ".arff", ".npz"])
def test_no_such_file(suffix, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_series(tmp_path / f"nothing{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(FileNotFoundError, match="directory"):
        read_series(tmp_path / f"folder{suffix}")


def test_unknown_suffix_and_policy(tmp_path):
    with pytest.raises(DataError, match=r"suffix '\.xls'.*\.tsv"):
        read_series(tmp_path / "a.xls")
    with pytest.raises(ValueError, match="`missing` must be"):
        read_series(tmp_path / "a.tsv", missing="drop")  # pyright: ignore[reportArgumentType]


N_CASES, N_STEPS = 6, 5


@pytest.fixture
def cases(rng):
    return list(rng.standard_normal((N_CASES, 1, N_STEPS)))


@pytest.fixture
def pairs(rng):
    """Series of two channels."""
    return list(rng.standard_normal((N_CASES, 2, N_STEPS)))


LABELS = ["1", "2", "1", "2", "2", "1"]


def without_label(suffix: str, content: bytes) -> bytes:
    """The same file as somebody would write it who has no labels."""
    if suffix == ".npz":
        arrays: Any = dict(np.load(io.BytesIO(content)))
        del arrays["y"]
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        return stream.getvalue()
    text = content.decode()
    if suffix == ".ts":
        text = re.sub("@classLabel.*", "@classLabel false", text)
        head, data = text.split("@data\n")
        return (head + "@data\n" + re.sub(r":\d+\n", "\n", data)).encode()
    if suffix == ".arff":
        head, data = re.sub("@attribute target.*\n", "", text).split("@data\n")
        return (head + "@data\n" + re.sub(r",\d+\n", "\n", data)).encode()
    return re.sub(r"(?m)^\d+(\t|,|  )", "", text).encode()


def with_question_marks(suffix: str, content: bytes) -> bytes:
    """The same file with `?` for every label."""
    if suffix == ".npz":
        arrays: Any = dict(np.load(io.BytesIO(content)))
        stream = io.BytesIO()
        np.savez(stream, **arrays | {"y": np.full(N_CASES, "?")})
        return stream.getvalue()
    text = content.decode()
    if suffix in (".ts", ".arff"):
        head, data = text.split("@data\n")
        return (head + "@data\n" + re.sub(r"([:,])\d+\n", r"\1?\n", data)).encode()
    return re.sub(r"(?m)^\d+(\t|,|  )", r"?\1", text).encode()


@pytest.mark.parametrize("change", [without_label, with_question_marks])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_series_are_those_of_the_labelled_twin(tmp_path, writers, cases, suffix, change):
    path, bare = tmp_path / f"full{suffix}", tmp_path / f"bare{suffix}"
    path.write_bytes(writers[suffix](cases, LABELS))
    bare.write_bytes(change(suffix, path.read_bytes()))
    expected, y = read_series(path)
    X, none = read_series(bare, labels="optional", n_steps=N_STEPS)
    np.testing.assert_array_equal(X, expected)
    assert none is None
    same, again = read_series(path, labels="optional", n_steps=N_STEPS)
    np.testing.assert_array_equal(same, expected)
    np.testing.assert_array_equal(again, y)
    # Required by default; but a table of numbers alone reads as labels and values.
    if suffix not in (".tsv", ".csv", ".txt") or change is with_question_marks:
        with pytest.raises(DataError, match="label|class|`y`"):
            read_series(bare)


@pytest.mark.parametrize("change", [without_label, with_question_marks])
@pytest.mark.parametrize("suffix", MULTICHANNEL)
def test_several_channels(tmp_path, writers, pairs, suffix, change):
    content = writers[suffix](pairs, LABELS)
    path = tmp_path / f"bare{suffix}"
    path.write_bytes(change(suffix, content))
    X, y = read_series(path, labels="optional")
    np.testing.assert_array_equal(X, np.stack(pairs))
    assert y is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_labels_that_are_not_wanted(tmp_path, writers, cases, suffix):
    path = tmp_path / f"full{suffix}"
    path.write_bytes(writers[suffix](cases, LABELS))
    X, y = read_series(path, labels="none")
    assert y is None
    # In a table, "none" means that the first value is one of the series.
    table = suffix in (".tsv", ".csv", ".txt")
    assert np.shape(X) == (N_CASES, N_STEPS + table)


def test_some_labels_are_missing(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("1,.5,.6\n?,.7,.8\n2,.1,.2\n")
    X, y = read_series(path, labels="optional", n_steps=2)
    assert np.shape(X) == (3, 2)
    assert y.tolist() == [1, None, 2]
    path.write_text("a,.5,.6\n,.7,.8\n")
    assert read_series(path, labels="optional")[1].tolist() == ["a", None]


def decide(tmp_path: Path, text: str, **known) -> bool:
    """Whether the table was read as labelled."""
    (tmp_path / "table.csv").write_text(text)
    return read_series(tmp_path / "table.csv", labels="optional", **known)[1] is not None


def test_what_decides_about_a_table(tmp_path):
    assert decide(tmp_path, "1,.5,.6\n2,.1,.2\n", n_steps=2)
    assert not decide(tmp_path, "1,.5,.6\n2,.1,.2\n", n_steps=3)
    # Words are labels whatever the length; the length decides over the classes.
    assert decide(tmp_path, "up,.5,.6\ndown,.1,.2\n", n_steps=3)
    assert not decide(tmp_path, "1,.5,.6\n2,.1,.2\n", n_steps=3, classes=[1, 2])
    # Lengths that say nothing: the classes, and values that no class would have.
    assert decide(tmp_path, "1.0,.5,.6\n2.0,.1,.2\n", n_steps=9, classes=[1, 2])
    assert not decide(tmp_path, "1.5,.5,.6\n2.0,.1,.2\n", n_steps=9, classes=[1, 2])
    for known in ({}, {"n_steps": 9}, {"classes": [0, 3]}):
        with pytest.raises(DataError, match="is not clear whether the first is a label"):
            decide(tmp_path, "1,.5,.6\n2,.1,.2\n", **known)


def test_npy(tmp_path, cases, pairs):
    flat, cube = np.stack(cases)[:, 0], np.stack(pairs)
    for array in (flat, cube, cube.astype(np.float32), np.arange(6).reshape(2, 3)):
        np.save(tmp_path / "x.npy", array)
        X, y = read_series(tmp_path / "x.npy", labels="optional")
        np.testing.assert_array_equal(X, array)
        assert y is None
    with pytest.raises(DataError, match="without labels"):
        read_series(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, "
        b"'shape': (99999999999, 9999999), }".ljust(128, b" ")
        + b"\n",
    ],
)
def test_npy_that_is_damaged(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot be read as .npy"):
        read_series(tmp_path / "x.npy", labels="optional")


def test_npy_of_another_kind(tmp_path):
    for array in (np.zeros(3), np.array([["a"]]), np.zeros((1, 1, 1, 1)), np.eye(2) > 0):
        np.save(tmp_path / "x.npy", array)
        with pytest.raises(DataError, match="must be numbers of shape"):
            read_series(tmp_path / "x.npy", labels="optional")
    np.save(tmp_path / "x.npy", np.zeros((0, 3)))
    with pytest.raises(DataError, match="holds no series"):
        read_series(tmp_path / "x.npy", labels="optional")
    np.save(tmp_path / "x.npy", np.zeros((2, 0, 3)))
    with pytest.raises(DataError, match="no value at all"):
        read_series(tmp_path / "x.npy", labels="optional")
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(DataError, match="pickled"):
        read_series(tmp_path / "x.npy", labels="optional")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compressed_and_streamed(tmp_path, writers, cases, suffix):
    content = writers[suffix](cases, LABELS)
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    X, y = read_series(path)
    packed = tmp_path / f"x{suffix}.gz"
    packed.write_bytes(gzip.compress(content))
    sources = [(packed, None), (io.BytesIO(content), suffix[1:])]
    sources += [(io.BytesIO(gzip.compress(content)), suffix), (path, suffix[1:].upper())]
    for source, form in sources:
        found, labels = read_series(source, format=form)
        np.testing.assert_array_equal(found, X)
        np.testing.assert_array_equal(labels, y)
    packed.write_bytes(content)  # unpacked by a browser, which keeps the name
    np.testing.assert_array_equal(read_series(packed)[0], X)


def test_damaged_gzip(tmp_path, writers, cases):
    whole = gzip.compress(writers[".tsv"](cases, LABELS))
    path = tmp_path / "x.tsv.gz"
    for cut in range(2, len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="gzip"):
            read_series(path)
    path.write_bytes(whole[:30] + b"\xff\x00" + whole[32:])
    with pytest.raises(DataError, match="cannot be read as gzip"):
        read_series(path)


def test_formats_that_are_not_known(tmp_path):
    with pytest.raises(DataError, match="the format 'xls'"):
        read_series(io.BytesIO(b""), format="xls")
    with pytest.raises(DataError, match="no reader"):
        read_series(io.BytesIO(b""))
    with pytest.raises(ValueError, match="`labels` must be"):
        read_series(tmp_path / "x.csv", labels="maybe")  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="holds no series"):
        read_series(io.BytesIO(b""), format="csv", labels="optional", n_steps=2)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of Unix")
def test_pipes_and_other_kinds_of_files(tmp_path, monkeypatch):
    fifo = tmp_path / "x.csv"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text("1,.5\n2,.6\n"), daemon=True)
    writer.start()
    assert read_series(fifo)[1].tolist() == [1, 2]
    writer.join(10)
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as ours:
        ours.bind("socket.csv")
        with pytest.raises(DataError, match="neither a file nor a pipe"):
            read_series("socket.csv")
    with pytest.raises(FileNotFoundError, match="is a directory"):
        read_series(tmp_path, format="csv")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_series(fifo / "below.csv")


def test_npz_is_written_without_labels(tmp_path, cases):
    write_npz(tmp_path / "x.npz", cases)
    X, y = read_series(tmp_path / "x.npz", labels="optional")
    assert y is None
    np.testing.assert_array_equal(X, np.stack(cases))
