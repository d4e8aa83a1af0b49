"""`greenfold fit`: the model it writes, and its files after an interruption."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from greenfold.cli.inputs import _hold_out
from greenfold.saving import load

from .conftest import ENVIRONMENT, SMALL, invoke, without_figures


def test_fit_prints_the_certificate_and_repeats_itself(beats):
    first = invoke("fit", beats, "--model", "a.gfm", "--seed", 5, *SMALL).stdout
    assert "upper bound" in first
    assert "test accuracy" in first
    assert "with random u" in first
    assert "training accuracy" not in first
    invoke("fit", beats, "--model", "b.gfm", "--seed", 5, *SMALL)
    invoke("fit", beats, "--model", "c.gfm", "--seed", 6, *SMALL)
    a, b, c = (load(f"{name}.gfm").u_ for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


def test_accuracies_are_held_out_and_the_model_has_seen_everything(beats):
    options = ("--eta", 10, "--neurons", 6, "--json")
    told = json.loads(invoke("fit", beats, "--model", "m.gfm", *options).stdout)
    assert (told["n_train"], told["n_test"]) == (44, 16)
    assert told["random"]["n_draws"] == len(told["random"]["accuracy"]) == 5
    model = load("m.gfm")
    with np.load(beats) as data:
        X, y = data["X"], data["y"]
    judge: Any = clone(model)
    np.testing.assert_array_equal(model.u_, judge.fit(X, y).u_)
    assert told["final"]["soft_margin"] == model.soft_margin_
    # The accuracy and κ are those of a fit without the held-out series.
    train, held = _hold_out(y, 0.25, seed=0)
    judge.fit(X[train], y[train])
    assert told["accuracy"] == judge.score(X[held], y[held])
    assert told["soft_margin"] == judge.soft_margin_
    shown = invoke("fit", beats, "--model", "m.gfm", *options[:-1]).stdout
    assert f"soft margin κ         {judge.soft_margin_:.5g}\n" in shown
    assert f"fitted to all 60 series: κ {model.soft_margin_:.4g}" in shown


def test_the_page_compares_the_median_of_the_random_u(beats, monkeypatch):
    pages = without_figures(monkeypatch)
    given = "fit", beats, "--neurons", 6, "--noise", 0.3, "--report", "page.html"
    told = json.loads(invoke(*given, "--json").stdout)
    ((drawn, solved),) = pages
    assert solved.soft_margin == told["soft_margin"]
    assert drawn.projection == "random"
    # The draw with the median accuracy under noise, here at the η of the fit.
    u = drawn.classifier.input_projection
    rng = np.random.default_rng([0, 5])
    draws = rng.standard_normal((5, *u.shape))
    order = np.argsort(told["random"]["accuracy_under_noise"])
    same = [i for i in range(5) if np.array_equal(draws[i], u)]
    accuracies = np.array(told["random"]["accuracy_under_noise"])
    assert accuracies[same[0]] == accuracies[order[2]]


def test_series_that_do_not_differ_prove_nothing():
    np.savez("same.npz", X=np.tile(np.arange(8.0), (20, 1)), y=np.arange(20) % 2)
    for command in ("fit", "evaluate"):
        done = invoke(command, "same.npz", "--neurons", 5, "--eta", 10)
        assert "κ is 0: the classes do not differ" in done.stdout
        assert "proven" not in done.stdout


def test_nothing_is_said_of_accuracy_if_nothing_is_held_out(beats):
    shown = invoke("fit", beats, "--holdout", 0, *SMALL).stdout
    assert "accuracy " not in shown.replace("there is no accuracy", "")
    assert "give some with --test" in shown
    told = json.loads(invoke("fit", beats, "--holdout", 0, *SMALL, "--json").stdout)
    assert told["accuracy"] is None
    assert told["random"] is None


def test_too_few_series_to_hold_out_are_all_used():
    waves = np.sin(np.outer([1, 2], np.arange(9))).tolist()
    lines = [
        ",".join(map(str, [name, *wave])) for name, wave in zip("ab", waves, strict=True)
    ]
    Path("two.csv").write_text("\n".join(lines))
    options = ("--neurons", 4, "--eta", 10)
    assert "there is no accuracy" in invoke("fit", "two.csv", *options).stdout
    given = invoke("fit", "two.csv", "--holdout", 0.3, *options, code=1).stderr
    assert "too few series to hold any out" in given


def test_fit_with_one_input_for_all_classes(monkeypatch):
    without_figures(monkeypatch)
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
    # Random u have the η of the fit in the table, and one of their own in the remark.
    assert "Random u, each with an η of its own: accuracy" in Path("page.html").read_text(
        "utf-8"
    )


#: Runs the command line with one function replaced; the new one tells when it is called.
WATCHED = """
import sys, time
import greenfold._base.files as files
from greenfold.optimizers import ascent, convex
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


def test_interrupt_ends_with_130_and_writes_nothing(beats, monkeypatch):
    """As below, with the signal from inside."""
    from greenfold.optimizers import ascent

    ascend, calls = ascent.ascend, []

    def pressed(*arguments, **options):
        calls.append(None)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return ascend(*arguments, **options)

    monkeypatch.setattr(ascent, "ascend", pressed)
    command = ("fit", beats, "--order", 1, "--model", "m.gfm", *SMALL)
    done = invoke(*command, code=130)
    assert len(calls) == 2
    assert done.stdout == ""
    assert done.stderr == "greenfold: interrupted.\n"
    assert not Path("m.gfm").exists()


@pytest.mark.contract
def test_interrupt_of_a_process(beats):
    # From its second start on, `optimize` answers Ctrl-C with the best result so far and
    # goes on; the command must end all the same.
    with watched(
        "watch(ascent, 'ascend', 5.0, call=2)",
        *("fit", beats, "--order", 1, "--model", "m.gfm", *SMALL),
    ) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err == "greenfold: interrupted.\n"
    assert not Path("m.gfm").exists()


def test_an_interrupt_while_the_model_is_written(beats, model, monkeypatch):
    from greenfold._base import files as _files

    def pressed(*_):
        signal.raise_signal(signal.SIGINT)

    before = Path(model).read_bytes()
    monkeypatch.setattr(_files.os, "replace", pressed)
    invoke("fit", beats, "--model", model, "--seed", 2, *SMALL, code=130)
    assert Path(model).read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["beats.npz", model]


@pytest.mark.contract
def test_kill_while_the_model_is_written(beats, model):
    before = Path(model).read_bytes()
    command = ("fit", beats, "--model", model, "--seed", 2, *SMALL)
    with watched("watch(files.os, 'replace', 60)", *command) as process:
        process.kill()
    assert Path(model).read_bytes() == before
    assert load(model).random_state == 0


@pytest.mark.contract
def test_kill_at_any_time(beats, model):
    command = ("fit", beats, "--model", model, "--seed", 2, *SMALL)
    with watched("watch(convex.Convex, 'solve', 0)", *command, "--certify") as process:
        try:
            process.wait(0.03)
        except subprocess.TimeoutExpired:
            process.kill()
    assert load(model).random_state in (0, 2)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("command", ["fit", "evaluate", "sweep"])
def test_a_device_that_does_not_exist_is_one_sentence(command, beats):
    given = ("-e", "ReservoirClassifier", "Coffee") if command == "sweep" else (beats,)
    found = invoke(command, *given, "--device", "tpu", code=1)
    assert "--device must be 'cpu', 'cuda' or" in " ".join(found.stderr.split())
