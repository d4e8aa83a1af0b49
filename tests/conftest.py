"""Shared fixtures: small networks, stimuli, and a judge for slopes."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from greenfold import Gain, Reservoir

#: Array libraries beside NumPy, to run a test once with each.
LIBRARIES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            importlib.util.find_spec(name) is None, reason=f"{name} is not installed"
        ),
    )
    for name in ("array_api_strict", "torch")
]


@pytest.fixture
def rng():
    return np.random.default_rng(20201)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real data; tests that need it are skipped where it is not given."""
    folder = os.environ.get("GREENFOLD_DATA")
    if not folder:
        pytest.skip("GREENFOLD_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def ecg_like():
    """Twelve smooth beats of 140 steps: a sharp wave on a slow one, jittered."""
    rng = np.random.default_rng(7)
    time = np.linspace(0, 1, 140)
    beats = []
    for _ in range(12):
        centre, width, height = rng.normal([0.3, 0.03, 1.0], [0.03, 0.003, 0.2])
        spike = height * np.exp(-(((time - centre) / width) ** 2))
        wave = 0.4 * np.exp(-(((time - 0.65 - 0.03 * rng.standard_normal()) / 0.1) ** 2))
        beats.append(spike + wave + 0.02 * rng.standard_normal(140))
    return np.array(beats)


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """A random array of unit Frobenius norm."""
    vector = rng.standard_normal(shape)
    return vector / np.linalg.norm(vector)


def slope(x, y) -> float:
    """Slope of log y against log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def small(
    gain: Gain | None = None, n: int = 12, g: float = 0.8, seed: int = 3
) -> Reservoir:
    """A small network of spectral radius ``g``, whatever the draw."""
    weights = np.random.default_rng(seed).standard_normal((n, n))
    weights *= g / np.abs(np.linalg.eigvals(weights)).max()
    return Reservoir(weights, 0.25, gain or Gain.linear())


def interrupt(monkeypatch, owner, name: str, after: int) -> list[None]:
    """Raise Ctrl-C in the call of ``owner.name`` after so many; returns the calls."""
    original, calls = getattr(owner, name), []

    def method(*arguments, **options):
        calls.append(None)
        if len(calls) > after:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, method)
    return calls
