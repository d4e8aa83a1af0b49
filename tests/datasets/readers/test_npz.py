"""The .npz format: written whole, read without running anything."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from greenfold.datasets import DataError, read_npz, write_npz


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
