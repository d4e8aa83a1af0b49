"""`greenfold sweep` on the command line, stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from greenfold.apps.sweep import read_accuracy

from ...cli import conftest as commands

OWN = "own_estimators:Nearest"


def invoke(*arguments: object, code: int = 0):
    return commands.invoke("sweep", *arguments, code=code)


def spawn(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "greenfold", "sweep", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def results(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/Predictions/*/testResample*.csv"))


def wait_for(folder: Path, count: int, process: subprocess.Popen) -> None:
    while len(results(folder)) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_a_sweep_and_its_comparison(archive, own, tmp_path):
    said = invoke(
        "-e", OWN, "-e", "nb=sklearn.naive_bayes:GaussianNB", "--data-dir", archive, "-j1"
    )
    assert "6 results written, 0 reused, in results." in said.stdout
    # The accuracies are said without a comparison too.
    assert said.stdout.count("Nearest") == said.stdout.count("nb ") == 3
    again = json.loads(invoke("-e", OWN, "--data-dir", archive, "-j1", "--json").stdout)
    assert len(again["accuracy"]["Nearest"]) == 3
    said = invoke("--compare", "--published", "none", "--figures", "none", "--json")
    made = json.loads(said.stdout)["comparison"]
    assert made["estimators"] == ["Nearest", "nb"]
    assert made["n_datasets"] == 3
    assert (tmp_path / "results" / "comparison" / "accuracy.csv").is_file()
    record = (tmp_path / "results" / "comparison" / "comparison.json").read_text()
    assert json.loads(record)["mean_rank"] == made["mean_rank"]
    table = invoke("--compare", "--published", "none", "--figures", "none").stdout
    assert "3 data sets, the provided split" in table


def test_what_figures_need_is_asked_for_before_the_work(archive, own, monkeypatch):
    monkeypatch.setitem(sys.modules, "seaborn", None)
    said = invoke("-e", OWN, "--compare", "--data-dir", archive, "-j1", code=1)
    assert "greenfold[sweep]" in said.stderr
    assert not Path("results").exists()


def test_a_comparison_where_all_have_failed_says_why(archive, own):
    asked = ["-e", f"bad={OWN}(fault='raise')", "One", "--data-dir", archive, "-j1"]
    asked += ["--compare", "--published", "none", "--figures", "none"]
    record = json.loads(invoke(*asked, "--json", code=1).stdout)
    assert "it does not" in record["failures"][0]["error"]
    assert "RuntimeError: it does not" in invoke(*asked, code=1).stdout


def test_failures_are_told_and_give_one(archive, own):
    bad = f"bad={OWN}(fault='raise')"
    said = invoke("-e", OWN, "-e", bad, "One", "--data-dir", archive, "-j1", code=1)
    assert "1 results written" in said.stdout
    assert "bad/Predictions/One/testResample0.csv: RuntimeError: it does not" in said.stdout
    record = json.loads(
        invoke("-e", bad, "One", "--data-dir", archive, "-j1", "--json", code=1).stdout
    )
    assert record["failures"][0]["error"] == "RuntimeError: it does not converge."


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["-e", "no_such_module:Nearst", "One"], "no_such_module"),
        (["-e", OWN, "Onne"], "did you mean 'One'"),
        (["-e", OWN, "One", "--out", "file/below"], "cannot be used"),
        (["--compare", "--figures", "none"], "holds no results"),
        (["-e", f"{OWN}(colour=1)", "One"], "does not take these parameters"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(archive, own, tmp_path, arguments, part):
    (tmp_path / "file").write_text("")
    said = invoke(*arguments, "--data-dir", archive, code=1)
    assert said.stderr.startswith("greenfold: ")
    assert said.stderr.count("\n") == 1
    assert part in said.stderr
    assert said.stdout == ""


def test_an_interrupted_sweep_goes_on(archive, own, tmp_path):
    """Ctrl-C in the second estimator, once; in processes of their own: below."""
    arguments = ["-e", f"a={OWN}", "-e", f"b={OWN}(fault='interrupt')", "-e", f"c={OWN}"]
    arguments += ["--data-dir", archive, "-j", "1"]
    said = invoke(*arguments, code=130).stderr
    kept = results(tmp_path / "results")
    assert 0 < len(kept) < 9
    assert f"{len(kept)} of 9 results are written" in said
    moments = [path.stat().st_mtime_ns for path in kept]
    done = json.loads(invoke(*arguments, "--json").stdout)
    assert (done["found"], done["made"]) == (len(kept), 9 - len(kept))
    assert [path.stat().st_mtime_ns for path in kept] == moments
    for path in results(tmp_path / "results"):
        read_accuracy(path)


@pytest.mark.contract
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", ["interrupt", "kill"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stopped_sweep_goes_on(archive, own, tmp_path, how, jobs):
    arguments = ["-e", f"{OWN}(seconds=0.2)", "--data-dir", archive, "-r", "1"]
    arguments += ["-e", f"b={OWN}(seconds=0.2)", "-e", f"c={OWN}(seconds=0.2)", "-j", jobs]
    run = spawn(*arguments)
    wait_for(tmp_path / "results", 3, run)
    if how == "interrupt":
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    else:
        run.kill()
    _, errors = run.communicate(timeout=60)
    kept = results(tmp_path / "results")
    assert 3 <= len(kept) < 9
    if how == "interrupt":
        assert run.returncode == 130
        assert f"{len(kept)} of 9 results are written" in errors
        assert "Traceback" not in errors
    moments = [path.stat().st_mtime_ns for path in kept]
    done = json.loads(invoke(*arguments, "-j", "1", "--json").stdout)
    assert (done["found"], done["made"]) == (len(kept), 9 - len(kept))
    assert [path.stat().st_mtime_ns for path in kept] == moments
    for path in results(tmp_path / "results"):
        read_accuracy(path)


@pytest.mark.contract
@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_two_sweeps_on_one_folder_share_the_work(archive, own, tmp_path):
    arguments = ["--data-dir", archive, "-j", "1", "--json"]
    for name in "abc":
        arguments += ["-e", f"{name}={OWN}(seconds=0.3)"]
    runs = [spawn(*arguments) for _ in range(2)]
    records = []
    for run in runs:
        printed, errors = run.communicate(timeout=120)
        assert run.returncode == 0, errors
        records.append(json.loads(printed))
    assert sum(record["made"] for record in records) == 9
    assert len(results(tmp_path / "results")) == 9
    assert not list((tmp_path / "results").glob(".*"))
