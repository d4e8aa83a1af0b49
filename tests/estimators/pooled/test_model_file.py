"""Files of pooled estimators: exact, sealed, and harmless whatever is in them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

from greenfold import PooledReservoirClassifier, PooledReservoirRegressor, load, save
from greenfold import ReservoirFeatures as Features
from greenfold.saving import ModelFileError

from ...sealed import seal

SMALL: dict[str, Any] = {
    "n_scales": 2,
    "n_oscillators": 3,
    "n_readouts": 16,
    "random_state": 0,
}


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((14, 20)).cumsum(axis=1)
    return X, np.arange(14) % 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "it"
    PooledReservoirClassifier(**SMALL).fit(*data()).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("engine", ["auto", "array"])
def test_what_was_saved_comes_back(tmp_path, engine):
    X, y = data()
    path = tmp_path / "it"
    for estimator, methods in (
        (PooledReservoirClassifier(**SMALL), ("predict", "predict_proba")),
        (PooledReservoirRegressor(**SMALL), ("predict",)),
        (Features(**SMALL), ("transform",)),
    ):
        before = estimator.set_params(engine=engine).fit(X, y)
        before.save(path)
        content = path.read_bytes()
        after = load(path)
        assert type(after) is type(before)
        for method in methods:
            np.testing.assert_array_equal(
                getattr(after, method)(X), getattr(before, method)(X)
            )
        # The same object, and the one that was read, give the same bytes.
        save(after, path)
        assert path.read_bytes() == content


def test_what_is_not_fitted_leaves_no_file(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        PooledReservoirClassifier().save(tmp_path / "it")
    assert not list(tmp_path.iterdir())


def refused(path, content: bytes, match: str = "cannot be read") -> None:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match):
        load(path)


def test_damage_is_refused(whole, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(60):
        content = bytearray(whole)
        content[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
        refused(tmp_path / "it", bytes(content))
        refused(tmp_path / "it", whole[: int(rng.integers(len(whole)))])


def test_flipped_bytes_are_refused_or_finite_where_the_seal_fits(whole, tmp_path):
    """What the checks behind the checksum are for: a file that was sealed anew."""
    rng = np.random.default_rng(1)
    X, _ = data()
    path = tmp_path / "it"
    read = 0
    for _ in range(150):
        content = bytearray(whole[:-64])
        for _ in range(int(rng.integers(1, 4))):
            content[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(content) + hashlib.sha256(content).hexdigest().encode())
        try:
            found = load(path)
        except ModelFileError:
            continue
        # A bit that zip's own sum does not cover, such as a date.
        read += 1
        assert np.isfinite(found.predict_proba(X)).all()
    assert read < 150


def described(whole: bytes, change) -> bytes:
    """The same archive with its metadata changed, sealed anew."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "metadata.json":
                metadata = json.loads(content)
                change(metadata)
                content = json.dumps(metadata).encode()
            new.writestr(name, content)
    return seal(made.getvalue())


def longer(metadata: dict[str, Any], stride: int) -> None:
    """Strides that the series could have, but no machine."""
    metadata["n_features_in_"] = 10 * stride
    for scale in metadata["map_"]["scales"]:
        scale["stride"] = stride


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m: m.update(kind="strange"), "holds a 'strange'"),
        (lambda m: m.update(kind="classifier"), "cannot be read"),
        (lambda m: m.update(kind="pooled_regressor"), "cannot be read"),
        (lambda m: m["map_"].update(layout=2), "layout is 2, not one of 1"),
        (lambda m: m["map_"].pop("scales"), "scales are missing"),
        (lambda m: m["parameters"].update(n_readouts=10**9), "cannot be read"),
        (lambda m: m["parameters"].update(evil=1), "cannot be read"),
        (lambda m: longer(m, 10**9), "stride"),
        (lambda m: m.update(n_channels_in_=10**12), "shape"),
        (lambda m: m.update(slope_="1e400"), "slope"),
        (lambda m: m.update(slope_=-1), "slope"),
    ],
)
def test_hostile_metadata_is_refused_with_a_sentence(whole, tmp_path, change, match):
    refused(tmp_path / "it", described(whole, change), match)
