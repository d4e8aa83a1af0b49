"""A small archive, estimators written for the tests, and a folder for results."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from greenfold.apps.sweep import read_accuracy

OWN = '''
import os
import signal
import time
import numpy as np


class Nearest:
    """The class of the nearest mean, shares by distance."""

    def __init__(self, seconds=0.0, fault=None, random_state=None):
        self.seconds, self.fault, self.random_state = seconds, fault, random_state

    def get_params(self, deep=True):
        return {k: getattr(self, k) for k in ("seconds", "fault", "random_state")}

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.fault == "interrupt" and not os.path.exists("pressed"):
            open("pressed", "w").close()
            signal.raise_signal(signal.SIGINT)
        if self.fault == "raise":
            raise RuntimeError("it does not converge")
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict_proba(self, X):
        apart = ((X[:, None] - self.means_) ** 2).sum(axis=2)
        shares = 1 / (1e-9 + apart)
        shares /= shares.sum(axis=1, keepdims=True)
        if self.fault == "nan":
            shares[1] = np.nan
        if self.fault == "shape":
            shares = shares[:, :-1]
        if self.fault == "sum":
            shares *= 1.5
        return shares


class LabelsOnly(Nearest):
    """The same without probabilities."""

    def predict(self, X):
        return self.classes_[Nearest.predict_proba(self, X).argmax(axis=1)]

    @property
    def predict_proba(self):
        raise AttributeError("predict_proba")
'''


class Result(NamedTuple):
    """What a result file holds, except its times."""

    about: list[str]
    parameters: str
    accuracy: float
    labels: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray


def read_result(path: Path) -> Result:
    accuracy = read_accuracy(path)
    lines = path.read_text().splitlines()
    numbers = np.array([line.replace(",,", ",").split(",") for line in lines[3:]], float)
    about = lines[0].split(",")[:4]
    labels, found = numbers[:, :2].astype(int).T
    return Result(about, lines[1], accuracy, labels, found, numbers[:, 2:])


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data and no cache of this machine."""
    monkeypatch.delenv("GREENFOLD_DATA", raising=False)
    monkeypatch.setenv("GREENFOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def write_set(folder: Path, name: str, n_classes: int = 2, seed: int = 0) -> None:
    """A set of noisy waves, eight steps, `n_classes` frequencies."""
    rng = np.random.default_rng(seed)
    (folder / name).mkdir(parents=True)
    for split, each in (("TRAIN", 3), ("TEST", 4)):
        lines = []
        for label in np.repeat(np.arange(1, n_classes + 1), each):
            wave = np.sin(label * np.arange(8) / 3) + 0.5 * rng.standard_normal(8)
            lines.append("\t".join([str(label), *(f"{value:.6f}" for value in wave)]))
        (folder / name / f"{name}_{split}.tsv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Three sets, one with more than nine classes."""
    folder = tmp_path / "data"
    for seed, (name, n) in enumerate((("One", 2), ("Three", 12), ("Two", 3))):
        write_set(folder / "ucr", name, n, seed)
    return folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File of a module of estimators that every process can import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_estimators.py").write_text(OWN)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    sys.modules.pop("own_estimators", None)
    importlib.invalidate_caches()
    from greenfold.apps import sweep

    sweep._code_of.cache_clear()
    return folder / "own_estimators.py"
