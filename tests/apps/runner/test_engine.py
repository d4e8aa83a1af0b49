"""Jobs begin, end, fail and resume; nothing is done twice, nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from greenfold.apps.runner import ClusterLostError, pools, run_jobs


def values(folder) -> dict[str, str]:
    return {p.name: p.read_text().splitlines()[1] for p in folder.glob("r/*.csv")}


#: In this process, and in two of their own: of those the first test below that needs them
#: is in every run, the others differ from it in nothing but the jobs.
PLACES = [1, pytest.param(2, marks=pytest.mark.contract)]


@pytest.mark.parametrize("n_jobs", PLACES)
def test_finished_jobs_are_kept_and_stale_ones_redone(tmp_path, toys, n_jobs):
    out = tmp_path / "out"
    jobs = [toys.job(i) for i in range(4)]
    done = run_jobs(jobs, out, n_jobs=n_jobs)
    assert (done.total, done.made, done.found) == (4, 4, 0)
    assert values(out) == {f"{i}.csv": str(i**2) for i in range(4)}
    again = run_jobs([*jobs[:3], toys.job(3, seed=1), toys.job(4)], out, n_jobs=n_jobs)
    assert (again.found, again.made, again.redone) == (3, 2, 1)
    assert toys.calls == [0, 1, 2, 3, 3, 4]
    assert not list(out.glob(".claims"))


def test_redo_computes_everything(tmp_path, toys):
    jobs = [toys.job(i) for i in range(2)]
    run_jobs(jobs, tmp_path, n_jobs=1)
    assert run_jobs(jobs, tmp_path, n_jobs=1, redo=True).made == 2
    assert toys.calls == [0, 0, 1, 1]


@pytest.mark.parametrize("n_jobs", PLACES)
def test_failures_are_recorded_and_the_rest_goes_on(tmp_path, toys, n_jobs):
    jobs = [toys.job(0), toys.job(1, kind="raise"), toys.job(2, kind="exit"), toys.job(3)]
    done = run_jobs(jobs, tmp_path, n_jobs=n_jobs)
    assert done.made == 2
    assert sorted((f.path, f.error) for f in done.failures) == [
        ("r/1.csv", "ValueError: the number is bad."),
        ("r/2.csv", "SystemExit: 3."),
    ]
    assert all("toy_work.py" in f.traceback for f in done.failures)
    # Tried again by the next run.
    assert run_jobs(jobs, tmp_path, n_jobs=n_jobs).found == 2
    assert toys.calls == [0, 1, 1, 2, 2, 3]


def test_a_process_that_dies_fails_alone(tmp_path, toys):
    kinds = {1: "raise", 2: "die"}
    jobs = [toys.job(i, kind=kinds.get(i), seconds=0.05) for i in range(6)]
    done = run_jobs(jobs, tmp_path, n_jobs=2)
    assert done.made == 4
    errors = {f.path: f.error for f in done.failures}
    assert sorted(errors) == ["r/1.csv", "r/2.csv"]
    assert errors["r/1.csv"] == "ValueError: the number is bad."
    assert "died" in errors["r/2.csv"]
    assert values(tmp_path) == {f"{i}.csv": str(i**2) for i in (0, 3, 4, 5)}


def test_ctrl_c_keeps_what_is_finished(tmp_path, toys):
    jobs = [toys.job(i, kind="interrupt" if i == 2 else None) for i in range(4)]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, tmp_path, n_jobs=1)
    assert len(values(tmp_path)) == 2
    assert run_jobs(jobs, tmp_path, n_jobs=1).made == 2
    assert toys.calls == [0, 1, 2, 2, 3]


def test_what_is_printed_stays_out_of_the_output(tmp_path, toys, capsys):
    run_jobs([toys.job(0, kind="print")], tmp_path, n_jobs=1)
    assert capsys.readouterr().out == ""


HOLD = """
import sys, time
from pathlib import Path
from greenfold.apps.runner import claims
claim = claims.take(Path(sys.argv[1]), "r/1.csv")
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="locks of Unix")
def test_another_run_keeps_its_job_until_it_dies(tmp_path, toys):
    jobs = [toys.job(i) for i in range(3)]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        done = run_jobs(jobs, tmp_path, n_jobs=1)
        assert (done.made, done.elsewhere) == (2, 1)
        other.kill()
    done = run_jobs(jobs, tmp_path, n_jobs=1)
    assert (done.found, done.made, done.elsewhere) == (2, 1, 0)
    assert toys.calls == [0, 1, 2]


def test_two_jobs_cannot_share_a_file(tmp_path, toys):
    with pytest.raises(ValueError, match="different paths"):
        run_jobs([toys.job(1), toys.job(1, seed=2)], tmp_path)


@pytest.mark.needs("distributed")
def test_no_scheduler_is_one_sentence(tmp_path, toys, monkeypatch):
    monkeypatch.setattr(pools, "_CONNECT", 0.2)
    with pytest.raises(ValueError, match="`dask` must be the address"):
        run_jobs([toys.job(0)], tmp_path, dask="nonsense")
    with pytest.raises(ClusterLostError, match="No dask scheduler answers at `tcp://"):
        run_jobs([toys.job(0)], tmp_path, dask="tcp://127.0.0.1:9")
