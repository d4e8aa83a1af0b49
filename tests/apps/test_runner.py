"""Jobs begin, end, fail and resume; files tell what made them and if they are complete."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenfold.apps import runner
from greenfold.apps.runner import (
    SEAL,
    ClusterLostError,
    Job,
    State,
    Store,
    Workers,
    run_jobs,
    run_map,
    source_digest,
)

TOYS = """
import os, signal, time
from greenfold.apps.runner import SEAL

def work(configuration, context):
    number = configuration["number"]
    with open(os.path.join(context["log"], "calls"), "a") as log:
        log.write(f"{number}\\n")
    kind = configuration.get("kind")
    if kind == "raise":
        raise ValueError("the number is bad")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "die":
        os._exit(9)
    if kind == "interrupt" and not os.path.exists(os.path.join(context["log"], "once")):
        open(os.path.join(context["log"], "once"), "w").close()
        signal.raise_signal(signal.SIGINT)
    if kind == "print":
        print("noise")
    time.sleep(configuration.get("seconds", 0))
    return f"{number},{SEAL}\\n{number**2}\\n"
"""


class Toys:
    def __init__(self, folder: Path, work) -> None:
        self.log, self._work = folder, work

    def job(self, number: int, **more) -> Job:
        context = {"log": str(self.log)}
        return Job(f"r/{number}.csv", self._work, {"number": number, **more}, context)

    @property
    def calls(self) -> list[int]:
        path = self.log / "calls"
        return sorted(map(int, path.read_text().split())) if path.exists() else []


@pytest.fixture
def toys(tmp_path, monkeypatch) -> Toys:
    folder = tmp_path / "toys"
    folder.mkdir()
    (folder / "toy_work.py").write_text(TOYS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    sys.modules.pop("toy_work", None)
    return Toys(folder, importlib.import_module("toy_work").work)


def values(folder) -> dict[str, str]:
    return {p.name: p.read_text().splitlines()[1] for p in folder.glob("r/*.csv")}


#: In this process, and in two of their own: of those the first test below that needs them
#: is in every run, the others differ from it in nothing but the jobs.
PLACES = [1, pytest.param(2, marks=pytest.mark.contract)]


@pytest.mark.parametrize("n_jobs", PLACES)
def test_finished_jobs_are_kept_and_stale_ones_redone(tmp_path, toys, n_jobs):
    out = tmp_path / "out"
    jobs = [toys.job(i) for i in range(4)]
    done = run_jobs(jobs, out, Workers(n_jobs))
    assert (done.total, done.made, done.found) == (4, 4, 0)
    assert values(out) == {f"{i}.csv": str(i**2) for i in range(4)}
    again = run_jobs([*jobs[:3], toys.job(3, seed=1), toys.job(4)], out, Workers(n_jobs))
    assert (again.found, again.made, again.redone) == (3, 2, 1)
    assert toys.calls == [0, 1, 2, 3, 3, 4]
    assert not list(out.glob(".claims"))


def test_redo_computes_everything(tmp_path, toys):
    jobs = [toys.job(i) for i in range(2)]
    run_jobs(jobs, tmp_path, Workers(1))
    assert run_jobs(jobs, tmp_path, Workers(1, redo=True)).made == 2
    assert toys.calls == [0, 0, 1, 1]


@pytest.mark.parametrize("n_jobs", PLACES)
def test_failures_are_recorded_and_the_rest_goes_on(tmp_path, toys, n_jobs):
    jobs = [toys.job(0), toys.job(1, kind="raise"), toys.job(2, kind="exit"), toys.job(3)]
    done = run_jobs(jobs, tmp_path, Workers(n_jobs))
    assert done.made == 2
    assert sorted((f.path, f.error) for f in done.failures) == [
        ("r/1.csv", "ValueError: the number is bad."),
        ("r/2.csv", "SystemExit: 3."),
    ]
    assert all("toy_work.py" in f.traceback for f in done.failures)
    # Tried again by the next run.
    assert run_jobs(jobs, tmp_path, Workers(n_jobs)).found == 2
    assert toys.calls == [0, 1, 1, 2, 2, 3]


@pytest.mark.contract
def test_a_process_that_dies_fails_alone(tmp_path, toys):
    kinds = {1: "raise", 2: "die"}
    jobs = [toys.job(i, kind=kinds.get(i), seconds=0.05) for i in range(6)]
    done = run_jobs(jobs, tmp_path, Workers(2))
    assert done.made == 4
    errors = {f.path: f.error for f in done.failures}
    assert sorted(errors) == ["r/1.csv", "r/2.csv"]
    assert errors["r/1.csv"] == "ValueError: the number is bad."
    assert "died" in errors["r/2.csv"]
    assert values(tmp_path) == {f"{i}.csv": str(i**2) for i in (0, 3, 4, 5)}


def test_ctrl_c_keeps_what_is_finished(tmp_path, toys):
    jobs = [toys.job(i, kind="interrupt" if i == 2 else None) for i in range(4)]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, tmp_path, Workers(1))
    assert len(values(tmp_path)) == 2
    assert run_jobs(jobs, tmp_path, Workers(1)).made == 2
    assert toys.calls == [0, 1, 2, 2, 3]


def test_what_is_printed_stays_out_of_the_output(tmp_path, toys, capsys):
    run_jobs([toys.job(0, kind="print")], tmp_path, Workers(1))
    assert capsys.readouterr().out == ""


HOLD = """
import sys, time
from pathlib import Path
from greenfold.apps.runner import _claim
release = _claim(Path(sys.argv[1]), sys.argv[2])
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="locks of Unix")
def test_another_run_keeps_its_job_until_it_dies(tmp_path, toys):
    jobs = [toys.job(i) for i in range(3)]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), "r/1.csv"],
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        done = run_jobs(jobs, tmp_path, Workers(1))
        assert (done.made, done.elsewhere) == (2, 1)
        other.kill()
    done = run_jobs(jobs, tmp_path, Workers(1))
    assert (done.found, done.made, done.elsewhere) == (2, 1, 0)
    assert toys.calls == [0, 1, 2]


def test_two_jobs_cannot_share_a_file(tmp_path, toys):
    with pytest.raises(ValueError, match="different paths"):
        run_jobs([toys.job(1), toys.job(1, seed=2)], tmp_path)


@pytest.mark.needs("distributed")
def test_no_scheduler_is_one_sentence(tmp_path, toys, monkeypatch):
    monkeypatch.setattr(runner, "_CONNECT", 0.2)
    with pytest.raises(ValueError, match="`dask` must be the address"):
        run_jobs([toys.job(0)], tmp_path, Workers(dask="nonsense"))
    with pytest.raises(ClusterLostError, match="No dask scheduler answers at `tcp://"):
        run_jobs([toys.job(0)], tmp_path, Workers(dask="tcp://127.0.0.1:9"))


TEXT = f"a,b,{SEAL},µ\n" + "\n".join(f"{i},{i / 7!r}" for i in range(9)) + "\n"


def nothing(configuration, context):
    raise AssertionError("not called")


def job(path="a/b.csv", **configuration) -> Job:
    return Job(path, nothing, configuration)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    store.write(job(x=1), TEXT)
    return store, store.target(job()).read_bytes()


def test_a_result_is_finished_for_its_configuration_alone(written):
    store, content = written
    assert store.state(job(x=1)) is State.FINISHED
    assert store.state(job(x=2)) is State.STALE
    assert store.state(job("a/c.csv", x=1)) is State.ABSENT
    assert content.decode().splitlines()[1:] == TEXT.splitlines()[1:]


@given(data=st.data())
def test_no_damaged_file_passes(written, tmp_path_factory, data):
    _, content = written
    place = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["cut", "flip", "grow"]))
    if kind == "cut":
        damaged = content[:place]
    elif kind == "flip":
        bit = data.draw(st.integers(0, 7))
        damaged = (
            content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
        )
    else:
        damaged = content + content[: place + 1]
    other = Store(tmp_path_factory.getbasetemp() / "damaged")
    other.target(job()).parent.mkdir(parents=True, exist_ok=True)
    other.target(job()).write_bytes(damaged)
    assert other.state(job(x=1)) is not State.FINISHED


def test_every_cut_is_redone(written, tmp_path):
    """Wherever a file is cut off, it is recognised as ours and not as a stranger's."""
    _, content = written
    other = Store(tmp_path)
    other.target(job()).parent.mkdir(parents=True)
    for length in range(len(content)):
        other.target(job()).write_bytes(content[:length])
        assert other.state(job(x=1)) is State.STALE, length


def test_a_file_of_somebody_else_is_foreign(tmp_path):
    store = Store(tmp_path)
    (tmp_path / "b.csv").write_text("Coffee,ROCKET,TEST,0\n1,2\n")
    assert store.state(job("b.csv")) is State.FOREIGN


@pytest.mark.parametrize("text", ["no seal\n", f"{SEAL}{SEAL}\n", f"late\n{SEAL}\n"])
def test_a_text_needs_one_seal_in_its_first_line(tmp_path, text):
    with pytest.raises(ValueError, match="`SEAL` once, in its first line"):
        Store(tmp_path).write(job(), text)


def test_json_has_room_for_a_seal(tmp_path):
    store = Store(tmp_path)
    store.write(job("x.json", n=3), json.dumps({"seal": SEAL, "values": [1, 2]}))
    assert store.state(job("x.json", n=3)) is State.FINISHED
    assert json.loads((tmp_path / "x.json").read_text())["values"] == [1, 2]


def test_a_failure_is_recorded_until_there_is_a_result(tmp_path):
    store = Store(tmp_path)
    store.write_failure(job(x=1), "It broke.", "line 3")
    written = tmp_path / "failures" / "a" / "b.csv.json"
    found = json.loads(written.read_text())
    assert (found["path"], found["error"]) == ("a/b.csv", "It broke.")
    store.write(job(x=1), TEXT)
    assert not written.exists()


def double(item):
    return {"value": np.array([2 * item, np.nan])}


DOUBLED = [{"value": [2 * i, None]} for i in range(4)]


def test_a_map_goes_on_where_it_was_interrupted(tmp_path):
    calls = []

    def work(item):
        calls.append(item)
        if item == 2 and len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return double(item)

    run = partial(run_map, work, range(4), tmp_path, {"seed": 1}, label="units")
    with pytest.raises(KeyboardInterrupt):
        run()
    assert len(list(tmp_path.iterdir())) == 2
    assert run() == DOUBLED
    assert calls == [0, 1, 2, 2, 3]
    # Another configuration is another result.
    run_map(work, range(4), tmp_path, {"seed": 2}, label="units")
    assert calls[5:] == [0, 1, 2, 3]


def test_an_interrupt_that_the_work_swallows_is_felt(tmp_path):
    def work(_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return "the best so far"

    with pytest.raises(KeyboardInterrupt):
        run_map(work, range(2), tmp_path, {}, label="units")
    assert not list(tmp_path.iterdir())


def test_a_damaged_checkpoint_is_computed_again(tmp_path):
    run = partial(run_map, double, range(4), tmp_path, {}, label="some units")
    run()
    (tmp_path / "some-units-0001.json").write_text('{"resu', encoding="utf-8")
    assert run() == DOUBLED
    (tmp_path / "some-units-0001.json").write_text("my own\nnotes", encoding="utf-8")
    with pytest.raises(
        FileExistsError, match="some-units-0001.json` was not written by greenfold"
    ):
        run()


def test_an_item_that_fails_is_named_once_the_others_are_done(tmp_path):
    def work(item):
        return 1 / item

    with pytest.raises(RuntimeError, match="units-0000.json: ZeroDivisionError") as caught:
        run_map(work, range(3), tmp_path, {}, label="units")
    assert "in work" in caught.value.__notes__[0]
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_warning_of_an_item_is_heard(tmp_path):
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        run_map(np.log, [0.0], tmp_path, {}, label="units")


def test_a_map_waits_for_what_another_run_computes_until_it_dies(tmp_path):
    pytest.importorskip("fcntl")
    command = [sys.executable, "-c", HOLD, str(tmp_path), "units-0001.json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        started = time.monotonic()
        timer = threading.Timer(1.0, other.kill)
        timer.start()
        assert run_map(double, range(4), tmp_path, {}, label="units") == DOUBLED
        assert time.monotonic() - started > 0.9
    assert not (tmp_path / ".claims").exists()


def test_what_another_run_has_tidied_up_is_computed_again(tmp_path, monkeypatch):
    runs = []

    def tidied(*jobs, **options):
        runs.append(run_jobs(*jobs, **options))
        if len(runs) == 1:
            (tmp_path / "units-0002.json").unlink()
        return runs[-1]

    monkeypatch.setattr(runner, "run_jobs", tidied)
    assert run_map(double, range(4), tmp_path, {}, label="units") == DOUBLED
    assert [run.made for run in runs] == [4, 1]


def test_sources_that_are_left_out_change_no_digest(tmp_path):
    (tmp_path / "apps").mkdir()
    (tmp_path / "math").mkdir()
    for name in ("apps/study.py", "math/sphere.py"):
        (tmp_path / name).write_text("1\n")
    before = source_digest(tmp_path, {"apps"})
    (tmp_path / "apps" / "study.py").write_text("2\n")
    assert source_digest(tmp_path, {"apps"}) == before
    assert source_digest(tmp_path) != before
    (tmp_path / "math" / "sphere.py").write_text("2\n")
    assert source_digest(tmp_path, {"apps"}) != before
