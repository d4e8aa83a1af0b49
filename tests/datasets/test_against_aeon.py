"""Our readers against those of aeon and SciPy, on generated and on published files.

aeon always gives three dimensions and text labels in lower case from ``.ts``; that much
is translated before the comparison, the numbers must agree exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import arff as scipy_arff

from greenfold.datasets import load_dataset, read_series

pytestmark = pytest.mark.needs("aeon")


def assert_same(ours, theirs) -> None:
    (X, y), (X_aeon, y_aeon) = ours, theirs
    assert len(X) == len(X_aeon)
    assert isinstance(X, list) == isinstance(X_aeon, list)
    for one, other in zip(X, X_aeon, strict=True):
        np.testing.assert_array_equal(np.atleast_2d(one), other)
    if y.dtype.kind == "i":
        np.testing.assert_array_equal(y, np.asarray(y_aeon).astype(float))
    else:
        folded = [str(label).casefold() for label in y]
        assert folded == [str(label).casefold() for label in y_aeon]


@pytest.fixture(scope="session")
def published(aeon) -> Path:
    """Data sets that come with aeon itself."""
    return Path(aeon.__file__).parent / "data"


@pytest.mark.parametrize(
    "labels", [["1", "2", "1"], ["1.0", "-1.0", "1.0"], ["A", "b", "A"]]
)
@pytest.mark.parametrize("n_channels", [1, 3])
def test_generated_ts(aeon, writers, tmp_path, rng, n_channels, labels):
    path = tmp_path / "small.ts"
    for lengths in [(5, 5, 5), (4, 6, 5)]:
        series = [
            rng.normal(size=(n_channels, n)) * 10.0 ** rng.integers(-9, 9) for n in lengths
        ]
        series[1][0, 2] = np.nan
        path.write_bytes(writers[".ts"](series, labels))
        assert_same(read_series(path, missing="keep"), aeon.load_from_ts_file(str(path)))


@pytest.mark.parametrize("n_channels", [1, 3])
def test_generated_arff(aeon, writers, tmp_path, rng, n_channels):
    path = tmp_path / "small.arff"
    series = list(rng.normal(size=(3, n_channels, 5)))
    series[1][0, 2] = np.nan
    path.write_bytes(writers[".arff"](series, ["1", "2", "1"]))
    assert_same(read_series(path, missing="keep"), aeon.load_from_arff_file(str(path)))


def test_generated_tsv(aeon, writers, tmp_path, rng):
    path = tmp_path / "small.tsv"
    series = list(rng.normal(size=(3, 1, 5)))
    series[1][0, 2] = np.nan
    series[2] = series[2][:, :4]  # shorter than the first: padded by both
    path.write_bytes(writers[".tsv"](series, ["1", "2", "1"]))
    X, y = aeon.load_from_tsv_file(str(path))
    # pandas is off by one unit in the last place; NumPy reads to the nearest number.
    X_ours, y_ours = read_series(path, missing="keep")
    np.testing.assert_allclose(X_ours, X[:, 0], rtol=1e-15)
    np.testing.assert_array_equal(y_ours, y)


@pytest.mark.parametrize(
    "name",
    [
        "ArrowHead/ArrowHead_TRAIN.ts",
        "ArrowHead/ArrowHead_TRAIN.arff",
        "BasicMotions/BasicMotions_TRAIN.ts",
        "BasicMotions/BasicMotions_TRAIN.arff",
        "Covid3Month/Covid3Month_TRAIN.ts",
        "Covid3Month_disc/Covid3Month_disc_TRAIN.ts",
        "GunPoint/GunPoint_TRAIN.arff",
        "JapaneseVowels/JapaneseVowels_TRAIN.ts",
        "JapaneseVowels/JapaneseVowels_eq_TRAIN.ts",
        "PickupGestureWiimoteZ/PickupGestureWiimoteZ_TRAIN.ts",
        "UnitTest/UnitTest_TRAIN.ts",
        "UnitTest/UnitTestTimeStamps_TRAIN.ts",
    ],
)
def test_published_file(aeon, published, name):
    path = published / name
    reader = aeon.load_from_ts_file if path.suffix == ".ts" else aeon.load_from_arff_file
    assert_same(read_series(path), reader(str(path)))


@pytest.mark.parametrize("name", ["ArrowHead", "BasicMotions", "GunPoint"])
def test_arff_and_ts_of_one_data_set_are_equal(published, name):
    X_ts, y_ts = read_series(published / name / f"{name}_TRAIN.ts")
    X_arff, y_arff = read_series(published / name / f"{name}_TRAIN.arff")
    np.testing.assert_array_equal(X_ts, X_arff)
    np.testing.assert_array_equal(y_ts, y_arff)
    assert y_ts.dtype == y_arff.dtype


@pytest.mark.parametrize("name", ["ArrowHead", "BasicMotions", "GunPoint"])
def test_arff_against_scipy(published, name):
    path = published / name / f"{name}_TRAIN.arff"
    rows: Any = scipy_arff.loadarff(path)[0]
    X, y = read_series(path)
    for row, one, label in zip(rows, X, y, strict=True):
        *values, target = row.tolist()
        if name == "BasicMotions":
            values = [list(channel) for channel in values[0].tolist()]
        np.testing.assert_array_equal(one, values)
        assert str(label) == target.decode()


def test_tsv_and_ts_of_one_data_set_have_equal_labels(real_data, published):
    for name in ("ArrowHead", "GunPoint", "ItalyPowerDemand", "OSULeaf"):
        X_tsv, y_tsv = load_dataset(name, "train", data_dir=real_data)
        X_ts, y_ts = read_series(published / name / f"{name}_TRAIN.ts")
        np.testing.assert_array_equal(y_tsv, y_ts)
        assert y_tsv.dtype == y_ts.dtype == np.int64
        np.testing.assert_allclose(X_tsv, X_ts, atol=1e-6)  # .ts may have fewer digits


def test_real_files(aeon, real_data):
    folders = [
        f for archive in ("ucr", "uea") for f in sorted((real_data / archive).iterdir())
    ]
    assert len(folders) == 16
    for folder in folders:
        for path in sorted(folder.glob("*_T*.ts*")):
            if path.stat().st_size > 1_500_000:
                continue  # the large ECG5000 test set alone would take half the time
            if path.suffix == ".ts":
                assert_same(read_series(path), aeon.load_from_ts_file(str(path)))
                continue
            X, y = read_series(path)
            X_aeon, y_aeon = aeon.load_from_tsv_file(str(path))
            np.testing.assert_allclose(X, X_aeon[:, 0], rtol=1e-15)
            np.testing.assert_array_equal(y, y_aeon)
