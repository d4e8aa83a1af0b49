"""`greenfold fit` on files that need not fit into memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from greenfold.cli import inputs
from greenfold.datasets import synthetic_heartbeats, write_npz

from .conftest import SMALL, invoke

pytestmark = [pytest.mark.needs("h5py"), pytest.mark.usefixtures("compiled")]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    import h5py

    X, y = synthetic_heartbeats(60, n_steps=24, rng=3)
    write_npz(tmp_path / "beats.npz", X, y)
    np.save(tmp_path / "beats.npy", X)
    np.save(tmp_path / "y.npy", y)
    with h5py.File(tmp_path / "beats.h5", "w") as file:
        file["X"], file["y"] = X, y
    with h5py.File(tmp_path / "bare.h5", "w") as file:
        file["X"] = X
    return tmp_path


@pytest.fixture(params=["read", "sliced"])
def large(request, monkeypatch) -> bool:
    """Whether the files count as too large for memory."""
    if request.param == "sliced":
        monkeypatch.setattr(inputs, "_IN_MEMORY", 1000)
    return request.param == "sliced"


def fitted(*arguments: object) -> dict:
    found = json.loads(invoke("fit", *arguments, "--json", *SMALL).stdout)
    return {k: v for k, v in found.items() if k not in ("data", "seconds", "model")}


def test_a_fit_is_that_of_the_same_series_in_an_archive(files, large):
    known = fitted("beats.npz", "--test", "beats.npz")
    for given in (["beats.h5"], ["bare.h5", "--y", "y.npy"], ["beats.npy", "--y", "y.npy"]):
        found = fitted(*given, "--test", "beats.npz")
        assert found["accuracy"] == known["accuracy"]
        # The quick ascent ends where a step gains less than 1e-6 of κ.
        assert found["soft_margin"] == pytest.approx(known["soft_margin"], rel=1e-5)
    assert fitted("beats.npz", "--test", "beats.h5")["n_test"] == 60
    # Series that are read in slices are not held out unless it is asked for.
    assert (fitted("beats.h5")["accuracy"] is None) == large
    invoke("fit", "beats.h5", "--classifier", "pooled", "--json")


def test_a_model_predicts_from_such_a_file(files, large):
    invoke("fit", "beats.h5", "--model", "a.gfm", *SMALL)
    known = json.loads(invoke("predict", "a.gfm", "beats.npz", "--json").stdout)
    found = json.loads(invoke("predict", "a.gfm", "beats.h5", "--json").stdout)
    assert found["predictions"] == known["predictions"]


def test_what_needs_the_series_in_memory_is_refused(files):
    import h5py

    assert "holds no labels `y`" in invoke("fit", "bare.h5", code=1).stderr
    # Chunks that were never written take no space in the file.
    with h5py.File("large.h5", "w") as file:
        file.create_dataset("X", (1_500_000, 24), "f8", chunks=(1000, 24))
        file["y"] = np.arange(1_500_000) % 2
    for option in (["--holdout", 0.5], ["--report", "a.html"]):
        said = " ".join(invoke("fit", "large.h5", *option, code=2).stderr.split())
        assert "needs the series in" in said, said
