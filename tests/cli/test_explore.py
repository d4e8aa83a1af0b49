"""`greenfold explore`: built-in series, own files, saved models, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from greenfold import Reservoir, ReservoirClassifier, load, save
from greenfold.apps import explorer as page
from greenfold.datasets import synthetic_heartbeats
from greenfold.networks.echo_state import EchoStateNetwork

from .conftest import invoke, one_sentence

SMALL = ["--neurons", "15"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A grid of two points, so that a page takes a second."""
    monkeypatch.setattr(page, "ETAS", (3.0,))
    monkeypatch.setattr(page, "TIMES", (0.5, 1.0))


def explored(*arguments):
    found = json.loads(invoke("explore", *arguments, "--out", "page.html", "--json").stdout)
    assert Path(found["page"]).read_text().startswith("<!DOCTYPE html>")
    assert found["bytes"] == Path("page.html").stat().st_size <= 500_000
    return found


def write_csv(path, n_cases=40, n_steps=30, n_classes=2):
    rng = np.random.default_rng(0)
    y = np.arange(n_cases) % n_classes
    X = rng.standard_normal((n_cases, n_steps)) + y[:, None]
    lines = [
        ",".join([f"c{label}", *map(str, one)]) for one, label in zip(X, y, strict=True)
    ]
    Path(path).write_text("\n".join(lines) + "\n")


def test_built_in_series():
    found = explored(*SMALL)
    assert [one["name"] for one in found["sets"]] == [
        "Synthetic heartbeats",
        "Which bump came first",
    ]
    assert found["neurons"] == 15
    (pair,) = found["sets"][0]["pairs"]
    assert np.array(pair["soft_margin"]) == pytest.approx(np.array(pair["bound"]), rel=0.01)


def test_twelve_bars_to_begin_with():
    write_csv("my.csv")
    assert explored("my.csv")["neurons"] == 12


def test_an_own_file_of_three_classes_and_long_series():
    write_csv("my.csv", n_cases=60, n_steps=400, n_classes=3)
    found = explored("my.csv", *SMALL)
    (one,) = found["sets"]
    assert one["classes"] == ["c0", "c1", "c2"]
    assert len(one["pairs"]) == 3
    assert one["judged"] == "test"
    assert "400 steps" in one["thinned"][0]
    few = explored("my.csv", *SMALL, "--classes", "c0, c2")
    assert few["sets"][0]["classes"] == ["c0", "c2"]
    text = invoke("explore", "my.csv", *SMALL, "--out", "page.html").stdout
    assert "c0 from c1; " in text
    assert "400 steps of each series were averaged" in text.replace("\n", " ")


def test_a_saved_model_with_the_series_it_has_kept(beats):
    options = ("--noise", "0.1", "--model", "m.gfm", "--json")
    made = json.loads(invoke("fit", beats, *SMALL, "--eta", 10, *options).stdout)
    model = made["final"] or made
    eta = model["eta"]
    found = explored("m.gfm")
    (one,) = found["sets"]
    assert one["judged"] == "training"
    assert one["series"] == 60
    (pair,) = one["pairs"]
    assert eta in pair["etas"]
    # Same network, series and η: the page's solved κ is the model's, up to the 16 bits.
    at = pair["etas"].index(eta)
    assert pair["soft_margin"][at][-1] == pytest.approx(model["soft_margin"], rel=2e-3)
    other = explored("m.gfm", beats)
    assert other["sets"][0]["judged"] == "test"


def test_some_classes_of_the_series_that_a_model_has_kept():
    write_csv("my.csv", n_cases=60, n_classes=3)
    options = ("--eta", 10, "--holdout", 0, "--model", "m.gfm")
    invoke("fit", "my.csv", "--neurons", 6, *options)
    (one,) = explored("m.gfm", "--classes", "c0,c2")["sets"]
    assert (one["classes"], one["series"]) == (["c0", "c2"], 40)
    for classes, code in (("c0,c9", 1), ("c0", 2)):
        given = "m.gfm", "--classes", classes, "--out", "none.html"
        one_sentence(invoke("explore", *given, code=code).stderr)


def test_a_saved_network(beats):
    save(Reservoir.random(9, rng=0), "net.gfm")
    assert explored("net.gfm", beats)["neurons"] == 9
    save(EchoStateNetwork.random(8, connectivity=0.5, rng=0), "echo.gfm")
    assert explored("echo.gfm", beats)["neurons"] == 8


def test_models_that_hold_no_series(beats):
    X, y = synthetic_heartbeats(40, n_steps=24, rng=3)
    names = np.where(y > 0, "normal", "ectopic")
    model = ReservoirClassifier(n_neurons=10, eta=3.0, order=1, random_state=0)
    model.fit(X, names).save("m.gfm")
    result = invoke("explore", "m.gfm", "--out", "page.html", code=1)
    one_sentence(result.stderr)
    assert "name a data set or file after it" in result.stderr
    explored("m.gfm", beats)
    assert "shows its linear part" in Path("page.html").read_text()
    exact = ReservoirClassifier(
        n_neurons=6,
        eta=3.0,
        order="exact",
        readout="integrated",
        input_projection="random",  # not ascended: what is read counts here
        random_state=0,
    )
    exact.fit(X[:20], names[:20]).save("exact.gfm")
    explored("exact.gfm", beats)
    assert "has its own readout" in Path("page.html").read_text()


def test_an_opened_page(monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)))
    write_csv("my.csv")
    text = invoke("explore", "my.csv", *SMALL).stdout
    assert opened == [(tmp_path / "explorer.html").as_uri()]
    assert "open that file" in text


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["my.csv", "more.csv"], 2, "not a saved model"),
        (["my.csv", "--classes", "c0,c9"], 1, "c9"),
        (["my.csv", "--neurons", "500"], 1, "500 neurons"),
        (["my.csv", "--out", "."], 2, "--out"),
        (["nothing.csv"], 1, "nothing.csv"),
        (["one.csv"], 1, "two classes"),
        (["noise.bin"], 1, "noise.bin"),
        (["net.gfm", "--neurons", "5"], 2, "--neurons"),
        (["kernel.gfm"], 2, "Kernel"),
    ],
)
def test_bad_input_is_one_sentence(fitted_beats, arguments, code, part):
    write_csv("my.csv")
    write_csv("one.csv", n_classes=1)
    Path("noise.bin").write_bytes(b"\x00\x01\x02")
    save(Reservoir.random(5, rng=0), "net.gfm")
    save(load(fitted_beats).kernel_, "kernel.gfm")
    given = arguments if "--out" in arguments else [*arguments, "--out", "page.html"]
    result = invoke("explore", *given, code=code)
    one_sentence(result.stderr)
    assert part in result.stderr
    assert not Path("page.html").exists()


def test_labels_that_a_model_does_not_know(model):
    write_csv("my.csv", n_steps=24)
    result = invoke("explore", model, "my.csv", "--out", "page.html", code=1)
    one_sentence(result.stderr)
    assert "c0" in result.stderr
