"""`greenfold predict`: the classifier's own answers, or one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from greenfold import GaussianStimuli, optimize, unfold
from greenfold.datasets import synthetic_heartbeats, write_npz
from greenfold.saving import load

from ..conftest import small
from .conftest import SMALL, invoke, one_sentence, spawn


def test_fit_predict_round_trip(beats):
    fitted = json.loads(
        invoke("fit", beats, "--model", "m.gfm", "--holdout", 0.5, *SMALL, "--json").stdout
    )
    assert fitted["n_train"] + fitted["n_test"] == 60
    assert fitted["judged_on"] == "test"
    assert fitted["classes"] == ["ectopic", "normal"]
    told = json.loads(invoke("predict", "m.gfm", beats, "--proba", "--json").stdout)
    assert len(told["predictions"]) == 60
    np.testing.assert_allclose(np.sum(told["probabilities"], axis=1), 1)
    assert told["accuracy"] > 0.7
    lines = invoke("predict", "m.gfm", beats).stdout.splitlines()
    assert lines == told["predictions"]
    classifier = load("m.gfm")
    assert fitted["final"]["soft_margin"] == classifier.soft_margin_
    assert fitted["final"]["soft_margin_bound"] == classifier.soft_margin_bound_
    assert lines == classifier.predict(np.load(beats)["X"].reshape(60, 24)).tolist()


def test_a_saved_model_is_shown(beats, model):
    text = invoke("show", model).stdout
    for part in ("ReservoirClassifier", "['ectopic', 'normal']", "soft margin κ"):
        assert part in text
    told = json.loads(invoke("show", model, "--json").stdout)
    assert told["n_features_in"] == 24
    assert told["eta"] == load(model).eta_
    best = optimize(unfold(small(), n_steps=5, dt=0.2), GaussianStimuli.random(5, rng=0))
    best.save("best.gfm")
    assert "certified" in invoke("show", "best.gfm").stdout
    one_sentence(invoke("show", beats, code=1).stderr)


def test_labels_in_the_last_column_are_not_taken_for_series(beats, model):
    found = np.load(beats)
    rows = [
        ",".join([*map(str, one), str(number % 2)])
        for number, one in enumerate(found["X"].reshape(60, -1).tolist())
    ]
    Path("last.csv").write_text("\n".join(rows))
    result = invoke("predict", model, "last.csv", code=1)
    one_sentence(result.stderr)
    assert "is a class of the model; the first is" in result.stderr
    told = invoke("predict", model, "last.csv", "--label-column", "last")
    assert told.stdout == invoke("predict", model, beats).stdout
    assert told.stderr == ""


def test_garbled_models_give_one_sentence(tmp_path, beats, model):
    (tmp_path / "noise").write_bytes(os.urandom(300))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "cut").write_bytes((tmp_path / model).read_bytes()[:-100])
    for name in ("noise", "empty", "cut", "absent", "."):
        result = invoke("predict", name, beats, "--json", code=1)
        one_sentence(result.stderr)
        assert result.stdout == ""
    X, y = synthetic_heartbeats(6, n_steps=7, rng=0)
    write_npz("short.npz", X, y)
    one_sentence(invoke("predict", model, "short.npz", code=1).stderr)


@pytest.mark.parametrize(
    "command",
    ["--version", pytest.param("predict m.gfm beats.npz", marks=pytest.mark.contract)],
)
def test_a_reader_that_leaves_early(beats, model, command):
    with spawn(*command.split()) as process:
        assert process.stdout
        process.stdout.close()  # before anything was written
        assert process.stderr
        said = process.stderr.read()
        process.wait(60)
    assert said == ""
    assert process.returncode in (0, 1)
