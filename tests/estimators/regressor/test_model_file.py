"""A regressor's file: what is read is what was written, and no changed file is read."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from greenfold import (
    RegressionTask,
    Reservoir,
    ReservoirRegressor,
    load,
    optimize,
    save,
    unfold,
)
from greenfold.optimizers import RegressionProjections
from greenfold.saving import ModelFileError

from ...conftest import small


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2, 7))
    return X, np.stack([X[:, 0, -1], 10 + 5 * X[:, 1, -2]], axis=1)


GIVEN = {
    "plain": {"n_neurons": 4},
    "random": {"n_neurons": 6, "input_projection": "random", "ridge": np.float64(0.1)},
    "given": {"input_projection": np.eye(6, 2), "reservoir": small(n=6).weights},
    "network": {
        "reservoir": Reservoir(small(n=6).weights, tau=0.4),
        "input_projection": "random",
        "readout_noise": 0.1,
    },
    "sparse": {"reservoir": sparse.csr_array(small(n=6).weights)},
}


@pytest.mark.parametrize(
    ("name", "targets"), [("plain", 1), *((name, 2) for name in GIVEN)]
)
def test_what_was_saved_comes_back(tmp_path, name, targets):
    X, y = data()
    given = GIVEN[name]
    y = y[:, 0] if targets == 1 else y
    before = ReservoirRegressor(random_state=0, **given).fit(X, y)
    before.save(tmp_path / "it")
    after = load(tmp_path / "it")
    assert isinstance(after, ReservoirRegressor)
    np.testing.assert_array_equal(after.predict(X), before.predict(X))
    assert after.predict(X).shape == y.shape
    assert str(after.projections_) == str(before.projections_)
    assert after.ridge_ == before.ridge_
    u = before.projections_.u
    first, again = (one.unfolding_.input_response(u) for one in (before, after))
    np.testing.assert_array_equal(first, again)
    save(after, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "it").read_bytes()
    after.fit(X, y)  # parameters came along
    np.testing.assert_allclose(after.predict(X), before.predict(X), rtol=1e-9)


def test_names_of_columns_come_back(tmp_path):
    import pandas

    X, y = data()
    table = pandas.DataFrame(X[:, 0], columns=[f"t{i}" for i in range(7)])
    before = ReservoirRegressor(n_neurons=5, random_state=0).fit(table, y[:, 0])
    save(before, tmp_path / "it")
    after = load(tmp_path / "it")
    assert list(after.feature_names_in_) == list(table.columns)
    np.testing.assert_array_equal(after.predict(table), before.predict(table))


def test_a_result_comes_back(tmp_path):
    task = RegressionTask.memory([1, 2], 6, ridge=0.01)
    before = optimize(unfold(small(n=5), n_steps=6, dt=0.5), task, rng=0)
    save(before, tmp_path / "it")
    after = load(tmp_path / "it")
    assert isinstance(after, RegressionProjections)
    assert str(after) == str(before)
    for name in ("u", "V", "r2", "starts"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert (after.gap, after.loss_bound) == (before.gap, before.loss_bound)


def test_what_is_not_fitted_leaves_no_file(tmp_path):
    with pytest.raises(NotFittedError):
        save(ReservoirRegressor(), tmp_path / "it")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "it"
    ReservoirRegressor(n_neurons=4, random_state=0).fit(*data()).save(path)
    return path.read_bytes()


def seal(content: bytes) -> bytes:
    return content + hashlib.sha256(content).hexdigest().encode()


def test_flipped_bytes_are_refused_or_finite_where_the_seal_fits(whole, tmp_path):
    """What the checks behind the checksum are for: a file that was sealed anew."""
    rng = np.random.default_rng(1)
    X, _ = data()
    path, read = tmp_path / "it", 0
    for _ in range(80):
        content = bytearray(whole[:-64])
        for _ in range(int(rng.integers(1, 4))):
            content[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(content) + whole[-64:])
        with pytest.raises(ModelFileError, match="checksum|cut off"):
            load(path)
        path.write_bytes(seal(bytes(content)))
        try:
            found = load(path)
        except ModelFileError:
            continue
        read += 1  # a bit that zip's own sum does not cover, such as a date
        assert np.isfinite(found.predict(X)).all()
    assert read < 80


def changed(whole: bytes, change) -> bytes:
    """The same archive with metadata and arrays changed, sealed anew."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    metadata = json.loads(parts.pop("metadata.json"))
    arrays = {k: np.load(io.BytesIO(v)) for k, v in parts.items()}
    change(metadata, arrays)
    with zipfile.ZipFile(made, "w") as new:
        new.writestr("metadata.json", json.dumps(metadata))
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, (1, 0), allow_pickle=True)
            new.writestr(name, stream.getvalue())
        new.comment = b"greenfold sha256 " + bytes(64)
    return seal(made.getvalue()[:-64])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m, a: m.update(kind="classifier"), "cannot be read"),
        (lambda m, a: m["parameters"].update(n_neurons="rm"), "cannot be read"),
        (lambda m, a: m["parameters"].update(shell=1), "cannot be read"),
        (lambda m, a: m.update(n_features_in_=0), "n_features_in is 0"),
        (lambda m, a: m.update(n_features_in_=8), "'kernel.*has shape"),
        (lambda m, a: m.update(_flat=True), "2 targets, but declares one"),
        (lambda m, a: m.update(ridge_=-1.0), "its ridge is -1.0, not a positive"),
        (
            lambda m, a: m["projections_"].update(status="owned"),
            "status is 'owned', not one",
        ),
        (lambda m, a: m["projections_"].update(loss=float("nan")), "not a finite"),
        (lambda m, a: m.update(feature_names_in_=["a"]), "feature_names"),
        (lambda m, a: a.pop("intercept.npy"), "'intercept' is missing"),
        (lambda m, a: a["kernel.npy"].fill(np.inf), "'kernel' is not finite"),
        (
            lambda m, a: a.update({"projections_V.npy": np.zeros((9, 2))}),
            "do not fit 4 inputs and 4 outputs",
        ),
        (
            lambda m, a: a.update({"projections_u.npy": np.array([print], object)}),
            "cannot be read",
        ),
        (lambda m, a: m["reservoir_"]["gain"].update(kind="eval"), "cannot be read"),
    ],
)
def test_hostile_files(whole, tmp_path, change, match):
    path = tmp_path / "it"
    path.write_bytes(changed(whole, lambda m, a: None))
    load(path)
    path.write_bytes(changed(whole, change))
    with pytest.raises(ModelFileError, match=match):
        load(path)
