"""The .npz format, and files read in slices."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from greenfold import SampleStimuli
from greenfold.datasets import DataError, open_series, read_series, write_npz


def test_npz_round_trip_of_unequal_lengths(tmp_path, rng):
    path = tmp_path / "a.npz"
    series = [rng.normal(size=(2, n)) for n in (5, 2, 4)]
    write_npz(path, series, ["a", "b", "a"])
    X, y = read_series(path)
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
        read_series(path)
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
        read_series(path)


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
        assert read_series(path)[1].tolist() == expected


def write_npy(path: Path, X, y) -> dict:
    np.save(path, X)
    return {"labels": y}


def write_hdf5(path: Path, X, y) -> dict:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(7, *X.shape[1:]))
        file["y"] = y.tolist()  # text as objects, as h5py writes it
    return {}


def write_zarr(path: Path, X, y) -> dict:
    import zarr

    group = zarr.open_group(str(path), mode="w")
    group.create_array("X", data=X, chunks=(7, *X.shape[1:]))
    if y.dtype.kind == "U":
        return {"labels": y}
    group.create_array("y", data=y)
    return {}


def write_lists(path: Path, X, y) -> dict:
    """Series as one column of lists, in row groups."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    table = pa.table({"y": y.tolist(), "X": list(X)})
    parquet.write_table(table, path, row_group_size=7)
    return {}


def write_columns(path: Path, X, y) -> dict:
    """One column a step."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns = {f"t{i}": X[:, i] for i in range(X.shape[1])}
    parquet.write_table(pa.table({**columns, "y": y.tolist()}), path, row_group_size=20)
    return {}


WRITERS = [
    pytest.param("a.npy", write_npy, id="npy"),
    pytest.param("a.h5", write_hdf5, marks=pytest.mark.needs("h5py"), id="h5"),
    pytest.param("a.hdf5", write_hdf5, marks=pytest.mark.needs("h5py"), id="hdf5"),
    pytest.param("a.zarr", write_zarr, marks=pytest.mark.needs("zarr"), id="zarr"),
    pytest.param("a.parquet", write_lists, marks=pytest.mark.needs("pyarrow"), id="lists"),
    pytest.param(
        "a.parquet", write_columns, marks=pytest.mark.needs("pyarrow"), id="columns"
    ),
]


@pytest.fixture
def arrays(rng):
    return rng.standard_normal((40, 5)), np.array(["no", "yes"])[np.arange(40) % 2]


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_slices_are_those_of_the_array(tmp_path, arrays, rng, name, write):
    X, y = arrays
    how = write(tmp_path / name, X, y)
    series, labels = open_series(tmp_path / name, **how)
    assert (series.shape, series.dtype, len(series)) == (X.shape, X.dtype, 40)
    assert labels is not None
    assert labels.tolist() == y.tolist()
    for start, stop in ((0, 9), (9, 21), (21, 40), (3, 5), (12, 13), (13, 13), (0, 40)):
        assert np.array_equal(series[start:stop], X[start:stop])
    for start in rng.integers(0, 40, 20):
        assert np.array_equal(series[start : start + 6], X[start : start + 6])


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_stimuli_of_a_file_are_those_of_the_array(
    tmp_path, arrays, monkeypatch, name, write
):
    from greenfold.stimuli import chunks as sliced

    X, y = arrays
    how = write(tmp_path / name, X, y)
    monkeypatch.setattr(sliced, "_CHUNK_BYTES", 8 * 5 * 9)
    series, labels = open_series(tmp_path / name, **how)
    assert labels is not None
    found, whole = SampleStimuli(series, labels), SampleStimuli(X, y)
    assert max(found._chunks.sizes) <= 36  # pyright: ignore[reportOptionalMemberAccess]
    assert found.psi == pytest.approx(whole.psi, abs=1e-13)
    assert found.classes.tolist() == ["no", "yes"]


@pytest.mark.parametrize(("name", "write"), WRITERS[:4])
def test_channels_and_numbers(tmp_path, rng, name, write):
    X, y = rng.standard_normal((9, 2, 5)).astype(np.float32), np.arange(9) % 3
    how = write(tmp_path / name, X, y)
    series, labels = open_series(tmp_path / name, **how)
    assert np.array_equal(series[2:6], X[2:6])
    assert labels is not None
    assert labels.dtype == np.int64


def refused(path: Path, sentence: str, **how) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        open_series(path, **how)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "suffix",
    [
        ".npy",
        pytest.param(".h5", marks=pytest.mark.needs("h5py")),
        pytest.param(".parquet", marks=pytest.mark.needs("pyarrow")),
    ],
)
def test_damaged_files_are_refused_in_a_sentence(tmp_path, suffix):
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(b"no such thing")
    refused(path, f"cannot be read as {suffix} ")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_series(tmp_path / f"none{suffix}")


def test_what_is_not_such_a_file_is_refused_in_a_sentence(tmp_path, rng):
    X = rng.standard_normal((6, 3))
    (tmp_path / "a.csv").write_text("1,2")
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "flat.npy", X[0])
    np.save(tmp_path / "text.npy", X.astype(str))
    np.save(tmp_path / "empty.npy", X[:0])
    np.save(tmp_path / "y.npy", np.arange(5))
    refused(tmp_path / "a.csv", "the suffix '.csv', which cannot be read in slices")
    refused(tmp_path / "flat.npy", r"holds series of shape \(3,\) and type float64")
    refused(tmp_path / "text.npy", "and type <U")
    refused(tmp_path / "empty.npy", r"holds series of shape \(0, 3\)")
    wrong = {"labels": tmp_path / "y.npy"}
    refused(tmp_path / "a.npy", r"labels of shape \(5,\) and type int64", **wrong)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_series(tmp_path / "a.npy", labels=tmp_path / "none.npy")


@pytest.mark.needs("h5py")
def test_series_of_another_name(tmp_path, rng):
    import h5py

    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["Y"] = rng.standard_normal((6, 3))
    sentence = r"holds \['Y'\] but no array `X`: name the series with `X`"
    refused(tmp_path / "other.h5", sentence)
    assert open_series(tmp_path / "other.h5", X="Y")[1] is None


@pytest.mark.needs("pyarrow")
def test_missing_values_and_unequal_lengths_in_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"X": [[1.0, 2.0], [3.0, 4.0], [5.0]]}), path)
    with pytest.raises(DataError, match="of unequal length"):
        open_series(path)[0][0:3]
    parquet.write_table(pa.table({"a": [1.0, None], "b": [1.0, 2.0], "y": [0, 1]}), path)
    with pytest.raises(DataError, match="values are missing"):
        open_series(path)[0][0:2]


@pytest.mark.parametrize("module", ["h5py", "zarr", "pyarrow.parquet"])
def test_an_extra_that_is_lacking_is_named(tmp_path, monkeypatch, module):
    suffix = {"h5py": ".h5", "zarr": ".zarr", "pyarrow.parquet": ".parquet"}[module]
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"a{suffix}").write_text("")
    with pytest.raises(ImportError, match=r"pip install 'greenfold\[(hdf5|zarr|parquet)\]"):
        open_series(tmp_path / f"a{suffix}")
