"""`greenfold recording`: the causes, the picture and the next drive."""

from __future__ import annotations

import json

import numpy as np
import pytest

from greenfold.datasets import read_recording

from .conftest import invoke, one_sentence


@pytest.fixture
def loop(tmp_path):
    rng = np.random.default_rng(0)
    drive, states = rng.standard_normal((1200, 3)), np.zeros((1200, 2))
    for t in range(1, 1200):
        states[t] = 0.4 * states[t - 1] + drive[t, :2] - drive[t - 1, 2]
    states += 0.8 * rng.standard_normal(states.shape)
    table = {f"drive_{i}": one for i, one in enumerate(drive.T)}
    table |= {f"state_{i}": one for i, one in enumerate(states.T)}
    path = tmp_path / "loop.csv"
    header, values = ",".join(table), np.stack([*table.values()], 1)
    np.savetxt(path, values, delimiter=",", header=header, comments="")
    return path


def test_it_names_the_cause_and_writes_the_next_drive(loop, tmp_path):
    target = tmp_path / "next.csv"
    how = ["--next", target, "--bits", "8", "--positive"]
    told = json.loads(invoke("recording", loop, *how, "--json").stdout)
    assert told["largest"] == "noise"
    assert "noise" in told["next"]["advice"]
    # Noise of 0.64 beside a response of 2/(1 − 0.16); 2400 values: 3 %.
    assert told["shares"]["noise"] == pytest.approx(0.64 / (0.64 + 2 / 0.84), rel=0.15)
    table = np.loadtxt(target, delimiter=",", skiprows=1)
    assert table.shape == (told["next"]["n_samples"], 3)
    assert table.min() == 0
    assert read_recording(target, states=["drive_2"], drive=["drive_0"]).drive.size
    shown = invoke("recording", loop).stdout
    assert "non-linearity" in shown
    assert told["next"]["advice"] in shown


@pytest.mark.needs("matplotlib")
def test_it_draws_a_picture(loop, tmp_path):
    invoke("recording", loop, "--out", tmp_path / "look.svg", "--lags", "4,8")
    assert (tmp_path / "look.svg").read_text(encoding="utf-8").count("<path") > 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bits", "8"], "--bits is for the next drive"),
        (["--positive"], "--positive is for the next drive"),
        (["--next", "no/such/folder.csv"], "does not exist"),
        (["--lags", "400"], "--lags"),
    ],
)
def test_refusals(loop, options, words):
    result = invoke("recording", loop, *options, code=1 if "--lags" in options else 2)
    assert words in result.stderr
    one_sentence(result.stderr)
