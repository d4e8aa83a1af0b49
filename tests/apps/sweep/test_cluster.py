"""A sweep on a real dask cluster that loses a worker, then its scheduler."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from greenfold.apps.runner import Workers
from greenfold.apps.sweep import sweep

from ...clusters import Cluster
from .conftest import read_result, write_set

ONE = Workers(1)

pytestmark = [pytest.mark.contract, pytest.mark.needs("distributed")]

ESTIMATORS = ["own_estimators:Nearest(seconds=0.25)", "other=own_estimators:Nearest"]
N_RESULTS = 8 * 2


@pytest.fixture
def clusters(tmp_path):
    made = []

    def start(n_workers: int = 2) -> Cluster:
        made.append(Cluster(tmp_path, n_workers))
        return made[-1]

    yield start
    for cluster in made:
        cluster.close()


def start_sweep(archive: Path, out: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "greenfold", "sweep", "--data-dir", str(archive)]
    for name in ESTIMATORS:
        command += ["-e", name]
    return subprocess.Popen(
        [*command, "--out", str(out), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(out: Path) -> set[str]:
    found = out.glob("*/Predictions/*/testResample*.csv")
    return {str(path.relative_to(out)) for path in found}


def wait_for(out: Path, count: int, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while len(finished(out)) < count:
        assert time.monotonic() < limit, f"{len(finished(out))} of {count} results"
        time.sleep(0.02)


def predicted(out: Path) -> dict[str, tuple[bytes, ...]]:
    """Everything in a result except its time."""
    found = {name: read_result(out / name) for name in finished(out)}
    return {
        name: (
            repr(one.about).encode(),
            one.parameters.encode(),
            one.labels.tobytes(),
            one.predictions.tobytes(),
            one.probabilities.tobytes(),
        )
        for name, one in found.items()
    }


def test_a_lost_worker_and_a_lost_scheduler_change_nothing(
    archive, own, clusters, tmp_path
):
    for seed in range(5):  # beside the three there are
        write_set(archive, f"More{seed}", seed=10 + seed)
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    cluster = clusters()
    run = start_sweep(archive, broken, "--dask", cluster.address)
    wait_for(broken, 3)
    cluster.kill_worker()
    wait_for(broken, 6)
    cluster.kill()
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert errors.startswith("greenfold: The dask scheduler at")
    assert errors.count("\n") == 1, errors
    before = {name: (broken / name).stat().st_mtime_ns for name in finished(broken)}
    assert 6 <= len(before) < N_RESULTS

    again = start_sweep(archive, broken, "--dask", clusters(1).address)
    printed, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert f"{N_RESULTS - len(before)} results written, {len(before)} reused" in printed
    # What was there was not touched.
    assert all((broken / n).stat().st_mtime_ns == moment for n, moment in before.items())

    assert sweep(ESTIMATORS, [], 1, whole, data_dir=archive, workers=ONE).made == N_RESULTS
    assert predicted(broken) == predicted(whole)
    assert not list(broken.rglob(".partial-*"))
    assert not (broken / "failures").exists()
