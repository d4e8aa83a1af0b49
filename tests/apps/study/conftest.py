"""A small data directory, and no data of this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greenfold.datasets import synthetic_heartbeats, write_npz


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GREENFOLD_DATA", raising=False)
    monkeypatch.setenv("GREENFOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two sets of synthetic beats, one of them with a third class."""
    folder = tmp_path / "data"
    for name, third in (("Beats", False), ("Three", True)):
        (folder / "ucr" / name).mkdir(parents=True)
        X, y = synthetic_heartbeats(60, n_steps=16, rng=4)
        labels = np.where(y > 0, 1, 2)
        if third:
            labels[::5] = 3
        for part, rows in (("TRAIN", slice(40)), ("TEST", slice(40, None))):
            target = folder / "ucr" / name / f"{name}_{part}.npz"
            write_npz(target, X[rows], labels[rows])
    return folder
