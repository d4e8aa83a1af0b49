"""Shared fixtures: small networks, stimuli, and a judge for slopes.

Marks: ``needs("torch")`` skips a test where an optional part is missing (`tests.parts`);
`contract` and `slow` keep it out of `make test`. ``--remaining`` runs what the last run
left: whatever did not pass there, for lack of a part or of a mark.
"""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

import numpy as np
import pytest

from greenfold import Gain, Reservoir

from . import parts

#: Array libraries beside NumPy, to run a test once with each.
LIBRARIES = ["array_api_strict", pytest.param("torch", marks=pytest.mark.needs("torch"))]
#: Fixtures that hand out real data.
OF_REAL_DATA = {"data_dir", "real_data"}
#: Where pytest's cache keeps the names of the tests that passed.
PASSED = "greenfold/passed"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--remaining",
        action="store_true",
        help="leave out what passed in the last run without this option",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Skip what needs a part that is not here."""
    if OF_REAL_DATA.intersection(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.needs("data"))
    for mark in item.iter_markers("needs"):
        for part in filter(parts.is_missing, mark.args):
            item.add_marker(pytest.mark.skip(reason=parts.reason(part)))
            return


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--remaining``, leave out what is on record as passed, and nothing else."""
    cache = getattr(config, "cache", None)
    if cache is None or not config.getoption("remaining"):
        return
    passed = set(cache.get(PASSED, []))
    config.hook.pytest_deselected(items=[one for one in items if one.nodeid in passed])
    items[:] = [one for one in items if one.nodeid not in passed]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what all the skipped tests need; record what passed."""
    config, stats = terminalreporter.config, terminalreporter.stats
    cache = getattr(config, "cache", None)
    if cache is not None and not config.getoption("remaining"):
        # A test is in both where its teardown failed.
        passed, failed = (
            {one.nodeid for one in stats.get(kind, [])} for kind in ("passed", "error")
        )
        cache.set(PASSED, sorted(passed - failed))
    skipped = [report.longrepr for report in stats.get("skipped", [])]
    reasons = [
        one[2].removeprefix("Skipped: ") for one in skipped if isinstance(one, tuple)
    ]
    if line := parts.summary(reasons):
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture
def rng():
    return np.random.default_rng(20201)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real data; tests that ask for it are skipped where it is not given."""
    return Path(os.environ["GREENFOLD_DATA"])


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What numba compiles is in its cache: made by one worker, the others wait for it.

    Tests ask for it that use the pooled estimators. On a machine that has compiled before
    it takes no time.
    """
    if importlib.util.find_spec("numba") is None:
        return
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    done = folder / "compiled"
    try:
        (folder / "compiling").touch(exist_ok=False)
    except FileExistsError:
        end = time.monotonic() + 120
        while not done.exists() and time.monotonic() < end:
            time.sleep(0.2)
        return
    from greenfold import PooledReservoirClassifier, ReservoirFeatures

    X, y = np.random.default_rng(0).standard_normal((4, 10)), [0, 1, 0, 1]
    small = {"n_scales": 1, "n_oscillators": 2, "n_readouts": 16, "engine": "numba"}
    PooledReservoirClassifier(**small).fit(X, y).predict(X)
    ReservoirFeatures(**small).fit_transform(X)
    done.touch()


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
    """Raise Ctrl-C in the call of ``owner.name`` after some calls; returns the calls."""
    original, calls = getattr(owner, name), []

    def method(*arguments, **options):
        calls.append(None)
        if len(calls) > after:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, method)
    return calls
