"""`greenfold fit`: the model it writes, and what is left when it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from greenfold.saving import load

from .conftest import ENVIRONMENT, SMALL, invoke


def test_fit_prints_the_certificate_and_repeats_itself(beats):
    first = invoke("fit", beats, "--model", "a.gfm", "--seed", 5, *SMALL).stdout
    assert "upper bound" in first
    assert "training accuracy" in first
    invoke("fit", beats, "--model", "b.gfm", "--seed", 5, *SMALL)
    invoke("fit", beats, "--model", "c.gfm", "--seed", 6, *SMALL)
    a, b, c = (load(f"{name}.gfm").u_ for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


def test_fit_with_one_input_for_all_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = rng.standard_normal((3, 12))[y] + 0.5 * rng.standard_normal((30, 12))
    np.savez("three.npz", X=X, y=y)
    options = ("--projection", "shared", "--model", "a.gfm", "--neurons", 8, "--eta", 10)
    shown = invoke("fit", "three.npz", *options, "--report", "page.html").stdout
    assert "shared" in shown
    assert "upper bound" in shown
    model = load("a.gfm")
    assert model.u_.shape == (8,)
    assert model.shared_bound_ is not None
    assert Path("page.html").stat().st_size > 0


#: Runs the command line with one function replaced; the new one tells when it is called.
WATCHED = """
import sys, time
import greenfold._base.files as files
from greenfold.optimizers import convex, methods
from greenfold.cli import main

def watch(module, name, pause, call=1):
    real, calls = getattr(module, name), []
    def told(*arguments, **options):
        calls.append(name)
        if len(calls) == call:
            print("begun", flush=True)
            time.sleep(pause)
        return real(*arguments, **options)
    setattr(module, name, told)

{watch}
main(sys.argv[1:])
"""


def watched(watch: str, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-c", WATCHED.format(watch=watch), *map(str, arguments)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    return process


def test_interrupt_ends_with_130_and_writes_nothing(beats):
    # From its second start on, `optimize` answers Ctrl-C with the best result so far and
    # goes on; the command must end all the same.
    with watched(
        "watch(methods, 'ascend', 5.0, call=2)",
        *("fit", beats, "--order", 1, "--model", "m.gfm", *SMALL),
    ) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err == "greenfold: interrupted.\n"
    assert not Path("m.gfm").exists()


def test_kill_while_the_model_is_written(beats):
    invoke("fit", beats, "--model", "m.gfm", "--seed", 1, *SMALL)
    before = Path("m.gfm").read_bytes()
    command = ("fit", beats, "--model", "m.gfm", "--seed", 2, *SMALL)
    with watched("watch(files.os, 'replace', 60)", *command) as process:
        process.kill()
    assert Path("m.gfm").read_bytes() == before
    assert load("m.gfm").random_state == 1


def test_kill_at_any_time(beats):
    invoke("fit", beats, "--model", "m.gfm", "--seed", 1, *SMALL)
    command = ("fit", beats, "--model", "m.gfm", "--seed", 2, *SMALL)
    with watched("watch(convex, 'solve', 0)", *command, "--certify") as process:
        try:
            process.wait(0.03)
        except subprocess.TimeoutExpired:
            process.kill()
    assert load("m.gfm").random_state in (1, 2)


@pytest.mark.parametrize("command", ["fit", "evaluate", "sweep"])
def test_a_device_that_does_not_exist_is_one_sentence(command, beats):
    pytest.importorskip("torch")
    given = ("-e", "ReservoirClassifier", "Coffee") if command == "sweep" else (beats,)
    found = invoke(command, *given, "--device", "tpu", code=1)
    assert "`device` must be 'cpu', 'cuda' or" in " ".join(found.stderr.split())
